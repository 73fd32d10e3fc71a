"""How long does a fit by sums take on one machine, on workers, and for a billion rows?

    python benchmarks/scale_out.py [--parts memory files workers] [--memory 100000 1000000]
        [--files 100000 2000000] [--on-workers 1000000] [--engines processes dask]

writes benchmarks/results/scale_out.json. It counts CPU seconds, which other work on the machine
changes less than seconds of the clock, and ratios within one run:

- fits in memory and from Parquet files, each in a process of its own, with the most memory beyond
  the start, and the growth of CPU seconds with rows;
- the bare products of matrices of the same shapes, with the rows that were in memory;
- one sum over rows on one worker (processes: the driver) and on two: seconds of the clock,
  the CPU seconds of the sum, which each piece returns beside it, and those of the driver;
- a worker that is killed in the middle of a sum: how many pieces were computed again.

    python benchmarks/scale_out.py simulate [--total 1000000000] [--piece 100000]

reads the rates from that file and writes benchmarks/results/scale_out_billion.json. It runs the
same code, ``Pieces.sum``, over so many rows on an engine whose pieces are made up: the sum of each
is computed once for a few of them, with its CPU seconds, and repeated for all others. What the
driver does is done for each piece; workers are counted, not started.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import importlib
import json
import math
import multiprocessing
import os
import pickle
import platform
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from kernel_speed import COLUMNS, declared, table
from threadpoolctl import threadpool_limits

from cumae import ParquetRows, PrivateKernelClassifier
from cumae.engines import Pieces, Processes, RowEngine, cut
from cumae.learners.kernel import learner
from cumae.learners.kernel.features import KernelFeatures
from cumae.learners.kernel.sums import Question, noisy_sum
from cumae.randomness import SeededSource

RESULTS = Path(__file__).parent / "results"
GROUP = 100_000  # rows of a row group, and of a piece
CHUNK = 8_192
DIRECTIONS = 104  # of a usual step
SAMPLED = 4  # pieces whose sums are computed by a simulation
WORKERS = (1, 2, 10, 100, 1_000)
NETWORK = 1.25e8  # bytes in a second: a gigabit


def used() -> float:
    """Return the CPU seconds of this process so far, of all its threads."""
    found = resource.getrusage(resource.RUSAGE_SELF)
    return found.ru_utime + found.ru_stime


def clocked(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds of the clock and the CPU seconds of some work."""
    clock, cpu = time.perf_counter(), used()
    work()
    return time.perf_counter() - clock, used() - cpu


# Fits


def in_memory(rows: int) -> Callable[[], Any]:
    X, y = table(rows)
    public = table(2_000, 1)[0]
    model = PrivateKernelClassifier(1.0, 1e-8, columns=declared())
    return lambda: model.fit(X, y, public)


