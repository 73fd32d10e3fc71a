"""A private model of a number by noisy sums of shortened residuals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from cumae.claims import claim
from cumae.data import Declared
from cumae.learners.base import DECLARED
from cumae.learners.kernel.features import CURVES, WAVES
from cumae.learners.regression.learner import NUMBER_PARAMETERS, NumberLearner
from cumae.parameters import DELTA, EPSILON, Count, Kind
from cumae.privacy import Budget
from cumae.randomness import Source

START = (0.5, 0.125, 0.125)  # variances of the constant, of lines and of curves
VIEWS = (0.0025, 0.0625)  # of each group of waves, if they do not matter, and if they do


@claim("REGRESS")
class PrivateKernelRegressor(NumberLearner):
    """A regression by lines, curves and interactions of columns, with intervals.

    It is the engine of :class:`PrivateKernelClassifier` for numbers: a few times, the sum of the
    rows' residuals is released along those directions about which least is known so far, with
    integer Gaussian noise. A residual is shortened where few are, so that less noise is needed, and
    what shortening hides is part of the inference. How numbers are spread is released first, and
    how errors are spread last: intervals come from that.

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
    n_waves : int of 0 or more
        Waves in each of four groups: pairs and triples of columns, slow and fast. With 0 the model
        is additive.
    columns : mapping or sequence, or None
        Declared bounds and categories, see :class:`~cumae.Columns`.
    budget : Budget, or None
        An account to pay from.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Attributes
    ----------
    model_ : NumberModel
        All that predictions are computed from.
    target_range_ : tuple of two floats
        The range of the target: declared, or found.
    effects_ : list of Effect
        What each column and the strongest pairs of columns add to the mean, or to its logarithm;
        the strongest first. ``print`` shows them as text, and ``plot`` draws them.

    Notes
    -----
    Fewer than 50 public rows are not used, and more than 2,000 add nothing. Numbers of public rows
    are not used.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae import PrivateKernelRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> y = 10 * X[:, 0] * X[:, 1] + rng.normal(size=20_000)
    >>> columns = [(-1, 1), (-1, 1)]
    >>> model = PrivateKernelRegressor(1.0, 1e-6, target_range=(-15, 15), columns=columns)
    >>> model = model.fit(X, y, rng.uniform(-1, 1, (500, 2)))
    >>> low, high = model.predict([[0.8, -0.8], [0.8, 0.8]])
    >>> bool(low < -4 and high > 4)
    True
    >>> model.predict_interval(X, coverage=0.9).shape
    (20000, 2)
    >>> model.guarantee_.epsilon <= 1.0
    True
    """

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        **NUMBER_PARAMETERS,
        "n_waves": Count(0),
        **{name: kind for name, kind in DECLARED.items() if name != "classes"},
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        target_range: tuple[float, float] | None = None,
        *,
        link: str = "identity",
        n_waves: int = WAVES,
        columns: Declared = None,
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_range = target_range
        self.link = link
        self.n_waves = n_waves
        self.columns = columns
        self.budget = budget
        self.random_state = random_state

    @property
    def _shapes(self) -> tuple[int, int]:
        return CURVES, int(self.n_waves)

    @property
    def _starts(self) -> tuple[tuple[float, float, float], tuple[float, float], bool]:
        return START, VIEWS, True
