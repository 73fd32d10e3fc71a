"""Play the game many times in both worlds, and bound what the adversary learnt."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import ArrayLike, NDArray

from cumae.audit.bounds import Chances, at_least, at_most
from cumae.audit.distinguishers import Distinguisher, Floats, by_value
from cumae.audit.game import Driver, Game
from cumae.claims import claim
from cumae.errors import InvalidParameter, shown
from cumae.predictors.progress import Progress
from cumae.privacy.validation import check_count, check_epsilon, check_rate
from cumae.randomness import SYSTEM, integers

MEASURES = ("epsilon", "rho", "mu")
BROKEN, NOT_BROKEN, CANNOT_TELL = "BROKEN", "not broken", "cannot tell"
WARM_UP, PILOT = 2, 4  # runs of each world that tell how long one takes, and are thrown away
START_UP = 20.0  # seconds to wait, at most, until all processes are there
PILOT_SHARE = 0.05  # of the time: shorter pilots measure how processes wake up
TASKS = 200  # parts into which runs are cut: each of them sends the attack to a process
LEAST_RUNS = 20
CANDIDATES = 200  # events to choose from


@dataclass(frozen=True)
class Claimed:
    """What is promised, and what the measured bounds are held against.

    Parameters
    ----------
    epsilon, delta
        Of the guarantee.
    rho, mu
        Of its zero-concentrated or Gaussian form, if it has one.
    """

    epsilon: float
    delta: float = 0.0
    rho: float | None = None
    mu: float | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_rate(self.delta, "delta")
        for name in ("rho", "mu"):
            if getattr(self, name) is not None:
                check_epsilon(getattr(self, name), name)

    @classmethod
    def by(cls, guarantee: Any, *, gaussian_releases: int = 0) -> Claimed:
        """Read the guarantee of anything that was fitted.

        If all that is released are so many counts, each moved by one at most, with integer Gaussian
        noise, then it is also Gaussian with mu = sqrt(2 rho), but for what whole numbers
        change: less than a thousandth if the noise is not tiny (proofs/AUDIT.md).
        """
        guarantee = getattr(guarantee, "guarantee_", guarantee)
        if guarantee.void:
            raise InvalidParameter(
                "the guarantee is void, because random numbers come from a seed: all runs would be "
                "the same; leave random_state out."
            )
        mu = None
        if gaussian_releases and guarantee.rho is not None:
            scale = math.sqrt(gaussian_releases / (2 * guarantee.rho))
            if scale >= 1 and scale * math.sqrt(gaussian_releases) >= 20:
                mu = math.sqrt(2 * guarantee.rho) * 1.001
        return cls(guarantee.epsilon, guarantee.delta, guarantee.rho, mu)


@dataclass(frozen=True)
class Attack:
    """Two worlds, a strategy and a promise.

    Parameters
    ----------
    name
        What the attack does, in a few words.
    make
        Returns a new driver; called once for each run.
    play
        The adversary: moves in a :class:`~cumae.audit.game.Game`, and returns numbers about what
        it saw. Higher values of the first speak for world 1 unless there is another rule.
    claimed
        What is promised.
    distinguish
        How numbers become a guess; learnt on runs that are not used for the bound.
    """

    name: str
    make: Callable[[], Driver]
    play: Callable[[Game], ArrayLike]
    claimed: Claimed
    distinguish: Distinguisher = by_value

    def __post_init__(self) -> None:
        if not callable(self.make):
            raise InvalidParameter(
                f"make={shown(self.make)} of the attack {self.name!r} is no function; give one "
                "that returns a new driver, such as lambda: InProcess(lambda: ...)."
            )


@dataclass(frozen=True)
class Audit:
    """What an attack showed. Bounds hold together with chance ``confidence``.

    Parameters
    ----------
    name, claimed
        Of the attack.
    confidence
        Chance that no bound is above the truth, at least.
    runs
        Runs in each world that the bounds are based on; as many more chose the events.
    epsilon, rho, mu
        Lower bounds on what the mechanism really costs.
    curve
        Chances of (false alarm, missed) of the rules that were measured, for the plot.
    """

    name: str
    claimed: Claimed
    confidence: float
    runs: int
    epsilon: float
    rho: float
    mu: float
    curve: tuple[tuple[float, float], ...] = ()

    @property
    def measures(self) -> list[str]:
        """Those of epsilon, rho and mu that are claimed."""
        return [name for name in MEASURES if getattr(self.claimed, name) is not None]

    @property
    def broken(self) -> bool:
        """Whether a bound is above its claim."""
        return BROKEN in map(self.verdict_on, self.measures)

    @property
    def verdict(self) -> str:
        """The worst verdict on a measure; one that can tell is better than one that cannot."""
        found = set(map(self.verdict_on, self.measures))
        return next(verdict for verdict in (BROKEN, NOT_BROKEN, CANNOT_TELL) if verdict in found)

    def verdict_on(self, measure: str) -> str:
        """Return "BROKEN" if a bound is above its claim, and "not broken" otherwise.

        It is "cannot tell" if not even an attacker who is right in each of the runs would get a
        bound above the claim.
        """
        claimed = getattr(self.claimed, measure)
        if getattr(self, measure) > claimed:
            return BROKEN
        best = best_bound(measure, self.claimed.delta, self.runs, self.confidence)
        return NOT_BROKEN if best > claimed else CANNOT_TELL

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers for JSON; all bounds are there, claimed or not."""
        return {
            "name": self.name,
            "verdict": self.verdict,
            "verdicts": {name: self.verdict_on(name) for name in self.measures},
            "claimed_at_most": asdict(self.claimed),
            "measured_at_least": {name: getattr(self, name) for name in MEASURES},
            "confidence": self.confidence,
            "runs": self.runs,
            "false_alarms_and_misses": [list(point) for point in self.curve],
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Audit:
        """Return what :meth:`to_dict` made plain.

        Examples
        --------
        >>> from cumae.audit import Audit, Claimed
        >>> found = Audit("a row", Claimed(1.0), 0.95, 1000, epsilon=0.7, rho=0.1, mu=0.6)
        >>> Audit.from_dict(found.to_dict()) == found
        True
        """
        return cls(
            plain["name"],
            Claimed(**plain["claimed_at_most"]),
            plain["confidence"],
            plain["runs"],
            **plain["measured_at_least"],
            curve=tuple(map(tuple, plain["false_alarms_and_misses"])),
        )

    def __str__(self) -> str:
        return (
            f"{self.name}: claimed epsilon {self.claimed.epsilon:g} at delta "
            f"{self.claimed.delta:g}, measured at least {self.epsilon:.3f} ({self.verdict})"
        )


def best_bound(measure: str, delta: float, runs: int, confidence: float) -> float:
    """Return the bound that an attacker gets who is right in each of so many runs.

    Examples
    --------
    >>> from cumae.audit.runs import best_bound
    >>> round(best_bound("epsilon", 0.0, runs=100, confidence=0.95), 2)
    3.02
    """
    error = _error(confidence)
    chances = Chances(float(at_least(runs, runs, error)), float(at_most(0, runs, error)))
    return _measure(measure, delta, chances)


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
    attack
        What to play.
    runs
        Runs in each world, at most: half of them choose events and half are counted, so that one is
        left out of an odd number. At least 20.
    seconds
        About how long it may take, apart from starting processes. A few runs that do not count
        tell how many fit in; at least 20 are played.
    confidence
        Of all bounds together.
    n_jobs
        Processes, as in joblib.
    progress
        Whether to show a bar; None shows one for long work on a terminal.

    Examples
    --------
    >>> from cumae.audit import attacks, audit
    >>> found = audit(attacks.release_row(epsilon=1.0), runs=20)
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
    worlds = np.repeat([0, 1], half)
    score = attack.distinguish(np.concatenate(seen[:, :half]), worlds)
    first = np.array([score(world) for world in seen[:, :half]])
    second = np.array([score(world) for world in seen[:, half:]])
    error = _error(confidence)
    found = {}
    for name in MEASURES:
        measure = partial(_measure, name, attack.claimed.delta)
        found[name] = measure(_best_event(first, measure, error).chances(second, error))
    return Audit(attack.name, attack.claimed, confidence, half, **found, curve=_curve(second))


def _error(confidence: float) -> float:
    """Return the chance of error of one bound: there are two for each measure."""
    return (1 - confidence) / (2 * len(MEASURES))


def _measure(name: str, delta: float, chances: Chances) -> float:
    if name == "epsilon":
        return chances.epsilon(delta)
    return chances.rho() if name == "rho" else chances.mu()


@dataclass(frozen=True)
class Event:
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


def _best_event(scores: Floats, value: Callable[[Chances], float], error: float) -> Event:
    """Return the event that would prove most on these runs."""
    cuts = np.unique(np.quantile(scores, np.linspace(0, 1, CANDIDATES), method="nearest"))
    events = [
        Event(float(cut), above, world)
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
    """
    found: list[Any] = []
    failures: set[str] = set()
    with Parallel(n_jobs=n_jobs, return_as="generator") as pool:
        if seconds < math.inf:
            runs = _affordable(attack, pool, effective_n_jobs(n_jobs), runs, seconds)
        size = -(-runs // TASKS)
        sizes = [min(size, runs - start) for start in range(0, runs, size)]
        with Progress(f"attack: {attack.name}", runs, progress) as bar:
            for pairs in pool(delayed(_pairs)(attack, count) for count in sizes):
                found += [pair.numbers for pair in pairs]
                failures |= {pair.failure for pair in pairs}
                bar.advance(len(pairs))
    if len(failures) == 1 and "" not in failures:
        raise InvalidParameter(
            f"no question of the attack {attack.name!r} was answered in any run, always because of "
            f"{failures.pop()!r}; let it ask what can be answered."
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
    """Return how many runs fit into the time, an even number, by pilots that do not count."""

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
    """What one run in each world returned, and why no question was answered; "" if one was."""

    numbers: list[Floats]
    failure: str


def _pairs(attack: Attack, count: int) -> list[Pair]:
    return [_pair(attack) for _ in range(count)]


def _pair(attack: Attack) -> Pair:
    """Play one run in each world, in random order."""
    first = int(integers(2, 1, SYSTEM)[0])
    games = {world: Game(attack.make(), world) for world in (first, 1 - first)}
    played = {world: _numbers(attack, game) for world, game in games.items()}
    if not any(game.differed for game in games.values()):
        raise InvalidParameter(
            f"the two worlds of the attack {attack.name!r} do not differ; give train or ask two "
            "versions of which one row or query is not the same."
        )
    failures = {game.failure for game in games.values()}
    return Pair([played[0], played[1]], failures.pop() if len(failures) == 1 else "")


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
        why = f" It was told {game.failure!r} in the place of answers." if game.failure else ""
        raise InvalidParameter(
            f"the strategy of {attack.name!r} returned {shown(given)}; return a number, or a list "
            f"of them.{why}"
        )
    return found
