"""Which rows to label, and a model from them: ActiveLearner."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import UNLABELLED, length_of
from cumae.errors import InvalidData, InvalidParameter, LiveState
from cumae.learners.base import ACCOUNT, Learner, LearningPlan, Rows, Sizes
from cumae.learners.wrappers.base import LEARNER, Published
from cumae.live import NOT_KEPT, one_at_a_time
from cumae.parameters import DELTA, EPSILON, Choice, Count, Flag, Kind, Or, check_parameters
from cumae.privacy import Approximate, Budget, Cost, subsample
from cumae.privacy.formulas import SLACK
from cumae.privacy.plans import Plan, pair_cost, read_pair
from cumae.privacy.validation import check_rate
from cumae.randomness import Source, permutation, sample, source_for

UP = 1.0 + 1e-12
ALMOST_ONE = math.nextafter(1.0, 0.0)
ASKED = (
    "one row is replaced by any other, with the label that it would get, and the number of rows "
    "is public"
)


@claim("ACTIVE")
def smallest_labelled(pair: Approximate, rate: float) -> Approximate:
    """Cost of a share q of the rows of which the smallest indices are labelled (Algorithm 6).

    (e, d) becomes (ln u, q d (1 + x - u)) with x = exp(e), u = (1 + q (x^2 - 1)) / (1 + q (x - 1)).

    Parameters
    ----------
    pair : Approximate
        What the base costs its rows: (e, d).
    rate : float from 0 to 1
        The share of rows that the base gets: q.

    Returns
    -------
    Approximate
        What the whole costs.

    Examples
    --------
    >>> from cumae.learners.active import smallest_labelled
    >>> from cumae.privacy import Approximate, subsample
    >>> round(smallest_labelled(Approximate(1.0, 0.0), 0.1).eps, 3)
    0.335
    >>> round(subsample(Approximate(1.0, 0.0), 0.1).pure, 3)  # the ordered sample
    0.159
    """
    check_rate(rate)
    if pair.eps > 300:  # the formula overflows; to save nothing is safe
        return pair
    x, risen = math.exp(pair.eps), math.expm1(pair.eps)
    excess = rate * x * risen / (1.0 + rate * risen)  # u - 1, without cancellation
    failure = rate * pair.failure * (x - excess) * UP
    # ln u is at most e; rounding must not say otherwise.
    return Approximate(min(pair.eps, math.log1p(excess) * UP), min(failure, ALMOST_ONE))


@claim("ACTIVE")
@dataclass(frozen=True, repr=False)  # which rows were drawn is a secret
class Drawn:
    """Rows that were selected and not learnt from yet."""

    rows: int  # of the table that they were selected from
    places: Integers
    source: Source
    settings: tuple[Any, ...]


@claim("ACTIVE")
class ActiveLearner(Published):
    """A learner that asks for labels of a few random rows, and uses the others without labels.

    The base runs on a random part of the rows, which makes it cheaper than it is by itself: a base
    of epsilon 1 on a tenth of the rows costs 0.16. So the number of labels does not grow with the
    privacy. That rests on nobody knowing which rows were asked for, except those who label;
    ``transcript`` is for the case that it may get known.

    Parameters
    ----------
    base : Learner
        A learner with a guarantee. One that takes unlabelled rows gets those of the sample that
        were not asked for. Columns are declared there.
    epsilon : float of 0 or more
        Privacy parameter of the whole; the base may have a larger one.
    delta : float from 0 and below 1
        The same for delta.
    n_labels : int of 1 or more
        How many labels to ask for.
    n_rows : int of 1 or more, or "auto"
        Rows that the base gets; ``"auto"`` is as many as privacy allows.
    variant : {"ordered", "paper"}
        ``"ordered"`` labels the first rows of a sample in random order; ``"paper"`` those of the
        smallest indices (Algorithm 6 of paper 1, see ``docs/errata.md``), which costs more.
    transcript : bool
        Whether the promise covers the indices as well, if they are published with the model
        (Definition 5.4); sampling saves nothing then.
    classes : sequence of two labels
        The labels; hypotheses call the second one 1.
    budget : Budget, or None
        An account to pay from.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Thresholds
    >>> from cumae.learners import ActiveLearner, GenericLearner
    >>> x = np.random.default_rng(0).random((20_000, 1))
    >>> base = GenericLearner(Thresholds(), epsilon=2.0, columns=[(0, 1)])
    >>> learner = ActiveLearner(base, epsilon=0.5, n_labels=300)
    >>> asked = learner.select(x)
    >>> len(asked)
    300
    >>> learner.fit(x, x[asked, 0] > 0.3).predict([[0.1], [0.5]])
    array([0, 1])
    >>> learner.guarantee_.epsilon <= 0.5
    True
    """

    transcript_private = False  # it chooses its rows: no base for another one
    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "base": LEARNER,
        "epsilon": EPSILON,
        "delta": DELTA,
        "n_labels": Count(1),
        "n_rows": Or("auto", Count(1)),
        "variant": Choice(("ordered", "paper")),
        "transcript": Flag(),
        **ACCOUNT,
    }

    _drawn: Drawn | None = None

    def __init__(
        self,
        base: Any,
        epsilon: float = 1.0,
        delta: float = 0.0,
        n_labels: int = 100,
        *,
        n_rows: int | str = "auto",
        variant: str = "ordered",
        transcript: bool = False,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.base = base
        self.epsilon = epsilon
        self.delta = delta
        self.n_labels = n_labels
        self.n_rows = n_rows
        self.variant = variant
        self.transcript = transcript
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        return {name: state[name] for name in state if name not in NOT_KEPT}

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._drawn is not None:
            raise LiveState(
                "an ActiveLearner cannot be copied or pickled between select and fit: each copy "
                "would learn from the same sample, at the price of one; fit it first, or take "
                "sklearn.base.clone for a copy that has selected nothing."
            )
        return super().__reduce_ex__(protocol)

    @one_at_a_time
    def select(self, X: Any) -> Integers:
        """Return the indices of the rows to label; they depend on the number of rows only.

        Keep them to yourself and to those who label, unless ``transcript`` was asked for.

        Parameters
        ----------
        X : array-like
            Private rows.

        Returns
        -------
        array of int
            Which rows to label.
        """
        check_parameters(self, self.parameter_table)
        rows = length_of(X)
        count = self._count(rows)
        source = source_for(self.random_state)
        drawn = sample(rows, count, source)
        if self.variant == "paper":
            ordered = np.sort(drawn)
            rest = ordered[self.n_labels :]
            drawn = np.concatenate([ordered[: self.n_labels], rest[permutation(len(rest), source)]])
        self._drawn = Drawn(rows, drawn, source, self._settings(rows))
        return np.array(drawn[: self.n_labels])

    @one_at_a_time
    def fit(self, X: Any, y: Any, X_public: Any = None) -> Self:
        """Learn from the rows that were given to ``select``.

        Parameters
        ----------
        X : array-like
            The same rows again.
        y : array-like
            The labels that were asked for, in the order of the indices.
        X_public : array-like, or None
            Public rows, for a base that uses them.

        Returns
        -------
        ActiveLearner
            Itself.
        """
        check_parameters(self, self.parameter_table)
        drawn = self._drawn
        if drawn is None:
            raise InvalidData("no rows were selected; call select(X) first, and label those rows.")
        rows, places = drawn.rows, drawn.places
        if drawn.settings != self._settings(rows):
            raise InvalidParameter(
                "parameters changed between select and fit, so that the sample is not what its "
                "cost would be computed for; call select(X) again."
            )
        labels = self._check_y(y, unlabelled=False)
        if length_of(X) != rows or len(labels) != self.n_labels:
            raise InvalidData(
                f"X has {length_of(X)} rows and y has {len(labels)} labels; give the {rows} rows "
                f"of select and one label for each of the {self.n_labels} indices that it returned."
            )
        names = np.empty(2, dtype=object)
        names[:] = list(self.classes)
        given = np.full(rows, UNLABELLED, dtype=object)
        given[places[: self.n_labels]] = names[labels]
        return self._fit(X, given, X_public, None)

    @claim("ACTIVE")
    def decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Plan]:
        """Decide what the base does with the sample: its plan is all of the steps."""
        base = self._checked_base()
        total = sizes.labelled + sizes.unlabelled
        count = self._count(total)
        inner = self._plan_base(rows, self.n_labels, count - self.n_labels)
        cost = self._cost(
            inner.cost, read_pair(inner.cost, base.epsilon, base.delta), count / total
        )
        if cost.delta(self.epsilon) > self.delta:
            raise InvalidParameter(
                f"{count} of {total} rows cost epsilon={cost.epsilon(self.delta):.6g} at "
                f"delta={self.delta!r}, more than epsilon={self.epsilon!r}; give fewer n_rows, or "
                "the base less."
            )
        sampling = () if self.transcript else ("SUB",)
        also = ", even if the indices asked for are published" if self.transcript else ""
        secret = () if self.transcript else ("only those who label learn which rows were asked",)
        return LearningPlan(
            cost,
            tuple(dict.fromkeys(("ACTIVE", *sampling, *inner.claims))),
            protects=f"one row, labelled or not{also}",
            relation=ASKED,
            assumptions=(*inner.assumptions, *secret),
            steps=inner,
            facts={"n_labels": self.n_labels, "n_rows": count, "rate": count / total},
            work=inner.work,
            void=inner.void or source_for(self.random_state).deterministic,  # also one set later
        )

    def _source(self) -> Source:
        # The one that drew the sample goes on.
        return super()._source() if self._drawn is None else self._drawn.source

    def _stand_in(
        self, n_samples: int, n_features: int, n_public: int, n_unlabelled: int
    ) -> tuple[Sizes, Rows]:
        total = n_samples + n_unlabelled  # whatever has a label: it asks for labels itself
        asked = min(self.n_labels, total)
        return super()._stand_in(asked, n_features, n_public, total - asked)

    @claim("ACTIVE")
    def _cost(self, base: Cost, pair: Approximate, rate: float) -> Cost:
        if self.transcript:
            return base
        if self.variant == "paper":
            return pair_cost(smallest_labelled(pair, rate))
        return subsample(base, rate)

    def _settings(self, rows: int) -> tuple[Any, ...]:
        """Return what a sample depends on."""
        return (self._count(rows), self.n_labels, self.variant, self.transcript)

    def _count(self, rows: int) -> int:
        """Return how many rows the base gets, from public sizes."""
        base = self._checked_base()
        if self.transcript and not getattr(base, "transcript_private", True):
            raise InvalidParameter(
                f"transcript=True: {type(base).__name__} does not promise privacy once it is known "
                "which rows were labelled; take a base that does, such as GenericLearner."
            )
        if isinstance(base, ActiveLearner):
            raise InvalidParameter(
                "base is an ActiveLearner, which selects by itself; give its base."
            )
        labels, count = self.n_labels, self.n_rows
        if isinstance(count, str):
            count = math.floor(self._rate(base) * rows)
        if not base.takes_unlabelled and count >= labels:
            count = labels  # it can use no others
        if not labels <= count <= rows:
            raise InvalidData(
                f"n_labels={labels} of n_rows={count} of {rows} rows: privacy allows no more, or "
                "there are no more. Ask for fewer labels, give the base a smaller epsilon, or more "
                "rows."
            )
        return count

    def _rate(self, base: Learner) -> float:
        """Return the largest share of rows that keeps the promise, by the base's own parameters."""
        epsilon, delta = self.epsilon * SLACK, self.delta
        pair = Approximate(base.epsilon, base.delta)
        if pair.eps <= self.epsilon and pair.failure <= delta:
            return 1.0
        if self.transcript:
            return 0.0
        x, u = math.exp(min(pair.eps, 300.0)), math.exp(min(epsilon, 300.0))
        paper = self.variant == "paper"
        by_epsilon = 1.0 if u >= x else (u - 1) / ((x - 1) * (x + 1 - u if paper else 1.0))
        factor = pair.failure * (x if paper else 1.0)  # at least 1 + x - u, for any u
        by_delta = delta / factor if factor > 0 else 1.0
        return min(1.0, by_epsilon, by_delta * SLACK)

    @claim("ACTIVE")
    def _learn(self, rows: Rows, plan: LearningPlan[Plan], source: Source) -> None:
        drawn, self._drawn = self._drawn, None
        if drawn is None:
            raise AssertionError("fit checks that rows were selected")
        places = drawn.places
        if self.variant == "paper":  # the base may look at the order
            asked = places[: self.n_labels][permutation(self.n_labels, source)]
            places = np.concatenate([asked, places[self.n_labels :]])
        self._fit_base(rows, places, rows.y[places], plan.steps, source)
        if self.transcript:
            self.transcript_ = np.array(drawn.places[: self.n_labels])
