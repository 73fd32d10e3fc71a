"""Runnable checks behind docs/errata.md: the printed statement fails, the corrected one holds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom

from cumae.mechanisms import BetweenThresholds
from cumae.mechanisms.between_thresholds import least_gap
from cumae.theorems.active import transcript_labels
from cumae.theorems.query_release import disagreement_rows, first_queries, shards_for
from cumae.theorems.vc import least_labels, uniform_rows

Row = tuple[int, int]
Log = Callable[[float], float]


def tight_subsampling(rate: float, eps: float) -> float:
    """Return the replace-one cost of running an eps-DP algorithm on a uniform subset."""
    return math.log1p(rate * math.expm1(eps))


def worst_ratio(n: int, eps: float, changed: int, orders: str) -> float:
    """Maximise the ratio of one event over all eps-DP algorithms on a sample of 2 of n rows."""
    first = list(range(n))
    second = list(first)
    second[changed] = n
    cell = {pair: k for k, pair in enumerate(itertools.product(range(n + 1), repeat=2))}
    left = np.zeros(len(cell))
    right = np.zeros(len(cell))
    for low, high in itertools.combinations(range(n), 2):
        kept = [(low, high)] if orders == "index" else [(low, high), (high, low)]
        for u, v in kept:
            share = 1.0 / (math.comb(n, 2) * len(kept))
            left[cell[first[u], first[v]]] += share
            right[cell[second[u], second[v]]] += share
    rows: list[np.ndarray] = []
    for p, q in itertools.permutations(cell, 2):
        if (p[0] != q[0]) + (p[1] != q[1]) == 1:
            row = np.zeros(len(cell))
            row[cell[p]] = 1.0
            row[cell[q]] = -math.exp(eps)
            rows.append(row)
    solved = linprog(
        -left, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=right[None, :], b_eq=[1.0]
    )
    assert solved.status == 0
    assert solved.fun is not None
    return -float(solved.fun)


# Paper 1


def test_active_learner_formula_is_an_upper_bound() -> None:
    """Labelling the smaller index costs more than SUB, yet at most the two-entry formula."""
    rate, eps = 0.5, 1.0
    worst = max(worst_ratio(4, eps, i, "index") for i in range(4))
    one_entry = math.exp(tight_subsampling(rate, eps))
    two_entries = (1 + rate * math.expm1(2 * eps)) / (1 + rate * math.expm1(eps))
    assert worst > one_entry + 0.1
    assert worst <= two_entries + 1e-6
    assert max(worst_ratio(4, eps, i, "random") for i in range(4)) <= one_entry + 1e-6
    # Claim 5.6 allows for the second entry: its bound is larger still.
    claim = (1 + rate * math.expm1(2 * eps)) / (1 + rate * math.expm1(-2 * eps))
    assert two_entries <= claim


def test_bootstrap_delta_constant() -> None:
    """The proof of Claim C.3 ends at 2476 delta, not at the 2467 delta of the claim."""
    eps = 1.0
    weights = [(copies, (math.e / copies) ** copies) for copies in range(1, 400)]
    none = 1 / math.e  # (1 - 1/n)^n never exceeds 1/e
    group = sum(p * k for k, p in weights)
    growth = none + sum(p * math.exp(k * eps) for k, p in weights)
    paid = sum(p * math.expm1(k * eps) / math.expm1(eps) for k, p in weights)
    assert group <= 10
    assert growth <= 61
    assert paid <= 36
    assert 4 * 61 == 244
    assert 4 * 10 * 61 + 36 == 2476
    assert 4 * 10 * 61 + 36 > 2467


def relabelled(rows: Sequence[Row], boosted: int) -> dict[tuple[Row, ...], float]:
    """Return the law of label boosting over thresholds with the first two rows as S."""
    points = sorted({x for x, _ in rows[:boosted]})
    dichotomies = {tuple(int(x < cut) for x in points) for cut in range(4)}
    law: dict[tuple[Row, ...], float] = {}
    total = 0.0
    for z in dichotomies:
        label = dict(zip(points, z, strict=True))
        weight = math.exp(0.5 * sum(label[x] == y for x, y in rows[:2]))
        new = tuple((x, label[x]) for x, _ in rows[:boosted]) + tuple(rows[boosted:])
        law[new] = law.get(new, 0.0) + weight
        total += weight
    return {key: value / total for key, value in law.items()}


def boosted_output(rows: Sequence[Row], eps: float, delta: float) -> dict[object, float]:
    """Run label boosting, then randomized response that leaks all rows with chance delta."""
    out: dict[object, float] = {}
    for new, p in relabelled(rows, 3).items():
        bit = sum(3 * x + y for x, y in new) % 2
        for answer in (0, 1):
            kept = math.exp(eps if answer == bit else 0.0) / (1 + math.exp(eps))
            out[answer] = out.get(answer, 0.0) + p * (1 - delta) * kept
        out[new] = out.get(new, 0.0) + p * delta
    return out


def hockey_stick(p: dict[object, float], q: dict[object, float], eps: float) -> float:
    """Return the smallest delta for which p is at most exp(eps) q plus delta on every event."""
    return sum(max(0.0, v - math.exp(eps) * q.get(k, 0.0)) for k, v in p.items())


def neighbours(row: Row, place: int) -> Iterator[Row]:
    """Yield the replacements of a row that keep its public status."""
    for x in range(3):
        for y in (0, 1) if place < 2 else (-1,):
            if (x, y) != row:
                yield (x, y)


def test_label_boosting_delta() -> None:
    """The printed 4 epsilon delta fails for small epsilon; 4 e delta holds, and so does delta."""
    eps, delta = 0.1, 1e-3
    labelled = list(itertools.product(range(3), (0, 1)))
    bare: list[Row] = [(x, -1) for x in range(3)]
    laws = {
        rows: boosted_output(rows, eps, delta)
        for rows in itertools.product(labelled, labelled, bare, bare)
    }
    growth = 1 + math.exp(0.5)
    extra = [2 * math.log(growth), 2 * math.log(growth), math.log(4), 0.0]
    worst_printed = worst_ours = 0.0
    for rows, law in laws.items():
        for place in range(4):
            for row in neighbours(rows[place], place):
                other = laws[(*rows[:place], row, *rows[place + 1 :])]  # type: ignore[index]
                worst_printed = max(worst_printed, hockey_stick(law, other, eps + 3))
                worst_ours = max(worst_ours, hockey_stick(law, other, eps + extra[place]))
    assert worst_printed > 4 * eps * delta
    assert worst_printed <= 4 * math.e * delta
    assert worst_ours <= delta * (1 + 1e-9)


def test_theorem_4_2_delta() -> None:
    """Theorem C.11 followed by Claim C.1 gives 28.7 epsilon delta, which is delta only later."""
    factor = 41 * 4 / (3 + math.e)
    assert 28.6 < factor < 28.7
    assert factor * 1.0 > 1
    assert factor * (1 / 29) <= 1


def test_claim_5_6_needs_small_epsilon() -> None:
    """Claim 5.6 asks for a sample below n at large epsilon, and its delta needs a ratio of 3."""

    def ratio(eps: float, star: float) -> float:
        rate = eps / (3 + math.exp(2 * star))
        assert rate <= 1
        return (1 + rate * math.expm1(2 * star)) / (1 + rate * math.expm1(-2 * star))

    def proven(eps: float, star: float) -> float:
        return 2 * ratio(eps, star) + 1 + math.exp(star)

    for eps in np.linspace(0.01, 1.0, 40):
        for star in np.linspace(0.01, 6.0, 60):
            assert ratio(float(eps), float(star)) <= math.exp(eps)
            assert proven(float(eps), float(star)) <= 7 + math.exp(star)
    assert proven(3.0, 2.0) > 7 + math.exp(2.0)
    assert (3 + math.exp(2 * 2.0)) / 60.0 < 1  # t < n at epsilon = 60


def asked_rows(i: int, size: int, n: int, alpha: float, beta: float, vc: int) -> float:
    """Return the size of T that step 2b of IterLabelBoost asks for."""
    alpha_i = alpha / (24 * 2**i)
    beta_i = beta / (4 * 2**i)
    power = alpha_i * size / (200 * vc)
    grown = math.inf if power > 700 else beta_i / math.e * vc * math.exp(power)
    return min(30000.0 * n, grown - 100.0 * size)


def test_iter_label_boost_can_ask_for_a_negative_size() -> None:
    """Below the sample size of Claim C.7 step 2b asks for |T| < 0 and the loop cannot end."""
    n, alpha, beta, vc = 1000, 0.1, 0.1, 1
    size = 2000
    assert asked_rows(1, size, n, alpha, beta, vc) < 0
    for i in range(1, 200):
        taken = max(0, math.floor(asked_rows(i, size, n, alpha, beta, vc)))
        assert taken == 0
        size //= 100
        assert size < 300 * n
    enough = math.ceil(576000 / alpha * vc * math.log(768 / (alpha * beta)))
    assert asked_rows(1, enough, 10**9, alpha, beta, vc) == 30000.0 * 10**9


def test_lemma_c_10_step_needs_a_small_base_error() -> None:
    """With alpha' = alpha a hypothesis of true error 0.9 alpha passes the sample test."""
    alpha = base = beta = 0.1
    size = math.ceil(1920 / alpha * math.log(768 / (alpha * beta)))
    error = 0.9 * base
    assert error > alpha / 2
    passes = float(binom.cdf(math.floor(base * size), size, error))
    assert passes > 1 - beta / 2  # the step says that this happens with chance at most beta/2
    passes = float(binom.cdf(math.floor(alpha / 20 * size), size, error))
    assert passes < beta / 2  # a base learner with alpha' <= alpha/20 is safe


