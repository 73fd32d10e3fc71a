"""Options of everlasting prediction: users, clients, fresh rows, a memo, sizes and budgets."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cumae import Budget, BudgetExhausted, EverlastingPredictor, InvalidData, InvalidParameter
from cumae.concepts import Points
from cumae.errors import TooFewRows
from cumae.learners import PrivateBooster
from cumae.predictors.everlasting import phases
from cumae.predictors.everlasting.phases import row_keys
from cumae.predictors.everlasting.state import EverlastingState, PhasePrepared
from cumae.predictors.waiting import PART, FreshRows
from tests.everlasting import ABOVE, N, Spy, X, Y, oracle

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(1)


# Users and clients


@pytest.mark.claim("USER")
def test_one_row_of_each_user_is_kept() -> None:
    users = np.arange(N) % 300  # the last hundred rows belong to known users
    one = oracle(user_ids=True).fit(X, Y, users=users)
    assert one._state_.phase.n_rows == 300
    assert one.guarantee_.protects == "one user"
    one.predict(X[:10], users=[0, 1, 2, "new", "new", 1000, 1001, 1000, 5, 6])
    assert one._state_.n_kept == 3
    assert one._state_.left == 290  # all of them count
    one.predict(RNG.random((280, 1)), users=[f"u{i}" for i in range(280)])
    assert one._state_.n_kept == 283
    one.predict(RNG.random((20, 1)), users=["u1"] * 20)
    assert (one.phase_, one._state_.phase.n_rows) == (2, 283)
    with pytest.raises(InvalidData, match="users: none for 1 rows"):
        one.predict([[0.5]])
    with pytest.raises(InvalidData, match="user_ids=True"):
        oracle().fit(X, Y, users=users)


@pytest.mark.claim("USER")
def test_without_new_users_it_stops_at_the_end_of_the_phase() -> None:
    one = oracle(user_ids=True).fit(X, Y, users=np.arange(N))
    assert one.remaining_ == math.inf
    one.predict(RNG.random((N - 100, 1)), users=[0] * (N - 100))
    assert one.remaining_ == 100  # not even a hundred new users would be half of the rows
    with pytest.raises(BudgetExhausted, match=r"101 queries .* 100 answers .* 200 rows of new"):
        one.predict(RNG.random((101, 1)), users=list(range(1000, 1101)))
    assert one.answered_ == N - 100
    one.predict(RNG.random((100, 1)), users=[0] * 100)
    assert one.remaining_ == 0
    with pytest.raises(BudgetExhausted):
        one.predict([[0.5]], users=["x"])
    other = oracle(user_ids=True).fit(X, Y, users=np.arange(N))
    told = []
    for user in ("same", 0):  # a stranger, and one whose row is in the training set
        with pytest.raises(BudgetExhausted, match="needs 200 rows of new users") as refusal:
            other.predict(RNG.random((N + 1, 1)), users=[user] * (N + 1))
        told.append(str(refusal.value))
    assert told[0] == told[1]
    assert other.answered_ == 0


@pytest.mark.claim("USER")
def test_a_client_supplies_no_more_than_its_share() -> None:
    one = oracle(client_cap=0.25).fit(X, Y)
    one.predict(RNG.random((200, 1)), clients=["loud"] * 200)
    assert one._state_.n_kept == 100
    one.predict(RNG.random((200, 1)), clients=np.arange(200))
    assert one._state_.following is not None
    assert one._state_.following.n_rows == 300
    one.predict(RNG.random((50, 1)), clients=["loud"] * 50)
    assert (one.phase_, one._state_.phase.n_rows, one._state_.n_kept) == (2, 300, 50)


@pytest.mark.claim("USER")
def test_ids_must_be_ids() -> None:
    for ids in ([math.nan] * N, [None] * N, [[1]] * N):
        with pytest.raises(InvalidData, match="no id"):
            oracle(user_ids=True).fit(X, Y, users=ids)


def test_options_are_those_of_the_fit() -> None:
    one = oracle(user_ids=True).fit(X, Y, users=np.arange(N))
    one.set_params(user_ids=False, memoize=True, late=0.3)
    with pytest.raises(InvalidData, match="users: none"):
        one.predict([[0.5]])


# Fresh rows


@pytest.mark.claim("FRESH")
def test_fresh_rows_take_the_place_of_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch)
    one = oracle(fresh=True, growth=2.0).fit(X, Y)
    assert one.remaining_ == N
    one.predict(np.full((N, 1), 0.99))
    assert one.remaining_ == 0
    with pytest.raises(BudgetExhausted, match="400 rows by add_unlabelled"):
        one.predict([[0.5]])
    spy.take()
    one.add_unlabelled(RNG.random((N // 2, 1)))
    assert one.remaining_ == 0
    one.add_unlabelled(RNG.random((N, 1)))
    assert one.remaining_ == N
    assert one._state_.left == 0  # labelling them is a release each: 2 N in all
    asked = RNG.random((N, 1))
    assert len(set(one.predict(asked).tolist())) == 2
    assert len(spy.take()[0]) == 2 * N  # the labels, by phase 1, and the answers of phase 2
    assert (one.phase_, one._state_.phase.n_rows, one.answered_) == (2, N, 2 * N)
    assert one._state_.n_kept == 0
    with pytest.raises(InvalidParameter, match="fresh=True"):
        oracle().fit(X, Y).add_unlabelled(X)
    with pytest.raises(InvalidParameter, match=r"growth=1\.0 with fresh=True"):
        oracle(fresh=True).fit(X, Y)


@pytest.mark.claim("FRESH")
def test_a_labelling_that_was_broken_off_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the first draw is left; its releases are counted once, and belong to its rows."""
    one = oracle(fresh=True, growth=2.0).fit(X, Y)
    one.predict(X)
    drawn: list[Any] = []
    labelled = phases.ToLabel.labelled

    def stop(self: Any, *asked: Any) -> Any:
        drawn.append(labelled(self, *asked)[1])
        if len(drawn) == 1:
            raise KeyboardInterrupt
        return labelled(self, *asked)

    monkeypatch.setattr(phases.ToLabel, "labelled", stop)
    one.add_unlabelled(X)  # the training is not wanted yet
    assert (one._state_.left, len(one._state_.waiting), drawn) == (0, 0, [])
    following = one._state_.following
    with pytest.raises(KeyboardInterrupt):
        one.predict(X[:1])
    assert one._state_.following is following
    assert following._phase is None  # nothing of it was kept
    assert (one.phase_, one._state_.left, one.answered_) == (1, 0, N)
    one.predict(X[:1])
    assert (one.phase_, one._state_.n_rows, len(drawn)) == (2, N, 2)
    assert not np.array_equal(*drawn)


