"""What an estimator would do, before any row is there: ``plan`` and the ``Outlook`` it returns."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
import pickle
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cumae import (
    AgnosticQueryRelease,
    Budget,
    BudgetExhausted,
    CumaeError,
    EverlastingPredictor,
    GenericBBL,
    QueryRelease,
    UniversalQueryRelease,
)
from cumae.checks.learners import a_plan_tells_what_a_fit_does
from cumae.checks.plans import demand_agreement
from cumae.checks.shards import Neighbours
from cumae.concepts import Thresholds
from cumae.learners import (
    GenericLearner,
    HypothesisLearner,
    OneVsRest,
    PrivateBooster,
    PrivateKernelClassifier,
    PrivateLearner,
    PrivateLogisticRegression,
    SemiPrivateLearner,
)
from cumae.learners.base import Rows, Sizes
from cumae.made_up import MadeUpRows
from cumae.outlook import Outlook
from cumae.privacy import Pure
from cumae.privacy.plans import promise

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

ONE, TWO = [(0.0, 1.0)], [(0.0, 1.0), (0.0, 1.0)]
RNG = np.random.default_rng(3)
X = RNG.random((400, 2))
Y = (X[:, 0] > 0.5).astype(int)


def refusal_of(estimator: Any, *rows: Any) -> str:
    with pytest.raises(CumaeError) as caught:
        estimator.fit(*rows)
    return str(caught.value)


REFUSED = {
    "negative epsilon": PrivateBooster(-1.0, columns=TWO),
    "one class": PrivateLogisticRegression(classes=(0,), bounds=TWO),
    "no delta for Gaussian noise": PrivateKernelClassifier(1.0, 0.0, columns=TWO),
    "no delta for ranges": PrivateBooster(1.0),
    "no bounds": PrivateLearner(),
    "no public rows": SemiPrivateLearner(),
    "nothing unlabelled": GenericLearner(columns=TWO),
    "too few rows for ranges": PrivateLogisticRegression(0.01),
    "another width": PrivateBooster(1.0, columns=ONE),
    "no such column": PrivateBooster(1.0, columns={7: (0, 1)}),
    "a base with a delta": OneVsRest(PrivateKernelClassifier(), [0, 1], 1.0),
    "no queries": QueryRelease(Thresholds(), max_queries=0),
    "votes without a delta": QueryRelease(1.0, 0.0, mechanism="gaussian"),
    "too many shards": QueryRelease(n_shards=300),
    "a concept class of one column": QueryRelease(Thresholds()),
    "everlasting without epsilon": EverlastingPredictor(epsilon=0.0),
    "everlasting without delta": EverlastingPredictor(delta=0.0),
    "everlasting, options": EverlastingPredictor(background=True),
    "bbl without delta": GenericBBL(Thresholds(), delta=0.0),
    "two models": UniversalQueryRelease(LogisticRegression(), concept_class=Thresholds()),
    "a regressor": UniversalQueryRelease(StandardScaler()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_reasons_in_the_words_of_fit(name: str) -> None:
    outlook = REFUSED[name].plan(*X.shape)
    assert not outlook.can_run
    assert outlook.reasons == (refusal_of(REFUSED[name], X, Y),)
    assert (outlook.guarantee, outlook.facts, outlook.seconds) == (None, {}, None)
    assert outlook.reasons[0] in str(outlook)


COLUMN_REFUSED = {
    "bbl beyond floats": GenericBBL(Thresholds(), 1000.0),
    "bbl, too few rows": GenericBBL(Thresholds(), 0.05),
    "agnostic, paper": AgnosticQueryRelease(Thresholds(), constants="paper"),
    "universal, paper": UniversalQueryRelease(Thresholds(), constants="paper"),
}


@pytest.mark.parametrize("name", COLUMN_REFUSED)
def test_refusals_of_one_column(name: str) -> None:
    outlook = COLUMN_REFUSED[name].plan(400, 1)
    assert outlook.reasons == (refusal_of(COLUMN_REFUSED[name], X[:, :1], Y),)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((-1, 2), "n_samples=-1 is below 0"),
        ((10.5, 2), "n_samples=10.5 is not a whole number"),
        ((10, 0), "n_features=0 is below 1"),
        ((10, 2, -3), "n_public=-3 is below 0"),
        ((0, 2), "no rows|0 rows"),
    ],
)
def test_impossible_tables_are_refused_with_a_reason(counts: tuple[Any, ...], said: str) -> None:
    for estimator in (PrivateBooster(columns=TWO), QueryRelease(columns=TWO)):
        (reason,) = estimator.plan(*counts).reasons
        assert any(part in reason for part in said.split("|"))


def test_rows_without_a_label_need_a_learner_that_takes_them() -> None:
    (reason,) = PrivateBooster(columns=TWO).plan(100, 2, n_unlabelled=50).reasons
    assert "-1 is for learners that take rows without a label" in reason
    assert GenericLearner(columns=TWO).plan(100, 2, n_unlabelled=50).can_run


def test_infinite_epsilon_promises_nothing_and_runs() -> None:
    for estimator in (PrivateBooster(math.inf, columns=TWO), QueryRelease(epsilon=math.inf)):
        outlook = estimator.plan(*X.shape)
        assert outlook.can_run
        assert outlook.guarantee is not None
        assert outlook.guarantee == estimator.fit(X, Y).guarantee_
        assert "NO PRIVACY" in str(outlook)


def test_an_account_is_asked_and_not_touched() -> None:
    budget = Budget(1.0)
    for _ in range(3):
        assert PrivateBooster(0.6, columns=TWO, budget=budget).plan(*X.shape).can_run
    PrivateBooster(0.6, columns=TWO, budget=budget).fit(X, Y)
    for again in (PrivateBooster, QueryRelease):
        other = again(epsilon=0.6, delta=0.0, columns=TWO, budget=budget)
        outlook = other.plan(*X.shape)
        assert not outlook.can_run
        assert "remain of Budget" in outlook.reasons[0]
    assert len(budget.entries) == 1


def test_a_budget_tells_what_it_would_refuse() -> None:
    budget = Budget(1.0)
    budget.check(Pure(1.0), what="a model")
    assert budget.entries == ()
    with pytest.raises(BudgetExhausted) as asked:
        budget.check(Pure(1.5), what="a model")
    with pytest.raises(BudgetExhausted) as paid:
        budget.spend(Pure(1.5), what="a model")
    assert str(asked.value) == str(paid.value)
    with pytest.raises(BudgetExhausted, match="no finite epsilon"):
        budget.check(Pure(math.inf))


@pytest.mark.parametrize(
    "estimator",
    [PrivateBooster(columns=TWO), QueryRelease(), EverlastingPredictor(columns=TWO, prior=False)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_plan_leaves_no_trace(estimator: Any) -> None:
    before = dict(vars(estimator))
    estimator.plan(*X.shape)
    assert vars(estimator) == before
    one = estimator.fit(X, Y)
    shown = one.guarantee_
    one.plan(50, 2)
    assert one.guarantee_ is shown


DECLARED: dict[str, Any] = {
    "age": (0, 99),
    "job": ["baker", "nurse", None],
    "seen": (dt.date(1990, 1, 1), dt.date(2020, 1, 1)),
    "member": bool,
}
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(0, 99, 300),
        "job": pd.Series(RNG.choice(["baker", "nurse"], 300), dtype=object),
        "seen": np.datetime64("2000-01-01", "ms") + RNG.integers(0, 10**9, 300),
        "member": RNG.random(300) < 0.5,
    }
)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("kind", [PrivateBooster, QueryRelease])
def test_columns_of_all_kinds_are_planned_as_they_are_declared(kind: Any, named: bool) -> None:
    rows: Any = TABLE if named else TABLE.to_numpy(dtype=object).tolist()
    declared: Any = DECLARED if named else list(DECLARED.values())
    estimator = kind(epsilon=5.0, columns=declared)
    outlook = estimator.plan(300, 4)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        one = estimator.fit(rows, (TABLE["age"] > 50).astype(int))
    demand_agreement(outlook, one, heard)


@pytest.mark.parametrize("classes", [5, None, (), (0,), (0, 0), ([1], [2])])
@pytest.mark.parametrize("kind", [PrivateKernelClassifier, PrivateBooster, QueryRelease])
def test_wrong_classes_are_refused_in_the_words_of_fit(kind: Any, classes: Any) -> None:
    estimator = kind(columns=TWO, classes=classes)
    assert estimator.plan(*X.shape).reasons == (refusal_of(estimator, X, Y),)


def test_made_up_rows_take_no_memory_and_are_what_is_declared() -> None:
    rows = MadeUpRows({"job": ["baker", "nurse"], 0: (5, 6)}, 10**12, 3)
    assert rows.names == ["column 0", "job", "column 2"]
    table = rows.take(np.array([0, 10**9]))
    assert set(table["job"]) <= {"baker", "nurse"}
    assert table["column 0"].between(5, 6).all()
    assert MadeUpRows(None, 5, 2).take(np.arange(5)).dtype == np.float64


def test_tables_of_any_size_are_planned_at_once() -> None:
    many = 10**9
    for outlook in (
        PrivateKernelClassifier(columns=[(0, 1)] * 30).plan(many, 30),
        PrivateBooster(1.0, columns=[(0, 1)] * 30).plan(many, 30),
        QueryRelease(columns=[(0, 1)] * 30).plan(10**8, 30, trial=False),
        HypothesisLearner(PrivateLearner(Thresholds(), columns=ONE), [[0.5]]).plan(many, 1),
    ):
        assert outlook.can_run


def test_a_quick_plan_tries_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def train(*_: Any) -> Any:
        raise AssertionError("something was trained")

    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    quick = [QueryRelease(pipeline), UniversalQueryRelease(pipeline), EverlastingPredictor()]
    slow = [one.plan(2000, 2) for one in quick]
    monkeypatch.setattr("cumae.ensembles.trainer.Trainer.train_or_raise", train)
    monkeypatch.setattr("cumae.predictors.everlasting.margins.MarginTrainer.train_or_raise", train)
    for one, tried in zip(quick, slow, strict=True):
        outlook = one.plan(2000, 2, trial=False)
        assert outlook.can_run
        assert outlook.guarantee == tried.guarantee
        assert int(outlook.facts["n_shards"]) >= int(tried.facts["n_shards"])
    assert QueryRelease(pipeline).plan(2000, 2, trial=False).seconds is None
    assert slow[0].seconds is not None


def test_public_rows_are_counted_where_they_help_and_told_where_not() -> None:
    classifier = PrivateKernelClassifier(columns=TWO)
    assert classifier.plan(5000, 2).facts["reference"] == "rows made up from noisy counts"
    with_public = classifier.plan(5000, 2, 500)
    assert with_public.facts["reference"] == "public rows"
    assert with_public.guarantee is not None
    assert with_public.guarantee.assumptions
    assert classifier.plan(5000, 2, 10).facts == classifier.plan(5000, 2).facts  # too few to help
    (told,) = EverlastingPredictor(Thresholds(), 9.0).plan(9000, 1, 500).warnings
    assert told == "EverlastingPredictor takes no public rows; 500 are left out."
    universal = UniversalQueryRelease(epsilon=3.0)
    assert universal.plan(4000, 2, 300, trial=False).facts["n_first"] == 300
    assert "SemiPrivateLearner" in UniversalQueryRelease(Thresholds()).plan(400, 1, 9).reasons[0]


def test_a_wrapped_predictor_is_planned_and_refused_with_its_wrapper() -> None:
    domain = [[x / 10] for x in range(10)]
    good = HypothesisLearner(QueryRelease(Thresholds(), 5.0, max_queries=10), domain)
    outlook = good.plan(400, 1)
    assert outlook.guarantee == good.fit(X[:, :1], Y).guarantee_
    bad = HypothesisLearner(QueryRelease(Thresholds(), 5.0, max_queries=0), domain)
    assert "max_queries=0" in bad.plan(400, 1).reasons[0]
    few = HypothesisLearner(QueryRelease(Thresholds(), 5.0, max_queries=3), domain)
    assert "3 answers" in few.plan(400, 1).reasons[0]


class Liar(PrivateLearner):
    """Plans what it does not do."""

    def decide(self, sizes: Sizes, rows: Rows) -> Any:
        plan = super().decide(sizes, rows)
        return dataclasses.replace(plan, facts={**plan.facts, "n_candidates": 7})


class Flatterer(PrivateLearner):
    """Promises in plans what its fit does not keep."""

    def plan(self, *counts: Any, **more: Any) -> Outlook:
        outlook: Any = super().plan(*counts, **more)
        better = dataclasses.replace(outlook.guarantee, epsilon=outlook.guarantee.epsilon / 2)
        found: Outlook = dataclasses.replace(outlook, guarantee=better)
        return found


class Spender(PrivateLearner):
    """Pays for plans."""

    def plan(self, *counts: Any, **more: Any) -> Outlook:
        if self.budget is not None:
            self.budget.spend(Pure(0.1))
        return super().plan(*counts, **more)


class Silent(PrivateLearner):
    """Does not tell in plans what its fit warns of."""

    def plan(self, *counts: Any, **more: Any) -> Outlook:
        return dataclasses.replace(super().plan(*counts, **more), warnings=())


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (Liar, "n_candidates = 7"),
        (Flatterer, "promises something else"),
        (Spender, "was paid for"),
        (Silent, "warns of set"),
    ],
)
def test_planted_plans_are_found(kind: Any, found: str) -> None:
    pair = Neighbours.replacing(X[:20, :1], Y[:20], 3, [0.5], 1, queries=X[:5, :1])
    a_plan_tells_what_a_fit_does(PrivateLearner(Thresholds(), 0.1, columns=ONE), pair)
    with pytest.raises(AssertionError, match=found):
        a_plan_tells_what_a_fit_does(kind(Thresholds(), 0.1, columns=ONE), pair)


def test_an_outlook_is_a_value() -> None:
    outlook = PrivateBooster(columns=TWO).plan(400, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        outlook.can_run = False  # type: ignore[misc]
    with pytest.raises(TypeError):
        outlook.facts["n_trees"] = 3  # type: ignore[index]
    assert pickle.loads(pickle.dumps(outlook)) == outlook  # noqa: S301 - its own
    plain = json.loads(json.dumps(outlook.to_dict(), allow_nan=False))
    assert plain["facts"] == dict(outlook.facts)
    assert plain["guarantee"]["epsilon"] == 1.0
    assert "n_trees = " in str(outlook)
    assert "Promise: (epsilon = 1" in str(outlook)
    assert "<pre>" in outlook._repr_html_()


def test_promises_are_made_in_one_place() -> None:
    learner = PrivateBooster(columns=TWO)
    sizes, rows = learner.read_rows(X, Y)
    planned = promise(learner.decide(sizes, rows), 1.0, 0.0, void=False)
    assert learner.plan(*X.shape).guarantee == planned


@pytest.mark.parametrize(
    "estimator",
    [PrivateBooster(1.0, columns=[(0, 1)] * 8), PrivateLogisticRegression(columns=[(0, 1)] * 8)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_time_and_memory_are_told_roughly(estimator: Any) -> None:
    table = RNG.random((20_000, 8))
    labels = (table[:, 0] > 0.5).astype(int)
    estimator.fit(table[:1000], labels[:1000])  # compiles
    began = time.process_time()
    estimator.fit(table, labels)
    took = time.process_time() - began
    outlook = estimator.plan(*table.shape)
    assert outlook.seconds is not None
    assert outlook.memory is not None
    # Within three on the machine that rates were measured on; others are slower or faster.
    assert took / 12 < outlook.seconds < 12 * took
    assert table.nbytes / 8 < outlook.memory < 2**30
