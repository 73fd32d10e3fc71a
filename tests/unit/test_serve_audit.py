"""The audit attacks an oracle through the server, which is stopped and started in the middle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cumae.audit.attacks.everlasting import query, training_row
from cumae.audit.runs import Attack, audit, least_to_tell
from cumae.serve.driver import over_http, unusable_cell
from cumae.serve.errors import bad
from cumae.serve.models import Served
from cumae.serve.protocol import replies

pytestmark = [pytest.mark.system_coins, pytest.mark.filterwarnings("ignore::UserWarning")]

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - syncs are free there
EPSILON, CONFIDENCE = 1.0, 0.95


def enough(attack: Attack) -> int:
    """Return as many runs as a leak of everything needs to show."""
    return least_to_tell(attack.claimed, CONFIDENCE)


def test_an_attack_plays_through_the_server() -> None:
    attack = over_http(query(epsilon=EPSILON), MEMORY)
    assert attack.name.endswith(", over HTTP")
    assert not audit(attack, runs=20, progress=False).broken


def refuse_unusable_cells(patch: pytest.MonkeyPatch) -> None:
    """Refuse them before the oracle is asked, so that nothing is counted."""
    ask = Served.ask

    async def refusing(self: Served, question: Any, *given: Any) -> Any:
        if np.isnan(question.X).any():
            raise bad("a cell cannot be used")
        return await ask(self, question, *given)

    patch.setattr(Served, "ask", refusing)


def count_unusable_rows(patch: pytest.MonkeyPatch) -> None:
    """Count them apart, for operators."""
    ask = Served.ask

    async def counting(self: Served, question: Any, *given: Any) -> Any:
        self.name_of_bad = f"{np.isnan(question.X).sum()}"  # type: ignore[attr-defined]
        return await ask(self, question, *given)

    facts = Served.facts
    patch.setattr(Served, "ask", counting)
    patch.setattr(
        Served, "facts", lambda self: {**facts(self), "bad": getattr(self, "name_of_bad", "0")}
    )


def fill_up_nothing(patch: pytest.MonkeyPatch) -> None:
    """Let answers have lengths of their own: the hidden one is -1 in one world, and 0 or 1."""
    patch.setattr(replies, "_padded", lambda text, _: text)


PLANTS = [refuse_unusable_cells, count_unusable_rows, fill_up_nothing]


@pytest.mark.parametrize("plant", PLANTS[:1])
@pytest.mark.claim("SERVE")
def test_what_tells_an_unusable_cell_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = unusable_cell(epsilon=EPSILON, folder=MEMORY)
    plant(monkeypatch)
    assert audit(attack, runs=enough(attack), progress=False).broken


@pytest.mark.audit
@pytest.mark.parametrize("plant", PLANTS[1:])
def test_more_that_tells_an_unusable_cell_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    test_what_tells_an_unusable_cell_is_found(plant, monkeypatch)


@pytest.mark.audit
@pytest.mark.parametrize("build", [training_row, query])
def test_many_attacks_play_through_the_server(build: Callable[..., Attack]) -> None:
    attack = over_http(build(epsilon=EPSILON), MEMORY)
    assert not audit(attack, runs=150, progress=False).broken


@pytest.mark.audit
def test_nothing_tells_an_unusable_cell() -> None:
    attack = unusable_cell(epsilon=EPSILON, folder=MEMORY)
    assert not audit(attack, runs=2 * enough(attack), progress=False).broken
