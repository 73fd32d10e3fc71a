"""The goal of the answers, and declarations about classes, as options of ``plan`` and ``fit``."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from cumae.errors import InvalidParameter


class GoalName(StrEnum):
    """The goal of the answers."""

    ACCURACY = "accuracy"
    RANKING = "ranking"
    COST = "cost"


Goal = Annotated[
    GoalName | None,
    typer.Option(
        "--goal",
        help="What routes are compared by: right answers, the order of chances (AUC), or the cost "
        "of mistakes. Not given: cost with --costs or --threshold, else accuracy.",
    ),
]
Costs = Annotated[
    str | None,
    typer.Option(
        "--costs",
        metavar="CLASS=COST,...",
        help="The cost to miss a row of a class, such as died=20; 1 for others. Answers have the "
        "least expected cost.",
    ),
]
AnswerThreshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        min=0.0,
        max=1.0,
        help="The chance of the second of two classes from which on it is the answer.",
    ),
]
ClassShares = Annotated[
    str | None,
    typer.Option(
        "--class-shares",
        metavar="CLASS=SHARE,...",
        help="About which share of the rows a class has, such as died=0.03, from what is known "
        "without the rows. Not given: classes of equal size.",
    ),
]


@dataclass(frozen=True)
class Aim:
    """The goal of the answers, as declared.

    Parameters
    ----------
    goal : str
        One of ``GoalName``.
    costs, class_shares : dict, or None
        A number for some classes.
    threshold : float, or None
        The chance of the second of two classes from which on it is the answer.
    """

    goal: str
    costs: dict[Any, float] | None
    threshold: float | None
    class_shares: dict[Any, float] | None

    @classmethod
    def read(
        cls,
        goal: GoalName | None,
        costs: str | None,
        threshold: float | None,
        shares: str | None,
        classes: str,
    ) -> Aim:
        """Read options, and refuse what does not fit.

        Parameters
        ----------
        goal, costs, threshold, shares, classes : object
            As they were given.
        """
        from cumae.cli.files.checks import classes_of  # noqa: PLC0415 - takes a second
        from cumae.planning.goals import check_goal  # noqa: PLC0415 - takes seconds to load

        names = classes_of(classes)
        by_cost = costs is not None or threshold is not None
        chosen = goal or (GoalName.COST if by_cost else GoalName.ACCURACY)
        found = cls(
            chosen.value,
            numbers_of(costs, "--costs", names),
            threshold,
            numbers_of(shares, "--class-shares", names),
        )
        check_goal(found.goal, names, found.costs, found.threshold, found.class_shares)
        return found

    @property
    def answers(self) -> dict[str, Any]:
        """Parameters of learners, without those that were not declared."""
        given = {"goal": self.goal, "costs": self.costs, "threshold": self.threshold}
        return {name: value for name, value in given.items() if value is not None}


def numbers_of(given: str | None, option: str, classes: Sequence[Any]) -> dict[Any, float] | None:
    """Return the numbers of ``--costs died=20``, by classes.

    Parameters
    ----------
    given : str, or None
        What was given.
    option : str
        The option, for messages.
    classes : sequence
        The declared classes.

    Examples
    --------
    >>> from cumae.cli.models.goals import numbers_of
    >>> numbers_of("died=20", "--costs", ["no", "died"])
    {'died': 20.0}
    """
    if given is None:
        return None
    known = {str(one): one for one in classes}
    found: dict[Any, float] = {}
    for text in next(csv.reader([given], skipinitialspace=True)) or [""]:
        name, equals, number = (part.strip() for part in text.rpartition("="))
        if name not in known or not equals:
            raise InvalidParameter(
                f"{option} {given!r} must name classes and numbers, such as "
                f"{option} {list(known)[-1]}=0.5; the classes are {', '.join(known)}."
            )
        try:
            found[known[name]] = float(number)
        except ValueError:
            raise InvalidParameter(f"{option} {text!r}: {number!r} is no number.") from None
    return found
