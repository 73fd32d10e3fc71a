"""Compiled loops of the concept classes, and exact sums."""
