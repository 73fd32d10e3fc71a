"""Checks of parameters: one table for each class says what every parameter may be.

A class declares the table as ``parameter_table``, a dictionary from names to the kinds below in the
order of its constructor, and ``fit`` calls ``check_parameters`` with it, before anything else. The
text of a kind is also the type that the docstring of the class gives for the parameter; a test
compares both.
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
        raise InvalidParameter(
            f"{name}={shown(value)} is not a number; give a real number.", parameter=name
        )
    try:
        number = float(value)
    except OverflowError as error:
        raise InvalidParameter(
            f"{name} is an integer beyond all floats; give less.", parameter=name
        ) from error
    if math.isnan(number):
        raise InvalidParameter(
            f"{name}={shown(value)} is not a number; give a real number.", parameter=name
        )
    return number + 0.0  # minus zero is zero


def check_share(value: object, name: str) -> float:
    """Return ``value`` as a float if it is between 0 and 1, both excluded."""
    number = check_real(value, name)
    if not 0 < number < 1:
        raise InvalidParameter(f"{name}={shown(value)} is not between 0 and 1.", parameter=name)
    return number


def check_count(value: object, name: str = "count", least: int = 0) -> int:
    """Return ``value`` as an int if it is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidParameter(
            f"{name}={shown(value)} is not a whole number; give an integer.", parameter=name
        )
    if value < least:
        raise InvalidParameter(
            f"{name}={shown(value)} is below {least}; give {least} or more.", parameter=name
        )
    return int(value)


def check_flag(value: object, name: str) -> bool:
    """Return ``value`` if it is True or False: a text such as "no" would count as True."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidParameter(
            f"{name}={shown(value)} is neither True nor False; give one of them.",
            parameter=name,
        )
    return bool(value)


def check_choice(value: object, choices: tuple[str, ...], name: str) -> str:
    """Return ``value`` if it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise InvalidParameter(
            f"{name}={shown(value)} is unknown; choose one of {listed}.", parameter=name
        )
    return str(value)


def described(value: object) -> str:
    """Return what a message may call a value that has the wrong type.

    Examples
    --------
    >>> from cumae.parameters import described
    >>> described(None), described(dict), described(3), described(object())
    ('None', 'the class dict', 'an int', 'an object')
    """
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"


class Kind(ABC):
    """The values that a parameter may have."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The type as docstrings and documentation show it."""

    @abstractmethod
    def check(self, value: object, name: str) -> None:
        """Raise ``InvalidParameter`` if the value is not of this kind."""


@dataclass(frozen=True)
class Number(Kind):
    """A real number from ``low`` to ``high``.

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
            raise InvalidParameter(f"{name}={shown(value)} is no {self.text}{hint}", parameter=name)


@dataclass(frozen=True)
class Count(Kind):
    """A whole number of at least ``least``."""

    least: int = 1

    @property
    def text(self) -> str:
        return f"int of {self.least} or more"

    def check(self, value: object, name: str) -> None:
        check_real(check_count(value, name, self.least), name)  # refuses what no float can hold


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
    """One fixed value, such as ``"auto"`` or None, or something of another kind.

    Examples
    --------
    >>> from cumae.parameters import Count, Or
    >>> rounds = Or("auto", Count(1))
    >>> rounds.text
    'int of 1 or more, or "auto"'
    >>> rounds.check("many", "rounds")
    Traceback (most recent call last):
    cumae.errors.InvalidParameter: rounds='many' is not a whole number; give an integer, or "auto".
    """

    fixed: str | float | None
    kind: Kind

    @property
    def text(self) -> str:
        return f"{self.kind.text}, or {self._fixed}"

    def check(self, value: object, name: str) -> None:
        if type(value) is type(self.fixed) and value == self.fixed:
            return
        try:
            self.kind.check(value, name)
        except InvalidParameter as error:
            said = str(error).removesuffix(".")
            raise InvalidParameter(f"{said}, or {self._fixed}.", parameter=name) from None

    @property
    def _fixed(self) -> str:
        return f'"{self.fixed}"' if isinstance(self.fixed, str) else repr(self.fixed)


@dataclass(frozen=True)
class Weights(Kind):
    """A number above 0 for some classes; the class that takes them knows which classes there are.

    Examples
    --------
    >>> from cumae.parameters import Weights
    >>> Weights().check({"died": 0}, "costs")
    Traceback (most recent call last):
    cumae.errors.InvalidParameter: costs={'died': 0} is no float above 0 and below inf.
    """

    text = "mapping from class to float above 0"

    def check(self, value: object, name: str) -> None:
        if not isinstance(value, Mapping) or not value:
            raise InvalidParameter(
                f"{name} is {described(value)}; give a number above 0 for each class that is not "
                'to count 1, such as {"died": 20}.',
                parameter=name,
            )
        for key, weight in value.items():
            named = f"{name}={{{shown(key)}: {shown(weight)}}}"
            if isinstance(weight, bool) or not isinstance(weight, numbers.Real):
                raise InvalidParameter(
                    f"{named} is not a number; give a real number.", parameter=name
                )
            if not 0 < float(weight) < math.inf:  # not for NaN either
                raise InvalidParameter(
                    f"{named} is no float above 0 and below inf.", parameter=name
                )


@dataclass(frozen=True)
class Object(Kind):
    """An object, such as an estimator; the class that takes it looks at it more closely.

    Any object passes if neither classes nor methods are given.

    Parameters
    ----------
    shown_as : str
        The type as docstrings show it.
    of : tuple of type
        The object must be of one of these classes.
    such_as : str
        What a message proposes instead.
    methods : tuple of str
        The object must have these methods, and must not be a class.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cumae.parameters import Object
    >>> Object("Fraction", of=(Fraction,), such_as="Fraction(1, 2)").check(0.5, "share")
    Traceback (most recent call last):
    cumae.errors.InvalidParameter: share is a float; give Fraction(1, 2).
    """

    shown_as: str
    of: tuple[type, ...] = ()
    such_as: str = ""
    methods: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.shown_as

    def check(self, value: object, name: str) -> None:
        right = not self.of or isinstance(value, self.of)
        if self.methods:
            has = [callable(getattr(value, method, None)) for method in self.methods]
            right = right and all(has) and not isinstance(value, type)
        if not right:
            wanted = self.such_as or self.text
            raise InvalidParameter(f"{name} is {described(value)}; give {wanted}.", parameter=name)


# Parameters that many estimators share.
EPSILON = Number()
DELTA = Number(0.0, 1.0, below=True, such_as="1e-6")
CHANCE = Number(0.0, 1.0, above=True, below=True)  # of failure, or a share of rows
COLUMNS = Or(None, Object("mapping or sequence"))
TWO_CLASSES = Object("sequence of two labels")
RANDOM_STATE = Or(None, Object("int or Source"))
CLASS_WEIGHTS = Or(None, Weights())
THRESHOLD = Or(None, Number(0.0, 1.0))


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
