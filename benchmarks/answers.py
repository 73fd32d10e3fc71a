"""How much CPU does an answer of an everlasting oracle take, alone, in a batch, and the first one?

    python benchmarks/answers.py [--before CHECKOUT] [--rounds 3] [--part single ...]

writes benchmarks/results/answers.json. The oracle is that of docs/everlasting.md on 100,000 rows of
the bundled survey: small trees, with the default prior and by votes alone, in memory and in a file.
Votes alone have all rows for their shards, and with a prior there are fewer models; so the same
models without their prior stand beside them. ``--before`` names a checkout of an earlier commit,
whose code is measured in the same run: both take turns, round by round, in processes of their own.
Figures are CPU times, and medians over rounds; a ratio compares figures of one round. On shared
cores judge by the ratios.

What is wanted: an answer with the prior takes at most 1.3 times the CPU of one by votes alone, and
that at most 1 ms; 10,000 rows in one call take no longer than before; after opening, the first
answer imports no module, and takes at most 10 ms; 16 threads get five times as many answers from
the oracle with a prior as before; and in an open loop of 100 answers a second, the longest wait
over a change of phases (``late`` and ``background``) is a quarter of what it was.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
RESULTS = HERE.parent / "results"
ROWS = 100_000
WARM_UP, CHUNK, CHUNKS = 50, 200, 5  # answers
BATCH = 10_000
KINDS = ("votes", "prior")
NOT_ASKED = ("prior", "prior not asked")
WANTED = {
    "prior to votes": 1.3,
    "votes, ms": 1.0,
    "batch to before": 1.0,
    "first, ms": 10.0,
    "threads: answers to before": 5.0,
    "phases: longest wait to before": 0.25,
}

THREADS, SECONDS = 16, 4.0
PHASE_ROWS, RATE, LOOP = 50_000, 100, 300  # rows, and answers a second in an open loop
TRAINED = 3.0  # seconds

Figures = dict[str, Any]


# What is measured, in a process that has one of both checkouts on its path


def survey() -> tuple[Any, Any, dict[str, Any]]:
    """Return rows and labels of the survey as arrays, and what is declared about its columns."""
    from cumae.datasets import load_health_survey  # noqa: PLC0415 - of the checkout on the path

    found = load_health_survey(as_frame=False)
    declared = [(low, high, 1) for low, high in load_health_survey().bounds.values()]
    return found.data.astype(float), found.target, {"columns": declared}


def fitted(kind: str) -> Any:
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

    from cumae import EverlastingPredictor  # noqa: PLC0415

    rows, labels, declared = survey()
    prior = None if kind == "prior" else False
    made = EverlastingPredictor(DecisionTreeClassifier(max_depth=4), 3.0, prior=prior, **declared)
    return made.fit(rows[:ROWS], labels[:ROWS])


def cpu(work: Callable[[], Any]) -> float:
    """Return the milliseconds of CPU that something takes."""
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start)


def singles(oracles: dict[str, Any]) -> Figures:
    """Return the milliseconds of an answer of each oracle; they take turns."""
    rows, _, _ = survey()
    rows = rows[ROWS:]
    found: dict[str, list[float]] = {name: [] for name in oracles}

    def ask(oracle: Any, count: int) -> None:
        for place in range(count):
            oracle.predict(rows[place : place + 1])

    for oracle in oracles.values():
        ask(oracle, WARM_UP)
    for _ in range(CHUNKS):
        for name, oracle in oracles.items():
            found[name].append(cpu(lambda oracle=oracle: ask(oracle, CHUNK)) / CHUNK)  # type: ignore[misc]
    return {name: statistics.median(times) for name, times in found.items()}


def single(folder: Path) -> Figures:
    """Single answers in memory, and then in files."""
    import cumae  # noqa: PLC0415

    oracles = {kind: fitted(kind) for kind in KINDS}
    without = fitted("prior")
    without._counter_.state.prior = None  # the same models, whose votes decide alone
    gc.collect()
    memory = singles({**oracles, "prior not asked": without})
    for kind, oracle in oracles.items():
        oracle.save_to(folder / f"{kind}.db")
        oracle.close()
    opened = {kind: cumae.open(folder / f"{kind}.db") for kind in KINDS}
    durable = singles(opened)
    for oracle in opened.values():
        oracle.close()
    return {"memory": memory, "durable": durable}


def batch(folder: Path) -> Figures:
    """Rows in one call, which may cross the end of a phase; and the prior's part of it."""
    del folder
    import numpy as np  # noqa: PLC0415

    rows, _, _ = survey()
    found: Figures = {}
    for kind in KINDS:
        oracle = fitted(kind)
        oracle.predict(rows[ROWS : ROWS + WARM_UP])
        found[kind] = cpu(lambda oracle=oracle: oracle.predict(rows[ROWS : ROWS + BATCH]))  # type: ignore[misc]
    prior, numbers = oracle._state_.prior, np.arange(BATCH)
    found["prior alone"] = cpu(lambda: prior.shares(rows[ROWS : ROWS + BATCH], numbers))
    return found


