"""The registry of stored kinds: which classes can be written, and under which names.

A package registers its classes where it imports them. A name stands in files, so it never changes,
even if the class is renamed. Nothing is found by walking over subclasses: a class that somebody
derives from one of ours can neither be written nor read until it is registered itself.
"""

from __future__ import annotations

import importlib
import inspect
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from cumae.errors import InvalidParameter

# What writes or reads a value inside of another one.
Part: TypeAlias = Callable[[Any], Any]
Write: TypeAlias = Callable[[Any, str, Part], dict[str, Any]]
Read: TypeAlias = Callable[[dict[str, Any], Part], Any]


@dataclass(frozen=True)
class Form:
    """The way in which values of some classes are written.

    Parameters
    ----------
    tag : str
        The word that marks these values in files.
    base : type
        The class that all of these classes descend from.
    write : callable, or None
        Takes a value, the name of its class and a function for the values inside, and returns what
        stands beside the tag. None if only their classes are stored, by name.
    read : callable
        Takes what ``write`` returned and a function for the values inside, and returns the value.
        It has to read the values inside in the order in which they were written.
    asked : bool
        Whether these values are written and read only where the form is asked for.
    """

    tag: str
    base: type
    write: Write | None
    read: Read
    asked: bool = False

    def is_for(self, asked: Collection[str]) -> bool:
        """Tell whether these values are written and read where some forms are asked for."""
        return not self.asked or self.tag in asked


@dataclass(frozen=True)
class StoredKind:
    """The name of a class in files, and the tag of the form in which its values are written."""

    name: str
    form: str


_FORMS: dict[str, Form] = {}
_CLASSES: dict[str, dict[str, type | None]] = {}  # by form and name; None: not imported yet
_KINDS: dict[type, StoredKind] = {}
_LATER: defaultdict[str, list[StoredKind]] = defaultdict(list)  # by the last part of their names


def by_dict(value: Any, name: str, part: Part) -> dict[str, Any]:
    """Write a value by its own ``to_dict``."""
    del name, part
    return {"value": value.to_dict()}


def by_parameters(value: Any, name: str, part: Part) -> dict[str, Any]:
    """Write a value by the parameters of its class, which are its attributes, too."""
    names = [one for one in inspect.signature(type(value)).parameters if one != "random_state"]
    return {"kind": name, "fields": {one: part(getattr(value, one)) for one in names}}


def from_parameters(form: str) -> Read:
    """Return what reads values of a form that ``by_parameters`` wrote."""

    def read(plain: dict[str, Any], part: Part) -> Any:
        kind = class_named(form, plain["kind"])
        if kind is None:
            raise InvalidParameter(
                f"a stored {form} is of an unknown kind; give what to_dict wrote."
            )
        return kind(**{name: part(value) for name, value in plain["fields"].items()})

    return read


def add_form(
    tag: str,
    base: Any,
    write: Write | None = by_dict,
    read: Read | None = None,
    *,
    asked: bool = False,
) -> None:
    """Say how values of some classes are written; see :class:`Form`.

    Without ``read``, the class ``base`` has a method ``from_dict`` for what is under ``"value"``.
    """
    if tag in _FORMS and _FORMS[tag].base is not base:
        raise AssertionError(f"there is a form {tag!r} already")
    _FORMS[tag] = Form(tag, base, write, read or _from_dict(base), asked)
    _CLASSES.setdefault(tag, {})


def _from_dict(base: Any) -> Read:
    return lambda plain, _: base.from_dict(plain["value"])


def register(form: str, classes: Mapping[str, type]) -> None:
    """Let classes be written and read.

    Parameters
    ----------
    form : str
        The tag of their form.
    classes : mapping from str to type
        The classes by the names under which they are stored, for ever.

    Raises
    ------
    InvalidParameter
        If a name belongs to another class, or a class has another name or is of another form.

    Examples
    --------
    >>> from cumae.codec import class_named, name_of
    >>> from cumae.privacy import Pure
    >>> name_of(Pure), class_named("cost", "Pure") is Pure, class_named("concept", "Pure")
    ('Pure', True, None)
    """
    for name, kind in classes.items():
        taken = _CLASSES[form].get(name)
        known = _KINDS.get(kind, StoredKind(name, form))
        if taken not in (None, kind) or known != StoredKind(name, form):
            raise InvalidParameter(
                f"the name {name!r} or the class {kind.__name__} is registered already; a stored "
                "class has one name, and a name one class."
            )
        if not issubclass(kind, _FORMS[form].base):
            raise InvalidParameter(f"{kind.__name__} is no {form}; register it as what it is.")
        _CLASSES[form][name] = kind
        _KINDS[kind] = known


def register_kind(name: str, kind: Any) -> None:
    """Let values of one class be written by its ``to_dict``, and read by its ``from_dict``.

    Parameters
    ----------
    name : str
        The name under which it is stored, which is its tag as well.
    kind : type
        The class.
    """
    add_form(name, kind)
    register(name, {name: kind})


def register_later(form: str, names: Iterable[str]) -> None:
    """Let classes be written and read that are imported only when one of them is met.

    Parameters
    ----------
    form : str
        The tag of their form.
    names : iterable of str
        Where each of them is imported from, such as ``"sklearn.tree.DecisionTreeClassifier"``.
    """
    for name in names:
        _CLASSES[form][name] = None
        _LATER[name.rpartition(".")[2]].append(StoredKind(name, form))


def class_named(form: str, name: Any) -> Any:
    """Return the class of a form that is stored under a name; None if there is none."""
    known = _CLASSES.get(form, {})
    if not isinstance(name, str) or name not in known:
        return None
    kind = known[name]
    if kind is None:
        module, _, own = name.rpartition(".")
        kind = getattr(importlib.import_module(module), own, None)
        if kind is not None:
            known[name], _KINDS[kind] = kind, StoredKind(name, form)
    return kind


def kind_of(kind: type) -> StoredKind | None:
    """Return what is registered about a class; None if it cannot be stored."""
    if kind not in _KINDS:
        for later in _LATER.get(kind.__name__, ()):
            class_named(later.form, later.name)  # it may be the one that was waited for
    return _KINDS.get(kind)


def name_of(kind: type) -> str:
    """Return the name under which a class is stored, or refuse one that cannot be."""
    found = kind_of(kind)
    if found is None:
        raise cannot_be_stored(kind)
    return found.name


def form_of(tag: Any) -> Form | None:
    """Return the form that a tag in a file stands for."""
    return _FORMS.get(tag)


def form_above(kind: type) -> Form | None:
    """Return the form that a class belongs to by its bases, whether it is registered or not."""
    bases = {form.base: form for form in _FORMS.values() if not form.asked}
    return next((bases[base] for base in kind.__mro__ if base in bases), None)


def registered_names() -> dict[str, list[str]]:
    """Return all names of stored classes, by the tags of their forms."""
    return {tag: sorted(classes) for tag, classes in _CLASSES.items()}


def cannot_be_stored(kind: type) -> InvalidParameter:
    """Return the error for values of a class that is not registered."""
    return InvalidParameter(f"a {kind.__name__} cannot be stored; keep it yourself.")
