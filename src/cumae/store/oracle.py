"""Oracles in files and databases: how one is made, opened, looked at, copied and destroyed."""

from __future__ import annotations

import gc
import json
import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, Self

from cumae.claims import claim
from cumae.codec import FORMAT
from cumae.errors import CumaeError, InvalidParameter, LiveState, MissingPackage, StoreFailed
from cumae.predictors.answering.counter import Counter
from cumae.predictors.answering.events import Whole
from cumae.predictors.answering.journal import Journal
from cumae.predictors.state import State
from cumae.predictors.stateful import StatefulPredictor
from cumae.privacy import Budget, Guarantee
from cumae.privacy.validation import plain_number
from cumae.store.accounts import AccountLedger, create_account
from cumae.store.homes.home import SHARED, Blob, Place, Transaction
from cumae.store.homes.json_files import written_as_json
from cumae.store.homes.places import place_of
from cumae.store.homes.sqlite import FilePlace, NoDatabase, remove_files
from cumae.store.journal import made_event, phase_event, prior_event
from cumae.store.keys import (
    FIRST_LIFE,
    KEY_BYTES,
    ORACLE,
    KeyFolder,
    KeyStore,
    Mark,
    mark_of,
    new_key_name,
)
from cumae.store.ledger import ACCOUNT, LedgerEntry, first_hash, following
from cumae.store.opening import PUBLISHED, opened
from cumae.store.pieces import Piece, sealed_piece
from cumae.store.sealed import Seal

# Making one


class MovedJournal(Journal):
    """The journal of a predictor that lives in a file now: it refuses everything.

    Parameters
    ----------
    path : str
        Where the predictor went.
    """

    durable = True

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def check(self) -> None:
        raise LiveState(
            f"this predictor lives in {self._path} now; go on with cumae.open, because two "
            "copies would both spend the same budget."
        )

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        self.check()
        raise AssertionError("check refuses")

    begin = record = known = settled = rotated = _refuse


def save_state(counter: Counter, path: str | Path, command: str | None) -> None:
    """Move a predictor to a new place.

    Parameters
    ----------
    counter : Counter
        That of the predictor in memory; nobody else uses it meanwhile.
    path : str or Path
        A file that does not exist yet, or an address.
    command : str, or None
        What keeps the keys, a command or a folder; None for a folder beside the file.
    """
    counter.journal.check_copy()
    state, before = counter.state, counter.journal

    def take(journal: Journal) -> None:
        counter.journal = journal

    with _New(path, command, state.secret) as made:
        made.write_state(state.in_a_home())
        made.hand_over(take, MovedJournal(made.place.name), before)


def save_learner(learner: Any, path: str | Path, command: str | None = None) -> None:
    """Write a published learner to a new place; it is never charged.

    Parameters
    ----------
    learner : Learner
        A fitted one.
    path : str or Path
        A file that does not exist yet, or an address.
    command : str, or None
        What keeps the keys, a command or a folder; None for a folder beside the file.
    """
    content = json.dumps(learner.to_dict(), allow_nan=False).encode()
    with _New(path, command) as made:
        made.write_published(type(learner).__name__, learner.guarantee_, content)
        made.write_mark()


def save_account(
    account: dict[str, Any],
    path: str | Path,
    command: str | None,
    take: Callable[[AccountLedger | None], None],
) -> None:
    """Move an account to a new file.

    Parameters
    ----------
    account : dict
        What ``Budget`` stores.
    path : str or Path
        Where to; there must be no file yet.
    command : str, or None
        What keeps the mark; None for a folder beside the file.
    take : callable
        Lets the account in memory pay in the file alone, before that is valid; or in memory, for
        None.
    """
    with _New(path, command) as made:
        if not isinstance(made.place, FilePlace):
            raise InvalidParameter(f"path={made.place.name!r}: accounts live in files only.")
        made.mark = create_account(account, made.place.path, made.oracle)
        made.hand_over(take, AccountLedger(made.place.path, made.keys), None)


def check_new_keys(path: str | Path, command: str | None = None) -> None:
    """Refuse what cannot keep the keys of a new oracle; nothing is written.

    Parameters
    ----------
    path : str or Path
        Where the oracle will be.
    command : str, or None
        What will keep the keys, as in ``save_state``.
    """
    keys: KeyStore = place_of(path).keys(command)
    if not isinstance(keys, KeyFolder):
        _refuse_used(keys)
    elif keys.folder.exists() or not os.access(keys.folder.parent, os.W_OK):
        raise InvalidParameter(
            f"the folder {keys.folder} for keys exists already, or cannot be made; give another."
        )


def _refuse_used(keys: KeyStore) -> None:
    if keys.names():
        raise InvalidParameter("the command for keys has keys already, of another oracle.")


