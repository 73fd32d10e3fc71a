"""A process that opens an oracle and answers, until its plan ends or it is killed."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import cumae
from cumae import CumaeError, store
from cumae.concepts import Thresholds
from cumae.mechanisms import Coins, Majority
from cumae.predictors.state import restore
from tests.oracles import ROWS
from tests.simulator.history import WIDE
from tests.simulator.history import fitted as small
from tests.simulator.judge import REAL_RELEASE, first_of, phase_of
from tests.states import rows_of

STORE = str(Path(store.__file__).parent)  # signals come at lines of its files
LIMIT = 60  # seconds, after which a process hangs
KINDS = ("everlasting", "large", "release")
BATCH = 60  # queries that are asked at once, when all of them are
MOST_BATCHES = 20


@cache
def fitted(kind: str) -> Any:
    """Return the arrays of a fitted predictor; the noise of each has a name, so wide is it."""
    if kind != "large":
        return small(kind)
    with warnings.catch_warnings(action="ignore"):
        made = cumae.EverlastingPredictor(
            Thresholds(), **WIDE, shard_size=10, growth=1.0, prior=False
        )
        return made.fit(ROWS, (ROWS[:, 0] > 0.3).astype(int)).to_arrays()


@dataclass(frozen=True)
class Fate:
    """What happens to a process.

    Parameters
    ----------
    kind : str
        "none", "leave" (it ends without closing), "kill", "term", "interrupt", "nested" (a signal
        handler asks) or "closing" (one that closes).
    line : int
        After so many lines of the store's code; 0 for a time.
    seconds : float
        When, if it is no line.
    """

    kind: str = "none"
    line: int = 0
    seconds: float = 0.0

    @property
    def signal(self) -> signal.Signals:
        kinds = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "interrupt": signal.SIGINT}
        return kinds.get(self.kind, signal.SIGUSR1)


@dataclass(frozen=True)
class Plan:
    """What a process does.

    Parameters
    ----------
    address : str or Path
        Of the oracle.
    keys : str, or None
        Where its keys are.
    operations : list of tuples
        Names of methods of ``Worker``, and what they are given.
    fate : Fate
        What happens to it.
    pause : float
        Seconds between operations.
    """

    address: Any
    keys: str | None
    operations: list[tuple[Any, ...]]
    fate: Fate = Fate()
    pause: float = 0.0


class Worker:
    """What runs in the process.

    Parameters
    ----------
    plan : Plan
        What to do.
    log : int
        A file to which each event is added by one write, so that a kill loses none.
    """

    def __init__(self, plan: Plan, log: int) -> None:
        self.plan, self._log = plan, log
        self.oracle: Any = None
        self.memory: Any = None  # the predictor that was moved, or was not
        self._calls: list[tuple[int, Any]] = []  # those that run, the innermost one last
        self._n_calls = 0
        self._inside = False  # an operation, so that a signal has something to break off
        self._lines = 0

    def tell(self, *what: Any) -> None:
        os.write(self._log, (json.dumps(what) + "\n").encode())

    def run(self) -> None:
        """Do all of it; never return."""
        status = 1
        try:
            warnings.simplefilter("ignore")
            Majority.release = self._release()  # type: ignore[method-assign]
            signal.signal(signal.SIGINT, self._interrupted)
            signal.signal(signal.SIGTERM, self._terminated)
            signal.signal(signal.SIGUSR1, self._nested)
            if self.plan.fate.line:
                sys.settrace(self._trace)
            for name, *given in self.plan.operations:
                self._attempt(name, partial(getattr(self, name), *given))
                time.sleep(self.plan.pause)
            if self.plan.fate.kind != "leave":
                self._attempt("close", self.close)
            status = 0
        except BaseException:  # noqa: BLE001 - it is told, and is wrong
            self.tell("bare", "between", traceback.format_exc())
        finally:
            os._exit(status)

    def _attempt(self, name: str, action: Callable[[], None]) -> None:
        try:
            self._inside = True
            try:
                action()
                self.tell("done", name)
            finally:
                self._inside = False
        except CumaeError as error:
            self.tell("refused", name, f"{type(error).__name__}: {error}")
        except (SystemExit, KeyboardInterrupt):
            self.tell("broken off", name)
        except BaseException:  # noqa: BLE001 - it is told, and is wrong
            self.tell("bare", name, traceback.format_exc())

    # Signals

    def _trace(self, frame: Any, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(STORE):
            return None
        if event == "line":
            self._lines += 1
            if self._lines == self.plan.fate.line:
                sys.settrace(None)
                os.kill(os.getpid(), self.plan.fate.signal)
        return self._trace

    def _interrupted(self, *_: Any) -> None:
        if self._inside:
            raise KeyboardInterrupt

    def _terminated(self, *_: Any) -> None:
        if self._inside:
            raise SystemExit(1)

    def _nested(self, *_: Any) -> None:
        with suppress(CumaeError):
            if self.plan.fate.kind == "closing":
                self.close()
            elif self.oracle is not None or self.memory is not None:
                self.ask(3)

    # What it asks, and what is drawn for that

    def _release(self) -> Any:
        worker = self

        def release(self: Majority, votes: Any, coins: Coins) -> Any:
            noisy = REAL_RELEASE(self, votes, coins)
            if worker._calls:
                number, oracle = worker._calls[-1]
                first = first_of(oracle, len(votes))
                noise = (noisy - votes)[:, -1].tolist()
                labels = np.argmax(noisy, axis=1).tolist()
                drawn = (phase_of(oracle), first, noise, labels, self.max_queries)
                worker.tell("drew", number, *drawn)
            return noisy

        return release

    def ask(self, count: int, request: int | None = None) -> None:
        """Ask, and tell what was answered when it was; ``request`` names the queries."""
        oracle = self.memory if self.oracle is None else self.oracle
        if oracle is None:
            return
        self._n_calls += 1
        number = self._n_calls
        self.tell("asked", number, request)
        self._calls.append((number, oracle))
        try:
            queries = rows_of(ROWS, request or 0, (request or 0) + count)
            named = {} if request is None else {"request_id": request}
            answers = oracle.predict(queries, **named)
            self.tell("left", number, answers.tolist(), oracle is not self.memory)
        finally:
            self._calls.pop()

    def ask_all(self) -> None:
        """Ask until the next phase has begun, or nothing is answered any more."""
        first = None if self.oracle is None else phase_of(self.oracle)
        for _ in range(MOST_BATCHES):
            if self.oracle is None or phase_of(self.oracle) != first:
                return
            left = getattr(self.oracle, "remaining_", BATCH)
            self.ask(int(min(max(left, 1), BATCH)))

    # What else it does

    def first(self, kind: str) -> None:
        self.memory = restore(fitted(kind))

    def save(self) -> None:
        if self.memory is not None:  # a signal may have come before there was one
            self.memory.save_to(self.plan.address, keys=self.plan.keys)

    def open(self, accept_rollback: bool) -> None:
        if self.oracle is None:
            keys = self.plan.keys
            self.oracle = cumae.open(self.plan.address, keys=keys, accept_rollback=accept_rollback)

    def close(self) -> None:
        oracle, self.oracle = self.oracle, None
        if oracle is not None:
            oracle.close()

    def forget(self) -> None:
        self.oracle = None
        gc.collect()

    def rotate(self) -> None:
        if self.oracle is not None:
            self.oracle.rotate_key()

    def rotate_at_rest(self) -> None:
        self.close()
        store.rotate(self.plan.address, keys=self.plan.keys)

    def backup(self, copy: Any) -> None:
        store.backup(self.plan.address, copy)

    def put_back(self, copy: Any) -> None:
        store.backup(copy, self.plan.address)

    def status(self) -> None:
        found = store.status(self.plan.address, keys=self.plan.keys).totals
        self.tell("status", found.phase, found.used)


class Child:
    """A process that was forked from one that has imported everything and opened nothing.

    Parameters
    ----------
    plan : Plan
        What it does.
    log : Path
        Where it tells what it did.
    """

    def __init__(self, plan: Plan, log: Path) -> None:
        self.plan, self.log = plan, log
        descriptor = os.open(log, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o600)
        self.process = os.fork()
        if self.process == 0:  # pragma: no cover
            Worker(plan, descriptor).run()
        os.close(descriptor)
        self.began = time.monotonic()
        self.status: int | None = None
        self._signalled = plan.fate.line > 0 or plan.fate.kind in {"none", "leave"}

    def send(self, what: signal.Signals) -> None:
        if self.status is None:
            os.kill(self.process, what)

    def look(self) -> bool:
        """Let its fate come when it is time; return whether it has ended."""
        passed = time.monotonic() - self.began
        if not self._signalled and passed >= self.plan.fate.seconds:
            self._signalled = True
            self.send(self.plan.fate.signal)
        if self.status is None:
            process, status = os.waitpid(self.process, os.WNOHANG)
            self.status = status if process else None
        return self.status is not None

    @property
    def hangs(self) -> bool:
        return time.monotonic() - self.began > LIMIT

    @property
    def was_killed(self) -> bool:
        status = self.status
        return status is not None and os.WIFSIGNALED(status) and os.WTERMSIG(status) == 9

    def events(self) -> list[list[Any]]:
        """Return what it told; only the last line can be half of one."""
        told = self.log.read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in told[:-1]]
