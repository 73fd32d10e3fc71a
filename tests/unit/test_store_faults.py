"""What can go wrong with a durable oracle: crashes, copies, full disks, damaged files."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import cumae
from cumae import (
    InvalidParameter,
    LiveState,
    QueryRelease,
    StoreFailed,
    UniversalQueryRelease,
    store,
)
from cumae.codec import FORMAT
from cumae.concepts import Thresholds
from cumae.mechanisms import sparse
from cumae.predictors.state import BLOCKS
from cumae.store import ledger
from cumae.store.homes import sqlite
from cumae.store.keys import KeyFolder
from cumae.store.ledger import following
from cumae.store.sealed import Seal
from tests.oracles import (
    MARKED,
    ROWS,
    SECTOR,
    Unsynced,
    Where,
    break_off,
    everlasting,
    oracle,
)
from tests.states import rows_of
from tests.unit.test_predictors_state_of_all import begun

pytestmark = [pytest.mark.claim("STORE"), pytest.mark.filterwarnings("ignore::UserWarning")]


@pytest.fixture
def disk() -> Iterator[Unsynced]:
    made = Unsynced()
    yield made
    made.unregister()


def used(path: Path) -> int:
    return store.status(path).totals.used


# --- what is published


def published() -> dict[str, tuple[Any, Any, str]]:
    """Return predictors that publish something, what makes them do it, and its name."""
    labels = (ROWS[:, 0] > 0.3).astype(int)
    offline = QueryRelease(Thresholds(), 3.0, mechanism="offline", max_queries=20)
    two = UniversalQueryRelease(Thresholds(), 8.0, n_first=10)
    renewed = cumae.EverlastingPredictor(Thresholds(), 8.0, growth=1.0, columns=[(0, 1)])
    renewed.fit(ROWS, labels).add_labelled(np.tile(ROWS, (2, 1)), np.tile(labels, 2))
    renewed.predict(ROWS[: renewed._state_.left])
    return {
        "offline": (offline.fit(ROWS, labels), ROWS[:20], "hypothesis_"),
        "universal": (two.fit(ROWS, labels), ROWS[:5], "first_answers_"),
        "renewed": (renewed, ROWS[:5], "prior_"),  # with the first answer of the next phase
    }


@pytest.mark.parametrize("kind", ["offline", "universal", "renewed"])
def test_nothing_is_published_that_could_be_drawn_again(
    kind: str, where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, asked, name = published()[kind]
    where.save(made)
    stored = where.open()

    def fails(*_: Any) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(type(stored._counter_.journal.writer.home), "commit", fails)
        with pytest.raises(StoreFailed):
            stored.predict(asked)
        with pytest.raises(StoreFailed):
            getattr(stored, name)
    break_off(stored)
    again = where.open()
    again.predict(asked)
    assert getattr(again, name) is not None
    again.close()


# --- crashes and the mark


def test_a_crash_costs_a_block_at_most_and_never_less_than_was_used(where: Where) -> None:
    stored = where.oracle()
    block = 400 // BLOCKS
    for _ in range(3):
        before = where.used()
        stored.predict(ROWS[:2])
        break_off(stored)
        stored = where.open()
        assert before + 2 <= where.used() <= before + 2 + block
    assert stored.answered_ == 6
    break_off(stored)
    known = where.used()
    stored = where.open()  # nothing was asked in between: nothing more is charged
    assert where.used() == known
    stored.close()


def test_a_mark_that_was_raised_is_charged_though_the_commit_never_came(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = where.oracle()
    stored.predict(ROWS[:5])

    def dead(*_: Any) -> None:
        raise KeyboardInterrupt

    stored._counter_.journal.writer.home.commit = dead
    with pytest.raises(KeyboardInterrupt):
        stored.predict(ROWS[:50])
    with pytest.raises(StoreFailed, match="charged"):
        stored.predict(ROWS[:50])
    break_off(stored)
    stored = where.open()
    assert stored.answered_ == 5
    assert where.used() >= 55
    assert where.status().totals.charged >= 50
    stored.close()


@pytest.mark.parametrize("mechanism", ["stability", "between"])
def test_live_threshold_noise_is_not_used_after_a_crash(
    mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash may have come after answers left that the file does not know of."""
    given: dict[str, Any] = {"max_queries": 150, "max_unstable": 40, "n_shards": 60}
    release = QueryRelease(Thresholds(), 400.0, mechanism=mechanism, **given)
    rows = np.random.default_rng(0).random((600, 1))
    release.fit(rows, (rows[:, 0] > 0.4).astype(int)).save_to(tmp_path / "oracle.db")
    path = tmp_path / "oracle.db"
    stored = cumae.open(path)
    stored.predict(rows[:10])
    stored.close()
    shutil.copy(path, tmp_path / "old.db")
    stored = cumae.open(path)
    unclear = stored._state_.spent.unclear
    stored.predict(np.full((7, 1), 0.9))
    break_off(stored)
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    shutil.copy(tmp_path / "old.db", path)
    monkeypatch.setattr(sparse, "discrete_laplace", lambda rate, source: 1_234_567)
    stored = cumae.open(path, accept_rollback=True)
    assert stored._state_.spent == (17, unclear + 8, 1_234_567)
    stored.close()
    assert cumae.open(path)._state_.spent == (17, unclear + 8, 1_234_567)