def test_label_counts_vanish_for_large_epsilon() -> None:
    """Theorems 3.3, 4.2 and 4.4 with any constant ask for less than every learner needs."""
    alpha, beta, vc, epsilon, constant = 0.1, 0.05, 101, 1e12, 1e6
    needed = least_labels(alpha, beta, vc)
    logarithm = math.log(1 / (alpha * beta))
    third = (vc * math.log(1 / alpha) / alpha**3 + math.log(1 / beta) / alpha) / epsilon
    for printed in (third, vc * logarithm / (alpha * epsilon), vc * logarithm / alpha**2 / epsilon):
        assert constant * printed < needed


def missed(light: int, mass: float, rows: int) -> np.ndarray:
    """Return the law of how many of ``light`` points, of equal mass, no row hits."""
    law = np.zeros(light + 1)
    law[light] = 1.0
    hit = mass * np.arange(light + 1) / light  # chance that a row hits one that was missed so far
    for _ in range(rows):
        law = law * (1 - hit) + np.append((law * hit)[1:], 0.0)
    return law


def test_theorem_b_3_needs_a_small_beta() -> None:
    """Two labels are enough on two points, where the theorem prints 6.25."""
    alpha, rows = 0.01, 2
    masses = np.append(np.linspace(alpha, 0.5, 1000), np.nextafter(alpha, 1))
    # The light point was missed and guessed wrongly, or the heavy one was.
    failure = ((1 - masses) ** rows + masses**rows) / 2
    assert failure.max() < 0.4902 < 1 / 2
    assert rows < (2 - 1) / (16 * alpha)


