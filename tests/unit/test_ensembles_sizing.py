"""The trial of shard sizes: it finds what an estimator needs, and looks at no private row."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from cumae import EverlastingPredictor, QueryRelease, UniversalQueryRelease
from cumae.checks import Neighbours
from cumae.checks.predictors import one_row_cannot_be_seen
from cumae.concepts import Thresholds
from cumae.data import ArrayRows, Columns, row_source
from cumae.ensembles import sizing
from cumae.ensembles.sizing import SizeTrial, try_sizes
from cumae.ensembles.trainer import Trainer
from cumae.made_up import rows_at
from cumae.predictors import state as states
from cumae.predictors.everlasting.margins import MarginTrainer
from tests.plants import sizes_by_rows

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(8)
X = RNG.random((1500, 10))
Y = (X[:, 0] > 0.5).astype(int)
TREE = DecisionTreeClassifier(max_depth=4)
LEAVES = DecisionTreeClassifier(max_depth=4, min_samples_leaf=20)


def tried(
    estimator: Any, width: int = 10, n_classes: int = 2, usual: int = 10, noise: float = 134.0
) -> SizeTrial:
    """Try sizes for 13,000 rows at the noise of 1,000 queries and epsilon 1."""
    rows, stand_in = row_source(np.zeros((4, width))), np.full((1, width), 0.5)
    told: dict[str, Any] = {"usual": usual, "n_rows": 13_000, "noise": noise}
    return try_sizes(Trainer(estimator, n_classes), rows, stand_in, **told, progress=False)


# What is chosen


@pytest.mark.parametrize("estimator", [TREE, GaussianNB(), KNeighborsClassifier(3)])
def test_estimators_that_learn_from_few_rows_keep_the_usual_size(estimator: Any) -> None:
    assert tried(estimator).size == 10


@pytest.mark.parametrize(
    ("estimator", "least"), [(KNeighborsClassifier(15), 20), (SVC(), 20), (LEAVES, 40)]
)
def test_estimators_that_need_more_rows_get_them(estimator: Any, least: int) -> None:
    found = tried(estimator, noise=45.0)
    scores = dict(found.scores)
    assert found.size >= least
    assert scores[found.size] > scores[10] + 0.02


def test_with_less_noise_shards_may_be_larger() -> None:
    sizes = [tried(LEAVES, noise=noise).size for noise in (600.0, 134.0, 5.0)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_what_never_learns_keeps_the_usual_size() -> None:
    found = tried(DummyClassifier(strategy="most_frequent"))
    assert found.size == 10
    assert [score for _, score in found.scores] == pytest.approx([0.5] * len(found.scores))


class Fails(GaussianNB):  # type: ignore[misc]  # untyped base
    """Raises below 30 rows."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if len(X) < 30:
            raise ValueError("too few")
        return super().fit(X, y, sample_weight)


def test_an_estimator_that_fails_on_few_rows_gets_more() -> None:
    assert dict(tried(Fails()).scores)[20] == pytest.approx(0.5)
    assert tried(Fails()).size == 40
    for refused in (Fails(), KNeighborsClassifier(15)):
        one = QueryRelease(refused, 5.0, 1e-6, 50).fit(X, Y)  # at ten rows it is refused
        assert len(X) // one.n_shards_ >= 20
        assert one.size_trial_[0]["rows"] < 20


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_made_up_labels_have_all_classes_and_can_be_learnt(n_classes: int) -> None:
    spread, coins = sizing._spread(20_000, 6)
    tables = sizing._labels(spread, coins, n_classes)
    clean = sizing._labels(spread, np.full(20_000, 0.5), n_classes)
    for labels in tables[:4]:
        assert np.bincount(labels) / 20_000 == pytest.approx(1 / n_classes, abs=0.01)
    rare = np.bincount(tables[4]) / 20_000
    assert rare[0] == pytest.approx(0.85, abs=0.01)
    assert rare[1:] == pytest.approx(0.15 / (n_classes - 1), abs=0.01)
    if n_classes == 2:  # a table of boxes has ties without noise
        agree = [np.mean(tables[k] == clean[k]) for k in (0, 1, 3)]
        assert agree == pytest.approx([0.79, 0.79, 0.73], abs=0.02)
    assert tried(TREE, n_classes=n_classes).scores[0][1] > 1 / n_classes + 0.03


@pytest.mark.parametrize("width", [1, 2, 40])
def test_any_number_of_columns_will_do(width: int) -> None:
    assert tried(TREE, width).scores[0][1] > 0.53


def test_columns_of_any_kind_will_do() -> None:
    frame = pd.DataFrame({"a": [0.5, 1.0] * 300, "b": ["x", "y"] * 300, "c": [True, False] * 300})
    declared = {"a": (0, 2), "b": ["x", "y", None], "c": bool}
    labels = [0, 1] * 300
    one = QueryRelease(SVC(), 20.0, 1e-6, 20, columns=declared).fit(frame, labels)
    assert one.size_trial_[0]["score"] > 0.5
    trainer = Trainer(TREE, 2, Columns(declared, ["a", "b", "c"], 3))
    spread, _ = sizing._spread(500, 3)
    table = rows_at(row_source(frame), trainer.columns, spread)
    assert table["b"].isna().any()
    assert set(table["c"]) == {True, False}


# The score


@pytest.mark.parametrize("noise", [0.2, 0.5, 2.0])
def test_the_score_of_unanimous_votes_is_that_of_the_noise(noise: float) -> None:
    right = np.arange(40) % 2
    shares = np.eye(2)[right]
    assert sizing._score([(shares, right)], noise, 32) == pytest.approx(norm.cdf(0.5 / noise))
    assert sizing._score([(shares[::-1], right)], noise, 32) == pytest.approx(
        norm.cdf(-0.5 / noise)
    )