# --- copies


def test_an_older_copy_cannot_answer_from_what_was_used(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    stored.predict(ROWS[:20])
    store.backup(path, tmp_path / "backup.db")
    stored.predict(ROWS[:30])
    stored.close()
    path.unlink()
    (tmp_path / "backup.db").rename(path)
    with pytest.raises(StoreFailed, match=r"older copy.*charges 30 answers.*accept_rollback"):
        cumae.open(path)
    stored = cumae.open(path, accept_rollback=True)
    assert (stored.answered_, used(path)) == (20, 50)
    assert stored._state_.left == 350
    stored.predict(ROWS[:1])
    stored.close()
    known = store.status(path).totals
    assert (known.rollbacks, known.charged, known.answers) == (1, 30, 21)
    cumae.open(path).close()  # it is the one in use now


def test_the_file_that_was_left_behind_is_recognised_too(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    stored.predict(ROWS[:20])
    stored.close()
    shutil.copy(path, tmp_path / "copy.db")
    stored = cumae.open(path)
    stored.predict(ROWS[:5])
    stored.close()
    path.rename(tmp_path / "first.db")
    (tmp_path / "copy.db").rename(path)
    stored = cumae.open(path, accept_rollback=True)
    stored.predict(ROWS[:9])
    stored.close()
    (tmp_path / "first.db").rename(path)
    with pytest.raises(StoreFailed, match="older copy"):
        cumae.open(path)
    stored = cumae.open(path, accept_rollback=True)
    assert used(path) == 34  # all of both lives
    stored.close()


def test_a_copy_from_before_a_phase_is_refused_for_ever(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    stored.predict(ROWS[:20])
    stored.close()
    shutil.copy(path, tmp_path / "backup.db")
    (file,) = (tmp_path / "oracle.db.keys").glob("epoch-1-*.key")
    key = file.read_bytes()
    stored = cumae.open(path)
    stored.predict(rows_of(ROWS, 0, 400))
    assert stored.phase_ == 2
    stored.close()
    shutil.copy(tmp_path / "backup.db", path)
    with pytest.raises(StoreFailed, match="can never go on"):
        cumae.open(path, accept_rollback=True)
    file.write_bytes(key)  # as if it were not destroyed
    with pytest.raises(StoreFailed, match="can never go on"):
        cumae.open(path, accept_rollback=True)


# --- what is left of earlier phases


def test_nothing_of_an_earlier_phase_can_be_read(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    keys = tmp_path / "oracle.db.keys"
    old = next(keys.glob("epoch-1-*.key")).read_bytes()
    oracle_id = sqlite.SqliteFile(path, reading=True).meta()["oracle"]
    stored.predict(np.full((3, 1), MARKED), request_id="marked")
    before = list(stored._counter_.journal.writer.home.blobs())
    stored.predict(rows_of(ROWS, 0, 410))
    assert stored.phase_ == 2
    # Every byte of all files, while they are open and after they were closed.
    for _ in range(2):
        files = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
        names = {file.name.partition("-")[0] for file in files}
        assert names >= {"oracle.db", "epoch", "mark", "home.key", "oracle.key"}
        for content in files.values():
            assert np.float64(MARKED).tobytes() not in content
            assert b"0.123456789" not in content
            assert old not in content
        stored.close()
    # The file may still hold old pages. The keys that are left do not open any of them.
    for name in keys.glob("*.key"):
        for blob in before:
            for epoch in (1, 2):
                seal = Seal(name.read_bytes(), oracle_id, epoch)
                with pytest.raises(StoreFailed, match="does not open"):
                    seal.open(blob.parts, blob.kind, blob.number)
    seal = Seal(old, oracle_id, 1)  # the old key would have
    assert np.float64(MARKED).tobytes() in seal.open(before[-1].parts, "1", 2)
    # And what the current state holds, it holds once.
    stored = cumae.open(path)
    arrays = stored._state_.to_arrays()
    assert MARKED not in np.concatenate([stored._state_.kept.rows.ravel(), [0.0]]).tolist()
    assert not any(b"marked" in array.tobytes() for array in arrays.values())
    stored.close()


def test_a_crash_leaves_a_key_too_many_and_never_one_too_few(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = where.oracle()
    stored.predict(rows_of(ROWS, 0, 399))

    def dead(*_: Any) -> None:
        raise KeyboardInterrupt

    def epochs() -> list[str]:
        return sorted(file.name[:7] for file in where.key_folder.glob("epoch*"))

    for step in ("make_epoch", "keep_epoch"):
        with monkeypatch.context() as patch:
            patch.setattr(KeyFolder, step, dead)
            with pytest.raises(KeyboardInterrupt):
                stored.predict(ROWS[:3])
        break_off(stored)
        assert epochs() == ["epoch-1", "epoch-2"][: 1 + (step == "keep_epoch")]
        stored = where.open()
    assert epochs() == ["epoch-2"]
    assert stored.phase_ == 2
    stored.close()


def test_a_crash_between_a_new_epoch_and_its_mark_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, stored = oracle(tmp_path)
    stored.predict(rows_of(ROWS, 0, 399))

    def dead(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(KeyFolder, "write_mark", dead)
        with pytest.raises(KeyboardInterrupt):
            stored.predict(ROWS[:2])
    break_off(stored)
    (mark,) = KeyFolder(tmp_path / "oracle.db.keys").read_marks().values()
    assert (mark.epoch, store.status(path).totals.epoch) == (1, 2)
    stored = cumae.open(path)
    stored.predict(ROWS[:5])
    stored.close()
    shutil.copy(path, tmp_path / "backup.db")
    stored = cumae.open(path)
    stored.predict(ROWS[:50])
    break_off(stored)
    shutil.copy(tmp_path / "backup.db", path)
    stored = cumae.open(path, accept_rollback=True)
    assert used(path) >= 55  # the old mark, of 399, would have hidden it
    stored.close()


def test_a_crash_in_the_middle_of_training_repeats_it(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cumae.predictors import recipes

    stored = where.oracle()
    stored.predict(rows_of(ROWS, 0, 399))

    def dead(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(recipes, "train_shards", dead)
        with pytest.raises(KeyboardInterrupt):
            stored.predict(ROWS[:3])
    begun = stored._state_.following.to_facts()
    break_off(stored)
    stored = where.open()
    again = stored._state_.following.to_facts()
    assert all(np.array_equal(begun[name], again[name]) for name in ("rows", "weights"))
    stored.predict(ROWS[:3])
    assert stored.phase_ == 2
    stored.close()


# --- disks


@pytest.mark.parametrize("error", [apsw.IOError, apsw.FullError])
def test_a_disk_that_fails_ends_it_until_it_is_opened_again(
    error: type[Exception], tmp_path: Path, disk: Unsynced
) -> None:
    path, stored = oracle(tmp_path)
    stored.predict(ROWS[:5])
    disk.error = error
    refused = 0
    for after in range(4):
        disk.fails_after = after
        try:
            stored.predict(ROWS[:5])
        except StoreFailed:
            refused += 1
            disk.fails_after = None
            for _ in range(2):
                with pytest.raises(StoreFailed, match="open it again"):
                    stored.predict(ROWS[:5])
            break_off(stored)
            stored = cumae.open(path)
        disk.fails_after = None
        assert used(path) >= 5 * (after + 2)
    assert refused
    assert stored.answered_ + store.status(path).totals.charged >= used(path)
    stored.close()


@pytest.mark.parametrize("torn", [None, 1, 2, 3])
def test_a_loss_of_power_loses_no_answer(torn: int | None, tmp_path: Path, disk: Unsynced) -> None:
    path, stored = oracle(tmp_path)
    given = 0
    for number in range(12):
        stored.predict(np.full((40, 1), number / 12))
        given += 40
        if number % 3 == 2:
            disk.lose_power(torn)
            break_off(stored)
            disk.lose_power(torn)
            stored = cumae.open(path)
            assert stored.answered_ == given
    assert stored.phase_ == 2
    stored.close()


@pytest.mark.parametrize("part", range(8))
def test_a_damaged_sector_is_noticed_or_does_no_harm(part: int, tmp_path: Path) -> None:
    """A disk may lose what was synced: a sector of the file, or of SQLite's log, is garbage."""
    path, stored = oracle(tmp_path)
    for _ in range(5):
        stored.predict(ROWS[:2])
    stored.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size * part // 8 // SECTOR * SECTOR + SECTOR)
        file.write(b"\xa5" * SECTOR)
    try:
        stored = cumae.open(path)
    except (StoreFailed, InvalidParameter):
        return
    assert stored.answered_ == 10
    stored.close()
    assert used(path) == 10


def test_the_test_of_power_has_teeth(tmp_path: Path, disk: Unsynced) -> None:
    path, stored = oracle(tmp_path)
    stored._counter_.journal.writer.home._execute("PRAGMA synchronous=NORMAL")
    stored.predict(ROWS[:5])
    disk.lose_power()
    for ending in ("", "-wal"):
        shutil.copy(f"{path}{ending}", f"{tmp_path}/copy.db{ending}")
    break_off(stored)
    assert store.status(tmp_path / "copy.db").totals.answers == 0


def test_unsafe_settings_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, stored = oracle(tmp_path)
    stored.close()
    monkeypatch.setattr(sqlite, "SAFE", {"journal_mode": "wal", "synchronous": 3})
    with pytest.raises(StoreFailed, match="synchronous=2"):
        cumae.open(path)
    monkeypatch.undo()
    cumae.open(path).close()


def test_a_file_that_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, stored = oracle(tmp_path)
    stored.predict(ROWS[:5])
    stored.close()
    monkeypatch.setattr(sqlite, "OPENING", apsw.SQLITE_OPEN_READONLY)  # root may write anywhere
    stored = cumae.open(path)
    with pytest.raises(StoreFailed, match="could not be written"):
        stored.predict(ROWS[:5])
    break_off(stored)
    monkeypatch.undo()
    stored = cumae.open(path)
    assert stored.answered_ == 5
    stored.close()


# --- damaged and edited files


def change(path: Path, text: str, *values: Any) -> None:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.execute(text, values)
    connection.close()


EDITS = {
    "an entry is dropped": ("DELETE FROM ledger WHERE number=3", "changed, dropped or moved"),
    "the last entry is dropped": ("DELETE FROM ledger WHERE number=5", "older copy"),
    "an entry is edited": (
        "UPDATE ledger SET entry=replace(entry, '\"count\":2', '\"count\":1') WHERE number=3",
        "changed, dropped or moved",
    ),
    "all are dropped": ("DELETE FROM ledger", "it is empty"),
    "a piece is dropped": ("DELETE FROM blobs WHERE number=3", "part of the file is missing"),
    "the last piece is dropped": ("DELETE FROM blobs WHERE number=4", "not hold all"),
    "a piece is edited": (
        "UPDATE blobs SET sealed=zeroblob(100) WHERE number=3",
        "does not open",
    ),
    "a piece moves": ("UPDATE blobs SET number=number+10*(number=3)", "not hold all"),
    "another kind": ("UPDATE blobs SET kind='labels' WHERE number=3", "does not open"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_file_is_refused(name: str, tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    for _ in range(3):
        stored.predict(ROWS[:2])
    stored.close()
    text, reason = EDITS[name]
    change(path, text)
    with pytest.raises(StoreFailed, match=reason):
        cumae.open(path)


def test_noise_that_costs_too_much_is_noticed_from_the_ledger_alone(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    stored.close()
    file = sqlite.SqliteFile(path)
    (_, _, before), (_, text, _) = file.entries()
    file.close()
    facts = json.loads(text)
    assert store.status(path).totals.epsilon <= 60.0
    parts = json.dumps(facts["cost"])
    facts["cost"] = json.loads(parts)
    facts["cost"]["parts"][0][1] = facts["cost"]["parts"][0][1] * 10  # ten times as many releases
    made = following(1, before, facts)
    change(path, "UPDATE ledger SET entry=?, hash=? WHERE number=2", made.text, made.hash)
    with pytest.raises(StoreFailed, match="costs more than was promised"):
        store.status(path)


PRICED = [
    *("gaussian", "stability", "between", "offline, before", "offline, after", "agnostic"),
    *("universal, at once", "universal, stability", "universal, hypothesis", "bbl", "bbl, between"),
    "bbl, fresh",
]


@pytest.mark.parametrize("name", PRICED)
def test_the_guarantee_of_each_predictor_is_recomputed(name: str, tmp_path: Path) -> None:
    begun(name).save_to(tmp_path / "oracle.db")
    found = store.status(tmp_path / "oracle.db")
    if name in ("offline, after", "universal, hypothesis"):  # nothing is drawn any more
        assert found.totals.epsilon == 0
        return
    assert 0 < found.totals.epsilon <= found.guarantee.epsilon * (1 + 1e-9)
    assert found.totals.epsilon > 0.4 * found.guarantee.epsilon


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("agnostic", {"epsilon_boost": 500.0}),
        ("universal, stability", {"after": 500.0}),
        ("bbl", {"scored": 9.0}),
        ("bbl", {"step": "another"}),
    ],
)
def test_steps_of_a_bill_are_recomputed(name: str, edit: dict[str, Any], tmp_path: Path) -> None:
    begun(name).save_to(tmp_path / "oracle.db")
    file = sqlite.SqliteFile(tmp_path / "oracle.db")
    (_, _, before), (_, text, _) = file.entries()
    file.close()
    facts = json.loads(text)
    facts["steps"][-1] |= edit
    made = following(1, before, facts)
    edited = (made.text, made.hash)
    change(tmp_path / "oracle.db", "UPDATE ledger SET entry=?, hash=? WHERE number=2", *edited)
    with pytest.raises(StoreFailed, match=r"costs more than was promised|unknown kind"):
        store.status(tmp_path / "oracle.db")


def test_priors_have_entries_in_the_ledger(tmp_path: Path) -> None:
    made, asked, _ = published()["renewed"]
    made.save_to(tmp_path / "oracle.db")
    assert store.status(tmp_path / "oracle.db").totals.priors == 1
    stored = cumae.open(tmp_path / "oracle.db")
    stored.predict(asked)  # the next phase begins, with a prior that labels renewed
    entries = [json.loads(text) for _, text, _ in stored._counter_.journal.writer.home.entries()]
    stored.close()
    first, second = (facts for facts in entries if facts["event"] == "prior")
    assert (first["epsilon"], second["epsilon"], second["rows"]) == (8.0, 8.0, 800)
    assert store.status(tmp_path / "oracle.db").totals.priors == 2
    totals = ledger.Totals("EverlastingPredictor", stored.guarantee_.to_dict())
    for edit in ({"epsilon": 9.0}, {"trust": 9.0}, {"delta": 0.1}):
        with pytest.raises(StoreFailed, match=r"than was promised"):
            totals.take({**second, **edit})


# --- formats


def test_a_newer_format_is_refused_and_an_older_one_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, stored = oracle(tmp_path)
    stored.predict(ROWS[:2])
    stored.close()
    for number in (str(FORMAT + 1), "0", "-1"):
        change(path, "UPDATE meta SET value=? WHERE name='format'", number)
        with pytest.raises(InvalidParameter, match=f"knows up to {FORMAT}"):
            cumae.open(path)
    change(path, "UPDATE meta SET value=? WHERE name='format'", str(FORMAT))

    def step(connection: apsw.Connection) -> None:
        connection.execute("INSERT INTO meta VALUES ('new', 'yes')")

    monkeypatch.setattr(sqlite, "FORMAT", FORMAT + 1)
    monkeypatch.setattr(sqlite, "MIGRATIONS", {FORMAT: step})
    stored = cumae.open(path)
    assert stored.answered_ == 2
    assert stored._counter_.journal.writer.home.meta()["new"] == "yes"
    assert stored._counter_.journal.writer.home.meta()["format"] == str(FORMAT + 1)
    stored.close()


FIRST = Path(__file__).parent.parent / "stored" / "format_1"


def test_the_first_format_is_read_for_ever(tmp_path: Path) -> None:
    """A file that the first version wrote, with its keys: 25 answers, and a stored one.

    It is written anew under a new key, with which answers for retries end.
    """
    for file in FIRST.iterdir():
        name = file.name.replace("key-", "oracle.db.keys/").replace(".sqlite", ".db")
        target = tmp_path / name
        target.parent.mkdir(mode=0o700, exist_ok=True)
        target.write_bytes(file.read_bytes())
        target.chmod(0o600)
    path = tmp_path / "oracle.db"
    stored = cumae.open(path)
    assert (stored.answered_, stored.phase_) == (25, 1)
    assert stored.predict(ROWS[:20], request_id="one").shape == (20,)
    assert stored.answered_ == 45
    assert stored._counter_.journal.writer.home.meta()["format"] == str(FORMAT)
    stored.predict(ROWS[:1])
    stored.close()
    stored = cumae.open(path)
    assert stored.answered_ == 46
    assert stored.predict(ROWS[:360]).shape == (360,)
    assert stored.phase_ == 2
    stored.close()


def test_a_batch_that_is_broken_off_is_recorded_at_once(where: Where) -> None:
    """Rows of users who ask again are not kept, so that there are too few for another phase."""
    stored = where.oracle(user_ids=True)
    stored.predict(rows_of(ROWS, 0, 390), users=["one"] * 390)
    before = where.used()
    real = stored._counter_.take

    def broken(event: Any) -> None:
        real(event)
        raise KeyboardInterrupt

    stored._counter_.take = broken
    with pytest.raises(KeyboardInterrupt):
        stored.predict(ROWS[:5], users=["one"] * 5)
    assert where.used() == before + 5
    stored.close()
    assert where.open().answered_ == 395


def test_a_clock_that_jumps_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, stored = oracle(tmp_path)
    for number, now in enumerate((0.0, 4e9, -1e9)):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        stored.predict(ROWS[:2])
        stored.close()
        os.utime(path, (abs(now), abs(now)))
        stored = cumae.open(path)
        assert stored.answered_ == used(path) == 2 * (number + 1)
    stored.close()


def test_without_its_packages_it_says_what_to_install() -> None:
    work = "import sys; sys.modules['apsw'] = None; import cumae; cumae.open('oracle.db')"
    done = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, check=False)
    assert "pip install 'cumae[store]'" in done.stderr


# --- anything, in any order


class Life(RuleBasedStateMachine):
    """A durable oracle with crashes and restarts, against numbers in memory."""

    @initialize(late=st.sampled_from([0.0, 0.4]))
    def begin(self, late: float) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.path, self.stored = oracle(self.folder, late=late)
        self.answered = 0
        self.requests: dict[int, tuple[int, int, list[int]]] = {}
        self.copies: list[tuple[Path, int]] = []

    @rule(count=st.integers(1, 60))
    def ask(self, count: int) -> None:
        assert (
            len(self.stored.predict(rows_of(ROWS, self.answered, self.answered + count))) == count
        )
        self.answered += count

    @rule(number=st.integers(0, 3), count=st.sampled_from([1, 30]))
    def request(self, number: int, count: int) -> None:
        phase, known, answers = self.requests.get(number, (0, 0, []))
        if phase == self.stored.phase_ and known != count:
            with pytest.raises(InvalidParameter):
                self.stored.predict(ROWS[:count], request_id=number)
            return
        found = self.stored.predict(ROWS[:count], request_id=number).tolist()
        if phase == self.stored.phase_:
            assert found == answers
        else:
            self.answered += count
        self.requests[number] = (self.stored.phase_, count, found)

    @rule()
    def restart(self) -> None:
        before = used(self.path)
        self.stored.close()
        self.stored = cumae.open(self.path)
        assert used(self.path) == before

    @rule()
    def crash(self) -> None:
        before, phase = used(self.path), self.stored.phase_
        break_off(self.stored)
        self.stored = cumae.open(self.path)
        assert self.stored.phase_ == phase
        assert before <= used(self.path) <= before + 400 // BLOCKS

    @rule()
    def copy(self) -> None:
        target = self.folder / f"copy{len(self.copies)}.db"
        store.backup(self.path, target)
        self.copies.append((target, self.answered))

    @precondition(lambda self: self.copies)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        copy, answered = data.draw(st.sampled_from(self.copies))
        before, phase = store.status(self.path).totals, self.stored.phase_
        self.stored.close()
        sqlite.remove_files(self.path)
        kept = store.status(copy).totals
        shutil.copy(copy, self.path)
        if kept.epoch < before.epoch:
            with pytest.raises(StoreFailed, match="can never go on"):
                cumae.open(self.path, accept_rollback=True)
            self.begin(0.0)
            return
        self.stored = cumae.open(self.path, accept_rollback=True)
        assert self.stored.phase_ == phase
        assert used(self.path) >= before.used
        self.answered = answered
        self.requests = {}
        assert self.stored.answered_ == answered

    @invariant()
    def check(self) -> None:
        if not hasattr(self, "stored"):
            return
        assert self.stored.answered_ == self.answered
        known = store.status(self.path).totals
        assert known.answers == self.answered
        assert known.used <= known.releases

    def teardown(self) -> None:
        if hasattr(self, "stored"):
            self.stored.close()
            shutil.rmtree(self.folder)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=5, stateful_step_count=12, deadline=None)


def test_a_child_of_a_fork_does_not_close_what_its_parent_has_open(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    child = os.fork()
    if child == 0:  # pragma: no cover
        stored.close()
        del stored
        os._exit(0)
    os.waitpid(child, 0)
    stored.predict(ROWS[:2])
    with pytest.raises(LiveState):
        cumae.open(path)
    stored.close()
    assert cumae.open(path).answered_ == 2


def test_a_predictor_can_be_saved_after_answers(where: Where) -> None:
    one = everlasting()
    one.predict(ROWS[:10])
    where.save(one)
    known = where.status().totals
    assert (known.answers, known.used) == (10, 10)
    stored = where.open()
    assert stored.answered_ == 10
    stored.close()


# --- what others remove, and what nobody holds any more


@pytest.mark.parametrize("after", ["check", "get", "names", "put"])
def test_keys_that_others_remove_during_an_opening_are_told(
    after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else may undo a ``save_to``, or destroy the oracle, at any moment."""
    path = tmp_path / "oracle.db"
    everlasting().save_to(path)
    real = getattr(KeyFolder, after)

    def remove_then(self: Any, *args: Any) -> Any:
        found = real(self, *args)
        shutil.rmtree(self.folder, ignore_errors=True)
        return found

    monkeypatch.setattr(KeyFolder, after, remove_then)
    with pytest.raises(StoreFailed):
        cumae.open(path)


def test_an_oracle_that_failed_is_let_go_of_when_nobody_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "oracle.db"
    everlasting().save_to(path)
    opened = cumae.open(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: os.fstat(-1))
        with pytest.raises(StoreFailed, match="charged"):
            opened.predict(ROWS[:2])
    del opened
    gc.collect()
    cumae.open(path).close()
