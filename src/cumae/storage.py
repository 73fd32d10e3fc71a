"""Values as JSON can hold them, and back.

Learners and the states of predictors are stored with these functions.
"""

from __future__ import annotations

import datetime as dt
import inspect
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cumae import concepts, sanitizers
from cumae.concepts import ConceptClass, Hypothesis
from cumae.data import Column, Columns
from cumae.errors import CumaeError, InvalidParameter
from cumae.privacy import Guarantee
from cumae.sanitizers import Sanitizer

NO_LEARNERS: Mapping[str, Any] = {}
FORMAT = 1  # of stored learners
TAG = "$"  # marks a dict that stands for something that JSON does not have
# Classes with to_dict and from_dict; a module above adds those of its own.
KINDS: dict[str, Any] = {
    "guarantee": Guarantee,
    "hypothesis": Hypothesis,
    "columns": Columns,
    "column": Column,
}
TYPES = {"bool": bool, "int": int, "float": float}  # that declare a column


def to_plain(value: Any) -> Any:  # noqa: PLR0911, PLR0912, C901 - one line a kind of value
    """Return plain values that JSON can hold for a value of a known kind, or for many of them."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {TAG: "float", "value": repr(value)}
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    if isinstance(value, tuple):
        return {TAG: "tuple", "items": [to_plain(item) for item in value]}
    if isinstance(value, dict):
        return {TAG: "dict", "items": [[to_plain(k), to_plain(v)] for k, v in value.items()]}
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, np.ndarray):
        items = [to_plain(item) for item in value.ravel().tolist()]
        return {TAG: "array", "type": value.dtype.str, "shape": list(value.shape), "items": items}
    for name, kind in KINDS.items():
        if isinstance(value, kind):
            return {TAG: name, "value": value.to_dict()}
    if isinstance(value, ConceptClass | Sanitizer):
        fields = {name: to_plain(getattr(value, name)) for name in _parameters(type(value))}
        name = "concept" if isinstance(value, ConceptClass) else "sanitizer"
        return {TAG: name, "kind": type(value).__name__, "fields": fields}
    if isinstance(value, dt.date):
        return {TAG: "day", "value": dt.datetime(*value.timetuple()[:6]).isoformat()}  # noqa: DTZ001
    if isinstance(value, type) and value in TYPES.values():  # numpy's types equal them
        return {TAG: "type", "value": value.__name__}
    if hasattr(value, "to_dict") and hasattr(value, "classes_"):
        return {TAG: "learner", "value": value.to_dict()}
    raise InvalidParameter(f"a {type(value).__name__} cannot be stored; keep it yourself.")


def from_plain(plain: Any, learners: Mapping[str, Any] = NO_LEARNERS) -> Any:  # noqa: PLR0911, C901
    """Rebuild what ``to_plain`` was given; ``learners`` are the known classes of learners."""
    if isinstance(plain, list):
        return [from_plain(item, learners) for item in plain]
    if not isinstance(plain, dict):
        return plain
    tag = plain[TAG]
    if tag == "float":
        return float(plain["value"])
    if tag in ("tuple", "array"):
        items = [from_plain(item, learners) for item in plain["items"]]
        if tag == "tuple":
            return tuple(items)
        return np.array(items, dtype=plain["type"]).reshape(plain["shape"])
    if tag == "dict":
        return {from_plain(k, learners): from_plain(v, learners) for k, v in plain["items"]}
    if tag == "day":
        return dt.datetime.fromisoformat(plain["value"])
    if tag == "type":
        return TYPES[plain["value"]]
    if tag in KINDS:
        return KINDS[tag].from_dict(plain["value"])
    if tag in ("concept", "sanitizer"):
        package, base = (concepts, ConceptClass) if tag == "concept" else (sanitizers, Sanitizer)
        kind = getattr(package, plain["kind"], None)
        if not (isinstance(kind, type) and issubclass(kind, base)):
            raise InvalidParameter(
                f"a stored {tag} is of an unknown kind; give what to_dict wrote."
            )
        fields = {name: from_plain(value, learners) for name, value in plain["fields"].items()}
        return kind(**fields)
    if tag == "learner":
        return learners[plain["value"]["kind"]].from_dict(plain["value"])
    raise InvalidParameter(f"tag {tag!r} is unknown; give what to_dict returned.")


def _parameters(kind: Any) -> list[str]:
    return [name for name in inspect.signature(kind).parameters if name != "random_state"]


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
    fitted = {name: to_plain(value) for name, value in vars(learner).items() if name[-1:] == "_"}
    plain = {name: to_plain(value) for name, value in parameters.items()}
    return {"format": FORMAT, "kind": type(learner).__name__, "params": plain, "fitted": fitted}


def rebuilt(plain: dict[str, Any], base: Any) -> Any:
    """Return the learner that ``stored`` was given.

    Parameters
    ----------
    plain : dict
        What ``stored`` returned.
    base : type
        The class that all known learners descend from.

    Returns
    -------
    Learner
        A fitted learner.

    Raises
    ------
    InvalidParameter
        If the values stand for none.
    """
    learners = {known.__name__: known for known in _descendants(base)}
    try:
        if plain["format"] != FORMAT:
            raise InvalidParameter(f"format {plain['format']!r} is not {FORMAT}.")
        kind = learners[plain["kind"]]
        params = {name: from_plain(v, learners) for name, v in plain["params"].items()}
        fitted = {name: from_plain(v, learners) for name, v in plain["fitted"].items()}
        learner = kind(**params)
    except CumaeError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise InvalidParameter("this is no stored learner; give what to_dict wrote.") from error
    if "classes_" not in fitted or any(n[:1] == "_" or n[-1:] != "_" for n in fitted):
        raise InvalidParameter("this is no fitted learner; give what to_dict wrote.")
    for name, value in fitted.items():
        setattr(learner, name, value)
    return learner


def read_file(path: str | Path) -> Any:
    """Return the plain values of a file of JSON; refuse one that is none."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidParameter("the file is no JSON; give one that save wrote.") from error


def _descendants(kind: Any) -> list[Any]:
    found: list[Any] = []
    for child in kind.__subclasses__():
        found += [child, *_descendants(child)]
    return found
