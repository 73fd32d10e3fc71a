"""States of predictors: stored as plain arrays, restored with the same future."""

from __future__ import annotations

import copy
import datetime as dt
import gc
import json
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cumae import BudgetExhausted, EverlastingPredictor, InvalidParameter, QueryRelease
from cumae.codec import FORMAT, from_bytes, to_bytes
from cumae.concepts import FiniteClass, Stumps, Threshold, Thresholds
from cumae.ensembles.blocks import FEW_BLOCK_ROWS, AskedInBlocks, block_rows
from cumae.errors import LiveState
from cumae.learners import PrivateLogisticRegression
from cumae.predictors.estimators import estimator_from_plain, estimator_to_plain
from cumae.predictors.everlasting.keeping import SeenIds
from cumae.predictors.everlasting.phases import OpenPhase
from cumae.predictors.state import restore
from cumae.predictors.waiting import KeptRows
from tests.forks import answer_in_a_fork
from tests.states import ahead_of, rewritten, rows_of, through_a_file

pytestmark = [
    pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows"),
    pytest.mark.filterwarnings("ignore::cumae.errors.AnswersDrift"),
]

N = 240
RNG = np.random.default_rng(5)
ONE = RNG.random((4 * N, 1))
THREE = RNG.random((4 * N, 3))
WORDS = pd.DataFrame({"size": RNG.random(4 * N), "word": RNG.choice(["ja", "nein"], 4 * N)})
DECLARED = {"size": (0, 1), "word": ["ja", "nein", "vielleicht"]}
TEXT = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["word"]),
        remainder="passthrough",
    ),
    GaussianNB(),
)
EPSILON = 8.0


def made(estimator: Any = None, **changes: Any) -> EverlastingPredictor:
    given = {"epsilon": EPSILON, "shard_size": 12, "growth": 1.0, "prior": False}
    return EverlastingPredictor(estimator, **(given | changes))


# Each: a predictor, its rows, what is asked before it is stored.
CASES: dict[str, tuple[EverlastingPredictor, Any, int]] = {
    "concept class": (made(Thresholds()), ONE, 100),
    "at once": (made(Thresholds()), ONE, 0),
    "second phase": (made(Stumps()), THREE, N + 30),
    "trees": (made(), THREE, 77),
    "ridges": (made(RidgeClassifier()), THREE, N + 1),
    "neighbours": (made(KNeighborsClassifier(1)), THREE, N + 50),
    "neighbours, first phase": (made(KNeighborsClassifier(1)), THREE, 50),
    "text": (made(TEXT, shard_size=40), WORDS, 100),  # pipelines with text are slow: few of them
    "text, second phase": (made(TEXT, shard_size=40, memoize=True), WORDS, N + 100),
    "declared text": (made(columns=DECLARED), WORDS, N + 10),
    "late": (made(Thresholds(), late=0.25), ONE, N - 30),
    "late and slow": (made(KNeighborsClassifier(1), late=0.25), THREE, N - 30),
    "late text": (made(TEXT, shard_size=40, late=0.3), WORDS, N - 30),
    "memo": (made(Thresholds(), memoize=True, epsilon=1.0), ONE, 100),
    "prior": (made(columns=[(0, 1)] * 3, prior=None, shard_size=6), THREE, 50),
    "own prior": (
        made(Thresholds(), prior=PrivateLogisticRegression(columns=[(0, 1)]), shard_size=6),
        ONE,
        150,
    ),
    "no bound": (made(Thresholds(), epsilon=math.inf), ONE, 20),
    "users": (made(Thresholds(), user_ids=True, growth=1.3), ONE, 100),
    "clients": (made(Thresholds(), client_cap=0.1, growth=1.2), ONE, 100),
    "fresh": (made(Thresholds(), fresh=True, growth=2.0), ONE, 100),
    "fresh, late": (made(Thresholds(), fresh=True, growth=2.0, late=0.3), ONE, 100),
    "fresh text": (made(TEXT, shard_size=40, fresh=True, growth=2.0), WORDS, N + 100),
}


def labels_of(table: Any) -> NDArray[Any]:
    first = table.iloc[:, 0] if hasattr(table, "iloc") else table[:, 0]
    return np.asarray(first > 0.4).astype(int)


def ask(one: EverlastingPredictor, table: Any, start: int, stop: int) -> list[Any]:
    """Ask some queries, and return the answers; with a memo, the same ones again and again."""
    asked = rows_of(table[:90] if one.memoize else table, start, stop)
    who: dict[str, Any] = {}
    if one.user_ids:
        who["users"] = [f"u{i}" if i % 3 else i % 50 for i in range(start, stop)]
    if one.client_cap is not None:
        who["clients"] = [place % 7 for place in range(start, stop)]
    return one.predict(asked, **who).tolist() if len(asked) else []


