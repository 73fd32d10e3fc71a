"""Attacks on published learners: small data sets in which one row decides as much as it can.

The model is public, so the adversary needs no queries: it looks at the labels that the model gives
to points of its choice, or at the weights. Most learners draw a hypothesis by the exponential
mechanism; with two candidates, rows that are all alike and nearly balanced labels, one label moves
their odds as far as it may.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.audit.distinguishers import Distinguisher, by_likelihood, by_training
from cumae.audit.game import Game, InProcess
from cumae.audit.results import Claimed
from cumae.audit.runs import Attack
from cumae.concepts import ConceptClass, FiniteClass, Threshold, Thresholds
from cumae.data import UNLABELLED
from cumae.errors import TooFewRows
from cumae.learners import (
    AccuracyBoost,
    ActiveLearner,
    GenericLearner,
    HypothesisLearner,
    IterLabelBoost,
    LabelBoost,
    OneVsRest,
    PrivateBooster,
    PrivateKernelClassifier,
    PrivateLearner,
    PrivateLogisticRegression,
    PublicDataReduction,
    SemiPrivateLearner,
)

Rows = tuple[NDArray[np.float64], NDArray[np.int64]]
View = Callable[[Any], ArrayLike]
HERE = 0.5  # where rows are
BOUNDS: dict[str, Any] = {"columns": [(0, 1)], "n_points": 1}
# Rules that never turn back to 0: of a point below all rows, only those that label the rows 1 can
# make two; of one above them, only those that label them 0.
RISING = (
    Threshold(None, above=True),
    Threshold(None, above=False),
    Threshold(HERE / 2),
    Threshold(HERE * 1.5),
)


class LearnerDriver(InProcess):
    """Drives a learner that may want public rows, or choose the rows to label.

    Parameters
    ----------
    make : callable
        Returns a new learner, not fitted.
    public : array-like or None
        Public rows, or None.

    Examples
    --------
    >>> from cumae.audit.attacks.learners import HERE, LearnerDriver, chooser
    >>> from cumae.learners import ActiveLearner
    >>> driver = LearnerDriver(lambda: ActiveLearner(chooser(90.0), epsilon=90.0, n_labels=2))
    >>> driver.train([[HERE]] * 3, [1, 1, 1])
    >>> driver.published().predict([[HERE]])
    array([1])
    """

    def __init__(self, make: Callable[[], Any], public: ArrayLike | None = None) -> None:
        super().__init__(make)
        self.public = public

    def train(self, X: Any, y: Any, **whose: Any) -> None:
        self.estimator = self.make()
        labels = np.asarray(y)
        if hasattr(self.estimator, "select"):
            labels = labels[self.estimator.select(X)]
        public = [] if self.public is None else [self.public]
        self.estimator.fit(X, labels, *public, **whose)


def chooser(epsilon: float) -> PrivateLearner:
    """Return a learner that draws among thresholds, half of which label the rows 1."""
    return PrivateLearner(Thresholds(), epsilon, **BOUNDS)


def attack_on(
    name: str,
    make: Callable[[], Any],
    zero: Rows,
    one: Rows,
    *,
    view: View | None = None,
    distinguish: Distinguisher | None = None,
    public: ArrayLike | None = None,
) -> Attack:
    """Return an attack on what a learner publishes; the claim is that of its own guarantee.

    Parameters
    ----------
    name : str
        Learner, and what differs.
    make : callable
        Returns a new learner, not fitted.
    zero, one : pair of rows and labels
        Rows and labels of the two worlds, which differ in one row.
    view : callable or None
        What to look at, given the fitted learner; None is the label of the point where rows are.
    distinguish : Distinguisher, or None
        As in :class:`~cumae.audit.Attack`.
    public : array-like or None
        Public rows.
    """
    look = _label_here if view is None else view
    fresh = partial(LearnerDriver, make, public)

    def play(game: Game) -> ArrayLike:
        game.train(zero, one)
        return look(game.published())

    fitted = fresh()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooFewRows)  # one row decides only where there are few
        fitted.train(*zero)
    claimed = Claimed.by(fitted.estimator.guarantee_)
    return Attack(name, fresh, play, claimed, distinguish)


def a_label(
    name: str, make: Callable[[], Any], epsilon: float, *, unlabelled: int = 0, **options: Any
) -> Attack:
    """Return the attack on a label where rows are all alike and ones are a few fewer than zeros.

    The fewer ones there are, the closer to exp(epsilon) does one label move the chance that the
    model says 1, and the more seldom it does: about once in three runs is a good compromise.

    Parameters
    ----------
    name : str
        Name of the learner.
    make : callable
        Returns a learner that is not fitted.
    epsilon : float above 0
        Privacy parameter of the draw that decides what the model says.
    unlabelled : int of 0 or more
        Number of rows without a label.
    **options : object
        Further options of ``attack_on``.
    """
    behind = int(2 / epsilon)
    labels = np.append(np.zeros(behind + 3), 1)
    zero, one = (_alike(np.append(first, labels[1:]), unlabelled) for first in (0, 1))
    return attack_on(f"{name}, a label", make, zero, one, **options)


def private_learner(epsilon: float, learner: Any = PrivateLearner) -> Attack:
    """Return the attack on a label of PrivateLearner."""
    return a_label("PrivateLearner", partial(learner, Thresholds(), epsilon, **BOUNDS), epsilon)


def semi_private_learner(epsilon: float, learner: Any = SemiPrivateLearner) -> Attack:
    """Return the attack on a label of SemiPrivateLearner, with one public row."""
    make = partial(learner, Thresholds(), epsilon)
    return a_label("SemiPrivateLearner", make, epsilon, public=[[HERE]])


def generic_label(epsilon: float, learner: Any = GenericLearner) -> Attack:
    """Return the attack on a label of GenericLearner."""
    make = partial(learner, Thresholds(), epsilon, **BOUNDS)
    return a_label("GenericLearner", make, epsilon, unlabelled=2)


def generic_unlabelled(epsilon: float, learner: Any = GenericLearner) -> Attack:
    """Return the attack on an unlabelled row of GenericLearner, which moves the median.

    Labels say that the cut is somewhere between the ends; where it is tells the median.
    """
    make = partial(learner, Thresholds(), epsilon, **BOUNDS)
    sure = math.ceil(40 / epsilon)
    X = np.append(np.repeat([0.0, 1.0], sure), [HERE, HERE])
    y = np.append(np.repeat([0, 1], sure), [UNLABELLED] * 3)
    zero, one = ((np.append(X, last).reshape(-1, 1), y) for last in (1.0, 0.0))
    return attack_on(
        "GenericLearner, an unlabelled row",
        make,
        zero,
        one,
        view=_cut,
        distinguish=by_likelihood,
    )


def private_booster(epsilon: float, learner: Any = PrivateBooster) -> Attack:
    """Return the attack on a label of PrivateBooster, without a start and with one round."""
    make = partial(learner, epsilon, columns=[(0, 1)], n_cuts=1, n_rounds=1)
    return a_label("PrivateBooster", make, epsilon)


def logistic_regression(
    epsilon: float, delta: float, learner: Any = PrivateLogisticRegression
) -> Attack:
    """Return the attack on a label of PrivateLogisticRegression, in a row as long as any.

    With one step, weights are a fixed linear map of the noisy gradient, so that a linear rule on
    them is the best one.

    Parameters
    ----------
    epsilon, delta : float
        What the learner may cost.
    learner : class
        The class of the learner that is attacked.
    """
    make = partial(learner, epsilon, delta, columns=[(-1, 1)], n_steps=1)
    X = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    y = np.array([0, 1, 0, 1])
    return attack_on(
        "PrivateLogisticRegression, a label",
        make,
        (X, y),
        (X, np.append(1, y[1:])),
        view=_weights,
        distinguish=by_training,
    )


def kernel_classifier(
    epsilon: float,
    delta: float,
    learner: Any = PrivateKernelClassifier,
    *,
    classes: Sequence[int] = (0, 1),
) -> Attack:
    """Return the attack on a label of PrivateKernelClassifier, in a row as long as any.

    The rows that the features are scaled by are public, so that only sums of residuals are left.
    Their parts are attacked one by one in ``sums``.

    Parameters
    ----------
    epsilon, delta : float
        What the learner may cost.
    learner : class
        The class of the learner that is attacked.
    classes : sequence of int
        The classes.
    """
    make = partial(learner, epsilon, delta, columns=[(-1, 1)], n_waves=0, classes=classes)
    half = len(classes) * (2 + round(40 / epsilon))  # with fewer, trees would be fitted
    X = np.repeat([[1.0], [-1.0]], half, axis=0)
    y = np.resize(classes, len(X))
    several = "" if len(classes) == 2 else f" of {len(classes)} classes"
    return attack_on(
        f"PrivateKernelClassifier, a label{several}",
        make,
        (X, y),
        (X, np.append(classes[1], y[1:])),
        view=_weights,
        distinguish=by_training,
        public=np.linspace(-1, 1, 50).reshape(-1, 1),
    )


def one_vs_rest(epsilon: float, learner: Any = OneVsRest) -> Attack:
    """Return the attack on a label of OneVsRest, which moves two of its three members."""
    make = partial(learner, chooser(1.0), (0, 1, 2), epsilon)
    y = np.array([0, 1, 2, 0, 1])
    zero, one = (_alike(np.append(first, y)) for first in (0, 1))
    return attack_on(
        "OneVsRest, a label", make, zero, one, view=_members, distinguish=by_likelihood
    )


def active_learner(epsilon: float, learner: Any = ActiveLearner) -> Attack:
    """Return the attack on a label of ActiveLearner, which asks for one of two."""
    inner = math.log1p(2 * math.expm1(epsilon)) * (1 - 1e-6)
    make = partial(learner, chooser(inner), epsilon, n_labels=1)
    return attack_on("ActiveLearner, a label", make, _alike([0, 0]), _alike([1, 0]))


def boosted_label(
    epsilon: float,
    learner: Any = LabelBoost,
    *,
    n_labelled: int = 200,
    epsilon_boost: float | str = "auto",
) -> Attack:
    """Return the attack on a label of LabelBoost or IterLabelBoost.

    All rows are alike and the labels balanced, so that one label decides which of two hypotheses
    relabels all of them; then the base learns from so many rows that it tells which.

    Parameters
    ----------
    epsilon : float above 0
        What the learner may cost.
    learner : class
        ``LabelBoost`` or ``IterLabelBoost``, or a class derived from one of them.
    n_labelled : int of 1 or more
        Number of labels.
    epsilon_boost : float above 0, or "auto"
        What the draw of a hypothesis may cost, a parameter of the learner.
    """
    make = partial(
        learner, chooser(epsilon / 4), Thresholds(), epsilon, epsilon_boost=epsilon_boost
    )
    labels = np.arange(n_labelled) % 2
    zero, one = (_alike(np.append(first, labels[1:]), 8) for first in (0, 1))
    return attack_on(f"{learner.__name__}, a label", make, zero, one)


def boosted_point(
    epsilon: float,
    learner: Any = LabelBoost,
    *,
    concept: Callable[[Any], ConceptClass] = FiniteClass,
    n_labelled: int = 200,
    n_unlabelled: int = 8,
) -> Attack:
    """Return the attack on an unlabelled row of label boosting: a point that adds a dichotomy.

    Above all other rows, it adds one that labels them 0; below them, one that labels them 1. The
    draw hardly looks at labels, so each dichotomy is as likely as any other; what it says about
    the other rows, the base tells.

    Parameters
    ----------
    epsilon : float above 0
        What the learner may cost.
    learner : class
        The class of the learner that is attacked.
    concept : callable from a list of rules to ConceptClass
        Makes a class from a list of rules.
    n_labelled, n_unlabelled : int of 1 or more
        Numbers of rows.
    """
    make = partial(
        learner,
        chooser(min(0.1, epsilon / 2)),  # many rows agree: a little tells it all
        concept(RISING),
        epsilon,
        epsilon_boost=min(0.1, epsilon / 4),
    )
    X, y = _alike(np.arange(n_labelled) % 2, n_unlabelled)
    zero, one = X.copy(), X.copy()
    zero[-1], one[-1] = 1.0, 0.0
    return attack_on(f"{learner.__name__}, an unlabelled row", make, (zero, y), (one, y))


def accuracy_boost(epsilon: float) -> Attack:
    """Return the attack on a label of AccuracyBoost, with one block."""
    return a_label("AccuracyBoost", partial(AccuracyBoost, chooser(epsilon), blocks=1), epsilon)


def hypothesis_learner(epsilon: float) -> Attack:
    """Return the attack on a label of HypothesisLearner, with one public row."""
    make = partial(HypothesisLearner, chooser(epsilon), [[HERE]])
    return a_label("HypothesisLearner", make, epsilon)


def public_data_reduction(epsilon: float) -> Attack:
    """Return the attack on a label of PublicDataReduction, with one public row."""
    inner = SemiPrivateLearner(Thresholds(), epsilon)
    make = partial(PublicDataReduction, inner, [[HERE]], n_public=1, n_private=9, one_in=1)
    return a_label("PublicDataReduction", make, epsilon)


def _alike(labels: ArrayLike, unlabelled: int = 0) -> Rows:
    """Return rows that are all alike with these labels, and some without."""
    y = np.append(labels, [UNLABELLED] * unlabelled).astype(np.int64)
    return np.full((len(y), 1), HERE), y


def _label_here(model: Any) -> Any:
    return model.predict([[HERE]])


def _cut(model: Any) -> Any:
    """Return where the cut is: in the middle between the sanitized point and one of the ends."""
    return model.predict([[HERE / 2], [HERE], [HERE * 1.5]])


def _weights(model: Any) -> Any:
    return model.model_.weights.ravel()


def _members(model: Any) -> Any:
    return [int(member.predict([[HERE]])[0]) for member in model.members_]


def _pure(attack: Callable[[float], Attack]) -> Callable[..., Attack]:
    """Return an attack on something whose guarantee has no delta."""
    return lambda epsilon, delta: attack(epsilon)  # noqa: ARG005 (by name)


SEVERAL_ROUNDS: dict[str, Any] = {"learner": IterLabelBoost, "n_labelled": 2_000}
ATTACKS: dict[str, Sequence[Callable[..., Attack]]] = {
    "PrivateLearner": (_pure(private_learner),),
    "SemiPrivateLearner": (_pure(semi_private_learner),),
    "GenericLearner": (_pure(generic_label), _pure(generic_unlabelled)),
    "PrivateBooster": (_pure(private_booster),),
    "PrivateKernelClassifier": (
        kernel_classifier,
        partial(kernel_classifier, classes=(0, 1, 2)),
    ),
    "PrivateLogisticRegression": (logistic_regression,),
    "OneVsRest": (_pure(one_vs_rest),),
    "ActiveLearner": (_pure(active_learner),),
    "LabelBoost": (_pure(boosted_label), _pure(boosted_point)),
    "IterLabelBoost": (
        _pure(partial(boosted_label, **SEVERAL_ROUNDS)),
        _pure(partial(boosted_point, **SEVERAL_ROUNDS)),
    ),
    "AccuracyBoost": (_pure(accuracy_boost),),
    "HypothesisLearner": (_pure(hypothesis_learner),),
    "PublicDataReduction": (_pure(public_data_reduction),),
}
