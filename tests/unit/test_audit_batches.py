"""The audit in batches: a query must not show in the answers to those next to it."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from joblib.externals.loky.backend.reduction import dumps

from cumae.audit import Game, audit, catalogue
from cumae.audit.attacks import batches
from cumae.audit.attacks.batches import (
    LISTS,
    InCompany,
    Rounded,
    everything,
    framed_query,
    fresh_in_company,
    listed_query,
    query_in_company,
    rounded_off,
    rounded_query,
    row_in_batches,
    row_in_rounded_batches,
)
from cumae.predictors import (
    EverlastingPredictor,
    GenericBBL,
    QueryRelease,
    UniversalQueryRelease,
)
from tests.plants import halve_failing_batches, halve_for_all, infer_types, let_errors_out
from tests.statistics import audited

pytestmark = pytest.mark.usefixtures("trials_remembered")

if TYPE_CHECKING:
    from collections.abc import Callable

    from cumae.audit import Attack

PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 0.05}
LOOSE = {**PROMISE, "epsilon": 3.0}
SLOW = ("AgnosticQueryRelease", "UniversalQueryRelease", "GenericBBL")


def told(name: str, attack: Any) -> str:
    """Return a name for an attack without making it, which takes a training."""
    made, given = (attack.func, attack.keywords) if isinstance(attack, partial) else (attack, {})
    return ", ".join([name, made.__name__, *map(str, given.values())])


ALL = [
    pytest.param(
        attack,
        id=told(name, attack),
        marks=[pytest.mark.audit] * (name in SLOW),
    )
    for name, attacks in batches.ATTACKS.items()
    for attack in attacks
]


def shape_decides() -> bool:
    """Tell whether rounding depends on the shape of a table here; old processors add in one way."""
    rows, rule = rounded_off(), Rounded()
    table = np.concatenate([np.zeros((1, rows.shape[1])), rows])
    parts = [rule.predict(part) for part in (table[1:2], table[2:4])]
    return bool((rule.predict(table)[1:] != np.concatenate(parts)).all())


ROUNDS = pytest.mark.skipif(not shape_decides(), reason="all shapes are rounded alike here")


def is_found(attack: Attack, runs: int = 60) -> bool:
    """Tell whether a planted bug is found."""
    return audit(attack, runs=runs, progress=False).broken


# A batch that is halved where a model fails


@pytest.mark.parametrize(
    ("attack", "promise"),
    [
        (query_in_company, PROMISE),
        pytest.param(rounded_query, PROMISE, marks=ROUNDS),
        (fresh_in_company, LOOSE),
    ],
)
def test_a_batch_that_is_halved_is_found(
    attack: Callable[..., Attack], promise: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    halve_failing_batches(monkeypatch)
    assert is_found(attack(**promise), 80)


@pytest.mark.audit
@pytest.mark.parametrize("attack", [query_in_company, pytest.param(rounded_query, marks=ROUNDS)])
def test_a_batch_that_is_halved_is_found_in_the_papers_predictor(
    attack: Callable[..., Attack], monkeypatch: pytest.MonkeyPatch
) -> None:
    halve_failing_batches(monkeypatch)
    assert is_found(attack(GenericBBL, **PROMISE), 100)


# Queries of these predictors are public, so that a batch may be halved for one model: it moves no
# more than its own votes. Halving it for all models shows whose row made one of them fail.
# AgnosticQueryRelease is left out: it draws one row in eight here, so that the fault shows in one
# run of eight, and a hundred runs do not tell that from its delta.


@ROUNDS
@pytest.mark.parametrize(
    "predictor",
    [
        QueryRelease,
        pytest.param(UniversalQueryRelease, marks=pytest.mark.audit),
    ],
)
def test_a_batch_that_is_halved_for_all_models_is_found(
    predictor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    halve_for_all(monkeypatch)
    assert is_found(row_in_rounded_batches(predictor, **PROMISE), 100)


# Types that are taken from all cells


@pytest.mark.parametrize("of", batches.FRAMES)
def test_a_type_taken_from_all_cells_of_a_batch_is_found(
    of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    infer_types(monkeypatch)
    assert is_found(framed_query(of=of, **PROMISE))


class Regular(EverlastingPredictor):
    """Takes a list for numbers or for rows, by all of its elements."""

    def predict(self, X: Any, **more: Any) -> Any:
        rows = [row for row in X if isinstance(row, list | np.ndarray)]
        if not rows or not isinstance(X, list):
            return super().predict(X, **more)
        if any(len(row) > 1 for row in rows):  # raises if one has no length
            raise ValueError("rows of another width")
        return super().predict([row if row in rows else [np.nan] for row in X], **more)


@pytest.mark.parametrize("odd", LISTS)
def test_a_list_that_is_read_as_a_whole_is_found(odd: str) -> None:
    assert is_found(listed_query(Regular, odd=odd, **PROMISE))


# What a model raises


def test_an_error_of_a_model_that_gets_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    attack = row_in_batches(QueryRelease, **PROMISE)
    let_errors_out(monkeypatch)
    assert is_found(attack)


# The unbroken ones


@pytest.mark.statistical
@pytest.mark.claim("AUDIT", "EVER", "QUERY", "AGPRIV", "UNV", "BBL", "SHARDS")
@pytest.mark.parametrize("attack", ALL)
def test_batches_are_not_flagged(attack: Callable[..., Attack]) -> None:
    promise, runs = (LOOSE, 180) if attack is fresh_in_company else (PROMISE, 100)
    assert not audited(attack(**promise), runs=runs, checks=21).broken


# The attacks themselves


def test_every_predictor_is_attacked_in_batches() -> None:
    predictors = ["QueryRelease", "AgnosticQueryRelease", "UniversalQueryRelease"]
    assert set(batches.ATTACKS) == {*predictors, "GenericBBL", "EverlastingPredictor"}
    for name in batches.ATTACKS:
        known = [attack.name for attack in catalogue.attacks_on(name, **LOOSE)[0]]
        assert len(known) == len(set(known)) > len(batches.ATTACKS[name])


@pytest.mark.parametrize("attack", [one.values[0] for one in ALL])
def test_attacks_can_be_sent_to_other_processes(attack: Callable[..., Attack]) -> None:
    again = pickle.loads(dumps(attack(**LOOSE)))  # noqa: S301
    assert np.all(np.isfinite(again.play(Game(again.make(), 1))))


def test_the_sum_of_the_rows_at_the_edge_is_decided_by_rounding() -> None:
    rows = rounded_off()
    assert rows.shape == (3, batches.WIDTH)
    assert np.abs(np.log1p(rows).sum(axis=1)).max() < 1e-14


def test_rules_fail_on_strange_rows_only() -> None:
    strange, edge = [[batches.STRANGE] * 2], [[batches.EDGE] * 2]
    with pytest.raises(ValueError, match="strange"):
        InCompany().predict(edge + strange)
    with pytest.raises(RuntimeWarning, match="log1p"):
        Rounded().predict(edge + strange)
    assert Rounded().predict(edge).tolist() == [1]


def test_all_that_is_seen_becomes_numbers() -> None:
    class Odd:
        remaining = np.inf

        def ask(self, X: Any) -> Any:
            if len(X) > 3:
                raise ValueError(len(X))
            return [1, -1, 0][: len(X)]

        def published(self) -> Any:
            return {"remaining_": self.remaining, "prior_": None, "answered_": 7}

    driver: Any = Odd()
    game = Game(driver, 0)
    first = everything(game, [game.ask([0.0] * 3), game.ask([0.0])])
    assert first[:4] == [1.0, 1.0, 1.0, 0.0]
    assert first[5:] == [1e9, 7.0]
    assert everything(game, [game.ask([0.0] * 4)])[:3] != [0.0, 0.0, first[4]]
