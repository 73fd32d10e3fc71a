"""Schema files: what each column holds, declared by the owner of the rows in TOML.

::

    [file]
    encoding = "cp1252"
    decimal = ","

    [columns]
    age = {low = 17, high = 90}
    job = {categories = ["baker", "nurse"], missing = true}
    sex = {codes = {1 = "male", 2 = "female"}}
    born = {first = 1920-01-01, last = 2020-01-01, format = "%d.%m.%Y"}
    id = "leave out"

``[file]`` says how CSV is written, and holds for all columns that say nothing else.
"""

from __future__ import annotations

import json
import math
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cumae.cli.files.csv_text import CsvForm, is_encoding
from cumae.cli.files.drafts import COMPLETE, FORMS, LEFT_OUT, toml_key
from cumae.cli.files.tables import TableHead
from cumae.data import Columns
from cumae.data.declared import declared_column
from cumae.data.readings import canonical
from cumae.data.texts import Written, number_in
from cumae.errors import InvalidData, InvalidParameter

# The entries of each form, without "missing"; the first ones must be there.
OF_NUMBERS, OF_DATES = {"decimal", "thousands"}, {"format"}  # how they are written as text
ENTRIES: tuple[tuple[set[str], set[str]], ...] = (
    ({"low", "high"}, {"step", *OF_NUMBERS}),
    ({"numbers"}, OF_NUMBERS),
    ({"categories"}, set()),
    ({"codes"}, set()),
    ({"boolean"}, {"yes", "no"}),
    ({"yes", "no"}, set()),
    ({"since"}, OF_DATES),
    ({"first", "last"}, OF_DATES),
    ({"ordered"}, {"max_bytes"}),
)
OF_FILE = {"encoding", "separator", *OF_NUMBERS, *OF_DATES}
# Columns of these kinds cannot be read unless they are declared.
TO_DECLARE = {"text", "objects", "dates", "durations", "bytes"}


@dataclass(frozen=True)
class SchemaFile:
    """The declared columns of a table.

    Parameters
    ----------
    name : str, or None
        Where it was declared, for messages; None if there is no schema.
    declared : dict from str to dict
        The entries of each column that is declared.
    left_out : set of str
        Columns from which nothing is learnt.
    file : dict from str to str
        How CSV is written: ``encoding``, ``separator``, and what holds for all columns.
    """

    name: str | None = None
    declared: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    file: Mapping[str, str] = field(default_factory=dict)

    def form(self, given: CsvForm) -> CsvForm:
        """Return how CSV is written: what the command line says goes before the schema."""
        return given.filled(self.file.get("encoding"), self.file.get("separator"))

    def columns_alone(self) -> Columns:
        """Return the declared columns, as those of a CSV file."""
        names = list(self.declared)
        declared = {name: self._column(name, self.declared[name], "text") for name in names}
        return Columns(declared, names, len(names))

    def _column(self, name: str, entries: Mapping[str, Any], kind: str) -> Any:
        """Return what is declared about one column, with what holds for the whole file."""
        wanted = OF_DATES if {"since", "first"} & set(entries) else OF_NUMBERS
        if not {"since", "first", "low", "numbers"} & set(entries):
            wanted = set()
        shared = {entry: self.file[entry] for entry in wanted if entry in self.file}
        declaration = as_declared({**shared, **entries}, kind)
        try:
            found = declared_column(name, declaration)
        except InvalidParameter:
            return declaration  # Columns refuses it, together with others
        encoding, separator = self.file.get("encoding"), self.file.get("separator")
        written = replace(found.written, encoding=encoding, separator=separator)
        return replace(found, written=written)

    def columns_for(self, table: TableHead, label: str) -> Columns:
        """Return the columns of a table that are learnt from, by names and types alone.

        Parameters
        ----------
        table : TableHead
            Names and types of the table.
        label : str
            The column of the labels, which is none of them.

        Raises
        ------
        InvalidParameter
            If declarations are missing, name no column, or do not fit the types of the file.
        """
        strange = sorted({*self.declared, *self.left_out} - {*table.names, label})
        if strange:
            raise InvalidParameter(
                f"{self.name} declares {', '.join(strange)}, but {table.name} has "
                f"{', '.join(table.names)}."
            )
        names = [name for name in table.names if name != label and name not in self.left_out]
        if not names:
            raise InvalidParameter(f"{self.name} leaves out all columns; nothing is left to learn.")
        kinds = table.kinds(names)
        lacking = [
            name
            for name, kind in zip(names, kinds, strict=True)
            if name not in self.declared and kind in TO_DECLARE
        ]
        if lacking:
            raise InvalidParameter(_to_declare(self.name, table.name, lacking, label))
        # What a type says is declared as well, so that a CSV file of queries is read in this way.
        known = {"numbers": {"numbers": True}, "booleans": {"boolean": True}}
        declared = {
            name: self._column(name, self.declared.get(name) or known[kind], kind)
            for name, kind in zip(names, kinds, strict=True)
            if name in self.declared or kind in known
        }
        return Columns(declared, names, len(names), kinds)


