"""How fast are the exact samplers? One run, ratios against OpenDP's vector calls.

    python benchmarks/samplers.py

writes benchmarks/results/samplers.json.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp

from cumae.randomness import discrete_gaussian, discrete_laplace, weighted_choice

RESULT = Path(__file__).parent / "results" / "samplers.json"
DRAWS = 1_000_000
THEIR_DRAWS = 20_000  # theirs take seconds a million; time is proportional to draws


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Best time of several, the usual way to ignore a busy machine."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def compare(ours: Callable[[], object], theirs: Callable[[], object]) -> dict[str, float]:
    """Nanoseconds a draw of both, measured in turns, and their quotient."""
    ours()
    mine, other = seconds(ours, 5) / DRAWS, seconds(theirs, 3) / THEIR_DRAWS
    return {
        "ours_ns": round(mine * 1e9, 1),
        "opendp_ns": round(other * 1e9, 1),
        "times_faster": round(other / mine, 1),
    }


def main() -> None:
    dp.enable_features("contrib")
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    zeros = [0] * THEIR_DRAWS
    gaussian = dp.m.make_gaussian(integers, dp.l2_distance(T=float), scale=600.0)
    laplace = dp.m.make_laplace(integers, dp.l1_distance(T="i64"), scale=600.0)
    scores = np.arange(1000)
    result: dict[str, Any] = {
        "command": "python benchmarks/samplers.py",
        "python": platform.python_version(),
        "draws": DRAWS,
        "discrete_gaussian_scale_600": compare(
            lambda: discrete_gaussian(600.0, DRAWS), lambda: gaussian(zeros)
        ),
        "discrete_laplace_scale_600": compare(
            lambda: discrete_laplace(1 / 600, DRAWS), lambda: laplace(zeros)
        ),
        "discrete_gaussian_scale_1e5_ns": round(
            seconds(lambda: discrete_gaussian(1e5, DRAWS), 3) / DRAWS * 1e9, 1
        ),
        "weighted_choice_1000_candidates_ns": round(
            seconds(lambda: weighted_choice(scores, 0.01, size=DRAWS), 3) / DRAWS * 1e9, 1
        ),
        "discrete_gaussian_scalar_ns": round(
            seconds(lambda: [discrete_gaussian(600.0) for _ in range(1000)], 3) / 1000 * 1e9, 1
        ),
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
