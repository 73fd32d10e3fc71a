"""Logistic regression by a few noisy sums that know their own noise."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from numpy.typing import NDArray

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.data import Columns, Declared
from cumae.errors import InvalidParameter
from cumae.learners.base import DECLARED, Rows, Sizes
from cumae.learners.kernel.learner import GOAL, KernelLearner
from cumae.learners.kernel.shown.effects import Effect
from cumae.learners.scored import ANSWERS
from cumae.learners.thresholds import HELD_OUT
from cumae.parameters import COLUMNS, DELTA, EPSILON, Count, Kind, Or
from cumae.privacy import Budget
from cumae.randomness import Source, source_for


class PrivateLogisticRegression(KernelLearner):
    """Logistic regression on columns with a range, or on curves of them as an additive model.

    It is :class:`PrivateKernelClassifier` without waves: a few times, the sum of the rows'
    residuals is released along those directions about which least is known so far, with integer
    Gaussian noise. The coefficients have a prior, and move as far as the releases stand out from
    their noise.

    Parameters
    ----------
    epsilon : float of 0 or more
        Privacy parameter.
    delta : float from 0 and below 1
        Privacy parameter; it must be above 0.
    bounds : mapping or sequence, or None
        What each column holds: numbers and their range, categories, true and false, or dates, and
        whether cells may be missing. :class:`~cumae.Columns` has the forms. A range that is neither
        declared nor shown by public rows is found privately, for a share of epsilon and delta.
    curves : int of 0 or more
        0 for straight lines. A number adds that many cosines of the rank of each column of numbers,
        which then is a curve; 6 are enough for most.
    n_steps : int of 1 or more, or "auto"
        Sums of residuals; ``"auto"`` takes 8, or 4 where private rows are few and there are public
        ones, or the goal is another one than accuracy.
    goal : {"accuracy", "ranking", "cost"}
        What the model is for: most answers right, rows in the right order of their chances, or the
        least cost, which needs ``costs`` or a ``threshold``. With another goal than accuracy the
        numbers of rows of the classes are released first, for 4 % of the budget, so that sums of
        residuals begin at the right share of a rare class. Fewer sums are taken then, and made-up
        rows get less.
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
        Another name of ``bounds``, as all other learners call it. Give one of both.
    classes : sequence of two labels
        The labels; hypotheses call the second one 1.
    budget : Budget, or None
        An account to pay from.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Attributes
    ----------
    coef_, intercept_ : array of float
        Slopes of the straight lines for each encoded column, in its own units, and the log odds
        where all are 0. Values are pulled in to 3 standard deviations and read by 256 levels at
        most, curves come on top, and ``decision_function`` draws the sum towards 0 where it is
        not sure: ``print`` shows all.
    model_ : KernelModel
        All that predictions are computed from: how rows become features, the mean of the
        coefficients, and how sure they are.
    effects_ : list of Effect
        What each column adds to the log odds, line and curve together, and how sure that is; the
        strongest first. ``print`` shows them as text, and ``plot`` draws them.

    Notes
    -----
    Fewer than 50 public rows are not used: declarations say more about scales.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.learners import PrivateLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> model = PrivateLogisticRegression(1.0, 1e-6, bounds=[(-1, 1), (-1, 1)])
    >>> model.fit(X, X[:, 0] + X[:, 1] > 0).predict([[0.9, 0.9], [-0.9, -0.9]])
    array([1, 0])
    >>> model.guarantee_.epsilon <= 1.0
    True
    """

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "bounds": COLUMNS,
        "curves": Count(0),
        "n_steps": Or("auto", Count(1)),
        "goal": GOAL,
        **ANSWERS,
        **DECLARED,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Declared = None,
        curves: int = 0,
        *,
        n_steps: int | str = "auto",
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
        self.bounds = bounds
        self.curves = curves
        self.n_steps = n_steps
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

    def declared_columns(self) -> Declared:
        """Return what was declared, under either name."""
        if self.bounds is not None and self.columns is not None:
            raise InvalidParameter(
                "bounds and columns were both given, and mean the same; give one of them."
            )
        return self.columns if self.bounds is None else self.bounds

    @property
    def _shapes(self) -> tuple[int, int]:
        return int(self.curves), 0

    @claim("KERNEL")
    def _steps(self, strength: float) -> int:
        return super()._steps(strength) if isinstance(self.n_steps, str) else int(self.n_steps)

    @claim("KERNEL")
    def fit_part(self, rows: Rows, columns: Columns, classes: NDArray[Any]) -> None:
        """Fit as the first part of another learner, which pays and holds the guarantee.

        Parameters
        ----------
        rows : Rows
            Encoded rows that no other part sees.
        columns : Columns
            How they were encoded.
        classes : array
            The labels that 0 and 1 stand for.
        """
        sizes = Sizes(len(rows.y), 0, 0 if rows.public is None else len(rows.public), columns)
        source = source_for(self.random_state)
        self.random_state = None  # a generator is no part of a model
        self.columns_, self.classes_ = columns, classes
        self._learn(rows, self.decide(sizes, rows), source)

    def _line(self, effect: Effect) -> str:
        """Return the slope of a column of numbers and what some of its values add."""
        (name,) = effect.columns
        shown = super()._line(effect)
        encoded = dict(zip(self.columns_.names, enumerate(self.coef_[0]), strict=True))
        if name not in encoded or encoded[name][0] not in self.published().features.levels:
            return shown
        unit = "day" if isinstance(effect.values[0][0], dt.datetime) else "unit"
        curved = " and a curve" if self.published().features.curves else ""
        return f"{encoded[name][1]:+.3g} a {unit}{curved}: {shown}"

    @property
    def coef_(self) -> Floats:
        """Slopes of the straight lines, one for each encoded column, in units of the column."""
        return self.published().slopes()[1:].reshape(1, -1)

    @property
    def intercept_(self) -> Floats:
        """Log odds where all columns are 0, as far as the lines go."""
        return self.published().slopes()[:1]

    @property
    def log_odds(self) -> Callable[[NDArray[Any]], Floats]:
        return self.published().log_odds
