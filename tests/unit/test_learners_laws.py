"""Every learner keeps the laws of learners, and what the laws are there for is found by them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import cumae
from cumae import learners
from cumae.checks import LEARNER_LAWS, Neighbours, PublicNeighbours, check_learner
from cumae.checks.learners import (
    a_selection_is_used_once,
    half_done_it_stays_in_its_process,
    half_done_there_is_only_one,
    refusals_ignore_the_coins,
    refusals_spend_nothing,
    warnings_ignore_the_rows,
)
from cumae.concepts import FiniteClass, Halfspaces, Rectangles, Stumps, Threshold, Thresholds
from cumae.learners import (
    AccuracyBoost,
    ActiveLearner,
    Adapter,
    GenericLearner,
    HypothesisLearner,
    IterLabelBoost,
    LabelBoost,
    Learner,
    OneVsRest,
    PrivateBooster,
    PrivateKernelClassifier,
    PrivateKernelRegressor,
    PrivateLearner,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PublicDataReduction,
    SemiPrivateLearner,
)
from cumae.learners.active import Drawn
from cumae.learners.base import Rows
from cumae.learners.wrappers import relabelled
from cumae.learners.wrappers.base import Wrapper
from cumae.learners.wrappers.relabelled import RelabellingWrapper
from cumae.privacy import REPLACE_ONE, Guarantee
from tests.kinds import FEW, KINDS, OPEN, neighbours

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

ROWS = 120
ONE = [(0.0, 1.0)]
GRID = [[x / 10] for x in range(11)]


class Foreign(BaseEstimator):  # type: ignore[misc]  # untyped base
    """Not of cumae: refuses what is not finite, as scikit-learn does, and warns of large cells."""

    epsilon, delta = 1.0, 0.0

    def fit(self, X: ArrayLike, y: ArrayLike, X_public: Any = None) -> Foreign:
        table = np.asarray(X, dtype=float)
        if not np.isfinite(table).all():
            raise ValueError("Input X contains infinity.")
        np.exp(np.abs(table))  # overflows
        self.guarantee_ = Guarantee(1.0, 0.0, "one row", claims=("THEIRS",), relation=REPLACE_ONE)
        return self

    def predict(self, X: ArrayLike) -> Any:
        return (np.asarray(X, dtype=float)[:, 0] > 0.5).astype(int)


def rows(width: int, *, unlabelled: bool = False, public: bool = False) -> Neighbours:
    """Neighbours that differ in a row with another label, far out."""
    X = (np.random.default_rng(5).random((ROWS, width)) * 10).round() / 10
    y: Any = (X[:, 0] > 0.5).astype(int)
    if unlabelled:
        y = np.where(np.arange(ROWS) % 2, y, -1)
    row = 61
    new, label = np.full(width, 40.0), 1 - y[row]
    queries = GRID if width == 1 else X[:20]
    shown = np.random.default_rng(6).random((70, width)) if public else None
    return PublicNeighbours.replacing(X, y, row, new, label, queries=queries, X_public=shown)


def private(epsilon: float = 1.0, columns: Any = ONE) -> PrivateLearner:
    return PrivateLearner(Thresholds(), epsilon, columns=columns, n_points=10)


def stumps(epsilon: float = 1.0) -> PrivateLearner:
    return PrivateLearner(Stumps(), epsilon, columns=KINDS, n_points=3)


# Neighbours with columns of all kinds; of these some without labels, some with public rows beside.
ALL, SOME, SHOWN = neighbours(), neighbours(unlabelled=True), neighbours(public=True)
FEW_ALL, FEW_SOME = neighbours(few=True), neighbours(few=True, unlabelled=True)
HALF = PrivateLearner(Halfspaces(), 1.0, columns=FEW, n_points=2)
SEMI = SemiPrivateLearner(Thresholds(), 1.0)
CASES: dict[str, tuple[Any, Neighbours]] = {
    "PrivateLearner": (private(), rows(1)),
    "PrivateLearner, trees": (PrivateLearner(columns=KINDS), ALL),
    "PrivateLearner, halfspaces": (HALF, FEW_ALL),
    "PrivateLearner, all kinds and public rows": (PrivateLearner(columns=KINDS), SHOWN),
    "PrivateLearner, undeclared": (PrivateLearner(Thresholds()), rows(1, public=True)),
    "PrivateLearner, finite": (
        PrivateLearner(FiniteClass([Threshold(x / 10) for x in range(10)]), columns=ONE),
        rows(1),
    ),
    "GenericLearner": (GenericLearner(Thresholds(), columns=ONE), rows(1, unlabelled=True)),
    "GenericLearner, undeclared": (GenericLearner(Thresholds()), rows(1, unlabelled=True)),
    "GenericLearner, stable": (
        GenericLearner(None, 1.0, 1e-6, sanitizer="stable"),
        rows(2, unlabelled=True),
    ),
    "GenericLearner, all kinds": (GenericLearner(Stumps(), columns=KINDS), SOME),
    "GenericLearner, stable and all kinds": (
        GenericLearner(Stumps(), 1.0, 1e-6, sanitizer="stable", columns=KINDS),
        SOME,
    ),
    "SemiPrivateLearner": (SEMI, rows(1, public=True)),
    "SemiPrivateLearner, two columns": (SemiPrivateLearner(), rows(2, public=True)),
    "SemiPrivateLearner, all kinds": (SemiPrivateLearner(columns=KINDS), SHOWN),
    "LabelBoost": (LabelBoost(private(), Thresholds(), 3.0), rows(1, unlabelled=True)),
    "LabelBoost, base of halfspaces": (
        LabelBoost(HALF, Rectangles(), 3.0, n_labelled=20, n_unlabelled=20),
        FEW_SOME,
    ),
    "LabelBoost, all kinds": (LabelBoost(stumps(), Stumps(), 3.0), SOME),
    "LabelBoost, all kinds of a foreign base": (
        LabelBoost(
            Adapter(LogisticRegression(), 1.0),
            Stumps(),
            3.0,
            n_labelled=20,
            n_unlabelled=10,
            columns=KINDS,
        ),
        SOME,
    ),
    "LabelBoost, undeclared": (
        LabelBoost(SEMI, Thresholds(), 3.0, n_labelled=20, n_unlabelled=20),
        rows(1, unlabelled=True, public=True),
    ),
    "LabelBoost, foreign base": (
        LabelBoost(
            Adapter(LogisticRegression(), 1.0), Thresholds(), 3.0, n_labelled=20, n_unlabelled=10
        ),
        rows(1, unlabelled=True),
    ),
    "IterLabelBoost": (IterLabelBoost(private(), Thresholds(), 4.0), rows(1, unlabelled=True)),
    "IterLabelBoost, base of halfspaces": (
        IterLabelBoost(HALF, Rectangles(), 4.0),
        FEW_SOME,
    ),
    "IterLabelBoost, all kinds": (IterLabelBoost(stumps(), Stumps(), 4.0), SOME),
    "ActiveLearner": (
        ActiveLearner(GenericLearner(Thresholds(), 2.0, columns=ONE), 1.0, n_labels=20),
        rows(1),
    ),
    "ActiveLearner, paper": (
        ActiveLearner(private(1.0), 0.8, n_labels=40, variant="paper"),
        rows(1),
    ),
    "ActiveLearner, halfspaces": (ActiveLearner(HALF, 1.0, n_labels=40), FEW_ALL),
    "ActiveLearner, all kinds": (
        ActiveLearner(GenericLearner(Stumps(), 2.0, columns=KINDS), 1.0, n_labels=20),
        ALL,
    ),
    "ActiveLearner of LabelBoost": (
        ActiveLearner(LabelBoost(SEMI, Thresholds(), 3.0), 3.0, n_labels=30),
        rows(1, public=True),
    ),
    "PrivateKernelClassifier": (
        PrivateKernelClassifier(n_waves=3),
        rows(2, public=True),
    ),
    "PrivateKernelClassifier, all kinds and public rows": (
        PrivateKernelClassifier(n_waves=3, columns=KINDS),
        SHOWN,
    ),
    "PrivateKernelClassifier, no public rows": (
        PrivateKernelClassifier(n_waves=3, columns=KINDS),
        ALL,
    ),
    "PrivateKernelClassifier, made-up rows": (
        PrivateKernelClassifier(9.0, n_waves=3, columns=KINDS),
        ALL,
    ),
    "PrivateLogisticRegression": (PrivateLogisticRegression(bounds=KINDS), ALL),
    "PrivateLogisticRegression, curves": (
        PrivateLogisticRegression(curves=4, columns=KINDS),
        SHOWN,
    ),
    "PrivateLogisticRegression, undeclared": (
        PrivateLogisticRegression(12.0, curves=6),  # that 120 rows show their ranges
        rows(2),
    ),
    "PrivateLogisticRegression, no ranges": (PrivateLogisticRegression(12.0, columns=OPEN), ALL),
    "PrivateBooster": (PrivateBooster(columns=KINDS, n_rounds=3), ALL),
    "PrivateBooster, start": (PrivateBooster(1.0, 1e-6, n_rounds=2, columns=KINDS), ALL),
    "PrivateBooster, no ranges": (PrivateBooster(12.0, 1e-6, n_rounds=2, columns=OPEN), ALL),
    "PrivateBooster, halfspaces": (
        PrivateBooster(columns=FEW, n_rounds=3, n_cuts=3, concept_class=Halfspaces()),
        FEW_ALL,
    ),
    "OneVsRest": (OneVsRest(private(), [0, 1], 1.0), rows(1)),
    "OneVsRest, all kinds": (OneVsRest(stumps(), [0, 1], 1.0), ALL),
    "Adapter": (Adapter(LogisticRegression(), 1.0), rows(2)),
    "Adapter, all kinds": (Adapter(LogisticRegression(), 1.0, columns=KINDS), ALL),
    "HypothesisLearner": (HypothesisLearner(private(), GRID), rows(1)),
    "HypothesisLearner, all kinds": (HypothesisLearner(stumps(), ALL.queries), ALL),
    "AccuracyBoost": (AccuracyBoost(private(), blocks=5), rows(1)),
    "AccuracyBoost, all kinds": (AccuracyBoost(stumps(), blocks=5), ALL),
    "AccuracyBoost, foreign": (AccuracyBoost(Foreign(), blocks=5), rows(1)),
    "AccuracyBoost of LabelBoost": (
        AccuracyBoost(LabelBoost(HALF, Rectangles(), 3.0), blocks=3),
        FEW_SOME,
    ),
    "PublicDataReduction": (
        PublicDataReduction(SEMI, GRID, n_public=5, n_private=120, one_in=2),
        rows(1),
    ),
    "PublicDataReduction, all kinds": (
        PublicDataReduction(
            SemiPrivateLearner(Stumps(), columns=KINDS),
            ALL.queries,
            n_public=5,
            n_private=120,
            one_in=2,
        ),
        ALL,
    ),
    "PrivateKernelRegressor, all kinds": (
        PrivateKernelRegressor(1.0, 1e-6, (0, 1), n_waves=2, columns=KINDS),
        ALL,
    ),
    "PrivateLinearRegression, all kinds": (
        PrivateLinearRegression(1.0, 1e-6, (0, 1), columns=KINDS),
        ALL,
    ),
    "PublicDataReduction, foreign": (
        PublicDataReduction(Foreign(), GRID, n_public=5, n_private=120, one_in=2),
        rows(1),
    ),
}


@pytest.mark.claim("ACTIVE")
@pytest.mark.claim("ITER")
@pytest.mark.claim("REDUCE")
@pytest.mark.claim("OVR")
@pytest.mark.claim("REGRESS")
@pytest.mark.parametrize("law", LEARNER_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("case", CASES)
def test_every_learner_keeps_the_laws(case: str, law: Any) -> None:
    law(*CASES[case])


def test_no_learner_is_forgotten() -> None:
    kinds = {type(learner) for learner, _ in CASES.values()}
    named = [getattr(where, name) for where in (cumae, learners) for name in where.__all__]
    found = {kind for kind in named if isinstance(kind, type) and issubclass(kind, Learner)}
    assert found - {Learner} == kinds
    assert [kind for kind in kinds if hasattr(kind, "select")] == [ActiveLearner]
    # Each takes columns, or has a base that does.
    odd = [learner for learner, pair in CASES.values() if np.isnan(pair.X).any()]
    assert {type(learner) for learner in odd} == kinds


def test_all_laws_are_run() -> None:
    check_learner(*CASES["PrivateLearner"])


def breaks(law: Any, case: str) -> None:
    learner, pair = CASES[case]
    law(learner, pair)
    pytest.fail(f"{law.__name__} did not find what was planted")


# Planted: samples that can be learnt from twice.


@pytest.mark.claim("ACTIVE")
def test_planted_copies_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what was drawn refused to be copied, which copy.copy does not ask."""

    def refused(*_: Any) -> Any:
        raise cumae.LiveState("planted")

    monkeypatch.delattr(ActiveLearner, "__reduce_ex__")
    monkeypatch.setattr(Drawn, "__reduce_ex__", refused)
    with pytest.raises(AssertionError, match="LiveState was expected, but it ended as done"):
        breaks(half_done_there_is_only_one, "ActiveLearner")


