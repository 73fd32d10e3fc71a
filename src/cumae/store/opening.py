"""How an oracle is opened: what its tables, its keys and its marks say must fit together."""

from __future__ import annotations

import json
import secrets
from functools import partial
from typing import Any

from cumae.claims import claim
from cumae.errors import StoreFailed
from cumae.learners.base import Learner
from cumae.predictors.stateful import StatefulPredictor
from cumae.store.counting.base import Counting
from cumae.store.counting.records import rebuilt
from cumae.store.homes.home import Blob, Home, Place
from cumae.store.journal import DurableJournal
from cumae.store.keys import HOME, ORACLE, KeyStore
from cumae.store.ledger import walk
from cumae.store.sealed import HiddenIds, Seal
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
            return kind(home, keys, lock, estimator, accept_rollback=accept_rollback).model()
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
        self.oracle = home.meta()["oracle"]
        self.begin()
        self.entries = home.entries()
        self.totals, self.last = walk(self.oracle, self.entries, recompute=False)
        key, self.marks = keys.get(ORACLE), keys.read_marks()
        if key is None or not self.marks:
            raise StoreFailed(
                "the oracle's own key or its high-water mark is not among the keys, so that nobody "
                "knows who has a row and what was used; it cannot go on."
            )
        if any(mark.oracle != self.oracle for mark in self.marks.values()):
            raise StoreFailed("these keys belong to another oracle; give those of this one.")
        self.hide = HiddenIds(key)

    def begin(self) -> None:
        """Do what comes before anything is read."""

    @property
    def high(self) -> int:
        """How many releases of the phase may have been used, by what the marks say."""
        of_epoch = [one.high for one in self.marks.values() if one.epoch == self.totals.epoch]
        return max(of_epoch, default=0)

    def model(self) -> Any:
        """Return the predictor or learner, ready to answer."""
        older = self.older()
        if older and not self.accept_rollback:
            raise StoreFailed(
                f"this file is an older copy ({older}). Going on with it charges "
                f"{max(0, self.high - self.totals.used):,} answers that may have been given "
                "since. Put the newer file back, or open it with accept_rollback=True."
            )
        seal = self._seal()
        blobs = list(self.home.blobs())
        if not blobs or blobs[-1].number != self.totals.blob:
            raise StoreFailed(
                "the file does not hold all that its ledger names; it was damaged or edited."
            )
        if blobs[0].kind == PUBLISHED:
            return self._learner(seal, blobs[0])
        counting = rebuilt(seal, blobs, self.estimator)
        if counting.used != self.totals.used:
            raise StoreFailed("the ledger and the state disagree about what was used.")
        self.keys.keep_epoch(self.totals.epoch, self.totals.key)
        counting.know_ids(self.hide.known_as)
        journal = self.journal(counting, seal)
        charge = self.high - counting.used
        if older or charge > 0:
            journal.charged(max(0, charge), "rollback" if older else "restarted")
        elif len(blobs) > 2 * MERGE:
            journal.compacted()
        self.end(journal)
        kinds = {kind.__name__: kind for kind in _descendants(StatefulPredictor)}
        return kinds[counting.state.kind].from_state(counting.state, journal)

    def _learner(self, seal: Seal, blob: Blob) -> Any:
        content = seal.open(blob.parts, blob.kind, blob.number)
        self.home.close()
        if self.lock is not None:
            self.lock.close()
        return Learner.from_dict(json.loads(content))

    def journal(self, counting: Counting, seal: Seal) -> DurableJournal:
        """Return what will record all changes of a state."""
        mark = next(iter(self.marks.values()))
        given = (self.home, self.keys, self.oracle, self.totals, self.last, mark, seal)
        writer = Writer(*given, len(self.entries))
        reader = self.home.for_reading()
        if mark.epoch < self.totals.epoch:  # no answer of this epoch has left
            writer.settle()
        return DurableJournal(counting.state, writer, self.hide, reader, self.lock)

    def end(self, journal: DurableJournal) -> None:
        """Do what comes after the state was charged."""

    def older(self) -> str:
        """Return why this must be an older copy; nothing if it need not be."""
        newest = max(mark.epoch for mark in self.marks.values())
        if newest > self.totals.epoch:
            raise StoreFailed(
                f"this file is an older copy, from before epoch {newest} began. What it holds "
                "was used up then, and its keys are destroyed; it can never go on. Go on with the "
                "file that is in use."
            )
        hashes = {number: known.hex() for number, _, known in self.entries}
        for mark in self.marks.values():
            if mark.number > self.last.number:
                return f"it has {self.last.number} ledger entries, and there were {mark.number}"
            if hashes.get(mark.number, mark.head) != mark.head:
                return f"its ledger is not the one that was in use at entry {mark.number}"
        return ""

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

    def begin(self) -> None:
        self.replica = secrets.token_hex(8)
        self.home.join(self.replica)
        self.head = self.home.take_turn()
        self.moved = self.keys.get(HOME) != self.home.identity()
        if self.moved and self.accept_rollback:
            # Before the marks are read: who writes one from now on elsewhere sees it.
            self.keys.put(HOME, self.home.identity())

    def older(self) -> str:
        elsewhere = "its keys were last used with another server, database or timeline"
        return super().older() or (elsewhere if self.moved else "")

    def journal(self, counting: Counting, seal: Seal) -> DurableJournal:
        from cumae.store.replicas import SharedWriter  # noqa: PLC0415 - needs PostgreSQL

        given = (self.home, self.keys, self.oracle, self.totals, self.last, seal)
        writer = SharedWriter(*given, len(self.entries), self.head, self.replica)
        reader = self.home.for_reading()
        found = DurableJournal(counting.state, writer, self.hide, reader, None)
        writer.learn = partial(found.learn, estimator=self.estimator)
        self.writer = writer
        return found

    def end(self, journal: DurableJournal) -> None:
        del journal
        self.writer.opened(self.marks)


def _descendants(kind: Any) -> list[Any]:
    found: list[Any] = []
    for child in kind.__subclasses__():
        found += [child, *_descendants(child)]
    return found
