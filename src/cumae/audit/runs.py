"""Play the game many times in both worlds, and bound what the adversary learnt."""

from __future__ import annotations

import math
import os
import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from cumae.arrays import Floats
from cumae.audit.bounds import Chances, at_least, at_most
from cumae.audit.distinguishers import Distinguisher, Score, first_number
from cumae.audit.game import Driver, Game
from cumae.audit.results import (
    MEASURES,
    RELEASES,
    WHOLE,
    Audit,
    Claimed,
    best_bound,
    error_of,
    measured,
)
from cumae.claims import claim
from cumae.errors import CumaeError, InvalidParameter, shown
from cumae.parameters import check_count
from cumae.progress import Progress
from cumae.randomness import SYSTEM, integers
from cumae.workers import parallel

WARM_UP, PILOT = 2, 4  # runs of each world that tell how long one takes, and are thrown away
START_UP = 20.0  # seconds to wait, at most, until all processes are there
PILOT_SHARE = 0.05  # of the time: shorter pilots measure how processes wake up
FEW_DRAWS = 50  # draws of a release that tell how long one takes
LEAST_DRAWS = 4_000  # of a release, if they take no more than half of the time beside the rest
GAMES = 2  # of each process, in which all runs of a release are played
TASKS = 200  # parts into which runs are cut: each of them sends the attack to a process
LEAST_RUNS = 20
MOST_TO_TELL = 10**9
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
    level : {"whole", "releases"}
        What is done anew in each run. With "releases", one game serves many runs: ``play`` trains,
        calls ``game.releases()``, and returns numbers for each of the draws.
    not_covered : str
        What the attack leaves out, in a sentence.
    plant : callable or None
        Returns a new driver with a bug, which the attack should catch.
    planted : str
        The bug in a few words.
    """

    name: str
    make: Callable[[], Driver]
    play: Callable[[Game], ArrayLike]
    claimed: Claimed
    distinguish: Distinguisher | None = None
    level: str = WHOLE
    not_covered: str = ""
    plant: Callable[[], Driver] | None = None
    planted: str = ""

    def __post_init__(self) -> None:
        if not callable(self.make):
            raise InvalidParameter(
                f"make={shown(self.make)} of the attack {self.name!r} is no function; give one "
                "that returns a new driver, such as lambda: InProcess(lambda: ...)."
            )

    @property
    def on_plant(self) -> Attack | None:
        """The same attack on a driver with a bug; None if there is none."""
        if self.plant is None:
            return None
        return replace(self, name=f"{self.name}, {self.planted}", make=self.plant, plant=None)


@claim("AUDIT")
def audit(
    attack: Attack,
    *,
    runs: int = 2_000,
    seconds: float = math.inf,
    confidence: float = 0.95,
    n_jobs: int | None = None,
    progress: bool | None = None,
    least: int = LEAST_RUNS,
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
    least : int of 20 or more
        Runs that must fit into the time.

    Raises
    ------
    NotWorthPlaying
        If more than 20 runs must fit into the time, and do not.

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
    seen, pace = _play_all(attack, runs - runs % 2, seconds, n_jobs, progress, least)
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
        event = _best_event(name, attack.claimed.delta, first, error)
        found[name] = measured(name, attack.claimed.delta, event.chances(second, error))
    return Audit(
        attack.name,
        attack.claimed,
        confidence,
        half,
        **found,
        curve=_curve(second),
        level=attack.level,
        not_covered=attack.not_covered,
        planted="" if attack.plant is not None else attack.planted,
        pace=pace,
    )


class NotWorthPlaying(CumaeError):
    """So few runs of an attack fit into its time that they could not tell anything."""


def least_to_tell(claimed: Claimed, confidence: float, most: int = MOST_TO_TELL) -> int:
    """Return how many runs an attack needs in each world so that a leak of everything shows.

    Parameters
    ----------
    claimed : Claimed
        What is promised.
    confidence : float above 0 and below 1
        The chance that the bounds hold.
    most : int of 2 or more
        What to return if even so many are too few.

    Examples
    --------
    >>> from cumae.audit import Claimed
    >>> from cumae.audit.runs import least_to_tell
    >>> least_to_tell(Claimed(1.0), 0.95), least_to_tell(Claimed(3.0), 0.95)
    (32, 198)
    """

    def tells(half: int) -> bool:
        return any(
            best_bound(name, claimed.delta, half, confidence) > getattr(claimed, name)
            for name in MEASURES
            if getattr(claimed, name) is not None
        )

    halves = range(most // 2)
    return 2 * bisect_left(halves, 1, lo=LEAST_RUNS // 2, key=lambda half: int(tells(half)))


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


def _best_event(name: str, delta: float, scores: Floats, error: float) -> BestEvent:
    """Return the event that would prove most about a measure on these runs.

    Parameters
    ----------
    name : {"epsilon", "rho", "mu"}
        The measure.
    delta : float from 0 and below 1
        The delta at which epsilon is read.
    scores : array of float, worlds x runs
        The runs that choose.
    error : float
        The chance of error of each of two bounds.
    """
    runs = scores.shape[1]
    cuts = np.unique(np.quantile(scores, np.linspace(0, 1, CANDIDATES), method="nearest"))
    above = np.array([runs - np.searchsorted(np.sort(world), cuts) for world in scores])
    hits = np.stack([runs - above, above])  # side, world, cut
    likely, rare = at_least(hits, runs, error), at_most(hits, runs, error)[:, ::-1]
    side, world, cut = np.unravel_index(
        int(_roughly(name, delta, likely, rare).argmax()), likely.shape
    )
    return BestEvent(float(cuts[cut]), bool(side), int(world))


def _roughly(name: str, delta: float, likely: Floats, rare: Floats) -> Floats:
    """Return about what many pairs of chances prove; orders of rho are tried on a grid.

    Parameters
    ----------
    name : {"epsilon", "rho", "mu"}
        The measure.
    delta : float from 0 and below 1
        The delta at which epsilon is read.
    likely, rare : array of float
        Bounds of the chances of an event in both worlds.
    """
    p, q = np.clip(likely, 1e-15, 1 - 1e-15), np.clip(rare, 1e-15, 1 - 1e-15)
    if name == "epsilon":
        found = np.log(np.maximum(p - delta, 1e-300)) - np.log(q)
    elif name == "mu":
        found = ndtri(p) - ndtri(q)
    else:
        order = 1 + np.geomspace(1e-2, 1e3, 40).reshape(-1, *[1] * p.ndim)
        yes = order * np.log(p) + (1 - order) * np.log(q)
        no = order * np.log1p(-p) + (1 - order) * np.log1p(-q)
        found = (np.logaddexp(yes, no) / (order - 1) / order).max(axis=0)
    return np.where(p > q, found, -np.inf)


def _curve(scores: Floats) -> tuple[tuple[float, float], ...]:
    """Return false alarms and misses of the rule "world 1 if the score is at least c"."""
    cuts = np.unique(np.quantile(scores, np.linspace(0, 1, CANDIDATES), method="nearest"))
    return tuple(
        (round(float((scores[0] >= cut).mean()), 5), round(float((scores[1] < cut).mean()), 5))
        for cut in cuts
    )


def _play_all(
    attack: Attack,
    runs: int,
    seconds: float,
    n_jobs: int | None,
    progress: bool | None,
    least: int,
) -> tuple[NDArray[np.float64], float]:
    """Return what was seen (worlds, runs, numbers), and the seconds that a run took.

    Both worlds have the same number of runs.

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
    least : int of 20 or more
        Runs that must fit into the time.
    """
    found: list[Any] = []
    errors: list[tuple[str, ...]] = []
    before: set[tuple[bytes, bytes]] = set()
    with parallel(n_jobs=n_jobs, return_as="generator") as pool:
        if seconds < math.inf:
            runs = _affordable(attack, pool, effective_n_jobs(n_jobs), runs, seconds, least)
        games = GAMES * effective_n_jobs(n_jobs) if attack.level == RELEASES else TASKS
        size = -(-runs // games)
        sizes = [min(size, runs - start) for start in range(0, runs, size)]
        started = time.monotonic()
        with Progress(f"attack: {attack.name}", runs, progress) as bar:
            for pairs in pool(delayed(_pairs)(attack, count) for count in sizes):
                found += [pair.numbers for pair in pairs]
                errors += [moves for pair in pairs for moves in pair.errors]
                before |= {pair.before for pair in pairs}
                bar.advance(len(pairs))
        pace = (time.monotonic() - started) / runs
    if len(before) > 1:
        raise InvalidParameter(
            f"what noise is added to is not the same in all games of the attack {attack.name!r}, "
            "so that runs of one game belong together; play everything anew in each run."
        )
    for move, messages in enumerate(zip(*errors, strict=False), start=1):  # up to the shortest run
        if messages[0] and len(set(messages)) == 1:
            raise InvalidParameter(
                f"move {move} of the attack {attack.name!r} failed in every run, always because of "
                f"{messages[0]!r}; let it ask what can be answered."
            )
    lengths = sorted({len(numbers) for pair in found for numbers in pair})
    if len(lengths) > 1:
        raise InvalidParameter(
            f"the strategy of {attack.name!r} returned from {lengths[0]} to {lengths[-1]} numbers; "
            "give the same number of them in each run."
        )
    played = np.array(found, dtype=np.float64)  # run, world, numbers
    return np.asarray(played.transpose(1, 0, 2)), pace


def _affordable(
    attack: Attack, pool: Any, workers: int, runs: int, seconds: float, least: int
) -> int:
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
    least : int of 20 or more
        Runs that must fit into it.
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
    if attack.level == RELEASES:  # some of the time comes before the noise, once in a game
        before = play(FEW_DRAWS)
        spent = before + play(2 * FEW_DRAWS)
        pace = max(spent - 2 * before, before / 50) / FEW_DRAWS / workers
        left = seconds - spent - GAMES * max(0.0, before - FEW_DRAWS * pace * workers)
        fitting = max(left / pace, min(LEAST_DRAWS, seconds / 2 / pace))
    else:
        count = PILOT
        spent = taken = play(count)
        while taken < PILOT_SHARE * seconds and 2 * count * workers < runs:
            count *= 2
            taken = play(count)
            spent += taken
        pace = taken / (count * workers)
        fitting = (seconds - spent) / pace
    fitting = max(fitting, 0.0)
    if fitting < min(least, runs) and least > LEAST_RUNS:
        raise NotWorthPlaying(
            f"{least} runs are the fewest that could show a leak of everything, and {fitting:.0f} "
            f"fit into its time at {pace * 1e3:,.3g} ms a run"
        )
    return int(min(runs, max(LEAST_RUNS, fitting))) // 2 * 2


def _wake(attack: Attack) -> tuple[int, int]:
    """Import and compile what the attack needs, and tell who did."""
    _pairs(attack, WARM_UP)
    return os.getpid(), threading.get_ident()


class Pair(NamedTuple):
    """One run in each world: returned values, errors of its moves, and what noise was added to."""

    numbers: list[Floats]
    errors: list[tuple[str, ...]]
    before: tuple[bytes, bytes]


def _pairs(attack: Attack, count: int) -> list[Pair]:
    """Play runs in each world; those of releases share one game in each."""
    if attack.level == RELEASES:
        return _pair(attack, count)
    return [pair for _ in range(count) for pair in _pair(attack, 1)]


def _pair(attack: Attack, runs: int) -> list[Pair]:
    """Play one game in each world, in random order."""
    first = int(integers(2, 1, SYSTEM)[0])
    games = {world: Game(attack.make(), world, runs) for world in (first, 1 - first)}
    played = {world: _numbers(attack, game, runs) for world, game in games.items()}
    if not any(game.differed for game in games.values()):
        raise InvalidParameter(
            f"the two worlds of the attack {attack.name!r} do not differ; give train, ask or "
            "supply two versions of which one row or query is not the same."
        )
    errors = [game.errors for game in games.values()]
    before = games[0].before, games[1].before
    return [Pair(list(pair), errors, before) for pair in zip(played[0], played[1], strict=True)]


def _numbers(attack: Attack, game: Game, runs: int) -> Floats:
    """Let the adversary play, and return its list of numbers for each run."""
    try:
        given = attack.play(game)
    except Exception as error:
        error.add_note(f"This happened in the attack {attack.name!r}.")
        raise
    try:
        found = np.atleast_1d(np.asarray(given, dtype=np.float64))
    except (TypeError, ValueError):
        found = np.array([np.nan])
    if attack.level == RELEASES and found.ndim == 1:
        found = found[:, None]  # one number for each run
    elif attack.level == WHOLE:
        found = found[None]
    if found.ndim != 2 or len(found) != runs or not found.size or np.isnan(found).any():
        message = next(filter(None, game.errors), "")
        why = f" Instead of answers it got {message!r}." if message else ""
        raise InvalidParameter(
            f"the strategy of {attack.name!r} returned {shown(given)}; return a number, or a list "
            f"of them, for each run.{why}"
        )
    return found
