"""The audit of published learners: bugs are found, and what is right is left alone."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from joblib.externals.loky.backend.reduction import dumps

import cumae
from cumae.audit import Game, audit
from cumae.audit.attacks import learners as models
from cumae.audit.attacks import numbers
from cumae.concepts import FiniteClass
from cumae.learners.wrappers import relabelled
from tests.plants import missing_numbers_become_means
from tests.statistics import audited

if TYPE_CHECKING:
    from cumae.audit import Attack

pytestmark = pytest.mark.claim("AUDIT")
ALL = [build(epsilon=1.0, delta=1e-6) for builds in models.ATTACKS.values() for build in builds]
# The others take the same draws, or too long for the suite; benchmarks/audit.py runs them all.
QUICK = [
    models.private_learner,
    models.semi_private_learner,
    models.generic_label,
    models.private_booster,
    models.active_learner,
]
LABELS = [build(1.0) for build in QUICK]
CELLS = [build(1.0, missing=True) for build in QUICK[:4]]
FAST = LABELS + CELLS


class Repeated(FiniteClass):
    """Planted: a class with forty candidates for each labelling that a point adds, not one.

    It still says that one point changes weights by a factor of two at most (k = 2).
    """

    def _representatives(self, points: Any) -> Any:
        labels = self._labels(points)
        cut = np.flatnonzero(labels.min(axis=1) != labels.max(axis=1))
        return np.append(super()._representatives(points), np.repeat(cut, 39))


def broken(attack: Attack, runs: int) -> bool:
    return audit(attack, runs=runs, progress=False).broken


@pytest.mark.statistical
@pytest.mark.parametrize("attack", FAST, ids=[attack.name for attack in FAST])
def test_learners_keep_what_they_claim(attack: Attack) -> None:
    runs = (
        200 if attack.name.startswith("ActiveLearner") else 100
    )  # it has more releases to tell by
    assert not audited(attack, runs=runs, checks=9).broken


@pytest.mark.statistical
def test_a_draw_with_more_budget_than_it_claims_is_found() -> None:
    """Planted: four times the epsilon that is stated, for a label and for a missing cell."""
    for claimed in (LABELS[0], CELLS[0]):
        attack = models.private_learner(4.0, missing=claimed is CELLS[0])
        assert broken(replace(attack, claimed=claimed.claimed), 400)


@pytest.mark.statistical
@pytest.mark.parametrize("attack", CELLS, ids=[attack.name for attack in CELLS])
def test_gaps_that_are_filled_from_all_rows_are_found(
    attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One number would become that of all rows which lack theirs."""
    missing_numbers_become_means(monkeypatch)
    assert broken(attack, 300)


@pytest.mark.statistical
def test_label_boosting_with_a_wrong_k_is_found() -> None:
    """One point makes one labelling of the others 40 times as likely; 4 times is paid for.

    With one candidate for each labelling it is not flagged: see the next test.
    """
    attack = models.boosted_point(1.6, concept=Repeated)
    assert attack.claimed.epsilon == models.boosted_point(1.6).claimed.epsilon
    assert broken(attack, 260)


@pytest.mark.statistical
def test_label_boosting_keeps_what_it_claims() -> None:
    assert not audited(models.boosted_point(1.6), runs=300).broken
    subsampled = models.boosted_label(1.0, n_labelled=400, epsilon_boost=6.0)
    assert not audited(subsampled, runs=200).broken


@pytest.mark.statistical
def test_label_boost_without_subsampling_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One label of 400 is kept; with all of them, balanced, a single one decides the draw."""
    monkeypatch.setattr(relabelled, "sample", lambda rows, count, source: np.arange(rows))
    assert broken(models.boosted_label(1.0, n_labelled=400, epsilon_boost=6.0), 300)


def test_every_learner_is_attacked() -> None:
    """An `Adapter` is left out: it promises what the learner inside promises, and adds nothing.

    Learners of numbers are attacked as the sums that they release.
    """
    names = [attack.name for attack in ALL]
    for attacked in (names, [name for name in names if name.endswith("a missing cell")]):
        learners = {name.partition(",")[0] for name in attacked}
        assert set(cumae._HOMES["cumae.learners"]) - learners == {"Adapter", *numbers.ATTACKS}


@pytest.mark.parametrize("attack", ALL, ids=[attack.name for attack in ALL])
def test_attacks_can_be_sent_to_other_processes(attack: Attack) -> None:
    again = pickle.loads(dumps(attack))  # noqa: S301
    assert again.claimed.epsilon <= 1
    assert np.all(np.isfinite(again.play(Game(again.make(), 1))))
