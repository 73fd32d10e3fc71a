"""The facts about an oracle, its ledger and its keys that can be read without opening it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cumae.claims import claim
from cumae.drift import Drift
from cumae.errors import InvalidParameter, StoreFailed
from cumae.privacy import Budget, Guarantee
from cumae.store.accounts import account_of
from cumae.store.bills import knowing_all_costs
from cumae.store.homes.home import Place
from cumae.store.homes.needs import durable
from cumae.store.homes.places import place_of
from cumae.store.keys import ORACLE, KeyFolder, KeyStore, Mark
from cumae.store.ledger import ACCOUNT, LedgerEntry, Totals, entries_known, walk

SEALED_FORMAT = 3  # the first one in which ledgers were sealed, and pieces named their entries


@dataclass(frozen=True)
class Status:
    """The facts about an oracle that can be read without its keys.

    Parameters
    ----------
    path : str
        The file, or the address without its password.
    totals : Totals
        What its ledger adds up to.
    last : LedgerEntry
        The last ledger entry.
    n_entries : int
        Entries from the last checkpoint on.
    n_replicas : int
        How many processes have it open.
    n_bytes : int
        The size of what is stored, which follows from public counts.
    unconfirmed : int
        The number of a checkpoint that the ledger begins with, and whose seal nobody could check:
        nothing is known about what came before it. 0 if there is none.
    shared : bool
        True if several processes may have it open.
    trouble : str
        Why nobody can go on with it as it is, by the keys at hand: it is an older copy, say, or the
        keys are those of another oracle. Empty if there is nothing of the kind, if no keys are at
        hand, or if a process has it open.
    """

    path: str
    totals: Totals
    last: LedgerEntry
    n_entries: int
    n_replicas: int
    n_bytes: int
    unconfirmed: int = 0
    shared: bool = False
    trouble: str = ""

    @property
    def in_use(self) -> bool:
        """True if a process has it open."""
        return self.n_replicas > 0

    @property
    def drift(self) -> Drift | None:
        """The drift that was estimated when it was made; None if there was none."""
        return Drift(self.totals.settled, self.totals.step) if self.totals.settled else None

    @property
    def guarantee(self) -> Guarantee:
        """The promise of the oracle, under what its home needs as well."""
        promised = Guarantee.from_dict(self.totals.guarantee)
        return durable(promised, shared=self.shared) if self.totals.releases else promised

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        totals = self.totals
        return {
            "path": self.path,
            "kind": totals.kind,
            "guarantee": self.guarantee.to_dict(),
            "phase": totals.phase,
            "epoch": totals.epoch,
            "answers": totals.answers,
            "releases": totals.releases,
            "used": totals.used,
            "payments": totals.payments,
            "charged_without_answer": totals.charged,
            "rollbacks": totals.rollbacks,
            "priors": totals.priors,
            "trust": None if totals.weight < 0 else totals.weight,
            "drift": None if self.drift is None else vars(self.drift),
            "epsilon_recomputed": repr(totals.epsilon),
            "ledger": {
                "entries": self.last.number,
                "head": self.last.hash.hex(),
                "unconfirmed": self.unconfirmed,
            },
            "trouble": self.trouble,
            "in_use": self.in_use,
            "replicas": self.n_replicas,
            "bytes": self.n_bytes,
        }


def status(path: str | Path, *, keys: str | None = None) -> Status:
    """Return what can be said about an oracle, with its ledger verified; it may be in use.

    Parameters
    ----------
    path : str or Path
        The file, or the address.
    keys : str, or None
        The command or the folder that keeps the keys, as ``save_to`` was given it.

    Raises
    ------
    StoreFailed
        If the ledger does not fit.
    """
    place = place_of(path)
    at_hand = _keys_at_hand(place, keys)
    with place.home(reading=True) as home:
        oracle, kind = (home.meta()[name] for name in ("oracle", "kind"))
        key, marks, trouble = _marks_at_hand(at_hand, oracle, kind)
        entries, n_bytes = home.entries(), home.n_bytes()
    begins = entries[0][0] if entries else 1
    confirming = key if begins > 1 and marks and not is_old_form(marks) else None
    totals, last = walk(oracle, entries, oracle_key=confirming)
    if totals.kind == ACCOUNT:
        _check_payments(entries)
    n_replicas = place.n_replicas(keys)
    stood_still = not n_replicas and _marks_at_hand(at_hand, oracle, kind)[1] == marks
    if marks and stood_still:
        trouble = _older(marks, entries, totals, last)
    unconfirmed = begins if begins > 1 and confirming is None else 0
    found = (place.name, totals, last, len(entries), n_replicas, n_bytes)
    return Status(*found, unconfirmed, shared=place.shared, trouble=trouble)


def _marks_at_hand(
    keys: KeyStore | None, oracle: str, kind: str
) -> tuple[bytes, dict[str, Mark], str]:
    """Return the oracle's own key, its marks, and why keys that are there do not fit."""
    if keys is None:
        return b"", {}, ""
    try:
        if kind != ACCOUNT:
            return *oracle_key(keys, oracle), ""
        check_marks(marks := keys.read_marks(), oracle)  # an account has marks, and no key
    except StoreFailed as error:
        return b"", {}, str(error)
    return b"", marks, ""


