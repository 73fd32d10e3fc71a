"""Voters: many models that are asked at once."""
