"""Stacked models vote as they do one by one, in every batch, whatever the rows are."""

from __future__ import annotations

import contextlib
import functools
import math
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from joblib._parallel_backends import SequentialBackend
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from cumae.concepts import (
    Halfspace,
    IntervalUnion,
    Point,
    Rectangle,
    Stump,
    Threshold,
    Tree,
)
from cumae.ensembles.ensemble import count_votes
from cumae.ensembles.voters import trees as votes_trees
from cumae.ensembles.voters.ranks import rank
from cumae.ensembles.voters.stacking import (
    LoopVoters,
    StackedVoters,
    Voters,
    stack,
    voters_from_arrays,
)
from cumae.errors import InvalidData, InvalidParameter

WIDTH = 5
LARGE = float(np.finfo(np.float64).max)
TINY = 5e-324


def looped(models: Any, X: Any, n_classes: int) -> Any:
    """Ask models one by one; about rows that one of them may refuse, row by row."""
    votes = np.zeros((len(X), n_classes), dtype=np.int64)
    usual = np.abs(X).max(axis=1) < 1e30
    for model in models:
        labels = np.zeros(len(X), dtype=np.int64)
        labels[usual] = model.predict(X[usual])
        for place in np.flatnonzero(~usual):
            with warnings.catch_warnings(), contextlib.suppress(ValueError, RuntimeWarning):
                warnings.simplefilter("error")
                labels[place] = int(model.predict(X[place : place + 1])[0])
        votes += np.eye(n_classes, dtype=np.int64)[labels]
    return votes


def table(seed: int, rows: int, n_classes: int = 2) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, WIDTH)) * [1, 10, 0.1, 1, 1000] + [0, 5, 0, 0, 4000]
    z = X[:, 0] + X[:, 1] / 10 + 10 * X[:, 2] * X[:, 3] + generator.normal(size=rows) / 2
    edges = np.quantile(z, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(edges, z)


def around(values: Any) -> Any:
    """Return values, their neighbours, and some that are far away."""
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values)]
    with np.errstate(over="ignore", under="ignore"):
        beside = [np.nextafter(values, -math.inf), values, np.nextafter(values, math.inf)]
    far = [0.0, -0.0, TINY, -TINY, 1e300, -1e300, LARGE, -LARGE]
    every = np.concatenate([*beside, far])
    return every[np.isfinite(every)]


def kinds(voters: list[Voters]) -> list[str]:
    return sorted({getattr(group, "kind", "loop") for group in voters})


def cuts(seed: int, count: int) -> Any:
    generator = np.random.default_rng(seed)
    usual = np.round(generator.normal(size=count), 1)  # many of them are equal
    return np.concatenate([usual, [1e300, LARGE, -LARGE, 0.0, -0.0, TINY]]).tolist()


def thresholds() -> tuple[list[Any], Any]:
    some = [None, math.inf, -math.inf, 3, 2**53 + 1, np.float32(0.1), np.int64(2), *cuts(1, 30)]
    rules = [Threshold(cut, above) for cut in some for above in (True, False)]
    near = around([float(cut) for cut in some if cut is not None])
    return rules, near.reshape(-1, 1)


def intervals() -> tuple[list[Any], Any]:
    generator = np.random.default_rng(2)
    some = [None, None, *cuts(2, 20)]
    rules = [IntervalUnion(), IntervalUnion(((None, None),)), IntervalUnion(((2, 1),))]
    for _ in range(150):  # in any order, overlapping, touching, empty, open
        ends = generator.integers(0, len(some), (int(generator.integers(1, 5)), 2))
        rules.append(IntervalUnion(tuple((some[a], some[b]) for a, b in ends)))
    boxes = [Rectangle((some[i],), (some[-i],)) for i in range(1, 20)]
    points = [Point(), *map(Point, cuts(3, 5))]
    return [*rules, *boxes, *points], around([cut for cut in some if cut is not None]).reshape(
        -1, 1
    )


def stumps() -> tuple[list[Any], Any]:
    generator = np.random.default_rng(3)
    some = [None, math.inf, -math.inf, *cuts(4, 30)]
    rules = [
        Stump(int(generator.integers(0, 4)), cut, above) for cut in some for above in (True, False)
    ]
    near = around([cut for cut in some if cut is not None])
    return [*rules, Rectangle((), ())], generator.choice(near, size=(300, WIDTH))


