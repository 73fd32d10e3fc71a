"""States of the releases and of GenericBBL: stored as plain arrays, restored with the same future.

What all states share is tested in test_predictors_state.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from cumae import (
    AgnosticQueryRelease,
    BudgetExhausted,
    GenericBBL,
    InvalidParameter,
    QueryRelease,
    UniversalQueryRelease,
)
from cumae.concepts import Halfspaces, Projections, Rectangles, Stumps, Threshold, Thresholds
from cumae.mechanisms import Spent
from cumae.predictors import recipes
from cumae.predictors.state import restore
from cumae.predictors.waiting import KeptRows
from tests.states import ahead_of, rewritten, rows_of, through_a_file

pytestmark = pytest.mark.filterwarnings(
    "ignore::cumae.errors.TooFewRows", "ignore:.*queries of this batch were not looked at"
)

N = 240
RNG = np.random.default_rng(6)
ONE = RNG.random((3 * N, 1))
THREE = RNG.random((3 * N, 3))
FRAME = pd.DataFrame(THREE, columns=["a", "b", "c"])
WORDS = pd.DataFrame({"size": RNG.random(3 * N), "word": RNG.choice(["ja", "nein"], 3 * N)})
DECLARED = {"size": (0.0, 1.0), "word": ["ja", "nein"]}
TEXT = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["word"]), remainder="passthrough"
    ),
    GaussianNB(),
)
NEAR = KNeighborsClassifier(1)
SIDES = Projections(np.eye(3)[:2])


def query(model: Any, mechanism: str = "gaussian", **more: Any) -> QueryRelease:
    given: dict[str, Any] = {"epsilon": 6.0, "max_queries": 150, "n_shards": 30, "max_unstable": 40}
    if mechanism in ("stability", "between"):
        given |= {"epsilon": 400.0, "n_shards": 60}
    return QueryRelease(model, mechanism=mechanism, **{**given, **more})


def agnostic(model: Any, **more: Any) -> AgnosticQueryRelease:
    given: dict[str, Any] = {"epsilon": 30.0, "max_queries": 150, "n_shards": 12}
    return AgnosticQueryRelease(model, **{**given, **more})


def universal(model: Any = None, **more: Any) -> UniversalQueryRelease:
    given: dict[str, Any] = {"epsilon": 8.0, "n_first": 90, "n_shards": 30, "max_unstable": 40}
    return UniversalQueryRelease(model, **{**given, **more})


def bbl(model: Any = None, **more: Any) -> GenericBBL:
    given: dict[str, Any] = {
        "shard_size": 10,
        "phase_length": 120,
        "query_share": 0.5,
        "label_share": 0.1,
    }
    given |= {"epsilon": 8.0}
    return GenericBBL(model or Thresholds(), **{**given, **more})


BETWEEN = {"votes": "between", "shard_size": 2, "between_share": 0.2, "epsilon": 200.0}
# Each: a predictor, its rows, how many queries come before it is stored.
CASES: dict[str, tuple[Any, Any, int]] = {
    "gaussian": (query(Thresholds()), ONE, 40),
    "gaussian, at once": (query(Thresholds()), ONE, 0),
    "gaussian, one by one": (query(NEAR), THREE, 40),
    "gaussian, text": (query(TEXT), WORDS, 40),
    "gaussian, declared text": (query(None, columns=DECLARED), WORDS, 40),
    "gaussian, declared text, one by one": (query(NEAR, columns=DECLARED), WORDS, 40),
    "laplace": (query(None, "laplace", epsilon=300.0), THREE, 40),
    "laplace, one by one": (query(NEAR, "laplace", epsilon=300.0), THREE, 40),
    "stability": (query(Thresholds(), "stability"), ONE, 40),
    "stability, one by one": (query(NEAR, "stability"), THREE, 40),
    "stability, text": (query(TEXT, "stability", abstain=True), WORDS, 40),
    "between": (query(Thresholds(), "between"), ONE, 40),
    "between, one by one": (query(NEAR, "between"), THREE, 40),
    "offline, before": (query(Thresholds(), "offline", n_shards="auto"), ONE, 0),
    "offline, after": (query(Stumps(), "offline", n_shards="auto"), FRAME, 30),
    "agnostic": (agnostic(Thresholds(), mechanism="gaussian"), ONE, 40),
    "agnostic, frame": (agnostic(Stumps(), mechanism="laplace"), FRAME, 40),
    "agnostic, stability": (agnostic(Thresholds(), mechanism="stability"), ONE, 40),
    "agnostic, one by one": (agnostic(SIDES, mechanism="gaussian"), THREE, 40),
    "universal, first stage": (universal(Thresholds()), ONE, 40),
    "universal, at once": (universal(Thresholds()), ONE, 0),
    "universal, stability": (
        universal(Thresholds(), mechanism="stability", epsilon=650.0, n_shards=60),
        ONE,
        40,
    ),
    "universal, agnostic": (
        universal(Thresholds(), release="agnostic", epsilon=60.0, n_shards=12),
        ONE,
        40,
    ),
    "universal, hypothesis": (universal(Stumps()), FRAME, 120),
    "universal, before a student": (universal(), THREE, 40),
    "universal, before a student, one by one": (universal(NEAR), THREE, 40),
    "universal, student": (
        universal(student=RandomForestClassifier(4, max_depth=3)),
        THREE,
        120,
    ),
    "universal, student of a concept": (universal(Thresholds(), student=GaussianNB()), ONE, 120),
    "universal, before a student, text": (universal(TEXT), WORDS, 40),
    "universal, student, text": (universal(TEXT), WORDS, 120),
    "bbl": (bbl(), ONE, 70),
    "bbl, second phase": (bbl(), ONE, 150),
    "bbl, frame": (bbl(Stumps()), FRAME, 70),
    "bbl, one by one": (bbl(SIDES, epsilon=60.0), THREE, 130),
    "bbl, between": (bbl(**BETWEEN), ONE, 70),
    "bbl, fresh": (bbl(fresh=True), ONE, 70),
    "bbl, agnostic": (bbl(agnostic=True, epsilon_boost=1.0), ONE, 70),
    "bbl, boxes": (bbl(Rectangles(), n_cuts=5), THREE[:, :2], 130),
    "bbl, halfspaces, one by one": (bbl(Halfspaces(), n_cuts=5), THREE[:, :2], 130),
    "agnostic, boxes": (agnostic(Rectangles(), mechanism="gaussian", n_cuts=5), THREE[:, :2], 40),
}


PUBLIC = [
    *("remaining_", "phase_", "stage_", "n_shards_", "mechanism_", "why_"),
    *("noise_per_vote_", "stages_", "n_first_", "n_sampled_", "epsilon_boost_"),
]


def labels_of(table: Any) -> Any:
    """Return labels that are wrong for every tenth row, so that votes are not all clear."""
    first = table.iloc[:, 0] if hasattr(table, "iloc") else table[:, 0]
    return (np.asarray(first > 0.4) ^ (np.arange(len(first)) % 10 == 0)).astype(int)


def begun(name: str) -> Any:
    made, table, before = CASES[name]
    one = type(made)(**made.get_params(deep=False))
    own = rows_of(table, 0, N)
    one.fit(own, labels_of(own))
    if getattr(one, "fresh", False):
        one.add_unlabelled(rows_of(table, 0, 2 * N))
    if before:
        one.predict(rows_of(table, 0, before))
    return one


def future(one: Any, table: Any, before: int) -> list[Any]:
    """Ask until nothing remains; return all that can be seen."""
    one._counter_.coins.drop()  # what was drawn ahead is not stored
    found: list[Any] = []
    promise = one.guarantee_
    found.append((promise.epsilon, promise.delta, promise.protects, promise.rho, promise.void))
    for start in range(before, before + 280, 35):
        found.append([getattr(one, attribute, None) for attribute in PUBLIC])
        try:
            found.append(one.predict(rows_of(table, start, start + 35)).tolist())
        except BudgetExhausted as error:
            found.append(str(error))
    return found


@pytest.mark.claim("QUERY", "AGPRIV", "UNV", "BBL", "STAB", "BT")
@pytest.mark.parametrize("name", CASES)
def test_a_restored_predictor_has_the_same_future(name: str, coins: Callable[[int], None]) -> None:
    _, table, before = CASES[name]
    one = begun(name)
    again = restore(through_a_file(one.to_arrays()))
    assert type(again) is type(one)
    assert again.guarantee_ == one.guarantee_
    coins(1)
    expected = future(one, table, before)
    coins(1)
    assert future(again, table, before) == expected
    assert again.classes_.tolist() == one.classes_.tolist()
    assert again._state_.answered == one._state_.answered > 0
    for parameter in set(one.get_params(deep=False)) - {"estimator", "concept_class", "student"}:
        assert getattr(again, parameter) == getattr(one, parameter)
    for parameter in ("estimator", "concept_class", "student"):
        assert str(getattr(again, parameter, None)) == str(getattr(one, parameter, None))


@pytest.mark.claim("STAB", "BT")
def test_threshold_noise_is_live_when_it_is_stored(coins: Callable[[int], None]) -> None:
    coins(1)  # few votes lie between thresholds, and by other coins it may be none
    for name in ("stability", "stability, one by one", "between"):
        state = begun(name)._state_
        assert 0 < state.spent.unclear < 40
        assert state.left == 110
    state = begun("bbl, between")._state_
    assert 0 < state.spent.unclear < state.rule.max_between
    for name in ("stability", "between", "bbl, between"):
        one = begun(name)
        noise = one._state_.spent.threshold_noise
        assert restore(one.to_arrays())._state_.spent.threshold_noise == noise


def recipe_of(one: Any) -> Any:
    state = one._state_
    if isinstance(one, GenericBBL):
        return state.phase.recipe
    return state.voting.recipe


@pytest.mark.parametrize("name", [n for n in CASES if "offline" not in n and CASES[n][2] < 90])
def test_rows_are_kept_only_if_models_must_be_made_again(name: str) -> None:
    assert (recipe_of(begun(name)) is not None) == ("one by one" in name or name[-6:] == ", text")


def test_other_coins_give_another_future(coins: Callable[[int], None]) -> None:
    for name in ("gaussian, text", "stability", "between", "universal, first stage", "bbl"):
        _, table, before = CASES[name]
        arrays = begun(name).to_arrays()
        found = []
        for seed in (1, 1, 2):
            one = restore(arrays)
            coins(seed)
            found.append(future(one, table, before))
        assert found[0] == found[1] != found[2], name


def test_each_part_of_a_state_is_needed(coins: Callable[[int], None]) -> None:
    # The test of futures above would see it if something were forgotten.
    def shift(state: Any) -> None:
        state.spent = state.spent._replace(threshold_noise=state.spent.threshold_noise + 40)

    def put(state: Any, **parts: Any) -> None:
        for name, value in parts.items():
            setattr(state, name, value)

    cases: dict[str, Callable[[Any], Any]] = {
        "gaussian": lambda state: put(state, spent=Spent()),
        "stability": shift,
        "between": shift,
        "offline, after": lambda state: put(state, offline=replace(state.offline, hypothesis=None)),
        "universal, first stage": lambda state: put(state, spent=Spent()),
        "universal, before a student": lambda state: put(state, kept=KeptRows()),
        "bbl": lambda state: state.phase.kept.rows.fill(0.0),
        "bbl, fresh": lambda state: put(state, waiting=state.waiting.split(N)[1]),
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
            told = [getattr(one, "hypothesis_", None) is None] if "offline" in name else []
            found.append([told, future(one, table, before)])
        assert found[0] != found[1], name


@pytest.mark.claim("BBL")
@pytest.mark.parametrize("fresh", [False, True])
def test_a_phase_that_was_drawn_is_trained_after_restoring(
    fresh: bool, coins: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = bbl(fresh=fresh).fit(ONE[:N], labels_of(ONE[:N]))
    if fresh:
        one.add_unlabelled(ONE)
    one.predict(ONE[:120])

    def broken(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(recipes, "train_shards", broken)
        with pytest.raises(KeyboardInterrupt):
            one.predict(ONE[:1])
    drawn = one._state_.following
    assert drawn is not None
    again = restore(through_a_file(one.to_arrays()))
    found = again._state_.following
    assert np.array_equal(found.recipe.weights, drawn.recipe.weights)
    assert again._state_.phase.scored is None
    coins(1)
    expected = future(one, ONE, 120)
    coins(1)
    assert future(again, ONE, 120) == expected
    assert again.phase_ > 2


@pytest.mark.claim("NOISE")
@pytest.mark.parametrize(
    "name", ["gaussian", "laplace", "stability", "between", "universal, stability", "bbl"]
)
def test_nothing_that_was_drawn_ahead_is_stored_or_used_twice(name: str) -> None:
    one = begun(name)
    if name != "bbl":  # unclear answers are guessed
        one._state_.voting.guessed(np.array([-1]), one._counter_.coins)
    drawn = ahead_of(one)
    assert set(drawn) == ({"votes"} if name == "bbl" else {"votes", "guesses"})
    assert all(len(waiting) > 900 for waiting in drawn.values())
    arrays = one.to_arrays()
    again = restore(arrays)
    assert not ahead_of(again)
    for waiting in drawn.values():
        assert not any(waiting[:50].tobytes() in array.tobytes() for array in arrays.values())
    again.predict(rows_of(CASES[name][1], 0, 1))
    assert not np.array_equal(ahead_of(again)["votes"][:900], drawn["votes"][:900])


def test_a_student_that_cannot_be_written_out_is_given_again() -> None:
    class Other(GaussianNB):  # type: ignore[misc]
        """A classifier of somebody else."""

    one = universal(Thresholds(), student=Other()).fit(ONE[:N], labels_of(ONE[:N]))
    one.predict(ONE[:100])
    arrays = one.to_arrays()
    with pytest.raises(InvalidParameter, match="give an equal one"):
        restore(arrays)
    with pytest.raises(InvalidParameter, match="not the one that was stored"):
        restore(arrays, {"student": GaussianNB()})
    again = restore(arrays, {"student": Other()})
    assert again.predict(ONE).tolist() == one.predict(ONE).tolist()


@pytest.mark.parametrize("name", ["gaussian, one by one", "agnostic", "universal, student", "bbl"])
def test_a_changed_estimator_is_refused(name: str) -> None:
    arrays = begun(name).to_arrays()
    for other in (KNeighborsClassifier(2), Thresholds("above")):
        with pytest.raises(InvalidParameter, match="not the one that was stored"):
            restore(arrays, other)


BROKEN: list[tuple[str, Callable[[Any], Any]]] = [
    ("gaussian", lambda facts: facts.update(voting=None)),
    ("gaussian", lambda facts: facts["spent"].put(0, 10**6)),
    ("gaussian", lambda facts: facts["voting"]["rule"].update(kind="Other")),
    ("gaussian", lambda facts: facts["fitted"]["shown"].update(_reader_=1)),
    ("gaussian", lambda facts: facts["fitted"].update(guarantee=None)),
    ("between", lambda facts: facts["spent"].put(0, 151)),
    ("between", lambda facts: facts["spent"].put(1, 41)),
    ("stability", lambda facts: facts.update(spent=facts["spent"] + 0.5)),
    ("offline, after", lambda facts: facts["offline"].update(max_queries=0)),
    ("universal, first stage", lambda facts: facts["spent"].put(0, 91)),
    ("universal, first stage", lambda facts: facts.update(voting=None)),
    ("bbl", lambda facts: facts["spent"].put(0, -1)),
    ("bbl", lambda facts: facts["rules"].pop("boost")),
]


@pytest.mark.parametrize(("name", "change"), BROKEN)
def test_facts_that_do_not_fit_are_refused(name: str, change: Callable[[Any], Any]) -> None:
    arrays = begun(name).to_arrays()
    assert isinstance(restore(rewritten(arrays, lambda _: None)), type(CASES[name][0]))
    with pytest.raises(InvalidParameter):
        restore(rewritten(arrays, change))


@pytest.mark.parametrize("name", ["stability", "universal, first stage", "bbl, one by one"])
def test_broken_arrays_are_refused(name: str) -> None:
    arrays = begun(name).to_arrays()
    assert isinstance(restore(arrays), type(CASES[name][0]))
    for part, array in arrays.items():
        flipped = [array.copy() for _ in range(3)]
        for place, one in zip((0, array.nbytes // 2, -1), flipped, strict=True):
            one.view(np.uint8)[place] ^= 1
        without = {other: arrays[other] for other in arrays if other != part}
        changes = [without, {**arrays, part: array[None]}]
        changes += [{**arrays, part: one} for one in flipped]
        for broken in changes:
            with pytest.raises(InvalidParameter):
                restore(broken)


def test_a_published_hypothesis_is_the_same_one() -> None:
    for name in ("offline, after", "universal, hypothesis"):
        one = begun(name)
        again = restore(one.to_arrays())
        assert again.hypothesis_.to_dict() == one.hypothesis_.to_dict()
    assert Threshold(0.5).to_dict() != Threshold(0.6).to_dict()
