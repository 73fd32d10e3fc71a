"""Costs of mechanisms: frozen values that know delta as a function of epsilon.

Every figure is an upper bound that holds for neighbours which differ by replacing one row.
A cost is built from leaves (``Pure``, ``BoundedRange``, ``Approximate``, ``ZCDP``, ``Gaussian``,
and those of ``cumae.privacy.discrete_gaussian``) with ``+``, ``*`` and the functions of
``cumae.privacy.transforms``. Costs compare by value, carry no state, and never see data or
randomness.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import scipy  # its parts are loaded when they are first used

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.errors import UnknownCost, shown
from cumae.parameters import check_count
from cumae.privacy.formulas import (
    FAR,
    HOPELESS,
    SMALLEST_FLOAT,
    UP,
    add_up,
    gap,
    half_square,
    quotient,
    randomized_response,
    root_up,
    sum_up,
    zcdp_deltas,
)
from cumae.privacy.loss import Atoms, LossGrid, atoms_of_curve, compose_atoms
from cumae.privacy.validation import check_delta, check_epsilon, check_nonnegative, keep
from cumae.remembering import remembered


class Cost(ABC):
    """A privacy cost.

    Examples
    --------
    >>> from cumae.privacy import DiscreteGaussian, Pure
    >>> votes = DiscreteGaussian(scale=600) * 20_000
    >>> 0.995 < votes.epsilon(1e-6) < 1.02
    True
    >>> (Pure(0.5) + Pure(0.25)).epsilon(0)
    0.75
    """

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta at ``epsilon``."""
        return float(self.deltas(np.array([check_epsilon(epsilon)]))[0])

    def epsilon(self, delta: float) -> float:
        """Return an upper bound on the smallest epsilon at ``delta``; ``inf`` if none is proven."""
        target = check_delta(delta)
        # Equal costs cost the same, if they cannot be changed later; all of this package cannot.
        kind = getattr(type(self), "__dataclass_params__", None)
        if kind is not None and kind.frozen:
            with contextlib.suppress(TypeError):  # something inside of it has no hash
                return _remembered_epsilon(self, target)
        return _least_epsilon(self, target)

    def deltas(self, epsilon: Floats) -> Floats:
        """Return an upper bound on delta at each of several epsilons of 0 or more."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        if self.infinite:
            return np.ones_like(epsilon)
        near = np.minimum(epsilon, FAR)  # delta falls with epsilon, so this is safe
        # Overflow ends in a bound of 1, underflow is mended below: neither is worth a warning.
        with np.errstate(over="ignore", under="ignore"):
            best = np.minimum(self._curve(near), 1.0)
            if self.zcdp is not None:
                best = np.minimum(best, zcdp_deltas(*self.zcdp, near))
        # Only a pure bound is exactly 0; what underflowed is the smallest number there is.
        best = np.maximum(best, SMALLEST_FLOAT)
        return np.where(epsilon >= self.pure, 0.0, best) if self.pure < math.inf else best

    @abstractmethod
    def _curve(self, epsilon: Floats) -> Floats:
        """Return upper bounds on delta; they need not be the best that ``deltas`` finds."""

    @property
    def pure(self) -> float:
        """Epsilon at delta = 0; ``inf`` if none is proven."""
        return math.inf

    @property
    def zcdp(self) -> tuple[float, float] | None:
        """(rho, xi) such that the mechanism is xi-approximately rho-zCDP; None if unknown."""
        return (half_square(self.pure), 0.0) if self.pure < math.inf else None

    @property
    def infinite(self) -> bool:
        """True if nothing at all is promised."""
        return False

    @cached_property
    def atoms(self) -> Atoms:
        """Dominating pair, from the whole curve unless a leaf knows a better one."""
        if self.pure < FAR:
            return atoms_of_curve(self.deltas, self.pure)
        floor = self.delta(FAR) * (1 + 1e-6)
        last = self.epsilon(max(1e-17, floor)) if floor < 1 else FAR
        return atoms_of_curve(self.deltas, min(last, FAR))

    def __add__(self, other: Cost) -> Cost:
        """Use both mechanisms on the same rows, the second perhaps after looking at the first."""
        return compose([(self, 1), (other, 1)])

    def __radd__(self, other: object) -> Cost:
        """Let ``sum`` begin with 0."""
        return self if other == 0 else compose([(check_cost(other), 1), (self, 1)])

    def __mul__(self, count: int) -> Cost:
        """Use the mechanism ``count`` times on the same rows, adaptively."""
        return compose([(self, check_count(count))])

    __rmul__ = __mul__


@remembered(64)
def _remembered_epsilon(cost: Cost, delta: float) -> float:
    # The same guarantee is read again for every fit with the same parameters.
    return _least_epsilon(cost, delta)


def _least_epsilon(cost: Cost, delta: float) -> float:
    if delta == 0:  # a curve that underflows to 0 proves nothing
        return cost.pure
    if cost.delta(0.0) <= delta:
        return 0.0
    high = min(cost.pure, FAR)
    if not cost.delta(high) <= delta:
        return cost.pure
    low = 0.0
    while high - low > 1e-9 * high and high > 1e-12:
        middle = (low + high) / 2
        low, high = (low, middle) if cost.delta(middle) <= delta else (middle, high)
    # A step of the curve usually lies at a short number: take it if the search came that close.
    short = float(f"{high:.8g}")
    return short if low <= short <= high and cost.delta(short) <= delta else high


@claim("PURE")
@dataclass(frozen=True)
class Pure(Cost):
    """(eps, 0)-DP: P <= exp(eps) Q and Q <= exp(eps) P; randomized response is the worst case.

    delta(e) = (exp(eps) - exp(e)) / (1 + exp(eps)) for e < eps, and 0 beyond.
    """

    eps: float

    def __post_init__(self) -> None:
        keep(self, eps=check_epsilon(self.eps, up=True))

    def _curve(self, epsilon: Floats) -> Floats:
        return np.asarray(gap(epsilon, self.eps) / (1.0 + math.exp(-self.eps)) * UP)

    @property
    def pure(self) -> float:
        return self.eps

    @property
    def infinite(self) -> bool:
        return self.eps == math.inf

    @cached_property
    def atoms(self) -> Atoms:
        return randomized_response(self.eps, 0.0)


@claim("PURE")
@dataclass(frozen=True)
class BoundedRange(Cost):
    """Losses of any two neighbours lie in some interval of length eps: the exponential mechanism.

    delta(e) = (exp(eps/2) - exp(e/2))^2 / (exp(eps) - 1) for e < eps, and 0 beyond; pure eps-DP;
    rho-zCDP with rho = eps^2/8, a quarter of what pure eps-DP alone would give.
    """

    eps: float

    def __post_init__(self) -> None:
        keep(self, eps=check_epsilon(self.eps, up=True))

    def _curve(self, epsilon: Floats) -> Floats:
        if self.eps == 0:
            return np.zeros_like(epsilon)
        side = gap(epsilon / 2, self.eps / 2)
        # Not a square over the range: that would underflow for a small eps.
        return np.asarray(np.minimum(side * (side / -np.expm1(-self.eps)), 1.0) * UP)

    @property
    def pure(self) -> float:
        return self.eps

    @property
    def zcdp(self) -> tuple[float, float] | None:
        return (half_square(quotient(self.eps, 2.0)), 0.0)

    @property
    def infinite(self) -> bool:
        return self.eps == math.inf


@claim("PURE")
@dataclass(frozen=True)
class Approximate(Cost):
    """(eps, delta)-DP: dominated by "with probability delta tell all, else randomized response"."""

    eps: float
    failure: float

    def __post_init__(self) -> None:
        keep(
            self,
            eps=check_epsilon(self.eps, up=True),
            failure=check_delta(self.failure, up=True),
        )

    def _curve(self, epsilon: Floats) -> Floats:
        return add_up((1.0 - self.failure) * Pure(self.eps)._curve(epsilon), self.failure)

    @property
    def pure(self) -> float:
        return self.eps if self.failure == 0 else math.inf

    @property
    def zcdp(self) -> tuple[float, float] | None:
        return (half_square(self.eps), self.failure)

    @property
    def infinite(self) -> bool:
        return self.eps == math.inf

    @cached_property
    def atoms(self) -> Atoms:
        return randomized_response(self.eps, self.failure)


@claim("ZCDP")
@dataclass(frozen=True)
class ZCDP(Cost):
    """xi-approximate rho-zCDP: D_a(P || Q) <= rho a for all a > 1, outside an event of mass xi."""

    rho: float
    xi: float = 0.0

    def __post_init__(self) -> None:
        keep(
            self,
            rho=check_nonnegative(self.rho, "rho", up=True),
            xi=check_delta(self.xi, "xi", up=True),
        )

    def _curve(self, epsilon: Floats) -> Floats:
        return zcdp_deltas(self.rho, self.xi, epsilon)

    @property
    def pure(self) -> float:
        return 0.0 if self.rho == self.xi == 0 else math.inf

    @property
    def zcdp(self) -> tuple[float, float] | None:
        return (self.rho, self.xi)

    @property
    def infinite(self) -> bool:
        return self.rho > HOPELESS


@claim("NOISE")
@dataclass(frozen=True)
class Gaussian(Cost):
    """Real Gaussian noise of standard deviation ``scale`` on a value that moves by ``sensitivity``.

    With mu = sensitivity / scale: delta(e) = Phi(mu/2 - e/mu) - exp(e) Phi(-mu/2 - e/mu).
    Composition adds the squares of mu.
    """

    scale: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        keep(
            self,
            scale=check_nonnegative(self.scale, "scale", down=True),
            sensitivity=check_nonnegative(self.sensitivity, "sensitivity", up=True),
        )

    @property
    def mu(self) -> float:
        """Distance of the two neighbours' distributions in standard deviations."""
        return quotient(self.sensitivity, self.scale)

    def _curve(self, epsilon: Floats) -> Floats:
        if self.mu == 0:
            return np.zeros_like(epsilon)
        first = scipy.special.log_ndtr(self.mu / 2 - epsilon / self.mu)
        second = epsilon + scipy.special.log_ndtr(-self.mu / 2 - epsilon / self.mu)
        # The difference of two close numbers: its rounding error is one of their size, and the
        # exponential's grows with the exponent.
        first, second = np.maximum(first, -1e5), np.maximum(second, -1e5)  # far below any float
        error = 1e-15 * (100.0 - first - np.minimum(second, 0.0))
        return np.exp(first) * (-np.expm1(np.minimum(second - first, 0.0)) + error) * UP

    @property
    def pure(self) -> float:
        return 0.0 if self.mu == 0 else math.inf

    @property
    def zcdp(self) -> tuple[float, float] | None:
        return (half_square(self.mu), 0.0)

    @property
    def infinite(self) -> bool:
        return self.mu > HOPELESS


