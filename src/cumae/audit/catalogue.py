"""Everything that can be audited by name."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import NamedTuple

from cumae.audit.attacks import batches, evaluation, everlasting, numbers, priors, releases, sums
from cumae.audit.attacks import learners as models
from cumae.audit.attacks import mechanisms as parts
from cumae.audit.attacks import predictors as attacks
from cumae.audit.attacks import sanitizers as tables
from cumae.audit.results import WHOLE, Audit
from cumae.audit.runs import LEAST_RUNS, Attack, NotWorthPlaying, audit, least_to_tell
from cumae.errors import CumaeError, InvalidParameter
from cumae.privacy.validation import check_delta, check_epsilon
from cumae.progress import Progress

FIRST_SHARE = 0.75  # of the time of a target, for the first attack on it and the planted bug
PLANT_SHARE = 0.4  # of that, for the planted bug
MANY_RUNS = 1_000  # counted runs that every target should have
NO_TIME = ": no time was left."
TWICE = "spending twice what it claims, planted"

_PREDICTORS = {**everlasting.ATTACKS, **attacks.ATTACKS}
Sources = Mapping[str, Sequence[Callable[..., Attack]]]
# The first attack on each is the one that makes most runs.
SOURCES: dict[str, Sequence[Callable[..., Attack]]] = {
    **{
        name: (
            *releases.ATTACKS.get(name, ()),
            *builds,
            *priors.ATTACKS.get(name, ()),
            *batches.ATTACKS[name],
        )
        for name, builds in _PREDICTORS.items()
    },
    **{
        name: (*releases.ATTACKS.get(name, ()), *sums.ATTACKS.get(name, ()), *builds)
        for name, builds in models.ATTACKS.items()
    },
    **numbers.ATTACKS,
    **tables.ATTACKS,
    **evaluation.ATTACKS,
    **parts.ATTACKS,
}


def attacks_on(
    name: str, epsilon: float = 1.0, delta: float = 1e-6, sources: Sources | None = None
) -> tuple[list[Attack], list[str]]:
    """Return the attacks on an estimator or a mechanism, and why others cannot be made.

    Parameters
    ----------
    name : str
        A key of ``sources``.
    epsilon : float above 0
        What the attacked thing may cost.
    delta : float from 0 and below 1
        The same; mechanisms that are pure do not use it.
    sources : mapping from str to sequence of callable, or None
        All attacks; None for ``SOURCES``. Those on oracles in files come from the store.

    Examples
    --------
    >>> from cumae.audit.catalogue import SOURCES, attacks_on
    >>> "EverlastingPredictor" in SOURCES
    True
    >>> attacks, left_out = attacks_on("QueryRelease")
    >>> attacks[0].name, len(attacks), left_out
    ('QueryRelease, noisy counts of 64 queries', 4, [])
    """
    if not 0 < check_epsilon(epsilon) < math.inf:
        raise InvalidParameter(f"epsilon={epsilon!r} leaves nothing to attack; give 1.0, say.")
    check_delta(delta)
    found: list[Attack] = []
    left_out = []
    for build in (SOURCES if sources is None else sources)[name]:
        try:
            make = build if found else partial(_with_plant, build)
            found.append(make(epsilon=epsilon, delta=delta))
        except CumaeError as error:
            left_out.append(
                f"an attack on {name}, impossible at epsilon {epsilon:g} and delta {delta:g}: "
                f"{error}"
            )
    return found, left_out


def first_attack(name: str, epsilon: float = 1.0, delta: float = 1e-6) -> Attack:
    """Return the attack on something that makes most runs, with a bug to plant.

    Parameters
    ----------
    name : str
        A key of ``SOURCES``.
    epsilon, delta : float
        What the attacked thing may cost.

    Examples
    --------
    >>> from cumae.audit.catalogue import first_attack
    >>> attack = first_attack("PrivateLogisticRegression")
    >>> attack.name, attack.planted
    ('PrivateLogisticRegression, the only noisy sum', 'with half the noise, planted')
    """
    return _with_plant(SOURCES[name][0], epsilon, delta)


def _with_plant(build: Callable[..., Attack], epsilon: float, delta: float) -> Attack:
    """Make an attack; if it has no bug to plant, add one: a driver that spends twice its claim.

    Parameters
    ----------
    build : callable
        Makes the attack.
    epsilon, delta : float
        What the attacked thing may cost.
    """
    attack = build(epsilon=epsilon, delta=delta)
    if attack.plant is not None:
        return attack
    try:
        careless = build(epsilon=2 * epsilon, delta=delta)
    except CumaeError:
        return attack
    return replace(attack, plant=careless.make, planted=TWICE)


def audited(name: str) -> str:
    """Return the first word of an attack's name: what it attacks.

    Examples
    --------
    >>> from cumae.audit.catalogue import audited
    >>> audited("QueryRelease, a training row")
    'QueryRelease'
    """
    return name.partition(" ")[0].rstrip(",:")


def audit_all(
    chosen: Sequence[Attack],
    *,
    runs: int = 2_000,
    seconds: float = math.inf,
    confidence: float = 0.95,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> tuple[list[Audit], list[str]]:
    """Play attacks one after the other, within one budget of time and one chance of error.

    The first attack on each target comes first, and is followed by the same attack on a planted
    bug. They get three quarters of the time, the same for each target. The others follow in turns:
    the second attack on each target, then the third. Time that an attack does not need goes to
    those after it. One of these others is left out if so few of its runs fit into its time that not
    even a leak of everything would show. The first attacks have half of their time in any case.

    Parameters
    ----------
    chosen : sequence of Attack
        The attacks to play.
    runs : int of 20 or more
        Runs in each world of each attack, at most.
    seconds : float above 0
        Time for all attacks.
    confidence : float above 0 and below 1
        The chance that all bounds of all attacks hold: the more attacks, the surer each has to be.
    n_jobs : int or None
        As in :func:`~cumae.audit.audit`.
    progress : bool or None
        Whether to show a bar; None shows one on a terminal.

    Returns
    -------
    list of Audit
        The results in the order of ``chosen``, those of planted bugs behind those of the code.
    list of str
        Which attacks were left out, and why.
    """
    if not chosen:
        raise InvalidParameter("there is no attack to play.")
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence={confidence!r} is not between 0 and 1; give 0.95, say.")
    if not seconds > 0:
        raise InvalidParameter(f"seconds={seconds!r} is not above 0.")
    each = 1 - (1 - confidence) / len(chosen)
    end = time.monotonic() + seconds
    found: dict[str, Audit] = {}
    left_out = []
    turns = _turns(chosen)
    total = sum(turn.weight for turn in turns)
    with Progress("attacks", len(turns), progress) as bar:
        for place, turn in enumerate(turns):
            time_left = end - time.monotonic()
            left = time_left * turn.weight / sum(other.weight for other in turns[place:])
            if turn.first:  # others may have taken longer than they should
                left = max(left, seconds * turn.weight / total / 2)
            elif time_left <= 0:
                left_out.append(f"{turn.attack.name}{NO_TIME}")
                continue
            try:
                found[turn.attack.name] = audit(
                    turn.attack,
                    runs=runs,
                    seconds=left,
                    confidence=each,
                    n_jobs=n_jobs,
                    progress=False,
                    least=LEAST_RUNS if turn.first else least_to_tell(turn.attack.claimed, each),
                )
            except NotWorthPlaying as error:
                left_out.append(f"{turn.attack.name}: {error}.")
            bar.advance()
    names = [one.name for attack in chosen for one in (attack, attack.on_plant) if one is not None]
    return [found[name] for name in names if name in found], left_out


def in_short(left_out: Sequence[str]) -> list[str]:
    """Return lines about attacks that were left out, with one for all that had no time left.

    Parameters
    ----------
    left_out : sequence of str
        Which attacks were left out, and why.
    """
    others = [line for line in left_out if not line.endswith(NO_TIME)]
    late = Counter(audited(line) for line in left_out if line.endswith(NO_TIME))
    if late:
        counts = ", ".join(f"{name} {count:,}" for name, count in late.items())
        others.append(
            f"{late.total():,} further attacks, because no time was left: {counts}. More seconds, "
            "or the name of a target, plays them; --report and --json name each of them."
        )
    return others


class Turn(NamedTuple):
    """An attack, its share of the time, and whether it is the first on its target, or its plant."""

    attack: Attack
    weight: float
    first: bool


def _turns(chosen: Sequence[Attack]) -> list[Turn]:
    """Return attacks in the order in which they are played."""
    targets: dict[str, list[Attack]] = {}
    for attack in chosen:
        targets.setdefault(audited(attack.name), []).append(attack)
    found = []
    for first, *others in targets.values():
        share = FIRST_SHARE if others else 1.0
        plant = first.on_plant
        found.append(Turn(first, share * (1.0 if plant is None else 1 - PLANT_SHARE), first=True))
        if plant is not None:
            found.append(Turn(plant, share * PLANT_SHARE, first=True))
    for later in zip_longest(*(others for _, *others in targets.values())):
        for attack in filter(None, later):
            count = len(targets[audited(attack.name)]) - 1
            found.append(Turn(attack, (1 - FIRST_SHARE) / count, first=False))
    return found


def reasons_for_few(audits: Sequence[Audit], runs: int) -> list[str]:
    """Return, for targets that were attacked less than a thousand times, why.

    Parameters
    ----------
    audits : sequence of Audit
        The results.
    runs : int
        Runs in each world that were asked for, at most.
    """
    most: dict[str, Audit] = {}
    for one in audits:
        known = most.get(audited(one.name))
        if not one.planted and (known is None or one.runs > known.runs):
            most[audited(one.name)] = one
    return [
        f"{target}: {one.runs:,} counted runs, because a run takes {one.pace * 1e3:,.3g} ms"
        + (", each run being played from its start" if one.level == WHOLE else "")
        + f". For {MANY_RUNS:,} give this target alone {4 * MANY_RUNS * one.pace:,.0f} seconds."
        for target, one in most.items()
        if one.runs < min(MANY_RUNS, runs // 2)
    ]
