"""Linear regression with coefficients, standard errors and intervals that count the noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.data import Declared
from cumae.learners.base import DECLARED
from cumae.learners.regression.kernel import START, VIEWS
from cumae.learners.regression.learner import NUMBER_PARAMETERS, NumberLearner
from cumae.parameters import CHANCE, DELTA, EPSILON, Flag, Kind
from cumae.privacy import Budget
from cumae.randomness import Source


class PrivateLinearRegression(NumberLearner):
    """Linear regression whose standard errors count the sample and the noise.

    It is :class:`PrivateKernelRegressor` with straight lines alone. All directions are measured, so
    that each coefficient has an estimate and a standard error.

    Parameters
    ----------
    epsilon : float of 0 or more
        Privacy parameter.
    delta : float from 0 and below 1
        Privacy parameter; it must be above 0.
    target_range : tuple of two floats, or None
        The lowest and the highest number that there can be, known without the rows. Numbers beyond
        are moved to the ends. None finds a range privately, for a share of epsilon and delta.
    link : {"identity", "log"}
        What columns add to: the mean of the number, or the logarithm of the mean, for counts,
        amounts and durations, which are not below 0.
    shrink : bool
        Whether coefficients are drawn towards 0 as far as the releases do not tell them from it.
        This predicts better where rows are few. Without it, intervals hold the true slopes as often
        as they say, for any true slopes.
    columns : mapping or sequence, or None
        Declared bounds and categories, see :class:`~cumae.Columns`.
    budget : Budget, or None
        An account to pay from.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Attributes
    ----------
    coef_ : array of float
        The slope of each encoded column, in units of the number and of the column. Marks of a
        column with more than two categories tell how far each is from the mean of all of them.
    intercept_ : float
        The mean, or its logarithm, where all columns are 0.
    standard_errors_ : array of float
        Standard errors of ``coef_``.
    intercept_error_ : float
        Standard error of ``intercept_``.
    names_ : list of str
        Names of the encoded columns.
    model_ : NumberModel
        All that predictions are computed from.
    target_range_ : tuple of two floats
        The range of the target: declared, or found.
    effects_ : list of Effect
        What each column adds, the strongest first. ``print`` shows them as text, and ``plot`` draws
        them.

    Notes
    -----
    Values of a column are pulled in to 3 standard deviations, and read by 256 levels at most. A
    standard error counts the noise of all releases, the sampling of the rows and, without public
    rows, that the reference is made up.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae import PrivateLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> y = 5 * X[:, 0] - 2 * X[:, 1] + rng.normal(size=20_000)
    >>> columns = [(-1, 1), (-1, 1)]
    >>> model = PrivateLinearRegression(1.0, 1e-6, target_range=(-10, 10), columns=columns)
    >>> model = model.fit(X, y)
    >>> bool(abs(model.coef_[0] - 5) < 1 and model.standard_errors_[0] < 0.5)
    True
    >>> model.coef_interval(0.95).shape
    (2, 2)
    """

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        **NUMBER_PARAMETERS,
        "shrink": Flag(),
        **{name: kind for name, kind in DECLARED.items() if name != "classes"},
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        target_range: tuple[float, float] | None = None,
        *,
        link: str = "identity",
        shrink: bool = False,
        columns: Declared = None,
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_range = target_range
        self.link = link
        self.shrink = shrink
        self.columns = columns
        self.budget = budget
        self.random_state = random_state

    @property
    def _shapes(self) -> tuple[int, int]:
        return 0, 0

    @property
    @claim("REGRESS")
    def _starts(self) -> tuple[tuple[float, float, float], tuple[float, float], bool]:
        if self.shrink:
            return START, VIEWS, True
        # Wide enough that each column by itself may explain all that there is.
        return (1.0, 2.0 * len(self.columns_), START[2]), VIEWS, False

    def _rows_of_slopes(self) -> Floats:
        """Return a row for the intercept and for each slope: what coefficients it adds up."""
        features = self.published().features
        count = len(features)
        rows = np.array([features.slopes(one) for one in np.eye(count)]).T
        place = 0
        for column in self.columns_.columns:
            width = len(column.encoded)
            marks = np.arange(place, place + width)
            if column.categories is not None and len(column.categories) > 2:
                marks = marks[: len(column.categories)]
                mean = rows[1 + marks].mean(axis=0)
                rows[0] += mean
                rows[1 + marks] -= mean
            place += width
        return rows * self._shown_unit

    @property
    def _estimates(self) -> tuple[Floats, Floats]:
        rows, kernel = self._rows_of_slopes(), self.published()
        found = rows @ kernel.weights[:, 0]
        target = self.model_.target
        found[0] += target.centre if target.link == "identity" else np.log(target.unit)
        return found, np.sqrt(kernel.variance(rows)[:, 0])

    @property
    def coef_(self) -> Floats:
        """The slope of each encoded column."""
        return self._estimates[0][1:]

    @property
    def intercept_(self) -> float:
        """The mean, or its logarithm, where all columns are 0."""
        return float(self._estimates[0][0])

    @property
    def standard_errors_(self) -> Floats:
        """Standard errors of the slopes: of the sample and of the noise together."""
        return self._estimates[1][1:]

    @property
    def intercept_error_(self) -> float:
        """Standard error of the intercept."""
        return float(self._estimates[1][0])

    @property
    def names_(self) -> list[str]:
        """Names of the encoded columns."""
        check_is_fitted(self, "guarantee_")
        return list(self.columns_.names)

    def __str__(self) -> str:
        if not hasattr(self, "model_"):
            return super().__str__()
        (found, error), names = self._estimates, ["intercept", *self.names_]
        lines = [
            f"  {name}: {value:+.4g} (standard error {spread:.2g})"
            for name, value, spread in zip(names, found, error, strict=True)
        ]
        return "\n".join([super().__str__(), "slopes:", *lines])

    def coef_interval(self, coverage: float = 0.95) -> Floats:
        """Return an interval for each slope.

        Parameters
        ----------
        coverage : float above 0 and below 1
            The share of such intervals that hold the true slope.

        Returns
        -------
        array of float
            The lower and the upper end, a row for each slope.
        """
        CHANCE.check(coverage, "coverage")
        found, error = (part[1:, None] for part in self._estimates)
        reach = float(ndtri((1 + coverage) / 2))
        return np.asarray(found + error * np.array([-reach, reach]))