@claim("COMP")
@dataclass(frozen=True)
class Composed(Cost):
    """Several mechanisms on the same rows, each perhaps chosen from the answers so far.

    ``parts`` holds each distinct cost once, with its count; this is the only place that counts.
    Use ``+``, ``*`` or :func:`compose` to make one.
    """

    parts: tuple[tuple[Cost, int], ...]

    def __post_init__(self) -> None:
        parts = tuple((check_cost(part), check_count(count)) for part, count in self.parts)
        object.__setattr__(self, "parts", parts)

    def _curve(self, epsilon: Floats) -> Floats:
        if len(self._merged) == 1 and self._merged[0][1] == 1:
            return self._merged[0][0]._curve(epsilon)
        best = np.ones_like(epsilon) if self._grid is None else self._grid.delta(epsilon)
        if self.pure < math.inf:
            return np.minimum(best, Pure(self.pure)._curve(epsilon))
        # Without any transform: the pure parts shift the curve of the others.
        shift, others = self._pure_and_rest
        behind = epsilon >= shift
        if shift > 0 and behind.any():
            rest = np.maximum(epsilon - shift, 0.0) * (1.0 - 1e-15)
            best[behind] = np.minimum(best, others.deltas(rest))[behind]
        return best

    @cached_property
    def _pure_and_rest(self) -> tuple[float, Cost]:
        """The cost of the pure parts together, and the cost of the others."""
        certain = [item for item in self.parts if item[0].pure < math.inf]
        others = [item for item in self.parts if item[0].pure == math.inf]
        return sum_up((part.pure, count) for part, count in certain), compose(others)

    @cached_property
    def _merged(self) -> list[tuple[Cost, int]]:
        """Gaussians merge into one; so does what is only known as zCDP."""
        real = [(part, count) for part, count in self.parts if isinstance(part, Gaussian)]
        concentrated = [(part, count) for part, count in self.parts if isinstance(part, ZCDP)]
        rest = [item for item in self.parts if not isinstance(item[0], Gaussian | ZCDP)]
        if real:
            mu = root_up(sum((Fraction(part.mu) ** 2 * n for part, n in real), Fraction(0)))
            rest.append((Gaussian(1.0, mu), 1))
        if concentrated:
            rho = sum_up((part.rho, count) for part, count in concentrated)
            failing = sum(math.log1p(-part.xi) * count for part, count in concentrated)
            xi = min(-math.expm1(failing) * UP, math.nextafter(1.0, 0.0))
            rest.append((ZCDP(rho, xi), 1))
        return rest

    @cached_property
    def _grid(self) -> LossGrid | None:
        return compose_atoms([(part.atoms, count) for part, count in self._merged])

    @property
    def pure(self) -> float:
        return sum_up((part.pure, count) for part, count in self.parts)

    @property
    def zcdp(self) -> tuple[float, float] | None:
        figures = [(part.zcdp, count) for part, count in self.parts]
        known = [(*figure, count) for figure, count in figures if figure is not None]
        if len(known) < len(figures):
            return None
        rho = sum_up((rho, count) for rho, _, count in known)
        return (rho, min(sum_up((xi, count) for _, xi, count in known), 1.0))

    @property
    def infinite(self) -> bool:
        return any(part.infinite for part, _ in self.parts)


