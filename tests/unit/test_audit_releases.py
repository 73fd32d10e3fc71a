"""Attacks on releases keep quiet about right code, catch planted bugs, and say what they could."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from joblib.externals.loky.backend.reduction import dumps

from cumae.audit import Attack, Audit, Claimed, Game, audit
from cumae.audit.attacks import evaluation, releases
from cumae.audit.bounds import Chances, at_least, at_most
from cumae.audit.catalogue import SOURCES, first_attack
from cumae.audit.results import MEASURES, RELEASES, error_of
from cumae.audit.runs import NotWorthPlaying, least_to_tell
from cumae.errors import InvalidParameter
from cumae.randomness import SYSTEM, integers, weighted_choice
from tests.statistics import audited

pytestmark = [
    pytest.mark.claim("AUDIT"),
    pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows"),
]
# Runs of each, and the epsilon at which so few of them show a planted bug.
TARGETS = {
    "PrivateKernelClassifier": (8_000, 8.0),
    "PrivateLogisticRegression": (4_000, 4.0),
    "EverlastingPredictor": (4_000, 4.0),
    "QueryRelease": (4_000, 4.0),
    "Evaluation": (4_000, 1.0),
    "PrivateBooster": (3_200, 2.0),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", TARGETS)
def test_releases_keep_what_they_claim(name: str) -> None:
    """Rejects correct code with probability ``alarm_rate()`` at most, for each release."""
    runs, epsilon = TARGETS[name]
    attack = first_attack(name, epsilon)
    assert attack.level == RELEASES
    assert attack.not_covered
    assert not audited(attack, runs=runs, checks=6).broken


@pytest.mark.statistical
@pytest.mark.parametrize("name", TARGETS)
def test_planted_bugs_in_releases_are_caught(name: str) -> None:
    """Half the noise, an exponent without its half, a replaced row that counts once."""
    runs, epsilon = TARGETS[name]
    plant = first_attack(name, epsilon).on_plant
    assert plant is not None
    found = audit(plant, runs=runs, progress=False)
    assert (found.caught, found.broken, found.verdict) == (True, False, "caught")


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["PrivateKernelClassifier", "EverlastingPredictor"])
def test_attacks_on_gaussian_releases_are_tight(name: str) -> None:
    """They show two thirds of mu; the bound of 8,000 counted runs is nearly 0.9 of it.

    Its error is about 0.02 of mu.
    """
    found = audited(first_attack(name, 16.0), runs=16_000, checks=2)
    assert not found.broken
    assert found.claimed.mu is not None
    assert found.mu > 0.67 * found.claimed.mu
    assert 0.6 * found.claimed.epsilon < found.as_epsilon <= found.claimed.epsilon * 1.01


def test_a_first_sum_is_that_of_the_fit() -> None:
    """A replaced row moves it by nearly all that is paid for, and other coins leave it."""
    attack = releases.first_sum(1.0, 1e-6)
    sums = []
    for world in (0, 1, 1):
        game = Game(attack.make(), world, 3)
        assert np.shape(attack.play(game)) == (3,)
        sums.append(np.frombuffer(game.before, dtype=np.int64))
    assert np.array_equal(sums[1], sums[2])
    moved = float(np.linalg.norm(sums[1] - sums[0]))
    assert 0.95 * 2**22 < moved <= 2**22


@pytest.mark.parametrize("name", TARGETS)
def test_attacks_can_be_sent_to_other_processes(name: str) -> None:
    attack = first_attack(name)
    for one in (attack, attack.on_plant):
        again = pickle.loads(dumps(one))  # noqa: S301
        assert np.isfinite(again.play(Game(again.make(), 1, 5))).all()


def test_every_target_has_a_bug_to_plant() -> None:
    """Where an attack brings none, what it attacks spends twice what it claims."""
    for name in ("OneVsRest", "Quantiles", "ExponentialMechanism"):
        attack = first_attack(name, 1.0)
        assert attack.planted.startswith("spending twice")
        assert attack.plant is not None
    assert set(TARGETS) <= set(SOURCES)


class Response:
    """Randomised response: the true bit with odds of exp(epsilon)."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def train(self, X: Any, y: Any) -> None:
        wrong = weighted_choice([0.0, -self.epsilon], size=1)[0]
        self.said = float(X[0][0]) != wrong

    def ask(self, X: Any) -> list[float]:
        return [float(self.said)] * len(X)

    def published(self) -> None:
        return None


