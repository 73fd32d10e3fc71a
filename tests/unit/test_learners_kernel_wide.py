"""Wide tables: which columns matter, covariances that are kept as products, and correlations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.special import expit

from cumae.arrays import Floats
from cumae.learners.kernel import linear
from cumae.learners.kernel.linear import (
    Covariance,
    Solver,
    evidence_of_scales,
    largest,
    likely_correlations,
)
from cumae.learners.kernel.posterior import STEEPER, NoisySum, Posterior
from cumae.learners.kernel.relevance import Relevance, doubts
from cumae.learners.kernel.sums import shorten, weights

GROUPS = np.repeat([0, 1, 2], [1, 40, 80])
OWNERS = np.concatenate([[-1], np.arange(40), np.repeat(np.arange(40), 2)])
VARIANCES = np.array([4.0, 0.5, 0.25, 0.01])  # there may be groups of nothing


def measured(count: int, truth: Floats) -> Solver:
    coins = np.random.default_rng(3)
    slopes = coins.normal(0, 1, (count, len(truth)))
    return Solver(slopes, slopes @ truth + coins.normal(0, 1, count), GROUPS, 4)


@pytest.mark.parametrize("count", [60, 300])
def test_sums_over_groups_are_those_of_the_coefficients(count: int) -> None:
    solver = measured(count, np.random.default_rng(1).normal(0, 0.5, len(GROUPS)))
    assert solver.dual == (count == 60)
    solved = solver.solve(VARIANCES[GROUPS])
    squares, known = solver.by_groups(VARIANCES)
    left = 1 - np.diag(solved.spread().dense()) / VARIANCES[GROUPS]
    assert solved.known() == pytest.approx(left)
    for group in range(3):
        assert squares[group] == pytest.approx((solved.mean[group == GROUPS] ** 2).sum())
        assert known[group] == pytest.approx(left[group == GROUPS].sum())


@pytest.mark.parametrize("count", [60, 300])
def test_evidence_of_steeper_slopes_is_that_of_a_model_with_such_slopes(count: int) -> None:
    coins = np.random.default_rng(5)
    slopes, gaps = coins.normal(0, 1, (count, len(GROUPS))), coins.normal(0, 3, count)
    apart, prior = coins.normal(0, 2, count), VARIANCES[GROUPS]
    found = evidence_of_scales(slopes, gaps, apart, prior, (1.0, 2.5))
    for scale, evidence in zip((1.0, 2.5), found, strict=True):
        solver = Solver(scale * slopes, gaps + (scale - 1) * apart, GROUPS, 4)
        assert evidence == pytest.approx(solver.solve(prior).evidence)


def steeper_than_made_up_rows(share: float, steeper: tuple[float, ...]) -> float:
    """Return how far predictions are from the truth; so much of each column is common to all."""
    coins, size, count = np.random.default_rng(8), 30, 20_000
    common = coins.normal(0, 1, (count, 1))
    rows = math.sqrt(share) * common + math.sqrt(1 - share) * coins.normal(0, 1, (count, size))
    rows, reference = (
        np.hstack([np.ones((len(t), 1)), t / math.sqrt(size)])
        for t in (rows, coins.normal(0, 1, (2_000, size)))
    )
    truth = coins.normal(0.8, 1, size + 1)
    labels = expit(rows @ truth)
    groups = np.repeat([0, 1], [1, size])
    posterior = Posterior(
        reference, groups, np.array([[4.0, 0.5]]), np.ones(1), 1, count, 200.0, 4, steeper=steeper
    )
    for _ in range(4):
        directions = posterior.design(300.0)
        across, shown = (
            shorten((table @ directions).astype(np.float32)).astype(np.float64)
            for table in (rows, reference)
        )
        chance = expit(rows @ posterior.mean)
        value = across.T @ (weights(chance)[:, None] * (chance - labels[:, None]))
        posterior.learn(NoisySum(value, 300.0, shown, posterior.chance))
    return float(np.abs(expit(rows @ posterior.mean[:, 0]) - labels).mean())


def test_releases_tell_how_much_steeper_sums_are_than_made_up_rows_say() -> None:
    assert steeper_than_made_up_rows(0.4, STEEPER) < 0.8 * steeper_than_made_up_rows(0.4, (1.0,))
    same = steeper_than_made_up_rows(0.0, (1.0,))
    assert steeper_than_made_up_rows(0.0, STEEPER) == pytest.approx(same, rel=0.02)


@pytest.mark.parametrize("count", [60, 300])
def test_few_columns_that_matter_are_found(count: int) -> None:
    truth = np.zeros(len(GROUPS))
    truth[[4, 9]] = 3.0, -3.0
    solver, relevance = measured(count, truth), Relevance(OWNERS)
    variances = VARIANCES[GROUPS]
    before = relevance.factors.copy()
    plain = solver.solve(variances)
    for _ in range(6):
        found = relevance.look(solver.solve(variances * relevance.factors), variances)
        relevance.move(found)
    assert np.unique(before[1:]).size == 1  # at first all columns are alike
    scales = relevance.scales[0]
    assert sorted(np.argsort(-scales)[:2]) == [3, 8]
    assert np.sort(scales)[-2] > 20 * np.sort(scales)[-3]
    assert found.evidence > plain.evidence
    assert np.abs(found.mean - truth).sum() < 0.5 * np.abs(plain.mean - truth).sum()


def test_columns_that_all_matter_are_not_told_to_be_few() -> None:
    truth = np.random.default_rng(2).normal(0, np.sqrt(VARIANCES[GROUPS]))
    solver, relevance = measured(300, truth), Relevance(OWNERS)
    variances = VARIANCES[GROUPS]
    for _ in range(6):
        found = relevance.look(solver.solve(variances * relevance.factors), variances)
        relevance.move(found)
    assert found.evidence < solver.solve(variances).evidence
    assert np.all(relevance.scales[0] > 0.1)


def test_doubts_keep_the_variance_of_a_direction_on_the_mean() -> None:
    parts = np.random.default_rng(5).random((len(GROUPS), 7))
    parts /= parts.sum(axis=0)
    chances, times = doubts(parts, [(0.3, Relevance(OWNERS)), (0.2, Relevance(OWNERS))])
    assert chances.sum(axis=1) == pytest.approx(np.ones(7))
    assert (chances * times).sum(axis=1) == pytest.approx(np.ones(7))
    assert times.max() > 10  # one column may be all that matters


def test_products_stand_for_a_covariance() -> None:
    coins = np.random.default_rng(6)
    prior, rows = coins.uniform(1, 2, 12), coins.normal(0, 0.2, (5, 12))
    parts = [Covariance(prior, rows, np.ones(5)), Covariance.whole(prior, np.diag(prior / 2))]
    apart = [coins.normal(0, 1, 12) for _ in range(2)]
    mixed = Covariance.mixture(np.array([0.25, 0.75]), parts, apart)
    dense = 0.25 * (np.diag(prior) - rows.T @ rows) + 0.75 * np.diag(prior / 2)
    dense += 0.25 * np.outer(apart[0], apart[0]) + 0.75 * np.outer(apart[1], apart[1])
    assert mixed.dense() == pytest.approx(dense)
    table, vectors = coins.normal(0, 1, (9, 6)), coins.normal(0, 1, (6, 3))
    mean = (dense[:6, :6] + dense[6:, 6:]) / 2  # of two scores
    assert mixed.between(table, 2) == pytest.approx(table @ mean @ table.T)
    assert mixed.times(vectors, 2) == pytest.approx(mean @ vectors)
    for spread in (mixed, parts[0]):
        axes, signs = spread.axes(12)
        assert np.diag(prior) * (spread.prior / prior) - (axes * signs) @ axes.T == pytest.approx(
            spread.dense(), abs=1e-9
        )


def test_a_few_products_find_the_largest_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear, "MANY", 200)
    table = np.random.default_rng(7).normal(0, 1, (300, 300)) * 0.97 ** np.arange(300)
    matrix = table.T @ table
    values, vectors = largest(matrix, 20)
    assert values == pytest.approx(eigh(matrix, eigvals_only=True)[-20:], rel=0.02)
    assert vectors.T @ vectors == pytest.approx(np.eye(20), abs=1e-9)


@pytest.mark.parametrize("shape", ["directions", "pairs", "nothing"])
def test_correlations_are_nearer_to_the_truth_than_what_was_measured(shape: str) -> None:
    coins, size, noise = np.random.default_rng(8), 40, 0.2
    truth = np.eye(size)
    if shape == "directions":
        loads = coins.normal(0, 0.7, (size, 2))
        truth = loads @ loads.T + np.eye(size)
        truth /= np.sqrt(np.outer(np.diag(truth), np.diag(truth)))
    elif shape == "pairs":
        truth[range(0, 20, 2), range(1, 20, 2)] = truth[range(1, 20, 2), range(0, 20, 2)] = 0.8
    off = np.triu(coins.normal(0, noise, (size, size)), 1)
    found = likely_correlations(truth + off + off.T, np.ones(size), noise)
    # Entry by entry, half of what noise adds would be left at least.
    assert ((found - truth) ** 2).sum() < 0.3 * ((off + off.T) ** 2).sum()
    assert np.all(np.diag(found) == 1)
