"""Declared costs and thresholds: what is answered, and that nothing else changes."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from cumae.errors import InvalidParameter
from cumae.learners import (
    Learner,
    PrivateBooster,
    PrivateKernelClassifier,
    PrivateLogisticRegression,
)
from cumae.learners.scored import AnswerRule, chances
from cumae.privacy import Budget

KINDS: list[Any] = [PrivateKernelClassifier, PrivateLogisticRegression, PrivateBooster]
COLUMNS = [(-1, 1), (-1, 1)]


def rows(count: int = 3_000, classes: Any = ("no", "yes")) -> tuple[Any, Any]:
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (count, 2))
    return X, np.array(classes)[(rng.random(count) < 1 / (1 + np.exp(2 - 2 * X[:, 0]))).astype(int)]


def fitted(kind: Any, classes: Any = ("no", "yes"), **options: Any) -> tuple[Any, Any]:
    X, y = rows(classes=classes)
    learner = kind(1.0, 1e-6, columns=COLUMNS, classes=classes, random_state=7, **options)
    return learner.fit(X, y), X


@pytest.mark.claim("KERNEL")
@pytest.mark.parametrize("kind", KINDS)
def test_answers_have_the_least_expected_cost_and_chances_stay(kind: Any) -> None:
    plain, X = fitted(kind)
    chance = plain.predict_proba(X)
    for name in ("costs", "class_weight"):
        learner, _ = fitted(kind, **{name: {"yes": 7.0, "no": 2.0}})
        assert learner.guarantee_.epsilon == plain.guarantee_.epsilon
        np.testing.assert_array_equal(learner.predict_proba(X), chance)
        cheapest = np.where(7.0 * chance[:, 1] > 2.0 * chance[:, 0], "yes", "no")
        np.testing.assert_array_equal(learner.predict(X), cheapest)
        assert np.mean(cheapest == "yes") > np.mean(plain.predict(X) == "yes") + 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_a_threshold_is_the_chance_from_which_on_the_second_class_is_answered(kind: Any) -> None:
    learner, X = fitted(kind, threshold=0.2)
    chance = learner.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(learner.predict(X) == "yes", chance >= 0.2)
    exact = float(chance[3])  # a chance that occurs: from it on, and not only above it
    learner.set_params(threshold=exact)
    np.testing.assert_array_equal(learner.predict(X) == "yes", chance >= exact)
    assert learner.predict(X[3:4]) == "yes"
    assert set(learner.set_params(threshold=0.0).predict(X)) == {"yes"}


@pytest.mark.parametrize("kind", KINDS)
def test_files_keep_the_rule_and_older_files_have_none(kind: Any) -> None:
    for options in ({"costs": {"yes": 9.0}}, {"threshold": 0.1}, {"class_weight": {"no": 0.2}}):
        learner, X = fitted(kind, **options)
        plain = json.loads(json.dumps(learner.to_dict()))
        np.testing.assert_array_equal(Learner.from_dict(plain).predict(X), learner.predict(X))
        for name in ("goal", "class_weight", "costs", "threshold"):
            plain["params"].pop(name, None)
        older = Learner.from_dict(plain)
        np.testing.assert_array_equal(older.predict_proba(X), learner.predict_proba(X))
        likeliest = np.where(learner.predict_proba(X)[:, 1] > 0.5, "yes", "no")
        np.testing.assert_array_equal(older.predict(X), likeliest)


@pytest.mark.claim("KERNEL")
@pytest.mark.parametrize("options", [{"costs": {1: 7.3}}, {"threshold": 0.123}])
def test_an_answer_depends_on_its_own_row_alone(options: Any) -> None:
    learner, X = fitted(PrivateKernelClassifier, classes=(0, 1), **options)
    whole = learner.predict(X)
    alone = np.concatenate([learner.predict(X[place : place + 1]) for place in range(100)])
    np.testing.assert_array_equal(alone, whole[:100])
    np.testing.assert_array_equal(learner.predict(X[::-1]), whole[::-1])


def test_costs_of_several_classes() -> None:
    classes = ("a", "b", "c")
    X, y = rows(classes=classes[:2])
    y[X[:, 1] > 0.6] = "c"
    learner = PrivateKernelClassifier(
        4.0, 1e-6, n_waves=0, columns=COLUMNS, classes=classes, random_state=3, costs={"c": 4}
    ).fit(X, y)
    chance = learner.predict_proba(X)
    wanted = np.array(classes)[np.argmax(chance * [1, 1, 4], axis=1)]
    np.testing.assert_array_equal(learner.predict(X), wanted)
    assert np.any(wanted != np.array(classes)[np.argmax(chance, axis=1)])


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"costs": {"maybe": 2}}, "costs has the key 'maybe', which is none of classes"),
    ({"class_weight": {"maybe": 2}}, "class_weight has the key"),
    ({"costs": {"yes": 0}}, "above 0"),
    ({"costs": {"yes": -1.0}}, "above 0"),
    ({"costs": {"yes": math.nan}}, "above 0"),
    ({"costs": {"yes": math.inf}}, "below inf"),
    ({"costs": {"yes": "many"}}, "not a number"),
    ({"costs": {"yes": True}}, "not a number"),
    ({"costs": {}}, "costs is a dict"),
    ({"class_weight": "balanced"}, "class_weight is a str"),
    ({"threshold": 1.5}, "threshold=1.5"),
    ({"threshold": math.nan}, "threshold=nan"),
    ({"threshold": 0.5, "costs": {"yes": 2}}, "costs and threshold were given"),
    ({"class_weight": {"yes": 2}, "costs": {"yes": 2}}, "give one"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_does_not_fit_is_refused_before_it_is_paid(
    kind: Any, options: dict[str, Any], message: str
) -> None:
    X, y = rows(300)
    budget = Budget(10.0, 0.1)
    learner = kind(1.0, 1e-6, columns=COLUMNS, classes=("no", "yes"), budget=budget, **options)
    with pytest.raises(InvalidParameter, match=message):
        learner.fit(X, y)
    assert budget.spent == (0.0, 0.0)
    assert message.split(" ", maxsplit=1)[0].rstrip(",") in str(learner.plan(300, 2))


def test_goals_and_thresholds_that_say_nothing_are_refused() -> None:
    X, y = rows(300)
    learner = PrivateKernelClassifier(columns=COLUMNS, classes=("no", "yes"), goal="cost")
    with pytest.raises(InvalidParameter, match="without costs"):
        learner.fit(X, y)
    several = PrivateKernelClassifier(columns=COLUMNS, classes=("no", "yes", "?"), threshold=0.2)
    with pytest.raises(InvalidParameter, match="with 3 classes"):
        several.fit(X, y)


def test_equal_weights_change_nothing() -> None:
    odds = np.array([0.0, -0.0, 1e-300, -2.0, 3.0])
    assert AnswerRule.of((0, 1), {0: 3, 1: 3}, None, None) == AnswerRule()
    np.testing.assert_array_equal(AnswerRule().places(odds), [0, 0, 1, 0, 1])
    rule = AnswerRule.of((False, True), None, {True: 2.0}, None)
    np.testing.assert_array_equal(rule.places(odds), 2 * chances(odds)[:, 1] > chances(odds)[:, 0])