def boxes(width: int) -> Callable[[], tuple[list[Any], Any]]:
    def make() -> tuple[list[Any], Any]:
        generator = np.random.default_rng(width)
        some = [None, -math.inf, math.inf, *cuts(width, 12)]

        def bounds() -> tuple[Any, ...]:
            return tuple(some[i] for i in generator.integers(0, len(some), width))

        rules = [Rectangle(bounds(), bounds()) for _ in range(700)]
        near = around([cut for cut in some if cut is not None])
        return rules, generator.choice(near, size=(200, width))

    return make


def rule_trees() -> tuple[list[Any], Any]:
    generator = np.random.default_rng(5)
    some = cuts(5, 10)
    rules = []
    for depth in (0, 1, 2, 3):
        for _ in range(20):
            inner = 2**depth - 1
            rules.append(
                Tree(
                    tuple(generator.integers(0, WIDTH, inner).tolist()),
                    tuple(some[i] for i in generator.integers(0, len(some), inner)),
                    tuple(generator.integers(0, 2, inner + 1).tolist()),
                )
            )
    return rules, generator.choice(around(some), size=(400, WIDTH))


RULES = {
    "thresholds": thresholds,
    "intervals": intervals,
    "stumps": stumps,
    "boxes, 2 columns": boxes(2),
    "boxes, 3 columns": boxes(3),
    "boxes, 5 columns": boxes(5),
    "trees": rule_trees,
}


@pytest.mark.parametrize("name", RULES)
def test_rules_vote_as_one_by_one(name: str) -> None:
    rules, X = RULES[name]()
    voters = stack(rules, 2)
    assert "loop" not in kinds(voters)
    assert sum(map(len, voters)) == len(rules)
    expected = sum(np.eye(2, dtype=np.int64)[rule.predict(X)] for rule in rules)
    np.testing.assert_array_equal(count_votes(voters, X, 2), expected)


def trees_of(
    kind: Any, n_classes: int, count: int = 12, rows: int = 150, **parameters: Any
) -> list[Any]:
    models = []
    for seed in range(count):
        X, y = table(seed, rows, n_classes)
        if seed % 4 == 1:
            y = np.where(y == 0, n_classes - 1, y)  # a class is missing
        if seed % 4 == 2:
            y[:] = seed % n_classes  # a single leaf
        models.append(kind(random_state=seed, **parameters).fit(X, y))
    return models


def tree_queries(models: list[Any]) -> Any:
    """Rows right at the cuts of trees, after rounding to 32 bits and before, and far away."""
    thresholds = np.concatenate([m.tree_.threshold[m.tree_.feature >= 0] for m in models])
    chosen = np.random.default_rng(9).choice(thresholds, 40)
    half = np.spacing(np.abs(chosen).astype(np.float32)).astype(np.float64) / 2
    limit = float(np.finfo(np.float32).max)
    near = np.concatenate(
        [
            chosen + half,
            chosen - half,
            np.nextafter(chosen.astype(np.float32), np.float32(-math.inf)).astype(np.float64),
            around(chosen),
            [limit, -limit, limit * (1 + 1e-9), limit * (1 + 2.0**-24), 1e39, 1e-46],
        ]
    )
    X, _ = table(99, 150)
    place = np.random.default_rng(8).integers(0, WIDTH, len(near))
    one = X[np.arange(len(near)) % len(X)]
    one[np.arange(len(near)), place] = near
    return np.vstack([X, one])


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 6, 7, None])
def test_trees_vote_as_one_by_one(depth: int | None, n_classes: int) -> None:
    models = trees_of(DecisionTreeClassifier, n_classes, max_depth=depth)
    models += trees_of(ExtraTreeClassifier, n_classes, max_depth=depth, count=4)
    X = tree_queries(models)
    voters = stack(models, n_classes)
    assert kinds(voters) == (["trees"] if depth and depth < 7 else ["trees", "walks"])
    np.testing.assert_array_equal(count_votes(voters, X, n_classes), looped(models, X, n_classes))


