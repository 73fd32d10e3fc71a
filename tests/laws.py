"""Predictors that must keep all laws: each public one, with each of its options and mechanisms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from cumae import (
    AgnosticQueryRelease,
    EverlastingPredictor,
    GenericBBL,
    PrivateKernelClassifier,
    QueryRelease,
    UniversalQueryRelease,
)
from cumae.checks import Neighbours
from cumae.concepts import FiniteClass, Rectangles, Stumps, Thresholds
from cumae.concepts.thresholds import Threshold
from tests.kinds import KINDS, as_array, labels_of

RNG = np.random.default_rng(11)
X = RNG.random((240, 3))
Y = (X[:, 0] > 0.4).astype(int)
COLUMN = X[:, :1]
FRAME = pd.DataFrame({"a": X[:, 0], "word": np.where(X[:, 0] > 0.5, "u", "v")})
UNIT: list[Any] = [(0, 1)] * 3
MARK = 0.625  # a number on which marked models raise


# Estimators


class NoWeights(KNeighborsClassifier):  # type: ignore[misc]  # untyped base
    """Has the parameter for weights, and takes none, as some wrappers of classifiers do."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if sample_weight is not None:
            raise ValueError("no sample weights are taken")
        return super().fit(X, y)


class Marked(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Learns the mean of a column, and raises if a marked row is in the table."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Marked:
        del sample_weight
        self.classes_, self.cut_ = np.unique(y), float(np.mean(X[:, 0]))
        return self

    def predict(self, X: Any) -> Any:
        if np.any(X[:, 0] == MARK):
            raise ValueError("a marked row")
        return self.classes_[(X[:, 0] > self.cut_) * (len(self.classes_) - 1)]


class Fragile(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Its last bit depends on the shape of the table, as that of matrix products does."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Fragile:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        if np.any(np.abs(X) > 1e9):
            raise ValueError("too large")
        return ((X[:, 0] > 0.4) ^ (len(X) % 2 == 0)).astype(int)


class Rule:
    """A rule that is asked by itself, because it is no hypothesis of cumae."""

    def predict(self, X: Any) -> Any:
        if np.any(np.asarray(X)[:, 0] == MARK):
            raise ValueError("a marked row")
        return (np.asarray(X)[:, 0] > 0.4).astype(int)


class Ruled(FiniteClass):
    """Learns the same rule from any rows."""

    def __init__(self) -> None:
        super().__init__([Threshold(0.4, above=True), Threshold(0.6, above=True)])

    def erm(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        del X, y, sample_weight
        return Rule()


def log_distance(table: Any) -> Any:
    """Return logarithms, with a warning of numpy at the mark."""
    return np.clip(np.log(np.abs(table - MARK)), -50, 50)


NO_WEIGHTS = NoWeights(1)
DISTANCES = make_pipeline(FunctionTransformer(log_distance), LogisticRegression())
LOGS = make_pipeline(FunctionTransformer(np.log1p), LogisticRegression())
WORDS = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["word"]), remainder="passthrough"
    ),
    DecisionTreeClassifier(max_depth=2),
)


# Neighbours


def pair_of(table: Any, row: Any, **more: Any) -> Neighbours:
    labels = Y[: len(table)]
    return Neighbours.replacing(table, labels, 7, row, labels[-1], queries=table[:12], **more)


ONE, THREE = pair_of(COLUMN, [np.nan]), pair_of(X, [np.nan, 1.0, 1e300])
FEW_ONE, FEW_THREE = pair_of(COLUMN[:120], [np.nan]), pair_of(X[:120], [np.nan, 1.0, 1e300])
MORE = RNG.random((2_000, 1))  # thresholds between which votes are split need more shards
MANY = Neighbours.replacing(MORE, MORE[:, 0] > 0.4, 7, [np.nan], 1, queries=MORE[:12])
OTHER_FRAME = FRAME.copy()
OTHER_FRAME.loc[7, "a"] = np.nan
NAMED = Neighbours(FRAME, Y, OTHER_FRAME, Y, FRAME[:12])
FEW_NAMED = Neighbours(FRAME[:120], Y[:120], OTHER_FRAME[:120], Y[:120], FRAME[:12])
YES = np.where(Y == 1, "yes", "no")
SPOKEN = Neighbours.replacing(
    COLUMN, YES, 7, [np.inf], "no", queries=COLUMN[:12], classes=("no", "yes")
)


# Columns of all kinds. The row that differs has a category that is missing, and two cells that
# cannot be used: 7 is neither true nor false.
TABLE = as_array(240)
ALL = Neighbours.replacing(
    TABLE,
    labels_of(TABLE),
    7,
    [0.5, np.nan, 7.0, np.nan],
    1,
    queries=TABLE[:12],
    columns=KINDS,
)


