"""Mechanisms: costs against exact enumeration, state, refusals and bad input."""

from __future__ import annotations

import copy
import itertools
import math
import multiprocessing
import pickle
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cumae.errors import BudgetExhausted, CumaeError, InvalidData, InvalidParameter, LiveState
from cumae.mechanisms import (
    BetweenThresholds,
    ExponentialMechanism,
    GaussianNoise,
    LaplaceNoise,
    Side,
    StabilityTest,
    distance_to_instability,
)
from cumae.mechanisms import between_thresholds as bt
from cumae.mechanisms import stability as stab
from cumae.mechanisms.sparse import SparseRule, upper_tail
from cumae.privacy import Budget, Pure, compose
from cumae.randomness import SYSTEM, Source

Floats = NDArray[np.float64]


def laplace_mass(rate: float, x: NDArray[Any]) -> Floats:
    """P(x) of integer Laplace noise."""
    q = math.exp(-rate)
    return np.asarray((1 - q) / (1 + q) * np.exp(-rate * np.abs(x)))


def leak(p: Floats, q: Floats, epsilon: float) -> float:
    """Hockey-stick divergence of two vectors of probabilities."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


# Exponential mechanism


@pytest.mark.claim("EXP")
@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(-2, 2)), min_size=1, max_size=6),
    st.floats(0.1, 5),
)
def test_exponential_mechanism_is_within_its_cost(
    pairs: list[tuple[int, int]], epsilon: float
) -> None:
    """The law that is drawn from, for scores that move by at most 2, leaks at most the cost."""
    scores = np.array([[s, s + move] for s, move in pairs], dtype=float)
    weights = np.exp(epsilon * scores / 4)
    p, q = (weights / weights.sum(axis=0)).T
    cost = ExponentialMechanism(epsilon, sensitivity=2).cost
    for e in np.linspace(0, epsilon, 7):
        assert leak(p, q, e) <= cost.delta(float(e)) + 1e-12


@pytest.mark.claim("EXP")
def test_an_infinite_epsilon_takes_a_best_candidate() -> None:
    drawn = {ExponentialMechanism(math.inf).choose([1, 5, 5, 2]) for _ in range(60)}
    assert drawn == {1, 2}


def test_exponential_mechanism_with_prior_weights() -> None:
    assert ExponentialMechanism(1.0).choose([9, 9], counts=[0, 1]) == 1


# Noise


@pytest.mark.claim("NOISE")
def test_costs_of_noise() -> None:
    assert LaplaceNoise(0.5).cost == Pure(0.5)
    assert GaussianNoise(600.0).cost.zcdp == pytest.approx((1 / (2 * 600**2), 0.0))
    assert GaussianNoise(600.0, moves=2).cost.zcdp == pytest.approx((1 / 600**2, 0.0))
    noise = GaussianNoise.calibrated(1.0, 1e-6, releases=100, moves=2)
    assert (noise.cost * 100).epsilon(1e-6) <= 1.0
    assert (GaussianNoise(noise.scale * 0.99, moves=2).cost * 100).epsilon(1e-6) > 1.0


def test_noise_keeps_the_shape_and_takes_integers_only() -> None:
    for noise in (LaplaceNoise(1.0), GaussianNoise(3.0)):
        assert noise.release([[1, 2], [3, 4]]).shape == (2, 2)
        assert noise.release(5).shape == ()
        assert noise.release(np.zeros(0, dtype=int)).shape == (0,)
        for bad in ([1.5], ["a"], [2**63], [math.nan]):
            with pytest.raises(InvalidData):
                noise.release(bad)


def test_no_noise_at_infinite_epsilon() -> None:
    assert LaplaceNoise(math.inf).release([7, 8]).tolist() == [7, 8]
    assert GaussianNoise(0.0).release([7, 8]).tolist() == [7, 8]
    assert GaussianNoise(0.0).cost.infinite
    assert GaussianNoise.calibrated(math.inf, 1e-6).scale == 0


# BetweenThresholds: the whole law of short transcripts, summed over the threshold noise


def between_law(
    counts: tuple[int, ...], lower: int, upper: int, epsilon: float
) -> dict[tuple[int, ...], float]:
    """Probability of each transcript up to the first "between", or to the end of the counts."""
    t = np.arange(-200, 201)
    start = laplace_mass(epsilon / 2, t)
    law: dict[tuple[int, ...], float] = {}

    def side(count: int) -> list[Floats]:
        low = 1 - upper_tail(epsilon / 6, lower + t - count)
        high = upper_tail(epsilon / 6, np.maximum(upper - t + 1, lower + t) - count)
        return [low, high, np.maximum(1 - low - high, 0)]

    def walk(prefix: tuple[int, ...], chance: Floats) -> None:
        done = len(prefix) == len(counts)
        if done or (prefix and prefix[-1] == Side.BETWEEN):
            law[prefix] = float(chance.sum())
            return
        for answer, factor in enumerate(side(counts[len(prefix)])):
            walk((*prefix, answer), chance * factor)

    walk((), start)
    return law


def between_leak(epsilon: float, gap: int, length: int = 3) -> float:
    """Largest leak at epsilon over transcripts of neighbouring counts around the thresholds."""
    worst = 0.0
    places = [-gap, -1, 0, 1, gap // 2, gap - 1, gap, gap + 1, 2 * gap]
    for counts in itertools.product(places, repeat=length):
        for moves in itertools.product((-1, 1), repeat=length):
            one = between_law(counts, 0, gap, epsilon)
            other = between_law(
                tuple(c + m for c, m in zip(counts, moves, strict=True)), 0, gap, epsilon
            )
            pairs = np.array([(one[key], other[key]) for key in one])
            worst = max(worst, leak(pairs[:, 0], pairs[:, 1], epsilon))
    return worst


@pytest.mark.claim("BT")
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (3.0, 0.01)])
def test_between_thresholds_leaks_at_most_delta(epsilon: float, delta: float) -> None:
    """Exact enumeration over neighbouring counts: the leak is below the delta of the proof."""
    gap = bt.least_gap(epsilon, delta)
    assert bt.delta_at_gap(epsilon, gap) <= delta < bt.delta_at_gap(epsilon, gap - 2)
    assert between_leak(epsilon, gap, length=2) <= bt.delta_at_gap(epsilon, gap)


def between_excess(epsilon: float, gap: int, noise: float) -> float:
    """Largest P - exp(epsilon) P' over long transcripts: many LOW, many HIGH, then BETWEEN.

    On the neighbour every count moves one to the other side, so each answer is a little less
    likely; ``noise`` is the epsilon that the noise is drawn for.
    """
    t = np.arange(-150, 151)
    start = np.log(laplace_mass(noise / 2, t))

    def chance(low: tuple[int, int], high: tuple[int, int], between: int) -> float:
        (lows, at_low), (highs, at_high) = low, high
        with np.errstate(divide="ignore", invalid="ignore"):
            is_low = np.log(upper_tail(noise / 6, at_low - t + 1.0))  # P(n <= t - count - 1)
            is_high = np.log(upper_tail(noise / 6, np.maximum(gap - t + 1, t) - float(at_high)))
            inside = upper_tail(noise / 6, t - float(between)) - upper_tail(
                noise / 6, np.maximum(gap - t + 1, t) - float(between)
            )
            logs = start + np.log(np.maximum(inside, 0))
        logs += (lows * is_low if lows else 0) + (highs * is_high if highs else 0)
        return float(np.exp(logs).sum())

    worst = -math.inf
    for lows, highs in itertools.product((0, 1, 4, 20, 100), repeat=2):
        for between in (0, gap // 2, gap):
            p = chance((lows, 0), (highs, gap), between)
            for move in (-1, 0, 1):
                q = chance((lows, 1), (highs, gap - 1), between + move)
                worst = max(worst, p - math.exp(epsilon) * q)
    return worst


@pytest.mark.claim("BT")
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_long_transcripts_leak_at_most_delta(epsilon: float) -> None:
    """Exact sums; half the noise, or a quarter of the gap, leaks a thousand times delta."""
    delta = 1e-9
    gap = bt.least_gap(epsilon, delta)
    assert between_excess(epsilon, gap, noise=epsilon) <= delta
    assert between_excess(epsilon, gap, noise=2 * epsilon) > 1000 * delta
    assert between_excess(epsilon, gap // 4, noise=epsilon) > 1000 * delta


@pytest.mark.claim("BT")
def test_the_enumerated_law_adds_up() -> None:
    assert sum(between_law((3, 5, 8), 0, 12, 1.0).values()) == pytest.approx(1)


@pytest.mark.claim("BT")
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_our_gap_is_smaller_than_the_papers(epsilon: float, delta: float) -> None:
    paper = 12 / epsilon * (math.log(10 / epsilon) + math.log(1 / delta) + 1)
    assert bt.least_gap(epsilon, delta) < paper / 2


@pytest.mark.claim("BT")
def test_between_thresholds_counts_down_and_refuses() -> None:
    votes = BetweenThresholds.calibrated(10**6, 1.0, 1e-6, max_between=3)
    assert votes.cost.delta(1.0) <= 1e-6
    assert votes.ask([0, 10**6]).tolist() == [Side.LOW, Side.HIGH]
    assert votes.remaining == 3
    # The fourth "between" is never given; the batch ends with the third.
    answers = votes.ask([500_000, 0, 500_000, 500_000, 500_000, 0])
    assert answers.tolist() == [Side.BETWEEN, Side.LOW, Side.BETWEEN, Side.BETWEEN]
    assert votes.remaining == 0
    with pytest.raises(BudgetExhausted, match="3 'between'"):
        votes.ask(0)


def test_between_thresholds_at_infinite_epsilon_is_plain() -> None:
    votes = BetweenThresholds.calibrated(10, math.inf, 0.0, max_between=2)
    assert votes.ask([4, 5, 6]).tolist() == [Side.LOW, Side.BETWEEN, Side.HIGH]
    assert votes.cost.infinite


def test_thresholds_too_close_are_refused_with_the_gap() -> None:
    with pytest.raises(InvalidParameter, match=f"need {bt.least_gap(1.0, 1e-6)}"):
        BetweenThresholds(0, 10, 1.0, 1e-6)
    with pytest.raises(InvalidParameter, match="votes=100"):
        BetweenThresholds.calibrated(100, 1.0, 1e-6, max_between=50)


# Stability


def changed(votes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All vote counts after one shard changed its vote."""
    return [
        tuple(v - (i == a) + (i == b) for i, v in enumerate(votes))
        for a in range(len(votes))
        for b in range(len(votes))
        if a != b and votes[a] > 0
    ]