def begun(name: str) -> EverlastingPredictor:
    made_up, table, before = CASES[name]
    one = EverlastingPredictor(**made_up.get_params(deep=False))
    users = {"users": list(range(-N, 0))} if one.user_ids else {}
    one.fit(rows_of(table, 0, N), labels_of(rows_of(table, 0, N)), **users)
    if one.fresh:
        one.add_unlabelled(rows_of(table, 0, 4 * N))
    ask(one, table, 0, before)
    return one


def settle(one: EverlastingPredictor) -> None:
    """Wait for training in the background: while it runs, warnings are errors everywhere."""
    following = one._state_.following
    if following is not None and following._thread is not None:
        following._thread.join()


def future(one: EverlastingPredictor, table: Any, before: int) -> list[Any]:
    one._counter_.coins.drop()  # what was drawn ahead is not stored
    found: list[Any] = [one.phase_, one.answered_, one.remaining_, str(one.guarantee_)]
    for start in range(before, before + 560, 70):
        found += [ask(one, table, start, start + 70), one.remaining_, one.phase_]
        found += [one.n_shards_, one.noise_per_vote_, one.answered_]
    settle(one)
    return found


UNTRACED = pytest.mark.no_cover  # pipelines with text, which other tests store, too


@pytest.mark.claim("EVER", "USER", "FRESH", "MEMO", "LATE", "PRIOR")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[UNTRACED] * ("text" in name)) for name in CASES]
)
def test_a_restored_predictor_has_the_same_future(name: str, coins: Callable[[int], None]) -> None:
    _, table, before = CASES[name]
    one = begun(name)
    started = one.phase_
    again = restore(through_a_file(one.to_arrays()))
    coins(1)
    expected = future(one, table, before)
    coins(1)
    assert future(again, table, before) == expected
    assert again.phase_ >= started + 2
    assert again.guarantee_ == one.guarantee_
    for parameter in set(one.get_params(deep=False)) - {"estimator", "concept_class", "prior"}:
        assert getattr(again, parameter) == getattr(one, parameter)
    assert str(again.estimator) == str(one.estimator)
    assert type(again.prior) is type(one.prior)
    assert again.trust_ == one.trust_
    assert again.classes_.tolist() == one.classes_.tolist()


def test_other_coins_give_another_future(coins: Callable[[int], None]) -> None:
    _, table, before = CASES["memo"]
    arrays = begun("memo").to_arrays()
    found = []
    for seed in (1, 1, 2):
        one = restore(arrays)
        coins(seed)
        found.append(future(one, table, before))
    assert found[0] == found[1] != found[2]


def test_each_part_of_a_state_is_needed(coins: Callable[[int], None]) -> None:
    # The test of futures above would see it if something were forgotten.
    cases: dict[str, Callable[[Any], Any]] = {
        "concept class": lambda state: setattr(state, "kept", KeptRows()),
        "late": lambda state: setattr(state, "following", None),
        "memo": lambda state: state.phase.memo.clear(),
        "users": lambda state: setattr(state.admission, "seen", SeenIds()),
        "clients": lambda state: state.admission.of_client.clear(),
        "fresh": lambda state: setattr(state, "waiting", state.waiting.split(N)[1]),
        "own prior": lambda state: setattr(state, "trust", 0.0 if state.trust else 0.2),
    }
    for name, forget in cases.items():
        _, table, before = CASES[name]
        arrays = begun(name).to_arrays()
        found = []
        for forgetful in (False, True):
            one = restore(arrays)
            if forgetful:
                forget(one._state_)
            coins(1)
            try:
                found.append(future(one, table, before))
            except BudgetExhausted:
                found.append([])
        assert found[0] != found[1], name


# What is stored


@pytest.mark.parametrize("name", ["text, second phase", "users", "prior"])
def test_arrays_are_plain(name: str) -> None:
    arrays = begun(name).to_arrays()
    assert all(type(array) is np.ndarray for array in arrays.values())
    assert all(array.dtype.kind in "biufSU" for array in arrays.values())
    facts = from_bytes(arrays["state"].tobytes())
    assert facts["format"] == FORMAT
    assert facts["kind"] == "EverlastingPredictor"


@pytest.mark.claim("NOISE")
def test_noise_that_was_drawn_ahead_is_never_used_twice(coins: Callable[[int], None]) -> None:
    one = begun("concept class")
    waiting = ahead_of(one)["votes"]
    assert len(waiting) > 500
    arrays = one.to_arrays()
    assert not any(waiting[:50].tobytes() in array.tobytes() for array in arrays.values())
    again = restore(arrays)
    assert not ahead_of(again)
    coins(1)
    ask(again, ONE, 100, 101)
    assert not np.array_equal(ahead_of(again)["votes"][:500], waiting[:500])


