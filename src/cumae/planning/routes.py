"""All routes from private rows to answers, as unfitted estimators made from public facts alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from cumae.concepts import ConceptClass
from cumae.data import Columns, Declared
from cumae.learners import (
    GenericLearner,
    OneVsRest,
    PrivateBooster,
    PrivateKernelClassifier,
    PrivateLearner,
    PrivateLogisticRegression,
    SemiPrivateLearner,
)
from cumae.made_up import MadeUpRows
from cumae.planning.goals import check_goal, misses_of, shares_of
from cumae.predictors import (
    AgnosticQueryRelease,
    EverlastingPredictor,
    QueryRelease,
    UniversalQueryRelease,
)

RARE = 0.2  # a class with a smaller share; in a few of the tables of forecasts.json there is one
CURVES = 6  # of each column in a regression: enough for most, as its docstring says


@dataclass(frozen=True)
class Situation:
    """The public facts about a task: all that routes, plans and forecasts are made from.

    Parameters
    ----------
    n_labelled, n_unlabelled, n_public : int
        Private rows with a label, private rows without one, and public rows.
    n_queries : int or None
        Questions that will be asked; None if a model has to be published.
    n_features : int
        Columns of the table, before encoding.
    columns : mapping or sequence, or None
        What was declared about them.
    estimator : classifier or Pipeline, or None
        What the models of a release are.
    concept_class : ConceptClass or None
        What the rule is known to look like.
    epsilon, delta : float
        Privacy parameters.
    classes : tuple of labels
        All labels that there can be.
    goal : {"accuracy", "ranking", "cost"}
        What the answers are for: routes are compared by it.
    costs : mapping from class to float, or None
        The cost to miss a row of each class; 1 for classes that are not named.
    threshold : float, or None
        The chance of the second of two classes from which on it is the answer.
    class_shares : mapping from class to float, or None
        About which share of the rows each class has, as declared.
    """

    n_labelled: int
    n_unlabelled: int = 0
    n_public: int = 0
    n_queries: int | None = None
    n_features: int = 1
    columns: Declared = None
    estimator: Any = None
    concept_class: ConceptClass | None = None
    epsilon: float = 1.0
    delta: float = 1e-6
    classes: tuple[Any, ...] = (0, 1)
    goal: str = "accuracy"
    costs: Mapping[Any, float] | None = None
    threshold: float | None = None
    class_shares: Mapping[Any, float] | None = None

    def __post_init__(self) -> None:
        # Predictors take a concept class by either name; routes are told by one of them.
        if self.concept_class is None and isinstance(self.estimator, ConceptClass):
            object.__setattr__(self, "concept_class", self.estimator)
            object.__setattr__(self, "estimator", None)

    def check_goal(self) -> None:
        """Refuse a goal, costs, a threshold or shares that do not fit each other."""
        check_goal(self.goal, self.classes, self.costs, self.threshold, self.class_shares)

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of each class: as declared, or all alike if nothing is."""
        return shares_of(self.classes, self.class_shares)

    @property
    def misses(self) -> tuple[float, ...]:
        """The cost to miss a row of each class."""
        return misses_of(self.classes, self.costs, self.threshold)

    @property
    def compared(self) -> str:
        """The figure that compares routes: the goal, or costs if answers are to follow them."""
        unequal = len(set(self.misses)) > 1
        return "cost" if self.goal == "accuracy" and unequal else self.goal

    @property
    def weighed(self) -> float:
        """The share of the rarest class, if each row counts as much as it costs to miss it."""
        weights = [share * miss for share, miss in zip(self.shares, self.misses, strict=True)]
        return weights[self.shares.index(min(self.shares))] / sum(weights)

    @property
    def is_rare(self) -> bool:
        """True if a class is declared to be so rare that other tables say little about it."""
        return self.class_shares is not None and min(self.shares) < RARE

    @property
    def width(self) -> int:
        """Columns of numbers, once text and gaps are encoded by what was declared."""
        return len(self._known)

    @property
    def _known(self) -> Columns:
        names = MadeUpRows(self.columns, 0, self.n_features).names
        return Columns(self.columns, names, self.n_features)

    def with_ranges(self) -> Situation | None:
        """Return the same situation with a range for each column; None if it has all it needs.

        Public rows take the place of declared ranges. Any range will do: plans ask whether there
        is one.
        """
        columns = self._known
        if self.n_public or not columns.open:
            return None
        known = columns.within([(0.0, 1.0)] * len(columns.open)).columns
        return replace(self, columns=dict(enumerate(known)))

    @property
    def shared(self) -> dict[str, Any]:
        """Parameters that all estimators take."""
        return {"columns": self.columns, "classes": self.classes}

    @property
    def answers(self) -> dict[str, Any]:
        """The way from chances to answers and their goal, as parameters of learners with both."""
        found = {"goal": self.compared, "costs": self.costs, "threshold": self.threshold}
        return {name: value for name, value in found.items() if value is not None}

    @property
    def voter(self) -> dict[str, Any]:
        """Which models vote, as a parameter of predictors."""
        if self.concept_class is not None:
            return {"concept_class": self.concept_class}
        return {"estimator": self.estimator}


