"""Rectangles against enumeration: counts, best boxes, and the probability of every candidate."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cumae.concepts import rectangles as module
from cumae.concepts.base import Hypothesis
from cumae.concepts.kernels import rectangles as kernel
from cumae.concepts.rectangles import Rectangle, Rectangles
from cumae.errors import InvalidData, InvalidParameter
from tests.statistics import chi_square_rejects

pytestmark = [pytest.mark.claim("CHOOSE"), pytest.mark.claim("RECTANGLES")]

CLASS = Rectangles()
RATES = [Fraction(0), Fraction(1, 3), Fraction(5), Fraction(4000), math.inf]
Labels = tuple[int, ...]


def dichotomies(points: Any) -> set[Labels]:
    """List all labellings by boxes: a box is spanned by at most two points for each column."""
    table = np.asarray(points, dtype=float)
    found = {(0,) * len(table)}
    distinct = np.unique(table, axis=0)
    for size in range(1, 2 * table.shape[1] + 1):
        for chosen in combinations(distinct, size):
            low, high = np.min(chosen, axis=0), np.max(chosen, axis=0)
            inside = ((table >= low) & (table <= high)).all(axis=1)
            found.add(tuple(inside.astype(int).tolist()))
    return found


def right(h: Hypothesis, X: Any, y: Any) -> int:
    return int((h.predict(X) == y).sum()) if len(y) else 0


def assert_exact(points: Any, X: Any, y: Any, rate: Fraction | float) -> None:
    """Compare the law of ``_draw`` with one hypothesis for each labelling and its exact weight."""
    law = CLASS._law(points, X, np.asarray(y), rate)
    labels = [tuple(h.predict(points).tolist()) for h, _ in law]
    assert Counter(labels) == Counter(dichotomies(points))
    scores = np.array([right(h, X, y) for h, _ in law])
    best = scores.max()
    weights = (scores == best) * 1.0 if rate == math.inf else np.exp(float(rate) * (scores - best))
    assert np.abs(np.array([p for _, p in law]) - weights / weights.sum()).max() < 1e-12


@st.composite
def tables(draw: st.DrawFn, most: int = 7, columns: int | None = None) -> np.ndarray[Any, Any]:
    width = draw(st.integers(1, 3)) if columns is None else columns
    values = draw(st.sampled_from([1, 2, 3, 4, 8, 20]))
    cell = st.integers(0, values - 1)
    count = draw(st.integers(1, most))
    rows = draw(st.lists(st.tuples(*[cell] * width), min_size=count, max_size=count))
    return np.array(rows, dtype=float).reshape(count, width)


@st.composite
def labelled(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    """Points, and labelled rows that are the points, or lie on, between and beyond them."""
    points = draw(tables())
    if draw(st.booleans()):
        X = points
    else:
        place = st.integers(-4, 84).map(lambda quarter: quarter / 4)
        rows = draw(st.lists(st.tuples(*[place] * points.shape[1]), max_size=8))
        X = np.array(rows).reshape(len(rows), points.shape[1])
    y = draw(st.lists(st.integers(0, 1), min_size=len(X), max_size=len(X)))
    return points, X, np.array(y, dtype=np.int64)


@settings(max_examples=200)
@given(labelled(), st.sampled_from(RATES))
def test_every_candidate_has_its_probability(data: Any, rate: Fraction | float) -> None:
    points, X, y = data
    assert_exact(points, X, y, rate)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 9, 16])
@pytest.mark.parametrize("columns", [1, 2])
def test_probabilities_with_powers_of_two_of_distinct_values(count: int, columns: int) -> None:
    random = np.random.default_rng(count)
    points = np.stack([random.permutation(count) for _ in range(columns)], axis=1).astype(float)
    X = random.uniform(-1, count, size=(30, columns))
    y = random.integers(0, 2, 30)
    assert_exact(points, X, y, Fraction(1, 2))
    assert_exact(points, points, y[:count], Fraction(1, 2))


def test_probabilities_of_a_full_lattice_and_of_three_columns() -> None:
    random = np.random.default_rng(5)
    for sides in [(4, 4), (2, 8), (8, 2), (2, 2, 2), (1, 4, 3), (3, 1, 1)]:
        lattice = np.array(list(product(*map(range, sides))), dtype=float)
        assert_exact(lattice, lattice, random.integers(0, 2, len(lattice)), Fraction(2, 3))
    points = random.normal(size=(10, 3))
    assert_exact(points, points, random.integers(0, 2, 10), Fraction(1))


@settings(max_examples=200)
@given(tables(most=9))
@example(np.full((5, 2), 3.0))
def test_counts(points: Any) -> None:
    assert CLASS.n_dichotomies(points) == len(dichotomies(points))
    assert CLASS.n_candidates(np.repeat(points, 2, axis=0)) == len(dichotomies(points))


def test_counts_of_many_points_have_closed_forms() -> None:
    """Points on a line have intervals; corners of a cross have all that hold its middle."""
    line = np.arange(3000.0)
    assert CLASS.n_dichotomies(line) == 3000 * 3001 // 2 + 1
    assert CLASS.n_dichotomies(np.stack([line, -line], axis=1)) == 3000 * 3001 // 2 + 1
    side = np.arange(12.0)
    lattice = np.array(list(product(side, side, side[:5])))
    assert CLASS.n_dichotomies(lattice) == 78 * 78 * 15 + 1
    k = 400
    arms = np.repeat(np.arange(1.0, k + 1), 4).reshape(-1, 1) * np.tile(
        [[1, 0], [-1, 0], [0, 1], [0, -1]], (k, 1)
    )
    cross = np.concatenate([arms, [[0.0, 0.0]]])
    # With the middle: k + 1 choices on each arm. Without it: an interval of one arm, or nothing.
    assert CLASS.n_dichotomies(cross) == (k + 1) ** 4 + 4 * (k * (k + 1) // 2) + 1


def best_by_rule(X: Any, gains: list[int]) -> Labels:
    """Follow the documented rule for the best box, by looking at all boxes in order."""
    table = np.asarray(X, dtype=float)
    gaining = [i for i, g in enumerate(cell_gains(table, gains)) if g > 0]
    sides = [sorted({float(table[i, c]) for i in gaining}) for c in range(table.shape[1])]
    best, kept = 0, np.zeros(len(table), dtype=bool)
    for box in product(*(combinations_with_replacement(side, 2) for side in sides)):
        low, high = np.array(box).T
        inside = ((table >= low) & (table <= high)).all(axis=1)
        gain = sum(g for g, i in zip(gains, inside, strict=True) if i)
        if gain > best:
            best, kept = gain, inside
    if best == 0:
        return (0,) * len(table)
    held = table[[i for i in gaining if kept[i]]]
    inside = ((table >= held.min(axis=0)) & (table <= held.max(axis=0))).all(axis=1)
    return tuple(inside.astype(int).tolist())


def cell_gains(table: Any, gains: list[int]) -> list[int]:
    """Give each row what all rows like it gain together."""
    return [sum(g for g, r in zip(gains, table, strict=True) if np.all(r == row)) for row in table]


@settings(max_examples=300)
@given(st.data(), tables(), st.sampled_from([1, 2**40, 2**70, 2**150]))
def test_erm_is_best_and_follows_its_rule(data: st.DataObject, X: Any, scale: int) -> None:
    count = len(X)
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)))
    whole = st.builds(lambda a, b: a * scale + b, st.integers(-3, 3), st.integers(-1, 1))
    weights = np.array(
        data.draw(st.lists(whole, min_size=count, max_size=count)),
        dtype=np.int64 if scale < 2**60 else object,
    )
    h = CLASS._best(X, y, weights)
    labels = h.predict(X)
    best = max(sum(weights[np.array(z) == y].tolist()) for z in dichotomies(X))
    assert sum(weights[labels == y].tolist()) == best
    gains = np.where(y == 1, weights, -weights).tolist()
    assert tuple(labels.tolist()) == best_by_rule(X, gains)
    order = np.random.default_rng(count).permutation(count)
    assert CLASS._best(X[order], y[order], weights[order]) == h


def test_erm_takes_float_weights_of_either_sign() -> None:
    X = [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    assert CLASS.erm(X, [1, 0, 0], [0.1, -0.3, 1e-300]).predict(X).tolist() == [1, 1, 0]
    assert CLASS.erm(X, [1, 1, 1], [-0.1, 0.3, -1e-300]).predict(X).tolist() == [0, 1, 0]


def test_sides_lie_half_way_to_the_next_value() -> None:
    X = [[0, 5], [2, 1], [4, 3], [4, 8], [10, 3]]
    h = CLASS.erm(X, [0, 0, 1, 0, 0])
    assert h == Rectangle((3.0, 2.0), (7.0, 4.0))
    assert CLASS.erm(X, [1] * 5) == Rectangle((None, None), (None, None))
    assert CLASS.erm(X, [0] * 5) == Rectangle((), ())
    # Rows that are no points are labelled by the same sides.
    law = dict(CLASS._law(X, [[6.9, 3.0], [7.0, 3.0]], np.array([1, 0]), Fraction(50)))
    assert law[h] > 0.1


def test_the_compiled_sums_equal_plain_ones() -> None:
    random = np.random.default_rng(11)
    for columns, count, values in [(1, 30, 9), (2, 20, 5), (2, 12, 100), (3, 12, 4), (3, 7, 50)]:
        points = random.integers(0, values, size=(count, columns)).astype(float)
        X = random.uniform(-1, values, size=(25, columns))
        gains = random.choice([-1, 1], 25)
        grid = CLASS._grid(points, X, gains)
        assert grid is not None
        rate = 0.7
        power = module._powers(rate, len(X))
        sums: dict[tuple[int, ...], float] = {}
        for box, gain in module.boxes_uncompiled(grid):
            for part in (box[:2], box[:3], box[:4]):
                sums[part] = sums.get(part, 0.0) + math.exp(rate * gain)
        board = module._board(grid)
        for layers in combinations_with_replacement(range(board.sizes[0]), 2):
            slab = module._between(board, *layers)
            e, f = kernel.left_totals(slab, *layers, power)
            assert np.all((f == 0) | (f >= 1))
            for left in range(board.sizes[1]):
                assert weight(e[left], f[left], rate) == pytest.approx(sums.get((*layers, left), 0))
                ends = kernel.right_totals(slab, *layers, left, board.sizes[1] - 1, power)
                for step, (e_right, f_right) in enumerate(zip(*ends[:2], strict=True)):
                    plain = sums.get((*layers, left, left + step), 0)
                    assert weight(e_right, f_right, rate) == pytest.approx(plain)
            assert weight(*kernel.add_up(e, f, len(e), power), rate) == pytest.approx(
                sums.get(layers, 0)
            )


def weight(e: int, f: float, rate: float) -> float:
    return f * math.exp(rate * e) if f else 0.0


@settings(max_examples=60)
@given(st.data(), tables(most=12))
def test_the_compiled_best_box_equals_the_plain_one(data: st.DataObject, X: Any) -> None:
    gains = st.lists(st.integers(-3, 3), min_size=len(X), max_size=len(X))
    grid = CLASS._grid(X, X, np.array(data.draw(gains)), in_order=True)
    assert grid is not None
    if np.any(grid.gain > 0):
        marked = [np.isin(np.arange(grid.sizes[k]), grid.place[grid.gain > 0, k]) for k in (0, 1)]
        high, low = grid.gain >> kernel.LIMB, grid.gain & kernel.MASK
        found = kernel.best_columns(module._board(grid, high), low, *marked)
        assert found == module.best_columns_uncompiled(grid)


def test_the_error_of_a_stage_is_far_below_its_bound() -> None:
    """A seventh of WEIGHT_ERROR is what each of the seven sums in the proof may be off."""
    random = np.random.default_rng(3)
    points = random.normal(size=(14, 2))
    X = random.normal(size=(400, 2))
    gains = np.where(np.abs(X).max(axis=1) < 0.5, 1, -1)
    grid = CLASS._grid(points, X, gains)
    assert grid is not None
    boxes = list(module.boxes_uncompiled(grid))
    with mpmath.workdps(60):
        for rate in (Fraction(1, 1000), Fraction(1, 7), Fraction(9), Fraction(300)):
            power = module._powers(rate, len(X))
            e, f = kernel.left_totals(module._board(grid), 0, 0, power)
            for left in range(14):
                exact = mpmath.fsum(
                    mpmath.exp(mpmath.mpf(rate.numerator) / rate.denominator * int(gain - e[left]))
                    for box, gain in boxes
                    if box[2] == left
                )
                assert abs(f[left] / exact - 1) < module.WEIGHT_ERROR / 8


def law_and_draws(count: int) -> tuple[list[int], list[float]]:
    X = np.array([[0, 1], [1, 3], [2, 0], [3, 2], [3, 4], [1, 1]], dtype=float)
    y = np.array([0, 1, 0, 1, 1, 0])
    exact: dict[Labels, float] = {}
    for z in sorted(dichotomies(X)):
        exact[z] = math.exp(0.5 * int((np.array(z) == y).sum()))
    total = sum(exact.values())
    drawn = Counter(
        tuple(CLASS.choose(X, X, y, epsilon=1.0, random_state=i).predict(X).tolist())
        for i in range(count)
    )
    return [drawn[z] for z in exact], [w / total for w in exact.values()]


@pytest.mark.statistical
def test_draws_follow_the_law() -> None:
    assert not chi_square_rejects(*law_and_draws(1500))


def test_dichotomies_counted_twice_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = kernel.right_totals

    def twice(*arguments: Any) -> Any:
        """List the last part of each pair of columns twice."""
        e, f, ranges, part_e, part_f = original(*arguments)
        again = np.append(np.arange(len(part_e)), len(part_e) - 1)
        return e, f, ranges[again], part_e[again], part_f[again]

    monkeypatch.setattr(module, "right_totals", twice)
    X = np.array([[0, 1], [1, 0], [2, 2]], dtype=float)
    with pytest.raises(AssertionError):
        assert_exact(X, X, np.array([0, 1, 1]), Fraction(1))


@pytest.mark.statistical
def test_a_side_counted_twice_is_caught_by_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    original = kernel.left_totals

    def twice(*arguments: Any) -> Any:
        e, f = original(*arguments)
        f[0] *= 2
        return e, f

    monkeypatch.setattr(module, "left_totals", twice)
    assert chi_square_rejects(*law_and_draws(5000), checks=0)
    X = np.array([[0, 1], [1, 0], [2, 2]], dtype=float)
    with pytest.raises(AssertionError):
        assert_exact(X, X, np.array([0, 1, 1]), Fraction(1))


@settings(max_examples=150)
@given(st.data(), tables())
def test_a_new_point_splits_candidates_in_at_most_two(data: st.DataObject, points: Any) -> None:
    place = st.integers(-1, 20).map(float)
    new = data.draw(st.tuples(*[place] * points.shape[1]))
    more = np.concatenate([points, [new]])
    law = CLASS._law(more, more, np.zeros(len(more), dtype=np.int64), Fraction(0))
    found = Counter(tuple(h.predict(points).tolist()) for h, _ in law)
    assert set(found) == dichotomies(points)
    assert max(found.values()) <= (CLASS.label_boost_k or 0) == 2
    both = {tuple(h.predict(more).tolist()) for h, _ in law}
    assert len(both) == len(law)  # two that agree on the old points disagree on the new one


def test_infinite_values_are_ordered_like_numbers() -> None:
    inf = math.inf
    X = np.array([[-inf, 0], [-1, inf], [2, -inf], [inf, 5], [inf, inf]])
    for rate in (Fraction(0), Fraction(1)):
        assert_exact(X, X, np.array([0, 1, 1, 0, 1]), rate)
    assert_exact(X, [[inf, -inf], [0, 0]], np.array([1, 0]), Fraction(1))
    assert_exact(np.array([[-inf], [inf]]), [-inf, 0.0, inf], np.array([1, 0, 1]), Fraction(1))


def test_without_points_or_rows() -> None:
    nothing = np.empty((0, 2))
    assert CLASS.n_dichotomies(nothing) == CLASS.n_dichotomies([]) == 1
    assert CLASS.choose(nothing, [[1, 2]], [1], 1.0) == Rectangle((), ())
    assert CLASS.erm(nothing, []) == CLASS.erm([], []) == Rectangle((), ())
    for rows in (nothing, np.empty(0)):
        law = CLASS._law([[1, 2], [3, 4]], rows, np.zeros(0, dtype=np.int64), Fraction(1))
        assert [p for _, p in law] == pytest.approx([1 / 4] * 4)
    assert isinstance(CLASS.choose([[1, 2]], [], [], 1.0), Rectangle)


@pytest.mark.parametrize("epsilon", [math.inf, 1e300, 1e4])
def test_large_epsilons_draw_the_best(epsilon: float) -> None:
    X = np.random.default_rng(2).normal(size=(60, 2))
    y = (np.abs(X).max(axis=1) < 1).astype(int)
    assert CLASS.choose(X, X, y, epsilon).predict(X).tolist() == y.tolist()


def test_sums_far_behind_are_not_lost() -> None:
    """One cluster is e^2000 behind another until a late row decides: no shared scale survives."""
    X = np.array([[0, 0]] * 40 + [[1, 1]] * 40 + [[2, 2]] * 81, dtype=float)
    y = np.array([1] * 40 + [0] * 40 + [1] * 81)
    assert_exact(X[[0, 40, 80]], X, y, Fraction(50))
    assert_exact(X[[0, 40, 80]], X[::-1, ::-1], 1 - y[::-1], Fraction(50))


@given(labelled())
def test_without_a_rate_no_sum_depends_on_rows(data: Any) -> None:
    """So a draw with epsilon 0 has no error to charge: all its probabilities are the same."""
    points, X, y = data
    assert CLASS.weight_error(100, 0.0) == 0.0 < CLASS.weight_error(100, 1e-9)
    laws = [CLASS._law(points, *rows, Fraction(0)) for rows in ((X, y), (X[:0], y[:0]))]
    assert laws[0] == laws[1]


def test_errors() -> None:
    with pytest.raises(InvalidData, match="row 1, column 1"):
        CLASS.n_dichotomies([[1.0, 2.0], [3.0, math.nan]])
    with pytest.raises(InvalidData, match="4 columns"):
        CLASS.n_dichotomies(np.zeros((2, 4)))
    with pytest.raises(InvalidParameter, match="n_features=0"):
        CLASS.vc_dimension(0)
    with pytest.raises(InvalidData, match="2 columns, but points have 3"):
        CLASS.choose(np.zeros((2, 3)), np.zeros((2, 2)), [0, 1], 1.0)
    with pytest.raises(InvalidData, match="2 rows but y has 1"):
        CLASS.erm(np.zeros((2, 2)), [0])


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_VALUES", 3)
    with pytest.raises(InvalidData, match="more than 3 distinct"):
        CLASS.n_dichotomies([1, 2, 3, 4])


def test_vc_dimension_is_reached() -> None:
    assert [CLASS.vc_dimension(k) for k in (1, 2, 3)] == [2, 4, 6]
    for k in (1, 2, 3):
        corners = np.concatenate([np.eye(k), -np.eye(k)])
        assert CLASS.n_dichotomies(corners) == 2 ** (2 * k)


@pytest.mark.parametrize(
    ("box", "text"),
    [
        (Rectangle((), ()), "label 0 everywhere"),
        (Rectangle((None,), (None,)), "label 1 everywhere"),
        (Rectangle((None, 1.5), (2.0, math.inf)), "column 0 < 2.0 and 1.5 <= column 1 < inf"),
    ],
)
def test_hypotheses_are_plain_values(box: Rectangle, text: str) -> None:
    assert text in str(box)
    assert Hypothesis.from_dict(json.loads(json.dumps(box.to_dict()))) == box
    table = np.zeros((3, max(1, len(box.lows))))
    assert box.predict(table).shape == (3,)
