"""A published private model that the votes correct."""

from __future__ import annotations

import contextlib
import json
import math
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numba
import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass, Keyed, Rectangles, Thresholds, UnionOfIntervals
from cumae.data import Columns, SomeRows, class_names, clean_table, read_table, row_source
from cumae.effort import Effort
from cumae.ensembles.blocks import FEW_BLOCK_ROWS, AskedInBlocks, block_rows
from cumae.errors import CumaeError, InvalidParameter, TooFewRows, shown
from cumae.estimators import inside, own_clone
from cumae.learners import Adapter, Learner, PrivateKernelClassifier, PrivateLearner
from cumae.learners.base import Rows, Sizes
from cumae.learners.exponential import ConceptLearner
from cumae.learners.scored import ScoredLearner, chances
from cumae.mechanisms import ExponentialMechanism
from cumae.parameters import TWO_CLASSES, check_parameters
from cumae.predictors.base import Training
from cumae.predictors.recipes import check_own
from cumae.privacy import REPLACE_ONE, Guarantee
from cumae.privacy.plans import promise
from cumae.randomness import Source
from cumae.remembering import remembered

TRUSTS = (0.0, 0.1, 0.2, 0.4, 1.0, 3.0)  # how much a vote may count against the prior
LUCK = 0.05  # chance that votes are trusted at all if they gain nothing
LATER_TRUST = 0.2  # the most of it in later phases, whose models saw recycled answers alone
TRUST_SHARE, TRUST_MOST = 0.05, 5_000  # rows that choose among them
CUTS = {1: 1023, 2: 63, 3: 15}  # of each column, for a prior of a concept class, by columns
MOST_ROWS = 10**12  # that a prior is planned for
REFUSED = "prior cannot be trained: "  # how the refusal of a prior begins
# Concept classes whose votes do not drift if no bounds were declared (representatives.py).
STEADY = (Thresholds, UnionOfIntervals, Rectangles)
FULL_WEIGHT = 1000  # of a row whose label is certain; weights are whole numbers up to it


