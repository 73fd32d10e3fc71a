"""What can be said about an oracle, its ledger and its keys, without opening it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cumae.errors import InvalidParameter, StoreFailed
from cumae.privacy import Budget, Guarantee
from cumae.store.accounts import account_of
from cumae.store.homes.home import Place
from cumae.store.homes.needs import durable
from cumae.store.homes.places import place_of
from cumae.store.keys import KeyFolder, KeyStore, Mark
from cumae.store.ledger import ACCOUNT, LedgerEntry, Totals, walk
from cumae.store.opening import is_old_form, older_copy, oracle_key


@dataclass(frozen=True)
class Status:
    """What can be said about an oracle without its keys.

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
        """Whether a process has it open."""
        return self.n_replicas > 0

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
        oracle = home.meta()["oracle"]
        key, marks, trouble = _marks_at_hand(at_hand, oracle)
        entries, n_bytes = home.entries(), home.n_bytes()
    begins = entries[0][0] if entries else 1
    confirming = key if begins > 1 and marks and not is_old_form(marks) else None
    totals, last = walk(oracle, entries, oracle_key=confirming)
    if totals.kind == ACCOUNT:
        _check_payments(entries)
    n_replicas = place.n_replicas(keys)
    if marks and not n_replicas and _marks_at_hand(at_hand, oracle)[1] == marks:  # it stood still
        trouble = _older(marks, entries, totals, last)
    unconfirmed = begins if begins > 1 and confirming is None else 0
    found = (place.name, totals, last, len(entries), n_replicas, n_bytes)
    return Status(*found, unconfirmed, shared=place.shared, trouble=trouble)


def _marks_at_hand(keys: KeyStore | None, oracle: str) -> tuple[bytes, dict[str, Mark], str]:
    """Return the oracle's own key, its marks, and why keys that are there do not fit."""
    try:
        return (b"", {}, "") if keys is None else (*oracle_key(keys, oracle), "")
    except StoreFailed as error:
        return b"", {}, str(error)


def _older(marks: dict[str, Mark], *ledger: Any) -> str:
    """Return in a sentence why a file is an older copy, and what can be done; nothing if not."""
    try:
        why = older_copy(marks, *ledger)
    except StoreFailed as error:
        return str(error)
    if not why:
        return ""
    return (
        f"this file is an older copy ({why}). Put the newer file back, or go on with this one: "
        "`cumae restore` charges all that may have been answered since."
    )


def _keys_at_hand(place: Place, keys: str | None) -> KeyStore | None:
    """Return the keys if they were given, or lie beside the file; else None."""
    if place.shared and keys is None:
        return None
    found = place.keys(keys)
    return None if isinstance(found, KeyFolder) and not found.folder.is_dir() else found


def _check_payments(entries: list[tuple[int, str, bytes]]) -> None:
    try:
        Budget.kept_in(SimpleNamespace(read=lambda: account_of(entries)))
    except InvalidParameter as error:
        raise StoreFailed(f"the payments do not fit: {error}") from error
