"""Files of older formats: what they hold is read, and what is damaged is refused."""

from __future__ import annotations

import datetime as dt
import json
import math
import shutil
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import pytest

import cumae
from cumae import InvalidParameter, StoreFailed, store
from cumae.codec import FORMAT, from_bytes, to_bytes
from cumae.predictors.estimators import estimator_from_plain
from cumae.privacy import Guarantee
from cumae.store.homes.sqlite import SqliteFile
from cumae.store.older.forms import arrays_from_bytes, record_from_bytes, unpack
from cumae.store.pieces import HEAD
from cumae.store.sealed import Seal
from tests.states import same

STORED = Path(__file__).parent.parent / "stored"
FIRST = ["format_1", "format_1_ids", "format_2"]
THIRD = sorted(f"format_3/{folder.name}" for folder in (STORED / "format_3").iterdir())
FOURTH = sorted(f"format_4/{folder.name}" for folder in (STORED / "format_4").iterdir())
FIFTH = sorted(f"format_5/{folder.name}" for folder in (STORED / "format_5").iterdir())


def copied(form: str, folder: Path) -> Path:
    """Return a copy of a stored oracle, with its keys beside it."""
    path, keys = folder / "oracle.db", folder / "oracle.db.keys"
    keys.mkdir(mode=0o700)
    for file in (STORED / form).iterdir():
        target = keys / file.name.removeprefix("key-")
        if file.name == "oracle.sqlite":
            target = path
        shutil.copy(file, target)
        target.chmod(0o600)
    (keys / "known.json").unlink(missing_ok=True)
    return path


def contents(form: str, folder: Path) -> list[tuple[str, bytes]]:
    """Return the pieces of a stored oracle, decrypted: its state, and what was recorded since."""
    with SqliteFile(copied(form, folder), reading=True) as home:
        oracle, pieces = home.meta()["oracle"], list(home.blobs())
    found = []
    for one in pieces:
        (key,) = (STORED / form).glob(f"key-epoch-{one.epoch}*.key")
        seal = Seal(key.read_bytes(), oracle, one.epoch)
        found.append((one.kind, seal.open(one.parts, one.kind, one.number)))
    return found


def whole(content: bytes) -> Any:
    arrays = arrays_from_bytes(content)
    arrays.pop(HEAD, None)
    return unpack(arrays)


@pytest.mark.parametrize("form", [*FIRST, *THIRD])
def test_states_and_records_are_read(form: str, tmp_path: Path) -> None:
    (_, first), *rest = contents(form, tmp_path)
    facts = whole(first)
    totals = store.status(tmp_path / "oracle.db").totals
    assert (facts["format"], facts["kind"]) == (1, totals.kind)
    fitted = facts["state"]["fitted"]
    assert isinstance(fitted["guarantee"], Guarantee)
    assert estimator_from_plain(fitted["model"]) is not None
    records = [(kind, record_from_bytes(content)) for kind, content in rest]
    answers = sum(record["count"] for kind, record in records if kind == "answered")
    assert facts["state"]["answered"] + answers == totals.answers
    for value in (facts, records):  # the present form holds all of it
        assert same(from_bytes(to_bytes(value)), value)


def test_records_keep_what_they_recorded(tmp_path: Path) -> None:
    records = contents("format_3/everlasting", tmp_path)[1:]
    found = {kind: record_from_bytes(content) for kind, content in records}
    assert set(found) == {"answered", "labelled", "labels"}
    rows = found["labelled"]["rows"]
    assert (rows.dtype, rows.shape) == (np.float64, (2, 1))
    assert all(type(one) is bytes for one in found["labelled"]["users"])


WHO: dict[str, Any] = {
    "format_3/everlasting": {"users": ["u30", 40], "clients": [3, 4]},
    "format_3/everlasting_memo": {"users": ["u30", 40], "clients": ["a", "d"]},
    "format_4/everlasting_thresholds": {"users": ["u30", 40]},
    "format_1_ids": {"users": ["u30", 40], "clients": [3, 4]},
}
NO_MORE = {"format_3/offline"}  # its one batch was answered


@pytest.mark.parametrize("form", [*FIRST, *THIRD, *FOURTH])
def test_an_oracle_of_an_older_format_is_written_anew_and_goes_on(
    form: str, tmp_path: Path
) -> None:
    path = copied(form, tmp_path)
    before = store.status(path).totals
    oracle = cumae.open(path)
    after, state = store.status(path).totals, oracle._state_
    assert (after.epoch, after.phase) == (before.epoch + 1, before.phase)
    assert (after.used, after.answers) == (before.used, before.answers)
    assert state.used == before.used
    assert state.answered == before.answers
    known = STORED / form / "known.json"
    left = (
        json.loads(known.read_text(encoding="utf-8")).get("remaining") if known.exists() else None
    )
    if left is not None:
        assert oracle.remaining_ == (math.inf if left == "inf" else left)
    facts = state.to_facts()
    oracle.close()
    with SqliteFile(path, reading=True) as home:
        assert [blob.kind for blob in home.blobs()] == ["state"]
        assert home.meta()["format"] == str(FORMAT)
    again = cumae.open(path)
    assert store.status(path).totals.epoch == after.epoch  # once is enough
    assert same(again._state_.to_facts(), facts)
    if form not in NO_MORE:
        asked: Any = [[0.1], [0.9]]
        if form.endswith("_text"):
            asked = pd.DataFrame({"size": [0.1, 0.9], "word": ["ja", "nein"]})
        assert len(again.predict(asked, **WHO.get(form, {}))) == 2
    again.close()


