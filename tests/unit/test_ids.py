"""Ids of users, clients, queries and requests: equal ones are one, in memory and in a file."""

from __future__ import annotations

import datetime as dt
import shutil
import uuid
from collections.abc import Iterator
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import cumae
from cumae import InvalidData, InvalidParameter, QueryRelease
from cumae.data import plain_id
from cumae.predictors.ids import HiddenIds
from tests.oracles import ROWS, everlasting, oracle

OLD = Path(__file__).parent.parent / "stored" / "format_1_ids"


class Word(str):
    """A text that says that it equals nothing, and has a hash of its own."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0

    def __str__(self) -> str:
        return "other"


class Whole(int):
    def __int__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "whole"


class Level(IntEnum):
    ONE = 1


class Name(StrEnum):
    ANNA = "anna"


WHOLE = (np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float32, np.longdouble)


def forms_of(one: Any) -> list[Any]:
    """Return the same id in all types that can hold it."""
    if isinstance(one, str):
        return [one, Word(one), *([np.str_(one)] if not one.endswith("\0") else [])]
    if isinstance(one, bytes):
        return [one, *([np.bytes_(one)] if not one.endswith(b"\0") else [])]
    if isinstance(one, float) and not one.is_integer():
        return [one, np.float64(one)]
    whole = int(one)
    found: list[Any] = [whole, Whole(whole)]
    if abs(whole) < 2**1023 and int(float(whole)) == whole:
        found += [float(whole), np.float64(whole)]
    found += [
        kind(whole)
        for kind in WHOLE
        if abs(whole) <= 100 and (whole >= 0 or "u" not in kind.__name__)
    ]
    found += [bool(whole), np.bool_(whole)] if whole in (0, 1) else []
    return [*found, -0.0, np.float32(-0.0)] if whole == 0 else found


NUMBERS = st.integers() | st.floats(allow_nan=False) | st.sampled_from([0, 1, 2**53, 2**64, 0.1])
IDS = NUMBERS | st.text(max_size=3) | st.binary(max_size=3) | st.sampled_from(["1", b"1", 1, "é"])


@given(IDS, IDS)
@example("é", "e\u0301")  # the same to a reader, and different to Python
@example(0.1, float(np.float32(0.1)))
@settings(max_examples=300, deadline=None)
def test_equal_ids_have_one_form_and_one_hmac_and_others_have_others(one: Any, other: Any) -> None:
    hide = HiddenIds(b"k" * 32)
    first = forms_of(one)
    plain = [plain_id(form) for form in first]
    assert all(type(form) is type(plain[0]) and form == plain[0] for form in plain)
    assert plain[0] == one
    assert len({hide(form) for form in first}) == 1
    assert len({hide.known_as(form) for form in first}) == 1
    assert (plain_id(other) == plain[0]) == (one == other) == (hide(other) == hide(one))


class Pair(NamedTuple):
    memory: Any
    stored: Any


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Return a predictor in memory and one in a file, which are asked the same."""
    more = {"user_ids": True, "client_cap": 0.005}  # two rows of a client
    _, stored = oracle(tmp_path_factory.mktemp("ids"), **more)
    yield Pair(everlasting(**more), stored)
    stored.close()


def kept(one: Any) -> tuple[int, int]:
    return one._state_.n_kept, one.answered_


@pytest.mark.claim("USER")
@given(st.lists(IDS.flatmap(lambda one: st.sampled_from(forms_of(one))), min_size=1, max_size=3))
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_memory_and_file_keep_the_same_rows(both: Pair, ids: list[Any]) -> None:
    given_ids = [form for one in ids for form in (one, *forms_of(plain_id(one))[:2])]
    for one in both:
        one.predict(ROWS[: len(given_ids)], users=given_ids, clients=given_ids)
    assert kept(both.memory) == kept(both.stored)


@pytest.mark.claim("USER", "STORE")
@pytest.mark.parametrize(
    "forms",
    [
        [0.5, np.float64(0.5)],
        [1, 1.0, True, Level.ONE, np.int8(1)],
        [Name.ANNA, "anna", Word("anna")],
    ],
    ids=["fraction", "whole", "text"],
)
def test_an_equal_id_is_the_same_user_client_query_and_request(tmp_path: Path, forms: Any) -> None:
    path, stored = oracle(tmp_path, user_ids=True, client_cap=0.005)
    before = stored._state_.n_kept
    known = forms[0] != 1  # 1 had a row in training
    for form in forms:
        stored.predict(ROWS[:2], users=[form, form], clients=["a", "a"])
        assert stored._state_.n_kept - before == known
    before = stored._state_.n_kept
    for place, form in enumerate(forms):
        for more in range(2):
            user = f"new {place} {more}"
            stored.predict(ROWS[:1], users=[user], clients=[form], query_ids=[user])
    assert stored._state_.n_kept - before == 2
    stored.predict(ROWS[:1], users=["asks"], clients=["b"], query_ids=[forms[0]])
    with pytest.raises(InvalidParameter, match="names another query"):
        stored.predict(ROWS[:1], users=["more"], clients=["b"], query_ids=[forms[-1]])
    stored.add_labels([forms[-1]], [1])
    answered = stored.answered_
    for form in forms:
        stored.predict(ROWS[:1], users=["last"], clients=["c"], request_id=("r", form))
        assert stored.answered_ == answered + 1
    stored.close()
    stored = cumae.open(path)
    stored.predict(ROWS[:1], users=["last"], clients=["c"], request_id=("r", forms[-1]))
    assert stored.answered_ == answered + 1
    stored.close()


