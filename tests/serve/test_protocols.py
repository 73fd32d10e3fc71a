"""Wire formats: what clients send is read alike in all forms, and nothing else is taken."""

from __future__ import annotations

import gzip
import io
import json
import math
import struct
import zlib
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cumae.serve.bodies import read_json, unpack
from cumae.serve.errors import Refused
from cumae.serve.protocol import v1, v2
from cumae.serve.protocol.forms import CELLS, FRAME, NUMBERS, RowFormat
from cumae.serve.protocol.replies import Labels, tensor_reply

TWO = RowFormat(2, None, NUMBERS, [True, True])
NAMED = RowFormat(2, ["age", "bmi"], NUMBERS, [True, True])
MIXED = RowFormat(2, ["age", "job"], CELLS, [True, False])
FRAMED = RowFormat(2, ["age", "job"], FRAME, [True, False])
SIZES = v1.UnpackLimits(rows=1_000, unpacked=2**20)
DTYPES = sorted(set(v2.TYPES) - {"BOOL"})


def decoded(form: RowFormat, given: Any, data: bytes = b"") -> v2.Wish:
    head = json.dumps(given).encode()
    return v2.decode(form, head + data, len(head) if data else None, read_json)


def tensor(table: Any, kind: str, name: str = "input-0", **more: Any) -> dict[str, Any]:
    return {"name": name, "shape": list(np.shape(table)), "datatype": kind, **more}


def same(left: Any, right: Any) -> bool:
    return bool(np.array_equal(left, right, equal_nan=True))


FEW = settings(max_examples=50)


@FEW
@given(st.data(), st.sampled_from(DTYPES))
def test_json_and_binary_are_read_alike(data: st.DataObject, kind: str) -> None:
    """Also what a float cannot hold exactly: both become the same floats."""
    table = data.draw(hnp.arrays(np.dtype(v2.TYPES[kind]), (3, 2)))
    binary = {"binary_data_size": table.nbytes}
    head = {"inputs": [tensor(table, kind, parameters=binary)]}
    by_bytes = decoded(TWO, head, table.tobytes()).question.X
    flat = table.ravel().tolist()
    by_json = decoded(TWO, {"inputs": [tensor(table, kind, data=flat)]}).question.X
    nested = decoded(TWO, {"inputs": [tensor(table, kind, data=table.tolist())]}).question.X
    assert by_bytes.dtype == by_json.dtype == np.float64
    assert same(by_json, nested)
    with np.errstate(all="ignore"):
        wide = np.dtype(v2.TYPES[kind]).itemsize == 8 and kind != "FP64"
        good = (
            np.abs(table.astype(np.float64)) < 2.0**63 if wide else np.ones(table.shape, dtype=bool)
        )
    assert same(by_bytes[good], by_json[good])


def test_a_tensor_for_each_column_comes_in_any_order() -> None:
    age, bmi = [[30.0], [40.0]], [[22.5], [31.0]]
    inputs = [tensor(bmi, "FP64", "bmi", data=[22.5, 31.0])]
    inputs.append(tensor(age, "INT64", "age", data=[30, 40], parameters={"content_type": "np"}))
    assert same(decoded(NAMED, {"inputs": inputs}).question.X, [[30, 22.5], [40, 31]])


@pytest.mark.parametrize(
    ("kind", "cell"),
    [
        ("FP64", None),
        ("FP64", "0.5"),
        ("FP64", [1]),
        ("FP64", 10**400),
        ("FP32", 1e300),
        ("INT64", 0.5),
        ("INT64", math.nan),
        ("INT8", 128),
        ("UINT8", -1),
        ("BOOL", 2),
        ("INT64", {}),
    ],
)
@pytest.mark.claim("SERVE")
def test_cells_that_a_datatype_cannot_hold_are_unusable_and_not_refused(
    kind: str, cell: Any
) -> None:
    given = {"inputs": [tensor(np.zeros((2, 2)), kind, data=[1, 1, cell, 1])]}
    found = decoded(TWO, given).question.X
    assert found[0].tolist() == [1, 1]
    assert not np.isfinite(found[1, 0])


def test_a_long_text_among_numbers_takes_no_more_room() -> None:
    """numpy would make all cells as long as the longest."""
    rows: list[list[Any]] = [[1.0, 2.0]] * 5_000
    rows[7] = ["x" * 1_000_000, 2.0]
    assert TWO.from_rows(rows).nbytes == 80_000


