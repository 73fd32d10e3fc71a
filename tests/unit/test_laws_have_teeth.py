"""The laws have teeth: each fault that predictors once had, planted again, is caught by one."""

from __future__ import annotations

import math
import threading
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from threadpoolctl import threadpool_info, threadpool_limits

from cumae import EverlastingPredictor, InvalidParameter, quiet
from cumae.checks.failures import Panic
from cumae.checks.predictors import (
    batches_do_not_matter,
    calls_do_not_meet,
    failures_cannot_be_seen,
    models_see_one_shape,
    queries_do_not_meet,
    refusals_spend_nothing,
    shards_learn,
)
from cumae.checks.shards import demand
from cumae.data import lenient
from cumae.ensembles import trial
from cumae.ensembles.trainer import train_shards
from cumae.estimators import own_clone
from cumae.learners import PrivateBooster
from cumae.predictors import base, queries
from cumae.predictors.answering.calls import Asked
from cumae.predictors.everlasting import fitting
from cumae.predictors.everlasting import predictor as everlasting
from cumae.predictors.everlasting.prior import Prior
from cumae.threads import one_core
from tests.kinds import KINDS
from tests.laws import ALL, PREDICTORS, THREE, UNIT, Fragile, X, Y, oracle
from tests.plants import (
    ask_the_prior_about_a_batch,
    halve_failing_batches,
    leave_threads_alone,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows"),
    pytest.mark.filterwarnings("ignore::cumae.errors.AnswersDrift"),
]


def blas_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def caught(law: Any, name: str, **changes: Any) -> bool:
    predictor, pair = PREDICTORS[name]
    try:
        law(own_clone(predictor).set_params(**changes), pair)
    except Exception:  # noqa: BLE001 - an error that reaches the caller is a fault, too
        return True
    return False


def test_halving_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = oracle(Fragile(), epsilon=math.inf)
    queries_do_not_meet(predictor, THREE)
    batches_do_not_matter(predictor, THREE)
    halve_failing_batches(monkeypatch)
    monkeypatch.setattr(trial, "_answers_row_by_row", lambda *_: True)
    with pytest.raises(AssertionError, match="what another query holds"):
        queries_do_not_meet(predictor, THREE)
    with pytest.raises(AssertionError, match="the batch that its query came in"):
        batches_do_not_matter(predictor, THREE)