@pytest.mark.claim("USER")
@pytest.mark.parametrize(
    "ids",
    [
        np.array([0.5, 3.0]),
        np.array([0.5, 3]),
        pd.Series([0.5, 3.0]),
        pd.array([0.5, 3.0], dtype="Float64"),
        pl.Series([0.5, 3.0]),
        pa.array([0.5, 3.0]),
        pa.chunked_array([[0.5], [3.0]]),
        (0.5, np.uint8(3)),
    ],
    ids=lambda ids: f"{type(ids).__module__}.{type(ids).__name__}",
)
def test_a_column_of_ids_is_its_cells(ids: Any) -> None:
    one = everlasting(user_ids=True)
    one.predict(ROWS[:2], users=[0.5, "three"])
    assert one._state_.n_kept == 2
    one.predict(ROWS[:2], users=ids)  # 3 had a row in training
    assert one._state_.n_kept == 2


NO_IDS = [
    Decimal("0.5"), Fraction(1, 2), 1 + 0j, None, float("nan"), np.float32(0.1), np.float16(0.1),
    np.longdouble("0.1"), np.float64("nan"), np.datetime64("2020-01-01"), np.timedelta64(1, "s"),
    dt.date(2020, 1, 1), pd.Timestamp("2020"), pd.NA, uuid.UUID(int=1), ("a", 1), bytearray(b"a"),
    [1], np.array([1]), object(),
]  # fmt: skip
NO_COLUMNS = [
    np.array(["2020-01-01"], dtype="M8[ns]"), np.array([1], dtype="m8[s]"),
    np.array([0.1], dtype=np.float32), pd.Series([0.1], dtype=np.float32),
    np.ma.array([1], mask=True), pa.array([None, 1])[:1], np.array([[1]]), {1: 2},
]  # fmt: skip


@pytest.mark.claim("USER")
def test_what_has_no_single_form_is_refused() -> None:
    one = everlasting(user_ids=True)
    for ids in [*([each] for each in NO_IDS), *NO_COLUMNS]:
        with pytest.raises(InvalidData, match=r"no id|give a list"):
            one.predict([[0.5]], users=ids)
    assert one.answered_ == 0


@pytest.mark.claim("STORE")
def test_a_request_has_an_id_of_the_same_kinds(tmp_path: Path) -> None:
    _, stored = oracle(tmp_path)
    for one in NO_IDS:
        if one is not None:
            with pytest.raises(InvalidParameter, match="request_id must be"):
                stored.predict([[0.5]], request_id=(one,))
    assert stored.answered_ == 0
    stored.close()


def test_an_unknown_id_of_any_size_is_refused_by_our_own_error() -> None:
    one = everlasting()
    for strange in (10**5_000, -(10**5_000), "x" * 100_000, 1e300):
        with pytest.raises(InvalidParameter, match="no waiting query"):
            one.add_labels([strange], [1])


@pytest.mark.parametrize("name", ["max_queries", "n_shards", "epsilon", "delta"])
def test_a_parameter_of_any_size_is_refused_by_our_own_error(name: str) -> None:
    given: dict[str, Any] = {"epsilon": 1.0, "max_queries": 10, name: 10**5_000}
    with pytest.raises(InvalidParameter, match=f"{name} is an integer beyond all floats"):
        QueryRelease(**given).fit(ROWS, (ROWS[:, 0] > 0.3).astype(int))


@pytest.mark.claim("USER", "STORE")
def test_users_of_files_of_earlier_versions_are_known(tmp_path: Path) -> None:
    """A file in which two fractions came as np.float64, which then were other ids than floats.

    Each of seven new users asked once, as a client of the same id, and a client has two rows.
    """
    for file in OLD.iterdir():
        name = file.name.replace("key-", "oracle.db.keys/").replace(".sqlite", ".db")
        target = tmp_path / name
        target.parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copy(file, target)
        target.chmod(0o600)
    stored = cumae.open(tmp_path / "oracle.db")
    assert (stored._state_.n_kept, stored.answered_) == (7, 7)
    ids: list[Any] = [0.5, -2.25, 1.5, "anna", b"bob", 10**30, 1e300]
    for forms in (ids, [np.float64(one) if isinstance(one, float) else one for one in ids]):
        stored.predict(ROWS[:7], users=forms, clients=["x"] * 7)
        assert stored._state_.n_kept == 7
    for place in range(2):
        users = [f"new {place} {number}" for number in range(7)]
        stored.predict(ROWS[:7], users=users, clients=ids)
        assert stored._state_.n_kept == 14
    stored.close()
    stored = cumae.open(tmp_path / "oracle.db")
    stored.predict(ROWS[:7], users=[f"more {number}" for number in range(7)], clients=ids)
    assert stored._state_.n_kept == 14
    stored.close()


@given(st.floats(allow_nan=False))
def test_earlier_versions_wrote_what_is_looked_for(one: float) -> None:
    hide = HiddenIds(b"k" * 32)
    if not one.is_integer():
        assert hide.known_as(one)[1] == hide._hidden(f"f{np.float64(one)!r}".encode())
