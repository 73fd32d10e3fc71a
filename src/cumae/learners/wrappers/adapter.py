"""Private classifiers of other libraries as learners, and what wrappers ask of their base."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from cumae.arrays import Integers
from cumae.data import Columns, Declared
from cumae.errors import InvalidData, InvalidParameter
from cumae.learners.base import Learner, Rows, Sizes
from cumae.learners.cuts import refuse_infinite
from cumae.privacy import Approximate, Budget
from cumae.privacy.plans import Plan, pair_cost
from cumae.randomness import Source, integers


class Adapter(Learner):
    """Take a private classifier of another library at its word.

    The guarantee is the one that the classifier states; that it is true is listed under its
    assumptions. It has to cover whether the classifier fails, as well. Labels reach it as 0 and 1,
    and cells as finite numbers.

    Parameters
    ----------
    estimator
        Object with ``fit``, ``predict`` and ``get_params``, such as a classifier of diffprivlib.
        If it has an ``epsilon`` (or a ``delta``), that must be the number given here.
    epsilon, delta
        What it promises for one replaced row, the number of rows being public. (If it speaks of
        rows that are added or removed, its promise for a replaced one is weaker: do not wrap it.)
    assumption
        What has to hold for the promise, in words; by default, that the promise is kept.
    columns, classes, budget, random_state
        As in :class:`~cumae.learners.PrivateLearner`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from cumae.learners.wrappers.adapter import Adapter
    >>> learner = Adapter(DummyClassifier(strategy="constant", constant=1), epsilon=0.0)
    >>> learner.fit([[1.0], [2.0]], [0, 1]).predict([[3.0]])
    array([1])
    >>> learner.guarantee_.assumptions
    ('DummyClassifier keeps its promise of epsilon = 0.0, delta = 0.0 for one replaced row',)
    """

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

    def _encode(self, columns: Columns, X: ArrayLike) -> NDArray[Any]:
        table = columns.encode(X)
        refuse_infinite(table, "classifiers of other libraries")  # whichever rows they will get
        return table

    def _plan(self, sizes: Sizes, rows: Rows) -> Plan:
        del sizes, rows
        estimator = self.estimator
        if isinstance(estimator, type) or not all(
            callable(getattr(estimator, name, None)) for name in ("fit", "predict", "get_params")
        ):
            raise InvalidParameter(
                "estimator has no fit, predict or get_params; give a classifier, not its class."
            )
        inside = estimator.get_params(deep=True)  # also of the steps of a pipeline
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
            f"{type(estimator).__name__} keeps its promise of epsilon = {self.epsilon!r}, "
            f"delta = {self.delta!r} for one replaced row"
        )
        assumption = promise if self.assumption is None else self.assumption
        return Plan(pair_cost(Approximate(self.epsilon, self.delta)), (), assumptions=(assumption,))

    def _learn(self, rows: Rows, plan: Plan, source: Source) -> None:
        del plan
        estimator = clone(self.estimator)
        if source.deterministic and "random_state" in estimator.get_params(deep=False):
            estimator.set_params(random_state=integers(2**31, source=source))
        failed = False
        # Its warnings and errors may hold values of the data, so their text is dropped.
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            try:
                estimator.fit(rows.X, rows.y)
            except Exception:  # noqa: BLE001 - whatever another library raises
                failed = True
        if failed:
            raise InvalidData(
                f"{type(estimator).__name__} could not be fitted to these rows; try it by itself "
                "on rows that are not private."
            )
        if any(warning.category.__name__ == "PrivacyLeakWarning" for warning in heard):
            raise InvalidParameter(
                f"{type(estimator).__name__} says that it leaks, because bounds are missing; give "
                "it all bounds that it asks for."
            )
        self.estimator_ = estimator

    def _labels(self, table: NDArray[Any]) -> Integers:
        return np.asarray(self.estimator_.predict(table) == 1, dtype=np.int64)
