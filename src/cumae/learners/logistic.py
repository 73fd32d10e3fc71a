"""Logistic regression by a few noisy gradient steps that know their own noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.data import Columns, Declared
from cumae.errors import InvalidParameter
from cumae.learners.base import DECLARED, PUBLIC_ROWS, LearningPlan, Rows, Sizes
from cumae.learners.cuts import (
    column_points,
    numeric_quantiles,
    quantile_levels,
    worthwhile_points,
)
from cumae.learners.features import FeatureMap
from cumae.learners.gradients import LENGTH, Curvature, kalman_steps, noisy_moments
from cumae.learners.scored import ScoredLearner
from cumae.parameters import COLUMNS, DELTA, EPSILON, Count, Kind, Or
from cumae.privacy import ZCDP, Budget, Cost, DiscreteGaussianVectors, Pure, calibrate
from cumae.randomness import SYSTEM, Source, source_for
from cumae.sanitizers import Quantiles

SANITIZED = 0.15  # share of the budget for quantiles
MOMENTS = 0.2  # and for second moments
LEAST_PUBLIC = 50  # fewer rows say less about scales than declarations do
LARGEST_EPSILON = 500.0  # a larger one adds no accuracy, and leaves what floats can compute


@dataclass(frozen=True)
class Spending:
    """How the budget is spent; made from public sizes alone."""

    steps: int
    bins: int
    weight: float  # of the bins, against the straight line
    points: int  # quantiles of each numeric column, or 0
    points_epsilon: float
    noise: float  # scale of the integers' noise in a step
    moments_noise: float | None  # the same for the moments, if they are released
    width: int  # largest number of features
    places: int  # of all vectors that are released, at most


@claim("LOGREG")
def vectors_cost(spending: Spending) -> Cost:
    """Cost of all sums of integer rows: a replaced row moves each by 2 LENGTH at most."""
    scales = [spending.noise] * spending.steps
    if spending.moments_noise is not None:
        scales.append(spending.moments_noise)
    if min(scales) == 0:
        return Pure(math.inf)
    mu = 2 * LENGTH * math.sqrt(sum(scale**-2 for scale in scales)) * (1 + 1e-12)
    return DiscreteGaussianVectors(mu, spending.places, min(scales))


@claim("LOGREG")
class PrivateLogisticRegression(ScoredLearner):
    """Logistic regression on columns with a range, or on bins of them as an additive model.

    The gradient of the log loss, summed over rows shortened to a fixed length, is released with
    integer Gaussian noise in a few steps. Because the noise is known, each step is a Kalman
    update: the coefficients have a prior, and a noisy gradient moves each direction as far as
    its signal stands out. Curvature comes from public rows, at no cost; without them from a
    noisy matrix of second moments where rows are many, else from the scales alone.

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
    bins : int of 2 or more, or "auto", or None
        None for straight lines; a number adds that many steps for each numeric column, which then
        is a curve; ``"auto"`` takes as many as rows and budget can bear.
    n_steps : int of 1 or more, or "auto"
        Gradient steps; ``"auto"`` goes by rows and budget.
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
        where all are 0. Values are pulled in to 3 standard deviations, and bins come on top:
        ``print`` shows all.
    weights_, features_ : array of float and FeatureMap
        What predictions are computed from: a weight for each scaled feature, the constant first.

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

    least_public = LEAST_PUBLIC
    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "bounds": COLUMNS,
        "bins": Or(None, Or("auto", Count(2))),
        "n_steps": Or("auto", Count(1)),
        **DECLARED,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Declared = None,
        bins: int | str | None = None,
        *,
        n_steps: int | str = "auto",
        columns: Declared = None,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.bins = bins
        self.n_steps = n_steps
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

    def _plan(self, sizes: Sizes, rows: Rows) -> LearningPlan[Spending]:
        """Decide how the budget is spent: that is all of the steps."""
        spending = self._spending(sizes)
        cost, claims = vectors_cost(spending), ["LOGREG", "VECTOR"]
        if spending.points:
            cost += _quantiles(sizes.columns, spending, SYSTEM).cost
            claims += ["COMP", "QUANT"]
        return LearningPlan(
            cost,
            tuple(claims),
            assumptions=PUBLIC_ROWS if rows.public is not None else (),
            steps=spending,
        )

    def _spending(self, sizes: Sizes) -> Spending:
        if not self.delta > 0:
            raise InvalidParameter(
                f"delta={self.delta!r}: Gaussian noise needs a delta above 0, such as 1e-6; for "
                "pure privacy use PrivateBooster."
            )
        epsilon = self.epsilon if self.epsilon == math.inf else min(self.epsilon, LARGEST_EPSILON)
        rho = rho_for(epsilon, self.delta)
        strength = sizes.labelled * math.sqrt(2 * rho)  # signal of all rows, in units of noise
        bins, weight = self._bins(strength)
        shaped = bool(sizes.public) or _moments_pay(sizes, strength, bins, weight)
        if self.bins == "auto" and not shaped:  # bins of one column go together: they need shape
            bins, weight = 0, 0.0
            shaped = _moments_pay(sizes, strength, bins, weight)
        points = 0 if sizes.public else _points(sizes, rho)
        moments = MOMENTS if shaped and not sizes.public else 0.0
        steps = self._steps(strength, shaped=shaped)
        width = _width(sizes, bins)
        places = steps * width + (width * (width + 1) // 2 if moments else 0)
        if not points:  # then all is Gaussian, and more of it fits than zCDP can tell
            rho = gaussian_rho(epsilon, self.delta, places)
        left = rho * (1 - moments - (SANITIZED if points else 0.0)) * (1 - 1e-9)
        return Spending(
            steps,
            bins,
            weight,
            points,
            _quantile_epsilon(rho * SANITIZED, points, sizes) if points else 0.0,
            noise=_noise(left / steps),
            moments_noise=_noise(rho * moments * (1 - 1e-9)) if moments else None,
            width=width,
            places=places,
        )

    def _bins(self, strength: float) -> tuple[int, float]:
        if self.bins is None:
            return 0, 0.0
        if isinstance(self.bins, str):
            weight = min(1.0, strength / 16_000)
            return (16, weight) if weight > 0.2 else (0, 0.0)
        return int(self.bins), 1.0

    def _steps(self, strength: float, *, shaped: bool) -> int:
        if not isinstance(self.n_steps, str):
            return int(self.n_steps)
        if not shaped:
            return 8  # without curvature, the way is longer
        return 2 if strength < 400 else 4 if strength < 2000 else 8 if strength < 5_000 else 16

    def _learn_within(self, rows: Rows, plan: LearningPlan[Spending], source: Source) -> None:
        spending = plan.steps
        if rows.public is not None:
            reference, spread = rows.public, 1.0
        else:
            reference, spread = self._reference(rows.X, spending, source)
        features = FeatureMap.of(reference, self.columns_, spending.bins, spending.weight, spread)
        Z = features.clipped(rows.X)
        if Z.shape[1] > spending.width:
            raise AssertionError("there are more features than the cost was computed for")
        public = None if rows.public is None else features.clipped(rows.public).astype(np.float64)
        moments = features.moments * len(Z)
        if spending.moments_noise is not None:
            moments = noisy_moments(Z, features.norm, spending.moments_noise, source)
        self.features_ = features
        curvature = Curvature(moments, public, len(Z))
        self.weights_ = kalman_steps(
            Z, rows.y, features.norm, curvature, spending.steps, spending.noise, source
        )

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
        self._learn(rows, self.plan(sizes, rows), source)

    def _reference(self, X: Floats, spending: Spending, source: Source) -> tuple[Floats, float]:
        """Return a table to scale columns by, and what part of the true spread it shows."""
        points = spending.points or 15
        reference = column_points(self.columns_, points)
        for place, share in enumerate(self.columns_.shares):
            if share is not None:
                reference[:, place] = share
        if not spending.points:
            return reference, 1.0
        numeric = self.columns_.numeric
        reference[:, numeric] = _quantiles(self.columns_, spending, source).sanitize(X[:, numeric])
        ranks = np.arange(1, points + 1) / (points + 1)
        return reference, float(norm.ppf(ranks).std())

    @property
    def coef_(self) -> Floats:
        """Slopes of the straight lines, one for each encoded column, in units of the column."""
        return self.features_.slopes(self.weights_)[1:].reshape(1, -1)

    @property
    def intercept_(self) -> Floats:
        """Log odds where all columns are 0, as far as the lines go."""
        return self.features_.slopes(self.weights_)[:1]

    def __str__(self) -> str:
        if not hasattr(self, "weights_"):
            return repr(self)
        return self.features_.describe(self.weights_, self.columns_.titles)

    def log_odds(self, table: NDArray[Any]) -> Floats:
        return self.features_.scores(table, self.weights_)


@lru_cache(maxsize=256)
def rho_for(epsilon: float, delta: float) -> float:
    """Return the largest rho such that rho-zCDP is within (epsilon, delta)."""
    if epsilon == math.inf:
        return math.inf
    return 1 / calibrate(lambda noise: ZCDP(1 / noise), epsilon, delta, tolerance=1e-6)


@lru_cache(maxsize=256)
def gaussian_rho(epsilon: float, delta: float, places: int, least: float = 2 * LENGTH) -> float:
    """Return the same for vectors with so many places, of which more is known.

    Parameters
    ----------
    epsilon, delta : float
        What is asked for.
    places : int
        Numbers that are released, at most.
    least : float
        The smallest scale of all releases, times the root of twice the result.
    """
    if epsilon == math.inf:
        return math.inf

    def cost(noise: float) -> Cost:  # no scale is below that of a single release
        return DiscreteGaussianVectors(1 / noise, places, least * noise)

    return calibrate(cost, epsilon, delta, start=4.0, tolerance=1e-5) ** -2 / 2


def _width(sizes: Sizes, bins: int) -> int:
    """Return the largest number of features that there can be."""
    return 1 + sizes.features + len(sizes.columns.numeric) * bins


def _noise(rho: float) -> float:
    """Return the scale at which a vector costs rho."""
    return 0.0 if rho == math.inf else LENGTH * math.sqrt(2 / rho)


def _moments_pay(sizes: Sizes, strength: float, bins: int, weight: float) -> bool:
    """Tell whether the noise of the moments, over all directions, leaves the matrix in shape."""
    numeric = len(sizes.columns.numeric)
    square = 1 + numeric * (1 + weight**2) + len(sizes.columns.columns) - numeric
    width = _width(sizes, bins)
    return strength * math.sqrt(MOMENTS) > 15 * square * math.sqrt(width)


def _points(sizes: Sizes, rho: float) -> int:
    """Return how many quantiles of each column are worth their budget."""

    def error(draws: int) -> float:
        # A draw is off by 2 / epsilon, times the log of the number of places, or so.
        return 12 / math.sqrt(8 * SANITIZED * rho / draws)

    return worthwhile_points(sizes.columns, sizes.labelled, error)


def _quantile_epsilon(rho: float, points: int, sizes: Sizes) -> float:
    """Return the epsilon with which these quantiles cost at most rho."""
    if rho == math.inf:
        return math.inf
    draws = quantile_levels(points) * len(sizes.columns.numeric)
    return math.sqrt(8 * rho * draws) * (1 - 1e-9)


def _quantiles(columns: Columns, spending: Spending, source: Source) -> Quantiles:
    return numeric_quantiles(columns, spending.points, spending.points_epsilon, source)
