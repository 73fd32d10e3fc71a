"""The shared part of learners of numbers: rows, steps and answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import Bounds, Columns, check_rows, check_some_rows, length_of, table_of
from cumae.effort import Effort
from cumae.engines import ColumnThere, Pieces
from cumae.errors import InvalidParameter, shown
from cumae.learners.base import PUBLIC_ROWS, Learner, LearningPlan, Rows, Sizes
from cumae.learners.kernel.features import KernelFeatures, additive_features
from cumae.learners.kernel.learner import (
    EVEN_WORTH,
    LEAST_NOISE,
    LEAST_PUBLIC,
    MADE_UP_WORTH,
    MARKS,
    MOST_COEFFICIENTS,
    MOST_PUBLIC,
)
from cumae.learners.kernel.levels import Bytes
from cumae.learners.kernel.model import KernelModel
from cumae.learners.kernel.posterior import waves_matter
from cumae.learners.kernel.reference import MadeUp, evenly, first_edges
from cumae.learners.kernel.sums import (
    CHUNK,
    COUNTED,
    LENGTH,
    MOVES,
    STEEP,
    Question,
    noisy_sum,
    room,
)
from cumae.learners.ranged import RangedSteps, learn_with_ranges, plan_with_ranges
from cumae.learners.regression.asking import Clipping, NumberQuestion, bin_counts
from cumae.learners.regression.model import NumberModel
from cumae.learners.regression.plans import NumberPlan
from cumae.learners.regression.posterior import NumberPosterior, NumberSum
from cumae.learners.regression.readable import ReadableNumbers
from cumae.learners.regression.spread import (
    Spread,
    corrected,
    error_cuts,
    first_cuts,
    first_spread,
    next_cuts,
)
from cumae.learners.regression.target import LINKS, NumberTarget, check_range, numbers_of
from cumae.made_up import made_up_table
from cumae.parameters import Choice, Kind, Number, Object, Or
from cumae.privacy import Budget
from cumae.progress import Progress
from cumae.quiet import is_quiet
from cumae.randomness import LARGEST_SCALE, Source
from cumae.threads import one_thread

# Parameters that learners of numbers have in common.
NUMBER_PARAMETERS: Mapping[str, Kind] = {
    "target_range": Or(None, Object("tuple of two floats")),
    "link": Choice(LINKS),
}
FAR, FARTHER = 1.5, 2.5  # where residuals are shortened, in usual errors: few rows, and many
CLEAR = 2_500.0  # strength from which on they are shortened farther out
LEAST_UNIT = 1e-9  # of a range
LEAST_WIDTH = 2.0**-30  # of a range that was found


@dataclass(frozen=True)
class NumberLearning:
    """A fit between two releases.

    Parameters
    ----------
    features : KernelFeatures
        How codes become features.
    parts : Pieces
        Private rows: their codes, and what they have for the target.
    shown : array of int
        Codes of the reference rows.
    target : NumberTarget
        The unit of the target.
    spread : Spread
        How numbers are spread, in this unit.
    posterior : NumberPosterior
        What is known so far; it changes with each sum.
    """

    features: KernelFeatures
    parts: Pieces
    shown: Bytes
    target: NumberTarget
    spread: Spread
    posterior: NumberPosterior

    @claim("REGRESS")
    def question(self, noise: float) -> NumberQuestion:
        """Return what the next sum asks of each row, along the directions least known so far.

        Parameters
        ----------
        noise : float
            Scale of the noise of the sum, in whole numbers.
        """
        directions = self.posterior.design(max((noise / MOVES) ** 2, LEAST_NOISE))
        asked = Question.of(self.features, self.posterior.mean, directions)
        return NumberQuestion(asked, self.target, self.posterior.reach)

    @claim("REGRESS")
    def measure(self, question: NumberQuestion, noise: float, source: Source) -> None:
        """Release the sum of the rows' shortened residuals, and learn from it.

        Parameters
        ----------
        question : NumberQuestion
            What each row is asked.
        noise : float
            Scale of the noise, in whole numbers.
        source : Source
            Where coins come from.
        """
        total = noisy_sum(question.total, self.parts, noise, source)
        scores, across = question.asked.ask(self.shown)
        # One whole number in the sum stands for 1 / unit of half a residual times a direction.
        unit = 2 * room(across.shape[1], LENGTH) * STEEP
        measured = (total[:, None] / unit, max((noise / unit) ** 2, LEAST_NOISE))
        self.posterior.learn(
            NumberSum(*measured, across.astype(np.float64), scores, question.reach)
        )

    @claim("REGRESS")
    def errors(self, noise: float, source: Source) -> Spread:
        """Release how many errors of the model are in each of some bins, and return their spread.

        Parameters
        ----------
        noise : float
            Scale of the noise, in whole numbers.
        source : Source
            Where coins come from.
        """
        none = np.zeros((len(self.features), 1))
        question = NumberQuestion(
            Question.of(self.features, self.posterior.mean, none), self.target, 1.0
        )
        expected = Spread(self.spread.edges * self.posterior.left, self.spread.shares)
        cuts = error_cuts(expected, len(self.parts), noise / COUNTED)
        total = partial(question.errors, cuts=cuts)
        counts = noisy_sum(total, self.parts, noise, source) / COUNTED
        return corrected(expected, cuts, counts, noise / COUNTED)


class NumberLearner(ReadableNumbers, RegressorMixin, Learner):  # type: ignore[misc]  # untyped base
    """A learner of a number by noisy sums of shortened residuals.

    A subclass says which features it has, and how far coefficients may vary at first.
    """

    least_public = LEAST_PUBLIC
    reads_pieces = True

    target_range: tuple[float, float] | None = None
    link: str = "identity"
    model_: NumberModel
    target_range_: tuple[float, float]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = None
        return tags

    @property
    @abstractmethod
    def _shapes(self) -> tuple[int, int]:
        """Number of curves of a column of numbers, and of waves in each group."""

    @property
    @abstractmethod
    def _starts(self) -> tuple[tuple[float, float, float], tuple[float, float], bool]:
        """First variances of the constant, lines and curves, two of waves, and if they may move."""

    # Reading

    def read_rows(
        self, X: Any, y: Any, X_public: Any = None, y_public: Any = None
    ) -> tuple[Sizes, Rows]:
        if y_public is not None:
            raise InvalidParameter("numbers of public rows are not used; leave y_public out.")
        X, X_public = table_of(X), table_of(X_public)
        columns = self._columns_of(X)
        columns.refuse_ordered()
        there = isinstance(y, ColumnThere)
        numbers: Any = y.read(numbers_of) if there else numbers_of(y)
        check_rows(length_of(X), numbers)
        unlabelled = np.zeros(len(numbers), dtype=np.int64)
        rows = self._read(columns, X, numbers if there else unlabelled, X_public, None)
        check_some_rows(unlabelled)
        public = 0 if rows.public is None else length_of(rows.public)
        return Sizes(len(numbers), 0, public, columns), replace(rows, y=numbers)

    def _stand_in(
        self, n_samples: int, n_features: int, n_public: int, n_unlabelled: int
    ) -> tuple[Sizes, Rows]:
        if n_unlabelled:
            raise InvalidParameter("rows without a number are not used; leave n_unlabelled out.")
        declared = self.known_columns()
        few = min(n_samples, 1)
        X = made_up_table(declared, few, n_features)
        public = made_up_table(declared, n_public, n_features) if n_public else None
        sizes, rows = self.read_rows(X, np.zeros(few), public)
        return replace(sizes, labelled=n_samples), rows

    # Planning

    def decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Any]:
        """Decide what to do, and what it costs; ranges that are not known come first."""
        if self.target_range is not None:
            check_range(self.target_range, self.link)
        if not self.delta > 0:
            raise InvalidParameter(
                f"delta={self.delta!r}: Gaussian noise needs a delta above 0, such as 1e-6."
            )
        open_target = self.target_range is None
        if open_target or (sizes.columns.open and not sizes.public):
            return plan_with_ranges(self, sizes, rows, type(self)._decide, targets=int(open_target))
        return self._decide(sizes, rows)

    def _decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[NumberPlan]:
        self._need_room(sizes)
        plan = NumberPlan.of(sizes, self.epsilon, self.delta)
        if max(plan.scales) > LARGEST_SCALE:
            raise InvalidParameter(
                f"epsilon={self.epsilon!r}, delta={self.delta!r} need noise beyond 2**50, in which "
                "nothing would be left of the rows; give more of either."
            )
        count = self._coefficients(sizes)
        shown_rows = "rows made up from noisy counts" if plan.made_up else "declared ranges"
        return LearningPlan(
            plan.cost(MadeUp(sizes.columns)),
            ("REGRESS", "VECTOR"),
            assumptions=PUBLIC_ROWS if rows.public is not None else (),
            steps=plan,
            facts={
                "n_steps": plan.steps,
                "noise": plan.noise,
                "n_coefficients": count,
                "reference": "public rows" if sizes.public else shown_rows,
            },
            work=self._work(plan, sizes, count),
        )

    def _work(self, plan: NumberPlan, sizes: Sizes, count: int) -> tuple[Effort, ...]:
        sums = (plan.steps + 1) * sizes.labelled * count
        held = count * (count + MOST_PUBLIC + 2 * min(sizes.labelled, 2 * CHUNK))
        posteriors = Effort("posteriors", plan.steps * count**2, held)
        return Effort("sums", sums, sizes.cells), posteriors

    def _coefficients(self, sizes: Sizes) -> int:
        curves, waves = self._shapes
        return additive_features(sizes.columns, curves) + 4 * waves

    def _need_room(self, sizes: Sizes) -> None:
        """Refuse, before anything is paid, what would take hours and all memory."""
        count = self._coefficients(sizes)
        if count > MOST_COEFFICIENTS:
            raise InvalidParameter(
                f"{len(sizes.columns)} encoded columns make {count:,} coefficients, and "
                f"{MOST_COEFFICIENTS:,} is the most; declare fewer categories, or leave columns "
                "out."
            )

    # Learning

    def _learn(self, rows: Rows, plan: LearningPlan[Any], source: Source) -> None:
        if isinstance(plan.steps, RangedSteps):
            learn_with_ranges(self, rows, plan.steps, source, type(self)._learn_within)
        else:
            self._learn_within(rows, plan, source)

    def _learn_within(self, rows: Rows, plan: LearningPlan[NumberPlan], source: Source) -> None:
        # Threads of a linear algebra library wait for each other when others use the machine.
        self.target_range_ = self._range
        with one_thread():
            self.model_ = self._model(rows, plan.steps, source)

    @claim("REGRESS")
    def _model(self, rows: Rows, plan: NumberPlan, source: Source) -> NumberModel:
        begun = self.begin(rows, plan, source)
        with Progress("learning", plan.steps, shown=False if is_quiet() else None) as bar:
            for _ in range(plan.steps):
                begun.measure(begun.question(plan.noise), plan.noise, source)
                bar.advance()
        errors = begun.errors(plan.errors_noise, source)
        return NumberModel(KernelModel.of(begun.features, begun.posterior), begun.target, errors)

    @claim("REGRESS")
    def begin(self, rows: Rows, plan: NumberPlan, source: Source) -> NumberLearning:
        """Return what the first sum of residuals is asked with.

        Parameters
        ----------
        rows : Rows
            Private and public rows, as ``read_rows`` reads them.
        plan : NumberPlan
            The plan of the fit.
        source : Source
            Where coins come from.
        """
        reference, worth = self._reference(rows, plan, source)
        spread = self._spread(rows.answers, plan, source)
        target, standard = self._unit(spread)
        curves, waves = self._shapes
        features = KernelFeatures.of(reference, self.columns_, source, curves=curves, waves=waves)
        parts = rows.both.then(features.code_rows).kept()
        shown_codes = features.codes(reference)
        start, views, moves = self._starts
        count = len(features.group_sizes) - 3
        starts = np.array([[*start, MARKS, *[view] * count] for view in views[: 1 + (count > 0)]])
        matter = waves_matter(plan.strength)
        posterior = NumberPosterior(
            features.rows(shown_codes),
            features.groups,
            starts,
            np.array([1 - matter, matter])[: len(starts)],
            1,
            len(rows.y),
            worth,
            plan.steps,
            target=target,
            errors=standard,
            far=FARTHER if plan.strength > CLEAR else FAR,
            moves=moves,
        )
        return NumberLearning(features, parts, shown_codes, target, standard, posterior)

    @claim("REGRESS")
    def _reference(self, rows: Rows, plan: NumberPlan, source: Source) -> tuple[Floats, float]:
        """Return a table to make features from, and how many public rows it is worth."""
        if rows.public is not None:
            reference = rows.public[:MOST_PUBLIC]
            return reference, float(len(reference))
        if not plan.made_up:
            return evenly(self.columns_, source), EVEN_WORTH
        scales = (plan.counts_noise, plan.products_noise)
        made = MadeUp(self.columns_).release(rows.tables, len(rows.y), *scales, source)
        return made, MADE_UP_WORTH

    @claim("REGRESS")
    def _spread(self, numbers: Pieces, plan: NumberPlan, source: Source) -> Spread:
        """Release counts of the numbers in bins, twice, and return how they are spread."""
        low, high = self._range
        within = numbers.then(Clipping(low, high))
        noise = plan.spread_noise / COUNTED

        def look(cuts: Floats) -> Floats:
            total = partial(bin_counts, cuts=cuts)
            return noisy_sum(total, within, plan.spread_noise, source) / COUNTED

        cuts = first_cuts(low, high, first_edges((low, high)))
        first = first_spread(cuts, look(cuts), noise, low, high)
        cuts = next_cuts(first, len(numbers), noise)
        return corrected(first, cuts, look(cuts), noise)

    def _unit(self, spread: Spread) -> tuple[NumberTarget, Spread]:
        """Return the unit of the target, and how numbers less their mean are spread in it."""
        low, high = self._range
        centre, unit = spread.mean, spread.unit
        if self.link == "log":
            unit = max(centre, LEAST_UNIT * (high - low))
            target = NumberTarget(low, high, self.link, 0.0, unit)
        else:
            target = NumberTarget(low, high, self.link, centre, unit)
        return target, spread.scaled(centre, unit).less_mean()

    @property
    def _range(self) -> tuple[float, float]:
        """The range of the target: declared, or found."""
        low, high = getattr(self, "target_range_", None) or self.target_range or (0.0, 1.0)
        return float(low), float(high)

    # Answers

    def predict(self, X: Any) -> Floats:
        """Return the mean of the number for each row. The model is published, so this is free.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``; if both have names, columns may come in any order.

        Returns
        -------
        array of float
            A number within the range of the target for each row.
        """
        check_is_fitted(self, "guarantee_")
        return self.model_.means(self._encode(self.columns_, X))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return intervals that hold a given share of the numbers.

        They come from released counts of the errors that the model makes. The share holds for rows
        like the private ones, all together, and not for each kind of row.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``.
        coverage : float above 0 and below 1
            The share of the numbers.

        Returns
        -------
        array of float
            The lower and the upper end, a row for each row.
        """
        check_is_fitted(self, "guarantee_")
        Number(0.0, 1.0, above=True, below=True).check(coverage, "coverage")
        shares = np.array([(1 - coverage) / 2, (1 + coverage) / 2])
        return self.model_.between(self._encode(self.columns_, X), shares)

    def uncertainty(self, X: Any) -> Floats:
        """Return by how much scores may be off: their standard deviation, given the releases.

        With a log link it is that of the logarithm of the mean, else that of the mean itself. It
        says how well the mean is known, and not how far numbers are from it.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``.
        """
        check_is_fitted(self, "guarantee_")
        found = self.model_.kernel.uncertainty(self._encode(self.columns_, X))[:, 0]
        return found if self.link == "log" else found * self.model_.target.unit

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return R2: the share of the variance of the numbers that predictions explain.

        It is exact: on private rows that is a leak.
        """
        return float(RegressorMixin.score(self, X, numbers_of(y), sample_weight))

    def private_score(
        self,
        X: Any,
        y: Any,
        epsilon: float,
        *,
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> float:
        """Refuse: there is no noisy score of numbers yet."""
        del X, y, epsilon, budget, random_state
        raise InvalidParameter(
            f"a {type(self).__name__} has no private score; on public rows use score."
        )

    def save_to(self, path: Any, *, keys: str | None = None) -> None:
        """Refuse: oracles answer with classes."""
        del keys
        raise InvalidParameter(
            f"path={shown(str(path))}: oracles answer with classes; write a regressor by save."
        )

    def _labels(self, table: NDArray[Any]) -> Integers:
        del table
        raise InvalidParameter(f"a {type(self).__name__} predicts numbers, and has no classes.")

    def take_over(self, columns: Columns, ranges: Sequence[Bounds] = ()) -> None:
        self.columns_ = columns
        for low, high, *_ in ranges:
            least = max(low, 0.0) if self.link == "log" else low
            self.target_range_ = (float(least), float(max(high, least + LEAST_WIDTH)))
