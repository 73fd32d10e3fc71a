"""Decision trees of depth 1 to 3 over a given set of cuts, as a concept class."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.concepts.base import ConceptClass, Hypothesis
from cumae.concepts.stumps import count_splits, stump_dimension
from cumae.concepts.trees.cuts import BinnedRows, TreeCuts, tree_of
from cumae.concepts.trees.gains import gains_of_cuts
from cumae.concepts.trees.hypothesis import Tree
from cumae.concepts.trees.sums import Path, TreeSums, law_of
from cumae.data import check_labels, check_rows, check_table, check_tables
from cumae.errors import InvalidParameter
from cumae.parameters import check_count
from cumae.privacy.validation import check_epsilon
from cumae.randomness import Source, source_for, weighted_choice

LARGEST_DEPTH = 3
LARGEST_CUTS = 4096  # for trees of depth 2 and 3: the error of the weights grows with the cuts
LARGEST_ROWS = 2**27 - 1  # up to here products of a row count and 26 bits are exact
LARGEST_COUNT = 10**6  # candidates that n_dichotomies is ready to list
ROUNDING = 2.0**-53


@claim("CHOOSE", "TREES")
class Trees(ConceptClass):
    """Complete decision trees over cuts that ``points`` define, which must be public or sanitized.

    Candidates are written trees: each inner node has one of the K cuts, of any column, and each
    leaf a label; cuts may repeat. Depths 1, 2, 3 have 4 K, 16 K^3 and 256 K^7 of them; without
    any cut there are two, the constant labels. Several trees may label the rows alike and each
    counts, so nothing is proven about label boosting, which this class refuses.

    Of several best trees ``erm`` takes, from the root down, the middle one of the cuts that
    lead to a best tree (columns in order, cuts upwards), and label 0 in a leaf that is tied.

    Parameters
    ----------
    depth : {1, 2, 3}
        1, 2 or 3 cuts on the way to each leaf.
    max_cuts : int of 1 or more, or None
        The largest number of cuts for a column, taken evenly by rank; None takes all gaps.

    Notes
    -----
    With K cuts and n rows, ``choose`` takes K^2 n / 128 steps for depth 2, K^3 n / 384 for depth 3.

    Examples
    --------
    >>> from cumae.concepts.trees import Trees
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> Trees(2).n_candidates(X), Trees(2).n_dichotomies(X)
    (128, 16)
    >>> print(Trees(2).choose(X, X, y, epsilon=1000.0).predict(X))
    [0 1 1 0]
    >>> print(Trees(1).erm([[1], [2], [5], [6]], [1, 1, 0, 0]))
    if column 0 >= 3.5: 0
    else: 1
    """

    label_boost_k = None
    most_rows = LARGEST_ROWS

    def __init__(self, depth: int, *, max_cuts: int | None = None) -> None:
        self.depth = check_count(depth, "depth", least=1)
        if self.depth > LARGEST_DEPTH:
            raise InvalidParameter(f"depth={depth!r} is above {LARGEST_DEPTH}; give 1, 2 or 3.")
        self.max_cuts = None if max_cuts is None else check_count(max_cuts, "max_cuts", least=1)

    @property
    def most_cuts(self) -> float:
        """The largest number of cuts, over all columns, that ``choose`` takes."""
        return LARGEST_CUTS if self.depth > 1 else math.inf

    def vc_dimension(self, n_features: int) -> int:
        """Return an upper bound, which for depth 1 without ``max_cuts`` is exact.

        A class that has at most m labellings of n rows shatters them only if 2^n <= m. Of n rows,
        d columns have at most d (n - 1) cuts that matter; with ``max_cuts`` there are at most
        d max_cuts in all, and the bound is the binary logarithm of the number of candidates,
        rounded down. Trees of depth 1 are stumps.
        """
        columns = check_count(n_features, "n_features", least=1)
        if self.depth == 1:
            bound = stump_dimension(columns)
        else:
            bound = 2**self.depth
            while 2 ** (bound + 1) <= self._count(columns * bound):
                bound += 1
        if self.max_cuts is not None:
            bound = min(bound, self._count(columns * self.max_cuts).bit_length() - 1)
        return bound

    def _count(self, cuts: int) -> int:
        leaves: int = 2**self.depth
        return cuts ** (leaves - 1) * 2**leaves if cuts else 2

    def n_candidates(self, points: ArrayLike | TreeCuts) -> int:
        return self._count(len(self._cuts(points)))

    def n_dichotomies(self, X: ArrayLike) -> int:
        rows = self._bin(X)
        if self.depth == 1:
            return count_splits(rows.codes.T)
        count = self._count(len(rows.cuts))
        if count > LARGEST_COUNT:
            raise InvalidParameter(
                f"{self!r} has {count} candidates on these rows, too many to list the labellings "
                f"that differ; use n_candidates, which is never less, or a smaller max_cuts."
            )
        whole = 2 ** len(rows) - 1
        masks = [int("0" + "".join(map(str, held))[::-1], 2) for held in rows.holds().astype(int)]
        reached = {0, whole}
        for _ in range(self.depth if masks else 0):
            reached = {
                below | above
                for mask in masks
                for below in {labels & ~mask for labels in reached}
                for above in {labels & mask for labels in reached}
            }
        return len(reached)

    @claim("CHOOSE", "TREES")
    def choose(
        self,
        points: ArrayLike | TreeCuts,
        X: ArrayLike | BinnedRows,
        y: ArrayLike,
        epsilon: float,
        *,
        random_state: int | Source | None = None,
    ) -> Tree:
        """Draw a tree with probability proportional to exp(epsilon * right / 2).

        Parameters
        ----------
        points : array-like or TreeCuts
            Public or sanitized rows whose gaps are the cuts, or the cuts themselves.
        X, y : array-like, or BinnedRows for X
            Rows, or rows binned by the same cuts, with labels 0 or 1, on which trees are scored.
        epsilon : float of 0 or more
            Privacy parameter; infinity draws among the best trees only.
        random_state : int, Source or None
            None in production; a seed or a source in tests, which voids the guarantee.
        """
        labels = check_labels(y)
        rate = self._rate(check_epsilon(epsilon), len(labels))
        return self._draw(points, X, labels, rate, source_for(random_state))

    def weight_error(self, size: int, rate: float, points: int | None = None) -> float:
        """Bound the relative error of a tree's weight; proofs/TREES.md counts the roundings.

        Parameters
        ----------
        size, points : int, and int or None
            Not used: the bound is the same for all numbers of rows and points.
        rate : float of 0 or more
            What one more row labelled right adds to the logarithm of a weight.
        """
        del size, points
        if rate == 0:
            return 0.0  # all weights are computed alike, for any rows
        leaves = 2**self.depth
        sums = (leaves - 2) * (LARGEST_CUTS + 21)
        return float(1.001 * (sums + (leaves - 1) + 11 * leaves) * ROUNDING)

    def _draw(
        self,
        points: ArrayLike | TreeCuts,
        X: ArrayLike | BinnedRows,
        y: Integers,
        rate: Fraction | float,
        source: Source,
    ) -> Tree:
        sums = self._sums(points, X, y, rate)
        paths: list[Path] = [()]
        chosen: list[int] = []
        while len(paths[0]) < sums.depth:
            drawn = [sums.draw_cut(path, source) for path in paths]
            paths = [(*p, (c, s)) for p, c in zip(paths, drawn, strict=True) for s in (0, 1)]
            chosen += drawn
        labels = [weighted_choice(sums.leaf(path), rate, source=source) for path in paths]
        return tree_of(sums.cuts, chosen, labels)

    def _law(
        self, points: ArrayLike | TreeCuts, X: ArrayLike, y: Integers, rate: float
    ) -> list[tuple[Hypothesis, float]]:
        """Return every candidate with the probability that ``_draw`` draws it with; for tests."""
        sums = self._sums(points, X, y, rate)
        found: list[tuple[Hypothesis, float]] = []

        def grow(paths: list[Path], chosen: list[int], chance: float) -> None:
            if len(paths[0]) < sums.depth:
                laws = [sums.cut_law(path) for path in paths]
                for drawn in itertools.product(range(len(sums.cuts)), repeat=len(paths)):
                    step = [law[cut] for law, cut in zip(laws, drawn, strict=True)]
                    below = [
                        (*p, (c, s)) for p, c in zip(paths, drawn, strict=True) for s in (0, 1)
                    ]
                    grow(below, [*chosen, *drawn], chance * math.prod(step))
                return
            laws = [law_of(sums.leaf(path), np.ones(2), rate) for path in paths]
            for labels in itertools.product((0, 1), repeat=len(paths)):
                step = [law[label] for law, label in zip(laws, labels, strict=True)]
                found.append((tree_of(sums.cuts, chosen, labels), chance * math.prod(step)))

        grow([()], [], 1.0)
        return found

    def _best(self, X: ArrayLike, y: Integers, weights: NDArray[Any]) -> Tree:
        rows = self._bin(X)
        check_rows(len(rows), y)
        gain = np.where(y == 1, weights, -weights)
        nodes = [rows.codes]
        gains, chosen = [gain], []
        for level in range(self.depth if len(rows.cuts) else 0):
            halves, shares = [], []
            for codes, part in zip(nodes, gains, strict=True):
                node = BinnedRows(rows.cuts, codes)
                scores = gains_of_cuts(node, part, self.depth - level)
                ties = np.flatnonzero(scores == scores.max())
                chosen.append(int(ties[(len(ties) - 1) // 2]))
                above = node.above(chosen[-1])
                halves += [node.take(~above).codes, node.take(above).codes]
                shares += [part[~above], part[above]]
            nodes, gains = halves, shares
        return tree_of(rows.cuts, chosen, [int(part.sum() > 0) for part in gains])

    def _cuts(self, points: ArrayLike | TreeCuts) -> TreeCuts:
        return points if isinstance(points, TreeCuts) else TreeCuts.of(points, self.max_cuts)

    def _bin(self, X: ArrayLike) -> BinnedRows:
        """Compare rows with the cuts between them."""
        table = check_table(X)
        return self._cuts(table).bin(table)

    def _sums(
        self,
        points: ArrayLike | TreeCuts,
        X: ArrayLike | BinnedRows,
        y: Integers,
        rate: Fraction | float,
    ) -> TreeSums:
        if not isinstance(points, TreeCuts) and not isinstance(X, BinnedRows):
            points, X = check_tables(points, X)
        cuts = self._cuts(points)
        if len(cuts) > self.most_cuts:
            raise InvalidParameter(
                f"the points have {len(cuts)} cuts, above {self.most_cuts}; give max_cuts."
            )
        rows = X if isinstance(X, BinnedRows) else cuts.bin(X)
        if rows.cuts is not cuts:
            raise InvalidParameter("X was binned by other cuts; give those as points.")
        check_rows(len(rows), y)
        self._check_rows(len(rows))
        return TreeSums(rows, y, rate, self.depth if len(cuts) else 0)
