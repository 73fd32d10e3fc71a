"""What many columns add to the cost of privacy, where rows are few.

The tables behind ``forecasts.json`` have hundreds of rows for each column. With tens of them, noise
on every column drowns the few that matter, and routes that choose columns lose less.
``wide.json`` has what ``benchmarks/wide.py`` measured on made-up tables, of which three columns
decide, or all of them. Nobody knows beforehand which kind a table is, so both count the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from cumae.remembering import remembered

STANDS_FOR = {"everlasting": "kernel", "learner": "trees"}  # which learn in the same way
MOST_BEHIND = 0.05  # as in the forecasts, where more than five points count as five


@dataclass(frozen=True)
class Wider:
    """What a route loses because columns are many, in shares of right answers.

    Parameters
    ----------
    low, likely, high : float
        On the kind of table that suits it better, on the mean of both, and on the other kind.
    behind : float
        How much more it loses than the route that loses least.
    """

    low: float = 0.0
    likely: float = 0.0
    high: float = 0.0
    behind: float = 0.0


NOTHING = Wider()


@remembered(1)
def measured() -> Mapping[str, Any]:
    """Return for each route what it loses on both kinds of tables, by rows for each column."""
    text = resources.files("cumae.planning").joinpath("wide.json").read_text("utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


def widened(route: str, per_column: float) -> Wider:
    """Return what many columns add to the forecast of a route.

    Parameters
    ----------
    route : str
        Name of the route; nothing is added to those that were not measured.
    per_column : float
        The strength of the route for each column of the table: rows at epsilon 1.

    Examples
    --------
    >>> from cumae.planning.width import widened
    >>> widened("kernel", 20.0).likely > widened("kernel", 60.0).likely > 0
    True
    >>> widened("kernel", 1_000.0).likely
    0.0
    """
    known = measured()
    name = STANDS_FOR.get(route, route)
    if name not in known["routes"]:
        return NOTHING
    lost = {one: _lost(kinds, per_column) for one, kinds in known["routes"].items()}
    low, high = sorted(lost[name])
    likely = {one: float(np.mean(both)) for one, both in lost.items()}
    behind = min(likely[name] - min(likely.values()), MOST_BEHIND)
    return Wider(low, likely[name], high, behind)


def _lost(kinds: Mapping[str, list[float]], per_column: float) -> list[float]:
    """Return what a route loses on each kind of table, against tables with enough rows."""
    knots, place = measured()["knots"], np.log10(max(per_column, 1.0))
    return [max(0.0, float(np.interp(place, knots, values))) for values in kinds.values()]
