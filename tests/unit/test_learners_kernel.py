"""The engine of the kernel classifier: bounded whole numbers, exact sums, costs, what it learns."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from typing import Any

import joblib
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from cumae import Budget, OneVsRest, PrivateKernelClassifier, PrivateLogisticRegression
from cumae.data import Columns
from cumae.engines import cut
from cumae.errors import InvalidParameter
from cumae.learners.base import Learner, Rows, Sizes
from cumae.learners.kernel import scoring, sums
from cumae.learners.kernel.features import TOP, KernelFeatures, cosines, packed
from cumae.learners.kernel.fractions import Fractions
from cumae.learners.kernel.learner import measure
from cumae.learners.kernel.levels import Levels
from cumae.learners.kernel.posterior import NoisySum, Posterior
from cumae.learners.kernel.prices import Measurements, vectors_cost
from cumae.learners.kernel.reference import MOST_BINS, MadeUp, Marginal, first_edges
from cumae.learners.kernel.scoring import ANGLES, ROUNDING, WholeProducts, turn_to_cosines
from cumae.learners.kernel.sums import (
    COUNTED,
    LENGTH,
    MOVES,
    STEEP,
    Question,
    noisy_sum,
    residuals,
    weights,
)
from cumae.privacy import DiscreteGaussianVectors
from cumae.randomness import SYSTEM, SeededSource, discrete_gaussian
from cumae.workers import each

pytestmark = pytest.mark.claim("KERNEL")
COINS = np.random.default_rng(0)
UNIT = [(-1, 1), (-1, 1), ["a", "b", "c"]]
KINDS = np.array(["a", "b", "c"], dtype=object)


def table(count: int) -> NDArray[Any]:
    numbers = COINS.uniform(-1, 1, (count, 2)).astype(object)
    return np.column_stack([numbers, KINDS[COINS.integers(0, 3, count)]])


X = table(3_000)
Y = ((X[:, 0] > 0) != (X[:, 1] > 0)).astype(np.int64)
PUBLIC = table(500)
COLUMNS = Columns(UNIT, None, 3)
ENCODED = COLUMNS.encode(X)


def features(waves: int = 20) -> KernelFeatures:
    reference = COLUMNS.encode(PUBLIC)
    return KernelFeatures.of(reference, COLUMNS, SeededSource(1), curves=6, waves=waves)


def question(made: KernelFeatures, size: float = 0.3, scores: int = 1) -> Question:
    coins = np.random.default_rng(5)
    mean = coins.normal(0, size, (len(made), scores))
    return Question.of(made, mean, coins.normal(0, size, (len(made), 17)))


# What a row adds


@pytest.mark.parametrize("scores", [1, 4])
@pytest.mark.parametrize("size", [1e-9, 0.3, 1e9, 1e300])
@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300, math.nan, -1e-300, 0.5])
def test_what_a_row_adds_is_bounded_whatever_it_holds(
    value: float, size: float, scores: int
) -> None:
    made = features()
    rows = ENCODED[:60].copy()
    rows[::3] = value
    codes = made.codes(rows)
    whole = made.whole(codes)
    assert np.all(whole == np.rint(whole))
    assert np.abs(whole).max() <= TOP
    with np.errstate(all="ignore"):
        asked = question(made, size, scores)
        for place, label in itertools.product(range(60), range(max(scores, 2))):
            added = asked.total(codes[[place]], np.array([label]))
            assert math.sqrt((added.astype(float) ** 2).sum()) <= LENGTH * STEEP
    assert 2 * LENGTH * STEEP == MOVES


@pytest.mark.parametrize("scores", [1, 3])
def test_a_row_that_arithmetic_made_too_long_adds_nothing(
    scores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds are checked on whole numbers, after everything else."""
    made = features()
    asked, codes = question(made, scores=scores), made.codes(ENCODED[:5])
    labels = np.zeros(5, dtype=np.int64)
    assert np.any(asked.total(codes, labels))
    for broken in (1.01, math.nan, math.inf):
        with monkeypatch.context() as patch:
            patch.setattr(sums, "shorten", lambda rows, by=broken: np.full_like(rows, by))
            assert not np.any(asked.total(codes, labels))
        with monkeypatch.context() as patch:
            patch.setattr(sums, "residuals", lambda odds, _, by=broken: np.full_like(odds, by))
            assert not np.any(asked.total(codes, labels))


