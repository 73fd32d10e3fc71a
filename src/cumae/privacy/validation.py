"""Checks of privacy parameters: what makes no sense raises, with the value and what to do."""

from __future__ import annotations

import math
import numbers
from fractions import Fraction
from typing import Any

from cumae.errors import InvalidParameter, shown
from cumae.privacy.formulas import round_up


def _real(name: str, value: Any, *, up: bool = False, down: bool = False) -> float:
    """Return the nearest float, or the next one up or down if no float is equal to ``value``."""
    # bool is a number to Python, but epsilon=True is a slip of the pen.
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidParameter(f"{name}={shown(value)} is not a number; give a real number.")
    try:
        number = float(value)
    except OverflowError as error:
        raise InvalidParameter(f"{name} is an integer beyond all floats; give less.") from error
    if math.isnan(number):
        raise InvalidParameter(f"{name}={shown(value)} is not a number; give a real number.")
    if (up or down) and math.isfinite(number):  # fractions, long doubles and long integers
        number = round_up(_exact(value)) if up else -round_up(-_exact(value))
    return number + 0.0  # minus zero is zero


def _exact(value: Any) -> Fraction:
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(*value.as_integer_ratio())


def check_epsilon(
    value: object, name: str = "epsilon", *, up: bool = False, down: bool = False
) -> float:
    """Return ``value`` as a float if it is in [0, inf]."""
    number = _real(name, value, up=up, down=down)
    if number < 0:
        raise InvalidParameter(f"{name}={shown(value)} is negative; give a number of 0 or more.")
    return number


def check_delta(value: object, name: str = "delta", *, up: bool = False) -> float:
    """Return ``value`` as a float if it is in [0, 1)."""
    number = _real(name, value, up=up)
    if not 0 <= number < 1:
        raise InvalidParameter(
            f"{name}={shown(value)} is outside [0, 1); give a small probability such as 1e-6."
        )
    return number


def check_rate(value: object, name: str = "rate", *, up: bool = False) -> float:
    """Return ``value`` as a float if it is in [0, 1]."""
    number = _real(name, value, up=up)
    if not 0 <= number <= 1:
        raise InvalidParameter(
            f"{name}={shown(value)} is outside [0, 1]; give a share of the rows."
        )
    return number


def check_share(value: object, name: str) -> float:
    """Return ``value`` as a float if it is in (0, 1)."""
    number = check_epsilon(value, name)
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
    if not isinstance(value, bool):
        raise InvalidParameter(
            f"{name}={shown(value)} is neither True nor False; give one of them."
        )
    return value


def check_choice(value: object, choices: tuple[str, ...], name: str) -> str:
    """Return ``value`` if it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise InvalidParameter(f"{name}={shown(value)} is unknown; choose one of {listed}.")
    return str(value)


def keep(cost: object, **fields: float | None) -> None:
    """Store checked values as plain numbers: a float16 would round what is computed from it.

    Every number that a cost, a guarantee or an entry of an account is made of goes through here.
    What raises a cost was rounded up by its check, noise was rounded down.
    """
    for name, value in fields.items():
        object.__setattr__(cost, name, value)
