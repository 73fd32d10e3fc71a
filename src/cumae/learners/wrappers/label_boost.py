"""Few labels and many unlabelled rows, for any private base learner: LabelBoost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.data import Declared
from cumae.errors import InvalidData
from cumae.learners.base import DECLARED, Sizes
from cumae.learners.exponential import CONCEPT
from cumae.learners.wrappers.base import LEARNER
from cumae.learners.wrappers.relabelled import (
    CONSTANTS,
    EPSILON_BOOST,
    SOME_ROWS,
    RelabellingWrapper,
)
from cumae.learners.wrappers.schedules import Round, Schedule
from cumae.parameters import CHANCE, DELTA, EPSILON, Kind
from cumae.privacy import Approximate, Budget
from cumae.privacy.formulas import SLACK
from cumae.randomness import Source
from cumae.sanitizers.grids import CANDIDATES, N_CUTS, GridPlan
from cumae.theorems.label_boost import draw_labels


@claim("ITER")
class LabelBoost(RelabellingWrapper):
    """A private learner on rows that a hypothesis has labelled, which itself stays private.

    Algorithm 2 of paper 1, on random parts of the rows where privacy asks for it. For a row of the
    labelled part it costs the base plus 2 ln(1 + exp(epsilon_boost / 2)), for one of the
    unlabelled part the base plus ln 4, each amplified by the share of rows that is kept; with a
    grid of candidates, ``epsilon_boost`` and nothing. Pure bases stay pure and proper ones proper.

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
        ``"practical"`` keeps as many rows as privacy allows, or those that are asked for below.
        ``"paper"`` runs Algorithm 2 on all rows with draws of epsilon 1, if there are enough labels
        for ``alpha`` and ``beta``.
    alpha : float above 0 and below 1
        For ``"paper"``: the share of labelled rows that the drawn hypothesis may get wrong.
    beta : float above 0 and below 1
        For ``"paper"``: the chance that it does worse.
    epsilon_boost : float of 0 or more, or "auto"
        Parameter of the draw; ``"auto"`` takes the one that lets the labels count most.
    n_labelled, n_unlabelled : int of 0 or more, or "auto"
        Rows to keep; ``"auto"`` takes as many as privacy allows.
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
    >>> from cumae.learners import LabelBoost, PrivateLearner
    >>> x = np.random.default_rng(0).random(20_000)
    >>> y = np.where(np.arange(20_000) < 1000, x > 0.3, -1)
    >>> base = PrivateLearner(Thresholds(), epsilon=1.0, columns=[(0, 1)])
    >>> learner = LabelBoost(base, Thresholds(), epsilon=2.0)
    >>> learner.fit(x.reshape(-1, 1), y).predict([[0.0], [0.8]])
    array([0, 1])
    >>> learner.guarantee_.epsilon <= 2, learner.guarantee_.delta
    (True, 0.0)
    """

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "base": LEARNER,
        "concept_class": CONCEPT,
        "epsilon": EPSILON,
        "delta": DELTA,
        "constants": CONSTANTS,
        "alpha": CHANCE,
        "beta": CHANCE,
        "epsilon_boost": EPSILON_BOOST,
        "n_labelled": SOME_ROWS,
        "n_unlabelled": SOME_ROWS,
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
        epsilon_boost: float | str = "auto",
        n_labelled: int | str = "auto",
        n_unlabelled: int | str = "auto",
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
        self.epsilon_boost = epsilon_boost
        self.n_labelled = n_labelled
        self.n_unlabelled = n_unlabelled
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
        reserved = self._reserved(sizes.unlabelled)
        for_cuts = 0 if grid is None else grid.n_rows
        rest = max(0, sizes.unlabelled - reserved - for_cuts)
        if self.constants == "paper":
            needed = draw_labels(self.alpha, self.beta, vc, sizes.labelled + rest)
            if sizes.labelled < needed:
                raise InvalidData(
                    f"{sizes.labelled:,} labelled rows are too few for constants='paper', which "
                    f"asks for {needed:,} with {rest:,} unlabelled ones; take "
                    "constants='practical'."
                )
            step = Round(sizes.labelled, rest, rest)
        else:
            target = Approximate(self.epsilon * SLACK, self.delta)
            drawn, labelled, kept = self._rates(base, target, sizes, grid)
            most = self._most_points(sizes, grid)
            have, wanted = self.n_labelled, self.n_unlabelled
            if isinstance(have, str):
                have = min(math.floor(labelled * sizes.labelled), most)
            if isinstance(wanted, str):
                wanted = min(math.floor(kept * rest), max(0, most - have))
            step = Round(int(have), rest, int(wanted), drawn)
        last = step.labelled + step.kept
        return Schedule(sizes.labelled, sizes.unlabelled, (step,), last, reserved, grid=grid)
