"""A private classifier of tables by noisy sums of residuals along directions still unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.data import Declared
from cumae.errors import InvalidParameter
from cumae.learners.base import DECLARED, PUBLIC_ROWS, LearningPlan, Rows, Sizes
from cumae.learners.kernel.features import (
    MOST_FEATURES,
    UNIT,
    WAVES,
    KernelFeatures,
    most_features,
)
from cumae.learners.kernel.posterior import MOST_DIRECTIONS, NoisySum, Posterior
from cumae.learners.kernel.reference import COUNTED, WORTH, MadeUp
from cumae.learners.kernel.sums import MOVES, STEEP, chunks, noisy_sum, room, rounded, shorten
from cumae.learners.logistic import LARGEST_EPSILON, LEAST_PUBLIC, gaussian_rho
from cumae.learners.scored import ScoredLearner
from cumae.parameters import DELTA, EPSILON, Count, Kind
from cumae.privacy import Budget, Cost, DiscreteGaussianVectors, Pure
from cumae.randomness import Source

MOST_REFERENCE = 2_000  # public rows that are used as a reference
MANY = 12_000  # rows times mu from which on more steps pay
START = (4.0, 0.5, 0.5)  # variances of the constant, of lines and of bins
START_WAVES = 0.25
LEAST_NOISE = 1e-9  # so that matrices have an inverse where there is no noise
COUNTS, PRODUCTS = 0.1, 0.15  # shares of the budget for made-up rows


@dataclass(frozen=True)
class Measurements:
    """How the budget is spent; made from public sizes alone."""

    steps: int
    noise: float  # scale of the noise of a step, in whole numbers
    counts_noise: float = 0.0  # of counts, if rows are made up
    products_noise: float = 0.0  # and of products


def _places(sizes: Sizes) -> int:
    """Return how many numbers are released, at most."""
    counts = 2 * 40 * len(sizes.columns)
    return 8 * MOST_DIRECTIONS + counts + len(sizes.columns) * (len(sizes.columns) + 1) // 2


@claim("KERNEL")
def vectors_cost(plans: Measurements, sizes: Sizes) -> Cost:
    """Return the cost of all sums: a replaced row moves each by a known length."""
    if plans.noise == 0:
        return Pure(math.inf)
    squares = [plans.steps * (MOVES / plans.noise) ** 2]
    scales = [plans.noise]
    if not sizes.public:
        made = MadeUp(sizes.columns)
        squares.append(2 * 2 * made.n_columns * (COUNTED / plans.counts_noise) ** 2)
        squares.append(2 * (made.longest / plans.products_noise) ** 2)
        scales += [plans.counts_noise, plans.products_noise]
    mu = math.sqrt(sum(squares)) * (1 + 1e-12)
    return DiscreteGaussianVectors(mu, _places(sizes), min(scales))


@claim("KERNEL")
class PrivateKernelClassifier(ScoredLearner):
    """Lines, bins and waves of a few columns in one model, by sums that know their noise.

    The log odds are a sum of lines, bins, and random waves of pairs and triples of columns. A few
    times, the sum of the rows' residuals is released along those directions about which least is
    known so far, with integer Gaussian noise. Because the noise is known, all else is inference:
    the coefficients have a posterior, and the releases themselves decide how much each group of
    features may vary. With public rows (without labels), features are scaled by them. Without, a
    quarter of the budget makes up rows that have noisy marginals and correlations.

    Parameters
    ----------
    epsilon : float of 0 or more
        Privacy parameter.
    delta : float from 0 and below 1
        Privacy parameter; it must be above 0.
    n_waves : int of 0 or more
        Waves in each of four groups: pairs and triples of columns, slow and fast. With 0 the model
        is additive: lines and bins.
    columns : mapping or sequence, or None
        Declared bounds and categories, see :class:`~cumae.Columns`.
    classes : sequence of two labels
        The labels; hypotheses call the second one 1.
    budget : Budget, or None
        An account to pay from.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Attributes
    ----------
    weights_, covariance_ : array of float
        Mean and covariance of the coefficients, given what was released.
    variances_ : array of float
        Variances of the groups of features: the constant, lines, bins, and four groups of waves.
    features_ : KernelFeatures
        How rows become features.

    Notes
    -----
    Fewer than 50 public rows are not used, and more than 2,000 add nothing.

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

    least_public = LEAST_PUBLIC
    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "n_waves": Count(0),
        **DECLARED,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        n_waves: int = WAVES,
        columns: Declared = None,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_waves = n_waves
        self.columns = columns
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    def _plan(self, sizes: Sizes, rows: Rows) -> LearningPlan[Measurements]:
        if not self.delta > 0:
            raise InvalidParameter(
                f"delta={self.delta!r}: Gaussian noise needs a delta above 0, such as 1e-6; for "
                "pure privacy use PrivateBooster."
            )
        most = most_features(sizes.columns, int(self.n_waves))
        if most > MOST_FEATURES:
            raise InvalidParameter(
                f"{len(sizes.columns)} encoded columns and n_waves={self.n_waves!r} make up to "
                f"{most} features, and {MOST_FEATURES} is the most; declare fewer categories or "
                "columns."
            )
        plans = self._measurements(sizes)
        return LearningPlan(
            vectors_cost(plans, sizes),
            ("KERNEL", "VECTOR"),
            assumptions=PUBLIC_ROWS if rows.public is not None else (),
            steps=plans,
        )

    def _measurements(self, sizes: Sizes) -> Measurements:
        epsilon = self.epsilon if self.epsilon == math.inf else min(self.epsilon, LARGEST_EPSILON)
        made = MadeUp(sizes.columns)
        # How large the scale of each kind of release is, times mu, if there is one step.
        step, counts, products = float(MOVES), 0.0, 0.0
        if not sizes.public:
            step /= math.sqrt(1 - COUNTS - PRODUCTS)
            counts = COUNTED * math.sqrt(2 * 2 * made.n_columns / COUNTS)
            products = made.longest * math.sqrt(2 / PRODUCTS)
        least = min(part for part in (step, counts, products) if part)
        rho = gaussian_rho(epsilon, self.delta, _places(sizes), least)
        mu = math.sqrt(2 * rho) * (1 - 1e-9)
        steps = 8 if sizes.labelled * mu > MANY or not sizes.public else 4
        return Measurements(steps, step * math.sqrt(steps) / mu, counts / mu, products / mu)

    def _learn_within(self, rows: Rows, plan: LearningPlan[Measurements], source: Source) -> None:
        plans = plan.steps
        if rows.public is not None:
            reference = rows.public[:MOST_REFERENCE]
            worth = float(len(reference))
        else:
            made = MadeUp(self.columns_)
            reference = made.release(rows.X, plans.counts_noise, plans.products_noise, source)
            worth = WORTH
        features = KernelFeatures.of(
            reference, self.columns_, source, bins=True, waves=int(self.n_waves)
        )
        shown = features.rows(reference)
        start = np.array([*START, *[START_WAVES] * len(features.waves)])
        posterior = Posterior(shown, features.groups, start, len(rows.y), worth, plans.steps)
        for _ in range(plans.steps):
            posterior.learn(self._measure(rows, features, posterior, shown, plans.noise, source))
        self.features_ = features
        self.weights_ = posterior.mean
        self.covariance_ = posterior.covariance
        self.variances_ = posterior.variances

    @claim("KERNEL")
    def _measure(
        self,
        rows: Rows,
        features: KernelFeatures,
        posterior: Posterior,
        shown: Floats,
        scale: float,
        source: Source,
    ) -> NoisySum:
        """NoisySum the residuals along the directions that the releases before call for.

        Parameters
        ----------
        rows : Rows
            Private rows.
        features : KernelFeatures
            How they become features.
        posterior : Posterior
            What is known so far.
        shown : array of float
            Features of the reference rows.
        scale : float
            Scale of the noise, in whole numbers.
        source : Source
            Where coins come from.
        """
        posterior.mean = rounded(posterior.mean)
        directions = rounded(posterior.design((scale / MOVES) ** 2))
        total = noisy_sum(
            lambda part: features.whole(rows.X[part]),
            rows.y,
            posterior.mean / UNIT,
            directions / UNIT,
            scale,
            source,
        )
        # A residual of 1/2 and a direction of length 1 stand for so many whole numbers.
        unit = 2 * STEEP * room(directions.shape[1])
        noise = max((scale / unit) ** 2, LEAST_NOISE)
        return NoisySum(total / unit, noise, shorten(shown @ directions), posterior.chance)

    def log_odds(self, table: NDArray[Any]) -> Floats:
        parts = [self.features_.rows(table[part]) @ self.weights_ for part in chunks(len(table))]
        return np.concatenate(parts) if parts else np.zeros(0)
