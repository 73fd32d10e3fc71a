"""Several replicas on one oracle in PostgreSQL: together they are one predictor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import cumae
from cumae import Budget, InvalidParameter, LiveState, StoreFailed, store
from cumae.concepts import Thresholds
from cumae.mechanisms import base
from cumae.predictors.state import BLOCKS, restore
from cumae.store import replicas
from cumae.store import writer as writer_module
from cumae.store.homes import connections
from cumae.store.homes.connections import refuse_open_wire
from cumae.store.homes.postgres import NAMES, PostgresHome
from cumae.store.keys import KeyFolder, Life
from cumae.store.replicas import SharedWriter
from cumae.store.sealed import Seal
from tests.forks import answer_in_a_fork
from tests.oracles import MARKED, ROWS, Where, ask_part, break_off, everlasting, key_command
from tests.servers import PROGRAMS, PostgresServer, new_schema
from tests.states import rows_of
from tests.unit.test_predictors_state_of_all import CASES, begun
from tests.unit.test_store_oracles import EVERLASTING

pytestmark = [
    pytest.mark.claim("REPLICAS"),
    pytest.mark.debian("postgresql"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture
def where(in_postgres: Where) -> Where:
    return in_postgres


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """Return a server that tests may kill, if they start it again."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def fragile(own_server: PostgresServer, tmp_path: Path) -> Where:
    """Return a place for an oracle at a server that may be killed."""
    return new_schema(own_server, tmp_path)


def pair(where: Where, **more: Any) -> tuple[Any, Any]:
    return where.oracle(**more), where.open()


def kept(one: Any) -> Any:
    return one._state_.kept.rows


# --- together they are one predictor