def test_equal_leaves_vote_for_the_first_class_that_a_tree_has() -> None:
    X = np.zeros((4, WIDTH))
    models = [DecisionTreeClassifier().fit(X, [2, 1, 2, 1]) for _ in range(3)]
    assert count_votes(stack(models, 3), X[:1], 3).tolist() == [[0, 3, 0]]


def test_columns_with_more_cuts_than_ranks_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    models = trees_of(DecisionTreeClassifier, 3, max_depth=4)
    X, _ = table(5, 500)
    whole = stack(models, 3)
    monkeypatch.setattr(votes_trees, "MOST_CUTS", 12)
    voters = stack(models, 3)
    assert len(voters) > len(whole)
    assert max(int(np.diff(v.to_arrays()["starts"]).max()) for v in voters) <= 12
    np.testing.assert_array_equal(count_votes(voters, X, 3), count_votes(whole, X, 3))


def test_more_trees_than_16_bits_can_count() -> None:
    rules = [Tree((), (), (1,)), Tree((0,), (0.0,), (0, 1))]
    (few,) = stack(rules, 2)
    arrays = few.to_arrays()
    for name in ("columns", "places", "labels"):
        arrays[name] = np.repeat(arrays[name], [40_000, 30_000], axis=0)
    votes = voters_from_arrays("trees", arrays).count(np.array([[-1.0], [1.0]]))
    assert votes.tolist() == [[30_000, 40_000], [0, 70_000]]


LINEAR: dict[str, Callable[[int], Any]] = {
    "logistic": lambda seed: LogisticRegression(max_iter=20),
    "logistic, cv": lambda seed: LogisticRegressionCV(
        Cs=[1.0], cv=2, max_iter=10, use_legacy_attributes=False, l1_ratios=(0,), scoring="accuracy"
    ),
    "ridge": lambda seed: RidgeClassifier(),
    "support vectors": lambda seed: LinearSVC(max_iter=50, random_state=seed),
    "gradient": lambda seed: SGDClassifier(max_iter=5, tol=None, random_state=seed),
    "perceptron": lambda seed: Perceptron(max_iter=5, tol=None, random_state=seed),
    "discriminant": lambda seed: LinearDiscriminantAnalysis(),
    "no offset": lambda seed: RidgeClassifier(fit_intercept=False),
    "standard": lambda seed: make_pipeline(StandardScaler(), RidgeClassifier()),
    "not centred": lambda seed: make_pipeline(StandardScaler(with_mean=False), RidgeClassifier()),
    "not scaled": lambda seed: make_pipeline(StandardScaler(with_std=False), RidgeClassifier()),
    "range": lambda seed: make_pipeline(MinMaxScaler((-1, 3)), RidgeClassifier()),
    "largest": lambda seed: make_pipeline(MaxAbsScaler(), RidgeClassifier()),
    "robust": lambda seed: make_pipeline("passthrough", RobustScaler(), RidgeClassifier()),
    "three scalers": lambda seed: make_pipeline(
        RobustScaler(), MinMaxScaler(), StandardScaler(), LogisticRegression()
    ),
}


def linear_models(name: str, n_classes: int, count: int = 6) -> list[Any]:
    models = []
    for seed in range(count):
        X, y = table(seed, 120, n_classes)
        if seed % 3 == 1 and n_classes > 2:
            y = np.where(y == 0, n_classes - 1, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converged
            models.append(LINEAR[name](seed).fit(X, y))
    return models


def undecided(model: Any, X: Any) -> Any:
    """Tell for which rows rounding may decide: two scores are as good as equal."""
    with np.errstate(all="ignore"):
        scores = model.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros(len(X)), scores])
        ordered = np.sort(scores, axis=1)
        size = 1 + np.abs(X).max(axis=1)  # of what cancels in a score
        return ~(ordered[:, -1] - ordered[:, -2] > 1e-9 * size)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("name", LINEAR)
