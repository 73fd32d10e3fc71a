"""What a predictor must remember, as one value, and how it is stored.

A ``State`` is stored as plain arrays. Everything that is no array is JSON, in one array of bytes
under the name ``"facts"``. Nothing is pickled. The arrays hold private rows and models that no
privacy protects, so they have to be kept as safe as the private rows themselves.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Self, TypeAlias
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.claims import claim
from cumae.data import cell_from_json, cell_to_json, frame_of, names_of
from cumae.errors import CumaeError, InvalidParameter
from cumae.mechanisms import Spent, VoteRule
from cumae.predictors.base import Predictor
from cumae.predictors.events import Charged, Event
from cumae.privacy import Cost
from cumae.randomness import Source
from cumae.storage import TAG, from_plain, to_plain

FORMAT = 2  # of stored states
BLOCKS = 256  # a crash costs this part of the answers of a phase at most
FACTS = "facts"
PLAIN = frozenset((int, str, bool, type(None)))  # types that JSON holds as they are
SMALL = 4_096  # bytes; below, copying an array takes less time than a view
ENCODER = json.JSONEncoder(allow_nan=False)  # json.dumps would make one for each call

Arrays: TypeAlias = dict[str, NDArray[Any]]


@claim("STORE")
class State(ABC):
    """Everything that a fitted predictor must remember; events change it.

    A subclass says what that is, as facts: dicts and lists of numbers, texts, arrays, data frames
    and the values that ``cumae.storage`` knows. Noise that was drawn ahead is not part of it.
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
        if self.rule is None or not self.rule.each_costs:
            return 0
        return min(self.left, self.releases // BLOCKS)

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
        before = self.spent
        if self.rule is not None:
            self.spent = self.rule.reserved(before, count)
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
        secret = {} if self.secret is None else {"secret": self.secret.hex()}
        facts = {"format": FORMAT, "kind": self.kind, "state": self.to_facts(), **secret}
        return pack(facts)

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
            facts = unpack(arrays)
            if facts["format"] != FORMAT:
                raise InvalidParameter(
                    f"these arrays have format {facts['format']!r}, but this version of cumae "
                    f"reads format {FORMAT}; restore them with the version that wrote them."
                )
            secret = bytes.fromhex(facts["secret"]) if "secret" in facts else None
            return state_of(facts["kind"], facts["state"], estimator, secret)


def state_of(kind: str, facts: dict[str, Any], estimator: Any, secret: bytes | None) -> State:
    """Rebuild the state of a kind of predictor from its facts."""
    kinds = {state.kind: state for state in _by_name(State).values()}
    found: State = kinds[kind].from_facts({**facts, "secret": secret}, estimator)
    return found


@contextmanager
def broken_arrays() -> Iterator[None]:
    """Let what damaged facts may raise become ``InvalidParameter``."""
    try:
        yield
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
    return _by_name(Predictor)[state.kind].from_state(state)


# Facts as arrays


def pack(facts: Mapping[str, Any]) -> Arrays:
    """Return facts as plain arrays and one JSON text.

    Parameters
    ----------
    facts : dict from str to facts
        Dicts and lists of numbers, texts, arrays, data frames, and values that ``to_plain`` knows.

    Returns
    -------
    dict from str to array
        The names are those of the facts, joined by slashes.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.predictors.state import pack, unpack
    >>> arrays = pack({"phase": {"number": 2, "rows": np.ones((3, 1))}})
    >>> sorted(arrays)
    ['facts', 'phase/rows']
    >>> unpack(arrays)["phase"]["number"]
    2
    """
    arrays: Arrays = {}
    written = _pack(facts, "", arrays)
    arrays[FACTS] = _bytes_of(written)
    return arrays


def _pack(value: Any, name: str, arrays: Arrays) -> Any:
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is np.ndarray or isinstance(value, np.ndarray):
        return _pack_array(value, name, arrays)
    if kind is dict or isinstance(value, Mapping):
        start = f"{name}/" if name else ""
        return {
            key: part if type(part) in PLAIN else _pack(part, f"{start}{key}", arrays)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_pack(part, f"{name}/{place}", arrays) for place, part in enumerate(value)]
    if isinstance(value, pd.DataFrame):
        columns = [value.iloc[:, place].to_numpy() for place in range(value.shape[1])]
        return {TAG: "frame", "names": names_of(value), "columns": _pack(columns, name, arrays)}
    return to_plain(value)


def _pack_array(value: NDArray[Any], name: str, arrays: Arrays) -> Any:
    stored = value
    if value.dtype.kind == "O":
        stored = _bytes_of([_plain_cell(one) for one in value.ravel().tolist()])
    if not stored.flags.c_contiguous:
        stored = np.ascontiguousarray(stored).reshape(stored.shape)
    arrays[name] = stored
    tag = "cells" if value.dtype.kind == "O" else "stored"
    return {TAG: tag, "at": name, "shape": list(value.shape), "check": _check_of(arrays[name])}


def unpack(arrays: Mapping[str, Any]) -> Any:
    """Return what ``pack`` was given; raise ``InvalidParameter`` for anything else."""
    used = {FACTS}
    with broken_arrays():
        found = _unpack(_json_of(np.asarray(arrays[FACTS])), arrays, used)
    if set(arrays) != used:
        raise _broken()
    return found


def _unpack(value: Any, arrays: Mapping[str, Any], used: set[str]) -> Any:
    if isinstance(value, list):
        return [_unpack(part, arrays, used) for part in value]
    if not isinstance(value, dict):
        return value
    tag = value.get(TAG)
    if tag is None:
        return {key: _unpack(part, arrays, used) for key, part in value.items()}
    if tag == "frame":
        return frame_of(value["names"], _unpack(value["columns"], arrays, used))
    if tag not in ("stored", "cells"):
        return from_plain(value)
    used.add(value["at"])
    array = np.asarray(arrays[value["at"]])
    if _check_of(array) != value["check"]:
        raise _broken()
    if tag == "cells":
        cells = [_cell_of(one) for one in _json_of(array)]
        array = np.fromiter(cells, dtype=object, count=len(cells)).reshape(value["shape"])
    return array


def objects(values: Any) -> NDArray[Any]:
    """Return values of any types as an array of objects; ``pack`` stores such as cells."""
    listed = list(values)
    return np.fromiter(listed, dtype=object, count=len(listed))


def _check_of(array: NDArray[Any]) -> list[Any]:
    """Return type, shape and checksum of an array: a part of another state must not pass."""
    if array.nbytes < SMALL:  # a copy takes less time than a view
        sums = crc32(array.tobytes())
    else:
        sums = crc32(np.ascontiguousarray(array).view(np.uint8).data)
    return [array.dtype.str, list(array.shape), sums]


def _plain_cell(value: Any) -> Any:
    return {"bytes": value.hex()} if isinstance(value, bytes) else cell_to_json(value)


def _cell_of(written: Any) -> Any:
    if isinstance(written, dict) and "bytes" in written:
        return bytes.fromhex(written["bytes"])
    return cell_from_json(written)


def _bytes_of(value: Any) -> NDArray[np.uint8]:
    return np.frombuffer(ENCODER.encode(value).encode(), dtype=np.uint8).copy()


def _json_of(array: NDArray[Any]) -> Any:
    if array.dtype != np.uint8 or array.ndim != 1:
        raise _broken()
    return json.loads(array.tobytes())


def _broken() -> InvalidParameter:
    return InvalidParameter(
        "these arrays are no stored state of a predictor, or they are damaged; give what to_arrays "
        "returned."
    )


def _by_name(kind: Any) -> dict[str, Any]:
    """Return the classes below one."""
    found = list(kind.__subclasses__())
    for known in found:
        found += known.__subclasses__()
    return {known.__name__: known for known in reversed(found)}
