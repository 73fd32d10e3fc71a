"""GenericBBL: what rows and queries pay for ever, what a change can reach, and the sizes."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from cumae.checks import PREDICTOR_LAWS, Neighbours
from cumae.concepts import Intervals, Stumps, Thresholds, Trees
from cumae.ensembles import trainer as shards
from cumae.ensembles.ensemble import Ensemble
from cumae.errors import (
    BudgetExhausted,
    InvalidData,
    InvalidParameter,
    LiveState,
    TooFewRows,
)
from cumae.mechanisms import Majority
from cumae.predictors import recipes
from cumae.predictors.bbl import predictor as generic_bbl
from cumae.predictors.bbl.costs import AfterDraw, label_draw, scored_epsilon
from cumae.predictors.bbl.given import PublicCounts
from cumae.predictors.bbl.phases import LabelledPhase, RunningPhase
from cumae.predictors.bbl.predictor import GenericBBL
from cumae.privacy import (
    ZCDP,
    Approximate,
    BoundedRange,
    Budget,
    Cost,
    Pure,
    label_boost,
    subsample,
)
from cumae.theorems.everlasting import paper_phase, paper_rows

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(7)
X = RNG.random((400, 1))
Y = (X[:, 0] > 0.4).astype(int)
QUERIES = RNG.random((2000, 1))


def small(epsilon: float = 3.0, **more: Any) -> GenericBBL:
    """Return one with short phases: 400 rows, 600 answers, 300 of them kept."""
    given: dict[str, Any] = {
        "shard_size": 20,
        "phase_length": 600,
        "query_share": 0.5,
        "label_share": 0.1,
    }
    return GenericBBL(Thresholds(), epsilon, 1e-6, **{**given, **more})


class Recorder:
    """Records draws, noise, votes and the labelled rows of all phases."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.draws: list[tuple[float, Any, Any, Any, Any]] = []
        self.scales: list[tuple[float, int]] = []
        self.votes: list[Any] = []
        self.phases: list[Any] = []
        choose, votes, train = Thresholds.choose, Ensemble.votes, LabelledPhase.train
        release = Majority.release

        def chosen(concept: Any, points: Any, X: Any, y: Any, epsilon: float, **more: Any) -> Any:
            drawn = choose(concept, points, X, y, epsilon, **more)
            self.draws.append((epsilon, np.array(points), np.array(X), np.array(y), drawn))
            return drawn

        def noisy(majority: Any, counts: Any, coins: Any) -> Any:
            self.scales.append((majority.noise.scale, len(counts)))
            return release(majority, counts, coins)

        def voted(ensemble: Any, X: Any, numbers: Any) -> Any:
            self.votes.append(votes(ensemble, X, numbers))
            return self.votes[-1]

        def trained(labelled: LabelledPhase, *given: Any, **more: Any) -> RunningPhase:
            recipe = labelled.recipe
            table = recipe.rows.take(np.arange(recipe.rows.n_rows))
            parts = {"table": table, "labels": recipe.weights, "split": recipe.split}
            self.phases.append(SimpleNamespace(sizes=labelled.sizes, **parts))
            return train(labelled, *given, **more)

        monkeypatch.setattr(Thresholds, "choose", chosen)
        monkeypatch.setattr(Majority, "release", noisy)
        monkeypatch.setattr(Ensemble, "votes", voted)
        monkeypatch.setattr(LabelledPhase, "train", trained)


# Costs