def from_files(rows: int) -> Callable[[], Any]:
    """The same from ten files or fewer; they are written here, before the clock starts."""
    folder = tempfile.TemporaryDirectory()
    names = [f"x{place}" for place in range(COLUMNS)]
    public = pd.DataFrame(table(2_000, 1)[0], columns=names)
    size = max(GROUP, rows // 10)
    for start in range(0, rows, size):
        X, y = table(min(size, rows - start), start)
        frame = pd.DataFrame(X, columns=names).assign(label=y)
        path = Path(folder.name) / f"{start:012}.parquet"
        frame.to_parquet(path, row_group_size=GROUP)
    model = PrivateKernelClassifier(1.0, 1e-8, columns=dict.fromkeys(names, (-6.0, 6.0)))

    def fit() -> None:
        with folder:
            model.fit(ParquetRows(folder.name), "label", public)

    return fit


def products(rows: int, shapes: Sequence[tuple[int, int]]) -> Callable[[], Any]:
    """The bare products of a fit: features by coefficients and directions, and their sums."""
    made = []
    for features, across in shapes:
        whole = np.ones((CHUNK, features), dtype=np.float32)
        by = np.ones((features, across), dtype=np.float32)
        made.append((whole, by, np.ones((across, CHUNK)), np.ones((CHUNK, 1))))

    def multiply() -> None:
        with threadpool_limits(1):
            for whole, by, pointed, residual in made:
                for _ in range(math.ceil(rows / CHUNK)):
                    whole @ by
                    pointed @ residual

    return multiply


def _fitted(make: Callable[[int], Callable[[], Any]], rows: int, line: Any) -> None:
    """Fit in this process, and send what it took, with the shapes of the products."""
    in_memory(1_000)()  # imports, and whatever else the first fit needs
    shapes: list[tuple[int, int]] = []
    measure = learner.measure

    def noted(question: Question, *rest: Any) -> Any:
        both = question.odds.shape[1] + question.directions.shape[1]
        shapes.append((len(question.odds), both))
        return measure(question, *rest)

    learner.measure = noted  # type: ignore[assignment]
    work = make(rows)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock, cpu = clocked(work)
    beyond = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    cell = {
        "what": make.__name__,
        "rows": rows,
        "cpu_seconds": round(cpu, 1),
        "seconds": round(clock, 1),
        "megabytes_beyond": round(beyond / 1024),
        "steps": len(shapes),
        "directions": [both for _, both in shapes],
    }
    if make is in_memory:
        bare = clocked(products(rows, shapes))[1]
        cell |= {"product_cpu_seconds": round(bare, 1), "times_the_products": round(cpu / bare, 2)}
    line.send(cell)


def fitted(make: Callable[[int], Callable[[], Any]], rows: int) -> dict[str, Any]:
    """Return what a fit takes, in a new process."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_fitted, args=(make, rows, there))
    process.start()
    cell: dict[str, Any] = here.recv()
    process.join()
    print(cell, flush=True)
    return cell


# Workers


def question() -> Question:
    """Return what a usual step asks of made-up rows."""
    coins = np.random.default_rng(0)
    columns = PrivateKernelClassifier(1.0, 1e-8, columns=declared()).fit(*table(1_000)).columns_
    shown = table(2_000, 1)[0]
    features = KernelFeatures.of(shown, columns, SeededSource(0), curves=6, waves=100)
    mean = coins.normal(0, 0.1, (len(features), 1))
    return Question.of(features, mean, coins.normal(0, 0.1, (len(features), DIRECTIONS)))


@dataclass(frozen=True)
class Timed:
    """A sum over rows, and beside it the microseconds of CPU that it took."""

    total: Callable[..., Any]

    def __call__(self, *block: Any) -> Any:
        begin = time.thread_time()
        with threadpool_limits(1):
            found = np.ravel(self.total(*block))
        return np.append(found, round((time.thread_time() - begin) * 1e6))


@dataclass(frozen=True)
class Killed:
    """A sum whose worker dies once, and which notes each block that it adds up."""

    total: Callable[..., Any]
    folder: str

    def __call__(self, codes: Any, labels: Any) -> Any:
        found = self.total(codes, labels)
        note = Path(self.folder) / "done"
        with note.open("a") as file:
            file.write(f"{os.getpid()}\n")
        with contextlib.suppress(FileExistsError):
            if len(note.read_text().splitlines()) > 20:
                (Path(self.folder) / "killed").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        return found


@contextlib.contextmanager
def engine_of(name: str, workers: int) -> Iterator[RowEngine]:
    """Start an engine with so many workers of one thread each."""
    if name == "processes":
        yield Processes(workers)
        return
    engines: Any = importlib.import_module("cumae.engines")
    distributed: Any = importlib.import_module("dask.distributed")  # which is not everywhere
    how: Any = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    with distributed.LocalCluster(workers, **how) as cluster, distributed.Client(cluster) as client:
        yield engines.Dask(client)


def on_workers(name: str, rows: int, asked: Question, codes: Any, labels: Any) -> dict[str, Any]:
    """Return what one sum takes on one worker and on two, and whether it is the same."""
    cell: dict[str, Any] = {"engine": name, "rows": rows}
    found = []
    for workers in (1, 2):
        with engine_of(name, workers) as engine:
            pieces = cut(codes, labels, engine=engine, rows=GROUP).kept()
            few = cut(codes[: 4 * GROUP], labels[: 4 * GROUP], engine=engine, rows=GROUP)
            few.sum(Timed(asked.total))  # starts workers, and compiles
            begin, own = time.perf_counter(), used()
            total = pieces.sum(Timed(asked.total))
            seconds, own = time.perf_counter() - begin, used() - own
        found.append(total[:-1])
        cell[f"seconds_{workers}"] = round(seconds, 2)
        cell[f"cpu_seconds_{workers}"] = round(float(total[-1]) / 1e6, 2)
        cell[f"driver_cpu_seconds_{workers}"] = round(own, 2)
    cell["times_as_fast"] = round(cell["seconds_1"] / cell["seconds_2"], 2)
    cell["same_to_the_bit"] = bool(np.array_equal(*found))
    print(cell, flush=True)
    return cell


def killed(name: str, asked: Question, codes: Any, labels: Any) -> dict[str, Any]:
    """Return how many pieces are computed again if one of two workers is killed."""
    with tempfile.TemporaryDirectory() as folder, engine_of(name, 2) as engine:
        pieces = cut(codes, labels, engine=engine, rows=CHUNK)
        same = np.array_equal(pieces.sum(Killed(asked.total, folder)), asked.total(codes, labels))
        who = (Path(folder) / "done").read_text().splitlines()
    first = who[:21]
    cell = {
        "engine": name,
        "pieces": len(pieces.sizes),
        "computed": len(who),
        "again": len(who) - len(pieces.sizes),
        "by_the_killed_worker": first.count(first[-1]),
        "same_to_the_bit": bool(same),
    }
    print(cell, flush=True)
    return cell


# A billion rows


class MadeUpPieces(RowEngine):
    """Pieces of which a few are computed, and stand for all; workers are counted, not started."""

    name = "made-up pieces"
    is_here = True

    def __init__(self, seconds: list[float]) -> None:
        self.seconds = seconds

    def hold(self, pieces: Sequence[Any]) -> Any:
        return pieces

    def run(self, work: Any, table: Any) -> Iterator[tuple[int, Any]]:
        known: dict[int, Any] = {}
        for number, piece in enumerate(table):
            kind = number % SAMPLED
            if kind not in known:
                begin = time.thread_time()
                known[kind] = work(piece)
                self.seconds.append(time.thread_time() - begin)
            # A reply comes through a pipe.
            yield number, pickle.loads(pickle.dumps(known[kind]))  # noqa: S301 - it is our own

    def keep(self, work: Any, table: Any) -> Any:
        raise NotImplementedError("these pieces are codes already")


def finished(seconds: Sequence[float], pieces: int, workers: int) -> float:
    """Return when the last of all pieces is done, if each free worker takes the next one."""
    busy = [0.0] * min(workers, pieces)
    for number in range(pieces):
        heapq.heapreplace(busy, busy[0] + seconds[number % len(seconds)])
    return max(busy)


def simulate(total: int, piece: int) -> None:
    """Compute how long a step takes for so many rows, by the number of workers."""
    known = json.loads((RESULTS / "scale_out.json").read_text())
    asked, coins = question(), np.random.default_rng(0)
    made = []
    for _ in range(SAMPLED):
        codes = asked.features.codes(coins.normal(size=(piece, COLUMNS)))
        made.append((codes, coins.integers(0, 2, piece)))
    count = math.ceil(total / piece)
    seconds: list[float] = []
    parts = [made[number % SAMPLED] for number in range(count)]
    held = Pieces(MadeUpPieces(seconds), parts, (piece,) * count)
    asked.total(*made[0])  # compiles
    begin = time.process_time()
    with threadpool_limits(1):
        released = noisy_sum(asked.total, held, 1e9, SeededSource(0))
    driver = time.process_time() - begin - sum(seconds)
    sent = len(pickle.dumps(asked))
    memory, files = known["memory"]["fits"][-1], known["files"]["fits"][-1]
    steps = files["steps"]
    cells = []
    for workers in WORKERS:
        ends = finished(seconds, count, workers)
        moved = count * (sent + released.nbytes)
        cells.append(
            {
                "workers": workers,
                "seconds_of_a_step": round(max(ends, driver, moved / NETWORK) + driver / count, 1),
                "minutes_of_all_steps": round(steps * max(ends, driver, moved / NETWORK) / 60, 1),
            }
        )
    result = {
        "command": f"python benchmarks/scale_out.py simulate --total {total} --piece {piece}",
        "rows": total,
        "pieces": count,
        "steps": steps,
        "cpu_seconds_of_a_piece": round(float(np.mean(seconds)), 3),
        "driver_seconds_of_a_step": round(driver, 2),
        "megabytes_to_workers_in_a_step": round(count * sent / 1e6, 1),
        "megabytes_from_workers_in_a_step": round(count * released.nbytes / 1e6, 1),
        "kilobytes_of_a_question": round(sent / 1e3, 1),
        "gigabytes_kept_by_workers": round(total * (COLUMNS + 8) / 1e9, 1),
        "gigabytes_read_once": round(total * (COLUMNS + 1) * 8 / 1e9, 1),
        "cpu_microseconds_of_a_row": {
            "in_memory": round(memory["cpu_seconds"] / memory["rows"] * 1e6, 1),
            "from_files": round(files["cpu_seconds"] / files["rows"] * 1e6, 1),
        },
        "network_bytes_in_a_second": NETWORK,
        "workers": cells,
    }
    (RESULTS / "scale_out_billion.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="measure", choices=["measure", "simulate"])
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--memory", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--files", type=int, nargs="*", default=[100_000, 2_000_000])
    parser.add_argument("--on-workers", type=int, default=1_000_000)
    parser.add_argument("--engines", nargs="*", default=["processes", "dask"])
    parser.add_argument("--total", type=int, default=1_000_000_000)
    parser.add_argument("--piece", type=int, default=100_000)
    given = parser.parse_args()
    if given.what == "simulate":
        simulate(given.total, given.piece)
        return
    path = RESULTS / "scale_out.json"
    result: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    result |= {
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "columns": COLUMNS,
    }
    loads = result.setdefault("load", {})
    for part in given.parts:
        loads[part] = round(os.getloadavg()[0], 1)
        result |= PARTS[part](given)
        path.write_text(json.dumps(result, indent=1) + "\n")


def measured_fits(
    make: Callable[[int], Callable[[], Any]], name: str, sizes: Sequence[int]
) -> dict[str, Any]:
    """Return what fits take, and how that grows with rows."""
    fits = [fitted(make, rows) for rows in sizes]
    first, last = fits[0], fits[-1]
    ratio = math.log(last["cpu_seconds"] / first["cpu_seconds"])
    return {
        name: {
            "command": f"python benchmarks/scale_out.py --parts {name} --{name} "
            + " ".join(map(str, sizes)),
            "fits": fits,
            "growth_exponent": round(ratio / math.log(last["rows"] / first["rows"]), 2),
        }
    }


def measured_workers(given: argparse.Namespace) -> dict[str, Any]:
    """Return what one sum takes on workers, and what a killed one costs."""
    asked = question()
    X, labels = table(given.on_workers)
    codes = asked.features.codes(X)
    del X
    few = 60 * CHUNK
    named = given.engines
    command = f"python benchmarks/scale_out.py --parts workers --on-workers {given.on_workers}"
    return {
        "workers_command": f"{command} --engines {' '.join(named)}",
        "workers": [on_workers(one, given.on_workers, asked, codes, labels) for one in named],
        "killed": [killed(one, asked, codes[:few], labels[:few]) for one in named],
    }


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "memory": lambda given: measured_fits(in_memory, "memory", given.memory),
    "files": lambda given: measured_fits(from_files, "files", given.files),
    "workers": measured_workers,
}


if __name__ == "__main__":
    main()
