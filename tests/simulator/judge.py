"""The judge: counts what left, over all lives together, and knows nothing of how lives are kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cumae.mechanisms import Coins, Majority
from tests.simulator.world import Cell, Process

ROW = 4  # releases whose noise together does not come twice by chance
REAL_RELEASE = Majority.release  # before anything watches it


@dataclass
class Draw:
    """Releases that one call drew: the phase, the number of the first one, noise and labels."""

    phase: int
    first: int
    noise: list[int]
    labels: list[int]


@dataclass
class Call:
    """One call for answers, and what it drew; ``request`` names it for retries."""

    number: int
    oracle: Any
    request: Any = None
    draws: list[Draw] = field(default_factory=list)

    @property
    def labels(self) -> list[int]:
        return [label for draw in self.draws for label in draw.labels]


def phase_of(oracle: Any) -> int:
    """Return the number of the phase that an oracle is in, from 1."""
    phase = getattr(oracle._state_, "phase", None)
    return 1 if phase is None else int(phase.number)


def first_of(oracle: Any, count: int) -> int:
    """Return the number of the first of some releases that are being drawn, from 0.

    They were counted before.
    """
    return int(oracle._state_.spent.asked) - count


def debited(texts: Iterable[str]) -> tuple[int, int]:
    """Return the phase and how many of its releases are used, as ledger entries say."""
    phase = used = 0
    for text in texts:
        facts = json.loads(text)
        facts = facts.get("totals", facts)
        phase, used = facts.get("phase", phase), facts.get("used", used)
    return phase, used


class Judge:
    """Keeps every release that left, and says what is wrong with them."""

    def __init__(self) -> None:
        self.calls: list[tuple[Process, Call]] = []  # those that run, the innermost one last
        self.n_calls = 0
        self.left: dict[tuple[int, int], tuple[int, int]] = {}  # phase, number -> call, noise
        self.noise: dict[tuple[int, ...], tuple[int, int, int]] = {}  # -> phase, number, call
        self.paid: dict[int, int] = {}  # releases of each phase
        self.uses: set[str] = set()  # that an account has paid for
        self.requests: dict[Any, list[Call]] = {}  # that drew something, whether it left or not
        self.wrong: list[str] = []
        self.counts: Counter[str] = Counter()

    def say(self, what: str) -> None:
        self.wrong.append(what)

    # What a call draws

    def begin(self, process: Process, oracle: Any, request: Any = None) -> Call:
        self.n_calls += 1
        call = Call(self.n_calls, oracle, request)
        self.calls.append((process, call))
        return call

    def end(self, call: Call) -> None:
        self.calls = [one for one in self.calls if one[1] is not call]
        if call.request is not None and call.draws:
            self.requests.setdefault(call.request, []).append(call)

    def drawn(self, process: Process, mechanism: Majority, *drawn: list[int]) -> None:
        """Take down releases that are being drawn, for the innermost call of a process."""
        own = [call for asking, call in self.calls if asking is process]
        if own:
            oracle = own[-1].oracle
            phase = phase_of(oracle)
            self.paid.setdefault(phase, mechanism.max_queries)
            own[-1].draws.append(Draw(phase, first_of(oracle, len(drawn[0])), *drawn))

    # What leaves

    def acknowledged(self, call: Call, answers: Any, cell: Cell | None) -> None:
        """Take down answers that left; ``cell`` is the home they came from, None for memory."""
        given = answers.tolist()
        self.counts["answers"] += len(given)
        if not call.draws:
            same = [one for one in self.requests.get(call.request, []) if one.labels == given]
            if not same:
                self.say(f"call {call.number} drew nothing, and is no retry")
            if len(same) != 1:
                return  # nobody can tell which one it is
            self.counts["retries"] += 1
            call = same[0]
            cell = None  # the mark has its debit, if the one who drew it was killed before a sync
        for draw in call.draws:
            self._leaves(call, draw)
        last = call.draws[-1]
        if cell is not None:
            wanted = (last.phase, last.first + len(last.noise))
            if max(map(debited, cell.committed), default=(0, 0)) < wanted:
                self.say(f"call {call.number} left without a debit on the disk")

    def paid_for(self, use: str, texts: set[str] | None, cap: int) -> None:
        """Take down that an account let a use begin; ``texts`` are on disks, None for memory."""
        self.counts["payments"] += 1
        self.uses.add(use)
        if len(self.uses) > cap:
            self.say(f"{use} left: {len(self.uses)} uses were paid from an account for {cap}")
        if texts is not None and not any(f'"{use}"' in text for text in texts):
            self.say(f"{use} left without a debit on the disk")

    def _leaves(self, call: Call, draw: Draw) -> None:
        for number, noise in enumerate(draw.noise, draw.first):
            place, known = (draw.phase, number), (call.number, noise)
            if self.left.setdefault(place, known) != known:
                self.say(f"release {number} of phase {draw.phase} left twice")
            if number >= self.paid[draw.phase]:
                self.say(f"release {number} of phase {draw.phase} was not paid for")
        rows = zip(*(draw.noise[start:] for start in range(ROW)), strict=False)
        for number, row in enumerate(rows, draw.first):
            where = (draw.phase, number, call.number)
            if self.noise.setdefault(row, where) != where:
                self.say(f"the noise of release {number} of phase {draw.phase} was used before")

    def forget(self) -> None:
        """Let go of all oracles."""
        self.calls.clear()
        self.requests.clear()

    def verdict(self) -> list[str]:
        """Return what is wrong, after the last life has ended."""
        sums = Counter(phase for phase, _ in self.left)
        for phase, count in sums.items():
            if count > self.paid[phase]:
                self.say(f"{count} releases of phase {phase} left; {self.paid[phase]} were paid")
        return self.wrong


def watched(judge: Any) -> Any:
    """Return a ``Majority.release`` that lets a judge see what is drawn.

    ``judge()`` returns the judge and the process that runs.
    """

    def release(self: Majority, votes: Any, coins: Coins) -> Any:
        noisy = REAL_RELEASE(self, votes, coins)
        found, process = judge()
        noise = (noisy - votes)[:, -1].tolist()
        found.drawn(process, self, noise, np.argmax(noisy, axis=1).tolist())
        return noisy

    return release
