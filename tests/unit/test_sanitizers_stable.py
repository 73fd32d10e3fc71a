"""Stable thresholds: which bins are named, at what cost, and ranks against the stated bounds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from cumae.mechanisms.sparse import upper_tail
from cumae.privacy import Approximate
from cumae.sanitizers import Quantiles, StableThresholds, ordered
from cumae.sanitizers import stable as stab
from tests.divergence import divergence
from tests.sanitizers import Floats, columns_to_try, interval_distance, rank_distance
from tests.statistics import binomial_rejects


@pytest.mark.claim("STABLE")
@pytest.mark.parametrize("rate", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("chance", [1e-3, 1e-9])
def test_a_single_row_passes_with_at_most_that_chance(rate: float, chance: float) -> None:
    least = stab.least_count(rate, chance)
    assert upper_tail(rate, least - 1.0) <= chance
    assert least == 2 or upper_tail(rate, least - 2.0) > chance * (1 - 1e-8)


@pytest.mark.claim("STABLE")
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("columns", [1, 5])
def test_the_split_of_stable_thresholds_adds_up(epsilon: float, columns: int) -> None:
    sanitizer = StableThresholds(epsilon, 1e-6)
    assert sanitizer.cost == Approximate(epsilon, 1e-6)
    split = sanitizer._split(columns)
    named = 2 * len(stab.DEPTHS) * columns * Fraction(split.rate)
    drawn = columns * sum(Fraction(share) for share in split.shares)
    assert Fraction(epsilon) * (1 - Fraction(1, 10**12)) <= named + drawn <= epsilon
    single = float(upper_tail(float(split.rate), split.least - 1.0))
    assert 2 * len(stab.DEPTHS) * columns * single <= 1e-6
    assert sanitizer.threshold(columns) == split.least


def named_law(counts: Sequence[int], rate: float, least: int) -> Floats:
    """Law of which bins are named, each by itself; empty bins never are."""
    law = np.ones(1)
    for count in counts:
        chance = float(upper_tail(rate, float(least - count))) if count else 0.0
        law = np.multiply.outer(law, np.array([1 - chance, chance])).ravel()
    return law


@pytest.mark.claim("STABLE")
@pytest.mark.parametrize("rate", [0.2, 1.0])
def test_naming_bins_leaks_at_most_delta(rate: float) -> None:
    """One depth: all counts of five rows in three bins, one row moved; a low threshold leaks."""
    least = stab.least_count(rate, 0.01)
    pairs, low = [], []
    for counts in itertools.product(range(6), repeat=3):
        for a, b in itertools.permutations(range(3), 2):
            if sum(counts) == 5 and counts[a]:
                other = [c - (i == a) + (i == b) for i, c in enumerate(counts)]
                pairs.append((named_law(counts, rate, least), named_law(other, rate, least)))
                low.append((named_law(counts, rate, 2), named_law(other, rate, 2)))
    assert divergence(pairs, 2 * rate) <= 2 * 0.01 + 1e-12
    assert divergence(low, 2 * rate) > 2 * 0.01


@pytest.mark.claim("STABLE")
@pytest.mark.statistical
def test_a_bin_is_named_as_often_as_it_should_be() -> None:
    rate, least = 0.5, 6
    keys = np.full(4, 2**51 + 2**39, dtype=np.int64)
    lonely = np.append(keys, 2**51 + 2**45)
    source = Quantiles(1.0).source
    # Inner edges that only the widest bins have tell whether these were named.
    inner = np.array([2**51, 2**51 + 2**45]) + 5 * 2**32
    named = np.zeros(2, dtype=int)
    for _ in range(3000):
        named += np.isin(inner, stab.name_bins(lonely, rate, least, source))
    often, rare = named.tolist()
    assert not binomial_rejects(often, 3000, float(upper_tail(rate, 2.0)))
    assert not binomial_rejects(rare, 3000, float(upper_tail(rate, 5.0)))
    assert binomial_rejects(often, 3000, float(upper_tail(rate, 3.0)), checks=0)


@pytest.mark.claim("STABLE")
def test_empty_places_are_never_named() -> None:
    keys = np.array([2**51 + 12345], dtype=np.int64)
    source = Quantiles(1.0).source
    always = set((np.arange(2**12, dtype=np.int64) << 40).tolist())
    for _ in range(20):  # a threshold far below zero names every bin that is not empty
        found = set(stab.name_bins(keys, 1.0, -(10**6), source).tolist()) - always
        for edge in found:
            assert any(abs(edge - 2**51 - 12345) <= 2 ** (52 - depth) for depth in stab.DEPTHS)
        assert 2**51 + 12346 in found


@pytest.mark.claim("STABLE")
@pytest.mark.parametrize("name", columns_to_try())
def test_stable_thresholds_are_as_accurate_as_stated(name: str) -> None:
    column, _ = columns_to_try()[name]
    sanitizer = StableThresholds(2.0, 1e-6)
    points = sanitizer.sanitize(column)
    assert points.shape == (15, 1)
    bound = sanitizer.rank_error(len(column), beta=1e-9)
    digits = ordered.floats_of(ordered.signed_keys(column, stab.DROPPED), stab.DROPPED)
    distance = rank_distance(digits, points[:, 0])
    assert distance <= bound < len(column) / 8
    error = sanitizer.interval_error(len(column), beta=1e-9)
    assert interval_distance(digits, points[:, 0]) <= error < 1


@pytest.mark.claim("STABLE")
def test_values_that_many_rows_share_are_found_exactly() -> None:
    column = np.repeat([-7.25, 0.0, 2.0**-100, 1996.0], [2_000, 3_000, 2_000, 3_000])
    points = StableThresholds(4.0, 1e-6).sanitize(column)
    assert set(points.ravel()) >= {-7.25, 0.0, 2.0**-100, 1996.0}
