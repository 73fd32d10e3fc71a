"""Evaluations: their figures are right without noise, their price is taken, and intervals hold."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn import metrics

from cumae import Budget, PrivateClassifier, QueryRelease
from cumae.counting.bins import ScoreBins, bin_count, declared_bins, even_bins
from cumae.counting.intervals import Figure, averaged
from cumae.counting.table import (
    NoiseLaw,
    cells_of,
    chosen_noise,
    counted,
    planned_layout,
    table_count,
)
from cumae.errors import BudgetExhausted, InvalidData, InvalidParameter
from cumae.evaluation import Evaluation, evaluate
from cumae.mechanisms import GaussianNoise, LaplaceNoise
from tests.statistics import binomial_rejects

pytestmark = pytest.mark.claim("EVAL")

RNG = np.random.default_rng(0)


class Chances:
    """A model whose chances stand in the rows."""

    def __init__(self, n_classes: int = 2) -> None:
        self.classes_ = np.arange(n_classes)

    def predict_proba(self, X: Any) -> Any:
        return np.asarray(X)


class Answers:
    """A model that answers the class with the largest number in a row."""

    def __init__(self, n_classes: int = 2) -> None:
        self.classes_ = np.arange(n_classes)

    def predict(self, X: Any) -> Any:
        return np.argmax(np.asarray(X), axis=1)


def drawn(count: int, n_classes: int = 2, seed: int = 0) -> tuple[Any, Any]:
    """Return chances and labels."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, n_classes, count)
    odds = rng.normal(size=(count, n_classes))
    odds[np.arange(count), label] += 1.2
    chances = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    return chances, label


def private(chances: Any, label: Any, **more: Any) -> Evaluation:
    given = {"epsilon": 1.0, "trained_on": False} | more
    return evaluate(Chances(chances.shape[1]), chances, label, **given)


def test_public_figures_are_those_of_scikit_learn() -> None:
    chances, label = drawn(700)
    found = evaluate(Chances(), chances, label, public=True, trained_on=False).overall
    score, answer = chances[:, 1], (chances[:, 1] > 0.5).astype(int)
    for figure, truth in (
        (found.accuracy, metrics.accuracy_score(label, answer)),
        (found.balanced_accuracy, metrics.balanced_accuracy_score(label, answer)),
        (found.sensitivity[1], metrics.recall_score(label, answer)),
        (found.specificity[1], metrics.recall_score(label, answer, pos_label=0)),
        (found.precision[1], metrics.precision_score(label, answer)),
        (found.auc[1], metrics.roc_auc_score(label, score)),
        (found.average_precision[1], metrics.average_precision_score(label, score)),
        (found.log_loss, metrics.log_loss(label, np.clip(chances, 1e-3, 1 - 1e-3))),
        (found.brier, metrics.brier_score_loss(label, score)),
        (found.commonest, max(label.mean(), 1 - label.mean())),
    ):
        assert figure is not None
        assert figure.value == pytest.approx(truth, abs=1e-9)
        assert figure.low < truth < figure.high
        assert figure.hidden == pytest.approx(0.0, abs=1e-12)
    assert 700 * np.array(found.confusion.value) == pytest.approx(
        metrics.confusion_matrix(label, answer)
    )
    curve = found.roc[1]
    for place in (0, 50, 150):
        above = score > curve.thresholds[place]
        assert curve.across.value[place] == pytest.approx(above[label == 0].mean())
        assert curve.up.value[place] == pytest.approx(above[label == 1].mean())


def test_tied_chances_count_as_everywhere() -> None:
    chances, label = drawn(500)
    chances = np.round(chances, 1)
    found = evaluate(Chances(), chances, label, public=True, trained_on=False).overall
    assert found.auc[1].value == pytest.approx(metrics.roc_auc_score(label, chances[:, 1]))
    wanted = metrics.average_precision_score(label, chances[:, 1])
    assert found.average_precision[1].value == pytest.approx(wanted)


def test_public_figures_of_five_classes() -> None:
    chances, label = drawn(900, 5)
    found = evaluate(Chances(5), chances, label, public=True, trained_on=False).overall
    answer = chances.argmax(axis=1)
    assert found.accuracy.value == pytest.approx((answer == label).mean())
    assert found.balanced_accuracy.value == pytest.approx(
        metrics.balanced_accuracy_score(label, answer)
    )
    assert found.log_loss is not None
    assert found.brier is not None
    assert found.macro_auc is not None
    assert found.log_loss.value == pytest.approx(metrics.log_loss(label, chances), abs=2e-3)
    wanted = ((chances - np.eye(5)[label]) ** 2).sum(axis=1).mean()
    assert found.brier.value == pytest.approx(wanted)
    assert found.macro_auc.value == pytest.approx(
        metrics.roc_auc_score(label, chances, multi_class="ovr")
    )