@pytest.mark.filterwarnings("error")
def test_threads_say_nothing_about_rows() -> None:
    """What numpy would warn about is ignored there, too, and not only in the thread that fits."""
    made = features()
    codes, labels = made.codes(ENCODED[:60]), Y[:60]
    with np.errstate(all="ignore"):
        asked = question(made, 1e30)
        assert not np.any(sum(each(asked.total, [(codes, labels)] * 3)))
    with pytest.raises(RuntimeWarning, match="overflow"):
        asked.ask(codes)  # the test can see something


def test_residuals_are_bounded_and_zero_on_the_mean_if_the_odds_are_right() -> None:
    for scores in (1, 2, 5):
        odds = COINS.normal(0, 3, (200, scores))
        chance = sums.chances(odds)
        if scores == 1:
            chance = np.hstack([1 - chance, chance])
        mean = np.zeros_like(odds)
        longest = np.zeros(200)
        for label in range(chance.shape[1]):
            found = residuals(odds, np.full(200, label))
            longest = np.maximum(longest, np.sqrt((found**2).sum(axis=1)))
            mean += chance[:, [label]] * found
        assert longest == pytest.approx(0.5)
        assert mean == pytest.approx(0.0, abs=1e-12)


# Sums


def totals(made: KernelFeatures, codes: Any, labels: Any, chunk: int = 900) -> Any:
    parts = cut(codes, labels, rows=chunk)
    released = measure(question(made), parts, codes[:50], 0.0, SYSTEM)
    return released.value.tobytes()


def test_sums_are_the_same_to_the_bit_for_any_chunks_and_workers() -> None:
    made = features()
    codes = made.codes(ENCODED)
    found = {totals(made, codes, Y)}
    for chunk in (7, 100, 1_000):
        found.add(totals(made, codes, Y, chunk))
    with joblib.parallel_config("loky", n_jobs=2):
        found.add(totals(made, codes, Y))
    assert len(found) == 1
    order, asked = COINS.permutation(len(Y)), question(made)
    assert np.array_equal(asked.total(codes[order], Y[order]), asked.total(codes, Y))


def test_what_a_row_is_does_not_depend_on_the_rows_beside_it() -> None:
    made = features()
    codes = made.codes(ENCODED)
    for place in (0, 17, 2_999):
        assert np.array_equal(made.codes(ENCODED[[place]])[0], codes[place])
        assert np.array_equal(made.whole(codes[[place]])[0], made.whole(codes)[place])
        alone, beside = (question(made).ask(c) for c in (codes[[place]], codes))
        assert alone[0][0].tobytes() == beside[0][place].tobytes()
        assert alone[1][0].tobytes() == beside[1][place].tobytes()


