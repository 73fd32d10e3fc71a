"""How long does the kernel classifier take, and how much memory, from 25,000 to 10,000,000 rows?

    python benchmarks/kernel_speed.py [--largest 10000000] [--repeats 3]

writes benchmarks/results/kernel_speed.json. Each fit runs in a process of its own, whose largest
resident memory is compared with that before the fit. Times are the smallest of some repeats. In the
same run stand scikit-learn's gradient boosting without privacy, and the bare product of as many
float32 numbers as all steps multiply. Ten million rows come from a Parquet file in a temporary
folder: none of them stays in memory as floats.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import platform
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.ensemble import HistGradientBoostingClassifier

from cumae import ParquetRows, PrivateBooster, PrivateKernelClassifier, PrivateLogisticRegression

RESULTS = Path(__file__).parent / "results"
COLUMNS = 20
GROUP = 500_000  # rows of a row group


def table(rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Return made-up rows with a pair, a line and a curve, and their labels."""
    coins = np.random.default_rng(seed)
    X = coins.normal(size=(rows, COLUMNS))
    score = X[:, 0] * X[:, 1] + X[:, 2] + np.abs(X[:, 3])
    return X, (score + coins.normal(size=rows) > 0.8).astype(np.int64)


def declared() -> list[tuple[float, float]]:
    return [(-6.0, 6.0)] * COLUMNS


def kernel(rows: int, public: bool) -> Callable[[], Any]:
    X, y = table(rows)
    given = (table(2_000, 1)[0],) if public else ()
    return lambda: PrivateKernelClassifier(1.0, 1e-6, columns=declared()).fit(X, y, *given)


def regression(rows: int, public: bool) -> Callable[[], Any]:
    X, y = table(rows)
    given = (table(2_000, 1)[0],) if public else ()
    model = PrivateLogisticRegression(1.0, 1e-6, curves=6, columns=declared())
    return lambda: model.fit(X, y, *given)


def booster(rows: int, public: bool) -> Callable[[], Any]:
    X, y = table(rows)
    given = (table(2_000, 1)[0],) if public else ()
    return lambda: PrivateBooster(1.0, 1e-6, columns=declared()).fit(X, y, *given)


def trees(rows: int, public: bool) -> Callable[[], Any]:
    del public
    X, y = table(rows)
    return lambda: HistGradientBoostingClassifier().fit(X, y)


def product(rows: int, public: bool) -> Callable[[], Any]:
    """The product of features and directions, as often as there are steps, by two threads."""
    del public
    features = np.ones((8_192, 540), dtype=np.float32)
    directions = np.ones((540, 123), dtype=np.float32)
    steps = 8 if rows * 0.237 > 12_000 else 4

    def multiply() -> None:
        for _ in range(steps * math.ceil(rows / 8_192)):
            features @ directions

    return multiply


def parquet(rows: int, public: bool) -> Callable[[], Any]:
    """The same from a file; it is written here, before the clock starts."""
    given = (table(2_000, 1)[0],) if public else ()
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "rows.parquet"
    names = [f"x{place}" for place in range(COLUMNS)]
    schema = pa.schema([*((name, pa.float64()) for name in names), ("label", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, GROUP):
            X, y = table(min(GROUP, rows - start), start)
            writer.write_table(
                pa.Table.from_arrays([*map(pa.array, X.T), pa.array(y)], schema=schema)
            )

    def fit() -> None:
        with folder:
            model = PrivateKernelClassifier(1.0, 1e-6, columns=dict.fromkeys(names, (-6.0, 6.0)))
            public = [pd.DataFrame(rows, columns=names) for rows in given]
            model.fit(ParquetRows(path), "label", *public)

    return fit


def wide(rows: int, public: bool) -> Callable[[], Any]:
    """300 columns of numbers."""
    coins = np.random.default_rng(0)
    X = coins.normal(size=(rows, 300))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    given = (coins.normal(size=(2_000, 300)),) if public else ()
    model = PrivateKernelClassifier(1.0, 1e-6, columns=[(-6.0, 6.0)] * 300)
    return lambda: model.fit(X, y, *given)


def categories(rows: int, public: bool) -> Callable[[], Any]:
    """A column with 2,000 categories, and three of numbers."""
    coins = np.random.default_rng(0)
    names = np.array([f"c{place}" for place in range(2_000)], dtype=object)
    X = np.column_stack([names[coins.integers(0, 2_000, rows)], coins.normal(size=(rows, 3))])
    y = (X[:, 1].astype(float) > 0).astype(int)
    given = (X[:2_000],) if public else ()
    columns = [list(names), *[(-6.0, 6.0)] * 3]
    model = PrivateKernelClassifier(1.0, 1e-6, columns=columns)
    return lambda: model.fit(X, y, *given)


def _timed(make: Callable[..., Any], rows: int, public: bool, line: Any) -> None:
    if make is not product:
        kernel(1_000, public=True)()  # imports, and whatever else the first fit needs
    work = make(rows, public)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    line.send((seconds, (after - before) / 1024, after / 1024))


def run(make: Callable[..., Any], rows: int, repeats: int, public: bool = True) -> dict[str, Any]:
    """Return the shortest time of some fits, and the most memory, each in a new process."""
    found = []
    for _ in range(repeats):
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=_timed, args=(make, rows, public, there)
        )
        process.start()
        found.append(here.recv())
        process.join()
    times, beyond, whole = zip(*found, strict=True)
    cell = {
        "what": make.__name__,
        "rows": rows,
        "public": public,
        "seconds": round(min(times), 2),
        "megabytes_beyond": round(max(beyond)),
        "megabytes": round(max(whole)),
    }
    print(cell, flush=True)
    return cell


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    cells = []
    for rows in (25_000, 200_000, 1_000_000):
        repeats = asked.repeats if rows < 1_000_000 else 1
        if rows > asked.largest:
            continue
        makers = (kernel, regression, booster, trees, product)
        cells += [run(make, rows, repeats) for make in makers]
        cells.append(run(kernel, rows, repeats, public=False))
        cells.append(run(parquet, rows, 1))
    cells += [run(m, 10_000, 1, public) for m in (wide, categories) for public in (True, False)]
    if asked.largest >= 10_000_000:
        cells.append(run(parquet, 10_000_000, 1))
    times = {c["rows"]: c["seconds"] for c in cells if c["what"] == "kernel" and c["public"]}
    sizes = sorted(times)
    growth = None
    if len(sizes) > 2:
        growth = math.log(times[sizes[-1]] / times[sizes[1]]) / math.log(sizes[-1] / sizes[1])
    result = {
        "command": f"python benchmarks/kernel_speed.py --largest {asked.largest}",
        "machine": platform.processor() or platform.machine(),
        "growth_exponent": growth,
        "cells": cells,
    }
    (RESULTS / "kernel_speed.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