def test_few_models_have_the_score_of_many() -> None:
    """What few votes spread by themselves is taken off the noise."""
    right = np.zeros(4000, dtype=int)
    chance = RNG.beta(4, 3, 4000)
    exact = norm.cdf((chance - 0.5) / 0.2).mean()
    for count in (12, 32):
        ones = RNG.binomial(count, chance) / count
        found = sizing._score([(np.column_stack([ones, 1 - ones]), right)], 0.2, count)
        assert found == pytest.approx(exact, abs=0.01)


# What it looks at


class Untouchable(ArrayRows):
    """Rows that must not be read."""

    def take(self, places: Any) -> Any:
        raise AssertionError("a private row was read")


@pytest.mark.claim("SHARDS")
def test_no_row_is_read() -> None:
    rows, stand_in = Untouchable(X), np.full((1, 10), 0.5)
    for trainer in (Trainer(LEAVES, 2), MarginTrainer(LEAVES, 2)):
        told: dict[str, Any] = {"usual": 10, "n_rows": len(X), "noise": 50.0}
        found = try_sizes(trainer, rows, stand_in, **told)
        sizing._KNOWN.clear()
        assert try_sizes(trainer, row_source(1e9 * X), stand_in, **told) == found


@pytest.mark.claim("SHARDS", "EVER", "QUERY")
@pytest.mark.parametrize("estimator", [LEAVES, SVC()])
def test_what_rows_hold_changes_no_size(estimator: Any) -> None:
    seen = []
    for rows, labels in ((X, Y), (np.full_like(X, np.nan), 1 - Y), (np.zeros_like(X), 0 * Y)):
        release = QueryRelease(estimator, 1.0, 1e-6, 100).fit(rows, labels)
        phases = EverlastingPredictor(estimator, 3.0, prior=False, max_rows=6000).fit(rows, labels)
        rules = phases._state_.rules
        seen.append((release.n_shards_, release.size_trial_, phases.size_trial_, rules.schedule))
        sizing._KNOWN.clear()
    assert seen[0] == seen[1] == seen[2]


def test_the_choice_is_the_same_each_time_and_leaves_other_coins_alone() -> None:
    np.random.seed(5)  # noqa: NPY002 - somebody else's
    expected = np.random.random(3).tolist()  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    before, estimator = tried(TREE), DecisionTreeClassifier(splitter="random")
    random = tried(estimator)
    sizing._KNOWN.clear()
    assert (tried(TREE), tried(estimator)) == (before, random)
    assert np.random.random(3).tolist() == expected  # noqa: NPY002
    assert not hasattr(estimator, "tree_")


def test_the_same_question_trains_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sizing._KNOWN.clear()
    first = tried(TREE)
    monkeypatch.setattr(Trainer, "train_many", lambda *_: pytest.fail("it was trained again"))
    assert tried(TREE) == first
    assert tried(TREE, noise=135.0).size == first.size


# Predictors


@pytest.mark.claim("EVER")
def test_phases_have_the_size_that_the_estimator_needs() -> None:
    one = EverlastingPredictor(LEAVES, 20.0, prior=False, max_rows=200_000).fit(X, Y)
    schedule = one._state_.rules.schedule
    size = schedule.smallest
    assert size >= 40
    assert one.n_shards_ == len(X) // size
    sizes = [schedule.shard_size(n) for n in (750, 1500, 30_000, 200_000)]
    assert sizes[0] == sizes[1] == size
    assert sizes == sorted(sizes)
    again = states.restore(one.to_arrays())
    assert again.size_trial_ == one.size_trial_ != []
    assert again._state_.rules.schedule == schedule


def test_a_release_shows_and_stores_its_trial() -> None:
    one = QueryRelease(LEAVES, 5.0, 1e-6, 50).fit(X, Y)
    assert one.n_shards_ in [len(X) // line["rows"] for line in one.size_trial_]
    assert states.restore(one.to_arrays()).size_trial_ == one.size_trial_
    universal = UniversalQueryRelease(LEAVES, 5.0, 1e-6, 50).fit(X, Y)
    assert universal.size_trial_ == one.size_trial_


def test_nothing_is_tried_if_the_size_is_given_or_for_a_concept_class() -> None:
    assert QueryRelease(TREE, 5.0, 1e-6, 50, n_shards=100).fit(X, Y).size_trial_ == []
    assert QueryRelease(Thresholds(), 5.0, 1e-6, 50).fit(X[:, :1], Y).size_trial_ == []
    given = EverlastingPredictor(TREE, 5.0, prior=False, shard_size=20).fit(X, Y)
    assert given.size_trial_ == []
    assert len(X) // given.n_shards_ == 20


def test_weights_are_decided_at_the_size_that_is_chosen() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = EverlastingPredictor(Fails(), 20.0, prior=False).fit(X, Y)
    assert one._state_.rules.weighted
    assert len(X) // one.n_shards_ >= 30
    assert math.isfinite(one.noise_per_vote_)


# A planted bug


@pytest.mark.claim("QUERY", "EVER")
@pytest.mark.parametrize(
    "predictor", [QueryRelease(TREE, 5.0, 1e-6, 50), EverlastingPredictor(TREE, 20.0, prior=False)]
)
def test_a_size_that_was_chosen_by_the_rows_is_caught(
    predictor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Neighbours.replacing(X, Y, 7, np.full(10, 1e6), 1, queries=X[:10])
    one_row_cannot_be_seen(predictor, pair)
    sizes_by_rows(monkeypatch)
    with pytest.raises(AssertionError, match="n_shards_ depends on a row"):
        one_row_cannot_be_seen(predictor, pair)
