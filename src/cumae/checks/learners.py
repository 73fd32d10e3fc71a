"""Laws of the learners: what a fit may spend, and what may be seen of it."""

from __future__ import annotations

import copy
import io
import os
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cumae.arrays import Words
from cumae.checks.batches import a_model_ignores_the_batch
from cumae.checks.ends import demand_end, end_of, in_a_fork
from cumae.checks.payments import (
    at_extreme_prices,
    done_or_unpaid,
    is_around_another,
    tables_without_contents,
)
from cumae.checks.plans import demand_agreement, demand_refusal
from cumae.checks.shards import Neighbours, demand
from cumae.data import UNLABELLED, Columns
from cumae.errors import BudgetExhausted, CumaeError, LiveState
from cumae.estimators import own_clone
from cumae.outlook import Outlook
from cumae.privacy import Budget
from cumae.randomness import SeededSource

RUNS = 6  # seeds that are compared
THREADS = 8
SPOILT = (np.nan, np.inf, -np.inf, 1e308, -1e308)


@dataclass(frozen=True)
class PublicNeighbours(Neighbours):
    """Neighbours with public rows next to them, for learners that want some.

    Parameters
    ----------
    X_public : array-like
        Public rows that both tables come with.
    """

    X_public: Any = None


class CountedSource(SeededSource):
    """Coins of a seed, and how many of them were thrown."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.drawn = 0

    def words(self, count: int) -> Words:
        self.drawn += count
        return super().words(count)


@dataclass(frozen=True)
class Outcome:
    """All that can be seen of a fit from outside."""

    refusal: str | None
    warned: tuple[str, ...]
    facts: tuple[Any, ...]  # none if it was refused
    spent: tuple[float, float]
    drawn: int  # coins, without those of ``select``


class Started:
    """A clone of a learner with coins and an account, which has selected rows if it does that."""

    def __init__(
        self, learner: Any, pair: Neighbours, X: Any, budget: Budget | None = None
    ) -> None:
        self.pair, self.source = pair, CountedSource(pair.seed)
        self.learner = own_clone(learner).set_params(random_state=self.source, budget=budget)
        self.asked = self.learner.select(X) if self.half_done else None
        self.source.drawn = 0

    @property
    def half_done(self) -> bool:
        """True if there is something between the beginning of a fit and its end."""
        return hasattr(self.learner, "select")

    def fit(self, X: Any, y: Any) -> Any:
        """Fit to the rows; one that has selected some gets the labels of these."""
        labels = np.asarray(y, dtype=object)
        if self.asked is not None:
            labels = labels[self.asked[self.asked < len(labels)]]
        public = getattr(self.pair, "X_public", None)
        return self.learner.fit(X, labels.tolist(), *([] if public is None else [public]))


def outcome_of(learner: Any, pair: Neighbours, X: Any, y: Any) -> Outcome:
    """Fit, with the coins of the pair and all warnings of numpy, and tell what was seen."""
    budget, drawn, refusal = Budget(1e9, 0.5), 0, None
    facts: tuple[Any, ...] = ()
    with warnings.catch_warnings(record=True) as heard, np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            started = Started(learner, pair, X, budget)
            try:
                facts = facts_of(started.fit(X, y))
            finally:
                drawn = started.source.drawn
        except CumaeError as error:
            refusal = f"{type(error).__name__}: {error}"
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} instead of a CumaeError") from error
    said = tuple(f"{warning.category.__name__}: {warning.message}" for warning in heard)
    return Outcome(refusal, said, facts, budget.spent, drawn)


def facts_of(fitted: Any) -> tuple[Any, ...]:
    """Return what is public about a fit, for any rows."""
    names = tuple(map(str, getattr(fitted, "feature_names_in_", ())))
    share = getattr(fitted, "share_", None)  # of OneVsRest
    classes = tuple(getattr(fitted, "classes_", ()))  # a learner of numbers has none
    return fitted.guarantee_, fitted.n_features_in_, names, classes, share


def before_fit_there_are_no_labels(learner: Any, pair: Neighbours) -> None:
    """An estimator that was not fitted labels nothing."""
    demand_end(NotFittedError, lambda: clone(learner).predict(pair.queries))


def clones_carry_nothing(learner: Any, pair: Neighbours) -> None:
    """A clone has the parameters and nothing else, after any selection or fit."""
    started = Started(learner, pair, pair.X)
    for _ in range(2):
        copied = clone(started.learner)
        kept = set(vars(copied)) - set(copied.get_params(deep=False))
        demand(not kept, f"a clone kept {sorted(kept)}")
        if not hasattr(started.learner, "guarantee_"):
            started.fit(pair.X, pair.y)


def refusals_spend_nothing(learner: Any, pair: Neighbours) -> None:
    """A refused fit leaves the budget as it was, and throws no coin."""
    y = np.array(pair.y, dtype=object)
    unknown = np.full(len(y), "none of the classes", dtype=object)
    tables = [(X, y) for X in _spoilt(pair)]
    tables += [(pair.X, unknown), (pair.X, y[:-1]), (np.zeros((0, 1)), y[:0])]
    for X, labels in tables:
        seen = outcome_of(learner, pair, X, labels)
        if seen.refusal is not None:
            demand(seen.spent == (0.0, 0.0), f"a refused fit was paid for: {seen.refusal}")
            demand(seen.drawn == 0, f"a refused fit threw coins: {seen.refusal}")


def an_empty_budget_draws_nothing(learner: Any, pair: Neighbours) -> None:
    """Where the budget does not suffice, no coin is thrown and nothing is fitted."""
    started = Started(learner, pair, pair.X, Budget(0.0))
    demand_end(BudgetExhausted, lambda: started.fit(pair.X, pair.y))
    demand(started.source.drawn == 0, "a fit that was not paid for threw coins")
    demand_end(NotFittedError, lambda: started.learner.predict(pair.queries))


def refusals_ignore_the_coins(learner: Any, pair: Neighbours) -> None:
    """A row is refused, or not, in the same words whether or not it would be drawn."""
    for X in _spoilt(pair):
        seen = {outcome_of(learner, coins, X, pair.y).refusal for coins in _coins(pair)}
        demand(len(seen) == 1, f"whether a row is refused depends on the coins: {seen}")


def warnings_ignore_the_rows(learner: Any, pair: Neighbours) -> None:
    """No cell, infinite or huge, makes a fit say what it would not say without it."""
    usual = set(outcome_of(learner, pair, pair.X, pair.y).warned)
    for X in _spoilt(pair):
        seen = outcome_of(learner, pair, X, pair.y)
        demand(set(seen.warned) <= usual, f"a cell made a fit warn: {seen.warned}")
        demand(seen.refusal is not None or set(seen.warned) == usual, "a cell silenced a warning")


def one_row_cannot_be_seen(learner: Any, pair: Neighbours) -> None:
    """With the same coins, both tables get the same public facts, costs, warnings and refusals.

    Nothing is said of the model. Under the same coins it may be any other one: what the proofs of
    learners limit is how much likelier one row makes a model, over all coins. The exponential
    mechanism, for example, may pass from one hypothesis to a far one as soon as a single score
    changes by one. The audit tests chances (``cumae.audit``).
    """
    for coins in _coins(pair):
        one = outcome_of(learner, coins, pair.X, pair.y)
        other = outcome_of(learner, coins, pair.X_other, pair.y_other)
        demand(one.refusal is None, f"rows that are in order were refused: {one.refusal}")
        for name in ("refusal", "warned", "facts", "spent"):
            here, there = getattr(one, name), getattr(other, name)
            demand(here == there, f"a row changes the {name} of a fit: {here} and {there}")


def what_is_fitted_may_be_copied(learner: Any, pair: Neighbours) -> None:
    """A fitted learner may be copied and pickled, and the copies label as it does."""
    one = Started(learner, pair, pair.X).fit(pair.X, pair.y)
    labels = one.predict(pair.queries)
    for again in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):  # noqa: S301 - its own
        demand(np.array_equal(again.predict(pair.queries), labels), "a copy labels otherwise")


def half_done_there_is_only_one(learner: Any, pair: Neighbours) -> None:
    """Between select and fit, a learner can be neither copied nor pickled."""
    started = Started(learner, pair, pair.X)
    if started.half_done:
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            demand_end(LiveState, partial(duplicate, started.learner))


def half_done_it_stays_in_its_process(learner: Any, pair: Neighbours) -> None:
    """Between select and fit, a forked process cannot fit, and the first one still can."""
    started = Started(learner, pair, pair.X)
    if started.half_done and hasattr(os, "fork"):
        end = in_a_fork(lambda: started.fit(pair.X, pair.y))
        demand(end == "LiveState", f"in a forked process a fit ended as {end}")
        started.fit(pair.X, pair.y)


def a_selection_is_used_once(learner: Any, pair: Neighbours) -> None:
    """Of threads that fit at once, one learns from what was selected, and pays for it once."""
    budget = Budget(1e9, 0.5)
    started = Started(learner, pair, pair.X, budget)
    if not started.half_done:
        return
    ends: list[str] = []
    gate = threading.Barrier(THREADS)

    def fit() -> None:
        gate.wait()
        ends.append(end_of(lambda: started.fit(pair.X, pair.y)))

    threads = [threading.Thread(target=fit) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    demand(sorted(ends) == ["InvalidData"] * (THREADS - 1) + ["done"], f"threads ended as {ends}")
    demand(len(budget.entries) == 1, "one selection was paid for several times")


def a_plan_tells_what_a_fit_does(learner: Any, pair: Neighbours) -> None:
    """A plan throws no coin, pays nothing, and tells guarantee, facts and warnings of the fit."""
    budget, source = Budget(1e9, 0.5), CountedSource(pair.seed)
    outlook = _planned(own_clone(learner).set_params(random_state=source, budget=budget), pair)
    demand(source.drawn == 0, "a plan threw coins")
    demand(budget.entries == (), "a plan was paid for")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        one = Started(learner, pair, pair.X).fit(pair.X, pair.y)
    demand_agreement(outlook, one, heard)


def a_refused_plan_is_a_refused_fit(learner: Any, pair: Neighbours) -> None:
    """A fit refuses all that a plan refuses, in the same words: parameters, and an empty budget."""
    known = learner.get_params(deep=False)
    for changed in ({"epsilon": -1.0}, {"classes": (0,)}, {"budget": Budget(0.0)}):
        if not set(changed) <= set(known):  # a learner of numbers has no classes
            continue
        broken = own_clone(learner).set_params(**changed)
        demand_refusal(_planned(broken, pair), partial(_fitted, broken, pair))
    nothing = learner.plan(0, np.shape(pair.X)[1])
    demand(not nothing.can_run, "a plan takes no rows at all")


def extreme_prices_are_paid_or_refused(learner: Any, pair: Neighbours) -> None:
    """With very small and very large epsilons a fit ends well, or is refused before it is paid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in at_extreme_prices(learner):
            done_or_unpaid(partial(_paid, one, pair, pair.X))


