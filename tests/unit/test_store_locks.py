"""Locks of SQLite on an open oracle, as the system's table of locks shows them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import cumae
from cumae import Budget, InvalidParameter, StoreFailed, store
from cumae.cli import app
from cumae.locks import FileLock
from cumae.privacy import Pure
from cumae.store.keys import KeyFolder
from tests.oracles import ROWS, everlasting, oracle

TABLE = Path("/proc/locks")
pytestmark = [
    pytest.mark.claim("STORE"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.skipif(not TABLE.exists(), reason="needs the table of locks of Linux"),
]


def locked(path: Path) -> set[str]:
    """Return which files of an open oracle this process has POSIX locks on: itself, its log."""
    held = set()
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if "POSIX" in words and str(os.getpid()) in words:
            held.add(int(words[words.index(str(os.getpid())) + 1].rpartition(":")[2]))
    endings = ("", "-shm")
    return {end for end in endings if path.with_name(path.name + end).stat().st_ino in held}


def elsewhere(path: Path) -> None:
    """Look at the oracle with another program, which folds up the log if nobody has a lock."""
    work = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('select * from ledger')"
    subprocess.run([sys.executable, "-c", work, str(path)], check=True)


def saved_again(path: Path) -> None:
    with pytest.raises(InvalidParameter, match="exists already"):
        everlasting().save_to(path)


def opened_twice(path: Path) -> None:
    with pytest.raises(cumae.LiveState):
        cumae.open(path)


def another_file(path: Path) -> None:
    everlasting().save_to(path.with_name("other.db"))
    cumae.open(path.with_name("other.db")).close()
    store.destroy(path.with_name("other.db"))


def account_beside_it(path: Path) -> None:
    budget = Budget(1.0)
    budget.save_to(path.with_name("account.db"))
    budget.spend(Pure(0.5))
    assert cumae.open(path.with_name("account.db")).spent == (0.5, 0.0)


def by_command(*words: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        done = CliRunner().invoke(app, [words[0], str(path), *words[1:]])
        assert done.exit_code in (0, 3), done.output

    return run


CALLS: dict[str, Callable[[Path], Any]] = {
    "status": store.status,
    "backup": lambda path: store.backup(path, path.with_name(f"copy{os.urandom(4).hex()}.db")),
    "save_to": saved_again,
    "open": opened_twice,
    "cumae status": by_command("status"),
    "cumae verify": by_command("verify"),
    "another file": another_file,
    "an account": account_beside_it,
    "another process": elsewhere,
    "status in another process": lambda path: subprocess.run(
        [sys.executable, "-m", "cumae", "status", str(path)], check=True, capture_output=True
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_call_drops_the_locks_of_an_open_oracle(name: str, tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    assert locked(path) == {"", "-shm"}  # from the opening on
    stored.predict(ROWS[:5])
    assert locked(path) == {"", "-shm"}
    CALLS[name](path)
    assert locked(path) == {"", "-shm"}
    assert path.with_name("oracle.db-wal").exists()
    stored.predict(ROWS[:5], request_id="one")
    stored.predict(ROWS[:5], request_id="one")
    assert locked(path) == {"", "-shm"}
    stored.close()
    assert not path.with_name("oracle.db-wal").exists()
    assert cumae.open(path).answered_ == 10


def test_the_test_of_locks_has_teeth(tmp_path: Path) -> None:
    """Whoever reads a byte of the file and closes it has dropped the locks."""
    path, stored = oracle(tmp_path)
    path.open("rb").close()
    assert "" not in locked(path)
    stored.close()


def test_answers_survive_a_look_from_elsewhere_and_a_kill(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    stored.close()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            stored = cumae.open(path)
            stored.predict(ROWS[:5])
            store.status(path)
            elsewhere(path)
            stored.predict(ROWS[:20])
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert store.status(path).totals.answers == 25
    assert cumae.open(path).answered_ == 25


def test_another_kind_of_file_is_named_before_its_mode(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,b\n" + "1,2\n" * 500, encoding="utf-8")
    table.chmod(0o644)
    with pytest.raises(StoreFailed, match="another kind of file"):
        cumae.open(table)
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


# --- the lock that keeps other processes away


@pytest.fixture
def children() -> Iterator[list[int]]:
    """Processes that live until the test ends."""
    made: list[int] = []
    yield made
    for child in made:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def fork(children: list[int]) -> None:
    child = os.fork()
    if not child:  # pragma: no cover
        signal.pause()
    children.append(child)


def test_a_process_that_was_forked_meanwhile_does_not_hold_an_oracle(
    tmp_path: Path, children: list[int]
) -> None:
    path, stored = oracle(tmp_path)
    fork(children)
    with pytest.raises(cumae.LiveState):
        cumae.open(path)
    stored.close()
    cumae.open(path).close()


def test_a_process_that_was_forked_while_an_account_is_destroyed_does_not_hold_it(
    tmp_path: Path, children: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever pays waits for the lock: for ever, if the destruction was broken off."""
    account = Budget(1.0)
    account.save_to(tmp_path / "account")

    def broken(_: object) -> None:
        fork(children)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(KeyFolder, "destroy", broken)
        with pytest.raises(KeyboardInterrupt):
            store.destroy(tmp_path / "account")
    lock = FileLock(tmp_path / "account.keys" / "lock", os.O_RDWR)
    lock.take(wait=False)
    lock.close()
    account.spend(Pure(0.25))


def test_an_opening_that_is_broken_off_lets_go_of_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if somebody keeps the error, as a console does."""
    path, stored = oracle(tmp_path)
    stored.close()
    real = FileLock.take

    def taken(self: FileLock, *, wait: bool = True) -> None:
        real(self, wait=wait)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FileLock, "take", taken)
        with pytest.raises(KeyboardInterrupt) as kept:
            cumae.open(path)
    cumae.open(path).close()
    assert kept.value is not None
