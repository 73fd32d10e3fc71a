"""Readings of a published model: effects as values, as text and as pictures."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Floats
from cumae.data import Columns
from cumae.errors import InvalidParameter
from cumae.learners.kernel.model import KernelModel
from cumae.learners.kernel.shown.effects import Effect, constant_of, effects_of
from cumae.learners.kernel.shown.pictures import as_text, draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_LINES = 20  # effects in a text
MOST_VALUES = 5  # of a column of numbers in a text
MOST_CATEGORIES = 8
CURVES_DRAWN, PAIRS_DRAWN = 6, 3


class Readable:
    """A fitted model whose effects can be looked at, from the released numbers alone."""

    model_: Any
    columns_: Columns
    classes_: NDArray[Any]

    def published(self) -> KernelModel:
        """Return all that predictions are computed from.

        Raises
        ------
        InvalidParameter
            If there were so few rows that trees were fitted in its place.
        """
        found: KernelModel | None = getattr(self, "model_", None)
        if found is None:  # only then: each answer of an oracle comes by here
            check_is_fitted(self, "model_")
            raise InvalidParameter(
                "there were so few rows that trees were fitted, which have neither effects nor "
                "uncertainty; print the model to see them."
            )
        return found

    @property
    def effects_(self) -> list[Effect]:
        """The effects of each column and of the strongest pairs of columns on the log odds.

        The strongest come first. They are computed from the published model, at no cost.
        """
        return effects_of(self.published(), self.columns_)

    def plot(self, columns: Any = None, axes: Any = None) -> Figure:
        """Draw effects: curves with bands of two standard deviations, and heat maps of pairs.

        In a heat map, cells whose band of two standard deviations holds zero are hatched.

        Parameters
        ----------
        columns : list of names, or None
            Which effects to draw: a name, or a place if columns have no names, for what a column
            adds, and a pair of these for what both add beyond. None for the strongest.
        axes : list of matplotlib axes, or None
            Where to draw, one for each effect; None for a new figure.

        Returns
        -------
        matplotlib figure
            It is drawn with pyplot; close it when it is no longer needed.

        Raises
        ------
        MissingPackage
            If matplotlib is not there.
        InvalidParameter
            If there is no such effect, or if there are fewer axes than effects.
        """
        effects = self.effects_
        chosen = _strongest(effects) if columns is None else _chosen(effects, columns)
        titles = [self._title(effect) for effect in chosen]
        return draw(chosen, self._drawn_classes(), axes, titles, self._drawn_as())

    def _drawn_classes(self) -> NDArray[Any]:
        return self.classes_

    def _drawn_as(self) -> str | None:
        """Return what effects are added to; None for log odds and scores."""
        return None

    def __str__(self) -> str:
        if not hasattr(self, "model_"):
            return repr(self)
        effects = self.effects_
        lines = [f"{self._heading()} on average (+/-: two standard deviations); to this add"]
        lines += [
            f"  {self._title(effect)}: {self._line(effect)}" for effect in effects[:MOST_LINES]
        ]
        if len(effects) > MOST_LINES:
            lines.append(f"  and {len(effects) - MOST_LINES} weaker effects: see effects_")
        return "\n".join(lines)

    def _heading(self) -> str:
        """Return what effects are added to, with its constant."""
        constant, spread = constant_of(self.published(), self.columns_)
        middle = [_sure(*pair) for pair in zip(constant, spread, strict=True)]
        if len(middle) == 1:
            return f"log odds of {self.classes_[1]}: {middle[0]}"
        named = (f"{c} {m}" for c, m in zip(self.classes_, middle, strict=True))
        return f"scores: {', '.join(named)}"

    def _title(self, effect: Effect) -> str:
        if self.columns_.original_names is not None:
            return " and ".join(effect.columns)
        return " and ".join(f"column {name}" for name in effect.columns)

    def _line(self, effect: Effect) -> str:
        if effect.log_odds.ndim > len(effect.columns):
            parts = zip(self.classes_, np.moveaxis(effect.log_odds, -1, 0), strict=True)
            return "; ".join(f"{name} {_ends(effect, odds)}" for name, odds in parts)
        if len(effect.columns) == 2:
            return _ends(effect, effect.log_odds)
        return _points(effect)


def _strongest(effects: list[Effect]) -> list[Effect]:
    singles = [effect for effect in effects if len(effect.columns) == 1]
    pairs = [effect for effect in effects if len(effect.columns) == 2]
    return singles[:CURVES_DRAWN] + pairs[:PAIRS_DRAWN]


def _chosen(effects: list[Effect], columns: Any) -> list[Effect]:
    """Return the effects of some columns and pairs of columns, in the order given."""
    known = {frozenset(effect.columns): effect for effect in effects}
    found = []
    for wanted in [columns] if isinstance(columns, str | int) else columns:
        names = wanted if isinstance(wanted, tuple | list) else (wanted,)
        effect = known.get(frozenset(str(name) for name in names))
        if effect is None:
            raise InvalidParameter(
                f"columns has {wanted!r}, for which there is no effect; effects_ lists all columns "
                "and the strongest pairs."
            )
        found.append(effect)
    return found


def _points(effect: Effect) -> str:
    """Return what some values of a column add."""
    values = effect.values[0]
    places = [place for place, value in enumerate(values) if value is not None]
    ordered = isinstance(values[0], float | dt.datetime)
    if ordered and len(places) > MOST_VALUES:
        places = np.linspace(0, len(places) - 1, MOST_VALUES).round().astype(int).tolist()
    elif not ordered and len(places) > MOST_CATEGORIES:
        places.sort(key=lambda place: -abs(effect.log_odds[place]))
        places = places[:MOST_CATEGORIES]
    if values[-1] is None:
        places.append(len(values) - 1)
    rest = "" if ordered or len(places) >= len(values) else ", and others"
    odds, spread = effect.log_odds, effect.spread
    parts = (f"{_sure(odds[place], spread[place])} at {as_text(values[place])}" for place in places)
    return ", ".join(parts) + rest


def _ends(effect: Effect, odds: Floats) -> str:
    """Return where an effect is lowest and highest."""

    def at(place: int) -> str:
        spots = zip(effect.values, np.unravel_index(place, odds.shape), strict=True)
        return " and ".join(as_text(values[spot]) for values, spot in spots)

    low, high = int(odds.argmin()), int(odds.argmax())
    return f"{odds.flat[low]:+.2g} at {at(low)} to {odds.flat[high]:+.2g} at {at(high)}"


def _sure(value: float, spread: float) -> str:
    return f"{value:+.2f} +/- {2 * spread:.2f}"
