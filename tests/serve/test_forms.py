"""Oracles of each form of rows, and with ids of people, behind the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import cumae
from cumae.serve.models import House
from cumae.serve.protocol.forms import CELLS, FRAME
from cumae.serve.settings import ModelSettings
from tests.oracles import SHARED, everlasting
from tests.serve.served import InThread

RECORDS: list[dict[str, Any]] = [
    {"job": "nurse", "age": 60},
    {"age": 20, "job": "baker"},
    {"age": None, "job": "baker"},
    {"age": "old", "job": "baker"},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    folder = tmp_path_factory.mktemp("forms")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 90, 800), "job": rng.choice(["nurse", "baker"], 800)}
    )
    labels = np.where(frame["age"] > 40, "yes", "no")
    given = {**SHARED, "shard_size": 40, "classes": ("no", "yes")}
    declared = {"age": (18, 90), "job": ["nurse", "baker"]}
    tree = DecisionTreeClassifier(max_depth=2)
    cells = cumae.EverlastingPredictor(tree, columns=declared, **given)
    cells.fit(frame, labels).save_to(folder / "cells.db")
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["job"]), remainder="passthrough"
    )
    frames = cumae.EverlastingPredictor(make_pipeline(encoder, tree), **given)
    frames.fit(frame, labels).save_to(folder / "frames.db")
    everlasting(user_ids=True).save_to(folder / "people.db")
    with InThread(*(folder / name for name in ("cells.db", "frames.db", "people.db"))) as running:
        yield running


@pytest.mark.parametrize(("model", "kind"), [("cells", CELLS), ("frames", FRAME)])
def test_names_and_texts_reach_the_oracle(server: InThread, model: str, kind: str) -> None:
    served = server.house.models[model]
    assert served.form.kind == kind
    path = f"/models/{model}/invocations"
    typed = {"Content_Type": "application/json"}
    got = server.ask("POST", path, {"dataframe_records": RECORDS}, **typed)
    assert got.json == {"predictions": ["yes", "no", -1, -1]}
    told = server.ask("GET", f"/v2/models/{model}").json
    assert [one["datatype"] for one in told["inputs"]] == ["FP64", "BYTES"]
    columns = [
        {"name": "job", "shape": [2, 1], "datatype": "BYTES", "data": ["nurse", "baker"]},
        {"name": "age", "shape": [2], "datatype": "INT32", "data": [60, 20]},
    ]
    given = {"inputs": columns, "id": "a"}
    for _ in range(2):
        got = server.ask("POST", f"/v2/models/{model}/infer", given)
        assert got.json["outputs"][0]["data"] == ["yes", "no"]
    assert served.model.answered_ == 6
    columns[0]["datatype"], columns[0]["data"] = "FP64", [1, 2]
    assert server.ask("POST", f"/v2/models/{model}/infer", {"inputs": columns}).status == 200
    columns[1]["datatype"], columns[1]["data"] = "BYTES", ["60", "20"]
    assert server.ask("POST", f"/v2/models/{model}/infer", {"inputs": columns}).status == 400


def test_people_are_named_where_the_oracle_asks_for_it(server: InThread) -> None:
    path, rows = "/v1/models/people:predict", [[0.9], [0.1]]
    assert server.ask("POST", path, {"instances": rows}).status == 400
    for ids in (["a"], ["a", None], ["a", 1.5], "ab", ["a", ""], ["a", 2**80]):
        assert server.ask("POST", path, {"instances": rows, "user_ids": ids}).status == 400
    assert server.house.models["people"].model.answered_ == 0
    got = server.ask("POST", path, {"instances": rows, "user_ids": ["a", 7]})
    assert got.json == {"predictions": [1, 0]}
    inputs = [
        {"name": "x", "shape": [2, 1], "datatype": "FP64", "data": [0.9, 0.1]},
        {"name": "user_ids", "shape": [2], "datatype": "BYTES", "data": ["b", "c"]},
    ]
    got = server.ask("POST", "/v2/models/people/infer", {"inputs": inputs})
    assert got.json["outputs"][0]["data"] == [1, 0]
    given = {"instances": rows, "user_ids": ["a", "b"]}
    assert server.ask("POST", "/v1/models/cells:predict", given).status == 400


def test_published_models_of_all_kinds_are_served(tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((2_000, 2))
    y = (x[:, 0] > 0.5).astype(int)
    given: dict[str, Any] = {"columns": [(0, 1)] * 2}
    cumae.PrivateBooster(30.0, **given).fit(x, y).save(tmp_path / "booster.json")
    kernel = cumae.PrivateKernelClassifier(30.0, 1e-6, **given).fit(x, y)
    kernel.save(tmp_path / "kernel.json")
    kernel.save_to(tmp_path / "stored.db")
    cumae.PrivateClassifier(30.0, 1e-6, **given).fit(x, y).save(tmp_path / "chosen.json")
    names = ["booster.json", "kernel.json", "stored.db", "chosen.json"]
    with InThread(*(tmp_path / name for name in names)) as running:
        for name in names:
            path = f"/v1/models/{name.partition('.')[0]}:predict"
            got = running.ask("POST", path, {"instances": [[0.9, 0.5], [0.1, 0.5]]})
            assert got.json == {"predictions": [1, 0]}, name
            many = {"instances": [[0.9, 0.5]] * 300}  # in a thread
            assert running.ask("POST", path, many).json == {"predictions": [1] * 300}
            got = running.ask("POST", path, {"instances": [[0.9, None]]})
            assert got.status == 400, name
            assert (
                running.ask("POST", path, {"instances": [[1, 2]], "user_ids": ["a"]}).status == 400
            )
        facts = running.ask("GET", "/models").json["models"]
        assert [one["name"] for one in facts] == [name.partition(".")[0] for name in names]


def test_an_account_answers_nothing_and_is_refused(tmp_path: Path) -> None:
    cumae.Budget(1.0).save(tmp_path / "account.json")
    with pytest.raises(cumae.InvalidParameter, match="answers nothing"):
        House((ModelSettings(str(tmp_path / "account.json"), "account"),))
