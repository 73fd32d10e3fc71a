"""The only module that touches entropy: integer samplers on the operating system's generator.

Every sampler here is exact: its distribution is the stated one, without any error, as long as the
source's bits are uniform and independent. A draw compares 64 random bits with a threshold that
floating point knows up to a certified margin; in the rare case that the bits fall into the
margin, more bits are drawn and the comparison is made with integers of growing precision.

The production source keeps no state, neither a seed nor a buffer: each call asks the operating
system. So nothing repeats after a fork, a copy or a restore. A :class:`SeededSource` is for tests;
it is ``deterministic``, and a guarantee that is built from it must mark it as void.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats, Integers, Words
from cumae.claims import claim
from cumae.errors import InvalidParameter, shown
from cumae.exact import (
    LOWEST,
    MARGIN,
    Bounds,
    exp_bounds,
    gaussian_bounds,
    gaussian_table,
    last,
    look_up,
    proposals,
    scaled_exp_bounds,
)
from cumae.parameters import check_count

Real: TypeAlias = int | float | Fraction

LARGEST_SCALE = 2.0**50
TABLE_SCALE = 10_000.0  # above, a table of the discrete Gaussian would be too long


class Source(ABC):
    """Where random bits come from."""

    deterministic: bool

    @abstractmethod
    def words(self, count: int) -> Words:
        """Return ``count`` independent uniform 64-bit words; several threads may ask at once."""

    def child(self) -> Source:
        """Return a source for one consumer alone.

        Its draws do not depend on those of others, where the source can do that.
        """
        return self


class SystemSource(Source):
    """The operating system's generator: no seed, no buffer, no state."""

    deterministic = False

    def words(self, count: int) -> Words:
        # Bytes that can be written, as those of a seed: else numba compiles loops for both kinds.
        return np.frombuffer(bytearray(os.urandom(8 * count)), dtype=np.uint64)


class SeededSource(Source):
    """A reproducible source, for tests and benchmarks only: it voids every guarantee."""

    deterministic = True

    def __init__(self, seed: int) -> None:
        self._generator = np.random.PCG64(seed)

    def words(self, count: int) -> Words:
        return np.asarray(self._generator.random_raw(count), dtype=np.uint64)

    def child(self) -> SeededSource:
        return SeededSource(int(self.words(1)[0]))


SYSTEM = SystemSource()


def source_for(random_state: int | Source | None) -> Source:
    """Return the source that a ``random_state`` parameter means; None is the production source.

    Examples
    --------
    >>> from cumae.randomness import source_for
    >>> source_for(None).deterministic, source_for(7).deterministic
    (False, True)
    """
    if random_state is None:
        return SYSTEM
    if isinstance(random_state, Source):
        return random_state
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise InvalidParameter(
            f"random_state={shown(random_state)} is not a seed; give None in production, or an "
            "integer in tests, which voids the guarantee."
        )
    if random_state < 0:
        raise InvalidParameter(f"random_state={random_state!r} is negative; give 0 or more.")
    return SeededSource(int(random_state))


class _Uniform:
    """A uniform real number in [0, 1) of which the first bits are known; more come on demand."""

    def __init__(self, source: Source, known: int, bits: int) -> None:
        self._source, self._known, self._bits = source, known, bits

    def below(self, bounds: Callable[[int], Bounds]) -> bool:
        """Decide whether the number is below p, where ``bounds(bits)`` enclose 2^bits p."""
        while True:
            low, high = bounds(self._bits)
            if self._known + 1 <= low:
                return True
            if self._known >= high:
                return False
            self._known = (self._known << 64) | int(self._source.words(1)[0])
            self._bits += 64


