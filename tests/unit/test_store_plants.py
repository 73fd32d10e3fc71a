"""Bugs that a durable oracle could have, planted: the audit and the tests of its laws find them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cumae
from cumae import BudgetExhausted, StoreFailed, store
from cumae.audit.attacks.everlasting import query, training_row
from cumae.audit.attacks.predictors import FEW, alike, mark_a_row, release_row
from cumae.audit.runs import Attack, audit
from cumae.predictors import EverlastingPredictor
from cumae.predictors.answering.events import Answered, Charged
from cumae.predictors.state import State, state_of
from cumae.randomness import SeededSource, SystemSource
from cumae.store import journal, keys, ledger, pieces
from cumae.store.driver import OracleInFile, in_a_file
from cumae.store.homes.sqlite import SqliteFile
from cumae.store.sealed import Seal
from tests.oracles import MARKED, ROWS, break_off, oracle
from tests.states import rows_of

pytestmark = [pytest.mark.claim("STORE"), pytest.mark.filterwarnings("ignore::UserWarning")]

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - syncs are free there
UNCLEAR = np.full((60, 1), 0.3)  # whose answers are coins


# --- the audit drives the file


@pytest.mark.system_coins
@pytest.mark.parametrize("build", [training_row, query, release_row])
def test_attacks_play_against_a_file_with_restarts(build: Callable[..., Attack]) -> None:
    attack = in_a_file(build(epsilon=1.0), MEMORY)
    assert attack.name.endswith(", in a file")
    found = audit(attack, runs=20, progress=False)
    assert not found.broken


class Often(OracleInFile):
    """Restarts after every 2,048 answers, which is a phase here."""

    def ask(self, X: Any, **whose: Any) -> Any:
        answers = []
        for start in range(0, len(X), 2_048):
            answers.append(self._inner.ask(X[start : start + 2_048], **whose))
            self.restart()
        return np.concatenate(answers)


@pytest.mark.audit
@pytest.mark.system_coins
def test_a_ledger_that_forgets_a_debit_after_a_restart_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attack = training_row(epsilon=1.0, delta=0.05)
    rows, asked = alike(8 * FEW), alike(16 * 2_048)[0]
    play = mark_a_row(rows, asked)
    make: Any = partial(Often, attack.make, MEMORY)
    planted = replace(attack, make=make, play=play)
    # A restart gives back all releases, and nobody looks.
    monkeypatch.setattr(Answered, "apply", lambda self, state: None)
    monkeypatch.setattr(ledger.Totals, "_answer", lambda self, facts: None)
    monkeypatch.setattr(EverlastingPredictor, "_due", lambda self, state, coins, wanted: None)
    assert audit(planted, runs=150, progress=False).broken


def test_the_ledger_notices_it_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, stored = oracle(tmp_path)
    with monkeypatch.context() as patch:
        said = {"event": "answered", "count": 2, "used": 0}
        patch.setattr(Answered, "entry", lambda self: said)
        with pytest.raises(StoreFailed):
            stored.predict(ROWS[:2])
    break_off(stored)
    stored = cumae.open(path)
    stored.predict(ROWS[:2])
    stored.close()
    with monkeypatch.context() as patch:
        patch.setattr(Answered, "apply", lambda self, state: None)
        with pytest.raises(StoreFailed, match="disagree"):
            cumae.open(path)
    cumae.open(path).close()


# --- laws of a file, each with a bug that breaks it


def lives_have_their_own_noise(path: Path, folder: Path) -> bool:
    """Two lives that go on from the same file answer with different noise."""
    shutil.copytree(folder, folder.with_name("twin"))  # with its keys: nobody may do that
    found = []
    for one in (path, folder.with_name("twin") / path.name):
        stored = cumae.open(one)
        found.append(stored.predict(UNCLEAR).tolist())
        stored.close()
    return bool(found[0] != found[1])


@pytest.mark.system_coins
def test_noise_from_a_stored_generator_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for planted in (False, True):
        folder = tmp_path / str(planted)
        folder.mkdir()
        path, stored = oracle(folder, epsilon=2.0)  # so that noise decides
        stored.close()
        if planted:
            real = state_of

            def stored_generator(*given: Any, real: Any = real) -> Any:
                source = SeededSource(7)  # as if it came from the file
                monkeypatch.setattr(SystemSource, "words", lambda _, count: source.words(count))
                return real(*given)

            monkeypatch.setattr(pieces, "state_of", stored_generator)
        assert lives_have_their_own_noise(path, folder) is not planted
        monkeypatch.undo()
        shutil.rmtree(folder.with_name("twin"))


def a_retry_is_the_same_and_free(path: Path) -> bool:
    stored = cumae.open(path)
    before, first = stored.answered_, stored.predict(UNCLEAR, request_id="one").tolist()
    again = stored.predict(UNCLEAR, request_id="one").tolist()
    stored.close()
    stored = cumae.open(path)
    third = stored.predict(UNCLEAR, request_id="one").tolist()
    spent = stored.answered_ - before
    stored.close()
    return bool(first == again == third and spent == len(UNCLEAR))


@pytest.mark.system_coins
def test_a_retry_that_draws_anew_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, stored = oracle(tmp_path)
    stored.close()
    assert a_retry_is_the_same_and_free(path)
    monkeypatch.setattr(journal.DurableJournal, "_stored", lambda self, name: None)
    assert not a_retry_is_the_same_and_free(path)


def old_rows_are_gone(folder: Path) -> bool:
    """Nobody reads a query of an earlier phase, with every byte and all keys that are left."""
    path, stored = oracle(folder)
    with SqliteFile(path, reading=True) as file:
        known = file.meta()["oracle"]
    stored.predict(np.full((3, 1), MARKED))
    blobs = list(stored._counter_.journal.writer.home.blobs())  # as in an old backup
    stored.predict(rows_of(ROWS, 0, 410))
    stored.close()
    for name in (folder / "oracle.db.keys").glob("*.key"):
        for blob in blobs:
            try:
                found = Seal(name.read_bytes(), known, 1).open(blob.parts, blob.kind, blob.number)
            except StoreFailed:
                continue
            if np.float64(MARKED).tobytes() in found:
                return False
    files = [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
    return not any(np.float64(MARKED).tobytes() in content for content in files)


@pytest.mark.parametrize("bug", ["", "keys are kept", "nothing is encrypted"])
def test_kept_rows_that_survive_their_phase_are_found(
    bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if bug == "keys are kept":
        monkeypatch.setattr(keys.KeyStore, "keep_epoch", lambda *_: None)
    if bug == "nothing is encrypted":
        monkeypatch.setattr(Seal, "close", lambda self, content, *where, **more: [content])
        monkeypatch.setattr(Seal, "open", lambda self, parts, *where: b"".join(parts))
    assert old_rows_are_gone(tmp_path) == (not bug)


def answers_of_all_lives(folder: Path) -> int:
    """Return how many answers one phase gives in all, when a backup is put back again and again."""
    path, stored = oracle(folder, max_rows=400)
    store.backup(path, folder / "backup.db")
    given = 0
    for _ in range(6):
        count = min(100, stored._state_.left)
        if count:
            stored.predict(rows_of(ROWS, 0, count))
        given += count
        stored.close()
        shutil.copy(folder / "backup.db", path)
        stored = cumae.open(path, accept_rollback=True)
    stored.close()
    return given


def test_a_backup_that_answers_again_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for planted in (False, True):
        folder = tmp_path / str(planted)
        folder.mkdir()
        if planted:
            free = lambda self, count, why, source: Charged(self.spent, why)  # noqa: E731
            monkeypatch.setattr(State, "charged", free)
        assert (answers_of_all_lives(folder) <= 400) is not planted


def test_a_release_ends_for_all_lives(tmp_path: Path) -> None:
    release = cumae.QueryRelease(max_queries=10, epsilon=50.0, n_shards=20)
    release.fit(ROWS, (ROWS[:, 0] > 0.3).astype(int)).save_to(tmp_path / "oracle.db")
    shutil.copy(tmp_path / "oracle.db", tmp_path / "backup.db")
    stored = cumae.open(tmp_path / "oracle.db")
    stored.predict(ROWS[:10])
    stored.close()
    shutil.copy(tmp_path / "backup.db", tmp_path / "oracle.db")
    stored = cumae.open(tmp_path / "oracle.db", accept_rollback=True)
    with pytest.raises(BudgetExhausted):
        stored.predict(ROWS[:1])
    stored.close()