@claim("STORE", "BUDGET")
class _New:
    """The keys and the tables of a new oracle, which nobody can open before the mark is written.

    If anything fails before that, nothing is left of them. What may be valid is left alone.
    """

    def __init__(self, path: str | Path, command: str | None, secret: bytes | None = None) -> None:
        self.place = place_of(path)
        self.keys: KeyStore = self.place.keys(command)
        self.place.check_new()
        if isinstance(self.keys, KeyFolder):
            KeyFolder.make(self.keys.folder)
        else:
            _refuse_used(self.keys)
        self.oracle, self.oracle_key = secrets.token_hex(16), secret or os.urandom(KEY_BYTES)
        self.mark: Mark | None = None  # what makes it valid, once all else is there
        self._marking = False

    def __enter__(self) -> Self:
        return self

    def write_state(self, state: State) -> None:
        """Write keys, and then the tables, with a whole state in them."""
        prior = prior_event(state)
        if prior is not None:
            prior["trust"] = plain_number(state.fitted.guarantee.epsilon)
        begun = {**phase_event(state), "count": state.answered}

        def piece(head: bytes, seal: Seal) -> Blob:
            return sealed_piece(Piece(0, 1, Whole(state)), head, seal)

        made = made_event(state.kind, state.fitted.guarantee, state)
        self._write(made, begun, prior, piece)

    def write_published(self, kind: str, guarantee: Guarantee, content: bytes) -> None:
        """Write keys, and then the tables, with a published model in them."""
        begun = {"event": "phase", "phase": 1, "releases": 0, "used": 0, "cost": None, "count": 0}

        def piece(_: bytes, seal: Seal) -> Blob:
            return Blob(1, 1, PUBLISHED, seal.close(content, PUBLISHED, 1))

        self._write(made_event(kind, guarantee), begun, None, piece)

    def _write(
        self,
        made: dict[str, Any],
        begun: dict[str, Any],
        prior: dict[str, Any] | None,
        piece: Callable[[bytes, Seal], Blob],
    ) -> None:
        self.keys.put(ORACLE, self.oracle_key)
        named = new_key_name()
        seal = Seal(self.keys.make_epoch(1, **named), self.oracle, 1)
        said = [made] if prior is None else [made, prior]
        said.append({**begun, "epoch": 1, "blob": 1, "priors": len(said) - 1, **named})
        entries: list[LedgerEntry] = []
        for facts in said:
            before = entries[-1].hash if entries else first_hash(self.oracle)
            entries.append(following(len(entries), before, facts))
        last, meta = entries[-1], {"oracle": self.oracle, "kind": made["kind"]}
        self.place.create(Transaction(entries, [piece(last.hash, seal)], meta=meta))
        self.place.bind(self.keys)
        used, phase = begun["used"], begun["phase"]
        self.mark = Mark(self.oracle, 1, used, last.number, last.hash.hex(), FORMAT, phase)

    def hand_over(self, take: Callable[[Any], None], moved: Any, before: Any) -> None:
        """Let the object in memory refuse; then let the new place be valid.

        Parameters
        ----------
        take : callable
            Tells the object in memory where it lives.
        moved, before : object
            Its new place, and its old one, in case the new one surely never was valid.
        """
        try:
            take(moved)
            self.write_mark()
        except BaseException:
            if self._never_valid():
                take(before)
            raise

    def write_mark(self) -> None:
        """Let the new place be valid."""
        if self.mark is None:
            raise AssertionError("the tables come first")
        self._marking = True
        self.keys.write_mark(self.mark, mark_of(FIRST_LIFE))

    def _never_valid(self) -> bool:
        """Tell whether surely no mark was written; a command may have written it and failed."""
        if not self._marking:
            return True
        return isinstance(self.keys, KeyFolder) and not self.keys.read_marks()

    def _has_tables(self) -> bool:
        """Tell whether the place holds tables of this very oracle."""
        with suppress(CumaeError), self.place.home(reading=True) as home:
            return home.meta().get("oracle") == self.oracle
        return False

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None or not self._never_valid():
            return
        if self._has_tables():
            self.place.remove()
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
    freeze: bool = False,
) -> Any:
    """Return the oracle in a file or at an address, ready to answer, or any other file of cumae.

    One process has the file of an oracle open at a time. At a PostgreSQL address there may be
    several, its replicas. ``close`` lets go of it, and so does the end of the process.

    Parameters
    ----------
    path : str or Path
        What ``save_to``, ``save`` or ``cumae fit -o`` was given. Models and accounts in JSON files
        need none of the other parameters.
    estimator : classifier, Pipeline or ConceptClass, a dict of those, or None
        As in :func:`cumae.predictors.state.restore`: needed if it is none of those that can be
        written out.
    keys : str, or None
        The command or the folder that keeps the keys, as ``save_to`` was given it.
    accept_rollback : bool
        Whether to go on if the file is an older copy: what may have been used since is charged,
        and the ledger says so.
    freeze : bool
        Whether Python's garbage collector leaves alone from now on all that the process has loaded
        (``gc.collect`` and ``gc.freeze``), so that its pauses get shorter. It is for a process that
        answers for long, and concerns the whole of it: give it with the last oracle that is opened,
        and close oracles when they are done.

    Returns
    -------
    Predictor, Learner, PrivateClassifier or Budget
        Of the stored class. A learner is published, and is never charged. Several processes may
        have an account open.

    Raises
    ------
    InvalidParameter
        If cumae did not write it, or it has a newer format.
    LiveState
        If another process has it open.
    StoreFailed
        If it was damaged, others can read it, keys are missing, or it is an older copy.
    """
    try:
        place = place_of(path)
        with place.home(reading=True) as looked_at:
            meta = looked_at.meta()
    except (NoDatabase, MissingPackage) as error:  # then nothing here has a lock on the file
        return written_as_json(path, error)
    found = _keys_of(place, keys)
    if isinstance(place, FilePlace) and meta["kind"] == ACCOUNT:
        model: Any = Budget.kept_in(AccountLedger(place.path, found))
    elif meta.get("home") == SHARED and not place.shared:
        raise InvalidParameter(
            f"path={place.name!r} is a copy of an oracle in PostgreSQL; put it back with cumae "
            "backup, which takes an address as well, and open it there."
        )
    else:
        model = opened(place, found, estimator=estimator, accept_rollback=accept_rollback)
    if freeze:
        gc.collect()  # what is garbage now would be kept for ever
        gc.freeze()
    return model


