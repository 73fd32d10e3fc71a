"""Several processes that answer from one oracle: they take turns, and each learns what others did.

A replica begins a turn by a lock, reads what was recorded since its last one, and applies it to its
own state. So whoever answers has the state of the last ledger entry, as if there were one process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from cumae.claims import claim
from cumae.errors import CumaeError, LiveState, StoreFailed
from cumae.store.homes.home import Blob, Transaction
from cumae.store.homes.postgres import Head, PostgresHome
from cumae.store.keys import Life, mark_of
from cumae.store.ledger import LedgerEntry, Totals, walk
from cumae.store.pieces import WHOLE, Piece, of_epoch
from cumae.store.sealed import Seal
from cumae.store.writer import CLOSED, Writer

TURN_SECONDS = 0.1  # after which others may go on, though more is asked here
# Applies pieces to the state: those after a number, or all of them for None. Returns them.
Learn = Callable[[Seal, list[Blob], int | None], list[Piece]]


@claim("REPLICAS")
class SharedWriter(Writer):
    """A writer that takes turns with those of other replicas.

    A turn lasts from a change until all that wait are committed. While some of them are being
    written, others can be made. It is taken when the writer is made, and ended by ``opened``.

    Parameters
    ----------
    home : PostgresHome
        Where to; it has the turn.
    head : Head
        The head as it was read in this turn.
    life, oracle, oracle_key, totals, last, seal, n_entries : object
        As in ``Writer``.
    """

    home: PostgresHome
    learn: Learn  # set when there is a journal

    def __init__(
        self,
        home: PostgresHome,
        head: Head,
        life: Life,
        oracle: str,
        oracle_key: bytes,
        totals: Totals,
        last: LedgerEntry,
        seal: Seal,
        n_entries: int,
    ) -> None:
        super().__init__(home, life, oracle, oracle_key, totals, last, seal, n_entries)
        self._head = head
        self._gate = threading.RLock()  # of what a turn is made of
        self._has_turn, self._began = True, time.monotonic()
        self.inside.acquire()  # until ``opened``

    # Turns

    def begin_turn(self) -> None:
        """Return when no other replica changes the oracle, and the state is fresh.

        Whoever calls this holds ``inside``, until the change is made; then ``commit`` ends the
        turn.
        """
        if self._has_turn and time.monotonic() > self._began + TURN_SECONDS:
            super().commit(self.asked)  # others want to answer, too
            self._end_turn_if_done(changing=False)
        with self._gate:
            self.check()
            if not self._has_turn:
                self._begin_turn()

    @claim("REPLICAS")
    def _begin_turn(self) -> None:
        """Wait for a turn, and learn what others did; nothing waits to be committed here."""
        try:
            head = self.home.take_turn()
            if head != self._head:
                self._catch_up(head)
            self._head, self._has_turn, self._began = head, True, time.monotonic()
        except BaseException as error:
            self._end_session(error)  # and so the turn, if it had begun
            raise

    def _end_turn_if_done(self, *, changing: bool | None = None) -> None:
        """End the turn, unless a change is being made, or waits to be committed.

        ``changing`` tells whether one is being made; None if ``inside`` tells.
        """
        try:
            if not self._has_turn and self.failed is None:
                return  # and do not wait for a thread that waits for the next turn
            with self._gate:
                changing = self.inside.locked() if changing is None else changing
                if self.failed is not None:
                    self.home.close()  # which ends the turn as well; nobody begins another one
                elif self._has_turn and not (changing or self._pending or self._writing.locked()):
                    self._has_turn = False
                    self.home.end_turn()
        except BaseException as error:  # nobody knows whether it has ended: the session ends it
            self._end_session(error)
            if not isinstance(error, StoreFailed):  # then all is committed, and answers may leave
                raise

    def _end_session(self, error: BaseException) -> None:
        try:
            self.fail(error)
        finally:  # also if somebody interrupts once more
            self.home.close()

    @claim("REPLICAS")
    def _catch_up(self, head: Head) -> None:
        """Apply what other replicas recorded since the last turn of this one."""
        if head.tables != self._head.tables or head.number <= self.last.number:
            raise StoreFailed(
                "the database was put back, or written by something else, while this replica had "
                "it open; open it again."
            )
        entries = self.home.entries(after=self.last.number)
        cut = not entries or entries[0][0] > self.last.number + 1  # older ones became a checkpoint
        known = None if cut else (self.totals, self.last)
        own = self.oracle_key
        totals, last = walk(self.oracle, entries, recompute=False, known=known, oracle_key=own)
        if (last.number, last.hash) != (head.number, head.hash):
            raise StoreFailed("the ledger and its head disagree; the database was edited.")
        seal = self.seal
        if totals.epoch != self.totals.epoch:
            key = self.keys.epoch(totals.epoch, totals.key)
            if key is None:
                raise StoreFailed(f"the key of epoch {totals.epoch} is not among the keys.")
            seal = Seal(key, self.oracle, totals.epoch)
        self._take_over(totals, seal)
        self._n_entries = len(entries) if cut else self._n_entries + len(entries)
        self.totals, self.last, self.seal = totals, last, seal

    def _take_over(self, totals: Totals, seal: Seal) -> None:
        """Apply new pieces of the state; all of them if a snapshot or a merged one is there."""
        known = self.totals.blob
        if totals.blob == known:
            return
        blobs = list(self.home.blobs(after=known))
        whole = seal is not self.seal or any(blob.kind == WHOLE for blob in blobs)
        try:
            pieces = [] if whole else self.learn(seal, blobs, known)
        except StoreFailed:  # pieces were merged, some of which are known here already
            whole = True
        if whole:
            blobs = of_epoch(self.home.blobs(), totals.epoch)
            pieces = self.learn(seal, blobs, None)
            self._small.clear()
            self.give_up_ahead()
        if not blobs or blobs[-1].number != totals.blob:
            raise StoreFailed("the database does not hold all that its ledger names.")
        for piece in pieces:
            self.remember(piece)

    # Commits

    @claim("REPLICAS")
    def commit(self, ticket: int) -> None:
        try:
            super().commit(ticket)
        finally:
            self._end_turn_if_done()

    @claim("REPLICAS")
    def _commit(self, transaction: Transaction) -> None:
        session = self.home
        super()._commit(transaction)
        if self.home is session:
            self._head = session.written
        else:  # it was committed all the same, and its answers may leave; but the turn is lost
            self.fail(StoreFailed("the connection to the database was lost."))

    # Opening and closing

    @claim("REPLICAS")
    def opened(self, marks: Iterable[str]) -> None:
        super().opened(marks)
        self.inside.release()
        self._end_turn_if_done()

    @claim("REPLICAS")
    def has_ended(self, mark: str) -> bool:
        return mark != self.life.mark_name and self.home.is_gone(mark.removeprefix(mark_of("")))

    def close(self) -> None:
        try:
            with suppress(StoreFailed):
                self.commit(self.asked)
        finally:
            with self._gate:
                try:
                    if self.failed is None:
                        with suppress(OSError, CumaeError):  # an opening charges up to the mark
                            self.settle()
                finally:
                    self.failed = self.failed or LiveState(CLOSED)
                    self.home.close()
