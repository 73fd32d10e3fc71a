"""A serving oracle is killed at every system call that writes, syncs, renames or removes."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import cumae
from cumae import StoreFailed, store
from cumae.store import keys, pieces
from tests.oracles import ROWS, oracle
from tests.states import rows_of

pytestmark = [
    pytest.mark.claim("STORE"),
    pytest.mark.debian("strace"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

CALLS = ("pwrite64", "write", "fdatasync", "fsync", "rename", "unlink", "ftruncate")
ANYBODY, MAY_TRACE = -1, 0x59616D61  # prctl's PR_SET_PTRACER
MOST = 200  # of one kind of call


@pytest.fixture(autouse=True)
def _nobody_else_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a status of an open oracle look at its lock once: trying again takes longer than all."""
    monkeypatch.setattr(keys, "TRIES", 1)
    monkeypatch.setattr(
        pieces, "LEAST_PIECE_BYTES", 8
    )  # so that the next phase is written ahead in many parts


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an oracle that is three answers before the end of its phase."""
    folder = tmp_path_factory.mktemp("begun")
    _, stored = oracle(folder, late=0.1, background=True)
    stored.predict(rows_of(ROWS, 0, 358), request_id="before")
    stored.close()
    return folder


def serve(path: Path, told: int) -> None:
    """Answer until the next phase has begun, and tell after each answer that it was given."""
    stored = cumae.open(path)
    for number, count in enumerate((1, 1, 40, 1, 2)):
        stored.predict(rows_of(ROWS, number, number + count), request_id=number)
        os.write(told, bytes([count]))
    stored.close()


def run(path: Path, *inject: str) -> tuple[int, int, list[str]]:
    """Serve in a process of its own; return its status, the answers that it gave, and its calls."""
    reading, writing = os.pipe()
    wait, go = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            ctypes.CDLL(None).prctl(MAY_TRACE, ANYBODY, 0, 0, 0)
            os.read(wait, 1)
            serve(path, writing)
            os._exit(0)
        finally:
            os._exit(3)
    os.close(writing)
    log = path.with_name("calls")
    asked = ["strace", "-f", "-o", str(log), "-e", f"trace={','.join(CALLS)}"]
    tracer = subprocess.Popen(
        [*asked, *inject, "-p", str(child)], stderr=subprocess.PIPE, text=True
    )
    assert tracer.stderr is not None
    assert "attached" in tracer.stderr.readline()
    os.write(go, b"!")
    given = 0
    while told := os.read(reading, 100):
        given += sum(told)
    _, status = os.waitpid(child, 0)
    tracer.communicate()
    for descriptor in (reading, wait, go):
        os.close(descriptor)
    return status, given, log.read_text(encoding="utf-8").splitlines()


def copied(begun: Path, folder: Path) -> Path:
    shutil.copytree(begun, folder)
    return folder / "oracle.db"


def test_it_is_killed_everywhere_and_nothing_is_forgotten(begun: Path, tmp_path: Path) -> None:
    status, given, calls = run(copied(begun, tmp_path / "whole"))
    assert (status, given) == (0, 45)
    started, killed = time.monotonic(), 0
    for call in CALLS:
        count = sum(f" {call}(" in line for line in calls)
        assert count < MOST
        for number in range(1, count + 1):
            path = copied(begun, tmp_path / f"{call}{number}")
            wanted = f"inject={call}:signal=SIGKILL:when={number}"
            status, given, _ = run(path, "-e", wanted)
            if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
                continue  # a run may need fewer calls than the one that was counted
            killed += 1
            check(path, given, f"{call} {number}")
            shutil.rmtree(path.parent)
    assert killed > 60, (killed, time.monotonic() - started)


def check(path: Path, given: int, where: str) -> None:
    before = store.status(path).totals
    assert before.answers >= 358 + given, where
    stored = cumae.open(path)  # never a damaged file, and no decision is needed
    known = store.status(path).totals
    assert stored.answered_ == known.answers == before.answers, where
    assert known.answers - (400 if stored.phase_ == 2 else 0) <= known.used <= known.releases, where
    keys_left = [one.stem.split("-") for one in path.with_name("oracle.db.keys").glob("epoch*")]
    epochs = [int(number) for _, number, _ in keys_left]  # and perhaps one that never began
    assert min(epochs) == known.epoch, where
    assert epochs.count(known.epoch) == 1, where
    # Answers that were given are given again, for free; others are new.
    answered = stored.answered_
    if stored.phase_ == 1:
        stored.predict(rows_of(ROWS, 0, 358), request_id="before")
        assert stored.answered_ == answered, where
    for number, (told, count) in enumerate(((1, 1), (2, 1), (42, 40), (43, 1), (45, 2))):
        stored.predict(rows_of(ROWS, number, number + count), request_id=number)
        if given >= told and stored.phase_ == 1:
            assert stored.answered_ == answered, where
    stored.close()
    store.status(path)


@pytest.mark.parametrize("call", ["fdatasync", "pwrite64", "fsync", "rename"])
@pytest.mark.parametrize("error", ["EIO", "ENOSPC", "EROFS"])
def test_calls_that_fail_are_never_taken_for_done(
    call: str, error: str, begun: Path, tmp_path: Path
) -> None:
    """From some call on all of a kind fail: the process stops, and what it gave was charged.

    A file system that meets an error becomes read-only, and then all of them fail with EROFS.
    """
    for number in (1, 3, 6):
        path = copied(begun, tmp_path / f"{number}")
        _, given, _ = run(path, "-e", f"inject={call}:error={error}:when={number}+")
        before: Any = store.status(path).totals
        assert before.answers >= 358 + given
        try:
            stored = cumae.open(path)
        except StoreFailed:
            continue
        assert stored.answered_ >= 358 + given
        stored.close()
