"""Mechanisms that answer by votes are frozen: answers follow from votes, counters and coins."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cumae.arrays import Integers, Words
from cumae.errors import BudgetExhausted, InvalidParameter
from cumae.mechanisms import (
    UNCLEAR,
    Between,
    Coins,
    GaussianNoise,
    Majority,
    Spent,
    Stability,
    VoteRule,
    rule_from_facts,
)
from cumae.randomness import SYSTEM, SeededSource, Source

MOST = 400  # answers of each of the rules
RULES: dict[str, VoteRule] = {
    "gaussian": Majority.calibrated(1.0, 1e-6, MOST),
    "three classes": Majority.calibrated(1.0, 1e-6, MOST, 3),
    "laplace": Majority.calibrated(1.0, 0.0, MOST, kind="laplace"),
    "majority, no noise": Majority.calibrated(math.inf, 0.0, MOST),
    "stability": Stability.calibrated(1.0, 1e-6, MOST, 30),
    "stability, no noise": Stability.calibrated(math.inf, 0.0, MOST, 30),
    "between": Between.calibrated(100_000, 1.0, 1e-6, 30, MOST),
    "between, no noise": Between.calibrated(1_000, math.inf, 0.0, 30, MOST),
}
SPARSE: dict[str, Any] = {name: RULES[name] for name in ("stability", "between")}
every_rule = pytest.mark.parametrize("which", RULES)
every_sparse_rule = pytest.mark.parametrize("which", SPARSE)


def close_votes(rule: VoteRule, count: int = 40) -> Integers:
    """Return votes whose answers are a matter of noise."""
    turns = np.arange(count)
    if isinstance(rule, Between):
        places = np.linspace(rule.lower - 30, rule.upper + 30, count).astype(np.int64)
        places = places[turns * 7 % count]
        return np.column_stack([100_000 - places, places])
    if isinstance(rule, Stability):
        lead = 2 * rule.threshold + turns % 9 - 4
        return np.column_stack([np.where(turns % 2, 0, lead), np.where(turns % 2, lead, 0)])
    return np.column_stack([500 + turns % 7, 500 - turns % 5, 499 + turns % 3])[:, : classes(rule)]


def classes(rule: VoteRule) -> int:
    return rule.n_classes if isinstance(rule, Majority) else 2


class Meeting:
    """A rule that goes on from some counters, with seeded coins."""

    def __init__(self, rule: VoteRule, seed: int = 5) -> None:
        source = SeededSource(seed)
        self.rule, self.coins, self.spent = rule, Coins(source), rule.start(source)

    def ask(self, votes: Integers) -> list[int]:
        labels, self.spent = self.rule.ask(votes, self.spent, self.coins)
        return list(labels.tolist())


@pytest.mark.claim("NOISE", "MULTI", "STAB", "BT")
@every_rule
def test_answers_are_a_function_of_votes_counters_and_coins(which: str) -> None:
    """The same of them give the same, as often as they are asked; and nothing is changed."""
    rule = RULES[which]
    votes = close_votes(rule)
    spent = rule.start(SeededSource(1))._replace(asked=17, unclear=0)
    given_votes, facts = votes.copy(), rule.to_facts()
    values = [getattr(rule, part.name) for part in fields(rule)]  # type: ignore[arg-type]
    found = []
    for _ in range(3):
        labels, after = rule.ask(votes, spent, Coins(SeededSource(8)))
        found.append((labels.tolist(), after))
    assert found[0] == found[1] == found[2]
    assert votes.tolist() == given_votes.tolist()
    assert rule.to_facts() == facts
    assert [getattr(rule, part.name) for part in fields(rule)] == values  # type: ignore[arg-type]
    labels, after = found[0]
    unclear = labels.count(UNCLEAR)
    assert (after.asked, after.unclear) == (17 + len(labels), unclear)
    if not unclear:
        assert after.threshold_noise == spent.threshold_noise
    if "no noise" not in which:
        others = [rule.ask(votes, spent, Coins(SeededSource(seed)))[0].tolist() for seed in (1, 2)]
        assert others != [labels, labels]


@pytest.mark.claim("NOISE", "MULTI", "STAB", "BT")
@every_rule
@given(sizes=st.lists(st.integers(0, 9), max_size=12))
def test_answers_are_the_same_in_any_batches(which: str, sizes: list[int]) -> None:
    rule = RULES[which]
    whole, parts = Meeting(rule), Meeting(rule)
    votes = close_votes(rule, sum(sizes))
    expected = whole.ask(votes)
    found: list[int] = []
    for size in sizes:
        start = len(found)
        found += parts.ask(votes[start : start + size])
        if parts.rule.left(parts.spent) == 0:
            break
    assert found == expected
    assert parts.spent == whole.spent


@every_rule
def test_a_rule_cannot_be_changed(which: str) -> None:
    rule: Any = RULES[which]
    for part in fields(rule):
        with pytest.raises(AttributeError):
            setattr(rule, part.name, 1)
    spent: Any = rule.start(SYSTEM)
    for name in ("asked", "unclear", "threshold_noise"):
        with pytest.raises(AttributeError):
            setattr(spent, name, 1)


@every_rule
def test_a_rule_is_stored_by_its_parameters(which: str) -> None:
    rule = RULES[which]
    facts = json.loads(json.dumps(rule.to_facts(), allow_nan=False))
    again = rule_from_facts(facts)
    assert type(again) is type(rule)
    assert (again.to_facts(), again.cost) == (rule.to_facts(), rule.cost)
    votes = close_votes(rule)
    assert Meeting(again).ask(votes) == Meeting(rule).ask(votes)
    with pytest.raises(InvalidParameter, match="not the facts"):
        rule_from_facts({**facts, "kind": "Oracle"})


# Counters


COUNTS = st.integers(0, 2**62)


@given(COUNTS, COUNTS, st.integers(-(2**62), 2**62))
def test_counters_are_an_array_of_one_width_whatever_they_are(
    asked: int, unclear: int, noise: int
) -> None:
    """On a disk the length of what is written must not tell how many answers were unclear."""
    spent = Spent(asked, unclear, noise)
    counters = spent.to_array()
    assert (counters.dtype.str, counters.shape, counters.nbytes) == ("<i8", (3,), 24)
    assert Spent.from_array(counters) == spent
    assert counters.nbytes == Spent().to_array().nbytes


@every_rule
def test_no_more_is_answered_than_there_is(which: str) -> None:
    rule = RULES[which]
    start = rule.start(SYSTEM)
    assert (start.asked, start.unclear, rule.left(start)) == (0, 0, MOST)
    nearly = start._replace(asked=MOST - 3)
    assert rule.left(nearly) == 3
    assert rule.reserved(nearly, 3) == start._replace(asked=MOST)
    votes = close_votes(rule, 4)
    for refused in (
        lambda: rule.reserved(nearly, 4),
        lambda: rule.ask(votes, nearly, Coins(Untouched())),
    ):
        with pytest.raises(BudgetExhausted, match="3 of 400 answers remain"):
            refused()
    assert rule.ask(votes[:0], nearly, Coins(Untouched()))[1] == nearly


class Untouched(Source):
    """A source that nobody may draw from."""

    def words(self, count: int) -> Words:
        raise AssertionError(f"{count} words were drawn")


@pytest.mark.claim("STAB", "BT")
@every_sparse_rule
def test_after_the_last_unclear_answer_nothing_is_left(which: str) -> None:
    rule = SPARSE[which]
    meeting = Meeting(rule)
    middle = (100_000 - (rule.lower + rule.upper) // 2) if which == "between" else 5
    votes = np.tile([middle, 100_000 - middle if which == "between" else 5], (100, 1))
    answers = meeting.ask(votes)
    assert answers.count(UNCLEAR) == 30
    assert answers[-1] == UNCLEAR
    assert (meeting.spent.asked, meeting.spent.unclear) == (len(answers), 30)
    assert rule.left(meeting.spent) == 0
    assert meeting.ask(votes) == []


@every_rule
def test_counters_that_cannot_be_are_refused(which: str) -> None:
    rule = RULES[which]
    spent = rule.start(SYSTEM)
    assert rule.check(spent) is spent
    wrong: list[dict[str, Any]] = [{"asked": MOST + 1}, {"asked": -1}, {"asked": 0.5}]
    if not rule.each_costs:
        wrong += [{"unclear": 31}, {"unclear": -1}, {"threshold_noise": 2**62 + 1}]
    for change in wrong:
        with pytest.raises(InvalidParameter):
            rule.check(spent._replace(**change))


@pytest.mark.claim("STAB", "BT")
@pytest.mark.parametrize(
    ("rule", "votes", "labels"),
    [
        (Stability(math.inf, 0, MOST, 30), [50, 10], {0: 0, 20: UNCLEAR}),
        (Between(400, 600, math.inf, 30, MOST), [590, 410], {0: UNCLEAR, 20: 0}),
    ],
    ids=["stability", "between"],
)
def test_threshold_noise_is_that_of_the_counters(
    rule: VoteRule, votes: list[int], labels: dict[int, int]
) -> None:
    """A rule holds none: the same query is clear or not by the noise among the counters."""
    for noise, label in labels.items():
        found, after = rule.ask(np.array([votes]), Spent(3, 2, noise), Coins(SYSTEM))
        assert found.tolist() == [label]
        # It stays in force until an answer is unclear; without noise the next one is 0.
        assert after == (Spent(4, 3, 0) if label == UNCLEAR else Spent(4, 2, noise))


# Answers that nobody knows of


@pytest.mark.claim("STORE", "MULTI")
@pytest.mark.parametrize("which", [name for name, rule in RULES.items() if rule.each_costs])
def test_answers_of_a_majority_are_charged_as_asked(which: str) -> None:
    rule = RULES[which]
    assert rule.charged(Spent(5), 7, Untouched()) == Spent(12)
    assert rule.charged(Spent(MOST - 5), 7, Untouched()) == Spent(MOST)  # and no more


@pytest.mark.claim("STORE", "STAB", "BT")
@every_sparse_rule
@pytest.mark.parametrize("count", [1, 4, 28])
def test_charged_answers_of_a_sparse_rule_take_one_threshold_more(which: str, count: int) -> None:
    """Each may have been unclear; and the noise in force may have been used: it is drawn anew."""
    rule, source = SPARSE[which], SeededSource(3)
    before = Spent(10, 1, rule.start(source).threshold_noise)
    after = rule.charged(before, count, SeededSource(4))
    assert (after.asked, after.unclear) == (10 + count, 1 + count + 1)
    assert after.threshold_noise == rule.fresh_threshold_noise(SeededSource(4))
    noises = {rule.charged(before, count, source).threshold_noise for _ in range(20)}
    assert len(noises) > 5
    ended = rule.charged(Spent(MOST - 1, 29), count, source)
    assert (ended.unclear, ended.asked, rule.left(ended)) == (30, min(MOST, MOST - 1 + count), 0)


# Coins


class Steps:
    """Draws that count up, and say which of several streams they are."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, source: Source) -> Callable[[int], Integers]:
        del source
        self.made += 1
        first = 100_000 * self.made

        def draw(count: int) -> Integers:
            nonlocal first
            first += count
            return np.arange(first - count, first)

        return draw


@pytest.mark.claim("NOISE")
def test_coins_are_used_once_and_each_law_has_its_own() -> None:
    coins, make = Coins(SYSTEM), Steps()
    first, second = Majority(GaussianNoise(2.0)), Majority(GaussianNoise(2.0))
    found = [coins.take("votes", first, make, count) for count in (2, 3, 0, 2_000)]
    assert np.concatenate(found).tolist() == list(range(100_000, 102_005))
    assert coins.take("guesses", first, make, 1).tolist() == [200_000]  # another stream
    assert coins.take("votes", first, make, 1).tolist() == [102_005]
    # The rule of a new phase is another law, also if it has the same scale.
    assert coins.take("votes", second, make, 1).tolist() == [300_000]
    assert coins.take("votes", first, make, 1).tolist() == [400_000]  # what was left is gone
    coins.drop()
    assert coins.take("votes", first, make, 1).tolist() == [500_000]
