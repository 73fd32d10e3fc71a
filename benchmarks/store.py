"""What does it cost that an oracle survives a crash? Ratios within one run, sizes, and opening.

    python benchmarks/store.py [--folder DIRECTORY] [--seconds 5]
    python benchmarks/store.py --folder /dev/shm --sync 0.5
    python benchmarks/store.py --postgres ADDRESS

The first writes benchmarks/results/store.json. The second lets every sync take half a millisecond,
which stands for a fast disk, and writes benchmarks/results/store_timed.json. The third takes the
address of an empty schema of a PostgreSQL server, writes benchmarks/results/replicas.json, and
compares with bare conditional updates.

Everything is compared within one run on one disk, because disks differ by factors of a hundred.
What is wanted: single answers at half the rate of bare SQLite commits of the same bytes, five times
as many answers with 16 threads as with one, batches of 10,000 rows at 0.3 of the rate in memory,
and less than 5 s to open an oracle of a million rows.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import numpy as np

import cumae
import cumae.store
from cumae.concepts import Thresholds
from cumae.predictors.waiting import KeptRows
from cumae.store.homes import sqlite

RESULTS = Path(__file__).parent / "results"
WIDTH = 10
MANY = 1_000_000
THREADS = 16
ROUNDS = 5
BATCH, BATCHES = 10_000, 20
WANTED = {"single": 0.5, "threads": 5.0, "batches": 0.3}

Oracle = Any


def fitted(n_rows: int, width: int = 1) -> cumae.EverlastingPredictor:
    rng = np.random.default_rng(0)
    rows = rng.random((n_rows, width))
    model = Thresholds() if width == 1 else None
    made = cumae.EverlastingPredictor(model, epsilon=3.0, prior=False, max_rows=4 * MANY)
    return made.fit(rows, (rows[:, 0] > 0.3).astype(int))


def rate(work: Callable[[], int], seconds: float) -> float:
    """Return how much is done in a second."""
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        done += work()
    return done / (time.perf_counter() - started)


class Counted(apsw.VFS):
    """Counts what is written and synced."""

    def __init__(self) -> None:
        self.n_bytes = self.syncs = 0
        super().__init__("counted", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        counted = self

        class File(apsw.VFSFile):
            def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
                counted.n_bytes += len(data)
                super().xWrite(data, offset)

            def xSync(self, flags: int) -> None:  # noqa: N802
                counted.syncs += 1
                super().xSync(flags)

        return File("unix", name, flags)


class Timed(apsw.VFS):
    """A disk on which every sync takes a stated time; files should lie in memory."""

    def __init__(self, milliseconds: float) -> None:
        self.seconds = milliseconds / 1_000
        super().__init__("timed", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        timed = self

        class File(apsw.VFSFile):
            def xSync(self, flags: int) -> None:  # noqa: N802
                del flags
                time.sleep(timed.seconds)

        return File("unix", name, flags)


def bare(path: Path, blob: int, entry: int, seconds: float) -> float:
    """Return commits a second of rows of the same sizes, with nothing around them."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode=wal")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(sqlite.TABLES)
    number = 0

    def commit() -> int:
        nonlocal number
        number += 1
        connection.execute("BEGIN IMMEDIATE")
        values = (number, 0, 1, "answered", os.urandom(blob))
        connection.execute("INSERT INTO blobs VALUES (?, ?, ?, ?, ?)", values)
        text = (number, "x" * entry, os.urandom(32))
        connection.execute("INSERT INTO ledger VALUES (?, ?, ?)", text)
        connection.execute("COMMIT")
        return 1

    found = rate(commit, seconds)
    connection.close()
    return found


def singles(oracle: Oracle, seconds: float) -> float:
    queries = np.random.default_rng(1).random((1_000, 1))
    place = 0

    def ask() -> int:
        nonlocal place
        place += 1
        oracle.predict(queries[place % 1_000][None])
        return 1

    return rate(ask, seconds)


def threads(oracle: Oracle, seconds: float, count: int) -> float:
    """Return answers a second that so many threads get together, one by one."""
    until = time.perf_counter() + seconds
    done = [0] * count

    def ask(own: int) -> None:
        while time.perf_counter() < until:
            oracle.predict([[own / count]])
            done[own] += 1

    running = [threading.Thread(target=ask, args=(own,)) for own in range(count)]
    for one in running:
        one.start()
    for one in running:
        one.join()
    return sum(done) / seconds


