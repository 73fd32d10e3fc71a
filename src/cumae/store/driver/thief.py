"""The audit's thief: somebody who has the disk, each backup and ``status``, but no key."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np

from cumae.audit.distinguishers import by_classes
from cumae.audit.game import Game
from cumae.audit.runs import Attack
from cumae.extras import STORE, LaterModule
from cumae.store.driver.files import OracleInFile
from cumae.store.homes.places import place_of
from cumae.store.looking import status
from cumae.store.oracle import backup

if TYPE_CHECKING:
    import apsw
else:
    apsw = LaterModule("apsw", *STORE)

# Ids, hashes and names of keys are drawn at random; how long they are is all that could tell.
RANDOM = re.compile(r"(?<![\w.])[0-9a-f]{8,}(?![\w.])")
FREE_PAGES = 36  # where a file of SQLite says how many pages are free
LOG_HEADER, FRAME_HEADER = 32, 24  # bytes of SQLite's log, and of each page in it
PAGE_SIZE = 8  # where the log says how large a page is

Rows = dict[tuple[Any, ...], None]  # in order, as they are stored


@dataclass(frozen=True)
class Stolen:
    """The view of a thief of an oracle in a file at one moment, without its keys.

    Parameters
    ----------
    new, gone : tuple
        Rows that were written and deleted since the last look, of all tables: public cells as they
        are, and lengths of what is encrypted.
    files : tuple
        Names and sizes of all files: the oracle's, SQLite's log, and those in the key folder.
    log : tuple of int
        The pages in SQLite's log, in the order in which they were written.
    copy : tuple of int
        Size and free pages of a backup.
    status : str
        What ``cumae status --json`` prints.
    """

    new: tuple[Any, ...]
    gone: tuple[Any, ...]
    files: tuple[tuple[str, int], ...]
    log: tuple[int, ...]
    copy: tuple[int, ...]
    status: str

    @property
    def n_bytes(self) -> int:
        """Number of encrypted bytes that were written since the last look."""
        return sum(cell for row in self.new for cell in row if isinstance(cell, int))

    def numbers(self) -> list[float]:
        """Return sizes; and for each thing that is seen a number, which is the same for the same.

        Examples
        --------
        >>> from cumae.store.driver import Stolen
        >>> seen = Stolen((), (), (("oracle.db", 4096),), (), (4096, 0), "{}")
        >>> seen.numbers()[:3], len(seen.numbers())
        ([0.0, 4096.0, 4096.0], 9)
        """
        sizes = [self.n_bytes, sum(size for _, size in self.files), self.copy[0]]
        things = (self.new, self.gone, self.files, self.log, self.copy, self.status)
        return [*map(float, sizes), *(float(crc32(repr(thing).encode())) for thing in things)]


class ThiefOfFile(OracleInFile):
    """Drives a predictor that lives in a file, and looks at its disk after every step.

    A step is a call, a rotation of the key that follows it, and closing. ``published`` has all
    looks under ``"stolen"``.

    Parameters
    ----------
    make : callable
        Returns a new driver of a predictor in this process, not fitted.
    folder : str, or None
        Where the file is; None for a temporary folder.
    request_ids : bool
        Whether each call has an id, so that its answers are kept for retries.

    Examples
    --------
    >>> from cumae import QueryRelease
    >>> from cumae.audit.game import InProcess
    >>> from cumae.store.driver import ThiefOfFile
    >>> driver = ThiefOfFile(lambda: InProcess(lambda: QueryRelease(max_queries=5, epsilon=2.0)))
    >>> driver.train([[0.0], [1.0]] * 500, [0, 1] * 500)
    >>> _ = driver.ask([[0.0], [1.0]])
    >>> [name for name, _ in driver.published()["stolen"][0].files][0]
    'oracle.db'
    >>> driver.close()
    """

    def __init__(
        self, make: Callable[[], Any], folder: str | None = None, *, request_ids: bool = False
    ) -> None:
        super().__init__(make, folder)
        self._ids = count() if request_ids else None
        self._known: Rows = {}
        self._stolen: list[Stolen] = []

    def train(self, X: Any, y: Any, **whose: Any) -> None:
        """Fit it, save it, and open it."""
        super().train(X, y, **whose)
        self._look()

    def ask(self, X: Any, **whose: Any) -> Any:
        """Return answers; then let the owner rotate the key, close the oracle and open it."""
        named = {} if self._ids is None else {"request_id": next(self._ids)}
        answers = self._inner.ask(X, **whose, **named)
        self._look()
        self.estimator.rotate_key()  # which writes the whole state in the middle of a phase
        self._look()
        self.restart()
        return answers

    def restart(self) -> None:
        """Close the oracle and open it again."""
        self.estimator.close()
        self._look()
        self._open()

    def supply(self, X: Any) -> None:
        """Give it rows without labels."""
        super().supply(X)
        self._look()

    def label(self, X: Any, y: Any) -> None:
        """Give it rows with labels, after it was trained."""
        super().label(X, y)
        self._look()

    def published(self) -> Any:
        """Return what everybody may see, and what the thief has seen so far."""
        return {**super().published(), "stolen": tuple(self._stolen)}

    def _look(self) -> None:
        """Look at the disk.

        Nothing but SQLite opens the oracle's file in this process, because closing it would end
        SQLite's locks; so rows are read from a backup.
        """
        copy = self.path.with_name("stolen.db")
        files = _files(self.path.parent)
        log = self.path.with_name(self.path.name + "-wal")
        pages = _pages(log.read_bytes()) if log.exists() else ()
        backup(self.path, copy)
        content = copy.read_bytes()
        rows = _rows(copy)
        said = status(copy).to_dict()  # of the file itself it would wait for the lock
        copy.unlink()
        del said["path"]  # of a folder with a random name
        free = struct.unpack_from(">I", content, FREE_PAGES)
        new, gone = (row for row in rows if row not in self._known), self._known.keys() - rows
        self._stolen.append(
            Stolen(
                _shapes(new),
                _shapes(gone),
                files,
                pages,
                (len(content), *free),
                _shape(json.dumps(said)),
            )
        )
        self._known = rows


def by_a_thief(attack: Attack, folder: str | None = None, **options: Any) -> Attack:
    """Return the same attack with a thief's view of the file beside the answers.

    Parameters
    ----------
    attack : Attack
        One on a predictor in this process.
    folder : str, or None
        Where files are; None for temporary folders.
    **options : object
        Of :class:`ThiefOfFile`.

    Raises
    ------
    MissingPackage
        If a package is missing without which there are no oracles in files.
    """
    place_of("oracle.db")
    return replace(
        attack,
        name=f"{attack.name}, by a thief of the file",
        make=partial(ThiefOfFile, attack.make, folder, **options),
        play=partial(_with_the_loot, attack.play),
        distinguish=by_classes,
    )


def _with_the_loot(play: Callable[[Game], Any], game: Game) -> list[float]:
    own = np.ravel(play(game)).tolist()
    return [*own, *(number for look in game.published()["stolen"] for number in look.numbers())]


def _rows(path: Path) -> Rows:
    """Return all rows of all tables in a file of SQLite, each with the name of its table."""
    file = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        tables = [name for (name,) in file.execute("SELECT name FROM sqlite_schema ORDER BY name")]
        return {
            (name, *row): None
            for name in tables
            if not name.startswith("sqlite_")
            for row in file.execute(f'SELECT * FROM "{name}"')  # noqa: S608 - the file's own names
        }
    finally:
        file.close()


def _files(folder: Path) -> tuple[tuple[str, int], ...]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return tuple(
        sorted((_shape(str(path.relative_to(folder))), path.stat().st_size) for path in found)
    )


def _pages(log: bytes) -> tuple[int, ...]:
    """Return the numbers of the pages in SQLite's log."""
    if len(log) < LOG_HEADER:
        return ()
    (size,) = struct.unpack_from(">I", log, PAGE_SIZE)
    frames = range(LOG_HEADER, len(log), FRAME_HEADER + size)
    return tuple(struct.unpack_from(">I", log, frame)[0] for frame in frames)


def _shapes(rows: Iterable[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
    """Return what tells of rows: sorted, because names of answers for retries are random."""
    return tuple(sorted((tuple(map(_shape, row)) for row in rows), key=repr))


def _shape(cell: Any) -> Any:
    if isinstance(cell, bytes):
        return len(cell)
    if isinstance(cell, str):
        return RANDOM.sub(lambda found: f"<{len(found[0])}>", cell)
    return repr(cell)  # numbers of rows are no lengths
