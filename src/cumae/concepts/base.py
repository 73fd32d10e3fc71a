"""The abilities of every concept class and every hypothesis."""

from __future__ import annotations

import datetime as dt
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.codec import (
    LONG,
    Part,
    add_form,
    by_parameters,
    class_named,
    from_parameters,
    name_of,
)
from cumae.data import Columns, check_labels, exact_weights, length_of
from cumae.errors import CumaeError, InvalidParameter, shown
from cumae.privacy import BoundedRange, Cost
from cumae.privacy.validation import check_epsilon
from cumae.randomness import Source, source_for

LARGEST_ERROR = 0.5  # relative error of weights that ``choose`` draws with
ERROR_COST = 2.25  # ln((1 + h) / (1 - h)) <= 2.25 h for errors h up to the largest


class Hypothesis(ABC):
    """A labelling rule: small, readable, and storable as plain values."""

    @abstractmethod
    def predict(self, X: ArrayLike) -> Integers:
        """Label each row 0 or 1.

        Parameters
        ----------
        X : array-like
            Rows to label; a class of one column takes a plain list of values, too.
        """

    @abstractmethod
    def _fields(self) -> dict[str, Any]:
        """Return the constructor's arguments, as plain values."""

    @classmethod
    @abstractmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Hypothesis:
        """Rebuild what ``_fields`` returned."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return self.named_fields(name_of(type(self)))

    def named_fields(self, name: str) -> dict[str, Any]:
        """Return plain values, with a name for the kind of hypothesis.

        Parameters
        ----------
        name : str
            The name under which its class is stored.
        """
        return {"kind": name, **self._fields()}

    @staticmethod
    def from_dict(plain: Any) -> Hypothesis:
        """Rebuild any hypothesis from what its ``to_dict`` returned.

        Parameters
        ----------
        plain : dict
            Plain values, as ``to_dict`` returned them.
        """
        kind = plain.get("kind") if isinstance(plain, dict) else None
        known: type[Hypothesis] | None = class_named("hypothesis", kind)
        if known is None:
            raise InvalidParameter(
                f"kind={shown(kind)} is no hypothesis; give what to_dict returned."
            )
        try:
            return known._from_fields(plain)
        except CumaeError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise InvalidParameter(
                f"the fields of this {kind} are missing or wrong; give what to_dict returned."
            ) from error

    def describe(self, columns: Columns, classes: Sequence[Any]) -> str:
        """Say what it does with the names of columns and classes.

        Parameters
        ----------
        columns : Columns
            The columns of the table that it reads.
        classes : sequence of two
            What labels 0 and 1 stand for.

        Examples
        --------
        >>> import numpy as np
        >>> from cumae import Columns
        >>> from cumae.concepts import Stump
        >>> columns = Columns([(17, 90)], ["age"], 1)
        >>> print(Stump(0, 40.0, True).describe(columns, ["no", "yes"]))
        yes where age is at least 40.0, else no
        """
        named = re.sub(
            r"^label ([01])|(?<=, else )([01])$", lambda m: _named(m, classes), str(self)
        )
        return columns.name_in(named)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={_short(value)}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"


def _named(label: re.Match[str], classes: Sequence[Any]) -> str:
    return str(classes[int(label[1] or label[2])])


class ConceptClass(ABC):
    """A set of labelling rules that can be counted, searched and drawn from, all exactly.

    The candidates of ``choose`` are hypotheses that ``points`` define: one for each way to label
    the points with a concept of the class, unless the class says otherwise.
    """

    # Factor k of the claim LB: how much one added point can change the weight of the candidates
    # that agree elsewhere. None where none is proven: such a class refuses label boosting.
    label_boost_k: ClassVar[int | None] = 2
    needs_points: ClassVar[bool] = True  # to have candidates; false if these are a public list
    most_rows: ClassVar[float] = math.inf  # that ``choose`` scores candidates on

    @abstractmethod
    def vc_dimension(self, n_features: int) -> int:
        """Return the VC dimension of the class on ``n_features`` columns.

        Parameters
        ----------
        n_features : int of 1 or more
            Number of columns.
        """

    @abstractmethod
    def n_dichotomies(self, X: ArrayLike) -> int:
        """Return in how many ways the class can label the rows, as an exact integer.

        Parameters
        ----------
        X : array-like
            Rows.
        """

    def n_candidates(self, points: ArrayLike) -> int:
        """Return how many candidates ``choose`` draws from.

        Parameters
        ----------
        points : array-like
            Rows that define the candidates, as for ``choose``.
        """
        return self.n_dichotomies(points)

    @claim("CHOOSE")
    def choose(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: ArrayLike,
        epsilon: float,
        *,
        random_state: int | Source | None = None,
    ) -> Hypothesis:
        """Draw a candidate with probability proportional to exp(epsilon * right / 2).

        Parameters
        ----------
        points : array-like
            Rows that define the candidates. If they are private, the caller has to account for
            that (claim LB); public or sanitized points are free.
        X, y : array-like
            Rows with labels 0 or 1 on which candidates are scored: ``right`` is the number that
            a candidate labels right.
        epsilon : float of 0 or more
            Cost of the draw for the rows of ``X``; infinity draws among the best.
        random_state : int, Source or None
            None in production; a seed or a source in tests, which voids guarantees.
        """
        labels = check_labels(y)
        n_points = length_of(points, "points")
        rate = self._rate(check_epsilon(epsilon), max(len(labels), n_points), n_points)
        return self._draw(points, X, labels, rate, source_for(random_state))

    def choose_cost(self, epsilon: float) -> Cost:
        """Return what ``choose`` costs a row of ``X``, the error of its weights included.

        Parameters
        ----------
        epsilon : float of 0 or more
            The epsilon that ``choose`` is given.
        """
        return BoundedRange(check_epsilon(epsilon))

    def check_draw(self, epsilon: float, size: int, points: int | None = None) -> None:
        """Refuse what ``choose`` would refuse by numbers alone, before anything is paid.

        Parameters
        ----------
        epsilon : float of 0 or more
            Privacy parameter of the draw; too large a one is more than floats can draw with.
        size : int
            The larger of the numbers of points and rows; too many rows cannot be counted.
        points : int or None
            The number of points, if it is known.
        """
        self._check_rows(size)
        self._rate(check_epsilon(epsilon), size, points)

    def _check_rows(self, rows: int) -> None:
        if rows > self.most_rows:
            raise InvalidParameter(
                f"{rows:,} rows are more than the {self.most_rows:,} that {type(self).__name__} "
                "can draw with; take a sample."
            )

    @claim("CHOOSE")
    def _rate(self, epsilon: float, size: int, points: int | None = None) -> Fraction | float:
        """Return half of epsilon, less twice what the error of the weights costs.

        Twice, because that also pays for a rate that changes with the number of rows: adding a
        row costs epsilon, too.
        """
        if epsilon == math.inf:
            return epsilon
        if epsilon < 1e-300:  # too small for floats to halve
            return Fraction(0)
        h = self.weight_error(size, epsilon / 2, points)
        if not h <= LARGEST_ERROR:
            raise InvalidParameter(
                f"epsilon={epsilon!r} is too large for this many rows; give less, or inf for "
                "the best."
            )
        # Below that error nothing can be learnt: a uniform draw does not look at the rows at all.
        return max(Fraction(0), Fraction(epsilon) / 2 - 2 * Fraction(ERROR_COST * h))

    def weight_error(self, size: int, rate: float, points: int | None = None) -> float:
        """Bound the relative error of the weights that ``_draw`` draws with; 0 if it is exact.

        The bound must be constant or linear in ``size``, without a negative constant.

        Parameters
        ----------
        size : int
            The larger of the numbers of points and rows.
        rate : float of 0 or more
            What one more row labelled right adds to the logarithm of a weight.
        points : int or None
            The number of points, if it is known.
        """
        del size, rate, points
        return 0.0

    @abstractmethod
    def _draw(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
        source: Source,
    ) -> Hypothesis:
        """Draw a candidate with probability proportional to exp(rate * right).

        Parameters
        ----------
        points : array-like
            Rows that define the candidates.
        X : array-like
            The rows on which candidates are scored.
        y : array of int
            Their labels, 0 or 1.
        rate : Fraction or float
            What one more row labelled right adds to the logarithm of a weight.
        source : Source
            Where random bits come from.
        """

    def erm(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Hypothesis:
        """Return the hypothesis with the largest weight of rows labelled right, exactly.

        Weights may have either sign: a row with label 1 and weight -2 is one with label 0 and
        weight 2. Of several best hypotheses the class's documented rule picks one; it
        does not depend on chance or on the order of rows.

        Parameters
        ----------
        X : array-like
            The rows.
        y : array-like
            Their labels, 0 or 1.
        sample_weight : array-like of numbers, or None
            The weight of each row; None means 1 for each.
        """
        labels = check_labels(y)
        return self._best(X, labels, exact_weights(sample_weight, len(labels)))

    @abstractmethod
    def _best(
        self,
        X: ArrayLike,
        y: Integers,
        weights: NDArray[Any],
    ) -> Hypothesis:
        """As ``erm``, for whole weights: 64-bit, or Python integers in an object array."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *sorted(vars(self).items())))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in sorted(vars(self).items()))
        return f"{type(self).__name__}({fields})"


def text(value: Any) -> str:
    """Return one cell as a sentence shows it."""
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, dt.date):
        return value.isoformat()
    return _short(value.item() if isinstance(value, np.generic) else value)


def _short(value: Any) -> str:
    """As ``repr``, but of long integers, which Python may refuse to write in decimals, in hex."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_short, value))}{',' if len(value) == 1 else ''})"
    return hex(value) if isinstance(value, int) and abs(value) >= LONG else repr(value)


def _written(value: Hypothesis, name: str, part: Part) -> dict[str, Any]:
    del part
    return {"value": value.named_fields(name)}


add_form("hypothesis", Hypothesis, _written)
add_form("concept", ConceptClass, by_parameters, from_parameters("concept"))
