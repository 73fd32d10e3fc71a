"""One history of real processes: what files and databases have in common."""

from __future__ import annotations

import random
import shutil
import signal
import tempfile
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import cumae
from cumae.predictors.state import restore
from tests.oracles import ROWS
from tests.real.worker import KINDS, Child, Fate, Plan, fitted
from tests.simulator.judge import Call, Draw, Judge, debited
from tests.simulator.world import Cell
from tests.states import rows_of

STEPS = (4, 10)  # of a history, at least and at most
LINES = 2_000  # of the store's code, after which a signal comes at most
SECONDS = 0.1  # the same, if it comes at a time: an opening takes a quarter of it,
COMMANDS = 4  # and so many times as long with a command for keys
SIZES = ((1, 1, 2, 2, 3, 4, 40), (1, 3, 10, 30, 60, 60, 300))  # of batches; small, large phases
REQUESTS = 6  # that may be asked again
WAIT = 0.002  # between looks at a process
SIGNALS = ("term", "interrupt", "nested", "closing")
USES = {  # what a life does, and how often
    "ask": 12.0,
    "request": 4.0,
    "rotate": 0.5,
    "again": 1.0,
    "forget": 0.5,
    "backup": 0.7,
    "status": 0.5,
    "rotate_at_rest": 0.3,
}
SCRIPT = """cd "$1" && case $2 in
list) ls ;;
get) cat "$3" ;;
put) cat > ".$$" && test -s ".$$" && mv ".$$" "$3" ;;
delete) rm -f "$3" ;;
esac
"""


def warm_up() -> None:
    """Let everything be imported and compiled before processes are forked."""
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            restore(fitted(kind)).save_to(Path(folder) / "a.db")
            one = cumae.open(Path(folder) / "a.db")
            one.predict(rows_of(ROWS, 0, 12))
            one.close()


