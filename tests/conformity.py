"""How the checks of scikit-learn are run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest


def run_check(estimator: Any, check: Any, request: pytest.FixtureRequest) -> None:
    """Run a check; one that is known to fail tells what it raised, and not where.

    For each call on the way to an error, pytest reads scikit-learn's thousands of lines of checks.
    """
    if request.node.get_closest_marker("xfail") is None:
        check(estimator)
        return
    try:
        check(estimator)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is raised again
        raise error.with_traceback(None) from None
