"""How fast is ``choose``? One run; ratios against numpy's sort of the same array.

    python benchmarks/choose.py

writes benchmarks/results/choose.json and benchmarks/results/choose.png. Times are CPU times of one
thread, best of several, because machines are shared; points = X unless said.
"""

from __future__ import annotations

import json
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

from cumae.concepts import (
    ConceptClass,
    Halfspaces,
    Intervals,
    Points,
    Projections,
    Rectangles,
    Stumps,
    Thresholds,
    Trees,
    UnionOfIntervals,
)

mpl.use("Agg")

from matplotlib import pyplot as plt

RESULTS = Path(__file__).parent / "results"
EPSILON = 1.0


def seconds(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def column(n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(n)
    x = generator.random(n)
    return x, ((x > 0.4) & (x < 0.7) ^ (generator.random(n) < 0.2)).astype(np.int64)


def table(n: int, columns: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(n)
    x = generator.random((n, columns))
    return x, ((np.abs(x - 0.5) < 0.3).all(axis=1) ^ (generator.random(n) < 0.2)).astype(np.int64)


def measure(
    concept: ConceptClass, rows: tuple[Any, Any], points: Any = None, repeats: int = 3
) -> float:
    x, y = rows
    used = x if points is None else points
    concept.choose(used[:40], x[:40], y[:40], EPSILON)  # compile
    return seconds(lambda: concept.choose(used, x, y, EPSILON), repeats)


def against_sort(concept: ConceptClass, n: int, limit: float) -> dict[str, float]:
    x, y = column(n)
    concept.choose(x, x, y, EPSILON)
    pairs = [(seconds(lambda: np.sort(x), 3), measure(concept, (x, y))) for _ in range(3)]
    return {
        "n": n,
        "sort_s": min(sort for sort, _ in pairs),
        "choose_s": min(mine for _, mine in pairs),
        "times_sort": round(min(mine for _, mine in pairs) / min(sort for sort, _ in pairs), 2),
        "target_times_sort": limit,
    }


def absolute(time_s: float, limit: float, **more: Any) -> dict[str, Any]:
    return {**more, "choose_s": round(time_s, 4), "target_s": limit}


def growth(label: str, make: Callable[[int], float], sizes: list[int]) -> dict[str, Any]:
    times = [make(n) for n in sizes]
    slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    return {"label": label, "sizes": sizes, "seconds": times, "exponent": round(slope, 2)}


def curves() -> list[dict[str, Any]]:
    large = [30_000, 100_000, 300_000, 1_000_000]

    def one(concept: ConceptClass) -> Callable[[int], float]:
        return lambda n: measure(concept, column(n))

    def many(concept: ConceptClass, columns: int) -> Callable[[int], float]:
        return lambda n: measure(concept, table(n, columns), repeats=1)

    directions = np.random.default_rng(1).normal(size=(20, 5))
    cuts = np.random.default_rng(2).random((11, 10))
    rows = [10_000, 30_000, 100_000, 300_000]
    return [
        growth("Points", one(Points()), large),
        growth("Thresholds", one(Thresholds()), large),
        growth("Intervals", one(Intervals()), large),
        growth("UnionOfIntervals(5)", one(UnionOfIntervals(5)), large[:3]),
        growth("Rectangles, 2 columns", many(Rectangles(), 2), [500, 1000, 2000, 4000]),
        growth("Rectangles, 3 columns", many(Rectangles(), 3), [25, 50, 100]),
        growth("Halfspaces, 2 columns", many(Halfspaces(), 2), [250, 500, 1000, 2000]),
        growth("Halfspaces, 3 columns", many(Halfspaces(), 3), [25, 50, 100, 200]),
        growth("Stumps, 10 columns", many(Stumps(), 10), [10_000, 30_000, 100_000]),
        growth(
            "Projections, 20 directions",
            many(Projections(directions), 5),
            [10_000, 30_000, 100_000],
        ),
        growth(
            "Trees(2), 100 cuts, rows", lambda n: measure(Trees(2), table(n, 10), points=cuts), rows
        ),
        growth(
            "Trees(3), 100 cuts, rows", lambda n: measure(Trees(3), table(n, 10), points=cuts), rows
        ),
    ]


def plot(found: list[dict[str, Any]]) -> None:
    figure, axes = plt.subplots(figsize=(12, 6))
    for curve, marker in zip(found, "osv^<>DPX*hd", strict=True):
        axes.loglog(
            curve["sizes"],
            curve["seconds"],
            marker=marker,
            label=f"{curve['label']} (exponent {curve['exponent']})",
        )
    axes.set_xlabel("n")
    axes.set_ylabel("seconds (CPU, one thread)")
    axes.set_title("choose: time against size, and the fitted growth exponent")
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    figure.tight_layout()
    figure.savefig(RESULTS / "choose.png", dpi=110)


def main() -> None:
    generator = np.random.default_rng(3)
    cuts_150, cuts_100 = generator.random((16, 10)), generator.random((11, 10))
    result: dict[str, Any] = {
        "command": "python benchmarks/choose.py",
        "python": platform.python_version(),
        "thresholds": against_sort(Thresholds(), 1_000_000, 3),
        "intervals": against_sort(Intervals(), 1_000_000, 3),
        "union_of_5_intervals": against_sort(UnionOfIntervals(5), 100_000, 10),
        "rectangles_2_columns": [
            absolute(measure(Rectangles(), table(2000, 2), repeats=2), 2, n=2000),
            absolute(measure(Rectangles(), table(8000, 2), repeats=1), 20, n=8000),
        ],
        "rectangles_dichotomies_n_2000": Rectangles().n_dichotomies(table(2000, 2)[0]),
        "halfspaces_2_columns": absolute(measure(Halfspaces(), table(2000, 2)), 1, n=2000),
        "rectangles_3_columns": absolute(measure(Rectangles(), table(100, 3)), 30, n=100),
        "halfspaces_3_columns": absolute(measure(Halfspaces(), table(100, 3)), 30, n=100),
        "trees_2_150_cuts": absolute(
            measure(Trees(2), table(100_000, 10), points=cuts_150), 0.1, rows=100_000, cuts=150
        ),
        "trees_3_100_cuts": absolute(
            measure(Trees(3), table(100_000, 10), points=cuts_100), 1, rows=100_000, cuts=100
        ),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    result["growth"] = curves()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "choose.json").write_text(json.dumps(result, indent=2) + "\n")
    plot(result["growth"])
    print(json.dumps({k: v for k, v in result.items() if k != "growth"}, indent=2))
    for curve in result["growth"]:
        print(f"{curve['label']}: exponent {curve['exponent']}")


if __name__ == "__main__":
    main()
