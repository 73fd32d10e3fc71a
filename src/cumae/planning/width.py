"""The part of the cost of privacy that many columns add, where rows are few.

The tables behind ``forecasts.json`` have hundreds of rows for each column. With tens of them, noise
on every column drowns the few that matter, and routes that choose columns lose less.
``wide.json`` has what ``benchmarks/wide.py`` measured on made-up tables, of which three columns
decide, or all of them. Nobody knows beforehand which kind a table is, so both count the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np

from cumae.remembering import remembered

STANDS_FOR = {"everlasting": "kernel", "learner": "trees"}  # which learn in the same way
FEWEST = 1.3  # twenty rows for each column, as a logarithm: from here on down they are few
MOST_BEHIND = 0.05  # as in the forecasts, where more than five points count as five


@dataclass(frozen=True)
class Wider:
    """The loss of a route because columns are many, in shares of right answers.

    Parameters
    ----------
    low, likely, high : float
        On the kind of table that suits it better, on the mean of both, and on the other kind.
    behind : float
        How far it is behind the route that loses least, as far as rows are few.
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
    name, place = STANDS_FOR.get(route, route), math.log10(max(per_column, 1.0))
    knots, losses = known["knots"], known["routes"]
    if name not in losses or place >= knots[-1]:
        return NOTHING
    lost = {
        one: [float(np.interp(place, knots, values)) for values in kinds.values()]
        for one, kinds in losses.items()
    }
    more = [
        max(0.0, value - values[-1])
        for value, values in zip(lost[name], losses[name].values(), strict=True)
    ]
    least = min(float(np.mean(both)) for both in lost.values())
    # The usual forecasts fade out from where rows are enough to where they are fewest.
    fewer = min(1.0, (knots[-1] - place) / (knots[-1] - FEWEST))
    behind = min(fewer * (float(np.mean(lost[name])) - least), MOST_BEHIND)
    return Wider(min(more), float(np.mean(more)), max(more), behind)
