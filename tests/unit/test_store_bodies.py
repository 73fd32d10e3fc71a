"""Retries and estimators that are given again: what is equal is known, and nothing else."""

from __future__ import annotations

import datetime as dt
import functools
import math
import operator
import zoneinfo
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import cumae
from cumae import EverlastingPredictor, InvalidData, InvalidParameter, ParquetRows
from cumae.predictors.estimators import estimator_from_plain
from cumae.predictors.fingerprints import fingerprint, first_fingerprint
from cumae.store.sealed import canonical
from tests.oracles import ROWS, SHARED

# Bodies of requests

COUNT = 60  # so many rows that pyarrow prints a part of them
FRAME = pd.DataFrame({"a": np.linspace(0, 1, 400), "b": np.linspace(1, 0, 400)})


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("bodies") / "oracle.db"
    columns = {"a": (0, 1), "b": (0, 1)}
    one = EverlastingPredictor(**{**SHARED, "epsilon": 300.0, "columns": columns})
    one.fit(FRAME, (FRAME["a"] > 0.3).astype(int)).save_to(path)
    opened = cumae.open(path)
    yield opened
    opened.close()


def plain() -> dict[str, Any]:
    return {"a": np.full(COUNT, 0.1), "b": np.full(COUNT, 0.9)}


def turned() -> dict[str, Any]:
    return {"a": np.full(COUNT, 0.9), "b": np.full(COUNT, 0.1)}


def middle() -> dict[str, Any]:
    found = plain()
    found["a"][20:40] = 0.9
    return found


def hidden() -> dict[str, Any]:
    found = plain()
    found["a"] = [None if place == 30 else 0.1 for place in range(COUNT)]
    return found


def rows(made: dict[str, Any]) -> Any:
    return np.column_stack([made["a"], made["b"]]).astype(np.float64)


def masked(made: dict[str, Any]) -> Any:
    table = rows(made)
    return np.ma.array(np.nan_to_num(table, nan=0.1), mask=np.isnan(table))


def in_a_file(made: dict[str, Any], folder: Path) -> Any:
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pd.DataFrame(made).to_parquet(path)
    return ParquetRows(path)


def list_of_series(made: dict[str, Any]) -> Any:
    return [pd.Series(row) for row in rows(made)]


FORMS: dict[str, Any] = {
    "array": rows,
    "list": lambda made: rows(made).tolist(),
    "array of objects": lambda made: rows(made).astype(object),
    "masked": masked,
    "pandas": pd.DataFrame,
    "pandas' own types": lambda made: pd.DataFrame(made).convert_dtypes(),
    "pyarrow": pa.table,
    "polars": lambda made: pl.DataFrame(made, strict=False),
    "list of series": list_of_series,
    "parquet": in_a_file,
}


@pytest.mark.claim("STORE")
@pytest.mark.parametrize("form", FORMS)
def test_a_retry_is_known_and_another_body_is_refused(
    stored: Any, form: str, tmp_path: Path
) -> None:
    make = functools.partial(in_a_file, folder=tmp_path) if form == "parquet" else FORMS[form]
    first = stored.predict(make(plain()), request_id=form)
    given = stored.answered_
    assert stored.predict(make(plain()), request_id=form).tolist() == first.tolist()
    for other in (turned, middle, hidden):
        with pytest.raises(InvalidParameter, match="another request"):
            stored.predict(make(other()), request_id=form)
    if form in ("pandas", "pyarrow", "polars", "parquet"):
        exchanged = dict(zip("ba", plain().values(), strict=True))
        with pytest.raises(InvalidParameter, match="another request"):
            stored.predict(make(exchanged), request_id=form)
    assert stored.answered_ == given


@pytest.mark.claim("STORE")
def test_columns_of_a_retry_may_come_in_another_order(stored: Any) -> None:
    """They are found by their names, because the rows of fit had names."""
    table = FRAME[:3]
    first, given = stored.predict(table, request_id="order").tolist(), stored.answered_
    assert stored.predict(table[["b", "a"]], request_id="order").tolist() == first
    assert stored.answered_ == given
    with pytest.raises(InvalidParameter, match="another request"):
        stored.predict(table.rename(columns={"a": "b", "b": "a"}), request_id="order")


class Shown:
    """Something that always prints the same."""

    def __repr__(self) -> str:
        return "shown"


class Zone(dt.tzinfo):
    def utcoffset(self, when: dt.datetime | None) -> dt.timedelta:
        del when
        return dt.timedelta(hours=1)

    def dst(self, when: dt.datetime | None) -> None:
        del when

    def tzname(self, when: dt.datetime | None) -> str:
        del when
        return "zone"

    def __repr__(self) -> str:
        return "zone"


NOT_COMPARED = [Shown(), dt.datetime(2020, 1, 1, tzinfo=Zone()), memoryview(b"a"), {1: 2, "a": 3}]


@pytest.mark.claim("STORE")
def test_what_may_print_the_same_and_differ_is_not_compared(stored: Any) -> None:
    given = stored.answered_
    for odd in NOT_COMPARED:
        with pytest.raises(InvalidData, match="cannot be compared"):
            stored.predict([[0.1, odd]], request_id="odd")
    assert stored.answered_ == given
    stored.predict([[0.1, odd] for odd in NOT_COMPARED])  # without an id they are queries
    assert stored.answered_ == given + len(NOT_COMPARED)


