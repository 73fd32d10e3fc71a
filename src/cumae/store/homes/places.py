"""Finds out where an oracle lives, from what ``cumae.open`` or ``save_to`` was given."""

from __future__ import annotations

import importlib
from pathlib import Path

from cumae.extras import POSTGRES, STORE, needing
from cumae.store.homes.home import Place
from cumae.store.homes.sqlite import FilePlace

SCHEMES = ("postgresql://", "postgres://")


def place_of(path: str | Path) -> Place:
    """Return the place that a path or an address names.

    Nothing of PostgreSQL is imported unless an address asks for it. Packages that are not there are
    named here, before anything is written.
    """
    if not isinstance(path, str) or not path.startswith(SCHEMES):
        with needing(*STORE):
            importlib.import_module("apsw")
            importlib.import_module("cryptography")
        return FilePlace(Path(path))
    with needing(*POSTGRES):
        from cumae.store.homes.postgres import ServerPlace  # noqa: PLC0415 - imports psycopg

        importlib.import_module("cryptography")
    return ServerPlace(path)
