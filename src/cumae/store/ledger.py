"""The ledger of an oracle: what was spent, as a chain of hashes that anybody can walk.

An entry is JSON. It holds counts, phases and events, and nothing that depends on a row or a query.
Each has a hash, taken over the hash before it and its own text, so that no entry can be changed,
dropped or put elsewhere unless all that follow are written anew. The hash of the last one is in the
key folder, too.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cumae.claims import claim
from cumae.errors import StoreFailed
from cumae.privacy import Guarantee
from cumae.privacy.validation import from_plain_number
from cumae.store.bills import bill_of, price

# The same facts have the same text; json.dumps would make an encoder for each call.
ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
CHECKPOINT = 10_000  # entries after which the older ones are replaced by their totals


class LedgerEntry(NamedTuple):
    """One entry.

    Parameters
    ----------
    number : int
        Its place, from 1.
    text : str
        What it says, as JSON.
    hash : bytes
        Of the chain up to here.
    """

    number: int
    text: str
    hash: bytes

    @property
    def facts(self) -> dict[str, Any]:
        """What it says."""
        found: dict[str, Any] = json.loads(self.text)
        return found


def first_hash(oracle: str) -> bytes:
    """Return what the chain of an oracle begins with."""
    return hashlib.sha256(f"cumae ledger {oracle}".encode()).digest()


@claim("STORE")
def following(number: int, before: bytes, facts: dict[str, Any]) -> LedgerEntry:
    """Return the next entry of a chain, after the one with this number and hash."""
    text = ENCODER.encode(facts)
    return LedgerEntry(number + 1, text, hashlib.sha256(before + text.encode()).digest())


@claim("STORE")
@dataclass
class Totals:
    """What entries add up to. A checkpoint holds them, and the entries before it are deleted.

    Parameters
    ----------
    kind : str
        Class of the oracle.
    guarantee : dict
        What was promised.
    answers : int
        Answers recorded.
    charged : int
        Releases that were charged without an answer: after a crash, after a rollback, or because
        a call was broken off.
    rollbacks : int
        How often the owner went on with an older copy.
    epoch, phase : int
        The key under which things are written, and the phase of the predictor.
    releases, used : int
        Of this phase: how many it was calibrated for, and how many are gone.
    epsilon : float
        The most that a row of any phase pays at the guarantee's delta, recomputed; NaN if an older
        version of cumae wrote no cost.
    blob : int
        Number of the last blob that belongs to the state.
    payments : int
        Of an account.
    priors : int
        Priors that were published: the first one, and those that labels renewed.
    key : str
        A name of its own for the key of the epoch; empty if its number is enough.
    """

    kind: str = ""
    guarantee: dict[str, Any] = field(default_factory=dict)
    answers: int = 0
    charged: int = 0
    rollbacks: int = 0
    epoch: int = 0
    phase: int = 0
    releases: int = 0
    used: int = 0
    epsilon: float = 0.0
    blob: int = 0
    payments: int = 0
    priors: int = 0
    key: str = ""

    def copy(self) -> Totals:
        """Return the same totals, to add to them."""
        return Totals(**vars(self))

    def take(self, facts: dict[str, Any], *, recompute: bool = True) -> None:
        """Add what one entry says; raise ``StoreFailed`` if it breaks the promise.

        Parameters
        ----------
        facts : dict
            The entry.
        recompute : bool
            Whether to compute again what the noise of a phase costs, which takes a while.
        """
        event = facts.get("event")
        if event == "answered":  # nearly all of them
            self._answer(facts)
            self._check_releases(facts)
            return
        kinds = {
            "checkpoint": self._restore,
            "made": self._make,
            "phase": self._begin,
            "rotated": self._begin,
            "restarted": self._charge,
            "rollback": self._charge,
            "broken off": self._charge,
            "prepared": self._go_on,
            "compacted": self._go_on,
            "rows": self._go_on,
            "prior": self._learn_prior,
            "paid": self._pay,
        }
        if event not in kinds:
            raise _wrong("an event of an unknown kind")
        kinds[event](facts)
        if event in ("phase", "rotated"):
            self._price(facts, recompute=recompute)
        self._check_releases(facts)

    def _check_releases(self, facts: dict[str, Any]) -> None:
        self.blob = facts.get("blob", self.blob)
        if self.used > self.releases:
            raise _wrong("more releases than the noise was calibrated for")

    def _pay(self, facts: dict[str, Any]) -> None:
        if self.kind != "Budget" or not isinstance(facts["entry"], dict):
            raise _wrong("a payment from something that is no account")
        self.payments += 1

    def _restore(self, facts: dict[str, Any]) -> None:
        for name, value in facts["totals"].items():
            setattr(self, name, float(value) if name == "epsilon" else value)

    def _make(self, facts: dict[str, Any]) -> None:
        self.kind, self.guarantee = facts["kind"], facts["guarantee"]

    def _begin(self, facts: dict[str, Any]) -> None:
        same = facts["event"] == "rotated"
        if facts["epoch"] <= self.epoch or (same and facts["phase"] != self.phase):
            raise _wrong("an epoch or a phase begins that is not a new one")
        if same and facts["used"] < self.used:
            raise _wrong("a new key gives back what was used")
        self.epoch, self.phase, self.key = facts["epoch"], facts["phase"], facts.get("key", "")
        self.releases, self.used = facts["releases"], facts["used"]
        self.answers += facts["count"]

    def _answer(self, facts: dict[str, Any]) -> None:
        if facts["debit"] < 0 or facts["used"] < self.used + facts["debit"]:
            raise _wrong("answers without their debit")
        self.answers += facts["count"]
        self.used = facts["used"]

    def _charge(self, facts: dict[str, Any]) -> None:
        self.rollbacks += facts["event"] == "rollback"
        self.charged += facts["used"] - self.used
        self._go_on(facts)

    def _go_on(self, facts: dict[str, Any]) -> None:
        used = facts.get("used", self.used)
        if used < self.used:
            raise _wrong("an event gives back what was used")
        self.used = used

    def _price(self, facts: dict[str, Any], *, recompute: bool) -> None:
        if facts["cost"] is None:
            if facts["releases"] and not facts.get("published"):  # written by an older version
                self.epsilon = math.nan
            return
        guarantee = Guarantee.from_dict(self.guarantee)
        spent = float(facts["epsilon"])
        if recompute:
            spent = price(bill_of(facts), guarantee.delta)
        self._pays(spent, guarantee.epsilon)
        self.epsilon = max(self.epsilon, spent)

    def _learn_prior(self, facts: dict[str, Any]) -> None:
        """Take a prior that was published: its rows, and those that chose its weight, pay alone."""
        guarantee = Guarantee.from_dict(self.guarantee)
        for name in ("epsilon", "trust"):
            self._pays(float(from_plain_number(facts.get(name, 0.0))), guarantee.epsilon)
        if facts["delta"] > guarantee.delta:
            raise _wrong("a prior whose delta is larger than was promised")
        self.priors += 1

    def _pays(self, spent: float, promised: float) -> None:
        if spent > promised * (1 + 1e-9):
            raise _wrong("noise that costs more than was promised")

    def to_facts(self) -> dict[str, Any]:
        """Return them for a checkpoint."""
        return {**vars(self), "epsilon": repr(self.epsilon)}  # JSON has no infinity


@claim("STORE")
def walk(
    oracle: str,
    entries: Iterable[tuple[int, str, bytes]],
    *,
    recompute: bool = True,
    known: tuple[Totals, LedgerEntry] | None = None,
) -> tuple[Totals, LedgerEntry]:
    """Walk a chain from its beginning, or from its last checkpoint.

    Parameters
    ----------
    oracle : str
        Id of the oracle.
    entries : iterable of tuples of int, str and bytes
        Numbers, texts and hashes, in order. The first one is entry 1 or a checkpoint.
    recompute : bool
        Whether to compute again what the noise of each phase costs.
    known : tuple of Totals and LedgerEntry, or None
        What the entries before these add up to, and the last of them.

    Returns
    -------
    tuple of Totals and LedgerEntry
        What they add up to, and the last one.

    Raises
    ------
    StoreFailed
        If the chain is broken, or says that more was spent than was promised.
    """
    totals, last = (Totals(), None) if known is None else (known[0].copy(), known[1])
    for number, text, stored in entries:
        try:
            facts = json.loads(text)
            if last is None:
                start = first_hash(oracle)
                if number > 1:  # a checkpoint holds the hash before it
                    start = bytes.fromhex(facts["before"])
                last = LedgerEntry(number - 1, "", start)
            entry = following(last.number, last.hash, facts)
            if (number, text, stored) != (entry.number, entry.text, entry.hash):
                raise _wrong("an entry was changed, dropped or moved")
            totals.take(facts, recompute=recompute)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise _wrong("an entry cannot be read") from error
        last = entry
    if last is None:
        raise _wrong("it is empty")
    return totals, last


def _wrong(what: str) -> StoreFailed:
    return StoreFailed(
        f"the ledger does not fit: {what}. The file was damaged or edited; do not go on with it."
    )
