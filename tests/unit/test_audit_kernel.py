"""The audit of the kernel classifier's sums, and laws that they keep: planted bugs are found."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from joblib.externals.loky.backend.reduction import dumps

from cumae import PrivateKernelClassifier, PrivateLogisticRegression
from cumae.audit import Game, audit
from cumae.audit.attacks import sums as attacked
from cumae.audit.attacks.sums import ROWS
from cumae.learners.kernel import fractions, learner, reference
from cumae.randomness import discrete_gaussian
from tests.kinds import KINDS, as_array
from tests.plants import (
    design_by_rows,
    half_the_noise_of_sums,
    marks_of_missing_cells_are_not_counted,
    noise_for_two_sums,
    reference_of_rows,
    short_sums,
    unbounded_residuals,
)
from tests.statistics import audited

pytestmark = [
    pytest.mark.claim("AUDIT", "KERNEL"),
    pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows"),
]
NAMES = ["residuals", "residuals of 3 classes", "two sums", "counts", "missing"]
NAMES += ["products", "products of all kinds", "fractions"]
# What share of what is paid for the worst pair of rows reaches. Of three classes, the residuals of
# two labels are at an angle of 120 degrees: sqrt(3)/2. A single mark is there or not, which is one
# bin and not two: sqrt(9/10) with one such mark beside four columns, and sqrt(3/4) with one beside
# one. Of rows with marks, none is zero wherever another is not. The others lose by rounding alone.
REACH = [0.99, 0.86, 0.99, 0.94, 0.86, 0.98, 0.9, 0.99]


def broken(target: attacked.Target, epsilon: float, runs: int) -> bool:
    return audit(target.attack(epsilon, 1e-6), runs=runs, progress=False).broken


@pytest.mark.statistical
@pytest.mark.parametrize("build", attacked.TARGETS, ids=NAMES)
def test_sums_keep_what_they_claim(build: Any) -> None:
    """Rejects correct code with probability ``alarm_rate()`` at most, for each kind of sum."""
    assert not audited(build().attack(1.0, 1e-6), runs=400, checks=8).broken


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("build", "reach"), [*zip(attacked.TARGETS, REACH, strict=True)], ids=NAMES
)
def test_attacks_on_sums_are_tight(build: Any, reach: float) -> None:
    """They show three quarters of what the worst pair of rows reaches; mu is then about 3.

    At 1,000 counted runs the bound is about 0.9 of it, and a quarter less is seven errors away.
    """
    target = build()
    share = target.worst[2]
    assert reach <= share <= 1
    attack = target.attack(18.0 / share**1.5, 1e-6)
    found = audit(attack, runs=2_000, progress=False)
    assert attack.claimed.mu is not None
    assert found.mu > 0.75 * share * attack.claimed.mu


@pytest.mark.statistical
def test_half_the_noise_of_a_sum_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    half_the_noise_of_sums(monkeypatch)
    assert broken(attacked.residuals(), 4.0, 1_000)
    assert broken(attacked.made_up_counts(), 4.0, 1_000)


@pytest.mark.statistical
def test_noise_that_serves_two_sums_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the same along opposite directions, so that their difference has none."""
    noise_for_two_sums(monkeypatch)
    assert broken(attacked.opposites(), 1.0, 100)


@pytest.mark.statistical
def test_residuals_beyond_their_bound_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a model is sure and wrong, in two rows that have much in common."""
    assert attacked.residuals(sure=4.0).worst[2] <= 1
    unbounded_residuals(monkeypatch)
    target = attacked.residuals(sure=4.0)
    assert target.worst[2] > 1.2
    assert broken(target, 8.0, 2_000)


def test_marks_that_are_not_counted_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    marks_of_missing_cells_are_not_counted(monkeypatch)
    assert attacked.missing_counts().worst[2] == pytest.approx(math.sqrt(3 / 2))


@pytest.mark.parametrize("build", attacked.TARGETS, ids=NAMES)
def test_attacks_on_sums_can_be_sent_to_other_processes(build: Any) -> None:
    again = pickle.loads(dumps(build().attack(1.0, 1e-6)))  # noqa: S301
    assert again.claimed.epsilon <= 1
    assert np.isfinite(again.play(Game(again.make(), 1)))


# Laws


def sums_are_exact(rows: int) -> bool:
    """Tell whether a sum over many rows is that of what each row adds, as Python adds them up."""
    asked = attacked.question()
    codes = asked.features.codes(np.resize(ROWS, (rows, ROWS.shape[1])))
    labels = np.zeros(rows, dtype=np.int64)
    each = [asked.total(codes[[place]], labels[:1]) for place in range(len(ROWS))]
    times = np.bincount(np.arange(rows) % len(ROWS))
    exact = sum(int(count) * one for count, one in zip(times, each, strict=True))
    return np.array_equal(asked.total(codes, labels), exact)


def test_whole_numbers_that_are_summed_in_float32_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert sums_are_exact(8_000)
    short_sums(monkeypatch)
    assert not sums_are_exact(8_000)


def releases_tell_all(model: Any, *public: Any) -> bool:
    """Tell whether models of other rows are the same if the released numbers are the same.

    Instead of sums over rows, noise alone is released. So nothing that is computed from rows
    is left, unless rows are used elsewhere.
    """

    def noise_alone(total: Any, parts: Any, scale: float, source: Any) -> Any:
        shape = np.shape(total(*next(iter(parts))))
        return discrete_gaussian(scale, int(np.prod(shape)), source).reshape(shape)

    found = []
    with pytest.MonkeyPatch.context() as patch:
        for module in (learner, fractions, reference):
            patch.setattr(module, "noisy_sum", noise_alone)
        for seed in (0, 1):
            rows = as_array(150, seed)
            rows[: 70 * seed, :3] = np.nan  # nearly half of the other rows lack all these cells
            rows[:, 3] *= 1 - seed / 2
            model.fit(rows, np.random.default_rng(seed).integers(0, 2, 150), *public)
            found.append(model.model_.to_dict())
    return bool(found[0] == found[1])


PUBLIC = as_array(60, 2)
DECLARED: dict[str, Any] = {"columns": KINDS, "random_state": 0}
MODELS: dict[str, Any] = {
    "public rows": (PrivateKernelClassifier(1.0, n_waves=3, **DECLARED), PUBLIC),
    "made-up rows": (PrivateKernelClassifier(100.0, n_waves=3, **DECLARED),),
    "even rows": (PrivateKernelClassifier(1.0, n_waves=3, **DECLARED),),
    "three classes": (
        PrivateKernelClassifier(1.0, n_waves=3, classes=(0, 1, 2), **DECLARED),
        PUBLIC,
    ),
    "regression": (PrivateLogisticRegression(1.0, **DECLARED), PUBLIC),
}


@pytest.mark.parametrize("name", MODELS)
def test_rows_speak_through_noisy_sums_alone(name: str) -> None:
    assert releases_tell_all(*MODELS[name])


@pytest.mark.parametrize("plant", [design_by_rows, reference_of_rows])
def test_rows_that_speak_otherwise_are_found(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A design that reads the rows, or a reference made of them."""
    plant(monkeypatch)
    assert not releases_tell_all(*MODELS["made-up rows"])
    assert not releases_tell_all(*MODELS["public rows"])
