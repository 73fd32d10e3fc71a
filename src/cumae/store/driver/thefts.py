"""Attacks on oracles in files by a thief of the disk: rows, queries and hidden answers.

The worlds differ where a stored form might: in a label that gives a tree a node more, in a query
that the next phase splits at, in a hidden answer of another length, in a query that was asked
before, and in the cells of a text. All that a thief may see follows from public counts, so that the
guarantee of the oracle bounds what the answers and the disk tell together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from cumae.audit.attacks.predictors import (
    FEW,
    MARKED,
    UNMARKED,
    Rows,
    Spotter,
    alike,
    attack_on,
    ones,
    replaced,
)
from cumae.audit.game import Game
from cumae.audit.runs import Attack
from cumae.concepts import Thresholds
from cumae.predictors import EverlastingPredictor, GenericBBL, QueryRelease
from cumae.store.driver.thief import by_a_thief

TREE = DecisionTreeClassifier(max_depth=3)
TEXTS = ("no", "yes")
CLEAR = 300  # rows, of whose shards of three the votes are clear in spite of the noise


def stolen_from(
    what: str,
    predictor: Any,
    estimator: Any,
    rows: Any,
    play: Callable[[Game], Any],
    options: dict[str, Any],
    *,
    folder: str | None = None,
    request_ids: bool = False,
) -> Attack:
    """Attack an oracle in a file by its answers and by all that a thief sees.

    Parameters
    ----------
    what : str
        What the attack does, in a few words.
    predictor : class
        The class of the predictor that is attacked.
    estimator : object with fit and predict
        What each shard trains.
    rows : pair of rows and labels
        What one of them is trained on to read its guarantee.
    play : callable from Game to numbers
        The adversary, as in :class:`~cumae.audit.Attack`; what is stolen is added.
    options : dict from str to object
        Parameters of the predictor.
    folder : str, or None
        Where files are; None for temporary folders.
    request_ids : bool
        Whether answers are kept for retries.
    """
    name = f"OracleFile of {predictor.__name__}, {what}"
    given: dict[str, Any] = {"delta": 1e-6, **options}
    attack = attack_on(name, predictor, given, rows, play, releases=0, estimator=estimator)
    return by_a_thief(attack, folder, request_ids=request_ids)


def everlasting(**options: Any) -> dict[str, Any]:
    """Return options of an ``EverlastingPredictor`` that is small and has no prior."""
    return {"shard_size": FEW, "growth": 1.0, "prior": False, **options}


def one_label(n_rows: int) -> tuple[Rows, Rows]:
    """Return rows that all have the label 0, and the same with another label for one of them."""
    rows, labels = np.linspace(0.0, 1.0, n_rows)[:, None], np.zeros(n_rows, dtype=np.int64)
    other = labels.copy()
    other[n_rows // 2] = 1
    return (rows, labels), (rows, other)


def row(
    estimator: Any, named: str, *, predictor: Any = EverlastingPredictor, **options: Any
) -> Attack:
    """Attack a label: its shard is the only one that has two classes, so that its model differs.

    Parameters
    ----------
    estimator : object with fit and predict
        What each shard trains.
    named : str
        What the name of the attack calls the models.
    predictor : class
        ``EverlastingPredictor`` or ``QueryRelease``.
    **options : object
        Parameters of the predictor.
    """
    zero, one = one_label(8 * FEW)

    def play(game: Game) -> float:
        game.train(zero, one)
        return ones(game.ask(zero[0][:FEW]))

    folder = options.pop("folder", None)
    if issubclass(predictor, QueryRelease):
        given = {"n_shards": 8, "max_queries": 8, "mechanism": "gaussian", **options}
    else:
        given = everlasting(**options)
    return stolen_from(f"a label, {named}", predictor, estimator, zero, play, given, folder=folder)


def query(**options: Any) -> Attack:
    """Attack a query: all others are alike, so that trees of the next phase split at it alone."""
    (rows, labels), folder = alike(8 * FEW), options.pop("folder", None)

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.ask(rows, replaced(rows))
        return ones(game.ask(rows[:FEW]))

    given = everlasting(**options)
    return stolen_from(
        "a query, trees", EverlastingPredictor, TREE, (rows, labels), play, given, folder=folder
    )


def hidden_answer(**options: Any) -> Attack:
    """Attack a query by its own answer, which the game hides, and which is kept for retries.

    Classes are texts of different lengths, and the votes are clear, so that the answer tells the
    query.
    """
    rows, folder = alike(CLEAR)[0], options.pop("folder", None)
    labels = np.tile(TEXTS, CLEAR // 2)

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.ask([[UNMARKED]], [[MARKED]])
        return game.ask([[UNMARKED]]).answers.count(TEXTS[1])

    given = everlasting(classes=TEXTS, **{**options, "shard_size": 3})
    return stolen_from(
        "a hidden answer",
        EverlastingPredictor,
        Spotter(),
        (rows, labels),
        play,
        given,
        folder=folder,
        request_ids=True,
    )


def repeated(predictor: Any = EverlastingPredictor, **options: Any) -> Attack:
    """Attack a query that was asked before in one of the worlds: a memo knows it there."""
    (rows, labels), folder = alike(8 * FEW), options.pop("folder", None)

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.ask([[UNMARKED]])
        game.ask([[UNMARKED]], [[MARKED]])
        return ones(game.ask(rows[:FEW]))

    given = everlasting(memoize=True, **options)
    return stolen_from(
        "a repeated query", predictor, Thresholds(), (rows, labels), play, given, folder=folder
    )


def texts(**options: Any) -> Attack:
    """Attack a query by the length of a text in it."""
    folder = options.pop("folder", None)
    rows = pd.DataFrame({"text": pd.Series(["short"] * 8 * FEW, dtype=object)})
    labels = alike(len(rows))[1]
    other = rows.iloc[:2].copy()
    other.iloc[0, 0] = "a longer text"
    words = OneHotEncoder(categories=[["short"]], handle_unknown="ignore")
    estimator = make_pipeline(make_column_transformer((words, ["text"])), TREE)

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.ask(rows.iloc[:2], other)
        return ones(game.ask(rows.iloc[:FEW]))

    given = everlasting(**options)
    return stolen_from(
        "a text", EverlastingPredictor, estimator, (rows, labels), play, given, folder=folder
    )


def sampled_query(**options: Any) -> Attack:
    """Attack a query of ``GenericBBL``, which pays for the chance that it is sampled only.

    If the disk tells whether it was, then those that were have paid too little: a marked one marks
    a shard of the next phase, in which all is asked.
    """
    (rows, labels), folder = alike(8 * FEW), options.pop("folder", None)
    asked = alike(4 * len(rows))[0]

    def play(game: Game) -> float:
        game.train((rows, labels))
        game.ask([[UNMARKED]], [[MARKED]])
        game.ask(asked[1:])
        return ones(game.ask(asked))

    given = {
        "shard_size": FEW,
        "phase_length": len(asked),
        "query_share": 0.25,
        "label_share": 0.1,
        "epsilon_boost": 0.01,
        **options,
    }
    return stolen_from(
        "a sampled query", GenericBBL, Spotter(), (rows, labels), play, given, folder=folder
    )


ATTACKS: dict[str, Sequence[Callable[..., Attack]]] = {
    "OracleFile": (
        partial(row, TREE, "trees"),
        partial(row, Thresholds(), "thresholds"),
        query,
        hidden_answer,
        repeated,
        texts,
        sampled_query,
        partial(row, TREE, "trees", predictor=QueryRelease),
    ),
}
