"""Faults that once were, or could have been, to be planted: audits and laws must find them."""

from __future__ import annotations

import contextlib
import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cumae.data import Columns
from cumae.ensembles.sizing import SizeTrial
from cumae.ensembles.voters.loop import LoopVoters
from cumae.learners import ranged
from cumae.learners.kernel import sums
from cumae.learners.kernel.learner import KernelLearner
from cumae.learners.kernel.posterior import Posterior
from cumae.learners.kernel.reference import MadeUp
from cumae.learners.kernel.sums import Question
from cumae.learners.regression.asking import NumberQuestion
from cumae.predictors.everlasting import fitting
from cumae.predictors.everlasting.prior import Prior
from cumae.predictors.queries import QueryReader
from cumae.predictors.release import base as release
from cumae.randomness import SeededSource, discrete_gaussian
from cumae.sanitizers import Ranges

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
    monkeypatch.setattr(QueryReader, "private", _read_with_inferred_types)
    halve_failing_batches(monkeypatch)  # no other rows in the tables that models get


def halve_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask all models about a whole batch; where one of them fails, ask all about halves of it."""
    monkeypatch.setattr(LoopVoters, "count", _count_all_in_halves)


def sizes_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the trial of shard sizes look at the rows: far cells ask for larger shards."""
    for module in (release, fitting):
        monkeypatch.setattr(module, "try_sizes", _size_of_rows)


def _size_of_rows(_trainer: Any, rows: Any, *_: Any, usual: int, **_others: Any) -> SizeTrial:
    far = np.abs(rows.take(np.arange(rows.n_rows))).max() > 1e3
    return SizeTrial(2 * usual if far else usual, ())


def ask_the_prior_about_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the prior about all rows of a batch in one table of their number."""
    monkeypatch.setattr(Prior, "shares", _shares_of_a_batch)


def leave_threads_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let models be asked with as many threads as the process has just then."""
    monkeypatch.setattr("cumae.ensembles.voters.loop.one_thread", contextlib.nullcontext)


def _shares_of_a_batch(self: Prior, queries: Any, *_: Any) -> Any:
    return np.asarray(self.learner.predict_proba(queries))


def _count_all_in_halves(self: LoopVoters, X: Any, *_: Any) -> Any:
    labels = [_labels(model, X) for model in self.models]
    if all(found is not None for found in labels):
        return _count(labels, self.n_classes)
    if len(X) == 1:
        return _count([[0] if one is None else one for one in labels], self.n_classes)
    middle = len(X) // 2
    halves = (X[:middle], X[middle:])
    return np.concatenate([_count_all_in_halves(self, half) for half in halves])


def _count_in_halves(self: LoopVoters, X: Any, *_: Any) -> Any:
    return _count([_labels_in_halves(model, X) for model in self.models], self.n_classes)


def _count_openly(self: LoopVoters, X: Any, *_: Any) -> Any:
    return _count([model.predict(X) for model in self.models], self.n_classes)


def _count(labels: Any, n_classes: int) -> Any:
    return (np.asarray(labels)[:, :, None] == np.arange(n_classes)).sum(axis=0)


def _labels_in_halves(model: Any, rows: Any) -> Any:
    found = _labels(model, rows)
    if found is not None:
        return found
    if len(rows) == 1:
        return np.zeros(1, dtype=np.int64)
    middle = len(rows) // 2
    halves = (rows[:middle], rows[middle:])
    return np.concatenate([_labels_in_halves(model, half) for half in halves])


def _labels(model: Any, rows: Any) -> Any:
    """Return labels; None if the model raises or warns."""
    try:
        with warnings.catch_warnings(action="error"), np.errstate(all="warn", under="ignore"):
            return np.asarray(model.predict(rows), dtype=np.int64)
    except Exception:  # noqa: BLE001 (whatever a model raises)
        return None


def _read_with_inferred_types(self: QueryReader, X: Any) -> Any:
    """Read queries in a frame of text, with a stand-in for what is missing."""
    del self
    frame = pd.DataFrame({name: X[name].to_numpy(dtype=object) for name in X})
    usable: Any = ~frame.isna().to_numpy().any(axis=1)
    for place in range(frame.shape[1]):
        frame.iloc[~usable, place] = "a"  # no date takes it, not even if nothing is missing
    return frame, usable


