"""Pictures of effects."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats
from cumae.errors import InvalidParameter
from cumae.extras import PLOT, needing
from cumae.learners.kernel.shown.effects import Effect

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAND = 2.0  # standard deviations
ACROSS = 3  # pictures in a row
MOST_BARS = 20  # categories in a picture
WIDTH, HEIGHT, HEAD = 4.0, 3.2, 0.5  # inches of a picture, and of the title above all
MOST_TICKS, FEW_TICKS = 5, 3  # on an axis, and of long numbers
SHORT = 5  # letters of a number that is not long
ROOM = 0.2  # of an axis, for the text of missing cells
LETTERS = 24  # of categories that fit side by side below a picture
MISSING_SHARE = 0.08  # of a heat map, for missing cells
THOUSAND = 1_000


def as_text(value: Any) -> str:
    """Return a value of a column as a reader writes it.

    Examples
    --------
    >>> from cumae.learners.kernel.shown.pictures import as_text
    >>> as_text(39.5), as_text(None), as_text("nurse")
    ('39.5', 'missing', 'nurse')
    """
    if value is None:
        return "missing"
    if isinstance(value, dt.datetime):
        return value.date().isoformat()
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def draw(
    effects: list[Effect],
    classes: NDArray[Any],
    axes: Any = None,
    titles: list[str] | None = None,
    of: str | None = None,
) -> Figure:
    """Draw effects, each in axes of its own, and return the figure.

    A new figure has a title, a title for each effect, and one label for what all of them show. In
    heat maps, cells whose band holds zero are hatched, and lines in the bar of colours are the ends
    of the middle one of all bands.

    Parameters
    ----------
    effects : list of Effect
        What to draw.
    classes : array
        The labels.
    axes : list of matplotlib axes, or None
        Where to draw; None for a new figure.
    titles : list of str, or None
        A title for each effect; None for the names of its columns.
    of : str, or None
        What effects are added to; None for log odds, or scores of classes.
    """
    with needing(*PLOT):
        from matplotlib import pyplot as plt  # noqa: PLC0415
    names = titles or [" and ".join(effect.columns) for effect in effects]
    shown = f"log odds of {classes[1]}" if len(classes) == 2 else "score of a class"
    shown = shown if of is None else of
    if axes is None:
        down = max(1, math.ceil(len(effects) / ACROSS))
        across = max(1, min(ACROSS, len(effects)))
        size = (WIDTH * across, HEIGHT * down + HEAD)
        figure, made = plt.subplots(down, across, figsize=size, squeeze=False, layout="constrained")
        places = made.ravel().tolist()
        for unused in places[len(effects) :]:
            unused.set_visible(False)
        figure.suptitle(_heading(effects, shown))
        figure.supylabel(f"added to the {shown}")
    else:
        places = np.ravel(axes).tolist()
        if not places or len(places) < len(effects):
            raise InvalidParameter(
                f"axes has {len(places)} axes for {len(effects)} effects; give one for each."
            )
        figure = places[0].figure
    for effect, title, place in zip(effects, names, places, strict=False):
        place.set_title(title)
        place.tick_params(labelsize="small")
        _one(effect, classes, place)
        if axes is not None and len(effect.columns) == 1:
            place.set_ylabel(f"added to the {shown}")
    if axes is None and len(classes) > 2:
        handles, names = places[0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    return figure


def _heading(effects: list[Effect], shown: str) -> str:
    """Return the title of a figure, which says what bands and hatches are."""
    pairs = any(len(effect.columns) == 2 for effect in effects)
    hatched = "; hatched: the band holds zero" if pairs else ""
    return f"What columns add to the {shown} (bands: {BAND:g} standard deviations{hatched})"


def _one(effect: Effect, classes: NDArray[Any], axes: Axes) -> None:
    if len(effect.columns) == 2:
        _heat(effect, classes, axes)
    elif _is_ordered(effect.values[0]) and len(effect.values[0]) > 3:
        _curve(effect, classes, axes)
    else:
        _points(effect, classes, axes)
    if len(effect.columns) == 1 and len(classes) == 2 and axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")


def _is_ordered(values: tuple[Any, ...]) -> bool:
    return isinstance(values[0], float | dt.datetime)


def _by_class(effect: Effect, classes: NDArray[Any]) -> list[tuple[str, Any, Any]]:
    """Return a name, what is added, and its spread: of the log odds, or of each class's score."""
    if effect.log_odds.ndim == len(effect.columns):
        return [("", effect.log_odds, effect.spread)]
    return [
        (str(name), effect.log_odds[..., place], effect.spread[..., place])
        for place, name in enumerate(classes)
    ]


