"""How a cost changes when rows are subsampled, relabelled, resampled, grouped or split.

Where the papers print a formula and a tighter one is proven, ``variant`` chooses between
``"paper"`` and ``"tight"``, the default.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.parameters import check_choice, check_count
from cumae.privacy.cost import (
    Approximate,
    BoundedRange,
    Composed,
    Cost,
    Gaussian,
    Pure,
    check_cost,
    compose,
)
from cumae.privacy.discrete_gaussian import DiscreteGaussian
from cumae.privacy.formulas import FAR, UP, add_up, sum_up
from cumae.privacy.validation import check_delta, check_epsilon, check_rate, keep

VARIANTS = ("tight", "paper")


def subsample(cost: Cost, rate: float, variant: str = "tight") -> Cost:
    """Cost of running on a uniform subset of that share of the rows, in uniformly random order.

    Kept in the order of the table, a subset is not covered: shuffle it, or ignore the order.

    Examples
    --------
    >>> from cumae.privacy import Pure, subsample
    >>> round(subsample(Pure(1.0), 0.1).epsilon(0), 4)
    0.1586
    >>> round(subsample(Pure(1.0), 0.1, variant="paper").epsilon(0), 4)
    0.5718
    """
    check_cost(cost)
    if check_choice(variant, VARIANTS, "variant") == "paper":
        return PaperSubsampled(cost, rate)
    return Subsampled(cost, rate)


@claim("SUB")
@dataclass(frozen=True)
class Subsampled(Cost):
    """On a share q of the rows: delta'(ln(1 + q (exp(e) - 1))) = q delta(e)."""

    base: Cost
    rate: float

    def __post_init__(self) -> None:
        keep(self, rate=check_rate(self.rate, up=True))

    def _curve(self, epsilon: Floats) -> Floats:
        if self.rate == 0:
            return np.zeros_like(epsilon)
        with np.errstate(over="ignore"):
            inner = np.minimum(np.log1p(np.expm1(epsilon) / self.rate), FAR)
        # Reading the base a little to the left keeps the rounding of ``inner`` on the safe side.
        return self.rate * self.base.deltas(inner * (1.0 - 1e-12)) * UP

    @property
    def pure(self) -> float:
        return _amplified(self.base.pure, self.rate)

    @property
    def zcdp(self) -> tuple[float, float] | None:
        # A mixture diverges no more than its worst part, so the base's own figure still holds;
        # what follows from the amplified pure epsilon may be better.
        known = [rho for rho in (self.base.zcdp, super().zcdp) if rho is not None]
        return min(known, default=None) if self.rate > 0 else (0.0, 0.0)

    @property
    def infinite(self) -> bool:
        return self.base.infinite and self.rate == 1


@claim("SUB")
@dataclass(frozen=True)
class PaperSubsampled(Cost):
    """Claim C.1 of paper 1: (e, d) on a share q is (q (3 + exp(e)), 4 q d), if at most (1, ...)."""

    base: Cost
    rate: float

    def __post_init__(self) -> None:
        keep(self, rate=check_rate(self.rate, up=True))

    def _curve(self, epsilon: Floats) -> Floats:
        if self.rate == 0:
            return np.zeros_like(epsilon)
        inner = np.minimum(epsilon, 1.0) / self.rate * (1.0 - 1e-12) - 3.0
        near = np.log(np.maximum(inner, 1.0)) * (1.0 - 1e-12)
        stated = 4 * self.rate * self.base.deltas(near) * UP
        return np.where(inner >= 1.0, stated, 1.0)

    @property
    def pure(self) -> float:
        if self.rate == 0:
            return 0.0
        if self.base.pure > FAR:
            return math.inf
        epsilon = self.rate * (3.0 + math.exp(self.base.pure)) * UP
        return epsilon if epsilon <= 1 else math.inf

    @property
    def zcdp(self) -> tuple[float, float] | None:
        return None  # the paper states none

    @property
    def infinite(self) -> bool:
        return self.base.infinite and self.rate == 1


