"""Regressions: sensitivity, cost, accuracy, intervals and forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LinearRegression

import cumae
from cumae import Budget, PrivateKernelRegressor, PrivateLinearRegression
from cumae.audit import Game, audit
from cumae.audit.attacks import numbers as attacked
from cumae.audit.attacks.sums import ROWS
from cumae.errors import BudgetExhausted, InvalidData, InvalidParameter
from cumae.learners.kernel import reference, sums
from cumae.learners.kernel.sums import MOVES
from cumae.learners.regression import asking, learner
from cumae.learners.regression.asking import COUNTS_MOVE, bin_counts
from cumae.learners.regression.plans import MOST_CUTS
from cumae.learners.regression.spread import Spread, error_cuts, first_cuts, next_cuts
from cumae.privacy import DiscreteGaussianVectors
from cumae.randomness import discrete_gaussian
from cumae.sanitizers import Ranges
from tests.kinds import KINDS, as_array
from tests.plants import half_the_noise_of_sums, numbers_are_not_shortened
from tests.statistics import audited

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")
UNIT: list[Any] = [(-1, 1)] * 3
RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, (4_000, 3))
NOISE = RNG.normal(size=4_000)
Y = 4 * X[:, 0] - 2 * X[:, 1] + NOISE
PUBLIC = RNG.uniform(-1, 1, (500, 3))


# Sensitivity


@pytest.mark.claim("REGRESS")
@pytest.mark.parametrize("link", ["identity", "log"])
def test_what_a_row_adds_is_bounded_whatever_it_holds(link: str) -> None:
    """Pairs of rows, in whole numbers: numbers far beyond the range, and none at all."""
    one = attacked.asked(link)
    codes = one.asked.features.codes(ROWS)
    added = []
    for number in (0.0, 2.5, 5.0, 10.0, -1e300, 1e300, math.inf, math.nan):
        each = np.full(1, number)
        added += [one.total(codes[[place]], each) for place in range(0, len(codes), 7)]
    table = np.array(added).astype(np.float64)
    squares = (table**2).sum(axis=1)
    apart = np.sqrt((squares[:, None] + squares - 2 * table @ table.T).max())
    assert 0.98 * MOVES < apart <= MOVES


@pytest.mark.claim("REGRESS")
def test_a_replaced_row_moves_counts_by_what_is_paid_for() -> None:
    one, cuts = attacked.asked(), np.array([-1.0, 0.0, 2.0])
    codes = one.asked.features.codes(ROWS[:3])
    for numbers in ([0.0], [1.0], [5.0], [math.nan], [math.inf], [-math.inf]):
        assert bin_counts(np.array(numbers), cuts).sum() == sums.COUNTED
        assert one.errors(codes[:1], np.array(numbers), cuts).sum() == sums.COUNTED
    low, high = (bin_counts(np.array([number]), cuts) for number in (-5.0, 5.0))
    assert math.sqrt(((low - high) ** 2).sum()) == pytest.approx(COUNTS_MOVE)


@pytest.mark.claim("REGRESS")
def test_sums_are_the_same_for_any_chunks() -> None:
    one = attacked.asked()
    codes = one.asked.features.codes(np.resize(ROWS, (3_000, ROWS.shape[1])))
    numbers = np.linspace(0, 10, 3_000)
    whole = one.total(codes, numbers)
    parts = [one.total(codes[k : k + 500], numbers[k : k + 500]) for k in range(0, 3_000, 500)]
    assert np.array_equal(whole, sum(parts))


@pytest.mark.claim("REGRESS", "AUDIT")
@pytest.mark.statistical
@pytest.mark.parametrize("build", attacked.TARGETS, ids=["shortened", "log link", "counts"])
def test_sums_keep_what_they_claim(build: Any) -> None:
    """Rejects correct code with probability ``alarm_rate()`` at most, for each kind of sum."""
    target = build("PrivateKernelRegressor")
    assert 0.97 < target.worst[2] <= 1
    assert not audited(target.attack(1.0, 1e-6), runs=400, checks=3).broken


@pytest.mark.claim("REGRESS", "AUDIT")
@pytest.mark.statistical
def test_planted_bugs_of_sums_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the noise, and residuals that are not shortened."""
    with monkeypatch.context() as patch:
        half_the_noise_of_sums(patch)
        attack = attacked.shortened("PrivateKernelRegressor").attack(4.0, 1e-6)
        assert audit(attack, runs=1_000, progress=False).broken
    numbers_are_not_shortened(monkeypatch)
    target = attacked.shortened("PrivateKernelRegressor")
    assert target.worst[2] > 1.5
    assert audit(target.attack(8.0, 1e-6), runs=1_000, progress=False).broken


