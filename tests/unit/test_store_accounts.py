"""Accounts in files with a ledger."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest
from typer.testing import CliRunner

import cumae
from cumae import Budget, BudgetExhausted, InvalidParameter, LiveState, StoreFailed, store
from cumae.cli import app
from cumae.privacy import Approximate, Pure

pytestmark = pytest.mark.claim("STORE", "BUDGET")


def test_an_account_goes_on_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "account.db"
    budget = Budget(1.0, 1e-6)
    budget.spend(Pure(0.25), what="before")
    budget.save_to(path)
    budget.spend(Approximate(0.25, 1e-7), delta=1e-7, what="after")
    again = cumae.open(path)
    assert (again.spent, again.history) == (budget.spent, budget.history)
    again.spend(Pure(0.5), what="there")
    with pytest.raises(BudgetExhausted):
        budget.spend(Pure(0.1))  # it looks at all payments first
    assert [entry.what for entry in budget.entries] == ["before", "after", "there"]
    with pytest.raises(LiveState, match="a second file"):
        budget.save_to(tmp_path / "other.db")
    with pytest.raises(LiveState, match="a second file"):
        budget.save(tmp_path / "other.json")
    with pytest.raises(InvalidParameter, match="exists already"):
        Budget(1.0).save_to(path)
    with pytest.raises(InvalidParameter, match="needs no new key"):
        store.rotate(path)


def test_an_older_copy_is_refused_also_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "account.db"
    budget = Budget(1.0)
    budget.save_to(path)
    budget.spend(Pure(0.25))
    store.backup(path, tmp_path / "copy.db")
    cumae.open(path).spend(Pure(0.25))
    shutil.copy(tmp_path / "copy.db", path)
    for call in (lambda: budget.spend(Pure(0.1)), lambda: cumae.open(path)):
        with pytest.raises(StoreFailed, match="older copy"):
            call()


@pytest.mark.parametrize("after", range(5))
def test_a_payment_that_is_not_on_the_disk_does_not_count(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name, the mark, and the deletion of the mark before are synced: file and folder each."""
    path = tmp_path / "account.db"
    budget = Budget(1.0)
    budget.save_to(path)
    left, real = iter([True] * after), os.fsync

    def full(fd: int) -> None:
        if not next(left, False):
            raise OSError(28, "No space left on device")
        real(fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreFailed, match="OSError"):
            budget.spend(Pure(0.25))
    assert budget.entries == ()
    paid = 0.25 if after >= 2 else 0.0  # paid, though nothing was used
    assert cumae.open(path).spent == (paid, 0.0)
    budget.spend(Pure(1.0 - paid))
    assert budget.remaining == (0.0, 0.0)


def test_processes_together_never_exceed_the_cap(tmp_path: Path) -> None:
    path = tmp_path / "account.db"
    Budget(0.2).save_to(path)
    work = (
        "import sys\n"
        "import cumae\n"
        "from cumae.privacy import Pure\n"
        "budget, paid = cumae.open(sys.argv[1]), 0\n"
        "for _ in range(15):\n"
        "    try:\n"
        "        budget.spend(Pure(0.01))\n"
        "        paid += 1\n"
        "    except cumae.BudgetExhausted:\n"
        "        pass\n"
        "print(paid)\n"
    )
    run = [sys.executable, "-c", work, str(path)]
    both = [subprocess.Popen(run, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sum(int(each.communicate()[0]) for each in both) == 20
    assert len(cumae.open(path).entries) == 20


def test_commands_know_accounts(tmp_path: Path) -> None:
    path = tmp_path / "account.db"
    budget = Budget(1.0)
    budget.save_to(path)
    budget.spend(Pure(0.25))
    run = CliRunner().invoke
    assert "payments:  1" in run(app, ["status", str(path)]).stdout
    assert "1 payments stay within the cap" in run(app, ["verify", str(path)]).stdout
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE ledger SET entry=replace(entry, '0.25', '0.15') WHERE number=2")
    connection.close()
    assert run(app, ["verify", str(path)]).exit_code == 1
    assert run(app, ["destroy", str(path), "--yes"]).exit_code == 3
    store.destroy(path)
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_was_forked_during_a_payment_does_not_hold_the_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker may be started by another thread at any moment, and live for long."""
    path = tmp_path / "account"
    account = Budget(1.0)
    account.save_to(path)
    real, children = Budget._with, []

    def forking(self: Any, entry: Any) -> Any:
        child = os.fork()
        if not child:
            signal.pause()
        children.append(child)
        return real(self, entry)

    monkeypatch.setattr(Budget, "_with", forking)
    try:
        account.spend(Pure(0.25))
        with (tmp_path / "account.keys" / "lock").open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
