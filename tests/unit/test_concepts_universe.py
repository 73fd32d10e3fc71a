"""Thresholds over all keys of a declared width: exact draws, and learners that publish a cut."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import cumae
from cumae import (
    Budget,
    GenericLearner,
    InvalidData,
    InvalidParameter,
    PrivateBooster,
    PrivateLearner,
    TooFewRows,
)
from cumae.concepts import Intervals, KeyCuts, KeyRuns, Thresholds
from cumae.data.texts import Order
from cumae.randomness import SeededSource

pytestmark = pytest.mark.claim("UNIVERSE")

UNIT = 256**5  # a key of one byte is the first byte of a word
FALSE_ALARM = 1e-6
keys = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), max_size=6)


def table_of(numbers: list[int]) -> np.ndarray[Any, Any]:
    return np.array(numbers, dtype=float).reshape(-1, 1) * UNIT


def right(rule: KeyRuns, X: Any, y: list[int]) -> int:
    return int(np.sum(rule.predict(X) == np.array(y, dtype=int)))


@settings(max_examples=40, deadline=None)
@given(rows=keys, polarity=st.sampled_from(["both", "above", "below"]))
def test_stretches_score_every_cut_as_its_rule_labels_the_rows(rows: Any, polarity: str) -> None:
    X, y = table_of([250 + key for key, _ in rows]), [label for _, label in rows]
    cuts = KeyCuts(Thresholds(polarity), [1])
    numbers, scores = cuts._stretches(X, np.array(y, dtype=int))
    assert cuts.n_keys == 256
    assert cuts.n_candidates([]) == 257 * (2 if polarity == "both" else 1)
    for cut in range(257):
        score = scores[int(np.searchsorted(numbers, cut))]
        assert right(cuts._rule(cut, above=True), X, y) == score
        assert right(cuts._rule(cut, above=False), X, y) == len(y) - score
    if rows:
        best = max(right(cuts._rule(c, above=a), X, y) for c in range(257) for a in cuts._sides)
        found = cuts.erm(X, y)
        assert right(found, X, y) == best  # type: ignore[arg-type]
        assert cuts.n_dichotomies(X) == Thresholds(polarity).n_dichotomies(X[:, 0])


def test_each_cut_is_drawn_with_its_chance() -> None:
    """Groups of cuts, against the chances that follow from listing all of them."""
    X, y, epsilon, runs = table_of([3, 3, 10, 200, 255]), [0, 1, 1, 1, 0], 1.5, 4_000
    cuts, source = KeyCuts(Thresholds(), [1]), SeededSource(5)
    ends = (0, 2, 4, 7, 11, 100, 201, 250, 257)

    def place(rule: KeyRuns) -> tuple[bool, int]:
        low, high = rule.runs[0] if rule.runs else (None, None)
        above = not rule.runs or low is not None
        cut = (low if above else high) if rule.runs != ((None, None),) else None
        number = 256 if cut is None else int(cut[0] / UNIT)
        return above, int(np.searchsorted(ends, number, side="right"))

    weights: dict[tuple[bool, int], float] = {}
    for above in (True, False):
        for cut in range(257):
            rule = cuts._rule(cut, above=above)
            weight = math.exp(epsilon / 2 * right(rule, X, y))
            weights[place(rule)] = weights.get(place(rule), 0.0) + weight
    found = dict.fromkeys(weights, 0)
    for _ in range(runs):
        found[place(cuts.choose([], X, y, epsilon, random_state=source))] += 1  # type: ignore[arg-type]
    total = sum(weights.values())
    expected = [runs * weight / total for weight in weights.values()]
    assert stats.chisquare(list(found.values()), expected).pvalue > FALSE_ALARM


@pytest.mark.parametrize("key_bytes", [[1], [6], [7], [8, 16], [64], [64, 61]])
def test_keys_are_whole_numbers_in_order(key_bytes: list[int]) -> None:
    cuts = KeyCuts(Thresholds(), key_bytes)
    assert cuts.n_keys == 256 ** sum(key_bytes)
    generator = np.random.default_rng(0)
    picked = [0, 1, cuts.n_keys - 1, cuts.n_keys // 3]
    picked += [int.from_bytes(generator.bytes(sum(key_bytes)), "big") for _ in range(50)]
    found = np.array([cuts._key(number) for number in picked])
    assert cuts._numbers(found) == picked
    order = sorted(range(len(picked)), key=lambda place: picked[place])
    assert order == sorted(range(len(picked)), key=lambda place: tuple(found[place]))
    assert cuts._key(cuts.n_keys) is None
    assert not cuts._rule(cuts.n_keys, above=True).predict(found).any()
    assert cuts._rule(cuts.n_keys, above=False).predict(found).all()
    assert cuts._rule(0, above=True).predict(found).all()


def test_a_draw_of_wide_keys_finds_the_cut() -> None:
    """With a large epsilon the rule makes no error, however far apart the keys are."""
    order = Order("numbers", 64)
    cells = [10**30 + 1, 10**30 + 2, -(10**50), 0.1, 10**90]
    X, y = order.words(np.array(cells, dtype=object)), [0, 1, 0, 0, 1]
    for seed in range(5):
        rule = KeyCuts(Thresholds(), [64]).choose([], X, y, 2_000.0, random_state=seed)
        assert rule.predict(X).tolist() == y


CASES: dict[str, tuple[Any, Any]] = {
    "text": ({"ordered": "text", "max_bytes": 12}, lambda number: f"{number:09d}"),
    "numbers": ({"ordered": "numbers"}, lambda number: 10**30 + number),
    "dates": ({"ordered": "dates"}, lambda number: dt.date(1, 1, 1) + dt.timedelta(number % 10**6)),
    "ids": ({"ordered": "ids"}, lambda number: uuid.UUID(int=number << 90)),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_learner_publishes_a_cut_over_a_declared_width(kind: str, tmp_path: Any) -> None:
    declared, make = CASES[kind]
    numbers = np.random.default_rng(1).integers(0, 10**6, 4_000).tolist()
    X, y = [[make(number)] for number in numbers], [int(number >= 400_000) for number in numbers]
    learner = PrivateLearner(Thresholds(), epsilon=8.0, columns=[declared])
    learner.fit(X, y)
    assert learner.score(X, y) > 0.95
    assert learner.guarantee_.epsilon == 8.0
    assert {"UNIVERSE", "KEYS"} <= set(learner.guarantee_.claims)
    bits = 8 * Order(declared["ordered"], declared.get("max_bytes", 64)).key_bytes
    assert learner.excess_errors(0.05) == pytest.approx(
        2 / 8 * ((bits + 1) * math.log(2) + math.log(20)), rel=1e-9
    )
    learner.save(tmp_path / "model.json")
    again = cumae.load(tmp_path / "model.json")
    assert again.predict(X).tolist() == learner.predict(X).tolist()
    assert str(again) == str(learner)
    assert "from" in str(learner) or "below" in str(learner)


def test_pairs_are_compared_one_after_the_other() -> None:
    numbers = np.random.default_rng(2).integers(0, 100, (3_000, 2)).tolist()
    X = [[f"{first:02d}", second] for first, second in numbers]
    y = [int((first, second) >= (50, 20)) for first, second in numbers]
    columns = [{"ordered": "text", "max_bytes": 8}, {"ordered": "numbers", "max_bytes": 8}]
    learner = PrivateLearner(Thresholds("above"), epsilon=20.0, columns=columns).fit(X, y)
    assert learner.score(X, y) > 0.95
    assert ", " in str(learner)


def test_what_cannot_be_drawn_is_refused_before_it_is_paid() -> None:
    X, y = [[f"n{number}"] for number in range(100)], [number % 2 for number in range(100)]
    budget = Budget(9.0, 1e-3)
    declared = [{"ordered": "text"}]
    for learner in (
        PrivateLearner(Intervals(), 1.0, columns=declared, budget=budget),
        PrivateLearner(Thresholds(), 1.0, columns=[{"ordered": "text", "max_bytes": 126}]),
        GenericLearner(Thresholds(), 1.0, columns=declared, budget=budget),
        PrivateBooster(1.0, columns=declared, budget=budget),
    ):
        with pytest.raises(InvalidParameter, match=r"ordered|max_bytes"):
            learner.fit(X, y)
    with pytest.raises(InvalidData, match="row 100"):
        PrivateLearner(Thresholds(), 1.0, columns=declared, budget=budget).fit(
            [*X, ["x" * 65]], [*y, 0]
        )
    with pytest.raises(InvalidParameter, match="are declared as ordered"):
        PrivateLearner(Thresholds(), 1.0, columns=[declared[0], (0, 1)], budget=budget).fit(
            [[cell, 0.5] for (cell,) in X], y
        )
    assert not budget.entries
    with pytest.raises(InvalidParameter, match="Intervals cannot be drawn"):
        KeyCuts(Intervals(), [8])


def test_few_rows_for_a_wide_key_are_told_by_counts_alone() -> None:
    X, y = [[f"n{number}"] for number in range(500)], [number % 2 for number in range(500)]
    with pytest.warns(TooFewRows, match="keys of 64 bytes"):
        PrivateLearner(Thresholds(), 1.0, columns=[{"ordered": "text"}]).fit(X, y)
    planned = PrivateLearner(Thresholds(), 1.0, columns=[{"ordered": "text"}]).plan(10_000, 1)
    assert planned.facts["key_bytes"] == 64


def test_rules_are_told_by_the_cells_that_keys_stand_for() -> None:
    cells: list[tuple[str, Any, str]] = [
        ("text", "Kowalski", "'Kowalski'"),
        ("text", "x" * 30, f"'{'x' * 20}...'"),
        ("numbers", -1.5, "-1.5"),
        ("numbers", 0, "0"),
        ("dates", dt.date(2024, 2, 29), "2024-02-29 00:00:00"),
        ("ids", uuid.UUID(int=7), str(uuid.UUID(int=7))),
    ]
    for kind, cell, told in cells:
        order = Order(kind)
        assert order.readable(order.words(np.array([cell], dtype=object))[0]) == told
    assert Order("dates").readable([2.0**48 - 1] * 3) == "after the year 9999"
    assert Order("dates").readable([0.0] * 3) == "before the year 1"
    assert Order("numbers").readable([2.0**48 - 1] * 11) == "above all numbers"
