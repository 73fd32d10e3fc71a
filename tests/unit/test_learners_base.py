"""What all learners share: labels, budgets, scores, storage, and nothing kept of the rows."""

from __future__ import annotations

import json
import math
import pickle
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning, NotFittedError

from cumae.concepts import (
    ConceptClass,
    FiniteClass,
    Halfspaces,
    Intervals,
    Points,
    Projections,
    Rectangles,
    Stumps,
    Thresholds,
    Trees,
    UnionOfIntervals,
)
from cumae.errors import BudgetExhausted, InvalidData, InvalidParameter
from cumae.estimators import own_clone
from cumae.learners import (
    GenericLearner,
    Learner,
    PrivateBooster,
    PrivateLearner,
    PrivateLogisticRegression,
    SemiPrivateLearner,
)
from cumae.learners.base import PUBLIC_ROWS
from cumae.privacy import Budget, compose
from cumae.sanitizers import Quantiles, StableThresholds
from tests.statistics import chi_square_rejects

CELL = 123456.789  # rare: a planted cell that nothing may repeat
ROWS = 997  # a number that no array of a model has
BOUNDS = [(0, 200_000), (0, 200_000)]
RNG = np.random.default_rng(11)
X = RNG.uniform(0, 200_000, (ROWS, 2))
Y = (X[:, 0] > 90_000).astype(int)
SOME = np.where(np.arange(ROWS) % 3 == 0, Y, -1)
PUBLIC = RNG.uniform(0, 200_000, (60, 2))

Fit = Callable[[NDArray[Any], int | None], Learner]


def boosted(delta: float) -> Fit:
    return lambda rows, seed: PrivateBooster(1.0, delta, 3, columns=BOUNDS, random_state=seed).fit(
        rows, Y
    )


LEARNERS: dict[str, Fit] = {
    "private": lambda rows, seed: PrivateLearner(columns=BOUNDS, random_state=seed).fit(rows, Y),
    "private, public rows": lambda rows, seed: PrivateLearner(
        Rectangles(), 2.0, random_state=seed
    ).fit(rows, Y, PUBLIC),
    "generic": lambda rows, seed: GenericLearner(columns=BOUNDS, random_state=seed).fit(rows, SOME),
    "generic, stable": lambda rows, seed: GenericLearner(
        Stumps(), 1.0, 1e-6, random_state=seed
    ).fit(rows, SOME),
    "semi-private": lambda rows, seed: SemiPrivateLearner(random_state=seed).fit(rows, Y, PUBLIC),
    "logistic": lambda rows, seed: PrivateLogisticRegression(
        1.0, 1e-6, BOUNDS, random_state=seed
    ).fit(rows, Y),
    "logistic, curves and ranges": lambda rows, seed: PrivateLogisticRegression(
        2.0, 1e-6, curves=4, random_state=seed
    ).fit(rows, Y),
    "logistic, public rows": lambda rows, seed: PrivateLogisticRegression(
        1.0, 1e-6, random_state=seed
    ).fit(rows, Y, PUBLIC),
    "booster": boosted(0.0),
    "booster with a start": boosted(1e-6),
}
OUTPUT = {"hypothesis_", "n_candidates_", "model_", "trees_", "start_"}
RANGES = {"columns_"}  # with ranges that were found privately


@pytest.fixture(params=LEARNERS)
def fit(request: pytest.FixtureRequest) -> Fit:
    return LEARNERS[request.param]


def different(one: Any, other: Any) -> set[str]:
    """Return the attributes whose pickles differ."""
    one, other = vars(one), vars(other)
    assert one.keys() == other.keys()
    return {name for name in one if pickle.dumps(one[name]) != pickle.dumps(other[name])}


@pytest.mark.claim("KLNRS", "GENERIC", "SSPP", "KERNEL", "BOOST")
def test_neighbours_with_equal_coins_differ_in_the_private_output_only(fit: Fit) -> None:
    one: Any = fit(X, 5)
    moved = set()
    for row in range(2):
        neighbour = X.copy()
        neighbour[row] = [CELL, 0.0]
        other: Any = fit(neighbour, 5)
        names = different(one, other)
        assert names <= OUTPUT | (RANGES if "RANGES" in one.guarantee_.claims else set())
        if "start_" in names:
            assert different(one.start_, other.start_) <= OUTPUT
        if isinstance(one, PrivateLearner | SemiPrivateLearner):
            assert names <= {"hypothesis_"}  # candidates do not depend on private rows
        assert one.guarantee_ == other.guarantee_
        moved |= names
    if isinstance(one, PrivateLogisticRegression):
        assert "model_" in moved  # the test can see something


def parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """Everything that a value is made of."""
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    children: list[Any] = []
    if isinstance(value, dict):
        children = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set):
        children = list(value)
    if hasattr(value, "__dict__") and not isinstance(value, type):
        children += vars(value).values()
    for child in children:
        yield from parts(child, seen)


@pytest.mark.claim("KLNRS", "GENERIC", "SSPP", "KERNEL", "BOOST")
def test_a_fitted_learner_holds_no_row(fit: Fit) -> None:
    planted = X.copy()
    planted[7] = CELL
    learner = fit(planted, None)
    for part in parts(learner, set()):
        assert not isinstance(part, np.ndarray) or ROWS not in part.shape
        assert not isinstance(part, list | tuple | dict | str) or len(part) != ROWS
    stored = pickle.dumps(learner)
    for form in ("<d", ">d", "<f"):
        assert struct.pack(form, CELL) not in stored
    assert "123456.78" not in json.dumps(learner.to_dict())
    assert "123456.78" not in str(learner) + repr(learner)
    assert not learner.guarantee_.void


def test_a_seed_voids_the_guarantee(fit: Fit) -> None:
    one, other = fit(X, 3), fit(X, 3)
    assert one.guarantee_.void
    assert different(one, other) == set()
    assert one.predict(X).tolist() == other.predict(X).tolist()


# Budgets


def test_a_fit_spends_its_cost_and_no_more(fit: Fit) -> None:
    template = fit(X, None)
    asked = template.epsilon, template.delta
    data: tuple[Any, ...] = (X, SOME) if isinstance(template, GenericLearner) else (X, Y)
    if template.guarantee_.assumptions:
        data = (*data, PUBLIC)
    budget = Budget(2.5 * asked[0], 3 * asked[1])
    for _ in range(2):
        learner = own_clone(template).set_params(budget=budget).fit(*data)
    assert len(budget.entries) == 2
    assert {entry.what for entry in budget.entries} == {type(template).__name__}
    for entry in budget.entries:
        assert entry.epsilon == pytest.approx(learner.guarantee_.epsilon, rel=1e-5)
        assert learner.guarantee_.epsilon <= asked[0]
        assert entry.delta == asked[1]
    refused = own_clone(template).set_params(budget=budget)
    with pytest.raises(BudgetExhausted):
        refused.fit(*data)
    assert len(budget.entries) == 2
    assert not [name for name in vars(refused) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        refused.predict(X)


def test_bad_rows_are_refused_before_anything_is_paid() -> None:
    budget = Budget(1.0)
    learner = PrivateLearner(columns=BOUNDS, budget=budget)
    for rows, labels in ((X, Y[1:]), (X * math.nan, Y), (X, Y + 5), (X[:0], Y[:0])):
        with pytest.raises(InvalidData):
            learner.fit(rows, labels)
    assert not budget.entries


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, "1", None])
def test_bad_epsilons(epsilon: Any) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        PrivateLearner(epsilon=epsilon, columns=BOUNDS).fit(X, Y)


# Labels


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        ((0, 1), Y),
        ((0, 1), Y.astype(bool)),
        ((0, 1), Y.astype(float)),
        ((0, 1), pd.Series(Y)),
        ((1, 0), 1 - Y),
        ((False, True), Y.astype(bool)),
        ((-1, 1), 2 * Y - 1),
        (("no", "yes"), np.where(Y == 1, "yes", "no")),
        (("no", "yes"), np.where(Y == 1, "yes", "no").tolist()),
        (("no", "yes"), pd.Series(np.where(Y == 1, "yes", "no"), dtype="category")),
        (np.array(["no", "yes"]), np.where(Y == 1, "yes", "no")),
        ((2.5, "other"), [2.5 if label == 0 else "other" for label in Y]),
    ],
)
def test_declared_classes_come_back(classes: Any, labels: Any) -> None:
    learner = PrivateLearner(epsilon=math.inf, classes=classes, columns=BOUNDS, n_points=20)
    answers = learner.fit(X, labels).predict(X)
    assert set(answers.tolist()) == set(classes)
    right = sum(a == b for a, b in zip(answers, list(labels), strict=True))
    assert right > 0.95 * ROWS
    if classes[0] != 2.5:  # scikit-learn scores no mixtures of numbers and names
        assert learner.score(X, labels) == right / ROWS


