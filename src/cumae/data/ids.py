"""Ids of users and clients."""

from __future__ import annotations

from typing import Any

from cumae.claims import claim
from cumae.errors import InvalidData

# For each kind of ids: the value of the parameter that turns them off, and one that turns them on.
SWITCHES = {
    "users": ("user_ids was False", "user_ids=True"),
    "clients": ("client_cap was None", "client_cap=0.01, say"),
}


@claim("USER")
def check_ids(ids: Any, wanted: bool, count: int, name: str) -> list[Any] | None:
    """Return ids of users or clients, one for each row."""
    if not wanted:
        if ids is not None:
            raise InvalidData(
                f"{name} were given, but {SWITCHES[name][0]} at fit; leave them out, or fit anew "
                f"with {SWITCHES[name][1]}."
            )
        return None
    # A text would be read letter by letter, and a set has no order.
    flat = hasattr(ids, "__len__") and getattr(ids, "ndim", 1) == 1
    if ids is not None and (not flat or isinstance(ids, str | bytes | set | frozenset | dict)):
        raise InvalidData(
            f"{name} is a {type(ids).__name__}; give a list with one id for each row, such as "
            f'{name}=["anna"] for one.'
        )
    if ids is None or len(ids) != count:
        given = "none" if ids is None else len(ids)
        raise InvalidData(f"{name}: {given} for {count} rows; give one id for each row.")
    found = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if not all(isinstance(one, str | bytes | int | float) and one == one for one in found):  # noqa: PLR0124
        raise InvalidData(f"{name} hold something that is no id; give numbers or strings.")
    return found
