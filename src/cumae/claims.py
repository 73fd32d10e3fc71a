"""Mark code that carries a privacy or exactness claim with the id of its proof.

``@claim("ID")`` says: what this function or class promises is stated and proven in
``proofs/ID.md``. ``tests/test_claims.py`` fails when a mark has no proof, a proof no mark, either
of them no test, or when the marked code changed and nobody looked at its proof.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Marked = TypeVar("Marked", bound=Callable[..., Any])


def claim(*ids: str) -> Callable[[Marked], Marked]:
    """Mark a function or class as resting on the proofs with these ids.

    Examples
    --------
    >>> from cumae.claims import claim, claims_of
    >>> @claim("EXP")
    ... def draw() -> int:
    ...     return 4
    >>> claims_of(draw)
    ('EXP',)
    """

    def mark(target: Marked) -> Marked:
        target.__claims__ = ids  # type: ignore[attr-defined]
        return target

    return mark


def claims_of(target: object) -> tuple[str, ...]:
    """Return the ids that ``target`` itself was marked with (not those of its bases)."""
    ids: tuple[str, ...] = vars(target).get("__claims__", ())
    return ids
