"""Public candidates: every score, the law of the draw, and cuts that rows pay for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cumae.concepts import Halfspaces, Rectangle, Rectangles, Thresholds
from cumae.concepts.candidates.grid import GridRules, directions, even_cuts, usual_cuts
from cumae.concepts.candidates.relabelling import relabelled
from cumae.errors import InvalidParameter
from cumae.privacy import Approximate
from cumae.randomness import SeededSource
from cumae.sanitizers import Quantiles, Ranges, grids
from cumae.sanitizers.grids import GridPlan, grid_plan, paying
from tests.statistics import chi_square_rejects

pytestmark = pytest.mark.claim("GRID")
RNG = np.random.default_rng(5)
CLASSES = [Rectangles(), Halfspaces()]


def even(concept: Any, width: int, count: int) -> GridRules:
    return GridRules(concept, np.tile(even_cuts(0, 1, count), (width, 1)))


def law(rules: GridRules, rows: Any, labels: Any, epsilon: float) -> Any:
    """Return the probabilities of all candidates by the definition, rule by rule."""
    right = [int((rules.rule(k).predict(rows) == labels).sum()) for k in range(rules.n_rules)]
    weights = np.exp(epsilon / 2 * np.array(right))
    return weights / weights.sum()


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("concept", CLASSES)
def test_a_score_is_what_the_rule_gets_right(concept: Any, width: int) -> None:
    rules = even(concept, width, 3 if width < 3 else 2)
    rows = RNG.random((60, width)) * 1.6 - 0.3  # some lie outside of the range
    labels = RNG.integers(0, 2, 60)
    scores = rules.scores(rows, labels)
    assert len(scores) == rules.n_rules
    for place in range(rules.n_rules):
        assert scores[place] == (rules.rule(place).predict(rows) == labels).sum()


def test_boxes_with_rows_on_their_cuts_and_cuts_that_are_equal() -> None:
    rules = GridRules(Rectangles(), np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0]]))
    rows = np.array([[a, b] for a in (-1.0, 0.0, 0.5, 1.0) for b in (-1.0, 0.0, 1.0)])
    labels = np.arange(12) % 2
    scores = rules.scores(rows, labels)
    for place in range(rules.n_rules):
        assert scores[place] == (rules.rule(place).predict(rows) == labels).sum()


def test_rules_of_a_grid_are_all_there_once() -> None:
    rules = even(Rectangles(), 2, 2)
    found = {rules.rule(place) for place in range(rules.n_rules)}
    assert len(found) == rules.n_rules == 37
    assert Rectangle((), ()) in found
    assert Rectangle((None, None), (None, None)) in found
    lines = even(Halfspaces(), 2, 4)
    assert len({lines.rule(place) for place in range(lines.n_rules)}) == lines.n_rules
    for width in (1, 2, 3):
        unit = directions(width, 6)
        assert np.allclose((unit**2).sum(axis=1), 1)
        assert np.array_equal(unit[: len(unit) // 2], -unit[len(unit) // 2 :])


@pytest.mark.parametrize("concept", CLASSES)
def test_extreme_ranges_and_rows_are_scored(concept: Any) -> None:
    for low, high in ((-1e308, 1e308), (5.0, 5.0), (1e300, 1e300), (0.0, 5e-324)):
        rules = GridRules(concept, np.tile(even_cuts(low, high, 3), (2, 1)))
        rows = np.array([[1e308, -1e308], [low, high], [0.0, 0.0]])
        scores = rules.scores(rows, np.array([0, 1, 1]))
        assert scores.min() >= 0
        assert scores.max() <= 3
        rules.choose(rows, rows, [0, 1, 1], 1.0)


@pytest.mark.parametrize("concept", CLASSES)
def test_one_row_moves_the_law_by_the_range_of_one_draw(concept: Any) -> None:
    rules, epsilon = even(concept, 2, 2), 1.3
    rows, labels = RNG.random((8, 2)), np.array([0, 1] * 4)
    before = law(rules, rows, labels, epsilon)
    for _ in range(6):
        other, marks = rows.copy(), labels.copy()
        other[3], marks[3] = RNG.random(2), RNG.integers(0, 2)
        loss = np.log(before) - np.log(law(rules, other, marks, epsilon))
        assert loss.max() - loss.min() <= epsilon + 1e-9
    marks = labels.copy()
    marks[3] = 1 - marks[3]  # every candidate that has the row right loses it
    loss = np.log(before) - np.log(law(rules, rows, marks, epsilon))
    assert loss.max() - loss.min() == pytest.approx(epsilon)


def test_points_that_get_labels_do_not_change_the_draw() -> None:
    rules, rows = even(Rectangles(), 2, 5), RNG.random((30, 2))
    labels = RNG.integers(0, 2, 30)
    drawn = [
        rules.choose(points, rows, labels, 1.0, random_state=SeededSource(3))
        for points in (rows, RNG.random((500, 2)), rows[:0])
    ]
    assert drawn[0] == drawn[1] == drawn[2]


@pytest.mark.statistical
@pytest.mark.parametrize("concept", CLASSES)
def test_the_draw_follows_its_law(concept: Any) -> None:
    rules = even(concept, 2, 2)
    rows, labels = RNG.random((9, 2)), RNG.integers(0, 2, 9)
    places = {rules.rule(place): place for place in range(rules.n_rules)}
    drawn = [places[rules.choose(rows, rows, labels, 0.9)] for _ in range(4_000)]
    counts = np.bincount(drawn, minlength=rules.n_rules)
    assert not chi_square_rejects(counts, law(rules, rows, labels, 0.9), checks=2)
    assert chi_square_rejects(counts, law(rules, rows, labels, 1.8), checks=0)


def test_without_privacy_the_best_rule_is_drawn() -> None:
    rules = even(Rectangles(), 2, 9)
    rows = RNG.random((500, 2))
    labels = ((rows >= 0.2) & (rows < 0.7)).all(axis=1)
    assert rules.choose(rows, rows, labels, math.inf) == Rectangle((0.2, 0.2), (0.7, 0.7))


def test_public_candidates_cost_a_scored_row_its_epsilon_and_others_nothing() -> None:
    base = Approximate(0.7, 1e-6)
    scored = relabelled(base, 1.5, "S", None, 10**9)
    assert scored.eps == pytest.approx(2.2, rel=1e-12)
    assert scored.eps >= 2.2
    assert relabelled(base, 1.5, "T", None, 10**9).eps == pytest.approx(0.7, rel=1e-12)
    assert scored.failure == 1e-6
    with_points = relabelled(base, 1.5, "T", Rectangles(), 100)
    assert with_points.eps > 0.7 + math.log(4)


def test_declared_ranges_need_no_rows() -> None:
    plan = grid_plan("auto", 3, Rectangles(), [(0.0, 1.0), (10.0, 50.0, 1.0)], 2.0)
    assert plan is not None
    plan = paying(plan, 10_000)
    assert plan.n_rows == 0
    assert plan.claims == ("GRID",)
    found = plan.rules(np.zeros((0, 2)), SeededSource(0))
    assert found.cuts.tolist() == [[0.25, 0.5, 0.75], [20.0, 30.0, 40.0]]
    assert GridPlan.from_facts(plan.to_facts(), Rectangles()) == plan


@pytest.mark.parametrize("concept", CLASSES)
def test_rows_that_pay_for_cuts_pay_no_more_than_epsilon(
    concept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid: list[Any] = []
    for kind in (Ranges, Quantiles):

        class Recorded(kind):  # type: ignore[misc, valid-type]
            def __init__(self, *given: Any, **more: Any) -> None:
                super().__init__(*given, **more)
                paid.append(self.cost)

        monkeypatch.setattr(grids, kind.__name__, Recorded)
    plan = grid_plan("grid", 7, concept, [None, (0.0, 1.0), None], 0.8)
    assert plan is not None
    plan = paying(plan, 4_000)
    assert (plan.n_rows, plan.epsilon) == (200, 0.8)
    assert "QUANT" in plan.claims
    found = plan.rules(RNG.normal(3, 1, (200, 3)), SeededSource(1))
    assert found.cuts.shape == (3, 7)
    assert found.cuts[1].tolist() == even_cuts(0, 1, 7).tolist()
    assert np.all(np.diff(found.cuts, axis=1) >= 0)
    assert len(paid) == (2 if isinstance(concept, Rectangles) else 1)
    assert sum(cost.pure for cost in paid) <= 0.8 * (1 + 1e-9)
    with pytest.raises(AssertionError):
        plan.rules(np.zeros((201, 3)), SeededSource(1))


def test_quantiles_find_where_the_rows_are() -> None:
    rows = RNG.normal(1_000, 5, (5_000, 2))
    for concept in CLASSES:
        plan = grid_plan("auto", 15, concept, [None, None], 3.0)
        assert plan is not None
        cuts = paying(plan, 100_000).rules(rows, SeededSource(2)).cuts
        near = (cuts > 985) & (cuts < 1_015)
        assert near.sum(axis=1).min() >= (12 if isinstance(concept, Rectangles) else 1)


def test_who_takes_a_grid() -> None:
    two: list[Any] = [(0.0, 1.0)] * 2
    assert grid_plan("points", "auto", Rectangles(), two, 1.0) is None
    assert grid_plan("auto", "auto", Rectangles(), two[:1], 1.0) is None
    assert grid_plan("auto", "auto", Thresholds(), two[:1], 1.0) is None
    plan = grid_plan("auto", "auto", Halfspaces(), two, 1.0)
    assert plan is not None
    assert plan.n_cuts == usual_cuts(Halfspaces(), 2)
    with pytest.raises(InvalidParameter, match="a grid is for Rectangles and Halfspaces"):
        grid_plan("grid", "auto", Thresholds(), two[:1], 1.0)
    with pytest.raises(InvalidParameter, match="give a smaller n_cuts"):
        grid_plan("grid", 10_000, Rectangles(), two, 1.0)
    with pytest.raises(InvalidParameter, match="leave it at 'auto'"):
        grid_plan("points", 5, Rectangles(), two, 1.0)
