"""Sanitizers: a few public points that stand for many private rows.

>>> from cumae.concepts import cuts_of
>>> from cumae.sanitizers import Quantiles
>>> ages = [[age] for age in range(18, 90)] * 50
>>> points = Quantiles(epsilon=1.0, bounds=(0, 120, 1), n_points=7).sanitize(ages)
>>> points.shape
(7, 1)
>>> len(cuts_of(points)) <= 6
True
"""

from cumae.codec import register
from cumae.sanitizers.base import Sanitizer
from cumae.sanitizers.histogram import StabilityHistogram
from cumae.sanitizers.multiplicative_weights import MultiplicativeWeights
from cumae.sanitizers.quantiles import Quantiles
from cumae.sanitizers.ranges import Ranges
from cumae.sanitizers.small_database import SmallDatabase
from cumae.sanitizers.stable import StableThresholds

__all__ = [
    "MultiplicativeWeights",
    "Quantiles",
    "Ranges",
    "Sanitizer",
    "SmallDatabase",
    "StabilityHistogram",
    "StableThresholds",
]

# The names stand in files: they never change. Sanitizers with a listed domain are not stored.
register(
    "sanitizer",
    {
        "Quantiles": Quantiles,
        "Ranges": Ranges,
        "StabilityHistogram": StabilityHistogram,
        "StableThresholds": StableThresholds,
    },
)
