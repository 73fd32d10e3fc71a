"""A threshold for a wanted sensitivity, and chances of trees where an outcome is rare."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from cumae.audit import audit
from cumae.audit.attacks import learners as models
from cumae.counting.bins import even_bins
from cumae.counting.table import NoiseLaw, chosen_noise
from cumae.errors import InvalidData, InvalidParameter, TooFewRows
from cumae.learners import (
    Learner,
    PrivateBooster,
    PrivateKernelClassifier,
    PrivateLogisticRegression,
    thresholds,
)
from cumae.learners.base import Rows
from cumae.learners.kernel import sums
from cumae.learners.kernel.prices import class_counts, classes_move
from cumae.learners.thresholds import ScoreCounts, likely_odds, release_counts
from cumae.mechanisms import LaplaceNoise
from cumae.privacy import Budget, DiscreteGaussianVectors
from cumae.randomness import SeededSource, discrete_gaussian
from tests.statistics import audited, binomial_rejects

KINDS: list[Any] = [PrivateKernelClassifier, PrivateLogisticRegression, PrivateBooster]
COLUMNS = [(-1, 1), (-1, 1)]
CLASSES = ("lives", "died")


def patients(count: int, share: float = 0.05, seed: int = 0) -> tuple[Any, Any]:
    """Patients of whom so many die, the more likely the higher their first cell."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (count, 2))
    odds = 2.5 * X[:, 0]
    odds += np.log(share / (1 - share)) - 0.9
    return X, np.array(CLASSES)[(rng.random(count) < 1 / (1 + np.exp(-odds))).astype(int)]


def fitted(kind: Any, count: int = 12_000, **options: Any) -> Any:
    options = {"sensitivity": 0.9, "random_state": 3, **options}
    if kind is PrivateKernelClassifier:
        options.setdefault("n_waves", 0)
    learner = kind(1.0, 1e-6, columns=COLUMNS, classes=CLASSES, **options)
    return learner.fit(*patients(count, seed=1))


@pytest.mark.claim("THRESHOLD")
@pytest.mark.parametrize("kind", KINDS)
def test_nine_of_ten_who_die_are_found_where_the_likeliest_answer_finds_none(kind: Any) -> None:
    model = fitted(kind)
    X, y = patients(20_000, seed=2)
    answers, died = model.predict(X), y == "died"
    np.testing.assert_array_equal(
        answers == "died", model.predict_proba(X)[:, 1] >= model.threshold_
    )
    found = float(np.mean(answers[died] == "died"))
    assert 0.75 < found <= 1.0
    assert model.sensitivity_.low <= 0.9 <= model.sensitivity_.high
    assert float(np.mean(answers[~died] == "lives")) > 0.2
    assert model.specificity_.low < model.specificity_.value < model.specificity_.high
    assert "answers died from a chance of" in str(model)
    assert {"THRESHOLD", "PAR", "NOISE"} <= set(model.guarantee_.claims)
    assert model.guarantee_.epsilon <= 1.0
    model.set_params(sensitivity=None)
    assert np.mean(model.predict(X)[died] == "died") < 0.3


@pytest.mark.parametrize("kind", KINDS)
def test_files_keep_the_counts_and_another_wish_reads_them_again(kind: Any) -> None:
    model = fitted(kind, 6_000)
    X, _ = patients(500, seed=2)
    plain = json.loads(json.dumps(model.to_dict()))
    again = Learner.from_dict(plain)
    assert again.threshold_ == model.threshold_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.set_params(sensitivity=0.5).threshold_ > model.threshold_
    assert again.set_params(sensitivity=1.0).threshold_ <= model.threshold_
    for name in ("sensitivity", "confidence", "held_out"):
        plain["params"].pop(name)
    del plain["fitted"]["score_counts_"]
    older = Learner.from_dict(plain)
    np.testing.assert_array_equal(older.predict_proba(X), model.predict_proba(X))
    assert not hasattr(older, "threshold_")
    with pytest.raises(InvalidParameter, match="no threshold was paid for; fit again"):
        older.set_params(sensitivity=0.9).predict(X)


