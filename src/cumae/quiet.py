"""Running code of others so that its warnings are errors and nothing of them is seen outside."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from contextvars import ContextVar

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


def is_quiet() -> bool:
    """Tell whether this runs inside of ``warnings_raise``, where a warning would be a failure."""
    return _QUIET.get()
