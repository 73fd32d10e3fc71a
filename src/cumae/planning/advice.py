"""The planner: which route to take, how good it will be, and why, before anything is spent."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Any

from cumae.concepts import ConceptClass
from cumae.data import Declared, length_of, table_of, width_of
from cumae.errors import InvalidParameter, shown
from cumae.outlook import Outlook
from cumae.parameters import check_count
from cumae.planning.forecasts import Expected, forecast
from cumae.planning.goals import BEST_AT, Reached, best_guess
from cumae.planning.outlooks import needs, outlook
from cumae.planning.pictures import Curves, plot_all
from cumae.planning.rare import reached
from cumae.planning.routes import ROUTES, Route, Situation
from cumae.planning.simulation import Sample, simulate, usual_model

RANKS = 0.6  # an AUC below this says next to nothing about a row
SAY_RARE = 0.03  # the share of a class for which it is said what could not be learnt
LEVEL = 0.005  # routes this close are level; then a published model is better than answers


@dataclass(frozen=True)
class Prospect:
    """One route: whether it can run, what it would do, and how good it would be.

    Parameters
    ----------
    route : Route
        The route.
    outlook : Outlook
        Whether it can run, its parameters and its guarantee, or the reasons why it cannot.
    expected : Expected or None
        What privacy is forecast to cost against the same model without privacy; None if it cannot
        run, or was never measured, or if a class is so rare that this says nothing.
    reached : Reached or None
        How good it is by the goal on made-up tables with classes of such shares; None if that was
        never measured.
    simulated : Reached or None
        How good it is forecast to be by the goal, if there is a public sample.
    needs : str
        Rows or epsilon with which a refused route would run; "" if these do not help.
    by_goal : bool
        Whether routes are compared by ``reached``, or else by how far they are ``behind``.
    """

    route: Route
    outlook: Outlook
    expected: Expected | None = None
    reached: Reached | None = None
    simulated: Reached | None = None
    needs: str = ""
    by_goal: bool = False

    @property
    def can_run(self) -> bool:
        """True if it can run."""
        return self.outlook.can_run

    @property
    def figure(self) -> Reached | None:
        """The forecast of its quality, if routes are compared by it."""
        return self.simulated or (self.reached if self.by_goal else None)

    @property
    def worth(self) -> float | None:
        """The figure by which routes are compared, more is better; None if nothing is known."""
        if self.simulated is not None:
            return self.simulated.worth
        if self.by_goal:
            return None if self.reached is None else self.reached.worth
        return None if self.expected is None else -self.expected.behind

    @property
    def rank(self) -> tuple[bool, bool, bool, float]:
        """The key by which routes are sorted: runnable ones first, then the best by the goal."""
        worth = self.worth
        handicap = 0.0 if self.route.publishes else LEVEL
        return not self.can_run, worth is None, self.simulated is None, handicap - (worth or 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "route": self.route.name,
            "way": self.route.way,
            "title": self.route.title,
            "outlook": self.outlook.to_dict(),
            "expected": None if self.expected is None else vars(self.expected),
            "reached": None if self.reached is None else vars(self.reached),
            "simulated": None if self.simulated is None else vars(self.simulated),
            "needs": self.needs,
        }

    def __str__(self) -> str:
        """Return it as one paragraph."""
        title = self.route.title[0].upper() + self.route.title[1:]
        if not self.can_run:
            more = f" It would run with {self.needs}." if self.needs else ""
            return f"{title}: refused. {' '.join(self.outlook.reasons)}{more}"
        text = f"{title}."
        if self.figure is not None:
            text += f" About {self.figure}."
            text += f" {self.constant}" if self.constant else ""
        if self.expected is not None:
            usual, behind = (100 * one for one in (self.expected.usual, self.expected.behind))
            text += f" About {usual:.1f} points behind a usual model without privacy, "
            text += f"{behind:.1f} behind the best private route, and {self.expected} behind the "
            text += "same model without privacy."
        return " ".join([text, *self.outlook.warnings])

    @property
    def constant(self) -> str:
        """A caution if every row is likely to get the same answer; else ""."""
        found = self.simulated or self.reached
        if found is None or not found.constant:
            return ""
        return f"Every row is likely to get the same answer: {found.guessed}."


@dataclass(frozen=True)
class Advice:
    """All routes for one situation, the best first, and one sentence of advice.

    Parameters
    ----------
    situation : Situation
        The public facts.
    prospects : tuple of Prospect
        One for each route: those that can run first, the most accurate of them in front.
    hint : str
        What a declared range for each column would change, if that is more than half a point of
        accuracy; else "".
    """

    situation: Situation
    prospects: tuple[Prospect, ...]
    hint: str = ""

    @property
    def best(self) -> Prospect | None:
        """The first route, if any can run."""
        return next((found for found in self.prospects if found.can_run), None)

    @property
    def sentence(self) -> str:
        """One plain sentence of advice."""
        best = self.best
        if best is None:
            reason, *others = {found.outlook.reasons for found in self.prospects}
            if not others:
                return f"No route can run. {' '.join(reason)}"
            first = next((found for found in self.prospects if found.needs), None)
            if first is not None:
                return f"No route can run; with {first.needs} you could {first.route.title}."
            return "No route can run; the reason stands with each of them."
        count = sum(found.can_run for found in self.prospects)
        sentence = f"{best.route.title[0].upper()}{best.route.title[1:]}: "
        if count == 1:
            sentence += "it is the only way that works with these numbers"
        else:
            goal = BEST_AT[self.situation.compared]
            sentence += f"of {count} routes that can run it is likely to be {goal}"
        equal = "If classes are of equal size, it has" if self._supposes_equal else ""
        if best.figure is not None:
            start = f". {equal} about " if equal else ", with about "
            sentence += f"{start}{best.figure}{self._usual(best.figure)}"
        elif best.expected is not None:
            start = f". {equal} about " if equal else ", with about "
            sentence += f"{start}{100 * best.expected.usual:.1f} points of accuracy less than a "
            sentence += "usual model without privacy"
        if best.figure is None:
            place, share = best_guess("accuracy", self.situation.shares, self.situation.misses)
            always = f"always saying {self.situation.classes[place]}"
            if equal:  # then no class is the commonest, and the classes may be the default ones
                always = "one answer to everybody"
            sentence += f"; {always} gets {100 * share:.1f} %"
        return f"{sentence}."

    def _usual(self, found: Reached) -> str:
        """Return what a usual model without privacy reaches, in words."""
        if found.usual is None:
            return ""
        unit = " %" if found.goal == "accuracy" else ""
        return f", and a usual model without privacy has {found.formatted(found.usual)}{unit}"

    @property
    def cannot_rank(self) -> str:
        """A caution if no route is likely to tell rows apart; else ""."""
        runs = [found for found in self.prospects if found.can_run]
        known = [found.simulated or found.reached for found in runs]
        if not known or known[0] is None:
            return ""  # a concept class is known: nothing of the kind was measured
        areas = [found.auc for found in known if found is not None and found.auc is not None]
        if not areas or max(areas) >= RANKS:
            return ""
        usual = known[0].usual_auc
        without = "" if usual is None else f", and a usual model without privacy has {usual:.2f}"
        rows, shares = self.situation.n_labelled, self.situation.shares
        rarest = self.situation.classes[shares.index(min(shares))]
        return (
            f"No route can rank with so few rows: {rows:,}, of which {100 * min(shares):.3g} % "
            f"are {rarest}. The best is forecast to have an AUC of {max(areas):.2f}, where "
            f"guessing has 0.5{without}."
        )

    @property
    def constant(self) -> str:
        """A caution if the best route is likely to answer every row alike; else ""."""
        if self.best is None or not self.best.constant:
            return ""
        if self.situation.class_shares is None and not self.best.simulated:
            return ""  # which would rest on an assumption
        if self.cannot_rank:
            return f"{self.best.constant} Costs or a threshold would not help."
        return f"{self.best.constant} Declare costs or a threshold, or look at its chances."

    @property
    def loses_to_a_guess(self) -> str:
        """A caution if one answer to all rows is likely to cost less than any route; else ""."""
        found = None if self.best is None else self.best.simulated or self.best.reached
        if found is None or found.goal != "cost" or not found.value > found.guess:
            return ""
        return (
            f"Always saying {found.guessed} is likely to cost less than the best route: "
            f"{found.formatted(found.guess)} for each row, against {found.formatted(found.value)}."
        )

    @property
    def assumed(self) -> str:
        """A caution if shares of classes are not known; else ""."""
        if not self._supposes_equal:
            return ""
        return (
            "Classes are taken to be of equal size, because their shares are not declared. If one "
            f"is rare, forecasts are far too good: declare class shares.{self._if_rare}"
        )

    @property
    def blind_if_rare(self) -> str:
        """The same caution, if no route could rank, were one of two classes rare; else ""."""
        return self.assumed if self.assumed and self._if_rare else ""

    @property
    def _supposes_equal(self) -> bool:
        best = self.best
        return self.situation.class_shares is None and best is not None and not best.simulated

    @cached_property
    def _if_rare(self) -> str:
        """A caution if no route could rank, were one of two classes rare; else ""."""
        facts = self.situation
        if len(facts.classes) != 2 or facts.concept_class is not None:
            return ""
        rare = replace(facts, goal="ranking", class_shares={facts.classes[1]: SAY_RARE})
        routes = [route for route in ROUTES.values() if route.publishes]
        if not advise(rare, routes, search=False).cannot_rank:
            return ""
        return f" With {100 * SAY_RARE:g} % in one class, say, no route could rank so few rows."

    @property
    def cautions(self) -> tuple[str, ...]:
        """Cautions before anything is paid, a sentence or two each."""
        found = (self.cannot_rank, self.constant, self.loses_to_a_guess, self.assumed)
        return tuple(filter(None, found))

    def __getitem__(self, name: str) -> Prospect:
        """Return the prospect of a route by its name."""
        for found in self.prospects:
            if found.route.name == name:
                return found
        names = ", ".join(found.route.name for found in self.prospects)
        raise KeyError(f"{name!r} is not among the routes that were compared: {names}.")

    def curves(self, against: str = "rows") -> Curves:
        """Return what privacy costs each route against rows or epsilon; it prints as a table.

        Each value has a plan of its own, so that curves and plans say the same.

        Parameters
        ----------
        against : {"rows", "epsilon"}
            What changes.

        Returns
        -------
        Curves
            The values; ``draw`` draws them.
        """
        routes = [found.route for found in self.prospects if found.expected is not None]
        if not routes and self.best is not None:
            raise InvalidParameter(
                "curves are of the accuracy that privacy costs, and say nothing about "
                f"{'rare classes' if self.situation.is_rare else self.situation.compared}."
            )
        return Curves.of(self.situation, routes, against)

    def plot(self, axes: Any = None) -> Any:
        """Draw what privacy costs each route, against rows and against epsilon.

        It needs the package of ``cumae[plot]``.

        Parameters
        ----------
        axes : two matplotlib axes, or None
            Where to draw; None makes a new figure.

        Returns
        -------
        matplotlib figure
            With two panels.
        """
        return plot_all([self.curves("rows"), self.curves("epsilon")], axes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "advice": self.sentence,
            "hint": self.hint,
            "cautions": list(self.cautions),
            "best": None if self.best is None else self.best.route.name,
            "prospects": [found.to_dict() for found in self.prospects],
        }

    def __str__(self) -> str:
        """Return the advice, and one line for each route."""
        lines = [self.sentence, *self.cautions, *filter(None, [self.hint])]
        lines += ["", *(f"- {found}" for found in self.prospects)]
        return "\n".join([*lines, "", *self.rests_on])

    @property
    def rests_on(self) -> tuple[str, ...]:
        """The grounds of the forecasts, in a sentence each."""
        costs = [one.expected.rests_on for one in self.prospects if one.expected]
        figures = [one.figure.rests_on for one in self.prospects if one.figure]
        named = {"What privacy costs": costs, "How good routes are by the goal": figures}
        return tuple(
            f"{name} is forecast from {min(some, key=len)}." for name, some in named.items() if some
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def plan(
    n_labelled: int,
    n_unlabelled: int = 0,
    n_public: int = 0,
    n_queries: int | None = None,
    *,
    columns: Declared = None,
    estimator: Any = None,
    concept_class: ConceptClass | None = None,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    n_features: int | None = None,
    classes: Sequence[Any] = (0, 1),
    public: tuple[Any, Any] | None = None,
    goal: str = "accuracy",
    costs: Mapping[Any, float] | None = None,
    threshold: float | None = None,
    class_shares: Mapping[Any, float] | None = None,
) -> Advice:
    """Return forecasts of all routes from private rows to answers; no private row is read.

    Parameters
    ----------
    n_labelled : int
        Private rows that have a label.
    n_unlabelled : int
        Private rows beside them that have none.
    n_public : int
        Public rows, whether or not they have labels.
    n_queries : int or None
        Questions that will be asked; None if their number is open.
    columns : mapping or sequence, or None
        What each column holds, as in :class:`~cumae.Columns`.
    estimator : classifier or Pipeline, or None
        The model of routes that vote; None means a tree of depth 4.
    concept_class : ConceptClass or None
        What the rule is known to look like, from ``cumae.concepts``.
    epsilon, delta : float
        Privacy parameters.
    n_features : int or None
        Columns of the table. None takes the number of declared ones, or the width of the public
        rows.
    classes : sequence of labels
        All labels that there can be.
    public : tuple of a table and labels, or None
        A public labelled sample. Every route is then tried on made-up tables that follow it, and
        accuracy itself is forecast. Without it, forecasts come from tables of the same size.
    goal : {"accuracy", "ranking", "cost"}
        What answers are for: routes are compared by the share of right answers, by the area under
        the ROC curve, or by the cost of their mistakes.
    costs : mapping from class to float, or None
        The cost to miss a row of each class; 1 for classes that are not named.
    threshold : float, or None
        The chance of the second of two classes from which on it is the answer.
    class_shares : mapping from class to float, or None
        About which share of the rows each class has, from what is known without the rows. None
        takes classes to be of equal size.

    Returns
    -------
    Advice
        All routes, the best first. What cannot run is there with its reason.

    Raises
    ------
    InvalidParameter
        If the number of columns is not known, or a parameter is no number where it must be one.

    Examples
    --------
    >>> from cumae.planning import plan
    >>> advice = plan(10_000, columns=[(0, 1)] * 8, epsilon=1.0, delta=1e-6)
    >>> advice.best.route.way
    'publish'
    >>> advice["semi"].can_run
    False
    """
    _check_numbers(epsilon, delta, n_queries)
    if public is not None:
        public = (table_of(public[0]), public[1])
        n_public = max(n_public, length_of(public[0]))
    if n_features is None:
        n_features = _width(columns, public)
    situation = Situation(
        check_count(n_labelled, "n_labelled"),
        check_count(n_unlabelled, "n_unlabelled"),
        check_count(n_public, "n_public"),
        n_queries,
        check_count(n_features, "n_features", least=1),
        columns,
        estimator,
        concept_class,
        epsilon,
        delta,
        tuple(classes),
        goal,
        costs,
        threshold,
        class_shares,
    )
    situation.check_goal()
    found = advise(situation, ROUTES.values(), public)
    return replace(found, hint=_hint(found))


def _hint(found: Advice) -> str:
    """Return what declared ranges would change: routes that publish cannot do without any.

    Routes are compared by how far they are behind the best one, as everywhere.
    """
    ranged = found.situation.with_ranges()
    if ranged is None:
        return ""
    routes = [route for route in ROUTES.values() if route.publishes]
    then = advise(ranged, routes, search=False).best
    if then is None or then.worth is None:
        return ""
    now = found.best
    if now is not None and now.worth is not None and now.worth + LEVEL > then.worth:
        return ""
    figure = f"with about {then.figure}"
    if then.figure is None:
        figure = f"{100 * then.expected.usual:.1f} points behind" if then.expected else ""
        figure = f"about {figure} a usual model without privacy"
    return (
        "Declare the range of each column, from what is known without the rows: then you could "
        f"{then.route.title}, {figure}."
    )


def _check_numbers(epsilon: Any, delta: Any, n_queries: Any) -> None:
    """Refuse what is no number; numbers with which nothing can run are a reason of each route."""
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not isinstance(value, numbers.Real):
            raise InvalidParameter(f"{name}={shown(value)} is no number; give 1e-6, for example.")
    if n_queries is not None and not isinstance(n_queries, numbers.Integral):
        raise InvalidParameter(f"n_queries={shown(n_queries)} is no whole number; give 1,000, say.")


def _width(columns: Declared, public: tuple[Any, Any] | None) -> int:
    """Return the number of columns, as far as somebody said it."""
    if public is not None:
        return width_of(public[0])
    if columns is None:
        raise InvalidParameter("n_features is not given; give it, or declare columns.")
    return len(columns)


def advise(
    situation: Situation,
    routes: Iterable[Route],
    public: tuple[Any, Any] | None = None,
    *,
    search: bool = True,
) -> Advice:
    """Return the prospects of some routes, sorted.

    Parameters
    ----------
    situation : Situation
        The public facts.
    routes : iterable of Route
        What is compared.
    public : tuple of a table and labels, or None
        A public labelled sample.
    search : bool
        Whether to look for the rows and the epsilon that a refused route would need.
    """
    found: list[Prospect] = []
    sample = usual = None
    by_goal = _by_goal(situation)
    for route in routes:
        seen = outlook(route, situation)
        if not seen.can_run:
            wanted = needs(route, situation) if search else ""
            found.append(Prospect(route, seen, needs=wanted))
            continue
        if public is not None and sample is None:
            sample = Sample.of(situation, *public)
            usual = usual_model(situation, sample)
        expected = None if by_goal else forecast(route, situation, seen.facts)
        figure = reached(route, situation, seen.facts)
        tried = None if sample is None else simulate(route, situation, sample, usual)
        found.append(Prospect(route, seen, expected, figure, tried, by_goal=by_goal))
    return Advice(situation, tuple(sorted(found, key=lambda one: one.rank)))


def _by_goal(situation: Situation) -> bool:
    """Tell whether routes are compared on tables with such shares.

    For accuracy, and classes that are not rare, more kinds of tables were measured without them.
    Concept classes were not measured on rare outcomes.
    """
    if situation.compared == "ranking":
        return True
    several = len(situation.classes) > 2 or situation.concept_class is not None
    return not several and (situation.compared == "cost" or situation.is_rare)