# What runs is what is paid for


def _drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    drawn: list[tuple[float, int]] = []

    def noise(scale: float, size: int, source: Any) -> Any:
        drawn.append((scale, size))
        return discrete_gaussian(scale, size, source)

    monkeypatch.setattr(sums, "discrete_gaussian", noise)
    return drawn


def _moves(drawn: list[tuple[float, int]], *, made_up: bool) -> list[float]:
    """What a replaced row moves, in numbers: three columns; 2^12; 1.5 x 64^2; 2^11 times 2^10."""
    one = 4_096 * math.sqrt(2)
    first = [4_096 * math.sqrt(6)] * 2 + [18_432 * math.sqrt(2)] if made_up else []
    steps = len(drawn) - len(first) - 3
    return [*first, one, one, *[4_194_304.0] * steps, one]


@pytest.mark.claim("REGRESS")
@pytest.mark.parametrize(("public", "count"), [(True, 500), (False, 100), (False, 30_000)])
def test_the_noise_that_is_drawn_is_the_noise_that_is_paid(
    public: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = _drawn(monkeypatch)
    rows = np.resize(X, (count, 3))
    model = PrivateLinearRegression(1.0, 1e-6, (-9, 9), columns=UNIT)
    model.fit(rows, rows[:, 0], PUBLIC if public else None)
    moves = _moves(drawn, made_up=count == 30_000)
    assert len(drawn) == (4 if public else 8) + 3 + 3 * (count == 30_000)
    mu = math.sqrt(sum((m / scale) ** 2 for m, (scale, _) in zip(moves, drawn, strict=True)))
    places, least = sum(size for _, size in drawn), min(scale for scale, _ in drawn)
    ran = DiscreteGaussianVectors(mu, places, least)
    assert model.guarantee_.epsilon == pytest.approx(ran.epsilon(1e-6), rel=1e-5)
    assert model.guarantee_.epsilon >= ran.epsilon(1e-6) * (1 - 1e-9)


@pytest.mark.claim("REGRESS", "RANGES")
@pytest.mark.parametrize("columns", [UNIT, None])
def test_a_range_that_is_found_is_paid_for(columns: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, looks, find = _drawn(monkeypatch), [], Ranges.find_by_counts

    def found(self: Ranges, counts: Any) -> Any:
        looks.append((self.epsilon, len(counts)))
        return find(self, counts)

    monkeypatch.setattr(Ranges, "find_by_counts", found)
    model = PrivateLinearRegression(1.0, 1e-6, columns=columns).fit(X, Y)
    ((epsilon, width),) = looks
    assert width == (1 if columns else 4)
    moves = _moves(drawn, made_up=len(drawn) == 14)
    squares = [(m / scale) ** 2 for m, (scale, _) in zip(moves, drawn, strict=True)]
    places, least = sum(size for _, size in drawn), min(scale for scale, _ in drawn)
    ran: Any = DiscreteGaussianVectors(math.sqrt(sum(squares)), places, least)
    ran = ran + Ranges(epsilon, width).cost
    assert ran.delta(model.guarantee_.epsilon) <= 1e-6
    low, high = model.target_range_
    assert low < np.quantile(Y, 0.02) < np.quantile(Y, 0.98) < high


@pytest.mark.claim("REGRESS")
def test_looks_have_no_more_bins_than_are_counted_as_places() -> None:
    for low, high in ((0.0, 1.0), (-1e6, 3.0), (-1.0, 1.0), (0.0, 1e12)):
        cuts = first_cuts(low, high, reference.first_edges((low, high)))
        spread = Spread.usual((low + high) / 2, (high - low) / 9, low, high)
        for found in (cuts, next_cuts(spread, 10**9, 1e-9), error_cuts(spread, 10**9, 1e-9)):
            assert len(found) + 1 <= MOST_CUTS
            assert (np.diff(found) > 0).all()


@pytest.mark.claim("REGRESS")
@pytest.mark.parametrize("public", [True, False])
def test_rows_speak_through_noisy_sums_alone(public: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With noise alone instead of all sums, other rows and numbers give the same model."""

    def noise_alone(total: Any, parts: Any, scale: float, source: Any) -> Any:
        shape = np.shape(total(*next(iter(parts))))
        return discrete_gaussian(scale, int(np.prod(shape)), source).reshape(shape)

    for module in (learner, reference):
        monkeypatch.setattr(module, "noisy_sum", noise_alone)
    found = []
    for seed in (0, 1):
        rows = as_array(150, seed)
        rows[: 70 * seed, :3] = np.nan
        numbers = np.random.default_rng(seed).normal(seed, 1 + 9 * seed, 150)
        more: dict[str, Any] = {"columns": KINDS, "random_state": 0, "n_waves": 3}
        model = PrivateKernelRegressor(1.0 if public else 100.0, 1e-6, (-9, 9), **more)
        model.fit(rows, numbers, *([as_array(60, 2)] if public else []))
        found.append(model.model_.to_dict())
    assert found[0] == found[1]


# What it learns


@pytest.mark.parametrize("public", [True, False])
def test_with_much_budget_it_is_ordinary_regression(public: bool) -> None:
    model = PrivateLinearRegression(math.inf, 1e-6, (-12, 12), columns=UNIT, random_state=0)
    model.fit(X, Y, PUBLIC if public else None)
    plain = LinearRegression().fit(X, Y)
    assert model.coef_ == pytest.approx(plain.coef_, abs=0.12)
    assert model.intercept_ == pytest.approx(plain.intercept_, abs=0.12)
    assert model.score(X, Y) > plain.score(X, Y) - 0.01


def test_intervals_of_slopes_hold_the_truth_as_often_as_they_say() -> None:
    """Of 12 fits with 3 slopes each, about 34 in 36 hold it; 28 would be far off."""
    held, sizes = 0, []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = rng.uniform(-1, 1, (3_000, 3))
        numbers = 3 * rows[:, 0] - rows[:, 1] + rng.standard_t(5, size=3_000)
        model = PrivateLinearRegression(1.0, 1e-6, (-15, 15), columns=UNIT, random_state=seed)
        model.fit(rows, numbers, PUBLIC)
        low, high = model.coef_interval(0.95).T
        held += int(((low <= [3, -1, 0]) & (high >= [3, -1, 0])).sum())
        sizes.append(np.abs(model.coef_ - [3, -1, 0]) / model.standard_errors_)
    assert held >= 31
    assert 0.4 < np.mean(sizes) < 1.1  # of a normal number it is .8


def test_intervals_of_numbers_hold_as_many_as_they_say() -> None:
    rng = np.random.default_rng(1)
    shares = []
    for seed in range(4):
        rows = rng.uniform(-1, 1, (3_000, 2))
        numbers = 5 * rows[:, 0] * rows[:, 1] + rng.gamma(2.0, size=3_000)
        model = PrivateKernelRegressor(
            1.0, 1e-6, (-8, 20), n_waves=20, columns=UNIT[:2], random_state=seed
        )
        model.fit(rows[:2_000], numbers[:2_000], PUBLIC[:, :2])
        for coverage in (0.5, 0.9):
            low, high = model.predict_interval(rows[2_000:], coverage).T
            inside = (low <= numbers[2_000:]) & (numbers[2_000:] <= high)
            shares.append(inside.mean() - coverage)
    assert np.abs(np.mean(np.reshape(shares, (4, 2)), axis=0)).max() < 0.06


def test_it_finds_what_two_columns_tell_together() -> None:
    numbers = 6 * X[:, 0] * X[:, 1] + NOISE
    given = (1.0, 1e-6, (-9, 9))
    model = PrivateKernelRegressor(*given, columns=UNIT, random_state=0).fit(X, numbers, PUBLIC)
    lines = PrivateLinearRegression(*given, columns=UNIT, random_state=0).fit(X, numbers, PUBLIC)
    assert model.score(X, numbers) > 0.5
    assert lines.score(X, numbers) < 0.05


def test_counts_by_a_log_link() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (10_000, 2))
    counts = rng.poisson(np.exp(1 + rows[:, 0] - 0.5 * rows[:, 1]))
    model = PrivateLinearRegression(
        1.0, 1e-6, (0, 60), link="log", columns=UNIT[:2], random_state=0
    ).fit(rows, counts)
    assert model.coef_ == pytest.approx([1.0, -0.5], abs=0.2)
    assert model.intercept_ == pytest.approx(1.0, abs=0.15)
    assert (model.predict(rows) > 0).all()
    assert "logarithm of the mean" in str(model)
    with pytest.raises(InvalidParameter, match="below 0"):
        PrivateLinearRegression(target_range=(-1, 5), link="log", columns=UNIT).fit(X, Y)


def test_shrinking_predicts_better_where_rows_are_few() -> None:
    rng = np.random.default_rng(2)
    rows = rng.uniform(-1, 1, (300, 40))
    numbers = 0.1 * rows[:, 0] + rng.normal(size=300)
    more: dict[str, Any] = {"columns": [(-1, 1)] * 40, "random_state": 0}
    public = rng.uniform(-1, 1, (400, 40))
    scores = [
        PrivateLinearRegression(1.0, 1e-6, (-6, 6), shrink=shrink, **more)
        .fit(rows, numbers, public)
        .score(rows, numbers)
        for shrink in (True, False)
    ]
    assert scores[0] > scores[1] + 0.05


# Forms


@pytest.fixture(scope="module")
def fitted() -> PrivateKernelRegressor:
    columns = [(-1, 1), (-1, 1), ["a", "b", "c"]]
    rows = np.array([[a, b, "abc"[k % 3]] for k, (a, b, _) in enumerate(X[:600])], dtype=object)
    model = PrivateKernelRegressor(5.0, 1e-6, (-9, 9), n_waves=5, columns=columns, random_state=1)
    return model.fit(rows, Y[:600])


def test_it_is_stored_and_says_the_same(fitted: PrivateKernelRegressor, tmp_path: Any) -> None:
    rows = [[0.5, -0.5, "a"], [0.0, 1.0, "c"]]
    fitted.save(tmp_path / "model.json")
    again = cumae.load(tmp_path / "model.json")
    assert np.array_equal(again.predict(rows), fitted.predict(rows))
    assert np.array_equal(again.predict_interval(rows), fitted.predict_interval(rows))
    assert again.guarantee_ == fitted.guarantee_
    assert str(again) == str(fitted)
    assert str(fitted).startswith("mean: ")
    with pytest.raises(InvalidParameter, match="oracles answer with classes"):
        fitted.save_to(tmp_path / "model.db")


def test_effects_are_in_units_of_the_number(fitted: PrivateKernelRegressor) -> None:
    effect = fitted.effects_[0]
    assert effect.columns == ("0",)
    assert 3 < effect.log_odds.max() - effect.log_odds.min() < 12
    figure = fitted.plot()
    assert "mean" in figure.get_suptitle()
    assert "odds" not in figure.get_suptitle()


def test_it_is_a_regressor_with_plan_and_budget() -> None:
    model = PrivateKernelRegressor(1.0, 1e-6, (-9, 9), columns=UNIT)
    assert is_regressor(model)
    assert not is_classifier(model)
    assert clone(model).target_range == (-9, 9)
    told = model.plan(5_000, 3, 100)
    assert told.can_run
    assert told.guarantee is not None
    assert told.guarantee.epsilon <= 1
    with pytest.raises(BudgetExhausted):
        model.set_params(budget=Budget(0.5)).fit(X, Y)
    assert not hasattr(model, "model_")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"target_range": (5, 1)}, "the lower one first"),
        ({"target_range": (0, math.inf)}, "finite"),
        ({"target_range": 3}, "no range"),
        ({"delta": 0.0}, "needs a delta"),
        ({"link": "probit"}, "unknown"),
    ],
)
def test_what_makes_no_sense_is_refused(given: Any, message: str) -> None:
    told = {"target_range": (0, 1), "columns": UNIT} | given
    with pytest.raises(InvalidParameter, match=message):
        PrivateKernelRegressor(**told).fit(X, Y)


@pytest.mark.parametrize("cell", [math.nan, math.inf, "much"])
def test_numbers_that_are_none_are_refused_before_the_payment(cell: Any) -> None:
    budget = Budget(9.0, 0.1)
    model = PrivateKernelRegressor(1.0, 1e-6, (-9, 9), columns=UNIT, budget=budget)
    with pytest.raises(InvalidData, match="y "):
        model.fit(X[:3], [0.0, 1.0, cell])
    assert budget.spent == (0.0, 0.0)


def test_predictors_refuse_regressors() -> None:
    model = PrivateKernelRegressor(1.0, 1e-6, (-9, 9), columns=UNIT)
    oracle = cumae.EverlastingPredictor(model, 1.0, columns=UNIT)
    with pytest.raises(InvalidParameter, match="predicts numbers"):
        oracle.fit(X, Y > 0)
    release = cumae.QueryRelease(model, epsilon=1.0, delta=1e-6, max_queries=10, columns=UNIT)
    with pytest.raises(InvalidParameter, match="predicts numbers"):
        release.fit(X, Y > 0)


def test_an_attack_can_be_played() -> None:
    attack = attacked.counted("PrivateLinearRegression").attack(1.0, 1e-6)
    assert attack.name.startswith("PrivateLinearRegression")
    assert np.isfinite(attack.play(Game(attack.make(), 1)))
    assert asking.COUNTS_MOVE > 0
