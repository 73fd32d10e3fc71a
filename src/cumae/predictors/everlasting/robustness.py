"""A bound on the rows of a phase that may be poisoned before an answer moves, from public counts.

Each row of a phase is in one shard, and a shard has one vote. So k rows change at most k votes, no
matter what they hold and who chose them: a label with a lead of m votes keeps a lead of m - 2 k.
What the noise can do to a lead follows from its scale. Nothing here depends on votes or rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cumae.claims import claim
from cumae.mechanisms import Majority
from cumae.mechanisms.accuracy import noise_reach
from cumae.parameters import check_share

MARGINS = (0.25, 0.5, 1.0)  # that are printed


@dataclass(frozen=True)
class Robustness:
    """Numbers of rows of a phase that can be poisoned without moving an answer of a given margin.

    The margin of an answer is the lead of its label in the votes of rows that are not poisoned, as
    a share of all votes: 1 if all shards agree. With a prior, what the prior says is fixed, and the
    margin is the share of the votes that would have to change sides, twice. Rows that trained the
    prior, or chose how much the votes count, are not votes, and are not bounded here.

    Parameters
    ----------
    n_rows, n_shards : int of 1 or more
        Rows and votes of the phase.
    majority : Majority
        The noise of its answers.
    client_rows : int, or None
        How many rows of a phase one client can supply at most; None without ``client_cap``.
    votes_count : bool
        False if the votes have no say, because the trust in them is 0: then no row of a phase can
        move an answer, which is the prior's.

    Examples
    --------
    >>> from cumae.mechanisms import GaussianNoise, Majority
    >>> from cumae.predictors.everlasting.robustness import Robustness
    >>> phase = Robustness(20_000, 2_000, Majority(GaussianNoise(100.0)), client_rows=200)
    >>> phase.rows(margin=0.8), round(phase.share(margin=0.8), 4), phase.clients(margin=0.8)
    (603, 0.0301, 3)
    """

    n_rows: int
    n_shards: int
    majority: Majority
    client_rows: int | None = None
    votes_count: bool = True

    def lead(self, beta: float = 0.05) -> int:
        """Return the lead in votes that the noise of one answer keeps, with chance 1 - beta.

        Parameters
        ----------
        beta : float above 0 and below 1
            The chance that it does.
        """
        check_share(beta, "beta")
        draws = 1 if self.majority.n_classes == 2 else self.majority.n_classes
        return 2 * noise_reach(self.majority.noise, 2 * draws, beta) + 1

    @claim("ROBUST")
    def rows(self, margin: float = 1.0, beta: float = 0.05) -> int:
        """Return how many rows may be poisoned so that an answer stays, with chance 1 - beta.

        Parameters
        ----------
        margin : float above 0, 1 at most
            Lead of the answer in the votes of all other rows, as a share of the votes.
        beta : float above 0 and below 1
            The chance that noise moves the answer nevertheless.
        """
        lead = math.floor(check_margin(margin) * self.n_shards)
        if not self.votes_count:
            return self.n_rows
        return min(self.n_rows, max(0, (lead - self.lead(beta)) // 2))

    def share(self, margin: float = 1.0, beta: float = 0.05) -> float:
        """Return the same as a share of the rows of the phase.

        Parameters
        ----------
        margin, beta : float
            As in ``rows``.
        """
        return self.rows(margin, beta) / self.n_rows

    def clients(self, margin: float = 1.0, beta: float = 0.05) -> int | None:
        """Return how many clients may work together and not move an answer; None without a cap.

        Parameters
        ----------
        margin, beta : float
            As in ``rows``.
        """
        if self.client_rows is None:
            return None
        return self.rows(margin, beta) // self.client_rows

    def __str__(self) -> str:
        """Return one line: shares for some margins."""
        if not self.votes_count:
            return "rows that may be poisoned without moving an answer: all, as votes have no say"
        shares = ", ".join(f"{self.share(one):.2%} at margin {one:g}" for one in MARGINS)
        clients = self.clients()
        more = "" if clients is None else f"; {clients:,} clients together at margin 1"
        return f"rows that may be poisoned without moving an answer: {shares}{more}"


def state_lines(
    prior: object | None, trust: float | None, robustness: Robustness, drift: object | None
) -> str:
    """Return lines about the prior, the bound on poisoning and the estimated drift.

    Parameters
    ----------
    prior : object, or None
        The learner that was published as prior.
    trust : float, or None
        How much the votes of the first phase count against it.
    robustness : Robustness
        The bound.
    drift : object, or None
        The estimate, which says itself that it is one.
    """
    first = "No prior."
    if prior is not None:
        first = f"Prior: {type(prior).__name__}; trust in votes: {trust:g}."
        first += "" if trust else " The prior alone answers."
    lines = [str(part) for part in (robustness, drift) if part is not None]
    return "\n".join([first, *(f"{line[0].upper()}{line[1:]}." for line in lines)])


def check_margin(margin: float) -> float:
    """Return a margin that is above 0 and 1 at most."""
    return 1.0 if margin == 1 else check_share(margin, "margin")