def test_theorem_b_3_needs_a_small_alpha() -> None:
    """Coins on all points that were not seen have an error of 0.9 at most, nearly always."""
    alpha, rows = 0.9, 50
    heavy = alpha**rows  # the chance to miss a point of mass 1 - alpha or more
    spread = (1 - alpha) / 4  # the most that the error varies if there is no such point
    light = spread / (spread + (alpha - 1 / 2) ** 2)  # Cantelli's inequality
    assert max(heavy, light) < 0.14
    assert rows < (1001 - 1) / (16 * alpha)


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.2])
@pytest.mark.parametrize("light", [1, 2, 3, 8, 40])
def test_theorem_b_3_with_limits(alpha: float, light: int) -> None:
    """One label less than printed: the best learner errs by more than alpha with chance 1/6."""
    rows = least_labels(alpha, 1 / 6, light + 1) - 1
    law = missed(light, 5 * alpha, rows)
    assert law.sum() == pytest.approx(1)
    counts = np.arange(light + 1)
    failure = law @ binom.sf(light / 5 * (1 + 1e-12), counts, 1 / 2)
    assert failure > 1 / 6


def test_theorem_b_6_fails_close_to_one() -> None:
    alpha = beta = 0.995
    vc, domain = 100, 10**6
    rows = math.ceil(50 * vc / alpha**2 * math.log(1 / (alpha * beta)))
    assert rows == 51 <= vc  # so the complement of the sample is a concept
    assert 1 - rows / domain > alpha  # its error in general; on the sample it is 0
    # The class has that dimension: complements of at most 2 of 5 points shatter 2 points, not 3.
    concepts = [
        frozenset(range(5)) - set(out)
        for size in range(3)
        for out in itertools.combinations(range(5), size)
    ]
    for size, all_labellings in ((2, True), (3, False)):
        seen = {concept & set(range(size)) for concept in concepts}
        assert (len(seen) == 2**size) == all_labellings
    # With alpha and beta up to 1/2 the bound of Devroye holds for the largest classes.
    huge = 10**40
    size = uniform_rows(0.5, 0.5, huge)
    growth = huge * (1 + 2 * math.log(size) - math.log(huge))
    assert math.log(4) + 8 + growth - 2 * 0.5**2 * size <= math.log(0.5)


def test_theorem_c_12_interval() -> None:
    """Of 10,000 rows on 2^20 points, 7 to 9 alpha n should fall into B."""
    n, alpha, bits = 10_000, 0.01, 20
    printed, right = 8 * alpha * n, 8 * alpha * 2**bits
    inside = [n * size / 2**bits for size in (printed, right)]
    assert inside[0] < 8 < 7 * alpha * n <= inside[1] <= 9 * alpha * n