@pytest.mark.claim("EVER")
def test_rows_of_a_phase_are_kept_only_if_models_must_be_made_again() -> None:
    assert begun("concept class")._state_.phase.recipe is None
    one = begun("neighbours, first phase")
    first = one._state_.phase.recipe
    assert first is not None
    assert first.rows.n_rows == N
    assert not np.shares_memory(first.rows.take(np.arange(N)), THREE)
    ask(one, THREE, 50, N + 50)
    assert one._state_.phase.recipe is not first
    assert not [thing for thing in gc.get_referrers(first) if isinstance(thing, OpenPhase)]


def test_a_state_shows_nothing_of_the_rows() -> None:
    one = begun("late and slow")
    settle(one)
    state = one._state_
    shown = repr([state, state.phase, state.following, state.phase.recipe])
    assert "array" not in shown
    assert "0." not in shown


@pytest.mark.parametrize("column", [[1, 1.0, True, "1", 1 << 80, -0.0, math.nan, math.inf, b"1"]])
def test_cells_keep_their_types(column: list[Any]) -> None:
    cells = [*column, dt.date(2020, 2, 3), dt.datetime(2020, 2, 3, 4), np.datetime64("2020-01")]  # noqa: DTZ001
    table = pd.DataFrame({"a": pd.Series(cells, dtype=object), "b": np.arange(len(cells))})
    found = from_bytes(to_bytes({"table": table}))["table"]
    assert list(found.columns) == ["a", "b"]
    assert found["b"].dtype == np.int64
    assert [type(cell) for cell in found["a"]] == [type(cell) for cell in cells]
    assert [repr(cell) for cell in found["a"]] == [repr(cell) for cell in cells]


# Who may go on


@pytest.mark.claim("EVER", "QUERY")
def test_a_restored_predictor_belongs_to_its_process_before_the_first_question() -> None:
    x = RNG.random((300, 1))
    offline = QueryRelease(Thresholds(), epsilon=EPSILON, mechanism="offline", max_queries=5)
    used_up = made(Thresholds()).fit(x, labels_of(x))
    used_up.predict(rows_of(x, 0, 300))  # the next question begins a phase
    assert used_up._state_.left == 0
    for one in (offline.fit(x, labels_of(x)), used_up):
        again = restore(one.to_arrays())
        assert answer_in_a_fork(again, [[0.5]]) == "refused"
        assert len(again.predict([[0.5]])) == 1


class Rounded(PrivateLogisticRegression):
    """Says that its scores may depend on the table, so that it is asked in blocks."""

    is_exact = False


@pytest.mark.claim("MEMO")
@pytest.mark.full_blocks
def test_with_a_memo_the_place_for_a_wide_prior_follows_from_its_own_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cumae.ensembles.blocks.BLOCK_CELLS", 2**14)  # else 16,384 columns are few
    prior = Rounded(columns=[(0, 1), list(range(600))])
    table = np.column_stack([RNG.random(N), RNG.integers(0, 600, N)])
    one = made(Stumps(), prior=prior, shard_size=6, memoize=True).fit(table, labels_of(table))
    asked: list[Any] = []
    call = AskedInBlocks.__call__

    def heard(self: AskedInBlocks, X: Any, numbers: Any) -> Any:
        asked.append(numbers)
        return call(self, X, numbers)

    monkeypatch.setattr(AskedInBlocks, "__call__", heard)
    # All in one place, so that a number depends on who else asks.
    monkeypatch.setattr("cumae.predictors.everlasting.phases.crc32", lambda _: 7)
    one.predict(rows_of(table, 0, 3))
    one.predict(rows_of(table, 2, 3))
    kept: Any = one._state_.prior
    size = kept.block_rows - 1
    assert size < block_rows(2, FEW_BLOCK_ROWS) - 1 < block_rows(2) - 1
    assert asked[0][2] % size == asked[1][0] % size


def test_a_restored_predictor_cannot_be_copied() -> None:
    one = restore(begun("at once").to_arrays())
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LiveState):
            duplicate(one)
    assert answer_in_a_fork(one, [[0.5]]) == "refused"
    with pytest.raises(NotFittedError):
        clone(one).to_arrays()


# Estimators