def _older(
    marks: dict[str, Mark], entries: list[tuple[int, str, bytes]], totals: Totals, last: LedgerEntry
) -> str:
    """Return in a sentence why a file is an older copy, and what can be done; nothing if not."""
    try:
        why = older_copy(marks, entries, totals, last)
    except StoreFailed as error:
        return str(error)
    if not why:
        return ""
    text = f"this file is an older copy ({why}). Put the newer file back"
    if totals.kind == ACCOUNT:
        return f"{text}."
    return (
        f"{text}, or go on with this one: `cumae restore` charges all that may have been answered "
        "since."
    )


def _keys_at_hand(place: Place, keys: str | None) -> KeyStore | None:
    """Return the keys if they were given, or lie beside the file; else None."""
    if place.shared and keys is None:
        return None
    found = place.keys(keys)
    return None if isinstance(found, KeyFolder) and not found.folder.is_dir() else found


def _check_payments(entries: list[tuple[int, str, bytes]]) -> None:
    try:
        home = SimpleNamespace(read=lambda: account_of(entries))
        knowing_all_costs(lambda: Budget.kept_in(home))
    except InvalidParameter as error:
        raise StoreFailed(f"the payments do not fit: {error}") from error


@claim("STORE", "REPLICAS")
def older_copy(
    marks: dict[str, Mark], entries: list[tuple[int, str, bytes]], totals: Totals, last: LedgerEntry
) -> str:
    """Return why a file must be an older copy; nothing if it need not be.

    Parameters
    ----------
    marks : dict of str to Mark
        The marks beside its keys, one at least.
    entries : list of (int, str, bytes)
        Its ledger.
    totals : Totals
        What the ledger adds up to.
    last : LedgerEntry
        The last entry.

    Raises
    ------
    StoreFailed
        If it can never go on, because a later epoch or phase has begun.
    """
    for name in ("epoch", "phase"):
        newest = max(getattr(mark, name) for mark in marks.values())
        if newest > getattr(totals, name):
            raise StoreFailed(
                f"this file is an older copy, from before {name} {newest} began. What it holds "
                "was used up then, and its keys are destroyed; it can never go on. Go on with "
                "the file that is in use."
            )
    hashes = entries_known(entries)
    for mark in marks.values():
        if mark.number > last.number:
            return f"it has {last.number} ledger entries, and there were {mark.number}"
        if hashes.get(mark.number, mark.head) != mark.head:
            return f"its ledger is not the one that was in use at entry {mark.number}"
    if not is_old_form(marks) and not any(mark.number in hashes for mark in marks.values()):
        return "none of the entries that were in use last are in its ledger"
    return ""


def oracle_key(keys: KeyStore, oracle: str) -> tuple[bytes, dict[str, Mark]]:
    """Return the oracle's own key, and all marks; refuse keys of another oracle."""
    key, marks = keys.get(ORACLE), keys.read_marks()
    check_marks(marks if key else {}, oracle)
    return key or b"", marks


def check_marks(marks: dict[str, Mark], oracle: str) -> None:
    """Refuse if there are none, or those of another oracle."""
    if not marks:
        raise StoreFailed(
            "the oracle's own key or its high-water mark is not among the keys, so that the "
            "budget that was used, and the users who have a row, are not known; it cannot go on."
        )
    if any(mark.oracle != oracle for mark in marks.values()):
        raise StoreFailed("these keys belong to another oracle; give those of this one.")


@claim("STORE")
def is_old_form(marks: dict[str, Mark]) -> bool:
    """Tell whether only older versions, which sealed no ledger, have had these keys."""
    return all(mark.format < SEALED_FORMAT for mark in marks.values())
