"""The law of events: stored states and stored events become the state in memory, field by field."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cumae import QueryRelease
from cumae.checks.differences import difference
from cumae.checks.replay import (
    BrokenOff,
    History,
    broken_off,
    demand_merged,
    demand_replay,
    effects,
    events_rebuild_the_state,
    watched,
)
from cumae.codec import from_bytes, to_bytes
from cumae.mechanisms import Spent
from cumae.predictors.answering.events import (
    EVENTS,
    Answered,
    Charged,
    Entered,
    Event,
    Remembered,
    Whole,
)
from cumae.predictors.bbl.state import BBLState
from cumae.predictors.everlasting.predictor import EverlastingPredictor
from cumae.predictors.everlasting.state import EverlastingState, PhasePrepared
from cumae.predictors.release.state import ReleaseState, UniversalState
from cumae.predictors.state import State
from cumae.predictors.waiting import FreshRows, KeptRows
from tests.replays import SCENARIOS, X, everlasting, history, over_phases

pytestmark = [
    pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows"),
    pytest.mark.filterwarnings("ignore::cumae.errors.AnswersDrift"),
]

NAMED = {
    f"{kind.__name__} {number}, {part.name}": (kind, part.name)
    for number, kind in sorted(EVENTS.items())
    for part in fields(kind)  # type: ignore[arg-type]  # all events are dataclasses
    if (kind, part.name) != (PhasePrepared, "weights")  # which events of older files alone have
}
ALL = set(NAMED.values())
CALM = [name for name in SCENARIOS if name != "background"]  # no thread fails over a planted fault


def driven(name: str) -> History:
    """Drive one of them anew, under the law."""
    make, drive = SCENARIOS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return events_rebuild_the_state(make(), drive)


def is_noticed(law: Callable[..., Any], *given: Any) -> bool:
    """Tell whether a law is broken, or what was planted lets something fail."""
    try:
        law(*given)
    except Exception:  # noqa: BLE001 - an error on opening is noticed, too
        return True
    return False


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.claim("STORE", "EVER", "BBL", "QUERY", "UNV", "FRESH", "LABELLED", "MEMO", "USER")
def test_stored_events_rebuild_the_state(name: str) -> None:
    assert history(name).records


def test_all_kinds_of_events_come() -> None:
    found = {type(record.event) for name in SCENARIOS for record in history(name).records}
    assert found == {*EVENTS.values(), Whole, Entered} - {Remembered}  # that one has no field
    reasons = {
        record.event.why
        for name in SCENARIOS
        for record in history(name).records
        if isinstance(record.event, Charged)
    }
    assert reasons == {"broken off", "restarted"}


# Planted: this field is forgotten


LEDGER = {"count", "why", "used_before"}  # fields that the ledger alone needs
EFFECTS: dict[str, set[tuple[type[Event], str, str]]] = {}


@pytest.fixture(autouse=True, scope="module")
def _effects() -> None:
    """Look at what matters before anything is planted."""
    EFFECTS.update({name: effects(history(name)) for name in CALM})


def test_every_field_of_every_event_matters() -> None:
    found = set[tuple[type[Event], str, str]]().union(*EFFECTS.values())
    in_the_ledger = {(kind, name) for kind, name, where in found if where == "ledger"}
    in_a_state = {(kind, name) for kind, name, where in found if where == "state"}
    assert in_a_state == {(kind, name) for kind, name in ALL if name not in LEDGER}
    assert in_a_state | in_the_ledger == ALL


def with_events(kind: type[Event]) -> Iterator[History]:
    for name in CALM:
        found = history(name)
        if any(type(record.event) is kind for record in found.records):
            yield found


def rewritten(found: History) -> History:
    """Return a history whose events are written anew, by planted code."""
    records = [
        replace(record, written=to_bytes(record.event.to_facts())) for record in found.records
    ]
    return replace(found, records=records)


def blank(kind: Any, name: str, value: Any) -> Any:
    """Return what a field has that was forgotten."""
    part = next(part for part in fields(kind) if part.name == name)
    if part.default is not MISSING:
        return part.default
    if isinstance(value, Spent):
        return Spent()
    if isinstance(value, np.ndarray | pd.DataFrame):
        return value[:0]
    return type(value)()


@pytest.mark.parametrize("field", NAMED)
@pytest.mark.parametrize("form", ["dropped", "blank"])
def test_writing_that_forgets_a_field_is_noticed(
    field: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, name = NAMED[field]
    write = kind.to_facts

    def forgetful(self: Any) -> dict[str, Any]:
        if form == "dropped":
            return {part: value for part, value in write(self).items() if part != name}
        return write(replace(self, **{name: blank(kind, name, getattr(self, name))}))

    monkeypatch.setattr(kind, "to_facts", forgetful)
    assert any(is_noticed(demand_replay, rewritten(one)) for one in with_events(kind))


@pytest.mark.parametrize("field", NAMED)
def test_reading_that_forgets_a_field_is_noticed(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, name = NAMED[field]
    read = kind.from_facts.__func__  # type: ignore[attr-defined]

    def forgetful(cls: Any, facts: dict[str, Any]) -> Any:
        found = read(cls, facts)
        return replace(found, **{name: blank(kind, name, getattr(found, name))})

    monkeypatch.setattr(kind, "from_facts", classmethod(forgetful))
    assert any(is_noticed(demand_replay, one) for one in with_events(kind))


@pytest.mark.parametrize("field", NAMED)
def test_applying_that_forgets_a_field_is_noticed(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory and disk agree then; but the field moves no state any more, or all fails."""
    kind, name = NAMED[field]
    apply = kind.apply

    def forgetful(self: Any, state: Any) -> None:
        apply(replace(self, **{name: blank(kind, name, getattr(self, name))}), state)

    monkeypatch.setattr(kind, "apply", forgetful)
    for one in CALM:
        if (kind, name, "state") in EFFECTS[one]:
            assert is_noticed(demand_effect, history(one), kind, name)
            return
    assert name in LEDGER