def tables_without_contents_are_not_paid_for(learner: Any, pair: Neighbours) -> None:
    """Text, dates and long integers that were not declared are compared, or refused unpaid."""
    rows, width = len(pair.X), np.shape(pair.X)[1]
    if is_around_another(learner):
        return
    for X in tables_without_contents(rows, width):
        done_or_unpaid(partial(_paid, learner, pair, X))


def types_of_text_decide_nothing(learner: Any, pair: Neighbours) -> None:
    """A cell of a CSV file that is empty or a fraction changes nothing about the columns.

    A reader that chooses types by cells makes whole numbers of one file and floats of the other.
    What is known about the columns, of which features are made, must be the same.
    """
    rows, width = np.indices((max(len(pair.X), 2), np.shape(pair.X)[1]))
    cells = ((rows + width) % 2).astype(int).astype(str).astype(object)
    declared = getattr(learner, "known_columns", lambda: learner.columns)()
    found: list[Any] = []
    for cell in ("1", "0.5", ""):
        cells[-1, -1] = cell
        text = "\n".join([",".join(f"c{place}" for place in width[0]), *map(",".join, cells)])
        frame = pd.read_csv(io.StringIO(text), skip_blank_lines=False)
        try:
            known = Columns.of(frame, declared)
            found.append([known.to_dict(), [column.whole for column in known.columns]])
        except CumaeError as error:
            found.append(str(error))
    demand(found[0] == found[1] == found[2], "a cell of a CSV file decides what a column holds")


