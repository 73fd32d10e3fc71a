"""The prior of everlasting prediction: rows of its own, and what it adds to the votes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from cumae import EverlastingPredictor, InvalidData, InvalidParameter
from cumae.concepts import Rectangles, Stumps, Thresholds
from cumae.data import Columns
from cumae.learners import (
    PrivateBooster,
    PrivateKernelClassifier,
    PrivateLearner,
    PrivateLogisticRegression,
    SemiPrivateLearner,
)
from cumae.predictors.base import options_of
from cumae.predictors.everlasting import state as states
from cumae.predictors.everlasting.prior import FULL_WEIGHT, Prior, combined
from cumae.predictors.everlasting.rules import EverlastingOptions, EverlastingRules, PublicSizes
from cumae.predictors.noise import MUCH_NOISE
from cumae.predictors.state import restore
from cumae.randomness import SeededSource
from tests.everlasting import Spy, X, Y, oracle, rows_of_phases

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(1)


@pytest.mark.claim("PRIOR")
def test_the_prior_has_rows_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    numbered = np.arange(2000.0).reshape(-1, 1)
    labels = (numbered[:, 0] > 800).astype(int)
    seen: dict[str, set[float]] = {}
    fit, trained = PrivateBooster.fit_encoded, rows_of_phases(monkeypatch)

    def spied_fit(self: Any, table: Any, y: Any, *others: Any) -> Any:
        seen["prior"] = set(table.ravel().tolist())
        assert (self.epsilon, self.delta) == (3.0, 1e-6)
        return fit(self, table, y, *others)

    monkeypatch.setattr(PrivateBooster, "fit_encoded", spied_fit)
    one = EverlastingPredictor(
        DecisionTreeClassifier(max_depth=2),
        3.0,
        1e-6,
        columns=[(0, 2000)],
        prior=PrivateBooster(),
        prior_share=0.25,
        growth=1.0,
    ).fit(numbered, labels)
    seen["shards"] = set(trained[0][0])
    assert len(seen["prior"]) == 500
    assert len(seen["shards"]) == 1400  # a twentieth chose the trust
    assert one._state_.left == 1400
    assert one._state_.phase.majority.max_queries == 1500
    assert not seen["prior"] & seen["shards"]
    assert isinstance(one.prior_, PrivateBooster)
    assert {"PRIOR", "PAR"} <= set(one.guarantee_.claims)
    assert one.guarantee_.within(3.0, 1e-6)


@pytest.mark.claim("PRIOR")
@pytest.mark.usefixtures("little_trained")
def test_unusable_rows_do_not_stop_the_prior() -> None:
    table = RNG.random((1000, 2))
    labels = (table[:, 0] > 0.5).astype(int)
    table[5], table[6], labels[7] = np.nan, np.inf, 9
    one = EverlastingPredictor(None, 5.0, columns=[(0, 1), (0, 1)]).fit(table, labels)
    assert np.mean(one.predict([[0.1, 0.5], [0.9, 0.5]] * 20) == [0, 1] * 20) > 0.8


@pytest.mark.claim("PRIOR")
def test_votes_see_what_the_prior_cannot() -> None:
    # Two opposite corners: no linear model can tell; trees can.
    rng = np.random.default_rng(1)
    table = rng.random((20_000, 2))

    def truth(rows: Any) -> Any:
        return ((rows[:, 0] > 0.5) ^ (rows[:, 1] > 0.5)).astype(int)

    prior = PrivateLogisticRegression(columns=[(0, 1), (0, 1)])
    one = EverlastingPredictor(
        DecisionTreeClassifier(max_depth=4), 6.0, prior=prior, shard_size=20
    ).fit(table, truth(table))
    asked = rng.random((4000, 2))
    assert one.prior_ is not None
    alone = np.mean(one.prior_.predict(asked) == truth(asked))
    assert alone < 0.7
    assert np.mean(one.predict(asked) == truth(asked)) > alone + 0.1


@pytest.mark.claim("PRIOR")
def test_the_prior_reads_any_query() -> None:
    table = pd.DataFrame({"a": pd.Series(X[:, 0].tolist(), dtype=object)})
    table.iloc[:20, 0] = "abc"
    prior = PrivateLogisticRegression(columns=[(0, 1)])
    encoder = make_pipeline(
        FunctionTransformer(
            lambda frame: pd.to_numeric(frame.iloc[:, 0], errors="coerce").to_frame()
        ),
        DecisionTreeClassifier(max_depth=2),
    )
    one = oracle(estimator=encoder, prior=prior, shard_size=10).fit(table, Y)
    asked = pd.DataFrame({"a": pd.Series(["abc", "0.5", 0.9, True], dtype=object)})
    assert len(one.predict(asked)) == 4


@pytest.mark.claim("PRIOR")
@pytest.mark.usefixtures("little_trained")
def test_the_promise_of_the_prior_is_part_of_the_whole() -> None:
    table, columns = RNG.random((800, 1)), [(0, 1)]
    labels = (table[:, 0] > 0.5).astype(int)
    tree = DecisionTreeClassifier(max_depth=1)
    narrow = SemiPrivateLearner(Stumps(), label_privacy=True)
    with pytest.raises(InvalidParameter, match="give one that protects whole rows"):
        EverlastingPredictor(tree, 3.0, prior=narrow, columns=columns).fit(table, labels)
    default = EverlastingPredictor(tree, 3.0, columns=columns).fit(table, labels)
    assert {"PRIOR", "KERNEL"} <= set(default.guarantee_.claims)
    open_ended = EverlastingPredictor(tree, 3.0).fit(table, labels)
    assert {"PRIOR", "KERNEL", "RANGES"} <= set(open_ended.guarantee_.claims)


@pytest.mark.claim("PRIOR")
def test_declared_categories_reach_the_prior_and_its_owner_can_score_it() -> None:
    frame = pd.DataFrame({"size": RNG.random(3000), "job": RNG.choice(["x", "y"], 3000)})
    labels = np.where((frame["size"] > 0.5) & (frame["job"] == "x"), "yes", "no")
    columns = {"size": (0, 1), "job": ["x", "y"]}
    one = EverlastingPredictor(None, 5.0, columns=columns, classes=("no", "yes"))
    one.fit(frame, labels)
    prior: Any = one.prior_
    assert prior.feature_names_in_.tolist() == ["size", "job"]
    assert prior.columns_.names == Columns(columns, ["size", "job"], 2).names
    assert prior.score(frame, labels) > 0.95
    assert np.mean(one.predict(frame) == labels) > prior.score(frame, labels) - 0.01
    again = restore(one.to_arrays())
    assert again.prior_.score(frame, labels) == prior.score(frame, labels)


@pytest.mark.claim("PRIOR")
def test_a_threshold_has_a_hypothesis_as_its_prior_and_needs_few_rows() -> None:
    rows, asked = RNG.random((1000, 1)), RNG.random((20_000, 1))
    one = EverlastingPredictor(Thresholds("above"), 1.0, columns=[(0, 1)])
    one.fit(rows, rows[:, 0] >= 0.37)
    assert isinstance(one.prior_, PrivateLearner)
    # Ten rows between the cut and where it is drawn: exp(-5) of the best candidate's weight.
    assert np.mean(one.predict(asked) != (asked[:, 0] >= 0.37)) < 0.03


@pytest.mark.claim("PRIOR", "KLNRS", "RANGES")
def test_a_threshold_without_bounds_has_a_prior_in_a_range_that_is_found() -> None:
    asked = RNG.random((20_000, 1))
    for low, size in ((-5.0, 3.0), (1e9, 100.0)):
        rows = low + size * RNG.random((3_000, 1))
        one = EverlastingPredictor(Thresholds("above"), 3.0)
        one.fit(rows, rows[:, 0] >= low + 0.37 * size)
        assert isinstance(one.prior_, PrivateLearner)
        assert {"PRIOR", "KLNRS", "RANGES"} <= set(one.guarantee_.claims)
        assert one.prior_.guarantee_.epsilon <= 3.0
        assert one.prior_.draw_epsilon_ <= 1.5
        wrong = one.predict(low + size * asked) != (asked[:, 0] >= 0.37)
        assert np.mean(wrong) < 0.02
    few = EverlastingPredictor(Thresholds("above"), 1.0).fit(rows[:200], rows[:200, 0] > low)
    assert few.prior_ is None  # too few to find a range, and nothing is said


@pytest.mark.claim("KLNRS")
def test_a_cut_may_lie_in_a_tail_beyond_the_range() -> None:
    rows = np.random.default_rng(3).lognormal(0.0, 2.0, (20_000, 1))
    learner = PrivateLearner(Thresholds("above"), 3.0, n_points=255, columns=[float])
    learner.fit(rows, rows[:, 0] >= 60.0)  # 2% of them
    assert learner.score(rows, rows[:, 0] >= 60.0) > 0.995
    again = type(learner).from_dict(learner.to_dict())
    assert again.excess_errors() == learner.excess_errors()
    with pytest.raises(InvalidData, match="200 rows are too few to find the ranges"):
        PrivateLearner(Thresholds(), 0.1, columns=[float]).fit(rows[:200], rows[:200, 0] > 1)


@pytest.mark.claim("PRIOR")
def test_a_box_has_a_hypothesis_as_its_prior() -> None:
    def inside(table: Any) -> Any:
        return np.all((table >= 0.21) & (table < 0.77), axis=1)

    rows, asked = RNG.random((2_000, 2)), RNG.random((20_000, 2))
    one = EverlastingPredictor(Rectangles(), 1.0, columns=[(0, 1)] * 2).fit(rows, inside(rows))
    assert isinstance(one.prior_, PrivateLearner)
    # Votes of so few rows err on 15 % of the queries and more.
    assert np.mean(one.predict(asked) != inside(asked)) < 0.06
    assert EverlastingPredictor(Rectangles(), 1.0).fit(rows, inside(rows)).prior_ is None


# More than two classes


THREE = ("low", "middle", "high")
PLANE = np.random.default_rng(2).random((3_000, 2))


def named(table: Any) -> Any:
    return np.array(THREE)[np.digitize(table[:, 0], [0.3, 0.6])]


def of_three(**changes: Any) -> EverlastingPredictor:
    given: dict[str, Any] = {"epsilon": 5.0, "columns": [(0, 1)] * 2, "classes": THREE}
    return EverlastingPredictor(DecisionTreeClassifier(max_depth=3), **(given | changes))


@pytest.mark.claim("PRIOR")
@pytest.mark.usefixtures("little_trained")
@pytest.mark.parametrize("columns", [[(0, 1)] * 2, None])
def test_three_classes_have_a_prior(columns: Any) -> None:
    one = of_three(columns=columns).fit(PLANE, named(PLANE))
    assert isinstance(one.prior_, PrivateKernelClassifier)
    assert {"PRIOR", "KERNEL"} <= set(one.guarantee_.claims)
    assert one.guarantee_.within(5.0, 1e-6)
    asked = RNG.random((6_000, 2))
    answers = one.predict(asked)
    assert one.phase_ > 2
    last = slice(-2_000, None)
    wrong = np.mean(one.prior_.predict(asked[last]) != named(asked[last]))
    assert np.mean(answers[last] != named(asked[last])) < wrong + 0.02
    assert set(answers[last].tolist()) == set(THREE)
    again = restore(one.to_arrays())
    assert np.array_equal(again.prior_.predict(asked), one.prior_.predict(asked))
    assert set(again.predict(asked[:50]).tolist()) <= set(THREE)


@pytest.mark.claim("PRIOR")
@pytest.mark.usefixtures("little_trained")
@pytest.mark.parametrize("new", [[0.99, 0.5], [np.nan, 0.5]])
def test_a_row_of_three_classes_that_votes_moves_one_vote(
    monkeypatch: pytest.MonkeyPatch, new: Any
) -> None:
    spy, blocks = Spy(monkeypatch), []
    fit = Prior.fit

    def spied(self: Any, training: Any, places: Any, source: Any) -> None:
        blocks.append(set(places.tolist()))
        fit(self, training, places, source)

    monkeypatch.setattr(Prior, "fit", spied)
    rows, labels, asked = PLANE[:600], named(PLANE[:600]), RNG.random((50, 2))

    def seen(rows: Any, labels: Any) -> tuple[Any, ...]:
        one = of_three(random_state=3).fit(rows, labels)
        one.predict(asked)
        assert one.prior_ is not None
        votes, noisy = spy.take()
        return one.prior_.predict_proba(asked), votes[-50:], noisy[-50:] - votes[-50:]

    shares, votes, noise = seen(rows, labels)
    moved = np.zeros(len(asked), dtype=np.int64)
    for place in sorted(set(range(len(rows))) - blocks[0])[:8]:
        changed, other = rows.copy(), labels.copy()
        changed[place], other[place] = new, "low"
        other_shares, other_votes, other_noise = seen(changed, other)
        assert np.array_equal(shares, other_shares)
        assert np.array_equal(noise, other_noise)  # the same coins
        assert np.abs(votes - other_votes).max() <= 1
        moved = np.abs(votes - other_votes).sum(axis=1)
        assert set(moved.tolist()) <= {0, 2}
        if moved.any():  # not every row decides a vote
            break
    assert moved.any()


@pytest.mark.claim("PRIOR")
def test_the_first_of_several_classes_stays_first() -> None:
    # The full weight holds no more than one vote's lead of each class.
    shares = np.array([[0.2, 0.3, 0.5], [0.4, 0.3, 0.3]])
    found = combined(np.array([[0, 48, 52], [50, 49, 1]]), 100, 3.0, shares)
    assert found.max(axis=1).tolist() == [FULL_WEIGHT] * 2
    assert np.argmax(found, axis=1).tolist() == [2, 0]
    assert (np.sort(found, axis=1)[:, 1] < FULL_WEIGHT).all()


@pytest.mark.parametrize("n_rows", [400, 5_000, 1_000_000])
def test_the_prior_gets_what_the_votes_do_not_need(n_rows: int) -> None:
    sizes = PublicSizes(n_rows, 2, has_prior=True)
    options = options_of(EverlastingOptions, EverlastingPredictor(epsilon=1.0))
    rules = EverlastingRules.of(options, sizes)
    assert rules.first + rules.prior_rows + rules.trust_rows == n_rows
    assert 4 <= rules.first <= 0.25 * n_rows + 1
    if rules.first < 0.2 * n_rows:
        assert rules.schedule.shard_size(rules.first) == 6
        assert rules.schedule.noise(rules.first) == pytest.approx(MUCH_NOISE, rel=0.02)


@pytest.mark.claim("PRIOR")
@pytest.mark.usefixtures("little_trained")
def test_made_up_rows_are_no_reason_to_warn_of_few() -> None:
    table = RNG.random((2400, 16))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        EverlastingPredictor(epsilon=0.05, columns=[(0, 1)] * 16).fit(table, table[:, 0] > 0.5)
    assert not any("columns of numbers are few" in str(warning.message) for warning in heard)


def test_bounds_that_a_prior_declares_are_not_paid_for_again() -> None:
    rows = RNG.random((3_000, 2))
    prior = PrivateLogisticRegression(bounds=[(0, 1), (0, 1)])
    one = EverlastingPredictor(epsilon=3.0, prior=prior).fit(rows, rows[:, 0] > 0.5)
    assert "RANGES" not in one.guarantee_.claims
    with pytest.raises(InvalidParameter, match="do it once"):
        EverlastingPredictor(epsilon=3.0, prior=prior, columns=[(0, 1)] * 2).fit(
            rows, rows[:, 0] > 0.5
        )


@pytest.mark.claim("PRIOR")
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_votes_are_not_trusted_by_luck(epsilon: float) -> None:
    labels = np.arange(60) % 2
    shares = np.where(labels[:, None] == np.arange(2), 0.8, 0.2)
    shares[:20] = shares[:20, ::-1]  # a third is wrong
    alike = (100 * shares).astype(int)  # the votes say the same
    right = 100 * (labels[:, None] == np.arange(2))
    prior: Any = object.__new__(Prior)
    source = SeededSource(5)
    drawn = [prior.choose_trust(alike, 100, shares, labels, epsilon, source) for _ in range(200)]
    assert np.count_nonzero(drawn) < 25  # ten, on average
    if epsilon > 1:  # votes that know better are trusted
        drawn = [prior.choose_trust(right, 100, shares, labels, epsilon, source) for _ in range(50)]
        assert set(drawn) <= {1.0, 3.0}


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("sizes", [(6,), (1,) * 6, (2, 4), (5, 1)])
def test_a_querys_place_before_the_prior_is_its_running_number_in_any_batch(
    sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = Prior.shares
    seen: list[int] = []

    def spied(self: Prior, table: Any, numbers: Any) -> Any:
        seen.extend(numbers.tolist())
        return shares(self, table, numbers)

    one = EverlastingPredictor(
        Thresholds(), 3.0, 1e-6, columns=[(0, 1)], growth=1.0, random_state=0
    ).fit(RNG.random((4_000, 1)), RNG.integers(0, 2, 4_000))
    monkeypatch.setattr(Prior, "shares", spied)
    start = one._state_.spent.asked
    for size in sizes:
        one.predict(RNG.random((size, 1)))
    assert seen == list(range(start, start + 6))


@pytest.mark.claim("LABELLED")
def test_an_interrupt_on_the_way_into_a_phase_loses_no_renewed_prior(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    rows = rng.random((4_000, 1))
    given: dict[str, Any] = {"columns": [(0, 1)], "random_state": 1}
    one = EverlastingPredictor(Thresholds(), 3.0, **given).fit(rows, rows[:, 0] > 0.3)
    before = one._state_.prior
    count = 2 * before.n_rows
    one.add_labelled(rng.random((count, 1)), np.zeros(count, dtype=int))
    one.predict(rng.random((one._state_.left, 1)))

    def broken_off(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(states, "Entered", broken_off)
        with pytest.raises(KeyboardInterrupt):
            one.predict([[0.5]])
    one.predict([[0.5]])
    assert one.phase_ == 2
    assert one._state_.prior is not before


class OwnOdds(PrivateKernelClassifier):
    """Computes scores in a way of its own, which fails on a marked row."""

    @property
    def log_odds(self) -> Any:
        inner = super().log_odds

        def odds(table: Any) -> Any:
            if (table[:, 0] > 0.999).any():
                raise RuntimeError("it saw the row")
            return inner(table)

        return odds


@pytest.mark.claim("PRIOR")
def test_a_prior_of_somebody_elses_class_is_asked_in_blocks() -> None:
    """It says that it is exact, because the class above it is; but its failures must be hidden."""
    rng = np.random.default_rng(0)
    rows = rng.random((4_000, 2))
    columns: Any = [(0, 1), (0, 1)]
    model = DecisionTreeClassifier(max_depth=2)
    one = EverlastingPredictor(model, 5.0, columns=columns, prior=OwnOdds(), random_state=0)
    one.fit(rows, (rows[:, 0] > 0.5).astype(int))
    asked = np.array([[0.2, 0.2], [0.9995, 0.5]])
    prior, numbers = one._state_.prior, np.arange(2)
    alone = prior.shares(asked[:1], numbers[:1])
    assert (prior.shares(asked, numbers)[:1] == alone).all()
    assert len(one.predict(asked)) == 2
