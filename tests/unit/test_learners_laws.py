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
from cumae.concepts import FiniteClass, Halfspaces, Rectangles, Threshold, Thresholds
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
    PrivateLearner,
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

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

ROWS = 120
ONE, TWO = [(0.0, 1.0)], [(0.0, 1.0), (0.0, 1.0)]
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


# Numbers that may be missing, categories with None among them, true and false, and numbers.
ALL_KINDS: list[Any] = [(0.0, 1.0, "missing"), [0, 1, 2, None], bool, (0.0, 1.0)]


def rows_of_all_kinds() -> Neighbours:
    """Neighbours that differ in a row with another label and other cells missing."""
    coins = np.random.default_rng(7)
    X = (coins.random((ROWS, 4)) * 10).round() / 10
    X[:, 1], X[:, 2] = coins.integers(0, 3, ROWS), coins.integers(0, 2, ROWS)
    y = (X[:, 3] > 0.5).astype(int)
    X[::5, 0], X[::7, 1] = np.nan, np.nan
    new = [0.5, np.nan, 0.0, 1.0]  # instead of a row whose number is missing
    return PublicNeighbours.replacing(X, y, 60, new, 1 - y[60], queries=X[:20])


def private(epsilon: float = 1.0, columns: Any = ONE) -> PrivateLearner:
    return PrivateLearner(Thresholds(), epsilon, columns=columns, n_points=10)


HALF = PrivateLearner(Halfspaces(), 1.0, columns=TWO, n_points=3)
SEMI = SemiPrivateLearner(Thresholds(), 1.0)
CASES: dict[str, tuple[Any, Neighbours]] = {
    "PrivateLearner": (private(), rows(1)),
    "PrivateLearner, trees": (PrivateLearner(columns=TWO), rows(2)),
    "PrivateLearner, halfspaces": (HALF, rows(2)),
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
    "SemiPrivateLearner": (SEMI, rows(1, public=True)),
    "SemiPrivateLearner, two columns": (SemiPrivateLearner(), rows(2, public=True)),
    "LabelBoost": (LabelBoost(private(), Thresholds(), 3.0), rows(1, unlabelled=True)),
    "LabelBoost, base of halfspaces": (
        LabelBoost(HALF, Rectangles(), 3.0, n_labelled=20, n_unlabelled=20),
        rows(2, unlabelled=True),
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
        rows(2, unlabelled=True),
    ),
    "ActiveLearner": (
        ActiveLearner(GenericLearner(Thresholds(), 2.0, columns=ONE), 1.0, n_labels=20),
        rows(1),
    ),
    "ActiveLearner, paper": (
        ActiveLearner(private(1.0), 0.8, n_labels=40, variant="paper"),
        rows(1),
    ),
    "ActiveLearner, halfspaces": (ActiveLearner(HALF, 1.0, n_labels=40), rows(2)),
    "ActiveLearner of LabelBoost": (
        ActiveLearner(LabelBoost(SEMI, Thresholds(), 3.0), 3.0, n_labels=30),
        rows(1, public=True),
    ),
    "PrivateKernelClassifier": (
        PrivateKernelClassifier(n_waves=3),
        rows(2, public=True),
    ),
    "PrivateKernelClassifier, no public rows": (
        PrivateKernelClassifier(n_waves=3, columns=TWO),
        rows(2),
    ),
    "PrivateKernelClassifier, all kinds": (
        PrivateKernelClassifier(9.0, n_waves=3, columns=ALL_KINDS),
        rows_of_all_kinds(),
    ),
    "PrivateLogisticRegression, all kinds": (
        PrivateLogisticRegression(columns=ALL_KINDS),
        rows_of_all_kinds(),
    ),
    "PrivateBooster, all kinds": (
        PrivateBooster(columns=ALL_KINDS, n_rounds=3),
        rows_of_all_kinds(),
    ),
    "PrivateLearner, all kinds": (PrivateLearner(columns=ALL_KINDS), rows_of_all_kinds()),
    "PrivateLogisticRegression": (PrivateLogisticRegression(bounds=TWO), rows(2)),
    "PrivateLogisticRegression, curves": (
        PrivateLogisticRegression(curves=4),
        rows(2, public=True),
    ),
    "PrivateLogisticRegression, undeclared": (
        PrivateLogisticRegression(12.0, curves=6),  # that 120 rows show their ranges
        rows(2),
    ),
    "PrivateBooster": (PrivateBooster(columns=TWO, n_rounds=3), rows(2)),
    "PrivateBooster, start": (PrivateBooster(1.0, 1e-6, n_rounds=2, columns=TWO), rows(2)),
    "PrivateBooster, undeclared": (PrivateBooster(12.0, 1e-6, n_rounds=2), rows(2)),
    "PrivateBooster, halfspaces": (
        PrivateBooster(columns=TWO, n_rounds=3, n_cuts=3, concept_class=Halfspaces()),
        rows(2),
    ),
    "OneVsRest": (OneVsRest(private(), [0, 1], 1.0), rows(1)),
    "Adapter": (Adapter(LogisticRegression(), 1.0), rows(2)),
    "HypothesisLearner": (HypothesisLearner(private(), GRID), rows(1)),
    "AccuracyBoost": (AccuracyBoost(private(), blocks=5), rows(1)),
    "AccuracyBoost, foreign": (AccuracyBoost(Foreign(), blocks=5), rows(1)),
    "AccuracyBoost of LabelBoost": (
        AccuracyBoost(LabelBoost(HALF, Rectangles(), 3.0), blocks=3),
        rows(2, unlabelled=True),
    ),
    "PublicDataReduction": (
        PublicDataReduction(SEMI, GRID, n_public=5, n_private=120, one_in=2),
        rows(1),
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
