"""The shared part of all voters: rows are read, refused and divided among threads, and stored."""

from __future__ import annotations

import contextlib
import functools
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import numbers
from cumae.ensembles.voters.ranks import BLOCK, rank
from cumae.errors import InvalidData, InvalidParameter
from cumae.finite import all_finite

CELLS = 2**18  # cells of a table that are looked at in one go: 2 MB
WORTH_THREADS = 2**21  # cells times models below which starting threads takes longer than voting


class Voters(ABC):
    """Models that vote together. A vote for a row never depends on the other rows."""

    n_classes: int
    quick: ClassVar[bool] = False  # whether to vote takes less time than to send queries away

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of models."""

    @abstractmethod
    def count(self, X: Any, numbers: Integers | None = None) -> Integers:
        """Return how many models vote for each class: a row for each row of ``X``.

        ``numbers`` are the running numbers of the rows, from which follows where a row stands in
        the table that a model gets; None counts from 0.
        """

    @abstractmethod
    def count_here(self, X: Any, numbers: Integers | None = None) -> Integers:
        """As ``count``, without any help from other threads or processes."""

    @abstractmethod
    def parts(self, n: int) -> list[Voters]:
        """Return at most ``n`` voters that together have the same models."""

    @abstractmethod
    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return arrays from which ``voters_from_arrays`` makes the same voters."""