def response(epsilon: float, delta: float) -> Attack:
    def play(game: Game) -> float:
        game.train(([[0.0]], [0]), ([[1.0]], [0]))
        return float(game.ask([[0.0]]).answers[0])

    return Attack("Response, a bit", partial(Response, epsilon), play, Claimed(epsilon, delta))


@pytest.mark.statistical
def test_spending_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Odds of e^2 show an epsilon of 1.7 in 1,000 counted runs, ten errors above a claim of 1."""
    monkeypatch.setitem(SOURCES, "Response", (response,))
    attack = first_attack("Response", 1.0, 0.0)
    assert not audited(attack, runs=2_000).broken
    assert attack.on_plant is not None
    assert audit(attack.on_plant, runs=2_000, progress=False).caught


class Unsteady:
    """Adds noise to something that is not the same whenever it is trained."""

    def train(self, X: Any, y: Any) -> None:
        self.count = integers(1_000, 1, SYSTEM)

    def ask(self, X: Any) -> list[None]:
        return [None] * len(X)

    def published(self) -> None:
        return None

    def before(self) -> Any:
        return self.count

    def releases(self, count: int) -> Any:
        return self.count + integers(9, count, SYSTEM)


def played(game: Game) -> Any:
    game.train(([[0.0]], [0]), ([[1.0]], [0]))
    return game.releases()


def test_a_release_that_is_not_fixed_is_refused() -> None:
    """Runs that share what comes before the noise would not be independent."""
    attack = Attack("a count", Unsteady, played, Claimed(1.0), level=RELEASES)
    with pytest.raises(InvalidParameter, match="not the same in all games"):
        audit(attack, runs=40)


def test_a_strategy_returns_numbers_for_each_run() -> None:
    attack = Attack(
        "a count", Unsteady, lambda game: played(game)[:3], Claimed(1.0), level=RELEASES
    )
    with pytest.raises(InvalidParameter, match="for each run"):
        audit(attack, runs=40)


# What could have been proven


@pytest.mark.parametrize("measure", MEASURES)
def test_what_could_have_been_proven_grows_with_runs_and_is_the_bound_itself(measure: str) -> None:
    """It is what a leak of everything gets, by the bounds that count."""
    found = Audit("a", Claimed(8.0, 1e-6), 0.95, 10, epsilon=0.0, rho=0.0, mu=0.0)
    most = [
        replace(found, runs=runs).could_have_proven(measure) for runs in (10, 100, 1_000, 9_999)
    ]
    assert most == sorted(most)
    assert most[0] < most[-1]
    surer = replace(found, runs=1_000, confidence=0.999).could_have_proven(measure)
    assert surer < most[2]
    error = error_of(0.95)
    leak = Chances(float(at_least(1_000, 1_000, error)), float(at_most(0, 1_000, error)))
    exact = {"epsilon": leak.epsilon(1e-6), "rho": leak.rho(), "mu": leak.mu()}
    assert most[2] == exact[measure]


def test_a_leak_of_everything_is_proven_as_far_as_could_be() -> None:
    class Leak(Unsteady):
        def train(self, X: Any, y: Any) -> None:
            self.count = np.array([int(X[0][0])])

        def releases(self, count: int) -> Any:
            return np.repeat(self.count, count)

    attack = Attack("a leak", Leak, played, Claimed(1.0), level=RELEASES)
    found = audit(attack, runs=400, progress=False)
    for measure in MEASURES:
        assert getattr(found, measure) == pytest.approx(found.could_have_proven(measure))
    assert found.as_epsilon == found.epsilon
    assert "200 runs could have proven 3.72" in str(found)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_fewest_runs_that_tell(epsilon: float) -> None:
    least = least_to_tell(Claimed(epsilon), 0.95)
    found = Audit("a", Claimed(epsilon), 0.95, least // 2, epsilon=0.0, rho=0.0, mu=0.0)
    assert found.could_have_proven("epsilon") > epsilon
    fewer = replace(found, runs=least // 2 - 1)
    assert least == 20 or fewer.could_have_proven("epsilon") <= epsilon
    with pytest.raises(NotWorthPlaying, match=f"{least} runs are the fewest"):
        audit(evaluation.a_test_row(epsilon, 0.0), runs=9_999, seconds=1e-6, least=max(least, 21))
