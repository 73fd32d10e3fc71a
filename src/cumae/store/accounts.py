"""Accounts in files with a ledger: every payment is an entry, and older copies are recognised."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cumae.claims import claim
from cumae.codec import FORMAT
from cumae.errors import StoreFailed
from cumae.locks import alone
from cumae.privacy import Guarantee
from cumae.privacy.guarantee import REPLACE_ONE
from cumae.privacy.validation import from_plain_number
from cumae.store.homes.home import Transaction
from cumae.store.homes.sqlite import SqliteFile
from cumae.store.keys import KeyStore, Life, Mark, new_life, opened_lock
from cumae.store.ledger import ACCOUNT, LedgerEntry, first_hash, following, walk

CAP = ("epsilon", "delta", "accounting")
COVERS = "all uses together that pay from this account, for ever"


@claim("STORE", "BUDGET")
class AccountLedger:
    """The file of an account: ``Budget`` reads and writes it as it does its JSON file.

    Each payment is a life of its own. It is committed before it counts. Then its mark beside the
    keys names its entry, so that a file without it is refused from then on; and it counts only if
    nobody has paid from a copy of the file meanwhile.

    Parameters
    ----------
    path : Path
        The file.
    keys : KeyStore
        Where the mark is.
    """

    def __init__(self, path: Path, keys: KeyStore) -> None:
        self.path, self.keys = path, keys

    def __str__(self) -> str:
        return str(self.path)

    def alone(self, work: Callable[[], None]) -> None:
        """Run something while no other process pays."""
        alone(lambda: opened_lock(self.keys.lock_file), work)

    def read(self) -> dict[str, Any]:
        """Return the account: its cap, and all payments.

        Raises
        ------
        StoreFailed
            If the ledger does not fit, or the file is an older copy.
        """
        with SqliteFile(self.path, reading=True) as file:
            account, _ = self._walked(file, self.keys.read_marks())
        return account

    def _walked(
        self, file: SqliteFile, marks: dict[str, Mark]
    ) -> tuple[dict[str, Any], LedgerEntry]:
        oracle, entries = file.meta()["oracle"], file.entries()
        _, last = walk(oracle, entries)
        known = {number: found.hex() for number, _, found in entries}
        if not marks or any(
            mark.oracle != oracle or known.get(mark.number) != mark.head for mark in marks.values()
        ):
            raise StoreFailed(
                f"{self.path} lacks payments that were made: it is an older copy, or its mark is "
                "gone. Put the right file back."
            )
        return account_of(entries), last

    def write(self, account: dict[str, Any]) -> None:
        """Add payments at the end of those in the file; whoever calls this holds the lock."""
        life = Life(self.keys, new_life())
        with SqliteFile(self.path) as file:
            self._walked(file, self.keys.read_marks())  # before the name ends the life of others
            marks = life.begin()
            stored, last = self._walked(file, marks)
            known, found = account["entries"], stored["entries"]
            if found != known[: len(found)] or len(found) == len(known):
                raise StoreFailed(
                    f"{self.path} was replaced while a payment was made; nothing was paid. Look "
                    "which file is the right one, and try again."
                )
            entries = _payments(last, known[len(found) :])
            file.commit(Transaction(entries=entries))
            try:
                life.write_mark(_mark(file.meta()["oracle"], entries[-1]))
            except StoreFailed:  # somebody else pays: this payment does not count
                self.keys.delete(life.mark_name)
                raise
            life.drop(marks)


@claim("STORE")
def create_account(account: dict[str, Any], path: Path, oracle: str) -> Mark:
    """Write an account to a new file; return the mark without which nobody can open it.

    Parameters
    ----------
    account : dict
        The cap under ``"epsilon"``, ``"delta"`` and ``"accounting"``, and ``"entries"``.
    path : Path
        Where to; there must be no file yet.
    oracle : str
        A new id.
    """
    epsilon, delta = from_plain_number(account["epsilon"]), account["delta"]
    promise = Guarantee(epsilon, delta, "one row", REPLACE_ONE, ("BUDGET",), covers=COVERS)
    cap = {name: account[name] for name in CAP}
    facts = {"event": "made", "kind": ACCOUNT, "guarantee": promise.to_dict(), "account": cap}
    made = following(0, first_hash(oracle), facts)
    entries = [made, *_payments(made, account["entries"])]
    meta = {"oracle": oracle, "kind": ACCOUNT}
    SqliteFile.create(path, Transaction(entries=entries, meta=meta)).close()
    return _mark(oracle, entries[-1])


def account_of(entries: list[tuple[int, str, bytes]]) -> dict[str, Any]:
    """Return an account from its ledger: its cap, and all payments."""
    facts = [json.loads(text) for _, text, _ in entries]
    paid = [one["entry"] for one in facts if one["event"] == "paid"]
    return {**{name: facts[0]["account"][name] for name in CAP}, "entries": paid}


def _payments(last: LedgerEntry, paid: list[dict[str, Any]]) -> list[LedgerEntry]:
    entries = []
    for one in paid:
        last = following(last.number, last.hash, {"event": "paid", "entry": one})
        entries.append(last)
    return entries


def _mark(oracle: str, last: LedgerEntry) -> Mark:
    return Mark(oracle, 0, 0, last.number, last.hash.hex(), FORMAT)