def _curve(effect: Effect, classes: NDArray[Any], axes: Axes) -> None:
    values = effect.values[0]
    known = [place for place, value in enumerate(values) if value is not None]
    shown: Any = [values[place] for place in known]
    found = _by_class(effect, classes)
    for name, odds, spread in found:
        curve = axes.plot(shown, odds[known], label=name or None)[0]
        low, high = odds - BAND * spread, odds + BAND * spread
        axes.fill_between(shown, low[known], high[known], alpha=0.25, color=curve.get_color())
        if len(known) < len(values):
            label = "missing" if len(found) == 1 else None
            axes.axhline(odds[-1], linestyle=":", color=curve.get_color(), label=label)
            axes.axhspan(low[-1], high[-1], alpha=0.1, color=curve.get_color())
    if isinstance(values[0], dt.datetime):
        from matplotlib import dates  # noqa: PLC0415 - only pictures need it

        locator = dates.AutoDateLocator(minticks=2, maxticks=5)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        shown_days = dates.ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(shown_days)
    else:
        ticks = _round_ticks(min(shown), max(shown))
        axes.set_xticks(ticks, [_round_text(tick) for tick in ticks])


def _points(effect: Effect, classes: NDArray[Any], axes: Axes) -> None:
    """Draw categories beside each other, each a point with its band."""
    found = _by_class(effect, classes)
    size = np.abs(effect.log_odds.reshape(len(effect.values[0]), -1)).max(axis=1)
    places = np.sort(np.argsort(-size, kind="stable")[:MOST_BARS])
    for number, (name, odds, spread) in enumerate(found):
        across = np.arange(len(places)) + 0.6 * ((number + 0.5) / len(found) - 0.5)
        band = BAND * spread[places]
        axes.errorbar(across, odds[places], yerr=band, fmt="o", capsize=2, label=name or None)
    axes.axhline(0.0, color="grey", linewidth=0.5)
    texts = [as_text(effect.values[0][place]) for place in places]
    crowded = sum(map(len, texts)) > LETTERS
    axes.set_xticks(np.arange(len(places)), texts, rotation=90 if crowded else 0)
    axes.set_xlim(-0.5, len(places) - 0.5)


def _heat(effect: Effect, classes: NDArray[Any], axes: Axes) -> None:
    """Draw a pair; with more than two classes, what it adds to the class that it moves most."""
    found = _by_class(effect, classes)
    name, odds, spread = max(found, key=lambda part: float(np.abs(part[1]).max()))
    if name:
        axes.set_title(f"{axes.get_title()}, score of {name}")
    most = float(np.abs(odds).max()) or 1.0
    sides = [_edges(values) for values in effect.values]
    image = axes.pcolormesh(*sides, odds.T, cmap="RdBu_r", vmin=-most, vmax=most)
    _hatch(np.abs(odds) <= BAND * spread, sides, axes)  # the band holds zero
    bar = axes.figure.colorbar(image, ax=axes)
    band = BAND * float(np.median(spread))
    bar.ax.axhline(band, color="black", linestyle=":", linewidth=1)
    bar.ax.axhline(-band, color="black", linestyle=":", linewidth=1)
    axes.set_xlabel(effect.columns[0])
    axes.set_ylabel(effect.columns[1])
    for axis, values, edges in zip((axes.xaxis, axes.yaxis), effect.values, sides, strict=True):
        axis.set_ticks(*_ticks(values, edges))


