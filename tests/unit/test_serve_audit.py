"""The audit attacks an oracle through the server, which is stopped and started in the middle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cumae.audit.attacks.everlasting import query, training_row
from cumae.audit.runs import Attack, audit
from cumae.serve.driver import over_http

pytestmark = [pytest.mark.system_coins, pytest.mark.filterwarnings("ignore::UserWarning")]

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - syncs are free there


def test_an_attack_plays_through_the_server() -> None:
    attack = over_http(query(epsilon=1.0), MEMORY)
    assert attack.name.endswith(", over HTTP")
    assert not audit(attack, runs=20, progress=False).broken


@pytest.mark.audit
@pytest.mark.parametrize("build", [training_row, query])
def test_many_attacks_play_through_the_server(build: Callable[..., Attack]) -> None:
    assert not audit(over_http(build(epsilon=1.0), MEMORY), runs=150, progress=False).broken
