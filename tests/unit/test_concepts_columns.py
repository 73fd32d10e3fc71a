"""Classes over one ordered column, and finite lists, against brute force."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cumae.concepts import (
    ConceptClass,
    FiniteClass,
    Hypothesis,
    Intervals,
    Point,
    Points,
    Projections,
    Rectangles,
    Stumps,
    Threshold,
    Thresholds,
    Trees,
    UnionOfIntervals,
)
from cumae.concepts import intervals as plain_intervals
from cumae.concepts.columns import cells_of, middle
from cumae.concepts.kernels import intervals as kernel
from cumae.concepts.kernels import sums
from cumae.concepts.kernels.sums import powers
from cumae.errors import CumaeError, InvalidData, InvalidParameter
from cumae.randomness import SYSTEM
from tests.statistics import chi_square_rejects

pytestmark = [pytest.mark.claim("CHOOSE"), pytest.mark.claim("INTERVALS")]

Labelling = tuple[int, ...]
NAN = math.nan


def runs(labels: Labelling) -> int:
    return sum(a == 1 and b == 0 for a, b in itertools.pairwise((*labels, 0)))


def changes(labels: Labelling) -> int:
    return sum(a != b for a, b in itertools.pairwise(labels))


def is_point(labels: Labelling) -> bool:
    return sum(labels) <= 1


def is_threshold(labels: Labelling) -> bool:
    return changes(labels) <= 1


def is_rising(labels: Labelling) -> bool:
    return list(labels) == sorted(labels)


def is_falling(labels: Labelling) -> bool:
    return list(labels) == sorted(labels, reverse=True)


CLASSES: list[tuple[ConceptClass, Callable[[Labelling], bool]]] = [
    (Points(), is_point),
    (Thresholds(), is_threshold),
    (Thresholds("above"), is_rising),
    (Thresholds("below"), is_falling),
    (Intervals(), lambda labels: runs(labels) <= 1),
    (UnionOfIntervals(1), lambda labels: runs(labels) <= 1),
    (UnionOfIntervals(2), lambda labels: runs(labels) <= 2),
    (UnionOfIntervals(3), lambda labels: runs(labels) <= 3),
]
classes = pytest.mark.parametrize(("concept", "allowed"), CLASSES, ids=lambda c: repr(c)[:24])


def labellings(points: list[Any], allowed: Callable[[Labelling], bool]) -> set[Labelling]:
    """All labellings of the rows that the class allows, by trying every one."""
    distinct = sorted(set(points))
    found = set()
    for labels in itertools.product((0, 1), repeat=len(distinct)):
        if allowed(labels):
            label = dict(zip(distinct, labels, strict=True))
            found.add(tuple(label[point] for point in points))
    return found


def law_of(
    concept: ConceptClass, points: Any, X: Any, y: Any, rate: float
) -> list[tuple[Hypothesis, float]]:
    """The law that the class draws with: its own stages, or its integer levels."""
    if isinstance(concept, UnionOfIntervals):
        return concept._law(points, X, np.asarray(y, dtype=np.int64), rate)
    if isinstance(concept, Thresholds):
        cells = cells_of(points, X, np.asarray(y, dtype=np.int64))
        scores = concept._scores(cells)
        candidates: list[Hypothesis] = [concept._hypothesis(cells, i) for i in range(len(scores))]
    else:
        from cumae.concepts.points import _point, _scores

        values, scores = _scores(points, X, np.asarray(y), np.ones(len(y), dtype=np.int64))
        candidates = [_point(values, i) for i in range(len(scores))]
    weights = np.exp(rate * (scores - scores.max()).astype(float))
    return list(zip(candidates, weights / weights.sum(), strict=True))


small = st.integers(0, 8).map(float)
tables = st.lists(st.tuples(small, st.integers(0, 1)), max_size=7)


@classes
@settings(max_examples=60)
@given(rows=tables)
@example(rows=[])
@example(rows=[(1.0, 1)])
@example(rows=[(2.0, 0), (2.0, 1)])
def test_counts_and_candidates_are_the_labellings(
    concept: ConceptClass, allowed: Callable[[Labelling], bool], rows: list[tuple[float, int]]
) -> None:
    """n_dichotomies, and one candidate for each labelling that the class allows."""
    points = [x for x, _ in rows]
    y = [label for _, label in rows]
    expected = labellings(points, allowed)
    assert concept.n_dichotomies(points) == len(expected)
    drawn = [tuple(h.predict(points).tolist()) for h, _ in law_of(concept, points, points, y, 0.5)]
    assert len(drawn) == len(expected)
    assert set(drawn) == expected


@classes
@settings(max_examples=60)
@given(
    points=st.lists(small, max_size=6),
    rows=tables,
    rate=st.sampled_from([0.0, 0.01, 0.7, 5.0, 400.0]),
)
@example(points=[math.inf, -math.inf, 0.0], rows=[(math.inf, 1), (-math.inf, 0)], rate=1.0)
def test_the_law_is_the_exponential_mechanism(
    concept: ConceptClass,
    allowed: Callable[[Labelling], bool],
    points: list[float],
    rows: list[tuple[float, int]],
    rate: float,
) -> None:
    """The full probability vector, to 1e-9, against scores of the hypotheses' own predictions."""
    x, y = np.array([x for x, _ in rows]), np.array([label for _, label in rows], dtype=int)
    law = law_of(concept, points, x, y, rate)
    scores = np.array([(h.predict(x) == y).sum() for h, _ in law], dtype=float)
    weights = np.exp(rate * (scores - scores.max()))
    assert np.allclose([p for _, p in law], weights / weights.sum(), rtol=0, atol=1e-9)
    assert len({tuple(h.predict(points).tolist()) for h, _ in law}) == len(law)