def test_texts_come_as_json_or_as_bytes() -> None:
    words = ["nurse", "Bäcker", ""]
    packed = b"".join(struct.pack("<I", len(one.encode())) + one.encode() for one in words)
    ages = tensor(np.zeros((3, 1)), "FP64", "age", data=[1.0, None, 3.0])
    job = tensor(np.zeros((3, 1)), "BYTES", "job", parameters={"binary_data_size": len(packed)})
    by_bytes = decoded(MIXED, {"inputs": [ages, job]}, packed).question.X
    job = tensor(np.zeros((3, 1)), "BYTES", "job", data=words)
    assert by_bytes == decoded(MIXED, {"inputs": [ages, job]}).question.X
    assert by_bytes == [[1.0, "nurse"], [None, "Bäcker"], [3.0, ""]]
    frame = decoded(FRAMED, {"inputs": [job, ages]}).question.X
    assert list(frame.columns) == ["age", "job"]
    assert frame["job"].tolist() == words


def test_bytes_that_are_no_text_are_a_missing_cell() -> None:
    packed = struct.pack("<I", 2) + b"\xff\xfe"
    ages = tensor(np.zeros((1, 1)), "FP64", "age", data=[1.0])
    job = tensor(np.zeros((1, 1)), "BYTES", "job", parameters={"binary_data_size": len(packed)})
    assert decoded(MIXED, {"inputs": [ages, job]}, packed).question.X == [[1.0, None]]


GOOD: dict[str, Any] = {"name": "x", "shape": [1, 2], "datatype": "FP64", "data": [1, 2]}


@pytest.mark.parametrize(
    "given",
    [
        [],
        {},
        {"inputs": []},
        {"inputs": {}},
        {"inputs": [1]},
        {"inputs": [GOOD, GOOD]},
        {"inputs": [{**GOOD, "shape": [2, 1]}]},
        {"inputs": [{**GOOD, "shape": [1, 3], "data": [1, 2, 3]}]},
        {"inputs": [{**GOOD, "shape": [10**12, 10**12]}]},
        {"inputs": [{**GOOD, "shape": [-1, -2]}]},
        {"inputs": [{**GOOD, "shape": [1, 2, 1]}]},
        {"inputs": [{**GOOD, "shape": [True, 2]}]},
        {"inputs": [{**GOOD, "shape": "12"}]},
        {"inputs": [{**GOOD, "shape": [0, 2], "data": []}]},
        {"inputs": [{**GOOD, "datatype": "FP128"}]},
        {"inputs": [{**GOOD, "datatype": "BYTES", "data": ["a", "b"]}]},
        {"inputs": [{**GOOD, "datatype": ["FP64"]}]},
        {"inputs": [{**GOOD, "data": "12"}]},
        {"inputs": [{**GOOD, "data": [[1], [2, 3], [4]]}]},
        {"inputs": [{**GOOD, "name": 7}]},
        {"inputs": [{**GOOD, "parameters": []}]},
        {"inputs": [{**GOOD, "parameters": {"content_type": "base64"}}]},
        {"inputs": [{**GOOD, "parameters": {"binary_data_size": 16}}]},
        {"inputs": [GOOD], "id": 7},
        {"inputs": [GOOD], "id": "x" * 257},
        {"inputs": [GOOD], "outputs": [{"name": "other"}]},
        {"inputs": [GOOD], "outputs": [{"name": "answer", "parameters": {"classification": 2}}]},
        {"inputs": [GOOD], "outputs": 3},
        {"inputs": [GOOD], "parameters": 3},
        {"inputs": [GOOD, {"name": "user_ids", "shape": [2], "datatype": "BYTES", "data": ["a"]}]},
    ],
)
def test_a_wrong_envelope_is_refused(given: Any) -> None:
    with pytest.raises(Refused) as refused:
        decoded(TWO, given)
    assert refused.value.status == 400


@pytest.mark.parametrize("length", [b"", b"-1", b"1e3", b" 4", b"9" * 13, b"\xc2\xb2"])
def test_a_wrong_length_of_the_header_is_refused(length: bytes) -> None:
    with pytest.raises(Refused):
        v2.length_of_header(length)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)
FIELDS = st.sampled_from(["name", "shape", "datatype", "data", "parameters"])


@FEW
@given(st.dictionaries(FIELDS, JSON), st.binary(max_size=40), st.sampled_from([TWO, MIXED, FRAMED]))
@example({"data": [[]]}, b"", TWO)
def test_whatever_a_tensor_holds_is_read_or_refused(
    strange: dict[str, Any], data: bytes, form: RowFormat
) -> None:
    head = json.dumps({"inputs": [{**GOOD, **strange}]}).encode()
    try:
        found = v2.decode(form, head + data, len(head), read_json)
    except Refused:
        assert strange or data
    else:
        assert len(found.question.X) == found.question.n_rows > 0


