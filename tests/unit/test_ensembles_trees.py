"""Trees that are grown in one loop are those of scikit-learn, shard by shard."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from cumae import EverlastingPredictor
from cumae.data import read_table
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.growing.trees import can_grow
from cumae.ensembles.trainer import train_one_by_one
from cumae.ensembles.voters.trees import Nodes, nodes_of
from cumae.learners import Columns
from cumae.predictors.everlasting.margins import MarginTrainer

SHARDS, SIZE = 300, 11
STARTS, SEEDS = np.arange(SHARDS + 1) * SIZE, np.arange(SHARDS)


def shards(width: int, n_classes: int = 2, seed: int = 1) -> tuple[Any, Any]:
    """Return rows and weights of which one class has none; some rows have no weight at all."""
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(SHARDS * SIZE, width))
    weights = generator.integers(1, 100, (len(rows), n_classes))
    weights[np.arange(len(rows)), generator.integers(0, n_classes, len(rows))] = 0
    weights[generator.random(len(rows)) < 0.1] = 0
    weights[STARTS[:-1]] = np.arange(n_classes) == 0  # at least two classes are there
    weights[STARTS[:-1] + 1] = np.arange(n_classes) == 1
    weights[:SIZE] = 0
    weights[SIZE : 2 * SIZE, 1:] = 0
    return rows, weights


def tree(**options: Any) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(**options)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("depth", [None, 1, 3])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_one_column_trees_are_those_of_scikit_learn(
    n_classes: int, depth: int | None, balanced: bool
) -> None:
    """But for the few in which two cuts are equally good up to rounding."""
    rows, weights = shards(1, n_classes)
    trainer = MarginTrainer(tree(max_depth=depth), n_classes, balanced=balanced)
    many = trainer.train_many(rows, weights, STARTS, SEEDS)
    single = train_one_by_one(trainer, rows, weights, STARTS, SEEDS)
    assert many[0] is single[0] is None
    assert many[1] == single[1] == 0
    asked = np.linspace(-3, 3, 200)[:, None]
    pairs = zip(many[2:], single[2:], strict=True)
    same = [_labels(one, asked, n_classes) == _labels(two, asked, n_classes) for one, two in pairs]
    assert np.mean(same) > 0.98


def _labels(model: Any, asked: Any, n_classes: int) -> list[int]:
    return [int(row.argmax()) for row in Ensemble([model], n_classes).votes(asked)]


def _impurity(nodes: Nodes, rows: Any, weights: Any) -> float:
    """Return the impurity behind the cut of a root."""
    found = 0.0
    above = rows[:, nodes.columns[0]].astype(np.float32) > nodes.cuts[0]
    for side in (above, ~above):
        sums = weights[side].sum(axis=0)
        found += sums.sum() - (sums**2).sum() / sums.sum()
    return found


def test_with_several_columns_cuts_are_as_good_as_those_of_scikit_learn() -> None:
    rows, weights = shards(6)
    rows = rows.round(1)  # many ties
    trainer = MarginTrainer(tree(max_depth=1), 2, balanced=False)
    many = trainer.train_many(rows, weights, STARTS, SEEDS)
    single = train_one_by_one(trainer, rows, weights, STARTS, SEEDS)
    for shard in range(2, SHARDS):
        part = slice(STARTS[shard], STARTS[shard + 1])
        found, wanted = (
            _impurity(nodes, rows[part], weights[part].astype(float))
            for nodes in (many[shard], nodes_of(single[shard], 2))
        )
        assert found == pytest.approx(wanted, abs=1e-9)


def test_ties_are_spread_over_all_columns() -> None:
    """Each of five columns is as good as the others: 60 of 300 on average, deviation 7."""
    rows, weights = shards(1)
    models = MarginTrainer(tree(max_depth=1), 2).train_many(
        np.repeat(rows, 5, axis=1), weights, STARTS, SEEDS
    )
    chosen = np.bincount([model.columns[0] for model in models[2:]], minlength=5)
    assert chosen.min() > 25
    assert chosen.max() < 95


@pytest.mark.claim("EVER", "SHARDS")
@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("value", [3.5, np.inf, np.nan, 1e200, "text"])
def test_a_row_reaches_the_tree_of_its_own_shard_only(value: Any, declared: bool) -> None:
    rows, weights = shards(3)
    columns = Columns([(-9, 9)] * 3, None, 3) if declared else None
    trainer = MarginTrainer(tree(max_depth=4), 2, columns)
    before = trainer.train_many(rows, weights, STARTS, SEEDS)
    place = STARTS[30]
    weights[place] = [0, 7]
    spoilt = rows.astype(object) if isinstance(value, str) else rows.copy()
    spoilt[place, 1] = value
    after = trainer.train_many(spoilt, weights, STARTS, SEEDS)
    for shard in [*range(2, 30), *range(31, SHARDS)]:
        for name in ("columns", "cuts", "left", "right", "labels"):
            old, new = getattr(before[shard], name), getattr(after[shard], name)
            assert old.tobytes() == new.tobytes()
    assert isinstance(after[30], Nodes) == (value == 3.5)  # others are left to scikit-learn
    assert (after[30] is None) == (value == 1e200)  # too large for 32 bits, yet usable


@pytest.mark.claim("EVER")
def test_other_rows_of_a_task_do_not_change_a_shard() -> None:
    rows, weights = shards(4)
    trainer = MarginTrainer(tree(max_depth=4), 2)
    together = trainer.train_many(rows, weights, STARTS, SEEDS)
    part = slice(STARTS[40], STARTS[41])
    alone = trainer.train_many(rows[part], weights[part], np.array([0, SIZE]), SEEDS[40:41])
    assert alone[0].cuts.tolist() == together[40].cuts.tolist()
    assert alone[0].columns.tolist() == together[40].columns.tolist()


def test_declared_categories_and_frames_are_encoded() -> None:
    generator = np.random.default_rng(2)
    jobs = generator.choice(["baker", "nurse", "poet"], 400)
    frame = pd.DataFrame({"age": generator.integers(18, 99, 400), "job": jobs})
    columns = Columns({"age": (18, 99), "job": ["baker", "nurse", "poet"]}, ["age", "job"], 2)
    weights = np.stack([jobs == "poet", jobs != "poet"], axis=1).astype(np.int64)
    trainer = MarginTrainer(tree(max_depth=2), 2, columns)
    (model,) = trainer.train_many(frame, weights, np.array([0, 400]), np.array([1]))
    assert (model.columns[0], model.cuts[0], model.width) == (3, 0.5, 4)
    assert model.labels[1:].tolist() == [1, 0]


@pytest.mark.parametrize(
    "options",
    [
        {"criterion": "entropy"},
        {"splitter": "random"},
        {"min_samples_leaf": 2},
        {"max_features": 1},
        {"class_weight": "balanced"},
        {"ccp_alpha": 0.1},
        {"random_state": 1},
        {"monotonic_cst": [0]},
        {"max_leaf_nodes": 3},
        {"min_impurity_decrease": 0.1},
    ],
)
def test_whatever_else_is_set_is_left_to_scikit_learn(options: dict[str, Any]) -> None:
    assert can_grow(tree(max_depth=3))
    assert not can_grow(tree(**options))


def test_subclasses_are_left_to_themselves() -> None:
    class Own(DecisionTreeClassifier):  # type: ignore[misc]
        """May fit in its own way."""

    assert not can_grow(Own())


@pytest.mark.claim("EVER", "SHARDS")
@pytest.mark.parametrize("cell", [1e-320, 1e300, "signalling"])
def test_no_cell_is_heard_of_whatever_numpy_is_told_to_say(cell: Any) -> None:
    """Neither in a training row, nor in a query, nor in the row that the query becomes."""
    rows = np.random.default_rng(3).random((60, 1))
    labels = (rows[:, 0] > 0.5).astype(np.int64)
    spoilt = rows.copy()
    if cell == "signalling":
        spoilt.view(np.uint64)[7, 0] = 0x7FF0000000000001  # NaN that raises where it is copied
    else:
        spoilt[7, 0] = cell
    oracle = EverlastingPredictor(
        tree(max_depth=2), 50.0, growth=1.0, prior=False, shard_size=6, columns=[(0, 1)]
    )
    oracle.fit(rows, labels)  # noise is calibrated, by public numbers, which may say what it likes
    with np.errstate(all="raise"):
        oracle.fit(spoilt, labels)
        for _ in range(3):
            oracle.predict(spoilt)
    assert oracle.phase_ == 3


def test_one_bad_row_does_not_slow_the_others_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts without it are read at once: 2 log2(n) of them, not n."""
    calls = []
    columns = Columns({"a": (0, 1), "b": ["x", "y"]}, ["a", "b"], 2)
    frame = pd.DataFrame({"a": np.full(1024, 0.5, dtype=object), "b": ["x"] * 1024})
    frame.loc[100, "a"] = "text"
    encode = Columns.encode

    def counted(self: Columns, X: Any) -> Any:
        calls.append(len(X))
        return encode(self, X)

    monkeypatch.setattr(Columns, "encode", counted)
    table = read_table(frame, columns)
    assert len(calls) <= 21
    assert np.flatnonzero(np.isnan(table).any(axis=1)).tolist() == [100]
    assert table[99].tolist() == [0.5, 0.0]  # two categories make one column
