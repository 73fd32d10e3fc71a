"""The tables of the benchmarks have the shapes that they say."""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import KBinsDiscretizer, PolynomialFeatures

from cumae import Columns
from tests.tables import KEPT_ASIDE, MADE_UP, REAL, TUNING, load

if TYPE_CHECKING:
    from numpy.typing import NDArray

COUNT, HALF = 20_000, 10_000
LINEAR = ["linear", "poll"]
CURVED = ["additive", "thresholds", "curves", "tariff", "tails", "wealth", "noise"]
WIDE = ["noise", "categories", "depots", "hospital"]  # these overfit a little
TOGETHER = ["pairs", "triples", "checkerboard", "switches", "parity", "diamonds", "sensors"]


@cache
def table(name: str) -> Any:
    return load(name, COUNT, seed=5)


@cache
def encoded(name: str) -> Any:
    given = table(name)
    columns = Columns.of(given.rows, given.declared | given.guesses)
    return columns, columns.encode(given.rows)


def binned(name: str, bins: int) -> Any:
    """Columns of 0 and 1 for equal shares of each column: what an additive model sees."""
    _, values = encoded(name)
    few = np.array([len(np.unique(column)) <= 2 for column in values.T])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        codes = KBinsDiscretizer(bins, quantile_method="averaged_inverted_cdf")
        parts = [sparse.csr_matrix(values[:, few]), codes.fit_transform(values[:, ~few])]
    return sparse.hstack(parts).tocsr()


def reached(name: str, features: Any) -> float:
    """Expected accuracy of a regression on half of the rows, on the other half."""
    given = table(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=0.5, max_iter=300).fit(features[:HALF], given.labels[:HALF])
    found = model.predict(features[HALF:])
    return float(given.chances[HALF:][np.arange(HALF), found].mean())


def straight(name: str) -> NDArray[np.float64]:
    _, values = encoded(name)
    return np.asarray((values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9))


def best(name: str) -> float:
    return float(table(name).take(np.arange(HALF, COUNT)).bayes)


def test_the_tables_are_split_once() -> None:
    assert not set(TUNING) & set(KEPT_ASIDE)
    assert {*TUNING, *KEPT_ASIDE} == {*REAL, *MADE_UP}
    for part in (TUNING, KEPT_ASIDE):
        assert len(set(part) & set(REAL)) >= 2
        assert len(set(part) & set(MADE_UP)) >= 10


@pytest.mark.parametrize("name", MADE_UP)
def test_the_true_rule_reaches_what_is_called_best(name: str) -> None:
    given = table(name)
    right = given.chances.argmax(axis=1) == given.labels
    assert abs(right.mean() - given.bayes) < 4 * 0.5 / np.sqrt(COUNT)
    shares = np.bincount(given.labels, minlength=len(given.classes)) / COUNT
    assert shares == pytest.approx(given.chances.mean(axis=0), abs=4 * 0.5 / np.sqrt(COUNT))
    assert given.bayes > shares.max() + (0.1 if shares.max() < 0.9 else 0)


@pytest.mark.parametrize("name", MADE_UP)
def test_rows_are_those_of_the_seed_and_fit_what_is_declared(name: str) -> None:
    given, other = load(name, 500, seed=1), load(name, 500, seed=2)
    assert given.rows.equals(load(name, 500, seed=1).rows)
    assert not given.rows.equals(other.rows)
    assert given.shape
    columns, values = encoded(name)
    for bounds, column in zip(columns.bounds, values.T, strict=True):
        assert bounds is not None  # the guesses close what is open
        assert np.mean((bounds[0] <= column) & (column <= bounds[1])) > 0.999


@pytest.mark.parametrize("name", dict.fromkeys([*LINEAR, *CURVED, *WIDE]))
def test_additive_tables_are_learnt_by_an_additive_model(name: str) -> None:
    gap = best(name) - reached(name, binned(name, 16))
    assert gap < (0.045 if name in WIDE else 0.025)


@pytest.mark.parametrize("name", LINEAR)
def test_linear_tables_are_learnt_by_lines(name: str) -> None:
    assert best(name) - reached(name, straight(name)) < 0.006


@pytest.mark.parametrize("name", CURVED)
def test_curved_tables_are_not_learnt_by_lines(name: str) -> None:
    assert best(name) - reached(name, straight(name)) > 0.03


@pytest.mark.parametrize("name", TOGETHER)
def test_what_columns_say_together_is_not_learnt_by_an_additive_model(name: str) -> None:
    assert best(name) - reached(name, binned(name, 16)) > 0.03


@pytest.mark.parametrize("name", ["triples", "parity"])
def test_what_three_columns_say_is_not_learnt_from_pairs(name: str) -> None:
    given = binned(name, 3).toarray()
    pairs = PolynomialFeatures(2, interaction_only=True, include_bias=False).fit_transform(given)
    assert best(name) - reached(name, pairs) > 0.1


@pytest.mark.parametrize("name", ["rare", "fraud"])
def test_rare_classes_are_rare(name: str) -> None:
    assert table(name).chances[:, 1].mean() == pytest.approx(0.03, abs=0.003)


def test_most_columns_of_the_table_of_noise_say_nothing() -> None:
    given = table("noise")
    chance = given.chances[:, 1]
    told = []
    for column in given.rows.to_numpy().T:
        parts = np.array_split(chance[np.argsort(column)], 10)
        told.append(np.var([part.mean() for part in parts]) / np.var(chance))
    assert sum(share > 0.02 for share in told) == 5
    assert sum(share < 40 / COUNT for share in told) == 55


def test_all_that_tables_may_hold_occurs_in_both_parts() -> None:
    for part in (TUNING, KEPT_ASIDE):
        tables = [table(name) for name in part if name in MADE_UP]
        kinds = {given.rows.dtypes[name].kind for given in tables for name in given.rows}
        assert {"f", "i", "b", "M"} <= kinds
        assert any(given.rows.isna().any().any() for given in tables)
        assert any(given.guesses for given in tables)
        assert max(len(Columns.of(given.rows, given.declared)) for given in tables) > 300


@pytest.mark.parametrize("name", [name for name in REAL if name != "cardio"])
def test_real_tables_fit_what_is_declared(name: str) -> None:
    given = load(name)
    assert set(np.unique(given.labels)) == set(given.classes)
    assert given.bayes is None
    for column, declared in given.declared.items():
        known = given.rows[column].dropna()
        if isinstance(declared, list):
            assert set(known.unique()) <= set(declared)
        else:
            assert known.between(*declared[:2]).mean() > 0.999
        assert len(known) == len(given.rows) or None in declared


def test_cardio_is_not_in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUMAE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="CUMAE_DATA"):
        load("cardio")
