"""What the concept classes take, what they refuse, and how they say so."""

from __future__ import annotations

import datetime as dt
import json
import math
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cumae.concepts import (
    ConceptClass,
    FiniteClass,
    Halfspace,
    Halfspaces,
    Hypothesis,
    Intervals,
    IntervalUnion,
    Point,
    Points,
    Projection,
    Projections,
    Rectangle,
    Rectangles,
    Stump,
    Stumps,
    Threshold,
    Thresholds,
    Tree,
    TreeCuts,
    Trees,
    UnionOfIntervals,
    cuts_of,
)
from cumae.concepts.columns import cells_of
from cumae.errors import CumaeError, InvalidData, InvalidParameter

COLUMNS: list[ConceptClass] = [Points(), Thresholds(), Intervals(), UnionOfIntervals(2)]
TABLES: list[ConceptClass] = [
    Rectangles(),
    Halfspaces(),
    Stumps(),
    Trees(2),
    Projections([[1.0, 2.0]]),
]
columns = pytest.mark.parametrize("concept", COLUMNS, ids=repr)
tables = pytest.mark.parametrize("concept", TABLES, ids=repr)
every = pytest.mark.parametrize("concept", COLUMNS + TABLES, ids=repr)


def refuses(call: Callable[[], object], match: str, kind: type[CumaeError] = InvalidData) -> None:
    """The error is of the one tree, and carries no other with a value in its text."""
    with pytest.raises(kind, match=match) as caught:
        call()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


# Numbers are never rounded


@pytest.mark.parametrize(
    "X",
    [
        np.array([2**60 + i for i in range(4)], dtype=np.uint64),
        np.array([2**63 + i for i in range(4)], dtype=np.uint64),
        [2**63 + i for i in range(4)],
        [-1, 0, 2**63, 2**63 + 1],
        [2**70 + i for i in range(4)],
        np.array([np.int64(2**60 + i) for i in range(4)], dtype=object),
    ],
    ids=range(6),
)
@columns
def test_long_integers_are_exact(concept: ConceptClass, X: Any) -> None:
    y = [0, 0, 1, 0] if isinstance(concept, Points) else [0, 0, 1, 1]
    assert concept.erm(X, y).predict(X).tolist() == y
    assert concept.choose(X, X, y, math.inf).predict(X).tolist() == y
    assert concept.choose(list(X), X, y, math.inf).predict(X).tolist() == y


def test_integers_that_numpy_makes_floats_stay_distinct() -> None:
    assert Thresholds().n_dichotomies([2**63, 2**63 + 1, -1]) == 6


@pytest.mark.claim("CHOOSE")
@columns
def test_integers_and_floats_are_compared_exactly(concept: ConceptClass) -> None:
    """A score depends on the row alone: not on the type that other rows bring along."""
    whole = [2**53 - 1, 2**53 + 1]
    rule = concept.choose(whole, whole, [0, 1], math.inf)
    floats = [2.0**53 - 1, 2.0**53 + 2]
    assert rule.predict(floats).tolist() == rule.predict([2**53 - 1, 2**53 + 2]).tolist()
    points = [0.0, 2.0**53, 2.0**53 + 2, 2.0**53 + 4]
    for row in (2**53 + 1, 2**53 + 3):
        few = cells_of(points, [row], np.array([1]))
        many = cells_of(points, [row, 2**70], np.array([1, 1]))
        assert (many.gain - few.gain).tolist() == [0, 0, 0, 1]
    refuses(lambda: concept.erm([2**53 + 1, 0.5], [0, 1]), "row 0")


@tables
@pytest.mark.parametrize(
    "X",
    [
        [[0, 2**53 + 1]],
        [[0.5, 2**53 + 1]],
        [[0, 10**400]],
        np.array([[0, 2**53 + 1]]),
        np.array([[0, 2**64 - 1]], dtype=np.uint64),
        np.array([[0, np.int64(2**53 + 1)]], dtype=object),
    ],
    ids=range(6),
)
def test_tables_refuse_integers_that_floats_round(concept: ConceptClass, X: Any) -> None:
    refuses(lambda: concept.erm(X, [0]), "integer in row 0, column 1")


