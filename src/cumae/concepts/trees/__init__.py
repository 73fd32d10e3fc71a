"""Decision trees of depth 1 to 3 over a given set of cuts."""

from cumae.concepts.trees.concept import Trees
from cumae.concepts.trees.cuts import BinnedRows, TreeCuts, cuts_of
from cumae.concepts.trees.hypothesis import Tree

__all__ = ["BinnedRows", "Tree", "TreeCuts", "Trees", "cuts_of"]
