"""The ways of a training row and of a query through the modules are short, and never turn back."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cumae.data import Columns, readings, row_source
from cumae.ensembles.ensemble import Ensemble

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "tools" / "trace.py"
BEFORE = ROOT / "benchmarks" / "results" / "trace_before.json"
MOST_ROW, MOST_QUERY = 14, 11
MOST_FRAMES_BEFORE_VOTES = 12
MOST_CALLS = 0.5  # of those that were counted before calls and events were made anew


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
    assert row.again == []
    # The counter asks the predictor twice: to read a query, and what it would answer.
    assert query.again == ["cumae.predictors.everlasting.predictor"]
    assert 5 <= len(row.modules) <= MOST_ROW, str(row)
    assert 5 <= len(query.modules) <= MOST_QUERY, str(query)
    # It sees where the row really goes.
    assert {"cumae.data.rows", "cumae.ensembles.trainer"} <= set(row.modules)
    assert {"cumae.ensembles.ensemble", "cumae.predictors.answering.counter"} <= set(query.modules)
    if kind != "one column":
        assert "cumae.learners.kernel.model" in query.modules
        assert "cumae.ensembles.growing.trees" in row.modules


def test_the_way_of_a_row_that_chooses_the_trust(trace: Any) -> None:
    row, _ = trace.ways("columns and prior", trace.TRIED)
    assert row.again == []
    assert "cumae.predictors.everlasting.prior" in row.modules
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
    assert re.search(r"\n +cumae\.predictors\.queries\n", told)


@pytest.mark.parametrize("kind", ["thresholds", "trees with a prior"])
def test_an_answer_of_a_durable_oracle_takes_few_calls(trace: Any, kind: str) -> None:
    before = json.loads(BEFORE.read_text(encoding="utf-8"))["answers"][kind]
    found = trace.durable_calls(kind)
    assert 2 < found.frames_before_votes <= MOST_FRAMES_BEFORE_VOTES, str(found)
    assert found.frames_before_votes < found.deepest <= before["deepest"], str(found)
    most = MOST_CALLS * before["calls"]
    assert found.calls_before_votes < found.calls <= most, str(found)
    assert 2 < found.modules <= before["modules"], str(found)


def test_it_counts_our_calls_and_no_others(trace: Any) -> None:
    ensemble = Ensemble([], 2)
    with trace.CallCounter() as counter:
        readings.numbers(np.array([0.5]))
    with pytest.raises(ValueError, match="no votes were counted"):
        print(counter.found)
    alone = counter_of(trace, lambda: ensemble.votes(np.zeros((1, 1))))
    assert (alone.frames_before_votes, alone.calls_before_votes) == (0, 0)
    assert alone.modules > 1  # modules of cumae that votes are counted by
    # Functions of tests, of numpy and comprehensions do not count.
    hidden = counter_of(trace, lambda: [ensemble.votes(np.zeros((1, 1))) for _ in np.ones(1)])
    assert hidden == alone
    several = counter_of(
        trace, lambda: (readings.numbers(np.array([0.5])), ensemble.votes(np.zeros((1, 1))))
    )
    assert several.calls_before_votes == several.calls - alone.calls > 0
    assert several.frames_before_votes == 0


def test_it_counts_frames_below_each_other(trace: Any) -> None:
    ensemble = Ensemble([], 2)
    inner = ensemble.votes
    namespace: dict[str, Any] = {"__name__": "cumae.planted", "inner": inner}
    exec("def one(): return inner([[0.0]])\ndef two(): return one()", namespace)  # noqa: S102
    alone, planted = counter_of(trace, lambda: inner([[0.0]])), counter_of(trace, namespace["two"])
    assert (planted.frames_before_votes, planted.calls_before_votes) == (2, 2)
    assert planted.calls == alone.calls + 2
    assert planted.deepest == alone.deepest + 2
    assert planted.modules == alone.modules + 1


def counter_of(trace: Any, work: Any) -> Any:
    with trace.CallCounter() as counter:
        work()
    return counter.found


def test_it_prints_calls_and_writes_them(
    trace: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "durable_calls", lambda kind: trace.AnswerCalls(9, 30, 70, 14, 20))
    trace.report_calls(tmp_path / "calls.json")
    told = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["frames", "before", "votes", "9", "9"] in told
    assert ["modules", "20", "20"] in told
    written = json.loads((tmp_path / "calls.json").read_text(encoding="utf-8"))
    before = json.loads(BEFORE.read_text(encoding="utf-8"))
    assert written.keys() == before.keys()
    assert written["answers"]["thresholds"]["calls"] == 70
