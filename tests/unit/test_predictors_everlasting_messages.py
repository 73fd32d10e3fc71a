"""What everlasting prediction says: warnings, refusals, and what they tell to do."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

from cumae import (
    AnswersDrift,
    Budget,
    BudgetExhausted,
    EverlastingPredictor,
    GenericBBL,
    InvalidData,
    InvalidParameter,
    OneVsRest,
    PrivateBooster,
    QueryRelease,
    TooFewRows,
)
from cumae.concepts import Thresholds
from cumae.errors import VotesIgnored, WeakPrivacy
from cumae.learners import Adapter, PrivateKernelClassifier, PrivateLogisticRegression
from cumae.predictors.base import options_of
from cumae.predictors.everlasting import prior as priors
from cumae.predictors.everlasting.prior import LATER_TRUST, TRUSTS, combined, trust_in
from cumae.predictors.everlasting.rules import (
    EverlastingOptions,
    EverlastingRules,
    PublicSizes,
    rows_with_prior,
)
from cumae.predictors.noise import MUCH_NOISE
from tests.everlasting import ABOVE, N, X, Y, oracle

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(1)
TREE = DecisionTreeClassifier(max_depth=2)
BOUNDS = [(0, 1)]


def heard(predictor: Any, *rows: Any) -> list[str]:
    """Return the warnings of a fit, by their names and texts; test_traps.py has others."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        predictor.fit(*rows)
    assert all(warning.filename == __file__ for warning in caught)  # they point at the caller
    told = [one for one in caught if one.category not in (VotesIgnored, WeakPrivacy)]
    return [f"{warning.category.__name__}: {warning.message}" for warning in told]


# Drift


def test_an_estimator_without_a_prior_is_said_to_drift() -> None:
    few = X[:60], Y[:60]  # too few to find ranges
    what = r"DecisionTreeClassifier drift .* too few to find the ranges of .* column \(0\) with"
    with pytest.warns(AnswersDrift, match=what):
        oracle(TREE).fit(*few)
    with pytest.warns(AnswersDrift, match="prior=False to accept it"):
        EverlastingPredictor(epsilon=5.0).fit(*few)
    quiet = [oracle(TREE, prior=False), oracle(TREE, columns=BOUNDS), oracle(), oracle(ABOVE)]
    for one in quiet:
        assert not [told for told in heard(one, X, Y) if "AnswersDrift" in told]


def test_the_warning_depends_on_what_was_declared_alone() -> None:
    spoilt = X.copy()
    spoilt[:200] = np.nan
    assert heard(oracle(TREE), X, Y) == heard(oracle(TREE), spoilt, np.zeros(N))


def test_a_prior_that_knows_two_classes_is_refused_for_three() -> None:
    labels = np.digitize(X[:, 0], [0.3, 0.6])
    three = {"classes": (0, 1, 2), "columns": BOUNDS}
    for prior in (PrivateBooster(), Adapter(DummyClassifier(), epsilon=1.0)):
        with pytest.raises(InvalidParameter, match="knows two classes, but there are 3; give"):
            oracle(TREE, prior=prior, **three).fit(X, labels)
    with pytest.raises(InvalidParameter, match="OneVsRest, which takes no columns"):
        oracle(TREE, prior=OneVsRest(PrivateBooster(), (0, 1, 2), 1.0), **three).fit(X, labels)


# What can be a prior


def test_what_cannot_be_a_prior_is_named() -> None:
    wrapped = OneVsRest(PrivateBooster(), (0, 1), 1.0)
    with pytest.raises(InvalidParameter, match="OneVsRest, which takes no columns of its own"):
        oracle(TREE, prior=wrapped, columns=BOUNDS).fit(X, Y)
    with pytest.raises(InvalidParameter, match=re.escape("give PrivateBooster()")):
        oracle(TREE, prior=PrivateBooster, columns=BOUNDS).fit(X, Y)
    with pytest.raises(InvalidParameter, match="prior='booster' is no learner"):
        oracle(TREE, prior="booster", columns=BOUNDS).fit(X, Y)


