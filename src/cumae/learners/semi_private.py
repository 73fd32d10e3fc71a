"""Few private labels and some public rows: SemiPrivateLearner."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.data import UNLABELLED, Declared, stacked
from cumae.errors import InvalidData
from cumae.learners.base import Rows, Sizes
from cumae.learners.cuts import public_points
from cumae.learners.exponential import PUBLIC_ROWS, ConceptLearner
from cumae.privacy import Budget
from cumae.privacy.plans import Plan
from cumae.randomness import Source


@claim("SSPP")
class SemiPrivateLearner(ConceptLearner):
    """Public rows define the candidates; private labelled rows choose among them: pure privacy.

    Parameters
    ----------
    concept_class
        From ``cumae.concepts``; None means ``Trees(2)``.
    epsilon
        Privacy parameter.
    label_privacy
        Whether the private rows are public but for their labels; then they define candidates,
        too, and only the labels are protected.
    n_points
        Cuts a column, for trees; ``"auto"`` takes 7, or 3 if labels are few.
    columns, classes, budget, random_state
        As in :class:`~cumae.learners.PrivateLearner`.

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
        X: ArrayLike,
        y: ArrayLike,
        X_public: ArrayLike | None = None,
        y_public: ArrayLike | None = None,
    ) -> Self:
        """Learn from private labelled rows over candidates that public rows define.

        Parameters
        ----------
        X, y
            Private rows with their labels.
        X_public
            Public rows; needed unless ``label_privacy``.
        y_public
            Their labels where known, and -1 elsewhere: they add to the score, at no cost.
        """
        return self._fit(X, y, X_public, y_public)

    def _plan(self, sizes: Sizes, rows: Rows) -> Plan:
        del rows
        cost = self._concept.choose_cost(self.epsilon)
        if self.label_privacy:
            return Plan(
                cost,
                ("SSPP", "CHOOSE"),
                protects="one private label (the rows themselves are public)",
                relation="one label is replaced by any other; all rows are public",
                assumptions=PUBLIC_ROWS,
            )
        if not sizes.public:
            raise InvalidData(
                "X_public is missing; give public rows, or use GenericLearner, which takes "
                "candidates from private unlabelled rows."
            )
        return Plan(cost, ("SSPP", "CHOOSE"), "one private row", assumptions=PUBLIC_ROWS)

    def _learn(self, rows: Rows, plan: Plan, source: Source) -> None:
        del plan
        concept = self._concept
        tables = [] if rows.public is None else [rows.public]
        if self.label_privacy:
            tables.append(rows.X)
        points = public_points(
            concept, np.concatenate(tables), self._count(len(self.columns_), len(rows.y))
        )
        X, y = rows.X, rows.y
        if rows.public is not None and rows.public_y is not None:
            known = rows.public_y != UNLABELLED
            X = stacked(X, rows.public[known])
            y = np.concatenate([y, rows.public_y[known]])
        self.n_candidates_ = concept.n_candidates(points)
        self.hypothesis_ = concept.choose(points, X, y, self.epsilon, random_state=source)