def breaks_the_law(distance: Callable[[Any], Any], classes: int, most: int = 8) -> bool:
    """Whether some change of one vote moves the distance by 2, or flips the label at 1 or more."""
    for votes in itertools.product(range(most), repeat=classes):
        here = int(distance(votes))
        for other in changed(votes):
            if abs(here - int(distance(other))) > 1:
                return True
            if here >= 1 and np.argmax(votes) != np.argmax(other):
                return True
    return False


@pytest.mark.claim("STAB")
@pytest.mark.parametrize("classes", [2, 3])
def test_distance_moves_by_one_and_is_zero_where_a_vote_flips_the_label(classes: int) -> None:
    assert not breaks_the_law(distance_to_instability, classes)


@pytest.mark.claim("STAB")
def test_the_law_of_the_distance_has_teeth() -> None:
    """The gap itself moves by 2; half of it can be 1 while one shard flips the label."""

    def gap(votes: tuple[int, ...]) -> int:
        return max(votes) - sorted(votes)[-2]

    assert breaks_the_law(gap, 2)
    assert breaks_the_law(lambda votes: gap(votes) // 2, 2)
    assert breaks_the_law(lambda votes: max(0, -(-gap(votes) // 2)), 2)


def stable_law(distances: tuple[int, ...], threshold: int, epsilon: float) -> Floats:
    """P(stable^j, unstable) for j = 0, 1, ..., then P(all stable)."""
    t = np.arange(-400, 401)
    chance = laplace_mass(epsilon / 2, t)
    law = []
    for d in distances:
        stable = upper_tail(epsilon / 4, threshold + t - d)
        law.append(float((chance * (1 - stable)).sum()))
        chance = chance * stable
    return np.array([*law, chance.sum()])


@pytest.mark.claim("STAB")
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_segment_of_the_stability_test_is_pure(epsilon: float) -> None:
    """Exact enumeration: neighbouring distances, no leak at epsilon; planted noise leaks."""
    worst = halved = 0.0
    for distances in itertools.product((0, 3, 6, 9), repeat=3):
        for moves in itertools.product((-1, 0, 1), repeat=3):
            other = tuple(max(0, d + m) for d, m in zip(distances, moves, strict=True))
            p, q = stable_law(distances, 6, epsilon), stable_law(other, 6, epsilon)
            worst = max(worst, leak(p, q, epsilon))
            p, q = stable_law(distances, 6, 2 * epsilon), stable_law(other, 6, 2 * epsilon)
            halved = max(halved, leak(p, q, epsilon))
    assert worst < 1e-12
    assert halved > 1e-3


@pytest.mark.claim("STAB")
def test_delta_bounds_the_chance_of_passing_against_a_greedy_adversary() -> None:
    """The adversary first learns, from stable answers at a high distance, that t is low."""
    epsilon, queries, threshold = 1.0, 30, 8
    bound = stab.delta_at_threshold(epsilon, threshold, queries, 1)
    t = np.arange(-400, 401)
    chance = laplace_mass(epsilon / 2, t)
    passed = np.zeros_like(chance)
    for distance in [threshold] * 10 + [0]:
        stable = upper_tail(epsilon / 4, threshold + t - distance)
        if distance == 0:
            passed += chance * stable  # counted once, whatever comes after
            chance = np.zeros_like(chance)
        else:
            chance = chance * stable
    assert passed.sum() <= bound
    assert bound < 1


@pytest.mark.claim("STAB")
def test_least_threshold_is_least() -> None:
    w = stab.least_threshold(0.7, 1e-6, 1000, 10)
    assert stab.delta_at_threshold(0.7, w, 1000, 10) <= 1e-6
    assert stab.delta_at_threshold(0.7, w - 1, 1000, 10) > 1e-6


@pytest.mark.claim("STAB")
def test_stability_counts_down_and_refuses() -> None:
    test = StabilityTest.calibrated(1.0, 1e-6, max_queries=8, max_unstable=2)
    assert test.cost.delta(1.0) <= 1e-6
    big, even = [0, 10**6], [10**6, 10**6]
    with pytest.raises(BudgetExhausted, match="9 queries"):
        test.ask([big] * 9)
    assert test.remaining == 8  # nothing was spent by the refused call
    assert test.ask([big, even, big]).tolist() == [1, -1, 1]
    assert (test.remaining, test.unstable_remaining) == (5, 1)
    assert test.ask([big, even, big]).tolist() == [1, -1]
    assert test.remaining == 0
    with pytest.raises(BudgetExhausted):
        test.ask(big)


def test_stability_ends_with_its_queries() -> None:
    test = StabilityTest.calibrated(1.0, 1e-6, max_queries=2, max_unstable=5)
    assert test.ask([[9999, 1, 0], [0, 9999, 5]]).tolist() == [0, 1]
    with pytest.raises(BudgetExhausted, match="2 answers"):
        test.ask([9999, 1, 0])


def test_stability_at_infinite_epsilon_is_the_plain_majority() -> None:
    test = StabilityTest.calibrated(math.inf, 0.0, max_queries=9, max_unstable=1)
    assert test.ask([[3, 4], [4, 4], [9, 0]]).tolist() == [1, 0, 0]


# What all interactive ones share


def live() -> list[Any]:
    return [
        BetweenThresholds.calibrated(10**5, 1.0, 1e-6, max_between=2),
        StabilityTest.calibrated(1.0, 1e-6, max_queries=5, max_unstable=2),
    ]


@pytest.mark.parametrize("which", [0, 1])
def test_live_mechanisms_refuse_to_be_copied(which: int) -> None:
    mechanism = live()[which]
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LiveState, match="cannot be copied"):
            duplicate(mechanism)


def _asks(mechanism: Any, votes: Any, queue: Any) -> None:
    try:
        mechanism.ask(votes)
        queue.put("answered")
    except CumaeError as error:
        queue.put(type(error).__name__)


@pytest.mark.parametrize(("which", "votes"), [(0, 5), (1, [5, 90_000])])
def test_live_mechanisms_refuse_a_forked_process(which: int, votes: Any) -> None:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_asks, args=(live()[which], votes, queue))
    child.start()
    assert queue.get(timeout=60) == "LiveState"
    child.join()


def test_a_seeded_mechanism_is_void_and_a_system_one_is_not() -> None:
    seeded = [
        ExponentialMechanism(1.0, random_state=1),
        LaplaceNoise(1.0, random_state=1),
        GaussianNoise(9.0, random_state=1),
        StabilityTest.calibrated(1.0, 1e-6, 5, 2, random_state=1),
        BetweenThresholds.calibrated(10**5, 1.0, 1e-6, 2, random_state=1),
    ]
    for mechanism in seeded:
        promise = mechanism.guarantee("one row", delta=1e-6)
        assert promise.void
        assert str(promise).startswith("VOID")
    for mechanism in (ExponentialMechanism(1.0), *live()):
        assert not mechanism.guarantee("one row", delta=1e-6).void


def test_guarantees_never_exceed_what_was_asked() -> None:
    for mechanism in live():
        assert mechanism.guarantee("one row", delta=1e-6).within(1.0, 1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ExponentialMechanism(-1.0),
        lambda: ExponentialMechanism(math.nan),
        lambda: ExponentialMechanism(1.0, sensitivity=0),
        lambda: ExponentialMechanism(1.0).choose([]),
        lambda: ExponentialMechanism(1.0).choose([0.5]),
        lambda: ExponentialMechanism(1.0).choose([[1, 2]]),
        lambda: LaplaceNoise(0.0),
        lambda: LaplaceNoise(1.0, sensitivity=-1),
        lambda: GaussianNoise(-1.0),
        lambda: GaussianNoise.calibrated(1.0, 0.0),
        lambda: GaussianNoise.calibrated(0.0, 1e-6),
        lambda: BetweenThresholds(0, 100, 1.0, 2.0),
        lambda: BetweenThresholds(0, 100, 0.0, 0.1),
        lambda: BetweenThresholds(0, 100, 1.0, 0.1, max_between=-1),
        lambda: BetweenThresholds.calibrated(100, 1.0, 0.0, 1),
        lambda: StabilityTest(1.0, 1e-6, max_queries=-1),
        lambda: StabilityTest(0.0, 1e-6, max_queries=3),
        lambda: StabilityTest.calibrated(1.0, 0.0, 5, 1),
        lambda: live()[1].ask([3]),
        lambda: live()[1].ask([[0.5, 1]]),
        lambda: live()[0].ask(["x"]),
    ],
)
def test_bad_input_raises_from_the_one_tree(call: Callable[[], object]) -> None:
    with pytest.raises(CumaeError):
        call()


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_rates_are_exact_shares(epsilon: float) -> None:
    votes = BetweenThresholds(0, bt.least_gap(epsilon, 0.01), epsilon, 0.01)
    assert votes.threshold_rate + 3 * Fraction(votes.query_rate) == Fraction(epsilon)
    assert votes.source is SYSTEM


# What a hostile review found, so that it stays mended.


@pytest.mark.claim("EXP")
@pytest.mark.parametrize("score", [1419, 1420, 5000])
def test_a_candidate_that_cannot_be_drawn_does_not_move_the_others(score: int) -> None:
    """Its weight is 0, whatever its score; it once overflowed the scale of all others."""
    mechanism = ExponentialMechanism(1.0)
    drawn = {mechanism.choose([0, 0, 0, score], counts=[4096, 4096, 1, 0]) for _ in range(60)}
    assert {0, 1} <= drawn <= {0, 1, 2}


@pytest.mark.claim("BT")
def test_threads_cannot_overdraw() -> None:
    """Many threads at once still get exactly the charged answers that were paid for."""
    votes = BetweenThresholds.calibrated(10_000, 1.0, 1e-6, max_between=20)
    test = StabilityTest.calibrated(1.0, 1e-6, max_queries=10**6, max_unstable=10)
    charged: list[int] = []
    unstable: list[int] = []

    def ask() -> None:
        for _ in range(20):
            try:
                charged.append(int((votes.ask(np.full(50, 5000)) == Side.BETWEEN).sum()))
                unstable.append(int((test.ask(np.full((50, 2), 500)) < 0).sum()))
            except BudgetExhausted:
                return

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert sum(charged) == 20
    assert sum(unstable) <= 10


@pytest.mark.claim("NOISE")
def test_delta_zero_is_promised_by_pure_costs_only() -> None:
    """A delta that underflows is not 0."""
    assert GaussianNoise(600.0).guarantee("one row").epsilon == math.inf
    assert BetweenThresholds(0, 100_000, 1.0, 1e-6).guarantee("one row").epsilon == math.inf


@pytest.mark.claim("BT")
@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("kind", ["between", "stability"])
def test_a_charged_answer_is_counted_after_its_noise_is_drawn(
    kind: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interruption while drawing leaves the old count, never the old noise with a new count."""
    mechanism: Any = StabilityTest.calibrated(1.0, 1e-6, max_queries=90, max_unstable=20)
    questions: Any = [[5_000, 5_000]] * 5
    if kind == "between":
        mechanism = BetweenThresholds.calibrated(10_000, 1.0, 1e-6, max_between=20)
        questions = [5_000] * 5
    before = mechanism.to_facts()
    drawn: list[int] = []
    fresh = SparseRule.fresh_threshold_noise

    def interrupted(rule: SparseRule, source: Source) -> int:
        if len(drawn) == after:
            raise KeyboardInterrupt
        drawn.append(fresh(rule, source))
        return drawn[-1]

    monkeypatch.setattr(SparseRule, "fresh_threshold_noise", interrupted)
    with pytest.raises(KeyboardInterrupt):
        mechanism.ask(questions)
    assert len(drawn) == after
    assert mechanism.to_facts() == before  # and no answer left


@pytest.mark.claim("STAB")
def test_delta_at_threshold_against_exact_arithmetic() -> None:
    """mpmath agrees where max_unstable times the chance is far below 2^-53 and above it."""
    for epsilon, queries, unstable, threshold in [
        (1.0, 10**6, 10**4, 60),
        (0.5, 10**7, 10**7, 250),
    ]:
        with mpmath.workdps(60):
            q, p = mpmath.exp(-mpmath.mpf(epsilon) / 2), mpmath.exp(-mpmath.mpf(epsilon) / 4)

            def above(x: int, base: Any) -> Any:  # P(noise >= x)
                return base**x / (1 + base) if x >= 1 else 1 - base ** (1 - x) / (1 + base)

            later = [above(x + 1, q) ** unstable for x in range(-500, 501)]
            total = later[-1] * min(1, queries * above(threshold + 500, p))
            for i, x in enumerate(range(-500, 501)):
                chance = (later[i - 1] if i else mpmath.mpf(1)) - later[i]
                total += chance * min(1, queries * above(threshold + x, p))
        found = stab.delta_at_threshold(epsilon, threshold, queries, unstable)
        assert float(total) <= found <= float(total) * (1 + 1e-6) + 1e-29


def test_unsigned_votes_have_the_same_distance() -> None:
    assert distance_to_instability(np.array([[5, 5], [9, 2]], dtype=np.uint8)).tolist() == [0, 3]


def test_the_source_is_fixed() -> None:
    mechanism = ExponentialMechanism(1.0, random_state=1)
    with pytest.raises(AttributeError):
        mechanism.source = SYSTEM  # type: ignore[misc]
    assert not mechanism.guarantee("one row").within(1.0, 0.0)  # void promises nothing


# What a newcomer stumbled over.


@pytest.mark.claim("BT")
def test_a_table_of_counts_is_refused_before_anything_is_drawn() -> None:
    """It once failed after drawing, with a message that told the answer and cost nothing."""
    votes = BetweenThresholds.calibrated(10_000, 1.0, 1e-6, max_between=1)
    for count in (100, 5000):
        with pytest.raises(InvalidData, match=r"counts of shape \(2, 2\)"):
            votes.ask([[count, count], [count, count]])
    assert votes.remaining == 1


@pytest.mark.parametrize(
    "call",
    [
        ExponentialMechanism,
        lambda data: ExponentialMechanism(1.0, random_state=data),
        lambda data: LaplaceNoise(1.0, sensitivity=data),
        GaussianNoise,
        lambda data: StabilityTest(1.0, 1e-6, max_queries=data),
        Budget,
        lambda data: Budget(1.0).spend(data),
    ],
)
def test_arguments_in_the_wrong_place_are_not_printed(call: Callable[[Any], object]) -> None:
    """A message names the type of a table, never its values."""
    for data in (np.array([120, 95, 31077]), [31077, 1], {"a": 31077}):
        with pytest.raises(CumaeError) as caught:
            call(data)
        assert "31077" not in str(caught.value)


def test_a_guarantee_of_several_releases() -> None:
    noise = GaussianNoise.calibrated(1.0, 1e-6, releases=1000)
    together = noise.guarantee("one row", delta=1e-6, releases=1000)
    assert 0.99 < together.epsilon <= 1.0
    assert noise.guarantee("one row", delta=1e-6).epsilon < 0.1
    assert str(noise.guarantee("one row")).startswith("NO PRIVACY is promised")
    assert "GaussianNoise with cost" in repr(noise)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: BetweenThresholds(6000, 4000, 1.0, 0.1), "above upper"),
        (lambda: BetweenThresholds.calibrated(10_000, 0.0, 1e-6, 1), "both above 0"),
        (lambda: BetweenThresholds.calibrated("x", 1.0, 1e-6, 1), "votes='x'"),  # type: ignore[arg-type]
        (lambda: StabilityTest.calibrated(0.0, 1e-6, 5, 1), "both above 0"),
        (lambda: StabilityTest(1.0, 1e-6, max_queries=0), "max_queries=0"),
        (lambda: GaussianNoise.calibrated(1.0, 1e-6, releases=0), "releases=0"),
        (lambda: GaussianNoise(math.inf), "scale=inf"),
        (lambda: ExponentialMechanism(1.0).choose([[1, 2], [3]]), "different lengths"),
        (lambda: Budget(1.0).spend(GaussianNoise(9.0).cost), "no finite epsilon at delta=0.0"),
    ],
)
def test_messages_say_what_to_do(call: Callable[[], object], text: str) -> None:
    with pytest.raises(CumaeError, match=text):
        call()


def test_costs_can_be_summed_and_listed() -> None:
    assert sum([Pure(0.1)] * 3) == compose([Pure(0.1)] * 3) == Pure(0.1) * 3