@dataclass(frozen=True)
class Route:
    """One way from private rows to answers.

    Parameters
    ----------
    name : str
        Short name, which forecasts and results are kept under.
    way : {"publish", "release", "student", "everlasting"}
        What leaves: a model; a number of answers; answers, and then a model of them; or answers
        without end.
    title : str
        What happens, in plain words that can follow "It would".
    build : callable
        Makes the unfitted estimator for a situation.
    """

    name: str
    way: str
    title: str
    build: Callable[[Situation], Any]

    def estimator(self, situation: Situation) -> Any:
        """Return the unfitted estimator, with the goal and the costs if it takes them.

        Parameters
        ----------
        situation : Situation
            The public facts.
        """
        model = self.build(situation)
        known = model.get_params(deep=False)
        answers = {name: value for name, value in situation.answers.items() if name in known}
        return model.set_params(**answers) if answers else model

    @property
    def publishes(self) -> bool:
        """True if a model comes out that answers any number of questions for free, at once."""
        return self.way == "publish"


def _two(model: Any, facts: Situation) -> Any:
    """Return a learner of two classes, or one for each class if there are more."""
    if len(facts.classes) <= 2:
        return model.set_params(classes=facts.classes)
    return OneVsRest(model, facts.classes, facts.epsilon, facts.delta)


def _kernel(facts: Situation) -> Any:
    return PrivateKernelClassifier(facts.epsilon, facts.delta, **facts.shared)


def _logistic(facts: Situation) -> Any:
    model = PrivateLogisticRegression(
        facts.epsilon, facts.delta, curves=CURVES, columns=facts.columns
    )
    return _two(model, facts)


def _booster(facts: Situation) -> Any:
    return _two(PrivateBooster(facts.epsilon, facts.delta, columns=facts.columns), facts)


def _trees(facts: Situation) -> Any:
    return _two(PrivateBooster(facts.epsilon, columns=facts.columns), facts)


def _learner(facts: Situation) -> Any:
    return _two(PrivateLearner(facts.concept_class, facts.epsilon, columns=facts.columns), facts)


def _generic(facts: Situation) -> Any:
    model = GenericLearner(facts.concept_class, facts.epsilon, facts.delta, columns=facts.columns)
    return _two(model, facts)


def _semi(facts: Situation) -> Any:
    model = SemiPrivateLearner(facts.concept_class, facts.epsilon, columns=facts.columns)
    return _two(model, facts)


def _release(mechanism: str) -> Callable[[Situation], Any]:
    return partial(_released, mechanism)  # which can be pickled, unlike a function in a function


def _released(mechanism: str, facts: Situation) -> Any:
    return QueryRelease(
        epsilon=facts.epsilon,
        delta=facts.delta,
        max_queries=facts.n_queries or 1,
        mechanism=mechanism,
        **facts.voter,
        **facts.shared,
    )


def _agnostic(facts: Situation) -> Any:
    return AgnosticQueryRelease(
        epsilon=facts.epsilon,
        delta=facts.delta,
        max_queries=facts.n_queries or 1,
        **{"concept_class": facts.concept_class, **facts.shared},
    )


def _universal(facts: Situation) -> Any:
    return UniversalQueryRelease(
        epsilon=facts.epsilon, delta=facts.delta, **facts.voter, **facts.shared
    )


def _everlasting(facts: Situation) -> Any:
    return EverlastingPredictor(
        epsilon=facts.epsilon, delta=facts.delta, **facts.voter, **facts.shared
    )


ROUTES: dict[str, Route] = {
    route.name: route
    for route in (
        Route("kernel", "publish", "publish a PrivateKernelClassifier", _kernel),
        Route("booster", "publish", "publish a PrivateBooster with a delta", _booster),
        Route("trees", "publish", "publish a PrivateBooster of trees, with pure privacy", _trees),
        Route("logistic", "publish", "publish a PrivateLogisticRegression of curves", _logistic),
        Route("learner", "publish", "publish a PrivateLearner", _learner),
        Route("generic", "publish", "publish a GenericLearner", _generic),
        Route("semi", "publish", "publish a SemiPrivateLearner", _semi),
        Route("gaussian", "release", "answer by votes with Gaussian noise", _release("gaussian")),
        Route("laplace", "release", "answer by votes with Laplace noise", _release("laplace")),
        Route("stability", "release", "answer by stable votes", _release("stability")),
        Route("between", "release", "answer by votes between thresholds", _release("between")),
        Route("offline", "release", "answer all questions in one batch", _release("offline")),
        Route("agnostic", "release", "answer by votes on relabelled rows", _agnostic),
        Route("student", "student", "answer some questions, and publish a student", _universal),
        Route("everlasting", "everlasting", "answer for ever", _everlasting),
    )
}