@pytest.mark.claim("FRESH", "LATE")
@pytest.mark.parametrize("growth", ["auto", 1.01, 2.0])
@pytest.mark.parametrize("background", [False, True])
def test_fresh_rows_are_labelled_while_the_last_answers_are_given(
    growth: Any, background: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels and answers of a phase are within its releases, and rows are taken in order."""
    spy = Spy(monkeypatch)
    one = oracle(fresh=True, growth=growth, late=0.4, background=background).fit(X, Y)
    supplied = np.random.default_rng(7).random((3 * N, 1))
    one.add_unlabelled(supplied)
    releases, answers = one._state_.releases, one._state_.rules.schedule.answers(N)
    late, left = int(0.4 * answers), one.remaining_
    assert one._state_.late == min(late, answers - 1)
    while one._state_.following is None:
        assert one.phase_ == 1
        one.predict([[0.5]])
    n_next = one._state_.following.n_rows
    assert one.answered_ == releases - n_next - one._state_.late
    assert (one._state_.left, one.remaining_) == (one._state_.late, left - one.answered_)
    given = one._state_.following._given.to_label.rows.all()
    assert np.array_equal(given, supplied[:n_next])
    assert np.array_equal(one._state_.waiting.all(), supplied[n_next:])
    while one._state_.left:
        one.predict([[0.5]])
    assert one.phase_ == 1
    one.predict([[0.5]])
    assert (one.phase_, one._state_.n_rows) == (2, n_next)
    assert len(spy.take()[0]) == releases + 1
    asked = one.answered_
    with pytest.raises(BudgetExhausted):
        one.predict(RNG.random((int(left - asked) + 1, 1)))
    one.predict(RNG.random((int(left - asked), 1)))
    assert one.remaining_ == 0


@pytest.mark.claim("FRESH")
def test_rows_that_an_older_file_has_labelled_keep_their_labels() -> None:
    one = oracle(fresh=True, growth=2.0).fit(X, Y).add_unlabelled(X)
    state, weights = one._state_, np.column_stack([np.arange(N), np.zeros(N, dtype=np.int64)])
    PhasePrepared(2, state.rule.reserved(state.spent, 2 * N), weights, N).apply(state)
    rows, found = state.following._given.table(one._reader_)
    assert np.array_equal(rows, X)
    assert np.array_equal(found, weights)
    assert (state.following.n_rows, len(state.waiting)) == (N, 0)


@pytest.mark.claim("FRESH", "LATE")
def test_with_too_few_fresh_rows_late_answers_are_given_all_the_same() -> None:
    one = oracle(fresh=True, growth=2.0, late=0.5).fit(X, Y).add_unlabelled(X[:10])
    assert one._state_.late == N // 2
    one.predict(X)  # all that are not for labels
    assert (one._state_.following, one.remaining_, one._state_.left) == (None, 0, N)
    with pytest.raises(BudgetExhausted, match="400 rows by add_unlabelled"):
        one.predict([[0.5]])
    one.add_unlabelled(X)
    assert (one._state_.left, one._state_.following.n_rows) == (0, N)
    one.predict([[0.5]])
    assert one.phase_ == 2


@pytest.mark.claim("FRESH")
@pytest.mark.parametrize("times", [1, 2])
def test_rows_are_not_used_twice_if_their_event_is_broken_off(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Either they are rows of the next phase, or they wait, and nothing is trained on them."""
    one = oracle(fresh=True, growth=2.0).fit(X, Y)
    one.predict(X)
    left, split = [1] * times, FreshRows.split

    def stop(self: FreshRows, count: int) -> tuple[FreshRows, FreshRows]:
        if left:
            left.pop()
            raise KeyboardInterrupt
        return split(self, count)

    monkeypatch.setattr(FreshRows, "split", stop)
    with pytest.raises(KeyboardInterrupt):
        one.add_unlabelled(X)
    assert (one._state_.following is None) == (times == 2)  # once, it is applied to its end
    assert len(one._state_.waiting) == (N if times == 2 else 0)
    assert one.remaining_ == N
    one.predict(X[:1])
    assert (one.phase_, one._state_.n_rows) == (2, N)


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("late", [0.0, 0.25])
def test_a_phase_is_not_entered_twice_if_its_event_is_broken_off(late: float) -> None:
    """The event is applied to its end, so that releases of the new phase are not counted anew."""

    class Broken(EverlastingState):
        """Breaks off, once, when half of the new phase is set."""

        def become(self, other: Any) -> None:
            if not broken:
                broken.append(other)
                vars(self).update(following=None, phase=other.phase)
                raise KeyboardInterrupt
            super().become(other)

    broken: list[Any] = []
    one = oracle(late=late).fit(X, Y)
    one.predict(X)
    one._state_.__class__ = Broken
    with pytest.raises(KeyboardInterrupt):
        one.predict(X[:1])
    assert (one._state_.following, one.phase_, one.answered_) == (None, 2, N)
    phase, releases = one._state_.phase, one._state_.releases
    assert phase is broken[0].phase
    assert one._state_.left == releases
    one.predict(X[:5])
    assert one._state_.phase is phase
    assert (one.phase_, one._state_.left) == (2, releases - 5)


@pytest.mark.claim("FRESH")
@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_fresh_rows_are_taken_in_order_and_not_kept(kind: Any) -> None:
    waiting = FreshRows()
    parts = [kind(part) for part in np.split(np.arange(7.0).reshape(-1, 1), [3, 3, 5])]
    for part in parts:
        waiting.put(waiting.end, part)
        waiting.put(waiting.end - len(part), part)  # they are here already
    assert len(waiting) == 7
    first, left = waiting.first_rows(4), waiting.split(4)[1]
    # What is left of a part does not keep the rest of it in memory.
    for part in (*parts, waiting.all()):
        assert not np.shares_memory(np.asarray(left.all()), np.asarray(part))
    second, last = left.first_rows(2), left.split(2)[1]
    assert type(first) is type(second) is type(kind([[0.0]]))
    assert np.ravel(first).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert np.ravel(second).tolist() == [4.0, 5.0]
    assert (len(left), len(last), len(last.split(1)[1])) == (3, 1, 0)
    assert last.split(1)[1].all() is None
    with pytest.raises(AssertionError, match="in order"):
        last.put(9, parts[0])


@pytest.mark.claim("FRESH")
@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_a_cut_of_many_fresh_rows_copies_a_few(kind: Any) -> None:
    many = kind(np.arange(5.0 * PART).reshape(-1, 1))
    waiting = FreshRows()
    waiting.put(0, many)
    waiting.put(0, many)
    for count in (0, 1, PART, 2 * PART + 7, 5 * PART):
        taken, left = waiting.split(count)
        assert (len(taken), len(left)) == (count, 5 * PART - count)
        assert taken.end == left.first == count
        tables = [part for one in (taken, left) for _, part in one._parts]
        assert all(0 < len(part) <= PART for part in tables)
        assert np.concatenate(tables).ravel().tolist() == np.ravel(many).tolist()
        # Handed over as they are, but for the one that is cut; none holds rows of another call.
        own = [part for _, part in waiting._parts]
        assert sum(not any(part is one for one in own) for part in tables) <= 2
        assert not any(np.shares_memory(np.asarray(part), np.asarray(many)) for part in own)


@pytest.mark.claim("FRESH")
def test_with_fresh_rows_queries_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch)
    fresh = np.random.default_rng(3).random((N, 1))
    later = np.random.default_rng(4).random((N, 1))
    found = []
    for asked in (np.full((N, 1), 0.1), np.full((N, 1), 0.9)):
        one = oracle(fresh=True, growth=2.0).fit(X, Y)
        one.predict(asked)
        one.add_unlabelled(fresh)
        one.predict(later)
        found.append(spy.take())
    assert np.array_equal(found[0][0][N:], found[1][0][N:])
    assert np.array_equal(found[0][1][N:], found[1][1][N:])


