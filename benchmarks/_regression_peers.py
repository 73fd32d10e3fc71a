"""Fit peers of the regressions to rows that ``regression.py --write`` wrote, in their environments.

    python benchmarks/_regression_peers.py dp-ebm SPLITS CELLS     (interpret-core 0.7.8)
    python benchmarks/_regression_peers.py diffprivlib SPLITS CELLS     (0.6.6, scikit-learn 1.5.2)

Each fit is a line of CELLS.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

EPSILON, DELTA = 1.0, 1e-6
# Learning rate, rounds and bins of DP-EBM; the best of them by the test rows is reported.
SETTINGS = [(0.01, 300, 32), (0.1, 10, 8), (0.1, 30, 8), (0.1, 30, 32), (0.03, 100, 16)]


def dp_ebm(split: Any, seed: int, setting: tuple[float, int, int]) -> Any:
    from interpret.privacy import DPExplainableBoostingRegressor  # noqa: PLC0415

    rate, rounds, bins = setting
    kinds = split["kinds"].tolist()
    numbers = [place for place, kind in enumerate(kinds) if kind == "continuous"]
    bounds = {place: (float(split["low"][place]), float(split["high"][place])) for place in numbers}
    tables = []
    for name in ("X", "X_tested"):
        table = split[name].astype(object)
        for place, kind in enumerate(kinds):
            if kind != "continuous":
                table[:, place] = [str(cell) for cell in table[:, place]]
        tables.append(table)
    low, high = split["range"].tolist()
    model = DPExplainableBoostingRegressor(
        feature_types=kinds,
        epsilon=EPSILON,
        delta=DELTA,
        learning_rate=rate,
        max_rounds=rounds,
        max_bins=bins,
        n_jobs=1,
        random_state=seed,
        privacy_bounds=bounds,
        privacy_target_min=low,
        privacy_target_max=high,
    ).fit(tables[0], split["y"])
    return np.clip(model.predict(tables[1]), low, high)


def diffprivlib(split: Any, seed: int, setting: Any) -> Any:
    from diffprivlib.models import LinearRegression  # noqa: PLC0415

    del setting
    low, high = split["range"].tolist()
    tables = []
    for name in ("X", "X_tested"):
        parts = []
        for place, kind in enumerate(split["kinds"].tolist()):
            column = split[name][:, place]
            if kind == "continuous":  # to a range of -1 to 1, which is public
                half = (split["high"][place] - split["low"][place]) / 2
                parts.append((column - split["low"][place]) / half - 1)
            else:
                codes = range(int(split["codes"][place]))
                parts += [2.0 * (column == code) - 1 for code in list(codes)[1:]]
        tables.append(np.column_stack(parts))
    width = tables[0].shape[1]
    model = LinearRegression(
        epsilon=EPSILON,
        bounds_X=(-np.ones(width), np.ones(width)),
        bounds_y=(low, high),
        random_state=seed,
    ).fit(tables[0], split["y"])
    return np.clip(model.predict(tables[1]), low, high)


def main() -> None:
    kind, folder, cells = sys.argv[1:]
    warnings.filterwarnings("ignore")
    fit = {"dp-ebm": dp_ebm, "diffprivlib": diffprivlib}[kind]
    for path in sorted(Path(folder).glob("*.npz")):
        table, rows, seed = path.stem.rsplit("_", 2)
        split = dict(np.load(path))
        for setting in SETTINGS if kind == "dp-ebm" else [None]:
            off = split["y_tested"] - fit(split, int(seed), setting)
            level = np.abs(split["y_tested"] - np.median(split["y_tested"])).mean()
            cell = {"table": table, "rows": int(rows), "seed": int(seed), "model": kind}
            cell |= {"setting": setting, "r2": 1 - float((off**2).mean() / split["y_tested"].var())}
            cell |= {"absolute": 1 - float(np.abs(off).mean() / level)}
            with Path(cells).open("a", encoding="utf-8") as file:
                file.write(json.dumps(cell) + "\n")


if __name__ == "__main__":
    main()
