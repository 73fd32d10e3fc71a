"""Everything that can be audited by name."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from cumae.audit import attacks, models, parts, tables
from cumae.audit.runs import Attack, Audit, audit
from cumae.errors import CumaeError, InvalidParameter

SOURCES: dict[str, Sequence[Callable[..., Attack]]] = {
    **attacks.ATTACKS,
    **models.ATTACKS,
    **tables.ATTACKS,
    **parts.ATTACKS,
}


def attacks_on(name: str, epsilon: float = 1.0, delta: float = 1e-6) -> list[Attack]:
    """Return the attacks on an estimator or a mechanism; pure ones do not use the delta.

    Examples
    --------
    >>> from cumae.audit.catalogue import SOURCES, attacks_on
    >>> "EverlastingPredictor" in SOURCES
    True
    >>> [attack.name for attack in attacks_on("QueryRelease")]
    ['QueryRelease, a training row']
    """
    try:
        return [build(epsilon=epsilon, delta=delta) for build in SOURCES[name]]
    except CumaeError as error:
        raise InvalidParameter(
            f"{name} cannot be attacked at epsilon {epsilon:g} and delta {delta:g}: {error}"
        ) from error


def audited(name: str) -> str:
    """Return the first word of an attack's name: what it attacks.

    Examples
    --------
    >>> from cumae.audit.catalogue import audited
    >>> audited("QueryRelease, a training row")
    'QueryRelease'
    """
    return name.split(maxsplit=1)[0].rstrip(",:")


def audit_all(
    chosen: Sequence[Attack],
    *,
    runs: int = 2_000,
    seconds: float = math.inf,
    confidence: float = 0.95,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> list[Audit]:
    """Play attacks one after the other, within one budget of time and one chance of error.

    Parameters
    ----------
    chosen
        What to play.
    runs
        Runs in each world of each attack, at most.
    seconds
        For all attacks. Each gets an equal share of what is left, and plays one batch at least.
    confidence
        Of all bounds of all attacks together: the more attacks, the surer each has to be.
    n_jobs, progress
        As in :func:`~cumae.audit.audit`.
    """
    if not chosen:
        raise InvalidParameter("there is no attack to play.")
    if not 0 < confidence < 1:
        raise InvalidParameter(f"confidence={confidence!r} is not between 0 and 1; give 0.95, say.")
    if not seconds > 0:
        raise InvalidParameter(f"seconds={seconds!r} is not above 0.")
    end = time.monotonic() + seconds
    found = []
    for place, attack in enumerate(chosen):
        left = (end - time.monotonic()) / (len(chosen) - place)
        found.append(
            audit(
                attack,
                runs=runs,
                seconds=max(left, 1e-9),  # those before may have taken longer
                confidence=1 - (1 - confidence) / len(chosen),
                n_jobs=n_jobs,
                progress=progress,
            )
        )
    return found
