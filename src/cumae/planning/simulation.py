"""Routes on made-up tables that could have come from where a public sample came from.

A public sample of a few hundred labelled rows does not tell how well many rows can be learnt from.
So a Bayesian model is fitted to it, and rules are drawn from its posterior: rules that the sample
does not rule out, some of them with more structure than it shows. Rows are drawn from the sample,
labels from such a rule, and the route runs on them with its privacy. As the rule is known, the
share of right answers is computed, not counted.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cumae.arrays import Floats, Integers
from cumae.concepts import ConceptClass
from cumae.data import Columns, class_names, class_places, length_of, table_of
from cumae.errors import CumaeError, InvalidData
from cumae.learners import PrivateKernelClassifier
from cumae.learners.scored import chances
from cumae.planning.routes import Route, Situation
from cumae.planning.rules import draw_around, draw_rules
from cumae.randomness import SeededSource, integers, permutation
from cumae.threads import one_thread

MOST_ROWS = 10_000  # beyond, a larger epsilon stands for more rows
# Rules that are drawn, and the fewest that a route runs on; even numbers. With few rows a run is
# quick, but noise moves it by two or three points, and the best of several routes would be the
# luckiest one. So more rules are run: as many as take the time of the fewest with MOST_ROWS.
RULES, FEWEST = 12, 4
MOST_EPSILON = 50.0
LEAST = 50  # labelled public rows, so that a posterior means something
DELTA = 1e-6
MOST_SAMPLE = 1_000  # public rows that rules are drawn for; more take minutes
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


@dataclass(frozen=True)
class Sample:
    """A public sample, and some rules that it does not rule out.

    Parameters
    ----------
    rows : table
        Public rows.
    chances : array of float
        By each rule, for each row, the chance of each class.
    """

    rows: Any
    chances: Floats

    @classmethod
    def of(cls, situation: Situation, X: Any, y: Any) -> Sample:
        """Draw rules from what the public labels leave open.

        Parameters
        ----------
        situation : Situation
            The public facts; a concept class among them is where rules are drawn from.
        X : table
            Public rows.
        y : array-like
            Their labels.

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
        X, labels = _at(X, np.arange(min(len(labels), MOST_SAMPLE))), labels[:MOST_SAMPLE]
        concept = situation.concept_class
        source = SeededSource(0)  # public rows need no protection, and plans should repeat
        if len(situation.classes) > 2:
            return cls(X, _functions(situation, X, labels, source))
        if concept is not None:
            return cls(X, _concepts(concept, situation, X, labels, source))
        columns = Columns.of(X, situation.columns)
        with one_thread():
            drawn = draw_rules(columns, columns.encode(X), labels, RULES, source)
        return cls(X, np.stack([1 - drawn, drawn], axis=2))

    def __len__(self) -> int:
        """Return the number of public rows."""
        return int(self.chances.shape[1])


def _functions(situation: Situation, X: Any, labels: Integers, source: SeededSource) -> Floats:
    """Draw scores of the public rows from the posterior of a kernel classifier without noise.

    Rules come in pairs, as far above the mean as below it, so that few of them stand for all.
    """
    classes = list(range(len(situation.classes)))
    model = PrivateKernelClassifier(
        math.inf, DELTA, columns=situation.columns, classes=classes, random_state=source
    ).fit(X, labels, X)
    found = model.published()
    rows = found.features.rows(found.features.codes(model.columns_.encode(X))).astype(np.float64)
    drawn = []
    for score in range(found.weights.shape[1]):
        learnt = rows @ found.learnt[score]
        covariance = (rows * found.prior) @ rows.T - (learnt * found.signs[score]) @ learnt.T
        drawn.append(draw_around(rows @ found.weights[:, score], covariance, RULES, source))
    scores = np.stack(drawn, axis=2)
    flat = scores.reshape(-1, scores.shape[2])
    found_chances = chances(flat[:, 0] if flat.shape[1] == 1 else flat)
    return found_chances.reshape(RULES, len(rows), -1)


def _concepts(
    concept: ConceptClass, situation: Situation, X: Any, labels: Integers, source: SeededSource
) -> Floats:
    """Draw concepts by how well they label the public rows; some labels are wrong by chance."""
    table = Columns.of(X, situation.columns).encode(X)
    best = np.mean(concept.erm(table, labels).predict(table) != labels)
    wrong = float((best * len(labels) + 0.5) / (len(labels) + 1))
    # The likelihood of a concept is exp(rate * right), and choose draws by half of its epsilon.
    rate = 2 * math.log((1 - wrong) / wrong) if wrong < 0.5 else 0.0
    drawn = []
    for _ in range(RULES):
        rule = concept.choose(table, table, labels, rate, random_state=source.child())
        one = np.where(np.asarray(rule.predict(table)) == 1, 1 - wrong, wrong)
        drawn.append(np.column_stack([1 - one, one]))
    return np.stack(drawn)


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
    n_pairs = FEWEST * MOST_ROWS // (2 * n_rows)
    rules = sample.chances[: min(RULES, 2 * n_pairs)]
    source = SeededSource(1)
    try:
        shares = [_one_run(route, scaled, sample, rule, source) for rule in rules]
    except CumaeError:
        return None
    accuracy = float(np.mean(shares))
    # Rules differ, and the rows of the sample are few: both make the forecast uncertain.
    spread = math.sqrt(float(np.var(shares, ddof=1)) + accuracy * (1 - accuracy) / len(sample) / 2)
    text = f"{len(rules)} rules that {len(sample)} public rows leave open"
    if n_rows > len(sample):
        text += f", with rows drawn from these until there were {n_rows:,}"
    if n_rows < situation.n_labelled:
        text += f" and an epsilon of {epsilon:.3g} in the place of more rows"
    return Simulated(
        accuracy, max(0.0, accuracy - WIDE * spread), min(1.0, accuracy + WIDE * spread), text
    )


def _one_run(
    route: Route, situation: Situation, sample: Sample, rule: Floats, source: SeededSource
) -> float:
    """Return the share of right answers to the public rows, by the chances of one rule."""
    picked = integers(len(sample), situation.n_labelled, source)
    coins = integers(2**53, len(picked), source) / 2.0**53
    names = class_names(situation.classes)
    labels = names[(coins[:, None] > rule[picked].cumsum(axis=1)[:, :-1]).sum(axis=1)]
    asked = permutation(len(sample), source)
    if route.way == "release":
        asked = asked[: situation.n_queries]
    model = route.estimator(situation).set_params(random_state=source.child())
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")
        if route.publishes:
            model.fit(_at(sample.rows, picked), labels, sample.rows if situation.n_public else None)
        else:
            model.fit(_at(sample.rows, picked), labels)
        found = model.predict(_at(sample.rows, asked))
    # A query without an answer matches no class, and counts as wrong.
    right = rule[asked] * (np.asarray(found)[:, None] == names)
    return float(right.sum(axis=1).mean())


def _at(rows: Any, places: Integers) -> Any:
    return rows.iloc[places].reset_index(drop=True) if hasattr(rows, "iloc") else rows[places]
