"""OneVsRest: the budget is split, the split adds up, and classes are declared."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError

from cumae.arrays import Floats
from cumae.concepts import Intervals
from cumae.errors import BudgetExhausted, InvalidData, InvalidParameter
from cumae.learners import (
    Adapter,
    GenericLearner,
    Learner,
    PrivateLearner,
    PrivateLogisticRegression,
)
from cumae.learners.wrappers.accuracy import AccuracyBoost
from cumae.learners.wrappers.one_vs_rest import OneVsRest, _even, _short
from cumae.privacy import BoundedRange, Budget, compose

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

AGE = (np.arange(3000) % 90).reshape(-1, 1)
GROUP = np.array(["young", "middle", "old"])[AGE[:, 0] // 30]
NAMES = ["young", "middle", "old"]
BASE = PrivateLearner(Intervals(), columns=[(0, 90)], n_points=18)


class Scored(PrivateLearner):
    """Scores that fall with the distance from 45, plus 100 times the label."""

    def decision_function(self, X: ArrayLike) -> Floats:
        values = np.asarray(X, dtype=float)[:, 0]
        return np.asarray(100.0 * self.predict(X) - np.abs(values - 45))


class Sure(Scored):
    def predict_proba(self, X: ArrayLike) -> Floats:
        one = np.asarray(self.predict(X), dtype=float)
        return np.stack([1 - one, one], axis=1)


def test_three_classes_are_learnt() -> None:
    learner = OneVsRest(BASE, NAMES, epsilon=3.0).fit(AGE, GROUP)
    assert learner.predict([[10], [45], [80]]).tolist() == NAMES
    assert learner.score(AGE, GROUP) > 0.9
    assert 0 <= learner.private_score(AGE, GROUP, 1.0) <= 1
    assert learner.classes_.tolist() == NAMES


@pytest.mark.claim("OVR")
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.0, 3.3])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_pure_shares_add_up_exactly(epsilon: float, count: int) -> None:
    learner = OneVsRest(BASE, list(range(count)), epsilon).fit(AGE[:50], np.arange(50) % count)
    found = learner.guarantee_
    assert learner.share_ == _even(epsilon, count)
    assert epsilon * (1 - 1e-12) <= found.epsilon <= epsilon
    assert found.epsilon == compose([(BoundedRange(learner.share_), count)]).epsilon(0)
    assert len(learner.members_) == count
    for member in learner.members_:
        assert member.epsilon == learner.share_
        assert member.guarantee_ == found


@pytest.mark.claim("OVR")
@pytest.mark.parametrize(("epsilon", "count"), [(1.0, 3), (1 / 3, 10), (2.0, 4)])
def test_a_delta_buys_larger_shares(epsilon: float, count: int) -> None:
    delta = 1e-6
    labels = np.arange(50) % count
    learner = OneVsRest(BASE, list(range(count)), epsilon, delta).fit(AGE[:50], labels)
    found = learner.guarantee_
    assert found.delta == delta
    assert 0.99 * epsilon <= found.epsilon <= epsilon
    assert learner.share_ > epsilon / count
    total = compose([(BoundedRange(learner.share_), count)])
    assert total.delta(epsilon) <= delta
    assert compose([(BoundedRange(1.01 * learner.share_), count)]).delta(epsilon) > delta
    assert {"OVR", "COMP", "KLNRS", "CHOOSE", "RAND"} == set(found.claims)
    assert found.protects == "one labelled training row"


@pytest.mark.claim("OVR")
@pytest.mark.parametrize("epsilon", [1.0, 0.7123456789])
def test_bases_with_a_delta_of_their_own(epsilon: float) -> None:
    labels = np.where(np.arange(3000) < 1500, AGE[:, 0] // 30, -1)
    base = GenericLearner(Intervals(), delta=1e-3)  # no bounds: needs a delta
    learner = OneVsRest(base, [0, 1, 2], epsilon, 1e-6).fit(AGE, labels)
    assert learner.guarantee_.epsilon <= epsilon
    assert learner.guarantee_.delta == 1e-6
    assert {member.delta for member in learner.members_} == {1e-6 / 6}
    assert sum(member.delta for member in learner.members_) < 1e-6
    assert "labelled is public" in learner.guarantee_.relation


@pytest.mark.claim("OVR")
def test_the_delta_of_a_base_is_used_or_refused() -> None:
    labels = np.where(np.arange(3000) < 1500, AGE[:, 0] // 30, -1)
    budget = Budget(10.0)
    for base in (GenericLearner(Intervals(), delta=1e-3), PrivateLogisticRegression()):
        with pytest.raises(InvalidParameter, match="base needs delta"):
            OneVsRest(base, [0, 1, 2], 1.0, budget=budget).fit(AGE, np.abs(labels))
    # What an Adapter states would be overwritten, and not what its estimator does.
    adapter = Adapter(DummyClassifier(strategy="prior"), 1.0, 1e-3)
    with pytest.raises(InvalidParameter, match="cannot be set from here"):
        OneVsRest(adapter, [0, 1, 2], 1.0, budget=budget).fit(AGE, np.abs(labels))
    assert budget.spent == (0.0, 0.0)


def test_before_fit_there_are_no_labels() -> None:
    with pytest.raises(NotFittedError):
        OneVsRest(BASE, NAMES, 1.0).predict(AGE)
    with pytest.raises(NotFittedError):
        OneVsRest(BASE, NAMES, 1.0).to_dict()


@pytest.mark.parametrize("epsilon", [0.0, math.inf])
def test_ends_of_the_scale(epsilon: float) -> None:
    for delta in (0.0, 1e-6):
        learner = OneVsRest(BASE, NAMES, epsilon, delta).fit(AGE, GROUP)
        assert learner.guarantee_.epsilon == learner.share_ == epsilon
        assert epsilon == 0 or learner.score(AGE, GROUP) > 0.9


@pytest.mark.claim("OVR")
def test_neighbours_stay_neighbours() -> None:
    class Witness(PrivateLearner):
        seen: list[Any] = []  # noqa: RUF012

        def _learn(self, rows: Any, plan: Any, source: Any) -> None:
            Witness.seen.append(rows.y.copy())
            super()._learn(rows, plan, source)

    base = Witness(Intervals(), columns=[(0, 90)])
    changed = GROUP.copy()
    changed[7] = "old"
    for labels in (GROUP, changed):
        OneVsRest(base, NAMES, 1.0, random_state=0).fit(AGE, labels)
    first, second = np.array(Witness.seen[:3]), np.array(Witness.seen[3:])
    assert np.array_equal(first.sum(axis=0), np.ones(3000))  # each row is 1 for one class
    assert np.argwhere(first != second).tolist() == [[0, 7], [2, 7]]


@pytest.mark.claim("OVR")
def test_all_copies_are_paid_for() -> None:
    """What is spent is what the copies cost together, and a plan that counts one is found."""

    class Planted(OneVsRest):
        def decide(self, sizes: Any, rows: Any) -> Any:
            plan = super().decide(sizes, rows)
            return replace(plan, steps=replace(plan.steps, eps=self.epsilon))

    for kind, right in ((OneVsRest, True), (Planted, False)):
        budget = Budget(1.0)
        learner = kind(BASE, NAMES, 1.0, budget=budget).fit(AGE, GROUP)
        assert budget.spent == (1.0, 0.0)
        total = sum(member.epsilon for member in learner.members_)
        assert (total <= learner.guarantee_.epsilon + 1e-12) == right
    with pytest.raises(BudgetExhausted):
        OneVsRest(BASE, NAMES, 1.0, budget=budget).fit(AGE, GROUP)


def test_copies_use_coins_of_their_own() -> None:
    labels = np.zeros(50, dtype=int)
    base = PrivateLearner(Intervals(), columns=[(0, 90)], n_points=60)
    learner = OneVsRest(base, [5, 6, 7, 8], epsilon=0.0, random_state=0).fit(AGE[:50], labels + 5)
    assert len({str(member) for member in learner.members_}) == 4
    assert learner.guarantee_.void


@pytest.mark.parametrize("kind", [Scored, Sure])
def test_scores_decide(kind: type[PrivateLearner]) -> None:
    base = kind(Intervals(), columns=[(0, 90)], n_points=18)
    learner = OneVsRest(base, NAMES, epsilon=60.0).fit(AGE, GROUP)
    scores = learner.decision_function([[10], [50]])
    assert scores.shape == (2, 3)
    assert scores.max() == (1.0 if kind is Sure else 95.0)
    assert learner.predict([[10], [50]]).tolist() == ["young", "middle"]


def test_of_equal_scores_the_first_class_wins() -> None:
    learner = OneVsRest(BASE, NAMES, epsilon=60.0).fit(AGE, GROUP)
    scores = np.array([[0.0, 0, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1]])
    assert learner._labels(scores).tolist() == [0, 1, 0, 2]


@pytest.mark.claim("OVR")
def test_classes_are_declared() -> None:
    learner = OneVsRest(BASE, [*NAMES, "ancient"], epsilon=3.0).fit(AGE, GROUP)
    assert learner.classes_.tolist() == [*NAMES, "ancient"]
    assert len(learner.members_) == 4
    with pytest.raises(InvalidData, match="row 30 that is none of classes"):
        OneVsRest(BASE, ["young", "old"], 1.0).fit(AGE, GROUP)
    for classes in (None, [], ["young"], ["a", "a"], "young"):
        with pytest.raises(InvalidParameter, match="declare every label"):
            OneVsRest(BASE, classes, 1.0).fit(AGE, GROUP)
    with pytest.raises(InvalidParameter, match="-1"):
        OneVsRest(GenericLearner(), [-1, 0, 1], 1.0).fit(AGE, GROUP)
    wrong: list[Any] = [None, np.zeros((3000, 2)), GROUP[:5]]
    for y in wrong:
        with pytest.raises(InvalidData):
            OneVsRest(BASE, NAMES, 1.0).fit(AGE, y)


def test_names_and_rows_without_a_label_in_one_list() -> None:
    labels = [name if i < 1500 else -1 for i, name in enumerate(GROUP.tolist())]
    base = GenericLearner(Intervals(), columns=[(0, 90)], n_points=18)
    learner = OneVsRest(base, NAMES, epsilon=30.0).fit(pd.DataFrame(AGE), labels)
    assert learner.score(pd.DataFrame(AGE), GROUP) > 0.9


def test_bases_that_cannot_be_planned_are_refused() -> None:
    wrapped = AccuracyBoost(BASE, blocks=3)
    for nothing in (None, object(), PrivateLearner):
        with pytest.raises(InvalidParameter, match="give a learner, such as"):
            OneVsRest(nothing, NAMES, 1.0).fit(AGE, GROUP)  # type: ignore[arg-type]
    for base in (wrapped, OneVsRest(BASE, NAMES, 1.0)):
        with pytest.raises(InvalidParameter, match="cannot be set from here"):
            OneVsRest(base, NAMES, 1.0).fit(AGE, GROUP)
    for others in ({"random_state": 0}, {"budget": Budget(1.0)}):
        base = PrivateLearner(Intervals(), columns=[(0, 90)], **others)
        with pytest.raises(InvalidParameter, match="of its own"):
            OneVsRest(base, NAMES, 1.0).fit(AGE, GROUP)
    with pytest.raises(InvalidParameter, match="no declared bounds"):
        OneVsRest(PrivateLearner(Intervals()), NAMES, 1.0, 1e-6).fit(AGE, GROUP)


def test_stored_and_loaded(tmp_path: Any) -> None:
    learner = OneVsRest(BASE, NAMES, 3.0, 1e-6).fit(AGE, GROUP)
    learner.save(tmp_path / "model.json")
    loaded = Learner.load(tmp_path / "model.json")
    assert isinstance(loaded, OneVsRest)
    assert loaded.predict(AGE).tolist() == learner.predict(AGE).tolist()
    assert loaded.guarantee_ == learner.guarantee_
    assert loaded.epsilon == 3.0
    assert loaded.fit(AGE, GROUP).score(AGE, GROUP) > 0.9  # and may be fitted again


@pytest.mark.parametrize("share", [1 / 3, 1e-7 / 3, 123.4567891, 1.0, 0.1, 0.0, math.inf])
def test_short_shares_are_rounded_down(share: float) -> None:
    assert _short(share) <= share
    assert _short(share) >= share * (1 - 2e-5)