def first(folder: Path) -> Figures:
    """Opening and the first answers, each in a fresh process."""
    found = {}
    for kind in KINDS:
        oracle = fitted(kind)
        oracle.save_to(folder / f"{kind}.db")
        oracle.close()
        found[kind] = run("--fresh", str(folder / f"{kind}.db"))
    return found


def fresh(path: str) -> Figures:
    """Open an oracle and ask it, in this process, which has done nothing else."""
    start = time.process_time()
    import cumae  # noqa: PLC0415

    oracle = cumae.open(path)
    opened = time.process_time()
    row, before = [[1.0] * 21], set(sys.modules)
    answers = [cpu(lambda: oracle.predict(row)) for _ in range(3)]
    loaded = len(set(sys.modules) - before)
    oracle.close()
    return {"open": 1e3 * (opened - start), "first": answers[0], "third": answers[2]} | {
        "modules loaded by answers": loaded
    }


def threads(folder: Path) -> Figures:
    """Answers a second that 16 threads get together, one by one, from oracles in files."""
    import cumae  # noqa: PLC0415

    rows, _, _ = survey()
    found: Figures = {}
    for kind in KINDS:
        fitted(kind).save_to(folder / f"{kind}.db")
        oracle = cumae.open(folder / f"{kind}.db")
        oracle.predict(rows[:WARM_UP])
        done, until = [0] * THREADS, time.monotonic() + SECONDS

        def ask(
            own: int, oracle: Any = oracle, done: list[int] = done, until: float = until
        ) -> None:
            while time.monotonic() < until:
                oracle.predict(rows[own : own + 1])
                done[own] += 1

        running = [threading.Thread(target=ask, args=(own,)) for own in range(THREADS)]
        start = time.process_time()
        for one in running:
            one.start()
        for one in running:
            one.join()
        spent = 1e3 * (time.process_time() - start)
        found[kind] = {"a second": sum(done) / SECONDS, "ms": spent / max(1, sum(done))}
        oracle.close()
    return found


def phases(folder: Path) -> Figures:
    """The longest answers around the mark and around the switch of a phase, in an open loop."""
    import numpy as np  # noqa: PLC0415

    import cumae  # noqa: PLC0415

    rng = np.random.default_rng(0)
    rows = rng.random((PHASE_ROWS, 20))
    made = cumae.EverlastingPredictor(
        None, epsilon=3.0, prior=False, late=0.1, background=True, growth=1.0
    )
    made.fit(rows, (rows[:, 0] > 0.3).astype(int)).save_to(folder / "phases.db")
    oracle = cumae.open(folder / "phases.db")
    found: Figures = {}
    for name, left in (("mark", int(0.1 * PHASE_ROWS)), ("switch", 0)):
        ahead = int(oracle._state_.left) - left - LOOP // 2
        oracle.predict(rows[:ahead])
        time.sleep(TRAINED)  # so that the training of the next phase is no part of the switch
        waits, works = [], []
        due = time.perf_counter()
        for place in range(LOOP):
            time.sleep(max(0.0, due - time.perf_counter()))
            start = time.thread_time()
            oracle.predict(rows[place : place + 1])
            works.append(1e3 * (time.thread_time() - start))
            waits.append(1e3 * (time.perf_counter() - due))  # also what waits behind a stall
            due += 1 / RATE
        found[name] = {"longest wait": max(waits), "CPU of the asking thread": max(works)}
    oracle.close()
    return found


PARTS: dict[str, Callable[[Path], Figures]] = {
    "single": single,
    "batch": batch,
    "first": first,
    "threads": threads,
    "phases": phases,
}


