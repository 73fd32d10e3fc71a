"""The outlook of a route by the plan of its estimator, and what it lacks if it cannot run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cumae.errors import CumaeError
from cumae.outlook import Outlook
from cumae.planning.routes import Route, Situation

MOST_ROWS = 10**8  # a route that needs more is not worth naming a number for
MOST_EPSILON = 50.0  # a larger one protects nobody
CLOSE = 1.02  # a bisection ends at this ratio


def outlook(route: Route, situation: Situation, *, trial: bool = False) -> Outlook:
    """Return what a route would do; a refusal comes as a reason, not as an error.

    Parameters
    ----------
    route : Route
        What would run.
    situation : Situation
        The public facts.
    trial : bool
        Whether estimators that vote are tried on made-up rows, which takes seconds. Otherwise their
        shards may turn out larger than the outlook says.
    """
    reason = impossible(route, situation)
    if reason:
        return Outlook(route.name, can_run=False, reasons=(reason,))
    try:
        estimator = route.estimator(situation)
    except CumaeError as error:
        return Outlook(route.name, can_run=False, reasons=(str(error),))
    reason = _untaken(estimator, situation)
    if reason:
        return Outlook(route.name, can_run=False, reasons=(reason,))
    counts = (situation.n_labelled, situation.n_features)
    if not route.publishes:
        found: Outlook = estimator.plan(*counts, trial=trial)
    else:
        found = estimator.plan(
            *counts, situation.n_public, n_unlabelled=_unlabelled(route, situation)
        )
    return found


def _untaken(estimator: Any, situation: Situation) -> str:
    """Return what was declared about answers and an estimator cannot follow; "" if it can."""
    kind, known = type(estimator).__name__, estimator.get_params(deep=False)
    if situation.goal == "ranking" and not hasattr(type(estimator), "decision_function"):
        return f'goal="ranking": {kind} gives answers without chances, which rank nothing.'
    for name in ("costs", "threshold"):
        if getattr(situation, name) is not None and name not in known:
            return f"{name} is given, and {kind} cannot follow it."
    return ""


def _unlabelled(route: Route, situation: Situation) -> int:
    """Return how many unlabelled rows a route is given: others than this one cannot use them."""
    return situation.n_unlabelled if route.name == "generic" else 0


def impossible(route: Route, situation: Situation) -> str:
    """Return why nobody could take this route in such a situation; "" if somebody could."""
    rows, epsilon, asked = situation.n_labelled, situation.epsilon, situation.n_queries
    refusals = {
        f"classes={situation.classes!r}: there is nothing to tell apart; declare two or more.": (
            len(set(situation.classes)) < 2
        ),
        "epsilon=inf promises nothing, so that no route is needed; give a finite one.": (
            epsilon == math.inf
        ),
        f"epsilon={epsilon!r}: answers could not depend on the rows; give more than 0.": (
            not epsilon > 0
        ),
        f"n_labelled={rows}: there is nothing to learn from; give rows.": rows < 1,
        f"n_queries={asked}: give 1 or more, or None if a model is to be published.": (
            asked is not None and asked < 1
        ),
        "it answers a number of questions that is fixed beforehand; give n_queries.": (
            route.way == "release" and asked is None
        ),
        "delta=0: without a delta it is the route 'trees'; give 1e-6, say.": (
            route.name == "booster" and situation.delta == 0
        ),
    }
    return next((reason for reason, holds in refusals.items() if holds), "")


def needs(route: Route, situation: Situation) -> str:
    """Return how many rows, or which epsilon, a refused route would need; "" if neither helps.

    Parameters
    ----------
    route : Route
        What was refused.
    situation : Situation
        The public facts.
    """
    found = []
    rows = _least(
        lambda count: replace(situation, n_labelled=int(count)),
        route,
        max(1, situation.n_labelled),
        MOST_ROWS,
    )
    if rows is not None:
        found.append(f"{math.ceil(rows):,} labelled rows")
    if 0 < situation.epsilon < MOST_EPSILON:
        epsilon = _least(
            lambda value: replace(situation, epsilon=value),
            route,
            situation.epsilon,
            MOST_EPSILON,
        )
        if epsilon is not None:
            found.append(f"epsilon {epsilon:.3g}")
    return " or ".join(found)


def _least(
    changed: Callable[[float], Situation], route: Route, low: float, high: float
) -> float | None:
    """Return about the least value with which a route can run, by bisection; None if none does."""

    def runs(value: float) -> bool:
        return outlook(route, changed(value)).can_run

    if not runs(high):
        return None
    if runs(low):
        return low
    while high > low * CLOSE and not (high - low < 1 and high > 10):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if runs(middle) else (middle, high)
    return high
