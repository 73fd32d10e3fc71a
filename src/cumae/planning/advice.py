"""The planner: which route to take, how good it will be, and why, before anything is spent."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from cumae.concepts import ConceptClass
from cumae.data import Declared, length_of, table_of, width_of
from cumae.errors import InvalidParameter, shown
from cumae.outlook import Outlook
from cumae.parameters import check_count
from cumae.planning.forecasts import Expected, forecast
from cumae.planning.outlooks import needs, outlook
from cumae.planning.pictures import Curves, plot_all
from cumae.planning.routes import ROUTES, Route, Situation
from cumae.planning.simulation import Sample, Simulated, simulate

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
        What privacy is forecast to cost; None if it cannot run, or was never measured.
    simulated : Simulated or None
        How accurate it is forecast to be, if there is a public sample.
    needs : str
        Rows or epsilon with which a refused route would run; "" if these do not help.
    """

    route: Route
    outlook: Outlook
    expected: Expected | None = None
    simulated: Simulated | None = None
    needs: str = ""

    @property
    def can_run(self) -> bool:
        """Whether it can run."""
        return self.outlook.can_run

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """What routes are sorted by: those that can run first, then the most accurate."""
        known = self.expected is not None or self.simulated is not None
        handicap = 0.0 if self.route.publishes else LEVEL
        if self.simulated is not None:
            return not self.can_run, not known, handicap - self.simulated.accuracy
        return (
            not self.can_run,
            not known,
            handicap + (self.expected.behind if self.expected else 0),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "route": self.route.name,
            "way": self.route.way,
            "title": self.route.title,
            "outlook": self.outlook.to_dict(),
            "expected": None if self.expected is None else vars(self.expected),
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
        if self.simulated is not None:
            text += f" Accuracy about {self.simulated}."
        if self.expected is not None:
            behind = f"{100 * self.expected.behind:.1f} points behind the best private route"
            text += f" Privacy costs about {self.expected}; about {behind}."
        return " ".join([text, *self.outlook.warnings])


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
        told = f"{best.route.title[0].upper()}{best.route.title[1:]}: "
        if count == 1:
            told += "it is the only way that works with these numbers"
        else:
            told += f"of {count} routes that can run it is likely to be the most accurate"
        if best.simulated is not None:
            told += f", with {best.simulated} right answers"
        if best.expected is not None:
            told += f", and privacy is likely to cost {best.expected} of accuracy"
        return f"{told}."

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
            "best": None if self.best is None else self.best.route.name,
            "prospects": [found.to_dict() for found in self.prospects],
        }

    def __str__(self) -> str:
        """Return the advice, and one line for each route."""
        rests = {found.expected.rests_on for found in self.prospects if found.expected}
        lines = [self.sentence, *filter(None, [self.hint])]
        lines += ["", *(f"- {found}" for found in self.prospects)]
        if rests:
            lines += ["", f"What privacy costs is forecast from {min(rests, key=len)}."]
        simulated = next((one.simulated for one in self.prospects if one.simulated), None)
        if simulated is not None:
            lines.append(f"Accuracy is forecast from {simulated.rests_on}.")
        return "\n".join(lines)

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
) -> Advice:
    """Tell which route to take from private rows to answers; no private row is read.

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
        accuracy itself is forecast. Without it, only what privacy costs can be forecast.

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
    )
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
    if then is None or then.expected is None:
        return ""
    now = found.best
    if now is not None and now.expected and now.expected.behind < then.expected.behind + LEVEL:
        return ""
    return (
        "Declare the range of each column, from what is known without the rows: then you could "
        f"{then.route.title}, and privacy would be likely to cost {then.expected} of accuracy."
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
    found, sample = [], None
    for route in routes:
        seen = outlook(route, situation)
        if not seen.can_run:
            wanted = needs(route, situation) if search else ""
            found.append(Prospect(route, seen, needs=wanted))
            continue
        if public is not None and sample is None:
            sample = Sample.of(situation, *public)
        expected = forecast(route, situation, seen.facts)
        tried = None if sample is None else simulate(route, situation, sample)
        found.append(Prospect(route, seen, expected, tried))
    return Advice(situation, tuple(sorted(found, key=lambda one: one.rank)))
