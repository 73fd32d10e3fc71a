"""Records of data frames: each row takes the same number of bytes, and comes back as it was."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from cumae import EverlastingPredictor, InvalidParameter, QueryRelease
from cumae.predictors.records import LEAST_TEXT_BYTES, RowForm, short_text
from tests.states import same

ZONE = dt.timezone(dt.timedelta(hours=5, minutes=30))
CELLS = [
    *("", "a", "Grüße", "\ud800", "x" * 48, "日本" * 8, "\x00", "nan"),
    *(True, False, 0, -(2**63), 2**63 - 1, 1.5, -0.0, 1e-300, math.inf),
    *(dt.date(2020, 2, 3), dt.datetime(2020, 2, 3, 4, 5, 6, 7), np.datetime64("2020-02-03")),  # noqa: DTZ001
    *(dt.datetime(2020, 2, 3, 4, 5, 6, 789012, ZONE), np.datetime64("NaT")),
]


def frame_of_cells(cells: list[Any]) -> pd.DataFrame:
    column = np.fromiter(cells, dtype=object, count=len(cells))
    return pd.DataFrame({"t": pd.Series(column, dtype=object), "x": np.arange(len(cells)) / 7})


@pytest.mark.claim("STORE")
def test_cells_come_back_as_they_were() -> None:
    frame = frame_of_cells(CELLS)
    form = RowForm.of(frame, LEAST_TEXT_BYTES)
    packed = form.pack(frame)
    assert packed.shape == (len(CELLS), form.row_bytes)
    assert same(form.unpack(packed), frame)
    assert RowForm.from_dict(form.to_dict()) == form


@pytest.mark.claim("STORE")
@given(st.lists(st.one_of(st.text(max_size=80), st.integers(), st.floats(), st.none()), max_size=5))
def test_any_cells_take_the_same_bytes(cells: list[Any]) -> None:
    frame = frame_of_cells([short_text(cell, LEAST_TEXT_BYTES) for cell in cells])
    form = RowForm.of(frame, LEAST_TEXT_BYTES)
    packed = form.pack(frame)
    assert packed.shape == (len(cells), 8 + LEAST_TEXT_BYTES + 5)
    assert len(form.unpack(packed)) == len(cells)


def test_what_cannot_be_written_is_missing() -> None:
    odd = [object(), [1], "x" * 49, 10**400, dt.timedelta(1)]
    form = RowForm.of(frame_of_cells(odd), LEAST_TEXT_BYTES)
    found = form.unpack(form.pack(frame_of_cells(odd)))["t"]
    assert all(isinstance(cell, float) and math.isnan(cell) for cell in found)


def test_records_of_another_form_are_refused() -> None:
    form = RowForm.of(frame_of_cells(["a"]), LEAST_TEXT_BYTES)
    with pytest.raises(InvalidParameter, match="form"):
        form.unpack(np.zeros((1, form.row_bytes + 1), dtype=np.uint8))


@given(st.text(), st.integers(1, 30))
def test_texts_are_cut_after_a_whole_letter(text: str, size: int) -> None:
    found = short_text(text, size)
    assert text.startswith(found)
    length = len(found.encode("utf-8", "surrogatepass"))
    assert length <= size
    following = text[len(found) : len(found) + 1]
    assert not following or length + len(following.encode("utf-8", "surrogatepass")) > size


# In predictors

LONG = "a" * 60
ENCODER = OneHotEncoder(categories=[[LONG[:48], "b"]], handle_unknown="ignore")
MODEL = make_pipeline(
    make_column_transformer((ENCODER, ["t"]), remainder="passthrough"), KNeighborsClassifier(1)
)


def rows(count: int) -> tuple[pd.DataFrame, Any]:
    words = np.where(np.arange(count) % 2, LONG, "b")
    table = pd.DataFrame({"t": pd.Series(words, dtype=object), "x": np.zeros(count)})
    return table, np.arange(count) % 2


@pytest.mark.filterwarnings("ignore::cumae.errors.AnswersDrift")
@pytest.mark.parametrize("kind", [EverlastingPredictor, QueryRelease])
def test_long_texts_are_cut_in_rows_and_in_queries(kind: Any) -> None:
    more = {"prior": False, "shard_size": 20} if kind is EverlastingPredictor else {"n_shards": 20}
    table, labels = rows(400)
    made = kind(MODEL, epsilon=100.0, text_bytes=48, **more).fit(table, labels)
    assert made.predict(table[:40]).tolist() == labels[:40].tolist()
    state = made._state_
    recipe = (state.phase if kind is EverlastingPredictor else state.voting).recipe
    assert set(recipe.rows.take(np.arange(400))["t"]) == {LONG[:48], "b"}


def test_too_few_bytes_are_refused() -> None:
    table, labels = rows(400)
    with pytest.raises(InvalidParameter, match="text_bytes"):
        EverlastingPredictor(MODEL, text_bytes=47).fit(table, labels)


def test_a_category_that_would_be_cut_is_refused_before_the_payment() -> None:
    table, labels = rows(400)
    encoder = OneHotEncoder(categories=[[LONG, "b"]], handle_unknown="ignore")
    model = make_pipeline(
        make_column_transformer((encoder, ["t"]), remainder="passthrough"), KNeighborsClassifier(1)
    )
    for size in (48, 59):
        with pytest.raises(InvalidParameter, match="give text_bytes=60"):
            QueryRelease(model, epsilon=100.0, n_shards=20, text_bytes=size).fit(table, labels)
    made = QueryRelease(model, epsilon=100.0, n_shards=20, text_bytes=60).fit(table, labels)
    assert made.predict(table[:40]).tolist() == labels[:40].tolist()
