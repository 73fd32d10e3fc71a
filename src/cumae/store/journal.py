"""The journal of a durable oracle: every change is on the disk before anything of it is seen."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from cumae.claims import claim
from cumae.codec import from_bytes
from cumae.data import plain_id
from cumae.errors import InvalidData, InvalidParameter, LiveState, RequestIdReused
from cumae.predictors.answering.calls import Call
from cumae.predictors.answering.events import Entered, Event, Remembered, Whole
from cumae.predictors.answering.journal import Journal
from cumae.predictors.answering.queue import QueuedCall
from cumae.predictors.state import State
from cumae.privacy import Guarantee
from cumae.privacy.plain_costs import cost_to_dict
from cumae.privacy.validation import plain_number
from cumae.quiet import HiddenFailures
from cumae.store.bills import bill_of, price
from cumae.store.homes.home import Blob, Home
from cumae.store.homes.needs import durable
from cumae.store.pieces import Ahead, Piece, opened_pieces, rebuilt
from cumae.store.sealed import Seal, canonical
from cumae.store.writer import CLOSED, Change, Writer


@claim("STORE")
class DurableJournal(Journal):
    """Records every event on the disk before anything of it is seen.

    The events of one call are gathered and committed together, after the lock of the predictor is
    free; so several that wait share a commit. Everything else is committed at once. When the
    training of a next phase begins, what there is is committed first: a crash in the middle of it
    repeats the same training.

    Parameters
    ----------
    state : State
        What events change.
    writer : Writer
        What writes.
    reader : Home
        A connection of its own that stored answers are read with.
    lock : file, or None
        What keeps other processes away; it is closed at the end.
    """

    durable = True

    def __init__(self, state: State, writer: Writer, reader: Home, lock: Any) -> None:
        super().__init__(writer.inside)
        self.state, self.writer, self._reader = state, writer, reader
        self.used = state.used
        self.commit = writer.commit  # type: ignore[method-assign]
        # While a call is gathered: its change, the seal with which it began, whether a part of it
        # is on the disk already, and its answers for retries.
        self._change: Change | None = None
        self._seal_before, self._has_begun = writer.seal, False
        self._kept: dict[bytes, tuple[str, Any]] = {}
        # Answers for retries that may not be on the disk yet; and those of calls that began in an
        # earlier phase, which are never written.
        self._unwritten: dict[bytes, tuple[str, Any, int]] = {}
        self._crossed: dict[bytes, tuple[str, Any, int]] = {}
        self._ahead: Ahead | None = None  # what is written of the next phase before it begins
        # What has come since all that waits was frozen, and belongs to it; None before.
        self._since: list[Event] | None = None
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
                "was closed there, because two copies would both spend the same budget."
            )
        if not self._end.alive:
            raise LiveState(CLOSED)
        self.writer.check()

    def check_copy(self) -> None:
        raise LiveState(
            "a durable oracle gives away no copy of its state: both would spend the same budget. "
            "Use cumae backup for a copy of the file."
        )

    def begin_turn(self) -> None:
        writer = self.writer
        if os.getpid() != self._process or not self._end.alive or writer.failed is not None:
            self.check()  # refuses; it is called only then, because each answer comes by here
        if writer.home.shared:
            writer.begin_turn()

    def end_turn(self) -> None:
        self.writer.commit(self.writer.asked)

    @claim("REPLICAS")
    def learn(
        self, seal: Seal, blobs: list[Blob], before: int | None, estimator: Any = None
    ) -> list[Piece]:
        """Apply to the state what other replicas recorded; return the pieces.

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
        if before is None:
            secret = self.writer.oracle_key
            given = (self.state.kind, seal, estimator, secret, self.writer.home.parts)
            state, pieces, _ = rebuilt(blobs, *given)
            Whole(state).apply(self.state)
            self._crossed.clear()
            self._ahead = self._since = None
        else:
            pieces = [piece for piece, _ in opened_pieces(blobs, before, seal)]
            for piece in pieces:
                if self._since is not None:
                    self._gather(piece.event, self._since)
                piece.event.apply(self.state)
        self.used = self.state.used
        self._unwritten.clear()
        return pieces

    @claim("STORE")
    def known(self, call: QueuedCall) -> tuple[Any, int] | None:
        if call.call.request_id is None:
            return None
        # All that can fail comes before anything is drawn.
        call.id_bytes, call.body_bytes = (
            _id_bytes(call.call.request_id),
            _body_bytes(call.call.body),
        )
        found = self._stored(self.writer.seal.name_of(call.id_bytes))
        if found is None:
            return None
        self._refuse_other(found[0], call.body_bytes)
        return found[1:]

    @claim("STORE")
    def compare(self, call: Call) -> None:
        found = self._stored(self.writer.seal.name_of(_id_bytes(call.request_id)))
        if found is not None:
            self._refuse_other(found[0], _body_bytes(call.body))

    def _refuse_other(self, digest: str, body: bytes) -> None:
        """Refuse a request that is not the one whose fingerprint is given."""
        if digest != self.writer.seal.digest_of(body):
            raise RequestIdReused(
                "request_id was used for another request in this phase; give every request its "
                "own, and repeat one in the same form: as the same list, array or data frame."
            )

    # The events of one call

    @claim("STORE")
    def begin(self) -> None:
        self._seal_before, self._has_begun, self._kept = self.writer.seal, False, {}
        self._change = Change()

    @claim("STORE")
    def record(self, event: Event, said: dict[str, Any] | None = None) -> None:
        """Gather an event with what the ledger says of it; commit it if nothing is gathered."""
        if isinstance(event, Entered) and said is None:
            self._enter(event)
            return
        said = event.entry() if said is None else said
        if said is None:
            return
        used = said.get("used", self.used)
        if said["event"] == "answered":
            said["debit"] = used - self.used
        change = Change() if self._change is None else self._change
        change.entries.append(said)
        change.events.append(event)
        if self._since is not None:
            self._gather(event, self._since)
        self.used = used
        if self._change is None:
            self.check()
            self.commit(self._hand_over(change))

    def _gather(self, event: Event, since: list[Event]) -> None:
        """Remember what outlasts the phase, if the rest of that was frozen before."""
        outlasting = event.outlasting()
        if outlasting is not None:
            since.append(outlasting)

    @claim("STORE")
    def _enter(self, event: Entered) -> None:
        """Commit the whole state of a new phase under a new key, with what was gathered before."""
        prior = prior_event(event.state) if event.renewed else None
        self._begin_epoch(event, phase_event(event.state, event.count), prior)

    @claim("STORE")
    def _begin_epoch(
        self, whole: Whole, said: dict[str, Any], prior: dict[str, Any] | None = None
    ) -> None:
        gathering = self._change is not None
        change = self._change or Change()
        self._change = change
        if prior is not None:
            change.entries.append(prior)
        change.new_epoch = True
        self.record(whole, said)
        self._unwritten.clear()
        self._crossed.clear()
        self._change, self._has_begun = Change() if gathering else None, True
        ahead, self._ahead = self._ahead, None
        if isinstance(whole, Entered):
            since, self._since = self._since, None
            if ahead is not None:
                change.ahead, change.refers = ahead.due(0), True
                change.events.extend(since or ())
        self.commit(self._hand_over(change, whole.state))

    @claim("STORE")
    def remember(self, calls: Sequence[QueuedCall]) -> None:
        if self._change is None or not (self._change.events or self._has_begun):
            return  # what costs nothing is not stored
        seal = self.writer.seal  # a call may have begun a new phase
        self._kept = {
            seal.name_of(call.id_bytes): (seal.digest_of(call.body_bytes), call.answers)
            for call in calls
        }
        if self._has_crossed:
            return
        self._change.answers.update(self._kept)
        if not self._change.events:  # all else is on the disk already
            self.record(Remembered())

    @property
    def _has_crossed(self) -> bool:
        """True if queries that are private rows of an earlier phase are among those of the call."""
        return self.state.protects_queries and self.writer.seal is not self._seal_before

    @claim("STORE")
    def end(self) -> int:
        try:
            ticket = self._hand_over(self._change or Change())
            self._change = None
        except BaseException as error:  # nobody knows whether the writer has it
            self.fail(error)
            raise
        if self._kept:
            remembered = self._crossed if self._has_crossed else self._unwritten
            for name, own in self._kept.items():
                remembered[name] = (*own, ticket)
        return ticket

    @claim("STORE")
    def break_off(self) -> None:
        self._kept = {}  # what was recorded so far was spent, but nobody gets the answers
        if self._change is not None:
            self._change.answers.clear()
            self.commit(self.end())

    def fail(self, error: BaseException) -> None:
        self.writer.fail(error)
        self._change = None

    def _hand_over(self, change: Change, state: Any = None) -> int:
        """Give a change to the writer; return its ticket."""
        if not change.entries:
            return 0
        change.used = self.used
        if self._ahead is not None:
            change.ahead = self._ahead.due(self.state.left)
        if change.new_epoch or not self.writer.covers(self.used):
            change.spare = (self.state if state is None else state).spare
        return self.writer.add(change)

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

    @claim("STORE", "LATE")
    def freeze(self) -> None:
        self._since = []

    @claim("STORE", "LATE")
    def write_ahead(self, content: bytes, left: int) -> None:
        self._ahead = Ahead(content, left)

    def training(self) -> None:
        if self._change is not None and self._change.entries:
            ticket = self.end()
            self._change, self._has_begun = Change(), True
            self.commit(ticket)

    # Whole states without a new phase

    def compacted(self) -> None:
        """Write the whole state, which replaces many small pieces."""
        self.record(Whole(self.state), {"event": "compacted", "used": self.state.used})

    def rotated(self) -> None:
        """Write everything anew under a new key; the old one is destroyed."""
        said = {**phase_event(self.state), "event": "rotated"}
        try:
            self.check()
            self._begin_epoch(Whole(self.state), said)
        except BaseException as error:
            self.fail(error)
            raise

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