@claim("COMP")
def compose(items: Iterable[Cost | tuple[Cost, int]]) -> Cost:
    """Compose costs, each perhaps with a count; compositions inside are taken apart and counted.

    Examples
    --------
    >>> from cumae.privacy import Pure, compose
    >>> compose([(Pure(0.1), 3)]) == Pure(0.1) + Pure(0.1) + Pure(0.1)
    True
    >>> compose([])
    Pure(eps=0.0)
    """
    counts: dict[Cost, int] = {}
    for item in items:
        cost, count = item if isinstance(item, tuple) else (item, 1)
        check_cost(cost)
        inner = cost.parts if isinstance(cost, Composed) else ((cost, 1),)
        for part, times in inner:
            total = times * check_count(count)
            if total and part.pure > 0:  # what costs nothing leaves no trace
                counts[part] = counts.get(part, 0) + total
    parts = tuple(sorted(counts.items(), key=lambda item: repr(item[0])))
    if not parts:
        return Pure(0.0)
    return parts[0][0] if len(parts) == 1 and parts[0][1] == 1 else Composed(parts)


def check_cost(cost: object) -> Cost:
    """Return ``cost`` if it is one."""
    if not isinstance(cost, Cost):
        raise UnknownCost(
            f"{shown(cost)} is not a privacy cost; build one from cumae.privacy, or give "
            "the .cost of a mechanism."
        )
    return cost
