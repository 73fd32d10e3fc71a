"""The memory of a predictor, as one value, and its storage.

A ``State`` is stored as facts, which ``cumae.codec`` writes as bytes. Nothing is pickled. They hold
private rows and models that no privacy protects, so they have to be kept as safe as the private
rows themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Self, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cumae.claims import claim
from cumae.codec import FORMAT, class_named, from_bytes, to_bytes
from cumae.errors import CumaeError, InvalidParameter, StoreFailed
from cumae.mechanisms import Spent, VoteRule
from cumae.predictors.answering.events import Charged, Event
from cumae.privacy import Cost
from cumae.randomness import Source

ARRAY_FORMATS = (5, FORMAT)  # the same facts
STATE, CHECK = "state", "check"  # names of the arrays that hold a stored one and its checksum
BLOCKS = 256  # a crash costs this part of the answers of a phase at most

Arrays: TypeAlias = dict[str, NDArray[Any]]


@claim("STORE")
class State(ABC):
    """Everything that a fitted predictor must remember; events change it.

    A subclass says what that is, as facts: dicts and lists of numbers, texts, arrays, data frames
    and the values that ``cumae.codec`` knows. Noise that was drawn ahead is not part of it.
    """

    kind: ClassVar[str]  # the class of the predictor
    protects_queries: ClassVar[bool] = False  # whether queries are private rows of a next phase

    fitted: Any  # what fit fixed: a Fitted
    answered: int  # answers given since fit
    spent: Spent  # counters of the mechanism that answers now

    # What is counted

    @property
    @abstractmethod
    def rule(self) -> VoteRule | None:
        """The mechanism that answers now; None if what answers was published."""

    @property
    def phase_number(self) -> int:
        """Number of the phase, from 1."""
        return 1

    @property
    def used(self) -> int:
        """Releases of this phase that are gone."""
        return self.spent.asked

    @property
    def releases(self) -> int:
        """Releases that this phase was calibrated for."""
        return 0 if self.rule is None else self.rule.max_queries

    @property
    def left(self) -> int:
        """Releases left; 0 also when no unclear one is left."""
        return 0 if self.rule is None else self.rule.left(self.spent)

    @property
    def spare(self) -> int:
        """Releases that a crash may cost; 0 where each one counts."""
        rule = self.rule
        if rule is None or not rule.each_costs:
            return 0
        return min(rule.max_queries - self.spent.asked, rule.max_queries // BLOCKS)

    @property
    def cost(self) -> Cost | None:
        """The cost of the noise of this phase; None if nothing is drawn any more."""
        return None if self.rule is None else self.rule.cost

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps by which that becomes the price of a row, as the ledger has them."""
        return []

    @claim("EVER", "BBL", "QUERY", "UNV")
    def reserve(self, count: int) -> Any:
        """Raise the counters before anything is drawn; return them as they were.

        Where rows are used once, they are gone afterwards, and are returned.
        """
        before, rule = self.spent, self.rule
        if rule is not None:
            self.spent = rule.reserved(before, count)
        return before

    def lost(self, recorded: int) -> Event | None:
        """Return what records a reservation that came to nothing; None if there is none."""
        return Charged(self.spent, "broken off") if self.used > recorded else None

    @claim("STORE")
    def charged(self, count: int, why: str, source: Source) -> Charged:
        """Return what charges releases that may have been used, though nobody knows of them."""
        spent = self.spent
        if count and self.rule is not None:
            spent = self.rule.charged(spent, count, source)
        return Charged(spent, why)

    # What changes it

    def become(self, other: Any) -> None:
        """Hold what another state of the same kind holds, in one step."""
        before = vars(self)
        gone = [name for name in before if name not in vars(other)]
        before.update(vars(other))
        for name in gone:
            del before[name]

    def use(self) -> None:  # noqa: B027 - few states have one
        """Forget what the one draw of labels in this phase needs, where there is one."""

    # Storing

    @property
    def secret(self) -> bytes | None:
        """The key under which ids are hidden; None if there are none."""
        return None

    def in_a_home(self) -> Self:
        """Return the state with which a file or a database begins; this one stays as it is."""
        return self

    def given(self) -> dict[str, Any]:
        """Return the parameters of the predictor."""
        found: dict[str, Any] = self.fitted.given()
        return found

    @abstractmethod
    def to_facts(self) -> dict[str, Any]:
        """Return all of it, but for the secret."""

    @classmethod
    @abstractmethod
    def from_facts(cls, facts: dict[str, Any], estimator: Any) -> Self:
        """Rebuild what ``to_facts`` returned, and the secret; for ``estimator`` see ``restore``."""

    def to_arrays(self) -> Arrays:
        """Return plain arrays from which ``from_arrays`` makes the same state.

        Only one predictor may go on from here: the one that has this state now, or one that is
        restored from the arrays. Two of them would spend the same budget twice.

        Returns
        -------
        dict from str to array
            Arrays of numbers, texts and bytes; ``numpy.savez`` can write them.
        """
        facts = {"format": FORMAT, "kind": self.kind, "secret": self.secret, **self.to_facts()}
        content = to_bytes(facts)
        check = np.array([crc32(content)], dtype="<u4")
        return {STATE: np.frombuffer(content, dtype=np.uint8), CHECK: check}

    @staticmethod
    def from_arrays(arrays: Mapping[str, Any], estimator: Any = None) -> State:
        """Rebuild a state.

        Parameters
        ----------
        arrays : mapping from str to array
            What ``to_arrays`` returned.
        estimator : classifier, Pipeline or ConceptClass, or None
            As in ``restore``.

        Raises
        ------
        InvalidParameter
            If the arrays are broken, or the estimator is not the one that was stored.
        """
        with broken_arrays():
            content, check = (np.asarray(arrays[name]) for name in (STATE, CHECK))
            shapes = (content.dtype.str, content.ndim, check.dtype.str, check.shape)
            if shapes != ("|u1", 1, "<u4", (1,)) or set(arrays) != {STATE, CHECK}:
                raise _broken()
            if crc32(content.tobytes()) != check[0]:  # a damaged row would be read as another one
                raise _broken()
            facts = from_bytes(content.tobytes())
            if facts["format"] not in ARRAY_FORMATS:
                raise InvalidParameter(
                    f"these arrays have format {facts['format']!r}, but this version of cumae "
                    f"reads format {FORMAT}; restore them with the version that wrote them."
                )
            return state_of(facts["kind"], facts, estimator)


