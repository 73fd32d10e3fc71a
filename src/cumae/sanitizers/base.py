"""The shared part of sanitizers: interface, exact shares of epsilon, small explicit domains."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.codec import add_form, by_parameters, from_parameters
from cumae.concepts import ConceptClass
from cumae.data import check_table
from cumae.errors import InvalidData, InvalidParameter
from cumae.mechanisms.base import Mechanism
from cumae.privacy.validation import check_rate

LARGEST_CLASS = 2_000  # labellings of an explicit domain; the queries are pairs of them


class Sanitizer(Mechanism):
    """Turns private rows without labels into a few public points that stand for them.

    ``n_points`` is the number of these points; 0 if it is not known.
    """

    n_points: int = 0

    def check_size(self, n_rows: int, n_columns: int) -> None:
        """Refuse a table of a size that ``sanitize`` would refuse, before anything is paid."""

    def most_points(self, n_rows: int) -> int:
        """Return how many points there are at most, if the table has so many rows."""
        del n_rows
        return self.n_points

    @abstractmethod
    def sanitize(self, X: ArrayLike) -> NDArray[Any]:
        """Return the points, one a line, with the columns of ``X``.

        The numbers of rows and columns of ``X`` are public; neighbours differ in one row. Each call
        pays ``cost`` again.
        """


@claim("QUANT", "MW", "STABLE")
def share_of(epsilon: float, share: Fraction) -> float:
    """Return the largest float that is no more than a share of epsilon.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cumae.sanitizers.base import share_of
    >>> share_of(1.0, Fraction(1, 4))
    0.25
    >>> 10 * Fraction(share_of(1.0, Fraction(1, 10))) <= 1
    True
    """
    if epsilon == math.inf:
        return epsilon
    exact = Fraction(epsilon) * share
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, 0.0)


@claim("QUANT", "STABLE", "HIST")
def over(epsilon: float, divisor: Fraction | int) -> Fraction | float:
    """Return a quotient of epsilon, exactly; infinity stays what it is."""
    return Fraction(epsilon) / divisor if math.isfinite(epsilon) else epsilon


def check_beta(beta: object) -> float:
    """Return a chance of failure strictly between 0 and 1."""
    number = check_rate(beta, "beta")
    if not 0 < number < 1:
        raise InvalidParameter(f"beta={beta!r} is not strictly between 0 and 1; give 0.05, say.")
    return number


@claim("SMALLDB", "MW")
class Domain:
    """An explicit finite table of points, and the queries of a class on it.

    ``queries`` holds one line of 0 and 1 for each difference of two labellings of the domain by
    concepts of the class, up to complement; the empty one is left out.
    """

    def __init__(self, concept_class: ConceptClass, points: ArrayLike) -> None:
        if not isinstance(concept_class, ConceptClass):
            raise InvalidParameter(
                f"concept_class=<{type(concept_class).__name__}> is no concept class; take one "
                "from cumae.concepts."
            )
        table = check_table(points)
        if table.size == 0 or not np.all(np.isfinite(table)):
            raise InvalidParameter("domain is empty or infinite somewhere; list finite points.")
        self.points: Floats = np.unique(table, axis=0) + 0.0
        self.queries = differences(dichotomies(concept_class, self.points))

    def __len__(self) -> int:
        return len(self.points)

    def histogram(self, X: ArrayLike) -> Integers:
        """Count the rows at each point; a row that is no point goes to one nearby."""
        rows = check_table(X, self.points.shape[1])
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        width = np.where(high > low, high / 2 - low / 2, 1.0)
        scaled = (self.points / 2 - low / 2) / width
        counts = np.zeros(len(self), dtype=np.int64)
        for start in range(0, len(rows), 1024):  # each row for itself, so that neighbours stay so
            part = np.clip(rows[start : start + 1024], low, high) / 2
            far = ((part[:, None, :] - low / 2) / width - scaled[None, :, :]) ** 2
            np.add.at(counts, np.argmin(far.sum(axis=2), axis=1), 1)
        return counts

    def table(self, counts: NDArray[Any]) -> Floats:
        """Return each point as often as ``counts`` says."""
        return np.repeat(self.points, counts, axis=0)


@claim("SMALLDB", "MW")
def dichotomies(concept_class: ConceptClass, points: Floats) -> Integers:
    """List every labelling of distinct points that the class realises, one a line.

    Labellings grow point by point: one is realised if the best hypothesis makes no error, because
    ``erm`` is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Thresholds
    >>> from cumae.sanitizers.base import dichotomies
    >>> dichotomies(Thresholds("above"), np.array([[1.0], [2.0]])).tolist()
    [[0, 0], [0, 1], [1, 1]]
    """
    total = concept_class.n_dichotomies(points)
    if total > LARGEST_CLASS:
        raise InvalidParameter(
            f"the class has {total} labellings of the domain, more than {LARGEST_CLASS} to list; "
            "give a smaller domain, or use Quantiles for ordered columns."
        )
    found: list[tuple[int, ...]] = [()]
    for count in range(1, len(points) + 1):
        longer = [(*labels, bit) for labels in found for bit in (0, 1)]
        found = [labels for labels in longer if _realised(concept_class, points[:count], labels)]
    return np.array(found, dtype=np.int64).reshape(len(found), len(points))


def _realised(concept_class: ConceptClass, points: Floats, labels: tuple[int, ...]) -> bool:
    best = concept_class.erm(points, labels)
    return bool(np.array_equal(best.predict(points), labels))


@claim("SMALLDB", "MW")
def differences(labellings: Integers) -> Integers:
    """Return the distinct non-empty differences of two labellings, up to complement.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.sanitizers.base import differences
    >>> differences(np.array([[0, 0, 0], [0, 1, 1], [0, 0, 1]])).tolist()
    [[0, 0, 1], [0, 1, 0], [0, 1, 1]]
    """
    seen: set[bytes] = set()
    small = labellings.astype(np.uint8)
    for line in small:
        pairs = line ^ small
        pairs ^= pairs[
            :, :1
        ]  # a query and its complement err alike: take the one that starts with 0
        seen.update(pair.tobytes() for pair in pairs)
    width = labellings.shape[1]
    rows = [np.frombuffer(line, dtype=np.uint8) for line in sorted(seen) if any(line)]
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)


@claim("SMALLDB")
def largest_error(queries: Integers, counts: Integers, other: Integers) -> Integers:
    """Return the largest of |query(counts) - query(other)| over the queries.

    Parameters
    ----------
    queries : array of int
        One line for each query, with 1 where a place counts and 0 elsewhere.
    counts : array of int
        Number of rows in each place.
    other : array of int
        The same of one other database, or of several, one a line.
    """
    if len(queries) == 0:
        return np.zeros(np.shape(other)[:-1], dtype=np.int64)
    return np.asarray(np.abs((counts - other) @ queries.T).max(axis=-1), dtype=np.int64)


@claim("MW")
def largest_remainder(weights: Floats, total: int) -> Integers:
    """Round ``total`` times a distribution to whole numbers with that sum, changing no set much.

    With K weights no set of them changes by more than K/4.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.sanitizers.base import largest_remainder
    >>> largest_remainder(np.array([0.5, 0.3, 0.2]), 4).tolist()
    [2, 1, 1]
    """
    exact = weights / weights.sum() * total
    whole: Integers = np.floor(exact).astype(np.int64)
    order = np.argsort(whole - exact, kind="stable")
    whole[order[: total - int(whole.sum())]] += 1
    return whole


def check_data_rows(count: int, most: int) -> None:
    """Refuse more rows than the integers of a draw can hold."""
    if count > most:
        raise InvalidData(f"X has {count} rows; give at most {most}.")


add_form("sanitizer", Sanitizer, by_parameters, from_parameters("sanitizer"))
