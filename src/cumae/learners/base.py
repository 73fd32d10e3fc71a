"""The shared part of all private learners."""

from __future__ import annotations

import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Floats, Integers
from cumae.callers import surroundings
from cumae.claims import claim
from cumae.codec import read_file, rebuilt, stored
from cumae.data import (
    UNLABELLED,
    Bounds,
    Columns,
    Declared,
    check_rows,
    check_some_rows,
    class_names,
    labelled_table,
    length_of,
    names_of,
    table_of,
    width_of,
)
from cumae.effort import total_effort
from cumae.engines import AnsweredRows, Pieces, right_answers
from cumae.engines.frames import checked_rows, placed_rows, read_labels
from cumae.engines.rows import need_contents_of
from cumae.errors import InvalidData, InvalidParameter, TooFewRows, warn
from cumae.estimators import PrivateEstimator, is_inside, restate, warn_if_clones_pay, warn_if_weak
from cumae.live import forget
from cumae.made_up import few_labels, made_up_table
from cumae.mechanisms import LaplaceNoise
from cumae.outlook import FitPlan, Outlook, Steps, check_table_counts, foresee
from cumae.parameters import (
    COLUMNS,
    DELTA,
    EPSILON,
    RANDOM_STATE,
    TWO_CLASSES,
    Kind,
    check_parameters,
)
from cumae.privacy import REPLACE_ONE, Budget, Guarantee
from cumae.privacy.guarantee import MODEL
from cumae.privacy.plans import BUDGET, promise
from cumae.quiet import is_quiet
from cumae.randomness import Source, source_for
from cumae.savers import saver

# Rows times epsilon, for each root of the number of columns, below which noise drowns the rows.
ENOUGH_ROWS = 10
MOST_ROWS = 1e15  # a larger number is not worth naming
PUBLIC_ROWS = ("the public rows may be known to anyone",)
ROLES_PUBLIC = f"{REPLACE_ONE}; which rows are labelled is public and stays the same"

# What ends the table of parameters of most learners.
ACCOUNT: Mapping[str, Kind] = {
    "classes": TWO_CLASSES,
    "budget": BUDGET,
    "random_state": RANDOM_STATE,
}
DECLARED: Mapping[str, Kind] = {"columns": COLUMNS, **ACCOUNT}


@dataclass(frozen=True, kw_only=True)
class LearningPlan(FitPlan[Steps]):
    """The plan of a learner, whose promise covers the published model."""

    covers: str = MODEL

    def shown(self, planned: Guarantee) -> Guarantee | None:
        """Return ``guarantee_`` as it would be after a fit; None if only a fit can tell.

        Parameters
        ----------
        planned : Guarantee
            What this plan promises.
        """
        return planned


@dataclass(frozen=True)
class Rows(AnsweredRows):
    """Rows as a learner sees them: encoded, with labels 0, 1 and -1 for none, or with numbers."""

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
    """The public numbers about the rows: plans and costs are made from them alone."""

    labelled: int
    unlabelled: int
    public: int
    columns: Columns

    @property
    def features(self) -> int:
        return len(self.columns)

    @property
    def cells(self) -> int:
        """Numbers in the encoded private rows."""
        return (self.labelled + self.unlabelled) * self.features


