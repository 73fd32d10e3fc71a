"""Numbers of costs: plain ones whatever was given, rounded up, without overflow or lost mass."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from cumae import Guarantee, InvalidParameter
from cumae.mechanisms import BetweenThresholds, GaussianNoise, NoisyMajority, StabilityTest
from cumae.mechanisms.between_thresholds import least_gap
from cumae.privacy import (
    ZCDP,
    Approximate,
    BoundedRange,
    Composed,
    Cost,
    DiscreteGaussian,
    DiscreteGaussianVectors,
    Gaussian,
    Pure,
    calibrate,
    calibrate_gaussian,
    compose,
    group,
    label_boost,
    or_fail,
    subsample,
)
from cumae.privacy.entries import Entry
from cumae.privacy.formulas import add_up, half_square, quotient, root_up, sum_up
from cumae.privacy.transforms import (
    Bootstrapped,
    Failing,
    Grouped,
    PaperSubsampled,
    Subsampled,
)

mpf = mpmath.mpf

# Every frozen class of this package that holds numbers, with a sample of each number.
NUMBERS: dict[type, dict[str, Any]] = {
    Pure: {"eps": 0.7},
    BoundedRange: {"eps": 0.7},
    Approximate: {"eps": 0.7, "failure": 0.003},
    ZCDP: {"rho": 0.03, "xi": 0.003},
    Gaussian: {"scale": 3.3, "sensitivity": 1.1},
    DiscreteGaussian: {"scale": 3.3, "sensitivity": 100},
    DiscreteGaussianVectors: {"mu": 0.33, "places": 100, "scale": 1000.7},
    Subsampled: {"rate": 0.13},
    PaperSubsampled: {"rate": 0.013},
    Bootstrapped: {"rows": 100, "draws": 90},
    Grouped: {"size": 100},
    Failing: {"failure": 0.003},
    Guarantee: {"epsilon": 0.7, "delta": 0.003, "rho": 0.03},
    Entry: {"epsilon": 0.7, "delta": 0.003, "rho": 0.03},
}
REST: dict[type, dict[str, Any]] = {
    Guarantee: {"protects": "a row", "relation": "so", "claims": ()},
    Entry: {"what": "a use", "cost": Pure(0.5)},
}
FIELDS = [(kind, name) for kind, fields in NUMBERS.items() for name in fields]


def _made(kind: type, **changed: Any) -> Any:
    rest = {"base": Pure(0.5)} if "base" in _names(kind) else REST.get(kind, {})
    return kind(**{**rest, **NUMBERS[kind], **changed})


def _names(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def test_no_class_with_numbers_is_missing() -> None:
    found = set()
    for kind in [*_below(Cost), Guarantee, Entry]:
        if kind.__module__.startswith("cumae.privacy") and not inspect.isabstract(kind):
            for field in dataclasses.fields(kind):
                if field.type in ("float", "int", "float | None"):
                    found.add((kind, field.name))
    assert found == set(FIELDS)


def _below(kind: Any) -> list[Any]:
    return [one for direct in kind.__subclasses__() for one in (direct, *_below(direct))]


@pytest.mark.claim("VECTOR", "NOISE", "PURE", "ZCDP", "SUB", "BOOT", "GROUP", "FAIL", "BUDGET")
@pytest.mark.parametrize(("kind", "name"), FIELDS)
@pytest.mark.parametrize("number", [np.float16, np.float32, np.float64, np.longdouble])
def test_short_floats_cost_what_the_plain_number_costs(kind: type, name: str, number: Any) -> None:
    plain = NUMBERS[kind][name]
    given = np.int8(plain) if isinstance(plain, int) else number(plain)
    same: float = int(given) if isinstance(plain, int) else float(given)
    found, expected = _made(kind, **{name: given}), _made(kind, **{name: same})
    assert type(getattr(found, name)) in (int, float)
    assert getattr(found, name) == same
    assert found == expected
    if isinstance(found, Cost):
        assert (found.pure, found.zcdp) == (expected.pure, expected.zcdp)
        for epsilon in (0.0, 0.4, 2.0):
            assert found.delta(epsilon) == expected.delta(epsilon)


@pytest.mark.claim("VECTOR", "NOISE", "PURE", "ZCDP", "SUB", "BOOT", "GROUP", "FAIL", "BUDGET")
@pytest.mark.parametrize(("kind", "name"), FIELDS)
@pytest.mark.parametrize(
    "bad", [True, np.True_, Decimal("0.7"), "0.7", None, math.nan, 1j, [0.7], np.array([0.7])]
)
def test_what_is_no_number_is_refused(kind: type, name: str, bad: Any) -> None:
    if bad is None and (kind, name) == (Guarantee, "rho"):
        return
    with pytest.raises(InvalidParameter):
        _made(kind, **{name: bad})


@pytest.mark.claim("VECTOR", "NOISE", "PURE", "ZCDP", "SUB", "FAIL", "BUDGET")
@pytest.mark.parametrize(("kind", "name"), FIELDS)
@pytest.mark.parametrize("up", [True, False])
def test_numbers_between_two_floats_are_rounded_to_the_safe_side(
    kind: type, name: str, up: bool
) -> None:
    plain = NUMBERS[kind][name]
    if isinstance(plain, int):
        return
    other = math.nextafter(plain, math.inf)
    near = Fraction(1, 4) if up else Fraction(3, 4)  # towards one end or the other
    exact = Fraction(plain) * near + Fraction(other) * (1 - near)
    stored = Fraction(getattr(_made(kind, **{name: exact}), name))
    assert stored <= exact if name == "scale" else stored >= exact


@pytest.mark.claim("COMP")
@pytest.mark.parametrize("count", [np.int8(100), np.int64(2**62), np.uint8(200)])
def test_counts_of_short_integers_do_not_wrap_around(count: Any) -> None:
    assert Composed(((Pure(0.1), count),)).parts == ((Pure(0.1), int(count)),)
    assert compose([(Composed(((Pure(0.1), count),)), 100)]) == Pure(0.1) * (100 * int(count))
    assert group(Pure(0.1), count) == group(Pure(0.1), int(count))
    assert group(DiscreteGaussian(3.0, 2), count) == DiscreteGaussian(3.0, 2 * int(count))


@pytest.mark.claim("CAL")
@pytest.mark.parametrize("number", [np.int8, np.int64])
def test_calibration_reads_short_numbers_as_plain_ones(number: Any) -> None:
    """16 times 16 is 0 in eight bits: no noise at all was the answer."""
    plain = calibrate_gaussian(1.0, 1e-5, releases=16, sensitivity=16)
    assert calibrate_gaussian(1.0, 1e-5, number(16), number(16)) == plain > 0
    shorts: list[Any] = [np.float16, np.float32]
    for short in shorts:
        epsilon, delta = short(0.5), short(1e-3)
        noise = calibrate(Gaussian, epsilon, delta)
        assert Gaussian(noise).delta(float(epsilon)) <= float(delta)


@pytest.mark.claim("LB")
def test_label_boosting_reads_short_numbers_as_plain_ones() -> None:
    shorts: list[Any] = [np.float16, np.float32]
    for short in shorts:
        given = label_boost(Pure(1.0), short(0.7), "S")
        assert given == label_boost(Pure(1.0), float(short(0.7)), "S")


@pytest.mark.claim("BT", "STAB", "MULTI")
def test_mechanisms_read_short_numbers_as_plain_ones() -> None:
    epsilon, delta, few = float(np.float16(0.5)), float(np.float16(1e-3)), 100
    short: Any = np.float16(epsilon)
    tiny: Any = np.float16(delta)
    byte: Any = np.int8(few)
    assert least_gap(short, tiny) == least_gap(epsilon, delta)
    found = BetweenThresholds(-byte, byte, short, tiny, byte)
    assert found.cost == BetweenThresholds(-few, few, epsilon, delta, few).cost
    made = BetweenThresholds.calibrated(10_000, short, tiny, byte)
    assert made.cost == BetweenThresholds.calibrated(10_000, epsilon, delta, few).cost
    test = StabilityTest.calibrated(short, tiny, byte, byte)
    same = StabilityTest.calibrated(epsilon, delta, few, few)
    assert (test.cost, test.threshold) == (same.cost, same.threshold)
    votes = NoisyMajority.calibrated(short, tiny, byte)
    assert votes.cost == NoisyMajority.calibrated(epsilon, delta, few).cost


# --- rounding


@pytest.mark.claim("COMP", "NOISE")
def test_formulas_round_up() -> None:
    rng = np.random.default_rng(0)
    for x, y in rng.lognormal(0, 40, (300, 2)).tolist():
        assert Fraction(half_square(x)) >= Fraction(x) ** 2 / 2
        assert Fraction(quotient(x, y)) >= Fraction(x) / Fraction(y)
        assert Fraction(sum_up([(x, 3), (y, 7)])) >= 3 * Fraction(x) + 7 * Fraction(y)
        assert Fraction(root_up(Fraction(x))) ** 2 >= Fraction(x)
        exact = Fraction(x) + Fraction(y)
        total = float(add_up(np.array([x]), y)[0])
        assert exact <= Fraction(total)
        assert Fraction(math.nextafter(total, 0.0)) < exact
    assert half_square(1e200) == quotient(1e300, 1e-300) == math.inf
    assert half_square(1e-200) == 5e-324
    assert half_square(0.0) == quotient(0.0, 0.0) == quotient(1.0, math.inf) == 0.0


@pytest.mark.claim("COMP")
def test_rho_of_a_composition_is_not_below_the_exact_sum() -> None:
    costs = [ZCDP(0.1, 1e-9), Pure(0.3), Gaussian(0.7), DiscreteGaussian(1.3), BoundedRange(0.9)]
    for count in (3, 7, 10**9 + 7):
        found = compose((cost, count) for cost in costs).zcdp
        assert found is not None
        parts = [cost.zcdp for cost in costs]
        for place in (0, 1):
            exact = sum(Fraction(part[place]) * count for part in parts if part is not None)
            assert exact <= Fraction(found[place]) or found[place] == 1.0


# --- what is too small for a float's square, or too large for its exponential


@pytest.mark.claim("COMP", "PURE")
@pytest.mark.parametrize("small", [1e-9, 1e-150, 1e-200, 1e-290, 1e-320])
def test_no_mass_is_lost_below_the_root_of_the_smallest_float(small: float) -> None:
    """Planted by the past: losses whose squares underflow were taken for no loss at all."""
    with mpmath.workdps(700):
        a, b = mpmath.exp(mpf(small)), mpmath.exp(mpf(3 * small))
        low, high = 1 / (1 + a), 1 / (1 + b)
        p = [x * y for x in (1 - low, low) for y in (1 - high, high)]
        q = [x * y for x in (low, 1 - low) for y in (high, 1 - high)]
        pair = sum(max(mpf(0), x - y) for x, y in zip(p, q, strict=True))
        single = mpmath.expm1(mpf(small) / 2) ** 2 / mpmath.expm1(mpf(small))
    assert (Pure(small) + Pure(3 * small)).delta(0.0) >= pair
    assert BoundedRange(small).delta(0.0) >= single
    assert (BoundedRange(small) + Pure(3 * small)).delta(0.0) >= pair / 2
    assert (Pure(small) * 2 + Pure(3 * small)).delta(0.0) >= pair


@pytest.mark.claim("COMP", "NOISE")
@pytest.mark.parametrize("scale", [0.0271, 0.03, 0.0312, 0.0357, 0.041, 0.06])
@pytest.mark.parametrize("count", [1, 2])
def test_large_losses_are_not_rounded_below_the_truth(scale: float, count: int) -> None:
    """A loss of 600 rounded down by its last bit hides 1e-13 of the mass just above epsilon."""
    with mpmath.workdps(60):
        square = 2 * mpf(scale) ** 2
        weights = {x: mpmath.exp(-(x**2) / square) for x in range(-6, 7)}
        total = sum(weights.values())
        law = {0: mpf(1)}
        for _ in range(count):
            after: dict[int, Any] = {}
            for moved, mass in law.items():
                for x, weight in weights.items():
                    after[moved + x] = after.get(moved + x, mpf(0)) + mass * weight / total
            law = after
        losses = [((count - 2 * moved) / square, mass) for moved, mass in law.items()]
        cost = DiscreteGaussian(scale) * count
        kinks = sorted({float(loss) for loss, _ in losses if 0 < loss < 700})
        for kink in kinks:
            for below in (kink * (1 - 2e-16), kink * (1 - 1e-15), kink * (1 - 1e-12), kink - 0.1):
                exact = sum(m * -mpmath.expm1(below - x) for x, m in losses if x > below)
                assert cost.delta(below) >= exact


@pytest.mark.claim("COMP", "PURE")
def test_many_small_losses_of_both_signs_cancel_without_a_loss() -> None:
    """8 million coins: their losses are sums that cancel, and must not be rounded below."""
    count, eps = 8_000_000, 0.01
    cost = Pure(eps) * count
    with mpmath.workdps(40):
        high = 1 / (1 + mpmath.exp(-mpf(eps)))
        for epsilon in (600.0, 650.0):
            first = math.floor((epsilon / eps + count) / 2) + 1
            log = mpmath.loggamma(count + 1) - mpmath.loggamma(first + 1)
            log -= mpmath.loggamma(count - first + 1)
            mass = mpmath.exp(
                log + first * mpmath.log(high) + (count - first) * mpmath.log(1 - high)
            )
            exact = mpf(0)
            for hits in range(first, first + 40_000):
                exact += mass * -mpmath.expm1(epsilon - (2 * hits - count) * mpf(eps))
                mass *= mpf(count - hits) / (hits + 1) * high / (1 - high)
                if mass < exact * mpf(10) ** -45:  # masses fall: the rest is beyond the 40 digits
                    break
            assert exact <= cost.delta(epsilon) <= exact * 1.001 + 1e-9


LARGE = [1e3, 1e4, 1e6, 1e9, 1e200, 1.7e308]
SMALL = [5e-324, 1e-308, 1e-200, 1e-20]
COSTS: dict[str, Callable[[float], Cost]] = {
    "pure": Pure,
    "bounded range": BoundedRange,
    "approximate": lambda e: Approximate(e, 1e-9),
    "zcdp": lambda e: ZCDP(e, 1e-9),
    "gaussian": lambda e: Gaussian(1.0, e),
    "little gaussian noise": lambda e: Gaussian(1 / e if e > 1e-300 else 1e300),
    "discrete gaussian": lambda e: DiscreteGaussian(1 / e if e > 1e-300 else 1e300),
    "moved far": lambda e: DiscreteGaussian(1.0, int(e)),
    "vectors": lambda e: DiscreteGaussianVectors(e, 3, 10.0),
    "quiet vectors": lambda e: DiscreteGaussianVectors(0.1, 3, max(1.0, e)),
    "many vectors": lambda e: DiscreteGaussianVectors(0.1, max(1, int(e)), 10.0),
}
CHANGES: dict[str, Callable[[Cost], Cost]] = {
    "itself": lambda cost: cost,
    "thrice": lambda cost: cost * 3,
    "sampled": lambda cost: subsample(cost, 0.1),
    "grouped": lambda cost: group(cost, 3),
    "boosted": lambda cost: label_boost(cost, 1.0, "S"),
    "failing": lambda cost: or_fail(cost, 1e-9),
    "mixed": lambda cost: cost + Pure(0.3) + Gaussian(3.0),
}


@pytest.mark.claim("COMP")
@pytest.mark.parametrize("made", COSTS)
@pytest.mark.parametrize("changed", CHANGES)
@pytest.mark.parametrize("epsilon", [1.0, *LARGE, *SMALL])
def test_accounting_neither_warns_nor_overflows(made: str, changed: str, epsilon: float) -> None:
    with np.errstate(all="raise"):
        cost = CHANGES[changed](COSTS[made](epsilon))
        for at in (0.0, 1.0, 2000.0):
            assert 0 <= cost.delta(at) <= 1
        assert cost.zcdp is None or cost.zcdp[0] >= 0


@pytest.mark.claim("CAL")
@pytest.mark.parametrize("epsilon", [1e3, 1e6, 1e200])
def test_calibrating_to_a_huge_epsilon_is_quiet(epsilon: float) -> None:
    with np.errstate(all="raise"):
        for releases in (1, 100):
            scale = calibrate_gaussian(epsilon, 1e-6, releases)
            assert (DiscreteGaussian(scale) * releases).delta(epsilon) <= 1e-6
        assert GaussianNoise.calibrated(epsilon, 1e-6).release([3]).shape == (1,)
