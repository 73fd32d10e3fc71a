"""The audit of mechanisms: bugs are found, and what is right is left alone."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest
from joblib.externals.loky.backend.reduction import dumps

from cumae.audit import Game, audit
from cumae.audit.attacks import mechanisms as parts
from cumae.mechanisms import (
    Between,
    BetweenThresholds,
    Coins,
    ExponentialMechanism,
    GaussianNoise,
    LaplaceNoise,
    Stability,
    StabilityTest,
    stability,
)
from cumae.randomness import Source, discrete_gaussian, discrete_laplace
from tests.statistics import audited

if TYPE_CHECKING:
    from collections.abc import Callable

    from cumae.audit import Attack

pytestmark = pytest.mark.claim("AUDIT")
CORRECT = [build(epsilon=1.0, delta=1e-6) for builds in parts.ATTACKS.values() for build in builds]


@pytest.fixture(autouse=True)
def _fast_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search the same threshold once, not for each of thousands of mechanisms."""
    for name in ("least_threshold", "delta_at_threshold"):
        monkeypatch.setattr(stability, name, lru_cache(getattr(stability, name)))


class HalfGaussian(GaussianNoise):
    """Planted: half the noise that is paid for."""

    def draw(self, count: int, source: Source) -> Any:
        return discrete_gaussian(self.scale / 2, count, source)


class HalfLaplace(LaplaceNoise):
    """Planted: half the noise that is paid for."""

    def draw(self, count: int, source: Source) -> Any:
        return discrete_laplace(2 * self.epsilon / self.sensitivity, count, source)


class Batched(Stability):
    """Not planted: the same noise, drawn many at a time, because thousands are started here."""

    pools: ClassVar[dict[Any, list[int]]] = {}

    def fresh_threshold_noise(self, source: Source) -> int:
        return self._take(self.threshold_rate, 1)[0]

    def query_noise(self, count: int, coins: Coins) -> Any:
        return np.array(self._take(self.query_rate, count))

    def _take(self, rate: Any, count: int) -> list[int]:
        pool = self.pools.setdefault(rate, [])
        if len(pool) < count:
            pool += discrete_laplace(rate, 100_000).tolist()
        taken = pool[-count:]
        del pool[-count:]
        return taken


class TenUnstable(Batched):
    """Planted: it stops after ten times as many charged answers as are paid for."""

    @classmethod
    def of(cls, *given: Any) -> TenUnstable:
        found = super().of(*given)
        return replace(found, max_unstable=10 * found.max_unstable)


class Doubled(ExponentialMechanism):
    """Planted: the exponent without its 1/2."""

    def __init__(self, epsilon: float) -> None:
        super().__init__(2 * epsilon)


class OnceForAll(Batched):
    """Planted: one threshold noise for every mechanism of the process."""

    drawn: ClassVar[int] = discrete_laplace(1.5)

    def fresh_threshold_noise(self, source: Source) -> int:
        return self.drawn


class Lasting(Stability):
    """Harmless: its threshold noise is its own, and lasts for all charged answers."""

    def fresh_threshold_noise(self, source: Source) -> int:
        noise: int = vars(self).setdefault("own", super().fresh_threshold_noise(source))
        return noise


class LastingBetween(Between):
    """Harmless: the same."""

    def fresh_threshold_noise(self, source: Source) -> int:
        noise: int = vars(self).setdefault("own", super().fresh_threshold_noise(source))
        return noise


def stability_by(rule: type[Stability]) -> Callable[..., StabilityTest]:
    """Return what makes live mechanisms of another rule."""
    return lambda *given: StabilityTest._of(rule.of(*given), None)


def between_by(rule: type[Between]) -> Callable[..., BetweenThresholds]:
    """Return what makes live mechanisms of another rule."""

    def made(lower: int, upper: int, epsilon: float, delta: float, most: int) -> BetweenThresholds:
        del delta  # it follows from the thresholds
        return BetweenThresholds._of(rule(lower, upper, epsilon, most), None)

    return made


def broken(attack: Attack, runs: int) -> bool:
    return audit(attack, runs=runs, progress=False).broken


@pytest.mark.statistical
@pytest.mark.parametrize("attack", CORRECT, ids=[attack.name for attack in CORRECT])
def test_mechanisms_keep_what_they_claim(attack: Attack) -> None:
    """Rejects correct code with probability ``alarm_rate()`` at most, for each mechanism."""
    assert not audited(attack, runs=400, checks=7).broken


