"""``cumae theorems``: the sizes that the papers ask for, beside those that cumae needs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cumae.cli.options import AsJson, above_zero, below_one, checked

# What takes seconds to load is imported by the functions that use it: other commands start faster.
if TYPE_CHECKING:
    from cumae.theorems.stated import Theorem

inside = checked(lambda value: 0 < value < 1, "above 0 and below 1")
Alpha = Annotated[float, typer.Option("--alpha", callback=inside, help="The error to allow.")]
Beta = Annotated[
    float, typer.Option("--beta", callback=inside, help="The chance of a larger error to allow.")
]
Epsilon = Annotated[float, typer.Option("--epsilon", callback=above_zero, help="Privacy budget.")]
Delta = Annotated[
    float, typer.Option("--delta", callback=below_one, help="Chance that the promise fails.")
]
Dimension = Annotated[
    int, typer.Option("--vc", min=1, help="VC dimension of the rules: 1 for thresholds.")
]
Bits = Annotated[
    int, typer.Option("--bits", min=1, help="Binary logarithm of how many values there may be.")
]
MaxQueries = Annotated[
    int, typer.Option("--max-queries", min=1, help="How many queries are to be answered.")
]
Ours = Annotated[
    bool,
    typer.Option(
        "--ours/--no-ours",
        help="Also try the algorithms on made-up rows until they err as little: some seconds.",
    ),
]
CUT = 0.3  # of the threshold that made-up rows follow
RUNS = 5  # of an algorithm with one number of rows
FEWEST_ROWS, MOST_ROWS = 64, 32_768
UNLABELLED_FOR_EACH = 20  # rows without a label, for each row with one
ASKED = 200  # new rows by which an error is judged
# Functions of theorems about an algorithm, and the class that runs it.
ALGORITHMS = {
    "generic_rows": "GenericLearner",
    "boosted_rows": "IterLabelBoost",
    "paper_rows": "GenericBBL",
    "subsamp_sizes": "QueryRelease",
    "agnostic_sizes": "AgnosticQueryRelease",
    "universal_rows": "UniversalQueryRelease",
    "semi_private_rows": "SemiPrivateLearner",
}


def theorems(
    alpha: Alpha = 0.05,
    beta: Beta = 0.05,
    epsilon: Epsilon = 0.9,
    delta: Delta = 1e-6,
    vc: Dimension = 1,
    bits: Bits = 20,
    max_queries: MaxQueries = 1_000,
    ours: Ours = True,
    as_json: AsJson = False,
) -> None:
    """Print what each theorem of the papers asks for at your alpha, beta, epsilon and delta.

    Beside theorems about an algorithm stands what cumae needs for it: the fewest rows, up to a
    factor of two, with which all of five runs erred by alpha at most. It is tried on made-up rows
    that a threshold in one column labels, and is no bound for other rows. docs/theorems.md states
    the theorems in full. Most of them ask for an epsilon below 1.

    Example: `cumae theorems --alpha 0.05 --beta 0.05 --epsilon 0.9 --delta 1e-6 --no-ours`
    """
    from cumae.cli.files.messages import messages_shown, paragraph  # noqa: PLC0415
    from cumae.theorems import THEOREMS  # noqa: PLC0415

    given = {"alpha": alpha, "beta": beta, "epsilon": epsilon, "delta": delta}
    given |= {"vc": vc, "bits": bits, "max_queries": max_queries}
    with messages_shown():
        needed = _needed(alpha, epsilon, delta, max_queries) if ours else {}
        found = [_facts(one, given, needed) for one in THEOREMS]
    if as_json:
        typer.echo(json.dumps({"given": given, "theorems": found}, indent=1))
        return
    for one in found:
        line = f"{one['citation']}. {one['statement']} The paper: {one['size']}."
        if one["ours"]:
            line += f" {one['ours']}"
        typer.echo(paragraph(line, hanging="  "))


def _facts(one: Theorem, given: dict[str, Any], needed: dict[str, str]) -> dict[str, Any]:
    """Return what a theorem asks for, and what cumae needs."""
    from cumae.errors import InvalidParameter  # noqa: PLC0415
    from cumae.theorems.stated import size_text as shown  # noqa: PLC0415

    example = one.example
    example |= {name: value for name, value in given.items() if name in example}
    try:
        size = shown(one.function(**example))
    except InvalidParameter as error:
        size = f"it says nothing here: {error}"
    found = {"citation": one.citation, "statement": one.statement, "size": size.rstrip(".")}
    return found | {"ours": needed.get(one.function.__name__, "")}


def _needed(alpha: float, epsilon: float, delta: float, max_queries: int) -> dict[str, str]:
    """Return what is said about each algorithm: the rows with which it errs little enough."""
    from cumae.cli.files.messages import say  # noqa: PLC0415

    found = {}
    for theorem, kind in ALGORITHMS.items():
        say(f"Trying {kind} on made-up rows ...")
        rows = FEWEST_ROWS
        while rows <= MOST_ROWS and not _is_right(kind, rows, alpha, epsilon, delta, max_queries):
            rows *= 2
        few = rows <= MOST_ROWS
        found[theorem] = (
            f"{kind} needs {rows:,} rows."
            if few
            else (f"{kind} needs more than {MOST_ROWS:,} rows.")
        )
    return found


def _is_right(
    kind: str, rows: int, alpha: float, epsilon: float, delta: float, max_queries: int
) -> bool:
    """Tell whether all runs with so many rows err by alpha at most."""
    import warnings  # noqa: PLC0415

    from cumae.errors import CumaeError  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return all(
                _error(kind, rows, epsilon, delta, max_queries) <= alpha for _ in range(RUNS)
            )
        except CumaeError:  # too few rows for it
            return False


def _error(kind: str, rows: int, epsilon: float, delta: float, max_queries: int) -> float:
    """Return the error of one run on made-up rows."""
    import numpy as np  # noqa: PLC0415

    import cumae  # noqa: PLC0415
    from cumae.concepts import Thresholds  # noqa: PLC0415
    from cumae.randomness import integers, source_for  # noqa: PLC0415

    def drawn(count: int) -> Any:
        return (integers(2**20, count, source_for(None)) / 2**20).reshape(-1, 1)

    X, new = drawn(rows), drawn(ASKED)
    y = (X[:, 0] > CUT).astype(int)
    rules = Thresholds()
    shared: dict[str, Any] = {"epsilon": epsilon, "columns": [(0, 1)]}
    pure = kind in ("GenericLearner", "IterLabelBoost", "SemiPrivateLearner")
    shared |= {} if pure else {"delta": delta}
    if kind in ("GenericLearner", "IterLabelBoost"):
        X = np.concatenate([X, drawn(UNLABELLED_FOR_EACH * rows)])
        y = np.append(y, np.full(UNLABELLED_FOR_EACH * rows, -1))
    if kind == "IterLabelBoost":
        base = cumae.PrivateLearner(rules, epsilon=0.3 * epsilon, columns=[(0, 1)])
        model: Any = cumae.IterLabelBoost(base, rules, epsilon).fit(X, y)
    elif kind == "SemiPrivateLearner":
        model = cumae.SemiPrivateLearner(rules, **shared).fit(X, y, drawn(rows))
    else:
        if kind in ("QueryRelease", "AgnosticQueryRelease"):
            shared["max_queries"] = max(max_queries, ASKED)
        more = {"concept_class": rules, **shared}
        more |= {} if pure else {"progress": False}
        model = getattr(cumae, kind)(**more).fit(X, y)
    return float(np.mean(model.predict(new) != (new[:, 0] > CUT)))
