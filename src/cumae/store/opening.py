"""The opening of an oracle: what its tables, its keys and its marks say must fit together."""

from __future__ import annotations

import json
import weakref
from typing import Any

from cumae.claims import claim
from cumae.codec import FORMAT, class_named
from cumae.errors import StoreFailed
from cumae.learners.base import Learner
from cumae.predictors.answering.events import Event
from cumae.predictors.state import State
from cumae.privacy import Guarantee
from cumae.store.homes.home import Blob, Home, Place, Sweep
from cumae.store.journal import DurableJournal
from cumae.store.keys import KeyStore, Life, new_life
from cumae.store.ledger import CHECKPOINT, Totals, walk
from cumae.store.looking import check_marks, is_old_form, older_copy, oracle_key
from cumae.store.older import states as old_states
from cumae.store.pieces import ahead_number, of_epoch, rebuilt
from cumae.store.sealed import Seal
from cumae.store.writer import MERGE, Writer

PUBLISHED = "published"  # the kind of blob that holds a learner


def opened(place: Place, keys: KeyStore, *, estimator: Any, accept_rollback: bool) -> Any:
    """Return the predictor or learner of an oracle.

    Parameters
    ----------
    place : Place
        Where it is.
    keys : KeyStore
        Its keys.
    estimator : object
        As in ``cumae.open``.
    accept_rollback : bool
        As in ``cumae.open``.
    """
    lock = None if place.shared else place.lock(keys)
    try:
        home = place.home()
        try:
            kind = _Shared if place.shared else _Opened
            found = kind(home, keys, lock, estimator, accept_rollback=accept_rollback)
            try:
                return found.model()
            except BaseException as error:
                if found.writer is not None:  # its journal may be let go of at any later time
                    found.writer.fail(error)
                raise
        except BaseException:
            home.close()
            raise
    except BaseException:
        if lock is not None:
            lock.close()
        raise


