"""What is counted in the state of a predictor, and what an answer adds to it.

A *record* is what one change adds to a state. Its counts are absolute, so that the last one holds.
What grew is added at the end. So records that follow each other can be merged into one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from cumae.claims import claim
from cumae.mechanisms import BetweenThresholds, NoisyMajority, StabilityTest
from cumae.predictors.release.answers import BetweenAnswers, answers_from_facts
from cumae.privacy.plain_costs import cost_to_dict
from cumae.randomness import discrete_laplace

ANSWERED = "answered"  # the kind of a record of answers
BLOCKS = 256  # a crash costs this part of the answers of a phase at most
Record = dict[str, Any]


@claim("STORE")
class Counting(ABC):
    """Knows what changes in one kind of state when answers are given.

    Parameters
    ----------
    state : State
        What changes.
    """

    head: bytes | None = None  # hash of the ledger entry that the last piece of the state names
    protects_queries: ClassVar[bool] = False  # whether queries are private rows of a next phase

    def __init__(self, state: Any) -> None:
        self.state = state

    # What is live

    @property
    @abstractmethod
    def mechanism(self) -> Any:
        """What adds noise to the answers now; None if what answers was published."""

    @abstractmethod
    def replace_mechanism(self, mechanism: Any) -> None:
        """Let another one answer."""

    @property
    def used(self) -> int:
        """Releases of this phase that are gone."""
        mechanism = self.mechanism
        return 0 if mechanism is None else int(mechanism.asked)

    @property
    def releases(self) -> int:
        """Releases that this phase was calibrated for."""
        return 0 if self.mechanism is None else int(self.mechanism.max_queries)

    @property
    def phase(self) -> int:
        """Number of the phase, from 1."""
        return 1

    @property
    def spare(self) -> int:
        """Releases that a crash may cost; 0 where each one counts."""
        mechanism = self.mechanism
        if not isinstance(mechanism, NoisyMajority):
            return 0
        return min(mechanism.remaining, mechanism.max_queries // BLOCKS)

    @property
    def each_costs(self) -> bool:
        """Whether each answer is one release; else only those that were looked at are."""
        return isinstance(self.mechanism, NoisyMajority)

    @property
    def cost(self) -> dict[str, Any] | None:
        """What the noise of this phase costs, for the ledger; None if nothing is drawn any more."""
        return None if self.mechanism is None else cost_to_dict(self.mechanism.cost)

    @property
    def steps(self) -> list[dict[str, Any]]:
        """How that becomes what a row pays, as ``cumae.store.bills`` reads it."""
        return []

    # What an answer changes

    def counts(self) -> dict[str, Any]:
        """Return all counters, and the noise of a threshold that is in force."""
        mechanism = self.mechanism
        if isinstance(mechanism, NoisyMajority):  # its facts would throw away noise drawn ahead
            return {"remaining": mechanism.remaining}
        return {"mechanism": mechanism.to_facts()}

    def set_counts(self, counts: dict[str, Any]) -> None:
        """Take over what ``counts`` returned."""
        if "remaining" in counts:
            self.mechanism.remaining = counts["remaining"]
        else:
            facts = counts["mechanism"]
            source = self.state.fitted.source
            if facts["kind"] == BetweenThresholds.__name__:
                self.replace_mechanism(BetweenThresholds.from_facts(facts, source))
            else:
                self.replace_mechanism(answers_from_facts(facts, source))

    def grown(self, ids: tuple[Any, ...], hide: Callable[[Any], bytes]) -> dict[str, Any]:
        """Return what the last answers added to the state, apart from counters.

        Parameters
        ----------
        ids : tuple
            Those of ``Journal.answered``.
        hide : callable
            Turns an id into its HMAC.
        """
        del ids, hide
        return {}

    def grow(self, grown: dict[str, Any]) -> None:
        """Add to the state what ``grown`` returned; counters are those before it."""
        del grown

    @claim("STORE")
    def charge(self, count: int) -> None:
        """Let releases be gone that may have been used, though the file does not know of them.

        Where a threshold has live noise, each of them may have been unclear; and the noise may
        have been used since, so it is drawn anew, at the price of one more unclear answer.
        """
        mechanism = self.mechanism
        if isinstance(mechanism, NoisyMajority):
            mechanism.remaining -= min(count, mechanism.remaining)
            return
        facts = mechanism.to_facts()
        sides = facts.get("sides", facts)  # BetweenAnswers counts queries around it
        inner = mechanism.sides if isinstance(mechanism, BetweenAnswers) else mechanism
        unclear = "unstable_remaining" if isinstance(inner, StabilityTest) else "remaining"
        sides[unclear] = max(0, sides[unclear] - count - 1)
        sides["threshold_noise"] = discrete_laplace(inner.threshold_rate, source=inner.source)
        if isinstance(inner, StabilityTest):
            facts["queries_remaining"] = max(0, facts["queries_remaining"] - count)
        elif isinstance(mechanism, BetweenAnswers):
            facts["asked"] = min(mechanism.max_queries, facts["asked"] + count)
        self.set_counts({"mechanism": facts})

    def hidden(self, hide: Callable[[Any], bytes]) -> Any:
        """Return the state with HMACs in the place of ids that are kept."""
        del hide
        return self.state

    def know_ids(self, known_as: Callable[[Any], tuple[bytes, ...]]) -> None:
        """Let ids that come be compared by their HMACs from now on."""
        del known_as
