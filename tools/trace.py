"""Show the way of one training row through ``fit``, and of one query through ``predict``.

    python tools/trace.py
    python tools/trace.py --calls [--json FILE]

The first takes a minute or two and prints both of the following parts; the second prints the calls
only. ``benchmarks/results/trace_before.json`` was written by it before calls and events were made
anew, and a test holds today's figures against that.

*Hops.* One row is marked by cells that no other row has. A hop is a call from one module of cumae
into another one that gets or returns cells of the marked row, in an array, a data frame, a list or
a tuple. The table that the user gave does not count as long as it is handed on unopened. Each line
is a module, indented below its caller. A module that is entered a second time, after it was left,
is marked by an exclamation mark. To come back to a caller is not to enter it again.

*Calls.* A durable oracle answers one query, in a file on disk. A function of cumae counts each time
that it is called, and a generator each time that it goes on. Comprehensions do not count, because
newer versions of Python make no call of them.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Self

import numpy as np
import pandas as pd

import cumae
from cumae import EverlastingPredictor
from cumae.concepts import Thresholds
from cumae.ensembles.ensemble import Ensemble
from cumae.errors import TooFewRows
from cumae.randomness import SeededSource

N = 4000
KINDS = ("one column", "columns and prior")
DURABLE_KINDS = ("thresholds", "trees with a prior")
VOTING, TRIED = 51, 20  # rows that the coins below give to the votes, and to the choice of trust
NAMES = ("a training row through fit", "a query through predict")
DEEP = 4  # lists within lists that are looked into
WARM_UP_ANSWERS = 5
COUNTED_ANSWERS = 9  # the one with the median number of calls is shown: noise may need another draw
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}


@dataclass
class Visit:
    """A stay in a module, with all calls that it makes from there."""

    module: str
    depth: int
    seen: bool = False  # whether the marked cells came or left here


@dataclass
class Way:
    """The modules that a marked row comes to, in the order in which it enters them."""

    visits: list[Visit] = field(default_factory=list)

    @property
    def modules(self) -> list[str]:
        """The modules, each of them once."""
        return list(dict.fromkeys(visit.module for visit in self.hops))

    @property
    def hops(self) -> list[Visit]:
        """The visits that the row takes part in."""
        return [visit for visit in self.visits if visit.seen]

    @property
    def again(self) -> list[str]:
        """Modules that are entered a second time after they were left."""
        entered = [visit.module for visit in self.hops]
        return [module for place, module in enumerate(entered) if module in entered[:place]]

    def __str__(self) -> str:
        lines, known = [], set()
        for visit in self.hops:
            mark = "! " if visit.module in known else "  "
            lines.append(f"{mark}{'  ' * visit.depth}{visit.module}")
            known.add(visit.module)
        return "\n".join(lines)


class Tracer:
    """Follows the marked cells through all calls of this thread while it is active.

    Parameters
    ----------
    cells : sequence of float
        Values that only the marked row has.
    given : array or DataFrame
        The table of the user, which holds the row.
    """

    def __init__(self, cells: Sequence[float], given: Any) -> None:
        self.cells, self.way = set(cells), Way()
        self._given, self._own = given, list(_arrays(given, DEEP))
        self._stack: list[tuple[Any, Visit | None]] = []
        self._open: list[Visit] = []

    def __enter__(self) -> Self:
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _event(self, frame: Any, event: str, value: Any) -> None:
        if event == "call":
            self._called(frame)
        elif event == "return":
            self._returned(frame, value)

    def _called(self, frame: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith("cumae."):
            return
        code = frame.f_code
        if not self._open or self._open[-1].module != module:
            visit = Visit(module, len(self._open))
            self._open.append(visit)
            self.way.visits.append(visit)
            self._stack.append((frame, visit))
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4)
        names = code.co_varnames[:count]
        if any(self.holds(frame.f_locals.get(name)) for name in names):
            self._open[-1].seen = True

    def _returned(self, frame: Any, value: Any) -> None:
        if not frame.f_globals.get("__name__", "").startswith("cumae."):
            return
        if self.holds(value):
            self._open[-1].seen = True
        if self._stack and self._stack[-1][0] is frame:
            self._stack.pop()
            self._open.pop()

    def holds(self, value: Any) -> bool:
        """Tell whether a value holds marked cells, and is not the user's own table."""
        if value is self._given:
            return False
        return any(
            not any(np.may_share_memory(array, own) for own in self._own) and self._marked(array)
            for array in _arrays(value, DEEP)
        )

    def _marked(self, array: Any) -> bool:
        if array.dtype.kind == "O":
            return any(type(cell) is float and cell in self.cells for cell in array.flat)
        return array.dtype.kind == "f" and bool(np.isin(array, list(self.cells)).any())


