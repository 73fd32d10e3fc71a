"""An account refuses before anything is spent, in every order, thread and process."""

from __future__ import annotations

import copy
import decimal
import math
import os
import pickle
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from cumae import Budget, BudgetExhausted, InvalidParameter, LiveState, UnknownCost
from cumae.privacy import ZCDP, Approximate, BoundedRange, Gaussian, Pure, or_fail
from cumae.privacy.formulas import round_up

pytestmark = pytest.mark.claim("BUDGET")


class Fit(BaseEstimator):  # type: ignore[misc]
    """Anything in scikit-learn's manner that pays for each fit."""

    def __init__(self, *, budget: Budget | None = None, epsilon: float = 0.1) -> None:
        self.budget = budget
        self.epsilon = epsilon

    def fit(self) -> Fit:
        assert self.budget is not None
        self.budget.spend(Pure(self.epsilon), what="a fit")
        return self


# --- sums


def test_three_times_a_tenth_fit_into_three_tenths() -> None:
    budget = Budget(0.3)
    for _ in range(3):
        budget.spend(Pure(0.1))
    assert budget.spent == (0.3, 0.0)
    assert budget.remaining == (0.0, 0.0)
    with pytest.raises(BudgetExhausted):
        budget.spend(Pure(1e-6))


def test_a_refused_use_spends_nothing() -> None:
    budget = Budget(1.0, 1e-6)
    budget.spend(Pure(0.7), what="first")
    before = budget.entries
    with pytest.raises(BudgetExhausted, match=r"second needs epsilon=0\.4.*epsilon=0\.3"):
        budget.spend(Pure(0.4), what="second")
    with pytest.raises(BudgetExhausted, match="delta=2e-06"):
        budget.spend(Approximate(0.1, 2e-6), delta=2e-6)
    assert budget.entries == before
    assert budget.remaining == (0.3, 1e-6)
    budget.spend(Pure(0.3), what="third")
    assert [entry.what for entry in budget.entries] == ["first", "third"]


def test_epsilon_and_delta_are_both_capped() -> None:
    budget = Budget(10.0, 3e-7)
    for _ in range(3):
        budget.spend(Approximate(0.5, 1e-7), delta=1e-7)
    assert budget.spent == (1.5, 3e-7)
    with pytest.raises(BudgetExhausted):
        budget.spend(Approximate(0.5, 1e-7), delta=1e-7)
    budget.spend(Pure(1.0))


def test_a_use_without_a_finite_epsilon_is_refused() -> None:
    budget = Budget(1000.0, 1e-6)
    for cost in (Gaussian(1.0), Pure(math.inf), Approximate(0.1, 1e-9)):
        with pytest.raises(BudgetExhausted, match="no finite epsilon"):
            budget.spend(cost)
    assert budget.entries == ()


def test_nothing_costs_nothing() -> None:
    budget = Budget(0.0)
    budget.spend(Pure(0.0))
    assert budget.spent == budget.remaining == (0.0, 0.0)


def test_an_account_without_a_cap_keeps_counting() -> None:
    budget = Budget(math.inf)
    budget.spend(Pure(2.0))
    assert budget.remaining == (math.inf, 0.0)
    budget.spend(Pure(math.inf))
    assert budget.spent == (math.inf, 0.0)
    assert budget.remaining[0] in {0.0, math.inf}


@pytest.mark.parametrize("small", [1e-17, 1e-29, 1e-300])
def test_not_even_a_tiny_use_fits_into_a_full_account(small: float) -> None:
    """Sums must not round what is small to nothing."""
    budget = Budget(1.0)
    budget.spend(Pure(1.0))
    with pytest.raises(BudgetExhausted):
        budget.spend(Pure(small))


def test_the_callers_decimal_context_changes_nothing() -> None:
    """With one digit of precision, rounded down, every use of 0.06 would be free after 0.9."""
    budget = Budget(1.0)
    with decimal.localcontext(prec=1, rounding=decimal.ROUND_DOWN):
        budget.spend(Pure(0.9))
        budget.spend(Pure(0.06))
        with pytest.raises(BudgetExhausted):
            budget.spend(Pure(0.06))
    assert budget.spent == (0.96, 0.0)


@pytest.mark.parametrize("number", [np.float64(0.25), np.float64(1.0), np.int64(1), 1])
def test_numbers_of_other_types_can_be_spent(number: Any) -> None:
    budget = Budget(np.float64(1.0), np.float64(0.0))
    budget.spend(Pure(number))
    budget.spend(Pure(1 - float(number)))
    assert budget.spent == (1.0, 0.0)


