"""Mechanisms against their exact laws, with planted bugs that must be noticed.

Each check rejects correct code with probability ``alarm_rate()`` at most.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cumae.errors import BudgetExhausted
from cumae.mechanisms import (
    Between,
    BetweenThresholds,
    Coins,
    ExponentialMechanism,
    GaussianNoise,
    LaplaceNoise,
    Side,
    Spent,
    Stability,
    StabilityTest,
)
from cumae.mechanisms import stability as stab
from cumae.mechanisms.sparse import upper_tail
from cumae.randomness import Source
from tests.sources import Forgetful
from tests.statistics import binomial_rejects, chi_square_rejects
from tests.unit.test_mechanisms import laplace_mass

pytestmark = pytest.mark.statistical
Floats = NDArray[np.float64]
RUNS = 2_000


@pytest.fixture(autouse=True)
def _search_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of tests are built with the same parameters: look for their threshold once."""
    for name in ("least_threshold", "delta_at_threshold"):
        monkeypatch.setattr(stab, name, lru_cache(getattr(stab, name)))


# Exponential mechanism


def chosen(epsilon: float) -> NDArray[np.int64]:
    mechanism = ExponentialMechanism(epsilon, sensitivity=2)
    return np.bincount([mechanism.choose([4, 0, 7, 7]) for _ in range(RUNS)], minlength=4)


@pytest.mark.claim("EXP")
def test_exponential_mechanism_follows_its_law() -> None:
    """Planted: epsilon over the sensitivity, without the half."""
    weights = np.exp(0.8 * np.array([4, 0, 7, 7]) / 4)
    assert not chi_square_rejects(chosen(0.8), weights / weights.sum())
    assert chi_square_rejects(chosen(1.6), weights / weights.sum(), checks=0)


# Noise


def noise_counts(release: Callable[[Any], Any]) -> NDArray[np.int64]:
    drawn = np.asarray(release(np.full(RUNS, 1000))) - 1000
    return np.bincount(np.clip(drawn, -12, 12) + 12, minlength=25)


def clipped(mass: Floats) -> Floats:
    """Law of the noise, given on -200..200, with its ends gathered at -12 and 12."""
    inner = mass[200 - 11 : 200 + 12]
    end = (1 - inner.sum()) / 2
    return np.concatenate([[end], inner, [end]])


@pytest.mark.claim("NOISE")
def test_laplace_noise_follows_its_law() -> None:
    """Planted: half the noise, from an epsilon twice as large."""
    law = clipped(laplace_mass(0.3, np.arange(-200, 201)))
    assert not chi_square_rejects(noise_counts(LaplaceNoise(0.6, sensitivity=2).release), law)
    halved = LaplaceNoise(1.2, sensitivity=2).release
    assert chi_square_rejects(noise_counts(halved), law, checks=0)


@pytest.mark.claim("NOISE")
def test_gaussian_noise_follows_its_law() -> None:
    """Planted: half the noise."""
    mass = np.exp(-(np.arange(-200, 201) ** 2) / (2 * 6.0**2))
    law = clipped(mass / mass.sum())
    assert not chi_square_rejects(noise_counts(GaussianNoise(6.0).release), law)
    assert chi_square_rejects(noise_counts(GaussianNoise(3.0).release), law, checks=0)


def equal_pairs(release: Callable[[Any], Any]) -> int:
    drawn = np.array([release([5, 5]) for _ in range(RUNS)])
    return int((drawn[:, 0] == drawn[:, 1]).sum())


@pytest.mark.claim("NOISE")
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_noise_is_fresh_for_each_count(kind: str) -> None:
    """Two noises are equal as often as independent ones; planted: noise reused in a batch."""
    x = np.arange(-200, 201)
    if kind == "laplace":
        mass = laplace_mass(0.5, x)
        fresh, reused = (LaplaceNoise(0.5, random_state=s).release for s in (None, Forgetful()))
    else:
        mass = np.exp(-(x**2) / 32.0)
        fresh, reused = (GaussianNoise(4.0, random_state=s).release for s in (None, Forgetful()))
    chance = float((mass**2).sum() / mass.sum() ** 2)
    assert not binomial_rejects(equal_pairs(fresh), RUNS, chance, checks=2)
    assert binomial_rejects(equal_pairs(reused), RUNS, chance, checks=0)


# BetweenThresholds


def law_of_charged(noise: Floats, charged: Floats, queries: int) -> Floats:
    """Law of the number of charged answers among equal queries.

    ``noise`` is the law of the threshold noise, ``charged`` the chance of a charged answer given
    it. After a charged answer the threshold noise is drawn anew; else it stays.
    """
    counts = [noise] + [np.zeros_like(noise)] * queries
    for _ in range(queries):
        stay = [chance * (1 - charged) for chance in counts]
        move = [float((chance * charged).sum()) * noise for chance in counts]
        counts = [stay[0], *(stay[j] + move[j - 1] for j in range(1, queries + 1))]
    law = np.array([chance.sum() for chance in counts])
    return np.asarray(law / law.sum())


QUERIES = 24
GAP, EPSILON = 12, 4.0


def between_law(count: int) -> Floats:
    t = np.arange(-300, 301)
    low = 1 - upper_tail(EPSILON / 6, t - float(count))
    high = upper_tail(EPSILON / 6, np.maximum(GAP - t + 1, t) - float(count))
    between = np.maximum(1 - low - high, 0)
    return law_of_charged(laplace_mass(EPSILON / 2, t), between, QUERIES)


