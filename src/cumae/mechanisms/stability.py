"""The stability test on vote counts, with the sparse vector and integer noise."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.errors import InvalidData, InvalidParameter
from cumae.live import only_once
from cumae.mechanisms.accuracy import sparse_reach
from cumae.mechanisms.base import (
    UNCLEAR,
    Coins,
    Spent,
    check_integers,
    check_left,
    keep_plain,
)
from cumae.mechanisms.sparse import (
    SparseRule,
    SparseVector,
    check_noise,
    check_threshold_noise,
    upper_tail,
)
from cumae.parameters import check_count
from cumae.privacy import Cost, Pure, calibrate, or_fail
from cumae.privacy.validation import (
    check_delta,
    check_epsilon,
    from_plain_number,
    plain_number,
)
from cumae.randomness import Source
from cumae.remembering import remembered

# A charged answer costs the rate of the threshold noise plus twice that of the query noise. The
# threshold noise is the smaller one, because the worst of all thresholds counts towards delta.
THRESHOLD_SHARE = Fraction(1, 2)
QUERY_SHARE = Fraction(1, 4)


@claim("STAB")
def distance_to_instability(votes: ArrayLike) -> Integers:
    """Return how many shards must change, at least, before a change of one more may flip the label.

    ``votes`` holds one row of vote counts per query, one column per class. With the gap between the
    largest and the second largest count it is max(0, ceil(gap / 2) - 1): it moves by at most one
    when one shard changes its vote, and is 0 whenever one shard can flip the label.

    Examples
    --------
    >>> from cumae.mechanisms import distance_to_instability
    >>> distance_to_instability([[5, 5], [7, 5], [8, 5], [20, 3]]).tolist()
    [0, 0, 1, 8]
    """
    counts = np.sort(check_integers(votes, "votes"), axis=-1)
    gap = counts[..., -1] - counts[..., -2]
    return np.asarray(np.maximum(0, (gap + 1) // 2 - 1), dtype=np.int64)


@claim("STAB")
@dataclass(frozen=True)
class Stability(SparseRule):
    """The stability test as a frozen value: labels with a clear lead are free, others are charged.

    Parameters
    ----------
    epsilon : float above 0
        What one unstable answer, with all stable ones before it, costs.
    threshold : int of 0 or more
        Distance to instability that a query has to show, before noise. What all answers cost in
        delta follows from it.
    max_queries, max_unstable : int of 1 or more
        How many queries there will be, and how many of them may be found unstable.
    """

    claims = ("STAB",)
    threshold_share = THRESHOLD_SHARE
    query_share = QUERY_SHARE

    epsilon: float
    threshold: int
    max_queries: int
    max_unstable: int

    def __post_init__(self) -> None:
        keep_plain(
            self,
            epsilon=check_noise(self.epsilon, QUERY_SHARE),
            threshold=check_count(self.threshold, "threshold"),
            max_queries=check_count(self.max_queries, "max_queries", least=1),
            max_unstable=check_count(self.max_unstable, "max_unstable", least=1),
        )

    @classmethod
    def of(cls, epsilon: float, delta: float, max_queries: int, max_unstable: int) -> Self:
        """Return the one with the least threshold that costs no more than delta."""
        queries = check_count(max_queries, "max_queries", least=1)
        unstable = check_count(max_unstable, "max_unstable", least=1)
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        threshold = least_threshold(epsilon, delta, queries, unstable)
        return cls(epsilon, threshold, queries, unstable)

    @classmethod
    def calibrated(cls, epsilon: float, delta: float, max_queries: int, max_unstable: int) -> Self:
        """Return the one with the least noise that costs (epsilon, delta) in all."""
        max_unstable = check_count(max_unstable, "max_unstable", least=1)
        single = epsilon = check_epsilon(epsilon)
        delta = check_delta(delta)
        if single < math.inf:
            if single == 0 or delta == 0:
                raise InvalidParameter(
                    f"epsilon={epsilon!r}, delta={delta!r}: the stability test needs both above 0."
                )
            single = _single_epsilon(epsilon, delta, max_unstable)
        return cls.of(single, delta / 2, max_queries, max_unstable)

    @property
    def max_unclear(self) -> int:
        return self.max_unstable

    @functools.cached_property
    def delta(self) -> float:
        """The chance, over all queries, that a label passes that one row can flip."""
        return delta_at_threshold(self.epsilon, self.threshold, self.max_queries, self.max_unstable)

    @property
    def cost(self) -> Cost:
        return or_fail(Pure(self.epsilon) * self.max_unstable, self.delta)

    def ask(self, votes: Integers, spent: Spent, coins: Coins) -> tuple[Integers, Spent]:
        self.reserved(spent, len(votes))  # refuses more than are left
        noisy = distance_to_instability(votes) + self.query_noise(len(votes), coins)
        answers = np.argmax(votes, axis=1)  # a tie goes to the class declared first
        start, unclear, shift = 0, spent.unclear, spent.threshold_noise
        while start < len(votes) and unclear < self.max_unstable:
            unstable = np.flatnonzero(noisy[start:] < self.threshold + shift)
            if not len(unstable):
                start = len(votes)
                break
            start += int(unstable[0]) + 1
            answers[start - 1] = UNCLEAR
            shift = self.fresh_threshold_noise(coins.source)
            unclear += 1
        after = Spent(spent.asked + start, unclear, shift)
        return np.asarray(answers[:start], dtype=np.int64), after

    def to_facts(self) -> dict[str, Any]:
        names = ("epsilon", "threshold", "max_queries", "max_unstable")
        return {"kind": "Stability", **{name: plain_number(getattr(self, name)) for name in names}}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """Rebuild what ``to_facts`` returned."""
        epsilon, counts = from_plain_number(facts["epsilon"]), ("max_queries", "max_unstable")
        return cls(epsilon, facts["threshold"], *(facts[name] for name in counts))


@claim("STAB")
class StabilityTest(SparseVector):
    """The label with the most votes where it is stable; only unstable answers are paid.

    Protects one row that changes the vote of at most one shard; the queries are public. It is a
    live :class:`Stability`.

    Parameters
    ----------
    epsilon : float above 0
        What one unstable answer, with all stable ones before it, may cost.
    delta : float from 0 and below 1
        The chance, over all queries, that a label passes that one row can flip.
    max_queries, max_unstable : int of 1 or more
        How many queries there will be, and how many of them may be found unstable.
    random_state : int, Source or None
        None in production; a seed or a source in tests, which voids the guarantee.

    Attributes
    ----------
    threshold
        Distance to instability that a query has to show, before noise.
    remaining
        Queries left; 0 also when no unstable answer is left.

    Examples
    --------
    >>> from cumae.mechanisms import StabilityTest
    >>> test = StabilityTest.calibrated(1.0, 1e-6, max_queries=1_000, max_unstable=10)
    >>> test.ask([[9_000, 1_000], [100, 9_900], [5_000, 5_000]]).tolist()
    [0, 1, -1]
    >>> test.remaining, test.unstable_remaining
    (997, 9)
    """

    claims = ("STAB",)
    fact_names = (
        "epsilon",
        "threshold",
        "max_queries",
        "max_unstable",
        "queries_remaining",
        "unstable_remaining",
        "threshold_noise",
    )

    def __init__(
        self,
        epsilon: float,
        delta: float,
        max_queries: int,
        max_unstable: int = 1,
        *,
        random_state: int | Source | None = None,
    ) -> None:
        self._begin(Stability.of(epsilon, delta, max_queries, max_unstable), random_state)

    def _begin(
        self, rule: Stability, random_state: int | Source | None, spent: Spent | None = None
    ) -> None:
        self.rule = rule
        SparseVector.__init__(self, rule, random_state, spent)

    @classmethod
    def _of(
        cls, rule: Stability, random_state: int | Source | None, spent: Spent | None = None
    ) -> Self:
        # Past the constructor: what all answers cost in delta follows from the threshold.
        found = cls.__new__(cls)
        found._begin(rule, random_state, spent)
        return found

    @classmethod
    def _restored(cls, facts: Mapping[str, Any], random_state: int | Source | None) -> Self:
        rule = Stability.from_facts(facts)
        queries = check_left(facts["queries_remaining"], rule.max_queries, "queries_remaining")
        left = check_left(facts["unstable_remaining"], rule.max_unstable, "unstable_remaining")
        noise = check_threshold_noise(facts["threshold_noise"])
        spent = Spent(rule.max_queries - queries, rule.max_unstable - left, noise)
        return cls._of(rule, random_state, spent)

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        max_queries: int,
        max_unstable: int,
        *,
        random_state: int | Source | None = None,
    ) -> Self:
        """Return the one with the least noise that costs (epsilon, delta) in all."""
        rule = Stability.calibrated(epsilon, delta, max_queries, max_unstable)
        return cls._of(rule, random_state)

    @property
    def threshold(self) -> int:
        """Distance to instability that a query has to show, before noise."""
        return self.rule.threshold

    @property
    def delta(self) -> float:
        """The chance, over all queries, that a label passes that one row can flip."""
        return self.rule.delta

    @property
    def max_queries(self) -> int:
        """Number of queries that there will be."""
        return self.rule.max_queries

    @property
    def max_unstable(self) -> int:
        """Number of them that may be found unstable."""
        return self.rule.max_unstable

    @property
    def queries_remaining(self) -> int:
        """Queries left, whether they can be answered or not."""
        return self.max_queries - self.asked

    @property
    def unstable_remaining(self) -> int:
        """Unstable answers left."""
        return self.max_unstable - self._spent.unclear

    @property
    def remaining(self) -> int:
        """Queries left; 0 also when no unstable answer is left."""
        return self.rule.left(self._spent)

    @property
    def asked(self) -> int:
        """Queries answered so far."""
        return self._spent.asked

    def accuracy(self, beta: float = 0.05) -> int:
        """Return the lead with which all answers are stable, with probability 1 - beta.

        A lead is how many more votes the label with the most votes has than any other. For any
        votes: of the ``max_queries`` answers, all with so large a lead are that label, as long
        as the test goes on. An answer that is not called unstable is that label in any case.

        Parameters
        ----------
        beta : float above 0 and below 1
            The chance that an answer with such a lead is called unstable.

        Examples
        --------
        >>> from cumae.mechanisms import StabilityTest
        >>> test = StabilityTest.calibrated(1.0, 1e-6, max_queries=1_000, max_unstable=20)
        >>> test.accuracy(beta=0.05)
        5031
        """
        rule = self.rule
        # ceil(lead / 2) - 1, the distance, must be the threshold and this reach at least.
        reach = sparse_reach(rule, rule.max_queries, beta, sides=1)
        return 2 * (rule.threshold + reach) + 1

    @only_once
    def ask(self, votes: ArrayLike) -> Integers:
        """Answer queries in order: the label's column, or -1 where it is unstable.

        ``votes`` holds one row of counts per query. A batch larger than ``remaining`` is refused
        whole; fewer answers than asked come back if the last unstable one is among them.
        """
        counts = np.atleast_2d(check_integers(votes, "votes"))
        if counts.ndim != 2 or counts.shape[1] < 2:
            raise InvalidData(
                f"votes of shape {counts.shape}: give one row per query and one column per class."
            )
        self._check_left(
            self.remaining, f"{self.max_queries} answers or {self.max_unstable} unstable ones"
        )
        answers, self._spent = self.rule.ask(counts, self._spent, self._coins)
        return answers


@claim("STAB")
@np.errstate(over="ignore", under="ignore")
def delta_at_threshold(
    epsilon: float, threshold: int, max_queries: int, max_unstable: int
) -> float:
    """Bound the chance that any of the queries passes at distance 0.

    Given all threshold noises, each query passes with a chance of at most that of the smallest of
    them; so delta is the mean of min(1, max_queries P(query noise >= threshold + smallest)).
    """
    if epsilon == math.inf or not max_queries or not max_unstable:
        return 0.0
    above, query = epsilon * float(THRESHOLD_SHARE), epsilon * float(QUERY_SHARE)
    if 80 + math.log(max_unstable) > 2**24 * above:
        raise InvalidParameter(
            f"epsilon={epsilon!r} for one unstable answer is too small; allow fewer of them."
        )
    reach = math.ceil((80 + math.log(max_unstable)) / above)
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    # ln P(smallest noise > x) = max_unstable ln P(noise > x); P(smallest = x) is the difference of
    # two such powers. Both are written so that chances far below 2^-53 are not lost.
    low = np.log1p(-upper_tail(above, np.maximum(-values, 1.0)))
    high = -above * np.maximum(values + 1.0, 1.0) - math.log1p(math.exp(-above))
    later = np.maximum(max_unstable * np.where(values < 0, low, high), -1e300)
    before = np.append(0.0, later[:-1])
    smallest = -np.exp(before) * np.expm1(later - before)
    passes = np.minimum(1.0, max_queries * upper_tail(query, threshold + values))
    beyond = np.exp(later[-1]) * passes[-1]
    return float((smallest * passes).sum() + beyond) * (1 + 1e-9) + 1e-30


@claim("STAB")
def least_threshold(epsilon: float, delta: float, max_queries: int, max_unstable: int) -> int:
    """Return the least threshold at which ``delta_at_threshold`` is at most delta."""
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    if epsilon == math.inf or not max_queries or not max_unstable:
        return 0
    if epsilon == 0 or delta <= 1e-29:
        raise InvalidParameter(
            f"epsilon={epsilon!r}, delta={delta!r}: both must be above 0 for a finite threshold."
        )
    low, high = 0, 1
    while delta_at_threshold(epsilon, high, max_queries, max_unstable) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        fits = delta_at_threshold(epsilon, middle, max_queries, max_unstable) <= delta
        low, high = (low, middle) if fits else (middle, high)
    return high


@claim("STAB")
@remembered(256)  # fits with the same parameters ask again, and it takes long
def _single_epsilon(epsilon: float, delta: float, max_unstable: int) -> float:
    """Return the largest epsilon of one unstable answer if all stay within (epsilon, delta)."""

    def cost(noise: float) -> Cost:
        return or_fail(Pure(1 / noise) * max_unstable, delta / 2)

    return 1 / calibrate(cost, epsilon, delta, start=max_unstable / epsilon)
