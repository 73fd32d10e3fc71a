"""The price that a row pays, from what the noise of a phase costs: the ledger names the steps."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeVar

from cumae.claims import claim
from cumae.codec import from_plain
from cumae.errors import InvalidParameter, StoreFailed
from cumae.privacy import Approximate, Cost
from cumae.privacy.formulas import round_up
from cumae.privacy.plain_costs import cost_from_dict
from cumae.privacy.plans import pair_cost, read_pair
from cumae.privacy.validation import from_plain_number
from cumae.remembering import remembered

# What predictors define is imported where a ledger names it, because it takes seconds to load.
Read = TypeVar("Read")


def knowing_all_costs(read: Callable[[], Read]) -> Read:
    """Return what a function reads; if it meets a cost that is unknown, learn those of predictors.

    Parameters
    ----------
    read : callable
        It reads stored costs, and changes nothing.
    """
    try:
        return read()
    except InvalidParameter:
        import cumae.predictors.bbl.costs  # noqa: F401, PLC0415 - it registers one

        return read()


@remembered(256)
def price(bill: str, delta: float) -> float:
    """Return the epsilon at delta that a bill comes to.

    Parameters
    ----------
    bill : str
        JSON with the keys ``"cost"`` and ``"steps"``, as the ledger has them.
    delta : float
        Where the cost is read.

    Examples
    --------
    >>> import json
    >>> from cumae.store.bills import price
    >>> drawn = {"step": "drawn", "epsilon": 1.0, "delta": 0.0, "after": 0.5}
    >>> price(json.dumps({"cost": {"kind": "Pure", "eps": 1.0}, "steps": [drawn]}), 0.0)
    1.5
    """
    facts = json.loads(bill)
    cost: Cost = knowing_all_costs(lambda: cost_from_dict(facts["cost"]))
    for step in facts["steps"]:
        if step.get("step") not in STEPS:
            raise StoreFailed("the ledger has a step of an unknown kind; take a newer cumae.")
        cost = STEPS[step["step"]](cost, step)
    return cost.epsilon(delta)


def bill_of(facts: dict[str, Any]) -> str:
    """Return the bill of a ledger entry that begins a phase."""
    return json.dumps({"cost": facts["cost"], "steps": facts.get("steps", [])}, sort_keys=True)


@claim("STORE")
def _relabelled(cost: Cost, step: dict[str, Any]) -> Cost:
    """Return the cost of rows that were drawn and labelled before shards were trained on them."""
    from cumae.predictors.relabelling import Relabelling, agnostic_costs  # noqa: PLC0415

    read = read_pair(cost, _number(step, "epsilon_answers"), _number(step, "delta_answers"))
    sizes = Relabelling(
        step["n_rows"], step["n_sampled"], _number(step, "epsilon_boost"), step["resample"]
    )
    public = step.get("candidates") == "grid"  # LB with k = 1, whatever the class is
    concept = None if public else from_plain(step["concept"])
    return pair_cost(agnostic_costs(read, sizes, concept)[-1][1])


@claim("STORE")
def _drawn(cost: Cost, step: dict[str, Any]) -> Cost:
    """Return the cost of rows from which a hypothesis is drawn after the votes."""
    first = read_pair(cost, _number(step, "epsilon"), _number(step, "delta"))
    after = _number(step, "after")
    if math.inf in (first.eps, after):
        return Approximate(math.inf, 0.0)
    total = round_up(Fraction(first.eps) + Fraction(after))
    return pair_cost(Approximate(total, first.failure))


@claim("STORE")
def _entered(cost: Cost, step: dict[str, Any]) -> Cost:
    """Return the cost of a row that is sampled and labelled by a draw, and scores the next draw."""
    from cumae.predictors.bbl.costs import Draw, entering_cost  # noqa: PLC0415

    draw = Draw(_number(step, "width"), _number(step, "shift"))
    return entering_cost(cost, draw, _number(step, "scored"), _number(step, "share"))


def _number(step: dict[str, Any], name: str) -> float:
    return float(from_plain_number(step[name]))


STEPS = {"relabelled": _relabelled, "drawn": _drawn, "entered": _entered}
