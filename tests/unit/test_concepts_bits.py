"""Conjunctions, parities and random sets against brute force."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cumae import GenericBBL, LabelBoost, PrivateLearner
from cumae.concepts import (
    ConceptClass,
    Conjunction,
    Conjunctions,
    Hypothesis,
    Parities,
    Parity,
    RandomSet,
    RandomSets,
)
from cumae.errors import InvalidData, InvalidParameter
from tests.statistics import binomial_rejects, chi_square_rejects

CLASSES: list[ConceptClass] = [Conjunctions(), Parities()]
classes = pytest.mark.parametrize("concept", CLASSES, ids=repr)


def all_concepts(concept: ConceptClass, width: int) -> list[Hypothesis]:
    """Every concept, listed in the order of the class's docstring by other means."""
    if isinstance(concept, Parities):
        chosen = itertools.product((0, 1), repeat=width)
        return [Parity(width, tuple(c for c, bit in enumerate(s) if bit)) for s in chosen]
    found: list[Hypothesis] = [Conjunction(width, nowhere=True)]
    for literals in itertools.product((0, 1, None), repeat=width):
        ones, zeros = (tuple(c for c, v in enumerate(literals) if v == bit) for bit in (1, 0))
        found.append(Conjunction(width, ones, zeros))
    return found


tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.tuples(st.tuples(*[st.integers(0, 1)] * width), st.integers(0, 1), st.integers(-3, 3)),
        min_size=1,
        max_size=12,
    )
)


@pytest.mark.claim("BITS")
@classes
@settings(max_examples=25)
@given(rows=tables)
def test_best_scores_and_labellings_are_those_of_brute_force(
    concept: ConceptClass, rows: list[Any]
) -> None:
    X = np.array([x for x, _, _ in rows])
    y, weights = np.array([(label, weight) for _, label, weight in rows]).T
    listed = all_concepts(concept, X.shape[1])
    labels = np.array([h.predict(X) for h in listed])
    assert concept.n_candidates(X) == len(listed) == len(set(map(str, listed)))
    assert concept.n_dichotomies(X) == len(np.unique(labels, axis=0))
    scores = ((labels == y) * weights).sum(axis=1)
    assert concept.erm(X, y, weights) == listed[int(np.argmax(scores))]
    long = [int(weight) * 2**70 for weight in weights]
    assert concept.erm(X, y, long) == listed[int(np.argmax(scores))]


@pytest.mark.claim("BITS")
@classes
@pytest.mark.statistical
def test_a_draw_follows_its_law(concept: ConceptClass) -> None:
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]])
    y = np.array([0, 1, 1, 0, 1])
    listed = all_concepts(concept, 2)
    right = np.array([(h.predict(X) == y).sum() for h in listed])
    law = np.exp(right / 2)
    places = {h: i for i, h in enumerate(listed)}
    drawn = [places[concept.choose(X[:0], X, y, 1.0)] for _ in range(800)]
    counts = np.bincount(drawn, minlength=len(listed))
    assert not chi_square_rejects(counts, law / law.sum(), checks=2)
    wrong = np.exp(1.5 * right)
    assert chi_square_rejects(counts, wrong / wrong.sum(), checks=0)


@pytest.mark.claim("BITS")
@classes
@pytest.mark.parametrize("width", [1, 2, 3])
def test_the_vc_dimension_is_exact(concept: ConceptClass, width: int) -> None:
    domain = np.array(list(itertools.product((0, 1), repeat=width)))
    labels = np.array([h.predict(domain) for h in all_concepts(concept, width)])
    shattered = max(
        size
        for size in range(len(domain) + 1)
        for rows in itertools.combinations(range(len(domain)), size)
        if len(np.unique(labels[:, rows], axis=0)) == 2**size
    )
    assert concept.vc_dimension(width) == shattered


@pytest.mark.claim("BITS")
@classes
def test_rules_are_stored_and_printed(concept: ConceptClass) -> None:
    for rule in all_concepts(concept, 2):
        assert Hypothesis.from_dict(json.loads(json.dumps(rule.to_dict()))) == rule
        assert str(rule).startswith("label ")
    with pytest.raises(InvalidData, match="else than 0 and 1 in row 1, column 0"):
        concept.erm([[0, 1], [2, 1]], [0, 1])
    with pytest.raises(InvalidData, match=r"takes (13|20) at most"):
        concept.vc_dimension(21)
    with pytest.raises(InvalidParameter, match="no columns of 2"):
        Parity(2, (1, 0))
    with pytest.raises(InvalidParameter, match="among ones and zeros"):
        Conjunction(2, (0,), (0,))


@pytest.mark.claim("BITS")
@classes
def test_a_private_learner_needs_neither_points_nor_bounds(concept: ConceptClass) -> None:
    X = np.random.default_rng(0).integers(0, 2, (2_000, 8))
    rule = Conjunction(8, (0,), (3,)) if isinstance(concept, Conjunctions) else Parity(8, (0, 3, 5))
    learner = PrivateLearner(concept, epsilon=1.0).fit(X, rule.predict(X))
    assert learner.hypothesis_ == rule
    assert learner.guarantee_.epsilon <= 1.0
    again = PrivateLearner.from_dict(json.loads(json.dumps(learner.to_dict())))
    assert again.hypothesis_ == rule
    assert PrivateLearner(concept, epsilon=1.0).plan(2_000, 8).facts["n_candidates"] == (
        3**8 + 1 if isinstance(concept, Conjunctions) else 2**8
    )


