"""The Open Inference Protocol, version 2, over REST: tensors in JSON or as bytes after it."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.serve.errors import Refused, bad
from cumae.serve.protocol.forms import RowFormat, RowsAsked, asked, cells, floats, plain_floats
from cumae.serve.protocol.replies import OUTPUT

JsonReader = Callable[[bytes], Any]
BYTES = "BYTES"
TYPES = {
    "BOOL": "?",
    "UINT8": "<u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "<i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
}
CONTENT_TYPES = {None, "np", "pd", "str", "datetime"}  # of MLServer's codecs
IDS = ("query_ids", "user_ids")  # names of tensors with ids, unless a column has such a name
LENGTH_BYTES = 4  # before each text of a binary tensor
MOST_INPUTS = 10_000
LARGEST = 2**53  # below which a float holds every whole number


class Wish(NamedTuple):
    """A request that was read.

    Parameters
    ----------
    question : RowsAsked
        Its rows.
    id : str
        Its id for retries; empty if it has none.
    binary : bool
        Whether the answers are wanted as bytes.
    """

    question: RowsAsked
    id: str
    binary: bool


class _Tensor(NamedTuple):
    name: str
    shape: list[int]
    column: Any  # floats, or cells


def decode(form: RowFormat, body: bytes, header_length: int | None, read_json: JsonReader) -> Wish:
    """Return what a request asks.

    Parameters
    ----------
    form : RowFormat
        What the model takes.
    body : bytes
        The body, unpacked.
    header_length : int, or None
        The length of its JSON, where binary data follow.
    read_json : callable
        Returns what JSON holds.

    Raises
    ------
    Refused
        If the envelope is wrong.
    """
    data = memoryview(b"")
    if header_length is not None:
        if not 0 < header_length <= len(body):
            raise bad("Inference-Header-Content-Length does not fit the body")
        body, data = body[:header_length], memoryview(body)[header_length:]
    given = read_json(body)
    if not isinstance(given, dict):
        raise bad("the body must be a JSON object with inputs")
    inputs = given.get("inputs")
    if not isinstance(inputs, list) or not 0 < len(inputs) <= MOST_INPUTS:
        raise bad("inputs must be a list of tensors")
    tensors = []
    for one in inputs:
        tensor, data = _tensor(one, data)
        tensors.append(tensor)
    if len(data):
        raise bad("more binary data than the tensors name")
    return Wish(_question(form, tensors), request_id(given.get("id")), _wants_binary(given))


def request_id(given: Any) -> str:
    """Return the id of a request; empty if it has none."""
    if given is None or given == "":
        return ""
    if not isinstance(given, str) or len(given) > 256:
        raise bad("id must be a text of 256 characters at most")
    return given


def _wants_binary(given: dict[str, Any]) -> bool:
    """Return whether answers are wanted as bytes; refuse outputs that there are not."""
    wanted = _parameters(given).get("binary_data_output") is True
    outputs = given.get("outputs")
    if outputs is None or outputs == []:
        return wanted
    if not isinstance(outputs, list) or len(outputs) > 1 or not isinstance(outputs[0], dict):
        raise bad(f"there is one output, {OUTPUT}")
    if outputs[0].get("name") != OUTPUT:
        raise bad(f"there is one output, {OUTPUT}")
    parameters = _parameters(outputs[0])
    if "classification" in parameters:
        raise bad("classification is not offered; the answer is a class")
    return parameters.get("binary_data", wanted) is True


def _parameters(given: dict[str, Any]) -> dict[str, Any]:
    found = given.get("parameters")
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise bad("parameters must be an object")
    return found


@claim("SERVE")
def _tensor(given: Any, data: memoryview) -> tuple[_Tensor, memoryview]:
    """Return a tensor, and the binary data that are left after it."""
    if not isinstance(given, dict):
        raise bad("each of inputs must be an object")
    name, kind, shape = given.get("name"), given.get("datatype"), given.get("shape")
    if not isinstance(name, str):
        raise bad("each tensor needs a name")
    if kind != BYTES and (not isinstance(kind, str) or kind not in TYPES):
        raise bad(f"datatype must be one of {', '.join([*TYPES, BYTES])}")
    if not isinstance(shape, list) or not all(type(one) is int and one >= 0 for one in shape):
        raise bad("shape must be a list of whole numbers")
    if len(shape) not in (1, 2):
        raise bad("shape must have one or two dimensions: rows and columns")
    parameters = _parameters(given)
    content = parameters.get("content_type")
    if not (content is None or (isinstance(content, str) and content in CONTENT_TYPES)):
        raise bad("content_type must be np, pd, str or datetime")
    size = parameters.get("binary_data_size")
    if size is None:
        return _Tensor(name, shape, _from_json(given.get("data"), kind, shape)), data
    if "data" in given:
        raise bad("a tensor has data or binary_data_size, not both")
    if type(size) is not int or not 0 <= size <= len(data):
        raise bad("binary_data_size does not fit the body")
    count = math.prod(shape)
    return _Tensor(name, shape, _from_bytes(data[:size], kind, count)), data[size:]


def _from_bytes(data: memoryview, kind: str, count: int) -> Any:
    """Return the cells of a binary tensor."""
    if kind == BYTES:
        return _texts(data, count)
    dtype = np.dtype(TYPES[kind])
    if len(data) != count * dtype.itemsize:
        raise bad("binary_data_size does not fit shape and datatype")
    if kind == "BOOL":  # any other byte than 0 is true
        return (np.frombuffer(data, dtype=np.uint8) != 0).astype(np.float64)
    found = np.frombuffer(data, dtype=dtype)
    with np.errstate(all="ignore"):
        column = found.astype(np.float64)
    return found if _is_long(column, kind) else column


def _texts(data: memoryview, count: int) -> list[Any]:
    """Return texts that stand after their lengths; one that is no UTF-8 is a missing cell."""
    found: list[Any] = []
    place, end = 0, len(data)
    if count * LENGTH_BYTES > end:
        raise bad("binary_data_size does not fit shape and datatype")
    for _ in range(count):
        start = place + LENGTH_BYTES
        size = int.from_bytes(data[place:start], "little")
        place = start + size
        if start > end or place > end:
            raise bad("the length of a text passes the end of its tensor")
        try:
            found.append(str(data[start:place], "utf-8"))
        except UnicodeDecodeError:
            found.append(None)
    if place != end:
        raise bad("binary_data_size does not fit shape and datatype")
    return found


def _from_json(data: Any, kind: str, shape: list[int]) -> Any:
    """Return the cells of a tensor in JSON, whose lists may be nested as its shape is."""
    if not isinstance(data, list):
        raise bad("each tensor needs data, a list")
    count = math.prod(shape)
    if len(data) != count or (len(shape) == 2 and shape[1] == 1 and _is_nested(data)):
        data = _flat(data, shape)
    if kind == BYTES:
        return [one if isinstance(one, str) else None for one in data]
    plain = plain_floats(data)
    column = floats(data) if plain is None else plain
    return _whole(data, kind) if _is_long(column, kind) else _within(column, kind)


def _is_nested(data: list[Any]) -> bool:
    return set(map(type, data)) == {list}


def _flat(data: list[Any], shape: list[int]) -> list[Any]:
    """Return nested rows one after the other; refuse those that do not fit the shape."""
    fits = len(shape) == 2 and len(data) == shape[0] and _is_nested(data)
    if not fits or not set(map(len, data)) <= {shape[1]}:
        raise bad("data do not fit shape")
    return list(chain.from_iterable(data))


def _within(column: Floats, kind: str) -> Floats:
    """Return numbers of JSON as their datatype holds them; what it cannot hold is missing."""
    dtype = np.dtype(TYPES[kind])
    if kind == "FP64":
        return column
    with np.errstate(all="ignore"):
        if dtype.kind == "f":
            return column.astype(dtype).astype(np.float64)
        low, high = (0, 1) if kind == "BOOL" else _ends(dtype)
        good = (column >= low) & (column <= high) & (column == np.floor(column))
    return np.where(good, column, np.nan)


def _is_long(column: Floats, kind: str) -> bool:
    """Return whether floats may make one of two whole numbers of 64 bits."""
    return kind in ("INT64", "UINT64") and bool((np.abs(column) >= LARGEST).any())


def _whole(data: list[Any], kind: str) -> Any:
    """Return numbers of JSON as whole numbers of 64 bits; what is none is missing."""
    info = np.iinfo(np.dtype(TYPES[kind]))
    read = [int(one) if isinstance(one, float) and one.is_integer() else one for one in data]
    found = np.empty(len(read), dtype=object)
    found[:] = [
        int(one) if isinstance(one, int) and info.min <= one <= info.max else None for one in read
    ]
    return found


def _ends(dtype: np.dtype[Any]) -> tuple[float, float]:
    info = np.iinfo(dtype)
    return float(info.min), float(info.max)


@claim("SERVE")
def _question(form: RowFormat, tensors: list[_Tensor]) -> RowsAsked:
    """Return the rows of tensors: one table, or one tensor for each column."""
    ids: dict[str, Any] = {}
    rows = []
    for one in tensors:
        if one.name in IDS and one.name not in (form.names or ()):
            if one.name in ids or not _is_column(one.shape):
                raise bad(f"{one.name} must be one tensor with one id for each row")
            ids[one.name] = _ids(one.column)
        else:
            rows.append(one)
    if not rows:
        raise bad("there is no row in this request")
    first = rows[0]
    if len(rows) == 1 and not (first.name in form.titles and _is_column(first.shape)):
        if not _is_column(first.shape):
            X = _from_table(form, first)
        elif form.width == 1:
            X = form.from_columns({form.titles[0]: _column(form, first, 0)})
        else:
            raise bad(f"a row has {form.width} columns here")
        return asked(X, **ids)
    columns: dict[str, Any] = {}
    titles = form.titles
    for one in rows:
        if one.name in columns or not _is_column(one.shape):
            raise bad("give one table, or one tensor of one column for each column")
        place = titles.index(one.name) if one.name in titles else -1
        columns[one.name] = _column(form, one, place)
    return asked(form.from_columns(columns), **ids)


def _is_column(shape: list[int]) -> bool:
    return len(shape) == 1 or shape[1] == 1


def _column(form: RowFormat, tensor: _Tensor, place: int) -> Any:
    if place >= 0 and form.numeric[place] and not isinstance(tensor.column, np.ndarray):
        raise bad("a column of numbers has the datatype BYTES; its metadata tell the right one")
    return tensor.column


def _from_table(form: RowFormat, tensor: _Tensor) -> Any:
    """Return the rows of a tensor with two dimensions."""
    n_rows, width = tensor.shape
    if width != form.width:
        raise bad(f"a row has {form.width} columns here")
    if isinstance(tensor.column, np.ndarray):
        return form.from_table(tensor.column.reshape(n_rows, width))
    if any(form.numeric):
        raise bad("a column of numbers has the datatype BYTES; its metadata tell the right one")
    table = {name: tensor.column[place::width] for place, name in enumerate(form.titles)}
    return form.from_columns(table)


def _ids(column: Any) -> list[Any]:
    """Return ids as texts or whole numbers; others are left as they are, and refused later."""
    return [
        int(one) if isinstance(one, float) and one.is_integer() else one for one in cells(column)
    ]


def length_of_header(value: bytes | None) -> int | None:
    """Return the number in the header Inference-Header-Content-Length."""
    if value is None:
        return None
    if not value.isdigit() or len(value) > 12:
        raise bad("Inference-Header-Content-Length must be a whole number")
    return int(value)


def metadata(form: RowFormat, name: str, version: str, datatype: str) -> dict[str, Any]:
    """Return what a client may know about a model's inputs and output.

    Parameters
    ----------
    form : RowFormat
        What the model takes.
    name, version : str
        Its name and version.
    datatype : str
        That of the answers.
    """
    inputs = [{"name": "rows", "datatype": "FP64", "shape": [-1, form.width]}]
    if form.names is not None or not all(form.numeric):
        kinds = ["FP64" if numeric else BYTES for numeric in form.numeric]
        inputs = [
            {"name": title, "datatype": kind, "shape": [-1, 1]}
            for title, kind in zip(form.titles, kinds, strict=True)
        ]
    return {
        "name": name,
        "versions": [version],
        "platform": "cumae",
        "inputs": inputs,
        "outputs": [{"name": OUTPUT, "datatype": datatype, "shape": [-1]}],
    }


__all__ = ["Refused", "Wish", "decode", "length_of_header", "metadata", "request_id"]