@claim("PRIOR", "EVER")
class Prior:
    """A learner that is trained on rows of its own, and then combined with votes.

    Parameters
    ----------
    learner : Learner
        Unfitted; it gets the whole epsilon and delta, because no other part sees its rows.
    columns : Columns
        How its rows are encoded.
    encoded : bool
        Whether queries come encoded already.
    """

    def __init__(self, learner: Learner, columns: Columns, encoded: bool) -> None:
        self.learner, self._columns, self._encoded = learner, columns, encoded
        self.width = len(columns)  # of the tables that it is asked about
        self.n_rows = 0  # that it was trained on

    @property
    def reads_numbers(self) -> bool:
        """True if it can be trained on, and asked about, encoded rows."""
        return _reads_numbers(self.learner)

    def unfitted_copy(self) -> Prior:
        """Return one with the same learner, not fitted."""
        return Prior(own_clone(self.learner), self._columns, self._encoded)

    def promise(self, n_rows: int) -> Guarantee:
        """Return what the learner will promise, before any row is used.

        A learner of cumae tells it from public numbers. Any other one is fitted to made-up rows,
        and refused if it could not be asked about any query. A learner that does not protect whole
        rows is refused: the predictor could not keep its own promise with it.
        """
        learner = own_clone(self.learner)
        try:
            if _reads_numbers(learner):
                promised = self._planned(learner, n_rows)
            else:
                promised = self._tried(learner, n_rows)
        except CumaeError as error:
            raise InvalidParameter(f"{REFUSED}{error}") from None
        if promised.relation != REPLACE_ONE:
            raise InvalidParameter(
                f"prior protects {promised.protects}, where {promised.relation}; give one that "
                "protects whole rows."
            )
        return promised

    def _planned(self, learner: Learner, n_rows: int) -> Guarantee:
        learner.set_params(columns=list(self._columns.columns))
        check_parameters(learner, learner.parameter_table)
        plan = learner.decide(*self._sizes(n_rows))
        plans = [plan]
        # Labels that come later may renew it; so many that it would be refused renew nothing.
        with contextlib.suppress(InvalidParameter):
            plans.extend(learner.decide(*self._sizes(count)) for count in _doubled(n_rows)[1:])
        claims = dict.fromkeys(name for one in plans for name in one.claims)
        return promise(replace(plan, claims=tuple(claims)), *learner.limits(), void=False)

    def _sizes(self, n_rows: int) -> tuple[Sizes, Rows]:
        """Return what a learner decides from: a number of rows, and no row."""
        nothing = Rows(np.zeros((0, self.width)), np.zeros(0, dtype=np.int64))
        return Sizes(n_rows, 0, 0, self._columns), nothing

    def work(self, n_rows: int) -> tuple[Effort, ...] | None:
        """Return what training it on so many rows takes; None if that is not known."""
        learner = own_clone(self.learner)
        if not _reads_numbers(learner):
            return None
        learner.set_params(columns=list(self._columns.columns))
        found: tuple[Effort, ...] | None = learner.decide(*self._sizes(n_rows)).work
        return found

    def _tried(self, learner: Learner, n_rows: int) -> Guarantee:
        # Whether ranges can be found depends on the number of rows; else a few rows will do.
        size = n_rows if self._columns.open else min(n_rows, 500)
        spread = np.linspace(0.0, 1.0, size)
        table = np.column_stack(
            [
                np.zeros(size) if bound is None else bound[0] + spread * (bound[1] - bound[0])
                for bound in self._columns.bounds
            ]
        )
        with warnings.catch_warnings():  # the made-up rows may be fewer than the real ones
            warnings.simplefilter("ignore", TooFewRows)
            self._learn(learner, table, np.arange(size) % len(learner.classes))
        if self._asked(learner).fails:
            raise InvalidParameter(
                "it raises or warns on a row with the lower bound of every column, so that it "
                "could not be asked about any query; give another learner, or other bounds."
            )
        found: Guarantee = learner.guarantee_
        return found

    @property
    def open_columns(self) -> list[str]:
        """Names of the columns whose range is not known."""
        return [column.name for column in self._columns.columns if column.is_open]

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing."""
        learner = json.dumps(self.learner.to_dict(), allow_nan=False)
        return {
            "learner": learner,
            "columns": self._columns,
            "encoded": self._encoded,
            "n_rows": self.n_rows,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Prior:
        """Rebuild what ``to_facts`` returned."""
        learner = Learner.from_dict(json.loads(facts["learner"]))
        found = cls(learner, facts["columns"], facts["encoded"])
        found.n_rows = facts["n_rows"]
        return found

    def unfitted(self) -> Learner:
        """Return a learner for the parameter ``prior`` that would be fitted to the same prior."""
        declared = None
        if not self._encoded:
            declared = list(self._columns.columns)
        found: Learner = own_clone(self.learner).set_params(columns=declared)
        return found

    def _bounds(self) -> list[Any]:
        return [None if bound is None else tuple(bound) for bound in self._columns.bounds]

    def fit(self, training: Training, places: Integers, source: Source) -> None:
        """Train it on some of the rows; unusable ones count as zeros, as nobody must see them."""
        rows = SomeRows(training.rows, places)
        self._fit(*clean_table(rows, training.labels[places], self._columns), source)

    def learn(self, rows: Any, labels: Integers, source: Source) -> None:
        """Train it on rows in the form in which queries come; unusable ones count as zeros."""
        table = rows
        if not self._encoded:
            table, labels = clean_table(row_source(rows), labels, self._columns)
        self._fit(table, labels, source)

    def _fit(self, table: Floats, labels: Integers, source: Source) -> None:
        self.learner.set_params(random_state=source)
        with inside():  # a part of the predictor, which has warned and refused for the whole
            self._learn(self.learner, table, labels)
        self.learner.set_params(random_state=None)
        self.n_rows = len(labels)

    def _learn(self, learner: Learner, table: Floats, labels: Integers) -> None:
        """Fit a learner to encoded rows, with all that is known of the columns if it can take it.

        Only then can it be asked about encoded rows as well as about rows as they come.
        """
        if _reads_numbers(learner):
            learner.set_params(columns=list(self._columns.columns))
            learner.fit_encoded(table, labels, self._columns)
            return
        learner.set_params(columns=self._bounds())
        learner.fit(table, np.array(class_names(learner.classes))[labels])

    @claim("PRIOR")
    def choose_trust(
        self,
        noisy: Integers,
        n_shards: int,
        shares: Floats,
        labels: Integers,
        epsilon: float,
        source: Source,
    ) -> float:
        """Draw how much the votes count, by how many rows of a third part come out right.

        One of these rows moves each score by one at most. A label of -1 counts for nothing.
        ``shares`` are the prior's for these rows. Votes that gain nothing must not be trusted by
        luck, which costs up to two points in later phases: then all trusts above 0 together have a
        chance of about ``LUCK``. What votes must gain for more follows from epsilon.
        """
        scores = [
            int(np.count_nonzero(np.argmax(combined(noisy, n_shards, t, shares), axis=1) == labels))
            for t in TRUSTS
        ]
        gain = min(len(labels) + 1.0, 2 * math.log((len(TRUSTS) - 1) / LUCK) / max(epsilon, 1e-9))
        worth = np.array(scores) - np.where(np.array(TRUSTS) > 0, math.ceil(gain), 0)
        mechanism = ExponentialMechanism(epsilon, random_state=source)
        return TRUSTS[int(mechanism.choose(worth))]

    @property
    def block_rows(self) -> int:
        """Rows of the blocks in which it is asked, if it is."""
        return block_rows(self.width, FEW_BLOCK_ROWS)

    @claim("PRIOR", "EVER")
    def shares(self, X: Any, numbers: Integers) -> Floats:
        """Return the share of each class for each row, which no other row changes.

        Parameters
        ----------
        X : table
            Queries.
        numbers : array of int
            A running number for each of them. It decides the place in a block, if the prior has to
            be asked in blocks.
        """
        learner = self.learner
        if not _is_exact(learner):
            return self._asked(learner)(X if self._encoded else self._read(X), numbers)
        if self._encoded:
            return _shares_of_encoded(learner, X)
        table = self._read(X)
        unread = ~np.isfinite(table).all(axis=1)
        table[unread] = self._stand_in
        found = _shares_of_encoded(learner, table)
        found[unread] = 1 / found.shape[1]
        return found

    @claim("PRIOR", "EVER")
    def weights(
        self, noisy: Integers, n_shards: int, trust: float, X: Any, numbers: Integers
    ) -> Integers:
        """Return whole weights of queries: the shares of the prior, moved by noisy votes.

        Parameters
        ----------
        noisy : array of int
            Noisy votes, a row for each query.
        n_shards : int
            Number of models that voted.
        trust : float
            How much the votes count against the prior.
        X : table
            The queries.
        numbers : array of int
            Their running numbers, as ``shares`` takes them.
        """
        return combined(noisy, n_shards, trust, self.shares(X, numbers))

    def _read(self, X: Any) -> Floats:
        return read_table(X, self._columns)

    @property
    def _stand_in(self) -> list[float]:
        return [0.0 if bound is None else bound[0] for bound in self._columns.bounds]

    def _asked(self, learner: Learner) -> AskedInBlocks:
        """Return what asks a learner in blocks of one shape.

        The running number of a query decides its place there, and a query on which the prior fails
        gets equal shares.
        """
        ask = getattr(learner, "predict_proba", partial(_lean, learner))
        if _reads_numbers(learner):  # without reading encoded rows a second time
            ask = partial(_shares_of_encoded, learner)
        equal = np.full(len(learner.classes), 1 / len(learner.classes))
        return AskedInBlocks(ask, np.array([self._stand_in]), equal)


def _doubled(n_rows: int) -> list[int]:
    """Return a number of rows, and its doubles up to ``MOST_ROWS``."""
    steps = max(0, (MOST_ROWS // max(n_rows, 1)).bit_length())
    return [n_rows << step for step in range(max(1, steps))]


@claim("PRIOR")
@remembered(64)
def _is_own(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "cumae"


@claim("PRIOR")
def _is_exact(learner: Learner) -> bool:
    """Tell whether it is exact by code of cumae alone: a subclass may compute in its own way."""
    return _is_own(type(learner)) and learner.is_exact and _reads_numbers(learner)


@claim("PRIOR")
def _reads_numbers(learner: Learner) -> bool:
    """Tell whether a learner can be asked about encoded rows: by its class alone."""
    kind: Any = type(learner)
    if isinstance(learner, ScoredLearner):
        return bool(kind.predict_proba is ScoredLearner.predict_proba)
    return isinstance(learner, ConceptLearner) and kind.predict is Learner.predict


@claim("PRIOR")
def _shares_of_encoded(learner: Any, table: Floats) -> Floats:
    """Return the shares of a learner that reads numbers, for encoded rows."""
    if isinstance(learner, ScoredLearner):
        return chances(learner.log_odds(table))
    return _lean_by_places(learner, table)


@claim("PRIOR")
def _lean(learner: Learner, table: Floats) -> Floats:
    """Return shares of a learner that has no chances: most of it for the label."""
    known = np.asarray(learner.predict(table))[:, None] == learner.classes_
    return np.where(known, 0.75, 0.25 / (len(learner.classes_) - 1))


@claim("PRIOR")
def _lean_by_places(learner: ConceptLearner, table: Floats) -> Floats:
    """As ``_lean``, for a learner whose hypothesis labels encoded rows."""
    known = np.asarray(learner.hypothesis_.predict(table))[:, None] == np.arange(2)
    return np.where(known, 0.75, 0.25)


@claim("PRIOR")
def default_prior(training: Training) -> Learner | None:
    """Return the learner that is the prior if none is given, by declared facts and types alone.

    None where there is none: for undeclared columns of text, and for concept classes but
    boxes with declared bounds, and those of one column. Without bounds the candidates may be too
    coarse for a column that lies far from 0; so the votes must be able to make up for it.
    """
    if training.undeclared_text:
        return None
    model, width = training.model, training.width
    if not isinstance(model, ConceptClass):
        return PrivateKernelClassifier()
    bounded = training.columns is not None and not training.columns.open
    one_column = width == 1 and (bounded or isinstance(model, STEADY))
    if one_column or (bounded and isinstance(model, Rectangles)):
        return PrivateLearner(model, n_points=CUTS[width])
    return None


@claim("PRIOR")
def find_prior(
    prior: Learner | bool | None,
    training: Training,
    epsilon: float,
    delta: float,
    declared: Any,
    classes: Any,
) -> Prior | None:
    """Return the prior to train, from what was declared: the default one where there is none."""
    if prior is False:
        return None
    if prior is not None and isinstance(training.model, Keyed):
        raise InvalidParameter(
            "prior= with ordered columns: a prior is published, and its cut would be the value of "
            "a row; leave prior out, or give prior=False."
        )
    if prior is None or prior is True:
        found = default_prior(training)
        if found is None:
            if prior:
                raise InvalidParameter(
                    f"prior=True with columns={'None' if declared is None else '...'}: the default "
                    "prior is for scikit-learn estimators, concept classes of one column and boxes "
                    "with bounds, without undeclared text; give a learner, or prior=False."
                )
            return None
        prior = found
    learner = own_clone(_checked(prior, training.n_classes, epsilon, delta))
    known = learner.get_params(deep=False)
    own = learner.declared_columns()
    if own is not None and declared is not None:
        raise InvalidParameter("columns are declared here and in the prior; do it once.")
    if "bounds" in known:  # another name of columns
        learner.set_params(bounds=None)
    rows = training.rows
    given = own if declared is None else declared
    wanted: dict[str, Any] = {"classes": tuple(classes)}
    if not isinstance(learner, Adapter):  # what it wraps has made its own promise
        wanted |= {"epsilon": epsilon, "delta": delta}
    learner.set_params(**{name: value for name, value in wanted.items() if name in known})
    if "budget" in known:
        learner.set_params(budget=None)
    columns = Columns(given, rows.names, rows.n_features, rows.kinds)
    return Prior(learner, columns, encoded=declared is not None)


@claim("PRIOR")
def _checked(prior: Any, n_classes: int, epsilon: float, delta: float) -> Learner:
    """Refuse what cannot be a prior, for any rows."""
    if isinstance(prior, type) and issubclass(prior, Learner):
        raise InvalidParameter(f"prior is the class {prior.__name__}; give {prior.__name__}().")
    if not isinstance(prior, Learner):
        raise InvalidParameter(
            f"prior={shown(prior)} is no learner; give one of cumae.learners, None or False."
        )
    check_own(getattr(prior, "concept_class", None))
    kind = type(prior).__name__
    if n_classes > 2 and prior.parameter_table.get("classes", TWO_CLASSES) is TWO_CLASSES:
        raise InvalidParameter(
            f"prior is a {kind}, which knows two classes, but there are {n_classes}; give "
            "PrivateKernelClassifier()."
        )
    if "columns" not in prior.get_params(deep=False):
        raise InvalidParameter(
            f"prior is a {kind}, which takes no columns of its own; give a learner that does, such "
            "as PrivateKernelClassifier() or PrivateBooster()."
        )
    if isinstance(prior, Adapter) and (prior.epsilon > epsilon or prior.delta > delta):
        raise InvalidParameter(
            f"prior is an Adapter with epsilon={prior.epsilon!r}, delta={prior.delta!r}, more than "
            f"epsilon={epsilon!r}, delta={delta!r} here; give one that promises as much."
        )
    return prior


@claim("PRIOR")
def trust_in(phase: int, trust: float, *, steady: bool = False) -> float:
    """Return how much the votes of a phase count: all that was chosen in the first phase only.

    It was chosen for models that saw true labels. Later ones see answers, and what is wrong with
    them grows if votes outweigh the prior. Votes that do not drift count as chosen in all phases.
    By the phase's number and by what was declared, which are public.

    Examples
    --------
    >>> from cumae.predictors.everlasting.prior import trust_in
    >>> trust_in(1, 3.0), trust_in(2, 3.0), trust_in(2, 0.1), trust_in(2, 3.0, steady=True)
    (3.0, 0.2, 0.1, 3.0)
    """
    return trust if phase == 1 or steady else min(trust, LATER_TRUST)


@claim("PRIOR")
def combined(noisy: Integers, n_shards: int, trust: float, prior: Floats) -> Integers:
    """Return whole weights for each class: the prior's shares, moved by the noisy votes.

    The rule sees public numbers, the published prior and the noisy counts. A class weighs by how
    much it is ahead of the weakest one. Where that is more than the full weight, all classes shrink
    by the same factor, so that the first one stays first.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.predictors.everlasting.prior import combined
    >>> combined(np.array([[60, 40]]), 100, 1.0, np.array([[0.45, 0.55]])).tolist()
    [[100, 0]]
    >>> combined(np.array([[50, 40, 10]]), 100, 4.0, np.full((1, 3), 1 / 3)).tolist()
    [[1000, 750, 0]]
    """
    found = np.empty(noisy.shape, dtype=np.int64)
    _weigh(noisy, n_shards, trust, prior, np.empty(prior.shape), found)
    return found


@claim("PRIOR")
@numba.njit(cache=True, nogil=True)
def _weigh(
    noisy: Integers, n_shards: int, trust: float, prior: Floats, sums: Floats, found: Integers
) -> None:
    """Write the weights of ``combined``; ``sums`` is room for one number for each class and row."""
    for row in range(noisy.shape[0]):
        least, most = np.inf, -np.inf
        for place in range(noisy.shape[1]):
            share = min(max(noisy[row, place] / n_shards, 0.0), 1.0)
            sums[row, place] = trust * (share - 1 / noisy.shape[1]) + prior[row, place]
            least, most = min(least, sums[row, place]), max(most, sums[row, place])
        for place in range(noisy.shape[1]):
            ahead = (sums[row, place] - least) / max(1.0, most - least)
            found[row, place] = int(np.rint(FULL_WEIGHT * ahead))
