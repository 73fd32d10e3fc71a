"""Oracles in files: how one is made, opened, looked at, copied and destroyed."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cumae.claims import claim
from cumae.errors import CumaeError, InvalidParameter, LiveState, StoreFailed
from cumae.learners.base import Learner
from cumae.predictors.state import State
from cumae.predictors.stateful import StatefulPredictor
from cumae.privacy import Budget, Guarantee
from cumae.store.accounts import ACCOUNT, AccountLedger, create_account
from cumae.store.counting import Counting, answered_again, counting_of
from cumae.store.journal import DurableJournal, Moved, phase_event
from cumae.store.keys import (
    KEY_BYTES,
    ORACLE,
    KeyFolder,
    KeyStore,
    Mark,
    keys_for,
    sync_folder,
    take_lock,
)
from cumae.store.ledger import LedgerEntry, Totals, first_hash, following, walk
from cumae.store.sealed import HiddenIds, Seal, arrays_from_bytes, arrays_to_bytes, from_bytes
from cumae.store.sqlite import Blob, SqliteFile, Transaction, remove_files
from cumae.store.writer import ANSWERED, MERGE, SNAPSHOT, Writer

PUBLISHED = "published"  # the kind of blob that holds a learner


# Making one


def save_state(state: Any, path: str | Path, command: str | None = None) -> Moved:
    """Write a state to a new file; return the journal for the predictor that it is taken from.

    Parameters
    ----------
    state : State
        What the predictor remembers.
    path : str or Path
        Where to; there must be no file yet.
    command : str, or None
        What keeps the keys; None for a folder beside the file.
    """
    counting = counting_of(state)
    with _New(Path(path), command) as made:
        hide = HiddenIds(made.oracle_key)
        arrays = counting.hidden(hide).to_arrays()
        content = arrays_to_bytes(arrays)
        made.write(state.kind, state.fitted.guarantee, content, SNAPSHOT, counting)
    return Moved(state, str(path))


def save_learner(learner: Any, path: str | Path, command: str | None = None) -> None:
    """Write a published learner to a new file; it is never charged.

    Parameters
    ----------
    learner : Learner
        A fitted one.
    path : str or Path
        Where to; there must be no file yet.
    command : str, or None
        What keeps the keys; None for a folder beside the file.
    """
    content = json.dumps(learner.to_dict(), allow_nan=False).encode()
    with _New(Path(path), command) as made:
        made.write(type(learner).__name__, learner.guarantee_, content, PUBLISHED, None)


def save_account(
    account: dict[str, Any], path: str | Path, command: str | None = None
) -> AccountLedger:
    """Write an account to a new file, and return what reads and writes it.

    Parameters
    ----------
    account : dict
        What ``Budget`` stores.
    path : str or Path
        Where to; there must be no file yet.
    command : str, or None
        What keeps the mark; None for a folder beside the file.
    """
    with _New(Path(path), command) as made:
        return create_account(account, made.path, made.keys)


class _New:
    """The keys and the file of a new oracle; if anything fails, nothing is left of them."""

    def __init__(self, path: Path, command: str | None) -> None:
        self.path = path.resolve()
        if not self.path.parent.is_dir():
            raise InvalidParameter(f"path={str(path)!r}: there is no such folder.")
        if self.path.exists():
            raise InvalidParameter(
                f"path={str(path)!r} exists already; go on with it by cumae.open, or give another."
            )
        self.keys: KeyStore = keys_for(self.path, command)
        if isinstance(self.keys, KeyFolder):
            KeyFolder.make(self.keys.folder)
        elif self.keys.names():
            raise InvalidParameter("the command for keys has keys already; they are another's.")
        self.oracle, self.oracle_key = secrets.token_hex(16), os.urandom(KEY_BYTES)

    def __enter__(self) -> Self:
        return self

    def write(
        self,
        kind: str,
        guarantee: Guarantee,
        content: bytes,
        form: str,
        counting: Counting | None,
    ) -> None:
        """Write keys, then the file, then the mark."""
        sync_folder(self.path.parent)  # the folder of the keys is in it
        self.keys.put(ORACLE, self.oracle_key)
        seal = Seal(self.keys.make_epoch(1), self.oracle, 1)
        made = {"event": "made", "kind": kind, "guarantee": guarantee.to_dict()}
        empty = {"event": "phase", "phase": 1, "releases": 0, "used": 0, "cost": None, "count": 0}
        begun = empty if counting is None else phase_event(counting)
        one = following(0, first_hash(self.oracle), made)
        answered = 0 if counting is None else counting.state.answered
        facts = {**begun, "epoch": 1, "blob": 1, "count": answered}
        two = following(one.number, one.hash, facts)
        blob = Blob(1, 1, form, seal.close(content, form, 1))
        meta = {"oracle": self.oracle, "kind": kind}
        first = Transaction([one, two], [blob], meta=meta)
        SqliteFile.create(self.path, first).close()
        used = 0 if counting is None else counting.used
        self.keys.write_mark(Mark(self.oracle, 1, used, two.number, two.hash.hex()))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            return
        remove_files(self.path)
        with suppress(OSError, CumaeError):  # what failed once may fail again
            self.keys.destroy()
        if isinstance(self.keys, KeyFolder):
            shutil.rmtree(self.keys.folder, ignore_errors=True)


# Opening one


def open(  # noqa: A001 - cumae.open is its name
    path: str | Path,
    *,
    estimator: Any = None,
    keys: str | None = None,
    accept_rollback: bool = False,
) -> Any:
    """Return the oracle in a file, ready to answer.

    One process has it open at a time. ``close`` lets go of it, and so does the end of the process.

    Parameters
    ----------
    path : str or Path
        What ``save_to`` was given.
    estimator : classifier, Pipeline or ConceptClass, a dict of those, or None
        As in :func:`cumae.predictors.state.restore`: needed if it is none of those that can be
        written out.
    keys : str, or None
        The command that keeps the keys, if ``save_to`` was given one.
    accept_rollback : bool
        Whether to go on if the file is an older copy: what may have been used since is charged,
        and the ledger says so.

    Returns
    -------
    Predictor, Learner or Budget
        Of the stored class. A learner is published, and is never charged. Several processes may
        have an account open.

    Raises
    ------
    InvalidParameter
        If it is no oracle, or has a newer format.
    LiveState
        If another process has it open.
    StoreFailed
        If it was damaged, others can read it, keys are missing, or it is an older copy.
    """
    wanted = Path(path).resolve()
    with SqliteFile(wanted, reading=True) as looked_at:
        meta = looked_at.meta()
    found = _keys_of(wanted, keys)
    if meta["kind"] == ACCOUNT:
        return Budget.kept_in(AccountLedger(wanted, found))
    lock = take_lock(found.lock_file)
    try:
        file = SqliteFile(wanted)
        try:
            return _Opened(file, found, meta["oracle"], lock).predictor(estimator, accept_rollback)
        except BaseException:
            file.close()
            raise
    except BaseException:
        lock.close()
        raise


def _keys_of(path: Path, command: str | None) -> KeyStore:
    keys = keys_for(path, command)
    if isinstance(keys, KeyFolder):
        keys.check()
    return keys


@claim("STORE")
class _Opened:
    """A file that is being opened, with its keys."""

    def __init__(self, file: SqliteFile, keys: KeyStore, oracle: str, lock: Any) -> None:
        self.file, self.keys, self.oracle, self.lock = file, keys, oracle, lock
        self.entries = file.entries()
        self.totals, self.last = walk(oracle, self.entries, recompute=False)
        key, mark = keys.get(ORACLE), keys.read_mark()
        if key is None or mark is None:
            raise StoreFailed(
                "the oracle's own key or its high-water mark is not among the keys, so that nobody "
                "knows who has a row and what was used; it cannot go on."
            )
        if mark.oracle != oracle:
            raise StoreFailed("these keys belong to another oracle; give those of this one.")
        self.oracle_key, self.mark = key, mark

    def predictor(self, estimator: Any, accept_rollback: bool) -> Any:
        older = self._older()
        if older and not accept_rollback:
            raise StoreFailed(
                f"this file is an older copy ({older}). Going on with it charges "
                f"{max(0, self.mark.high - self.totals.used):,} answers that may have been given "
                "since. Put the newer file back, or open it with accept_rollback=True."
            )
        seal = self._seal()
        blobs = list(self.file.blobs())
        if not blobs or blobs[-1].number != self.totals.blob:
            raise StoreFailed(
                "the file does not hold all that its ledger names; it was damaged or edited."
            )
        first = seal.open(blobs[0].parts, blobs[0].kind, blobs[0].number)
        if blobs[0].kind == PUBLISHED:
            self.file.close()
            self.lock.close()
            return Learner.from_dict(json.loads(first))
        state = State.from_arrays(arrays_from_bytes(first), estimator)
        counting = self._replayed(state, seal, blobs)
        if counting.used != self.totals.used:
            raise StoreFailed("the ledger and the state disagree about what was used.")
        self.keys.keep_epoch(self.totals.epoch)
        n_entries = len(self.entries)
        writer = Writer(
            self.file,
            self.keys,
            self.oracle,
            self.totals,
            self.last,
            self.mark,
            seal,
            n_entries,
        )
        hide = HiddenIds(self.oracle_key)
        counting.know_ids(hide)
        reader = SqliteFile(self.file.path, reading=True)
        journal = DurableJournal(state, writer, hide, reader, self.lock)
        if self.mark.epoch < self.totals.epoch:  # no answer of this epoch has left
            writer.settle()
        charge = writer.mark.high - counting.used
        if older or charge > 0:
            journal.charged(max(0, charge), "rollback" if older else "restarted")
        elif len(blobs) > 2 * MERGE:
            journal.compacted()
        kinds = {kind.__name__: kind for kind in _descendants(StatefulPredictor)}
        return kinds[state.kind].from_state(state, journal)

    def _older(self) -> str:
        """Return why the file must be an older copy; nothing if it need not be."""
        mark = self.mark
        if mark.epoch > self.totals.epoch:
            raise StoreFailed(
                f"this file is an older copy, from before epoch {mark.epoch} began. What it holds "
                "was used up then, and its keys are destroyed; it can never go on. Go on with the "
                "file that is in use."
            )
        if mark.number > self.last.number:
            return f"it has {self.last.number} ledger entries, and there were {mark.number}"
        hashes = {number: known for number, _, known in self.entries}
        if mark.number in hashes and hashes[mark.number].hex() != mark.head:
            return f"its ledger is not the one that was in use at entry {mark.number}"
        return ""

    def _seal(self) -> Seal:
        key = self.keys.epoch(self.totals.epoch)
        if key is None:
            raise StoreFailed(
                f"the key of epoch {self.totals.epoch} is gone, and with it all that this file "
                "holds. If it is an older copy, go on with the file that is in use; else the "
                "oracle is lost."
            )
        return Seal(key, self.oracle, self.totals.epoch)

    def _replayed(self, state: Any, seal: Seal, blobs: list[Blob]) -> Counting:
        """Apply to a state what was recorded since."""
        counting, before = counting_of(state), blobs[0].number
        for blob in blobs[1:]:
            record = from_bytes(seal.open(blob.parts, blob.kind, blob.number))
            if record.pop("after") != before:
                raise StoreFailed("a part of the file is missing; it was damaged or edited.")
            before = blob.number
            if blob.kind == ANSWERED:
                answered_again(counting, record)
            elif blob.kind == "supplied":
                state.waiting.append(record["rows"])
            elif blob.kind == "labelled":
                state.labelled.append((record["rows"], record["weights"]))
                state.admission.seen.update(record["users"].tolist() if "users" in record else [])
            else:
                state.label_requests(record["requests"].tolist(), record["weights"])
        return counting


def _descendants(kind: Any) -> list[Any]:
    found: list[Any] = []
    for child in kind.__subclasses__():
        found += [child, *_descendants(child)]
    return found


# Looking at one


@dataclass(frozen=True)
class Status:
    """What can be said about an oracle without its keys.

    Parameters
    ----------
    path : Path
        The file.
    totals : Totals
        What its ledger adds up to.
    last : LedgerEntry
        The last ledger entry.
    n_entries : int
        Entries from the last checkpoint on.
    n_bytes : int
        Size on the disk, with SQLite's log.
    in_use : bool
        Whether a process has it open.
    """

    path: Path
    totals: Totals
    last: LedgerEntry
    n_entries: int
    n_bytes: int
    in_use: bool

    @property
    def guarantee(self) -> Guarantee:
        """What was promised."""
        return Guarantee.from_dict(self.totals.guarantee)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        totals = self.totals
        return {
            "path": str(self.path),
            "kind": totals.kind,
            "guarantee": totals.guarantee,
            "phase": totals.phase,
            "epoch": totals.epoch,
            "answers": totals.answers,
            "releases": totals.releases,
            "used": totals.used,
            "payments": totals.payments,
            "charged_without_answer": totals.charged,
            "rollbacks": totals.rollbacks,
            "epsilon_recomputed": repr(totals.epsilon),
            "ledger": {"entries": self.last.number, "head": self.last.hash.hex()},
            "bytes": self.n_bytes,
            "in_use": self.in_use,
        }


def status(path: str | Path, *, keys: str | None = None) -> Status:
    """Return what an oracle's file says, with its ledger verified; it may be in use.

    Parameters
    ----------
    path : str or Path
        The file.
    keys : str, or None
        The command that keeps the keys, if there is one.

    Raises
    ------
    StoreFailed
        If the ledger does not fit.
    """
    wanted = Path(path).resolve()
    with SqliteFile(wanted, reading=True) as file:
        entries = file.entries()
        totals, last = walk(file.meta()["oracle"], entries)
    beside = [wanted.with_name(wanted.name + ending) for ending in ("", "-wal", "-shm")]
    size = sum(one.stat().st_size for one in beside if one.exists())
    lock_file = keys_for(wanted, keys).lock_file
    return Status(wanted, totals, last, len(entries), size, _in_use(lock_file))


def _in_use(lock_file: Path) -> bool:
    if not lock_file.exists():
        return False
    try:
        take_lock(lock_file).close()
    except LiveState:
        return True
    return False


def backup(path: str | Path, copy: str | Path) -> None:
    """Write a copy of an oracle's file, also while it is in use; the keys are not copied.

    Parameters
    ----------
    path : str or Path
        The file.
    copy : str or Path
        Where to; there must be no file yet.
    """
    target = Path(copy).resolve()
    if target.exists():
        raise InvalidParameter(f"copy={str(copy)!r} exists already; give another path.")
    with SqliteFile(Path(path).resolve(), reading=True) as file:
        try:
            file.backup(target)
        except BaseException:
            remove_files(target)
            raise


@claim("STORE")
def destroy(path: str | Path, *, keys: str | None = None) -> None:
    """Destroy an oracle: its keys first, so that no copy of the file can be read any more.

    Parameters
    ----------
    path : str or Path
        The file.
    keys : str, or None
        The command that keeps the keys, if there is one.

    Raises
    ------
    LiveState
        If another process has it open.
    """
    wanted = Path(path).resolve()
    with SqliteFile(wanted, reading=True):
        pass  # refuses what is no oracle
    try:
        found: KeyStore | None = _keys_of(wanted, keys)
    except CumaeError:
        found = None  # they are gone already
    if found is not None:
        lock = take_lock(found.lock_file)
        try:
            found.destroy()
        finally:
            lock.close()
    remove_files(wanted)
    sync_folder(wanted.parent)


def rotate(path: str | Path, *, estimator: Any = None, keys: str | None = None) -> None:
    """Encrypt an oracle anew under a new key, and destroy the old one; retries end.

    Parameters
    ----------
    path : str or Path
        The file.
    estimator : classifier, Pipeline or ConceptClass, a dict of those, or None
        As in ``open``.
    keys : str, or None
        The command that keeps the keys, if there is one.
    """
    predictor = open(path, estimator=estimator, keys=keys)
    if not isinstance(predictor, StatefulPredictor):
        raise InvalidParameter(
            f"a {type(predictor).__name__} needs no new key: nothing in its file is secret."
        )
    try:
        predictor.rotate_key()
    finally:
        predictor.close()
