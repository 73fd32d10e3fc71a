"""Durable oracles: what comes back is what was stored, once, and only to its owner."""

from __future__ import annotations

import math
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pandas as pd
import pytest

import cumae
from cumae import CumaeError, InvalidParameter, LiveState, StoreFailed, store
from cumae.concepts import Thresholds
from cumae.mechanisms import base
from cumae.predictors.ids import HiddenIds
from cumae.predictors.state import restore
from cumae.store import pieces, sealed
from cumae.store.sealed import canonical
from cumae.store.writer import MERGE
from tests.forks import answer_in_a_fork
from tests.oracles import ROWS, Where, ask_part, break_off, everlasting, key_command, oracle
from tests.states import rows_of
from tests.unit.test_predictors_state_of_all import CASES, begun, future

pytestmark = [pytest.mark.claim("STORE"), pytest.mark.filterwarnings("ignore::UserWarning")]

STORED = [
    *("gaussian", "gaussian, at once", "gaussian, declared text, one by one", "stability"),
    *("between", "offline, before", "offline, after", "agnostic", "universal, at once"),
    *("universal, stability", "universal, hypothesis", "universal, before a student", "bbl"),
    *("bbl, between", "bbl, fresh"),
]


@pytest.mark.parametrize("name", STORED)
def test_an_oracle_goes_on_as_the_predictor_would(
    name: str, where: Where, coins: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Storing throws away noise that was drawn ahead: here there is none.
    monkeypatch.setattr(base, "PORTION", 1)
    _, table, before = CASES[name]
    one = begun(name)
    twin = restore(one.to_arrays())
    where.save(one)
    stored = where.open()
    more = 0
    if "offline" not in name:
        coins(1)
        expected = twin.predict(rows_of(table, before, before + 20)).tolist()
        coins(1)
        assert stored.predict(rows_of(table, before, before + 20)).tolist() == expected
        more = 20
    stored.close()
    stored = where.open()
    twin = restore(twin.to_arrays())
    assert type(stored) is type(twin)
    coins(2)
    expected = future(twin, table, before + more)
    coins(2)
    assert future(stored, table, before + more) == expected
    stored.close()
    where.status()


EVERLASTING: list[dict[str, Any]] = [
    {},
    {"late": 0.3},
    {"memoize": True},
    {"fresh": True, "growth": 1.3},
    {"user_ids": True},
    {"client_cap": 0.5},
    {"prior": cumae.PrivateLearner(Thresholds()), "columns": [(0.0, 1.0)]},
]


@pytest.mark.parametrize("more", EVERLASTING, ids=str)
def test_an_everlasting_oracle_goes_on_over_phases(
    more: dict[str, Any],
    where: Where,
    coins: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(base, "PORTION", 1)
    one = everlasting(**more)
    queries = np.random.default_rng(1).random((1_200, 1)).round(2)
    twin = restore(one.to_arrays())
    where.save(one)
    seen = []
    for step, start in enumerate(range(0, 1_200, 150)):
        stored = where.open()
        twin = restore(twin.to_arrays())
        found = []
        for each in (twin, stored):
            coins(step)
            found.append(ask_part(each, more, queries, start, 50))
        assert found[0] == found[1]
        seen.append(found[0][1])
        stored.close()
    assert seen[-1] > 1
    known = where.status().totals
    assert (known.phase, known.answers) == (twin.phase_, twin.answered_)
    assert known.epsilon <= 60.0


def test_an_oracle_that_trains_in_the_background_goes_on_over_phases(where: Where) -> None:
    """What a training that was broken off by a restart draws anew is seen by nobody."""
    where.save(everlasting(late=0.3, background=True))
    queries = np.random.default_rng(1).random((1_200, 1))
    for start in range(0, 1_200, 150):
        stored = where.open()
        answers = stored.predict(queries[start : start + 150])
        assert np.mean(answers == (queries[start : start + 150, 0] > 0.3)) > 0.8
        stored.close()
    known = where.status().totals
    assert (known.phase > 2, known.answers) == (True, 1_200)


@pytest.mark.claim("LATE")
@pytest.mark.parametrize("asked", [0, 150, 390, 400])
def test_what_was_left_open_is_late_and_in_the_background_in_a_file(
    asked: int, tmp_path: Path
) -> None:
    """It may have answered, past the mark as well; each query is a row of one phase."""
    one = everlasting(late="auto", background=None)
    queries = np.random.default_rng(1).random((1_000, 1))
    one.predict(queries[:asked])
    assert (one._state_.late, one._state_.rules.background) == (0, None)
    assert (one._state_.following is None) == (asked < 400)
    promised = one.guarantee_
    assert "LATE" in promised.claims
    one.save_to(tmp_path / "oracle.db")
    stored = cumae.open(tmp_path / "oracle.db")
    assert (stored.late, stored.background) == ("auto", None)
    assert (stored._state_.late, stored._state_.rules.background) == (40, True)
    assert set(promised.claims) <= set(stored.guarantee_.claims)
    while stored.phase_ == 1:
        mark = stored._state_.following
        stored.predict(queries[stored.answered_ : stored.answered_ + 1])
        if mark is None and stored._state_.following is not None:
            assert stored.answered_ == max(360, asked + 1)
            assert stored._state_.following.n_rows == stored.answered_
    assert stored._state_.n_rows == (max(360, asked + 1) if asked < 400 else 400)
    assert stored._state_.n_kept == 401 - stored._state_.n_rows
    stored.close()


@pytest.mark.claim("LATE")
@pytest.mark.parametrize(
    ("given", "late", "background"),
    [
        ({"late": 0.0, "background": None}, 0, True),
        ({"late": 0.0, "background": False}, 0, False),
        ({"late": 0.2, "background": None}, 80, True),
        ({"late": "auto", "background": False}, 40, False),
    ],
)
def test_what_was_given_stays_in_a_file(
    given: dict[str, Any], late: int, background: bool, tmp_path: Path
) -> None:
    one = everlasting(**given)
    assert ("LATE" in one.guarantee_.claims) == (given["late"] != 0.0)
    one.save_to(tmp_path / "oracle.db")
    stored = cumae.open(tmp_path / "oracle.db")
    assert (stored._state_.late, stored._state_.rules.background) == (late, background)
    stored.predict(np.random.default_rng(1).random((450, 1)))
    assert stored.phase_ == 2
    stored.close()


def test_labels_that_come_later_are_kept(where: Where, coins: Callable[[int], None]) -> None:
    one = everlasting()
    twin = restore(one.to_arrays())
    where.save(one)
    stored = where.open()
    for each in (twin, stored):
        coins(1)
        each.predict(ROWS[:30], query_ids=[f"r{number}" for number in range(30)])
        each.add_labels(["r3", "r7"], [1, 1])
        each.add_labelled(ROWS[:5], [0, 1, 0, 1, 1])
        each.predict(ROWS[:10], query_ids=[f"s{number}" for number in range(10)])
    stored.close()
    stored = where.open()
    assert stored._state_.query_places == twin._state_.query_places
    assert np.array_equal(stored._state_.kept.weights, twin._state_.kept.weights)
    assert [*stored._state_.kept.labelled_places] == [*twin._state_.kept.labelled_places] == [3, 7]
    with pytest.raises(InvalidParameter, match="no waiting query has: 'never'"):
        stored.add_labels(["never"], [0])
    twin = restore(twin.to_arrays())
    assert stored._state_.n_labelled == twin._state_.n_labelled == 5
    coins(2)
    expected = twin.predict(rows_of(ROWS, 0, 500)).tolist()
    coins(2)
    assert stored.predict(rows_of(ROWS, 0, 500)).tolist() == expected
    stored.close()


def test_a_published_learner_is_never_charged(where: Where) -> None:
    learner = cumae.PrivateLearner(Thresholds(), epsilon=5.0, columns=[(0.0, 1.0)])
    learner.fit(ROWS, (ROWS[:, 0] > 0.3).astype(int))
    where.save(learner)
    again, twice = where.open(), where.open()
    assert again.predict(ROWS).tolist() == twice.predict(ROWS).tolist()
    assert again.predict(ROWS).tolist() == learner.predict(ROWS).tolist()
    assert again.guarantee_ == learner.guarantee_ == where.status().guarantee
    assert where.status().totals.used == 0
    with pytest.raises(InvalidParameter, match="no new key"):
        store.rotate(where.address, keys=where.keys)


def test_only_one_of_them_goes_on(tmp_path: Path) -> None:
    one = everlasting()
    one.save_to(tmp_path / "oracle.db")
    for call in (
        lambda: one.predict(ROWS[:1]),
        one.to_arrays,
        lambda: one.add_labelled(ROWS[:1], [1]),
        lambda: one.save_to(tmp_path / "other.db"),
    ):
        with pytest.raises(LiveState, match="lives in"):
            call()
    stored = cumae.open(tmp_path / "oracle.db")
    with pytest.raises(LiveState, match="another process, or was opened twice"):
        cumae.open(tmp_path / "oracle.db")
    with pytest.raises(LiveState, match="no copy"):
        stored.to_arrays()
    with pytest.raises(LiveState, match="no copy"):
        stored.save_to(tmp_path / "other.db")
    assert not (tmp_path / "other.db").exists()
    assert answer_in_a_fork(stored, ROWS[:1]) == "refused"
    stored.close()
    with pytest.raises(LiveState, match="was closed"):
        stored.predict(ROWS[:1])
    assert stored.fit(ROWS, (ROWS[:, 0] > 0.3).astype(int)).answered_ == 0  # a new one, in memory


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    work = f"import cumae; cumae.open({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, check=False)
    assert "LiveState" in done.stderr
    assert store.status(path).in_use
    stored.close()
    assert not store.status(path).in_use


def test_a_predictor_that_cannot_be_stored_goes_on_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = everlasting()

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreFailed, match="OSError"):
            one.save_to(tmp_path / "oracle.db")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "oracle.db").write_text("mine", encoding="utf-8")
    with pytest.raises(InvalidParameter, match="exists already"):
        one.save_to(tmp_path / "oracle.db")
    with pytest.raises(InvalidParameter, match="no such folder"):
        one.save_to(tmp_path / "nowhere" / "oracle.db")
    assert one.predict(ROWS[:3]).shape == (3,)


