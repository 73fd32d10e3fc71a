"""What all private learners share."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Integers
from cumae.data import (
    UNLABELLED,
    Columns,
    Declared,
    check_rows,
    class_places,
    length_of,
    names_of,
    width_of,
)
from cumae.errors import CumaeError, InvalidData, InvalidParameter
from cumae.live import forget
from cumae.mechanisms import LaplaceNoise
from cumae.privacy import REPLACE_ONE, Budget, Guarantee
from cumae.privacy.plans import Plan, promise
from cumae.privacy.validation import check_delta, check_epsilon
from cumae.randomness import Source, source_for
from cumae.storage import from_plain, to_plain

FORMAT = 1
ROLES_PUBLIC = f"{REPLACE_ONE}; which rows are labelled is public and stays the same"


@dataclass(frozen=True)
class Rows:
    """Rows as a learner sees them: encoded, with labels 0, 1 and -1 for none."""

    X: NDArray[Any]
    y: Integers
    public: NDArray[Any] | None = None
    public_y: Integers | None = None

    def take(self, places: Any) -> Rows:
        """Return some of the private rows, with all public ones."""
        return replace(self, X=self.X[places], y=self.y[places])

    @property
    def labelled(self) -> Rows:
        """The private rows that have a label."""
        return self.take(self.y != UNLABELLED)

    @property
    def unlabelled(self) -> Rows:
        """The private rows that have none."""
        return self.take(self.y == UNLABELLED)


@dataclass(frozen=True)
class Sizes:
    """What is public about the rows: plans and costs are made from it alone."""

    labelled: int
    unlabelled: int
    public: int
    columns: Columns

    @property
    def features(self) -> int:
        return len(self.columns)


def check_some(labels: Integers) -> None:
    """Refuse a table without rows."""
    if not len(labels):
        raise InvalidData("X has no rows; give at least one.")


class Learner(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]  # untyped bases
    """A classifier that may be published: its fitted state is its private output, no more.

    A subclass makes a ``_plan`` from the public sizes, which says what the fit costs; then
    ``_learn`` does what was planned. ``fit`` checks rows, pays and keeps the guarantee.
    """

    takes_unlabelled: ClassVar[bool] = False  # whether -1 marks rows without a label
    least_public: ClassVar[int] = 1  # fewer public rows are as good as none

    epsilon: float
    delta: float = 0.0
    classes: Any = (0, 1)
    columns: Declared = None
    budget: Budget | None = None
    random_state: int | Source | None = None

    guarantee_: Guarantee
    columns_: Columns
    classes_: NDArray[Any]
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = np.size(self.classes) > 2
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, X_public: ArrayLike | None = None) -> Self:
        """Learn from private rows, and from public ones where there are any.

        Parameters
        ----------
        X, y
            Private rows and their labels, each one of ``classes``; -1 marks a row without a
            label, for learners that can use those.
        X_public
            Public rows with the same columns; they are free, and never protected.
        """
        return self._fit(X, y, X_public, None)

    @np.errstate(all="ignore")  # what numpy warns about would tell of single cells
    def _fit(
        self, X: ArrayLike, y: ArrayLike, X_public: ArrayLike | None, y_public: ArrayLike | None
    ) -> Self:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        columns = Columns.of(X, self._declared())
        rows = self._rows(columns, X, y, X_public, y_public)
        check_some(rows.y)
        labelled = int(np.count_nonzero(rows.y != UNLABELLED))
        public = 0 if rows.public is None else len(rows.public)
        sizes = Sizes(labelled, len(rows.y) - labelled, public, columns)
        plan = self._plan(sizes, rows)
        source = source_for(self.random_state)
        guarantee = promise(plan, self.epsilon, self.delta, void=source.deterministic)
        if self.budget is not None:
            self.budget.spend(plan.cost, delta=self.delta, what=type(self).__name__)
        forget(self)
        self.columns_ = columns
        self.n_features_in_ = width_of(X)
        names = names_of(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.classes_ = np.array(self.classes)
        if self.classes_.tolist() != list(self.classes):  # of several types
            self.classes_ = np.array([*self.classes, None], dtype=object)[:-1]
        self._learn(rows, plan, source)
        self.guarantee_ = guarantee
        return self

    @abstractmethod
    def _plan(self, sizes: Sizes, rows: Rows) -> Plan:
        """Decide what to do and what it costs; of ``rows`` only the public ones may be used."""

    @abstractmethod
    def _learn(self, rows: Rows, plan: Plan, source: Source) -> None:
        """Do what was planned, and keep the private output."""

    @abstractmethod
    def _labels(self, table: NDArray[Any]) -> Integers:
        """Label encoded rows 0 or 1."""

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label rows; the learner is published, so this is free and may go on for ever."""
        check_is_fitted(self, "guarantee_")
        return np.asarray(self.classes_[self._labels(self._encode(self.columns_, X))])

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the exact accuracy. On private rows that is a leak: use ``private_score``."""
        return float(super().score(X, y, sample_weight))

    def private_score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        epsilon: float,
        *,
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> float:
        """Return the accuracy on private rows with noise: DP(epsilon, 0) for one of these rows.

        The rows should not be those of ``fit``, on which every model looks better than it is.

        Parameters
        ----------
        X, y
            Private rows and their labels; their number is public.
        epsilon
            What it costs each of these rows.
        budget
            An account to pay from.
        random_state
            None in production.
        """
        labels = self._check_y(y, unlabelled=False)
        check_rows(length_of(X), labels)
        check_some(labels)
        right = np.count_nonzero(self.predict(X) == self.classes_[labels])
        noise = LaplaceNoise(epsilon, random_state=random_state)
        if budget is not None:
            budget.spend(noise.cost, what="private_score")
        return float(np.clip(int(noise.release(int(right))) / len(labels), 0.0, 1.0))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold: all that ``predict`` needs, and the guarantee."""
        check_is_fitted(self, "classes_")  # a part of another learner has no guarantee of its own
        parameters = self._stored_params()
        fitted = {name: to_plain(value) for name, value in vars(self).items() if name[-1:] == "_"}
        plain = {name: to_plain(value) for name, value in parameters.items()}
        return {"format": FORMAT, "kind": type(self).__name__, "params": plain, "fitted": fitted}

    def _stored_params(self) -> dict[str, Any]:
        """Return the parameters that are stored: an account or a generator is not a model."""
        given = self.get_params(deep=False)
        return {name: given[name] for name in given if name not in ("budget", "random_state")}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Rebuild what ``to_dict`` returned."""
        learners = {known.__name__: known for known in _descendants(Learner)}
        try:
            if plain["format"] != FORMAT:
                raise InvalidParameter(f"format {plain['format']!r} is not {FORMAT}.")
            kind = learners[plain["kind"]]
            params = {name: from_plain(v, learners) for name, v in plain["params"].items()}
            fitted = {name: from_plain(v, learners) for name, v in plain["fitted"].items()}
            learner = kind(**params)
        except CumaeError:
            raise
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise InvalidParameter("this is no stored learner; give what to_dict wrote.") from error
        if not isinstance(learner, cls):
            raise InvalidParameter(f"this is a stored {kind.__name__}; load it with that class.")
        if "classes_" not in fitted or any(n[:1] == "_" or n[-1:] != "_" for n in fitted):
            raise InvalidParameter("this is no fitted learner; give what to_dict wrote.")
        for name, value in fitted.items():
            setattr(learner, name, value)
        return learner

    def save(self, path: str | Path) -> None:
        """Write the fitted learner as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), allow_nan=False), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what ``save`` wrote."""
        try:
            plain = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise InvalidParameter("the file is no JSON; give one that save wrote.") from error
        return cls.from_dict(plain)

    def _rows(
        self,
        columns: Columns,
        X: ArrayLike,
        y: ArrayLike,
        X_public: ArrayLike | None,
        y_public: ArrayLike | None,
    ) -> Rows:
        labels = self._check_y(y, unlabelled=self.takes_unlabelled)
        check_rows(length_of(X), labels)
        public = None
        if X_public is not None and length_of(X_public) >= self.least_public:
            try:
                public = self._encode(columns, X_public)
            except InvalidData as error:
                raise InvalidData(f"X_public: {error}") from None
        public_y = None
        if y_public is not None:
            public_y = self._check_y(y_public, unlabelled=True)
            if public is None:
                raise InvalidParameter("y_public was given without X_public; give both.")
            check_rows(len(public), public_y)
        return Rows(self._encode(columns, X), labels, public, public_y)

    def _declared(self) -> Declared:
        return self.columns

    def _encode(self, columns: Columns, X: ArrayLike) -> NDArray[Any]:
        return columns.encode(X)

    def _check_y(self, y: ArrayLike, *, unlabelled: bool) -> Integers:
        """Return labels as 0 and 1, and -1 where there is none."""
        classes = list(self.classes) if np.iterable(self.classes) else []
        if len(classes) != 2 or classes[0] == classes[1]:
            raise InvalidParameter(
                f"classes={tuple(classes)!r}: {type(self).__name__} takes two classes; for more, "
                "use OneVsRest."
            )
        if unlabelled and UNLABELLED in classes:
            raise InvalidParameter(
                f"classes={tuple(classes)!r}: -1 marks a row without a label; name it otherwise."
            )
        return class_places(y, classes, unlabelled=unlabelled)


def _descendants(kind: Any) -> list[Any]:
    found: list[Any] = []
    for child in kind.__subclasses__():
        found += [child, *_descendants(child)]
    return found
