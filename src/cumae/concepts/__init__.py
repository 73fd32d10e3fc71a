"""Concept classes with an exact exponential mechanism that never lists its candidates.

>>> from cumae.concepts import Trees
>>> rows, labels = [[31, 0], [35, 1], [44, 0], [62, 1], [70, 0]], [0, 0, 0, 1, 1]
>>> rule = Trees(2).choose(rows, rows, labels, epsilon=50.0)
>>> rule.predict(rows).tolist()
[0, 0, 0, 1, 1]
"""

from typing import Any

from cumae.claims import claim
from cumae.codec import register
from cumae.concepts.base import ConceptClass, Hypothesis
from cumae.concepts.bits import BitClass, Conjunction, Conjunctions, Parities, Parity
from cumae.concepts.finite import FiniteClass
from cumae.concepts.halfspaces import Halfspace, Halfspaces
from cumae.concepts.intervals import Intervals, IntervalUnion, UnionOfIntervals
from cumae.concepts.keyed import Keyed, KeyRuns
from cumae.concepts.points import Point, Points, RandomSet, RandomSets
from cumae.concepts.projections import Projection, Projections
from cumae.concepts.rectangles import Rectangle, Rectangles
from cumae.concepts.stumps import Stump, Stumps
from cumae.concepts.thresholds import Threshold, Thresholds
from cumae.concepts.trees import BinnedRows, Tree, TreeCuts, Trees, cuts_of
from cumae.concepts.universe import KeyCuts

__all__ = [
    "BinnedRows",
    "BitClass",
    "ConceptClass",
    "Conjunction",
    "Conjunctions",
    "FiniteClass",
    "Halfspace",
    "Halfspaces",
    "Hypothesis",
    "IntervalUnion",
    "Intervals",
    "KeyCuts",
    "KeyRuns",
    "Keyed",
    "Parities",
    "Parity",
    "Point",
    "Points",
    "Projection",
    "Projections",
    "RandomSet",
    "RandomSets",
    "Rectangle",
    "Rectangles",
    "Stump",
    "Stumps",
    "Threshold",
    "Thresholds",
    "Tree",
    "TreeCuts",
    "Trees",
    "UnionOfIntervals",
    "cuts_of",
]

# The names stand in files: they never change.
HYPOTHESES: dict[str, type[Hypothesis]] = {
    "Conjunction": Conjunction,
    "Halfspace": Halfspace,
    "IntervalUnion": IntervalUnion,
    "KeyRuns": KeyRuns,
    "Parity": Parity,
    "Point": Point,
    "Projection": Projection,
    "RandomSet": RandomSet,
    "Rectangle": Rectangle,
    "Stump": Stump,
    "Threshold": Threshold,
    "Tree": Tree,
}
register("hypothesis", HYPOTHESES)
register(
    "concept",
    {
        "Conjunctions": Conjunctions,
        "FiniteClass": FiniteClass,
        "Halfspaces": Halfspaces,
        "Intervals": Intervals,
        "Keyed": Keyed,
        "Parities": Parities,
        "Points": Points,
        "Projections": Projections,
        "RandomSets": RandomSets,
        "Rectangles": Rectangles,
        "Stumps": Stumps,
        "Thresholds": Thresholds,
        "Trees": Trees,
        "UnionOfIntervals": UnionOfIntervals,
    },
)


@claim("PRIOR")
def is_exact(hypothesis: Any) -> bool:
    """Tell whether a hypothesis labels a row in the same way in any table.

    Those of cumae do: they compare, add up in one order, or compute exactly where it matters.
    """
    return type(hypothesis) in HYPOTHESES.values()
