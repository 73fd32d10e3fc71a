"""The values that the theorems return, and the conditions under which they hold.

A size with printed constants is an int. A size whose constant is not printed in a paper
is an ``OrderOf``, which is no number: it cannot be compared with a number of rows by mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from cumae.errors import InvalidParameter, shown
from cumae.parameters import check_count, check_real, check_share

READABLE = 10**9  # beyond, digits are not counted any more


def rounded(value: float) -> str:
    """Return a size as people say it: two digits of it.

    Examples
    --------
    >>> from cumae.theorems.values import rounded
    >>> rounded(11_873.2), rounded(0.3), rounded(5.7e24)
    ('12,000', 'less than 1', '5.7e+24')
    """
    if 0 < value < 1:
        return "less than 1"
    short = float(f"{value:.1e}")
    return f"{short:,.0f}" if short < READABLE else f"{value:.1e}"


@dataclass(frozen=True)
class OrderOf:
    """A size up to a constant that the paper does not print. It is no bound.

    Parameters
    ----------
    value : float
        The paper's formula with the constant left at 1.
    hidden : str
        What else the constant depends on.
    unit : str
        What is counted.

    Examples
    --------
    >>> from cumae.theorems import OrderOf
    >>> print(OrderOf(11_873.2))
    order of 12,000 rows (the paper does not print the constant)
    >>> OrderOf(11_873.2) < 20_000
    Traceback (most recent call last):
    TypeError: '<' not supported between instances of 'OrderOf' and 'int'
    """

    value: float
    hidden: str = ""
    unit: str = "rows"

    @property
    def short(self) -> str:
        """The text without the reason in brackets."""
        return f"order of {rounded(self.value)} {self.unit}"

    def __str__(self) -> str:
        more = f", which depends on {self.hidden}" if self.hidden else ""
        return f"{self.short} (the paper does not print the constant{more})"


Size: TypeAlias = int | OrderOf


@dataclass(frozen=True)
class SplitRows:
    """Rows with a label, and rows without one.

    Parameters
    ----------
    labelled, unlabelled : int or OrderOf
        How many of each.
    """

    labelled: Size
    unlabelled: Size


@dataclass(frozen=True)
class SanitizerRows:
    """Rows that a sanitizer needs, and points that it publishes.

    Parameters
    ----------
    rows, points : OrderOf
        How many of each.
    """

    rows: OrderOf
    points: OrderOf


@dataclass(frozen=True)
class ActiveRows:
    """The sizes that an active learner needs and promises.

    Parameters
    ----------
    rows : int
        Rows without a label.
    labels : int
        Labels that it asks for.
    delta : float
        Privacy parameter of the result.
    """

    rows: int
    labels: int
    delta: float


@dataclass(frozen=True)
class SampledRows:
    """Rows of which a random part is used, and what that promises.

    Parameters
    ----------
    rows : int
        All rows.
    epsilon, delta : float
        Privacy parameters of the result.
    """

    rows: int
    epsilon: float
    delta: float


@dataclass(frozen=True)
class ReducedLearner:
    """A private learner that a learner with public rows was made into.

    Parameters
    ----------
    rows : int
        Its private rows; it needs no public ones.
    alpha : float
        Its error.
    """

    rows: int
    alpha: float


@dataclass(frozen=True)
class RowsWithPublic:
    """Private rows with a label, and public rows without one.

    Parameters
    ----------
    private, public : OrderOf
        How many of each.
    """

    private: OrderOf
    public: OrderOf


def check_accuracy(alpha: object, beta: object, vc: object, least: int = 1) -> None:
    """Refuse an error or a chance of failure outside (0, 1), and a VC dimension below ``least``.

    Parameters
    ----------
    alpha, beta : float above 0 and below 1
        Error, and chance of failure.
    vc : int
        VC dimension of the class.
    least : int
        The smallest one.
    """
    check_share(alpha, "alpha")
    check_share(beta, "beta")
    check_count(vc, "vc", least=least)


def check_epsilon(value: object, name: str = "epsilon") -> float:
    """Return a privacy parameter as a float if it is above 0 and finite."""
    number = check_real(value, name)
    if not 0 < number < math.inf:
        raise InvalidParameter(f"{name}={shown(value)} is not a positive number.")
    return number


def check_limit(value: float, name: str, most: float, theorem: str) -> None:
    """Refuse a value beyond the condition of a theorem.

    Parameters
    ----------
    value : float
        What was given.
    name : str
        Name of the parameter.
    most : float
        The largest value for which the theorem holds.
    theorem : str
        Its citation.

    Examples
    --------
    >>> from cumae.theorems.values import check_limit
    >>> check_limit(3.0, "epsilon", 1.0, "Claim 5.6 of paper 1")
    Traceback (most recent call last):
    cumae.errors.InvalidParameter: epsilon=3.0: Claim 5.6 of paper 1 holds up to 1; give less.
    """
    if value > most:
        raise InvalidParameter(f"{name}={shown(value)}: {theorem} holds up to {most:g}; give less.")


def log_star(number: float) -> int:
    """Return how often one takes the binary logarithm until the result is 1 or less.

    Examples
    --------
    >>> from cumae.theorems.values import log_star
    >>> [log_star(number) for number in (1, 2, 4, 16, 20, 65_536)]
    [0, 1, 2, 3, 4, 4]
    """
    count = 0
    while number > 1:
        number, count = math.log2(number), count + 1
    return count


def smallest(enough: Callable[[int], bool], least: int) -> int:
    """Return the smallest number beyond ``least`` that is enough; ``least`` itself is not.

    Parameters
    ----------
    enough : callable
        Tells of a number whether it is enough; if it is, larger ones are, too.
    least : int of 1 or more
        A number that is not enough.

    Examples
    --------
    >>> from cumae.theorems.values import smallest
    >>> smallest(lambda n: n * n >= 1_000, 1)
    32
    """
    low, high = least, 2 * least
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
