"""The label with the most votes, after noise on the counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.errors import BudgetExhausted, InvalidData, InvalidParameter
from cumae.live import only_once
from cumae.mechanisms.accuracy import noise_reach
from cumae.mechanisms.base import (
    Coins,
    Draw,
    Interactive,
    Spent,
    VoteRule,
    check_integers,
    check_left,
    keep_plain,
)
from cumae.mechanisms.noise import GaussianNoise, LaplaceNoise, noise_from_facts
from cumae.parameters import check_choice, check_count, check_share
from cumae.privacy import Cost, Pure, calibrate
from cumae.privacy.validation import check_delta, check_epsilon
from cumae.randomness import Source
from cumae.remembering import remembered


@claim("MULTI")
@dataclass(frozen=True)
class Majority(VoteRule):
    """The label with the most votes, after fresh noise on the counts: a frozen value.

    With two classes the votes for the second are one count, moved by at most one. With more, one
    vote leaves a bin and enters another: two counts move by one each. The only counter is the
    number of answers, so that no query can move the answer to another one.

    Parameters
    ----------
    noise : GaussianNoise or LaplaceNoise
        What is added; its sensitivity fits the number of classes.
    n_classes : int of 2 or more
        Number of classes.
    max_queries : int of 1 or more
        How many answers there will be.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.mechanisms import Coins, Majority
    >>> from cumae.randomness import SYSTEM
    >>> majority = Majority.calibrated(1.0, 1e-6, max_queries=1_000)
    >>> votes = np.array([[9_000, 1_000], [100, 9_900]])
    >>> labels, spent = majority.ask(votes, majority.start(SYSTEM), Coins(SYSTEM))
    >>> labels.tolist(), majority.left(spent)
    ([0, 1], 998)
    """

    claims = ("MULTI", "NOISE")
    each_costs = True

    noise: GaussianNoise | LaplaceNoise
    n_classes: int = 2
    max_queries: int = 1

    def __post_init__(self) -> None:
        keep_plain(
            self,
            n_classes=check_count(self.n_classes, "n_classes", least=2),
            max_queries=check_count(self.max_queries, "max_queries", least=1),
        )
        if counts_moved(self.n_classes) > _covered(self.noise):
            raise InvalidParameter(
                f"n_classes={self.n_classes!r}: one vote moves two counts, but the noise covers "
                f"{_covered(self.noise)}; use NoisyMajority.calibrated."
            )

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        max_queries: int,
        n_classes: int = 2,
        *,
        kind: str = "gaussian",
        random_state: int | Source | None = None,
    ) -> Majority:
        """Return the one with the least noise that costs (epsilon, delta) in all.

        ``kind`` is ``"gaussian"``, which needs delta above 0, or ``"laplace"``.
        """
        check_choice(kind, ("gaussian", "laplace"), "kind")
        count = check_count(max_queries, "max_queries", least=1)
        moves = counts_moved(check_count(n_classes, "n_classes", least=2))
        noise: GaussianNoise | LaplaceNoise
        if kind == "gaussian":
            noise = GaussianNoise.calibrated(
                epsilon, delta, count, moves=moves, random_state=random_state
            )
        else:
            single = laplace_epsilon(epsilon, delta, count)
            noise = LaplaceNoise(single, moves, random_state=random_state)
        return cls(noise, n_classes, count)

    @property
    def cost(self) -> Cost:
        return self.noise.cost * self.max_queries

    def start(self, source: Source) -> Spent:  # noqa: ARG002 - no threshold has noise here
        return Spent()

    def left(self, spent: Spent) -> int:
        return self.max_queries - spent.asked

    def release(self, votes: Integers, coins: Coins) -> Integers:
        """Return counts with noise; whoever asks has counted them before.

        The noisy counts of two classes add up to the number of voters, because only one of them is
        drawn.
        """
        noisy = votes.copy()
        if self.n_classes == 2:
            noise = coins.take("votes", self, self._drawer, len(votes))
            noisy[:, 1] += noise
            noisy[:, 0] -= noise
        else:
            noise = coins.take("votes", self, self._drawer, votes.size)
            noisy += noise.reshape(votes.shape)
        return noisy

    def _drawer(self, source: Source) -> Draw:
        return lambda count: self.noise.draw(count, source)

    def ask(self, votes: Integers, spent: Spent, coins: Coins) -> tuple[Integers, Spent]:
        after = self.reserved(spent, len(votes))
        return labels_of(self.release(votes, coins)), after

    def charged(self, spent: Spent, count: int, source: Source) -> Spent:  # noqa: ARG002 - as start
        return Spent(min(self.max_queries, spent.asked + count))

    def to_facts(self) -> dict[str, Any]:
        sizes = {"n_classes": self.n_classes, "max_queries": self.max_queries}
        return {"kind": "Majority", "noise": self.noise.to_facts(), **sizes}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """Rebuild what ``to_facts`` returned."""
        return cls(noise_from_facts(facts["noise"]), facts["n_classes"], facts["max_queries"])


def labels_of(noisy: Integers) -> Integers:
    """Return the column with the most votes; a tie goes to the class declared first."""
    return np.asarray(noisy.argmax(axis=1), dtype=np.int64)


@claim("MULTI")
class NoisyMajority(Interactive):
    """Answers by the label with the most votes, after fresh noise on the counts.

    Protects one row that changes the vote of at most one voter. It is a live :class:`Majority`: it
    keeps no state but the number of answers left.

    Parameters
    ----------
    noise : GaussianNoise or LaplaceNoise
        A :class:`GaussianNoise` or :class:`LaplaceNoise` whose sensitivity fits the number of
        classes; ``calibrated`` makes it.
    n_classes : int of 2 or more
        Number of classes.
    max_queries : int of 1 or more
        How many answers there will be.

    Attributes
    ----------
    remaining
        Answers left.

    Examples
    --------
    >>> from cumae.mechanisms import NoisyMajority
    >>> majority = NoisyMajority.calibrated(1.0, 1e-6, max_queries=1_000)
    >>> majority.ask([[9_000, 1_000], [100, 9_900]]).tolist()
    [0, 1]
    >>> majority.remaining
    998
    >>> majority.cost.epsilon(1e-6) <= 1.0
    True
    """

    claims = ("MULTI", "NOISE")
    fact_names = ("noise", "n_classes", "max_queries", "remaining")

    def __init__(
        self,
        noise: GaussianNoise | LaplaceNoise,
        n_classes: int = 2,
        max_queries: int = 1,
    ) -> None:
        super().__init__(noise.source)
        self.rule = Majority(noise, n_classes, max_queries)
        self.noise = noise
        self.n_classes, self.max_queries = self.rule.n_classes, self.rule.max_queries
        self.remaining = self.max_queries

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        max_queries: int,
        n_classes: int = 2,
        *,
        kind: str = "gaussian",
        random_state: int | Source | None = None,
    ) -> NoisyMajority:
        """Return the one with the least noise that costs (epsilon, delta) in all.

        ``kind`` is ``"gaussian"``, which needs delta above 0, or ``"laplace"``.
        """
        rule = Majority.calibrated(
            epsilon, delta, max_queries, n_classes, kind=kind, random_state=random_state
        )
        return cls(rule.noise, rule.n_classes, rule.max_queries)

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "noise": self.noise.to_facts()}

    @classmethod
    def _restored(cls, facts: Mapping[str, Any], random_state: int | Source | None) -> Self:
        noise = noise_from_facts(facts["noise"], random_state)
        found = cls(noise, facts["n_classes"], facts["max_queries"])
        found.remaining = check_left(facts["remaining"], found.max_queries, "remaining")
        return found

    @property
    def cost(self) -> Cost:
        """All answers together."""
        return self.rule.cost

    @property
    def asked(self) -> int:
        """Answers given so far."""
        return self.max_queries - self.remaining

    def accuracy(self, beta: float = 0.05) -> int:
        """Return the lead with which all answers are right, with probability 1 - beta.

        A lead is how many more votes the label with the most votes has than any other. For any
        votes, all of the ``max_queries`` answers with so large a lead are that label.

        Parameters
        ----------
        beta : float above 0 and below 1
            The chance that an answer with such a lead is another label.

        Examples
        --------
        >>> from cumae.mechanisms import NoisyMajority
        >>> NoisyMajority.calibrated(1.0, 1e-6, max_queries=1_000).accuracy(beta=0.05)
        1085
        """
        check_share(beta, "beta")
        draws = self.max_queries * (1 if self.n_classes == 2 else self.n_classes)
        # Two counts each move by this at most, in opposite directions.
        return 2 * noise_reach(self.noise, 2 * draws, beta) + 1

    @only_once
    def release(self, votes: ArrayLike) -> Integers:
        """Return the counts with noise: one row per query, one column per class.

        A batch larger than ``remaining`` is refused whole.
        """
        counts = np.atleast_2d(check_integers(votes, "votes"))
        if counts.ndim != 2 or counts.shape[1] != self.n_classes:
            raise InvalidData(
                f"votes of shape {counts.shape}: give one row per query and {self.n_classes} "
                "columns, one per class."
            )
        if len(counts) > self.remaining:
            raise BudgetExhausted(
                f"{len(counts)} queries were asked, but {self.remaining} of "
                f"{self.max_queries} answers remain; ask fewer.",
                remaining=self.remaining,
                asked=len(counts),
            )
        self.remaining -= len(counts)  # before anything is drawn
        return self.rule.release(counts, self._coins)

    def ask(self, votes: ArrayLike) -> Integers:
        """Answer queries: the column of the label; a tie goes to the class declared first."""
        return labels_of(self.release(votes))


@claim("MULTI")
def laplace_epsilon(epsilon: float, delta: float, releases: int) -> float:
    """Return the largest epsilon for one release if all together stay within (epsilon, delta)."""
    epsilon, releases = check_epsilon(epsilon), check_count(releases, "releases", least=1)
    if epsilon == np.inf:
        return epsilon
    if epsilon == 0:
        raise InvalidParameter("epsilon=0 would need infinite noise; give a number above 0.")
    return _laplace_epsilon(epsilon, check_delta(delta), releases)


@claim("MULTI")
@remembered(256)  # fits with the same parameters ask again, and it takes long
def _laplace_epsilon(epsilon: float, delta: float, releases: int) -> float:
    start = releases / epsilon * (1 + 1e-12)
    return 1 / calibrate(lambda noise: Pure(1 / noise) * releases, epsilon, delta, start=start)


@claim("MULTI")
def counts_moved(n_classes: int) -> int:
    """Return how many released counts one vote moves by one: two classes have a single count.

    Examples
    --------
    >>> from cumae.mechanisms import counts_moved
    >>> counts_moved(2), counts_moved(5)
    (1, 2)
    """
    return 1 if n_classes == 2 else 2


@claim("MULTI")
def _covered(noise: GaussianNoise | LaplaceNoise) -> int:
    """Return how many counts one row may move by one under this noise."""
    return noise.moves if isinstance(noise, GaussianNoise) else noise.sensitivity