def test_linear_models_vote_as_one_by_one(name: str, n_classes: int) -> None:
    models = linear_models(name, n_classes)
    X, _ = table(77, 120, n_classes)
    X[100:104] *= 1e200
    X[104:108, 1] = 1e300
    voters = stack(models, n_classes)
    assert kinds(voters) == ["linear"]
    clear = np.ones(len(X), dtype=bool)
    for model in models:
        clear &= ~undecided(model, X)
    assert clear.sum() > 100
    np.testing.assert_array_equal(
        count_votes(voters, X, n_classes)[clear], looped(models, X[clear], n_classes)
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_score_that_overflows_is_a_vote_for_class_0(n_classes: int) -> None:
    models = linear_models("ridge", n_classes)
    for model in models:
        model.coef_ = model.coef_ * 1e10
    X, _ = table(1, 8)
    X[::2] = np.sign(X[::2]) * LARGE
    votes = count_votes(stack(models, n_classes), X, n_classes)
    np.testing.assert_array_equal(votes, looped(models, X, n_classes))
    assert votes[::2, 0].tolist() == [len(models)] * 4
    assert votes[1::2, 0].min() < len(models)


def test_each_kind_of_overflow_counts_for_class_0() -> None:
    for labels in ([1, 2], [2, 1]):
        for score in (math.inf, -math.inf, math.nan):
            one = {
                "n_classes": np.array(3),
                "weights": np.zeros((1, 1, 1)),
                "offsets": np.array([[score]]),
                "labels": np.array(labels),
            }
            assert voters_from_arrays("linear", one).count(np.ones((1, 1))).tolist() == [[1, 0, 0]]
    for place in range(3):
        for score in (math.inf, -math.inf, math.nan):
            offsets = np.array([[3.0], [2.0], [1.0]])
            offsets[place] = score
            three = {
                "n_classes": np.array(4),
                "weights": np.zeros((3, 1, 1)),
                "offsets": offsets,
                "labels": np.array([1, 2, 3]),
            }
            votes = voters_from_arrays("linear", three).count(np.ones((1, 1)))
            assert votes.tolist() == [[1, 0, 0, 0]]


@functools.cache
def ready(name: str) -> tuple[list[Voters], Any, int]:
    """Return voters of one kind, with rows right at the boundary."""
    if name in RULES:
        rules, X = RULES[name]()
        return stack(rules, 2), X[:130], 2
    kind, number = name.split()
    if kind == "depth":
        models = trees_of(DecisionTreeClassifier, 3, max_depth=int(number))
        return stack(models, 3), tree_queries(models)[100:230], 3
    n_classes = int(number)
    models = linear_models("standard", n_classes, count=140)
    X, _ = table(7, 130)
    # Move each row onto the boundary of some model, so that the last bit of a score decides.
    for place in range(len(X)):
        scaler, last = models[place]
        weights, offsets = np.atleast_2d(last.coef_) / scaler.scale_, last.intercept_
        w, b = weights[0], np.atleast_1d(offsets)[0]
        if len(weights) > 1:
            w, b = w - weights[1], b - offsets[1]
        X[place] -= (X[place] @ w + b - w @ scaler.mean_) / (w @ w) * w
    return stack(models, n_classes), X, n_classes


EVERYTHING = [*RULES, "depth 2", "depth 4", "depth 6", "depth 20", "classes 2", "classes 3"]


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_vote_does_not_depend_on_the_batch(name: str) -> None:
    voters, X, n_classes = ready(name)
    together = count_votes(voters, X, n_classes)
    assert (together.sum(axis=1) == sum(map(len, voters))).all()
    assert together.dtype == np.int64
    alone = np.vstack([count_votes(voters, row.reshape(1, -1), n_classes) for row in X])
    np.testing.assert_array_equal(together, alone)
    for order in (slice(None, None, -1), slice(1, None, 3), slice(5, 42)):
        np.testing.assert_array_equal(count_votes(voters, X[order], n_classes), together[order])
    many = np.tile(X, (40, 1))  # several blocks, several threads
    np.testing.assert_array_equal(count_votes(voters, many, n_classes), np.tile(together, (40, 1)))
    np.testing.assert_array_equal(count_votes(voters, np.asfortranarray(X), n_classes), together)
    frame = pd.DataFrame(X)
    np.testing.assert_array_equal(count_votes(voters, frame, n_classes), together)
    assert count_votes(voters, X[:0], n_classes).shape == (0, n_classes)


def arrays_in(given: Any) -> list[Any]:
    """Return copies of all arrays in nested tuples."""
    if isinstance(given, tuple):
        return [found for each in given for found in arrays_in(each)]
    return [given.copy()] if isinstance(given, np.ndarray) else []


@pytest.mark.parametrize("name", EVERYTHING)
def test_threads_that_count_at_once_share_nothing_that_is_written(name: str) -> None:
    """Scores in a room that threads share were mixed, and a vote depended on other queries."""
    voters, X, n_classes = ready(name)
    for each in voters:
        before = arrays_in(each.adder) if hasattr(each, "adder") else []
        count_votes([each], X, n_classes)
        after = arrays_in(each.adder) if hasattr(each, "adder") else []
        for one, other in zip(before, after, strict=True):
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_row_that_is_not_finite_counts_for_class_0(name: str) -> None:
    voters, X, n_classes = ready(name)
    expected = count_votes(voters, X, n_classes)
    X = X.copy()
    for place, value in ((3, math.nan), (17, math.inf), (-1, -math.inf)):
        X[place, -1] = value
        expected[place] = 0
        expected[place, 0] = sum(map(len, voters))
    np.testing.assert_array_equal(count_votes(voters, X, n_classes), expected)


@pytest.mark.parametrize("name", EVERYTHING)
def test_parts_and_arrays_vote_alike(name: str) -> None:
    voters, X, _ = ready(name)
    for group in voters:
        votes = group.count(X)
        assert isinstance(group, StackedVoters)
        for n in (1, 2, 7, 10**6):
            parts = group.parts(n)
            assert len(parts) <= n
            assert sum(map(len, parts)) == len(group)
            np.testing.assert_array_equal(sum(part.count_here(X) for part in parts), votes)
        arrays = group.to_arrays()
        assert all(type(a) is np.ndarray and a.dtype != object for a in arrays.values())
        again = voters_from_arrays(group.kind, arrays)
        np.testing.assert_array_equal(again.count(X), votes)


@pytest.mark.parametrize("name", EVERYTHING)
def test_arrays_that_do_not_fit_together_are_refused(name: str) -> None:
    group = ready(name)[0][-1]
    assert isinstance(group, StackedVoters)
    arrays = group.to_arrays()

    def refused(**changed: Any) -> None:
        with pytest.raises(InvalidParameter, match="no voters of kind"):
            voters_from_arrays(group.kind, {**arrays, **changed})

    refused(more=np.zeros(1))
    refused(n_classes=np.array(1))
    for key, array in arrays.items():
        with pytest.raises(InvalidParameter, match="no voters of kind"):
            voters_from_arrays(group.kind, {k: v for k, v in arrays.items() if k != key})
        if array.ndim:
            for wrong in (array[..., :-1], np.zeros_like(array, dtype=np.float32), array[None]):
                refused(**{key: wrong})
        if array.dtype.kind == "i" and array.ndim and key not in ("places", "ones"):
            refused(**{key: array - array.dtype.type(10**4)})
            if (group.kind, key) not in (("cuts", "columns"), ("trees", "used")):
                refused(**{key: array + array.dtype.type(10**4)})
    with pytest.raises(InvalidParameter, match="kind='cut' is none of"):
        voters_from_arrays("cut", arrays)


def test_another_number_of_columns_is_refused() -> None:
    X = np.zeros((2, WIDTH + 1))
    models = [*trees_of(DecisionTreeClassifier, 2, 2), *linear_models("ridge", 2, 2)]
    for voters in (*stack(models, 2), *stack([Threshold(1.0)], 2), *stack(boxes(2)()[0], 2)):
        with pytest.raises(InvalidData, match="has 6 columns, but the models were trained on"):
            voters.count(X)
    for rule in (Stump(6, 1.0), Tree((6,), (1.0,), (0, 1))):
        with pytest.raises(InvalidData, match="has 6 columns, but the models look at column 6"):
            count_votes(stack([rule], 2), X, 2)


def test_what_is_no_number_is_a_vote_for_the_first_class() -> None:
    # An error would tell that there is a model at all.
    frame = pd.DataFrame({"a": ["secret", 5.0, None, 10**400]})
    assert count_votes(stack([Threshold(1.0)], 2), frame, 2).tolist() == [
        [1, 0],
        [0, 1],
        [1, 0],
        [1, 0],
    ]


ZERO = np.zeros((1, 1))


class Odd:
    """Labels by the first column in ways that a model should not."""

    def __init__(self, answers: Any = None, *, spoil: bool = False) -> None:
        self.answers, self.spoil = answers, spoil

    def predict(self, X: Any) -> Any:
        first = np.array(X, dtype=float)[:, 0]
        if self.spoil:
            X[:] = 0
        if np.any(first == 1):
            raise KeyError("a private row")
        if np.any(first == 2):
            warnings.warn("a private row", stacklevel=2)
        if np.any(first == 4):
            np.log(np.zeros(1))
        warnings.warn("old code", FutureWarning, stacklevel=2)
        return [1] * len(X) if self.answers is None else self.answers(len(X))


def test_a_row_for_which_a_model_raises_or_warns_counts_for_class_0() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [0.0], [1.0]])
    (voters,) = stack([Odd(spoil=True), Odd()], 2, ZERO)
    assert isinstance(voters, LoopVoters)
    expected = [[0, 2], [2, 0], [2, 0], [0, 2], [2, 0], [0, 2], [2, 0]]
    before = list(warnings.filters)
    with np.errstate(all="ignore"):
        assert voters.count(X).tolist() == expected
    assert warnings.filters == before
    assert X[3, 0] == 3.0
    for place in range(len(X)):
        assert voters.count(X[place : place + 1]).tolist() == expected[place : place + 1]


