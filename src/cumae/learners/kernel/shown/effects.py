"""The effects of single columns and pairs of columns on the scores of a published model.

The score of a row is taken apart as if columns were independent: a constant, what each column adds
on the average over all others, what each pair adds beyond its two columns, and a rest of triples
that is not shown. Every such part is a sum of coefficients with known factors, so that the
posterior also says how sure it is. Everything follows from the model; rows are not needed.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.data import Column, Columns
from cumae.learners.kernel.features import TOP, KernelFeatures
from cumae.learners.kernel.levels import Bytes
from cumae.learners.kernel.model import KernelModel

MOST_PAIRS = 20  # that are shown
GRID = 20  # values of a column of a pair
SMALLEST_SHARE = 1e-12
OTHERS = "others"  # stands for all categories but the most frequent ones, in pairs

Complex = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of a column, or of a pair beyond its two columns, on the log odds.

    Parameters
    ----------
    columns : tuple of str
        One name or two.
    values : tuple of tuples
        For each of these columns, values from the lowest to the highest, or its categories. None
        stands for a missing cell. In a pair, a value stands for its neighbourhood, and "others"
        for all but the most frequent categories.
    log_odds : array of float
        What each value adds, or each pair of values. With more than two classes a last axis has
        what is added to the score of each class.
    spread : array of float
        Standard deviation of each of these numbers, given all that was released.
    strength : float
        How much the effect differs between rows: the standard deviation of ``log_odds`` over the
        values, each with its share of the reference rows.
    """

    columns: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...] = field(repr=False)
    log_odds: Floats = field(repr=False)
    spread: Floats = field(repr=False)
    strength: float


@dataclass(frozen=True)
class Contents:
    """The values that a column can hold, each with its share of the rows and its features.

    Parameters
    ----------
    column : Column
        What was declared about it.
    values : list
        Numbers, days or categories; None for a missing cell.
    shares : array of float
        The share of each value.
    places : array of int
        Lines and curves of the column, as places among the features.
    whole : array of float
        These lines and curves for each value, as whole numbers.
    waves : array of int
        The waves in which the column takes part.
    turns : array of complex
        The factor by which each value turns each of these waves.
    """

    column: Column
    values: list[Any]
    shares: Floats
    places: Integers
    whole: Floats
    waves: Integers
    turns: Complex

    @classmethod
    def of(cls, features: KernelFeatures, column: Column, first: int) -> Contents:
        """Return what a column can hold, whose first encoded column is at a place."""
        values, shares, codes = _held(features, column, first)
        places, whole, angles = features.alone(first, codes)
        waves = np.flatnonzero(np.any(features.waves[first : first + codes.shape[1]], axis=0))
        turns = np.exp(1j * angles[:, waves])
        return cls(column, values, shares, places, whole, waves, turns)

    @property
    def lines(self) -> Floats:
        """Lines and curves of each value, less their means."""
        return self.whole - self.shares @ self.whole

    @property
    def mean_turns(self) -> Complex:
        """The mean factor of each wave."""
        return np.asarray(self.shares @ self.turns)

    @property
    def shown(self) -> tuple[Any, ...]:
        """The values as a reader knows them: days as dates."""
        if self.column.since is None:
            return tuple(self.values)
        return tuple(None if v is None else self.column.day(v) for v in self.values)

    def coarse(self) -> Contents:
        """Return the same with neighbouring or rare values together, as means over them."""
        member = self._members()
        if len(self.values) == len(set(member)):
            return self
        weights = np.zeros((max(member) + 1, len(member)))
        weights[member, np.arange(len(member))] = self.shares + SMALLEST_SHARE
        totals = weights.sum(axis=1)
        weights /= totals[:, None]
        values: list[Any] = []
        for group in weights:
            inside = np.flatnonzero(group)
            if len(inside) == 1:
                values.append(self.values[inside[0]])
            elif self.column.categories is not None:
                values.append(OTHERS)
            else:
                values.append(float(group[inside] @ np.array([self.values[i] for i in inside])))
        return replace(
            self,
            values=values,
            shares=totals / totals.sum(),
            whole=weights @ self.whole,
            turns=weights @ self.turns,
        )

    def _members(self) -> list[int]:
        """Return the group of each value: at most ``GRID`` of them, and one for missing cells."""
        known = [place for place, value in enumerate(self.values) if value is not None]
        if len(known) <= GRID:
            return list(range(len(self.values)))
        shares = self.shares[known]
        if self.column.categories is not None:
            kept = np.sort(np.argsort(-shares, kind="stable")[: GRID - 1])
            group = np.full(len(known), GRID - 1)
            group[kept] = np.arange(len(kept))
        else:
            middle = (np.cumsum(shares) - shares / 2) / max(float(shares.sum()), SMALLEST_SHARE)
            group = np.minimum((middle * GRID).astype(int), GRID - 1)
            group = np.unique(group, return_inverse=True)[1]
        missing = [int(group.max()) + 1] * (len(self.values) - len(known))
        return [*group.tolist(), *missing]