@pytest.mark.claim("PRIOR")
def test_an_adapter_keeps_the_promise_it_came_with() -> None:
    constant = DummyClassifier(strategy="constant", constant=1)
    weaker = Adapter(constant, epsilon=9.0)  # another number would be a promise nobody gave
    with pytest.raises(InvalidParameter, match=r"epsilon=9\.0, delta=0\.0, more than epsilon=5"):
        oracle(TREE, prior=weaker, columns=BOUNDS).fit(X, Y)
    stronger = Adapter(constant, epsilon=2.0)
    one = oracle(TREE, prior=stronger, columns=BOUNDS, random_state=None).fit(X, Y)
    assert "keeps its promise of epsilon = 2.0" in one.guarantee_.assumptions[-1]
    assert one.guarantee_.within(5.0, 1e-6)


@pytest.mark.parametrize("share", [0.999, 0.95, 1e-6])
def test_a_prior_leaves_rows_for_the_votes(share: float) -> None:
    budget = Budget(9.0, 1e-5)
    one = oracle(TREE, columns=BOUNDS, prior_share=share, budget=budget)
    with pytest.raises(InvalidParameter, match=rf"prior_share={share!r} of 400 rows leaves"):
        one.fit(X, Y)
    assert budget.remaining == (9.0, 1e-5)


# How much votes count


@pytest.mark.claim("PRIOR")
@pytest.mark.parametrize("trust", TRUSTS)
def test_trust_is_limited_after_the_first_phase(
    monkeypatch: pytest.MonkeyPatch, trust: float
) -> None:
    seen: list[float] = []

    def spied(noisy: Any, n_shards: int, used: float, prior: Any) -> Any:
        seen.append(used)
        return combined(noisy, n_shards, used, prior)

    one = oracle(TREE, columns=BOUNDS).fit(X, Y)
    monkeypatch.setattr(priors, "combined", spied)  # now: a fit asks for all trusts to choose one
    one._state_.trust = trust
    for _ in range(3):
        one.predict(RNG.random((one._state_.phase.n_rows, 1)))
    assert one.phase_ == 3
    assert seen == [trust, min(trust, LATER_TRUST), min(trust, LATER_TRUST)]
    assert [trust_in(number, trust) for number in (1, 2, 50)] == seen


def test_without_a_prior_there_is_no_trust() -> None:
    one = oracle().fit(X, Y)
    assert (one.prior_, one.trust_) == (None, None)
    assert one.predict([[0.95]]).shape == (1,)
    assert oracle(TREE, columns=BOUNDS).fit(X, Y).trust_ in TRUSTS


# Too few rows


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_the_number_of_rows_that_would_do_is_of_all_of_them(share: float) -> None:
    given: dict[str, Any] = {"columns": BOUNDS, "prior_share": share}
    (told,) = heard(EverlastingPredictor(TREE, 3.0, **given), X, Y)
    assert "the votes add hardly anything to the prior" in told
    assert "chance" not in told
    (found,) = re.findall(r"about ([0-9,]+) rows given to fit would do", told)
    rows = RNG.random((int(found.replace(",", "")), 1))
    one = EverlastingPredictor(DummyClassifier(), 3.0, shard_size=6, **given)
    with pytest.warns(TooFewRows, match="made-up row"):  # the cheapest estimator: a constant
        one.fit(rows, rows[:, 0] > 0.4)
    assert one.noise_per_vote_ == pytest.approx(MUCH_NOISE, rel=0.06)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.97])
@pytest.mark.parametrize("voting", [100, 20_000, 60_000, 10**7])
def test_blocks_of_the_suggested_rows(share: float, voting: int) -> None:
    count = math.ceil(rows_with_prior(voting, share))
    try:
        options = options_of(EverlastingOptions, oracle(prior_share=share))
        found = EverlastingRules.of(options, PublicSizes(count, 2, has_prior=True))
    except InvalidParameter:
        assert share == 0.97
        return
    assert found.first == count - found.prior_rows - found.trust_rows
    assert found.first == pytest.approx(voting, abs=3)


