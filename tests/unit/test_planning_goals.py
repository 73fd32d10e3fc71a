"""Rare outcomes in the planner: goals, costs, shares, and what is said before a payment."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cumae import Budget, InvalidParameter, PrivateClassifier
from cumae.errors import ConstantAnswers, TooFewRows
from cumae.planning import plan
from cumae.planning.advice import advise
from cumae.planning.goals import best_guess, figure, misses_of, ranked, shares_of
from cumae.planning.rare import measured, reached
from cumae.planning.routes import ROUTES, Situation
from cumae.planning.simulation import Sample, simulate, usual_model

EIGHT = [(-1.0, 1.0)] * 8
SCORED = ("kernel", "booster", "trees", "logistic")
DIED = {"classes": ("no", "died"), "class_shares": {"died": 0.02}}
WARD = Situation(20_000, n_features=8, columns=EIGHT, **DIED)  # type: ignore[arg-type]


def patients(count: int, share: float = 0.02) -> tuple[Any, Any]:
    """Return made-up patients, of whom about so many died."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (count, 8))
    odds = np.log(share / (1 - share)) + 2 * X[:, 0] - 2 * X[:, 1] - 0.6
    return X, np.where(rng.random(count) < 1 / (1 + np.exp(-odds)), "died", "no")


# What is declared


def test_shares_that_are_not_declared_are_the_rest() -> None:
    assert shares_of(("a", "b", "c"), {"a": 0.5}) == (0.5, 0.25, 0.25)
    assert shares_of(("a", "b"), None) == (0.5, 0.5)
    assert shares_of((0, 1), {1: 0.02, 0: 0.98}) == (0.98, 0.02)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"dead": 0.1}, "none of classes"),
        ({"died": 2.75}, "such as 0.03 for 3 %"),
        ({"died": 0.1, "no": 0.5}, "together they must be 1"),
        ({"died": 1.0}, "other classes have rows"),
        ({"died": 0.0}, "no float above 0"),
        ({"died": "0.1"}, "not a number"),
        ({}, "give a number above 0"),
    ],
)
def test_shares_that_cannot_be_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        shares_of(("no", "died"), given)


def test_a_threshold_is_a_ratio_of_costs() -> None:
    assert misses_of((0, 1), None, 0.2) == (1.0, 4.0)
    assert misses_of((0, 1), {1: 20}, None) == (1.0, 20.0)
    assert misses_of((0, 1), None, 0.0)[1] > 1e8


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"goal": "speed"}, "choose one of"),
        ({"goal": "cost"}, "without costs"),
        ({"costs": {1: 1, 0: 1}, "goal": "cost"}, "without costs"),
        ({"costs": {2: 5}}, "none of classes"),
        ({"costs": {1: 5}, "threshold": 0.5}, "give one"),
        ({"class_weight": {1: 5}, "costs": {1: 5}}, "give one"),
        ({"class_shares": {1: 3}}, "such as 0.03"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_payment(given: Any, words: str) -> None:
    budget = Budget(10.0, 1e-3)
    model = PrivateClassifier(columns=EIGHT, budget=budget, **given)
    X, y = patients(50)
    with pytest.raises(InvalidParameter, match=words):
        model.fit(X, y == "died")
    assert not budget.history
    assert not model.plan(50, 8).can_run
    if "class_weight" not in given:
        with pytest.raises(InvalidParameter, match=words):
            plan(50, columns=EIGHT, **given)


# Figures


def test_figures_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 200), rng.integers(0, 9, 200).astype(float)
    assert ranked(scores, labels.astype(float)) == pytest.approx(roc_auc_score(labels, scores))
    truth = np.column_stack([1 - labels, labels]).astype(float)
    answers = (scores > 4).astype(np.int64)
    wrong = answers != labels
    assert figure("accuracy", answers, scores, truth, (1, 20)) == pytest.approx(1 - wrong.mean())
    cost = np.where(labels == 1, 20, 1) * wrong
    assert figure("cost", answers, scores, truth, (1, 20)) == pytest.approx(cost.mean())
    assert figure("ranking", answers, None, truth, (1, 1)) == 0.5
    three = np.eye(3)[rng.integers(0, 3, 100)]
    assert figure("ranking", answers[:100], three, three, (1, 1, 1)) == 1.0


def test_the_best_guess_follows_shares_and_costs() -> None:
    assert best_guess("accuracy", (0.98, 0.02), (1, 100)) == (0, 0.98)
    assert best_guess("ranking", (0.98, 0.02), (1, 1)) == (0, 0.5)
    place, cost = best_guess("cost", (0.98, 0.02), (1, 100))
    assert place == 1
    assert cost == pytest.approx(0.98)


# Forecasts


@pytest.mark.parametrize("name", SCORED)
def test_areas_grow_with_rows_and_with_the_share(name: str) -> None:
    def area(rows: int, share: float) -> float:
        facts = replace(WARD, n_labelled=rows, goal="ranking", class_shares={"died": share})
        found = reached(ROUTES[name], facts, {})
        assert found is not None
        assert 0.4 < found.low <= found.value <= found.high < 1
        assert found.usual is not None
        assert found.value <= found.usual
        return found.value

    by_rows = [area(rows, 0.02) for rows in (500, 2_000, 8_000, 30_000)]
    by_share = [area(4_000, share) for share in (0.01, 0.05, 0.2, 0.5)]
    assert by_rows == sorted(by_rows)
    assert by_share == sorted(by_share)
    assert by_rows[0] < 0.6
    assert by_rows[-1] > 0.65 or name == "trees"


