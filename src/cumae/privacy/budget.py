"""An account that several fits on the same rows can share."""

from __future__ import annotations

import math
import os
import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

from cumae.claims import claim
from cumae.errors import BudgetExhausted, InvalidParameter, LiveState, UnknownCost
from cumae.parameters import check_choice
from cumae.privacy.cost import ZCDP, Cost, check_cost
from cumae.privacy.formulas import round_up
from cumae.privacy.validation import check_delta, check_epsilon, check_nonnegative, check_rate, keep

_Exact: TypeAlias = Fraction | float  # a float if it is infinite
_Totals: TypeAlias = tuple[_Exact, _Exact, _Exact]  # epsilon, delta, rho


@dataclass(frozen=True)
class Entry:
    """One payment: what for, and how much."""

    what: str
    epsilon: float
    delta: float
    rho: float = 0.0

    def __post_init__(self) -> None:
        keep(
            self,
            epsilon=check_epsilon(self.epsilon, up=True),
            delta=check_rate(self.delta, "delta", up=True),
            rho=check_nonnegative(self.rho, "rho", up=True),
        )


@claim("BUDGET")
class Budget:
    """A cap on what several uses of the same rows may cost together.

    Each use pays before anything is drawn; what does not fit is refused whole, with
    :class:`~cumae.errors.BudgetExhausted`, and costs nothing. The user may choose the next use,
    and how much it costs, after looking at earlier results: both ways of counting stay true then.

    Parameters
    ----------
    epsilon, delta : float
        The cap.
    accounting : {"sum", "zcdp"}
        ``"sum"`` adds the epsilons and deltas of the uses, read as the decimals they print as.
        ``"zcdp"`` adds their rho, exactly, and converts the total, which is tighter for many small
        uses; it needs delta above 0 and takes only costs that have a rho.

    Notes
    -----
    Fitting again spends again, also on the same rows with the same parameters. A scikit-learn
    ``clone`` shares the account of its original, so ``GridSearchCV`` pays once for each candidate
    and fold, and once more for the final refit; parallel workers in other processes are refused,
    because an account cannot be in two places. Scores computed on private rows leak in their own
    right and are not covered by any account.

    Examples
    --------
    >>> from cumae import Budget
    >>> from cumae.privacy import Pure
    >>> budget = Budget(epsilon=0.3)
    >>> for _ in range(3):
    ...     budget.spend(Pure(0.1), what="a fit")
    >>> budget.remaining
    (0.0, 0.0)
    >>> budget.spend(Pure(0.1), what="one fit too many")
    Traceback (most recent call last):
    ...
    cumae.errors.BudgetExhausted: one fit too many needs epsilon=0.1, delta=0.0, but epsilon=0.0, \
delta=0.0 remain of Budget(epsilon=0.3, delta=0.0); ask for less, or open a larger budget before \
the rows are used.
    """

    def __init__(self, epsilon: float, delta: float = 0.0, *, accounting: str = "sum") -> None:
        self._epsilon = check_epsilon(epsilon)
        self._delta = check_delta(delta)
        self._accounting = check_choice(accounting, ("sum", "zcdp"), "accounting")
        if accounting == "zcdp" and self._delta == 0:
            raise InvalidParameter(
                "accounting='zcdp' with delta=0: a sum of rho promises nothing at delta 0; give a "
                "delta such as 1e-6, or use accounting='sum'."
            )
        self._entries: list[Entry] = []
        self._totals: _Totals = (Fraction(0), Fraction(0), Fraction(0))
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def epsilon(self) -> float:
        """The cap's epsilon."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """The cap's delta."""
        return self._delta

    @property
    def accounting(self) -> str:
        """How uses are added up; fixed when the account is opened."""
        return self._accounting

    def spend(self, cost: Cost, *, delta: float = 0.0, what: str = "a use") -> None:
        """Pay for a use, or raise and pay nothing.

        Parameters
        ----------
        cost : Cost
            What the use will cost.
        delta : float from 0 and below 1
            With ``accounting="sum"``, the delta at which the cost is read.
        what : str
            A name for the ledger and for messages.
        """
        entry = self._price(cost, check_delta(delta), what)
        if entry.epsilon == math.inf > self.epsilon:
            raise BudgetExhausted(
                f"{what} has no finite epsilon at delta={entry.delta!r}, but {self!r} has; pass "
                "spend(..., delta=...) with a share of the budget's delta, such as 1e-7."
            )
        self._check_process()  # first: in a forked process the lock may be held for ever
        with self._lock:
            totals = self._add(entry)
            if not self._fits(totals):
                need = f"epsilon={entry.epsilon!r}, delta={entry.delta!r}"
                if self.accounting == "zcdp":
                    need = f"rho={entry.rho!r}"
                left = "epsilon={!r}, delta={!r}".format(*self.remaining)
                raise BudgetExhausted(
                    f"{what} needs {need}, but {left} remain of {self!r}; ask for less, or open a "
                    "larger budget before the rows are used."
                )
            self._entries.append(entry)
            self._totals = totals

    def _price(self, cost: Cost, delta: float, what: str) -> Entry:
        check_cost(cost)
        if self.accounting == "sum":
            return Entry(what, cost.epsilon(delta), delta)
        if cost.zcdp is None:
            raise UnknownCost(
                f"{what} has no proven rho ({cost!r}); use Budget(accounting='sum') for it."
            )
        rho, xi = cost.zcdp
        return Entry(what, 0.0, xi, rho)

    def _add(self, entry: Entry) -> _Totals:
        # Decimals as printed, so that three uses at 0.1 fit into 0.3; nobody chooses a rho by hand.
        read = _decimal if self.accounting == "sum" else _exact
        epsilon, delta, rho = self._totals
        return epsilon + read(entry.epsilon), delta + read(entry.delta), rho + read(entry.rho)

    def _fits(self, totals: _Totals) -> bool:
        epsilon, delta, rho = totals
        if self.accounting == "sum":
            return epsilon <= _decimal(self.epsilon) and delta <= _decimal(self.delta)
        return delta < 1 and ZCDP(_up(rho), _up(delta)).delta(self.epsilon) <= self.delta

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything paid so far, in order."""
        return tuple(self._entries)

    @property
    def spent(self) -> tuple[float, float]:
        """(epsilon, delta) of everything so far; with zCDP, epsilon at the cap's delta."""
        epsilon, delta, rho = self._totals
        if self.accounting == "sum":
            return float(epsilon), float(delta)
        if not self._entries:
            return 0.0, 0.0
        # What was accepted fits the cap; the inverse of the curve may be a hair above it.
        return min(ZCDP(_up(rho), _up(delta)).epsilon(self.delta), self.epsilon), self.delta

    @property
    def remaining(self) -> tuple[float, float]:
        """(epsilon, delta) left; with zCDP, the difference of the two epsilons, for orientation."""
        if self.epsilon == math.inf:
            return math.inf, max(0.0, self.delta - self.spent[1])
        epsilon, delta, _ = self._totals
        if self.accounting == "sum":
            return float(_decimal(self.epsilon) - epsilon), float(_decimal(self.delta) - delta)
        return max(0.0, self.epsilon - self.spent[0]), self.delta

    def __repr__(self) -> str:
        kind = "" if self.accounting == "sum" else f", accounting={self.accounting!r}"
        return f"Budget(epsilon={self.epsilon!r}, delta={self.delta!r}{kind})"

    # One account, one place: a copy could be spent twice.

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise LiveState(
                f"{self!r} was opened in another process; spend it there, for instance with "
                "n_jobs=1 or a thread-based joblib backend."
            )

    def __sklearn_clone__(self) -> Budget:
        return self

    def _refuse(self, *_: Any) -> NoReturn:
        raise LiveState(
            f"{self!r} cannot be copied or pickled, because both copies could be spent; share the "
            "one object, in one process."
        )

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse


def _decimal(value: float) -> _Exact:
    """Return the decimal that a float prints as, exactly; infinity stays what it is."""
    return Fraction(repr(value)) if math.isfinite(value) else value


def _up(value: _Exact) -> float:
    """Return the least float that is not below an exact total."""
    return round_up(value) if isinstance(value, Fraction) else value


def _exact(value: float) -> _Exact:
    """Return the number that a float is; infinity stays what it is."""
    return Fraction(value) if math.isfinite(value) else value
