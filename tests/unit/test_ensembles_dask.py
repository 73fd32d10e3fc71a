"""Shards and chunks of rows on a real Dask cluster: two worker processes on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, get_worker
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cumae import PrivateKernelClassifier, QueryRelease
from cumae.concepts import Rectangles
from cumae.ensembles import trainer as shards
from cumae.learners.kernel import learner
from cumae.predictors import ParquetRows

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(0)
X = RNG.random((3000, 2))
Y = ((X[:, 0] > 0.3) & (X[:, 1] > 0.2)).astype(int)
QUERIES = RNG.random((500, 2))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Client]:
    with (
        LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
        ) as started,
        Client(started) as client,  # type: ignore[no-untyped-call]
    ):
        yield client


def votes(model: Any, rows: Any, y: Any) -> Any:
    """Fit with given coins, and vote."""
    release = QueryRelease(model, 3.0, 1e-6, 500, n_shards=100, random_state=5).fit(rows, y)
    asked: Any = QUERIES
    if release._reader_.as_frames:
        asked = pd.DataFrame(QUERIES, columns=release.feature_names_in_)
    return release._state_.need_voting().ensemble.votes(asked)


@pytest.mark.parametrize(
    "model",
    [DecisionTreeClassifier(max_depth=4, max_features=1), GaussianNB(), Rectangles()],
    ids=lambda model: type(model).__name__,
)
def test_the_same_shards_give_the_same_votes(cluster: Client, model: Any) -> None:
    here = votes(model, X, Y)
    with joblib.parallel_config("dask"):
        there = votes(model, X, Y)
    assert np.array_equal(here, there)
    assert here.sum(axis=1).tolist() == [100] * 500
    assert len(np.unique(here[:, 1])) > 10


@pytest.mark.claim("KERNEL")
@pytest.mark.parametrize("public", [False, True])
def test_chunks_that_workers_add_up_give_the_same_model(
    cluster: Client, monkeypatch: pytest.MonkeyPatch, public: bool
) -> None:
    monkeypatch.setattr(learner, "CHUNK", 500)

    def chances() -> Any:
        model = PrivateKernelClassifier(columns=[(0, 1)] * 2, n_waves=10, random_state=3)
        return model.fit(X, Y, *([QUERIES] if public else [])).predict_proba(QUERIES)

    here = chances()
    with joblib.parallel_config("dask"):
        there = chances()
    assert np.array_equal(here, there)


def test_both_workers_train(cluster: Client) -> None:
    with joblib.parallel_config("dask"):
        names = joblib.Parallel()(joblib.delayed(lambda _: get_worker().name)(i) for i in range(20))
    assert len(set(names)) == 2


def test_parquet_files_on_the_cluster(cluster: Client, tmp_path: Any) -> None:
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "ill": Y})
    for part in range(3):
        frame[part * 1000 : (part + 1) * 1000].to_parquet(
            tmp_path / f"{part}.parquet", row_group_size=200
        )
    here = votes(DecisionTreeClassifier(max_depth=4), frame[["a", "b"]], Y)
    with joblib.parallel_config("dask"):
        there = votes(DecisionTreeClassifier(max_depth=4), ParquetRows(tmp_path), "ill")
    assert np.array_equal(here, there)


def test_large_blocks_reach_the_workers_without_a_warning(
    cluster: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "TASK_SHARDS", 50)
    wide = np.random.default_rng(1).random((20_000, 60))  # 9.6 MB
    labels = (wide[:, 0] > 0.5).astype(int)
    with joblib.parallel_config("dask"):
        release = QueryRelease(GaussianNB(), 9.0, max_queries=200, n_shards=100)
        release.fit(wide, labels)
    assert np.mean(release.predict(wide[:200]) == labels[:200]) > 0.6
