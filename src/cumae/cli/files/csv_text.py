"""CSV as text: every cell stays the text that it is, independent of the other cells.

Nothing is inferred from cells. The separator follows from the header. A file of private rows is
read strictly: the first row that is damaged is refused, and the message names it. A file of
protected queries is read leniently, line by line: a damaged line is one unusable query, and changes
neither how the others are read nor whether they are answered.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

import typer

from cumae.claims import claim
from cumae.errors import InvalidData

# What stands for a missing cell in CSV files, unless it is a declared category of its column.
MISSING_TEXTS = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None")
SEPARATORS = ",;\t|"
LONGEST_CELL = 1 << 24  # characters
MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True)
class CsvForm:
    """The way a CSV file is written.

    Parameters
    ----------
    encoding : str, or None
        Its encoding; None for UTF-8, or UTF-16 if a byte-order mark says so.
    separator : str, or None
        What stands between cells; None for what the header suggests.
    """

    encoding: str | None = None
    separator: str | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise typer.BadParameter(
                "give one character, such as ';' or $'\\t'.", param_hint="--separator"
            )
        if not is_encoding(self.encoding or "utf-8"):
            raise typer.BadParameter(
                f"{self.encoding!r} is no encoding; latin-1, cp1252 and utf-16 are some.",
                param_hint="--encoding",
            )

    def filled(self, encoding: str | None, separator: str | None) -> CsvForm:
        """Return the same with what a schema declares, where the command line says nothing."""
        return CsvForm(self.encoding or encoding, self.separator or separator)

    def encoding_of(self, start: bytes) -> str:
        """Return the encoding of a file, by what was said and by its first bytes."""
        if self.encoding is None:
            return MARKS.get(start[:2], "utf-8-sig")
        usual = codecs.lookup(self.encoding).name == "utf-8"
        return "utf-8-sig" if usual else self.encoding


def is_encoding(name: str) -> bool:
    """Tell whether a text can be written in an encoding of this name."""
    try:
        return "a".encode(name).decode(name) == "a"
    except (LookupError, ValueError):
        return False


class CsvText:
    """A CSV file: its header, and then its rows one by one.

    Parameters
    ----------
    stream : binary stream
        The file.
    name : str
        Its name, for messages.
    form : CsvForm
        How it is written.
    lenient : bool
        Whether a row is one line, and a damaged one is marked and not refused.
    """

    def __init__(
        self, stream: io.BufferedReader, name: str, form: CsvForm, *, lenient: bool = False
    ) -> None:
        csv.field_size_limit(LONGEST_CELL)
        self.name = name
        self._encoding = form.encoding_of(stream.peek(2)[:2])
        self._stream, self._lenient = stream, lenient
        if lenient:
            self._need_lines()
        else:
            # Bytes that are none of the encoding mark their cell, so that it can be named.
            errors = "strict" if self._encoding == "utf-16" else "surrogateescape"
            self._text = io.TextIOWrapper(stream, self._encoding, errors, newline="\n")
        first = self._first_line()
        self.separator = form.separator or _separator(first)
        # The header of protected queries is one line: it must not go on in a query.
        lines = iter([first]) if lenient else self._lines(first)
        self._reader = csv.reader(lines, delimiter=self.separator, strict=True)
        self.names = self._header()

    def close(self) -> None:
        """Let go of the stream, which whoever opened it closes."""
        if not self._lenient:
            self._text.detach()

    def _need_lines(self) -> None:
        """Refuse encodings in which a line break is more than one byte."""
        if "\n".encode(self._encoding.removesuffix("-sig")) != b"\n":
            raise InvalidData(
                f"{self.name} has queries that are protected, and each line must stand by itself; "
                "write the file in UTF-8, and give --encoding utf-8."
            )

    def _first_line(self) -> str:
        first = next(self._decoded(), "")
        if not first.strip("\r\n\0\ufeff \t"):
            raise InvalidData(f"{self.name} is empty; its first line must name the columns.")
        return first

    @claim("FILES")
    def _decoded(self) -> Iterator[str]:
        """Yield the lines; where damage is no error, each one is decoded by itself."""
        if self._lenient:
            for raw in self._stream:
                yield raw.decode(self._encoding, "replace")
            return
        try:
            for line in self._text:  # noqa: UP028 - `yield from` closes the file with the generator
                yield line
        except UnicodeError:
            raise InvalidData(self._undecodable("")) from None

    def _lines(self, first: str) -> Iterator[str]:
        yield first
        yield from self._decoded()

    def _header(self) -> list[str]:
        try:
            names = [name.strip() for name in next(self._reader)]
        except csv.Error:
            names = []
        if not names or self._reader.line_num > 1:  # what follows the first line is a row's
            raise InvalidData(
                f"{self.name}: the header has a quote that is not closed in its line, or text "
                "after one."
            )
        if any(map(undecoded, names)):
            raise InvalidData(self._undecodable(", the header,"))
        empty = [place + 1 for place, name in enumerate(names) if not name]
        if empty:
            raise InvalidData(
                f"{self.name}: column {empty[0]} has no name. Name all columns; pandas leaves out "
                "the numbers of rows with index=False."
            )
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidData(
                f"{self.name} has several columns named {', '.join(twice)}; rename them."
            )
        return names

    def rows(self) -> Iterator[tuple[list[str], int, bool]]:
        """Yield the cells of each row, its last line in the file, and whether it is damaged."""
        yield from self._lenient_rows() if self._lenient else self._strict_rows()

    def _strict_rows(self) -> Iterator[tuple[list[str], int, bool]]:
        count, width = 0, len(self.names)
        while True:
            begin = self._reader.line_num + 1
            try:
                cells = next(self._reader, None)
            except csv.Error:
                raise InvalidData(
                    f"{self._place(count, begin)} has a quote that is not closed, text after a "
                    "closed one, or a cell that is too long."
                ) from None
            if cells is None:
                return
            if not cells and width > 1:
                continue  # an empty line
            cells = cells or [""]
            line = self._reader.line_num
            if len(cells) != width:
                raise InvalidData(
                    f"{self._place(count, line)} has {len(cells)} cells, but the header has "
                    f"{width}; a cell that holds {self.separator!r} needs quotes."
                )
            if not all(map(str.isascii, cells)):
                self._check_decoded(cells, f"row {count + 1} (line {line}), column ")
            yield cells, line, False
            count += 1

    def _check_decoded(self, cells: list[str], where: str) -> None:
        for name, cell in zip(self.names, cells, strict=True):
            if undecoded(cell):
                raise InvalidData(self._undecodable(f", {where}{name},"))

    def _place(self, row: int, line: int) -> str:
        return f"{self.name}, row {row + 1} (line {line})"

    def _undecodable(self, where: str) -> str:
        encoding = self._encoding.removesuffix("-sig").upper()
        return (
            f"{self.name}{where} is not written in {encoding}; say how with --encoding, such as "
            "latin-1 or cp1252, or in the schema."
        )

    @claim("FILES")
    def _lenient_rows(self) -> Iterator[tuple[list[str], int, bool]]:
        """Each line is a row by itself, also an empty one: no line changes what another one is."""
        width = len(self.names)
        for number, line in enumerate(self._decoded(), 2):
            cells = self._line(line)
            damaged = len(cells) != width
            yield ([""] * width if damaged else cells), number, damaged

    @claim("FILES")
    def _line(self, line: str) -> list[str]:
        try:
            line.encode()  # some encodings can write halves of letters, which no table holds
            found = list(csv.reader([line.rstrip("\r\n")], delimiter=self.separator, strict=True))
        except (csv.Error, UnicodeEncodeError):
            return []
        return found[0] if len(found) == 1 else []


def undecoded(text: str) -> bool:
    """Tell whether a text holds bytes that are none of its encoding."""
    return not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)


def _separator(header: str) -> str:
    """Return the separator that makes the most cells of a header; a comma if several do."""

    def cells(separator: str) -> int:
        try:
            return len(next(csv.reader([header.rstrip("\r\n")], delimiter=separator)))
        except (csv.Error, StopIteration):
            return 0

    return max(SEPARATORS, key=cells)
