"""Calls for answers: as they were given, as they were read, and what a predictor would answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.predictors.answering.events import Event
from cumae.predictors.waiting import joined
from cumae.quiet import HiddenFailures

MOST_JOINED = 1_024  # queries of a joined batch: few, so that nobody waits long for others
PLAIN = (None, None, None, False)  # the last fields of queries without anything special


@claim("STORE")
class Call(NamedTuple):
    """One call for answers, as it is given to ``predict_calls``.

    Parameters
    ----------
    X : table
        The queries.
    users, clients : list or array, or None
        Who asks each of them, where the predictor wants to know it.
    query_ids : list or array, or None
        An id for each query.
    request_id : str, int or tuple, or None
        A name for the call, for retries.
    as_counts : bool
        Whether noisy vote counts are asked for, and not labels, as by ``noisy_votes``.
    whole : bytes, or None
        A digest of a larger request of which this call is the first part, if that has been cut.
        So a name is refused for another request that begins with the same queries.

    Examples
    --------
    >>> import cumae
    >>> cumae.Call([[0.5]], request_id="first").request_id
    'first'
    """

    X: Any
    users: Any = None
    clients: Any = None
    query_ids: Any = None
    request_id: Any = None
    as_counts: bool = False
    whole: bytes | None = None

    def __repr__(self) -> str:
        return "<a call>"  # a message must not show what is asked

    @property
    def body(self) -> list[Any]:
        """The contents of the call, to be compared with an earlier call of the same name."""
        found = [self.X, self.users, self.clients, self.query_ids, self.as_counts]
        return found if self.whole is None else [*found, self.whole]

    @property
    def size(self) -> float:
        """Number of queries, before they are read; infinite if that is not known."""
        kind = type(self.X)
        if kind is list or (kind is np.ndarray and self.X.ndim):  # as mostly
            return len(self.X)
        with HiddenFailures():  # it may be anything, and raise anything
            return len(self.X)
        return math.inf

    @property
    def is_named(self) -> bool:
        """True if it has ids of users, clients or queries."""
        # By identity: an array of ids is not to be compared.
        return not (self.users is self.clients is self.query_ids is None)


@claim("EVER", "USER")
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
    query_ids : list of bytes or None, or None
        The same; None for a query of a joined call that has none.
    as_counts : bool
        Whether noisy vote counts are asked for, and not labels.
    """

    rows: Any
    usable: NDArray[np.bool_] | None = None
    users: list[tuple[bytes, ...]] | None = None
    clients: list[tuple[bytes, ...]] | None = None
    query_ids: list[bytes | None] | None = None
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

    @classmethod
    def joined(cls, parts: Sequence[Asked]) -> Asked:
        """Return the queries of several calls as one, in their order.

        Where somebody must be named, all calls name them; but only some may have ids of queries.
        """
        names: list[bytes | None] | None = None
        if [None for part in parts if part.query_ids is not None]:  # faster than a generator
            names = [name for part in parts for name in part.query_ids or [None] * len(part.rows)]
        return cls(
            joined([part.rows for part in parts]),
            None if parts[0].usable is None else joined([part.usable for part in parts]),
            None if parts[0].users is None else [one for part in parts for one in part.users or ()],
            None if parts[0].clients is None else [one for p in parts for one in p.clients or ()],
            names,
        )


class ProposedAnswers(NamedTuple):
    """The answers that a predictor would give, and the event that they make.

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


class StepAhead(NamedTuple):
    """A step that changes nothing yet: what will begin the next phase may be written from now on.

    Parameters
    ----------
    make : callable
        Returns as bytes what can be written.
    left : int
        How many answers of this phase are left.
    """

    make: Callable[[], bytes]
    left: int


class StepFreeze(NamedTuple):
    """A step before that, which changes nothing either: what waits is from now on as it is.

    Parameters
    ----------
    make : callable
        Lets a thread make bytes of it. What comes later is recorded besides.
    """

    make: Callable[[], None]


AnyStep: TypeAlias = Step | StepAhead | StepFreeze