def test_too_few_users_and_a_large_growth_are_named() -> None:
    (told,) = heard(EverlastingPredictor(ABOVE, 0.5, growth=3.0), X, Y)
    assert re.search(r"chance; about [0-9,]+ rows would do, .* or a growth below 3\.$", told)
    with pytest.warns(TooFewRows, match=r"about [0-9,]+ users would do, or a larger epsilon\.$"):
        EverlastingPredictor(ABOVE, 0.5, user_ids=True).fit(X, Y, users=np.arange(N))


# Users and clients


@pytest.mark.claim("USER")
@pytest.mark.parametrize("ids", ["anna", b"anna", {1, 2, 3, 4}, {"a": 1}, 7, np.array(7)])
def test_ids_are_not_read_letter_by_letter(ids: Any) -> None:
    one = oracle(user_ids=True, client_cap=0.5).fit(X, Y, users=np.arange(N))
    with pytest.raises(InvalidData, match=r"users is a .*; give a list with one id for each row"):
        one.predict(X[:4], users=ids, clients=[1, 2, 3, 4])
    with pytest.raises(InvalidData, match="clients is a "):
        one.predict(X[:4], users=["a", "b", "c", "d"], clients=ids)
    assert one.answered_ == 0


def test_ids_that_nobody_asked_for_name_the_parameter() -> None:
    one = oracle().fit(X, Y)
    with pytest.raises(InvalidData, match=r"user_ids was False.*user_ids=True"):
        one.predict(X[:1], users=[1])
    with pytest.raises(InvalidData, match=r"client_cap was None.*client_cap="):
        one.predict(X[:1], clients=[1])


@pytest.mark.claim("USER")
def test_one_client_that_uses_up_a_phase_makes_a_new_fit_necessary() -> None:
    one = oracle(client_cap=0.01).fit(X, Y)
    assert one.remaining_ == math.inf
    one.predict(RNG.random((N, 1))[:300], clients=["loud"] * 300)
    assert one.remaining_ == 100
    one.predict(RNG.random((100, 1)), clients=range(100))
    assert one.remaining_ == 0
    told = r"0 answers remain in phase 1; there will be no next phase, which needs 200 rows of "
    with pytest.raises(BudgetExhausted, match=told + r"clients below client_cap\. .* fit again"):
        one.predict([[0.5]], clients=["other"])


# Other refusals


@pytest.mark.parametrize("name", ["balanced", "user_ids", "fresh", "memoize", "background"])
@pytest.mark.parametrize("value", ["yes", 1, None])
def test_flags_are_true_or_false(name: str, value: Any) -> None:
    value = 0.0 if (name, value) == ("background", None) else value  # which leaves it open
    with pytest.raises(InvalidParameter, match=f"{name}={value!r} is neither True nor False"):
        oracle(**{name: value}).fit(X, Y)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"budget": 1.0}, r"budget=1\.0 is no Budget"),
        ({"delta": 0.0}, "both above 0; .* QueryRelease with mechanism='laplace'"),
        ({"shard_size": 2}, "shard_size=2 is not from 3, which 2 classes need, to 400"),
        ({"shard_size": 401}, "shard_size=401 is not from 3"),
        ({"background": True}, r"background=True with late='auto': .* give late=0\.1"),
        ({"background": True, "late": 0.0}, r"background=True with late=0\.0: .* give late=0\.1"),
        (
            {"client_cap": 0.1, "fresh": True, "growth": 2.0},
            "client_cap have no meaning",
        ),
        ({"late": 0.51}, 'late=0.51 is no float from 0 to 0.5; give 0.1, for example, or "auto"'),
        ({"estimator": None, "concept_class": "cut"}, "concept_class is str"),
    ],
)
def test_refusals_name_parameters_that_there_are(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidParameter, match=what) as refusal:
        oracle().set_params(**changes).fit(X, Y)
    assert "n_shards" not in str(refusal.value)