@tables
def test_tables_of_several_types(concept: ConceptClass) -> None:
    frame = pd.DataFrame({"age": [31, 2**53 + 1], "dose": [0.5, 1.5]})
    refuses(lambda: concept.erm(frame, [0, 1]), "integer in row 1, column age")
    nullable = pd.DataFrame({"age": pd.array([31, None], dtype="Int64"), "dose": [0.5, 1.5]})
    refuses(lambda: concept.erm(nullable, [0, 1]), "missing value in row 1, column age")
    fine = pd.DataFrame({"age": [31, 2**60], "ill": [True, False]})
    assert concept.erm(fine, [0, 1]).predict(fine).tolist() == [0, 1]


# What is refused


NO_NUMBERS: list[tuple[Any, str]] = [
    (np.array([["2020", "2021"]], dtype="datetime64[D]"), "convert them to numbers"),
    (np.array([[1, 2]], dtype="timedelta64[D]"), "convert them to numbers"),
    (np.array([["2020", "NaT"]], dtype="datetime64[D]"), "missing value in row 0, column 1"),
    (np.array([[1, 2j]]), "no number"),
    (np.ma.array([[1.0, 2.0]], mask=[[False, True]]), "missing value in row 0, column 1"),
    ([["1", "2"]], "no number"),
    (np.array([["1", "2"]]), "no number"),
    ([[1, "SECRET"]], "mixes strings and whole numbers"),
    (pd.DataFrame({"a": pd.Categorical([1], ordered=True), "b": [2]}), "cat.codes"),
    (np.array([[1, 2]], dtype=np.longdouble), "float64"),
    (np.array([[1, Decimal(2)]], dtype=object), "Decimal"),
    (np.ones((1, 1, 2)), "3 dimensions"),
    ([[[1.0, 2.0]]], "flat rows"),
]


@tables
@pytest.mark.parametrize(("X", "match"), NO_NUMBERS, ids=range(len(NO_NUMBERS)))
def test_tables_hold_numbers_only(concept: ConceptClass, X: Any, match: str) -> None:
    refuses(lambda: concept.erm(X, [0]), match)


NO_COLUMNS: list[tuple[Any, str]] = [
    ([1, "a"], "mixes strings and whole numbers"),
    ([1.5, "a"], "mixes numbers and strings"),
    ([1, dt.date(2026, 1, 1)], "mixes dates and whole numbers"),
    ([dt.date(2026, 1, 1), dt.datetime(2026, 1, 1)], "mixes dates and datetimes"),  # noqa: DTZ001
    ([np.datetime64("2026-01-01"), 5], "mixes datetime64 and whole numbers"),
    ([np.datetime64("2026-01-01"), np.datetime64("2026")], "units"),
    (pd.Series(["lo", "hi"], dtype="category"), "cat.codes"),
    (pd.Categorical(["lo", "hi"], ordered=True), "cat.codes"),
    (np.ma.array([1, 2], mask=[False, True]), "missing value in row 1"),
    (np.array([1j, 2]), "complex128"),
    (np.array([1, 2], dtype="timedelta64[D]"), "timedelta64"),
    (np.array([b"a", b"b"]), "S1"),
    ([b"a", b"b"], "bytes"),
    ([dt.timedelta(1), dt.timedelta(2)], "timedelta"),
    ([dt.time(1), dt.time(2)], "time"),
    ([Decimal(1), Decimal(2)], "Decimal"),
    ([Fraction(1), Fraction(2)], "Fraction"),
    (pd.Series(pd.period_range("2026-01", periods=2, freq="M")), "Period"),
    (pd.Series(pd.date_range("2026-01-01", periods=2, tz="Europe/Paris")), "Timestamp"),
    ([dt.datetime(2026, 1, d, tzinfo=dt.UTC) for d in (1, 2)], "time zone"),
    (pd.array([1, None], dtype="Int64"), "missing value in row 1"),
    (np.array([1, pd.NA], dtype=object), "missing value in row 1"),
    (["a", None], "missing value in row 1"),
    (np.array([1, 2], dtype=np.longdouble), "float64"),
]


@columns
@pytest.mark.parametrize(("X", "match"), NO_COLUMNS, ids=range(len(NO_COLUMNS)))
def test_columns_hold_one_type_that_can_be_stored(
    concept: ConceptClass, X: Any, match: str
) -> None:
    refuses(lambda: concept.erm(X, [0, 1]), match)
    refuses(lambda: concept.choose(X, [1, 2], [0, 1], 1.0), f"points.*{match}")


