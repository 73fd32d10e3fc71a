"""Made-up tables of rare outcomes, and how well routes do on them: cells of benchmarks/rare.py."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from cumae.learners.scored import AnswerRule, chances
from cumae.planning.forecasts import strength
from cumae.planning.goals import ranked
from cumae.planning.routes import ROUTES, Situation

NAMES = ("kernel", "booster", "trees", "logistic")
VOTES = ("gaussian", "everlasting")
QUERIES = 1_000  # of routes of votes
TESTED = 6_000
DELTA = 1e-6
# Shares that the second class has once each row counts as much as it costs to miss it.
WEIGHED = (0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97)
SAME = 0.001  # answers are constant if fewer than this share of them differs


@dataclass(frozen=True)
class Made:
    """A made-up table: rows in [-1, 1], labels, and the true chances of the rows for the test."""

    X: Any
    y: Any
    asked: Any
    truth: Any


def made(rows: int, width: int, share: float, mattering: int, size: float, seed: int) -> Made:
    """Draw a table: lines, one bend and one product of columns decide about the second class.

    Parameters
    ----------
    rows, width : int
        Size of the table; 6,000 further rows are for the test.
    share : float
        Share of the second class.
    mattering : int
        Columns that decide.
    size : float
        Standard deviation of the log odds.
    seed : int
        Of its coins.
    """
    coins = np.random.default_rng([seed, rows, width])
    X = coins.uniform(-1, 1, (rows + TESTED, width))
    weights = np.zeros(width)
    weights[:mattering] = coins.choice([-1, 1], mattering) * coins.uniform(0.5, 1.0, mattering)
    score = X @ weights + 0.7 * np.abs(X[:, 0]) + 0.7 * X[:, 0] * X[:, 1]
    score *= size / score.std()
    low, high = -40.0, 40.0
    for _ in range(60):  # the shift with which the share is right
        middle = (low + high) / 2
        mean = float(np.mean(1 / (1 + np.exp(-(score + middle)))))
        low, high = (middle, high) if mean < share else (low, middle)
    truth = 1 / (1 + np.exp(-(score + low)))
    y = (coins.random(len(X)) < truth).astype(int)
    return Made(X[:rows], y[:rows], X[rows:], truth[rows:])


def situation(
    rows: int, width: int, epsilon: float, goal: str, share: float | None = None
) -> Situation:
    """Return the public facts of a table."""
    facts = Situation(rows, n_features=width, columns=[(-1, 1)] * width, epsilon=epsilon)
    facts = replace(facts, delta=DELTA, goal=goal, n_queries=QUERIES)
    if share is not None:
        facts = replace(facts, class_shares={1: share})
    return replace(facts, costs={1: 2.0}) if goal == "cost" else facts


def fitted(name: str, facts: Situation, table: Made, seed: int, shown: Any = None) -> Any:
    """Return a fitted route, which may be given public rows without labels."""
    more = () if shown is None else (shown,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ROUTES[name].estimator(facts).set_params(random_state=seed)
        return model.fit(table.X, table.y, *more)


def figures(odds: Any, truth: Any) -> dict[str, Any]:
    """Return what log odds are worth, by true chances: the area, and costs that are saved."""
    share = float(truth.mean())
    saved, same = [], []
    for weighed in WEIGHED:
        miss = weighed * (1 - share) / ((1 - weighed) * share)
        answers = AnswerRule(weights=(1.0, miss)).places(odds)
        cost = float(np.mean(np.where(answers == 1, 1 - truth, miss * truth)))
        saved.append(round(1 - cost / min(1 - share, miss * share), 4))
        same.append(bool(min(answers.mean(), 1 - answers.mean()) < SAME))
    return {"auc": round(ranked(odds, truth), 4), "saved": saved, "constant": same}


def usual(table: Made) -> dict[str, Any]:
    """Return figures of the better of logistic regression and gradient boosting, not private."""
    found = []
    for model in (LogisticRegression(), HistGradientBoostingClassifier(max_iter=60)):
        odds = np.asarray(model.fit(table.X, table.y).decision_function(table.asked))
        told = np.clip(chances(odds)[:, 1], 1e-9, 1 - 1e-9)
        loss = -np.mean(table.truth * np.log(told) + (1 - table.truth) * np.log(1 - told))
        found.append((float(loss), figures(odds, table.truth)))
    return min(found, key=lambda one: one[0])[1]


def drawn(seed: int) -> dict[str, Any]:
    """Return the sizes of a cell, drawn at random."""
    coins = np.random.default_rng([seed, 34])
    width = int(coins.choice([4, 8, 8, 16, 30]))
    while True:
        rows = int(10 ** coins.uniform(2.5, 4.5))
        share = float(coins.choice([0.01, 0.02, 0.05, 0.1, 0.25, 0.5]))
        if rows * share >= 6:
            break
    return {
        "rows": rows,
        "width": width,
        "share": share,
        "mattering": int(coins.integers(2, width + 1)),
        "size": float(coins.uniform(0.7, 1.5)),
        "epsilon": float(coins.choice([0.5, 1.0, 1.0, 3.0])),
    }


def measure(seed: int) -> dict[str, Any]:
    """Fit all routes to one table, for each goal by which they differ."""
    start, sizes = time.process_time(), drawn(seed)
    made_up = {name: sizes[name] for name in ("rows", "width", "share", "mattering", "size")}
    table = made(**made_up, seed=seed)
    found: dict[str, Any] = sizes | {"seed": seed, "usual": usual(table)}
    for name in NAMES:
        taken: dict[str, Any] = {}
        for goal in ("accuracy", "ranking", "cost"):
            facts = situation(sizes["rows"], sizes["width"], sizes["epsilon"], goal)
            plan = ROUTES[name].estimator(facts).plan(sizes["rows"], sizes["width"])
            way = str(plan.facts.get("route", ""))
            if way not in taken:
                model = fitted(name, facts, table, seed)
                odds = np.asarray(model.decision_function(table.asked))
                taken[way] = figures(odds, table.truth)
            found[f"{name}, {goal}"] = taken[way]
            found[f"{name}, strength"] = strength(ROUTES[name], facts, plan.facts)
    found |= measure_votes(seed)
    return found | {"seconds": round(time.process_time() - start, 2)}


def measure_votes(seed: int) -> dict[str, Any]:
    """Let routes of votes answer, where everybody may miss any class at the same cost."""
    sizes = drawn(seed)
    made_up = {name: sizes[name] for name in ("rows", "width", "share", "mattering", "size")}
    table = made(**made_up, seed=seed)
    truth = table.truth[:QUERIES]
    facts = situation(sizes["rows"], sizes["width"], sizes["epsilon"], "accuracy")
    found: dict[str, Any] = {}
    for name in VOTES:
        plan = ROUTES[name].estimator(facts).plan(sizes["rows"], sizes["width"], trial=False)
        if not plan.can_run:
            continue
        answers = np.asarray(fitted(name, facts, table, seed).predict(table.asked[:QUERIES]))
        wrong = float(np.mean(np.where(answers == 1, 1 - truth, truth)))
        same = bool(min(answers.mean(), 1 - answers.mean()) < SAME)
        saved = round(1 - wrong / min(truth.mean(), 1 - truth.mean()), 4)
        found[f"{name}, accuracy"] = {"saved": [saved], "constant": [same]}
        found[f"{name}, strength"] = strength(ROUTES[name], facts, plan.facts)
    return found


def run(path: Path, cells: int, minutes: float) -> None:
    """Measure what is not done, and write each cell down as soon as it is there."""
    done = {line["seed"] for line in read(path)}
    end = time.monotonic() + 60 * minutes
    with path.open("a", encoding="utf-8") as file:
        for seed in range(cells):
            if time.monotonic() > end:
                print(f"{cells - seed} cells are left")
                return
            if seed not in done:
                file.write(json.dumps(measure(seed)) + "\n")
                file.flush()


def read(path: Path) -> list[dict[str, Any]]:
    """Return the cells of a file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
