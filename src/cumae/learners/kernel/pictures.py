"""Pictures of effects."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cumae.errors import InvalidParameter
from cumae.extras import PLOT, needing
from cumae.learners.kernel.effects import Effect

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAND = 2.0  # standard deviations
ACROSS = 3  # pictures in a row
MOST_BARS = 20  # categories in a picture
WIDTH, HEIGHT = 4.0, 3.2  # inches of a picture


def as_text(value: Any) -> str:
    """Return a value of a column as a reader writes it.

    Examples
    --------
    >>> from cumae.learners.kernel.pictures import as_text
    >>> as_text(39.5), as_text(None), as_text("nurse")
    ('39.5', 'missing', 'nurse')
    """
    if value is None:
        return "missing"
    if isinstance(value, dt.datetime):
        return value.date().isoformat()
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def draw(effects: list[Effect], classes: NDArray[Any], axes: Any = None) -> Figure:
    """Draw effects, each in axes of its own, and return the figure.

    Parameters
    ----------
    effects : list of Effect
        What to draw.
    classes : array
        The labels.
    axes : list of matplotlib axes, or None
        Where to draw; None for a new figure.
    """
    with needing(*PLOT):
        from matplotlib import pyplot as plt  # noqa: PLC0415
    if axes is None:
        down = max(1, math.ceil(len(effects) / ACROSS))
        across = max(1, min(ACROSS, len(effects)))
        size = (WIDTH * across, HEIGHT * down)
        figure, made = plt.subplots(down, across, figsize=size, squeeze=False, layout="constrained")
        places = made.ravel().tolist()
        for unused in places[len(effects) :]:
            unused.set_visible(False)
    else:
        places = np.ravel(axes).tolist()
        if not places or len(places) < len(effects):
            raise InvalidParameter(
                f"axes has {len(places)} axes for {len(effects)} effects; give one for each."
            )
        figure = places[0].figure
    for effect, place in zip(effects, places, strict=False):
        if len(effect.columns) == 2:
            _heat(effect, classes, place)
        elif isinstance(effect.values[0][0], float | dt.datetime) and len(effect.values[0]) > 3:
            _curve(effect, classes, place)
        else:
            _bars(effect, classes, place)
    return figure


def _by_class(effect: Effect, classes: NDArray[Any]) -> list[tuple[str, Any, Any]]:
    """Return a name, what is added, and its spread: of the log odds, or of each class's score."""
    if effect.log_odds.ndim == len(effect.columns):
        return [(f"log odds of {classes[1]}", effect.log_odds, effect.spread)]
    return [
        (f"score of {name}", effect.log_odds[..., place], effect.spread[..., place])
        for place, name in enumerate(classes)
    ]


def _curve(effect: Effect, classes: NDArray[Any], axes: Axes) -> None:
    values = effect.values[0]
    known = [place for place, value in enumerate(values) if value is not None]
    shown: Any = [values[place] for place in known]
    found = _by_class(effect, classes)
    for name, odds, spread in found:
        curve = axes.plot(shown, odds[known], label=name)[0]
        low, high = odds - BAND * spread, odds + BAND * spread
        axes.fill_between(shown, low[known], high[known], alpha=0.25, color=curve.get_color())
        if len(known) < len(values):
            axes.axhline(odds[-1], linestyle=":", color=curve.get_color(), label="missing")
    if len(found) > 1 or len(known) < len(values):
        axes.legend(fontsize="small")
    axes.set_xlabel(effect.columns[0])
    axes.set_ylabel("added to the " + ("score" if len(found) > 1 else found[0][0]))
    if isinstance(values[0], dt.datetime):
        from matplotlib import dates  # noqa: PLC0415 - only pictures need it

        locator = dates.AutoDateLocator(minticks=2, maxticks=5)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        shown_days = dates.ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(shown_days)


def _bars(effect: Effect, classes: NDArray[Any], axes: Axes) -> None:
    found = _by_class(effect, classes)
    size = np.abs(effect.log_odds.reshape(len(effect.values[0]), -1)).max(axis=1)
    places = np.sort(np.argsort(-size, kind="stable")[:MOST_BARS])
    for number, (name, odds, spread) in enumerate(found):
        heights = np.arange(len(places)) + 0.8 * (number + 0.5) / len(found) - 0.4
        axes.errorbar(
            odds[places], heights, xerr=BAND * spread[places], fmt="o", capsize=2, label=name
        )
    axes.axvline(0.0, color="grey", linewidth=0.5)
    axes.set_yticks(np.arange(len(places)), [as_text(effect.values[0][place]) for place in places])
    axes.set_ylabel(effect.columns[0])
    axes.set_xlabel("added to the " + ("score" if len(found) > 1 else found[0][0]))
    if len(found) > 1:
        axes.legend(fontsize="small")


def _heat(effect: Effect, classes: NDArray[Any], axes: Axes) -> None:
    """Draw a pair; with more than two classes, what it adds to the class that it moves most."""
    found = _by_class(effect, classes)
    name, odds, _ = max(found, key=lambda part: float(np.abs(part[1]).max()))
    most = float(np.abs(odds).max()) or 1.0
    image = axes.imshow(odds.T, origin="lower", aspect="auto", cmap="RdBu_r", vmin=-most, vmax=most)
    axes.figure.colorbar(image, ax=axes, label=f"added to the {name}")
    for axis, most_ticks, column, values in zip(
        (axes.xaxis, axes.yaxis), (3, 5), effect.columns, effect.values, strict=True
    ):  # texts below each other need less room
        count = min(len(values), most_ticks)
        ticks = np.unique(np.linspace(0, len(values) - 1, count).round().astype(int))
        axis.set_ticks(ticks, [as_text(values[tick]) for tick in ticks])
        axis.set_label_text(column)
