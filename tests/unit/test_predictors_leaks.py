"""What one private row must not be able to do: ways that were found, and closed."""

from __future__ import annotations

import threading
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cumae import AgnosticQueryRelease, Budget, QueryRelease, UniversalQueryRelease
from cumae.concepts import FiniteClass, Stumps, Thresholds
from cumae.data import Columns, ordinary_cells, row_source
from cumae.ensembles.split import Split, shard_seeds
from cumae.ensembles.trainer import Trainer, train_shards
from cumae.ensembles.trial import check_model
from cumae.errors import InvalidData, InvalidParameter, TooFewRows
from cumae.quiet import GLOBALS
from cumae.randomness import SeededSource

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(0)
X = RNG.random((2000, 2))
Y = (X[:, 0] > 0.4).astype(int)


class Loud:
    """A cell that cannot be read, printed, compared or sent."""

    def _fail(self, *_: Any) -> Any:
        raise RuntimeError("a private value")

    __float__ = __eq__ = __reduce__ = __repr__ = __str__ = __len__ = _fail
    __hash__ = None  # type: ignore[assignment]


@pytest.mark.claim("SHARDS")
@pytest.mark.parametrize("model", [DecisionTreeClassifier(max_depth=3), LogisticRegression()])
def test_a_query_of_text_does_not_tell_whether_a_shard_was_trained(model: Any) -> None:
    # Without any trained shard nothing would complain about it; so it must be refused beforehand.
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    asked = pd.DataFrame({"a": ["x"], "b": [0.5]})
    for label in (0, 1):
        labels = np.zeros(2000, dtype=int)
        labels[0] = label
        release = QueryRelease(model, max_queries=10, n_shards=50).fit(frame, labels)
        with pytest.raises(InvalidData, match="column a holds something that is no number"):
            release.predict(asked)
        with pytest.raises(InvalidData, match="infinite in row 0, column b"):
            release.predict(pd.DataFrame({"a": [0.5], "b": [np.inf]}))
        assert release.remaining_ == 10


@pytest.mark.claim("QUERY")
def test_hypotheses_from_elsewhere_are_refused_where_they_meet_all_rows() -> None:
    tree = DecisionTreeClassifier(max_depth=1).fit(X, Y)
    strange: Any = FiniteClass([tree])
    for predictor in (
        QueryRelease(strange, mechanism="offline"),
        UniversalQueryRelease(strange),
        AgnosticQueryRelease(strange),
    ):
        with pytest.raises(InvalidParameter, match="may fail on a private row"):
            predictor.fit(X, Y)


