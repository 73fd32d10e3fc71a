"""Effects of columns and pairs: they take apart what the model says, and need nothing else."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from scipy.special import expit
from sklearn.exceptions import NotFittedError

from cumae import PrivateKernelClassifier, PrivateLogisticRegression
from cumae.data import Columns
from cumae.errors import InvalidParameter, MissingPackage
from cumae.learners import Learner
from cumae.learners.kernel.features import KernelFeatures
from cumae.learners.kernel.linear import Covariance
from cumae.learners.kernel.model import KernelModel
from cumae.learners.kernel.posterior import Posterior
from cumae.learners.kernel.shown.effects import (
    GRID,
    MOST_PAIRS,
    OTHERS,
    Effect,
    constant_of,
    contents_of,
    effects_of,
)
from cumae.learners.kernel.shown.pictures import draw
from cumae.randomness import SeededSource

JOBS = ["nurse", "poet", "judge"]
SINCE = dt.date(2020, 1, 1)
MIXED = {
    "age": (0, 9, 1, "missing"),
    "job": [*JOBS, None],
    "sex": ["f", "m"],
    "seen": (SINCE, dt.date(2020, 1, 9)),
    "smoker": bool,
}


@pytest.fixture(autouse=True)
def _no_windows() -> Iterator[None]:
    mpl.use("Agg")
    yield
    plt.close("all")


def mixed(count: int, coins: np.random.Generator) -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "age": coins.binomial(9, 0.4, count).astype(float),
            "job": coins.choice(np.array([*JOBS, None]), count, p=[0.5, 0.2, 0.2, 0.1]),
            "sex": coins.choice(["f", "m"], count),
            "seen": pd.Timestamp(SINCE) + pd.to_timedelta(coins.integers(0, 9, count), unit="D"),
            "smoker": coins.random(count) < 0.3,
        }
    )
    frame.loc[coins.random(count) < 0.1, "age"] = np.nan
    return frame


def made_up_model(
    columns: Columns, reference: Any, waves: int = 30, scores: int = 1
) -> KernelModel:
    """Return a model that nobody has fitted, with coefficients that depend on each other."""
    coins = np.random.default_rng(1)
    table = columns.encode(reference)
    features = KernelFeatures.of(table, columns, SeededSource(3), curves=4, waves=waves)
    size = len(features)
    return KernelModel(
        features,
        coins.normal(0, 1, (size, scores)),
        np.full(size, 0.5),
        coins.normal(0, 0.5 / np.sqrt(size), (scores, size, 5)),
        np.tile([1.0, 1.0, 1.0, 1.0, -1.0], (scores, 1)),
    )


def by_columns(effects: list[Effect]) -> dict[tuple[str, ...], Effect]:
    return {effect.columns: effect for effect in effects}


# What they are


@pytest.mark.parametrize("scores", [1, 3])
def test_effects_are_means_of_scores_over_all_other_columns(scores: int) -> None:
    """All combinations of cells, each with its share, as if columns were independent."""
    names = ["age", "job", "sex"]
    frame = mixed(400, np.random.default_rng(0))[names]
    columns = Columns.of(frame, {name: MIXED[name] for name in names})
    model = made_up_model(columns, frame, scores=scores)
    found = by_columns(effects_of(model, columns))
    held = contents_of(model.features, columns)
    cells = list(itertools.product(*(one.values for one in held)))
    table = pd.DataFrame(cells, columns=names)
    rows = model.features.rows(model.features.codes(columns.encode(table)))
    sizes = [len(one.values) for one in held]
    rows = rows.reshape(*sizes, -1)
    shares = [one.shares for one in held]

    def check(parts: Any, effect: Effect) -> None:
        flat = parts.reshape(-1, rows.shape[-1])
        odds, spread = flat @ model.weights, np.sqrt(model.variance(flat))
        # Features are rounded to 1/127, which moves them by a hundredth or so.
        assert odds.reshape(effect.log_odds.shape) == pytest.approx(effect.log_odds, abs=0.02)
        assert spread.reshape(effect.spread.shape) == pytest.approx(effect.spread, abs=0.01)
        assert effect.spread.max() > 0.05

    everywhere = np.einsum("abcf,a,b,c->f", rows, *shares)
    middle, unsure = constant_of(model, columns)
    assert everywhere @ model.weights == pytest.approx(middle, abs=0.02)
    assert np.sqrt(model.variance(everywhere[None]))[0] == pytest.approx(unsure, abs=0.01)
    alone = [
        np.einsum("abcf,b,c->af", rows, shares[1], shares[2]) - everywhere,
        np.einsum("abcf,a,c->bf", rows, shares[0], shares[2]) - everywhere,
        np.einsum("abcf,a,b->cf", rows, shares[0], shares[1]) - everywhere,
    ]
    for name, parts, share in zip(names, alone, shares, strict=True):
        effect = found[(name,)]
        check(parts, effect)
        squares = (effect.log_odds.reshape(len(share), -1) ** 2).mean(axis=1)
        assert effect.strength == pytest.approx(np.sqrt(share @ squares))
    together = np.einsum("abcf,c->abf", rows, shares[2]) - everywhere
    check(together - alone[0][:, None] - alone[1][None], found["age", "job"])
    assert found["age", "job"].log_odds.shape[:2] == (sizes[0], sizes[1])
    assert len(found) == 6


def test_values_are_those_of_the_table() -> None:
    frame = mixed(300, np.random.default_rng(0))
    columns = Columns.of(frame, MIXED)
    model = made_up_model(columns, frame)
    found = by_columns(effects_of(model, columns))
    ages = sorted(frame["age"].dropna().unique())
    assert found[("age",)].values[0][:-1] == pytest.approx(ages)
    assert found[("age",)].values[0][-1] is None
    assert found[("job",)].values == ((*JOBS, None),)
    assert found[("sex",)].values == (("f", "m"),)
    assert found[("smoker",)].values == ((False, True),)
    days = pd.date_range(SINCE, periods=9).to_pydatetime()
    assert found[("seen",)].values == (tuple(days),)
    held = {one.column.name: one for one in contents_of(model.features, columns)}
    for name, one in held.items():
        assert one.shares.sum() == pytest.approx(1)
        for value, share in zip(one.shown, one.shares, strict=True):
            near = round(value) if name == "age" and value is not None else value
            rows = frame[name].isna() if near is None else frame[name] == near
            assert share == pytest.approx(rows.mean(), abs=1e-6)


def test_they_are_fixed_and_the_strongest_come_first() -> None:
    frame = mixed(300, np.random.default_rng(0))
    columns = Columns.of(frame, MIXED)
    effects = effects_of(made_up_model(columns, frame), columns)
    assert [e.strength for e in effects] == sorted((e.strength for e in effects), reverse=True)
    assert len(repr(effects)) < 2_000
    with pytest.raises(ValueError, match="read-only"):
        effects[0].log_odds[0] = 0.0
    with pytest.raises(AttributeError):
        effects[0].strength = 1.0  # type: ignore[misc]


def test_wide_tables_and_many_categories_stay_small() -> None:
    coins = np.random.default_rng(0)
    wide = coins.normal(size=(400, 300))
    columns = Columns([(-5, 5)] * 300, None, 300)
    effects = effects_of(made_up_model(columns, wide, waves=100), columns)
    singles = [effect for effect in effects if len(effect.columns) == 1]
    assert (len(singles), len(effects)) == (300, 300 + MOST_PAIRS)
    assert max(effect.log_odds.size for effect in effects) <= GRID**2

    many = [str(number) for number in range(2_000)]
    rows = np.column_stack([coins.choice(many, 400).astype(object), coins.random(400)])
    columns = Columns([many, (0, 1)], None, 2)
    found = by_columns(effects_of(made_up_model(columns, rows), columns))
    assert found[("0",)].log_odds.shape == (2_000,)
    pair = found["0", "1"]
    assert pair.log_odds.shape == (GRID, GRID)
    assert pair.values[0][-1] == OTHERS


# What they say of fitted models

UNIT = {"a": (-1, 1), "b": (-1, 1), "job": JOBS}


class Additive:
    """A table of independent columns whose curves are known, made of a line and six cosines."""

    def __init__(self, seed: int) -> None:
        self.coins = np.random.default_rng(seed)
        self.weights = self.coins.normal(0, 1, (2, 7))
        self.jobs = self.coins.normal(0, 1, 3)

    def rows(self, count: int) -> tuple[pd.DataFrame, Any]:
        numbers, job = self.coins.uniform(-1, 1, (count, 2)), self.coins.integers(0, 3, count)
        frame = pd.DataFrame(numbers, columns=["a", "b"])
        odds = sum(self.adds(name, frame[name].to_numpy()) for name in "ab") + self.jobs[job]
        frame["job"] = np.array(JOBS)[job]
        return frame, (self.coins.random(count) < expit(odds)).astype(int)

    def adds(self, name: str, values: Any) -> Any:
        """Return what values really add, up to a constant."""
        if name == "job":
            return self.jobs
        x, orders = np.array(values)[:, None], np.arange(1, 7)
        line, *cosines = self.weights["ab".index(name)]
        return line * x[:, 0] + np.cos(np.pi * orders * (x + 1) / 2) @ (cosines / orders)

    def off(self, model: Any) -> dict[str, tuple[Any, Any]]:
        """Return how far the effects of columns are off, and how far they say they may be."""
        found = {}
        effects = by_columns(model.effects_)
        for held in contents_of(model.published().features, model.columns_):
            effect = effects[(held.column.name,)]
            true = self.adds(held.column.name, effect.values[0])
            found[held.column.name] = effect.log_odds - true + held.shares @ true, effect.spread
        return found


def test_effects_are_the_true_curves() -> None:
    table = Additive(0)
    rows, public = table.rows(20_000), table.rows(2_000)[0]
    for model in (
        PrivateLogisticRegression(20.0, 1e-6, UNIT, 6),
        PrivateKernelClassifier(20.0, 1e-6, columns=UNIT),
    ):
        for off, _ in table.off(model.fit(*rows, public)).values():
            assert np.sqrt((off**2).mean()) < 0.1  # curves go up to 2
        singles = {effect.columns for effect in model.effects_[:3]}
        assert singles == {("a",), ("b",), ("job",)}


def test_bands_hold_the_truth() -> None:
    """Two standard deviations hold about 95 % of what is true, on the average over tables.

    Values of one curve go together: between fits, the share that a band holds has a standard
    deviation of .1 to .2, so that the mean over 36 curves is off by .03 at most, usually. The
    model guesses the size of curves from three columns only, so that .9 would be no surprise.
    """
    inside, widths = [], []
    for seed in range(12):
        table = Additive(seed)
        rows, public = table.rows(6_000), table.rows(2_000)[0]
        model = PrivateLogisticRegression(1.0, 1e-6, UNIT, 6).fit(*rows, public)
        for off, spread in table.off(model).values():
            inside.append(np.mean(np.abs(off) <= 2 * spread))
            widths.append(spread.mean())
    assert 0.87 < np.mean(inside) < 0.99
    assert np.mean(widths) < 0.3  # bands that say something


def checkerboard() -> tuple[Any, Any, Any]:
    coins = np.random.default_rng(5)
    X = coins.uniform(-1, 1, (12_000, 4))
    return X, ((X[:, 1] > 0) != (X[:, 2] > 0)).astype(int), coins.uniform(-1, 1, (800, 4))


def test_a_stored_model_is_as_sure_as_the_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where views of the matter are farther apart than each of them is unsure."""
    seen = []
    learn = Posterior.learn

    def watched(self: Posterior, release: Any) -> None:
        learn(self, release)
        seen.append(self)

    monkeypatch.setattr(Posterior, "learn", watched)
    table = Additive(3)
    model = PrivateKernelClassifier(1.0, 1e-6, n_waves=10, columns=UNIT)
    model.fit(*table.rows(3_000), table.rows(500)[0])
    posterior = seen[-1]
    size = len(posterior.mean)
    stored = model.published().variance(np.eye(size))[:, 0]
    assert stored == pytest.approx(np.diag(posterior.covariance), rel=0.02, abs=1e-4)

    apart = np.zeros(size)
    apart[1] = 3.0
    posterior.spread = Covariance.mixture(
        np.array([0.5, 0.5]), [posterior.spread] * 2, [apart, -apart]
    )
    again = KernelModel.of(model.published().features, posterior)
    assert again.variance(np.eye(size))[1, 0] == pytest.approx(stored[1] + 9, rel=0.01)