@pytest.mark.parametrize("classes", [(0,), (0, 1, 2), (1, 1), (1, True), None, 5, ()], ids=str)
def test_two_classes_are_needed(classes: Any) -> None:
    with pytest.raises(InvalidParameter, match="takes two classes; for more, use OneVsRest"):
        PrivateLearner(classes=classes, columns=BOUNDS).fit(X, Y)


@pytest.mark.parametrize(
    "labels", [[0, 1, 7, 9], [0, 1, math.nan, 1], ["0", "1", "a", "b"], [0, 1, None, 1]]
)
def test_a_label_outside_the_classes_is_named_by_its_row(labels: Any) -> None:
    row = 0 if labels[0] == "0" else 2
    with pytest.raises(InvalidData, match=f"label in row {row} that is none of classes") as caught:
        PrivateLearner(columns=BOUNDS).fit(X[:4], labels)
    assert "7" not in str(caught.value)


def test_nullable_labels_with_one_missing() -> None:
    with pytest.raises(InvalidData, match="row 1"):
        PrivateLearner(columns=BOUNDS).fit(X[:2], pd.Series([1, None], dtype="Int64"))


def test_rows_without_label() -> None:
    for learner in (PrivateLearner(columns=BOUNDS), PrivateBooster(columns=BOUNDS)):
        with pytest.raises(InvalidData, match="row 1 "):
            learner.fit(X, SOME)
    with pytest.raises(InvalidParameter, match="-1 marks a row without a label; name it otherwise"):
        GenericLearner(classes=(-1, 1), columns=BOUNDS).fit(X, 2 * Y - 1)
    named: list[Any] = ["yes" if label else "no" for label in Y]
    named = [name if i % 3 == 0 else -1 for i, name in enumerate(named)]
    learner = GenericLearner(Stumps(), math.inf, classes=("no", "yes"), columns=BOUNDS)
    assert learner.fit(X, named).score(X[::3], named[::3]) > 0.9
    assert learner.fit(X, np.array(named, dtype=object)).guarantee_.epsilon == math.inf


def test_shapes_of_labels() -> None:
    learner = PrivateLearner(columns=BOUNDS)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        learner.fit(X, Y.reshape(-1, 1))
    with pytest.raises(InvalidData, match=r"y has shape \(997, 2\); give one label for each row"):
        learner.fit(X, np.column_stack([Y, Y]))
    with pytest.raises(InvalidData, match="X has 997 rows but y has 996"):
        learner.fit(X, Y[1:])
    with pytest.raises(InvalidData, match="requires y"):
        learner.fit(X, None)


def test_a_second_fit_forgets_the_first() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    learner = PrivateLearner(columns=BOUNDS).fit(frame, Y)
    assert learner.feature_names_in_.tolist() == ["a", "b"]
    assert learner.n_features_in_ == 2
    assert learner.predict(frame[["b", "a"]]).tolist() == learner.predict(frame).tolist()
    with pytest.raises(InvalidData, match=r"\['b'\] are not there"):
        learner.predict(frame[["a"]])
    assert not hasattr(learner.fit(X, Y), "feature_names_in_")


def test_public_rows_that_are_none_count_as_none() -> None:
    learner = PrivateLogisticRegression(1.0, 1e-6, BOUNDS).fit(X, Y, X[:0])
    assert PUBLIC_ROWS[0] not in learner.guarantee_.assumptions
    with pytest.raises(InvalidData, match="X_public is missing"):
        SemiPrivateLearner().fit(X, Y, X[:0])


# Scores


def test_the_plain_score_is_exact_and_says_that_it_leaks() -> None:
    learner = PrivateLearner(columns=BOUNDS).fit(X, Y)
    assert learner.score(X, Y) == np.mean(learner.predict(X) == Y)
    assert "leak" in (Learner.score.__doc__ or "")
    assert "private_score" in (Learner.score.__doc__ or "")


