"""Fitted learners as plain values, and back."""

from __future__ import annotations

from typing import Any

from cumae.codec.plain import TEXT_FORMAT, TEXT_FORMATS, from_plain, to_plain
from cumae.codec.registry import Part, by_dict, cannot_be_stored, class_named, name_of
from cumae.errors import CumaeError, InvalidParameter

FITTED = {"classes_", "target_range_"}  # of learners of classes, and of numbers


def by_fitted(value: Any, name: str, part: Part) -> dict[str, Any]:
    """Write a learner inside of another one, by its own ``to_dict``; refuse one without a fit."""
    if not hasattr(value, "classes_"):
        raise cannot_be_stored(type(value))
    return by_dict(value, name, part)


def stored(learner: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return a fitted learner as plain values.

    Parameters
    ----------
    learner : Learner
        What is stored, with all attributes whose names end in ``_``.
    parameters : dict
        The parameters to store with it.

    Returns
    -------
    dict
        What ``rebuilt`` takes.
    """
    kind = name_of(type(learner))
    fitted = {name: to_plain(value) for name, value in vars(learner).items() if name[-1:] == "_"}
    plain = {name: to_plain(value) for name, value in parameters.items()}
    return {"format": TEXT_FORMAT, "kind": kind, "params": plain, "fitted": fitted}


def rebuilt(plain: dict[str, Any], form: str) -> Any:
    """Return the learner that ``stored`` was given.

    Parameters
    ----------
    plain : dict
        What ``stored`` returned.
    form : str
        The form of all classes that it may be of.

    Returns
    -------
    Learner
        A fitted learner.

    Raises
    ------
    InvalidParameter
        If the values stand for none.
    """
    try:
        if plain["format"] not in TEXT_FORMATS:
            raise InvalidParameter(f"format {plain['format']!r} is not {TEXT_FORMAT}.")
        kind = class_named(form, plain["kind"])
        params = {name: from_plain(value) for name, value in plain["params"].items()}
        fitted = {name: from_plain(value) for name, value in plain["fitted"].items()}
        learner = kind(**params)
    except CumaeError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InvalidParameter(
            "this is no learner of cumae, or it is damaged; cumae.load takes any file that save, "
            "or `cumae fit`, wrote."
        ) from error
    if not FITTED & set(fitted) or any(n[:1] == "_" or n[-1:] != "_" for n in fitted):
        raise InvalidParameter("this is no fitted learner; give what to_dict wrote.")
    for name, value in fitted.items():
        setattr(learner, name, value)
    return learner
