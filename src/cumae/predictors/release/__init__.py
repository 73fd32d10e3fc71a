"""Answers to a bounded number of queries."""
