"""The counter: the one place that every answer of a predictor passes.

It has the queue of calls, the lock, the process that the predictor belongs to, the coins and the
journal. It cuts a call at the end of a phase, and handles one part at a time: it raises the
counters of the state first, asks the predictor what it would answer, records that as an event,
and applies the event to the state. When all parts are done it commits, and only then answers leave.

    call -> queue -> lock and turn -> for each part: reserve, answers, record, apply
         -> the lock is free -> commit, together with others that wait -> answers leave
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.errors import BudgetExhausted, CumaeError, InvalidData, LiveState, warn
from cumae.live import CALLS, Within, lock_of
from cumae.mechanisms import Coins
from cumae.predictors.answering.calls import MOST_JOINED, PLAIN, Asked, Call, Given, Step
from cumae.predictors.answering.events import Event
from cumae.predictors.answering.journal import Journal
from cumae.predictors.answering.queue import CallQueue, QueuedCall

Result = TypeVar("Result")


class Desk(Protocol):
    """What a predictor says to its counter. None of it changes the state, or any other object.

    ``reserved`` is what ``State.reserve`` returned: the counters before the queries at hand.
    ``joins_calls`` says whether calls of several threads may be one batch.
    """

    joins_calls: ClassVar[bool]

    def _read(self, call: Call) -> Asked:
        """Return the queries of a call; refuse what can be refused."""

    def _read_calls(self, calls: list[Call]) -> tuple[list[int | Exception], Asked]:
        """Return the queries of several calls as one; for each call their number, or its error."""

    def _check(self, asked: Asked, state: Any) -> None:
        """Refuse queries that cannot be answered whole, before anything is spent.

        It is asked of calls for which there is no room, or that are special in some way.
        """

    def _room(self, state: Any) -> int:
        """Return how many queries can be answered before something else is due."""

    def _joint_room(self, state: Any) -> int:
        """Return how many queries of several calls can be one batch, where calls are joined."""

    def _answers(self, part: Asked, state: Any, reserved: Any, coins: Coins) -> Given:
        """Return what the predictor would answer; draw with the coins."""

    def _no_answers(self, asked: Asked) -> Integers:
        """Return the answers to no queries."""

    def _shown_to(self, call: Call, answers: Integers) -> NDArray[Any]:
        """Return answers in the form in which they leave: places of classes become classes."""

    def _due(self, state: Any, coins: Coins, *, wanted: bool) -> Step | None:
        """Return the step to the next phase that is due now; ``wanted`` if somebody waits."""

    def _ended(self, answered: int, asked: int) -> BudgetExhausted:
        """Return why the rest of a call gets no answer."""


@claim("STORE", "EVER", "QUERY", "BBL", "UNV")
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

    @claim("STORE")
    def answer(self, desk: Desk, call: Call) -> NDArray[Any]:
        """Return the answers to a call, when they are recorded."""
        # First of all: a forked process has a broken queue.
        outside = self.within.check()
        try:  # as Within.run does
            CALLS.objects = (*outside, self.within.id)
            queued = QueuedCall(call)
            self._queue.join(queued, functools.partial(self._lead, desk))
            found = desk._shown_to(call, queued.result())
            for told in queued.warnings:
                warn(told)
            return found
        finally:
            CALLS.objects = outside

    @claim("STORE")
    def _lead(self, desk: Desk, calls: list[QueuedCall]) -> None:
        """Answer the first calls, and mark them as done when nothing of that can be lost."""
        taken = [calls[0]]  # whatever happens, the first call is answered or refused here
        try:
            self.journal.commit(self._answer_first(desk, calls, taken))
            for call in taken:
                call.committed = True
        except BaseException as error:
            for call in taken:
                call.refuse(error, alone=len(calls) == 1)
            with suppress(Exception):  # nothing that was answered must wait to be committed
                self.journal.end_turn()
            if not isinstance(error, Exception):
                raise
        finally:
            for call in taken:
                call.done = True

    def _answer_first(self, desk: Desk, calls: list[QueuedCall], taken: list[QueuedCall]) -> int:
        """Answer the first calls, as many as are one batch; return their ticket.

        Calls that are known or refused are taken, too, on the way to the first one that does not
        fit.
        """
        ticket = 0
        group: list[QueuedCall] = []
        with self._lock, self.journal.inside:
            if getattr(desk, "_counter_", None) is not self:
                raise _fitted_again()
            self.journal.begin_turn()
            for call in calls:
                try:
                    found = None if call.call.request_id is None else self.journal.known(call)
                except Exception as error:  # noqa: BLE001 - whoever asked raises it
                    call.refuse(error, alone=len(calls) == 1)
                else:
                    if found is not None:
                        call.answers, ticket = found[0], max(ticket, found[1])
                    elif group and not self._fits(desk, call, group):
                        break
                    else:
                        group.append(call)
                if call is not calls[0]:
                    taken.append(call)
            if group:
                last = self._recorded(functools.partial(self._answer_group, desk, group))
                ticket = max(ticket, last)
        return ticket

    def _fits(self, desk: Desk, call: QueuedCall, group: list[QueuedCall]) -> bool:
        """Tell whether a call can join others, by counts, ids and kinds of tables."""
        if not desk.joins_calls:
            return False
        if call.id_bytes and any(one.id_bytes == call.id_bytes for one in group):
            return False  # a retry, which must see the first one's answers
        room = min(MOST_JOINED, desk._joint_room(self.state))
        return sum(one.call.size for one in group) + call.call.size <= room

    def _answer_group(self, desk: Desk, calls: list[QueuedCall]) -> None:
        """Answer calls as one batch, or one call alone."""
        if len(calls) == 1:
            first = calls[0]
            first.answers = self.ask(desk, desk._read(first.call), first.warnings)
        else:
            self._answer_together(desk, calls)
        named = [call for call in calls if call.id_bytes and call.error is None]
        if named:
            self.journal.remember(named)

    @claim("EVER")
    def _answer_together(self, desk: Desk, calls: list[QueuedCall]) -> None:
        """Answer the queries of several calls as one batch.

        Each call is read by itself. One that cannot be read gets its error in the place of
        answers, before anything is drawn.
        """
        read, asked = desk._read_calls([call.call for call in calls])
        if len(asked.rows) > desk._joint_room(self.state):
            raise InvalidData("X changed while it was read; ask again.")
        answers = self.ask(desk, asked, [])
        start = 0
        for call, one in zip(calls, read, strict=True):
            if isinstance(one, Exception):
                call.refuse(one, alone=False)
            else:  # a copy: nobody gets an array that holds the answers of others
                call.answers = answers[start : start + one].copy()
                start += one

    # Parts of a call

    @claim("EVER", "QUERY", "BBL", "UNV")
    def ask(self, desk: Desk, asked: Asked, warnings: list[str]) -> Integers:
        """Answer queries, part by part; whoever asks is within ``recorded`` and holds the lock."""
        state, count = self.state, len(asked.rows)
        room = desk._room(state)
        if count > room or asked[2:] != PLAIN:  # somebody is named, or counts are asked for
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
    def _answer_part(self, desk: Desk, part: Asked, count: int) -> Given:
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

        If the call is broken off, by whatever, its events so far are committed, and what was
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
