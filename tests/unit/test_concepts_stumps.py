"""Stumps and projections against brute force: counts, best, law, draws and the k of boosting."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cumae.concepts import stumps
from cumae.concepts.base import Hypothesis
from cumae.concepts.columns import Cells
from cumae.concepts.projections import Projection, Projections, project
from cumae.concepts.stumps import Stump, Stumps, count_splits
from cumae.errors import InvalidData, InvalidParameter
from cumae.randomness import SeededSource
from tests.statistics import chi_square_rejects

pytestmark = [pytest.mark.claim("CHOOSE"), pytest.mark.claim("STUMPS")]
Table = NDArray[np.float64]
RATES = (0.0, 0.25, 1.5, 20.0)


def tables(rows: int = 7, columns: int = 3) -> st.SearchStrategy[Table]:
    """Small tables with ties, infinities and constant columns; 0 rows are possible."""
    cells = st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.5, -1.0, 8.0, math.inf, -math.inf])

    def shape(size: tuple[int, int]) -> st.SearchStrategy[Table]:
        flat = st.lists(cells, min_size=size[0] * size[1], max_size=size[0] * size[1])
        return flat.map(lambda values: np.array(values, dtype=float).reshape(size))

    return st.tuples(st.integers(0, rows), st.integers(1, columns)).flatmap(shape)


def labels(count: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, 2, count)


def like(table: Table, rows: int, seed: int) -> Table:
    """Other rows with as many columns, some of them between the given ones."""
    values = np.append(np.arange(-2.0, 9.0, 0.5), [math.inf, -math.inf])
    return np.random.default_rng(seed).choice(values, (rows, table.shape[1]))


def midpoint(low: float, high: float) -> float:
    half = low / 2 + high / 2 if math.isfinite(low) or math.isfinite(high) else high
    return half if low < half <= high else high


def listed(points: Table) -> list[Stump]:
    """List every candidate, naively."""
    found = []
    for column in range(points.shape[1]):
        values = sorted(set(points[:, column].tolist()))
        cuts: list[float | None] = [midpoint(a, b) for a, b in itertools.pairwise(values)]
        gaps = [-math.inf, *cuts, None] if values else [None]
        found += [Stump(column, cut, above) for above in (True, False) for cut in gaps]
    return found


def label(stump: Stump, row: NDArray[Any]) -> int:
    above = stump.cut is not None and row[stump.column] >= stump.cut
    return int(above == stump.above)


def labelling(stump: Stump, X: Table) -> tuple[int, ...]:
    return tuple(label(stump, row) for row in X)


def brute_law(points: Table, X: Table, y: NDArray[Any], rate: float) -> dict[Stump, float]:
    scores = {h: int((np.array(labelling(h, X), dtype=int) == y).sum()) for h in listed(points)}
    weights = {h: math.exp(rate * (s - max(scores.values()))) for h, s in scores.items()}
    return {h: weight / sum(weights.values()) for h, weight in weights.items()}


def agree(law: list[tuple[Hypothesis, float]], expected: dict[Any, float]) -> bool:
    found = dict(law)
    return (
        len(law) == len(found)
        and found.keys() == expected.keys()
        and all(abs(found[h] - expected[h]) < 1e-9 for h in found)
    )


@given(tables())
@settings(max_examples=200)
def test_counts_equal_those_of_a_list(X: Table) -> None:
    candidates = listed(X)
    assert len(set(candidates)) == len(candidates) == Stumps().n_candidates(X)
    assert Stumps().n_dichotomies(X) == len({labelling(h, X) for h in candidates})


def test_counts_of_large_tables() -> None:
    x = np.random.default_rng(1).permutation(20_000).astype(float)
    X = np.column_stack([x, -x, x**3, np.zeros(len(x))])
    assert Stumps().n_dichotomies(X) == 2 * len(x)  # the four columns divide alike, or not at all
    assert count_splits(np.column_stack([x, np.roll(x, 1)])) > 2 * len(x)


@given(tables(), st.integers(0, 9), st.integers(0, 2**32), st.sampled_from(RATES))
@settings(max_examples=200)
def test_the_law_equals_brute_force(points: Table, rows: int, seed: int, rate: float) -> None:
    X = like(points, rows, seed)
    y = labels(rows, seed)
    assert agree(Stumps()._law(points, X, y, rate), brute_law(points, X, y, rate))
    own = labels(len(points), seed)
    assert agree(Stumps()._law(points, points, own, rate), brute_law(points, points, own, rate))


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])
def test_the_law_with_powers_of_two_of_distinct_values(size: int) -> None:
    X = np.column_stack([np.arange(size), labels(size, 3)]).astype(float)
    y = labels(size, 4)
    assert agree(Stumps()._law(X, X, y, 0.7), brute_law(X, X, y, 0.7))


@given(tables(), st.integers(0, 2**32), st.booleans())
@settings(max_examples=200)
def test_erm_is_best_for_weights_of_either_sign(X: Table, seed: int, huge: bool) -> None:
    y = labels(len(X), seed)
    whole = np.random.default_rng(seed).integers(-3, 4, len(X))
    weights = np.array([int(w) * 10**30 for w in whole], dtype=object) if huge else whole
    best = Stumps()._best(X, y, weights)
    assert isinstance(best, Stump)
    scores = {
        h: sum(w for w, a, b in zip(whole.tolist(), labelling(h, X), y, strict=True) if a == b)
        for h in listed(X)
    }
    top = [h for h in listed(X) if scores[h] == max(scores.values())]
    first = [h for h in top if (h.column, h.above) == (top[0].column, top[0].above)]
    assert best == first[(len(first) - 1) // 2]  # the documented rule


def test_erm_with_float_weights() -> None:
    assert Stumps().erm([[1], [2], [3]], [0, 1, 0], [0.1, 0.2, 0.05]) == Stump(0, 1.5)


@given(tables(), st.integers(0, 2**32))
@settings(max_examples=50)
def test_infinite_epsilon_draws_a_best_stump(X: Table, seed: int) -> None:
    y = labels(len(X), seed)
    drawn = Stumps().choose(X, X, y, math.inf, random_state=seed)
    best = Stumps().erm(X, y)
    assert (drawn.predict(X) == y).sum() == (best.predict(X) == y).sum()


POINTS = np.array([[0.0, 3.0], [0.0, 3.0], [0.0, 3.0], [1.0, 0.0], [0.0, 3.0]])
LABELS = np.array([0, 0, 1, 1, 0])
Law = dict[tuple[int, ...], float]


def by_labelling(chances: dict[Any, float]) -> Law:
    found: Law = {}
    for h, chance in chances.items():
        found[labelling(h, POINTS)] = found.get(labelling(h, POINTS), 0.0) + chance
    return found


def draws(count: int, seed: int) -> Counter[Any]:
    source = SeededSource(seed)
    return Counter(
        Stumps().choose(POINTS, POINTS, LABELS, 1.0, random_state=source) for _ in range(count)
    )


@pytest.mark.statistical
def test_draws_follow_the_law() -> None:
    expected = brute_law(POINTS, POINTS, LABELS, 0.5)
    drawn = draws(3000, 5)
    assert drawn.keys() <= expected.keys()
    assert not chi_square_rejects([drawn[h] for h in expected], list(expected.values()))


def test_a_labelling_counted_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: equal points are not merged, so that there are gaps between them."""

    def unmerged(points: Table, X: Table, y: NDArray[Any], weights: None = None) -> list[Cells]:
        sign = np.where(y == 1, 1, -1)
        orders = [np.argsort(column) for column in X.T]
        base = int((y == 0).sum())
        return [Cells(x[order], sign[order], base) for x, order in zip(X.T, orders, strict=True)]

    expected = by_labelling(brute_law(POINTS, POINTS, LABELS, 0.5))
    right = by_labelling(dict(Stumps()._law(POINTS, POINTS, LABELS, 0.5)))
    assert all(abs(right[z] - expected[z]) < 1e-9 for z in expected)
    monkeypatch.setattr(stumps, "_columns", unmerged)
    wrong = by_labelling(dict(Stumps()._law(POINTS, POINTS, LABELS, 0.5)))
    assert any(abs(wrong[z] - expected[z]) > 1e-2 for z in expected)
    drawn = by_labelling(dict(draws(3000, 5)))
    assert chi_square_rejects([drawn[z] for z in expected], list(expected.values()), checks=0)