@pytest.mark.parametrize(
    ("answers", "vote"),
    [
        (lambda n: np.full(n, 2.0), 2),
        (lambda n: np.ones(n, dtype=bool), 1),
        (lambda n: np.full(n, 2, dtype=object), 2),
        (lambda n: np.full(n, 3), 0),
        (lambda n: np.full(n, -1), 0),
        (lambda n: np.full(n, 1.5), 0),
        (lambda n: np.full(n, math.nan), 0),
        (lambda n: np.full(n, math.inf), 0),
        (lambda n: np.full(n, "1"), 0),
        (lambda n: np.full(n, None), 0),
        (lambda n: np.ones((n, 2)), 0),
        (lambda n: np.ones(n + 1), 0),
        (lambda n: None, 0),
    ],
)
def test_an_answer_that_is_no_class_counts_for_class_0(answers: Any, vote: int) -> None:
    votes = count_votes(stack([Odd(answers)], 3, ZERO), np.zeros((3, 1)), 3)
    assert votes.tolist() == [np.eye(3, dtype=int)[vote].tolist()] * 3


def test_labels_that_are_no_classes_are_read_alike_in_arrays() -> None:
    X, y = table(1, 60)
    named = np.array([7, 1])[y]
    for model in (RidgeClassifier(), DecisionTreeClassifier(max_depth=2), GaussianNB()):
        votes = count_votes(stack([model.fit(X, named)], 2, X[:1]), X, 2)
        np.testing.assert_array_equal(votes[:, 1] == 1, model.predict(X) == 1)


