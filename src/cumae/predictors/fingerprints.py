"""Fingerprints of estimators: texts by which an equal estimator is known again.

Estimators that cannot be written out must be given again when a stored predictor is opened. Their
fingerprints are compared then.
"""

from __future__ import annotations

import copyreg
import hashlib
import json
from collections.abc import Iterator
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from cumae.codec import PlainWriter
from cumae.errors import InvalidParameter
from cumae.quiet import HiddenFailures

ANY = PlainWriter(any_class=True)  # an estimator of somebody else may hold rules of somebody else
FORM = "2:"  # begins fingerprints that know what functions do; the first versions had others

# What a function may find in its module, and what does not change when it is used.
CONSTANTS = (
    *(bool, int, float, complex, str, bytes, tuple, frozenset, type(None)),
    *(type, BuiltinFunctionType, ModuleType, np.ufunc),
)


def fingerprint(model: Any) -> str:
    """Return a text that two estimators share if their class and all parameters are the same.

    Of a function, what it does counts: its code with the numbers and names in it, its defaults,
    what it closes over, and the functions and constants that it finds in its module.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from cumae.predictors.fingerprints import fingerprint
    >>> fingerprint(FunctionTransformer(np.log1p)) == fingerprint(FunctionTransformer(np.log))
    False
    """
    return FORM + _hashed(_canonical(model, set()))


def first_fingerprint(model: Any) -> str:
    """Return what stands in files of the first versions, for which functions were their code."""
    return _hashed(_first_canonical(model))


def _hashed(plain: Any) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def is_estimator(value: Any) -> bool:
    """Tell whether a value is an instance of an estimator."""
    return hasattr(value, "get_params") and not isinstance(value, type)


def _path(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _canonical(value: Any, outer: set[int]) -> Any:  # noqa: PLR0911 - one line a kind of value
    """Return plain values that are the same for equal estimators; also of unknown classes.

    ``outer`` has the ids of what contains the value.
    """
    if id(value) in outer:
        return ["again", type(value).__name__]
    within = outer | {id(value)}
    if is_estimator(value):
        return [_path(type(value)), _canonical(value.get_params(deep=False), within)]
    if isinstance(value, list | tuple | set | frozenset | dict):
        return [type(value).__name__, _canonical_parts(value, within)]
    if isinstance(value, type | ModuleType):
        return ["type", value.__name__ if isinstance(value, ModuleType) else _path(value)]
    if isinstance(value, bytes | complex) or value is Ellipsis:
        return [type(value).__name__, repr(value)]
    if isinstance(value, FunctionType):
        return _canonical_function(value, within)
    if hasattr(value, "__wrapped__"):  # a function that was compiled, or remembers its results
        return [_path(type(value)), _canonical(value.__wrapped__, within)]
    try:
        return ANY.plain(value)
    except InvalidParameter:
        return _canonical_object(value, within)


def _canonical_parts(value: Any, within: set[int]) -> list[Any]:
    parts = [_canonical(part, within) for part in value]
    if isinstance(value, set | frozenset):  # whose order differs from process to process
        return sorted(parts, key=json.dumps)
    if isinstance(value, dict):
        return [
            [key, _canonical(value[one], within)] for key, one in zip(parts, value, strict=True)
        ]
    return parts


def _canonical_object(value: Any, within: set[int]) -> Any:
    """Return what makes an object again, as pickle and ``copy.deepcopy`` ask it; else its fields.

    A function that is not written in Python says its name.
    """
    made: Any = None
    with HiddenFailures():
        ask: Any = copyreg.dispatch_table.get(type(value))
        made = value.__reduce_ex__(4) if ask is None else ask(value)
    if isinstance(made, str):
        return ["name", getattr(value, "__module__", None), made]
    if isinstance(made, tuple):
        parts = [list(part) if isinstance(part, Iterator) else part for part in made]
        return [_path(type(value)), _canonical(parts, within)]
    return [_path(type(value)), _canonical(getattr(value, "__dict__", {}), within)]


def _canonical_function(value: FunctionType, within: set[int]) -> Any:
    """Return what a function does, together with what it uses of its module."""
    used = {}
    for name, one in sorted(_used(value).items()):
        if isinstance(one, FunctionType) and one.__globals__ is value.__globals__:
            used[name] = _canonical_body(one, within)
        # Of other objects the type counts: some, such as a log, are changed by their use.
        elif isinstance(one, CONSTANTS):
            used[name] = _canonical(one, within)
        else:
            used[name] = _path(one if isinstance(one, FunctionType) else type(one))
    return ["function", _path(value), _canonical_body(value, within), used]


def _canonical_body(value: FunctionType, within: set[int]) -> Any:
    cells = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
    given = [value.__defaults__, value.__kwdefaults__, cells]
    return [_canonical_code(value.__code__, value.__doc__), _canonical(given, within)]


def _used(value: FunctionType) -> dict[str, Any]:
    """Return what a function finds in its module, and the functions there that it calls."""
    found: dict[str, Any] = {}
    waiting, known = [value], value.__globals__
    while waiting:
        names = _names_in(waiting.pop().__code__) & known.keys() - found.keys()
        found |= {name: known[name] for name in names}
        functions = [known[name] for name in names if isinstance(known[name], FunctionType)]
        waiting += [one for one in functions if one.__globals__ is known]
    return found


def _canonical_code(code: CodeType, text: str | None = None) -> Any:
    """Return what code does, by what is in it; not its docstring, nor the line where it stands."""
    parts = code.co_consts
    if text is not None and parts and parts[0] == text:
        parts = parts[1:]
    inner = [
        _canonical_code(one) if isinstance(one, CodeType) else _canonical(one, set())
        for one in parts
    ]
    return [code.co_code.hex(), code.co_argcount, list(code.co_names), inner]


def _names_in(code: CodeType) -> set[str]:
    inner = [_names_in(one) for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*inner)


def _is_filled(cell: CellType) -> bool:
    """Tell whether a closure has its value yet; a function that calls itself may come before it."""
    try:
        cell.cell_contents  # noqa: B018 - it raises if there is none
    except ValueError:
        return False
    return True


def _first_canonical(value: Any) -> Any:  # noqa: PLR0911 - one line a kind of value
    """As ``_canonical`` was in the first versions."""
    if is_estimator(value):
        fields = value.get_params(deep=False)
        return [_path(type(value)), {name: _first_canonical(part) for name, part in fields.items()}]
    if isinstance(value, list | tuple):
        return [type(value).__name__, [_first_canonical(part) for part in value]]
    if isinstance(value, dict):
        pairs = value.items()
        return ["dict", [[_first_canonical(key), _first_canonical(part)] for key, part in pairs]]
    if isinstance(value, type):
        return ["type", _path(value)]
    if hasattr(value, "__code__"):
        return ["function", _path(value), value.__code__.co_code.hex()]
    try:
        return ANY.plain(value)
    except InvalidParameter:
        fields = getattr(value, "__dict__", {})
        return [_path(type(value)), {name: _first_canonical(part) for name, part in fields.items()}]
