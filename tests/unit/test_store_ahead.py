"""The next phase is written ahead, in parts beside answers: what is left of it harms nobody."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

import cumae
from cumae import StoreFailed
from cumae.checks.differences import difference
from cumae.ensembles import trainer as shards
from cumae.predictors import recipes
from cumae.predictors.everlasting import state as states
from cumae.store import pieces, writer
from cumae.store.homes.home import ALL, Transaction
from cumae.store.homes.sqlite import SqliteFile
from cumae.store.pieces import of_epoch
from tests.oracles import Where, oracle

pytestmark = [
    pytest.mark.claim("STORE", "LATE"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

LATE = {"late": 0.1, "background": True}  # of 400 answers 40 are late, and 20 are ahead
QUERIES = np.random.default_rng(7).random((2_000, 1))


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LEAST_PIECE_BYTES", 8)
    monkeypatch.setattr(writer, "SWEPT", 2)


def rows(one: Any) -> list[tuple[int, int, str, int]]:
    """Return number, epoch, kind and parts of all that is in the table."""
    found = one._counter_.journal.writer.home.blobs(ALL)
    return [(blob.number, blob.epoch, blob.kind, len(blob.parts)) for blob in found]


def ahead(one: Any) -> list[tuple[int, int]]:
    """Return epoch and number of parts of all that was written ahead."""
    return [(epoch, parts) for _, epoch, kind, parts in rows(one) if kind == pieces.AHEAD]


def ask(one: Any, count: int, start: int = 0) -> None:
    one.predict(QUERIES[start : start + count])


def watched_commits(one: Any) -> list[Transaction]:
    """Return the list of all that an oracle commits from now on."""
    home = one._counter_.journal.writer.home
    written: list[Transaction] = []
    commit = home.commit

    def watched(change: Transaction) -> None:
        written.append(change)
        commit(change)

    home.commit = watched
    return written


def epochs(folder: Path) -> list[int]:
    return sorted(int(one.stem.split("-")[1]) for one in folder.glob("epoch-*.key"))


def test_parts_come_beside_answers_and_the_change_of_phases_names_them(where: Where) -> None:
    one = where.oracle(**LATE)
    written = watched_commits(one)
    ask(one, 379)
    assert ahead(one) == []
    ask(one, 1)
    assert one._state_.following.is_ahead
    assert ahead(one) == []
    count = one._counter_.journal._ahead.count
    assert 10 < count <= 20
    for left in range(19, -1, -1):
        ask(one, 1)
        assert ahead(one) == ([(2, count - left)] if left < count else [])
    facts = one._state_.following.packed
    assert facts is not None
    written.clear()
    ask(one, 1)
    assert one.phase_ == 2
    whole, since = written[0].blobs
    assert (whole.kind, since.kind) == (pieces.WHOLE, "1")
    assert sum(map(len, whole.parts)) < 8_000
    rows_since = 40 * (8 + 16)  # bytes of rows that came after others were frozen, with weights
    assert sum(map(len, since.parts)) < rows_since + 300
    assert written[0].drop_below == 0
    for _ in range(30):
        ask(one, 1)
    assert {epoch for _, epoch, _, _ in rows(one)} == {2}
    assert ahead(one) == [(2, count)]
    known = one._state_.to_facts()
    one.close()
    again = where.open()
    assert not difference(known, again._state_.to_facts())
    assert known["phase"]["packed"].tobytes() == facts
    ask(again, 800)
    assert again.phase_ == 4
    again.close()
    assert epochs(where.key_folder) == [4]


@pytest.mark.parametrize("slow", [0, 1])
def test_what_is_written_when_does_not_follow_from_the_time_of_training(
    slow: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has answered the release where parts begin waits; nobody waits before."""
    gate = threading.Event()
    train = shards.train_shards
    if not slow:
        gate.set()
    _, one = oracle(tmp_path, **LATE)
    monkeypatch.setattr(
        recipes, "train_shards", lambda *given, **more: (gate.wait(10), train(*given, **more))[1]
    )
    ask(one, 360)
    ask(one, 19)
    seen = rows(one)
    asking = threading.Thread(target=lambda: ask(one, 3))
    asking.start()
    asking.join(0.3 if slow else 10)
    if slow:
        assert rows(one) == seen
        gate.set()
        asking.join(10)
    assert ahead(one) == [(2, 2)]
    one.close()


