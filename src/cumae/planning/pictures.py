"""The cost of privacy for each route against rows or epsilon, as a table and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cumae.errors import InvalidParameter
from cumae.extras import PLOT, needing
from cumae.planning.forecasts import Expected, forecast
from cumae.planning.outlooks import outlook
from cumae.planning.routes import Route, Situation

POINTS = 7  # of a curve
WIDEST = 10.0  # how far it goes to both sides, as a factor
TITLES = {"rows": "private rows", "epsilon": "epsilon"}


@dataclass(frozen=True)
class Curves:
    """The forecast cost of privacy for each route, in points of accuracy.

    Parameters
    ----------
    against : {"rows", "epsilon"}
        What changes.
    values : tuple of float
        Its values.
    costs : mapping from str to a tuple of Expected
        For each route, by its name, what privacy costs at these values; None where it cannot run.
    """

    against: str
    values: tuple[float, ...]
    costs: Mapping[str, tuple[Any, ...]]

    @classmethod
    def of(
        cls,
        situation: Situation,
        routes: Sequence[Route],
        against: str,
    ) -> Curves:
        """Forecast for values around those of a situation, each by a plan of its own.

        Parameters
        ----------
        situation : Situation
            The public facts.
        routes : sequence of Route
            What is compared.
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
        costs = {route.name: tuple(_cost(route, one) for one in changed) for route in routes}
        return cls(against, values, costs)

    def __str__(self) -> str:
        """Return a table: a line for each value, a column for each route, costs in points."""
        names = list(self.costs)
        first = max(len(TITLES[self.against]), 12)
        lines = [" ".join([TITLES[self.against].rjust(first), *(name.rjust(11) for name in names)])]
        for place, value in enumerate(self.values):
            number = f"{value:,.0f}" if self.against == "rows" else f"{value:.2g}"
            costs = [self.costs[name][place] for name in names]
            cells = [_points(cost).rjust(11) for cost in costs]
            lines.append(" ".join([number.rjust(first), *cells]))
        return "\n".join(lines)

    def draw(self, axes: Any) -> None:
        """Draw a line for each route, and for the first one where eight of ten tables lay.

        Parameters
        ----------
        axes : matplotlib axes
            Where to draw.
        """
        for place, (route, costs) in enumerate(self.costs.items()):
            low, likely, high = (
                [np.nan if cost is None else 100 * getattr(cost, name) for cost in costs]
                for name in ("low", "likely", "high")
            )
            axes.plot(self.values, likely, marker="o", markersize=3, color=f"C{place}", label=route)
            if place == 0:
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


def _cost(route: Route, situation: Situation) -> Expected | None:
    """Return what privacy costs a route, as a plan says for this very situation."""
    seen = outlook(route, situation)
    return forecast(route, situation, seen.facts) if seen.can_run else None


def _points(cost: Expected | None) -> str:
    return "-" if cost is None else f"{round(100 * cost.likely, 1) + 0.0:.1f}"
