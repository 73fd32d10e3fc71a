"""The goals of answers, and the figures by which routes are compared for them.

There are three goals: most answers right, rows in the right order of their chances, and the least
cost. What is declared about classes, their shares and the cost to miss them, is public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumae.arrays import Floats, Integers
from cumae.data import class_names
from cumae.errors import InvalidParameter, shown
from cumae.learners.kernel.learner import GOAL
from cumae.learners.scored import AnswerRule
from cumae.parameters import CLASS_WEIGHTS

SURELY = 1e-9  # a threshold is at least so far from 0 and 1, so that its costs are finite
ALL = 1e-6  # by which declared shares may miss 1 in all
BEST_AT = {
    "accuracy": "the most accurate",
    "ranking": "the best at ranking",
    "cost": "the one of least cost",
}


def shares_of(classes: Sequence[Any], given: Mapping[Any, float] | None) -> tuple[float, ...]:
    """Return the share of each class; those that are not declared share the rest equally.

    Parameters
    ----------
    classes : sequence of labels
        All classes.
    given : mapping from class to float, or None
        About which share of the rows each of them has; None for classes of equal size.

    Raises
    ------
    InvalidParameter
        If a class is unknown, or the shares cannot be.

    Examples
    --------
    >>> from cumae.planning.goals import shares_of
    >>> shares_of(["no", "died"], {"died": 0.0275})
    (0.9725, 0.0275)
    """
    if given is None:
        return (1 / max(1, len(classes)),) * len(classes)
    CLASS_WEIGHTS.check(given, "class_shares")
    known = class_names(classes).tolist()
    unknown = [key for key in given if key not in known]
    if unknown:
        raise InvalidParameter(
            f"class_shares has the key {shown(unknown[0])}, which is none of "
            f"classes={tuple(known)!r}."
        )
    total = float(sum(given.values()))
    left = len(known) - len(given)
    if total > 1 + ALL or (left and total >= 1) or (not left and abs(total - 1) > ALL):
        wanted = "less than 1, because other classes have rows, too" if left else "1"
        raise InvalidParameter(
            f"class_shares add up to {total:g}; together they must be {wanted}. Give shares, such "
            "as 0.03 for 3 %."
        )
    return tuple(float(given.get(one, (1 - total) / max(1, left))) for one in known)


def misses_of(
    classes: Sequence[Any], costs: Mapping[Any, float] | None, threshold: float | None
) -> tuple[float, ...]:
    """Return the cost to miss a row of each class; a threshold says the same by other numbers.

    Parameters
    ----------
    classes : sequence of labels
        All classes.
    costs : mapping from class to float, or None
        What was declared; 1 for classes that are not named.
    threshold : float, or None
        The chance of the second of two classes from which on it is the answer.

    Examples
    --------
    >>> from cumae.planning.goals import misses_of
    >>> misses_of(["no", "died"], {"died": 20}, None), misses_of([0, 1], None, 0.2)
    ((1.0, 20.0), (1.0, 4.0))
    """
    rule = AnswerRule.of(classes, None, costs, threshold)
    if rule.threshold is not None:
        chance = min(max(rule.threshold, SURELY), 1 - SURELY)
        return 1.0, (1 - chance) / chance
    if costs is None:
        return (1.0,) * len(classes)
    return tuple(float(costs.get(one, 1.0)) for one in class_names(classes).tolist())


def check_goal(
    goal: str,
    classes: Sequence[Any],
    costs: Mapping[Any, float] | None,
    threshold: float | None,
    class_shares: Mapping[Any, float] | None,
) -> None:
    """Refuse a goal that does not fit what is declared.

    Parameters
    ----------
    goal : {"accuracy", "ranking", "cost"}
        What answers are for.
    classes : sequence of labels
        All classes.
    costs : mapping from class to float, or None
        The cost to miss a row of each class.
    threshold : float, or None
        The chance of the second of two classes from which on it is the answer.
    class_shares : mapping from class to float, or None
        About which share of the rows each class has.
    """
    GOAL.check(goal, "goal")
    misses = misses_of(classes, costs, threshold)
    shares_of(classes, class_shares)
    if goal == "cost" and len(set(misses)) == 1:
        raise InvalidParameter(
            'goal="cost" without costs: declare the cost to miss a class, such as '
            'costs={"died": 20}, or a threshold.'
        )


@dataclass(frozen=True)
class Reached:
    """The forecast quality of a route, by the figure that belongs to the goal.

    The figure is the share of right answers, the area under the ROC curve (AUC: the chance that of
    two rows the one of the second class has the higher score), or the cost of a row on the mean.

    Parameters
    ----------
    goal : {"accuracy", "ranking", "cost"}
        What the figure is.
    value : float
        What is most likely.
    low, high : float
        Where it is likely to be, in about eight of ten cases.
    guess : float
        The same figure, if every row gets the same answer: the best one for the shares.
    guessed : label
        That answer.
    auc : float, or None
        The area under the ROC curve that is most likely; None if the route gives no chances.
    constant : bool
        Whether every row is likely to get the same answer.
    usual : float, or None
        The figure of a usual model without privacy: the better of a logistic regression and
        gradient boosting; None if that is not known.
    usual_auc : float, or None
        The area under the ROC curve of that model.
    rests_on : str
        What the forecast was made from, in plain words.
    """

    goal: str
    value: float
    low: float
    high: float
    guess: float
    guessed: Any
    auc: float | None
    constant: bool
    usual: float | None
    usual_auc: float | None
    rests_on: str

    @property
    def worth(self) -> float:
        """The figure by which routes are compared, more is better. A guess costs its own costs.

        Of routes that are equally accurate, the one that ranks better comes first: its chances are
        of use where its answers are all the same.
        """
        if self.goal == "cost":
            return -self.value / self.guess
        tie = (self.auc or 0.5) / 100 if self.goal == "accuracy" else 0.0
        return self.value + tie

    def __str__(self) -> str:
        """Return the figure, and what guessing gets."""
        value, low, high = (self.formatted(part) for part in (self.value, self.low, self.high))
        if self.goal == "accuracy":
            return f"{value} % ({low} to {high} %) right answers; {self.guessing}"
        name = "an AUC of" if self.goal == "ranking" else "a cost for each row of"
        return f"{name} {value} ({low} to {high}); {self.guessing}"

    @property
    def guessing(self) -> str:
        """The figure of one answer to all rows, in words."""
        if self.goal == "ranking":
            return "guessing has 0.5"
        gets = f"gets {self.formatted(self.guess)} %"
        if self.goal == "cost":
            gets = f"costs {self.formatted(self.guess)}"
        return f"always saying {self.guessed} {gets}"

    def formatted(self, value: float) -> str:
        """Return a figure as text, in percent if it is an accuracy."""
        if self.goal == "accuracy":
            return f"{100 * value:.1f}"
        return f"{value:.2f}" if self.goal == "ranking" else f"{value:.3g}"


def ranked(scores: Floats, truth: Floats) -> float:
    """Return the area under the ROC curve of scores, by the true chance of each row.

    Parameters
    ----------
    scores : array of float
        A score for each row.
    truth : array of float
        The chance that the row is of the second class.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.planning.goals import ranked
    >>> ranked(np.array([1.0, 2.0, 2.0]), np.array([0.0, 0.0, 1.0]))
    0.75
    """
    _, place = np.unique(scores, return_inverse=True)
    ones = np.bincount(place, weights=truth)
    zeros = np.bincount(place, weights=1 - truth)
    below = np.cumsum(zeros) - zeros
    return float(ones @ (below + zeros / 2) / (ones.sum() * zeros.sum()))


def figure(
    goal: str, answers: Integers, scores: Floats | None, truth: Floats, misses: Sequence[float]
) -> float:
    """Return how good answers are by the true chances of all classes.

    Parameters
    ----------
    goal : {"accuracy", "ranking", "cost"}
        What they are for.
    answers : array of int
        The place of each answer among the classes; -1 for none, which is never right.
    scores : array of float, or None
        Log odds of the second of two classes, or scores of all; for a goal of ranking. With more
        than two classes the areas of all, each against the others, are averaged.
    truth : array of float
        For each row, the chance of each class.
    misses : sequence of float
        The cost to miss a row of each class.
    """
    if goal == "ranking":
        if scores is None:
            return 0.5
        if scores.ndim == 1:
            return ranked(scores, truth[:, 1])
        return float(np.mean([ranked(*pair) for pair in zip(scores.T, truth.T, strict=True)]))
    right = truth * (answers[:, None] == np.arange(truth.shape[1]))
    if goal == "accuracy":
        return float(right.sum(axis=1).mean())
    return float(((truth - right) @ np.array(misses)).mean())


def best_guess(goal: str, shares: Sequence[float], misses: Sequence[float]) -> tuple[int, float]:
    """Return the one answer that is best for all rows, by its place, and what it gets.

    Parameters
    ----------
    goal : {"accuracy", "ranking", "cost"}
        What answers are for.
    shares, misses : sequence of float
        The share of each class, and the cost to miss a row of it.
    """
    weights = np.array(shares) * (misses if goal == "cost" else 1.0)
    place = int(np.argmax(weights))
    gets = {"accuracy": float(weights[place]), "ranking": 0.5}
    return place, gets.get(goal, float(weights.sum() - weights[place]))