@classes
@settings(max_examples=60)
@given(
    rows=st.lists(
        st.tuples(small, st.integers(0, 1), st.floats(-3, 3, allow_subnormal=False)), max_size=7
    ),
    huge=st.booleans(),
)
def test_erm_is_exact_with_weights_of_either_sign(
    concept: ConceptClass,
    allowed: Callable[[Labelling], bool],
    rows: list[tuple[float, int, float]],
    huge: bool,
) -> None:
    """Best over all labellings, in exact fractions, also where 64 bits overflow."""
    x, y = [x for x, _, _ in rows], [label for _, label, _ in rows]
    scale = 1e200 if huge else 1.0
    weights = [w * scale for _, _, w in rows]

    def value(labels: Labelling) -> Fraction:
        return sum(
            (Fraction(w) for w, a, b in zip(weights, labels, y, strict=True) if a == b), Fraction()
        )

    found = concept.erm(x, y, weights)
    best = max(value(labels) for labels in labellings(x, allowed))
    assert value(tuple(found.predict(x).tolist())) == best


@classes
def test_draws_follow_the_law(concept: ConceptClass, allowed: Callable[[Labelling], bool]) -> None:
    """Planted: a labelling counted twice is noticed. Rejects correct code at ``alarm_rate()``."""
    x = np.array([1.0, 2.0, 2.0, 5.0, 7.0, 8.0])
    y = np.array([0, 1, 0, 1, 1, 0])
    law = law_of(concept, x, x, y, 1.5)  # peaked, so that few draws tell
    place = {tuple(h.predict(x).tolist()): i for i, (h, _) in enumerate(law)}
    drawn = [
        place[tuple(concept.choose(x, x, y, epsilon=3.0).predict(x).tolist())] for _ in range(2000)
    ]
    counts = np.bincount(drawn, minlength=len(law))
    p = np.array([chance for _, chance in law])
    assert not chi_square_rejects(counts, p / p.sum(), checks=8)
    p[np.argmax(p)] *= 2
    assert chi_square_rejects(counts, p / p.sum(), checks=0)


@classes
@settings(max_examples=40)
@given(points=st.lists(small, min_size=1, max_size=7))
def test_k_is_two(
    concept: ConceptClass, allowed: Callable[[Labelling], bool], points: list[float]
) -> None:
    """A new point splits each labelling of the others into one or two, which disagree on it."""
    assert concept.label_boost_k == 2
    others, everything = labellings(points[:-1], allowed), labellings(points, allowed)
    for z in others:
        extended = [labels for labels in everything if labels[:-1] == z]
        assert 1 <= len(extended) <= 2


