"""Finds out where an oracle lives, from what ``cumae.open`` or ``save_to`` was given."""

from __future__ import annotations

import importlib
from pathlib import Path

from cumae.errors import StoreFailed
from cumae.store.homes.home import Place
from cumae.store.homes.sqlite import FilePlace

SCHEMES = ("postgresql://", "postgres://")


def place_of(path: str | Path) -> Place:
    """Return the place that a path or an address names.

    Nothing of PostgreSQL is imported unless an address asks for it.
    """
    if not isinstance(path, str) or not path.startswith(SCHEMES):
        return FilePlace(Path(path))
    try:
        postgres = importlib.import_module("cumae.store.homes.postgres")
    except ModuleNotFoundError as error:
        raise StoreFailed(
            f"an oracle in PostgreSQL needs the package {error.name}; run pip install "
            "'cumae[postgres]'."
        ) from error
    place: Place = postgres.ServerPlace(path)
    return place
