"""First use: few loops are compiled, and a line says so when it takes long, once on a machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cumae.compiling import LINE

DRAW = """
import cumae.compiling
from cumae.randomness import discrete_gaussian
cumae.compiling.PATIENCE = {patience}
discrete_gaussian(600, size=3)
"""

COUNT = """
import numpy as np
from numba.core import event

class Counter(event.Listener):
    found = 0
    def on_start(self, started): Counter.found += 1
    def on_end(self, ended): pass

event.register("numba:compile", Counter())
import cumae
from cumae.concepts import Thresholds
X = np.random.default_rng(0).random((3_000, 2))
y, both = X[:, 0] > 0.5, {"epsilon": 1.0, "delta": 1e-6}
given = {**both, "columns": [(0, 1), (0, 1)]}
cumae.PrivateLogisticRegression(**given).fit(X, y).predict(X)
cumae.PrivateKernelClassifier(**given).fit(X, y).predict(X)
print(Counter.found)
cumae.EverlastingPredictor(Thresholds(), **both).fit(X[:, :1], y).predict(X[:9, :1])
print(Counter.found)
cumae.EverlastingPredictor(**given).fit(X, y).predict(X[:9])
cumae.QueryRelease(max_queries=10, **both).fit(X, y).predict(X[:9])
print(Counter.found)
cumae.PrivateBooster(epsilon=1.0, columns=given["columns"]).fit(X, y).predict(X[:9])
print(Counter.found)
"""


def run(code: str, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )


def test_the_line_comes_when_something_is_compiled_and_not_when_it_is_cached(
    tmp_path: Path,
) -> None:
    assert run(DRAW.format(patience=0.0), tmp_path).stderr == LINE
    assert run(DRAW.format(patience=0.0), tmp_path).stderr == ""


def test_the_line_does_not_come_when_compiling_is_quick(tmp_path: Path) -> None:
    assert run(DRAW.format(patience=600.0), tmp_path).stderr == ""


def test_few_functions_are_compiled(tmp_path: Path) -> None:
    """An expression on whole arrays costs five to ten more, and half a second or more.

    A compiled loop that calls another one costs twice. Those of numba's own that a loop needs count
    as well. benchmarks/first_use.py has the seconds.
    """
    learners, thresholds, trees, pure = map(int, run(COUNT, tmp_path).stdout.split())
    assert learners <= 4  # exact scores, and three of exact sums: half a second in all
    assert thresholds <= 17
    assert trees <= thresholds + 6
    assert pure <= trees + 3