def load(path: str | Path) -> Any:
    """Return what a file holds that cumae wrote: a model, an account or an oracle.

    It is ``cumae.open`` with nothing but a path, under the name that goes with ``save``.

    Parameters
    ----------
    path : str or Path
        What ``save``, ``save_to`` or ``cumae fit -o`` was given.

    Returns
    -------
    Learner, PrivateClassifier, Budget or Predictor
        Of the stored class.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import cumae
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cumae.Budget(1.0, 1e-6).save(Path(folder) / "account.json")
    ...     cumae.load(Path(folder) / "account.json")
    Budget(epsilon=1.0, delta=1e-06)
    """
    return open(path)


def _keys_of(place: Place, given: str | None) -> KeyStore:
    keys = place.keys(given)
    if isinstance(keys, KeyFolder):
        keys.check()
    return keys


def backup(path: str | Path, copy: str | Path) -> None:
    """Write a copy of an oracle, also while it is in use; the keys are not copied.

    Parameters
    ----------
    path : str or Path
        The file, or the address.
    copy : str or Path
        A file that does not exist yet, or an address whose schema is empty.
    """
    source, target = place_of(path), place_of(copy)
    if isinstance(target, FilePlace) and target.path.exists():
        raise InvalidParameter(f"copy={target.name!r} exists already; give another name.")
    target.check_new()
    if isinstance(target, FilePlace):
        try:
            source.backup(target.path)
        except BaseException:
            remove_files(target.path)
            raise
        return
    with source.home(reading=True) as home:
        content = home.contents()
    if content.meta.get("home") != SHARED:
        raise InvalidParameter(
            f"copy={target.name!r}: an oracle that was made in a file stays in files; make it "
            "there by save_to."
        )
    target.create(content)


@claim("STORE")
def destroy(path: str | Path, *, keys: str | None = None) -> None:
    """Destroy an oracle: its keys first, so that no copy of the file can be read any more.

    Parameters
    ----------
    path : str or Path
        The file, or the address.
    keys : str, or None
        The command or the folder that keeps the keys, as ``save_to`` was given it.

    Raises
    ------
    LiveState
        If another process has it open.
    """
    place = place_of(path)
    with place.home(reading=True):
        pass  # refuses what is no oracle
    try:
        found: KeyStore | None = _keys_of(place, keys)
    except StoreFailed:
        found = None  # they are gone already
    if found is not None:
        lock = place.lock(found)
        try:
            found.destroy()
        finally:
            lock.close()
    place.remove()


def rotate(path: str | Path, *, estimator: Any = None, keys: str | None = None) -> None:
    """Encrypt an oracle anew under a new key, and destroy the old one; retries end.

    Parameters
    ----------
    path : str or Path
        The file, or the address.
    estimator : classifier, Pipeline or ConceptClass, a dict of those, or None
        As in ``open``.
    keys : str, or None
        The command or the folder that keeps the keys, as ``save_to`` was given it.
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
