"""Trials of benchmarks/planning.py: forecasts of accuracy from a public sample, and the truth."""

from __future__ import annotations

import json
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _planning_cells import (
    EPSILONS,
    JUDGED,
    SIZES,
    SMALL,
    SUMS,
    TOGETHER,
    Task,
    right,
    size_of,
    split,
)
from _planning_curves import TIE, share
from _planning_registers import REGISTERS
from _table import Table
from tables import REAL

from cumae.data import Columns
from cumae.planning.routes import ROUTES
from cumae.planning.rules import draw_rules
from cumae.planning.simulation import RULES, Sample, simulate
from cumae.randomness import SeededSource

TRIALS = Path(tempfile.gettempdir()) / "cumae_planning_trials.jsonl"
SAMPLE = 500  # labelled public rows
FITS = 3  # of few rows, whose mean is compared with the forecast
SIMULATED = ("kernel", "trees", "logistic", "learner")  # the booster is close to the regression
# Made-up tables whose best possible rule is known, without a concept class; none is judged.
KNOWN = {
    "interactions": TOGETHER,
    "sums": tuple(name for name in SUMS if name not in REAL),
    "registers": tuple(REGISTERS),
}
CHECKED = TOGETHER + SUMS  # tables that are not judged, on which forecasts are compared as well
CHECKED_SIZES, CHECKED_EPSILON = (1_000, 10_000), 1.0
SAMPLES = (5, 6, 7, 8)  # seeds: one sample of 500 labels is off by two points


class Trial(NamedTuple):
    """A route that is simulated on a public sample, and then fitted with the same public rows."""

    table: str
    rows: int
    epsilon: float
    route: str


def trials() -> list[Trial]:
    """Return all trials, in a random order of tables, sizes and epsilons; the largest size last."""
    found = list(product(JUDGED, SIZES, EPSILONS))
    order = np.random.default_rng(1).permutation(len(found))
    found = sorted((found[place] for place in order), key=lambda one: one[1] > 50_000)
    return [
        Trial(name, size_of(name, rows), epsilon, route)
        for name, rows, epsilon in found
        for route in SIMULATED
    ] + [
        Trial(name, size_of(name, rows), CHECKED_EPSILON, route)
        for rows, name, route in product(CHECKED_SIZES, CHECKED, SIMULATED)
    ]


@cache
def sampled(name: str) -> tuple[Table, Sample]:
    """Return a public sample of a table, with rules that it leaves open."""
    # The public rows of a real table are the same for all sizes, and nobody else sees them.
    given = split(Task(name, 300, public=True, seed=0 if name in REAL else 5))
    shown = (given.public or given.tested).take(slice(0, SAMPLE))
    situation = replace(given.situation(1.0), n_public=SAMPLE)
    return shown, Sample.of(situation, shown.rows, shown.labels)


def tried(trial: Trial) -> dict[str, Any]:
    """Return the accuracy of a route as it is forecast, and as it is measured."""
    shown, sample = sampled(trial.table)
    given = replace(split(Task(trial.table, trial.rows, public=True, seed=0)), public=shown)
    situation = replace(given.situation(trial.epsilon), n_public=SAMPLE, n_queries=None)
    forecast = simulate(ROUTES[trial.route], situation, sample)
    found = []
    for seed in range(FITS if trial.rows <= max(SMALL) else 1):
        model = ROUTES[trial.route].build(situation).set_params(random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(given.private.rows, given.private.labels, shown.rows)
            found.append(right(given.tested, model.predict(given.tested.rows)))
    figures = {"accuracy": float(np.mean(found))}
    if forecast is not None:
        figures |= {"forecast": forecast.value, "low": forecast.low, "high": forecast.high}
    return trial._asdict() | {name: round(value, 5) for name, value in figures.items()}


def verdict_on_samples(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how often forecasts of accuracy held, and how good the routes are that they choose."""
    pairs = chosen_trials(lines)
    chosen = [one for one, _ in pairs]
    errors = np.array([one["forecast"] - one["accuracy"] for one in chosen])
    every = np.array([one["forecast"] - one["accuracy"] for one in lines if "forecast" in one])
    behind = np.array([top - one["accuracy"] for one, top in pairs])
    inside = [one["low"] <= one["accuracy"] <= one["high"] for one in chosen]
    return {
        "cells": len(pairs),
        "accuracy_of_chosen_within_two_points": share(np.abs(errors) <= 0.02 + TIE),
        "accuracy_of_all_routes_within_two_points": share(np.abs(every) <= 0.02 + TIE),
        "accuracy_of_chosen_within_interval": share(inside),
        "mean_error": round(float(errors.mean()), 4),
        "chosen_within_one_point": share(behind <= 0.01 + TIE),
        "mean_points_behind_best": round(100 * float(behind.mean()), 2),
    }


def run_trials(path: Path, minutes: float) -> None:
    """Run what is not done, and write each trial down as soon as it is there."""
    done = read_trials(path)
    left = [trial for trial in dict.fromkeys(trials()) if trial not in done]
    end = time.monotonic() + 60 * minutes
    with path.open("a", encoding="utf-8") as file:
        for place, trial in enumerate(left):
            if time.monotonic() > end:
                print(f"{len(left) - place} trials are left")
                return
            file.write(json.dumps(tried(trial)) + "\n")
            file.flush()


def read_trials(path: Path) -> dict[Trial, dict[str, Any]]:
    """Return the trials of a file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return {Trial(*(line[name] for name in Trial._fields)): line for line in found}


def chosen_trials(lines: list[dict[str, Any]]) -> list[tuple[dict[str, Any], float]]:
    """Return the route that the sample chooses in each complete trial, and the best accuracy."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        groups[line["table"], line["rows"], line["epsilon"]].append(line)
    whole = [found for found in groups.values() if len(found) == len(SIMULATED)]
    return [
        (
            max(found, key=lambda one: one.get("forecast", 0.0)),
            max(one["accuracy"] for one in found),
        )
        for found in whole
    ]


def sure(chances: Any) -> float:
    """Return how often the best answers are right, if class 1 has such chances."""
    return float(np.maximum(chances, 1 - chances).mean())


def rules_and_truth(names: Sequence[str]) -> dict[str, list[float]]:
    """Return how often the best answers are right, by the truth and by rules of a sample."""
    found = {}
    for name, seed in product(names, SAMPLES):
        given = split(Task(name, 300, public=True, seed=seed))
        shown = (given.public or given.tested).take(slice(0, SAMPLE))
        columns = Columns.of(shown.rows, given.situation(1.0).columns)
        table = columns.encode(shown.rows)
        drawn = draw_rules(columns, table, shown.labels, RULES, SeededSource(0))
        truth = np.zeros((0, 2)) if shown.chances is None else shown.chances
        found[f"{name}, seed {seed}"] = [round(sure(truth[:, 1]), 4), round(sure(drawn), 4)]
    return found
