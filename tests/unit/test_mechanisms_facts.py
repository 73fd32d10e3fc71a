"""Interactive mechanisms are stored as facts and go on from them."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cumae.errors import BudgetExhausted, InvalidParameter
from cumae.mechanisms import BetweenThresholds, NoisyMajority, StabilityTest
from cumae.randomness import SeededSource

CLOSE = np.array([[498, 502], [400, 600], [520, 480], [501, 499]])  # of 1,000 voters

MAKERS: dict[str, Callable[[Any], Any]] = {
    "gaussian": lambda coins: NoisyMajority.calibrated(1.0, 1e-6, 400, random_state=coins),
    "three classes": lambda coins: NoisyMajority.calibrated(1.0, 1e-6, 400, 3, random_state=coins),
    "laplace": lambda coins: NoisyMajority.calibrated(
        1.0, 0.0, 400, kind="laplace", random_state=coins
    ),
    "no noise": lambda coins: NoisyMajority.calibrated(
        math.inf, 0.0, 400, kind="laplace", random_state=coins
    ),
    "stability": lambda coins: StabilityTest.calibrated(1.0, 1e-6, 400, 30, random_state=coins),
    "stability, no noise": lambda coins: StabilityTest.calibrated(
        math.inf, 0.0, 400, 30, random_state=coins
    ),
    "between": lambda coins: BetweenThresholds.calibrated(
        100_000, 1.0, 1e-6, 300, random_state=coins
    ),
    "between, no noise": lambda coins: BetweenThresholds.calibrated(
        1000, math.inf, 0.0, 300, random_state=coins
    ),
}
STATE = ("remaining", "unstable_remaining", "queries_remaining", "threshold_noise")


def _ask(mechanism: Any) -> list[Any]:
    if isinstance(mechanism, BetweenThresholds):
        middle = (mechanism.lower + mechanism.upper) // 2
        return list(mechanism.ask([middle, mechanism.lower, mechanism.upper, mechanism.lower]))
    if isinstance(mechanism, NoisyMajority):
        votes = CLOSE if mechanism.n_classes == 2 else np.column_stack([CLOSE, CLOSE[:, 1]])
        return list(mechanism.release(votes).tolist())
    gap = 2 * mechanism.threshold
    return list(mechanism.ask([[0, gap], [gap + 9, 0], [0, gap + 20], [gap, 0]]))


def _stored(mechanism: Any) -> Any:
    return json.loads(json.dumps(mechanism.to_facts(), allow_nan=False))


@pytest.mark.claim("NOISE", "STAB", "BT", "MULTI")
@pytest.mark.parametrize("which", MAKERS)
def test_the_same_coins_give_the_same_future(which: str) -> None:
    original = MAKERS[which](SeededSource(11))
    for _ in range(5):
        _ask(original)
    coins = copy.deepcopy(original.source)
    restored = type(original).from_facts(_stored(original), coins)
    assert restored.cost == original.cost
    assert [getattr(restored, name, None) for name in STATE] == [
        getattr(original, name, None) for name in STATE
    ]
    assert [_ask(restored) for _ in range(6)] == [_ask(original) for _ in range(6)]
    assert restored.to_facts() == original.to_facts()


@pytest.mark.claim("NOISE", "STAB", "BT", "MULTI")
@pytest.mark.parametrize("which", ["gaussian", "laplace", "stability", "between"])
def test_noise_that_was_drawn_ahead_is_thrown_away(which: str) -> None:
    """What waits when the facts are taken is never used, neither here nor there."""
    original, untouched = MAKERS[which](3), MAKERS[which](3)
    for mechanism in (original, untouched):
        _ask(mechanism)
    waiting = _waiting(original)
    assert len(waiting) > 1000
    facts = _stored(original)
    assert set(facts) == {"kind", *type(original).fact_names}
    restored = type(original).from_facts(facts)
    for mechanism in (original, restored):
        assert _waiting(mechanism) == []
        assert _next_noise(mechanism, 200) != waiting[:200]
    assert _next_noise(untouched, 200) == waiting[:200]


def _waiting(mechanism: Any) -> list[int]:
    """Return the noise that was drawn ahead."""
    streams = mechanism._coins._streams.values()
    return [noise for stream in streams for noise in stream.waiting.tolist()]


def _next_noise(mechanism: Any, count: int) -> list[int]:
    rule = mechanism.rule
    found: list[int] = mechanism._coins.take("votes", rule, rule._drawer, count).tolist()
    return found


@pytest.mark.claim("STAB", "BT")
@pytest.mark.parametrize("which", ["stability", "between"])
def test_threshold_noise_survives_and_is_not_drawn_again(which: str) -> None:
    """A mechanism that drew new threshold noise in each life would give it a free try each time."""
    original = MAKERS[which](None)
    facts = _stored(original)
    for noise in (facts["threshold_noise"], 40, -40):
        restored = type(original).from_facts({**facts, "threshold_noise": noise})
        again = type(original).from_facts(_stored(restored))
        assert again.threshold_noise == noise
    assert not again.guarantee("one row", delta=1e-6).void
    assert again.guarantee("one row", delta=1e-6).within(1.0, 1e-6)


@pytest.mark.claim("NOISE")
def test_a_mechanism_that_has_given_all_stays_spent() -> None:
    votes = BetweenThresholds.calibrated(1000, math.inf, 0.0, 1)
    votes.ask(500)
    test = StabilityTest.calibrated(1.0, 1e-6, 3, 1)
    test.ask([[9000, 1], [9000, 1], [9000, 1]])
    majority = NoisyMajority.calibrated(1.0, 1e-6, 4)
    majority.ask(CLOSE)
    for spent, question in ((votes, 500), (test, [[9, 1]]), (majority, [[9, 1]])):
        restored: Any = type(spent).from_facts(_stored(spent))
        assert restored.remaining == 0
        with pytest.raises(BudgetExhausted):
            restored.ask(question)


def _broken() -> list[Any]:
    cases: list[Any] = []
    for which in ("gaussian", "laplace", "stability", "between"):
        facts = MAKERS[which](None).to_facts()
        kind = type(MAKERS[which](None))
        cases.append((kind, {}))
        cases.append((kind, {**facts, "kind": "Oracle"}))
        cases.append((kind, {**facts, "more": 1}))
        for name in facts:
            cases.append((kind, {key: facts[key] for key in facts if key != name}))
            cases.extend((kind, {**facts, name: wrong}) for wrong in (None, "x", 0.5j, True))
    gaussian = MAKERS["gaussian"](None).to_facts()
    between = MAKERS["between"](None).to_facts()
    stability = MAKERS["stability"](None).to_facts()
    cases += [
        (NoisyMajority, {**gaussian, "remaining": 401}),
        (NoisyMajority, {**gaussian, "remaining": -1}),
        (NoisyMajority, {**gaussian, "n_classes": 3}),  # the noise covers two classes only
        (NoisyMajority, {**gaussian, "noise": {**gaussian["noise"], "scale": -1.0}}),
        (NoisyMajority, {**gaussian, "noise": {"kind": "gaussian", "scale": 5.0}}),
        (BetweenThresholds, {**between, "remaining": 301}),
        (BetweenThresholds, {**between, "lower": between["upper"] + 1}),
        (BetweenThresholds, {**between, "epsilon": 0}),
        (BetweenThresholds, {**between, "epsilon": math.nan}),
        (BetweenThresholds, {**between, "threshold_noise": 2**63}),
        (BetweenThresholds, gaussian),
        (StabilityTest, {**stability, "threshold": -1}),
        (StabilityTest, {**stability, "unstable_remaining": 31}),
        (StabilityTest, {**stability, "queries_remaining": 401}),
        (StabilityTest, {**stability, "threshold_noise": 1.5}),
    ]
    return cases


@pytest.mark.parametrize(("kind", "facts"), _broken())
def test_broken_facts_are_refused(kind: Any, facts: Any) -> None:
    with pytest.raises(InvalidParameter):
        kind.from_facts(facts)
