"""An id stands for one whole request: the same one is free, another one is refused for free."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import cumae
from cumae.concepts import Thresholds
from cumae.serve.asking import PART_ROWS, OracleThread
from cumae.serve.keys import KeyFile, new_key
from tests.oracles import SHARED
from tests.serve.served import Got, InThread

COLUMNS = {"age": (0, 1), "job": ["nurse", "baker"]}
ROWS = np.random.default_rng(4).random((6_000, 1))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    """Return a server with long phases, one with short phases, and one with two columns."""
    folder = tmp_path_factory.mktemp("ids")
    for name, count, growth in (("long", 6_000, 10.0), ("short", 1_500, 1.5)):
        made = cumae.EverlastingPredictor(Thresholds(), **{**SHARED, "growth": growth})
        labels = (ROWS[:count, 0] > 0.3).astype(int)
        made.fit(ROWS[:count], labels).save_to(folder / f"{name}.db")
    table = pd.DataFrame({"age": ROWS[:, 0], "job": np.where(ROWS[:, 0] > 0.5, "nurse", "baker")})
    named = cumae.EverlastingPredictor(
        DecisionTreeClassifier(max_depth=2), **{**SHARED, "shard_size": 100}, columns=COLUMNS
    )
    named.fit(table, (ROWS[:, 0] > 0.5).astype(int)).save_to(folder / "named.db")
    paths = [folder / f"{name}.db" for name in ("long", "short", "named")]
    file = KeyFile(folder / "access.json")
    tokens = {}
    for client in ("ward", "clinic"):
        key, tokens[client] = new_key(client, ("ask",))
        file.add(key)
    with InThread(*paths, access=str(folder / "access.json")) as running:
        running.tokens = tokens  # type: ignore[attr-defined]
        yield running


def infer(server: InThread, rows: Any, model: str, name: str, client: str = "ward") -> Got:
    """Ask with an id."""
    head = {"Authorization": f"Bearer {server.tokens[client]}"}  # type: ignore[attr-defined]
    return server.infer(np.asarray(rows).tolist(), model, id=name, headers=head)


def answered(server: InThread, model: str) -> int:
    return int(server.house.models[model].model.answered_)


def is_refused(got: Got) -> bool:
    return (got.status, got.json.get("code")) == (409, "id_reused")


def with_other_end(rows: Any) -> Any:
    """Return the same rows but for the last one."""
    return np.vstack([rows[:-1], [[0.123]]])


PART = PART_ROWS
OTHERS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "longer than one part": (PART, lambda rows: ROWS[: PART + 1]),
    "shorter, to one part": (2 * PART + 9, lambda rows: rows[:PART]),
    "longer by some rows": (PART + 5, lambda rows: ROWS[: PART + 6]),
    "longer by a part": (2 * PART, lambda rows: ROWS[: 3 * PART]),
    "another last row": (PART + 1, with_other_end),
    "another first row": (PART + 1, lambda rows: with_other_end(rows[::-1])[::-1]),
    "two parts exchanged": (2 * PART, lambda rows: np.roll(rows, PART, axis=0)),
    "longer within a part": (5, lambda rows: ROWS[:6]),
}


@pytest.mark.parametrize("case", OTHERS)
@pytest.mark.claim("SERVE")
def test_another_request_of_the_same_id_is_refused_before_it_costs(
    server: InThread, case: str
) -> None:
    count, change = OTHERS[case]
    first = infer(server, ROWS[:count], "long", case)
    before = answered(server, "long")
    assert is_refused(infer(server, change(ROWS[:count]), "long", case))
    assert answered(server, "long") == before
    assert infer(server, ROWS[:count], "long", case).body == first.body
    assert answered(server, "long") == before


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_request_that_broke_off_goes_on_and_is_bound_to_its_rows(
    server: InThread, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """One part fails before it is asked, as it does when the server is stopped."""
    rows, name, begun = ROWS[: 3 * PART], f"broken {failing}", answered(server, "long")
    calls = iter(range(3))
    found = OracleThread._found

    def fail(self: OracleThread, asked: list[Any]) -> list[Any]:
        if next(calls) == failing:
            return [cumae.StoreFailed("cut off")] * len(asked)
        return found(self, asked)

    with monkeypatch.context() as patch:
        patch.setattr(OracleThread, "_found", fail)
        assert infer(server, rows, "long", name).status == 503
    server.house.models["long"].unwell = False
    assert answered(server, "long") == begun + failing * PART
    if failing:
        for other in (with_other_end(rows), rows[: 2 * PART], rows[:PART]):
            assert is_refused(infer(server, other, "long", name))
        assert answered(server, "long") == begun + failing * PART
    assert infer(server, rows, "long", name).status == 200
    assert answered(server, "long") == begun + 3 * PART


def test_a_part_that_a_later_phase_remembers_refuses_before_anything_is_spent(
    server: InThread,
) -> None:
    """The first part was answered in an earlier phase, whose ids are gone; the last one was not."""
    rows = ROWS[: 3 * PART]
    phase = server.house.models["short"].model.phase_
    assert infer(server, rows, "short", "over the end").status == 200
    model = server.house.models["short"].model
    before, now = answered(server, "short"), model.phase_
    assert now > phase
    assert is_refused(infer(server, with_other_end(rows), "short", "over the end"))
    assert answered(server, "short") == before


def test_ids_belong_to_a_model_and_a_client(server: InThread) -> None:
    rows = ROWS[:3]
    for model in ("long", "short"):
        for client in ("ward", "clinic"):
            before = answered(server, model)
            first = infer(server, rows, model, "mine", client)
            assert infer(server, rows, model, "mine", client).body == first.body
            assert answered(server, model) == before + 3
            assert is_refused(infer(server, rows[:2], model, "mine", client))


def test_columns_in_any_order_and_numbers_in_any_protocol_are_the_same_request(
    server: InThread,
) -> None:
    named = {"Authorization": f"Bearer {server.tokens['ward']}"}  # type: ignore[attr-defined]
    named["Idempotency-Key"] = "named"
    before = answered(server, "named")

    def ask(path: str, body: Any, **more: str) -> Any:
        return server.ask("POST", path, body, **named, **more).json

    path = "/v1/models/named:predict"
    first = ask(path, {"instances": [{"age": 1, "job": "nurse"}, {"age": 0, "job": "baker"}]})
    records = [{"job": "nurse", "age": 1.0}, {"job": "baker", "age": 0.0}]
    assert ask(path, {"instances": records}) == first
    split = {"columns": ["job", "age"], "data": [["nurse", 1], ["baker", 0]]}
    typed = {"Content_Type": "application/json"}
    assert ask("/models/named/invocations", {"dataframe_split": split}, **typed) == first
    csv = b"job,age\nnurse,1\nbaker,0.0\n"
    assert ask("/models/named/invocations", csv, Content_Type="text/csv") == first
    columns = [
        {"name": "job", "shape": [2], "datatype": "BYTES", "data": ["nurse", "baker"]},
        {"name": "age", "shape": [2, 1], "datatype": "INT32", "data": [1, 0]},
    ]
    told = ask("/v2/models/named/infer", {"inputs": columns, "id": "named"})
    assert told["outputs"][0]["data"] == first["predictions"]
    assert answered(server, "named") == before + 2
    other = ask(path, {"instances": [{"age": 1, "job": "nurse"}, {"age": 0, "job": "nurse"}]})
    assert other["code"] == "id_reused"
