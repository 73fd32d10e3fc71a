"""What all mechanisms share: a cost known before anything is drawn, and its guarantee."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.claims import claim
from cumae.errors import BudgetExhausted, InvalidData, InvalidParameter, LiveState
from cumae.live import only_once
from cumae.parameters import check_count
from cumae.privacy import REPLACE_ONE, Cost, Guarantee
from cumae.privacy.validation import plain_number
from cumae.randomness import Source, source_for

FEW = 16  # numbers of an array that Python's own comparisons look at faster
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

        Only an ``Interactive`` mechanism counts its uses: say how many there are, or pay each from
        a ``Budget``. The guarantee is void if the source was seeded.
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


@claim("NOISE")
class Interactive(Mechanism):
    """A mechanism with live state: it counts down, and there must only ever be one of it.

    It cannot be copied or pickled. To go on in another process, store what ``to_facts`` returns,
    stop using this object, and make a new one there with ``from_facts``.
    """

    fact_names: ClassVar[tuple[str, ...]]
    _ahead: Ahead

    def __init__(self, random_state: int | Source | None) -> None:
        super().__init__(random_state)
        self._process = os.getpid()
        self._lock = threading.RLock()  # a question reads and writes the state in one step
        self._inside = False

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

    @only_once
    def to_facts(self) -> dict[str, Any]:
        """Return all that this mechanism must remember, as numbers and texts that JSON can hold.

        These are the parameters of the noise, how many answers are left, and the noise on a
        threshold that is still in force. Noise that was drawn ahead is not among them: it is thrown
        away, here as well, so that it cannot be used twice.

        Only one mechanism may go on from here, either this object or the one that ``from_facts``
        makes: two of them would spend the same budget twice and use the same threshold noise.
        Whoever reads the threshold noise can undo a part of the protection, so store the facts as
        safely as the private rows.

        Returns
        -------
        dict from str to int, float, str or such a dict
            The class under ``"kind"``, and the names in ``fact_names``.

        Raises
        ------
        LiveState
            If this process is not the one in which the mechanism was started.
        """
        self._drop_ahead()
        return {"kind": type(self).__name__, **self._facts()}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any], random_state: int | Source | None = None) -> Self:
        """Make the mechanism that ``to_facts`` described; it costs nothing that was not paid then.

        Parameters
        ----------
        facts : dict from str to int, float, str or such a dict
            What ``to_facts`` returned, also after a way through JSON.
        random_state : int, Source or None
            None in production; a seed or a source in tests, which voids the guarantee.

        Returns
        -------
        Interactive
            Of the same class, with the same answers left and the same threshold noise. Its next
            noise is new: under coins in the same state it goes on as the original would.

        Raises
        ------
        InvalidParameter
            If the facts are incomplete, of another class, or contradict each other.
        """
        if set(facts) != {"kind", *cls.fact_names} or facts["kind"] != cls.__name__:
            raise InvalidParameter(
                f"these are not the facts of a {cls.__name__}; give what its to_facts returned."
            )
        return cls._restored(facts, random_state)

    @classmethod
    @abstractmethod
    def _restored(cls, facts: Mapping[str, Any], random_state: int | Source | None) -> Self:
        """Check the facts and make a mechanism of them without drawing threshold noise."""

    def _facts(self) -> dict[str, Any]:
        return {name: plain_number(getattr(self, name)) for name in self.fact_names}

    def _drop_ahead(self) -> None:
        self._ahead.drop()

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
    draw : callable from int to array
        Returns that number of independent draws.

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
        """Return ``count`` draws that were never returned before."""
        parts, waiting = [], self._waiting
        self._waiting = waiting[count:]
        if len(waiting) >= count:  # nearly always
            return waiting[:count].copy()
        while len(waiting) < count:
            parts.append(waiting)
            count -= len(waiting)
            waiting = self._draw(PORTION)
            self._waiting = waiting[count:]
        return np.concatenate([*parts, waiting[:count]])

    def drop(self) -> None:
        """Throw away what was drawn and not taken yet."""
        self._waiting = self._waiting[:0]


def check_left(value: object, most: int, name: str) -> int:
    """Return a stored number of answers left if it is a whole number from 0 to ``most``."""
    left = check_count(value, name)
    if left > most:
        raise InvalidParameter(f"{name}={left!r} is more than the {most} that there were in all.")
    return left


def check_integers(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return ``values`` as new 64-bit integers; refuse anything that would be rounded."""
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
    # For a single query Python's own numbers are the quickest.
    cells = array.ravel().tolist() if array.size <= FEW else [int(array.min()), int(array.max())]
    if cells and not -(2**62) <= min(cells) <= max(cells) <= 2**62:
        raise InvalidData(f"{name} leave the range of -2**62 to 2**62; scale them down.")
    return array.astype(np.int64)