def test_private_score_pays_and_refuses() -> None:
    learner = PrivateLearner(columns=BOUNDS).fit(X, Y)
    budget = Budget(1.0)
    assert 0 <= learner.private_score(X, Y, 0.75, budget=budget) <= 1
    assert [(e.what, e.epsilon, e.delta) for e in budget.entries] == [("private_score", 0.75, 0)]
    with pytest.raises(BudgetExhausted):
        learner.private_score(X, Y, 0.75, budget=budget)
    assert len(budget.entries) == 1
    assert learner.private_score(X, Y, math.inf) == learner.score(X, Y)
    with pytest.raises(InvalidData, match="no rows"):
        learner.private_score(X[:0], Y[:0], 1.0)
    with pytest.raises(InvalidData, match="X has 1 rows but y has 997"):
        learner.private_score(X[:1], Y, 1.0)
    with pytest.raises(InvalidData, match="row 1 "):
        learner.private_score(X, SOME, 1.0)
    with pytest.raises(InvalidParameter):
        learner.private_score(X, Y, -1.0)
    with pytest.raises(NotFittedError):
        PrivateLearner().private_score(X, Y, 1.0)


def score_noise(learner: Learner, epsilon: float) -> list[int]:
    """Count how far 3000 noisy numbers of right answers are from the truth, from -6 to 6."""
    right = int(np.count_nonzero(learner.predict(X) == Y))
    drawn = [round(learner.private_score(X, Y, epsilon) * ROWS) - right for _ in range(3000)]
    return [int(count) for count in np.bincount(np.clip(drawn, -7, 7) + 7, minlength=15)]


@pytest.mark.statistical
def test_private_score_has_the_noise_of_its_epsilon() -> None:
    """One row moves the number of right answers by 1: Laplace noise of rate epsilon."""
    learner = PrivateLearner(columns=[(0, 200_000), (0, 200_000)], epsilon=math.inf, n_points=9)
    learner.fit(X, Y)
    assert 0.8 < learner.score(X, Y) < 0.99  # so that the noise is not cut off
    x = np.arange(-300, 301)
    mass = np.exp(-0.5 * np.abs(x))
    mass /= mass.sum()
    expected = [mass[x <= -7].sum(), *mass[np.abs(x) < 7], mass[x >= 7].sum()]
    assert not chi_square_rejects(score_noise(learner, 0.5), expected)
    assert chi_square_rejects(score_noise(learner, 1.0), expected, checks=0)  # half of the noise


# Storage

ONE: list[ConceptClass] = [
    Thresholds(),
    Thresholds("above"),
    Points(),
    Intervals(),
    UnionOfIntervals(2),
]
TWO: list[ConceptClass] = [
    Stumps(),
    Trees(1),
    Trees(2),
    Rectangles(),
    Halfspaces(),
    Projections([[1.0, 0.0], [1.0, 1.0]]),
    FiniteClass([Stumps().erm(X, Y), Stumps().erm(X, 1 - Y)]),
]


@pytest.mark.parametrize("concept", [*ONE, *TWO], ids=repr)
def test_every_concept_class_can_be_stored(concept: ConceptClass, tmp_path: Path) -> None:
    rows, limits, public = X, BOUNDS, PUBLIC
    if concept in ONE:
        rows, limits, public = X[:, :1], BOUNDS[:1], PUBLIC[:, :1]
    learners: list[Learner] = [
        PrivateLearner(concept, 1.0, columns=limits, n_points=5).fit(rows, Y),
        GenericLearner(concept, 1.0, columns=limits, n_points=5).fit(rows, SOME),
        SemiPrivateLearner(concept, 1.0).fit(rows, Y, public),
    ]
    for learner in learners:
        learner.save(tmp_path / "model.json")
        again = Learner.load(tmp_path / "model.json")
        check_same(again, learner, rows)
        assert again.concept_class == concept


def check_same(again: Any, learner: Any, rows: NDArray[Any]) -> None:
    assert type(again) is type(learner)
    assert again.guarantee_ == learner.guarantee_
    assert again.predict(rows).tolist() == learner.predict(rows).tolist()
    assert again.predict(rows).dtype == learner.predict(rows).dtype
    assert again.to_dict() == learner.to_dict()
    assert str(again) == str(learner)
    ours, theirs = learner.get_params(), again.get_params()
    assert ours.keys() == theirs.keys()