class Own(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of somebody else."""

    def __init__(self, cut: float = 0.4) -> None:
        self.cut = cut

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Own:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return (np.asarray(X)[:, 0] > self.cut).astype(int)


def test_an_unknown_estimator_is_given_again(coins: Callable[[int], None]) -> None:
    one = made(Own(0.3)).fit(THREE[:N], labels_of(THREE[:N]))
    ask(one, THREE, 0, 100)
    arrays = one.to_arrays()
    with pytest.raises(InvalidParameter, match="give an equal one as estimator="):
        restore(arrays)
    for other in (Own(0.4), DecisionTreeClassifier(), Thresholds()):
        with pytest.raises(InvalidParameter, match="not the one that was stored"):
            restore(arrays, estimator=other)
    again = restore(arrays, Own(0.3))
    coins(1)
    expected = future(one, THREE, 100)
    coins(1)
    assert future(again, THREE, 100) == expected


def test_a_changed_estimator_is_refused() -> None:
    arrays = begun("ridges").to_arrays()
    with pytest.raises(InvalidParameter, match="not the one that was stored"):
        restore(arrays, RidgeClassifier(alpha=2.0))
    assert restore(arrays, RidgeClassifier()).phase_ == 2


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=3, class_weight={0: 1.0, 1: 2.5}),
        TEXT,
        make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
        KNeighborsClassifier(metric_params={"p": 3}),
        OneHotEncoder(dtype=np.float32, categories=[["a", "b"]]),
        Thresholds("above"),
        FiniteClass([Threshold(0.5), Threshold(0.7)]),
    ],
)
def test_known_estimators_are_written_out(model: Any) -> None:
    written = json.loads(json.dumps(estimator_to_plain(model)))
    found = estimator_from_plain(written)
    assert type(found) is type(model)
    assert estimator_to_plain(found) == written
    assert estimator_from_plain(written, model) is model


def _shifted(X: Any) -> Any:
    return X + 1.0


@pytest.mark.parametrize(
    ("model", "other"),
    [
        (FunctionTransformer(np.log1p), FunctionTransformer(np.log)),
        (FunctionTransformer(_shifted), FunctionTransformer(through_a_file)),
        (FunctionTransformer(lambda X: X + 1), FunctionTransformer(lambda X: X * 2)),
        (Own(0.1), Own(0.2)),
        (KNeighborsClassifier(metric=_shifted), KNeighborsClassifier(metric=ask)),
    ],
)
def test_unknown_estimators_have_fingerprints(model: Any, other: Any) -> None:
    written = estimator_to_plain(model)
    assert written["written"] is None
    assert written == estimator_to_plain(clone(model))
    assert estimator_to_plain(other)["fingerprint"] != written["fingerprint"]


def test_only_listed_classes_are_made() -> None:
    written = estimator_to_plain(GaussianNB())
    for module, name in [("subprocess", "Popen"), ("sklearn.naive_bayes", "BaseEstimator")]:
        plain = json.loads(written["written"] or "") | {"module": module, "class": name}
        with pytest.raises(InvalidParameter, match="not on the list"):
            estimator_from_plain(written | {"written": json.dumps(plain)})


# What is refused


def test_broken_arrays_are_refused() -> None:
    arrays = begun("second phase").to_arrays()
    assert restore(arrays).phase_ == 2
    for name, array in arrays.items():
        without = {other: arrays[other] for other in arrays if other != name}
        changes = [without, {**arrays, name: array[None]}]
        changes.append({**arrays, name: array.astype(np.float32)})
        if array.size:
            changes.append({**arrays, name: array.ravel()[:-1]})
            for place in (0, array.nbytes // 2, -1):
                flipped = array.copy()
                flipped.ravel().view(np.uint8)[place] ^= 1
                changes.append({**arrays, name: flipped})
        for broken in changes:
            with pytest.raises(InvalidParameter):
                restore(broken)
    for broken in ({**arrays, "more": np.zeros(1)}, {}, {"state": np.zeros(3)}):
        with pytest.raises(InvalidParameter, match="no stored state"):
            restore(broken)


def three_shards(phase: dict[str, Any]) -> None:
    inner = from_bytes(phase["packed"].tobytes())
    inner["ensemble"].update(n_shards=3)
    phase["packed"] = np.frombuffer(to_bytes(inner), dtype=np.uint8)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda facts: facts.update(format=2), f"reads format {FORMAT}"),
        (lambda facts: facts.update(kind="Other"), "unknown kind 'Other'"),
        (lambda facts: facts.pop("phase"), "no stored state"),
        (lambda facts: facts["spent"].put(0, 10**9), "asked"),
        (lambda facts: facts["rules"].update(more=1), "no stored state"),
        (lambda facts: three_shards(facts["phase"]), "do not match"),
        (lambda facts: facts["fitted"].update(guarantee=None), "no stored state"),
    ],
)
def test_facts_that_do_not_fit_are_refused(change: Callable[[Any], None], what: str) -> None:
    arrays = begun("at once").to_arrays()
    with pytest.raises(InvalidParameter, match=what):
        restore(rewritten(arrays, change))


def test_what_cannot_be_stored_is_said() -> None:
    one = made(Thresholds(), columns=[(0, 1)]).fit(ONE[:N], labels_of(ONE[:N]))
    one._state_.fitted.parameters["columns"] = object()
    with pytest.raises(InvalidParameter, match="cannot be stored"):
        one.to_arrays()
