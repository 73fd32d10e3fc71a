"""Play the game many times in both worlds, and bound what the adversary learnt."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats
from cumae.audit.bounds import Chances, at_least, at_most
from cumae.audit.distinguishers import Distinguisher, Score, first_number
from cumae.audit.game import Driver, Game
from cumae.audit.results import MEASURES, Audit, Claimed, error_of, measured
from cumae.claims import claim
from cumae.errors import InvalidParameter, shown
from cumae.parameters import check_count
from cumae.progress import Progress
from cumae.randomness import SYSTEM, integers
from cumae.workers import parallel

WARM_UP, PILOT = 2, 4  # runs of each world that tell how long one takes, and are thrown away
START_UP = 20.0  # seconds to wait, at most, until all processes are there
PILOT_SHARE = 0.05  # of the time: shorter pilots measure how processes wake up
TASKS = 200  # parts into which runs are cut: each of them sends the attack to a process
LEAST_RUNS = 20
CANDIDATES = 200  # events to choose from


@dataclass(frozen=True)
class Attack:
    """Two worlds, a strategy and a promise.

    Parameters
    ----------
    name : str
        What the attack does, in a few words.
    make : callable
        Returns a new driver; called once for each run.
    play : callable from Game to numbers
        The adversary: moves in a :class:`~cumae.audit.game.Game`, and returns numbers about what
        it saw. Higher values of the first speak for world 1 unless there is another rule.
    claimed : Claimed
        What is promised.
    distinguish : Distinguisher, or None
        How numbers become a guess; learnt on runs that are not used for the bound. None takes the
        first number as it is.
    """

    name: str
    make: Callable[[], Driver]
    play: Callable[[Game], ArrayLike]
    claimed: Claimed
    distinguish: Distinguisher | None = None

    def __post_init__(self) -> None:
        if not callable(self.make):
            raise InvalidParameter(
                f"make={shown(self.make)} of the attack {self.name!r} is no function; give one "
                "that returns a new driver, such as lambda: InProcess(lambda: ...)."
            )


@claim("AUDIT")
def audit(
    attack: Attack,
    *,
    runs: int = 2_000,
    seconds: float = math.inf,
    confidence: float = 0.95,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Audit:
    """Play an attack in both worlds, and bound from below what it proves.

    Half of the runs choose an event for each measure, the other half counts it. Clopper-Pearson
    bounds of both chances of all events together are wrong with chance 1 - ``confidence``.

    Parameters
    ----------
    attack : Attack
        What to play.
    runs : int of 20 or more
        Runs in each world, at most: half of them choose events and half are counted, so that one is
        left out of an odd number. At least 20.
    seconds : float above 0
        About how long it may take, apart from starting processes. A few runs that do not count
        tell how many fit in; at least 20 are played.
    confidence : float above 0 and below 1
        Of all bounds together.
    n_jobs : int or None
        Processes, as in joblib.
    progress : bool or None
        Whether to show a bar; None shows one for long work on a terminal.

    Examples
    --------
    >>> from cumae.audit import audit
    >>> from cumae.audit.attacks.predictors import release_row
    >>> found = audit(release_row(epsilon=1.0), runs=20)
    >>> print(found)
    QueryRelease, a training row: claimed epsilon 0.99... at delta 1e-06, measured ...
    """
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence={confidence!r} is not between 0 and 1; give 0.95, say.")
    if not seconds > 0:
        raise InvalidParameter(f"seconds={seconds!r} is not above 0.")
    check_count(runs, "runs", least=LEAST_RUNS)
    seen = _play_all(attack, runs - runs % 2, seconds, n_jobs, progress)
    half = seen.shape[1] // 2
    score: Score = first_number
    if attack.distinguish is not None:
        worlds = np.repeat([0, 1], half)
        score = attack.distinguish(np.concatenate(seen[:, :half]), worlds)
    first = np.array([score(world) for world in seen[:, :half]])
    second = np.array([score(world) for world in seen[:, half:]])
    error = error_of(confidence)
    found = {}
    for name in MEASURES:
        measure = partial(measured, name, attack.claimed.delta)
        found[name] = measure(_best_event(first, measure, error).chances(second, error))
    return Audit(attack.name, attack.claimed, confidence, half, **found, curve=_curve(second))


@dataclass(frozen=True)
class BestEvent:
    """A score of at least ``cut``, or below it, that should be likelier in one of the worlds."""

    cut: float
    above: bool
    likely_world: int

    def chances(self, scores: Floats, error: float) -> Chances:
        """Bound both chances from runs of both worlds."""
        runs = scores.shape[1]
        hits = ((scores >= self.cut) == self.above).sum(axis=1)
        likely, rare = hits[self.likely_world], hits[1 - self.likely_world]
        return Chances(float(at_least(likely, runs, error)), float(at_most(rare, runs, error)))


def _best_event(scores: Floats, value: Callable[[Chances], float], error: float) -> BestEvent:
    """Return the event that would prove most on these runs."""
    cuts = np.unique(np.quantile(scores, np.linspace(0, 1, CANDIDATES), method="nearest"))
    events = [
        BestEvent(float(cut), above, world)
        for cut in cuts
        for above in (True, False)
        for world in (0, 1)
    ]
    return max(events, key=lambda event: value(event.chances(scores, error)))


def _curve(scores: Floats) -> tuple[tuple[float, float], ...]:
    """Return false alarms and misses of the rule "world 1 if the score is at least c"."""
    cuts = np.unique(np.quantile(scores, np.linspace(0, 1, CANDIDATES), method="nearest"))
    return tuple(
        (round(float((scores[0] >= cut).mean()), 5), round(float((scores[1] < cut).mean()), 5))
        for cut in cuts
    )


def _play_all(
    attack: Attack, runs: int, seconds: float, n_jobs: int | None, progress: bool | None
) -> NDArray[np.float64]:
    """Return what was seen: worlds, runs, numbers. Both worlds have the same number of runs.

    How many there are is fixed before the first that counts: a run may be short because of what
    came out of it, so the clock must not stop them.

    Parameters
    ----------
    attack : Attack
        What is played.
    runs : int of 1 or more
        Runs in each world, at most.
    seconds : float above 0
        Time for all of them; infinity for no limit.
    n_jobs : int or None
        Number of processes, as in joblib.
    progress : bool or None
        Whether to show a bar; None shows it on a terminal.
    """
    found: list[Any] = []
    errors: list[tuple[str, ...]] = []
    with parallel(n_jobs=n_jobs, return_as="generator") as pool:
        if seconds < math.inf:
            runs = _affordable(attack, pool, effective_n_jobs(n_jobs), runs, seconds)
        size = -(-runs // TASKS)
        sizes = [min(size, runs - start) for start in range(0, runs, size)]
        with Progress(f"attack: {attack.name}", runs, progress) as bar:
            for pairs in pool(delayed(_pairs)(attack, count) for count in sizes):
                found += [pair.numbers for pair in pairs]
                errors += [moves for pair in pairs for moves in pair.errors]
                bar.advance(len(pairs))
    for move, told in enumerate(zip(*errors, strict=False), start=1):  # up to the shortest run
        if told[0] and len(set(told)) == 1:
            raise InvalidParameter(
                f"move {move} of the attack {attack.name!r} failed in every run, always because of "
                f"{told[0]!r}; let it ask what can be answered."
            )
    lengths = sorted({len(numbers) for pair in found for numbers in pair})
    if len(lengths) > 1:
        raise InvalidParameter(
            f"the strategy of {attack.name!r} returned from {lengths[0]} to {lengths[-1]} numbers; "
            "give the same number of them in each run."
        )
    played = np.array(found, dtype=np.float64)  # run, world, numbers
    return np.asarray(played.transpose(1, 0, 2))


def _affordable(attack: Attack, pool: Any, workers: int, runs: int, seconds: float) -> int:
    """Return how many runs fit into the time, an even number, by pilots that do not count.

    Parameters
    ----------
    attack : Attack
        What is played.
    pool : joblib.Parallel
        Joblib's pool of workers.
    workers : int of 1 or more
        How many they are.
    runs : int of 1 or more
        Runs in each world, at most.
    seconds : float above 0
        Time for all of them, pilots included.
    """

    def play(count: int) -> float:
        start = time.monotonic()
        for _ in pool(delayed(_pairs)(attack, count) for _ in range(workers)):
            continue
        return max(time.monotonic() - start, 1e-9)

    awake: set[Any] = set()
    end = time.monotonic() + START_UP
    while len(awake) < workers and time.monotonic() < end:  # the first one may do all of it
        awake |= set(pool(delayed(_wake)(attack) for _ in range(workers)))
    count = PILOT
    spent = taken = play(count)
    while taken < PILOT_SHARE * seconds and 2 * count * workers < runs:
        count *= 2
        taken = play(count)
        spent += taken
    fitting = count * workers * (seconds - spent) / taken
    return int(min(runs, max(LEAST_RUNS, fitting))) // 2 * 2


def _wake(attack: Attack) -> tuple[int, int]:
    """Import and compile what the attack needs, and tell who did."""
    _pairs(attack, WARM_UP)
    return os.getpid(), threading.get_ident()


class Pair(NamedTuple):
    """What one run in each world returned, and the errors of its moves."""

    numbers: list[Floats]
    errors: list[tuple[str, ...]]


def _pairs(attack: Attack, count: int) -> list[Pair]:
    return [_pair(attack) for _ in range(count)]


def _pair(attack: Attack) -> Pair:
    """Play one run in each world, in random order."""
    first = int(integers(2, 1, SYSTEM)[0])
    games = {world: Game(attack.make(), world) for world in (first, 1 - first)}
    played = {world: _numbers(attack, game) for world, game in games.items()}
    if not any(game.differed for game in games.values()):
        raise InvalidParameter(
            f"the two worlds of the attack {attack.name!r} do not differ; give train, ask or "
            "supply two versions of which one row or query is not the same."
        )
    return Pair([played[0], played[1]], [game.errors for game in games.values()])


def _numbers(attack: Attack, game: Game) -> Floats:
    """Let the adversary play, and return its list of numbers."""
    try:
        given = attack.play(game)
    except Exception as error:
        error.add_note(f"This happened in the attack {attack.name!r}.")
        raise
    try:
        found = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        found = np.array([np.nan])
    if found.ndim > 1 or not found.size or np.isnan(found).any():
        told = next(filter(None, game.errors), "")
        why = f" It was told {told!r} in the place of answers." if told else ""
        raise InvalidParameter(
            f"the strategy of {attack.name!r} returned {shown(given)}; return a number, or a list "
            f"of them.{why}"
        )
    return found