def _amplified(epsilon: float, rate: float) -> float:
    if epsilon == math.inf:
        return math.inf if rate > 0 else 0.0
    if rate == 1:
        return epsilon
    if epsilon > FAR:
        return epsilon  # the formula overflows; not amplifying is safe
    return min(epsilon, math.log1p(rate * math.expm1(epsilon)) * UP)


@claim("LB")
def label_boost(cost: Cost, epsilon: float, role: str, k: int = 2, variant: str = "tight") -> Cost:
    """Cost for one row when a drawn hypothesis relabels the rows and ``cost`` is paid afterwards.

    The hypothesis is drawn by the exponential mechanism with ``epsilon``, scored on the labelled
    rows S, among candidates that the points of S and T define. With g = exp(epsilon/2), the draw is
    a mechanism of bounded range 2 ln F, composed with ``cost``: F = 1 + g for a row of S and 2 for
    a row of T if k = 2, which means that a new point splits a candidate into at most two, which
    disagree on it; else F = k g for S and k for T, where k bounds the factor by which one point
    changes the weight of the candidates that agree elsewhere (k = 1: candidates are public).

    Parameters
    ----------
    cost
        What the algorithm that runs on the relabelled rows costs.
    epsilon
        Parameter of the exponential mechanism that draws the hypothesis.
    role
        ``"S"`` for a labelled row that is scored, ``"T"`` for one that only defines candidates, or
        ``"untouched"`` for a row that takes part in neither.
    k
        As above; a class without a proven k must not be used.
    variant
        ``"paper"`` is (e + 3, 4 exp(1) d) for both roles, stated for ``epsilon = 1`` and k = 2.

    Examples
    --------
    >>> from cumae.privacy import Pure, label_boost
    >>> round(label_boost(Pure(1.0), 1.0, "S").epsilon(0), 3)
    2.948
    >>> label_boost(Pure(1.0), 1.0, "S", variant="paper").epsilon(0)
    4.0
    """
    check_cost(cost)
    epsilon = check_epsilon(epsilon, up=True)
    k = check_count(k, "k", least=1)
    check_choice(role, ("S", "T", "untouched"), "role")
    if role == "untouched":
        return cost
    if check_choice(variant, VARIANTS, "variant") == "paper":
        if epsilon != 1 or k != 2:
            raise InvalidParameter(
                f"variant='paper' with epsilon={epsilon!r}, k={k!r}: the paper states its bound "
                "for epsilon=1 and k=2 only; use variant='tight'."
            )
        return PaperLabelBoosted(cost)
    scored = epsilon / 2 if role == "S" else 0.0
    log_factor = np.logaddexp(0.0, scored) if k == 2 else math.log(k) + scored
    return cost + BoundedRange(2 * float(log_factor) * (1.0 + 1e-15))


@claim("LB")
@dataclass(frozen=True)
class PaperLabelBoosted(Cost):
    """Lemma 4.1 of paper 1, as its proof gives it: delta'(e + 3) = 4 exp(1) delta(e)."""

    base: Cost

    def _curve(self, epsilon: Floats) -> Floats:
        near = np.maximum(epsilon - 3.0, 0.0) * (1.0 - 1e-15)
        stated = 4 * math.e * self.base.deltas(near) * UP
        return np.where(epsilon >= 3.0, stated, 1.0)

    @property
    def pure(self) -> float:
        return sum_up([(self.base.pure, 1), (3.0, 1)])

    @property
    def zcdp(self) -> tuple[float, float] | None:
        return None  # the paper states none

    @property
    def infinite(self) -> bool:
        return self.base.infinite


def bootstrap(cost: Cost, rows: int, draws: int | None = None, variant: str = "tight") -> Cost:
    """Cost of running on ``draws`` rows (default: as many) drawn with replacement from ``rows``.

    Examples
    --------
    >>> from cumae.privacy import Pure, bootstrap
    >>> round(bootstrap(Pure(1.0), 10_000).epsilon(0), 2)
    1.86
    >>> round(bootstrap(Pure(1.0), 10_000, variant="paper").epsilon(0), 2)
    5.5
    """
    check_cost(cost)
    rows = check_count(rows, "rows", least=1)
    draws = rows if draws is None else check_count(draws, "draws")
    if rows == 1:  # every draw is the same row
        return group(cost, draws)
    if check_choice(variant, VARIANTS, "variant") == "paper":
        if draws != rows:
            raise InvalidParameter(
                f"variant='paper' with draws={draws}, rows={rows}: the paper states its bound for "
                "as many draws as rows only; use variant='tight'."
            )
        return PaperBootstrapped(cost)
    return Bootstrapped(cost, rows, draws)


