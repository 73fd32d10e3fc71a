"""The way from ``save_to`` to the store, for classes in layers below it.

The store imports predictors, learners and accounts, so these cannot import the store. Their methods
``save_to`` call ``saver`` here instead. ``cumae`` itself, the top of the package, registers how the
store is imported; no class can be used before, because Python imports the package first.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol


class Saver(Protocol):
    """The functions that write objects in memory to new oracles; ``cumae.store`` has all of them.

    ``path`` is a file that does not exist yet, or an address. ``command`` keeps the keys; None
    stands for a folder beside the file.
    """

    def save_state(self, counter: Any, path: str | Path, command: str | None) -> None:
        """Move a predictor, which its counter stands for."""

    def save_learner(self, learner: Any, path: str | Path, command: str | None) -> None:
        """Write a published learner."""

    def save_account(
        self,
        account: dict[str, Any],
        path: str | Path,
        command: str | None,
        take: Callable[[Any], None],
    ) -> None:
        """Move an account; ``take`` lets the ``Budget`` in memory pay in the new file alone."""


_registered: list[Callable[[], Saver]] = []


def register(find: Callable[[], Saver]) -> None:
    """Let ``saver`` return what a function returns; it is called when something is first saved."""
    _registered[:] = [find]


def saver() -> Saver:
    """Return what writes objects in memory to new oracles."""
    (find,) = _registered
    return find()
