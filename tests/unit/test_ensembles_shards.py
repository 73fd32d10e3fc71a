"""Disjoint shards: one row moves one vote, whatever the estimator does."""

from __future__ import annotations

import random
import warnings
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cumae import QueryRelease
from cumae.checks import SHARD_LAWS, Neighbours, check_estimator
from cumae.checks.shards import models_of, votes_of
from cumae.concepts import Intervals, Rectangles, Stumps, Thresholds
from cumae.data import row_source
from cumae.ensembles import isolation as quiet
from cumae.ensembles import trainer as shards
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.isolation import generators_kept, own_randomness
from cumae.ensembles.split import Split, shard_seeds
from cumae.ensembles.trainer import Trainer, train_shards
from cumae.ensembles.trial import check_model, try_out
from cumae.errors import InvalidParameter
from cumae.randomness import SYSTEM, SeededSource

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3))
Y = (X[:, 0] + 0.3 * RNG.normal(size=240) > 0).astype(int)
MODELS: list[Any] = [
    DecisionTreeClassifier(max_depth=4),
    DecisionTreeClassifier(max_features=1, splitter="random"),
    LogisticRegression(),
    make_pipeline(StandardScaler(), LogisticRegression()),
    GaussianNB(),
    KNeighborsClassifier(3),
    RandomForestClassifier(2),
    Stumps(),
]
BAD_ROWS = {
    "far": ([1e6, -1e6, 3.0], 1),
    "missing": ([np.nan, 0.0, 0.0], 1),
    "infinite": ([0.0, np.inf, 0.0], 0),
    "beyond float32": ([1e300, 0.0, 0.0], 1),
    "undeclared label": ([0.0, 0.0, 0.0], 7),
    "unlabelled": ([0.0, 0.0, 0.0], -1),
}


def pair(row: Any, label: int, **others: Any) -> Neighbours:
    return Neighbours.replacing(X, Y, 17, row, label, queries=X[:15], n_shards=6, **others)


