"""A call of an oracle that is broken off, at any line: nothing is lost, and nothing is free."""

from __future__ import annotations

import itertools
import linecache
import shutil
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cumae
from cumae import QueryRelease, StoreFailed, store
from cumae.concepts import Thresholds
from cumae.store import journal, writer
from cumae.store.writer import Change
from tests.oracles import ROWS, oracle
from tests.states import rows_of
from tests.tracing import Traced

pytestmark = [pytest.mark.claim("STORE"), pytest.mark.filterwarnings("ignore::UserWarning")]

FILES = (writer.__file__, journal.__file__)


class Interrupt(Traced):
    """Raises ``KeyboardInterrupt`` at the n-th line of the writer or the journal, once.

    Parameters
    ----------
    place : int
        Which of the lines.
    start : str
        What lines that count begin with.
    """

    def __init__(self, place: int, start: str = "") -> None:
        self.left, self.start, self.fired = place, start, False

    def trace(self, frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in FILES:
            return None
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        # Python never interrupts between the last line of a with block and its end.
        if text.startswith("with ") or not text.startswith(self.start):
            return self.trace
        if event == "line" and not self.fired:
            self.left -= 1
            if self.left == 0:
                self.fired = True
                raise KeyboardInterrupt
        return self.trace


def broken_off(path: Path, place: int) -> bool:
    """Break a call off, ask again, and compare memory and file; tell whether it was broken off."""
    opened = cumae.open(path)
    answered = False
    with Interrupt(place) as shot, suppress(KeyboardInterrupt, StoreFailed):
        opened.predict([[0.5]], query_ids=["first"])
        answered = True
    assert answered != shot.fired
    try:
        opened.predict([[0.7]], query_ids=["second"])
    except StoreFailed:
        opened.close()
    else:  # then it may go on, and the file holds all that memory does
        known, kept = dict(opened._state_.query_places), opened._state_.n_kept
        used = opened._state_.spent.asked
        opened.close()
        assert store.status(path).totals.used == used
        again = cumae.open(path)
        assert (dict(again._state_.query_places), again._state_.n_kept) == (known, kept)
        again.close()
    return shot.fired


def test_a_call_is_broken_off_at_every_line_of_writer_and_journal(tmp_path: Path) -> None:
    path, opened = oracle(tmp_path)
    opened.close()
    for place in itertools.count(1):
        folder = tmp_path / str(place)
        folder.mkdir()
        shutil.copy(path, folder)
        shutil.copytree(path.with_name("oracle.db.keys"), folder / "oracle.db.keys")
        if not broken_off(folder / "oracle.db", place):
            break
    assert place > 100


def test_who_waits_for_a_commit_that_was_broken_off_gets_no_answer(tmp_path: Path) -> None:
    _, opened = oracle(tmp_path)
    held = opened._counter_.journal.writer
    first, second = (held.add(Change([{"event": "rows", "count": 0}])) for _ in range(2))
    with Interrupt(1, "if changes:"), pytest.raises(KeyboardInterrupt):
        held.commit(first)  # it has taken both changes out of the queue
    with pytest.raises(StoreFailed):
        held.commit(second)
    opened.close()


@pytest.mark.parametrize("mechanism", ["stability", "between"])
def test_a_warning_that_is_an_error_comes_after_the_debit(tmp_path: Path, mechanism: str) -> None:
    """It says where the unclear answers ran out, which is private."""
    path = tmp_path / "oracle.db"
    labels = np.random.default_rng(0).integers(0, 2, 3_000)
    rows = np.random.default_rng(1).random((3_000, 1))
    made = QueryRelease(
        Thresholds(), 20.0, 1e-5, max_queries=60, mechanism=mechanism, max_unstable=3
    )
    made.fit(rows, labels).save_to(path)
    opened = cumae.open(path)
    assert opened.remaining_ == 60
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="not looked at"):
            opened.predict(rows[:50])
    opened.close()
    opened = cumae.open(path)
    assert opened.remaining_ == 0
    opened.close()
    assert store.status(path).totals.answers == 50


def test_what_was_drawn_for_a_call_that_failed_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, opened = oracle(tmp_path)

    def broken(*_: Any) -> None:
        raise MemoryError

    # After the draw, and before anything was recorded.
    monkeypatch.setattr("cumae.predictors.everlasting.predictor.weights_of_votes", broken)
    with pytest.raises(MemoryError):
        opened.predict(ROWS[:7])
    monkeypatch.undo()
    opened.predict(ROWS[:2])
    opened.close()
    totals = store.status(path).totals
    assert (totals.used, totals.answers, totals.charged) == (9, 2, 7)
    opened = cumae.open(path)
    assert opened._state_.spent.asked == 9
    assert opened._state_.n_kept == 2
    opened.close()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, ZeroDivisionError])
def test_what_breaks_a_phase_change_off_is_what_is_raised(
    error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal handler may raise while the whole state is gathered, which may take seconds."""
    path, opened = oracle(tmp_path)
    opened.predict(rows_of(ROWS, 0, opened._state_.left - 3))

    def handled(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(journal.DurableJournal, "_record_whole", handled)
        with pytest.raises(error):
            opened.predict(ROWS[:10])
    with pytest.raises(StoreFailed):  # memory may know more than the disk
        opened.predict(ROWS[:1])
    opened.close()
    cumae.open(path).close()
