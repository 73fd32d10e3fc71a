"""The mechanisms that answer by votes, by the names under which they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cumae.errors import InvalidParameter
from cumae.mechanisms.base import VoteRule
from cumae.mechanisms.between_thresholds import Between
from cumae.mechanisms.majority import Majority
from cumae.mechanisms.stability import Stability


def rule_from_facts(facts: Mapping[str, Any]) -> VoteRule:
    """Rebuild what ``to_facts`` of a mechanism that answers by votes returned.

    Raises
    ------
    InvalidParameter
        If the facts are of something else.

    Examples
    --------
    >>> from cumae.mechanisms import Majority, rule_from_facts
    >>> rule_from_facts(Majority.calibrated(1.0, 1e-6, 100).to_facts()).max_queries
    100
    """
    match facts["kind"]:
        case "Majority":
            return Majority.from_facts(facts)
        case "Stability":
            return Stability.from_facts(facts)
        case "Between":
            return Between.from_facts(facts)
    raise InvalidParameter("these are not the facts of a mechanism; give what to_facts returned.")
