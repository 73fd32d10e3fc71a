"""Tables of parameters: each public estimator has one, which its constructor and docs follow."""

from __future__ import annotations

import inspect
import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

import cumae
from cumae import learners, predictors
from cumae.concepts import Thresholds
from cumae.errors import InvalidParameter
from cumae.learners import Learner, PrivateLearner
from cumae.parameters import (
    Choice,
    Count,
    Flag,
    Kind,
    Number,
    Object,
    Or,
    check_parameters,
    described,
)
from cumae.privacy import Budget

# What parameters without a default get.
NEEDED: dict[str, Any] = {
    "base": PrivateLearner(),
    "estimator": DummyClassifier(),
    "predictor": PrivateLearner(),
    "concept_class": Thresholds(),
    "domain": [[0.0], [1.0]],
    "dummies": [[0.0], [1.0]],
    "n_public": 5,
    "classes": (0, 1),
    "epsilon": 1.0,
    "delta": 1e-6,
}
WRONG = (-1, -0.5, 0, 0.5, 1.5, math.nan, "nonsense", None, object(), PrivateLearner, [1.0])


def estimators() -> dict[str, Any]:
    """Return all public classes that can be fitted."""
    found = {}
    for package in (cumae, learners, predictors):
        for name in package.__all__:
            thing = getattr(package, name)
            if isinstance(thing, type) and hasattr(thing, "fit") and not inspect.isabstract(thing):
                found[name] = thing
    return found


ESTIMATORS = estimators()
WITH_TABLE = sorted(ESTIMATORS)


def constructor(kind: Any) -> dict[str, Any]:
    """Return the parameters of a constructor, with their defaults."""
    given = inspect.signature(kind).parameters
    return {name: given[name].default for name in given}


def made(kind: Any, **changes: Any) -> Any:
    defaults = constructor(kind)
    needed = [name for name in defaults if defaults[name] is inspect.Parameter.empty]
    return kind(**{name: NEEDED[name] for name in needed} | changes)


def documented(kind: Any) -> dict[str, str]:
    """Return the types that the section Parameters of a docstring gives."""
    text = inspect.getdoc(kind) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+$|\Z)", text, re.DOTALL | re.MULTILINE)
    assert section is not None, f"{kind.__name__} documents no parameters"
    found = {}
    for line in section[1].splitlines():
        if line and not line.startswith(" "):
            names, _, shown = line.partition(" : ")
            found.update(dict.fromkeys(names.split(", "), shown))
    return found


def wrong_for(kind: Kind) -> list[Any]:
    """Return values that a kind refuses."""
    refused = []
    for value in WRONG:
        try:
            kind.check(value, "name")
        except InvalidParameter:
            refused.append(value)
    return refused


def checked(kind: Kind) -> bool:
    """Tell whether a kind refuses anything."""
    if isinstance(kind, Or):
        return checked(kind.kind)
    return not isinstance(kind, Object) or bool(kind.of or kind.methods)