class RealHistory(ABC):
    """One history.

    Parameters
    ----------
    seed : int
        Decides what is done; when a signal at a time comes is up to the machine.
    folder : Path
        A new folder for all of it.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - it hides nothing
        self.folder, self.judge = folder, Judge()
        self.counts: Counter[str] = Counter()
        self.told: list[str] = []
        self.kind = self.rng.choice(KINDS)
        self.copying = self.rng.random() < self.share_of_copies
        self.signals = [one for one in SIGNALS if self.rng.random() < 0.5] or ["kill"]
        store = self.rng.choice(self.key_stores)
        self.keys, self.seconds = (
            self._keys(store),
            SECONDS * (COMMANDS if store == "command" else 1),
        )
        self._n_logs = 0

    key_stores: tuple[str, ...]
    share_of_copies = 0.7  # of all histories

    def _keys(self, kind: str) -> str | None:
        if kind == "beside":
            return None
        if kind == "folder":
            return f"folder:{self.folder / 'keys'}"
        script, where = self.folder / "keys.sh", self.folder / "elsewhere"
        script.write_text(SCRIPT, encoding="utf-8")
        where.mkdir()
        return f"sh {script} {where}"

    # Plans

    def fate(self, share: float = 0.7) -> Fate:
        if self.rng.random() > share:
            return Fate(self.rng.choice(("none", "leave")))
        kind = self.rng.choice(("kill", self.rng.choice(self.signals)))
        if self.rng.random() < 0.5:
            return Fate(kind, line=int(LINES ** self.rng.random()))
        return Fate(kind, seconds=self.rng.uniform(0.0, self.seconds))

    def plan(self, address: Any, least: int = 1, share: float = 0.7) -> Plan:
        """Return a random plan of one life, with so many uses at least.

        Something happens to a share of all lives.
        """
        accept = self.copying and self.rng.random() < 0.8
        operations: list[tuple[Any, ...]] = [("open", accept)]
        for name in self.rng.choices(list(USES), list(USES.values()), k=self.rng.randint(least, 8)):
            if name == "ask":
                operations.append((name, self.rng.choice(SIZES[self.kind == "large"])))
            elif name == "request":
                operations.append(("ask", 4, self.rng.randrange(1, REQUESTS)))
            elif name == "backup":
                operations.append((name, self.new_copy()))
            else:
                operations.append(("close",) if name == "again" else (name,))
            if name in {"again", "forget", "rotate_at_rest"}:
                operations.append(("open", accept))
        pause = self.rng.choice((0.0, 0.002, 0.02))
        return Plan(address, self.keys, operations, self.fate(share), pause)

    @abstractmethod
    def new_copy(self) -> Path:
        """Return where a copy may go."""

    # Processes

    def start(self, plan: Plan) -> Child:
        self._n_logs += 1
        self.told.append(f"process {self._n_logs}: {plan}")
        self.counts["processes"] += 1
        return Child(plan, self.folder / f"log-{self._n_logs}")

    def watch(self, children: Iterable[Child], seconds: float | None = None) -> None:
        """Let processes run until all have ended, or for some seconds."""
        children, began = list(children), time.monotonic()
        while sum(child.look() for child in children) < len(children):
            time.sleep(WAIT)
            if seconds is not None and time.monotonic() - began > seconds:
                return
            for child in children:
                if child.hangs and child.status is None:
                    self.judge.say("a process hangs")
                    child.send(signal.SIGKILL)

    def finish(self, children: list[Child], *, debits: bool = True) -> None:
        """Wait for the end of processes, and judge what they gave."""
        self.watch(children)
        self.counts["kills"] += sum(child.was_killed for child in children)
        told = [child.events() for child in children]
        calls = [self._calls(events) for events in told]
        for child, events, known in zip(children, told, calls, strict=True):
            self.told += [str(event) for event in events if event[0] != "drew"]
            self._judge(child, events, known, debits=debits)

    def _calls(self, events: list[list[Any]]) -> dict[int, Call]:
        """Return the calls of a process with what they drew, whether it left or not."""
        calls: dict[int, Call] = {}
        for what, *given in events:
            if what == "asked":
                self.judge.n_calls += 1
                calls[given[0]] = Call(self.judge.n_calls, None, given[1])
            elif what == "drew":
                number, *drawn, paid = given
                draw = Draw(*drawn)
                self.judge.paid.setdefault(draw.phase, paid)
                calls[number].draws.append(draw)
                self.counts["releases"] += len(draw.noise)
        for call in calls.values():
            if call.request is not None and call.draws:
                self.judge.requests.setdefault(call.request, []).append(call)
        return calls

    def _judge(
        self, child: Child, events: list[list[Any]], calls: dict[int, Call], *, debits: bool
    ) -> None:
        cell: Cell | None = None
        for what, *given in events:
            self.counts[what] += what in {"done", "refused", "broken off"}
            if what == "left":
                number, answers, durable = given
                if durable and debits and cell is None:
                    cell = Cell()
                    cell.committed.append(self.ledger(child.plan.address))
                kept = cell if durable and debits else None
                self.judge.acknowledged(calls[number], np.asarray(answers), kept)
            elif what == "bare":
                self.judge.say(f"{given[0]} raised {given[1]}")

    @abstractmethod
    def ledger(self, address: Any) -> list[str]:
        """Return what the ledger of an oracle says, as a loss of all processes left it."""

    # All of it

    def run(self) -> list[str]:
        """Run it; return what is wrong."""
        self.first()
        for _ in range(self.rng.randint(*STEPS)):
            self.counts["steps"] += 1
            self.step()
            if self.judge.wrong:
                break
        self.epilogue()
        return self.judge.verdict()

    @abstractmethod
    def first(self) -> None:
        """Make the oracle."""

    @abstractmethod
    def step(self) -> None:
        """Do something."""

    @abstractmethod
    def addresses(self) -> list[Any]:
        """Return where oracles are."""

    def epilogue(self) -> None:
        """Open what is left and use it up; whoever goes on has paid for all that ever left."""
        found = self.addresses()
        self.rng.shuffle(found)
        went_on = False
        for address in found:
            operations = [("open", self.copying), ("ask_all",), ("close",), ("status",)]
            child = self.start(Plan(address, self.keys, operations))
            self.finish([child])
            done = [given for what, *given in child.events() if what == "done"]
            refusals = [given for what, *given in child.events() if what == "refused"]
            if ["open"] not in done:
                self.counts["lines that ended"] += 1
                if not self.copying:
                    self.judge.say(f"no copies, and still it is refused: {refusals}")
                continue
            went_on = True
            if ["status"] not in done:
                self.judge.say(f"it opens, but does not verify: {refusals}")
            used = debited(self.ledger(address))
            last = max(self.judge.left, default=(0, -1))
            if used < (last[0], last[1] + 1):
                self.judge.say(f"release {last} left, and the ledger at the end says {used}")
        self.counts["oracles that went on"] += went_on
        self.counts["phases"] += len({phase for phase, _ in self.judge.left})


def played(kind: type[RealHistory], seed: int, *given: Any) -> tuple[RealHistory, list[str]]:
    """Run the history of a seed; return it, and what is wrong."""
    folder = Path(tempfile.mkdtemp(prefix="cumae-lives-"))
    try:
        history = kind(seed, folder, *given)
        wrong = history.run()
    finally:
        with suppress(OSError):  # a command that outlived its caller may still write
            shutil.rmtree(folder)
    return history, wrong
