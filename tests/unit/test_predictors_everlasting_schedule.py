"""Phases that grow, and shards whose size belongs to the phase: counts alone decide both."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cumae import BudgetExhausted, EverlastingPredictor
from cumae.predictors import state as states
from cumae.predictors.everlasting.schedule import GROWTH, PhaseSchedule
from cumae.predictors.noise import AIMED_NOISE
from tests.everlasting import ABOVE, N, Spy, X, Y, oracle

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(5)
PLAN = PhaseSchedule(1.0, 1e-6, 2, None, 50_000, fresh=False, smallest=3, fixed=False)


def test_the_growth_lies_between_the_best_of_both_models() -> None:
    # docs/everlasting_drift.md: the walk that stays, and the error of the phases themselves.
    def walk(growth: float) -> float:
        return growth / math.sqrt(growth - 1)

    def own(growth: float) -> float:
        return float(growth**1.5 * (math.sqrt(growth) + 1) / math.sqrt(growth - 1))

    grid = np.arange(1.05, 4.0, 0.001)
    found = [max(walk(g) / 2.0, own(g) / min(map(own, grid))) for g in grid]
    assert grid[int(np.argmin(found))] == pytest.approx(GROWTH, abs=0.02)
    assert min(found) < 1.04


@pytest.mark.claim("EVER")
@settings(deadline=None, max_examples=60)
@given(st.integers(3, 10**6), st.sampled_from([None, 1.0, 1.3, 4.0]), st.integers(1, 10**6))
def test_phases_grow_up_to_a_cap(n_rows: int, growth: float | None, most: int) -> None:
    plan = replace(PLAN, growth=growth, max_rows=most)
    after = plan.next_rows(n_rows)
    assert plan.releases(n_rows) == after
    assert after == min(most, math.ceil((growth or GROWTH) * n_rows))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0])
def test_shards_grow_with_their_phase(epsilon: float) -> None:
    plan = replace(PLAN, epsilon=epsilon, max_rows=10**6)
    sizes = [plan.shard_size(n) for n in (10, 1000, 10_000, 100_000, 10**6)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 3
    assert plan.noise(10**6) == pytest.approx(AIMED_NOISE, rel=0.08)
    assert {replace(plan, fixed=True).shard_size(n) for n in (10, 10**6)} == {3}


@pytest.mark.claim("EVER")
def test_what_rows_hold_changes_no_size_of_any_phase() -> None:
    seen = []
    for rows, labels in ((X, Y), (np.zeros((N, 1)), np.zeros(N, dtype=int))):
        one = EverlastingPredictor(ABOVE, 16.0, max_rows=900, prior=False).fit(rows, labels)
        asked = 0
        found: list[Any] = []
        while one.phase_ < 6:
            if len(found) < one.phase_:
                noise = one._state_.phase.majority.noise
                found.append((asked, one._state_.phase.n_rows, one.n_shards_, noise))
            one.predict(rows[:20])
            asked += 20
        seen.append([(a, n, t, noise.scale) for a, n, t, noise in found])
    assert seen[0] == seen[1]
    assert [n for _, n, _, _ in seen[0]] == [400, 640, 900, 900, 900]
    assert [t for _, _, t, _ in seen[0]] == [133, 160, 150, 150, 150]


def test_releases_of_every_size_stay_within_the_promise() -> None:
    one = EverlastingPredictor(ABOVE, 1.0, max_rows=700, prior=False).fit(X, Y)
    for _ in range(4):
        cost = one._state_.phase.majority.cost
        assert cost.epsilon(1e-6) <= 1.0
        rho, _ = cost.zcdp or (math.inf, 0.0)
        assert rho <= (one.guarantee_.rho or 0.0)
        one.predict(RNG.random((one._state_.left + 1, 1)))


@pytest.mark.claim("EVER")
def test_a_stored_phase_goes_on_with_the_same_schedule() -> None:
    one = EverlastingPredictor(ABOVE, 8.0, max_rows=900, prior=False).fit(X, Y)
    one.predict(RNG.random((N, 1)))
    again = states.restore(one.to_arrays())
    assert again._state_.rules == one._state_.rules
    again.predict(RNG.random((2000, 1)))
    assert again._state_.phase.n_rows == 900


# Fresh rows: what they allow


@pytest.mark.claim("FRESH")
def test_fresh_phases_grow_as_far_as_rows_were_supplied(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch)
    one = oracle(fresh=True, growth="auto").fit(X, Y)
    releases = 2 * math.ceil(GROWTH * N)
    assert one.remaining_ == releases - N
    one.add_unlabelled(RNG.random((N + 100, 1)))  # less than 1.6 N
    one.predict(RNG.random((releases - N - 100, 1)))
    following = one._state_.following
    assert following is not None
    assert following.n_rows == N + 100
    assert (one._state_.left, len(one._state_.waiting)) == (0, 0)
    one.predict([[0.5]])
    assert sum(map(len, spy.votes)) == releases + 1
    assert (one.phase_, one._state_.phase.n_rows) == (2, N + 100)
    left = int(one.remaining_)
    assert left == 2 * math.ceil(GROWTH * (N + 100)) - (N + 100) - 1
    one.add_unlabelled(RNG.random((10 * N, 1)))
    one.predict(RNG.random((left, 1)))
    assert one.phase_ == 3
    assert one._state_.phase.n_rows == math.ceil(GROWTH * (N + 100))


@pytest.mark.claim("FRESH")
@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 90)), min_size=1, max_size=12))
def test_what_remains_is_what_can_be_asked(steps: list[tuple[bool, int]]) -> None:
    one = oracle(fresh=True, growth="auto", shard_size=5, max_rows=60).fit(X[:20], Y[:20])
    for supply, count in steps:
        if supply:
            one.add_unlabelled(RNG.random((count, 1)))
            continue
        left = int(one.remaining_)
        with pytest.raises(BudgetExhausted):
            one.predict(RNG.random((left + 1, 1)))
        asked = min(count, left)
        one.predict(RNG.random((asked, 1)))
        assert one.remaining_ == left - asked
    one.predict(RNG.random((int(one.remaining_), 1)))
    assert one.remaining_ == 0