class Coins(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Draws from the global generator, slowly enough for threads to meet."""

    def fit(self, X: Any, y: Any) -> Coins:
        self.classes_ = np.unique(y)
        self.limit_ = 0.0
        for _ in range(20):
            self.limit_ += np.random.normal()  # noqa: NPY002
            np.sort(np.arange(1000))
        return self

    def predict(self, X: Any) -> Any:
        return (np.asarray(X)[:, 0] > self.limit_).astype(int)


@pytest.mark.claim("SHARDS")
def test_threads_do_not_carry_numbers_from_shard_to_shard() -> None:
    def limits() -> list[float]:
        source = SeededSource(1)
        split = Split.draw(2000, 160, source)
        seeds = shard_seeds(160, source)
        models = train_shards(row_source(X), Y.astype(np.int64), split, Trainer(Coins(), 2), seeds)
        return [model.limit_ for model in models]

    before = list(warnings.filters)
    alone = limits()
    with joblib.parallel_config("threading", n_jobs=4):
        together = limits()
    assert alone == together
    assert warnings.filters == before


@pytest.mark.claim("QUERY")
def test_a_refit_waits_for_the_answers_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    release = QueryRelease(Thresholds(), 0.01, max_queries=30, n_shards=40).fit(X[:, :1], Y)
    first = release._state_.need_voting().ensemble
    asked, go = threading.Event(), threading.Event()
    votes = type(first).votes

    def slow(self: Any, table: Any, numbers: Any = None) -> Any:
        found = votes(self, table, numbers)
        if self is first:
            asked.set()
            go.wait(5)
        return found

    monkeypatch.setattr(type(first), "votes", slow)
    noisy: list[Any] = []
    asking = threading.Thread(target=lambda: noisy.append(release.predict(X[:30, :1])))
    asking.start()
    asked.wait(5)
    release.set_params(epsilon=100.0)
    fitting = threading.Thread(target=lambda: release.fit(X[:, :1], 1 - Y))
    fitting.start()
    fitting.join(0.3)
    assert fitting.is_alive()  # it waits
    go.set()
    asking.join(10)
    fitting.join(30)
    assert len(noisy) == 1
    assert release.remaining_ == 30  # the new fit's answers were not touched


ODD = [
    Decimal("sNaN"),
    np.complex128(1j),
    np.longdouble("1e4000"),
    Loud(),
    lambda: 0,
    object(),
    b"x",
]


@pytest.mark.usefixtures("little_trained")
@pytest.mark.claim("QUERY")
@pytest.mark.parametrize("cell", ODD, ids=lambda cell: type(cell).__name__)
def test_no_cell_can_stop_a_fit(cell: Any) -> None:
    cells = X.astype(object)
    cells[7, 1] = cell
    frame = pd.DataFrame({"a": cells[:, 0]})
    frame["b"] = pd.Series(cells[:, 1].tolist(), dtype=object)
    bounds = [(0, 1), (0, 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", TooFewRows)
        for rows in (cells, frame):
            QueryRelease(max_queries=5, columns=bounds).fit(rows, Y)
            QueryRelease(Stumps(), mechanism="offline", columns=bounds).fit(rows, Y)
        QueryRelease(max_queries=5).fit(cells, Y)
        with joblib.parallel_config(n_jobs=2):
            QueryRelease(max_queries=5).fit(cells, Y)


class Shy:
    """Does not even say what it is."""

    @property  # type: ignore[misc]  # it can only be read, and not even that
    def __class__(self) -> Any:
        raise RuntimeError("a class")


@pytest.mark.claim("QUERY")
def test_no_label_can_stop_a_fit() -> None:
    for label in (*ODD, Shy(), [], [0, 1], np.array([0, 1])):
        labels: list[Any] = Y.tolist()
        labels[7] = label
        QueryRelease(max_queries=5).fit(X, labels)


def test_cells_become_plain_values() -> None:
    given = ["a", 1, 2.5, True, np.int8(3), np.float32(0.5), Decimal("0.25"), Fraction(1, 2), None]
    taken = ordinary_cells(np.array([*given, b"x"], dtype=object)).tolist()
    assert taken[:8] == ["a", 1, 2.5, True, 3, 0.5, 0.25, 0.5]
    assert np.isnan(taken[8:]).all()


def test_categories_are_single_values() -> None:
    with pytest.raises(InvalidParameter, match="category that is no text"):
        Columns({"job": [("a", 1), ("b", 2)]}, ["job"], 1)


def test_offline_checks_before_it_pays() -> None:
    budget = Budget(1.0)
    with pytest.raises(InvalidParameter, match="max_queries"):
        QueryRelease(Thresholds(), 1.0, 0.0, 0, mechanism="offline", budget=budget).fit(X[:, :1], Y)
    assert budget.remaining == (1.0, 0.0)


def test_functions_of_fitted_parts_are_refused() -> None:
    scaler = StandardScaler().fit(X)
    with pytest.raises(InvalidParameter, match="fitted already"):
        check_model(make_pipeline(FunctionTransformer(scaler.transform), GaussianNB()))


def test_minus_one_is_no_class_if_it_is_an_answer() -> None:
    with pytest.raises(InvalidParameter, match="abstain=True answers -1"):
        QueryRelease(abstain=True, classes=(-1, 1)).fit(X, 2 * Y - 1)
    small = QueryRelease(
        Thresholds(),
        abstain=True,
        mechanism="stability",
        max_unstable=50,
        max_queries=50,
        classes=np.array([0, 1], dtype=np.uint8),
    ).fit(X[:, :1], RNG.integers(0, 2, 2000))
    assert set(small.predict(X[:50, :1]).tolist()) <= {-1, 0, 1}


# What newcomers stumbled over


def test_shards_learn_from_the_classes_they_have() -> None:
    # Five classes, two of them rare: hardly any shard of ten rows has all of them.
    rng = np.random.default_rng(0)
    table = rng.random((20_000, 1))
    labels = np.digitize(table[:, 0], [0.4, 0.7, 0.96, 0.98])
    release = QueryRelease(
        DecisionTreeClassifier(max_depth=4), epsilon=3.0, max_queries=200, classes=range(5)
    ).fit(table, labels)
    asked = rng.random((200, 1))
    assert np.mean(release.predict(asked) == np.digitize(asked[:, 0], [0.4, 0.7, 0.96, 0.98])) > 0.8


@pytest.mark.usefixtures("little_trained")
def test_rows_with_missing_values_do_not_silence_their_shards() -> None:
    rng = np.random.default_rng(0)
    table = rng.random((5_000, 2))
    labels = (table[:, 0] > 0.5).astype(int)
    table[rng.random(5_000) < 0.2, 1] = np.nan
    for model in (GaussianNB(), LogisticRegression()):
        release = QueryRelease(model, epsilon=9.0, max_queries=100).fit(table, labels)
        asked = rng.random((100, 2))
        assert np.mean(release.predict(asked) == (asked[:, 0] > 0.5)) > 0.8


@pytest.mark.usefixtures("little_trained")
def test_shards_grow_until_the_estimator_can_learn() -> None:
    rng = np.random.default_rng(0)
    table = rng.random((6000, 2))
    labels = (table[:, 0] > 0.5).astype(int)
    hungry = HistGradientBoostingClassifier(max_iter=3)  # at least 20 rows in a leaf
    release = QueryRelease(hungry, epsilon=5.0, max_queries=20).fit(table, labels)
    assert 6000 / release.n_shards_ >= 40
    few = QueryRelease(hungry, epsilon=5.0, max_queries=20, n_shards=100)
    with pytest.warns(TooFewRows, match="the same label"):
        few.fit(table[:2000], labels[:2000])


@pytest.mark.usefixtures("little_trained")
def test_errors_say_what_to_do() -> None:
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    release = QueryRelease(max_queries=10).fit(frame, Y)
    assert len(release.predict(frame[["b", "a"]][:2])) == 2
    with pytest.raises(InvalidData, match=r"\['b'\] are not there"):
        release.predict(frame[["a"]][:2])
    with pytest.raises(InvalidData, match="a data frame with the columns"):
        release.predict(X[:2])
    assert len(release.predict(frame[:0])) == 0
    text = pd.DataFrame({"job": np.where(X[:, 1] > 0.5, "baker", "nurse")})
    with pytest.raises(InvalidParameter, match="handle_unknown='ignore'"):
        QueryRelease(DecisionTreeClassifier()).fit(text, Y)
    assert GLOBALS.acquire(blocking=False)
    GLOBALS.release()
