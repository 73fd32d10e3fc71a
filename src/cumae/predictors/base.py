"""The shared part of all private predictors: they answer queries and publish no model."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Floats, Integers
from cumae.callers import surroundings
from cumae.claims import claim
from cumae.concepts import ConceptClass, Keyed
from cumae.concepts.keyed import comparing
from cumae.data import (
    Columns,
    Declared,
    RowSource,
    class_names,
    clean_table,
    label_codes,
    need_cells,
    need_contents,
    need_keys,
    need_labels,
    read_table,
    row_source,
    undeclared_kinds,
)
from cumae.effort import Effort, total_effort
from cumae.ensembles.growing.trees import can_grow
from cumae.ensembles.named import chooses_by_name
from cumae.ensembles.trainer import Trainer
from cumae.ensembles.trial import (
    check_model,
    longest_category,
    seconds_of_a_shard,
    try_out,
)
from cumae.errors import InvalidData, InvalidParameter, LiveState, TooFewRows, shown, warn
from cumae.estimators import PrivateEstimator, is_inside, warn_if_clones_pay, warn_if_weak
from cumae.live import NOT_KEPT, forget, refuse_within
from cumae.made_up import MadeUpRows, few_labels, stand_in_row
from cumae.outlook import FitPlan, Outlook, check_table_counts, foresee
from cumae.parameters import (
    COLUMNS,
    DELTA,
    EPSILON,
    RANDOM_STATE,
    Count,
    Flag,
    Kind,
    Object,
    Or,
    check_flag,
    check_parameters,
)
from cumae.predictors.queries import QueryReader
from cumae.predictors.recipes import check_own
from cumae.predictors.records import LEAST_TEXT_BYTES, TEXT_BYTES
from cumae.privacy import Budget, Guarantee
from cumae.privacy.plans import Plan, promise
from cumae.randomness import Source, source_for

# What SHARDS assumes of models that are not cumae's own.
MODELS = (
    "a shard's fit depends on its own rows and its seed only, as those of scikit-learn do",
    "no model raises KeyboardInterrupt itself in the main thread, or ends the process",
)
LEAST_ROWS_PER_CLASS = 2
FEW_SHARDS = 50  # shards that "auto" keeps at least when the estimator needs larger ones

UNKNOWN_NAMES = (
    "the estimator chooses columns by name, and a plan knows no names; so it was not tried on "
    "made-up rows, and columns of text would leave it without a prior. Declare columns=."
)
ESTIMATOR = Or(None, Object("classifier, Pipeline or ConceptClass"))
TEXT_SIZE = Count(LEAST_TEXT_BYTES)  # the parameter text_bytes
# What every predictor has after its own parameters, in this order.
SHARED_PARAMETERS: Mapping[str, Kind] = {
    "columns": COLUMNS,
    "classes": Object("sequence of labels"),
    "n_jobs": Or(None, Object("int")),
    "progress": Or(None, Flag()),
    "budget": Or(None, Object("Budget")),
    "random_state": RANDOM_STATE,
}


@dataclass(frozen=True)
class Training:
    """Private rows as they came, with the facts that were declared about them."""

    rows: RowSource
    labels: Integers  # places in the declared classes; -1 for none of them
    columns: Columns | None
    model: Any
    n_classes: int
    reader: QueryReader
    n_public: int | None = None  # public rows that were given; None if there are none
    tried: bool = True  # whether the model is tried on made-up rows; a quick plan leaves it out

    @property
    def trainer(self) -> Trainer:
        """The function that trains one shard."""
        return Trainer(self.shard_model, self.n_classes, self.columns)

    @property
    def shard_model(self) -> Any:
        """The estimator in the form in which a shard trains it."""
        return self.reader.shard_model(self.model)

    @claim("STORE")
    def prepared(self) -> Training:
        """Return the same with rows in the form that queries have."""
        columns = None if self.columns is None else self.reader.number_columns
        rows = self.reader.prepared(self.rows, self.columns)
        return replace(self, rows=rows, columns=columns)

    @property
    def stand_in(self) -> Any:
        """A made-up row in the form in which models get rows."""
        return self.reader.stand_in

    @property
    def width(self) -> int:
        """Number of columns of numbers that the rows have, once encoded."""
        return self.rows.n_features if self.columns is None else len(self.columns)

    @property
    def one_column(self) -> bool:
        """True if the model is a concept class of one column, of numbers or of ordered values."""
        one = self.width == 1 or isinstance(self.model, Keyed)
        return one and isinstance(self.model, ConceptClass)

    @property
    def vc_dimension(self) -> int:
        """VC dimension of the model, a concept class, for rows of this width; 1 at least."""
        return max(1, int(self.model.vc_dimension(self.width)))

    def cleaned(self) -> tuple[Floats, Integers]:
        """Return rows as numbers, and labels; an unusable row is zeros with the first label."""
        return clean_table(self.rows, self.labels, self.columns)

    @property
    def undeclared_text(self) -> list[str]:
        """Names of columns of text, by their types, if nothing was declared."""
        if self.columns is not None:
            return []
        rows = self.rows
        names = rows.names or [str(place) for place in range(rows.n_features)]
        return [name for place, name in enumerate(names) if rows.is_text(place)]

    def need_numbers(self) -> None:
        """Refuse undeclared columns of text, by their types alone."""
        names = self.undeclared_text
        if names:
            raise InvalidData(
                f"columns hold text by their types: {', '.join(names)}; declare their categories "
                "with columns=.",
                columns=names,
            )


def check_kinds(rows: RowSource, columns: Columns | None) -> None:
    """Refuse undeclared columns of dates and the like, by their types alone."""
    if columns is None:
        Columns(None, rows.names, rows.n_features, undeclared_kinds(rows.kinds))


class Predictor(PrivateEstimator, ABC):
    """A classifier that answers queries under a guarantee and must not be published itself.

    Inside it are models that no privacy protects. So it cannot be copied, pickled or used in
    a forked process once it is fitted.

    Every ``fit`` goes the same way: ``_training`` checks the parameters and reads what is declared,
    ``decide`` plans from public numbers, ``_try_out`` trains on made-up rows, ``_start`` pays, and
    only then private rows are used. Every ``predict`` reads queries with ``_queries`` if they are
    public or ``_readable`` if they are protected. Answers are places of classes until they leave.
    """

    estimator: Any
    concept_class: ConceptClass | None
    epsilon: float
    delta: float
    classes: Any = (0, 1)
    columns: Declared = None
    text_bytes: int = TEXT_BYTES
    n_jobs: int | None = None
    progress: bool | None = None
    budget: Budget | None = None
    random_state: int | Source | None = None

    guarantee_: Guarantee
    classes_: NDArray[Any]
    n_features_in_: int

    parameter_table: ClassVar[Mapping[str, Kind]] = {"epsilon": EPSILON, "delta": DELTA}
    counts_unusable: ClassVar[bool] = False  # whether unusable queries get -1, or are refused
    takes_public: ClassVar[bool] = False  # whether ``fit`` takes public rows

    _larger_shards: ClassVar[str] = "a smaller n_shards"  # what messages tell to give

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = np.size(self.classes) > 2
        return tags

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: state[name] for name in state if name not in NOT_KEPT}

    @claim("BBL", "QUERY", "EVER")
    def __reduce_ex__(self, protocol: Any) -> Any:
        if any(name.endswith("_") for name in vars(self)):
            raise LiveState(
                f"a fitted {type(self).__name__} cannot be copied or pickled: it holds models that "
                "are not private, and both copies would have the same answers left. Use "
                "sklearn.base.clone for an unfitted copy."
            )
        return super().__reduce_ex__(protocol)

    # Fitting

    def _training(self, X: Any, y: Any) -> Training:
        """Check the parameters and read what is declared; of the rows nothing but their number."""
        self._check_given()
        rows = row_source(X)
        labels = label_codes(rows, y, self.classes)
        if isinstance(y, str) and hasattr(rows, "without"):
            rows = rows.without(y)
        training = self._described(rows, labels)
        if not is_inside():
            need_labels(labels, self.classes)
            self._check_contents(rows, training.reader)
        return training

    def check_contents(self, X: Any) -> None:
        """Refuse columns of which nothing is left once they are read, before anything is paid."""
        rows = row_source(X)
        self._check_contents(rows, self._described(rows, np.zeros(0, dtype=np.int64)).reader)

    def check_queries(self, X: Any, queries: Any) -> None:
        """Refuse queries that no model could read after a fit to ``X``, before anything is paid.

        Parameters
        ----------
        X : table
            The rows of ``fit``: of them nothing but names, types and width is looked at.
        queries : table
            What will be asked.
        """
        rows = row_source(X)
        self._described(rows, np.zeros(0, dtype=np.int64)).reader.public(queries)

    def _check_contents(self, rows: RowSource, reader: QueryReader) -> None:
        # Models that get data frames as they are can use columns of text.
        need_contents(rows, reader.columns, reader.numeric if reader.as_frames else None)
        need_keys(rows, reader.columns)

    def _check_given(self) -> None:
        """Check the parameters, before anything is read."""
        check_parameters(self, self.parameter_table)
        if self.budget is not None and not isinstance(self.budget, Budget):
            raise InvalidParameter(
                f"budget={shown(self.budget)} is no Budget; give Budget(epsilon, delta), or None."
            )

    def _described(self, rows: RowSource, labels: Integers) -> Training:
        """Return rows with what is declared about them; refuse what does not go together."""
        model = self._model()
        columns = None
        if self.columns is not None:
            columns = Columns(self.columns, rows.names, rows.n_features, rows.kinds)
        model = comparing(model, columns)
        reader = self._reader(rows, columns, model)
        training = Training(rows, labels, columns, model, len(self.classes), reader)
        reader.shard_model(model)  # refuses columns that it names and X does not have
        if isinstance(model, ConceptClass):
            if training.n_classes > 2:
                raise InvalidParameter(
                    f"{training.n_classes} classes: a concept class labels with two; for more "
                    "there are QueryRelease and EverlastingPredictor with an estimator."
                )
            model.vc_dimension(training.width)  # refuses a width that does not fit
            check_own(model)
        return training

    def plan(
        self, n_samples: int, n_features: int, n_public: int = 0, *, trial: bool = True
    ) -> Outlook:
        """Tell what ``fit`` would do with so many rows, without any row and without spending.

        Parameters
        ----------
        n_samples : int of 0 or more
            Private rows; where rows belong to users, the number of users.
        n_features : int of 1 or more
            Columns of the table, before they are encoded. Those that are not declared are numbers.
        n_public : int of 0 or more
            Public rows, for a predictor that takes some; others leave them out, with a warning.
        trial : bool
            Whether an estimator is tried on made-up rows, as ``fit`` does. That takes half a second
            for small trees, and minutes for slow estimators. It may make shards larger, and tells
            what is wrong with an estimator. Without it a plan takes a fraction of a second.

        Returns
        -------
        Outlook
            What it would do, promise and take, or why it would be refused.
        """
        counts = (n_samples, n_features, n_public)
        return foresee(type(self).__name__, lambda: self._foreseen(*counts, trial=trial))

    def _foreseen(self, n_samples: int, n_features: int, n_public: int, *, trial: bool) -> Outlook:
        """Decide as ``fit`` does before it pays; refuse what it refuses."""
        self._check_given()
        n_samples, n_features, n_public, _ = check_table_counts(n_samples, n_features, n_public)
        unknown = self.columns is None and chooses_by_name(self._model())
        tried = check_flag(trial, "trial") and not unknown
        training = self._stand_in(n_samples, n_features, tried=tried, frame=unknown)
        began = time.process_time()
        plan = self.decide(replace(training, n_public=n_public or None))
        effort = total_effort(_all_work(training, plan, time.process_time() - began))
        guarantee = self._promised(plan, source_for(self.random_state))
        if self.budget is not None:
            self.budget.check(plan.cost, delta=self.delta, what=type(self).__name__)
        notes: tuple[str, ...] = (UNKNOWN_NAMES,) if unknown else ()
        if n_public and not self.takes_public:
            notes += (f"{type(self).__name__} takes no public rows; {n_public:,} are left out.",)
        return Outlook.of(type(self).__name__, guarantee, plan.facts, effort, notes)

    def _stand_in(self, n_samples: int, n_features: int, *, tried: bool, frame: bool) -> Training:
        """Return made-up rows instead of private ones; they take no memory."""
        rows = MadeUpRows(self.columns, n_samples, n_features, frame=frame)
        need_cells(rows)
        one = MadeUpRows(self.columns, 1, n_features)
        label_codes(one, few_labels(self.classes, 1, 0), self.classes)  # checks the classes
        labels = np.broadcast_to(np.int64(0), n_samples)
        return replace(self._described(rows, labels), tried=tried)

    @abstractmethod
    def decide(self, training: Training) -> FitPlan[Any]:
        """Decide what to do and what it costs, before anything is paid; nothing is drawn.

        Parameters
        ----------
        training : Training
            The declared facts, and rows of which only the number is used.

        Returns
        -------
        FitPlan
            What ``fit`` would do, its cost, its public facts, and its work beside that of the
            shards, which ``plan`` adds.
        """

    @claim("BBL", "QUERY")
    def _promised(self, plan: Plan, source: Source) -> Guarantee:
        """Return what ``guarantee_`` will be."""
        return promise(plan, self.epsilon, self.delta, void=source.deterministic)

    def _model(self) -> Any:
        if self.estimator is not None and self.concept_class is not None:
            raise InvalidParameter("estimator and concept_class are both given; give one of them.")
        model = self.concept_class if self.estimator is None else self.estimator
        what = "estimator" if self.concept_class is None else "concept_class"
        return check_model(DecisionTreeClassifier(max_depth=4) if model is None else model, what)

    def _reader(self, rows: RowSource, columns: Columns | None, model: Any) -> QueryReader:
        # Frames stay frames for pipelines that name columns; everything else becomes numbers.
        as_frames = rows.is_frame and columns is None and not isinstance(model, ConceptClass)
        longest = longest_category(model) if as_frames else 0
        if longest > self.text_bytes:  # it would never be met
            raise InvalidParameter(
                f"estimator lists a category of {longest} bytes, but texts are cut after "
                f"text_bytes={self.text_bytes!r}; give text_bytes={longest}, or declare the column."
            )
        check_kinds(rows, columns)
        stand_in = stand_in_row(rows, columns)
        if not as_frames:
            stand_in = np.nan_to_num(read_table(stand_in, columns))
        return QueryReader(
            type(self).__name__,
            columns or Columns(None, rows.names, rows.n_features),
            rows.n_features,
            [place for place in range(rows.n_features) if not rows.is_text(place)],
            as_frames,
            stand_in,
            int(self.text_bytes),
        )

    def _try_out(
        self, trainer: Trainer, training: Training, n_rows: int, n_shards: int, *, fixed: bool
    ) -> int:
        """Train on made-up rows; return the number of shards with which the model can learn.

        Unless the number is fixed, shards grow until the model tells made-up classes apart: some
        estimators cannot do it with a few rows, independent of what these hold.
        """
        if not training.tried:
            return n_shards
        larger = self._larger_shards
        facts = (training.rows, training.stand_in)
        while not try_out(trainer, *facts, n_rows // n_shards, larger):
            if fixed or n_shards < 2 * FEW_SHARDS:
                warn(
                    f"with {n_rows // n_shards} rows, the size of a shard, the estimator gives "
                    f"every made-up row the same label; make shards larger with {larger}, or let "
                    "it learn from fewer rows (such as min_samples_leaf=1).",
                    TooFewRows,
                )
                return n_shards
            n_shards //= 2
        return n_shards

    @claim("BBL", "QUERY")
    def _start(self, training: Training, plan: Plan, source: Source) -> Guarantee:
        """Pay for a plan, drop an earlier fit and set what every fitted predictor shows.

        What is kept has a name that ends in ``_``, so that a later fit drops all of it at once.
        The caller sets the guarantee when everything else is done: a fit that was broken off has
        none.
        """
        guarantee = surroundings(self, self.epsilon).judge(self._promised(plan, source))
        warn_if_weak(self.epsilon, self.delta, training.rows.n_rows)
        warn_if_clones_pay(self, self.epsilon)
        if self.budget is not None:
            self.budget.spend(plan.cost, delta=self.delta, what=type(self).__name__)
        forget(self)
        rows = training.rows
        self.n_features_in_ = rows.n_features
        if rows.names is not None:
            self.feature_names_in_ = np.array(rows.names, dtype=object)
        self.classes_ = class_names(self.classes)
        self._reader_ = training.reader
        return guarantee

    # Answering

    def _queries(self, X: Any) -> Any:
        """Return public queries as the models take them; refuse unusable ones before anything."""
        return self._reader_.public(X)

    def _readable(self, X: Any) -> tuple[Any, NDArray[np.bool_]]:
        """Return protected queries, and which of them are usable; the others become a stand-in."""
        return self._reader_.private(X)


def check_fitted(predictor: Any) -> None:
    """Refuse if there was no fit; scikit-learn's check itself takes a tenth of a millisecond."""
    if "_promise_" not in vars(predictor):
        refuse_within(predictor)  # a fit that goes on in this thread
        check_is_fitted(predictor, "_promise_")


