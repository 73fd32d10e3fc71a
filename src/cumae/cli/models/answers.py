"""Queries of a file, their answers, and how these are written."""

from __future__ import annotations

import contextlib
import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.cli.files.csv_text import CsvForm
from cumae.cli.files.fitted import columns_of, features_for, form_for
from cumae.cli.files.messages import say
from cumae.cli.files.output import safe_row
from cumae.cli.files.source import title
from cumae.cli.files.tables import TableFile, TextRows, read_table_file
from cumae.data import RowSource, SomeRows
from cumae.errors import BudgetExhausted, InvalidParameter, RequestIdReused
from cumae.extras import pa, pq
from cumae.learners import Learner
from cumae.predictors import Call
from cumae.progress import Progress

BATCH = 10_000  # queries that are asked at a time


@dataclass(frozen=True)
class CheckedQueries:
    """A file of queries that passed every check, and who answers it.

    Parameters
    ----------
    fitted : Learner or Predictor
        Who answers.
    table : TableFile
        The queries with all columns of the file.
    features : RowSource
        The columns that are asked about.
    usable : array of bool
        Which queries can be read. Of those that are protected, nobody looks before they are asked.
    column : str
        Name of the column of answers.
    chances : bool
        Whether chances of classes are wanted.
    coverage : float, or None
        The share of numbers that intervals beside the answers are to hold.
    """

    fitted: Any
    table: TableFile
    features: RowSource
    usable: NDArray[np.bool_]
    column: str
    chances: bool
    coverage: float | None = None

    @classmethod
    def of(
        cls,
        fitted: Any,
        path: str,
        form: CsvForm,
        *,
        column: str = "answer",
        chances: bool = False,
        coverage: float | None = None,
        request: str | None = None,
    ) -> CheckedQueries:
        """Read queries, and refuse what all of them share: columns, and how many there are.

        Parameters
        ----------
        fitted : Learner or Predictor
            Who will answer.
        path : str
            The file of queries.
        form : CsvForm
            How CSV is written.
        column : str
            Name of the column of answers.
        chances : bool
            Whether chances of classes are wanted.
        coverage : float, or None
            As above.
        request : str, or None
            A name under which an oracle gives the same answers again.
        """
        protected = bool(getattr(fitted, "counts_unusable", False))
        if chances and not hasattr(fitted, "predict_proba"):
            raise InvalidParameter(
                f"a {type(fitted).__name__} gives no chances; leave out --chances."
            )
        if coverage is not None and not hasattr(fitted, "predict_interval"):
            raise InvalidParameter(
                f"a {type(fitted).__name__} predicts no number; leave out --interval."
            )
        say(f"Reading {title(path)} ...")
        columns = columns_of(fitted)
        table = read_table_file(path, form_for(columns, form), lenient=protected)
        if column in table.names:
            raise InvalidParameter(
                f"{table.name} has a column {column} already; name that of the answers with "
                "--column."
            )
        features = features_for(table, columns)
        usable = np.ones(features.n_rows, dtype=bool)
        if not protected:
            parts = [features.read(places, columns) for places in _batches(features.n_rows)]
            usable = np.concatenate([np.isfinite(part).all(axis=1) for part in parts])
        asking = cls(fitted, table, features, usable, column, chances, coverage)
        # One batch with a name may have been paid before; if it was not, the oracle refuses it.
        if request is None or asking.n_asked > BATCH:
            asking.need_enough()
        return asking

    @cached_property
    def copied(self) -> Any:
        """The queries with all columns, read once: what was written is what was asked."""
        return self.table.copied()

    @property
    def n_asked(self) -> int:
        """Number of queries that are asked."""
        return int(np.count_nonzero(self.usable))

    @property
    def left(self) -> float:
        """Number of answers that are left; infinite for a model, which is free."""
        return float(getattr(self.fitted, "remaining_", math.inf))

    def need_enough(self) -> None:
        """Refuse more queries than there are answers left, before any is asked."""
        if self.n_asked > self.left:
            raise BudgetExhausted(
                f"{self.table.name} has {self.n_asked:,} queries, but {self.left:,.0f} answers are "
                "left; ask fewer.",
                remaining=self.left,
                asked=self.n_asked,
            )

    def answers(self, request: str | None = None) -> list[list[Any]]:
        """Ask, and return the answers, and chances if they are wanted: None where there is none.

        Parameters
        ----------
        request : str, or None
            A name under which an oracle gives the same answers again.
        """
        began, width = self._phase, len(self.titles())
        found: list[list[Any]] = [[None] * self.features.n_rows for _ in range(width)]
        places = np.flatnonzero(self.usable)
        with Progress("answering", self.n_asked) as bar:
            for some in np.split(places, range(BATCH, len(places), BATCH)):
                columns = self._ask(some, request)
                for column, answers in zip(found, columns, strict=True):
                    for place, answer in zip(some.tolist(), answers, strict=True):
                        column[place] = answer
                bar.advance(len(some))
        if request is not None and self._phase != began:
            say(
                f"A phase ended within these queries, so that --request {request} cannot give the "
                "answers again: asking again is charged. Keep the file of answers."
            )
        return found

    @property
    def _phase(self) -> int:
        return int(getattr(self.fitted, "phase_", 0))

    @claim("FILES")
    def _ask(self, places: Integers, request: str | None) -> list[list[Any]]:
        if isinstance(self.fitted, Learner):
            rows = SomeRows(self.features, places)
            found = [self.fitted.predict(rows).tolist()]
            if self.chances:
                proba: Any = self.fitted
                found += proba.predict_proba(rows).T.tolist()
            if self.coverage is not None:
                found += self.fitted.predict_interval(rows, self.coverage).T.tolist()
            return found
        answers = self._answered(self.features.take(places), int(places[0]), request)
        known = set(self.fitted.classes_.tolist())
        damaged = self.table.damaged[places] if len(self.table.damaged) else np.zeros(len(places))
        # An unusable query has the answer -1, which is no class.
        pairs = zip(answers.tolist(), damaged.tolist(), strict=True)
        return [[None if bad or one not in known else one for one, bad in pairs]]

    @claim("FILES")
    def _answered(self, rows: Any, first: int, request: str | None) -> NDArray[Any]:
        """Return answers to a batch that begins with a row of the file.

        A repeated request is known by the cells of its frames, and by the number of all queries:
        a longer file of the same name is refused with the first batch.
        """
        if request is None:
            return np.asarray(self.fitted.predict(rows))
        whole = str(self.n_asked).encode() if self.n_asked > BATCH else None
        [found] = self.fitted.predict_calls([Call(rows, request_id=(request, first), whole=whole)])
        if isinstance(found, RequestIdReused):
            raise RequestIdReused(
                f"--request {request} was used for other queries before: the file has changed, or "
                "it was another one. Give the file as it was, or a new name. Nothing was spent."
            )
        if isinstance(found, Exception):
            raise found
        return np.asarray(found)

    def titles(self) -> list[str]:
        """Names of the columns that are added."""
        classes = self.fitted.classes_.tolist() if self.chances else []
        ends = [] if self.coverage is None else [f"{self.column} low", f"{self.column} high"]
        return [self.column, *(f"chance of {one}" for one in classes), *ends]

    def write(self, stream: IO[bytes], path: str, found: Sequence[Sequence[Any]]) -> None:
        """Write the queries with their answers.

        Parameters
        ----------
        stream : binary stream
            Where to.
        path : str
            The name of the file, which says the format.
        found : list of lists
            What ``answers`` returned.
        """
        copied = self.copied
        if path.endswith(".parquet"):
            if isinstance(copied, TextRows):
                columns = [pa.array(column, pa.string()) for column in copied.all_columns()]
                copied = pa.table(columns, copied.names)
            kinds = [self._kind(), *[pa.float64()] * (len(found) - 1)]
            for name, cells, one in zip(self.titles(), found, kinds, strict=True):
                values = cells if one != pa.string() else [_text(cell) for cell in cells]
                copied = copied.append_column(name, pa.array(values, one))
            pq.write_table(copied, stream)
            return
        text = io.TextIOWrapper(stream, "utf-8", newline="", write_through=True)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(safe_row([*self.table.names, *self.titles()]))
        for cells in _rows(copied, found):
            writer.writerow(safe_row(cells))
        text.flush()
        text.detach()  # whoever opened the stream closes it

    def _kind(self) -> Any:
        """Return the type of answers in Arrow."""
        if not hasattr(self.fitted, "classes_"):
            return pa.float64()
        classes = self.fitted.classes_.tolist()
        for kind, found in ((bool, pa.bool_()), (int, pa.int64())):
            if all(type(one) is kind for one in classes):
                return found
        return pa.string()

    def rehearse(self, stream: IO[bytes], path: str) -> None:
        """Write the queries with made-up answers, so that what cannot be written is not paid for.

        Parameters
        ----------
        stream : binary stream
            Where to.
        path : str
            As in ``write``.
        """
        longest = max(self.fitted.classes_.tolist(), key=lambda one: len(str(one)))
        self.write(stream, path, [[longest] * self.features.n_rows])

    def facts(self) -> dict[str, Any]:
        """Return what can be said about the queries, for programs."""
        return {
            "queries": self.features.n_rows,
            "asked": self.n_asked,
            "left": None if self.left == math.inf else int(self.left),
            "free": isinstance(self.fitted, Learner),
        }

    def sentences(self, found: Sequence[Sequence[Any]] | None) -> Iterator[str]:
        """Yield lines for people; ``found`` is what was answered, and None after a dry run."""
        count = self.features.n_rows
        if found is None:
            yield f"Would ask {self.n_asked:,} queries. Nothing was asked, and nothing was written."
        else:
            empty = sum(answer is None for answer in found[0])
            yield f"{count - empty:,} of {count:,} queries are answered."
            if empty:
                yield f"{empty:,} could not be read, and have an empty answer."
        if isinstance(self.fitted, Learner):
            yield "The model is published: this costs nothing."
        else:
            left = f"has {self.left:,.0f} answers left"
            if self.left == math.inf:
                left = "never runs out of answers"
            yield f"The oracle {left}. Its guarantee does not change."


def _text(cell: Any) -> str | None:
    return None if cell is None else str(cell)


def _batches(count: int) -> Iterator[Integers]:
    for start in range(0, count, BATCH):
        yield np.arange(start, min(start + BATCH, count))


def _rows(table: Any, found: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of each row, with what was found."""
    for start in range(0, len(found[0]), BATCH):
        if isinstance(table, TextRows):
            copied = [column[start : start + BATCH].tolist() for column in table.columns]
        else:
            copied = [_cells(column) for column in table.slice(start, BATCH).columns]
        added = [cells[start : start + BATCH] for cells in found]
        yield from zip(*copied, *added, strict=True)


def _cells(column: Any) -> list[Any]:
    """Return the cells of a column of Arrow; None for one that Python has no value for."""
    try:
        found: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):  # such as a day after the year 9999
        found = [_cell(scalar) for scalar in column]
    return found


def _cell(scalar: Any) -> Any:
    with contextlib.suppress(ValueError, OverflowError):
        return scalar.as_py()
    return None
