"""From private answers to a hypothesis, and from one hypothesis to a surer one.

HypothesisLearner and AccuracyBoost of paper 2, Appendix B. They wrap anything with ``fit``,
``predict`` and ``guarantee_``, and keep its privacy.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import UNLABELLED, Columns, cells_of_columns, check_labels, check_rows, length_of
from cumae.errors import BudgetExhausted, InvalidData, InvalidParameter, shown
from cumae.learners.base import Rows
from cumae.learners.wrappers.base import Reduction, take_rows
from cumae.parameters import check_choice, check_count
from cumae.privacy import Budget
from cumae.privacy.validation import check_nonnegative
from cumae.randomness import Source, integers, permutation


@claim("REDUCE")
class HypothesisLearner(Reduction):
    """Publish a private predictor's answers on a finite domain as one hypothesis.

    From paper 2, Appendix B. The predictor is fitted, asked about points of the domain, and
    forgotten; the table of its answers is the hypothesis. It costs what the predictor costs.
    If every hypothesis behind the answers has error at most alpha, the table has at most 8 alpha,
    but for a chance of 1/8 (plus ``beta`` in the paper's variant).

    Parameters
    ----------
    predictor
        Object with ``fit``, ``predict`` and ``guarantee_``, whose guarantee covers its answers.
    domain
        All rows that ``predict`` will ever be asked about; public, without repetitions.
    epsilon, delta
        Most that the predictor may cost; None takes its own parameters of these names.
    variant
        ``"tight"`` asks for every point once, in random order. ``"paper"`` asks for random
        points, ``n_rounds(len(domain), beta)`` times, and keeps a random answer for each.
    beta
        The paper's chance that a point is never asked for; the table is then 0 everywhere.
    classes, budget, random_state
        As in :class:`~cumae.learners.PrivateLearner`.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Thresholds
    >>> from cumae.learners import PrivateLearner
    >>> from cumae.learners.wrappers.reductions import HypothesisLearner
    >>> predictor = PrivateLearner(Thresholds(), epsilon=1.0, columns=[(0, 9)])
    >>> learner = HypothesisLearner(predictor, domain=[[x] for x in range(10)])
    >>> x = np.arange(2000) % 10
    >>> learner.fit(x.reshape(-1, 1), x >= 4).predict([[0], [9]])
    array([0, 1])
    >>> learner.guarantee_.epsilon
    1.0
    """

    wraps = "predictor"
    splits = False

    def __init__(
        self,
        predictor: Any,
        domain: ArrayLike,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        variant: str = "tight",
        beta: float = 0.125,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.predictor = predictor
        self.domain = domain
        self.epsilon = epsilon
        self.delta = delta
        self.variant = variant
        self.beta = beta
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    def _runs(self, rows: Rows, source: Source) -> list[Rows]:
        del source
        self._questions()  # refuse what cannot be asked before anything is spent
        return [rows]

    def _questions(self) -> int:
        keys = _keys(self.domain)
        if not keys or len(set(keys)) < len(keys):
            raise InvalidParameter("domain is empty, or has a row twice; give each point once.")
        if check_choice(self.variant, ("tight", "paper"), "variant") == "tight":
            return len(keys)
        return n_rounds(len(keys), self.beta)

    def _publish(self, copies: list[Any], source: Source) -> dict[str, Any]:
        count, points = self._questions(), length_of(self.domain)
        left = getattr(copies[0], "remaining_", math.inf)
        if left < count:
            raise BudgetExhausted(
                f"{left} answers are left of the predictor, but {count} are needed for this "
                "domain; allow more, or take a coarser domain."
            )
        tight = self.variant == "tight"
        asked = permutation(points, source) if tight else integers(points, count, source)
        answers = check_labels(copies[0].predict(take_rows(self.domain, asked)), "the prediction")
        check_rows(count, answers)
        # The first of equal points in random order is a uniform one of them.
        order = permutation(count, source)
        seen, first = np.unique(asked[order], return_index=True)
        table = np.zeros(points, dtype=np.int64)
        failed = len(seen) < points
        if not failed:
            table = answers[order[first]]
        return {"table_": table, "failed_": failed}

    def _encode(self, columns: Columns, X: ArrayLike) -> NDArray[Any]:
        del columns
        places = {key: place for place, key in enumerate(_keys(self.domain))}
        found = [places.get(key) for key in _keys(X)]
        if None in found:
            raise InvalidData(f"X has a row, {found.index(None)}, that is not in the domain.")
        return np.array(found, dtype=np.int64)

    def _labels(self, table: NDArray[Any]) -> Integers:
        return np.asarray(self.table_[table])

    def _stored_params(self) -> dict[str, Any]:
        points = [list(key) for key in _keys(self.domain)]
        return super()._stored_params() | {"domain": points}


def _keys(X: ArrayLike) -> list[tuple[Any, ...]]:
    """Return rows as something that a dict can look up."""
    return list(zip(*(column.tolist() for column in cells_of_columns(X)), strict=True))


def n_rounds(points: int, beta: float) -> int:
    """Return how many random questions reach all of so many points, but for a chance of ``beta``.

    Examples
    --------
    >>> from cumae.learners.wrappers.reductions import n_rounds
    >>> n_rounds(1000, 0.125)
    8988
    """
    _check_chance(beta, "beta")
    return math.ceil(points * math.log(points / beta))


def _check_chance(value: float, name: str) -> None:
    if not 0 < check_nonnegative(value, name) < 1:
        raise InvalidParameter(f"{name}={shown(value)} is not between 0 and 1.")


@claim("REDUCE")
class AccuracyBoost(Reduction):
    """Fit copies on blocks of rows of their own; the majority is right more surely than one.

    From paper 2, Appendix B. A row is in one block, so all copies together cost what one costs.
    See :meth:`error_factor` for what the majority promises. Ties count as the first class.

    Parameters
    ----------
    base
        Object with ``fit``, ``predict`` and ``guarantee_`` that publishes its model.
    epsilon, delta
        Most that the base may cost; None takes its own parameters of these names.
    blocks
        Number of copies; None takes the paper's 104 ln(1/beta).
    beta
        Chance of failure that is aimed at.
    classes, budget, random_state
        As in :class:`~cumae.learners.PrivateLearner`.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Thresholds
    >>> from cumae.learners import PrivateLearner
    >>> from cumae.learners.wrappers.reductions import AccuracyBoost
    >>> base = PrivateLearner(Thresholds(), epsilon=1.0, columns=[(0, 9)])
    >>> learner = AccuracyBoost(base, blocks=5)
    >>> x = np.arange(2000) % 10
    >>> learner.fit(x.reshape(-1, 1), x >= 4).predict([[0], [9]])
    array([0, 1])
    >>> learner.guarantee_.epsilon
    1.0
    """

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
        _check_chance(self.beta, "beta")
        if self.blocks is None:
            return math.ceil(104 * math.log(1 / self.beta))
        return check_count(self.blocks, "blocks", least=1)

    def _runs(self, rows: Rows, source: Source) -> list[Rows]:
        count = self._count()
        labelled = rows.y != UNLABELLED
        if np.count_nonzero(labelled) < count:
            raise InvalidData(
                f"{np.count_nonzero(labelled)} labelled rows do not fill {count} blocks; give more "
                "rows, or fewer blocks."
            )
        # Each role is dealt out by itself, so that every block gets its share of both.
        roles = [np.flatnonzero(labelled), np.flatnonzero(~labelled)]
        mixed = [role[permutation(len(role), source)] for role in roles]
        blocks = [np.concatenate([role[i::count] for role in mixed]) for i in range(count)]
        return [replace(rows, X=take_rows(rows.X, block), y=rows.y[block]) for block in blocks]

    def _publish(self, copies: list[Any], source: Source) -> dict[str, Any]:
        del source
        return {"members_": copies}

    def _labels(self, table: NDArray[Any]) -> Integers:
        votes = sum(check_labels(member.predict(table)) for member in self.members_)
        return np.asarray(2 * votes > len(self.members_), dtype=np.int64)

    def error_factor(self, failure: float = 0.25) -> float:
        """Return c: the majority's error is at most c times a, but for ``beta``.

        It holds if each block's hypothesis has error above a with probability at most ``failure``,
        independently of the others; infinite if that promises nothing.

        Examples
        --------
        >>> from cumae.learners.wrappers.reductions import AccuracyBoost
        >>> round(AccuracyBoost(None, beta=0.05).error_factor(), 2)
        3.4
        """
        count = self._count()
        _check_chance(failure, "failure")
        good = int(stats.binom.ppf(self.beta, count, 1 - failure))  # at least so many, but for beta
        needed = good - count // 2  # so many good ones are wrong where the majority is
        return good / needed if needed > 0 else math.inf
