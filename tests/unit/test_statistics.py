"""The statistical helpers reject what is wrong, and the suite keeps within its false-alarm rate."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests import statistics
from tests.statistics import (
    MAX_CHECKS,
    SUITE_RATE,
    alarm_rate,
    binomial_rejects,
    chi_square_rejects,
    two_sample_rejects,
)

TESTS = Path(__file__).parents[1]
HELPERS = {"audited", "binomial_rejects", "chi_square_rejects", "two_sample_rejects"}


def declared_checks(source: str) -> int:
    """Add up the ``checks=`` of all calls of the helpers; a call without one counts once."""
    total = 0
    tree = ast.parse(source)
    negated = {id(node.operand) for node in ast.walk(tree) if isinstance(node, ast.UnaryOp)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func
        name = name.id if isinstance(name, ast.Name) else name
        if name not in HELPERS:
            continue
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if not {"rate", None}.isdisjoint(keywords):
            raise ValueError(f"line {node.lineno}: the rate is owned by tests/statistics.py")
        checks = ast.literal_eval(keywords["checks"]) if "checks" in keywords else 1
        if checks == 0 and id(node) in negated:
            raise ValueError(f"line {node.lineno}: checks=0 is for calls that must reject")
        total += checks
    return total


def test_the_suite_declares_no_more_checks_than_its_rate_pays_for() -> None:
    sources = [path for path in TESTS.rglob("*.py") if path != Path(__file__)]
    total = sum(declared_checks(path.read_text(encoding="utf-8")) for path in sources)
    assert total <= MAX_CHECKS
    assert total * alarm_rate() <= SUITE_RATE


def test_declared_checks_are_added_up() -> None:
    assert declared_checks("assert not binomial_rejects(1, 2, 0.5)") == 1
    assert declared_checks("x = statistics.two_sample_rejects(a, b, checks=7)") == 7
    assert declared_checks("assert chi_square_rejects(c, p, checks=0)") == 0
    assert declared_checks("other(binomial_rejects(1, 2, 0.5), checks=9)") == 1


@pytest.mark.parametrize(
    "source",
    [
        "binomial_rejects(1, 2, 0.5, rate=0.5)",
        "binomial_rejects(1, 2, 0.5, **options)",
        "assert not binomial_rejects(1, 2, 0.5, checks=0)",
        "binomial_rejects(1, 2, 0.5, checks=count)",
    ],
)
def test_declarations_that_would_hide_checks_are_refused(source: str) -> None:
    with pytest.raises(ValueError, match=r"line 1|malformed"):
        declared_checks(source)


def test_running_more_often_than_declared_is_an_error() -> None:
    def repeat(times: int) -> None:
        for _ in range(times):
            binomial_rejects(5, 10, 0.5, checks=3)

    repeat(3)
    with pytest.raises(RuntimeError, match="checks=3"):
        repeat(1)


def test_binomial_critical_values_are_exact() -> None:
    """On every outcome of a small experiment: total probability of rejection at most the rate."""
    for p in (0.0, 0.01, 0.3, 0.5, 1.0):
        rejected = [k for k in range(41) if binomial_rejects(k, 40, p, rate=0.05, checks=1000)]
        assert sum(stats.binom.pmf(k, 40, p) for k in rejected) <= 0.05
    assert rejected == list(range(40))


def test_chain_critical_values_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enumerate all outcomes of a small multinomial and a small two-sample experiment."""
    monkeypatch.setattr(statistics, "SMALLEST_CELL", 1)
    p = np.array([0.5, 0.3, 0.2])
    alarm = 0.0
    for first in range(31):
        for second in range(31 - first):
            counts = [first, second, 30 - first - second]
            if chi_square_rejects(counts, p, rate=0.1, checks=496):
                alarm += stats.multinomial.pmf(counts, 30, p)
    assert 0.01 < alarm <= 0.1

    alarm = 0.0
    for a in range(61):
        if two_sample_rejects([a, 60 - a], [80 - a, a], rate=0.1, checks=61):
            alarm += stats.hypergeom.pmf(a, 140, 80, 60)
    assert 0.01 < alarm <= 0.1


def test_simulated_false_alarms_stay_below_a_large_rate() -> None:
    """With many unpooled cells, at a rate that a simulation can see."""
    generator = np.random.default_rng(1)
    p = np.full(8, 1 / 8)
    samples = generator.multinomial(400, p, size=(2, 400))
    one = sum(chi_square_rejects(s, p, rate=0.2, checks=400) for s in samples[0])
    two = sum(
        two_sample_rejects(a, b, rate=0.2, checks=400)
        for a, b in zip(samples[0], samples[1], strict=True)
    )
    assert 0 < one < 110  # 80 expected at most; 110 is 3.75 standard deviations more
    assert 0 < two < 110


def test_planted_wrong_distributions_are_rejected() -> None:
    generator = np.random.default_rng(2)
    p = stats.poisson.pmf(np.arange(30), 8)
    p[-1] += 1 - p.sum()
    right = generator.multinomial(100_000, p)
    wrong_p = stats.poisson.pmf(np.arange(30), 8.2)
    wrong_p[-1] += 1 - wrong_p.sum()
    wrong = generator.multinomial(100_000, wrong_p)
    assert not chi_square_rejects(right, p)
    assert chi_square_rejects(wrong, p)
    assert chi_square_rejects(wrong[::-1], p[::-1])
    assert not two_sample_rejects(right, generator.multinomial(50_000, p))
    assert two_sample_rejects(right, wrong)
    assert not binomial_rejects(50_500, 100_000, 0.5)
    assert binomial_rejects(51_000, 100_000, 0.5)
    assert binomial_rejects(49_000, 100_000, 0.5)


def test_an_impossible_cell_is_rejected_whatever_its_neighbours() -> None:
    assert chi_square_rejects([500, 1, 499], [0.5, 0, 0.5])


def test_extreme_counts_do_not_warn() -> None:
    assert chi_square_rejects([1_000_000, 0], [0.5, 0.5])
    assert two_sample_rejects([100_000, 0], [0, 100_000])


@pytest.mark.parametrize(
    ("counts", "p"),
    [
        ([500, 500], [0.5, 0.4]),
        ([500, 500], [0.5, 0.25, 0.25]),
        ([500, 500], [1.5, -0.5]),
        ([500, -1], [0.5, 0.5]),
        ([500, 0.5], [0.5, 0.5]),
        ([500], [1.0]),
        ([3, 2], [0.5, 0.5]),
    ],
)
def test_malformed_input_raises(counts: list[float], p: list[float]) -> None:
    with pytest.raises(ValueError, match=r"want|too few"):
        chi_square_rejects(counts, p, checks=7)


def test_malformed_samples_raise() -> None:
    with pytest.raises(ValueError, match="want"):
        binomial_rejects(3, 2, 0.5)
    with pytest.raises(ValueError, match="same cells"):
        two_sample_rejects([1, 2], [1, 2, 3])


def test_pooling_keeps_every_count() -> None:
    starts = statistics._pool(np.array([30.0, 10, 10, 10, 1, 40, 3]))
    assert starts.tolist() == [0, 1, 4]
