"""The finite-class learner, and what it shares with all that publish one hypothesis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.concepts import (
    ConceptClass,
    FiniteClass,
    Hypothesis,
    KeyCuts,
    Rectangles,
    Thresholds,
    Trees,
    is_exact,
)
from cumae.concepts.columns import alike, check_alike
from cumae.data import (
    Columns,
    Declared,
    cells_of_columns,
    check_column,
    family,
    names_of,
    table_of,
    width_of,
)
from cumae.effort import Effort
from cumae.errors import InvalidData, InvalidParameter, TooFewRows, warn
from cumae.learners.base import DECLARED, PUBLIC_ROWS, Learner, LearningPlan, Rows, Sizes
from cumae.learners.cuts import (
    ONE_COLUMN,
    check_finite,
    check_labelled,
    cuts_of_a_column,
    grid_points,
    joined,
    points_around,
    public_points,
)
from cumae.learners.ranged import PLACEHOLDER, narrowed, pure_shares
from cumae.parameters import EPSILON, Count, Kind, Object, Or, check_choice, check_share
from cumae.privacy import Budget
from cumae.quiet import is_quiet
from cumae.randomness import Source
from cumae.sanitizers import Quantiles, Ranges
from cumae.theorems.public_data import cover_error

MOST_CUTS = 63  # of a column that is the only one, and of a column of a box
SEVERAL_CUTS = 7  # cuts of each column where there are more
MANY_ERRORS = 0.25  # of the rows: with more a cut says little
FEW_CUTS, FEW_LABELS = 3, 2_000  # so many if labels times epsilon are fewer than that
# Boxes: with c cuts a column, a side is off by 1 / (4 c) of the rows on the mean, and the draw pays
# (2 / epsilon) ln c errors for it. The sum is least where c is labels times epsilon over 8.
LABELS_PER_BOX_CUT = 8

CONCEPT = Object("ConceptClass", (ConceptClass,), "one of cumae.concepts, such as Trees(2)")
CONCEPT_OR_TREES = Or(None, CONCEPT)
N_POINTS = Or("auto", Count(1))


@dataclass(frozen=True)
class RangeFirst:
    """The steps of a learner of one column that has to find a range first.

    Parameters
    ----------
    share, left : float
        Pure epsilon of each of two looks for a range, and of the draw.
    count : int
        How many candidates lie within the range.
    """

    share: float
    left: float
    count: int


class ConceptLearner(Learner):
    """A learner that publishes one hypothesis of a concept class, ``hypothesis_``."""

    concept_class: ConceptClass | None
    n_points: int | str
    hypothesis_: Hypothesis

    @property
    def _concept(self) -> ConceptClass:
        return Trees(2) if self.concept_class is None else self.concept_class

    def _count(self, sizes: Sizes, *, ends: bool = False) -> int:
        """Return how many points or cuts each column gets; ``ends`` as in ``cuts_of_a_column``."""
        wanted, strength = self.n_points, sizes.labelled * self.epsilon
        if not isinstance(wanted, str):
            count = int(wanted)
        elif sizes.features == 1:
            count = MOST_CUTS
        elif isinstance(self._concept, Rectangles):
            count = int(min(max(FEW_CUTS, strength / LABELS_PER_BOX_CUT), MOST_CUTS))
        else:
            count = FEW_CUTS if strength < FEW_LABELS else SEVERAL_CUTS
        return cuts_of_a_column(self._concept, sizes.columns, count, ends=ends)

    def _check_draw(self, sizes: Sizes, points: int, epsilon: float) -> None:
        """Refuse, before anything is paid, a draw that the class would refuse by numbers alone."""
        self._concept.check_draw(epsilon, max(sizes.labelled, points), points)

    def _takes_anything(self, X: Any) -> bool:
        """Tell whether the rows are one column for a class that only compares.

        Such a class takes text, dates, long integers, and other values that have an order.
        """
        return self.columns is None and isinstance(self._concept, ONE_COLUMN) and width_of(X) == 1

    def check_contents(self, X: Any) -> None:
        """Refuse columns of which nothing is left as numbers, unless cells stay as they are."""
        if not self._takes_anything(X):
            super().check_contents(X)

    def _columns_of(self, X: Any) -> Columns:
        if self._takes_anything(X):
            return Columns(None, names_of(X), 1)
        return super()._columns_of(X)

    def _encode(self, columns: Columns, X: Any) -> NDArray[Any]:
        X = table_of(X)
        if self._takes_anything(X):
            return check_column(cells_of_columns(X)[0])
        table = columns.encode(X)
        check_finite(self._concept, table)
        return table

    def _check_readable(self, rows: Rows) -> None:
        check_labelled(self._concept, rows.X)
        if rows.public is not None and rows.X.ndim == 1:
            # One column of text, dates or whatever has an order; all of it must be of one type.
            check_alike(rows.public, rows.X, "X_public")
            alike(rows.public, rows.X)
        # Without public values, only numbers have candidates that follow from a range.
        lacking = rows.public is None and self._concept.needs_points and not self._counts_values
        if lacking and rows.X.ndim == 1 and family(rows.X) != "numbers":
            raise InvalidData(
                f"X holds {family(rows.X)}, whose order has no end that is known. A learner "
                "publishes its cut, and there no learner can find one privately: it would be the "
                "value of a row. Give public values as X_public; or take EverlastingPredictor or "
                'QueryRelease with columns=[{"ordered": "text"}], which publish no cut.'
            )

    @property
    def _counts_values(self) -> bool:
        """True if points are values that many rows share, which may be of any kind."""
        return False

    @claim("KLNRS", "GENERIC", "SSPP")
    def _draw(
        self,
        points: Any,
        X: NDArray[Any],
        y: Integers,
        source: Source,
        concept: Any = None,
        epsilon: float | None = None,
    ) -> None:
        """Keep a hypothesis that the exponential mechanism draws, and among how many it did.

        It costs the learner's epsilon, or the part of it that is given.
        """
        concept = self._concept if concept is None else concept
        epsilon = self.epsilon if epsilon is None else epsilon
        self.n_candidates_: int = concept.n_candidates(points)
        self.hypothesis_ = concept.choose(points, X, y, epsilon, random_state=source)

    @property
    @claim("PRIOR")
    def is_exact(self) -> bool:
        return is_exact(self.hypothesis_)

    def _labels(self, table: NDArray[Any]) -> Integers:
        return self.hypothesis_.predict(table)

    def __str__(self) -> str:
        fitted = hasattr(self, "hypothesis_")
        return (
            self.hypothesis_.describe(self.columns_, list(self.classes_)) if fitted else repr(self)
        )


@claim("KLNRS")
class PrivateLearner(ConceptLearner):
    """A learner that draws one hypothesis by the exponential mechanism, with pure privacy.

    Candidates are those that public rows define, or an even grid within declared bounds; or all
    concepts of a finite class, such as ``Conjunctions``, ``Parities`` and ``RandomSets``. A single
    column that is declared without bounds (``columns=[float]``) gets a range privately, for half of
    epsilon, and the grid has points beyond it, too. ``Thresholds`` over columns that are declared
    as ordered are drawn from all keys of the declared width (``max_bytes``). With
    probability 1 - beta it makes at most (2 / epsilon) (ln candidates + ln 1/beta) more errors on
    the rows than the best candidate (:meth:`excess_errors`).

    Parameters
    ----------
    concept_class : ConceptClass, or None
        From ``cumae.concepts``; None means ``Trees(2)``.
    epsilon : float of 0 or more
        Privacy parameter.
    n_points : int of 1 or more, or "auto"
        Cuts for a column, at public quantiles or evenly between bounds. ``"auto"`` takes 63 for a
        single column. For each of several columns it takes 7, or 3 if labels are few. Boxes
        take labels times epsilon over 8, between 3 and 63, as long as the grid is not too large.
    columns : mapping or sequence, or None
        What each column holds: numbers and their range, categories, true and false, or dates, and
        whether cells may be missing. :class:`~cumae.Columns` has the forms.
    classes : sequence of two labels
        The labels; hypotheses call the second one 1.
    budget : Budget, or None
        An account to pay from.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Thresholds
    >>> from cumae.learners import PrivateLearner
    >>> age = np.arange(1000) % 100
    >>> learner = PrivateLearner(Thresholds(), epsilon=1.0, columns=[(0, 100)])
    >>> learner.fit(age.reshape(-1, 1), age >= 65).predict([[20], [90]])
    array([0, 1])
    >>> learner.guarantee_.epsilon, learner.guarantee_.delta
    (1.0, 0.0)
    """

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "concept_class": CONCEPT_OR_TREES,
        "epsilon": EPSILON,
        "n_points": N_POINTS,
        **DECLARED,
    }

    def __init__(
        self,
        concept_class: ConceptClass | None = None,
        epsilon: float = 1.0,
        *,
        n_points: int | str = "auto",
        columns: Declared = None,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.concept_class = concept_class
        self.epsilon = epsilon
        self.n_points = n_points
        self.columns = columns
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    @claim("UNIVERSE")
    def _check_ordered(self, columns: Columns) -> None:
        """Take thresholds over ordered columns alone: all keys of their width are candidates."""
        if not isinstance(self._concept, Thresholds) or not columns.only_ordered:
            super()._check_ordered(columns)

    def _read(
        self, columns: Columns, X: Any, labels: Integers, X_public: Any, y_public: Any
    ) -> Rows:
        if not columns.only_ordered:
            return super()._read(columns, X, labels, X_public, y_public)
        return Rows(self._encode(columns, X), labels)  # all keys are candidates: nothing is public

    def decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Any]:
        """Decide which points define candidates: they are the steps."""
        concept, count = self._drawn_from(sizes.columns), self._count(sizes)
        if self._finds_range(sizes, rows):
            share, left = pure_shares(self.epsilon, sizes)
            points: Any = points_around(PLACEHOLDER, count)  # as many as in any other range
            self._check_draw(sizes, len(points), left)
            found = concept.n_candidates(points)
            return LearningPlan(
                Ranges(share, 1).cost
                + Quantiles(share, [PLACEHOLDER], 3).cost
                + concept.choose_cost(left),
                ("KLNRS", "CHOOSE", "RANGES", "QUANT", "COMP"),
                protects="one labelled training row",
                steps=RangeFirst(share, left, count),
                facts={"range_epsilon": share, "draw_epsilon": left, "n_candidates": found},
                work=one_draw(sizes),
            )
        if not concept.needs_points:
            points = rows.X[:0]
        elif rows.public is not None:
            points = public_points(concept, rows.public, count)
        else:
            points = joined(concept, grid_points(sizes.columns.need_bounds(), count))
        self._check_draw(sizes, len(points), self.epsilon)
        found = concept.n_candidates(points)  # refuses more points than can be counted
        by_values = rows.public is not None and concept.needs_points
        drawn_from = {"points": count} if by_values else {"n_candidates": found}
        if isinstance(concept, KeyCuts):
            drawn_from = {"key_bytes": sum(concept.key_bytes)}
            self._warn_of_wide_keys(sizes, found)
        return LearningPlan(
            concept.choose_cost(self.epsilon),
            ("KLNRS", "CHOOSE", *["UNIVERSE", "KEYS"] * isinstance(concept, KeyCuts)),
            protects="one labelled training row",
            assumptions=PUBLIC_ROWS if rows.public is not None else (),
            steps=points,
            facts={"draw_epsilon": float(self.epsilon), **drawn_from},
            work=one_draw(sizes),
        )

    def _finds_range(self, sizes: Sizes, rows: Rows) -> bool:
        """Tell whether the only column has no range, and a grid of candidates needs one."""
        needed = self._concept.needs_points and rows.public is None
        # Without any declaration, a single column may hold whatever has an order.
        declared = self.columns is not None and sizes.features == 1
        return needed and declared and bool(sizes.columns.open)

    @claim("UNIVERSE")
    def _drawn_from(self, columns: Columns) -> ConceptClass:
        """Return the class that is drawn from: of a finite one, each hypothesis is a candidate."""
        concept = self._concept
        if columns.only_ordered:
            return KeyCuts(concept, columns.key_bytes)
        return concept.undivided() if isinstance(concept, FiniteClass) else concept

    def _warn_of_wide_keys(self, sizes: Sizes, candidates: int) -> None:
        """Warn, by public numbers, if so many keys are likely to drown what the rows say."""
        errors = excess_errors(candidates, self.epsilon, 0.5)
        if errors > MANY_ERRORS * sizes.labelled and not is_quiet():
            warn(
                f"a cut among all keys of {sum(sizes.columns.key_bytes)} bytes may be off by up to "
                f"{errors:,.0f} of {sizes.labelled:,} rows with epsilon={self.epsilon!r}; declare "
                "a smaller max_bytes, or give more rows or a larger epsilon.",
                TooFewRows,
            )

    def _learn(self, rows: Rows, plan: LearningPlan[Any], source: Source) -> None:
        concept, points, epsilon = self._drawn_from(self.columns_), plan.steps, self.epsilon
        if isinstance(plan.steps, RangeFirst):
            (wide,) = Ranges(plan.steps.share, 1, random_state=source).find(rows.X)
            found = narrowed(wide, rows.X, plan.steps.share, source)
            points, epsilon = points_around(found, plan.steps.count), plan.steps.left
        self.draw_epsilon_ = float(epsilon)
        self._draw(points, rows.X, rows.y, source, concept, epsilon)

    def excess_errors(self, beta: float = 0.05) -> float:
        """Bound the errors beyond those of the best candidate, with probability 1 - beta.

        Parameters
        ----------
        beta : float above 0 and below 1
            The chance that there are more.

        Returns
        -------
        float
            A number of rows.
        """
        check_is_fitted(self, "n_candidates_")
        return excess_errors(self.n_candidates_, self.draw_epsilon_, beta)


class BoundedLearner(ConceptLearner):
    """A learner whose error on new rows can be bounded, because no row chose its candidates.

    A fit sets ``n_scored_``, the number of rows that scored the candidates and did not choose
    them, and ``n_covering_``, the number of public rows whose labellings are all candidates; 0
    where there are no such rows.
    """

    n_scored_: int
    n_covering_: int

    def accuracy(self, beta: float = 0.05, *, against: str = "candidate") -> float:
        """Bound how much the error on new rows is above the best one's, with chance 1 - beta.

        The rows, the public rows and the new ones must be drawn from one law, each by itself. It
        holds for every law, and so it is far above what is usual.

        Parameters
        ----------
        beta : float above 0 and below 1
            The chance of a larger difference.
        against : {"candidate", "concept"}
            Whether the best is the best of the candidates, of which one was drawn, or the best of
            the whole class. The latter can be said where the labellings of public rows are the
            candidates (Lemma 3.3 of paper 4).

        Returns
        -------
        float
            A share of rows; 1 says nothing.

        Raises
        ------
        InvalidParameter
            If the rows that were scored chose the candidates, too, or if ``against="concept"`` and
            the candidates are not all labellings of public rows.

        Examples
        --------
        >>> import numpy as np
        >>> from cumae import SemiPrivateLearner
        >>> from cumae.concepts import Thresholds
        >>> rng = np.random.default_rng(0)
        >>> public, x = rng.random(5_000), rng.random(100_000)
        >>> learner = SemiPrivateLearner(Thresholds()).fit(x, x > 0.3, public)
        >>> round(learner.accuracy(), 4), round(learner.accuracy(against="concept"), 3)
        (0.0167, 0.051)
        """
        check_share(beta, "beta")
        check_choice(against, ("candidate", "concept"), "against")
        check_is_fitted(self, "n_candidates_")
        rows, covering = getattr(self, "n_scored_", 0), getattr(self, "n_covering_", 0)
        if not rows:
            raise InvalidParameter(
                "no error can be bounded: the rows that scored the candidates chose them as well, "
                "or the model was stored by an older version."
            )
        if against == "candidate":
            return drawn_error(self.n_candidates_, rows, self.epsilon, beta)
        if not covering:
            raise InvalidParameter(
                "against='concept' needs candidates that are all labellings of public rows; give "
                "X_public and a class other than trees, or take against='candidate'."
            )
        cover = cover_error(covering, beta / 2, self._concept.vc_dimension(len(self.columns_)))
        return min(1.0, cover + drawn_error(self.n_candidates_, rows, self.epsilon, beta / 2))


def drawn_error(candidates: int, n_rows: int, epsilon: float, beta: float) -> float:
    """Bound how much a drawn candidate's error is above the best one's, with chance 1 - beta.

    All candidates have an error on the rows that is near their error in general, by Hoeffding's
    inequality, with half of beta; the draw makes few errors more than the best, with the other.

    Parameters
    ----------
    candidates : int of 1 or more
        How many there are; the rows did not choose them.
    n_rows : int of 1 or more
        Rows that scored them.
    epsilon : float above 0
        What the draw costs.
    beta : float above 0 and below 1
        The chance of a larger difference.
    """
    near = math.sqrt((log_of(candidates) + math.log(4 / beta)) / (2 * n_rows))
    return min(1.0, 2 * near + excess_errors(candidates, epsilon, beta / 2) / n_rows)


def one_draw(sizes: Sizes) -> tuple[Effort, ...]:
    """Return the work of one draw, which looks at all cells."""
    return (Effort("draws", sizes.cells, sizes.cells),)


def excess_errors(candidates: int, epsilon: float, beta: float) -> float:
    """Bound the exponential mechanism's errors beyond the best candidate's, with chance 1 - beta.

    Examples
    --------
    >>> from cumae.learners.exponential import excess_errors
    >>> round(excess_errors(1000, 1.0, 0.05), 1)
    19.8
    """
    check_share(beta, "beta")
    # A candidate that makes x more errors than the best is exp(-epsilon x / 2) times as likely.
    log = log_of(candidates)
    return float(2 * (log - np.log(beta)) / epsilon) if epsilon > 0 else math.inf


def log_of(candidates: int) -> float:
    """Return the natural logarithm of a whole number, which may be too long for a float."""
    shift = max(0, candidates.bit_length() - 1023)
    return float(np.log(float(candidates >> shift))) + shift * float(np.log(2.0))
