"""Accounts in files with a ledger: every payment is an entry, and older copies are recognised."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cumae.claims import claim
from cumae.errors import StoreFailed
from cumae.privacy import Guarantee
from cumae.privacy.guarantee import REPLACE_ONE
from cumae.privacy.validation import from_plain_number
from cumae.store.homes.home import Transaction
from cumae.store.homes.sqlite import SqliteFile
from cumae.store.keys import MARK, KeyStore, Mark
from cumae.store.ledger import LedgerEntry, first_hash, following, walk

ACCOUNT = "Budget"  # the kind of oracle that an account is
CAP = ("epsilon", "delta", "accounting")


@claim("STORE", "BUDGET")
class AccountLedger:
    """The file of an account: ``Budget`` reads and writes it as it does its JSON file.

    A payment is committed before it counts. Then the mark beside the keys takes the number and the
    hash of its entry, so that a file without it is refused from then on.

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

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from paying while the block runs."""
        if self.keys.lock_file is None:
            raise AssertionError("an account in a file has a lock")
        descriptor = os.open(self.keys.lock_file, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def read(self) -> dict[str, Any]:
        """Return the account: its cap, and all payments.

        Raises
        ------
        StoreFailed
            If the ledger does not fit, or the file is an older copy.
        """
        with SqliteFile(self.path, reading=True) as file:
            account, _ = self._walked(file)
        return account

    def _walked(self, file: SqliteFile) -> tuple[dict[str, Any], LedgerEntry]:
        oracle, entries = file.meta()["oracle"], file.entries()
        _, last = walk(oracle, entries)
        mark = self.keys.read_marks().get(MARK)
        known = {number: found.hex() for number, _, found in entries}
        if mark is None or mark.oracle != oracle or known.get(mark.number) != mark.head:
            raise StoreFailed(
                f"{self.path} lacks payments that were made: it is an older copy, or its mark is "
                "gone. Put the right file back."
            )
        facts = [json.loads(text) for _, text, _ in entries]
        paid = [one["entry"] for one in facts if one["event"] == "paid"]
        return {**{name: facts[0]["account"][name] for name in CAP}, "entries": paid}, last

    def write(self, account: dict[str, Any]) -> None:
        """Add payments at the end of those in the file; whoever calls this holds the lock."""
        with SqliteFile(self.path) as file:
            stored, last = self._walked(file)
            entries = _payments(last, account["entries"][len(stored["entries"]) :])
            file.commit(Transaction(entries=entries))
            last = entries[-1]
            self.keys.write_mark(_mark(file.meta()["oracle"], last))


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
    what = "whatever all uses show together that pay from this account"
    promise = Guarantee(epsilon, delta, what, REPLACE_ONE, ("BUDGET",))
    cap = {name: account[name] for name in CAP}
    facts = {"event": "made", "kind": ACCOUNT, "guarantee": promise.to_dict(), "account": cap}
    made = following(0, first_hash(oracle), facts)
    entries = [made, *_payments(made, account["entries"])]
    meta = {"oracle": oracle, "kind": ACCOUNT}
    SqliteFile.create(path, Transaction(entries=entries, meta=meta)).close()
    return _mark(oracle, entries[-1])


def _payments(last: LedgerEntry, paid: list[dict[str, Any]]) -> list[LedgerEntry]:
    entries = []
    for one in paid:
        last = following(last.number, last.hash, {"event": "paid", "entry": one})
        entries.append(last)
    return entries


def _mark(oracle: str, last: LedgerEntry) -> Mark:
    return Mark(oracle, 0, 0, last.number, last.hash.hex())
