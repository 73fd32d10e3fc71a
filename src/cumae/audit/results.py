"""Promises, findings of an audit, and what they mean together."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from cumae.audit.bounds import Chances, at_least, at_most
from cumae.errors import InvalidParameter
from cumae.privacy import Gaussian
from cumae.privacy.validation import check_epsilon, check_nonnegative, check_rate

MEASURES = ("epsilon", "rho", "mu")
BROKEN, NOT_BROKEN, CANNOT_TELL = "BROKEN", "not broken", "cannot tell"
CAUGHT, MISSED = "caught", "not caught"  # of planted bugs
# Levels of attacks: what is done anew in each run.
WHOLE, RELEASES = "whole", "releases"


@dataclass(frozen=True)
class Claimed:
    """A promise, against which the measured bounds are held.

    Parameters
    ----------
    epsilon, delta : float
        The pair that the guarantee promises.
    rho, mu : float or None
        The parameter of its zero-concentrated or Gaussian form, if it has one.
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
                check_nonnegative(getattr(self, name), name)

    @classmethod
    def by(cls, guarantee: Any, *, gaussian_releases: int = 0) -> Claimed:
        """Read the guarantee of anything that was fitted.

        If nothing but ``gaussian_releases`` counts with integer Gaussian noise is released, each
        moved by one at most, then the promise is also Gaussian with mu = sqrt(2 rho). That the
        noise is whole changes less than a thousandth if it is not tiny (proofs/AUDIT.md).
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
class Audit:
    """The findings of an attack. Bounds hold together with chance ``confidence``.

    Parameters
    ----------
    name : str
        The name of the attack.
    claimed : Claimed
        What is promised.
    confidence : float above 0 and below 1
        Chance that no bound is above the truth, at least.
    runs : int of 0 or more
        Runs in each world that the bounds are based on; as many more chose the events.
    epsilon, rho, mu : float
        Lower bounds on what the mechanism really costs.
    curve : tuple of pairs of float
        Chances of (false alarm, missed) of the rules that were measured, for the plot.
    level : {"whole", "releases"}
        What is done anew in each run: everything, or the noise of a release alone.
    not_covered : str
        What this attack leaves out, in a sentence.
    planted : str
        The bug that was planted, in a few words; "" for the real code.
    pace : float of 0 or more
        Seconds that one run in both worlds took.
    """

    name: str
    claimed: Claimed
    confidence: float
    runs: int
    epsilon: float
    rho: float
    mu: float
    curve: tuple[tuple[float, float], ...] = ()
    level: str = WHOLE
    not_covered: str = ""
    planted: str = ""
    pace: float = 0.0

    @property
    def measures(self) -> list[str]:
        """Those of epsilon, rho and mu that are claimed."""
        return [name for name in MEASURES if getattr(self.claimed, name) is not None]

    @property
    def broken(self) -> bool:
        """True if a bound is above its claim, and no bug was planted."""
        return BROKEN in map(self.verdict_on, self.measures)

    @property
    def caught(self) -> bool:
        """True if a bug was planted, and a bound is above the claim."""
        return CAUGHT in map(self.verdict_on, self.measures)

    @property
    def verdict(self) -> str:
        """The worst verdict on a measure; one that can tell is better than one that cannot."""
        found = set(map(self.verdict_on, self.measures))
        order = (BROKEN, CAUGHT, NOT_BROKEN, MISSED, CANNOT_TELL)
        return next(verdict for verdict in order if verdict in found)

    def verdict_on(self, measure: str) -> str:
        """Return "BROKEN" if a bound is above its claim, and "not broken" otherwise.

        Of a planted bug it is "caught" or "not caught". In both cases it is "cannot tell" if not
        even an attacker who is right in each of the runs would get a bound above the claim.
        """
        claimed = getattr(self.claimed, measure)
        above = getattr(self, measure) > claimed
        if above:
            return CAUGHT if self.planted else BROKEN
        if not self.could_have_proven(measure) > claimed:
            return CANNOT_TELL
        return MISSED if self.planted else NOT_BROKEN

    def could_have_proven(self, measure: str) -> float:
        """Return the bound of an attacker who is right in each of these runs: a leak of everything.

        Parameters
        ----------
        measure : {"epsilon", "rho", "mu"}
            What is bounded.

        Examples
        --------
        >>> from cumae.audit import Audit, Claimed
        >>> found = Audit("a row", Claimed(8.0), 0.95, 1000, epsilon=0.7, rho=0.1, mu=0.6)
        >>> round(found.could_have_proven("epsilon"), 2)
        5.34
        """
        return best_bound(measure, self.claimed.delta, self.runs, self.confidence)

    @property
    def as_epsilon(self) -> float:
        """The epsilon at the claimed delta that is proven, by way of mu where mu is claimed.

        Noise that is claimed to be Gaussian has an epsilon at each delta that follows from its mu.
        Events as rare as a small delta are never seen, but mu is measured by frequent ones.
        """
        return self._as_epsilon(self.epsilon, self.mu)

    @property
    def most_as_epsilon(self) -> float:
        """The same for an attacker who is right in each of these runs."""
        return self._as_epsilon(*map(self.could_have_proven, ("epsilon", "mu")))

    def _as_epsilon(self, epsilon: float, mu: float) -> float:
        if self.claimed.mu is None or not mu > 0:
            return epsilon
        return max(epsilon, Gaussian(1 / mu).epsilon(self.claimed.delta))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers for JSON; all bounds are there, claimed or not."""
        return {
            "name": self.name,
            "verdict": self.verdict,
            "verdicts": {name: self.verdict_on(name) for name in self.measures},
            "claimed_at_most": asdict(self.claimed),
            "measured_at_least": {name: getattr(self, name) for name in MEASURES},
            "could_have_proven": {name: self.could_have_proven(name) for name in MEASURES},
            "confidence": self.confidence,
            "runs": self.runs,
            "seconds_per_run": self.pace,
            "level": self.level,
            "not_covered": self.not_covered,
            "planted": self.planted,
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
            level=plain.get("level", WHOLE),  # results of older versions have none
            not_covered=plain.get("not_covered", ""),
            planted=plain.get("planted", ""),
            pace=plain.get("seconds_per_run", 0.0),
        )

    def __str__(self) -> str:
        return (
            f"{self.name}: claimed epsilon {self.claimed.epsilon:g} at delta "
            f"{self.claimed.delta:g}, measured at least {self.epsilon:.3f} ({self.verdict}; "
            f"{self.runs:,} runs could have proven {self.could_have_proven('epsilon'):.3g})"
        )


