"""Everything that can be audited by name."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

from cumae.audit.attacks import batches, evaluation, everlasting, priors, sums
from cumae.audit.attacks import learners as models
from cumae.audit.attacks import mechanisms as parts
from cumae.audit.attacks import predictors as attacks
from cumae.audit.attacks import sanitizers as tables
from cumae.audit.results import Audit
from cumae.audit.runs import Attack, audit
from cumae.errors import CumaeError, InvalidParameter
from cumae.privacy.validation import check_delta, check_epsilon

_PREDICTORS = {**everlasting.ATTACKS, **attacks.ATTACKS}
Sources = Mapping[str, Sequence[Callable[..., Attack]]]
SOURCES: dict[str, Sequence[Callable[..., Attack]]] = {
    **{
        name: (*builds, *priors.ATTACKS.get(name, ()), *batches.ATTACKS[name])
        for name, builds in _PREDICTORS.items()
    },
    **{name: (*builds, *sums.ATTACKS.get(name, ())) for name, builds in models.ATTACKS.items()},
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
    ('QueryRelease, a training row', 3, [])
    """
    if not 0 < check_epsilon(epsilon) < math.inf:
        raise InvalidParameter(f"epsilon={epsilon!r} leaves nothing to attack; give 1.0, say.")
    check_delta(delta)
    found, left_out = [], []
    for build in (SOURCES if sources is None else sources)[name]:
        try:
            found.append(build(epsilon=epsilon, delta=delta))
        except CumaeError as error:
            left_out.append(
                f"an attack on {name}, impossible at epsilon {epsilon:g} and delta {delta:g}: "
                f"{error}"
            )
    return found, left_out


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
) -> list[Audit]:
    """Play attacks one after the other, within one budget of time and one chance of error.

    Parameters
    ----------
    chosen : sequence of Attack
        The attacks to play.
    runs : int of 20 or more
        Runs in each world of each attack, at most.
    seconds : float above 0
        Time for all attacks. Each gets an equal share of what is left, and plays at least one
        batch.
    confidence : float above 0 and below 1
        The chance that all bounds of all attacks hold: the more attacks, the surer each has to be.
    n_jobs : int or None
        As in :func:`~cumae.audit.audit`.
    progress : bool or None
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
