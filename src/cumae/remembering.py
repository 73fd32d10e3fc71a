"""Functions that remember results, without losing their types."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def remembered(most_results: int) -> Callable[[Function], Function]:
    """Let a function return the same result for the same arguments without computing it again.

    This is ``functools.lru_cache``, which would hide from type checkers what the function takes.

    Parameters
    ----------
    most_results : int
        Number of results that are kept; those that were not used for longest are forgotten.

    Examples
    --------
    >>> from cumae.remembering import remembered
    >>> @remembered(2)
    ... def square(side: int) -> int:
    ...     print("computed")
    ...     return side * side
    >>> square(3), square(3)
    computed
    (9, 9)
    """
    return cast("Callable[[Function], Function]", functools.lru_cache(maxsize=most_results))
