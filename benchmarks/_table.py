"""One table that learners are judged on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Rows, their labels from 0 on, and what may be declared about the columns.

    ``chances`` has the true chance of each class in each row, where it is known. ``guesses`` are
    wide ranges for columns whose range is open, for learners that need one.
    """

    rows: pd.DataFrame
    labels: NDArray[np.int64]
    declared: dict[str, Any]
    name: str = ""
    shape: str = ""
    classes: tuple[int, ...] = (0, 1)
    chances: Floats | None = None
    guesses: dict[str, Any] = field(default_factory=dict)

    @property
    def bayes(self) -> float | None:
        """Accuracy of the best possible rule, on average over these rows; None if not known."""
        return None if self.chances is None else float(self.chances.max(axis=1).mean())

    def take(self, places: Any) -> Table:
        """Return the rows at these places."""
        rows = self.rows.iloc[places].reset_index(drop=True)
        chances = None if self.chances is None else self.chances[places]
        return replace(self, rows=rows, labels=self.labels[places], chances=chances)

    def some(self, count: int, seed: int = 0) -> Table:
        """Return so many rows, in a random order."""
        return self.take(np.random.default_rng(seed).permutation(len(self.labels))[:count])


def words(text: str) -> list[str]:
    return text.split()
