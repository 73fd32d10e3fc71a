"""What runs is what is paid for: the draws of a fit, and the rows that each of them sees."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from cumae.concepts import Thresholds, TreeCuts, Trees
from cumae.learners import (
    GenericLearner,
    LabelBoost,
    OneVsRest,
    PrivateBooster,
    PrivateKernelClassifier,
    PrivateLearner,
    PrivateLogisticRegression,
    SemiPrivateLearner,
)
from cumae.learners.kernel import sums
from cumae.privacy import DiscreteGaussianVectors
from cumae.randomness import discrete_gaussian
from cumae.sanitizers import Quantiles, Ranges
from tests.plants import noise_of_a_known_seed, ranges_are_drawn_twice

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")
UNIT = [(0, 1), (0, 1)]


class Recorder:
    """Records the epsilon of each draw, and the first column of the rows that it sees."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.draws: list[tuple[float, set[float]]] = []
        self.sanitized: list[tuple[float, set[float]]] = []
        self.started: list[set[float]] = []
        draws, sanitized, started = self.draws, self.sanitized, self.started
        choose, trees = Thresholds.choose, Trees.choose
        sanitize, fit = Quantiles.sanitize, PrivateLogisticRegression.fit_part
        binned: dict[int, Any] = {}

        def of(X: Any) -> set[float]:
            table = binned.get(id(X), X)
            return set(np.asarray(table, dtype=float).reshape(len(table), -1)[:, 0].tolist())

        def chosen(self: Any, points: Any, X: Any, y: Any, epsilon: float, **more: Any) -> Any:
            draws.append((epsilon, of(X)))
            return (trees if isinstance(self, Trees) else choose)(
                self, points, X, y, epsilon, **more
            )

        def cleaned(self: Any, X: Any) -> Any:
            sanitized.append((self.epsilon, of(X)))
            return sanitize(self, X)

        def first(self: Any, rows: Any, *more: Any) -> None:
            started.append(of(rows.X))
            fit(self, rows, *more)

        def bins(self: Any, X: Any) -> Any:
            made = plain_bin(self, X)
            binned[id(made)] = np.array(X)
            kept.append(made)  # so that no other object gets its id
            return made

        kept: list[Any] = []
        plain_bin = TreeCuts.bin
        monkeypatch.setattr(Thresholds, "choose", chosen)
        monkeypatch.setattr(Trees, "choose", chosen)
        monkeypatch.setattr(Quantiles, "sanitize", cleaned)
        monkeypatch.setattr(PrivateLogisticRegression, "fit_part", first)
        monkeypatch.setattr(TreeCuts, "bin", bins)


def rows(count: int) -> tuple[Any, Any]:
    """Rows whose first column tells them apart."""
    X = np.column_stack([np.arange(count) / count, np.random.default_rng(1).random(count)])
    return X, (X[:, 1] > 0.4).astype(int)


@pytest.mark.claim("GENERIC")
def test_the_parts_of_generic_learning_see_their_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Recorder(monkeypatch)
    X, y = rows(2000)
    labels = np.where(np.arange(2000) % 4 == 0, y, -1)
    GenericLearner(epsilon=0.7, columns=[(0, 1), (0, 1)]).fit(X, labels)
    ((paid, free),) = watch.sanitized
    ((drawn, seen),) = watch.draws
    assert paid == drawn == 0.7
    assert seen <= set(X[labels >= 0, 0].tolist())
    assert free == set(X[labels < 0, 0].tolist())


