"""Lives of oracles in files, step by step, and what is seen of them."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from typer.testing import CliRunner

from cumae import store
from cumae.checks.observables import Sight, contents_cannot_be_seen
from cumae.cli import app
from cumae.errors import CumaeError, VotesIgnored
from cumae.store.homes.postgres import NAMES
from tests.observables.cases import Case
from tests.observables.ideal import Ideal, Published, explained
from tests.observables.watch import SightRecorder, WatchedDisk, digest
from tests.observables.worlds import Change, World, changes
from tests.oracles import Where, break_off
from tests.servers import PostgresServer

MOST_LABELS = 2  # that are told in one step
FILL = 45  # queries that no phase is longer than
COMPILING = re.compile("cumae compiles some loops.*\n")  # once in each process, by what is asked
LONG_LIFE = [  # of each predictor as much as it can do
    ("supply", 30),
    ("ask", 3),
    ("tell", 1),
    ("label", 1),
    ("listed", 0),
    ("named", 1),
    ("retry", 0),
    ("restart", 0),
    ("crash", 0),
    ("kill", 3),
    ("look", 0),
    ("fill", 2),
    ("rotate", 0),
    ("ask", 0),
]
LOOKS = ("status", "status --json", "status --full", "show", "show --json", "verify")


class Life:
    """One oracle in one world.

    Parameters
    ----------
    case : Case
        The predictor.
    world : World
        What it gets.
    watch : Watch
        What sees it.
    disk : WatchedDisk
        Its disk.
    """

    def __init__(self, case: Case, world: World, watch: SightRecorder, disk: WatchedDisk) -> None:
        self.case, self.world, self.watch, self.disk = case, world, watch, disk
        self.where = Where(watch.folder / "oracle.db", None, watch.folder)
        self.one: Any = None
        self.asked = self.told = self.added = self.backups = 0
        self.last: tuple[Any, dict[str, Any]] | None = None
        self.unlabelled: list[int] = []

    def begin(self, _: int) -> None:
        """Fit, save and open."""
        made, world = self.case.make(self.world.seed), self.world
        classes = made.classes
        labels = [classes[label] for label in world.labels]
        users = getattr(made, "user_ids", False)
        who = {"users": [f"{world.names}{place}" for place in range(len(labels))]} if users else {}
        made.fit(world.table(world.rows), labels, **who)
        self.watch.see("what it says", str(made.guarantee_))
        self.where.save(made)
        self.open()

    def open(self) -> None:
        self.one = self.where.open(estimator=self.case.given)

    def do(self, step: str, number: int) -> None:
        """Do one step; see what it says, and what is there afterwards."""
        self.watch.see("step", step)
        said = io.StringIO()
        with (
            warnings.catch_warnings(record=True) as heard,
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
        ):
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", VotesIgnored)  # how much votes count is a release
            try:
                getattr(self, step)(number)
            except CumaeError as error:
                self.watch.see("error", (type(error).__name__, str(error)))
        self.watch.see("warnings", [str(warning.message) for warning in heard])
        self.watch.see("terminal", COMPILING.sub("", said.getvalue()))
        self.watch.look_around()
        self.look_into_tables()

    def look_into_tables(self) -> None:
        """See all rows of tables in PostgreSQL, in which sealed cells are coins."""

    # Steps

    def ask(self, number: int, **more: Any) -> None:
        """Ask one to four queries."""
        self._ask(number % 4 + 1, **more)

    def named(self, number: int) -> None:
        self.ask(number, request_id=f"{self.world.names} {self.asked}")

    def listed(self, number: int) -> None:
        """Ask with lists of rows, whose cells may be anything."""
        self._ask(number % 4 + 1, listed=True)

    def retry(self, number: int) -> None:
        del number
        if self.last is not None:
            asked, given = self.last
            self._see(self.one.predict(asked, **given))

    def fill(self, number: int) -> None:
        """Ask until a phase has ended, if phases have an end."""
        left = getattr(self.one._state_, "left", FILL)
        self._ask(min(int(left), FILL) + number % 3)

    def _ask(self, count: int, *, listed: bool = False, **more: Any) -> None:
        if self.case.public_queries:
            count = int(min(count, self.one.remaining_))
        numbers = list(range(self.asked, self.asked + count))
        self.asked += count
        world, one = self.world, self.one
        if getattr(one, "user_ids", False):
            more["users"] = [f"{world.names}{5_000 + place - place % 3 // 2}" for place in numbers]
        if getattr(one, "client_cap", None) is not None:
            more["clients"] = [f"{world.names}{place % 3}" for place in numbers]
        if "tell" in self.case.steps:
            more["query_ids"] = [f"{world.names}{place}" for place in numbers]
            self.unlabelled = numbers
        rows = [world.query(place) for place in numbers]
        asked = rows if listed else world.table(rows)
        if "request_id" in more:
            self.last = (asked, more)
        self._see(one.predict(asked, **more))

    def _see(self, answers: Any) -> None:
        """See that answers came, but not which."""
        seen = (len(answers), self.one.phase_ if hasattr(self.one, "phase_") else 0)
        self.watch.see("answers", (*seen, getattr(self.one, "remaining_", 0)))
        if self.disk.dies_in is None:
            self.backup()

    def backup(self) -> None:
        copy = self.watch.folder / "copy.db"
        store.backup(self.where.address, copy)
        content = copy.read_bytes()
        self.watch.see("backup", (len(content), digest(content)))
        copy.unlink()

    def tell(self, number: int) -> None:
        """Tell labels of queries that were asked last, usable or not."""
        names = self.unlabelled[: number % MOST_LABELS + 1]
        labels = [self._label() for _ in names]
        self.one.add_labels([f"{self.world.names}{place}" for place in names], labels)

    def label(self, number: int) -> None:
        """Add rows with labels."""
        rows = self._rows(number % 3 + 1)
        users = {}
        if getattr(self.one, "user_ids", False):
            users = {
                "users": [f"{self.world.names}a{self.added + row}" for row in range(len(rows))]
            }
        self.one.add_labelled(self.world.table(rows), [self._label() for _ in rows], **users)

    def supply(self, number: int) -> None:
        """Supply rows without labels."""
        self.one.add_unlabelled(self.world.table(self._rows(number % 50 + 1)))

    def _label(self) -> Any:
        self.told += 1
        return self.one.classes[self.world.told[self.told % len(self.world.told)]]

    def _rows(self, count: int) -> list[Any]:
        world, first = self.world, self.added
        self.added += count
        return [world.added[place % len(world.added)] for place in range(first, first + count)]

    def restart(self, number: int) -> None:
        del number
        self.one.close()
        self.watch.look_around()
        self.open()

    def crash(self, number: int) -> None:
        """Leave the disk as it is, and open it again."""
        del number
        self.disk.dies_in = 0
        try:
            break_off(self.one)
        finally:
            self.disk.dies_in = None
        self.watch.look_around()
        self.open()

    def kill(self, number: int) -> None:
        """Ask, and die at one of the writes."""
        self.disk.dies_in = number
        try:
            self._ask(2, request_id=f"{self.world.names} {self.asked}")
        except CumaeError as error:
            self.watch.see("error", (type(error).__name__, str(error)))
        self.crash(number)

    def look(self, number: int) -> None:
        """Run the commands that need no keys."""
        del number
        self._look(LOOKS)

    def _look(self, commands: Sequence[str]) -> None:
        for command in commands:
            name, *flags = command.split()
            done = CliRunner().invoke(app, [name, str(self.where.address), *flags])
            self.watch.see(f"cumae {command}", (done.exit_code, done.output))

    def rotate(self, number: int) -> None:
        del number
        self.one.rotate_key()

    def close(self, number: int) -> None:
        """Look at it once more, and close it."""
        del number
        self._look(LOOKS[1:2])
        self.one.close()


class LifeInPostgres(Life):
    """One oracle in a schema of its own, which is the same one in all worlds.

    Parameters
    ----------
    server : PostgresServer
        Where it is.
    *given : object
        As for ``Life``.
    """

    schema = "life"

    def __init__(self, server: PostgresServer, *given: Any) -> None:
        super().__init__(*given)
        server.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")
        server.execute(f"CREATE SCHEMA {self.schema}")
        keys = self.watch.folder / "keys"
        self.where = Where(server.address(self.schema), f"folder:{keys}", keys, server)
        self.watch.unread += ("home.key",)  # it names the table, which is a new one each time

    def look_into_tables(self) -> None:
        for name in NAMES:
            asked = f"SELECT t, pg_column_size(t) FROM cumae_{name} t ORDER BY 1"  # noqa: S608
            rows = self.where.server.execute(asked, self.schema)
            for number, (row, size) in enumerate(rows):
                self.watch.see(f"row {number} of {name}", (size, digest(repr(row).encode())))


def lived(
    case: Case,
    steps: list[tuple[str, int]],
    world: World,
    folder: Path,
    published: Published,
    *,
    real_cipher: bool = False,
    kind: Callable[..., Life] = Life,
) -> tuple[list[Sight], list[bytes]]:
    """Return what is seen of a life in one world, and contents to explain differences."""
    folder.mkdir()
    watch = SightRecorder(folder)
    ideal = Ideal(watch.seen, world.seed)
    published.again()
    try:
        with pytest.MonkeyPatch.context() as patch, watch.watching() as disk:
            ideal.apply(patch, real_cipher=real_cipher)
            published.apply(patch)
            life = kind(case, world, watch, disk)
            life.do("begin", 0)
            for step, number in [*steps, ("close", 0)]:
                if life.one is None:
                    break
                life.do(step, number)
            if life.one is not None:
                life.one.close()
    finally:
        shutil.rmtree(folder)
    return watch.seen, ideal.plain


def law(
    case: Case,
    steps: list[tuple[str, int]],
    worlds: list[World],
    folder: Path,
    kind: Callable[..., Life] = Life,
) -> int:
    """Demand that worlds look the same; the message explains what differs."""
    if case.public_queries:
        worlds = [world.with_queries_of(worlds[0]) for world in worlds]
    published, contents = Published(), []

    def live(world: World) -> list[Sight]:
        seen, plain = lived(case, steps, world, folder / "life", published, kind=kind)
        contents.append(plain)
        return seen

    try:
        return contents_cannot_be_seen(live, worlds)
    except AssertionError as error:
        raise AssertionError(f"{error}; {explained(contents[0], contents[-1])}") from None


@st.composite
def examples(draw: Any, case: Case) -> tuple[list[tuple[str, int]], World, list[Change]]:
    """Return steps, a world, and how another one differs from it."""
    numbers = st.integers(0, 11)
    steps = draw(st.lists(st.tuples(st.sampled_from(case.steps), numbers), min_size=1, max_size=5))
    world = World.base(case.kind, case.n_rows, constant=draw(st.booleans()))
    return steps, world, draw(changes(case.kind, public_queries=case.public_queries))
