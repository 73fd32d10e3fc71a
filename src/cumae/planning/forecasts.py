"""The accuracy that privacy costs a route, by a model that was calibrated once.

The model has one input for each route, its strength: how far the rows stand out from the noise.
``forecasts.json`` says what privacy cost at each strength, on tables that
``benchmarks/planning.py`` measured. That falls with the strength, and so with rows and epsilon.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import numpy as np

from cumae.planning.routes import ROUTES, Route, Situation
from cumae.planning.width import widened
from cumae.privacy import Gaussian, calibrate
from cumae.remembering import remembered

USUAL = (1.0, 1e-6)  # epsilon and delta at which a row of a Gaussian route counts for 1
# Routes that were not measured, and the measured ones that do the same to the rows.
STANDS_FOR = {
    "generic": "learner",
    "semi": "learner",
    "offline": "learner",
    "laplace": "gaussian",
    "stability": "gaussian",
    "between": "gaussian",
    "agnostic": "gaussian",
}
GAUSSIAN = ("kernel", "booster", "logistic", "everlasting")  # routes with Gaussian noise
USUAL_MODEL = "kernel"  # without privacy it is about as good as gradient boosting
WORST = 0.35  # about the most that privacy costs: nothing is learnt then
SMALLEST_STRENGTH = 1e-6  # what a strength of 0 counts as, because its logarithm is taken
VOTES = ("gaussian", "laplace", "stability", "between", "agnostic", "student")


@dataclass(frozen=True)
class Expected:
    """The forecast cost of privacy, in shares of right answers: 0.02 is two points.

    Parameters
    ----------
    likely : float
        The cost that most measured ones were close to: within about two points.
    low, high : float
        Eight of ten lay between them, on tables that the forecast was not made from.
    behind : float
        How far the route was behind the best private route that was measured, on the mean over
        tables, where more than five points count as five. Routes are compared by it, because some
        models are worse than others even without privacy.
    usual : float
        About how far it is behind a usual model without privacy: the kernel classifier without
        privacy, which is about as good as gradient boosting.
    rests_on : str
        What the forecast was made from, in plain words.
    """

    likely: float
    low: float
    high: float
    behind: float
    usual: float
    rests_on: str

    def __str__(self) -> str:
        """Return it in points."""
        likely, low, high = (
            round(100 * part, 1) + 0.0 for part in (self.likely, self.low, self.high)
        )
        return f"{likely:.1f} points ({low:.1f} to {high:.1f})"


@remembered(1)
def calibration() -> Mapping[str, Any]:
    """Return what ``benchmarks/planning.py`` found on the tables for calibration."""
    text = resources.files("cumae.planning").joinpath("forecasts.json").read_text("utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


@remembered(256)
def mu_within(epsilon: float, delta: float) -> float:
    """Return the mu of Gaussian privacy that is within epsilon and delta; 0 if there is none."""
    if not (0 < epsilon < math.inf and 0 < delta < 1):
        return 0.0
    return 1 / calibrate(lambda scale: Gaussian(scale, 1.0), epsilon, delta, tolerance=1e-6)


def strength(route: Route, situation: Situation, facts: Mapping[str, Any]) -> float:
    """Return how far the rows stand out from the noise of a route.

    For votes it is the number of rows over the noise of a count. For the others it is the number of
    rows times epsilon, or times mu where noise is Gaussian; 1,000 rows at epsilon 1 and delta 1e-6
    have 1,000 in both cases. With more than two classes it is divided by half of their number.

    Parameters
    ----------
    route : Route
        What would run.
    situation : Situation
        The public facts.
    facts : mapping
        What the estimator's plan says, for the noise of votes.
    """
    rows, shared = situation.n_labelled, 2 / max(2, len(situation.classes))
    name = route.name
    if name == "everlasting":  # by votes alone, or mostly by its prior
        name = stands_for(route, facts) or name
    if name in VOTES:
        noise = float(facts.get("noise_per_vote", math.inf)) * float(facts.get("n_shards", 1))
        rows = int(facts.get("n_sampled", rows))
        return rows / noise * shared if noise > 0 else 0.0
    if name in GAUSSIAN:
        mu = mu_within(situation.epsilon, situation.delta) / mu_within(*USUAL)
        return rows * mu * shared
    return rows * situation.epsilon * shared


def forecast(route: Route, situation: Situation, facts: Mapping[str, Any]) -> Expected | None:
    """Return what privacy would cost a route; None if the route was never measured.

    Parameters
    ----------
    route : Route
        What would run.
    situation : Situation
        The public facts.
    facts : mapping
        What the estimator's plan says.
    """
    known = calibration()
    name = stands_for(route, facts) or route.name
    if name not in known["routes"]:
        return None
    curves = _curves(name, situation)
    reached = strength(route, situation, facts)
    low, likely, high = (
        _at(reached, curves["knots"], curves[name]) for name in ("low", "likely", "high")
    )
    behind = _behind(reached, curves)
    best, power = _curves(USUAL_MODEL, situation), _power(route, situation, facts)
    lead = _at(power, best["knots"], best["likely"]) - _behind(power, best)
    usual = max(likely, behind + lead)
    instead = stands_for(route, facts)
    more = widened(instead or route.name, reached / situation.n_features)
    return Expected(
        min(likely + more.likely, max(likely, WORST)),
        min(low + more.low, max(low, WORST)),
        min(high + more.high, max(high, WORST)),
        behind + more.behind,
        usual,
        _rests_on(instead, situation, known, wide=more.likely > 0),
    )


def _power(route: Route, situation: Situation, facts: Mapping[str, Any]) -> float:
    """Return the strength of the route that comes nearest to a usual model, on the same rows.

    Routes without Gaussian noise were held against it where it had the usual delta. What they lose
    does not depend on delta, so that one of 0 must not count as if nothing could be learnt.
    """
    if route.name not in GAUSSIAN:
        situation = replace(situation, delta=USUAL[1])
    return strength(ROUTES[USUAL_MODEL], situation, facts)


def _curves(name: str, situation: Situation) -> Mapping[str, list[float]]:
    """Return the curves of a measured route for the context of a situation."""
    found = calibration()["routes"][name]
    cases = (situation, replace(situation, n_public=0), replace(situation, concept_class=None))
    curves: Mapping[str, list[float]] = next(
        (found[context(one)] for one in cases if context(one) in found), found["any"]
    )
    return curves


def _behind(reached: float, curves: Mapping[str, list[float]]) -> float:
    """Return how far a route was behind the best private one."""
    return float(
        np.interp(math.log10(max(reached, SMALLEST_STRENGTH)), curves["knots"], curves["behind"])
    )


def stands_for(route: Route, facts: Mapping[str, Any]) -> str | None:
    """Return the measured route that does the same to the rows; None if it was measured itself.

    Parameters
    ----------
    route : Route
        What would run.
    facts : mapping
        What the estimator's plan says. An everlasting predictor without a prior has votes alone.
    """
    if route.name == "everlasting" and facts.get("prior_learner") == "none":
        return "gaussian"
    return STANDS_FOR.get(route.name)


def context(situation: Situation) -> str:
    """Return in which of four cases a situation is: each has curves of its own.

    With a concept class or without, and with public rows or without.
    """
    shape = "any" if situation.concept_class is None else "concept"
    return f"{shape}, public rows" if situation.n_public else shape


def _at(reached: float, knots: list[float], values: list[float]) -> float:
    """Read a curve over the logarithm of the strength.

    Beyond what was measured it goes on as the root of the noise does, up to ``WORST``.
    """
    place = math.log10(max(reached, SMALLEST_STRENGTH))
    found = float(np.interp(place, knots, values))
    beyond = min(place - knots[0], 0.0) + max(place - knots[-1], 0.0)
    return found if found <= 0 else min(found * 10 ** (-beyond / 2), max(found, WORST))


def _rests_on(
    instead: str | None, situation: Situation, known: Mapping[str, Any], *, wide: bool
) -> str:
    tables, rows = known["tables"], known["rows"]
    text = f"{len(tables)} tables with {rows[0]:,} to {rows[1]:,} rows"
    if not rows[0] <= situation.n_labelled <= rows[1]:
        text += f", none with {situation.n_labelled:,}"
    if instead is not None:
        text += f", on which the route {instead!r} was measured in its place"
    if len(situation.classes) > 2:
        text += ", all of two classes"
    if wide:
        text += f", and from made-up ones that are as wide as this one ({situation.n_features:,})"
    return text
