"""A private classifier that chooses its own way: PrivateClassifier."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Floats
from cumae.codec import add_form, name_of, read_file, register
from cumae.concepts import ConceptClass
from cumae.data import Columns, Declared, length_of, table_of, width_of
from cumae.errors import ConstantAnswers, InvalidParameter, TooFewRows, warn
from cumae.estimators import Method, PrivateEstimator, available_if, warn_if_clones_pay
from cumae.learners import Learner
from cumae.learners.kernel.learner import GOAL
from cumae.learners.scored import AnswerRule
from cumae.live import forget
from cumae.outlook import Outlook, check_table_counts, foresee
from cumae.parameters import (
    CLASS_WEIGHTS,
    COLUMNS,
    DELTA,
    EPSILON,
    RANDOM_STATE,
    THRESHOLD,
    Count,
    Kind,
    Object,
    Or,
    check_parameters,
)
from cumae.planning.advice import Advice, advise
from cumae.planning.goals import shares_of
from cumae.planning.routes import ROUTES, Route, Situation
from cumae.predictors.base import ESTIMATOR
from cumae.privacy import Budget, Guarantee
from cumae.privacy.plans import BUDGET
from cumae.randomness import Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _has(name: str, *, unfitted: bool = False) -> Callable[[Method], Method]:
    """Offer a method if the model inside has it, and perhaps if there is no model yet."""
    return available_if(lambda self: hasattr(self.model_, name) if _fitted(self) else unfitted)


def _fitted(self: Any) -> bool:
    return hasattr(self, "model_")


class PrivateClassifier(PrivateEstimator):
    """A classifier that chooses the best private method by public facts, and fits it.

    It looks at the number of rows and columns, what is declared about them, epsilon and delta, and
    forecasts how good each route would be by the goal (``cumae.planning``). Nothing of the rows
    themselves is used for that, so that the choice is free. Before it pays, it warns if no route
    is likely to tell rows apart, or if every row is likely to get the same answer.

    Parameters
    ----------
    epsilon : float of 0 or more
        Privacy parameter; it must be above 0 and finite.
    delta : float from 0 and below 1
        Privacy parameter. With 0, only routes with pure privacy are taken.
    n_queries : int of 1 or more, or None
        How many questions will be asked, if that is known. Then routes may be taken that answer
        questions and publish no model. None takes routes that publish a model.
    estimator : classifier, Pipeline or ConceptClass, or None
        The model of routes that vote; None means ``DecisionTreeClassifier(max_depth=4)``.
    concept_class : ConceptClass, or None
        What the rule is known to look like, from ``cumae.concepts``.
    goal : {"accuracy", "ranking", "cost"}
        What answers are for: most of them right, rows in the right order of their chances, or the
        least cost, which needs ``costs`` or a ``threshold``.
    class_weight : mapping from class to float above 0, or None
        Another name of ``costs``, as scikit-learn calls it. Give one of them.
    costs : mapping from class to float above 0, or None
        The cost to miss a row of each class, declared and public; 1 for classes that are not
        named. ``predict`` answers the class of least expected cost.
    threshold : float from 0 to 1, or None
        The chance of the second of two classes from which on it is the answer, instead of
        costs.
    class_shares : mapping from class to float above 0, or None
        About which share of the rows each class has, from what is known without the rows. None
        takes classes to be of equal size; forecasts are too good then if one is rare.
    columns : mapping or sequence, or None
        What each column holds: numbers and their range, categories, true and false, or dates, and
        whether cells may be missing. :class:`~cumae.Columns` has the forms.
    classes : sequence of labels
        All labels that there can be, two or more.
    budget : Budget, or None
        An account to pay from.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Attributes
    ----------
    why_ : str
        Which route was taken, and what is expected of it.
    route_ : str
        The name of that route.
    model_ : Learner or Predictor
        What was fitted.
    guarantee_ : Guarantee
        What it promises.
    plan_ : Advice
        All routes that were compared.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae import PrivateClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> model = PrivateClassifier(1.0, 1e-6, columns=[(-1, 1), (-1, 1)])
    >>> model.fit(X, X[:, 0] + X[:, 1] > 0).predict([[0.9, 0.9], [-0.9, -0.9]])
    array([1, 0])
    >>> print(model.why_)
    Publish a ...: of 5 routes that can run it is likely to be the most accurate...
    """

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "n_queries": Or(None, Count(1)),
        "estimator": ESTIMATOR,
        "concept_class": Or(None, Object("ConceptClass")),
        "goal": GOAL,
        "class_weight": CLASS_WEIGHTS,
        "costs": CLASS_WEIGHTS,
        "threshold": THRESHOLD,
        "class_shares": CLASS_WEIGHTS,
        "columns": COLUMNS,
        "classes": Object("sequence of labels"),
        "budget": BUDGET,
        "random_state": RANDOM_STATE,
    }
    hands_on: ClassVar[bool] = True

    guarantee_: Guarantee
    classes_: NDArray[Any]
    n_features_in_: int

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        n_queries: int | None = None,
        estimator: Any = None,
        concept_class: ConceptClass | None = None,
        goal: str = "accuracy",
        class_weight: Mapping[Any, float] | None = None,
        costs: Mapping[Any, float] | None = None,
        threshold: float | None = None,
        class_shares: Mapping[Any, float] | None = None,
        columns: Declared = None,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_queries = n_queries
        self.estimator = estimator
        self.concept_class = concept_class
        self.goal = goal
        self.class_weight = class_weight
        self.costs = costs
        self.threshold = threshold
        self.class_shares = class_shares
        self.columns = columns
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = np.size(self.classes) > 2
        return tags

    def plan(
        self, n_samples: int, n_features: int, n_public: int = 0, *, n_unlabelled: int = 0
    ) -> Outlook:
        """Tell what ``fit`` would do with so many rows, without any row and without spending.

        Parameters
        ----------
        n_samples : int of 0 or more
            Private rows.
        n_features : int of 1 or more
            Columns of the table, before they are encoded.
        n_public : int of 0 or more
            Public rows.
        n_unlabelled : int of 0 or more
            Private rows without a label, of which it takes none.

        Returns
        -------
        Outlook
            That of the route that would be taken, or why there is none.
        """
        counts = check_table_counts(n_samples, n_features, n_public, n_unlabelled)
        return foresee(type(self).__name__, lambda: self._foreseen(*counts[:3]))

    def _foreseen(self, n_samples: int, n_features: int, n_public: int) -> Outlook:
        check_parameters(self, self.parameter_table)
        advice = self._advice(self.columns, n_samples, n_features, n_public)
        route, model = self._taken(advice)
        counts = (n_samples, n_features, n_public if route.publishes else 0)
        found: Outlook = model.plan(*counts)
        return found

    def _advice(self, columns: Declared, n_samples: int, n_features: int, n_public: int) -> Advice:
        AnswerRule.of(self.classes, self.class_weight, self.costs, self.threshold)  # one of them
        situation = Situation(
            n_samples,
            n_public=n_public,
            n_queries=self.n_queries,
            n_features=n_features,
            columns=columns,
            estimator=self.estimator,
            concept_class=self.concept_class,
            epsilon=self.epsilon,
            delta=self.delta,
            classes=tuple(self.classes),
            goal=self.goal,
            costs=self.class_weight if self.costs is None else self.costs,
            threshold=self.threshold,
            class_shares=self.class_shares,
        )
        situation.check_goal()
        return advise(situation, self._routes(), search=False)

    def _taken(self, advice: Advice) -> tuple[Route, Any]:
        """Return the best route, and its estimator, which is to be fitted; refuse if none runs.

        It warns of a model that would be of no use, before anything is paid.
        """
        best = advice.best
        if best is None:
            first = advice.prospects[0]
            raise InvalidParameter(
                f"no route can run. {first.route.name}: {first.outlook.reasons[0]} For the reasons "
                "of all routes there is cumae.planning.plan."
            )
        if advice.cannot_rank:
            warn(advice.cannot_rank, TooFewRows)
        if advice.constant:
            warn(advice.constant, ConstantAnswers)
        if advice.loses_to_a_guess:
            warn(advice.loses_to_a_guess, TooFewRows)
        if advice.blind_if_rare:
            warn(advice.blind_if_rare, TooFewRows)
        model = best.route.estimator(replace(advice.situation, columns=self.columns))
        return best.route, model.set_params(budget=self.budget, random_state=self.random_state)

    def _routes(self) -> list[Route]:
        open_ended = self.n_queries is None
        return [route for route in ROUTES.values() if route.publishes or not open_ended]

    def fit(self, X: Any, y: Any, X_public: Any = None) -> Self:
        """Choose a route by public facts, and take it.

        Parameters
        ----------
        X : table
            Private rows: a list of rows, an array, a data frame or ParquetRows.
        y : array-like
            Their labels, each one of ``classes``.
        X_public : table, or None
            Public rows with the same columns; they are free, and never protected. Routes that
            answer by votes do not use them.

        Returns
        -------
        PrivateClassifier
            Itself.

        Raises
        ------
        InvalidParameter
            If a parameter is wrong, or no route can run; nothing was paid then.
        InvalidData
            If a row cannot be read.
        BudgetExhausted
            If the account does not hold enough.
        """
        check_parameters(self, self.parameter_table)
        X, X_public = table_of(X), table_of(X_public)
        n_public = 0 if X_public is None else length_of(X_public)
        known = known_columns(X, self.columns)
        advice = self._advice(known, length_of(X), width_of(X), n_public)
        route, model = self._taken(advice)
        warn_if_clones_pay(self, self.epsilon)
        if route.publishes:
            model.fit(X, y, X_public)
        else:
            model.fit(X, y)
        forget(self)
        self.model_, self.plan_ = model, advice
        self.route_, self.why_ = route.name, advice.sentence
        self.classes_, self.n_features_in_ = model.classes_, model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        self.guarantee_ = model.guarantee_
        return self

    def check_contents(self, X: Any) -> None:
        """Leave it to the model: it is asked when it is fitted, before it pays."""

    def check_queries(self, X: Any, queries: Any) -> None:
        """Refuse queries that cannot be read by what is declared, whichever model is taken.

        Parameters
        ----------
        X : table
            The rows of ``fit``: of them nothing but names, types and width is looked at.
        queries : table
            What will be asked.
        """
        Columns.of(X, self.columns).encode(queries)

    def predict(self, X: Any) -> NDArray[Any]:
        """Label rows. Where no model was published, this spends answers.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``.

        Returns
        -------
        array
            One of ``classes`` for each row, or -1 where a route gave no answer.
        """
        check_is_fitted(self, "guarantee_")
        return np.asarray(self.model_.predict(X))

    @_has("decision_function")
    def decision_function(self, X: Any) -> Floats:
        """Return the log odds of the second of two classes, or a score for each of more.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``.
        """
        return np.asarray(self.model_.decision_function(X))

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> Floats:
        """Return the chance of each class.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``.
        """
        return np.asarray(self.model_.predict_proba(X))

    @_has("private_score")
    def private_score(
        self,
        X: Any,
        y: Any,
        epsilon: float,
        *,
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> float:
        """Return the accuracy on private rows with noise: DP(epsilon, 0) for one of these rows.

        Parameters
        ----------
        X, y : table and array-like
            Private rows that were not used to fit, and their labels; their number is public.
        epsilon : float of 0 or more
            What it costs each of these rows.
        budget : Budget, or None
            An account to pay from.
        random_state : int or Source, or None
            None in production; a seed or a source voids the guarantee.

        Returns
        -------
        float
            The accuracy, from 0 to 1.
        """
        found = self.model_.private_score(X, y, epsilon, budget=budget, random_state=random_state)
        return float(found)

    @_has("plot", unfitted=True)
    def plot(self, columns: Any = None, axes: Any = None) -> Figure:
        """Draw what the model learnt, as :meth:`~cumae.PrivateKernelClassifier.plot` does.

        Models without such pictures, such as trees or an oracle, have no ``plot``.

        Parameters
        ----------
        columns : list of names, or None
            Which effects to draw: names of columns, and pairs of names. None for the strongest.
        axes : list of matplotlib axes, or None
            Where to draw, one for each effect; None for a new figure.

        Returns
        -------
        matplotlib figure
            It is drawn with pyplot; close it when it is no longer needed.

        Raises
        ------
        MissingPackage
            If matplotlib is not there.
        InvalidParameter
            If there is no such effect, or if trees were fitted instead of a kernel model.
        """
        check_is_fitted(self, "model_")
        figure: Figure = self.model_.plot(columns, axes)
        return figure

    @property
    def remaining_(self) -> float:
        """Answers left: infinite if a model was published."""
        check_is_fitted(self, "guarantee_")
        return float(getattr(self.model_, "remaining_", np.inf))

    @property
    def _shares(self) -> list[float] | None:
        given = self.class_shares
        return None if given is None else list(shares_of(tuple(self.classes), given))

    @_has("to_dict")
    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold: the model inside, and why it was chosen."""
        return {
            "kind": name_of(type(self)),
            "route": self.route_,
            "why": self.why_,
            "n_queries": self.n_queries,
            "goal": self.goal,
            "class_shares": self._shares,
            "model": self.model_.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Rebuild what ``to_dict`` returned; the plan is not kept.

        Parameters
        ----------
        plain : dict
            Plain values, as ``to_dict`` returned them.
        """
        if plain.get("kind") != name_of(cls):
            raise InvalidParameter(
                "this is no PrivateClassifier; cumae.load takes files of any class."
            )
        model = Learner.from_dict(plain.get("model", {}))
        found = cls(model.epsilon, model.delta, classes=model.classes)
        found.goal = plain.get("goal", "accuracy")
        found.costs = getattr(model, "costs", None)
        found.threshold = getattr(model, "threshold", None)
        if plain.get("class_shares") is not None:
            pairs = zip(model.classes_.tolist(), plain["class_shares"], strict=True)
            found.class_shares = dict(pairs)
        found.model_ = model
        found.route_, found.why_ = plain.get("route", ""), plain.get("why", "")
        found.classes_, found.n_features_in_ = model.classes_, model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            found.feature_names_in_ = model.feature_names_in_
        found.guarantee_ = model.guarantee_
        return found

    @_has("to_dict")
    def save(self, path: str | Path) -> None:
        """Write the fitted model as JSON.

        Parameters
        ----------
        path : str or Path
            The file; one that exists is replaced.
        """
        Path(path).write_text(json.dumps(self.to_dict(), allow_nan=False), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what ``save`` wrote.

        Parameters
        ----------
        path : str or Path
            A file that ``save`` wrote.
        """
        plain = read_file(path)
        return cls.from_dict(plain if isinstance(plain, dict) else {})


add_form("planner", PrivateClassifier, write=None)  # stored as the model that it chose
register("planner", {"PrivateClassifier": PrivateClassifier})  # a name that never changes


def known_columns(X: Any, declared: Declared) -> Declared:
    """Return what is declared, with columns of true and false whose type says so.

    Parameters
    ----------
    X : table
        Rows, of which names and types are looked at, and nothing else.
    declared : mapping or sequence, or None
        What was declared.
    """
    columns = Columns.of(X, declared)
    found: dict[Any, Any] = {}
    for place, column in enumerate(columns.columns):
        key = place if columns.original_names is None else column.name
        if isinstance(declared, Mapping):
            given = declared.get(key, declared.get(place))
        else:
            given = declared[place] if declared is not None else None
        found[key] = bool if given is None and column.boolean else given
    return found
