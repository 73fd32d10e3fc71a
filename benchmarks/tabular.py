"""How accurate are private classifiers of tables, on many tables, beside the strongest peer?

    python benchmarks/tabular.py [--tables adult pairs] [--sizes 300 1000] [--seeds 10] [--aside]

fits each model to each table of ``tables.TUNING`` (or, with --aside, ``tables.KEPT_ASIDE``) at each
size, with 2,000 public rows and without, once for each seed. It measures accuracy, area under the
ROC curve, log loss, expected calibration error and seconds of a fit, on up to 20,000 other rows.

A cell is one fit. Each is a line in the file of --cells as soon as it is there, and is not run
again, so a run that was stopped can go on; --again runs the cells of some models anew. All cells of
that file make benchmarks/results/tabular.json, tabular.png (accuracy against rows) and
tabular_reliability.png (chances against what happened, for the kernel classifier).

The peer is InterpretML's DP-EBM at a learning rate of 0.1, the best of six settings for each table
and size, which is chosen by the test rows of three seeds and so flatters it. Trees are
scikit-learn's gradient boosting, without privacy. Neither uses public rows.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import pandas as pd
from _table import Table
from joblib import Parallel, delayed, parallel_config
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, TargetEncoder
from tables import ELSEWHERE, KEPT_ASIDE, REAL, TUNING, load

from cumae import OneVsRest, PrivateBooster, PrivateKernelClassifier, PrivateLogisticRegression

mpl.use("Agg")

from matplotlib import pyplot as plt

RESULTS = Path(__file__).parent / "results"
CELLS = Path(tempfile.gettempdir()) / "cumae_tabular.jsonl"
SIZES = (300, 1_000, 3_000, 25_000)
PUBLIC, TESTED, TESTED_AT_LEAST = 2_000, 20_000, 8_000
DELTA = 1e-6
SETTINGS = [(rounds, bins) for rounds in (30, 100, 300) for bins in (8, 32)]  # of DP-EBM
CHOOSING = 3  # seeds that choose among the settings
BINS = 10  # of equal counts, for calibration
MOST_CODES = 200  # categories of a column that gradient boosting takes as they are
MEASURES = ("accuracy", "auc", "log_loss", "calibration", "seconds")
LEVEL, NO_PUBLIC, LARGE = 0.003, 0.008, 3_000  # what counts as level; without public rows
RARE = 0.9  # a larger share of one class makes accuracy useless for choosing settings

Floats = NDArray[np.float64]


class Cell(NamedTuple):
    """One fit; the model is a name in ``MODELS``, for DP-EBM with its rounds and bins."""

    table: str
    rows: int
    model: str
    seed: int
    public: bool
    epsilon: float


class Split(NamedTuple):
    """The rows of a cell; each model may use the public ones or not."""

    private: Table
    tested: Table
    public: pd.DataFrame | None


# Rows


def size_of(name: str, asked: int) -> int:
    """Return how many rows can be learnt from, if so many are asked for."""
    if name not in REAL:
        return asked
    return min(asked, len(load(name).labels) - PUBLIC - TESTED_AT_LEAST)


def split(cell: Cell) -> Split:
    """Return the same rows for all models; a made-up table has other rows for each seed."""
    table = load(cell.table, PUBLIC + TESTED + cell.rows, cell.seed)
    order = np.random.default_rng(cell.seed).permutation(len(table.labels))
    tested = order[PUBLIC + cell.rows :][-TESTED:]
    return Split(
        table.take(order[PUBLIC : PUBLIC + cell.rows]),
        table.take(tested),
        table.take(order[:PUBLIC]).rows if cell.public else None,
    )


def _bounds(table: Table) -> dict[str, tuple[float, float]]:
    """Return the range of each column of numbers or dates, dates in days since the first one."""
    found = {}
    for name, declared in (table.declared | table.guesses).items():
        if not isinstance(declared, list):
            low, high = declared[:2]
            found[name] = (0, (high - low).days) if hasattr(low, "year") else (low, high)
    return found


def plain(table: Table) -> pd.DataFrame:
    """Return the rows as peers read them: text or numbers, dates as days, gaps in text a word."""
    found: dict[Any, Any] = {}
    for name, column in table.rows.items():
        if pd.api.types.is_datetime64_any_dtype(column):
            since = pd.Timestamp(table.declared[str(name)][0])
            found[name] = (column - since).dt.total_seconds() / 86_400
        elif str(name) in _bounds(table):
            found[name] = column.astype(np.float64)
        else:
            found[name] = column.astype(object).where(column.notna(), "missing").astype(str)
    return pd.DataFrame(found)


def filled(rows: pd.DataFrame, table: Table) -> pd.DataFrame:
    """Return rows without gaps: the middle of a range in their place, and a mark beside it."""
    found = {}
    for name, column in rows.items():
        declared = (table.declared | table.guesses).get(str(name))
        found[name] = column
        if isinstance(declared, tuple) and declared[-1] == "missing":
            found[name] = column.fillna((declared[0] + declared[1]) / 2)
            found[f"{name} missing"] = column.isna().astype(str)
    return pd.DataFrame(found)


# Models: each returns chances of the classes in the rows that are tested


def _several(model: Any, cell: Cell, table: Table) -> Any:
    """Return a model of two classes, for each class against the others if there are more."""
    if len(table.classes) == 2:
        return model
    # The copies take their randomness from the whole.
    base = model.set_params(random_state=None)
    return OneVsRest(base, table.classes, cell.epsilon, model.delta, random_state=cell.seed)


def _ours(model: Any, split: Split) -> tuple[Floats, float]:
    start = time.perf_counter()
    model.fit(split.private.rows, split.private.labels, split.public)
    seconds = time.perf_counter() - start
    if not isinstance(model, OneVsRest):
        return model.predict_proba(split.tested.rows), seconds
    scores = model.decision_function(split.tested.rows)  # chances of each class by itself
    return scores / np.maximum(scores.sum(axis=1, keepdims=True), 1e-9), seconds


def kernel(cell: Cell, split: Split, **more: Any) -> tuple[Floats, float]:
    table = split.private
    if table.classes != (0, 1):
        more["classes"] = table.classes
    model = PrivateKernelClassifier(
        cell.epsilon, DELTA, columns=table.declared, random_state=cell.seed, **more
    )
    return _ours(model, split)


def additive(cell: Cell, split: Split) -> tuple[Floats, float]:
    return kernel(cell, split, n_waves=0)


def kernel_one_vs_rest(cell: Cell, split: Split) -> tuple[Floats, float]:
    table = split.private
    model = PrivateKernelClassifier(1.0, DELTA, columns=table.declared)
    return _ours(_several(model, cell, table), split)


def logistic(cell: Cell, split: Split) -> tuple[Floats, float]:
    table = split.private
    model = PrivateLogisticRegression(
        cell.epsilon, DELTA, curves=6, columns=table.declared, random_state=cell.seed
    )
    return _ours(_several(model, cell, table), split)


def booster(cell: Cell, split: Split) -> tuple[Floats, float]:
    table = split.private
    model = PrivateBooster(
        cell.epsilon, columns=table.declared | table.guesses, random_state=cell.seed
    )
    return _ours(_several(model, cell, table), split)


def ebm(cell: Cell, split: Split) -> tuple[Floats, float]:
    from interpret.privacy import DPExplainableBoostingClassifier  # noqa: PLC0415

    rounds, bins = (int(word) for word in cell.model.split()[1:])
    bounds = _bounds(split.private)
    rows, asked = (filled(plain(part), part) for part in (split.private, split.tested))
    model = DPExplainableBoostingClassifier(
        feature_types=["continuous" if name in bounds else "nominal" for name in rows],
        epsilon=cell.epsilon,
        delta=DELTA,
        learning_rate=0.1,
        max_rounds=rounds,
        max_bins=bins,
        privacy_bounds=bounds,
        n_jobs=1,
        random_state=cell.seed,
    )
    start = time.perf_counter()
    model.fit(rows, split.private.labels)
    seconds = time.perf_counter() - start
    return np.asarray(model.predict_proba(asked)), seconds


def trees(cell: Cell, split: Split) -> tuple[Floats, float]:
    rows, asked = plain(split.private), plain(split.tested)
    bounds = _bounds(split.private)
    counts = {name: rows[name].nunique() for name in rows if name not in bounds}
    few = [name for name, count in counts.items() if count <= MOST_CODES]
    many = [name for name, count in counts.items() if count > MOST_CODES]
    code = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    encoder = make_column_transformer(
        (code, few),
        (TargetEncoder(random_state=cell.seed), many),
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    forest = HistGradientBoostingClassifier(
        categorical_features=list(range(len(few))), random_state=cell.seed
    )
    model = make_pipeline(encoder, forest)
    start = time.perf_counter()
    model.fit(rows, split.private.labels)
    seconds = time.perf_counter() - start
    return np.asarray(model.predict_proba(asked)), seconds


MODELS: dict[str, Callable[[Cell, Split], tuple[Floats, float]]] = {
    "kernel": kernel,
    "additive": additive,
    "kernel one-vs-rest": kernel_one_vs_rest,
    "logistic": logistic,
    "booster": booster,
    "ebm": ebm,
    "trees": trees,
}
TITLES = {
    "kernel": "PrivateKernelClassifier",
    "additive": "the same, additive",
    "kernel one-vs-rest": "the same, one against the rest",
    "logistic": "PrivateLogisticRegression, bins",
    "booster": "PrivateBooster, pure",
    "ebm": "DP-EBM, tuned",
    "trees": "gradient boosting, no privacy",
}


def kind(model: str) -> str:
    """Return the name of a model without settings."""
    return "ebm" if model.startswith("ebm ") else model


def fits(model: str, classes: int) -> bool:
    """Tell whether a model can be asked for so many classes."""
    return classes == 2 if model == "ebm" else classes > 2 or model != "kernel one-vs-rest"


# Measures


def reliability(chance: Floats, happened: NDArray[Any]) -> list[tuple[float, float]]:
    """Return the mean chance and the share that happened, in bins of equal counts."""
    parts = np.array_split(np.argsort(chance, kind="stable"), BINS)
    return [(float(chance[part].mean()), float(happened[part].mean())) for part in parts]


def measure(cell: Cell) -> dict[str, Any]:
    """Fit one cell and return what is kept of it."""
    given = split(cell)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chances, seconds = MODELS[kind(cell.model)](cell, given)
    labels, classes = given.tested.labels, len(given.tested.classes)
    if chances.shape != (len(labels), classes) or not np.isfinite(chances).all():
        raise ValueError(f"chances of the shape {chances.shape}, or not finite")
    found = chances.argmax(axis=1)
    chances = np.clip(chances, 1e-6, 1)
    chances /= chances.sum(axis=1, keepdims=True)
    if classes == 2:
        area = roc_auc_score(labels, chances[:, 1])
        bins = reliability(chances[:, 1], labels)
    else:
        area = roc_auc_score(labels, chances, multi_class="ovr", labels=range(classes))
        bins = reliability(chances.max(axis=1), found == labels)
    return cell._asdict() | {
        "accuracy": round(float(np.mean(found == labels)), 5),
        "auc": round(float(area), 5),
        "log_loss": round(float(log_loss(labels, chances, labels=range(classes))), 5),
        "calibration": round(float(np.mean([abs(mean - share) for mean, share in bins])), 5),
        "seconds": round(seconds, 3),
        "reliability": [(round(mean, 4), round(share, 4)) for mean, share in bins],
        "tested": len(labels),
        "largest_class": round(float(np.bincount(labels).max() / len(labels)), 4),
        "best_possible": None if given.tested.bayes is None else round(given.tested.bayes, 4),
    }


def attempt(cell: Cell) -> tuple[Cell, dict[str, Any] | str]:
    """Measure, or say why that cannot be done."""
    try:
        return cell, measure(cell)
    except (ImportError, ValueError, TypeError) as why:  # refusals are ValueErrors
        return cell, f"{type(why).__name__}: {why}"


# Runs


def read(path: Path) -> dict[Cell, dict[str, Any]]:
    """Return the cells of a file; of cells that were run again, the last."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {Cell(*(line[name] for name in Cell._fields)): line for line in lines}