Options = TypeVar("Options")


def options_of(kind: type[Options], predictor: Predictor) -> Options:
    """Return the parameters of a predictor that some of its rules follow from, as a frozen value.

    Parameters
    ----------
    kind : type
        A dataclass, whose fields have the names of parameters.
    predictor : Predictor
        Its parameters were checked by its table.
    """
    named: Any = kind
    return kind(**{part.name: getattr(predictor, part.name) for part in fields(named)})


def _all_work(training: Training, plan: FitPlan[Any], spent: float) -> tuple[Effort, ...] | None:
    """Return the work of a fit: that of the shards, by public numbers, and all others.

    Parameters
    ----------
    training : Training
        The declared facts.
    plan : FitPlan
        What was decided; without ``n_shards`` among its facts, there are no shards.
    spent : float
        Seconds that it took to decide: a fit decides in the same way.
    """
    others, facts = plan.work, plan.facts
    if others is None or "n_shards" not in facts:
        return others
    count, size = int(facts["n_shards"]), int(facts["shard_size"])
    cells = count * size * training.width
    model = training.shard_model
    if training.one_column:
        return *others, Effort("one column", cells, cells)
    if can_grow(model):
        return *others, Effort("small trees", cells, cells)
    if not training.tried:
        return None
    each = seconds_of_a_shard(training.trainer, training.rows, size)
    return *others, Effort("measured", spent + count * each, cells)
