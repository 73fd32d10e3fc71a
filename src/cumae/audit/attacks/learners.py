"""Attacks on published learners: small data sets in which one row decides as much as it can.

The model is public, so the adversary needs no queries: it looks at the labels that the model gives
to points of its choice, or at the weights. Most learners draw a hypothesis by the exponential
mechanism; with two candidates, rows that are all alike and nearly balanced labels, one label moves
their odds as far as it may.

Beside the column that matters, tables have columns of numbers, categories and booleans whose cells
may be missing, and are. In one attack on each learner the row that differs has these cells: then
candidates tell a number from a missing one, and the row moves their odds as far as a label does.
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
from cumae.concepts import ConceptClass, FiniteClass, Stump, Stumps, Thresholds
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
HERE = 0.5  # where rows are, in the column that matters
MAY_LACK: list[Any] = [(0, 1, "missing"), [0, 1, None], {"boolean": True, "missing": True}]
COLUMNS = [(0, 1), *MAY_LACK]
LACKING, CELLS = (HERE, np.nan, np.nan, np.nan), (0.0, 1.0, 1.0)  # a row, and what it lacks
BOUNDS: dict[str, Any] = {"columns": COLUMNS, "n_points": 1}
# Rules that label a row which lacks its number 1, and one that has it 0, or the other way round:
# a missing number is replaced by the middle of its range, unless rows decide.
TELLING = (Stump(1, 0.25), Stump(1, 0.25, above=False))
# Rules that never turn back to 0: of a point below all rows, only those that label the rows 1 can
# make two; of one above them, only those that label them 0.
RISING = (
    Stump(0, None, above=True),
    Stump(0, None, above=False),
    Stump(0, HERE / 2),
    Stump(0, HERE * 1.5),
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
    >>> from cumae.audit.attacks.learners import LACKING, LearnerDriver, chooser
    >>> from cumae.learners import ActiveLearner
    >>> driver = LearnerDriver(lambda: ActiveLearner(chooser(90.0), epsilon=90.0, n_labels=2))
    >>> driver.train([LACKING] * 3, [1, 1, 1])
    >>> driver.published().predict([LACKING])
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


def rules(missing: bool) -> ConceptClass:
    """Return stumps, which label all rows alike here, or those that look at a missing number."""
    return FiniteClass(TELLING) if missing else Stumps()


def chooser(epsilon: float, missing: bool = False) -> PrivateLearner:
    """Return a learner that draws among rules, half of which label the rows 1.

    Parameters
    ----------
    epsilon : float above 0
        What it costs.
    missing : bool
        Whether the rules look at a number that may be missing.
    """
    return PrivateLearner(rules(missing), epsilon, **BOUNDS)


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
    name: str,
    make: Callable[[], Any],
    epsilon: float,
    *,
    unlabelled: int = 0,
    missing: bool = False,
    **options: Any,
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
    missing : bool
        Whether the row that differs has cells that all others lack, and no other label.
    **options : object
        Further options of ``attack_on``.
    """
    behind = int(2 / epsilon)
    zero, one = _worlds(np.append(np.zeros(behind + 3), 1), unlabelled, missing=missing)
    return attack_on(f"{name}, {_what(missing)}", make, zero, one, **options)


def private_learner(
    epsilon: float, learner: Any = PrivateLearner, *, missing: bool = False
) -> Attack:
    """Return the attack on a label or a missing cell of PrivateLearner.

    Parameters
    ----------
    epsilon : float
        What the learner promises.
    learner : callable
        What is attacked: the class, or one with a planted bug.
    missing : bool
        Whether the differing row lacks cells, and has not another label.
    """
    make = partial(learner, rules(missing), epsilon, **BOUNDS)
    return a_label("PrivateLearner", make, epsilon, missing=missing)