def test_every_learner_can_be_stored_and_pickled(fit: Fit, tmp_path: Path) -> None:
    learner = fit(X, None)
    learner.save(tmp_path / "model.json")
    check_same(type(learner).load(tmp_path / "model.json"), learner, X)
    check_same(pickle.loads(pickle.dumps(learner)), learner, X)  # noqa: S301 - our own


@pytest.mark.parametrize(
    "sanitizer",
    [
        Quantiles(1.0, [(0.0, 200_000.0), None], 7),
        Quantiles(0.5, None, 3),
        StableThresholds(1.0, 1e-6, 3),
    ],
)
def test_a_sanitizer_is_stored_with_its_learner(sanitizer: Any) -> None:
    learner = GenericLearner(Stumps(), 1.0, 1e-6, sanitizer).fit(X, SOME)
    plain = json.loads(json.dumps(learner.to_dict()))
    again = GenericLearner.from_dict(plain)
    check_same(again, learner, X)
    assert again.sanitizer.cost == sanitizer.cost  # type: ignore[union-attr]


def test_tables_with_names_and_text_are_stored() -> None:
    frame = pd.DataFrame({"size": X[:, 0], "job": np.where(Y == 1, "nurse", "poet")})
    columns = {"size": (0, 200_000), "job": ["poet", "nurse", "judge"]}
    for learner in (
        PrivateLearner(columns=columns, classes=("a", "b")),
        PrivateLogisticRegression(1.0, 1e-6, columns, 4, classes=("a", "b")),
        PrivateBooster(1.0, columns=columns, classes=("a", "b")),
    ):
        learner.fit(frame, np.where(Y == 1, "b", "a"))
        again = Learner.from_dict(json.loads(json.dumps(learner.to_dict())))
        assert again.predict(frame).tolist() == learner.predict(frame).tolist()
        assert again.feature_names_in_.tolist() == ["size", "job"]
        turned = frame[["job", "size"]]
        assert again.predict(turned).tolist() == learner.predict(frame).tolist()


def test_columns_of_text_and_dates_are_stored() -> None:
    words = ["ant", "bee", "cow", "dog"]
    days = np.array(["2024-01-01", "2024-02-01", "2024-03-01"], dtype="datetime64[D]")
    for values, labels in ((words, [0, 0, 1, 1]), (days, [0, 1, 1])):
        learner = SemiPrivateLearner(Thresholds(), math.inf).fit(values, labels, values)
        again = Learner.from_dict(json.loads(json.dumps(learner.to_dict())))
        assert again.predict(values).tolist() == labels


STORED = PrivateLearner(columns=BOUNDS).fit(X, Y).to_dict()
FOREIGN: list[Any] = [
    {},
    [],
    "text",
    3,
    None,
    {"format": 1},
    STORED | {"format": 2},
    STORED | {"kind": "Unknown"},
    STORED | {"kind": "ConceptLearner"},
    STORED | {"kind": ["PrivateLearner"]},
    STORED | {"params": []},
    STORED | {"params": {"unknown": 1}},
    STORED | {"fitted": {}},
    STORED | {"fitted": STORED["fitted"] | {"predict": 1}},
    STORED | {"fitted": STORED["fitted"] | {"__class__": 1}},
    STORED | {"fitted": STORED["fitted"] | {"a_": {"b": 1}}},
    STORED | {"fitted": STORED["fitted"] | {"a_": {"$": "unknown"}}},
    STORED | {"fitted": STORED["fitted"] | {"a_": {"$": "float", "value": "x"}}},
    STORED | {"fitted": STORED["fitted"] | {"a_": {"$": "concept", "kind": "no", "fields": {}}}},
    STORED | {"fitted": STORED["fitted"] | {"a_": {"$": "concept", "kind": "cuts_of"}}},
    STORED | {"fitted": {"a_": {"$": "array", "type": "<f8", "shape": [3], "items": [1.0]}}},
    STORED | {"fitted": {"guarantee_": {"$": "guarantee", "value": {"epsilon": -1}}}},
    STORED | {"fitted": {"hypothesis_": {"$": "hypothesis", "value": {"kind": "Tree"}}}},
]