def test_theorem_c_12_needs_a_small_delta() -> None:
    """A binary search that runs with chance delta asks for few labels."""
    delta, beta, rows = 0.9, 0.1, 10**6
    alpha = 10 / rows  # more than enough for thresholds that are right on all rows
    labels, low, high, target = 0, 0, rows, 123_456
    while low < high:
        middle = (low + high) // 2
        labels += 1
        low, high = (middle + 1, high) if middle < target else (low, middle)
    assert low == target
    assert labels <= 20 < 1 / alpha
    assert 1 - delta == pytest.approx(beta)
    assert transcript_labels(alpha, beta, 0.1, delta) == 0  # the last display says nothing here
    assert transcript_labels(alpha, beta, 0.1, 0.0) > 1 / (20 * alpha)


# Paper 2


def test_subsampling_in_index_order_lp() -> None:
    """The best event against 2 of 4 rows in index order beats the formula, a shuffle does not."""
    formula = math.exp(tight_subsampling(0.5, 1.0))
    assert max(worst_ratio(4, 1.0, i, "index") for i in range(4)) > formula + 0.1
    assert max(worst_ratio(4, 1.0, i, "random") for i in range(4)) <= formula + 1e-6


def test_claim_2_7_fails_in_index_order() -> None:
    """One explicit 4-DP algorithm on 2 of 116 rows breaks Claim 2.7 unless the rows are mixed."""
    star, t, low = 4.0, 116, 13
    eps = 2 * (3 + math.exp(star)) / t
    assert eps <= 1

    def accept(x: int, y: int) -> float:
        # Each coordinate moves the exponent by at most one, so this is star-DP.
        return 0.5 * math.exp(-star * ((x != 0) + (not 1 <= y <= low)))

    values = [accept(x, y) for x in (0, 1) for y in (1, low + 1)]
    for p, q in itertools.permutations(values, 2):
        assert 1 - p <= math.exp(star) * (1 - q)

    def total(row: int, *, shuffled: bool) -> float:
        data = [row, *range(1, t)]
        chance = 0.0
        for u, v in itertools.combinations(data, 2):
            chance += (accept(u, v) + accept(v, u)) / 2 if shuffled else accept(u, v)
        return chance / math.comb(t, 2)

    assert total(0, shuffled=False) / total(t, shuffled=False) > 1.5 * math.exp(eps)
    mixed = total(0, shuffled=True) / total(t, shuffled=True)
    assert mixed <= math.exp(tight_subsampling(2 / t, star)) <= math.exp(eps)


def test_observation_composition_formula() -> None:
    """With everything under the root the formula is broken by composed randomized response."""
    eps, count, delta = 0.1, 200_000, 1e-9
    slack = math.log(1 / (count * delta))
    printed = math.sqrt(2 * count * slack * eps + count * eps * math.expm1(eps))
    right = math.sqrt(2 * count * slack) * eps + count * eps * math.expm1(eps)
    successes = np.arange(count + 1)
    chance = binom.pmf(successes, count, 1 / (1 + math.exp(-eps)))
    loss = eps * (2.0 * successes - count)

    def needed(target: float) -> float:
        return float(np.sum(chance * -np.expm1(np.minimum(0.0, target - loss))))

    assert needed(printed) > 0.5 > 2 * count * delta
    assert needed(right) <= 2 * count * delta


def bbl_sizes(
    alpha: float, beta: float, delta: float, eps: float, vc: int, log: Log, phase: int = 1
) -> tuple[float, float]:
    """Return lambda_i and T_i of GenericBBL at tau = 1.1e10."""
    a, b = alpha / 2**phase, beta / 2**phase
    lam = (8 * vc * log(13 / a) + 4 * log(2 / b)) / a
    t = 1.1e10 * lam * log(1 / delta) * log(lam / (eps * a * b * delta)) ** 2 / (a * eps)
    return lam, t


def gap_needed(log: Log, lemma_log: Log) -> tuple[float, float]:
    """Return the gap of step 3c and the gap that Lemma C.3 needs at alpha=beta=delta=1/17."""
    alpha = beta = delta = 1 / 17
    eps = 0.999
    lam, t = bbl_sizes(alpha, beta, delta, eps, 1, log)
    count = 64 * (alpha / 2) * 25600 * lam * t / eps
    eps_i = 1 / (3 * math.sqrt(count * math.log(2 / delta)))
    delta_i = delta / (2 * count)
    need = 12 / (eps_i * t) * (lemma_log(10 / eps_i) + lemma_log(1 / delta_i) + 1)
    return alpha, need


