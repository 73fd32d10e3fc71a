"""Ridge classifiers of many small shards at once.

scikit-learn takes some milliseconds to check six rows and microseconds to learn from them. Linear
models are best in many small shards, so a phase with 17,000 of them took more than a minute. Here
the same equations are solved in one loop; a shard whose rows it cannot handle is left to
scikit-learn, so that what is learnt from a shard depends on its own rows alone.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numba
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.ensembles.growing.outcomes import FAILED, LEARNT, NO_ROWS, ONE_CLASS, models_of

WIDEST = 64  # columns; above, solving takes longer than checking


@claim("EVER")
def can_solve(model: Any, rows: Any) -> bool:
    """Tell from the estimator and the table's type and width whether ``many_ridges`` applies."""
    return (
        type(model) is RidgeClassifier
        and model.class_weight is None
        and model.positive is False
        and model.solver in ("auto", "cholesky")
        and isinstance(model.alpha, int | float)
        and model.alpha > 0
        and isinstance(rows, np.ndarray)  # of any type: a single cell could change that
        and rows.shape[1] <= WIDEST
    )


@claim("EVER")
def many_ridges(
    model: RidgeClassifier, rows: Floats, signed: Integers, starts: Integers, *, balanced: bool
) -> tuple[list[Any], Integers]:
    """Return a model for each shard, a slice of the rows, and the shards left to scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from cumae.ensembles.growing.ridges import many_ridges
    >>> rows, signed = np.array([[1.0], [3.0], [2.0]]), np.array([-1, 1, 5])
    >>> models, left = many_ridges(
    ...     RidgeClassifier(), rows, signed, np.array([0, 2, 3]), balanced=True
    ... )
    >>> models, left.tolist()
    ([RidgeClassifier(), 1], [])
    """
    # A fitted model to copy, whatever attributes this version of scikit-learn gives it.
    fitted = clone(model).fit(np.stack([np.zeros(rows.shape[1]), np.ones(rows.shape[1])]), [0, 1])
    shapes = np.shape(fitted.coef_), np.shape(fitted.intercept_)
    kinds, weights, offsets = _solve_all(
        np.ascontiguousarray(rows),
        signed,
        starts,
        float(model.alpha),
        bool(model.fit_intercept),
        balanced,
    )

    def learnt(shard: int) -> RidgeClassifier:
        one = copy.copy(fitted)
        one.coef_ = weights[shard].reshape(shapes[0])
        one.intercept_ = np.reshape(offsets[shard], shapes[1])
        return one

    return models_of(kinds, lambda shard: int(offsets[shard]), learnt)


@numba.njit(cache=True, nogil=True)
def _solve_all(
    rows: Floats, signed: Integers, starts: Integers, alpha: float, intercept: bool, balanced: bool
) -> tuple[Integers, Floats, Floats]:
    """Return what came of each shard, its weights, and its offset or its only class."""
    count, width = len(starts) - 1, rows.shape[1]
    kinds = np.empty(count, dtype=np.int64)
    weights, offsets = np.zeros((count, width)), np.zeros(count)
    for shard in range(count):
        part = slice(starts[shard], starts[shard + 1])
        margins = signed[part]
        ones, zeros = (margins > 0).sum(), (margins < 0).sum()
        if ones + zeros == 0:
            kinds[shard] = NO_ROWS
        elif ones == 0 or zeros == 0:
            kinds[shard], offsets[shard] = ONE_CLASS, 1.0 if ones > 0 else 0.0
        else:
            weigh = _shares(margins, balanced)
            kinds[shard], offsets[shard] = _solve(
                rows[part], margins, weigh, alpha, intercept, weights[shard]
            )
    return kinds, weights, offsets


@numba.njit(cache=True, nogil=True)
def _shares(margins: Integers, balanced: bool) -> Floats:
    """Return weights that are one on average; 0 for rows without a margin."""
    found = np.abs(margins).astype(np.float64)
    if balanced:
        ones, zeros = found[margins > 0].sum(), found[margins < 0].sum()
        for i in range(len(found)):
            found[i] /= ones if margins[i] > 0 else zeros
    return np.asarray(found / (found.sum() / (margins != 0).sum()))


@numba.njit(cache=True, nogil=True)
def _solve(
    rows: Floats, margins: Integers, weigh: Floats, alpha: float, intercept: bool, out: Floats
) -> tuple[int, float]:
    """Solve (A + alpha I) w = b by Cholesky's method, and put w into ``out``."""
    width = len(out)
    mean, middle = np.zeros(width), 0.0
    if intercept:
        for i in range(len(rows)):
            mean += weigh[i] * rows[i]
            middle += weigh[i] * np.sign(margins[i])
        mean, middle = mean / weigh.sum(), middle / weigh.sum()
    matrix, right = alpha * np.eye(width), np.zeros(width)
    for i in range(len(rows)):
        if margins[i] != 0:
            row = rows[i] - mean
            right += weigh[i] * (np.sign(margins[i]) - middle) * row
            for j in range(width):
                matrix[j, : j + 1] += weigh[i] * row[j] * row[: j + 1]
    for j in range(width):
        for k in range(j):
            matrix[j, k] = (matrix[j, k] - (matrix[j, :k] * matrix[k, :k]).sum()) / matrix[k, k]
        rest = matrix[j, j] - (matrix[j, :j] ** 2).sum()
        if not 0 < rest < math.inf:  # NaN, too
            return FAILED, 0.0
        matrix[j, j] = math.sqrt(rest)
        right[j] = (right[j] - (matrix[j, :j] * right[:j]).sum()) / matrix[j, j]
    for j in range(width - 1, -1, -1):
        out[j] = (right[j] - (matrix[j + 1 :, j] * out[j + 1 :]).sum()) / matrix[j, j]
    offset = middle - (mean * out).sum()
    return (LEARNT, offset) if math.isfinite(offset + np.abs(out).sum()) else (FAILED, 0.0)
