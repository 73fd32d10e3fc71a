"""How good are the papers' own algorithms on tables of more than one column?

    python benchmarks/papers.py [--seeds 5] [--phases 30] [--only NAME ...]

writes benchmarks/results/papers.json, case by case: a case that has the wanted seeds already is not
run again. Rows and queries are uniform in the unit square or cube; the labels of a case follow a
box that holds about a third of it, or a halfspace through its middle.

- GenericBBL: 100,000 rows, epsilon 3, delta 1e-6; later phases have as many rows for boxes, and
  half as many for halfspaces, which take longer to train. Of each phase the share of right answers,
  and of right labels among its scored rows. Candidates come from a grid of declared ranges, from
  quantiles that rows pay for, or from points, as the paper has it.
- AgnosticQueryRelease (AgPrivCl): 100,000 rows, a tenth of the labels flipped, epsilon 2, delta
  1e-6, 500 queries; beside it QueryRelease on the same rows. Right is what the rule says, without
  flips.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.concepts import Halfspaces, Rectangles
from cumae.errors import CumaeError, TooFewRows
from cumae.predictors import AgnosticQueryRelease, GenericBBL, QueryRelease
from cumae.predictors.stateful import counter_of

RESULT = Path(__file__).parent / "results" / "papers.json"
ROWS, QUERIES, FLIPPED, POINT_PHASES = 100_000, 500, 0.1, 3
Rule = Callable[[NDArray[np.float64]], NDArray[np.bool_]]


def box(width: int, generator: np.random.Generator) -> Rule:
    side = 0.35 ** (1 / width)
    low = generator.uniform(0.02, 0.98 - side, width)
    return lambda rows: np.asarray(((rows >= low) & (rows < low + side)).all(axis=1))


def halfspace(width: int, generator: np.random.Generator) -> Rule:
    normal = generator.normal(size=width)
    return lambda rows: np.asarray(rows @ normal >= normal.sum() / 2)


PHASE_ROWS = {"boxes": 100_000, "halfspaces": 50_000}
CLASSES: dict[str, tuple[Any, Callable[..., Rule]]] = {
    "boxes": (Rectangles(), box),
    "halfspaces": (Halfspaces(), halfspace),
}


def everlasting(name: str, candidates: str, phases: int, seed: int) -> dict[str, Any]:
    """Return the shares of right answers and of right labels in each phase."""
    concept, rules = CLASSES[name]
    generator = np.random.default_rng(seed)
    rule, rows = rules(2, generator), generator.random((ROWS, 2))
    given: dict[str, Any] = {"columns": [(0, 1)] * 2} if candidates == "grid" else {}
    given["candidates"] = "points" if candidates == "points" else "grid"
    oracle = GenericBBL(
        concept, 3.0, 1e-6, growth=1.0, max_rows=PHASE_ROWS[name], progress=False, **given
    )
    oracle.fit(rows, rule(rows))
    answers, labels, changes = [], [], []
    for _ in range(phases):
        began = time.process_time()
        first = generator.random((1, 2))
        found = [oracle.predict(first)]  # enters the phase
        changes.append(time.process_time() - began)
        size = counter_of(oracle).state.phase.sizes.answers
        asked = np.concatenate([first, generator.random((size - 1, 2))])
        scored, drawn = counter_of(oracle).state.phase.scored
        labels.append(float(np.mean(drawn == rule(scored))))
        found.append(oracle.predict(asked[1:]))
        answers.append(float(np.mean(np.concatenate(found) == rule(asked))))
    return {
        "answers": [round(share, 4) for share in answers],
        "labels": [round(share, 4) for share in labels],
        "guessing": round(max(float(rule(rows).mean()), 1 - float(rule(rows).mean())), 3),
        "noise_per_vote": round(oracle.noise_per_vote_, 3),
        "phase_answers": size,
        "change_seconds": round(float(np.median(changes[1:])), 2) if phases > 1 else None,
    }


def agnostic(name: str, width: int, candidates: str, seed: int) -> dict[str, Any]:
    """Return the share of right answers of a release; candidates "plain" is QueryRelease."""
    concept, rules = CLASSES[name]
    generator = np.random.default_rng(seed)
    rule, rows = rules(width, generator), generator.random((ROWS, width))
    labels = rule(rows) ^ (generator.random(ROWS) < FLIPPED)
    asked = generator.random((QUERIES, width))
    common: dict[str, Any] = {"max_queries": QUERIES, "progress": False}
    if candidates == "plain":
        release: Any = QueryRelease(concept, 2.0, 1e-6, **common)
    else:
        if candidates == "grid":
            common["columns"] = [(0, 1)] * width
        common["candidates"] = "points" if candidates == "points" else "grid"
        release = AgnosticQueryRelease(concept, 2.0, 1e-6, **common)
    found = release.fit(rows, labels).predict(asked)
    used = getattr(release, "n_sampled_", ROWS)
    return {"answers": [round(float(np.mean(found == rule(asked))), 4)], "rows": used}


def cases(phases: int) -> dict[str, Callable[[int], dict[str, Any]]]:
    found: dict[str, Callable[[int], dict[str, Any]]] = {}
    for name in CLASSES:
        for candidates in ("grid", "quantiles", "points"):
            count = POINT_PHASES if candidates == "points" else phases
            case = f"GenericBBL, {name}, {candidates}"
            found[case] = partial(everlasting, name, candidates, count)
    for width in (2, 3):
        for name in CLASSES:
            for candidates in ("grid", "quantiles", "points", "plain"):
                case = f"AgPrivCl, {name}, {width} columns, {candidates}"
                found[case] = partial(agnostic, name, width, candidates)
    return found


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the worst phase of all seeds, and the mean of each phase."""
    answers = np.array([run["answers"] for run in runs if "answers" in run])
    if not len(answers):
        return {}
    worst, mean = round(float(answers.min()), 4), round(float(answers.mean()), 4)
    return {"worst_phase": worst, "mean": mean, "by_phase": answers.mean(axis=0).round(4).tolist()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--phases", type=int, default=30)
    parser.add_argument("--only", nargs="*", default=[""])
    asked = parser.parse_args()
    result = json.loads(RESULT.read_text()) if RESULT.exists() else {"cases": {}}
    result["python"] = platform.python_version()
    warnings.simplefilter("ignore", TooFewRows)
    wanted = {
        name: run
        for name, run in cases(asked.phases).items()
        if any(name.startswith(part) for part in asked.only)
    }
    for seed, (name, run) in itertools.product(range(asked.seeds), wanted.items()):
        runs = result["cases"].get(name, {}).get("runs", [])
        if len(runs) > seed:
            continue
        began = time.process_time()
        try:
            line = run(seed)
        except CumaeError as error:
            line = {"refused": str(error)}
        line["seconds"] = round(time.process_time() - began, 1)
        print(name, seed, line, flush=True)
        runs.append(line)
        result["cases"][name] = {**summary(runs), "runs": runs}
        RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