def constant_of(model: KernelModel, columns: Columns) -> tuple[Floats, Floats]:
    """Return the constant part of the scores and its standard deviation, one for each score."""
    features, cells = model.features, contents_of(model.features, columns)
    middle = features.centres.copy()
    for held in cells:
        middle[held.places] = held.shares @ held.whole
    turned = _shifts(features)
    for held in cells:
        turned[held.waves] *= held.mean_turns
    middle[features.wave_places] = TOP * turned.real
    row = np.append(1.0, (middle - features.centres) * features.scales)[None, :]
    return (row @ model.weights)[0], np.sqrt(model.variance(row))[0]


def effects_of(model: KernelModel, columns: Columns) -> list[Effect]:
    """Return what each column and the strongest pairs add to the scores; the strongest first.

    Parameters
    ----------
    model : KernelModel
        The published model.
    columns : Columns
        What was declared about the columns.
    """
    cells = contents_of(model.features, columns)
    found = _singles(model, cells)
    found += _pairs(model, cells)
    return sorted(found, key=lambda effect: -effect.strength)


def contents_of(features: KernelFeatures, columns: Columns) -> list[Contents]:
    """Return what each column can hold."""
    found, first = [], 0
    for column in columns.columns:
        found.append(Contents.of(features, column, first))
        first += len(column.encoded)
    return found


def _singles(model: KernelModel, cells: list[Contents]) -> list[Effect]:
    features, found = model.features, []
    start, scales = features.wave_places.start, features.scales
    means = _means(features, cells)
    for number, held in enumerate(cells):
        others = np.prod(np.delete(means[:, held.waves], number, axis=0), axis=0)
        factors = others * _shifts(features)[held.waves]
        waves = TOP * ((held.turns - held.mean_turns) * factors).real
        places = np.concatenate([held.places, start + held.waves])
        parts = np.hstack([held.lines, waves]) * scales[places]
        found.append(_effect(model, (held,), places, parts))
    return found


def _pairs(model: KernelModel, cells: list[Contents]) -> list[Effect]:
    """Return the strongest pairs: only waves speak of them."""
    features, members = model.features, defaultdict(list)
    for number, held in enumerate(cells):
        for wave in held.waves.tolist():
            members[wave].append(number)
    inside = defaultdict(list)
    for wave, numbers in members.items():
        for pair in itertools.combinations(numbers, 2):
            inside[pair].append(wave)
    means, shifts = _means(features, cells), _shifts(features)
    start, scales = features.wave_places.start, features.scales
    coarse = {number: cells[number].coarse() for number in {n for pair in inside for n in pair}}
    found = []
    for pair, chosen in inside.items():
        waves = np.array(chosen)
        factors = np.prod(np.delete(means[:, waves], pair, axis=0), axis=0) * shifts[waves]
        one, other = (coarse[number] for number in pair)
        first, second = (_apart(coarse[number], waves) for number in pair)
        turned = (first[:, None, :] * second[None, :, :] * factors).real
        places = start + waves
        parts = turned.reshape(-1, len(waves)) * (TOP * scales[places])
        strength = _strength(parts @ model.weights[1 + places], _weights((one, other)))
        found.append((strength, one, other, places, parts))
    found.sort(key=lambda pair: -pair[0])
    return [_effect(model, (one, other), *rest) for _, one, other, *rest in found[:MOST_PAIRS]]


