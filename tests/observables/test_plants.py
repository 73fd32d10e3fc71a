"""The law of observables has teeth: it finds each channel that is planted, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.observables.cases import CASES
from tests.observables.lives import law
from tests.observables.plants import PLANTS, Plant
from tests.observables.worlds import World

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.claim("STORE")
@pytest.mark.parametrize(
    "plant", PLANTS, ids=[f"{plant.put.__name__}, {plant.case}" for plant in PLANTS]
)
def test_a_planted_channel_is_found(
    plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[plant.case]
    world = World.base(case.kind, case.n_rows, constant=plant.constant)
    plant.put(monkeypatch)
    worlds = [world, world, world.changed(plant.changes)]  # by itself it breaks nothing
    with pytest.raises(AssertionError, match="worlds 1 and 3 look different"):
        law(case, plant.steps, worlds, tmp_path)