def _to_declare(schema: str | None, table: str, names: Sequence[str], label: str) -> str:
    never = "what columns hold is never read from private rows"
    if schema is None:
        labelled = f" --label {shlex.quote(label)}" if label else ""
        return (
            f"nothing is declared about {', '.join(names)}, and {never}: draft a schema with "
            f"`cumae schema {shlex.quote(table)}{labelled} -o schema.toml`, complete it, and give "
            "it as --schema schema.toml. Parquet columns of numbers need none."
        )
    lines = " ".join(f"{toml_key(name)} = {json.dumps(COMPLETE)}" for name in names)
    return (
        f"{schema} does not declare {', '.join(names)} of {table}, and {never}. Add these lines: "
        f"{lines} with one of these instead of {COMPLETE}: {FORMS}."
    )


def read_schema(path: str) -> SchemaFile:
    """Read a schema file.

    Raises
    ------
    InvalidParameter
        If it is no schema, or a line still waits to be completed.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InvalidData(f"there is no file {path}.") from None
    except OSError as error:
        raise InvalidData(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidParameter(f"{path} is not written in UTF-8; TOML is.") from None
    return parse_schema(text, path)


def parse_schema(text: str, path: str) -> SchemaFile:
    """Return what the text of a schema file says; ``path`` is its name, for messages."""
    try:
        plain = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidParameter(f"{path} is no schema in TOML: {error}.") from None
    columns = plain.get("columns")
    if not isinstance(columns, dict) or not set(plain) <= {"columns", "file"}:
        raise InvalidParameter(
            f"{path} must have the table [columns], and may have [file], and nothing else; `cumae "
            "schema` drafts one."
        )
    file = _of_file(path, plain.get("file", {}))
    waiting = [name for name, value in columns.items() if value == COMPLETE]
    if waiting:
        raise InvalidParameter(
            f"{path}: complete the line of {', '.join(waiting)}, with one of these: {FORMS}."
        )
    left_out = frozenset(name for name, value in columns.items() if value == LEFT_OUT)
    declared = {
        name: _entries(path, name, value) for name, value in columns.items() if name not in left_out
    }
    return SchemaFile(path, declared, left_out, file)


def _of_file(path: str, given: Any) -> dict[str, str]:
    """Return what the table [file] says about how CSV is written."""
    right = isinstance(given, dict) and all(isinstance(value, str) for value in given.values())
    if not right or not set(given) <= OF_FILE:
        raise InvalidParameter(
            f"{path}: [file] says how CSV is written, by texts: encoding, separator, decimal, "
            'thousands and format. An example is decimal = ",".'
        )
    if not is_encoding(given.get("encoding", "utf-8")):
        raise InvalidParameter(
            f"{path}: [file] has encoding = {given['encoding']!r}, which is no encoding; latin-1, "
            "cp1252 and utf-16 are some."
        )
    if len(given.get("separator", ",")) != 1 or given.get("separator") in ('"', "\r", "\n"):
        raise InvalidParameter(f"{path}: [file] must have one character as separator.")
    checked = {entry: given[entry] for entry in OF_NUMBERS & set(given)}
    Written.declared("[file]", checked, "numbers")
    Written.declared("[file]", {e: given[e] for e in OF_DATES & set(given)}, "dates")
    return dict(given)


def _entries(path: str, name: str, value: Any) -> dict[str, Any]:
    """Return the entries of one column; a list stands for categories."""
    found = {"categories": value} if isinstance(value, list) else value
    if isinstance(found, dict):
        given = set(found) - {"missing"}
        right = any(must <= given <= must | may for must, may in ENTRIES)
        marks = [found.get(mark, True) for mark in ("missing", "numbers", "boolean")]
        if right and all(isinstance(mark, bool) for mark in marks) and marks[1] and marks[2]:
            return found
    raise InvalidParameter(f"{path}: {name} has another form than {FORMS}.")


def as_declared(entries: Mapping[str, Any], kind: str) -> Any:
    """Return the entries of a column in the form that ``cumae.Columns`` takes.

    Parameters
    ----------
    entries : dict from str to object
        What the schema says.
    kind : str
        What the column can hold by its type. Categories of text are written as text, so that those
        of a CSV file may be given as numbers.
    """
    missing = bool(entries.get("missing", False))
    if isinstance(entries.get("codes"), dict):  # whose keys are text in TOML
        labels = {_code(code, kind): label for code, label in entries["codes"].items()}
        return {"codes": labels, "missing": missing}
    if "categories" not in entries:
        return dict(entries)
    given = entries["categories"]
    if not isinstance(given, list):
        return dict(entries)  # which Columns refuses
    if kind in ("text", "objects"):
        given = [str(canonical(one)).strip() for one in given]
    return {"categories": given, "missing": missing}


def _code(code: str, kind: str) -> Any:
    """Return a code as a column of this kind holds it: text, or a number."""
    found = number_in(code) if kind == "numbers" else math.nan
    if math.isnan(found):
        return code.strip()
    return int(found) if found == int(found) else found
