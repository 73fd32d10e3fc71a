"""The sizes of GenericBBL in "Private Everlasting Prediction" (paper 2), as printed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cumae.errors import InvalidParameter, shown
from cumae.parameters import check_count, check_real
from cumae.theorems.vc import unrounded_learner_rows

TAU = 1.1e10  # the paper's constant


@dataclass(frozen=True)
class PaperPhase:
    """What the paper prints for one phase: all as real numbers, before rounding.

    Comments give the paper's names; i is the number of the phase.
    """

    alpha: float
    beta: float
    shard_rows: float  # lambda_i
    shards: float  # T_i
    answers: float  # R_i
    between: float  # c_i

    @property
    def rows(self) -> float:
        """Return |S_i|."""
        return self.shard_rows * self.shards


def paper_phase(
    number: int, alpha: float, beta: float, epsilon: float, delta: float, vc: int
) -> PaperPhase:
    """Return the sizes of steps 1 to 3c of GenericBBL, with natural logarithms.

    Parameters
    ----------
    number : int of 1 or more
        Number of the phase.
    alpha, beta : float between 0 and 1/16
        The paper's parameters of accuracy.
    epsilon, delta : float
        Privacy parameters.
    vc : int of 1 or more
        VC dimension of the class.
    """
    alpha, beta = alpha / 2.0**number, beta / 2.0**number
    rows = unrounded_learner_rows(alpha, beta, vc)
    inside = math.log(rows / (epsilon * alpha * beta * delta))
    shards = TAU * rows * math.log(1 / delta) * inside**2 / (alpha * epsilon)
    answers = 25600 * rows * shards / epsilon
    return PaperPhase(alpha, beta, rows, shards, answers, 64 * alpha * answers)


def paper_rows(alpha: float, beta: float, epsilon: float, delta: float, vc: int) -> int:
    """Return how many labelled rows the paper asks for: more than any machine holds.

    Theorem 5.1 of paper 2. The first phase gets a share epsilon/(3 + exp(epsilon + 4)) of them. The
    theorem promises that the error is 6 alpha at most, with chance 1 - 4 beta.

    Parameters
    ----------
    alpha, beta, delta : float between 0 and 1/16
        A sixth of the error, a quarter of the chance that it is larger, and the privacy parameter.
    epsilon : float above 0 and up to 1
        Privacy parameter.
    vc : int of 1 or more
        VC dimension of the class.

    Raises
    ------
    InvalidParameter
        If the paper does not cover these parameters.

    Examples
    --------
    >>> from cumae.theorems.everlasting import paper_rows
    >>> f"{paper_rows(1 / 20, 1 / 20, 1.0, 1e-6, vc=1):.1e}"
    '5.7e+24'
    """
    given = {"alpha": alpha, "beta": beta, "delta": delta}
    wrong = [name for name in given if not 0 < check_real(given[name], name) < 1 / 16]
    wrong += [] if 0 < check_real(epsilon, "epsilon") <= 1 else ["epsilon"]
    if wrong:
        given["epsilon"] = epsilon
        good = {"alpha": 0.05, "beta": 0.05, "delta": 1e-6, "epsilon": 1.0}
        raise InvalidParameter(
            f"constants='paper' with {', '.join(f'{name}={shown(given[name])}' for name in wrong)}:"
            " the paper has alpha, beta and delta between 0 and 1/16, and epsilon in (0, 1]. To "
            f"see its number of rows, give {', '.join(f'{name}={good[name]!r}' for name in wrong)}."
        )
    check_count(vc, "vc", least=1)
    first = paper_phase(1, alpha, beta, epsilon, delta, vc)
    return math.ceil(first.rows * (3 + math.exp(epsilon + 4)) / epsilon)