@pytest.fixture(scope="module")
def interacting() -> PrivateKernelClassifier:
    return PrivateKernelClassifier(1.0, 1e-6, columns=[(-1, 1)] * 4).fit(*checkerboard())


def test_the_pair_that_matters_is_found(interacting: PrivateKernelClassifier) -> None:
    effects = interacting.effects_
    assert effects[0].columns == ("1", "2")
    assert effects[0].strength > 3 * effects[1].strength
    low, high = (np.array(values) < 0 for values in effects[0].values)
    same = low[:, None] == high[None, :]
    assert effects[0].log_odds[same].mean() < -0.5
    assert effects[0].log_odds[~same].mean() > 0.5


def test_a_stored_model_has_the_same_effects(interacting: PrivateKernelClassifier) -> None:
    again = Learner.from_dict(json.loads(json.dumps(interacting.to_dict())))
    assert isinstance(again, PrivateKernelClassifier)
    assert str(again) == str(interacting)
    for one, other in zip(again.effects_, interacting.effects_, strict=True):
        assert (one.columns, one.values) == (other.columns, other.values)
        assert np.array_equal(one.log_odds, other.log_odds)
        assert np.array_equal(one.spread, other.spread)


def test_a_new_fit_leaves_no_old_effects() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (3_000, 2))
    model = PrivateLogisticRegression(10.0, 1e-6, [(-1, 1)] * 2)
    with pytest.raises(NotFittedError):
        _ = model.effects_
    assert not hasattr(model, "effects_")
    assert model.fit(X, X[:, 0] > 0).effects_[0].columns == ("0",)
    assert model.fit(X, X[:, 1] > 0).effects_[0].columns == ("1",)
    assert "effects_" not in vars(model)