@pytest.mark.claim("KLNRS")
@pytest.mark.claim("SSPP")
@pytest.mark.parametrize("learner", [PrivateLearner, SemiPrivateLearner])
def test_one_draw_at_the_epsilon_asked_for(learner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Recorder(monkeypatch)
    X, y = rows(300)
    learner(Thresholds(), epsilon=0.3).fit(X[:, :1], y, X[:50, :1])
    assert [epsilon for epsilon, _ in watch.draws] == [0.3]


@pytest.mark.claim("BOOST")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("public", [True, False])
def test_each_row_of_a_booster_is_seen_once_and_at_one_price(
    delta: float, public: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Recorder(monkeypatch)
    X, y = rows(20_000)
    model = PrivateBooster(0.9, delta, n_rounds=4, columns=[(0, 1), (0, 1)])
    model.fit(X, y, X[:200] + 2.0 if public else None)
    assert [epsilon for epsilon, _ in watch.draws] == [0.9] * 4
    parts = [seen for _, seen in watch.draws] + watch.started
    if not public and not watch.started:
        ((paid, free),) = watch.sanitized
        assert paid == 0.9
        parts.append(free)
    assert len(watch.started) == (1 if delta else 0)
    # Quantiles inside of the start see the rows of the start: its own plan pays for them.
    assert sum(map(len, parts)) == len(set().union(*parts)) > 1000


@pytest.mark.claim("KERNEL")
@pytest.mark.parametrize(("public", "count"), [(True, 500), (False, 100), (False, 30_000)])
def test_the_regression_draws_the_noise_that_its_cost_is_computed_from(
    public: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[float, int]] = []

    def noise(scale: float, size: int, source: Any) -> Any:
        drawn.append((scale, size))
        return discrete_gaussian(scale, size, source)

    monkeypatch.setattr(sums, "discrete_gaussian", noise)
    X, y = rows(count)
    model = PrivateLogisticRegression(1.0, 1e-6, bounds=[(0, 1), (0, 1)])
    model.fit(X, y, X[:200] if public else None)
    # Counts of fractions, two counts and the products of made-up rows, then sums of residuals. In
    # numbers: two columns, in two bins each, of 2^12; squared lengths of 1.5 for a column, of 64^2;
    # 2^11 times 2^10. With few rows one count has to do.
    made = [4_096 * math.sqrt(2), 8_192.0, 8_192.0, 12_288 * math.sqrt(2)]
    moves = [] if public else made if count == 30_000 else made[1:2]
    steps = 8 if count == 30_000 else 4
    assert len(drawn) == len(moves) + steps
    moves = moves + [4_194_304.0] * steps
    mu = math.sqrt(sum((m / scale) ** 2 for m, (scale, _) in zip(moves, drawn, strict=True)))
    places = sum(size for _, size in drawn)
    least = min(scale for scale, _ in drawn)
    ran = DiscreteGaussianVectors(mu, places, least)
    # The plan pays for the most places that there can be, which adds hardly anything.
    assert model.guarantee_.epsilon == pytest.approx(ran.epsilon(1e-6), rel=3e-5)
    assert model.guarantee_.epsilon >= ran.epsilon(1e-6) * (1 - 1e-9)


@pytest.mark.claim("ITER")
def test_label_boosting_draws_at_the_epsilons_of_its_schedule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = Recorder(monkeypatch)
    X, y = rows(4000)
    labels = np.where(np.arange(4000) < 1500, y, -1)
    base = PrivateLearner(Thresholds(), epsilon=0.5, columns=[(0, 1)])
    learner = LabelBoost(base, Thresholds(), epsilon=2.0, epsilon_boost=0.8)
    learner.fit(X[:, 1:], labels)
    assert [epsilon for epsilon, _ in watch.draws] == [0.8, 0.5]


# Undeclared ranges


class RangesWatched:
    """Records the epsilon and the width of each look for ranges, and all Gaussian noise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks: list[tuple[float, int]] = []
        self.noise: list[tuple[float, int]] = []
        looks, drawn, find = self.looks, self.noise, Ranges.find
        by_counts = Ranges.find_by_counts

        def found(self: Ranges, X: Any) -> Any:
            looks.append((self.epsilon, np.shape(X)[1]))
            return find(self, X)

        def found_by_counts(self: Ranges, counts: Any) -> Any:
            looks.append((self.epsilon, len(counts)))
            return by_counts(self, counts)

        def noise(scale: float, size: int, source: Any) -> Any:
            drawn.append((scale, size))
            return discrete_gaussian(scale, size, source)

        monkeypatch.setattr(Ranges, "find", found)
        monkeypatch.setattr(Ranges, "find_by_counts", found_by_counts)
        monkeypatch.setattr(sums, "discrete_gaussian", noise)


def regression_pays_for_its_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the guarantee with all looks and all noise that were really drawn."""
    watch = RangesWatched(monkeypatch)
    X, y = rows(3_000)
    model = PrivateLogisticRegression(1.0, 1e-6).fit(X, y, None)
    moves = [8_192.0] * 2 + [12_288 * math.sqrt(2)] if len(watch.noise) == 12 else []
    moves = [4_096 * math.sqrt(2), *moves]  # of fractions in two columns
    moves += [4_194_304.0] * (len(watch.noise) - len(moves))
    squares = [(m / scale) ** 2 for m, (scale, _) in zip(moves, watch.noise, strict=True)]
    places, least = sum(size for _, size in watch.noise), min(scale for scale, _ in watch.noise)
    ran: Any = DiscreteGaussianVectors(math.sqrt(sum(squares)), places, least)
    for epsilon, width in watch.looks:
        assert width == 2
        ran = ran + Ranges(epsilon, width).cost
    assert watch.looks
    assert ran.delta(model.guarantee_.epsilon) <= 1e-6


def booster_pays_for_its_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = RangesWatched(monkeypatch)
    X, y = rows(3_000)
    learner = PrivateBooster(1.0, 1e-6, n_rounds=1, start=None)
    told = learner.plan(3_000, 2).facts
    learner.fit(X, y)
    assert watch.looks == [(told["range_epsilon"], 2)]


def learner_of_one_column_pays_for_its_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two looks and a draw add up to the epsilon that was asked for."""
    watch, ranges = Recorder(monkeypatch), RangesWatched(monkeypatch)
    X, y = rows(3_000)
    PrivateLearner(Thresholds(), epsilon=1.0, columns=[float]).fit(X[:, 1:], y)
    looks = sum(epsilon for epsilon, _ in ranges.looks)
    # The first look is made of quartiles, which are watched, too; the second one is quartiles.
    second = sum(epsilon for epsilon, _ in watch.sanitized) - looks
    drawn = sum(epsilon for epsilon, _ in watch.draws)
    assert looks == pytest.approx(0.25)
    assert looks + second + drawn == pytest.approx(1.0)


PAID = [
    regression_pays_for_its_ranges,
    booster_pays_for_its_ranges,
    learner_of_one_column_pays_for_its_ranges,
]


@pytest.mark.claim("RANGES")
@pytest.mark.parametrize("check", PAID)
def test_ranges_are_looked_for_as_often_as_is_paid_for(
    check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(monkeypatch)


@pytest.mark.claim("RANGES")
def test_planted_second_looks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges_are_drawn_twice(monkeypatch)
    for check in PAID[:2]:
        with pytest.raises(AssertionError):
            check(monkeypatch)


# Two fits


MODELS: dict[str, Any] = {
    "regression": lambda: PrivateLogisticRegression(1.0, 1e-6, columns=UNIT),
    "kernel": lambda: PrivateKernelClassifier(1.0, 1e-6, n_waves=0, columns=UNIT),
    "booster": lambda: PrivateBooster(0.01, columns=UNIT, n_rounds=3),
    "booster, start": lambda: PrivateBooster(1.0, 1e-6, columns=UNIT),
    "one tree": lambda: PrivateLearner(epsilon=0.01, columns=UNIT),
    "semi-private": lambda: SemiPrivateLearner(epsilon=0.01, columns=UNIT),
    "classes": lambda: OneVsRest(PrivateLearner(columns=UNIT), [0, 1], 0.01),
}


def two_fits_differ(name: str) -> None:
    """Fit twice with the coins of the operating system.

    Of trees there are more than 10^4 candidates, each about as likely as all others at this
    epsilon: three trees are the same ones by chance in less than one of 10^12 runs. One tree is
    fitted four times.
    """
    X, y = rows(2_000)
    shown = X[:100]
    found = {json.dumps(MODELS[name]().fit(X, y, shown).to_dict()) for _ in range(4)}
    assert len(found) > 1


@pytest.mark.system_coins
@pytest.mark.claim("RAND")
@pytest.mark.parametrize("name", MODELS)
def test_two_fits_to_the_same_rows_differ(name: str) -> None:
    two_fits_differ(name)


@pytest.mark.system_coins
@pytest.mark.claim("RAND")
@pytest.mark.parametrize("name", ["regression", "kernel"])
def test_planted_noise_of_a_known_seed_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noise_of_a_known_seed(monkeypatch)
    with pytest.raises(AssertionError):
        two_fits_differ(name)
