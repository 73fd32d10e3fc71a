"""Checks of privacy parameters: what makes no sense raises, with the value and what to do."""

from __future__ import annotations

import math
import numbers
from fractions import Fraction
from typing import Any

from cumae.errors import InvalidParameter, shown
from cumae.parameters import check_real
from cumae.privacy.formulas import round_up


def _real(name: str, value: Any, *, up: bool = False, down: bool = False) -> float:
    """Return the nearest float, or the next one up or down if no float is equal to ``value``."""
    number = check_real(value, name)
    if (up or down) and math.isfinite(number):  # fractions, long doubles and long integers
        number = round_up(_exact(value)) if up else -round_up(-_exact(value))
    return number + 0.0  # minus zero is zero


def _exact(value: Any) -> Fraction:
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(*value.as_integer_ratio())


def check_epsilon(value: object, name: str = "epsilon", *, up: bool = False) -> float:
    """Return ``value`` as a float if it can be an epsilon: 0 or more, infinity included."""
    return check_nonnegative(value, name, up=up)


def check_nonnegative(value: object, name: str, *, up: bool = False, down: bool = False) -> float:
    """Return ``value`` as a float if it is 0 or more, infinity included."""
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


def plain_number(value: float) -> float | str:
    """Return a number as JSON can hold it: infinity becomes ``"inf"``."""
    return "inf" if value == math.inf else value


def from_plain_number(value: Any) -> Any:
    """Return what ``plain_number`` was given; anything else comes back as it is."""
    return math.inf if isinstance(value, str) and value == "inf" else value


def keep(cost: object, **fields: float | None) -> None:
    """Store checked values as plain numbers: a float16 would round what is computed from it.

    Every number that a cost, a guarantee or an entry of an account is made of goes through here.
    What raises a cost was rounded up by its check, noise was rounded down.
    """
    for name, value in fields.items():
        object.__setattr__(cost, name, value)
