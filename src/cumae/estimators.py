"""The shared part of all estimators of this package: clones, and how a notebook shows them.

Searches such as ``GridSearchCV`` fit many clones of one estimator, and each fit pays. So clones
remember which estimator they come from, and the second one that is about to pay warns.
"""

from __future__ import annotations

import math
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar
from weakref import WeakKeyDictionary

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import metaestimators

from cumae.claims import claim
from cumae.errors import EveryFitPays, WeakPrivacy, warn
from cumae.outlook import Outlook
from cumae.privacy import Guarantee
from cumae.quiet import is_quiet
from cumae.remembering import remembered

LARGE_EPSILON = 10.0  # from here on a promise says little
Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass
class Origin:
    """The facts that an estimator and all clones of it share; none is about parameters or rows."""

    paying: int = 0  # clones that have paid
    has_warned: bool = False  # whether one of them has warned that its guarantee is void


@dataclass
class Clone:
    """The facts about one clone."""

    origin: Origin
    paid: bool = False


# Beside the estimators and not in them, so that clones carry parameters only, and pickles nothing.
_ORIGINS: WeakKeyDictionary[Any, Origin] = WeakKeyDictionary()
_CLONES: WeakKeyDictionary[Any, Clone] = WeakKeyDictionary()
_LOCK = threading.Lock()
_WITHIN: ContextVar[bool] = ContextVar("within", default=False)
_INSIDE: ContextVar[bool] = ContextVar("inside", default=False)


def own_clone(model: Any, *, safe: bool = True) -> Any:
    """Return a clone for work inside of another estimator, whose payment covers it.

    Parameters
    ----------
    model : object
        Any estimator.
    safe : bool
        As in ``sklearn.base.clone``.

    Returns
    -------
    object
        A clone; fits of several of them do not warn.
    """
    with _within():
        return clone(model, safe=safe)


@contextmanager
def _within() -> Iterator[None]:
    token = _WITHIN.set(True)
    try:
        yield
    finally:
        _WITHIN.reset(token)


@contextmanager
def inside() -> Iterator[None]:
    """Run a fit that is part of another one, which has looked at all rows and has paid."""
    token = _INSIDE.set(True)
    try:
        yield
    finally:
        _INSIDE.reset(token)


def is_inside() -> bool:
    """Tell whether a fit is part of another one."""
    return _INSIDE.get()


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """Let an estimator have a method only if a check of it says so.

    This is the function of scikit-learn's name, which has no types.

    Parameters
    ----------
    check : callable
        Gets the estimator.
    """
    found: Callable[[Method], Method] = metaestimators.available_if(check)
    return found


@remembered(500)
def _parameter_names(kind: type, init: Callable[..., None]) -> tuple[str, ...]:
    # Every clone asks, and scikit-learn reads the signature each time.
    del init  # on which the names depend
    return tuple(BaseEstimator._get_param_names.__func__(kind))


class PrivateEstimator(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """The base of all learners and predictors."""

    guarantee_: Guarantee

    hands_on: ClassVar[bool] = False  # whether one model inside gets the rows, and pays

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return list(_parameter_names(cls, cls.__init__))

    @abstractmethod
    def check_contents(self, X: Any) -> None:
        """Refuse columns of which nothing is left once they are read, before anything is paid.

        Parameters
        ----------
        X : table
            The private rows.
        """

    @abstractmethod
    def check_queries(self, X: Any, queries: Any) -> None:
        """Refuse queries that cannot be read after a fit to ``X``, before anything is paid.

        Parameters
        ----------
        X : table
            The rows of ``fit``: of them nothing but names, types and width is looked at.
        queries : table
            What will be asked.
        """

    @abstractmethod
    def plan(self, n_samples: int, n_features: int, n_public: int = 0) -> Outlook:
        """Tell what ``fit`` would do with so many rows, without any row and without spending."""

    def __sklearn_clone__(self) -> Self:
        copy: Self = super().__sklearn_clone__()
        if not _WITHIN.get():
            with _LOCK:
                _ORIGINS[copy] = _ORIGINS.setdefault(self, Origin())
                _CLONES[copy] = Clone(_ORIGINS[copy])
        return copy

    def _repr_html_inner(self) -> str:
        return self._with_promise(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._with_promise(bundle["text/html"])
        return bundle

    def _with_promise(self, html: str) -> str:
        if not hasattr(self, "guarantee_"):
            return html
        return f"<div>{html}{self.guarantee_.to_html()}</div>"


def warn_if_clones_pay(estimator: PrivateEstimator, epsilon: float) -> None:
    """Warn if this is the second clone of one estimator that is about to pay.

    Parameters
    ----------
    estimator : PrivateEstimator
        What is being fitted.
    epsilon : float
        What the fit is going to cost; an infinite one promises nothing, so nothing is paid.
    """
    if epsilon == math.inf or is_quiet():
        return
    with _LOCK:
        known = _CLONES.get(estimator)
        if known is None or known.paid:
            return
        known.paid = True
        known.origin.paying += 1
        if known.origin.paying != 2:
            return
    warn(
        f"a second clone of the same {type(estimator).__name__} is fitted, as GridSearchCV and "
        "cross_val_score do. Every fit pays: k fits to the same rows cost k times epsilon and "
        "delta. Give the original a Budget, which all clones share and which refuses what it does "
        "not cover, or search on public rows. After a search guarantee_ is void: scores chose.",
        EveryFitPays,
    )


def warn_if_weak(epsilon: float, delta: float, n_rows: int) -> None:
    """Warn of an epsilon or a delta that hardly protects anybody; the number of rows is public.

    A fit that is part of another one, or of a shard, leaves that to the whole.

    Parameters
    ----------
    epsilon, delta : float
        What is asked for; an infinite epsilon promises nothing, and says so itself.
    n_rows : int
        Private rows.
    """
    if is_inside() or is_quiet() or epsilon == math.inf:
        return
    if epsilon > LARGE_EPSILON:
        warn(
            f"epsilon = {epsilon:g} hardly protects anybody: one row may make an outcome "
            f"exp({epsilon:g}) times as likely. 1 is usual.",
            WeakPrivacy,
        )
    if n_rows and delta * n_rows >= 1:
        safe = 10.0 ** -math.ceil(math.log10(n_rows) + 1)  # a tenth of 1 / n_rows, or less
        warn(
            f"delta = {delta:g} is not below 1 divided by the number of rows ({n_rows:,}): so "
            f"large a delta would allow to show somebody's row as it is. Give {safe:.0e}, say.",
            WeakPrivacy,
        )


def warns_first(estimator: PrivateEstimator) -> bool:
    """Tell whether no clone of the same estimator has warned yet that its guarantee is void.

    Parameters
    ----------
    estimator : PrivateEstimator
        What is about to warn. One that is no clone warns at each fit.
    """
    with _LOCK:
        known = _CLONES.get(estimator)
        if known is None:
            return True
        first, known.origin.has_warned = not known.origin.has_warned, True
        return first


@claim("REDUCE", "OVR", "ITER", "ACTIVE")
def restate(whole: PrivateEstimator, guarantee: Guarantee) -> None:
    """Let a fitted estimator, and all fitted ones inside of it, promise the same.

    All of them are published together. Alone, one inside would promise less than was spent, or what
    holds for the rows that it saw only.
    """
    whole.guarantee_ = guarantee
    for name, value in vars(whole).items():
        if name.endswith("_"):
            for part in value if isinstance(value, list | tuple) else [value]:
                if isinstance(part, PrivateEstimator) and hasattr(part, "guarantee_"):
                    restate(part, guarantee)
