"""Laws that predictors and the estimators inside of them must keep; anyone may run them.

Each law is a function that raises ``AssertionError`` where it is broken; its docstring says it in
one sentence. ``check_estimator`` and ``check_predictor`` run all of them.
"""

from cumae.checks.predictors import PREDICTOR_LAWS, check_predictor
from cumae.checks.shards import SHARD_LAWS, Neighbours, check_estimator

__all__ = [
    "PREDICTOR_LAWS",
    "SHARD_LAWS",
    "Neighbours",
    "check_estimator",
    "check_predictor",
]
