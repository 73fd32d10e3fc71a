"""cumae: learning and predicting under differential privacy."""

import importlib
from typing import TYPE_CHECKING

from cumae import savers
from cumae.errors import (
    AnswersDrift,
    BudgetExhausted,
    ConstantAnswers,
    CumaeError,
    EveryFitPays,
    GuaranteeVoid,
    InvalidData,
    InvalidParameter,
    LiveState,
    MissingPackage,
    RequestIdReused,
    StoreFailed,
    TooFewRows,
    UnknownCost,
    VotesIgnored,
    WeakPrivacy,
)

__version__ = "1.0.0rc1"

# These are imported when asked for, because numpy, scikit-learn and numba take seconds to load.
# Editors and type checkers read the imports below, and a test compares both lists.
_HOMES = {
    "cumae.privacy": ("Budget", "Guarantee"),
    "cumae.data": ("Columns", "ParquetRows", "bad_rows"),
    "cumae.learners": (
        "AccuracyBoost",
        "ActiveLearner",
        "Adapter",
        "GenericLearner",
        "HypothesisLearner",
        "IterLabelBoost",
        "LabelBoost",
        "OneVsRest",
        "PrivateBooster",
        "PrivateKernelClassifier",
        "PrivateKernelRegressor",
        "PrivateLearner",
        "PrivateLinearRegression",
        "PrivateLogisticRegression",
        "PublicDataReduction",
        "SemiPrivateLearner",
    ),
    "cumae.store": ("load", "open"),
    "cumae.planning": ("PrivateClassifier",),
    "cumae.predictors": (
        "AgnosticQueryRelease",
        "Call",
        "EverlastingPredictor",
        "GenericBBL",
        "QueryRelease",
        "UniversalQueryRelease",
    ),
}

if TYPE_CHECKING:
    from cumae.data import Columns, ParquetRows, bad_rows
    from cumae.learners import (
        AccuracyBoost,
        ActiveLearner,
        Adapter,
        GenericLearner,
        HypothesisLearner,
        IterLabelBoost,
        LabelBoost,
        OneVsRest,
        PrivateBooster,
        PrivateKernelClassifier,
        PrivateKernelRegressor,
        PrivateLearner,
        PrivateLinearRegression,
        PrivateLogisticRegression,
        PublicDataReduction,
        SemiPrivateLearner,
    )
    from cumae.planning import PrivateClassifier
    from cumae.predictors import (
        AgnosticQueryRelease,
        Call,
        EverlastingPredictor,
        GenericBBL,
        QueryRelease,
        UniversalQueryRelease,
    )
    from cumae.privacy import Budget, Guarantee
    from cumae.store import load, open  # noqa: A004 - cumae.open is its name
else:

    def __getattr__(name):
        """Import what was asked for; type checkers would take any name if they saw this."""
        for module, names in _HOMES.items():
            if name in names:
                return getattr(importlib.import_module(module), name)
        raise AttributeError(f"module 'cumae' has no attribute {name!r}")


def _store() -> savers.Saver:
    from cumae import store  # noqa: PLC0415 - it loads everything, and most uses never save

    return store


savers.register(_store)


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
    "Call",
    "Columns",
    "ConstantAnswers",
    "CumaeError",
    "EverlastingPredictor",
    "EveryFitPays",
    "GenericBBL",
    "GenericLearner",
    "Guarantee",
    "GuaranteeVoid",
    "HypothesisLearner",
    "InvalidData",
    "InvalidParameter",
    "IterLabelBoost",
    "LabelBoost",
    "LiveState",
    "MissingPackage",
    "OneVsRest",
    "ParquetRows",
    "PrivateBooster",
    "PrivateClassifier",
    "PrivateKernelClassifier",
    "PrivateKernelRegressor",
    "PrivateLearner",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PublicDataReduction",
    "QueryRelease",
    "RequestIdReused",
    "SemiPrivateLearner",
    "StoreFailed",
    "TooFewRows",
    "UniversalQueryRelease",
    "UnknownCost",
    "VotesIgnored",
    "WeakPrivacy",
    "__version__",
    "bad_rows",
    "load",
    "open",
]