def run(
    cells: Iterable[Cell],
    done: dict[Cell, dict[str, Any]],
    path: Path,
    jobs: int,
    ignored: Sequence[str] = (),
) -> None:
    """Run what is not done, and write each cell down as soon as it is there."""
    left = [cell for cell in cells if cell not in done or kind(cell.model) in ignored]
    path.parent.mkdir(parents=True, exist_ok=True)
    # Several processes with several threads each would only wait for each other.
    threads = {"inner_max_num_threads": 1} if jobs > 1 else {}
    with parallel_config("loky", n_jobs=jobs, **threads), path.open("a", encoding="utf-8") as file:
        pool = Parallel(return_as="generator_unordered")
        for place, (cell, found) in enumerate(pool(delayed(attempt)(c) for c in left), 1):
            title = f"[{place}/{len(left)}] {cell.table}, {cell.rows} rows, {cell.model}, "
            title += f"seed {cell.seed}, {'public rows' if cell.public else 'no public rows'}"
            if isinstance(found, str):
                print(f"{title}: left out; {found}", flush=True)
                continue
            done[cell] = found
            file.write(json.dumps(found) + "\n")
            file.flush()
            figures = " ".join(f"{name} {found[name]:.4f}" for name in MEASURES)
            print(f"{title}: {figures}", flush=True)


