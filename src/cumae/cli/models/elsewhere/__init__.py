"""Fits to rows that stay on an engine, for ``cumae fit --engine``."""