@pytest.mark.claim("BITS")
@classes
def test_predictors_that_could_show_a_refusal_refuse_the_class(concept: ConceptClass) -> None:
    X = np.random.default_rng(0).integers(0, 2, (4_000, 3))
    with pytest.raises(InvalidParameter, match="columns of 0 and 1 only"):
        GenericBBL(concept, epsilon=3.0, delta=1e-6).fit(X, X[:, 0])


@pytest.mark.claim("BITS")
def test_label_boosting_takes_public_candidates() -> None:
    X = np.random.default_rng(0).integers(0, 2, (3_000, 4))
    y = np.where(np.arange(3_000) < 1_000, X[:, 1] & X[:, 2], -1)
    base = PrivateLearner(Conjunctions(), epsilon=1.5)
    learner = LabelBoost(base, Conjunctions(), epsilon=3.0).fit(X, y)
    assert (learner.predict(X) == (X[:, 1] & X[:, 2])).mean() > 0.95


SETS = RandomSets.draw(0.1, 0.05, random_state=5)


@pytest.mark.claim("IMPROPER")
@pytest.mark.statistical
def test_a_value_is_in_a_set_with_its_chance() -> None:
    labels = np.array([h.predict(list(range(300))) for h in SETS.hypotheses[1:]])
    assert labels.shape == (120, 300)
    inside = int(labels.sum())
    assert not binomial_rejects(inside, labels.size, SETS.share)
    assert binomial_rejects(inside, labels.size, SETS.share * 1.5, checks=0)


@pytest.mark.claim("IMPROPER")
def test_all_labels_at_once_are_those_of_each_set() -> None:
    columns: list[Any] = [[1, 2.5], [1, 10**40], ["a", "ä", ""], [dt.date(2020, 1, 1)]]
    for column in columns:
        each = np.array([h.predict(column) for h in SETS.hypotheses])
        assert np.array_equal(SETS._labels(column), each)
    assert SETS.n_dichotomies(list(range(40))) <= 121


@pytest.mark.claim("IMPROPER")
def test_equal_values_are_in_the_same_sets_whatever_their_type() -> None:
    rule = SETS.hypotheses[1]
    assert rule.predict([7.0, 0.0]).tolist() == rule.predict([7, False]).tolist()
    days = np.array(["2020-01-01"], "M8[D]")
    for unit in ("s", "ns"):
        assert rule.predict(days.astype(f"M8[{unit}]")).tolist() == rule.predict(days).tolist()


@pytest.mark.claim("IMPROPER")
def test_some_set_is_good_for_a_value_fixed_before_the_key() -> None:
    """A point with .4 of the weight among 200 values: some set errs on at most alpha.

    Keys are seeds. With chance .3 a key may have no good set, so that 36 of 60 have none with a
    chance below 10^-6.
    """
    weights = np.array([0.4] + [0.6 / 199] * 199)
    values, failed = list(range(200)), 0
    for seed in range(60):
        labels = RandomSets.draw(0.2, 0.3, random_state=seed)._labels(values)
        errors = (labels != np.array([1] + [0] * 199)) @ weights
        failed += errors.min() > 0.2
    assert failed < 36
    # Far fewer sets than are asked for have no good one much more often.
    few = [RandomSets(RandomSets.draw(0.2, random_state=s).key, 1, 0.1) for s in range(60)]
    wrong = [(h._labels(values) != np.array([1] + [0] * 199)) @ weights for h in few]
    assert sum(errors.min() > 0.2 for errors in wrong) > 36


@pytest.mark.claim("IMPROPER")
@pytest.mark.parametrize("size", [10**3, 10**30])
def test_a_few_rows_are_enough_whatever_the_number_of_values(size: int) -> None:
    step = size // 400
    X = [size + 1] * 200 + [number * step for number in range(200)]
    y = [1] * 200 + [0] * 200
    sets = RandomSets.draw(0.2, 0.05)
    learner = PrivateLearner(sets, epsilon=1.0).fit(X, y)
    assert learner.predict([size + 1]).tolist() == [1]
    assert learner.score(X, y) > 0.75
    assert learner.guarantee_.delta == 0.0
    assert learner.n_candidates_ == len(sets.hypotheses)
    plain = json.loads(json.dumps(learner.to_dict()))
    assert PrivateLearner.from_dict(plain).predict(X).tolist() == learner.predict(X).tolist()


@pytest.mark.claim("IMPROPER")
def test_keys_are_checked_and_drawn_anew() -> None:
    assert RandomSets.draw(0.1) != RandomSets.draw(0.1)
    assert RandomSets.draw(0.1, random_state=5) == SETS
    assert hash(SETS) == hash(RandomSets.draw(0.1, random_state=5))
    with pytest.raises(InvalidParameter, match="hexadecimal"):
        RandomSets("x" * 64, 3, 0.1)
    with pytest.raises(InvalidParameter, match="hexadecimal"):
        RandomSet("00", 3, 0.1)
    with pytest.raises(InvalidParameter, match="more than 10,000"):
        RandomSets("0" * 64, 10**6, 0.1)
    assert math.isclose(SETS.share, 0.05)