def demand_effect(found: History, kind: type[Event], name: str) -> None:
    assert (kind, name, "state") in effects(found)


@pytest.mark.parametrize("name", [part.name for part in fields(Answered)])
def test_merging_that_forgets_a_field_is_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge = Answered.merged.__func__  # type: ignore[attr-defined]

    def forgetful(cls: Any, events: Any) -> Any:
        found = merge(cls, events)
        return replace(found, **{name: blank(Answered, name, getattr(found, name))})

    def of_the_last(cls: Any, events: Any) -> Any:
        return replace(merge(cls, events), **{name: getattr(events[-1], name)})

    planted = [forgetful] if name in ("answered", "spent") else [forgetful, of_the_last]
    for fault in planted:
        monkeypatch.setattr(Answered, "merged", classmethod(fault))
        assert any(is_noticed(demand_merged, history(one)) for one in CALM)


# Whole states

STATES: dict[type[State], list[str]] = {
    EverlastingState: ["ids", "memo", "fresh", "prior", "late"],
    BBLState: ["bbl", "bbl, fresh", "bbl, in vain", "bbl, between"],
    ReleaseState: ["gaussian", "stability", "offline", "offline, in vain"],
    UniversalState: ["universal", "universal, in vain", "universal, student"],
}


def demand_whole(found: History) -> None:
    """Read each state, write it, and read it again: nothing may be lost."""
    for record in found.records:
        state = found.state(record.after)
        written = to_bytes(state.to_facts())
        assert not difference(written, record.after)
        assert not difference(found.state(written), state)


@pytest.mark.parametrize("kind", STATES, ids=lambda kind: kind.__name__)
def test_a_stored_state_is_read_as_it_was(kind: type[State]) -> None:
    for one in histories(kind):
        demand_whole(one)


def parts_of(kind: type[State]) -> dict[str, list[Any]]:
    """Return the parts of stored states, each with all that it was."""
    found: dict[str, list[Any]] = {}
    for one in histories(kind):
        for written in (one.start, *(record.after for record in one.records)):
            for name, value in from_bytes(written).items():
                known = found.setdefault(name, [])
                if all(difference(value, other) for other in known):
                    known.append(value)
    return found