def phase_event(state: State, count: int = 0) -> dict[str, Any]:
    """Return what the ledger says when a phase begins; the writer adds the epoch.

    Parameters
    ----------
    state : State
        The state that begins it.
    count : int
        Answers that were given with it.
    """
    cost = state.cost
    found = {
        "event": "phase",
        "phase": state.phase_number,
        "releases": state.releases,
        "used": state.used,
        "cost": None if cost is None else cost_to_dict(cost),
        "count": count,
    }
    if cost is None:
        return {**found, "published": True}
    if state.steps:
        found["steps"] = state.steps
    return {**found, "epsilon": repr(price(bill_of(found), state.fitted.guarantee.delta))}


def made_event(kind: str, guarantee: Guarantee, state: Any = None) -> dict[str, Any]:
    """Return what the ledger says first: what was made, its promise, and an estimated drift.

    Parameters
    ----------
    kind : str
        The class of the oracle.
    guarantee : Guarantee
        What it promises.
    state : State, or None
        The state that it begins with; None for a published model.
    """
    drift = getattr(state, "drift", None)
    said = {} if drift is None else {"drift": [drift.n_rows, drift.step]}
    return {"event": "made", "kind": kind, "guarantee": guarantee.to_dict(), **said}


def prior_event(state: Any) -> dict[str, Any] | None:
    """Return what the ledger says when a prior is published; None if the state has none."""
    prior = getattr(state, "prior", None)
    if prior is None:
        return None
    promise = prior.learner.guarantee_
    pays = {"epsilon": plain_number(promise.epsilon), "delta": promise.delta}
    weight = {} if state.trust is None else {"weight": float(state.trust)}
    return {"event": "prior", "rows": prior.n_rows, **pays, **weight}


def _let_go(process: int, writer: Writer, reader: Home, lock: Any) -> None:
    """Close everything; a forked process leaves alone what is not its own."""
    if os.getpid() != process:
        return
    try:
        reader.close()  # first: the last one to close puts SQLite's log back into the file
    finally:
        try:
            writer.close()
        finally:
            if lock is not None:
                lock.close()
