"""How a shard is trained on margins, and which hypothesis stands for it."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from cumae.concepts import Halfspaces, Rectangle, Rectangles, Thresholds, UnionOfIntervals
from cumae.data import Columns
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.growing.representatives import represent
from cumae.ensembles.trainer import train_one_by_one
from cumae.predictors.everlasting.margins import MarginTrainer

BOUNDED = Columns([(0.0, 8.0)], None, 1)


def weights_of(signed: Any) -> Any:
    return np.stack([np.maximum(-signed, 0), np.maximum(signed, 0)], axis=1)


def shards(generator: Any, count: Any, size: Any, width: int = 1) -> Any:
    """Rows of many shards, with ties among values and weights, and where the shards start."""
    starts = np.append(0, np.cumsum(generator.integers(1, size, count)))
    rows = generator.integers(0, 9, (starts[-1], width)).astype(float)
    signed = generator.integers(-2, 3, starts[-1])
    return rows, weights_of(signed), starts, generator.integers(0, 2**31 - 1, count)


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("polarity", ["both", "above", "below"])
@pytest.mark.parametrize("columns", [None, BOUNDED])
def test_many_thresholds_are_those_of_one_shard_after_another(polarity: Any, columns: Any) -> None:
    task = shards(np.random.default_rng(0), 300, 9)
    trainer = MarginTrainer(Thresholds(polarity), 2, columns)
    assert trainer.train_many(*task) == train_one_by_one(trainer, *task)


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("size", [3, 9, 40])
def test_many_boxes_are_those_of_one_shard_after_another(width: int, size: int) -> None:
    task = shards(np.random.default_rng(size), 2_000 // size, size, width)
    trainer = MarginTrainer(Rectangles(), 2, None)
    assert trainer._many_rules(*task) == train_one_by_one(trainer, *task)


def test_boxes_that_the_loop_cannot_handle_are_found_one_by_one() -> None:
    trainer = MarginTrainer(Rectangles(), 2, None)
    rows, weights, starts, seeds = shards(np.random.default_rng(5), 20, 9, 3)
    assert trainer._many_rules(rows, weights, starts, seeds) is None  # three columns
    assert trainer._many_rules(rows[:, :2] * 1e301, weights, starts, seeds) is None
    assert trainer._many_rules(rows[:, :2], weights, starts * 100, seeds) is None
    assert trainer.train_many(rows, weights, starts, seeds) == train_one_by_one(
        trainer, rows, weights, starts, seeds
    )


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("model", [Thresholds(), Rectangles()])
def test_a_row_reaches_its_own_shard_only(model: Any) -> None:
    rows, weights, starts, seeds = shards(np.random.default_rng(1), 60, 9)
    trainer = MarginTrainer(model, 2, BOUNDED)
    before = trainer.train_many(rows, weights, starts, seeds)
    for value in (3.5, np.inf, np.nan):
        other = rows.copy()
        other[starts[30]] = value
        after = trainer.train_many(other, weights, starts, seeds)
        assert before[:30] == after[:30]
        assert before[31:] == after[31:]


def test_an_unusable_row_is_left_out_of_its_shard() -> None:
    rows, weights, starts, seeds = shards(np.random.default_rng(2), 3, 9)
    rows[starts[1]] = np.nan
    trainer = MarginTrainer(Thresholds(), 2, BOUNDED)
    models = trainer.train_many(rows, weights, starts, seeds)
    rest = slice(starts[1] + 1, starts[2])
    assert starts[1] + 1 < starts[2]
    assert models[1] == trainer.train_or_raise(rows[rest], weights[rest], int(seeds[1]))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("balanced", [True, False])
def test_many_ridges_are_those_of_scikit_learn(intercept: bool, balanced: bool) -> None:
    rows, weights, starts, seeds = shards(np.random.default_rng(4), 200, 9, 3)
    model = RidgeClassifier(alpha=0.5, fit_intercept=intercept)
    trainer = MarginTrainer(model, 2, None, balanced=balanced)
    many = trainer.train_many(rows, weights, starts, seeds)
    solved = 0
    for found, one in zip(
        many, train_one_by_one(trainer, rows, weights, starts, seeds), strict=True
    ):
        if isinstance(one, RidgeClassifier):
            np.testing.assert_allclose(found.coef_, one.coef_, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(found.intercept_, one.intercept_, rtol=1e-9, atol=1e-12)
            score = found.decision_function(rows)
            np.testing.assert_allclose(score, one.decision_function(rows), rtol=1e-9, atol=1e-9)
            assert found.predict(rows).tolist() == (score > 0).astype(int).tolist()
            solved += 1
        else:
            assert found == one
    assert 100 < solved < 200  # the others have one class, or no weights


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("value", [3.5, np.inf, np.nan, 1e200, "text"])
def test_a_row_reaches_the_ridge_of_its_own_shard_only(value: Any) -> None:
    rows, weights, starts, seeds = shards(np.random.default_rng(5), 60, 9, 2)
    trainer = MarginTrainer(RidgeClassifier(), 2)
    before = trainer.train_many(rows, weights, starts, seeds)
    rows = rows.astype(object) if isinstance(value, str) else rows
    rows[starts[30], 1] = value
    after = trainer.train_many(rows, weights, starts, seeds)
    for shard in [*range(30), *range(31, 60)]:
        assert type(before[shard]) is type(after[shard])
        if isinstance(before[shard], RidgeClassifier):  # to the last bit
            assert before[shard].coef_.tobytes() == after[shard].coef_.tobytes()
            assert before[shard].intercept_.tobytes() == after[shard].intercept_.tobytes()
        else:
            assert before[shard] == after[shard]
    if value in (np.inf, np.nan):  # the row is left out, as it is one by one
        part = slice(starts[30] + 1, starts[31])
        alone = trainer.train_or_raise(rows[part], weights[part], int(seeds[30]))
        np.testing.assert_allclose(after[30].coef_, alone.coef_)


@pytest.mark.parametrize("columns", [None, BOUNDED])
@pytest.mark.parametrize("model", [Thresholds(), Thresholds("above"), Thresholds("below")])
def test_both_thresholds_of_a_shard_label_its_rows_as_erm_does(model: Any, columns: Any) -> None:
    rows, weights, starts, _ = shards(np.random.default_rng(3), 200, 7)
    trainer = MarginTrainer(model, 2, columns)
    for first, last in pairwise(starts):
        part = slice(first, last)
        signed = weights[part, 1] - weights[part, 0]
        found = model.erm(rows[part], np.ones(len(signed), dtype=int), sample_weight=signed)
        for seed in (2, 3):
            rule = trainer.train_or_raise(rows[part], weights[part], seed)
            assert np.array_equal(rule.predict(rows[part]), found.predict(rows[part]))


@pytest.mark.parametrize("model", [UnionOfIntervals(2), Rectangles()])
def test_intervals_are_tight_or_wide(model: Any) -> None:
    rows = np.array([[1.0], [2.0], [4.0], [7.0], [8.0]])
    weights = weights_of(np.array([-3, 1, 2, -3, -1]))
    trainer = MarginTrainer(model, 2)
    asked = [[1.0], [1.1], [2.0], [4.0], [4.1], [6.9], [7.0]]
    assert trainer.train_or_raise(rows, weights, 3).predict(asked).tolist() == [0, 1, 1, 1, 1, 1, 0]
    assert trainer.train_or_raise(rows, weights, 2).predict(asked).tolist() == [0, 0, 1, 1, 0, 0, 0]


def test_a_side_of_a_box_stops_at_rows_beside_the_box_only() -> None:
    rows = np.array([[2.0, 2.0], [4.0, 4.0], [5.0, 9.0], [6.0, 3.0], [0.0, 3.0]])
    signed = np.array([2, 2, -1, -1, -1])
    found = Rectangles().erm(rows, np.ones(5, dtype=int), sample_weight=signed)
    wide: Any = represent(Rectangles(), found, rows, signed, None, coin=True)
    assert wide.highs == (6.0, None)  # the row at (5, 9) is not beside it
    assert wide.lows[0] == np.nextafter(0.0, 1.0)
    assert wide.lows[1] is None
    tight: Any = represent(Rectangles(), found, rows, signed, None, coin=False)
    assert tight.lows == (2.0, 2.0)
    assert tight.predict(rows).tolist() == [1, 1, 0, 0, 0]
    assert wide.predict(rows).tolist() == [1, 1, 1, 0, 0]  # a row at the corner may come along


def test_what_has_no_rule_is_left_as_it_is() -> None:
    rows, signed = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]]), np.array([1, -1, 1])
    ones = np.ones(3, dtype=int)
    found = Halfspaces().erm(rows, ones, sample_weight=signed)
    assert represent(Halfspaces(), found, rows, signed, None, coin=True) is found
    empty = Rectangles().erm(rows, ones, sample_weight=-ones)
    assert represent(Rectangles(), empty, rows, -ones, None, coin=True) == Rectangle((), ())


def share_of_ones(model: Any, columns: Any, rows: Any, labels: Any, size: Any, asked: Any) -> Any:
    """Return the share of votes for 1 among many shards of clean rows, for fair coins."""
    starts = np.arange(0, len(rows) + 1, size)
    weights = weights_of(np.where(labels, 1, -1))
    seeds = np.arange(len(starts) - 1)  # half of them odd
    models = MarginTrainer(model, 2, columns).train_many(rows, weights, starts, seeds)
    return Ensemble(models, 2).votes(np.asarray(asked))[:, 1] / len(models)


@pytest.mark.parametrize(
    ("polarity", "columns"), [*product(["above", "both"], [None, Columns([(0, 1)], None, 1)])]
)
def test_votes_about_a_threshold_near_a_bound_are_even(polarity: Any, columns: Any) -> None:
    # Of five rows, none lies below .1 in six shards of ten. One vote has a deviation of .5, so the
    # share has one of .005: .04 is eight of them.
    rows = np.random.default_rng(4).random((50_000, 1))
    trainer = (Thresholds(polarity), columns, rows, rows[:, 0] >= 0.1, 5)
    assert share_of_ones(*trainer, [[0.1]])[0] == pytest.approx(0.5, abs=0.04)


def test_votes_of_plain_erm_lean_to_one_side_there() -> None:
    rows = np.random.default_rng(4).random((5_000, 1)).reshape(-1, 5, 1)
    labels = (rows[:, :, 0] >= 0.1).astype(int)
    models = [Thresholds("above").erm(*shard) for shard in zip(rows, labels, strict=True)]
    assert Ensemble(models, 2).votes(np.array([[0.1]]))[0, 1] / len(models) > 0.6


def test_corners_of_boxes_stay_sharp() -> None:
    generator = np.random.default_rng(5)
    rows = generator.random((15_000, 2))
    labels = np.all((rows >= 0.2) & (rows < 0.8), axis=1)
    corners = [[0.21, 0.21], [0.79, 0.79], [0.19, 0.19], [0.81, 0.5]]
    share = share_of_ones(Rectangles(), None, rows, labels, 30, corners)
    assert np.all(share[:2] > 0.45)  # plain erm: a quarter
    assert np.all(share[2:] < 0.5)
