"""Running code of others so that its warnings are errors and nothing of them is seen outside."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator

import numpy as np

from cumae.claims import claim

# Python has one list of warning filters and one set of global generators for all threads, so only
# one of them may change these at a time.
GLOBALS = threading.RLock()


# They are about the code of a model and not about rows, and would silence every vote.
HARMLESS = (DeprecationWarning, FutureWarning, PendingDeprecationWarning, ResourceWarning)


@claim("SHARDS")
@contextlib.contextmanager
def warnings_raise() -> Iterator[None]:
    """Turn warnings into errors."""
    with GLOBALS, warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in HARMLESS:
            warnings.simplefilter("ignore", kind)
        with np.errstate(all="warn", under="ignore"):
            yield
