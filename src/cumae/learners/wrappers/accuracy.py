"""From one hypothesis to one that is right more surely: AccuracyBoost of paper 2, Appendix B.

Paper 2 is Naor, Nissim, Stemmer, Yan: Private Everlasting Prediction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import UNLABELLED, check_labels
from cumae.errors import InvalidData
from cumae.learners.base import ACCOUNT, Rows, Sizes
from cumae.learners.wrappers.base import ANY_BASE, take_rows
from cumae.learners.wrappers.reductions import (
    MOST_DELTA,
    MOST_EPSILON,
    Reduction,
    ReductionPlan,
)
from cumae.parameters import CHANCE, Count, Kind, Or, check_count, check_share
from cumae.privacy import Budget
from cumae.randomness import Source, permutation


@claim("REDUCE")
class AccuracyBoost(Reduction):
    """The majority of copies on disjoint blocks of rows, which is right more surely than one copy.

    From paper 2, Appendix B. A row is in one block, so all copies together cost what one costs.
    See :meth:`error_factor` for what the majority promises. Ties count as the first class.

    Parameters
    ----------
    base : object with fit, predict and guarantee_
        It must publish its model.
    epsilon : float of 0 or more, or None
        Most that the base may cost; None takes its own parameter of this name.
    delta : float from 0 and below 1, or None
        The same for delta.
    blocks : int of 1 or more, or None
        Number of copies; None takes the paper's 104 ln(1/beta).
    beta : float above 0 and below 1
        Chance of failure that is aimed at.
    classes : sequence of two labels
        The labels; the base gets 0 and 1 in their place.
    budget : Budget, or None
        An account to pay from.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Thresholds
    >>> from cumae.learners import AccuracyBoost, PrivateLearner
    >>> base = PrivateLearner(Thresholds(), epsilon=1.0, columns=[(0, 9)])
    >>> learner = AccuracyBoost(base, blocks=5)
    >>> x = np.arange(2000) % 10
    >>> learner.fit(x.reshape(-1, 1), x >= 4).predict([[0], [9]])
    array([0, 1])
    >>> learner.guarantee_.epsilon
    1.0
    """

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "base": ANY_BASE,
        "epsilon": MOST_EPSILON,
        "delta": MOST_DELTA,
        "blocks": Or(None, Count(1)),
        "beta": CHANCE,
        **ACCOUNT,
    }

    def __init__(
        self,
        base: Any,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        blocks: int | None = None,
        beta: float = 0.05,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.base = base
        self.epsilon = epsilon
        self.delta = delta
        self.blocks = blocks
        self.beta = beta
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    def _count(self) -> int:
        check_share(self.beta, "beta")
        if self.blocks is None:
            return math.ceil(104 * math.log(1 / self.beta))
        return check_count(self.blocks, "blocks", least=1)

    def _run_sizes(self, sizes: Sizes) -> list[Sizes]:
        count = self._count()
        if sizes.labelled < count:
            raise InvalidData(
                f"{sizes.labelled} labelled rows do not fill {count} blocks; give more rows, or "
                "fewer blocks."
            )
        # Block i gets the places i, i + count and so on of each role.
        return [
            replace(
                sizes,
                labelled=len(range(i, sizes.labelled, count)),
                unlabelled=len(range(i, sizes.unlabelled, count)),
            )
            for i in range(count)
        ]

    def decide(self, sizes: Sizes, rows: Rows) -> ReductionPlan:
        plan, count = super().decide(sizes, rows), self._count()
        return replace(plan, facts={"n_blocks": count, "block_rows": sizes.labelled // count})

    def _publish(self, rows: Rows, fit: Callable[[Rows], Any], source: Source) -> dict[str, Any]:
        count = self._count()
        labelled = rows.y != UNLABELLED
        # Each role is dealt out by itself, so that every block gets its share of both.
        roles = [np.flatnonzero(labelled), np.flatnonzero(~labelled)]
        mixed = [role[permutation(len(role), source)] for role in roles]
        blocks = [np.concatenate([role[i::count] for role in mixed]) for i in range(count)]
        runs = [replace(rows, X=take_rows(rows.X, block), y=rows.y[block]) for block in blocks]
        return {"members_": [fit(run) for run in runs]}

    def _labels(self, table: NDArray[Any]) -> Integers:
        votes = sum(check_labels(member.predict(table)) for member in self.members_)
        return np.asarray(2 * votes > len(self.members_), dtype=np.int64)

    def error_factor(self, failure: float = 0.25) -> float:
        """Return c such that the majority's error is at most c times a, with chance 1 - ``beta``.

        It holds if each block's hypothesis has error above a with probability at most ``failure``,
        independently of the others.

        Parameters
        ----------
        failure : float above 0 and below 1
            Chance of failure of a single hypothesis.

        Returns
        -------
        float
            c, which is infinite if nothing is promised.

        Examples
        --------
        >>> from cumae.learners import AccuracyBoost
        >>> round(AccuracyBoost(None, beta=0.05).error_factor(), 2)
        3.4
        """
        count = self._count()
        check_share(failure, "failure")
        # At least so many are good, with chance 1 - beta.
        good = int(stats.binom.ppf(self.beta, count, 1 - failure))
        needed = good - count // 2  # so many good ones are wrong where the majority is
        return good / needed if needed > 0 else math.inf
