"""What a predictor must remember, as one value; how it is stored; and the journal of its changes.

A ``State`` is stored as plain arrays. Everything that is no array is JSON, in one array of bytes
under the name ``"facts"``. Nothing is pickled. The arrays hold private rows and models that no
privacy protects, so they have to be kept as safe as the private rows themselves.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Self, TypeAlias
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.claims import claim
from cumae.codec import TAG, cell_from_json, cell_to_json, from_plain, to_plain
from cumae.data import frame_of, names_of
from cumae.errors import CumaeError, InvalidParameter
from cumae.predictors.base import Predictor
from cumae.privacy import Guarantee

FORMAT = 1  # of stored states
FACTS = "facts"
NOBODY = (None, None)  # ids where none are needed
PLAIN = frozenset((int, str, bool, type(None)))  # types that JSON holds as they are
SMALL = 4_096  # bytes; below, copying an array takes less time than a view
ENCODER = json.JSONEncoder(allow_nan=False)  # json.dumps would make one for each call

Arrays: TypeAlias = dict[str, NDArray[Any]]


class State(ABC):
    """Everything that a fitted predictor must remember.

    A subclass says what that is, as facts: dicts and lists of numbers, texts, arrays, data frames
    and the values that ``cumae.codec`` knows. Noise that was drawn ahead is not part of it, and
    storing a state throws it away, so that it cannot be used twice.
    """

    kind: ClassVar[str]  # the class of the predictor

    fitted: Any  # what fit fixed: a Fitted
    answered: int  # answers given since fit
    kept: list[tuple[Any, Any]]  # rows that wait, with their weights, where queries are kept

    def given(self) -> dict[str, Any]:
        """Return the parameters of the predictor."""
        found: dict[str, Any] = self.fitted.given()
        return found

    def become(self, other: Any) -> None:
        """Hold what another state of the same kind holds: a replica of the oracle went on."""
        vars(self).clear()
        vars(self).update(vars(other))

    # What a journal changes. Each kind of state has those changes that its predictor makes.

    @claim("EVER", "USER")
    def keep(self, rows: Any, weights: Any, ids: tuple[Any, ...]) -> None:
        """Keep what was asked, where something is kept of it: those rows that the ids admit."""
        admitted = self.admit(len(weights), ids)
        self.kept.append((rows[admitted], weights[admitted]))  # copies

    def admit(self, count: int, ids: tuple[Any, ...]) -> NDArray[np.bool_]:
        """Tell for each of the next rows whether it is kept, and remember it."""
        raise NotImplementedError

    def use(self) -> Any:
        """Return the rows that the one draw of labels in this phase needs, and forget them."""
        raise NotImplementedError

    def prepare(self, following: Any, taken: int) -> None:
        """Take the training of the next phase, and drop so many supplied rows."""
        raise NotImplementedError

    def enter(self, phase: Any) -> None:
        """Let a phase answer from now on."""
        raise NotImplementedError

    @abstractmethod
    def to_facts(self) -> dict[str, Any]:
        """Return all of it."""

    @classmethod
    @abstractmethod
    def from_facts(cls, facts: dict[str, Any], estimator: Any) -> Self:
        """Rebuild what ``to_facts`` returned; ``estimator`` is that of ``restore``."""

    def to_arrays(self) -> Arrays:
        """Return plain arrays from which ``from_arrays`` makes the same state.

        Only one predictor may go on from here: the one that has this state now, or one that is
        restored from the arrays. Two of them would spend the same budget twice.

        Returns
        -------
        dict from str to array
            Arrays of numbers, texts and bytes; ``numpy.savez`` can write them.
        """
        return pack({"format": FORMAT, "kind": self.kind, "state": self.to_facts()})

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
        try:
            facts = unpack(arrays)
            if facts["format"] != FORMAT:
                raise InvalidParameter(
                    f"these arrays have format {facts['format']!r}, but this version of cumae "
                    f"reads format {FORMAT}; restore them with the version that wrote them."
                )
            kinds = {state.kind: state for state in _by_name(State).values()}
            found: State = kinds[facts["kind"]].from_facts(facts["state"], estimator)
            return found
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


class Request:
    """One call for answers. Its ``repr`` does not show what is asked.

    Parameters
    ----------
    id : str, int or tuple, or None
        What names it; the same one gets the same answers for free in a phase.
    body : object
        What is asked, to be compared with an earlier request of the same id.

    Attributes
    ----------
    id_bytes, body_bytes : bytes
        What stands for the id and for the body, once ``Journal.known`` has looked at them.
    """

    __slots__ = ("body", "body_bytes", "id", "id_bytes")

    def __init__(self, id: Any, body: Any) -> None:  # noqa: A002 - as in request_id
        self.id, self.body = id, body
        self.id_bytes = self.body_bytes = b""


@claim("EVER", "LATE", "FRESH", "USER", "BBL")
class Journal:
    """Makes all changes of a state, each of them indivisible. This one keeps them in memory.

    A durable journal writes each change down before the call returns. Noise is drawn first, then
    one call records what was spent and what is kept, and only then the answer leaves.

    Some parts of a state change before that call: a mechanism counts a release before it draws the
    noise, a memo takes the noisy counts, and rows that wait for one draw are dropped before it. So
    a call that is broken off in between has spent what it drew, though no answer left. These
    changes need no record of their own: they belong to the change that follows. What was drawn
    leaves only after ``answered``, ``prepared`` or ``entered``, and a durable journal writes the
    counters of the mechanisms down with that change, as one. If the process dies before, nothing is
    recorded, and what was drawn is lost before anybody saw it. A call that answers runs within
    ``recorded``, and its answers leave after ``commit``: so all of its changes can be one.

    Two kinds of events, answers and phases, would not do. Rows of ``add_unlabelled`` are neither,
    so there is ``supplied``. The training of a next phase begins while the old one goes on: from
    then on rows are kept for the phase after it. So its beginning, ``prepared``, must be recorded
    too, with its rows, its split and its seeds. ``used`` comes before a draw of labels, which must
    not be repeated.

    Parameters
    ----------
    state : State
        What is changed.
    """

    def __init__(self, state: Any) -> None:
        self.state = state

    def promised(self, guarantee: Guarantee) -> Guarantee:
        """Return what is promised if changes are recorded here, given what the fit promised."""
        return guarantee

    def check(self) -> None:
        """Refuse if this predictor must not go on: here it always may."""

    def check_copy(self) -> None:
        """Refuse if nobody may get a copy of the state."""
        self.check()

    def turn(self) -> AbstractContextManager[None]:
        """Return a context in which nobody else changes the state, also not a replica."""
        self.check()
        return nullcontext()

    def known(self, request: Request) -> tuple[Any, int] | None:
        """Return the answers of an earlier request of the same id; None if there was none.

        Whoever asks is in a turn, and records the answers in the same one.

        Parameters
        ----------
        request : Request
            What is asked.

        Returns
        -------
        tuple of answers and int, or None
            As for ``recorded``.

        Raises
        ------
        InvalidParameter
            If the earlier one asked something else, or if nothing is kept for retries.
        InvalidData
            If what is asked cannot be compared with anything.
        """
        if request.id is not None:
            raise InvalidParameter(
                "request_id needs a durable oracle, which keeps answers for retries; see save_to."
            )
        return None

    def recorded(
        self, make: Callable[[], list[Any]], requests: Sequence[Request]
    ) -> tuple[list[Any], int]:
        """Make answers and record them as one change, in a turn; the predictor is locked meanwhile.

        Parameters
        ----------
        make : callable
            Returns for each request its answers, or the error with which it is refused; it calls
            the methods below.
        requests : sequence of Request
            What is asked; ``known`` has seen each of them in this turn.

        Returns
        -------
        tuple of list and int
            The answers may leave after ``commit`` of the number.
        """
        del requests
        return make(), 0

    def commit(self, ticket: int) -> None:
        """Return when what ``recorded`` named by a number can not be lost any more."""
        del ticket

    def settled(self) -> None:
        """Return when nothing that was recorded can be lost: what is published may be seen then."""

    def training(self) -> None:
        """Let nothing of what was recorded be lost from here on: a long training begins."""

    def rotated(self) -> None:
        """Take a new key, where there are keys."""
        raise InvalidParameter("a predictor in memory has no key; see save_to.")

    def close(self) -> None:
        """Let go of what is held outside memory."""

    def answered(
        self, count: int, rows: Any = None, weights: Any = None, ids: tuple[Any, ...] = NOBODY
    ) -> None:
        """Record answers, and keep those rows that the ids admit.

        Parameters
        ----------
        count : int
            How many queries were answered.
        rows : array or DataFrame, or None
            The queries; None if none of them may be kept.
        weights : array, one row for each query, or None
            What the answers are worth to the next phase.
        ids : tuple of lists or None
            Of the users and of the clients who asked; and, for an everlasting predictor, ids of
            the queries themselves.
        """
        if rows is not None:
            self.state.keep(rows, weights, ids)
        self.state.answered += count

    def supplied(self, rows: Any) -> None:
        """Record rows that were supplied for the next phases."""
        self.state.waiting.append(rows)

    def labelled(self, rows: Any, weights: Any, users: Any) -> None:
        """Record rows that came with labels, for the next phase; ids admit them."""
        self.state.label(rows, weights, users)

    def labelled_requests(self, requests: Any, weights: Any) -> None:
        """Record labels of queries that are kept and wait; they take the place of their weights."""
        self.state.label_requests(requests, weights)

    def used(self) -> Any:
        """Record that a draw of labels begins, and return the rows that it needs.

        The state has forgotten them then: a draw that is broken off cannot be repeated.
        """
        return self.state.use()

    def prepared(self, following: Any, taken: int = 0) -> None:
        """Record that the training of the next phase has begun.

        Its rows are not kept anywhere else any more.

        Parameters
        ----------
        following : object
            The training, with rows, split and seeds. For ``UniversalQueryRelease``, whose second
            stage is trained on public answers, the student.
        taken : int
            How many supplied rows it took.
        """
        self.state.prepare(following, taken)

    def entered(self, phase: Any) -> None:
        """Record that a phase has begun; what there was of the one before is gone."""
        self.state.enter(phase)


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
    try:
        found = _unpack(_json_of(np.asarray(arrays[FACTS])), arrays, used)
    except CumaeError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise _broken() from error
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