def missing_numbers_become_means(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill the gaps of a column of numbers with the mean of all rows that are read together."""
    encode = Columns.encode

    def filled(self: Columns, X: Any, first: int = 0) -> Any:
        table = encode(self, X, first)
        places = np.cumsum([0, *(len(column.encoded) for column in self.columns)])
        for column, place in zip(self.columns, places.tolist(), strict=False):
            if column.kind == "numbers" and column.missing:
                gone = table[:, place + 1] == 1
                table[gone, place] = np.mean(table[~gone, place]) if not gone.all() else 0.5
        return table

    monkeypatch.setattr(Columns, "encode", filled)


# Faults of the kernel classifier


def design_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the spread of the private rows decide how far directions reach."""
    model, design = KernelLearner._model, Posterior.design
    held: list[Any] = []

    def keep(self: KernelLearner, rows: Any, *rest: Any) -> Any:
        held[:] = [np.std(rows.X)]
        return model(self, rows, *rest)

    monkeypatch.setattr(KernelLearner, "_model", keep)
    monkeypatch.setattr(Posterior, "design", lambda self, noise: design(self, noise) * held[0])


def reference_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make levels and scales of features from private rows."""
    monkeypatch.setattr(KernelLearner, "_reference", lambda self, rows, *_: (rows.X, 200.0))


def unbounded_residuals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weigh all residuals alike, and do not look at their length."""
    monkeypatch.setattr(sums, "weights", lambda chance: np.ones(len(chance)))
    monkeypatch.setattr(sums, "STEEP", _Endless(sums.STEEP))


def numbers_are_not_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the residual of a number be as long as it is."""

    def total(self: NumberQuestion, codes: Any, numbers: Any) -> Any:
        scores, across = self.asked.ask(codes)
        pointed = np.rint(across * np.float32(sums.room(across.shape[1], sums.LENGTH)))
        residual = np.rint(self.residuals(scores[:, 0], numbers) * sums.STEEP)
        return (pointed.T.astype(np.float64) @ residual).astype(np.int64)

    monkeypatch.setattr(NumberQuestion, "total", total)


def short_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add up whole numbers as float32, which holds them up to 2^24."""

    def total(self: Question, codes: Any, labels: Any) -> Any:
        odds, across = self.ask(codes)
        pointed = np.rint(across * np.float32(sums.room(across.shape[1], sums.LENGTH)))
        scale = 2 * sums.room(odds.shape[1], sums.STEEP)
        residual = np.rint(sums.residuals(odds, labels) * scale).astype(np.float32)
        return (pointed.T @ residual).astype(np.int64)

    monkeypatch.setattr(Question, "total", total)


def half_the_noise_of_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw noise of half the scale that is paid for."""
    monkeypatch.setattr(
        sums, "discrete_gaussian", lambda scale, *rest: discrete_gaussian(scale / 2, *rest)
    )


def noise_for_two_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw noise once, and use it for the next sum, too."""
    left: list[Any] = []

    def draw(*given: Any) -> Any:
        if not left:
            left.append(discrete_gaussian(*given))
            return left[0]
        return left.pop()

    monkeypatch.setattr(sums, "discrete_gaussian", draw)


def marks_of_missing_cells_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a column of numbers that may be missing be in one bin, as if it had no mark."""

    def count(self: MadeUp) -> int:
        beside = sum(len(marks) == 1 and marks[0] - 1 in self.numbers for marks in self.marks)
        return len(self.numbers) + len(self.marks) - beside

    monkeypatch.setattr(MadeUp, "n_columns", property(count))


def ranges_are_drawn_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find each range twice, and take the wider one; it is paid for once."""

    class Twice(Ranges):
        def find_by_counts(self, counts: Any) -> Any:
            find = super().find_by_counts
            pairs = zip(find(counts), find(counts), strict=True)
            return [(min(one[0], two[0]), max(one[1], two[1])) for one, two in pairs]

    monkeypatch.setattr(ranged, "Ranges", Twice)


def noise_of_a_known_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the noise of each sum from the same seed."""
    monkeypatch.setattr(
        sums,
        "discrete_gaussian",
        lambda scale, size, _: discrete_gaussian(scale, size, SeededSource(7)),
    )


class _Endless(int):
    """A number whose square is not a bound for anything."""

    def __pow__(self, power: Any, *_: Any) -> Any:
        return math.inf
