"""Ordered keys: the order of texts, numbers, dates and ids, each read by itself."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cumae import Columns
from cumae.data import Order, middle_keys, next_key, row_source
from cumae.errors import InvalidParameter

pytestmark = pytest.mark.claim("KEYS")


def key(cell: Any, kind: str, max_bytes: int = 64) -> tuple[float, ...] | None:
    cells = np.empty(1, dtype=object)
    cells[0] = cell
    words = Order(kind, max_bytes).words(cells)[0]
    return None if np.isnan(words).all() else tuple(words.tolist())


def compared(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


texts = st.text(max_size=10)
numbers = st.one_of(
    st.integers(-(10**40), 10**40),
    st.decimals(allow_nan=False, allow_infinity=False, places=20, min_value=-(10**30)),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)
moments = st.one_of(st.datetimes(), st.datetimes(timezones=st.timezones()), st.dates())


@settings(max_examples=80)
@given(a=texts, b=texts)
@example(a="a", b="a\0")
@example(a="ÿ", b="\ud800")
def test_texts_compare_by_code_points(a: str, b: str) -> None:
    if not a or not b:
        assert key("", "text") is None
        return
    assert compared(key(a, "text"), key(b, "text")) == compared(a, b)


def exact(number: Any) -> Decimal:
    return Decimal(repr(number)) if isinstance(number, float) else Decimal(number)


@settings(max_examples=120)
@given(a=numbers, b=numbers)
@example(a=10**30 + 1, b=10**30 + 2)
@example(a=-(10**30) - 1, b=-(10**30) - 2)
@example(a=0, b=-0.0)
@example(a=1e-300, b=Decimal("1e-301"))
@example(a=120, b=12)
@example(a=Decimal("100.001"), b=100)
def test_numbers_compare_as_numbers_of_any_length(a: Any, b: Any) -> None:
    first, second = key(a, "numbers"), key(b, "numbers")
    assert first is not None
    assert second is not None
    assert compared(first, second) == compared(exact(a), exact(b))
    assert key(str(exact(a)), "numbers") == first


def instant(moment: Any) -> Any:
    if not isinstance(moment, dt.datetime):
        moment = dt.datetime(moment.year, moment.month, moment.day)  # noqa: DTZ001
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC).replace(tzinfo=None)


@settings(max_examples=80)
@given(a=moments, b=moments)
def test_times_compare_by_their_moment(a: Any, b: Any) -> None:
    try:
        expected = compared(instant(a), instant(b))
    except OverflowError:  # beyond year 9999 in UTC
        return
    assert compared(key(a, "dates"), key(b, "dates")) == expected
    if not isinstance(a, dt.datetime) or (a.tzinfo is None and a.fold == 0):
        assert key(a.isoformat(), "dates") == key(a, "dates")


def test_all_forms_of_a_moment_have_one_key() -> None:
    noon = dt.datetime(2024, 2, 29, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    forms = [
        noon,
        "2024-02-29T12:00:00+02:00",
        "2024-02-29T10:00",
        np.datetime64("2024-02-29T10", "h"),
        np.datetime64("2024-02-29T10:00:00", "ns"),
        pd.Timestamp(noon),
        pd.Timestamp("2024-02-29T10:00"),
    ]
    assert len({key(form, "dates") for form in forms}) == 1
    assert key(np.datetime64("2024-02", "M"), "dates") == key(dt.date(2024, 2, 1), "dates")
    later = np.datetime64("2024-02-29T10:00:00.000000001", "ns")
    assert key(later, "dates") > key(noon, "dates")  # type: ignore[operator]
    assert key("2024-02-29T10:00:00.1234567", "dates") is None


def test_ids_compare_by_their_bytes() -> None:
    some = sorted(uuid.UUID(int=number) for number in (0, 7, 2**64, 2**127, 2**128 - 1))
    keys = [key(one, "ids") for one in some]
    assert keys == sorted(keys)  # type: ignore[type-var]
    assert [key(str(one).upper(), "ids") for one in some] == keys


class Odd:
    def __str__(self) -> str:
        raise RuntimeError("seen")

    __eq__ = __hash__ = __float__ = __len__ = __str__  # type: ignore[assignment]


@pytest.mark.parametrize("kind", ["text", "numbers", "dates", "ids"])
@pytest.mark.parametrize(
    "cell",
    [None, math.nan, pd.NaT, pd.NA, Odd(), b"bytes", 1j, np.timedelta64(3, "s"), "", [1, 2]],
)
def test_other_cells_have_no_key_and_raise_nothing(kind: str, cell: Any) -> None:
    assert key(cell, kind) is None


@pytest.mark.parametrize(
    ("kind", "fits", "too_long"),
    [
        ("text", "x" * 64, "x" * 65),
        ("text", "ü" * 32, "ü" * 33),
        ("numbers", 10**117 + 1, 10**118 + 1),
        ("numbers", 10**3000, 10**3000 + 1),
        ("numbers", "1e2147483647", "1e2147483648"),
        ("numbers", math.pi, math.inf),
        ("dates", "9999-12-31", "10000-01-01"),
    ],
)
def test_what_is_longer_than_declared_has_no_key(kind: str, fits: Any, too_long: Any) -> None:
    assert key(fits, kind) is not None
    assert key(too_long, kind) is None


def test_words_do_not_depend_on_other_cells() -> None:
    cells = np.array(["Ada", 7, None, "x" * 99, "Bob", Odd()], dtype=object)
    together = Order("text").words(cells)
    for place in range(len(cells)):
        alone = Order("text").words(cells[place : place + 1])
        assert np.array_equal(alone[0], together[place], equal_nan=True)
    assert together.shape == (6, Order("text").n_words)
    assert np.isnan(together).any(axis=1).tolist() == [False, True, True, True, False, True]


words = st.integers(0, 2**48 - 1)


@settings(max_examples=80)
@given(pair=st.tuples(st.tuples(words, words, words), st.tuples(words, words, words)))
def test_middles_and_next_keys_are_those_of_whole_numbers(pair: Any) -> None:
    def whole(words: Any) -> int:
        return sum(int(word) << 48 * place for place, word in enumerate(reversed(words)))

    low, high = sorted(pair)
    middle = middle_keys(np.array([low], dtype=float), np.array([high], dtype=float))[0]
    assert whole(middle) == (whole(low) + whole(high) + 1) // 2
    if low != (2**48 - 1,) * 3:
        assert whole(next_key(tuple(map(float, low)))) == whole(low) + 1


LONG: list[Any] = [10**30 + 1, 10**30 + 2, Decimal("0.1")]


def test_no_container_rounds_a_long_number() -> None:
    columns = Columns([{"ordered": "numbers"}], None, 1)
    expected = columns.read(np.array(LONG, dtype=object).reshape(-1, 1))
    assert len({tuple(row) for row in expected.tolist()}) == 3
    frame = pd.DataFrame({"x": LONG})
    decimals = pa.table({"x": pa.array([Decimal(n) for n in LONG], pa.decimal128(38, 1))})
    for table in ([[n] for n in LONG], np.array(LONG, dtype=object).reshape(-1, 1), frame):
        assert np.array_equal(row_source(table).read(np.arange(3), columns), expected)
    named = Columns({"x": {"ordered": "numbers"}}, ["x"], 1)
    assert np.array_equal(row_source(decimals).read(np.arange(3), named), expected)
    texts = pd.DataFrame({"x": [str(number) for number in LONG]})
    assert np.array_equal(row_source(texts).read(np.arange(3), named), expected)


def test_declarations_are_checked_stored_and_made_up() -> None:
    declared = {
        "name": {"ordered": "text", "max_bytes": 16},
        "number": {"ordered": "numbers"},
        "born": {"ordered": "dates"},
        "id": {"ordered": "ids"},
    }
    columns = Columns(declared, list(declared), 4, ["text", "numbers", "dates", "objects"])
    assert [column.kind for column in columns.columns] == ["ordered"] * 4
    assert len(columns) == 3 + 11 + 3 + 3
    assert columns.open == []
    assert Columns.from_dict(columns.to_dict()).columns == columns.columns
    spread = np.linspace(0, 0.99, 20)
    for column in columns.columns:
        made = column.read(column.made_up(spread)).tolist()
        assert made == sorted(made)
        assert len({tuple(row) for row in made}) == 20
    for wrong, message in (
        ({"ordered": "words"}, "none of dates, ids, numbers, text"),
        ({"ordered": "text", "max_bytes": 4}, "no whole number from 8"),
        ({"ordered": "text", "max_bytes": True}, "no whole number from 8"),
        ({"ordered": "text", "missing": True}, "no place in an order"),
        ({"ordered": "text", "low": 1}, "no declaration"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            Columns([wrong], None, 1)
    with pytest.raises(InvalidParameter, match="dates by its type, but declared as ordered text"):
        Columns([{"ordered": "text"}], None, 1, ["dates"])
