"""A private classifier of tables by noisy sums of residuals along directions still unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.data import Declared
from cumae.engines import refuse_elsewhere
from cumae.learners.base import DECLARED, LearningPlan, Rows, Sizes
from cumae.learners.boosting import PrivateBooster
from cumae.learners.kernel.features import CURVES, WAVES
from cumae.learners.kernel.learner import GOAL, KernelLearner
from cumae.learners.kernel.prices import Measurements
from cumae.learners.scored import ANSWERS
from cumae.learners.thresholds import HELD_OUT
from cumae.learners.wrappers.one_vs_rest import check_classes
from cumae.parameters import DELTA, EPSILON, Count, Kind, Object
from cumae.privacy import Budget
from cumae.randomness import SYSTEM, Source

# Exact trees are better below so much strength of all rows, and below so much for each column.
FEW, FEW_FOR_A_COLUMN = 25.0, 2.0


class PrivateKernelClassifier(KernelLearner):
    """A classifier by lines, curves and interactions of columns, from noisy sums over the rows.

    The log odds are a sum of lines, curves, and random waves of pairs and triples of columns. A few
    times, the sum of the rows' residuals is released along those directions about which least is
    known so far, with integer Gaussian noise. Because the noise is known, the rest is inference:
    the coefficients have a posterior, and the releases themselves decide how much each group of
    features may vary. With public rows (without labels), features are scaled by them. Without, a
    quarter of the budget makes up rows that have noisy marginals and correlations (a tenth with
    another goal than accuracy).

    Parameters
    ----------
    epsilon : float of 0 or more
        Privacy parameter.
    delta : float from 0 and below 1
        Privacy parameter; it must be above 0.
    n_waves : int of 0 or more
        Waves in each of four groups: pairs and triples of columns, slow and fast. With 0 the model
        is additive: lines and curves.
    goal : {"accuracy", "ranking", "cost"}
        What the model is for: most answers right, rows in the right order of their chances, or the
        least cost, which needs ``costs`` or a ``threshold``. It decides when trees take the place
        of sums.
    class_weight : mapping from class to float above 0, or None
        Another name of ``costs``, as scikit-learn calls it. Give one of them.
    costs : mapping from class to float above 0, or None
        What it costs to miss a row of each class, declared and public; 1 for classes that are not
        named. ``predict`` answers the class of least expected cost. Chances stay chances.
    threshold : float from 0 to 1, or None
        The chance of the second of two classes from which on it is the answer, instead of
        costs.
    sensitivity : float above 0 and up to 1, or None
        The share of the second of two classes that ``predict`` is to find. A threshold for it is
        chosen privately, with rows that the model does not see. It may be set again after the fit,
        at no cost.
    confidence : float above 0.5 and below 1, or None
        Chance with which at least ``sensitivity`` is found; None takes the best guess.
    held_out : float above 0 and below 1
        Share of the rows that are set aside for ``sensitivity``.
    columns : mapping or sequence, or None
        Declared bounds and categories, see :class:`~cumae.Columns`.
    classes : sequence of labels
        All labels that there can be, two or more.
    budget : Budget, or None
        An account to pay from.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Attributes
    ----------
    model_ : KernelModel or None
        All that predictions are computed from: how rows become features, the mean of the
        coefficients, and how sure they are.
    trees_ : PrivateBooster or None
        What takes its place where rows are few.
    effects_ : list of Effect
        What each column and the strongest pairs of columns add to the log odds, and how sure that
        is; the strongest first. ``print`` shows them as text, and ``plot`` draws them.

    Notes
    -----
    Where rows are very few, noise would drown the sums. With two classes, a goal of accuracy and
    fewer than about 100 rows, or 8 rows for each column, at epsilon 1, a :class:`PrivateBooster`
    with the same epsilon is fitted in their place: it looks for the few columns that matter. With
    another goal it never is: so few rows make trees that answer one class only, and rank nothing.
    The rule reads public numbers alone.

    With another goal than accuracy the numbers of rows of the classes are released first, for 4 %
    of the budget. Sums of residuals then begin at the right share of a rare class, about which the
    first of them would tell nothing else.

    Fewer than 50 public rows are not used, and more than 2,000 add nothing. With more than five
    classes there are fewer waves, so that all classes together have about 2,500 coefficients. A
    table with more than 8,000 coefficients is refused before anything is paid.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae import PrivateKernelClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> model = PrivateKernelClassifier(1.0, 1e-6, columns=[(-1, 1), (-1, 1)])
    >>> model = model.fit(X, (X[:, 0] > 0) != (X[:, 1] > 0), rng.uniform(-1, 1, (500, 2)))
    >>> model.predict([[0.8, 0.8], [-0.8, 0.8]])
    array([0, 1])
    >>> model.guarantee_.epsilon <= 1.0
    True
    """

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "n_waves": Count(0),
        "goal": GOAL,
        **ANSWERS,
        **DECLARED,
        "classes": Object("sequence of labels"),
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        n_waves: int = WAVES,
        goal: str = "accuracy",
        class_weight: Mapping[Any, float] | None = None,
        costs: Mapping[Any, float] | None = None,
        threshold: float | None = None,
        sensitivity: float | None = None,
        confidence: float | None = None,
        held_out: float = HELD_OUT,
        columns: Declared = None,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_waves = n_waves
        self.goal = goal
        self.class_weight = class_weight
        self.costs = costs
        self.threshold = threshold
        self.sensitivity = sensitivity
        self.confidence = confidence
        self.held_out = held_out
        self.columns = columns
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    @property
    def _shapes(self) -> tuple[int, int]:
        return CURVES, int(self.n_waves)

    @claim("KERNEL")
    def _decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Any]:
        least = max(FEW, FEW_FOR_A_COLUMN * len(sizes.columns.columns))
        few = self._measurements(sizes).strength < least
        if self._scores == 1 and self.goal == "accuracy" and few:
            refuse_elsewhere(rows, "so few rows take trees")
            route, plan = "trees", self._booster(SYSTEM).decide(sizes, rows)
        else:
            route, plan = "kernel", super()._decide(sizes, rows)
        return replace(plan, facts={"route": route, **plan.facts})

    @claim("KERNEL")
    def _booster(self, source: Source) -> PrivateBooster:
        return PrivateBooster(
            self.epsilon, columns=self.columns, classes=self.classes, random_state=source
        )

    @claim("KERNEL")
    def _learn_within(self, rows: Rows, plan: LearningPlan[Any], source: Source) -> None:
        self.model_, self.trees_ = None, None
        if isinstance(plan.steps, Measurements):
            super()._learn_within(rows, plan, source)
            return
        trees = self._booster(source)
        trees.fit_part(rows.take(slice(None)), self.columns_, self.classes_, plan)
        self.trees_ = trees

    @property
    def log_odds(self) -> Callable[[NDArray[Any]], Floats]:
        return self.published().log_odds if self.trees_ is None else self.trees_.log_odds

    @property
    @claim("PRIOR")
    def is_exact(self) -> bool:
        return self.trees_ is None or self.trees_.is_exact

    def uncertainty(self, X: Any) -> Floats:
        """Return by how much scores may be off: their standard deviation, given the releases.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``.
        """
        check_is_fitted(self, "guarantee_")
        found = self.published().uncertainty(self._encode(self.columns_, X))
        return found[:, 0] if found.shape[1] == 1 else found

    def __str__(self) -> str:
        trees = getattr(self, "trees_", None)
        return super().__str__() if trees is None else "\n".join([str(trees), *self.rule_lines()])

    def _known_classes(self, *, unlabelled: bool) -> list[Any]:
        del unlabelled
        return check_classes(self.classes)
