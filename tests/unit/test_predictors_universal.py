"""UniversalQueryRelease: two stages, a hypothesis or a student, and any number of answers."""

from __future__ import annotations

import math
import pickle
import warnings
from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cumae.checks import PREDICTOR_LAWS, Neighbours
from cumae.concepts import Rectangles, Stumps, Thresholds
from cumae.errors import BudgetExhausted, InvalidData, InvalidParameter, LiveState, TooFewRows
from cumae.predictors.release import stages
from cumae.predictors.release.stages import split_epsilon, universal_cost
from cumae.predictors.release.students import Lesson, train_student
from cumae.predictors.release.universal import UniversalQueryRelease
from cumae.predictors.release.voting import Voting
from cumae.privacy import Budget, Guarantee, Pure
from cumae.theorems.query_release import SubSampSizes, agnostic_sizes, subsamp_sizes

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(6)
X = RNG.random((4000, 1))
Y = ((X[:, 0] > 0.4) ^ (RNG.random(4000) < 0.1)).astype(int)
QUERIES = RNG.random((60, 1))
FAST: dict[str, Any] = {"mechanism": "gaussian", "n_shards": 15}


def voting(one: UniversalQueryRelease) -> Voting:
    """Return what answers in the first stage."""
    found: Voting | None = one._state_.voting
    assert found is not None
    return found


