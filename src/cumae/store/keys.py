"""Keys and the high-water mark of an oracle: all that must stay outside its file."""

from __future__ import annotations

import functools
import json
import os
import secrets
import shlex
import stat
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from cumae.claims import claim
from cumae.errors import InvalidParameter, LiveState, StoreFailed
from cumae.locks import FileLock

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

KEY_BYTES = 32
ORACLE = "oracle"  # the key under which ids are kept
MARK = "mark"  # and what the names of all marks begin with
FOLDER = "folder:"
HOME = "home"  # which life, or which of several copies of a database, may go on
FIRST_LIFE = "0"  # whose mark is written with the oracle itself
COMMAND_SECONDS = 60
TRIES_TO_READ = 3
TRIES = 10  # to take a lock, or to read marks


@dataclass(frozen=True)
class Mark:
    """The farthest point that an oracle may have reached, as its key folder remembers it.

    Parameters
    ----------
    oracle : str
        Id of the oracle.
    epoch : int
        Number of the last epoch (the time of one key) in which an answer was given; 0 if none was.
    high : int
        How many releases of its phase may have been used at most.
    number, head : int and str
        A ledger entry that the file must have, and its hash.
    format : int
        Of what the life wrote; from 3 on, each piece of the state names its ledger entry.
    phase : int
        The phase whose releases ``high`` counts: a rotated key begins an epoch within it. 0 in
        marks of older versions, for which the epoch tells.
    """

    oracle: str
    epoch: int
    high: int
    number: int
    head: str
    format: int = 2
    phase: int = 0

    @claim("STORE", "REPLICAS")
    def counts(self, epoch: int, phase: int) -> bool:
        """Tell whether ``high`` counts releases that a file of this epoch and phase has, too."""
        return self.phase == phase if self.phase else self.epoch == epoch


class KeyStore(ABC):
    """Named secrets. Once ``put`` returns, a secret survives a loss of power."""

    lock_file: Path | None  # who has the oracle open holds a lock on it

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """Return a secret; None if there is none of this name."""

    @abstractmethod
    def put(self, name: str, secret: bytes) -> None:
        """Store a secret, which replaces an older one of the same name."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Destroy a secret; it is no error if there is none."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of all secrets."""

    @abstractmethod
    def remove(self) -> None:
        """Remove what is left when all secrets are destroyed."""

    def epoch(self, number: int, key: str = "") -> bytes | None:
        """Return the key of an epoch; None if it is gone."""
        return self.get(epoch_name(number, key))

    @claim("STORE", "REPLICAS")
    def make_epoch(self, number: int, key: str = "") -> bytes:
        """Make and store the key of a new epoch, before anything is written under it.

        ``key`` is a name of its own for the key, where several may try to begin the same epoch.
        """
        made = os.urandom(KEY_BYTES)
        self.put(epoch_name(number, key), made)
        return made

    @claim("STORE", "REPLICAS")
    def keep_epoch(self, number: int, key: str = "") -> None:
        """Destroy the keys of all other epochs: of earlier ones, and of one that never began.

        A key with a name of its own may be that of a replica which others have overtaken. It then
        leaves later epochs alone.
        """
        for name in self.names():
            if not name.startswith("epoch-") or name == epoch_name(number, key):
                continue
            if not key or int(name.split("-")[1]) <= number:
                self.delete(name)

    @claim("STORE", "REPLICAS", "BUDGET")
    def read_marks(self) -> dict[str, Mark]:
        """Return all high-water marks, by their names."""
        for _ in range(TRIES):  # somebody may just be putting them together
            found = {name: self.read_mark(name) for name in self.names() if name.startswith(MARK)}
            marks = {name: mark for name, mark in found.items() if mark is not None}
            if len(marks) == len(found):
                return marks
        raise StoreFailed("others change the marks beside the keys all the time; try again later.")

    def read_mark(self, name: str) -> Mark | None:
        """Return one high-water mark; None if there is none of this name."""
        found = self.get(name)
        try:
            return None if found is None else Mark(**json.loads(found))
        except (TypeError, ValueError) as error:
            raise StoreFailed(
                "the high-water mark beside the keys is damaged, so that the budget that was "
                "used is not known; the oracle cannot go on."
            ) from error

    @claim("STORE", "REPLICAS")
    def write_mark(self, mark: Mark, name: str) -> None:
        """Store a mark. Only the life that it belongs to does so."""
        self.put(name, json.dumps(asdict(mark)).encode())

    def destroy(self) -> None:
        """Destroy all secrets: those of epochs first."""
        for name in sorted(self.names()):
            self.delete(name)
        self.remove()


def epoch_name(number: int, key: str = "") -> str:
    """Return the name of an epoch's key."""
    return f"epoch-{number}-{key}" if key else f"epoch-{number}"