@classes
@pytest.mark.parametrize("epsilon", [0.0, math.inf])
def test_edges_of_epsilon(
    concept: ConceptClass, allowed: Callable[[Labelling], bool], epsilon: float
) -> None:
    x, y = [3.0, 1.0, 4.0, 1.0, 5.0], [1, 0, 0, 0, 1]
    drawn = {tuple(concept.choose(x, x, y, epsilon).predict(x).tolist()) for _ in range(600)}
    everything = labellings(x, allowed)
    scores = {z: sum(a == b for a, b in zip(z, y, strict=True)) for z in everything}
    best = {z for z in everything if scores[z] == max(scores.values())}
    assert drawn == (best if epsilon else drawn & everything)
    assert len(drawn) > 1 or epsilon


ORDERED: list[Any] = [
    np.array(["ann", "bob", "cy", "dee"]),
    np.array([10**30, 10**30 + 1, 10**31, -(10**40)], dtype=object),
    np.array(["2026-01-01", "2026-03-01", "2026-02-01", "2025-12-31"], dtype="datetime64[D]"),
    [dt.date(2026, 1, day) for day in (5, 2, 9, 1)],
    np.array([2**63 - 1, -(2**63), 0, 1]),
    np.array([0, 2**64 - 1, 2**63, 1], dtype=np.uint64),
    np.array([True, False, True, False]),
    pd.Series([1.5, -2.0, math.inf, -math.inf], name="dose"),
    pd.DataFrame({"age": [31, 64, 17, 99]}),
    np.array([[1.0], [2.0], [np.nextafter(2.0, 3)], [5e-324]]),
]


@pytest.mark.parametrize("column", ORDERED, ids=range(len(ORDERED)))
@classes
def test_any_ordered_column(
    concept: ConceptClass, allowed: Callable[[Labelling], bool], column: Any
) -> None:
    """Strings, dates and long integers are only compared; hypotheses survive JSON."""
    y = [0, 1, 1, 0]
    for h in (concept.erm(column, y), concept.choose(column, column, y, 2.0)):
        assert set(h.predict(column).tolist()) <= {0, 1}
        again = Hypothesis.from_dict(json.loads(json.dumps(h.to_dict())))
        assert again.predict(column).tolist() == h.predict(column).tolist()
        assert str(again).startswith("label")
    values = np.asarray(column).ravel().tolist()
    assert concept.n_dichotomies(column) == len(labellings(values, allowed))
    drawn = {tuple(concept.choose(column, column, y, 0.5).predict(column)) for _ in range(150)}
    assert drawn <= labellings(values, allowed)


def test_the_fast_path_agrees_with_the_general_one() -> None:
    generator = np.random.default_rng(4)
    x = generator.integers(0, 400, 3000) / 7
    y = generator.integers(0, 2, 3000)
    fast, general = cells_of(x, x, y), cells_of(x.copy(), x, y)
    assert np.array_equal(fast.points[:], general.points[:])
    assert np.array_equal(fast.gain, general.gain)
    assert fast.base == general.base


@pytest.mark.parametrize("states", [3, 5, 11])
@pytest.mark.parametrize("rate", [0.0, 0.3, 20.0])
def test_kernels_agree_with_their_plain_form(states: int, rate: float) -> None:
    gain = np.random.default_rng(2).integers(-4, 5, 3000)
    best, rest, *_ = kernel.forward(gain, states, powers(rate, int(np.abs(gain).sum())))
    with np.errstate(divide="ignore"):
        logs = rate * best[-1] + np.log(rest[-1])
    assert np.allclose(logs, plain_intervals.forward(gain, states, rate), rtol=1e-12, atol=1e-9)
    assert np.array_equal(kernel.best_runs(gain, states), plain_intervals.best_runs(gain, states))