def test_what_is_no_oracle_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="holds no oracle"):
        cumae.open(tmp_path / "oracle.db")
    (tmp_path / "text.db").write_text("nothing here" * 1_000, encoding="utf-8")
    (tmp_path / "text.db").chmod(0o600)
    with pytest.raises(StoreFailed, match="cannot be read"):
        cumae.open(tmp_path / "text.db")
    one = everlasting()
    with pytest.raises(InvalidParameter, match="durable oracle"):
        one.predict(ROWS[:1], request_id="one")
    with pytest.raises(InvalidParameter, match="no key"):
        one.rotate_key()
    one.close()


# --- who may read it


def test_only_the_owner_may_read_the_files(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    stored.predict(ROWS[:3])
    for file in tmp_path.rglob("*"):
        wanted = 0o700 if file.is_dir() else 0o600
        assert stat.S_IMODE(file.stat().st_mode) == wanted, file
    stored.close()
    for file, mode in ((path, 0o640), (tmp_path / "oracle.db.keys", 0o701)):
        before = stat.S_IMODE(file.stat().st_mode)
        file.chmod(mode)
        with pytest.raises(StoreFailed, match="others can read it"):
            cumae.open(path)
        file.chmod(before)
    cumae.open(path).close()


def test_ids_of_users_are_kept_as_hmacs(where: Where) -> None:
    stored = where.oracle(user_ids=True)
    assert all(isinstance(one, bytes) and len(one) == 16 for one in stored._state_.admission.seen)
    stored.predict(ROWS[:2], users=["anna-unmistakable", 7.0])
    stored.close()
    stored = where.open()
    stored.predict(ROWS[:2], users=["anna-unmistakable", 7])
    assert stored._state_.n_kept == 1  # 7 had a row in training
    assert len(stored._state_.admission.seen) == len(ROWS) + 1
    arrays = stored._state_.to_arrays()
    assert not any(b"unmistakable" in array.tobytes() for array in arrays.values())
    stored.close()


def test_equal_ids_are_one(tmp_path: Path) -> None:
    hide = HiddenIds(b"k" * 32)
    assert len({hide(one) for one in (1, 1.0, True, 2**70, float(2**70))}) == 2
    assert len({hide(one) for one in ("1", 1, b"1", 1.5, "1.5", np.inf, -1)}) == 7
    assert HiddenIds(b"l" * 32)(1) != hide(1)


# --- retries


def test_a_retry_gets_the_answers_of_its_own_fit(tmp_path: Path) -> None:
    """Parameters that somebody changes later do not change what a stored answer means."""
    release = cumae.QueryRelease(
        Thresholds(), 1.0, 1e-6, 30, "stability", abstain=True, n_shards=20, classes=("a", "b")
    )
    release.fit(ROWS, np.where(ROWS[:, 0] > 0.3, "b", "a")).save_to(tmp_path / "oracle.db")
    stored = cumae.open(tmp_path / "oracle.db")
    first = stored.predict(ROWS[:9], request_id="one").tolist()
    assert -1 in first
    stored.set_params(abstain=False, classes=("c", "d"))
    assert stored.predict(ROWS[:9], request_id="one").tolist() == first
    stored.close()


def test_a_retry_gets_the_stored_answer_for_free(where: Where) -> None:
    stored = where.oracle()
    queries = np.full((40, 1), 0.3)  # unclear, so that new noise would show
    first = stored.predict(queries, request_id=("client", 1))
    for _ in range(2):
        assert stored.predict(queries, request_id=("client", 1)).tolist() == first.tolist()
        assert stored.answered_ == 40
        stored.close()
        stored = where.open()
    with pytest.raises(InvalidParameter, match="another request"):
        stored.predict(queries + 0.1, request_id=("client", 1))
    with pytest.raises(InvalidParameter, match="another request"):
        stored.predict(queries, request_id=("client", 1), query_ids=range(40))
    assert stored.answered_ == 40
    stored.predict(queries, request_id=("client", 2))
    stored.predict(queries, request_id="client")
    assert stored.answered_ == 120
    for wrong in ((), math.nan, [1], ("client", None)):
        with pytest.raises(InvalidParameter, match="request_id must be"):
            stored.predict(queries, request_id=wrong)
    stored.predict(rows_of(ROWS, 0, 300))  # the phase ends here, and answers end with it
    stored.predict(queries, request_id=("client", 1))
    assert (stored.phase_, stored.answered_) == (2, 460)
    assert stored.predict(queries, request_id=("client", 1)).shape == (40,)
    assert stored.answered_ == 460
    stored.close()


@pytest.mark.parametrize("count", [401, 500, 900])
def test_a_request_over_phases_is_kept_in_memory_alone(where: Where, count: int) -> None:
    """What a key opens is of its phase: no answers and no fingerprint of queries before it."""
    stored = where.oracle()
    stored.predict(ROWS[:7], request_id="of phase 1")
    queries = np.tile(ROWS, (3, 1))[: count - 7]
    first = stored.predict(queries, request_id="long")
    assert stored.phase_ == 1 + (count - 1) // 400
    short = stored.predict(ROWS[:2], request_id="short").tolist()
    kept = stored._counter_.journal._reader.contents().answers
    assert list(kept) == [stored._counter_.journal.writer.seal.name_of(canonical(["short"]))]
    # As long as the process lives and the phase lasts, a retry is free.
    assert stored.predict(queries, request_id="long").tolist() == first.tolist()
    with pytest.raises(InvalidParameter, match="used for another request"):
        stored.predict(queries[1:], request_id="long")
    assert stored.answered_ == count + 2
    stored.close()
    stored = where.open()
    assert stored.predict(ROWS[:2], request_id="short").tolist() == short
    assert stored.answered_ == count + 2
    assert len(stored.predict(queries[:5], request_id="long")) == 5  # a new question, with a charge
    assert stored.answered_ == count + 7
    stored.close()


def test_memory_forgets_a_request_over_phases_with_the_next_phase(where: Where) -> None:
    stored = where.oracle()
    for number in (1, 2):
        stored.predict(np.tile(ROWS, (2, 1))[:401], request_id=number)
        assert len(stored._counter_.journal._crossed) == 1
    stored.rotate_key()
    assert not stored._counter_.journal._crossed
    stored.close()


def test_bodies_differ_if_anything_differs() -> None:
    table = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    bodies: list[Any] = [
        *(np.ones((2, 1)), np.ones((1, 2)), np.ones((2, 1), dtype=np.int64), [[1.0], [1.0]]),
        *([[1], [1]], [["1"], ["1"]], table, table[["b", "a"]], table.rename(columns={"a": "c"})),
        *(table.assign(b=["x", "z"]), table["a"], np.array(["ab", "c"]), np.array(["a", "bc"])),
        *(np.array([["a"], [1]], dtype=object), {"a": 1}, {"b": 1}, {}, [], [[]], ["ab"], "ab"),
    ]
    assert len({canonical(body) for body in bodies}) == len(bodies)
    assert canonical(table) == canonical(table.copy())


# --- several at once


def test_threads_that_wait_share_a_commit_and_lose_nothing(where: Where) -> None:
    stored = where.oracle()
    writer = stored._counter_.journal.writer
    commits: list[int] = []
    real = writer._commit

    def counted(transaction: Any) -> None:
        commits.extend(entry.facts["count"] for entry in transaction.entries)
        real(transaction)

    writer._commit = counted
    answers: list[Any] = []

    def ask(number: int) -> None:
        for place in range(10):
            request = f"{number}/{place}"
            answers.append(stored.predict([[number / 8]], request_id=request).tolist())

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == stored.answered_ == sum(commits) == 80
    assert len(commits) < 80
    kept = stored._state_.kept.rows
    stored.close()
    stored = where.open()
    assert stored.answered_ == 80
    assert np.array_equal(stored._state_.kept.rows, kept)
    stored.predict([[0.0]], request_id="0/0")
    assert stored.answered_ == 80
    stored.close()


def test_small_pieces_are_merged_and_entries_cut_back(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cumae.store import writer as writer_module

    monkeypatch.setattr(writer_module, "MERGE", 7)
    monkeypatch.setattr(writer_module, "CHECKPOINT", 20)
    assert MERGE == 1_000
    stored = where.oracle()
    for number in range(60):
        stored.predict([[number / 60]], query_ids=[number])
        if number == 30:
            stored.add_labels([30], [1])
    kept = stored._state_.kept.rows
    weights = stored._state_.kept.weights
    file = stored._counter_.journal.writer.home
    assert len(list(file.blobs())) <= 1 + 60 // 7 + 7 + 2
    assert len(file.entries()) < 20
    stored.close()
    known = where.status()
    assert (known.totals.answers, known.totals.used, known.totals.kind) == (
        60,
        60,
        "EverlastingPredictor",
    )
    assert known.last.number > 60
    stored = where.open()
    assert np.array_equal(stored._state_.kept.rows, kept)
    assert np.array_equal(stored._state_.kept.weights, weights)
    assert stored.answered_ == 60
    stored.close()


def test_large_pieces_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed, "CHUNK", 2_000)
    monkeypatch.setattr(pieces, "PIECE", 2_000)
    path, stored = oracle(tmp_path)
    stored.predict(ROWS[:5], request_id="small")
    stored.predict(rows_of(ROWS, 0, 390), request_id="large")
    blobs = list(stored._counter_.journal.writer.home.blobs())
    assert len(blobs[0].parts) > 2
    stored.close()
    stored = cumae.open(path)
    stored.predict(ROWS[:5], request_id="small")
    assert stored.answered_ == 395
    stored.predict(rows_of(ROWS, 0, 390), request_id="large")  # was too large to be kept
    assert stored.answered_ == 785
    stored.close()
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM blobs WHERE part=1")
    connection.close()
    with pytest.raises(StoreFailed, match="does not open"):
        cumae.open(path)


def test_many_small_pieces_are_put_together_at_the_opening(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cumae.store import opening

    stored = where.oracle()
    for number in range(9):
        stored.predict([[number / 9]])
    stored.close()
    monkeypatch.setattr(opening, "MERGE", 4)
    stored = where.open()
    assert len(list(stored._counter_.journal.writer.home.blobs())) == 1
    stored.close()
    stored = where.open()
    assert stored.answered_ == stored._state_.n_kept == 9
    stored.close()


# --- keys


def test_keys_may_live_behind_a_command(tmp_path: Path) -> None:
    command, folder = key_command(tmp_path)
    path = tmp_path / "oracle.db"
    everlasting().save_to(path, keys=command)
    assert not (tmp_path / "oracle.db.keys").exists()
    stored = cumae.open(path, keys=command)
    stored.predict(rows_of(ROWS, 0, 450))
    with pytest.raises(LiveState):
        cumae.open(path, keys=command)
    stored.close()
    names = sorted(one.name for one in folder.iterdir())
    assert [name.partition("-")[0] for name in names] == ["epoch", "home", "mark", "oracle"]
    assert names[0].startswith("epoch-2-")
    assert cumae.open(path, keys=command).answered_ == 450
    with pytest.raises(StoreFailed, match="is not there"):
        cumae.open(path)
    with pytest.raises(StoreFailed, match="did not run"):
        cumae.open(path, keys="/no/such/command")
    with pytest.raises(StoreFailed, match="failed with exit code"):
        cumae.open(path, keys="false")
    store.destroy(path, keys=command)
    assert list(folder.iterdir()) == []
    assert not path.exists()


def test_a_key_can_be_rotated(where: Where) -> None:
    stored = where.oracle()
    stored.predict(ROWS[:10], request_id="one")
    stored.close()
    (old,) = (one.read_bytes() for one in where.key_folder.glob("epoch-1*.key"))
    store.rotate(where.address, keys=where.keys)
    (new,) = where.key_folder.glob("epoch*")
    assert new.name.startswith("epoch-2")
    assert new.read_bytes() != old
    stored = where.open()
    assert (stored.answered_, stored.phase_) == (10, 1)
    stored.predict(ROWS[:10], request_id="one")  # retries end with a key
    assert stored.answered_ == 20
    stored.close()
    known = where.status().totals
    assert (known.epoch, known.phase, known.used) == (2, 1, 20)


@pytest.mark.parametrize("name", ["oracle.key", "mark*.json", "epoch-1*.key"])
def test_without_a_key_it_is_refused(name: str, where: Where) -> None:
    stored = where.oracle()
    stored.close()
    for file in where.key_folder.glob(name):
        file.unlink()
    with pytest.raises(StoreFailed, match=r"key of epoch 1 is gone|not among the keys"):
        where.open()
    where.status()  # the ledger needs none


def test_keys_of_another_oracle_are_refused(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    stored.close()
    (tmp_path / "b").mkdir()
    other, stored = oracle(tmp_path / "b")
    stored.close()
    other.rename(tmp_path / "b" / "x")
    path.rename(other)
    with pytest.raises(StoreFailed, match="another oracle"):
        cumae.open(other)


def test_destroy_leaves_nothing(where: Where, tmp_path: Path) -> None:
    stored = where.oracle()
    with pytest.raises(LiveState):
        store.destroy(where.address, keys=where.keys)
    stored.close()
    store.backup(where.address, tmp_path / "copy.db")
    store.destroy(where.address, keys=where.keys)
    assert [file.name for file in tmp_path.iterdir()] == ["copy.db"]
    with pytest.raises(InvalidParameter, match="holds no oracle"):
        where.status()
    with pytest.raises(CumaeError, match=r"is not there|is a copy of an oracle in PostgreSQL"):
        cumae.open(tmp_path / "copy.db", keys=where.keys)
    assert store.status(tmp_path / "copy.db").totals.answers == 0


def test_a_backup_is_a_copy_while_others_write(where: Where, tmp_path: Path) -> None:
    stored = where.oracle()
    stored.predict(ROWS[:10])
    store.backup(where.address, tmp_path / "copy.db")
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    with pytest.raises(InvalidParameter, match="exists already"):
        store.backup(where.address, tmp_path / "copy.db")
    stored.predict(ROWS[:10])
    stored.close()
    assert store.status(tmp_path / "copy.db").totals.answers == 10
    assert where.status().totals.answers == 20


def test_a_normal_end_of_the_process_costs_nothing(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    stored.close()
    work = f"import cumae; cumae.open({str(path)!r}).predict([[0.5]])"
    subprocess.run([sys.executable, "-c", work], check=True)
    stored = cumae.open(path)
    assert (stored.answered_, store.status(path).totals.used) == (1, 1)
    break_off(stored)
    assert cumae.open(path).answered_ == 1
