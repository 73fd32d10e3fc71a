"""Writes what changes in an oracle: in order, as one transaction for all that wait."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from cumae.claims import claim
from cumae.codec import FORMAT, to_bytes
from cumae.errors import CumaeError, LiveState, StoreFailed
from cumae.predictors.answering.events import Answered, Event, Whole
from cumae.store.homes.home import Blob, Home, Sweep, Transaction
from cumae.store.keys import Life, Mark, new_key_name
from cumae.store.ledger import CHECKPOINT, LedgerEntry, Totals, checkpoint_seal, following
from cumae.store.pieces import (
    WHOLE,
    AheadParts,
    Piece,
    ahead_number,
    sealed_ahead,
    sealed_piece,
)
from cumae.store.sealed import Seal

SMALL = 64  # answers of an event that is merged with others
MERGE = 1_000  # small pieces that are merged into one
SWEPT = 8  # parts of old pieces that one transaction deletes
CLOSED = "this oracle was closed; go on with cumae.open."


@dataclass
class Change:
    """The changes of one call, until they are on the disk.

    Parameters
    ----------
    entries : list of dict
        What the ledger will say.
    events : list of Event
        What changes the state. A whole state takes the place of everything before it.
    new_epoch : bool
        Whether it is written under a new key; then it has a whole state, and is the last change of
        all. What was frozen before that state comes behind it.
    answers : dict from bytes to tuple of str and array
        Answers for retries: names, digests of the bodies, and what was answered.
    used, spare : int
        Releases that are gone, and how many more the mark may cover.
    ahead : AheadParts, or None
        Parts of the next phase that are written before it begins.
    refers : bool
        Whether most of that state was written ahead, with what this change has of it.
    """

    entries: list[dict[str, Any]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    new_epoch: bool = False
    answers: dict[bytes, tuple[str, Any]] = field(default_factory=dict)
    used: int = 0
    spare: int = 0
    ahead: AheadParts | None = None
    refers: bool = False


class Coming(NamedTuple):
    """The epoch that will begin, when something is written ahead for it.

    Parameters
    ----------
    key : str
        The name of its key.
    seal : Seal
        What encrypts under it.
    """

    key: str
    seal: Seal


@claim("STORE")
class Writer:
    """Writes changes in their order, several of them at once when several wait.

    Parameters
    ----------
    home : Home
        Where to.
    life : Life
        Its life among the keys, with its mark.
    oracle : str
        Id of the oracle.
    oracle_key : bytes
        Its own key, under which checkpoints are sealed.
    totals : Totals
        What the ledger adds up to.
    last : LedgerEntry
        Its last entry.
    seal : Seal
        Of the epoch.
    n_entries : int
        Entries in the file.
    """

    def __init__(
        self,
        home: Home,
        life: Life,
        oracle: str,
        oracle_key: bytes,
        totals: Totals,
        last: LedgerEntry,
        seal: Seal,
        n_entries: int,
    ) -> None:
        self.home, self.life, self.keys = home, life, life.keys
        self.oracle, self.oracle_key = oracle, oracle_key
        self.totals, self.last, self.seal = totals, last, seal
        self.format = FORMAT  # of what the file holds; less until an older one was written anew
        self.done = 0  # all changes with tickets up to this one are on the disk
        self.failed: CumaeError | None = None
        self._late: BaseException | None = None  # an interrupt that came when all was committed
        self._n_entries = n_entries
        self._small: list[Piece] = []  # at the end of the chain, to be merged with what follows
        self._coming: Coming | None = None
        self._has_ahead = False  # whether changes since the last epoch began have parts ahead
        self._old, self._sweeps = Sweep(0, 0, 0), 0  # old pieces, and how often some are deleted
        self._pending: list[Change] = []
        self.asked = 0  # the ticket of the last change
        self._mutex, self._writing = threading.Lock(), threading.Lock()
        self.inside = threading.Lock()  # held by the call that changes the state

    @property
    def mark(self) -> Mark | None:
        """The mark of this life, as it is stored; None before there is one."""
        return self.life.mark

    def begin_turn(self) -> None:
        """Return when no other process changes the oracle: here none ever does."""

    def add(self, change: Change) -> int:
        """Take a change; return its ticket. Whoever adds holds the lock of the predictor."""
        with self._mutex:
            self._pending.append(change)
            if change.ahead is not None:
                self._has_ahead = True
            self.asked += 1
            return self.asked

    @claim("STORE")
    def commit(self, ticket: int) -> None:
        """Return when the change with this ticket is on the disk; raise if that is not certain."""
        if ticket <= self.done:
            return
        with self._writing:  # who comes first writes for all that wait
            if ticket > self.done:
                if self.failed is not None:
                    self.check()
                self._write_pending()

    def fail(self, error: BaseException) -> None:
        """Let everything be refused from now on: memory may know more than the disk.

        The error itself is not kept. Its frames hold the journal, whose finaliser holds this
        writer: nobody would let go of the lock before the process ends.
        """
        ours = isinstance(error, CumaeError)
        reason = f" The reason: {error}" if ours else f" The reason: {type(error).__name__}."
        self.failed = self.failed or StoreFailed(
            "what was to be recorded could not be written, so that the answers were thrown away; "
            "they are charged. Look after the disk, close this oracle and open it again." + reason
        )

    def check(self, cause: BaseException | None = None) -> None:
        """Refuse to go on after a failure, and when it is closed."""
        if self.failed is not None:  # a new one each time, because an error holds its frames
            raise type(self.failed)(*self.failed.args) from cause

    def _write_pending(self) -> None:
        try:
            with self._mutex:
                changes, self._pending, asked = self._pending, [], self.asked
            if changes:
                self._write(changes)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised by check
            self.fail(error)
            self.check(error)
        except BaseException as error:  # whoever ends the program must not be held up
            self.fail(error)
            raise
        self.done = asked
        late, self._late = self._late, None
        if late is not None:
            raise late

    @claim("STORE")
    def _write(self, changes: list[Change]) -> None:
        """Write changes as one. What begins a new epoch comes last, if it is among them."""
        last = changes[-1]
        events = last.events if len(changes) == 1 == len(last.events) else _merged(changes)
        ahead = self._sealed_ahead(changes) if self._has_ahead else []
        coming = self._coming if last.refers else None
        entries, totals = self._chain(changes, self.totals.blob + len(events), coming)
        transaction = Transaction(entries, ahead, after=(self.last.number, self.last.hash))
        # A key before anything is written under it; the mark before an answer can leave.
        seal = self.seal
        if last.new_epoch:
            seal = self._new_seal(totals.epoch, totals.key) if coming is None else coming.seal
            transaction.drop_answers = True
        elif not self.covers(last.used):
            self._write_mark(last.used + last.spare)
        self._n_entries += len(entries)
        if self._n_entries >= CHECKPOINT:
            self._checkpoint(transaction, totals)
        if self._sweeps:
            transaction.sweep, self._sweeps = self._old, self._sweeps - 1
        self._seal_pieces(transaction, events, seal, "" if coming is None else coming.key)
        for change in changes[-1:] if last.new_epoch else changes:
            if change.answers:
                _seal_answers(transaction, change, seal)
        if last.new_epoch:  # one that is not to be must not end the life elsewhere
            self.life.check()
        self._commit(transaction)
        self.seal, self.totals, self.last = seal, totals, transaction.entries[-1]
        self.format = FORMAT
        if last.new_epoch:
            first = next(one.number for one in transaction.blobs if one.kind == WHOLE)
            self._begin_epoch(last.used + last.spare, first)
        elif transaction.prune_below:  # so that the mark names an entry that is there
            self._write_mark(last.used)

    def _new_seal(self, epoch: int, key: str) -> Seal:
        return Seal(self.keys.make_epoch(epoch, key), self.oracle, epoch)

    @claim("STORE", "REPLICAS")
    def _sealed_ahead(self, changes: list[Change]) -> list[Blob]:
        """Encrypt what is written ahead, under a key that is made before the first part."""
        due = [change.ahead for change in changes if change.ahead is not None]
        if due and due[0].first == 0:
            epoch, key = self.totals.epoch + 1, new_key_name()["key"]
            self._coming = Coming(key, self._new_seal(epoch, key))
            self.life.check()  # whoever goes on elsewhere deletes the key, or this life ends here
        coming = self._coming
        return [] if coming is None else [sealed_ahead(parts, *coming) for parts in due]

    def give_up_ahead(self) -> None:
        """Forget what was written ahead: another replica has begun the epoch."""
        self._coming, self._has_ahead = None, False

    @claim("STORE", "REPLICAS")
    def _begin_epoch(self, high: int, first: int) -> None:
        """Write the mark of an epoch, and delete the keys of others.

        Old pieces are deleted from now on, some of them with each transaction.

        Parameters
        ----------
        high : int
            What the mark covers.
        first : int
            Number of the whole state with which the epoch begins.
        """
        totals = self.totals
        self.life.check()
        self._write_mark(high)
        self.keys.keep_epoch(totals.epoch, totals.key)
        self.life.check()  # else a life whose key was deleted just now may have read it before
        self.give_up_ahead()
        self._old = Sweep(first, ahead_number(totals.epoch, totals.key), totals.epoch, SWEPT)
        self._sweeps = -(-self.home.n_old(self._old) // SWEPT)

    def covers(self, used: int) -> bool:
        """Tell whether the mark is high enough already."""
        mark = self.life.mark
        return mark is not None and mark.epoch == self.totals.epoch and used <= mark.high

    def _chain(
        self, changes: list[Change], blob: int, coming: Coming | None
    ) -> tuple[list[LedgerEntry], Totals]:
        """Return the entries of changes, and what the ledger adds up to with them."""
        said: list[dict[str, Any]] = []
        for facts in [facts for change in changes for facts in change.entries]:
            if said and said[-1]["event"] == facts["event"] == "answered":  # one for the group
                before = said.pop()
                sums = {name: before[name] + facts[name] for name in ("count", "debit")}
                said.append({**facts, **sums})
            else:
                said.append(facts)
        said[-1] = {**said[-1], "blob": blob}
        entries, last, totals = [], self.last, self.totals.copy()
        for given in said:
            facts = given
            if facts["event"] in ("phase", "rotated"):
                begun = {"epoch": totals.epoch + 1, "priors": totals.priors}
                key = new_key_name() if coming is None else {"key": coming.key}
                facts = {**facts, **begun, **key}
            last = following(last.number, last.hash, facts)
            totals.take(facts)
            entries.append(last)
        return entries, totals

    def _seal_pieces(
        self, transaction: Transaction, events: list[Event], seal: Seal, ahead: str
    ) -> None:
        """Encrypt pieces of the state; many small ones at the end of the chain become one."""
        if not events:
            raise AssertionError("a transaction ends with a piece of the state")
        number, head = self.totals.blob, transaction.entries[-1].hash
        for event in events:
            number += 1
            piece = Piece(number - 1, number, event)
            if isinstance(event, Whole) and seal is self.seal:  # else they are deleted later
                transaction.drop_from, transaction.drop_below = 0, number
            if isinstance(event, Answered) and event.count <= SMALL:
                self._small.append(piece)  # as ``remember`` does
            else:
                self._small.clear()
            if len(self._small) >= MERGE and len(events) == 1:
                first = self._small[0]
                many = [one.event for one in self._small if isinstance(one.event, Answered)]
                piece = Piece(first.before, number, Answered.merged(many))
                transaction.drop_from, transaction.drop_below = first.number, number
                self._small.clear()
            transaction.blobs.append(sealed_piece(piece, head, seal, ahead))

    def remember(self, piece: Piece) -> None:
        """Remember a small piece at the end of the chain, to merge it with those that follow."""
        if isinstance(piece.event, Answered) and piece.event.count <= SMALL:
            self._small.append(piece)
        else:
            self._small.clear()

    def _checkpoint(self, transaction: Transaction, totals: Totals) -> None:
        """Replace entries by their totals."""
        before, mark = transaction.entries[-1], self.mark
        facts = {
            "event": "checkpoint",
            "before": before.hash.hex(),
            "totals": totals.to_facts(),
            "marked": [] if mark is None else [mark.number, mark.head],
        }
        facts["seal"] = checkpoint_seal(self.oracle_key, self.oracle, before.number + 1, facts)
        transaction.entries = [following(before.number, before.hash, facts)]
        transaction.prune_below = transaction.entries[0].number
        self._n_entries = 1

    @claim("STORE")
    def _commit(self, transaction: Transaction) -> None:
        """Commit; if that fails, read again whether it was committed all the same.

        An error from elsewhere, as of a signal handler, is raised when the commit is recorded.
        """
        try:
            self.home.commit(transaction)
        except BaseException as error:
            self.home = self.home.again()
            if not self._is_there(transaction):
                raise
            self._late = None if isinstance(error, StoreFailed) else error

    def _is_there(self, transaction: Transaction) -> bool:
        """Tell whether a transaction was committed.

        Another replica may have written the same entry after the same one, with the same counts.
        The last piece of the state, which is encrypted with a nonce of its own, tells whose it is.
        """
        last = transaction.blobs[-1]
        found = [one.parts for one in self.home.blobs(after=last.number - 1)][:1]
        return self.home.holds(*transaction.head) and found == [last.parts]

    def _write_mark(self, high: int, *, exact: bool = False) -> None:
        """Write the mark, which goes down only if it shall be exact; refuse if the life ended."""
        totals, last = self.totals, self.last
        if self.mark is not None and self.covers(high) and not exact:
            high = self.mark.high
        self.life.write_mark(
            Mark(
                self.oracle,
                totals.epoch,
                high,
                last.number,
                last.hash.hex(),
                self.format,
                totals.phase,
            )
        )

    @claim("STORE", "REPLICAS")
    def opened(self, marks: Iterable[str]) -> None:
        """Go on with a state that was charged for these marks: the own one takes their place."""
        self.settle()
        self.life.drop(filter(self.has_ended, marks))
        self.keys.keep_epoch(self.totals.epoch, self.totals.key)

    def has_ended(self, mark: str) -> bool:
        """Tell whether a life has ended, by the name of its mark: here all others have."""
        del mark
        return True

    def settle(self) -> None:
        """Write the exact mark, where all that was used is on the disk, and nothing waits."""
        self._write_mark(self.totals.used, exact=True)

    def close(self) -> None:
        """Write what is left and the exact mark."""
        with self._writing:
            try:
                if self.failed is None:
                    self._write_pending()
                    with suppress(
                        OSError, CumaeError
                    ):  # then the next opening charges up to the mark
                        self.settle()
            finally:
                self.failed = self.failed or LiveState(CLOSED)
                self.home.close()


def _seal_answers(transaction: Transaction, change: Change, seal: Seal) -> None:
    """Encrypt answers for retries."""
    for name, (digest, answer) in change.answers.items():
        content = to_bytes({"body": digest, "answer": answer})
        sealed = seal.close(content, "answer", name.hex())
        if len(sealed) == 1:  # larger ones are not kept, and a retry asks anew
            transaction.answers[name] = (seal.epoch, sealed[0])


def _merged(changes: list[Change]) -> list[Event]:
    """Return what changes the state, with answers that follow each other as one event."""
    events = [event for change in changes for event in change.events]
    whole = [place for place, event in enumerate(events) if isinstance(event, Whole)]
    events = events[whole[-1] if whole else 0 :]
    found: list[Event] = []
    for answers, group in groupby(events, key=lambda event: isinstance(event, Answered)):
        some = list(group)
        found += [Answered.merged(some)] if answers else some  # type: ignore[arg-type]
    return found