def best_setting(done: dict[Cell, dict[str, Any]], table: str, rows: int, epsilon: float) -> str:
    """Return the setting of DP-EBM that is best on the test rows, or "" if there is none."""
    found: dict[str, list[float]] = defaultdict(list)
    for cell, line in done.items():
        of = (cell.table, cell.rows, cell.epsilon) == (table, rows, epsilon)
        if of and cell.model.startswith("ebm ") and cell.seed < CHOOSING:
            found[cell.model].append(line["auc" if line["largest_class"] > RARE else "accuracy"])
    return max(found, key=lambda model: float(np.mean(found[model])), default="")


def planned(asked: argparse.Namespace, names: Sequence[str]) -> list[Cell]:
    """Return all cells that are asked for, DP-EBM with each setting for the first seeds."""
    cells = []
    both = [False] if asked.no_public else [True] if asked.only_public else [True, False]
    for name, seed, size in product(names, range(asked.seeds), asked.sizes):
        rows = size_of(name, size)
        for model in asked.models:
            settings = [model]
            if model == "ebm":
                settings = [f"ebm {rounds} {bins}" for rounds, bins in SETTINGS]
                settings = settings if seed < CHOOSING else []
            # Peers that read no public rows have one cell, whichever way is asked for.
            ways = [False] if model in {"ebm", "trees"} else both
            if fits(model, len(load(name, 10).classes)):
                cells += [
                    Cell(name, rows, setting, seed, way, asked.epsilon)
                    for setting, way in product(settings, ways)
                ]
    return list(dict.fromkeys(cells))


