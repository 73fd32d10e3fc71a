"""What learners share that are made of other learners."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import (
    UNLABELLED,
    Columns,
    Declared,
    cells_of_columns,
    check_rows,
    length_of,
    names_of,
    width_of,
)
from cumae.errors import (
    AnswersDrift,
    CumaeError,
    InvalidData,
    InvalidParameter,
    TooFewRows,
    UnknownCost,
)
from cumae.learners.base import ROLES_PUBLIC, Learner, Rows, Sizes, check_some
from cumae.live import forget
from cumae.privacy import Approximate, Cost, Guarantee, parallel
from cumae.privacy.guarantee import REPLACE_ONE
from cumae.privacy.plans import Plan
from cumae.privacy.validation import check_delta, check_epsilon
from cumae.randomness import SYSTEM, Source, source_for

ANSWERS_ONLY = (
    "{} answers a number of questions and publishes no model; wrap it into HypothesisLearner first."
)


class Wrapper(Learner):
    """A learner that hands its rows on to others, as they came."""

    def _rows(
        self,
        columns: Columns,
        X: ArrayLike,
        y: ArrayLike,
        X_public: ArrayLike | None,
        y_public: ArrayLike | None,
    ) -> Rows:
        del columns
        if y_public is not None:
            raise InvalidParameter(f"{type(self).__name__} takes no y_public; leave it out.")
        labels = self._check_y(y, unlabelled=self._hands_on_unlabelled)
        check_rows(length_of(X), labels)
        self._check_all(X, X_public)
        public: Any = X_public
        rows: Any = X
        return Rows(rows, labels, public)

    def _check_all(self, X: Any, X_public: Any) -> None:
        """Refuse every row that what is wrapped would refuse, before any of them is drawn.

        A refusal of the rows that were drawn would tell which ones they are.
        """
        check_readable(self._reader(), X, X_public)

    @abstractmethod
    def _reader(self) -> Any:
        """Return a copy of what is wrapped, which takes labels 0 and 1; None: it may read any."""

    @property
    @abstractmethod
    def _hands_on_unlabelled(self) -> bool:
        """Whether what is wrapped takes rows without a label."""

    def _encode(self, columns: Columns, X: ArrayLike) -> Any:
        del columns
        return X


@claim("REDUCE", "ITER", "ACTIVE")
def check_readable(reader: Any, X: Any, X_public: Any) -> None:
    """Refuse what a learner of ours would refuse in any row; of others, what is no finite number.

    Text is left to them.
    """
    if isinstance(reader, Learner):
        labels = np.zeros(length_of(X), dtype=np.int64)
        reader._rows(Columns.of(X, reader._declared()), X, labels, X_public, None)
    elif reader is not None:
        names = names_of(X) or range(width_of(X))
        for name, cells in zip(names, cells_of_columns(X), strict=True):
            for row, cell in enumerate(cells.tolist()):
                if cell is None or (isinstance(cell, float) and not math.isfinite(cell)):
                    raise InvalidData(
                        f"X is missing or infinite in row {row}, column {name}; replace it, or "
                        "drop the row."
                    )


@claim("REDUCE", "OVR")
def prepare(learner: Learner, rows: Rows) -> Plan:
    """Return what ``learner`` would do and cost on rows that are not encoded yet."""
    columns = Columns.of(rows.X, learner._declared())
    encoded = learner._rows(columns, rows.X, rows.y, rows.public, rows.public_y)
    return learner._plan(_sizes(rows, columns), encoded)


def _sizes(rows: Rows, columns: Columns) -> Sizes:
    labelled = int(np.count_nonzero(rows.y != UNLABELLED))
    public = 0 if rows.public is None else length_of(rows.public)
    return Sizes(labelled, len(rows.y) - labelled, public, columns)


def take_rows(X: Any, places: Integers) -> Any:
    """Return some rows of a list, an array or a data frame."""
    if hasattr(X, "iloc"):
        return X.iloc[places]
    return X[places] if isinstance(X, np.ndarray) else [X[place] for place in places]


@claim("REDUCE")
class Reduction(Wrapper):
    """A learner whose privacy is that of the one object that it wraps.

    The object may come from anywhere. It needs ``fit(X, y)``, ``predict(X)`` and, once fitted, a
    ``guarantee_`` of type :class:`~cumae.privacy.Guarantee`. Labels reach it as 0 and 1.
    """

    wraps: ClassVar[str] = "base"  # the parameter that holds the object
    splits: ClassVar[bool] = True  # whether the object sees other rows than ``fit``

    epsilon: float | None  # type: ignore[assignment]  # None: what the object says itself
    delta: float | None  # type: ignore[assignment]

    @property
    def _wrapped(self) -> Any:
        base = getattr(self, self.wraps)
        if isinstance(base, type) or not (
            callable(getattr(base, "fit", None)) and callable(getattr(base, "predict", None))
        ):
            raise InvalidParameter(
                f"{self.wraps} is {_kind(base)}; give an object with fit, predict and guarantee_, "
                "such as PrivateLearner(...)."
            )
        if self.splits and hasattr(type(base), "remaining_"):
            raise InvalidParameter(ANSWERS_ONLY.format(_kind(base)))
        for name in ("random_state", "budget"):
            if getattr(base, name, None) is not None:
                raise InvalidParameter(
                    f"{self.wraps} has a {name} of its own; leave it out there and give it to "
                    f"{type(self).__name__}."
                )
        return base

    @property
    def _hands_on_unlabelled(self) -> bool:
        base = self._wrapped
        if isinstance(base, Wrapper):
            return base._hands_on_unlabelled
        return bool(getattr(base, "takes_unlabelled", False))

    def _asked(self) -> tuple[float, float]:
        """Return epsilon and delta, as declared here or else by the object."""
        base = self._wrapped
        epsilon, delta = getattr(base, "epsilon", None), getattr(base, "delta", None)
        if isinstance(base, Reduction):
            epsilon, delta = base._asked()
        epsilon = epsilon if self.epsilon is None else self.epsilon
        delta = delta if self.delta is None else self.delta
        if epsilon is None:
            raise UnknownCost(
                f"{_kind(base)} does not say what it costs; declare epsilon= (and delta=) here."
            )
        return check_epsilon(epsilon), check_delta(0.0 if delta is None else delta)

    def _copy(self, source: Source) -> Any:
        base = clone(self._wrapped, safe=False)
        known = base.get_params(deep=False) if hasattr(base, "get_params") else {}
        wanted: dict[str, Any] = {"classes": (0, 1)}
        if self.random_state is not None:
            wanted["random_state"] = source
        wanted = {name: value for name, value in wanted.items() if name in known}
        if wanted:
            base.set_params(**wanted)
        return base

    def _reader(self) -> Any:
        base = self._copy(SYSTEM)
        return base if self.splits or isinstance(base, Learner) else None

    @abstractmethod
    def _runs(self, rows: Rows, source: Source) -> list[Rows]:
        """Return the rows for each fit of a copy, placed by coins, index and role only."""

    @abstractmethod
    def _publish(self, copies: list[Any], source: Source) -> dict[str, Any]:
        """Return what the fitted learner consists of."""

    @np.errstate(all="ignore")  # as other learners do
    def _fit(
        self, X: ArrayLike, y: ArrayLike, X_public: ArrayLike | None, y_public: ArrayLike | None
    ) -> Self:
        columns = Columns.of(X)
        rows = self._rows(columns, X, y, X_public, y_public)
        check_some(rows.y)
        plan = self._plan(_sizes(rows, columns), rows)
        source = source_for(self.random_state)
        if self.budget is not None:
            self.budget.spend(plan.cost, delta=plan.steps["delta"], what=type(self).__name__)
        forget(self)
        self._learn(rows, plan, source)
        self.columns_, self.n_features_in_ = columns, width_of(X)
        names = names_of(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.classes_ = np.array(self.classes)
        return self

    def _plan(self, sizes: Sizes, rows: Rows) -> Plan:
        del sizes
        epsilon, delta = self._asked()
        # Coins that are thrown away again: what runs cost depends on their sizes only.
        costs = [self._cost(run, epsilon, delta) for run in self._runs(rows, SYSTEM)]
        cost = parallel(*costs)
        if epsilon < math.inf and cost.delta(epsilon) > delta:
            raise InvalidParameter(
                f"{self.wraps} costs more than epsilon={epsilon!r}, delta={delta!r}; give it less, "
                f"or declare more for {type(self).__name__}."
            )
        return Plan(cost, ("REDUCE",), steps={"epsilon": epsilon, "delta": delta})

    def _cost(self, run: Rows, epsilon: float, delta: float) -> Cost:
        base = self._copy(SYSTEM)
        # What cannot plan is taken at its word, and held to it after the fit.
        return prepare(base, run).cost if isinstance(base, Learner) else Approximate(epsilon, delta)

    def _learn(self, rows: Rows, plan: Plan, source: Source) -> None:
        copies = []
        for run in self._runs(rows, source):
            base = self._copy(source)
            public = [part for part in (run.public, run.public_y) if part is not None]
            _fit_quietly(base, run.X, run.y, *public)
            self._promise(base, plan)
            copies.append(base)
        fitted = self._publish(copies, source)
        # Read again after the last answer: a guarantee may have moved with them.
        found = [self._promise(base, plan) for base in copies]
        for name, value in fitted.items():
            setattr(self, name, value)
        self.guarantee_ = _jointly(found, source.deterministic)

    def _promise(self, base: Any, plan: Plan) -> Guarantee:
        """Return the guarantee of a fitted copy if it keeps to the plan."""
        found = getattr(base, "guarantee_", None)
        if not isinstance(found, Guarantee):
            raise UnknownCost(
                f"{_kind(base)} has no guarantee_ after fit, or one that is no "
                "cumae.privacy.Guarantee; give an object that states one."
            )
        if found.epsilon > plan.steps["epsilon"] or found.delta > plan.steps["delta"]:
            raise InvalidParameter(
                f"{_kind(base)} has epsilon={found.epsilon!r}, delta={found.delta!r} after fit, "
                f"above the declared epsilon={plan.steps['epsilon']!r}, "
                f"delta={plan.steps['delta']!r}; the rows are used, and nothing is published."
            )
        if self.splits and "replaced" not in found.relation:
            raise UnknownCost(
                f"{_kind(base)} has the relation {found.relation!r}; {type(self).__name__} is "
                "proven for rows or labels that are replaced."
            )
        if self.splits and hasattr(base, "remaining_"):
            raise InvalidParameter(ANSWERS_ONLY.format(_kind(base)))
        if isinstance(base, Learner):
            return found
        trust = f"the guarantee that {type(base).__name__} states is true"
        return replace(found, assumptions=(*found.assumptions, trust))

    def _stored_params(self) -> dict[str, Any]:
        return super()._stored_params() | {self.wraps: None}  # what was wrapped is not stored


def _fit_quietly(base: Any, *rows: Any) -> None:
    """Fit; what another library says may hold values of the rows, and is dropped."""
    failed = False
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            base.fit(*rows)
        except CumaeError:
            raise
        except Exception:  # noqa: BLE001 - whatever another library raises
            failed = True
    for warning in heard:
        if issubclass(warning.category, TooFewRows | AnswersDrift):  # of ours, about public facts
            warnings.warn(warning.message, stacklevel=2)
    if failed:
        raise InvalidData(
            f"{_kind(base)} could not be fitted to these rows; try it by itself on rows that are "
            "not private."
        )


def _kind(base: object) -> str:
    return f"the class {base.__name__}" if isinstance(base, type) else f"a {type(base).__name__}"


@claim("REDUCE")
def _jointly(parts: Sequence[Guarantee], void: bool) -> Guarantee:
    """Return one guarantee for runs that each saw rows of their own."""
    first = parts[0]
    if len({(part.protects, part.relation) for part in parts}) > 1:
        raise UnknownCost("the copies protect different things; give a base that does not.")
    together = () if len(parts) == 1 else ("PAR",)
    named = [name for part in parts for name in part.claims]
    rhos = [part.rho for part in parts if part.rho is not None]
    return replace(
        first,
        epsilon=max(part.epsilon for part in parts),
        delta=max(part.delta for part in parts),
        claims=tuple(dict.fromkeys(("REDUCE", *together, *named, "RAND"))),
        assumptions=tuple(dict.fromkeys(said for part in parts for said in part.assumptions)),
        rho=max(rhos) if len(rhos) == len(parts) else None,
        void=void or any(part.void for part in parts),
    )


KNOWN_RELATIONS = (REPLACE_ONE, ROLES_PUBLIC)


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
