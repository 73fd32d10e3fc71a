"""Few labels and many unlabelled rows, for any private base learner: LabelBoost, IterLabelBoost.

Algorithms 2, 4 and 5 of paper 1 (Beimel, Nissim, Stemmer). A hypothesis that must not be published,
because the private points themselves define it, labels the unlabelled rows; then the base learner
learns from all of them. What is published is the base's output.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass, Hypothesis
from cumae.concepts.relabelling import largest_rate, most_points, relabelled, resampled
from cumae.data import (
    UNLABELLED,
    Columns,
    Declared,
    cells_of_columns,
    check_column,
    length_of,
    width_of,
)
from cumae.errors import InvalidData, InvalidParameter
from cumae.learners.base import ROLES_PUBLIC, Learner, Rows, Sizes
from cumae.learners.cuts import ONE_COLUMN, check_labelled
from cumae.learners.exponential import check_concept
from cumae.learners.wrappers.base import (
    Published,
    check_base,
    check_outer_delta,
    copy_base,
    fit_base,
    plan_base,
    read_pair,
    restate,
    take_rows,
    uses_unlabelled,
)
from cumae.learners.wrappers.schedules import (
    Round,
    Schedule,
    _check_chances,
    _paper_rate,
    best_epsilon,
    labelled_sizes,
    paper_schedule,
    schedule_cost,
)
from cumae.parameters import check_choice, check_count
from cumae.privacy import Approximate, Budget
from cumae.privacy.plans import Plan, pair_cost
from cumae.privacy.validation import check_epsilon
from cumae.randomness import Source, integers, sample

SLACK = 1.0 - 1e-9  # of what was asked, for rounding
GROWTH = 4  # each round of a schedule that was not given labels so many times more rows


class _Boosting(Published):
    """What both learners share: they differ in their schedules."""

    takes_unlabelled = True

    base: Any
    concept_class: ConceptClass
    constants: str
    alpha: float
    beta: float
    epsilon_boost: float | str
    n_reserved: int | str
    learner_: Learner

    @abstractmethod
    def _schedule(self, base: Approximate, sizes: Sizes, vc: int) -> Schedule:
        """Choose all sizes from what is public."""

    @property
    def hypothesis_(self) -> Hypothesis:
        """The published hypothesis, if the base publishes one: of the base's own class."""
        return self.learner_.hypothesis_  # type: ignore[no-any-return]

    @property
    def _hands_on_unlabelled(self) -> bool:
        return True

    def _declared(self) -> Declared:
        declared = check_base(self.base)._declared()
        if self.columns is not None and declared is not None:
            raise InvalidParameter("columns are declared here and in the base; do it once.")
        return declared if self.columns is None else self.columns

    def _table(self, columns: Columns, X: Any) -> NDArray[Any]:
        # As learners do: a class that only compares takes one column of anything.
        plain = self._declared() is None and isinstance(self.concept_class, ONE_COLUMN)
        if plain and width_of(X) == 1:
            return check_column(cells_of_columns(X)[0])
        return columns.encode(X)

    @claim("ITER")
    def _check_all(self, X: Any, X_public: Any) -> None:
        super()._check_all(X, X_public)
        columns = Columns.of(X, self._declared())
        check_labelled(check_concept(self.concept_class), len(columns), self._table(columns, X))

    def _reader(self) -> Learner:
        return copy_base(check_base(self.base), self.columns)

    def _fit(
        self, X: ArrayLike, y: ArrayLike, X_public: ArrayLike | None, y_public: ArrayLike | None
    ) -> Self:
        super()._fit(X, y, X_public, y_public)
        # Alone, the base would promise what holds for relabelled rows only.
        restate(self.learner_, self.guarantee_)
        return self

    @claim("ITER")
    def _plan(self, sizes: Sizes, rows: Rows) -> Plan:
        base = check_base(self.base)
        concept = check_concept(self.concept_class)
        check_outer_delta(base, self.delta)
        check_choice(self.constants, ("practical", "paper"), "constants")
        _check_chances(self.alpha, self.beta)
        if not sizes.labelled:
            raise InvalidData("no row has a label; give some, and -1 for those without.")
        promise = Approximate(base.epsilon, base.delta)
        relabelled(promise, 1.0, "S", concept, 1)  # refuses a class without a proven k
        schedule = self._schedule(promise, sizes, concept.vc_dimension(sizes.features))
        _check_schedule(schedule, sizes)
        # What the base plans depends on sizes and public rows, so that any rows will do here.
        count = schedule.last + schedule.reserved
        labels = np.repeat([0, UNLABELLED], [schedule.last, schedule.reserved])
        places = np.arange(count) % length_of(rows.X)
        stand_in = replace(rows, X=take_rows(rows.X, places), y=labels)
        inner = plan_base(copy_base(base, self.columns), stand_in)
        total = schedule_cost(
            read_pair(inner, base), schedule, sizes.labelled, sizes.unlabelled, concept
        )
        cost = pair_cost(total)
        if cost.delta(self.epsilon) > self.delta:
            raise InvalidParameter(
                f"this schedule costs epsilon={total.eps:.6g}, delta={total.failure:.3g}, more "
                f"than epsilon={self.epsilon!r}, delta={self.delta!r}; keep fewer rows, give the "
                "base or the draw less, or leave the choice to the learner."
            )
        boot = ("BOOT",) if schedule.resample else ()
        claims = ("ITER", "LB", "SUB", "PAR", *boot, "CHOOSE", *inner.claims)
        return Plan(
            cost,
            tuple(dict.fromkeys(claims)),
            protects="one training row, labelled or not",
            relation=ROLES_PUBLIC,
            assumptions=inner.assumptions,
            steps={"schedule": schedule, "inner": inner},
            void=inner.void,
        )

    @claim("ITER")
    def _learn(self, rows: Rows, plan: Plan, source: Source) -> None:
        schedule: Schedule = plan.steps["schedule"]
        table = self._table(self.columns_, rows.X)
        has_label = rows.y != UNLABELLED
        known, free = np.flatnonzero(has_label), np.flatnonzero(~has_label)
        known = known[sample(len(known), schedule.labelled, source)]
        free = free[sample(len(free), schedule.unlabelled, source)]
        labels = rows.y[known]
        for step in schedule.rounds:
            keep = sample(len(known), step.labelled, source)
            # In random order the first ones are a uniform subset.
            taken, free = free[: step.kept], free[step.unlabelled :]
            points = np.concatenate([known[keep], taken])
            drawn = self.concept_class.choose(
                table[points],
                table[known[keep]],
                labels[keep],
                step.epsilon,
                random_state=source,
            )
            known, labels = points, drawn.predict(table[points])
        keep = sample(len(known), schedule.last, source)
        if schedule.resample:
            keep = keep[integers(schedule.last, schedule.last, source)]
        rest = free[: schedule.reserved]
        places = np.concatenate([known[keep], rest])
        found = np.concatenate([labels[keep], np.full(len(rest), UNLABELLED)])
        base = copy_base(self.base, self.columns, source)
        seen = replace(rows, X=take_rows(rows.X, places), y=found)
        self.learner_ = fit_base(base, seen, plan.steps["inner"])

    def __str__(self) -> str:
        return str(self.learner_) if hasattr(self, "learner_") else repr(self)

    def _labels(self, table: Any) -> Integers:
        return np.asarray(self.learner_.predict(table), dtype=np.int64)

    def _stored_params(self) -> dict[str, Any]:
        given = super()._stored_params()
        kept = {"base": None, "rounds": "auto"}  # learner_ is what was fitted of the base
        return given | {name: kept[name] for name in kept if name in given}

    def _reserved(self, unlabelled: int) -> int:
        """Return how many unlabelled rows go to the base as they are."""
        if self.n_reserved == "auto":
            return unlabelled // 2 if uses_unlabelled(self.base) else 0
        return check_count(self.n_reserved, "n_reserved")

    def _drawn_epsilon(
        self, inner: Approximate, epsilon: float, delta: float, sizes: Sizes
    ) -> float:
        if self.epsilon_boost == "auto":
            rows = sizes.labelled + sizes.unlabelled
            return best_epsilon(inner, epsilon, delta, self.concept_class, rows)
        return check_epsilon(self.epsilon_boost, "epsilon_boost")

    def _rates(
        self, inner: Approximate, target: Approximate, sizes: Sizes
    ) -> tuple[float, float, float]:
        """Return a draw's epsilon, and the shares of labelled and unlabelled rows to keep.

        Labelled rows then cost at most ``target``; unlabelled ones, which only enter here, all that
        was asked for.
        """
        drawn = self._drawn_epsilon(inner, target.eps, target.failure, sizes)
        rows = sizes.labelled + sizes.unlabelled
        scored = relabelled(inner, drawn, "S", self.concept_class, rows)
        taken = relabelled(inner, drawn, "T", self.concept_class, rows)
        return (
            drawn,
            largest_rate(scored, target.eps, target.failure),
            largest_rate(taken, self.epsilon * SLACK, self.delta),
        )


