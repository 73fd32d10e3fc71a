"""Halfspaces against an enumeration in whole numbers that shares nothing with them."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from cumae.concepts import Hypothesis, Thresholds
from cumae.concepts.halfspaces import Halfspace, Halfspaces
from cumae.concepts.halfspaces import labellings as module
from cumae.concepts.kernels.gaps import separate
from cumae.concepts.kernels.halfspaces_exact import reference_labels
from cumae.concepts.kernels.turns import turn_2, turn_3
from cumae.errors import InvalidData, InvalidParameter
from cumae.randomness import SeededSource
from tests.statistics import alarm_rate, chi_square_rejects

pytestmark = [pytest.mark.claim("CHOOSE"), pytest.mark.claim("HALFSPACES")]

Table = NDArray[np.float64]
Labels = tuple[int, ...]
Exact = tuple[Fraction, ...]


# The oracle. Every hyperplane through some of the points splits the others; those on it are split
# in all ways that halfspaces of its own dimension allow. A set holds no labelling twice.


def determinant(rows: list[list[Fraction]]) -> Fraction:
    if not rows:
        return Fraction(1)
    return sum(
        (
            (-1) ** i * value * determinant([row[:i] + row[i + 1 :] for row in rows[1:]])
            for i, value in enumerate(rows[0])
        ),
        Fraction(0),
    )


def rank_of(points: tuple[Exact, ...]) -> tuple[int, ...]:
    """Return columns that tell the points of their affine hull apart, as many as its dimension."""
    edges = [[v - u for u, v in zip(points[0], point, strict=True)] for point in points[1:]]
    for size in range(len(points[0]), 0, -1):
        for columns in itertools.combinations(range(len(points[0])), size):
            for some in itertools.combinations(edges, size):
                if determinant([[edge[c] for c in columns] for edge in some]):
                    return columns
    return ()


@functools.cache
def all_labels(points: tuple[Exact, ...]) -> set[Labels]:
    """Return the labellings of distinct points by halfspaces."""
    if not points:
        return {()}
    columns = rank_of(points)
    found = {(0,) * len(points), (1,) * len(points)}
    if not columns:
        return found
    flat = [tuple(point[c] for c in columns) for point in points]
    for some in itertools.combinations(range(len(flat)), len(columns)):
        base = flat[some[0]]
        rows = [[v - u for u, v in zip(base, flat[k], strict=True)] for k in some[1:]]
        sides = [determinant([*rows, [v - u for u, v in zip(base, p, strict=True)]]) for p in flat]
        on = [k for k, value in enumerate(sides) if value == 0]
        if len(on) == len(flat):
            continue
        for inner in all_labels(tuple(flat[k] for k in on)):
            for sign in (1, -1):
                labels = [int(sign * value > 0) for value in sides]
                for k, label in zip(on, inner, strict=True):
                    labels[k] = label
                found.add(tuple(labels))
    return found


def exact(row: Any) -> Exact:
    return tuple(Fraction(float(value)) for value in row)


def brute_labels(table: Table) -> set[Labels]:
    """Return the labellings of rows, of which some may be equal."""
    rows = [exact(row) for row in table]
    distinct = sorted(set(rows))
    return {
        tuple(labels[distinct.index(row)] for row in rows) for labels in all_labels(tuple(distinct))
    }


def brute_predict(rule: Hypothesis, table: Table) -> Labels:
    assert isinstance(rule, Halfspace)
    normal, offset = [Fraction(value) for value in rule.normal], Fraction(rule.offset)
    return tuple(
        int(sum(u * v for u, v in zip(normal, exact(row), strict=True)) >= offset) for row in table
    )


def brute_law(
    table: Table, y: NDArray[np.int64], rate: float, rules: dict[Labels, Hypothesis], X: Table
) -> dict[Labels, float]:
    """Weigh every labelling by the score of its rule, computed by rational arithmetic."""
    weights = {
        labels: math.exp(rate * sum(int(a == b) for a, b in zip(predicted, y, strict=True)))
        for labels in brute_labels(table)
        for predicted in [brute_predict(rules[labels], X)]
    }
    total = sum(weights.values())
    return {labels: weight / total for labels, weight in weights.items()}


def largest_difference(
    concept: Halfspaces, points: Table, X: Table, y: NDArray[np.int64], rate: Fraction
) -> float:
    """Compare the whole law with the enumeration; a labelling that comes twice counts as wrong."""
    law = concept._law(points, X, y, rate)
    rules = {brute_predict(rule, points): rule for rule, _ in law}
    if set(rules) != brute_labels(points) or len(rules) != len(law):
        return math.inf
    expected = brute_law(points, y, float(rate), rules, X)
    return max(abs(p - expected[brute_predict(rule, points)]) for rule, p in law)


@st.composite
def tables(draw: st.DrawFn, columns: int | None = None, most: int = 7, least: int = 0) -> Table:
    """Draw few points close together, so that they coincide and share lines and planes often."""
    width = columns or draw(st.integers(1, 3))
    size = draw(st.integers(least, most if width < 3 else min(most, 6)))
    reach = draw(st.sampled_from([1, 2, 5]))
    step = draw(st.sampled_from([1.0, 0.1, -1 / 3, 2.0**40]))
    cells = st.integers(0, reach)
    rows = draw(st.lists(st.tuples(*[cells] * width), min_size=size, max_size=size))
    return np.array(rows, dtype=float).reshape(size, width) * step


@st.composite
def labelled(draw: st.DrawFn, X: Table) -> NDArray[np.int64]:
    return np.array(
        draw(st.lists(st.integers(0, 1), min_size=len(X), max_size=len(X))), dtype=np.int64
    )


# The oracle is right


def separable(table: Table, labels: Labels) -> bool:
    """Ask a linear program for a margin of 1."""
    signs = 2.0 * np.array(labels) - 1
    rows = -signs[:, None] * np.column_stack([table, -np.ones(len(table))])
    return bool(
        linprog(np.zeros(rows.shape[1]), rows, -np.ones(len(rows)), bounds=(None, None)).status == 0
    )


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_oracle_agrees_with_linear_programs(columns: int) -> None:
    generator = np.random.default_rng(columns)
    for size in (4, 6):
        table = generator.integers(0, 3, (size, columns)).astype(float)
        wanted = {
            labels for labels in itertools.product((0, 1), repeat=size) if separable(table, labels)
        }
        assert brute_labels(table) == wanted


# Counts


@settings(max_examples=300, deadline=None)
@given(tables())
def test_counts_equal_the_enumeration(X: Table) -> None:
    assert Halfspaces().n_dichotomies(X) == len(brute_labels(X))


def test_counts_of_many_points() -> None:
    generator = np.random.default_rng(1)
    n = 700
    assert Halfspaces().n_dichotomies(generator.random((n, 2))) == n * n - n + 2
    n = 40
    assert Halfspaces().n_dichotomies(generator.random((n, 3))) == 2 * math.comb(n, 3) + 2 * n
    x = generator.random(5000)
    line = np.column_stack([x, 2 * x, -x])
    assert Halfspaces().n_dichotomies(line) == 10_000
    # A plane in space has as many as it has on its own; so has a grid, whatever its scale.
    grid = np.array(list(itertools.product(range(8), range(9))), dtype=float)
    tilted = np.column_stack([grid[:, 0], grid[:, 0] + 2 * grid[:, 1], grid[:, 1]])
    assert Halfspaces().n_dichotomies(tilted) == Halfspaces().n_dichotomies(grid)
    assert Halfspaces().n_dichotomies(grid * [3.0**20, 2.0**-30]) == Halfspaces().n_dichotomies(
        grid
    )


@settings(max_examples=150, deadline=None)
@given(tables(columns=2, most=12) | tables(columns=3))
def test_kernel_equals_reference(X: Table) -> None:
    labellings = module.Labellings(X, X[:0], np.zeros(0, dtype=np.int64))
    if labellings.rank > 1:
        swept = np.concatenate([labellings._all_labels(start) for start in labellings.starts])
        assert np.array_equal(swept, list(reference_labels(labellings.view)))


@pytest.mark.parametrize("other", [False, True])
def test_finding_across_blocks(other: bool) -> None:
    """More pivots than a block holds; every gain's candidates come in the reference's order."""
    generator = np.random.default_rng(5)
    points = generator.integers(0, 40, (module.BLOCK + 8, 2)).astype(float)
    X = points[:20] + 0.25 if other else points
    gains = generator.choice([-1, 1], len(X))
    labellings = module.Labellings(points, X, gains)
    rules = [labellings.hypothesis(labellings.cut_labels(k)) for k in range(2)]
    rules += [labellings.hypothesis(labels) for labels in reference_labels(labellings.view)]
    gained = np.array([rule.predict(X) @ gains for rule in rules])
    base = int(np.sum(gains < 0))
    counts = labellings.histogram(base, len(X))
    assert np.array_equal(counts, np.bincount(gained + base, minlength=len(X) + 1))
    for gain in np.unique(gained):
        ties = np.flatnonzero(gained == gain)
        for place in {0, len(ties) // 2, len(ties) - 1}:
            assert labellings.find(int(gain), place) == rules[ties[place]]
    assert labellings.best() == (gained.max(), np.sum(gained == gained.max()))


# Exact turns


def sign_of(value: Fraction) -> int:
    return (value > 0) - (value < 0)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_turns_are_exact(seed: int) -> None:
    generator = np.random.default_rng(seed)
    points = generator.random((4, 3)) * 2.0 ** -generator.integers(0, 12, (4, 3))
    # Move the last point into one line or plane with the others, but for rounding.
    line, plane = points.copy(), points.copy()
    line[2] = points[0] + (points[1] - points[0]) * generator.random()
    plane[3] = points[0] + (points[1:3] - points[0]).T @ generator.random(2)
    several: list[Table] = [points, line, plane, points.round(1), line.round(1)]
    for table in several:
        rows = [exact(row) for row in table]
        edges = [[v - u for u, v in zip(rows[0], row, strict=True)] for row in rows[1:]]
        assert turn_3(table, 0, 1, 2, 3) == sign_of(determinant(edges))
        for x, y in ((0, 1), (0, 2), (1, 2)):
            flat = [[edge[x], edge[y]] for edge in edges[:2]]
            assert turn_2(table, x, y, 0, 1, 2) == sign_of(determinant(flat))


# The law


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_law_equals_the_enumeration_on_its_own_points(data: st.DataObject) -> None:
    points = data.draw(tables())
    rows = data.draw(st.integers(0, len(points)))  # scored on some of the points, or on all
    y = data.draw(labelled(points[:rows]))
    rate = data.draw(st.sampled_from([Fraction(0), Fraction(1, 20), Fraction(2, 3), Fraction(7)]))
    assert largest_difference(Halfspaces(), points, points[:rows], y, rate) < 1e-9


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_law_equals_the_enumeration_on_other_rows(data: st.DataObject) -> None:
    columns = data.draw(st.integers(1, 3))
    points = data.draw(tables(columns=columns, most=6))
    X = data.draw(tables(columns=columns, most=10)) / data.draw(st.sampled_from([1, 2, 3]))
    y = data.draw(labelled(X))
    rate = data.draw(st.sampled_from([Fraction(0), Fraction(1, 20), Fraction(2, 3)]))
    assert largest_difference(Halfspaces(), points, X, y, rate) < 1e-9


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_law_with_powers_of_two_of_distinct_values(columns: int) -> None:
    generator = np.random.default_rng(columns)
    for size in (1, 2, 4, 8):
        points = generator.permutation(np.repeat(np.arange(size), columns)).reshape(size, columns)
        X, y = points.astype(float), generator.integers(0, 2, size)
        assert largest_difference(Halfspaces(), X, X, y, Fraction(1, 2)) < 1e-9


def test_infinite_epsilon_draws_among_the_best() -> None:
    X = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    law = Halfspaces()._law(X, X, np.array([0, 1, 1, 0]), math.inf)
    assert {brute_predict(rule, X) for rule, _ in law} == {
        labels
        for labels in brute_labels(X)
        if sum(a != b for a, b in zip(labels, (0, 1, 1, 0), strict=True)) == 1
    }
    rule = Halfspaces().choose(X, X, [0, 0, 1, 1], math.inf)
    assert rule.predict(X).tolist() == [0, 0, 1, 1]


@pytest.mark.statistical
@pytest.mark.parametrize("other", [False, True])
def test_draws_follow_the_law(other: bool) -> None:
    """A correct sampler fails each of the two with probability ``alarm_rate()`` at most."""
    assert alarm_rate() <= 1e-8
    points = np.array([[0.0, 0], [1, 2], [2, 1], [3, 3], [1, 2], [4, 6]])
    X = points + 0.5 if other else points
    y = np.array([0, 1, 0, 1, 1, 0])
    law = Halfspaces()._law(points, X, y, Fraction(1, 2))
    places = {rule.predict(points).tobytes(): k for k, (rule, _) in enumerate(law)}
    p = np.array([p for _, p in law])
    source = SeededSource(3)
    counts = np.zeros(len(law), dtype=np.int64)
    for _ in range(2000):
        rule = Halfspaces().choose(points, X, y, 1.0, random_state=source)
        counts[places[rule.predict(points).tobytes()]] += 1
    assert not chi_square_rejects(counts, p, checks=2)
    # The same draws speak against a law in which one labelling counts twice.
    p[np.argmax(p)] *= 2
    assert chi_square_rejects(counts, p / p.sum(), checks=0)


def test_a_labelling_counted_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.array([[0.0, 0], [1, 2], [2, 1], [3, 3]])
    y = np.array([0, 1, 0, 1])
    assert largest_difference(Halfspaces(), points, points, y, Fraction(1, 2)) < 1e-9
    sweep = vars(module)["sweep"]

    def careless(*arguments: Any) -> Any:
        found = sweep(*arguments)
        counts = arguments[4]
        if len(counts):
            counts[np.argmax(counts)] += 1
        return found

    monkeypatch.setattr(module, "sweep", careless)
    assert largest_difference(Halfspaces(), points, points, y, Fraction(1, 2)) > 1e-3


# Best hypotheses


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_erm_is_best_for_signed_weights(data: st.DataObject) -> None:
    X = data.draw(tables())
    y = data.draw(labelled(X))
    size = data.draw(st.sampled_from([1, 3, 2**20, 2**61, 2**150]))
    number = st.integers(-size, size) | st.sampled_from([-size, size])
    weights = np.array(
        data.draw(st.lists(number, min_size=len(X), max_size=len(X))),
        dtype=object if size > 2**50 else np.int64,
    )

    def value(labels: Labels) -> int:
        return sum(int(w) for w, a, b in zip(weights, labels, y, strict=True) if a == b)

    concept = Halfspaces()
    rule = concept._best(X, y, weights)
    assert value(brute_predict(rule, X)) == max(map(value, brute_labels(X)))
    order = data.draw(st.permutations(range(len(X))))
    assert concept._best(X[order], y[order], weights[order]) == rule


def test_erm_takes_float_weights_exactly() -> None:
    X = np.array([[0.0, 0], [1, 1], [2, 2], [0, 2]])
    tiny = 2.0**-80
    rule = Halfspaces().erm(X, [1, 0, 1, 0], sample_weight=[1, 3, 1 + 2.0**-52, tiny])
    assert rule.predict(X).tolist() == [0, 0, 1, 0]
    rule = Halfspaces().erm(X, [1, 1, 1, 0], sample_weight=[1.0, -tiny, 1.0, 1.0])
    assert rule.predict(X).tolist() == [1, 1, 1, 0]


def test_erm_takes_the_middle_of_ties_and_of_gaps() -> None:
    for y in itertools.product((0, 1), repeat=5):
        column = np.array([1.0, 2, 4, 7, 9])
        rule, cut = Halfspaces().erm(column, y), Thresholds().erm(column, y)
        assert rule.predict(column).tolist() == cut.predict(column).tolist()
    X = np.array([[0.0, 0], [4, 0], [0, 2], [4, 2]])
    assert Halfspaces().erm(X, [0, 1, 0, 1]) == Halfspace((1.0, 0.0), 2.0)
    space = np.array(list(itertools.product((0.0, 2.0), repeat=3)))
    assert Halfspaces().erm(space, space[:, 2] == 0) == Halfspace((0.0, 0.0, -1.0), -1.0)


# Hypotheses


@settings(max_examples=100, deadline=None)
@given(tables(least=2), st.data())
def test_no_point_lies_on_a_boundary(X: Table, data: st.DataObject) -> None:
    y = data.draw(labelled(X))
    for rule, _ in Halfspaces()._law(X, X, y, 0.0):
        assert isinstance(rule, Halfspace)
        normal, offset = [Fraction(u) for u in rule.normal], Fraction(rule.offset)
        for row in X:
            assert sum(u * v for u, v in zip(normal, exact(row), strict=True)) != offset
        assert rule.predict(X).tolist() == list(brute_predict(rule, X))
        assert Hypothesis.from_dict(json.loads(json.dumps(rule.to_dict()))) == rule


@pytest.mark.parametrize("columns", [2, 3])
def test_the_gap_is_the_widest(columns: int) -> None:
    generator = np.random.default_rng(columns)
    for _ in range(40):
        X = generator.random((12, columns))
        labels = (X @ generator.normal(size=columns) > 0.3 * generator.random()).astype(np.int64)
        if len(set(labels)) < 2:
            continue
        rough, _, holds = separate(X, labels)
        best = module.widest_gap(X, labels)
        assert holds
        margins = [
            ((X[labels == 1] @ u).min() - (X[labels == 0] @ u).max()) / np.linalg.norm(u)
            for u in (rough, np.array(best.normal))
        ]
        assert margins[0] == pytest.approx(margins[1], rel=1e-9)


def test_gaps_finer_than_floats() -> None:
    step = 2.0**-52
    X = np.array([[0.0, 0.0], [1, 1], [1 + step, 1 + 2 * step], [3, 3 + 2 * step]])
    y = np.array([0, 1, 1, 0])
    law = Halfspaces()._law(X, X, y, Fraction(1))
    assert {brute_predict(rule, X) for rule, _ in law} == brute_labels(X)
    assert all(tuple(rule.predict(X)) == brute_predict(rule, X) for rule, _ in law)
    assert any(isinstance(rule, Halfspace) and isinstance(rule.offset, int) for rule, _ in law)
    for rule, _ in law:
        assert Hypothesis.from_dict(json.loads(json.dumps(rule.to_dict()))) == rule
        assert str(rule).startswith("label 1 ") or not rule.predict(X).any()


@pytest.mark.parametrize("columns", [2, 3])
def test_extreme_magnitudes(columns: int) -> None:
    generator = np.random.default_rng(columns)
    for powers in ([-1070, 1000], [-1074, -1060], [1015, 1022], [-200, 200]):
        X = generator.integers(1, 3, (6, columns)) * 2.0 ** generator.choice(powers, (6, columns))
        y = generator.integers(0, 2, 6)
        assert Halfspaces().n_dichotomies(X) == len(brute_labels(X))
        assert largest_difference(Halfspaces(), X, X, y, Fraction(1, 2)) < 1e-9
        assert largest_difference(Halfspaces(), X[:4], X, y, Fraction(1, 2)) < 1e-9
        rule = Halfspaces().erm(X, y)
        assert repr(rule).startswith("Halfspace((")
        best = max(
            sum(a == b for a, b in zip(labels, y, strict=True)) for labels in brute_labels(X)
        )
        assert sum(rule.predict(X) == y) == best


def test_predictions_are_exact() -> None:
    rule = Halfspace((0.1, 0.2), 0.3)  # floats: 0.1 + 0.2 is rounded up, the exact sum is below
    rows = np.array([[1.0, 1.0], [3.0, 0.0], [0.0, 1.5], [1.0, np.nextafter(1.0, 0.0)]])
    assert tuple(rule.predict(rows)) == brute_predict(rule, rows)
    assert Halfspace((2**2000, -(3**1300)), 5).predict([[1.0, 0.0], [0.0, 1.0]]).tolist() == [1, 0]
    assert str(Halfspace((0.0, -2.0, 0.5), 1.0)) == "label 1 where -2.0 x1 + 0.5 x2 >= 1.0, else 0"
    assert str(Halfspace((0.0, 0.0), -1.0)) == "label 1 everywhere"
    with pytest.raises(InvalidParameter):
        Halfspace((1.0, math.inf), 0.0)
    with pytest.raises(InvalidParameter):
        Halfspace((), 0.0)


# Label boosting


@settings(max_examples=100, deadline=None)
@given(tables(least=1, most=6))
def test_one_more_point_at_most_doubles_the_candidates(X: Table) -> None:
    assert Halfspaces().label_boost_k == 2

    def candidates(points: Table) -> list[Labels]:
        law = Halfspaces()._law(points, points, np.zeros(len(points), dtype=np.int64), 0.0)
        return [tuple(rule.predict(X).tolist()) for rule, _ in law]

    fewer = Counter(labels[:-1] for labels in candidates(X[:-1]))
    more: dict[Labels, list[int]] = {}
    for labels in candidates(X):
        more.setdefault(labels[:-1], []).append(labels[-1])
    assert set(fewer) == set(more)
    assert all(count == 1 for count in fewer.values())
    assert all(len(last) == len(set(last)) <= 2 for last in more.values())


# Edges


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_nothing_to_go_by(columns: int) -> None:
    concept, none, some = Halfspaces(), np.zeros((0, columns)), np.ones((3, columns))
    labels = np.array([1, 1, 0])
    assert concept.n_dichotomies(none) == 1
    assert concept.n_dichotomies(some) == 2
    assert concept.choose(none, none, [], 1.0).predict(some).tolist() == [0, 0, 0]
    assert concept.choose(none, some, labels, 1.0).predict(some).tolist() == [0, 0, 0]
    assert len(concept._law(some, none, np.zeros(0, dtype=np.int64), Fraction(1))) == 2
    assert concept.erm(some, labels).predict(some).tolist() == [1, 1, 1]
    assert concept.erm(none, []).predict(some).tolist() == [0, 0, 0]
    assert concept.choose([], some, labels, 1.0).predict(some).tolist() == [0, 0, 0]
    assert concept.choose(some, [], [], 1.0).predict(none).tolist() == []


def test_infinite_values() -> None:
    column = np.array([-math.inf, 0.0, math.inf, math.inf])
    law = Halfspaces()._law(column, column, np.array([0, 0, 1, 1]), Fraction(1))
    labels = {tuple(rule.predict(column).tolist()) for rule, _ in law}
    assert len(law) == len(labels) == Halfspaces().n_dichotomies(column) == 6
    ends = np.array([-math.inf, math.inf])
    assert Halfspaces().erm(ends, [0, 1]).predict(ends).tolist() == [0, 1]
    assert Halfspaces().erm(ends, [1, 0]).predict(ends).tolist() == [1, 0]
    law = Halfspaces()._law([0.0, 1.0], ends, np.array([0, 1]), Fraction(0))
    assert len({tuple(rule.predict(ends).tolist()) for rule, _ in law}) == 4
    rule = Hypothesis.from_dict(Halfspaces().erm(ends, [0, 1]).to_dict())
    assert rule.predict(ends).tolist() == [0, 1]
    wide = [[0.0, 1.0], [2.0, math.inf]]
    for call in (
        lambda: Halfspaces().n_dichotomies(wide),
        lambda: Halfspaces().erm(wide, [0, 1]),
        lambda: Halfspaces().choose([[0.0, 1.0]], wide, [0, 1], 1.0),
        lambda: Halfspace((1.0, 1.0), 0.0).predict(wide),
    ):
        with pytest.raises(InvalidData, match="row 1, column 1"):
            call()


def test_refusals() -> None:
    concept = Halfspaces()
    assert [concept.vc_dimension(columns) for columns in (1, 2, 3)] == [2, 3, 4]
    with pytest.raises(InvalidParameter):
        concept.vc_dimension(4)
    with pytest.raises(InvalidData, match="4 columns"):
        concept.n_dichotomies(np.zeros((2, 4)))
    with pytest.raises(InvalidData, match="missing value in row 0, column 1"):
        concept.erm([[0.0, math.nan]], [1])
    with pytest.raises(InvalidData, match="columns"):
        concept.choose([[0.0, 1.0]], [[0.0]], [1], 1.0)
    with pytest.raises(InvalidData, match="rows"):
        concept.choose([[0.0, 1.0]], [[0.0, 1.0]], [1, 0], 1.0)


@pytest.mark.claim("HALFSPACES")
def test_two_weights_that_vanish_at_once_are_no_failure() -> None:
    """A plane between these points used to divide 0 by 0, for some rows and not for others."""
    points = np.array([[0, 1e-9, 1e9], [1, 2e-9, 2e9], [2, 1e-9, 0], [2, 2e-9, 0]])
    rows = np.repeat(points[:1], 50, axis=0)
    rows[0, 2] += 1
    for _ in range(20):
        drawn = Halfspaces().choose(points, rows, np.zeros(50, dtype=int), 0.1)
        assert drawn.predict(points).shape == (4,)
