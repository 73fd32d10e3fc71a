"""Models on their way from one process to another."""

from __future__ import annotations

import pickle
from typing import Any

from joblib.externals.loky.backend.reduction import dumps

from cumae.claims import claim
from cumae.quiet import HiddenFailures


@claim("SHARDS")
class Traveller:
    """A model that travels by itself: if its own code fails on the way, no other one notices.

    Pickling a model may depend on a private row, and everybody would see an error of it.

    Parameters
    ----------
    model : object
        The model; None, which votes for the first class, if it could not travel.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def __reduce__(self) -> tuple[Any, ...]:
        with HiddenFailures():
            return _arrived, (bytes(dumps(self.model)),)
        return Traveller, (None,)


@claim("SHARDS")
def _arrived(content: bytes) -> Traveller:
    with HiddenFailures():
        return Traveller(pickle.loads(content))  # noqa: S301 - from a worker of ours
    return Traveller(None)
