"""cumae: learning and predicting under differential privacy."""

import importlib
from typing import Any

from cumae.errors import (
    AnswersDrift,
    BudgetExhausted,
    CumaeError,
    InvalidData,
    InvalidParameter,
    LiveState,
    TooFewRows,
    UnknownCost,
)
from cumae.privacy import Budget, Guarantee

__version__ = "0.1.0.dev0"

_DATA = ("Columns", "ParquetRows", "bad_rows")

_LEARNERS = (
    "AccuracyBoost",
    "ActiveLearner",
    "Adapter",
    "GenericLearner",
    "HypothesisLearner",
    "IterLabelBoost",
    "LabelBoost",
    "OneVsRest",
    "PrivateBooster",
    "PrivateLearner",
    "PrivateLogisticRegression",
    "PublicDataReduction",
    "SemiPrivateLearner",
)

_PREDICTORS = (
    "AgnosticQueryRelease",
    "EverlastingPredictor",
    "GenericBBL",
    "QueryRelease",
    "UniversalQueryRelease",
)


def __getattr__(name: str) -> Any:
    # These are imported when asked for: scikit-learn and numba take seconds to load.
    if name in _DATA:
        return getattr(importlib.import_module("cumae.data"), name)
    if name in _LEARNERS:
        return getattr(importlib.import_module("cumae.learners"), name)
    if name in _PREDICTORS:
        return getattr(importlib.import_module("cumae.predictors"), name)
    raise AttributeError(f"module 'cumae' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


__all__ = [
    "AccuracyBoost",
    "ActiveLearner",
    "Adapter",
    "AgnosticQueryRelease",
    "AnswersDrift",
    "Budget",
    "BudgetExhausted",
    "Columns",
    "CumaeError",
    "EverlastingPredictor",
    "GenericBBL",
    "GenericLearner",
    "Guarantee",
    "HypothesisLearner",
    "InvalidData",
    "InvalidParameter",
    "IterLabelBoost",
    "LabelBoost",
    "LiveState",
    "OneVsRest",
    "ParquetRows",
    "PrivateBooster",
    "PrivateLearner",
    "PrivateLogisticRegression",
    "PublicDataReduction",
    "QueryRelease",
    "SemiPrivateLearner",
    "TooFewRows",
    "UniversalQueryRelease",
    "UnknownCost",
    "__version__",
    "bad_rows",
]
