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
from cumae.concepts import FiniteClass
from cumae.learners.wrappers import relabelled
from tests.statistics import audited

if TYPE_CHECKING:
    from cumae.audit import Attack

pytestmark = pytest.mark.claim("AUDIT")
ALL = [build(epsilon=1.0, delta=1e-6) for builds in models.ATTACKS.values() for build in builds]
# The others take the same draws, or too long for the suite; benchmarks/audit.py runs them all.
FAST = [
    models.private_learner(1.0),
    models.semi_private_learner(1.0),
    models.generic_label(1.0),
    models.private_booster(1.0),
    models.active_learner(1.0),
]


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
    assert not audited(attack, runs=200, checks=5).broken


@pytest.mark.statistical
def test_a_draw_with_more_budget_than_it_claims_is_found() -> None:
    """Planted: four times the epsilon that is stated."""
    attack = models.private_learner(4.0)
    claim = models.private_learner(1.0).claimed
    assert broken(replace(attack, claimed=claim), 400)


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
    """An `Adapter` is left out: it promises what the learner inside promises, and adds nothing."""
    names = " ".join(attack.name for attack in ALL)
    assert [learner for learner in cumae._HOMES["cumae.learners"] if learner not in names] == [
        "Adapter"
    ]


@pytest.mark.parametrize("attack", ALL, ids=[attack.name for attack in ALL])
def test_attacks_can_be_sent_to_other_processes(attack: Attack) -> None:
    again = pickle.loads(dumps(attack))  # noqa: S301
    assert again.claimed.epsilon <= 1
    assert np.all(np.isfinite(again.play(Game(again.make(), 1))))
