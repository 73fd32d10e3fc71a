"""Linear models, with the scaling of columns in front of them folded into their weights."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numba
import numpy as np
from sklearn import linear_model
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC

from cumae.arrays import Floats, Integers
from cumae.ensembles.voters.base import StackedVoters, broken, class_of

LINEAR = (
    LinearDiscriminantAnalysis,
    LinearSVC,
    linear_model.LogisticRegression,
    linear_model.LogisticRegressionCV,
    linear_model.Perceptron,
    linear_model.RidgeClassifier,
    linear_model.RidgeClassifierCV,
    linear_model.SGDClassifier,
)
SCALERS = (MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler)
TILE = 256  # models whose scores and weights stay in the first cache


@dataclass(frozen=True)
class Scores:
    """One linear model: a row of weights and an offset for each score, and what they vote for."""

    weights: Floats
    offsets: Floats
    labels: tuple[int, ...]  # of two classes the first has no score


@dataclass(frozen=True, eq=False)
class LinearVoters(StackedVoters):
    """Linear models with the same classes: the largest score wins, or the sign of a single one.

    The terms of a score are always added in the order of the columns, so that a score is the same
    in every batch. A score that overflows is a vote for class 0.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    weights : array of float
        For each score and column, a cell for each model.
    offsets : array of float
        For each score, a cell for each model.
    labels : array of int
        The class of each score; two of them if there is a single score, for 0 or less and for more.
    """

    kind: ClassVar[str] = "linear"
    model_axes: ClassVar[Mapping[str, int]] = {"weights": 2, "offsets": 1}

    n_classes: int
    weights: Floats
    offsets: Floats
    labels: Integers

    def __post_init__(self) -> None:
        self._check(weights=(np.float64, 3), offsets=(np.float64, 2), labels=(np.int64, 1))
        scores, columns, models = self.weights.shape
        if (
            self.offsets.shape != (scores, models)
            or scores == 0
            or columns == 0
            or len(self.labels) != max(2, scores)
        ):
            raise broken(self.kind)
        self._check_labels(self.labels)

    def __len__(self) -> int:
        return int(self.weights.shape[2])

    @property
    def width(self) -> int:  # type: ignore[override]
        """Number of columns."""
        return int(self.weights.shape[1])

    @functools.cached_property  # each answer asks
    def adder(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        if len(self.weights) == 1:
            return _by_sign, (self.weights[0], self.offsets[0], self.labels)
        return _by_size, (self.weights, self.offsets, self.labels)


def scores_of(scalers: Sequence[Any], model: Any, n_classes: int) -> Scores:
    """Read a fitted linear model of scikit-learn that comes behind scalers."""
    weights = np.atleast_2d(np.array(model.coef_, dtype=np.float64))
    offsets = np.zeros(len(weights)) + np.asarray(model.intercept_, dtype=np.float64)
    # A scale may be so small that a weight overflows: such a model votes for class 0.
    with np.errstate(all="ignore"):
        for scaler in reversed(scalers):
            weights, offsets = _folded(scaler, weights, offsets)
    labels = tuple(class_of(label, n_classes) for label in model.classes_)
    if len(labels) != max(2, len(weights)):
        raise TypeError
    return Scores(weights, offsets, labels)


def stack_linear(models: Sequence[Scores], n_classes: int) -> LinearVoters:
    """Stack models of the same width and labels."""
    return LinearVoters(
        n_classes,
        np.ascontiguousarray(np.stack([model.weights for model in models], axis=2)),
        np.ascontiguousarray(np.stack([model.offsets for model in models], axis=1)),
        np.array(models[0].labels, dtype=np.int64),
    )


def is_affine(scaler: Any) -> bool:
    """Tell by its declaration whether a step multiplies each column and adds something.

    A ``ColumnTransformer`` of such steps does, too, and may leave columns out.
    """
    if type(scaler) is ColumnTransformer:
        parts = [how for _, how, _ in scaler.transformers]
        same = [isinstance(how, str) or is_affine(how) for how in [*parts, scaler.remainder]]
        return all(same) and scaler.transformer_weights is None
    return type(scaler) in SCALERS and not getattr(scaler, "clip", False)


def _folded(scaler: Any, weights: Floats, offsets: Floats) -> tuple[Floats, Floats]:
    """Return weights and offsets for rows before a fitted step, from those for rows behind it."""
    if type(scaler) is not ColumnTransformer:
        factor, shift = _affine(scaler)
        return weights * factor, offsets + (weights * shift).sum(axis=1)
    if not is_affine(scaler):
        raise TypeError
    found = np.zeros((len(weights), scaler.n_features_in_))
    for name, how, places in scaler.transformers_:
        behind = weights[:, scaler.output_indices_[name]]
        if not behind.shape[1]:  # dropped
            continue
        if not isinstance(how, str) and type(how) is not FunctionTransformer:  # which changes none
            behind, offsets = _folded(how, behind, offsets)
        for column, place in zip(behind.T, np.arange(len(found[0]))[places], strict=True):
            found[:, place] += column  # which may be chosen twice
    return found, offsets


def _affine(scaler: Any) -> tuple[Any, Any]:
    """Return by what a scaler multiplies each column, and what it adds then."""
    if not is_affine(scaler):
        raise TypeError
    if type(scaler) is MinMaxScaler:
        return scaler.scale_, scaler.min_
    if type(scaler) is MaxAbsScaler:
        return 1 / scaler.scale_, 0.0
    if type(scaler) is StandardScaler:
        centre = scaler.mean_ if scaler.with_mean else 0.0
        factor = 1 / scaler.scale_ if scaler.with_std else 1.0
        return factor, -centre * factor
    if type(scaler) is RobustScaler:
        centre = scaler.center_ if scaler.with_centering else 0.0
        factor = 1 / scaler.scale_ if scaler.with_scaling else 1.0
        return factor, -centre * factor
    raise TypeError


# Helpers have ``inline="always"``, because numba would compile a called function twice.


@numba.njit(cache=True, nogil=True, inline="always")
def _score(
    rows: Floats, row: int, weights: Floats, offsets: Floats, first: int, scores: Floats
) -> None:
    """Write the scores of some models for four rows, from ``row`` on; the last may stand in.

    Four rows and two columns at a time save loads and stores. How terms are grouped does not
    matter for a score, as each is added to the sum before the next one.
    """
    end, odd = len(rows) - 1, rows.shape[1] % 2
    last = min(len(offsets), first + TILE)
    p, q = rows[row], rows[min(end, row + 1)]
    r, s = rows[min(end, row + 2)], rows[min(end, row + 3)]
    a, b = scores[0], scores[1]
    c, d = scores[2], scores[3]
    # An odd column comes with the offset. Where there is none, the first column times zero changes
    # no vote: a score that becomes NaN by it would be infinite.
    start, left = offsets[first:last], weights[0, first:last]
    p0, q0 = odd * p[0], odd * q[0]
    r0, s0 = odd * r[0], odd * s[0]
    for i in range(last - first):
        v, w = start[i], left[i]
        a[i] = v + p0 * w
        b[i] = v + q0 * w
        c[i] = v + r0 * w
        d[i] = v + s0 * w
    for k in range(odd, len(p), 2):
        left, right = weights[k, first:last], weights[k + 1, first:last]
        p0, q0 = p[k], q[k]
        r0, s0 = r[k], s[k]
        p1, q1 = p[k + 1], q[k + 1]
        r1, s1 = r[k + 1], s[k + 1]
        for i in range(last - first):
            v, w = left[i], right[i]
            old_a, old_b = a[i], b[i]
            old_c, old_d = c[i], d[i]
            a[i] = (old_a + p0 * v) + p1 * w
            b[i] = (old_b + q0 * v) + q1 * w
            c[i] = (old_c + r0 * v) + r1 * w
            d[i] = (old_d + s0 * v) + s1 * w


@numba.njit(cache=True, nogil=True, inline="always")
def _signs(score: Floats, size: int, labels: Integers, votes: Integers) -> None:
    """Count the votes of the first models with a single score for one row."""
    less, more = 0, 0
    for i in range(size):
        more += (score[i] > 0.0) & (score[i] < np.inf)
    if labels[0] != 0:
        for i in range(size):
            less += (score[i] <= 0.0) & (score[i] > -np.inf)
        votes[labels[0]] += less
    votes[labels[1]] += more
    votes[0] += size - less - more


def _by_sign(
    rows: Floats, weights: Floats, offsets: Floats, labels: Integers, votes: Integers
) -> None:
    # Room for scores is made here, because numba would compile longer; and for each call, because
    # several threads count at once.
    _add_by_sign(rows, weights, offsets, labels, np.empty((4, TILE)), votes)


@numba.njit(cache=True, nogil=True)
def _add_by_sign(
    rows: Floats,
    weights: Floats,
    offsets: Floats,
    labels: Integers,
    scores: Floats,
    votes: Integers,
) -> None:
    for first in range(0, len(offsets), TILE):
        tile = TILE if first + TILE < len(offsets) else len(offsets) - first
        for row in range(0, len(rows), 4):
            _score(rows, row, weights, offsets, first, scores)
            for more in range(4 if row + 4 < len(rows) else len(rows) - row):
                _signs(scores[more], tile, labels, votes[row + more])


@numba.njit(cache=True, nogil=True)
def _keep_best(score: Floats, k: int, best: Floats, place: Integers) -> None:
    """Compare score ``k`` with the best so far; of equal ones the first wins."""
    for i in range(len(score)):
        value = score[i]
        wins, fits = value > best[i], abs(value) < np.inf
        now, at = (value if wins else best[i]), (np.int64(k) if wins else place[i])
        # Nothing is more than infinite, so that a model with a score that overflowed has no winner.
        best[i] = now if fits else np.inf
        place[i] = at if fits else np.int64(-1)


@numba.njit(cache=True, nogil=True)
def _winners(place: Integers, labels: Integers, votes: Integers) -> None:
    """Count the votes of some models with several scores for one row."""
    left = np.int64(len(place))
    for k in range(len(labels)):
        found = np.int64(0)
        for i in range(len(place)):
            found += np.int64(place[i] == k)
        votes[labels[k]] += found
        left -= found
    votes[0] += left


@numba.njit(cache=True, nogil=True)
def _by_size(
    rows: Floats, weights: Floats, offsets: Floats, labels: Integers, votes: Integers
) -> None:
    size = offsets.shape[1]
    scores, bests = np.empty((4, TILE)), np.empty((4, TILE))
    places = np.empty((4, TILE), dtype=np.int64)
    for first in range(0, size, TILE):
        tile = min(TILE, size - first)
        for row in range(0, len(rows), 4):
            four = min(4, len(rows) - row)
            bests[:] = -np.inf
            places[:] = 0
            for k in range(len(weights)):
                _score(rows, row, weights[k], offsets[k], first, scores)
                for more in range(four):
                    _keep_best(scores[more, :tile], k, bests[more, :tile], places[more, :tile])
            for more in range(four):
                _winners(places[more, :tile], labels, votes[row + more])
