"""Answers to public queries: a bounded number of them, or any number in two stages."""