def state_of(kind: str, facts: dict[str, Any], estimator: Any) -> State:
    """Rebuild the state of a kind of predictor from its facts, with the secret among them."""
    predictor = class_named("predictor", kind)
    if predictor is None:
        raise InvalidParameter(f"a stored predictor is of the unknown kind {kind!r}.")
    found: State = predictor.state_class.from_facts(facts, estimator)
    return found


@contextmanager
def broken_arrays() -> Iterator[None]:
    """Let what damaged facts may raise become ``InvalidParameter``."""
    try:
        yield
    except StoreFailed:
        raise _broken() from None
    except CumaeError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise _broken() from error


def restore(arrays: Mapping[str, Any], estimator: Any = None) -> Any:
    """Return the predictor whose state was stored, ready to answer.

    It goes on as the original would have done, with fresh noise. The original must not be used any
    more: both would spend the same budget.

    Parameters
    ----------
    arrays : mapping from str to array
        What ``to_arrays`` of the state returned, also after a way through ``numpy.savez`` and
        ``numpy.load``.
    estimator : classifier, Pipeline or ConceptClass, a dict of those, or None
        The estimator of the predictor. It must be given if it is none of those that can be written
        out; any other one is refused. If a student cannot be written out, give a dict with
        ``"student"`` and, where that is needed, ``"estimator"``.

    Returns
    -------
    Predictor
        Of the stored class. It draws from the operating system's generator, and has no ``budget``.

    Raises
    ------
    InvalidParameter
        If the arrays are broken, or the estimator is not the one that was stored.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae import EverlastingPredictor
    >>> from cumae.concepts import Thresholds
    >>> from cumae.predictors.state import restore
    >>> x = np.random.default_rng(0).random((20_000, 1))
    >>> oracle = EverlastingPredictor(Thresholds(), epsilon=3.0).fit(x, x[:, 0] > 0.3)
    >>> again = restore(oracle.to_arrays())
    >>> again.predict([[0.05], [0.9]]).shape, again.answered_
    ((2,), 2)
    """
    state = State.from_arrays(arrays, estimator)
    return class_named("predictor", state.kind).from_state(state)


def _broken() -> InvalidParameter:
    return InvalidParameter(
        "these arrays are no stored state of a predictor, or they are damaged; give what to_arrays "
        "returned."
    )
