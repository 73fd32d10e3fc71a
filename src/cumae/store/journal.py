"""The journal of a durable oracle: every change is on the disk before anything of it is seen."""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

from cumae.claims import claim
from cumae.data import plain_id
from cumae.errors import CumaeError, InvalidData, InvalidParameter, LiveState
from cumae.predictors.state import NOBODY, Journal, Request, objects
from cumae.privacy import Guarantee
from cumae.privacy.validation import plain_number
from cumae.quiet import HiddenFailures
from cumae.store.bills import bill_of, price
from cumae.store.counting.base import ANSWERED, Counting, Record
from cumae.store.counting.kinds import counting_of
from cumae.store.counting.records import rebuilt, replay
from cumae.store.homes.home import Blob, Home
from cumae.store.homes.needs import durable
from cumae.store.sealed import HiddenIds, Seal, canonical, from_bytes
from cumae.store.writer import CLOSED, SNAPSHOT, Change, Writer


@claim("STORE")
def unbroken(method: Callable[..., None]) -> Callable[..., None]:
    """Refuse everything once a change was broken off: memory may know more than the disk."""

    @functools.wraps(method)
    def change(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            method(self, *args, **kwargs)
        except BaseException as error:
            self.writer.fail(error)
            raise

    return change


@claim("STORE")
class DurableJournal(Journal):
    """Records every change on the disk, as one transaction, before the call returns.

    Changes within ``recorded`` are gathered and committed together with the answer, after the lock
    of the predictor is free; so several that wait share a commit. Everything else is committed at
    once. When the training of a next phase begins, what there is is committed first: a crash in the
    middle of it repeats the same training.

    Parameters
    ----------
    state : State
        What is changed.
    writer : Writer
        What writes.
    hide : HiddenIds
        Turns ids into HMACs.
    reader : Home
        A connection of its own that stored answers are read with.
    lock : file, or None
        What keeps other processes away; it is closed at the end.
    """

    def __init__(
        self, state: Any, writer: Writer, hide: HiddenIds, reader: Home, lock: Any
    ) -> None:
        super().__init__(state)
        self.writer, self._hide, self._reader = writer, hide, reader
        self._counting: Counting = counting_of(state)
        self._used = self._counting.used
        self._change: Change | None = None  # while a call is gathered
        self._unwritten: dict[bytes, tuple[str, Any, int]] = {}
        # Answers of requests that began in an earlier phase: they are never written.
        self._crossed: dict[bytes, tuple[str, Any, int]] = {}
        self._process = os.getpid()
        self._end = weakref.finalize(self, _let_go, self._process, writer, reader, lock)

    # What every call goes through

    def promised(self, guarantee: Guarantee) -> Guarantee:
        return durable(guarantee, shared=self.writer.home.shared)

    def check(self) -> None:
        """Refuse in a forked process, after a failure, and when it is closed."""
        if os.getpid() != self._process:
            raise LiveState(
                "this oracle was opened in another process; go on there, or open it here after it "
                "was closed there, because what was paid once must not be had twice."
            )
        if not self._end.alive:
            raise LiveState(CLOSED)
        self.writer.check()

    def check_copy(self) -> None:
        raise LiveState(
            "a durable oracle gives away no copy of its state: both would spend the same budget. "
            "Use cumae backup for a copy of the file."
        )

    def turn(self) -> AbstractContextManager[None]:
        self.check()
        return self.writer.in_turn()

    @claim("REPLICAS")
    def learn(
        self, seal: Seal, blobs: list[Blob], before: int | None, estimator: Any = None
    ) -> list[tuple[str, int, int, Record]]:
        """Apply to the state what other replicas recorded; return the records.

        Parameters
        ----------
        seal : Seal
            What opens the pieces.
        blobs : list of Blob
            All pieces of the state, or those that follow the one with the number ``before``.
        before : int, or None
            The last piece that is known; None if these are all pieces.
        estimator : object
            As in ``cumae.open``.
        """
        records = []
        if before is None:
            self.state.become(rebuilt(seal, blobs, estimator).state)
            self._counting = counting_of(self.state)
            self._counting.know_ids(self._hide.known_as)
            self._crossed.clear()
        else:
            records = replay(self._counting, seal, blobs, before)
        self._used = self._counting.used
        self._unwritten.clear()
        return records

    @claim("STORE")
    def known(self, request: Request) -> tuple[Any, int] | None:
        if request.id is None:
            return None
        # All that can fail comes before anything is drawn.
        request.id_bytes, request.body_bytes = _id_bytes(request.id), _body_bytes(request.body)
        found = self._stored(self.writer.seal.name_of(request.id_bytes))
        if found is None:
            return None
        if found[0] != self.writer.seal.digest_of(request.body_bytes):
            raise InvalidParameter(
                "request_id was used for another request in this phase; give every request its "
                "own, and repeat one in the same form: as the same list, array or data frame."
            )
        return found[1:]

    @claim("STORE")
    def recorded(
        self, make: Callable[[], list[Any]], requests: Sequence[Request]
    ) -> tuple[list[Any], int]:
        try:
            return self._gathered(make, requests)
        except BaseException as error:
            self._fail_if_gathering(error)
            raise

    def _fail_if_gathering(self, error: BaseException) -> None:
        """Refuse everything if a call was broken off before the writer had its change."""
        if self._change is not None:
            self.writer.fail(error)
            self._change = None

    @claim("STORE")
    def _gathered(
        self, make: Callable[[], list[Any]], requests: Sequence[Request]
    ) -> tuple[list[Any], int]:
        """Make answers, gather what they change, and give it to the writer."""
        self._change, before, seal = Change(), self.writer.last.number, self.writer.seal
        kept: dict[bytes, tuple[str, Any]] = {}
        try:
            answers = make()
            if self._change.events or self.writer.last.number > before:
                # What costs nothing is not stored.
                kept = self._kept_for_retries(requests, answers)
            crossed = self._counting.protects_queries and self.writer.seal is not seal
            if not crossed:
                self._store_for_retries(self._change, kept)
        except BaseException:  # what was recorded so far was spent, and so was what was drawn
            if self._counting.used > self._used:
                self._record_counts("broken off")
            # Whatever the writer says, the reason is what broke it off: a signal handler, perhaps.
            with suppress(CumaeError):
                self.commit(self._hand_over()[1])
            raise
        _, ticket = self._hand_over()
        remembered = self._crossed if crossed else self._unwritten
        for name, own in kept.items():
            remembered[name] = (*own, ticket)
        return answers, ticket

    def _hand_over(self) -> tuple[Change, int]:
        """Give what was gathered to the writer; return it, and its ticket."""
        change = self._change or Change()
        ticket = self._add(change)
        self._change = None  # not before: until then, ``recorded`` knows that it was broken off
        return change, ticket

    def _kept_for_retries(
        self, requests: Sequence[Request], answers: list[Any]
    ) -> dict[bytes, tuple[str, Any]]:
        """Return the answers of requests that have an id, by their names under the current key."""
        seal = self.writer.seal  # ``make`` may have begun a new phase
        return {
            seal.name_of(request.id_bytes): (seal.digest_of(request.body_bytes), own)
            for request, own in zip(requests, answers, strict=True)
            if request.id is not None and not isinstance(own, Exception)
        }

    def _store_for_retries(self, change: Change, kept: dict[bytes, tuple[str, Any]]) -> None:
        """Add answers to a change."""
        change.answers.update(kept)
        if change.answers and not change.events:  # all else is on the disk already
            change.events.append({"event": "rows", "kind": "answers", "count": 0})
            change.records.append((ANSWERED, {"count": 0, "counts": {}, "grown": {}}))

    def commit(self, ticket: int) -> None:
        self.writer.commit(ticket)

    @claim("STORE")
    def settled(self) -> None:
        self.check()
        self.writer.commit(self.writer.asked)

    def _stored(self, name: bytes) -> tuple[str, Any, int] | None:
        """Return the digest of the body, the answer and the ticket of an earlier request.

        The caller holds the lock.
        """
        for known, (_, _, ticket) in list(self._unwritten.items()):  # in the order they came
            if ticket > self.writer.done:
                break
            del self._unwritten[known]
        for remembered in (self._unwritten, self._crossed):
            if name in remembered:
                return remembered[name]
        stored = self._reader.answer(name)
        if stored is None:
            return None
        content = from_bytes(self.writer.seal.open([stored[1]], "answer", name.hex()))
        return content["body"], content["answer"], 0

    def _add(self, change: Change) -> int:
        if not change.events:
            return 0
        change.used, change.spare = self._counting.used, self._counting.spare
        return self.writer.add(change)

    def _record(self, event: dict[str, Any], kind: str, record: Any) -> None:
        """Add to what is gathered; commit it at once if nothing is."""
        if self._change is None:
            self.check()
            self.commit(self._add(Change([event], [(kind, record)])))
        else:
            self._change.events.append(event)
            self._change.records.append((kind, record))

    def _record_whole(self, event: dict[str, Any]) -> None:
        """Record the whole state."""
        arrays = self.state.to_arrays()
        self._counting = counting_of(self.state)
        self._used = self._counting.used
        self._record(event, SNAPSHOT, arrays)

    @claim("STORE")
    def _begin_epoch(self, event: dict[str, Any], *before: dict[str, Any]) -> None:
        """Commit the whole state under a new key now, with what was gathered before."""
        gathered, self._change = self._change, self._change or Change()
        self._change.events.extend(before)
        self._record_whole(event)
        self._change.new_epoch = True
        self._unwritten.clear()
        self._crossed.clear()
        self._commit_gathered()
        self._change = None if gathered is None else self._change

    def _commit_gathered(self) -> None:
        if self._change is not None:
            ticket = self._add(self._change)
            self._change = Change()
            self.commit(ticket)

    def training(self) -> None:
        if self._change is not None:
            self._commit_gathered()

    # The changes

    @claim("STORE")
    @unbroken
    def answered(
        self, count: int, rows: Any = None, weights: Any = None, ids: tuple[Any, ...] = NOBODY
    ) -> None:
        super().answered(count, rows, weights, ids)
        counting = self._counting
        if counting.phase > self.writer.totals.phase:  # all queries at once: the rows are gone
            self._begin_epoch(phase_event(counting, count))
            return
        if counting.mechanism is None or not count:
            return  # what was published costs nothing
        used = counting.used
        debit = count if counting.each_costs else used - self._used
        self._used = used
        event = {"event": "answered", "count": count, "debit": debit, "used": used}
        grown = counting.grown(ids, self._hide)
        record = {"count": count, "counts": counting.counts(), "grown": grown}
        self._record(event, ANSWERED, record)

    @unbroken
    def supplied(self, rows: Any) -> None:
        self.check()
        super().supplied(rows)
        self._rows("supplied", {"rows": rows}, len(rows))

    @unbroken
    def labelled(self, rows: Any, weights: Any, users: Any) -> None:
        self.check()
        super().labelled(rows, weights, users)
        own_rows, own_weights = self.state.labelled[-1]
        facts = {"rows": own_rows, "weights": own_weights}
        if users is not None:
            facts["users"] = objects(map(self._hide, users))
        self._rows("labelled", facts, len(weights))

    @unbroken
    def labelled_requests(self, requests: Any, weights: Any) -> None:
        self.check()
        super().labelled_requests(requests, weights)
        facts = {"requests": objects(requests), "weights": weights}
        self._rows("labels", facts, len(weights))

    def _rows(self, kind: str, facts: Record, count: int) -> None:
        self._record({"event": "rows", "kind": kind, "count": count}, kind, facts)

    @unbroken
    def prepared(self, following: Any, taken: int = 0) -> None:
        super().prepared(following, taken)
        self._record_whole({"event": "prepared", "used": self._counting.used})

    @unbroken
    def entered(self, phase: Any) -> None:
        renewed = getattr(phase, "prior", None) is not None
        super().entered(phase)
        before = [prior_event(self.state)] if renewed else []
        self._begin_epoch(phase_event(counting_of(self.state)), *filter(None, before))

    @claim("STORE")
    @unbroken
    def charged(self, count: int, event: str) -> None:
        """Charge what may have been used, though the file does not know of it, and record that."""
        if count:
            self._counting.charge(count)
        self._record_counts(event)

    def _record_counts(self, event: str) -> None:
        """Record what is used, without an answer."""
        self._used = self._counting.used
        record = {"count": 0, "counts": self._counting.counts(), "grown": {}}
        self._record({"event": event, "used": self._used}, ANSWERED, record)

    @unbroken
    def compacted(self) -> None:
        """Write the whole state in the place of many small pieces."""
        self._record_whole({"event": "compacted", "used": self._counting.used})

    @unbroken
    def rotated(self) -> None:
        """Write everything anew under a new key; the old one is destroyed."""
        event = {**phase_event(self._counting), "event": "rotated"}
        self._begin_epoch(event)

    def close(self) -> None:
        if os.getpid() == self._process:
            self._end()


def _id_bytes(request_id: Any) -> bytes:
    """Return bytes that stand for the id of a request."""
    given = request_id if isinstance(request_id, tuple) else (request_id,)
    parts = list(map(plain_id, given))
    if parts and None not in parts:
        with suppress(ValueError):  # a number of thousands of digits
            return canonical(parts)
    raise InvalidParameter(
        'request_id must be a text, bytes, a number or a tuple of these, such as ("client-7", 12).'
    )


def _body_bytes(body: Any) -> bytes:
    """Return bytes that stand for what is asked."""
    with HiddenFailures():  # it may be anything, and raise anything
        return canonical(body)
    raise InvalidData(
        "a request that has an id is compared with later ones, but this one holds something "
        "that cannot be compared; give numbers, texts and dates, or leave out request_id."
    )


def phase_event(counting: Counting, count: int = 0) -> dict[str, Any]:
    """Return what the ledger says when a phase begins; the writer adds the epoch.

    Parameters
    ----------
    counting : Counting
        Of the state.
    count : int
        Answers that were given with it.
    """
    found = {
        "event": "phase",
        "phase": counting.phase,
        "releases": counting.releases,
        "used": counting.used,
        "cost": counting.cost,
        "count": count,
    }
    if counting.cost is None:
        return {**found, "published": True}
    if counting.steps:
        found["steps"] = counting.steps
    delta = counting.state.fitted.guarantee.delta
    return {**found, "epsilon": repr(price(bill_of(found), delta))}


def prior_event(state: Any) -> dict[str, Any] | None:
    """Return what the ledger says when a prior is published; None if the state has none."""
    prior = getattr(state, "prior", None)
    if prior is None:
        return None
    promise = prior.learner.guarantee_
    pays = {"epsilon": plain_number(promise.epsilon), "delta": promise.delta}
    return {"event": "prior", "rows": prior.n_rows, **pays}


def _let_go(process: int, writer: Writer, reader: Home, lock: Any) -> None:
    """Close everything; a forked process leaves alone what is not its own."""
    if os.getpid() != process:
        return
    reader.close()  # first: the last one to close puts SQLite's log back into the file
    try:
        writer.close()
    finally:
        if lock is not None:
            lock.close()
