"""What do lengths cost that tell nothing? Bytes an answer, bytes a shard, and seconds to open.

    python benchmarks/prices.py [--before SOURCES] [--answers 5000]

``--before`` names the folder ``src`` of another version, which is measured in the same run by a
process of its own. The result is benchmarks/results/prices.json.

A file that tells nothing by its length gives each model a slot of one size, each text the same
number of bytes, and each answer, kept or not, the same record (docs/store.md).
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import cumae
from cumae.concepts import Rectangles, Thresholds

RESULTS = Path(__file__).parent / "results" / "prices.json"
ROWS = 20_000
BATCH = 100
WORDS = np.array(["u", "v", "w"], dtype=object)

Table = Any


def numbers(width: int) -> Table:
    return np.random.default_rng(0).random((ROWS, width))


def with_text() -> Table:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((ROWS, 20)), columns=[f"x{i}" for i in range(20)])
    for name in ("place", "job"):
        frame[name] = pd.Series(WORDS[rng.integers(0, 3, ROWS)], dtype=object)
    return frame


def text_pipeline() -> Any:
    encoder = OneHotEncoder(categories=[WORDS.tolist()] * 2, handle_unknown="ignore")
    columns = make_column_transformer((encoder, ["place", "job"]), remainder="passthrough")
    return make_pipeline(columns, DecisionTreeClassifier(max_depth=4))


def fitted(model: Any, table: Table, **more: Any) -> Any:
    first = table.iloc[:, 0].to_numpy() if isinstance(table, pd.DataFrame) else table[:, 0]
    known = inspect.signature(cumae.EverlastingPredictor).parameters
    given = {name: more[name] for name in more if name in known}
    made = cumae.EverlastingPredictor(model, epsilon=3.0, prior=False, growth=1.6, **given)
    return made.fit(table, (first > 0.3).astype(int))


def answers(folder: Path, count: int) -> dict[str, dict[str, float]]:
    """Return bytes that the file grows by for each answer, one by one and in batches."""
    cases: dict[str, Callable[[], tuple[Any, Table]]] = {
        "1 number": lambda: (fitted(Thresholds(), numbers(1)), numbers(1)),
        "20 numbers": lambda: (fitted(None, numbers(20)), numbers(20)),
        "20 numbers, 2 texts": lambda: (
            fitted(text_pipeline(), with_text(), shard_size=400),
            with_text(),
        ),
        "20 numbers, 2 texts of 48 bytes": lambda: (
            fitted(text_pipeline(), with_text(), shard_size=400, text_bytes=48),
            with_text(),
        ),
        "20 numbers, memo": lambda: (fitted(None, numbers(20), memoize=True), numbers(20)),
    }
    found: dict[str, dict[str, float]] = {}
    for name, make in cases.items():
        predictor, table = make()
        found[name] = {}
        for size, label in ((1, "single"), (BATCH, f"batches of {BATCH}")):
            if size == BATCH:
                predictor, table = make()
            path = folder / f"{name}{size}.db"
            predictor.save_to(path)
            oracle = cumae.open(path)
            before = path.stat().st_size
            asked = count if not isinstance(table, pd.DataFrame) else max(size, count // 25)
            for at in range(0, asked, size):
                place = slice(at % ROWS, at % ROWS + size)
                oracle.predict(table.iloc[place] if hasattr(table, "iloc") else table[place])
            oracle.close()
            found[name][label] = (path.stat().st_size - before) / asked
    return found


def shards(folder: Path) -> dict[str, dict[str, float]]:
    """Return bytes of a stored shard, and CPU seconds to open the oracle."""
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    cases = {
        "Thresholds, 1 column": (Thresholds(), numbers(1), {}),
        "Rectangles, 2 columns": (Rectangles(), numbers(2), {}),
        "trees of depth 4, 1 column": (None, numbers(1), {}),
        "trees of depth 4, 20 columns": (None, numbers(20), {}),
        "trees without a limit, 20 columns, 50 rows": (
            DecisionTreeClassifier(),
            numbers(20),
            {"shard_size": 50},
        ),
        "scaled logistic regression, 20 columns": (scaled, numbers(20), {"shard_size": 50}),
        "neighbours, 20 columns": (KNeighborsClassifier(), numbers(20), {"shard_size": 50}),
    }
    found = {}
    for name, (model, table, more) in cases.items():
        predictor = fitted(model, table, **more)
        n_shards, path = predictor.n_shards_, folder / f"{name}.db"
        predictor.save_to(path)
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        ((length,),) = connection.execute("SELECT sum(length(sealed)) FROM blobs").fetchall()
        connection.close()
        began = time.process_time()
        cumae.open(path, estimator=model).close()
        seconds = time.process_time() - began
        found[name] = {
            "shards": n_shards,
            "rows_of_a_shard": ROWS / n_shards,
            "bytes_of_a_shard": length / n_shards,
            "cpu_seconds_to_open": seconds,
        }
    return found


def measured(count: int) -> dict[str, Any]:
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        shards(Path(tempfile.mkdtemp(dir=folder)))  # loads compiled code
        return {"answers": answers(Path(folder), count), "shards": shards(Path(folder))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, help="the folder src of another version")
    parser.add_argument("--answers", type=int, default=5_000)
    parser.add_argument("--print", action="store_true", help="print the result, and write nothing")
    given = parser.parse_args()
    found: dict[str, Any] = {"after": measured(given.answers)}
    if given.print:
        print(json.dumps(found["after"]))
        return
    if given.before is not None:
        command = [sys.executable, __file__, "--print", "--answers", str(given.answers)]
        own = {**os.environ, "PYTHONPATH": str(given.before.resolve())}
        done = subprocess.run(command, env=own, check=True, capture_output=True, text=True)
        found = {"before": json.loads(done.stdout.splitlines()[-1]), **found}
    found["machine"] = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
