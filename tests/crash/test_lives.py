"""Histories of real processes: nothing is wrong in them, and planted bugs are found."""

from __future__ import annotations

from typing import Any

import pytest

from tests.real.files import ENDINGS, FileHistory, copy
from tests.real.history import played, warm_up
from tests.real.plants import name_and_mark_are_not_read
from tests.real.replicas import ReplicaHistory
from tests.real.worker import Plan
from tests.servers import PostgresServer
from tests.simulator.plants import debit_after_the_answer

pytestmark = [
    pytest.mark.claim("STORE", "REPLICAS"),
    pytest.mark.system_coins,  # processes that are forked must not draw the same
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
MOST = 30  # histories that a planted bug may pass


class TwoAtOnce(FileHistory):
    """A history in which copies run at once, and nothing else; the second has time to begin."""

    key_stores = ("command",)
    share_of_copies = 1.0

    def step(self) -> None:
        copy(self.files[0], self.files[1], ENDINGS)
        asked: list[tuple[Any, ...]] = [("open", True), *[("ask", 3)] * 8]
        plans = [Plan(file, self.keys, asked, pause=0.05) for file in self.files[:2]]
        self.finish([self.start(plan) for plan in plans])


@pytest.fixture(autouse=True, scope="module")
def _warm() -> None:
    warm_up()


@pytest.mark.parametrize(("kind", "count"), [(FileHistory, 5), (TwoAtOnce, 1)])
def test_nothing_is_wrong_in_files(kind: type[FileHistory], count: int) -> None:
    answers = 0
    for seed in range(count):
        history, wrong = played(kind, seed)
        assert not wrong, f"python -m benchmarks.lives --sqlite 1 --seed {seed} --tell"
        answers += history.judge.counts["answers"]
    assert answers > 10 * count


@pytest.mark.debian("postgresql")
def test_nothing_is_wrong_with_replicas() -> None:
    server = PostgresServer()
    try:
        for seed in range(2):
            _, wrong = played(ReplicaHistory, seed, server)
            assert not wrong, f"python -m benchmarks.lives --postgres 1 --seed {seed} --tell"
    finally:
        server.remove()


@pytest.mark.parametrize(
    ("plant", "kind", "told"),
    [
        (debit_after_the_answer, FileHistory, "without a debit"),
        (name_and_mark_are_not_read, TwoAtOnce, "left twice"),
    ],
)
def test_planted_bugs_are_found(
    plant: Any, kind: type[FileHistory], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    found = (wrong for seed in range(MOST) for wrong in played(kind, seed)[1])
    assert any(told in wrong for wrong in found)
