"""What all private predictors share: they answer queries and publish no model."""

from __future__ import annotations

import warnings
from abc import ABC
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Integers
from cumae.concepts import ConceptClass, FiniteClass, Hypothesis
from cumae.data import (
    FLAT,
    Columns,
    Declared,
    RowSource,
    label_codes,
    length_of,
    names_of,
    read_one_by_one,
    read_table,
    row_source,
    typed_frame,
    usable_frame,
    width_of,
)
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.split import Split, shard_seeds
from cumae.ensembles.trainer import Trainer, train_shards
from cumae.ensembles.trial import check_model, stand_in_row, try_out
from cumae.errors import InvalidData, InvalidParameter, LiveState, TooFewRows, shown
from cumae.live import NOT_KEPT, forget
from cumae.parameters import check_count
from cumae.privacy import Budget, Guarantee
from cumae.privacy.plans import Plan, promise
from cumae.privacy.validation import check_delta, check_epsilon
from cumae.randomness import Source

LEAST_ROWS_PER_CLASS = 2
SMALL_SHARD = 10  # rows of a shard that "auto" does not go below
FEW_SHARDS = 50  # shards that it keeps at least when the estimator wants larger ones


@dataclass(frozen=True)
class Training:
    """Private rows as they came, with the facts that were declared about them."""

    rows: RowSource
    labels: Integers  # places in the declared classes; -1 for none of them
    columns: Columns | None
    model: Any
    n_classes: int
    as_frames: bool  # whether models get data frames, and not tables of numbers
    stand_in: Any  # a made-up row in the form in which models get rows

    @property
    def trainer(self) -> Trainer:
        """What trains one shard."""
        return Trainer(self.model, self.n_classes, self.columns)