# Text and pictures


@pytest.fixture(scope="module")
def fitted() -> PrivateKernelClassifier:
    frame = mixed(1_500, np.random.default_rng(2))
    model = PrivateKernelClassifier(
        20.0, 1e-6, n_waves=20, columns=MIXED, classes=("no", "maybe", "yes")
    )
    labels = np.where(frame["age"] > 4, "yes", np.where(frame["sex"] == "f", "maybe", "no"))
    return model.fit(frame, labels, mixed(200, np.random.default_rng(3)))


def test_text_of_several_classes(fitted: PrivateKernelClassifier) -> None:
    lines = str(fitted).splitlines()
    assert lines[0].startswith("scores: no ")
    assert lines[1].startswith(("  age: no ", "  sex: no "))
    assert "; yes " in lines[1]
    assert len(lines) == 1 + 5 + 10


def test_text_of_pairs(interacting: PrivateKernelClassifier) -> None:
    lines = str(interacting).splitlines()
    assert lines[0].startswith("log odds of 1: ")
    assert lines[1].startswith("  column 1 and column 2: -")


def panels(figure: Any) -> list[Any]:
    return [axes for axes in figure.axes if axes.get_visible() and axes.get_label() != "<colorbar>"]


def test_the_strongest_effects_are_drawn(
    fitted: PrivateKernelClassifier, interacting: PrivateKernelClassifier
) -> None:
    """The figure has a title and one label, each effect a title, and pairs name both axes."""
    for model, singles, pairs in ((fitted, 5, 3), (interacting, 4, 3)):
        figure = model.plot()
        figure.canvas.draw()
        drawn = panels(figure)
        assert len(drawn) == singles + pairs
        assert len([axes for axes in figure.axes if axes.get_label() == "<colorbar>"]) == pairs
        assert figure.get_suptitle().startswith("What columns add to the ")
        assert figure.get_supylabel().startswith("added to the ")
        assert all(axes.get_title() for axes in drawn)
        assert [bool(axes.get_xlabel()) for axes in drawn] == [False] * singles + [True] * pairs
        assert [bool(axes.get_ylabel()) for axes in drawn] == [False] * singles + [True] * pairs


