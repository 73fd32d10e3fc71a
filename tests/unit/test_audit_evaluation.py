"""The audit of evaluations: bugs are found, and what is right is left alone."""

from __future__ import annotations

from typing import Any

import pytest
from joblib.externals.loky.backend.reduction import dumps

from cumae.audit import audit
from cumae.audit.attacks.evaluation import a_test_row
from cumae.counting.table import chosen_noise
from cumae.evaluation import Evaluation, evaluate
from tests.statistics import audited

pytestmark = [pytest.mark.claim("AUDIT"), pytest.mark.claim("EVAL")]


@pytest.mark.statistical
@pytest.mark.parametrize("n_classes", [2, 5])
def test_evaluations_keep_what_they_claim(n_classes: int) -> None:
    assert not audited(a_test_row(1.0, 0.0, n_classes=n_classes), runs=180, checks=2).broken


def generous(*given: Any, epsilon: float, **more: Any) -> Evaluation:
    """Add the noise of one table to each of seven."""
    return evaluate(*given, epsilon=7 * epsilon, **more)


def test_an_evaluation_that_pays_for_one_of_several_tables_is_found() -> None:
    law = chosen_noise(7.0, 0.0, 7).to_facts(), chosen_noise(1.0, 0.0, 1).to_facts()
    assert law[0]["epsilon"] / law[0]["sensitivity"] == law[1]["epsilon"] / law[1]["sensitivity"]
    attack = a_test_row(1.0, 0.0, n_classes=5, release=generous)
    assert audit(attack, runs=300, progress=False).broken


def test_attacks_can_be_sent_to_other_processes() -> None:
    assert dumps(a_test_row(1.0, 1e-6))
