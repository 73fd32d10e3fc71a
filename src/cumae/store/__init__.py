"""Durable oracles: predictors and learners in one file, with a ledger of what was spent."""

from cumae.store.homes.places import place_of
from cumae.store.looking import Status, status
from cumae.store.oracle import (
    backup,
    check_new_keys,
    destroy,
    load,
    open,  # noqa: A004 - cumae.open is its name
    rotate,
    save_account,
    save_learner,
    save_state,
)

__all__ = [
    "Status",
    "backup",
    "check_new_keys",
    "destroy",
    "load",
    "open",
    "place_of",
    "rotate",
    "save_account",
    "save_learner",
    "save_state",
    "status",
]
