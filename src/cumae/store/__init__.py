"""Durable oracles: predictors and learners in one file, with a ledger of what was spent."""

from cumae.store.oracle import (
    Status,
    backup,
    destroy,
    open,  # noqa: A004 - cumae.open is its name
    rotate,
    save_account,
    save_learner,
    save_state,
    status,
)

__all__ = [
    "Status",
    "backup",
    "destroy",
    "open",
    "rotate",
    "save_account",
    "save_learner",
    "save_state",
    "status",
]
