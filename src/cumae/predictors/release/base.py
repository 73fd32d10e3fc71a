"""What the releases share: shards vote, a mechanism answers, and the answers are counted."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.ensembles.ensemble import Ensemble
from cumae.errors import BudgetExhausted, InvalidParameter, TooFewRows
from cumae.live import one_at_a_time
from cumae.mechanisms import NoisyMajority
from cumae.mechanisms.base import Ahead
from cumae.mechanisms.stability import UNSTABLE
from cumae.parameters import check_count
from cumae.predictors.base import SMALL_SHARD, Predictor, Training
from cumae.predictors.release.answers import AnswerPlan, Answers, Demand, unstable_answers
from cumae.privacy.validation import check_nonnegative
from cumae.randomness import Source, integers

ASSUMPTIONS = (
    "the queries are public",
    "a shard's fit depends on its own rows and its seed only, as those of scikit-learn do",
)
MUCH_NOISE = 0.3  # noise per vote above which answers are hardly better than chance
GOOD_NOISE = 0.15


def check_queries(max_queries: object) -> int:
    """Return how many queries are to be answered."""
    return check_count(max_queries, "max_queries", least=1)


def random_labels(n_classes: int, source: Source) -> Ahead:
    """Return labels for unclear queries; how many are taken changes no other coin."""
    own = source.child()
    return Ahead(lambda count: integers(n_classes, count, own))


class Release(Predictor):
    """Answers up to ``max_queries`` queries by the votes of an ensemble."""

    max_queries: int
    n_shards: int | str
    alpha: float
    beta: float
    max_unstable: int | str
    abstain: bool

    mechanism_: str
    why_: str
    n_shards_: int
    noise_per_vote_: float

    def _demand(self, epsilon: float, delta: float, n_classes: int) -> Demand:
        for name in ("alpha", "beta"):
            value = check_nonnegative(getattr(self, name), name)
            if not 0 < value < 1:
                raise InvalidParameter(f"{name}={value!r} is not between 0 and 1.")
        if self.abstain and -1 in list(self.classes):
            raise InvalidParameter("abstain=True answers -1, which is a declared class; rename it.")
        count = check_queries(self.max_queries)
        most = self.max_unstable
        if most == "auto":
            most = unstable_answers(count, self.alpha, self.beta)
        return Demand(epsilon, delta, count, check_count(most, "max_unstable", least=1), n_classes)

    def _count_shards(self, training: Training, answers: AnswerPlan) -> int:
        """Return the number of shards, from public numbers alone.

        Models get better with the rows of a shard, and the noise counts less with the number of
        shards. The square root of rows per unit of noise lies between the two, and did best on the
        survey over a wide range of rows, queries and epsilons (benchmarks/query_release.py).
        """
        n_rows, n_classes = training.rows.n_rows, training.n_classes
        if self.n_shards != "auto":
            return self._check_shards(n_rows, self.n_shards, n_classes)  # type: ignore[arg-type]
        scale = max(1.0, answers.lead / 1.645)
        size = max(SMALL_SHARD, 5 * (n_classes - 2), math.sqrt(n_rows / scale))
        return self._check_shards(n_rows, max(1, int(n_rows / size)), n_classes)

    def _warn_of_noise(self, n_rows: int, n_shards: int, answers: AnswerPlan) -> None:
        scale = answers.lead / 1.645
        if scale / n_shards > MUCH_NOISE:
            wanted = math.ceil(scale * max(SMALL_SHARD, n_rows / n_shards) / GOOD_NOISE)
            warnings.warn(
                f"the noise is {scale / n_shards:.2f} of the {n_shards} votes, so that answers are "
                f"hardly better than chance; about {wanted:,} rows would do for "
                f"max_queries={self.max_queries!r}, or fewer queries, or a larger epsilon.",
                TooFewRows,
                stacklevel=3,
            )

    def _open(self, answers: AnswerPlan, started: Answers, n_shards: int, source: Source) -> None:
        self._answers_ = started
        self._labels_ahead_ = random_labels(len(self.classes_), source)
        self.mechanism_, self.why_, self.n_shards_ = answers.mechanism, answers.why, n_shards
        self.noise_per_vote_ = answers.lead / 1.645 / n_shards

    @property
    def remaining_(self) -> int:
        """Answers left; 0 also when no unclear answer is left."""
        check_is_fitted(self, "guarantee_")
        return self._answers_.remaining

    @one_at_a_time
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Answer queries in order, and count them; a batch that is too large is refused whole.

        If the last unclear answer is among them, the rest of the batch is not looked at and is
        answered like an unclear query, with a warning; then nothing remains.
        """
        return self._named(self._answer(self._queries(X)), unanswered=bool(self.abstain))

    @claim("QUERY")
    def _answer(self, table: Any) -> Integers:
        """Answer queries that were checked: places in the classes, or -1 for no answer."""
        self._check_left(len(table))
        votes = self._votes(table)
        self._check_left(len(table))
        labels = self._answers_.ask(votes) if len(table) else np.zeros(0, dtype=np.int64)
        if len(labels) < len(table):
            warnings.warn(
                f"the last {len(table) - len(labels)} queries of this batch were not looked at, "
                "because no unclear answer is left; declare a larger alpha or max_unstable.",
                stacklevel=3,
            )
            labels = np.append(labels, np.full(len(table) - len(labels), UNSTABLE))
        return self._settle(labels)

    @one_at_a_time
    def noisy_votes(self, X: ArrayLike) -> Integers:
        """Return noisy vote counts, one column per class: spends like ``predict``.

        The label is the largest one. Only noisy majorities have them.
        """
        return self._noisy(self._queries(X))

    @claim("QUERY")
    def _noisy(self, table: Any) -> Integers:
        """Return noisy vote counts for queries that were checked."""
        if not isinstance(self._answers_, NoisyMajority):
            raise InvalidParameter(
                f"mechanism {self.mechanism_!r} releases no counts; use 'gaussian' or 'laplace'."
            )
        self._check_left(len(table))
        return self._answers_.release(self._votes(table))

    def _votes(self, table: Any) -> Integers:
        """Count votes; the running number of a query decides where it stands in what models get."""
        return self._ensemble_.votes(table, self._answers_.asked + np.arange(len(table)))

    def _check_left(self, asked: int) -> None:
        left = self.remaining_
        if left == 0 and asked:
            raise BudgetExhausted(
                f"0 of {self.max_queries} answers remain; fit again, which costs again."
            )
        if asked > left:
            raise BudgetExhausted(
                f"{asked} queries were asked, but {left} of {self.max_queries} answers remain; the "
                "batch was refused whole, and nothing was spent."
            )

    def _settle(self, labels: Integers) -> Integers:
        """Give unclear queries a random label, unless they stay without one."""
        unclear = np.flatnonzero(labels == UNSTABLE)
        if self.abstain or not len(unclear):
            return labels
        labels = labels.copy()
        labels[unclear] = self._labels_ahead_.take(len(unclear))
        return labels

    _ensemble_: Ensemble
    _labels_ahead_: Ahead