@pytest.mark.parametrize("form", FIFTH)
def test_an_oracle_that_was_written_ahead_by_an_older_version_goes_on(
    form: str, tmp_path: Path
) -> None:
    """Format 5 wrote the models alone ahead; its states are read as they are."""
    path = copied(form, tmp_path)
    before = store.status(path).totals
    known = json.loads((STORED / form / "known.json").read_text(encoding="utf-8"))
    oracle = cumae.open(path)
    state = oracle._state_
    found = {
        "answered": state.answered,
        "remaining": "inf" if oracle.remaining_ == math.inf else oracle.remaining_,
        "phase": oracle.phase_,
        "kept": state.kept.n_rows,
        "waiting": len(state.waiting),
        "users": len(state.admission.seen),
    }
    assert found == known
    assert store.status(path).totals.epoch == before.epoch
    count = 1_500 if form.endswith("fresh") else 600
    ids = range(1_000, 1_000 + count)  # of nobody who has asked
    who = {"users": ids, "clients": ids} if form.endswith("users") else {}
    oracle.predict(np.linspace(0.0, 1.0, count)[:, None], **who)
    assert oracle.phase_ > known["phase"]
    facts = oracle._state_.to_facts()
    oracle.close()
    with SqliteFile(path, reading=True) as home:
        assert home.meta()["format"] == str(FORMAT)
    again = cumae.open(path)
    assert same(again._state_.to_facts(), facts)
    again.close()


def test_ids_of_older_formats_are_known_again(tmp_path: Path) -> None:
    oracle = cumae.open(copied("format_3/everlasting_memo", tmp_path))
    kept = oracle._state_.kept.n_rows
    oracle.predict([[0.5], [0.6]], users=["u1", 0.5], clients=["d", "e"])  # both have a row already
    assert oracle._state_.kept.n_rows == kept
    with pytest.raises(InvalidParameter, match="names another query"):
        oracle.predict([[0.5]], users=["new"], clients=["d"], query_ids=["q1"])
    oracle.add_labels(["q2"], [1])
    memo = dict(oracle._state_.phase.memo)
    rows = oracle._state_.kept.rows[:1]
    oracle.predict(rows, users=["newer"], clients=["d"])
    assert oracle._state_.phase.memo.keys() == memo.keys()  # it was asked before
    oracle.close()


# What is damaged


def test_damaged_states_are_refused(tmp_path: Path) -> None:
    ((_, content), *_) = contents("format_1", tmp_path)
    arrays = arrays_from_bytes(content)
    assert unpack(arrays)["kind"] == "EverlastingPredictor"
    for name, array in arrays.items():
        without = {other: arrays[other] for other in arrays if other != name}
        for changed in (without, {**arrays, name: array[None]}, {**arrays, "more": array}):
            with pytest.raises(InvalidParameter, match="no stored state"):
                unpack(changed)
        if array.size and array.dtype.kind in "iuf":
            other = array.copy()
            other.flat[0] += 1
            with pytest.raises(InvalidParameter, match="no stored state"):
                unpack({**arrays, name: other})
    for changed_content in (content[:-1], content + b"x", b"", b"[1]", b'["a"]\n', b"{"):
        with pytest.raises(StoreFailed):
            arrays_from_bytes(changed_content)


def test_damaged_records_are_refused(tmp_path: Path) -> None:
    (_, content) = contents("format_2", tmp_path)[1]
    assert content.startswith(b"{")
    assert record_from_bytes(content)["count"] == 5
    for changed in (content[:-1], content + b"x"):
        with pytest.raises(StoreFailed, match="not as long as it says"):
            record_from_bytes(changed)
    line = content.partition(b"\n")[0]
    for changed in (line[:-1], b'{"a": {"$array": ["nonsense", 1]}}', b'{"a": {"$array": 5}}'):
        with pytest.raises(StoreFailed):
            record_from_bytes(changed + b"\n")


def test_cells_and_frames_of_older_versions_are_read() -> None:
    text = json.dumps([1, {"int": hex(1 << 100)}, {"bytes": "00ff"}, {"date": "2020-02-03"}, None])
    cells = np.frombuffer(text.encode(), dtype=np.uint8)
    check = ["|u1", [len(cells)], crc32(cells.tobytes())]
    column = {"$": "cells", "at": "table/0", "shape": [5], "check": check}
    facts = json.dumps({"table": {"$": "frame", "names": ["a"], "columns": [column]}})
    table = unpack({"table/0": cells, "facts": np.frombuffer(facts.encode(), dtype=np.uint8)})
    assert table["table"]["a"].tolist() == [1, 1 << 100, b"\x00\xff", dt.date(2020, 2, 3), None]
