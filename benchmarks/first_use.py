"""How long does the first use of an estimator compile on a machine that never ran it?

    python benchmarks/first_use.py [--repeats 3]

writes benchmarks/results/first_use.json. Each fit and its first answers run in a process of their
own, whose cache of compiled loops is empty, on 8,000 rows of the bundled survey. ``command line``
runs ``cumae fit`` with each route and each model, then ``predict``, ``show`` and ``score``;
``demo`` runs the steps of ``cumae demo`` on 20,000 interviews. What is measured is the processor
time that numba spends, the smallest of some repeats: other work on the machine does not count,
although it makes processors slower. ``all`` does everything in one process, as somebody does who
tries the whole package.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import event

RESULT = Path(__file__).parent / "results" / "first_use.json"
ROWS, ASKED = 8_000, 200


class CompilationTimes(event.Listener):
    """Adds up the processor time of compiling, and counts the functions."""

    def __init__(self) -> None:
        self.seconds, self.functions, self._open, self._since = 0.0, 0, 0, 0.0

    def on_start(self, _: Any) -> None:
        self.functions += 1
        self._open += 1
        if self._open == 1:
            self._since = time.process_time()

    def on_end(self, _: Any) -> None:
        self._open -= 1
        if self._open == 0:
            self.seconds += time.process_time() - self._since


def command_line() -> None:
    """Run every command that fits or answers, with every route and model."""
    from cumae.cli import app  # noqa: PLC0415 - after the watch has begun
    from cumae.cli.models.routes import MODELS, RouteName  # noqa: PLC0415
    from cumae.datasets import load_health_survey  # noqa: PLC0415

    survey = load_health_survey()
    table = survey.data.assign(target=survey.target)

    def run(*arguments: object) -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            app([str(argument) for argument in arguments], standalone_mode=False)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        private, asked, schema = (folder / end for end in ("rows.csv", "asked.csv", "schema.toml"))
        table[:ROWS].to_csv(private, index=False)
        table[ROWS : ROWS + ASKED].to_csv(asked, index=False)
        ranges = (
            f"{column} = {{low = {low}, high = {high}, step = 1}}\n"
            for column, (low, high) in survey.bounds.items()
        )
        schema.write_text("[columns]\n" + "".join(ranges))
        given = ("--label", "target", "--classes", "0,1", "--epsilon", 1, "--schema", schema)
        fits = [(route, model, 1e-6) for route, models in MODELS.items() for model in models]
        fits += [(RouteName.PUBLISH, "booster", 0.0), (RouteName.RELEASE, "tree", 0.0)]
        for number, (route, model, delta) in enumerate(fits):
            publishes = route is RouteName.PUBLISH
            out = folder / f"{number}.{'json' if publishes else 'db'}"
            limit = ("--max-queries", ASKED) if route is RouteName.RELEASE and not delta else ()
            how = ("--route", route.value, "--model", model, "--delta", delta, *limit)
            run("fit", private, *given, *how, "-o", out)
            run("predict", out, asked, "-o", folder / f"{number}.csv")
            run("show", out)
            if publishes:
                run("score", out, asked, "--label", "target", "--epsilon", 1)
        for end in ("json", "db"):
            run("fit", private, *given, "--delta", 1e-6, "-o", folder / f"auto.{end}")


def demo() -> None:
    """Take the steps of the demo in this process."""
    from cumae.cli.demo import steps  # noqa: PLC0415

    interviews = steps.Interviews.read(20_000, 8_000)
    with tempfile.TemporaryDirectory() as name:
        published = steps.publish(interviews, 1.0, Path(name) / "model.json")
        oracle = steps.make_oracle(interviews, 1.0, Path(name) / "oracle.db")
        for _ in steps.ask(oracle, interviews, steps.starts(interviews)):
            pass
        oracle.close()
    steps.attack(published.name, 1.0, seconds=2.0)


def paths() -> dict[str, Callable[[], Any]]:
    import cumae  # noqa: PLC0415 - after the watch has begun
    from cumae.concepts import Thresholds  # noqa: PLC0415
    from cumae.datasets import load_health_survey  # noqa: PLC0415

    survey = load_health_survey()
    X, y = survey.data[:ROWS], survey.target[:ROWS]
    asked, age = survey.data[ROWS : ROWS + ASKED], ["Age"]
    columns = {name: (low, high, 1) for name, (low, high) in survey.bounds.items()}
    both: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    declared: dict[str, Any] = {**both, "columns": columns}
    return {
        "PrivateKernelClassifier": lambda: (
            cumae.PrivateKernelClassifier(**declared).fit(X, y).predict(asked)
        ),
        "PrivateLogisticRegression": lambda: (
            cumae.PrivateLogisticRegression(**declared).fit(X, y).predict(asked)
        ),
        "PrivateBooster": lambda: cumae.PrivateBooster(**declared).fit(X, y).predict(asked),
        "PrivateBooster, pure": lambda: (
            cumae.PrivateBooster(epsilon=1.0, columns=columns).fit(X, y).predict(asked)
        ),
        "PrivateClassifier": lambda: cumae.PrivateClassifier(**declared).fit(X, y).predict(asked),
        "QueryRelease": lambda: cumae.QueryRelease(**both).fit(X, y).predict(asked),
        "EverlastingPredictor": lambda: (
            cumae.EverlastingPredictor(**declared).fit(X, y).predict(asked)
        ),
        "EverlastingPredictor, thresholds": lambda: (
            cumae.EverlastingPredictor(Thresholds(), **both).fit(X[age], y).predict(asked[age])
        ),
        "command line": command_line,
        "demo": demo,
    }


def measure(name: str) -> dict[str, float]:
    """Run in a process of its own; return seconds and functions."""
    watch = CompilationTimes()
    event.register("numba:compile", watch)  # type: ignore[no-untyped-call]
    for path, run in paths().items():
        if name in (path, "all"):
            run()
    return {"seconds": round(watch.seconds, 2), "functions": watch.functions}


def fresh(name: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, __file__, "--only", name],
            env={**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only)))
        return
    found = {}
    for name in [*paths(), "all"]:
        runs = [fresh(name) for _ in range(options.repeats)]
        found[name] = min(runs, key=lambda run: run["seconds"])
        print(f"{name:35} {found[name]['seconds']:6.2f} s, {found[name]['functions']} functions")
    settings = {"python": platform.python_version(), "repeats": options.repeats}
    RESULT.write_text(json.dumps({**settings, "compiling": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
