"""Few private labels and many private unlabelled rows: GenericLearner."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import ArrayLike

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.data import Columns, Declared, check_table
from cumae.errors import InvalidData, InvalidParameter
from cumae.learners.base import ROLES_PUBLIC, Rows, Sizes
from cumae.learners.cuts import joined, public_points, with_ends
from cumae.learners.exponential import PUBLIC_ROWS, ConceptLearner
from cumae.parameters import check_choice
from cumae.privacy import Budget, parallel
from cumae.privacy.plans import Plan
from cumae.randomness import SYSTEM, Source
from cumae.sanitizers import Quantiles, Sanitizer, StableThresholds


@claim("GENERIC")
class GenericLearner(ConceptLearner):
    """Sanitize the unlabelled rows, then choose among the hypotheses that they define.

    Rows with label -1 feed a sanitizer, which publishes a few points; the labelled rows feed the
    exponential mechanism over the candidates of these points. A row is in one part only, so the
    cost is the larger of the two, not their sum. With public rows the sanitizer is not needed,
    and the unlabelled rows are not looked at.

    Parameters
    ----------
    concept_class
        From ``cumae.concepts``; None means ``Trees(2)``.
    epsilon, delta
        Privacy parameters; ``delta`` is for sanitizers that need one.
    sanitizer
        ``"quantiles"`` within declared bounds, or over all floats where there are none;
        ``"stable"`` needs no bounds but a delta; ``"auto"`` takes the second if a delta was given
        and bounds are missing, else the first. Or an object from ``cumae.sanitizers`` of its own
        epsilon and delta.
    n_points
        Points a column; ``"auto"`` takes 63 for a single column, and 7 for each of several, or 3
        if labels are few.
    columns, classes, budget, random_state
        As in :class:`~cumae.learners.PrivateLearner`.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Thresholds
    >>> from cumae.learners import GenericLearner
    >>> x = np.random.default_rng(0).random(20_000)
    >>> y = np.where(np.arange(20_000) < 500, x > 0.3, -1)
    >>> learner = GenericLearner(Thresholds(), epsilon=1.0, columns=[(0, 1)])
    >>> learner.fit(x.reshape(-1, 1), y).predict([[0.1], [0.5]])
    array([0, 1])
    """

    takes_unlabelled = True

    def __init__(
        self,
        concept_class: ConceptClass | None = None,
        epsilon: float = 1.0,
        delta: float = 0.0,
        sanitizer: str | Sanitizer = "auto",
        *,
        n_points: int | str = "auto",
        columns: Declared = None,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.concept_class = concept_class
        self.epsilon = epsilon
        self.delta = delta
        self.sanitizer = sanitizer
        self.n_points = n_points
        self.columns = columns
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    def _rows(
        self,
        columns: Columns,
        X: ArrayLike,
        y: ArrayLike,
        X_public: ArrayLike | None,
        y_public: ArrayLike | None,
    ) -> Rows:
        rows = super()._rows(columns, X, y, X_public, y_public)
        if rows.public is None:
            check_table(rows.X)  # sanitizers take numbers
        return rows

    def _plan(self, sizes: Sizes, rows: Rows) -> Plan:
        cost = self._concept.choose_cost(self.epsilon)
        count = self._count(sizes.features, sizes.labelled)
        if rows.public is not None:
            return Plan(
                cost,
                ("GENERIC", "CHOOSE"),
                protects="one labelled training row",
                relation=ROLES_PUBLIC,
                assumptions=PUBLIC_ROWS,
                steps={"count": count},
            )
        if not sizes.unlabelled:
            raise InvalidData(
                "no row has the label -1, so there is nothing to take candidates from; add "
                "unlabelled rows, or public ones as X_public."
            )
        sanitizer = self._sanitizer(sizes.columns, count, SYSTEM)  # its cost: nothing is drawn
        return Plan(
            parallel(cost, sanitizer.cost),
            ("GENERIC", "PAR", "CHOOSE", *sanitizer.claims),
            protects="one training row, labelled or not",
            relation=ROLES_PUBLIC,
            steps={"count": count},
            void=sanitizer.source.deterministic,
        )

    def _sanitizer(self, columns: Columns, count: int, source: Source) -> Sanitizer:
        if isinstance(self.sanitizer, Sanitizer):
            asked = self.epsilon < math.inf
            if asked and self.sanitizer.cost.delta(self.epsilon) > self.delta:
                raise InvalidParameter(
                    f"sanitizer={self.sanitizer!r} costs more than epsilon={self.epsilon!r}, "
                    f"delta={self.delta!r}; give it less, or the learner more."
                )
            return self.sanitizer
        kind = check_choice(self.sanitizer, ("auto", "quantiles", "stable"), "sanitizer")
        missing = any(declared is None for declared in columns.bounds)
        if kind == "auto":
            kind = "stable" if missing and self.delta > 0 else "quantiles"
        if kind == "stable":
            return StableThresholds(self.epsilon, self.delta, count, random_state=source)
        return Quantiles(self.epsilon, columns.bounds, count, random_state=source)

    def _learn(self, rows: Rows, plan: Plan, source: Source) -> None:
        concept, seen, count = self._concept, rows.labelled, plan.steps["count"]
        if rows.public is not None:
            points = public_points(concept, rows.public, count)
        else:
            released = self._sanitizer(self.columns_, count, source).sanitize(rows.unlabelled.X)
            points = joined(concept, with_ends(released, self.columns_.bounds))
        self.n_candidates_ = concept.n_candidates(points)
        self.hypothesis_ = concept.choose(points, seen.X, seen.y, self.epsilon, random_state=source)