class Fails(DecisionTreeClassifier):  # type: ignore[misc]
    """An estimator that wants more rows than a shard has."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if len(X) < 30:
            raise ValueError("too few rows")
        return super().fit(X, y, sample_weight)


def test_larger_shards_come_from_the_parameter_of_the_class() -> None:
    with pytest.raises(InvalidParameter, match="larger with a larger shard_size"):
        oracle(Fails(), prior=False).fit(X, Y)
    with pytest.raises(InvalidParameter, match="larger with a smaller n_shards"):
        QueryRelease(Fails(), 5.0, max_queries=10, n_shards=40).fit(X, Y)
    with pytest.raises(InvalidParameter, match="n_samples=2 is too few"):
        oracle(shard_size="auto").fit(X[:2], Y[:2])
    with pytest.raises(InvalidParameter, match="mechanism='gaussian' with delta=0"):
        QueryRelease(TREE, 5.0, 0.0, max_queries=10, mechanism="gaussian").fit(X, Y)


def test_queries_of_a_wrong_form_say_what_to_do() -> None:
    table = RNG.random((N, 3))
    one = oracle(TREE, prior=False).fit(table, Y)
    with pytest.raises(InvalidData, match=r"expecting 3 features.*reshape\(1, -1\)"):
        one.predict(np.array([0.1, 0.2, 0.3]))
    with pytest.raises(InvalidData, match="X is sparse"):
        one.predict(csr_matrix(table))
    assert one.answered_ == 0
    # A list is a list of queries: each of these three is no row by itself.
    assert one.predict([0.1, 0.2, 0.3]).tolist() == [-1, -1, -1]
    assert one.answered_ == 3


def test_unusable_queries_get_the_integer_among_names() -> None:
    names = np.array(["no", "yes"])
    answers = oracle(classes=("no", "yes")).fit(X, names[Y]).predict([[0.95], [np.nan]])
    assert answers.dtype == object
    assert type(answers[1]) is int
    assert answers[1] == -1


# GenericBBL


def bbl(**changes: Any) -> GenericBBL:
    given: dict[str, Any] = {"shard_size": 20, "phase_length": 600, "query_share": 0.5}
    return GenericBBL(Thresholds(), **{**given, "epsilon": 3.0, "label_share": 0.1, **changes})


def between(**changes: Any) -> GenericBBL:
    given: dict[str, Any] = {"votes": "between", "epsilon": 20.0, "delta": 1e-12}
    sizes = {"shard_size": 10, "phase_length": 16_000, "label_share": 0.01}
    return bbl(**{**given, **sizes, "between_share": 0.001, **changes})


def test_printed_votes_are_said_to_be_few() -> None:
    x = np.random.default_rng(0).random((8000, 1))
    y = x[:, 0] > 0.5
    (told,) = heard(between(epsilon=12.0, between_share=0.002), x, y)
    assert re.search(r"TooFewRows: thresholds lie 0\.[3-5]\d of the [0-9,]+ votes of phase", told)
    assert "shard_size or between_share" in told
    assert heard(between(shard_size=4), x, y) == []
    with pytest.raises(InvalidParameter, match=r"votes .* are too few") as refusal:
        between(epsilon=1.0).fit(x, y)
    for name in ("shard_size", "epsilon=1.0", "between_share below 0.001", "phase_length"):
        assert name in str(refusal.value)


def test_a_batch_in_which_it_halts_tells_what_became_of_it() -> None:
    x = np.repeat([0.1, 0.5, 0.9], [2000, 4000, 2000]).reshape(-1, 1)
    y = np.repeat([0, 1, 0, 1], 2000)  # both labels for 0.5
    one = between(random_state=0).fit(x, y)
    limit = one._state_.phase.sizes.between
    told = rf"The last {500 - limit} queries got no answer; the {limit} before them were answered"
    with pytest.raises(BudgetExhausted, match=told):
        one.predict(np.full((500, 1), 0.5))
    again = between(random_state=0).fit(x, y)
    assert len(again.predict(np.full((limit, 1), 0.5))) == limit  # it halts on the last one
    assert again.remaining_ == 0


def test_all_conditions_of_the_paper_come_together() -> None:
    with pytest.raises(InvalidParameter, match="1/16") as refusal:
        bbl(constants="paper").fit(X, Y)
    told = str(refusal.value)
    assert "alpha=0.1, beta=0.1, epsilon=3.0:" in told
    assert told.endswith("give alpha=0.05, beta=0.05, epsilon=1.0.")
    good = bbl(constants="paper", alpha=0.05, beta=0.05, epsilon=1.0)
    with pytest.raises(InvalidData, match="labelled rows"):
        good.fit(X, Y)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"concept_class": "cut"}, "concept_class='cut' is no concept class"),
        ({"concept_class": Thresholds}, "concept_class=Thresholds is no concept class"),
        ({"classes": (0, 1, 2)}, "EverlastingPredictor with an estimator"),
        ({"delta": 0.0}, "QueryRelease with mechanism='laplace'"),
        ({"phase_length": 6}, "larger phase_length, max_rows, growth, query_share or label_share"),
        ({"agnostic": "no"}, "agnostic='no' is neither"),
        ({"fresh": 1}, "fresh=1 is neither"),
        ({"budget": 2.0}, "no Budget"),
    ],
)
def test_the_printed_one_names_its_own_parameters(changes: dict[str, Any], what: str) -> None:
    with pytest.raises((InvalidParameter, InvalidData), match=what):
        bbl().set_params(**changes).fit(X, Y)


def test_a_prior_that_was_fitted_is_fitted_anew() -> None:
    old = PrivateLogisticRegression(9.0, 1e-5, columns=BOUNDS).fit(X, Y)
    one = oracle(TREE, prior=old).fit(X, Y)
    assert one.prior_ is not None
    assert one.prior_ is not old
    assert (one.prior_.epsilon, one.prior_.delta) == (5.0, 1e-6)


def test_an_unknown_category_is_answered() -> None:
    table = np.column_stack([X[:, 0].astype(object), np.where(Y, "a", "b")])
    columns = [(0, 1), ["a", "b", "c"]]
    one = oracle(TREE, columns=columns).fit(table, Y)
    asked = [[0.5, None], [0.5, "poet"], [0.5, math.nan], [math.nan, "a"]]
    assert (one.predict(asked) == -1).tolist() == [False, False, False, True]


def test_what_is_printed_tells_what_is_public() -> None:
    one = oracle(TREE, columns=BOUNDS)
    assert str(one) == repr(one)
    assert repr(one.fit(X, Y)).startswith("EverlastingPredictor(")
    one.predict(X[:7])
    first, prior, robust, *promise = str(one).splitlines()
    assert "phase 1: 7 answers were given, and it never runs out" in first
    told = f"Prior: PrivateKernelClassifier; trust in votes: {one.trust_:g}."
    assert prior == told + ("" if one.trust_ else " The prior alone answers.")
    assert robust.startswith("Rows that may be poisoned without moving an answer: ")
    assert "\n".join(promise) == f"Promise: {one.guarantee_}"
    assert "No prior." in str(oracle().fit(X, Y))
    other = oracle(TREE, columns=BOUNDS).fit(np.zeros((N, 1)), 1 - Y)
    other.predict([[np.nan]] * 7)
    assert str(other).splitlines()[0] == first  # whatever rows and queries hold


def test_what_must_be_declared_comes_in_one_message() -> None:
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N), unit="D")
    table = pd.DataFrame({"a": X[:, 0], "job": np.where(Y, "x", "y"), "day": days, "city": "z"})
    table["job"] = table["job"].astype("string")
    with pytest.raises(InvalidParameter, match="3 columns of X must be declared") as refusal:
        EverlastingPredictor(TREE).fit(table, Y)
    for name in ("'job'", "'day'", "'city'"):
        assert name in str(refusal.value)
    with (
        pytest.warns(AnswersDrift, match="job, city"),
        pytest.raises(InvalidParameter, match=r"the categories of job, city\."),
    ):
        EverlastingPredictor(TREE).fit(table.drop(columns="day"), Y)
    holes = pd.DataFrame({"a": X[:, 0], "b": X[:, 0], "c": X[:, 0]})
    holes.iloc[3, 0] = holes.iloc[5, 2] = np.nan
    told = r"in row 3, column a, row 5, column c; .* columns=\{'a': .*, 'c': .*\}\.$"
    with pytest.raises(InvalidData, match=told):
        PrivateLogisticRegression(columns=[(0, 1)] * 3).fit(holes, Y)


def test_without_a_delta_one_message_says_all() -> None:
    told = r"PrivateBooster, and declare the range of each column \(0\)\."
    with pytest.raises(InvalidParameter, match=told):
        PrivateKernelClassifier(1.0, 0.0).fit(X, Y)
