"""Reading of queries, public ones and protected ones, by what was fixed at fit."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import (
    Columns,
    EncodedRows,
    RowSource,
    length_of,
    names_of,
    plain_floats,
    read_one_by_one,
    row_source,
    table_of,
    typed_frame,
    usable_frame,
)
from cumae.ensembles.named import on_numbers
from cumae.errors import InvalidData
from cumae.finite import all_finite
from cumae.predictors.records import RowForm, ShortTexts, short_texts
from cumae.quiet import HiddenFailures

FEW = 1_024  # queries whose usable ones are not allocated anew, if all are
ALL_USABLE = np.ones(FEW, dtype=bool)
ALL_USABLE.flags.writeable = False
MADE_UP = 16  # rows of a made-up batch: more than those for which there are loops of their own


@claim("BBL", "QUERY", "EVER")
@dataclass(frozen=True)
class QueryReader:
    """The reader of queries: fixed when rows are given to ``fit``, and never inferred from a batch.

    Parameters
    ----------
    owner : str
        Name of the class that reads, for messages.
    columns : Columns
        Names of all columns, and what was declared about them.
    n_features : int
        Number of columns as they are given.
    numeric : list of int
        Places of the columns that hold numbers.
    as_frames : bool
        Whether models get data frames, and not tables of numbers.
    stand_in : array or DataFrame of one row
        A made-up row in the form in which models get rows.
    text_bytes : int
        Bytes of a cell of text in a data frame; longer texts are cut.
    """

    owner: str
    columns: Columns
    n_features: int
    numeric: list[int]
    as_frames: bool
    stand_in: Any
    text_bytes: int

    def shard_model(self, model: Any) -> Any:
        """Return an estimator in the form in which a shard trains it, by declared facts alone.

        Parameters
        ----------
        model : classifier, Pipeline or ConceptClass
            The estimator as it was given, which may name columns.
        """
        return model if self.as_frames else on_numbers(model, self.columns)

    # Rows of fit, and rows that are kept

    def prepared(self, rows: RowSource, columns: Columns | None) -> RowSource:
        """Return training rows in the form that queries have.

        Parameters
        ----------
        rows : RowSource
            The rows as they came.
        columns : Columns, or None
            What was declared about them; None if nothing was.
        """
        if self.as_frames:
            return ShortTexts(rows, self.text_bytes)
        if columns is not None:
            return EncodedRows(rows, columns)
        if rows.is_of_floats:
            return rows
        return EncodedRows(rows, Columns(None, rows.names, rows.n_features))

    @property
    def number_columns(self) -> Columns:
        """The facts about declared columns once they are numbers."""
        return Columns(self.columns.bounds, None, len(self.columns))

    @functools.cached_property
    def _form(self) -> RowForm:
        return RowForm.of(typed_frame(self.stand_in, self.numeric), self.text_bytes)

    @claim("STORE")
    def packed(self, table: Any) -> Any:
        """Return rows as they are kept: an array whose size follows from their number."""
        return self._form.pack(table) if self.as_frames else table

    def unpacked(self, rows: Any) -> Any:
        """Return kept rows as models take them."""
        return self._form.unpack(rows) if self.as_frames else rows

    # Queries

    def public(self, X: Any) -> Any:
        """Return public queries as the models take them; raise ``InvalidData`` for unusable ones.

        Whether a cell is usable follows from the types of the training columns alone: whether a
        model could read it is private.
        """
        if not length_of(X):
            return self.nothing()
        X = self._arranged(X)
        if not self.as_frames:
            table = self.columns.encode(X)
            _check_finite(table, self.columns.names)
            return table
        known = self.columns.original_names or []
        frame: Any = row_source(X).take(np.arange(length_of(X)))
        missing = np.argwhere(frame.isna().to_numpy())
        if len(missing):
            row, column = missing[0]
            raise InvalidData(
                f"X has a missing value (NaN) in row {row}, column {known[column]}; fill or drop "
                "it, or declare with columns= at fit that cells may be missing.",
                columns=[known[column]],
                rows=[row],
            )
        for place in self.numeric:
            numbers = Columns(None, [known[place]], 1).encode(frame.iloc[:, [place]])
            _check_finite(numbers, [known[place]])
        return short_texts(typed_frame(frame, self.numeric), self.text_bytes)

    def private(self, X: Any) -> tuple[Any, NDArray[np.bool_]]:
        """Return private queries, and which of them are usable; the others become the stand-in.

        Only what all queries of a call share can be refused: the kind of their container, their
        width, the columns of a frame. In a list of rows of several widths those of another width
        than at fit are unusable. What one query holds must not be seen in what
        happens to the others, so nothing else raises.
        """
        plain = plain_floats(X, self.n_features) if self._numbers_only else None
        if plain is not None:
            if all_finite(plain):  # as nearly all are: a call less
                count = len(plain)
                return plain, ALL_USABLE[:count] if count <= FEW else np.ones(count, dtype=bool)
            return self._replaced(plain)
        if not length_of(X):
            return self.nothing(), np.zeros(0, dtype=bool)
        given = self._arranged(read_one_by_one(table_of(X), self.n_features))
        rows = row_source(given)
        table = isinstance(given, pd.DataFrame | np.ndarray)
        if self.as_frames or not table:
            return self.some(rows, np.arange(rows.n_rows))
        given = given if isinstance(given, pd.DataFrame) else np.asarray(given)
        return self._replaced(self.columns.read(given, ordinary=True))

    @functools.cached_property
    def _numbers_only(self) -> bool:
        return self.columns.numbers_only and not self.as_frames

    def some(self, rows: RowSource, places: Integers) -> tuple[Any, NDArray[np.bool_]]:
        """As ``private``, for some rows of a source."""
        if not self.as_frames:
            return self._replaced(rows.read(places, self.columns))
        frame = rows.take(places)
        usable = usable_frame(frame, self.numeric)
        table = typed_frame(frame, self.numeric, ~usable, self.stand_in)
        return short_texts(table, self.text_bytes), usable

    def _replaced(self, table: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Replace unusable rows by the stand-in, and tell which rows are usable."""
        if all_finite(table):
            return table, np.ones(len(table), dtype=bool)
        usable = np.asarray(np.isfinite(table).all(axis=1))
        table[~usable] = self.stand_in[0]
        return table, usable

    def made_up_queries(self) -> list[Any]:
        """Return rows of zeros in each form in which queries may come, one row and a few."""
        rows = [[0.0] * self.n_features] * MADE_UP
        names = self.columns.original_names
        frames = [] if names is None else [pd.DataFrame(rows, columns=names)]
        return frames if self.as_frames else [np.array(rows[:1]), np.array(rows), rows, *frames]

    def nothing(self) -> Any:
        """Return a table without rows."""
        return self.stand_in.iloc[:0] if self.as_frames else np.zeros((0, len(self.columns)))

    def in_order(self, X: Any) -> Any:
        """Return a data frame with its columns in the order of fit; anything else as it is."""
        known = self.columns.original_names
        with HiddenFailures():  # names of columns may be anything, and raise anything
            if known is not None and isinstance(X, pd.DataFrame) and list(X.columns) != known:
                return X[known] if sorted(X.columns) == sorted(known) else X
        return X

    def _arranged(self, X: Any) -> Any:
        """Return a table with the columns in the order of fit; refuse one that has others."""
        if self.as_frames and names_of(X) is None:
            raise InvalidData(
                f"X has no names, but {self.owner} is expecting a data frame with the columns "
                f"{self.columns.original_names!r}."
            )
        return self.columns.arrange(X, self.owner)


def _check_finite(table: Floats, names: list[str]) -> None:
    wrong = np.argwhere(~np.isfinite(table))
    if len(wrong):
        row, column = wrong[0]
        raise InvalidData(
            f"X is infinite in row {row}, column {names[column]}; give a finite number.",
            columns=[names[column]],
            rows=[row],
        )