@FEW
@given(st.binary(max_size=200), st.integers(0, 250), st.sampled_from([TWO, MIXED]))
def test_any_bytes_are_read_or_refused(body: bytes, length: int, form: RowFormat) -> None:
    for header in (None, length):
        with pytest.raises(Refused):
            v2.decode(form, body, header, read_json)


@FEW
@given(st.lists(st.text(max_size=8), max_size=5), st.binary(max_size=9), st.integers(0, 6))
def test_the_parser_of_binary_texts_never_reads_past_its_tensor(
    words: list[str], more: bytes, count: int
) -> None:
    packed = b"".join(struct.pack("<I", len(one.encode())) + one.encode() for one in words) + more
    given = tensor(
        np.zeros((count, 1)), "BYTES", "job", parameters={"binary_data_size": len(packed)}
    )
    ages = tensor(np.zeros((count, 1)), "FP64", "age", data=[0.0] * count)
    head = json.dumps({"inputs": [ages, given]}).encode()
    try:
        found = v2.decode(MIXED, head + packed, len(head), read_json).question.X
    except Refused:
        assert more or count != len(words) or not count
    else:
        assert len(found) == count
        if not more:
            assert [job for _, job in found] == words


@FEW
@given(JSON)
def test_the_reader_of_json_takes_what_python_takes(value: Any) -> None:
    text = json.dumps(value).encode()
    assert json.dumps(read_json(text)) == json.dumps(json.loads(text, parse_int=_whole))


def _whole(text: str) -> int | float:
    """Whole numbers above 64 bits may be read as floats."""
    short = len(text) < 30 and -(2**63) <= int(text) < 2**64
    return int(text) if short else float(text)


@given(st.binary(max_size=60) | st.text('[]{}",:0129eENaInfity-. \\u', max_size=60).map(str.encode))
@example(b"[" * 100_000)
@example(b'{"a":' * 5_000)
@example(b"-" + b"9" * 100_000)
def test_the_reader_of_json_reads_or_refuses(body: bytes) -> None:
    try:
        found = read_json(body)
    except Refused:
        with pytest.raises((ValueError, RecursionError)):
            json.loads(body.decode("utf-8"), parse_int=float)
    else:
        assert json.dumps(found) == json.dumps(json.loads(body, parse_int=_whole))


# MLflow and KServe's first protocol

ROWS = [[30.0, 22.5], [40.0, 31.0]]


@pytest.mark.parametrize(
    "given",
    [
        {"dataframe_split": {"index": [0, 1], "columns": ["age", "bmi"], "data": ROWS}},
        {"dataframe_split": {"columns": ["bmi", "age"], "data": [[22.5, 30], [31, 40]]}},
        {"dataframe_split": {"data": ROWS}},
        {"dataframe_records": [{"bmi": 22.5, "age": 30}, {"age": 40, "bmi": 31}]},
        {"instances": ROWS},
        {"instances": [{"bmi": 22.5, "age": 30}, {"age": 40, "bmi": 31}]},
        {"inputs": ROWS},
        {"inputs": {"bmi": [22.5, 31], "age": [30, 40]}},
        {"inputs": ROWS, "params": {}},
    ],
)
def test_all_bodies_of_mlflow_say_the_same(given: Any) -> None:
    body = json.dumps(given).encode()
    found = v1.decode_mlflow(NAMED, body, "application/json", read_json, SIZES)
    assert same(found.X, ROWS)


def test_csv_and_parquet_say_the_same() -> None:
    text = b"bmi,age\r\n22.5,30\r\n31, 40\r\n"
    assert same(v1.decode_mlflow(NAMED, text, v1.CSV, read_json, SIZES).X, ROWS)
    packed = io.BytesIO()
    pd.DataFrame({"bmi": [22.5, 31], "age": [30, 40]}).to_parquet(packed)
    found = v1.decode_mlflow(NAMED, packed.getvalue(), v1.PARQUET, read_json, SIZES)
    assert same(found.X, ROWS)
    words = b"age,job\n30,nurse\n,\n1e5,5\n"
    assert v1.decode_mlflow(MIXED, words, v1.CSV, read_json, SIZES).X == [
        [30.0, "nurse"],
        [None, None],
        [1e5, "5"],
    ]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{}", "application/json", 400),
        (b'{"inputs":[[1,2]],"instances":[[1,2]]}', "application/json", 400),
        (b'{"inputs":[[1,2]],"params":3}', "application/json", 400),
        (b'{"inputs":[]}', "application/json", 400),
        (b'{"inputs":3}', "application/json", 400),
        (b'{"inputs":{"age":[1]}}', "application/json", 400),
        (b'{"inputs":{"age":[1],"bmi":[1,2]}}', "application/json", 400),
        (b'{"inputs":[[1],[2]]}', "application/json", 400),
        (b'{"dataframe_split":{"columns":["age","age"],"data":[[1,2]]}}', "application/json", 400),
        (b'{"dataframe_split":{"columns":["age","no"],"data":[[1,2]]}}', "application/json", 400),
        (b'{"dataframe_records":[{"age":1,"bmi":2,"no":3}]}', "application/json", 400),
        (b"", v1.CSV, 400),
        (b"age,bmi\n", v1.CSV, 400),
        (b"age,no\n1,2\n", v1.CSV, 400),
        (b"\xff\xfe", v1.CSV, 400),
        (b"age,bmi\n" + b"1,2\n" * 2_000, v1.CSV, 413),
        (b"PAR1", v1.PARQUET, 400),
        (b"x", "application/x-www-form-urlencoded", 415),
    ],
)
def test_wrong_bodies_are_refused(body: bytes, kind: str, status: int) -> None:
    with pytest.raises(Refused) as refused:
        v1.decode_mlflow(NAMED, body, kind, read_json, SIZES)
    assert refused.value.status == status


