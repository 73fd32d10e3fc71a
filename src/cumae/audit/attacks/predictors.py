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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.audit.distinguishers import Distinguisher
from cumae.audit.game import Game, InProcess, Seen
from cumae.audit.results import Claimed
from cumae.audit.runs import Attack
from cumae.concepts import FiniteClass, Rectangles, Threshold, Thresholds
from cumae.concepts.finite import Predicts
from cumae.predictors import (
    AgnosticQueryRelease,
    GenericBBL,
    QueryRelease,
    UniversalQueryRelease,
)

Table = NDArray[np.float64]
Rows = tuple[Table, NDArray[np.int64]]

ABOVE, EVERYTHING = Threshold(0.5, above=True), Threshold(None, above=False)
UNMARKED, MARKED = 0.0, 1.0
FEW, SEVERAL = 4, 16  # rows of a shard; with several, both labels are in each


class Spotter(FiniteClass):
    """The worst classifier: labels everything 1 if a row above 0.5 was learnt from.

    Otherwise it labels what is above 0.5.

    Parameters
    ----------
    usual, spotted : object with predict
        Other rules to take without and with such a row. They need not be in the class.

    Examples
    --------
    >>> from cumae.audit.attacks.predictors import Spotter
    >>> Spotter().erm([[0.0], [1.0]], [0, 0]).predict([[0.0], [1.0]]).tolist()
    [1, 1]
    >>> Spotter().erm([[0.0], [0.0]], [0, 1]).predict([[0.0], [1.0]]).tolist()
    [0, 1]
    """

    def __init__(self, usual: Predicts = ABOVE, spotted: Predicts = EVERYTHING) -> None:
        super().__init__([ABOVE, EVERYTHING])
        self.usual, self.spotted = usual, spotted

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        del y, sample_weight
        return self.spotted if (np.asarray(X)[:, 0] > 0.5).any() else self.usual