@claim("SHARDS")
class StackedVoters(Voters):
    """Voters whose models are arrays.

    A row with a cell that is not finite is one that scikit-learn refuses: each model votes for
    class 0.
    """

    kind: ClassVar[str]
    model_axes: ClassVar[Mapping[str, int]]  # arrays with an entry for each model, and which axis
    width: int  # number of columns; 0 for any

    def count(self, X: Any, numbers: Integers | None = None) -> Integers:
        del numbers  # compiled code computes every row in the same way, wherever it stands
        return self._count(X, None)

    def count_here(self, X: Any, numbers: Integers | None = None) -> Integers:
        del numbers
        return self._count(X, 1)

    def _count(self, X: Any, threads: int | None) -> Integers:
        """Count with so many threads; None for as many as there are cores, if that is worth it."""
        count, columns = X.shape
        if self.width != columns or columns <= self._last_column:
            self._check_width(columns)
        votes = np.zeros((count, self.n_classes), dtype=np.int64)
        if count * columns * len(self) < WORTH_THREADS:
            threads = 1
        threads = threads or _cores()
        step = max(1, min(CELLS // max(1, columns), -(-count // threads)))
        if step >= count and type(X) is np.ndarray and X.dtype == np.float64:  # one piece
            self._fill(np.ascontiguousarray(X), votes)
            return votes

        def fill(start: int) -> None:
            part = slice(start, start + step)
            rows = np.asarray(X.iloc[part] if hasattr(X, "iloc") else X[part])
            if rows.dtype != np.float64:
                rows = numbers(rows)
            self._fill(np.ascontiguousarray(rows), votes[part])

        for_each(fill, range(0, count, step), threads)
        return votes

    def _fill(self, rows: Floats, votes: Integers) -> None:
        if getattr(self, "single", False):  # models that see rows as numbers of 32 bits
            with np.errstate(all="ignore"):  # what is too large becomes infinite, and is refused
                rows = rows.astype(np.float32).astype(np.float64)
        add, arrays = self.adder
        if all_finite(rows):
            add(rows, *arrays, votes)
            return
        usable = np.isfinite(rows).all(axis=1)
        found = np.zeros((int(usable.sum()), self.n_classes), dtype=np.int64)
        add(rows[usable], *arrays, found)
        votes[usable] = found
        votes[~usable, 0] = len(self)

    def _check_width(self, columns: int) -> None:
        if self.width not in (0, columns):
            raise InvalidData(
                f"X has {columns} columns, but the models were trained on {self.width}; give "
                "the same."
            )
        if columns <= self._last_column:
            raise InvalidData(
                f"X has {columns} columns, but the models look at column {self._last_column}; give "
                "the columns that they were trained on."
            )

    @functools.cached_property
    def _last_column(self) -> int:
        return int(self._columns_used().max(initial=-1))

    def _columns_used(self) -> NDArray[Any]:
        """Return the columns that models look at, where ``width`` does not say it all."""
        return np.zeros(0, dtype=np.int64)

    @functools.cached_property
    @abstractmethod
    def adder(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """The function that adds the votes for finite rows, and the arrays it needs.

        It takes the rows, then these arrays, and at last the votes so far. Several threads share
        the arrays, so that it must not write into them.
        """

    def parts(self, n: int) -> list[Voters]:
        found: list[Voters] = []
        for part in shares(len(self), n):
            cut = {}
            for name, axis in self.model_axes.items():
                place = (slice(None),) * axis + (part,)
                cut[name] = np.ascontiguousarray(getattr(self, name)[place])
            found.append(replace(self, **cut))  # type: ignore[type-var]
        return found

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {field.name: np.asarray(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Rebuild what ``to_arrays`` returned."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        if set(arrays) != set(names):
            raise broken(cls.kind)
        values = [np.asarray(arrays[name], order="C") for name in names]
        with contextlib.suppress(IndexError, TypeError, ValueError):
            return cls(*(value.item() if value.ndim == 0 else value for value in values))
        raise broken(cls.kind)

    def _check(self, **types: tuple[type, int]) -> None:
        """Refuse arrays of another type or shape: compiled code trusts them."""
        if type(self.n_classes) is not int or self.n_classes < 2:
            raise broken(self.kind)
        for name, (kind, dimensions) in types.items():
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype != kind:
                raise broken(self.kind)
            if array.ndim != dimensions or not array.flags.c_contiguous:
                raise broken(self.kind)

    def _check_labels(self, labels: NDArray[Any]) -> None:
        """Refuse labels that are no classes."""
        if np.any(labels < 0) or np.any(labels >= self.n_classes):
            raise broken(self.kind)

    def _check_starts(self, starts: Integers, count: int, total: int, least: int = 0) -> None:
        """Refuse starts that do not cut ``total`` things into ``count`` runs of some length."""
        if (
            not 0 < len(starts) == count + 1
            or starts[0] != 0
            or starts[-1] != total
            or np.any(np.diff(starts) < least)
        ):
            raise broken(self.kind)


def add_by_rank(
    rows: Floats,
    used: Integers,
    starts: Integers,
    cuts: Floats,
    add: Callable[..., None],
    models: tuple[Any, ...],
    votes: Integers,
) -> None:
    """Add the votes of models that look at ranks of cells among their cuts, and not at cells.

    It is here, where the cells of a query are anyhow, and the compiled loops get no more than they
    need.

    Parameters
    ----------
    rows : array of float
        The rows, all of them finite.
    used : array of int
        Columns that have cuts.
    starts, cuts : array
        Where the cuts of each used column begin, and the distinct cuts in order.
    add, models : function and tuple
        The function that adds votes, and the arrays it needs. It takes ranks, column by column,
        then these arrays, and at last the votes so far.
    votes : array of int
        The votes so far, by row and class.
    """
    for start in range(0, len(rows), BLOCK):
        values = rows[start : start + BLOCK].T[used]
        ranks = np.empty(values.shape, dtype=np.int16)
        rank(values, starts, cuts, np.empty(values.shape[1], dtype=np.int64), ranks)
        add(ranks, *models, votes[start : start + BLOCK])


def broken(kind: str) -> InvalidParameter:
    """Return the error about arrays that are no voters."""
    return InvalidParameter(
        f"these arrays are no voters of kind {kind!r}; give what to_arrays returned."
    )


def for_each(work: Callable[[int], None], places: range, threads: int) -> None:
    """Do the work for every place; compiled code lets several threads run at once."""
    if threads == 1 or len(places) == 1:
        for place in places:
            work(place)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, places))  # waits for all, and lets their errors through


def running(numbers: Integers | None, count: int) -> Integers:
    """Return the running numbers of rows; from 0 where none are given."""
    return np.arange(count) if numbers is None else numbers


def shares(total: int, n: int) -> Iterator[slice]:
    """Divide ``total`` things into at most ``n`` runs, as equal as can be."""
    n = max(1, min(n, total))
    for i in range(n):
        yield slice(total * i // n, total * (i + 1) // n)


def class_of(label: Any, n_classes: int) -> int:
    """Return the class that a label stands for; what is no class stands for class 0."""
    for place in range(1, n_classes):
        if np.ndim(label) == 0 and label == place:
            return place
    return 0


def _cores() -> int:
    # What this process may use, which can be less than the machine has.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
