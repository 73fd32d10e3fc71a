"""A privacy guarantee as a value that prints as two plain lines."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from html import escape
from typing import Any

from cumae.errors import InvalidParameter
from cumae.privacy.cost import Cost, check_cost
from cumae.privacy.validation import (
    check_delta,
    check_epsilon,
    check_nonnegative,
    from_plain_number,
    keep,
    plain_number,
)

REPLACE_ONE = "one row is replaced by any other, and the number of rows is public"
RELEASED = "what is released and every use of it, for ever"
MODEL = "the published model and every use of it, for ever"
ENDLESS = "all answers together, for ever"
VOID_BECAUSE = "void, because "  # how the assumption begins that says why a promise is void


def up_to(answers: int) -> str:
    """Return what the promise of a predictor covers that ends after so many answers."""
    return f"all answers together, {answers:,} at most"


@dataclass(frozen=True)
class Guarantee:
    """The promise of a fitted estimator or a mechanism, computed from what really ran.

    Parameters
    ----------
    epsilon, delta : float
        The promise: for neighbours D and D' and every set F of outcomes,
        P(outcome on D in F) <= exp(epsilon) P(outcome on D' in F) + delta.
    protects : str
        The thing that is protected, such as ``"one labelled training row"``.
    relation : str
        The difference between two inputs that are neighbours.
    claims : tuple of str
        Ids of the proofs in ``proofs/`` that it rests on.
    assumptions : tuple of str
        Facts outside the code on which the promise rests.
    rho : float or None
        The same promise as rho-zCDP, where there is one.
    void : bool
        True if ``random_state`` was given, which voids the promise, or for another reason, which
        the assumptions name.
    covers : str
        The releases that the promise holds for, and for how long, such as ``"all answers
        together, for ever"``.

    Examples
    --------
    >>> from cumae.privacy import Guarantee, Pure
    >>> promised = Guarantee.of(Pure(1.0), protects="one vote", claims=("EXP",))
    >>> print(promised)
    (epsilon = 1, delta = 0)-differential privacy for one vote.
    It covers what is released and every use of it, for ever.
    >>> print(promised.full())
    (epsilon = 1, delta = 0)-differential privacy for one vote.
    It covers what is released and every use of it, for ever.
    As zero-concentrated differential privacy: rho = 0.5.
    Two tables are neighbours if one row is replaced by any other, and the number of rows is public.
    Assumptions: none.
    Claims: EXP.
    """

    epsilon: float
    delta: float
    protects: str
    relation: str
    claims: tuple[str, ...]
    assumptions: tuple[str, ...] = ()
    rho: float | None = None
    void: bool = False
    covers: str = RELEASED

    def __post_init__(self) -> None:
        # Stored as plain numbers, so that JSON can hold them.
        keep(
            self,
            epsilon=check_epsilon(self.epsilon, up=True),
            delta=check_delta(self.delta, up=True),
            rho=None if self.rho is None else check_nonnegative(self.rho, "rho", up=True),
            void=bool(self.void),
        )

    @classmethod
    def of(
        cls,
        cost: Cost,
        *,
        protects: str,
        claims: tuple[str, ...],
        delta: float = 0.0,
        relation: str = REPLACE_ONE,
        assumptions: tuple[str, ...] = (),
        void: bool = False,
        covers: str = RELEASED,
    ) -> Guarantee:
        """Read a cost at ``delta``.

        Parameters
        ----------
        cost : Cost
            The price of everything that is released.
        delta : float
            The delta at which the cost is read.
        protects, claims, relation, assumptions, void, covers : object
            As for the constructor.
        """
        rho, xi = check_cost(cost).zcdp or (math.inf, 0.0)
        return cls(
            epsilon=cost.epsilon(delta),
            delta=delta,
            protects=protects,
            relation=relation,
            claims=claims,
            assumptions=assumptions,
            rho=rho if xi == 0 and rho < math.inf else None,
            void=void,
            covers=covers,
        )

    def within(self, epsilon: float, delta: float) -> bool:
        """Tell whether this promises at least (``epsilon``, ``delta``); a void one never does.

        Parameters
        ----------
        epsilon, delta : float of 0 or more
            The promise to compare with.
        """
        return not self.void and self.epsilon <= epsilon and self.delta <= delta

    def voided(self, reason: str) -> Guarantee:
        """Return the same as void, with the reason among its assumptions.

        Parameters
        ----------
        reason : str
            Why nothing is promised, as a sentence that goes on after "because".
        """
        return replace(self.assuming(f"{VOID_BECAUSE}{reason}"), void=True)

    def assuming(self, assumption: str) -> Guarantee:
        """Return the same with one more assumption.

        Parameters
        ----------
        assumption : str
            A fact outside the code on which the promise rests.
        """
        return replace(self, assumptions=(*self.assumptions, assumption))

    @property
    def void_reason(self) -> str:
        """Why it is void: what the assumptions say, or that ``random_state`` was given."""
        reasons = [one for one in self.assumptions if one.startswith(VOID_BECAUSE)]
        given = [one.removeprefix(VOID_BECAUSE) for one in reasons]
        return "; and ".join(given) or "random_state was given"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; an infinite epsilon becomes ``"inf"``."""
        plain = asdict(self)
        plain["claims"], plain["assumptions"] = list(self.claims), list(self.assumptions)
        for name in ("epsilon", "rho"):
            plain[name] = plain_number(plain[name])
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Guarantee:
        """Rebuild what ``to_dict`` returned.

        Parameters
        ----------
        plain : dict
            Plain values, as ``to_dict`` returned them.
        """
        fields = dict(plain)
        for name in {"claims", "assumptions"} & fields.keys():
            fields[name] = tuple(fields[name])
        for name in {"epsilon", "rho"} & fields.keys():
            fields[name] = from_plain_number(fields[name])
        try:
            return cls(**fields)
        except TypeError as error:
            raise InvalidParameter(
                f"fields {sorted(fields)} do not make a Guarantee; give those of to_dict."
            ) from error

    def __str__(self) -> str:
        """Return two lines: epsilon, delta and who is protected; what is covered, for how long."""
        figures = f"(epsilon = {_up(self.epsilon)}, delta = {_up(self.delta)})"
        promised = f"{figures}-differential privacy for {self.protects}"
        if self.void:
            return (
                f"VOID, no privacy at all, because {self.void_reason}.\n"
                f"Without it this would be {promised}, over {self.covers}."
            )
        if self.epsilon == math.inf:
            return (
                f"NO PRIVACY is promised for {self.protects} at delta = {_up(self.delta)}.\n"
                "If noise was added, ask for the guarantee at a larger delta, such as 1e-6."
            )
        return f"{promised}.\nIt covers {self.covers}."

    def full(self) -> str:
        """Return the two lines, then neighbours, assumptions and claims as a list."""
        lines = [str(self)]
        if self.rho is not None and not self.void:
            lines.append(f"As zero-concentrated differential privacy: rho = {_up(self.rho)}.")
        lines.append(f"Two tables are neighbours if {self.relation}.")
        lines.append("Assumptions:" if self.assumptions else "Assumptions: none.")
        lines += [f"- {assumption}" for assumption in self.assumptions]
        return "\n".join([*lines, f"Claims: {', '.join(self.claims) or 'none'}."])

    def to_html(self) -> str:
        """Return the promise for notebooks: two lines, and the rest to unfold."""
        first, second, *rest = map(escape, self.full().splitlines())
        lines = "".join(f"<li>{line}</li>" for line in rest)
        return (
            f"<p>{first}<br>{second}</p>"
            f"<details><summary>Assumptions and claims</summary><ul>{lines}</ul></details>"
        )

    _repr_html_ = to_html


def _up(value: float) -> str:
    """Show a figure with five digits, rounded up: what is printed never promises too much."""
    if value in (0.0, math.inf):
        return f"{value:g}"
    exact = Decimal(value)
    shown = Context(prec=5).create_decimal(exact)
    # A float such as 0.1 lies a hair above its decimal; that hair is not worth another digit.
    if exact - shown > exact * Decimal("1e-15"):
        shown = Context(prec=5, rounding=ROUND_CEILING).create_decimal(exact)
    return f"{float(shown):g}"
