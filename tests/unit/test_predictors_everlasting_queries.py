"""Queries of any form and type: each is answered, counted, and seen by no other answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from tests.everlasting import N, Spy, X, Y, oracle

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(1)


@pytest.mark.claim("EVER")
def test_unusable_queries_count_and_keep_their_place() -> None:
    one = oracle().fit(X, Y)
    odd: Any = [[0.95], [np.nan], ["text"], [None], [np.inf], [0.05]]
    assert one.predict(odd).tolist() == [1, -1, -1, -1, -1, 0]
    assert one.answered_ == 6
    assert one._state_.left == N - 6
    kept = one._state_.kept
    assert len(kept.rows) == 6
    assert kept.weights.any(axis=1).tolist() == [True, False, False, False, False, True]
    frame = pd.DataFrame({"size": X[:, 0]})
    framed = oracle(estimator=DecisionTreeClassifier(max_depth=2), prior=False).fit(frame, Y)
    assert framed.predict(pd.DataFrame({"size": [np.nan, 0.95]}))[0] == -1
    assert framed.predict(pd.DataFrame({"size": ["text", 0.95]}))[0] == -1
    assert framed.answered_ == 4
    framed.predict(pd.DataFrame({"size": RNG.random(N)}))
    assert framed.phase_ == 2


def mixed() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "size": X[:, 0],
            "count": (10 * X[:, 0]).astype(int),
            "job": np.where(X[:, 0] > 0.7, "baker", "nurse"),
        }
    )


def piped() -> Any:
    numbers = ("numbers", "passthrough", make_column_selector(dtype_include="number"))
    return make_pipeline(ColumnTransformer([numbers]), DecisionTreeClassifier(max_depth=2))


@pytest.mark.usefixtures("trials_remembered")
@pytest.mark.no_cover  # many models, all alike
@pytest.mark.claim("EVER")
@pytest.mark.parametrize(
    "odd", [{"size": "text"}, {"size": np.nan}, {"count": np.nan}, {"count": None}, {"job": None}]
)
def test_a_query_cannot_change_the_type_of_a_column(
    monkeypatch: pytest.MonkeyPatch, odd: dict[str, Any]
) -> None:
    spy = Spy(monkeypatch)
    usual = mixed()[:50]
    spoilt = usual.astype(dict.fromkeys(odd, object))
    for name, cell in odd.items():
        spoilt.at[3, name] = cell
    later = mixed().sample(N, random_state=1).reset_index(drop=True)
    found = []
    for batch in (usual, spoilt):
        one = oracle(estimator=piped(), prior=False, shard_size=100).fit(mixed(), Y)
        first = one.predict(batch)
        one.predict(later[: N - 50])
        one.predict(later)
        found.append((np.delete(first, 3).tolist(), *spy.take()))
    same = np.arange(N) != 3
    assert found[0][0] == found[1][0]
    assert np.array_equal(found[0][1][:N][same], found[1][1][:N][same])
    assert np.abs(found[0][1][N:] - found[1][1][N:]).max() <= 1


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("classes", [("no", "yes"), (False, True), (0.5, 1.5), (0, 1)])
def test_the_type_of_answers_does_not_depend_on_them(classes: Any) -> None:
    labels = np.array(classes)[Y]
    one = oracle(classes=classes).fit(X, labels)
    usual, spoilt = one.predict([[0.05], [0.95]]), one.predict([[0.05], [np.nan]])
    assert usual.dtype == spoilt.dtype
    assert type(usual[0]) is type(spoilt[0])


@pytest.mark.claim("EVER")
def test_no_form_of_a_query_goes_uncounted() -> None:
    one = oracle().fit(X, Y)
    asked: Any
    for asked in ([[[1, 2]], [0.5]], [[{}], [0.5]], [[0.95], None], [[0.95], [1, 2]]):
        assert -1 in one.predict(asked).tolist()
    assert one.predict(np.array([[1j], [0.5]])).tolist() == [-1, -1]
    assert one.predict(np.ma.masked_array([[0.95], [0.5]], [[False], [True]])).tolist() == [1, -1]
    assert one.predict(np.array([["1e4000"]], dtype=np.longdouble)).tolist() == [-1]
    assert one.answered_ == 13
