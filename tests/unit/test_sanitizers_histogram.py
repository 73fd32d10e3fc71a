"""The stability histogram: what it costs, what it finds, and that nothing else is seen."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from cumae import GenericLearner
from cumae.concepts import Points, Thresholds
from cumae.errors import InvalidData, InvalidParameter
from cumae.mechanisms.sparse import upper_tail
from cumae.privacy import Approximate
from cumae.randomness import SeededSource
from cumae.sanitizers import StabilityHistogram
from tests.divergence import divergence
from tests.statistics import binomial_rejects

pytestmark = pytest.mark.claim("HIST")

FAR = 30  # noisy counts beyond which the law below gathers all others


def shown_law(counts: Sequence[int], rate: float, least: int) -> Any:
    """Law of what all bins show: nothing, or a noisy count up to a distance."""
    law = np.ones(1)
    for count in counts:
        tails = [float(upper_tail(rate, float(k - count))) for k in range(least, least + FAR)]
        shown = [a - b for a, b in itertools.pairwise([*tails, 0.0])]
        one = np.array([1 - tails[0], *shown] if count else [1.0] + [0.0] * FAR)
        law = np.multiply.outer(law, one).ravel()
    return law


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_release_leaks_at_most_epsilon_and_delta(epsilon: float) -> None:
    """Counts of up to four rows in two bins, one row moved; a threshold that is lower leaks."""
    histogram = StabilityHistogram(epsilon, 0.02)
    rate, least = float(histogram.rate), histogram.threshold
    assert (rate, histogram.cost) == (epsilon / 2, Approximate(epsilon, 0.02))
    # In one direction only one of the bins appears, so that more than twice the chance leaks.
    lower = least - math.ceil(math.log(2) / rate) - 1
    pairs, low = [], []
    for a, b in itertools.product(range(1, 5), range(4)):
        worlds = (a, b), (a - 1, b + 1)
        pairs.append(tuple(shown_law(world, rate, least) for world in worlds))
        low.append(tuple(shown_law(world, rate, lower) for world in worlds))
    assert divergence(pairs, epsilon) <= 0.02 + 1e-12
    assert divergence(low, epsilon) > 0.02


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_the_threshold_is_the_least_for_half_of_delta(epsilon: float, delta: float) -> None:
    histogram = StabilityHistogram(epsilon, delta)
    least, q = histogram.threshold, math.exp(-epsilon / 2)
    assert q ** (least - 1) / (1 + q) <= delta / 2
    assert least == 2 or q ** (least - 2) / (1 + q) > delta / 2 * (1 - 1e-8)


@pytest.mark.statistical
def test_values_are_found_as_often_as_stated() -> None:
    histogram = StabilityHistogram(1.0, 1e-2)
    least = histogram.threshold
    rows = ["often"] * (least + 1) + ["seldom"] * (least - 2)
    found = Counter(value for _ in range(600) for value in histogram.sanitize(rows))
    assert not binomial_rejects(found["often"], 600, histogram.chance(least + 1))
    assert not binomial_rejects(found["seldom"], 600, histogram.chance(least - 2))
    assert binomial_rejects(found["often"], 600, histogram.chance(least - 1), checks=0)


def test_a_value_with_enough_rows_is_found_whatever_the_number_of_rows() -> None:
    histogram = StabilityHistogram(1.0, 1e-6)
    assert 0.997 < histogram.chance(40) < histogram.chance(60) < 1
    assert histogram.chance(0) == 0.0
    few, many = histogram.least_rows(1_000), histogram.least_rows(10**7)
    assert 40 < few < many < 70
    for rows in (few, many):
        missed = 1 - histogram.chance(rows)
        assert (1_000 if rows == few else 10**7) // rows * missed <= 0.05
    assert StabilityHistogram(math.inf, 1e-6).least_rows(100) == 1


DAY = dt.date(2024, 2, 29)
COLUMNS: list[tuple[Any, Any]] = [
    (["ward 7", "ward 12"], ["ward 12", "ward 7"]),
    ([10**30 + 2, 10**30 + 1], [10**30 + 1, 10**30 + 2]),
    ([DAY, dt.date(1999, 1, 1)], [dt.date(1999, 1, 1), DAY]),
    (np.array(["2024-02-29", "1999-01-01"], "M8[s]"), np.array(["1999-01-01", "2024-02-29"])),
    ([1234567890.123456, 1234567890.123457], [1234567890.123456, 1234567890.123457]),
    ([2, 0.5, True], [0.5, 1, 2]),
    ([math.inf, -0.0], [0.0, math.inf]),
]


@pytest.mark.parametrize(("values", "expected"), COLUMNS)
def test_values_of_any_kind_are_found_exactly_and_in_order(values: Any, expected: Any) -> None:
    rows = [value for value in values for _ in range(80)]
    found = StabilityHistogram(1.0, 1e-6).find(rows)
    assert list(found.values) == list(np.asarray(expected, dtype=found.values.dtype))
    assert (np.abs(found.counts - 80) < 50).all()
    assert StabilityHistogram(1.0, 1e-6).sanitize(rows[:20]).tolist() == []


def test_the_order_and_the_form_of_rows_are_not_seen() -> None:
    rows = [7, 7.0, True, 1.0] * 40
    one, other = (
        StabilityHistogram(1.0, 1e-6, random_state=SeededSource(3)).find(table)
        for table in (rows, [float(row) for row in reversed(rows)])
    )
    assert one.values.tolist() == other.values.tolist() == [1, 7]
    assert one.values.dtype == other.values.dtype == np.int64
    assert one.counts.tolist() == other.counts.tolist()


def test_unusable_parameters_and_tables_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="without a delta, values"):
        StabilityHistogram(1.0, 0.0)
    histogram = StabilityHistogram(1.0, 1e-6)
    with pytest.raises(InvalidData, match="2 columns, but a histogram takes one"):
        histogram.check_size(10, 2)
    with pytest.raises(InvalidData, match="mixes"):
        histogram.sanitize(np.array(["a", 1], dtype=object))
    assert histogram.sanitize(np.zeros((0, 1))).shape == (0, 1)


def rows_with(value: Any, others: Sequence[Any], count: int) -> tuple[Any, Any]:
    """Rows without labels of which ``count`` have the value, and 400 with labels, half with it."""
    labelled = [value] * 200 + list(others[:200])
    X = [value] * count + list(others) + labelled
    y = [-1] * (count + len(others)) + [1] * 200 + [0] * 200
    return np.array(X, dtype=object).reshape(-1, 1), y


@pytest.mark.parametrize(
    ("value", "others"),
    [
        (123456.0, np.arange(3_000.0)),
        ("ward 7", [f"visitor {number}" for number in range(3_000)]),
        (10**30 + 1, [10**30 + number for number in range(2, 3_002)]),
        (1234567890.123457, 1234567890 + np.arange(1, 3_001) / 10**6 * 0.5),
    ],
)
def test_a_generic_learner_of_points_finds_a_value_with_sixty_rows(value: Any, others: Any) -> None:
    X, y = rows_with(value, others, 60)
    learner = GenericLearner(Points(), 1.0, 1e-6).fit(X, y)
    assert learner.hypothesis_.value == value  # type: ignore[attr-defined]
    assert learner.n_candidates_ == 2
    assert {"HIST", "GENERIC"} <= set(learner.guarantee_.claims)
    assert (learner.guarantee_.epsilon, learner.guarantee_.delta) == (1.0, 1e-6)
    again = GenericLearner.from_dict(learner.to_dict())
    assert again.predict(X[:5]).tolist() == [1] * 5


def test_cuts_between_values_that_many_share_can_be_learnt_from_text() -> None:
    names = np.array([f"{letter}" for letter in "abcdefgh" for _ in range(100)], dtype=object)
    y = np.where(np.arange(800) % 2 == 0, -1, names >= "e")
    learner = GenericLearner(Thresholds(), 2.0, 1e-6, "histogram").fit(names.reshape(-1, 1), y)
    assert learner.predict([["a"], ["d"], ["e"], ["z"]]).tolist() == [0, 0, 1, 1]
