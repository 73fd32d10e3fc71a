"""The promise of an oracle that lasts: that of its predictor, under what its home needs as well."""

from __future__ import annotations

from dataclasses import replace

from cumae.privacy import Guarantee

# The assumptions of proofs/STORE.md and proofs/REPLICAS.md, in their words.
STORE = (
    "what the disk has synced survives, and a rename is one step",
    "the key store is not copied, and is not put back to an earlier state together with the file",
    (
        "what is put there is seen by whoever reads it afterwards, a put is one step, and a list "
        "has every name that is there before and after it"
    ),
    "no process is copied with its memory",
    "AES-GCM, HMAC and SHA-256 do what they are for",
    "an overwritten or deleted key file cannot be read",
    "request ids of different clients differ",
    "when a process crashes tells nothing about rows",
)
ONE_HOST = (
    "one host holds the lock of a file",
    "nobody closes a descriptor of the file in the process that has it open",
)
REPLICAS = (
    "what the server's disk has synced survives",
    (
        "PostgreSQL commits as a whole and durably with fsync, full_page_writes and "
        "synchronous_commit on, its locks of a session end with the session, and a session that "
        "was ended commits nothing more"
    ),
    "what is put among the keys is seen by whoever reads it afterwards, and a put is one step",
    "two servers with the same identifier, database, table and timeline are one",
    (
        "nobody else writes the tables in a way that keeps the number of the transaction that "
        "wrote the head"
    ),
)


def durable(guarantee: Guarantee, *, shared: bool) -> Guarantee:
    """Return what an oracle in a home promises.

    Parameters
    ----------
    guarantee : Guarantee
        That of the predictor in memory.
    shared : bool
        True if several processes may have the oracle open.
    """
    claims = ("STORE", "REPLICAS") if shared else ("STORE",)
    needs = (*STORE, *(REPLICAS if shared else ONE_HOST))
    return replace(
        guarantee,
        claims=tuple(dict.fromkeys((*guarantee.claims, *claims))),
        assumptions=tuple(dict.fromkeys((*guarantee.assumptions, *needs))),
    )