@pytest.mark.parametrize("plain", FOREIGN, ids=range(len(FOREIGN)))
def test_foreign_json_is_refused(plain: Any, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(json.dumps(plain))
    with pytest.raises(InvalidParameter):
        Learner.load(tmp_path / "model.json")


def test_other_files_and_other_learners_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text("no json")
    with pytest.raises(InvalidParameter, match="no file of JSON"):
        Learner.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidParameter, match="no file of JSON"):
        Learner.load(path)
    path.write_text(json.dumps(STORED))
    with pytest.raises(InvalidParameter, match=r"a PrivateLearner; cumae\.load takes"):
        PrivateBooster.load(path)
    with pytest.raises(NotFittedError):
        PrivateLearner().to_dict()


def test_what_cannot_be_stored_says_so() -> None:
    class Rule:
        def predict(self, X: Any) -> NDArray[Any]:
            return np.ones(len(X), dtype=int)

    learner = PrivateLearner(FiniteClass([Rule()])).fit(X, Y)
    with pytest.raises(InvalidParameter, match="cannot be stored"):
        learner.to_dict()


def test_costs_add_up_on_one_budget() -> None:
    """Fits of different learners on the same rows share one account."""
    budget = Budget(3.0, 1e-5)
    PrivateLearner(columns=BOUNDS, budget=budget).fit(X, Y)
    PrivateLogisticRegression(1.0, 1e-6, BOUNDS, budget=budget).fit(X, Y)
    assert len(budget.entries) == 2
    total = compose([Stumps().choose_cost(1.0)])
    assert total.epsilon(0) == budget.entries[0].epsilon


def small_table(rows: int = 3000) -> tuple[Any, Any]:
    generator = np.random.default_rng(5)
    X = generator.uniform(0, 1, (rows, 2))
    return X, (X[:, 0] + X[:, 1] > 1).astype(int)


@pytest.mark.parametrize("learner", [PrivateBooster, PrivateLogisticRegression])
def test_a_handful_of_public_rows_is_not_used(learner: Any) -> None:
    X, y = small_table()
    model = learner(1.0, 1e-6, columns=[(0, 1), (0, 1)]).fit(X, y, X[:3])
    assert PUBLIC_ROWS[0] not in model.guarantee_.assumptions
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("epsilon", [600.0, 1000.0, 1e6])
def test_huge_epsilons_are_no_crash(epsilon: float) -> None:
    X, y = small_table(500)
    for learner in (PrivateBooster, PrivateLogisticRegression):
        model = learner(epsilon, 1e-6, columns=[(0, 1), (0, 1)]).fit(X, y)
        assert model.guarantee_.epsilon <= epsilon


def test_coefficients_are_those_of_the_line() -> None:
    X, y = small_table()
    model = PrivateLogisticRegression(1.0, 1e-6, bounds=[(0, 1), (0, 1)]).fit(X, y)
    assert model.coef_.shape == (1, 2)
    line = X @ model.coef_[0] + model.intercept_[0]
    # Cells are read by levels, which are wide where made-up rows are few.
    assert np.abs(line - model.decision_function(X)).mean() < 0.02 * np.abs(line).max()


def test_rules_are_printed_with_the_names_of_columns() -> None:
    X, y = small_table()
    frame = pd.DataFrame(X, columns=["age", "weight"])
    learner = PrivateLearner(epsilon=5.0, columns={"age": (0, 1), "weight": (0, 1)}).fit(frame, y)
    assert "column" not in str(learner)
    assert "age >=" in str(learner) or "weight >=" in str(learner)


def test_errors_in_public_rows_say_so() -> None:
    X, y = small_table(200)
    public = X.copy()
    public[4, 1] = np.nan
    with pytest.raises(InvalidData, match=r"X_public: .*row 4, column 1"):
        PrivateBooster(1.0, 1e-6).fit(X, y, public)


@pytest.mark.parametrize("columns", [5, "age", {1.5: (0, 1)}])
def test_declarations_of_the_wrong_kind(columns: Any) -> None:
    X, y = small_table(200)
    with pytest.raises(InvalidParameter, match="columns"):
        PrivateBooster(1.0, columns=columns).fit(X, y)
