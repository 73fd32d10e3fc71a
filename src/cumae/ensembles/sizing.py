"""Rows that a shard needs: an estimator is tried on made-up tables, with shards of many sizes.

Larger shards make better models, and fewer of them, so that the noise counts for more. Where the
balance lies depends on the estimator: some learn from ten rows, and some label all rows alike until
they have fifty. So each size is tried on made-up tables with the declared columns and five kinds of
labels. Some shards are trained, and the share of their votes for each query is what a vote of many
shards would have. Normal noise of the real size on that share gives the chance of the right answer.

Nothing here reads a private row: of the table only its declared facts are used, and the coins of
the made-up rows are fixed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import joblib
import numpy as np
from scipy.special import ndtr
from sklearn.pipeline import Pipeline

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import RowSource
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.trainer import Trainer
from cumae.ensembles.trial import as_asked
from cumae.made_up import rows_at
from cumae.progress import Progress
from cumae.quiet import HiddenFailures, warnings_raise
from cumae.randomness import SeededSource
from cumae.threads import one_thread

QUERIES = 200  # of each made-up table
FEWEST_MODELS, MOST_MODELS = 12, 32  # that are trained for each size and table
SHARDS_PER_MODEL = 30  # so that the trial takes less time than the real shards, between these two
LARGEST = 800  # rows of a shard that is tried
MOST_CELLS = 2**24  # of a made-up table; a size that needs more is not tried
NEARLY = 0.2  # of what the best size has beyond chance: a smaller one may have so much less
LEARNT = 0.005  # share of right answers beyond chance from which on a model has learnt something
USUAL_OF_MANY, FACTOR_OF_MANY = 50, 4  # smallest size, and next one, of forests and the like
OF_MANY = ("sklearn.ensemble", "sklearn.neural_network")
TOO_NOISY = 1.0  # noise, as a share of the votes, beyond which no larger size is tried
SHARPNESS = 2.0  # of labels: with it the best rule is right about four times in five
RARE = 0.15  # share of the other classes where the first one is common
FALLING = 0.8  # what a column of a linear rule counts against the one before
FIXED = 20_260_101  # the seed of all made-up rows, which is public

Answers: TypeAlias = list[tuple[Floats, Integers]]  # for each table: votes by class, right classes


@dataclass(frozen=True)
class SizeTrial:
    """Which size was chosen, and how the sizes did that were tried.

    Parameters
    ----------
    size : int
        Rows of a shard.
    scores : tuple of pairs of int and float
        Sizes, and the share of right answers on made-up tables; each class counts the same.
    """

    size: int
    scores: tuple[tuple[int, float], ...]

    def shown(self) -> list[dict[str, Any]]:
        """Return it as a public attribute."""
        return [{"rows": size, "score": round(score, 4)} for size, score in self.scores]


@claim("SHARDS")
def try_sizes(
    trainer: Trainer,
    rows: RowSource,
    stand_in: Any,
    *,
    usual: int,
    n_rows: int,
    noise: float,
    progress: bool | None = None,
) -> SizeTrial:
    """Return the smallest size, from the usual one on, that is nearly as good as any.

    Sizes are doubled until two in a row are no better than an earlier one. The usual size is kept
    if the model learns nothing with any of them. Estimators that train many models, such as
    forests, take long and learn little from few rows: their sizes begin higher, and grow faster.

    Parameters
    ----------
    trainer : Trainer
        What will train the shards.
    rows : RowSource
        Where the private rows are; the width, names and types of its columns are used.
    stand_in : array or DataFrame
        What ``stand_in_row`` made up, in the form in which models get rows.
    usual : int
        The size that is taken for estimators which learn from few rows.
    n_rows : int
        Rows of all shards together.
    noise : float
        Standard deviation of the noise of a vote count.
    progress : bool, or None
        Whether to show a progress bar; None shows it on a terminal.
    """
    factor = 2
    if is_of_many(trainer.model):  # each of its shards takes long to train, and to ask
        usual, factor = max(usual, min(USUAL_OF_MANY, n_rows // 2)), FACTOR_OF_MANY
    count = min(MOST_MODELS, max(FEWEST_MODELS, n_rows // usual // SHARDS_PER_MODEL))
    chance = 1 / trainer.n_classes
    scores: list[tuple[int, float]] = []
    best, worse = chance, 0
    most = min(LARGEST, n_rows // 2, MOST_CELLS // (count * rows.n_features))
    for size in _growing(usual, most, factor):
        learns = best > chance + LEARNT
        if learns and (worse == 2 or noise * size / n_rows > TOO_NOISY):
            break
        answers = _answers(trainer, rows, stand_in, size, count, progress)
        score = _score(answers, noise * size / n_rows, count)
        scores.append((size, score))
        best, worse = max(best, score), 0 if score > best else worse + 1
    chosen = usual
    if best > chance + LEARNT:
        enough = best - NEARLY * (best - chance)
        chosen = next(size for size, score in scores if score >= enough)
    return SizeTrial(chosen, tuple(scores))


def _growing(size: int, most: int, factor: int) -> Iterator[int]:
    while size <= most:
        yield size
        size *= factor


def is_of_many(model: Any) -> bool:
    """Tell by its class whether a classifier, or the last step of a Pipeline, trains many models.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from cumae.ensembles.sizing import is_of_many
    >>> is_of_many(RandomForestClassifier()), is_of_many(DecisionTreeClassifier())
    (True, False)
    """
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    named = hasattr(last, "get_params") and "n_estimators" in last.get_params(deep=False)
    return named or type(last).__module__.startswith(OF_MANY)


@claim("SHARDS")
def _answers(
    trainer: Trainer, rows: RowSource, stand_in: Any, size: int, count: int, progress: bool | None
) -> Answers:
    """Train shards of one size on each made-up table, and ask them; remember what came out."""
    facts = (rows.n_features, rows.names, rows.is_frame)
    texts = [rows.is_text(place) for place in range(rows.n_features)]
    key = None
    with HiddenFailures():  # what cannot be pickled is tried each time
        key = joblib.hash((trainer, facts, texts, size, count))
    known = _KNOWN.get(key)
    if known is not None:
        return known
    spread, coins = _spread(QUERIES + size * count, rows.n_features)
    table = rows_at(rows, trainer.columns, spread)
    asked = as_asked(table[:QUERIES], trainer, stand_in)
    starts, seeds = np.arange(count + 1) * size, np.arange(count)
    found: Answers = []
    tables = _labels(spread, coins, trainer.n_classes)
    with Progress(f"trying shards of {size} rows", len(tables), progress) as bar:
        for labels in tables:
            targets = trainer.targets(labels[QUERIES:])
            models = trainer.train_many(table[QUERIES:], targets, starts, seeds)
            votes = count_of_each(models, asked, trainer.n_classes, stand_in)
            found.append((votes / count, labels[:QUERIES]))
            bar.advance()
    if key is not None:
        if len(_KNOWN) >= MOST_KNOWN:
            _KNOWN.clear()
        _KNOWN[key] = found
    return found


_KNOWN: dict[Any, Answers] = {}  # of made-up rows, by all that the answers depend on
MOST_KNOWN = 500


def count_of_each(models: list[Any], asked: Any, n_classes: int, stand_in: Any) -> Integers:
    """Count votes as an ensemble does, but ask about the whole table: no row of it is private."""
    alone = [model for model in models if hasattr(model, "predict")]
    others = [model for model in models if not hasattr(model, "predict")]
    votes = Ensemble(others, n_classes, stand_in).votes(asked)
    with one_thread():
        for model in alone:
            labels = np.zeros(len(asked), dtype=np.int64)  # the vote of a model that fails
            with HiddenFailures(), warnings_raise():
                labels = np.asarray(model.predict(asked)).astype(np.int64).reshape(len(asked))
            votes[np.arange(len(asked)), np.clip(labels, 0, n_classes - 1)] += 1
    return votes


def _score(answers: Answers, noise: float, count: int) -> float:
    """Return the chance of the right answer, if the noise is such a share of the votes.

    The votes of few models spread around those of many by themselves. That is part of the noise
    which is added, so that it does not count twice; and no noise is less than it.
    """
    least = 0.5 / np.sqrt(count)
    scores = []
    for shares, right in answers:
        own = shares[np.arange(len(right)), right]
        others = shares.copy()
        others[np.arange(len(right)), right] = -1.0
        lead = (own - others.max(axis=1)) / 2  # beyond the middle
        left = max(noise, least) ** 2 - (0.25 - lead**2) / count
        chances = ndtr(lead / np.sqrt(np.maximum(left, 1e-18)))
        known = np.unique(right)
        scores.append(np.mean([chances[right == place].mean() for place in known]))
    return float(np.mean(scores))


# Made-up tables


def _spread(count: int, width: int) -> tuple[Floats, Floats]:
    """Return numbers from 0 to 1, for each cell and for each label."""
    words = SeededSource(FIXED).words(count * (width + 1))
    numbers = (words >> np.uint64(11)) / 2.0**53
    return numbers[count:].reshape(count, width), numbers[:count]


def _labels(spread: Floats, coins: Floats, n_classes: int) -> list[Integers]:
    """Return the labels of five kinds of tables; the best rule is right about four times in five.

    A linear rule in which columns count less and less, curves of three columns, a box, two columns
    that act together, and a linear rule with one common class.
    """
    centred = (spread - 0.5) * np.sqrt(12.0)
    width = spread.shape[1]
    signs = np.where(np.arange(width) % 3 == 1, -1.0, 1.0)
    falling = signs * FALLING ** np.arange(width)
    first, second, third = (place % width for place in (0, width // 3, 2 * width // 3))
    curves = sum(
        np.sin(2 * np.pi * (0.75 * spread[:, place] + shift))
        for place, shift in ((first, 0.1), (second, 0.4), (third, 0.8))
    )
    side = 0.5 ** (1 / min(2, width))  # a box with half of the rows
    inside = (spread[:, first] < side) & (spread[:, second] < side)
    together = centred[:, second] * centred[:, third] + centred[:, second]
    linear, turned = centred @ falling, centred @ falling[::-1]
    kinds = (linear, curves, np.where(inside, 1.0, -1.0), together)
    equal = np.arange(1, n_classes) / n_classes
    rare = 1 - RARE * (1 - np.arange(n_classes - 1) / (n_classes - 1))
    found = [_cut(score, coins, equal) for score in kinds]
    return [*found, _cut(turned, coins, rare)]


def _cut(score: Any, coins: Floats, shares: Floats) -> Integers:
    """Return classes by a noisy score: the first one has the share shares[0], and so on."""
    noise = np.log((coins + 2.0**-60) / (1 - coins))
    noisy = SHARPNESS * score / max(float(np.std(score)), 1e-9) + noise
    found = np.searchsorted(np.quantile(noisy, shares), noisy, side="right")
    return np.asarray(found, dtype=np.int64)
