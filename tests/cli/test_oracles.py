"""The commands about oracles in files."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest
from typer.testing import CliRunner, Result

import cumae
from cumae import QueryRelease
from cumae.cli import app
from cumae.concepts import Thresholds
from tests.oracles import ROWS, Where, break_off, oracle

pytestmark = [pytest.mark.claim("STORE"), pytest.mark.filterwarnings("ignore::UserWarning")]


def run(*words: str, given: str = "") -> Result:
    return CliRunner().invoke(app, list(words), input=given, env={"COLUMNS": "500"})


@pytest.fixture
def path(tmp_path: Path) -> str:
    found, stored = oracle(tmp_path)
    stored.predict(ROWS[:20])
    stored.close()
    return str(found)


def test_status_tells_what_was_promised_given_and_left(path: str) -> None:
    told = run("status", path)
    assert told.exit_code == 0
    assert "EverlastingPredictor" in told.stdout
    assert "(epsilon = 60, delta = 1e-06)-differential privacy" in told.stdout
    assert "20 recorded" in told.stdout
    assert "20 of 400 of this phase are used, 380 are left" in told.stdout
    assert "in use:    no" in told.stdout
    assert "charged" not in told.stdout
    assert "Claims:" not in told.stdout
    full = run("status", path, "--full").stdout
    assert "no process is copied with its memory" in full
    assert "STORE" in full.split("Claims:")[1]
    plain = json.loads(run("status", path, "--json").stdout)
    assert (plain["answers"], plain["used"], plain["releases"]) == (20, 20, 400)
    assert plain["guarantee"]["epsilon"] == 60.0
    assert float(plain["epsilon_recomputed"]) <= 60.0
    stored = cumae.open(path)
    stored.predict(ROWS[:1])
    assert "in use:    yes" in run("status", path).stdout
    break_off(stored)
    cumae.open(path).close()
    assert "charged:   1 without an answer" in run("status", path).stdout


def test_verify_recomputes_the_guarantee(path: str, tmp_path: Path) -> None:
    told = run("verify", path)
    assert told.exit_code == 0
    assert "Recomputed: epsilon 59.9" in told.stdout or "Recomputed: epsilon 60" in told.stdout
    connection = apsw.Connection(path)
    connection.execute("UPDATE ledger SET entry=replace(entry, '20', '19') WHERE number=3")
    connection.close()
    told = run("verify", path)
    assert told.exit_code == 1
    assert "NOT VERIFIED" in told.stderr
    assert run("status", path).exit_code == 3


def test_an_older_copy_does_not_look_healthy(path: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    assert "until phase 1 ends" in run("backup", path, str(copy)).stdout
    with cumae.open(path) as stored:
        stored.predict(ROWS[:3])
    for ending in ("-wal", "-shm"):
        Path(path + ending).unlink(missing_ok=True)
    copy.replace(path)
    told = run("status", path)
    assert "TROUBLE:   this file is an older copy" in told.stdout
    assert "cumae restore" in told.stdout
    told = run("verify", path)
    assert (told.exit_code, "the ledger fits, but this file is an older" in told.stderr) == (
        1,
        True,
    )
    assert run("restore", path, "--yes").exit_code == 0
    assert run("verify", path).exit_code == 0
    assert "rollbacks: 1" in run("status", path).stdout


def test_verify_knows_learners_and_releases(tmp_path: Path) -> None:
    labels = (ROWS[:, 0] > 0.3).astype(int)
    learner = cumae.PrivateLearner(Thresholds(), epsilon=5.0, columns=[(0.0, 1.0)])
    learner.fit(ROWS, labels).save_to(tmp_path / "learner.db")
    told = run("verify", str(tmp_path / "learner.db"))
    assert "costs nothing" in told.stdout
    assert "was published" in run("status", str(tmp_path / "learner.db")).stdout
    query = QueryRelease(Thresholds(), 50.0, max_queries=50, n_shards=20)
    query.fit(ROWS, labels).save_to(tmp_path / "query.db")
    assert "Recomputed: epsilon" in run("verify", str(tmp_path / "query.db")).stdout


def test_backup_and_destroy(path: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.db")
    assert run("backup", path, copy).exit_code == 0
    assert run("backup", path, copy).exit_code == 3
    assert run("verify", copy).exit_code == 0
    assert run("destroy", path, given="n\n").exit_code == 1
    assert Path(path).exists()
    assert "Destroyed." in run("destroy", path, given="y\n").stdout
    assert not Path(path).exists()
    assert run("status", path).exit_code == 3
    assert run("destroy", copy, "--yes").exit_code == 0
    assert not Path(copy).exists()


@pytest.mark.claim("REPLICAS")
@pytest.mark.debian("postgresql")
def test_commands_take_an_address(in_postgres: Where, tmp_path: Path) -> None:
    one, two = in_postgres.oracle(), in_postgres.open()
    one.predict(ROWS[:3])
    address, keys, copy = in_postgres.address, str(in_postgres.keys), str(tmp_path / "copy.db")
    assert "in use:    yes, by 2 replicas" in run("status", address).stdout
    assert json.loads(run("status", address, "--json").stdout)["replicas"] == 2
    assert "Recomputed: epsilon" in run("verify", address).stdout
    assert run("backup", address, copy).exit_code == 0
    assert "Recomputed: epsilon" in run("verify", copy).stdout
    assert run("destroy", address, "--keys", keys, "--yes").exit_code == 3
    one.close()
    two.close()
    assert run("destroy", address, "--keys", keys, "--yes").exit_code == 0
    assert not in_postgres.key_folder.exists()
    assert run("status", address).exit_code == 3


@pytest.mark.parametrize("command", ["status", "verify", "backup", "destroy"])
def test_help_has_an_example(command: str) -> None:
    assert f"cumae {command} oracle.db" in run(command, "--help").stdout


def test_other_files_are_no_oracles_and_copies_are_not_replaced(path: str, tmp_path: Path) -> None:
    """Nobody is told to change the mode of a table, or to open a copy."""
    table = tmp_path / "rows.csv"
    table.write_text("age,income\n1,2\n", encoding="utf-8")
    told = run("status", str(table))
    assert told.exit_code == 3
    assert "it is another kind of file" in told.stderr
    copy = str(tmp_path / "copy.db")
    assert run("backup", path, copy).exit_code == 0
    assert "exists already; give another name" in run("backup", path, copy).stderr
    with pytest.raises(cumae.StoreFailed, match="give it the name and the folder of the file"):
        cumae.open(copy)
