"""Answers for ever under one guarantee: EverlastingPredictor."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data.ids import check_ids
from cumae.data.rows import SomeRows
from cumae.errors import BudgetExhausted, InvalidParameter
from cumae.live import one_at_a_time
from cumae.predictors.base import LEAST_ROWS_PER_CLASS, Training
from cumae.predictors.everlasting.keeping import Admission
from cumae.predictors.everlasting.margins import (
    choose_weighted,
    weights_of_labels,
    weights_of_votes,
)
from cumae.predictors.everlasting.phases import NextPhase, rho_of
from cumae.predictors.everlasting.prior import (
    UNIT,
    combined,
    find_prior,
    trust_in,
)
from cumae.predictors.everlasting.rules import EverlastingPlan
from cumae.predictors.waiting import FreshRows, MemoryRows, RowKeeper
from cumae.randomness import permutation, source_for


class Options(NamedTuple):
    """What was declared when fitting; later changes of parameters have no effect."""

    user_ids: bool
    fresh: bool
    memoize: bool
    late: float
    background: bool
    client_cap: float | None


@claim("EVER", "USER", "FRESH", "MEMO", "LATE")
class EverlastingPredictor(EverlastingPlan):
    """Answer classification queries for ever, protecting the training rows and every query.

    Rows are split into disjoint shards, each trains a model, and every query is answered by the
    models' vote with fresh integer noise. The query is kept with its noisy margin. After as many
    answers as the noise was calibrated for, the kept queries become the rows of the next phase,
    and everything older is destroyed. A row is used in one phase only, so that the guarantee
    does not grow.

    Parameters
    ----------
    estimator
        A scikit-learn classifier or Pipeline, or a class of ``cumae.concepts``; None means
        ``DecisionTreeClassifier(max_depth=4)``. Margins become ``sample_weight``; an estimator
        that takes none gets labels drawn by their share of the votes. Without a prior, answers of
        estimators drift from phase to phase, and may end up all the same.
    epsilon, delta
        Privacy parameters, for ever; both above 0.
    concept_class
        The same as ``estimator``, for a class of ``cumae.concepts``.
    shard_size
        Rows of a shard; ``"auto"`` makes the noise 0.12 of the votes, from the number of rows,
        epsilon and delta alone.
    growth
        Answers of a phase for each of its rows, at least 1. More of them need more noise, but
        the next phase has more rows.
    prior
        A private learner for two classes that is trained on rows of its own and published; the
        votes correct it. It gets the epsilon and delta above, and is fitted anew. None takes
        :class:`~cumae.PrivateBooster` for scikit-learn estimators with two classes and declared
        columns; other estimators get none, with a warning. False takes none, silently. With
        more than two classes there is no prior.
    prior_share
        Share of the training rows that the prior gets; up to 5 % more choose how much the votes
        count against it. After the first phase, whose models saw true labels, they count for
        0.2 at most.
    balanced
        Whether the classes of a shard weigh the same for a scikit-learn estimator. Self-training
        loses the rarer class otherwise; classes with very different shares want a prior.
    user_ids
        Whether rows belong to users: at most one row per user is ever kept, and the guarantee
        holds for users. ``fit`` and ``predict`` then take ``users=``.
    fresh
        Whether rows of ``add_unlabelled`` take the place of queries, so that queries leave no
        trace and nobody can teach the predictor by asking. Labelling them counts towards the
        answers of a phase, so ``growth`` must be above 1.
    memoize
        Whether the same question gets the same answer within a phase.
    late
        Share of a phase, up to 0.5, that is still answered by the old models while new ones
        train; its queries are kept for the phase after.
    background
        Whether that training runs in a thread of its own; needs ``late``.
    client_cap
        Largest share of a phase's rows that one client may supply; ``predict`` then takes
        ``clients=``.
    columns, classes, n_jobs, progress, budget, random_state
        As in :class:`~cumae.QueryRelease`.

    Attributes
    ----------
    guarantee_
        For one training row or one query, with its zCDP form where there is one.
    phase_, answered_
        Number of the phase, from 1, and answers given since fit.
    remaining_
        Infinite; finite if rows run short under ``fresh``, ``user_ids`` or ``client_cap``.
    n_shards_, noise_per_vote_
        Of this phase.
    prior_, trust_
        The published prior, and how much the votes of the first phase count against it; None
        where there is no prior.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae import EverlastingPredictor
    >>> from cumae.concepts import Thresholds
    >>> x = np.random.default_rng(0).random((20_000, 1))
    >>> oracle = EverlastingPredictor(Thresholds(), epsilon=3.0, delta=1e-6)
    >>> oracle.fit(x, x[:, 0] > 0.3).predict([[0.05], [0.9]]).shape
    (2,)
    >>> oracle.phase_, oracle.answered_, oracle.remaining_
    (1, 2, inf)
    """

    _larger_shards = "a larger shard_size"

    # Fitting

    @one_at_a_time
    def fit(self, X: Any, y: Any, *, users: Any = None) -> Self:
        """Train the first phase, and pay for everything that will ever be asked.

        Parameters
        ----------
        X, y
            Private rows and labels, as in :class:`~cumae.QueryRelease`.
        users
            With ``user_ids``, whom each row belongs to.
        """
        training = self._training(X, y)
        self._check_options()
        ids = check_ids(users, self.user_ids, training.rows.n_rows, "users")
        admission = Admission(self.user_ids)
        kept = np.flatnonzero(admission.admit(training.rows.n_rows, ids, None))
        prior = find_prior(self.prior, training, self.epsilon, self.delta, self.columns)
        block, tried = (0, 0) if prior is None else self._blocks(len(kept), training.n_classes)
        n_rows = len(kept) - block - tried
        settings = self._settings(training, n_rows)
        fixed = self.shard_size != "auto"
        trainer = choose_weighted(settings.trainer, training.rows, settings.size)
        settings = replace(settings, trainer=trainer)
        n_shards = self._try_out(trainer, training, n_rows, settings.shards(n_rows), fixed=fixed)
        if n_shards < settings.shards(n_rows):
            settings = replace(settings, size=n_rows // n_shards)
        source = source_for(self.random_state)
        self._warn_of_drift(training, prior)
        self._warn_of_noise(settings, n_rows, prior)
        majority = settings.majority(n_rows, source, tried)
        settings, cost = replace(settings, rho=rho_of(majority)), majority.cost
        guarantee = self._start(training, self._plan(cost, prior, block), source)
        order = kept[permutation(len(kept), source)]  # the split of blocks, from counts alone
        if prior is not None:
            prior.fit(training, order[:block], source)
        self._prior_, self.prior_ = prior, None if prior is None else prior.learner
        self._settings_, self._source_, self._admission_ = settings, source, admission
        self._options_ = Options(**{name: getattr(self, name) for name in Options._fields})
        own = order[block + tried :]
        weights = weights_of_labels(training.labels, training.n_classes)[own]
        first = NextPhase(settings, 1, SomeRows(training.rows, own), weights, 1, source)
        self._phase_ = first.finish(tried)
        self.trust_: float | None = None
        if prior is not None:
            self.trust_ = self._choose_trust(training, order[block:][:tried])
        self._next_: NextPhase | None = None
        self._admission_.new_phase(self._cap())
        # A phase with less than half of the first one's rows would drown in noise.
        self._least_ = max(LEAST_ROWS_PER_CLASS * training.n_classes, n_rows // 2)
        self._keeper_ = self._new_keeper()
        self._fresh_ = FreshRows()
        self.answered_ = 0
        # Later phases may be of other sizes; each is within what was asked for.
        self.guarantee_ = replace(guarantee, epsilon=float(self.epsilon))
        return self

    @claim("PRIOR")
    def _choose_trust(self, training: Training, places: Integers) -> float:
        """Let rows that neither the prior nor a shard sees choose how much the votes count."""
        if self._prior_ is None:
            raise AssertionError("there is no prior")
        table, usable = self._stand_in_for(training.rows.take(places))
        labels = np.where(usable, training.labels[places], -1)
        phase = self._phase_
        shares = self._prior_.shares(table, phase.numbers(len(table)))
        noisy = phase.release(table)
        return self._prior_.choose_trust(
            noisy, phase.ensemble.n_shards, shares, labels, self.epsilon, self._source_
        )

    def _new_keeper(self) -> RowKeeper:
        """Return where queries wait for the next phase; the durable oracle has one on disk."""
        return MemoryRows()

    # What is public

    @property
    def phase_(self) -> int:
        """Number of the phase, from 1."""
        check_is_fitted(self, "guarantee_")
        return self._phase_.number

    @property
    def n_shards_(self) -> int:
        """Models of this phase."""
        check_is_fitted(self, "guarantee_")
        return self._phase_.ensemble.n_shards

    @property
    def noise_per_vote_(self) -> float:
        """Standard deviation of the noise as a share of the votes."""
        check_is_fitted(self, "guarantee_")
        return self._phase_.noise

    @property
    def remaining_(self) -> float:
        """Answers left: infinite, unless rows run short."""
        check_is_fitted(self, "guarantee_")
        phase = self._phase_
        if self._options_.fresh:
            # Of each phase as many releases as it has rows are for the rows of the next one.
            broken_off = self._next_ is None and phase.left < phase.n_rows
            later = 0 if broken_off else len(self._fresh_) // phase.n_rows
            later += self._next_ is not None
            each = self._settings_.releases(phase.n_rows) - phase.n_rows
            return max(0, phase.left - phase.n_rows) + later * each
        kept = len(self._keeper_) + phase.left
        return math.inf if self._next_ is not None or kept >= self._least_ else phase.left

    # Answering

    @claim("EVER", "USER", "FRESH", "MEMO", "LATE")
    @one_at_a_time
    def predict(self, X: ArrayLike, *, users: Any = None, clients: Any = None) -> NDArray[Any]:
        """Answer queries in order; each is kept with its noisy margin for the next phase.

        A batch may cross phases. A query with unusable cells gets the answer -1, and counts like
        any other: an error would tell about it in the answers to the others, and so would
        the end of a phase if it did not count. With classes that are no integers the answers are
        an array of objects, in which -1 is an integer.

        Parameters
        ----------
        X
            Queries.
        users, clients
            With ``user_ids`` or ``client_cap``, who asks each of them.
        """
        table, usable = self._readable(X)
        owners = check_ids(users, self._options_.user_ids, len(table), "users")
        askers = check_ids(clients, self._options_.client_cap is not None, len(table), "clients")
        self._check_left(len(table), owners, askers)
        labels = np.empty(len(table), dtype=np.int64)
        start = 0
        while start < len(table):
            self._switch()
            part = slice(start, start + self._until_next(len(table) - start))
            ids = [None if who is None else who[part] for who in (owners, askers)]
            labels[part] = self._answer(table[part], usable[part], *ids)
            start = part.stop
        self.answered_ += len(table)
        self._prepare()
        return self._named(labels)

    def _check_left(self, asked: int, users: Any, clients: Any) -> None:
        left = self.remaining_
        if asked > left:
            told = f"{asked} queries were asked, but {left} answers remain in phase {self.phase_}; "
            if self._options_.fresh:
                raise BudgetExhausted(
                    f"{told}the next phase needs {self._phase_.n_rows:,} rows by add_unlabelled."
                )
            # What is finite here stays so: even if all of the rest were kept, it is too little.
            raise BudgetExhausted(
                f"{told}there will be no next phase, which needs {self._least_:,} rows of "
                f"{self._whose()}. After them, fit again, which costs again."
            )
        if self._options_.fresh or self._next_ is not None or asked <= self._phase_.left:
            return
        if users is None and clients is None:
            return
        # The batch ends this phase: would enough rows be there? Ids alone decide.
        admission = self._admission_.copy()
        kept = admission.admit(self._phase_.left, users, clients).sum() + len(self._keeper_)
        if kept < self._least_:
            raise BudgetExhausted(
                f"{asked} queries were asked, but {self._phase_.left} answers remain in phase "
                f"{self.phase_}; the next phase needs {self._least_:,} rows of {self._whose()}. "
                "Ask fewer, and let others ask."  # no count: it would tell whose ids are known
            )

    def _whose(self) -> str:
        asked = ["new users"] * self._options_.user_ids
        asked += ["clients below client_cap"] * (self._options_.client_cap is not None)
        return " and ".join(asked)

    def _until_next(self, asked: int) -> int:
        """Return how many queries can be answered before rows are collected for another phase."""
        left = self._phase_.left - (self._phase_.n_rows if self._options_.fresh else 0)
        if self._next_ is None and not self._options_.fresh:
            before = left - self._late_releases()
            # Past the mark, the next phase starts to train as soon as it has enough rows.
            left = before if before > 0 else min(left, max(1, self._least_ - len(self._keeper_)))
        return min(asked, left)

    def _late_releases(self) -> int:
        releases = self._settings_.releases(self._phase_.n_rows)
        return min(releases - 1, int(self._options_.late * releases))

    @claim("EVER", "MEMO")
    def _answer(self, table: Any, usable: NDArray[np.bool_], users: Any, clients: Any) -> Integers:
        """Answer within the phase, and keep what was asked with its weights.

        A stand-in has no weight, but a place like any other query.
        """
        labels, weights = self._release(table)
        labels[~usable] = -1
        weights[~usable] = 0
        if not self._options_.fresh:
            kept = self._admission_.admit(len(table), users, clients)
            self._keeper_.append(table[kept], weights[kept])
        self._prepare()
        return labels

    @claim("EVER", "MEMO")
    def _release(self, table: Any) -> tuple[Integers, Integers]:
        """Return labels and whole weights from fresh noise; both are functions of it."""
        phase = self._phase_
        memoize = self._options_.memoize
        numbers = phase.numbers_by_cells(table) if memoize else phase.numbers(len(table))
        noisy = phase.release_once(table) if memoize else phase.release(table)
        if self._prior_ is None:
            weights = weights_of_votes(noisy, phase.ensemble.n_shards)
            return np.asarray(np.argmax(noisy, axis=1), dtype=np.int64), weights
        shares = self._prior_.shares(table, numbers)
        trust = trust_in(phase.number, self.trust_ or 0.0)
        weights = combined(noisy, phase.ensemble.n_shards, trust, shares)
        return np.asarray(np.argmax(weights, axis=1), dtype=np.int64), weights

    # Phases

    @claim("EVER", "LATE", "FRESH")
    def _prepare(self) -> None:
        """Begin the next phase's training once its rows are complete: a matter of counts."""
        phase = self._phase_
        if self._next_ is not None:
            return
        if self._options_.fresh:
            if phase.left > phase.n_rows or len(self._fresh_) < phase.n_rows:
                return
            if phase.left < phase.n_rows:  # nothing else takes releases that are for these rows
                raise BudgetExhausted(
                    "the labelling of fresh rows was broken off, and its releases are spent; fit "
                    "again."
                )
            rows = self._fresh_.take(phase.n_rows)
            _, weights = self._release(rows)
            keeper = self._new_keeper()
            keeper.append(rows, weights)
        elif phase.left > self._late_releases() or len(self._keeper_) < self._least_:
            return
        else:
            keeper = self._keeper_
        unit = phase.ensemble.n_shards if self._prior_ is None else UNIT
        kept, weights = keeper.take()
        self._next_ = NextPhase(
            self._settings_, phase.number + 1, kept, weights, unit, self._source_
        )
        self._admission_.new_phase(self._cap())
        if self._options_.background:
            self._next_.start()

    @claim("EVER", "LATE", "FRESH")
    def _switch(self) -> None:
        """Go on to the next phase when this one's releases are used up."""
        if self._phase_.left > (self._phase_.n_rows if self._waits_for_rows() else 0):
            return
        if self._next_ is None:
            raise BudgetExhausted(
                f"phase {self.phase_} is used up, and the next one has too few rows; supply more."
            )
        self._phase_ = self._next_.finish()
        self._next_ = None

    def _waits_for_rows(self) -> bool:
        return self._options_.fresh and self._next_ is None

    def _cap(self) -> int | None:
        if self._options_.client_cap is None:
            return None
        releases = self._settings_.releases(self._phase_.n_rows)
        return max(1, int(self._options_.client_cap * releases))

    # Fresh rows

    @claim("FRESH")
    @one_at_a_time
    def add_unlabelled(self, X: ArrayLike) -> Self:
        """Supply rows for the next phases; they are protected like queries.

        Only with ``fresh=True``.
        """
        check_is_fitted(self, "guarantee_")
        if not self._options_.fresh:
            raise InvalidParameter("add_unlabelled needs fresh=True; now queries are the rows.")
        table, _ = self._readable(X)
        self._fresh_.append(table)
        self._prepare()
        return self