def test_small_files_that_hold_many_rows_are_refused() -> None:
    packed = io.BytesIO()
    pd.DataFrame({"age": np.zeros(500_000), "bmi": np.zeros(500_000)}).to_parquet(packed)
    assert len(packed.getvalue()) < 10_000
    with pytest.raises(Refused) as refused:
        v1.decode_mlflow(NAMED, packed.getvalue(), v1.PARQUET, read_json, SIZES)
    assert refused.value.status == 413


@pytest.mark.claim("SERVE")
def test_rows_of_another_width_than_others_are_unusable_and_not_refused() -> None:
    given = json.dumps({"instances": [[1, 2], [1], 7, {"age": 1}, [1, "2"]]}).encode()
    found = v1.decode_v1(NAMED, given, read_json).X
    assert found[0].tolist() == [1, 2]
    assert np.isnan(found[1:]).any(axis=1).all()


@given(st.fixed_dictionaries({}, optional={"instances": JSON, "query_ids": JSON, "user_ids": JSON}))
@FEW
def test_whatever_instances_hold_is_read_or_refused(given: dict[str, Any]) -> None:
    for form in (NAMED, MIXED, FRAMED):
        try:
            found = v1.decode_v1(form, json.dumps(given).encode(), read_json)
        except Refused:
            continue
        else:
            assert len(found.X) == len(given["instances"])


# Replies

CLASSES = [[0, 1], ["no", "yes"], ["n", 'a "quoted" Ä\n', "-1000"], [False, True], [0.5, 10.25]]


@FEW
@given(st.data(), st.sampled_from(CLASSES), st.booleans(), st.integers(1, 30))
@pytest.mark.claim("SERVE")
def test_the_length_of_a_reply_follows_from_the_number_of_rows(
    data: st.DataObject, classes: list[Any], binary: bool, count: int
) -> None:
    kind = np.int64 if isinstance(classes[0], int) and not isinstance(classes[0], bool) else object
    draw = st.lists(st.sampled_from([*classes, -1]), min_size=count, max_size=count)
    labels, head = Labels(classes), {"model_name": "m", "id": "a"}
    found = set()
    for _ in range(2):
        answers = np.array([*data.draw(draw), None], dtype=object)[:-1].astype(kind)
        body, size = tensor_reply(labels, answers, head, binary=binary)
        found.add(len(body))
        told = json.loads(body[:size] if binary else body)
        assert told["outputs"][0]["shape"] == [count]
        read = told["outputs"][0]["data"] if not binary else _read(body[size:], labels.datatype)
        whole = labels.datatype == "INT64"
        assert read == [int(one) if whole else str(one) for one in answers]
        assert len(labels.json_values(answers).encode()) == len(
            labels.json_values(answers[::-1]).encode()
        )
    assert len(found) == 1


def _read(data: bytes, datatype: str) -> list[Any]:
    if datatype == "INT64":
        return list(np.frombuffer(data, "<i8").tolist())
    found = []
    while data:
        size = int.from_bytes(data[:4], "little")
        found.append(data[4 : 4 + size].decode())
        data = data[4 + size :]
    return found


# Packed bodies


def test_gzip_is_unpacked_up_to_a_limit() -> None:
    assert unpack(gzip.compress(b"abc") + gzip.compress(b"def"), 6) == b"abcdef"
    for body, status in [
        (gzip.compress(b"abcdefg"), 413),
        (gzip.compress(bytes(50_000_000)), 413),
        (gzip.compress(b"abc")[:-1], 400),
        (gzip.compress(b"abc") + b"!", 400),
        (zlib.compress(b"abc"), 400),
        (b"", 400),
    ]:
        with pytest.raises(Refused) as refused:
            unpack(body, 6)
        assert refused.value.status == status
