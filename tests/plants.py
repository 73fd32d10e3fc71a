"""Faults that predictors once had, to be planted again: audits and laws must find them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cumae.ensembles.voters.loop import LoopVoters
from cumae.predictors.base import Predictor

if TYPE_CHECKING:
    import pytest


def halve_failing_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask models about a whole batch; where one of them fails, about halves of it, and so on."""
    monkeypatch.setattr(LoopVoters, "count", _count_in_halves)


def let_errors_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whoever asks see what a model raises."""
    monkeypatch.setattr(LoopVoters, "count", _count_openly)


def infer_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pandas take the type of a column of text from all cells of a batch."""
    monkeypatch.setattr(Predictor, "_readable", _read_with_inferred_types)
    halve_failing_batches(monkeypatch)  # no other rows in the tables that models get


def _count_in_halves(self: LoopVoters, X: Any, *_: Any) -> Any:
    return _count([_labels_in_halves(model, X) for model in self.models], self.n_classes)


def _count_openly(self: LoopVoters, X: Any, *_: Any) -> Any:
    return _count([model.predict(X) for model in self.models], self.n_classes)


def _count(labels: Any, n_classes: int) -> Any:
    return (np.asarray(labels)[:, :, None] == np.arange(n_classes)).sum(axis=0)


def _labels_in_halves(model: Any, rows: Any) -> Any:
    try:
        with warnings.catch_warnings(action="error"), np.errstate(all="warn", under="ignore"):
            return np.asarray(model.predict(rows), dtype=np.int64)
    except Exception:  # noqa: BLE001 (whatever a model raises)
        if len(rows) == 1:
            return np.zeros(1, dtype=np.int64)
        middle = len(rows) // 2
        halves = (rows[:middle], rows[middle:])
        return np.concatenate([_labels_in_halves(model, half) for half in halves])


def _read_with_inferred_types(self: Predictor, X: Any) -> Any:
    """Read queries in a frame of text, with a stand-in for what is missing."""
    del self
    frame = pd.DataFrame({name: X[name].to_numpy(dtype=object) for name in X})
    usable: Any = ~frame.isna().to_numpy().any(axis=1)
    for place in range(frame.shape[1]):
        frame.iloc[~usable, place] = "a"  # no date takes it, not even if nothing is missing
    return frame, usable