@pytest.mark.parametrize("n_classes", [2, 5])
def test_without_noise_bins_hold_what_they_hide(n_classes: int) -> None:
    chances, label = drawn(3_000, n_classes)
    exact = evaluate(Chances(n_classes), chances, label, public=True, trained_on=False).overall
    binned = private(chances, label, epsilon=math.inf, bins=20).overall
    known = dict(exact.named())
    for name, figure in binned.named():
        hidden = figure.hidden + 1e-9
        assert figure.value - hidden <= known[name].value <= figure.value + hidden, name
    assert binned.auc[1].hidden > 0.005


def neighbours(n_classes: int) -> tuple[Any, Any]:
    chances, label = drawn(40, n_classes)
    other, changed = chances.copy(), label.copy()
    other[7], changed[7] = np.roll(chances[7], 1) * 0.9, (label[7] + 1) % n_classes
    return (chances, label), (other, changed)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_a_replaced_row_moves_one_count_down_and_one_up_in_each_table(n_classes: int) -> None:
    law = NoiseLaw(8.0)
    layout = planned_layout(40, 2, n_classes, law, chances=True, threshold=0.5)
    tables = []
    for shift, (chances, label) in enumerate(neighbours(n_classes)):
        group = np.zeros(40, dtype=np.int64)
        group[7] = shift
        tables.append(counted(layout, cells_of(layout, group, label, chances)))
    assert len(layout.shapes) == table_count(n_classes, chances=True)
    for name in layout.shapes:
        moved = tables[1][name] - tables[0][name]
        assert sorted(moved[moved != 0]) == [-1, 1]
        assert tables[0][name].sum() == 40
    noise = chosen_noise(1.0, 0.0, len(layout.shapes))
    assert isinstance(noise, LaplaceNoise)
    assert noise.sensitivity == 2 * len(layout.shapes)
    other = chosen_noise(0.1, 1e-2, len(layout.shapes))
    if isinstance(other, GaussianNoise):
        assert (other.moves, other.sensitivity) == (2 * len(layout.shapes), 1)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_tables_do_not_depend_on_private_rows(n_classes: int) -> None:
    (chances, label), _ = neighbours(n_classes)
    first = private(chances, label).tables.layout
    second = private(np.full_like(chances, math.nan), np.zeros(40, dtype=int)).tables.layout
    assert first.shapes == second.shapes
    for one, other in zip(first.scores, second.scores, strict=True):
        assert np.array_equal(one.high, other.high)


def test_bins_are_public_and_the_threshold_is_an_edge() -> None:
    assert bin_count(300, 1, 8.0) == 10
    assert bin_count(10**6, 2, 8.0) == 200
    for count, threshold in ((10, 0.5), (40, 0.17), (12, 0.999)):
        bins = even_bins(count, threshold)
        assert threshold in bins.high
        assert np.array_equal(bins.low[1:], bins.high[:-1])
        assert list(bins.places([threshold, threshold + 1e-12])) == [
            np.flatnonzero(bins.high == threshold)[0],
            np.flatnonzero(bins.low == threshold)[0],
        ]
    public = RNG.beta(1, 40, 5_000)
    inside = even_bins(40, 0.5, public)
    seen = np.bincount(inside.places(public), minlength=len(inside)) / 5_000
    assert (seen > 0.01).sum() > 20  # where the public rows are
    assert list(declared_bins([0.2, 0.7], 0.5).high) == [0.2, 0.5, 0.7, 1.0]
    with pytest.raises(InvalidParameter, match="above 0"):
        declared_bins([0.0, 0.5], 0.5)
    assert ScoreBins(np.array([0.3]), np.array([0.3])).hides is False


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.1, 1e-2)])
def test_cumulants_are_those_of_the_noise(epsilon: float, delta: float) -> None:
    noise = chosen_noise(epsilon, delta, 7, 3)
    values = noise.draw(100_000, noise.source).astype(float)
    law = NoiseLaw.of(noise)
    assert np.mean(values**2) == pytest.approx(law.variance, rel=0.03)
    assert np.mean(values**4) == pytest.approx(law.fourth + 3 * law.variance**2, rel=0.15)