def test_only_models_that_arrays_can_hold_are_stacked() -> None:
    class Contrary(RidgeClassifier):  # type: ignore[misc]  # untyped base
        def predict(self, X: Any) -> Any:
            return 1 - super().predict(X)

    X, y = table(1, 60)
    models = [
        Contrary().fit(X, y),
        make_pipeline(MinMaxScaler(clip=True), RidgeClassifier()).fit(X, y),
        make_pipeline(StandardScaler(), DecisionTreeClassifier()).fit(X, y),
        GaussianNB().fit(X, y),
        DummyClassifier().fit(X, y),
    ]
    voters = stack(models, 2, X[:1])
    assert kinds(voters) == ["loop"]
    expected = sum(np.eye(2, dtype=np.int64)[model.predict(X)] for model in models)
    np.testing.assert_array_equal(count_votes(voters, X, 2), expected)
    with pytest.raises(InvalidParameter, match=r"Contrary, DummyClassifier, .* no array form"):
        voters[0].to_arrays()
    several = [DecisionTreeClassifier().fit(X, np.column_stack([y, y]))]
    several += [MultiOutputClassifier(RidgeClassifier()).fit(X, np.column_stack([y, y]))]
    several += [Halfspace((10**400, 2), 7), Threshold("1")]
    several += [Threshold(10**400), Point(np.datetime64("2020-01-01"))]
    assert kinds(stack(several, 2, X[:1])) == ["loop"]
    with pytest.raises(InvalidParameter, match="n_classes"):
        stack(models, 1)


