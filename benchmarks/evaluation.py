"""Do intervals of `cumae.evaluation` hold the truth, how wide are they, and how long does it take?

Each scenario draws test rows and the chances of a model from a law whose true figures are known,
up to the chance of a draw of four million rows. It evaluates 2,000 such tables of private rows, and
counts for each figure, and for each point of each curve, how often its interval holds the truth.

Width is held against the best with the noise known: 2 x 1.96 times the true standard deviation of
the estimate (that over all runs: sampling and noise together, which nobody knows who sees one
table), plus what bins hide of the true law, cut to the range of the figure. Near 0 and 1 estimates
are cut off, and vary less than any valid interval is wide. So for shares of rows the best is no
narrower than the plain score interval (Wilson's, with the variance of the noise) of one who sees
the expected counts without noise. Figures whose truth does not exist, such as the sensitivity of a
class that a subgroup does not have, are left out.

    python benchmarks/evaluation.py --runs 2000
    python benchmarks/evaluation.py --runs 2000 --fresh 6 --seed 1

The second draws laws at random, with other rows: nothing in the package was tuned on them. It
writes benchmarks/results/evaluation_fresh.json. With --only NAME, scenarios with this in their name
take the place of what the file has of them, so that parts can be run one after the other.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.counting import intervals
from cumae.counting.table import (
    Layout,
    NoiseLaw,
    NoisyTables,
    cells_of,
    counted,
    exact_layout,
)
from cumae.evaluation import Calibration, Curve, Evaluation, Figure, Figures, evaluate
from cumae.evaluation.figures import figures_of

RESULTS = Path(__file__).parent / "results" / "evaluation.json"
FRESH_RESULTS = RESULTS.with_name("evaluation_fresh.json")
FIRST_SEED, FIRST_FRESH_SEED = 1, 1_000_001  # of the rows of the first run
LEAST_COVERAGE, MOST_WIDTH = 0.935, 1.5
TRUTH_ROWS = 4_000_000
MILLION = "million rows"

Rows = tuple[Integers, Floats, Integers]  # labels, chances and subgroups
Draw = Callable[[np.random.Generator, int], Rows]


class FixedModel:
    """A model whose chances, or answers, stand in the rows."""

    def __init__(self, n_classes: int) -> None:
        self.classes_ = np.arange(n_classes)


class FixedChances(FixedModel):
    def predict_proba(self, X: Any) -> Any:
        return X


class FixedAnswers(FixedModel):
    def predict(self, X: Any) -> Any:
        return np.argmax(X, axis=1)


@dataclass(frozen=True)
class Scenario:
    """A law of test rows, and how they are evaluated."""

    name: str
    draw: Draw
    rows: int
    epsilon: float
    delta: float = 0.0
    n_classes: int = 2
    groups: tuple[str, ...] = ()
    answers_alone: bool = False

    def evaluated(self, seed: int) -> Evaluation:
        label, chances, group = self.draw(np.random.default_rng(seed), self.rows)
        kind = FixedAnswers if self.answers_alone else FixedChances
        more: dict[str, Any] = {}
        if self.groups:
            more = {"groups": group, "group_names": range(len(self.groups))}
        return evaluate(
            kind(self.n_classes),
            chances,
            label,
            epsilon=self.epsilon,
            delta=self.delta,
            trained_on=False,
            **more,
        )


def two_classes(share: float, shift: float, *, constant: bool = False) -> Draw:
    """Return a law of scores that are normal in each class, and chances that are a bit too sure."""

    def draw(rng: np.random.Generator, count: int) -> Rows:
        label = (rng.random(count) < share).astype(np.int64)
        score = rng.normal(label * shift, 1.0)
        odds = 1.2 * (math.log(share / (1 - share)) + shift * score - shift**2 / 2)
        chance = np.full(count, 0.3) if constant else 1 / (1 + np.exp(-odds))
        return label, np.stack([1 - chance, chance], axis=1), np.zeros(count, dtype=np.int64)

    return draw


def five_classes(rng: np.random.Generator, count: int) -> Rows:
    """Return classes of shares from 40 to 5 %, and a model that confuses neighbours."""
    shares = np.array([0.4, 0.25, 0.2, 0.1, 0.05])
    label = rng.choice(5, count, p=shares)
    odds = rng.normal(size=(count, 5)) + np.log(shares)
    odds[np.arange(count), label] += 1.8
    chances = np.exp(odds)
    chances /= chances.sum(axis=1, keepdims=True)
    return label, chances, np.zeros(count, dtype=np.int64)


def with_groups(rows: int) -> Draw:
    """Return a law with a subgroup of 30 rows, and one of 300 rows without the second class."""
    usual = two_classes(0.3, 1.3)

    def draw(rng: np.random.Generator, count: int) -> Rows:
        label, chances, _ = usual(rng, count)
        group = np.searchsorted(np.cumsum([1 - 330 / rows, 30 / rows]), rng.random(count))
        label = np.where(group == 2, 0, label)
        return label, chances, group.astype(np.int64)

    return draw


GROUPS = ("most", "30 rows", "300 rows of one class")
COMMON, RARE = two_classes(0.3, 1.3), two_classes(0.02, 1.5)
SCENARIOS = [
    *(Scenario(f"10,000 rows, epsilon {e:g}", COMMON, 10_000, e) for e in (0.25, 1.0, 5.0)),
    Scenario("10,000 rows, epsilon 0.25, delta 1e-2", COMMON, 10_000, 0.25, 1e-2),
    *(Scenario(f"300 rows, epsilon {e:g}", COMMON, 300, e) for e in (1.0, 10.0)),
    *(
        Scenario(f"2 % positive, 10,000 rows, epsilon {e:g}", RARE, 10_000, e)
        for e in (0.5, 1.0, 2.0)
    ),
    *(Scenario(f"2 % positive, 300 rows, epsilon {e:g}", RARE, 300, e) for e in (1.0, 10.0)),
    Scenario("5 classes, 10,000 rows, epsilon 1", five_classes, 10_000, 1.0, n_classes=5),
    Scenario("5 classes, 10,000 rows, epsilon 1, delta 1e-6", five_classes, 10_000, 1.0, 1e-6, 5),
    Scenario("5 classes, 300 rows, epsilon 5", five_classes, 300, 5.0, n_classes=5),
    *(
        Scenario(f"subgroups, epsilon {e:g}", with_groups(5_000), 5_000, e, groups=GROUPS)
        for e in (1.0, 5.0)
    ),
    Scenario(
        "constant chances, 2,000 rows, epsilon 1",
        two_classes(0.3, 1.3, constant=True),
        2_000,
        1.0,
    ),
    Scenario(
        "answers alone, 1,000 rows, epsilon 1",
        five_classes,
        1_000,
        1.0,
        n_classes=5,
        answers_alone=True,
    ),
]


def fresh_law(n_classes: int, shares: Floats, strength: float, slope: float, tail: float) -> Draw:
    """Return a law of scores with heavy tails, and a model whose chances are off by a slope.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    shares : array of float
        Their shares.
    strength : float
        Shift of the score of the true class.
    slope : float
        Factor of the model's odds; above 1 it is too sure.
    tail : float
        Degrees of freedom of Student's t, which the scores follow.
    """

    def draw(rng: np.random.Generator, count: int) -> Rows:
        label = rng.choice(n_classes, count, p=shares)
        odds = rng.standard_t(tail, size=(count, n_classes))
        odds[np.arange(count), label] += strength
        odds = slope * np.clip(odds, -20, 20) + np.log(shares)
        chances = np.exp(odds - odds.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        return label, chances, np.zeros(count, dtype=np.int64)

    return draw


def fresh(count: int, seed: int) -> list[Scenario]:
    """Return scenarios whose laws, sizes and prices are drawn at random."""
    found = []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        n_classes = int(rng.integers(2, 5))
        shares = rng.dirichlet(np.full(n_classes, 1.5)) * 0.95 + 0.05 / n_classes
        law = fresh_law(n_classes, shares, rng.uniform(0.5, 3), rng.uniform(0.5, 1.5), 4.0)
        rows = int(np.exp(rng.uniform(math.log(400), math.log(20_000))))
        epsilon = round(float(np.exp(rng.uniform(math.log(0.3), math.log(4)))), 2)
        name = f"fresh law {number}: {n_classes} classes, {rows:,} rows, epsilon {epsilon:g}"
        found.append(Scenario(name, law, rows, epsilon, n_classes=n_classes))
    return found


def flat(found: Figures) -> Iterator[tuple[str, Figure]]:
    """Yield every figure by name; curves and tables give one for each point."""
    yield from ((name, one) for name, one in found.named() if one.low < one.high or name != "share")
    several = {"confusion": found.confusion}
    for name in ("roc", "precision_recall", "calibration"):
        for label, one in getattr(found, name).items():
            if isinstance(one, Curve):
                several |= {f"{name} across {label}": one.across, f"{name} up {label}": one.up}
            elif isinstance(one, Calibration):
                several[f"{name} {label}"] = one.share
    for name, one in several.items():
        parts = [np.ravel(part) for part in (one.value, one.low, one.high)]
        for place, numbers in enumerate(zip(*parts, strict=True)):
            yield f"{name} [{place}]", Figure(*map(float, numbers))


def everything(found: Evaluation, names: tuple[str, ...]) -> dict[str, Figure]:
    """Return every figure of all rows and of each subgroup."""
    parts = {"": found.overall} | {f"{names[place]}: ": one for place, one in found.groups.items()}
    return {prefix + name: one for prefix, part in parts.items() for name, one in flat(part)}


@dataclass(frozen=True)
class Truth:
    """The true value of each figure, what bins hide of it, and the score interval of shares."""

    value: dict[str, float]
    hidden: dict[str, float]
    score: dict[str, float]


def truth_of(scenario: Scenario, layout: Layout, law: NoiseLaw) -> Truth:
    """Return true figures: from exact chances where order matters, from true bins elsewhere."""
    label, chances, group = scenario.draw(np.random.default_rng(12345), TRUTH_ROWS)
    output: Any = np.argmax(chances, axis=1) if scenario.answers_alone else chances
    value: dict[str, float] = {}
    hidden: dict[str, float] = {}
    classes = list(range(scenario.n_classes))
    binned = _figures(layout, group, label, output, classes, scenario.groups)
    exact = exact_layout(layout.groups, scenario.n_classes, label, output, layout.threshold)
    precise = _figures(exact, group, label, output, classes, scenario.groups, points=False)
    for name, one in binned.items():
        value[name], hidden[name] = one.value, 2 * one.hidden
        if name in precise:
            value[name] = precise[name].value
    for name in list(value):
        if any(name.startswith(f"{one}: ") for one in scenario.groups) and _missing(
            name.split(": ")[1], label[group == scenario.groups.index(name.split(": ")[0])]
        ):
            value[name] = math.nan
    with plain_intervals():
        expected = _figures(
            layout, group, label, output, classes, scenario.groups, rows=scenario.rows, law=law
        )
    shares = {name: one.high - one.low for name, one in expected.items() if is_share(name)}
    for name, one in expected.items():  # bins are joined where noise would drown them
        hidden[name] = 2 * one.hidden
    return Truth(value, hidden, shares)


@contextlib.contextmanager
def plain_intervals() -> Iterator[None]:
    """Leave out all that makes intervals of the package wider than a plain score interval."""
    kept = {name: getattr(intervals, name) for name in ("HALF_ROW", "WIDENED", "MOST_TAIL")}
    try:
        for name in kept:
            setattr(intervals, name, 1.0 if name == "WIDENED" else 0.0)
        yield
    finally:
        for name, number in kept.items():
            setattr(intervals, name, number)


def is_share(name: str) -> bool:
    """Tell whether a figure is a share of rows."""
    return not any(word in name for word in ("auc", "average precision", "log loss", "brier"))


def _missing(words: str, label: Integers) -> bool:
    """Tell whether a figure of a subgroup does not exist, because it has no second class."""
    if label.any():
        return False
    kept = ["share", "accuracy", "commonest", "sensitivity of 0", "specificity of 1"]
    kept += ["precision of", "log loss", "brier", "confusion", "roc across", "calibration"]
    return not words.startswith(tuple(kept))


def _figures(
    layout: Layout,
    group: Integers,
    label: Integers,
    output: Any,
    classes: list[int],
    names: tuple[str, ...],
    *,
    points: bool = True,
    rows: int = TRUTH_ROWS,
    law: NoiseLaw | None = None,
) -> dict[str, Figure]:
    """Return figures of the counts that are expected of so many rows."""
    exact = counted(layout, cells_of(layout, group, label, output))
    counts: Any = exact if law is None else {n: c * rows / len(label) for n, c in exact.items()}
    tables = NoisyTables(layout, rows, law or NoiseLaw(), counts)
    found: dict[str, Figure] = {}
    parts = {"": np.arange(layout.groups)} | {
        f"{name}: ": np.array([place]) for place, name in enumerate(names)
    }
    for prefix, places in parts.items():
        figures = figures_of(tables, classes, places, 0.95, 1e-3)
        some = flat(figures) if points else figures.named()
        found |= {prefix + name: one for name, one in some}
    return found


def judged(scenario: Scenario, runs: int, jobs: int, first: int) -> dict[str, Any]:
    """Return coverage and width of each figure of a scenario; ``first`` is the first seed."""
    tables = scenario.evaluated(0).tables
    truth = truth_of(scenario, tables.layout, tables.law)
    names = [name for name, value in truth.value.items() if math.isfinite(value)]

    def one(seed: int) -> NDArray[np.float64]:
        found = everything(scenario.evaluated(seed), scenario.groups)
        return np.array([[found[name].value, found[name].low, found[name].high] for name in names])

    seen = np.array(
        Parallel(n_jobs=jobs)(delayed(one)(seed) for seed in range(first, first + runs))
    )
    true = np.array([truth.value[name] for name in names])
    slack = 1e-6  # the truth is known to a few digits, and a share of 1 is no less
    held = (seen[:, :, 1] <= true + slack) & (true - slack <= seen[:, :, 2])
    width = (seen[:, :, 2] - seen[:, :, 1]).mean(axis=0)
    spread = 2 * 1.96 * seen[:, :, 0].std(axis=0)
    hidden = np.array([truth.hidden[name] for name in names])
    largest = np.array([_range(name) for name in names])
    least = np.array([truth.score.get(name, 0.0) for name in names])
    best = np.minimum(np.maximum(spread + hidden, least), largest)
    return {
        name: {
            "truth": round(float(true[place]), 5),
            "covered": float(held[:, place].mean()),
            "width": round(float(width[place]), 5),
            "best": round(float(best[place]), 5),
            "ratio": round(float(width[place] / best[place]), 3),
        }
        for place, name in enumerate(names)
    }


def _range(name: str) -> float:
    if name.endswith("log loss"):
        return -math.log(1e-3)
    return 2.0 if name.endswith("brier") else 1.0


def shortened(figures: dict[str, Any]) -> dict[str, Any]:
    """Return single figures, and of the points of a curve or table the worst."""
    found: dict[str, Any] = {}
    for name, one in figures.items():
        curve, bracket, _ = name.partition(" [")
        if not bracket:
            found[name] = one
            continue
        worst = found.setdefault(curve, {"points": 0, "least covered": 1.0, "largest ratio": 0.0})
        worst["points"] += 1
        worst["least covered"] = min(worst["least covered"], one["covered"])
        worst["largest ratio"] = max(worst["largest ratio"], one["ratio"])
    return found


def million() -> dict[str, float]:
    """Return the CPU seconds of a million private rows, with and without those of the model."""
    from cumae import PrivateKernelClassifier  # noqa: PLC0415

    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1_000_000, 10))
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(0, 0.5, len(X)) > 0.3).astype(np.int64)
    model = PrivateKernelClassifier(1.0, 1e-6, columns=[(-1, 1)] * 10).fit(X[:20_000], y[:20_000])
    evaluate(model, X[:1_000], y[:1_000], epsilon=1.0, trained_on=False)  # compiles loops
    began = time.process_time()
    model.predict_proba(X)
    asked = time.process_time() - began
    began = time.process_time()
    found = evaluate(
        model,
        X,
        y,
        epsilon=1.0,
        groups=(X[:, 2] > 0).astype(int),
        group_names=(0, 1),
        trained_on=False,
    )
    whole = time.process_time() - began
    return {
        "seconds": round(whole, 2),
        "of which the model": round(asked, 2),
        "accuracy": round(found.overall.accuracy.value, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    parser.add_argument("--all", action="store_true", help="print every figure")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--fresh", type=int, default=0, help="draw so many laws at random")
    parser.add_argument("--seed", type=int, default=1, help="of the laws of --fresh")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    scenarios = fresh(given.fresh, given.seed) if given.fresh else SCENARIOS
    first = FIRST_FRESH_SEED if given.fresh else FIRST_SEED
    out = given.out or (FRESH_RESULTS if given.fresh else RESULTS)
    facts = {"seed of the laws": given.seed} if given.fresh else {}
    result: dict[str, Any] = {"runs": given.runs, **facts, "scenarios": {}}
    if given.only and out.exists():
        known = json.loads(out.read_text(encoding="utf-8"))
        if {name: known.get(name) for name in ("runs", *facts)} == {"runs": given.runs, **facts}:
            result = known
    for scenario in scenarios:
        if given.only not in scenario.name:
            continue
        began = time.perf_counter()
        figures = judged(scenario, given.runs, given.jobs, first)
        covered = {name: one["covered"] for name, one in figures.items()}
        ratio = {name: one["ratio"] for name, one in figures.items()}
        low, wide = min(covered, key=covered.__getitem__), max(ratio, key=ratio.__getitem__)
        result["scenarios"][scenario.name] = shortened(figures)
        write(result, out, [one.name for one in scenarios])
        print(
            f"{scenario.name}: {len(figures)} figures; least coverage {covered[low]:.4f} ({low}), "
            f"widest {ratio[wide]:.2f} times the best ({wide}); "
            f"{time.perf_counter() - began:.0f} s"
        )
        for name, one in figures.items():
            if given.all or one["covered"] < LEAST_COVERAGE or one["ratio"] > MOST_WIDTH:
                print("   ", name, one)
    if not given.fresh and given.only in MILLION:
        result[MILLION] = million()
        print(result[MILLION])
        write(result, out, [one.name for one in scenarios])


def write(result: dict[str, Any], out: Path, names: list[str]) -> None:
    """Write what is known so far, in the order of the scenarios."""
    scenarios = result["scenarios"]
    result["scenarios"] = {name: scenarios[name] for name in names if name in scenarios}
    out.write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