def _hatch(cells: NDArray[np.bool_], sides: list[Floats], axes: Axes) -> None:
    """Hatch some cells of a heat map."""
    from matplotlib.patches import Rectangle  # noqa: PLC0415 - only pictures need it

    look: dict[str, Any] = {"fill": False, "hatch": "///", "linewidth": 0, "edgecolor": "grey"}
    (x, y), (wide, high) = sides, map(np.diff, sides)
    for i, j in np.argwhere(cells):
        axes.add_patch(Rectangle((x[i], y[j]), wide[i], high[j], **look))


def _edges(values: tuple[Any, ...]) -> Floats:
    """Return where cells of a heat map end: by value, or one after the other for categories.

    A missing cell has a place of its own beyond the largest value.
    """
    known = [value for value in values if value is not None]
    if not _is_ordered(values) or len(known) < 2:
        return np.arange(len(values) + 1, dtype=np.float64) - 0.5
    at = np.array([_number(value) for value in known])
    middle = (at[1:] + at[:-1]) / 2
    found = [2 * at[0] - middle[0], *middle, 2 * at[-1] - middle[-1]]
    if len(known) < len(values):
        found.append(found[-1] + MISSING_SHARE * (found[-1] - found[0]))
    return np.array(found)


def _ticks(values: tuple[Any, ...], edges: Floats) -> tuple[list[float], list[str]]:
    """Return round places of an axis with their texts; all categories, or some of many."""
    known = [value for value in values if value is not None]
    if not _is_ordered(values) or len(known) < 2:
        step = -(-len(values) // MOST_TICKS)
        places = range(0, len(values), step)
        return [float(place) for place in places], [as_text(values[place]) for place in places]
    ends = edges[: len(known) + 1]
    if len(known) <= MOST_TICKS:
        found, texts = [_number(value) for value in known], [as_text(value) for value in known]
    elif isinstance(known[0], dt.datetime):
        from matplotlib import dates  # noqa: PLC0415 - only pictures need it

        locator = dates.AutoDateLocator(minticks=2, maxticks=4)  # type: ignore[no-untyped-call]
        days = dates.num2date([ends[0], ends[-1]])  # type: ignore[no-untyped-call]
        ticks = locator.tick_values(*days)  # type: ignore[no-untyped-call]
        found = [float(tick) for tick in ticks if ends[0] <= tick <= ends[-1]]
        texts = [as_text(day) for day in dates.num2date(found)]  # type: ignore[no-untyped-call]
    else:
        found = _round_ticks(float(ends[0]), float(ends[-1]))
        texts = [_round_text(tick) for tick in found]
    if len(known) < len(values):
        missing = float(edges[-2:].mean())
        free = missing - ROOM * (edges[-1] - edges[0])  # up to where its text leaves room
        kept = [place for place, tick in enumerate(found) if tick <= free]
        found = [*(found[place] for place in kept), missing]
        texts = [*(texts[place] for place in kept), as_text(None)]
    return found, texts


def _number(value: Any) -> float:
    """Return where a number or a day lies on an axis."""
    if isinstance(value, float):
        return value
    from matplotlib import dates  # noqa: PLC0415 - only pictures need it

    return float(dates.date2num(value))  # type: ignore[no-untyped-call]


def _round_ticks(low: float, high: float) -> list[float]:
    """Return a few round numbers between two ends."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - only pictures need it

    widest = max(len(_round_text(end)) for end in (low, high))
    most = MOST_TICKS if widest <= SHORT else FEW_TICKS
    found = MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(low, high)
    return [float(tick) for tick in found if low <= tick <= high]


def _round_text(value: float) -> str:
    """Return a round number as a reader writes it."""
    return f"{value:,.0f}" if abs(value) >= THOUSAND else f"{value:.4g}"
