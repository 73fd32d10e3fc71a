"""Calls for answers: as they were given, as they were read, and what a predictor would answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.predictors.answering.events import Event

MOST_JOINED = 1_024  # queries of a joined batch: few, so that nobody waits long for others
PLAIN = (None, None, None, False)  # the last fields of queries without anything special


class Call(NamedTuple):
    """One call for answers, as it was given.

    Parameters
    ----------
    X : table
        The queries.
    users, clients : list or array, or None
        Who asks each of them.
    query_ids : list or array, or None
        An id for each query.
    request_id : str, int or tuple, or None
        A name for the call, for retries.
    as_counts : bool
        Whether noisy vote counts are asked for, and not labels.
    """

    X: Any
    users: Any = None
    clients: Any = None
    query_ids: Any = None
    request_id: Any = None
    as_counts: bool = False

    def __repr__(self) -> str:
        return "<a call>"  # a message must not show what is asked

    @property
    def body(self) -> list[Any]:
        """What is asked, to be compared with an earlier call of the same name."""
        return [self.X, self.users, self.clients, self.query_ids, self.as_counts]

    @property
    def size(self) -> int:
        """Number of queries; ``MOST_JOINED + 1`` for a call that is answered alone.

        That is one with ids, or whose queries are neither a list nor an array.
        """
        kind, named = type(self.X), not (self.users is self.clients is self.query_ids is None)
        if named or not (kind is list or (kind is np.ndarray and self.X.ndim)):
            return MOST_JOINED + 1
        return len(self.X)


class Asked(NamedTuple):
    """Queries as the models take them.

    Parameters
    ----------
    rows : array or DataFrame
        The queries.
    usable : array of bool, or None
        Which of them are usable; None if all are.
    users, clients : list of tuples of bytes, or None
        Hidden ids, one for each query (``HiddenIds.known_as``).
    query_ids : list of bytes, or None
        The same.
    as_counts : bool
        Whether noisy vote counts are asked for, and not labels.
    """

    rows: Any
    usable: NDArray[np.bool_] | None = None
    users: list[tuple[bytes, ...]] | None = None
    clients: list[tuple[bytes, ...]] | None = None
    query_ids: list[bytes] | None = None
    as_counts: bool = False

    def __repr__(self) -> str:
        return "<queries>"  # a message must not show what is asked

    def part(self, start: int, stop: int) -> Asked:
        """Return the queries from one number on, up to another."""
        here = slice(start, stop)
        return self._replace(
            rows=self.rows[here],
            usable=None if self.usable is None else self.usable[here],
            users=self.users and self.users[here],
            clients=self.clients and self.clients[here],
            query_ids=self.query_ids and self.query_ids[here],
        )


class Given(NamedTuple):
    """What a predictor would answer, and what that changes.

    Parameters
    ----------
    answers : array of int
        One place of a class for each query, or its noisy counts, of which each answer takes as many
        bytes as any other; fewer if the predictor has halted.
    event : Event
        What changes in the state.
    warning : str
        What to warn of when the answers leave, because it tells what was drawn; or nothing.
    """

    answers: Integers
    event: Event
    warning: str = ""


class Step(NamedTuple):
    """A step on the way to the next phase, which counts alone made due.

    Parameters
    ----------
    make : callable
        Returns the event. It draws with the coins, and changes nothing else.
    before : Event, or None
        What is recorded before anything is drawn.
    slow : bool
        Whether it takes long, so that everything is committed first.
    """

    make: Callable[[], Event]
    before: Event | None = None
    slow: bool = False
