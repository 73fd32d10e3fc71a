"""Laws about payments: a fit ends well, or is refused before anything is paid."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cumae.checks.shards import demand
from cumae.errors import CumaeError
from cumae.estimators import PrivateEstimator, own_clone
from cumae.privacy import Budget

# Noise beyond what can be drawn, and weights beyond what floats can hold.
EXTREME_EPSILONS = (5e-324, 1e-15, 1e-9, 1e12, 1e300)
TINY_DELTA = 1e-15
LARGEST_EPSILON, LARGEST_DELTA = 1e308, 0.5  # of an account that pays for all of it


def done_or_unpaid(fit: Callable[[Budget], Any]) -> bool:
    """Tell whether a fit ended well; raise AssertionError if it was refused after it was paid for.

    Parameters
    ----------
    fit : callable
        Fits, and pays from the account that it is given.
    """
    budget = Budget(LARGEST_EPSILON, LARGEST_DELTA)
    try:
        fit(budget)
    except CumaeError as error:
        demand(not budget.entries, f"a refused fit was paid for: {error}")
        return False
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} instead of a CumaeError") from error
    return True


def at_extreme_prices(one: Any) -> Iterator[Any]:
    """Yield clones with very small and very large epsilons, and with a very small delta.

    An estimator of ours inside of it gets the same ones. Around an object of another library there
    are no clones: its promise is known after its fit.
    """
    if is_around_another(one):
        return
    for epsilon in EXTREME_EPSILONS:
        yield _priced(one, epsilon, None)
    yield _priced(one, 1e-9, TINY_DELTA)


def is_around_another(one: Any) -> bool:
    """Tell whether an estimator is made of an object of another library."""
    given = one.get_params(deep=False)
    bases = [given[name] for name in ("base", "predictor") if name in given]
    foreign = [not isinstance(base, PrivateEstimator) or is_around_another(base) for base in bases]
    return any(foreign)


def _priced(one: Any, epsilon: float, delta: float | None) -> Any:
    clone = own_clone(one)
    given = clone.get_params(deep=False)
    changed: dict[str, Any] = {}
    if given.get("epsilon") is not None:
        changed["epsilon"] = epsilon
    if given.get("delta") and delta is not None:
        changed["delta"] = delta
    for name in ("base", "predictor"):
        if name in given:
            changed[name] = _priced(given[name], epsilon, delta)
    return clone.set_params(**changed)


def tables_without_contents(n_rows: int, width: int) -> Iterator[Any]:
    """Yield tables that no type describes, and of which reading leaves nothing.

    They are lists and arrays of objects that hold text, dates, and whole numbers that all become
    the same float.

    Parameters
    ----------
    n_rows, width : int
        Size of the tables.
    """
    day = dt.date(2020, 1, 1)
    for cell in (
        lambda row: f"word {row % 3}",
        lambda row: day + dt.timedelta(days=row % 50),
        lambda row: 10**30 + row,
    ):
        listed = [[cell(row)] * width for row in range(n_rows)]
        array = np.empty((n_rows, width), dtype=object)
        array[:] = listed
        yield listed
        yield array
