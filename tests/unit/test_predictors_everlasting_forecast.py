"""A batch that would end a phase with too few rows is refused whole, however many phases ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cumae import BudgetExhausted, EverlastingPredictor
from cumae.concepts import Thresholds
from cumae.predictors.everlasting.keeping import QueryRows

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

N = 200
X = np.random.default_rng(3).random((N, 1))
Y = (X[:, 0] > 0.4).astype(int)


def oracle(n: int = N, **options: Any) -> EverlastingPredictor:
    given = {"shard_size": 8, "growth": 1.0, "random_state": 1, **options}
    one = EverlastingPredictor(Thresholds(), epsilon=2.0, **given)
    return one.fit(X[:n], Y[:n], **({"users": range(n)} if one.user_ids else {}))


@pytest.mark.claim("USER")
@pytest.mark.parametrize("late", [0.0, 0.25])
@pytest.mark.parametrize(("option", "who"), [("user_ids", "users"), ("client_cap", "clients")])
def test_a_batch_that_runs_short_two_phases_on_is_refused_whole(
    option: str, who: str, late: float
) -> None:
    options: dict[str, Any] = {option: True if option == "user_ids" else 0.1}
    one = oracle(late=late, **options)
    asked = np.resize(X, (700, 1))
    ids = [*range(1000, 1000 + N), *["same"] * (700 - N)]
    with pytest.raises(BudgetExhausted, match=r"700 queries .* Nothing was answered"):
        one.predict(asked, **{who: ids})
    assert (one.answered_, one.phase_, one._state_.n_kept) == (0, 1, 0)
    assert one._state_.left == N
    assert len(one.predict(asked, **{who: range(1000, 1700)})) == 700
    assert one.answered_ == 700


def one_by_one(one: EverlastingPredictor, asked: Any, who: str, ids: list[int]) -> list[Any]:
    pairs = zip(asked, ids, strict=True)
    return [one.predict([row], **{who: [name]})[0] for row, name in pairs]


@pytest.mark.claim("USER")
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=8),
    st.sampled_from([{"user_ids": True}, {"client_cap": 0.2}, {"user_ids": True, "late": 0.3}]),
    st.sampled_from([1.0, 1.4, "auto"]),
)
def test_a_batch_is_refused_if_and_only_if_single_queries_would_run_short(
    runs: list[tuple[int, bool]], options: dict[str, Any], growth: Any
) -> None:
    ids = [place if new else -1 for run, (size, new) in enumerate(runs)
           for place in range(1000 * (run + 1), 1000 * (run + 1) + size)]  # fmt: skip
    who = "users" if "user_ids" in options else "clients"
    asked = np.resize(X, (len(ids), 1))
    whole, single = (oracle(40, growth=growth, **options) for _ in range(2))
    try:
        answers = whole.predict(asked, **{who: ids}).tolist()
    except BudgetExhausted:
        assert whole.answered_ == 0
        with pytest.raises(BudgetExhausted):
            one_by_one(single, asked, who, ids)
    else:
        assert one_by_one(single, asked, who, ids) == answers


def test_a_batch_that_stops_in_the_middle_tells_how_many_answers_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = oracle(user_ids=True)
    monkeypatch.setattr(QueryRows, "check_batch", lambda *_: None)  # the fault: nobody looks ahead
    with pytest.raises(BudgetExhausted, match=r"400 queries since fit count; a broken"):
        one.predict(np.resize(X, (700, 1)), users=[*range(1000, 1200), *["same"] * 500])
    assert one.answered_ == 400
