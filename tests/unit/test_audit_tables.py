"""The audit of sanitizers: bugs are found, and what is right is left alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from joblib.externals.loky.backend.reduction import dumps

from cumae import sanitizers
from cumae.audit import audit
from cumae.audit.attacks import sanitizers as tables
from cumae.sanitizers import Quantiles
from tests.statistics import audited

if TYPE_CHECKING:
    from collections.abc import Callable

    from cumae.audit import Attack

pytestmark = pytest.mark.claim("AUDIT")
BUILDS = [tables.quantiles, tables.ranges, tables.stable_thresholds]
BUILDS += [tables.small_database, tables.multiplicative_weights]


@pytest.mark.statistical
@pytest.mark.claim("QUANT", "RANGES", "STABLE", "SMALLDB", "MW")
@pytest.mark.parametrize("build", BUILDS)
def test_sanitizers_keep_what_they_claim(build: Callable[..., Attack]) -> None:
    assert not audited(build(1.0, 1e-6), runs=200, checks=5).broken


@pytest.mark.parametrize("build", BUILDS)
def test_a_sanitizer_with_more_budget_than_it_claims_is_found(
    build: Callable[..., Attack],
) -> None:
    """Planted: 16 times the epsilon that is stated."""
    attack = replace(build(16.0, 1e-6), claimed=build(1.0, 1e-6).claimed)
    assert audit(attack, runs=400, progress=False).broken


def test_every_sanitizer_is_attacked() -> None:
    named = {name for name in sanitizers.__all__ if hasattr(getattr(sanitizers, name), "sanitize")}
    assert named - {"Sanitizer"} == set(tables.ATTACKS)


@pytest.mark.parametrize("build", BUILDS)
def test_attacks_can_be_sent_to_other_processes(build: Callable[..., Attack]) -> None:
    assert dumps(build(1.0, 1e-6))


def test_questions_are_not_answered() -> None:
    driver = tables.Sanitized(lambda: Quantiles(1.0, bounds=(0, 1)))
    driver.train(np.zeros((5, 1)), np.zeros(5))
    assert driver.ask([[0.5]]) == [None]
