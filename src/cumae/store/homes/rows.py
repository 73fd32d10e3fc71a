"""The rows of an oracle as they are written to PostgreSQL."""

from __future__ import annotations

from typing import Any

import psycopg

from cumae.store.homes.home import Transaction, blob_rows

OLD = "FROM cumae_blobs WHERE number < %s AND number <> %s AND epoch <= %s"
SWEEP = f"DELETE FROM cumae_blobs WHERE (number, part) IN (SELECT number, part {OLD} LIMIT %s)"  # noqa: S608 - as above


def write_rows(connection: psycopg.Connection[Any], change: Transaction) -> None:
    """Write all of a transaction but its head."""
    asked: list[tuple[Any, Any]] = []
    if change.drop_below:
        between = (change.drop_from, change.drop_below)
        asked.append(("DELETE FROM cumae_blobs WHERE number >= %s AND number < %s", between))
    if change.sweep is not None:
        asked.append((SWEEP, change.sweep))
    if change.drop_answers:
        asked.append(("DELETE FROM cumae_answers", None))
    if change.prune_below:
        asked.append(("DELETE FROM cumae_ledger WHERE number < %s", (change.prune_below,)))
    text = "INSERT INTO cumae_blobs VALUES (%s, %s, %s, %s, %b)"
    asked += [(text, row) for row in blob_rows(change)]
    text = (
        "INSERT INTO cumae_answers VALUES (%b, %s, %b) ON CONFLICT (name) DO UPDATE SET "
        "epoch = excluded.epoch, sealed = excluded.sealed"
    )
    asked += [(text, (name, *stored)) for name, stored in change.answers.items()]
    text = "INSERT INTO cumae_ledger VALUES (%s, %s, %b)"
    asked += [(text, entry) for entry in change.entries]
    for text, values in asked:
        connection.execute(text, values)
