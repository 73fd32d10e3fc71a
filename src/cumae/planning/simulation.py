"""Routes on made-up tables that could have come from where a public sample came from.

A public sample of a few hundred labelled rows does not tell how well many rows can be learnt from.
So a Bayesian model is fitted to it, and rules are drawn from its posterior: rules that the sample
does not rule out, some of them with more structure than it shows. Rows are made up by crossing rows
of the sample with their nearest neighbours, labels are drawn from such a rule, and the route runs
on them with its privacy. As the rule is known, the share of right answers is computed, not counted.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.neighbors import NearestNeighbors

from cumae.arrays import Floats, Integers
from cumae.concepts import ConceptClass, Hypothesis
from cumae.data import Columns, class_names, class_places, length_of, table_of
from cumae.errors import CumaeError, InvalidData
from cumae.learners import PrivateKernelClassifier
from cumae.learners.kernel.model import KernelModel
from cumae.learners.scored import chances
from cumae.planning.routes import Route, Situation
from cumae.randomness import SeededSource, discrete_gaussian, integers
from cumae.threads import one_thread

RULES = 3  # that are drawn
MOST_ROWS = 10_000  # beyond, a larger epsilon stands for more rows
MOST_EPSILON = 50.0
LEAST = 50  # labelled public rows, so that a posterior means something
NEAREST = 10  # rows that one can be crossed with
ASKED = 1_000  # made-up questions
DELTA = 1e-6
GRID = 2**20  # steps of a normal number
WIDE = 1.3  # standard deviations on both sides of which eight of ten cases lie


@dataclass(frozen=True)
class Simulated:
    """How many answers a route is forecast to have right, as shares of all.

    Parameters
    ----------
    accuracy : float
        What is most likely.
    low, high : float
        Where it is likely to be, in about eight of ten cases.
    rests_on : str
        What the forecast was made from, in plain words.
    """

    accuracy: float
    low: float
    high: float
    rests_on: str

    def __str__(self) -> str:
        """Return it in percent."""
        return f"{100 * self.accuracy:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f} %)"


Rule = Callable[[Floats], Floats]  # tells the chance of each class for encoded rows


@dataclass(frozen=True)
class Sample:
    """A public sample, and some rules that it does not rule out.

    Parameters
    ----------
    rows : table
        Public rows.
    columns : Columns
        How they become numbers.
    neighbours : array of int
        For each row, places of the nearest ones, itself among them.
    rules : list of callable
        Each tells the chance of each class for encoded rows.
    """

    rows: Any
    columns: Columns
    neighbours: Integers
    rules: list[Rule]

    @classmethod
    def of(cls, situation: Situation, X: Any, y: Any, n_rules: int = RULES) -> Sample:
        """Draw rules from what the public labels leave open.

        Parameters
        ----------
        situation : Situation
            The public facts; a concept class among them is where rules are drawn from.
        X : table
            Public rows.
        y : array-like
            Their labels.
        n_rules : int
            How many rules.

        Raises
        ------
        InvalidData
            If there are too few rows, or they cannot be read.
        """
        X = table_of(X)
        labels = class_places(y, list(situation.classes), unlabelled=False)
        if len(labels) != length_of(X):
            raise InvalidData(
                f"public has {length_of(X)} rows and {len(labels)} labels; give a label for each."
            )
        if len(labels) < LEAST:
            raise InvalidData(
                f"public has {len(labels)} labelled rows; {LEAST} are the least that tell anything."
            )
        columns = Columns.of(X, situation.columns)
        table = columns.encode(X)
        source = SeededSource(0)  # public rows need no protection, and plans should repeat
        concept = situation.concept_class
        if concept is not None and len(situation.classes) == 2:
            rules = _concepts(concept, table, labels, n_rules, source)
        else:
            rules = _functions(situation, X, labels, n_rules, source)
        scaled = table / np.maximum(table.std(axis=0), 1e-12)
        near = NearestNeighbors(n_neighbors=NEAREST).fit(scaled)
        return cls(X, columns, near.kneighbors(scaled, return_distance=False), rules)

    def __len__(self) -> int:
        """Return the number of public rows."""
        return len(self.neighbours)

    def made_up(self, count: int, source: SeededSource) -> Any:
        """Return rows, each crossed from a public row and one of its nearest neighbours.

        Parameters
        ----------
        count : int
            How many.
        source : SeededSource
            Where coins come from.
        """
        one = integers(len(self), count, source)
        other = self.neighbours[one, integers(NEAREST, count, source)]
        width = len(self.columns.columns)
        swapped = integers(2, count * width, source).reshape(count, width) == 1
        places = np.where(swapped, other[:, None], one[:, None])
        if hasattr(self.rows, "iloc"):
            cells = {
                name: self.rows[name].iloc[places[:, place]].reset_index(drop=True)
                for place, name in enumerate(self.rows.columns)
            }
            return pd.DataFrame(cells)
        return np.asarray(self.rows)[places, np.arange(width)]


def _functions(
    situation: Situation, X: Any, labels: Integers, n_rules: int, source: SeededSource
) -> list[Rule]:
    """Draw coefficients from the posterior of a kernel classifier without noise."""
    classes = list(range(len(situation.classes)))
    model = PrivateKernelClassifier(
        math.inf, DELTA, columns=situation.columns, classes=classes, random_state=source
    ).fit(X, labels, X)
    found = model.published()
    size, scores = found.weights.shape
    drawn = np.tile(found.weights, (n_rules, 1, 1))
    for score in range(scores):
        learnt = found.learnt[score]
        covariance = np.diag(found.prior) - (learnt * found.signs[score]) @ learnt.T
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        coins = normal(n_rules * size, source).reshape(n_rules, size)
        drawn[:, :, score] += (coins * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return [partial(_chances, replace(found, weights=weights)) for weights in drawn]


def _chances(model: KernelModel, table: Floats) -> Floats:
    return chances(model.log_odds(table))


def _concepts(
    concept: ConceptClass, table: Floats, labels: Integers, n_rules: int, source: SeededSource
) -> list[Rule]:
    """Draw concepts by how well they label the public rows; some labels are wrong by chance."""
    best = np.mean(concept.erm(table, labels).predict(table) != labels)
    wrong = float((best * len(labels) + 0.5) / (len(labels) + 1))
    # The likelihood of a concept is exp(rate * right), and choose draws by half of its epsilon.
    rate = 2 * math.log((1 - wrong) / wrong) if wrong < 0.5 else 0.0
    drawn = [
        concept.choose(table, table, labels, rate, random_state=source.child())
        for _ in range(n_rules)
    ]
    return [partial(_concept_chances, rule, wrong) for rule in drawn]


def _concept_chances(rule: Hypothesis, wrong: float, table: Floats) -> Floats:
    one = np.where(np.asarray(rule.predict(table)) == 1, 1 - wrong, wrong)
    return np.column_stack([1 - one, one])


def normal(count: int, source: SeededSource) -> Floats:
    """Return normal numbers for simulations, as whole numbers on a fine grid."""
    return np.asarray(discrete_gaussian(GRID, count, source) / GRID)


def simulate(route: Route, situation: Situation, sample: Sample) -> Simulated | None:
    """Run a route on made-up tables, and return how many answers it has right.

    Parameters
    ----------
    route : Route
        What runs.
    situation : Situation
        The public facts.
    sample : Sample
        The public rows, and rules.

    Returns
    -------
    Simulated or None
        None if the route refused such a table after all.
    """
    n_rows = min(situation.n_labelled, MOST_ROWS)
    epsilon = min(situation.epsilon * situation.n_labelled / n_rows, MOST_EPSILON)
    scaled = replace(situation, n_labelled=n_rows, epsilon=epsilon)
    source = SeededSource(1)
    try:
        shares = [_one_run(route, scaled, sample, rule, source) for rule in sample.rules]
    except CumaeError:
        return None
    accuracy = float(np.mean(shares))
    # Rules differ, and the rows of the sample are few: both make the forecast uncertain.
    spread = math.sqrt(float(np.var(shares, ddof=1)) + accuracy * (1 - accuracy) / len(sample) / 2)
    text = f"{len(sample.rules)} rules that {len(sample)} public rows leave open"
    if n_rows > len(sample):
        text += f", with rows crossed from these until there were {n_rows:,}"
    if n_rows < situation.n_labelled:
        text += f" and an epsilon of {epsilon:.3g} in the place of more rows"
    return Simulated(
        accuracy, max(0.0, accuracy - WIDE * spread), min(1.0, accuracy + WIDE * spread), text
    )


def _one_run(
    route: Route, situation: Situation, sample: Sample, rule: Rule, source: SeededSource
) -> float:
    """Return the share of right answers to some made-up rows, for a model of others."""
    learnt = sample.made_up(situation.n_labelled, source)
    asked = sample.made_up(_asked(route, situation), source)
    coins = integers(2**53, situation.n_labelled, source) / 2.0**53
    shares = rule(sample.columns.encode(learnt)).cumsum(axis=1)[:, :-1]
    names = class_names(situation.classes)
    labels = names[(coins[:, None] > shares).sum(axis=1)]
    model = route.build(situation).set_params(random_state=source.child())
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")
        if route.publishes:
            model.fit(learnt, labels, sample.rows if situation.n_public else None)
        else:
            model.fit(learnt, labels)
        found = model.predict(asked)
    # A query without an answer matches no class, and counts as wrong.
    right = rule(sample.columns.encode(asked)) * (np.asarray(found)[:, None] == names)
    return float(right.sum(axis=1).mean())


def _asked(route: Route, situation: Situation) -> int:
    """Return how many questions a simulation asks."""
    if route.way != "release" or situation.n_queries is None:
        return ASKED
    return min(ASKED, situation.n_queries)
