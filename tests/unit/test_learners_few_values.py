"""Columns of few values: what decides their features is declared, public, typed, or paid for."""

from __future__ import annotations

import io
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cumae import PrivateKernelClassifier, PrivateLogisticRegression
from cumae.data import Columns, ParquetRows
from cumae.learners.kernel import fractions, learner, reference
from cumae.learners.kernel.features import KernelFeatures
from cumae.learners.kernel.fractions import Fractions
from cumae.learners.kernel.levels import Levels
from cumae.learners.kernel.reference import evenly
from cumae.learners.kernel.sums import COUNTED
from cumae.randomness import SeededSource, discrete_gaussian

pytestmark = [
    pytest.mark.claim("KERNEL"),
    pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows"),
]
COINS = np.random.default_rng(3)
MARKS = COINS.integers(0, 2, (4_000, 4)).astype(np.float64)
LABELS = (MARKS[:, 0] + 0.5 * COINS.standard_normal(4_000) > 0.5).astype(int)
PUBLIC = COINS.integers(0, 2, (400, 4)).astype(np.float64)


def fitted(X: Any, declared: Any, *public: Any, **more: Any) -> PrivateKernelClassifier:
    given = {"columns": declared, "n_waves": 8, "random_state": 0, **more}
    return PrivateKernelClassifier(1.0, 1e-6, **given).fit(X, LABELS, *public)


# Features


def test_two_values_of_public_rows_make_a_mark_as_a_declared_step_does() -> None:
    open_, declared = (fitted(MARKS, [(0, 1, *step)] * 4, PUBLIC) for step in ((), (1,)))
    assert len(open_.published().features) == len(declared.published().features) == 1 + 4 + 4 * 8
    assert np.array_equal(open_.predict_proba(MARKS), declared.predict_proba(MARKS))
    (strongest, *_) = open_.effects_
    assert strongest.columns == ("0",)
    assert strongest.values == ((0.0, 1.0),)


def test_two_values_may_be_any_two() -> None:
    codes = 3.0 + 4.0 * MARKS
    model = PrivateLogisticRegression(50.0, 1e-6, columns=[(0, 9)] * 4, random_state=0)
    model.fit(codes, LABELS, 3.0 + 4.0 * PUBLIC)
    odds = model.log_odds(model.columns_.encode(codes))
    assert odds == pytest.approx(model.intercept_[0] + codes @ model.coef_[0], abs=1e-3)
    assert model.effects_[0].values == ((3.0, 7.0),)


def test_few_values_have_marks_of_their_own() -> None:
    answers = COINS.integers(1, 6, (500, 1)).astype(np.float64)
    found = KernelFeatures.of(
        answers, Columns([(1, 5)], None, 1), SeededSource(0), curves=6, waves=0, detail=1.0
    )
    assert found.group_sizes == [1, 6, 5]
    whole = found.whole(found.codes(np.arange(1.0, 6.0)[:, None]))
    assert np.linalg.matrix_rank(whole - whole.mean(axis=0)) == 4
    assert np.array_equal(whole[:, 7:], 127 * np.eye(5))


def test_the_most_frequent_values_keep_their_marks() -> None:
    table = np.column_stack([COINS.integers(0, size, 3_000) for size in (3, 5, 2)]).astype(float)
    columns = Columns([(0, 9)] * 3, None, 3)
    found = KernelFeatures.of(table, columns, SeededSource(0), curves=6, waves=9, detail=1.0)
    fewer = found.with_marks(4)
    assert found.with_marks(8) is found
    assert fewer.group_sizes[:3] == [3, 12, 4]
    assert [len(fewer.levels[place].spots) for place in range(3)] == [3, 1, 0]
    rows = found.rows(found.codes(table))
    assert np.isin(fewer.rows(fewer.codes(table)).sum(axis=0), rows.sum(axis=0)).all()
    assert fewer.rows(fewer.codes(table)).shape[1] == rows.shape[1] - 4
    again = KernelFeatures.from_dict(json.loads(json.dumps(fewer.to_dict())))
    assert np.array_equal(again.rows(again.codes(table)), fewer.rows(fewer.codes(table)))


def test_frequent_values_stand_out() -> None:
    hours = np.where(COINS.random(5_000) < 0.4, 40, COINS.integers(1, 99, 5_000)).astype(float)
    found = Levels.of(hours)
    assert found.values[found.spots].tolist() == [40.0]
    assert not len(Levels.of(hours, 0.0).spots)  # so few rows tell nothing of single values
    assert not len(Levels.of(COINS.integers(1, 99, 5_000).astype(float)).spots)


def test_curves_are_for_the_values_beside_a_frequent_one() -> None:
    gains = np.where(COINS.random(5_000) < 0.9, 0.0, COINS.lognormal(8, 1, 5_000))
    found = Levels.of(gains)
    assert found.ranks[1] < 0.6
    assert Levels.of(gains, 0.0).ranks[1] > 0.85
    assert found.shares[0] == pytest.approx(0.9, abs=0.02)