@columns
@pytest.mark.parametrize(
    ("points", "X", "match"),
    [
        (["a", "b"], [1.0], "X holds numbers, but points strings"),
        (["a"], [1.0], "X holds numbers, but points strings"),
        ([1, 2], ["a"], "X holds strings, but points numbers"),
        ([10**30, 2], np.array(["2026"], dtype="datetime64[ns]"), "datetime64.*numbers"),
        ([dt.date(2026, 1, 1)], np.array(["2026"], dtype="datetime64[D]"), "datetime64.*dates"),
        (
            np.array(["5000-01-01", "5000-02-01", "5000-02-02"], dtype="datetime64[D]"),
            np.array(["2026"], dtype="datetime64[ns]"),
            "too far away",
        ),
    ],
    ids=range(6),
)
def test_points_and_rows_of_different_types(
    concept: ConceptClass, points: Any, X: Any, match: str
) -> None:
    refuses(lambda: concept.choose(points, X, [0], 1.0), match)


@every
@pytest.mark.parametrize(
    "rows",
    [5, None, {1, 2}, {"a": 1}, (i for i in [1]), "abc", [[1, 2], [3]]],
    ids=lambda rows: type(rows).__name__,
)
def test_what_is_no_table(concept: ConceptClass, rows: Any) -> None:
    good = [1.0] if concept in COLUMNS else [[1.0, 2.0]]
    refuses(lambda: concept.erm(rows, [0]), "X of type")
    refuses(lambda: concept.choose(rows, good, [0], 1.0), "points of type")
    refuses(lambda: concept.choose(good, rows, [0], 1.0), "X of type")
    refuses(lambda: concept.n_dichotomies(rows), "X of type")
    refuses(lambda: concept.erm(good, rows), "y ")
    refuses(lambda: concept.n_candidates(rows), "of type")


def test_too_many_columns() -> None:
    for concept in (Rectangles(), Halfspaces()):
        refuses(lambda c=concept: c.erm([[1, 2, 3, 4]], [0]), "X has 4 columns")  # type: ignore[misc]
        refuses(lambda c=concept: c.n_dichotomies([[1, 2, 3, 4]]), "X has 4 columns")  # type: ignore[misc]
    refuses(
        lambda: Halfspaces().choose([[1.0, math.inf]], [[1.0, 2.0]], [0], 1.0), "points has an inf"
    )


def test_rules_refuse_rows_of_another_type() -> None:
    for rule in (Threshold(2.5), Point(2.5), IntervalUnion(((2.5, None),))):
        refuses(lambda r=rule: r.predict(["a"]), "X holds strings, but the hypothesis numbers")  # type: ignore[misc]
        assert rule.predict([]).tolist() == []
    assert Threshold(0.1).predict(np.array([0.1], dtype=np.float32)).tolist() == [1]
    assert Threshold(np.float32(0.1)).predict([0.1]).tolist() == [0]


# Labels and weights


@every
@pytest.mark.parametrize(
    "y",
    [
        [0, 1],
        [False, True],
        [0.0, 1.0],
        np.array([0, 1.0], dtype=object),
        np.array([False, np.int64(1)], dtype=object),
        pd.Series([0, 1]),
        [[0], [1]],
    ],
    ids=range(7),
)
def test_labels(concept: ConceptClass, y: Any) -> None:
    X: Any = [1.0, 2.0] if concept in COLUMNS else [[1.0, 5.0], [2.0, 7.0]]
    assert concept.erm(X, y).predict(X).tolist() == [0, 1]
    weights = [[1.0], [2.0]]
    assert concept.erm(X, y, weights).predict(X).tolist() == [0, 1]
    assert concept.erm(X, y, [1e308, 1e308]).predict(X).tolist() == [0, 1]
    assert concept.erm(X, y, [10**400, 1]).predict(X).tolist() == [0, 1]


@pytest.mark.parametrize("y", [[0, -1], [0, 2], [0, 0.5], [0, 10**30], ["0", "1"]], ids=repr)
def test_other_labels_are_refused(y: Any) -> None:
    refuses(lambda: Thresholds().erm([1, 2], y), "y has a label in row [01] that is neither")


