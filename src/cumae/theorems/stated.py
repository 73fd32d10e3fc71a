"""Statements of theorems: once, at the function that computes what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from inspect import signature
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from cumae.theorems.values import READABLE, OrderOf

Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")

# Thresholds on 2^20 points, and a base learner that needs 1,000 rows.
TYPICAL: Mapping[str, float] = MappingProxyType(
    {
        "alpha": 0.1,
        "beta": 0.05,
        "epsilon": 1.0,
        "delta": 1e-6,
        "vc": 1,
        "bits": 20,
        "columns": 1,
        "representation": 20,
        "points": 1_000,
        "max_queries": 1_000,
        "best": 0.0,
        "n_base": 1_000,
        "n_rows": 1_000,
        "n_labelled": 100,
        "n_public": 10,
        "base_epsilon": 1.0,
    }
)
_stated: list[Theorem] = []


@dataclass(frozen=True)
class Theorem:
    """The statement of one theorem about a size: of rows, labels, points, votes or rounds.

    Parameters
    ----------
    paper : int from 1 to 4
        Number of the paper.
    name : str
        What the paper calls it, such as ``"Theorem 3.3"``.
    statement : str
        What it says, and for whom.
    formula : str
        The size, in terms of the parameters of ``function``.
    exact : bool
        Whether every constant is printed, in the theorem or in what proves it. Otherwise
        ``function`` returns an ``OrderOf``, or several of them.
    function : callable
        Computes the size.
    instead : mapping from str to float
        Where its example differs from ``TYPICAL``.

    Examples
    --------
    >>> from cumae.theorems import THEOREMS
    >>> second = THEOREMS[1]
    >>> second.citation, second.exact
    ('Theorem 3.3 of paper 1', False)
    >>> print(second.function(alpha=0.1, beta=0.05, epsilon=0.5, vc=1, bits=20).labelled)
    order of 4,700 rows (the paper does not print the constant)
    """

    paper: int
    name: str
    statement: str
    formula: str
    exact: bool
    function: Callable[..., Any]
    instead: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def citation(self) -> str:
        """Its name with the number of the paper."""
        return f"{self.name} of paper {self.paper}"

    @property
    def example(self) -> dict[str, float]:
        """The parameters of the example: the typical ones, apart from ``instead``."""
        names = signature(self.function).parameters
        return {name: {**TYPICAL, **self.instead}[name] for name in names}

    def __str__(self) -> str:
        changed = ", ".join(f"{name} {value:.3g}" for name, value in self.instead.items())
        where = f" ({changed})" if changed else ""
        found = size_text(self.function(**self.example))
        module = self.function.__module__.removeprefix("cumae.theorems.")
        return (
            f"{self.statement} Size: {'' if self.exact else 'order of '}{self.formula}. "
            f"Example{where}: {found}. `{module}.{self.function.__name__}`"
        )


def size_text(size: object) -> str:
    """Return a size, or several of them, as a short text.

    Examples
    --------
    >>> from cumae.theorems.stated import size_text
    >>> from cumae.theorems.values import SplitRows
    >>> size_text(SplitRows(1_000, 20_000)), size_text(6.9)
    ('1,000 labelled, 20,000 unlabelled', '6.9')
    """
    if isinstance(size, OrderOf):
        return size.short
    if hasattr(size, "n_rows"):
        return size_text(size.n_rows)
    if isinstance(size, int):
        return f"{size:,}" if size < READABLE else f"{size:.1e}"
    if isinstance(size, float):
        return f"{size:.2g}"
    return ", ".join(
        f"{size_text(getattr(size, part.name)).removesuffix(' rows').removesuffix(' points')} "
        f"{part.name}"
        for part in fields(size)  # type: ignore[arg-type]
    )


def theorem(
    paper: int,
    name: str,
    statement: str,
    formula: str,
    *,
    exact: bool,
    instead: Mapping[str, float] = MappingProxyType({}),
) -> Callable[[Callable[Arguments, Found]], Callable[Arguments, Found]]:
    """Return what states a theorem at the function that computes its size.

    Parameters
    ----------
    paper, name, statement, formula, exact, instead : object
        As in :class:`Theorem`.

    Examples
    --------
    >>> from cumae.theorems import THEOREMS
    >>> from cumae.theorems.vc import log_dichotomies
    >>> [one.name for one in THEOREMS if one.function is log_dichotomies]
    ['Theorem B.2']
    """

    def state(function: Callable[Arguments, Found]) -> Callable[Arguments, Found]:
        _stated.append(Theorem(paper, name, statement, formula, exact, function, instead))
        return function

    return state


def stated() -> tuple[Theorem, ...]:
    """Return all theorems of the modules that were imported, in the order of the papers."""
    return tuple(sorted(_stated, key=_place))


def _place(one: Theorem) -> tuple[int, bool, str, int]:
    """Return where a theorem stands: appendices, which have letters, come last."""
    section, _, number = one.name.split()[-1].rpartition(".")
    return one.paper, section.isalpha(), section, int(number)