@claim("BOOT")
@dataclass(frozen=True)
class Bootstrapped(Cost):
    """A row comes up L ~ Binomial(draws, 1/rows) times.

    Two bounds hold, with p_l = P(L = l), q = 1 - p_0 and delta_l for groups of l rows:
    delta'(ln(1 + q (exp(e) - 1))) = sum over l >= 1 of p_l delta_l(e), and the mixture's
    delta'(ln R(e)) = C(e) delta(e), with R and C as in ``_mixture``.
    """

    base: Cost
    rows: int
    draws: int

    def __post_init__(self) -> None:
        keep(
            self,
            rows=check_count(self.rows, "rows", least=2),
            draws=check_count(self.draws, "draws"),
        )

    def _curve(self, epsilon: Floats) -> Floats:
        if self.draws == 0:
            return np.zeros_like(epsilon)
        return np.minimum(self._by_groups(epsilon), self._by_mixture(epsilon)) * UP

    def _by_groups(self, epsilon: Floats) -> Floats:
        seen = -math.expm1(self.draws * math.log1p(-1.0 / self.rows))
        with np.errstate(over="ignore"):
            inner = np.minimum(np.log1p(np.expm1(epsilon) / seen), FAR) * (1.0 - 1e-12)
        most = min(self.draws, 40)  # P(L > 40) is below 1e-40 when draws = rows
        chances = np.exp(self._log_chances(most))
        total = np.full_like(epsilon, stats.binom.sf(most, self.draws, 1.0 / self.rows))
        for copies in range(1, most + 1):
            total += chances[copies] * group(self.base, copies).deltas(inner)
        return total

    def _log_chances(self, most: int) -> Floats:
        """Return ln P(L = l) for l = 0, ..., most, by recurrence, without huge logarithms."""
        copies = np.arange(most)
        steps = np.log((self.draws - copies) / ((copies + 1.0) * (self.rows - 1.0)))
        return _before(steps) + self.draws * math.log1p(-1.0 / self.rows)

    def _by_mixture(self, epsilon: Floats) -> Floats:
        known, delta = self._readings
        place = np.searchsorted(known, epsilon, side="right") - 1
        return np.where(place >= 0, delta[np.maximum(place, 0)], 1.0)

    @cached_property
    def _readings(self) -> tuple[Floats, Floats]:
        """Ln R(e), rising, with the least C(e) delta(e) up to there, for many e."""
        grid = np.linspace(0.0, 6.0, 601)
        readings: list[tuple[float, float]] = []
        for _ in range(6):  # narrow down on the best e: a curve may have a step there
            values = []
            for e, delta in zip(grid, self.base.deltas(grid), strict=True):
                known, factor = self._mixture(float(e))
                values.append(factor * delta if known < math.inf else 1.0)
                readings.append((known, values[-1]))
            best = int(np.argmin(values))
            grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], 33)
        known, delta = np.array(sorted(readings)).T
        return known, np.minimum.accumulate(np.minimum(delta, 1.0))

    @np.errstate(over="ignore", under="ignore")
    def _mixture(self, epsilon: float) -> tuple[float, float]:
        """Return ln R and C for a base that is (epsilon, d)-DP: it becomes (ln R, C d)-DP.

        Given L = l, the densities of both neighbours are within exp(l e) of each other and of that
        given L = 0. At worst they are 1 and exp(-l e) for small l, and exp(l e) and 1 from some l
        on; R is the largest quotient over that l, and C the price of d, l times chained.
        """
        mean = self.draws / self.rows
        if epsilon > 600 or mean * math.expm1(epsilon) > 600:
            return math.inf, math.inf  # the sums below would overflow, and their bound is useless
        most = min(self.draws, 200 + math.ceil(20 * mean * math.exp(epsilon)))
        copies, logs = np.arange(most + 1), self._log_chances(most)
        plain, risen = np.exp(logs), np.exp(logs + epsilon * copies)
        near = plain * np.expm1(np.minimum(epsilon * copies, 1.0))
        up = np.where(epsilon * copies < 1, near, risen - plain)
        down = -plain * np.expm1(-epsilon * copies)
        # Numerator less denominator, over the denominator: R - 1 without cancellation.
        excess = (_before(down) + _from(up)) / (_before(plain - down) + _from(plain))
        log_ratio = math.log1p(float(excess.max())) * (1.0 + 1e-9)
        if epsilon == 0:
            return 0.0, float((plain * copies).sum())
        first = int(np.searchsorted(epsilon * copies, log_ratio, side="right"))
        price = math.exp(log_ratio) * down[:first].sum() + up[first:].sum()
        return log_ratio, float(price) / math.expm1(epsilon)

    @property
    def pure(self) -> float:
        if self.draws == 0:
            return 0.0
        return min(self._mixture(self.base.pure)[0], _times(self.base.pure, self.draws))

    @property
    def infinite(self) -> bool:
        return self.base.infinite and self.draws > 0