@pytest.mark.parametrize("log", [math.log, math.log2])
def test_claim_d_9_gap_condition(log: Log) -> None:
    """With one logarithm throughout, the gap fails at 1/17; the lost factor 3 hid that."""
    gap, need = gap_needed(log, log)
    assert need > gap
    assert need / 3 <= gap
    gap, need = gap_needed(math.log2, math.log)  # binary sizes, natural lemma: the gap is wide
    assert need <= gap


def test_bbl_step_2_sample_size() -> None:
    """The right side of step 2 is smaller than the left, and than |S_1|, by log(1/delta)."""
    alpha, beta, delta, eps, vc = 0.05, 0.05, 1e-6, 0.5, 3
    log = math.log2
    core = 8 * vc * log(26 / alpha) + 4 * log(4 / beta)
    n = 8 * 1.1e10 / (alpha**3 * eps**2) * core**2 * log(1 / delta)
    n *= log(8 * core / (eps * alpha**2 * beta * delta)) ** 2 * (3 + math.exp(eps + 4))
    left = n * eps / (3 + math.exp(eps + 4))
    lam, t = bbl_sizes(alpha, beta, delta, eps, vc, log)
    a, b = alpha / 2, beta / 2
    printed = 1.1e10 * lam**2 * log(lam / (eps * a * b * delta)) ** 2 / (a * eps)
    assert left == pytest.approx(lam * t, rel=1e-9)
    assert left == pytest.approx(printed * log(1 / delta), rel=1e-9)
    assert printed < left / 10


def test_claim_d_6_last_display() -> None:
    """The display ends with 32 T_j >= lambda T, which is false; 32 T_j >= T_{j+1} holds."""
    _, now = bbl_sizes(0.05, 0.05, 1e-6, 0.5, 3, math.log2, 1)
    lam, following = bbl_sizes(0.05, 0.05, 1e-6, 0.5, 3, math.log2, 2)
    assert 32 * now < lam * following
    assert 32 * now >= following


def test_bbl_votes_must_be_averaged() -> None:
    """One vote in a hundred summed lies above the upper threshold, averaged below the lower."""
    votes = [1] + [0] * 99
    lower, upper = 0.4, 0.6
    assert sum(votes) > upper
    assert sum(votes) / len(votes) < lower


def answers_until_halt(rng: np.random.Generator, first: float, limit: int) -> int:
    """Ask one hidden query, then a split one until the halt; count the answers to the latter."""
    eps, models, alpha = 0.1, 72_000, 0.1
    query_scale, threshold_scale = 6 / (eps * models), 2 / (eps * models)
    mu = float(rng.laplace(scale=threshold_scale))
    between = 0
    for asked in itertools.count():
        vote = first if asked == 0 else 0.5
        noisy = vote + float(rng.laplace(scale=query_scale))
        if 0.5 - alpha + mu <= noisy <= 0.5 + alpha - mu:
            between += 1
            mu = float(rng.laplace(scale=threshold_scale))
            if between == limit:
                return asked
    raise AssertionError


def test_bbl_halting_counter_reveals_a_query() -> None:
    """The halt comes one answer earlier after a split query (false-alarm rate below 1e-20)."""
    limit, runs = 20, 200
    gap, models, eps = 0.2, 72_000, 0.1
    assert gap >= 12 / (eps * models) * (math.log(10 / eps) + math.log(1e6) + 1)
    # A split vote misses "between" only if one of the noises exceeds alpha/2 = 0.05.
    miss = math.exp(-0.05 * eps * models / 6) + math.exp(-0.05 * eps * models / 2)
    assert 2 * runs * (limit + 1) * miss < 1e-20
    rng = np.random.default_rng(20231)
    split = {answers_until_halt(rng, 0.5, limit) for _ in range(runs)}
    unanimous = {answers_until_halt(rng, 1.0, limit) for _ in range(runs)}
    assert split == {limit - 1}
    assert unanimous == {limit}


