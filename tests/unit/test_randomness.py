"""Samplers: edges, errors, the exact path, and no state."""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cumae import exact, randomness
from cumae.errors import InvalidParameter
from cumae.exact import exp_bounds
from cumae.randomness import (
    SYSTEM,
    SeededSource,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    integers,
    permutation,
    sample,
    source_for,
    weighted_choice,
)
from tests.sources import Scripted

pytestmark = pytest.mark.claim("RAND")
FULL = 2**64 - 1

SAMPLERS: list[Callable[..., Any]] = [
    lambda **more: integers(1000, **more),
    lambda **more: discrete_laplace(0.25, **more),
    lambda **more: discrete_gaussian(3.5, **more),
    lambda **more: discrete_gaussian(2e4, **more),
    lambda **more: weighted_choice([1, 2, 3, 4], 0.5, **more),
]


@pytest.mark.parametrize("draw", SAMPLERS)
def test_sizes_and_types(draw: Callable[..., Any]) -> None:
    assert type(draw()) is int
    for size in (0, 1, 1000):
        drawn = draw(size=size)
        assert drawn.shape == (size,)
        assert drawn.dtype == np.int64


@pytest.mark.parametrize("draw", SAMPLERS)
def test_a_seeded_source_repeats_and_the_system_does_not(draw: Callable[..., Any]) -> None:
    first, second = (draw(size=64, source=SeededSource(3)) for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(draw(size=64), draw(size=64))


@pytest.mark.parametrize("size", [-1, 1.5, True, "3"])
@pytest.mark.parametrize("draw", SAMPLERS)
def test_bad_sizes_raise(draw: Callable[..., Any], size: object) -> None:
    with pytest.raises(InvalidParameter, match="size="):
        draw(size=size)


def test_no_noise_where_none_is_asked() -> None:
    assert not discrete_gaussian(0, size=9).any()
    assert not discrete_laplace(math.inf, size=9).any()
    assert discrete_gaussian(1e-3) == 0


def _bad(call: Callable[[], object], text: str) -> None:
    with pytest.raises(InvalidParameter, match=text):
        call()


def test_bad_parameters_raise_with_their_value() -> None:
    _bad(lambda: integers(0), "bound=0")
    _bad(lambda: integers(2**64, size=2), "bound=18446744073709551616")
    _bad(lambda: discrete_gaussian(-1.0), "scale=-1.0")
    _bad(lambda: discrete_gaussian(math.nan), "scale=nan")
    _bad(lambda: discrete_gaussian(2.0**51), "scale=")
    _bad(lambda: discrete_laplace(0.0), "rate=0.0")
    _bad(lambda: discrete_laplace(math.nan), "rate=nan")
    _bad(lambda: bernoulli_exp(-0.1), "x=-0.1")
    _bad(lambda: bernoulli_exp(np.array([0.0, math.nan])), "x holds")
    _bad(lambda: weighted_choice([]), "no candidate")
    _bad(lambda: weighted_choice([1, 2], counts=[0, 0]), "no candidate")
    _bad(lambda: weighted_choice([-math.inf]), "no candidate")
    _bad(lambda: weighted_choice([1.0, math.inf]), "scores hold")
    _bad(lambda: weighted_choice([1, 2], -1.0), "rate=-1.0")
    _bad(lambda: weighted_choice([1, 2], counts=[1]), "shape")
    _bad(lambda: weighted_choice([1, 2], counts=[1, -1]), "integer counts of 0 or more")
    _bad(lambda: weighted_choice(["a"]), "scores of type")
    _bad(lambda: sample(3, 4), "draws=4")
    _bad(lambda: source_for(-1), "random_state=-1")
    _bad(lambda: source_for(1.5), "random_state=1.5")  # type: ignore[arg-type]


def test_source_for() -> None:
    assert source_for(None) is SYSTEM
    assert source_for(SYSTEM) is SYSTEM
    assert source_for(4).deterministic
    assert not SYSTEM.deterministic


@given(st.integers(1, 10**40))
def test_integers_stay_below_any_bound(bound: int) -> None:
    assert 0 <= integers(bound) < bound


def test_permutation_orders_everything_and_redraws_equal_keys() -> None:
    assert sorted(permutation(1000).tolist()) == list(range(1000))
    assert permutation(0).size == 0
    assert permutation(3, Scripted([5, 5, 1, 30, 10, 20])).tolist() == [1, 2, 0]
    assert len(set(sample(50, 20).tolist())) == 20


# The exact path: bits that floating point cannot decide.


def test_bernoulli_extends_undecided_bits() -> None:
    """Bits equal to the threshold's first 64 are decided by the next 64, both ways."""
    floor = exp_bounds(Fraction(-1), 64)[0]
    following = exp_bounds(Fraction(-1), 128)[0] - (floor << 64)
    x = np.array([1.0])
    assert bernoulli_exp(x, Scripted([floor, following - 1])).tolist() == [True]
    assert bernoulli_exp(x, Scripted([floor, following + 1])).tolist() == [False]
    assert bernoulli_exp(x, Scripted([floor - 1])).tolist() == [True]
    assert bernoulli_exp(x, Scripted([floor + 1])).tolist() == [False]
    assert bernoulli_exp(1, Scripted([floor, following - 1])) is True
    assert bernoulli_exp(1, Scripted([floor, following + 1])) is False


@pytest.mark.parametrize("scale", [0.4, 3.0, 600.0])
def test_gaussian_extends_undecided_bits(scale: float) -> None:
    """Next to each threshold the magnitude steps up by one, decided by further bits."""
    thresholds, _ = exact.gaussian_table(Fraction(scale))
    for k in {0, 1, len(thresholds) // 3, len(thresholds) // 2} & set(range(len(thresholds) - 1)):
        word = int(thresholds[k]) << 1
        assert discrete_gaussian(scale, 1, Scripted([word, 0]))[0] == k
        assert discrete_gaussian(scale, 1, Scripted([word + 1, FULL]))[0] == -(k + 1)


def test_gaussian_has_no_last_value() -> None:
    """All bits one, again and again, leads beyond the table."""
    table = len(exact.gaussian_table(Fraction(3))[0])
    far = discrete_gaussian(3, 1, Scripted([FULL] * 4 + [0]))[0]
    farther = discrete_gaussian(3, 1, Scripted([FULL] * 9 + [0]))[0]
    assert farther < far < -table


@pytest.mark.parametrize("rate", [Fraction(1, 600), Fraction(1, 3), Fraction(2), Fraction(100)])
def test_geometric_extends_undecided_bits(rate: Fraction) -> None:
    """P(g >= 3) has its threshold between two sequences of bits."""
    floor = exp_bounds(-3 * rate, 64)[0]
    following = exp_bounds(-3 * rate, 128)[0] - (floor << 64)
    below, above = [max(floor, 0), following - 1], [max(floor, 0), following + 1]
    if following > 0:
        assert randomness._geometric(rate, 1, Scripted(below))[0] >= 3
    assert randomness._geometric(rate, 1, Scripted(above))[0] <= 2


def test_zero_bits_are_never_trusted() -> None:
    """With a rate of 100, 64 zero bits do not yet tell 0 from 1: exp(-100) is far below 2^-64."""
    assert randomness._geometric(Fraction(100), 1, Scripted([0, FULL]))[0] == 0
    assert randomness._geometric(Fraction(100), 1, Scripted([0, 0, 0, FULL]))[0] == 1


def test_weighted_choice_is_exact_where_floats_round_products() -> None:
    """Scores beyond 2^53 differ by one; as floats they would be equal."""
    huge = np.array([2**60, 2**60 + 1], dtype=np.int64)
    assert weighted_choice(huge, 2000) == 1
    assert weighted_choice(huge.astype(np.uint64), 2000) == 1
    assert weighted_choice(np.array([10**30, 10**30 + 1], dtype=object), 2000) == 1
    assert weighted_choice([-(2**63), 2**63 - 1], 1) == 1


def test_weighted_choice_edges() -> None:
    assert weighted_choice([3, 9, 9], math.inf, counts=[1, 0, 1]) == 2
    assert weighted_choice([-math.inf, -5000.0]) == 1
    assert set(weighted_choice([0, 10**6], 0, size=200).tolist()) == {0, 1}
    assert weighted_choice([0, 0], counts=np.array([1, 10**200], dtype=object)) == 1


def test_table_matches_the_mass_function() -> None:
    """Differences of the thresholds are 2^63 times the probabilities, up to one unit each."""
    thresholds, _ = exact.gaussian_table(Fraction(600))
    with mpmath.workdps(60):
        weights = [mpmath.exp(-mpmath.mpf(k * k) / 720000) for k in range(20_000)]
        total = weights[0] + 2 * mpmath.fsum(weights[1:])
        for k in (1, 2, 600, 1200, 5000):
            step = int(thresholds[k]) - int(thresholds[k - 1])
            assert abs(step - mpmath.ldexp(2 * weights[k] / total, 63)) <= 1


# No state.


def _child_draws(queue: Any) -> None:
    queue.put(discrete_gaussian(600, size=50).tolist())


@pytest.mark.system_coins
def test_a_forked_process_draws_other_bits() -> None:
    """Two children and the parent, forked from one state, share no draw sequence."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_child_draws, args=(queue,)) for _ in range(2)]
    for child in children:
        child.start()
    draws = [queue.get(timeout=60) for _ in children] + [discrete_gaussian(600, size=50).tolist()]
    for child in children:
        child.join()
    assert len({tuple(drawn) for drawn in draws}) == 3


@pytest.mark.system_coins
def test_the_production_source_asks_the_system_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def recorded(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    monkeypatch.setattr(os, "urandom", recorded)
    SYSTEM.words(3)
    SYSTEM.words(5)
    assert asked == [24, 40]
    assert not vars(SYSTEM)
