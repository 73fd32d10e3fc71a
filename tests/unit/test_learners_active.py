"""Active learning: costs against exact enumeration, the printed bound, the protocol, refusals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone

from cumae.concepts import Thresholds
from cumae.errors import InvalidData, InvalidParameter
from cumae.learners import (
    GenericLearner,
    PrivateLearner,
    PrivateLogisticRegression,
    SemiPrivateLearner,
)
from cumae.learners.active import ActiveLearner, smallest_labelled
from cumae.learners.base import LearningPlan, Rows
from cumae.learners.wrappers.label_boost import LabelBoost
from cumae.privacy import Approximate, Pure, subsample
from cumae.randomness import SeededSource, Source
from tests.divergence import Exact, assert_covers

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

Law = NDArray[np.float64]
Value = tuple[int, int]  # what everyone can see of a row, and its label
Base = Callable[[tuple[Value, ...], tuple[int, ...]], Law]


def generic(epsilon: float = 2.0, **changes: Any) -> GenericLearner:
    return GenericLearner(Thresholds(), epsilon, columns=[(0, 1)], **changes)


def points(count: int = 2000) -> NDArray[Any]:
    return np.random.default_rng(0).random((count, 1))


# Costs


def sampled_law(rows: tuple[Value, ...], n: int, m: int, base: Base, variant: str) -> Law:
    """Law of the outcome, by the definition; the base ignores the order within each role."""
    laws = []
    for sample in itertools.permutations(range(len(rows)), n):
        order = sorted(sample) if variant == "paper" else list(sample)
        labelled = tuple(sorted(rows[i] for i in order[:m]))
        laws.append(base(labelled, tuple(sorted(rows[i][0] for i in order[m:]))))
    return np.asarray(np.mean(laws, axis=0))


def pairs(laws: dict[Any, Law], values: list[Any]) -> tuple[tuple[Law, Law], ...]:
    return tuple(
        (law, laws[(*rows[:i], new, *rows[i + 1 :])])
        for rows, law in laws.items()
        for i in range(len(rows))
        for new in values
        if new != rows[i]
    )


def random_base(seed: int) -> Base:
    def law(labelled: tuple[Value, ...], others: tuple[int, ...]) -> Law:
        flat = [2 * x + y + 2 for x, y in labelled]
        generator = np.random.default_rng([seed, *flat, 99, *(x + 1 for x in others)])
        weights = np.exp(1.5 * generator.normal(size=3))
        if seed % 2:  # an outcome that some inputs never have
            weights[2] *= 0.05 * generator.integers(2)
        return np.asarray(weights / weights.sum())

    return law


def base_cost(base: Base, n: int, m: int) -> Exact:
    """Exact cost of the base, when which rows are labelled is public."""
    values = list(itertools.product((0, 1), (0, 1)))
    found = []
    for labelled in itertools.product(values, repeat=m):
        for others in itertools.product((0, 1), repeat=n - m):
            law = base(tuple(sorted(labelled)), tuple(sorted(others)))
            for i, value in itertools.product(range(m), values):
                moved = (*labelled[:i], value, *labelled[i + 1 :])
                found.append((law, base(tuple(sorted(moved)), tuple(sorted(others)))))
            for i, x in itertools.product(range(n - m), (0, 1)):
                changed = (*others[:i], x, *others[i + 1 :])
                found.append((law, base(tuple(sorted(labelled)), tuple(sorted(changed)))))
    return Exact(tuple(found))


@pytest.mark.claim("ACTIVE")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("variant", ["ordered", "paper"])
def test_sampling_keeps_the_cost_on_every_pair(seed: int, variant: str) -> None:
    n, m, t = 2, 1, 4
    base, values = random_base(seed), list(itertools.product((0, 1), (0, 1)))
    laws = {
        rows: sampled_law(rows, n, m, base, variant) for rows in itertools.product(values, repeat=t)
    }
    inner = base_cost(base, n, m)
    learner = ActiveLearner(None, variant=variant)
    found = pairs(laws, values)
    for e in (0.0, 0.3, 1.0, 2.0, 4.0) if variant == "paper" else (0.0,):
        pair = Approximate(e, min(inner.delta(e), 0.999))
        assert_covers(learner._cost(inner, pair, n / t), found)


def adversary(epsilon: float) -> Base:
    """Return a base of that epsilon that gives away a row and the one whose side it changes."""
    first, second = {(3, 1): 1}, {1: 1}

    def law(labelled: tuple[Value, ...], others: tuple[int, ...]) -> Law:
        score = first.get(labelled[0], 0) + second.get(others[0], 0)
        rare = 1e-9 * math.exp(epsilon * score)
        return np.array([rare, 1 - rare])

    return law


@pytest.mark.claim("ACTIVE")
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_smallest_indices_cost_more_than_an_ordered_sample(epsilon: float) -> None:
    """The planted bug: the ordered sample's formula for the paper's variant."""
    base = adversary(epsilon)
    ours, theirs = ((3, 1), (1, 0), (2, 0)), ((0, 0), (1, 0), (2, 0))
    ratios = {}
    for variant in ("ordered", "paper"):
        p, q = (sampled_law(rows, 2, 1, base, variant) for rows in (ours, theirs))
        ratios[variant] = abs(float(np.log(p[0] / q[0])))
    ordered = subsample(Pure(epsilon), 2 / 3).pure
    assert ratios["ordered"] <= ordered
    assert (
        ordered * 1.05 < ratios["paper"] <= smallest_labelled(Approximate(epsilon, 0.0), 2 / 3).eps
    )


@pytest.mark.claim("ACTIVE")
@pytest.mark.parametrize("e", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("q", [1e-4, 0.05, 0.5, 1.0])
def test_the_papers_variant_has_its_formula(e: float, q: float) -> None:
    x = math.exp(e)
    u = (1 + q * (x**2 - 1)) / (1 + q * (x - 1))
    pair = smallest_labelled(Approximate(e, d := 1e-6), q)
    assert pair.eps == pytest.approx(math.log(u), rel=1e-9)
    assert pair.failure == pytest.approx(q * d * (1 + x - u), rel=1e-9)
    assert subsample(Pure(e), q).pure <= pair.eps <= e


@pytest.mark.claim("ACTIVE")
@pytest.mark.parametrize("e", [0.1, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0])
def test_at_the_printed_size_it_costs_at_most_what_is_printed(e: float, epsilon: float) -> None:
    d, x = 1e-6, math.exp(e)
    pair = smallest_labelled(Approximate(e, d), epsilon / (3 + x**2))
    assert pair.eps <= epsilon
    assert pair.failure <= (7 + x) / (3 + x**2) * epsilon * d


def test_edges_of_the_cost() -> None:
    assert smallest_labelled(Approximate(1.0, 0.5), 0.0) == Approximate(0.0, 0.0)
    assert smallest_labelled(Approximate(1.0, 0.9), 0.9).failure < 1
    huge = Approximate(400.0, 0.0)
    assert smallest_labelled(huge, 0.5) == huge


# The protocol


@pytest.mark.claim("ACTIVE")
@pytest.mark.parametrize("variant", ["ordered", "paper"])
@pytest.mark.parametrize("target", [0.3, 0.7, 5.0])
def test_select_then_fit(variant: str, target: float) -> None:
    X = points()
    learner = ActiveLearner(generic(), target, n_labels=10, variant=variant)
    asked = learner.select(X)
    assert len(set(asked.tolist())) == 10
    assert (np.diff(asked) > 0).all() == (variant == "paper")
    learner.fit(X, X[asked, 0] > 0.5)
    found = learner.guarantee_
    assert 0.8 * min(target, 2.0) < found.epsilon <= min(target, 2.0)
    assert not found.void
    assert "only those who label" in found.assumptions[0]
    assert not any("drawn" in name and value is not None for name, value in vars(learner).items())
    assert not hasattr(learner, "transcript_")
    assert learner.learner_.guarantee_ == found
    with pytest.raises(InvalidData, match="no rows were selected"):
        learner.fit(X, X[asked, 0] > 0.5)


@pytest.mark.claim("ACTIVE")
def test_a_transcript_costs_what_the_base_costs() -> None:
    X = points()
    learner = ActiveLearner(generic(0.5), 0.5, n_labels=50, n_rows=500, transcript=True)
    asked = learner.select(X)
    learner.fit(X, X[asked, 0] > 0.5)
    assert learner.guarantee_.epsilon == 0.5
    assert np.array_equal(learner.transcript_, asked)
    assert "published" in learner.guarantee_.protects
    with pytest.raises(InvalidData, match="privacy allows no more"):
        ActiveLearner(generic(0.6), 0.5, n_labels=50, transcript=True).select(X)
    costly = ActiveLearner(generic(0.6), 0.5, n_labels=50, n_rows=100, transcript=True)
    with pytest.raises(InvalidParameter, match=r"cost epsilon=0\.6"):
        costly.fit(X, X[costly.select(X), 0] > 0.5)


class Secretive(PrivateLearner):
    """A base whose promise holds only as long as nobody knows which rows have labels."""

    transcript_private = False


def test_bases_without_transcript_privacy_are_refused() -> None:
    X = points()
    base = Secretive(Thresholds(), 0.5, columns=[(0, 1)])
    with pytest.raises(InvalidParameter, match="Secretive does not promise"):
        ActiveLearner(base, 1.0, transcript=True).select(X)
    nested = ActiveLearner(generic(0.5), 1.0)
    with pytest.raises(InvalidParameter, match="ActiveLearner does not promise"):
        ActiveLearner(nested, 1.0, transcript=True).select(X)
    with pytest.raises(InvalidParameter, match="selects by itself"):
        ActiveLearner(nested, 1.0).select(X)
    assert len(ActiveLearner(base, 1.0, n_labels=30).select(X)) == 30


class Spy(GenericLearner):
    """Keeps what it was given; for tests only."""

    seen: ClassVar[list[Rows]] = []

    def _learn(self, rows: Rows, plan: LearningPlan[Any], source: Source) -> None:
        Spy.seen.append(rows)
        super()._learn(rows, plan, source)


@pytest.mark.claim("ACTIVE")
def test_with_the_same_coins_a_row_changes_one_entry() -> None:
    """In both variants; and the questions do not depend on the rows at all."""
    X = points(300)

    def run(table: NDArray[Any], variant: str) -> tuple[Any, Rows]:
        base = Spy(Thresholds(), 1.0, columns=[(0, 1)])
        learner = ActiveLearner(
            base, 5.0, n_labels=20, n_rows=150, variant=variant, random_state=SeededSource(2)
        )
        asked = learner.select(table)
        Spy.seen.clear()
        learner.fit(table, table[asked, 0] > 0.4)
        assert learner.guarantee_.void
        return asked, Spy.seen[0]

    for variant in ("ordered", "paper"):
        asked, rows = run(X, variant)
        assert np.count_nonzero(rows.y != -1) == 20
        assert np.array_equal(rows.y[:20] == 1, rows.X[:20, 0] > 0.4)
        if variant == "paper":
            assert np.any(np.diff(rows.X[:20, 0] == X[asked, 0]))  # the base sees no order
        for place in (0, 11, 150, 299):
            other = X.copy()
            other[place] = 0.123
            again, moved = run(other, variant)
            assert np.array_equal(asked, again)
            held = rows.X[:, 0] == X[place, 0]
            assert np.array_equal(moved.X[:, 0] != rows.X[:, 0], held)
            assert np.all((moved.y != rows.y) <= held)


def test_few_labels_suffice_at_a_small_epsilon() -> None:
    X = points(20_000)
    learner = ActiveLearner(generic(2.0), 0.5, n_labels=200, random_state=1)
    asked = learner.select(X)
    learner.fit(X, (X[asked, 0] > 0.3).astype(int))
    assert np.mean(learner.predict(X) != (X[:, 0] > 0.3)) < 0.1


def test_over_label_boosting_and_over_a_supervised_base() -> None:
    X = points(20_000)
    inner = PrivateLearner(Thresholds(), 1.0, columns=[(0, 1)])
    boosting = ActiveLearner(LabelBoost(inner, Thresholds(), 2.0), 0.5, n_labels=400)
    boosting.fit(X, X[boosting.select(X), 0] > 0.3)
    assert boosting.guarantee_.epsilon <= 0.5
    assert {"ACTIVE", "SUB", "ITER", "LB"} <= set(boosting.guarantee_.claims)
    plain = ActiveLearner(inner, 0.5, n_labels=400)
    plain.fit(X, X[plain.select(X), 0] > 0.3)
    rate = 400 / 20_000
    assert plain.guarantee_.epsilon == pytest.approx(math.log(1 + rate * (math.e - 1)))


def test_a_base_with_a_delta() -> None:
    X = points(5000)
    base = GenericLearner(Thresholds(), 1.0, 1e-5, sanitizer="stable", n_points=3)
    for variant in ("ordered", "paper"):
        learner = ActiveLearner(base, 0.5, 1e-6, n_labels=100, variant=variant)
        learner.fit(X, X[learner.select(X), 0] > 0.3)
        assert learner.guarantee_.delta == 1e-6
        assert learner.guarantee_.epsilon <= 0.5


def test_names_of_classes_and_storage(tmp_path: Path) -> None:
    X = points()
    learner = ActiveLearner(generic(), 1.0, n_labels=100, classes=("no", "yes"))
    asked = learner.select(X)
    learner.fit(X, np.where(X[asked, 0] > 0.3, "yes", "no"))
    assert learner.predict([[0.99], [0.01]]).tolist() == ["yes", "no"]
    learner.save(tmp_path / "model.json")
    again = ActiveLearner.load(tmp_path / "model.json")
    assert np.array_equal(again.predict(X), learner.predict(X))
    assert str(learner.hypothesis_) == str(again.hypothesis_)
    assert not hasattr(clone(learner), "learner_")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variant": "best"}, "variant='best'"),
        ({"n_labels": 0}, "n_labels=0"),
        ({"n_labels": 3000}, "n_labels=3000"),
        ({"n_rows": 3000}, "n_rows=3000"),
        ({"n_rows": 50}, "n_labels=100 of n_rows=50"),
        ({"epsilon": 0.0}, "Ask for fewer labels"),
        ({"base": PrivateLearner}, "base is the class"),
        ({"base": generic(random_state=3)}, "random_state of its own"),
    ],
)
def test_refusals_before_a_label_is_asked_for(changes: dict[str, Any], message: str) -> None:
    learner = ActiveLearner(**{"base": generic(), "epsilon": 1.0, "n_labels": 100, **changes})
    with pytest.raises((InvalidParameter, InvalidData), match=message):
        learner.select(points())


def test_refusals_after_it() -> None:
    X = points()
    learner = ActiveLearner(generic(), 1.0, n_labels=10)
    with pytest.raises(InvalidData, match="no rows were selected"):
        learner.fit(X, np.zeros(10))
    learner.select(X)
    with pytest.raises(InvalidData, match="one label for each of the 10"):
        learner.fit(X, np.zeros(11))
    with pytest.raises(InvalidData, match="give the 2000 rows"):
        learner.fit(X[:-1], np.zeros(10))
    with pytest.raises(InvalidData, match="none of classes"):
        learner.fit(X, np.full(10, -1))
    learner.fit(X, np.zeros(10))  # a slip of the pen costs nothing
    label_only = SemiPrivateLearner(Thresholds(), 0.5, label_privacy=True)
    other = ActiveLearner(label_only, 1.0, n_labels=10)
    other.select(X)
    with pytest.raises(InvalidParameter, match="whole replaced row"):
        other.fit(X, np.zeros(10))
    dear = ActiveLearner(generic(), 1.0, n_labels=10, n_rows=2000)
    dear.select(X)
    with pytest.raises(InvalidParameter, match="2000 of 2000 rows cost epsilon=2"):
        dear.fit(X, np.zeros(10))


@pytest.mark.claim("ACTIVE")
def test_a_transcript_at_the_price_of_the_base() -> None:
    X = np.linspace(0, 1, 2000).reshape(-1, 1)
    base = GenericLearner(Thresholds(), epsilon=0.5, columns=[(0, 1)])
    learner = ActiveLearner(base, 0.5, 0.0, 300, transcript=True)
    asked = learner.select(X)
    learner.fit(X, (X[asked, 0] > 0.5).astype(int))
    assert learner.guarantee_.epsilon == 0.5


def test_a_base_with_a_delta_asks_for_one() -> None:
    base = PrivateLogisticRegression(1.0, 1e-6, bounds=[(0, 1)])
    with pytest.raises(InvalidParameter, match="give a delta"):
        ActiveLearner(base, 1.0).select(np.zeros((1000, 1)))
