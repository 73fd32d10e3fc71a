"""cumae: learning and predicting under differential privacy."""

from cumae.errors import (
    BudgetExhausted,
    CumaeError,
    InvalidData,
    InvalidParameter,
    LiveState,
    UnknownCost,
)
from cumae.privacy import Budget, Guarantee

__version__ = "0.1.0.dev0"

__all__ = [
    "Budget",
    "BudgetExhausted",
    "CumaeError",
    "Guarantee",
    "InvalidData",
    "InvalidParameter",
    "LiveState",
    "UnknownCost",
    "__version__",
]
