"""Noisy counts of rows by class and bin of a chance, and figures with intervals from them."""