@pytest.mark.claim("THRESHOLD")
@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_the_threshold_are_no_rows_of_the_model(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs is what is paid for: one release of counts, of rows that nothing else sees."""
    seen: list[set[float]] = []
    releases: list[Any] = []
    learn = kind._learn_within

    def learnt(self: Any, rows: Rows, *more: Any) -> None:
        seen.append(set(np.asarray(rows.X)[:, 0].tolist()))
        learn(self, rows, *more)

    def released(bins: Any, label: Any, chance: Any, noise: Any) -> ScoreCounts:
        releases.append((len(label), noise))
        return release_counts(bins, label, chance, noise)

    monkeypatch.setattr(kind, "_learn_within", learnt)
    monkeypatch.setattr(thresholds, "release_counts", released)
    X, y = patients(4_000)
    if kind is PrivateKernelClassifier:
        kind = partial(kind, n_waves=0)
    learner = kind(0.8, 1e-6, columns=COLUMNS, classes=CLASSES, sensitivity=0.8, held_out=0.3)
    learner.fit(X, y)
    ((rows, noise),) = releases
    (model_rows,) = seen
    assert len(model_rows) == 2_800
    assert rows == learner.score_counts_.rows == 1_200
    assert isinstance(noise, LaplaceNoise)
    assert (noise.epsilon, noise.sensitivity) == (0.8, 2)
    plan = learner.plan(4_000, 2)
    assert plan.facts["threshold_rows"] == 1_200
    assert plan.guarantee == learner.guarantee_
    plain = kind(0.8, 1e-6, columns=COLUMNS, classes=CLASSES)
    assert learner.guarantee_.epsilon <= 0.8
    assert plain.plan(2_800, 2).guarantee.epsilon <= learner.guarantee_.epsilon


@pytest.mark.claim("THRESHOLD")
def test_a_replaced_row_moves_two_counts_by_one_each() -> None:
    rng = np.random.default_rng(0)
    bins = even_bins(12, 0.5)
    none = chosen_noise(math.inf, 0.0, 1)
    label, chance = rng.integers(0, 2, 50), rng.random(50)
    before = release_counts(bins, label, chance, none).counts
    for row in range(50):
        other, moved = label.copy(), chance.copy()
        other[row], moved[row] = 1 - label[row], 1 - chance[row]
        change = release_counts(bins, other, moved, none).counts - before
        assert sorted(change[change != 0].tolist()) in ([], [-1, 1])
    assert before.sum() == 50


@pytest.mark.claim("THRESHOLD")
def test_the_bins_do_not_depend_on_the_rows_that_are_set_aside() -> None:
    X, y = patients(2_000)
    options: dict[str, Any] = {"columns": COLUMNS, "classes": CLASSES, "sensitivity": 0.9}
    one = PrivateBooster(1.0, random_state=5, **options).fit(X, y)
    swapped = y.copy()
    held = [place for place in range(2_000) if _is_held(place, X, y, one, options)][:3]
    assert held
    swapped[held[0]] = "died" if y[held[0]] == "lives" else "lives"
    two = PrivateBooster(1.0, random_state=5, **options).fit(X, swapped)
    np.testing.assert_array_equal(one.score_counts_.edges, two.score_counts_.edges)
    change = two.score_counts_.counts - one.score_counts_.counts
    assert sorted(change[change != 0].tolist()) == [-1, 1]
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def _is_held(place: int, X: Any, y: Any, model: Any, options: dict[str, Any]) -> bool:
    """Tell whether a row is set aside, by its order among equal coins."""
    if place >= 8:
        return False
    other = y.copy()
    other[place] = "died" if y[place] == "lives" else "lives"
    found = PrivateBooster(1.0, random_state=5, **options).fit(X, other)
    return bool((found.score_counts_.counts != model.score_counts_.counts).any()) and bool(
        (found.predict_proba(X) == model.predict_proba(X)).all()
    )


@pytest.mark.claim("THRESHOLD")
@pytest.mark.statistical
def test_an_audit_does_not_break_the_counts_and_breaks_too_little_noise() -> None:
    options: dict[str, Any] = {"n_rounds": 1, "concept_class": models.rules(missing=False)}
    attack = models.threshold(1.0, **options)
    assert not audited(attack, runs=150).broken
    planted = replace(models.threshold(8.0, **options), claimed=attack.claimed)
    assert audit(planted, runs=120, progress=False).broken


RUNS = 300


def simulated(positives: int, *, confidence: float | None = None, planted: float = 1.0) -> Any:
    """Return true sensitivities at thresholds that were chosen, and whether intervals hold them.

    Scores of both classes are normal, one apart.
    """
    rng = np.random.default_rng(positives)
    public = ndtr(rng.normal(0, 1, 2_000))
    bins = even_bins(16, 0.5, public)
    noise = LaplaceNoise(1.0, 2, random_state=SeededSource(positives))
    rows = 10 * positives
    true, held = [], []
    for _ in range(RUNS):
        label = (rng.random(rows) < 0.1).astype(np.int64)
        chance = ndtr(rng.normal(0, 1, rows) + label)
        found = release_counts(bins, label, chance, noise)
        threshold = found.threshold(0.9, confidence)
        true.append(float(np.mean(ndtr(SCORES + 1) >= threshold)))
        figure = found.sensitivity(threshold)
        middle, half = figure.value, planted * (figure.high - figure.low) / 2
        low, high = (figure.low, figure.high) if planted == 1 else (middle - half, middle + half)
        held.append(low <= true[-1] <= high)
    return np.array(true), sum(held)


SCORES = np.random.default_rng(9).normal(0, 1, 20_000)


@pytest.mark.claim("THRESHOLD")
@pytest.mark.statistical
@pytest.mark.parametrize("positives", [60, 400])
def test_the_sensitivity_is_about_what_was_asked_for_and_its_interval_holds_it(
    positives: int,
) -> None:
    true, held = simulated(positives)
    assert 0.88 < true.mean() < 0.97
    assert not (held < 0.95 * RUNS and binomial_rejects(held, RUNS, 0.95, checks=2))


@pytest.mark.statistical
def test_intervals_that_are_too_narrow_are_found() -> None:
    assert binomial_rejects(simulated(60, planted=0.3)[1], RUNS, 0.95, checks=0)


@pytest.mark.claim("THRESHOLD")
@pytest.mark.statistical
def test_with_confidence_the_sensitivity_is_reached_that_often() -> None:
    true, _ = simulated(400, confidence=0.9)
    reached = int((true >= 0.9).sum())
    assert not (reached < 0.9 * RUNS and binomial_rejects(reached, RUNS, 0.9))
    assert true.mean() < 0.99  # it does not say yes to everybody


REFUSED: list[tuple[dict[str, Any], Any, str]] = [
    ({"sensitivity": 0.0}, InvalidParameter, "sensitivity=0.0"),
    ({"sensitivity": 1.5}, InvalidParameter, "sensitivity=1.5"),
    ({"sensitivity": 0.9, "held_out": 0.0}, InvalidParameter, "held_out=0.0"),
    ({"sensitivity": 0.9, "held_out": 1.0}, InvalidParameter, "held_out=1.0"),
    ({"sensitivity": 0.9, "confidence": 0.4}, InvalidParameter, "confidence=0.4"),
    ({"sensitivity": 0.9, "threshold": 0.2}, InvalidParameter, "threshold and sensitivity were"),
    ({"sensitivity": 0.9, "costs": {"died": 3}}, InvalidParameter, "costs and sensitivity were"),
    ({"sensitivity": 0.9}, InvalidData, "60 rows are too few to choose a threshold"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("options", "error", "message"), REFUSED)
def test_what_cannot_work_is_refused_before_it_is_paid(
    kind: Any, options: dict[str, Any], error: Any, message: str
) -> None:
    budget = Budget(10.0, 0.1)
    learner = kind(1.0, 1e-6, columns=COLUMNS, classes=CLASSES, budget=budget, **options)
    with pytest.raises(error, match=message):
        learner.fit(*patients(60))
    assert budget.spent == (0.0, 0.0)
    assert not learner.plan(60, 2).can_run


def test_a_sensitivity_is_for_two_classes() -> None:
    learner = PrivateKernelClassifier(columns=COLUMNS, classes=("a", "b", "c"), sensitivity=0.9)
    with pytest.raises(InvalidParameter, match="with 3 classes: it is the share of the second"):
        learner.fit(patients(2_000)[0], np.resize(["a", "b", "c"], 2_000))


def test_the_number_that_is_needed_is_told_before_the_payment_and_the_interval_after_it() -> None:
    X, y = patients(1_000, share=0.01)
    learner = PrivateLogisticRegression(1.0, 1e-6, columns=COLUMNS, classes=CLASSES)
    learner.set_params(sensitivity=0.9)
    needed: Any = learner.plan(1_000, 2).facts["rows_needed_of_second_class"]
    assert 100 < needed < 1_000
    with pytest.warns(TooFewRows, match="rows are of class died, and there are 1000 rows in all"):
        learner.fit(X, y)
    assert learner.sensitivity_.high - learner.sensitivity_.low > 0.3
    assert "answers died from a chance" in str(learner)


def test_ranges_that_are_found_and_cells_that_are_missing_go_with_it() -> None:
    X, y = patients(12_000)
    X[::7, 1] = np.nan
    model = PrivateLogisticRegression(
        4.0, 1e-6, columns={1: {"missing": True}}, classes=CLASSES, sensitivity=0.8
    )
    model.fit(10 * X, y)
    assert model.guarantee_.epsilon <= 4.0
    assert {"RANGES", "THRESHOLD"} <= set(model.guarantee_.claims)
    X_test, y_test = patients(5_000, seed=4)
    assert np.mean(model.predict(10 * X_test)[y_test == "died"] == "died") > 0.6


def test_counts_without_a_row_of_the_second_class_find_everybody() -> None:
    edges, law = np.linspace(0, 1, 5), NoiseLaw(8.0, 0.0)
    counts = ScoreCounts(edges, np.array([[9, 2, 1, 0], [-3, -1, 0, 1]]), 12, law)
    assert counts.threshold(0.9, 0.9) == 0.0
    assert counts.sensitivity(0.0).low == 1.0
    assert counts.specificity(0.0).high == 0.0


# Chances of trees


def test_trees_do_not_say_that_one_of_six_dies_where_one_of_fifty_does() -> None:
    chances = []
    for seed in range(8):
        X, y = patients(800, share=0.0275, seed=seed)
        model = PrivateBooster(1.0, columns=COLUMNS, classes=CLASSES, random_state=seed)
        chances.append(float(model.fit(X, y).predict_proba(X)[:, 1].mean()))
    assert np.mean(chances) < 0.08  # without counts of classes, .18


def test_trees_without_counts_are_shrunk_and_answers_stay() -> None:
    scores = np.array([-1.5, -0.5, 0.5, 1.5])
    weights, group = np.array([0.4, 0.1, 0.1, 0.4]), np.zeros(4, dtype=np.int64)
    odds = likely_odds(scores, weights, group, None)
    assert np.all(np.abs(odds) < np.abs(scores))
    np.testing.assert_array_equal(odds > 0, scores > 0)
    assert np.all(np.diff(odds) > 0)
    even = ScoreCounts(np.array([0.0, 1.0]), np.array([[37], [43]]), 80, NoiseLaw(8.0, 0.0))
    np.testing.assert_array_equal(likely_odds(scores, weights, group, even) > 0, scores > 0)
    rare = ScoreCounts(np.array([0.0, 1.0]), np.array([[495], [5]]), 500, NoiseLaw(8.0, 0.0))
    assert np.all(likely_odds(scores, weights, group, rare) < 0)


def test_files_of_older_trees_answer_as_before() -> None:
    X, y = patients(1_000, share=0.4)
    model = PrivateBooster(1.0, columns=COLUMNS, classes=CLASSES, random_state=1).fit(X, y)
    plain = json.loads(json.dumps(model.to_dict()))
    np.testing.assert_array_equal(Learner.from_dict(plain).predict_proba(X), model.predict_proba(X))
    del plain["fitted"]["odds_"]
    votes = sum(2 * tree.predict(X) - 1 for tree in model.trees_)
    found = Learner.from_dict(plain).decision_function(X)
    np.testing.assert_allclose(found, model.learning_rate_ * votes)


@pytest.mark.claim("BOOST")
@pytest.mark.parametrize("count", [1_000, 9_000])
def test_chances_of_trees_come_from_rows_of_their_own(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[Any] = []

    def recorded(noise: Any, counts: Any) -> Any:
        released.append((noise.epsilon, noise.sensitivity, np.size(counts)))
        return release(noise, counts)

    release = LaplaceNoise.release
    monkeypatch.setattr(LaplaceNoise, "release", recorded)
    X, y = patients(count)
    model = PrivateBooster(0.8, columns=COLUMNS, classes=CLASSES).fit(X, y)
    # One count that a row moves by one, or a table in which it moves two.
    assert released == [(0.4, 1, 1) if count == 1_000 else (0.4, 2, 14)]
    blocks = model.decide(*model.read_rows(X, y)).steps
    assert blocks.rounds[-1].stop == blocks.chances.start == count - count // 10
    assert model.guarantee_.epsilon == 0.8
    assert model.guarantee_.delta == 0.0


# Goals


@pytest.mark.parametrize("goal", ["ranking", "cost"])
def test_trees_that_rank_nothing_are_not_taken(goal: str) -> None:
    options: dict[str, Any] = {"columns": COLUMNS, "threshold": 0.1}
    assert PrivateKernelClassifier(**options).plan(60, 2).facts["route"] == "trees"
    assert PrivateKernelClassifier(goal=goal, **options).plan(60, 2).facts["route"] == "kernel"


@pytest.mark.claim("KERNEL")
@pytest.mark.parametrize(
    ("kind", "classes"),
    [
        (PrivateKernelClassifier, 2),
        (PrivateKernelClassifier, 3),
        (PrivateLogisticRegression, 2),
    ],
)
def test_the_classes_that_are_counted_first_are_paid_for(
    kind: Any, classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[float, int]] = []

    def noise(scale: float, size: int, source: Any) -> Any:
        drawn.append((scale, size))
        return discrete_gaussian(scale, size, source)

    monkeypatch.setattr(sums, "discrete_gaussian", noise)
    X, _ = patients(600)
    y = np.arange(600) % classes
    options: dict[str, Any] = {"columns": COLUMNS, "classes": range(classes)}
    model = kind(1.0, 1e-6, goal="ranking", **options).fit(X, y, X[:60])
    moves = [4_096.0 * math.sqrt(classes - 1)] + [4_194_304.0] * (len(drawn) - 1)
    assert drawn[0][1] == (1 if classes == 2 else 3)
    mu = math.sqrt(sum((m / scale) ** 2 for m, (scale, _) in zip(moves, drawn, strict=True)))
    places, least = sum(size for _, size in drawn), min(scale for scale, _ in drawn)
    ran = DiscreteGaussianVectors(mu, places, least)
    assert model.guarantee_.epsilon == pytest.approx(ran.epsilon(1e-6), rel=1e-5)
    assert model.guarantee_.epsilon >= ran.epsilon(1e-6) * (1 - 1e-9)
    drawn.clear()
    kind(1.0, 1e-6, **options).fit(X, y, X[:60])
    assert len(drawn) == 4  # the steps alone


@pytest.mark.parametrize("kind", [PrivateKernelClassifier, PrivateLogisticRegression])
def test_a_goal_of_least_cost_needs_costs(kind: Any) -> None:
    model = kind(goal="cost", columns=COLUMNS)
    assert 'goal="cost" without costs' in model.plan(600, 2).reasons[0]
    with pytest.raises(InvalidParameter, match='goal="cost" without costs'):
        model.fit(patients(600)[0], np.arange(600) % 2)
    assert kind(goal="cost", costs={1: 20}, columns=COLUMNS).plan(600, 2).can_run


def test_a_regression_that_ranks_begins_at_the_share_of_a_rare_class(tmp_path: Any) -> None:
    """Of 1,000 rows 20 are of the second class, and little else can be told from noise."""
    X, _ = patients(1_000)
    y = (np.arange(1_000) % 50 == 0).astype(int)
    options: dict[str, Any] = {"columns": COLUMNS, "curves": 6}
    chances = {}
    for goal in ("accuracy", "ranking"):
        models = [
            PrivateLogisticRegression(1.0, 1e-6, goal=goal, random_state=seed, **options).fit(X, y)
            for seed in range(5)
        ]
        chances[goal] = np.median([one.predict_proba(X)[:, 1].mean() for one in models])
    assert abs(chances["ranking"] - 0.02) < 0.01 < abs(chances["accuracy"] - 0.02)
    path = tmp_path / "model.json"
    models[0].save(path)
    assert PrivateLogisticRegression.load(path).goal == "ranking"


@pytest.mark.claim("KERNEL")
@pytest.mark.parametrize("scores", [1, 3, 5])
def test_a_replaced_label_moves_the_classes_by_a_known_length(scores: int) -> None:
    labels = np.resize(np.arange(max(scores, 2)), 40)
    whole = class_counts(labels, scores=scores)
    furthest = 0.0
    for label in range(max(scores, 2)):
        other = labels.copy()
        other[0] = label
        moved = float(np.linalg.norm(class_counts(other, scores=scores) - whole))
        furthest = max(furthest, moved)
    assert furthest == pytest.approx(classes_move(scores))
