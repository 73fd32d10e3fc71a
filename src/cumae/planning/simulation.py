"""Routes on made-up tables that could have come from where a public sample came from.

A public sample of a few hundred labelled rows does not tell how well many rows can be learnt from.
So a Bayesian model is fitted to it, and rules are drawn from its posterior: rules that the sample
does not rule out, some of them with more structure than it shows. Rows are drawn from the sample,
labels from such a rule, and the route runs on them with its privacy. As the rule is known, the
share of right answers, the cost or the area under the ROC curve is computed, not counted.
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
from cumae.learners.scored import AnswerRule, chances
from cumae.planning.goals import Reached, best_guess, figure
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
LEAST_PUBLIC_ROWS = 50  # labelled public rows, so that a posterior means something
DELTA = 1e-6
MOST_SAMPLE = 1_000  # public rows that rules are drawn for; more take minutes
SHIFTS = 30  # steps until rules have the declared shares
WIDE = 1.3  # standard deviations on both sides of which eight of ten cases lie


@dataclass(frozen=True)
class Sample:
    """A public sample, and some rules that it does not rule out.

    Parameters
    ----------
    rows : table
        Public rows.
    chances : array of float
        By each rule, for each row, the chance of each class.

    Notes
    -----
    If the shares of classes are declared, chances are shifted until they have these shares: a
    public sample may have been collected with other ones.
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
        if len(labels) < LEAST_PUBLIC_ROWS:
            raise InvalidData(
                f"public has {len(labels)} labelled rows, and a simulation needs "
                f"{LEAST_PUBLIC_ROWS} or more.",
                needed_rows=LEAST_PUBLIC_ROWS,
            )
        X, labels = _at(X, np.arange(min(len(labels), MOST_SAMPLE))), labels[:MOST_SAMPLE]
        found = _drawn(situation, X, labels, SeededSource(0))  # public: plans should repeat
        if situation.class_shares is not None:
            found = _shifted(found, np.array(situation.shares))
        return cls(X, found)

    def __len__(self) -> int:
        """Return the number of public rows."""
        return int(self.chances.shape[1])


def _drawn(situation: Situation, X: Any, labels: Integers, source: SeededSource) -> Floats:
    """Draw rules, and return the chance of each class by each rule for each row."""
    if len(situation.classes) > 2:
        return _functions(situation, X, labels, source)
    if situation.concept_class is not None:
        return _concepts(situation.concept_class, situation, X, labels, source)
    columns = Columns.of(X, situation.columns)
    with one_thread():
        drawn = draw_rules(columns, columns.encode(X), labels, RULES, source)
    return np.stack([1 - drawn, drawn], axis=2)


def _shifted(found: Floats, shares: Floats) -> Floats:
    """Multiply the odds of classes by one number each, so that all rules have these shares."""
    for _ in range(SHIFTS):
        found = found * (shares / found.mean(axis=1, keepdims=True))
        found = found / found.sum(axis=2, keepdims=True)
    return found


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


def simulate(
    route: Route, situation: Situation, sample: Sample, usual: Tried | None = None
) -> Reached | None:
    """Run a route on made-up tables, and return how good it is by the goal.

    Parameters
    ----------
    route : Route
        What runs.
    situation : Situation
        The public facts.
    sample : Sample
        The public rows, and rules.
    usual : Tried, or None
        How good a model without privacy is on such tables, if that is known.

    Returns
    -------
    Reached or None
        None if the route refused such a table after all.
    """
    scaled, rules = _scaled(situation, sample)
    source = SeededSource(1)
    try:
        runs = [_one_run(route, scaled, sample, rule, source) for rule in rules]
    except CumaeError:
        return None
    goal, shares = situation.compared, rules.mean(axis=(0, 1))
    place, _ = best_guess("cost", shares, situation.misses)  # answers follow costs
    guess = best_guess(goal, shares, situation.misses)[1]
    found = [one.figure for one in runs]
    value = float(np.mean(found))
    # Rules differ, and the rows of the sample are few: both make the forecast uncertain.
    part = value / max(situation.misses) if goal == "cost" else value
    few = max(situation.misses) ** 2 * part * (1 - part) / len(sample) / 2
    spread = WIDE * math.sqrt(float(np.var(found, ddof=1)) + few)
    areas = [one.auc for one in runs if one.auc is not None]
    return Reached(
        goal,
        value,
        max(0.0, value - spread),
        value + spread if goal == "cost" else min(1.0, value + spread),
        guess,
        situation.classes[place],
        float(np.mean(areas)) if areas else None,
        bool(np.mean([one.constant for one in runs]) >= 0.5),
        None if usual is None else usual.figure,
        None if usual is None else usual.auc,
        _rests_on(situation, scaled, sample, len(rules)),
    )