def test_the_price_is_taken_and_promised() -> None:
    chances, label = drawn(200)
    budget = Budget(1.5, 1e-2)
    found = private(chances, label, budget=budget)
    assert found.guarantee is not None
    assert (found.guarantee.epsilon, found.guarantee.delta) == (1.0, 0.0)
    assert {"EVAL", "NOISE", "RAND"} == set(found.guarantee.claims)
    assert not found.guarantee.void
    assert [(e.what, e.epsilon, e.delta) for e in budget.entries] == [("evaluate", 1.0, 0.0)]
    with pytest.raises(BudgetExhausted):
        private(chances, label, budget=budget)
    five = drawn(200, 5)
    gaussian = private(*five, epsilon=0.3, delta=1e-2, budget=budget).guarantee
    assert gaussian is not None
    assert 0.29 < gaussian.epsilon <= 0.3
    assert gaussian.delta == 1e-2
    assert len(budget.entries) == 2
    voided = private(chances, label, random_state=1).guarantee
    assert voided is not None
    assert voided.void


def test_public_rows_cost_nothing_and_promise_nothing() -> None:
    chances, label = drawn(200)
    budget = Budget(1.0)
    found = evaluate(Chances(), chances, label, public=True, trained_on=False, budget=budget)
    assert found.guarantee is None
    assert not budget.entries


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"epsilon": None}, InvalidParameter),
        ({"public": True}, InvalidParameter),
        ({"epsilon": -1.0}, InvalidParameter),
        ({"delta": 1.0}, InvalidParameter),
        ({"threshold": 1.0}, InvalidParameter),
        ({"clip": 0.0}, InvalidParameter),
        ({"confidence": 1.0}, InvalidParameter),
        ({"bins": 1}, InvalidParameter),
        ({"bins": [0.5, 2.0]}, InvalidParameter),
        ({"groups": [0] * 50}, InvalidParameter),
        ({"group_names": [0, 1]}, InvalidParameter),
        ({"groups": [0] * 50, "group_names": [0, 0]}, InvalidParameter),
        ({"groups": [2] * 50, "group_names": [0, 1]}, InvalidData),
        ({"groups": [0] * 49, "group_names": [0, 1]}, InvalidData),
        ({"trained_on": "no"}, InvalidParameter),
        ({"label": [0] * 49 + [7]}, InvalidData),
        ({"label": [0] * 49}, InvalidData),
    ],
)
def test_a_refused_call_spends_nothing(wrong: dict[str, Any], kind: type[Exception]) -> None:
    chances, label = drawn(50)
    budget = Budget(10.0, 0.1)
    given = dict(wrong)
    with pytest.raises(kind):
        private(chances, given.pop("label", label), budget=budget, **given)
    assert not budget.entries


def test_whether_rows_trained_the_model_is_asked_and_shown() -> None:
    chances, label = drawn(50)
    with pytest.raises(TypeError, match="trained_on"):
        evaluate(Chances(), chances, label, epsilon=1.0)  # type: ignore[call-arg]
    known = private(chances, label, trained_on=True)
    assert "trained the model" in str(known)
    assert known.to_dict()["trained_on"] is True
    assert "trained the model" not in str(private(chances, label))


def test_oracles_are_asked_about_public_rows_if_they_may_be() -> None:
    X = RNG.random((2_000, 1))
    y = (X[:, 0] > 0.3).astype(int)
    oracle = QueryRelease(epsilon=5.0, max_queries=60).fit(X, y)
    for more in ({"epsilon": 1.0}, {"public": True}, {"epsilon": 1.0, "spend_answers": True}):
        with pytest.raises(InvalidParameter, match="oracle"):
            evaluate(oracle, X[:50], y[:50], trained_on=False, **more)
    assert oracle.remaining_ == 60
    found = evaluate(oracle, X[:50], y[:50], public=True, spend_answers=True, trained_on=True)
    assert oracle.remaining_ == 10
    assert found.overall.accuracy.value > 0.8
    assert not found.overall.roc
    with pytest.raises(BudgetExhausted):
        evaluate(oracle, X[:50], y[:50], public=True, spend_answers=True, trained_on=True)


