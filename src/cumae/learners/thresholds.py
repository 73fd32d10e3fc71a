"""A threshold for a wanted sensitivity, from noisy counts of rows that the model has not seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.codec import register_kind
from cumae.counting.bins import ScoreBins, even_bins
from cumae.counting.intervals import Figure, normal_quantile, proportion
from cumae.counting.table import (
    Layout,
    NoiseLaw,
    Partition,
    cells_of,
    chosen_noise,
    counted,
    released_tables,
)
from cumae.errors import InvalidData, InvalidParameter
from cumae.learners.base import LearningPlan, Rows, Sizes
from cumae.privacy import parallel
from cumae.randomness import Source, permutation

HELD_OUT = 0.25  # share of the rows that the threshold is chosen with
FEWEST, MOST, STEP = 8, 64, 4.0  # bins; their number is the root of the rows, over STEP
STANDS_OUT = 4.0  # how often the noise all rows of a class must be, at the least
CONSTANT = (0.1, 2.0)  # sizes of the constant, if scores of 0 are balanced, and if they are not
BALANCED = 0.9  # how much the first is believed, before anything is counted
SLOPE = (1.0, 0.4)  # mean and spread of the slope
WIDTH = 0.1  # how far off an interval for a sensitivity may be to be called good


@dataclass(frozen=True)
class ScoreCounts:
    """Noisy counts of rows that the model has not seen, by class and bin of the second's chance.

    Parameters
    ----------
    edges : array of float
        The ends of bins: bin b holds chances above ``edges[b]`` and up to ``edges[b + 1]``; the
        first one also those of 0.
    counts : array of int, 2 x bins
        The counts with noise, of the first class and of the second.
    rows : int
        The number of rows that were counted, which is public.
    law : NoiseLaw
        The noise on each count.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.counting.table import NoiseLaw
    >>> from cumae.learners.thresholds import ScoreCounts
    >>> counts = np.array([[800, 90, 10], [5, 15, 80]])
    >>> found = ScoreCounts(np.array([0.0, 0.1, 0.5, 1.0]), counts, 1_000, NoiseLaw(8.0, 0.0))
    >>> 0.1 < found.threshold(0.9) < 0.1000001
    True
    >>> round(found.sensitivity(found.threshold(0.9)).value, 2)
    0.95
    """

    edges: Floats
    counts: Integers = field(repr=False)
    rows: int
    law: NoiseLaw = field(repr=False)

    def threshold(self, sensitivity: float, confidence: float | None = None) -> float:
        """Return the largest chance from which on so much of the second class is found.

        Parameters
        ----------
        sensitivity : float above 0 and up to 1
            The share of the second class that is to be found.
        confidence : float above 0.5 and below 1, or None
            Chance with which it is found at least; None for the best guess.
        """
        places = np.arange(len(self.edges) - 1)
        if confidence is None:
            known = _at_least_0(self.cleaned[1])
            missed = np.append(0.0, np.cumsum(known)[:-1])
            fine = missed <= (1 - sensitivity) * known.sum() + 1e-9
        else:
            # From below, up to the first one that is not sure: so no correction for many is needed.
            low = self._found(places, 2 * confidence - 1).low
            fine = np.append(True, low[1:] >= sensitivity)
        last = int(places[-1] if fine.all() else np.argmin(fine) - 1)
        return 0.0 if last == 0 else float(np.nextafter(self.edges[last], 1.0))

    def sensitivity(self, threshold: float, confidence: float = 0.95) -> Figure:
        """Return the share of the second class that a threshold finds, with its interval.

        It covers sampling and noise.

        Parameters
        ----------
        threshold : float
            What ``threshold`` returned.
        confidence : float above 0 and below 1
            Chance that the interval holds the true share.
        """
        return self._found(self._place(threshold), confidence).plain()

    def specificity(self, threshold: float, confidence: float = 0.95) -> Figure:
        """Return the share of the first class that a threshold leaves alone, with its interval.

        Parameters
        ----------
        threshold : float
            What ``threshold`` returned.
        confidence : float above 0 and below 1
            Chance that the interval holds the true share.
        """
        place = self._place(threshold)
        if place == 0:
            return Figure(0.0, 0.0, 0.0)
        part, first = self._part, self.counts[0]
        found = proportion(part, first[:place].sum(), first.sum(), place, len(first), confidence)
        return found.plain()

    @property
    def _part(self) -> Partition:
        return Partition(self.counts[None], self.rows, self.law)

    @property
    def cleaned(self) -> Floats:
        """The counts, moved so that they add up to the number of rows."""
        return np.asarray(self.counts - self._part.surplus)

    def _place(self, threshold: float) -> int:
        """Return the first bin that is found."""
        return int(np.searchsorted(self.edges[1:-1], threshold, side="left"))

    def _found(self, places: Any, confidence: float) -> Figure:
        """Return the share of the second class in these bins and above."""
        second = self.counts[1]
        above = np.cumsum(second[::-1])[::-1][places]
        cells = len(second) - places
        found = proportion(self._part, above, second.sum(), cells, len(second), confidence)
        sure = np.asarray(places) == 0  # everything
        value, low, high = (np.where(sure, 1.0, x) for x in (found.value, found.low, found.high))
        return Figure(value, low, high)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        law = [self.law.variance, self.law.fourth]
        counts, edges = self.counts.tolist(), self.edges.tolist()
        return {"edges": edges, "counts": counts, "rows": self.rows, "law": law}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> ScoreCounts:
        """Rebuild what ``to_dict`` returned.

        Parameters
        ----------
        plain : dict
            Plain values.
        """
        edges, counts = np.array(plain["edges"]), np.array(plain["counts"], dtype=np.int64)
        return cls(edges, counts, int(plain["rows"]), NoiseLaw(*plain["law"]))


def _at_least_0(counts: Floats) -> Floats:
    """Return the counts closest to these that are 0 or more and have the same sum."""
    total = max(float(counts.sum()), 0.0)
    down = np.sort(counts)[::-1]
    over = (np.cumsum(down) - total) / np.arange(1, len(down) + 1)
    last = np.flatnonzero(down >= over)[-1]
    return np.asarray(np.maximum(counts - over[last], 0.0))


@dataclass(frozen=True)
class ThresholdSteps:
    """The steps of a learner that chooses a threshold.

    Parameters
    ----------
    held : int
        Rows that are set aside.
    plan : LearningPlan
        What is done with the others.
    """

    held: int
    plan: LearningPlan[Any]


@claim("THRESHOLD")
def plan_with_threshold(
    learner: Any, sizes: Sizes, rows: Rows, plan: Callable[..., LearningPlan[Any]]
) -> LearningPlan[ThresholdSteps]:
    """Return a plan that sets rows aside; refuse if they could not stand out from the noise.

    Parameters
    ----------
    learner : ScoredLearner
        What is fitted.
    sizes, rows : Sizes and Rows
        As in ``Learner.decide``.
    plan : callable
        Returns the plan for the other rows, given the learner, their sizes and the rows.
    """
    held = int(sizes.labelled * learner.held_out)
    noise = chosen_noise(learner.epsilon, learner.delta, 1)
    law, bins = NoiseLaw.of(noise), bin_count(held)
    least = STANDS_OUT * math.sqrt(law.variance * bins)
    if held < max(least, 1):
        needed = math.ceil(least / learner.held_out)
        raise InvalidData(
            f"{sizes.labelled} rows are too few to choose a threshold for sensitivity="
            f"{learner.sensitivity!r} with epsilon={learner.epsilon!r}: {needed} rows would "
            "do, if all were of this class. Declare a threshold or costs, which cost no rows.",
            needed_rows=needed,
        )
    inner = plan(learner, replace(sizes, labelled=sizes.labelled - held), rows)
    return replace(
        inner,
        cost=parallel(inner.cost, noise.cost),
        claims=tuple(dict.fromkeys((*inner.claims, "THRESHOLD", "EVAL", "NOISE", "PAR"))),
        steps=ThresholdSteps(held, inner),
        facts={
            **inner.facts,
            "threshold_rows": held,
            "rows_needed_of_second_class": rows_needed(learner, sizes),
        },
    )


def rows_needed(learner: Any, sizes: Sizes) -> int:
    """Return how many rows of the second class tell the sensitivity to about a tenth.

    Parameters
    ----------
    learner : ScoredLearner
        What is fitted.
    sizes : Sizes
        Public numbers.
    """
    law = NoiseLaw.of(chosen_noise(learner.epsilon, learner.delta, 1))
    noise = law.variance * bin_count(int(sizes.labelled * learner.held_out))
    reach = float(normal_quantile(0.95)) / WIDTH
    # P with reach^2 (spread P + noise / 2) = P^2: half of the bins are on one side, or so.
    wanted, share = float(learner.sensitivity), float(learner.held_out)
    first = reach**2 * wanted * (1 - wanted)
    found = (first + math.sqrt(first**2 + 2 * reach**2 * noise)) / 2
    return math.ceil(found / share)


def bin_count(held: int) -> int:
    """Return how many bins so many rows are counted in.

    Each bin adds noise to the sums over bins, and hides the order of the rows in it.
    """
    return int(np.clip(math.sqrt(held) / STEP, FEWEST, MOST))


@claim("THRESHOLD")
def learn_with_threshold(
    learner: Any,
    rows: Rows,
    steps: ThresholdSteps,
    source: Source,
    learn: Callable[..., None],
) -> ScoreCounts:
    """Let the learner learn without the rows that are set aside, and count these.

    Parameters
    ----------
    learner : ScoredLearner
        What is fitted.
    rows : Rows
        Encoded rows.
    steps : ThresholdSteps
        What was planned.
    source : Source
        Where coins come from.
    learn : callable
        Lets the learner learn, given the learner, rows, its plan and the source.
    """
    # Who is set aside is drawn without a look at any row.
    order = permutation(len(rows.y), source)
    held, others = order[: steps.held], order[steps.held :]
    learn(learner, rows.take(others), steps.plan, source)
    table = rows.X[held].copy()
    learner.columns_.fill(table)  # as ranges may have been found since
    shown = rows.public if rows.public is not None else learner.made_up_rows(source)
    bins = even_bins(bin_count(steps.held), 0.5, learner.second_chances(shown))
    noise = chosen_noise(learner.epsilon, learner.delta, 1, source)
    return release_counts(bins, rows.y[held], learner.second_chances(table), noise)


@claim("THRESHOLD")
def release_counts(bins: ScoreBins, label: Integers, chance: Floats, noise: Any) -> ScoreCounts:
    """Release the counts of rows by class and bin.

    Parameters
    ----------
    bins : ScoreBins
        Public bins of the chance of the second class.
    label : array of int
        0 and 1 for each row.
    chance : array of float
        The model's chance of the second class for each row.
    noise : LaplaceNoise or GaussianNoise
        What ``chosen_noise`` returned for one table.
    """
    if len(bins) == 1:  # the count of one class tells that of the other
        second = noise.release([int(label.sum())])
        counts = np.array([len(label) - second, second])
        return ScoreCounts(np.array([0.0, 1.0]), counts, len(label), NoiseLaw.of(noise))
    layout = Layout(1, 2, 2, (bins,), 0.5)
    output: NDArray[Any] = np.column_stack([1 - chance, chance])
    exact = counted(layout, cells_of(layout, np.zeros_like(label), label, output))
    tables = released_tables(layout, exact, len(label), noise)
    edges = np.append(bins.low, 1.0)
    return ScoreCounts(edges, tables.counts["score 0"][0], len(label), tables.law)


def likely_odds(
    scores: Floats, weights: Floats, group: Integers, found: ScoreCounts | None
) -> Floats:
    """Return the log odds that scores stand for, as far as noisy counts tell.

    The log odds are a line of the score, whose constant and slope have a prior. The chance of a
    score is its mean over all lines, by how well they foretell the counts: the less is known, the
    closer it is to one half. As long as scores tell rows apart, it is likely that a score of 0
    stands for even odds.

    Parameters
    ----------
    scores : array of float
        All scores that there are, in rising order.
    weights : array of float
        Shares of rows that have them, within each group, by public or made-up rows.
    group : array of int
        The bin of each score.
    found : ScoreCounts, or None
        The noisy counts of bins; None if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.learners.thresholds import likely_odds
    >>> odds = likely_odds(np.array([-2.0, 2.0]), np.ones(2), np.array([0, 1]), None)
    >>> bool(-2.0 < odds[0] < 0.0 < odds[1] < 2.0)
    True
    """
    constant = np.linspace(-9.0, 9.0, 145)[:, None]
    slope = np.linspace(0.02, 2.5, 63)
    chance = expit(constant + slope * scores[:, None, None])
    # Where a score of 0 tells rows apart, a noisy count must not move it.
    balanced = BALANCED * min(1.0, 2 * (1 - float(weights.max() / weights.sum())))
    near, far = (np.exp(-((constant / size) ** 2) / 2) / size for size in CONSTANT)
    fit = np.log(balanced * near + (1 - balanced) * far) - ((slope - SLOPE[0]) / SLOPE[1]) ** 2 / 2
    if found is not None:
        cleaned, variance = found.cleaned, found.law.variance
        for place in range(cleaned.shape[1]):
            own = group == place
            p = np.average(chance[own], axis=0, weights=weights[own] + 1e-9)
            off = (1 - p) * cleaned[1, place] - p * cleaned[0, place]
            rows = max(float(cleaned[:, place].sum()), 0.0)
            noise = 1.0 if cleaned.shape[1] == 1 else (1 - p) ** 2 + p**2  # one bin: one count
            spread = rows * p * (1 - p) + variance * noise + 1e-6
            fit = fit - off**2 / (2 * spread) - np.log(spread) / 2
    belief = np.exp(fit - fit.max())
    mean = (chance * belief).sum(axis=(1, 2)) / belief.sum()
    return np.asarray(np.log(mean) - np.log1p(-mean))


def check_two_classes(classes: Any, sensitivity: float) -> None:
    """Refuse a sensitivity where it is not clear of which class it is."""
    if len(classes) != 2:
        raise InvalidParameter(
            f"sensitivity={sensitivity!r} with {len(classes)} classes: it is the share of the "
            "second of two classes that is found; give costs."
        )


register_kind("score counts", ScoreCounts)
