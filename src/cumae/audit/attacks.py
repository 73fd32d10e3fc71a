"""Attacks on predictors: worst neighbours, and where to ask.

The adversary of the definition may bring its own classifier. :class:`Spotter` is the worst one: a
shard votes 1 everywhere if one of its rows is marked, and 0 if not. All other rows are alike, so
that the votes are known for sure: all for 0 in one world, and all but one in the other. There are
few shards, and many answers with the noise that so many need: every answer is nearly a coin, the
difference is in each of them, and counting them adds it up.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.audit.game import Game, InProcess, Seen
from cumae.audit.runs import Attack, Claimed
from cumae.concepts import FiniteClass, Threshold
from cumae.predictors import EverlastingPredictor, QueryRelease

Table = NDArray[np.float64]
NOTHING, EVERYTHING = Threshold(None, above=True), Threshold(None, above=False)
ROWS_OF_A_SHARD = 16  # so that no shard is left with a single label


class Spotter(FiniteClass):
    """The worst classifier: labels everything 1 if a marked row (above 0.5) was learnt from.

    Examples
    --------
    >>> from cumae.audit.attacks import Spotter
    >>> Spotter().erm([[0.0], [1.0]], [0, 0]).predict([[0.0], [1.0]]).tolist()
    [1, 1]
    """

    def __init__(self) -> None:
        super().__init__([NOTHING, EVERYTHING])

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Threshold:
        del y, sample_weight
        return EVERYTHING if (np.asarray(X)[:, 0] > 0.5).any() else NOTHING


def rows_alike(count: int) -> tuple[Table, NDArray[np.int64]]:
    """Return rows of which none is marked, with labels in turn.

    Examples
    --------
    >>> from cumae.audit.attacks import rows_alike
    >>> rows_alike(4)[1].tolist()
    [0, 1, 0, 1]
    """
    return np.zeros((count, 1)), np.arange(count) % 2


def marked(rows: Table, place: int = 0) -> Table:
    """Return the neighbour in which one row is marked."""
    other = rows.copy()
    other[place] = 1.0
    return other


def ones(seen: Seen) -> int:
    """Return how many answers were 1."""
    return sum(int(answer) for answer in seen.answers if answer is not None)


def driver(predictor: Any, options: dict[str, Any]) -> InProcess:
    """Return a driver of a predictor that trains the worst classifier."""
    return InProcess(partial(predictor, Spotter(), **options))


def claimed(make: Any, rows: tuple[Table, Any]) -> Claimed:
    """Read the guarantee of the very thing that is attacked."""
    one = make()
    one.train(*rows)
    return Claimed.by(one.estimator.guarantee_)


def _everlasting(n_shards: int, growth: float, given: dict[str, Any]) -> dict[str, Any]:
    fixed = {"shard_size": ROWS_OF_A_SHARD, "growth": growth, "prior": False, "delta": 1e-6}
    return {**fixed, **given}


def everlasting_row(
    predictor: Any = EverlastingPredictor,
    *,
    n_shards: int = 8,
    growth: float = 16.0,
    **options: Any,
) -> Attack:
    """Return the attack on a training row of an everlasting predictor, within the first phase."""
    rows, labels = rows_alike(n_shards * ROWS_OF_A_SHARD)
    asked = np.zeros((int(growth * len(rows)), 1))

    def play(game: Game) -> float:
        game.train((rows, labels), (marked(rows), labels))
        return ones(game.ask(asked))

    make = partial(driver, predictor, _everlasting(n_shards, growth, options))
    return Attack("everlasting, a training row", make, play, claimed(make, (rows, labels)))


def everlasting_query(
    predictor: Any = EverlastingPredictor, *, n_shards: int = 4, growth: float = 8.0, **options: Any
) -> Attack:
    """Return the attack on a query, which becomes a row of the next phase."""
    rows, labels = rows_alike(n_shards * ROWS_OF_A_SHARD)
    asked = np.zeros((int(growth * len(rows)), 1))
    later = np.zeros((int(growth * len(asked)), 1))

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.ask(asked, marked(asked))
        return ones(game.ask(later))

    make = partial(driver, predictor, _everlasting(n_shards, growth, options))
    return Attack("everlasting, a query", make, play, claimed(make, (rows, labels)))


def release_row(
    predictor: Any = QueryRelease, *, n_shards: int = 8, max_queries: int = 2_000, **options: Any
) -> Attack:
    """Return the attack on a training row of a predictor with a limit of queries."""
    rows, labels = rows_alike(n_shards * ROWS_OF_A_SHARD)
    asked = np.zeros((max_queries, 1))

    def play(game: Game) -> float:
        game.train((rows, labels), (marked(rows), labels))
        return ones(game.ask(asked))

    settings = {"n_shards": n_shards, "max_queries": max_queries, "delta": 1e-6, **options}
    make = partial(driver, predictor, settings)
    return Attack("query release, a training row", make, play, claimed(make, (rows, labels)))
