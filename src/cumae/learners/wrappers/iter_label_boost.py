"""Label boosting in rounds: IterLabelBoost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.concepts.candidates.relabelling import resampled
from cumae.data import Declared
from cumae.errors import InvalidParameter
from cumae.learners.base import DECLARED, Sizes
from cumae.learners.exponential import CONCEPT
from cumae.learners.wrappers.base import LEARNER
from cumae.learners.wrappers.relabelled import (
    CONSTANTS,
    EPSILON_BOOST,
    SOME_ROWS,
    RelabellingWrapper,
)
from cumae.learners.wrappers.schedules import Round, Schedule, check_round, printed_schedule
from cumae.parameters import (
    CHANCE,
    DELTA,
    EPSILON,
    Count,
    Flag,
    Kind,
    Object,
    Or,
    check_choice,
)
from cumae.privacy import Approximate, Budget
from cumae.privacy.formulas import SLACK
from cumae.randomness import Source
from cumae.sanitizers.grids import CANDIDATES, N_CUTS, GridPlan
from cumae.theorems.label_boost import base_rows, paper_schedule

GROWTH = 4  # each round of a schedule that was not given labels so many times more rows


@claim("ITER")
class IterLabelBoost(RelabellingWrapper):
    """Label boosting in rounds, each of which labels more rows than the one before.

    Algorithms 4 and 5 of paper 1. A round draws a private rule from the labelled rows and lets it
    label more rows. That costs privacy; but a round keeps a random part of its rows only, which
    makes all that follows cheaper for each row. The cost is computed from the last round backwards.

    Parameters
    ----------
    base : Learner
        A learner with a guarantee, such as ``PrivateLearner(..., epsilon=0.5)`` or an ``Adapter``;
        half of ``epsilon`` is a good start for its own.
    concept_class : ConceptClass
        From ``cumae.concepts``, with a proven ``label_boost_k`` (trees have none).
    epsilon : float of 0 or more
        Privacy parameter of the whole.
    delta : float from 0 and below 1
        The same for delta.
    constants : {"practical", "paper"}
        ``"practical"`` runs ``rounds``, or chooses them so that the promise is kept. ``"paper"``
        runs the printed schedule, with a base of epsilon 1 at most, and refuses when rows are too
        few for it.
    alpha, beta : float above 0 and below 1
        For ``"paper"``: error and chance of failure that the printed schedule aims at.
    n_base : int of 1 or more, or "auto"
        For ``"paper"``: rows that the base needs; ``"auto"`` is as many as the unlabelled rows
        allow, 1 in 90,000.
    n_rounds : int of 1 or more
        Number of rounds that ``"practical"`` chooses.
    rounds : sequence of Round, or "auto"
        The rounds to run; ``"auto"`` chooses them.
    epsilon_boost : float of 0 or more, or "auto"
        Parameter of the draws that are chosen here; ``"auto"`` lets the labels count most.
    resample : bool
        Whether the base gets rows drawn with replacement, as the paper has it. That costs more, and
        only the paper's proof of accuracy needs it.
    n_reserved : int of 0 or more, or "auto"
        Unlabelled rows that reach the base without a label; ``"auto"`` is half of them if the base
        can use any, else none.
    candidates : {"auto", "grid", "points"}
        What hypotheses are drawn from. ``"points"`` is the paper's own: all ways in which the class
        labels the kept rows. ``"grid"``, for boxes and halfspaces in up to three columns, is a
        public grid: evenly spaced within declared ranges, and at private quantiles of a twentieth
        of the unlabelled rows where none is declared. Then unlabelled rows pay nothing for the
        draw, and any number of rows can be used. ``"auto"`` takes it in two and three columns.
    n_cuts : int of 1 or more, or "auto"
        Cuts of a column in the grid, as in :class:`~cumae.predictors.AgnosticQueryRelease`.
    columns : mapping or sequence, or None
        What each column holds: numbers and their range, categories, true and false, or dates, and
        whether cells may be missing. :class:`~cumae.Columns` has the forms. Declare it here or in
        the base.
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
    >>> from cumae.learners import IterLabelBoost, PrivateLearner
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

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "base": LEARNER,
        "concept_class": CONCEPT,
        "epsilon": EPSILON,
        "delta": DELTA,
        "constants": CONSTANTS,
        "alpha": CHANCE,
        "beta": CHANCE,
        "n_base": Or("auto", Count(1)),
        "n_rounds": Count(1),
        "rounds": Or("auto", Object("sequence of Round")),
        "epsilon_boost": EPSILON_BOOST,
        "resample": Flag(),
        "n_reserved": SOME_ROWS,
        "candidates": CANDIDATES,
        "n_cuts": N_CUTS,
        **DECLARED,
    }

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
        candidates: str = "auto",
        n_cuts: int | str = "auto",
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
        self.candidates = candidates
        self.n_cuts = n_cuts
        self.columns = columns
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    def _schedule(
        self, base: Approximate, sizes: Sizes, vc: int, grid: GridPlan | None = None
    ) -> Schedule:
        if self.constants == "paper":
            if grid is not None:
                raise InvalidParameter("constants='paper' has candidates='points'; take these.")
            return self._printed(base, sizes, vc)
        reserved = self._reserved(sizes.unlabelled)
        if isinstance(self.rounds, str):
            check_choice(self.rounds, ("auto",), "rounds")
            for_cuts = 0 if grid is None else grid.n_rows
            rest = max(0, sizes.unlabelled - reserved - for_cuts)
            rounds = self._rounds(base, sizes, rest, grid)
        else:
            rounds = tuple(check_round(step) for step in self.rounds)
        last = rounds[-1].labelled + rounds[-1].kept if rounds else sizes.labelled
        resample = bool(self.resample)
        return Schedule(sizes.labelled, sizes.unlabelled, rounds, last, reserved, resample, grid)

    def _printed(self, base: Approximate, sizes: Sizes, vc: int) -> Schedule:
        if base.eps > 1:
            raise InvalidParameter(
                f"base has epsilon={base.eps!r}; constants='paper' is printed for a base of "
                "epsilon 1 at most."
            )
        n = self.n_base
        if isinstance(n, str):
            n = base_rows(sizes.unlabelled, self.epsilon)
        return printed_schedule(
            paper_schedule(
                sizes.labelled, sizes.unlabelled, n, self.alpha, self.beta, max(vc, 1), self.epsilon
            )
        )

    def _rounds(
        self, base: Approximate, sizes: Sizes, unlabelled: int, grid: GridPlan | None
    ) -> tuple[Round, ...]:
        count, inner = self.n_rounds, base
        if self.resample:  # computed for all rows: with fewer, it costs a little less
            inner = resampled(base, sizes.labelled + sizes.unlabelled)
        rates = []
        for number in range(count):
            # Counted from the last round backwards. Each round but the first keeps so few rows that
            # it costs no more than the base; the first one may use up the whole epsilon.
            outermost = number == count - 1
            target = Approximate(self.epsilon * SLACK, self.delta) if outermost else base
            rates.append(self._rates(inner, target, sizes, grid))
            inner = target
        shares = [GROWTH**number for number in range(count)]
        most = self._most_points(sizes, grid)
        size, rounds = sizes.labelled, []
        for (drawn, labelled, kept), share in zip(reversed(rates), shares, strict=True):
            taken = unlabelled * share // sum(shares)
            have = min(math.floor(labelled * size), most)
            step = Round(have, taken, min(math.floor(kept * taken), most - have), drawn)
            rounds.append(step)
            size = step.labelled + step.kept
        return tuple(rounds)
