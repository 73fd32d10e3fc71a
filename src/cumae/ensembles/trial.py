"""Try an estimator on made-up rows, so that its real errors show before any private row is used."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.data import Columns, RowSource, as_numbers, read_table
from cumae.ensembles.blocks import blank_block, block_rows
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.trainer import Trainer
from cumae.ensembles.voters.stacking import LoopVoters
from cumae.errors import CumaeError, InvalidParameter
from cumae.estimators import own_clone
from cumae.made_up import made_up_labels, made_up_rows, odd_row
from cumae.quiet import is_failure, warnings_raise
from cumae.threads import one_thread

QUERIES = 16
TIMED = 3  # shards that are trained to see how long one takes


@claim("SHARDS")
def longest_category(model: Any) -> int:
    """Return the bytes of the longest text among the categories that an estimator lists.

    Examples
    --------
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> from cumae.ensembles.trial import longest_category
    >>> longest_category(OneHotEncoder(categories=[["no", "yes"], [1, 2]]))
    3
    """
    found = 0
    given = model.get_params(deep=True) if hasattr(model, "get_params") else {}
    for name, value in given.items():
        if name.split("__")[-1] == "categories" and isinstance(value, list | tuple | np.ndarray):
            cells = [cell for part in value if not isinstance(part, str) for cell in part]
            texts = [cell.encode("utf-8", "replace") for cell in cells if isinstance(cell, str)]
            found = max([found, *map(len, texts)])
    return found


def check_model(model: Any, what: str = "estimator") -> Any:
    """Refuse what is no classifier, or what could carry anything from one shard to another.

    ``what`` is the parameter that it was given as.
    """
    if isinstance(model, ConceptClass):
        return model
    if not isinstance(model, type) and hasattr(model, "get_params") and is_regressor(model):
        raise InvalidParameter(
            f"{what} is {type(model).__name__}, which predicts numbers, and predictors answer with "
            "classes; publish a PrivateKernelRegressor in their place."
        )
    if isinstance(model, type) or not hasattr(model, "get_params") or not is_classifier(model):
        kind = model.__name__ if isinstance(model, type) else type(model).__name__
        raise InvalidParameter(
            f"{what} is {kind}; give an instance of a scikit-learn classifier, of a Pipeline "
            "that ends in one, or of a class in cumae.concepts."
        )
    for name, value in own_clone(model).get_params(deep=True).items():
        part = name.split("__")[-1]
        if part == "verbose" and value:
            raise InvalidParameter(
                f"estimator has {name}={value!r}, which would print facts about private rows; set "
                "it to 0."
            )
        if part == "memory" and value is not None:
            raise InvalidParameter(
                f"estimator has {name}, a store that all shards would share; set it to None."
            )
        if isinstance(value, str) and value == "prefit":
            raise InvalidParameter(f"estimator has {name}='prefit'; {_WITHIN}")
        # Some parts stay fitted when they are cloned, and a function may belong to a fitted one.
        part = getattr(value, "__self__", value)
        if hasattr(part, "fit") and any(n[-1:] == "_" and n[:1] != "_" for n in _state(part)):
            raise InvalidParameter(f"estimator has {name}, which is fitted already; {_WITHIN}")
    return model


_WITHIN = (
    "each shard must fit all of it from its own rows, because anything fitted across shards would "
    "let one row change them all. What public rows taught can be applied to the rows beforehand."
)


def _state(part: Any) -> list[str]:
    inner = getattr(part, "estimator", None)
    names = list(getattr(part, "__dict__", {}))
    return names + (_state(inner) if hasattr(inner, "fit") else [])


@claim("SHARDS")
def try_out(
    trainer: Trainer,
    rows: RowSource,
    stand_in: Any,
    size: int,
    larger: str = "a smaller n_shards",
) -> bool:
    """Train on made-up rows of the declared width and the shards' size; let errors through.

    It looks at the declared facts of the source only: width, names and types of the columns.
    Return whether the model tells classes apart that the first column alone decides.

    Parameters
    ----------
    trainer : Trainer
        What will train the shards.
    rows : RowSource
        Where the private rows are.
    stand_in : array or DataFrame
        What ``stand_in_row`` made up, in the form in which models get rows.
    size : int
        Rows of a shard.
    larger : str
        What makes shards larger.
    """
    what = "concept_class" if isinstance(trainer.model, ConceptClass) else "estimator"
    tables = [made_up_rows(rows, trainer.columns, size, shift) for shift in (0.0, 0.5)]
    labels = made_up_labels(size, trainer.n_classes)
    try:
        first = trainer.train_or_raise(tables[0], trainer.targets(labels), 1)
        trainer.train_or_raise(tables[1], trainer.targets(labels[::-1].copy()), 2)
        again = trainer.train_or_raise(tables[0], trainer.targets(labels), 1)
        queries = as_asked(tables[1][: min(size, QUERIES)], trainer, stand_in)
        answers = [np.asarray(model.predict(queries)).ravel() for model in (first, again)]
        with warnings_raise():  # which would be a failure of every shard
            first.predict(blank_block(stand_in))
            if trainer.columns is not None:
                first.predict(read_table(odd_row(rows, trainer.columns), trainer.columns))
    except CumaeError:
        raise
    except BaseException as error:
        if not is_failure(type(error)):
            raise
        raise InvalidParameter(
            f"{what} fails on {size} made-up rows with {rows.n_features} columns, the size of a "
            f"shard: {type(error).__name__}: {error}. On private rows such a shard would silently "
            f"vote for the first class; change the {what}, or make shards larger with {larger}."
            f"{_text_hint(rows, trainer.columns)}"
        ) from error
    if not np.array_equal(answers[0], answers[1]):
        raise InvalidParameter(
            f"{what} gives two different models for the same rows and the same seed; shards must "
            "not depend on anything else. Give it a random_state parameter."
        )
    if not _answers_row_by_row(first, queries, stand_in, trainer.n_classes):
        raise InvalidParameter(
            f"{what} labels a row otherwise when it is asked alone than among others; votes must "
            "not depend on the other queries."
        )
    # What a shard really gets, which may be another way to the same model; and compiles it all.
    (model,) = trainer.train_many(
        tables[0], trainer.targets(labels), np.array([0, size]), np.array([1])
    )
    Ensemble([model], trainer.n_classes, stand_in).votes(queries)
    learnt = np.asarray(first.predict(as_asked(tables[0], trainer, stand_in))).ravel()
    return bool(np.any(learnt != learnt[0]))


def seconds_of_a_shard(trainer: Trainer, rows: RowSource, size: int) -> float:
    """Return how long a core takes to train a shard of made-up rows, by the fastest of a few runs.

    Parameters
    ----------
    trainer : Trainer
        What would train the shards.
    rows : RowSource
        Its width, names and types of columns are used.
    size : int
        Rows of a shard.
    """
    table = made_up_rows(rows, trainer.columns, size, 0.0)
    targets = trainer.targets(made_up_labels(size, trainer.n_classes))
    found = []
    for seed in range(TIMED):
        began = time.process_time()
        trainer.train(table, targets, seed)
        found.append(time.process_time() - began)
    return min(found)


def as_asked(rows: Any, trainer: Trainer, stand_in: Any) -> Any:
    """Return rows in the form of the stand-in, in which models are asked about queries."""
    if hasattr(stand_in, "columns"):
        return as_numbers(rows, trainer.columns)
    return read_table(rows, trainer.columns)


def _answers_row_by_row(model: Any, queries: Any, stand_in: Any, n_classes: int) -> bool:
    """Tell whether a row gets the same label among others as among stand-ins, at the same place."""
    voters = LoopVoters.of([model], n_classes, stand_in)
    places = np.arange(block_rows(queries.shape[1]) - 1)
    count = min(len(queries), len(places))
    with one_thread():
        alone = [voters.count_here(queries[i : i + 1], places[i : i + 1]) for i in range(count)]
        for company in range(count):  # all other places hold this row
            rows = np.where(places < count, places, company)
            crowd = queries.iloc[rows] if hasattr(queries, "iloc") else queries[rows]
            if not np.array_equal(voters.count_here(crowd, places)[:count], np.concatenate(alone)):
                return False
    return True


def _text_hint(rows: RowSource, columns: Columns | None) -> str:
    names = rows.names or [str(place) for place in range(rows.n_features)]
    text = [name for place, name in enumerate(names) if columns is None and rows.is_text(place)]
    return (
        " Columns of text were filled with 'a', 'b' and 'c', and a query with 'other': any text "
        "must be answered, without a warning. Give encoders handle_unknown='ignore', or declare "
        f"with columns= the categories of {', '.join(text)}."
        if text
        else ""
    )
