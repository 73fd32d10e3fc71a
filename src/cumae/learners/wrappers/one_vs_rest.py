"""More than two classes: OneVsRest."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import UNLABELLED, class_places
from cumae.errors import InvalidParameter
from cumae.learners.base import ACCOUNT, Learner, LearningPlan, Rows, Sizes
from cumae.learners.wrappers.adapter import Adapter
from cumae.learners.wrappers.base import LEARNER, Wrapper, check_outer_delta, plan_base
from cumae.parameters import DELTA, EPSILON, Kind, Object, described
from cumae.privacy import Approximate, Budget, Cost, calibrate, compose
from cumae.randomness import Source

SAFE = 1.0 - 1e-8  # keeps the epsilon that is read off a curve below what was asked


@claim("OVR")
class OneVsRest(Wrapper):
    """One copy of a learner for each class against all others, each for a share of the budget.

    All copies see all rows, so their costs are composed; the total is at most (epsilon, delta).
    Each gets epsilon / classes at delta = 0, and more at delta > 0, see ``share_``. A row gets the
    class with the largest score: ``predict_proba`` or ``decision_function`` of the copies
    where they have one, else their 0 or 1. Of equal scores the class declared first wins.

    Parameters
    ----------
    base : Learner
        A learner of ``cumae`` for two classes, no wrapper and no ``Adapter``. Its epsilon, delta
        and classes are replaced; if its delta is above 0, the copies get half of ``delta``
        between them, which must then be above 0, too.
    classes : sequence of labels
        All labels that may occur, most common first where that is known without the rows.
    epsilon : float of 0 or more
        Privacy parameter of the whole.
    delta : float from 0 and below 1
        The same for delta.
    budget : Budget, or None
        An account to pay from.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Intervals
    >>> from cumae.learners import OneVsRest, PrivateLearner
    >>> age = np.arange(3000) % 90
    >>> group = np.where(age < 30, "young", np.where(age < 60, "middle", "old"))
    >>> base = PrivateLearner(Intervals(), columns=[(0, 90)])
    >>> learner = OneVsRest(base, ["young", "middle", "old"], epsilon=3.0)
    >>> learner.fit(age.reshape(-1, 1), group).predict([[10], [45], [80]]).tolist()
    ['young', 'middle', 'old']
    >>> learner.guarantee_.epsilon, learner.share_
    (3.0, 1.0)
    """

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "base": LEARNER,
        "classes": Object("sequence of labels"),
        "epsilon": EPSILON,
        "delta": DELTA,
        "budget": ACCOUNT["budget"],
        "random_state": ACCOUNT["random_state"],
    }

    def __init__(
        self,
        base: Learner,
        classes: Any,
        epsilon: float,
        delta: float = 0.0,
        *,
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.base = base
        self.classes = classes
        self.epsilon = epsilon
        self.delta = delta
        self.budget = budget
        self.random_state = random_state

    def _checked_base(self) -> Learner:
        base: Learner = super()._checked_base()
        # An Adapter only states what its estimator costs: another number would not make it true.
        if isinstance(base, Wrapper | Adapter):
            raise InvalidParameter(
                f"base is {described(base)}, whose epsilon cannot be set from here; give a learner "
                "of cumae for two classes, such as PrivateLearner(...)."
            )
        check_outer_delta(base, self.delta)
        return base

    def _reader(self) -> Any:
        return self._copy(epsilon=self.epsilon, delta=self.delta)

    def decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Approximate]:
        """Decide which epsilon and delta each copy gets: that is all of the steps."""
        count = len(self.classes)
        # Copies without a delta leave all of it to the composition.
        delta = self.delta / (2 * count) if self._checked_base().delta else 0.0

        # The copies differ in labels only, so that one plan is the plan of each.
        def plan(share: float) -> LearningPlan[Any]:
            copy = self._copy(epsilon=share, delta=delta)
            return plan_base(copy, rows, sizes.labelled, sizes.unlabelled)

        share = self._share(lambda share: compose([(plan(share).cost, count)]))
        planned = plan(share)
        each = planned.work
        return replace(
            planned,
            cost=compose([(planned.cost, count)]),
            claims=tuple(dict.fromkeys(("OVR", "COMP", *planned.claims))),
            steps=Approximate(share, delta),
            facts={"share": share, "n_members": count},
            work=None if each is None else tuple(part.repeated(count) for part in each),
        )

    def _share(self, total: Callable[[float], Cost]) -> float:
        """Return an epsilon for each copy whose total cost is within what was asked."""
        count, epsilon = len(self.classes), self.epsilon
        even = _even(epsilon, count)
        total(even)  # raises what is wrong with the base
        if self.delta == 0 or not 0 < epsilon < math.inf:
            return even
        even, found = _short(even), 0.0
        with contextlib.suppress(InvalidParameter):  # then nothing beats the even split
            noise = calibrate(
                lambda noise: total(_short(epsilon / noise)),
                epsilon * SAFE,
                self.delta,
                start=count,
                tolerance=1e-3,
            )
            found = _short(epsilon / noise)
        simple = found < even and total(even).epsilon(self.delta) <= epsilon
        return even if simple else found

    def _learn(self, rows: Rows, plan: LearningPlan[Approximate], source: Source) -> None:
        each = plan.steps
        self.members_: list[Learner] = []
        for place in range(len(self.classes)):
            member = self._copy(source, epsilon=each.eps, delta=each.failure)
            self._fit_copy(member, replace(rows, y=_against_others(rows.y, place)), each)
            self.members_.append(member)
        self.share_ = each.eps

    def decision_function(self, X: Any) -> Floats:
        """Return the score of each class for each row.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``.
        """
        check_is_fitted(self, "guarantee_")
        return np.stack([_scores(member, X) for member in self.members_], axis=1)

    def predict(self, X: Any) -> NDArray[Any]:
        places = self._labels(self.decision_function(X))
        return np.asarray(self.classes_[places])

    def __str__(self) -> str:
        if not hasattr(self, "members_"):
            return repr(self)
        pairs = zip(self.classes_, self.members_, strict=True)
        return "\n".join(f"{name} against the rest:\n{member}" for name, member in pairs)

    def _labels(self, table: NDArray[Any]) -> Integers:
        """Return the place of the largest score in each row; of equal ones, the first."""
        return np.asarray(np.argmax(table, axis=1), dtype=np.int64)

    def _check_y(self, y: Any, *, unlabelled: bool) -> Integers:
        classes = check_classes(self.classes)
        if unlabelled and UNLABELLED in classes:
            raise InvalidParameter("classes hold -1, which marks a row without a label; rename it.")
        return class_places(y, classes, unlabelled=unlabelled)

    def _stored_params(self) -> dict[str, Any]:
        check_is_fitted(self, "members_")
        return super()._stored_params() | {"base": self.members_[0]}  # a copy stands for the base


def check_classes(classes: Any) -> list[Any]:
    """Return declared classes as a list; refuse fewer than two, or the same one twice."""
    found = list(classes) if np.iterable(classes) and not isinstance(classes, str) else []
    distinct: set[Any] = set()
    with contextlib.suppress(TypeError):  # a label that is a list, for example
        distinct = set(found)
    if len(found) < 2 or len(distinct) < len(found):
        raise InvalidParameter(
            "classes are fewer than two, or one of them stands twice; declare every label that may "
            'occur, such as ["red", "green", "blue"].'
        )
    return found


@claim("OVR")
def _against_others(y: Integers, place: int) -> Integers:
    return np.where(y == UNLABELLED, UNLABELLED, y == place).astype(np.int64)


@claim("OVR")
def _even(epsilon: float, count: int) -> float:
    """Return the largest float of which so many add up to at most ``epsilon``."""
    share = epsilon / count
    if math.isfinite(epsilon):
        while Fraction(share) * count > Fraction(epsilon):
            share = math.nextafter(share, 0.0)
    return share


@claim("OVR")
def _short(share: float) -> float:
    """Round down to six digits: what is read off a copy's own curve is exact for short numbers."""
    if not 0 < share < math.inf:
        return share
    digits = 5 - math.floor(math.log10(share))
    rounded = float(f"{share:.5e}")
    return rounded if rounded <= share else float(f"{rounded - 10.0**-digits:.5e}")


def _scores(member: Any, X: Any) -> Floats:
    if hasattr(member, "predict_proba"):
        return np.asarray(member.predict_proba(X)[:, 1], dtype=np.float64)
    rule = member.decision_function if hasattr(member, "decision_function") else member.predict
    return np.asarray(rule(X), dtype=np.float64)