def semi_private_learner(
    epsilon: float, learner: Any = SemiPrivateLearner, *, missing: bool = False
) -> Attack:
    """Return the attack on a label or a missing cell of SemiPrivateLearner, with a public row.

    Parameters
    ----------
    epsilon : float
        What the learner promises.
    learner : callable
        What is attacked: the class, or one with a planted bug.
    missing : bool
        Whether the differing row lacks cells, and has not another label.
    """
    make = partial(learner, rules(missing), epsilon, columns=COLUMNS)
    return a_label("SemiPrivateLearner", make, epsilon, missing=missing, public=[LACKING])


def generic_label(
    epsilon: float, learner: Any = GenericLearner, *, missing: bool = False
) -> Attack:
    """Return the attack on a label or a missing cell of GenericLearner.

    Parameters
    ----------
    epsilon : float
        What the learner promises.
    learner : callable
        What is attacked: the class, or one with a planted bug.
    missing : bool
        Whether the differing row lacks cells, and has not another label.
    """
    make = partial(learner, rules(missing), epsilon, **BOUNDS)
    return a_label("GenericLearner", make, epsilon, missing=missing, unlabelled=2)


def generic_unlabelled(epsilon: float, learner: Any = GenericLearner) -> Attack:
    """Return the attack on an unlabelled row of GenericLearner, which moves the median.

    Labels say that the cut is somewhere between the ends; where it is tells the median. There is
    one column, as each further one would take its share of epsilon for a median of its own.
    """
    make = partial(learner, Thresholds(), epsilon, columns=[(0, 1)], n_points=1)
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


def private_booster(
    epsilon: float, learner: Any = PrivateBooster, *, missing: bool = False
) -> Attack:
    """Return the attack on a label or a missing cell of PrivateBooster, with one round.

    Parameters
    ----------
    epsilon : float
        What the learner promises.
    learner : callable
        What is attacked: the class, or one with a planted bug.
    missing : bool
        Whether the differing row lacks cells, and has not another label.
    """
    concept = rules(missing) if missing else None
    make = partial(learner, epsilon, columns=COLUMNS, n_cuts=1, n_rounds=1, concept_class=concept)
    return a_label("PrivateBooster", make, epsilon, missing=missing)


