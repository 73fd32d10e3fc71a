"""How many rows may be poisoned: the bound, and attacks that try to break it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import cumae
from cumae import EverlastingPredictor, InvalidParameter, store
from cumae.arrays import Floats, Integers
from cumae.cli import app
from cumae.concepts import Thresholds
from cumae.mechanisms import GaussianNoise, LaplaceNoise, Majority
from cumae.predictors.everlasting.robustness import Robustness
from cumae.predictors.everlasting.schedule import NO_END, simulated_step
from cumae.store import writer

ROWS = np.random.default_rng(0).random((4_000, 1))
LABELS = (ROWS[:, 0] > 0.3).astype(int)


def fitted(labels: Integers, **more: Any) -> EverlastingPredictor:
    given = {"columns": [(0.0, 1.0)], "prior": False, **more}
    return EverlastingPredictor(Thresholds(), 20.0, random_state=7, **given).fit(ROWS, labels)


def votes_of(one: EverlastingPredictor, queries: Floats) -> Integers:
    return np.asarray(one._state_.phase.ensemble.votes(queries, np.arange(len(queries))))


@pytest.mark.claim("ROBUST")
@pytest.mark.parametrize("count", [1, 40, 400])
def test_so_many_poisoned_rows_move_at_most_so_many_votes(count: int) -> None:
    """The same coins split the rows: every vote that differs is that of a poisoned shard."""
    queries = np.linspace(0, 1, 21).reshape(-1, 1)
    poisoned = LABELS.copy()
    poisoned[:count] = 1 - poisoned[:count]
    before, after = (votes_of(fitted(labels), queries) for labels in (LABELS, poisoned))
    assert np.abs(before - after).max() <= count
    assert count < 40 or (before != after).any()


@pytest.mark.claim("ROBUST")
def test_an_answer_of_the_margin_stays_and_one_below_it_need_not() -> None:
    """Votes are moved as an attacker would: from the label that leads to the other one."""
    majority = Majority(GaussianNoise(20.0), 2, 1)
    phase = Robustness(12_000, 1_000, majority)
    for margin in (0.5, 0.9, 1.0):
        moved = phase.rows(margin, beta=1e-9)
        assert moved > 0
        lead = math.floor(margin * 1_000) - 2 * moved
        assert phase.lead(1e-9) <= lead < phase.lead(1e-9) + 2  # one more could be too many
        assert phase.share(margin, 1e-9) == moved / 12_000
    assert phase.rows(0.01) == 0


def test_margins_noise_and_caps_count() -> None:
    one, more = Majority(GaussianNoise(5.0)), Majority(GaussianNoise(5.0, moves=2), 4)
    quiet, loud = Robustness(1_000, 300, one, 10), Robustness(1_000, 300, more, 10)
    assert quiet.rows(1.0) > quiet.rows(0.5) > quiet.rows(0.2)
    assert quiet.rows(1.0, beta=0.01) < quiet.rows(1.0, beta=0.1)
    assert loud.rows(1.0) < quiet.rows(1.0)
    assert quiet.clients() == quiet.rows() // 10
    assert Robustness(1_000, 300, one).clients() is None
    assert Robustness(1_000, 300, Majority(LaplaceNoise(math.inf))).rows() == 149
    for wrong in (0.0, -1.0, 1.5):
        with pytest.raises(InvalidParameter, match="margin"):
            quiet.rows(wrong)
    assert "clients together" in str(quiet)
    silent = Robustness(1_000, 300, one, 10, votes_count=False)
    assert (silent.rows(0.01), silent.share(), silent.clients()) == (1_000, 1.0, 100)
    assert "votes have no say" in str(silent)


def test_it_follows_from_public_counts() -> None:
    """Other rows and other labels of the same number have the same robustness."""
    one, other = fitted(LABELS), fitted(1 - LABELS)
    assert str(one.robustness_) == str(other.robustness_)
    assert (one.robustness_.n_rows, one.robustness_.n_shards) == (4_000, one.n_shards_)
    assert str(one.robustness_)[1:] in str(one)
    capped = fitted(LABELS, client_cap=0.01, growth=1.5)
    assert capped.robustness_.client_rows == 60


def test_phases_may_grow_without_an_end() -> None:
    one = fitted(LABELS, max_rows=None)
    assert one._state_.rules.schedule.max_rows == NO_END
    assert one._state_.rules.schedule.next_rows(10**9) == 16 * 10**8
    with pytest.raises(InvalidParameter, match="max_rows"):
        fitted(LABELS, max_rows=0)


# Drift: an estimate


def moves_of(one: EverlastingPredictor, seed: int) -> list[float]:
    """How far the even split of the votes moves in each of some phases."""
    generator, grid, splits = np.random.default_rng(seed), np.linspace(0, 1, 2_001), []
    for phase in range(1, 7):
        votes = votes_of(one, grid.reshape(-1, 1))[:, 1]
        splits.append(float(grid[np.argmax(2 * votes >= one.n_shards_)]))
        while one.phase_ == phase:
            one.predict(generator.random((500, 1)))
    return np.diff(splits).tolist()


def test_the_estimated_step_is_about_that_of_real_phases() -> None:
    """Fifteen steps of the class itself: their mean square is within a factor of three either way.

    It is that of a chi-square with 15 degrees of freedom, divided by 15, which is outside with a
    chance below 1e-3; the seeds are fixed.
    """
    steps, rows = [], 2_000
    for seed in range(3):
        X = np.random.default_rng(seed).random((rows, 1))
        given: dict[str, Any] = {"growth": 1.0, "max_rows": rows, "prior": False}
        one = EverlastingPredictor(Thresholds("above"), 8.0, random_state=seed, **given)
        one.fit(X, X[:, 0] >= 0.5)
        steps += moves_of(one, seed)
    drift = one.drift_
    assert drift is not None
    assert drift.n_rows == rows
    assert 1 / 3 < np.mean(np.square(steps)) / drift.step**2 < 3


def test_drift_follows_from_public_counts_and_is_printed_as_an_estimate() -> None:
    one, other = (fitted(y, columns=None, max_rows=8_000) for y in (LABELS, 1 - LABELS))
    assert one.drift_ == other.drift_
    assert one.drift_ is not None
    assert one.drift_.n_rows == 8_000
    assert (
        0 < one.drift_.after(1) < one.drift_.after(100) == pytest.approx(10 * one.drift_.after(1))
    )
    assert "Estimated drift, simulated with thresholds" in str(one)
    assert fitted(LABELS, columns=None, max_rows=None).drift_ is None  # grows without an end
    assert fitted(LABELS, prior=None).drift_ is None
    assert "drift" not in str(fitted(LABELS))  # middles of gaps within bounds were not simulated


def test_status_tells_the_drift_of_an_oracle_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its keys, and after the ledger begins with a checkpoint, too."""
    monkeypatch.setattr(writer, "CHECKPOINT", 4)
    one = EverlastingPredictor(Thresholds(), 20.0, max_rows=8_000, prior=False).fit(ROWS, LABELS)
    drift = one.drift_
    assert drift is not None
    one.save_to(tmp_path / "oracle.db")
    oracle = cumae.open(tmp_path / "oracle.db")
    for _ in range(5):
        oracle.predict([[0.1]])
    oracle.close()
    found = store.status(tmp_path / "oracle.db")
    assert found.n_entries < found.last.number  # some are in a checkpoint
    assert found.drift == drift
    assert found.to_dict()["drift"] == {"n_rows": 8_000, "step": drift.step}
    told = CliRunner().invoke(app, ["status", str(tmp_path / "oracle.db")])
    assert " ".join(str(drift).split()) in " ".join(told.output.split())
    bounded = EverlastingPredictor(Thresholds(), 20.0, columns=[(0.0, 1.0)], prior=False)
    bounded.fit(ROWS, LABELS).save_to(tmp_path / "other.db")
    assert store.status(tmp_path / "other.db").drift is None


def test_larger_phases_take_smaller_steps() -> None:
    small, large = (simulated_step(rows, 10, 0.1) for rows in (20_000, 2_000_000))
    assert large == pytest.approx(small / 10)
    assert simulated_step(4_000, 10, 0.1) == pytest.approx(small * math.sqrt(5), rel=0.4)
    assert simulated_step(20_000, 10, 0.3) > small
