"""A learner that needs public rows becomes one that needs none: PublicDataReduction.

Paper 4 is Alon, Bassily, Moran: Limits of Private Learning with Access to Public Data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import (
    cells_of_columns,
    check_labels,
    check_rows,
    concatenated,
    length_of,
    width_of,
)
from cumae.errors import InvalidParameter
from cumae.learners.base import ACCOUNT, Rows, Sizes
from cumae.learners.wrappers.base import ANY_BASE, check_all_rows, take_rows
from cumae.learners.wrappers.reductions import (
    MOST_DELTA,
    MOST_EPSILON,
    Reduction,
    ReductionPlan,
)
from cumae.parameters import Count, Flag, Kind, Object, Or, check_count
from cumae.privacy import Budget
from cumae.randomness import Source, integers, permutation, source_for


@claim("REDUCE")
def priv_samp(
    X: Any,
    y: Any,
    dummies: ArrayLike,
    size: int,
    one_in: int,
    *,
    random_state: int | Source | None = None,
) -> tuple[Any, Integers]:
    """Hide rows among dummies: PrivSamp, Algorithm 3 of paper 4.

    Each of ``size`` places gets the next row, in random order, with chance 1 / ``one_in``, and
    a dummy otherwise, or when no row is left. No row appears twice; where depends on coins only.

    Parameters
    ----------
    X, y : array-like
        Rows with labels 0 or 1.
    dummies : array-like
        Public points; a dummy is one of them, with a label by a fair coin.
    size : int of 0 or more
        Number of places.
    one_in : int of 1 or more
        One over the chance of a row at a place.
    random_state : int or Source, or None
        None in production.

    Returns
    -------
    array or data frame
        A row or a dummy for each place.
    array of int
        Their labels.

    Examples
    --------
    >>> from cumae.learners.wrappers.public_reduction import priv_samp
    >>> points, labels = priv_samp([[7.0]] * 1000, [1] * 1000, [[0.0]], size=500, one_in=10)
    >>> points.shape, 10 < int((points == 7).sum()) < 150
    ((500, 1), True)
    """
    source, labels = source_for(random_state), check_labels(y)
    count = length_of(X)
    check_rows(count, labels)
    real = integers(check_count(one_in, "one_in", least=1), check_count(size, "size"), source) == 0
    # The paper's loop stops when the rows are used up; dummies fill what is left.
    real &= np.cumsum(real) <= count
    used = permutation(count, source)[: np.count_nonzero(real)]
    places = count + integers(length_of(dummies), size, source)
    chosen = integers(2, size, source)
    places[real], chosen[real] = used, labels[used]
    return take_rows(_with_dummies(X, dummies), places), chosen


@claim("REDUCE")
def pub_samp(
    dummies: ArrayLike, size: int, *, random_state: int | Source | None = None
) -> tuple[Any, Integers]:
    """Draw dummies with labels by fair coins: PubSamp, Algorithm 4 of paper 4.

    Parameters
    ----------
    dummies : array-like
        Public points.
    size : int of 0 or more
        How many to draw.
    random_state : int or Source, or None
        None in production.

    Returns
    -------
    array or data frame
        The drawn points.
    array of int
        Their labels.

    Examples
    --------
    >>> from cumae.learners.wrappers.public_reduction import pub_samp
    >>> points, labels = pub_samp([[0.0], [1.0]], size=3)
    >>> len(points), len(labels)
    (3, 3)
    """
    source = source_for(random_state)
    places = integers(length_of(dummies), check_count(size, "size"), source)
    return take_rows(dummies, places), integers(2, size, source)


def _with_dummies(X: Any, dummies: Any) -> Any:
    """Return both tables in one, with the names that the first has."""
    if width_of(X) != width_of(dummies):
        raise InvalidParameter(
            f"dummies have {width_of(dummies)} columns, but X has {width_of(X)}; give the same."
        )
    pairs = zip(cells_of_columns(X), cells_of_columns(dummies), strict=True)
    return _table([concatenated(*pair) for pair in pairs], X)


def _table(columns: list[NDArray[Any]], like: Any) -> Any:
    if hasattr(like, "iloc"):
        # The types are written out: pandas would look at all cells of an object column for one.
        series = [pd.Series(column, dtype=column.dtype) for column in columns]
        return pd.DataFrame(dict(zip(like.columns, series, strict=True)))
    return np.stack(columns, axis=1)


@claim("REDUCE")
class PublicDataReduction(Reduction):
    """A learner that needs public rows, run without any: made-up rows replace them.

    From paper 4, Algorithm 2, where it shows that some classes need many public rows. The rows
    are hidden among dummies so thinly that a public sample would hardly show one of them; so the
    base cannot tell that its public rows are dummies only. It costs what the base costs. An excess
    error of alpha of the base becomes one of ``one_in`` alpha; see :meth:`failure` for the chance.

    Parameters
    ----------
    base : object with fit, predict and guarantee_
        Its ``fit`` takes public rows, too: ``fit(X, y, X_public)``.
    dummies : array-like
        Public points, for instance all that may occur.
    n_public : int of 1 or more
        Number of public rows that the base gets.
    epsilon : float of 0 or more, or None
        Most that the base may cost; None takes its own parameter of this name.
    delta : float from 0 and below 1, or None
        The same for delta.
    n_private : int of 0 or more, or None
        Number of private rows that the base gets; None takes the paper's 10 ``n_public`` times
        the number of rows.
    one_in : int of 1 or more, or None
        A private row is a real one with chance 1 / ``one_in``; None takes the paper's 100
        ``n_public``.
    public_labels : bool
        Whether the base gets labels of the public rows as ``y_public``, too.
    classes : sequence of two labels
        The labels; the base gets 0 and 1 in their place.
    budget : Budget, or None
        An account to pay from.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Thresholds
    >>> from cumae.learners import PublicDataReduction, SemiPrivateLearner
    >>> base = SemiPrivateLearner(Thresholds(), epsilon=1.0)
    >>> points = [[x] for x in range(10)]
    >>> learner = PublicDataReduction(base, points, n_public=50, n_private=8000, one_in=4)
    >>> x = np.arange(2000) % 10
    >>> learner.fit(x.reshape(-1, 1), x >= 4).predict([[0], [9]])
    array([0, 1])
    >>> learner.guarantee_.epsilon
    1.0
    """

    takes_unlabelled = False
    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "base": ANY_BASE,
        "dummies": Object("array-like"),
        "n_public": Count(1),
        "epsilon": MOST_EPSILON,
        "delta": MOST_DELTA,
        "n_private": Or(None, Count(0)),
        "one_in": Or(None, Count(1)),
        "public_labels": Flag(),
        **ACCOUNT,
    }

    def __init__(
        self,
        base: Any,
        dummies: ArrayLike,
        n_public: int,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        n_private: int | None = None,
        one_in: int | None = None,
        public_labels: bool = False,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.base = base
        self.dummies = dummies
        self.n_public = n_public
        self.epsilon = epsilon
        self.delta = delta
        self.n_private = n_private
        self.one_in = one_in
        self.public_labels = public_labels
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    def _sizes(self, rows: int) -> tuple[int, int, int]:
        """Return the numbers of public and private rows, and one over the rate."""
        public = check_count(self.n_public, "n_public", least=1)
        private = 10 * public * rows if self.n_private is None else self.n_private
        one_in = 100 * public if self.one_in is None else self.one_in
        return public, check_count(private, "n_private"), check_count(one_in, "one_in", least=1)

    def _check_readable(self, rows: Rows) -> None:
        if rows.public is not None:
            raise InvalidParameter(
                "X_public was given, but this learner does without it; leave it out."
            )
        if not length_of(self.dummies):
            raise InvalidParameter("dummies is empty; give at least one public point.")
        # As the base gets them, any row may stand next to any dummy.
        dummies = _table(cells_of_columns(self.dummies), rows.X)
        check_all_rows(self._reader(), _with_dummies(rows.X, self.dummies), dummies)

    def _run_sizes(self, sizes: Sizes) -> list[Sizes]:
        public, private, _ = self._sizes(sizes.labelled)
        return [replace(sizes, labelled=private, unlabelled=0, public=public)]

    def _public_rows(self, rows: Rows) -> Rows:
        public, _, _ = self._sizes(0)
        dummies = _table(cells_of_columns(self.dummies), rows.X)
        # Any of them will do, in any order: what the base costs depends on their number.
        chosen = np.arange(public) % length_of(self.dummies)
        X_public, y_public = take_rows(dummies, chosen), chosen % 2
        return replace(rows, public=X_public, public_y=y_public if self.public_labels else None)

    def decide(self, sizes: Sizes, rows: Rows) -> ReductionPlan:
        plan = super().decide(sizes, rows)
        public, private, one_in = self._sizes(sizes.labelled)
        facts = {"base_public": public, "base_private": private, "one_in": one_in}
        return replace(plan, facts=facts)

    def _publish(self, rows: Rows, fit: Callable[[Rows], Any], source: Source) -> dict[str, Any]:
        public, private, one_in = self._sizes(len(rows.y))
        X, y = priv_samp(rows.X, rows.y, self.dummies, private, one_in, random_state=source)
        dummies = _table(cells_of_columns(self.dummies), rows.X)
        X_public, y_public = pub_samp(dummies, public, random_state=source)
        run = replace(rows, X=X, y=y, public=X_public)
        return {"model_": fit(replace(run, public_y=y_public) if self.public_labels else run)}

    def _labels(self, table: NDArray[Any]) -> Integers:
        return check_labels(self.model_.predict(table), "the prediction")

    def _stored_params(self) -> dict[str, Any]:
        columns = [column.tolist() for column in cells_of_columns(self.dummies)]
        points = [list(point) for point in zip(*columns, strict=True)]
        return super()._stored_params() | {"dummies": points}  # a frame could not be stored

    def failure(self, rows: int, beta: float) -> float:
        """Bound the chance of failure on so many rows, if that of the base is ``beta``.

        Failure means an error of more than ``one_in`` times the base's excess above the best.

        Parameters
        ----------
        rows : int
            Number of private rows.
        beta : float from 0 to 1
            Chance of failure of the base.

        Returns
        -------
        float
            A chance.

        Examples
        --------
        >>> from cumae.learners import PublicDataReduction
        >>> round(PublicDataReduction(None, [[0]], n_public=20).failure(100, beta=0.04), 3)
        0.05
        """
        public, private, one_in = self._sizes(rows)
        seen = -np.expm1(public * np.log1p(-1 / one_in)) if one_in > 1 else 1.0
        short = stats.binom.sf(rows, private, 1 / one_in)
        return float(min(1.0, beta + seen + short))
