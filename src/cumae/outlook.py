"""The forecast of a fit with so many rows: an ``Outlook``, made without any row."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from html import escape
from types import MappingProxyType
from typing import Any, Generic, Self, TypeVar

from cumae.effort import Effort
from cumae.errors import (
    AnswersDrift,
    ConstantAnswers,
    CumaeError,
    EveryFitPays,
    GuaranteeVoid,
    TooFewRows,
)
from cumae.parameters import check_count
from cumae.privacy import Guarantee
from cumae.privacy.plans import Plan
from cumae.privacy.validation import plain_number

Fact = int | float | str
Steps = TypeVar("Steps")
# What a fit warns of.
OURS = (TooFewRows, ConstantAnswers, AnswersDrift, EveryFitPays, GuaranteeVoid)


@dataclass(frozen=True, kw_only=True)
class FitPlan(Plan, Generic[Steps]):
    """A plan with all that was decided with it, from public numbers, before a fit pays.

    Parameters
    ----------
    steps : object
        The steps of the fit; each class has a type of its own for them.
    facts : mapping from str to int, float or str
        Public numbers, by the names of the attributes that show them.
    work : tuple of Effort, or None
        The parts of the fit, for the time and memory that they take; None if that is not known.
    """

    steps: Steps
    facts: Mapping[str, Fact] = field(default_factory=dict)
    work: tuple[Effort, ...] | None = None

    @classmethod
    def of(
        cls,
        plan: Plan,
        steps: Steps,
        facts: Mapping[str, Fact],
        work: tuple[Effort, ...] | None,
    ) -> Self:
        """Return a plan together with all that was decided with it."""
        price: dict[str, Any] = {part.name: getattr(plan, part.name) for part in fields(Plan)}
        return cls(**price, steps=steps, facts=facts, work=work)


@dataclass(frozen=True)
class Outlook:
    """The forecast of a fit, its promise and its effort; no row was read, and nothing was spent.

    Parameters
    ----------
    estimator : str
        Class of the estimator.
    can_run : bool
        Whether ``fit`` would take such a table.
    reasons : tuple of str
        Why it would not, in the words of the error; empty if it would.
    guarantee : Guarantee, or None
        What the fitted estimator would show as ``guarantee_``. None if it cannot run, or if an
        object of another library tells only after its fit.
    facts : mapping from str to int, float or str
        Public numbers, such as ``n_shards``, ``noise_per_vote`` or ``n_steps``. A fact has the
        name of the attribute that shows it after a fit, where there is one, without the underscore
        at its end.
    seconds : float, or None
        About how long ``fit`` takes on one core; None if that is not known.
    memory : int, or None
        About how many bytes it needs beside the table that it is given; None if that is not known.
    warnings : tuple of str
        What ``fit`` would warn of.

    Examples
    --------
    >>> from cumae import PrivateLearner
    >>> from cumae.concepts import Thresholds
    >>> learner = PrivateLearner(Thresholds(), epsilon=1.0, columns=[(0, 100)])
    >>> outlook = learner.plan(1000, 1)
    >>> outlook.can_run, outlook.guarantee.epsilon, outlook.facts["n_candidates"]
    (True, 1.0, 128)
    >>> PrivateLearner(Thresholds(), epsilon=-1.0).plan(1000, 1).reasons
    ('epsilon=-1.0 is no float of 0 or more.',)
    """

    estimator: str
    can_run: bool
    reasons: tuple[str, ...] = ()
    guarantee: Guarantee | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    seconds: float | None = None
    memory: int | None = None
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # A copy that nobody can change, so that the whole stays as it was made.
        object.__setattr__(self, "facts", MappingProxyType(dict(self.facts)))

    @classmethod
    def of(
        cls,
        estimator: str,
        guarantee: Guarantee | None,
        facts: Mapping[str, Fact],
        effort: tuple[float | None, int | None],
        warnings: tuple[str, ...] = (),
    ) -> Outlook:
        """Return the outlook of a fit that can run.

        Parameters
        ----------
        estimator, guarantee, facts, warnings : object
            As above.
        effort : tuple of a float, or None, and an int, or None
            Seconds and memory.
        """
        return cls(estimator, True, (), guarantee, facts, *effort, warnings)  # noqa: FBT003

    def __reduce__(self) -> Any:
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return _rebuilt, (values | {"facts": dict(self.facts)},)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        promised = None if self.guarantee is None else self.guarantee.to_dict()
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return values | {
            "reasons": list(self.reasons),
            "guarantee": promised,
            "facts": {name: _plain(fact) for name, fact in self.facts.items()},
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        return self.described()

    def described(self, *, full: bool = False) -> str:
        """Return it as a few plain lines; ``full`` lists assumptions and claims of the promise."""
        if not self.can_run:
            lines = [f"{self.estimator} cannot be fitted to such a table:"]
            return "\n".join([*lines, *(f"- {reason}" for reason in self.reasons)])
        lines = [f"{self.estimator} can be fitted to such a table."]
        if self.guarantee is not None:
            promise = self.guarantee.full() if full else str(self.guarantee)
            lines.append("Promise: " + promise.replace("\n", "\n         "))
        if self.facts:
            facts = ", ".join(f"{name} = {_shown(fact)}" for name, fact in self.facts.items())
            lines.append(f"Facts: {facts}.")
        if self.seconds is not None:
            lines.append(f"Time: about {_duration(self.seconds)} on one core.")
        if self.memory is not None:
            lines.append(f"Memory: about {_size(self.memory)} beside the table.")
        return "\n".join([*lines, *(f"Warning: {text}" for text in self.warnings)])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _rebuilt(values: dict[str, Any]) -> Outlook:
    """Make it again from its fields: what keeps facts from being changed cannot be pickled."""
    return Outlook(**values)


def _plain(fact: Fact) -> Any:
    return plain_number(fact) if isinstance(fact, float) else fact


def _shown(fact: Fact) -> str:
    if isinstance(fact, float):
        return f"{fact:.4g}"
    return f"{fact:,}" if isinstance(fact, int) else repr(fact)


def _duration(seconds: float) -> str:
    for size, name in ((3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {name}"
    return f"{seconds:.0f} seconds" if seconds >= 10 else f"{seconds:.1g} s"


def _size(memory: int) -> str:
    if memory >= 1e9:
        return f"{memory / 1e9:,.1f} GB"
    return f"{memory / 1e6:.0f} MB" if memory >= 1e7 else f"{memory / 1e6:.1g} MB"


def foresee(estimator: str, decide: Callable[[], Outlook]) -> Outlook:
    """Return what a decision comes to: errors become reasons, and warnings are kept as text.

    Parameters
    ----------
    estimator : str
        Class of the estimator.
    decide : callable
        Decides as ``fit`` does, before it pays, and returns the outlook or raises.

    Returns
    -------
    Outlook
        With reasons if it was refused.
    """
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found = decide()
        except CumaeError as error:
            found = Outlook(estimator, can_run=False, reasons=(str(error),))
    warned = [str(warning.message) for warning in heard if issubclass(warning.category, OURS)]
    return replace(found, warnings=tuple(dict.fromkeys((*found.warnings, *warned))))


def check_table_counts(
    n_samples: int, n_features: int, n_public: int = 0, n_unlabelled: int = 0
) -> tuple[int, int, int, int]:
    """Return the numbers that describe a table, if they are whole and not negative.

    Parameters
    ----------
    n_samples, n_features, n_public, n_unlabelled : int
        What ``plan`` was given.
    """
    return (
        check_count(n_samples, "n_samples"),
        check_count(n_features, "n_features", least=1),
        check_count(n_public, "n_public"),
        check_count(n_unlabelled, "n_unlabelled"),
    )


def public_facts(shown: Mapping[str, Any]) -> dict[str, Fact]:
    """Return public attributes as facts: those that are a single number or text.

    Parameters
    ----------
    shown : mapping from str to object
        Attributes by their names, which end in an underscore.

    Examples
    --------
    >>> from cumae.outlook import public_facts
    >>> public_facts({"n_shards_": 80, "stages_": []})
    {'n_shards': 80}
    """
    single = {name: value for name, value in shown.items() if isinstance(value, int | float | str)}
    return {name.removesuffix("_"): value for name, value in single.items()}
