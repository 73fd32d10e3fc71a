"""Learners that score rows by log odds."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.counting.intervals import Figure
from cumae.data import class_names
from cumae.engines import refuse_elsewhere
from cumae.errors import InvalidParameter, TooFewRows, shown, warn
from cumae.learners.base import Learner, LearningPlan, Rows, Sizes
from cumae.learners.ranged import (
    RangedSteps,
    learn_with_ranges,
    needs_ranges,
    plan_with_ranges,
)
from cumae.learners.thresholds import (
    HELD_OUT,
    ScoreCounts,
    ThresholdSteps,
    check_two_classes,
    learn_with_threshold,
    plan_with_threshold,
    rows_needed,
)
from cumae.parameters import CHANCE, CLASS_WEIGHTS, THRESHOLD, Kind, Number, Or
from cumae.quiet import is_quiet
from cumae.randomness import Source

# How a learner answers, in its table of parameters.
ANSWERS: Mapping[str, Kind] = {
    "class_weight": CLASS_WEIGHTS,
    "costs": CLASS_WEIGHTS,
    "threshold": THRESHOLD,
    "sensitivity": Or(None, Number(0.0, 1.0, above=True)),
    "confidence": Or(None, Number(0.5, 1.0, above=True, below=True)),
    "held_out": CHANCE,
}


@dataclass(frozen=True)
class AnswerRule:
    """The way from chances to answers: the likeliest class, the cheapest one, or a threshold.

    It is declared, and nothing that is paid for depends on it.

    Parameters
    ----------
    weights : tuple of float, or None
        What it costs to miss each class. The answer has the least expected cost.
    threshold : float, or None
        The chance of the second of two classes from which on it is the answer.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.learners.scored import AnswerRule
    >>> odds = np.array([-3.0, -1.0, 1.0])  # chances of .05, .27 and .73
    >>> AnswerRule().places(odds).tolist()
    [0, 0, 1]
    >>> AnswerRule(weights=(1.0, 5.0)).places(odds).tolist()
    [0, 1, 1]
    >>> AnswerRule(threshold=0.9).places(odds).tolist()
    [0, 0, 0]
    """

    weights: tuple[float, ...] | None = None
    threshold: float | None = None

    @classmethod
    def of(
        cls, classes: Any, class_weight: Any, costs: Any, threshold: Any, sensitivity: Any = None
    ) -> Self:
        """Return the rule that was declared; refuse what does not fit.

        Parameters
        ----------
        classes : sequence
            The declared classes.
        class_weight, costs : mapping, or None
            What it costs to miss a class, under either name; 1 for classes that are not named.
        threshold : float, or None
            As above.
        sensitivity : float, or None
            What a threshold is chosen for when the learner is fitted.
        """
        given = {"class_weight": class_weight, "costs": costs, "threshold": threshold}
        given["sensitivity"] = sensitivity
        given = {name: value for name, value in given.items() if value is not None}
        for name, value in given.items():
            ANSWERS[name].check(value, name)
        if len(given) > 1:
            raise InvalidParameter(
                f"{' and '.join(given)} were given, and each decides about the answers; give one."
            )
        if sensitivity is not None:
            check_two_classes(classes, sensitivity)
            return cls()
        if threshold is not None:
            if len(classes) != 2:
                raise InvalidParameter(
                    f"threshold={shown(threshold)} with {len(classes)} classes: it is for two; "
                    "give costs."
                )
            return cls(threshold=float(threshold))
        for name, value in given.items():
            return cls(_weights_of(classes, value, name))
        return cls()

    @claim("KERNEL")
    def places(self, log_odds: Floats) -> Integers:
        """Return the place of each answer among the classes: each follows from its row alone.

        Parameters
        ----------
        log_odds : array of float
            Log odds of the second of two classes, or scores of all.
        """
        if self.threshold is not None:
            return (chances(log_odds)[:, 1] >= self.threshold).astype(np.int64)
        if self.weights is not None:
            missed = chances(log_odds) * np.array(self.weights)
            return np.asarray(np.argmax(missed, axis=1), dtype=np.int64)
        if log_odds.ndim == 1:
            return (log_odds > 0).astype(np.int64)
        return np.asarray(np.argmax(log_odds, axis=1), dtype=np.int64)


def _weights_of(classes: Any, given: Mapping[Any, Any], name: str) -> tuple[float, ...] | None:
    """Return the weight of each class; None if all weigh the same.

    Parameters
    ----------
    classes : sequence
        The declared classes.
    given : mapping
        Weights of some of them.
    name : str
        What messages call them.
    """
    known = class_names(classes).tolist()
    unknown = [key for key in given if key not in known]
    if unknown:
        raise InvalidParameter(
            f"{name} has the key {shown(unknown[0])}, which is none of classes={tuple(known)!r}."
        )
    weights = tuple(float(given.get(one, 1.0)) for one in known)
    return None if len(set(weights)) == 1 else weights


class ScoredLearner(Learner):
    """A learner that computes labels from log odds. It shows these, too, at no further cost.

    If columns of numbers have no range, it first finds one privately (``ranged``), and then learns.
    A subclass says how it plans and learns when all ranges are known.
    """

    class_weight: Mapping[Any, float] | None = None
    costs: Mapping[Any, float] | None = None
    threshold: float | None = None
    sensitivity: float | None = None
    confidence: float | None = None
    held_out: float = HELD_OUT

    score_counts_: ScoreCounts

    @property
    def answer_rule(self) -> AnswerRule:
        """The way from chances to answers; it is declared, and may be set again after a fit."""
        declared = (self.class_weight, self.costs, self.threshold, self.sensitivity)
        rule = AnswerRule.of(self.classes, *declared)
        if self.sensitivity is None or not hasattr(self, "columns_"):
            return rule
        if not hasattr(self, "score_counts_"):
            raise InvalidParameter(
                f"sensitivity={self.sensitivity!r} was set after a fit without one, so that no "
                "threshold was paid for; fit again."
            )
        return replace(rule, threshold=self.threshold_)

    @property
    def threshold_(self) -> float:
        """The chance of the second class from which on it is the answer, for ``sensitivity``."""
        if self.sensitivity is None or not hasattr(self, "score_counts_"):
            raise AttributeError("threshold_ is there after a fit with a sensitivity.")
        return self.score_counts_.threshold(self.sensitivity, self.confidence)

    @property
    def sensitivity_(self) -> Figure:
        """The share of the second class that is found, as far as the noisy counts tell."""
        return self.score_counts_.sensitivity(self.threshold_)

    @property
    def specificity_(self) -> Figure:
        """The share of the first class that is left alone, as far as the noisy counts tell."""
        return self.score_counts_.specificity(self.threshold_)

    def decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Any]:
        """Decide what to do, and what it costs; rows for a threshold are set aside first."""
        given = (self.class_weight, self.costs, self.threshold, self.sensitivity)
        AnswerRule.of(self.classes, *given)  # refuses what does not fit the classes
        if self.sensitivity is None:
            return self._decide_model(sizes, rows)
        refuse_elsewhere(rows, "sensitivity sets rows aside")
        return plan_with_threshold(self, sizes, rows, type(self)._decide_model)

    def _decide_model(self, sizes: Sizes, rows: Rows) -> LearningPlan[Any]:
        """As ``decide``, of the model alone; ranges that are not known come first."""
        if not needs_ranges(sizes):
            return self._decide(sizes, rows)
        return plan_with_ranges(self, sizes, rows, type(self)._decide)

    @abstractmethod
    def _decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Any]:
        """As ``decide``, if all ranges are known or public rows show them."""

    def _learn(self, rows: Rows, plan: LearningPlan[Any], source: Source) -> None:
        if not isinstance(plan.steps, ThresholdSteps):
            self._learn_model(rows, plan, source)
            return
        learn = type(self)._learn_model
        self.score_counts_ = learn_with_threshold(self, rows, plan.steps, source, learn)

    def _warn_of_few_rows(self, sizes: Sizes, epsilon: float) -> None:
        super()._warn_of_few_rows(sizes, epsilon)
        if self.sensitivity is None or is_quiet():
            return
        needed = rows_needed(self, sizes)
        if sizes.labelled < 2 * needed:
            warn(
                f"sensitivity={self.sensitivity!r} is known to about a tenth if {needed} rows are "
                f"of class {class_names(self.classes)[1]!s}, and there are {sizes.labelled} rows "
                "in all: look at the interval in sensitivity_ after the fit.",
                TooFewRows,
            )

    def _learn_model(self, rows: Rows, plan: LearningPlan[Any], source: Source) -> None:
        """Learn the model, after ranges that are not known."""
        if isinstance(plan.steps, RangedSteps):
            learn_with_ranges(self, rows, plan.steps, source, type(self)._learn_within)
        else:
            self._learn_within(rows, plan, source)

    @abstractmethod
    def made_up_rows(self, source: Source) -> Floats:
        """Return made-up rows within the ranges of the columns, where there are no public ones.

        Parameters
        ----------
        source : Source
            Where coins come from.
        """

    @abstractmethod
    def _learn_within(self, rows: Rows, plan: LearningPlan[Any], source: Source) -> None:
        """Learn from rows whose ranges are known, and keep the private output."""

    @property
    @abstractmethod
    def log_odds(self) -> Callable[[NDArray[Any]], Floats]:
        """A function for the log odds of a table of encoded rows; it is published with the model.

        It returns an array with the log odds of the second class for each row; with more than two
        classes, with a score of each class.
        """

    def decision_function(self, X: Any) -> Floats:
        """Return the log odds of the second of two classes, or a score for each of more.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``.
        """
        check_is_fitted(self, "guarantee_")
        return self.log_odds(self._encode(self.columns_, X))

    def predict_proba(self, X: Any) -> Floats:
        """Return the chance of each class.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``.
        """
        return chances(self.decision_function(X))

    def rule_lines(self) -> list[str]:
        """Return what a chosen threshold finds, as lines of text; none if none was chosen."""
        if not hasattr(self, "threshold_"):
            return []
        first, second = self.classes_
        head = f"answers {second} from a chance of {self.threshold_:.3g} on"
        found, left = self.sensitivity_, self.specificity_
        return [f"{head}: finds {found} of {second}, and leaves {left} of {first} alone"]

    def second_chances(self, table: NDArray[Any]) -> Floats:
        """Return the chance of the second of two classes for encoded rows.

        Parameters
        ----------
        table : array of float
            Encoded rows.
        """
        return np.asarray(chances(self.log_odds(table))[:, 1])

    def _labels(self, table: NDArray[Any]) -> Integers:
        return self.answer_rule.places(self.log_odds(table))


@claim("PRIOR", "KERNEL")
def chances(log_odds: Floats) -> Floats:
    """Return the chance of each class, from log odds of the second of two, or scores of all.

    The chances of a row are a function of its own scores, bit by bit.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.learners.scored import chances
    >>> chances(np.array([0.0])).tolist()
    [[0.5, 0.5]]
    """
    if log_odds.ndim == 2:
        raised = _powers(log_odds - log_odds.max(axis=1, keepdims=True))
        total = np.zeros((len(raised), 1))
        for column in raised.T:  # in one order, which a library's sum does not promise
            total[:, 0] += column
        return np.asarray(raised / total)
    small = _powers(-np.abs(log_odds))  # the odds of the less likely class
    less, more = small / (1 + small), 1 / (1 + small)
    second = log_odds > 0
    return np.column_stack([np.where(second, less, more), np.where(second, more, less)])


def _powers(exponents: Floats) -> Floats:
    """Return the powers of e, each by itself: a function of one number, wherever it stands.

    A library's function of arrays may compute the first numbers of an array in another way than
    the last ones, and then a bit may differ.
    """
    found = list(map(math.exp, exponents.ravel().tolist()))
    return np.array(found).reshape(exponents.shape)