def test_missing_labels_and_weights() -> None:
    gone: Any = [0, None]
    refuses(lambda: Thresholds().erm([1, 2], gone), "y has a missing value in row 1;")
    refuses(lambda: Thresholds().erm([1, 2], [0, 1], [1, math.nan]), "sample_weight.*row 1;")
    refuses(lambda: Thresholds().erm([1, 2], [0, 1], [1, math.inf]), "sample_weight.*row 1")
    refuses(lambda: Thresholds().erm([1, 2], [0, 1], ["a", "b"]), "sample_weight")


@every
def test_without_points_or_rows(concept: ConceptClass) -> None:
    X: Any = [1.0, 2.0] if concept in COLUMNS else [[1.0, 5.0], [2.0, 7.0]]
    for epsilon in (1.0, math.inf):
        drawn = concept.choose([], X, [0, 1], epsilon)
        assert drawn.predict(X).tolist() in ([0, 0], [1, 1])
        assert concept.choose(X, [], [], epsilon).predict([]).tolist() == []
        assert concept.choose([], [], [], epsilon).predict([]).tolist() == []
    assert concept.erm([], []).predict([]).tolist() == []
    assert concept.n_dichotomies([]) in (1, 2)
    strings = Thresholds().choose([], ["a"], [1], 1.0)
    assert strings.predict(["a"]).tolist() in ([0], [1])


@every
@pytest.mark.parametrize("epsilon", [1e16, 1e300, 1e308, math.inf])
def test_huge_epsilons_warn_of_nothing(concept: ConceptClass, epsilon: float) -> None:
    X: Any = [1.0, 2.0] if concept in COLUMNS else [[1.0, 5.0], [2.0, 7.0]]
    if epsilon < math.inf and not concept.weight_error(2, epsilon / 2) <= 0.5:
        refuses(lambda: concept.choose(X, X, [0, 1], epsilon), "too large", InvalidParameter)
    else:
        assert concept.choose(X, X, [0, 1], epsilon).predict(X).tolist() == [0, 1]


# Unions of more intervals than points


@pytest.mark.claim("INTERVALS")
def test_no_more_intervals_than_points_allow() -> None:
    many, x, y = UnionOfIntervals(10**9), [1, 2, 3, 4, 5], [1, 0, 1, 0, 1]
    assert many.n_dichotomies(x) == 32
    assert many.erm(x, y).predict(x).tolist() == y
    assert many.choose(x, x, y, 100.0).predict(x).tolist() == y
    assert many._rate(1.0, 5) == UnionOfIntervals(3)._rate(1.0, 5)
    assert many._rate(1.0, 10**6, 5) == UnionOfIntervals(3)._rate(1.0, 10**6)
    labels = np.array(y)
    law, few = (c._law(x, x, labels, 0.5) for c in (many, UnionOfIntervals(3)))
    assert law == few
    assert len(law) == 32
    assert sum(chance for _, chance in law) == pytest.approx(1)


# Hypotheses


