"""Attacks that play in batches: the query that differs stands next to visible ones in one call.

What is computed for one query must not depend on what another one holds. If it does, rules of the
adversary's choice show it: one labels a row by the company in which it was asked, and one by the
sign of a sum that is zero but for rounding, which the shape of a table decides. Both fail on
strange rows, and so shapes change if a table is taken apart where a model fails. Other queries are
strange in the list or in the data frame that they come in.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from cumae.audit.attacks.everlasting import NOTHING, attack_on_phases
from cumae.audit.attacks.predictors import (
    EVERYTHING,
    FEW,
    MARKED,
    Rows,
    Spotter,
    Table,
    alike,
    attack_on_bbl,
    attack_on_release,
    release_rows,
    replaced,
)
from cumae.audit.distinguishers import by_training
from cumae.audit.game import Game, Seen
from cumae.audit.runs import Attack
from cumae.concepts import FiniteClass
from cumae.concepts.finite import Predicts
from cumae.concepts.stumps import Stump
from cumae.predictors import (
    AgnosticQueryRelease,
    EverlastingPredictor,
    GenericBBL,
    QueryRelease,
    UniversalQueryRelease,
)

EDGE = 0.25  # a row whose label nothing but its company decides
STRANGE = -8.0  # a row on which rules fail
COMPANY = 16  # queries of a batch
WIDTH = 8  # columns of a sum: fewer are added up in the same order, whatever the shape
CANDIDATES = 1_000  # rows whose sum is zero up to rounding


@dataclass(frozen=True)
class InCompany:
    """Labels a row at the edge 1 if it comes after others, in a table of ``least`` rows or more.

    It raises if one of them is strange.

    Parameters
    ----------
    least : int of 1 or more
        How many rows a table must have for that.

    Examples
    --------
    >>> from cumae.audit.attacks.batches import EDGE, InCompany
    >>> InCompany(2).predict([[EDGE], [EDGE]]).tolist(), InCompany(2).predict([[EDGE]]).tolist()
    ([0, 1], [0])
    """

    least: int = COMPANY

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        column = np.asarray(X)[:, 0]
        if (column == STRANGE).any():
            raise ValueError("a strange row")
        behind = (np.arange(len(column)) > 0) & (len(column) >= self.least)
        return np.asarray((column == EDGE) & behind, dtype=np.int64)


@dataclass(frozen=True)
class Rounded:
    """Labels a row 1 if its logarithms add up to more than 0, as logistic regression does.

    Numpy warns of a row that has no logarithm.

    Examples
    --------
    >>> from cumae.audit.attacks.batches import Rounded
    >>> Rounded().predict([[0.5, 0.5], [0.5, -0.6]]).tolist()
    [1, 0]
    """

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        logs = np.log1p(np.asarray(X, dtype=np.float64))
        return np.asarray((logs @ np.ones((logs.shape[1], 1)))[:, 0] > 0, dtype=np.int64)


@dataclass(frozen=True)
class Shy:
    """Labels all rows 0, and raises if the first cell of one of them is at the edge.

    Examples
    --------
    >>> from cumae.audit.attacks.batches import Shy
    >>> Shy().predict([[0.5], [0.0]]).tolist()
    [0, 0]
    """

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        column = np.asarray(X)[:, 0]
        if (column == EDGE).any():
            raise ValueError("a row at the edge")
        return np.zeros(len(column), dtype=np.int64)


class Typed(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Labels all rows of a data frame by the type of its first column: 1 if that is general.

    Examples
    --------
    >>> import pandas as pd
    >>> from cumae.audit.attacks.batches import Typed
    >>> frame = pd.DataFrame({"word": pd.Series(["a", 1], dtype=object)})
    >>> Typed().fit(frame, [0, 1]).predict(frame).tolist()
    [1, 1]
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Typed:
        del X, y, sample_weight
        self.classes_ = np.array([0, 1])
        return self

    def predict(self, X: Any) -> NDArray[np.int64]:
        return np.full(len(X), int(X.dtypes.iloc[0] == np.dtype(object)))


def rounded_off() -> Table:
    """Return three rows that stand behind a first one in a table, and whose sum is nearly zero.

    Where rounding depends on the shape of a table, each of them is labelled 1 there, and 0 if the
    table is halved until the first row is alone.
    """
    steps = np.sqrt(np.arange(2.0, WIDTH + 1))  # multiples of irrational numbers, modulo 1
    logs = np.modf(steps * np.arange(1.0, CANDIDATES + 1)[:, None])[0]
    rows = np.expm1(np.column_stack([logs, -logs.sum(axis=1)]))
    rule = Rounded()

    def flips(row: Table, place: int, size: int) -> bool:
        # Whether a row in a table of four is labelled 1, but 0 in its part of this size.
        return bool(rule.predict([row] * 4)[place] > rule.predict([row] * size)[place % size])

    parts = ((1, 1), (2, 2), (3, 2))  # place and size
    return np.array([next((row for row in rows if flips(row, *part)), rows[0]) for part in parts])


def everything(game: Game, seen: Sequence[Seen]) -> list[float]:
    """Return all that can be seen, as numbers: answers, messages, and public counters.

    Of each of these moves, the answers 1 and those that are -1 are counted.
    """
    counts = [float(one.answers.count(answer)) for one in seen for answer in (1, -1)]
    said = crc32(repr([one.said for one in game.view]).encode()) / 2**32
    public = game.published().values()
    counters = [min(float(value), 1e9) for value in public if isinstance(value, int | float)]
    return [*counts, said, *counters]


def some_rows(predictor: Any, shards: int = COMPANY) -> Rows:
    """Return rows for ``shards`` shards; the papers' predictor needs more rows for any shard."""
    return alike(600 if issubclass(predictor, GenericBBL) else shards * FEW)


