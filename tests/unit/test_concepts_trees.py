"""Trees against brute force: counts, best, law, sums, draws and the error of the weights."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import logsumexp

from cumae.concepts.base import Hypothesis
from cumae.concepts.kernels import trees as trees_kernel
from cumae.concepts.stumps import Stumps
from cumae.concepts.trees import Tree, TreeCuts, Trees, cuts_of
from cumae.concepts.trees.concept import LARGEST_COUNT, ROUNDING
from cumae.concepts.trees.gains import gains_of_cuts
from cumae.concepts.trees.sums import TreeSums, decays
from cumae.errors import InvalidData, InvalidParameter
from cumae.randomness import SeededSource
from tests.statistics import chi_square_rejects

pytestmark = [pytest.mark.claim("CHOOSE"), pytest.mark.claim("TREES")]
Table = NDArray[np.float64]
Integers = NDArray[np.int64]
RATES = (0.0, 0.3, 2.0, 40.0, math.inf)
VALUES = (0.0, 1.0, 2.0, 3.5, math.inf, -math.inf)


# Plain forms of what the kernels compute. ``holds`` is a table of cuts and rows.


def plain_gains(holds: NDArray[np.bool_], gain: NDArray[Any], depth: int) -> NDArray[Any]:
    """Return for each cut what the best tree with it at the root gains over label 0 everywhere."""
    if depth == 1:
        above = holds.astype(gain.dtype) @ gain
        return np.asarray(np.maximum(above, 0) + np.maximum(gain.sum() - above, 0))
    found = [
        sum(plain_gains(holds[:, side], gain[side], depth - 1).max() for side in (held, ~held))
        for held in holds
    ]
    return np.array(found, dtype=gain.dtype)


def plain_log_sum(holds: NDArray[np.bool_], y: Integers, rate: float, depth: int) -> float:
    """Return the logarithm of the sum of exp(rate * right) over all trees."""
    if depth == 0:
        return float(np.logaddexp(rate * (y == 0).sum(), rate * (y == 1).sum()))
    return float(
        logsumexp(
            [
                sum(plain_log_sum(holds[:, s], y[s], rate, depth - 1) for s in (held, ~held))
                for held in holds
            ]
        )
    )


def table(shape: tuple[int, int], seed: int) -> Table:
    return np.random.default_rng(seed).choice(VALUES, shape)


def labels(count: int, seed: int) -> Integers:
    return np.random.default_rng(seed).integers(0, 2, count)


Nested = Any  # a label, or (cut, tree below, tree above)


def listed(pairs: list[tuple[int, float]], X: Table, depth: int) -> list[tuple[Nested, Integers]]:
    """List every tree with its labels on X, naively."""
    if depth == 0 or not pairs:
        return [(value, np.full(len(X), value)) for value in (0, 1)]
    smaller = listed(pairs, X, depth - 1)
    return [
        ((pair, low, high), np.where(X[:, pair[0]] >= pair[1], above, below))
        for pair in pairs
        for (low, below), (high, above) in itertools.product(smaller, repeat=2)
    ]


def nested(tree: Hypothesis, node: int = 0) -> Nested:
    assert isinstance(tree, Tree)
    if node >= len(tree.columns):
        return tree.labels[node - len(tree.columns)]
    pair = (tree.columns[node], tree.cuts[node])
    return pair, nested(tree, 2 * node + 1), nested(tree, 2 * node + 2)


def walk(tree: Nested, row: NDArray[Any]) -> int:
    while isinstance(tree, tuple):
        (column, cut), low, high = tree
        tree = high if row[column] >= cut else low
    return int(tree)


def brute_law(points: Table, X: Table, y: Integers, rate: float, depth: int) -> dict[Nested, float]:
    candidates = listed(cuts_of(points), X, depth)
    scores = np.array([(found == y).sum() for _, found in candidates], dtype=float)
    weights = (scores == scores.max()) * 1.0
    if rate < math.inf:
        weights = np.exp(rate * (scores - scores.max()))
    chances = weights / weights.sum()
    return {key: float(p) for (key, _), p in zip(candidates, chances, strict=True)}


def agree(law: list[tuple[Hypothesis, float]], expected: dict[Nested, float]) -> bool:
    found = {nested(tree): chance for tree, chance in law}
    return (
        len(found) == len(law)
        and found.keys() == expected.keys()
        and all(abs(found[key] - chance) < 1e-9 for key, chance in expected.items())
    )


def shapes(depth: int) -> st.SearchStrategy[tuple[int, int]]:
    """Rows and columns of points with few enough cuts to list all trees."""
    rows = {1: 6, 2: 3, 3: 2}[depth]
    return st.tuples(st.integers(0, rows), st.integers(1, 2 if depth > 1 else 3))


@pytest.mark.parametrize("depth", [1, 2])
@given(data=st.data(), rows=st.integers(0, 9), seed=st.integers(0, 2**32))
@settings(max_examples=100)
def test_the_law_equals_brute_force(depth: int, data: Any, rows: int, seed: int) -> None:
    points = table(data.draw(shapes(depth)), seed)
    rate = data.draw(st.sampled_from(RATES))
    X, y = table((rows, points.shape[1]), seed + 1), labels(rows, seed)
    concept = Trees(depth)
    assert agree(concept._law(points, X, y, rate), brute_law(points, X, y, rate, depth))
    own = labels(len(points), seed)
    assert agree(
        concept._law(points, points, own, rate), brute_law(points, points, own, rate, depth)
    )


@given(st.integers(0, 9), st.integers(0, 2**32), st.sampled_from(RATES))
@settings(max_examples=4)
def test_the_law_of_depth_3_equals_brute_force(rows: int, seed: int, rate: float) -> None:
    points = np.array([[0.0, 1.0], [2.0, 0.0]]) if seed % 2 else np.array([[0.0], [1.0], [3.0]])
    X, y = table((rows, points.shape[1]), seed), labels(rows, seed)
    assert agree(Trees(3)._law(points, X, y, rate), brute_law(points, X, y, rate, 3))


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])
def test_the_law_with_powers_of_two_of_distinct_values(size: int) -> None:
    X, y = np.arange(size, dtype=float)[:, None], labels(size, 3)
    assert agree(Trees(1)._law(X, X, y, 0.7), brute_law(X, X, y, 0.7, 1))


@pytest.mark.parametrize("depth", [1, 2, 3])
@given(rows=st.integers(0, 200), columns=st.integers(1, 4), seed=st.integers(0, 2**32))
@settings(max_examples=25)
def test_sums_equal_the_plain_ones(depth: int, rows: int, columns: int, seed: int) -> None:
    """With several words of rows, and more cuts than a list of trees could bear."""
    generator = np.random.default_rng(seed)
    points = generator.integers(0, 4, (5, columns)).astype(float)
    X, y = generator.integers(0, 5, (rows, columns)).astype(float), labels(rows, seed)
    cuts = TreeCuts.of(points)
    if len(cuts) == 0:
        return
    rate = float(generator.choice([0.0, 0.01, 0.5, 3.0]))
    bins = cuts.bin(X)
    best, rest = TreeSums(bins, y, rate, depth).node(())
    assert np.all(rest >= 1)
    holds = bins.holds()
    for cut, held in enumerate(holds):
        plain = sum(
            plain_log_sum(holds[:, side], y[side], rate, depth - 1) for side in (held, ~held)
        )
        assert math.isclose(rate * best[cut] + math.log(rest[cut]), plain, abs_tol=1e-9)
    whole = plain_log_sum(holds, y, rate, depth)
    assert math.isclose(float(logsumexp(rate * best + np.log(rest))), whole, abs_tol=1e-9)


@given(st.integers(0, 200), st.integers(0, 2**32))
@settings(max_examples=30)
def test_counts_of_rows_equal_the_plain_ones(rows: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    cuts = TreeCuts.of(generator.integers(0, 4, (4, 3)))
    X, y = generator.integers(0, 5, (rows, 3)), labels(rows, seed)
    bins = cuts.bin(X)
    holds = bins.holds()
    assert all(np.array_equal(holds[cut], bins.above(cut)) for cut in range(len(cuts)))
    for held, column, value in zip(holds, cuts.column, cuts.value, strict=True):
        assert np.array_equal(held, X[:, column] >= value)
    words, split = trees_kernel.pack(bins.codes, cuts.starts, y)
    pairs = trees_kernel.pair_counts(words, split)
    triples = trees_kernel.triple_counts(words, split, cuts.column, pairs)
    for label in (0, 1):
        part = holds[:, y == label].astype(int)
        assert np.array_equal(trees_kernel.single_counts(words, split)[label], part.sum(axis=1))
        assert np.array_equal(pairs[label], part @ part.T)
        for k in range(len(cuts)):
            for j in range(k + 1):
                for i in range(j + 1):
                    place = k * (k + 1) * (k + 2) // 6 + j * (j + 1) // 2 + i
                    assert triples[label, place] == (part[i] * part[j] * part[k]).sum()


def test_many_cuts_in_a_column_are_binned_like_few() -> None:
    X = np.append(np.random.default_rng(1).normal(size=2000), [math.inf, -math.inf])[:, None]
    cuts = TreeCuts.of(X, max_cuts=300)
    assert len(cuts) == 300
    assert trees_kernel.FEW_CUTS < 300
    assert np.array_equal(cuts.bin(X).holds(), X[:, 0] >= cuts.value[:, None])


@pytest.mark.parametrize("per_column", [1, 7, trees_kernel.FEW_CUTS, trees_kernel.FEW_CUTS + 1])
def test_codes_equal_a_search(per_column: int) -> None:
    generator = np.random.default_rng(per_column)
    X = generator.integers(0, 50, (trees_kernel.BLOCK + 5, 2)).astype(float)
    values = np.sort(generator.integers(0, 50, (2, per_column)), axis=1).astype(float)
    starts = np.array([0, per_column, 2 * per_column])
    codes = trees_kernel.codes_of(X, starts, values.ravel())
    for column in range(2):
        plain = np.searchsorted(values[column], X[:, column], side="right")
        assert np.array_equal(codes[column], plain)


@pytest.mark.parametrize(("rows", "columns", "rate"), [(300, 3, 0.37), (40, 2, 30.0), (9, 90, 0.1)])
def test_sums_of_stumps_equal_compiled_ones_bit_for_bit(
    rows: int, columns: int, rate: float
) -> None:
    generator = np.random.default_rng(rows)
    X = generator.integers(0, 6, (rows, columns))
    cuts = TreeCuts.of(X)
    assert columns < 90 or len(cuts) ** 2 > trees_kernel.TABLE  # the last one is added up in parts
    y, decay = labels(rows, 1), decays(rate, rows)
    words, split = trees_kernel.pack(cuts.bin(X).codes, cuts.starts, y)
    counts = (trees_kernel.single_counts(words, split), trees_kernel.pair_counts(words, split))
    size = np.bincount(y, minlength=2)
    bests, rests = trees_kernel.sums_of_stumps(size, *counts, decay)
    for cut in range(len(cuts)):
        for side in range(2):
            inside, held = trees_kernel.in_one(size, *counts, cut, side)
            weights = trees_kernel.last_weights(inside[:, None], held, decay)
            plain = trees_kernel.total(*weights, decay)
            assert (bests[cut, side], rests[cut, side]) == plain


@pytest.mark.parametrize("depth", [1, 2, 3])
@given(data=st.data(), seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_counts_equal_those_of_a_list(depth: int, data: Any, seed: int) -> None:
    X = table(data.draw(shapes(depth)), seed)
    candidates = listed(cuts_of(X), X, depth)
    assert Trees(depth).n_candidates(X) == len(candidates)
    if len(candidates) <= LARGEST_COUNT:
        distinct = {tuple(found.tolist()) for _, found in candidates}
        assert Trees(depth).n_dichotomies(X) == len(distinct)
        bound = Trees(depth).vc_dimension(X.shape[1])
        assert len(distinct) < 2 ** len(X) or len(X) <= bound


def test_counts_of_large_tables() -> None:
    X = np.random.default_rng(2).normal(size=(500, 3))
    assert Trees(3, max_cuts=40).n_candidates(X) == 120**7 * 256
    assert Trees(2).n_candidates(X) == 1497**3 * 16
    assert Trees(1).n_dichotomies(X) == Stumps().n_dichotomies(X)
    with pytest.raises(InvalidParameter, match="use n_candidates"):
        Trees(2).n_dichotomies(X)


def test_vc_bounds() -> None:
    assert [Trees(1).vc_dimension(d) for d in (1, 2, 10)] == [2, 3, 6]
    for depth, columns in itertools.product((2, 3), (1, 2, 10)):
        bound = Trees(depth).vc_dimension(columns)
        inner, leaves = 2**depth - 1, 2**depth
        assert 2**bound <= (columns * (bound - 1)) ** inner * 2**leaves
        assert 2 ** (bound + 1) > (columns * bound) ** inner * 2**leaves
    assert Trees(2, max_cuts=10).vc_dimension(15) == math.floor(math.log2(150**3 * 16))
    assert Trees(1, max_cuts=1).vc_dimension(1) == 2


@pytest.mark.parametrize("depth", [1, 2, 3])
@given(data=st.data(), seed=st.integers(0, 2**32))
@settings(max_examples=60)
def test_erm_is_best_for_weights_of_either_sign(depth: int, data: Any, seed: int) -> None:
    X = table(data.draw(shapes(depth)), seed)
    y = labels(len(X), seed)
    weights = np.random.default_rng(seed).integers(-3, 4, len(X))
    best = Trees(depth)._best(X, y, weights)
    scores = [weights[found == y].sum() for _, found in listed(cuts_of(X), X, depth)]
    assert weights[best.predict(X) == y].sum() == max(scores)
    huge = np.array([int(weight) * 10**30 for weight in weights], dtype=object)
    assert Trees(depth)._best(X, y, huge) == best
    order = np.random.default_rng(seed).permutation(len(X))
    assert Trees(depth)._best(X[order], y[order], weights[order]) == best


@pytest.mark.parametrize("depth", [1, 2, 3])
@given(rows=st.integers(0, 30), columns=st.integers(1, 4), seed=st.integers(0, 2**32))
@settings(max_examples=25)
def test_the_search_equals_the_plain_one(depth: int, rows: int, columns: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    X = generator.integers(0, 4, (rows, columns)).astype(float)
    bins = TreeCuts.of(generator.integers(0, 5, (4, columns))).bin(X)
    if len(bins.cuts) == 0:
        return
    gain = generator.integers(-5, 6, rows)
    found = trees_kernel.best_gains(bins.codes, bins.cuts.starts, gain, depth)
    assert np.array_equal(found, plain_gains(bins.holds(), gain, depth))
    # Numbers of 100 bits that tie but for their last ones are told apart.
    close = np.array([int(g) * 2**100 + int(generator.integers(-2, 3)) for g in gain], dtype=object)
    exact = plain_gains(bins.holds(), close, depth)
    found = gains_of_cuts(bins, close, depth)
    assert np.array_equal(
        np.where(exact == exact.max(), exact, -1), np.where(found == found.max(), found, -1)
    )


def test_erm_takes_the_middle_of_tied_cuts_and_label_0_in_tied_leaves() -> None:
    X = [[1], [2], [3], [4], [5]]
    assert Trees(1).erm(X, [0, 0, 0, 1, 1]) == Tree((0,), (3.5,), (0, 1))
    assert Trees(1).erm(X, [0, 0, 0, 1, 1], [1, 0, 0, 0, 1]) == Tree((0,), (2.5,), (0, 1))
    assert Trees(1).erm([[1], [2]], [0, 1], [0.25, -0.25]) == Tree((0,), (1.5,), (0, 0))
    assert Trees(2).erm([], []) == Tree((), (), (0,))
    assert Trees(3).erm([[7], [7]], [1, 1]) == Tree((), (), (1,))


@given(st.sampled_from([1, 2, 3]), st.integers(0, 20), st.integers(0, 2**32))
@settings(max_examples=60)
def test_infinite_epsilon_draws_a_best_tree(depth: int, rows: int, seed: int) -> None:
    X, y = table((rows, 2), seed), labels(rows, seed)
    concept = Trees(depth, max_cuts=3)
    drawn = concept.choose(X, X, y, math.inf, random_state=seed)
    assert (drawn.predict(X) == y).sum() == (concept.erm(X, y).predict(X) == y).sum()


POINTS = np.array([[0.0, 0.0], [2.0, 1.0]])
ROWS = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0], [2.0, 1.0], [0.0, 1.0]])
LABELS = np.array([0, 1, 1, 0, 0, 0])


def draw_counts(concept: Trees, points: Any, count: int, seed: int) -> Counter[Nested]:
    source = SeededSource(seed)
    return Counter(
        nested(concept.choose(points, ROWS, LABELS, 2.0, random_state=source)) for _ in range(count)
    )


@pytest.mark.statistical
@pytest.mark.parametrize("depth", [1, 2])
def test_draws_follow_the_law(depth: int) -> None:
    expected = brute_law(POINTS, ROWS, LABELS, 1.0, depth)
    drawn = draw_counts(Trees(depth), POINTS, 1200, depth)
    assert drawn.keys() <= expected.keys()
    counts = [drawn[key] for key in expected]
    assert not chi_square_rejects(counts, list(expected.values()), checks=2)


@pytest.mark.statistical
def test_draws_of_depth_3_follow_the_law() -> None:
    """There are too many trees for a cell each: the score and the root's cut are counted."""
    expected: Counter[tuple[int, Any]] = Counter()
    law = brute_law(POINTS, ROWS, LABELS, 1.0, 3)
    right = {key: int((found == LABELS).sum()) for key, found in listed(cuts_of(POINTS), ROWS, 3)}
    for key, chance in law.items():
        expected[right[key], key[0]] += chance  # type: ignore[assignment]
    drawn: Counter[tuple[int, Any]] = Counter()
    for key, count in draw_counts(Trees(3), POINTS, 500, 7).items():
        drawn[right[key], key[0]] += count
    assert not chi_square_rejects([drawn[cell] for cell in expected], list(expected.values()))


