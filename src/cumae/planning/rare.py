"""The quality of routes by each goal, on made-up tables with classes of such shares.

``rare.json`` holds what ``benchmarks/rare.py`` measured: for each route and goal, the area under
the ROC curve and the part of a guess's cost that is saved, over the strength of the rarer class.
The second is kept for several *weighed* shares: the share of the rarer class, once each row counts
as much as it costs to miss it. With equal costs, the cost of a guess is the share of wrong answers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Self

import numpy as np

from cumae.arrays import Floats
from cumae.planning.forecasts import stands_for, strength
from cumae.planning.goals import Reached, best_guess
from cumae.planning.routes import Route, Situation
from cumae.remembering import remembered

SMALLEST_STRENGTH = 1e-6  # what a strength of 0 counts as, because its logarithm is taken
USUAL_WIDTH = 8  # columns of a table whose strength is not corrected
LIKELY = 0.5  # from this chance on, answers are said to be constant
USUAL = "usual"  # the name of the model without privacy among the routes


@remembered(1)
def measured() -> Mapping[str, Any]:
    """Return what ``benchmarks/rare.py`` found."""
    text = resources.files("cumae.planning").joinpath("rare.json").read_text("utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


@dataclass(frozen=True)
class _Measured:
    """Curves of one route for one goal; places are logarithms of a strength.

    ``auc`` has a line for low, likely and high values, or is None; ``saved`` has three tables over
    places and weighed shares, and ``constant`` has one.
    """

    auc: Floats | None
    saved: Floats
    constant: Floats

    @classmethod
    def of(cls, name: str, goal: str) -> Self:
        """Read them; a goal that makes no difference to a route stands under accuracy."""
        known = measured()["routes"][name]
        found = known.get(goal, known["accuracy"])
        auc = None if found["auc"] is None else np.array(found["auc"])
        return cls(auc, np.array(found["saved"]), np.array(found["constant"]))

    def auc_at(self, places: Sequence[float]) -> Floats:
        """Return low, likely and high areas, on the mean over places."""
        lines = np.full((3, 1), 0.5) if self.auc is None else self.auc
        knots = measured()["knots"][: lines.shape[1]]
        return np.array([np.mean(np.interp(places, knots, line)) for line in lines])

    def saved_at(self, place: float, weighed: float) -> Floats:
        """Return low, likely and high parts of a guess's cost that are saved."""
        return np.array([_within(table, place, weighed) for table in self.saved])

    def constant_at(self, place: float, weighed: float) -> float:
        """Return the chance that all answers are the same."""
        return _within(self.constant, place, weighed)


def _within(table: Floats, place: float, weighed: float) -> float:
    """Read a table over knots and weighed shares."""
    known = measured()
    line = [np.interp(place, known["knots"], column) for column in table.T]
    odds = [math.log(share / (1 - share)) for share in (weighed, *known["weighed"])]
    return float(np.interp(odds[0], odds[1:], line))


def reached(route: Route, situation: Situation, facts: Mapping[str, Any]) -> Reached | None:
    """Return how good a route is likely to be by the goal; None if that was never measured.

    Parameters
    ----------
    route : Route
        What would run.
    situation : Situation
        The public facts. With more than two classes there are forecasts of ranking alone.
    facts : mapping
        What the estimator's plan says, for the noise of votes.
    """
    goal, several = situation.compared, len(situation.classes) > 2
    name = stands_for(route, facts) or route.name
    if name not in measured()["routes"] or (several and goal != "ranking"):
        return None
    here, plain = _Measured.of(name, goal), _Measured.of(USUAL, goal)
    shares = situation.shares if several else (min(situation.shares),)
    power = strength(route, situation, facts)
    places = [_place(power, share, situation) for share in shares]
    others = [_place(situation.n_labelled, share, situation) for share in shares]
    auc, usual_auc = here.auc_at(places), float(plain.auc_at(others)[1])
    spot, _ = best_guess("cost", situation.shares, situation.misses)  # answers follow costs
    guess = best_guess(goal, situation.shares, situation.misses)[1]
    ends, usual = auc, usual_auc
    if goal != "ranking":
        weighed = situation.weighed
        ends = _answers(goal, guess, here.saved_at(places[0], weighed))
        usual = float(_answers(goal, guess, plain.saved_at(others[0], weighed))[1])
    # More epsilon does not make up for rows: no route is forecast to be better than a usual model.
    value = float(max(ends[1], usual) if goal == "cost" else min(ends[1], usual))
    return Reached(
        goal,
        value,
        float(min(*ends, value)),
        float(max(*ends, value)),
        guess,
        situation.classes[spot],
        None if here.auc is None else min(float(auc[1]), usual_auc),
        not several and here.constant_at(places[0], situation.weighed) >= LIKELY,
        usual,
        usual_auc,
        _rests_on(situation, None if name == route.name else name),
    )


def _place(power: float, share: float, situation: Situation) -> float:
    """Return the logarithm of a strength: of rows that count, less for each further column."""
    counts = 4 * share * (1 - share)
    wide = (situation.width / USUAL_WIDTH) ** measured()["width_power"]
    return math.log10(max(power * counts / wide, SMALLEST_STRENGTH))


def _answers(goal: str, guess: float, saved: Floats) -> Floats:
    """Return accuracies or costs, from the part of a guess's cost that is saved."""
    return guess * (1 - saved) if goal == "cost" else guess + (1 - guess) * saved


def _rests_on(situation: Situation, instead: str | None) -> str:
    known = measured()
    low, high = known["rows"]
    text = f"{known['cells']} made-up tables with {low:,} to {high:,} rows"
    if not low <= situation.n_labelled <= high:
        text += f", none with {situation.n_labelled:,}"
    if instead is not None:
        text += f", on which the route {instead!r} was measured in its place"
    return text if len(situation.classes) == 2 else f"{text}, all of two classes"
