"""Histories of simulated lives: nothing is wrong in them, and planted bugs are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.simulator.history import played, warm_up
from tests.simulator.plants import PLANTS
from tests.simulator.scheduler import simulated

pytestmark = [
    pytest.mark.claim("STORE"),
    pytest.mark.claim("REPLICAS"),
    pytest.mark.system_coins,  # which are those of the history's seed
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

REPLAYED = 200
MOST = 400  # histories that a planted bug may pass


@pytest.fixture(autouse=True)
def _in_a_simulated_world() -> Iterator[None]:
    warm_up()
    with simulated():
        yield


def test_nothing_is_wrong_in_any_history() -> None:
    answers = 0
    for seed in range(REPLAYED):
        wrong, _, counts = played(seed)
        assert not wrong, f"python -m tests.simulator --histories 1 --seed {seed} --tell"
        answers += counts["answers"]
    assert answers > 10 * REPLAYED


def test_a_seed_is_a_history() -> None:
    for seed in range(5):
        first: list[str] = []
        second: list[str] = []
        assert played(seed, told=first.append) == played(seed, told=second.append)
        assert first == second


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: str(plant.__name__))
def test_planted_bugs_are_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    found = (wrong for seed in range(MOST) for wrong in played(seed)[0])
    assert any("left" in wrong or "used before" in wrong for wrong in found)
