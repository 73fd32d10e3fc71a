"""Predictors that are driven through all kinds of events, on tables that are as small as can be."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from cumae import (
    AgnosticQueryRelease,
    BudgetExhausted,
    EverlastingPredictor,
    GenericBBL,
    QueryRelease,
    UniversalQueryRelease,
)
from cumae.checks.replay import (
    History,
    broken_off,
    events_rebuild_the_state,
    history_of,
)
from cumae.concepts import Rectangles, Thresholds
from tests.laws import NO_WEIGHTS

RNG = np.random.default_rng(9)
X = RNG.random((400, 1))
PAIRS = np.concatenate([X, X[::-1]], axis=1)
Y = (X[:, 0] > 0.4).astype(int) ^ (np.arange(400) % 10 == 0)  # some are wrong: not all is clear
FRAME = pd.DataFrame({"size": X[:, 0], "word": RNG.choice(["ja", "nein"], 400)})
TEXT = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["word"]),
        remainder="passthrough",
    ),
    GaussianNB(),
)


def charge(one: Any) -> None:
    """Charge answers that may have been given, as opening does after a crash."""
    one._counter_.change(one, lambda state: state.charged(2, "restarted", state.fitted.source))


# Everlasting prediction


def everlasting(estimator: Any = None, rows: int = 48, **changes: Any) -> EverlastingPredictor:
    given: dict[str, Any] = {"epsilon": 9.0, "shard_size": 8, "growth": 1.0, "prior": False}
    table = changes.pop("table", X)
    made = EverlastingPredictor(estimator or Thresholds(), **(given | changes), random_state=3)
    who = {"users": range(rows)} if made.user_ids else {}
    return made.fit(table[:rows], Y[:rows], **who)


def over_phases(one: Any) -> None:
    """Single answers, batches that cross phases, and calls that are broken off."""
    one.predict(X[:1])
    one.predict(X[:0])
    one.predict([[np.nan], [0.5], [0.7]])
    broken_off(one, lambda: one.predict(X[:2]))
    broken_off(one, lambda: one.predict(X[:2]), where="record")
    one.predict(X[:100])
    assert one.phase_ == 3
    charge(one)
    one.predict(X[:3])


def with_ids(one: Any) -> None:
    """Users, clients and names of queries; labels of queries and of other rows."""
    places = np.arange(30)
    users, clients = [f"u{place % 20}" for place in places], list(places % 6)
    asked = X[:30].copy()
    asked[[4, 25]] = np.nan
    for start in (0, 3, 4, 12):
        part = slice(start, {0: 3, 3: 4, 4: 12, 12: 30}[start])
        one.predict(
            asked[part], users=users[part], clients=clients[part], query_ids=list(places[part])
        )
        if start == 3:
            one.add_labels([1, 0], [1, 0])
        if start == 4:
            one.add_labels([1, 4], [0, 1])  # a second thought, and an unusable one
            one.add_labelled(X[40:46], Y[40:46], users=["u2", "a", "b", "b", "c", "d"])
            one.add_labelled([[np.nan]], [1], users=["e"])
    for start in range(30, 150, 20):
        own = [f"v{place}" for place in range(start, start + 20)]
        one.predict(X[start : start + 20], users=own, clients=own)
    assert one.phase_ == 3


def with_a_memo(one: Any) -> None:
    """The same questions, within a batch and later."""
    one.predict(X[[0, 1, 0]])
    one.predict(X[[1, 2]])
    one.predict(X[:1])
    one.predict(X[:60])
    one.predict(X[:2])


def with_supplied_rows(one: Any) -> None:
    """Rows that are supplied and get labels, one such draw broken off, and labelled rows."""
    one.add_unlabelled(X[:30])
    one.predict(X[:3])
    one.add_unlabelled(X[30:200])
    one.add_labelled(X[200:203], Y[200:203])
    one.predict(X[:60])
    one.predict(X[:60])
    assert one.phase_ >= 2
    one.predict(X[: int(one.remaining_)])
    broken_off(one, lambda: one.add_unlabelled(X[200:300]))  # while these get labels
    with suppress(BudgetExhausted):
        one.predict(X[:1])


def with_new_priors(one: Any) -> None:
    """Labels for a prior: too few for a new one, and then enough, with a phase in between."""
    one.predict(X[:4], query_ids=list("abcd"))
    one.add_labels(["b", "d"], [0, 1])
    before = one.prior_
    one.predict(X[: one._state_.left + 3])
    assert one.prior_ is before
    one.add_labelled(X[:200], Y[:200])
    one.predict(X[: one._state_.left + 3])
    assert one.prior_ is not before
    one.predict(X[:3])


def late(one: Any) -> None:
    """The next phase is prepared while the old one answers; its training is broken off once."""
    one.predict(X[:40])
    one.add_labelled(X[:2], Y[:2])
    one.predict(X[:7])
    broken_off(one, lambda: one.predict(X[: one._state_.left + 2]))
    one.predict(X[:60])
    assert one.phase_ > 1


def framed(one: Any) -> None:
    """Data frames with text."""
    one.predict(FRAME[:2])
    one.predict(FRAME[2:5])
    one.add_labelled(FRAME[5:8], Y[5:8])
    one.predict(FRAME[: one._state_.left + 1])
    assert one.phase_ == 2


# Releases


def query(estimator: Any = None, rows: int = 200, **changes: Any) -> QueryRelease:
    given: dict[str, Any] = {"epsilon": 40.0, "delta": 1e-3, "max_queries": 40}
    made = QueryRelease(estimator or Thresholds(), **(given | changes), random_state=3)
    return made.fit(X[:rows], Y[:rows])


def agnostic() -> AgnosticQueryRelease:
    made = AgnosticQueryRelease(Thresholds(), 60.0, max_queries=40, random_state=3)
    return made.fit(X[:200], Y[:200])


def until_the_end(one: Any) -> None:
    """Labels, and counts where they are released, until nothing remains."""
    one.predict(X[:1])
    if one.mechanism_ in ("gaussian", "laplace"):
        one.noisy_votes(X[:3])
    one.predict(X[:5])
    broken_off(one, lambda: one.predict(X[:2]))
    charge(one)
    while one.remaining_:
        one.predict(X[: min(6, one.remaining_)])


def at_once(one: Any) -> None:
    one.predict(X[:5])


def at_once_in_vain(one: Any) -> None:
    """The one draw is broken off; later calls are refused, and record nothing more."""
    broken_off(one, lambda: one.predict(X[:5]))
    for _ in range(2):
        with suppress(BudgetExhausted):
            one.predict(X[:5])
    assert len(history_of(one).records) == 1


def universal(estimator: Any = None, **changes: Any) -> UniversalQueryRelease:
    given: dict[str, Any] = {"epsilon": 40.0, "delta": 1e-3, "n_first": 12}
    made = UniversalQueryRelease(estimator or Thresholds(), **(given | changes), random_state=3)
    return made.fit(X[:200], Y[:200])


def into_the_second_stage(one: Any) -> None:
    one.predict(X[:2])
    one.predict(X[2:5])
    broken_off(one, lambda: one.predict(X[5:7]))
    charge(one)
    one.predict(X[5:15])
    assert one.stage_ == 2
    one.predict(X[:4])


def broken_before_the_second_stage(one: Any) -> None:
    one.predict(X[:11])
    broken_off(one, lambda: one.predict(X[11:14]), passes=1)
    with suppress(BudgetExhausted):
        one.predict(X[:4])


# GenericBBL


def bbl(rows: int = 60, **changes: Any) -> GenericBBL:
    given: dict[str, Any] = {"epsilon": 300.0, "shard_size": 5, "phase_length": 20}
    given |= {"query_share": 0.5, "label_share": 0.1}
    return GenericBBL(Thresholds(), **(given | changes), random_state=3).fit(X[:rows], Y[:rows])


def gridded_bbl() -> GenericBBL:
    given: dict[str, Any] = {"epsilon": 300.0, "shard_size": 5, "phase_length": 20}
    given |= {"query_share": 0.5, "label_share": 0.1, "n_cuts": 3}
    return GenericBBL(Rectangles(), **given, random_state=3).fit(PAIRS[:60], Y[:60])


def over_short_phases_of_boxes(one: Any) -> None:
    one.predict(PAIRS[:17])
    one.predict(PAIRS[:25])
    broken_off(one, lambda: one.predict(PAIRS[:1]))
    one.predict(PAIRS[:9])
    assert one.phase_ > 1


def over_short_phases(one: Any) -> None:
    """Phases, with a draw of labels, and a training that is broken off and repeated."""
    if one.fresh:
        one.add_unlabelled(X[:30])
        one.add_unlabelled(X[30:200])
    one.predict(X[:1])
    one.predict([[np.nan], [0.3]])
    broken_off(one, lambda: one.predict(X[:1]))
    charge(one)
    broken_off(one, lambda: one.predict(X[:1]), where="record")
    one.predict(X[:16])
    one.predict(X[:25])
    assert one.phase_ > 1


def broken_between_phases(one: Any) -> None:
    one.predict(X[: one._state_.unasked])
    broken_off(one, lambda: one.predict(X[:1]))  # while labels are drawn
    with suppress(BudgetExhausted):
        one.predict(X[:1])


def until_it_halts(one: Any) -> None:
    with suppress(BudgetExhausted):
        for start in range(0, 400, 5):
            one.predict(X[start : start + 5])
    assert one.remaining_ == 0


BETWEEN = {"votes": "between", "shard_size": 2, "between_share": 0.2, "epsilon": 200.0}
SCENARIOS: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "everlasting": (everlasting, over_phases),
    "ids": (lambda: everlasting(user_ids=True, client_cap=0.3, growth=1.3), with_ids),
    "memo": (lambda: everlasting(memoize=True), with_a_memo),
    "fresh": (lambda: everlasting(fresh=True, growth=2.0), with_supplied_rows),
    "fresh, late": (lambda: everlasting(fresh=True, growth=2.0, late=0.25), with_supplied_rows),
    "prior": (
        lambda: everlasting(columns=[(0, 1)], prior=None, prior_share=0.4, rows=90),
        with_new_priors,
    ),
    "late": (lambda: everlasting(late=0.25), late),
    "background": (lambda: everlasting(late=0.25, background=True), late),
    "neighbours": (
        lambda: everlasting(NO_WEIGHTS, late=0.25, rows=40, balanced=False),
        late,
    ),
    "frames": (
        lambda: everlasting(TEXT, table=FRAME, rows=40, shard_size=20, delta=1e-2),
        framed,
    ),
    "gaussian": (query, until_the_end),
    "laplace": (lambda: query(mechanism="laplace", delta=0.0), until_the_end),
    "stability": (lambda: query(mechanism="stability", max_unstable=20), until_the_end),
    "between": (lambda: query(mechanism="between", max_unstable=20, epsilon=200.0), until_the_end),
    "agnostic": (agnostic, until_the_end),
    "offline": (lambda: query(mechanism="offline"), at_once),
    "offline, in vain": (lambda: query(mechanism="offline"), at_once_in_vain),
    "universal": (universal, into_the_second_stage),
    "universal, stability": (lambda: universal(mechanism="stability"), into_the_second_stage),
    "universal, in vain": (universal, broken_before_the_second_stage),
    "universal, student": (lambda: universal(DecisionTreeClassifier()), into_the_second_stage),
    "universal, student, broken off": (
        lambda: universal(DecisionTreeClassifier()),
        broken_before_the_second_stage,
    ),
    "bbl": (bbl, over_short_phases),
    "bbl, fresh": (lambda: bbl(fresh=True), over_short_phases),
    "bbl, in vain": (bbl, broken_between_phases),
    "bbl, grid": (gridded_bbl, over_short_phases_of_boxes),
    "bbl, between": (lambda: bbl(rows=240, **BETWEEN), until_it_halts),
}


@functools.cache
def history(name: str) -> History:
    """Return all that one of them recorded, after the law was kept."""
    make, drive = SCENARIOS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return events_rebuild_the_state(make(), drive)
