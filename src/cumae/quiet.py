"""Running code of others so that its warnings are errors and nothing of them is seen outside."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from types import TracebackType

import numpy as np

from cumae.claims import claim

# Python has one list of warning filters and one set of global generators for all threads, so only
# one of them may change these at a time.
GLOBALS = threading.RLock()

_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)

# They are about the code of a model and not about rows, and would silence every vote.
HARMLESS = (DeprecationWarning, FutureWarning, PendingDeprecationWarning, ResourceWarning)


@claim("SHARDS")
@contextlib.contextmanager
def warnings_raise() -> Iterator[None]:
    """Turn warnings into errors."""
    with GLOBALS, warnings.catch_warnings():
        # All other filters would come after these. To look
        # through them takes longer than to train a small model.
        warnings.resetwarnings()
        for kind in HARMLESS:
            warnings.simplefilter("ignore", kind, append=True)
        warnings.simplefilter("error", append=True)
        token = _QUIET.set(True)
        try:
            with np.errstate(all="warn", under="ignore"):
                yield
        finally:
            _QUIET.reset(token)


@claim("SHARDS")
def is_failure(kind: type[BaseException]) -> bool:
    """Tell whether an error of this type is a failure of the code of others that raised it.

    Everything is, also what is no ``Exception``: extensions in Rust panic by such an error, and
    ``sys.exit`` is another. A ``KeyboardInterrupt`` in the main thread comes from the user. In
    other threads Python delivers none, so there the code itself raised it.
    """
    main = threading.current_thread() is threading.main_thread()
    return not (main and issubclass(kind, KeyboardInterrupt))


@claim("SHARDS")
class HiddenFailures:
    """A context that ends quietly where code of others fails, because one row may be the reason."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        return kind is not None and is_failure(kind)


def is_quiet() -> bool:
    """Tell whether this runs inside of ``warnings_raise``, where a warning would be a failure."""
    return _QUIET.get()
