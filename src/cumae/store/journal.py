"""The journal of a durable oracle: every change is on the disk before anything of it is seen."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, NoReturn

from cumae.claims import claim
from cumae.errors import InvalidParameter, LiveState, StoreFailed
from cumae.predictors.state import NOBODY, Arrays, Journal, objects
from cumae.store.counting import Counting, Record, counting_of, merged
from cumae.store.keys import Keys, Mark
from cumae.store.ledger import CHECKPOINT, Entry, Totals, following
from cumae.store.sealed import HiddenIds, Seal, arrays_to_bytes, from_bytes, to_bytes
from cumae.store.sqlite import Blob, SqliteFile, Transaction

MERGE = 1_000  # small records that are merged into one
SNAPSHOT, ANSWERED = "snapshot", "answered"


@dataclass
class Change:
    """What one call changes, until it is on the disk.

    Parameters
    ----------
    events : list of dict
        What the ledger will say.
    records : list of tuples of str and dict
        What is added to the state: kinds and facts.
    snapshot : dict of arrays, or None
        The whole state, in the place of all records.
    new_epoch : bool
        Whether it is written under a new key, and everything before it is deleted.
    answers : dict from bytes to tuple of str and array
        Answers for retries: names, digests of the bodies, and what was answered.
    used, spare : int
        Releases that are gone, and how many more the mark may cover.
    """

    events: list[dict[str, Any]] = field(default_factory=list)
    records: list[tuple[str, Record]] = field(default_factory=list)
    snapshot: Arrays | None = None
    new_epoch: bool = False
    answers: dict[bytes, tuple[str, Any]] = field(default_factory=dict)
    used: int = 0
    spare: int = 0


class Moved(Journal):
    """The journal of a predictor that lives in a file now: it refuses everything.

    Parameters
    ----------
    state : State
        What it would have changed.
    path : str
        Where the predictor went.
    """

    def __init__(self, state: Any, path: str) -> None:
        super().__init__(state)
        self._path = path

    def check(self) -> None:
        raise LiveState(
            f"this predictor lives in {self._path} now; go on with cumae.open, because what was "
            "paid once must not be had twice."
        )

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        self.check()
        raise AssertionError("check refuses")

    answered = supplied = labelled = labelled_requests = _refuse
    used = prepared = entered = recorded = _refuse


@claim("STORE")
class Writer:
    """Writes changes in their order, several of them at once when several wait.

    Parameters
    ----------
    file : SqliteFile
        Where to.
    keys : Keys
        Keys and the high-water mark.
    oracle : str
        Id of the oracle.
    totals : Totals
        What the ledger adds up to.
    last : Entry
        Its last entry.
    mark : Mark
        The mark as it is stored.
    seal : Seal
        Of the epoch.
    n_entries : int
        Entries in the file.
    """

    def __init__(
        self,
        file: SqliteFile,
        keys: Keys,
        oracle: str,
        totals: Totals,
        last: Entry,
        mark: Mark,
        seal: Seal,
        n_entries: int,
    ) -> None:
        self.file, self.keys, self.oracle = file, keys, oracle
        self.totals, self.last, self.mark, self.seal = totals, last, mark, seal
        self.done = 0  # all changes with tickets up to this one are on the disk
        self._failed: BaseException | None = None
        self._n_entries = n_entries
        self._small: list[tuple[int, int, Record]] = []  # numbers before, own numbers, records
        self._pending: list[Change] = []
        self._asked = 0
        self._queue, self._writing = threading.Lock(), threading.Lock()

    def add(self, change: Change) -> int:
        """Take a change; return its ticket. Whoever adds holds the lock of the predictor."""
        with self._queue:
            self._pending.append(change)
            self._asked += 1
            return self._asked

    @claim("STORE")
    def commit(self, ticket: int) -> None:
        """Return when the change with this ticket is on the disk; raise if that is not certain."""
        if ticket <= self.done:
            return
        with self._writing:  # who comes first writes for all that wait
            if ticket <= self.done:
                return
            self.check()
            self._write_pending()

    def check(self) -> None:
        """Refuse to go on after a failure."""
        if self._failed is not None:
            raise StoreFailed(
                "what was to be recorded could not be written, so that the answers were thrown "
                "away; they are charged. Look after the disk, close this oracle and open it again."
            ) from self._failed

    def _write_pending(self) -> None:
        with self._queue:
            changes, self._pending, asked = self._pending, [], self._asked
        if not changes:
            return
        try:
            self._write(changes)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised by check
            self._failed = error
            self.check()
        self.done = asked

    @claim("STORE")
    def _write(self, changes: list[Change]) -> None:
        """Write changes as one. The whole state comes last, if it is among them."""
        last = changes[-1]
        pieces = self._pieces(changes)
        entries, totals = self._chain(changes, self.totals.blob + len(pieces))
        transaction = Transaction(entries=entries)
        # A key before anything is written under it; the mark before an answer can leave.
        seal = self.seal
        if last.new_epoch:
            seal = Seal(self.keys.make_epoch(totals.epoch), self.oracle, totals.epoch)
            transaction.drop_answers = True
        elif last.used > self.mark.high:
            self._write_mark(last.used + last.spare)
        self._seal_pieces(transaction, pieces, seal, whole=last.snapshot is not None)
        for change in changes[-1:] if last.new_epoch else changes:
            for name, (digest, answer) in change.answers.items():
                content = to_bytes({"body": digest, "answer": answer})
                (sealed,) = seal.close(content, "answer", name.hex())
                transaction.answers[name] = (totals.epoch, sealed)
        self._checkpoint(transaction, totals)
        self._commit(transaction)
        self.seal, self.totals, self.last = seal, totals, transaction.entries[-1]
        if last.new_epoch:
            self._write_mark(last.used + last.spare)
            self.keys.keep_epoch(totals.epoch)

    def _pieces(self, changes: list[Change]) -> list[tuple[str, Any]]:
        """Return what is added to the state: the whole of it, or records, merged."""
        if changes[-1].snapshot is not None:
            return [(SNAPSHOT, changes[-1].snapshot)]
        records = [record for change in changes for record in change.records]
        pieces = []
        for kind, group in groupby(records, key=itemgetter(0)):
            facts = [record for _, record in group]
            pieces += [(kind, one) for one in ([merged(facts)] if kind == ANSWERED else facts)]
        return pieces

    def _chain(self, changes: list[Change], blob: int) -> tuple[list[Entry], Totals]:
        """Return the entries of changes, and what the ledger adds up to with them."""
        events = [facts for change in changes for facts in change.events]
        events[-1] = {**events[-1], "blob": blob}
        entries, last, totals = [], self.last, Totals(**vars(self.totals))
        for given in events:
            facts = given
            if facts["event"] in ("phase", "rotated"):
                facts = {**facts, "epoch": totals.epoch + 1}
            last = following(last.number, last.hash, facts)
            totals.take(facts)
            entries.append(last)
        return entries, totals

    def _seal_pieces(
        self, transaction: Transaction, pieces: list[tuple[str, Any]], seal: Seal, *, whole: bool
    ) -> None:
        """Encrypt pieces of the state; each names the one before it, so that none can be lost."""
        before = self.totals.blob
        for kind, facts in pieces:
            number = before + 1
            after, found = before, facts
            if kind == ANSWERED:
                self._small.append((before, number, facts))
                if len(self._small) >= MERGE:
                    after, first, _ = self._small[0]
                    found = merged([record for _, _, record in self._small])
                    transaction.drop_from, transaction.drop_below = first, number
                    self._small.clear()
            else:
                self._small.clear()
            content = arrays_to_bytes(facts) if whole else to_bytes({**found, "after": after})
            parts = seal.close(content, kind, number)
            transaction.blobs = [blob for blob in transaction.blobs if blob.number <= after]
            transaction.blobs.append(Blob(number, seal.epoch, kind, parts))
            before = number
        if whole:
            transaction.drop_from, transaction.drop_below = 0, before

    def _checkpoint(self, transaction: Transaction, totals: Totals) -> None:
        """Replace entries by their totals when there are many."""
        self._n_entries += len(transaction.entries)
        if self._n_entries < CHECKPOINT:
            return
        before = transaction.entries[-1]
        facts = {"event": "checkpoint", "before": before.hash.hex(), "totals": totals.to_facts()}
        transaction.entries = [following(before.number, before.hash, facts)]
        transaction.prune_below = transaction.entries[0].number
        self._n_entries = 1

    @claim("STORE")
    def _commit(self, transaction: Transaction) -> None:
        """Commit; if that fails, read again whether it was committed all the same."""
        wanted = (transaction.entries[-1].number, transaction.entries[-1].hash)
        try:
            self.file.commit(transaction)
        except BaseException:
            self.file = self.file.again()
            if self.file.head() != wanted:
                raise

    def _write_mark(self, high: int) -> None:
        mark = Mark(self.oracle, self.totals.epoch, high, self.last.number, self.last.hash.hex())
        self.keys.write_mark(mark)
        self.mark = mark

    def settle(self) -> None:
        """Write the exact mark: all that was used is on the disk."""
        self._write_mark(self.totals.used)

    def close(self) -> None:
        """Write what is left and the exact mark."""
        with self._writing:
            try:
                if self._failed is None:
                    self._write_pending()
                    self.settle()
            finally:
                self._failed = self._failed or LiveState("this oracle was closed.")
                self.file.close()


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
    reader : SqliteFile
        A connection of its own that stored answers are read with.
    lock : file
        What keeps other processes away; it is closed at the end.
    """

    def __init__(
        self, state: Any, writer: Writer, hide: HiddenIds, reader: SqliteFile, lock: Any
    ) -> None:
        super().__init__(state)
        self.writer, self._hide, self._reader = writer, hide, reader
        self._counting: Counting = counting_of(state)
        self._used = self._counting.used
        self._change: Change | None = None  # while a call is gathered
        self._unwritten: dict[bytes, tuple[str, Any, int]] = {}
        self._process = os.getpid()
        self._end = weakref.finalize(self, _let_go, self._process, writer, reader, lock)

    # What every call goes through

    def check(self) -> None:
        """Refuse in a forked process, after a failure, and when it is closed."""
        if os.getpid() != self._process:
            raise LiveState(
                "this oracle was opened in another process; go on there, or open it here after it "
                "was closed there, because what was paid once must not be had twice."
            )
        if not self._end.alive:
            raise LiveState("this oracle was closed; go on with cumae.open.")
        self.writer.check()

    def check_copy(self) -> None:
        raise LiveState(
            "a durable oracle gives away no copy of its state: both would spend the same budget. "
            "Use cumae backup for a copy of the file."
        )

    @claim("STORE")
    def recorded(
        self, make: Callable[[], Any], request_id: Any = None, body: Any = None
    ) -> tuple[Any, int]:
        self.check()
        if self._change is not None:  # a method that calls another one
            return make(), 0
        if request_id is not None:
            name, digest = self._named(request_id), self.writer.seal.digest_of(body)
            found = self._stored(name)
            if found is not None:
                if found[0] != digest:
                    raise InvalidParameter(
                        "request_id was used for another request in this phase; give every request "
                        "its own."
                    )
                return found[1:]
        change = self._change = Change()
        try:
            answers = make()
            change = self._change
            if request_id is not None and change.events:  # what costs nothing is not stored
                # Named again: a new phase may have begun, with another key.
                name, digest = self._named(request_id), self.writer.seal.digest_of(body)
                change.answers[name] = (digest, answers)
        finally:
            # Also if it was broken off: what was recorded so far was spent.
            change, self._change = self._change, None
            ticket = self._add(change)
        self._unwritten |= {name: (*kept, ticket) for name, kept in change.answers.items()}
        return answers, ticket

    def commit(self, ticket: int) -> None:
        self.writer.commit(ticket)

    def _named(self, request_id: Any) -> bytes:
        parts = request_id if isinstance(request_id, tuple) else (request_id,)
        if not parts or not all(isinstance(one, str | bytes | int) for one in parts):
            raise InvalidParameter(
                "request_id is no text, whole number or tuple of these; give the client and a "
                "number, say."
            )
        return self.writer.seal.name_of(list(parts))

    def _stored(self, name: bytes) -> tuple[str, Any, int] | None:
        """Return body, answer and ticket of an earlier request; the caller holds the lock."""
        for known, (_, _, ticket) in list(self._unwritten.items()):  # in the order they came
            if ticket > self.writer.done:
                break
            del self._unwritten[known]
        if name in self._unwritten:
            return self._unwritten[name]
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

    def _record(self, event: dict[str, Any], kind: str, record: Record) -> None:
        """Add to what is gathered; commit it at once if nothing is."""
        change = Change() if self._change is None else self._change
        change.events.append(event)
        change.records.append((kind, record))
        if self._change is None:
            self.check()
            self.commit(self._add(change))

    def _whole(self, event: dict[str, Any], *, new_epoch: bool) -> None:
        """Commit the whole state now, with what was gathered before."""
        change = Change() if self._change is None else self._change
        if self._change is not None:
            self._change = Change()
        change.events.append(event)
        change.snapshot, change.new_epoch = self.state.to_arrays(), new_epoch
        self._counting = counting_of(self.state)
        self._used = self._counting.used
        if new_epoch:
            self._unwritten.clear()
        self.commit(self._add(change))

    # The changes

    @claim("STORE")
    def answered(
        self, count: int, rows: Any = None, weights: Any = None, ids: tuple[Any, ...] = NOBODY
    ) -> None:
        super().answered(count, rows, weights, ids)
        counting = self._counting
        if counting.phase > self.writer.totals.phase:  # all queries at once: the rows are gone
            self._whole(phase_event(counting, count), new_epoch=True)
            return
        if counting.mechanism is None or not count:
            return  # what was published costs nothing
        debit = count if counting.each_costs else counting.used - self._used
        self._used = counting.used
        event = {"event": "answered", "count": count, "debit": debit, "used": counting.used}
        grown = counting.grown(ids, self._hide)
        record = {"count": count, "counts": counting.counts(), "grown": grown}
        self._record(event, ANSWERED, record)

    def supplied(self, rows: Any) -> None:
        self.check()
        super().supplied(rows)
        self._rows("supplied", {"rows": rows}, len(rows))

    def labelled(self, rows: Any, weights: Any, users: Any) -> None:
        self.check()
        super().labelled(rows, weights, users)
        own_rows, own_weights = self.state.labelled[-1]
        facts = {"rows": own_rows, "weights": own_weights}
        if users is not None:
            facts["users"] = objects(map(self._hide, users))
        self._rows("labelled", facts, len(weights))

    def labelled_requests(self, requests: Any, weights: Any) -> None:
        self.check()
        super().labelled_requests(requests, weights)
        facts = {"requests": objects(requests), "weights": weights}
        self._rows("labels", facts, len(weights))

    def _rows(self, kind: str, facts: Record, count: int) -> None:
        self._record({"event": "rows", "kind": kind, "count": count}, kind, facts)

    def prepared(self, following: Any, taken: int = 0) -> None:
        super().prepared(following, taken)
        self._whole({"event": "prepared", "used": self._counting.used}, new_epoch=False)

    def entered(self, phase: Any) -> None:
        super().entered(phase)
        self._whole(phase_event(counting_of(self.state)), new_epoch=True)

    @claim("STORE")
    def charged(self, count: int, event: str) -> None:
        """Charge what may have been used, though the file does not know of it, and record that."""
        if count:
            self._counting.charge(count)
        self._used = self._counting.used
        record = {"count": 0, "counts": self._counting.counts(), "grown": {}}
        self._record({"event": event, "used": self._used}, ANSWERED, record)
        self.writer.settle()  # else it would be charged again, or look like an older copy for ever

    def compacted(self) -> None:
        """Write the whole state in the place of many small pieces."""
        self._whole({"event": "compacted", "used": self._counting.used}, new_epoch=False)

    def rotated(self) -> None:
        """Write everything anew under a new key; the old one is destroyed."""
        self.check()
        event = {**phase_event(self._counting), "event": "rotated"}
        self._whole(event, new_epoch=True)

    def close(self) -> None:
        if os.getpid() == self._process:
            self._end()


def phase_event(counting: Counting, count: int = 0) -> dict[str, Any]:
    """Return what the ledger says when a phase begins; the writer adds the epoch.

    Parameters
    ----------
    counting : Counting
        Of the state.
    count : int
        Answers that were given with it.
    """
    return {
        "event": "phase",
        "phase": counting.phase,
        "releases": counting.releases,
        "used": counting.used,
        "cost": counting.cost,
        "count": count,
    }


def _let_go(process: int, writer: Writer, reader: SqliteFile, lock: Any) -> None:
    """Close everything; a forked process leaves alone what is not its own."""
    if os.getpid() != process:
        return
    try:
        writer.close()
    finally:
        reader.close()
        lock.close()