def test_a_tree_counted_twice_is_caught() -> None:
    """Planted bug: one cut stands in the list twice."""
    cuts = TreeCuts.of(POINTS)
    for name in ("column", "value"):
        setattr(cuts, name, getattr(cuts, name)[[0, 0, 1]])
    cuts.starts = np.array([0, 2, 3])
    expected = brute_law(POINTS, ROWS, LABELS, 1.0, 2)
    assert not agree(Trees(2)._law(cuts, ROWS, LABELS, 1.0), expected)
    drawn = draw_counts(Trees(2), cuts, 1000, 3)
    assert chi_square_rejects([drawn[k] for k in expected], list(expected.values()), checks=0)


def test_decays_are_right_to_twenty_roundings() -> None:
    for rate in (Fraction(1, 3), Fraction(0.1), Fraction(7, 100_000), Fraction(10**6, 7)):
        with mpmath.workprec(200):
            for distance, found in enumerate(decays(rate, 3000).tolist()):
                exact = mpmath.exp(-mpmath.mpf(rate.numerator) * distance / rate.denominator)
                if exact > 1e-300:
                    assert abs(found / exact - 1) < 20 * ROUNDING
                else:
                    assert found <= 2e-300
    assert decays(math.inf, 2).tolist() == [1.0, 0.0, 0.0]
    assert decays(0.0, 2).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_the_error_of_the_weights_is_within_its_bound(depth: int) -> None:
    generator = np.random.default_rng(depth)
    X = generator.normal(size=(300, 3))
    y = (X[:, 0] + generator.normal(size=300) > 0).astype(np.int64)
    rate = Fraction(3, 7)
    bins = TreeCuts.of(X, max_cuts=2).bin(X)
    best, rest = TreeSums(bins, y, rate, depth).node(())
    bound = Trees(depth).weight_error(300, float(rate))
    assert 0 < bound < 3e-12
    with mpmath.workprec(200):
        q = mpmath.exp(mpmath.mpf(rate.numerator) / rate.denominator)

        def total(holds: Any, y: Any, depth: int) -> Any:
            if depth == 0:
                return q ** int((y == 0).sum()) + q ** int((y == 1).sum())
            return mpmath.fsum(
                total(holds[:, h], y[h], depth - 1) * total(holds[:, ~h], y[~h], depth - 1)
                for h in holds
            )

        for cut, held in enumerate(bins.holds()):
            sides = [total(bins.holds()[:, s], y[s], depth - 1) for s in (held, ~held)]
            assert abs(q ** int(best[cut]) * rest[cut] / (sides[0] * sides[1]) - 1) < bound


