"""Bounds that the runs of a game prove."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cumae.audit import Attack, Audit, Claimed, Game, audit
from cumae.audit.attacks.everlasting import training_row
from cumae.audit.bounds import Chances, at_least, at_most
from cumae.audit.distinguishers import by_likelihood, by_training
from cumae.errors import InvalidParameter
from cumae.privacy import Guarantee
from cumae.randomness import SYSTEM, discrete_gaussian, integers
from tests.drivers import Recorder
from tests.statistics import audited

# Bounds


@pytest.mark.claim("AUDIT")
@pytest.mark.parametrize(("hits", "runs"), [(0, 10), (3, 10), (10, 10), (170, 400)])
def test_bounds_of_chances_are_those_of_clopper_and_pearson(hits: int, runs: int) -> None:
    both = stats.binomtest(hits, runs).proportion_ci(0.9, method="exact")
    assert math.isclose(float(at_least(hits, runs, 0.05)), both.low, abs_tol=1e-12)
    assert math.isclose(float(at_most(hits, runs, 0.05)), both.high, abs_tol=1e-12)


@pytest.mark.claim("AUDIT")
def test_bounds_of_chances_are_wrong_as_seldom_as_they_say() -> None:
    for chance in (0.01, 0.3, 0.9):
        hits = np.arange(51)
        weight = stats.binom.pmf(hits, 50, chance)
        assert weight[at_least(hits, 50, 0.02) > chance].sum() <= 0.02
        assert weight[at_most(hits, 50, 0.02) < chance].sum() <= 0.02


@pytest.mark.claim("AUDIT")
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_no_event_of_a_gaussian_proves_more_than_there_is(mu: float) -> None:
    found = []
    for cut in np.linspace(-3, 4, 40):
        chances = Chances(float(stats.norm.sf(cut - mu)), float(stats.norm.sf(cut)))
        assert chances.mu() == pytest.approx(mu)
        assert chances.rho() <= mu**2 / 2
        delta = stats.norm.cdf(mu / 2 - 1 / mu) - math.e * stats.norm.cdf(-mu / 2 - 1 / mu)
        found.append(chances.epsilon(float(delta)))
    assert max(found) == pytest.approx(1.0, abs=0.02)  # the curve says epsilon 1 at this delta
    assert max(found) <= 1 + 1e-9


@pytest.mark.claim("AUDIT")
def test_chances_the_wrong_way_round_prove_nothing() -> None:
    chances = Chances(0.2, 0.4)
    assert (chances.epsilon(0.0), chances.mu(), chances.rho()) == (0.0, 0.0, 0.0)
    assert Chances(0.2, 0.0).rho() == math.inf
    with pytest.raises(InvalidParameter):
        Chances(1.2, 0.1)


# Audits of known things


class Response:
    """Randomised response with epsilon = ln 3: tells the row in three runs of four."""

    def train(self, X: Any, y: Any) -> None:
        self.bit = int(np.asarray(X)[0, 0])

    def ask(self, X: Any) -> Any:
        return [self.bit ^ int(integers(4, 1, SYSTEM)[0] == 0)]

    def published(self) -> Any:
        return None


def response(epsilon: float, **more: Any) -> Attack:
    def play(game: Game) -> Any:
        game.train(([[0.0]], [0]), ([[1.0]], [0]))
        return [float(game.ask([[0.0]]).answers[0]), 1.0]

    return Attack("randomised response", Response, play, Claimed(epsilon), **more)


@pytest.mark.statistical
@pytest.mark.claim("AUDIT")
def test_randomised_response_is_measured_as_what_it_is() -> None:
    result = audited(response(math.log(3)), runs=4_000)
    assert not result.broken
    assert result.epsilon > 0.5  # about 0.85 with so many runs at this confidence
    assert result.runs == 2_000


@pytest.mark.parametrize("rule", [by_likelihood, by_training])
def test_a_promise_that_is_too_small_is_found_by_every_rule(rule: Any) -> None:
    assert audit(response(0.5, distinguish=rule), runs=2_000, progress=False).broken


class Counting:
    """A Gaussian release of a count that the row moves by one, with a scale of its own."""

    scale = 20.0

    def train(self, X: Any, y: Any) -> None:
        self.count = int(np.asarray(X)[0, 0])

    def ask(self, X: Any) -> Any:
        return self.count + discrete_gaussian(self.scale, len(np.asarray(X)), source=SYSTEM)

    def published(self) -> Any:
        return None


def counting(mu: float) -> Attack:
    def play(game: Game) -> float:
        game.train(([[0.0]], [0]), ([[1.0]], [0]))
        return float(sum(game.ask(np.zeros((400, 1))).answers))

    return Attack("counts", Counting, play, Claimed(math.inf, 1e-6, mu**2 / 2, mu))


@pytest.mark.statistical
@pytest.mark.claim("AUDIT")
def test_gaussian_claims_are_measured() -> None:
    """400 releases of scale 20 are mu = 1."""
    assert not audited(counting(1.0), runs=2_000).broken


@pytest.mark.claim("AUDIT")
def test_gaussian_claims_that_are_too_small_are_found() -> None:
    found = audit(counting(0.5), runs=2_000, progress=False)
    assert found.broken
    assert 0.5 < found.mu < 1.0  # 0.7 to 0.8 with most coins


@pytest.mark.no_cover  # thousands of games, all alike
@pytest.mark.claim("AUDIT")
def test_bounds_fail_as_seldom_as_they_say() -> None:
    """At confidence 0.4, audits of a tight claim are wrong in a fifth of cases (alarm below 1e-7).

    The claim has epsilon only, whose bound takes a third of the chance of error.
    """
    broken = sum(
        audit(response(math.log(3)), runs=80, confidence=0.4, progress=False).broken
        for _ in range(300)
    )
    assert stats.binom.sf(broken - 1, 300, 0.2) > 1e-7


@pytest.mark.claim("AUDIT")
def test_events_are_not_chosen_on_the_runs_that_count_them() -> None:
    """Rules that remember every run see a perfect leak in noise, if they are tested on it.

    Correct code is called broken with a chance below 1e-9; tested on its own runs, always.
    """

    def play(game: Game) -> Any:
        game.train(([[0.0]], [0]), ([[1.0]], [0]))
        return integers(2**20, 3, SYSTEM)

    attack = Attack("noise", Recorder, play, Claimed(0.5), by_likelihood)
    assert not audit(attack, runs=400, confidence=1 - 1e-9, progress=False).broken


# Parameters


def test_parameters_are_checked() -> None:
    for wrong in ({"runs": 10}, {"confidence": 1.0}, {"seconds": 0.0}):
        with pytest.raises(InvalidParameter):
            audit(response(1.0), **wrong)


def test_the_clock_ends_it() -> None:
    result = audit(response(1.0), runs=10**9, seconds=0.2, progress=False)
    assert 10 <= result.runs < 10**6


def test_void_guarantees_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="void"):
        training_row(random_state=1)


@pytest.mark.parametrize("given", [math.nan, None, "much", [], [[1.0]], [[1.0], [2.0, 3.0]]])
def test_strategies_that_do_not_return_numbers_are_refused(given: Any) -> None:
    attack = Attack("strange", Recorder, lambda game: given, Claimed(1.0))
    with pytest.raises(InvalidParameter, match=r"strategy of .strange. returned"):
        audit(attack, runs=20, progress=False)


def test_strategies_return_the_same_number_of_numbers_in_each_run() -> None:
    lengths = iter(range(1, 1_000))

    def play(game: Game) -> Any:
        differs(game)
        return [0] * next(lengths)

    attack = Attack("strange", Recorder, play, Claimed(1.0))
    with pytest.raises(InvalidParameter, match="from 1 to 40 numbers"):
        audit(attack, runs=20, progress=False)


def differs(game: Game) -> None:
    game.train(([[0.0]], [0]), ([[1.0]], [0]))


def test_worlds_that_do_not_differ_are_refused() -> None:
    attack = Attack("same", Recorder, lambda game: 0.0, Claimed(1.0))
    with pytest.raises(InvalidParameter, match="worlds of the attack 'same' do not differ"):
        audit(attack, runs=20, progress=False)


class Refuses(Recorder):
    """Answers no question."""

    def ask(self, X: Any) -> Any:
        raise ValueError("too many queries")


def test_an_attack_that_gets_no_answer_at_all_is_refused() -> None:
    def play(game: Game) -> float:
        differs(game)
        return float(sum(answer == 1 for answer in game.ask([[0.0]]).answers))

    attack = Attack("deaf", Refuses, play, Claimed(1.0))
    with pytest.raises(InvalidParameter, match=r"move 2 of .* 'deaf' failed.*too many queries"):
        audit(attack, runs=20, progress=False)

    def forgets(game: Game) -> Any:
        differs(game)
        return game.ask([[0.0]]).answers[0]

    attack = Attack("deaf", Refuses, forgets, Claimed(1.0))
    with pytest.raises(InvalidParameter, match="got 'ValueError: too many queries'"):
        audit(attack, runs=20, progress=False)


def test_an_error_says_in_which_attack_it_was() -> None:
    class Fails(Recorder):
        def train(self, X: Any, y: Any) -> Any:
            raise ValueError("no rows")

    with pytest.raises(ValueError, match="no rows") as caught:
        audit(Attack("wrong", Fails, differs, Claimed(1.0)), runs=20, progress=False)  # type: ignore[arg-type]
    assert caught.value.__notes__ == ["This happened in the attack 'wrong'."]


def test_claims_and_attacks_are_checked() -> None:
    for wrong in ((-1.0,), (1.0, 2.0), (1.0, 0.0, -1.0), (math.nan,)):
        with pytest.raises(InvalidParameter):
            Claimed(*wrong)
    driver: Any = Recorder()
    with pytest.raises(InvalidParameter, match="no function; give one that returns a new driver"):
        Attack("a", driver, differs, Claimed(1.0))  # type: ignore[arg-type]
    guarantee = Guarantee(1.0, 1e-6, "one row", "", ("EVER",), ())
    assert Claimed.by(SimpleNamespace(guarantee_=guarantee)) == Claimed.by(guarantee)


def test_the_verdict_says_what_so_many_runs_can_tell() -> None:
    """The best bound of n runs at delta 0 is about log(n / log(6 / error)), here 3.02."""

    def verdict(claimed: float, found: float) -> str:
        return Audit("a", Claimed(claimed), 0.95, 100, epsilon=found, rho=0.0, mu=0.0).verdict

    assert verdict(3.0, 0.5) == "not broken"
    assert verdict(3.1, 0.5) == "cannot tell"
    assert verdict(0.4, 0.5) == "BROKEN"
    assert Audit("a", Claimed(9.0, mu=1.0), 0.95, 100, 0.5, 0.0, mu=0.5).verdict == "not broken"
    assert Audit("a", Claimed(9.0, rho=0.1), 0.95, 100, 0.5, 0.2, mu=0.5).verdict == "BROKEN"


def test_gaussian_claims_need_noise_that_is_not_tiny() -> None:
    guarantee = Guarantee(1.0, 1e-6, "one row", "", ("EVER",), (), rho=0.5)
    assert Claimed.by(guarantee, gaussian_releases=400).mu == pytest.approx(1.001)
    assert Claimed.by(guarantee, gaussian_releases=10).mu is None
    assert Claimed.by(guarantee).mu is None


def test_results_are_plain_numbers() -> None:
    result = audit(response(0.5), runs=1_000, n_jobs=2, progress=False)
    stored = result.to_dict()
    assert stored["claimed_at_most"]["epsilon"] == 0.5
    assert stored["verdict"] == "BROKEN"
    assert Audit.from_dict(json.loads(json.dumps(stored))) == result
    assert "BROKEN" in str(result)
    assert all(0 <= a <= 1 and 0 <= b <= 1 for a, b in result.curve)