def test_several_classes_share_one_legend(fitted: PrivateKernelClassifier) -> None:
    figure = fitted.plot()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [str(c) for c in fitted.classes_]
    assert all(axes.get_legend() is None for axes in panels(figure))


def test_cells_of_a_heat_map_are_hatched_where_their_band_holds_zero(
    interacting: PrivateKernelClassifier,
) -> None:
    pair = by_columns(interacting.effects_)[("1", "2")]
    unsure = np.abs(pair.log_odds) <= 2 * pair.spread
    assert unsure.any()
    assert not unsure.all()
    (axes,) = panels(interacting.plot([(1, 2)]))
    hatched = [patch for patch in axes.patches if patch.get_hatch()]
    assert len(hatched) == unsure.sum()
    bar = axes.figure.axes[-1]
    band = 2 * float(np.median(pair.spread))
    ends = sorted(float(np.ravel(line.get_ydata())[0]) for line in bar.lines)
    assert ends == pytest.approx([-band, band])


def test_ticks_are_round_and_missing_cells_have_a_place_of_their_own() -> None:
    numbers = tuple(np.geomspace(1_234.5, 187_654.3, 20).tolist())
    coins = np.random.default_rng(0)
    effect = Effect(
        ("income", "job"),
        ((*numbers, None), ("nurse", "poet")),
        coins.normal(size=(21, 2)),
        np.full((21, 2), 0.1),
        1.0,
    )
    (axes,) = panels(draw([effect], np.array([0, 1])))
    texts = [text.get_text() for text in axes.get_xticklabels()]
    assert texts[-1] == "missing"
    assert all(text.endswith("0,000") for text in texts[:-1])
    places = axes.get_xticks().tolist()
    assert places == sorted(places)
    assert places[-1] > numbers[-1]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["nurse", "poet"]
    single = Effect(("income",), (numbers,), coins.normal(size=20), np.full(20, 0.1), 1.0)
    _, own = plt.subplots()
    draw([single], np.array([0, 1]), own)
    assert {tick % 10_000 for tick in own.get_xticks()} == {0.0}
    assert own.get_title() == "income"
    assert own.get_ylabel() == "added to the log odds of 1"


