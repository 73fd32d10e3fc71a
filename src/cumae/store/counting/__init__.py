"""What an answer changes in the state of each predictor: how it is recorded, and done again."""
