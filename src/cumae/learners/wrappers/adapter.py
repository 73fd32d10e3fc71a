"""Private classifiers of other libraries as learners, and what wrappers ask of their base."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cumae.claims import claim
from cumae.data.checks import Floats, Integers
from cumae.data.columns import Columns, Declared, length_of
from cumae.errors import InvalidData, InvalidParameter
from cumae.learners.base import ROLES_PUBLIC, UNLABELLED, Learner, Plan, Rows, Sizes
from cumae.learners.cuts import refuse_infinite
from cumae.learners.wrappers.base import Wrapper
from cumae.privacy import REPLACE_ONE, Approximate, Budget, Cost, Guarantee, Pure
from cumae.privacy.validation import check_delta, check_epsilon
from cumae.randomness import Source, integers

KNOWN_RELATIONS = (REPLACE_ONE, ROLES_PUBLIC)


class Adapter(Learner):
    """Take a private classifier of another library at its word.

    The guarantee is the one that the classifier states; that it is true is listed under its
    assumptions. It has to cover whether the classifier fails, as well. Labels reach it as 0 and 1,
    and cells as finite numbers.

    Parameters
    ----------
    estimator
        Object with ``fit``, ``predict`` and ``get_params``, such as a classifier of diffprivlib.
        If it has an ``epsilon`` (or a ``delta``), that must be the number given here.
    epsilon, delta
        What it promises for one replaced row, the number of rows being public. (If it speaks of
        rows that are added or removed, its promise for a replaced one is weaker: do not wrap it.)
    assumption
        What has to hold for the promise, in words; by default, that the promise is kept.
    columns, classes, budget, random_state
        As in :class:`~cumae.learners.PrivateLearner`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from cumae.learners.wrappers.adapter import Adapter
    >>> learner = Adapter(DummyClassifier(strategy="constant", constant=1), epsilon=0.0)
    >>> learner.fit([[1.0], [2.0]], [0, 1]).predict([[3.0]])
    array([1])
    >>> learner.guarantee_.assumptions
    ('DummyClassifier keeps its promise of epsilon = 0.0, delta = 0.0 for one replaced row',)
    """

    def __init__(
        self,
        estimator: Any,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        assumption: str | None = None,
        columns: Declared = None,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.assumption = assumption
        self.columns = columns
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    def _encode(self, columns: Columns, X: ArrayLike) -> NDArray[Any]:
        table = columns.encode(X)
        refuse_infinite(table, "classifiers of other libraries")  # whichever rows they will get
        return table

    def _plan(self, sizes: Sizes, rows: Rows) -> Plan:
        del sizes, rows
        estimator = self.estimator
        if isinstance(estimator, type) or not all(
            callable(getattr(estimator, name, None)) for name in ("fit", "predict", "get_params")
        ):
            raise InvalidParameter(
                "estimator has no fit, predict or get_params; give a classifier, not its class."
            )
        inside = estimator.get_params(deep=True)  # also of the steps of a pipeline
        for path, stated in inside.items():
            name = path.rpartition("__")[2]
            if name in ("epsilon", "delta") and stated not in (None, getattr(self, name)):
                raise InvalidParameter(
                    f"{name}={getattr(self, name)!r}, but the estimator has {path}={stated!r}; "
                    "give the same number to both."
                )
        seeds = [inside[path] for path in inside if path.rpartition("__")[2] == "random_state"]
        if self.random_state is None and any(seed is not None for seed in seeds):
            raise InvalidParameter(
                "the estimator has a random_state of its own, which voids its promise; leave it "
                "out."
            )
        promise = (
            f"{type(estimator).__name__} keeps its promise of epsilon = {self.epsilon!r}, "
            f"delta = {self.delta!r} for one replaced row"
        )
        assumption = promise if self.assumption is None else self.assumption
        return Plan(pair_cost(Approximate(self.epsilon, self.delta)), (), assumptions=(assumption,))

    def _learn(self, rows: Rows, plan: Plan, source: Source) -> None:
        del plan
        estimator = clone(self.estimator)
        if source.deterministic and "random_state" in estimator.get_params(deep=False):
            estimator.set_params(random_state=integers(2**31, source=source))
        failed = False
        # Its warnings and errors may hold values of the data, so their text is dropped.
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                estimator.fit(rows.X, rows.y)
            except Exception:  # noqa: BLE001 - whatever another library raises
                failed = True
        if failed:
            raise InvalidData(
                f"{type(estimator).__name__} could not be fitted to these rows; try it by itself "
                "on rows that are not private."
            )
        if any(warning.category.__name__ == "PrivacyLeakWarning" for warning in heard):
            raise InvalidParameter(
                f"{type(estimator).__name__} says that it leaks, because bounds are missing; give "
                "it all bounds that it asks for."
            )
        self.estimator_ = estimator

    def _labels(self, table: NDArray[Any]) -> Integers:
        return np.asarray(self.estimator_.predict(table) == 1, dtype=np.int64)


def _inner_has(name: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(getattr(self, "learner_", self.base), name)


class Published(Wrapper):
    """A wrapper that publishes what one fitted base says, scores included."""

    base: Any
    learner_: Learner

    @available_if(_inner_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the log odds of the second class, if the base has them."""
        check_is_fitted(self, "guarantee_")
        scores: Floats = self.learner_.decision_function(X)
        return scores

    @available_if(_inner_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the chances of both classes, if the base has them."""
        check_is_fitted(self, "guarantee_")
        chances: Floats = self.learner_.predict_proba(X)
        return chances


def check_base(base: Any) -> Learner:
    """Return a base learner whose own parameters say what it costs."""
    if not isinstance(base, Learner):
        kind = f"the class {base.__name__}" if isinstance(base, type) else type(base).__name__
        raise InvalidParameter(
            f"base is {kind}; give a learner, such as PrivateLearner(...), or wrap a private "
            "classifier of another library into Adapter(...)."
        )
    for name in ("random_state", "budget"):
        if getattr(base, name, None) is not None:
            raise InvalidParameter(
                f"base has a {name} of its own; leave it out there, and give it to the learner "
                "around it."
            )
    if None in (base.epsilon, base.delta):
        raise InvalidParameter("base has no epsilon or delta of its own; give it numbers.")
    check_epsilon(base.epsilon)
    check_delta(base.delta)
    return base


def check_outer_delta(base: Learner, delta: float) -> None:
    """Refuse a base with a delta inside of a learner that has none."""
    if base.delta > 0 and delta == 0:
        raise InvalidParameter(
            f"delta=0, but the base needs delta={base.delta!r}; give a delta here as well."
        )


def uses_unlabelled(base: Learner) -> bool:
    """Tell whether rows without a label are of use to a base."""
    return base._hands_on_unlabelled if isinstance(base, Wrapper) else base.takes_unlabelled


def copy_base(base: Learner, columns: Declared, source: Source | None = None) -> Learner:
    """Return a copy that takes labels 0 and 1, and these columns unless they are None."""
    copy: Learner = clone(base)
    wanted: dict[str, Any] = {"classes": (0, 1), "random_state": source}
    if columns is not None:
        wanted["columns"] = columns
    known = copy.get_params(deep=False)
    copy.set_params(**{name: value for name, value in wanted.items() if name in known})
    return copy


@claim("ITER", "ACTIVE")
def plan_base(base: Learner, rows: Rows) -> Plan:
    """Return what a copy of the base will do on rows of these sizes, if a wrapper can use that."""
    columns = Columns.of(rows.X, base._declared())
    labelled = int(np.count_nonzero(rows.y != UNLABELLED))
    public = 0 if rows.public is None else length_of(rows.public)
    sizes = Sizes(labelled, len(rows.y) - labelled, public, columns)
    plan = base._plan(sizes, base._rows(columns, rows.X, rows.y, rows.public, None))
    if plan.relation not in KNOWN_RELATIONS:
        raise InvalidParameter(
            f"base promises something for neighbours of which {plan.relation}; it must protect a "
            "whole replaced row."
        )
    return plan


@claim("ITER", "ACTIVE")
def fit_base(base: Learner, rows: Rows, plan: Plan) -> Learner:
    """Fit a copy and hold it to what was planned."""
    public = [] if rows.public is None else [rows.public]
    base.fit(rows.X, rows.y, *public)
    found = base.guarantee_
    if found.epsilon > plan.cost.epsilon(base.delta) or found.delta > base.delta:
        raise AssertionError("the base costs more than it planned")
    base.set_params(random_state=None)
    return base


def restate(learner: Learner, guarantee: Guarantee) -> None:
    """Let a learner, and all learners inside of it, promise what holds for the whole only."""
    learner.guarantee_ = guarantee
    for value in vars(learner).values():
        for inner in value if isinstance(value, list | tuple) else [value]:
            if isinstance(inner, Learner) and hasattr(inner, "guarantee_"):
                restate(inner, guarantee)


@claim("ITER", "ACTIVE")
def read_pair(plan: Plan, base: Learner) -> Approximate:
    """Return the epsilon that a plan costs at the base's own delta, with that delta."""
    if plan.cost.pure < np.inf:
        return Approximate(plan.cost.pure, 0.0)
    read = plan.cost.epsilon(base.delta)
    if plan.cost.delta(base.epsilon) <= base.delta:
        read = min(read, base.epsilon)  # reading an epsilon off a curve rounds up by a hair
    return Approximate(read, base.delta)


def pair_cost(pair: Approximate) -> Cost:
    """Return a pair without a delta as what it is: pure."""
    return Pure(pair.eps) if pair.failure == 0 else pair
