"""Answers of QueryRelease: each is counted, unclear ones end, or all come at once."""

from __future__ import annotations

import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from cumae import BudgetExhausted, InvalidParameter, QueryRelease
from cumae.concepts import Intervals, Thresholds
from tests.forks import answer_in_a_fork
from tests.query_release import QUERIES, X, Y

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")


# Answers are counted


def test_answers_are_counted_and_batches_refused_whole() -> None:
    release = QueryRelease(Thresholds(), max_queries=60).fit(X[:, :1], Y)
    assert len(release.predict(QUERIES[:, :1])) == 50
    assert release.remaining_ == 10
    with pytest.raises(BudgetExhausted, match="50 queries were asked, but 10 of 60"):
        release.predict(QUERIES[:, :1])
    assert release.remaining_ == 10
    assert len(release.predict(QUERIES[:10, :1])) == 10
    assert release.remaining_ == 0
    with pytest.raises(BudgetExhausted, match="0 of 60"):
        release.predict([[0.5]])
    assert len(release.predict(np.zeros((0, 1)))) == 0


@pytest.mark.parametrize("mechanism", ["stability", "between"])
def test_when_the_unclear_answers_end_so_does_the_rest(mechanism: str) -> None:
    # Labels are coins, so that hardly any majority is clear.
    coins = np.random.default_rng(0).integers(0, 2, len(X))
    release = QueryRelease(
        Thresholds(),
        mechanism=mechanism,
        max_unstable=3,
        max_queries=100,
        n_shards=400,
        abstain=True,
    ).fit(X[:, :1], coins)
    with pytest.warns(UserWarning, match="were not looked at"):
        labels = release.predict(QUERIES[:, :1])
    assert len(labels) == 50
    assert np.count_nonzero(labels == -1) >= 3
    assert release.remaining_ == 0
    with pytest.raises(BudgetExhausted, match="0 of 100"):
        release.predict([[0.5]])


@pytest.mark.parametrize("mechanism", ["stability", "between"])
def test_clear_answers_cost_nothing(mechanism: str) -> None:
    release = QueryRelease(
        Thresholds(), 2.0, mechanism=mechanism, max_unstable=1, max_queries=400, n_shards=400
    ).fit(X[:, :1], Y)
    clear = np.tile([[0.05], [0.9]], (100, 1))
    assert release.predict(clear).tolist() == [0, 1] * 100
    assert release.remaining_ == 200


def test_unclear_queries_get_random_labels_or_none() -> None:
    coins = np.random.default_rng(0).integers(0, 2, len(X))
    options: dict[str, Any] = {
        "mechanism": "stability",
        "max_unstable": 60,
        "max_queries": 60,
        "n_shards": 400,
    }
    random_labels = QueryRelease(Thresholds(), **options).fit(X[:, :1], coins)
    assert set(random_labels.predict(QUERIES[:, :1]).tolist()) == {0, 1}
    names = np.array(["no", "yes"])[coins]
    none = QueryRelease(Thresholds(), abstain=True, classes=("no", "yes"), **options)
    answers = none.fit(X[:, :1], names).predict(QUERIES[:, :1])
    assert answers.dtype == object
    assert set(answers.tolist()) <= {-1, "no", "yes"}
    assert -1 in answers.tolist()


def test_threads_get_as_many_answers_as_there_are() -> None:
    release = QueryRelease(Thresholds(), max_queries=100).fit(X[:, :1], Y)
    given: list[int] = []

    def ask() -> None:
        for _ in range(30):
            try:
                given.append(len(release.predict(QUERIES[:5, :1])))
            except BudgetExhausted:
                return

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(given) == 100
    assert release.remaining_ == 0


def test_a_forked_process_gets_no_answers() -> None:
    release = QueryRelease(Thresholds(), max_queries=10).fit(X[:, :1], Y)
    assert answer_in_a_fork(release, [[0.5]]) == "refused"


def test_a_million_queries_take_little_memory() -> None:
    release = QueryRelease(Thresholds(), 9.0, max_queries=10**6).fit(X[:, :1], Y)
    queries = np.random.default_rng(0).random((10**6, 1))
    release.predict(queries[:1])
    tracemalloc.start()
    answers = release.predict(queries[1:])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(answers) == 10**6 - 1
    assert peak < 200 * 2**20


# All queries at once


@pytest.mark.claim("QUERY")
def test_offline_draws_one_hypothesis_over_the_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    choose = Intervals.choose

    def spy(self: Any, points: Any, rows: Any, y: Any, epsilon: float, **others: Any) -> Any:
        drawn.append((np.array(points), len(rows), epsilon))
        return choose(self, points, rows, y, epsilon, **others)

    monkeypatch.setattr(Intervals, "choose", spy)
    release = QueryRelease(Intervals(), 1.0, 0.0, 50, mechanism="offline").fit(X[:, :1], Y)
    assert release.remaining_ == 50
    with pytest.raises(AttributeError, match="offline"):
        _ = release.hypothesis_
    with pytest.raises(BudgetExhausted, match="51 queries"):
        release.predict(np.zeros((51, 1)))
    assert release.predict([]).tolist() == []
    assert release.remaining_ == 50  # without queries nothing is drawn
    labels = release.predict(QUERIES[:, :1])
    assert np.mean(labels == (QUERIES[:, 0] > 0.4)) > 0.9
    ((points, rows, epsilon),) = drawn
    assert np.array_equal(points, QUERIES[:, :1])
    assert (rows, epsilon) == (len(X), 1.0)
    assert release.remaining_ == 0
    assert release._state_.offline is not None
    assert release._state_.offline.rows is None
    with pytest.raises(BudgetExhausted, match="hypothesis_"):
        release.predict(QUERIES[:5, :1])
    assert np.array_equal(release.hypothesis_.predict(QUERIES[:, :1]), labels)
    assert (release.guarantee_.epsilon, release.guarantee_.delta) == (1.0, 0.0)


@pytest.mark.claim("QUERY")
def test_offline_is_silent_about_unusable_rows() -> None:
    table, labels = X[:, :1].copy(), Y.copy()
    table[3], table[4], labels[5] = np.nan, np.inf, 9
    QueryRelease(Thresholds(), mechanism="offline").fit(table, labels).predict(QUERIES[:, :1])
    mixed: Any = [[value] for value in X[:200, 0]]
    mixed[7] = ["text"]
    QueryRelease(Thresholds(), mechanism="offline").fit(mixed, Y[:200]).predict([[0.5]])


def test_offline_has_no_counts() -> None:
    release = QueryRelease(Thresholds(), mechanism="offline").fit(X[:, :1], Y)
    with pytest.raises(InvalidParameter, match="'offline' releases no counts"):
        release.noisy_votes(QUERIES[:, :1])
    assert release.remaining_ == 1000


def test_offline_takes_concept_classes_only() -> None:
    with pytest.raises(InvalidParameter, match="takes a concept class"):
        QueryRelease(LogisticRegression(), mechanism="offline").fit(X, Y)
