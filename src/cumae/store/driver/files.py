"""The audit's way to an oracle in a file, with restarts in the middle."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cumae.audit.game import InProcess
from cumae.audit.runs import Attack
from cumae.store.oracle import open as open_oracle


class OracleInFile:
    """Drives a predictor that lives in a file, and restarts it in the middle of every batch.

    Parameters
    ----------
    make : callable
        Returns a new driver of a predictor in this process, not fitted.
    folder : str, or None
        Where the file is; None for a temporary folder.

    Examples
    --------
    >>> from cumae import QueryRelease
    >>> from cumae.audit.game import InProcess
    >>> from cumae.store.driver import OracleInFile
    >>> driver = OracleInFile(lambda: InProcess(lambda: QueryRelease(max_queries=5, epsilon=2.0)))
    >>> driver.train([[0.0], [1.0]] * 500, [0, 1] * 500)
    >>> driver.ask([[0.0], [1.0]]).shape
    (2,)
    >>> driver.close()
    """

    def __init__(self, make: Callable[[], Any], folder: str | None = None) -> None:
        self._inner: InProcess = make()
        self._model: Any = None
        self._folder = tempfile.TemporaryDirectory(dir=folder)
        self.path = Path(self._folder.name) / "oracle.db"

    @property
    def estimator(self) -> Any:
        """The oracle."""
        return self._inner.estimator

    def train(self, X: Any, y: Any, **whose: Any) -> None:
        """Fit it, save it, and open it."""
        self._inner.train(X, y, **whose)
        given = self.estimator.get_params(deep=False)
        named = given.get("estimator")  # GenericBBL takes a class of concepts only
        self._model = given["concept_class"] if named is None else named
        self.estimator.save_to(self.path)
        self._open()

    def ask(self, X: Any, **whose: Any) -> Any:
        """Return answers: half of them before a restart, and half of them after it."""
        middle = len(X) // 2
        answers = []
        for part in (slice(0, middle), slice(middle, None)):
            own = {name: ids if ids is None else ids[part] for name, ids in whose.items()}
            answers.append(self._inner.ask(X[part], **own))
            self.restart()
        return np.concatenate(answers)

    def restart(self) -> None:
        """Close the oracle and open it again."""
        self.estimator.close()
        self._open()

    def _open(self) -> None:
        self._inner.estimator = open_oracle(self.path, estimator=self._model)

    def supply(self, X: Any) -> None:
        """Give it rows without labels."""
        self._inner.supply(X)

    def label(self, X: Any, y: Any) -> None:
        """Give it rows with labels, after it was trained."""
        self._inner.label(X, y)

    def published(self) -> Any:
        """Return what everybody may see."""
        return self._inner.published()

    def close(self) -> None:
        """Close the oracle, and remove its files."""
        if self.path.exists():
            self.estimator.close()
        self._folder.cleanup()

    def __del__(self) -> None:
        self.close()


def in_a_file(attack: Attack, folder: str | None = None) -> Attack:
    """Return the same attack, played against an oracle in a file with restarts in the middle.

    Parameters
    ----------
    attack : Attack
        One on a predictor in this process.
    folder : str, or None
        Where files are; None for temporary folders.
    """
    return replace(
        attack, name=f"{attack.name}, in a file", make=partial(OracleInFile, attack.make, folder)
    )
