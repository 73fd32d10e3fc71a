"""KServe's first protocol, and the bodies of MLflow's scoring server."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from cumae.claims import claim
from cumae.errors import MissingPackage
from cumae.extras import pa, pq
from cumae.serve.errors import bad, too_large, unsupported
from cumae.serve.protocol.forms import RowFormat, RowsAsked, asked

JsonReader = Callable[[bytes], Any]
JSON = ("application/json", "")
CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
FRAMES = ("dataframe_split", "dataframe_records", "instances", "inputs")
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
IDS = ("query_ids", "user_ids")
UNHELD = (ValueError, OverflowError)  # of dates before the year 1, or after 9999


class UnpackLimits(NamedTuple):
    """Limits of what is unpacked from a body.

    Parameters
    ----------
    rows : int
        Most rows of a request.
    unpacked : int
        Most bytes.
    """

    rows: int
    unpacked: int


def decode_v1(form: RowFormat, body: bytes, read_json: JsonReader) -> RowsAsked:
    """Return what a request of KServe's first protocol asks."""
    given = read_json(body)
    if not isinstance(given, dict) or not isinstance(given.get("instances"), list):
        raise bad("the body must be a JSON object with instances, a list of rows")
    return asked(_from_list(form, given["instances"]), *_ids(given))


def decode_mlflow(
    form: RowFormat, body: bytes, content_type: str, read_json: JsonReader, sizes: UnpackLimits
) -> RowsAsked:
    """Return what a request to ``/invocations`` asks.

    Parameters
    ----------
    form : RowFormat
        What the model takes.
    body : bytes
        The body, unpacked.
    content_type : str
        Its type, without parameters.
    read_json : callable
        Returns what JSON holds.
    sizes : UnpackLimits
        Limits.
    """
    if content_type == CSV:
        return asked(_from_csv(form, body, sizes))
    if content_type == PARQUET:
        return asked(_from_parquet(form, body, sizes))
    if content_type not in JSON:
        raise unsupported(f"the content type must be {JSON[0]}, {CSV} or {PARQUET}")
    given = read_json(body)
    found = [name for name in FRAMES if isinstance(given, dict) and name in given]
    if len(found) != 1:
        raise bad(f"the body must be a JSON object with one of {', '.join(FRAMES)}")
    params = given.get("params") or {}
    if not isinstance(params, dict):
        raise bad("params must be an object")
    content = given[found[0]]
    X = _from_split(form, content) if found[0] == FRAMES[0] else _from_list(form, content)
    return asked(X, *_ids(params))


def _ids(given: dict[str, Any]) -> list[Any]:
    return [given.get(name) for name in IDS]


def _from_list(form: RowFormat, content: Any) -> Any:
    """Return rows: lists of cells, objects with a cell for each column, or lists by column."""
    if isinstance(content, dict):
        if not all(isinstance(column, list) for column in content.values()):
            raise bad("each column must be a list")
        return form.from_columns(content)
    if not isinstance(content, list):
        raise bad("rows must be a list")
    if not content:
        raise bad("there is no row in this request")
    if isinstance(content[0], dict):
        return form.from_records(content)
    return form.from_rows(content)


def _from_split(form: RowFormat, content: Any) -> Any:
    if not isinstance(content, dict) or not isinstance(content.get("data"), list):
        raise bad("dataframe_split must be an object with columns and data")
    rows, names = content["data"], content.get("columns")
    if names is None:
        return form.from_rows(rows)
    return _from_named_rows(form, names, rows)


def _from_named_rows(form: RowFormat, names: Any, rows: list[Any]) -> Any:
    """Return rows whose cells stand in the order of some names."""
    if not isinstance(names, list) or len({str(name) for name in names}) != len(names):
        raise bad("columns must be a list of different names")
    order = [str(name) for name in names]
    if order == form.titles or (form.names is None and len(order) == form.width):
        return form.from_rows(rows)
    width = len(order)
    fitting = [
        row if isinstance(row, list) and len(row) == width else [None] * width for row in rows
    ]
    columns = {name: [row[place] for row in fitting] for place, name in enumerate(order)}
    return form.from_columns(columns)


@claim("SERVE")
def _from_csv(form: RowFormat, body: bytes, sizes: UnpackLimits) -> Any:
    """Return the rows of CSV with a line of names; numbers are read where numbers belong."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise bad("text/csv must be UTF-8") from None
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # a long cell is no fault of rows
    lines = csv.reader(io.StringIO(text, newline=""))
    try:
        names = next(lines, None)
        if not names:
            raise bad("text/csv must begin with a line of names")
        rows: list[list[str]] = []
        for row in lines:
            if row:
                rows.append(row)
            if len(rows) > sizes.rows:
                raise too_large("more rows than this server takes in one request")
    except csv.Error:
        raise bad("text/csv cannot be read") from None
    place_of = {name: place for place, name in enumerate(form.titles)}
    by_place = form.names is None and len(names) == form.width
    places = [at if by_place else place_of.get(name, -1) for at, name in enumerate(names)]
    numeric = [place >= 0 and form.numeric[place] for place in places]
    read = [
        [_number(cell) if one else (cell or None) for one, cell in zip(numeric, row, strict=False)]
        if len(row) == len(numeric)
        else []
        for row in rows
    ]
    return _from_named_rows(form, names, read)


def _number(cell: str) -> float:
    return float(cell) if len(cell) < 400 and NUMBER.fullmatch(cell) else math.nan


def _from_parquet(form: RowFormat, body: bytes, sizes: UnpackLimits) -> Any:
    """Return the rows of a Parquet file, piece by piece, so that none is larger than allowed."""
    columns: dict[str, list[Any]] = {}
    count = n_bytes = 0
    try:
        file = pq.ParquetFile(io.BytesIO(body))
        facts = file.metadata
        if facts.num_rows > sizes.rows:
            raise too_large("more rows than this server takes in one request")
        groups = [facts.row_group(place) for place in range(facts.num_row_groups)]
        if sum(group.total_byte_size for group in groups) > sizes.unpacked:  # as the file says
            raise too_large("more bytes than this server takes in one request")
        columns = {name: [] for name in file.schema_arrow.names}
        if len(columns) != len(file.schema_arrow.names):
            raise bad("the columns of the Parquet file must have different names")
        for piece in file.iter_batches(batch_size=1_024, use_threads=False):
            count, n_bytes = count + piece.num_rows, n_bytes + piece.nbytes
            if count > sizes.rows or n_bytes > sizes.unpacked:
                raise too_large("more rows or bytes than this server takes in one request")
            for name, column in zip(piece.schema.names, piece.columns, strict=True):
                columns[name] += _values(column)
    except MissingPackage:
        raise unsupported("this server cannot read Parquet files") from None
    except (pa.ArrowException, OSError, ValueError, OverflowError):
        raise bad("the Parquet file cannot be read") from None
    if form.names is None and len(columns) == form.width:
        columns = dict(zip(form.titles, columns.values(), strict=True))
    return form.from_columns({name: [_written(one) for one in columns[name]] for name in columns})


@claim("SERVE")
def _values(column: Any) -> list[Any]:
    """Return the cells of a column; a date that Python cannot hold is missing."""
    try:
        found: list[Any] = column.to_pylist()
    except UNHELD:
        return [_value(one) for one in column]
    return found


def _value(cell: Any) -> Any:
    try:
        return cell.as_py()
    except UNHELD:
        return None


def _written(cell: Any) -> Any:
    """Return a date or a time of Parquet as its text."""
    return cell.isoformat() if hasattr(cell, "isoformat") else cell