@claim("STORE", "REPLICAS")
class _Opened:
    """An oracle that is being opened, with its keys.

    Parameters
    ----------
    home : Home
        Its tables.
    keys : KeyStore
        Its keys and marks.
    lock : file, or None
        What keeps others away.
    estimator : object
        As in ``cumae.open``.
    accept_rollback : bool
        As in ``cumae.open``.
    """

    def __init__(
        self, home: Home, keys: KeyStore, lock: Any, estimator: Any, *, accept_rollback: bool
    ) -> None:
        self.home, self.keys, self.lock = home, keys, lock
        self.estimator, self.accept_rollback = estimator, accept_rollback
        self.oracle, self.writer = home.meta()["oracle"], None
        self.life = self.begin()
        self.oracle_key, self.marks = oracle_key(keys, self.oracle)
        self.old_form = is_old_form(self.marks)
        self.entries = home.entries()
        key = None if self.old_form else self.oracle_key
        self.totals, self.last = walk(self.oracle, self.entries, recompute=False, oracle_key=key)

    writer: Writer | None

    def begin(self) -> Life:
        """Return a new life; do what comes before anything is read."""
        return Life(self.keys, new_life(), lock=self.lock)

    @property
    def high(self) -> int:
        """Number of releases of the phase that may have been used, by what the marks say."""
        now = (self.totals.epoch, self.totals.phase)
        return max((mark.high for mark in self.marks.values() if mark.counts(*now)), default=0)

    def model(self) -> Any:
        """Return the predictor or learner, ready to answer."""
        self._checked()  # before the name is written: a mistake must not end the life elsewhere
        blobs = of_epoch(self.home.blobs(), self.totals.epoch)
        if not blobs or blobs[-1].number != self.totals.blob:
            raise StoreFailed(
                "the file does not hold all that its ledger names; it was damaged or edited."
            )
        if blobs[0].kind == PUBLISHED:
            return self._learner(blobs[0])
        state = self._rebuilt(self._seal(), blobs)
        self.marks = self.life.begin()
        check_marks(self.marks, self.oracle)
        older, seal = self._checked(), self._seal()  # its key may have been deleted meanwhile
        journal = self._journal(state, seal)
        charge = self.high - state.used
        if older or charge > 0:
            why = "rollback" if older else "restarted"
            take_alone(state.charged(max(0, charge), why, state.fitted.source), state, journal)
        writer, first = journal.writer, blobs[0].number
        if blobs[0].kind in old_states.WHOLES:
            journal.rotated()
            first = writer.totals.blob
        elif len(blobs) > 2 * MERGE:
            journal.compacted()
        old = self.old_pieces(first, writer.totals)
        if writer.home.n_old(old):  # nothing is written to a file that needs nothing
            writer.home.sweep(old)
        writer.opened(self.marks)
        found = class_named("predictor", state.kind).from_state(state, journal)
        found.warm_up()
        return found

    def old_pieces(self, first: int, totals: Totals) -> Sweep:
        """Return which pieces belong to no state, given the number of its first piece.

        Here nobody else writes anything ahead for a later epoch.
        """
        return Sweep(first, ahead_number(totals.epoch, totals.key), 2**62)

    def _checked(self) -> str:
        """Return why this must be an older copy; refuse one that was not accepted."""
        older = self.older()
        if older and not self.accept_rollback:
            raise StoreFailed(
                f"this file is an older copy ({older}). Going on with it charges "
                f"{max(0, self.high - self.totals.used):,} answers that may have been given "
                "since. Put the newer file back, or go on with it: `cumae restore`, or in Python "
                "accept_rollback=True."
            )
        return older

    def _rebuilt(self, seal: Seal, blobs: list[Blob]) -> State:
        """Return the state; refuse a ledger that does not belong to it."""
        head: bytes | None
        given = (self.totals.kind, seal, self.estimator, self.oracle_key)
        if blobs[0].kind in old_states.WHOLES:
            state, head = old_states.rebuilt(blobs, *given)
        else:
            state, _, head = rebuilt(blobs, *given, self.home.parts)
        if state.used != self.totals.used:
            raise StoreFailed("the ledger and the state disagree about what was used.")
        if head != self.last.hash and not (self.old_form and head is None):
            raise StoreFailed(
                "the ledger is not the one that the state was written with: it was edited, or one "
                "of them was put back. Put the right file back."
            )
        self._compare_promise(state.fitted.guarantee)
        return state

    def _compare_promise(self, sealed: Guarantee) -> None:
        if Guarantee.from_dict(self.totals.guarantee) != sealed:
            raise StoreFailed(
                "the ledger promises something else than the state does; it was edited."
            )

    def _learner(self, blob: Blob) -> Any:
        content = self._seal().open(blob.parts, blob.kind, blob.number)
        self.home.close()
        if self.lock is not None:
            self.lock.close()
        if self.last.hash.hex() not in {mark.head for mark in self.marks.values()}:
            raise StoreFailed("something was added to the ledger of a published model.")
        found = Learner.from_dict(json.loads(content))
        self._compare_promise(found.guarantee_)
        return found

    def _journal(self, state: State, seal: Seal) -> DurableJournal:
        """Return what will record all events of a state."""
        entries = CHECKPOINT if self.old_form and self.entries[0][0] > 1 else len(self.entries)
        given = (self.life, self.oracle, self.oracle_key, self.totals, self.last, seal, entries)
        self.writer = self.make_writer(*given)
        self.writer.format = min(FORMAT, max(mark.format for mark in self.marks.values()))
        journal = DurableJournal(state, self.writer, self.home.for_reading(), self.lock)
        self.connect(journal)
        return journal

    def make_writer(self, *given: Any) -> Writer:
        """Return what will write."""
        return Writer(self.home, *given)

    def connect(self, journal: DurableJournal) -> None:
        """Let the writer know the journal, where it must."""

    def older(self) -> str:
        """Return why this must be an older copy; nothing if it need not be."""
        return older_copy(self.marks, self.entries, self.totals, self.last)

    def _seal(self) -> Seal:
        key = self.keys.epoch(self.totals.epoch, self.totals.key)
        if key is None:
            raise StoreFailed(
                f"the key of epoch {self.totals.epoch} is gone, and with it all that this file "
                "holds. If it is an older copy, go on with the file that is in use; else the "
                "oracle is lost."
            )
        return Seal(key, self.oracle, self.totals.epoch)


@claim("REPLICAS")
class _Shared(_Opened):
    """An oracle that is being opened by one more replica, in a turn of its own."""

    home: Any  # a PostgresHome: its module is imported only where one is

    def begin(self) -> Life:
        life = Life(self.keys, new_life(), self.home.identity())
        self.home.join(life.name)
        self.head = self.home.take_turn()
        self.moved = not life.is_home
        return life

    def old_pieces(self, first: int, totals: Totals) -> Sweep:
        return super().old_pieces(first, totals)._replace(epoch=totals.epoch)

    def older(self) -> str:
        elsewhere = "its keys were last used with another server, database or timeline"
        return super().older() or (elsewhere if self.moved else "")

    def make_writer(self, *given: Any) -> Writer:
        from cumae.store.replicas import SharedWriter  # noqa: PLC0415 - needs PostgreSQL

        self.shared_writer = SharedWriter(self.home, self.head, *given)
        return self.shared_writer

    def connect(self, journal: DurableJournal) -> None:
        own, estimator = weakref.proxy(journal), self.estimator  # its finaliser holds the writer
        self.shared_writer.learn = lambda *given: own.learn(*given, estimator=estimator)


@claim("STORE")
def take_alone(event: Event, state: State, journal: DurableJournal) -> None:
    """Record an event, apply it, and commit it, before anybody is answered."""
    journal.begin()
    journal.record(event)
    event.apply(state)
    journal.commit(journal.end())