@pytest.mark.claim("SHARDS")
@pytest.mark.parametrize("law", SHARD_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_laws_hold_for_estimators(model: Any, law: Any) -> None:
    for new in BAD_ROWS.values():
        law(model, pair(*new))


@pytest.mark.claim("SHARDS")
@pytest.mark.parametrize("concept", [Thresholds(), Intervals()])
def test_laws_hold_for_concepts_of_one_column(concept: Any) -> None:
    for value, label in ((5.0, 0), (np.nan, 1), (np.inf, 1), (0.0, 9)):
        one = Neighbours.replacing(X[:, :1], Y, 3, [value], label, queries=X[:40, :1])
        check_estimator(concept, one)


@pytest.mark.claim("SHARDS")
def test_laws_hold_for_rectangles_and_frames() -> None:
    check_estimator(
        Rectangles(), Neighbours.replacing(X[:, :2], Y, 3, [9, 9], 0, queries=X[:40, :2])
    )
    frame = pd.DataFrame({"age": X[:, 0], "job": np.where(X[:, 1] > 0, "baker", "nurse")})
    other = frame.copy()
    other.loc[5, "job"] = "never seen before"
    other.loc[5, "age"] = np.nan
    model = make_pipeline(
        ColumnTransformer(
            [("job", OneHotEncoder(handle_unknown="ignore"), ["job"])], remainder="passthrough"
        ),
        DecisionTreeClassifier(max_depth=3),
    )
    check_estimator(model, Neighbours(frame, Y, other, Y, frame[:40]))


@pytest.mark.claim("SHARDS")
def test_several_classes() -> None:
    three = np.digitize(X[:, 0], [-0.5, 0.5])
    check_estimator(
        LogisticRegression(),
        Neighbours.replacing(X, three, 3, [0, 0, 0], 2, queries=X[:40], classes=(0, 1, 2)),
    )


class Remembers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A planted leak: the class itself keeps the mean of every row it ever saw."""

    seen: list[float] = []  # noqa: RUF012

    def fit(self, X: Any, y: Any) -> Remembers:
        type(self).seen.append(float(np.mean(X)))
        self.limit_ = float(np.sum(self.seen)) + 60 * len(self.seen)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        return (np.asarray(X)[:, 0] * 100 > self.limit_).astype(int)


class Centred(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A planted leak: it centres queries by their own mean, so that votes depend on the batch."""

    def fit(self, X: Any, y: Any) -> Centred:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(X[:, 0] > np.mean(X[:, 0]), dtype=int)


class GlobalCoins(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Draws from the global generators, as many numbers as its rows tell it to."""

    def fit(self, X: Any, y: Any) -> GlobalCoins:
        self.classes_ = np.unique(y)
        np.random.random(int(10 * abs(X[0, 0])))  # noqa: NPY002
        self.limit_ = np.random.normal() + random.gauss(0, 1)  # noqa: NPY002
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        return (np.asarray(X)[:, 0] > self.limit_).astype(int)


@pytest.mark.claim("SHARDS")
def test_planted_leaks_are_caught() -> None:
    far = pair([1e3, 1e3, 1e3], 1)
    with pytest.raises(AssertionError, match="changed the votes of"):
        check_estimator(Remembers(), far)
    with pytest.raises(AssertionError, match="a vote depends on"):
        check_estimator(Centred(), far)
    check_estimator(GlobalCoins(), far)  # harmless, because each shard has a seed of its own


@pytest.mark.claim("SHARDS")
def test_global_coins_would_leak_without_a_seed_for_each_shard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from contextlib import nullcontext

    monkeypatch.setattr(quiet, "own_randomness", lambda seed: nullcontext())
    np.random.seed(0)  # noqa: NPY002
    with pytest.raises(AssertionError):
        check_estimator(GlobalCoins(), pair([1e3, 1e3, 1e3], 1))


def test_the_trial_refuses_what_depends_on_earlier_fits_or_on_the_batch() -> None:
    facts = (row_source(X), np.zeros((1, 3)))
    Remembers.seen.clear()
    with pytest.raises(InvalidParameter, match="two different models"):
        try_out(Trainer(Remembers(), 2), *facts, 30)
    with pytest.raises(InvalidParameter, match="asked alone"):
        try_out(Trainer(Centred(), 2), *facts, 30)
    with pytest.raises(InvalidParameter, match="fails on 30 made-up rows with 3 columns"):
        try_out(Trainer(Broken("fit"), 2), *facts, 30)
    with pytest.raises(InvalidParameter, match="a warning"):
        try_out(Trainer(Broken("warn"), 2), *facts, 30)
    with pytest.raises(InvalidParameter, match="asks for predict"):
        try_out(Trainer(Broken("predict"), 2), *facts, 30)


class Broken(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fails where it is told to, whatever the rows."""

    def __init__(self, where: str = "fit") -> None:
        self.where = where

    def fit(self, X: Any, y: Any) -> Broken:
        if self.where == "fit":
            raise RuntimeError("asks for fit")
        if self.where == "warn":
            warnings.warn("a warning", stacklevel=2)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        raise RuntimeError("asks for predict")


class PickyTree(DecisionTreeClassifier):  # type: ignore[misc]
    """Fails, or warns, if it sees a certain row."""

    def __init__(self, warn: bool = False) -> None:
        super().__init__(max_depth=2)
        self.warn = warn

    def fit(self, X: Any, y: Any) -> PickyTree:
        super().fit(X, y)
        if np.any(X[:, 0] > 500):
            if not self.warn:
                raise RuntimeError("this row is too far out")
            warnings.warn("this row is far out", stacklevel=2)
        return self


@pytest.mark.claim("SHARDS")
@pytest.mark.parametrize("warn", [False, True])
def test_a_shard_that_fails_or_warns_votes_for_the_first_class(warn: bool) -> None:
    spoiled = pair([1e3, 0, 0], 1)
    models = models_of(PickyTree(warn), spoiled.X_other, spoiled.y_other, spoiled)
    failed = [place for place, model in enumerate(models) if model is None]
    split = Split.draw(len(X), 6, SeededSource(spoiled.seed))
    assert failed == [shard for shard in range(6) if 17 in split.places(shard)]
    assert (votes_of(models, spoiled)[failed[0]] == [1, 0]).all()


@pytest.mark.claim("SHARDS")
def test_a_shard_that_lacks_a_class_votes_for_the_first() -> None:
    trainer = Trainer(DecisionTreeClassifier(), 2)
    for only in (0, 1):
        model = trainer.train(X[:20], np.full(20, only), 1)
        assert model is None
        assert (Ensemble([model], 2).votes(X[:5]) == [1, 0]).all()
    assert Trainer(Thresholds(), 2).train(X[:20, :1], np.ones(20, dtype=np.int64), 1) is None


def test_rows_without_a_declared_label_are_left_out_by_their_shard() -> None:
    labels = Y[:40].copy()
    labels[:10] = -1
    kept = Trainer(DecisionTreeClassifier(random_state=0), 2).train(X[10:40], Y[10:40], 1)
    left = Trainer(DecisionTreeClassifier(random_state=0), 2).train(X[:40], labels, 1)
    assert (kept.predict(X) == left.predict(X)).all()


@pytest.mark.claim("SHARDS")
def test_each_worker_gets_its_own_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    numbered = np.arange(1000, dtype=float).reshape(-1, 1)
    seen: list[NDArray[Any]] = []

    def train(self: Trainer, rows: Any, labels: Any, seed: int) -> None:
        assert rows.base is None or len(rows) <= len(numbered)
        assert (labels == rows[:, 0].astype(int) % 2).all()
        seen.append(rows[:, 0].copy())

    monkeypatch.setattr(Trainer, "train", train)
    monkeypatch.setattr(shards, "LOADED_CELLS", 100)  # several loads
    split = Split.draw(1000, 37, SYSTEM)
    train_shards(
        row_source(numbered),
        (np.arange(1000) % 2).astype(np.int64),
        split,
        Trainer(None, 2),
        shard_seeds(37, SYSTEM),
    )
    assert len(seen) == 37
    assert sorted(np.concatenate(seen).astype(int).tolist()) == list(range(1000))
    for shard, rows in enumerate(seen):
        assert rows.astype(int).tolist() == split.places(shard).tolist()
    assert {len(rows) for rows in seen} == {27, 28}


def test_the_split_is_drawn_at_random_and_fails_clearly() -> None:
    orders = {tuple(Split.draw(20, 4, SYSTEM).order.tolist()) for _ in range(5)}
    assert len(orders) == 5
    with pytest.raises(InvalidParameter, match="each shard needs rows"):
        Split.draw(3, 4, SYSTEM)


def test_the_same_coins_give_the_same_votes_in_any_number_of_workers() -> None:
    spoiled = pair([0, 0, 0], 1)
    one = votes_of(models_of(RandomForestClassifier(3), X, Y, spoiled), spoiled)
    with joblib.parallel_config(n_jobs=2):
        two = votes_of(models_of(RandomForestClassifier(3), X, Y, spoiled), spoiled)
    assert np.array_equal(one, two)


def test_global_generators_are_put_back() -> None:
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    expected = _drawn()
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    with own_randomness(9):
        np.random.random(7)  # noqa: NPY002
        random.random()  # noqa: S311
    assert _drawn() == expected


def test_global_generators_are_seeded_for_each_of_many_shards_and_put_back_once() -> None:
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    state, expected = np.random.get_state(), random.getstate()  # noqa: NPY002
    found = []
    with generators_kept():
        for seed in (9, 9, 8):
            with own_randomness(seed):
                before = _drawn()
                with own_randomness(seed):  # a shard that trains shards of its own
                    assert _drawn() == before
                found.append((before, _drawn()))
    assert found[0] == found[1] != found[2]
    assert found[0][0] != found[0][1]  # the inner one was put back
    assert str(np.random.get_state()) == str(state)  # noqa: NPY002
    assert random.getstate() == expected


def _drawn() -> tuple[float, float]:
    return np.random.random(), random.random()  # noqa: NPY002, S311


@pytest.mark.parametrize(
    ("model", "what"),
    [
        (DecisionTreeClassifier, "give an instance"),
        ("tree", "give an instance"),
        (StandardScaler(), "give an instance"),
        (RandomForestClassifier(verbose=2), "verbose=2"),
        (make_pipeline(StandardScaler(), GaussianNB(), memory="folder"), "a store that all shards"),
        (make_pipeline(FrozenEstimator(StandardScaler().fit(X)), GaussianNB()), "fitted already"),
    ],
)
def test_what_could_cross_shards_is_refused(model: Any, what: str) -> None:
    with pytest.raises(InvalidParameter, match=what):
        check_model(model)
    with pytest.raises(InvalidParameter, match=what):
        QueryRelease(model).fit(X, Y)


def test_a_fitted_estimator_is_cloned() -> None:
    tree = DecisionTreeClassifier().fit(X, Y)
    release = QueryRelease(tree, epsilon=np.inf, n_shards=4).fit(X, 1 - Y)
    assert np.mean(release.predict(X) == 1 - Y) > 0.8
