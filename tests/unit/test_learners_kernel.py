"""The kernel classifier: bounded whole numbers, exact sums, costs, and what it can learn."""

from __future__ import annotations

import itertools
import json
import math
from functools import partial
from typing import Any

import numpy as np
import pytest

from cumae import PrivateKernelClassifier
from cumae.data import Columns
from cumae.errors import InvalidParameter
from cumae.learners.base import Learner, Rows, Sizes
from cumae.learners.kernel import classifier, reference, sums
from cumae.learners.kernel.features import LARGEST, KernelFeatures, most_features
from cumae.learners.kernel.reference import MadeUp, noisy_counts, noisy_products
from cumae.learners.kernel.sums import LENGTH, MOVES, STEEP, contribution, noisy_sum
from cumae.privacy import DiscreteGaussianVectors
from cumae.randomness import SeededSource, discrete_gaussian

pytestmark = pytest.mark.claim("KERNEL")
COINS = np.random.default_rng(0)
UNIT = [(-1, 1), (-1, 1), (0, 5, 1)]
X = np.column_stack([COINS.uniform(-1, 1, (3_000, 2)), COINS.integers(0, 6, 3_000)])
Y = ((X[:, 0] > 0) != (X[:, 1] > 0)).astype(np.int64)
PUBLIC = np.column_stack([COINS.uniform(-1, 1, (500, 2)), COINS.integers(0, 6, 500)])
COLUMNS = Columns(UNIT, None, 3)


def features() -> KernelFeatures:
    return KernelFeatures.of(PUBLIC, COLUMNS, SeededSource(1), bins=True, waves=20)


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300, math.nan, -1e-300])
def test_what_a_row_adds_is_bounded_whatever_it_holds(value: float) -> None:
    made = features()
    rows = X.copy()
    rows[::3] = value
    whole = made.whole(rows)
    assert np.all(whole == np.rint(whole))
    assert np.abs(whole).max() <= LARGEST
    for size in (1.0, 1e9, 1e300):
        mean = sums.rounded(COINS.normal(0, size, len(made)))
        directions = sums.rounded(COINS.normal(0, size, (len(made), 30)))
        added = contribution(whole, Y, mean, directions)
        assert np.sqrt((added.astype(float) ** 2).sum(axis=1)).max() <= LENGTH * STEEP
        assert 2 * LENGTH * STEEP == MOVES


def test_sums_are_the_same_to_the_bit_for_any_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    made = features()
    mean = sums.rounded(COINS.normal(0, 0.3, len(made))) / 2**12
    directions = sums.rounded(COINS.normal(0, 0.1, (len(made), 17))) / 2**12
    found = []
    for chunk in (1, 7, 100, 16_384):
        monkeypatch.setattr(sums, "CHUNK", chunk)
        total = noisy_sum(
            lambda part: made.whole(X[part]), Y, mean, directions, 0.0, SeededSource(2)
        )
        found.append(total.tolist())
    assert found[0] == found[1] == found[2] == found[3]


def _coded(made: MadeUp, edges: Any, row: Any, part: slice) -> Any:
    del part
    return made.codes(row[None], edges)


def _scaled(row: Any, part: slice) -> Any:
    del part
    return 70 * row[None]


def test_a_replaced_row_moves_counts_and_products_by_what_is_paid_for() -> None:
    made = MadeUp(Columns([(-1, 1), ["a", "b", "c"], (0, 9, "missing")], None, 3))
    edges = [reference.first_edges((-1.0, 1.0)), reference.first_edges((0.0, 9.0))]
    tables = COINS.uniform(-3, 12, (50, len(made.columns)))
    tables[:, 1:4] = np.eye(3)[COINS.integers(0, 3, 50)]
    tables[:, 5] = COINS.integers(0, 2, 50)
    for one, other in itertools.pairwise(tables):
        counts = [
            np.concatenate(
                noisy_counts(
                    partial(_coded, made, edges, row), 1, made.sizes(edges), 0.0, SeededSource(1)
                )
            )
            for row in (one, other)
        ]
        assert ((counts[0] - counts[1]) ** 2).sum() <= 2 * made.n_columns
        products = [
            noisy_products(partial(_scaled, row), 1, 6, 10_000, 0.0, SeededSource(1))
            for row in (one, other)
        ]
        upper = np.triu_indices(6)
        assert np.linalg.norm((products[0] - products[1])[upper]) <= math.sqrt(2) * 10_000


