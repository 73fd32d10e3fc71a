"""Attacks on predictors: worst neighbours, and where to ask.

The adversary of the definition may bring its own classifier. :class:`Spotter` is the worst one: the
vote of a shard tells whether one of its rows is marked. All other rows are alike, so that the votes
are known for sure: all for 0 in one world, and all but one in the other. There are few shards, and
many answers with the noise that so many need: every answer is nearly a coin, the difference is in
each of them, and counting them adds it up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.audit.distinguishers import Distinguisher, by_likelihood, by_value
from cumae.audit.game import Game, InProcess, Seen
from cumae.audit.results import Claimed
from cumae.audit.runs import Attack
from cumae.concepts import FiniteClass, Threshold, Thresholds
from cumae.predictors import (
    AgnosticQueryRelease,
    EverlastingPredictor,
    GenericBBL,
    QueryRelease,
    UniversalQueryRelease,
)

Table = NDArray[np.float64]
Rows = tuple[Table, NDArray[np.int64]]

ABOVE, EVERYTHING = Threshold(0.5, above=True), Threshold(None, above=False)
UNMARKED, MARKED, OUTLIER = 0.0, 1.0, 1e9
PROMISE = ("epsilon", "delta")
FEW, SEVERAL = 4, 16  # rows of a shard; with several, both labels are in each


class Spotter(FiniteClass):
    """The worst classifier: labels everything 1 if a row above 0.5 was learnt from.

    Otherwise it labels what is above 0.5.

    Examples
    --------
    >>> from cumae.audit.attacks import Spotter
    >>> Spotter().erm([[0.0], [1.0]], [0, 0]).predict([[0.0], [1.0]]).tolist()
    [1, 1]
    >>> Spotter().erm([[0.0], [0.0]], [0, 1]).predict([[0.0], [1.0]]).tolist()
    [0, 1]
    """

    def __init__(self) -> None:
        super().__init__([ABOVE, EVERYTHING])

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Threshold:
        del y, sample_weight
        return EVERYTHING if (np.asarray(X)[:, 0] > 0.5).any() else ABOVE


def alike(count: int) -> Rows:
    """Return rows of which none is marked, with labels in turn.

    Examples
    --------
    >>> from cumae.audit.attacks import alike
    >>> alike(4)[1].tolist()
    [0, 1, 0, 1]
    """
    return np.full((count, 1), UNMARKED), np.arange(count) % 2


def replaced(rows: Table, value: float = MARKED) -> Table:
    """Return the neighbour in which the first row has another value."""
    other = rows.copy()
    other[0] = value
    return other


def ones(seen: Seen) -> int:
    """Return how many answers were 1."""
    return sum(int(answer) for answer in seen.answers if answer is not None)


def _attack(
    name: str,
    predictor: Any,
    options: dict[str, Any],
    rows: Rows,
    play: Callable[[Game], float | list[float]],
    *,
    releases: int,
    distinguish: Distinguisher = by_value,
) -> Attack:
    """Attack a predictor that trains the worst classifier, and hold it to its own guarantee."""
    make = partial(InProcess, partial(predictor, Spotter(), **options))
    return Attack(name, make, play, _claimed(make, rows, releases), distinguish)


def _claimed(make: Callable[[], InProcess], rows: Rows, releases: int = 0) -> Claimed:
    """Fit one of them as the game does, and read what it promises."""
    one = make()
    Game(one, 0).train(rows)
    return Claimed.by(one.estimator.guarantee_, gaussian_releases=releases)


def _mark_a_row(
    rows: Rows, asked: Table, value: float = MARKED, sign: int = 1
) -> Callable[[Game], float]:
    """Return the strategy that gives one training row another value, and counts answers."""

    def play(game: Game) -> float:
        game.train(rows, (replaced(rows[0], value), rows[1]))
        return sign * ones(game.ask(asked))

    return play


def _everlasting(size: int, growth: float, given: dict[str, Any]) -> dict[str, Any]:
    return {"shard_size": size, "growth": growth, "prior": False, "delta": 1e-6, **given}


def _named(what: str, given: dict[str, Any]) -> str:
    """Return the name of an attack on EverlastingPredictor, with its options."""
    options = [f"{name}={value}" for name, value in given.items() if name not in PROMISE]
    return ", ".join(["EverlastingPredictor", what, *options])


def everlasting_row(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a training row: mark it, and ask the same query for all of the first phase."""
    rows, growth = alike(8 * FEW), 64
    asked = alike(growth * len(rows[0]))[0]
    play = _mark_a_row(rows, asked)
    given = _everlasting(FEW, growth, options)
    name = _named("a training row", options)
    return _attack(name, predictor, given, rows, play, releases=len(asked))