def test_bbl_halting_counter_with_integer_noise() -> None:
    """The mechanism that GenericBBL runs tells the same (false-alarm rate below 1e-20)."""
    models, eps, limit, runs = 72_000, 0.1, 20, 10
    lower, upper = 2 * models // 5, 3 * models // 5
    assert upper - lower >= least_gap(eps, 1e-6)
    # Half of the gap is 7,200; the noises have rates eps/2 and eps/6.
    miss = 2 * math.exp(-3600 * eps / 6) + 2 * math.exp(-3600 * eps / 2)
    assert 2 * runs * (limit + 1) * miss < 1e-20
    for hidden, further in ((models // 2, limit - 1), (models, limit)):
        for _ in range(runs):
            votes = BetweenThresholds(lower, upper, eps, 1e-6, limit)
            votes.ask([hidden])
            assert len(votes.ask([models // 2] * (2 * limit))) == further
            assert votes.remaining == 0


def test_hypothesis_learner_needs_a_multiset() -> None:
    """With L_x a set the error exceeds 8 alpha nearly surely; with a multiset its mean is alpha."""
    domain, beta, blocks = 1000, 1e-6, 100
    alpha = Fraction(1, blocks)  # h_r errs exactly on block r mod 100 of ten points
    rounds = math.floor(domain * math.log(domain) * math.log(1 / beta))
    rounds -= rounds % blocks
    wrong_rounds = rounds // blocks
    touched = 1 - (1 - 1 / domain) ** wrong_rounds
    # A touched point errs with chance at least 1/2, and touches are not positively correlated.
    mean = domain * touched / 2
    bar = domain * 8 * float(alpha)
    assert mean > bar
    assert mean / (mean - bar) ** 2 < 0.01  # Chebyshev: chance of error <= 8 alpha
    # A uniform member of the multiset is a uniform round among those that picked x.
    assert Fraction(wrong_rounds, rounds) == alpha


def test_hypothesis_learner_round_count() -> None:
    """The printed R does not make |X| exp(-R/|X|) equal beta and is too small for |X| = 2."""

    def missing(domain: int, rounds: float) -> float:
        return domain * math.exp(-rounds / domain)

    beta = 1 / 8
    for domain in (2, 10, 1000):
        printed = domain * math.log(domain) * math.log(1 / beta)
        right = domain * math.log(domain / beta)
        assert missing(domain, printed) != pytest.approx(beta, rel=0.1)
        assert missing(domain, right) == pytest.approx(beta)
    draws = math.floor(2 * math.log(2) * math.log(8)) + 1
    assert 2 * 0.5**draws > beta


def test_claim_b_2_does_not_follow() -> None:
    """Independent hypotheses that are bad with chance 0.37 < 3/8 break the 24 alpha bound."""
    bad, alpha, region = 0.37, 0.01, 0.30
    for beta in (1 / 8, 1e-3):
        rounds = math.ceil(104 * math.log(1 / beta))
        assert float(binom.sf(math.ceil(7 * rounds / 8) - 1, rounds, 1 - bad)) < 1 - beta
        # Good ones err on a random 8 alpha of the region, bad ones everywhere.
        wrong = bad + (1 - bad) * 8 * alpha / region
        mean = region * float(binom.sf(rounds // 2, rounds, wrong))
        assert (mean - 24 * alpha) / (region - 24 * alpha) > beta
    good = 0.55
    divergence = good * math.log(good / 0.625) + (1 - good) * math.log((1 - good) / 0.375)
    assert 104 * divergence >= 1  # at least 0.55 R good ones, except with chance beta
    assert 8 * good / (good - 0.5) == pytest.approx(88)


def test_claim_d_3_constant() -> None:
    """Sixteen hypotheses, one of them bad, put 15 alpha and not 8 alpha of the mass at 7/8."""
    alpha = Fraction(1, 100)
    wrong = [Fraction(1)] + [alpha] * 15  # good ones err on disjoint regions
    mass = sum(wrong[1:], Fraction(0))
    assert Fraction(16 - 2, 16) <= Fraction(7, 8)
    assert mass == 15 * alpha > 8 * alpha


def test_claim_d_5_needs_a_shared_event() -> None:
    """A training failure of chance alpha hits all queries at once, so beta cannot bound it."""
    alpha, beta, rounds = 1 / 128, 1e-6, 100_000
    needed = 3 * math.log(1 / beta) / alpha
    assert rounds >= needed
    limit = math.floor(64 * alpha * rounds)

    def passed(per_query: float) -> float:
        return float(binom.sf(limit, rounds, per_query))

    assert passed(32 * alpha) <= beta  # independent queries: the claim's case
    # With chance alpha every query is "between", otherwise none is.
    shared = alpha * passed(1.0) + (1 - alpha) * passed(0.0)
    assert alpha <= 32 * alpha  # chance of "between" for a single query
    assert shared > beta
    trained_better = beta / 2 * passed(1.0) + (1 - beta / 2) * passed(15 * alpha + alpha)
    assert trained_better <= beta


def test_claim_e_6_lost_delta() -> None:
    """The printed delta is a constant of about 0.29; only with its delta is it below delta."""
    eps, delta = 1.0, 1e-6
    printed = 16 * math.e * eps / (3 + math.exp(eps + 4))
    assert printed > delta
    for x in np.linspace(0.01, 50, 500):
        assert 16 * math.e * x / (3 + math.exp(x + 4)) * delta <= delta


# Paper 3


def test_agprivcl_sampling_rate() -> None:
    """The rate eps/56 misses paper 1's claim, but the tight bound covers it: no erratum."""
    assert 3 + math.exp(4) > 56
    for eps in np.linspace(0.001, 1.0, 200):
        assert tight_subsampling(float(eps) / 56, 4.0) <= eps
        assert float(eps) / 56 * 4 * math.e <= 1
    assert tight_subsampling(1 / 56, 4.0) == pytest.approx(0.671, abs=1e-3)


def test_agprivcl_unstable_queries() -> None:
    """Models of error alpha/12 can leave more queries unstable than the printed T allows."""
    alpha, beta, m = 0.1, 0.1, 100_000
    spread = math.log(m / beta)
    printed = m * alpha / 8 + math.sqrt(3 * m * alpha * spread) / 4
    right = m * alpha / 4 + math.sqrt(3 * m * alpha * spread / 8)
    for error, total in ((alpha / 24, printed), (alpha / 12, right)):
        assert total == pytest.approx(3 * (error * m + math.sqrt(error * m * spread / 2)))
    # Half of the models are wrong on a share alpha/6 of the queries, none elsewhere.
    assert binom.sf(math.floor(printed), m, alpha / 6) > 0.999
    # A third of the models must be wrong where the others do not win clearly: 3 alpha/12 at most.
    assert binom.sf(math.floor(right), m, alpha / 4) < beta


def test_agprivcl_rows_per_shard() -> None:
    """With the k of Algorithm 5 the printed n' gives shards too few rows for Theorem B.4."""
    alpha, beta, delta, m, vc = 0.1, 0.1, 1e-6, 1000, 1
    once = min(1.0, alpha * max(1.0, math.sqrt(m * alpha)))
    repeats = math.log(2 / delta)
    eps, small = once / repeats, delta / (2 * math.exp(once) * repeats)
    unstable = m * alpha / 8 + math.sqrt(3 * m * alpha * math.log(m / beta)) / 4
    scale = math.sqrt(32 * unstable * math.log(2 / small)) / eps
    k = 34 * math.sqrt(2) * scale * math.log(4 * m * unstable / min(small, beta / 2))
    rows = 8000 * (vc * math.log(1 / alpha) + math.log(m / beta)) * repeats**1.5
    rows *= math.log(m * alpha / min(delta, beta / 2)) / alpha**2
    rows *= max(1.0, math.sqrt(m) * alpha**1.5)
    wanted = 8 * 24 / alpha * (vc * math.log(16 * 24 / alpha) + math.log(2 * 16 * k / beta))
    assert 10 < wanted / (rows / k) < 25


def test_agprivcl_repeat_bound() -> None:
    """An index repeats more than log(2/delta) times with chance above delta/2 for large delta."""
    n = 10**6

    def tail(delta: float, log: Log) -> float:
        return float(binom.sf(math.floor(log(2 / delta)), n, 1 / n))

    for delta in (0.1, 0.3, 0.5):
        assert tail(delta, math.log) > delta / 2
    assert tail(0.51, math.log2) > 0.51 / 2
    for delta in np.geomspace(1e-12, 0.0366, 400):
        assert tail(float(delta), math.log) <= delta / 2


def test_vote_gap_sensitivity() -> None:
    """The gap of the votes moves by 2 and is no distance to instability; the halved one is."""
    moved_gap = moved_distance = 0
    flip_at_gap_two = False

    def gap(k: int, ones: int) -> int:
        return abs(2 * ones - k)

    def distance(k: int, ones: int) -> int:
        return max(0, (gap(k, ones) + 1) // 2 - 1)

    def majority(k: int, ones: int, tie: int) -> int:
        return tie if 2 * ones == k else int(2 * ones > k)

    for k in range(1, 13):
        for ones in range(k):
            moved_gap = max(moved_gap, abs(gap(k, ones) - gap(k, ones + 1)))
            moved_distance = max(moved_distance, abs(distance(k, ones) - distance(k, ones + 1)))
            for tie in (0, 1):
                if majority(k, ones, tie) != majority(k, ones + 1, tie):
                    assert distance(k, ones) == distance(k, ones + 1) == 0
                    flip_at_gap_two |= 2 in (gap(k, ones), gap(k, ones + 1))
    assert moved_gap == 2
    assert flip_at_gap_two
    assert moved_distance == 1


@pytest.mark.parametrize(("sensitivity", "low", "high"), [(1, 0.50, 0.52), (2, 1.03, 1.04)])
def test_subsamp_noise_with_gap_sensitivity(sensitivity: int, low: float, high: float) -> None:
    """Advanced composition of the printed noise passes 1 at epsilon 1 for sensitivity 2."""
    eps, delta, cutoff = 1.0, 1e-6, 100
    scale = math.sqrt(32 * cutoff * math.log(2 / delta)) / eps
    step = sensitivity / scale + 2 * sensitivity / (2 * scale)
    total = math.sqrt(2 * cutoff * math.log(2 / delta)) * step + cutoff * step * math.expm1(step)
    assert low < total < high


def test_agnostic_query_count_is_too_small() -> None:
    """With coin-flip labels all predictors fail Theorem 7 at its m; order 1/alpha^2 works."""
    alpha, beta, gamma = 1e-3, 0.1, 0.5

    def failure(m: int) -> float:
        return float(binom.sf(math.floor((alpha + gamma) * m), m, gamma))

    printed = math.ceil(8 * math.log(1 / (alpha * beta)) / alpha)
    assert failure(printed) > 2 * beta
    assert failure(math.ceil(math.log(1 / beta) / (2 * alpha**2))) <= beta


def test_sspp_alone_can_spend_all_of_epsilon() -> None:
    """The exponential mechanism of SSPP reaches epsilon, so another release has to be added."""
    eps = 1.0

    def choose_first(margin: int) -> float:
        return 1 / (1 + math.exp(-eps * margin / 2))

    spent = math.log(choose_first(-40) / choose_first(-42))
    assert spent <= eps
    assert spent > eps - 1e-6


def test_lemma_4_misses_the_best_error() -> None:
    """Algorithm 5 has as many shards as the root of T tells, so T's gamma is in the size, too."""
    queries, alpha, gamma = 10**6, 1e-3, 0.249
    shards = [
        shards_for(queries, round(queries * error), 0.5, 1e-6, 0.1) for error in (alpha, 0.25)
    ]
    assert gamma + alpha == 0.25
    assert shards[1] / shards[0] > math.sqrt((alpha + gamma) / alpha)


def test_theorem_11_misses_beta() -> None:
    alpha, vc = 0.1, 1
    printed = max(1.0, math.sqrt(vc * math.log(1 / alpha)) * alpha)
    assert printed == 1
    used = [math.sqrt(first_queries(alpha, beta, vc)) * alpha**1.5 for beta in (0.1, 1e-300)]
    assert used[1] / used[0] > 10  # the printed factor stays 1


# Paper 4


def test_private_sample_generator_can_run_short() -> None:
    """With n_priv = 10 n_pub the loop ends early with chance above 0.08, not below 0.01."""
    public = 50
    private = 10 * public
    rows = math.ceil(private / (10 * public))
    p = 1 / (100 * public)
    # The sample is used up before the last pass.
    short = float(binom.sf(rows - 1, private - 1, p))
    assert short > 0.08
    many = 1000 * public
    rows = math.ceil(many / (10 * public))
    assert 0 < float(binom.sf(rows - 1, many - 1, p)) < 0.01


def test_claim_4_6_failure_probabilities() -> None:
    """The failure probabilities of Claim 4.6 add up to more than 1/16."""
    swap, premise, goal = Fraction(1, 100), Fraction(1, 18), Fraction(1, 16)
    assert Fraction(1, 17) + swap > goal
    assert premise + swap > goal
    public = 1000
    assert premise + Fraction(1) - (1 - Fraction(1, 100 * public)) ** public > goal
    # A learner with failure 1/25, or p = 1/(1000 n_pub) with n_priv large, leaves room.
    assert Fraction(1, 25) + 2 * swap <= goal
    assert premise + Fraction(1, 1000) + Fraction(1, 200) <= goal


def test_claim_10_does_not_follow() -> None:
    """The printed size leaves the proof's bound above beta, except for small alpha."""

    def printed(alpha: float, beta: float, d: int) -> float:
        return 50 * (d * math.log(1 / alpha) + math.log(1 / beta)) / alpha**2

    def log_bound(n: float, alpha: float, d: int) -> float:
        return math.log(2) + 2 * d * math.log(math.e * n / d) - n * alpha**2 / 8

    assert log_bound(printed(0.1, 0.5, 1), 0.1, 1) > math.log(20)
    assert log_bound(printed(0.01, 0.5, 1_000), 0.01, 1_000) > 1_000
    for d in (1, 10, 1_000):
        for beta in (0.5, 0.05, 1e-6):
            assert log_bound(printed(0.001, beta, d), 0.001, d) <= math.log(beta)
    for alpha, beta, d in itertools.product((0.3, 0.1, 0.001), (0.5, 0.05), (1, 10)):
        n = disagreement_rows(alpha, beta, d)
        assert n >= printed(alpha, beta, d)
        assert math.log(4) + 2 * d * math.log(2 * math.e * n / d) - n * alpha**2 / 8 <= math.log(
            beta
        )