@pytest.mark.parametrize("kind", STATES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("form", ["dropped", "stuck"])
def test_a_state_that_forgets_a_part_is_noticed(
    kind: type[State], form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted in writing and in reading: a part is left out, or stays as it was at first."""
    write, read = kind.to_facts, kind.from_facts.__func__  # type: ignore[attr-defined]
    for name, values in parts_of(kind).items():
        if form == "stuck" and len(values) == 1:
            continue  # it never changes

        def forget(facts: Any, name: str = name, first: Any = values[0]) -> Any:
            others = {other: value for other, value in facts.items() if other != name}
            return others if form == "dropped" else {**others, name: first}

        planted: dict[str, Any] = {
            "to_facts": lambda self, forget=forget: forget(write(self)),
            "from_facts": classmethod(
                lambda cls, facts, *more, forget=forget: read(cls, forget(facts), *more)
            ),
        }
        for place, fault in planted.items():
            with monkeypatch.context() as patch:
                patch.setattr(kind, place, fault)
                found = (is_noticed(demand_whole, one) for one in histories(kind))
                assert any(found), (name, place)


def histories(kind: type[State]) -> Iterator[History]:
    return map(history, STATES[kind])


def paths_of(facts: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in facts.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from paths_of(value, (*path, name))


def without(facts: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    if len(path) == 1:
        return {name: value for name, value in facts.items() if name != path[0]}
    return {**facts, path[0]: without(facts[path[0]], path[1:])}


@pytest.mark.parametrize("kind", STATES, ids=lambda kind: kind.__name__)
def test_every_fact_of_a_stored_state_is_needed(kind: type[State]) -> None:
    """Whatever is left out, deep inside, cannot be read, or is missing when it is written again."""
    paths: set[tuple[str, ...]] = set()
    needed: set[tuple[str, ...]] = set()
    also = ["neighbours"] * (kind is EverlastingState)  # which take no weights, and are no arrays
    for one in map(history, [*STATES[kind], *also]):
        model = one.state(one.start).fitted.model
        for record in one.records:
            facts = from_bytes(record.after)
            for path in set(paths_of(facts)) - needed:
                rest = to_bytes(without(facts, path))
                for given in (one.estimator, {"estimator": model}):  # of texts, or a fingerprint
                    other = replace(one, estimator=given)
                    if is_noticed(demand_read, other, rest, record.after):
                        needed.add(path)
            paths |= set(paths_of(facts))
    assert paths - needed <= {("phase", "majority", "kind")}  # of which there is one alone


def demand_read(one: History, written: Any, expected: Any) -> None:
    """Read a state, and demand what it is when it is written again."""
    assert not difference(to_bytes(one.state(written).to_facts()), expected)


CHANGED = {  # by the events that bring a whole state
    "everlasting": ["phase", "spent", "following"],
    "prior": ["prior"],
    "bbl": ["phase", "spent", "following"],
    "offline": ["offline", "answered"],
    "universal": ["waiting", "published"],
    "universal, student": ["voting", "published"],
}


@pytest.mark.parametrize(
    ("name", "field"), [(name, field) for name, parts in CHANGED.items() for field in parts]
)
def test_becoming_another_state_without_a_field_is_noticed(
    name: str, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    become = State.become

    def forgetful(self: Any, other: Any) -> None:
        become(self, replace(other, **{field: getattr(self, field)}))

    monkeypatch.setattr(State, "become", forgetful)
    with pytest.raises(AssertionError, match=f"left out: /{field}"):
        driven(name)


@pytest.mark.parametrize(
    ("field", "name", "told"),
    [("count", "offline", "answers were given"), ("renewed", "prior", "whether a prior is new")],
)
def test_a_new_phase_that_forgets_a_field_is_noticed(
    field: str, name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = getattr(Entered(None), field)
    forgotten = property(lambda _: nothing, lambda *_: None)
    monkeypatch.setattr(Entered, field, forgotten, raising=False)
    with pytest.raises(AssertionError, match=told):
        driven(name)


# Planted: something else than an event changes the state, or an event does so twice


def test_an_answer_that_changes_the_state_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = EverlastingPredictor._answers

    def careless(self: Any, part: Any, state: Any, *given: Any) -> Any:
        state.query_places[bytes(16)] = 3
        return answers(self, part, state, *given)

    monkeypatch.setattr(EverlastingPredictor, "_answers", careless)
    with pytest.raises(AssertionError, match="_answers changed the state: /query_ids"):
        driven("everlasting")


@pytest.mark.parametrize("name", ["_read", "_check", "_room", "_due"])
def test_a_question_that_changes_the_state_is_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = getattr(EverlastingPredictor, name)

    def careless(self: Any, *given: Any, **named: Any) -> Any:
        self._state_.answered += 1
        return method(self, *given, **named)

    monkeypatch.setattr(EverlastingPredictor, name, careless)
    with pytest.raises(AssertionError, match=f"{name} changed the state: /answered"):
        driven("everlasting")


def test_a_step_that_changes_the_state_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    entered = EverlastingState.entered

    def careless(self: Any, source: Any) -> Any:
        self.answered += 1
        return entered(self, source)

    monkeypatch.setattr(EverlastingState, "entered", careless)
    with pytest.raises(AssertionError, match="a step changed the state: /answered"):
        driven("everlasting")


def test_a_change_that_is_no_event_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    one = watched(everlasting())

    def careless(state: Any) -> Any:
        state.answered += 1
        return Charged(state.spent, "restarted")

    with pytest.raises(AssertionError, match="making an event changed the state: /answered"):
        one._counter_.change(one, careless)


def test_answers_that_are_not_reserved_first_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(State, "reserve", lambda self, _: self.spent)
    with pytest.raises(AssertionError, match="answers were not reserved first"):
        driven("everlasting")


def test_rows_that_are_not_used_up_first_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReleaseState, "reserve", lambda self, _: self.offline.need_rows())
    with pytest.raises(AssertionError, match="rows were not used up first"):
        driven("offline")


def test_a_reservation_that_changes_more_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    reserve = State.reserve

    def careless(self: Any, count: int) -> Any:
        self.answered += count
        return reserve(self, count)

    monkeypatch.setattr(State, "reserve", careless)
    with pytest.raises(AssertionError, match="reserving answers changed answered"):
        driven("everlasting")


@pytest.mark.parametrize("name", ["everlasting", "gaussian", "offline, in vain", "bbl"])
def test_a_call_that_was_broken_off_and_is_not_charged_is_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(State, "lost", lambda *_: None)
    monkeypatch.setattr(ReleaseState, "lost", lambda *_: None)
    with pytest.raises(AssertionError, match="what it changed was not recorded"):
        driven(name)


def test_events_that_change_later_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: labels are written into the array that an event holds, too."""

    def tell(self: Any, places: Any, weights: Any) -> None:
        starts = np.cumsum([0, *(len(own) for _, own in self.parts)])
        for place, weight in zip(places.tolist(), weights, strict=True):
            if place >= 0:
                part = int(np.searchsorted(starts, place, side="right")) - 1
                self.parts[part][1][place - starts[part]] = weight
            self.labelled_places[place if place >= 0 else ~place] = None

    monkeypatch.setattr(KeptRows, "tell", tell)
    with pytest.raises(AssertionError, match="Answered changed after it was made"):
        driven("ids")


@pytest.mark.parametrize(
    ("kind", "name"), [(KeptRows, "everlasting"), (KeptRows, "universal"), (FreshRows, "fresh")]
)
def test_rows_that_come_twice_are_noticed(
    kind: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = kind.put

    def careless(self: Any, at: int, rows: Any, *weights: Any) -> None:
        del at
        put(self, self.n_rows if kind is KeptRows else self.end, rows, *weights)

    monkeypatch.setattr(kind, "put", careless)
    with pytest.raises(AssertionError, match="applied twice, a replayed state differs: "):
        driven(name)


def test_an_event_that_is_not_recorded_and_changes_more_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Answered, "entry", lambda _: None)
    with pytest.raises(AssertionError, match="Answered is not recorded, and changes: /kept/rows"):
        driven("everlasting")


def test_a_ledger_that_counts_other_releases_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Charged, "entry", lambda self: {"event": self.why, "used": 0})
    with pytest.raises(AssertionError, match="count other releases"):
        driven("everlasting")


def test_a_call_is_broken_off_where_it_should() -> None:
    one = watched(everlasting())
    with pytest.raises(AssertionError, match="nothing was broken off"):
        broken_off(one, lambda: one.predict(X[:1]), passes=1)
    assert one.predict(X[:1]).shape == (1,)
    assert not issubclass(BrokenOff, Exception)  # as nothing that ends a program


# Differences


@pytest.mark.parametrize(
    ("one", "other", "where"),
    [
        (1, 1, ""),
        (1, True, "type"),
        (1, 1.0, "type"),
        (float("nan"), float("nan"), ""),
        (0.0, -0.0, "number"),
        ({"a": 1}, {"a": 2}, "/a"),
        ({"a": 1}, {"b": 1}, "/a"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "/order"),
        ([1, [2]], [1, [3]], "/1/0"),
        ((1, 2), (1,), "/1"),
        ({1, 2}, {2, 1}, ""),
        ({1}, {2}, "value"),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), ""),
        (np.array([1.0]), np.array([1]), "array"),
        (np.zeros(2), np.zeros((2, 1)), "array"),
        (np.array([1, "a"], dtype=object), np.array([1, "a"], dtype=object), ""),
        (np.array([1], dtype=object), np.array([True], dtype=object), "array"),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1]}), ""),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]}), "/names/0"),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1.0]}), "/types/0"),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]}), "/cells/0"),
        (Spent(1), Spent(1), ""),
        (Spent(1), Spent(2), "/asked"),
        (QueryRelease(), QueryRelease(epsilon=2.0), "/epsilon"),
        (b"a", b"b", "value"),
        (None, None, ""),
    ],
)
def test_differences(one: Any, other: Any, where: str) -> None:
    assert difference(one, other) == where


def test_scenarios_share_their_histories() -> None:
    assert history("everlasting") is history("everlasting")
    assert over_phases.__doc__