def test_many_small_uses_add_up_exactly() -> None:
    budget = Budget(1.0)
    for _ in range(400):
        budget.spend(Pure(0.0025))
    assert budget.spent == (1.0, 0.0)
    with pytest.raises(BudgetExhausted):
        budget.spend(Pure(0.0025))


# --- zCDP


def test_zcdp_adds_rho() -> None:
    budget = Budget(1.0, 1e-6, accounting="zcdp")
    for cost in (Gaussian(50.0), BoundedRange(0.1), Pure(0.05), ZCDP(1e-4)):
        budget.spend(cost)
    rho = 1 / 5000 + 0.1**2 / 8 + 0.05**2 / 2 + 1e-4
    assert sum(entry.rho for entry in budget.entries) == pytest.approx(rho)
    assert budget.spent[0] == pytest.approx(ZCDP(rho).epsilon(1e-6))
    assert budget.spent[1] == 1e-6
    assert budget.remaining[0] == pytest.approx(1 - budget.spent[0])


def test_zcdp_fits_far_more_small_uses_than_a_sum() -> None:
    counts = {}
    for accounting in ("sum", "zcdp"):
        budget = Budget(1.0, 1e-6, accounting=accounting)
        counts[accounting] = 0
        while counts[accounting] < 10_000:
            try:
                budget.spend(BoundedRange(0.05))
            except BudgetExhausted:
                break
            counts[accounting] += 1
    assert counts["sum"] == 20
    rho = 0.05**2 / 8
    assert ZCDP(counts["zcdp"] * rho).epsilon(1e-6) <= 1.0 * (1 + 1e-6)
    assert ZCDP((counts["zcdp"] + 1) * rho).epsilon(1e-6) > 1.0
    assert counts["zcdp"] > 2 * counts["sum"]


def test_zcdp_never_says_that_more_than_the_cap_was_spent() -> None:
    low, high = 0.01, 1.0
    while high - low > 1e-15:  # the largest rho that fits
        middle = (low + high) / 2
        low, high = (middle, high) if ZCDP(middle).delta(1.0) <= 1e-6 else (low, middle)
    budget = Budget(1.0, 1e-6, accounting="zcdp")
    budget.spend(ZCDP(low))
    assert budget.spent[0] <= 1.0
    with pytest.raises(BudgetExhausted, match="rho="):
        budget.spend(ZCDP(low / 1000))
    assert len(budget.entries) == 1


def test_zcdp_counts_failures_towards_delta() -> None:
    budget = Budget(1.0, 1e-6, accounting="zcdp")
    budget.spend(ZCDP(1e-3, 4e-7))
    budget.spend(Approximate(0.01, 4e-7))
    with pytest.raises(BudgetExhausted):
        budget.spend(ZCDP(0.0, 4e-7))
    assert len(budget.entries) == 2


def test_zcdp_refuses_costs_without_a_rho() -> None:
    budget = Budget(1.0, 1e-6, accounting="zcdp")
    with pytest.raises(UnknownCost, match="accounting='sum'"):
        budget.spend(or_fail(Pure(0.1), 1e-9))
    with pytest.raises(BudgetExhausted):
        budget.spend(Gaussian(0.0))
    assert budget.entries == ()


# --- sharing


def test_several_fits_share_an_account() -> None:
    budget = Budget(0.25)
    Fit(budget=budget).fit()
    Fit(budget=budget).fit()
    with pytest.raises(BudgetExhausted):
        Fit(budget=budget).fit()
    assert budget.remaining == (0.05, 0.0)


def test_a_clone_shares_the_account() -> None:
    original = Fit(budget=Budget(0.25))
    copies = [clone(original), clone(clone(original)), Fit(**clone(original).get_params())]
    assert all(each.budget is original.budget for each in copies)
    for each in copies[:2]:
        each.fit()
    with pytest.raises(BudgetExhausted):
        original.fit()


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, pickle.dumps, lambda b: copy.deepcopy([{"x": b}])]
)
def test_an_account_cannot_be_copied_or_pickled(duplicate: Any) -> None:
    budget = Budget(1.0)
    with pytest.raises(LiveState, match=r"Budget\(epsilon=1\.0"):
        duplicate(budget)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(LiveState):
            pickle.dumps(budget, protocol)


