"""What a model by noisy sums says: effects of columns, as numbers, text and pictures."""