@pytest.mark.statistical
def test_the_attack_on_laplace_noise_is_tight() -> None:
    """A bound of 0 would never be above a claim; this one comes close to it."""
    attack = parts.noisy_majority(1.0, 0.0, kind="laplace", max_queries=1)
    assert audit(attack, runs=2_000, progress=False).epsilon > 0.5


@pytest.mark.statistical
def test_half_the_noise_is_found() -> None:
    assert broken(parts.noisy_majority(6.0, 1e-6, max_queries=10, noise=HalfGaussian), 600)
    laplace = parts.noisy_majority(1.0, 0.0, kind="laplace", max_queries=1, noise=HalfLaplace)
    assert broken(laplace, 1_000)


@pytest.mark.statistical
def test_an_exponent_without_its_half_is_found() -> None:
    assert broken(parts.exponential(2.5, 0.0, mechanism=Doubled), 1_600)


@pytest.mark.statistical
def test_ten_times_as_many_charged_answers_are_found() -> None:
    """The bound is 4 on average, the claim 3; BetweenThresholds would need more runs."""
    attack = parts.stability_test(3.0, 1e-6, repeats=8, mechanism=stability_by(TenUnstable))
    assert broken(attack, 4_000)


@pytest.mark.statistical
def test_threshold_noise_that_serves_all_mechanisms_is_found() -> None:
    """Who knows it (from an oracle over data of its own) asks at the noisy threshold itself.

    Each stable answer then is worth a quarter of epsilon and costs nothing; seven of them come with
    chance 0.067 in one world and 0.00035 in the other, which is a loss of 5.2 where 3 was promised.
    It takes many runs, because the loss is in a rare event only.
    """
    drawn = OnceForAll.drawn
    attack = parts.stability_test(
        3.0, 1e-6, pattern=(0,) * 7, mechanism=stability_by(OnceForAll), offset=drawn
    )
    assert broken(attack, 16_000)


@pytest.mark.statistical
def test_threshold_noise_that_outlasts_a_charged_answer_is_harmless() -> None:
    """Not refreshing is no bug as long as the noise stays secret, and is not flagged.

    Fix two worlds, and move the threshold noise by one in one of them: that makes every answer that
    is not charged as likely as in the other world, in all segments at once, since query noise is
    fresh; it costs half of epsilon once, not once for each segment (Lyu, Su, Li 2017). What is left
    is a charged answer, whose count and threshold then differ by two: half of epsilon each. The
    thresholds of BetweenThresholds move apart together, so one step serves both of them as well;
    its gap is too narrow with the same chance, once. So the whole is below what is claimed.

    Rejects correct code with probability ``alarm_rate()`` at most, twice.
    """
    options: Any = {"repeats": 5}
    for attack in (
        parts.stability_test(1.0, 1e-6, max_unstable=5, mechanism=stability_by(Lasting), **options),
        parts.between_thresholds(
            1.0, 1e-6, max_between=5, mechanism=between_by(LastingBetween), **options
        ),
    ):
        assert not audited(attack, runs=400, checks=2).broken


@pytest.mark.statistical
def test_a_gap_taken_with_sensitivity_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vote that moves from one class to another changes the gap by two, not by one.

    That the first four answers are stable and one of the next two is not has chance 0.17 in one
    world and 0.0009 in the other: a loss of 5.3, where 3 was promised.
    """

    def gap(votes: Any) -> Any:
        counts = np.sort(votes, axis=-1)
        return counts[..., -1] - counts[..., -2]

    monkeypatch.setattr(stability, "distance_to_instability", gap)
    attack = parts.stability_test(
        3.0,
        1e-6,
        pattern=(0, 0, 0, 0, 1, 1),
        gap_at=lambda distance: distance,
        mechanism=stability_by(Batched),
    )
    assert broken(attack, 8_000)


@pytest.mark.parametrize("attack", CORRECT, ids=[attack.name for attack in CORRECT])
def test_attacks_can_be_sent_to_other_processes(attack: Attack) -> None:
    again = pickle.loads(dumps(attack))  # noqa: S301
    assert np.isfinite(again.play(Game(again.make(), 1)))


def test_what_a_mechanism_gives_no_more_is_none() -> None:
    attack = parts.stability_test(3.0, 1e-6, repeats=50)
    game = Game(attack.make(), 0)
    attack.play(game)
    answers = game.view[-1].answers
    assert len(answers) == 200
    assert answers[-1] is None
    assert [answer for answer in answers if answer is not None][-1] == -1
