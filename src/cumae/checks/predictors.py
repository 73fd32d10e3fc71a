"""Laws of the predictors: what a caller may see, and what a call may spend."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cumae.checks.shards import Neighbours, demand
from cumae.errors import BudgetExhausted, CumaeError, InvalidData, LiveState
from cumae.predictors.rows import row_source
from cumae.randomness import SeededSource


def fitted(predictor: Any, pair: Neighbours) -> Any:
    """Fit a clone with the coins of the pair."""
    return _fit(predictor, pair, pair.X, pair.y)


def an_unfitted_one_refuses(predictor: Any, pair: Neighbours) -> None:
    """Before fit there are no answers."""
    _raises(NotFittedError, lambda: clone(predictor).predict(pair.queries))


def clones_carry_no_budget(predictor: Any, pair: Neighbours) -> None:
    """A clone of a fitted predictor is unfitted: it has neither models nor answers."""
    copied = clone(fitted(predictor, pair))
    _raises(NotFittedError, lambda: copied.predict(pair.queries))
    demand(not any(name.endswith("_") for name in vars(copied)), "a clone kept fitted state")


def there_is_only_one(predictor: Any, pair: Neighbours) -> None:
    """A fitted predictor can be neither copied nor pickled."""
    one = fitted(predictor, pair)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        _raises(LiveState, partial(duplicate, one))


def refusals_spend_nothing(predictor: Any, pair: Neighbours) -> None:
    """A refused call leaves as many answers as before, and draws nothing."""
    one = fitted(predictor, pair)
    drawn = _Counting(one)
    before, queries = one.remaining_, np.asarray(pair.queries, dtype=float)
    missing = queries.copy()
    missing[-1, -1] = np.nan
    _raises(InvalidData, lambda: one.predict(missing))
    _raises(InvalidData, lambda: one.predict(np.column_stack([queries, queries])))
    if np.isfinite(before):
        many = np.resize(queries, (int(before) + 1, queries.shape[1]))
        _raises(BudgetExhausted, lambda: one.predict(many))
    demand(one.remaining_ == before, "a refused call was counted")
    demand(drawn.words_drawn == 0, "a refused call drew random numbers")


def answers_are_counted(predictor: Any, pair: Neighbours) -> None:
    """As many answers are gone as were given, and each is one of the declared classes or -1."""
    one = fitted(predictor, pair)
    before = one.remaining_
    answers = one.predict(pair.queries)
    demand(len(answers) == row_source(pair.queries).n_rows, "a query got no answer")
    known = [*pair.classes, -1]
    demand(all(answer in known for answer in answers.tolist()), "an answer is no declared class")
    if np.isfinite(before):
        demand(one.remaining_ in (before - len(answers), 0), "answers were not counted")


def one_row_cannot_be_seen(predictor: Any, pair: Neighbours) -> None:
    """Unusable rows raise nothing, and all public facts of the fit stay the same."""
    one, other = fitted(predictor, pair), _fit(predictor, pair, pair.X_other, pair.y_other)
    for name in ("guarantee_", "remaining_", "n_shards_", "mechanism_", "why_", "noise_per_vote_"):
        here, there = getattr(one, name, None), getattr(other, name, None)
        demand(here == there, f"{name} depends on a row")


PREDICTOR_LAWS: tuple[Callable[[Any, Neighbours], None], ...] = (
    an_unfitted_one_refuses,
    clones_carry_no_budget,
    there_is_only_one,
    refusals_spend_nothing,
    answers_are_counted,
    one_row_cannot_be_seen,
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


def _fit(predictor: Any, pair: Neighbours, X: Any, y: Any) -> Any:
    one = clone(predictor)
    return one.set_params(random_state=SeededSource(pair.seed), budget=None).fit(X, y)


class _Counting:
    """Counts the random words that a fitted predictor draws from its source."""

    def __init__(self, predictor: Any) -> None:
        self.words_drawn = 0
        source = predictor.random_state
        draw = source.words

        def words(count: int) -> Any:
            self.words_drawn += count
            return draw(count)

        source.words = words


def _raises(kind: type[Exception], call: Callable[[], Any]) -> None:
    try:
        call()
    except kind:
        return
    except CumaeError as error:
        raise AssertionError(f"{type(error).__name__} instead of {kind.__name__}") from error
    raise AssertionError(f"{kind.__name__} was expected, and nothing was raised")
