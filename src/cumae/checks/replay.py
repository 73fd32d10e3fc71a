"""The law of events: what is stored of a predictor becomes the state that it has in memory.

A predictor is watched while somebody drives it. Each of its events is written down as a store would
write it, with the state after it. Then the events are applied to the state that was stored first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

import numpy as np

from cumae.checks.differences import difference
from cumae.checks.shards import demand
from cumae.codec import from_bytes, to_bytes
from cumae.mechanisms import Spent
from cumae.predictors.answering.calls import AnyStep, Asked, Call
from cumae.predictors.answering.counter import Counter
from cumae.predictors.answering.events import Answered, Entered, Event, Whole
from cumae.predictors.answering.journal import Journal
from cumae.predictors.answering.queue import QueuedCall
from cumae.predictors.estimators import estimator_to_plain
from cumae.predictors.state import State, state_of
from cumae.predictors.stateful import counter_of

FEWEST_EVENTS = 2  # events that can be merged
RESERVED = ("spent", "offline", "memo")  # a stored memo is filled up to what was asked


@dataclass(frozen=True, repr=False)  # a message must not show rows
class Recorded:
    """An event, and what there was around it.

    Parameters
    ----------
    event : Event
        The event itself.
    written : bytes
        What stands for it in a file, before it was applied.
    before, after : bytes
        The state, as it was stored before anything was reserved for the event, and after it.
    """

    event: Event
    written: bytes
    before: bytes
    after: bytes


@dataclass(repr=False)
class History:
    """The state that a predictor began with, and all events since.

    Parameters
    ----------
    kind : str
        Class of the predictor.
    secret : bytes, or None
        The key under which it hides ids.
    estimator : dict
        Those of its models that cannot be written out, as ``restore`` takes them.
    start : bytes
        The state as it was stored first.
    records : list of Recorded
        The events.
    """

    kind: str
    secret: bytes | None
    estimator: dict[str, Any]
    start: bytes
    records: list[Recorded] = field(default_factory=list)

    @classmethod
    def of(cls, state: State) -> History:
        """Begin with a state."""
        models = {"estimator": state.fitted.model, "student": getattr(state, "student", None)}
        given = {name: one for name, one in models.items() if _is_unknown(one)}
        return cls(state.kind, state.secret, given, to_bytes(state.to_facts()))

    def state(self, written: bytes) -> Any:
        """Return a stored state."""
        facts = {**from_bytes(written), "secret": self.secret}
        return settled(state_of(self.kind, facts, self.estimator))

    def event(self, event: Event, written: bytes) -> Event:
        """Return a stored event."""
        if isinstance(event, Whole):
            return replace(event, state=self.state(written))
        return type(event).from_facts(from_bytes(written))


def _is_unknown(model: Any) -> bool:
    """Tell whether an estimator has to be given to whoever opens a state."""
    return model is not None and estimator_to_plain(model)["written"] is None


def settled(state: Any) -> Any:
    """Return a state whose training in the background has ended: while it runs, warnings differ."""
    thread = getattr(getattr(state, "following", None), "_thread", None)
    if thread is not None:
        thread.join()
    return state


# Watching


class BrokenOff(BaseException):
    """Breaks a call off, as Ctrl+C does."""


class _Recording(Journal):
    """Writes each event down before it is applied, as a durable journal does."""

    def __init__(self, history: History, state: Any) -> None:
        super().__init__()
        self.history, self.used = history, state.used
        self.written: list[Any] = []
        self.breaks, self.passes = "", 0  # where a call is broken off, and how often not before

    def record(self, event: Event) -> None:
        self.written.append(to_bytes(event.to_facts()))
        self.used = (event.entry() or {}).get("used", self.used)
        self.pass_by("record")

    def pass_by(self, where: str) -> None:
        """Break the call off if that is to happen here and now."""
        if self.breaks == where:
            self.passes -= 1
            if self.passes < 0:
                self.breaks = ""
                raise BrokenOff


class _WatchedCounter(Counter):
    """A counter that compares the state with what is stored of it, after each event."""

    journal: _Recording

    def __init__(self, owner: Any, state: Any, journal: Any = None) -> None:
        super().__init__(owner, state, journal)
        self.history: History = journal.history
        self.before = self.history.start

    def answer(self, desk: Any, calls: Sequence[Call]) -> list[QueuedCall]:
        watched: Any = _WatchedDesk(desk, self)
        with self._recorded_whole():
            found = super().answer(watched, calls)
            for call in found:
                if isinstance(call.error, AssertionError):
                    raise call.error  # of another law
            return found

    def change(self, desk: Any, make: Callable[[Any], Event]) -> None:
        def made(state: Any) -> Event:
            with self.unchanged("making an event"):
                return make(state)

        watched: Any = _WatchedDesk(desk, self)
        with self._recorded_whole():
            super().change(watched, made)

    @contextmanager
    def _recorded_whole(self) -> Iterator[None]:
        """Demand at the end of a call that the state is what the last event made of it."""
        try:
            yield
        except AssertionError:
            raise  # of another law
        except BaseException:
            self._demand_recorded()
            raise
        self._demand_recorded()

    def _demand_recorded(self) -> None:
        text = "a call ended, and what it changed was not recorded"
        _demand_alike(self.before, to_bytes(self.state.to_facts()), text)

    def take(self, event: Event) -> None:
        before = len(self.journal.written)
        try:
            super().take(event)
        finally:
            if len(self.journal.written) > before:
                self._follow(event, self.journal.written[-1])

    def _follow(self, event: Event, written: Any) -> None:
        """Compare memory with what would be stored now, and with what the event says."""
        state, history = settled(self.state), self.history
        if isinstance(event, Whole):
            _demand_alike(state, event.state, f"{type(event).__name__} left out")
        after = to_bytes(state.to_facts())
        _demand_alike(history.state(after), state, "a stored state has lost")
        history.records.append(Recorded(event, written, self.before, after))
        self.before = after

    @contextmanager
    def unchanged(self, what: str) -> Iterator[None]:
        """Demand that the state does not change meanwhile."""
        text = f"{what} changed the state"
        before = to_bytes(self.state.to_facts())
        try:
            yield
        finally:
            now = to_bytes(self.state.to_facts())
            _demand_alike(from_bytes(before), from_bytes(now), text)

    def demand_reserved(self, count: int) -> None:
        """Demand that counters are raised before anything is drawn, and that nothing else is."""
        before, now = from_bytes(self.before), from_bytes(to_bytes(self.state.to_facts()))
        for name in before:
            raised = name in RESERVED or not difference(before[name], now[name])
            demand(raised, f"reserving answers changed {name}")
        rule, used = self.state.rule, before["spent"][0]
        demand(rule is None or self.state.used == used + count, "answers were not reserved first")
        offline = getattr(self.state, "offline", None)
        demand(offline is None or offline.rows is None, "rows were not used up first")


class _WatchedDesk:
    """A predictor, of which nothing that it says may change the state."""

    def __init__(self, desk: Any, counter: _WatchedCounter) -> None:
        self._desk, self._counter = desk, counter

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._desk, name)
        if not callable(found):
            return found

        def said(*given: Any, **named: Any) -> Any:
            with self._counter.unchanged(name):
                return found(*given, **named)

        return said

    def _answers(self, part: Asked, *given: Any) -> Any:
        self._counter.demand_reserved(len(part.rows))
        return self._drawn(lambda: self._desk._answers(part, *given), "_answers")

    def _due(self, *given: Any, **named: Any) -> AnyStep | None:
        with self._counter.unchanged("_due"):
            step: AnyStep | None = self._desk._due(*given, **named)
        if step is None:
            return None
        make = step.make
        return step._replace(make=lambda: self._drawn(make, "a step"))

    def _drawn(self, make: Callable[[], Any], what: str) -> Any:
        with self._counter.unchanged(what):
            found = make()
        self._counter.journal.pass_by("draw")
        return found


def _demand_alike(one: Any, other: Any, text: str) -> None:
    found = difference(one, other)
    demand(not found, f"{text}: {found}")


def watched(fitted: Any) -> Any:
    """Return a predictor that goes on from a fitted one, and is watched; use that one no more."""
    state = counter_of(fitted).state
    journal = _Recording(History.of(state), state)
    return type(fitted).from_state(state, journal, _WatchedCounter)


def history_of(one: Any) -> History:
    """Return all that a watched predictor recorded."""
    found: History = counter_of(one).history
    return found


def broken_off(one: Any, call: Callable[[], Any], *, where: str = "draw", passes: int = 0) -> None:
    """Break a call of a watched predictor off.

    Parameters
    ----------
    one : StatefulPredictor
        What ``watched`` returned.
    call : callable
        What is broken off.
    where : {"draw", "record"}
        After answers or the labels of a phase were drawn, or while an event is recorded.
    passes : int
        How many such moments of the call pass before.
    """
    journal = counter_of(one).journal
    journal.breaks, journal.passes = where, passes
    try:
        call()
    except BrokenOff:
        return
    finally:
        journal.breaks = ""
    raise AssertionError("nothing was broken off")


# Replaying


def demand_replay(history: History) -> None:
    """After every event, the state is what the stored one becomes by the stored events.

    Applying an event twice changes nothing more. One that costs nothing, and is not recorded,
    changes the number of answers alone. The ledger counts as many answers and releases as the state
    does, and says when a prior is renewed. Events do not change when others come.

    Parameters
    ----------
    history : History
        All that a watched predictor recorded.
    """
    state = history.state(history.start)
    used = state.used
    for record in history.records:
        event = history.event(record.event, record.written)
        name, before = type(event).__name__, from_bytes(to_bytes(state.to_facts()))
        demand(event.entry() == record.event.entry(), f"the ledger reads another {name}")
        for times in ("once", "twice"):
            event.apply(state)
            text = f"after {name}, applied {times}, a replayed state differs"
            _demand_alike(to_bytes(settled(state).to_facts()), record.after, text)
        after = from_bytes(record.after)
        entry = record.event.entry()
        if entry is None:
            known = {**before, "answered": after["answered"]}
            _demand_alike(known, after, f"{name} is not recorded, and changes")
        else:
            used = entry.get("used", used)
        demand(state.used == used, f"after {name}, the ledger and the state count other releases")
        count = record.event.count if isinstance(record.event, Answered | Entered) else 0
        gained = after["answered"] - before["answered"]
        demand(gained == count, f"{name} says that {count} answers were given, not {gained}")
        renewed = isinstance(record.event, Entered) and record.event.renewed
        is_new = bool(difference(before.get("prior"), after.get("prior")))
        demand(is_new == renewed, f"{name} does not say whether a prior is new")
        if not isinstance(event, Whole):  # that is written before anything else happens
            again = to_bytes(record.event.to_facts())
            _demand_alike(again, record.written, f"{name} changed after it was made")


def demand_merged(history: History) -> None:
    """Answers that are merged into one event do what the single ones do.

    Parameters
    ----------
    history : History
        All that a watched predictor recorded.
    """
    for run in _runs(history):
        if len(run) < FEWEST_EVENTS:
            continue
        merged = Answered.merged([record.event for record in run])
        event = history.event(merged, to_bytes(merged.to_facts()))
        state = history.state(run[0].before)
        for times in ("once", "twice"):
            event.apply(state)
            text = f"after merged answers, applied {times}, a replayed state differs"
            _demand_alike(to_bytes(state.to_facts()), run[-1].after, text)
        count = sum(record.event.count for record in run)
        demand((event.entry() or {}).get("count") == count, "merged answers are not counted")


def _runs(history: History) -> Iterator[list[Any]]:
    """Return events that a store may merge: answers that follow each other."""
    run: list[Recorded] = []
    for record in history.records:
        if isinstance(record.event, Answered) and record.event.entry() is not None:
            run.append(record)
        else:
            yield run
            run = []
    yield run


def effects(history: History) -> set[tuple[type[Event], str, str]]:
    """Return where fields of events matter: forgotten, they would change a state or the ledger.

    A field that matters nowhere is superfluous, or ``apply`` forgets it, or nothing that was driven
    needs it.

    Parameters
    ----------
    history : History
        All that a watched predictor recorded.

    Returns
    -------
    set of tuples of type, str and str
        A kind of event, the name of a field, and "state" or "ledger".
    """
    found: set[tuple[type[Event], str, str]] = set()
    for record in history.records:
        kind = type(record.event)
        if issubclass(kind, Whole):
            continue  # the watch compares it with all of a state
        for part in fields(record.event):  # type: ignore[arg-type]  # all events are dataclasses
            without = _without(record.event, part)
            if without is None:
                continue
            if without.entry() != record.event.entry():
                found.add((kind, part.name, "ledger"))
            if (kind, part.name, "state") not in found and _moves(history, record, without):
                found.add((kind, part.name, "state"))
    return found


def _without(event: Any, part: Any) -> Any:
    """Return an event that forgot a field; None if there was nothing in it."""
    own = getattr(event, part.name)
    blank = _blank(own) if part.default is MISSING else part.default
    return replace(event, **{part.name: blank}) if difference(own, blank) else None


def _moves(history: History, record: Recorded, other: Event) -> bool:
    """Tell whether another event makes another state of the one before a recorded event."""
    expected = _applied(history, record.event, record.before)
    try:
        found = _applied(history, other, record.before)
    except Exception:  # noqa: BLE001 - whatever it is, somebody misses a field
        return True
    return bool(difference(expected, found))


def _applied(history: History, event: Event, before: Any) -> Any:
    """Return what is stored of a state after an event."""
    state = history.state(before)
    event.apply(state)
    return to_bytes(settled(state).to_facts())


def _blank(value: Any) -> Any:
    """Return nothing, in the form of a value."""
    if isinstance(value, Spent):
        return Spent()
    if hasattr(value, "iloc") or isinstance(value, np.ndarray):
        return value[:0]
    return type(value)()


def events_rebuild_the_state(fitted: Any, drive: Callable[[Any], Any]) -> History:
    """Stored states and stored events of a predictor become the state that it has.

    Nothing that a predictor says to its counter changes the state; events alone do. Each of the
    laws of this module is kept.

    Parameters
    ----------
    fitted : StatefulPredictor
        What is driven on. It must not be used any more.
    drive : callable
        Uses the predictor that it gets.

    Returns
    -------
    History
        All that was recorded.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae import QueryRelease
    >>> from cumae.checks import events_rebuild_the_state
    >>> from cumae.concepts import Thresholds
    >>> x = np.random.default_rng(0).random((400, 1))
    >>> release = QueryRelease(Thresholds(), epsilon=9.0, max_queries=20).fit(x, x[:, 0] > 0.5)
    >>> found = events_rebuild_the_state(release, lambda one: one.predict(x[:3]))
    >>> [type(record.event).__name__ for record in found.records]
    ['Answered']
    """
    one = watched(fitted)
    drive(one)
    history = history_of(one)
    demand_replay(history)
    demand_merged(history)
    return history
