"""GenericBBL and AgnosticQueryRelease with public candidates: costs, phases, refusals, bills."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from cumae import Budget
from cumae.concepts import Halfspaces, Projections, Rectangles, Thresholds
from cumae.concepts.candidates.grid import GridRules
from cumae.errors import InvalidData, InvalidParameter
from cumae.predictors import AgnosticQueryRelease, GenericBBL
from cumae.predictors.bbl.costs import label_draw
from cumae.predictors.relabelling import Relabelling, agnostic_costs
from cumae.privacy import ZCDP, Approximate
from cumae.privacy.plain_costs import cost_to_dict
from cumae.sanitizers.grids import GridPlan
from cumae.store.bills import price

pytestmark = [
    pytest.mark.claim("GRID"),
    pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows"),
]

RNG = np.random.default_rng(3)
X = RNG.random((600, 2))
Y = ((X > 0.2) & (X < 0.8)).all(axis=1).astype(int)
UNIT = [(0, 1)] * 2


def small(concept: Any = None, **more: Any) -> GenericBBL:
    given: dict[str, Any] = {"shard_size": 20, "phase_length": 400, "query_share": 0.5}
    given |= {"label_share": 0.5, "n_cuts": 4, "columns": UNIT, "epsilon": 60.0}
    return GenericBBL(concept or Rectangles(), **{**given, **more})


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_a_kept_query_pays_nothing_for_the_draw_and_a_scored_row_its_rate(share: float) -> None:
    oracle = small(epsilon=3.0, query_share=share, epsilon_boost=1.2).fit(X, Y)
    rules = oracle.rules_
    scored = math.log1p(0.5 * math.expm1(1.2))
    assert rules.scored == pytest.approx(scored, rel=1e-9)
    assert rules.scored >= scored
    assert label_draw(None, 1.2, "T", 10**9).pure == 0
    votes = ZCDP(1 / (2 * rules.noise**2))
    for epsilon in (1.5, 2.0, 3.0):
        inside = math.log1p(math.expm1(epsilon) / share)
        expected = share * votes.delta(inside - rules.scored)
        assert rules.query_cost().delta(epsilon) == pytest.approx(expected, rel=1e-6)
    assert rules.query_cost().delta(3.0) <= 1e-6
    assert rules.training_cost().delta(3.0) <= 1e-6
    assert label_draw(Rectangles(), 1.2, "T", 600).pure > math.log(4)  # where points define them
    assert "GRID" in oracle.guarantee_.claims
    assert "CHOOSE" not in oracle.guarantee_.claims


@pytest.mark.parametrize("concept", [Rectangles(), Halfspaces()])
def test_the_last_rule_is_drawn_again(concept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    lists: list[Any] = []
    choose = GridRules.choose

    def chosen(rules: GridRules, points: Any, X: Any, y: Any, *given: Any, **more: Any) -> Any:
        found = choose(rules, points, X, y, *given, **more)
        if drawn:  # the last rule labelled all rows that are scored now
            assert np.array_equal(drawn[-1].predict(X), y)
        drawn.append(found)
        lists.append(rules.cuts.tobytes())
        return found

    monkeypatch.setattr(GridRules, "choose", chosen)
    oracle = small(concept).fit(X, Y)
    for _ in range(5):
        oracle.predict(RNG.random((400, 2)))
    assert len(drawn) == 4
    assert len(set(lists)) == 1
    asked = RNG.random((2_000, 2))
    differ = [np.mean(drawn[0].predict(asked) != rule.predict(asked)) for rule in drawn]
    assert max(differ) < 0.05


def test_rows_that_pay_for_cuts_serve_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Any] = []
    cuts = GridPlan.cuts

    def seen(plan: GridPlan, table: Any, source: Any) -> Any:
        used.append(table.copy())
        return cuts(plan, table, source)

    monkeypatch.setattr(GridPlan, "cuts", seen)
    oracle = small(Halfspaces(), columns=None).fit(X, Y)  # their rows are kept as a recipe
    own = {tuple(row) for row in used[0]}
    phase = oracle._state_.phase.recipe.rows.take(np.arange(570))
    assert len(own) == 30
    assert own.isdisjoint(tuple(row) for row in phase)
    assert oracle.rules_.given.counts.n_rows == 570
    assert oracle.rules_.given.grid is not None
    assert oracle.rules_.given.grid.epsilon == oracle.epsilon
    assert {"PAR", "QUANT", "RANGES"} <= set(oracle.guarantee_.claims)
    release = AgnosticQueryRelease(Rectangles(), 60.0, max_queries=10, n_cuts=3).fit(X, Y)
    assert len(used[1]) == 30
    assert release.stages_[-1]["rows"] == 570
    assert release.n_sampled_ <= 570


def test_with_the_same_coins_a_query_changes_its_own_row_only() -> None:
    def after(asked: Any) -> Any:
        oracle = small(query_share=1.0, random_state=5).fit(X, Y)
        oracle.predict(asked)
        scored = oracle._state_.phase.scored
        found = oracle._prepared(oracle._state_, scored, oracle._state_.fitted.source)
        return oracle._state_.next_rows()[0], found.labels

    asked = RNG.random((400, 2))
    other = asked.copy()
    other[7] = [0.01, 0.99]
    (rows, labels), (rows_2, labels_2) = after(asked), after(other)
    changed = np.any(rows != rows_2, axis=1)
    assert changed.sum() == 1
    assert np.array_equal(labels[~changed], labels_2[~changed])


def test_where_points_leave_no_room_it_refuses_before_the_payment() -> None:
    budget = Budget(10.0, 1e-5)
    three = RNG.random((3_000, 3))
    labels = (three > 0.3).all(axis=1).astype(int)
    sides = Projections([(1, 0, 0), (0, 1, 1)])
    for concept in (Rectangles(), Halfspaces(), sides):
        oracle = GenericBBL(concept, 3.0, budget=budget, candidates="points")
        with pytest.raises(InvalidData, match="however many are given") as caught:
            oracle.fit(three, labels)
        assert "EverlastingPredictor" in str(caught.value)
        assert ("candidates='grid'" in str(caught.value)) == (concept is not sides)
        assert "EverlastingPredictor" in str(oracle.plan(100_000, 3))
    assert budget.spent[0] == 0
    assert "can be fitted" in str(GenericBBL(Rectangles(), 3.0).plan(100_000, 3))


def test_few_rows_are_refused_as_such() -> None:
    for count in (1, 2, 3):
        with pytest.raises(InvalidData, match="too few"):
            GenericBBL(Rectangles(), 3.0).fit(X[:count], Y[:count])


def test_enough_rows_are_scored_in_the_smallest_phase() -> None:
    plan = GenericBBL(Rectangles(), 3.0, candidates="points").plan(100_000, 2)
    assert int(plan.facts["scored_rows"]) > 1_000
    for candidates in ("grid", "points"):
        oracle = GenericBBL(
            Rectangles(), 100.0, candidates=candidates, max_rows=150, columns=UNIT
        ).fit(X, Y)
        later = oracle.rules_.sizes(oracle.rules_.sizes())
        assert later.rows == 150
        assert later.labels == 150  # it needs more than there are


def test_the_paper_has_its_own_candidates() -> None:
    with pytest.raises(InvalidData, match="constants='paper'"):
        small(constants="paper", epsilon=1.0, delta=1e-6, alpha=0.05, beta=0.05, n_cuts="auto").fit(
            X, Y
        )
    with pytest.raises(InvalidParameter, match="candidates='grid' with constants='paper'"):
        AgnosticQueryRelease(Rectangles(), constants="paper", candidates="grid").fit(X, Y)
    with pytest.raises(InvalidParameter, match="a grid is for"):
        small(Thresholds(), candidates="grid", columns=None).fit(X[:, :1], Y)


def test_agnostic_costs_with_public_candidates() -> None:
    steps = Relabelling(10_000, 1_000, epsilon=1.0, resample=False)
    costs = dict(agnostic_costs(Approximate(1.0, 1e-5), steps, None))
    assert costs["relabelled"].eps == pytest.approx(2.0)
    assert costs["sampled"].eps == pytest.approx(math.log1p(0.1 * math.expm1(2.0)))
    assert costs["sampled"].failure == pytest.approx(1e-6)


def test_a_stored_release_pays_what_its_guarantee_says() -> None:
    release = AgnosticQueryRelease(
        Rectangles(), 8.0, 1e-6, max_queries=20, mechanism="gaussian", columns=UNIT, n_cuts=4
    ).fit(X, Y)
    (step,) = release._state_.steps
    assert step["candidates"] == "grid"
    bill = json.dumps({"cost": cost_to_dict(release._state_.cost), "steps": [step]})
    assert price(bill, 1e-6) <= release.guarantee_.epsilon * (1 + 1e-9)
    del step["candidates"]  # with points it would be dearer
    bill = json.dumps({"cost": cost_to_dict(release._state_.cost), "steps": [step]})
    assert price(bill, 1e-6) > release.guarantee_.epsilon


def test_answers_follow_the_rule() -> None:
    rows = RNG.random((8_000, 2))
    labels = ((rows > 0.25) & (rows < 0.85)).all(axis=1)
    oracle = GenericBBL(Rectangles(), 12.0, growth=1.0, columns=UNIT, n_cuts=19).fit(rows, labels)
    for _ in range(3):
        asked = RNG.random((oracle._state_.phase.sizes.answers, 2))
        found = oracle.predict(asked)
        right = ((asked > 0.25) & (asked < 0.85)).all(axis=1)
        assert np.mean(found == right) > 0.9
