"""Predictors with their options, and estimators of every kind, on tables as small as can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from cumae import (
    AgnosticQueryRelease,
    EverlastingPredictor,
    GenericBBL,
    PrivateKernelClassifier,
    QueryRelease,
    UniversalQueryRelease,
)
from cumae.checks.failures import FailingOnMarks
from cumae.concepts import (
    Halfspaces,
    Intervals,
    Points,
    Rectangles,
    Stumps,
    Thresholds,
    Trees,
)
from tests.observables.worlds import FRAME, ONE, THREE

ALWAYS = ("ask", "listed", "named", "retry", "fill", "restart", "crash", "kill", "look", "rotate")
WITHOUT_END = tuple(step for step in ALWAYS if step != "fill")


@dataclass(frozen=True)
class Case:
    """A predictor, and what may be done with it.

    Parameters
    ----------
    make : callable
        Returns it unfitted, with a seed for its coins.
    kind : str
        What tables look like.
    n_rows : int
        Rows to fit.
    steps : tuple of str
        What may happen in its life (``lives``).
    public_queries : bool
        Whether queries are public, so that they are the same in all worlds.
    given : Any
        What ``cumae.open`` must be given for the estimator.
    """

    make: Callable[[int], Any]
    kind: str = ONE
    n_rows: int = 40
    steps: tuple[str, ...] = ALWAYS
    public_queries: bool = False
    given: Any = None


def everlasting(estimator: Any = None, **more: Any) -> Callable[[int], EverlastingPredictor]:
    """Return what makes an everlasting predictor whose phases have 40 answers."""
    given: dict[str, Any] = {"epsilon": 60.0, "shard_size": 8, "growth": 1.0, "prior": False}

    def make(seed: int) -> EverlastingPredictor:
        model = Thresholds() if estimator is None else estimator  # a forest has a length
        return EverlastingPredictor(model, **(given | more), random_state=seed)

    return make


def bbl(concept: Any = None, **more: Any) -> Callable[[int], GenericBBL]:
    """Return what makes a GenericBBL with short phases."""
    given: dict[str, Any] = {"epsilon": 300.0, "shard_size": 5, "phase_length": 20}
    given |= {"query_share": 0.5, "label_share": 0.1}
    return lambda seed: GenericBBL(concept or Thresholds(), **(given | more), random_state=seed)


def query(estimator: Any = None, **more: Any) -> Callable[[int], QueryRelease]:
    """Return what makes a release."""
    given: dict[str, Any] = {"epsilon": 40.0, "delta": 1e-3, "max_queries": 40}
    return lambda seed: QueryRelease(estimator or Thresholds(), **(given | more), random_state=seed)


def agnostic(**more: Any) -> Callable[[int], AgnosticQueryRelease]:
    """Return what makes a release for labels that no concept gets right."""
    return lambda seed: AgnosticQueryRelease(
        Thresholds(), 60.0, max_queries=40, random_state=seed, **more
    )


def universal(estimator: Any = None, **more: Any) -> Callable[[int], UniversalQueryRelease]:
    """Return what makes a release for any number of queries."""
    given: dict[str, Any] = {"epsilon": 40.0, "delta": 1e-3, "n_first": 8}
    return lambda seed: UniversalQueryRelease(
        estimator or Thresholds(), **(given | more), random_state=seed
    )


def scaled(*steps: Any) -> Any:
    return make_pipeline(*steps)


WORDS = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["word"]),
        remainder="passthrough",
    ),
    DecisionTreeClassifier(max_depth=2),
)
WORDS_NB = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["word"]),
        remainder="passthrough",
    ),
    GaussianNB(),
)
ESTIMATORS: dict[str, tuple[Any, str]] = {
    "tree of depth 1": (DecisionTreeClassifier(max_depth=1), THREE),
    "tree of depth 3": (DecisionTreeClassifier(max_depth=3), THREE),
    "tree of depth 6": (DecisionTreeClassifier(max_depth=6), THREE),
    "tree without a depth": (DecisionTreeClassifier(), THREE),
    "tree with few leaves": (DecisionTreeClassifier(max_leaf_nodes=4), THREE),
    "extra tree": (ExtraTreeClassifier(max_depth=4), THREE),
    "logistic": (LogisticRegression(), THREE),
    "logistic, scaled": (scaled(StandardScaler(), LogisticRegression()), THREE),
    "logistic, between 0 and 1": (scaled(MinMaxScaler(), LogisticRegression()), THREE),
    "ridge": (RidgeClassifier(), THREE),
    "neighbours": (KNeighborsClassifier(1), THREE),
    "naive Bayes": (GaussianNB(), THREE),
    "words": (WORDS, FRAME),
    "words, naive Bayes": (WORDS_NB, FRAME),
    "forest": (RandomForestClassifier(3, max_depth=3), THREE),
    "failing": (FailingOnMarks(DecisionTreeClassifier(max_depth=2)), THREE),
    "thresholds": (Thresholds(), ONE),
    "thresholds above": (Thresholds("above"), ONE),
    "intervals": (Intervals(), ONE),
    "points": (Points(), ONE),
    "rectangles": (Rectangles(), THREE),
    "stumps": (Stumps(), THREE),
    "trees": (Trees(2), THREE),
    "halfspaces": (Halfspaces(), THREE),
}
# Those that cannot be written out, or take long.
GIVEN = {"failing": FailingOnMarks(DecisionTreeClassifier(max_depth=2))}
SLOW = (
    "forest",
    "logistic",
    "logistic, scaled",
    "logistic, between 0 and 1",
    "words",
    "words, naive Bayes",
    "failing",
)
LABELS = ("tell", "label", *ALWAYS)
TEXT = ("no", "yes, certainly")
PREDICTORS: dict[str, Case] = {
    "everlasting": Case(everlasting()),
    "everlasting, text answers": Case(everlasting(classes=TEXT)),
    "everlasting, memo": Case(everlasting(memoize=True), steps=("ask", *ALWAYS)),
    "everlasting, memo and text answers": Case(everlasting(memoize=True, classes=TEXT)),
    "everlasting, users": Case(everlasting(user_ids=True), steps=LABELS),
    "everlasting, clients": Case(everlasting(client_cap=0.5), steps=LABELS),
    "everlasting, fresh": Case(everlasting(fresh=True, growth=2.0), steps=("supply", *ALWAYS)),
    "everlasting, fresh, background": Case(
        everlasting(fresh=True, growth=2.0, late=0.25, background=True), steps=("supply", *ALWAYS)
    ),
    "everlasting, late": Case(everlasting(late=0.25), steps=LABELS),
    "everlasting, background": Case(everlasting(late=0.25, background=True), steps=LABELS),
    "everlasting, labels": Case(everlasting(), steps=("tell", *LABELS)),
    "everlasting, labels and memo": Case(everlasting(memoize=True), steps=LABELS),
    "everlasting, prior": Case(
        everlasting(columns=[(0, 1)], prior=None, prior_share=0.4), n_rows=90, steps=LABELS
    ),
    "everlasting, prior and trees": Case(
        everlasting(
            DecisionTreeClassifier(max_depth=2),
            columns=[(0, 1)] * 3,
            prior=PrivateKernelClassifier(n_waves=5),
            prior_share=0.4,
        ),
        THREE,
        n_rows=90,
    ),
    "bbl": Case(bbl(), n_rows=60),
    "bbl, all queries": Case(bbl(query_share=1.0), n_rows=60),
    "bbl, a quarter": Case(bbl(query_share=0.25, phase_length=40), n_rows=60),
    "bbl, agnostic": Case(bbl(agnostic=True), n_rows=60),
    "bbl, grid": Case(bbl(Rectangles(), n_cuts=2), kind=THREE, n_rows=60),
    "bbl, fresh": Case(bbl(fresh=True), n_rows=60, steps=("supply", *ALWAYS)),
    "bbl, text answers": Case(bbl(classes=TEXT), n_rows=60),
    "bbl, between": Case(
        bbl(votes="between", shard_size=2, between_share=0.2, epsilon=200.0),
        n_rows=240,
        steps=WITHOUT_END,
    ),
    "query": Case(query(), n_rows=100, public_queries=True),
    "query, text answers": Case(query(classes=TEXT), n_rows=100, public_queries=True),
    "query, laplace": Case(query(mechanism="laplace", delta=0.0), n_rows=100, public_queries=True),
    "query, stability": Case(
        query(mechanism="stability", max_unstable=40),
        n_rows=100,
        public_queries=True,
    ),
    "query, between": Case(
        query(mechanism="between", max_unstable=20, epsilon=200.0),
        n_rows=200,
        steps=WITHOUT_END,
        public_queries=True,
    ),
    "query, offline": Case(query(mechanism="offline"), n_rows=100, public_queries=True),
    "query, trees": Case(
        query(DecisionTreeClassifier(max_depth=3)), THREE, n_rows=100, public_queries=True
    ),
    "query, words": Case(query(WORDS, n_shards=3), FRAME, n_rows=60, public_queries=True),
    "agnostic": Case(agnostic(), n_rows=200, public_queries=True),
    "universal": Case(universal(), n_rows=100, public_queries=True),
    "universal, stability": Case(universal(mechanism="stability"), n_rows=100, public_queries=True),
    "universal, student": Case(
        universal(DecisionTreeClassifier(max_depth=3)), THREE, n_rows=100, public_queries=True
    ),
}


def of_estimator(name: str) -> Case:
    """Return an everlasting predictor with one of the estimators."""
    estimator, kind = ESTIMATORS[name]
    steps = tuple(step for step in ALWAYS if name not in SLOW or step != "fill")
    more = {"shard_size": 20} if name in SLOW else {}
    return Case(everlasting(estimator, **more), kind, steps=steps, given=GIVEN.get(name))


CASES = PREDICTORS | {f"with {name}": of_estimator(name) for name in ESTIMATORS}