@pytest.mark.parametrize("concept", [Intervals(), UnionOfIntervals(1)])
def test_blocks_change_nothing(concept: UnionOfIntervals) -> None:
    """Several blocks of cells: right ends have the weights that a plain double loop gives."""
    generator = np.random.default_rng(8)
    x = np.arange(2500.0)
    y = generator.integers(0, 2, 2500)
    gain = np.where(y == 1, 1, -1)
    before = np.append(0, np.cumsum(gain))
    rate = 0.2
    sums = plain_intervals._IntervalSums(cells_of(x, x, y), rate, len(y))
    for last in (0, 1023, 1024, 2499):
        weights = np.logaddexp.reduce(rate * (before[last + 1] - before[: last + 1]))
        best, rest = sums.right_in(last // 1024)
        assert rate * best[last % 1024] + np.log(rest[last % 1024]) == pytest.approx(weights)
    drawn = concept.choose(x, x, y, 1.0)
    assert drawn.predict(x).shape == (2500,)


@pytest.mark.parametrize("rate", [0.0, 0.05, 3.0])
@pytest.mark.parametrize("last", [0, 700, 1023, 1024, 2100, 2499])
def test_entries_of_unions_cross_blocks(rate: float, last: int) -> None:
    """Where a state was entered weighs what a plain sum over all cells says, in every block."""
    x = np.arange(2500.0)
    y = np.random.default_rng(9).integers(0, 2, 2500)
    gain = np.where(y == 1, 1, -1)
    sums = plain_intervals._Sums(cells_of(x, x, y), 5, rate, len(y))
    logs = np.full((last + 1, 5), -np.inf)  # by [i, s]: all labellings of i cells with s changes
    logs[0, 0] = 0.0
    for i in range(last):
        logs[i + 1] = np.logaddexp(logs[i], np.append(-np.inf, logs[i, :-1]))
        logs[i + 1, 1::2] += rate * gain[i]
    before = np.append(0, np.cumsum(gain))
    for state in range(1, 5):
        (best, rest), rescan = sums.entries(state, last)
        parts = [rescan(block) for block in range(len(best))]
        expected = logs[:, state - 1] - rate * (state % 2) * before[: last + 1]
        with np.errstate(divide="ignore"):
            cells = [rate * b + np.log(r) for b, r in parts]
            starts = before[::1024][: len(best)] * (state % 2)
            inside = np.concatenate([c - rate * s for c, s in zip(cells, starts, strict=True)])
            blocks = rate * best + np.log(rest)
        assert np.allclose(inside, expected, rtol=1e-11, atol=1e-8)
        for block, cell in enumerate(np.array_split(expected, range(1024, last + 1, 1024))):
            assert blocks[block] == pytest.approx(np.logaddexp.reduce(cell), rel=1e-11, abs=1e-8)


def test_far_scores_are_drawn_by_rejection_exactly() -> None:
    """Scores below a narrow window come up as often as their weights say."""
    counts = np.zeros(2001, dtype=np.int64)
    counts[[0, 3, 1990, 2000]] = [30, 20, 2, 1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "WINDOW", Fraction(5, 500))  # 5 scores at this rate
        drawn = [sums.draw_score(counts, Fraction(1, 500), SYSTEM) for _ in range(2000)]
    weights = counts * np.exp((np.arange(2001) - 2000) / 500)
    keep = counts > 0
    observed = np.bincount(drawn, minlength=2001)[keep]
    assert not chi_square_rejects(observed, weights[keep] / weights.sum())


def test_middles() -> None:
    def cut(low: Any, high: Any, kind: Any = None) -> Any:
        return middle(np.array([low], dtype=kind), np.array([high], dtype=kind))[0]

    assert cut(1.0, 2.0) == 1.5
    assert cut(1.0, np.nextafter(1.0, 2)) == np.nextafter(1.0, 2)
    assert cut(-math.inf, 3.0) == 3.0
    assert cut(3.0, math.inf) == math.inf
    assert cut(-math.inf, math.inf) == math.inf
    assert cut(-1.7e308, 1.7e308) == 0
    assert cut(4, 5) == 5
    assert cut(-(2**63), 2**63 - 1) == 0
    assert cut("a", "c") == "c"
    assert cut(10**30, 10**30 + 10, object) == 10**30 + 5


@pytest.mark.parametrize("gone", [NAN, None, np.datetime64("NaT")])
@classes
def test_missing_values_name_their_row_and_column(
    concept: ConceptClass, allowed: Callable[[Labelling], bool], gone: Any
) -> None:
    table = pd.DataFrame({"age": pd.Series([1, 2, gone], dtype=object)})
    with pytest.raises(InvalidData, match="row 2, column age"):
        concept.erm(table, [0, 1, 1])
    with pytest.raises(InvalidData, match="row 2, column age"):
        concept.n_dichotomies(table)


BAD: list[Callable[[], object]] = [
    lambda: Thresholds("up"),
    lambda: UnionOfIntervals(0),
    lambda: Thresholds().erm([1, 2], [0]),
    lambda: Thresholds().erm([1, 2], [0, 2]),
    lambda: Thresholds().erm([1, 2], [0, -1]),
    lambda: Thresholds().erm([1, 2], ["a", "b"]),
    lambda: Thresholds().erm([[1, 2], [3, 4]], [0, 1]),
    lambda: Thresholds().erm(np.array([1, "a"], dtype=object), [0, 1]),
    lambda: Thresholds().erm([1, 2], [0, 1], [1.0]),
    lambda: Thresholds().erm([1, 2], [0, 1], [1.0, NAN]),
    lambda: Thresholds().choose(["a"], [1.0], [0], 1.0),
    lambda: Thresholds().choose([1.0], [1.0], [0], -1.0),
    lambda: Thresholds().choose([1.0], [1.0], [0], NAN),
    lambda: Thresholds().vc_dimension(2),
    lambda: FiniteClass([]),
    lambda: Hypothesis.from_dict({"kind": "Nonsense"}),
]


@pytest.mark.parametrize("call", BAD, ids=range(len(BAD)))
def test_bad_input_raises_from_the_one_tree(call: Callable[[], object]) -> None:
    with pytest.raises(CumaeError):
        call()


def test_vc_dimensions() -> None:
    """Against shattering by brute force."""
    for concept, allowed in CLASSES:
        dimension = concept.vc_dimension(1)
        for size in (dimension, dimension + 1):
            shattered = len(labellings(list(range(size)), allowed)) == 2**size
            assert shattered == (size == dimension)


def test_large_counts_are_exact_integers() -> None:
    x = np.arange(5000)
    assert UnionOfIntervals(5).n_dichotomies(x) == sum(math.comb(5000, s) for s in range(11))
    assert Intervals().n_dichotomies(np.arange(10**6)) == 10**6 * (10**6 + 1) // 2 + 1


# Finite classes


def test_finite_class() -> None:
    rules = FiniteClass([Threshold(c) for c in (1, 2, 3, 9)] + [Point(2)], domain=range(5))
    assert rules.n_dichotomies([0, 2]) == 3 - 1
    assert rules.n_dichotomies([]) == 1
    assert rules.vc_dimension() == 2  # 2 and 3 are shattered
    assert FiniteClass([Threshold(c) for c in range(9)]).vc_dimension() == 3
    assert rules.erm([0, 1, 2], [0, 0, 1]) == Threshold(2)
    assert rules.erm([0, 1, 2], [0, 0, 1], [0, 0, -1]) == Threshold(3)
    drawn = {rules.choose([0, 2, 4], [2, 4], [1, 0], math.inf) for _ in range(30)}
    assert drawn == {Point(2)}


def test_finite_class_draws_by_the_law() -> None:
    """Rejects correct code at ``alarm_rate()``; planted: every hypothesis instead of one each."""
    rules = FiniteClass([Threshold(1), Threshold(1.5), Threshold(2), Threshold(None)])
    x, y = [1, 2, 3], [0, 1, 1]
    drawn = [rules.hypotheses.index(rules.choose(x, x, y, 2.0)) for _ in range(4000)]
    weights = np.exp([2.0, 3.0, -np.inf, 1.0])
    counts = np.bincount(drawn, minlength=4)
    assert not chi_square_rejects(counts, weights / weights.sum())
    doubled = weights + np.exp([-np.inf, -np.inf, 3.0, -np.inf])
    assert chi_square_rejects(counts, doubled / doubled.sum(), checks=0)


def test_the_charge_for_float_sums_is_small_and_reaches_the_rate() -> None:
    """Intervals run a hair below epsilon; thresholds, which are exact, at epsilon itself."""
    assert Thresholds()._rate(1.0, 10**6) == Fraction(1, 2)
    rate = Intervals()._rate(1.0, 10**6)
    assert Fraction(1, 2) - Fraction(1, 10**6) < rate < Fraction(1, 2)
    assert Intervals()._rate(1e-12, 10**6) == 0


@pytest.mark.claim("CHOOSE", "BOOST")
@pytest.mark.parametrize("concept", [Intervals(), UnionOfIntervals(3), Rectangles(), Trees(2)])
@pytest.mark.parametrize("rows", [0, 1, 7, 10**3, 10**6, 10**12])
def test_one_row_more_costs_epsilon_too_errors_of_weights_included(
    concept: ConceptClass, rows: int
) -> None:
    """The rate falls with the rows; over all scores that is a range of losses of its own."""
    points = 7
    for power in range(-48, 40):
        epsilon = 2.0**power
        rates: list[Any] = []
        errors: list[float] = []
        try:
            for size in (rows, rows + 1):
                rate = concept._rate(epsilon, max(size, points), points)
                h = concept.weight_error(max(size, points), epsilon / 2, points)
                rates.append(rate)
                errors.append(math.log1p(h) - math.log1p(-h) if rate > 0 else 0.0)
        except InvalidParameter:
            continue  # too large for so many rows
        scores = rows * abs(rates[0] - rates[1]) + rates[1]
        assert float(scores) + sum(errors) <= epsilon * (1 + 1e-12)
        assert 2 * max(rates) + 2 * Fraction(max(errors)) <= epsilon  # a replaced row


@pytest.mark.parametrize(
    "concept", [Thresholds("above"), Intervals(), UnionOfIntervals(2), Points()], ids=repr
)
def test_candidates_do_not_depend_on_the_type_of_the_rows(concept: ConceptClass) -> None:
    """One private row of another type once moved every cut."""
    points = [31, 44, 2**53, 2**53 + 1]
    rows: list[Any] = [[1, 2, 3], [1, 2, 3.5], [1, 2, 2**63], [1, 2, 2**70], [True, False, True]]
    drawn = []
    for X in rows:
        hypotheses = {str(concept.choose(points, X, [0, 1, 1], 0.0)) for _ in range(400)}
        drawn.append(hypotheses)
    assert all(found == drawn[0] for found in drawn)
    assert len(drawn[0]) == concept.n_candidates(points)


def test_dates_of_another_unit_do_not_move_the_cuts() -> None:
    points = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
    rows = np.array(["2020-01-01T12", "2020-01-05T01"], dtype="datetime64[h]")
    cuts = {str(Thresholds("above").choose(points, rows, [0, 1], 0.0)) for _ in range(60)}
    assert any("2020-01-02 on" in cut for cut in cuts)
    assert not any("T12" in cut for cut in cuts)


def test_errors_carry_no_value_of_a_cell() -> None:
    calls: list[Callable[[], object]] = [
        lambda: Stumps().choose([[1.0]], np.array([["SECRET"]], dtype=object), [0], 1.0),
        lambda: Thresholds().choose([1, 2], np.array([1, "SECRET"], dtype=object), [0, 1], 1.0),
        lambda: Stumps().choose([[1.0]], np.array([[10**400]], dtype=object), [0], 1.0),
    ]
    for call in calls:
        with pytest.raises(InvalidData) as caught:
            call()
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def test_extreme_epsilons() -> None:
    for epsilon in (5e-324, 1e-300):
        Intervals().choose([1.0, 2.0], [1.0], [1], epsilon)
        Rectangles().choose([[1.0], [2.0]], [[1.0]], [1], epsilon)
    with pytest.raises(CumaeError, match="too large"):
        Intervals().choose([1.0, 2.0], [1.0], [1], 1e17)


def test_projections_that_cancel_are_zero() -> None:
    rule = Projections([[2.0, -2.0]])
    rule.choose([[0.0, 0.0]], [[1e308, 1e308]], [1], 1.0)
