"""Logistic regression by a few noisy gradient steps that know their own noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import Columns, Declared
from cumae.errors import InvalidParameter
from cumae.learners.base import Rows, Sizes
from cumae.learners.cuts import grid_points
from cumae.learners.exponential import PUBLIC_ROWS
from cumae.learners.features import FeatureMap
from cumae.learners.scored import ScoredLearner
from cumae.parameters import check_count
from cumae.privacy import ZCDP, Budget, Cost, DiscreteGaussianVectors, Pure, calibrate
from cumae.privacy.plans import Plan
from cumae.randomness import SYSTEM, Source, discrete_gaussian, source_for
from cumae.sanitizers import Quantiles

LENGTH = 2**20  # of the longest row of integers
CHUNK = 8192  # rows that are turned into integers at a time
PRIOR = 0.15  # variance of a coefficient before any row was seen
FREE = 4.0  # of the constant
SANITIZED = 0.15  # share of the budget for quantiles
MOMENTS = 0.2  # and for second moments
LEAST_PUBLIC = 50  # fewer rows say less about scales than declarations do
LARGEST_EPSILON = 500.0  # a larger one adds no accuracy, and leaves what floats can compute
STEEP = 0.5  # largest residual that counts in full


@dataclass(frozen=True)
class Schedule:
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
def vectors_cost(schedule: Schedule) -> Cost:
    """Cost of all sums of integer rows: a replaced row moves each by 2 LENGTH at most."""
    scales = [schedule.noise] * schedule.steps
    if schedule.moments_noise is not None:
        scales.append(schedule.moments_noise)
    if min(scales) == 0:
        return Pure(math.inf)
    mu = 2 * LENGTH * math.sqrt(sum(scale**-2 for scale in scales)) * (1 + 1e-12)
    return DiscreteGaussianVectors(mu, schedule.places, min(scales))


@claim("LOGREG")
def noisy_sum(
    rows: NDArray[np.float32], factors: Floats, length: float, noise: float, source: Source
) -> Floats:
    """Sum factors * rows, each shortened to ``length`` and rounded to integers, with noise."""
    total = np.zeros(rows.shape[1], dtype=np.int64)
    # Rounding adds at most half of a unit in each place, hence sqrt(width) / 2 in length.
    unit = (LENGTH - math.sqrt(rows.shape[1])) / length
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        total += _integers(rows[part] * (factors[part, None] * unit)).sum(axis=0)
    total += discrete_gaussian(noise, len(total), source)
    return total / unit


@claim("LOGREG")
def _integers(scaled: Floats) -> Integers:
    """Round rows; one that is longer than LENGTH or no number somewhere becomes zero.

    What the arithmetic before promises is not taken on trust.
    """
    usual = np.all(np.abs(scaled) <= LENGTH, axis=1)  # so that squares do not overflow; not for NaN
    whole = np.rint(np.where(usual[:, None], scaled, 0.0)).astype(np.int64)
    whole[(whole**2).sum(axis=1) > LENGTH**2] = 0
    return whole


@claim("LOGREG")
class PrivateLogisticRegression(ScoredLearner):
    """Logistic regression on numbers within declared bounds, or on bins as an additive model.

    The gradient of the log loss, summed over rows shortened to a fixed length, is released with
    integer Gaussian noise in a few steps. Because the noise is known, each step is a Kalman
    update: the coefficients have a prior, and a noisy gradient moves each direction as far as
    its signal stands out. Curvature comes from public rows, at no cost; without them from a
    noisy matrix of second moments where rows are many, else from the scales alone.

    Parameters
    ----------
    epsilon, delta
        Privacy parameters; delta must be above 0.
    bounds
        Declared bounds of numeric columns and categories of others, as ``columns`` elsewhere.
    bins
        None for straight lines; a number adds that many steps for each numeric column, which then
        is a curve; ``"auto"`` takes as many as rows and budget can bear.
    n_steps
        Gradient steps; ``"auto"`` goes by rows and budget.
    columns, classes, budget, random_state
        As in :class:`~cumae.learners.PrivateLearner`; ``columns`` is another name of ``bounds``.

    Attributes
    ----------
    coef_, intercept_
        Slopes of the straight lines for each encoded column, in its own units, and the log odds
        where all are 0. Values are pulled in to 3 standard deviations, and bins come on top:
        ``print`` shows all.
    weights_, features_
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

    def _declared(self) -> Declared:
        if self.bounds is not None and self.columns is not None:
            raise InvalidParameter("bounds and columns were both given; they mean the same.")
        return self.columns if self.bounds is None else self.bounds

    def _plan(self, sizes: Sizes, rows: Rows) -> Plan:
        schedule = self._schedule(sizes)
        cost, claims = vectors_cost(schedule), ["LOGREG", "VECTOR"]
        if schedule.points:
            cost += _quantiles(sizes.columns, schedule, SYSTEM).cost
            claims += ["COMP", "QUANT"]
        return Plan(
            cost,
            tuple(claims),
            assumptions=PUBLIC_ROWS if rows.public is not None else (),
            steps={"schedule": schedule},
        )

    def _schedule(self, sizes: Sizes) -> Schedule:
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
        points = 0 if sizes.public else self._points(sizes, rho)
        moments = MOMENTS if shaped and not sizes.public else 0.0
        steps = self._steps(strength, shaped=shaped)
        width = _width(sizes, bins)
        places = steps * width + (width * (width + 1) // 2 if moments else 0)
        if not points:  # then all is Gaussian, and more of it fits than zCDP can tell
            rho = gaussian_rho(epsilon, self.delta, places)
        left = rho * (1 - moments - (SANITIZED if points else 0.0)) * (1 - 1e-9)
        return Schedule(
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

    def _points(self, sizes: Sizes, rho: float) -> int:
        """Return how many quantiles a column are worth their budget; 0 if none are."""
        columns = sizes.columns.numeric
        if not columns:
            return 0
        for points in (15, 7, 3):
            draws = _levels(points) * len(columns)
            # A draw is off by 2 / epsilon, times the log of the number of places, or so.
            error = 12 / math.sqrt(8 * SANITIZED * rho / draws)
            if error < (0.1 if points > 3 else 0.3) * sizes.labelled:
                return points
        return 3 if any(sizes.columns.bounds[place] is None for place in columns) else 0

    def _bins(self, strength: float) -> tuple[int, float]:
        if self.bins is None:
            return 0, 0.0
        if self.bins == "auto":
            weight = min(1.0, strength / 16_000)
            return (16, weight) if weight > 0.2 else (0, 0.0)
        return check_count(self.bins, "bins", least=2), 1.0

    def _steps(self, strength: float, *, shaped: bool) -> int:
        if self.n_steps != "auto":
            return check_count(self.n_steps, "n_steps", least=1)
        if not shaped:
            return 8  # without curvature, the way is longer
        return 2 if strength < 400 else 4 if strength < 2000 else 8 if strength < 5_000 else 16

    def _learn(self, rows: Rows, plan: Plan, source: Source) -> None:
        schedule: Schedule = plan.steps["schedule"]
        if rows.public is not None:
            reference, spread = rows.public, 1.0
        else:
            reference, spread = self._reference(rows.X, schedule, source)
        features = FeatureMap.of(reference, self.columns_, schedule.bins, schedule.weight, spread)
        Z = features.clipped(rows.X)
        if Z.shape[1] > schedule.width:
            raise AssertionError("there are more features than the cost was computed for")
        public = None if rows.public is None else features.clipped(rows.public).astype(np.float64)
        moments = features.moments * len(Z)
        if schedule.moments_noise is not None:
            moments = noisy_moments(Z, features.norm, schedule.moments_noise, source)
        self.features_ = features
        self.weights_ = kalman_steps(
            Z, rows.y, features.norm, schedule, _Curvature(moments, public, len(Z)), source
        )

    def _fit_rows(self, rows: Rows, columns: Columns, classes: NDArray[Any]) -> None:
        """Fit as the first part of another learner, which holds the guarantee."""
        sizes = Sizes(len(rows.y), 0, 0 if rows.public is None else len(rows.public), columns)
        source = source_for(self.random_state)
        self.random_state = None  # a generator is no part of a model
        self.columns_, self.classes_ = columns, classes
        self._learn(rows, self._plan(sizes, rows), source)

    def _reference(self, X: Floats, schedule: Schedule, source: Source) -> tuple[Floats, float]:
        """Return a table to scale columns by, and what part of the true spread it shows."""
        points = schedule.points or 15
        ends = [(0.0, 1.0) if b is None else b for b in self.columns_.bounds]
        reference = grid_points(ends, points - 1)
        for place, share in enumerate(self.columns_.shares):
            if share is not None:
                reference[:, place] = share
        if not schedule.points:
            return reference, 1.0
        numeric = self.columns_.numeric
        reference[:, numeric] = _quantiles(self.columns_, schedule, source).sanitize(X[:, numeric])
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

    def _log_odds(self, table: NDArray[Any]) -> Floats:
        return np.asarray(self.features_.rows(table) @ self.weights_, dtype=np.float64)


class _Curvature:
    """The expected second derivative of the loss: exact shape from public rows, or a bound."""

    def __init__(self, moments: Floats, public: Floats | None, rows: int) -> None:
        self.moments, self.public, self.rows = moments, public, rows

    def at(self, coefficients: Floats) -> Floats:
        if self.public is None:
            return self.moments / 4
        chance = expit(self.public @ coefficients)
        weighted = self.public * (chance * (1 - chance))[:, None]
        return np.asarray(weighted.T @ self.public * (self.rows / len(self.public)))


def kalman_steps(
    Z: NDArray[np.float32],
    y: Integers,
    longest: float,
    schedule: Schedule,
    curvature: _Curvature,
    source: Source,
) -> Floats:
    """Return coefficients after noisy gradient steps, each weighed by what its noise leaves."""
    width = Z.shape[1]
    mean = np.zeros(width)
    spread = np.diag(np.append(FREE, np.full(width - 1, PRIOR)))
    length = STEEP * longest
    # Noise of one step, in units of the gradient.
    noise = schedule.noise * length / (LENGTH - math.sqrt(width))
    for _ in range(schedule.steps):
        residual = np.clip(expit(Z @ mean) - y, -STEEP, STEEP)
        gradient = noisy_sum(Z, residual, length, schedule.noise, source)
        bend = curvature.at(mean)
        # gradient = bend (mean - truth) + noise; the rows' own scatter, which all steps share,
        # counts once for all of them together.
        # Without noise, directions that no row shows would have no inverse.
        scatter = max(noise**2, 1e-9) * np.eye(width) + schedule.steps * bend
        gain = np.linalg.solve(bend @ spread @ bend + scatter, bend @ spread).T
        mean = mean - gain @ gradient
        spread = spread - gain @ bend @ spread
    return mean


@claim("LOGREG")
def noisy_moments(Z: NDArray[np.float32], longest: float, noise: float, source: Source) -> Floats:
    """Return the matrix of second moments with noise, its negative directions set to 0."""
    width = Z.shape[1]
    upper = np.triu_indices(width)
    double = np.where(upper[0] == upper[1], 1.0, math.sqrt(2.0)).astype(np.float32)
    # Each entry off the diagonal stands for two, so that lengths agree with the whole matrix.
    whole = np.zeros(len(double), dtype=np.int64)
    unit = (LENGTH - math.sqrt(len(double))) / longest**2
    size = max(1, CHUNK * 64 // len(double))
    for start in range(0, len(Z), size):
        part = Z[start : start + size].astype(np.float64)
        whole += _integers(part[:, upper[0]] * part[:, upper[1]] * (double * unit)).sum(axis=0)
    whole += discrete_gaussian(noise, len(whole), source)
    matrix = np.zeros((width, width))
    matrix[upper] = whole / (unit * double)
    matrix += np.triu(matrix, 1).T
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


@lru_cache(maxsize=64)
@lru_cache(maxsize=256)
def rho_for(epsilon: float, delta: float) -> float:
    """Return the largest rho such that rho-zCDP is within (epsilon, delta)."""
    if epsilon == math.inf:
        return math.inf
    return 1 / calibrate(lambda noise: ZCDP(1 / noise), epsilon, delta, tolerance=1e-6)


@lru_cache(maxsize=256)
def gaussian_rho(epsilon: float, delta: float, places: int) -> float:
    """Return the same for vectors with so many places, of which more is known."""
    if epsilon == math.inf:
        return math.inf

    def cost(noise: float) -> Cost:  # no scale is below that of a single release
        return DiscreteGaussianVectors(1 / noise, places, 2 * LENGTH * noise)

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


def _levels(points: int) -> int:
    return (points + 1).bit_length() - 1


def _quantile_epsilon(rho: float, points: int, sizes: Sizes) -> float:
    """Return the epsilon with which these quantiles cost at most rho."""
    if rho == math.inf:
        return math.inf
    draws = _levels(points) * len(sizes.columns.numeric)
    return math.sqrt(8 * rho * draws) * (1 - 1e-9)


def _quantiles(columns: Columns, schedule: Schedule, source: Source) -> Quantiles:
    bounds = [columns.bounds[place] for place in columns.numeric]
    return Quantiles(schedule.points_epsilon, bounds, schedule.points, random_state=source)