def _effect(
    model: KernelModel, cells: tuple[Contents, ...], places: Integers, parts: Floats
) -> Effect:
    """Return sums of coefficients as an effect.

    Parameters
    ----------
    model : KernelModel
        The model.
    cells : tuple of Contents
        What its columns can hold.
    places : array of int
        The features that take part.
    parts : array of float
        The factor of each one's coefficient, a row for each value or pair of values.
    """
    odds = parts @ model.weights[1 + places]
    spread = np.sqrt(model.variance(parts, 1 + places))
    shape = [len(held.values) for held in cells]
    if odds.shape[1] > 1:
        shape.append(odds.shape[1])
    return Effect(
        tuple(held.column.name for held in cells),
        tuple(held.shown for held in cells),
        _fixed(odds.reshape(shape)),
        _fixed(spread.reshape(shape)),
        _strength(odds, _weights(cells)),
    )


def _weights(cells: tuple[Contents, ...]) -> Floats:
    """Return the share of each value, or of each pair of values."""
    return np.outer(cells[0].shares, cells[-1].shares).ravel() if cells[1:] else cells[0].shares


def _strength(odds: Floats, shares: Floats) -> float:
    return math.sqrt(float(shares @ (odds**2).mean(axis=1)))


def _fixed(numbers: Floats) -> Floats:
    numbers.flags.writeable = False
    return numbers


def _means(features: KernelFeatures, cells: list[Contents]) -> Complex:
    """Return the mean factor of each column, a row each, for all waves."""
    found = np.ones((len(cells), features.waves.shape[1]), dtype=np.complex128)
    for number, held in enumerate(cells):
        found[number, held.waves] = held.mean_turns
    return found


def _apart(held: Contents, waves: Integers) -> Complex:
    """Return by how much each value turns some waves more than the mean does."""
    nearby = np.searchsorted(held.waves, waves)
    return np.asarray(held.turns[:, nearby] - held.mean_turns[nearby])


def _shifts(features: KernelFeatures) -> Complex:
    return np.asarray(np.exp(1j * features.shift_angles))


def _held(features: KernelFeatures, column: Column, first: int) -> tuple[list[Any], Floats, Bytes]:
    """Return the values of a column, their shares, and the codes of its encoded columns."""
    width = len(column.encoded)
    marked = np.clip(features.centres[first : first + width] / TOP, 0.0, 1.0)
    absent = marked[-1] if column.missing else 0.0
    levels = features.levels.get(first)
    if levels is not None:
        values, shares = levels.values.tolist(), levels.shares.copy()
        codes = np.zeros((len(values), width), dtype=np.uint8)
        codes[:, 0] = np.arange(len(values))
        stand_in = codes[levels.code(np.array([column.stand_in]))]
        if column.missing:  # their stand-in is no value that was there
            shares[stand_in[0, 0]] = max(shares[stand_in[0, 0]] - absent, 0.0)
    elif column.categories is not None and len(column.categories) > 2:
        values, shares = list(column.readable_categories), marked[: len(column.categories)]
        codes = np.eye(len(values), width, dtype=np.uint8)
        stand_in = np.zeros((1, width), dtype=np.uint8)
    else:
        values = list(
            column.readable_categories or ((False, True) if column.boolean else (0.0, 1.0))
        )
        shares = np.array([max(1 - absent - marked[0], 0.0), marked[0]])
        codes = np.eye(2, width, k=-1, dtype=np.uint8)
        stand_in = np.zeros((1, width), dtype=np.uint8)
    shares = (shares + SMALLEST_SHARE) / (shares + SMALLEST_SHARE).sum()
    if column.missing:
        stand_in[0, -1] = 1
        values, codes = [*values, None], np.vstack([codes, stand_in])
        shares = np.append(shares * (1 - absent), absent)
    return values, shares, codes
