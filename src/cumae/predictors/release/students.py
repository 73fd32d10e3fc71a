"""Students: models trained on public queries and their private answers, free to be published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier

from cumae.arrays import Floats, Integers
from cumae.concepts import ConceptClass
from cumae.data import Columns, RowSource, as_numbers
from cumae.ensembles.trainer import seeded, weight_parameter
from cumae.errors import CumaeError, InvalidParameter
from cumae.estimators import own_clone
from cumae.made_up import made_up_rows
from cumae.quiet import is_failure

MADE_UP_ROWS = 40


@dataclass(frozen=True)
class Lesson:
    """Public queries and what was answered to them.

    Parameters
    ----------
    queries : array or DataFrame
        Rows as the models take them: a table of numbers or a data frame.
    shares : array of floats
        One row for each query, one column for each class: how much of it belongs to the class.
        A query without an answer has zeros.
    """

    queries: Any
    shares: Floats

    @classmethod
    def of_votes(cls, queries: Any, votes: Integers) -> Lesson:
        """Take noisy vote counts as soft labels: clipped at 0, and each row adds up to 1."""
        clipped = np.maximum(votes, 0).astype(np.float64)
        total = clipped.sum(axis=1, keepdims=True)
        shares = np.divide(clipped, total, out=np.zeros_like(clipped), where=total > 0)
        return cls(queries, shares)

    @classmethod
    def joined(cls, lessons: Sequence[Lesson]) -> Lesson:
        """Return several lessons as one, in their order."""
        tables = [lesson.queries for lesson in lessons]
        frames = hasattr(tables[0], "iloc")
        queries = pd.concat(tables, ignore_index=True) if frames else np.concatenate(tables)
        return cls(queries, np.concatenate([lesson.shares for lesson in lessons]))

    @classmethod
    def of_labels(cls, queries: Any, labels: Integers, n_classes: int) -> Lesson:
        """Take labels as they are; -1 is no answer."""
        shares = np.zeros((len(labels), n_classes))
        known = np.flatnonzero(labels >= 0)
        shares[known, labels[known]] = 1.0
        return cls(queries, shares)


@dataclass(frozen=True)
class Student:
    """A trained student, and the seed with which the same lesson makes the same one.

    Parameters
    ----------
    model : classifier or Pipeline
        The trained student.
    seed : int
        What it was trained with.
    """

    model: Any
    seed: int

    @classmethod
    def taught(cls, student: Any, lesson: Lesson, classes: NDArray[Any], seed: int) -> Student:
        """Train a student, as ``train_student`` does."""
        return cls(train_student(student, lesson, classes, seed), seed)


def check_student(student: Any) -> Any:
    """Refuse what is no classifier of scikit-learn."""
    if isinstance(student, ConceptClass):
        raise InvalidParameter(
            f"student is {type(student).__name__}, a concept class; give an instance of a "
            "scikit-learn classifier. Without a student, a concept class publishes a hypothesis."
        )
    if (
        isinstance(student, type)
        or not hasattr(student, "get_params")
        or not is_classifier(student)
    ):
        kind = student.__name__ if isinstance(student, type) else type(student).__name__
        raise InvalidParameter(
            f"student is {kind}; give an instance of a scikit-learn classifier, or of a Pipeline "
            "that ends in one."
        )
    return student


def train_student(student: Any, lesson: Lesson, classes: NDArray[Any], seed: int) -> Any:
    """Return a student that was trained on queries and answers, and labels with the classes.

    If it takes ``sample_weight`` (a Pipeline: if its last step does), each query enters once for
    each class, weighted by its share; otherwise once, with the class of the largest share. If
    only one class is left, the student gives that one.
    """
    weights = weight_parameter(student)
    if weights is not None:
        rows, places = np.nonzero(lesson.shares)
        fit_params = {weights: lesson.shares[rows, places]}
    else:
        rows = np.flatnonzero(lesson.shares.sum(axis=1) > 0)
        places, fit_params = np.argmax(lesson.shares[rows], axis=1), {}
    if not len(rows):  # nothing was answered: as good as any
        rows, places, fit_params = np.array([0]), np.array([0]), {}
    queries = _take(lesson.queries, rows)
    if len(np.unique(places)) == 1:
        return DummyClassifier(strategy="most_frequent").fit(queries, classes[places])
    return seeded(own_clone(student), seed).fit(queries, classes[places], **fit_params)


def try_student(
    student: Any, rows: RowSource, columns: Columns | None, classes: NDArray[Any]
) -> None:
    """Train and ask a student on made-up rows, so that its real errors show beforehand."""
    table = as_numbers(made_up_rows(rows, columns, MADE_UP_ROWS, 0.0), columns)
    shares = np.full((MADE_UP_ROWS, len(classes)), 0.2 / len(classes))
    shares[np.arange(MADE_UP_ROWS), np.arange(MADE_UP_ROWS) % len(classes)] += 0.8
    try:
        train_student(student, Lesson(table, shares), classes, 1).predict(table)
    except CumaeError:
        raise
    except BaseException as error:
        if not is_failure(type(error)):
            raise
        raise InvalidParameter(
            f"student fails on {MADE_UP_ROWS} made-up rows with {rows.n_features} columns: "
            f"{type(error).__name__}: {error}. Give another student."
        ) from error


def _take(queries: Any, rows: Any) -> Any:
    return queries.iloc[rows] if hasattr(queries, "iloc") else queries[rows]
