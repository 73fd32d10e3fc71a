"""A privacy guarantee as a value that prints as one plain sentence."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class Guarantee:
    """What a fitted estimator or a mechanism promises, computed from what really ran.

    Parameters
    ----------
    epsilon, delta : float
        The promise: for neighbours D and D' and every set F of outcomes,
        P(outcome on D in F) <= exp(epsilon) P(outcome on D' in F) + delta.
    protects : str
        What is protected, such as ``"one labelled training row"``.
    relation : str
        Which inputs are neighbours.
    claims : tuple of str
        Ids of the proofs in ``proofs/`` that it rests on.
    assumptions : tuple of str
        What must hold outside the code.
    rho : float or None
        The same promise as rho-zCDP, where there is one.
    void : bool
        Whether a deterministic source of randomness was used, which voids the promise.

    Examples
    --------
    >>> from cumae.privacy import Guarantee, Pure
    >>> print(Guarantee.of(Pure(1.0), protects="one vote", claims=("EXP",)))
    (epsilon = 1, delta = 0)-differential privacy (also 0.5-zCDP) for one vote: neighbours differ in
    \
that one row is replaced by any other, and the number of rows is public; proven under EXP.
    """

    epsilon: float
    delta: float
    protects: str
    relation: str
    claims: tuple[str, ...]
    assumptions: tuple[str, ...] = ()
    rho: float | None = None
    void: bool = False

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
    ) -> Guarantee:
        """Read a cost at ``delta``."""
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
        )

    def within(self, epsilon: float, delta: float) -> bool:
        """Tell whether this promises at least (``epsilon``, ``delta``); a void one never does."""
        return not self.void and self.epsilon <= epsilon and self.delta <= delta

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; an infinite epsilon becomes ``"inf"``."""
        plain = asdict(self)
        plain["claims"], plain["assumptions"] = list(self.claims), list(self.assumptions)
        for name in ("epsilon", "rho"):
            plain[name] = plain_number(plain[name])
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Guarantee:
        """Rebuild what ``to_dict`` returned."""
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
        """Return one plain sentence."""
        also = "" if self.rho is None else f" (also {_up(self.rho)}-zCDP)"
        if self.epsilon == math.inf:
            return (
                f"NO PRIVACY is promised for {self.protects} at delta = {_up(self.delta)}; if "
                "noise was added, ask for the guarantee at a larger delta, such as 1e-6."
            )
        sentence = (
            f"(epsilon = {_up(self.epsilon)}, delta = {_up(self.delta)})-differential privacy{also}"
            f" for {self.protects}: neighbours differ in that {self.relation}"
        )
        if self.assumptions:
            sentence += "; assumes that " + " and that ".join(self.assumptions)
        sentence += f"; proven under {', '.join(self.claims)}." if self.claims else "."
        if self.void:
            return (
                "VOID, no privacy at all, because a deterministic source of randomness was used; "
                "with the production source it would be " + sentence
            )
        return sentence

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>"


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
