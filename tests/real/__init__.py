"""Histories of real processes: oracles in files and in PostgreSQL, with real kills and copies."""
