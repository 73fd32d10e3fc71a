"""``cumae demo``: learn one rule from the bundled survey, privately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from cumae.datasets import load_health_survey
from cumae.mechanisms import ExponentialMechanism

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

# Every fifth row is held out: a split that involves no chance and looks at no row.
HELD_OUT_EVERY = 5


@dataclass(frozen=True)
class SurveyRule:
    """Says "positive" on one side of a cut through one column of whole numbers."""

    column: str
    cut: int
    positive_above: bool

    def predict(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Label the values of the column of the rule: those of at least ``cut`` are above."""
        return np.asarray((values >= self.cut) == self.positive_above, dtype=np.int64)

    def __str__(self) -> str:
        if self.positive_above:
            return f"{self.column} is {self.cut} or more"
        return f"{self.column} is {self.cut - 1} or less"


def rules_within(bounds: Mapping[str, tuple[int, int]]) -> list[SurveyRule]:
    """List every rule that splits the declared bounds of its column; no data are involved.

    Examples
    --------
    >>> from cumae.cli.demo import rules_within
    >>> [str(rule) for rule in rules_within({"Sex": (0, 1)})]
    ['Sex is 1 or more', 'Sex is 0 or less']
    """
    return [
        SurveyRule(column, cut, positive_above)
        for column, (low, high) in bounds.items()
        for cut in range(low + 1, high + 1)
        for positive_above in (True, False)
    ]


def count_right(
    columns: Sequence[NDArray[np.int64]],
    labels: NDArray[np.int64],
    bounds: Mapping[str, tuple[int, int]],
) -> NDArray[np.int64]:
    """Count the rows that each of ``rules_within(bounds)`` labels right, in that order.

    Replacing one row changes each count by at most 1. Each column is read once: the counts for all
    its cuts are running sums over its histogram.
    """
    scores = []
    for values, (low, high) in zip(columns, bounds.values(), strict=True):
        places = np.clip(values, low, high) - low
        negatives, positives = (
            np.bincount(places[labels == label], minlength=high - low + 1) for label in (0, 1)
        )
        # For the cut between places i and i + 1: negatives up to i, positives from i + 1 on.
        right = np.cumsum(negatives)[:-1] + positives.sum() - np.cumsum(positives)[:-1]
        scores.append(np.column_stack([right, len(labels) - right]).ravel())
    return np.concatenate(scores)


def demo(
    epsilon: Annotated[float, typer.Option(help="Privacy budget: smaller protects more.")] = 1.0,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Learn from this many rows; all if not given.")
    ] = None,
) -> None:
    """Learn one rule from the bundled health survey, privately, and try it on held-out rows.

    Of the survey, every fifth row is held out and the others are learned from. The rule is one
    column, one cut and one direction, drawn by the exponential mechanism among all cuts within the
    columns' declared bounds. The guarantee speaks of the rows learned from; the held-out rows only
    measure the rule, and their accuracy is printed as it is.
    """
    mechanism = ExponentialMechanism(epsilon=epsilon)
    survey = load_health_survey()
    held_out = np.arange(len(survey.frame)) % HELD_OUT_EVERY == 0
    train, test = survey.frame[~held_out].iloc[:rows], survey.frame[held_out]

    rules = rules_within(survey.bounds)
    columns = [train[name].to_numpy() for name in survey.bounds]
    scores = count_right(columns, train["label"].to_numpy(), survey.bounds)
    chosen = rules[mechanism.choose(scores)]

    truth: Any = test["label"].to_numpy()
    accuracy = np.mean(chosen.predict(test[chosen.column].to_numpy()) == truth)
    guessing = max(truth.mean(), 1 - truth.mean())
    typer.echo(f"Learned from {len(train):,} rows, among {len(rules)} possible rules.")
    typer.echo(f"SurveyRule: predict high blood pressure if {chosen}.")
    typer.echo(f"      ({chosen.column}: {survey.meanings[chosen.column]})")
    typer.echo(
        f"Accuracy on {len(test):,} held-out rows, which are not protected: {accuracy:.1%}"
        f" (always guessing the larger class: {guessing:.1%})"
    )
    typer.echo(f"Guarantee: {mechanism.guarantee(protects='one labelled training row')}")
