"""The counter: the one place that every answer of a predictor passes.

It has the queue of calls, the lock, the process that the predictor belongs to, the coins and the
journal. It cuts a call at the end of a phase, and handles one part at a time: it raises the
counters of the state first, asks the predictor what it would answer, records that as an event,
and applies the event to the state. When all parts are done it commits, and only then answers leave.

    calls -> queue -> lock and turn -> for each part: reserve, answers, record, apply
         -> the lock is free -> commit, together with others that wait -> answers leave
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.errors import BudgetExhausted, CumaeError, InvalidData, LiveState
from cumae.live import CALLS, Within, lock_of
from cumae.mechanisms import Coins
from cumae.predictors.answering.calls import (
    MOST_JOINED,
    PLAIN,
    AnyStep,
    Asked,
    Call,
    ProposedAnswers,
    StepAhead,
    StepFreeze,
)
from cumae.predictors.answering.events import Event
from cumae.predictors.answering.journal import Journal
from cumae.predictors.answering.queue import CallBatch, CallQueue, Party, QueuedCall
from cumae.quiet import is_failure

Result = TypeVar("Result")


class Desk(Protocol):
    """The questions of a counter to its predictor. None of them changes any object.

    ``reserved`` is what ``State.reserve`` returned: the counters before the queries at hand.
    ``joins_calls`` says whether several calls may be one batch.
    """

    joins_calls: ClassVar[bool]

    def _read(self, call: Call) -> Asked:
        """Return the queries of a call; refuse what can be refused."""

    def _in_order(self, call: Call) -> Call:
        """Return the same call with the columns of a data frame in the order of fit."""

    def _check(self, asked: Asked, state: Any) -> None:
        """Refuse queries that cannot be answered whole, before anything is spent.

        It is asked of calls for which there is no room, or that are special in some way.
        """

    def _room(self, state: Any) -> int:
        """Return how many queries can be answered before something else is due.

        Several calls are one batch only if there is room for all of them.
        """

    def _answers(self, part: Asked, state: Any, reserved: Any, coins: Coins) -> ProposedAnswers:
        """Return what the predictor would answer; draw with the coins."""

    def _no_answers(self, asked: Asked) -> Integers:
        """Return the answers to no queries."""

    def _due(self, state: Any, coins: Coins, *, wanted: bool) -> AnyStep | None:
        """Return the step to the next phase that is due now; ``wanted`` if somebody waits."""

    def _ended(self, answered: int, asked: int) -> BudgetExhausted:
        """Return why the rest of a call gets no answer."""


@claim("STORE", "EVER")
class Counter:
    """Counts, records and hands out every answer of a predictor.

    Parameters
    ----------
    owner : object
        The predictor, by which calls within calls are known.
    state : State
        What it must remember.
    journal : Journal, or None
        What records events; None keeps them in memory.
    """

    def __init__(self, owner: Desk, state: Any, journal: Journal | None = None) -> None:
        self.state = state
        self.journal = Journal() if journal is None else journal
        self.coins = Coins(state.fitted.source)
        self.within = Within(owner)
        self._lock = lock_of(owner)  # that of ``fit``, too
        self._queue = CallQueue()
        self._reserves = False  # whether something may be reserved that no event records yet

    # Calls for answers

    @claim("STORE", "QUERY")
    def answer(self, desk: Desk, calls: Sequence[Call]) -> list[QueuedCall]:
        """Return calls when their answers are recorded, or they are refused."""
        # First of all: a forked process has a broken queue.
        outside = self.within.check()
        try:  # as Within.run does
            CALLS.objects = (*outside, self.within.id)
            # One that has a name is compared with an earlier one, by its columns in one order.
            ordered = [one if one.request_id is None else desk._in_order(one) for one in calls]
            party = Party(ordered)
            self._queue.join(party, functools.partial(self._lead, desk))
            for call in party.calls:
                if call.answers is not None and not call.call.as_counts:
                    # Places of classes are stored, and those of this very fit leave.
                    call.answers = self.state.fitted.named(call.answers)
                if call.warnings:
                    call.warn()
            return party.calls
        finally:
            CALLS.objects = outside

    @claim("STORE", "REPLICAS", "QUERY", "BBL", "UNV")
    def _lead(self, desk: Desk, calls: list[QueuedCall], own: int) -> None:
        """Answer the first calls, and mark them as done when nothing of that can be lost.

        They are answered group by group, until those of the thread that leads are answered. Calls
        of others are in the last group only, so that they wait for no other one.

        Parameters
        ----------
        desk : Desk
            The predictor.
        calls : list of QueuedCall
            Calls that wait.
        own : int
            How many of the first ones are those of this thread.
        """
        batch, ticket, place = CallBatch(), 0, 0
        try:
            calls[0].batch = batch  # whatever happens, the first call is answered or refused here
            batch.alone = len(calls) == 1
            with self._lock, self.journal.inside:
                if getattr(desk, "_counter_", None) is not self:
                    raise _fitted_again()
                while place < own:
                    self.journal.begin_turn()
                    group, taken, last = self._taken(desk, calls[place:], own - place, batch)
                    place, ticket = place + taken, max(ticket, last)
                    try:
                        if group:
                            answer = functools.partial(self._answer_group, desk, group)
                            ticket = max(ticket, self._recorded(answer))
                    except Exception as error:  # noqa: BLE001 - those who asked raise it
                        # Of other errors nobody knows whether something waits.
                        self._refuse(group, error, settle=not isinstance(error, CumaeError))
            self.journal.commit(ticket)
            batch.committed = True  # for all of them at once
        except BaseException as error:
            self._refuse([call for call in calls if call.batch is batch], error, settle=True)
            if not isinstance(error, Exception):
                raise
        finally:
            batch.done = True  # first, and no call: nothing can come before it

    def _refuse(self, calls: list[QueuedCall], error: BaseException, *, settle: bool) -> None:
        """Let calls raise an error; commit all that was recorded, if that is asked for."""
        for call in calls:
            call.refuse(error)
        if settle:
            with suppress(Exception):  # nothing that was answered must wait to be committed
                self.journal.end_turn()

    @claim("STORE", "EVER", "BBL")
    def _taken(
        self, desk: Desk, calls: list[QueuedCall], own: int, batch: CallBatch
    ) -> tuple[list[QueuedCall], int, int]:
        """Take the first calls: those that are known or refused, and others that are one batch.

        A call that cannot be read is refused before anything is drawn, and the others are answered.

        Parameters
        ----------
        desk : Desk
            The predictor.
        calls : list of QueuedCall
            Calls that wait.
        own : int
            How many of the first ones are those of this thread; others join a small batch only.
        batch : CallBatch
            What they are taken into.

        Returns
        -------
        list of QueuedCall, int, int
            Calls to be answered as one batch, the number of calls that were taken, and the ticket
            of those that are known.
        """
        group: list[QueuedCall] = []
        ticket, n_rows, names = 0, 0, set[Any]()
        most_own, most = self._joint_room(desk) if len(calls) > 1 else (-1, -1)
        for place, call in enumerate(calls):
            try:
                found = None if call.call.request_id is None else self.journal.known(call)
                if found is None:
                    room = (most_own if place < own else most) - n_rows if group else math.inf
                    if group and call.call.size > room:
                        return group, place, ticket  # it need not be read yet
                    asked = call.asked = call.asked or desk._read(call.call)
                    # Whoever has the name of an earlier one must see what became of that.
                    named = call.id_bytes or asked.query_ids
                    own_names = [call.id_bytes, *(asked.query_ids or ())] if named else []
                    if len(asked.rows) > room or (named and not names.isdisjoint(own_names)):
                        return group, place, ticket
                    if asked[2:] != PLAIN:  # somebody is named, or counts are asked for
                        desk._check(asked, self.state)
            except BaseException as error:
                refused, raised = isinstance(error, CumaeError), isinstance(error, Exception)
                if not is_failure(type(error)) or (batch.alone and not raised):
                    raise
                if not (refused or call.is_own):
                    return group, place, ticket  # its own thread shall see what is wrong
                call.batch = batch
                # What is no Exception would end more than a call.
                call.refuse(error if raised else _unreadable())
                continue
            call.batch = batch
            if found is not None:
                call.answers, ticket = found[0], max(ticket, found[1])
            else:
                group.append(call)
                n_rows += len(asked.rows)
                names.update(filter(None, own_names))  # a call or a query without a name has none
        return group, len(calls), ticket

    def _joint_room(self, desk: Desk) -> tuple[int, int]:
        """Return how many queries may be one batch: of this thread alone, and with others."""
        room = desk._room(self.state) if desk.joins_calls else -1
        return room, min(room, MOST_JOINED)

    @claim("EVER")
    def _answer_group(self, desk: Desk, calls: list[QueuedCall]) -> None:
        """Answer calls as one batch."""
        first, *others = calls
        if not others and first.asked is not None:
            first.answers = self.ask(desk, first.asked, first.warnings)
        else:
            parts = [call.asked for call in calls if call.asked is not None]
            answers, start = self.ask(desk, Asked.joined(parts), []), 0
            for call, part in zip(calls, parts, strict=True):
                stop = start + len(part.rows)
                # A copy: nobody gets an array that holds the answers of others.
                call.answers, start = answers[start:stop].copy(), stop
        # What costs nothing is not kept, also not if others of the group cost something.
        named = [call for call in calls if call.id_bytes and len(call.answers)]
        if named:
            self.journal.remember(named)

    @claim("STORE")
    def compare(self, desk: Desk, calls: Sequence[Call]) -> None:
        """Refuse calls whose names were used for others in this phase; nothing is answered.

        So whoever cuts a request into several calls can refuse all of it before the first one.
        """

        def compared() -> int:
            for call in calls:
                self.journal.compare(desk._in_order(call))
            return 0

        self.within.run(lambda: self._in_turn(compared))

    # Parts of a call

    @claim("EVER", "QUERY", "BBL", "UNV")
    def ask(self, desk: Desk, asked: Asked, warnings: list[str]) -> Integers:
        """Answer queries, part by part; whoever asks is within ``recorded`` and holds the lock.

        Those of one call may go past the end of a phase.
        """
        state, count = self.state, len(asked.rows)
        room = desk._room(state)
        if count > room and asked[2:] == PLAIN:  # else it was checked before
            desk._check(asked, state)
        parts: list[Integers] = []
        start = 0
        while start < count:
            if room <= 0:
                self._go_on(desk, wanted=True)
                room = desk._room(state)
                if room <= 0:
                    raise desk._ended(start, count)
            stop = min(count, start + room)
            part = asked if stop - start == count else asked.part(start, stop)
            found = self._answer_part(desk, part, stop - start)
            parts.append(found.answers)
            start += len(found.answers)
            if found.warning:
                warnings.append(found.warning)
            room -= len(found.answers)
            if room <= 0 or start < stop:  # something is due
                self._go_on(desk, wanted=False)
                room = desk._room(state)
        if not parts:
            self._go_on(desk, wanted=False)
            return desk._no_answers(asked)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    @claim("EVER", "QUERY", "BBL", "UNV", "STORE")
    def _answer_part(self, desk: Desk, part: Asked, count: int) -> ProposedAnswers:
        """Reserve, let the predictor say what it would answer, and take that as an event."""
        self._reserves = True
        before = self.state.reserve(count)  # first of all
        found = desk._answers(part, self.state, before, self.coins)
        self.take(found.event)
        self._reserves = False
        return found

    @claim("EVER", "LATE", "FRESH", "BBL", "UNV")
    def _go_on(self, desk: Desk, *, wanted: bool) -> None:
        """Take the steps towards the next phase that are due: a matter of counts."""
        while (step := desk._due(self.state, self.coins, wanted=wanted)) is not None:
            if isinstance(step, StepAhead):
                self.journal.write_ahead(step.make(), step.left)
                continue
            if isinstance(step, StepFreeze):
                self.journal.freeze()  # first: it begins anew if this is broken off
                step.make()
                continue
            if step.before is not None:
                self.take(step.before)
            if step.slow:
                self.journal.training()
            self.take(step.make())

    @claim("STORE")
    def take(self, event: Event) -> None:
        """Record an event, and apply it to the state.

        If that is broken off, a durable predictor refuses everything, because memory and disk may
        differ. In memory the event is applied to its end, which changes nothing twice.
        """
        try:
            self.journal.record(event)
            event.apply(self.state)
        except BaseException as error:
            self.journal.fail(error)
            if not self.journal.durable:
                event.apply(self.state)
            raise

    @claim("STORE")
    def _recorded(self, make: Callable[[], None]) -> int:
        """Record the events of one call as one change; return its ticket.

        If the call is broken off, for any reason, its events so far are committed, and what was
        reserved in vain is charged.
        """
        try:
            self.journal.begin()
            make()
            return self.journal.end()
        except BaseException as error:
            self._break_off(error)
            raise

    def _break_off(self, error: BaseException) -> None:
        try:
            lost = self.state.lost(self.journal.used) if self._reserves else None
            if lost is not None:
                self.take(lost)
            self._reserves = False
            self.journal.break_off()
        except CumaeError:  # whatever it says, the reason is what broke the call off
            self.journal.fail(error)
        except BaseException as second:  # interrupted once more: memory may know more than the disk
            self.journal.fail(second)
            raise

    # Everything else

    @claim("STORE", "REPLICAS")
    def change(self, desk: Desk, make: Callable[[Any], Event]) -> None:
        """Change the state without an answer, as it is now, and go on to what is due then.

        Parameters
        ----------
        desk : Desk
            The predictor.
        make : callable
            Returns the event, given the state; it refuses what cannot be.
        """

        def made() -> None:
            if getattr(desk, "_counter_", None) is not self:
                raise _fitted_again()
            self.take(make(self.state))
            self._go_on(desk, wanted=False)

        self.within.run(lambda: self._in_turn(lambda: self._recorded(made)))

    def _in_turn(self, make: Callable[[], int]) -> None:
        """Change something while nobody else does, also not a replica; commit its ticket."""
        try:
            with self._lock, self.journal.inside:
                self.journal.begin_turn()
                ticket = make()
            self.journal.commit(ticket)
        except BaseException:
            with suppress(Exception):  # no other replica must wait for ever
                self.journal.end_turn()
            raise

    def alone(self, work: Callable[[], Result]) -> Result:
        """Run something while nobody else is answered, and return its result."""

        def alone() -> Result:
            with self._lock:
                return work()

        return self.within.run(alone)

    @claim("STORE")
    def settled(self) -> Any:
        """Return the state when nothing of it can be lost: then what is published may be seen.

        What was drawn, seen and lost could be drawn again from the same rows.
        """

        def settled() -> Any:
            self.journal.settled()
            return self.state

        return self.alone(settled)

    def rotate(self) -> None:
        """Let the journal take a new key, where there are keys."""

        def rotated() -> int:
            self.journal.rotated()
            return 0  # it is committed already

        self.within.run(lambda: self._in_turn(rotated))

    def close(self) -> None:
        """Let go of what is held outside memory, when answers that are being given are recorded."""
        if self.within.is_here:
            self.alone(self._close_journal)
        else:  # a forked process lets go of nothing
            self.journal.close()

    def _close_journal(self) -> None:
        self.journal.close()  # the one that there is when the lock is held


def _fitted_again() -> LiveState:
    return LiveState(
        "it was fitted again while this call waited. Nothing was answered or spent; ask again."
    )


def _unreadable() -> InvalidData:
    return InvalidData("X holds something that cannot be read; give numbers, texts and dates.")
