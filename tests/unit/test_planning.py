"""The planner: what it says, what it refuses and why, and the classifier that follows it."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy.special import ndtr
from sklearn.base import clone

from cumae import Budget, InvalidParameter, PrivateClassifier, PrivateKernelClassifier
from cumae.checks import LEARNER_LAWS
from cumae.checks.learners import one_row_cannot_be_seen, refusals_spend_nothing
from cumae.concepts import Thresholds
from cumae.data import Columns
from cumae.errors import BudgetExhausted, InvalidData, LiveState
from cumae.outlook import Outlook
from cumae.planning import Advice, plan, simulation
from cumae.planning.forecasts import calibration, forecast, mu_within, strength
from cumae.planning.outlooks import needs, outlook
from cumae.planning.routes import ROUTES, Situation
from cumae.planning.rules import _blocks, _chances, _Search, draw_rules
from cumae.planning.simulation import LEAST_PUBLIC_ROWS, RULES, Sample, simulate
from cumae.randomness import SeededSource
from tests.kinds import KINDS, as_array, labels_of, neighbours

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

TWO = [(0.0, 1.0), (0.0, 1.0)]
HERE = Situation(2_000, n_features=2, columns=TWO)
PUBLISHED = [name for name, route in ROUTES.items() if route.publishes]


@pytest.fixture(scope="module")
def advice() -> Advice:
    return plan(2_000, n_queries=200, columns=KINDS)


# What a plan says


def test_all_routes_are_there_and_sorted(advice: Advice) -> None:
    assert {found.route.name for found in advice.prospects} == set(ROUTES)
    ranks = [found.rank for found in advice.prospects]
    assert ranks == sorted(ranks)
    assert advice.best is advice.prospects[0]
    assert advice.best.can_run


def test_each_route_has_a_guarantee_and_a_forecast_or_a_reason(advice: Advice) -> None:
    for found in advice.prospects:
        if found.can_run:
            assert found.outlook.guarantee is not None
            assert found.outlook.guarantee.epsilon <= 1.0
            assert found.expected is not None
            assert found.expected.low <= found.expected.likely <= found.expected.high
            assert "tables" in found.expected.rests_on
        else:
            assert all(found.outlook.reasons)
            assert found.expected is None


def test_advice_is_one_sentence_and_the_text_names_all_routes(advice: Advice) -> None:
    assert advice.sentence.count("\n") == 0
    assert "points of accuracy less than a usual model without privacy" in advice.sentence
    assert advice.sentence.endswith("one answer to everybody gets 50.0 %.")
    assert str(advice).startswith(advice.sentence)
    assert str(advice).count("\n- ") == len(ROUTES)
    assert "<pre>" in advice._repr_html_()
    assert json.loads(json.dumps(advice.to_dict()))["best"] == advice.prospects[0].route.name
    with pytest.raises(KeyError, match="not among the routes"):
        advice["nonsense"]


def test_the_number_of_columns_must_be_known() -> None:
    with pytest.raises(InvalidParameter, match="n_features"):
        plan(1_000)
    assert Situation(1_000, n_features=3).width == 3
    assert plan(0, columns={"job": ["a", "b", "c"], "age": (0, 9)}).situation.width == 4


@pytest.mark.parametrize("wrong", [{"epsilon": "1"}, {"delta": None}, {"n_queries": 1.5}])
def test_what_is_no_number_is_an_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="number"):
        plan(1_000, columns=TWO, **wrong)


def test_a_concept_class_may_be_given_as_an_estimator() -> None:
    found = Situation(100, columns=[(0, 1)], estimator=Thresholds())
    assert isinstance(found.concept_class, Thresholds)
    assert found.estimator is None


IMPOSSIBLE: dict[str, tuple[dict[str, Any], str]] = {
    "no rows": ({"n_labelled": 0}, "n_labelled=0"),
    "one class": ({"classes": (1,)}, "nothing to tell apart"),
    "the same class twice": ({"classes": (1, 1)}, "nothing to tell apart"),
    "no questions": ({"n_queries": 0}, "n_queries=0"),
    "infinite epsilon": ({"epsilon": math.inf}, "promises nothing"),
    "epsilon of 0": ({"epsilon": 0.0}, "give more than 0"),
    "no number": ({"epsilon": math.nan}, "give more than 0"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_impossible_input_is_refused_for_each_route_with_a_reason(case: str) -> None:
    changes, words = IMPOSSIBLE[case]
    given: dict[str, Any] = {"n_labelled": 1_000, "n_queries": 10, "columns": KINDS} | changes
    found = plan(**given)
    assert found.best is None
    assert "No route can run" in found.sentence
    assert words in found.sentence
    for one in found.prospects:
        assert any(words in reason for reason in one.outlook.reasons), one


def test_what_ranges_would_change_is_told() -> None:
    few = plan(1_000, n_features=5)
    assert few.best is not None
    assert not few.best.route.publishes
    assert few.hint.startswith("Declare the range of each column")
    assert "you could publish a" in few.hint
    assert few.hint in str(few)
    assert few.to_dict()["hint"] == few.hint
    named = {"age": (0, 99), "income": float, "job": ["nurse", "other"]}
    assert "publish" in plan(200, columns=named).hint
    for enough in ({"columns": [(0, 1)] * 5}, {"n_features": 5, "n_public": 500}):
        assert plan(1_000, **enough).hint == ""
    assert plan(1_000_000, n_features=5).hint == ""  # ranges are found for hardly anything


def test_without_a_delta_gaussian_routes_are_refused_and_pure_ones_run() -> None:
    found = plan(2_000, n_queries=50, columns=KINDS, delta=0.0)
    for name in ("kernel", "logistic", "booster", "gaussian", "everlasting"):
        assert not found[name].can_run
        assert "delta" in found[name].outlook.reasons[0]
    assert found["trees"].can_run
    assert found["laplace"].can_run
    guarantee = found["trees"].outlook.guarantee
    assert guarantee is not None
    assert guarantee.delta == 0


def test_a_refused_route_says_how_many_rows_it_would_take() -> None:
    route, here = ROUTES["between"], replace(HERE, n_queries=20)
    assert not outlook(route, here).can_run
    text = needs(route, here)
    rows = int(text.split()[0].replace(",", ""))
    assert outlook(route, replace(here, n_labelled=rows)).can_run
    assert not outlook(route, replace(here, n_labelled=int(rows / 1.05))).can_run


def test_nothing_is_promised_where_neither_rows_nor_epsilon_help() -> None:
    assert needs(ROUTES["semi"], HERE) == ""
    assert plan(100, columns=[(0, 1)] * 2)["semi"].needs == ""


# Forecasts


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("n_public", [0, 2_000])
def test_costs_fall_with_rows_and_epsilon(name: str, n_public: int) -> None:
    here = replace(HERE, n_public=n_public)
    rows = [replace(here, n_labelled=count) for count in (30, 300, 3_000, 30_000, 10**6)]
    epsilons = [replace(here, epsilon=epsilon) for epsilon in (0.01, 0.1, 1.0, 10.0)]
    for line in (rows, epsilons):
        found = [forecast(ROUTES[name], one, {}) for one in line]
        for part in ("low", "likely", "high"):
            values = [getattr(one, part) for one in found]
            assert values == sorted(values, reverse=True)


def test_routes_are_compared_with_the_best_private_one() -> None:
    """Trees lead where rows are few, and what is too simple falls behind where they are many."""
    for n_public in (0, 2_000):
        few, many = (replace(HERE, n_labelled=rows, n_public=n_public) for rows in (200, 30_000))
        behind = {
            (name, one.n_labelled): found.behind
            for name in ("kernel", "trees", "learner")
            for one in (few, many)
            if (found := forecast(ROUTES[name], one, {})) is not None
        }
        assert all(value >= 0 for value in behind.values())
        assert behind["trees", 200] < behind["kernel", 200]
        assert behind["kernel", 30_000] < behind["trees", 30_000] < behind["learner", 30_000]


def test_strength_is_rows_over_noise() -> None:
    kernel, votes = ROUTES["kernel"], ROUTES["gaussian"]
    assert strength(kernel, HERE, {}) == pytest.approx(2_000)
    assert strength(ROUTES["trees"], replace(HERE, epsilon=3.0), {}) == 6_000
    assert strength(votes, HERE, {"noise_per_vote": 0.2, "n_shards": 100}) == pytest.approx(100)
    assert strength(kernel, replace(HERE, classes=(0, 1, 2, 3)), {}) == pytest.approx(1_000)
    assert mu_within(1.0, 0.0) == 0.0
    assert 0.2 < mu_within(1.0, 1e-6) < 0.3


def test_the_calibration_says_where_it_comes_from() -> None:
    found = calibration()
    assert "benchmarks/planning.py" in found["command"]
    assert {"survey", "adult", "credit default", "rare"}.isdisjoint(found["tables"])
    expected = forecast(ROUTES["semi"], replace(HERE, n_labelled=10**7, classes=(0, 1, 2)), {})
    assert expected is not None
    assert "none with 10,000,000" in expected.rests_on
    assert "'learner'" in expected.rests_on
    assert "two classes" in expected.rests_on


# Curves


def test_curves_print_as_a_table(advice: Advice) -> None:
    for against, middle in (("rows", "2,000"), ("epsilon", "1")):
        lines = str(advice.curves(against)).splitlines()
        assert len(lines) == 8
        assert lines[4].split()[0] == middle
        assert "kernel" in lines[0]
    with pytest.raises(InvalidParameter, match="against='nonsense'"):
        advice.curves("nonsense")


@pytest.mark.parametrize("against", ["rows", "epsilon"])
@pytest.mark.parametrize("columns", [None, [(0, 1)] * 8])
def test_curves_say_what_plans_say_at_the_same_points(against: str, columns: Any) -> None:
    """Without declared ranges an everlasting predictor has no prior, until rows or epsilon do."""
    given: dict[str, Any] = {"columns": columns, "n_features": 8, "n_queries": 1_000}
    here = plan(3_000, epsilon=0.5, **given)
    curves = here.curves(against)
    for place in (0, 6):
        value = curves.values[place]
        there = (
            plan(int(value), epsilon=0.5, **given)
            if against == "rows"
            else plan(3_000, epsilon=value, **given)
        )
        for name, costs in curves.costs.items():
            assert costs[place] == there[name].expected
    assert len({cost.likely for cost in curves.costs["everlasting"] if cost is not None}) > 1


def test_curves_are_drawn(advice: Advice) -> None:
    figure = advice.plot()
    panels = figure.axes
    assert [panel.get_xlabel() for panel in panels] == ["private rows", "epsilon"]
    n_routes = len(advice.curves().costs)
    assert [len(panel.get_lines()) for panel in panels] == [n_routes, n_routes]
    with pytest.raises(InvalidParameter, match="1 panels"):
        advice.plot(panels[:1])
    plt.close(figure)


# Simulation


def sample_of(count: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    X = rng.random((count, 2))
    return X, (X[:, 0] + 0.3 * rng.standard_normal(count) > 0.5).astype(int)


def test_a_public_sample_forecasts_accuracy() -> None:
    X, y = sample_of(300)
    known = replace(HERE, n_public=300)
    sample = Sample.of(known, X, y)
    assert sample.chances.shape == (RULES, 300, 2)
    assert np.allclose(sample.chances.sum(axis=2), 1)
    found = simulate(ROUTES["logistic"], known, sample)
    assert found is not None
    # The best rule is right for 0.5 + |x - 0.5| / 0.3 within a normal distribution: about .79.
    assert found.value == pytest.approx(0.79, abs=0.05)
    assert found.low < found.value < found.high
    assert "300 public rows" in found.rests_on
    assert simulate(ROUTES["logistic"], known, sample) == found
    more = simulate(ROUTES["logistic"], replace(known, n_labelled=50_000), sample)
    assert more is not None
    assert "instead of more rows" in more.rests_on


def rules_of(labels: Any, rows: Any) -> Any:
    columns = Columns.of(rows, [(0.0, 1.0)] * rows.shape[1])
    return draw_rules(columns, rows, labels, RULES, SeededSource(0))


def sureness(chances: Any) -> float:
    """Return how often the best answers are right, on the mean over rows and rules."""
    return float(np.maximum(chances, 1 - chances).mean())


def test_rules_have_the_interactions_that_a_sample_shows() -> None:
    """Each column alone says nothing here, and the best answers are right in 9 of 10 cases."""
    rng = np.random.default_rng(2)
    rows = rng.random((400, 4))
    chance = np.where((rows[:, 0] > 0.4) ^ (rows[:, 1] > 0.5), 0.9, 0.1)
    drawn = rules_of((rng.random(400) < chance).astype(int), rows)
    assert drawn.shape == (RULES, 400)
    assert sureness(drawn) == pytest.approx(0.9, abs=0.06)
    assert np.mean((drawn > 0.5) == (chance > 0.5)) > 0.85


def test_rules_have_no_more_structure_than_the_labels() -> None:
    rng = np.random.default_rng(3)
    rows = rng.random((400, 4))
    coins = rules_of(rng.integers(0, 2, 400), rows)
    assert sureness(coins) < 0.65
    line = rules_of((rng.random(400) < ndtr(3 * rows[:, 0] - 1.5)).astype(int), rows)
    truth = ndtr(3 * rows[:, 0] - 1.5)
    assert sureness(line) == pytest.approx(sureness(truth), abs=0.05)


def test_columns_that_say_nothing_do_not_make_rules_surer() -> None:
    rng = np.random.default_rng(3)
    rows = rng.random((400, 20))
    truth = ndtr(2 * rows[:, 0] - 2 * (rows[:, 1] > 0.5))
    drawn = rules_of((rng.random(400) < truth).astype(int), rows)
    assert sureness(drawn) == pytest.approx(sureness(truth), abs=0.03)


def test_what_a_score_has_in_common_with_no_other_row_is_chance() -> None:
    scores = 3 * np.random.default_rng(6).standard_normal((2, 40))
    alone = _chances(scores - scores.mean(axis=1, keepdims=True), 9 * np.eye(40))
    assert alone == pytest.approx(0.5, abs=0.05)
    # With a twin, the score is that of the twin.
    doubled = np.repeat(scores, 2, axis=1)
    same = np.repeat(np.repeat(9 * np.eye(40), 2, axis=0), 2, axis=1)
    assert _chances(doubled, same) == pytest.approx(ndtr(doubled), abs=0.001)


def test_rules_for_a_sample_of_one_class_are_nearly_sure() -> None:
    rows = np.random.default_rng(4).random((80, 2))
    rows[:2, 0] = np.finfo(np.float64).max, -np.inf
    drawn = rules_of(np.zeros(80, dtype=int), rows)
    assert drawn.mean() < 0.1
    assert np.isfinite(drawn).all()


def test_the_search_for_weights_has_the_right_gradient() -> None:
    rng = np.random.default_rng(5)
    columns = Columns.of(rows := rng.random((30, 3)), [(0.0, 1.0)] * 3)
    search = _Search.of(_blocks(columns, rows))
    target = rng.standard_normal(30)
    place = search.usual + 0.3 * rng.standard_normal(len(search.usual))
    _, gradient = search.loss(place, target)
    for number in range(len(place)):
        step = 0.02 * np.eye(len(place))[number]
        up, down = (search.loss(place + sign * step, target)[0] for sign in (1, -1))
        assert (up - down) / 0.04 == pytest.approx(gradient[number], abs=0.01)


def test_a_large_sample_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "MOST_SAMPLE", 70)
    assert len(Sample.of(HERE, *sample_of(90))) == 70


def test_more_classes_have_rules_too() -> None:
    X = sample_of(60)[0][:, :1]
    known = Situation(500, columns=[(0, 1)], classes=(0, 1, 2), n_public=60)
    sample = Sample.of(known, X, (3 * X[:, 0]).astype(int))
    assert sample.chances.shape == (RULES, 60, 3)
    assert np.allclose(sample.chances.sum(axis=2), 1)


def test_a_concept_class_is_where_rules_come_from() -> None:
    X, y = sample_of(200)[0][:, :1], sample_of(200)[0][:, 0] > 0.37
    known = Situation(500, n_public=200, n_features=1, columns=[(0, 1)], concept_class=Thresholds())
    found = simulate(ROUTES["learner"], known, Sample.of(known, X, y))
    assert found is not None
    assert found.value > 0.95


def test_a_sample_decides_the_order_of_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "RULES", 4)
    shown = as_array(120)
    advice = plan(400, columns=KINDS, public=(shown, labels_of(shown)), epsilon=2.0)
    assert advice.best is not None
    assert advice.best.simulated is not None
    assert "right answers" in advice.sentence
    assert "by the goal is forecast from" in str(advice)
    assert advice.situation.n_public == 120
    assert advice["semi"].can_run


def test_a_sample_is_not_looked_at_where_nothing_can_run() -> None:
    assert plan(0, columns=TWO, public=sample_of(60)).best is None


def test_a_sample_that_is_too_small_or_wrong_is_refused() -> None:
    X, y = sample_of(LEAST_PUBLIC_ROWS - 1)
    with pytest.raises(InvalidData, match="labelled rows"):
        Sample.of(HERE, X, y)
    with pytest.raises(InvalidData, match="labels"):
        Sample.of(HERE, sample_of(60)[0], y)


# PrivateClassifier


@pytest.mark.parametrize("law", LEARNER_LAWS, ids=lambda law: law.__name__)
def test_it_keeps_the_laws_of_learners(law: Any) -> None:
    law(PrivateClassifier(1.0, 1e-6, columns=KINDS), neighbours())


@pytest.mark.parametrize("law", [refusals_spend_nothing, one_row_cannot_be_seen])
def test_it_keeps_them_with_public_rows(law: Any) -> None:
    law(PrivateClassifier(1.0, 1e-6, columns=KINDS), neighbours(public=True))


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, Any, dict[str, Any]]:
    rng = np.random.default_rng(0)
    age = np.where(rng.random(1_500) < 0.1, np.nan, rng.integers(18, 90, 1_500))
    frame = pd.DataFrame(
        {"age": age, "job": rng.choice(["a", "b"], 1_500), "old": rng.random(1_500) < 0.5}
    )
    labels = np.where((frame["age"].fillna(50) > 50) | frame["old"], "yes", "no")
    return frame, labels, {"age": (18, 98, "missing"), "job": ["a", "b"]}


def test_it_takes_a_table_as_it_is(table: Any, tmp_path: Any) -> None:
    X, y, columns = table
    budget = Budget(1.0, 1e-6)
    model = PrivateClassifier(columns=columns, classes=("no", "yes"), budget=budget).fit(X, y)
    assert model.route_ == model.plan_.prospects[0].route.name
    assert model.why_ == model.plan_.sentence
    assert model.guarantee_ == model.model_.guarantee_
    assert model.score(X, y) > 0.85
    assert model.predict_proba(X[:3]).shape == (3, 2)
    assert model.decision_function(X[:3]).shape == (3,)
    assert 0 <= model.private_score(X, y, 1.0) <= 1
    assert model.remaining_ == math.inf
    assert budget.remaining[0] == pytest.approx(0.0, abs=1e-4)
    with pytest.raises(BudgetExhausted):
        model.fit(X, y)
    model.save(tmp_path / "model.json")
    again = PrivateClassifier.load(tmp_path / "model.json")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert (again.why_, again.guarantee_) == (model.why_, model.guarantee_)


def test_it_draws_what_its_model_draws() -> None:
    X = as_array(600)
    kernel = PrivateKernelClassifier(9.0, 1e-6, columns=KINDS, n_waves=3, random_state=0)
    kernel.fit(X, labels_of(X))
    stored = {"kind": "PrivateClassifier", "route": "kernel", "why": "", "n_queries": None}
    model = PrivateClassifier.from_dict({**stored, "model": kernel.to_dict()})
    wanted = kernel.effects_[0].columns
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLBACKEND", "agg")
        figures = [one.plot([wanted]) for one in (model, kernel)]
    titles = [figure.axes[0].get_title() for figure in figures]
    assert titles[0] == titles[1] != ""
    assert figures[0].get_suptitle() == figures[1].get_suptitle() != ""


def test_files_of_something_else_are_refused(tmp_path: Any) -> None:
    (tmp_path / "text").write_text("nonsense")
    with pytest.raises(InvalidParameter, match="no file of JSON"):
        PrivateClassifier.load(tmp_path / "text")
    with pytest.raises(InvalidParameter, match="no PrivateClassifier"):
        PrivateClassifier.from_dict({"kind": "PrivateLearner"})


def test_refusals_come_before_the_payment() -> None:
    budget = Budget(10.0, 1e-3)
    X = np.zeros((50, 2))
    for changes in ({"epsilon": 0.0}, {"epsilon": math.inf}, {"classes": (0,)}):
        model = PrivateClassifier(columns=TWO, budget=budget).set_params(**changes)
        with pytest.raises(InvalidParameter, match="no route can run"):
            model.fit(X, np.zeros(50))
    spoilt = X.copy()
    spoilt[3, 1] = np.nan
    with pytest.raises(InvalidData, match="row 3"):
        PrivateClassifier(columns=TWO, budget=budget).fit(spoilt, np.zeros(50))
    assert budget.spent == (0.0, 0.0)


def test_with_a_number_of_questions_any_route_may_be_taken(monkeypatch: Any) -> None:
    """A route of votes is never ahead of all others here, so the others are hidden."""
    X = as_array(3_000)
    y = labels_of(X)
    model = PrivateClassifier(3.0, 1e-6, columns=KINDS, n_queries=60, random_state=0)
    kept = [route for route in model._routes() if route.name == "gaussian"]
    monkeypatch.setattr(PrivateClassifier, "_routes", lambda _: kept)
    model.fit(X, y)
    assert model.route_ == "gaussian"
    assert "the only way that works" in model.why_
    assert model.remaining_ == 60
    assert model.predict(X[:10]).shape == (10,)
    assert model.remaining_ == 50
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "save")
    assert not hasattr(model, "plot")
    assert not hasattr(clone(model), "model_")


def test_its_own_plan_is_that_of_the_route(table: Any) -> None:
    found = PrivateClassifier(columns=KINDS).plan(2_000, 4)
    assert isinstance(found, Outlook)
    assert found.can_run
    refused = PrivateClassifier(columns=KINDS).plan(0, 4)
    assert not refused.can_run
    assert any("nothing to learn from" in reason for reason in refused.reasons)


def test_a_published_model_can_be_pickled_and_a_live_one_cannot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.random.default_rng(0).random((2_000, 1))
    told: dict[str, Any] = {"n_queries": 5, "columns": [(0, 1)], "concept_class": Thresholds()}
    for name in ("learner", "gaussian"):
        monkeypatch.setattr(PrivateClassifier, "_routes", lambda _, only=name: [ROUTES[only]])
        model = PrivateClassifier(2.0, 1e-6, **told).fit(rows, rows[:, 0] > 0.5)
        assert model.route_ == name
        if ROUTES[name].publishes:
            again = pickle.loads(pickle.dumps(model))  # noqa: S301 - made here
            assert again.predict(rows[:9]).tolist() == model.predict(rows[:9]).tolist()
            assert pickle.loads(pickle.dumps(list(ROUTES.values())))  # noqa: S301 - made here
            continue
        for copied in (pickle.dumps, copy.deepcopy):  # both would spend the same answers
            with pytest.raises(LiveState):
                copied(model)


def test_votes_alone_are_forecast_as_votes() -> None:
    """An everlasting predictor that gets no prior is as good as its votes, and that is told."""
    few = plan(300, n_features=5, epsilon=0.5, delta=1e-6)
    votes = few["everlasting"].expected
    assert votes is not None
    assert votes.likely > 0.1
    assert "'gaussian' was measured in its place" in votes.rests_on
    assert "hardly better than chance" in str(few)
    many = plan(10_000, columns=[(0, 1)] * 5, epsilon=1.0, delta=1e-6)
    assert many["everlasting"].outlook.facts["prior_learner"] == "PrivateKernelClassifier"
    prior = many["everlasting"].expected
    assert prior is not None
    assert prior.likely < 0.05