@given(tables(rows=6), st.integers(0, 2**32))
@settings(max_examples=150)
def test_a_new_point_splits_a_candidate_into_two_that_disagree_on_it(X: Table, seed: int) -> None:
    """The k = 2 of label boosting: weights of agreeing candidates grow by at most 1 + g."""
    new = like(X, 1, seed)
    more = np.vstack([X, new])
    before = Counter(labelling(h, X) for h in listed(X))
    after: dict[tuple[int, ...], list[int]] = {z: [] for z in before}
    for h in listed(more):
        after[labelling(h, X)].append(label(h, new[0]))  # a KeyError would be a new dichotomy
    for z, sides in after.items():
        assert before[z] <= len(sides) <= 2 * before[z]
        for wanted in (0, 1):
            for g in (1.0, 1.6):
                weight = sum(g if side == wanted else 1.0 for side in sides)
                assert before[z] <= weight <= (1 + g) * before[z] + 1e-9
    assert Stumps.label_boost_k == Projections.label_boost_k == 2


def ranks(orders: list[tuple[int, ...]]) -> Table:
    return np.array([np.argsort(order) for order in orders], dtype=float).T


def test_the_vc_dimension_is_reached_and_not_passed() -> None:
    sizes = [Stumps().vc_dimension(d) for d in range(1, 12)]
    assert sizes == [2, 3, 4, 4, 5, 5, 5, 5, 5, 6, 6]
    shattered: dict[int, list[tuple[int, ...]]] = {
        1: [(0, 1)],
        2: [(0, 1, 2), (1, 0, 2)],
        3: [(0, 1, 2, 3), (2, 0, 3, 1), (0, 3, 1, 2)],
        5: [tuple((i + step) % 5 for step in (0, 1, 3, 2, 4)) for i in range(5)],
    }
    for columns, orders in shattered.items():
        X = ranks(orders)
        assert len(X) == Stumps().vc_dimension(columns)
        assert count_splits(X) == 2 ** len(X)
    # Four points have too many halves for two columns, whatever their orders are.
    for order in itertools.permutations(range(4)):
        assert count_splits(ranks([(0, 1, 2, 3), order])) < 16
    assert Stumps().vc_dimension(math.comb(30, 15) // 2) == 30


@given(tables(), st.integers(0, 2**32))
@settings(max_examples=50)
def test_the_kernel_counts_what_the_plain_code_scores(X: Table, seed: int) -> None:
    y = labels(len(X), seed)
    signed = int(2 * y.sum() - len(y))
    for cells in stumps._columns(X, X, y):
        counts = np.zeros(len(y) + 1, dtype=np.int64)
        stumps.count_scores(cells.gain, cells.base, signed, counts)
        scores = np.concatenate(stumps.scores_of(cells, signed))
        assert np.array_equal(counts, np.bincount(scores, minlength=len(y) + 1))


def test_hypotheses_store_and_print() -> None:
    for h in (Stump(1, 2.5), Stump(0, None, above=False), Stump(0, -math.inf), Stump(0, math.inf)):
        assert Hypothesis.from_dict(json.loads(json.dumps(h.to_dict()))) == h
    line = Projection((0.5, 0.0, -2.0), 1.0, above=False)
    assert Hypothesis.from_dict(json.loads(json.dumps(line.to_dict()))) == line
    assert str(line) == "label 1 where 0.5 x0 - 2.0 x2 is below 1.0, else 0"
    assert str(Projection((-1.0,), 0.0)) == "label 1 where - 1.0 x0 is at least 0.0, else 0"
    assert str(Stump(0, None)) == str(Stump(0, -math.inf, above=False)) == "label 0 everywhere"
    assert str(Stump(0, None, above=False)) == str(Stump(0, -math.inf)) == "label 1 everywhere"


def test_bad_input_is_refused() -> None:
    with pytest.raises(InvalidData, match="row 1, column 0"):
        Stumps().erm([[1.0], [math.nan]], [0, 1])
    with pytest.raises(InvalidData, match="2 columns, but points have 1"):
        Stumps().choose(np.zeros((2, 1)), np.zeros((2, 2)), [0, 1], 1.0)
    with pytest.raises(InvalidData, match="no columns"):
        Stumps().n_candidates(np.zeros((2, 0)))
    with pytest.raises(InvalidData, match="column 3"):
        Stump(3, 0.0).predict([[1.0]])
    with pytest.raises(InvalidData, match="2 rows but y has 1"):
        Stumps().erm([[1], [2]], [0])
    for wrong in ([1.0, 2.0], [[0.0, 0.0]], [[math.inf, 1.0]], np.zeros((0, 2))):
        with pytest.raises(InvalidParameter, match="directions"):
            Projections(wrong)
    with pytest.raises(InvalidParameter, match="n_features=3"):
        Projections([[1.0, 2.0]]).vc_dimension(3)
    # Infinities of both signs cancel: an error would depend on one row.
    assert project(np.array([[math.inf, -math.inf]]), np.array([[1.0, 1.0]])).tolist() == [[0.0]]


DIRECTIONS = np.array([[1.0, 0.5], [0.0, -1.0], [1.0, 1.0]])


def along(stump: Stump) -> Projection:
    return Projection(tuple(DIRECTIONS[stump.column].tolist()), stump.cut, stump.above)


@given(st.integers(0, 7), st.integers(0, 2**32), st.sampled_from(RATES))
@settings(max_examples=100)
def test_projections_are_stumps_on_projected_rows(rows: int, seed: int, rate: float) -> None:
    generator = np.random.default_rng(seed)
    points = generator.integers(-2, 3, (rows, 2)).astype(float)
    X = generator.integers(-2, 3, (rows, 2)).astype(float)
    y = labels(rows, seed)
    concept = Projections(DIRECTIONS)
    P, Z = points @ DIRECTIONS.T, X @ DIRECTIONS.T  # small integers and halves: no rounding
    expected = {along(h): chance for h, chance in brute_law(P, Z, y, rate).items()}
    assert agree(concept._law(points, X, y, rate), expected)
    assert concept.n_candidates(points) == Stumps().n_candidates(P)
    assert concept.n_dichotomies(points) == Stumps().n_dichotomies(P)
    best = Stumps().erm(Z, y)
    assert isinstance(best, Stump)
    assert concept.erm(X, y) == along(best)
    drawn = concept.choose(points, X, y, 1.0, random_state=seed)
    assert drawn in expected
    assert concept.choose(X, X, y, math.inf).predict(X).shape == (rows,)


def test_equal_rows_project_equally_wherever_they_stand() -> None:
    generator = np.random.default_rng(6)
    X, directions = generator.normal(size=(501, 7)), generator.normal(size=(9, 7))
    whole = project(X, directions)
    for row in range(0, 501, 50):
        alone = project(X[row : row + 1], directions)
        assert np.array_equal(alone[0], whole[row])
    order = generator.permutation(501)
    assert np.array_equal(project(X[order], directions), whole[order])


def test_projections_skip_columns_of_weight_zero() -> None:
    concept = Projections([[0.0, 1.0]])
    X = [[math.inf, 1.0], [-math.inf, 2.0]]
    assert concept.erm(X, [0, 1]) == Projection((0.0, 1.0), 1.5)
    assert concept.vc_dimension() == 2
    assert repr(concept) == "Projections(directions=((0.0, 1.0),))"
    assert Projections(np.eye(2).repeat(9, axis=0)).vc_dimension(2) == 3  # halfspaces of a plane