# A memo


@pytest.mark.claim("MEMO")
def test_the_same_question_gets_the_same_answer_within_a_phase(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spy = Spy(monkeypatch)
    one = oracle(memoize=True, epsilon=0.5, random_state=None).fit(X, Y)
    boundary = np.full((150, 1), 0.4)
    first = one.predict(boundary[:1])
    assert set(one.predict(boundary[1:]).tolist()) == set(first.tolist())
    assert len(spy.take()[0]) == 150  # hits do the same work as misses, and count
    assert one._state_.left == N - 150
    assert len(np.unique(one._state_.kept.weights, axis=0)) == 1
    phase = one._state_.phase
    one.predict(RNG.random((N - 150, 1)))
    one.predict(boundary[:1])
    assert one.phase_ == 2
    assert one._state_.phase.memo is not phase.memo
    assert len(one._state_.phase.memo) == 1
    forgetful = oracle(epsilon=0.5, random_state=None).fit(X, Y)
    assert set(forgetful.predict(boundary).tolist()) == {0, 1}


@pytest.mark.claim("MEMO")
def test_the_memo_tells_types_apart() -> None:
    cells = [True, 1, 1.0, "1", 0.0, -0.0, dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)]  # noqa: DTZ001
    table = pd.DataFrame({"a": pd.Series(cells, dtype=object)})
    assert len(set(row_keys(table))) == len(cells)
    assert row_keys(table) == row_keys(table.copy())


