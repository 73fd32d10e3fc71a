"""What privacy costs each route against rows or epsilon, as a table of text and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cumae.errors import InvalidParameter
from cumae.extras import PLOT, needing
from cumae.planning.forecasts import VOTES, forecast, mu_within
from cumae.planning.routes import Route, Situation

POINTS = 7  # of a curve
WIDEST = 10.0  # how far it goes to both sides, as a factor
TITLES = {"rows": "private rows", "epsilon": "epsilon"}


@dataclass(frozen=True)
class Curves:
    """What privacy is forecast to cost each route, in points of accuracy.

    Parameters
    ----------
    against : {"rows", "epsilon"}
        What changes.
    values : tuple of float
        Its values.
    costs : mapping from str to a tuple of Expected
        For each route, by its name, what privacy costs at these values.
    """

    against: str
    values: tuple[float, ...]
    costs: Mapping[str, tuple[Any, ...]]

    @classmethod
    def of(
        cls,
        situation: Situation,
        routes: Sequence[Route],
        facts: Mapping[str, Mapping[str, Any]],
        against: str,
    ) -> Curves:
        """Forecast for values around those of a situation.

        Parameters
        ----------
        situation : Situation
            The public facts.
        routes : sequence of Route
            What is compared.
        facts : mapping
            What the plan of each route says about the situation.
        against : {"rows", "epsilon"}
            What changes.
        """
        if against not in TITLES:
            raise InvalidParameter(f"against={against!r}: give 'rows' or 'epsilon'.")
        factors = np.geomspace(1 / WIDEST, WIDEST, POINTS)
        middle = situation.n_labelled if against == "rows" else situation.epsilon
        if against == "rows":
            values = tuple(float(max(1, round(middle * factor))) for factor in factors)
            changed = [replace(situation, n_labelled=int(value)) for value in values]
        else:
            values = tuple(float(middle * factor) for factor in factors)
            changed = [replace(situation, epsilon=value) for value in values]
        costs = {
            route.name: tuple(
                forecast(route, one, facts[route.name], _scale(route, situation, one))
                for one in changed
            )
            for route in routes
        }
        return cls(against, values, costs)

    def __str__(self) -> str:
        """Return a table: a line for each value, a column for each route, costs in points."""
        names = list(self.costs)
        first = max(len(TITLES[self.against]), 12)
        lines = [" ".join([TITLES[self.against].rjust(first), *(name.rjust(11) for name in names)])]
        for place, value in enumerate(self.values):
            told = f"{value:,.0f}" if self.against == "rows" else f"{value:.2g}"
            points = [round(100 * self.costs[name][place].likely, 1) + 0.0 for name in names]
            cells = [f"{cost:.1f}".rjust(11) for cost in points]
            lines.append(" ".join([told.rjust(first), *cells]))
        return "\n".join(lines)

    def draw(self, axes: Any) -> None:
        """Draw a line for each route, and for the first one where eight of ten tables lay.

        Parameters
        ----------
        axes : matplotlib axes
            Where to draw.
        """
        for place, (name, costs) in enumerate(self.costs.items()):
            likely = [100 * cost.likely for cost in costs]
            axes.plot(self.values, likely, marker="o", markersize=3, color=f"C{place}", label=name)
            if place == 0:
                low, high = ([100 * getattr(c, end) for c in costs] for end in ("low", "high"))
                axes.fill_between(self.values, low, high, color="C0", alpha=0.15, linewidth=0)
        axes.set_xscale("log")
        axes.set_xlabel(TITLES[self.against])
        axes.set_ylabel("points of accuracy that privacy costs")
        axes.legend(fontsize=8)


def plot_all(curves: Sequence[Curves], axes: Any = None) -> Any:
    """Draw several curves side by side, and return their figure.

    Parameters
    ----------
    curves : sequence of Curves
        What to draw.
    axes : list of matplotlib axes, or None
        Where to draw; None makes a new figure.

    Raises
    ------
    MissingPackage
        If matplotlib is not there.
    """
    if axes is None:
        with needing(*PLOT):
            from matplotlib import pyplot as plt  # noqa: PLC0415
        axes = plt.subplots(1, len(curves), figsize=(5.0 * len(curves), 3.6), layout="tight")[1]
    panels = list(np.ravel(axes))
    if len(panels) != len(curves):
        raise InvalidParameter(f"axes has {len(panels)} panels; give {len(curves)}.")
    for one, panel in zip(curves, panels, strict=True):
        one.draw(panel)
    return panels[0].figure


def _scale(route: Route, here: Situation, there: Situation) -> float:
    """Return by how much votes stand out more there than here: noise does not grow with rows."""
    if route.name not in VOTES:
        return 1.0
    rows = there.n_labelled / here.n_labelled
    mu = mu_within(here.epsilon, here.delta)
    noise = mu_within(there.epsilon, there.delta) / mu if mu else there.epsilon / here.epsilon
    return rows * noise
