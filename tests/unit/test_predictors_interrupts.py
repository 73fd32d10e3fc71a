"""A thread that asks with others is interrupted, anywhere: nobody hangs, nothing is had twice."""

from __future__ import annotations

import itertools
import linecache
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import cumae
from cumae import CumaeError, StoreFailed
from cumae.predictors.answering import counter
from cumae.predictors.answering import queue as queues
from tests.oracles import everlasting
from tests.tracing import Traced

pytestmark = [pytest.mark.claim("STORE"), pytest.mark.filterwarnings("ignore::UserWarning")]

PATIENCE = 30.0  # seconds until a thread that waits counts as stuck
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - syncs are free there
FILES = {counter.__file__, queues.__file__}
# Python runs signal handlers where a function begins, where a loop goes back, after a call of C,
# and in a lock that waits. So never between a with block and its end, and not before a store that
# comes first in a finally block.
SAFE = (
    *("with ", "try:", "finally:", "else:", "except "),
    *("CALLS.objects = outside", "party.left = True", "batch.done = True"),
)


class Shot(Traced):
    """Interrupts at the n-th line, or beginning of a function, of counter and queue, once."""

    def __init__(self, place: int) -> None:
        self.left, self.fired = place, ""
        self._seen: set[tuple[str, int, str]] = set()

    def trace(self, frame: Any, event: str, _: Any) -> Any:
        file, line = frame.f_code.co_filename, frame.f_lineno
        if file not in FILES:
            return None
        text = linecache.getline(file, line).strip()
        if event not in ("line", "call") or (event == "line" and text.startswith(SAFE)):
            return self.trace
        if not self.fired and (file, line, event) not in self._seen:  # each counts once
            self._seen.add((file, line, event))
            self.left -= 1
            if self.left == 0:
                self.fired = f"{event} of {frame.f_code.co_qualname}: {text}"
                raise KeyboardInterrupt
        return self.trace


class Three:
    """Three threads that ask an oracle: the second one leads for the third, and is this one.

    Parameters
    ----------
    oracle : EverlastingPredictor
        What they ask.
    """

    def __init__(self, oracle: Any) -> None:
        self.oracle, self.found, self.failed = oracle, {}, {}  # type: ignore[var-annotated]
        self._here, self._go_on, self._ended = (threading.Event() for _ in range(3))
        journal = oracle._counter_.journal
        commit = journal.commit

        def held(ticket: int) -> None:
            if not self._here.is_set():
                self._here.set()
                assert self._go_on.wait(PATIENCE)
            commit(ticket)

        journal.commit = held

    def ask(self, name: str) -> None:
        try:
            self.found[name] = self.oracle.predict([[0.9]], request_id=name).tolist()
        except BaseException as error:  # noqa: BLE001 - compared below
            self.failed[name] = type(error)

    def run(self, place: int) -> str:
        """Interrupt this thread at a place; return where that was."""
        first, last, other = (
            threading.Thread(target=target, args=args, daemon=True)
            for target, args in ((self.ask, ("first",)), (self.ask, ("last",)), (self._come, ()))
        )
        first.start()
        assert self._here.wait(PATIENCE)
        self._last = last
        other.start()
        with Shot(place) as shot, suppress(KeyboardInterrupt):
            self.ask("shot")
        self._ended.set()
        for thread in (other, first, last):
            thread.join(PATIENCE)
            assert not thread.is_alive(), f"stuck after an interrupt at {shot.fired}"
        return shot.fired

    def _come(self) -> None:
        """Let the last one stand behind this thread, and then the first one go on."""
        waiting = self.oracle._counter_._queue
        self._until(lambda: len(waiting._waiting) > 1)
        before = len(waiting._waiting)
        self._last.start()
        self._until(lambda: len(waiting._waiting) > before)
        self._go_on.set()

    def _until(self, happened: Any) -> None:
        for _ in range(int(PATIENCE * 1_000)):
            if happened() or self._ended.is_set():
                return
            threading.Event().wait(0.001)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        yield Path(name)


def copied(folder: Path, number: int) -> Path:
    """Return a copy of the oracle in a folder, with its keys."""
    here = folder / str(number)
    here.mkdir()
    shutil.copy(folder / "oracle.db", here)
    shutil.copytree(folder / "oracle.db.keys", here / "oracle.db.keys")
    return here / "oracle.db"


def test_an_interrupt_anywhere_hangs_nobody_and_answers_nobody_twice(folder: Path) -> None:
    """Others get their answers, or are told that these are lost; the file counts all of them."""
    everlasting().save_to(folder / "oracle.db")
    places = []
    for place in itertools.count(1):
        path = copied(folder, place)
        oracle = cumae.open(path)
        three = Three(oracle)
        fired = three.run(place)
        assert three.found["first"] == [1], fired
        assert issubclass(three.failed.get("last", CumaeError), CumaeError), fired
        assert len(three.found) + len(three.failed) == 3
        with suppress(StoreFailed):  # of an event that was broken off in the middle
            assert oracle.predict([[0.1]]).tolist() == [0], fired
        oracle.close()
        again = cumae.open(path)
        totals = again._counter_.journal.writer.totals
        assert len(three.found) <= totals.answers <= 4, fired
        assert totals.used == again._state_.used >= totals.answers, fired
        for name, answers in three.found.items():
            assert again.predict([[0.9]], request_id=name).tolist() == answers, fired
        again.close()
        shutil.rmtree(path.parent)
        if not fired:
            break
        places.append(fired)
    assert len(places) > 80
    assert any(one.startswith("call of CallQueue._look") for one in places)
