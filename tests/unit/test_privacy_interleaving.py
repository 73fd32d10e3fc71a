"""Mechanisms with a memory, asked in turn by an adversary who knows all answers so far.

A mechanism here draws a secret, then answers questions by laws that depend on the secret and the
rows. The worst adversary, who chooses whom to ask what, is found by trying all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from cumae.arrays import Floats
from cumae.privacy import Cost, Pure

QUESTIONS = ANSWERS = 2
History = tuple[tuple[int, int], ...]
Value = Callable[[float, float], Any]  # of two chances: a number, or an array of them


@dataclass(frozen=True, eq=False)
class Memory:
    """What a mechanism with a secret does on two neighbours, for so many questions."""

    secret: tuple[Floats, Floats]  # law of the secret, for either input
    answer: tuple[Floats, Floats]  # law of an answer, by secret and question
    rounds: int


@cache
def chances(mechanism: Memory, history: History) -> tuple[float, float]:
    """Return the chance of these answers to these questions, for either input."""
    found = []
    for law, table in zip(mechanism.secret, mechanism.answer, strict=True):
        factors = [table[:, question, answer] for question, answer in history]
        found.append(float(np.prod([law, *factors], axis=0).sum()))
    return found[0], found[1]


def _random(seed: int, rounds: int) -> Memory:
    rng = np.random.default_rng(seed)
    secrets = [rng.dirichlet(np.ones(3)) for _ in range(2)]
    base = rng.normal(size=(3, QUESTIONS, ANSWERS))
    tables = [np.exp(base + 0.4 * rng.normal(size=base.shape)) for _ in range(2)]
    tables = [table / table.sum(axis=2, keepdims=True) for table in tables]
    mixed = 0.5 * (secrets[0] + secrets[1])
    secrets = [0.7 * mixed + 0.3 * secret for secret in secrets]
    return Memory((secrets[0], secrets[1]), (tables[0], tables[1]), rounds)


def worst(mechanisms: list[Memory], value: Value, *, flipped: bool = False) -> Any:
    """Return the largest sum over transcripts of a value, or of each, of their two chances."""

    @cache
    def best(histories: tuple[History, ...]) -> Any:
        each = [chances(m, h) for m, h in zip(mechanisms, histories, strict=True)]
        p, q = (math.prod(side) for side in zip(*each, strict=True))
        found = value(q, p) if flipped else value(p, q)
        for place, question in product(range(len(mechanisms)), range(QUESTIONS)):
            history = histories[place]
            if len(history) < mechanisms[place].rounds:
                after = [
                    (*histories[:place], (*history, (question, a)), *histories[place + 1 :])
                    for a in range(ANSWERS)
                ]
                found = np.maximum(found, sum(best(one) for one in after))
        return found

    return best(((),) * len(mechanisms))


def hockey(epsilon: float | Floats) -> Value:
    factor = np.exp(epsilon)
    return lambda p, q: np.maximum(0.0, p - factor * q)


@dataclass(frozen=True, eq=False)
class Alone(Cost):
    """The exact cost of a mechanism that is asked by itself."""

    mechanism: Memory

    def _curve(self, epsilon: Floats) -> Floats:
        both = [worst([self.mechanism], hockey(epsilon), flipped=f) for f in (False, True)]
        return np.asarray(np.maximum(*both))


def _alone(mechanism: Memory) -> float:
    """Return the pure epsilon of a mechanism."""
    found = 0.0
    for questions in product(range(QUESTIONS), repeat=mechanism.rounds):
        for answers in product(range(ANSWERS), repeat=mechanism.rounds):
            p, q = chances(mechanism, tuple(zip(questions, answers, strict=True)))
            found = max(found, abs(math.log(p / q)))
    return found


pairs = pytest.mark.parametrize("seed", range(4))


@pytest.mark.claim("COMP")
@pairs
def test_interleaved_questions_cost_no_more_than_the_composition(seed: int) -> None:
    both = [_random(seed, 2), _random(seed + 100, 2)]
    cost = Alone(both[0]) + Alone(both[1])
    pure = Pure(_alone(both[0])) + Pure(_alone(both[1]))
    epsilons = np.array([0.0, 0.1, 0.3, 0.6, 1.0])
    paid = np.minimum(cost.deltas(epsilons), pure.deltas(epsilons))
    for flipped in (False, True):
        assert np.all(worst(both, hockey(epsilons), flipped=flipped) <= paid + 1e-13)


@pytest.mark.claim("COMP")
def test_the_worst_adversary_is_stronger_than_one_who_asks_once() -> None:
    """Planted: costs of a single question each do not cover the interleaving of two."""
    both = [_random(0, 2), _random(100, 2)]
    single = Alone(_random(0, 1)) + Alone(_random(100, 1))
    assert worst(both, hockey(0.3)) > single.delta(0.3)


@pytest.mark.claim("BUDGET")
@pairs
def test_interleaved_epsilons_and_deltas_add_up(seed: int) -> None:
    both = [_random(seed, 2), _random(seed + 100, 2)]
    for first, second in ((0.1, 0.1), (0.05, 0.4), (0.3, 0.0)):
        deltas = [Alone(m).delta(e) for m, e in zip(both, (first, second), strict=True)]
        for flipped in (False, True):
            found = worst(both, hockey(first + second), flipped=flipped)
            assert found <= sum(deltas) + 1e-13


@pytest.mark.claim("BUDGET", "COMP")
@pairs
@pytest.mark.parametrize("order", [1.1, 2.0, 8.0])
def test_interleaved_renyi_divergences_add_up(seed: int, order: float) -> None:
    def moment(p: float, q: float) -> float:
        return float(p**order * q ** (1 - order))

    both = [_random(seed, 2), _random(seed + 100, 2)]
    alone = [worst([mechanism], moment) for mechanism in both]
    assert worst(both, moment) <= math.prod(alone) * (1 + 1e-12)
    assert worst(both, moment) >= math.prod(alone) * (1 - 1e-12)  # one after the other is as bad