def chosen(
    asked: argparse.Namespace, names: Sequence[str], done: dict[Cell, dict[str, Any]]
) -> list[Cell]:
    """Return the cells of DP-EBM's best setting, for all seeds."""
    cells = []
    for name in names if "ebm" in asked.models else ():
        for rows in dict.fromkeys(size_of(name, size) for size in asked.sizes):
            model = best_setting(done, name, rows, asked.epsilon)
            if model:
                cells += [
                    Cell(name, rows, model, seed, public=False, epsilon=asked.epsilon)
                    for seed in range(asked.seeds)
                ]
    return cells


# What comes out


def summary(done: dict[Cell, dict[str, Any]], epsilon: float) -> list[dict[str, Any]]:
    """Return means and standard errors over seeds, of DP-EBM for the best setting only.

    Of seconds it is the median.
    """
    groups: dict[tuple[str, int, str, bool], list[dict[str, Any]]] = defaultdict(list)
    for cell, line in done.items():
        if cell.epsilon == epsilon:
            groups[cell.table, cell.rows, cell.model, cell.public].append(line)
    order = [*TUNING, *KEPT_ASIDE]
    runs = []
    for (table, rows, model, public), lines in groups.items():
        setting = model.split()[1:] if kind(model) == "ebm" else []
        if setting and model != best_setting(done, table, rows, epsilon):
            continue
        found: dict[str, Any] = {"table": table, "part": "tuning" if table in TUNING else "aside"}
        found |= {"rows": rows, "model": kind(model), "public": public, "seeds": len(lines)}
        if setting:
            found |= {"rounds": int(setting[0]), "bins": int(setting[1])}
        for measured in MEASURES:
            values = np.array([line[measured] for line in lines])
            if measured == "seconds":  # the first fit of a process compiles
                found[measured] = round(float(np.median(values)), 3)
                continue
            found[measured] = round(float(values.mean()), 4)
            if len(values) > 1:
                error = float(values.std(ddof=1)) / math.sqrt(len(values))
                found[f"{measured}_error"] = round(error, 4)
        found["largest_class"] = round(float(np.mean([line["largest_class"] for line in lines])), 3)
        best = [line["best_possible"] for line in lines if line["best_possible"] is not None]
        if best:
            found["best_possible"] = round(float(np.mean(best)), 4)
        runs.append(found)
    models = list(MODELS)
    return sorted(
        runs,
        key=lambda run: (
            order.index(run["table"]),
            run["rows"],
            not run["public"],
            models.index(run["model"]),
        ),
    )


