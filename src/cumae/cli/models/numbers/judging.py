"""The figures of ``cumae score`` about a model of a number."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import typer

from cumae.cli.files.checks import Inspection
from cumae.cli.files.fitted import columns_in, columns_of, form_for
from cumae.cli.files.messages import paragraph
from cumae.cli.files.numbers import NumberColumn
from cumae.cli.files.tables import read_table_file
from cumae.errors import InvalidParameter

COVERAGES = (0.5, 0.9, 0.95)


def is_of_numbers(fitted: Any) -> bool:
    """Tell whether a fitted model predicts numbers."""
    return hasattr(fitted, "predict_interval")


def score_numbers(
    fitted: Any, data: str, label: str, form: Any, *, exact: bool, dry_run: bool, as_json: bool
) -> None:
    """Tell how good a model of a number is on public rows.

    Parameters
    ----------
    fitted : NumberLearner
        The model.
    data, label : str
        The file of rows, and its column of numbers.
    form : CsvForm
        How CSV is written.
    exact : bool
        Whether rows are public; others are refused.
    dry_run, as_json : bool
        As in the command.
    """
    if not exact:
        raise InvalidParameter(
            f"a {type(fitted).__name__} has no noisy score yet: on public rows give --exact."
        )
    columns = columns_of(fitted)
    looking: list[Any] = []

    def watch(head: Any) -> Any:
        looking.append(NumberColumn(head, label))
        looking.append(Inspection(columns_in(head, columns), *looking))
        return looking[-1].look

    table = read_table_file(data, form_for(columns, form), watch=watch)
    numbers, inspection = looking
    rows, truth = inspection.end(table), numbers.places
    facts: dict[str, Any] = {"rows": len(truth), "private": False, "dry_run": dry_run}
    if not dry_run:
        off = np.abs(fitted.predict(rows) - truth)
        facts |= {
            "r2": fitted.score(rows, truth),
            "mean_absolute_error": float(off.mean()),
            "root_mean_squared_error": float(np.sqrt((off**2).mean())),
            "inside": {},
        }
        for coverage in COVERAGES:
            low, high = fitted.predict_interval(rows, coverage).T
            facts["inside"][f"{coverage:g}"] = float(((low <= truth) & (truth <= high)).mean())
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
        return
    if not dry_run:
        typer.echo(
            f"R2: {facts['r2']:.3f}; mean absolute error: {facts['mean_absolute_error']:.4g}; root "
            f"mean squared error: {facts['root_mean_squared_error']:.4g}."
        )
        held = ", ".join(
            f"{100 * share:.1f} % ({100 * float(name):g} % intervals)"
            for name, share in facts["inside"].items()
        )
        typer.echo(paragraph(f"Intervals hold {held}."))
    typer.echo(paragraph("Exact, and free: only for public rows. On private rows it is a leak."))