def _arrays(value: Any, deep: int) -> Iterator[Any]:
    """Return the arrays that a container consists of."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, pd.Series):
        yield value.to_numpy()
    elif isinstance(value, pd.DataFrame):
        for place in range(value.shape[1]):
            yield value.iloc[:, place].to_numpy()
    elif isinstance(value, list | tuple) and deep:
        if value and all(type(cell) is float for cell in value):
            yield np.array(value)
        else:
            for part in value:
                yield from _arrays(part, deep - 1)
    elif type(value) is float:
        yield np.array([value])


def table(kind: str) -> tuple[Any, np.ndarray[Any, Any]]:
    """Return rows and labels; all numbers are exact in 32 bits, so that rounding keeps them."""
    rng = np.random.default_rng(0)
    numbers = rng.permutation(2**20)[: 2 * N].reshape(N, 2) / 2.0**20
    labels = (numbers[:, 0] > 0.4).astype(int)
    if kind == "one column":
        return numbers[:, :1], labels
    words = rng.choice(["farmer", "baker", "nurse"], N)
    return pd.DataFrame({"size": numbers[:, 0], "age": numbers[:, 1], "job": words}), labels


def predictor(kind: str) -> EverlastingPredictor:
    """Return what is traced: thresholds of one column, or the default with columns and a prior."""
    if kind == "one column":
        return EverlastingPredictor(Thresholds(), 3.0, prior=False, random_state=SeededSource(1))
    declared = {"size": (0, 1), "age": (0, 1), "job": ["farmer", "baker", "nurse"]}
    return EverlastingPredictor(None, 3.0, columns=declared, random_state=SeededSource(1))


def marked_cells(row: Any) -> list[float]:
    """Return the cells of a row that no other row has."""
    return [cell for cell in np.ravel(row).tolist() if type(cell) is float]


def ways(kind: str, place: int = VOTING) -> tuple[Way, Way]:
    """Return the way of a training row through ``fit``, and of a query through ``predict``.

    Parameters
    ----------
    kind : {"one column", "columns and prior"}
        What is traced.
    place : int
        Which training row is marked.
    """
    given, labels = table(kind)
    last = N - 10
    rows = given[:last].copy()
    row, query = given[place : place + 1], given[last : last + 1].copy()
    one = predictor(kind)
    with Tracer(marked_cells(row), rows) as fitting:
        one.fit(rows, labels[:last])
    with Tracer(marked_cells(query), query) as asking:
        one.predict(query)
    return fitting.way, asking.way


def report(kind: str, show: Callable[[str], Any] = print) -> None:
    """Print both ways."""
    for name, way in zip(NAMES, ways(kind), strict=True):
        show(f"{kind}: {name}, {len(way.modules)} modules, {len(way.again)} entered again")
        show(f"{way}\n")


@dataclass(frozen=True)
class AnswerCalls:
    """The calls of our functions that one answer takes, in the thread that asks.

    Parameters
    ----------
    frames_before_votes : int
        Functions that are on the stack when votes are counted, by the first ``Ensemble.votes``.
    calls_before_votes : int
        Calls until then.
    calls : int
        Calls in all.
    deepest : int
        Most functions that are on the stack at a time.
    modules : int
        Modules that these functions are in.
    """

    frames_before_votes: int
    calls_before_votes: int
    calls: int
    deepest: int
    modules: int


class CallCounter:
    """Counts the calls of our functions in this thread while it is active."""

    def __init__(self) -> None:
        self._depth = self._deepest = self._calls = 0
        self._modules: set[str] = set()
        self._before_votes: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event not in ("call", "return") or not (module + ".").startswith("cumae."):
            return
        if frame.f_code.co_name in COMPREHENSIONS:
            return
        if event == "return":
            self._depth -= 1
            return
        if frame.f_code is Ensemble.votes.__code__ and self._before_votes is None:
            self._before_votes = self._depth, self._calls
        self._modules.add(module)
        self._calls += 1
        self._depth += 1
        self._deepest = max(self._deepest, self._depth)

    @property
    def found(self) -> AnswerCalls:
        """The counts; it refuses if no votes were counted."""
        if self._before_votes is None:
            raise ValueError("no votes were counted: Ensemble.votes was not called.")
        return AnswerCalls(*self._before_votes, self._calls, self._deepest, len(self._modules))


def durable_oracle(kind: str, path: Path) -> tuple[EverlastingPredictor, np.ndarray[Any, Any]]:
    """Return a fitted oracle that lives in a new file, and queries for it.

    Parameters
    ----------
    kind : {"thresholds", "trees with a prior"}
        Thresholds of one column without a prior, or the default with two declared columns.
    path : Path
        The file.
    """
    rows, labels = table("one column") if kind == "thresholds" else table("columns and prior")
    if kind == "thresholds":
        one = EverlastingPredictor(Thresholds(), 3.0, prior=False)
    else:  # columns of numbers, as servers get them: cells of a data frame are read one by one
        rows = rows[["size", "age"]].to_numpy()
        one = EverlastingPredictor(None, 3.0, columns=[(0, 1), (0, 1)])
    last = N - WARM_UP_ANSWERS - COUNTED_ANSWERS
    one.fit(rows[:last], labels[:last]).save_to(path)
    found: EverlastingPredictor = cumae.open(path)
    return found, rows[last:]


def durable_calls(kind: str) -> AnswerCalls:
    """Return the calls that one answer of a durable oracle takes, as of ``durable_oracle``."""
    with tempfile.TemporaryDirectory() as folder:
        oracle, queries = durable_oracle(kind, Path(folder) / "oracle.db")
        counted = []
        for place in range(len(queries)):
            with CallCounter() as counter:
                oracle.predict(queries[place : place + 1])
            counted.append(counter.found)
        oracle.close()
    return sorted(counted[WARM_UP_ANSWERS:], key=lambda one: one.calls)[COUNTED_ANSWERS // 2]


def report_calls(file: Path | None = None, show: Callable[[str], Any] = print) -> None:
    """Print a table of the calls of durable oracles, and write it as JSON if a file is given."""
    found = {kind: asdict(durable_calls(kind)) for kind in DURABLE_KINDS}
    show("one query through predict of a durable oracle" + "".join(f"{k:>22}" for k in found))
    for name in next(iter(found.values())):
        values = "".join(f"{counts[name]:>22}" for counts in found.values())
        show(f"{name.replace('_', ' '):<45}{values}")
    if file is not None:
        told = {
            "command": "python tools/trace.py --calls --json FILE",
            "python": platform.python_version(),
            "answers": found,
        }
        file.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Read the command line, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", action="store_true", help="print the calls only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the calls as JSON, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore", TooFewRows)  # what is counted does not depend on accuracy
    for kind in () if options.calls else KINDS:
        report(kind)
    report_calls(options.json)


if __name__ == "__main__":
    main()
