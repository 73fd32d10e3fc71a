"""Try an estimator on made-up rows, so that its real errors show before any private row is used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.data import Columns, RowSource, as_numbers, frame_of, read_table
from cumae.ensembles.blocks import blank_block, block_rows
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.trainer import Trainer
from cumae.ensembles.voters.stacking import LoopVoters
from cumae.errors import CumaeError, InvalidParameter
from cumae.estimators import own_clone
from cumae.quiet import warnings_raise
from cumae.threads import one_thread

QUERIES = 16


@claim("SHARDS")
def check_model(model: Any, what: str = "estimator") -> Any:
    """Refuse what is no classifier, or what could carry anything from one shard to another.

    ``what`` is the parameter that it was given as.
    """
    if isinstance(model, ConceptClass):
        return model
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
    except Exception as error:
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


def made_up_labels(size: int, n_classes: int) -> NDArray[np.int64]:
    """Return labels that the first made-up column decides; no class is lacking."""
    labels = (_fractions(size, 0, 0.0) * n_classes).astype(np.int64)
    labels[:n_classes] = np.arange(n_classes)[:size]
    return labels


def stand_in_row(rows: RowSource, columns: Columns | None) -> Any:
    """Return one made-up row, within what is declared.

    Undeclared numbers are 0.5, of which logarithms, roots and quotients can be taken; undeclared
    texts are such as no row has.
    """
    parts: list[NDArray[Any]] = []
    for place in range(rows.n_features):
        declared = _declared(columns, place)
        if declared is None or declared.is_open:
            text = declared is None and rows.is_text(place)
            parts.append(np.array(["other"], dtype=object) if text else np.array([0.5]))
        else:
            parts.append(declared.made_up(_fractions(1, place, 0.0) / 2))  # where none is missing
    return _table(parts, rows)


def odd_row(rows: RowSource, columns: Columns) -> Any:
    """Return a row with every oddity that is declared: unknown categories and missing cells."""
    parts = []
    for declared in columns.columns:
        if declared.categories is not None:
            odd = None if declared.missing else "none of the declared categories"
            parts.append(np.array([odd], dtype=object))
        else:
            parts.append(declared.made_up(np.array([1.0 - 2.0**-20])))  # missing, if it may be
    return _table(parts, rows)


def made_up_rows(rows: RowSource, columns: Columns | None, size: int, shift: float) -> Any:
    """Return rows within what is declared, the same ones each time."""
    spread = [_fractions(size, place, shift) for place in range(rows.n_features)]
    return rows_at(rows, columns, np.column_stack(spread))


def rows_at(rows: RowSource, columns: Columns | None, spread: NDArray[np.float64]) -> Any:
    """Return rows within what is declared; a number from 0 to 1 tells where each cell lies."""
    parts = [
        _made_up_column(spread[:, place], _declared(columns, place), rows, place)
        for place in range(rows.n_features)
    ]
    return _table(parts, rows)


def _table(parts: list[NDArray[Any]], rows: RowSource) -> Any:
    """Return columns as one table, in the form in which the source gives rows."""
    if rows.is_frame:
        return frame_of(rows.names or [], parts)
    if any(part.dtype.kind not in "if" for part in parts):
        return np.column_stack([part.astype(object) for part in parts])
    return np.column_stack(parts).astype(np.float64)


def _fractions(size: int, place: int, shift: float) -> NDArray[np.float64]:
    """Return numbers spread over 0 to 1: multiples of an irrational number, modulo 1."""
    step = (place + 1) * (np.sqrt(5.0) - 1.0) / 2.0
    return np.asarray(np.modf(step * (np.arange(size) + 1.0) + shift)[0])


def _declared(columns: Columns | None, place: int) -> Any:
    return None if columns is None else columns.columns[place]


def _made_up_column(
    spread: NDArray[np.float64], declared: Any, rows: RowSource, place: int
) -> NDArray[Any]:
    if declared is not None:
        return np.asarray(declared.made_up(spread))
    if rows.is_text(place):
        known: NDArray[Any] = np.array(["a", "b", "c"], dtype=object)
        return np.asarray(known[(spread * len(known)).astype(int)])
    return np.asarray(4.0 * spread - 2.0)