def batches(predictor: Oracle) -> float:
    """Return rows a second of batches that stay within the first phase: nothing is trained."""
    queries = np.random.default_rng(1).random((BATCH, 1))
    started = time.perf_counter()
    for _ in range(BATCHES):
        predictor.predict(queries)
    return BATCHES * BATCH / (time.perf_counter() - started)


def sizes(folder: Path) -> dict[str, float]:
    """Return bytes and syncs for each single answer, and the disk for a million of them."""
    counted = Counted()
    fitted(200_000).save_to(folder / "sizes.db")
    oracle = cumae.open(folder / "sizes.db")
    start, first = (counted.n_bytes, counted.syncs), (folder / "sizes.db").stat().st_size
    count = 20_000
    for number in range(count):
        oracle.predict([[number / count]])
    written, synced = counted.n_bytes - start[0], counted.syncs - start[1]
    oracle.close()
    counted.unregister()
    grown = (folder / "sizes.db").stat().st_size - first
    return {
        "written_bytes_per_answer": written / count,
        "syncs_per_answer": synced / count,
        "disk_bytes_per_million_answers": grown / count * 1e6,
        "single_answers": count,
    }


def opening(folder: Path) -> dict[str, float]:
    """Return how long it takes to open an oracle with a million rows."""
    one = fitted(50_000, WIDTH)
    kept = KeptRows()
    rng = np.random.default_rng(2)
    for at in range(0, MANY, BATCH):
        kept.put(at, rng.random((BATCH, WIDTH)), np.ones((BATCH, 2), dtype=np.int64))
    one._state_.kept = kept
    started = time.perf_counter()
    one.save_to(folder / "many.db")
    saved = time.perf_counter() - started
    started = time.perf_counter()
    oracle = cumae.open(folder / "many.db")
    opened = time.perf_counter() - started
    found = {
        "rows": oracle._state_.n_kept,
        "columns": WIDTH,
        "save_seconds": saved,
        "open_seconds": opened,
        "bytes": (folder / "many.db").stat().st_size,
    }
    oracle.close()
    return found


def run(folder: Path, seconds: float) -> dict[str, Any]:
    fitted(200_000).save_to(folder / "oracle.db")
    oracle = cumae.open(folder / "oracle.db")
    oracle.predict([[0.5]])
    last = list(oracle._counter_.journal.writer.home.blobs())[-1]
    entry = len(oracle._counter_.journal.writer.last.text)
    found: dict[str, list[float]] = defaultdict(list)
    for part in range(ROUNDS):  # in turn, because others use the disk and the cores as well
        path, share = folder / f"bare{part}.db", seconds / ROUNDS
        found["bare_commits"].append(bare(path, len(last.parts[0]), entry, share))
        found["single_answers"].append(singles(oracle, share))
        found["one_thread"].append(threads(oracle, share, 1))
        found["16_threads"].append(threads(oracle, share, THREADS))
        fitted(200_000).save_to(folder / f"batches{part}.db")
        durable = cumae.open(folder / f"batches{part}.db")
        found["batch_rows"].append(batches(durable))
        durable.close()
        found["batch_rows_in_memory"].append(batches(fitted(200_000)))
    oracle.close()
    mean = {name: float(np.mean(rates)) for name, rates in found.items()}
    ratios = {
        "single": mean["single_answers"] / mean["bare_commits"],
        "threads": mean["16_threads"] / mean["one_thread"],
        "batches": mean["batch_rows"] / mean["batch_rows_in_memory"],
    }
    return {"per_second": mean, "ratios": ratios, "wanted": WANTED}


# --- replicas in PostgreSQL