def logistic_regression(
    epsilon: float,
    delta: float,
    learner: Any = PrivateLogisticRegression,
    *,
    missing: bool = False,
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
    missing : bool
        Whether the row with another label also has cells that all others lack.
    """
    make = partial(learner, epsilon, delta, columns=[(-1, 1), *MAY_LACK], n_steps=1)
    rows = _lacking([1.0, 1.0, -1.0, -1.0]), np.array([0, 1, 0, 1])
    return attack_on(
        f"PrivateLogisticRegression, {_what(missing)}",
        make,
        rows,
        _other(rows, missing=missing, label=True),
        view=_weights,
        distinguish=by_training,
    )


def kernel_classifier(
    epsilon: float,
    delta: float,
    learner: Any = PrivateKernelClassifier,
    *,
    classes: Sequence[int] = (0, 1),
    missing: bool = False,
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
    missing : bool
        Whether the row with another label also has cells that all others lack.
    """
    columns = [(-1, 1), *MAY_LACK]
    make = partial(learner, epsilon, delta, columns=columns, n_waves=0, classes=classes)
    half = len(classes) * (2 + round(40 / epsilon))  # with fewer, trees would be fitted
    X = _lacking(np.repeat([1.0, -1.0], half))
    rows = X, np.resize(classes, len(X))
    shown = _lacking(np.linspace(-1, 1, 50))
    shown[::2, 1:] = CELLS
    several = "" if len(classes) == 2 else f" of {len(classes)} classes"
    return attack_on(
        f"PrivateKernelClassifier, {_what(missing)}{several}",
        make,
        rows,
        _other(rows, missing=missing, label=True),
        view=_weights,
        distinguish=by_training,
        public=shown,
    )


def threshold(
    epsilon: float, delta: float = 0.0, learner: Any = PrivateBooster, **options: Any
) -> Attack:
    """Return the attack on a label among the rows that a threshold is chosen with.

    All rows are alike and of the first class, but for one. The model is public, and so the
    adversary knows in which bin they are, and looks at the two counts that the label moves.

    Parameters
    ----------
    epsilon, delta : float
        What the learner may cost.
    learner : class
        The class of the learner that is attacked.
    **options : object
        Further parameters of the learner.
    """
    options |= {"columns": COLUMNS, "sensitivity": 0.5, "held_out": 0.9}
    make = partial(learner, epsilon, delta, **options)
    zero, one = _worlds(np.zeros(40 + math.ceil(40 / epsilon)), missing=False)
    name = f"{learner.__name__}, a label among the rows of a threshold"
    return attack_on(name, make, zero, one, view=_counts_here)


def one_vs_rest(epsilon: float, learner: Any = OneVsRest, *, missing: bool = False) -> Attack:
    """Return the attack on a label, which moves two of three members, or on a missing cell.

    Parameters
    ----------
    epsilon : float
        What the learner promises.
    learner : callable
        What is attacked: the class, or one with a planted bug.
    missing : bool
        Whether the differing row lacks cells, and has not another label.
    """
    make = partial(learner, chooser(1.0, missing), (0, 1, 2), epsilon)
    zero, one = _worlds([0, 0, 1, 2, 0, 1], missing=missing)
    what = f"OneVsRest, {_what(missing)}"
    return attack_on(what, make, zero, one, view=_members, distinguish=by_likelihood)


def active_learner(
    epsilon: float, learner: Any = ActiveLearner, *, missing: bool = False
) -> Attack:
    """Return the attack on a row of ActiveLearner, which asks for one of two labels.

    Parameters
    ----------
    epsilon : float
        What the learner promises.
    learner : callable
        What is attacked: the class, or one with a planted bug.
    missing : bool
        Whether the differing row lacks cells, and has not another label.
    """
    inner = math.log1p(2 * math.expm1(epsilon)) * (1 - 1e-6)
    make = partial(learner, chooser(inner, missing), epsilon, n_labels=1)
    zero, one = _worlds([0, 0], missing=missing)
    return attack_on(f"ActiveLearner, {_what(missing)}", make, zero, one)


def boosted_label(
    epsilon: float,
    learner: Any = LabelBoost,
    *,
    n_labelled: int = 200,
    epsilon_boost: float | str = "auto",
    missing: bool = False,
) -> Attack:
    """Return the attack on a label or a missing cell of LabelBoost or IterLabelBoost.

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
    missing : bool
        Whether the row that differs has cells that all others lack, and no other label.
    """
    inner = chooser(epsilon / 4, missing)
    make = partial(learner, inner, rules(missing), epsilon, epsilon_boost=epsilon_boost)
    zero, one = _worlds(np.arange(n_labelled) % 2, 8, missing=missing)
    return attack_on(f"{learner.__name__}, {_what(missing)}", make, zero, one)


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
    zero[-1, 0], one[-1, 0] = 1.0, 0.0
    return attack_on(f"{learner.__name__}, an unlabelled row", make, (zero, y), (one, y))


def accuracy_boost(epsilon: float, *, missing: bool = False) -> Attack:
    """Return the attack on a label or a missing cell of AccuracyBoost, with one block."""
    make = partial(AccuracyBoost, chooser(epsilon, missing), blocks=1)
    return a_label("AccuracyBoost", make, epsilon, missing=missing)


def hypothesis_learner(epsilon: float, *, missing: bool = False) -> Attack:
    """Return the attack on a label or a missing cell of HypothesisLearner, with one public row."""
    make = partial(HypothesisLearner, chooser(epsilon, missing), [LACKING])
    return a_label("HypothesisLearner", make, epsilon, missing=missing)


def public_data_reduction(epsilon: float, *, missing: bool = False) -> Attack:
    """Return the attack on a row of PublicDataReduction, with one public row."""
    inner = SemiPrivateLearner(rules(missing), epsilon, columns=COLUMNS)
    make = partial(PublicDataReduction, inner, [LACKING], n_public=1, n_private=9, one_in=1)
    return a_label("PublicDataReduction", make, epsilon, missing=missing)


def _what(missing: bool) -> str:
    return "a missing cell" if missing else "a label"


def _worlds(labels: ArrayLike, unlabelled: int = 0, *, missing: bool) -> tuple[Rows, Rows]:
    """Return rows that are all alike, the first of them labelled 0, and a neighbour of them."""
    zero = _alike(labels, unlabelled)
    return zero, _other(zero, missing=missing, label=not missing)


def _other(rows: Rows, *, missing: bool, label: bool) -> Rows:
    """Return a neighbour: the first row has label 1, or cells that all others lack, or both."""
    X, y = rows[0].copy(), rows[1].copy()
    if missing:
        X[0, 1:] = CELLS
    if label:
        y[0] = 1
    return X, y


def _alike(labels: ArrayLike, unlabelled: int = 0) -> Rows:
    """Return rows that are all alike with these labels, and some without."""
    y = np.append(labels, [UNLABELLED] * unlabelled).astype(np.int64)
    return _lacking(np.full(len(y), HERE)), y


def _lacking(column: ArrayLike) -> NDArray[np.float64]:
    """Return rows with this column in front of cells that are all missing."""
    first = np.asarray(column, dtype=np.float64)
    return np.column_stack([first, np.full((len(first), len(MAY_LACK)), np.nan)])


def _label_here(model: Any) -> Any:
    return model.predict([LACKING])


def _cut(model: Any) -> Any:
    """Return where the cut is: in the middle between the sanitized point and one of the ends."""
    return model.predict([[HERE / 2], [HERE], [HERE * 1.5]])


def _weights(model: Any) -> Any:
    return model.model_.weights.ravel()


def _counts_here(model: Any) -> Any:
    """Return how many of the two counts where rows are tell of a row of the second class."""
    found = model.score_counts_
    place = np.searchsorted(found.edges[1:-1], model.predict_proba([LACKING])[0, 1])
    first, second = found.counts[:, place]
    return float(second > 0) + float(first < found.rows)


def _members(model: Any) -> Any:
    return [int(member.predict([LACKING])[0]) for member in model.members_]


def _pure(attack: Callable[[float], Attack]) -> Callable[..., Attack]:
    """Return an attack on something whose guarantee has no delta."""
    return lambda epsilon, delta: attack(epsilon)  # noqa: ARG005 (by name)


def _both(attack: Callable[..., Attack]) -> tuple[Callable[..., Attack], ...]:
    """Return the attacks on a label and on a missing cell of something without a delta."""
    return _pure(attack), _pure(partial(attack, missing=True))


SEVERAL_ROUNDS: dict[str, Any] = {"learner": IterLabelBoost, "n_labelled": 2_000}
ATTACKS: dict[str, Sequence[Callable[..., Attack]]] = {
    "PrivateLearner": _both(private_learner),
    "SemiPrivateLearner": _both(semi_private_learner),
    "GenericLearner": (*_both(generic_label), _pure(generic_unlabelled)),
    "PrivateBooster": (
        *_both(private_booster),
        partial(threshold, n_rounds=1, concept_class=rules(missing=False)),
    ),
    "PrivateKernelClassifier": (
        kernel_classifier,
        partial(kernel_classifier, classes=(0, 1, 2)),
        partial(kernel_classifier, missing=True),
        partial(threshold, learner=PrivateKernelClassifier, n_waves=0),
    ),
    "PrivateLogisticRegression": (
        logistic_regression,
        partial(logistic_regression, missing=True),
        partial(threshold, learner=PrivateLogisticRegression),
    ),
    "OneVsRest": _both(one_vs_rest),
    "ActiveLearner": _both(active_learner),
    "LabelBoost": (*_both(boosted_label), _pure(boosted_point)),
    "IterLabelBoost": (
        *_both(partial(boosted_label, **SEVERAL_ROUNDS)),
        _pure(partial(boosted_point, **SEVERAL_ROUNDS)),
    ),
    "AccuracyBoost": _both(accuracy_boost),
    "HypothesisLearner": _both(hypothesis_learner),
    "PublicDataReduction": _both(public_data_reduction),
}
