"""GenericBBL, the everlasting predictor that "Private Everlasting Prediction" (paper 2) prints."""