def bare_updates(address: str, blob: int, entry: int, seconds: float) -> float:
    """Return commits a second of a conditional update and rows of the same sizes."""
    import psycopg  # noqa: PLC0415 - only with an address

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bare_head, bare_ledger, bare_blobs")
        connection.execute("CREATE TABLE bare_head (number bigint, hash bytea)")
        connection.execute("INSERT INTO bare_head VALUES (0, '')")
        connection.execute("CREATE TABLE bare_ledger (number bigint PRIMARY KEY, t text, h bytea)")
        connection.execute("CREATE TABLE bare_blobs (number bigint PRIMARY KEY, sealed bytea)")
        number = 0

        def commit() -> int:
            nonlocal number
            number += 1
            known = os.urandom(32)
            with connection.pipeline():
                connection.execute("BEGIN")
                connection.execute(
                    "UPDATE bare_head SET number = %s, hash = %b WHERE number = %s "
                    "RETURNING number",
                    (number, known, number - 1),
                )
                connection.execute(
                    "INSERT INTO bare_blobs VALUES (%s, %b)", (number, os.urandom(blob))
                )
                connection.execute(
                    "INSERT INTO bare_ledger VALUES (%s, %s, %b)", (number, "x" * entry, known)
                )
                connection.execute("COMMIT")
            return 1

        found = rate(commit, seconds)
        connection.execute("DROP TABLE bare_head, bare_ledger, bare_blobs")
    return found


class Replica:
    """A process that answers one by one for a while, with so many threads."""

    def __init__(self, address: str, keys: str, seconds: float, n_threads: int = 1) -> None:
        self.done, telling = os.pipe()
        ready, readied = os.pipe()
        waiting, self.begin = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            try:
                oracle = cumae.open(address, keys=keys)
                oracle.predict([[0.5]])
                os.write(readied, b"!")
                os.read(waiting, 1)
                given = threads(oracle, seconds, n_threads) * seconds
                oracle.close()
                os.write(telling, str(round(given)).encode())
            finally:
                os._exit(0)
        os.close(telling)
        os.read(ready, 1)

    def answers(self) -> int:
        """Return how many answers were given, once it has ended."""
        found = int(os.read(self.done, 100))
        os.waitpid(self.process, 0)
        return found


def replicas(address: str, keys: str, seconds: float, count: int, n_threads: int = 1) -> float:
    """Return answers a second of so many processes together."""
    running = [Replica(address, keys, seconds, n_threads) for _ in range(count)]
    for one in running:
        os.write(one.begin, b"!")
    return sum(one.answers() for one in running) / seconds


def run_replicas(address: str, folder: Path, seconds: float) -> dict[str, Any]:
    keys = f"folder:{folder / 'keys'}"
    fitted(200_000).save_to(address, keys=keys)
    oracle = cumae.open(address, keys=keys)
    oracle.predict([[0.5]])
    last = list(oracle._counter_.journal.writer.home.blobs())[-1]
    entry = len(oracle._counter_.journal.writer.last.text)
    oracle.close()
    found: dict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        share = seconds / ROUNDS
        found["bare_updates"].append(bare_updates(address, len(last.parts[0]), entry, share))
        for count in (1, 2, 4):
            found[f"replicas_{count}"].append(replicas(address, keys, share, count))
        found["replica_16_threads"].append(replicas(address, keys, share, 1, THREADS))
        found["replicas_2_16_threads"].append(replicas(address, keys, share, 2, THREADS))
    mean = {name: float(np.mean(rates)) for name, rates in found.items()}
    ratios = {name: mean[name] / mean["bare_updates"] for name in mean if name != "bare_updates"}
    cumae.store.destroy(address, keys=keys)
    return {"per_second": mean, "ratios_to_bare_updates": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=None, help="a folder on the disk to measure")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each of the measurements")
    parser.add_argument("--sync", type=float, help="let every sync take so many milliseconds")
    parser.add_argument("--postgres", default=None, help="the address of an empty schema")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=given.folder))
    disk = None if given.sync is None else Timed(given.sync)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if given.postgres is None:
                found = run(folder, given.seconds)
                if disk is None:
                    found |= {"sizes": sizes(folder), "opening": opening(folder)}
            else:
                found = run_replicas(given.postgres, folder, given.seconds)
    finally:
        shutil.rmtree(folder)
        if disk is not None:
            disk.unregister()
            found["sync_milliseconds"] = given.sync
    found["machine"] = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    RESULTS.mkdir(exist_ok=True)
    name = "store.json" if given.sync is None else "store_timed.json"
    name = name if given.postgres is None else "replicas.json"
    (RESULTS / name).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))
    if given.postgres is not None:
        return
    for name, wanted in WANTED.items():
        print(f"{name}: {found['ratios'][name]:.2f}, wanted {wanted}")


if __name__ == "__main__":
    main()