@pytest.mark.parametrize("more", EVERLASTING, ids=str)
def test_replicas_in_turn_answer_as_one_predictor_would(
    more: dict[str, Any],
    where: Where,
    coins: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(base, "PORTION", 1)
    one = everlasting(**more)
    twin = restore(one.to_arrays())
    where.save(one)
    replicas = [where.open(), where.open()]
    queries = np.random.default_rng(1).random((1_200, 1)).round(2)
    for step, start in enumerate(range(0, 1_200, 150)):
        found = []
        for each in (twin, replicas[step % 2]):
            coins(step)
            found.append(ask_part(each, more, queries, start))
        assert found[0] == found[1]
    assert twin.phase_ > 1
    known = where.status()
    assert (known.totals.phase, known.totals.answers) == (twin.phase_, twin.answered_)
    assert known.n_replicas == 2
    for each in replicas:
        each.close()


@pytest.mark.parametrize("name", ["stability", "between", "universal, stability", "bbl, between"])
def test_a_threshold_that_is_live_is_shared(
    name: str, where: Where, coins: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "PORTION", 1)
    _, table, before = CASES[name]
    one = begun(name)
    twin = restore(one.to_arrays())
    where.save(one)
    replicas = [where.open(), where.open()]
    for step in range(6):
        found = []
        for each in (twin, replicas[step % 2]):
            coins(step)
            start = before + 4 * step
            found.append(each.predict(rows_of(table, start, start + 4)).tolist())
        assert found[0] == found[1]
    for each in replicas:
        each.close()


def test_labels_reach_queries_that_another_replica_answered(where: Where) -> None:
    one, two = pair(where)
    one.predict(ROWS[:30], query_ids=[f"r{number}" for number in range(30)])
    two.add_labels(["r3", "r7"], [1, 1])
    two.add_labelled(ROWS[:5], [0, 1, 0, 1, 1])
    with pytest.raises(InvalidParameter, match="names another query"):
        two.predict(ROWS[:1], query_ids=["r9"])
    one.predict(ROWS[:1])
    assert [*one._state_.kept.labelled_places] == [*two._state_.kept.labelled_places] == [3, 7]
    assert one._state_.n_labelled == 5
    one.close()
    two.close()


def test_a_retry_at_another_replica_is_free(where: Where) -> None:
    one, two = pair(where)
    queries = np.full((40, 1), 0.3)
    first = one.predict(queries, request_id=("client", 1)).tolist()
    assert two.predict(queries, request_id=("client", 1)).tolist() == first
    with pytest.raises(InvalidParameter, match="another request"):
        two.predict(queries + 0.1, request_id=("client", 1))
    two.predict(ROWS[:1])
    assert two.answered_ == where.status().totals.answers == 41
    one.close()
    two.close()


def test_a_replica_that_was_far_behind_catches_up(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "MERGE", 7)
    monkeypatch.setattr(writer_module, "CHECKPOINT", 20)
    one, two = pair(where)
    for number in range(60):
        (two if number % 9 == 4 else one).predict([[number / 60]])
        if number == 40:
            one.rotate_key()
    two.predict([[1.0]])
    one.predict([[1.0]])
    assert np.array_equal(kept(two), kept(one)[:-1])
    assert len(list(where_blobs(where))) < 20
    assert one.answered_ == where.used() == 62
    one.close()
    two.close()
    three = where.open()
    assert np.array_equal(kept(three), kept(one))
    three.close()


def where_blobs(where: Where) -> Any:
    with PostgresHome(where.address, reading=True) as home:
        return list(home.blobs())


class Replica:
    """A process of its own that answers until it has answered enough, or fails.

    Parameters
    ----------
    where : Where
        The oracle.
    count : int
        How many answers.
    """

    def __init__(self, where: Where, count: int) -> None:
        self.told, telling = os.pipe()
        ready, readied = os.pipe()
        waiting, self.begin = os.pipe()
        self.process = os.fork()
        if self.process == 0:  # pragma: no cover
            try:
                oracle = where.open()
                os.write(readied, b"!")
                os.read(waiting, 1)
                for number in range(count):
                    oracle.predict(ROWS[number % 400][None], request_id=(os.getpid(), number))
                    os.write(telling, b"!")
                oracle.close()
                os._exit(0)
            finally:
                os._exit(3)
        os.close(telling)
        os.read(ready, 1)
        for descriptor in (ready, readied, waiting):
            os.close(descriptor)

    def go(self) -> None:
        os.write(self.begin, b"!")
        os.close(self.begin)

    def ended(self) -> tuple[int, int]:
        """Return how many answers were told, and how it ended: 0 if all is well."""
        told = 0
        while some := os.read(self.told, 1_000):
            told += len(some)
        os.close(self.told)
        return told, os.waitpid(self.process, 0)[1]


def test_two_processes_answer_at_once_and_all_is_debited(where: Where) -> None:
    """They go through a phase change together."""
    where.save(everlasting())
    replicas = [Replica(where, 230), Replica(where, 230)]
    for each in replicas:
        each.go()
    assert [each.ended() for each in replicas] == [(230, 0), (230, 0)]
    known = where.status().totals
    assert (known.phase, known.answers) == (2, 460)
    assert known.used >= 60  # openings may have charged a block
    three = where.open()
    assert three.answered_ == 460
    three.close()


def test_a_busy_replica_lets_others_answer(where: Where) -> None:
    one, two = pair(where)
    ended = threading.Event()
    given = [0]

    def ask() -> None:
        while not ended.is_set() and given[0] < 250:
            one.predict([[0.5]])
            given[0] += 1

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        two.predict([[0.5]])
    busy = given[0] < 250
    ended.set()
    for thread in threads:
        thread.join()
    assert busy
    assert where.status().totals.answers == given[0] + 3
    one.close()
    two.close()


def test_large_pieces_do_not_make_the_driver_wait_for_ever(where: Where) -> None:
    """A snapshot of some megabytes is larger than the buffers of a socket."""
    stored = where.oracle()
    rows = np.random.default_rng(0).random((200_000, 1))
    stored._state_.kept.put(0, rows, np.ones((len(rows), 2), dtype=np.int64))

    def write() -> None:
        journal = stored._counter_.journal
        for _ in range(4):
            with journal.inside:
                journal.begin_turn()
                journal.compacted()
            journal.end_turn()

    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    writing.join(60)
    assert not writing.is_alive()
    stored.close()
    assert where.open()._state_.n_kept == 200_000


def test_a_fork_is_refused(where: Where) -> None:
    one = where.oracle()
    assert answer_in_a_fork(one, ROWS[:1]) == "refused"
    one.predict(ROWS[:1])
    one.close()
    with pytest.raises(LiveState, match="was closed"):
        one.predict(ROWS[:1])


# --- servers that fail


def test_the_same_entry_of_another_replica_is_not_taken_for_the_own_one(
    in_postgres: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both answer as many queries after the same entry; the first one's commit never came."""
    one, two = in_postgres.oracle(), in_postgres.open()
    one.predict(ROWS[:5])
    two.predict(ROWS[:5])
    real = PostgresHome.again

    def again(self: PostgresHome) -> PostgresHome:
        patch.undo()
        found = real(self)  # its turn has ended with its session
        assert len(two.predict(ROWS[:7])) == 7
        return found

    def lost(*_: Any) -> None:
        raise StoreFailed("the server closed the connection unexpectedly.")

    with monkeypatch.context() as patch:
        patch.setattr(PostgresHome, "commit", lost)
        patch.setattr(PostgresHome, "again", again)
        with pytest.raises(StoreFailed):
            one.predict(ROWS[:7])
    with pytest.raises(StoreFailed):
        one.predict(ROWS[:1])
    one.close()
    two.close()
    assert in_postgres.open().answered_ == 17


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_commit_whose_fate_is_unknown_is_looked_up(
    moment: str, fragile: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, own_server = fragile, fragile.server
    one = where.oracle()
    one.predict(ROWS[:5])
    real = PostgresHome._execute

    def killed(self: Any, text: str, values: Any = None) -> Any:
        if text != "COMMIT":
            return real(self, text, values)
        patch.undo()
        if moment == "after":
            self._connection.execute("COMMIT")
            self._connection._pipeline.sync()
        own_server.kill()
        own_server.start()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as patch:
        patch.setattr(PostgresHome, "_execute", killed)
        if moment == "after":
            assert len(one.predict(ROWS[:50])) == 50
        else:
            with pytest.raises(StoreFailed, match="charged"):
                one.predict(ROWS[:50])
    with pytest.raises(StoreFailed):
        one.predict(ROWS[:1])
    one.close()
    again = where.open()
    assert again.answered_ == (55 if moment == "after" else 5)
    assert where.used() >= 55
    again.predict(ROWS[:1])
    again.close()


@pytest.mark.parametrize("how", ["kill", "immediate shutdown"])
def test_a_server_that_dies_while_replicas_answer_forgets_nothing(how: str, fragile: Where) -> None:
    where, own_server = fragile, fragile.server
    where.save(everlasting())
    given = 0
    for wait in (0.05, 0.2):
        replicas = [Replica(where, 10_000), Replica(where, 10_000)]
        for each in replicas:
            each.go()
        time.sleep(wait)
        if how == "kill":
            own_server.kill()
        else:
            own_server.stop(signal.SIGQUIT)
        own_server.start()
        for each in replicas:
            told, status = each.ended()
            assert status
            given += told
        known = where.status().totals
        assert known.answers >= given
        one = where.open()
        assert one.answered_ == known.answers
        one.close()


def test_a_replica_that_lost_its_session_does_no_harm(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is overtaken in the middle of a phase change, wakes up, and goes on with its keys."""
    one, two = pair(where)
    one.predict(rows_of(ROWS, 0, 399))
    real = KeyFolder.make_epoch

    def overtaken(self: Any, number: int, key: str = "") -> bytes:
        patch.undo()
        made = real(self, number, key)
        session = one._counter_.journal.writer.home._session
        where.server.execute(f"SELECT pg_terminate_backend({session})")
        two.predict(ROWS[:3])  # it takes the turn, and begins the phase
        assert two.phase_ == 2
        return made

    with monkeypatch.context() as patch:
        patch.setattr(KeyFolder, "make_epoch", overtaken)
        with pytest.raises(StoreFailed):
            one.predict(ROWS[:3])
    one.close()
    two.predict(ROWS[:1])
    two.close()
    again = where.open()
    assert (again.phase_, again.answered_) == (2, 404)  # one was recorded before the training
    assert len(list(where.key_folder.glob("epoch*"))) == 1
    again.close()


def test_without_the_lock_the_condition_still_holds(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair(where)
    one.predict(ROWS[:2])
    two.predict(ROWS[:2])
    with monkeypatch.context() as patch:
        patch.setattr(PostgresHome, "take_turn", PostgresHome.head)
        patch.setattr(PostgresHome, "end_turn", lambda self: None)
        patch.setattr(replicas, "TURN_SECONDS", 60.0)
        one._counter_.journal.begin_turn()
        two.predict(ROWS[:3])  # in between
        with pytest.raises(StoreFailed, match="charged"):
            one.predict(ROWS[:5])
    one.close()
    two.predict(ROWS[:1])
    assert where.status().totals.answers == two.answered_ == 8
    two.close()


def test_an_interrupt_at_the_end_of_a_turn_ends_it(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else all others would wait as long as the process lives that was interrupted."""
    one, two = pair(where)
    two._counter_.journal.writer.home._execute("SET lock_timeout = '5s'")

    def interrupted(self: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PostgresHome, "end_turn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            one.predict(ROWS[:2])
    two.predict(ROWS[:1])
    with pytest.raises(StoreFailed, match="KeyboardInterrupt"):
        one.predict(ROWS[:1])
    one.close()
    two.close()


def test_a_replica_that_forgets_what_others_used_is_noticed(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = pair(where)
    one.predict(ROWS[:2])
    two.predict(ROWS[:2])
    monkeypatch.setattr(SharedWriter, "_take_over", lambda self, totals, seal: None)
    with pytest.raises(StoreFailed) as told:
        one.predict(ROWS[:1])
    assert "without their debit" in str(told.value.__cause__)
    one.close()
    two.close()


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "crash", "restart", "rotate"]), st.integers(0, 1)),
    min_size=6,
    max_size=14,
)


@hypothesis.given(steps=STEPS, sizes=st.randoms(use_true_random=False))
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_anything_in_any_order_against_a_count(
    steps: list[tuple[str, int]], sizes: Any, where: Where
) -> None:
    address, keys = elsewhere(where), f"{where.keys}{uuid.uuid4().hex[:8]}"
    own = Where(address, keys, Path(keys.removeprefix("folder:")), where.server)
    replicas = list(pair(own))
    given = spare = 0
    for what, which in steps:
        before = own.used()
        if what == "ask":
            count = sizes.randint(1, 60)
            assert len(replicas[which].predict(rows_of(ROWS, given, given + count))) == count
            given += count
        elif what == "rotate":
            replicas[which].rotate_key()
        else:
            break_off(replicas[which]) if what == "crash" else replicas[which].close()
            replicas[which] = own.open()
            spare += 400 // BLOCKS
            assert before <= own.used() <= before + 400 // BLOCKS
        totals = own.status().totals
        assert totals.answers == given
        assert totals.used <= totals.releases
    for each in replicas:
        each.close()
    again = own.open()
    assert again.answered_ == given
    assert (again.phase_ - 1) * 400 + own.used() <= given + spare + 400 // BLOCKS
    again.close()


# --- settings


@pytest.mark.parametrize("name", ["fsync", "full_page_writes", "synchronous_commit"])
def test_unsafe_settings_are_refused(name: str, where: Where) -> None:
    one = where.oracle()
    server = where.server
    server.execute(f"ALTER SYSTEM SET {name} = off")
    server.execute("SELECT pg_reload_conf()")
    try:
        until = time.monotonic() + 10
        while server.execute(f"SHOW {name}") != [("off",)] and time.monotonic() < until:
            time.sleep(0.02)
        with pytest.raises(StoreFailed, match=f"{name}=off"):
            where.open()
        with pytest.raises(StoreFailed, match=f"{name}=off"):
            one.predict(ROWS[:1])  # one that is open looks in every turn
        with pytest.raises(StoreFailed, match=f"{name}=off"):
            everlasting().save_to(elsewhere(where), keys=f"{where.keys}2")
        assert not where.key_folder.with_name("keys2").exists()
    finally:
        server.execute(f"ALTER SYSTEM RESET {name}")
        server.execute("SELECT pg_reload_conf()")
        while server.execute(f"SHOW {name}") != [("on",)]:
            time.sleep(0.02)
    one.close()
    again = where.open()
    assert again.answered_ == 0
    again.close()


def elsewhere(where: Where) -> str:
    """Return the address of another new schema of the same server."""
    schema = f"other{uuid.uuid4().hex[:8]}"
    where.server.execute(f"CREATE SCHEMA {schema}")
    return str(where.server.address(schema))


def test_who_may_use_the_tables(where: Where) -> None:
    with pytest.raises(InvalidParameter, match="keys=None"):
        everlasting().save_to(where.address)
    with pytest.raises(InvalidParameter, match="holds no oracle"):
        cumae.open(where.address, keys=where.keys)
    with pytest.raises(InvalidParameter, match="accounts live in files"):
        Budget(1.0).save_to(where.address, keys=where.keys)
    assert not where.key_folder.exists()
    one = where.oracle()
    one.close()
    with pytest.raises(InvalidParameter, match="has an oracle already"):
        everlasting().save_to(where.address, keys=f"{where.keys}2")
    schema = where.address.rpartition("3D")[2]
    where.server.execute("GRANT SELECT ON cumae_ledger TO PUBLIC", schema)
    with pytest.raises(StoreFailed, match="revoke"):
        where.open()
    where.server.execute("REVOKE SELECT ON cumae_ledger FROM PUBLIC", schema)
    where.open().close()
    where.server.execute("UPDATE cumae_meta SET value = '99' WHERE name = 'format'", schema)
    with pytest.raises(InvalidParameter, match="has format 99"):
        where.open()
    where.server.execute("UPDATE cumae_meta SET value = '1' WHERE name = 'format'", schema)
    where.key_folder.chmod(0o750)
    with pytest.raises(StoreFailed, match="others can read it"):
        where.open()


def test_only_a_wire_that_nobody_else_holds() -> None:
    refuse_open_wire("/var/run/postgresql", "", verified=False)
    refuse_open_wire("localhost", "127.0.0.1", verified=False)
    refuse_open_wire("localhost", "::1", verified=False)
    refuse_open_wire("db.example", "10.0.0.7", verified=True)
    for host, address in (("db.example", "10.0.0.7"), ("db.example", "")):
        with pytest.raises(StoreFailed, match="sslmode=verify-full"):
            refuse_open_wire(host, address, verified=False)


@pytest.mark.parametrize("mode", ["disable", "require", "verify-full"])
def test_encryption_without_a_proof_of_the_server_is_not_enough(
    where: Where, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Whoever stands in between can encrypt as well; what was asked for is read from libpq."""
    told = []
    monkeypatch.setattr(connections, "refuse_open_wire", lambda *_, verified: told.append(verified))
    monkeypatch.setenv("PGSSLMODE", mode)
    with connections.connected(where.address) as made:
        assert connections.sslmode_of(made) == mode
    assert told == [False]  # a socket of this machine is not encrypted


def test_passwords_are_not_shown(where: Where) -> None:
    address = where.address.replace("owner@", "owner:secret@")
    one = everlasting()
    one.save_to(address, keys=where.keys)
    with pytest.raises(LiveState) as told:
        one.predict(ROWS[:1])
    assert "secret" not in str(told.value)
    assert "secret" not in str(store.status(address).to_dict())


def test_nothing_of_postgresql_is_imported_unless_asked_for(tmp_path: Path) -> None:
    everlasting().save_to(tmp_path / "oracle.db")
    work = (
        f"import sys, cumae; cumae.open({str(tmp_path / 'oracle.db')!r}).close(); "
        "assert 'psycopg' not in sys.modules; sys.modules['psycopg'] = None; "
        "cumae.open('postgresql://nowhere/', keys='folder:keys')"
    )
    done = subprocess.run([sys.executable, "-c", work], capture_output=True, text=True, check=False)
    assert "pip install 'cumae[postgres]'" in done.stderr


# --- what is left of earlier phases


def test_dead_rows_cannot_be_read(fragile: Where) -> None:
    where, own_server = fragile, fragile.server
    one, two = pair(where)
    (old,) = (file.read_bytes() for file in where.key_folder.glob("epoch-1*"))
    with PostgresHome(where.address, reading=True) as home:
        oracle_id = home.meta()["oracle"]
    one.predict(np.full((3, 1), MARKED), request_id="marked")
    before = where_blobs(where)
    two.predict(rows_of(ROWS, 0, 410))
    assert two.phase_ == 2
    own_server.execute("CHECKPOINT")
    found = set()
    for folder in (own_server.data, where.key_folder):
        for file in folder.rglob("*"):
            if not file.is_file():
                continue
            content = file.read_bytes()
            assert np.float64(MARKED).tobytes() not in content
            assert b"0.123456789" not in content
            assert old not in content
            found |= {blob.number for blob in before if blob.parts[-1][:64] in content}
    assert found == {1, 2}  # the server still has the encrypted rows, dead, or in its log
    for key in where.key_folder.glob("*.key"):
        for blob in before:
            for epoch in (1, 2):
                with pytest.raises(StoreFailed, match="does not open"):
                    Seal(key.read_bytes(), oracle_id, epoch).open(
                        blob.parts, blob.kind, blob.number
                    )
    seal = Seal(old, oracle_id, 1)  # the old key would have
    assert np.float64(MARKED).tobytes() in seal.open(before[-1].parts, "1", 2)
    one.close()
    two.close()


# --- databases that are put back, and copies


def schema_of(where: Where) -> str:
    return str(where.address).rpartition("3D")[2]


def dump(where: Where, *options: str) -> str:
    given = options or ("--clean",)
    run = [str(PROGRAMS[-1] / "pg_dump"), *given, f"--schema={schema_of(where)}", where.address]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout


def put_back(where: Where, dumped: str) -> None:
    run = [str(PROGRAMS[-1] / "psql"), "-q", "-v", "ON_ERROR_STOP=1", where.server.address()]
    subprocess.run(run, input=dumped, text=True, check=True, capture_output=True)


def test_a_database_that_was_put_back_is_recognised(where: Where) -> None:
    one = where.oracle()
    one.predict(ROWS[:20])
    dumped = dump(where)
    one.predict(ROWS[:30])
    one.close()
    put_back(where, dumped)
    with pytest.raises(StoreFailed, match=r"older copy.*charges 30 answers.*accept_rollback"):
        where.open()
    again = where.open(accept_rollback=True)
    assert (again.answered_, where.used()) == (20, 50)
    again.predict(ROWS[:1])
    again.close()
    known = where.status().totals
    assert (known.rollbacks, known.charged, known.answers) == (1, 30, 21)
    where.open().close()  # it is the one in use now


def test_a_replica_notices_that_the_database_was_put_back_below_it(where: Where) -> None:
    """It may even be put back to the very entry that the replica knows."""
    one, two = pair(where)
    one.predict(ROWS[:20])
    two.predict(ROWS[:1])
    dumped = dump(where)
    one.predict(ROWS[:30])  # which the other one does not know
    one.close()
    put_back(where, dumped)
    with pytest.raises(StoreFailed, match="was put back"):
        two.predict(ROWS[:1])
    two.close()
    again = where.open(accept_rollback=True)
    assert where.used() >= 51
    again.close()


def test_a_replica_that_is_behind_takes_no_older_dump_for_progress(where: Where) -> None:
    """Only the mark of another replica knows what that one gave after the dump."""
    one, two = pair(where)
    two.predict(ROWS[:1])
    one.predict(ROWS[:20])
    rows = dump(where, "--data-only")  # so that tables stay the same ones
    one.predict(ROWS[:30])
    one.close()
    names = (f"{schema_of(where)}.cumae_{name}" for name in NAMES)
    put_back(where, f"TRUNCATE {', '.join(names)};\n{rows}")
    with pytest.raises(StoreFailed, match="was put back"):
        two.predict(ROWS[:1])
    two.close()
    again = where.open(accept_rollback=True)
    assert where.used() >= 51
    again.close()


def test_a_database_from_before_a_phase_is_refused_for_ever(where: Where) -> None:
    one = where.oracle()
    one.predict(ROWS[:20])
    dumped = dump(where)
    one.predict(rows_of(ROWS, 0, 400))
    one.close()
    put_back(where, dumped)
    with pytest.raises(StoreFailed, match="can never go on"):
        where.open(accept_rollback=True)


@pytest.mark.parametrize("bug", [False, True])
def test_of_two_copies_only_one_goes_on(
    bug: bool, where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy elsewhere with the same keys charges for the first one, which then stops."""
    one = where.oracle(max_rows=400)
    one.predict(ROWS[:20])
    store.backup(where.address, tmp_path / "copy.db")
    with pytest.raises(InvalidParameter, match="copy of an oracle in PostgreSQL"):
        cumae.open(tmp_path / "copy.db", keys=where.keys)
    assert store.status(tmp_path / "copy.db").totals.answers == 20
    other = elsewhere(where)
    store.backup(tmp_path / "copy.db", other)
    with pytest.raises(StoreFailed, match="another server, database or timeline"):
        cumae.open(other, keys=where.keys)
    given = 20
    one.predict(ROWS[:1])  # nobody has gone on elsewhere yet
    given += 1
    two = cumae.open(other, keys=where.keys, accept_rollback=True)
    assert two._state_.spent.asked >= given
    left = one._counter_.journal.writer.mark.high - given  # what its mark covers already
    one.predict(ROWS[:left])
    given += left
    if bug:  # it does not look whether the keys have gone elsewhere
        monkeypatch.setattr(Life, "write_mark", lambda self, mark: setattr(self, "mark", mark))
        one.predict(ROWS[:20])
        assert given + 20 > two._state_.spent.asked  # both would answer from these
        one.close()
        two.close()
        return
    with pytest.raises(StoreFailed) as told:
        one.predict(ROWS[:1])
    assert "somebody has gone on with a copy" in str(told.value)
    assert given <= two._state_.spent.asked
    one.close()
    two.predict(rows_of(ROWS, 0, 100))
    two.close()
    with pytest.raises(StoreFailed, match=r"older copy|ledger is not the one"):
        where.open()


def test_an_oracle_from_a_file_does_not_become_a_shared_one(where: Where, tmp_path: Path) -> None:
    everlasting().save_to(tmp_path / "oracle.db")
    with pytest.raises(InvalidParameter, match="stays in files"):
        store.backup(tmp_path / "oracle.db", where.address)


def test_marks_of_ended_replicas_are_put_together(where: Where) -> None:
    for number in range(4):
        one = where.oracle() if number == 0 else where.open()
        one.predict(ROWS[:3])
        break_off(one)
    before = where.used()
    one, two = where.open(), where.open()
    assert len(list(where.key_folder.glob("mark*"))) == 2
    marks = KeyFolder(where.key_folder).read_marks().values()
    assert max(mark.high for mark in marks) >= before
    one.close()
    two.close()


def test_the_mark_of_an_idle_replica_may_name_what_a_checkpoint_replaced(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = where.oracle()
    idle.predict(ROWS[:1])
    monkeypatch.setattr("cumae.store.writer.CHECKPOINT", 6)
    busy = where.open()
    for _ in range(9):
        busy.predict(ROWS[:1])
    for one in (busy, where.open()):  # no decision is needed, before and after a crash
        one.predict(ROWS[:1])
        break_off(one)
    idle.predict(ROWS[:1])  # it catches up from the checkpoint
    idle.close()
    assert where.open().answered_ == 13
    assert store.status(where.address, keys=where.keys).unconfirmed == 0
    assert store.status(where.address).unconfirmed > 1


def test_several_machines_share_a_command_for_keys(where: Where, tmp_path: Path) -> None:
    command, folder = key_command(tmp_path)
    release = cumae.QueryRelease(Thresholds(), 50.0, max_queries=50, n_shards=20)
    release.fit(ROWS, (ROWS[:, 0] > 0.3).astype(int)).save_to(where.address, keys=command)
    one, two = (cumae.open(where.address, keys=command) for _ in range(2))
    one.predict(ROWS[:2])
    two.predict(ROWS[:2])
    one.close()
    two.close()
    assert where.used() == 4
    store.destroy(where.address, keys=command)
    assert list(folder.iterdir()) == []