@pytest.mark.parametrize(("waves", "rows"), [(20, 2_500), (300, 60), (0, 60)])
def test_products_of_features_are_exact(
    waves: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above 1,024 features and rows, and with the largest numbers that there can be."""
    made = features(waves=waves)
    codes = made.codes(ENCODED[:rows])
    by = COINS.integers(-TOP, TOP + 1, (made.n_features, 4)).astype(np.float32)
    by[:, 0], by[:, 1] = TOP, -TOP
    exact = made.whole(codes).astype(np.int64) @ by.astype(np.int64)
    assert np.array_equal(WholeProducts(made, by)(codes), exact)
    codes.flags.writeable = False  # as a cluster may send it
    assert np.array_equal(WholeProducts(made, by)(codes[::2]), exact[::2])
    monkeypatch.setattr(scoring, "MOST_CELLS", 0)  # without tables
    assert np.array_equal(WholeProducts(made, by)(codes), exact)


def test_loops_and_arrays_have_the_same_cosines() -> None:
    """Of each angle in a turn, and of those on both sides of it."""
    angles = np.arange(-1.5 * ANGLES, 1.5 * ANGLES, dtype=np.float32).reshape(-1, 64)
    shifts = np.arange(64, dtype=np.float32)
    found = angles.copy()
    turn_to_cosines(found, shifts, ROUNDING)
    assert np.array_equal(found, cosines(angles + shifts))


@pytest.mark.parametrize("size", [0.3, 1e300])
def test_what_workers_get_is_small_and_says_the_same(size: float) -> None:
    made = features()
    with np.errstate(all="ignore"):
        asked, codes = question(made, size), made.codes(ENCODED)
    sent = pickle.dumps(asked)
    added = asked.total(codes, Y)
    assert len(pickle.dumps(asked)) == len(sent)  # without the tables that were made for the sum
    again = pickle.loads(sent)  # noqa: S301 - its own
    assert np.array_equal(again.total(codes, Y), added)
    assert np.array_equal(again.features.whole(codes), made.whole(codes))
    assert again.directions.dtype == again.features.waves.dtype == np.float32
    assert len(pickle.dumps(packed(made.whole(codes)))) < made.whole(codes).nbytes / 2


def test_waves_are_cosines() -> None:
    made = features(waves=50)
    codes = made.codes(ENCODED[:200])
    ranks = np.zeros((200, made.width))
    for place, levels in made.levels.items():
        ranks[:, place] = (levels.ranks[codes[:, place]] - 0.5) * math.sqrt(12)
    ranks[:, made.marks] = codes[:, made.marks]
    angle = (ranks @ made.waves + made.shifts / 256) / 4096 * 2 * math.pi
    found = made.whole(codes)[:, -200:]
    assert found == pytest.approx(TOP * np.cos(angle), abs=3.0)  # ranks are rounded to 1/256


@pytest.mark.parametrize("kind", ["counts", "products"])
def test_a_replaced_row_moves_made_up_releases_by_what_is_paid_for(kind: str) -> None:
    made = MadeUp(COLUMNS)
    edges = [first_edges((-1.0, 1.0)) for _ in made.numbers]
    even = [np.full(len(edge) - 1, 1 / (len(edge) - 1)) for edge in edges]
    marginals = [Marginal.of(e, share, (-1.0, 1.0)) for e, share in zip(edges, even, strict=True)]
    shares = [np.full(len(places), 1 / len(places)) for places in made.marks]
    extreme = np.array([[-1, -1, 1, 0, 0], [1, 1, 0, 1, 0], [1, -1, 0, 0, 1], [0, 0, 0, 0, 0]])
    wild = np.full((1, 5), math.nan), np.full((1, 5), 1e300), np.full((1, 5), 1.0)
    found = []
    for row in itertools.chain(extreme[:, None].astype(float), wild, ENCODED[:50, None]):
        if kind == "counts":
            found.append(made.counts(row, edges))
        else:
            found.append(made.products(row, marginals, shares))
    moved = max(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(found, 2))
    paid = made.counts_move if kind == "counts" else made.products_move
    assert moved <= paid * (1 + 1e-12)
    if kind == "counts":
        assert moved == pytest.approx(COUNTED * math.sqrt(2 * 3))
        assert len(found[0]) <= MOST_BINS * 3
    else:
        assert moved > 0.3 * paid


def test_made_up_rows_have_the_values_that_private_rows_have() -> None:
    """Few declared values, a frequent value without a declared step, and long steps."""
    coins = np.random.default_rng(8)
    rows = np.column_stack(
        [
            coins.choice([1.0, 2.0, 3.0, 4.0, 5.0], 20_000, p=[0.5, 0.3, 0.1, 0.06, 0.04]),
            np.where(coins.random(20_000) < 0.8, 0.0, coins.lognormal(6, 1, 20_000)),
            np.rint(coins.normal(500, 90, 20_000)),
        ]
    )
    rows[:, 1] = np.minimum(rows[:, 1], 9_000)
    declared = Columns([(1, 5, 1), (0, 9_000), (0, 1_000, 1)], None, 3)
    made = MadeUp(declared).release(rows, len(rows), 2.0 * COUNTED, 500.0, SeededSource(4))
    shares = np.bincount(made[:, 0].astype(int), minlength=6) / len(made)
    assert shares == pytest.approx([0, 0.5, 0.3, 0.1, 0.06, 0.04], abs=0.04)
    assert np.mean(made[:, 1] == 0) == pytest.approx(0.8, abs=0.05)
    assert np.all(made[:, 0] == np.rint(made[:, 0]))
    levels = KernelFeatures.of(made, declared, SeededSource(1), curves=6, waves=0)
    ranks = [levels.levels[p].ranks[levels.codes(rows)[:, p]].mean() for p in range(3)]
    assert ranks == pytest.approx([0.5] * 3, abs=0.05)  # private rows have the same middle


# Cost


@pytest.mark.parametrize("rows", [300, 3_000, 10**6])
@pytest.mark.parametrize("public", [0, 500])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
def test_the_cost_is_that_of_all_sums_and_within_what_was_asked(
    epsilon: float, public: int, rows: int
) -> None:
    model = PrivateKernelClassifier(epsilon, 1e-6)
    none = Rows(np.zeros((0, 5)), np.zeros(0, dtype=np.int64))
    plan = model.decide(Sizes(rows, 0, public, COLUMNS), none)
    assert plan.cost.delta(epsilon) <= 1e-6
    steps = plan.steps
    if not isinstance(steps, Measurements):  # for so few rows, trees are fitted
        assert rows * epsilon < 100
        return
    made, fractions = MadeUp(COLUMNS), Fractions(COLUMNS)
    mu2 = (2 * LENGTH * STEEP / steps.first_noise) ** 2
    mu2 += (steps.steps - 1) * (2 * LENGTH * STEEP / steps.noise) ** 2
    if steps.made_up:
        mu2 += steps.looks * 2 * 3 * (COUNTED / steps.counts_noise) ** 2
        if steps.products_noise is not None:
            mu2 += 2 * (made.longest / steps.products_noise) ** 2
    if steps.fractions_noise is not None:
        mu2 += (fractions.moves / steps.fractions_noise) ** 2
    assert isinstance(plan.cost, DiscreteGaussianVectors)
    assert plan.cost.mu == pytest.approx(math.sqrt(mu2))
    if public or rows * epsilon > 1_000:
        assert steps.made_up == (not public)
        assert (steps.fractions_noise is not None) == (not public)
    assert plan.cost.delta(0.95 * epsilon) > 1e-6  # it is no waste either


def test_wide_tables_are_sifted_by_the_first_sum() -> None:
    """With few rows for each column it has more of the budget, and products are not asked for."""
    none = Rows(np.zeros((0, 5)), np.zeros(0, dtype=np.int64))
    wide = Columns([(0, 1)] * 300, None, 300)
    plan = PrivateKernelClassifier(1.0, 1e-6).decide(Sizes(3_000, 0, 0, wide), none)
    assert isinstance(plan.cost, DiscreteGaussianVectors)
    steps = plan.steps
    assert steps.made_up
    assert steps.products_noise is None
    assert steps.looks == 1
    assert steps.noise == pytest.approx(math.sqrt(3) * steps.first_noise)
    mu2 = 2 * 300 * (COUNTED / steps.counts_noise) ** 2
    mu2 += (2 * LENGTH * STEEP) ** 2 * (1 / steps.first_noise**2 + 3 / steps.noise**2)
    assert steps.fractions_noise is not None
    mu2 += (Fractions(wide).moves / steps.fractions_noise) ** 2
    assert plan.cost.mu == pytest.approx(math.sqrt(mu2))
    assert plan.cost.delta(1.0) <= 1e-6 < plan.cost.delta(0.95)
    many = PrivateKernelClassifier(1.0, 1e-6).decide(Sizes(30_000, 0, 0, wide), none).steps
    assert many.noise == many.first_noise
    assert many.products_noise is not None


def test_the_noise_that_is_drawn_is_the_noise_that_is_paid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[tuple[float, int]] = []

    def watch(scale: float, count: int, source: Any) -> Any:
        drawn.append((scale, count))
        return discrete_gaussian(scale, count, source)

    monkeypatch.setattr(sums, "discrete_gaussian", watch)
    for classes in ((0, 1), (0, 1, 2)):
        for public in (None, PUBLIC):
            drawn.clear()
            model = PrivateKernelClassifier(1.0, 1e-6, columns=UNIT, classes=classes, n_waves=10)
            sizes, rows = model.read_rows(X, Y, public)
            plan = model.decide(sizes, rows)
            model.fit(X, Y, public)
            steps = plan.steps
            first = [] if steps.fractions_noise is None else [steps.fractions_noise]
            if steps.made_up:
                first += [steps.counts_noise] * steps.looks
            if steps.made_up and steps.products_noise is not None:
                first.append(steps.products_noise)
            first.append(steps.first_noise)
            assert [scale for scale, _ in drawn] == first + [steps.noise] * (steps.steps - 1)
            assert sum(count for _, count in drawn) <= steps.places
            assert plan.cost == vectors_cost(steps, COLUMNS, 1)


def test_noise_is_added_to_every_number() -> None:
    parts = [(np.full(40, place),) for place in range(5)]
    found = noisy_sum(lambda part: part, iter(parts), 50.0, SeededSource(0))
    assert len(set(found.tolist())) > 20  # all sums are 10
    assert np.all(noisy_sum(lambda part: part, iter(parts), 0.0, SYSTEM) == 10)


# Inference


def test_the_posterior_finds_the_truth_and_says_how_sure_it_is() -> None:
    """With exact sums of many rows; without any, it is the prior."""
    made = features(waves=0)
    shown = made.codes(COLUMNS.encode(PUBLIC))
    rows = made.rows(shown)
    start = np.array([4.0, 0.5, 0.5])
    posterior = Posterior(rows, made.groups, start[None], np.ones(1), 1, 50_000, 500.0, 4)
    assert np.diag(posterior.covariance) == pytest.approx(start[made.groups])
    truth = np.random.default_rng(2).normal(0, np.sqrt(start[made.groups]) / 2)
    chance = expit(rows @ truth)
    for _ in range(4):
        asked = Question.of(made, posterior.mean, posterior.design(25.0))
        odds, across = asked.ask(shown)
        wrong = (sums.chances(odds)[:, 0] - chance) * weights(sums.chances(odds))
        value = 100 * (across.T.astype(float) @ wrong)[:, None]
        posterior.learn(NoisySum(value, 25.0, across.astype(float), sums.chances(odds)))
    off = rows @ (posterior.mean[:, 0] - truth)
    spread = np.sqrt(((rows @ posterior.covariance) * rows).sum(axis=1))
    assert np.abs(off).mean() < 0.2 * np.abs(rows @ truth).mean()
    assert np.mean(np.abs(off) < 2 * spread) > 0.9
    assert spread.mean() < 0.4


@pytest.mark.parametrize("public", [False, True])
def test_it_learns_what_no_additive_model_can(public: bool) -> None:
    rows, test = table(12_000), table(2_000)

    def label(rows: Any) -> Any:
        return ((rows[:, 0] > 0) != (rows[:, 1] > 0)).astype(int)

    args = (rows, label(rows)) + ((PUBLIC,) if public else ())
    model = PrivateKernelClassifier(2.0, 1e-6, columns=UNIT).fit(*args)
    assert model.score(test, label(test)) > 0.85
    additive = PrivateKernelClassifier(2.0, 1e-6, columns=UNIT, n_waves=0).fit(*args)
    assert additive.score(test, label(test)) < 0.6


def test_several_classes_are_one_model() -> None:
    rows, test = table(6_000), table(2_000)

    def label(rows: Any) -> Any:
        return np.array(["n", "e", "s", "w"])[2 * (rows[:, 0] > 0) + (rows[:, 1] > 0).astype(int)]

    model = PrivateKernelClassifier(1.0, 1e-6, columns=UNIT, classes=["n", "e", "s", "w"])
    model.fit(rows, label(rows), PUBLIC)
    assert model.score(test, label(test)) > 0.85
    chances = model.predict_proba(test)
    assert chances.shape == (2_000, 4)
    assert chances.sum(axis=1) == pytest.approx(1.0)
    assert np.array_equal(model.classes_[chances.argmax(axis=1)], model.predict(test))
    assert model.uncertainty(test).shape == (2_000, 4)
    assert np.abs(model.published().weights.sum(axis=1)).max() < 1e-3  # nothing in common
    assert model.guarantee_.epsilon <= 1.0
    base = PrivateLogisticRegression(1.0, 1e-6, curves=6, columns=UNIT)
    rest = OneVsRest(base, ["n", "e", "s", "w"], 1.0, 1e-6).fit(rows, label(rows), PUBLIC)
    assert model.score(test, label(test)) > rest.score(test, label(test)) - 0.02


def test_more_epsilon_makes_it_surer() -> None:
    line = (COINS.random(3_000) < expit(2 * X[:, 0].astype(float))).astype(int)
    found = [
        PrivateKernelClassifier(epsilon, 1e-6, columns=UNIT, n_waves=0).fit(X, line, PUBLIC)
        for epsilon in (0.3, 30.0)
    ]
    few, many = (model.uncertainty(X).mean() for model in found)
    assert many < 0.6 * few


# The house's manners


@pytest.mark.parametrize("classes", [(0, 1), (0, 1, 2)])
def test_it_is_stored_and_says_the_same(tmp_path: Any, classes: Any) -> None:
    model = PrivateKernelClassifier(1.0, 1e-6, columns=UNIT, classes=classes).fit(X, Y)
    model.save(tmp_path / "model.json")
    for back in (Learner, PrivateKernelClassifier):
        again = back.load(tmp_path / "model.json")
        assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
        assert np.array_equal(again.uncertainty(X), model.uncertainty(X))
        assert again.guarantee_ == model.guarantee_
    assert len(json.dumps(model.to_dict())) < 2_000_000


def test_levels_hold_all_values_or_quantiles() -> None:
    few = Levels.of(np.array([3.0, 1.0, 1.0, 7.0]))
    assert few.cuts.tolist() == [2.0, 5.0]
    assert few.code(np.array([-9.0, 1.0, 2.0, 4.9, 5.0, math.inf])).tolist() == [0, 0, 1, 1, 2, 2]
    assert few.ranks.tolist() == pytest.approx([1 / 6, 1 / 2, 5 / 6])  # no value takes in most
    assert few.shares.tolist() == [0.5, 0.25, 0.25]
    assert Levels.of(np.array([3.0, 1.0, 1.0, 7.0]), 0.0).ranks.tolist() == [0.25, 0.625, 0.875]
    many = Levels.of(np.append(np.zeros(3_000), COINS.lognormal(0, 3, 3_000)))
    assert len(many.cuts) < 256
    counts = np.bincount(many.code(COINS.lognormal(0, 3, 30_000)), minlength=len(many.cuts) + 1)
    assert counts[1:].max() < 600  # 129 or so levels for the upper half
    assert np.all(np.diff(many.ranks) > 0)
    assert np.all(np.diff(many.lines) >= 0)


def test_levels_of_neighbouring_floats_are_numbers() -> None:
    """Between them there is no cut, so that one level has no value of its own."""
    found = Levels.of(np.array([0.0, 5e-324, 1e-323, 1.5e-323]))
    assert np.isfinite(found.lines).all()
    assert np.isfinite(found.ranks).all()


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_a_part_without_rows_knows_nothing(epsilon: float) -> None:
    """A booster with one row has none to start from."""
    model = PrivateLogisticRegression(epsilon, 1e-6, columns=UNIT)
    none = Rows(np.zeros((0, len(COLUMNS))), np.zeros(0, dtype=np.int64))
    with np.errstate(all="ignore"):  # as in a fit
        model.fit_part(none, COLUMNS, np.array([0, 1]))
    assert np.isfinite(model.log_odds(ENCODED)).all()


def test_without_a_delta_it_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="PrivateBooster"):
        PrivateKernelClassifier(1.0, 0.0, columns=UNIT).fit(X, Y)


@pytest.mark.parametrize("classes", [(0,), (1, 1), "ab", None])
def test_classes_are_declared(classes: Any) -> None:
    with pytest.raises(InvalidParameter, match="classes"):
        PrivateKernelClassifier(columns=UNIT, classes=classes).fit(X, Y)


def test_without_noise_and_with_one_column_it_works() -> None:
    rows = np.linspace(-1, 1, 400).reshape(-1, 1)
    for given in ((), (rows,)):
        model = PrivateKernelClassifier(math.inf, 1e-6, columns=[(-1, 1)])
        assert model.fit(rows, rows[:, 0] > 0.2, *given).score(rows, rows[:, 0] > 0.2) > 0.95


def test_a_table_of_marks_alone_works() -> None:
    rows = np.array([["x", "y"][i % 2] for i in range(2_000)], dtype=object).reshape(-1, 1)
    model = PrivateKernelClassifier(columns=[["x", "y", "z"]]).fit(rows, rows[:, 0] == "y")
    assert model.predict([["x"], ["y"]]).tolist() == [0, 1]


def test_many_columns_of_which_few_matter() -> None:
    wide = COINS.uniform(-1, 1, (4_000, 60))
    model = PrivateKernelClassifier(columns=[(-1, 1)] * 60).fit(wide, wide[:, 3] > 0)
    assert model.score(wide, wide[:, 3] > 0) > 0.9


# Few rows


def few_rows(count: int = 110) -> tuple[NDArray[Any], NDArray[Any]]:
    wide = COINS.uniform(-1, 1, (count, 40))
    return wide, (wide[:, 7] > 0).astype(int)


def test_where_rows_are_few_for_so_many_columns_trees_are_fitted(tmp_path: Any) -> None:
    wide, labels = few_rows()
    test, truth = few_rows(2_000)
    model = PrivateKernelClassifier(3.0, 1e-6, columns=[(-1, 1)] * 40).fit(wide, labels)
    assert model.trees_ is not None
    assert model.model_ is None
    assert model.guarantee_.epsilon <= 3.0
    assert "BOOST" in model.guarantee_.claims
    assert "KERNEL" not in model.guarantee_.claims
    assert model.score(test, truth) > 0.7
    assert str(model) == str(model.trees_)
    model.save(tmp_path / "model.json")
    assert np.array_equal(Learner.load(tmp_path / "model.json").predict(test), model.predict(test))
    for look in (lambda: model.effects_, lambda: model.uncertainty(test), model.plot):
        with pytest.raises(InvalidParameter, match="trees were fitted"):
            look()
    many, labels = few_rows(2_000)
    again = model.set_params(columns=[(-1, 1)] * 3).fit(many[:, 5:8], labels)
    assert again.trees_ is None  # nothing of the first fit is left
    assert again.model_ is not None


def test_whether_trees_are_fitted_depends_on_public_numbers_alone() -> None:
    none = Rows(np.zeros((0, 5)), np.zeros(0, dtype=np.int64))
    found = []
    for rows in (20, 90, 120, 200):
        plan = PrivateKernelClassifier(1.0, 1e-6).decide(Sizes(rows, 0, 500, COLUMNS), none)
        found.append("BOOST" in plan.claims)
        assert plan.cost.delta(1.0) <= 1e-6
        several = PrivateKernelClassifier(1.0, 1e-6, classes=(0, 1, 2))
        assert "KERNEL" in several.decide(Sizes(rows, 0, 500, COLUMNS), none).claims
    assert found == [True, True, False, False]


def test_few_rows_without_ranges_and_from_anywhere() -> None:
    wide, labels = few_rows(1_500)
    model = PrivateKernelClassifier(0.1, 1e-6).fit(wide, labels, wide)
    assert model.trees_ is not None
    beyond = np.full((1, 40), math.inf)
    assert model.predict(beyond).shape == (1,)


def test_without_noise_many_directions_are_measured_in_a_step() -> None:
    wide = COINS.uniform(-1, 1, (3_000, 12))
    labels = (wide @ np.arange(12) > 0).astype(int)
    for given in ((), (wide[:500],)):
        model = PrivateKernelClassifier(math.inf, 1e-6, columns=[(-1, 1)] * 12, n_waves=0)
        assert model.fit(wide, labels, *given).score(wide, labels) > 0.93


@pytest.mark.parametrize(
    ("classes", "words"),
    [((0, 1, 2), "8,000 is the most"), ((0, 1), "more than the 4,096 cuts")],  # trees, for few rows
)
def test_what_would_take_all_memory_is_refused_before_the_payment(
    classes: tuple[int, ...], words: str
) -> None:
    budget = Budget(1.0, 1e-6)
    names = [str(name) for name in range(8_100)]
    rows = np.array([["1"], ["2"]], dtype=object)
    model = PrivateKernelClassifier(columns=[names], classes=classes, budget=budget)
    with pytest.raises(InvalidParameter, match=words):
        model.fit(rows, [0, 1])
    assert budget.remaining == (1.0, 1e-6)


def test_many_classes_have_fewer_waves() -> None:
    none = Rows(np.zeros((0, 5)), np.zeros(0, dtype=np.int64))
    found = []
    for count in (2, 3, 10, 40):
        model = PrivateKernelClassifier(1.0, 1e-6, classes=range(count))
        found.append(model.decide(Sizes(5_000, 0, 500, COLUMNS), none).steps.waves)
    assert found == [100, 100, 58, 11]


def test_a_cell_near_a_frequent_value_is_in_its_level() -> None:
    column = np.concatenate([np.linspace(0.0, 38.0, 1_000), np.full(1_000, 40.2)])
    found = Levels.of(np.concatenate([column, np.linspace(42.0, 99.0, 1_000)]))
    assert found.code(np.array([40.0])) == found.code(np.array([40.2]))
    assert found.code(np.array([38.0])) < found.code(np.array([40.0]))


def test_without_public_rows_more_rows_do_not_make_it_worse() -> None:
    """Made-up rows once had a frequent value a little beside, and cells fell into another level."""
    generator = np.random.default_rng(5)
    for usual in (40.0, 41.0, 45.0):
        hours = np.where(generator.random(30_000) < 0.5, usual, generator.integers(1, 99, 30_000))
        made = MadeUp(Columns([(1, 99)], None, 1))
        reference = made.release(hours[:, None], len(hours), 50.0, 50.0, SeededSource(1))
        found = Levels.of(reference[:, 0], 0.0)
        assert found.ranks[found.code(hours)].mean() == pytest.approx(0.5, abs=0.03)
