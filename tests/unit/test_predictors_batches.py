"""One query never changes what another one gets: how queries are read, computed and remembered."""

from __future__ import annotations

import datetime as dt
import math
import threading
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info, threadpool_limits

import cumae.predictors
from cumae import EverlastingPredictor, GenericBBL, InvalidData, InvalidParameter, QueryRelease
from cumae.checks import PREDICTOR_LAWS
from cumae.checks.predictors import (
    answers_to,
)
from cumae.checks.queries import in_batches, odd_queries
from cumae.concepts import Thresholds
from cumae.ensembles.blocks import blank_block, block_rows, blocks
from cumae.ensembles.voters.stacking import stack
from cumae.learners import PrivateBooster
from cumae.predictors import base
from cumae.predictors.everlasting import margins, rules
from cumae.predictors.everlasting.phases import row_keys
from cumae.predictors.everlasting.prior import Prior
from cumae.threads import one_thread
from tests.kinds import KINDS
from tests.laws import COLUMN, FRAME, NO_WEIGHTS, PREDICTORS, RNG, X, Y, oracle

pytestmark = [
    pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows"),
    pytest.mark.filterwarnings("ignore::cumae.errors.AnswersDrift"),
]

# All laws, for all predictors


@pytest.mark.usefixtures("trials_shared", "little_trained")
@pytest.mark.claim("EVER", "BBL", "QUERY", "AGPRIV", "UNV", "SHARDS")
@pytest.mark.parametrize("law", PREDICTOR_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", PREDICTORS)
def test_laws_of_predictors(name: str, law: Any) -> None:
    law(*PREDICTORS[name])


# What changes no answer, or what the laws set themselves.
NOT_TRIED = {"n_jobs", "progress", "budget", "random_state", "max_rows"}  # counts alone


def test_no_predictor_is_forgotten() -> None:
    tried = [predictor for predictor, _ in PREDICTORS.values()]
    named = [getattr(cumae.predictors, name) for name in cumae.predictors.__all__]
    public = {kind for kind in named if isinstance(kind, type) and issubclass(kind, base.Predictor)}
    assert {type(predictor) for predictor in tried} == public
    odd = {type(predictor) for predictor, pair in PREDICTORS.values() if pair.columns == KINDS}
    assert odd == public  # each takes columns, and has met missing cells in them
    default = EverlastingPredictor().get_params(deep=False)
    changed = {
        name
        for predictor in tried
        if isinstance(predictor, EverlastingPredictor)
        for name, value in predictor.get_params(deep=False).items()
        if value is not default[name] and value != default[name]
    }
    assert set(default) - changed == NOT_TRIED
    mechanisms = {one.mechanism for one in tried if isinstance(one, QueryRelease)}
    assert mechanisms >= {"auto", "offline", "stability", "between", "laplace"}
    assert {one.votes for one in tried if isinstance(one, GenericBBL)} == {"stateless", "between"}


@pytest.mark.claim("EVER")
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_query_meets_another(data: st.DataObject) -> None:
    predictor, pair = PREDICTORS["everlasting, thresholds"]
    listed = [[cell] for cell in data.draw(st.lists(st.floats(-2, 2), min_size=2, max_size=12))]
    place = data.draw(st.integers(0, len(listed) - 1))
    odd = data.draw(st.sampled_from(odd_queries(1)) | st.floats() | st.text(max_size=3))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(listed) - 1))))
    asked = [*listed[:place], odd, *listed[place + 1 :]]
    found = answers_to(predictor, pair, in_batches(asked, cuts))
    wanted = answers_to(predictor, pair, [listed])
    del found[place], wanted[place]
    assert found == wanted


# Computed: blocks of one shape