def divergence(p: Any, q: Any, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.claim("BBL")
def test_a_draw_before_votes_costs_no_more_than_stated() -> None:
    # Random draws of bounded range, then Gaussian noise whose centre depends on the draw.
    rng = np.random.default_rng(3)
    grid = np.arange(-200, 201)
    rho, width = 0.08, 1.2
    scale = 10.0
    moved = round(scale * math.sqrt(2 * rho))
    bell = [np.exp(-((grid - c) ** 2) / (2 * scale**2)) for c in (0, moved)]
    left, right = (b / b.sum() for b in bell)
    bound = AfterDraw(ZCDP(moved**2 / (2 * scale**2)), width)
    limits = {e: bound.delta(e) for e in (0.0, 0.5, 1.0, 1.5)}
    seen = 0.0
    for _ in range(40):
        p = rng.dirichlet(np.ones(4))
        q = p * np.exp(rng.choice([0.0, width], 4) if rng.random() < 0.7 else rng.random(4) * width)
        q /= q.sum()
        for e, limit in limits.items():
            for a, b, u, v in ((p, q, left, right), (q, p, left, right), (p, q, right, left)):
                true = divergence(np.outer(a, u), np.outer(b, v), e)
                assert true <= limit
                seen = max(seen, true / limit)
    assert seen > 0.5  # it is not just large


@pytest.mark.claim("BBL")
@pytest.mark.parametrize("epsilon", [0.8, 2.0, 3.5])
def test_the_bound_is_close_to_numeric_composition(epsilon: float) -> None:
    composed = ZCDP(0.1) + BoundedRange(math.log(4)) + Pure(0.1)
    bound = AfterDraw(ZCDP(0.1), math.log(4), 0.1)
    assert 0.7 < composed.delta(epsilon) / bound.delta(epsilon) < 1.3
    assert AfterDraw(ZCDP(0.1), 0.0).delta(epsilon) == pytest.approx(
        ZCDP(0.1).delta(epsilon), rel=0.01
    )
    assert AfterDraw(Approximate(1.0, 1e-5), 0.5, 0.2).delta(1.7) <= 1e-5 * (1 + 1e-9)


def dichotomies(points: list[int]) -> list[tuple[int, ...]]:
    """All labellings of points by thresholds of both directions."""
    cuts = range(-1, 6)
    found = {tuple(int(x > c) for x in points) for c in cuts}
    return sorted(found | {tuple(1 - label for label in z) for z in found})


def labelled_law(S: list[tuple[int, int]], T: list[int], eL: float) -> dict[tuple[int, ...], float]:
    """Law of the labels of T, if a dichotomy of both is drawn that S scores."""
    points = [x for x, _ in S] + T
    weights: dict[tuple[int, ...], float] = {}
    for z in dichotomies(points):
        right = sum(z[i] == y for i, (_, y) in enumerate(S))
        found = z[len(S) :]
        weights[found] = weights.get(found, 0.0) + math.exp(eL * right / 2)
    total = sum(weights.values())
    return {z: w / total for z, w in weights.items()}


@pytest.mark.claim("BBL")
def test_a_scored_row_pays_for_the_draw_and_nothing_after_it() -> None:
    # All neighbours of three rows, two of which are scored, exactly; T is published whole.
    eL, T = 1.5, [1, 3]
    limit = scored_epsilon(label_draw(Thresholds(), eL, "S", 10), 2 / 3)
    largest = 0.0
    for fixed in itertools.product(itertools.product(range(5), (0, 1)), repeat=2):
        laws = []
        for row in itertools.product(range(5), (0, 1)):
            law: dict[tuple[int, ...], float] = {}
            for pair in itertools.combinations([*fixed, row], 2):
                for z, chance in labelled_law(list(pair), T, eL).items():
                    law[z] = law.get(z, 0.0) + chance / 3
            laws.append(law)
        for one, other in itertools.permutations(laws, 2):
            largest = max(largest, *(math.log(one[z] / other[z]) for z in one))
    assert 0.3 * limit < largest <= limit


@pytest.mark.claim("BBL")
def test_a_query_pays_for_sampling_its_label_and_one_phase() -> None:
    # Two queries, one is kept and labelled; then a randomized response about the row.
    S, eL, e = [(1, 0), (3, 1)], 1.5, 0.7
    stay = math.exp(e) / (1 + math.exp(e))
    limit = math.log1p(0.5 * math.expm1(math.log(4) + e))
    tables = list(itertools.product(range(5), (0, 1)))
    largest = 0.0
    for mask in range(1, 2 ** len(tables) - 1, 41):  # what the response is about
        hit = {row: mask >> place & 1 for place, row in enumerate(tables)}

        def chance(D: tuple[int, int], hit: dict[tuple[int, int], int] = hit) -> float:
            total = 0.0
            for x in D:
                for (label,), p in labelled_law(S, [x], eL).items():
                    total += 0.5 * p * (stay if hit[x, label] else 1 - stay)
            return total

        for x, one, other in itertools.product(range(5), repeat=3):
            a, b = chance((x, one)), chance((x, other))
            largest = max(largest, math.log(a / b), math.log((1 - a) / (1 - b)))
    assert 0.2 * limit < largest <= limit


@pytest.mark.claim("BBL")
@pytest.mark.parametrize(("epsilon", "agnostic"), [(1.0, False), (3.0, False), (2.0, True)])
def test_the_fixed_point_from_the_library_s_own_parts(epsilon: float, agnostic: bool) -> None:
    rules = GenericBBL(Thresholds(), epsilon, agnostic=agnostic, shard_size=200).fit(X, Y).rules_

    def votes(scale: float) -> Cost:
        return ZCDP(1 / (2 * scale**2))

    boost = label_boost(Pure(0.0), rules.boost, "S")
    scored = subsample(boost, rules.label_share)
    assert rules.scored == pytest.approx(scored.pure, rel=1e-6)
    query = label_boost(votes(rules.noise) + Pure(rules.scored), 0.0, "T")
    query = subsample(query, rules.query_share)
    assert 0.5e-6 < query.delta(epsilon) < 1.1e-6
    row = votes(rules.first_noise) + Pure(rules.scored)
    if agnostic:
        assert rules.first < len(X)
        row = subsample(label_boost(row, rules.boost, "S"), rules.first / len(X))
    else:
        assert rules.first == len(X)
    assert 0.4e-6 < row.delta(epsilon) < 1.1e-6
    for cost in (rules.training_cost(), rules.query_cost()):
        assert 0.9e-6 < cost.delta(epsilon) <= 1e-6


@pytest.mark.claim("BBL")
@pytest.mark.parametrize("agnostic", [False, True])
def test_every_phase_runs_at_the_stated_price(
    agnostic: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Recorder(monkeypatch)
    oracle = small(agnostic=agnostic, epsilon_boost=1.0, label_share=0.08).fit(X, Y)
    rules = oracle.rules_
    first = watch.draws[:1] if agnostic else []
    assert [len(points) for _, points, *_ in first] == [rules.first] * agnostic
    for batch in np.array_split(QUERIES, 7):  # batches cross phases
        oracle.predict(batch)
    assert oracle.phase_ == len(watch.phases) == 4
    assert oracle.answered_ == 2000
    later = watch.draws[len(first) :]
    assert len(later) == 3
    for number, (epsilon, points, rows, _, hypothesis) in enumerate(later, start=1):
        assert epsilon == rules.boost == 1.0
        before, after = watch.phases[number - 1], watch.phases[number]
        assert len(rows) == math.floor(rules.label_share * len(before.table))
        assert set(rows[:, 0]) <= set(before.table[:, 0])
        assert len(set(rows[:, 0])) == len(rows)  # no row counts twice
        # All points of both define the candidates, and kept queries alone go on.
        assert np.array_equal(points, np.concatenate([rows, after.table]))
        assert len(after.table) == 300 <= rules.query_share * 600
        asked = QUERIES[600 * (number - 1) : 600 * number, 0]
        assert set(after.table[:, 0]) <= set(asked)
        assert len(set(after.table[:, 0])) == 300
        assert np.array_equal(after.labels, hypothesis.predict(after.table))
    wanted = {1: rules.first_noise, 2: rules.noise}
    for number, phase in enumerate(watch.phases, start=1):
        rho = 600 / (2 * phase.sizes.scale**2)
        assert rho <= 1 / (2 * wanted[min(number, 2)] ** 2)
        assert rho == pytest.approx(1 / (2 * wanted[min(number, 2)] ** 2))
    drawn: dict[float, int] = {}
    for scale, size in watch.scales:
        drawn[scale] = drawn.get(scale, 0) + size
    assert drawn == {watch.phases[0].sizes.scale: 600, watch.phases[1].sizes.scale: 1400}
    assert oracle.guarantee_.within(3.0, 1e-6)


def test_exact_best_hypotheses_also_where_a_class_is_missing() -> None:
    oracle = small(math.inf, shard_size=4, phase_length=400).fit(X, np.ones(400, dtype=int))
    clear = np.clip(QUERIES[:1000], 0.6, 0.8)
    assert oracle.predict(clear).tolist() == [1] * 1000
    assert oracle.phase_ == 3


@pytest.mark.claim("BBL")
def test_without_privacy_it_is_plain_relabelling(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Recorder(monkeypatch)
    plain = small(math.inf, query_share="auto", label_share="auto", phase_length=400)
    oracle = plain.fit(X, Y)
    answers = oracle.predict(QUERIES[:1200])
    start = 0
    assert len(watch.phases) == 3
    for phase in watch.phases:
        models = [
            Thresholds().erm(phase.table[places], phase.labels[places])
            for places in map(phase.split.places, range(phase.split.n_shards))
        ]
        asked = QUERIES[start : start + 400]
        votes = np.sum([model.predict(asked) for model in models], axis=0)
        assert np.array_equal(answers[start : start + 400], votes > len(models) / 2)
        if start:
            # All queries were kept, and labelled by a hypothesis that is right on all rows.
            before = QUERIES[start - 400 : start]
            assert np.array_equal(np.sort(phase.table, axis=0), np.sort(before, axis=0))
            assert phase.table[phase.labels == 0].max() < phase.table[phase.labels == 1].min()
        start += 400
    for epsilon, _, rows, labels, hypothesis in watch.draws:
        assert epsilon == math.inf
        assert np.array_equal(hypothesis.predict(rows), labels)
    assert oracle.guarantee_.epsilon == math.inf


# What one change can reach, with the same coins


def run(monkeypatch: pytest.MonkeyPatch, x: Any, y: Any, queries: Any) -> tuple[Recorder, Any]:
    with monkeypatch.context() as patch:
        watch = Recorder(patch)
        oracle = small(random_state=11, shard_size=4).fit(x, y)
        return watch, np.concatenate(
            [oracle.predict(batch) for batch in np.array_split(queries, 9)]
        )


@pytest.mark.claim("BBL")
def test_a_replaced_query_reaches_one_row_of_the_next_phase(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, answers = run(monkeypatch, X, Y, QUERIES)
    kept = set(before.phases[1].table[:, 0])
    (place,) = [i for i in range(200, 600) if QUERIES[i, 0] not in kept][:1]
    changed = QUERIES.copy()
    changed[place] = 0.999
    after, others = run(monkeypatch, X, Y, changed)
    same = np.arange(len(QUERIES)) != place
    assert np.array_equal(answers[same], others[same])  # it leaves no trace, in any phase
    (place,) = [i for i in range(200, 600) if QUERIES[i, 0] in kept][:1]
    changed = QUERIES.copy()
    changed[place] = 0.999
    after, others = run(monkeypatch, X, Y, changed)
    same = (np.arange(len(QUERIES)) != place)[:600]
    assert np.array_equal(answers[:600][same], others[:600][same])
    moved = np.flatnonzero(before.phases[1].table[:, 0] != after.phases[1].table[:, 0])
    assert len(moved) == 1
    assert after.phases[1].table[moved] == 0.999
    assert np.array_equal(before.phases[1].split.order, after.phases[1].split.order)
    for (_, _, _, _, one), (_, _, _, _, other) in zip(before.draws, after.draws, strict=True):
        assert type(one) is type(other)
    votes = [np.concatenate(watch.votes)[600:1200] for watch in (before, after)]
    if np.array_equal(before.phases[1].labels, after.phases[1].labels):
        assert np.abs(votes[0] - votes[1]).max() <= 1


@pytest.mark.claim("BBL")
def test_a_replaced_training_row_moves_one_vote_and_one_scored_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, answers = run(monkeypatch, X, Y, QUERIES)
    scored = set(before.draws[0][2][:, 0])
    moved = 0
    for wanted, number in itertools.product((True, False), range(3)):
        place = [i for i in range(400) if (X[i, 0] in scored) == wanted][number]
        x, y = X.copy(), Y.copy()
        x[place], y[place] = 0.2, 1
        after, others = run(monkeypatch, x, y, QUERIES)
        votes = [np.concatenate(watch.votes)[:600] for watch in (before, after)]
        assert np.abs(votes[0] - votes[1]).max() <= 1
        moved += int(np.abs(votes[0] - votes[1]).sum())
        rows = [watch.draws[0][2][:, 0] for watch in (before, after)]
        assert np.sum(rows[0] != rows[1]) == wanted
        # The rows of the next phase are queries, wherever the training row went.
        assert np.array_equal(before.phases[1].table, after.phases[1].table)
        if not wanted:
            assert np.array_equal(answers[600:], others[600:])
    assert moved > 0


@pytest.mark.claim("BBL")
def test_an_unusable_query_counts_and_changes_no_other_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watch = Recorder(monkeypatch)
    spoilt = QUERIES[:600].copy()
    spoilt[3] = np.nan
    runs = []
    for queries in (QUERIES[:600], spoilt):
        oracle = small(query_share=1.0, epsilon_boost=1.0, random_state=5).fit(X, Y)
        answers = oracle.predict(queries)
        assert (answers == -1).tolist() == [i == 3 and queries is spoilt for i in range(600)]
        assert (oracle.answered_, oracle.phase_) == (600, 1)
        oracle.predict([[0.5]])
        runs.append(watch.phases[-1].table)
    assert np.array_equal(np.delete(runs[0], 3), np.delete(runs[1], 3))


# All laws but one: unusable queries are answered by -1 here, and count.
LAWS = [law for law in PREDICTOR_LAWS if law.__name__ != "refusals_spend_nothing"]


@pytest.mark.claim("BBL")
@pytest.mark.usefixtures("trials_shared")
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_laws_of_predictors(law: Any) -> None:
    for row, label in (([np.nan], 1), ([1.7e308], 9)):
        pair = Neighbours.replacing(X, Y, 7, row, label, queries=QUERIES[:20])
        law(small(), pair)


@pytest.mark.claim("BBL")
def test_a_single_bad_training_row_is_not_noticed() -> None:
    for bad in (np.nan, np.inf, "x", None):
        x = X.astype(object)
        x[7] = bad
        assert small().fit(x, Y).n_shards_ == 20
    assert small().fit(X, np.where(np.arange(400) == 3, 9, Y)).n_shards_ == 20


def test_refused_calls_spend_nothing() -> None:
    oracle = small()
    with pytest.raises(Exception, match="not fitted"):
        oracle.predict(QUERIES)
    oracle.fit(X, Y)
    for wrong in (np.zeros((3, 2)), pd.DataFrame({"a": [1.0], "b": [2.0]})):
        with pytest.raises(InvalidData):
            oracle.predict(wrong)
    with pytest.raises(InvalidParameter, match="fresh=True"):
        oracle.add_unlabelled(QUERIES)
    assert oracle.answered_ == 0
    assert oracle._state_.left == 600
    assert oracle.predict(np.zeros((0, 1))).tolist() == []
    named = small().fit(pd.DataFrame(X, columns=["a"]), Y)
    with pytest.raises(InvalidData, match="columns"):
        named.predict(pd.DataFrame({"b": [0.1]}))
    assert named.answered_ == 0


def test_a_change_of_phases_that_was_broken_off_is_not_drawn_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    oracle = small(random_state=3, fresh=True).fit(X, Y).add_unlabelled(QUERIES[600:1200])
    oracle.predict(QUERIES[:600])

    def broken(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        watch = Recorder(patch)
        patch.setattr(recipes, "train_shards", broken)
        with pytest.raises(KeyboardInterrupt):
            oracle.predict(QUERIES[600:610])
        assert oracle.remaining_ == 600
        patch.setattr(recipes, "train_shards", shards.train_shards)
        assert oracle.predict(QUERIES[600:610]).shape == (10,)
        assert len(watch.draws) == 1  # trained again, with the same labels
    oracle = small().fit(X, Y)
    oracle.predict(QUERIES[:600])
    monkeypatch.setattr(generic_bbl, "boost_labels", broken)
    with pytest.raises(KeyboardInterrupt):
        oracle.predict(QUERIES[:1])
    with pytest.raises(BudgetExhausted, match="broken off"):
        oracle.predict(QUERIES[:1])


# The printed votes


def between(**more: Any) -> GenericBBL:
    given = {"between_share": 0.001, "shard_size": 10, "votes": "between", "delta": 1e-12}
    sizes = {"phase_length": 16_000, "query_share": 0.5, "label_share": 0.01, "epsilon": 20.0}
    return GenericBBL(Thresholds(), random_state=0, **{**given, **sizes, **more})


def split_rows() -> tuple[Any, Any]:
    """Return rows that agree on 0.1 and 0.9, and give 0.5 both labels."""
    x = np.repeat([0.1, 0.5, 0.9], [2000, 4000, 2000]).reshape(-1, 1)
    y = np.repeat([0, 1, 0, 1], 2000)
    y[-2000:] = 1
    return x, y


@pytest.mark.claim("BBL", "BT")
@pytest.mark.parametrize("hidden", ["split", "unanimous"])
def test_the_printed_votes_tell_what_another_one_asked(hidden: str) -> None:
    oracle = between().fit(*split_rows())
    limit = oracle._state_.phase.sizes.between
    oracle.predict([[0.5 if hidden == "split" else 0.9]])
    for _ in range(limit - (hidden == "split")):
        oracle.predict([[0.5]])
    with pytest.raises(BudgetExhausted, match="halted in phase 1"):
        oracle.predict([[0.5]])
    assert oracle.remaining_ == 0
    guarantee = oracle.guarantee_
    assert guarantee.protects == "one training row"
    assert "queries need no protection" in guarantee.assumptions[0]
    assert {"BT", "BBL"} < set(guarantee.claims)
    assert guarantee.epsilon <= 20
    with pytest.raises(BudgetExhausted, match="fails for ever"):
        oracle.predict([[0.9]])


@pytest.mark.claim("BBL")
def test_repaired_votes_tell_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = []
    for hidden in (0.5, 0.9):
        oracle = small(random_state=1).fit(X, Y)
        oracle.predict([[hidden]])
        answers.append(oracle.predict(np.full((599, 1), 0.4)))
        assert oracle.phase_ == 1
    assert np.array_equal(answers[0], answers[1])
    assert oracle.guarantee_.protects == "one training row or one query"
    assert oracle.guarantee_.void


@pytest.mark.claim("BBL")
def test_the_printed_votes_go_through_phases() -> None:
    x = np.random.default_rng(0).random((8000, 1))
    oracle = between(between_share=0.002).fit(x, x[:, 0] > 0.5)
    queries = np.random.default_rng(1).random((17_000, 1))
    queries[:, 0] = np.where(queries[:, 0] > 0.5, 0.99, 0.01)  # clear ones
    answers = oracle.predict(queries)
    assert np.mean(answers != (queries[:, 0] > 0.5)) < 0.05
    assert oracle.phase_ == 2
    votes = oracle._state_.phase.votes
    pair = oracle.rules_.pair
    assert votes.cost.delta(pair.eps) <= pair.failure
    for cost in (oracle.rules_.training_cost(), oracle.rules_.query_cost()):
        assert cost.delta(20.0) <= 1e-12
    with pytest.raises(InvalidParameter, match="too few"):
        between(epsilon=1.0).fit(x, x[:, 0] > 0.5)


def test_a_batch_in_which_it_halts_is_refused() -> None:
    oracle = between().fit(*split_rows())
    with pytest.raises(BudgetExhausted, match=r"The last \d+ queries got no answer"):
        oracle.predict(np.full((500, 1), 0.5))
    assert oracle.answered_ == oracle._state_.phase.sizes.between
    assert oracle.remaining_ == 0


# Options


@pytest.mark.claim("BBL")
def test_fresh_rows_take_the_place_of_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Recorder(monkeypatch)
    oracle = small(fresh=True).fit(X, Y)
    assert oracle.guarantee_.protects == "one training row, one query or one unlabelled row"
    assert oracle.remaining_ == 600
    fresh = np.random.default_rng(2).random((1300, 1))
    spoilt = fresh.copy()
    spoilt[0] = np.nan  # a stand-in takes its place
    oracle.add_unlabelled(spoilt[:700])
    assert oracle.remaining_ == 1200
    oracle.add_unlabelled(spoilt[700:])
    assert oracle.remaining_ == 1800
    oracle.predict(QUERIES[:1800])
    for phase, own in zip(watch.phases[1:], (spoilt[:600], spoilt[600:1200]), strict=True):
        assert len(set(phase.table[:, 0]) - set(own[:, 0])) <= 1
    with pytest.raises(BudgetExhausted, match=r"600 rows by add_unlabelled, and 100 wait"):
        oracle.predict(QUERIES[:1])
    assert oracle.answered_ == 1800
    oracle.add_unlabelled(fresh[:500]).predict(QUERIES[:1])
    assert oracle.phase_ == 4
    assert (
        "one unlabelled row"
        in between(fresh=True)._options(PublicCounts(400, 1, 10**9)).plan().protects
    )


@pytest.mark.claim("BBL")
@pytest.mark.parametrize("fresh", [False, True])
def test_whether_rows_are_fresh_was_fixed_by_fit(
    monkeypatch: pytest.MonkeyPatch, *, fresh: bool
) -> None:
    watch = Recorder(monkeypatch)
    oracle = small(fresh=fresh).fit(X, Y)
    supplied = np.random.default_rng(2).random((600, 1))
    if fresh:
        oracle.add_unlabelled(supplied)
    oracle.set_params(fresh=not fresh)
    if not fresh:
        assert oracle.remaining_ == math.inf
        with pytest.raises(InvalidParameter, match="fresh=True"):
            oracle.add_unlabelled(supplied)
    oracle.predict(QUERIES[:601])
    own = supplied if fresh else QUERIES[:600]
    assert set(watch.phases[1].table[:, 0]) <= set(own[:, 0])


def test_no_part_of_a_phase_shows_its_rows() -> None:
    oracle = small().fit(X, Y)
    oracle.predict(QUERIES[:10])
    phase = oracle._state_.phase
    labelled = LabelledPhase.draw(phase.sizes, X, Y, oracle._state_.fitted.source)
    for part in (phase, phase.kept, labelled):
        assert "array" not in repr(part)


@pytest.mark.claim("BBL")
def test_agnostic_labels_come_from_one_concept(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Recorder(monkeypatch)
    wrong = Y ^ (np.random.default_rng(0).random(400) < 0.2)
    oracle = small(8.0, agnostic=True).fit(X, wrong)
    first = watch.phases[0]
    assert len(first.table) == oracle.rules_.first
    assert np.array_equal(first.labels, watch.draws[0][-1].predict(first.table))
    low, high = first.table[first.labels == 0], first.table[first.labels == 1]
    assert not len(low) or not len(high) or low.max() < high.min() or high.max() < low.min()
    plain = small(8.0).fit(X, wrong)
    assert plain.rules_.first_noise / 400 < oracle.rules_.first_noise / oracle.rules_.first


@pytest.mark.claim("BBL")
@pytest.mark.parametrize("concept", [Thresholds(), Intervals(), Stumps()])
def test_no_query_can_stop_it(concept: Any) -> None:
    queries = np.resize([1.7e308, -1.7e308, 5e-324, -0.0, 0.0, 0.4, np.inf], (700, 1))
    oracle = GenericBBL(concept, 4.0, shard_size=20, phase_length=500, query_share=0.5).fit(X, Y)
    answers = oracle.predict(queries)
    assert np.array_equal(answers == -1, np.isinf(queries[:, 0]))
    assert (oracle.phase_, oracle.answered_) == (2, 700)
    oracle.predict(np.full((900, 1), 1.7e308))
    assert oracle.phase_ == 4


@pytest.mark.parametrize("concept", [Intervals(), Stumps()])
def test_other_classes(concept: Any) -> None:
    oracle = GenericBBL(concept, 4.0, shard_size=20, phase_length=500, query_share=0.5).fit(X, Y)
    assert set(oracle.predict(QUERIES[:1200]).tolist()) <= {0, 1}
    assert oracle.phase_ == 3
    assert oracle.guarantee_.within(4.0, 1e-6)
    for cost in (oracle.rules_.training_cost(), oracle.rules_.query_cost()):
        assert cost.delta(4.0) <= 1e-6


def test_names_of_classes_and_columns() -> None:
    frame = pd.DataFrame({"age": X[:, 0] * 80, "job": np.where(Y, "a", "b")})
    oracle = GenericBBL(
        Stumps(),
        5.0,
        shard_size=20,
        phase_length=500,
        query_share=0.5,
        columns={"age": (0, 100), "job": ["a", "b", "c"]},
        classes=("no", "yes"),
    ).fit(frame, np.where(Y, "yes", "no"))
    assert set(oracle.predict(frame)) <= {"no", "yes"}
    with pytest.raises(InvalidData, match="declare what can occur"):
        clone(oracle).set_params(columns=None).fit(frame, np.where(Y, "yes", "no"))


def test_one_guarantee_one_place() -> None:
    oracle = small().fit(X, Y)
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LiveState):
            attempt(oracle)
    again = clone(oracle)
    assert again.get_params() == oracle.get_params()
    assert not hasattr(again, "guarantee_")
    budget = Budget(4.0, 1e-5)
    small(budget=budget).fit(X, Y)
    assert budget.spent == (3.0, 1e-6)
    with pytest.raises(BudgetExhausted):
        small(budget=budget).fit(X, Y)
    with pytest.raises(InvalidParameter):
        small(budget=budget, growth=0.5).fit(X, Y)
    assert budget.spent == (3.0, 1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"beta": 1.0}, "beta"),
        ({"delta": 0.0}, "both above 0"),
        ({"epsilon": 0.0}, "both above 0"),
        ({"votes": "printed"}, "votes"),
        ({"constants": "mine"}, "constants"),
        ({"growth": 0.9}, "growth"),
        ({"query_share": 0.0}, "query_share"),
        ({"label_share": 1.5}, "label_share"),
        ({"train_share": "all"}, "train_share"),
        ({"phase_length": 0}, "phase_length"),
        ({"shard_size": 2.5}, "shard_size"),
        ({"max_rows": 1}, "max_rows"),
        ({"epsilon_boost": 0.0}, "epsilon_boost"),
        ({"epsilon_boost": math.inf}, "epsilon_boost"),
        ({"epsilon": 0.5, "query_share": 1.0, "label_share": 0.01}, "kept queries"),
        ({"epsilon": 0.3, "label_share": 1.0}, "training rows"),
        ({"phase_length": 6}, "too few"),
        ({"label_share": 0.001}, "too few"),
        ({"concept_class": Trees(2)}, "boost"),
        ({"concept_class": "thresholds"}, "concept"),
        ({"classes": (0, 1, 2)}, "two"),
    ],
)
def test_parameters_are_checked(given: dict[str, Any], message: str) -> None:
    oracle = small().set_params(**given)
    with pytest.raises((InvalidParameter, InvalidData), match=message):
        oracle.fit(X, Y)
    assert not hasattr(oracle, "guarantee_")


def test_too_much_noise_is_said() -> None:
    with pytest.warns(TooFewRows, match="of phase"):
        small(1.0, query_share="auto").fit(X, Y)


# Sizes


def test_rows_grow_and_phases_one_and_two_are_equally_noisy() -> None:
    x = RNG.random((5000, 1))
    oracle = GenericBBL(Thresholds(), shard_size=250, max_rows=30_000).fit(x, x[:, 0] > 0.5)
    phases = list(oracle.rules_.all_sizes())
    assert phases[0].rows == 5000
    assert phases[-1].rows == phases[-1].following == 30_000
    assert all(b.rows == min(30_000, 2 * a.rows) for a, b in itertools.pairwise(phases[1:]))
    per_vote = [sizes.scale / sizes.rows for sizes in phases[:2]]
    assert per_vote[0] == pytest.approx(per_vote[1], rel=0.01)
    for sizes in phases:
        assert sizes.following <= oracle.rules_.query_share * sizes.answers
        assert sizes.labels <= oracle.rules_.label_share * sizes.rows
    # Errors of relabelling: alpha/2 in the first phase, and half of it with twice the rows.
    error = 2 / 1.5 * (2 * math.log(math.e * 4 * 5000 / 2) + math.log(2 / 0.1)) / phases[0].labels
    assert error <= 0.05 * 1.01 or oracle.rules_.scored == pytest.approx(0.25, rel=1e-3)


def test_the_paper_s_sizes_refuse_with_their_number() -> None:
    alpha = beta = 1 / 20
    needed = paper_rows(alpha, beta, 1.0, 1e-6, 1)
    # The printed n, with natural logarithms.
    core = 8 * math.log(26 / alpha) + 4 * math.log(4 / beta)
    printed = 8 * 1.1e10 / alpha**3 * core**2 * math.log(1e6)
    printed *= math.log(8 * core / (alpha**2 * beta * 1e-6)) ** 2 * (3 + math.exp(5))
    assert needed == pytest.approx(printed, rel=1e-9)
    assert 5.5e24 < needed < 6e24
    least = min(paper_rows(0.0624, 0.0624, epsilon, 0.0624, 1) for epsilon in (0.01, 0.3, 0.6, 1.0))
    assert least > 2**63  # so it can only refuse
    phase, following = (paper_phase(i, alpha, beta, 1.0, 1e-6, 1) for i in (1, 2))
    assert following.alpha == phase.alpha / 2 == alpha / 4
    assert phase.between == 64 * phase.alpha * phase.answers
    assert phase.answers == 25600 * phase.rows
    # Claim D.6: enough queries are kept for the next phase.
    assert phase.answers / (3 + math.exp(5)) >= following.rows
    oracle = GenericBBL(Thresholds(), 1.0, 1e-6, alpha, beta, constants="paper")
    two = paper_rows(alpha, beta, 1.0, 1e-6, Thresholds().vc_dimension(1))
    with pytest.raises(InvalidData, match=f"{two:,}"):
        oracle.fit(X, Y)
    with pytest.raises(InvalidParameter, match="1/16"):
        oracle.set_params(alpha=0.1).fit(X, Y)


# It works


def test_thresholds_over_phases() -> None:
    rng = np.random.default_rng(5)
    x = rng.random((20_000, 1))
    oracle = GenericBBL(Thresholds(), 3.0, shard_size=12, growth=1.0).fit(x, x[:, 0] > 0.3)
    for number in (1, 2, 3):
        queries = rng.random((oracle._state_.left, 1))
        answers = oracle.predict(queries)
        assert oracle.phase_ == number
        assert np.mean(answers != (queries[:, 0] > 0.3)) < 0.05
        oracle.predict([[0.5]])
    assert oracle.phase_ == 4
    assert oracle.guarantee_.within(3.0, 1e-6)