def test_a_planner_is_evaluated_as_the_model_that_it_chose() -> None:
    X = RNG.uniform(-1, 1, (6_000, 2))
    y = (X[:, 0] > 0).astype(int)
    model = PrivateClassifier(1.0, 1e-6, columns=[(-1, 1)] * 2).fit(X[:4_000], y[:4_000])
    found = evaluate(model, X[4_000:], y[4_000:], epsilon=1.0, trained_on=False)
    assert found.overall.accuracy.low > 0.85


def test_answers_alone_have_figures_without_curves() -> None:
    chances, label = drawn(2_000, 3)
    found = evaluate(Answers(3), chances, label, epsilon=2.0, trained_on=False)
    truth = (chances.argmax(axis=1) == label).mean()
    assert found.overall.accuracy.low - 0.05 < truth < found.overall.accuracy.high + 0.05
    assert found.overall.log_loss is None
    assert not found.overall.auc
    with pytest.raises(InvalidParameter, match="no chances"):
        found.plot("roc")


def test_subgroups_empty_ones_and_missing_classes() -> None:
    chances, label = drawn(3_000)
    group = np.where(np.arange(3_000) < 2_900, "many", "few")
    label[group == "few"] = 0
    names = ["many", "few", "nobody"]
    found = private(chances, label, groups=group, group_names=names, epsilon=2.0)
    assert list(found.groups) == names
    assert found.groups["many"].share.value > 0.9
    nobody = found.groups["nobody"]
    assert (nobody.accuracy.low, nobody.accuracy.high) == (0.0, 1.0)
    few = found.groups["few"]
    assert few.sensitivity[1].high - few.sensitivity[1].low > 0.9
    exact = evaluate(
        Chances(), chances, label, groups=group, group_names=names, public=True, trained_on=False
    )
    assert (exact.groups["nobody"].auc[1].low, exact.groups["nobody"].auc[1].high) == (0.0, 1.0)
    assert exact.groups["few"].sensitivity[1].high == 1.0
    for figures in (found, exact):
        for part in (figures.overall, *figures.groups.values()):
            for name, one in part.named():
                assert math.isfinite(one.value), name
                assert one.low <= one.value <= one.high, name


def test_the_commonest_class_stands_beside_every_accuracy() -> None:
    chances, label = drawn(1_000)
    shown = str(private(chances, label, groups=label, group_names=[0, 1]))
    assert shown.count("accuracy ") >= shown.count("always ") == 3
    for before, line in zip(shown.splitlines(), shown.splitlines()[1:], strict=False):
        if before.strip().startswith("accuracy "):
            assert line.strip().startswith("always ")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_everything_can_be_written_and_drawn(n_classes: int) -> None:
    chances, label = drawn(800, n_classes)
    found = private(chances, label, groups=label % 2, group_names=[0, 1])
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["overall"]["accuracy"]["value"] == found.overall.accuracy.value
    assert len(plain["overall"]["roc"]["1"]["thresholds"]) == len(found.overall.roc[1].thresholds)
    figure = found.plot()
    assert len(figure.axes) >= 5
    _, axes = plt.subplots()
    assert found.plot("calibration", axes) is axes.figure
    plt.close("all")
    with pytest.raises(InvalidParameter, match="kind"):
        found.plot("pie")
    with pytest.raises(InvalidParameter, match="no subgroups"):
        private(chances, label).plot("groups")
    with pytest.raises(InvalidParameter, match="single"):
        found.plot("all", axes)


def test_a_model_that_is_not_fitted_or_knows_one_class_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="fit it first"):
        evaluate(object(), [[1]], [0], public=True, trained_on=False)
    with pytest.raises(InvalidParameter, match="single class"):
        evaluate(Chances(1), [[1.0]], [0], public=True, trained_on=False)


RUNS = 150
LAWS: dict[str, tuple[int, float, float]] = {  # rows, epsilon, share of the second class
    "few rows": (300, 1.0, 0.3),
    "rare": (3_000, 1.0, 0.02),
    "much noise": (3_000, 0.2, 0.3),
}


def law_of(share: float, count: int, seed: int) -> tuple[Any, Any]:
    """Return rows of a law whose chances are right: even from 0 to twice the share."""
    rng = np.random.default_rng(seed)
    chance = share * 2 * rng.random(count)
    return np.stack([1 - chance, chance], axis=1), (rng.random(count) < chance).astype(int)