class Predictor(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]  # untyped bases
    """A classifier that answers queries under a guarantee and must not be published itself.

    Inside it are models that no privacy protects. So it cannot be copied, pickled or used in
    a forked process once it is fitted.
    """

    estimator: Any
    concept_class: ConceptClass | None
    epsilon: float
    delta: float
    classes: Any = (0, 1)
    columns: Declared = None
    n_jobs: int | None = None
    progress: bool | None = None
    budget: Budget | None = None
    random_state: int | Source | None = None

    guarantee_: Guarantee
    classes_: NDArray[Any]
    n_features_in_: int

    counts_unusable: ClassVar[bool] = False  # whether unusable queries get -1, or are refused

    _larger_shards: ClassVar[str] = "a smaller n_shards"  # what messages tell to give

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = np.size(self.classes) > 2
        return tags

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: state[name] for name in state if name not in NOT_KEPT}

    def __reduce_ex__(self, protocol: Any) -> Any:
        if any(name.endswith("_") for name in vars(self)):
            raise LiveState(
                f"a fitted {type(self).__name__} cannot be copied or pickled: it holds models that "
                "are not private, and both copies would have the same answers left. Use "
                "sklearn.base.clone for an unfitted copy."
            )
        return super().__reduce_ex__(protocol)

    def _training(self, X: Any, y: Any) -> Training:
        """Read the declared facts; of the rows nothing but their number."""
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise InvalidParameter(
                f"budget={shown(self.budget)} is no Budget; give Budget(epsilon, delta), or None."
            )
        rows = row_source(X)
        if isinstance(y, str) and hasattr(rows, "without"):
            labels = label_codes(rows, y, self.classes)
            rows = rows.without(y)
        else:
            labels = label_codes(rows, y, self.classes)
        model = self._model()
        columns = None
        if self.columns is not None:
            columns = Columns(self.columns, rows.names, rows.n_features)
        n_classes = len(self.classes)
        # Frames stay frames for pipelines that name columns; everything else becomes numbers.
        as_frames = rows.is_frame and columns is None and not isinstance(model, ConceptClass)
        stand_in = stand_in_row(rows, columns)
        if not as_frames:
            stand_in = np.nan_to_num(read_table(stand_in, columns))
        if isinstance(model, ConceptClass):
            if n_classes > 2:
                raise InvalidParameter(
                    f"{n_classes} classes: a concept class labels with two; for more there are "
                    "QueryRelease and EverlastingPredictor with an estimator."
                )
            model.vc_dimension(rows.n_features if columns is None else len(columns))  # fits width?
            check_own(model)
        return Training(rows, labels, columns, model, n_classes, as_frames, stand_in)

    def _model(self) -> Any:
        if self.estimator is not None and self.concept_class is not None:
            raise InvalidParameter("estimator and concept_class are both given; give one of them.")
        model = self.concept_class if self.estimator is None else self.estimator
        what = "estimator" if self.concept_class is None else "concept_class"
        return check_model(DecisionTreeClassifier(max_depth=4) if model is None else model, what)

    def _check_shards(self, n_rows: int, n_shards: int, n_classes: int) -> int:
        least = LEAST_ROWS_PER_CLASS * n_classes
        if n_rows // check_count(n_shards, "n_shards", least=1) < least:
            raise InvalidParameter(
                f"n_shards={n_shards!r} for n_samples={n_rows} leaves shards of "
                f"{n_rows // n_shards} rows; "
                f"{n_classes} classes need {least} rows at least. Ask for "
                f"{n_rows // least} shards or fewer, or give more rows."
            )
        return n_shards

    def _start(self, training: Training, plan: Plan, source: Source) -> Guarantee:
        """Pay for a plan, drop an earlier fit and set what every fitted predictor shows.

        What is kept has a name that ends in ``_``, so that a later fit drops all of it at once.
        The guarantee is for the caller to set at the end: a fit that was broken off has none.
        """
        guarantee = promise(plan, self.epsilon, self.delta, void=source.deterministic)
        if self.budget is not None:
            self.budget.spend(plan.cost, delta=self.delta, what=type(self).__name__)
        forget(self)
        rows = training.rows
        self.n_features_in_ = rows.n_features
        if rows.names is not None:
            self.feature_names_in_ = np.array(rows.names, dtype=object)
        self.classes_ = np.array([*self.classes, None], dtype=object)[:-1]
        plain = np.array(self.classes)
        if plain.tolist() == list(self.classes):  # of one type
            self.classes_ = plain
        self._frames_ = training.as_frames
        self._numeric_ = [place for place in range(rows.n_features) if not rows.is_text(place)]
        self._columns_ = training.columns or Columns(None, rows.names, rows.n_features)
        self._stand_in_ = training.stand_in
        return guarantee

    def _train(self, training: Training, n_shards: int, source: Source) -> Ensemble:
        split = Split.draw(training.rows.n_rows, n_shards, source)
        models = train_shards(
            training.rows,
            training.labels,
            split,
            training.trainer,
            shard_seeds(n_shards, source),
            n_jobs=self.n_jobs,
            progress=self.progress,
        )
        return Ensemble(models, training.n_classes, training.stand_in)

    def _try_out(
        self, trainer: Trainer, training: Training, n_rows: int, n_shards: int, *, fixed: bool
    ) -> int:
        """Try what will train shards on made-up rows; return with how many shards it can learn.

        Unless the number is fixed, shards grow until the model tells made-up classes apart: some
        estimators cannot with a few rows, whatever is in them.
        """
        larger = self._larger_shards
        facts = (training.rows, training.stand_in)
        while not try_out(trainer, *facts, n_rows // n_shards, larger):
            if fixed or n_shards < 2 * FEW_SHARDS:
                warnings.warn(
                    f"with {n_rows // n_shards} rows, the size of a shard, the estimator gives "
                    f"every made-up row the same label; make shards larger with {larger}, or let "
                    "it learn from fewer rows (such as min_samples_leaf=1).",
                    TooFewRows,
                    stacklevel=4,
                )
                return n_shards
            n_shards //= 2
        return n_shards

    def _queries(self, X: ArrayLike) -> Any:
        """Return queries as the models take them; refuse what is unusable, before anything else."""
        check_is_fitted(self, "guarantee_")
        if not length_of(X):
            return self._nothing()
        if not self._frames_:
            table = self._columns_.encode(X)
            _check_finite(table)
            return table
        names = names_of(X)
        self._check_names(names, width_of(X))
        known = self._columns_.given or []
        frame: Any = row_source(X).take(np.arange(length_of(X)))
        missing = np.argwhere(frame.isna().to_numpy())
        if len(missing):
            row, column = missing[0]
            raise InvalidData(
                f"X has a missing value (NaN) in row {row}, column {known[column]}; fill or drop "
                "it."
            )
        # By the types of the training rows alone: whether a model could read a cell is private.
        for place in self._numeric_:
            numbers = Columns(None, [known[place]], 1).encode(frame.iloc[:, [place]])
            _check_finite(numbers, known[place])
        return typed_frame(frame, self._numeric_)

    def _check_names(self, names: list[str] | None, width: int) -> None:
        """Refuse another number, other names or another order of columns than those of fit."""
        known = self._columns_.given
        if width != self.n_features_in_ or (names is None and self._frames_):
            raise InvalidData(
                f"X has {width} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
                + (f", in a data frame with the columns {known!r}." if self._frames_ else ".")
                + (f" {FLAT}" if width == 1 and names is None else "")
            )
        if names is not None and known is not None and names != known:
            raise InvalidData(
                "X has other columns, or another order of columns, than the rows of fit; select "
                f"{known!r}."
            )

    def _readable(self, X: ArrayLike) -> tuple[Any, NDArray[np.bool_]]:
        """Return protected queries and which of them are usable; stand-ins for those that are not.

        Only what all queries of a call share can be refused: the kind of their container, the width
        of an array, the columns of a frame. What one query holds must not be seen in what happens
        to the others, so nothing else raises.
        """
        check_is_fitted(self, "guarantee_")
        if not length_of(X):
            return self._nothing(), np.zeros(0, dtype=bool)
        rows = row_source(read_one_by_one(X, self.n_features_in_))
        self._check_names(rows.names, rows.n_features)
        return self._stand_in_for(rows.take(np.arange(rows.n_rows)))

    def _stand_in_for(self, table: Any) -> tuple[Any, NDArray[np.bool_]]:
        """Put made-up rows in the place of unusable ones, and tell which are usable."""
        if self._frames_:
            usable = usable_frame(table, self._numeric_)
            table = typed_frame(table, self._numeric_, ~usable, self._stand_in_)
        else:
            table = read_table(table, self._columns_)
            usable = np.asarray(np.isfinite(table).all(axis=1))
            table[~usable] = self._stand_in_[0]
        return table, usable

    def _nothing(self) -> Any:
        """Return a table without rows."""
        if self._frames_:
            return self._stand_in_.iloc[:0]
        return np.zeros((0, len(self._columns_)))

    def _named(self, labels: Integers, *, unanswered: bool = True) -> NDArray[Any]:
        """Return declared classes for places in them, and -1 where there is no answer.

        The type follows from the classes and from whether answers may be lacking, not from any of
        them.
        """
        if not unanswered:
            return np.asarray(self.classes_[labels])
        kind = np.int64 if self.classes_.dtype.kind in "iu" else object
        named = np.full(len(labels), -1, dtype=kind)
        named[labels >= 0] = self.classes_[labels[labels >= 0]]
        return named


def check_own(concept: ConceptClass) -> None:
    """Refuse hypotheses that may refuse a private row: those of cumae label any finite one."""
    if isinstance(concept, FiniteClass):
        for hypothesis in concept.hypotheses:
            if not isinstance(hypothesis, Hypothesis):
                raise InvalidParameter(
                    f"concept_class has a {type(hypothesis).__name__}, which may fail on a private "
                    "row, and that could be seen; give hypotheses of cumae.concepts."
                )


def _check_finite(table: NDArray[np.float64], name: str | None = None) -> None:
    wrong = np.argwhere(~np.isfinite(table))
    if len(wrong):
        row, column = wrong[0]
        where = column if name is None else name
        raise InvalidData(f"X is infinite in row {row}, column {where}; give a finite number.")
