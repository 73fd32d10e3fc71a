"""The audit's thief has the disk and no key: it stays within the claim, and finds planted leaks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cumae.audit import Attack, audit
from cumae.audit.catalogue import attacks_on
from cumae.audit.distinguishers import by_classes
from cumae.codec import to_bytes
from cumae.concepts import Thresholds
from cumae.ensembles.ensemble import Ensemble
from cumae.predictors import EverlastingPredictor, QueryRelease
from cumae.predictors.bbl.phases import Kept
from cumae.predictors.everlasting.phases import OpenPhase
from cumae.store import writer
from cumae.store.driver import ThiefOfFile
from cumae.store.driver.thefts import (
    ATTACKS,
    TEXTS,
    TREE,
    hidden_answer,
    query,
    repeated,
    row,
    sampled_query,
    texts,
)
from tests.statistics import audited

pytestmark = [
    pytest.mark.claim("AUDIT", "STORE"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.usefixtures("trials_remembered"),
]

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - syncs are free there
PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 0.05, "folder": MEMORY}
RUNS = 200  # so few that a test is quick, and so many that a complete leak is above the claim

released_row = partial(row, TREE, "trees", predictor=QueryRelease)
tree_row = partial(row, TREE, "trees")


# --- what is stored keeps its promise


def within_the_claim(build: Callable[..., Attack]) -> bool:
    return not audited(build(**PROMISE), runs=RUNS, checks=8).broken


@pytest.mark.statistical
@pytest.mark.system_coins
def test_a_thief_learns_no_more_than_is_promised() -> None:
    assert within_the_claim(tree_row)


@pytest.mark.audit
@pytest.mark.statistical
@pytest.mark.system_coins
@pytest.mark.parametrize(
    "build",
    [
        partial(row, Thresholds(), "thresholds"),
        query,
        hidden_answer,
        repeated,
        texts,
        sampled_query,
        released_row,
    ],
)
def test_a_thief_of_others_learns_no_more_than_is_promised(build: Callable[..., Attack]) -> None:
    assert within_the_claim(build)


# --- planted leaks


def is_found(attack: Attack, runs: int = 60) -> bool:
    """Tell whether a planted bug is found; an attack that sees nothing says so once in 20 times."""
    return audit(attack, runs=runs, progress=False).broken


@pytest.mark.system_coins
def test_answers_of_different_lengths_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    attack, real = hidden_answer(**PROMISE), to_bytes

    def as_texts(facts: dict[str, Any]) -> bytes:
        return real({**facts, "answer": np.array([TEXTS[code] for code in facts["answer"]])})

    monkeypatch.setattr(writer, "to_bytes", as_texts)
    assert is_found(attack)


@pytest.mark.system_coins
def test_a_memo_hit_that_writes_less_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    attack, real = repeated(**PROMISE), EverlastingPredictor._release

    def only_new(self: Any, table: Any, state: Any, *rest: Any) -> Any:
        labels, weights, memo = real(self, table, state, *rest)
        new = [key.tobytes() not in state.phase.memo for key in memo["keys"]]
        return labels, weights, {name: memo[name][new] for name in memo}

    monkeypatch.setattr(EverlastingPredictor, "_release", only_new)
    assert is_found(attack)


@pytest.mark.system_coins
def test_a_memo_that_is_stored_by_its_own_size_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    attack, real = repeated(**PROMISE), OpenPhase.memo_to_facts
    monkeypatch.setattr(OpenPhase, "memo_to_facts", lambda self, _: real(self, 0))
    assert is_found(attack)


@pytest.mark.system_coins
@pytest.mark.parametrize("build", [tree_row, released_row])
def test_models_that_are_stored_by_their_own_size_are_found(
    build: Callable[..., Attack], monkeypatch: pytest.MonkeyPatch
) -> None:
    attack, real = build(**PROMISE), Ensemble.to_facts

    def own_sizes(self: Ensemble) -> dict[str, Any]:
        form, self.form = self.form, None
        try:
            return real(self)
        finally:
            self.form = form

    monkeypatch.setattr(Ensemble, "to_facts", own_sizes)
    assert is_found(attack)


def lengths_of_queries() -> list[int]:
    """Return how many bytes are written for each of 40 queries, a quarter of which is sampled."""
    driver: Any = sampled_query(**PROMISE).make()
    rows = np.zeros((32, 1))
    driver.train(rows, np.arange(32) % 2)
    for _ in range(40):
        driver._inner.ask(rows[:1])
        driver._look()
    looks = driver.published()["stolen"][1:]
    driver.close()
    return [look.n_bytes for look in looks]


def only_drawn(self: Kept, start: int, table: Any) -> Any:
    return table[self._drawn(start, len(table)) - start]


def put_drawn(self: Kept, at: int, rows: Any, weights: None) -> None:
    del weights
    first = np.searchsorted(self.places, at)
    self.rows[first : first + len(rows)] = rows


@pytest.mark.parametrize("planted", [False, True])
def test_the_disk_does_not_tell_who_was_sampled(
    planted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if planted:
        monkeypatch.setattr(Kept, "among", only_drawn)
        monkeypatch.setattr(Kept, "put", put_drawn)
    assert (lengths_of_queries() != lengths_of_queries()) is planted


# --- the thief itself


def test_every_look_has_the_same_things(tmp_path: Path) -> None:
    attack = hidden_answer(**{**PROMISE, "folder": str(tmp_path)})
    driver: Any = attack.make()
    assert isinstance(driver, ThiefOfFile)
    driver.train(np.zeros((300, 1)), np.tile(TEXTS, 150))
    driver.ask([[0.0]])
    looks = driver.published()["stolen"]
    driver.close()
    assert len(looks) == 4  # trained, answered, rotated, closed
    assert {len(look.numbers()) for look in looks} == {9}
    names = [{name for name, _ in look.files} for look in looks]
    assert "oracle.db-wal" in names[1]
    assert "oracle.db-wal" not in names[3]
    assert any(name.startswith("oracle.db.keys/epoch-") for name in names[0])
    kept = [shape for shape in looks[1].new if shape[0] == "answers"]
    assert len(kept) == 1
    assert looks[1].log
    assert not looks[3].log
    assert '"answers": 1' in looks[1].status
    gone = [shape for shape in looks[2].gone if shape[0] == "answers"]
    assert gone == kept  # retries end with their key


def test_every_theft_is_listed_with_its_claim() -> None:
    found, left_out = attacks_on("OracleFile", 2.0, 1e-5, ATTACKS)
    assert not left_out
    assert len({attack.name for attack in found}) == len(found) == 8
    assert all(attack.name.startswith("OracleFile of ") for attack in found)
    assert all(0.5 < attack.claimed.epsilon <= 2.0 for attack in found)


def test_classes_of_values_tell_worlds_apart() -> None:
    worlds = np.repeat([0, 1], 60)
    odd = np.where(worlds == 0, [3, 11] * 60, [7, 12] * 60)  # no cut tells them apart
    numbers = np.column_stack([np.tile(range(60), 2), odd]).astype(float)
    score = by_classes(numbers, worlds)(numbers)
    assert score[worlds == 1].min() > score[worlds == 0].max()