class Learner(PrivateEstimator, ABC):
    """A classifier that may be published: its fitted state is its private output, and no more.

    A subclass lets ``decide`` make a plan from public numbers, which says what the fit costs; then
    ``_learn`` does what was planned. ``fit`` checks parameters and rows, pays, and keeps the
    guarantee; ``plan`` decides in the same way for rows that are only counted. Learners around
    another one call ``decide`` to know what it is going to do and to cost.
    """

    parameter_table: ClassVar[Mapping[str, Kind]] = {"epsilon": EPSILON, "delta": DELTA}
    least_public: ClassVar[int] = 1  # fewer public rows are as good as none
    reads_pieces: ClassVar[bool] = False  # whether rows of files may stay there

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

    @property
    def takes_unlabelled(self) -> bool:
        """True if it can use rows without a label, which -1 marks."""
        return False

    @property
    @claim("PRIOR")
    def is_exact(self) -> bool:
        """True if it says the same of a row in any table once it is fitted, bit by bit.

        It does not if it adds up floats in an order that may depend on the table's shape.
        """
        return False

    def fit(self, X: Any, y: Any, X_public: Any = None) -> Self:
        """Learn from private rows, and from public ones where there are any.

        Parameters
        ----------
        X : table
            Private rows: a list of rows, an array, a data frame or ParquetRows. Learners by sums
            leave data frames of Dask and Spark, and data sets of Ray, where they are.
        y : array-like
            Their labels, each one of ``classes``; -1 marks a row without a label, for learners
            that can use those. With ParquetRows, the name of a column will do; rows that stay on a
            cluster need one.
        X_public : table, or None
            Public rows with the same columns; they are free, and never protected.

        Returns
        -------
        Learner
            Itself.
        """
        return self._fit(X, y, X_public, None)

    def plan(
        self, n_samples: int, n_features: int, n_public: int = 0, *, n_unlabelled: int = 0
    ) -> Outlook:
        """Tell what ``fit`` would do with so many rows, without any row and without spending.

        Parameters
        ----------
        n_samples : int of 0 or more
            Private rows that have a label.
        n_features : int of 1 or more
            Columns of the table, before they are encoded. Those that are not declared are numbers.
        n_public : int of 0 or more
            Public rows. Rows are made up for them: where their values decide, as cuts at their
            quantiles do, the real ones may decide otherwise.
        n_unlabelled : int of 0 or more
            Private rows beside them that have no label.

        Returns
        -------
        Outlook
            What it would do, promise and take, or why it would be refused.
        """
        counts = (n_samples, n_features, n_public, n_unlabelled)
        return foresee(type(self).__name__, lambda: self._foreseen(*counts))

    @np.errstate(all="ignore")
    def _foreseen(self, *counts: int) -> Outlook:
        """Decide as ``fit`` does before it pays, in the same time; refuse what it refuses."""
        check_parameters(self, self.parameter_table)
        sizes, rows = self._stand_in(*check_table_counts(*counts))
        began = time.process_time()
        plan, guarantee = self._decided(sizes, rows, self._source())
        effort = total_effort(plan.work, time.process_time() - began)
        if self.budget is not None:
            self.budget.check(plan.cost, delta=self.limits()[1], what=type(self).__name__)
        return Outlook.of(type(self).__name__, plan.shown(guarantee), plan.facts, effort)

    def _stand_in(
        self, n_samples: int, n_features: int, n_public: int, n_unlabelled: int
    ) -> tuple[Sizes, Rows]:
        """Read a few made-up rows instead of many, and return the sizes of the many."""
        labels = few_labels(self.classes, n_samples, n_unlabelled)
        declared = self.known_columns()
        X = made_up_table(declared, len(labels), n_features)
        public = made_up_table(declared, n_public, n_features) if n_public else None
        sizes, rows = self.read_rows(X, labels, public)
        return replace(sizes, labelled=n_samples, unlabelled=n_unlabelled), rows

    def known_columns(self) -> Declared:
        """Return what is declared about the columns, here or in what reads the rows."""
        return self.declared_columns()

    def _source(self) -> Source:
        """Return where the coins of a fit come from."""
        return source_for(self.random_state)

    @claim("REDUCE")
    @np.errstate(all="ignore")  # what numpy warns about would tell of single cells
    def _fit(self, X: Any, y: Any, X_public: Any | None, y_public: Any | None) -> Self:
        check_parameters(self, self.parameter_table)
        X, y = placed_rows(X, y, stay=self.reads_pieces)
        sizes, rows = self.read_rows(X, y, X_public, y_public)
        if not is_inside():
            self.check_contents(X)
        return self._fit_rows(sizes, rows, width_of(X), names_of(X))

    @np.errstate(all="ignore")
    def fit_encoded(self, table: Floats, labels: Integers, columns: Columns) -> Self:
        """Learn from private rows that were read before, as numbers.

        Parameters
        ----------
        table : array of float
            What ``columns`` encoded, without cells that are not finite.
        labels : array of int
            Places in the declared classes.
        columns : Columns
            How the rows were read; queries are read by it, too.

        Returns
        -------
        Learner
            Itself.
        """
        check_parameters(self, self.parameter_table)
        sizes, rows = Sizes(len(labels), 0, 0, columns), Rows(table, labels, None, None)
        self._check_readable(rows)
        return self._fit_rows(sizes, rows, len(columns.columns), columns.original_names)

    @claim("REDUCE")
    def _fit_rows(self, sizes: Sizes, rows: Rows, width: int, names: list[str] | None) -> Self:
        """Plan, pay and learn; ``width`` and ``names`` are those of the table as it came."""
        epsilon, delta = self.limits()
        source = self._source()
        plan, guarantee = self._decided(sizes, rows, source)
        warn_if_weak(epsilon, delta, sizes.labelled + sizes.unlabelled)
        warn_if_clones_pay(self, epsilon)
        around = surroundings(self, epsilon)
        if self.budget is not None:
            self.budget.spend(plan.cost, delta=delta, what=type(self).__name__)
        forget(self)
        self.take_over(sizes.columns)
        self.n_features_in_ = width
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        try:
            found = self._learn(rows, plan, source)
        except BaseException:
            forget(self)  # also what was set above
            raise
        restate(self, around.judge(guarantee if found is None else found))
        return self

    def take_over(self, columns: Columns, ranges: Sequence[Bounds] = ()) -> None:
        """Take the columns of a table that was read, and ranges of targets that were found.

        Parameters
        ----------
        columns : Columns
            How rows are read.
        ranges : sequence of (low, high)
            Ranges of targets; only learners of numbers have some.
        """
        del ranges
        self.columns_, self.classes_ = columns, class_names(self.classes)

    @claim("REDUCE")
    def _decided(
        self, sizes: Sizes, rows: Rows, source: Source
    ) -> tuple[LearningPlan[Any], Guarantee]:
        """Return the plan and what it promises: all that is decided before anything is paid."""
        plan = self.decide(sizes, rows)
        epsilon, delta = self.limits()
        guarantee = promise(plan, epsilon, delta, void=source.deterministic)
        self._warn_of_few_rows(sizes, epsilon)
        return plan, guarantee

    def _warn_of_few_rows(self, sizes: Sizes, epsilon: float) -> None:
        """Warn, by public numbers, if noise is going to drown what the rows say."""
        silent = epsilon == 0 or is_quiet()
        needed = 0.0 if silent else ENOUGH_ROWS * math.sqrt(sizes.features) / epsilon
        if (count := sizes.labelled + sizes.unlabelled) < needed:
            enough = f"{math.ceil(needed)} rows would do, or" if needed < MOST_ROWS else "Give"
            text = (
                f"{count} rows with {sizes.features} columns of numbers are few for "
                f"epsilon={epsilon!r}: noise is likely to drown them. {enough} a larger epsilon, "
                "or fewer columns."
            )
            warn(TooFewRows(text, needed_rows=math.ceil(needed) if needed < MOST_ROWS else None))

    def declared_columns(self) -> Declared:
        """Return what was declared about the columns of the rows."""
        return self.columns

    def _columns_of(self, X: Any) -> Columns:
        """Return what is known about the columns; refuse those that must be declared and are not.

        Nothing but names, types and the width of the table is looked at.
        """
        return Columns.of(X, self.declared_columns())

    def _check_ordered(self, columns: Columns) -> None:
        """Refuse columns of ordered values, whose rules would publish the value of a row."""
        columns.refuse_ordered()

    def limits(self) -> tuple[float, float]:
        """Return the epsilon and the delta that a fit keeps to."""
        return self.epsilon, self.delta

    def read_rows(
        self, X: Any, y: Any, X_public: Any = None, y_public: Any = None
    ) -> tuple[Sizes, Rows]:
        """Read rows as a fit does, and refuse what cannot be read.

        Parameters
        ----------
        X, y, X_public : array-like
            As in ``fit``.
        y_public : array-like, or None
            Labels of the public rows, and -1 where there is none.

        Returns
        -------
        Sizes
            What is public about the rows.
        Rows
            The rows, encoded.

        Raises
        ------
        InvalidData
            If a row cannot be read, or there is none.
        """
        X, X_public = table_of(X), table_of(X_public)
        columns = self._columns_of(X)
        self._check_ordered(columns)
        labels = self._check_y(y, unlabelled=self.takes_unlabelled)
        check_rows(length_of(X), labels)
        rows = self._read(columns, X, labels, X_public, y_public)
        check_some_rows(labels)
        there = isinstance(labels, Pieces)  # then each row has a label
        labelled = len(labels) if there else int(np.count_nonzero(labels != UNLABELLED))
        public = 0 if rows.public is None else length_of(rows.public)
        return Sizes(labelled, len(labels) - labelled, public, columns), rows

    @abstractmethod
    def decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Any]:
        """Decide what to do and what it costs.

        Parameters
        ----------
        sizes : Sizes
            Public numbers.
        rows : Rows
            Of these only the public ones may be used.

        Returns
        -------
        LearningPlan
            What ``fit`` would do, its cost, its public facts and its work.
        """

    @abstractmethod
    def _learn(self, rows: Rows, plan: LearningPlan[Any], source: Source) -> Guarantee | None:
        """Do what was planned, and keep the private output.

        What it returns, if anything, is the guarantee in place of the planned one.
        """

    @abstractmethod
    def _labels(self, table: NDArray[Any]) -> Integers:
        """Label encoded rows 0 or 1."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Label rows. The learner is published, so this is free, and may go on for ever.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``; if both have names, columns may come in any order.

        Returns
        -------
        array
            One of ``classes`` for each row.
        """
        check_is_fitted(self, "guarantee_")
        return np.asarray(self.classes_[self._labels(self._encode(self.columns_, X))])

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the exact accuracy. On private rows that is a leak: use ``private_score``."""
        return float(super().score(X, y, sample_weight))

    def private_score(
        self,
        X: Any,
        y: Any,
        epsilon: float,
        *,
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> float:
        """Return the accuracy on private rows with noise: DP(epsilon, 0) for one of these rows.

        The rows should not be those of ``fit``, on which every model looks better than it is.

        Parameters
        ----------
        X, y : array-like
            Private rows and their labels; their number is public. ParquetRows are read in pieces,
            and may be larger than memory; ``y`` may name the column of their labels.
        epsilon : float of 0 or more
            What it costs each of these rows.
        budget : Budget, or None
            An account to pay from.
        random_state : int or Source, or None
            None in production; a seed voids the guarantee.

        Returns
        -------
        float
            The accuracy, from 0 to 1.
        """
        X, y = labelled_table(X, y) if isinstance(y, str) else (X, y)
        labels = self._check_y(y, unlabelled=False)
        check_rows(length_of(X), labels)
        check_some_rows(labels)
        right = right_answers(self, X, labels)
        noise = LaplaceNoise(epsilon, random_state=random_state)
        if budget is not None:
            budget.spend(noise.cost, what="private_score")
        return float(np.clip(int(noise.release(int(right))) / len(labels), 0.0, 1.0))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold: all that ``predict`` needs, and the guarantee."""
        check_is_fitted(self, ["classes_", "target_range_"], all_or_any=any)  # parts pass, too
        return stored(self, self._stored_params())

    def _stored_params(self) -> dict[str, Any]:
        """Return the parameters that are stored: an account or a generator is not a model."""
        given = self.get_params(deep=False)
        return {name: given[name] for name in given if name not in ("budget", "random_state")}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Rebuild what ``to_dict`` returned.

        Parameters
        ----------
        plain : dict
            Plain values, as ``to_dict`` returned them.
        """
        learner = rebuilt(plain, "learner")
        if not isinstance(learner, cls):
            kind = type(learner).__name__
            raise InvalidParameter(f"this is a {kind}; cumae.load takes files of any class.")
        return learner

    def save(self, path: str | Path) -> None:
        """Write the fitted learner as JSON.

        Parameters
        ----------
        path : str or Path
            The file; one that exists is replaced.
        """
        Path(path).write_text(json.dumps(self.to_dict(), allow_nan=False), encoding="utf-8")

    def save_to(self, path: str | Path, *, keys: str | None = None) -> None:
        """Write the fitted learner as an oracle, which ``cumae.open`` returns again.

        It is published, and never charged. It needs the packages of ``cumae[store]``.

        Parameters
        ----------
        path : str or Path
            A file that does not exist yet, or an address, ``postgresql://user@host/database``.
        keys : str, or None
            A command that keeps the keys, or ``"folder:PATH"``, instead of the folder beside
            the file. An address needs one of them.
        """
        check_is_fitted(self, "guarantee_")
        saver().save_learner(self, path, keys)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what ``save`` wrote.

        Parameters
        ----------
        path : str or Path
            A file that ``save`` wrote.
        """
        return cls.from_dict(read_file(path))

    def _read(
        self,
        columns: Columns,
        X: Any,
        labels: Integers,
        X_public: Any | None,
        y_public: Any | None,
    ) -> Rows:
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
            check_rows(length_of(public), public_y)
        rows = Rows(self._encoded(columns, X, labels), labels, public, public_y)
        self._check_readable(rows)
        return rows

    def _encoded(self, columns: Columns, X: Any, labels: Any) -> NDArray[Any] | Pieces:
        """Return encoded rows, or where they are read from; refuse those that cannot be read."""
        found = checked_rows(X, columns, labels) if self.reads_pieces else None
        return self._encode(columns, X) if found is None else found

    def check_contents(self, X: Any) -> None:
        """Refuse columns of which nothing is left once they are read, before anything is paid.

        It is asked about all rows that ``fit`` is given. A learner inside of another one may get
        some of them, and what these few hold must not be seen.
        """
        X = table_of(X)
        columns = self._columns_of(X)
        need_contents_of(columns.arrange(X), columns)

    def check_queries(self, X: Any, queries: Any) -> None:
        """Refuse queries that ``predict`` would refuse after a fit to ``X``.

        Parameters
        ----------
        X : table
            The rows of ``fit``: of them nothing but names, types and width is looked at.
        queries : table
            What will be asked.
        """
        self._encode(self._columns_of(table_of(X)), table_of(queries))

    def _check_readable(self, rows: Rows) -> None:
        """Refuse rows that this learner cannot take, before anything is drawn or paid for."""

    def _encode(self, columns: Columns, X: Any) -> NDArray[Any]:
        return columns.encode(X)

    def _check_y(self, y: Any, *, unlabelled: bool) -> Any:
        """Return labels as places in the classes, and -1 where there is none."""
        return read_labels(y, self._known_classes(unlabelled=unlabelled), unlabelled=unlabelled)

    def _known_classes(self, *, unlabelled: bool) -> list[Any]:
        """Return the declared classes; refuse those that this learner cannot take."""
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
        return classes