@pytest.mark.parametrize("public", [0, 500])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_cost_is_that_of_all_sums_and_within_what_was_asked(
    epsilon: float, public: int
) -> None:
    learner = PrivateKernelClassifier(epsilon, 1e-6)
    plan = learner.plan(Sizes(3_000, 0, public, COLUMNS), Rows(X, Y))
    steps = plan.steps
    squares = steps.steps * (MOVES / steps.noise) ** 2
    if not public:
        made = MadeUp(COLUMNS)
        squares += 4 * made.n_columns * (reference.COUNTED / steps.counts_noise) ** 2
        squares += 2 * (made.longest / steps.products_noise) ** 2
    assert isinstance(plan.cost, DiscreteGaussianVectors)
    assert math.isclose(plan.cost.mu, math.sqrt(squares), rel_tol=1e-9)
    assert plan.cost.delta(epsilon) <= 1e-6
    assert plan.cost.delta(0.97 * epsilon) > 1e-6  # and not much below it


def test_the_noise_that_is_drawn_is_the_noise_that_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[float, int]] = []
    true = discrete_gaussian

    def noted(scale: float, count: int, source: Any) -> Any:
        drawn.append((scale, count))
        return true(scale, count, source)

    monkeypatch.setattr(sums, "discrete_gaussian", noted)
    monkeypatch.setattr(reference, "discrete_gaussian", noted)
    for public in (None, PUBLIC):
        drawn.clear()
        learner = PrivateKernelClassifier(1.0, 1e-6, n_waves=10, columns=UNIT)
        learner.fit(X, Y, public)
        sizes = Sizes(len(Y), 0, 0 if public is None else len(public), COLUMNS)
        plans = learner.plan(sizes, Rows(X, Y)).steps
        steps = [count for scale, count in drawn if scale == plans.noise]
        assert len(steps) == plans.steps
        assert sum(count for _, count in drawn) <= classifier._places(sizes)
        others = {scale for scale, _ in drawn} - {plans.noise}
        assert others == (
            set() if public is not None else {plans.counts_noise, plans.products_noise}
        )
        if public is None:
            counts = [count for scale, count in drawn if scale == plans.counts_noise]
            assert len(counts) == 2 * MadeUp(COLUMNS).n_columns
            assert len([1 for scale, _ in drawn if scale == plans.products_noise]) == 1


@pytest.mark.parametrize("public", [False, True])
def test_it_learns_what_no_additive_model_can(public: bool) -> None:
    rows = np.column_stack([COINS.uniform(-1, 1, (13_000, 2)), COINS.integers(0, 6, 13_000)])
    labels = ((rows[:, 0] > 0) != (rows[:, 1] > 0)).astype(int)
    learner = PrivateKernelClassifier(1.0, 1e-6, columns=UNIT, n_waves=60, random_state=1)
    learner.fit(rows[:10_000], labels[:10_000], PUBLIC if public else None)
    assert learner.score(rows[10_000:], labels[10_000:]) > 0.85
    additive = PrivateKernelClassifier(1.0, 1e-6, n_waves=0, columns=UNIT, random_state=1)
    additive.fit(rows[:10_000], labels[:10_000], PUBLIC if public else None)
    assert additive.score(rows[10_000:], labels[10_000:]) < 0.6


def test_it_is_stored_and_says_the_same(tmp_path: Any) -> None:
    learner = PrivateKernelClassifier(1.0, 1e-6, n_waves=10, columns=UNIT).fit(X, Y, PUBLIC)
    learner.save(tmp_path / "model.json")
    again = PrivateKernelClassifier.load(tmp_path / "model.json")
    assert again.predict_proba(X).tolist() == learner.predict_proba(X).tolist()
    assert (
        Learner.from_dict(json.loads(json.dumps(learner.to_dict()))).guarantee_
        == learner.guarantee_
    )


def test_what_is_no_number_adds_nothing() -> None:
    made = features()
    gone = np.full(len(made), math.nan)
    directions = sums.rounded(COINS.normal(0, 1, (len(made), 5)))
    assert not contribution(made.whole(X), Y, gone, directions).any()
    odd = np.full((len(made), 5), math.nan)
    assert not contribution(made.whole(X), Y, np.zeros(len(made)), odd).any()


def test_more_features_than_sums_are_exact_for_are_refused_before_the_payment() -> None:
    wide = Columns([(0, 1)] * 400, None, 400)
    with pytest.raises(InvalidParameter, match="8192 is the most"):
        PrivateKernelClassifier().plan(Sizes(9_000, 0, 100, wide), Rows(X, Y))
    most = most_features(COLUMNS, 20)
    assert len(features()) <= most


def test_without_a_delta_it_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="for pure privacy use PrivateBooster"):
        PrivateKernelClassifier(1.0, 0.0, columns=UNIT).fit(X, Y)


def test_without_noise_and_with_one_column_it_works() -> None:
    learner = PrivateKernelClassifier(math.inf, 1e-6, columns=[(-1, 1)])
    learner.fit(X[:, :1], X[:, 0] > 0.2, PUBLIC[:, :1])
    assert learner.score(X[:, :1], (X[:, 0] > 0.2).astype(int)) > 0.95
    assert learner.predict_proba(X[:0, :1]).shape == (0, 2)