class Halved(Between):
    """Planted: half the noise."""

    def fresh_threshold_noise(self, source: Source) -> int:
        return round(super().fresh_threshold_noise(source) / 2)

    def query_noise(self, count: int, coins: Coins) -> NDArray[np.int64]:
        return np.rint(super().query_noise(count, coins) / 2).astype(np.int64)


class Stale(Between):
    """Planted: threshold noise is never refreshed."""

    def fresh_threshold_noise(self, source: Source) -> int:
        noise: int = vars(self).setdefault("stale", super().fresh_threshold_noise(source))
        return noise


class Reused(Between):
    """Planted: one noise for all queries."""

    def query_noise(self, count: int, coins: Coins) -> NDArray[np.int64]:
        return np.repeat(super().query_noise(1, coins), count)


class Generous(Between):
    """Planted: one "between" too many."""

    def sides(self, values: Any, spent: Spent, coins: Coins) -> Any:
        last = spent.unclear == self.max_between - 1
        return super().sides(values, spent._replace(unclear=spent.unclear - last), coins)


def between_counts(kind: type[Between]) -> NDArray[np.int64]:
    seen = []
    for _ in range(RUNS):
        mechanism = BetweenThresholds._of(kind(0, GAP, EPSILON, QUERIES + 1), None)
        seen.append(int((mechanism.ask([0] * QUERIES) == Side.BETWEEN).sum()))
    return np.bincount(seen, minlength=QUERIES + 1)


@pytest.mark.claim("BT")
def test_between_thresholds_follows_its_law() -> None:
    """Planted: half the noise, stale threshold noise, query noise reused."""
    law = between_law(0)
    assert not chi_square_rejects(between_counts(Between), law)
    for planted in (Halved, Stale, Reused):
        assert chi_square_rejects(between_counts(planted), law, checks=0)


def betweens_given(kind: type[Between]) -> int:
    """How many "between" answers come before it refuses."""
    mechanism = BetweenThresholds._of(kind(0, 100, 1.0, max_between=4), None)
    given = 0
    for _ in range(1000):
        try:
            given += int((mechanism.ask([50]) == Side.BETWEEN).sum())
        except BudgetExhausted:
            break
    return given


@pytest.mark.claim("BT")
def test_exactly_c_between_answers() -> None:
    """Planted: c off by one or more."""
    assert betweens_given(Between) == 4
    assert betweens_given(Generous) > 4


# Stability


class HalvedTest(Stability):
    """Planted: half the noise."""

    def fresh_threshold_noise(self, source: Source) -> int:
        return round(super().fresh_threshold_noise(source) / 2)

    def query_noise(self, count: int, coins: Coins) -> NDArray[np.int64]:
        return np.rint(super().query_noise(count, coins) / 2).astype(np.int64)


class StaleTest(Stability):
    """Planted: threshold noise is never refreshed."""

    def fresh_threshold_noise(self, source: Source) -> int:
        noise: int = vars(self).setdefault("stale", super().fresh_threshold_noise(source))
        return noise


class ReusedTest(Stability):
    """Planted: one noise for all queries."""

    def query_noise(self, count: int, coins: Coins) -> NDArray[np.int64]:
        return np.repeat(super().query_noise(1, coins), count)


def unstable_counts(kind: type[Stability], votes: list[int]) -> NDArray[np.int64]:
    seen = []
    for _ in range(RUNS):
        rule = kind.of(2.0, 0.05, max_queries=QUERIES, max_unstable=QUERIES + 1)
        seen.append(int((StabilityTest._of(rule, None).ask([votes] * QUERIES) < 0).sum()))
    return np.bincount(seen, minlength=QUERIES + 1)


@pytest.mark.claim("STAB")
def test_the_stability_test_follows_its_law() -> None:
    """Planted: half the noise, stale threshold noise, query noise reused."""
    threshold = stab.least_threshold(2.0, 0.05, QUERIES, QUERIES + 1)
    votes = [2 * threshold + 1, 0]  # their distance to instability is the threshold
    t = np.arange(-400, 401)
    unstable = 1 - upper_tail(0.5, t)
    law = law_of_charged(laplace_mass(1.0, t), unstable, QUERIES)
    assert not chi_square_rejects(unstable_counts(Stability, votes), law)
    for planted in (HalvedTest, StaleTest, ReusedTest):
        assert chi_square_rejects(unstable_counts(planted, votes), law, checks=0)


def flipped(runs: int) -> tuple[int, int]:
    """How often label 0 is released for two neighbouring votes whose majority differs."""
    hits = [0, 0]
    for place, votes in enumerate(([12, 10], [11, 11])):
        for _ in range(runs):
            test = StabilityTest(8.0, 0.02, max_queries=1, max_unstable=1)
            hits[place] += int(test.ask(votes)[0] == 0)
    return hits[0], hits[1]


@pytest.mark.claim("STAB")
def test_a_label_that_one_shard_can_flip_hardly_ever_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The chance is that of noise alone, below delta; planted: sensitivity 1 for the gap."""
    threshold = stab.least_threshold(8.0, 0.02, 1, 1)
    t = np.arange(-400, 401)
    chance = float((laplace_mass(4.0, t) * upper_tail(2.0, threshold + t)).sum())
    assert chance <= 0.02
    for hits in flipped(RUNS):
        assert not binomial_rejects(hits, RUNS, chance, checks=2)
    monkeypatch.setattr(
        stab, "distance_to_instability", lambda votes: np.ptp(np.asarray(votes), axis=-1)
    )
    assert binomial_rejects(flipped(RUNS)[0], RUNS, chance, checks=0)
