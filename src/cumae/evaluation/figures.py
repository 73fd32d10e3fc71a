"""Figures of one subgroup, or of all rows, from the noisy tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.counting.intervals import (
    Again,
    Figure,
    averaged,
    mean_loss,
    precision_area,
    proportion,
    ranking_area,
)
from cumae.counting.table import NoisyTables, Partition

MOST_POINTS = 200  # of a curve
CALIBRATION_BINS = 10


@dataclass(frozen=True)
class Curve:
    """Points of a curve, each with intervals.

    Parameters
    ----------
    thresholds : array of float
        The chance above which a row counts as one of the class, for each point.
    across, up : Figure
        Both coordinates: false positive rate and sensitivity of a ROC curve, recall and precision
        of a precision-recall curve.
    """

    thresholds: Floats
    across: Figure
    up: Figure


@dataclass(frozen=True)
class Calibration:
    """The share of rows that are of a class, for ranges of the chance that the model gives.

    Parameters
    ----------
    least, most : array of float
        The ends of each range.
    share : Figure
        The share of rows in each range that are of the class.
    """

    least: Floats
    most: Floats
    share: Figure


@dataclass(frozen=True)
class Figures:
    """All figures of one subgroup, or of all rows.

    Parameters
    ----------
    share : Figure
        Its share of all test rows.
    accuracy : Figure
        Share of right answers.
    commonest : Figure
        Share of the commonest class: the accuracy of one who always says it.
    commonest_class : object
        This class, as the noisy counts tell.
    balanced_accuracy : Figure
        Mean of the sensitivities of all classes.
    confusion : Figure
        Shares of rows for each class (down) and answer (across), in arrays.
    sensitivity, specificity, precision : mapping from a class to Figure
        Share of right answers among rows of the class, among rows of other classes, and among the
        answers that name it.
    auc, average_precision : mapping from a class to Figure
        Areas under the ROC curve and the precision-recall curve.
    macro_auc : Figure, or None
        Mean of the areas of all classes, for more than two.
    roc, precision_recall : mapping from a class to Curve
        These curves.
    calibration : mapping from a class to Calibration
        The calibration curve.
    log_loss, brier : Figure, or None
        Means of these losses. The Brier score of two classes is (chance - outcome)^2 of the second,
        from 0 to 1; of more classes, it is the sum over classes, from 0 to 2.
    """

    share: Figure
    accuracy: Figure
    commonest: Figure
    commonest_class: Any
    balanced_accuracy: Figure
    confusion: Figure
    sensitivity: dict[Any, Figure]
    specificity: dict[Any, Figure]
    precision: dict[Any, Figure]
    auc: dict[Any, Figure]
    average_precision: dict[Any, Figure]
    macro_auc: Figure | None
    roc: dict[Any, Curve]
    precision_recall: dict[Any, Curve]
    calibration: dict[Any, Calibration]
    log_loss: Figure | None
    brier: Figure | None

    def named(self) -> Iterator[tuple[str, Figure]]:
        """Yield each figure that is a single number, with a name of words."""
        for one in fields(self):
            found, words = getattr(self, one.name), one.name.replace("_", " ")
            if isinstance(found, Figure) and one.name != "confusion":
                yield words, found
            elif isinstance(found, dict):
                for label, inner in found.items():
                    if isinstance(inner, Figure):
                        yield f"{words} of {label}", inner


@dataclass(frozen=True)
class _Group:
    """The tables as one subgroup sees them; ``places`` are the subgroups that it consists of."""

    tables: NoisyTables
    places: Integers
    confidence: float

    def of(self, part: Partition) -> tuple[Integers, int]:
        """Return labels x bins, and how many cells each of these counts comes from."""
        return part.counts[self.places].sum(axis=0), len(self.places)

    def share_of(
        self, part: Partition, top: Any, bottom: Any, level: float | None = None
    ) -> Figure:
        """Return a proportion of counts, given which cells are counted.

        ``top`` and ``bottom`` are arrays of bool; their last two axes are labels x bins.
        """
        counts, times = self.of(part)
        some, more = ((one * counts).sum(axis=(-2, -1)) for one in (top, bottom))
        cells, all_cells = (times * np.asarray(one).sum(axis=(-2, -1)) for one in (top, bottom))
        level = self.confidence if level is None else level
        return proportion(part, some, more, cells, all_cells, level)


@claim("EVAL")
def figures_of(
    tables: NoisyTables, classes: list[Any], places: Integers, confidence: float, clip: float
) -> Figures:
    """Return all figures of some subgroups together.

    Parameters
    ----------
    tables : NoisyTables
        The noisy counts.
    classes : list
        The labels.
    places : array of int
        The subgroups.
    confidence : float
        Chance that an interval holds the true figure.
    clip : float
        Chances below it count as this in the log loss.
    """
    group = _Group(tables, places, confidence)
    answers = _answer_figures(group, classes)
    scores = tables.layout.scores
    named = classes[1:] if len(scores) == 1 else classes
    found: dict[str, Any] = {
        name: {} for name in ("auc", "average_precision", "roc", "precision_recall", "calibration")
    }
    for place in range(len(scores)):
        for name, one in _score_figures(group, place).items():
            found[name][named[place]] = one
    macro = averaged(list(found["auc"].values())) if len(scores) > 1 else None
    losses = {} if not scores else _losses(group, clip)
    return Figures(
        **answers,
        **found,
        macro_auc=None if macro is None else macro.plain(),
        log_loss=losses.get("log_loss"),
        brier=losses.get("brier"),
    )


def _answer_figures(group: _Group, classes: list[Any]) -> dict[str, Any]:
    """Return the figures that follow from classes and answers."""
    part, answer = group.tables.answers, group.tables.answer_of_bin
    n_classes, n_bins = part.counts.shape[1:]
    label = np.broadcast_to(np.arange(n_classes)[:, None], (n_classes, n_bins))
    everything = np.ones((n_classes, n_bins), dtype=bool)
    right = label == answer
    confusion = np.array(
        [[(label == j) & (answer == one) for one in range(n_classes)] for j in range(n_classes)]
    )
    each = np.arange(n_classes)[:, None, None]
    is_class, is_answer = label == each, np.broadcast_to(answer == each, (n_classes, *label.shape))
    sensitivity = group.share_of(part, is_class & is_answer, is_class)
    specificity = group.share_of(part, ~is_class & ~is_answer, ~is_class)
    precision = group.share_of(part, is_class & is_answer, is_answer)
    commonest, place = _commonest(group, part, is_class, everything)
    counts, times = group.of(part)
    size = times * everything.sum()
    share = Figure(1.0, 1.0, 1.0)
    if size < part.counts.size:
        everybody = (part.counts.sum(), size, part.counts.size)
        share = proportion(part, counts.sum(), *everybody, group.confidence).plain()
    return {
        "share": share,
        "accuracy": group.share_of(part, right, everything).plain(),
        "commonest": commonest.plain(),
        "commonest_class": classes[place],
        "balanced_accuracy": averaged(_single(sensitivity)).plain(),
        "confusion": group.share_of(part, confusion, everything[None, None]).plain(),
        "sensitivity": dict(zip(classes, _single(sensitivity), strict=True)),
        "specificity": dict(zip(classes, _single(specificity), strict=True)),
        "precision": dict(zip(classes, _single(precision), strict=True)),
    }


def _single(found: Figure) -> list[Figure]:
    """Return the figures of an array, one by one."""
    parts = zip(found.value.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
    return [Figure(*part) for part in parts]


def _commonest(
    group: _Group, part: Partition, is_class: Any, everything: Any
) -> tuple[Figure, int]:
    """Return the share of the commonest class, and its place.

    Its lower end is the largest of all classes, each a little lower, as any of them may by chance
    be above its truth; its upper end is the largest of all.
    """
    level = 1 - (1 - group.confidence) / len(is_class)
    low = group.share_of(part, is_class, everything, level).low.max()
    shares = group.share_of(part, is_class, everything)
    found = Figure(shares.value.max(), low, shares.high.max())
    return found.within(0.0, 1.0), int(np.argmax(shares.value))


def _score_figures(group: _Group, place: int) -> dict[str, Any]:
    """Return areas and curves of the chance of one class."""
    part, bins = group.tables.partition(f"score {place}"), group.tables.layout.scores[place]
    counts, times = group.of(part)
    exact = bins.low == bins.high
    area = (part.law.variance * times, counts[1], counts[0], exact, group.confidence)
    points = _some(len(bins) - 1, MOST_POINTS)
    above = np.append(counts[:, ::-1].cumsum(axis=1)[:, ::-1], [[0], [0]], axis=1)
    cells = times * (len(bins) - 1 - points)
    seen = above[:, points + 1]
    thresholds = bins.high[points]
    all_cells = times * len(bins)
    rates = [
        proportion(
            part,
            seen[one],
            counts[one].sum(),
            cells,
            all_cells,
            group.confidence,
            _class_again(group, place, one),
        )
        for one in (0, 1)
    ]
    precise = proportion(part, seen[1], seen.sum(axis=0), cells, 2 * cells, group.confidence)
    return {
        "auc": ranking_area(*area).plain(),
        "average_precision": precision_area(*area).plain(),
        "roc": Curve(thresholds, *rates),
        "precision_recall": Curve(thresholds, rates[1], precise),
        "calibration": _calibration(group, part, place),
    }


def _class_again(group: _Group, place: int, one: int) -> Again | None:
    """Return the count of a class, or of all others, in the table of answers, if it is another."""
    if len(group.tables.layout.scores) == 1:
        return None
    part = group.tables.answers
    counts, times = group.of(part)
    wanted = (np.arange(len(counts)) == place) == bool(one)
    rows = counts[wanted]
    return Again(part, rows.sum(), times * rows.size)


def _some(count: int, most: int) -> Integers:
    """Return so many places at most, evenly among ``count``."""
    return np.unique(np.linspace(0, max(count - 1, 0), min(max(count, 1), most)).astype(np.int64))


def _calibration(group: _Group, part: Partition, place: int) -> Calibration:
    """Return the calibration curve of one class, with a few joined bins."""
    bins = group.tables.layout.scores[place]
    counts, times = group.of(part)
    if bins.hides:
        first = np.arange(CALIBRATION_BINS) * len(bins) // CALIBRATION_BINS
    else:  # public rows: equally many in each
        seen = counts.sum(axis=0).cumsum()
        wanted = seen[-1] * np.arange(CALIBRATION_BINS) / CALIBRATION_BINS
        first = np.searchsorted(seen, wanted, side="right")
    first = np.unique(np.minimum(first, len(bins) - 1))
    joined = np.add.reduceat(counts, first, axis=1)
    cells = times * np.diff(np.append(first, len(bins)))
    share = proportion(part, joined[1], joined.sum(axis=0), cells, 2 * cells, group.confidence)
    last = np.append(first[1:], len(bins)) - 1
    return Calibration(bins.low[first], bins.high[last], share)


def _losses(group: _Group, clip: float) -> dict[str, Figure]:
    """Return the mean log loss and the mean Brier loss."""
    layout = group.tables.layout
    where = np.zeros(layout.groups)
    where[group.places] = 1.0
    part = group.tables.of_own_class
    logs = np.zeros((2, *part.counts.shape[1:]))
    if len(layout.scores) == 1:
        low, high = layout.scores[0].low, layout.scores[0].high
        least, most = np.stack([1 - high, low]), np.stack([1 - low, high])  # of the own class
        logs = -np.log(np.clip(np.stack([most, least]), clip, 1 - clip))
        squares = np.stack([(1 - most) ** 2, (1 - least) ** 2])
        brier, inside = part, squares
    else:
        for place, bins in enumerate(layout.scores):
            ends = np.stack([bins.high, bins.low])
            logs[:, place, : len(bins)] = -np.log(np.clip(ends, clip, 1 - clip))
        brier = group.tables.partition("losses")
        inside = np.stack([layout.losses[0].low, layout.losses[0].high])[:, None, :]
    return {
        "log_loss": _mean_over(group, part, logs, where).plain(),
        "brier": _mean_over(group, brier, inside, where).plain(),
    }


def _mean_over(group: _Group, part: Partition, ends: Floats, where: Floats) -> Figure:
    """Return the mean of a loss, given its least and its most in each cell of a subgroup."""
    shape = part.counts.shape
    least, most = (np.broadcast_to(one, shape) for one in ends)
    return mean_loss(
        part, least, most, np.broadcast_to(where[:, None, None], shape), group.confidence
    )
