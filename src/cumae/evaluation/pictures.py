"""Pictures of evaluations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cumae.errors import InvalidParameter
from cumae.evaluation.figures import Curve
from cumae.extras import PLOT, needing

WIDTH, HEIGHT = 4.4, 3.8  # inches of a picture
ACROSS = 3  # pictures in a row
SHADE = 0.2


def draw(found: Any, kind: str, axes: Any = None) -> Any:
    """Draw one picture, or all that there are, and return the matplotlib figure.

    Parameters
    ----------
    found : Evaluation
        The figures.
    kind : str
        A key of ``PICTURES``, or ``"all"``.
    axes : matplotlib axes, or None
        Where to draw a single picture; None for a new figure.
    """
    if kind not in ("all", *PICTURES):
        raise InvalidParameter(f"kind={kind!r} is none of all, {', '.join(PICTURES)}.")
    chosen = [one for one in PICTURES if _there(found, one)] if kind == "all" else [kind]
    if not all(_there(found, one) for one in chosen):
        missing = "subgroups" if kind == "groups" else "chances"
        raise InvalidParameter(f"kind={kind!r}: this evaluation has no {missing}.")
    if axes is not None:
        if len(chosen) > 1:
            raise InvalidParameter("axes are for a single picture; name its kind.")
        PICTURES[kind](found, axes)
        return axes.figure
    with needing(*PLOT):
        from matplotlib import pyplot as plt  # noqa: PLC0415
    down, across = -(-len(chosen) // ACROSS), min(ACROSS, len(chosen))
    size = (WIDTH * across, HEIGHT * down)
    figure, panels = plt.subplots(down, across, figsize=size, squeeze=False, layout="constrained")
    for panel in panels.ravel()[len(chosen) :]:
        panel.set_axis_off()
    for one, panel in zip(chosen, panels.ravel(), strict=False):
        PICTURES[one](found, panel)
    return figure


def _there(found: Any, kind: str) -> bool:
    """Tell whether an evaluation has what a picture shows."""
    if kind == "groups":
        return bool(found.groups)
    return kind == "confusion" or bool(found.overall.roc)


def _roc(found: Any, axes: Any) -> None:
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for place, (label, curve) in enumerate(found.overall.roc.items()):
        area = found.overall.auc[label]
        _curve(axes, curve, place, f"{label}: area {_range(area)}", ((1.0, 1.0), (0.0, 0.0)))
    _frame(axes, "ROC", "false positive rate", "sensitivity")


def _precision_recall(found: Any, axes: Any) -> None:
    for place, (label, curve) in enumerate(found.overall.precision_recall.items()):
        area = found.overall.average_precision[label]
        _curve(axes, curve, place, f"{label}: area {_range(area)}", ())
    _frame(axes, "Precision and recall", "recall", "precision")


def _curve(axes: Any, curve: Curve, place: int, name: str, ends: tuple[Any, ...]) -> None:
    """Draw a curve with the intervals of its points."""
    x, y = np.asarray(curve.across.value), np.asarray(curve.up.value)
    order = np.argsort(-x, kind="stable")
    if ends:
        x, y = np.append(x, [one[0] for one in ends]), np.append(y, [one[1] for one in ends])
    line = np.lexsort((y, x))
    axes.plot(x[line], y[line], color=f"C{place}", linewidth=1.2, label=name)
    across = np.asarray(curve.across.value)[order]
    low, high = np.asarray(curve.up.low)[order], np.asarray(curve.up.high)[order]
    axes.fill_between(across, low, high, color=f"C{place}", alpha=SHADE, linewidth=0)


def _calibration(found: Any, axes: Any) -> None:
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for place, (label, one) in enumerate(found.overall.calibration.items()):
        middle, half = (one.least + one.most) / 2, (one.most - one.least) / 2
        value = np.asarray(one.share.value)
        sides = np.maximum([value - one.share.low, one.share.high - value], 0.0)
        axes.errorbar(
            middle, value, yerr=sides, xerr=half, fmt="o", markersize=3, linewidth=1,
            color=f"C{place}", label=str(label),
        )  # fmt: skip
    _frame(axes, "Calibration", "chance that the model gives", "share that is of the class")


def _confusion(found: Any, axes: Any) -> None:
    one, names = found.overall.confusion, [str(label) for label in found.classes]
    shares = np.asarray(one.value)
    axes.imshow(shares, cmap="Blues", vmin=0.0)
    low, high = np.asarray(one.low), np.asarray(one.high)
    for (row, column), share in np.ndenumerate(shares):
        ends = f"{100 * low[row, column]:.1f} to {100 * high[row, column]:.1f}"
        color = "white" if share > shares.max() / 2 else "black"
        text = f"{100 * share:.1f} %\n{ends}"
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=color)
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set_title("Shares of all rows", fontsize=10)
    axes.set_xlabel("answer")
    axes.set_ylabel("class")


def _by_group(found: Any, axes: Any) -> None:
    parts = {"all rows": found.overall} | {str(n): one for n, one in found.groups.items()}
    for place, one in enumerate(parts.values()):
        figures = (("accuracy", one.accuracy, "C0"), ("commonest class", one.commonest, "0.6"))
        for shift, (name, figure, color) in zip((-0.1, 0.1), figures, strict=True):
            axes.plot([figure.low, figure.high], [place + shift] * 2, color=color, linewidth=2)
            axes.plot(figure.value, place + shift, "o", color=color, markersize=4,
                      label=name if place == 0 else None)  # fmt: skip
    axes.set_yticks(range(len(parts)), list(parts))
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_title("Subgroups", fontsize=10)
    axes.set_xlabel("accuracy")
    axes.legend(fontsize=8)


def _range(one: Any) -> str:
    return f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})"


def _frame(axes: Any, title: str, across: str, up: str) -> None:
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.legend(fontsize=7)


PICTURES: dict[str, Callable[[Any, Any], None]] = {
    "roc": _roc,
    "precision_recall": _precision_recall,
    "calibration": _calibration,
    "confusion": _confusion,
    "groups": _by_group,
}
