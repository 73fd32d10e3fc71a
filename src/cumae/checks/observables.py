"""The law of observables: what is seen without keys follows from counts, and from no content."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar

World = TypeVar("World")


class Sight(NamedTuple):
    """One thing that a holder of disk, backups and terminal sees without any key.

    Parameters
    ----------
    what : str
        What is looked at: a file, a row of a table, the output of a command.
    seen : object
        What is seen of it: a length, a name, a text. It is compared by ``==``.
    """

    what: str
    seen: Any


NOTHING = Sight("nothing more", None)


def first_difference(one: Iterable[Sight], other: Iterable[Sight]) -> str:
    """Return in words where two lists of sights first differ; nothing if they are the same.

    Parameters
    ----------
    one, other : iterable of Sight
        What was seen, in order.

    Examples
    --------
    >>> from cumae.checks.observables import Sight, first_difference
    >>> first_difference([Sight("size", 477)], [Sight("size", 478)])
    'sight 1: size is 477, and size is 478'
    >>> first_difference([Sight("size", 477)], [Sight("size", 477)])
    ''
    """
    for number, (here, there) in enumerate(zip_longest(one, other, fillvalue=NOTHING), start=1):
        if here != there:
            return f"sight {number}: {_summary(here)}, and {_summary(there)}"
    return ""


def _summary(sight: Sight) -> str:
    return sight.what if sight == NOTHING else f"{sight.what} is {sight.seen!r}"


def contents_cannot_be_seen(
    live: Callable[[World], Sequence[Sight]], worlds: Sequence[World]
) -> int:
    """Whoever holds disk, backups and terminal, and no key, sees the same in all worlds.

    Worlds have the same public counts and declarations, and the same published releases. They
    differ in rows, labels, queries, answers, and in how those who ask are called. What is seen are
    lengths, names, counts and the order of everything that is written, so that it is the same at
    every point where a process may be killed.

    Parameters
    ----------
    live : callable
        Lets an oracle live in a world, with coins and keys that are the same in all of them, and
        returns all that was seen, in order.
    worlds : sequence of objects
        Two or more.

    Returns
    -------
    int
        How many sights of each world were compared.

    Raises
    ------
    AssertionError
        If two worlds look different; it says where they first do.

    Examples
    --------
    >>> from cumae.checks import contents_cannot_be_seen
    >>> from cumae.checks.observables import Sight
    >>> contents_cannot_be_seen(lambda world: [Sight("length", len(world))], ["no ", "yes"])
    1
    >>> contents_cannot_be_seen(lambda world: [Sight("length", len(world))], ["no", "yes"])
    Traceback (most recent call last):
        ...
    AssertionError: worlds 1 and 2 look different, at sight 1: length is 2, and length is 3
    """
    first, *others = map(live, worlds)
    for number, other in enumerate(others, start=2):
        found = first_difference(first, other)
        if found:
            raise AssertionError(f"worlds 1 and {number} look different, at {found}")
    return len(first)
