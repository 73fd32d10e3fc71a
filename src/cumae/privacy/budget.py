"""An account that several fits on the same rows can share."""

from __future__ import annotations

import math
import os
import threading
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from cumae.claims import claim
from cumae.errors import BudgetExhausted, InvalidParameter, LiveState, UnknownCost
from cumae.live import only_once
from cumae.parameters import check_choice
from cumae.privacy.account_file import AccountFile, create_file
from cumae.privacy.cost import ZCDP, Cost, check_cost
from cumae.privacy.entries import Entry
from cumae.privacy.formulas import round_up
from cumae.privacy.validation import (
    check_delta,
    check_epsilon,
    from_plain_number,
    plain_number,
)
from cumae.savers import saver

_Exact: TypeAlias = Fraction | float  # a float if it is infinite
_Totals: TypeAlias = tuple[_Exact, _Exact, _Exact]  # epsilon, delta, rho


@claim("BUDGET")
class Budget:
    """A cap on the privacy cost of several uses of the same rows together.

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

    ``save`` lets an account live in a file from then on, and ``load`` goes on with it after a
    restart.

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
        self._home: Any = None  # an AccountFile, or a ledger of cumae.store
        self._stored: dict[str, Any] = {}  # what the file held when it was last read or written
        self._lock = threading.RLock()
        self._inside = False
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
        """The way uses are added up; fixed when the account is opened."""
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
        self._take(self._price(cost, check_delta(delta), what), pay=True)

    def check(self, cost: Cost, *, delta: float = 0.0, what: str = "a use") -> None:
        """Raise what ``spend`` would raise now, and pay nothing in any case.

        Parameters
        ----------
        cost : Cost
            What the use would cost.
        delta : float from 0 and below 1
            With ``accounting="sum"``, the delta at which the cost is read.
        what : str
            A name for messages.

        Examples
        --------
        >>> from cumae import Budget
        >>> from cumae.privacy import Pure
        >>> budget = Budget(epsilon=1.0)
        >>> budget.check(Pure(0.4))
        >>> budget.remaining
        (1.0, 0.0)
        """
        self._take(self._price(cost, check_delta(delta), what), pay=False)

    @only_once
    def _take(self, entry: Entry, *, pay: bool) -> None:
        """Compare a payment with what is left, and make it."""
        if self._home is None:
            self._take_here(entry, pay=pay)
        else:
            self._home.alone(lambda: self._take_there(entry, pay=pay))

    def _take_there(self, entry: Entry, *, pay: bool) -> None:
        """Take over what other processes have paid; then compare and pay, while they wait."""
        found = self._home.read()
        if found != self._stored:
            self._adopt(Budget._from_dict(found))
            self._stored = found
        self._take_here(entry, pay=pay)

    def _take_here(self, entry: Entry, *, pay: bool) -> None:
        totals = self._with(entry)
        if not pay:
            return
        stored = self._stored
        if self._home is not None:  # first, so that no use begins whose payment may be lost
            stored = self._to_dict([*self._entries, entry])
            self._home.write(stored)
        # All at once: an interrupt comes before or after it.
        self._entries, self._totals, self._stored = [*self._entries, entry], totals, stored

    def _with(self, entry: Entry) -> _Totals:
        """Return the totals with one more payment; refuse what is not covered."""
        if entry.epsilon == math.inf > self.epsilon:
            raise BudgetExhausted(
                f"{entry.what} has no finite epsilon at delta={entry.delta!r}, but {self!r} has; "
                "pass spend(..., delta=...) with a share of the budget's delta, such as 1e-7.",
                remaining=self.remaining[0],
                asked=entry.epsilon,
            )
        totals = self._add(entry)
        if not self._fits(totals):
            need = f"epsilon={entry.epsilon!r}, delta={entry.delta!r}"
            if self.accounting == "zcdp":
                need = f"rho={entry.rho!r}"
            left = "epsilon={!r}, delta={!r}".format(*self.remaining)
            raise BudgetExhausted(
                f"{entry.what} needs {need}, but {left} remain of {self!r}; ask for less, or open "
                "a larger budget before the rows are used.",
                remaining=self.remaining[0],
                asked=entry.epsilon,
            )
        return totals

    def _adopt(self, stored: Budget) -> None:
        """Take over what other processes have paid from the file of this account."""
        known = stored._entries[: len(self._entries)]
        if repr(stored) != repr(self) or known != self._entries:
            raise LiveState(
                f"{self._home} does not hold all that {self!r} has paid; it was replaced, perhaps "
                "by an old copy. Put the right file back."
            )
        self._entries, self._totals = stored._entries, stored._totals

    @only_once
    def save(self, path: str | Path) -> None:
        """Keep the account in a file from now on, so that it survives a restart.

        Every later payment is written to the file before it counts, so the file is never behind.
        Several processes may load the same file: each payment looks at those of all others first.
        An account lives in one file only. Do not copy the file and load the copy, and do not put
        an old copy back: payments that the copy does not know of would be forgotten.

        The file is JSON, readable by its owner only. It holds the cap, and of each payment its
        name and its cost; nothing in it depends on rows.

        Parameters
        ----------
        path : str or Path
            Where to write; there must be no file yet.

        Raises
        ------
        InvalidParameter
            If there is a file already.
        LiveState
            If the account is kept in another file.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from cumae import Budget
        >>> from cumae.privacy import Pure
        >>> path = Path(tempfile.mkdtemp()) / "account.json"
        >>> budget = Budget(epsilon=1.0)
        >>> budget.save(path)
        >>> budget.spend(Pure(0.4), what="a first model")
        >>> again = Budget.load(path)
        >>> again.remaining, again.history
        ((0.6, 0.0), [{'what': 'a first model', 'epsilon': 0.4, 'delta': 0.0}])
        """
        wanted = Path(path).resolve()
        if self._home is not None:
            if str(self._home) == str(wanted):
                return  # it is up to date already
            raise LiveState(
                f"{self!r} is kept in {self._home}; a second file could be spent once more."
            )
        create_file(wanted)
        try:
            self._home = AccountFile(wanted)  # first: from here on it pays in the file alone
            self._home.write(self._to_dict(self._entries))
        except BaseException:
            if not wanted.stat().st_size:  # it never was an account
                self._home = None
                wanted.unlink()
            raise

    @only_once
    def save_to(self, path: str | Path, *, keys: str | None = None) -> None:
        """Keep the account in a file with a ledger from now on; ``cumae.open`` goes on with it.

        As with ``save``, every payment is on the disk before it counts, and several processes may
        open the file. Besides, an older copy that is put back is recognised, also after a restart,
        by a mark in a folder beside the file. It needs the packages of ``cumae[store]``.

        Parameters
        ----------
        path : str or Path
            Where to; there must be no file yet.
        keys : str, or None
            A command that keeps the mark, or ``"folder:PATH"``, instead of the folder beside
            the file.

        Raises
        ------
        InvalidParameter
            If there is a file already.
        LiveState
            If the account is kept in another file.
        StoreFailed
            If the file cannot be written. The account goes on in memory then, unless the mark may
            have been written; then it goes on in the file, or refuses.
        """
        if self._home is not None:
            raise LiveState(
                f"{self!r} is kept in {self._home}; a second file could be spent once more."
            )
        saver().save_account(self._to_dict(self._entries), path, keys, self._live_in)

    def _live_in(self, home: Any) -> None:
        """Pay in a file alone; None for an account in memory."""
        self._home = home

    @classmethod
    def kept_in(cls, home: Any) -> Budget:
        """Return the account that lives somewhere; it is read and written there.

        Parameters
        ----------
        home : object
            Where the account lives: its ``read`` returns the account as plain values.
        """
        budget = cls._from_dict(home.read())
        budget._home = home
        return budget

    @classmethod
    def load(cls, path: str | Path) -> Budget:
        """Go on with an account that ``save`` has put into a file.

        It refuses what the saved account would refuse, and writes its payments to the same file.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Budget
            The account, with all payments.

        Raises
        ------
        InvalidParameter
            If the file was not written by ``save``, or has been changed.
        OSError
            If the file cannot be read.
        """
        return cls.kept_in(AccountFile(Path(path).resolve()))

    def _to_dict(self, entries: list[Entry]) -> dict[str, Any]:
        return {
            "epsilon": plain_number(self.epsilon),
            "delta": self.delta,
            "accounting": self.accounting,
            "entries": [entry.to_dict() for entry in entries],
        }

    @classmethod
    def _from_dict(cls, plain: dict[str, Any]) -> Budget:
        try:
            epsilon, delta = from_plain_number(plain["epsilon"]), plain["delta"]
            budget = cls(epsilon, delta, accounting=plain["accounting"])
            for entry in map(Entry.from_dict, plain["entries"]):
                budget._totals = budget._add(entry)
                budget._entries.append(entry)
        except (LookupError, RecursionError, TypeError, ValueError) as error:
            raise InvalidParameter(f"a stored account cannot be read: {error}") from error
        if not budget._fits(budget._totals):
            raise InvalidParameter("a stored account has paid more than its cap; it is damaged.")
        return budget

    def _price(self, cost: Cost, delta: float, what: str) -> Entry:
        check_cost(cost)
        if self.accounting == "sum":
            return Entry(what, cost, cost.epsilon(delta), delta)
        if cost.zcdp is None:
            raise UnknownCost(
                f"{what} has no proven rho ({cost!r}); use Budget(accounting='sum') for it."
            )
        rho, xi = cost.zcdp
        return Entry(what, cost, 0.0, xi, rho)

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
        """All payments so far, in order, with their costs; of other processes, those known here."""
        return tuple(self._entries)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The payments in order, as plain values: a table for ``pandas.DataFrame``."""
        names = ("epsilon", "delta") if self.accounting == "sum" else ("rho", "delta")
        return [
            {"what": entry.what} | {name: getattr(entry, name) for name in names}
            for entry in self._entries
        ]

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

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in paid.values()) + "</tr>"
            for paid in self.history
        )
        left = "epsilon = {:g}, delta = {:g}".format(*self.remaining)
        unit = "epsilon" if self.accounting == "sum" else "rho"
        return (
            f"<div><p><b>{escape(repr(self))}</b>: {left} left</p><table><tr><th>what</th>"
            f"<th>{unit}</th><th>delta</th></tr>{rows}</table></div>"
        )

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
