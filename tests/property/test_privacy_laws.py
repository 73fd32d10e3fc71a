"""Laws that every privacy cost obeys, whatever it was built from."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cumae import Budget, BudgetExhausted, Guarantee, InvalidParameter
from cumae.privacy import (
    ZCDP,
    Approximate,
    BoundedRange,
    Cost,
    DiscreteGaussian,
    Gaussian,
    Pure,
    calibrate,
    compose,
    group,
    label_boost,
    or_fail,
    parallel,
    subsample,
)
from tests.divergence import TOO_SMALL, Law, assert_covers, hockey_stick, product_pair, response

some = settings(max_examples=25)
few = settings(max_examples=10)

epsilons = st.floats(0.0, 4.0).map(lambda x: round(x, 4))
small = st.just(0.0) | st.floats(1e-15, 0.1)
shares = st.just(0.0) | st.floats(1e-15, 1.0)
counts = st.integers(0, 6)

leaves: st.SearchStrategy[Cost] = st.one_of(
    epsilons.map(Pure),
    epsilons.map(BoundedRange),
    st.builds(Approximate, epsilons, small),
    st.builds(ZCDP, epsilons, small),
    st.builds(Gaussian, st.floats(0.2, 100.0), epsilons),
    st.builds(DiscreteGaussian, st.floats(0.3, 40.0), st.integers(0, 3)),
)


def _built(inner: st.SearchStrategy[Cost]) -> st.SearchStrategy[Cost]:
    return st.one_of(
        st.builds(subsample, inner, shares),
        st.builds(parallel, inner, inner),
        st.builds(or_fail, inner, small),
        st.builds(
            label_boost, inner, st.floats(0.0, 2.0), st.sampled_from(["S", "T", "untouched"])
        ),
        st.builds(lambda cost, count: cost * count, inner, counts),
        st.builds(lambda a, b: a + b, inner, inner),
    )


costs: st.SearchStrategy[Cost] = st.recursive(leaves, _built, max_leaves=3)


@some
@given(costs, st.lists(st.floats(0.0, 20.0), min_size=2, max_size=6))
def test_delta_is_a_probability_and_never_rises(cost: Cost, at: list[float]) -> None:
    deltas = [cost.delta(epsilon) for epsilon in sorted(at)]
    assert all(0.0 <= delta <= 1.0 for delta in deltas)
    for before, after in pairwise(deltas):
        assert after <= before * (1 + 1e-7) + TOO_SMALL


@some
@given(costs, st.floats(0.0, 0.999))
def test_epsilon_is_where_delta_is_reached(cost: Cost, delta: float) -> None:
    epsilon = cost.epsilon(delta)
    assert epsilon >= 0
    if epsilon < math.inf:
        assert cost.delta(epsilon) <= delta


@pytest.mark.claim("COMP")
@some
@given(costs, costs, st.floats(0.0, 10.0))
def test_composition_costs_at_least_each_part_on_convex_curves(
    a: Cost, b: Cost, epsilon: float
) -> None:
    """Up to the hull: a curve that is not convex in exp(epsilon) may become better."""
    assert (a + b) == (b + a)
    assert (a + b).pure == pytest.approx(a.pure + b.pure)
    if isinstance(a, Pure | Approximate | Gaussian | DiscreteGaussian):
        assert (a + b).delta(epsilon) >= a.delta(epsilon) * (1 - 1e-6) - TOO_SMALL


@pytest.mark.claim("COMP")
@some
@given(costs, counts, counts)
def test_counts_add_and_multiply(cost: Cost, first: int, second: int) -> None:
    assert cost * first + cost * second == cost * (first + second)
    assert (cost * first) * second == cost * (first * second)
    assert compose([(cost, first), (cost, second)]) == cost * (first + second)


@pytest.mark.claim("COMP", "PURE")
@some
@given(
    st.lists(st.tuples(epsilons, small), min_size=1, max_size=6),
    st.floats(0.0, 5.0),
)
@example([(0.0, 0.1), (0.0, 0.1)], 0.0)
@example([(1e-9, 0.0), (1.0, 0.0)], 0.5)
def test_approximate_costs_cover_their_worst_case(
    parts: list[tuple[float, float]], epsilon: float
) -> None:
    def worst(eps: float, failure: float) -> tuple[Law, Law]:
        good = (1 - failure) * response(eps)
        return np.append(good, [failure, 0.0]), np.append(good[::-1], [0.0, failure])

    cost = compose([(Approximate(*part), 1) for part in parts])
    pair = product_pair(worst(*part) for part in parts)
    exact = hockey_stick(*pair, epsilon)
    assert exact - TOO_SMALL <= cost.delta(epsilon) <= exact + 0.01 * min(1.0, epsilon + 0.5) + 1e-9


@pytest.mark.claim("SUB")
@some
@given(st.floats(0.01, 4.0), st.floats(0.01, 1.0), st.integers(1, 4), st.floats(0.0, 4.0))
def test_composed_subsampled_responses_are_covered(
    eps: float, rate: float, count: int, epsilon: float
) -> None:
    absent = response(eps)
    mixed = (1 - rate) * absent + rate * absent[::-1]
    cost = subsample(Pure(eps), rate) * count
    for pair in ((absent, mixed), (mixed, absent)):
        assert_covers(cost, [product_pair([pair] * count)], [epsilon])


@pytest.mark.claim("SUB")
@some
@given(leaves, shares, shares, st.floats(0.0, 5.0))
def test_fewer_rows_cost_less(cost: Cost, first: float, second: float, epsilon: float) -> None:
    low, high = sorted((first, second))
    less, more = subsample(cost, low).delta(epsilon), subsample(cost, high).delta(epsilon)
    assert less <= more * (1 + 1e-9) + 1e-12
    assert more <= cost.delta(epsilon) * (1 + 1e-9) + 1e-11


@pytest.mark.claim("PAR")
@some
@given(costs, costs, st.floats(0.0, 5.0))
def test_parallel_use_costs_the_larger(a: Cost, b: Cost, epsilon: float) -> None:
    """No more than one after the other, and exactly the larger of both."""
    both = parallel(a, b).delta(epsilon)
    assert both == pytest.approx(max(a.delta(epsilon), b.delta(epsilon)), rel=1e-6)


@pytest.mark.claim("FAIL")
@some
@given(costs, small, st.floats(0.0, 5.0))
def test_failures_add(cost: Cost, failure: float, epsilon: float) -> None:
    found = or_fail(cost, failure).delta(epsilon)
    assert found == pytest.approx(min(1.0, cost.delta(epsilon) + failure), rel=1e-6, abs=1e-12)


@pytest.mark.claim("GROUP")
@few
@given(leaves, st.integers(1, 5), st.floats(0.0, 5.0))
def test_larger_groups_cost_more(cost: Cost, size: int, epsilon: float) -> None:
    smaller, larger = group(cost, size), group(cost, size + 1)
    assert smaller.pure <= larger.pure
    # The chained bound is read at e/k, so a single row may be read more exactly than a group.
    assert smaller.delta(epsilon) <= larger.delta(epsilon) * (1 + 1e-6) + 1e-12


@pytest.mark.claim("ZCDP")
@some
@given(st.floats(1e-8, 5.0), st.floats(0.0, 12.0))
def test_zcdp_covers_gaussians_with_that_rho(rho: float, epsilon: float) -> None:
    gaussian = Gaussian(1 / math.sqrt(2 * rho))
    assert (
        gaussian._curve(np.array([epsilon]))[0] <= ZCDP(rho).delta(epsilon) * (1 + 1e-9) + TOO_SMALL
    )


@pytest.mark.claim("NOISE")
@some
@given(st.floats(0.3, 30.0), st.integers(1, 4), st.floats(0.0, 6.0))
def test_more_noise_costs_less(scale: float, sensitivity: int, epsilon: float) -> None:
    for make in (Gaussian, DiscreteGaussian):
        less, more = make(1.3 * scale, sensitivity), make(scale, sensitivity)
        assert less.epsilon(1e-4) <= more.epsilon(1e-4) * (1 + 1e-6)


@pytest.mark.claim("LB")
@few
@given(
    leaves.filter(lambda cost: not isinstance(cost, ZCDP)),  # its curve is not convex: see above
    st.floats(0.0, 3.0),
    st.integers(1, 5),
    st.floats(0.0, 6.0),
)
def test_a_row_of_s_costs_more_than_one_of_t(
    cost: Cost, eps: float, k: int, epsilon: float
) -> None:
    deltas = [label_boost(cost, eps, role, k=k).delta(epsilon) for role in ("untouched", "T", "S")]
    for before, after in pairwise(deltas):
        assert before <= after * 1.01 + 1e-9


@pytest.mark.claim("CAL")
@few
@given(st.floats(0.05, 5.0), st.floats(1e-9, 0.1), st.integers(1, 50), st.floats(0.01, 100.0))
def test_calibration_keeps_its_promise(
    epsilon: float, delta: float, count: int, start: float
) -> None:
    noise = calibrate(lambda noise: Gaussian(noise) * count, epsilon, delta, start=start)
    assert (Gaussian(noise) * count).delta(epsilon) <= delta
    assert (Gaussian(0.99 * noise) * count).delta(epsilon) > delta


@pytest.mark.claim("BUDGET")
@some
@given(st.floats(0.0, 3.0), st.lists(st.floats(0.0, 1.0), max_size=12))
def test_an_account_is_never_overdrawn(cap: float, uses: list[float]) -> None:
    budget, total = Budget(cap), Fraction(0)
    for eps in uses:
        entries = budget.entries
        try:
            budget.spend(Pure(eps))
        except BudgetExhausted:
            assert total + Fraction(repr(eps)) > Fraction(repr(cap))
            assert budget.entries == entries
        else:
            total += Fraction(repr(eps))
            assert total <= Fraction(repr(cap))
    assert budget.spent == (float(total), 0.0)


@some
@given(
    st.floats(0.0, allow_nan=False),
    st.floats(0.0, 1.0, exclude_max=True),
    st.text(),
    st.lists(st.text()),
    st.none() | st.floats(0.0, allow_nan=False),
    st.booleans(),
)
def test_guarantees_survive_json(
    epsilon: float, delta: float, text: str, names: list[str], rho: float | None, void: bool
) -> None:
    guarantee = Guarantee(
        epsilon, delta, text, text, tuple(names), assumptions=tuple(names), rho=rho, void=void
    )
    plain = json.loads(json.dumps(guarantee.to_dict(), allow_nan=False))
    assert Guarantee.from_dict(plain) == guarantee
    assert str(guarantee)


@some
@given(st.floats(max_value=-5e-324) | st.just(math.nan))
def test_what_is_below_zero_or_no_number_is_refused(value: float) -> None:
    for make in (Pure, BoundedRange, ZCDP, Gaussian, DiscreteGaussian, Budget, Pure(1.0).delta):
        with pytest.raises(InvalidParameter):
            make(value)


@some
@given(st.floats(min_value=1.0) | st.floats(max_value=-5e-324) | st.just(math.nan))
def test_what_is_no_delta_is_refused(value: float) -> None:
    for make in (Pure(1.0).epsilon, Gaussian(1.0).epsilon):
        with pytest.raises(InvalidParameter):
            make(value)
    for build in (Approximate, ZCDP, Budget):
        with pytest.raises(InvalidParameter):
            build(1.0, value)