BAD_HYPOTHESES: list[Callable[[], object]] = [
    lambda: Threshold(math.nan),
    lambda: Threshold(np.datetime64("NaT")),
    lambda: Threshold(b"a"),
    lambda: Threshold([1]),
    lambda: Threshold(dt.datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Paris"))),
    lambda: Threshold(1, above=2),  # type: ignore[arg-type]
    lambda: Point(math.nan),
    lambda: Point({}),
    lambda: IntervalUnion(((1, math.nan),)),
    lambda: IntervalUnion(((1,),)),  # type: ignore[arg-type]
    lambda: IntervalUnion([(1, 2)]),  # type: ignore[arg-type]
    lambda: IntervalUnion(5),  # type: ignore[arg-type]
    lambda: Stump(-1, 1.0),
    lambda: Stump(1.5, 1.0),  # type: ignore[arg-type]
    lambda: Stump(0, math.nan),
    lambda: Stump(0, "a"),  # type: ignore[arg-type]
    lambda: Stump(0, 10**400),
    lambda: Stump(0, 1.0, above="no"),  # type: ignore[arg-type]
    lambda: Tree((0,), (1.0,), (0, 2)),
    lambda: Tree((0,), (1.0,), (0, 1, 1)),
    lambda: Tree((0, 1), (1.0, 2.0), (0, 1, 1)),
    lambda: Tree((0,), (math.nan,), (0, 1)),
    lambda: Tree((-1,), (1.0,), (0, 1)),
    lambda: Tree((), (), ()),
    lambda: Tree([0], [1.0], [0, 1]),  # type: ignore[arg-type]
    lambda: Projection((0.0, 0.0), 1.0),
    lambda: Projection((), 1.0),
    lambda: Projection((math.inf,), 1.0),
    lambda: Projection((1.0,), math.nan),
    lambda: Projection(1.0, 1.0),  # type: ignore[arg-type]
    lambda: Rectangle((1.0,), (2.0, 3.0)),
    lambda: Rectangle((math.nan,), (2.0,)),
    lambda: Rectangle(1.0, 2.0),  # type: ignore[arg-type]
    lambda: Halfspace(1, 2),  # type: ignore[arg-type]
    lambda: Halfspace((), 2),
    lambda: Halfspace((1.0,), math.nan),
    lambda: Halfspace((1.0, 2.0), math.inf),
    lambda: Halfspace((math.inf,), 1.0),
    lambda: Halfspace(("a",), 1.0),  # type: ignore[arg-type]
    lambda: FiniteClass([1, 2]),  # type: ignore[list-item]
    lambda: FiniteClass(5),  # type: ignore[arg-type]
    lambda: FiniteClass(iter([])),
    lambda: Projections([["a"]]),
    lambda: Projections([[1], [1, 2]]),
    lambda: Projections(["12"]),
    lambda: Projections([1.0, 2.0]),
    lambda: TreeCuts([1, 2], 2),  # type: ignore[list-item]
    lambda: TreeCuts([("a", "b")], 2),  # type: ignore[list-item]
    lambda: TreeCuts(5, 2),  # type: ignore[arg-type]
    lambda: Hypothesis.from_dict(None),
    lambda: Hypothesis.from_dict([]),
    lambda: Hypothesis.from_dict({}),
    lambda: Hypothesis.from_dict({"kind": []}),
    lambda: Hypothesis.from_dict({"kind": "Threshold"}),
    lambda: Hypothesis.from_dict({"kind": "Threshold", "cut": {"odd": "1"}, "above": True}),
    lambda: Hypothesis.from_dict({"kind": "Threshold", "cut": {}, "above": True}),
    lambda: Hypothesis.from_dict({"kind": "Threshold", "cut": {"date": "x"}, "above": True}),
    lambda: Hypothesis.from_dict({"kind": "Threshold", "cut": 1, "above": "no"}),
    lambda: Hypothesis.from_dict({"kind": "IntervalUnion", "intervals": [1]}),
    lambda: Hypothesis.from_dict({"kind": "Stump", "column": "x", "cut": 1, "above": True}),
    lambda: Hypothesis.from_dict({"kind": "Tree", "columns": None, "cuts": [], "labels": []}),
    lambda: Hypothesis.from_dict({"kind": "Rectangle", "lows": 1, "highs": [2]}),
    lambda: Hypothesis.from_dict({"kind": "Halfspace", "normal": ["x"], "offset": 1.0}),
    lambda: Hypothesis.from_dict({"kind": "Projection", "direction": 1, "cut": 1, "above": True}),
]


@pytest.mark.parametrize("call", BAD_HYPOTHESES, ids=range(len(BAD_HYPOTHESES)))
def test_bad_hypotheses(call: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        call()


STORED: list[tuple[Hypothesis, str]] = [
    (Threshold(dt.date(2026, 1, 5)), "label 1 from 2026-01-05 on, else 0"),
    (
        Threshold(dt.datetime(2026, 1, 5, 7), above=False),  # noqa: DTZ001
        "label 1 below 2026-01-05T07:00:00, else 0",
    ),
    (Threshold(np.datetime64("2026-01-05")), "label 1 from 2026-01-05 on, else 0"),
    (Threshold(math.inf), "label 1 from inf on, else 0"),
    (Threshold("m"), "label 1 from 'm' on, else 0"),
    (Threshold(16**25), "label 1 from 0x1" + "0" * 25 + " on, else 0"),
    (Point(np.float64(0.5)), "label 1 at 0.5, else 0"),
    (IntervalUnion(((None, None),)), "label 1 everywhere"),
    (IntervalUnion(), "label 0 everywhere"),
    (
        IntervalUnion(((None, dt.date(2026, 1, 5)),)),
        "label 1 in (..., 2026-01-05), else 0",
    ),
    (Stump(0, math.inf), "label 1 where column 0 is at least inf, else 0"),
    (Rectangle((math.inf,), (None,)), "label 1 where inf <= column 0, else 0"),
    (Tree((0,), (math.inf,), (0, 1)), "if column 0 >= inf: 1\nelse: 0"),
    (Halfspace((1.0,), math.inf), "label 1 where 1.0 x0 >= inf, else 0"),
    (Projection((2, 0), 1.5), "label 1 where 2 x0 is at least 1.5, else 0"),
]


@pytest.mark.parametrize(("rule", "text"), STORED, ids=[text for _, text in STORED])
def test_rules_print_plainly_and_survive_json(rule: Hypothesis, text: str) -> None:
    assert str(rule) == text
    assert Hypothesis.from_dict(json.loads(json.dumps(rule.to_dict()))) == rule


def test_integers_of_thousands_of_digits() -> None:
    long = 10**5000
    x: Any = [long, long + 2, long + 4]
    for concept in COLUMNS:
        rule = concept.erm(x, [0, 1, 0])
        assert "0x" in str(rule)
        assert "0x" in repr(rule)
        again = Hypothesis.from_dict(json.loads(json.dumps(rule.to_dict())))
        assert again.predict(x).tolist() == rule.predict(x).tolist()


# Objects


def test_nothing_that_holds_rows_prints_them() -> None:
    rows = TreeCuts.of([[1.0], [2.0]]).bin([[12345.0], [1.0]])
    assert repr(rows) == "BinnedRows(2 rows, 1 cuts)"
    x = np.array([12345.0, 1.0])
    cells = cells_of(x, x, np.array([0, 1]))
    for shown in (cells, cells.points, Rectangles()._grid(x, x, np.array([1, 1]))):
        assert "12345" not in repr(shown)
        assert "array" not in repr(shown)


def test_classes_are_equal_by_their_parameters() -> None:
    alike: list[Callable[[], ConceptClass]] = [
        Points,
        Thresholds,
        lambda: Thresholds("above"),
        Intervals,
        lambda: UnionOfIntervals(2),
        Rectangles,
        Halfspaces,
        Stumps,
        lambda: Trees(2),
        lambda: Trees(2, max_cuts=3),
        lambda: Projections([[1, 2]]),
        lambda: FiniteClass([Threshold(1)]),
        lambda: FiniteClass((Threshold(c) for c in (1, 2)), domain=np.arange(3)),
    ]
    for i, make in enumerate(alike):
        for j, other in enumerate(alike):
            assert (make() == other()) == (i == j)
        assert hash(make()) == hash(make())


def test_finite_classes_say_which_prediction_is_wrong() -> None:
    class Odd:
        def __init__(self, found: Any) -> None:
            self.found = found

        def predict(self, X: Any) -> Any:
            return self.found

    def tried(found: Any) -> Callable[[], object]:
        return lambda: FiniteClass([Threshold(1), Odd(found)]).erm([1, 2], [0, 1])

    refuses(tried([0, 2]), "prediction of hypothesis 1 has a label in row 1")
    refuses(tried([0]), "hypothesis 1 predicts 1 labels of 2 rows")
    refuses(tried(None), "prediction of hypothesis 1")
    refuses(lambda: FiniteClass([Odd([0])], domain=5), "domain")


def test_cuts_of_bad_points() -> None:
    refuses(lambda: cuts_of([["a"]]), "points holds")
    refuses(lambda: Trees(1).choose([[math.nan]], [[1.0]], [1], 1.0), "points has a missing")
    refuses(lambda: Trees(1).erm([[math.nan]], [1]), "X has a missing")


@pytest.mark.parametrize("concept", [Thresholds(), Stumps()])
def test_lists_of_time_spans_are_refused(concept: ConceptClass) -> None:
    spans = [[np.timedelta64(1, "D")], [np.timedelta64(1, "h")]]
    with pytest.raises(InvalidData, match="timedelta"):
        concept.n_dichotomies(spans)
