"""``guarantee_`` names every proof that an object rests on, and what these proofs need outside."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cumae
from cumae import (
    AgnosticQueryRelease,
    EverlastingPredictor,
    GenericBBL,
    QueryRelease,
    UniversalQueryRelease,
)
from cumae.claims import claims_of
from cumae.concepts import Thresholds
from cumae.predictors.base import MODELS
from cumae.store.homes.needs import ONE_HOST
from cumae.store.journal import DurableJournal
from tests.oracles import Where

pytestmark = [
    pytest.mark.claim("STORE", "REPLICAS", "USER", "EVER", "SHARDS", "BBL", "QUERY", "UNV"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

PROOFS = Path(__file__).parents[2] / "proofs"
ROWS = np.random.default_rng(0).random((4_000, 1))
LABELS = (ROWS[:, 0] > 0.3).astype(int)

Make = Callable[[], Any]
EVERLASTING = functools.partial(EverlastingPredictor, Thresholds(), 60.0, prior=False)
KINDS: dict[str, Make] = {
    "everlasting": EVERLASTING,
    "prior": functools.partial(EverlastingPredictor, Thresholds(), 60.0, columns=[(0, 1)]),
    "users": functools.partial(EVERLASTING, user_ids=True),
    "clients": functools.partial(EVERLASTING, client_cap=0.1),
    "fresh memo": functools.partial(EVERLASTING, fresh=True, memoize=True),
    "late": functools.partial(EVERLASTING, late=0.1),
    "never late": functools.partial(EVERLASTING, late=0.0),
    "bbl": functools.partial(GenericBBL, Thresholds(), 60.0),
    "query": functools.partial(QueryRelease, Thresholds(), 5.0),
    "stability": functools.partial(QueryRelease, Thresholds(), 5.0, mechanism="stability"),
    "between": functools.partial(
        QueryRelease, Thresholds(), 50.0, mechanism="between", max_unstable=2
    ),
    "offline": functools.partial(QueryRelease, Thresholds(), 5.0, mechanism="offline"),
    "agnostic": functools.partial(AgnosticQueryRelease, Thresholds(), 20.0, max_queries=10),
    "universal": functools.partial(UniversalQueryRelease, Thresholds(), 5.0, n_first=100),
}

# When a claim that methods carry is needed: all others always are.
NEEDED: dict[str, Callable[[Any], bool]] = {
    "EVER": lambda one: isinstance(one, EverlastingPredictor),
    "LABELLED": lambda one: isinstance(one, EverlastingPredictor),
    "PRIOR": lambda one: getattr(one._state_, "prior", None) is not None,
    "USER": lambda one: (
        getattr(one, "user_ids", False)
        or (hasattr(one, "client_cap") and one.client_cap is not None)
    ),
    "FRESH": lambda one: isinstance(one, EverlastingPredictor) and bool(one.fresh),
    "MEMO": lambda one: getattr(one, "memoize", False),
    "LATE": lambda one: getattr(one, "late", 0) != 0,
    "BBL": lambda one: isinstance(one, GenericBBL),
    "QUERY": lambda one: isinstance(one, QueryRelease | UniversalQueryRelease),
    "AGPRIV": lambda one: isinstance(one, AgnosticQueryRelease),
    "UNV": lambda one: isinstance(one, UniversalQueryRelease),
    "SSPP": lambda one: getattr(one, "mechanism", "") == "offline",
    "STORE": lambda one: isinstance(one._counter_.journal, DurableJournal),
    "REPLICAS": lambda one: NEEDED["STORE"](one) and one._counter_.journal.writer.home.shared,
}

FIT = MODELS[0]
PLACE = (
    "what a model answers for a row depends on that row and its place in a table, and on no other"
)
FAILS = "a model that fails on a row among made-up rows fails on it among any other rows"
OWNER = (  # as every refusal of fit, which is no release (SECURITY.md)
    "the refusal of a table with a column, or with labels, of which (nearly) nothing can be used "
    "is seen by the owner of the rows only"
)
SEEN = "an answer is seen by the one who asked, and by nobody else"
PUBLIC = "the queries are public"
BATCH = "an answer, or the refusal of a batch, is seen by the one who asked, and by nobody else"
# How guarantees say what proofs need outside the code; a text of STORE and REPLICAS is the same.
SAID = {
    "the fit of a shard's estimator is a function of": FIT,
    "a shard's fit is a function of its rows": FIT,
    "for tables of one shape, what its predict gives for a row": PLACE,
    "if it raises or warns on a row among stand-ins": FAILS,
    "an answer is seen by the one who asked and by nobody else": SEEN,
    "ids of queries that different people ask": (
        "ids of queries that different people ask are different"
    ),
    "ids are right, and who asks when is public": "ids are right, and who asks when is public",
    "queries are public (they may depend": PUBLIC,
    "queries and the pool are public": PUBLIC,
    "an answer, or the refusal of a batch, is seen": BATCH,
    "those of STORE, with the server's disk": "what the server's disk has synced survives",
}
# Claims whose assumptions the code that cites them meets, or the source of random bits (RAND).
MET = {
    *("MULTI", "NOISE", "COMP", "PAR", "KLNRS", "CHOOSE", "RAND", "LB", "SUB", "ZCDP", "BT"),
    *("STAB", "SSPP", "AGPRIV"),
}


def fitted(name: str) -> Any:
    one = KINDS[name]()
    ids = {"users": range(len(ROWS))} if getattr(one, "user_ids", False) else {}
    return one.fit(ROWS, LABELS, **ids)


def carried(one: Any) -> set[str]:
    """Return the claims that the methods of an object carry, and those of what records for it."""
    journal = one._counter_.journal
    parts = [one, one._state_, one._counter_, journal]
    if isinstance(journal, DurableJournal):
        parts += [journal.writer, journal.writer.home]
    kinds = [kind for part in parts for kind in type(part).__mro__]
    members = [member for kind in kinds for member in vars(kind).values()]
    marked = [one for one in (*kinds, *members) if hasattr(one, "__dict__")]
    found = {name for one in marked for name in claims_of(one)}
    return {name for name in found if name in NEEDED and NEEDED[name](one)}


def needs(claim: str) -> Iterator[str]:
    """Yield what a proof assumes, clause by clause."""
    text = (PROOFS / f"{claim}.md").read_text(encoding="utf-8")
    line = next(one for one in text.splitlines() if one.startswith("Assumptions: "))
    for clause in line.removeprefix("Assumptions: ").split("; "):
        yield clause.removeprefix("and ").replace("`", "").partition(" (replicas")[0]


def not_said(one: Any) -> set[str]:
    """Return what an object need not say, though a proof that it names assumes it."""
    found = {"those of the first stage's release", "those of the prior's own guarantee", OWNER}
    if not isinstance(one, EverlastingPredictor):  # SHARDS: queries are public, or classes cumae's
        found |= {PLACE, FAILS}
    if isinstance(one, GenericBBL | AgnosticQueryRelease):  # which take classes of cumae alone
        found |= {*MODELS, "k is proven for the class (LB)"}
    if getattr(one, "mechanism_", "") == "offline":
        found.add("those of SHARDS")
    return found | (set(ONE_HOST) if NEEDED["REPLICAS"](one) else set())


def check(one: Any) -> None:
    promise = one.guarantee_
    assert carried(one) <= set(promise.claims)
    for name in ("PRIOR", "USER", "FRESH", "MEMO", "LATE", "STORE", "REPLICAS"):
        assert (name in promise.claims) == NEEDED[name](one), name
    for claim in promise.claims:
        for clause in () if claim in MET else needs(claim):
            said = {clause, *(text for start, text in SAID.items() if clause.startswith(start))}
            said |= {f"those of {name}" for name in promise.claims if f"of {name}" in clause}
            known = {*promise.assumptions, *not_said(one)}
            known |= {f"those of {name}" for name in promise.claims}
            assert said & known, (claim, clause)


@pytest.mark.parametrize("name", KINDS)
def test_a_guarantee_names_all_proofs_and_what_they_need(name: str, tmp_path: Path) -> None:
    one = fitted(name)
    check(one)
    assert not {"STORE", "REPLICAS"} & set(one.guarantee_.claims)
    one.save_to(tmp_path / "oracle.db")
    opened = cumae.open(tmp_path / "oracle.db")
    check(opened)
    assert opened.guarantee_.epsilon == one.guarantee_.epsilon
    assert "no process is copied with its memory" in opened.guarantee_.assumptions
    opened.close()


def test_replicas_need_what_their_server_needs(where: Where) -> None:
    stored = where.oracle()
    check(stored)
    assert ("REPLICAS" in stored.guarantee_.claims) == where.shared
    assert (ONE_HOST[0] in stored.guarantee_.assumptions) != where.shared
    stored.close()


@pytest.mark.parametrize("left_out", ["STORE", "USER", FAILS])
def test_a_guarantee_that_leaves_something_out_is_noticed(left_out: str, tmp_path: Path) -> None:
    fitted("clients").save_to(tmp_path / "oracle.db")
    opened = cumae.open(tmp_path / "oracle.db")
    promise = opened.guarantee_
    for name in ("claims", "assumptions"):
        told = tuple(one for one in getattr(promise, name) if one != left_out)
        object.__setattr__(promise, name, told)
    with pytest.raises(AssertionError):
        check(opened)
    opened.close()