def test_a_share_above_a_half_is_that_of_the_other_class() -> None:
    here = reached(ROUTES["kernel"], WARD, {})
    there = reached(ROUTES["kernel"], replace(WARD, class_shares={"no": 0.02}), {})
    assert here is not None
    assert there is not None
    assert (here.guessed, there.guessed) == ("no", "died")
    assert here.value == there.value


def test_accuracy_of_a_rare_outcome_is_that_of_the_commonest_class() -> None:
    found = reached(ROUTES["kernel"], WARD, {})
    assert found is not None
    assert found.guess == pytest.approx(0.98)
    assert found.value == pytest.approx(0.98, abs=0.005)
    assert found.constant
    assert found.usual == pytest.approx(0.98, abs=0.005)
    assert "always saying no gets 98.0 %" in str(found)


def test_costs_make_a_model_worth_it() -> None:
    found = reached(ROUTES["kernel"], replace(WARD, costs={"died": 49}), {})
    assert found is not None
    assert found.goal == "cost"
    assert found.guess == pytest.approx(0.98)
    assert found.value < 0.85 * found.guess
    assert not found.constant
    same = reached(ROUTES["kernel"], replace(WARD, threshold=0.02), {})
    assert same is not None
    assert same.value == pytest.approx(found.value)


def test_forecasts_say_where_they_come_from() -> None:
    known = measured()
    assert known["command"].startswith("python benchmarks/rare.py")
    assert set(SCORED) | {"usual"} <= set(known["routes"])
    found = reached(ROUTES["kernel"], replace(WARD, n_labelled=10**6), {})
    assert found is not None
    assert f"{known['cells']} made-up tables" in found.rests_on
    assert "none with 1,000,000" in found.rests_on


def test_more_classes_are_forecast_for_ranking_alone() -> None:
    three = replace(WARD, classes=("a", "b", "c"), class_shares={"a": 0.9})
    assert reached(ROUTES["kernel"], three, {}) is None
    found = reached(ROUTES["kernel"], replace(three, goal="ranking"), {})
    assert found is not None
    assert "all of two classes" in found.rests_on


# What is said before a payment


def test_with_800_rows_nobody_claims_to_rank() -> None:
    """The automatic route took trees that knew nothing, and said that privacy costs 0.2 points."""
    for goal in ("ranking", "accuracy"):
        advice = plan(800, columns=EIGHT, goal=goal, **DIED)  # type: ignore[arg-type]
        text = str(advice)
        assert "No route can rank with so few rows: 800, of which 2 % are died." in text
        assert "guessing has 0.5, and a usual model without privacy has 0.7" in text
        assert "Every row is likely to get the same answer: no." in text
        assert "points" not in text
        assert advice.cannot_rank in advice.to_dict()["cautions"]
    with pytest.raises(InvalidParameter, match="curves are of the accuracy"):
        advice.curves()


def test_with_20_000_rows_answers_are_said_to_be_constant_unless_costs_are_declared() -> None:
    advice = plan(20_000, columns=EIGHT, goal="ranking", **DIED)  # type: ignore[arg-type]
    assert not advice.cannot_rank
    assert "likely to be the best at ranking, with about an AUC of 0.7" in advice.sentence
    assert "Declare costs or a threshold, or look at its chances." in str(advice)
    advice = plan(20_000, columns=EIGHT, costs={"died": 40}, **DIED)  # type: ignore[arg-type]
    assert not advice.cautions
    assert "the one of least cost" in advice.sentence
    assert "costs 0.8; " not in advice.sentence
    assert "always saying no costs 0.8, and a usual model without privacy has" in advice.sentence


def test_without_shares_classes_are_taken_to_be_of_equal_size_and_that_is_said() -> None:
    advice = plan(20_000, columns=EIGHT)
    assert advice.cautions == (advice.assumed,)
    assert "taken to be of equal size" in str(advice)
    assert "one answer to everybody gets 50.0 %" in advice.sentence
    told = "If classes are of equal size, it has about 0.6 points of accuracy less than a usual "
    assert told in advice.sentence
    assert not plan(20_000, columns=EIGHT, class_shares={1: 0.4}).assumed
    assert (
        "always saying 0 gets 60.0 %" in plan(20_000, columns=EIGHT, class_shares={1: 0.4}).sentence
    )


def test_without_shares_it_says_what_could_not_be_learnt_about_a_rare_class() -> None:
    told = "With 3 % in one class, say, no route could rank so few rows."
    few = plan(800, columns=EIGHT)
    assert few.cautions == (few.assumed,)
    assert few.assumed.endswith(told)
    assert plan(800, columns=EIGHT, goal="ranking").assumed.endswith(told)
    for more in ({"class_shares": {1: 0.5}}, {"classes": "abc"}):
        assert told not in str(plan(800, columns=EIGHT, **more))
    assert told not in str(plan(20_000, columns=EIGHT))