def oracle(estimator: Any, **more: Any) -> EverlastingPredictor:
    given: dict[str, Any] = {"epsilon": 2.0, "shard_size": 24, "growth": 1.0, "prior": False}
    return EverlastingPredictor(estimator, **(given | more))


def stumps(**more: Any) -> EverlastingPredictor:
    """Return an oracle with thresholds, which are stacked: laws run fast."""
    return oracle(None, concept_class=Thresholds(), shard_size=8, **more)


PREDICTORS: dict[str, tuple[Any, Neighbours]] = {
    "everlasting, thresholds": (oracle(Thresholds(), shard_size=8), ONE),
    "everlasting, logarithms": (oracle(LOGS, columns=KINDS), ALL),
    "everlasting, words and memo": (
        oracle(WORDS, memoize=True, epsilon=0.3, text_bytes=48),
        FEW_NAMED,  # whose models take long to ask
    ),
    "everlasting, no weights": (oracle(NO_WEIGHTS, balanced=False), THREE),
    "everlasting, prior": (
        oracle(None, prior=None, prior_share=0.4, columns=KINDS, shard_size=8),
        ALL,
    ),
    "everlasting, prior and logarithms": (
        oracle(LOGS, prior=PrivateKernelClassifier(n_waves=5), columns=KINDS, shard_size=24),
        ALL,  # phases are longer than the batches of the laws: queries of a later one may meet
    ),
    "everlasting, marks and memo": (oracle(Marked(), memoize=True, epsilon=0.3), FEW_THREE),
    "everlasting, late": (stumps(late=0.25, growth=1.3), ONE),
    "everlasting, background": (stumps(late=0.25, background=True), ONE),
    "everlasting, users": (stumps(user_ids=True), ONE),
    "everlasting, clients": (stumps(client_cap=0.5, delta=1e-5, classes=("no", "yes")), SPOKEN),
    "everlasting, fresh": (stumps(fresh=True, growth=2.0), ONE),
    "everlasting, fresh, late": (stumps(fresh=True, growth=2.0, late=0.25), ONE),
    "everlasting, fresh and marks": (
        oracle(Marked(), fresh=True, growth=2.0, epsilon=0.3),
        FEW_THREE,
    ),
    "bbl": (GenericBBL(Thresholds(), 20.0, shard_size=12), ONE),
    "bbl, agnostic": (GenericBBL(Thresholds(), 20.0, agnostic=True, shard_size=12), ONE),
    "bbl, between": (
        GenericBBL(Thresholds(), 20.0, 1e-2, votes="between", shard_size=4, between_share=0.02),
        MANY,
    ),
    "bbl, fresh": (GenericBBL(Thresholds(), 20.0, fresh=True, shard_size=12), ONE),
    "bbl, grid": (GenericBBL(Rectangles(), 20.0, shard_size=12, n_cuts=3), THREE),
    "bbl, marks": (GenericBBL(Ruled(), 20.0, shard_size=12), ONE),
    "everlasting, all kinds": (oracle(None, columns=KINDS, shard_size=8), ALL),
    "everlasting, fresh and all kinds": (
        oracle(Stumps(), columns=KINDS, fresh=True, growth=2.0, shard_size=8),
        ALL,
    ),
    "bbl, all kinds": (GenericBBL(Stumps(), 20.0, shard_size=12, columns=KINDS), ALL),
    "query": (QueryRelease(LOGS, 5.0, max_queries=100, columns=KINDS), ALL),
    "query, all kinds": (QueryRelease(None, 5.0, max_queries=100, columns=KINDS), ALL),
    "query, words": (QueryRelease(WORDS, 5.0, max_queries=100), FEW_NAMED),
    "query, stability": (QueryRelease(Thresholds(), 9.0, 1e-3, 100, "stability"), ONE),
    "query, between": (
        QueryRelease(Thresholds(), 20.0, 1e-2, 100, "between", n_shards=200, max_unstable=20),
        MANY,
    ),
    "query, laplace": (QueryRelease(Thresholds(), 9.0, 0.0, 100, "laplace"), ONE),
    "query, offline": (QueryRelease(Thresholds(), 9.0, 0.0, 100, "offline"), ONE),
    "query, abstain": (
        QueryRelease(Thresholds(), 9.0, 1e-3, 100, "stability", abstain=True),
        ONE,
    ),
    "agnostic": (AgnosticQueryRelease(Thresholds(), 20.0, max_queries=100), ONE),
    "agnostic, all kinds": (
        AgnosticQueryRelease(Stumps(), 20.0, max_queries=100, columns=KINDS),
        ALL,
    ),
    "universal": (UniversalQueryRelease(Thresholds(), 9.0, n_first=6), ONE),
    "universal, all kinds": (UniversalQueryRelease(Stumps(), 9.0, n_first=6, columns=KINDS), ALL),
    "universal, student": (
        UniversalQueryRelease(Marked(), 9.0, n_first=6, student=DecisionTreeClassifier()),
        FEW_THREE,
    ),
}
