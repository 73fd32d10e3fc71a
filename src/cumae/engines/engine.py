"""The seam: an engine computes a pure function of each numbered piece of a table, somewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from cumae.claims import claim
from cumae.errors import CumaeError, WorkerFailed, WorkersLost

Work: TypeAlias = Callable[[Any], Any]  # from a piece of a table to a result
Found: TypeAlias = Iterator[tuple[int, Any]]  # numbers of pieces, and what was made of them


class RowEngine(ABC):
    """Whoever computes: this process, processes, or a cluster.

    A table on an engine is a number of pieces, counted from 0. Nothing of privacy lives here: an
    engine draws nothing, and knows neither budgets nor noise.

    Attributes
    ----------
    name : str
        A short name, for messages.
    is_here : bool
        Whether pieces are worked on in this process, so that its errors may be shown.
    has_rows : bool
        Whether tables are in this process, so that its other code may read them.
    """

    name: ClassVar[str]
    is_here: ClassVar[bool] = False
    has_rows: ClassVar[bool] = False

    @abstractmethod
    def hold(self, pieces: Sequence[Any]) -> Any:
        """Return pieces of this process as a table in the engine's own form.

        Parameters
        ----------
        pieces : sequence
            Tuples of arrays, or objects with a method ``blocks``.
        """

    @abstractmethod
    def run(self, work: Work, table: Any) -> Found:
        """Return what a pure function makes of each piece, with its number, in any order.

        A piece may come twice, because a worker died or was slow; it is the same each time.

        Parameters
        ----------
        work : callable
            Takes a piece.
        table : object
            The pieces, in the engine's own form.
        """

    @abstractmethod
    def keep(self, work: Work, table: Any) -> tuple[Any, tuple[int, ...]]:
        """Compute new pieces once, and keep them where they were computed.

        Parameters
        ----------
        work : callable
            Returns a new piece, which is a tuple of arrays with one entry for each row.
        table : object
            The pieces, in the engine's own form.

        Returns
        -------
        object
            The new pieces, in the engine's own form.
        tuple of int
            The number of rows of each.
        """


@dataclass(frozen=True)
class Failed:
    """The reply about a piece that could not be computed.

    Parameters
    ----------
    kind : str
        Name of the error's class.
    error : CumaeError or None
        The error itself, if it is one of cumae: these name rows and columns, and show no cell.
    """

    kind: str
    error: CumaeError | None


@claim("PIECES")
@dataclass(frozen=True)
class Quieted:
    """Work whose errors come back as results, without what they say about cells.

    Parameters
    ----------
    work : callable
        Takes a piece.
    all_errors : bool
        Whether errors that are not cumae's are kept back, too.
    """

    work: Work
    all_errors: bool = True

    def __call__(self, piece: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                return self.work(piece)
        except CumaeError as error:
            return Failed(type(error).__name__, error)
        except Exception as error:
            if not self.all_errors:
                raise
            return Failed(type(error).__name__, None)


def size_of(piece: Any) -> Any:
    """Return the number of rows of a piece that was made, or what went wrong with it."""
    return piece if isinstance(piece, Failed) else len(piece[0])


def worked(work: Work, piece: Any) -> Any:
    """Return what work makes of a piece; engines know it by this name alone.

    Tasks of engines have the names of their functions, which stand in logs and on dashboards.
    """
    return piece if isinstance(piece, Failed) else work(piece)


@claim("PIECES")
def each_once(found: Iterable[tuple[int, Any]], count: int, name: str) -> Found:
    """Return the result of each piece once, in any order.

    Parameters
    ----------
    found : iterable of (number, result)
        Results, as ``RowEngine.run`` returns them.
    count : int
        How many pieces there are.
    name : str
        What the engine is called, for messages.

    Raises
    ------
    CumaeError
        What went wrong with the first piece that could not be computed.
    WorkersLost
        If a piece is missing at the end.
    """
    seen = np.zeros(count, dtype=np.bool_)
    failed: dict[int, Failed] = {}
    for number, result in found:
        if seen[number]:
            continue
        seen[number] = True
        if isinstance(result, Failed):
            failed[number] = result
        else:
            yield number, result
    if failed:
        first = min(failed)
        raise failed[first].error or WorkerFailed(
            f"a worker of {name} failed with {failed[first].kind} in piece {first} of {count}; its "
            "message may show cells, and is not shown."
        )
    if not seen.all():
        raise WorkersLost(
            f"{name} lost {np.count_nonzero(~seen)} of {count} pieces; look at its workers, and "
            "fit again."
        )


@claim("PIECES")
def add_once(found: Iterable[tuple[int, Any]], count: int, name: str) -> Any:
    """Return the sum of the results of all pieces; one that comes twice is added once.

    Parameters
    ----------
    found, count, name : iterable, int and str
        As in ``each_once``; results are whole numbers.

    Examples
    --------
    >>> from cumae.engines.engine import add_once
    >>> add_once([(1, 10), (0, 5), (1, 10)], 2, "a list")
    15
    """
    total: Any = 0
    for _, result in each_once(found, count, name):
        total = total + result
    return total
