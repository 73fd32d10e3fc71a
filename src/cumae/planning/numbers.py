"""The accuracy of predicted numbers: tried on made-up rows, before anything is spent."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cumae.arrays import Floats
from cumae.data import Columns, Declared
from cumae.learners import PrivateKernelRegressor, PrivateLinearRegression
from cumae.made_up import MadeUpRows
from cumae.outlook import Outlook

BEST = 0.5  # R2 of the truth in made-up tables
MOST_ROWS = 25_000  # of a made-up table
JUDGED = 2_000
MOST_PUBLIC = 500
WAVES = 30  # of each group, so that it takes seconds
COVERAGE = 0.9


@dataclass(frozen=True)
class NumberForecast:
    """The forecast for a learner of a number, and its figures on a made-up table.

    Parameters
    ----------
    outlook : Outlook
        What it would do, promise and take.
    r2 : float, or None
        Share of the variance that it explained, where the truth explains half; None if it cannot
        run.
    width : float, or None
        Mean width of its 90 % intervals, in standard deviations of the number.
    rows : int
        Private rows of the made-up table.
    """

    outlook: Outlook
    r2: float | None
    width: float | None
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {**asdict(self), "outlook": self.outlook.to_dict(), "truth": BEST}


def forecast_numbers(
    n_rows: int,
    n_features: int,
    n_public: int = 0,
    *,
    columns: Declared = None,
    **given: Any,
) -> list[NumberForecast]:
    """Tell what learners of a number would do with so many rows, and how good they would be.

    Each is fitted to a made-up table with the declared columns, in which a few of them add to the
    number, in lines and a curve, and explain half of its variance.

    Parameters
    ----------
    n_rows, n_features, n_public : int
        Private rows, columns and public rows.
    columns : mapping or sequence, or None
        What is declared about the columns.
    **given : object
        Other parameters of the learners: epsilon, delta, target_range, link.

    Examples
    --------
    >>> from cumae.planning.numbers import forecast_numbers
    >>> given = {"epsilon": 1.0, "delta": 1e-6, "target_range": (0, 100)}
    >>> kernel, linear = forecast_numbers(2_000, 2, columns=[(0, 1)] * 2, **given)
    >>> kernel.outlook.can_run, kernel.r2 < 0.5
    (True, True)
    """
    found = []
    kinds: tuple[Any, ...] = (PrivateKernelRegressor, PrivateLinearRegression)
    for kind in kinds:
        outlook = kind(columns=columns, **given).plan(n_rows, n_features, n_public)
        rows = min(n_rows, MOST_ROWS)
        r2, width = None, None
        if outlook.can_run:
            fewer = {"n_waves": WAVES} if kind is PrivateKernelRegressor else {"shrink": True}
            public = min(n_public, MOST_PUBLIC)
            r2, width = _tried(kind, rows, n_features, public, columns, given | fewer)
        found.append(NumberForecast(outlook, r2, width, rows))
    return found


def _tried(
    kind: Any, rows: int, width: int, public: int, columns: Declared, given: dict[str, Any]
) -> tuple[float, float]:
    """Fit to a made-up table, and return R2 and the width of intervals on other rows of it.

    Parameters
    ----------
    kind : type
        The learner.
    rows, width, public : int
        Private rows, columns and public rows.
    columns : mapping or sequence, or None
        What is declared about the columns.
    given : dict
        Other parameters.
    """
    made = MadeUpRows(columns, rows + JUDGED + public, width)
    private, judged = np.arange(rows), np.arange(rows, rows + JUDGED)
    everything = made.take(np.arange(made.n_rows))
    known = Columns.of(everything, columns)
    numbers = _numbers(known.encode(everything), given["target_range"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of coins that are known: nobody's rows are there
        model = kind(columns=columns, random_state=0, **given)
        shown = [made.take(np.arange(rows + JUDGED, made.n_rows))] if public else []
        model.fit(made.take(private), numbers[private], *shown)
    tested, truth = made.take(judged), numbers[judged]
    low, high = model.predict_interval(tested, COVERAGE).T
    return float(model.score(tested, truth)), float((high - low).mean() / truth.std())


def _numbers(table: Floats, span: tuple[float, float] | None) -> Floats:
    """Return numbers of which a few columns explain half, within a range."""
    rng = np.random.default_rng(0)
    spread = (table - table.mean(axis=0)) / np.maximum(table.std(axis=0), 1e-9)
    weights = 0.7 ** np.arange(table.shape[1])
    signal = spread @ weights + np.sin(3 * spread[:, 0])
    signal = signal / max(float(signal.std()), 1e-9)
    whole = np.sqrt(BEST) * signal + np.sqrt(1 - BEST) * rng.normal(size=len(signal))
    low, high = span or (-4.0, 4.0)
    return np.asarray(np.clip((low + high) / 2 + (high - low) / 8 * whole, low, high))