class Untouched:
    """Rows that nobody may look at."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"{name} of the rows was looked at")


def test_every_estimator_has_a_table() -> None:
    assert len(ESTIMATORS) >= 18
    without = {name for name, kind in ESTIMATORS.items() if "parameter_table" not in vars(kind)}
    assert not without


@pytest.mark.parametrize("name", WITH_TABLE)
def test_tables_follow_constructors(name: str) -> None:
    kind = ESTIMATORS[name]
    assert list(kind.parameter_table) == list(constructor(kind))
    check_parameters(made(kind), kind.parameter_table)  # defaults pass


@pytest.mark.parametrize("name", WITH_TABLE)
def test_docstrings_follow_tables(name: str) -> None:
    kind = ESTIMATORS[name]
    texts = {parameter: found.text for parameter, found in kind.parameter_table.items()}
    shown = documented(kind)
    assert shown == texts
    assert list(shown) == list(texts)


@pytest.mark.parametrize("name", WITH_TABLE)
def test_wrong_values_are_refused_before_rows_are_read(name: str) -> None:
    kind = ESTIMATORS[name]
    count = 0
    for parameter, allowed in kind.parameter_table.items():
        wrong = wrong_for(allowed)
        assert bool(wrong) == checked(allowed), parameter
        for value in wrong:
            budget = Budget(10.0, 0.1)
            changes = {"budget": budget} | {parameter: value}
            estimator = made(kind, **changes)
            with pytest.raises(InvalidParameter, match=rf"^{parameter}\b"):
                estimator.fit(Untouched(), Untouched())
            assert budget.spent == (0.0, 0.0)
            count += 1
    assert count > 0


def test_a_base_is_checked_by_its_own_table() -> None:
    wrong: Any = "many"
    for base in (PrivateLearner(n_points=wrong), PrivateLearner(epsilon=-1.0)):
        for kind in (learners.AccuracyBoost, learners.ActiveLearner, learners.LabelBoost):
            learner = made(kind, base=base)
            with pytest.raises(InvalidParameter, match=r"n_points='many'|epsilon=-1\.0"):
                getattr(learner, "select", learner.fit)(*rows_for(learner))


def rows_for(learner: Learner) -> tuple[Any, ...]:
    X = np.linspace(0, 1, 200).reshape(-1, 1)
    return (X,) if hasattr(learner, "select") else (X, X[:, 0] > 0.5)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Number(), "float of 0 or more"),
        (Number(above=True), "float above 0"),
        (Number(0, 1, below=True), "float from 0 and below 1"),
        (Number(0, 1), "float from 0 to 1"),
        (Number(0, 1, above=True), "float above 0 and up to 1"),
        (Count(2), "int of 2 or more"),
        (Flag(), "bool"),
        (Choice(("a", "b")), '{"a", "b"}'),
        (Or("auto", Or(None, Count(0))), 'int of 0 or more, or None, or "auto"'),
        (Or(math.inf, Flag()), "bool, or inf"),
        (Object("Budget"), "Budget"),
    ],
)
def test_texts(kind: Kind, text: str) -> None:
    assert kind.text == text


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Number(), (0, 0.5, math.inf, np.float32(2), Fraction(1, 3)), (-1, math.nan, True, "1")),
        (Number(above=True, below=True), (1, 1e-300), (0, -0.0, math.inf)),
        (Number(0, 1, below=True), (0, 0.999), (1, 1.5)),
        (Count(1), (1, np.int64(7)), (0, 1.0, True, None)),
        (Flag(), (True, np.False_), (0, 1, None, "no")),
        (Choice(("a", "b")), ("a", "b"), ("c", None, ("a",))),
        (Or("auto", Count(1)), ("auto", 3), ("none", None, 0)),
        (Or(None, Flag()), (None, True), (0, "None")),
        (Object("str", of=(str,)), ("", "text"), (None, 3, str)),
        (Object("stack", methods=("append", "pop")), ([], bytearray()), (list, (), None)),
        (Object("anything"), (None, 3, list), ()),
    ],
)
def test_kinds(kind: Kind, good: tuple[Any, ...], bad: tuple[Any, ...]) -> None:
    for value in good:
        kind.check(value, "name")
    for value in bad:
        with pytest.raises(InvalidParameter, match=r"^name"):
            kind.check(value, "name")


def test_messages_name_alternatives_and_examples() -> None:
    with pytest.raises(InvalidParameter, match=r'^size=0 is below 1; give 1 or more, or "auto"\.$'):
        Or("auto", Count(1)).check(0, "size")
    with pytest.raises(InvalidParameter, match=r"below 1; give 0\.1, for example\.$"):
        Number(0, 1, below=True, such_as="0.1").check(3.0, "rate")
    with pytest.raises(InvalidParameter, match=r"^text is an int; give str\.$"):
        Object("str", of=(str,)).check(3, "text")
    assert described([]) == "a list"