class Recorder(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Learns a threshold, and writes down the tables that it is asked about. Fails on 77."""

    asked: ClassVar[list[Any]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Recorder:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        Recorder.asked.append(np.array(X))
        if np.any(X == 77.0):
            raise ValueError("77")
        return (X[:, 0] > 0.4).astype(int)


@pytest.mark.claim("EVER", "SHARDS")
def test_models_see_tables_of_one_shape_in_which_counts_decide_places() -> None:
    one = oracle(Recorder()).fit(X, Y)
    queries = RNG.random((40, 3))
    queries[5] = 77.0
    Recorder.asked.clear()
    for batch in (queries[:1], queries[1:4], queries[4:30], queries[30:]):
        one.predict(batch)
    assert block_rows(3) > 40
    assert {table.shape for table in Recorder.asked} == {(block_rows(3), 3)}
    stand_in = one._reader_.stand_in[0]
    for table in Recorder.asked:
        for place, row in enumerate(table[:40]):
            assert (row == queries[place]).all() or (row == stand_in).all()
        assert (table[40:] == stand_in).all()


@pytest.mark.claim("EVER", "SHARDS")
def test_a_row_that_fails_is_found_at_its_place() -> None:
    asked: list[int] = []

    class Picky:
        def predict(self, table: Any) -> Any:
            asked.append(int((table[:, 0] != 0.5).sum()))
            if np.any(table[:, 0] == 77.0):
                raise ValueError("77")
            return (table[:, 0] > 0.4) & (np.arange(len(table)) % 2 == 0)  # by its place, too

    (voters,) = stack([Picky()], 2, np.full((1, 1), 0.5))
    table = np.full((600, 1), 0.9)
    numbers = 1000 + np.arange(600)
    expected = (numbers % (block_rows(1) - 1)) % 2 == 0
    assert (voters.count(table, numbers)[:, 1] == expected).all()
    table[[3, 599]] = 77.0
    expected[[3, 599]] = False
    asked.clear()
    assert (voters.count(table, numbers)[:, 1] == expected).all()
    tables = math.ceil(600 / (block_rows(1) - 1)) + 1
    assert len(asked) <= tables + 8 * math.ceil(math.log2(64))  # halves, each at the same places
    for place in (2, 4, 598):
        alone = voters.count(table[[place]], numbers[[place]])
        assert alone[0, 1] == expected[place]


@pytest.mark.claim("SHARDS")
def test_a_model_that_fails_on_stand_ins_is_silent_in_full_blocks_too() -> None:
    class Hates:
        def predict(self, table: Any) -> Any:
            if np.any(table[:, 0] == 0.5):
                raise ValueError("the stand-in")
            return np.ones(len(table))

    (voters,) = stack([Hates()], 2, np.full((1, 1), 0.5))
    assert len(voters) == 1
    for size in (1, block_rows(1), 2 * block_rows(1)):  # else a full block would be answered
        assert (voters.count(np.full((size, 1), 0.9)) == [1, 0]).all()


def test_rows_that_share_a_place_go_to_different_blocks() -> None:
    table = np.arange(5.0).reshape(-1, 1)
    size = block_rows(1) - 1  # the last place is the stand-in's
    numbers = np.array([7, 7 + size, 3, 7 + 2 * size, size * 2**40])
    found = list(blocks(table, numbers, blank_block(np.zeros((1, 1)))))
    assert [block.rows.tolist() for block in found] == [[0, 2, 4], [1], [3]]
    assert [block.places.tolist() for block in found] == [[7, 3, 0], [7], [7]]
    assert all(block.table[size] == 0.0 for block in found)
    assert found[1].table[7] == 1.0
    assert list(blocks(table[:0], numbers[:0], blank_block(np.zeros((1, 1))))) == []
    assert block_rows(2**30) == 2


def blas_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.mark.claim("EVER")
def test_libraries_use_one_thread_while_anybody_trains_or_votes() -> None:
    with threadpool_limits(2, user_api="blas"):
        inside, leave = threading.Event(), threading.Event()

        def train() -> None:
            with one_thread():
                inside.set()
                leave.wait(10)

        other = threading.Thread(target=train)
        other.start()
        inside.wait(10)
        with one_thread():
            assert blas_threads() == {1}
            leave.set()
            other.join(10)
            assert blas_threads() == {1}  # though the other one is gone
        assert blas_threads() == {2}


class Watched(PrivateBooster):
    """A prior that writes down the tables that it is asked about, and stumbles over 77."""

    asked: ClassVar[list[Any]] = []

    def predict_proba(self, X: Any) -> Any:
        Watched.asked.append(np.array(X))
        if np.any(X == 77.0):
            raise ValueError("77")
        return super().predict_proba(X)


@pytest.mark.claim("PRIOR", "EVER")
def test_a_prior_sees_blocks_of_one_shape_and_stumbles_over_its_own_row_only() -> None:
    one = oracle(None, prior=Watched(), columns=[(0, 1)] * 3, shard_size=8).fit(X, Y)
    Watched.asked.clear()
    asked = RNG.random((6, 3))
    prior = one._state_.prior
    assert isinstance(prior, Prior)
    whole = prior.shares(asked, np.arange(6))
    asked[2] = 77.0
    found = prior.shares(asked, np.arange(6))
    assert (found[2] == 0.5).all()
    others = [0, 1, 3, 4, 5]
    assert (found[others] == whole[others]).all()
    assert (prior.shares(asked[3:], np.arange(3, 6)) == whole[3:]).all()
    assert {table.shape for table in Watched.asked} == {(64, 3)}


# Read: one by one, into the types of fit


@pytest.mark.claim("EVER")
@pytest.mark.parametrize(
    "same", [[0.5], (0.5,), np.array([0.5]), pd.Series([0.5]), np.array(0.5), np.float64(0.5)]
)
def test_a_row_of_a_list_is_read_by_itself(same: Any) -> None:
    one = oracle(Thresholds("above"), epsilon=math.inf, shard_size=8).fit(COLUMN, Y)
    assert one.predict([0.05, 0.9, 0.95, same]).tolist() == [0, 1, 1, 1]
    assert one.predict([[0.05], [0.9], [0.95], same]).tolist() == [0, 1, 1, 1]


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("odd", [[], [0.5, 0.5], (1,) * 7, np.ones(2), pd.Series([], dtype=float)])
def test_rows_of_another_width_count_only_among_others(odd: Any) -> None:
    """The width that all rows share is public, in a list as in an array."""
    one = oracle(Thresholds("above"), epsilon=math.inf, shard_size=8).fit(COLUMN, Y)
    listed = np.empty(2, dtype=object)
    listed[:] = [odd, odd]
    strange = [[object()] * len(odd)]
    for queries in ([odd], [odd, odd], (odd, [None] * len(odd)), listed, strange):
        with pytest.raises(InvalidData, match=f"X has {len(odd)} feature"):
            one.predict(queries)
    assert one.answered_ == 0
    assert one.predict([0.05, odd, [0.95]]).tolist() == [0, -1, 1]
    assert one.predict([odd, [*odd, 0.5], [*odd, 0.5]]).tolist()[0] == -1
    assert one.predict([odd, None]).tolist() == [-1, -1]
    assert one.answered_ == 8


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("odd", [[[0.5]], "text", None, {}, object(), {0.5}])
def test_what_is_no_row_gets_no_answer_and_counts(odd: Any) -> None:
    one = oracle(Thresholds("above"), epsilon=math.inf, shard_size=8).fit(COLUMN, Y)
    assert one.predict([0.05, odd, [0.95]]).tolist() == [0, -1, 1]
    assert one.predict([odd]).tolist() == [-1]
    assert one.predict(np.array([odd, None], dtype=object)[:1]).tolist() == [-1]
    assert one.answered_ == 5


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("memoize", [False, True])
def test_a_column_of_text_keeps_its_type_whatever_is_in_it(memoize: bool) -> None:
    seen: list[Any] = []

    class Typed(DecisionTreeClassifier):  # type: ignore[misc]  # untyped base
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            return super().fit(X[["a"]], y, sample_weight)

        def predict(self, X: Any) -> Any:
            seen.append(X.dtypes.tolist())
            return super().predict(X[["a"]])

    one = oracle(Typed(), memoize=memoize).fit(FRAME, Y)
    words: list[list[Any]] = [["u", "v"], [dt.date(2020, 1, 1)] * 2, [1, 2], [1.5, 2.5], [True, 1]]
    for cells in words:
        batch = FRAME[:2].reset_index(drop=True)
        one.predict(batch.assign(word=pd.Series(cells)))
        one.predict(batch.assign(word=pd.Series(cells, dtype=object)))
    assert {tuple(types) for types in seen} == {(np.dtype(np.float64), np.dtype(object))}


# Remembered: identical rows only


@pytest.mark.claim("MEMO")
def test_keys_are_the_same_for_identical_rows_only() -> None:
    frame = pd.DataFrame({"a": [0.0, -0.0, 0.0], "b": pd.Series(["x", "x", "x"], dtype=object)})
    first, second, third = row_keys(frame)
    assert first == third != second
    first, second, third = row_keys(frame[["a"]].to_numpy())
    assert first == third != second


@pytest.mark.claim("MEMO")
def test_a_remembered_query_has_the_same_votes_wherever_it_comes() -> None:
    places: list[int] = []

    class Placed(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            self.classes_ = np.unique(y)
            return self

        def predict(self, X: Any) -> Any:
            places.extend(np.flatnonzero(X[:, 0] == 0.123).tolist())
            return (X[:, 0] > 0.4).astype(int)

    one = oracle(Placed(), memoize=True).fit(X, Y)
    places.clear()
    asked = RNG.random((7, 3))
    asked[4] = 0.123
    one.predict(asked)
    one.predict(asked[4:])
    assert len(set(places)) == 1


# Tried: what will run


@pytest.mark.claim("EVER")
def test_an_estimator_that_refuses_weights_gets_drawn_labels() -> None:
    one = oracle(NO_WEIGHTS, epsilon=math.inf).fit(X, Y)
    assert not one._state_.rules.weighted
    assert one._state_.phase.ensemble.constant.sum() == 0
    assert np.mean(one.predict(X) == Y) > 0.9
    one.predict(X)  # and so do later phases
    assert one.phase_ == 2
    assert one._state_.phase.ensemble.constant.sum() < one.n_shards_ / 2
    assert oracle(DecisionTreeClassifier()).fit(X, Y)._state_.rules.weighted


@pytest.mark.claim("SHARDS")
@pytest.mark.usefixtures("little_trained")
def test_a_pipeline_that_stumbles_over_unknown_text_is_refused_before_the_payment() -> None:
    strict = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["word"]), remainder="drop"),
        DecisionTreeClassifier(max_depth=2),
    )
    for predictor in (oracle(strict), QueryRelease(strict)):
        with pytest.raises(InvalidParameter, match=r"unknown categories.*handle_unknown='ignore'"):
            predictor.fit(FRAME, Y)


# Guarantees of later phases, and of fresh rows


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("growth", [1.0, 1.1, 1.7])
def test_no_phase_costs_more_rho_than_is_published(growth: float, n_classes: int) -> None:
    labels = (X[:, 0] * n_classes).astype(int)
    one = oracle(None, growth=growth, classes=tuple(range(n_classes))).fit(X, labels)
    assert one.guarantee_.rho is not None
    for n_rows in range(100, 1500, 61):
        majority = one._state_.rules.majority(n_rows)
        assert rules.rho_of(majority) <= one.guarantee_.rho


@pytest.mark.claim("FRESH")
def test_the_guarantee_names_fresh_rows() -> None:
    one = oracle(Thresholds(), shard_size=8, fresh=True, growth=2.0).fit(COLUMN, Y)
    assert one.guarantee_.protects == "one training row, one query or one row of add_unlabelled"
    assert "add_unlabelled" in one.guarantee_.relation
    assert (
        "add_unlabelled"
        not in oracle(Thresholds(), shard_size=8).fit(COLUMN, Y).guarantee_.protects
    )


def test_margins_are_given_as_they_are_tried() -> None:
    trainer = margins.MarginTrainer(DecisionTreeClassifier(), 3, full_weight=10)
    assert trainer.targets(np.array([2, 0])).tolist() == [[0, 0, 10], [10, 0, 0]]
