"""Pipelines that choose columns by name, for rows whose columns were declared.

Declared columns become numbers before a shard sees them: 0 and 1 for each category, in the same way
for all rows. So a model gets a table without names, and no encoder has anything left to learn.
``on_numbers`` rewrites a pipeline for such a table: a ``ColumnTransformer`` gets places instead of
names, and encoders of declared categories are left out. What else a step does stays as
it is, and it learns from the rows of its shard alone.

The estimator and the declarations decide what comes out, and no row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from cumae.claims import claim
from cumae.data import Column, Columns, frame_of
from cumae.errors import InvalidParameter, listed

ENCODERS = (OneHotEncoder, OrdinalEncoder)
CODED = ("categories", "booleans")  # kinds of columns that are 0 and 1 once they are encoded
KEPT, DROPPED = "passthrough", "drop"
MADE_UP = 4  # rows of the table that a function gets which chooses columns by their types


def chooses_by_name(model: Any) -> bool:
    """Tell whether the first step of a pipeline chooses columns by their names or types.

    Examples
    --------
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from cumae.ensembles.named import chooses_by_name
    >>> chosen = make_column_transformer((OneHotEncoder(), ["job"]))
    >>> chooses_by_name(make_pipeline(chosen, DecisionTreeClassifier()))
    True
    """
    if type(model) is not Pipeline or type(model.steps[0][1]) is not ColumnTransformer:
        return False
    return any(_is_named(columns) for _, _, columns in model.steps[0][1].transformers)


@claim("SHARDS")
def on_numbers(model: Any, columns: Columns) -> Any:
    """Return an estimator for the encoded columns, for one that names the columns of the table.

    Parameters
    ----------
    model : classifier or Pipeline
        An estimator that was not fitted.
    columns : Columns
        What was declared about the columns.

    Returns
    -------
    classifier or Pipeline
        The same estimator, unless it is a Pipeline whose first step is an encoder, or chooses
        columns by name.

    Raises
    ------
    InvalidParameter
        If a step names another column, or needs the text of a declared one.
    """
    if type(model) is not Pipeline or len(model.steps) < 2:
        return model
    (name, first), *others = model.steps
    if chooses_by_name(model):
        given = first
    elif type(first) in ENCODERS and any(column.kind in CODED for column in columns.columns):
        given = ColumnTransformer([(name, first, list(range(len(columns.columns))))])
    else:
        return model
    parts = list(_parts(given, columns))
    kept = [place for _, how, places in parts if how == KEPT for place in places]
    if len(kept) == sum(len(places) for _, _, places in parts) == len(columns):
        return others[0][1] if len(others) == 1 else Pipeline(others)
    chosen = ColumnTransformer(parts, sparse_threshold=given.sparse_threshold)
    return Pipeline([(name, chosen), *others])


def _parts(given: ColumnTransformer, columns: Columns) -> Iterator[tuple[str, Any, list[int]]]:
    """Yield the steps for encoded columns: name, transformer, and places."""
    if given.transformer_weights is not None:
        raise InvalidParameter(
            "estimator has a ColumnTransformer with transformer_weights, which cannot be kept for "
            "declared columns; leave them out."
        )
    left = list(range(len(columns.columns)))
    asked = [
        (name, how, _chosen(name, wanted, columns)) for name, how, wanted in given.transformers
    ]
    for _, _, wanted in asked:
        left = [place for place in left if place not in wanted]
    for name, how, wanted in [*asked, ("other columns", given.remainder, left)]:
        if isinstance(how, str) and how == DROPPED:
            continue
        coded, plain = _divided(name, how, [columns.columns[place] for place in wanted], columns)
        if coded:
            yield (f"{name} declared", KEPT, coded)
        if plain:
            yield (name, how, plain)


def _divided(
    name: str, how: Any, wanted: list[Column], columns: Columns
) -> tuple[list[int], list[int]]:
    """Return the places of encoded columns that stay as they are, and of those that a step gets."""
    starts = np.cumsum([0, *(len(column.encoded) for column in columns.columns)]).tolist()
    first = {column.name: start for column, start in zip(columns.columns, starts, strict=False)}
    coded: list[int] = []
    plain: list[int] = []
    for column in wanted:
        places = [first[column.name] + more for more in range(len(column.encoded))]
        if isinstance(how, str) or (column.kind in CODED and _encodes(how)):
            coded += places
        elif column.categories is not None:
            raise InvalidParameter(
                f"estimator has the step {name} ({type(how).__name__}) for column {column.name}, "
                "whose declared categories become 0 and 1 before a model sees them; leave the "
                "column out of this step, or take OneHotEncoder or OrdinalEncoder."
            )
        else:
            plain += places[:1]
            coded += places[1:]  # the mark of missing cells
    return coded, plain


def _encodes(how: Any) -> bool:
    """Tell whether a step does nothing but encode, with what fills missing cells before it."""
    if type(how) is Pipeline:
        steps = [step for _, step in how.steps if step not in (None, KEPT)]
        return type(steps[-1]) in ENCODERS and all(
            type(step) in (SimpleImputer, *ENCODERS) for step in steps
        )
    return type(how) in ENCODERS


def _is_named(wanted: Any) -> bool:
    """Tell whether columns are asked for by names, or by a function that looks at their types."""
    if isinstance(wanted, slice):
        return isinstance(wanted.start, str) or isinstance(wanted.stop, str)
    asked = [wanted] if np.isscalar(wanted) or callable(wanted) else wanted
    return any(isinstance(one, str) or callable(one) for one in asked)


def _chosen(name: str, wanted: Any, columns: Columns) -> list[int]:
    """Return the places, among the columns of the table, of those that a step asks for."""
    known = [column.name for column in columns.columns]
    places = pd.Series(range(len(known)), index=known)
    if callable(wanted):
        spread = np.linspace(0.0, 0.8, MADE_UP)
        wanted = wanted(frame_of(known, [column.made_up(spread) for column in columns.columns]))
    if isinstance(wanted, slice):
        return (places.loc if _is_named(wanted) else places.iloc)[wanted].tolist()
    asked: list[Any] = [wanted] if np.isscalar(wanted) else list(wanted)
    if asked and all(isinstance(one, bool | np.bool_) for one in asked):
        asked = np.flatnonzero(asked).tolist()
    lacking = [one for one in asked if isinstance(one, str) and one not in places.index]
    if lacking:
        raise InvalidParameter(
            f"estimator has the step {name} for columns that X does not have: {listed(lacking)}; "
            f"it has {listed(known)}."
        )
    return [int(places.loc[one] if isinstance(one, str) else places.iloc[one]) for one in asked]