def failing_keys(method: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let what a file system may raise become ``StoreFailed``, as for a folder that goes."""

    @functools.wraps(method)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return method(*args, **kwargs)
        except OSError as error:
            raise StoreFailed(
                f"the keys of this oracle cannot be read or written ({type(error).__name__}). "
                "Somebody may just be removing them; else check the disk, and open it again."
            ) from error

    return run


class KeyFolder(KeyStore):
    """Secrets in files of mode 0600, in a folder of mode 0700.

    Parameters
    ----------
    folder : Path
        The folder.
    """

    lock_file: Path

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock_file = folder / "lock"

    @classmethod
    def make(cls, folder: Path) -> KeyFolder:
        """Make a new folder; refuse one that exists."""
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            raise InvalidParameter(
                f"{folder} exists already: keys of another oracle may be in it. Give another path."
            ) from None
        return cls(folder)

    @failing_keys
    def check(self) -> None:
        """Refuse a folder that is not there, or that others can read."""
        if not self.folder.is_dir():
            raise StoreFailed(
                f"{self.folder} with the keys of this oracle is not there; without them nothing "
                "can be read, and the budget that was used is not known. If this is a copy, give "
                "it the name and the folder of the file that it was copied from."
            )
        refuse_if_others_read(self.folder)

    def _path(self, name: str) -> Path:
        return self.folder / (f"{name}.json" if name.startswith(MARK) else f"{name}.key")

    @failing_keys
    def get(self, name: str) -> bytes | None:
        try:
            return self._path(name).read_bytes()
        except FileNotFoundError:
            return None

    @claim("STORE")
    @failing_keys
    def put(self, name: str, secret: bytes) -> None:
        path = self._path(name)
        scratch = path.with_suffix(".new")
        file = os.open(scratch, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        try:
            write_all(file, secret)
            os.fsync(file)
        finally:
            os.close(file)
        scratch.rename(path)
        sync_folder(self.folder)

    @claim("STORE")
    @failing_keys
    def delete(self, name: str) -> None:
        path = self._path(name)
        if not path.exists():
            return
        if not name.startswith(MARK):  # no secret: half of one would end the oracle
            file = os.open(path, os.O_WRONLY)
            try:  # a file system that writes in place keeps nothing of it
                write_all(file, os.urandom(KEY_BYTES))
                os.fsync(file)
            finally:
                os.close(file)
        path.unlink()
        sync_folder(self.folder)

    @failing_keys
    def names(self) -> list[str]:
        return [path.stem for path in self.folder.iterdir() if path.suffix in (".key", ".json")]

    @failing_keys
    def remove(self) -> None:
        for path in [self.lock_file, *self.folder.glob("*.new")]:
            path.unlink(missing_ok=True)
        self.folder.rmdir()
        sync_folder(self.folder.parent)


class KeyCommand(KeyStore):
    """Secrets behind a command, such as the client of a key store.

    Parameters
    ----------
    command : str
        How it is called; ``get NAME``, ``put NAME``, ``delete NAME`` or ``list`` is added.
    lock_file : Path, or None
        A file beside the oracle that is locked while it is open, where it is a file.
    """

    def __init__(self, command: str, lock_file: Path | None) -> None:
        self.words = shlex.split(command)
        self.lock_file = lock_file

    def _read(self, *words: str) -> bytes:
        """Run the command to read, several times if it fails.

        A single failure of a network would else end a life, with all that is left of its phase.
        Nothing is put twice: the first try might come late, and take back what was put since.
        """
        for _ in range(TRIES_TO_READ - 1):
            with suppress(StoreFailed):
                return self._run(*words)
            time.sleep(0.1)
        return self._run(*words)

    def _run(self, *words: str, given: bytes = b"") -> bytes:
        try:
            done = subprocess.run(
                [*self.words, *words],
                input=given,
                capture_output=True,
                check=False,
                timeout=COMMAND_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StoreFailed(f"the command for keys did not run: {self.words[0]!r}.") from error
        if done.returncode:
            raise StoreFailed(
                f"the command for keys failed with exit code {done.returncode} for {words[0]!r}."
            )
        return done.stdout

    def get(self, name: str) -> bytes | None:
        try:
            found = self._run("get", name)
        except StoreFailed:
            return self._read("get", name) if name in self.names() else None
        return found if found or name in self.names() else None

    def put(self, name: str, secret: bytes) -> None:
        self._run("put", name, given=secret)

    def delete(self, name: str) -> None:
        if name in self.names():
            self._run("delete", name)

    def names(self) -> list[str]:
        return self._read("list").decode().split()

    def remove(self) -> None:
        if self.lock_file is not None:
            self.lock_file.unlink(missing_ok=True)


@claim("STORE", "REPLICAS", "BUDGET")
class Life:
    """One life of an oracle among its keys: whether it may go on, and how far it may have got.

    Whoever begins a life writes its name among the keys, and reads all marks after that. Whoever
    raises a mark reads the name after that. So of two lives that have the same keys, the newer one
    has seen the mark of the older one, or the older one sees that it has ended.

    Parameters
    ----------
    keys : KeyStore
        The keys.
    name : str
        Its name, never used before; its mark has it.
    bound : bytes, or None
        The content of the key ``home``; None for the name. Replicas of a database share it.
    lock : file, or None
        The lock without which nothing is written; None if a session takes its part.
    """

    def __init__(
        self, keys: KeyStore, name: str, bound: bytes | None = None, lock: Any = None
    ) -> None:
        self.keys, self.name, self.mark_name = keys, name, mark_of(name)
        self._bound = name.encode() if bound is None else bound
        self._lock = lock
        self.mark: Mark | None = None  # the one that it wrote last

    @property
    def is_home(self) -> bool:
        """True if the keys name this life, or the database that it belongs to."""
        return self.keys.get(HOME) == self._bound

    def check(self) -> None:
        """Refuse if somebody else has gone on with the same keys."""
        if not self.is_home:
            raise StoreFailed(
                "somebody has gone on with a copy of this oracle, or the keys were put back; what "
                "was opened here first has ended. Close it, and go on with the one that is in use."
            )

    def begin(self) -> dict[str, Mark]:
        """Write the name, and return all marks, as they are after that."""
        self._check_lock()
        if not self.is_home:
            self.keys.put(HOME, self._bound)
        return self.keys.read_marks()

    def write_mark(self, mark: Mark) -> None:
        """Write the mark of this life, and then look whether it may go on."""
        self._check_lock()
        if self.mark is not None and self.keys.read_mark(self.mark_name) != self.mark:
            raise StoreFailed(
                "the mark of this oracle is not the one that was written last: its keys were put "
                "back, or somebody has gone on with a copy. Close it, and look which one is in use."
            )
        before, self.mark = self.mark, mark
        self.keys.write_mark(mark, self.mark_name)
        try:
            self.check()
        except StoreFailed:
            # Nothing of a new epoch has left; its mark would refuse the file that goes on.
            if before is not None and before.epoch < mark.epoch:
                self.keys.write_mark(before, self.mark_name)
            raise

    def drop(self, names: Iterable[str]) -> None:
        """Delete marks of lives that have ended; the own one covers them."""
        for name in names:
            if name != self.mark_name:
                self.keys.delete(name)

    def _check_lock(self) -> None:
        if self._lock is not None and self._lock.closed:
            raise StoreFailed("the lock of this oracle was let go of; nothing is written any more.")


def mark_of(life: str) -> str:
    """Return what the mark of a life is called among the keys."""
    return f"{MARK}-{life}"


def new_key_name() -> dict[str, str]:
    """Return what the ledger says about a key: two that try to begin an epoch have two keys."""
    return {"key": secrets.token_hex(4)}


def new_life() -> str:
    """Return a name for a life: a random one, so that no two are the same."""
    return secrets.token_hex(8)


def keys_elsewhere(given: str, lock_file: Path | None = None) -> KeyFolder | KeyCommand:
    """Return where keys are, as ``keys`` says: ``"folder:PATH"``, or a command."""
    if given.startswith(FOLDER):
        return KeyFolder(Path(given[len(FOLDER) :]).resolve())
    return KeyCommand(given, lock_file)


@failing_keys
def opened_lock(file: Path | None) -> FileLock:
    """Return the lock of an oracle or account in a file, which nobody has taken yet."""
    if file is None:
        raise AssertionError("an oracle in a file has a lock")
    return FileLock(file, os.O_CREAT | os.O_RDWR)


@claim("STORE")
def take_lock(file: Path | None) -> FileLock:
    """Return a lock that lasts until it is closed or the process ends; refuse if it is taken."""
    lock = opened_lock(file)
    try:
        for _ in range(TRIES):  # somebody may just be asking whether it is taken
            try:
                lock.take(wait=False)
            except OSError:
                time.sleep(0.02)
            else:
                return lock
        raise LiveState(
            "this oracle is open in another process, or was opened twice in this one; close it "
            "there first, because two copies would both spend the same budget."
        )
    except BaseException:  # also an interrupt: who keeps the error must not keep the lock
        lock.close()
        raise


def refuse_if_others_read(path: Path) -> None:
    """Refuse a file or folder that its group or others may use."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        right = "700" if path.is_dir() else "600"
        raise StoreFailed(
            f"{path} has mode {mode:o}, so that others can read it; run chmod {right} on it, and "
            "think about who may have a copy."
        )


def sync_folder(folder: Path) -> None:
    """Let new, renamed and removed names in a folder survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(file: int, content: bytes) -> None:
    """Write all bytes; the operating system may take fewer at once."""
    while content:
        content = content[os.write(file, content) :]
