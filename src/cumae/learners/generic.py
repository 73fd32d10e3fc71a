"""Few private labels and many private unlabelled rows: GenericLearner."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from cumae.claims import claim
from cumae.concepts import ConceptClass, Points
from cumae.data import Columns, Declared, check_column, check_table
from cumae.errors import InvalidData, InvalidParameter
from cumae.learners.base import (
    DECLARED,
    PUBLIC_ROWS,
    ROLES_PUBLIC,
    LearningPlan,
    Rows,
    Sizes,
)
from cumae.learners.cuts import cuts_between, joined, n_covering, public_points, with_ends
from cumae.learners.exponential import CONCEPT_OR_TREES, N_POINTS, BoundedLearner, one_draw
from cumae.outlook import Fact
from cumae.parameters import DELTA, EPSILON, Kind, Object, Or
from cumae.privacy import Budget, parallel
from cumae.randomness import SYSTEM, Source
from cumae.sanitizers import Quantiles, Sanitizer, StabilityHistogram, StableThresholds

OBJECT = Object("Sanitizer", (Sanitizer,), "an object of cumae.sanitizers")
SANITIZER = Or("auto", Or("quantiles", Or("stable", Or("histogram", OBJECT))))


@claim("GENERIC")
class GenericLearner(BoundedLearner):
    """A learner that sanitizes unlabelled rows, then chooses among the hypotheses they define.

    Rows with label -1 feed a sanitizer, which publishes a few points; the labelled rows feed the
    exponential mechanism over the candidates of these points. A row is in one part only, so the
    cost is the larger of the two, not their sum. With public rows the sanitizer is not needed,
    and the unlabelled rows are not looked at.

    Parameters
    ----------
    concept_class : ConceptClass, or None
        From ``cumae.concepts``; None means ``Trees(2)``.
    epsilon : float of 0 or more
        Privacy parameter.
    delta : float from 0 and below 1
        Privacy parameter, for sanitizers that need one.
    sanitizer : Sanitizer, or "histogram", or "stable", or "quantiles", or "auto"
        ``"quantiles"`` works within declared bounds, or over all floats where there are none;
        ``"stable"`` needs no bounds but a delta; ``"histogram"`` needs a delta and finds the values
        that many rows share, in one column of numbers, texts or dates. With a delta, ``"auto"``
        takes ``"histogram"`` for ``Points`` and ``"stable"`` where bounds are missing; else it
        takes ``"quantiles"``. An object from ``cumae.sanitizers`` has an epsilon and a delta of its
        own.
    n_points : int of 1 or more, or "auto"
        Points for a column. ``"auto"`` takes 63 for a single column. For each of several columns
        it takes 7, or 3 if labels are few. Boxes take labels times epsilon over 8, between 3 and
        63, as long as the grid is not too large.
    columns : mapping or sequence, or None
        What each column holds: numbers and their range, categories, true and false, or dates, and
        whether cells may be missing. :class:`~cumae.Columns` has the forms.
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
    >>> from cumae.learners import GenericLearner
    >>> x = np.random.default_rng(0).random(20_000)
    >>> y = np.where(np.arange(20_000) < 500, x > 0.3, -1)
    >>> learner = GenericLearner(Thresholds(), epsilon=1.0, columns=[(0, 1)])
    >>> learner.fit(x.reshape(-1, 1), y).predict([[0.1], [0.5]])
    array([0, 1])
    """

    takes_unlabelled = True
    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "concept_class": CONCEPT_OR_TREES,
        "epsilon": EPSILON,
        "delta": DELTA,
        "sanitizer": SANITIZER,
        "n_points": N_POINTS,
        **DECLARED,
    }

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

    def _check_readable(self, rows: Rows) -> None:
        super()._check_readable(rows)
        if rows.public is None:
            # All other sanitizers take numbers.
            (check_column if self._counts_values else check_table)(rows.X)

    def decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[int]:
        """Decide how many points a column gets: that is all of the steps."""
        cost = self._concept.choose_cost(self.epsilon)
        count = self._count(sizes, ends=rows.public is None)
        facts: dict[str, Fact] = {"draw_epsilon": float(self.epsilon), "points": count}
        if rows.public is not None:
            self._check_draw(sizes, len(rows.public), self.epsilon)
            return LearningPlan(
                cost,
                ("GENERIC", "CHOOSE"),
                protects="one labelled training row",
                relation=ROLES_PUBLIC,
                assumptions=PUBLIC_ROWS,
                steps=count,
                facts=facts,
                work=one_draw(sizes),
            )
        if not sizes.unlabelled:
            raise InvalidData(
                "no row has the label -1, so there is nothing to take candidates from; add "
                "unlabelled rows, or public ones as X_public."
            )
        if self._counts_values:  # how many values are found is seen afterwards
            del facts["points"]
        sanitizer = self._sanitizer(sizes.columns, count, SYSTEM)  # its cost: nothing is drawn
        sanitizer.check_size(sizes.unlabelled, sizes.features)
        most = sanitizer.most_points(sizes.unlabelled)
        ends = np.arange(most + 2.0)  # as many points as there can be
        points = joined(self._concept, np.tile(ends[:, None], sizes.features))
        self._check_draw(sizes, len(points), self.epsilon)
        return LearningPlan(
            parallel(cost, sanitizer.cost),
            ("GENERIC", "PAR", "CHOOSE", *sanitizer.claims),
            protects="one training row, labelled or not",
            relation=ROLES_PUBLIC,
            steps=count,
            facts={**facts, "sanitizer": type(sanitizer).__name__},
            work=one_draw(sizes),
            void=sanitizer.source.deterministic,
        )

    @property
    def _counts_values(self) -> bool:
        """True if points are values that many rows share, which may be of any kind."""
        if self.sanitizer == "auto":
            return isinstance(self._concept, Points) and self.delta > 0
        return self.sanitizer == "histogram" or isinstance(self.sanitizer, StabilityHistogram)

    def _sanitizer(self, columns: Columns, count: int, source: Source) -> Sanitizer:
        if isinstance(self.sanitizer, Sanitizer):
            asked = self.epsilon < math.inf
            if asked and self.sanitizer.cost.delta(self.epsilon) > self.delta:
                raise InvalidParameter(
                    f"sanitizer={self.sanitizer!r} costs more than epsilon={self.epsilon!r}, "
                    f"delta={self.delta!r}; give it less, or the learner more."
                )
            return self.sanitizer
        if self._counts_values:
            return StabilityHistogram(self.epsilon, self.delta, random_state=source)
        kind = self.sanitizer
        missing = any(declared is None for declared in columns.bounds)
        if kind == "auto":
            kind = "stable" if missing and self.delta > 0 else "quantiles"
        if kind == "stable":
            return StableThresholds(self.epsilon, self.delta, count, random_state=source)
        return Quantiles(self.epsilon, columns.bounds, count, random_state=source)

    def _learn(self, rows: Rows, plan: LearningPlan[int], source: Source) -> None:
        concept, seen, count = self._concept, rows.labelled, plan.steps
        self.n_scored_, self.n_covering_ = len(seen.y), 0
        if rows.public is not None:
            points = public_points(concept, rows.public, count)
            self.n_covering_ = n_covering(concept, points)
        else:
            points = self._sanitizer(self.columns_, count, source).sanitize(rows.unlabelled.X)
            if not self._counts_values:
                points = joined(concept, with_ends(points, self.columns_.bounds))
            points = cuts_between(concept, points)
        self._draw(points, seen.X, seen.y, source)