def _scaled(situation: Situation, sample: Sample) -> tuple[Situation, Floats]:
    """Return the situation with as many rows as are made up, and the rules that are run."""
    n_rows = min(situation.n_labelled, MOST_ROWS)
    epsilon = min(situation.epsilon * situation.n_labelled / n_rows, MOST_EPSILON)
    n_pairs = FEWEST * MOST_ROWS // (2 * n_rows)
    rules = sample.chances[: min(RULES, 2 * n_pairs)]
    return replace(situation, n_labelled=n_rows, epsilon=epsilon), rules


def _rests_on(situation: Situation, scaled: Situation, sample: Sample, count: int) -> str:
    text = f"{count} rules that {len(sample)} public rows leave open"
    if scaled.n_labelled > len(sample):
        text += f", with rows drawn from these until there were {scaled.n_labelled:,}"
    if scaled.n_labelled < situation.n_labelled:
        text += f" and an epsilon of {scaled.epsilon:.3g} instead of more rows"
    return text


@dataclass(frozen=True)
class Tried:
    """The quality of a model on made-up tables.

    Parameters
    ----------
    figure : float
        The figure of the goal.
    auc : float, or None
        The area under the ROC curve; None without chances.
    constant : bool
        Whether all answers were the same.
    """

    figure: float
    auc: float | None = None
    constant: bool = False


def usual_model(situation: Situation, sample: Sample) -> Tried:
    """Return how good the better of two models without privacy is on the same made-up tables.

    Parameters
    ----------
    situation : Situation
        The public facts.
    sample : Sample
        The public rows, and rules.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415 - takes long
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

    scaled, rules = _scaled(situation, sample)
    table = np.nan_to_num(Columns.of(sample.rows, situation.columns).encode(sample.rows))
    source, found = SeededSource(1), []
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")
        for rule in rules[:FEWEST]:
            picked, labels = _made_up(scaled, rule, source)
            if len(np.unique(labels)) < len(situation.classes):
                continue
            tried = [
                model.fit(table[picked], labels)
                for model in (LogisticRegression(), HistGradientBoostingClassifier(random_state=0))
            ]
            scores = [np.asarray(model.decision_function(table)) for model in tried]
            runs = [_judged(scaled, rule, one) for one in scores]
            better = min if situation.compared == "cost" else max
            found.append(better(runs, key=lambda one: one.figure))
    if not found:
        return Tried(best_guess(situation.compared, rules.mean(axis=(0, 1)), situation.misses)[1])
    areas = [one.auc for one in found if one.auc is not None]
    return Tried(float(np.mean([one.figure for one in found])), float(np.mean(areas)))


def _judged(situation: Situation, rule: Floats, scores: Floats) -> Tried:
    """Return how good scores of all public rows are, if answers follow the declared costs."""
    answers = AnswerRule(weights=situation.misses).places(scores)
    goal, misses = situation.compared, situation.misses
    area = figure("ranking", answers, scores, rule, misses)
    return Tried(figure(goal, answers, scores, rule, misses), area)


def _made_up(situation: Situation, rule: Floats, source: SeededSource) -> tuple[Integers, Integers]:
    """Return which public rows are drawn for a table, and places of labels, by one rule."""
    picked = integers(len(rule), situation.n_labelled, source)
    coins = integers(2**53, len(picked), source) / 2.0**53
    return picked, (coins[:, None] > rule[picked].cumsum(axis=1)[:, :-1]).sum(axis=1)


def _one_run(
    route: Route, situation: Situation, sample: Sample, rule: Floats, source: SeededSource
) -> Tried:
    """Return how good answers to the public rows are, by the chances of one rule."""
    picked, places = _made_up(situation, rule, source)
    names = class_names(situation.classes)
    labels = names[places]
    asked = permutation(len(sample), source)
    if route.way == "release":
        asked = asked[: situation.n_queries]
    model = route.estimator(situation).set_params(random_state=source.child())
    rows = _at(sample.rows, asked)
    with warnings.catch_warnings(), one_thread():
        warnings.simplefilter("ignore")
        if route.publishes:
            model.fit(_at(sample.rows, picked), labels, sample.rows if situation.n_public else None)
        else:
            model.fit(_at(sample.rows, picked), labels)
        found = np.asarray(model.predict(rows))
        scores = None
        if hasattr(type(model), "decision_function"):
            scores = np.asarray(model.decision_function(rows))
    # A query without an answer matches no class, and counts as wrong.
    equal = found[:, None] == names
    answers = np.where(equal.any(axis=1), equal.argmax(axis=1), -1)
    goal, misses = situation.compared, situation.misses
    area = None if scores is None else figure("ranking", answers, scores, rule[asked], misses)
    same = bool(len(np.unique(answers)) == 1)
    return Tried(figure(goal, answers, scores, rule[asked], misses), area, same)


def _at(rows: Any, places: Integers) -> Any:
    return rows.iloc[places].reset_index(drop=True) if hasattr(rows, "iloc") else rows[places]