def behind(runs: list[dict[str, Any]]) -> list[str]:
    """Say where the kernel classifier is behind what it should not be behind, as it was measured.

    Tables with a rare class are compared by the area under the ROC curve.
    """
    places = {(run["table"], run["rows"], run["model"], run["public"]): run for run in runs}
    found = []
    for run in (run for run in runs if run["model"] == "kernel"):
        measured = "auc" if run["largest_class"] > RARE else "accuracy"
        rivals = [("additive", run["public"], LEVEL), ("ebm", False, LEVEL)]
        rivals += [("kernel one-vs-rest", run["public"], 0.0)]
        if not run["public"] and run["rows"] >= LARGE:
            rivals += [("kernel", True, NO_PUBLIC)]
        for model, public, allowed in rivals:
            other = places.get((run["table"], run["rows"], model, public))
            lead = other[measured] - run[measured] if other else 0.0
            if lead > allowed:
                error = math.hypot(*(one.get(f"{measured}_error", 0) for one in (run, other or {})))
                found.append(
                    f"{run['table']}, {run['rows']} rows, "
                    f"{'public rows' if run['public'] else 'no public rows'}: {measured} "
                    f"{run[measured]:.4f}, {TITLES[model]} {lead:+.4f} (standard error {error:.4f})"
                )
    return found


def write(runs: list[dict[str, Any]], epsilon: float) -> None:
    """Write the summary, one line for each table, size and model."""
    head = {
        "command": " ".join(["python benchmarks/tabular.py", *sys.argv[1:]]),
        "epsilon": epsilon,
        "delta": DELTA,
        "public_rows": PUBLIC,
        "behind": behind(runs),
    }
    lines = ",\n  ".join(json.dumps(run) for run in runs)
    text = json.dumps(head, indent=1)[:-2] + f',\n "runs": [\n  {lines}\n ]\n}}\n'
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "tabular.json").write_text(text, encoding="utf-8")


def show(runs: list[dict[str, Any]]) -> None:
    """Print accuracies, one line for each table and size, and where the kernel is behind."""
    lines: dict[tuple[str, int], list[str]] = defaultdict(list)
    for run in runs:
        way = " (public)" if run["public"] else ""
        lines[run["table"], run["rows"]].append(f"{run['model']}{way} {run['accuracy']:.3f}")
    for (table, rows), words in lines.items():
        print(f"{table}, {rows} rows: {', '.join(words)}")
    for line in behind(runs):
        print(f"Behind: {line}")


