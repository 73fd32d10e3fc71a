"""Laws of single rows: what a row adds, and is said of it, has the same bits in any company."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.checks.shards import demand
from cumae.data import Columns, RowSource, row_source
from cumae.engines import Pieces, RowEngine
from cumae.learners.kernel.features import KernelFeatures
from cumae.learners.kernel.sums import Question
from cumae.predictors.everlasting.prior import Prior
from cumae.randomness import SeededSource

LARGEST = 5_000  # rows of a batch
# Around numbers of rows at which loops of processors and of libraries of linear algebra change.
SIZES = (
    *(1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16, 17, 23, 31, 32, 33, 47, 63, 64, 65, 97, 127, 128),
    *(129, 191, 255, 256, 257, 383, 511, 512, 513, 1000, 1023, 1025, 2047, 2049, 4095, 4096, 4097),
    *(4999, LARGEST),
)
SAID = ("predict", "predict_proba", "decision_function")  # what a published model says of rows

AnswerBatch = Callable[[Any, Integers], NDArray[Any]]


def rows_ignore_their_batch(ask: AnswerBatch, rows: Any, sizes: Sequence[int] = SIZES) -> None:
    """An answer about a row has the same bits alone and at each place of batches of all sizes.

    Parameters
    ----------
    ask : callable
        Takes a batch and the running number of each of its rows; returns an array with one entry
        for each row.
    rows : array or DataFrame
        Rows; in batches that are larger they come again. Their places here are their numbers.
    sizes : sequence of int
        Sizes of batches. There are two batches of each size, with other rows at each place.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.checks.batches import rows_ignore_their_batch
    >>> rows = np.random.default_rng(0).normal(size=(100, 3))
    >>> rows_ignore_their_batch(lambda batch, _: batch.max(axis=1), rows, (1, 7, 100))
    >>> rows_ignore_their_batch(lambda batch, _: batch - batch.mean(), rows, (1, 7, 100))
    Traceback (most recent call last):
      ...
    AssertionError: in a batch of 7 rows, 7 got another result than alone
    """
    source = row_source(rows if hasattr(rows, "columns") else np.asarray(rows))
    count = source.n_rows
    alone = np.concatenate([_bits(ask, source, np.array([place])) for place in range(count)])
    for size in sizes:
        for start in (0, size // 2 + 1):
            numbers = (start + np.arange(size)) % count
            wrong = (_bits(ask, source, numbers) != alone[numbers]).any(axis=1)
            text = f"in a batch of {size} rows, {wrong.sum()} got another result than alone"
            demand(not wrong.any(), text)


def _bits(ask: AnswerBatch, source: RowSource, numbers: Integers) -> NDArray[Any]:
    """Return the bytes of what is said, a row for each row."""
    found = np.ascontiguousarray(ask(source.take(numbers), numbers))
    if found.dtype.kind == "O":  # labels of any type
        return np.array([[repr(one)] for one in found.tolist()], dtype=object)
    return found.reshape(len(numbers), -1).view(np.uint8)


def a_prior_ignores_the_batch(prior: Prior, rows: Any, sizes: Sequence[int] = SIZES) -> None:
    """The shares of a fitted prior for a row have the same bits in any batch, at any place.

    Parameters
    ----------
    prior : Prior
        A fitted one.
    rows : table
        At least as many queries as the largest batch has, in the form in which it gets them.
    sizes : sequence of int
        As in ``rows_ignore_their_batch``.
    """
    rows_ignore_their_batch(prior.shares, rows, sizes)


def a_model_ignores_the_batch(model: Any, rows: Any, sizes: Sequence[int] = SIZES) -> None:
    """The output of a fitted model for a row has the same bits in any batch, at any place.

    Parameters
    ----------
    model : Learner
        A fitted one.
    rows : table
        Rows with the columns of ``fit``.
    sizes : sequence of int
        As in ``rows_ignore_their_batch``.
    """
    for method in [getattr(model, name) for name in SAID if hasattr(model, name)]:
        rows_ignore_their_batch(_without_numbers(method), rows, sizes)


def _without_numbers(say: Callable[[Any], NDArray[Any]]) -> AnswerBatch:
    return lambda batch, _: say(batch)


SUMMED = 400  # rows
# Where pieces end: few rows and many, as many as processors take at once, and none.
CUTS: tuple[tuple[int, ...], ...] = (
    (SUMMED,),
    (1, 2, 5, 12, 29, 29, 93, 350, SUMMED),
    (*range(47, SUMMED, 47), SUMMED),
)


def pieces_do_not_change_the_sum(
    engine: RowEngine,
    cuts: Sequence[Sequence[int]] = CUTS,
    disturb: Callable[[], None] | None = None,
) -> None:
    """A sum over rows has the same bits on an engine for any pieces, each added once.

    The sums are those by which rows speak in the kernel learners, of three classes. They are
    compared with the same sum row by row, without any engine.

    Parameters
    ----------
    engine : RowEngine
        What is checked.
    cuts : sequence of sequence of int
        Ways to cut 400 rows into pieces: where pieces end.
    disturb : callable, or None
        Called before each sum; it may kill a worker.

    Examples
    --------
    >>> from cumae.checks import pieces_do_not_change_the_sum
    >>> from cumae.engines import Here
    >>> pieces_do_not_change_the_sum(Here())
    """
    coins = np.random.default_rng(0)
    table, labels = coins.normal(size=(SUMMED, 5)), coins.integers(0, 3, SUMMED)
    asked = _question(table, coins)
    codes = asked.features.codes(table)
    each = [asked.total(codes[[row]], labels[[row]]) for row in range(SUMMED)]
    expected = np.sum(each, axis=0)
    for ends in cuts:
        starts = [0, *ends[:-1]]
        parts = [(table[a:b], labels[a:b]) for a, b in zip(starts, ends, strict=True)]
        sizes = tuple(len(part[1]) for part in parts)
        pieces = Pieces(engine, engine.hold(parts), sizes).then(asked.features.code_rows)
        for told, given in (("", pieces), (" that were kept", pieces.kept())):
            if disturb is not None:
                disturb()
            found = given.sum(asked.total)
            same = np.array_equal(found, expected)
            demand(same, f"{len(parts)} pieces{told} on {engine.name} gave another sum than rows")


def _question(table: Floats, coins: np.random.Generator) -> Question:
    """Return what is asked of each row, with all kinds of features."""
    columns = Columns([(-4.0, 4.0)] * table.shape[1], None, table.shape[1])
    features = KernelFeatures.of(table[:200], columns, SeededSource(0), curves=3, waves=5)
    mean: Any = coins.normal(size=(len(features), 3))
    return Question.of(features, mean, coins.normal(size=(len(features), 7)))
