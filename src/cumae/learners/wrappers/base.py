"""One way to check, copy, plan and fit what a learner is made of: its base."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import Hypothesis
from cumae.data import (
    Columns,
    Declared,
    RowSource,
    SomeRows,
    cells_of_columns,
    is_missing,
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
    warn,
)
from cumae.estimators import PrivateEstimator, available_if, inside, own_clone
from cumae.learners.base import ROLES_PUBLIC, Learner, LearningPlan, Rows, Sizes
from cumae.made_up import few_labels
from cumae.parameters import Object, check_parameters, described
from cumae.privacy import Approximate, Guarantee
from cumae.privacy.guarantee import REPLACE_ONE
from cumae.privacy.plans import Plan
from cumae.quiet import is_failure
from cumae.randomness import SYSTEM, Source
from cumae.workers import in_memory

KNOWN_RELATIONS = (REPLACE_ONE, ROLES_PUBLIC)

# What the parameter that holds the base may be.
LEARNER = Object(
    "Learner",
    (Learner,),
    "a learner, such as PrivateLearner(...), or wrap a private classifier of another library into "
    "Adapter(...)",
)
ANY_BASE = Object(
    "object with fit, predict and guarantee_",
    such_as="an object with fit, predict and guarantee_, such as PrivateLearner(...)",
    methods=("fit", "predict"),
)


def check_base(base: Any, name: str, around: str) -> None:
    """Refuse a base with a seed or an account of its own, or with wrong parameters.

    Parameters
    ----------
    base : object
        What a wrapper is made of.
    name : str
        The wrapper's parameter that holds it.
    around : str
        The class of the wrapper.

    Raises
    ------
    InvalidParameter
        If the base cannot be wrapped as it is.
    """
    for parameter in ("random_state", "budget"):
        if getattr(base, parameter, None) is not None:
            raise InvalidParameter(
                f"{name} has a {parameter} of its own; leave it out there and give it to {around}."
            )
    if isinstance(base, Learner):
        check_parameters(base, base.parameter_table)


def copy_base(base: Any, source: Source = SYSTEM, **wanted: Any) -> Any:
    """Return an unfitted copy with other parameters.

    Parameters
    ----------
    base : object
        A learner, or an estimator of another library.
    source : Source
        Where its coins come from; the production source is left out, as that is the default.
    **wanted : object
        Parameters to set. Those that the base does not have are left out.

    Returns
    -------
    object
        The copy.

    Examples
    --------
    >>> from cumae.learners import PrivateLearner
    >>> from cumae.learners.wrappers.base import copy_base
    >>> copy = copy_base(PrivateLearner(), epsilon=0.5, delta=1e-6)  # it has no delta
    >>> copy.epsilon, copy.delta
    (0.5, 0.0)
    """
    copy = own_clone(base, safe=False)
    known = copy.get_params(deep=False) if hasattr(copy, "get_params") else {}
    if source is not SYSTEM:
        wanted["random_state"] = source
    found = {name: value for name, value in wanted.items() if name in known}
    if found:
        copy.set_params(**found)
    return copy


@claim("REDUCE", "OVR", "ITER", "ACTIVE")
def rows_for_base(base: Learner, rows: Rows, labelled: int, unlabelled: int) -> tuple[Sizes, Rows]:
    """Return what a learner would decide from: sizes, and rows as it reads them.

    Parameters
    ----------
    base : Learner
        A copy of a base.
    rows : Rows
        Rows that are not encoded yet. Of the private ones, the first stands for all: what a base
        decides depends on sizes, types of columns and public rows.
    labelled, unlabelled : int
        How many private rows the base would get, with a label and without one.

    Returns
    -------
    Sizes
        With these numbers.
    Rows
        One private row of each kind, and all public rows.
    """
    labels = few_labels(base.classes, labelled, unlabelled)
    first = take_rows(rows.X, np.zeros(len(labels), dtype=np.int64))
    sizes, read = base.read_rows(first, labels, rows.public, rows.public_y)
    return replace(sizes, labelled=labelled, unlabelled=unlabelled), read


@claim("REDUCE", "OVR", "ITER", "ACTIVE")
def plan_base(base: Learner, rows: Rows, labelled: int, unlabelled: int) -> LearningPlan[Any]:
    """Return what a learner would do and cost.

    Parameters
    ----------
    base : Learner
        A copy of a base.
    rows : Rows
        Rows that are not encoded yet. Of the private ones only names and types are used.
    labelled, unlabelled : int
        How many private rows it would get.

    Returns
    -------
    LearningPlan
        What a fit of the base to such rows would do, its cost, its facts and its work.
    """
    return base.decide(*rows_for_base(base, rows, labelled, unlabelled))


@claim("OVR", "ITER", "ACTIVE")
def fit_base(base: Any, *rows: Any) -> set[str]:
    """Fit; what another library says may hold values of the rows, and is dropped.

    Parameters
    ----------
    base : object
        What is fitted.
    *rows : object
        What its ``fit`` gets.

    Returns
    -------
    set of str
        Names of the classes of warnings that were dropped.

    Raises
    ------
    InvalidData
        If the base raises an error that is none of ours.
    """
    failed = False
    with warnings.catch_warnings(record=True) as heard, in_memory():
        warnings.simplefilter("always")
        try:
            with inside():
                base.fit(*rows)
        except CumaeError:
            raise
        except BaseException as error:
            if not is_failure(type(error)):
                raise
            failed = True
    # Of ours, about public facts; of few rows, a wrapper has warned already.
    ours = AnswersDrift if isinstance(base, Learner) else (AnswersDrift, TooFewRows)
    for warning in heard:
        if issubclass(warning.category, ours):
            warn(warning.message)
    if failed:
        raise InvalidData(
            f"{described(base)} could not be fitted to these rows; try it by itself on rows that "
            "are not private."
        )
    return {warning.category.__name__ for warning in heard}


@claim("REDUCE", "ITER", "ACTIVE")
def check_all_rows(reader: Any, X: Any, X_public: Any) -> None:
    """Refuse every row that a base would refuse, before any of them is drawn.

    A refusal of the rows that were drawn would tell which ones they are. Learners of ours read all
    rows by their own rule. For others, cells that are missing or infinite are refused, and text is
    left to them.
    """
    if isinstance(reader, Learner):
        reader.read_rows(X, np.zeros(length_of(X), dtype=np.int64), X_public)
    elif reader is not None:
        names = names_of(X) or range(width_of(X))
        for name, cells in zip(names, cells_of_columns(X), strict=True):
            for row, cell in enumerate(cells.tolist()):
                if is_missing(cell) or (isinstance(cell, float) and math.isinf(cell)):
                    raise InvalidData(
                        f"X is missing or infinite in row {row}, column {name}; replace it, or "
                        "drop the row."
                    )


def take_rows(X: Any, places: Integers) -> Any:
    """Return some rows of a list, an array or a data frame."""
    if isinstance(X, RowSource):
        return SomeRows(X, places)
    if hasattr(X, "iloc"):
        return X.iloc[places]
    return X[places] if isinstance(X, np.ndarray) else [X[place] for place in places]


class Wrapper(Learner):
    """A learner that hands its rows on to copies of its base, as they came.

    Labels reach the copies as 0 and 1, and -1 where there is none.
    """

    wraps: ClassVar[str] = "base"  # the parameter that holds the base

    def _checked_base(self) -> Any:
        """Return the base if it can be wrapped."""
        base = getattr(self, self.wraps)
        check_base(base, self.wraps, type(self).__name__)
        return base

    @property
    def takes_unlabelled(self) -> bool:
        """True if the base can use rows without a label."""
        return bool(getattr(self._checked_base(), "takes_unlabelled", False))

    @property
    def is_exact(self) -> bool:
        """True if all that it published is exact; a table of labels is."""
        parts = [getattr(self, name, None) for name in ("learner_", "model_")]
        parts += getattr(self, "members_", [])
        return all(getattr(part, "is_exact", False) for part in parts if part is not None)

    def _copy(self, source: Source = SYSTEM, **wanted: Any) -> Any:
        """Return a copy of the base that takes labels 0 and 1, and the columns declared here."""
        if self.columns is not None:
            wanted["columns"] = self.columns
        return copy_base(self._checked_base(), source, classes=(0, 1), **wanted)

    def known_columns(self) -> Declared:
        """Return what is declared about the columns, here or in the base."""
        base = self._checked_base()
        if self.columns is not None:
            return self.columns
        return base.known_columns() if isinstance(base, Learner) else getattr(base, "columns", None)

    def _reader(self) -> Any:
        """Return what reads all rows, before any is drawn; None if none of them can be refused."""
        return self._copy()

    def _columns_of(self, X: Any) -> Columns:
        # Types are the base's concern.
        return Columns(self.declared_columns(), names_of(X), width_of(X))

    def check_contents(self, X: Any) -> None:
        """Let the base refuse columns of which nothing is left as it reads them."""
        base = self._copy()
        if isinstance(base, PrivateEstimator):
            base.check_contents(X)

    def check_queries(self, X: Any, queries: Any) -> None:
        """Let the base refuse queries that it cannot read."""
        super().check_queries(X, queries)
        base = self._copy()
        if isinstance(base, PrivateEstimator):
            base.check_queries(X, queries)

    def _encode(self, columns: Columns, X: Any) -> Any:
        return columns.arrange(X, type(self).__name__)

    def _check_readable(self, rows: Rows) -> None:
        if rows.public_y is not None:
            raise InvalidParameter(f"{type(self).__name__} takes no y_public; leave it out.")
        check_all_rows(self._reader(), rows.X, rows.public)

    @claim("REDUCE", "OVR", "ITER", "ACTIVE")
    def _fit_copy(self, copy: Any, rows: Rows, most: Approximate) -> None:
        """Fit a copy, and refuse it if it promises less than was planned."""
        public = [part for part in (rows.public, rows.public_y) if part is not None]
        fit_base(copy, rows.X, rows.y, *public)
        self._promise(copy, most)
        if isinstance(copy, Learner):
            copy.random_state = None  # a generator is no part of a model

    @claim("REDUCE", "OVR", "ITER", "ACTIVE")
    def _promise(self, copy: Any, most: Approximate) -> Guarantee:
        """Return the guarantee of a fitted copy, which must be within what was planned."""
        found = getattr(copy, "guarantee_", None)
        if not isinstance(found, Guarantee):
            raise UnknownCost(
                f"{described(copy)} has no guarantee_ after fit, or one that is no "
                "cumae.privacy.Guarantee; give an object that states one."
            )
        if found.epsilon > most.eps or found.delta > most.failure:
            raise InvalidParameter(
                f"{described(copy)} has epsilon={found.epsilon!r}, delta={found.delta!r} after "
                f"fit, above the declared epsilon={most.eps!r}, delta={most.failure!r}; the rows "
                "are used, and nothing is published."
            )
        return found

    def _stored_params(self) -> dict[str, Any]:
        return super()._stored_params() | {self.wraps: None}  # its fitted copies are stored


def check_outer_delta(base: Learner, delta: float) -> None:
    """Refuse a base with a delta inside of a learner that has none."""
    if base.delta > 0 and delta == 0:
        raise InvalidParameter(
            f"delta=0, but the base needs delta={base.delta!r}; give a delta here as well."
        )


def _inner_has(name: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(getattr(self, "learner_", self.base), name)


class Published(Wrapper):
    """A wrapper that publishes what one fitted copy of the base says, scores included."""

    takes_unlabelled = True

    base: Any
    learner_: Learner

    @property
    def hypothesis_(self) -> Hypothesis:
        """The published hypothesis, if the base publishes one: of the base's own class."""
        return self.learner_.hypothesis_  # type: ignore[no-any-return]

    def declared_columns(self) -> Declared:
        """Return what was declared, here or in the base."""
        declared = self._checked_base().declared_columns()
        if self.columns is not None and declared is not None:
            raise InvalidParameter("columns are declared here and in the base; do it once.")
        return declared if self.columns is None else self.columns

    def _checked_base(self) -> Any:
        base = super()._checked_base()
        if None in (base.epsilon, base.delta):
            raise InvalidParameter("base has no epsilon or delta of its own; give it numbers.")
        check_outer_delta(base, self.delta)
        return base

    @claim("ITER", "ACTIVE")
    def _plan_base(self, rows: Rows, labelled: int, unlabelled: int) -> LearningPlan[Any]:
        """Return what a copy of the base would do with so many rows."""
        plan = plan_base(self._copy(), rows, labelled, unlabelled)
        if plan.relation not in KNOWN_RELATIONS:
            raise InvalidParameter(
                f"base protects {plan.protects}, where {plan.relation}; give one that protects a "
                "whole replaced row."
            )
        return plan

    @claim("ITER", "ACTIVE")
    def _fit_base(
        self, rows: Rows, places: Integers, labels: Integers, plan: Plan, source: Source
    ) -> None:
        """Fit a copy of the base to some of the rows, as it was planned."""
        copy = self._copy(source)
        most = Approximate(plan.cost.epsilon(copy.delta), copy.delta)
        self._fit_copy(copy, replace(rows, X=take_rows(rows.X, places), y=labels), most)
        self.learner_ = copy

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X: Any) -> Floats:
        """Return the log odds of the second class, if the base has them.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``.
        """
        check_is_fitted(self, "guarantee_")
        scores: Floats = self.learner_.decision_function(X)
        return scores

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> Floats:
        """Return the chances of both classes, if the base has them.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``.
        """
        check_is_fitted(self, "guarantee_")
        chances: Floats = self.learner_.predict_proba(X)
        return chances

    def __str__(self) -> str:
        return str(self.learner_) if hasattr(self, "learner_") else repr(self)

    def _labels(self, table: NDArray[Any]) -> Integers:
        return np.asarray(self.learner_.predict(table), dtype=np.int64)