def parts_promise_what_the_whole_does(learner: Any, pair: Neighbours) -> None:
    """Every learner inside of a fitted one shows the guarantee of the whole."""
    one = Started(learner, pair, pair.X).fit(pair.X, pair.y)
    for name, value in vars(one).items():
        for part in value if isinstance(value, list) else [value]:
            if name.endswith("_") and hasattr(part, "guarantee_") and hasattr(part, "to_dict"):
                demand(part.guarantee_ == one.guarantee_, f"{name} promises something of its own")


def exact_models_ignore_the_batch(learner: Any, pair: Neighbours) -> None:
    """An exact learner, once fitted, says the same of a row in any batch, bit by bit."""
    one = Started(learner, pair, pair.X).fit(pair.X, pair.y)
    if getattr(one, "is_exact", False):
        a_model_ignores_the_batch(one, pair.queries)


def _paid(learner: Any, pair: Neighbours, X: Any, budget: Budget) -> Any:
    """Fit a clone to other rows with the labels of the pair, from an account."""
    return Started(learner, pair, X, budget).fit(X, pair.y)


def _fitted(learner: Any, pair: Neighbours) -> Any:
    """Fit a clone, with its own account."""
    return Started(learner, pair, pair.X, learner.budget).fit(pair.X, pair.y)