@pytest.mark.claim("ACTIVE")
def test_planted_forks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plain: Any = ActiveLearner.fit
    monkeypatch.setattr(ActiveLearner, "fit", plain.__wrapped__)
    with pytest.raises(AssertionError, match="in a forked process a fit ended as done"):
        breaks(half_done_it_stays_in_its_process, "ActiveLearner")


@pytest.mark.claim("ACTIVE")
def test_planted_threads_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a lock, all threads pass the checks before one of them takes the sample."""
    plain: Any = ActiveLearner.fit
    learn, gate = ActiveLearner._learn, threading.Barrier(8)

    def together(self: Any, *rest: Any) -> None:
        gate.wait(20)
        learn(self, *rest)

    monkeypatch.setattr(ActiveLearner, "fit", plain.__wrapped__)
    monkeypatch.setattr(ActiveLearner, "_learn", together)
    with pytest.raises(AssertionError, match="threads ended as"):
        breaks(a_selection_is_used_once, "ActiveLearner")


# Planted: refusals that tell which rows were drawn, or that come after the payment.


def unchecked(self: Any, rows: Any) -> None:
    """Leave it to what is wrapped to refuse the rows that it gets."""


@pytest.mark.claim("ITER")
@pytest.mark.claim("ACTIVE")
@pytest.mark.claim("REDUCE")
@pytest.mark.parametrize(
    ("kind", "case"),
    [
        (RelabellingWrapper, "LabelBoost, base of halfspaces"),
        (RelabellingWrapper, "LabelBoost, foreign base"),
        (RelabellingWrapper, "IterLabelBoost, base of halfspaces"),
        (Wrapper, "ActiveLearner"),
        (Wrapper, "ActiveLearner, halfspaces"),
        (PublicDataReduction, "PublicDataReduction"),
        (PublicDataReduction, "PublicDataReduction, foreign"),
    ],
)
def test_planted_refusals_of_drawn_rows_are_found(
    kind: Any, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, "_check_readable", unchecked)
    with pytest.raises(AssertionError, match="depends on the coins"):
        breaks(refusals_ignore_the_coins, case)


@pytest.mark.claim("ITER")
def test_planted_cells_that_nobody_has_read_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """An undeclared column was read when it was drawn from, a missing cell and all."""
    monkeypatch.setattr(RelabellingWrapper, "_check_readable", unchecked)
    monkeypatch.setattr(relabelled, "check_column", lambda cells: cells)
    with pytest.raises(AssertionError, match="depends on the coins"):
        breaks(refusals_ignore_the_coins, "LabelBoost, undeclared")


def test_planted_refusals_after_the_payment_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def later(self: Any, columns: Any, X: Any, labels: Any, *public: Any) -> Rows:
        return Rows(np.asarray(X, dtype=float), labels)

    monkeypatch.setattr(PrivateLearner, "_read", later)
    with pytest.raises(AssertionError, match="was paid for"):
        breaks(refusals_spend_nothing, "PrivateLearner")


def test_planted_warnings_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plain: Any = Learner._fit

    def loud(self: Any, *rest: Any) -> Any:
        np.exp(np.abs(np.asarray(rest[0])))
        return plain(self, *rest)

    monkeypatch.setattr(Learner, "_fit", loud)
    with pytest.raises(AssertionError, match="a cell made a fit warn"):
        breaks(warnings_ignore_the_rows, "PrivateLogisticRegression")
