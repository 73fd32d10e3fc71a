"""The batch law: votes and answers of a query are the same alone, in any batch, next to anything.

Hypothesis chooses the batches, which cross several blocks, and the queries that stand next to those
that are compared: some on which models fail or warn, infinite and huge ones, and some of another
type, container or width.
"""

from __future__ import annotations

import datetime as dt
import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from cumae import EverlastingPredictor, PrivateKernelClassifier
from cumae.checks.predictors import answers_to, fitted
from cumae.checks.queries import in_batches, odd_queries
from cumae.concepts import Thresholds
from cumae.ensembles.blocks import block_rows
from tests.kinds import KINDS
from tests.laws import (
    ALL,
    DISTANCES,
    MARK,
    NAMED,
    ONE,
    PREDICTORS,
    THREE,
    WORDS,
    Fragile,
    Marked,
    oracle,
)
from tests.plants import halve_failing_batches
from tests.trials import remember_trials

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")


@pytest.fixture(scope="module", autouse=True)
def trials_shared() -> Iterator[None]:
    """Every example fits the same predictors again: their trials are made once."""
    with pytest.MonkeyPatch.context() as patch:
        remember_trials(patch)
        yield


LONG = 150  # queries: more than two blocks of a test, and less than a phase
FEW_MODELS: dict[str, Any] = {"shard_size": 60, "epsilon": math.inf}

# What answers, and its rows.
CASES: dict[str, tuple[Any, Any]] = {
    "a stacked concept class": (oracle(Thresholds(), shard_size=12, epsilon=math.inf), ONE),
    "a stacked tree": (oracle(DecisionTreeClassifier(max_depth=3), **FEW_MODELS), THREE),
    "an estimator that raises": (oracle(Marked(), **FEW_MODELS), THREE),
    "an estimator that warns": (oracle(DISTANCES, **FEW_MODELS), THREE),
    "an estimator that rounds": (oracle(Fragile(), **FEW_MODELS), THREE),
    "a pipeline with text": (oracle(WORDS, **FEW_MODELS), NAMED),
    "a prior": (
        oracle(
            DecisionTreeClassifier(max_depth=2),
            prior=PrivateKernelClassifier(n_waves=5),
            prior_share=0.5,
            columns=KINDS,
            growth=2.0,
        ),
        ALL,
    ),
    "GenericBBL": PREDICTORS["bbl"],
    "GenericBBL, rules that raise": PREDICTORS["bbl, marks"],
}
WORDS_ASKED: list[Any] = ["u", "v", "new", "", 7, 7.5, True, None, math.nan, dt.date(2020, 2, 29)]
NUMBERS: list[Any] = [0.5, MARK, math.nan, math.inf, -1.0, -2.0, 0.0, -0.0, 1e300, -1.7e308]


def usual(pair: Any, count: int) -> list[Any]:
    """Return rows of the training table, as lists."""
    table = pair.X.to_numpy(dtype=object) if hasattr(pair.X, "iloc") else np.asarray(pair.X)
    return list(np.resize(table, (count, table.shape[1])).tolist())


def batch_of(pair: Any, rows: list[Any]) -> Any:
    """Return a data frame if the training rows are one, else the list."""
    if not hasattr(pair.X, "iloc"):
        return rows
    cells = {
        name: pd.Series([row[place] for row in rows], dtype=object)
        for place, name in enumerate(pair.X)
    }
    return pd.DataFrame(cells)


def strange(pair: Any) -> st.SearchStrategy[Any]:
    """Return rows to stand next to others: in a frame their cells differ, in a list anything."""
    width = pair.X.shape[1]
    if hasattr(pair.X, "iloc"):
        return st.tuples(st.sampled_from([*NUMBERS, "text", None]), st.sampled_from(WORDS_ASKED))
    cells = st.lists(st.sampled_from(NUMBERS), min_size=width, max_size=width)
    return st.sampled_from(odd_queries(width)) | cells | st.text(max_size=3) | st.floats()


@st.composite
def companies(draw: st.DrawFn, name: str) -> tuple[list[Any], list[Any], list[int], list[int]]:
    """Return usual queries, the same with strange ones among them, other places, and cuts."""
    pair = CASES[name][1]
    count = draw(st.integers(2 * block_rows(3), LONG))
    rows = usual(pair, count)
    places = st.integers(0, count - 1)
    changed = draw(st.dictionaries(places, strange(pair), min_size=1, max_size=12))
    asked = [changed.get(place, row) for place, row in enumerate(rows)]
    kept = [place for place in range(count) if place not in changed]
    # Each batch has a usual row: one whose rows all have another width would be refused.
    cuts = sorted(draw(st.sets(st.sampled_from(kept), max_size=8)) - {0})
    return rows, asked, kept, cuts if kept[0] < min([*cuts, count]) else []


@pytest.mark.claim("EVER", "BBL", "SHARDS", "PRIOR")
@pytest.mark.parametrize("name", CASES)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_answers_ignore_the_company(name: str, data: st.DataObject) -> None:
    predictor, pair = CASES[name]
    rows, asked, kept, cuts = data.draw(companies(name))
    batches = [batch_of(pair, batch) for batch in in_batches(asked, cuts)]
    found = answers_to(predictor, pair, batches)
    wanted = answers_to(predictor, pair, [batch_of(pair, rows)])
    assert [found[place] for place in kept] == [wanted[place] for place in kept]


EVERLASTING = [name for name, (one, _) in CASES.items() if isinstance(one, EverlastingPredictor)]


@functools.cache
def votes_of(name: str) -> Any:
    """Return a function that reads queries and counts the votes for them, under these numbers."""
    one = fitted(*CASES[name])

    def votes(batch: Any, numbers: Any) -> Any:
        table, _ = one._reader_.private(batch)
        counts = one._state_.phase.ensemble.votes(table, numbers)
        prior = one._state_.prior
        return counts if prior is None else np.hstack([counts, prior.shares(table, numbers)])

    return votes


def votes_ignore_the_company(name: str, drawn: tuple[Any, Any, list[int], list[int]]) -> None:
    pair, votes = CASES[name][1], votes_of(name)
    rows, asked, kept, cuts = drawn
    numbers = np.arange(len(rows))
    wanted = votes(batch_of(pair, rows), numbers)
    parts = zip(in_batches(asked, cuts), in_batches(numbers, cuts), strict=True)
    found = np.concatenate([votes(batch_of(pair, batch), places) for batch, places in parts])
    assert np.array_equal(found[kept], wanted[kept])
    alone = votes(batch_of(pair, rows[kept[-1] : kept[-1] + 1]), numbers[kept[-1:]])
    assert np.array_equal(alone[0], wanted[kept[-1]])


@pytest.mark.claim("EVER", "SHARDS", "PRIOR")
@pytest.mark.parametrize("name", EVERLASTING)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_votes_ignore_the_company(name: str, data: st.DataObject) -> None:
    votes_ignore_the_company(name, data.draw(companies(name)))


def test_a_phase_is_longer_than_these_batches() -> None:
    for name, (predictor, pair) in CASES.items():
        assert fitted(predictor, pair)._state_.left > LONG, name


def test_halving_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "an estimator that rounds"
    rows = usual(CASES[name][1], 140)
    asked = [*rows[:3], [1e300] * 3, *rows[4:]]
    drawn = (rows, asked, [place for place in range(140) if place != 3], [9, 100])
    votes_ignore_the_company(name, drawn)
    halve_failing_batches(monkeypatch)
    with pytest.raises(AssertionError):
        votes_ignore_the_company(name, drawn)
