"""The shared part of all classifiers by noisy sums: the budget, and how steps follow."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import Columns
from cumae.effort import Effort
from cumae.engines import Pieces
from cumae.errors import InvalidParameter, listed
from cumae.learners.base import PUBLIC_ROWS, LearningPlan, Rows, Sizes
from cumae.learners.kernel.features import KernelFeatures, additive_features
from cumae.learners.kernel.fractions import PUBLIC_TYPES, Fractions
from cumae.learners.kernel.levels import Bytes, detail_of
from cumae.learners.kernel.model import KernelModel
from cumae.learners.kernel.posterior import (
    STEEPER,
    TELLS_LITTLE,
    NoisySum,
    Posterior,
    constants_of,
    most_directions,
    waves_matter,
)
from cumae.learners.kernel.prices import (
    Measurements,
    class_counts,
    classes_move,
    gaussian_mu,
    vectors_cost,
)
from cumae.learners.kernel.reference import (
    MOST_BINS,
    MadeUp,
    evenly,
    most_values,
)
from cumae.learners.kernel.shown.readable import Readable
from cumae.learners.kernel.sums import (
    CHUNK,
    COUNTED,
    LENGTH,
    MOVES,
    STEEP,
    Question,
    chances,
    noisy_sum,
    room,
)
from cumae.learners.scored import ScoredLearner
from cumae.parameters import Choice
from cumae.progress import Progress
from cumae.quiet import is_quiet
from cumae.randomness import LARGEST_SCALE, Source
from cumae.threads import one_thread

GOAL = Choice(("accuracy", "ranking", "cost"))  # what a model is for
LEAST_PUBLIC = 50  # fewer public rows say less about scales than declarations do
MOST_PUBLIC = 2_000  # public rows that are used
MANY = 5_000  # rows times mu from which on more steps pay
START = (4.0, 0.5, 0.5)  # variances of the constant, of lines and of curves
MARKS = 0.01  # variance of marks of levels, which grows where they matter
WAVES_MATTER = 0.25  # variance of each group of waves, if waves matter
WAVES_DO_NOT = 0.01  # and if they do not
LEAST_NOISE = 1e-9  # so that matrices have an inverse where there is no noise
LARGEST_EPSILON = 500.0  # a larger one adds no accuracy, and leaves what floats can compute
MOST_COEFFICIENTS = 8_000  # of all scores: beyond, matrices take gigabytes and hours
SHARED_COEFFICIENTS = 2_500  # that several scores share, as far as waves can be left out
COUNTS, PRODUCTS = 0.1, 0.15  # shares of the budget for made-up rows
# And for other goals than accuracy: few rows of a rare class say little about it, all else is less.
COUNTS_OF_RARE, PRODUCTS_OF_RARE = 0.05, 0.05
THIN = 5.0  # strength for each column below which they are
WIDE, FIRST_OF_WIDE = 64, 0.5  # so many thin columns are sifted by a step with such a share
MOST_MARKS = 240  # of levels, of all scores together
FRACTIONS = 0.02  # for columns of whole numbers
CLASSES = 0.04  # and for the numbers of rows of the classes
KNOWN = 0.02  # variance of the constant once these are released
EVEN_WORTH, MADE_UP_WORTH = 20.0, 200.0  # how many public rows such reference rows are worth


@dataclass(frozen=True)
class Begun:
    """A fit before a sum of residuals.

    Parameters
    ----------
    features : KernelFeatures
        How codes become features.
    parts : Pieces
        The private rows: their codes and labels.
    shown : array of int
        Codes of the reference rows.
    posterior : Posterior
        What is known so far; it changes with each sum.
    """

    features: KernelFeatures
    parts: Pieces
    shown: Bytes
    posterior: Posterior

    @claim("KERNEL")
    def question(self, noise: float, together: int = 1) -> Question:
        """Return what the next sum asks of each row, along the directions least known so far.

        Parameters
        ----------
        noise : float
            Scale of the noise of the sum, in whole numbers.
        together : int
            How many sums, this one included, are taken to ask the same. Where one of them says
            little, directions for it alone would be few, by differences that are noise.
        """
        directions = self.posterior.design(max((noise / MOVES) ** 2 / together, LEAST_NOISE))
        return Question.of(self.features, self.posterior.mean, directions)


class KernelLearner(Readable, ScoredLearner):
    """A model of log odds by noisy sums of residuals along directions still unknown.

    A subclass says which features it has.
    """

    least_public = LEAST_PUBLIC
    reads_pieces = True
    goal: str = "accuracy"

    @property
    @abstractmethod
    def _shapes(self) -> tuple[int, int]:
        """Number of curves of a column of numbers, and of waves in each group."""

    @property
    @claim("PRIOR")
    def is_exact(self) -> bool:
        return True  # scores are whole numbers

    @property
    def _counts_classes(self) -> bool:
        """True if the numbers of rows of the classes are released first."""
        return self.goal != "accuracy"

    @property
    @claim("KERNEL")
    def _shares_of_made_up(self) -> tuple[float, float]:
        """Which shares of the budget counts and products get, if rows are made up."""
        if self._counts_classes:
            return COUNTS_OF_RARE, PRODUCTS_OF_RARE
        return COUNTS, PRODUCTS

    @property
    def _scores(self) -> int:
        """Number of scores of a row: one for two classes, else one for each class."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Any]:
        """Decide what to do, and what it costs.

        The noise needs a delta, and so do open ranges. A goal of least cost needs costs.
        """
        declared = (self.class_weight, self.costs, self.threshold, self.sensitivity)
        if self.goal == "cost" and all(one is None for one in declared):
            raise InvalidParameter(
                'goal="cost" without costs: declare what it costs to miss a class, such as '
                "costs={1: 20}, or a threshold or a sensitivity."
            )
        if not self.delta > 0:
            names = [column.name for column in sizes.columns.columns if column.is_open]
            ranges = f", and declare the range of each column ({listed(names)})" if names else ""
            raise InvalidParameter(
                f"delta={self.delta!r}: Gaussian noise needs a delta above 0, such as 1e-6; for "
                f"pure privacy use PrivateBooster{ranges}."
            )
        plan = super().decide(sizes, rows)
        typed = PUBLIC_TYPES if Fractions(sizes.columns).asked else ()
        return replace(plan, assumptions=(*plan.assumptions, *typed))

    def _decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Measurements]:
        self._need_room(sizes)
        plans = self._measurements(sizes)
        self._need_drawable(plans)
        return LearningPlan(
            vectors_cost(plans, sizes.columns, self._scores),
            ("KERNEL", "VECTOR"),
            assumptions=PUBLIC_ROWS if rows.public is not None else (),
            steps=plans,
            facts={
                "n_steps": plans.steps,
                "noise": plans.noise,
                "n_coefficients": self._scores * self._coefficients(plans, sizes),
                "reference": _reference_of(plans, sizes),
            },
            work=self._work(plans, sizes),
        )

    def _coefficients(self, plans: Measurements, sizes: Sizes) -> int:
        """Return how many coefficients each score has."""
        curves, _ = self._shapes
        return additive_features(sizes.columns, curves) + 4 * plans.waves

    def _work(self, plans: Measurements, sizes: Sizes) -> tuple[Effort, ...]:
        count = self._coefficients(plans, sizes)
        sums = plans.steps * sizes.labelled * count * self._scores
        posterior = plans.steps * self._scores * count**2
        # The posterior, its reference rows, and a few tables of some private rows.
        held = self._scores * count * (count + MOST_PUBLIC + 2 * min(sizes.labelled, 2 * CHUNK))
        return Effort("sums", sums, sizes.cells), Effort("posteriors", posterior, held)

    def _need_room(self, sizes: Sizes) -> None:
        """Refuse, before anything is paid, what would take hours and all memory."""
        curves, _ = self._shapes
        count = self._scores * (additive_features(sizes.columns, curves) + 4 * self._waves(sizes))
        if count > MOST_COEFFICIENTS:
            raise InvalidParameter(
                f"{len(sizes.columns)} encoded columns and {len(self.classes)} classes make "
                f"{count:,} coefficients, and {MOST_COEFFICIENTS:,} is the most; declare fewer "
                "categories, or leave columns out."
            )

    def _need_drawable(self, plans: Measurements) -> None:
        """Refuse, before anything is paid, noise beyond what can be drawn."""
        if max(plans.scales) > LARGEST_SCALE:
            raise InvalidParameter(
                f"epsilon={self.epsilon!r}, delta={self.delta!r} need noise beyond 2**50, in which "
                "nothing would be left of the rows; give more of either."
            )

    def _waves(self, sizes: Sizes) -> int:
        """Return how many waves each group has: fewer where many classes share the work."""
        curves, waves = self._shapes
        left = SHARED_COEFFICIENTS // self._scores - additive_features(sizes.columns, curves)
        return waves if self._scores == 1 else max(0, min(waves, left // 4))

    @claim("KERNEL")
    def _measurements(self, sizes: Sizes) -> Measurements:
        epsilon = self.epsilon if self.epsilon == math.inf else min(self.epsilon, LARGEST_EPSILON)
        made = MadeUp(sizes.columns)
        counted, multiplied = self._shares_of_made_up
        width = len(sizes.columns)
        most = max(self._steps(0.0), self._steps(math.inf))
        most *= most_directions(self._scores, width) * self._scores
        most += 2 * MOST_BINS * width + width * (width + 1) // 2
        # Scales of the noise times mu, if all were spent on one step.
        step, left = float(MOVES), 1.0
        classes = classes_move(self._scores) / math.sqrt(CLASSES)
        fractions = Fractions(sizes.columns)
        fraction = fractions.moves / math.sqrt(FRACTIONS)
        least = min(step, made.counts_move / math.sqrt(counted + multiplied), made.products_move)
        if fractions.asked and not sizes.public:
            most, least = most + len(fractions.asked), min(least, fraction)
        if self._counts_classes:
            most, least, left = most + self._scores, min(least, classes), left - CLASSES
        mu = gaussian_mu(epsilon, self.delta, most, least)
        strength = sizes.labelled * mu if sizes.labelled else 0.0  # no rows times infinity
        finds = not sizes.public and fractions.pays(strength * math.sqrt(FRACTIONS))
        if finds:
            left -= FRACTIONS
        thin = strength < THIN * len(sizes.columns.columns)
        wide = thin and len(sizes.columns.columns) >= WIDE
        pays = made.pays(strength * math.sqrt(counted))
        # Where products would be noise, counts are all that rows are made up from.
        rough = wide or not pays
        share = counted if wide or not rough else counted + multiplied
        looks = 1 if rough else 2
        made_up = not sizes.public and (pays or made.tells(strength * math.sqrt(share)))
        if made_up:
            left -= share if rough else counted + multiplied
        # A made-up reference is rougher: more steps correct what it gets wrong.
        few = sizes.public or rough or self._counts_classes
        steps = self._steps(strength if few else math.inf)
        first = later = step * math.sqrt(steps / left) / mu
        if wide:
            first = step / math.sqrt(left * FIRST_OF_WIDE) / mu
            later = step * math.sqrt((steps - 1) / (left * (1 - FIRST_OF_WIDE))) / mu
        products = None if rough else made.products_move / math.sqrt(multiplied) / mu
        return Measurements(
            strength,
            steps,
            first,
            later,
            made_up,
            made.counts_move * math.sqrt(looks / share) / mu,
            looks,
            products,
            classes / mu if self._counts_classes else None,
            fraction / mu if finds else None,
            most,
            self._waves(sizes),
        )

    @claim("KERNEL")
    def _steps(self, strength: float) -> int:
        """Return the number of steps: more if there is much to tell."""
        return 8 if strength > MANY else 4

    def _learn_within(self, rows: Rows, plan: LearningPlan[Measurements], source: Source) -> None:
        # Threads of a linear algebra library wait for each other when others use the machine.
        with one_thread():
            self.model_ = self._model(rows, plan.steps, source)

    @claim("KERNEL")
    def _model(self, rows: Rows, plans: Measurements, source: Source) -> KernelModel:
        begun = self.begin(rows, plans, source)
        with Progress("learning", plans.steps, shown=False if is_quiet() else None) as bar:
            for step in range(plans.steps):
                noise = plans.noise if step else plans.first_noise
                together = plans.steps - step if self._counts_classes else 1
                question = begun.question(noise, together)
                found = measure(question, begun.parts, begun.shown, noise, source)
                begun.posterior.learn(found)
                bar.advance()
        return KernelModel.of(begun.features, begun.posterior)

    @claim("KERNEL")
    def begin(self, rows: Rows, plans: Measurements, source: Source) -> Begun:
        """Return what the first sum of residuals is asked with.

        Parameters
        ----------
        rows : Rows
            Private and public rows, as ``read_rows`` reads them.
        plans : Measurements
            The plan of the fit.
        source : Source
            Where coins come from.
        """
        columns = self._known_columns(rows, plans, source)
        reference, worth = self._reference(rows, plans, columns, source)
        curves, _ = self._shapes
        # Without public rows, noisy counts must have told where values are.
        told = 1.0 if rows.public is not None else math.sqrt(self._shares_of_made_up[0])
        detail = detail_of(plans.strength * told)
        features = KernelFeatures.of(
            reference, columns, source, curves=curves, waves=plans.waves, detail=detail
        ).with_marks(MOST_MARKS // self._scores)
        parts = rows.both.then(features.code_rows).kept()
        shown = features.codes(reference)
        count = len(features.group_sizes) - 3
        views = (WAVES_DO_NOT, WAVES_MATTER)
        constant, variance = self._constant(rows.answers, plans, source)
        inner = [*START[1:], MARKS * detail]
        starts = np.array([[variance, *inner, *[waves] * count] for waves in views])
        matter = waves_matter(plans.strength, constant)
        posterior = Posterior(
            features.rows(shown),
            features.groups,
            starts,
            np.array([1 - matter, matter]),
            self._scores,
            len(rows.y),
            worth,
            plans.steps,
            constant,
            # With fewer rows, nothing tells columns that matter from others.
            owners_of(features, columns) if plans.strength >= TELLS_LITTLE else None,
            STEEPER if rows.public is None else (1.0,),
        )
        return Begun(features, parts, shown, posterior)

    @claim("KERNEL")
    def _constant(
        self, labels: Pieces, plans: Measurements, source: Source
    ) -> tuple[Floats | None, float]:
        """Return a first guess of the constants, from noisy numbers of rows, and its variance.

        It counts as known: the order of rows does not depend on it, and sums are better spent on
        what does.
        """
        if plans.classes_noise is None:
            return None, START[0]
        total = partial(class_counts, scores=self._scores)
        counts = noisy_sum(total, labels, plans.classes_noise, source) / COUNTED
        noise = (plans.classes_noise / COUNTED) ** 2
        return constants_of(counts, noise, len(labels), START[0]), KNOWN

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *self.rule_lines()])

    def made_up_rows(self, source: Source) -> Floats:
        return evenly(self.columns_, source)

    @claim("KERNEL")
    def _known_columns(self, rows: Rows, plans: Measurements, source: Source) -> Columns:
        """Return the columns, with a step where types or releases tell that numbers are whole."""
        whole = [column.whole for column in self.columns_.columns]
        if plans.fractions_noise is not None:
            seen, noise = Fractions(self.columns_), plans.fractions_noise
            whole = list(map(max, whole, seen.release(rows.tables, len(rows.y), noise, source)))
        most = most_values(len(rows.y), plans.counts_noise) if plans.made_up else MOST_BINS
        return self.columns_.in_whole_numbers(whole, most)

    @claim("KERNEL")
    def _reference(
        self, rows: Rows, plans: Measurements, columns: Columns, source: Source
    ) -> tuple[Floats, float]:
        """Return a table to make features from, and how many public rows it is worth."""
        if rows.public is not None:
            reference = rows.public[:MOST_PUBLIC]
            return reference, float(len(reference))
        if not plans.made_up:
            return evenly(columns, source), EVEN_WORTH
        made = MadeUp(columns)
        reference = made.release(
            rows.tables, len(rows.y), plans.counts_noise, plans.products_noise, source, plans.looks
        )
        return reference, MADE_UP_WORTH


def _reference_of(plans: Measurements, sizes: Sizes) -> str:
    """Tell where the rows come from that features are made from."""
    if sizes.public:
        return "public rows"
    return "rows made up from noisy counts" if plans.made_up else "declared ranges"


@claim("KERNEL")
def measure(
    question: Question,
    parts: Pieces,
    shown: Bytes,
    scale: float,
    source: Source,
) -> NoisySum:
    """Release the sum of the rows' residuals along some directions.

    Parameters
    ----------
    question : Question
        Model and directions.
    parts : Pieces
        Private rows: their codes and labels.
    shown : array of int
        Codes of the reference rows.
    scale : float
        Scale of the noise, in whole numbers.
    source : Source
        Where coins come from.
    """
    total = noisy_sum(question.total, parts, scale, source)
    odds, across = question.ask(shown)
    # One whole number in the sum stands for 1 / unit of a residual times a direction.
    unit = 2 * room(across.shape[1], LENGTH) * room(odds.shape[1], STEEP)
    noise = max((scale / unit) ** 2, LEAST_NOISE)
    return NoisySum(total / unit, noise, across.astype(np.float64), chances(odds))


def owners_of(features: KernelFeatures, columns: Columns) -> Integers:
    """Return the column of each feature, the constant first, or -1 for those of several.

    Parameters
    ----------
    features : KernelFeatures
        How rows become features.
    columns : Columns
        All columns.
    """
    found, place = np.full(len(features), -1), 0
    for number, column in enumerate(columns.columns):
        for encoded in range(place, place + len(column.encoded)):
            found[1 + features.column(encoded)[0]] = number
        place += len(column.encoded)
    return found