def test_bands_are_two_standard_deviations() -> None:
    model = PrivateLogisticRegression(5.0, 1e-6, UNIT, 6).fit(*Additive(0).rows(3_000))
    effect = by_columns(model.effects_)[("a",)]
    _, axes = plt.subplots()
    assert model.plot("a", axes) is axes.figure
    assert axes.lines[0].get_ydata() == pytest.approx(effect.log_odds)
    drawn = np.asarray(axes.collections[0].get_paths()[0].vertices, dtype=float)
    high, low = effect.log_odds + 2 * effect.spread, effect.log_odds - 2 * effect.spread
    assert drawn[:, 1].max() == pytest.approx(high.max())
    assert drawn[:, 1].min() == pytest.approx(low.min())


def test_what_is_drawn_can_be_chosen(interacting: PrivateKernelClassifier) -> None:
    figure = interacting.plot([3, (2, 1)])
    drawn = panels(figure)
    assert [axes.get_title() for axes in drawn] == ["column 3", "column 1 and column 2"]
    assert (drawn[1].get_xlabel(), drawn[1].get_ylabel()) == ("1", "2")
    with pytest.raises(InvalidParameter, match="there is no effect"):
        interacting.plot(["4"])
    with pytest.raises(InvalidParameter, match="1 axes for 2 effects"):
        interacting.plot([1, 2], [drawn[0]])


def test_without_matplotlib_an_error_says_what_to_install(
    interacting: PrivateKernelClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot")
    with pytest.raises(MissingPackage, match=r"pip install 'cumae\[plot\]'"):
        interacting.plot()
    assert interacting.effects_