def _before(values: Floats) -> Floats:
    """Sum of the values before each place, and of all of them at the end."""
    return np.concatenate([[0.0], np.cumsum(values)])


def _from(values: Floats) -> Floats:
    """Sum of the values from each place on, and 0 at the end."""
    return _before(values[::-1])[::-1]


@claim("BOOT")
@dataclass(frozen=True)
class PaperBootstrapped(Cost):
    """Claim C.3 of paper 1, as its proof gives it: (1, d) becomes (ln 244, 2476 d)."""

    base: Cost

    def _curve(self, epsilon: Floats) -> Floats:
        return np.where(epsilon >= math.log(244), 2476 * self.base.delta(1.0), 1.0)

    @property
    def pure(self) -> float:
        return math.log(244) if self.base.pure <= 1 else math.inf

    @property
    def zcdp(self) -> tuple[float, float] | None:
        return None  # the paper states none

    @property
    def infinite(self) -> bool:
        return self.base.infinite


@claim("GROUP")
def group(cost: Cost, size: int) -> Cost:  # noqa: PLR0911 - one line a kind of cost
    """Cost of protecting ``size`` rows at once.

    A composition is taken for several uses of the rows. For noise on several counts that one row
    moves at once (``GaussianNoise`` with ``moves``), make the noise for the group instead.

    Examples
    --------
    >>> from cumae.privacy import DiscreteGaussian, Pure, group
    >>> group(Pure(0.5), 3)
    Pure(eps=1.5)
    >>> group(DiscreteGaussian(600.0), 2)
    DiscreteGaussian(scale=600.0, sensitivity=2)
    """
    check_cost(cost)
    size = check_count(size, "size")
    if size == 0:
        return Pure(0.0)
    if size == 1:
        return cost
    match cost:
        case Pure(eps):
            return Pure(_times(eps, size))
        case BoundedRange(eps):
            return BoundedRange(_times(eps, size))
        case Gaussian(scale, sensitivity):
            return Gaussian(scale, _times(sensitivity, size))
        case DiscreteGaussian(scale, sensitivity):
            return DiscreteGaussian(scale, size * sensitivity)
        case Approximate(eps, failure) if size * eps < FAR:
            total = failure * _chain(np.array([_times(eps, size)]), size)[0] * UP
            return (
                Approximate(_times(eps, size), float(total)) if total < 1 else Grouped(cost, size)
            )
        case Composed(parts):
            return compose((group(part, size), count) for part, count in parts)
        case _:
            return Grouped(cost, size)


