"""Histories of simulated lives: nothing is wrong in them, and planted bugs are found."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.simulator.history import History, played, warm_up
from tests.simulator.plants import ALONE, PLANTS, one_mark_for_all
from tests.simulator.scheduler import simulated

pytestmark = [
    pytest.mark.claim("STORE", "REPLICAS", "BUDGET"),
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


def test_nothing_of_a_history_is_held_after_it() -> None:
    """What nobody holds is let go of: else its lock lasts as long as the process."""
    worlds = []
    for seed in range(20):
        history = History(seed)
        worlds.append(weakref.ref(history.world))
        history.run()
        del history
    gc.collect()
    assert not any(world() for world in worlds)


@pytest.mark.parametrize(
    ("plant", "swarm"),
    PLANTS,
    ids=lambda given: given.__name__ if callable(given) else given.get("kind", "any"),
)
def test_planted_bugs_are_found(
    plant: Callable[[pytest.MonkeyPatch], None],
    swarm: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    found = (wrong for seed in range(MOST) for wrong in played(seed, swarm)[0])
    assert any("left" in wrong or "used before" in wrong for wrong in found)


def test_one_mark_is_enough_where_a_lock_keeps_lives_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """So what is found with a late end is the late end."""
    one_mark_for_all(monkeypatch)
    assert not any(played(seed, ALONE)[0] for seed in range(REPLAYED // 2))
