"""Ordered values: rules over keys, votes, storing, and predictors that carry them to the end."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cumae
from cumae import (
    Budget,
    EverlastingPredictor,
    GenericBBL,
    GenericLearner,
    PrivateBooster,
    PrivateLearner,
    QueryRelease,
    SemiPrivateLearner,
)
from cumae.concepts import (
    ConceptClass,
    Hypothesis,
    Intervals,
    Keyed,
    KeyRuns,
    Points,
    Rectangles,
    Thresholds,
    UnionOfIntervals,
)
from cumae.ensembles.voters.slots import slot_form
from cumae.ensembles.voters.stacking import stack, voters_from_arrays
from cumae.errors import InvalidData, InvalidParameter
from cumae.predictors.everlasting.margins import MarginTrainer

pytestmark = pytest.mark.claim("KEYS")

CLASSES: list[ConceptClass] = [
    Points(),
    Thresholds(),
    Thresholds("above"),
    Intervals(),
    UnionOfIntervals(2),
]
classes = pytest.mark.parametrize("concept", CLASSES, ids=lambda c: repr(c)[:24])
cells = st.tuples(st.integers(0, 2), st.integers(0, 3))
tables = st.lists(st.tuples(cells, st.integers(0, 1)), min_size=1, max_size=8)


def as_number(key: Any) -> float:
    """A number with the order of small keys; halves of keys stay apart."""
    return float(key[0] * 2**10 + key[1])


@classes
@settings(max_examples=20, deadline=None)
@given(rows=tables)
def test_rules_over_keys_are_those_over_one_column(concept: ConceptClass, rows: Any) -> None:
    X, y = np.array([key for key, _ in rows], dtype=float), [label for _, label in rows]
    keyed, column = Keyed(concept, 2), [as_number(key) for key in X]
    assert keyed.n_dichotomies(X) == concept.n_dichotomies(column)
    assert keyed.vc_dimension(2) == concept.vc_dimension(1)
    found, expected = keyed.erm(X, y), concept.erm(column, y)
    assert found.predict(X).tolist() == expected.predict(column).tolist()
    assert Hypothesis.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@classes
@settings(max_examples=10, deadline=None)
@given(points=st.lists(cells, min_size=1, max_size=6), rows=tables)
def test_a_draw_scores_rows_as_its_rules_label_them(
    concept: ConceptClass, points: Any, rows: Any
) -> None:
    """At infinite epsilon the drawn rule is a best one, also on rows between the points."""
    X, y = np.array([key for key, _ in rows], dtype=float), [label for _, label in rows]
    places = np.array(points, dtype=float)
    keyed = Keyed(concept, 2)
    drawn = keyed.choose(places, X, y, np.inf, random_state=0)
    best = (drawn.predict(X) == y).sum()
    others = [keyed.choose(places, X, y, 0.0, random_state=seed) for seed in range(8)]
    assert all((other.predict(X) == y).sum() <= best for other in others)
    assert {tuple(h.predict(places).tolist()) for h in others} <= labellings(keyed, places)


def labellings(keyed: Keyed, places: Any) -> set[tuple[int, ...]]:
    """Labellings of distinct places that the class realises, by its exact erm."""
    distinct = np.unique(places, axis=0)
    back = [int(np.flatnonzero((distinct == place).all(axis=1))[0]) for place in places]
    found = set()
    for number in range(2 ** len(distinct)):
        labels = [number >> place & 1 for place in range(len(distinct))]
        if (keyed.erm(distinct, labels).predict(distinct) == labels).all():
            found.add(tuple(labels[place] for place in back))
    return found


def made_up_keys(count: int, seed: int = 0) -> Any:
    generator = np.random.default_rng(seed)
    return np.column_stack([generator.integers(0, high, count) for high in (2, 3, 50)]) * 1.0


@classes
def test_many_shards_at_once_are_each_shard_alone(concept: ConceptClass) -> None:
    rows, generator = made_up_keys(120), np.random.default_rng(1)
    weights = generator.integers(0, 5, (120, 2))
    starts, seeds = np.arange(0, 121, 5), generator.integers(0, 2**31, 24)
    trainer = MarginTrainer(Keyed(concept, 3), 2, full_weight=5)
    models = trainer.train_many(rows, weights, starts, seeds)
    alone = [
        trainer.train(rows[a:b], weights[a:b], int(seed))
        for a, b, seed in zip(starts[:-1], starts[1:], seeds, strict=True)
    ]
    assert models == alone
    # Rows of the other shards do not matter.
    other = rows.copy()
    other[5:] = made_up_keys(115, seed=9)
    assert trainer.train_many(other, weights, starts, seeds)[0] == models[0]


@classes
@pytest.mark.claim("SHARDS")
def test_votes_and_slots_are_those_of_each_rule(concept: ConceptClass) -> None:
    keyed, queries = Keyed(concept, 3), made_up_keys(200, seed=3)
    rules = []
    for seed in range(30):
        X = made_up_keys(6, seed=100 + seed)
        rules.append(keyed.erm(X, np.random.default_rng(seed).integers(0, 2, 6)))
    ones = sum(rule.predict(queries) for rule in rules)
    expected = np.column_stack([30 - ones, ones])
    (voters,) = stack(rules, 2)
    assert np.array_equal(voters.count(queries), expected)
    again = voters_from_arrays("keys", voters.to_arrays())
    assert np.array_equal(again.count(queries), expected)
    form = slot_form(keyed, 2, 3, shard_rows=6)
    assert form is not None
    slots = form.pack([*rules, None, 1])
    assert slots.shape == (32, form.slot_bytes)
    found, constant = form.voters(slots)
    assert constant.tolist() == [1, 1]
    assert np.array_equal(sum(one.count(queries) for one in found), expected)


def test_rules_over_keys_are_checked() -> None:
    with pytest.raises(InvalidParameter, match="does more than compare"):
        Keyed(Rectangles(), 2)
    with pytest.raises(InvalidParameter, match="no pairs of keys"):
        KeyRuns(2, (((1.0,), None),))
    with pytest.raises(InvalidParameter, match="no key of 2"):
        Keyed(Points(), 2).vc_dimension(3)


# Predictors

GENERATOR = np.random.default_rng(0)
N = 3_000


def letters(size: int) -> str:
    return "".join(chr(97 + code) for code in GENERATOR.integers(0, 26, size))


DRAWN = GENERATOR.integers(0, 10**6, N).tolist()
DAY = dt.datetime(1950, 1, 1)  # noqa: DTZ001
VALUES: dict[str, tuple[list[Any], Any]] = {
    "text": ([letters(int(size)) for size in GENERATOR.integers(3, 9, N)], "m"),
    "numbers": ([10**30 + number for number in DRAWN], 10**30 + 400_000),
    "dates": ([DAY + dt.timedelta(hours=n) for n in DRAWN], DAY + dt.timedelta(hours=500_000)),
    "ids": ([uuid.UUID(int=n * 2**100) for n in DRAWN], uuid.UUID(int=450_000 * 2**100)),
}


def rows_of(kind: str) -> tuple[list[list[Any]], Any]:
    values, cut = VALUES[kind]
    return [[value] for value in values], np.array([int(value >= cut) for value in values])


def everlasting(**given: Any) -> EverlastingPredictor:
    return EverlastingPredictor(concept_class=Thresholds(), epsilon=8.0, delta=1e-6, **given)


@pytest.mark.parametrize("kind", list(VALUES))
@pytest.mark.claim("EVER")
@pytest.mark.claim("BBL")
@pytest.mark.claim("QUERY")
def test_predictors_answer_about_any_ordered_value(kind: str) -> None:
    X, y = rows_of(kind)
    columns = [{"ordered": kind}]
    shared: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6, "columns": columns}
    predictors: list[Any] = [
        everlasting(columns=columns),
        GenericBBL(Thresholds(), **shared),
        QueryRelease(concept_class=Thresholds(), max_queries=300, **shared),
    ]
    for predictor in predictors:
        answers = predictor.fit(X, y).predict(X[:300])
        assert (answers == y[:300]).mean() > 0.9, type(predictor)


@pytest.mark.claim("STORE")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_stored_predictor_keeps_the_order_and_counts_what_it_cannot_read(tmp_path: Path) -> None:
    X, y = rows_of("text")
    frame = pd.DataFrame({"family": [x for (x,) in X], "born": VALUES["dates"][0]})
    columns = {"family": {"ordered": "text", "max_bytes": 12}, "born": {"ordered": "dates"}}
    everlasting(columns=columns).fit(frame, y).save_to(tmp_path / "oracle.db")
    for _ in range(2):
        with cumae.open(tmp_path / "oracle.db") as oracle:
            assert oracle.concept_class == Thresholds()
            assert (oracle.predict(frame[:300]) == y[:300]).mean() > 0.9
            before = oracle.answered_
            odd = [["x" * 13, DAY], ["zz", "1990-01-01"], [None, DAY], ["zz", "soon"]]
            answers = oracle.predict(pd.DataFrame(odd, columns=["family", "born"]))
            assert answers.tolist() == [-1, 1, -1, -1]
            assert oracle.answered_ == before + 4


def test_a_training_row_that_is_too_long_is_the_owners_error() -> None:
    X, y = rows_of("text")
    X[70] = ["secret" * 20]
    budget = Budget(8.0, 1e-6)
    predictor = everlasting(columns=[{"ordered": "text"}], budget=budget)
    with pytest.raises(InvalidData, match=r"column 0 .* first in row 70; mend it") as error:
        predictor.fit(X, y)
    assert "secret" not in str(error.value)
    assert not budget.entries
    X[70] = [None]  # a row that is not used
    predictor.fit(X, y)


@pytest.mark.parametrize(
    "make",
    [
        lambda budget: EverlastingPredictor(
            epsilon=8.0, delta=1e-6, columns=[{"ordered": "text"}], budget=budget
        ),
        lambda budget: everlasting(
            columns=[{"ordered": "text"}], prior=PrivateLearner(Thresholds()), budget=budget
        ),
        lambda budget: PrivateLearner(Intervals(), columns=[{"ordered": "text"}], budget=budget),
        lambda budget: PrivateLearner(Thresholds(), budget=budget),
        lambda budget: GenericLearner(Thresholds(), 1.0, 1e-6, budget=budget),
        lambda budget: PrivateBooster(columns=[{"ordered": "text"}], budget=budget),
        lambda budget: everlasting(budget=budget),
    ],
)
def test_what_would_publish_a_value_refuses_before_it_pays(make: Any) -> None:
    X, y = rows_of("text")
    budget = Budget(20.0, 1e-5)
    with pytest.raises((InvalidData, InvalidParameter), match="ordered") as error:
        make(budget).fit(X, y)
    assert not budget.entries
    assert X[0][0] not in str(error.value)


def test_all_columns_must_be_ordered() -> None:
    X, y = rows_of("text")
    with pytest.raises(InvalidParameter, match="if all columns are ordered"):
        everlasting(columns=[{"ordered": "text"}, (0, 1)]).fit([[x, 0.5] for (x,) in X], y)


def test_public_values_let_a_learner_publish_its_cut() -> None:
    X, y = rows_of("text")
    public = [[letter] for letter in "abcdefghijklmnopqrstuvwxyz"]
    learner = SemiPrivateLearner(Thresholds(), epsilon=1.0).fit(X, y, X_public=public)
    assert learner.hypothesis_.cut in "lmn"  # type: ignore[attr-defined]


def test_long_numbers_next_to_each_other_are_told_apart() -> None:
    """All rows are one of two numbers that no float tells apart."""
    X = [[10**30 + 1 + number % 2] for number in range(2_000)]
    y = [number % 2 for number in range(2_000)]
    predictor = everlasting(columns=[{"ordered": "numbers"}]).fit(X, y)
    asked = [[10**30 + 1], [str(10**30 + 2)], [Decimal(10**30 + 2)], [10**30], [10**31]]
    assert predictor.predict(asked).tolist() == [0, 1, 1, 0, 1]
