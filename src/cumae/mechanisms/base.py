"""The shared part of all mechanisms: a cost known before anything is drawn, and its guarantee.

A mechanism that answers by votes is a frozen value, a ``VoteRule``: how much noise, and how many
answers. Its counters are another frozen value, ``Spent``, which belongs to whoever counts.
Random draws come from ``Coins``. So answering is a function of the votes, the counters before and
the coins, and returns the counters after it. An ``Interactive`` mechanism puts the three together
into a live object, for use on its own.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, NoReturn, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.errors import BudgetExhausted, InvalidData, InvalidParameter, LiveState
from cumae.live import only_once
from cumae.parameters import check_count
from cumae.privacy import REPLACE_ONE, Cost, Guarantee
from cumae.privacy.validation import plain_number
from cumae.randomness import Source, source_for

FEW = 16  # numbers of an array that Python's own comparisons look at faster
UNCLEAR = -1  # the label of an answer that a threshold charges
ANY_NUMBER = 2**62  # of answers, where only unclear ones are counted
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
        """The cost of one release, or of all of them together if the mechanism is interactive."""

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

    def __init__(self, random_state: int | Source | None) -> None:
        super().__init__(random_state)
        self._coins = Coins(self._source)
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
                "again.",
                remaining=0,
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
        self._coins.drop()
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

    def _refuse(self, *_: Any) -> NoReturn:
        raise LiveState(
            f"{type(self).__name__} cannot be copied or pickled, because both copies would hold "
            "the same noise and the same budget; pass the one object around."
        )

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse


Draw: TypeAlias = Callable[[int], Integers]  # returns that number of independent draws


@claim("NOISE")
class Coins:
    """The random draws of a live predictor or mechanism; nothing of them is ever stored.

    They are drawn ahead, in portions of one size, and used once, in the order they came. So the
    noise of a query is the same under the same coins, in any batches; and a
    single query is cheap. Whoever takes draws holds the lock of the predictor or mechanism.

    Parameters
    ----------
    source : Source
        Where random bits come from.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.mechanisms import Coins
    >>> from cumae.randomness import SYSTEM
    >>> coins = Coins(SYSTEM)
    >>> [coins.take("numbers", "law", lambda source: np.arange, count).tolist() for count in (2, 1)]
    [[0, 1], [2]]
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._streams: dict[str, _Stream] = {}

    def take(self, name: str, law: object, make: Callable[[Source], Draw], count: int) -> Integers:
        """Return draws that were never returned before.

        Parameters
        ----------
        name : str
            Of the stream of draws.
        law : object
            What is drawn from. A stream with another law, as that of a new phase, begins anew.
        make : callable
            Returns what draws, given the source.
        count : int
            Number of draws.
        """
        stream = self._streams.get(name)
        if stream is None or stream.law is not law:
            stream = self._streams[name] = _Stream(law, make(self.source))
        parts, waiting = [], stream.waiting
        stream.waiting = waiting[count:]
        if len(waiting) >= count:  # nearly always
            return waiting[:count].copy()
        while len(waiting) < count:
            parts.append(waiting)
            count -= len(waiting)
            waiting = stream.draw(PORTION)
            stream.waiting = waiting[count:]
        return np.concatenate([*parts, waiting[:count]])

    def drop(self) -> None:
        """Throw away what was drawn and not taken yet."""
        self._streams.clear()


class _Stream:
    """Draws from one law that were made ahead."""

    def __init__(self, law: object, draw: Draw) -> None:
        self.law, self.draw = law, draw
        self.waiting = np.zeros(0, dtype=np.int64)


class Spent(NamedTuple):
    """The counters of a mechanism that answers by votes.

    Parameters
    ----------
    asked : int
        Answers that were drawn.
    unclear : int
        How many of them a threshold charged.
    threshold_noise : int
        The noise on a threshold that is in force; as secret as the private rows.
    """

    asked: int = 0
    unclear: int = 0
    threshold_noise: int = 0

    def to_array(self) -> Integers:
        """Return the counters as an array: of one length, for any counters."""
        return np.array(self, dtype=np.int64)

    @classmethod
    def from_array(cls, counters: Integers) -> Spent:
        """Rebuild what ``to_array`` returned."""
        return cls(*counters.tolist())


@claim("NOISE")
class VoteRule(ABC):
    """A mechanism that turns vote counts into labels, as a frozen value without any state."""

    claims: ClassVar[tuple[str, ...]]
    each_costs: ClassVar[bool]  # whether each answer is charged; else only unclear ones are
    max_queries: int  # answers that there will be

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """All answers together."""

    @abstractmethod
    def start(self, source: Source) -> Spent:
        """Return the counters before the first answer; noise on a threshold is drawn here."""

    @abstractmethod
    def left(self, spent: Spent) -> int:
        """Return how many answers are left; 0 also when no unclear one is left."""

    @abstractmethod
    def ask(self, votes: Integers, spent: Spent, coins: Coins) -> tuple[Integers, Spent]:
        """Answer queries in order, and count them.

        Parameters
        ----------
        votes : array of int
            One row for each query, one column for each class; no more rows than are left.
        spent : Spent
            The counters before these answers.
        coins : Coins
            What draws.

        Returns
        -------
        tuple of array of int and Spent
            Columns of the labels, -1 where unclear; fewer than asked if the last unclear answer is
            among them. And the counters after them.
        """

    @abstractmethod
    def charged(self, spent: Spent, count: int, source: Source) -> Spent:
        """Return the counters if so many more answers may have been drawn that nobody knows of."""

    @abstractmethod
    def to_facts(self) -> dict[str, Any]:
        """Return its parameters as JSON can hold them, with the class under ``"kind"``."""

    def check(self, spent: Spent) -> Spent:
        """Return stored counters; refuse those that this mechanism can not have."""
        check_left(spent.asked, self.max_queries, "asked")
        return spent

    def reserved(self, spent: Spent, count: int) -> Spent:
        """Return the counters with so many more answers; refuse more than there will be."""
        if spent.asked + count > self.max_queries:
            raise BudgetExhausted(
                f"{count} queries were asked, but {self.max_queries - spent.asked} of "
                f"{self.max_queries} answers remain; ask fewer.",
                remaining=self.max_queries - spent.asked,
                asked=count,
            )
        return Spent(spent.asked + count, spent.unclear, spent.threshold_noise)


def keep_plain(rule: VoteRule, **fields: float) -> None:
    """Let a frozen rule hold checked numbers of Python, instead of numpy's."""
    for name, value in fields.items():
        object.__setattr__(rule, name, value)


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