@pytest.mark.parametrize("accounting", ["sum", "zcdp"])
def test_threads_together_never_exceed_the_cap(accounting: str) -> None:
    budget = Budget(1.0, 1e-6, accounting=accounting)
    cost = Pure(0.01) if accounting == "sum" else ZCDP(2e-3)
    paid: list[int] = []
    gate = threading.Barrier(8)

    def work() -> None:
        gate.wait()
        for _ in range(15):
            try:
                budget.spend(cost)
            except BudgetExhausted:
                continue
            paid.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(paid) == len(budget.entries)
    if accounting == "sum":
        assert len(paid) == 100
        assert budget.spent == (1.0, 0.0)
    else:
        assert ZCDP(len(paid) * 2e-3).delta(1.0) <= 1e-6 < ZCDP((len(paid) + 1) * 2e-3).delta(1.0)


def in_a_fork(action: Any) -> str:
    """Run the action in a forked child and return the name of what it raised."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # no test runner, no cleanup: leave as fast as possible
        name = "nothing"
        try:
            action()
        except BaseException as error:  # noqa: BLE001
            name = type(error).__name__
        os.write(write, name.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        name = answer.read()
    os.waitpid(child, 0)
    return name


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_cannot_spend() -> None:
    budget = Budget(1.0)
    assert in_a_fork(lambda: budget.spend(Pure(0.1))) == "LiveState"
    assert in_a_fork(lambda: Budget(1.0).spend(Pure(0.1))) == "nothing"
    budget.spend(Pure(1.0))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_while_another_thread_pays_is_refused_and_does_not_hang() -> None:
    """The child inherits the lock as it was, and nobody there will ever release it."""
    budget = Budget(1.0)

    def spend_with_alarm() -> None:
        import signal

        signal.alarm(5)  # kills the child if it waits for the lock
        budget.spend(Pure(0.1))

    with budget._lock:
        assert in_a_fork(spend_with_alarm) == "LiveState"


# --- bad input


@pytest.mark.parametrize("value", [math.nan, -1.0, True, "1", None], ids=repr)
def test_bad_epsilons_raise(value: Any) -> None:
    with pytest.raises(InvalidParameter) as raised:
        Budget(value)
    assert repr(value) in str(raised.value)


@pytest.mark.parametrize("value", [math.nan, -1e-9, 1.0, True, "0", None], ids=repr)
def test_bad_deltas_raise(value: Any) -> None:
    with pytest.raises(InvalidParameter) as raised:
        Budget(1.0, value)
    assert repr(value) in str(raised.value)
    budget = Budget(1.0, 0.5)
    with pytest.raises(InvalidParameter):
        budget.spend(Pure(0.1), delta=value)
    assert budget.entries == ()


def test_bad_accounting_raises() -> None:
    with pytest.raises(InvalidParameter, match="'renyi' is unknown"):
        Budget(1.0, accounting="renyi")
    with pytest.raises(InvalidParameter, match="delta=0"):
        Budget(1.0, accounting="zcdp")


@pytest.mark.parametrize("accounting", ["sum", "zcdp"])
@pytest.mark.parametrize("other", [0.1, "Pure(0.1)", None, Pure])
def test_what_is_no_cost_is_refused(other: Any, accounting: str) -> None:
    budget = Budget(1.0, 1e-6, accounting=accounting)
    with pytest.raises(UnknownCost):
        budget.spend(other)
    assert budget.entries == ()


def test_it_prints_its_cap() -> None:
    assert repr(Budget(1.0, 1e-6)) == "Budget(epsilon=1.0, delta=1e-06)"
    assert repr(Budget(1.0, 1e-6, accounting="zcdp")).endswith("accounting='zcdp')")


# --- zCDP


def test_small_rhos_are_not_lost_in_a_large_sum() -> None:
    """As floats, 1 + 1e-16 is 1 however often it is added."""
    budget = Budget(2.0, ZCDP(1.0).delta(2.0), accounting="zcdp")
    budget.spend(ZCDP(1.0))
    refused = False
    for _ in range(20_000):
        try:
            budget.spend(ZCDP(1e-16))
        except BudgetExhausted:
            refused = True
            break
    assert refused
    total = sum((Fraction(entry.rho) for entry in budget.entries), Fraction(0))
    assert ZCDP(round_up(total)).delta(2.0) <= budget.delta


def test_a_refusal_does_not_deny_what_was_spent() -> None:
    """The error itself promises nothing: what was spent is a matter of each message."""
    assert "nothing was spent" not in str(BudgetExhausted.__doc__)
