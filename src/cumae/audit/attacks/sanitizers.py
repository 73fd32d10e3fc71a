"""Attacks on sanitizers: tables in which one row decides as much as it can.

What a sanitizer releases is public, so the adversary needs no queries. Rows lie in a few places,
and one row that goes from one of them to another moves the odds of what is released.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cumae.audit.game import Game
from cumae.audit.results import Claimed
from cumae.audit.runs import Attack
from cumae.concepts import Thresholds
from cumae.sanitizers import (
    MultiplicativeWeights,
    Quantiles,
    Ranges,
    Sanitizer,
    SmallDatabase,
    StabilityHistogram,
    StableThresholds,
)


class Sanitized:
    """Drives a sanitizer: releases a table instead of its rows.

    Parameters
    ----------
    make : callable
        Returns a new sanitizer.

    Examples
    --------
    >>> from cumae.audit.attacks.sanitizers import Sanitized
    >>> from cumae.sanitizers import Quantiles
    >>> driver = Sanitized(lambda: Quantiles(50.0, bounds=(0, 1, 1), n_points=1))
    >>> driver.train([[1.0]] * 9, [0] * 9)
    >>> driver.published()
    array([[1.]])
    """

    def __init__(self, make: Callable[[], Sanitizer]) -> None:
        self.make = make

    def train(self, X: Any, y: Any) -> None:
        del y  # there are no labels
        self.released = self.make().sanitize(X)

    def ask(self, X: Any) -> list[None]:
        return [None] * len(X)

    def published(self) -> Any:
        return self.released


def a_row(
    make: Callable[[], Sanitizer], delta: float, rows: Sequence[float], other: float
) -> Attack:
    """Return the attack on a row that is elsewhere in world 1; it looks at the sum of all points.

    Parameters
    ----------
    make : callable
        Returns a new sanitizer.
    delta : float from 0 and below 1
        The delta at which the epsilon is claimed.
    rows : sequence of float
        The rows of world 0.
    other : float
        The value of the first row in world 1.
    """
    zero = np.reshape(rows, (-1, 1))
    one = zero.copy()
    one[0] = other
    labels = np.zeros(len(zero), dtype=np.int64)

    def play(game: Game) -> float:
        game.train((zero, labels), (one, labels))
        return float(np.sum(game.published()))

    sanitizer = make()
    claimed = Claimed.by(sanitizer.guarantee("one row", delta=delta))
    return Attack(f"{type(sanitizer).__name__}, a row", partial(Sanitized, make), play, claimed)


def quantiles(epsilon: float, delta: float, sanitizer: Any = Quantiles) -> Attack:
    """Return the attack on a row above the median of a table where a low median is rare.

    Parameters
    ----------
    epsilon : float above 0
        What the sanitizer may cost.
    delta : float
        The delta at which the cost is read; this sanitizer does not use it.
    sanitizer : class
        The class of the sanitizer that is attacked.
    """
    make = partial(sanitizer, epsilon, bounds=(0, 1), n_points=1)
    return a_row(make, delta, _lopsided(epsilon, 0.5, 1.0), 0.0)


def stable_thresholds(epsilon: float, delta: float, sanitizer: Any = StableThresholds) -> Attack:
    """Return the attack on a row above a median, of places as far apart as floats can be.

    There are too few rows to name a bin, so that only the half of epsilon with which quantiles are
    drawn is within reach.

    Parameters
    ----------
    epsilon, delta : float
        What the sanitizer may cost.
    sanitizer : class
        The class of the sanitizer that is attacked.
    """
    make = partial(sanitizer, epsilon, delta, n_points=1)
    return a_row(make, delta, _lopsided(epsilon / 2, 0.0, 1e300), -1e300)


def stability_histogram(
    epsilon: float, delta: float, sanitizer: Any = StabilityHistogram
) -> Attack:
    """Return the attack on a row of two values, of which one just reaches the threshold.

    The row leaves the value that reaches it for the other one, so that both odds change.

    Parameters
    ----------
    epsilon, delta : float
        What the sanitizer may cost.
    sanitizer : class
        The class of the sanitizer that is attacked.
    """
    least = sanitizer(epsilon, delta).threshold
    rows = [-1.0] * least + [1.0] * (least - 1)
    return a_row(partial(sanitizer, epsilon, delta), delta, rows, 1.0)


def ranges(epsilon: float, delta: float, sanitizer: Any = Ranges) -> Attack:
    """Return the attack on a row that decides in which of two neighbouring steps a quartile lies.

    The median takes half of epsilon, so that the other half is within reach.

    Parameters
    ----------
    epsilon : float above 0
        What the sanitizer may cost.
    delta : float
        The delta at which the cost is read; this sanitizer does not use it.
    sanitizer : class
        The class of the sanitizer that is attacked.
    """
    count = 2 + round(24 / epsilon)  # with fewer, a quartile lies anywhere
    low, high = 1.0, 1.05
    rows = [low] * (2 * count + 1) + [high] * (6 * count - 1)
    return a_row(partial(sanitizer, epsilon, 1), delta, rows, high)


def small_database(epsilon: float, delta: float, sanitizer: Any = SmallDatabase) -> Attack:
    """Return the attack on a database of one point, which shows the place that has more rows.

    Parameters
    ----------
    epsilon : float above 0
        What the sanitizer may cost.
    delta : float
        The delta at which the cost is read; this sanitizer does not use it.
    sanitizer : class
        The class of the sanitizer that is attacked.
    """
    make = partial(sanitizer, Thresholds(), epsilon, (0.0, 1.0), size=1)
    rows = [0.0] * (4 + int(1 / epsilon)) + [1.0] * 4
    return a_row(make, delta, rows, 1.0)


def multiplicative_weights(
    epsilon: float, delta: float, sanitizer: Any = MultiplicativeWeights
) -> Attack:
    """Return the attack on the weights after the first of two rounds, read off many points.

    What the second round measures is not released, so that half of the claim is out of reach.

    Parameters
    ----------
    epsilon : float above 0
        What the sanitizer may cost.
    delta : float
        The delta at which the cost is read; this sanitizer does not use it.
    sanitizer : class
        The class of the sanitizer that is attacked.
    """
    make = partial(sanitizer, Thresholds(), epsilon, (0.0, 1.0), rounds=2, n_points=10_000)
    return a_row(make, delta, [0.0, 1.0] * 40, 1.0)


def _lopsided(epsilon: float, most: float, above: float) -> list[float]:
    """Return rows of which one half is at ``above``, the first row among them, and one at ``most``.

    No row is below ``most``, so that a released median below it is rare. Its odds grow by a factor
    of exp(epsilon) when the first row moves below. With more rows the ratio of the chances comes
    closer to that factor, but both chances shrink; these numbers are a compromise, in which the
    larger chance is a third to a half.
    """
    count = 2 * (1 + round(0.7 / epsilon))
    return [above] * count + [most] * count


ATTACKS: dict[str, Sequence[Callable[..., Attack]]] = {
    "Quantiles": (quantiles,),
    "Ranges": (ranges,),
    "StabilityHistogram": (stability_histogram,),
    "StableThresholds": (stable_thresholds,),
    "SmallDatabase": (small_database,),
    "MultiplicativeWeights": (multiplicative_weights,),
}
