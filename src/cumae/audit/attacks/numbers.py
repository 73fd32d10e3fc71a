"""Attacks on the noisy sums of regressions: a row whose number is as far off as any.

They are those of ``sums``, with shortened residuals: numbers instead of labels are the lowest
and the highest of the target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from cumae.arrays import Floats, Integers
from cumae.audit.attacks.sums import Sum, Target, question
from cumae.audit.runs import Attack
from cumae.learners.kernel.sums import MOVES
from cumae.learners.regression.asking import COUNTS_MOVE, NumberQuestion, bin_counts
from cumae.learners.regression.target import LINKS, NumberTarget

ENDS = np.array([0.0, 10.0])  # the range of the target
CUTS = np.array([-1.0, 0.0, 1.0])
REACH = 0.5  # where residuals are shortened
ESTIMATORS = ("PrivateKernelRegressor", "PrivateLinearRegression")


def asked(link: str = "identity") -> NumberQuestion:
    """Return what a first step asks.

    Parameters
    ----------
    link : {"identity", "log"}
        What scores stand for.
    """
    centre = 5.0 if link == "identity" else 0.0
    low, high = ENDS.tolist()
    return NumberQuestion(question(), NumberTarget(low, high, link, centre, 5.0), REACH)


def shortened(attacked: str, link: str = "identity") -> Target:
    """Return one sum of shortened residuals: a number moves from one end of the range to the other.

    Parameters
    ----------
    attacked : str
        The class that releases it.
    link : {"identity", "log"}
        What scores stand for.
    """
    one = asked(link)

    def exact(rows: Floats, labels: Integers) -> Integers:
        return one.total(one.asked.features.codes(rows), ENDS[labels])

    name = "a row in a sum of shortened residuals" + (", log link" if link == "log" else "")
    return Target(name, (Sum(exact, float(MOVES)),), 2, attacked)


def counted(attacked: str) -> Target:
    """Return counts of numbers and of errors: a row moves from one bin to another in both.

    Parameters
    ----------
    attacked : str
        The class that releases them.
    """
    one = asked()

    def errors(rows: Floats, labels: Integers) -> Integers:
        return one.errors(one.asked.features.codes(rows), ENDS[labels], CUTS)

    def spread(rows: Floats, labels: Integers) -> Integers:
        del rows
        return bin_counts(ENDS[labels], CUTS)

    sums = (Sum(spread, COUNTS_MOVE), Sum(errors, COUNTS_MOVE))
    return Target("a row in counts of numbers and errors", sums, 2, attacked)


def _attack(target: Callable[..., Target], attacked: str, epsilon: float, delta: float) -> Attack:
    return target(attacked).attack(epsilon, delta)


TARGETS: tuple[Callable[..., Target], ...] = (
    shortened,
    partial(shortened, link=LINKS[1]),
    counted,
)
ATTACKS: dict[str, Sequence[Callable[..., Attack]]] = {
    name: tuple(partial(_attack, target, name) for target in TARGETS) for name in ESTIMATORS
}
