"""Halfspaces in one, two or three columns, decided exactly."""

from cumae.concepts.halfspaces.concept import Halfspaces
from cumae.concepts.halfspaces.hypothesis import Halfspace

__all__ = ["Halfspace", "Halfspaces"]