def test_what_single_values_say_is_learnt_where_it_is_not_smooth() -> None:
    """Every second of nine values adds: no smooth curve of six cosines says so."""
    values = COINS.integers(0, 9, (40_000, 2)).astype(np.float64)
    labels = (COINS.random(40_000) < np.where(values[:, 0] % 2 == 1, 0.9, 0.1)).astype(int)
    model = PrivateLogisticRegression(1.0, 1e-6, curves=6, columns=[(0, 8)] * 2, random_state=0)
    model.fit(values[:30_000], labels[:30_000], values[30_000:32_000])
    assert model.score(values[32_000:], labels[32_000:]) > 0.87


# Fractions, which are counted


@pytest.mark.parametrize("width", [1, 2, 5])
def test_a_replaced_row_moves_counts_of_fractions_by_a_known_length(width: int) -> None:
    declared = [(0, 9, "missing") if place == 1 else (0, 9) for place in range(width)]
    made = Fractions(Columns(declared, None, width))
    cells = [0.0, 0.5, 3.0, math.inf]
    choices = [[*cells, None] if place == 1 else cells for place in range(width)]
    rows = itertools.islice(itertools.product(*choices), 0, None, max(1, 4**width // 300))
    table = made.columns.encode([list(row) for row in rows])
    found = [made.counts(row[None]) for row in table]
    found += [made.counts(np.full_like(table[:1], wild)) for wild in (math.nan, 1e300)]
    moved = max(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(found, 2))
    assert moved <= made.moves * (1 + 1e-12)
    assert made.moves == pytest.approx(COUNTED * math.sqrt(min(width, 2)))
    if width <= 2:
        assert moved == pytest.approx(made.moves)


def test_columns_of_whole_numbers_are_told_from_others() -> None:
    table = np.hstack([MARKS, 9 * COINS.random((4_000, 2))])
    made = Fractions(Columns([*[(0, 1)] * 4, (0, 9), (0, 9)], None, 6))
    noise = 40.0 * COUNTED
    found = made.release(table, len(table), noise, SeededSource(0))
    assert found == [True] * 4 + [False] * 2


def test_what_stands_in_for_a_missing_cell_is_no_fraction() -> None:
    made = Fractions(Columns([(0, 1, "missing")], None, 1))
    table = made.columns.encode([[0], [None], [0.5]])
    assert made.counts(table).tolist() == [COUNTED]


@pytest.mark.parametrize("rows", [1_000, 4_000])
def test_without_public_rows_noisy_counts_find_marks(rows: int) -> None:
    model = PrivateKernelClassifier(1.0, columns=[(0, 1)] * 4, n_waves=8, random_state=0)
    model.fit(MARKS[:rows], LABELS[:rows])
    assert len(model.published().features) == 1 + 4 + 4 * 8
    assert model.score(MARKS, LABELS) > 0.8


def test_made_up_rows_have_the_values_of_a_step() -> None:
    found = evenly(Columns([(1, 5, 1), (0, 1)], None, 2), SeededSource(0))
    assert np.unique(found[:, 0]).tolist() == [1, 2, 3, 4, 5]
    assert len(np.unique(found[:, 1])) > 1_000


# Types


def whole(X: Any) -> list[bool]:
    return [column.whole for column in Columns.of(X, [(0, 1)] * 2).columns]


def test_types_that_were_fixed_before_rows_say_what_is_whole(tmp_path: Path) -> None:
    table = pa.table({"a": [0, 1, None], "b": [0.0, 1.0, 1.0]})
    assert whole(table) == [True, False]
    pq.write_table(table, tmp_path / "rows.parquet")
    assert whole(ParquetRows(tmp_path / "rows.parquet")) == [True, False]
    assert whole(np.array([[0, 1]])) == [True, True]
    assert whole(np.array([[0.0, 1.0]])) == [False, False]
    assert whole(pd.DataFrame({"a": [0, 1], "b": [1, 0]})) == [False, False]
    assert whole([[0, 1]]) == [False, False]


def test_an_array_of_integers_has_marks_where_too_few_rows_tell() -> None:
    few = slice(0, 150)
    models = []
    for X in (MARKS.astype(int), MARKS):
        model = PrivateKernelClassifier(1.0, columns=[(0, 1)] * 4, n_waves=8, random_state=0)
        models.append(model.fit(X[few], LABELS[few]))
    assert [len(model.published().features) for model in models] == [1 + 4 + 32, 1 + 4 * 7 + 32]
    assert "types of columns are public" in models[0].guarantee_.assumptions


@pytest.mark.parametrize("cell", ["0.5", ""])
def test_a_cell_of_a_csv_file_changes_no_feature(
    cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With noise alone instead of sums, two files give the same features, and model."""

    def noise_alone(total: Any, parts: Any, scale: float, source: Any) -> Any:
        shape = np.shape(total(*next(iter(parts))))
        return discrete_gaussian(scale, int(np.prod(shape)), source).reshape(shape)

    for module in (learner, fractions, reference):
        monkeypatch.setattr(module, "noisy_sum", noise_alone)
    found = []
    for last in ("1", cell):
        lines = ["a,b", *["0,1", "1,0"] * 1_999, "1,1", f"0,{last}"]
        frame = pd.read_csv(io.StringIO("\n".join(lines)))
        model = fitted(frame, {"a": (0, 1), "b": (0, 1, "missing")})
        found.append((str(frame.dtypes["b"]), model.published().to_dict()))
    (one, first), (other, second) = found
    assert (one, other) == ("int64", "float64")
    assert first == second