def plot(runs: list[dict[str, Any]]) -> None:
    """Draw accuracy against rows, one panel for each table; public rows where they are used."""
    names = list(dict.fromkeys(run["table"] for run in runs))
    width = min(5, len(names))
    height = math.ceil(len(names) / width)
    figure, panels = plt.subplots(height, width, figsize=(3.4 * width, 2.8 * height), squeeze=False)
    for panel in panels.flat[len(names) :]:
        panel.axis("off")
    for name, panel in zip(names, panels.flat, strict=False):
        of_table = [run for run in runs if run["table"] == name]
        for place, model in enumerate(MODELS):
            of = [run for run in of_table if run["model"] == model]
            kept = [run for run in of if run["public"]] or of
            if kept:
                panel.errorbar(
                    [run["rows"] for run in kept],
                    [run["accuracy"] for run in kept],
                    [run.get("accuracy_error", 0) for run in kept],
                    marker="o",
                    markersize=3,
                    color=f"C{place}",
                    linestyle="--" if model == "trees" else "-",
                    label=TITLES[model],
                )
        best = [run["best_possible"] for run in of_table if "best_possible" in run]
        if best:
            panel.axhline(float(np.mean(best)), color="grey", linewidth=0.8, linestyle=":")
        sizes = sorted({run["rows"] for run in of_table})
        panel.set_xscale("log")
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
        panel.minorticks_off()
        panel.set_title(name, fontsize=9)
        panel.tick_params(labelsize=7)
    drawn: dict[str, Any] = {}
    for panel in panels.flat:
        handles, titles = panel.get_legend_handles_labels()
        drawn |= dict(zip(titles, handles, strict=True))
    titles = [title for title in TITLES.values() if title in drawn]
    figure.suptitle("Accuracy against private rows (dotted: best possible)", fontsize=10)
    figure.legend(
        [drawn[title] for title in titles], titles, loc="lower center", ncols=4, fontsize=8
    )
    figure.tight_layout(rect=(0, 0.5 / (2.8 * height), 1, 1))
    figure.savefig(RESULTS / "tabular.png", dpi=110)
    plt.close(figure)


def plot_reliability(done: dict[Cell, dict[str, Any]], epsilon: float) -> None:
    """Draw what the kernel classifier says against what happens, at the largest size."""
    found: dict[str, dict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for cell, line in done.items():
        if cell.model == "kernel" and cell.public and cell.epsilon == epsilon:
            found[cell.table][cell.rows].append(line["reliability"])
    if not found:
        return
    figure, panel = plt.subplots(figsize=(6.5, 6))
    panel.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    for name, sizes in found.items():
        rows = max(sizes)
        said, happened = np.mean(sizes[rows], axis=0).T
        panel.plot(said, happened, marker="o", markersize=3, label=f"{name}, {rows:,} rows")
    panel.set_xlabel("chance that PrivateKernelClassifier gives (ten bins of equal counts)")
    panel.set_ylabel("share that happened")
    panel.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(RESULTS / "tabular_reliability.png", dpi=110)
    plt.close(figure)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Private classifiers on many tables.")
    parser.add_argument("--tables", nargs="+", choices=[*TUNING, *KEPT_ASIDE])
    parser.add_argument("--aside", action="store_true", help="the tables that are kept aside")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--again", nargs="+", choices=list(MODELS), default=[])
    parser.add_argument("--epsilon", type=float, default=1.0)
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--no-public", action="store_true", help="only without public rows")
    ways.add_argument("--only-public", action="store_true", help="only with public rows")
    parser.add_argument("--jobs", type=int, default=1, help="each has one thread if there are more")
    parser.add_argument("--data", help=f"folder with cardio.csv.gz (default: ${ELSEWHERE})")
    parser.add_argument("--cells", type=Path, default=CELLS, help="file of cells that are done")
    return parser.parse_args()


def main() -> None:
    asked = options()
    if asked.data:
        os.environ[ELSEWHERE] = asked.data
    names = []
    for name in asked.tables or (KEPT_ASIDE if asked.aside else TUNING):
        try:
            load(name, 10)
        except FileNotFoundError as why:
            print(f"{name}: left out; {why}")
        else:
            names.append(name)
    done = read(asked.cells)
    run(planned(asked, names), done, asked.cells, asked.jobs, asked.again)
    run(chosen(asked, names, done), done, asked.cells, asked.jobs)
    runs = summary(done, asked.epsilon)
    show(runs)
    write(runs, asked.epsilon)
    plot(runs)
    plot_reliability(done, asked.epsilon)


if __name__ == "__main__":
    main()
