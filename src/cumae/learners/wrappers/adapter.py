"""Private classifiers of other libraries as learners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.data import Columns, Declared, answers_of
from cumae.errors import InvalidParameter
from cumae.learners.base import DECLARED, Learner, LearningPlan, Rows, Sizes
from cumae.learners.cuts import refuse_infinite
from cumae.learners.wrappers.base import copy_base, fit_base
from cumae.parameters import DELTA, EPSILON, Kind, Object, Or
from cumae.privacy import Approximate, Budget
from cumae.privacy.plans import pair_cost
from cumae.randomness import Source, integers

CLASSIFIER = Object(
    "object with fit, predict and get_params",
    such_as="a classifier with fit, predict and get_params, not its class",
    methods=("fit", "predict", "get_params"),
)


class Adapter(Learner):
    """A private classifier of another library, whose own promise is taken as given.

    The guarantee is the one that the classifier states; that it is true is listed under its
    assumptions. It has to cover whether the classifier fails, as well. Labels reach it as 0 and 1,
    and cells as finite numbers.

    Parameters
    ----------
    estimator : object with fit, predict and get_params
        A classifier of diffprivlib, for example. If it has an ``epsilon`` (or a ``delta``), that
        must be the number given here.
    epsilon : float of 0 or more
        What it promises for one replaced row, the number of rows being public. (If it speaks of
        rows that are added or removed, its promise for a replaced one is weaker: do not wrap it.)
    delta : float from 0 and below 1
        The same for delta.
    assumption : str, or None
        What has to hold for the promise, in words; by default, that the promise is kept.
    columns : mapping or sequence, or None
        What each column holds: numbers and their range, categories, true and false, or dates, and
        whether cells may be missing. :class:`~cumae.Columns` has the forms.
    classes : sequence of two labels
        The labels; the estimator gets 0 and 1 in their place.
    budget : Budget, or None
        An account to pay from.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from cumae.learners import Adapter
    >>> learner = Adapter(DummyClassifier(strategy="constant", constant=1), epsilon=0.0)
    >>> learner.fit([[1.0], [2.0]], [0, 1]).predict([[3.0]])
    array([1])
    >>> learner.guarantee_.assumptions
    ('DummyClassifier keeps its promise of epsilon = 0.0, delta = 0.0 for one replaced row',)
    """

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "estimator": CLASSIFIER,
        "epsilon": EPSILON,
        "delta": DELTA,
        "assumption": Or(None, Object("str", (str,))),
        **DECLARED,
    }

    def __init__(
        self,
        estimator: Any,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        assumption: str | None = None,
        columns: Declared = None,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.assumption = assumption
        self.columns = columns
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    def _encode(self, columns: Columns, X: Any) -> NDArray[Any]:
        table = columns.encode(X)
        refuse_infinite(table, "classifiers of other libraries")  # whichever rows they will get
        return table

    def decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Any]:
        """Compare what the estimator says about itself with what is promised here.

        To fit a copy of it is all of the steps.
        """
        del sizes, rows
        inside = self.estimator.get_params(deep=True)  # also of the steps of a pipeline
        for path, stated in inside.items():
            name = path.rpartition("__")[2]
            if name in ("epsilon", "delta") and stated not in (None, getattr(self, name)):
                raise InvalidParameter(
                    f"{name}={getattr(self, name)!r}, but the estimator has {path}={stated!r}; "
                    "give the same number to both."
                )
        seeds = [inside[path] for path in inside if path.rpartition("__")[2] == "random_state"]
        if self.random_state is None and any(seed is not None for seed in seeds):
            raise InvalidParameter(
                "the estimator has a random_state of its own, which voids its promise; leave it "
                "out."
            )
        promise = (
            f"{type(self.estimator).__name__} keeps its promise of epsilon = {self.epsilon!r}, "
            f"delta = {self.delta!r} for one replaced row"
        )
        assumption = promise if self.assumption is None else self.assumption
        cost = pair_cost(Approximate(self.epsilon, self.delta))
        return LearningPlan(cost, (), assumptions=(assumption,), steps=self.estimator)

    def _learn(self, rows: Rows, plan: LearningPlan[Any], source: Source) -> None:
        estimator = copy_base(plan.steps)
        if source.deterministic and "random_state" in estimator.get_params(deep=False):
            estimator.set_params(random_state=integers(2**31, source=source))
        if "PrivacyLeakWarning" in fit_base(estimator, rows.X, rows.y):
            raise InvalidParameter(
                f"{type(estimator).__name__} says that it leaks, because bounds are missing; give "
                "it all bounds that it asks for."
            )
        self.estimator_ = estimator

    def _labels(self, table: NDArray[Any]) -> Integers:
        answers = answers_of(self.estimator_.predict(table), len(table))
        return np.asarray(answers == 1, dtype=np.int64)