@pytest.mark.parametrize("name", ["logarithms", "words and memo", "marks and memo"])
def test_halving_is_caught_with_every_kind_of_estimator(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    halve_failing_batches(monkeypatch)
    with pytest.raises(AssertionError, match="the shape of a table depends"):
        models_see_one_shape(*PREDICTORS[f"everlasting, {name}"])


class Shaped(PrivateBooster):
    """A prior that leans to another class in tables of another shape, as rounding may do."""

    def predict_proba(self, X: Any) -> Any:
        lean = 0.4 if len(X) % 2 else -0.4
        return np.tile([0.5 - lean, 0.5 + lean], (len(X), 1))


def test_a_prior_that_is_asked_about_a_batch_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = oracle(None, prior=Shaped(), prior_share=0.5, columns=KINDS, shard_size=8)
    batches_do_not_matter(predictor, ALL)
    ask_the_prior_about_a_batch(monkeypatch)
    with pytest.raises(AssertionError, match="the batch that its query came in"):
        batches_do_not_matter(predictor, ALL)


@pytest.mark.parametrize("name", ["no weights", "marks and memo", "prior and logarithms"])
def test_failures_that_pass_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what is no ``Exception`` is no failure, or an error of memory is none."""
    for kinds in (Exception, (Panic, SystemExit, GeneratorExit, ValueError)):
        monkeypatch.setattr(quiet, "is_failure", lambda kind, kinds=kinds: issubclass(kind, kinds))
        assert caught(failures_cannot_be_seen, f"everlasting, {name}")


def trial_rows_do_not_meet(predictor: EverlastingPredictor, odd: Any) -> None:
    """Of the rows that choose the trust, none changes what is computed for another one."""
    seen: list[tuple[Any, ...]] = []
    choose, release = fitting.choose_trust, Prior.choose_trust

    def watched(training: Any, places: Any, *others: Any) -> float:
        seen.append((places,))
        return float(choose(training, places, *others))

    def computed(self: Any, noisy: Any, n_shards: int, shares: Any, *others: Any) -> float:
        seen[-1] = (*seen[-1], noisy, shares)
        return float(release(self, noisy, n_shards, shares, *others))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(everlasting, "choose_trust", watched)
        patch.setattr(Prior, "choose_trust", computed)
        one = own_clone(predictor).set_params(random_state=5).fit(X, Y)
        other = X.copy()
        other[seen[0][0][-1]] = odd  # the last of them
        own_clone(predictor).set_params(random_state=5).fit(other, Y)
    assert one.trust_ is not None
    (places, noisy, shares), (_, noisy_other, shares_other) = seen
    assert len(places) > 5
    same = np.array_equal(noisy[:-1], noisy_other[:-1])
    same &= np.array_equal(shares[:-1], shares_other[:-1])
    demand(same, "a row that chooses the trust changes what is computed for others")


def test_choosing_the_trust_in_one_batch_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = oracle(Fragile(), prior=PrivateBooster(columns=UNIT))
    trial_rows_do_not_meet(predictor, [1e12, 0.5, 0.5])
    halve_failing_batches(monkeypatch)
    monkeypatch.setattr(trial, "_answers_row_by_row", lambda *_: True)
    with pytest.raises(AssertionError, match="a row that chooses the trust"):
        trial_rows_do_not_meet(predictor, [1e12, 0.5, 0.5])


class Counting(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Writes down how many threads linear algebra may use while it is asked."""

    threads: ClassVar[set[int]] = set()

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Counting:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        Counting.threads |= blas_threads()
        return (X[:, 0] > 0.4).astype(int)


def threads_while_asked(monkeypatch: pytest.MonkeyPatch, *, training: bool) -> set[int]:
    """Return the threads that models see; others may train in the background meanwhile."""
    inside, leave = threading.Event(), threading.Event()

    def slowly(*args: Any, **options: Any) -> Any:
        with one_core():  # as any training does
            inside.set()
            leave.wait(60)
        return train_shards(*args, **options)

    with threadpool_limits(2, user_api="blas"), monkeypatch.context() as patch:
        one = oracle(Counting(), late=0.5, background=True).fit(X, Y)
        if training:
            patch.setattr("cumae.predictors.recipes.train_shards", slowly)
            one.predict(X[: len(X) // 2])
            assert inside.wait(60)
        Counting.threads.clear()
        one.predict(X[:3])
        found = set(Counting.threads)
        leave.set()
        if training:
            one.predict(X[:120])  # waits for the training
            assert one.phase_ == 2
    return found


def test_threads_that_others_decide_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    for training in (False, True):
        assert threads_while_asked(monkeypatch, training=training) == {1}
    leave_threads_alone(monkeypatch)
    assert threads_while_asked(monkeypatch, training=False) == {2}
    assert threads_while_asked(monkeypatch, training=True) == {1}


def test_lists_that_are_read_as_a_whole_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def whole(X: Any, width: int) -> Any:
        flat = width == 1 and not any(isinstance(row, list | tuple | np.ndarray) for row in X)
        rows = [[row] for row in X] if flat else list(X)
        fits = [isinstance(row, list | tuple) and len(row) == width for row in rows]
        if not any(fits):
            return X
        nothing = [math.nan] * width
        return np.array([row if fit else nothing for row, fit in zip(rows, fits, strict=True)])

    monkeypatch.setattr(queries, "read_one_by_one", whole)
    assert caught(queries_do_not_meet, "everlasting, thresholds")


def test_joined_calls_that_change_places_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    joined = Asked.joined

    def turned(parts: Any) -> Any:
        return joined(parts[::-1])

    assert not caught(calls_do_not_meet, "everlasting, thresholds")
    monkeypatch.setattr(Asked, "joined", turned)
    assert caught(calls_do_not_meet, "everlasting, thresholds")


def test_a_list_of_another_width_that_is_answered_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lenient, "_common_width", lambda _: None)
    assert caught(refusals_spend_nothing, "everlasting, thresholds")


def test_inferred_types_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def inferred(names: Any, columns: Any) -> Any:
        return pd.DataFrame(dict(zip(names, map(list, columns), strict=True)))

    monkeypatch.setattr(lenient, "frame_of", inferred)
    monkeypatch.setattr("cumae.ensembles.blocks.frame_of", inferred)
    halve_failing_batches(monkeypatch)
    assert caught(
        queries_do_not_meet, "everlasting, words and memo", memoize=False, epsilon=math.inf
    )


def test_keys_of_equal_rows_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def equal(table: Any) -> list[bytes]:
        rows = table.to_numpy(dtype=object)
        return [repr([0 if cell == 0 else cell for cell in row]).encode() for row in rows]

    monkeypatch.setattr(everlasting, "row_keys", equal)
    assert caught(queries_do_not_meet, "everlasting, words and memo", epsilon=0.03)


def test_a_trial_of_another_trainer_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "choose_weighted", lambda trainer, *_: trainer)
    predictor, pair = PREDICTORS["everlasting, no weights"]
    with pytest.raises(InvalidParameter, match="no sample weights"):
        shards_learn(predictor, pair)  # the trial tries what will run
    monkeypatch.setattr(base, "try_out", lambda *_: True)  # the fault: it tried something else
    with pytest.raises(AssertionError, match="every training row got the same answer"):
        shards_learn(predictor, pair)