# Both checkouts in turns


def run(*options: str, source: Path | None = None) -> Figures:
    """Measure in a process of its own, with the code of a checkout."""
    path = os.environ.get("PYTHONPATH", "") if source is None else str(source / "src")
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, str(HERE), *options]
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    found: Figures = json.loads(ran.stdout)
    return found


def measure(part: str) -> Figures:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        return PARTS[part](Path(folder))


def medians(rounds: list[Figures]) -> Figures:
    """Return the same figures with their medians over rounds."""
    found: Figures = {}
    for name, value in rounds[0].items():
        values = [one[name] for one in rounds]
        found[name] = medians(values) if isinstance(value, dict) else statistics.median(values)
    return found


def ratio(numbers: list[float], others: list[float]) -> float:
    """Return the median over rounds of what the first are of the second."""
    return statistics.median(one / other for one, other in zip(numbers, others, strict=True))


def judged(now: dict[str, list[Figures]], before: dict[str, list[Figures]]) -> Figures:
    """Return the figures that something is wanted of."""
    found: Figures = {}
    if "single" in now:
        for where in ("memory", "durable"):
            of = {kind: [one[where][kind] for one in now["single"]] for kind in KINDS}
            found[f"{where}: prior to votes"] = ratio(of["prior"], of["votes"])
            found[f"{where}: votes, ms"] = statistics.median(of["votes"])
        asked, alone = ([one["memory"][kind] for one in now["single"]] for kind in NOT_ASKED)
        found["memory: prior to the same models without it"] = ratio(asked, alone)
    if "first" in now:
        for kind in KINDS:
            found[f"{kind}: first, ms"] = statistics.median(o[kind]["first"] for o in now["first"])
    for part, name in (("single", "memory"), ("single", "durable")):
        if part in before:
            for kind in KINDS:
                here, there = ([one[name][kind] for one in of[part]] for of in (now, before))
                found[f"{name}: {kind} to before"] = ratio(here, there)
    if "batch" in before:
        for kind in (*KINDS, "prior alone"):
            here, there = ([one[kind] for one in of["batch"]] for of in (now, before))
            found[f"batch: {kind} to before"] = ratio(here, there)
    return found | judged_waits(now, before)


def judged_waits(now: dict[str, list[Figures]], before: dict[str, list[Figures]]) -> Figures:
    """Return figures of threads and of phases that something is wanted of."""
    found: Figures = {}
    if "threads" in before:
        for kind in KINDS:
            here, there = ([one[kind]["a second"] for one in of["threads"]] for of in (now, before))
            found[f"threads: {kind}, answers to before"] = ratio(here, there)
    if "phases" in before:
        for name in ("longest wait", "CPU of the asking thread"):
            here, there = (
                [max(one[where][name] for where in ("mark", "switch")) for one in of["phases"]]
                for of in (now, before)
            )
            found[f"phases: {name} to before"] = ratio(here, there)
    return found


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--before", type=Path, help="a checkout of an earlier commit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", choices=list(PARTS), action="append")
    parser.add_argument("--measure", choices=list(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--fresh", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure or options.fresh:
        found = measure(options.measure) if options.measure else fresh(options.fresh)
        print(json.dumps(found))
        return
    trees = {"now": HERE.parent.parent}
    if options.before is not None:
        trees = {"before": options.before.resolve(), **trees}
    rounds: dict[str, dict[str, list[Figures]]] = {"now": {}, "before": {}}
    for part in options.part or PARTS:
        for number in range(options.rounds):
            for name, tree in trees.items():
                found = run("--measure", part, source=tree)
                rounds[name].setdefault(part, []).append(found)
                print(f"{part}, round {number + 1}, {name}: {json.dumps(found)}", flush=True)
    file = RESULTS / "answers.json"
    told = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    told |= {
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "rounds": options.rounds,
        "wanted": WANTED,
        "unit": "milliseconds of CPU",
    }
    for part in rounds["now"]:
        parts = told.setdefault("parts", {})
        parts[part] = {name: medians(rounds[name][part]) for name in trees}
    told["judged"] = told.get("judged", {}) | judged(rounds["now"], rounds["before"])
    file.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(told["judged"], indent=1))


if __name__ == "__main__":
    main()