def best_bound(measure: str, delta: float, runs: int, confidence: float) -> float:
    """Return the bound that an attacker gets who is right in every run.

    Parameters
    ----------
    measure : {"epsilon", "rho", "mu"}
        What is bounded.
    delta : float from 0 and below 1
        The delta at which epsilon is read.
    runs : int of 1 or more
        Runs in each world.
    confidence : float above 0 and below 1
        The chance that the bounds on all measures hold.

    Examples
    --------
    >>> from cumae.audit.results import best_bound
    >>> round(best_bound("epsilon", 0.0, runs=100, confidence=0.95), 2)
    3.02
    """
    error = error_of(confidence)
    chances = Chances(float(at_least(runs, runs, error)), float(at_most(0, runs, error)))
    return measured(measure, delta, chances)


def error_of(confidence: float) -> float:
    """Return the chance of error of one bound: there are two for each measure."""
    return (1 - confidence) / (2 * len(MEASURES))


def measured(name: str, delta: float, chances: Chances) -> float:
    """Return the bound on a measure that two chances prove.

    Parameters
    ----------
    name : {"epsilon", "rho", "mu"}
        The measure.
    delta : float from 0 and below 1
        The delta at which epsilon is read.
    chances : Chances
        How likely an event is in each world.
    """
    if name == "epsilon":
        return chances.epsilon(delta)
    return chances.rho() if name == "rho" else chances.mu()
