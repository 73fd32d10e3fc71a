"""Costs as plain values that JSON can hold, and back."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from cumae.codec import Part, add_form, class_named, kind_of
from cumae.errors import InvalidParameter, UnknownCost, shown
from cumae.privacy.cost import Cost, check_cost
from cumae.privacy.validation import from_plain_number, plain_number


def cost_to_dict(cost: Any) -> dict[str, Any]:
    """Return plain values that stand for a cost, exactly; infinity becomes ``"inf"``.

    Parameters
    ----------
    cost : Cost
        A cost of a registered class, as all costs of cumae are.

    Returns
    -------
    dict
        What ``cost_from_dict`` takes.

    Raises
    ------
    UnknownCost
        If its class is not registered, or is no dataclass.
    """
    check_cost(cost)
    kind = kind_of(type(cost))
    if kind is None or not is_dataclass(cost):
        raise UnknownCost(
            f"a {type(cost).__name__} cannot be stored, because it is no registered dataclass; "
            "build the cost from those of cumae.privacy."
        )
    values = {field.name: _to_plain(getattr(cost, field.name)) for field in fields(cost)}
    return {"kind": kind.name, **values}


def cost_from_dict(plain: Any) -> Cost:
    """Return the cost that ``cost_to_dict`` was given.

    Parameters
    ----------
    plain : dict
        What ``cost_to_dict`` returned.

    Returns
    -------
    Cost
        An equal one.

    Raises
    ------
    InvalidParameter
        If the values stand for no cost, or for one of an unknown kind.

    Examples
    --------
    >>> from cumae.privacy import Pure, subsample
    >>> from cumae.privacy.plain_costs import cost_from_dict, cost_to_dict
    >>> cost = subsample(Pure(1.0), 0.1) * 3
    >>> cost_from_dict(cost_to_dict(cost)) == cost
    True
    """
    if not isinstance(plain, dict) or not isinstance(plain.get("kind"), str):
        raise InvalidParameter("this is no stored cost; give what cost_to_dict returned.")
    name = plain["kind"]
    known = class_named("cost", name)
    if known is None:
        raise InvalidParameter(
            f"a stored cost is of the kind {shown(name)}, which is unknown here; import the module "
            "that defines it first."
        )
    try:
        cost: Cost = known(**{key: _from_plain(plain[key]) for key in plain if key != "kind"})
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"a stored {name} has values that no such cost can have; give a result of cost_to_dict."
        ) from error
    return cost


def _to_plain(value: Any) -> Any:
    if isinstance(value, Cost):
        return cost_to_dict(value)
    return [_to_plain(item) for item in value] if isinstance(value, tuple) else plain_number(value)


def _from_plain(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(_from_plain(item) for item in plain)
    return cost_from_dict(plain) if isinstance(plain, dict) else from_plain_number(plain)


def _written(cost: Cost, name: str, part: Part) -> dict[str, Any]:
    del name, part
    return {"value": cost_to_dict(cost)}


add_form("cost", Cost, _written, lambda plain, _: cost_from_dict(plain["value"]), asked=True)