TIMES = [dt.datetime(2020, 1, 1, tzinfo=zone) for zone in (None, dt.UTC, zoneinfo.ZoneInfo("UTC"))]
RECORDS = [
    np.array([(0.1, 0.9)], dtype=[(a, float), (b, float)]) for a, b in (("a", "b"), ("b", "a"))
]


@pytest.mark.claim("STORE")
@pytest.mark.parametrize(
    "bodies",
    [
        [[[0.1, time]] for time in TIMES],
        [[[0.1, one]] for one in (1, 1.0, True, "1", b"1", None, np.float32(1), 10**30)],
        [np.array([["a", "b"]], dtype=kind) for kind in ("U1", "S1", object)],
        [np.array([[0.1, 0.9]], dtype=kind) for kind in ("f4", "f8", ">f8")],
    ],
    ids=["times", "cells", "texts", "numbers"],
)
def test_types_names_and_zones_are_compared(stored: Any, bodies: list[Any]) -> None:
    name = f"types {len(bodies)} {type(bodies[0])} {bodies[0]!r}"
    stored.predict(bodies[0], request_id=name)
    given = stored.answered_
    stored.predict(bodies[0], request_id=name)
    for other in bodies[1:]:
        with pytest.raises(InvalidParameter, match="another request"):
            stored.predict(other, request_id=name)
    assert stored.answered_ == given


def test_names_of_fields_are_compared() -> None:
    assert len({canonical(one) for one in RECORDS}) == 2
    whole = [one.astype([(name, object) for name in one.dtype.names or ()]) for one in RECORDS]
    assert len({canonical(one) for one in (*whole, whole[0].copy())}) == 2


# Fingerprints of estimators

FACTOR = 2


def by_factor(table: Any) -> Any:
    """Multiply."""
    return helped(table) * FACTOR


def helped(table: Any) -> Any:
    return table + 1


def times(factor: float) -> Any:
    def inner(table: Any) -> Any:
        return table * factor

    return inner


class Times:
    __slots__ = ("factor",)

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, table: Any) -> Any:
        return table * self.factor


def squared(table: Any, power: int = 2) -> Any:
    return table**power


PAIRS: dict[str, tuple[Any, Any]] = {
    "constants": (lambda x: x * 2, lambda x: x * -3),
    "names": (lambda x: np.log1p(x) + 1, lambda x: np.expm1(x) + 1),
    "attributes": (lambda x: x.real, lambda x: x.imag),
    "inner": (lambda x: [one * 2 for one in x], lambda x: [one * 3 for one in x]),
    "defaults": (lambda x, k=2: x * k, lambda x, k=3: x * k),
    "keywords": (lambda x, *, k=2: x * k, lambda x, *, k=3: x * k),
    "closures": (times(2), times(3)),
    "partial": (functools.partial(squared, power=2), functools.partial(squared, power=3)),
    "compiled": (np.log1p, np.expm1),
    "built in": (math.sqrt, math.exp),
    "slots": (Times(2), Times(3)),
    "methods": (Times(2).__call__, Times(3).__call__),
    "getters": (operator.itemgetter(1), operator.itemgetter(2)),
    "sets": ({"a", "b"}, {"a", "c"}),
    "bytes": (b"a", b"b"),
}


def with_function(function: Any) -> Any:
    return make_pipeline(FunctionTransformer(function), KNeighborsClassifier())


@pytest.mark.parametrize("name", PAIRS)
def test_estimators_that_differ_have_different_fingerprints(name: str) -> None:
    one, other = (fingerprint(with_function(function)) for function in PAIRS[name])
    assert one != other
    assert one == fingerprint(with_function(PAIRS[name][0]))


def test_what_a_function_finds_in_its_module_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(with_function(by_factor))
    monkeypatch.setitem(globals(), "FRAME", None)  # not used by it
    assert fingerprint(with_function(by_factor)) == before
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "FACTOR", 3)
        assert fingerprint(with_function(by_factor)) != before
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "helped", lambda table: table + 2)
        assert fingerprint(with_function(by_factor)) != before


def test_what_a_function_says_about_itself_does_not_count() -> None:
    made: list[dict[str, Any]] = [{}, {}]
    for text, names in zip(("One text.", "Another text."), made, strict=True):
        exec(f'def found(x):\n    "{text}"\n    return x + 1', names)  # noqa: S102
    one, other = (fingerprint(with_function(names["found"])) for names in made)
    assert one == other


def test_an_oracle_takes_an_equal_estimator_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "oracle.db"
    made = EverlastingPredictor(with_function(times(2)), **{**SHARED, "shard_size": 20})
    made.fit(ROWS, (ROWS[:, 0] > 0.3).astype(int)).save_to(path)
    with pytest.raises(InvalidParameter, match="not the one that was stored"):
        cumae.open(path, estimator=with_function(times(-2)))
    stored = cumae.open(path, estimator=with_function(times(2)))
    assert stored.predict([[0.9]]).tolist() == [1]
    stored.close()


def test_fingerprints_of_earlier_versions_are_still_known() -> None:
    """Those knew the code of a function, without its constants."""
    given = with_function(times(2))
    plain = {"fingerprint": first_fingerprint(given), "written": None}
    assert estimator_from_plain(plain, given) is given
    with pytest.raises(InvalidParameter, match="not the one"):
        estimator_from_plain(plain, with_function(squared))
