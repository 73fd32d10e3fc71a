"""Candidates of a private draw: those that points define, and public ones on a grid."""