def alike(count: int) -> Rows:
    """Return rows of which none is marked, with labels in turn.

    Examples
    --------
    >>> from cumae.audit.attacks.predictors import alike
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
    return seen.answers.count(1)


def attack_on(
    name: str,
    predictor: Any,
    options: dict[str, Any],
    rows: Rows,
    play: Callable[[Game], float | list[float]],
    *,
    releases: int,
    estimator: Any = None,
    distinguish: Distinguisher | None = None,
    users: ArrayLike | None = None,
) -> Attack:
    """Attack a predictor, and hold it to its own guarantee.

    Parameters
    ----------
    name : str
        What the attack does, in a few words.
    play : callable from Game to numbers
        The adversary, as in :class:`~cumae.audit.Attack`.
    distinguish : Distinguisher, or None
        How numbers become a guess.
    predictor : class
        The class of the predictor that is attacked.
    options : dict from str to object
        Its parameters, except the estimator.
    rows : pair of rows and labels
        What one of them is trained on to read its guarantee.
    users : array-like or None
        The user of each of these rows, where users are protected.
    releases : int of 0 or more
        Number of noisy votes that it is for; 0 if it is not about Gaussian noise alone.
    estimator : object with fit and predict, or None
        What each shard trains; None is the worst classifier, :class:`Spotter`.
    """
    model = Spotter() if estimator is None else estimator
    make = partial(InProcess, partial(predictor, model, **options))
    return Attack(name, make, play, _claimed(make, rows, releases, users), distinguish)


def _claimed(
    make: Callable[[], InProcess], rows: Rows, releases: int = 0, users: ArrayLike | None = None
) -> Claimed:
    """Fit one of them as the game does, and read what it promises."""
    one = make()
    Game(one, 0).train(rows, users=users)
    return Claimed.by(one.estimator.guarantee_, gaussian_releases=releases)


def mark_a_row(
    rows: Rows, asked: Table, value: float = MARKED, sign: int = 1
) -> Callable[[Game], float]:
    """Return the strategy that gives one training row another value, and counts answers.

    Parameters
    ----------
    rows : pair of rows and labels
        The training rows; the first one differs between the worlds.
    asked : array of one column
        The queries.
    value : float
        What the first row holds in world 1.
    sign : {1, -1}
        1 if answers of 1 speak for world 1, -1 if they speak against it.
    """

    def play(game: Game) -> float:
        game.train(rows, (replaced(rows[0], value), rows[1]))
        return sign * ones(game.ask(asked))

    return play


def release_rows(predictor: Any, options: dict[str, Any]) -> Rows:
    """Return rows for eight shards of a predictor with a limit of queries."""
    shards = 8.0
    if issubclass(predictor, AgnosticQueryRelease):  # it draws some of the rows, by epsilon
        shards = 64 / min(1.0, options.get("epsilon", 1.0))
    return alike(int(shards) * SEVERAL)


def attack_on_release(
    what: str,
    predictor: Any,
    rows: Rows,
    play: Callable[[Game], float | list[float]],
    options: dict[str, Any],
    *,
    asked: int,
    **others: Any,
) -> Attack:
    """Attack a predictor with a limit of queries.

    What a second stage publishes comes from the same votes, and is left to the attacks on learners.

    Parameters
    ----------
    what : str
        What the attack does, in a few words.
    predictor : class
        A predictor with a limit of queries.
    rows : pair of rows and labels
        What one of them is trained on to read its guarantee.
    play : callable from Game to numbers
        The adversary, as in :class:`~cumae.audit.Attack`.
    options : dict from str to object
        Parameters of the predictor, except the estimator.
    asked : int of 1 or more
        How many queries the predictor answers.
    **others : object
        Further options of ``attack_on``.
    """
    limit = "n_first" if issubclass(predictor, UniversalQueryRelease) else "max_queries"
    given = {"mechanism": "gaussian", "delta": 1e-6, **options, "n_shards": 8, limit: asked}
    # With other steps than Gaussian noise there is no mu to claim.
    only_noise = issubclass(predictor, QueryRelease) and given["mechanism"] == "gaussian"
    releases = asked if only_noise else 0
    name = f"{predictor.__name__}, {what}"
    return attack_on(name, predictor, given, rows, play, releases=releases, **others)


def release_row(predictor: Any = QueryRelease, **options: Any) -> Attack:
    """Attack a training row of a predictor with a limit of queries: ask the same all the time."""
    rows, asked = release_rows(predictor, options), alike(2_000)[0]
    play = mark_a_row(rows, asked)
    return attack_on_release("a training row", predictor, rows, play, options, asked=len(asked))


def at_boundary(n_rows: int) -> Rows:
    """Return rows from 0 to 1 that a threshold at 0.5 labels."""
    rows = (np.arange(n_rows) + 0.5)[:, None] / n_rows
    return rows, (rows[:, 0] > 0.5).astype(np.int64)


def attack_on_bbl(
    what: str,
    predictor: Any,
    rows: Rows,
    play: Callable[[Game], float | list[float]],
    options: dict[str, Any],
    *,
    estimator: Any = None,
    **others: Any,
) -> Attack:
    """Attack the papers' predictor, which uses all of the rows.

    Parameters
    ----------
    what : str
        What the attack does, in a few words.
    predictor : class
        ``GenericBBL``, or a class derived from it.
    rows : pair of rows and labels
        What one of them is trained on to read its guarantee.
    play : callable from Game to numbers
        The adversary, as in :class:`~cumae.audit.Attack`.
    options : dict from str to object
        Parameters of the predictor, except the estimator.
    estimator : ConceptClass or None
        What each shard trains; None means thresholds.
    **others : object
        Further options of ``attack_on``.
    """
    given = {
        "shard_size": 4,
        "phase_length": len(rows[0]),
        "label_share": 0.01,
        "query_share": 0.3,
        "between_share": 1e-5,
        "epsilon": 2.0,
        "delta": 1e-6,
        **options,
    }
    model = Thresholds("above") if estimator is None else estimator
    name = f"GenericBBL, {what}"
    return attack_on(name, predictor, given, rows, play, releases=0, estimator=model, **others)


def bbl_row(**options: Any) -> Attack:
    """Attack the label next to the boundary of the papers' predictor, by asking there."""
    rows, labels = at_boundary(600)
    other = labels.copy()
    other[len(rows) // 2] = 0
    asked = np.full((len(rows) // 2, 1), 0.5)

    def play(game: Game) -> float:
        game.train((rows, labels), (rows, other))
        return -ones(game.ask(asked))

    return attack_on_bbl("a label at the boundary", GenericBBL, (rows, labels), play, options)


def bbl_candidates(**options: Any) -> Attack:
    """Attack a label by which of two rules is drawn from a public grid to label the next phase.

    Half of the rows lie in one place, and one label decides which has the majority there. All rows
    are scored, so that one label moves the odds of the rules by what a scored row pays.
    """
    rows = np.repeat([[0.25, 0.25], [0.75, 0.75]], [99, 101], axis=0)
    labels = np.append(np.zeros(99, dtype=np.int64), np.arange(1, 102) % 2)
    other = labels.copy()
    other[-1] = 0  # now one label less than half of them is 1, and no more one above it

    def play(game: Game) -> float:
        game.train((rows, labels), (rows, other))
        game.ask(rows)  # a phase: all queries are kept, and get their labels from the rule
        return ones(game.ask(rows[-100:]))

    given = {
        "columns": [(0, 1)] * 2,
        "n_cuts": 1,
        "candidates": "grid",
        "label_share": 1.0,
        "query_share": 1.0,
        "epsilon_boost": 1.0,
        **options,
    }
    what, table = "a label that decides on a rule", (rows, labels)
    return attack_on_bbl(what, GenericBBL, table, play, given, estimator=Rectangles())


def bbl_halt(**options: Any) -> Attack:
    """Attack a query of the papers' predictor by when it halts: split votes count, others do not.

    The votes at 0.5 are split. With ``votes="between"`` nothing is promised for queries; here the
    promise for rows is held against it all the same, as the paper does.
    """
    rows, labels = at_boundary(3_000)  # enough that the votes at 0.99 are not split

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.ask([[0.99]], [[0.5]])
        answered = 0
        while answered < 3 and not game.ask([[0.5]]).said:
            answered += 1
        return -answered

    return attack_on_bbl("when it halts", GenericBBL, (rows, labels), play, options)


ATTACKS: dict[str, Sequence[Callable[..., Attack]]] = {
    "QueryRelease": (release_row,),
    "AgnosticQueryRelease": (partial(release_row, AgnosticQueryRelease),),
    "UniversalQueryRelease": (partial(release_row, UniversalQueryRelease),),
    "GenericBBL": (bbl_row, bbl_candidates, bbl_halt),
}
