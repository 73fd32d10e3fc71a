"""Laws of the predictors: what a caller may see, and what a call may spend."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError

from cumae.checks.ends import demand_end, in_a_fork
from cumae.checks.failures import FAILURES, FailingOnMarks, with_failures
from cumae.checks.learners import CountedSource
from cumae.checks.payments import done_or_unpaid, tables_without_contents
from cumae.checks.plans import demand_agreement, demand_refusal
from cumae.checks.queries import families, few, in_batches, with_missing_cell
from cumae.checks.replay import events_rebuild_the_state
from cumae.checks.shards import Neighbours, demand
from cumae.concepts import ConceptClass
from cumae.data import length_of, row_source
from cumae.errors import BudgetExhausted, InvalidData, LiveState
from cumae.estimators import own_clone
from cumae.outlook import Outlook
from cumae.predictors import Call
from cumae.privacy import Budget
from cumae.quiet import is_failure
from cumae.randomness import SeededSource


def fitted(predictor: Any, pair: Neighbours, **changed: Any) -> Any:
    """Fit a clone with the coins of the pair."""
    return _fit(predictor.set_params(**changed) if changed else predictor, pair, pair.X, pair.y)


def ask(one: Any, queries: Any) -> Any:
    """Ask a fitted predictor; each query comes from a new user and client if it wants to know."""
    return one.predict(queries, **_ids(one, queries))


def _ids(one: Any, queries: Any, before: int = 0) -> dict[str, Any]:
    """Return the ids that a predictor wants to know, if it is asked so many others before."""
    wanted = ["users"] * bool(getattr(one, "user_ids", False))
    wanted += ["clients"] * (getattr(one, "client_cap", None) is not None)
    if not wanted:
        return {}
    first = one.answered_ + before
    ids = [f"id {first + place}" for place in range(length_of(queries))]
    return dict.fromkeys(wanted, ids)


def an_unfitted_one_refuses(predictor: Any, pair: Neighbours) -> None:
    """Before fit there are no answers."""
    demand_end(NotFittedError, lambda: clone(predictor).predict(pair.queries))


def clones_carry_no_budget(predictor: Any, pair: Neighbours) -> None:
    """A clone of a fitted predictor is unfitted: it has neither models nor answers."""
    copied = clone(fitted(predictor, pair))
    demand_end(NotFittedError, lambda: copied.predict(pair.queries))
    demand(not any(name.endswith("_") for name in vars(copied)), "a clone kept fitted state")


def there_is_only_one(predictor: Any, pair: Neighbours) -> None:
    """A fitted predictor can be neither copied nor pickled."""
    one = fitted(predictor, pair)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        demand_end(LiveState, partial(duplicate, one))


def refusals_spend_nothing(predictor: Any, pair: Neighbours) -> None:
    """A refused call leaves as many answers as before, and draws nothing."""
    one = fitted(predictor, pair)
    before, queries = _spent(one), np.asarray(pair.queries)
    with _coins_counted() as drawn:
        wide = np.column_stack([queries, queries])
        demand_end(InvalidData, lambda: ask(one, wide))
        demand_end(InvalidData, lambda: ask(one, wide.tolist()))
        demand_end(InvalidData, lambda: ask(one, np.zeros((2, 2, 2))))
        if np.isfinite(one.remaining_):
            many = np.resize(queries, (int(one.remaining_) + 1, queries.shape[1]))
            names = getattr(pair.queries, "columns", None)
            asked = many if names is None else pd.DataFrame(many, columns=names)
            demand_end(BudgetExhausted, lambda: ask(one, asked))
    demand(_spent(one) == before, "a refused call was counted")
    demand(not drawn, "a refused call drew random numbers")


def answers_are_counted(predictor: Any, pair: Neighbours) -> None:
    """As many answers are gone as were given, and each is one of the declared classes or -1."""
    one = fitted(predictor, pair)
    before = one.remaining_
    answers = ask(one, pair.queries)
    demand(len(answers) == row_source(pair.queries).n_rows, "a query got no answer")
    known = [*pair.classes, -1]
    demand(all(answer in known for answer in answers.tolist()), "an answer is no declared class")
    if np.isfinite(before):
        demand(one.remaining_ in (before - len(answers), 0), "answers were not counted")
    if hasattr(one, "answered_") and one.counts_unusable:
        demand(one.answered_ == len(answers), "answered_ is not the number of answers")


def it_stays_in_its_process(predictor: Any, pair: Neighbours) -> None:
    """A forked process gets no answer from a fitted predictor, and the first process still does."""
    if not hasattr(os, "fork"):
        return
    one, queries = fitted(predictor, pair), few(pair.queries)
    end = in_a_fork(lambda: ask(one, queries))
    demand(end == "LiveState", f"in a forked process a question ended as {end}")
    ask(one, queries)


def one_row_cannot_be_seen(predictor: Any, pair: Neighbours) -> None:
    """Unusable rows change no public fact, no warning and no refusal of a fit."""
    here, there = (_seen(predictor, pair, *of) for of in _tables(pair))
    for name, value in here.items():
        demand(value == there[name], f"{name} depends on a row: {value} and {there[name]}")
    demand(here["refusal"] is None, f"rows that are in order were refused: {here['refusal']}")


def shards_learn(predictor: Any, pair: Neighbours) -> None:
    """Without noise, answers to the training rows are not all the same: what was tried out runs."""
    one = fitted(own_clone(predictor), pair, epsilon=math.inf)
    rows = row_source(pair.X)
    most = min(100, rows.n_rows, int(min(one.remaining_, 100)))
    asked = pair.X[:most] if hasattr(pair.X, "iloc") else np.asarray(pair.X)[:most]
    demand(len(set(ask(one, asked).tolist())) > 1, "every training row got the same answer")


def batches_do_not_matter(predictor: Any, pair: Neighbours) -> None:
    """Under the same coins a query gets the same answer, in any batches."""
    queries = few(pair.queries)
    if _answers_one_batch(fitted(predictor, pair)):
        return
    whole = answers_to(predictor, pair, [queries])
    for cuts in (list(range(1, len(queries))), [1, 3, len(queries) - 1]):
        found = answers_to(predictor, pair, in_batches(queries, cuts))
        demand(found == whole, "an answer depends on the batch that its query came in")


def calls_do_not_meet(predictor: Any, pair: Neighbours) -> None:
    """Calls that are asked at once have the answers of single ones; a refusal is for one alone."""
    one = fitted(predictor, pair)
    if _answers_one_batch(one):
        return
    queries = few(pair.queries)
    batches = in_batches(queries, [1, 3])
    starts = (0, 1, 3)
    calls = [
        Call(batch, **_ids(one, batch, start)) for batch, start in zip(batches, starts, strict=True)
    ]
    wrong = Call(np.zeros((2, 2, 2)))
    first, second, *others = one.predict_calls([*calls[:1], wrong, *calls[1:]])
    demand(isinstance(second, InvalidData), "a call of a strange shape was not refused")
    found = [first, *others]
    demand(not any(isinstance(part, Exception) for part in found), "another call was refused")
    found = [answer for part in found for answer in part.tolist()]
    wanted = answers_to(predictor, pair, batches)
    demand(found == wanted, "an answer depends on calls that are asked at once")


def one_batch_is_the_last(predictor: Any, pair: Neighbours) -> None:
    """Where all queries come in one batch, a second one is refused, and draws nothing."""
    one, queries = fitted(predictor, pair), few(pair.queries)
    if not _answers_one_batch(one):
        return
    ask(one, queries[:-1])
    demand(one.remaining_ == 0, "answers remain after the only batch")
    with _coins_counted() as drawn:
        demand_end(BudgetExhausted, lambda: ask(one, queries[-1:]))
    demand(not drawn, "a refused call drew random numbers")


def unusable_queries_are_refused(predictor: Any, pair: Neighbours) -> None:
    """Where queries are public, an unusable one is refused with its batch, and nothing is spent."""
    if predictor.counts_unusable:
        return
    one = fitted(predictor, pair)
    before, missing = _spent(one), with_missing_cell(few(pair.queries))
    with _coins_counted() as drawn:
        demand_end(InvalidData, lambda: ask(one, missing))
    demand(_spent(one) == before and not drawn, "a refused call was counted, or drew coins")


def unusable_queries_count(predictor: Any, pair: Neighbours) -> None:
    """Where queries are protected, an unusable one gets -1 and counts like any other."""
    if not predictor.counts_unusable:
        return
    one = fitted(predictor, pair)
    answers = ask(one, with_missing_cell(few(pair.queries))).tolist()
    demand(answers[-1] == -1, "a query with a missing cell got an answer")
    demand(one.answered_ == len(answers), "an unusable query was not counted")


def queries_do_not_meet(predictor: Any, pair: Neighbours) -> None:
    """Where queries are protected, no answer depends on what another query of its batch holds.

    Of a few queries some are replaced: by rows of another width, type or container, by cells that
    are missing, infinite, huge or of another type, and by rows that equal others but for the sign
    of a zero. The others get the same answers under the same coins. GenericBBL with
    ``votes="between"`` protects no queries: a split vote is counted, and moves later answers.
    """
    if not predictor.counts_unusable or getattr(predictor, "votes", None) == "between":
        return
    for batches, kept in families(few(pair.queries)):
        answers = [answers_to(predictor, pair, [batch]) for batch in batches]
        visible = [[found[place] for place in kept] for found in answers]
        demand(
            all(found == visible[0] for found in visible),
            "an answer depends on what another query holds",
        )


def stored_events_rebuild_it(predictor: Any, pair: Neighbours) -> None:
    """A stored state and the events since become the state of the predictor."""
    one, queries = fitted(predictor, pair), few(pair.queries)
    batches = [queries] if _answers_one_batch(one) else in_batches(queries, [1])

    def drive(watched: Any) -> None:
        for batch in batches:
            ask(watched, batch)

    events_rebuild_the_state(one, drive)


class Watched(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """An estimator that writes down the shapes and types of the tables that it is asked about."""

    tables: ClassVar[list[tuple[Any, ...]]] = []

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Watched:
        del sample_weight  # of no use here: shapes do not depend on what is learnt
        self.model_ = own_clone(self.estimator).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> Any:
        types = X.dtypes.tolist() if hasattr(X, "columns") else [X.dtype]
        Watched.tables.append((X.shape, *map(str, types)))
        return self.model_.predict(X)


def models_see_one_shape(predictor: Any, pair: Neighbours) -> None:
    """Tables that scikit-learn estimators are asked about have one shape, and columns one type.

    Batches of all sizes are asked, with queries that are missing, infinite, huge or of other types
    where queries are protected. Concept classes and what a student says are left out: the former
    are computed row by row, and the latter is public.
    """
    estimator = predictor.get_params(deep=False).get("estimator")
    if estimator is None or isinstance(estimator, ConceptClass):
        return
    one = fitted(own_clone(predictor), pair, estimator=Watched(estimator))
    queries = few(pair.queries)
    batches = in_batches(queries, [1, 3])
    if predictor.counts_unusable:
        batches += [batch for family, _ in families(queries) for batch in family[-1:]]
    elif hasattr(one, "n_first_"):
        batches = batches[:-1]
    Watched.tables.clear()
    for batch in batches:
        ask(one, batch)
    demand(len(Watched.tables) > 0, "no model was asked")
    demand(
        len(set(Watched.tables)) == 1, "the shape of a table depends on the batch, or on a query"
    )


def failures_cannot_be_seen(predictor: Any, pair: Neighbours) -> None:
    """Nobody notices rows and queries on which a scikit-learn estimator fails.

    Neither what can be seen of a fit nor, where queries are protected, the answers to other queries
    depend on them. Failures are errors of all kinds, also those that are no ``Exception``. What a
    student says is left out: it is public.
    """
    estimator = predictor.get_params(deep=False).get("estimator")
    if estimator is None or isinstance(estimator, ConceptClass):
        return
    failing = own_clone(predictor).set_params(estimator=FailingOnMarks(estimator))
    places = [2 * place for place in range(len(FAILURES))]
    here, there = (_seen(failing, pair, X, pair.y) for X in (pair.X, with_failures(pair.X, places)))
    demand(here == there, f"rows on which models fail are seen: {here} and {there}")
    if hasattr(predictor, "student"):
        return
    queries = few(pair.queries)
    batches = (queries, with_failures(queries, places))
    found = []
    for batch in batches:
        try:
            found.append(np.array(answers_to(failing, pair, [batch])))
        except BaseException as error:
            demand(not is_failure(type(error)), f"a query lets everybody see {type(error)}")
            raise
    if predictor.counts_unusable:
        others = np.delete(np.arange(len(queries)), places)
        same = np.array_equal(found[0][others], found[1][others])
        demand(same, "an answer depends on a query on which models fail")


def a_plan_tells_what_a_fit_does(predictor: Any, pair: Neighbours) -> None:
    """A plan draws nothing, pays nothing, and tells guarantee, facts and warnings of the fit.

    It is made for columns of numbers, unless others are declared: a frame without declarations may
    hold anything, and is left out.
    """
    if predictor.columns is None and hasattr(pair.X, "columns"):
        return
    budget, source = Budget(1e9, 0.5), CountedSource(pair.seed)
    outlook = _planned(own_clone(predictor).set_params(random_state=source, budget=budget), pair)
    demand(source.drawn == 0, "a plan drew random numbers")
    demand(budget.entries == (), "a plan was paid for")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        one = fitted(predictor, pair)
    demand_agreement(outlook, one, heard)


def a_refused_plan_is_a_refused_fit(predictor: Any, pair: Neighbours) -> None:
    """A fit refuses all that a plan refuses, in the same words: parameters, and no rows at all."""
    for changed in ({"epsilon": -1.0}, {"delta": 2.0}):
        broken = own_clone(predictor).set_params(**changed)
        demand_refusal(_planned(broken, pair), partial(_fit, broken, pair, pair.X, pair.y))
    nothing = predictor.plan(0, np.shape(pair.X)[1])
    empty = np.zeros((0, np.shape(pair.X)[1]))
    demand_refusal(nothing, partial(_fit, predictor, pair, empty, []))


def tables_without_contents_are_refused(predictor: Any, pair: Neighbours) -> None:
    """Text, dates and long integers that were not declared are refused before anything is paid."""
    for X in tables_without_contents(*np.shape(pair.X)):
        undeclared = own_clone(predictor).set_params(columns=None)
        done = done_or_unpaid(partial(_paid, undeclared, pair, X))
        demand(not done, "a table of which nothing can be used was paid for")


def _paid(predictor: Any, pair: Neighbours, X: Any, budget: Budget) -> Any:
    """Fit a clone to other rows with the labels of the pair, from an account."""
    one = own_clone(predictor).set_params(random_state=SeededSource(pair.seed), budget=budget)
    users = {"users": range(len(X))} if getattr(one, "user_ids", False) else {}
    return one.fit(X, pair.y, **users)


def _planned(predictor: Any, pair: Neighbours) -> Outlook:
    """Return what a predictor plans for the rows of a pair, by their numbers alone."""
    found: Outlook = predictor.plan(*np.shape(pair.X))
    return found


PREDICTOR_LAWS: tuple[Callable[[Any, Neighbours], None], ...] = (
    an_unfitted_one_refuses,
    clones_carry_no_budget,
    there_is_only_one,
    it_stays_in_its_process,
    refusals_spend_nothing,
    answers_are_counted,
    one_row_cannot_be_seen,
    a_plan_tells_what_a_fit_does,
    a_refused_plan_is_a_refused_fit,
    tables_without_contents_are_refused,
    shards_learn,
    batches_do_not_matter,
    calls_do_not_meet,
    one_batch_is_the_last,
    unusable_queries_are_refused,
    unusable_queries_count,
    queries_do_not_meet,
    models_see_one_shape,
    failures_cannot_be_seen,
    stored_events_rebuild_it,
)


def check_predictor(predictor: Any, pair: Neighbours) -> None:
    """Run all laws of the predictors on one of them.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae import QueryRelease
    >>> from cumae.checks import Neighbours, check_predictor
    >>> from cumae.concepts import Thresholds
    >>> X = np.random.default_rng(0).random((2_000, 1))
    >>> y = X[:, 0] > 0.5
    >>> pair = Neighbours.replacing(X, y, 7, [np.nan], 1, queries=X[:10])
    >>> check_predictor(QueryRelease(Thresholds(), epsilon=5.0, max_queries=20), pair)
    """
    for law in PREDICTOR_LAWS:
        law(predictor, pair)


def answers_to(predictor: Any, pair: Neighbours, batches: Sequence[Any]) -> list[Any]:
    """Fit with the coins of the pair, and return the answers to all batches, one after another."""
    one = fitted(predictor, pair)
    return [answer for batch in batches for answer in ask(one, batch).tolist()]


def _answers_one_batch(one: Any) -> bool:
    return getattr(one, "mechanism_", None) == "offline"


def _fit(predictor: Any, pair: Neighbours, X: Any, y: Any) -> Any:
    """Fit a clone; it gets an id for each row, or rows for the next phase, if it wants them."""
    one = own_clone(predictor).set_params(random_state=SeededSource(pair.seed), budget=None)
    users = {"users": range(row_source(X).n_rows)} if getattr(one, "user_ids", False) else {}
    one.fit(X, y, **users)
    return one.add_unlabelled(pair.X) if getattr(one, "fresh", False) else one


PUBLIC = ("guarantee_", "remaining_", "n_shards_", "mechanism_", "why_", "noise_per_vote_")


def _tables(pair: Neighbours) -> list[tuple[Any, Any]]:
    return [(pair.X, pair.y), (pair.X_other, pair.y_other)]


def _seen(predictor: Any, pair: Neighbours, X: Any, y: Any) -> dict[str, Any]:
    """Return what can be seen of a fit: public facts, warnings, and whether it was refused."""
    refusal, one = None, None
    with warnings.catch_warnings(record=True) as heard, np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            one = _fit(predictor, pair, X, y)
        except BaseException as error:
            if not is_failure(type(error)):
                raise
            refusal = f"{type(error).__name__}: {error}"
    warned = [f"{warning.category.__name__}: {warning.message}" for warning in heard]
    facts = {name: getattr(one, name, None) for name in PUBLIC}
    return {"refusal": refusal, "warnings": warned, **facts}


def _spent(one: Any) -> tuple[float, int]:
    """Return what a call could change: answers left, and answers given."""
    return one.remaining_, getattr(one, "answered_", 0) if one.counts_unusable else 0


@contextlib.contextmanager
def _coins_counted() -> Iterator[list[int]]:
    """Write down how many random words are drawn from seeded sources meanwhile."""
    drawn: list[int] = []
    draw = SeededSource.words

    def words(self: SeededSource, count: int) -> Any:
        drawn.append(count)
        return draw(self, count)

    SeededSource.words = words  # type: ignore[method-assign]
    try:
        yield drawn
    finally:
        SeededSource.words = draw  # type: ignore[method-assign]
