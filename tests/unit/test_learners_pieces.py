"""Rows that stay in files: learners of the kernel package read them piece by piece."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from cumae import Budget, OneVsRest, ParquetRows, PrivateKernelClassifier, PrivateLogisticRegression
from cumae.data import containers, parquet
from cumae.engines import here
from cumae.engines import pieces as engine_pieces
from cumae.errors import InvalidData
from cumae.evaluation import evaluate

COINS = np.random.default_rng(3)
DECLARED: dict[str, Any] = {"age": (0, 100), "job": ["nurse", "poet", None], "dose": (0, 1)}


def frame(count: int = 3_000) -> pd.DataFrame:
    age = COINS.integers(0, 101, count)
    job = COINS.choice(np.array(["nurse", "poet", None], dtype=object), count)
    ill = (age > 50) != (job == "poet")
    return pd.DataFrame({"age": age, "job": job, "dose": COINS.random(count), "ill": ill * 1})


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (containers, parquet, here, engine_pieces):
        monkeypatch.setattr(module, "PIECE", 700)


def written(folder: Path, table: pd.DataFrame) -> ParquetRows:
    table.to_parquet(folder / "rows.parquet", row_group_size=1_100)
    return ParquetRows(folder)


@pytest.mark.claim("KERNEL")
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("declared", [DECLARED, {"job": DECLARED["job"]}])
def test_files_and_frames_give_the_same_model(tmp_path: Path, declared: Any) -> None:
    """Also where ranges are found privately, which changes what missing cells become."""
    table = frame()
    if declared is not DECLARED:
        table["age"] = table["age"].where(COINS.random(len(table)) > 0.1).astype("Float64")
        declared = declared | {"age": {"missing": True}}
    source = written(tmp_path, table)
    found = []
    for given in ((source, "ill"), (table.drop(columns="ill"), table["ill"])):
        model = PrivateKernelClassifier(5.0, 1e-6, columns=declared, n_waves=20, random_state=1)
        found.append(model.fit(*given).predict_proba(table.drop(columns="ill")))
    assert np.array_equal(found[0], found[1])


@pytest.mark.usefixtures("small_pieces")
def test_an_error_names_the_row_in_the_whole_table(tmp_path: Path) -> None:
    table = frame()
    table["dose"] = table["dose"].where(table.index != 2_345)
    model = PrivateLogisticRegression(1.0, 1e-6, columns=DECLARED)
    with pytest.raises(InvalidData, match=r"row 2345, column dose"):
        model.fit(written(tmp_path, table), "ill")
    assert not hasattr(model, "guarantee_")


def test_wrappers_load_what_they_need(tmp_path: Path) -> None:
    table = frame(800)
    base = PrivateLogisticRegression(1.0, 1e-6, columns=DECLARED)
    model = OneVsRest(base, [0, 1, 2], 5.0, 1e-6).fit(written(tmp_path, table), "ill")
    assert model.predict(table.drop(columns="ill")).shape == (800,)


@pytest.mark.claim("EVAL")
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("private", [True, False])
def test_files_and_frames_have_the_same_figures(tmp_path: Path, private: bool) -> None:
    """Of a model of this package, and of one of scikit-learn, in subgroups."""
    table = frame()
    source, given = written(tmp_path, table), table.drop(columns="ill")
    own = PrivateLogisticRegression(5.0, 1e-6, columns=DECLARED, random_state=0)
    other = LogisticRegression().fit(table[["age", "dose"]], table["ill"])
    how: Any = {"epsilon": 1.0, "random_state": 2} if private else {"public": True}
    how |= {"groups": table["age"] // 51, "group_names": [0, 1], "trained_on": True}
    for model, names in ((own.fit(given, table["ill"]), list(given)), (other, ["age", "dose"])):
        files = evaluate(model, source.select([*names, "ill"]), "ill", **how)
        assert files.to_dict() == evaluate(model, given[names], table["ill"], **how).to_dict()


@pytest.mark.usefixtures("small_pieces")
def test_files_and_frames_have_the_same_private_score(tmp_path: Path) -> None:
    table = frame()
    source, given = written(tmp_path, table), table.drop(columns="ill")
    account = Budget(10.0, 1e-5)
    model = PrivateLogisticRegression(5.0, 1e-6, columns=DECLARED, budget=account)
    model.fit(given, table["ill"])
    whole = model.private_score(given, table["ill"], 1.0, random_state=3)
    assert model.private_score(source, "ill", 1.0, budget=account, random_state=3) == whole
    assert account.spent[0] == pytest.approx(6.0, abs=1e-3)
    broken = table.assign(dose=table["dose"].where(table.index != 2_345))
    broken.to_parquet(tmp_path / "rows.parquet", row_group_size=1_100)
    with pytest.raises(InvalidData, match=r"row 2345, column dose"):
        model.private_score(ParquetRows(tmp_path), "ill", 1.0, budget=account)
    assert account.spent[0] == pytest.approx(6.0, abs=1e-3)
