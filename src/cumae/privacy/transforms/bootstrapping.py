"""The cost of running on rows that are drawn with replacement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its parts are loaded when they are first used

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.parameters import check_choice, check_count
from cumae.privacy.cost import Cost, check_cost
from cumae.privacy.formulas import FAR, UP, times_up
from cumae.privacy.transforms.base import VARIANTS, FromPaper, Transformed
from cumae.privacy.transforms.groups import group
from cumae.privacy.validation import keep


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
class Bootstrapped(Transformed):
    """A row comes up L ~ Binomial(draws, 1/rows) times.

    Two bounds hold, with p_l = P(L = l), q = 1 - p_0 and delta_l for groups of l rows:
    delta'(ln(1 + q (exp(e) - 1))) = sum over l >= 1 of p_l delta_l(e), and the mixture's
    delta'(ln R(e)) = C(e) delta(e), with R and C as in ``mixture``.
    """

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
        total = np.full_like(epsilon, scipy.stats.binom.sf(most, self.draws, 1.0 / self.rows))
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
                known, factor = self.mixture(float(e))
                values.append(factor * delta if known < math.inf else 1.0)
                readings.append((known, values[-1]))
            best = int(np.argmin(values))
            grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], 33)
        known, delta = np.array(sorted(readings)).T
        return known, np.minimum.accumulate(np.minimum(delta, 1.0))

    @np.errstate(over="ignore", under="ignore")
    def mixture(self, epsilon: float) -> tuple[float, float]:
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
        chances, risen = np.exp(logs), np.exp(logs + epsilon * copies)
        near = chances * np.expm1(np.minimum(epsilon * copies, 1.0))
        up = np.where(epsilon * copies < 1, near, risen - chances)
        down = -chances * np.expm1(-epsilon * copies)
        # Numerator less denominator, over the denominator: R - 1 without cancellation.
        excess = (_before(down) + _from(up)) / (_before(chances - down) + _from(chances))
        log_ratio = math.log1p(float(excess.max())) * (1.0 + 1e-9)
        if epsilon == 0:
            return 0.0, float((chances * copies).sum())
        first = int(np.searchsorted(epsilon * copies, log_ratio, side="right"))
        price = math.exp(log_ratio) * down[:first].sum() + up[first:].sum()
        return log_ratio, float(price) / math.expm1(epsilon)

    @property
    def pure(self) -> float:
        if self.draws == 0:
            return 0.0
        return min(self.mixture(self.base.pure)[0], times_up(self.base.pure, self.draws))

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
class PaperBootstrapped(FromPaper):
    """Claim C.3 of paper 1, as its proof gives it: (1, d) becomes (ln 244, 2476 d)."""

    def _curve(self, epsilon: Floats) -> Floats:
        return np.where(epsilon >= math.log(244), 2476 * self.base.delta(1.0), 1.0)

    @property
    def pure(self) -> float:
        return math.log(244) if self.base.pure <= 1 else math.inf