@overload
def integers(bound: int, size: None = None, source: Source = SYSTEM) -> int: ...
@overload
def integers(bound: int, size: int, source: Source = SYSTEM) -> Integers: ...
@claim("RAND")
def integers(bound: int, size: int | None = None, source: Source = SYSTEM) -> int | Integers:
    """Draw uniformly from 0, ..., bound - 1.

    Parameters
    ----------
    bound : int of 1 or more
        Any positive integer; at most 2^63 if ``size`` is given.
    size : int of 0 or more, or None
        Number of draws; None for a single Python integer.
    source : Source
        Where the bits come from.

    Examples
    --------
    >>> from cumae.randomness import integers
    >>> 0 <= integers(10**30) < 10**30
    True
    >>> integers(6, size=3).shape
    (3,)
    """
    width = (check_count(bound, "bound", least=1) - 1).bit_length()
    if size is None:
        count = max(1, -(-width // 64))
        while True:
            drawn = int.from_bytes(source.words(count).tobytes(), "little") >> (64 * count - width)
            if drawn < bound:
                return drawn
    if width > 63:
        raise InvalidParameter(f"bound={bound!r} with a size: give at most 2**63.")
    if width == 0:
        return np.zeros(check_count(size, "size"), dtype=np.int64)
    shift = np.uint64(64 - width)

    def draw(count: int) -> tuple[Integers, NDArray[np.bool_]]:
        drawn = (source.words(count) >> shift).astype(np.int64)
        return drawn, drawn < bound

    return _accepted(draw, check_count(size, "size"))


@claim("RAND")
def permutation(count: int, source: Source = SYSTEM) -> Integers:
    """Draw a uniformly random order of 0, ..., count - 1.

    Examples
    --------
    >>> from cumae.randomness import permutation
    >>> sorted(permutation(4).tolist())
    [0, 1, 2, 3]
    """
    # Sorting by independent keys is uniform given that no two keys are equal.
    while True:
        keys = source.words(check_count(count))
        order = np.argsort(keys)
        if not np.any(np.diff(keys[order]) == 0):
            return order.astype(np.int64)


def sample(count: int, draws: int, source: Source = SYSTEM) -> Integers:
    """Draw ``draws`` of 0, ..., count - 1 without replacement, in uniformly random order."""
    if check_count(draws, "draws") > count:
        raise InvalidParameter(f"draws={draws!r} of count={count!r}: give at most as many.")
    return permutation(count, source)[:draws]


@overload
def bernoulli_exp(x: Real, source: Source = SYSTEM) -> bool: ...
@overload
def bernoulli_exp(x: Floats, source: Source = SYSTEM) -> NDArray[np.bool_]: ...
@claim("RAND")
def bernoulli_exp(x: Real | Floats, source: Source = SYSTEM) -> bool | NDArray[np.bool_]:
    """Return true with probability exp(-x): one draw for a number, one each for an array.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.randomness import bernoulli_exp
    >>> bernoulli_exp(0)
    True
    >>> bernoulli_exp(np.array([0.0, 1e6])).tolist()
    [True, False]
    """
    if isinstance(x, np.ndarray):
        values = np.asarray(x, dtype=np.float64)
        if not np.all(values >= 0):
            raise InvalidParameter("x holds a negative number or NaN; give numbers of 0 or more.")
        return _compare_exp(
            -values, np.ones_like(values), lambda i: (_exact(-values[i]), 1), source
        )
    if not x >= 0:
        raise InvalidParameter(f"x={x!r} is not a number of 0 or more.")
    if x == math.inf:
        return False
    exponent = -Fraction(x)
    return _Uniform(source, 0, 0).below(lambda bits: exp_bounds(exponent, bits))


@np.errstate(under="ignore")
def _compare_exp(
    logs: Floats,
    factors: Floats,
    exact: Callable[[int], tuple[Fraction | None, Fraction | int]],
    source: Source,
) -> NDArray[np.bool_]:
    """Return true with probability factors * exp(logs), each at most 1.

    The floats may be off by relative errors of MARGIN/8 (in ``factors``) and (1 + |logs|) MARGIN/8
    (in ``exp(logs)``); ``exact(i)`` gives the true logarithm (None for -inf) and factor.
    """
    words = source.words(logs.size)
    drawn = words.astype(np.float64) * 2.0**-64
    chance = factors * np.exp(logs)
    # Where the logarithm is cut off, the chance is 0 for a float and far below 2^-50 in truth.
    margin = chance * (1.0 - np.maximum(logs, LOWEST)) * MARGIN + 2.0**-50
    answer = drawn < chance
    for i in np.flatnonzero(np.abs(drawn - chance) <= margin):
        exponent, factor = exact(int(i))
        answer[i] = exponent is not None and _Uniform(source, int(words[i]), 64).below(
            scaled_exp_bounds(exponent, Fraction(factor))
        )
    return answer


def _exact(value: float) -> Fraction | None:
    return None if value == -math.inf else Fraction(float(value))


@overload
def discrete_laplace(rate: Real, size: None = None, source: Source = SYSTEM) -> int: ...
@overload
def discrete_laplace(rate: Real, size: int, source: Source = SYSTEM) -> Integers: ...
@claim("RAND")
def discrete_laplace(
    rate: Real, size: int | None = None, source: Source = SYSTEM
) -> int | Integers:
    """Draw integers x with P(x) proportional to exp(-rate |x|).

    Parameters
    ----------
    rate : int, float or Fraction
        One over the scale: epsilon over the sensitivity. Infinity means no noise.
    size : int of 0 or more, or None
        Number of draws; None for a single Python integer.
    source : Source
        Where the bits come from.

    Examples
    --------
    >>> from cumae.randomness import discrete_laplace
    >>> isinstance(discrete_laplace(0.1), int), discrete_laplace(0.1, size=3).shape
    (True, (3,))
    """
    if size is None:
        return int(discrete_laplace(rate, 1, source)[0])
    if rate == math.inf:
        return np.zeros(check_count(size, "size"), dtype=np.int64)
    if not rate > 0 or rate < 1 / LARGEST_SCALE:
        raise InvalidParameter(f"rate={rate!r} is outside [2**-50, inf]; give epsilon over scale.")
    exact = Fraction(rate)

    def draw(count: int) -> tuple[Integers, NDArray[np.bool_]]:
        # A sign and a geometric magnitude; of the two zeros one is thrown away.
        magnitude = _geometric(exact, count, source)
        negative = source.words(count) >> np.uint64(63) == 1
        return np.where(negative, -magnitude, magnitude), (magnitude > 0) | ~negative

    return _accepted(draw, check_count(size, "size"))


@np.errstate(under="ignore")
def _geometric(rate: Fraction, count: int, source: Source) -> Integers:
    """Draw integers g >= 0 with P(g >= k) = exp(-rate k): g is the floor of -ln(U) / rate."""
    words = source.words(count)
    middle = words.astype(np.float64) + 0.5
    place = -np.log(middle * 2.0**-64) / float(rate)
    # Errors of the logarithm count 1/rate times; so do the bits that are still unknown. Zero bits
    # alone bound nothing from above.
    margin = (place + 1.0 + 1.0 / float(rate)) * MARGIN + 2.0 / middle / float(rate)
    found = np.floor(place)
    unsure = (np.minimum(place - found, found + 1.0 - place) <= margin) | (words == 0)
    magnitude = found.astype(np.int64)
    for i in np.flatnonzero(unsure):
        uniform = _Uniform(source, int(words[i]), 64)
        magnitude[i] = last(partial(_reaches, uniform, rate))
    return magnitude


def _reaches(uniform: _Uniform, rate: Fraction, k: int) -> bool:
    return uniform.below(lambda bits: exp_bounds(-k * rate, bits))


@overload
def discrete_gaussian(scale: Real, size: None = None, source: Source = SYSTEM) -> int: ...
@overload
def discrete_gaussian(scale: Real, size: int, source: Source = SYSTEM) -> Integers: ...
@claim("RAND")
def discrete_gaussian(
    scale: Real, size: int | None = None, source: Source = SYSTEM
) -> int | Integers:
    """Draw integers x with P(x) proportional to exp(-x^2 / (2 scale^2)).

    Parameters
    ----------
    scale : int, float or Fraction
        Close to the standard deviation. 0 means no noise.
    size : int of 0 or more, or None
        Number of draws; None for a single Python integer.
    source : Source
        Where the bits come from.

    Examples
    --------
    >>> from cumae.randomness import discrete_gaussian
    >>> isinstance(discrete_gaussian(600), int), discrete_gaussian(600, size=3).shape
    (True, (3,))
    """
    if size is None:
        return int(discrete_gaussian(scale, 1, source)[0])
    if not 0 <= scale <= LARGEST_SCALE:
        raise InvalidParameter(f"scale={scale!r} is outside [0, 2**50]; give less noise.")
    if scale == 0:
        return np.zeros(check_count(size, "size"), dtype=np.int64)
    if scale > TABLE_SCALE:
        return _gaussian_by_rejection(Fraction(scale), check_count(size, "size"), source)
    thresholds, guide = gaussian_table(Fraction(scale))
    words = source.words(check_count(size, "size"))
    drawn = np.empty(len(words), dtype=np.int64)
    for i in look_up(words, thresholds, guide, drawn):
        magnitude = _gaussian_tail(Fraction(scale), int(words[i] >> np.uint64(1)), source)
        drawn[i] = -magnitude if words[i] & np.uint64(1) else magnitude
    return drawn


def _gaussian_tail(scale: Fraction, known: int, source: Source) -> int:
    """Finish a draw whose first 63 bits equal a floor: the least k with U < P(|X| <= k)."""
    tables: dict[int, list[Bounds]] = {}

    def up_to(k: int) -> Callable[[int], Bounds]:
        def bounds(bits: int) -> Bounds:
            if bits not in tables:
                tables[bits] = gaussian_bounds(scale**2, bits)
            table = tables[bits]
            return table[k] if k < len(table) else ((1 << bits) - 1, 1 << bits)

        return bounds

    uniform = _Uniform(source, known, 63)
    return last(lambda k: k == 0 or not uniform.below(up_to(k - 1)))


def _gaussian_by_rejection(scale: Fraction, size: int, source: Source) -> Integers:
    """Thin out a discrete Laplace (Canonne, Kamath, Steinke): for scales beyond any table."""
    width = math.floor(scale) + 1
    centre = scale**2 / width

    def draw(count: int) -> tuple[Integers, NDArray[np.bool_]]:
        drawn = discrete_laplace(Fraction(1, width), count, source)
        logs = -((np.abs(drawn) - float(centre)) ** 2) / (2.0 * float(scale) ** 2)

        def exact(i: int) -> tuple[Fraction, int]:
            return -((abs(int(drawn[i])) - centre) ** 2) / (2 * scale**2), 1

        return drawn, _compare_exp(logs, np.ones_like(logs), exact, source)

    return _accepted(draw, size)


@overload
def weighted_choice(
    scores: ArrayLike,
    rate: Real = 1,
    *,
    counts: ArrayLike | None = None,
    size: None = None,
    source: Source = SYSTEM,
) -> int: ...
@overload
def weighted_choice(
    scores: ArrayLike,
    rate: Real = 1,
    *,
    counts: ArrayLike | None = None,
    size: int,
    source: Source = SYSTEM,
) -> Integers: ...
@claim("RAND")
def weighted_choice(
    scores: ArrayLike,
    rate: Real = 1,
    *,
    counts: ArrayLike | None = None,
    size: int | None = None,
    source: Source = SYSTEM,
) -> int | Integers:
    """Draw places i with probability proportional to counts[i] exp(rate scores[i]).

    The product of rate and score is not rounded: integers and floats stand for the exact
    numbers they are.

    Parameters
    ----------
    scores : array-like
        Integers, or log weights as floats; -inf is never drawn.
    rate : int, float or Fraction
        Factor of the scores, 0 or more; infinity draws among the largest only.
    counts : array-like or None
        How often each score stands there, as integers; once each by default.
    size : int of 0 or more, or None
        Number of draws; None for a single Python integer.
    source : Source
        Where the bits come from.

    Examples
    --------
    >>> from cumae.randomness import weighted_choice
    >>> weighted_choice([0, 5000, 10])
    1
    >>> weighted_choice([0, 0, 0], counts=[0, 3, 0])
    1
    """
    if size is None:
        return int(weighted_choice(scores, rate, counts=counts, size=1, source=source)[0])
    values, often, rate, best = _check_weights(scores, rate, counts)
    behind = (values - best).astype(np.float64)
    # Propose i with an integer weight just above the true one, then accept with the quotient: the
    # sum of integers is exact, and only the proposed weight needs more digits than a float has.
    logs, proposal, upto, power = proposals(behind, often.astype(np.float64), float(rate))
    total = int(upto[-1])
    if not 0 < total < 2**62 or proposal.min() < 0:
        raise AssertionError("proposal weights left the range that the proof of RAND needs")

    def draw(count: int) -> tuple[Integers, NDArray[np.bool_]]:
        place = np.searchsorted(upto, integers(total, count, source), side="right")

        def exact(i: int) -> tuple[Fraction | None, Fraction]:
            j = int(place[i])
            if logs[j] == -math.inf:
                return None, Fraction(0)
            gap = Fraction(values[j].item()) - Fraction(best.item())
            factor = Fraction(int(often[j])) * Fraction(2) ** power / int(proposal[j])
            return Fraction(rate) * gap, factor

        factors = np.ldexp(often[place].astype(np.float64), power) / proposal[place]
        return place.astype(np.int64), _compare_exp(logs[place], factors, exact, source)

    return _accepted(draw, check_count(size, "size"))


def _check_weights(
    scores: ArrayLike, rate: Real, counts: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any], Real, Any]:
    """Return scores, counts and a finite rate that draw alike, and the best score."""
    values = np.asarray(scores)
    often = np.ones(values.shape, dtype=np.int64) if counts is None else np.asarray(counts)
    if values.ndim != 1 or values.shape != often.shape:
        raise InvalidParameter(
            f"scores of shape {values.shape} with counts of shape {often.shape}: give one of each "
            "in two flat lists of the same length."
        )
    if not rate >= 0:
        raise InvalidParameter(f"rate={rate!r} is not a number of 0 or more.")
    if values.dtype.kind not in "iufO" or often.dtype.kind not in "iuO" or np.any(often < 0):
        raise InvalidParameter(
            f"scores of type {values.dtype} with counts of type {often.dtype}: give integer or "
            "float scores, and integer counts of 0 or more."
        )
    if values.dtype.kind == "f" and not np.all(np.isneginf(values) | (np.abs(values) < 1e300)):
        raise InvalidParameter("scores hold NaN or numbers beyond 1e300; scale them down.")
    if not np.any((often > 0) & (values > -np.inf)):
        raise InvalidParameter("no candidate is left to draw from; give at least one.")
    if values.dtype.kind in "iu":  # differences of 64-bit integers must not wrap around
        small = -(2**62) < int(values.min()) <= int(values.max()) < 2**62
        values = values.astype(np.int64 if small else object)
    best = values[often > 0].max()
    if rate == math.inf:
        often, rate = np.where(values == best, often, 0), 0
    return values, often, rate, best


def _accepted(draw: Callable[[int], tuple[Integers, NDArray[np.bool_]]], size: int) -> Integers:
    """Keep the accepted draws, in order, until there are ``size`` of them."""
    kept: list[Integers] = []
    missing = size
    while missing:
        # A few more than missing, so that one round is usually enough.
        drawn, accepted = draw(missing + missing // 16 if missing > 64 else missing)
        kept.append(drawn[accepted][:missing])
        missing -= len(kept[-1])
    return np.concatenate(kept) if kept else np.empty(0, dtype=np.int64)
