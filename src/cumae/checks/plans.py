"""The shared part of laws about ``plan``: an outlook agrees with the fit that it forecasts."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from cumae.checks.shards import demand
from cumae.errors import CumaeError, VotesIgnored, WeakPrivacy
from cumae.estimators import PrivateEstimator
from cumae.outlook import Outlook


def demand_agreement(outlook: Outlook, one: Any, warned: Iterable[warnings.WarningMessage]) -> None:
    """Raise AssertionError unless an outlook agrees with the fit that followed.

    Parameters
    ----------
    outlook : Outlook
        What was made before the fit.
    one : object
        What was fitted.
    warned : iterable of WarningMessage
        What the fit warned of. Epsilon and delta are in plain sight, and how much votes count is a
        release: a plan need not tell of either.
    """
    demand(outlook.can_run, f"a plan refused what could be fitted: {outlook.reasons}")
    if outlook.guarantee is None:
        demand(_has_foreign_part(one), "a plan tells no guarantee")
    else:
        demand(outlook.guarantee == one.guarantee_, "a plan promises something else than a fit")
    for name, fact in outlook.facts.items():
        shown = getattr(one, f"{name}_", fact)
        demand(shown == fact, f"a plan tells {name} = {fact!r}, and a fit shows {shown!r}")
    later = (WeakPrivacy, VotesIgnored)
    heard = {str(said.message) for said in warned if not issubclass(said.category, later)}
    forecast = set(outlook.warnings)
    demand(forecast == heard, f"a plan warns of {forecast}, and a fit of {heard}")


def _has_foreign_part(one: Any) -> bool:
    """Tell whether it wraps an object of another library, which tells its promise after its fit."""
    given = one.get_params(deep=False)
    bases = [given[name] for name in ("base", "predictor") if name in given]
    return any(not isinstance(base, PrivateEstimator) for base in bases)


def demand_refusal(outlook: Outlook, fit: Any) -> None:
    """Raise AssertionError unless a plan was refused, and a fit is refused in the same words.

    Parameters
    ----------
    outlook : Outlook
        What was planned.
    fit : callable
        Fits in the same way.
    """
    demand(not outlook.can_run and outlook.guarantee is None, "a plan was not refused")
    try:
        fit()
    except CumaeError as error:
        demand(outlook.reasons == (str(error),), f"{outlook.reasons} and {error!r} differ")
    else:
        raise AssertionError(f"a plan was refused, and the fit was not: {outlook.reasons}")
