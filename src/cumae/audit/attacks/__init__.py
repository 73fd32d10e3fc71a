"""Attacks, one module for each kind of thing that is attacked."""
