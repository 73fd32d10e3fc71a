"""Few private labels and some public rows: SemiPrivateLearner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.concepts.columns import alike
from cumae.data import UNLABELLED, Declared, check_column, concatenated
from cumae.errors import InvalidData
from cumae.learners.base import DECLARED, PUBLIC_ROWS, LearningPlan, Rows, Sizes
from cumae.learners.cuts import n_covering, public_points
from cumae.learners.exponential import CONCEPT_OR_TREES, N_POINTS, BoundedLearner, one_draw
from cumae.parameters import EPSILON, Flag, Kind
from cumae.privacy import Budget
from cumae.randomness import Source


@claim("SSPP")
class SemiPrivateLearner(BoundedLearner):
    """A learner with pure privacy whose candidates are defined by public rows.

    Parameters
    ----------
    concept_class : ConceptClass, or None
        From ``cumae.concepts``; None means ``Trees(2)``.
    epsilon : float of 0 or more
        Privacy parameter.
    label_privacy : bool
        Whether everything about the private rows is public except their labels. Then these rows
        define candidates, too, and only the labels are protected.
    n_points : int of 1 or more, or "auto"
        Cuts for a column, for trees. ``"auto"`` takes 63 for a single column. For each of several
        columns it takes 7, or 3 if labels are few. Boxes take labels times epsilon over 8, between
        3 and 63, as long as the grid is not too large.
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
    >>> from cumae.concepts import Intervals
    >>> from cumae.learners import SemiPrivateLearner
    >>> rng = np.random.default_rng(0)
    >>> public, x = rng.random(200), rng.random(1000)
    >>> learner = SemiPrivateLearner(Intervals(), epsilon=1.0)
    >>> learner.fit(x, (x > 0.3) & (x < 0.7), public).predict([0.1, 0.5, 0.9])
    array([0, 1, 0])
    >>> learner.guarantee_.protects
    'one private row'
    """

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "concept_class": CONCEPT_OR_TREES,
        "epsilon": EPSILON,
        "label_privacy": Flag(),
        "n_points": N_POINTS,
        **DECLARED,
    }

    def __init__(
        self,
        concept_class: ConceptClass | None = None,
        epsilon: float = 1.0,
        *,
        label_privacy: bool = False,
        n_points: int | str = "auto",
        columns: Declared = None,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.concept_class = concept_class
        self.epsilon = epsilon
        self.label_privacy = label_privacy
        self.n_points = n_points
        self.columns = columns
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        X_public: Any = None,
        y_public: Any = None,
    ) -> Self:
        """Learn from private labelled rows over candidates that public rows define.

        Parameters
        ----------
        X, y : array-like
            Private rows with their labels.
        X_public : array-like, or None
            Public rows; needed unless ``label_privacy``.
        y_public : array-like, or None
            Their labels where known, and -1 elsewhere: they add to the score, at no cost.

        Returns
        -------
        SemiPrivateLearner
            Itself.
        """
        return self._fit(X, y, X_public, y_public)

    def _check_readable(self, rows: Rows) -> None:
        super()._check_readable(rows)
        if rows.X.ndim == 1:  # of one type each, but perhaps not together; before anything is paid
            check_column(_scored(rows)[0], "X together with X_public")

    def decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[int]:
        """Decide what is protected, and how many cuts a column gets: these are the steps."""
        if not self.label_privacy and not sizes.public:
            raise InvalidData(
                "X_public is missing; give public rows, or use GenericLearner, which takes "
                "candidates from private unlabelled rows."
            )
        count, shown = self._count(sizes), 0 if rows.public is None else len(rows.public)
        candidates = shown + self.label_privacy * sizes.labelled
        scored = sizes.labelled + (0 if rows.public_y is None else shown)
        self._check_draw(replace(sizes, labelled=scored), candidates, self.epsilon)
        plan = LearningPlan(
            self._concept.choose_cost(self.epsilon),
            ("SSPP", "CHOOSE"),
            "one private row",
            assumptions=PUBLIC_ROWS,
            steps=count,
            facts={"draw_epsilon": float(self.epsilon), "points": count},
            work=one_draw(sizes),
        )
        if not self.label_privacy:
            return plan
        return replace(
            plan,
            protects="one private label (the rows themselves are public)",
            relation="one label is replaced by any other; all rows are public",
        )

    def _learn(self, rows: Rows, plan: LearningPlan[int], source: Source) -> None:
        concept = self._concept
        tables = [] if rows.public is None else [rows.public]
        if self.label_privacy:
            tables.append(rows.X)
        points = public_points(concept, np.concatenate(tables), plan.steps)
        X, y = _scored(rows)
        self._draw(points, X, y, source)
        alone = not self.label_privacy and len(y) == len(rows.y)  # no scored row is a candidate
        self.n_scored_ = len(y) if alone else 0
        self.n_covering_ = n_covering(concept, points) if alone else 0


@claim("SSPP")
def _scored(rows: Rows) -> tuple[NDArray[Any], Integers]:
    """Return private rows, and public ones whose labels are known, with their labels."""
    if rows.public is None or rows.public_y is None:
        return rows.X, rows.y
    known = rows.public_y != UNLABELLED
    if not known.any():
        return rows.X, rows.y
    # Dates may have several units.
    X = concatenated(*alike(rows.X, rows.public[known]))
    return X, np.concatenate([rows.y, rows.public_y[known]])
