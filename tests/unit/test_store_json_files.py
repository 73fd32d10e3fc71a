"""Any file that cumae wrote is opened by ``cumae.open`` and ``cumae.load``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cumae
from cumae import Budget, MissingPackage, PrivateClassifier, PrivateLearner, StoreFailed
from cumae.concepts import Stumps
from cumae.privacy import Pure
from cumae.store import oracle

ROWS = np.linspace(0, 1, 400).reshape(-1, 1)
LABELS = np.where(ROWS[:, 0] > 0.4, "yes", "no")


def learner() -> PrivateLearner:
    made = PrivateLearner(Stumps(), 5.0, classes=["no", "yes"], columns=[(0, 1)])
    return made.fit(ROWS, LABELS)


def write_classifier(path: Path) -> None:
    inside = learner().to_dict()
    plain = {"kind": "PrivateClassifier", "route": "kernel", "why": "", "model": inside}
    path.write_text(json.dumps(plain), encoding="utf-8")


WRITTEN: dict[str, tuple[Callable[[Path], None], type[Any]]] = {
    "a learner": (lambda path: learner().save(path), PrivateLearner),
    "a learner in an oracle": (lambda path: learner().save_to(path), PrivateLearner),
    "a classifier": (write_classifier, PrivateClassifier),
    "an account": (lambda path: Budget(1.0, 1e-6).save(path), Budget),
    "an account in an oracle": (lambda path: Budget(1.0, 1e-6).save_to(path), Budget),
}


@pytest.mark.parametrize("what", WRITTEN)
def test_every_door_opens_every_file(what: str, tmp_path: Path) -> None:
    write, kind = WRITTEN[what]
    write(tmp_path / "file")
    for door in (cumae.open, cumae.load):
        found = door(tmp_path / "file")
        assert type(found) is kind
    if kind is not Budget:
        assert found.predict(ROWS[:3]).tolist() == learner().predict(ROWS[:3]).tolist()


@pytest.mark.parametrize("what", WRITTEN)
def test_the_load_of_a_class_names_the_door_for_other_files(what: str, tmp_path: Path) -> None:
    write, kind = WRITTEN[what]
    write(tmp_path / "file")
    others: set[Any] = {PrivateLearner, PrivateClassifier, Budget}
    for other in others - {kind}:
        with pytest.raises(cumae.InvalidParameter, match=r"cumae\.load"):
            other.load(tmp_path / "file")


def test_accounts_that_are_opened_go_on_in_their_file(tmp_path: Path) -> None:
    Budget(1.0, 1e-6).save(tmp_path / "account.json")
    cumae.open(tmp_path / "account.json").spend(Pure(0.75))
    with pytest.raises(cumae.BudgetExhausted):
        cumae.load(tmp_path / "account.json").spend(Pure(0.5))


def test_files_of_others_are_refused_by_what_they_are(tmp_path: Path) -> None:
    for name, text, told in (
        ("rows.csv", "age,income\n1,2\n", "another kind of file"),
        ("empty.db", "", "is empty"),
        ("other.json", '{"a": 1}', "no learner of cumae"),
        ("list.json", "[1, 2]", "no learner of cumae"),
        ("broken.json", '{"kind": "PrivateClassifier"}', "no learner of cumae"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(cumae.CumaeError, match=told):
            cumae.load(tmp_path / name)
    with pytest.raises(cumae.InvalidParameter, match="no such file"):
        cumae.load(tmp_path / "nothing.json")
    with pytest.raises(cumae.InvalidParameter, match="is a folder"):
        cumae.load(tmp_path)


def test_models_are_opened_where_the_packages_of_the_store_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(path: Path) -> None:
        raise MissingPackage("apsw is not there; install cumae[store].")

    learner().save(tmp_path / "model.json")
    monkeypatch.setattr(oracle, "place_of", missing)
    assert type(cumae.load(tmp_path / "model.json")) is PrivateLearner
    (tmp_path / "oracle.db").write_bytes(b"SQLite format 3\0")
    with pytest.raises(MissingPackage, match="apsw"):
        cumae.load(tmp_path / "oracle.db")


def test_an_older_copy_is_called_one(tmp_path: Path) -> None:
    """Status and verify say what opening would say, where the keys are at hand."""
    path, copy = tmp_path / "oracle.db", tmp_path / "copy.db"
    made = cumae.EverlastingPredictor(
        Stumps(), epsilon=50.0, classes=["no", "yes"], columns=[(0, 1)]
    )
    made.fit(ROWS, LABELS).save_to(path)
    cumae.store.backup(path, copy)
    assert not cumae.store.status(path).trouble
    with cumae.open(path) as one:
        one.predict(ROWS[:5])
        assert not cumae.store.status(path).trouble
    assert not cumae.store.status(path).trouble
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    copy.replace(path)
    found = cumae.store.status(path)
    assert "this file is an older copy" in found.trouble
    assert found.to_dict()["trouble"] == found.trouble
    with pytest.raises(StoreFailed, match="older copy"):
        cumae.open(path)
    cumae.open(path, accept_rollback=True).close()
    restored = cumae.store.status(path)
    assert not restored.trouble
    assert restored.totals.rollbacks == 1
    next(path.with_name("oracle.db.keys").glob("oracle*")).unlink()
    assert "it cannot go on" in cumae.store.status(path).trouble


def test_an_older_copy_of_an_account_is_called_one(tmp_path: Path) -> None:
    path, copy = tmp_path / "account.db", tmp_path / "copy.db"
    account = Budget(1.0, 1e-6)
    account.save_to(path)
    assert not cumae.store.status(path).trouble
    cumae.store.backup(path, copy)
    account.spend(Pure(0.5))
    assert not cumae.store.status(path).trouble
    assert not cumae.store.status(copy).trouble  # its keys are not at hand
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    copy.replace(path)
    assert "this file is an older copy" in cumae.store.status(path).trouble
    with pytest.raises(StoreFailed, match="older copy"):
        cumae.open(path)