def _check_schedule(schedule: Schedule, sizes: Sizes) -> None:
    used = sum(step.unlabelled for step in schedule.rounds) + schedule.reserved
    if schedule.labelled > sizes.labelled or used > schedule.unlabelled:
        raise InvalidData(
            f"the schedule asks for {schedule.labelled:,} labelled and {used:,} unlabelled rows, "
            f"but there are {sizes.labelled:,} and {schedule.unlabelled:,}; give more, or ask for "
            "fewer."
        )
    have = labelled_sizes(schedule)
    for number, (size, step) in enumerate(zip(have, schedule.rounds, strict=False), start=1):
        if not 1 <= step.labelled <= size or not 0 <= step.kept <= step.unlabelled:
            raise InvalidData(
                f"round {number} keeps {step.labelled:,} of {size:,} labelled and {step.kept:,} of "
                f"{step.unlabelled:,} unlabelled rows; it needs at least one label, and no more "
                "rows than there are. Give more rows, a larger epsilon, or a base with less."
            )
    if not 1 <= schedule.last <= have[-1]:
        raise InvalidData(
            f"{schedule.last:,} of {have[-1]:,} rows are to reach the base; it needs at least one, "
            "and there are no more."
        )


@claim("ITER")
class LabelBoost(_Boosting):
    """Label the unlabelled rows by a hypothesis that stays private, then run a private base.

    Algorithm 2 of paper 1, on random parts of the rows where privacy asks for it. For a row of the
    labelled part it costs the base plus 2 ln(1 + exp(epsilon_boost / 2)), for one of the
    unlabelled part the base plus ln 4, each amplified by the share of rows that is kept. Pure
    bases stay pure and proper ones proper.

    Parameters
    ----------
    base
        A learner with a guarantee, such as ``PrivateLearner(..., epsilon=0.5)`` or an ``Adapter``;
        half of ``epsilon`` is a good start for its own.
    concept_class
        From ``cumae.concepts``, with a proven ``label_boost_k`` (trees have none).
    epsilon, delta
        Privacy parameters of the whole.
    constants
        ``"practical"`` keeps as many rows as privacy allows, or those that are asked for below.
        ``"paper"`` runs Algorithm 2 on all rows with ``epsilon_boost=1``, if ``alpha`` and
        ``beta`` follow from the number of labels.
    alpha, beta
        For ``"paper"``: the share of labelled rows that the drawn hypothesis may get wrong, and
        the chance that it does worse.
    epsilon_boost
        Parameter of the draw; ``"auto"`` takes the one that lets the labels count most.
    n_labelled, n_unlabelled
        Rows to keep; ``"auto"`` takes as many as privacy allows.
    n_reserved
        Unlabelled rows that reach the base without a label; ``"auto"`` is half of them if the base
        can use any, else none.
    columns, classes, budget, random_state
        As in :class:`~cumae.learners.PrivateLearner`; columns may as well be declared in the base.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Thresholds
    >>> from cumae.learners import PrivateLearner
    >>> from cumae.learners.wrappers.label_boost import LabelBoost
    >>> x = np.random.default_rng(0).random(20_000)
    >>> y = np.where(np.arange(20_000) < 1000, x > 0.3, -1)
    >>> base = PrivateLearner(Thresholds(), epsilon=1.0, columns=[(0, 1)])
    >>> learner = LabelBoost(base, Thresholds(), epsilon=2.0)
    >>> learner.fit(x.reshape(-1, 1), y).predict([[0.0], [0.8]])
    array([0, 1])
    >>> learner.guarantee_.epsilon <= 2, learner.guarantee_.delta
    (True, 0.0)
    """

    def __init__(
        self,
        base: Any,
        concept_class: ConceptClass,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        constants: str = "practical",
        alpha: float = 0.1,
        beta: float = 0.1,
        epsilon_boost: float | str = "auto",
        n_labelled: int | str = "auto",
        n_unlabelled: int | str = "auto",
        n_reserved: int | str = "auto",
        columns: Declared = None,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.base = base
        self.concept_class = concept_class
        self.epsilon = epsilon
        self.delta = delta
        self.constants = constants
        self.alpha = alpha
        self.beta = beta
        self.epsilon_boost = epsilon_boost
        self.n_labelled = n_labelled
        self.n_unlabelled = n_unlabelled
        self.n_reserved = n_reserved
        self.columns = columns
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    def _schedule(self, base: Approximate, sizes: Sizes, vc: int) -> Schedule:
        reserved = self._reserved(sizes.unlabelled)
        rest = max(0, sizes.unlabelled - reserved)
        if self.constants == "paper":
            needed = _labels_for_draw(self.alpha, self.beta, vc, sizes.labelled + rest)
            if sizes.labelled < needed:
                raise InvalidData(
                    f"{sizes.labelled:,} labelled rows are too few for constants='paper', which "
                    f"asks for {needed:,} with {rest:,} unlabelled ones; take "
                    "constants='practical'."
                )
            step = Round(sizes.labelled, rest, rest)
        else:
            target = Approximate(self.epsilon * SLACK, self.delta)
            drawn, labelled, kept = self._rates(base, target, sizes)
            most = most_points(self.concept_class, sizes.features)
            asked, wanted = self.n_labelled, self.n_unlabelled
            if asked == "auto":
                asked = min(math.floor(labelled * sizes.labelled), most)
            have = check_count(asked, "n_labelled")
            if wanted == "auto":
                wanted = min(math.floor(kept * rest), max(0, most - have))
            step = Round(have, rest, check_count(wanted, "n_unlabelled"), drawn)
        last = step.labelled + step.kept
        return Schedule(sizes.labelled, sizes.unlabelled, (step,), last, reserved)


def _labels_for_draw(alpha: float, beta: float, vc: int, rows: int) -> int:
    """Return how many labels make the draw err on a share alpha at most, but for beta (C.5)."""
    dimension = max(vc, 1)
    candidates = dimension * math.log(math.e * max(rows, dimension) / dimension)  # Sauer's lemma
    return math.ceil(2 / alpha * (candidates + math.log(1 / beta)))


@claim("ITER")
class IterLabelBoost(_Boosting):
    """Boost labels in rounds, each of which labels more rows than the one before.

    Algorithms 4 and 5 of paper 1. The cost is computed from the inside out; what one round adds,
    the random part of the rows that it keeps takes away again.

    Parameters
    ----------
    base, concept_class, epsilon, delta
        As in :class:`LabelBoost`.
    constants
        ``"practical"`` runs ``rounds``, or chooses them so that the promise is kept. ``"paper"``
        runs the printed schedule, with a base of epsilon 1 at most, and refuses when rows are too
        few for it.
    alpha, beta
        For ``"paper"``: error and chance of failure that the printed schedule aims at.
    n_base
        For ``"paper"``: rows that the base needs; ``"auto"`` is as many as the unlabelled rows
        allow, 1 in 90,000.
    n_rounds
        Number of rounds that ``"practical"`` chooses.
    rounds
        ``"auto"``, or a list of :class:`Round`.
    epsilon_boost
        Parameter of the draws that are chosen here; ``"auto"`` lets the labels count most.
    resample
        Whether the base gets rows drawn with replacement, as the paper has it: it costs more, and
        helps its proof only.
    n_reserved, columns, classes, budget, random_state
        As in :class:`LabelBoost`.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Thresholds
    >>> from cumae.learners import PrivateLearner
    >>> from cumae.learners.wrappers.label_boost import IterLabelBoost
    >>> x = np.random.default_rng(0).random(40_000)
    >>> y = np.where(np.arange(40_000) < 1000, x > 0.3, -1)
    >>> base = PrivateLearner(Thresholds(), epsilon=1.0, columns=[(0, 1)])
    >>> learner = IterLabelBoost(base, Thresholds(), epsilon=3.0)
    >>> learner.fit(x.reshape(-1, 1), y).predict([[0.0], [0.8]])
    array([0, 1])
    >>> paper = IterLabelBoost(base, Thresholds(), epsilon=1.0, constants="paper")
    >>> paper.fit(x.reshape(-1, 1), y)
    Traceback (most recent call last):
    cumae.errors.InvalidData: 1,000 labelled and 39,000 unlabelled rows are too few for \
constants='paper', which asks for 129,588,019 and 90,000; take constants='practical'.
    """

    def __init__(
        self,
        base: Any,
        concept_class: ConceptClass,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        constants: str = "practical",
        alpha: float = 0.1,
        beta: float = 0.1,
        n_base: int | str = "auto",
        n_rounds: int = 2,
        rounds: Sequence[Round] | str = "auto",
        epsilon_boost: float | str = "auto",
        resample: bool = False,
        n_reserved: int | str = "auto",
        columns: Declared = None,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.base = base
        self.concept_class = concept_class
        self.epsilon = epsilon
        self.delta = delta
        self.constants = constants
        self.alpha = alpha
        self.beta = beta
        self.n_base = n_base
        self.n_rounds = n_rounds
        self.rounds = rounds
        self.epsilon_boost = epsilon_boost
        self.resample = resample
        self.n_reserved = n_reserved
        self.columns = columns
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    def _schedule(self, base: Approximate, sizes: Sizes, vc: int) -> Schedule:
        if self.constants == "paper":
            return self._printed(base, sizes, vc)
        reserved = self._reserved(sizes.unlabelled)
        if isinstance(self.rounds, str):
            check_choice(self.rounds, ("auto",), "rounds")
            rounds = self._rounds(base, sizes, max(0, sizes.unlabelled - reserved))
        else:
            rounds = tuple(_check_round(step) for step in self.rounds)
        last = rounds[-1].labelled + rounds[-1].kept if rounds else sizes.labelled
        resample = bool(self.resample)
        return Schedule(sizes.labelled, sizes.unlabelled, rounds, last, reserved, resample)

    def _printed(self, base: Approximate, sizes: Sizes, vc: int) -> Schedule:
        if base.eps > 1:
            raise InvalidParameter(
                f"base has epsilon={base.eps!r}; constants='paper' is printed for a base of "
                "epsilon 1 at most."
            )
        if self.n_base == "auto":
            n = max(1, math.floor(sizes.unlabelled * _paper_rate(self.epsilon)) // 90_000)
        else:
            n = check_count(self.n_base, "n_base", least=1)
        return paper_schedule(
            sizes.labelled, sizes.unlabelled, n, self.alpha, self.beta, max(vc, 1), self.epsilon
        )

    def _rounds(self, base: Approximate, sizes: Sizes, unlabelled: int) -> tuple[Round, ...]:
        count = check_count(self.n_rounds, "n_rounds", least=1)
        inner = base
        if self.resample:  # the more rows, the more it costs, up to a limit
            inner = resampled(base, sizes.labelled + sizes.unlabelled)
        rates = []
        for number in range(count):
            # Up to the outermost round, labelled rows are brought back to what the base costs.
            outermost = number == count - 1
            target = Approximate(self.epsilon * SLACK, self.delta) if outermost else base
            rates.append(self._rates(inner, target, sizes))
            inner = target
        shares = [GROWTH**number for number in range(count)]
        most = most_points(self.concept_class, sizes.features)
        size, rounds = sizes.labelled, []
        for (drawn, labelled, kept), share in zip(reversed(rates), shares, strict=True):
            taken = unlabelled * share // sum(shares)
            have = min(math.floor(labelled * size), most)
            step = Round(have, taken, min(math.floor(kept * taken), most - have), drawn)
            rounds.append(step)
            size = step.labelled + step.kept
        return tuple(rounds)


def _check_round(step: object) -> Round:
    if not isinstance(step, Round):
        raise InvalidParameter(f"rounds holds a {type(step).__name__}; give Round(...) objects.")
    for name in ("labelled", "unlabelled", "kept"):
        check_count(getattr(step, name), name)
    check_epsilon(step.epsilon)
    return step
