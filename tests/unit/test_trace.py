"""The ways of a training row and of a query through the modules are short, and never turn back."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cumae.data import Columns, readings, row_source

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

PATH = Path(__file__).resolve().parents[2] / "tools" / "trace.py"
MOST_ROW, MOST_QUERY = 14, 10


@pytest.fixture(scope="module")
def trace() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cumae_trace", PATH)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("kind", ["one column", "columns and prior"])
def test_the_ways_are_short_and_never_turn_back(trace: Any, kind: str) -> None:
    row, query = trace.ways(kind)
    assert row.again == query.again == []
    assert 5 <= len(row.modules) <= MOST_ROW, str(row)
    assert 5 <= len(query.modules) <= MOST_QUERY, str(query)
    # It sees where the row really goes.
    assert {"cumae.data.rows", "cumae.ensembles.trainer"} <= set(row.modules)
    assert {"cumae.ensembles.ensemble", "cumae.predictors.state"} <= set(query.modules)
    if kind != "one column":
        assert "cumae.learners.kernel.model" in query.modules
        assert "cumae.ensembles.growing.trees" in row.modules


def test_the_way_of_a_row_that_chooses_the_trust(trace: Any) -> None:
    row, _ = trace.ways("columns and prior", trace.TRIED)
    assert row.again == []
    assert "cumae.ensembles.blocks" in row.modules
    assert len(row.modules) <= MOST_ROW


def test_it_tells_hops_and_returns(trace: Any) -> None:
    table = np.array([[0.25, 0.5], [0.125, 0.75]])
    with trace.Tracer([0.125, 0.75], table) as found:
        rows = row_source(table)  # unopened
    assert found.way.modules == []
    with trace.Tracer([0.125, 0.75], table) as found:
        rows.take(np.array([0]))  # another row
    assert found.way.modules == []
    with trace.Tracer([0.125, 0.75], table) as found:
        taken = rows.take(np.array([1]))
        readings.numbers(taken[:, 0])
        Columns(None, None, 2).read(taken.astype(object))
    assert found.way.modules[:3] == ["cumae.data.rows", "cumae.data.readings", "cumae.data.columns"]
    assert "cumae.data.readings" in found.way.again
    assert [line[:1] for line in str(found.way).splitlines()].count("!") == len(found.way.again)


@pytest.mark.parametrize(
    "container",
    [[0.125], ([1, 0.125],), [np.array([2.0, 0.125])], np.array([["a", 0.125]], dtype=object)],
)
def test_it_looks_into_containers(trace: Any, container: Any) -> None:
    tracer = trace.Tracer([0.125], np.zeros((1, 1)))
    assert tracer.holds(container)
    assert not tracer.holds([0.25, "0.125"])


def test_it_prints(trace: Any, capsys: pytest.CaptureFixture[str]) -> None:
    trace.report("one column")
    told = capsys.readouterr().out
    assert "a training row through fit, 6 modules, 0 entered again" in told
    assert "\n                cumae.predictors.queries\n" in told