def test_a_loop_passes_a_data_frame_on() -> None:
    class Named:
        def predict(self, X: Any) -> Any:
            return np.where(X["job"] == "baker", 1, 0)

    frame = pd.DataFrame({"age": [30, 40, 50], "job": ["baker", "poet", "baker"]})
    voters = stack([Named()] * 3, 2, frame[1:2])
    assert count_votes(voters, frame, 2).tolist() == [[0, 3], [3, 0], [0, 3]]


def test_a_loop_gives_large_tables_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cumae.ensembles.blocks.BLOCK_CELLS", 64)
    X, y = table(1, 300)
    model = GaussianNB().fit(X, y)
    votes = count_votes(stack([model], 2, X[:1]), X, 2)
    np.testing.assert_array_equal(votes, np.eye(2, dtype=np.int64)[model.predict(X)])


class Elsewhere(SequentialBackend):  # type: ignore[misc]  # untyped base
    """A backend that counts what it is given."""

    supports_sharedmem = False
    calls = 0

    def effective_n_jobs(self, n_jobs: int) -> int:
        return 3

    def submit(self, func: Any, callback: Any = None) -> Any:
        Elsewhere.calls += 1
        return super().submit(func, callback)

    def configure(self, *args: Any, **more: Any) -> int:
        Elsewhere.calls += 1
        super().configure(*args, **more)
        return 1


def test_another_backend_of_joblib_gets_all_models(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(1, 100)
    models = [*trees_of(DecisionTreeClassifier, 2), *linear_models("ridge", 2)]
    models += [GaussianNB().fit(X[i:], y[i:]) for i in range(5)]
    voters = stack(models, 2, X[:1])
    expected = count_votes(voters, X, 2)
    joblib.register_parallel_backend("elsewhere", Elsewhere)
    monkeypatch.setattr("cumae.ensembles.ensemble.ROWS", 64)
    counted = []
    plain = StackedVoters.count_here

    def count_here(self: StackedVoters, X: Any, numbers: Any) -> Any:
        counted.append(len(self))
        return plain(self, X, numbers)

    with monkeypatch.context() as patch:
        patch.setattr(StackedVoters, "count", lambda self, X: pytest.fail("voted at home"))
        patch.setattr(StackedVoters, "count_here", count_here)
        with joblib.parallel_config("elsewhere"):
            np.testing.assert_array_equal(count_votes(voters, X, 2), expected)
    assert Elsewhere.calls > 0
    assert len(counted) >= 2 * 2 * 3  # two blocks of rows, two kinds, three parts
    with joblib.parallel_config("threading", n_jobs=2):
        np.testing.assert_array_equal(count_votes(voters, X, 2), expected)


def test_memory_does_not_grow_with_queries() -> None:
    models = trees_of(DecisionTreeClassifier, 2, max_depth=4)
    voters = stack([*models, *linear_models("ridge", 2)], 2)
    X = np.random.default_rng(1).normal(size=(400_000, WIDTH))
    count_votes(voters, X[:10], 2)
    tracemalloc.start()
    try:
        votes = count_votes(voters, X, 2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * votes.nbytes + 2**25


@pytest.mark.parametrize("sizes", [(0, 1, 2), (3, 64, 1000)])
def test_ranks_equal_a_search(sizes: tuple[int, ...]) -> None:
    generator = np.random.default_rng(sum(sizes))
    cuts = [np.unique(generator.integers(-50, 50, size) / 4) for size in sizes]
    starts = np.append(0, np.cumsum([len(each) for each in cuts])).astype(np.int64)
    values = generator.integers(-60, 60, (len(sizes), 33)) / 4  # many are equal to a cut
    ranks = np.empty(values.shape, dtype=np.int16)
    rank(values, starts, np.concatenate(cuts), np.empty(33, dtype=np.int64), ranks)
    for each, mine, found in zip(cuts, values, ranks, strict=True):
        assert np.array_equal(found, np.searchsorted(each, mine, side="left"))
