"""Running a model's code so that nothing of it is seen outside, and nothing outside by it."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from contextvars import ContextVar

import numpy as np

from cumae.claims import claim
from cumae.quiet import GLOBALS, warnings_raise

# Whether the global generators will be put back anyhow, before anything else draws from them.
_KEPT: ContextVar[bool] = ContextVar("kept", default=False)


@claim("SHARDS")
@contextlib.contextmanager
def generators_kept() -> Iterator[None]:
    """Put the global generators back at the end; each shard that is trained inside seeds them.

    To read and write their states takes longer than to train a small model, so it is done once for
    many shards.
    """
    with GLOBALS:
        numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
        token = _KEPT.set(True)
        try:
            yield
        finally:
            _KEPT.reset(token)
            np.random.set_state(numpy_state)  # noqa: NPY002
            random.setstate(python_state)


@claim("SHARDS")
@contextlib.contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Seed the global generators for one shard, and have them put back afterwards.

    An estimator that draws from them would carry numbers from one shard to the next: how many a
    shard uses may depend on its rows.
    """
    with GLOBALS if _KEPT.get() else generators_kept():
        token = _KEPT.set(False)  # what trains shards inside of this one puts back its numbers
        try:
            np.random.seed(seed)  # noqa: NPY002
            random.seed(seed)
            yield
        finally:
            _KEPT.reset(token)


@claim("SHARDS")
@contextlib.contextmanager
def strictly(seed: int) -> Iterator[None]:
    """Train one shard: warnings are errors, and random numbers its own."""
    with warnings_raise(), own_randomness(seed):
        yield
