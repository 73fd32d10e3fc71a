"""The contents of a model by noisy sums: effects of columns, as numbers, text and pictures."""