# What is refused


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"growth": 0.5}, "growth"),
        ({"growth": math.inf}, "growth"),
        ({"late": 0.6}, "late"),
        ({"client_cap": 0.0}, "client_cap"),
        ({"fresh": True, "growth": 2.0, "client_cap": 0.1}, "no meaning"),
        ({"shard_size": 1000}, "shard_size|n_shards"),
        ({"shard_size": 0}, "shard_size"),
        ({"prior": "booster"}, "prior"),
        ({"prior": True, "estimator": Points()}, "prior"),
        ({"delta": 0.0}, "delta"),
        ({"prior": PrivateBooster(), "prior_share": 1.0}, "prior_share"),
    ],
)
def test_bad_parameters_cost_nothing(changes: dict[str, Any], what: str) -> None:
    budget = Budget(9.0, 1e-5)
    with pytest.raises(InvalidParameter, match=what):
        oracle(budget=budget).set_params(**changes).fit(X, Y)
    assert budget.remaining == (9.0, 1e-5)


def test_the_budget_is_paid_once_for_ever() -> None:
    budget = Budget(6.0, 1e-5)
    one = oracle(budget=budget).fit(X, Y)
    left = budget.remaining
    one.predict(RNG.random((3 * N, 1)))
    assert budget.remaining == left
    assert left[0] == pytest.approx(1.0, abs=0.01)


def test_auto_sizes_follow_from_public_numbers() -> None:
    big = RNG.random((20_000, 1))
    sizes = set()
    for cut in (0.2, 0.7):
        one = EverlastingPredictor(ABOVE, 3.0, prior=False).fit(big, (big[:, 0] > cut).astype(int))
        schedule = one._state_.rules.schedule
        sizes.add((schedule.shard_size(20_000), schedule.shard_size(32_000)))
        assert one.noise_per_vote_ < 0.13
    assert sizes == {(5, 7)}


def test_too_few_rows_are_said_beforehand() -> None:
    with pytest.warns(TooFewRows, match="about [0-9,]+ rows would do"):
        EverlastingPredictor(ABOVE, 0.5).fit(X, Y)
