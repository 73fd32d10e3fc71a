"""Checks of parameters: one table for each class says what every parameter may be.

A class declares the table as ``parameter_table``, a dictionary from names to the kinds below, and
calls ``check_parameters(self)`` when it is fitted. The text of a kind is also the type that the
docstring of the class gives for the parameter; a test holds both together.
"""

from __future__ import annotations

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumae.errors import InvalidParameter, shown


def check_real(value: object, name: str) -> float:
    """Return ``value`` as a float if it is a real number, infinity included."""
    # bool is a number to Python, but epsilon=True is a slip of the pen.
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidParameter(f"{name}={shown(value)} is not a number; give a real number.")
    try:
        number = float(value)
    except OverflowError as error:
        raise InvalidParameter(f"{name} is an integer beyond all floats; give less.") from error
    if math.isnan(number):
        raise InvalidParameter(f"{name}={shown(value)} is not a number; give a real number.")
    return number + 0.0  # minus zero is zero


def check_share(value: object, name: str) -> float:
    """Return ``value`` as a float if it is between 0 and 1, both excluded."""
    number = check_real(value, name)
    if not 0 < number < 1:
        raise InvalidParameter(f"{name}={shown(value)} is not between 0 and 1.")
    return number


def check_count(value: object, name: str = "count", least: int = 0) -> int:
    """Return ``value`` as an int if it is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidParameter(f"{name}={shown(value)} is not a whole number; give an integer.")
    if value < least:
        raise InvalidParameter(f"{name}={shown(value)} is below {least}; give {least} or more.")
    return int(value)


def check_flag(value: object, name: str) -> bool:
    """Return ``value`` if it is True or False: a text such as "no" would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidParameter(
            f"{name}={shown(value)} is neither True nor False; give one of them."
        )
    return bool(value)


def check_choice(value: object, choices: tuple[str, ...], name: str) -> str:
    """Return ``value`` if it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise InvalidParameter(f"{name}={shown(value)} is unknown; choose one of {listed}.")
    return str(value)


class Kind(ABC):
    """What a parameter may be."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The type as docstrings and documentation show it."""

    @abstractmethod
    def check(self, value: object, name: str) -> None:
        """Raise ``InvalidParameter`` if the value is not of this kind."""


@dataclass(frozen=True)
class Number(Kind):
    """A real number from ``low`` to ``high``; ends that are ``open`` are excluded.

    Parameters
    ----------
    low, high : float
        The smallest and the largest value.
    above, below : bool
        Whether ``low`` and ``high`` themselves are excluded.
    such_as : str
        What a message proposes instead.

    Examples
    --------
    >>> from cumae.parameters import Number
    >>> Number(0, 1, above=True).text
    'float above 0 and up to 1'
    """

    low: float = 0.0
    high: float = math.inf
    above: bool = False
    below: bool = False
    such_as: str = ""

    @property
    def text(self) -> str:
        first = f"{'above' if self.above else 'from'} {self.low:g}"
        if self.high == math.inf:
            return f"float {first}" if self.above else f"float of {self.low:g} or more"
        if self.below:
            return f"float {first} and below {self.high:g}"
        return f"float {first} {'and up ' if self.above else ''}to {self.high:g}"

    def check(self, value: object, name: str) -> None:
        number = check_real(value, name)
        low = number > self.low if self.above else number >= self.low
        high = number < self.high if self.below else number <= self.high
        if not (low and high):
            hint = f"; give {self.such_as}, for example." if self.such_as else "."
            raise InvalidParameter(f"{name}={shown(value)} is no {self.text}{hint}")


@dataclass(frozen=True)
class Count(Kind):
    """A whole number of at least ``least``."""

    least: int = 1

    @property
    def text(self) -> str:
        return f"int of {self.least} or more"

    def check(self, value: object, name: str) -> None:
        check_count(value, name, self.least)


@dataclass(frozen=True)
class Flag(Kind):
    """True or False."""

    text = "bool"

    def check(self, value: object, name: str) -> None:
        check_flag(value, name)


@dataclass(frozen=True)
class Choice(Kind):
    """One of some texts."""

    choices: tuple[str, ...]

    @property
    def text(self) -> str:
        return "{" + ", ".join(f'"{choice}"' for choice in self.choices) + "}"

    def check(self, value: object, name: str) -> None:
        check_choice(value, self.choices, name)


@dataclass(frozen=True)
class Or(Kind):
    """One fixed value, such as ``"auto"`` or None, or something of another kind."""

    fixed: str | float | None
    kind: Kind

    @property
    def text(self) -> str:
        fixed = f'"{self.fixed}"' if isinstance(self.fixed, str) else repr(self.fixed)
        return f"{self.kind.text}, or {fixed}"

    def check(self, value: object, name: str) -> None:
        same = type(value) is type(self.fixed) and value == self.fixed
        if not same:
            self.kind.check(value, name)


@dataclass(frozen=True)
class Object(Kind):
    """An object that the class itself looks at, such as an estimator; only its text is declared."""

    name_of_type: str

    @property
    def text(self) -> str:
        return self.name_of_type

    def check(self, value: object, name: str) -> None:
        """Leave it to the class."""


def check_parameters(owner: Any, table: Mapping[str, Kind]) -> None:
    """Check all parameters of an object by its table, in the order of the table.

    Parameters
    ----------
    owner : object
        Has an attribute for each name.
    table : mapping from str to Kind
        What each of them may be.

    Raises
    ------
    InvalidParameter
        If one of them is something else.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from cumae.parameters import Count, check_parameters
    >>> check_parameters(SimpleNamespace(rounds=0), {"rounds": Count(1)})
    Traceback (most recent call last):
    cumae.errors.InvalidParameter: rounds=0 is below 1; give 1 or more.
    """
    for name, kind in table.items():
        kind.check(getattr(owner, name), name)
