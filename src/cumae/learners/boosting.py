"""Exact trees boosted over disjoint blocks of rows, after a private start if there is a delta."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass, Hypothesis, TreeCuts, Trees, is_exact
from cumae.concepts.trees import BinnedRows
from cumae.counting.bins import ScoreBins
from cumae.data import Columns, Declared
from cumae.effort import Effort
from cumae.errors import InvalidParameter
from cumae.learners.base import DECLARED, PUBLIC_ROWS, LearningPlan, Rows, Sizes
from cumae.learners.cuts import (
    check_finite,
    check_labelled,
    column_points,
    cuts_of_a_column,
    numeric_quantiles,
    public_cuts,
    with_ends,
    worthwhile_points,
)
from cumae.learners.exponential import CONCEPT_OR_TREES
from cumae.learners.kernel.features import CURVES
from cumae.learners.kernel.learner import LEAST_PUBLIC
from cumae.learners.kernel.reference import evenly
from cumae.learners.logistic import PrivateLogisticRegression
from cumae.learners.scored import ANSWERS, ScoredLearner
from cumae.learners.thresholds import HELD_OUT, likely_odds, release_counts
from cumae.mechanisms import LaplaceNoise
from cumae.outlook import Fact
from cumae.parameters import DELTA, EPSILON, Choice, Count, Kind, Number, Or, check_count
from cumae.privacy import Budget, parallel
from cumae.randomness import SYSTEM, Source, permutation, source_for

CUTS = 7  # of a column
MOST_ROUNDS = 20
AFTER_START = 10  # rounds that follow a start
CUT_ROWS = 0.1  # share of the rows that cuts are sanitized from
START_ROWS = 0.8  # share of the other rows that the start learns from, if trees follow
CHANCE_ROWS = 0.1  # share of the rows that the chances of trees without a start are learnt from
ENOUGH_FOR_CHANCES = 20.0  # such rows, times epsilon, from which on they stand out from noise
ENOUGH_FOR_A_BIN = 100.0  # and for each further bin of votes
HALF = 0.5  # of epsilon: such noise has no larger range than a draw with epsilon
WIDE = 40  # columns beyond which trees stay at depth 2
ENOUGH = 200_000  # rows times epsilon from which on trees add to a start


@dataclass(frozen=True)
class Blocks:
    """Which rows do what, as places in a random order; made from public sizes alone."""

    cuts: slice
    start: slice
    rounds: tuple[slice, ...]
    chances: slice
    points: int  # quantiles a column for the cuts, or 0
    count: int  # cuts a column otherwise
    rate: float


@claim("BOOST")
class PrivateBooster(ScoredLearner):
    """Boosted trees, each drawn privately from a block of rows of its own.

    Each round takes a block of rows that no other round sees, keeps each row with a chance that
    grows with its loss so far, and draws one tree by the exponential mechanism with the full
    budget. With a delta it starts from :class:`PrivateLogisticRegression`, and trees follow where
    rows are many enough to add to it.

    Parameters
    ----------
    epsilon : float of 0 or more
        Privacy parameter.
    delta : float from 0 and below 1
        Privacy parameter. With ``delta=0`` the learner is pure, and there is no start.
    n_rounds : int of 0 or more, or "auto"
        Trees; ``"auto"`` goes by rows, budget and the number of candidates. Without a start there
        must be one at least.
    concept_class : ConceptClass, or None
        What is drawn in each round; None means ``Trees(2)``, and ``Trees(3)`` for many rows of at
        most 40 columns.
    start : {"auto", "linear", "curved"}, or None
        ``"auto"`` is ``"curved"`` if a delta was given, else None.
    learning_rate : float above 0, or "auto"
        What each tree adds to the log odds.
    n_cuts : int of 1 or more, or "auto"
        Cuts for a column, at quantiles; ``"auto"`` takes 7. In a wide table there are fewer: trees
        are drawn from 4,096 cuts at most. Without public rows, cuts are sanitized from rows of
        their own, or spread evenly between bounds where rows are few.
    class_weight : mapping from class to float above 0, or None
        Another name of ``costs``, as scikit-learn calls it. Give one of them.
    costs : mapping from class to float above 0, or None
        What it costs to miss a row of each class, declared and public; 1 for classes that are not
        named. ``predict`` answers the class of least expected cost. Chances stay chances.
    threshold : float from 0 to 1, or None
        The chance of the second of two classes from which on it is the answer, instead of
        costs.
    sensitivity : float above 0 and up to 1, or None
        The share of the second of two classes that ``predict`` is to find. A threshold for it is
        chosen privately, with rows that the model does not see. It may be set again after the fit,
        at no cost.
    confidence : float above 0.5 and below 1, or None
        Chance with which at least ``sensitivity`` is found; None takes the best guess.
    held_out : float above 0 and below 1
        Share of the rows that are set aside for ``sensitivity``.
    columns : mapping or sequence, or None
        What each column holds: numbers and their range, categories, true and false, or dates, and
        whether cells may be missing. :class:`~cumae.Columns` has the forms. A range that is neither
        declared nor shown by public rows is found privately, for a share of epsilon and delta;
        with ``delta=0`` it must be declared.
    classes : sequence of two labels
        The labels; hypotheses call the second one 1.
    budget : Budget, or None
        An account to pay from.
    random_state : int or Source, or None
        None in production; a seed or a source voids the guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.learners import PrivateBooster
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2))
    >>> model = PrivateBooster(epsilon=1.0, columns=[(-1, 1), (-1, 1)])
    >>> model.fit(X, (X[:, 0] > 0) != (X[:, 1] > 0)).predict([[0.9, 0.9], [-0.9, 0.9]])
    array([0, 1])
    >>> model.guarantee_.delta
    0.0
    """

    least_public = LEAST_PUBLIC
    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "n_rounds": Or("auto", Count(0)),
        "concept_class": CONCEPT_OR_TREES,
        "start": Or(None, Choice(("auto", "linear", "curved"))),
        "learning_rate": Or("auto", Number(above=True, below=True)),
        "n_cuts": Or("auto", Count(1)),
        **ANSWERS,
        **DECLARED,
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        n_rounds: int | str = "auto",
        concept_class: ConceptClass | None = None,
        start: str | None = "auto",
        learning_rate: float | str = "auto",
        *,
        n_cuts: int | str = "auto",
        class_weight: Mapping[Any, float] | None = None,
        costs: Mapping[Any, float] | None = None,
        threshold: float | None = None,
        sensitivity: float | None = None,
        confidence: float | None = None,
        held_out: float = HELD_OUT,
        columns: Declared = None,
        classes: Any = (0, 1),
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_rounds = n_rounds
        self.concept_class = concept_class
        self.start = start
        self.learning_rate = learning_rate
        self.n_cuts = n_cuts
        self.class_weight = class_weight
        self.costs = costs
        self.threshold = threshold
        self.sensitivity = sensitivity
        self.confidence = confidence
        self.held_out = held_out
        self.columns = columns
        self.classes = classes
        self.budget = budget
        self.random_state = random_state

    def _decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Blocks]:
        """Decide which rows do what: these blocks are the steps."""
        start = self._start(SYSTEM)
        blocks = self._blocks(sizes, start is not None)
        costs, claims = [], ["BOOST", "PAR"]
        facts, work = _block_facts(blocks), _block_work(blocks, sizes)
        if blocks.rounds:
            concept = self._concept(sizes.labelled, sizes.features)
            # Now, for all rows of a block: for the kept ones, whose number is private, it would
            # be a leak.
            most = max(map(_size, blocks.rounds))
            concept.check_draw(self.epsilon, max(most, blocks.count, blocks.points + 2))
            costs.append(concept.choose_cost(self.epsilon))
            claims.append("CHOOSE")
        if blocks.points:
            costs.append(numeric_quantiles(sizes.columns, blocks.points, self.epsilon, SYSTEM).cost)
            claims.append("QUANT")
        if _size(blocks.chances):
            costs.append(LaplaceNoise(self.epsilon * HALF).cost)
            claims.append("NOISE")
        if start is not None:
            part = Sizes(_size(blocks.start), 0, sizes.public, sizes.columns)
            inner = start.decide(part, rows)
            costs.append(inner.cost)
            claims += [claim for claim in inner.claims if claim not in claims]
            facts["start_rows"] = _size(blocks.start)
            work += inner.work or ()
        return LearningPlan(
            parallel(*costs),
            tuple(claims),
            assumptions=PUBLIC_ROWS if rows.public is not None else (),
            steps=blocks,
            facts=facts,
            work=work,
        )

    def _encode(self, columns: Columns, X: Any) -> NDArray[Any]:
        table = columns.encode(X)
        check_finite(self._concept(0, len(columns)), table)
        return table

    def _check_readable(self, rows: Rows) -> None:
        check_labelled(self._concept(0, rows.X.shape[1]), rows.X)

    def _concept(self, rows: int, features: int) -> ConceptClass:
        if self.concept_class is not None:
            return self.concept_class
        # Drawing takes the cube of the number of cuts for depth 3: minutes for wide tables.
        deep = rows * min(self.epsilon, 100.0) > 100_000 and features <= WIDE
        return Trees(3 if deep else 2)

    def _start(self, source: Source) -> PrivateLogisticRegression | None:
        kind = self.start
        if kind is None or (kind == "auto" and not self.delta > 0):
            return None
        if not self.delta > 0:
            raise InvalidParameter(
                f"start={kind!r} with delta={self.delta!r}: a start needs a delta above 0, such as "
                "1e-6; give one, or start=None."
            )
        return PrivateLogisticRegression(
            self.epsilon,
            self.delta,
            curves=0 if kind == "linear" else CURVES,
            columns=self.columns,
            classes=self.classes,
            random_state=source,
        )

    def _count(self) -> int:
        return CUTS if isinstance(self.n_cuts, str) else int(self.n_cuts)

    def _blocks(self, sizes: Sizes, started: bool) -> Blocks:
        rows, epsilon = sizes.labelled, min(self.epsilon, 100.0)
        # Trees are drawn among about so many: exact enough for a choice of sizes.
        leaves = 4 if self.concept_class is None else 2 ** getattr(self.concept_class, "depth", 2)
        candidates = (leaves - 1) * math.log(2 + CUTS * sizes.features / 2) + leaves * math.log(2)
        if isinstance(self.n_rounds, str):
            most = MOST_ROUNDS
            if started:
                most = AFTER_START if rows * epsilon > ENOUGH else 0
            rounds = min(most, round(rows * epsilon / (20 * candidates)))
            if not started:  # an odd number of votes has no ties
                rounds = max(rounds, 1) | 1
        else:
            rounds = check_count(self.n_rounds, "n_rounds", least=0 if started else 1)
        count, points = self._count(), 0
        if rounds:
            concept = self._concept(rows, sizes.features)
            count = cuts_of_a_column(concept, sizes.columns, count)
            if not sizes.public:
                points = self._points(concept, sizes, rows * CUT_ROWS)
        first = int(rows * CUT_ROWS) if points else 0
        second = first
        if started:
            second = rows if not rounds else first + int((rows - first) * START_ROWS)
        last = rows
        if not started and rows * epsilon * CHANCE_ROWS >= ENOUGH_FOR_CHANCES:
            last -= int(rows * CHANCE_ROWS)
        ends = np.linspace(second, last, rounds + 1).astype(int).tolist()
        rate = self.learning_rate
        if isinstance(rate, str):
            rate = 0.05 if started else max(0.2, min(0.5, 2.5 / rounds))
        return Blocks(
            slice(0, first),
            slice(first, second),
            tuple(slice(low, high) for low, high in itertools.pairwise(ends)),
            slice(last, rows),
            points,
            count,
            float(rate),
        )

    def _points(self, concept: ConceptClass, sizes: Sizes, rows: float) -> int:
        """Return how many sanitized quantiles of each column are worth their rows."""
        # A draw is off by 2 / epsilon, times the log of the number of places, or so.
        strength = rows * min(self.epsilon, 100.0)
        most = cuts_of_a_column(concept, sizes.columns, 2 * self._count() + 1, ends=True)
        return worthwhile_points(sizes.columns, strength, lambda draws: 12 * draws, most)

    def _learn_within(self, rows: Rows, plan: LearningPlan[Blocks], source: Source) -> None:
        blocks = plan.steps
        # Who is in which block is drawn without a look at any row.
        order = permutation(len(rows.y), source)
        self.start_ = None
        start = self._start(source)
        if start is not None:
            start.fit_part(rows.take(order[blocks.start]), self.columns_, self.classes_)
            self.start_ = start
        self.learning_rate_ = blocks.rate
        self.trees_: list[Hypothesis] = []
        if not blocks.rounds:
            return
        concept = self._concept(len(rows.y), len(self.columns_))
        cuts = self._cuts(concept, rows, rows.X[order[blocks.cuts]], blocks, source)
        for block in blocks.rounds:
            places = order[block]
            X, y = rows.X[places], rows.y[places]
            scores = self.log_odds(X)
            kept = keep(scores, y, source)
            drawn = self._choose(concept, cuts, X[kept], y[kept], source)
            self.trees_.append(drawn)
        if start is None:
            self.odds_ = self._odds(rows, rows.take(order[blocks.chances]), source)

    @claim("BOOST")
    def _odds(self, rows: Rows, block: Rows, source: Source) -> Floats:
        """Return the log odds of each number of votes, with noisy counts of rows that no tree saw.

        Votes are counted in as many bins as the rows of the block can fill.
        """
        most = len(self.trees_)
        scores = np.asarray(self.learning_rate_ * (2.0 * np.arange(most + 1) - most), dtype=float)
        shown = rows.public if rows.public is not None else self.made_up_rows(source)
        weights = np.bincount(self._votes(shown), minlength=most + 1) / len(shown)
        if not len(block.y):
            return likely_odds(scores, weights, np.zeros(most + 1, dtype=np.int64), None)
        strength = len(block.y) * min(self.epsilon, 100.0)
        count = int(np.clip(strength / ENOUGH_FOR_A_BIN, 1, most + 1))
        group = np.arange(most + 1) * count // (most + 1)
        inner = (np.searchsorted(group, np.arange(1, count)) - 0.5) / most
        bins = ScoreBins(np.append(0.0, inner), np.append(inner, 1.0))
        noise = LaplaceNoise(self.epsilon * HALF, min(count, 2), random_state=source)
        found = release_counts(bins, block.y, self._votes(block.X) / most, noise)
        return likely_odds(scores, weights, group, found)

    def fit_part(
        self, rows: Rows, columns: Columns, classes: NDArray[Any], plan: LearningPlan[Blocks]
    ) -> None:
        """Fit as a part of another learner, which pays and holds the guarantee.

        Parameters
        ----------
        rows : Rows
            Encoded rows.
        columns : Columns
            How they were encoded.
        classes : array
            The labels that 0 and 1 stand for.
        plan : LearningPlan
            What ``decide`` returned for these rows.
        """
        source = source_for(self.random_state)
        self.random_state = None  # a generator is no part of a model
        self.columns_, self.classes_ = columns, classes
        self._learn_within(rows, plan, source)

    def _cuts(
        self, concept: ConceptClass, rows: Rows, block: Floats, blocks: Blocks, source: Source
    ) -> TreeCuts:
        columns = self.columns_
        if rows.public is not None:
            return public_cuts(concept, rows.public, blocks.count)
        points = column_points(columns, blocks.points or blocks.count + 1)
        if blocks.points:
            numeric = columns.numeric
            quantiles = numeric_quantiles(columns, blocks.points, self.epsilon, source)
            points[:, numeric] = quantiles.sanitize(block[:, numeric])
            points = with_ends(points, columns.bounds)
        return TreeCuts.of(points)

    def _choose(
        self, concept: ConceptClass, cuts: TreeCuts, X: Floats, y: Integers, source: Source
    ) -> Hypothesis:
        points: Any = cuts
        rows: BinnedRows | Floats = cuts.bin(X)
        if not isinstance(concept, Trees):
            points, rows = _points_of(cuts), X
        return concept.choose(points, rows, y, self.epsilon, random_state=source)  # type: ignore[arg-type]

    def made_up_rows(self, source: Source) -> Floats:
        return evenly(self.columns_, source)

    @property
    def log_odds(self) -> Callable[[NDArray[Any]], Floats]:
        return self._sum_of_trees

    @property
    @claim("PRIOR")
    def is_exact(self) -> bool:
        return all(map(is_exact, self.trees_))  # and so is the start; trees are added in one order

    def _votes(self, table: NDArray[Any]) -> Integers:
        """Return how many trees say 1."""
        votes = np.zeros(len(table), dtype=np.int64)
        for tree in self.trees_:
            votes += np.asarray(tree.predict(table), dtype=np.int64)
        return votes

    def _sum_of_trees(self, table: NDArray[Any]) -> Floats:
        odds = getattr(self, "odds_", None)  # files of older versions have none
        if odds is not None:
            return np.asarray(odds[self._votes(table)])
        start, scores = self.start_, np.zeros(len(table))
        if start is not None:
            scores = start.log_odds(table)
        for tree in self.trees_:
            scores = scores + self.learning_rate_ * (2 * tree.predict(table) - 1)
        return scores

    def __str__(self) -> str:
        if not hasattr(self, "trees_"):
            return repr(self)
        parts = [] if self.start_ is None else [str(self.start_)]
        if hasattr(self, "odds_"):
            odds = ", ".join(f"{odd:+.3g}" for odd in self.odds_.tolist())
            named = self.classes_[1]
            parts.append(f"log odds of {named} if 0, 1, 2 ... trees say {named}: {odds}")
            adds = ""
        else:
            rate, odds = f"{self.learning_rate_:g}", f"log odds of {self.classes_[1]}"
            adds = f": +{rate} to the {odds} where it says so, else -{rate}"
        for number, tree in enumerate(self.trees_, start=1):
            parts.append(f"tree {number}{adds}")
            parts.append(tree.describe(self.columns_, list(self.classes_)))
        parts += self.rule_lines()
        return "\n".join(parts)


@claim("BOOST")
def keep(scores: Floats, y: Integers, source: Source) -> NDArray[np.bool_]:
    """Keep each row by a coin of its own: always where it is labelled wrong, else by its loss."""
    wrong = expit(np.where(y == 1, -scores, scores))  # weight of the row for the logistic loss
    coins = source.words(len(y)).astype(np.float64) * 2.0**-64
    return np.asarray(coins < 2 * wrong)


def _block_work(blocks: Blocks, sizes: Sizes) -> tuple[Effort, ...]:
    """Return what drawing the trees takes."""
    return Effort("draws", sizes.cells, 0), Effort("trees", len(blocks.rounds), sizes.cells)


def _block_facts(blocks: Blocks) -> dict[str, Fact]:
    """Return public numbers of the blocks."""
    facts: dict[str, Fact] = {"n_trees": len(blocks.rounds), "learning_rate": blocks.rate}
    if blocks.rounds:
        facts["block_rows"] = min(map(_size, blocks.rounds))
    if blocks.points:
        facts |= {"cut_rows": _size(blocks.cuts), "points": blocks.points}
    return facts


def _size(part: slice) -> int:
    return int(part.stop - part.start)


def _points_of(cuts: TreeCuts) -> Floats:
    """Return a table of points between which lie the cuts, for classes that want points."""
    columns = []
    for column in range(cuts.n_features):
        values = cuts.value[cuts.starts[column] : cuts.starts[column + 1]]
        columns.append(values if len(values) else np.zeros(1))
    longest = max(len(values) for values in columns)
    return np.array([np.resize(values, longest) for values in columns]).T
