"""Several calls at once, by ``predict_calls``: each is answered or refused by itself."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import cumae
from cumae import Call, EverlastingPredictor, GenericBBL, QueryRelease
from cumae.checks.differences import difference
from cumae.concepts import Thresholds
from cumae.errors import (
    BudgetExhausted,
    InvalidData,
    InvalidParameter,
    RequestIdReused,
    StoreFailed,
)
from cumae.predictors.answering import counter
from cumae.predictors.everlasting.keeping import SeenIds
from tests.oracles import ROWS, everlasting, oracle
from tests.unit.test_predictors_joining import Crowd, answered, used

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

LABELS = (ROWS[:, 0] > 0.3).astype(int)


def shown(results: list[Any]) -> list[Any]:
    """Return answers as lists, and errors by their types."""
    return [one.tolist() if isinstance(one, np.ndarray) else type(one) for one in results]


def one_by_one(predictor: Any, calls: list[Call]) -> list[Any]:
    """Return what ``predict`` says to each call."""
    found: list[Any] = []
    for X, *ids in calls:
        named = zip(Call._fields[1:5], ids[:4], strict=True)
        given = {name: one for name, one in named if one is not None}
        try:
            found.append(predictor.predict(X, **given).tolist())
        except Exception as error:  # noqa: BLE001 - compared by its type
            found.append(type(error))
    return found


@pytest.mark.claim("STORE")
def test_calls_share_a_commit_and_are_refused_by_themselves(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    first = stored.predict([[0.2]], request_id="known").tolist()
    calls = [
        Call([[0.1]]),
        Call([[0.9], [math.nan]], request_id="new"),
        Call([[0.2]], request_id="known"),
        Call([[0.8]], request_id="known"),
        Call([[0.8]], request_id=[1]),
        Call(np.ones((2, 3))),
        Call([[0.5, 0.5]]),
        Call([[0.5]], users=["anna"]),
        Call(7),
        Call([[0.5]], as_counts=True),
        Call([]),
        Call([[0.9]]),
    ]
    found = shown(stored.predict_calls(calls))
    refused = [RequestIdReused, InvalidParameter, *[InvalidData] * 4, InvalidParameter]
    assert found == [[0], [1, -1], first, *refused, [], [1]]
    assert answered(stored) == [1, 4]
    assert used(path) == stored.answered_ == 5
    stored.close()
    again = cumae.open(path)
    assert shown(again.predict_calls([calls[1], calls[1]])) == [[1, -1], [1, -1]]
    assert again.answered_ == 5


def test_what_is_no_call_is_refused_before_anything_is_answered() -> None:
    one = everlasting()
    with pytest.raises(InvalidParameter, match="Call"):
        one.predict_calls([Call([[0.1]]), [[0.5]]])  # type: ignore[list-item]
    assert one.answered_ == 0
    assert one.predict_calls([]) == []
    assert "0.123" not in repr(Call([[0.123]]))


@pytest.mark.claim("STORE", "EVER")
def test_a_group_ends_with_its_phase(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    stored.predict(ROWS[:390])
    calls = [Call(ROWS[:count]) for count in (4, 4, 4, 1)]  # 10 are left
    groups: list[int] = []
    answer = stored._counter_._answer_group

    def watched(desk: Any, group: Any) -> None:
        groups.append(len(group))
        answer(desk, group)

    stored._counter_._answer_group = watched
    found = stored.predict_calls(calls)
    assert [len(one) for one in found] == [4, 4, 4, 1]
    assert groups == [2, 1, 1]
    assert (stored.phase_, stored.answered_) == (2, 403)
    stored.close()
    assert cumae.open(path).answered_ == 403


@pytest.mark.claim("STORE")
def test_own_calls_are_one_group_and_others_join_a_small_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counter, "MOST_JOINED", 5)
    one = everlasting()
    groups: list[int] = []
    answer = one._counter_._answer_group

    def watched(desk: Any, group: Any) -> None:
        groups.append(len(group))
        answer(desk, group)

    one._counter_._answer_group = watched  # type: ignore[assignment]
    assert len(one.predict_calls([Call([[0.5]])] * 9)) == 9
    crowd = Crowd(one)
    for count in (1, 4, 2):
        crowd.ask(*ROWS[:count].tolist())
    crowd.end()
    assert groups == [9, 1, 1, 1]


@pytest.mark.claim("STORE")
def test_a_commit_that_fails_refuses_all_calls(tmp_path: Path) -> None:
    _, stored = oracle(tmp_path)

    def broken(_: Any) -> None:
        raise OSError("no space left on device")

    stored._counter_.journal.writer.home.commit = broken
    found = stored.predict_calls([Call([[0.1]]), Call(np.ones((1, 3))), Call([[0.9]])])
    assert shown(found) == [StoreFailed, InvalidData, StoreFailed]


def test_predictors_that_join_no_calls_answer_them_in_order(tmp_path: Path) -> None:
    """In one commit; a call that is larger than what is left is refused, and others are not."""
    release = QueryRelease(Thresholds(), 60.0, 1e-5, max_queries=5).fit(ROWS, LABELS)
    release.save_to(tmp_path / "release.db")
    stored = cumae.open(tmp_path / "release.db")
    sizes = (2, 4, 1, 3)
    found = stored.predict_calls([Call(ROWS[:size]) for size in sizes])
    assert [len(one) if isinstance(one, np.ndarray) else type(one) for one in found] == [
        *(2, BudgetExhausted, 1, BudgetExhausted)
    ]
    writer = stored._counter_.journal.writer
    entries = [json.loads(text) for _, text, _ in writer.home.entries()]
    assert [said["count"] for said in entries if said["event"] == "answered"] == [3]
    assert shown(stored.predict_calls([Call([[0.5]], users=["anna"])])) == [InvalidParameter]
    counts = release_counts()
    assert counts.predict_calls([Call([[0.5]], as_counts=True)])[0].shape == (1, 2)
    bbl = GenericBBL(Thresholds(), 60.0, shard_size=10, phase_length=20, label_share=0.1)
    bbl.fit(ROWS, LABELS)
    found = bbl.predict_calls([Call([[0.1]]), Call([[0.5]], clients=["a"]), Call([[0.5, 0.5]])])
    assert shown(found) == [[0], InvalidParameter, InvalidData]
    assert bbl.answered_ == 1


@pytest.mark.claim("STORE")
def test_a_warning_that_is_an_error_is_that_of_its_own_call() -> None:
    """Other calls have their answers, which are spent."""
    rows = np.random.default_rng(1).random((3_000, 1))
    labels = np.random.default_rng(0).integers(0, 2, 3_000)
    release = QueryRelease(
        Thresholds(), 20.0, 1e-5, max_queries=60, mechanism="stability", max_unstable=3
    )
    release.fit(rows, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = release.predict_calls([Call(rows[:1]), Call(rows[:50]), Call(np.ones((1, 3)))])
    assert [type(one) for one in found] == [np.ndarray, UserWarning, InvalidData]
    assert release.remaining_ == 0


@pytest.mark.claim("STORE")
def test_what_costs_nothing_is_not_remembered_in_a_group_either(tmp_path: Path) -> None:
    """The name of a call without queries is free again, as it is where the call came alone."""
    _, stored = oracle(tmp_path)
    nothing = np.zeros((0, 1))
    calls = [Call(nothing, request_id="empty"), Call([[0.1]], request_id="full")]
    assert shown(stored.predict_calls(calls)) == [[], [0]]
    assert shown(stored.predict_calls([Call([[0.9]], request_id="empty")])) == [[1]]
    assert shown(stored.predict_calls([Call([[0.9]], request_id="full")])) == [RequestIdReused]
    stored.close()


def release_counts() -> Any:
    made = QueryRelease(Thresholds(), 60.0, 1e-5, max_queries=5, mechanism="gaussian")
    return made.fit(ROWS, LABELS)


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "a memo": {"memoize": True},
    "users": {"user_ids": True},
    "clients": {"client_cap": 0.5},
    "users and clients": {"user_ids": True, "client_cap": 0.2, "late": 0.3},
}


@st.composite
def several(draw: st.DrawFn, kind: str) -> list[Call]:
    """Return calls with ids as the kind of oracle needs them, and sometimes without."""
    calls = []
    for _ in range(draw(st.integers(2, 8))):
        count = draw(st.sampled_from([0, 1, 1, 2, 5, 60]))
        cell = st.sampled_from([0.1, 0.29, 0.3, 0.31, 0.9, math.nan])
        X = draw(st.lists(st.lists(cell, min_size=1, max_size=1), min_size=count, max_size=count))

        def ids(among: int, count: int = count) -> Any:
            return draw(st.lists(st.integers(0, among), min_size=count, max_size=count))

        users = ids(500) if KINDS[kind].get("user_ids") else None
        clients = ids(4) if "client_cap" in KINDS[kind] else None
        names = ids(10**6 if count > 5 else 12) if draw(st.integers(0, 2)) == 0 else None
        if draw(st.integers(0, 9)) == 0:
            users, clients = clients, users
        calls.append(Call(X, users, clients, names))
    return calls


@pytest.mark.claim("EVER", "USER", "MEMO", "LABELLED", "STORE")
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_joined_calls_do_what_single_ones_do(kind: str, data: st.DataObject) -> None:
    """The same answers, refusals and state under the same coins, also past the end of a phase."""
    start = data.draw(st.sampled_from([0, 0, 300, 397]))
    calls = data.draw(several(kind))
    made = [everlasting(**KINDS[kind], epsilon=3.0, random_state=7) for _ in range(2)]
    for one in made:
        more = {} if "user_ids" not in KINDS[kind] else {"users": range(1_000, 1_000 + start)}
        more |= {} if "client_cap" not in KINDS[kind] else {"clients": range(start)}
        one.predict(ROWS[:start].tolist(), **more)
    single, together = made
    # Ids are hidden under a key of their own, which is drawn by nobody's seed.
    together._state_.hide = single._state_.hide
    for one in made:
        one._state_.admission.seen = SeenIds()
        one._state_.admission.of_client.clear()
        one._state_.phase.memo.clear()
    wanted = one_by_one(single, calls)
    found = [
        one.tolist() if isinstance(one, np.ndarray) else type(one)
        for one in together.predict_calls(calls)
    ]
    assert found == wanted
    states = [one._state_.to_facts() for one in made]
    assert not difference(*states)


@pytest.mark.claim("EVER")
def test_frames_are_joined() -> None:
    """With the same coins they have the answers of single calls, and models see the same types."""
    rows = pd.DataFrame({"x": np.tile(ROWS[:, 0], 3), "word": ["a", "b", "c"] * len(ROWS)})
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    given: dict[str, Any] = {"epsilon": 6.0, "shard_size": 60, "prior": False, "random_state": 3}
    single, together = (
        EverlastingPredictor(model, **given).fit(rows, np.tile(LABELS, 3)) for _ in range(2)
    )
    calls = [
        Call(rows[:2]),
        Call(rows[:0]),
        Call(rows[["word", "x"]][5:6]),
        Call(rows[["x"]]),
        Call(pd.DataFrame({"x": [None, 0.5], "word": ["a", 7]}, dtype=object)),
        Call([[0.5, "a"]]),
        Call(rows[7:9].set_index(pd.Index([3, 3]))),
    ]
    groups: list[int] = []
    answer = together._counter_._answer_group

    def watched(desk: Any, group: Any) -> None:
        groups.append(len(group))
        answer(desk, group)

    together._counter_._answer_group = watched  # type: ignore[assignment]
    assert shown(together.predict_calls(calls)) == one_by_one(single, calls)
    assert groups == [5]
    kept = [one._state_.kept.to_facts() for one in (single, together)]
    assert not difference(*kept)


@pytest.mark.claim("STORE", "USER")
def test_calls_of_named_people_are_joined_and_stored(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path, user_ids=True)
    crowd = Crowd(stored)
    crowd.ask([0.1], users=["anna"])
    crowd.ask([0.2], [0.9], users=["anna", "bert"], query_ids=["a", "b"])
    crowd.ask([0.9], users=["bert"])
    crowd.ask([0.9])
    crowd.ask([0.8], users=["cleo"], query_ids=["b"])  # answered after the other b is known
    crowd.ask([0.8], users=["cleo"], query_ids=["c"])
    crowd.end()
    assert [type(error) for error in crowd.failed.values()] == [InvalidData, InvalidParameter]
    assert crowd.found == {0: [0], 1: [0, 1], 2: [1], 5: [1]}
    assert answered(stored) == [1, 3, 1]
    assert stored._state_.n_kept == 3
    facts = stored._state_.to_facts()
    stored.close()
    again = cumae.open(path)
    assert not difference(facts, again._state_.to_facts())
    again.add_labels(["b", "c"], [1, 1])
    with pytest.raises(InvalidParameter):
        again.add_labels(["a"], [1])  # of anna, who had her row
