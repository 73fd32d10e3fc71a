"""Entries of an account: what was paid for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cumae.errors import InvalidParameter, shown
from cumae.privacy.cost import Cost, check_cost
from cumae.privacy.plain_costs import cost_from_dict, cost_to_dict
from cumae.privacy.validation import (
    check_epsilon,
    check_nonnegative,
    check_rate,
    from_plain_number,
    keep,
    plain_number,
)


@dataclass(frozen=True)
class Entry:
    """One payment: what for, and how much.

    Parameters
    ----------
    what : str
        What was paid for.
    cost : Cost
        What it costs.
    epsilon, delta : float
        What was taken from the account; with zCDP accounting, epsilon is 0.
    rho : float
        With zCDP accounting, what was taken from the account.
    """

    what: str
    cost: Cost
    epsilon: float
    delta: float
    rho: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.what, str):
            raise InvalidParameter(f"what={shown(self.what)} is no text; give a name for the use.")
        check_cost(self.cost)
        keep(
            self,
            epsilon=check_epsilon(self.epsilon, up=True),
            delta=check_rate(self.delta, "delta", up=True),
            rho=check_nonnegative(self.rho, "rho", up=True),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "what": self.what,
            "cost": cost_to_dict(self.cost),
            "epsilon": plain_number(self.epsilon),
            "delta": self.delta,
            "rho": plain_number(self.rho),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Entry:
        """Rebuild what ``to_dict`` returned."""
        return cls(
            plain["what"],
            cost_from_dict(plain["cost"]),
            from_plain_number(plain["epsilon"]),
            plain["delta"],
            from_plain_number(plain["rho"]),
        )
