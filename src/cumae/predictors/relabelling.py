"""Relabelling by a private hypothesis: what happens to the rows, its cost, and its plan."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.concepts.base import LARGEST_ERROR
from cumae.concepts.candidates.grid import GridRules
from cumae.concepts.candidates.relabelling import largest_rate, relabelled, resampled, sampled
from cumae.data import ArrayRows
from cumae.errors import InvalidData, InvalidParameter, shown
from cumae.predictors.base import Training
from cumae.privacy import Approximate
from cumae.privacy.formulas import SLACK
from cumae.randomness import Source, integers, sample
from cumae.sanitizers.grids import GridPlan, grid_plan, paying

MOST_DELTA = 0.1  # that the answers get before sampling shrinks it
MOST_RESAMPLED = 2.0  # epsilon of answers beyond which resampling is not costed
ASSUMED_ERROR = 1e-9  # a small delta, to see by what resampling multiplies it


@dataclass(frozen=True)
class Relabelling:
    """The change of the rows before they are split into shards: public numbers.

    Parameters
    ----------
    n_rows, n_sampled : int
        All rows, and how many of them are drawn.
    epsilon : float
        Parameter of the draw of the hypothesis that labels them.
    resample : bool
        Whether as many rows are then drawn with replacement.
    grid : GridPlan, or None
        Where public candidates come from; its own rows do not count among ``n_rows``.
    """

    n_rows: int
    n_sampled: int
    epsilon: float
    resample: bool
    grid: GridPlan | None = None


@claim("AGPRIV")
def agnostic_costs(
    answers: Approximate, steps: Relabelling, concept: ConceptClass | None
) -> list[tuple[str, Approximate]]:
    """Return what a row pays after each step, from the inside out; the last one is the whole cost.

    Parameters
    ----------
    answers : Approximate
        What the answers cost a row of the shards.
    steps : Relabelling
        What happens to the rows before.
    concept : ConceptClass, or None
        Labels them; None stands for public candidates (GRID).

    Examples
    --------
    >>> from cumae.concepts import Thresholds
    >>> from cumae.predictors.relabelling import Relabelling, agnostic_costs
    >>> from cumae.privacy import Approximate
    >>> steps = Relabelling(10_000, 1_000, epsilon=1.0, resample=False)
    >>> costs = agnostic_costs(Approximate(1.0, 1e-5), steps, Thresholds())
    >>> [(name, round(pair.eps, 3)) for name, pair in costs]
    [('answers', 1.0), ('relabelled', 2.948), ('sampled', 1.032)]
    """
    costs = [("answers", answers)]
    if math.inf in (answers.eps, steps.epsilon):
        return [*costs, ("sampled", Approximate(math.inf, 0.0))]
    if steps.resample:
        costs.append(("resampled", resampled(answers, steps.n_sampled)))
    scored = relabelled(costs[-1][1], steps.epsilon, "S", concept, steps.n_sampled)
    costs.append(("relabelled", scored))
    costs.append(("sampled", sampled(scored, steps.n_sampled, steps.n_rows)))
    return costs


@claim("AGPRIV", "BBL", "GRID")
def draw_rows(
    training: Training, grid: GridPlan | None, count: int, source: Source
) -> tuple[Floats, Integers, GridRules | None]:
    """Draw rows in random order, and others that serve the cuts of a grid alone.

    Parameters
    ----------
    training : Training
        Private rows and labels.
    grid : GridPlan, or None
        Where public candidates come from; None if points define the candidates.
    count : int
        How many rows are drawn beside those that the grid needs.
    source : Source
        Where random bits come from.

    Returns
    -------
    tuple of two arrays and GridRules or None
        Rows, their labels, and the candidates, if they are public.
    """
    table, labels = training.cleaned()
    if grid is None:
        drawn = sample(len(table), count, source)
        return table[drawn], labels[drawn], None
    order = sample(len(table), grid.n_rows + count, source)
    pay, drawn = order[: grid.n_rows], order[grid.n_rows :]
    return table[drawn], labels[drawn], grid.rules(table[pay], source)


@claim("AGPRIV", "BBL")
def relabelled_by(
    drawn_from: ConceptClass | GridRules,
    points: Floats,
    labels: Integers,
    epsilon: float,
    source: Source,
) -> Integers:
    """Return the labels that a private hypothesis gives to rows, drawn by the labels they have.

    Parameters
    ----------
    drawn_from : ConceptClass or GridRules
        What is drawn from: the ways in which a class can label the points, or public candidates.
    points : array of float
        The rows.
    labels : array of int
        Their own labels.
    epsilon : float
        Parameter of the draw.
    source : Source
        Where random bits come from.
    """
    drawn = drawn_from.choose(points, points, labels, epsilon, random_state=source)
    return np.asarray(drawn.predict(points), dtype=np.int64)


@claim("AGPRIV")
def relabel(training: Training, steps: Relabelling, source: Source) -> Training:
    """Draw rows in random order, and label them by a hypothesis that is drawn for their points.

    The result stays private: only shards may be trained on it.

    Parameters
    ----------
    training : Training
        Private rows and labels; its model is a concept class.
    steps : Relabelling
        How many rows are drawn, and with which epsilon they are labelled.
    source : Source
        Where random bits come from.
    """
    points, labels, rules = draw_rows(training, steps.grid, steps.n_sampled, source)
    drawn_from = rules or training.model
    found = relabelled_by(drawn_from, points, labels, steps.epsilon, source)
    if steps.resample:
        again = integers(steps.n_sampled, steps.n_sampled, source)
        points, found = points[again], found[again]
    return replace(training, rows=ArrayRows(points), labels=found, columns=None)


@dataclass(frozen=True)
class SampleGoal:
    """The privacy and the quality that a relabelled sample needs, in public numbers."""

    n_rows: int
    most: int  # rows that a draw can take in reasonable time
    epsilon: float
    delta: float
    alpha: float
    beta: float
    vc: int
    resample: bool
    n_rules: int | None = None  # public candidates; None if points define them


def plan_relabelling(
    goal: SampleGoal, concept: ConceptClass | None, boosts: list[float], answers: list[float]
) -> tuple[Relabelling, Approximate]:
    """Return the steps, and what the answers may cost.

    More epsilon for the answers, or for the draw, means fewer rows. Of all pairs it takes the one
    with the largest product of rows, the answers' epsilon and the draw's quality: 1 if the
    drawn hypothesis misses the best one by alpha/4 at most (with chance 1 - beta), less in
    proportion if it may miss it by more. Without a concept class, candidates are public.
    """
    best, chosen = -1.0, (0, 0.0, 0.0)
    for answer in answers:
        inner = Approximate(answer, 0.0)
        if goal.resample and MOST_RESAMPLED < answer < math.inf:
            continue  # some row comes up so often that little is left to promise
        if goal.resample and answer < math.inf:
            inner = resampled(inner, goal.n_rows)  # with fewer rows it costs a little less
        for boost in boosts:
            kept = _rows_kept(goal, inner, boost, concept)
            value = kept * min(answer, 1e9) * _quality(goal, boost, kept)
            if value > best:
                best, chosen = value, (kept, boost, answer)
    kept, boost, answer = chosen
    if kept < 1:
        raise InvalidData(
            f"{goal.n_rows:,} rows leave none to be sampled at epsilon={goal.epsilon!r}; give more "
            "rows, a larger epsilon, or smaller epsilon_boost and epsilon_answers."
        )
    steps = Relabelling(goal.n_rows, kept, boost, goal.resample)
    return steps, Approximate(answer, _inner_delta(goal, steps, answer))


def _rows_kept(
    goal: SampleGoal, inner: Approximate, boost: float, concept: ConceptClass | None
) -> int:
    if goal.epsilon == math.inf:
        return min(goal.n_rows, goal.most)
    if math.inf in (inner.eps, boost):
        return 0
    size = min(goal.n_rows, goal.most)
    if concept is not None and concept.weight_error(size, boost / 2) > LARGEST_ERROR:
        return 0  # floats cannot draw with it
    scored = relabelled(inner, boost, "S", concept, size)
    rate = largest_rate(scored, goal.epsilon * SLACK, goal.delta)
    return min(math.floor(rate * goal.n_rows), goal.most)


def _quality(goal: SampleGoal, boost: float, kept: int) -> float:
    """Return 1 if the drawn hypothesis is good enough (by the proof of Lemma 6), else less."""
    candidates = goal.vc * math.log(math.e * max(kept, goal.vc) / goal.vc)
    if goal.n_rules is not None:
        candidates = math.log(goal.n_rules)
    error = 2 / boost * (candidates + math.log(3 / goal.beta))  # times the rows
    return min(1.0, goal.alpha / 4 * kept / error) if error > 0 else 1.0


def _inner_delta(goal: SampleGoal, steps: Relabelling, answer: float) -> float:
    """Return the delta of the answers that becomes the one asked for."""
    factor = 1.0
    if steps.resample and answer < math.inf:
        small = Approximate(answer, ASSUMED_ERROR)
        factor = max(1.0, resampled(small, steps.n_sampled).failure / ASSUMED_ERROR)
    share = steps.n_sampled / steps.n_rows * factor
    return min(MOST_DELTA, goal.delta if share == 1 else goal.delta / share * SLACK)


def planned_grid(
    candidates: str, n_cuts: int | str, training: Training, epsilon: float
) -> GridPlan | None:
    """Return where public candidates come from; None if points define the candidates.

    Parameters
    ----------
    candidates : {"auto", "grid", "points"}
        The parameter of a predictor.
    n_cuts : int of 1 or more, or "auto"
        The same.
    training : Training
        The declared facts; of the rows their number is used.
    epsilon : float
        What rows may pay that serve nothing but the cuts.
    """
    bounds = [None] * training.width if training.columns is None else training.columns.bounds
    plan = grid_plan(candidates, n_cuts, training.model, bounds, epsilon)
    return None if plan is None else paying(plan, training.rows.n_rows)


def need_boostable(concept: object, instead: str) -> ConceptClass:
    """Return a concept class whose drawn hypotheses may label rows; refuse everything else.

    Parameters
    ----------
    concept : object
        What was given as ``concept_class``.
    instead : str
        The predictor that takes any estimator, for the message.

    Raises
    ------
    InvalidParameter
        If it is no concept class, or one without a proven ``label_boost_k``.
    """
    if not isinstance(concept, ConceptClass):
        kind = concept.__name__ if isinstance(concept, type) else shown(concept)
        raise InvalidParameter(
            f"concept_class={kind} is no concept class; give one of cumae.concepts, such as "
            f"Thresholds(). For any estimator there is {instead}."
        )
    relabelled(Approximate(0.0, 0.0), 1.0, "S", concept, 1)  # refuses one without a proven k
    return concept
