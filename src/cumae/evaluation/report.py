"""Evaluations as lines of text and as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cumae.counting.intervals import Figure
from cumae.evaluation.figures import Calibration, Curve, Figures

LOSSES = ("log loss", "brier")


def lines_of(found: Any) -> Iterator[str]:
    """Yield an evaluation as lines for people.

    Parameters
    ----------
    found : Evaluation
        The figures.
    """
    chance = f"{100 * found.confidence:g} %"
    yield f"{found.rows:,} test rows; intervals hold the truth with a chance of {chance} each."
    if found.trained_on:
        yield "Rows among these trained the model: on new rows it is worse than this."
    # Of two classes, only figures of the second are printed.
    left_out = f" of {found.classes[0]}" if len(found.classes) == 2 else None
    yield from _figure_lines(found.overall, left_out)
    for name, one in found.groups.items():
        yield f"Subgroup {name}: {one.share} of the rows"
        yield from (f"  {line}" for line in _figure_lines(one, left_out))
    if found.guarantee is not None:
        yield str(found.guarantee)


def _figure_lines(found: Figures, left_out: str | None) -> Iterator[str]:
    """Yield the figures of one subgroup, without those whose name ends with ``left_out``."""
    always = f"always {found.commonest_class}"
    rows = [("accuracy", found.accuracy), (always, found.commonest)]
    for name, one in found.named():
        if name in ("accuracy", "commonest", "share") or (left_out and name.endswith(left_out)):
            continue
        rows.append((name, one))
    width = max(len(name) for name, _ in rows)
    for name, one in rows:
        yield f"{name:<{width}}  {_number(one) if name in LOSSES else one}"


def _number(one: Figure) -> str:
    return f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"


def facts_of(found: Any) -> dict[str, Any]:
    """Return an evaluation as plain values that JSON can hold.

    Parameters
    ----------
    found : Evaluation
        The figures.
    """
    return {
        "rows": found.rows,
        "classes": list(found.classes),
        "trained_on": found.trained_on,
        "confidence": found.confidence,
        "guarantee": None if found.guarantee is None else found.guarantee.to_dict(),
        "overall": _plain(found.overall),
        "groups": {str(name): _plain(one) for name, one in found.groups.items()},
    }


def _plain(value: Any) -> Any:
    """Return a value of this package as JSON can hold it."""
    if isinstance(value, Figure | Figures | Curve | Calibration):
        return {name: _plain(part) for name, part in vars(value).items()}
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    return np.asarray(value).tolist() if isinstance(value, np.ndarray) else value
