"""Columns as features of an additive model: a straight line, and steps between cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from cumae.arrays import Floats
from cumae.data import INDICATOR, Bounds, Columns
from cumae.learners.cuts import quantile_cuts
from cumae.storage import KINDS

LARGEST = 1e150  # its square is a float
WIDEST = 3.0  # standard deviations beyond which a value is pulled in
LEAST_VARIANCE = 0.02  # of an indicator that the reference never shows


@dataclass(frozen=True)
class Feature:
    """One column: a line (value - centre) / scale, and one step for each bin between cuts."""

    centre: float
    scale: float
    cuts: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()  # of the bins, in the reference
    weight: float = 0.0  # of the steps, against the line

    @property
    def width(self) -> int:
        return 1 + len(self.shares)

    def of(self, column: Floats) -> NDArray[np.float32]:
        """Return the features of a column's values."""
        inside = np.clip(column, -LARGEST, LARGEST)
        parts = np.empty((len(column), self.width), dtype=np.float32)
        with np.errstate(over="ignore", under="ignore"):  # beyond floats it is pulled in, too
            parts[:, 0] = np.clip((inside - self.centre) / self.scale, -WIDEST, WIDEST)
        if self.shares:
            code = np.searchsorted(self.cuts, column, side="right")
            steps = np.eye(len(self.shares))[code] - np.array(self.shares)
            parts[:, 1:] = self.weight * steps
        return parts


class FeatureMap:
    """Features of whole rows, with a constant in front; made from public or sanitized rows.

    Parameters
    ----------
    features : sequence of Feature
        One for each column.
    moments : array of float
        Mean products of all features, the constant included, as if columns were independent.
    """

    def __init__(self, features: Sequence[Feature], moments: Floats) -> None:
        self.features = list(features)
        self.moments = moments

    @classmethod
    def of(
        cls,
        reference: Floats,
        columns: Columns,
        bins: int = 0,
        weight: float = 1.0,
        spread: float = 1.0,
    ) -> FeatureMap:
        """Scale columns, and cut them into at most so many bins, by a reference table.

        Parameters
        ----------
        reference : array of float
            Public or sanitized rows.
        columns : Columns
            They tell which ones are indicators, which keep their scale, and which can have more
            than two values: only these get bins.
        bins : int
            Most bins of a column.
        weight : float
            What the steps between bins count, against the straight line.
        spread : float
            What part of the true standard deviation the reference shows.

        Returns
        -------
        FeatureMap
            The features.
        """
        bounds = columns.bounds
        cuts: list[list[float]] = [[] for _ in bounds]
        if bins > 1:
            for place, cut in quantile_cuts(reference[:, columns.numeric], bins - 1):
                cuts[columns.numeric[place]].append(cut)
        features = [
            _feature(column, declared, cut if len(cut) > 1 else [], weight, spread)
            for column, declared, cut in zip(reference.T, bounds, cuts, strict=True)
        ]
        blocks = [
            _moments(feature, column, declared)
            for feature, column, declared in zip(features, reference.T, bounds, strict=True)
        ]
        return cls(features, block_diag(np.ones((1, 1)), *blocks))

    @property
    def norm(self) -> float:
        """The root of the mean squared length of a row of features."""
        return float(np.sqrt(np.trace(self.moments)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "features": [asdict(feature) for feature in self.features],
            "moments": self.moments.tolist(),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> FeatureMap:
        """Rebuild what ``to_dict`` returned."""
        features = [
            Feature(f["centre"], f["scale"], tuple(f["cuts"]), tuple(f["shares"]), f["weight"])
            for f in plain["features"]
        ]
        return cls(features, np.array(plain["moments"]))

    def slopes(self, weights: Floats) -> Floats:
        """Return the constant, and the slopes of the lines in units of the columns."""
        places = 1 + np.cumsum([0, *[feature.width for feature in self.features]])[:-1]
        slopes = weights[places] / np.array([feature.scale for feature in self.features])
        centres = np.array([feature.centre for feature in self.features])
        return np.append(weights[0] - slopes @ centres, slopes)

    def describe(self, coefficients: Floats, names: Sequence[str]) -> str:
        """Return the model as one line for each column: a slope, and a curve over its bins."""
        lines = [f"log odds of 1: {coefficients[0]:+.3f}"]
        place = 1
        for feature, name in zip(self.features, names, strict=True):
            slope = coefficients[place] / feature.scale
            line = f"{slope:+.4g} * ({name} - {feature.centre:.4g})"
            if feature.shares:
                steps = coefficients[place + 1 : place + feature.width] * feature.weight
                ends = [f"below {feature.cuts[0]:g}", *[f"from {cut:g}" for cut in feature.cuts]]
                curve = [f"{end} {step:+.3f}" for end, step in zip(ends, steps, strict=True)]
                line += f" and {name}: {', '.join(curve)}"
            lines.append(line)
            place += feature.width
        return "\n    ".join(lines)

    def rows(self, table: Floats) -> NDArray[np.float32]:
        """Return the features of encoded rows."""
        ones = np.ones((len(table), 1), dtype=np.float32)
        columns = [f.of(column) for f, column in zip(self.features, table.T, strict=True)]
        return np.hstack([ones, *columns])

    def scores(self, table: Floats, weights: Floats) -> Floats:
        """Return the weighted sum of the features of each encoded row."""
        return np.asarray(self.rows(table) @ weights, dtype=np.float64)

    def clipped(self, table: Floats) -> NDArray[np.float32]:
        """Return the features, long rows shortened to ``norm``."""
        rows = self.rows(table)
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        rows *= np.minimum(1.0, self.norm / np.maximum(length, 1e-30))
        return rows


def _feature(
    column: Floats, declared: Bounds | None, cuts: list[float], weight: float, shown: float
) -> Feature:
    finite = np.clip(column[np.isfinite(column)], -LARGEST, LARGEST)
    centre = float(finite.mean()) if len(finite) else 0.0
    if declared == INDICATOR:
        return Feature(centre, 1.0)
    spread = float(finite.std()) / shown if len(finite) else 0.0
    scale = spread if spread > 0 else 1.0
    if not cuts:
        return Feature(centre, scale)
    code = np.searchsorted(cuts, column, side="right")
    shares = np.bincount(code, minlength=len(cuts) + 1) / len(column)
    return Feature(centre, scale, tuple(cuts), tuple(map(float, shares)), weight)


def _moments(feature: Feature, column: Floats, declared: Bounds | None) -> Floats:
    if declared == INDICATOR:  # its mean says all, also where the reference holds only the mean
        return np.array([[max(feature.centre * (1 - feature.centre), LEAST_VARIANCE)]])
    parts = feature.of(column).astype(np.float64)
    least = np.append(1.0, np.full(len(feature.shares), feature.weight**2)) * LEAST_VARIANCE
    return np.asarray(parts.T @ parts / len(parts) + np.diag(least))


KINDS["features"] = FeatureMap