@pytest.mark.parametrize("name", ["kernel", "logistic"])
def test_routes_are_told_the_goal(name: str) -> None:
    assert ROUTES[name].estimator(replace(WARD, goal="ranking")).goal == "ranking"
    assert ROUTES[name].estimator(replace(WARD, costs={"died": 9})).goal == "cost"
    assert ROUTES[name].estimator(WARD).goal == "accuracy"


def test_routes_that_cannot_follow_a_goal_are_refused_with_a_reason() -> None:
    facts = {"columns": EIGHT, "n_queries": 100, **DIED}
    advice = plan(20_000, goal="ranking", **facts)  # type: ignore[arg-type]
    assert "without chances" in advice["everlasting"].outlook.reasons[0]
    assert "without chances" in advice["learner"].outlook.reasons[0]
    assert {one.route.name for one in advice.prospects if one.can_run} == set(SCORED)
    advice = plan(20_000, costs={"died": 9}, **facts)  # type: ignore[arg-type]
    assert "costs is given" in advice["gaussian"].outlook.reasons[0]
    three = plan(20_000, columns=EIGHT, classes="abc", costs={"a": 9})
    assert [one.route.name for one in three.prospects if one.can_run] == ["kernel"]


def test_a_route_that_ranks_is_taken_where_accuracies_are_level() -> None:
    routes = [ROUTES[name] for name in SCORED]
    advice = advise(replace(WARD, n_labelled=4_000), routes, search=False)
    assert advice.prospects[-1].route.name == "trees"
    areas = [one.reached.auc for one in advice.prospects if one.reached]
    assert areas[0] == pytest.approx(max(areas), abs=0.02)  # type: ignore[type-var]


# PrivateClassifier


def test_the_classifier_warns_before_it_pays() -> None:
    X, y = patients(800)
    budget = Budget(0.5, 1e-6)  # which does not hold enough: the warnings come first
    model = PrivateClassifier(columns=EIGHT, goal="ranking", budget=budget, **DIED)  # type: ignore[arg-type]
    foreseen = model.plan(800, 8).warnings
    assert any("No route can rank" in one for one in foreseen)
    assert any("the same answer: no" in one for one in foreseen)
    with (
        pytest.warns(TooFewRows, match="No route can rank"),
        pytest.warns(ConstantAnswers, match="same answer: no"),
        pytest.raises(Exception, match="epsilon"),
    ):
        model.fit(X, y)
    assert not budget.history


def test_the_classifier_answers_by_declared_costs_and_keeps_them(tmp_path: Any) -> None:
    X, y = patients(20_000)
    given = {"columns": EIGHT, "random_state": 0, **DIED}
    model = PrivateClassifier(3.0, class_weight={"died": 40.0}, **given)  # type: ignore[arg-type]
    model.fit(X, y)
    share = float(np.mean(model.predict(X) == "died"))
    assert 0.02 < share < 0.6  # without costs it is 0
    assert model.model_.costs == {"died": 40.0}
    assert "the one of least cost" in model.why_
    model.save(tmp_path / "model.json")
    again = PrivateClassifier.load(tmp_path / "model.json")
    assert (again.goal, again.costs) == ("accuracy", {"died": 40.0})
    assert again.class_shares == {"no": 0.98, "died": 0.02}
    assert np.array_equal(again.predict(X[:200]), model.predict(X[:200]))
    assert json.loads((tmp_path / "model.json").read_text())["class_shares"] == [0.98, 0.02]


# With a public sample


def test_a_sample_forecasts_each_goal() -> None:
    X, y = patients(200, share=0.3)
    facts = replace(WARD, n_labelled=1_000, n_public=200, class_shares=None)
    sample = Sample.of(facts, X, y)
    shares = sample.chances.mean(axis=(0, 1))
    assert shares[1] == pytest.approx(np.mean(y == "died"), abs=0.1)
    usual = usual_model(facts, sample)
    found = simulate(ROUTES["logistic"], facts, sample, usual)
    assert found is not None
    assert found.usual == usual.figure > found.guess == pytest.approx(shares[0])
    area = simulate(ROUTES["logistic"], replace(facts, goal="ranking"), sample)
    assert area is not None
    assert area.value == area.auc == pytest.approx(found.auc, abs=0.05)  # it counts classes first
    assert 0.55 < area.value < 1
    cost = simulate(ROUTES["logistic"], replace(facts, costs={"died": 5.0}), sample)
    assert cost is not None
    assert cost.guess == pytest.approx(min(shares[0], 5 * shares[1]))
    assert cost.low < cost.value < 1.1 * cost.guess


def test_declared_shares_shift_what_a_sample_says() -> None:
    X, y = patients(200, share=0.3)
    sample = Sample.of(replace(WARD, n_labelled=1_000, n_public=200), X, y)
    assert sample.chances.mean(axis=1)[:, 1] == pytest.approx(0.02, abs=1e-4)
    assert np.allclose(sample.chances.sum(axis=2), 1)
