"""Running a model's code so that nothing of it is seen outside, and nothing outside by it."""

from __future__ import annotations

import contextlib
import random
import threading
import warnings
from collections.abc import Iterator

import numpy as np

# Python has one list of warning filters and one set of global generators for all threads, so only
# one of them may change these at a time.
GLOBALS = threading.RLock()

# They are about the code of a model and not about rows, and would silence every vote.
HARMLESS = (DeprecationWarning, FutureWarning, PendingDeprecationWarning, ResourceWarning)


@contextlib.contextmanager
def warnings_raise() -> Iterator[None]:
    """Turn warnings into errors."""
    with GLOBALS, warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in HARMLESS:
            warnings.simplefilter("ignore", kind)
        with np.errstate(all="warn", under="ignore"):
            yield


@contextlib.contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Seed the global generators for one shard, and put them back afterwards.

    An estimator that draws from them would carry numbers from one shard to the next: how many a
    shard uses may depend on its rows.
    """
    with GLOBALS:
        numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(numpy_state)  # noqa: NPY002
            random.setstate(python_state)


@contextlib.contextmanager
def strictly(seed: int) -> Iterator[None]:
    """Train one shard: warnings are errors, and random numbers its own."""
    with warnings_raise(), own_randomness(seed):
        yield
