"""Attacks on evaluations: one test row that goes from a cell of the noisy table to another.

The counts are released, so the adversary needs no queries. The rows and the model are known to it,
but for one row that is right in world 0 and wrong in world 1. One attack evaluates anew in each
run; the other counts rows once, and draws noise anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.audit.game import Game
from cumae.audit.results import RELEASES, Claimed
from cumae.audit.runs import Attack
from cumae.counting.table import Layout, cells_of, chosen_noise, counted, table_count
from cumae.evaluation import Evaluation, evaluate
from cumae.mechanisms import GaussianNoise, LaplaceNoise

OTHERS = 9  # rows that are the same in both worlds
FAR = (0.01, 0.99)  # chances whose bins are never the same


class _Chances:
    """A model whose chances stand in the rows."""

    def __init__(self, n_classes: int) -> None:
        self.classes_ = np.arange(n_classes)

    def predict_proba(self, X: Any) -> Any:
        return np.asarray(X)


class Evaluated:
    """Drives an evaluation: releases the noisy tables instead of test rows.

    Parameters
    ----------
    release : callable
        Evaluates rows and labels.

    Examples
    --------
    >>> from cumae.audit.attacks.evaluation import a_test_row
    >>> driver = a_test_row(1.0, 0.0).make()
    >>> driver.train([[0.9, 0.1]] * 4, [0] * 4)
    >>> driver.published().shape
    (20,)
    """

    def __init__(self, release: Callable[[Any, Any], Evaluation]) -> None:
        self.release = release

    def train(self, X: Any, y: Any) -> None:
        tables = self.release(X, y).tables
        self.released = np.concatenate([part.ravel() for part in tables.counts.values()])

    def ask(self, X: Any) -> list[None]:
        return [None] * len(X)

    def published(self) -> Any:
        return self.released


def a_test_row(
    epsilon: float,
    delta: float,
    *,
    n_classes: int = 2,
    release: Callable[..., Evaluation] = evaluate,
) -> Attack:
    """Return the attack on a test row whose label and chances are others in world 1.

    It looks at the counts that move, each cut off where Laplace noise tells no more; Gaussian noise
    tells more the farther it is off.

    Parameters
    ----------
    epsilon, delta : float
        What the evaluation may cost.
    n_classes : int of 2 or more
        Classes of the model.
    release : callable
        Evaluates; another function with the same parameters plants a bug.
    """
    zero, one = _worlds(n_classes)
    model = _Chances(n_classes)
    planned = _evaluate(evaluate, model, epsilon, delta, *zero)
    claimed, score = Claimed.by(planned.guarantee), _likelihood(planned.tables.layout)

    def play(game: Game) -> float:
        game.train(zero, one)
        return float(score(np.asarray(game.published()), claimed))

    shown = partial(_evaluate, release, model, epsilon, delta)
    name = f"Evaluation, a test row, {n_classes} classes"
    return Attack(name, partial(Evaluated, shown), play, claimed)


class NoisyCounts:
    """Drives the noisy tables of an evaluation: counts rows once, and releases the counts.

    Parameters
    ----------
    layout : Layout
        The shape of all tables.
    noise : LaplaceNoise or GaussianNoise
        What is added to each count.

    Examples
    --------
    >>> from cumae.audit.attacks.evaluation import noisy_counts
    >>> driver = noisy_counts(1.0, 0.0).make()
    >>> driver.train([[0.9, 0.1]] * 4, [0] * 4)
    >>> driver.releases(10).shape
    (10, 20)
    """

    def __init__(self, layout: Layout, noise: LaplaceNoise | GaussianNoise) -> None:
        self.layout, self.noise = layout, noise

    def train(self, X: Any, y: Any) -> None:
        self.exact = _exact(self.layout, np.asarray(X), np.asarray(y))

    def ask(self, X: Any) -> list[None]:
        return [None] * len(X)

    def published(self) -> None:
        return None

    def before(self) -> Integers:
        """Return the counts without noise."""
        return self.exact

    def releases(self, count: int) -> Integers:
        """Return noisy counts, one row for each of so many independent runs."""
        return self.noise.release(np.tile(self.exact, count)).reshape(count, -1)


def noisy_counts(epsilon: float, delta: float, *, n_classes: int = 2) -> Attack:
    """Return the attack on the noisy tables of an evaluation.

    The planted bug forgets that a replaced row leaves one cell of a table and enters another.

    Parameters
    ----------
    epsilon, delta : float
        What the evaluation may cost.
    n_classes : int of 2 or more
        Classes of the model.
    """
    zero, one = _worlds(n_classes)
    tables = table_count(n_classes, chances=True)
    found = _evaluate(evaluate, _Chances(n_classes), epsilon, delta, *zero)
    claimed, layout = Claimed.by(found.guarantee), found.tables.layout
    score = _likelihood(layout)

    def play(game: Game) -> Floats:
        game.train(zero, one)
        return score(game.releases(), claimed)

    noise = chosen_noise(epsilon, delta, tables)
    careless: LaplaceNoise | GaussianNoise = LaplaceNoise(epsilon, tables)
    if isinstance(noise, GaussianNoise):
        careless = GaussianNoise.calibrated(epsilon, delta, moves=tables)
    return Attack(
        f"Evaluation, noisy counts, {n_classes} classes",
        partial(NoisyCounts, layout, noise),
        play,
        claimed,
        level=RELEASES,
        not_covered="how rows are scored and put into cells, and how it is paid",
        plant=partial(NoisyCounts, layout, careless),
        planted="with a replaced row that counts once, planted",
    )


def _likelihood(layout: Layout) -> Callable[[NDArray[Any], Claimed], Floats]:
    """Return what tells how much counts speak for world 1.

    Each count is cut off where Laplace noise tells no more; a delta of 0 means Laplace noise.
    """
    zero, one = (_exact(layout, *world) for world in _worlds(layout.classes))

    def score(counts: NDArray[Any], claimed: Claimed) -> Floats:
        off = counts - (zero + one) / 2
        cut = np.clip(off, -1.0, 1.0) if claimed.delta == 0 else off
        return np.asarray((cut * (one - zero)).sum(axis=-1))

    return score


def _evaluate(
    release: Callable[..., Evaluation],
    model: Any,
    epsilon: float,
    delta: float,
    X: Any,
    y: Any,
) -> Evaluation:
    """Evaluate with few bins.

    Parameters
    ----------
    release : callable
        Evaluates.
    model : object
        Whose chances stand in the rows.
    epsilon, delta : float
        What it may cost.
    X, y : array
        Rows and labels.
    """
    return release(model, X, y, epsilon=epsilon, delta=delta, trained_on=False, bins=10)


def _exact(layout: Layout, X: Floats, y: Integers) -> Integers:
    """Return the counts of all tables without noise."""
    counts = counted(layout, cells_of(layout, np.zeros_like(y), y, X))
    return np.concatenate([part.ravel() for part in counts.values()])


def _worlds(n_classes: int) -> tuple[tuple[Floats, Integers], tuple[Floats, Integers]]:
    """Return rows and labels of both worlds; the first row is right in one and wrong in another."""
    low, high = FAR
    sure = np.full((1 + OTHERS, n_classes), low / (n_classes - 1))
    sure[:, 0] = high
    other = sure.copy()
    other[0] = high / (n_classes - 1)  # each chance is in another bin
    other[0, 0] = low
    label = np.zeros(len(sure), dtype=np.int64)
    wrong = label.copy()
    wrong[0] = n_classes - 1 if n_classes > 2 else 0
    return (sure, label), (other, wrong)


ATTACKS: dict[str, Sequence[Callable[..., Attack]]] = {
    "Evaluation": (
        noisy_counts,
        partial(noisy_counts, n_classes=5),
        a_test_row,
        partial(a_test_row, n_classes=5),
    ),
}