def held(law: str, *, planted: float = 1.0) -> dict[str, int]:
    """Count how often intervals hold the truth; planted ones are so many times as wide."""
    rows, epsilon, share = LAWS[law]
    chances, label = law_of(share, 1_000_000, 999)
    truth = dict(evaluate(Chances(), chances, label, public=True, trained_on=False).overall.named())
    found = dict.fromkeys(FIGURES, 0)
    for seed in range(RUNS):
        seen = dict(private(*law_of(share, rows, seed), epsilon=epsilon).overall.named())
        for name in FIGURES:
            one, true = seen[name], truth[name].value
            middle, half = (one.high + one.low) / 2, planted * (one.high - one.low) / 2
            found[name] += middle - half - 1e-9 <= true <= middle + half + 1e-9
    return found


FIGURES = [
    "accuracy",
    "commonest",
    "balanced accuracy",
    "sensitivity of 0",
    "auc of 1",
    "average precision of 1",
    "log loss",
    "brier",
]


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
def test_intervals_hold_the_truth(law: str) -> None:
    """Each figure by itself; benchmarks/evaluation.py has more laws, and 2,000 runs of each."""
    for name, count in held(law).items():
        fails = count < 0.95 * RUNS and binomial_rejects(count, RUNS, 0.95, checks=24)
        assert not fails, (name, count)


def of_three(count: int, seed: int) -> tuple[Any, Any]:
    """Return rows of three classes, of which noise drowns one: it has one row in twenty."""
    rng = np.random.default_rng(seed)
    shares = np.array([0.05, 0.12, 0.83])
    label = rng.choice(3, count, p=shares)
    odds = rng.standard_t(4, (count, 3)).clip(-20, 20)
    odds[np.arange(count), label] += 1.8
    chances = np.exp(0.5 * odds) * shares
    return chances / chances.sum(axis=1, keepdims=True), label


@functools.cache
def seen_of_three() -> tuple[tuple[float, float], list[tuple[list[Figure], list[Figure]]]]:
    """Return true means over three classes, and the figures of each class in many runs."""
    exact = evaluate(Chances(3), *of_three(400_000, 999), public=True, trained_on=False).overall
    assert exact.macro_auc is not None
    runs = []
    for seed in range(2 * RUNS):
        seen = private(*of_three(900, seed), epsilon=0.63).overall
        runs.append((list(seen.sensitivity.values()), list(seen.auc.values())))
    return (exact.balanced_accuracy.value, exact.macro_auc.value), runs


def means_held(mean: Callable[[list[Figure]], Figure]) -> tuple[int, int]:
    """Count how often means of sensitivities and of areas over classes hold the truth."""
    truth, runs = seen_of_three()
    found = np.zeros(2, dtype=int)
    for parts in runs:
        means = [mean(one) for one in parts]
        found += [one.low <= true <= one.high for one, true in zip(means, truth, strict=True)]
    return int(found[0]), int(found[1])


@pytest.mark.statistical
def test_means_over_classes_hold_the_truth_if_noise_drowns_one() -> None:
    for count in means_held(averaged):
        fails = count < 0.95 * 2 * RUNS and binomial_rejects(count, 2 * RUNS, 0.95, checks=2)
        assert not fails, count


@pytest.mark.statistical
def test_means_that_take_nothing_for_an_estimate_are_found() -> None:
    """They take the middle of 0 and 1 for the truth."""

    def planted(parts: list[Figure]) -> Figure:
        known = [one for one in parts if one.low > 0 or one.high < 1]
        middle = sum(one.value for one in parts) / len(parts)
        down = math.hypot(*(one.value - one.low for one in known)) / len(parts)
        up = math.hypot(*(one.high - one.value for one in known)) / len(parts)
        return Figure(middle, middle - down, middle + up)

    assert binomial_rejects(means_held(planted)[0], 2 * RUNS, 0.95, checks=0)


def test_a_figure_of_which_nothing_is_known_is_said_to_be() -> None:
    assert str(Figure(0.5, 0.0, 1.0)) == "not known (0.0 to 100.0 %)"
    assert str(Figure(0.5, 0.25, 1.0)) == "50.0 % (25.0 to 100.0)"


@pytest.mark.statistical
def test_intervals_that_are_half_as_wide_are_found() -> None:
    counts = held("few rows", planted=0.5)
    assert binomial_rejects(counts["accuracy"], RUNS, 0.95, checks=0)
