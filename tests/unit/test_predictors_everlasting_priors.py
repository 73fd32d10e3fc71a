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

from cumae import EverlastingPredictor, InvalidParameter
from cumae.concepts import Stumps
from cumae.learners import PrivateBooster, PrivateLogisticRegression, SemiPrivateLearner
from cumae.predictors.everlasting import phases
from tests.everlasting import X, Y, oracle

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(1)


@pytest.mark.claim("PRIOR")
def test_the_prior_has_rows_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    numbered = np.arange(2000.0).reshape(-1, 1)
    labels = (numbered[:, 0] > 800).astype(int)
    seen: dict[str, set[float]] = {}
    fit, init = PrivateBooster.fit, phases.PhaseTraining.__init__

    def spied_fit(self: Any, table: Any, y: Any, *others: Any) -> Any:
        seen["prior"] = set(table.ravel().tolist())
        assert (self.epsilon, self.delta) == (3.0, 1e-6)
        return fit(self, table, y, *others)

    def spied_init(self: Any, school: Any, number: int, recipe: Any) -> None:
        rows = recipe.rows.take(np.arange(recipe.rows.n_rows))
        seen.setdefault("shards", set(rows.ravel().tolist()))
        init(self, school, number, recipe)

    monkeypatch.setattr(PrivateBooster, "fit", spied_fit)
    monkeypatch.setattr(phases.PhaseTraining, "__init__", spied_init)
    one = EverlastingPredictor(
        DecisionTreeClassifier(max_depth=2), 3.0, 1e-6, columns=[(0, 2000)], prior_share=0.25
    ).fit(numbered, labels)
    assert len(seen["prior"]) == 500
    assert len(seen["shards"]) == 1400  # a twentieth chose the trust
    assert one._state_.phase.left == 1400
    assert one._state_.phase.majority.max_queries == 1500
    assert not seen["prior"] & seen["shards"]
    assert isinstance(one.prior_, PrivateBooster)
    assert {"PRIOR", "PAR"} <= set(one.guarantee_.claims)
    assert one.guarantee_.within(3.0, 1e-6)


@pytest.mark.claim("PRIOR")
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
def test_the_promise_of_the_prior_is_part_of_the_whole() -> None:
    table, columns = RNG.random((800, 1)), [(0, 1)]
    labels = (table[:, 0] > 0.5).astype(int)
    tree = DecisionTreeClassifier(max_depth=1)
    narrow = SemiPrivateLearner(Stumps(), label_privacy=True)
    with pytest.raises(InvalidParameter, match="give one that protects whole rows"):
        EverlastingPredictor(tree, 3.0, prior=narrow, columns=columns).fit(table, labels)
    booster = EverlastingPredictor(tree, 3.0, columns=columns).fit(table, labels)
    assert "BOOST" in booster.guarantee_.claims or "KERNEL" in booster.guarantee_.claims


@pytest.mark.claim("PRIOR")
def test_made_up_rows_are_no_reason_to_warn_of_few() -> None:
    table = RNG.random((2400, 16))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        EverlastingPredictor(epsilon=0.05, columns=[(0, 1)] * 16).fit(table, table[:, 0] > 0.5)
    assert not any("columns of numbers are few" in str(warning.message) for warning in heard)
