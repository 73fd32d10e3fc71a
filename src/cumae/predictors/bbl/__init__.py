"""GenericBBL, the everlasting predictor of paper 2."""
