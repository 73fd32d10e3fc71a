"""What all mechanisms share: a cost known before anything is drawn, and its guarantee."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.claims import claim
from cumae.errors import BudgetExhausted, InvalidData, LiveState
from cumae.parameters import check_count
from cumae.privacy import REPLACE_ONE, Cost, Guarantee
from cumae.randomness import Source, source_for

PORTION = 1024  # draws that are made ahead; drawing them one by one takes ten times as long


class Mechanism(ABC):
    """Something that turns private integers into a release, at a known cost."""

    claims: ClassVar[tuple[str, ...]]

    def __init__(self, random_state: int | Source | None) -> None:
        self._source = source_for(random_state)

    @property
    def source(self) -> Source:
        """Where random bits come from; fixed, because a guarantee depends on it."""
        return self._source

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """What one release costs, or all of them together if the mechanism is interactive."""

    def guarantee(
        self,
        protects: str,
        *,
        delta: float = 0.0,
        releases: int = 1,
        relation: str = REPLACE_ONE,
        assumptions: tuple[str, ...] = (),
    ) -> Guarantee:
        """Return the guarantee of ``releases`` uses together, read at ``delta``.

        A mechanism does not count its uses: say how many there are, or pay each from a ``Budget``.
        The guarantee is void if the source was seeded.
        """
        claims = (*self.claims, "RAND") if releases == 1 else (*self.claims, "COMP", "RAND")
        return Guarantee.of(
            self.cost * check_count(releases, "releases", least=1),
            protects=protects,
            delta=delta,
            relation=relation,
            claims=claims,
            assumptions=assumptions,
            void=self.source.deterministic,
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with cost {self.cost!r}>"


class Interactive(Mechanism):
    """A mechanism with live state: it counts down, and there must only ever be one of it."""

    def __init__(self, random_state: int | Source | None) -> None:
        super().__init__(random_state)
        self._process = os.getpid()
        self._lock = threading.Lock()  # a question reads and writes the state in one step

    def _check_process(self) -> None:
        # Before the lock is taken: in a forked process it may be held for ever.
        if os.getpid() != self._process:
            raise LiveState(
                f"{type(self).__name__} was started in another process; ask it there, because the "
                "same noise must not be used twice."
            )

    def _check_left(self, left: int, what: str) -> None:
        if left <= 0:
            raise BudgetExhausted(
                f"{type(self).__name__} has given all of its {what}; start a new one, which costs "
                "again."
            )

    def _refuse(self, *_: Any) -> NoReturn:
        raise LiveState(
            f"{type(self).__name__} cannot be copied or pickled, because both copies would hold "
            "the same noise and the same budget; pass the one object around."
        )

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse


@claim("NOISE")
class Ahead:
    """Noise that is drawn ahead, in portions of one size, and used once, in the order it came.

    So the noise of a query is the same under the same coins, whatever batches queries come in; and
    a single query is cheap. Whoever takes holds the lock of the mechanism.

    Parameters
    ----------
    draw
        Returns so many independent draws.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.mechanisms.base import Ahead
    >>> ahead = Ahead(np.arange)
    >>> ahead.take(2).tolist(), ahead.take(1).tolist()
    ([0, 1], [2])
    """

    def __init__(self, draw: Callable[[int], NDArray[np.int64]]) -> None:
        self._draw = draw
        self._waiting = np.zeros(0, dtype=np.int64)

    def take(self, count: int) -> NDArray[np.int64]:
        """Return so many draws that were never returned before."""
        parts, waiting = [], self._waiting
        self._waiting = waiting[count:]
        while len(waiting) < count:
            parts.append(waiting)
            count -= len(waiting)
            waiting = self._draw(PORTION)
            self._waiting = waiting[count:]
        return np.concatenate([*parts, waiting[:count]])


def check_integers(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return ``values`` as 64-bit integers; refuse anything that would be rounded."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InvalidData(f"{name} are rows of different lengths; give a regular table.") from error
    if array.dtype.kind not in "iu" or (array.dtype == np.uint64 and np.any(array >= 2**62)):
        raise InvalidData(
            f"{name} of type {array.dtype} are not 64-bit integers; count in whole numbers, "
            "because noise on rounded values is not covered by the proof; convert whole ones with "
            ".astype(int)."
        )
    if array.size and (array.min() < -(2**62) or array.max() > 2**62):
        raise InvalidData(f"{name} leave the range of -2**62 to 2**62; scale them down.")
    return array.astype(np.int64)
