"""The noisy tables of counts from which every figure is computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.counting.bins import (
    ScoreBins,
    bin_count,
    declared_bins,
    equal_steps,
    even_bins,
    single_values,
)
from cumae.mechanisms import GaussianNoise, LaplaceNoise
from cumae.randomness import Source

LARGE_SCALE = 1_000.0  # from here on whole noise has the variance of real noise


@dataclass(frozen=True)
class NoiseLaw:
    """The first even cumulants of the noise on each count.

    Parameters
    ----------
    variance, fourth : float
        The second and the fourth cumulant; both are 0 without noise.
    """

    variance: float = 0.0
    fourth: float = 0.0

    @classmethod
    def of(cls, noise: LaplaceNoise | GaussianNoise) -> NoiseLaw:
        """Return the cumulants of integer noise.

        Parameters
        ----------
        noise : LaplaceNoise or GaussianNoise
            What is added to each count.

        Examples
        --------
        >>> from cumae.counting.table import NoiseLaw
        >>> from cumae.mechanisms import GaussianNoise, LaplaceNoise
        >>> round(NoiseLaw.of(GaussianNoise(3.0)).variance, 6)
        9.0
        >>> round(NoiseLaw.of(LaplaceNoise(1.0, 2)).variance, 2)
        7.84
        """
        if isinstance(noise, GaussianNoise):
            if noise.scale == 0 or noise.scale > LARGE_SCALE:
                return cls(noise.scale**2, 0.0)
            squares = np.arange(1.0, 12 * noise.scale + 12) ** 2
            chances = np.exp(-squares / (2 * noise.scale**2))
            chances /= 1 + 2 * chances.sum()
            second, fourth = float(2 * squares @ chances), float(2 * (squares**2) @ chances)
            return cls(second, fourth - 3 * second**2)
        ratio = math.exp(-noise.epsilon / noise.sensitivity)
        rest = -math.expm1(-noise.epsilon / noise.sensitivity)
        second = 2 * ratio / rest**2
        fourth = second * (1 + 11 * ratio + 11 * ratio**2 + ratio**3) / (1 + ratio) / rest**2
        return cls(second, fourth - 3 * second**2)


@dataclass(frozen=True)
class Partition:
    """Noisy counts of cells of which each row is in one.

    Parameters
    ----------
    counts : array of int, subgroups x labels x bins
        The counts with noise.
    rows : int
        The number of rows, which is public.
    law : NoiseLaw
        The noise on each count.
    """

    counts: Integers
    rows: int
    law: NoiseLaw

    @property
    def surplus(self) -> float:
        """By how much the noisy counts add up to more than the rows, for each cell."""
        return (float(self.counts.sum()) - self.rows) / self.counts.size


@dataclass(frozen=True)
class Layout:
    """The shape and meaning of all tables; it follows from public values alone.

    Parameters
    ----------
    groups, classes : int
        Numbers of subgroups and of classes.
    answers : int
        Answers that the model may give: the classes, and one more for none.
    scores : tuple of ScoreBins
        Bins of the chance of each class that has a table: the second of two, each of more, and none
        for a model without chances.
    threshold : float
        The chance of the second of two classes above which it is the answer.
    losses : tuple of ScoreBins
        Bins of the Brier loss of a row, for more than two classes; else none.
    """

    groups: int
    classes: int
    answers: int
    scores: tuple[ScoreBins, ...] = ()
    threshold: float = 0.5
    losses: tuple[ScoreBins, ...] = ()

    @property
    def shapes(self) -> dict[str, tuple[int, int, int]]:
        """The name and shape of each table."""
        found = {}
        if len(self.scores) != 1:
            found["answers"] = (self.groups, self.classes, self.answers)
        for place, bins in enumerate(self.scores):
            found[f"score {place}"] = (self.groups, 2, len(bins))
        for bins in self.losses:
            found["losses"] = (self.groups, 1, len(bins))
        return found


def table_count(classes: int, *, chances: bool) -> int:
    """Return how many tables are released, in each of which a row is in one cell.

    Parameters
    ----------
    classes : int of 2 or more
        Classes of the model.
    chances : bool
        Whether the model gives chances.
    """
    return classes + 2 if chances and classes > 2 else 1


@claim("EVAL")
def planned_layout(
    rows: int,
    groups: int,
    classes: int,
    law: NoiseLaw,
    *,
    chances: bool,
    threshold: float,
    public: Floats | None = None,
    bins: int | Sequence[float] | None = None,
) -> Layout:
    """Return the layout of tables for private rows, from public numbers.

    Parameters
    ----------
    rows, groups, classes : int
        How many there are of each.
    law : NoiseLaw
        The noise on each count.
    chances : bool
        Whether the model gives chances.
    threshold : float
        As in ``Layout``.
    public : array of float, public rows x classes, or None
        Chances of public rows.
    bins : int or sequence of float, or None
        How many bins there are, at most, or their declared inner edges; None to decide by rows and
        noise.
    """
    if not chances:
        return Layout(groups, classes, classes + 1)
    count = bins if isinstance(bins, int) else bin_count(rows, groups, law.variance)
    wanted = (1,) if classes == 2 else range(classes)
    cut = threshold if classes == 2 else 0.5
    found = [even_bins(count, cut, None if public is None else public[:, one]) for one in wanted]
    if bins is not None and not isinstance(bins, int):
        found = [declared_bins(bins, cut) for _ in wanted]
        count = len(found[0])
    losses = () if classes == 2 else (equal_steps(2 * count, 2.0),)
    return Layout(groups, classes, classes, tuple(found), threshold, losses)


def exact_layout(
    groups: int, classes: int, label: Integers, output: NDArray[Any], threshold: float
) -> Layout:
    """Return the layout of tables for public rows: each chance that occurs has a bin.

    Parameters
    ----------
    groups, classes : int
        How many there are of each.
    label : array of int
        The class of each row.
    output : array of float, rows x classes, or array of int
        The model's chances, or its answers as places among the classes.
    threshold : float
        As in ``Layout``.
    """
    if output.ndim == 1:
        return Layout(groups, classes, classes + 1)
    if classes == 2:
        return Layout(groups, 2, 2, (single_values(np.asarray(output[:, 1])),), threshold)
    found = tuple(single_values(column) for column in output.T)
    losses = (single_values(_brier_losses(label, output)),)
    return Layout(groups, classes, classes, found, threshold, losses)


def _brier_losses(label: Integers, output: NDArray[Any]) -> Floats:
    """Return the Brier loss of each row over all classes, from 0 to 2."""
    right = np.take_along_axis(output, label[:, None], axis=1)[:, 0]
    return np.asarray(np.clip((output**2).sum(axis=1) - 2 * right + 1, 0.0, 2.0))


@claim("EVAL")
def cells_of(
    layout: Layout, group: Integers, label: Integers, output: NDArray[Any]
) -> dict[str, Integers]:
    """Return for each table the cell of each row, as one number.

    Parameters
    ----------
    layout : Layout
        The shape of all tables.
    group, label : array of int
        The subgroup and the class of each row.
    output : array of float, rows x classes, or array of int
        The model's chances, or its answers as places among the classes.
    """
    found: dict[str, tuple[Any, Any]] = {}  # for each table, the label and the bin of each row
    if not layout.scores:
        found["answers"] = (label, output)
    elif layout.classes == 2:
        found["score 0"] = (label, layout.scores[0].places(output[:, 1]))
    else:
        found["answers"] = (label, np.argmax(output, axis=1))
        for place, bins in enumerate(layout.scores):
            found[f"score {place}"] = (label == place, bins.places(output[:, place]))
        loss = _brier_losses(label, output)
        found["losses"] = (np.zeros_like(label), layout.losses[0].places(loss))
    return {
        name: (group * shape[1] + found[name][0]) * shape[2] + found[name][1]
        for name, shape in layout.shapes.items()
    }


@claim("EVAL")
def counted(layout: Layout, cells: Mapping[str, Integers]) -> dict[str, Integers]:
    """Return the count of each cell of each table.

    Parameters
    ----------
    layout : Layout
        The shape of all tables.
    cells : mapping from str to array of int
        For each table the cell of each row.
    """
    return {
        name: np.bincount(cells[name], minlength=math.prod(shape)).reshape(shape)
        for name, shape in layout.shapes.items()
    }


@claim("EVAL")
def chosen_noise(
    epsilon: float, delta: float, tables: int, random_state: int | Source | None = None
) -> LaplaceNoise | GaussianNoise:
    """Return the noise of least variance that keeps within (epsilon, delta).

    Parameters
    ----------
    epsilon, delta : float
        What all tables together may cost.
    tables : int of 1 or more
        How many there are: a replaced row moves two counts of each.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Examples
    --------
    >>> from cumae.counting.table import chosen_noise
    >>> chosen_noise(1.0, 0.0, 1)
    <LaplaceNoise with cost Pure(eps=1.0)>
    >>> type(chosen_noise(1.0, 1e-6, 1)).__name__, type(chosen_noise(1.0, 1e-6, 7)).__name__
    ('LaplaceNoise', 'GaussianNoise')
    """
    pure = LaplaceNoise(epsilon, 2 * tables, random_state=random_state)
    if delta == 0 or math.isinf(epsilon):
        return pure
    other = GaussianNoise.calibrated(epsilon, delta, moves=2 * tables, random_state=random_state)
    return other if NoiseLaw.of(other).variance < NoiseLaw.of(pure).variance else pure


@dataclass(frozen=True)
class NoisyTables:
    """All counts that were released, with the layout that says what they count.

    Parameters
    ----------
    layout : Layout
        The meaning of cells.
    rows : int
        The number of rows, which is public.
    law : NoiseLaw
        The noise on each count.
    counts : mapping from str to array of int
        The noisy counts of each table.
    """

    layout: Layout
    rows: int
    law: NoiseLaw
    counts: Mapping[str, Integers] = field(repr=False)

    def partition(self, name: str) -> Partition:
        """Return one table.

        Parameters
        ----------
        name : str
            Its name in the layout.
        """
        return Partition(self.counts[name], self.rows, self.law)

    @property
    def answers(self) -> Partition:
        """Counts for each subgroup, class and answer, or bins that decide about the answer."""
        return self.partition("score 0" if len(self.layout.scores) == 1 else "answers")

    @property
    def answer_of_bin(self) -> Integers:
        """The answer that each bin of ``answers`` stands for."""
        if len(self.layout.scores) == 1:
            return self.layout.scores[0].above(self.layout.threshold)
        return np.arange(self.layout.answers)

    @property
    def of_own_class(self) -> Partition:
        """Counts for each subgroup, class and bin of the chance of this class.

        Each row is in one of these cells. For two classes the chance is that of the second.
        """
        if len(self.layout.scores) == 1:
            return self.partition("score 0")
        widest = max(map(len, self.layout.scores))
        parts = [self.counts[f"score {place}"][:, 1] for place in range(self.layout.classes)]
        if any(part.shape[1] != widest for part in parts):
            parts = [np.pad(part, ((0, 0), (0, widest - part.shape[1]))) for part in parts]
        return Partition(np.stack(parts, axis=1), self.rows, self.law)


@claim("EVAL")
def released_tables(
    layout: Layout,
    exact: Mapping[str, Integers],
    rows: int,
    noise: LaplaceNoise | GaussianNoise | None,
) -> NoisyTables:
    """Add noise to all counts of all tables; the counts of public rows stay as they are.

    Parameters
    ----------
    layout : Layout
        The meaning of cells.
    exact : mapping from str to array of int
        The counts of each table.
    rows : int
        The number of rows.
    noise : LaplaceNoise or GaussianNoise, or None
        What ``chosen_noise`` returned; None for public rows.
    """
    if noise is None:
        return NoisyTables(layout, rows, NoiseLaw(), dict(exact))
    sizes: Sequence[int] = [exact[name].size for name in layout.shapes]
    flat = noise.release(np.concatenate([exact[name].ravel() for name in layout.shapes]))
    parts = np.split(flat, np.cumsum(sizes)[:-1])
    noisy = {
        name: part.reshape(shape)
        for (name, shape), part in zip(layout.shapes.items(), parts, strict=True)
    }
    return NoisyTables(layout, rows, NoiseLaw.of(noise), noisy)
