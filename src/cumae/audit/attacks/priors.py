"""Attacks on the priors of EverlastingPredictor: rows that train them, at first or later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from cumae.audit.attacks.everlasting import NOTHING, attack_on_phases
from cumae.audit.attacks.predictors import (
    MARKED,
    UNMARKED,
    Table,
    alike,
    replaced,
)
from cumae.audit.game import Game
from cumae.audit.runs import Attack
from cumae.concepts import FiniteClass, Threshold
from cumae.data import Declared, class_places
from cumae.learners import Learner, PrivateLearner
from cumae.learners.base import LearningPlan, Sizes
from cumae.learners.base import Rows as LearnerRows
from cumae.mechanisms import ExponentialMechanism
from cumae.parameters import COLUMNS, DELTA, EPSILON, Kind, Object
from cumae.predictors import EverlastingPredictor
from cumae.randomness import Source

ANYTHING = Threshold(0.2, above=True)
BETWEEN = 0.3  # not marked, but something


def prior_row(predictor: Any = EverlastingPredictor, *, against: int = 2, **options: Any) -> Attack:
    """Attack a training row that the prior most likely gets: it draws one of two rules.

    They differ in that row and in the others that speak against the second rule, and nowhere else.
    Answers are not looked at: with a prior, one vote moves them less than without.
    """
    rows, labels = alike(40)
    few = slice(1 + against)
    rows[few], labels[few] = BETWEEN, 0
    other = np.append(1, labels[1:])

    def play(game: Game) -> float:
        game.train((rows, labels), (replaced(rows), other))
        return float(game.published()["prior_"].predict([[MARKED]])[0])

    options = {
        **options,
        "prior": PrivateLearner(FiniteClass([NOTHING, ANYTHING])),
        "prior_share": 0.85,
        "columns": [(UNMARKED, MARKED)],
    }
    what = "a row of the prior"
    return attack_on_phases(what, predictor, (rows, labels), play, options, releases=0)


def renewed_row(
    predictor: Any = EverlastingPredictor, *, against: int = 2, **options: Any
) -> Attack:
    """Attack a row that comes later with its label, and trains the next prior.

    As in :func:`prior_row`, two rules differ in that row and in those against the second one.
    """
    rows, labels = alike(40)
    later, later_labels = alike(2 * len(rows))
    few = slice(1 + against)
    later[few], later_labels[few] = BETWEEN, 0
    other = np.append(1, later_labels[1:])
    asked = alike(len(rows))[0]

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.label((later, later_labels), (replaced(later), other))
        game.ask(asked)
        return float(game.published()["prior_"].predict([[MARKED]])[0])

    options = {
        **options,
        "prior": PrivateLearner(FiniteClass([NOTHING, ANYTHING])),
        "prior_share": 0.85,
        "columns": [(UNMARKED, MARKED)],
    }
    what = "a row of a later prior"
    return attack_on_phases(what, predictor, (rows, labels), play, options)


class Loudest(Learner):
    """Draws one of any number of classes, by how many rows above 0.5 have it.

    Parameters
    ----------
    epsilon, delta : float
        What it costs; delta is not used.
    columns : mapping or sequence, or None
        As in any learner.
    classes : sequence of labels
        The labels.
    random_state : int or Source, or None
        Where coins come from.
    """

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "columns": COLUMNS,
        "classes": Object("sequence of labels"),
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        columns: Declared = None,
        classes: Any = (0, 1),
        random_state: int | Source | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.columns = columns
        self.classes = classes
        self.random_state = random_state

    def decide(self, sizes: Sizes, rows: LearnerRows) -> LearningPlan[float]:
        """Return the cost of one draw; its epsilon is all of the steps."""
        del sizes, rows
        cost = ExponentialMechanism(self.epsilon).cost
        return LearningPlan(cost, ("EXP",), steps=self.epsilon)

    def _learn(self, rows: LearnerRows, plan: LearningPlan[float], source: Source) -> None:
        counts = np.bincount(rows.y[rows.X[:, 0] > 0.5], minlength=len(self.classes))
        self.place_ = int(ExponentialMechanism(plan.steps, random_state=source).choose(counts))

    def _labels(self, table: Table) -> NDArray[np.int64]:
        return np.full(len(table), self.place_, dtype=np.int64)

    def _check_y(self, y: Any, *, unlabelled: bool) -> NDArray[np.int64]:
        return class_places(y, list(self.classes), unlabelled=unlabelled)


def prior_label(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a training row that the prior of three classes most likely gets.

    It is the only one above 0.5, so that its label alone moves the draw of the prior.
    """
    classes = (0, 1, 2)
    rows = replaced(np.full((40, 1), UNMARKED))
    labels = np.resize(classes, len(rows))

    def play(game: Game) -> float:
        game.train((rows, labels), (rows, np.append(1, labels[1:])))
        return float(game.published()["prior_"].predict([[MARKED]])[0] == 1)

    options = {
        **options,
        "prior": Loudest(),
        "prior_share": 0.8,
        "columns": [(UNMARKED, MARKED)],
        "classes": classes,
    }
    look: dict[str, Any] = {"size": 2 * len(classes), "releases": 0}
    look["estimator"] = DecisionTreeClassifier(max_depth=1)
    what = "a label of the prior"
    return attack_on_phases(what, predictor, (rows, labels), play, options, **look)


ATTACKS: dict[str, Sequence[Callable[..., Attack]]] = {
    "EverlastingPredictor": (prior_row, renewed_row, prior_label),
}