def test_states_far_behind_are_not_lost() -> None:
    """A cut that is e^-1500 behind is the only way to a tree that a later stage may need."""
    X = np.repeat([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 500, axis=0)
    y = np.repeat([0, 1, 1, 0], 500)
    sums = TreeSums(TreeCuts.of(X).bin(X), y, Fraction(3), 2)
    assert sums.node(((0, 0),))[0].tolist() == [500, 1000]
    assert sums.leaf(((0, 0), (1, 1))).tolist() == [0, 500]
    assert Trees(2).choose(X, X, y, 6.0).predict(X).tolist() == y.tolist()


def test_epsilon_0_draws_alike_whatever_the_rows_are() -> None:
    same = Trees(3, max_cuts=4)
    X = table((50, 3), 1)
    drawn = [same.choose(X, X, labels(50, seed), 0.0, random_state=5) for seed in range(3)]
    assert drawn[0].cuts == drawn[1].cuts == drawn[2].cuts
    assert Trees(2).weight_error(10, 0.0) == 0.0


def test_cuts_are_reused_and_rows_taken() -> None:
    X, y = table((80, 3), 4), labels(80, 4)
    cuts = TreeCuts.of(X, max_cuts=2)
    bins = cuts.bin(X)
    concept = Trees(2, max_cuts=2)
    drawn = [
        concept.choose(p, r, y, 1.0, random_state=9) for p, r in ((X, X), (cuts, X), (cuts, bins))
    ]
    assert drawn[0] == drawn[1] == drawn[2]
    assert concept.n_candidates(cuts) == concept.n_candidates(X)
    some = np.arange(80) % 3 == 0
    part = [
        concept.choose(cuts, r, y[some], 1.0, random_state=9) for r in (X[some], bins.take(some))
    ]
    assert part[0] == part[1]
    with pytest.raises(InvalidParameter, match="other cuts"):
        concept.choose(X, bins, y, 1.0)
    given_twice = TreeCuts([(1, 2.0), (0, 5.0), (1, 2.0)], n_features=2)
    assert list(zip(given_twice.column, given_twice.value, strict=True)) == [(0, 5.0), (1, 2.0)]


def test_cuts_lie_in_the_middle_and_are_taken_evenly() -> None:
    assert cuts_of(np.zeros((0, 2))) == cuts_of([[3.0, 1.0]] * 2) == []
    infinite = [[-math.inf], [0.0], [2.0], [math.inf]]
    assert cuts_of(infinite) == [(0, 0.0), (0, 1.0), (0, math.inf)]
    many = np.arange(101.0)
    assert [cut for _, cut in cuts_of(many, max_cuts=4)] == [12.5, 37.5, 62.5, 87.5]
    for limit in range(1, 101):
        assert len(set(cuts_of(many, limit))) == limit


@given(st.integers(0, 3), st.integers(0, 2**32))
@settings(max_examples=50)
def test_predictions_follow_the_branches_and_trees_can_be_stored(depth: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    inner = 2**depth - 1
    tree = Tree(
        tuple(generator.integers(0, 3, inner).tolist()),
        tuple(generator.choice(VALUES, inner).tolist()),
        tuple(generator.integers(0, 2, inner + 1).tolist()),
    )
    X = table((20, 3), seed)
    assert tree.predict(X).tolist() == [walk(nested(tree), row) for row in X]
    assert Hypothesis.from_dict(json.loads(json.dumps(tree.to_dict()))) == tree
    text = str(tree)
    if all(map(math.isfinite, tree.cuts)) and depth:
        # The text is a program in the manner of Python.
        for row in np.nan_to_num(X):
            code = text
            for column in range(3):
                code = code.replace(f"column {column}", repr(float(row[column])))
            found: dict[str, int] = {}
            exec(code.replace(": 0", ": label = 0").replace(": 1", ": label = 1"), found)  # noqa: S102
            assert found["label"] == walk(nested(tree), row)


def test_edges() -> None:
    none = np.zeros((0, 2))
    X, y = table((12, 2), 3), labels(12, 3)
    for depth in (1, 2, 3):
        concept = Trees(depth)
        assert concept.choose(none, X, y, 1.0).columns == ()
        assert concept.choose(none, none, [], 1.0).predict(none).tolist() == []
        assert concept.choose(X, none, [], 1.0).depth == depth
        assert concept.choose(X, X, np.ones(12), 80.0).predict(X).tolist() == [1] * 12
        assert concept.n_candidates(none) == 2
        assert concept.n_dichotomies(none) == 1
        assert concept.n_dichotomies([[1.0], [1.0]]) == 2
        assert concept.label_boost_k is None
    assert repr(Trees(2, max_cuts=5)) == "Trees(depth=2, max_cuts=5)"
    assert str(Tree((), (), (1,))) == "1"


def test_bad_input_is_refused() -> None:
    for depth in (0, 4, 1.5):
        with pytest.raises(InvalidParameter, match="depth"):
            Trees(depth)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="max_cuts"):
        Trees(2, max_cuts=0)
    with pytest.raises(InvalidData, match="row 1, column 0"):
        Trees(2).choose([[1.0], [math.nan]], [[1.0]], [0], 1.0)
    with pytest.raises(InvalidData, match="2 columns, but points have 1"):
        Trees(2).choose([[1.0], [2.0]], [[1.0, 2.0]], [0], 1.0)
    with pytest.raises(InvalidData, match="2 rows but y has 1"):
        Trees(2).erm([[1], [2]], [0])
    with pytest.raises(InvalidData, match="looks at column 2"):
        Tree((2,), (0.0,), (0, 1)).predict([[1.0]])
    with pytest.raises(InvalidParameter, match="pairs"):
        TreeCuts([(2, 0.0)], n_features=2)
    with pytest.raises(InvalidParameter, match="max_cuts"):
        Trees(2).choose(np.arange(5000.0), [[0.0]], [0], 1.0)
