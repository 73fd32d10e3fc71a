"""From private answers to a hypothesis: HypothesisLearner of paper 2, Appendix B.

Paper 2 is Naor, Nissim, Stemmer, Yan: Private Everlasting Prediction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import cells_of_columns, check_labels, check_rows, is_missing, length_of
from cumae.errors import BudgetExhausted, InvalidData, InvalidParameter
from cumae.learners.base import ACCOUNT, Rows, Sizes
from cumae.learners.wrappers.base import ANY_BASE, take_rows
from cumae.learners.wrappers.reductions import (
    MOST_DELTA,
    MOST_EPSILON,
    Reduction,
    ReductionPlan,
)
from cumae.parameters import CHANCE, Choice, Kind, Object, check_share
from cumae.privacy import Budget
from cumae.randomness import Source, integers, permutation


@claim("REDUCE")
class HypothesisLearner(Reduction):
    """The answers of a private predictor on a finite domain, published as one hypothesis.

    From paper 2, Appendix B. The predictor is fitted, asked about points of the domain, and
    forgotten; the table of its answers is the hypothesis. It costs what the predictor costs.
    If every hypothesis behind the answers has error at most alpha, the table has error at most
    8 alpha, except with a chance of 1/8 (plus ``beta`` in the paper's variant).

    Parameters
    ----------
    predictor : object with fit, predict and guarantee_
        Its guarantee must cover its answers.
    domain : array-like
        All rows that ``predict`` will ever be asked about; public, without repetitions.
    epsilon : float of 0 or more, or None
        Most that the predictor may cost; None takes its own parameter of this name.
    delta : float from 0 and below 1, or None
        The same for delta.
    variant : {"tight", "paper"}
        ``"tight"`` asks for every point once, in random order. ``"paper"`` asks for random
        points, ``n_rounds(len(domain), beta)`` times, and keeps a random answer for each.
    beta : float above 0 and below 1
        The paper's chance that a point is never asked for; the table is then 0 everywhere.
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
    >>> from cumae.learners import HypothesisLearner, PrivateLearner
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
    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "predictor": ANY_BASE,
        "domain": Object("array-like"),
        "epsilon": MOST_EPSILON,
        "delta": MOST_DELTA,
        "variant": Choice(("tight", "paper")),
        "beta": CHANCE,
        **ACCOUNT,
    }

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

    def check_contents(self, X: Any) -> None:
        """Refuse a domain that the predictor could not read once it is fitted and paid for."""
        super().check_contents(X)
        try:
            self.check_queries(X, self.domain)
        except InvalidData as error:
            raise InvalidData(f"domain: {error}") from None

    def _run_sizes(self, sizes: Sizes) -> list[Sizes]:
        self._questions()  # refuse what cannot be asked before anything is spent
        return [sizes]

    def decide(self, sizes: Sizes, rows: Rows) -> ReductionPlan:
        plan = super().decide(sizes, rows)
        facts = {"n_points": length_of(self.domain), "n_questions": self._questions()}
        return replace(plan, facts=facts)

    def _questions(self) -> int:
        keys = _keys(self.domain)
        if not keys or len(set(keys)) < len(keys):
            raise InvalidParameter("domain is empty, or has a row twice; give each point once.")
        return len(keys) if self.variant == "tight" else n_rounds(len(keys), self.beta)

    def _need_answers(self, left: float) -> None:
        count = self._questions()
        if left < count:
            raise BudgetExhausted(
                f"{left:g} answers are left of the predictor, but {count} are needed for this "
                "domain; allow more, or take a coarser domain.",
                remaining=left,
                asked=count,
            )

    def _publish(self, rows: Rows, fit: Callable[[Rows], Any], source: Source) -> dict[str, Any]:
        predictor = fit(rows)
        count, points = self._questions(), length_of(self.domain)
        self._need_answers(getattr(predictor, "remaining_", math.inf))
        tight = self.variant == "tight"
        asked = permutation(points, source) if tight else integers(points, count, source)
        answers = check_labels(predictor.predict(take_rows(self.domain, asked)), "the prediction")
        check_rows(count, answers)
        # The first of equal points in random order is a uniform one of them.
        order = permutation(count, source)
        seen, first = np.unique(asked[order], return_index=True)
        table = np.zeros(points, dtype=np.int64)
        failed = len(seen) < points
        if not failed:
            table = answers[order[first]]
        return {"table_": table, "failed_": failed}

    def _labels(self, table: Any) -> Integers:
        places = {key: place for place, key in enumerate(self._points())}
        found = [places.get(key) for key in _keys(table)]
        if None in found:
            raise InvalidData(f"X has a row, {found.index(None)}, that is not in the domain.")
        return np.asarray(self.table_[np.array(found, dtype=np.int64)])

    def _points(self) -> list[tuple[Any, ...]]:
        """Return the rows of the domain with their columns in the order of ``fit``."""
        return _keys(self.columns_.arrange(self.domain))

    def _stored_params(self) -> dict[str, Any]:
        return super()._stored_params() | {"domain": [list(point) for point in self._points()]}


def _keys(X: Any) -> list[tuple[Any, ...]]:
    """Return rows as something that a dict can look up; None stands for every missing cell.

    What is missing equals nothing, not even itself, and comes in several types.
    """
    columns = (
        [None if is_missing(cell) else cell for cell in column.tolist()]
        for column in cells_of_columns(X)
    )
    return list(zip(*columns, strict=True))


def n_rounds(points: int, beta: float) -> int:
    """Return how many random questions reach all of so many points with chance 1 - ``beta``.

    Parameters
    ----------
    points : int
        Number of points.
    beta : float above 0 and below 1
        The chance that one of them is never asked for.

    Returns
    -------
    int
        Number of questions.

    Examples
    --------
    >>> from cumae.learners.wrappers.hypothesis import n_rounds
    >>> n_rounds(1000, 0.125)
    8988
    """
    check_share(beta, "beta")
    return math.ceil(points * math.log(points / beta))