@pytest.mark.parametrize("count", [1, 7, 25])
def test_copies_of_every_commit_go_on(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the process had been killed after each commit."""
    monkeypatch.setattr(states, "AHEAD", 8)
    _, one = oracle(tmp_path, **LATE)
    ask(one, 374)
    copies: list[Path] = []
    commit = SqliteFile.commit

    def copying(self: SqliteFile, change: Transaction) -> None:
        commit(self, change)
        copy = tmp_path / f"copy{len(copies)}"
        copy.mkdir()
        for file in tmp_path.glob("oracle.db*"):
            (shutil.copytree if file.is_dir() else shutil.copy)(file, copy / file.name)
        copies.append(copy / "oracle.db")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteFile, "commit", copying)
        for start in range(0, 32, count):
            ask(one, count, start)
    one.close()
    for copy in copies:
        stored = cumae.open(copy)
        epoch = stored._counter_.journal.writer.totals.epoch
        assert {found for _, found, _, _ in rows(stored)} == {epoch}, copy
        assert len(ahead(stored)) <= (epoch == 2), copy
        known = stored.answered_
        ask(stored, 850 - known, known)
        assert (stored.phase_, stored.answered_) == (3, 850), copy
        stored.close()
        assert epochs(copy.with_name("oracle.db.keys")) == [3], copy


def named(one: Any, start: int, count: int) -> None:
    """Ask with all ids that there are, and tell the labels of some of these queries."""
    ids = range(start, start + count)
    one.predict(
        QUERIES[start : start + count],
        users=[f"user {place if place % 9 else 0}" for place in ids],
        clients=[place % 70 for place in ids],
        query_ids=ids,
    )
    one.add_labelled(QUERIES[:2], [0, 1], users=[f"told {start}", f"user {start}"])


def supplied(one: Any, start: int, count: int) -> None:
    ask(one, count, start)
    one.add_unlabelled(QUERIES[start : start + 3])


NAMED = {"user_ids": True, "client_cap": 0.5}
LISTS: dict[str, tuple[dict[str, Any], Any]] = {
    "named": (NAMED, named),
    "priors": ({**NAMED, "prior": None, "prior_share": 0.3, "columns": [(0, 1)]}, named),
    "fresh": ({"fresh": True, "growth": 2.0}, supplied),
    "memo": ({"memoize": True}, lambda one, start, count: ask(one, count, start // 2)),
}


@pytest.mark.claim("USER", "LABELLED", "FRESH", "MEMO")
@pytest.mark.parametrize("kind", LISTS)
def test_what_was_frozen_and_what_came_later_are_one_state(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "AHEAD", 8)
    more, call = LISTS[kind]
    path, one = oracle(tmp_path, **LATE, **more)
    if kind == "fresh":
        one.add_unlabelled(QUERIES[:900])
    asked = told = 0
    while one.phase_ < 3:
        following = one._state_.following
        call(one, asked, 3)
        asked += 3
        waits = [
            place for place in range(asked) if one._state_.hide(place) in one._state_.query_places
        ]
        if waits and following is one._state_.following:
            one.add_labels([waits[0], waits[-1]], [1, told % 2])  # frozen ones, too, and twice
            told += 1
        if asked % 30 == 0 or (following is not None and one._state_.following is None):
            known = one._state_.to_facts()
            writer = one._counter_.journal.writer
            blobs = of_epoch(writer.home.blobs(), writer.totals.epoch)
            given = ("EverlastingPredictor", writer.seal, None, writer.oracle_key)
            found, *_ = pieces.rebuilt(blobs, *given, writer.home.parts)
            assert not difference(known, found.to_facts())
    assert kind in ("fresh", "memo") or told > 30
    known = one._state_.to_facts()
    one.close()
    again = cumae.open(path)
    assert not difference(known, again._state_.to_facts())
    again.close()


@pytest.mark.parametrize("kind", ["named", "fresh"])
def test_a_change_of_phases_writes_as_much_however_many_rows_wait(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "AHEAD", 8)
    more, call = LISTS[kind]
    sizes = []
    for late in (0.1, 0.4):
        folder = tmp_path / str(late)
        folder.mkdir()
        _, one = oracle(folder, **LATE | more | {"late": late})
        written = watched_commits(one)
        if kind == "fresh":
            one.add_unlabelled(QUERIES[: 500 + round(2_000 * late)])
        asked = 0
        while one.phase_ == 1:
            call(one, asked, 10)
            asked += 10
        (change,) = [one for one in written if pieces.WHOLE in {blob.kind for blob in one.blobs}]
        chain = [blob for blob in change.blobs if blob.number > 0]
        sizes.append(sum(len(part) for blob in chain for part in blob.parts))
        one.close()
    assert abs(sizes[0] - sizes[1]) < 20  # digits of counts


def test_a_backup_from_in_between_can_go_on(tmp_path: Path) -> None:
    path, one = oracle(tmp_path, **LATE)
    ask(one, 390)
    assert ahead(one) == [(2, 10)]
    cumae.store.backup(path, tmp_path / "backup.db")
    one.close()
    shutil.copy(tmp_path / "backup.db", path)
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    again = cumae.open(path, accept_rollback=True)
    assert ahead(again) == []
    ask(again, 30)
    assert again.phase_ == 2
    assert ahead(again) == []  # it was opened after parts begin
    again.close()


def test_a_new_key_in_between_gives_up_what_was_written(where: Where) -> None:
    one = where.oracle(**LATE)
    ask(one, 385)
    one.rotate_key()
    assert epochs(where.key_folder) == [2]
    for _ in range(15):
        ask(one, 1)
    assert ahead(one) == []  # it was deleted by and by
    ask(one, 1)
    assert (one.phase_, ahead(one)) == (2, [])
    ask(one, one._state_.left + 1)
    assert (one.phase_, [epoch for epoch, _ in ahead(one)]) == (3, [4])
    one.close()


def test_a_part_that_is_missing_or_another_one_is_refused(tmp_path: Path) -> None:
    path, one = oracle(tmp_path, **LATE)
    ask(one, 410)
    one.close()
    saved = path.read_bytes()
    swap = "UPDATE blobs SET part = -1 - part WHERE number < 0 AND part IN (3, 4)"
    back = "UPDATE blobs SET part = CASE part WHEN -4 THEN 4 ELSE 3 END WHERE part < 0"
    for change in ("DELETE FROM blobs WHERE number < 0 AND part = 3", f"{swap}; {back}"):
        connection = apsw.Connection(str(path))
        connection.execute(change)
        connection.close()
        with pytest.raises(StoreFailed, match="does not open"):
            cumae.open(path)
        path.write_bytes(saved)
    cumae.open(path).close()


def test_a_life_that_was_left_behind_writes_nothing_ahead(tmp_path: Path) -> None:
    """Else the key that it makes would outlive the phase whose rows the parts hold."""
    _, one = oracle(tmp_path, **LATE)
    ask(one, 380)
    one._counter_.journal.writer._write_mark(399)  # so that no answer looks who goes on
    one._counter_.journal.writer.life.keys.put("home", b"another life")
    count = one._counter_.journal._ahead.count
    ask(one, 20 - count)
    with pytest.raises(StoreFailed, match="gone on"):
        ask(one, 1)
    assert ahead(one) == []
    one.close()


@pytest.mark.claim("REPLICAS")
@pytest.mark.debian("postgresql")
def test_a_replica_enters_while_another_has_written_ahead(in_postgres: Where) -> None:
    where = in_postgres
    first = where.oracle(**LATE)
    second = where.open()
    ask(first, 385)
    assert ahead(first) == [(2, 5)]
    third = where.open()  # leaves alone what another replica writes
    assert ahead(third) == [(2, 5)]
    third.close()
    ask(second, 5)
    assert ahead(second) == [(2, 5)]  # only who was there where they begin writes parts
    ask(first, 2)
    assert ahead(first) == [(2, 20 - first._state_.left)]
    ask(second, first._state_.left + 1)
    assert (second.phase_, second._counter_.journal.writer.totals.epoch) == (2, 2)
    for _ in range(20):
        ask(second, 1)
    assert ahead(second) == []
    assert epochs(where.key_folder) == [2]
    ask(first, 1)
    assert (first.phase_, first._counter_.journal._ahead) == (2, None)
    ask(first, 380 - first._state_.used)
    ask(first, 21)
    assert (first.phase_, len(ahead(first))) == (3, 1)
    ask(second, 1)  # learns a state whose phase was written ahead
    mine, other = first._state_.phase, second._state_.phase
    assert mine.packed() == other.packed()
    first.close()
    second.close()