class Recorder(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Keeps what it was trained on; labels by the sign of the first column less 0.5."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        self.seen_ = (X, np.asarray(y), sample_weight)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return self.classes_[(np.asarray(X)[:, 0] > 0.5).astype(int)]


class Failing(KNeighborsClassifier):  # type: ignore[misc]
    """Fails on more than 45 rows, which the made-up ones are not."""

    def fit(self, X: Any, y: Any) -> Any:
        if len(X) > 45:
            raise RuntimeError("too many rows for me")
        return super().fit(X, y)


# Two stages with a concept class


@pytest.mark.claim("UNV")
@pytest.mark.parametrize("release", ["query", "agnostic"])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
def test_both_stages_add_up(release: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    draws: list[tuple[float, Any, int]] = []
    choose = Thresholds.choose

    def chosen(concept: Any, points: Any, X: Any, y: Any, epsilon: float, **more: Any) -> Any:
        draws.append((epsilon, np.array(points), len(y)))
        return choose(concept, points, X, y, epsilon, **more)

    monkeypatch.setattr(Thresholds, "choose", chosen)
    budget = Budget(1.7, 1e-6)
    one = UniversalQueryRelease(
        Thresholds(), 1.7, 1e-6, 40, release=release, share=share, budget=budget, **FAST
    ).fit(X, Y)
    first, second = one.stages_
    assert (first["name"], second["name"]) == ("first queries", "hypothesis")
    assert first["epsilon"] <= 1.7 * share
    assert second["epsilon"] == pytest.approx(1.7 * (1 - share))
    assert one.guarantee_.epsilon == pytest.approx(first["epsilon"] + second["epsilon"], rel=1e-7)
    assert one.guarantee_.epsilon <= 1.7
    assert len(budget.entries) == 1  # the release inside did not pay again
    assert budget.spent[0] == pytest.approx(one.guarantee_.epsilon, rel=1e-7)
    if release == "query":
        inner = voting(one).rule
        assert first["epsilon"] == pytest.approx(inner.cost.epsilon(1e-6), rel=1e-6)
        assert inner.max_queries == 40
    draws.clear()
    one.predict(QUERIES)
    ((epsilon, points, scored),) = draws
    assert epsilon == second["epsilon"]
    assert np.array_equal(points, QUERIES[:40])
    assert scored == len(X)
    one.predict(QUERIES)
    assert len(draws) == 1
    assert {"UNV", "SSPP", "QUERY"} < set(one.guarantee_.claims)


@pytest.mark.claim("UNV")
def test_shares_never_exceed_the_whole() -> None:
    for epsilon in (0.1, 1.0, 1 / 3, 7.3, 1e-5):
        for share in (0.1, 1 / 3, 0.5, 0.7, 0.999):
            before, after = split_epsilon(epsilon, share)
            first = Guarantee.of(Pure(before), protects="one training row", claims=())
            assert universal_cost(first, after).eps <= epsilon
            assert before + after == pytest.approx(epsilon)


@pytest.mark.claim("UNV")
def test_without_privacy_it_is_the_best_labelling_of_the_queries() -> None:
    # Private rows at the queried points, so that only the labelling counts.
    rng = np.random.default_rng(2)
    points = np.arange(30.0).reshape(-1, 1)
    rows = rng.integers(0, 30, 600).astype(float).reshape(-1, 1)
    labels = ((rows[:, 0] > 11) ^ (rng.random(600) < 0.2)).astype(int)
    one = UniversalQueryRelease(Thresholds(), math.inf, n_first=30, n_shards=9).fit(rows, labels)
    votes = voting(one).ensemble.votes(points)
    assert one.predict(points[:10]).tolist() == np.argmax(votes[:10], axis=1).tolist()
    assert one.stage_ == 1
    mixed = one.predict(np.concatenate([points[10:], points]))  # crosses the stages
    assert mixed[:20].tolist() == np.argmax(votes[10:], axis=1).tolist()
    assert one.stage_ == 2
    best = max(
        np.count_nonzero(((rows[:, 0] > cut) ^ flip) == labels)
        for cut in np.arange(-0.5, 30)
        for flip in (False, True)
    )
    assert np.count_nonzero(one.hypothesis_.predict(rows) == labels) == best
    assert mixed[20:].tolist() == one.hypothesis_.predict(points).tolist()


@pytest.mark.parametrize("release", ["query", "agnostic"])
def test_accuracy_of_both_stages(release: str) -> None:
    rng = np.random.default_rng(8)
    x = rng.random((40_000, 1))
    y = (x[:, 0] > 0.3) ^ (rng.random(40_000) < 0.1)
    one = UniversalQueryRelease(
        Thresholds(), 2.0, 1e-6, 100, release=release, random_state=4, mechanism="gaussian"
    ).fit(x, y)
    queries = rng.random((3000, 1))
    right = one.predict(queries) == (queries[:, 0] > 0.3)
    assert np.mean(right[:100]) > 0.85
    assert np.mean(right[100:]) > 0.95
    assert one.remaining_ == math.inf


def test_private_things_are_gone_after_the_first_stage() -> None:
    one = UniversalQueryRelease(Thresholds(), 5.0, n_first=20, **FAST).fit(X, Y)
    with pytest.raises(AttributeError, match="after the first stage"):
        _ = one.hypothesis_
    one.predict(QUERIES[:20])
    assert one.stage_ == 2
    assert one._state_.voting is None
    assert one._state_.waiting is not None
    assert one._state_.waiting.rows is None
    with pytest.raises(AttributeError, match="student"):
        _ = one.student_
    queries, shares = one.first_answers_
    assert np.array_equal(queries, QUERIES[:20])
    assert shares.sum(axis=1) == pytest.approx(1.0)


def test_a_first_stage_that_runs_out_of_unclear_answers() -> None:
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 2, 4000)
    one = UniversalQueryRelease(
        Thresholds(), 2.0, 1e-6, 30, mechanism="stability", max_unstable=1, abstain=True, n_shards=9
    ).fit(X, noise)
    with pytest.warns(UserWarning, match="not looked at"):
        answers = one.predict(QUERIES[:20])
    assert answers.tolist().count(-1) >= 10
    with pytest.warns(UserWarning, match="not looked at"):
        assert set(one.predict(QUERIES[:10]).tolist()) == {-1}
    assert one.stage_ == 2
    assert set(one.predict(QUERIES).tolist()) <= {0, 1}
    guessing = UniversalQueryRelease(
        Thresholds(), 2.0, 1e-6, 30, mechanism="stability", max_unstable=1, n_shards=9
    ).fit(X, noise)
    with pytest.warns(UserWarning, match="not looked at"):
        assert set(guessing.predict(QUERIES[:25]).tolist()) <= {0, 1}


def test_first_queries_follow_from_alpha() -> None:
    one = UniversalQueryRelease(Thresholds("above"), 5.0, **FAST).fit(X, Y)
    assert one.n_first_ == math.ceil(40 * (math.log(10) + math.log(20)))
    many = UniversalQueryRelease(Rectangles(), 5.0, **FAST)
    rows = np.tile(X, 3)[:200]
    assert many.fit(rows, Y[:200]).n_first_ == 100  # more would take minutes


# Students


@pytest.mark.claim("UNV")
@pytest.mark.parametrize("epsilon", [math.inf, 3.0])
def test_soft_labels_are_shares_of_noisy_votes(epsilon: float) -> None:
    one = UniversalQueryRelease(
        DecisionTreeClassifier(max_depth=2),
        epsilon,
        n_first=40,
        student=Recorder(),
        classes=("no", "yes"),
        **FAST,
    ).fit(X, np.where(Y == 1, "yes", "no"))
    votes = voting(one).ensemble.votes(QUERIES[:40])
    answers = one.predict(QUERIES)
    queries, labels, weights = one.student_.seen_
    shares = one.first_answers_[1]
    if epsilon == math.inf:
        assert np.array_equal(shares, votes / 15)
    assert len(weights) == np.count_nonzero(shares)
    for place, query in enumerate(QUERIES[:40]):
        here = queries[:, 0] == query[0]
        assert weights[here].sum() == pytest.approx(1.0)
        assert weights[here & (labels == "yes")].sum() == pytest.approx(shares[place, 1])
    picked = np.where(shares[:, 1] > shares[:, 0], "yes", "no")
    assert answers[:40].tolist() == picked.tolist()
    later = np.where(QUERIES[40:, 0] > 0.5, "yes", "no")
    assert answers[40:].tolist() == later.tolist()
    assert one.guarantee_.epsilon <= epsilon
    assert [stage["epsilon"] for stage in one.stages_][1] == 0.0
    if epsilon < math.inf:  # all of it went to the votes
        assert one.stages_[0]["epsilon"] == pytest.approx(epsilon, rel=1e-3)


def test_lessons() -> None:
    table = np.arange(4.0).reshape(-1, 1)
    lesson = Lesson.of_votes(table, np.array([[-3, 13], [5, 5], [0, 0], [30, 10]]))
    assert lesson.shares.tolist() == [[0, 1], [0.5, 0.5], [0, 0], [0.75, 0.25]]
    classes = np.array(["a", "b"])
    X_seen, labels, weights = train_student(Recorder(), lesson, classes, 1).seen_
    assert X_seen[:, 0].tolist() == [0, 1, 1, 3, 3]
    assert labels.tolist() == ["b", "a", "b", "a", "b"]
    assert weights.tolist() == [1, 0.5, 0.5, 0.75, 0.25]
    # Without weights each query enters once, and those without an answer not at all.
    hard = train_student(KNeighborsClassifier(1), lesson, classes, 1)
    assert hard.n_samples_fit_ == 3
    assert hard.predict(table).tolist() == ["b", "a", "a", "a"]
    # The last step of a pipeline gets the weights.
    piped = train_student(make_pipeline(StandardScaler(), Recorder()), lesson, classes, 1)
    assert piped[-1].seen_[2].tolist() == weights.tolist()
    # One class left, or none.
    only = Lesson.of_labels(table, np.array([1, 1, -1, -1]), 2)
    assert train_student(LogisticRegression(), only, classes, 1).predict(table[:2]).tolist() == [
        "b",
        "b",
    ]
    nothing = Lesson.of_labels(table, np.full(4, -1), 2)
    assert train_student(LogisticRegression(), nothing, classes, 1).predict(table[:1]) == ["a"]


@pytest.mark.claim("UNV")
def test_a_pool_is_labelled_at_once() -> None:
    rng = np.random.default_rng(3)
    x = rng.random((20_000, 2))
    y = (x[:, 0] > 0.3) ^ (rng.random(20_000) < 0.1)
    pool = rng.random((300, 2))
    one = UniversalQueryRelease(
        DecisionTreeClassifier(max_depth=1), 2.0, student=LogisticRegression(), random_state=3
    )
    one.fit(x, y, X_public=pool)
    assert (one.stage_, one.n_first_) == (2, 300)
    assert isinstance(one.student_, LogisticRegression)
    assert one._state_.voting is None
    queries = rng.random((2000, 2))
    assert np.mean(one.predict(queries) == (queries[:, 0] > 0.3)) > 0.9
    assert np.array_equal(one.first_answers_[0], pool)


def test_the_default_student_is_the_estimator() -> None:
    one = UniversalQueryRelease(LogisticRegression(C=7.0), 5.0, n_first=30, **FAST).fit(X, Y)
    one.predict(QUERIES)
    assert isinstance(one.student_, LogisticRegression)
    assert one.student_.C == 7.0
    assert one.student_.classes_.tolist() == [0, 1]
    plain = UniversalQueryRelease(epsilon=5.0, n_first=30, **FAST).fit(X, Y)
    plain.predict(QUERIES)
    assert isinstance(plain.student_, DecisionTreeClassifier)


def test_a_student_for_a_concept_class_and_hard_labels() -> None:
    one = UniversalQueryRelease(
        concept_class=Stumps(),
        epsilon=40.0,
        n_first=40,
        student=KNeighborsClassifier(3),
        mechanism="stability",
        max_unstable=40,
        release="agnostic",
        n_shards=300,
        random_state=1,
    ).fit(X, Y)
    answers = one.predict(QUERIES)
    assert set(np.unique(one.first_answers_[1])) <= {0.0, 1.0}
    assert isinstance(one.student_, KNeighborsClassifier)
    assert answers[40:].tolist() == one.student_.predict(QUERIES[40:]).tolist()


def test_frames_reach_pipelines_as_frames() -> None:
    frame = pd.DataFrame({"a": X[:, 0], "b": RNG.random(4000)})
    one = UniversalQueryRelease(DecisionTreeClassifier(max_depth=1), 9.0, n_first=30, **FAST)
    one.fit(frame, Y)
    one.predict(frame[:10])
    one.predict(frame[10:50])
    assert one.stage_ == 2
    assert one.student_.feature_names_in_.tolist() == ["a", "b"]
    numbers = UniversalQueryRelease(Stumps(), 9.0, n_first=30, **FAST).fit(frame, Y)
    assert len(numbers.predict(frame[:50])) == 50


def test_a_student_that_fails_can_be_replaced() -> None:
    one = UniversalQueryRelease(Stumps(), 9.0, n_first=50, student=Failing(), **FAST).fit(X, Y)
    one.predict(QUERIES[:49])
    with pytest.raises(RuntimeError, match="too many rows"):
        one.predict(QUERIES[49:])
    assert one.stage_ == 2
    one.set_params(student=LogisticRegression())
    assert len(one.predict(QUERIES)) == 60
    assert len(one.first_answers_[1]) == 50


# What cannot be seen, and what is refused


@pytest.mark.claim("UNV")
@pytest.mark.usefixtures("trials_shared")
@pytest.mark.parametrize("law", PREDICTOR_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("model", [Thresholds(), DecisionTreeClassifier(max_depth=1)])
def test_laws_of_predictors(model: Any, law: Any) -> None:
    for row, label in (([np.nan], 1), ([1.7e308], 9)):
        pair = Neighbours.replacing(X[:900], Y[:900], 7, row, label, queries=QUERIES[:20])
        law(UniversalQueryRelease(model, 5.0, n_first=10, **FAST), pair)


@pytest.mark.claim("UNV")
def test_one_row_of_objects_cannot_be_seen() -> None:
    table = X[:800].astype(object)
    facts = []
    for cell in (0.5, "text", None, 10**400):
        one = table.copy()
        one[3, 0] = cell
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", TooFewRows)
            release = UniversalQueryRelease(Thresholds(), 9.0, n_first=10, **FAST)
            release.fit(one, Y[:800]).predict(QUERIES)
        facts.append((str(release.guarantee_), release.stages_))
    assert all(fact == facts[0] for fact in facts)


def test_refusals_before_anything_is_paid() -> None:
    budget = Budget(1.0, 1e-5)
    concept: list[tuple[dict[str, Any], str]] = [
        ({"share": 1.0}, "share"),
        ({"share": 0.0}, "share"),
        ({"release": "both"}, "release"),
        ({"constants": "own"}, "constants"),
        ({"mechanism": "offline"}, "mechanism"),
        ({"n_first": 0}, "n_first"),
        ({"student": LinearRegression()}, "student"),
        ({"student": LogisticRegression}, "student"),
        ({"student": Thresholds()}, "concept class"),
        ({"student": KNeighborsClassifier(400)}, "made-up rows"),
        ({"constants": "paper", "student": LogisticRegression()}, "constants"),
        ({"estimator": LogisticRegression(), "release": "agnostic"}, "release"),
        ({"concept_class": Stumps()}, "both given"),
    ]
    for parameters, message in concept:
        one = UniversalQueryRelease(Thresholds(), budget=budget, **FAST).set_params(**parameters)
        with pytest.raises((InvalidParameter, InvalidData), match=message):
            one.fit(X, Y)
    with pytest.raises(InvalidParameter, match="SemiPrivateLearner"):
        UniversalQueryRelease(Thresholds(), budget=budget).fit(X, Y, QUERIES)
    tree = UniversalQueryRelease(epsilon=1.0, budget=budget, **FAST)
    for pool, message in (
        (np.zeros((0, 1)), "no rows"),
        (np.zeros((5, 2)), "features"),
        ([[np.nan]], "NaN"),
    ):
        with pytest.raises(InvalidData, match=message):
            tree.fit(X, Y, pool)
    assert not budget.entries
    with pytest.raises(BudgetExhausted):
        UniversalQueryRelease(Thresholds(), 1.1, budget=budget, **FAST).fit(X, Y)
    assert not budget.entries


def test_minus_one_is_a_class_unless_it_is_an_answer() -> None:
    labels = np.where(Y == 1, 1, -1)
    one = UniversalQueryRelease(Thresholds(), 9.0, n_first=10, classes=(-1, 1), **FAST)
    assert set(one.fit(X, labels).predict(QUERIES).tolist()) == {-1, 1}
    for student in (None, LogisticRegression()):
        clear = clone(one).set_params(abstain=True, student=student)
        with pytest.raises(InvalidParameter, match="which is a declared class"):
            clear.fit(X, labels)


def test_it_is_a_scikit_learn_estimator_that_cannot_be_copied() -> None:
    one = UniversalQueryRelease(Thresholds(), 5.0, n_first=10, **FAST)
    for name in ("remaining_", "stage_", "hypothesis_", "student_", "first_answers_"):
        with pytest.raises(NotFittedError):
            getattr(one, name)
    with pytest.raises(NotFittedError):
        one.predict(QUERIES)
    one.fit(X, Y)
    with pytest.raises(LiveState):
        pickle.dumps(one)
    assert clone(one).get_params()["n_first"] == 10
    assert one.predict(np.zeros((0, 1))).tolist() == []
    assert one.stage_ == 1
    assert one.first_answers_[1].shape == (0, 2)


# The paper's sizes


def test_the_paper_refuses_with_the_rows_it_needs() -> None:
    first = math.ceil(320 * (2 * math.log(10) + math.log(20)))
    needed = agnostic_sizes(first, 0.1, 0.05, 0.25, 1e-6, 2).n_rows
    one = UniversalQueryRelease(Thresholds(), 0.5, 1e-6, release="agnostic", constants="paper")
    with pytest.raises(InvalidData, match=f"asks for {needed:,}"):
        one.fit(X, Y)
    needed = subsamp_sizes(first, 0.1, 0.05, 0.25, 1e-6, 2).n_rows
    with pytest.raises(InvalidData, match=f"asks for {needed:,}"):
        one.set_params(release="query").fit(X, Y)


@pytest.mark.claim("UNV")
def test_the_paper_runs_with_its_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = SubSampSizes(20, 200, 3, 0.5, 1e-6)
    monkeypatch.setattr(stages, "subsamp_sizes", lambda *_: sizes)
    one = UniversalQueryRelease(Thresholds(), 1.0, 1e-6, 50, constants="paper").fit(X, Y)
    assert (one.mechanism_, one.n_shards_) == ("stability", 20)
    assert voting(one).rule.max_unstable == 3  # type: ignore[attr-defined]
    assert one.guarantee_.epsilon <= 1.0