@claim("GROUP")
@dataclass(frozen=True)
class Grouped(Cost):
    """A chain of k neighbours: delta_k(e) = (1 + x + ... + x^(k-1)) delta(e/k), x = exp(e/k)."""

    base: Cost
    size: int

    def __post_init__(self) -> None:
        keep(self, size=check_count(self.size, "size", least=1))

    def _curve(self, epsilon: Floats) -> Floats:
        # The chained bound may rise again with e, delta may not: stay at the best e behind it.
        return self._chained(np.minimum(epsilon, self._turn))

    def _chained(self, epsilon: Floats) -> Floats:
        delta = self.base.deltas(epsilon / self.size * (1.0 - 1e-15))
        return np.minimum(_chain(epsilon, self.size) * delta * UP, 1.0)

    @cached_property
    def _turn(self) -> float:
        """Return the e with the least chained bound, as far as a search finds it."""
        grid = np.linspace(0.0, FAR, 2001)
        for _ in range(6):
            best = int(np.argmin(self._chained(grid)))
            grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], 101)
        return float(grid[int(np.argmin(self._chained(grid)))])

    @property
    def pure(self) -> float:
        return _times(self.base.pure, self.size)

    @property
    def zcdp(self) -> tuple[float, float] | None:
        if self.base.zcdp is None or self.base.zcdp[1] > 0:
            return super().zcdp
        return (sum_up([(self.base.zcdp[0], self.size**2)]), 0.0)

    @property
    def infinite(self) -> bool:
        return self.base.infinite


def _times(value: float, size: int) -> float:
    """Multiply, rounding up."""
    return sum_up([(value, size)])


def _chain(epsilon: Floats, size: int) -> Floats:
    """Return 1 + x + ... + x^(size - 1) with x = exp(epsilon / size)."""
    with np.errstate(all="ignore"):
        step = epsilon / size
        return np.where(step > 1e-300, np.expm1(epsilon) / np.expm1(step), size)


def parallel(*costs: Cost) -> Cost:
    """Cost of mechanisms that each see rows of their own, split by index and public status only.

    Examples
    --------
    >>> from cumae.privacy import Approximate, Pure, parallel
    >>> parallel(Pure(1.0), Approximate(0.5, 1e-6)).delta(0.5) == Pure(1.0).delta(0.5)
    True
    """
    distinct = tuple(sorted({check_cost(cost) for cost in costs}, key=repr))
    if not distinct:
        return Pure(0.0)
    return distinct[0] if len(distinct) == 1 else Parallel(distinct)


@claim("PAR")
@dataclass(frozen=True)
class Parallel(Cost):
    """One row is in one part only: delta(e) is the largest of the parts'."""

    parts: tuple[Cost, ...]

    def _curve(self, epsilon: Floats) -> Floats:
        return np.asarray(np.max([part.deltas(epsilon) for part in self.parts], axis=0))

    @property
    def pure(self) -> float:
        return max(part.pure for part in self.parts)

    @property
    def zcdp(self) -> tuple[float, float] | None:
        known = [part.zcdp for part in self.parts if part.zcdp is not None]
        if len(known) < len(self.parts):
            return None
        return (max(rho for rho, _ in known), max(xi for _, xi in known))

    @property
    def infinite(self) -> bool:
        return any(part.infinite for part in self.parts)


def or_fail(cost: Cost, delta: float) -> Cost:
    """Cost when outcomes of probability at most ``delta`` are not covered by ``cost``.

    The condition is that of claim FAIL: for each input there is a set of bad outcomes with that
    probability, and outside it ``cost`` holds against every neighbour.

    Examples
    --------
    >>> from cumae.privacy import Pure, or_fail
    >>> or_fail(Pure(1.0), 1e-6).delta(1.0)
    1e-06
    """
    check_cost(cost)
    return Failing(cost, delta) if check_delta(delta) > 0 else cost


@claim("FAIL")
@dataclass(frozen=True)
class Failing(Cost):
    """delta'(e) = delta(e) + failure."""

    base: Cost
    failure: float

    def __post_init__(self) -> None:
        keep(self, failure=check_delta(self.failure, up=True))

    def _curve(self, epsilon: Floats) -> Floats:
        return add_up(self.base.deltas(epsilon), self.failure)

    @property
    def zcdp(self) -> tuple[float, float] | None:
        return None

    @property
    def infinite(self) -> bool:
        return self.base.infinite
