"""Are columns of few values learnt as well if nobody declared their step?

    python benchmarks/few_values.py [--seeds 4] [--sizes 1000 3000] [--large]

fits ``PrivateKernelClassifier`` to ``records`` of ``tables.py``, which has 36 columns of 0 and 1,
as it is declared there ((0, 1), no step) and with a declared step of 1, with 2,000 public rows and
without. With --large it also fits the census and the flights at 25,000 rows with public rows. The
mean accuracy and its standard error go to benchmarks/results/few_values.json. Epsilon is 1, delta
1e-6. Rows and judged rows are those of ``tabular.py`` for the same seeds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tabular import Cell, kernel, split

RESULTS = Path(__file__).parent / "results" / "few_values.json"
STEP = (0, 1, 1)
LARGE = 25_000


def measured(table: str, rows: int, seeds: int, *, public: bool, step: bool) -> dict[str, Any]:
    """Return the mean accuracy over some seeds, with a declared step of 1 or as it is declared."""
    found, spent = [], []
    for seed in range(seeds):
        cell = Cell(table, rows, "kernel", seed, public, 1.0)
        given = split(cell)
        if step:
            declared = given.private.declared.items()
            stepped = {name: STEP if of == (0, 1) else of for name, of in declared}
            given = given._replace(private=replace(given.private, declared=stepped))
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chances, _ = kernel(cell, given)
        spent.append(time.process_time() - start)
        found.append(float(np.mean(chances.argmax(axis=1) == given.tested.labels)))
    return {
        "table": table,
        "rows": rows,
        "public": public,
        "declared_step": step,
        "accuracy": round(float(np.mean(found)), 4),
        "error": round(float(np.std(found, ddof=1) / np.sqrt(len(found))), 4),
        "cpu_seconds": round(float(np.mean(spent)), 2),
        "seeds": seeds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Columns of few values, declared and not.")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 3_000])
    parser.add_argument("--large", action="store_true", help="also the census and the flights")
    asked = parser.parse_args()
    cells = [
        ("records", rows, public, step)
        for rows in asked.sizes
        for public in (False, True)
        for step in (False, True)
    ]
    if asked.large:
        cells += [(name, LARGE, True, False) for name in ("adult", "flights")]
    lines = []
    for name, rows, public, step in cells:
        found = measured(name, rows, asked.seeds, public=public, step=step)
        lines.append(json.dumps(found))
        print(lines[-1], flush=True)
        head = json.dumps({"command": " ".join(["python benchmarks/few_values.py", *sys.argv[1:]])})
        runs = ",\n  ".join(lines)
        RESULTS.write_text(f'{head[:-1]},\n "runs": [\n  {runs}\n ]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