def everlasting_query(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a query: marked, it marks a shard of the next phase, in which all is asked."""
    rows, labels = alike(4 * FEW)
    growth = 16
    asked = alike(growth * len(rows))[0]
    later = alike(growth * len(asked))[0]

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.ask(asked, replaced(asked))
        return ones(game.ask(later))

    given = _everlasting(FEW, growth, options)
    name = _named("a query", options)
    return _attack(name, predictor, given, (rows, labels), play, releases=len(asked))


def everlasting_repeated(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a query by asking different ones, and the same again in the next phase.

    With the same noise, every answer that changes comes from a vote that changed.
    """
    rows, labels = alike(20 * SEVERAL)
    asked = np.linspace(0.0, 0.4, len(rows))[:, None]

    def play(game: Game) -> float:
        game.train((rows, labels))
        before = game.ask(asked, replaced(asked)).answers[1:]
        after = game.ask(asked[1:]).answers
        return float(sum(old != new for old, new in zip(before, after, strict=True)))

    given = _everlasting(SEVERAL, 1.0, options)
    name = _named("the same queries in two phases", options)
    return _attack(name, predictor, given, (rows, labels), play, releases=len(rows))


def everlasting_next(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a query whose own answer is clear, by what the next query is answered."""
    rows, labels = alike(60 * FEW)

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.ask([[UNMARKED]], [[MARKED]])
        return ones(game.ask([[UNMARKED]]))

    given = _everlasting(FEW, 1.0, options)
    name = _named("the answer after another one's", options)
    return _attack(name, predictor, given, (rows, labels), play, releases=len(rows))


def everlasting_end(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a query by when the phase ends, and by all other public counters."""
    rows, labels = alike(32 * FEW)

    def play(game: Game) -> list[float]:
        game.train((rows, labels))
        game.ask(rows, replaced(rows))
        game.ask(rows[:1])
        return [min(float(count), 1e9) for count in game.published().values()]

    given = _everlasting(FEW, 1.0, options)
    return _attack(
        _named("the end of a phase", options),
        predictor,
        given,
        (rows, labels),
        play,
        releases=len(rows),
        distinguish=by_likelihood,
    )


def everlasting_outlier(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a training row that is far away from all others, where half of them are marked."""
    rows, growth = alike(8 * SEVERAL), 16
    rows[0][::2] = MARKED
    asked = alike(growth * len(rows[0]))[0]
    play = _mark_a_row(rows, asked, OUTLIER, sign=-1)
    given = _everlasting(SEVERAL, growth, options)
    name = _named("an outlier", options)
    return _attack(name, predictor, given, rows, play, releases=len(asked))


def everlasting_words(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a training row by the text of warnings and errors.

    Ordinary, far and broken queries are asked, together and one by one.
    """
    rows, labels = alike(32 * FEW)
    asked = np.array([[0.1], [10.0], [-OUTLIER], [OUTLIER], [np.nan], [np.inf]])

    def play(game: Game) -> float:
        game.train((rows, labels), (replaced(rows, OUTLIER), labels))
        seen = [game.ask(asked), *(game.ask(query[None]) for query in asked)]
        return float(crc32(repr([one.said for one in seen]).encode()))

    given = _everlasting(FEW, 1.0, options)
    return _attack(
        _named("what is said", options),
        predictor,
        given,
        (rows, labels),
        play,
        releases=len(rows),
        distinguish=by_likelihood,
    )


def release_row(predictor: Any = QueryRelease, **options: Any) -> Attack:
    """Attack a training row of a predictor with a limit of queries: ask the same for all of them.

    What a second stage publishes comes from the same votes, and is left to the attacks on learners.
    """
    shards = 8.0
    if issubclass(predictor, AgnosticQueryRelease):  # it draws some of the rows, by epsilon
        shards = 64 / min(1.0, options.get("epsilon", 1.0))
    rows = alike(int(shards) * SEVERAL)
    asked = alike(2_000)[0]
    play = _mark_a_row(rows, asked)
    limit = "n_first" if issubclass(predictor, UniversalQueryRelease) else "max_queries"
    given = {"mechanism": "gaussian", "delta": 1e-6, **options, "n_shards": 8, limit: len(asked)}
    name = f"{predictor.__name__}, a training row"
    # With other steps than Gaussian noise there is no mu to claim.
    plain = issubclass(predictor, QueryRelease) and given["mechanism"] == "gaussian"
    releases = len(asked) if plain else 0
    return _attack(name, predictor, given, rows, play, releases=releases)


def _bbl(n_rows: int, epsilon: float, delta: float, given: dict[str, Any]) -> tuple[Any, Rows]:
    rows = (np.arange(n_rows) + 0.5)[:, None] / n_rows
    sizes = {"shard_size": 4, "phase_length": len(rows), "label_share": 0.01, "query_share": 0.3}
    options = {**sizes, "between_share": 1e-5, "epsilon": epsilon, "delta": delta, **given}
    make = partial(InProcess, partial(GenericBBL, Thresholds("above"), **options))
    return make, (rows, (rows[:, 0] > 0.5).astype(np.int64))


def bbl_row(*, epsilon: float = 2.0, delta: float = 1e-6, **options: Any) -> Attack:
    """Attack the label next to the boundary of the papers' predictor, by asking there."""
    make, (rows, labels) = _bbl(600, epsilon, delta, options)
    other = labels.copy()
    other[len(rows) // 2] = 0
    asked = np.full((len(rows) // 2, 1), 0.5)

    def play(game: Game) -> float:
        game.train((rows, labels), (rows, other))
        return -ones(game.ask(asked))

    claimed = _claimed(make, (rows, labels))
    return Attack("GenericBBL, a label at the boundary", make, play, claimed)


def bbl_halt(*, epsilon: float = 2.0, delta: float = 1e-6, **options: Any) -> Attack:
    """Attack a query of the papers' predictor by when it halts: split votes count, others do not.

    The votes at 0.5 are split. With ``votes="between"`` nothing is promised for queries; here the
    promise for rows is held against it all the same, as the paper does.
    """
    make, (rows, labels) = _bbl(3_000, epsilon, delta, options)  # so that 0.99 is not split

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.ask([[0.99]], [[0.5]])
        answered = 0
        while answered < 3 and not game.ask([[0.5]]).said:
            answered += 1
        return -answered

    claimed = _claimed(make, (rows, labels))
    return Attack("GenericBBL, when it halts", make, play, claimed)


ATTACKS: dict[str, Sequence[Callable[..., Attack]]] = {
    "EverlastingPredictor": (
        everlasting_row,
        everlasting_query,
        everlasting_repeated,
        everlasting_next,
        everlasting_end,
        everlasting_outlier,
        everlasting_words,
        partial(everlasting_repeated, memoize=True),
        partial(everlasting_query, late=0.25),
    ),
    "QueryRelease": (release_row,),
    "AgnosticQueryRelease": (partial(release_row, AgnosticQueryRelease),),
    "UniversalQueryRelease": (partial(release_row, UniversalQueryRelease),),
    "GenericBBL": (bbl_row, bbl_halt),
}
