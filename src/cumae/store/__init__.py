"""Durable oracles: predictors and learners in one file, with a ledger of what was spent."""

from typing import TYPE_CHECKING

from cumae.store.homes.places import place_of
from cumae.store.looking import Status, status

if TYPE_CHECKING:
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
else:

    def __getattr__(name):
        """Import what needs predictors when it is asked for: looking at an oracle does not."""
        if name not in __all__:
            raise AttributeError(f"module 'cumae.store' has no attribute {name!r}")
        from cumae.store import oracle  # noqa: PLC0415 - takes seconds to load

        return getattr(oracle, name)


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
