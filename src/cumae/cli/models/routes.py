"""The routes of ``cumae fit`` from private rows to answers, and models for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer

from cumae.errors import InvalidParameter

if TYPE_CHECKING:
    from cumae.cli.models.goals import Aim
    from cumae.cli.models.private import PrivateTable
    from cumae.planning.advice import Advice
    from cumae.planning.routes import Situation


class RouteName(StrEnum):
    """The kind of answers: a published model, or an oracle."""

    AUTO = "auto"
    PUBLISH = "publish"
    RELEASE = "release"
    EVERLASTING = "everlasting"


PUBLISHED = {
    "kernel": "PrivateKernelClassifier",
    "logistic": "PrivateLogisticRegression",
    "curves": "PrivateLogisticRegression",
    "booster": "PrivateBooster",
}
# Classes of rules that only compare; ordered columns need one of them.
COMPARING = {"thresholds": "Thresholds", "intervals": "Intervals", "points": "Points"}
ASKED = ("tree", "ridge", *COMPARING)
MODELS: Mapping[RouteName, tuple[str, ...]] = {
    RouteName.PUBLISH: tuple(PUBLISHED),
    RouteName.RELEASE: ASKED,
    RouteName.EVERLASTING: ASKED,
}
# Routes whose answers an oracle keeps, one by one.
ORACLE_ROUTES = ("gaussian", "laplace", "stability", "between", "everlasting")
ORACLE_ENDS = (".db", ".sqlite")


def names_oracle(out: str) -> bool:
    """Tell whether an output is named as an oracle is."""
    return out.endswith(ORACLE_ENDS) or "://" in out


def complete_model(begun: str) -> list[str]:
    """Return the names of models that begin so, for the completion of a shell."""
    return [name for name in dict.fromkeys([*PUBLISHED, *ASKED]) if name.startswith(begun)]


def route_for(route: RouteName, model: str | None, max_queries: int | None, out: str) -> RouteName:
    """Return the route, which follows from the output if only a model was named.

    Parameters
    ----------
    route : RouteName
        What was asked for.
    model : str, or None
        The model that was asked for.
    max_queries : int, or None
        How many queries there will be, if that is known.
    out : str
        Where the result goes.
    """
    if route is RouteName.AUTO and model is not None:
        asking = RouteName.EVERLASTING if max_queries is None else RouteName.RELEASE
        route = asking if names_oracle(out) else RouteName.PUBLISH
    known = MODELS.get(route, ())
    if model is not None and model not in known:
        close = get_close_matches(model, known)
        listed = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}."
        raise typer.BadParameter(
            f"{model!r} is no model of {route.value}; {listed}", param_hint="--model"
        )
    return route


def published(name: str | None, delta: float, **shared: Any) -> Any:
    """Return a learner that may be published, unfitted.

    Parameters
    ----------
    name : str, or None
        One of ``PUBLISHED``; None for the most accurate one: the kernel classifier, or the booster
        if delta is 0, because only that one has pure privacy.
    delta : float
        The delta that is asked for.
    shared : object
        Parameters that all of them have.
    """
    import cumae  # noqa: PLC0415 - what is used of it takes seconds to load

    chosen = name or ("kernel" if delta > 0 else "booster")
    more = {"curves": 6} if chosen == "curves" else {}
    return getattr(cumae, PUBLISHED[chosen])(delta=delta, **shared, **more)


def asked(route: RouteName, name: str | None, max_queries: int, **shared: Any) -> Any:
    """Return a predictor that answers and is never published, unfitted.

    Parameters
    ----------
    route : RouteName
        ``RELEASE`` or ``EVERLASTING``.
    name : str, or None
        One of ``ASKED``; None for the tree.
    max_queries : int
        How many queries ``RELEASE`` answers.
    shared : object
        Parameters that both of them have.
    """
    from sklearn.linear_model import RidgeClassifier  # noqa: PLC0415 - takes long to load
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

    import cumae  # noqa: PLC0415
    from cumae import concepts  # noqa: PLC0415

    chosen = name or "tree"
    if chosen in COMPARING:
        model = {"concept_class": getattr(concepts, COMPARING[chosen])()}
    else:
        models = {"tree": DecisionTreeClassifier(max_depth=4), "ridge": RidgeClassifier()}
        model = {"estimator": models[chosen]}
    if route is RouteName.RELEASE:
        return cumae.QueryRelease(**model, max_queries=max_queries, **shared)
    return cumae.EverlastingPredictor(**model, **shared)


def situation_of(
    table: PrivateTable, epsilon: float, delta: float, max_queries: int | None, aim: Aim
) -> Situation:
    """Return the public facts of a task: of a table, its number of rows and what was declared.

    Parameters
    ----------
    table : PrivateTable
        The private rows.
    epsilon, delta : float
        Privacy parameters.
    max_queries : int, or None
        How many queries there will be; None if that is not known.
    aim : Aim
        What answers are for.
    """
    from cumae.planning.routes import Situation  # noqa: PLC0415

    return Situation(
        table.rows.n_rows,
        n_public=0 if table.public is None else table.public.n_rows,
        n_queries=max_queries,
        n_features=table.rows.n_features,
        columns=table.declared,
        epsilon=epsilon,
        delta=delta,
        classes=tuple(table.classes),
        **vars(aim),
    )


def best_of(situation: Situation, out: str) -> tuple[Any, Advice]:
    """Return the estimator that the planner chooses, unfitted, and its advice.

    Parameters
    ----------
    situation : Situation
        The public facts.
    out : str
        The output: a name of an oracle asks for routes that answer, any other one for a model.
    """
    from cumae.planning.advice import advise  # noqa: PLC0415
    from cumae.planning.routes import ROUTES  # noqa: PLC0415

    names = ORACLE_ROUTES if names_oracle(out) else None
    routes = [
        route
        for route in ROUTES.values()
        if (route.publishes if names is None else route.name in names)
    ]
    advice = advise(situation, routes, search=False)
    if advice.best is None:
        first = advice.prospects[0]
        raise InvalidParameter(f"no route can run. {first}")
    return advice.best.route.estimator(situation), advice


def advice_on(situation: Situation, route: RouteName, model: str | None) -> Advice | None:
    """Return what is forecast for a route that was asked for; None for rules that only compare.

    Parameters
    ----------
    situation : Situation
        The public facts.
    route : RouteName
        ``PUBLISH``, ``RELEASE`` or ``EVERLASTING``.
    model : str, or None
        The model that was asked for.
    """
    from cumae.planning.advice import advise  # noqa: PLC0415
    from cumae.planning.routes import ROUTES  # noqa: PLC0415

    if model in COMPARING:
        return None
    pure = situation.delta == 0
    published_routes = {"booster": "trees" if pure else "booster", "curves": "logistic"}
    chosen = model or ("booster" if pure else "kernel")
    name = {RouteName.RELEASE: "gaussian", RouteName.EVERLASTING: "everlasting"}.get(
        route, published_routes.get(chosen, chosen)
    )
    return advise(situation, [ROUTES[name]], search=False)
