"""Existing clients, unchanged, each in an environment of its own, get the answers.

``make test`` makes the environments once. One that is missing is made here, and one that cannot be
made is a failure.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cumae
from cumae.serve.keys import KeyFile, new_key
from tests.oracles import everlasting
from tests.serve.served import InThread
from tools import environments, make_clients

HERE = Path(__file__).with_name("clients")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("clients")
    everlasting().save_to(made / "oracle.db")
    x = np.random.default_rng(0).random((2_000, 1))
    y = (x[:, 0] > 0.5).astype(int)
    frame = pd.DataFrame({"age": x[:, 0], "job": np.where(y, "nurse", "baker")})
    columns = {"age": (0, 1), "job": ["nurse", "baker"]}
    booster = cumae.PrivateBooster(50.0, columns=columns, classes=("no", "yes"))
    booster.fit(frame, np.where(y, "yes", "no")).save(made / "model.json")
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[tuple[InThread, str]]:
    """Return a server, and a key for it."""
    key, text = new_key("ward", ("ask",))
    KeyFile(folder / "access.json").add(key)
    paths = [folder / "oracle.db", folder / "model.json"]
    with InThread(*paths, access=str(folder / "access.json")) as running:
        yield running, text


def asked(client: str, port: int, key: str) -> Any:
    """Run a client's script; return what it found."""
    home = make_clients.HOME
    assert environments.made(HERE / f"{client}.txt", home / client), "see what pip said"
    run = [str(home / client / "bin" / "python"), str(HERE / f"ask_{client}.py")]
    found = subprocess.run(
        [*run, f"http://127.0.0.1:{port}", key], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr[-3_000:] + found.stdout[-1_000:]
    return json.loads(found.stdout.splitlines()[-1])


def test_tritonclient(server: tuple[InThread, str]) -> None:
    found = asked("tritonclient", server[0].port, server[1])
    assert (found["live"], found["ready"], found["server"]) == (True, True, "cumae")
    assert found["model"] == [True, True, False]
    assert found["metadata"] == [{"name": "rows", "datatype": "FP64", "shape": [-1, 1]}]
    assert found["index"] == ["oracle", "model"]
    for binary in (True, False):
        assert found[f"oracle {binary}"] == [[0, 1, -1]] * 3
        assert found[f"model {binary}"] == ["yes", "no"]
    assert [status for status, _ in found["refusals"]] == ["400", "401", "404", "404"]
    assert found["refusals"][0][1] == "a row has 1 columns here"


def test_kserve(server: tuple[InThread, str]) -> None:
    running, key = server
    before = running.house.models["oracle"].model.answered_
    found = asked("kserve", running.port, key)
    assert (found["live"], found["ready"], found["model"]) == (True, True, True)
    assert found["answers"] == [["k", [0, 1, 0]]] * 2
    assert (found["live 1"], found["model 1"]) == (True, True)
    assert found["answers 1"] == {"predictions": [0, 1, 0]}
    assert "400" in found["refusal"]
    # Its JSON and its bytes had one id, and were answered once.
    assert running.house.models["oracle"].model.answered_ == before + 6


def test_mlserver_infer(server: tuple[InThread, str]) -> None:
    found = asked("mlserver", server[0].port, server[1])
    assert found == {"oracle": [0, 1], "model": ["yes", "no"]}


def test_mlflow(folder: Path) -> None:
    with InThread(folder / "model.json") as running:
        found = asked("mlflow", running.port, "")
    assert found["version"] == cumae.__version__
    assert found["frame"] == ["yes", "no"]
    assert found["list"] == found["array"] == ["yes"]
    assert "400" in found["refusal"]