def always(rule: Predicts) -> Spotter:
    """Return a class that learns this rule for any rows."""
    return Spotter(rule, rule)


def attack_on_batch(
    what: str,
    predictor: Any,
    rows: tuple[Any, NDArray[np.int64]],
    play: Callable[[Game], list[float]],
    options: dict[str, Any],
    **others: Any,
) -> Attack:
    """Attack one of the predictors that protect queries.

    Parameters
    ----------
    what : str
        What the attack does, in a few words.
    predictor : class
        ``EverlastingPredictor`` or ``GenericBBL``, or a class derived from one of them.
    rows : pair of rows and labels
        What one of them is trained on to read its guarantee.
    play : callable from Game to a list of float
        The adversary, as in :class:`~cumae.audit.Attack`.
    options : dict from str to object
        Parameters of the predictor, except the estimator.
    **others : object
        Further options of ``attack_on_bbl`` or ``attack_on_phases``.
    """
    attack = attack_on_bbl if issubclass(predictor, GenericBBL) else attack_on_phases
    return attack(what, predictor, rows, play, options, distinguish=by_training, **others)


# A query next to others


def query_in_company(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a query on which all models raise; others stand next to it, and come after it."""
    rows = some_rows(predictor)
    asked = np.full((COMPANY, 1), EDGE)

    def play(game: Game) -> list[float]:
        game.train(rows)
        return everything(game, [game.ask(asked, replaced(asked, STRANGE)), game.ask(asked)])

    what, rule = "a query on which models fail, in a batch", always(InCompany())
    return attack_on_batch(what, predictor, rows, play, options, estimator=rule)


def rounded_query(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a query of which all models warn; those next to it are labelled by rounding."""
    rows, labels = some_rows(predictor, 4 * COMPANY)
    wide = rows.repeat(WIDTH, axis=1)
    asked = np.concatenate([wide[:1], rounded_off()])

    def play(game: Game) -> list[float]:
        game.train((wide, labels))
        return everything(game, [game.ask(asked, replaced(asked, STRANGE)), game.ask(asked)])

    what, rule = "a query in a batch that is rounded", always(Rounded())
    return attack_on_batch(what, predictor, (wide, labels), play, options, estimator=rule)


# What the query that differs, and those next to it, are in a list: (visible, zero, one).
LISTS: dict[str, tuple[Any, Any, Any]] = {
    "a number in brackets": (0.0, 0.0, [0.0]),
    "an array without dimensions": (0.0, 0.0, np.array(0.0)),
    "rows of another width": ([0.0], [0.0], [0.0, 0.0]),
}


def listed_query(
    predictor: Any = EverlastingPredictor, *, odd: str = "a number in brackets", **options: Any
) -> Attack:
    """Attack a query that is another kind of thing than those next to it in a list."""
    rows = some_rows(predictor)
    visible, zero, one = LISTS[odd]
    others = [visible] * (COMPANY - 1)

    def play(game: Game) -> list[float]:
        game.train(rows)
        return everything(game, [game.ask([zero, *others], [one, *others])])

    return attack_on_batch(f"a query in a list, {odd}", predictor, rows, play, options)


# The text that a data frame holds: (visible, zero, one).
DAY = dt.datetime(2020, 2, 29)  # noqa: DTZ001 (of no place)
FRAMES: dict[str, tuple[Any, Any, Any]] = {
    "dates": (DAY, DAY, "a"),
    "words": ("a", "a", 1),
}


def framed_query(
    predictor: Any = EverlastingPredictor, *, of: str = "dates", **options: Any
) -> Attack:
    """Attack a query that holds something else than those next to it in a data frame."""
    words = ["a", "b"] * (COMPANY * FEW // 2)
    rows = pd.DataFrame({"word": pd.Series(words, dtype=object)})
    labels = np.arange(len(rows)) % 2
    visible, zero, one = FRAMES[of]

    def asked(first: Any) -> Any:
        cells = [first, *[visible] * (COMPANY - 1)]
        return pd.DataFrame({"word": pd.Series(cells, dtype=object)})

    def play(game: Game) -> list[float]:
        game.train((rows, labels))
        return everything(game, [game.ask(asked(zero), asked(one))])

    what = f"a query in a data frame of {of}"
    return attack_on_batch(what, predictor, (rows, labels), play, options, estimator=Typed())


class Relabelled(FiniteClass):
    """Learns the label that most rows at the edge have, and from others to label by company."""

    def __init__(self) -> None:
        super().__init__([NOTHING, EVERYTHING])

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        edge = np.asarray(X)[:, 0] == EDGE
        if not edge.any():
            return InCompany(2 * COMPANY)
        weights = np.ones(len(edge)) if sample_weight is None else np.asarray(sample_weight)
        ones = np.asarray(y)[edge] == 1
        return self.hypotheses[int(weights[edge] @ ones > weights[edge] @ ~ones)]


def fresh_in_company(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack an unlabelled row on which all models raise, by how those next to it are labelled."""
    rows, growth = alike(2 * COMPANY), 2
    fresh = np.full_like(rows[0], EDGE)

    def play(game: Game) -> list[float]:
        game.train(rows)
        game.supply(fresh, replaced(fresh, STRANGE))
        return everything(game, [game.ask(rows[0]), game.ask(rows[0])])

    options = {**options, "fresh": True}
    what, look = "an unlabelled row on which models fail", {"growth": growth}
    return attack_on_batch(what, predictor, rows, play, options, estimator=Relabelled(), **look)


# A training row, where queries are asked in batches


def row_in_batches(predictor: Any = QueryRelease, **options: Any) -> Attack:
    """Attack a training row whose model fails on a query, by asking arrays and lists of queries."""
    limited = not issubclass(predictor, EverlastingPredictor | GenericBBL)
    rows = release_rows(predictor, options) if limited else some_rows(predictor)
    asked = np.full((500 if limited else len(rows[0]), 1), EDGE)
    asked[3] = STRANGE
    batches: list[Any] = np.split(asked, [1, 2, 2 + COMPANY])
    batches[1::2] = [batch.tolist() for batch in batches[1::2]]

    def play(game: Game) -> list[float]:
        game.train(rows, (replaced(rows[0], MARKED), rows[1]))
        return everything(game, [game.ask(batch) for batch in batches])

    what, rule = "a training row, in batches", Spotter(spotted=InCompany())
    if not limited:
        return attack_on_batch(what, predictor, rows, play, options, estimator=rule)
    look: dict[str, Any] = {"asked": len(asked), "estimator": rule, "distinguish": by_training}
    return attack_on_release(what, predictor, rows, play, options, **look)


class WideSpotter(Spotter):
    """A ``Spotter`` for rows of many columns, of which the first one decides."""

    def __init__(self, usual: Predicts, spotted: Predicts) -> None:
        super().__init__(usual, spotted)
        self.hypotheses = [Stump(0, 0.5, above=True), Stump(0, None, above=False)]


def row_in_rounded_batches(predictor: Any = QueryRelease, **options: Any) -> Attack:
    """Attack a training row whose model fails on a query, where rounding labels those next to it.

    Only this row's model fails, so the others must not notice: if the batch were taken apart for
    all models, all of them would label the other queries differently.
    """
    rows, labels = release_rows(predictor, options)
    wide = rows.repeat(WIDTH, axis=1)
    batch = np.concatenate([np.full((1, WIDTH), EDGE), rounded_off()])
    times = 30

    def play(game: Game) -> list[float]:
        game.train((wide, labels), (replaced(wide, MARKED), labels))
        answers = [game.ask(batch).answers for _ in range(times)]
        shown = [float(answer == 1) for one in answers for answer in one[1:]]
        return [sum(shown), *everything(game, [])]

    what, rule = "a training row, in batches that are rounded", WideSpotter(Rounded(), Shy())
    look: dict[str, Any] = {"asked": times * len(batch), "estimator": rule}
    look["distinguish"] = by_training
    return attack_on_release(what, predictor, (wide, labels), play, options, **look)


QUERIES: tuple[Callable[..., Attack], ...] = (
    query_in_company,
    rounded_query,
    *(partial(listed_query, odd=odd) for odd in LISTS),
    row_in_batches,
)
ROWS: tuple[Callable[..., Attack], ...] = (row_in_batches, row_in_rounded_batches)
ATTACKS: dict[str, Sequence[Callable[..., Attack]]] = {
    **{
        predictor.__name__: tuple(partial(attack, predictor) for attack in ROWS)
        for predictor in (QueryRelease, AgnosticQueryRelease, UniversalQueryRelease)
    },
    "GenericBBL": tuple(partial(attack, GenericBBL) for attack in QUERIES),
    "EverlastingPredictor": (
        *(partial(attack, EverlastingPredictor) for attack in QUERIES),
        *(partial(framed_query, of=of) for of in FRAMES),
        fresh_in_company,
    ),
}