def _planned(learner: Any, pair: Neighbours) -> Outlook:
    """Return what a learner plans for the rows of a pair, by their numbers alone."""
    labels = np.asarray(pair.y, dtype=object)
    unlabelled = int(np.count_nonzero(labels == UNLABELLED))
    public = getattr(pair, "X_public", None)
    found: Outlook = learner.plan(
        len(labels) - unlabelled,
        np.shape(pair.X)[1],
        0 if public is None else len(public),
        n_unlabelled=unlabelled,
    )
    return found


LEARNER_LAWS: tuple[Callable[[Any, Neighbours], None], ...] = (
    before_fit_there_are_no_labels,
    clones_carry_nothing,
    refusals_spend_nothing,
    an_empty_budget_draws_nothing,
    refusals_ignore_the_coins,
    warnings_ignore_the_rows,
    one_row_cannot_be_seen,
    a_plan_tells_what_a_fit_does,
    a_refused_plan_is_a_refused_fit,
    extreme_prices_are_paid_or_refused,
    tables_without_contents_are_not_paid_for,
    types_of_text_decide_nothing,
    parts_promise_what_the_whole_does,
    exact_models_ignore_the_batch,
    what_is_fitted_may_be_copied,
    half_done_there_is_only_one,
    half_done_it_stays_in_its_process,
    a_selection_is_used_once,
)


def check_learner(learner: Any, pair: Neighbours) -> None:
    """Run all laws of the learners on one of them, which must cost something.

    Both tables are to be numbers that the learner takes; the laws put unusable cells in by
    themselves, because those are refused for the owner to see. The last three laws are about
    learners with ``select``: a fit of the others has no beginning without an end.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae import PrivateLearner
    >>> from cumae.checks import Neighbours, check_learner
    >>> from cumae.concepts import Thresholds
    >>> X = np.random.default_rng(0).random((200, 1))
    >>> y = X[:, 0] > 0.5
    >>> pair = Neighbours.replacing(X, y, 7, [3.5], 0, queries=X[:10])
    >>> check_learner(PrivateLearner(Thresholds(), epsilon=1.0, columns=[(0, 1)]), pair)
    """
    for law in LEARNER_LAWS:
        law(learner, pair)


def _coins(pair: Neighbours) -> list[Neighbours]:
    """Return the same tables with several coins."""
    return [replace(pair, seed=pair.seed + run) for run in range(RUNS)]


def _spoilt(pair: Neighbours) -> Iterator[NDArray[np.float64]]:
    """Yield the rows with one cell that may be unusable, in the row that differs."""
    X, other = (np.array(table, dtype=np.float64) for table in (pair.X, pair.X_other))
    same = (other == X) | (np.isnan(X) & np.isnan(other))  # cells that are missing in both
    row = int(np.argmin(same.all(axis=1)))
    for cell in SPOILT:
        spoilt = X.copy()
        spoilt[row, -1] = cell
        yield spoilt
