"""The ledger of an oracle: what was spent, as a chain of hashes that anybody can walk.

An entry is JSON. It holds counts, phases and events, and nothing that depends on a row or a query.
Each has a hash, taken over the hash before it and its own text, so that no entry can be changed,
dropped or put elsewhere unless all that follow are written anew. The hash of the last one is in the
key folder, too.
"""

from __future__ import annotations

import hashlib
import hmac
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
EQUAL = 1e-6  # relative; machines compute logarithms a little differently
ACCOUNT = "Budget"  # the kind of oracle that an account is
NEVER_PUBLISHED = ("EverlastingPredictor", "GenericBBL")  # kinds that draw noise for ever
ROWS = ("supplied", "labelled", "labels", "answers")  # what an entry about rows may mean
# What the entries of each kind say, and what they may say besides.
_PHASE = (
    {"phase", "releases", "used", "cost", "count", "epoch"},
    {"key", "steps", "epsilon", "published", "priors"},
)
FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "made": ({"kind", "guarantee"}, {"account", "drift"}),
    "phase": _PHASE,
    "rotated": _PHASE,
    "answered": ({"count", "debit", "used"}, set()),
    "restarted": ({"used"}, set()),
    "rollback": ({"used"}, set()),
    "broken off": ({"used"}, set()),
    "used": ({"used"}, set()),
    "prepared": ({"used"}, set()),
    "compacted": ({"used"}, set()),
    "rows": ({"kind", "count"}, set()),
    "prior": ({"rows", "epsilon", "delta"}, {"trust", "weight"}),
    "paid": ({"entry"}, set()),
    "checkpoint": ({"before", "totals"}, {"marked", "seal"}),
}
EVERYWHERE = {"event", "blob"}
BEFORE_PHASES = ("made", "checkpoint", "phase", "prior", "paid")
TAKES = {  # which method of ``Totals`` takes it
    "checkpoint": "_check_or_restore",
    "made": "_make",
    "phase": "_begin",
    "rotated": "_begin",
    "answered": "_answer",
    "restarted": "_charge",
    "rollback": "_charge",
    "broken off": "_charge",
    "used": "_go_on",
    "prepared": "_go_on",
    "compacted": "_go_on",
    "rows": "_take_rows",
    "prior": "_learn_prior",
    "paid": "_pay",
}
COUNTS = {"count", "debit", "used", "releases", "phase", "epoch", "blob", "rows", "priors"}
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
        """The contents of the entry."""
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
    """The sums of entries. A checkpoint holds them, and the entries before it are deleted.

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
        The most that a row of any phase pays at the guarantee's delta, recomputed.
    blob : int
        Number of the last blob that belongs to the state.
    payments : int
        Of an account.
    priors : int
        Priors that were published: the first one, and those that labels renewed.
    key : str
        A name of its own for the key of the epoch; empty if its number is enough.
    published : bool
        Whether what answers in this phase was published, so that nothing is debited.
    each_costs : bool
        Whether each answer of this phase is a release; else those are that were looked at.
    weight : float
        How much votes count against the prior, which is public; -1 if there is none, or if it was
        written before this was noted.
    settled : int
        Rows of a phase once phases grow no more, where a drift of votes was estimated; else 0.
    step : float
        The estimated step of a boundary of votes in such a phase, which is public; else 0.
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
    published: bool = False
    each_costs: bool = False
    weight: float = -1.0
    settled: int = 0
    step: float = 0.0

    def copy(self) -> Totals:
        """Return the same totals, to add to them."""
        found = object.__new__(Totals)
        vars(found).update(vars(self))
        return found

    def take(self, facts: dict[str, Any], *, recompute: bool = True) -> None:
        """Add what one entry says; raise ``StoreFailed`` if no correct writer writes it here.

        Parameters
        ----------
        facts : dict
            The entry.
        recompute : bool
            Whether to compute again what the noise of a phase costs, which takes a while.
        """
        event = _checked_event(facts)
        if (event == "made") != (not self.kind) and (self.kind or event != "checkpoint"):
            raise _wrong("it begins in the middle, or twice")
        if not self.epoch and event not in BEFORE_PHASES:
            raise _wrong("something happens before the first phase")
        getattr(self, TAKES[event])(facts)
        if event in ("phase", "rotated"):
            self._price(facts, recompute=recompute)
        if facts.get("blob", self.blob) < self.blob:
            raise _wrong("a piece of the state comes back")
        self.blob = facts.get("blob", self.blob)
        if self.used > self.releases:
            raise _wrong("more releases than the noise was calibrated for")

    def _pay(self, facts: dict[str, Any]) -> None:
        if self.kind != ACCOUNT or not isinstance(facts["entry"], dict):
            raise _wrong("a payment from something that is no account")
        self.payments += 1

    def _check_or_restore(self, facts: dict[str, Any]) -> None:
        """Take totals where the chain begins; elsewhere they must be those of what came before."""
        found = {**facts["totals"], "epsilon": float(facts["totals"]["epsilon"])}
        if self.kind:
            if {**vars(Totals()), **found} != vars(self):  # an older one has fewer totals
                raise _wrong("a checkpoint that does not add up")
            return
        if not set(found) <= set(vars(self)):
            raise _wrong("a checkpoint with unknown totals")
        for name, value in found.items():
            if type(value) is not type(getattr(self, name)) or (type(value) is int and value < 0):
                raise _wrong("a checkpoint with impossible totals")
            setattr(self, name, value)
        self._pays(self.epsilon)

    def _make(self, facts: dict[str, Any]) -> None:
        self.kind, self.guarantee = facts["kind"], facts["guarantee"]
        promise = self._promise()
        if (self.kind == ACCOUNT) != ("account" in facts):
            raise _wrong("an account without its cap, or a cap of something else")
        cap = facts.get("account")
        if cap and (from_plain_number(cap["epsilon"]), cap["delta"]) != promise[:2]:
            raise _wrong("an account with another cap than was promised")
        self.settled, self.step = _drift_of(facts)

    def _promise(self) -> tuple[float, float, tuple[str, ...]]:
        found = Guarantee.from_dict(self.guarantee)
        return found.epsilon, found.delta, found.claims

    def _begin(self, facts: dict[str, Any]) -> None:
        same = facts["event"] == "rotated"
        if self.kind == ACCOUNT or facts["epoch"] != self.epoch + 1:
            raise _wrong("an epoch begins that is not the next one")
        if self.epoch and facts["phase"] != self.phase + (not same):
            raise _wrong("a phase begins that is not a new one")
        if same and (facts["used"], facts["releases"]) != (self.used, self.releases):
            raise _wrong("a new key gives back what was used")
        if facts.get("priors", self.priors) != self.priors or (
            "PRIOR" in self._promise()[2] and not self.priors
        ):
            raise _wrong("a prior is missing")
        self.epoch, self.phase, self.key = facts["epoch"], facts["phase"], facts.get("key", "")
        self.releases, self.used = facts["releases"], facts["used"]
        self.answers += facts["count"]

    def _answer(self, facts: dict[str, Any]) -> None:
        count, debit = facts["count"], facts["debit"]
        if (
            self.published
            or facts["used"] != self.used + debit
            or not 0 < debit <= count
            or (self.each_costs and debit < count)
        ):
            raise _wrong("answers without their debit")
        self.answers += facts["count"]
        self.used = facts["used"]

    def _charge(self, facts: dict[str, Any]) -> None:
        self.rollbacks += facts["event"] == "rollback"
        self.charged += facts["used"] - self.used
        self._go_on(facts)

    def _go_on(self, facts: dict[str, Any]) -> None:
        if facts["used"] < self.used:
            raise _wrong("an event gives back what was used")
        self.used = facts["used"]

    def _take_rows(self, facts: dict[str, Any]) -> None:
        if facts["kind"] not in ROWS:
            raise _wrong("rows of an unknown kind")

    def _price(self, facts: dict[str, Any], *, recompute: bool) -> None:
        self.published = facts["cost"] is None
        if self.published:
            said = facts.get("published", False)
            if (facts["releases"] and not said) or (said and self.kind in NEVER_PUBLISHED):
                raise _wrong("noise without its cost")
            return
        if "published" in facts:
            raise _wrong("noise of what was published")
        paid_for = _paid_for(facts["cost"])
        if paid_for < facts["releases"]:
            raise _wrong("noise that was paid for fewer releases")
        self.each_costs = math.isfinite(paid_for)
        spent = float(facts["epsilon"])
        if recompute:
            said, spent = spent, price(bill_of(facts), self._promise()[1])
        self._pays(spent)
        if recompute and not (said == spent or abs(said - spent) <= EQUAL * spent):
            raise _wrong("noise that costs something else than it says")
        self.epsilon = max(self.epsilon, spent)

    def _learn_prior(self, facts: dict[str, Any]) -> None:
        """Take a prior that was published: its rows, and those that chose its weight, pay alone."""
        for name in ("epsilon", "trust"):
            self._pays(float(from_plain_number(facts.get(name, 0.0))))
        if not 0 <= facts["delta"] <= self._promise()[1]:
            raise _wrong("a prior whose delta is larger than was promised")
        weight = facts.get("weight", self.weight)
        if type(weight) is not float or ("weight" in facts and not 0 <= weight < math.inf):
            raise _wrong("a weight of votes that is no number from 0 on")
        self.weight = weight
        self.priors += 1

    def _pays(self, spent: float) -> None:
        if not 0 <= spent <= self._promise()[0] * (1 + 1e-9):  # and not if it is NaN
            raise _wrong("noise that costs more than was promised")

    def to_facts(self) -> dict[str, Any]:
        """Return them for a checkpoint."""
        return {**vars(self), "epsilon": repr(self.epsilon)}  # JSON has no infinity


def _drift_of(facts: dict[str, Any]) -> tuple[int, float]:
    """Return rows of a settled phase and the step of a boundary in it; 0 where none is said."""
    if "drift" not in facts:
        return 0, 0.0
    rows, step = facts["drift"]
    if type(rows) is not int or type(step) is not float or rows < 1 or not 0 <= step < math.inf:
        raise _wrong("a drift that is no number of rows and no step")
    return rows, step


@claim("STORE")
def _checked_event(facts: dict[str, Any]) -> str:
    """Return the kind of an entry; refuse one that has not the fields of its kind."""
    event = facts["event"]
    if event not in FIELDS:
        raise _wrong("an event of an unknown kind")
    needed, besides = FIELDS[event]
    if not needed <= facts.keys() or not facts.keys() <= needed | besides | EVERYWHERE:
        raise _wrong("an entry with other fields than its kind has")
    for name in COUNTS & facts.keys():
        if type(facts[name]) is not int or facts[name] < 0:
            raise _wrong("a count that is no whole number from 0 on")
    return str(event)


@claim("STORE")
def _paid_for(cost: dict[str, Any]) -> float:
    """Return how many releases a cost is that of; infinity where releases are not counted in it.

    Noise on every vote is paid for each release. That of a threshold is paid for each unclear one,
    and a draw once.
    """
    if cost["kind"] == "DiscreteGaussian":
        return 1
    if cost["kind"] != "Composed" or any(
        one["kind"] != "DiscreteGaussian" for one, _ in cost["parts"]
    ):
        return math.inf
    return float(sum(count for _, count in cost["parts"]))


@claim("STORE")
def checkpoint_seal(key: bytes, oracle: str, number: int, facts: dict[str, Any]) -> str:
    """Return the seal of a checkpoint, which nobody can make who has no keys.

    Parameters
    ----------
    key : bytes
        The oracle's own key.
    oracle : str
        Its id.
    number : int
        Of the entry.
    facts : dict
        The entry, with or without a seal.
    """
    text = ENCODER.encode([oracle, number, {**facts, "seal": ""}])
    return hmac.digest(key, b"checkpoint" + text.encode(), "sha256").hex()


@claim("STORE")
def entries_known(entries: list[tuple[int, str, bytes]]) -> dict[int, str]:
    """Return numbers and hashes of all entries, and of the one that a first checkpoint names."""
    found = {number: known.hex() for number, _, known in entries}
    marked = json.loads(entries[0][1]).get("marked") or []
    return {**found, marked[0]: marked[1]} if marked else found


@claim("STORE")
def walk(
    oracle: str,
    entries: Iterable[tuple[int, str, bytes]],
    *,
    recompute: bool = True,
    known: tuple[Totals, LedgerEntry] | None = None,
    oracle_key: bytes | None = None,
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
    oracle_key : bytes, or None
        The oracle's own key: a checkpoint at the beginning must be sealed with it. None if nobody
        has it; then nothing is known about what came before the checkpoint.

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
                if (number > 1) != (facts["event"] == "checkpoint"):
                    raise _wrong("it begins in the middle")
                if number > 1:  # a checkpoint holds the hash before it
                    start = bytes.fromhex(facts["before"])
                    _check_seal(oracle, number, facts, oracle_key)
                last = LedgerEntry(number - 1, "", start)
            if facts["event"] == "checkpoint" and facts["before"] != last.hash.hex():
                raise _wrong("a checkpoint of another chain")
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


def _check_seal(oracle: str, number: int, facts: dict[str, Any], key: bytes | None) -> None:
    if key is not None and facts.get("seal") != checkpoint_seal(key, oracle, number, facts):
        raise _wrong("a checkpoint without its seal")


def _wrong(what: str) -> StoreFailed:
    return StoreFailed(
        f"the ledger does not fit: {what}. The file was damaged or edited; do not go on with it."
    )
