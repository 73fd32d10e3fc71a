"""Decision trees of depth 1 to 3 over a given set of cuts."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts.base import ConceptClass, Hypothesis, cell, plain, text
from cumae.concepts.columns import distinct_points, middle
from cumae.concepts.kernels import trees as kernel
from cumae.concepts.stumps import count_splits, stump_dimension
from cumae.data import (
    check_labels,
    check_number,
    check_rows,
    check_table,
    check_tables,
    check_tuple,
)
from cumae.errors import InvalidData, InvalidParameter
from cumae.parameters import check_count
from cumae.privacy.validation import check_epsilon
from cumae.randomness import Source, source_for, weighted_choice

LARGEST_DEPTH = 3
LARGEST_CUTS = 4096  # for trees of depth 2 and 3: the error of the weights grows with the cuts
LARGEST_ROWS = 2**27  # up to here products of a row count and 26 bits are exact
LARGEST_COUNT = 10**6  # candidates that n_dichotomies is ready to list
ROUNDING = 2.0**-53

Path: TypeAlias = tuple[tuple[int, int], ...]  # (cut, side) from the root down; side 1 is above


@dataclass(frozen=True)
class Tree(Hypothesis):
    """A complete binary tree: go above where a column is at least the cut, else below.

    Inner nodes are listed level by level, each level from below to above; then follow the labels
    of the leaves in the same order. A tree without inner nodes has a single label.

    Examples
    --------
    >>> from cumae.concepts.trees import Tree
    >>> tree = Tree((0, 1, 1), (2.5, 10.0, 20.0), (0, 1, 0, 0))
    >>> tree.predict([[1, 15], [3, 15], [1, 5]]).tolist()
    [1, 0, 0]
    >>> print(tree)
    if column 0 >= 2.5:
        if column 1 >= 20.0: 0
        else: 0
    else:
        if column 1 >= 10.0: 1
        else: 0
    """

    columns: tuple[int, ...]
    cuts: tuple[float, ...]
    labels: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("columns", "cuts", "labels"):
            check_tuple(getattr(self, name), name)
        for column in self.columns:
            check_count(column, "a column")
        for cut in self.cuts:
            check_number(cut, "a cut")
        inner, leaves = len(self.columns), len(self.labels)
        whole = len(self.cuts) == inner == leaves - 1 and leaves & inner == 0
        if not whole or any(label not in (0, 1) for label in self.labels):
            raise InvalidParameter(
                f"{inner} columns, {len(self.cuts)} cuts and {leaves} labels are no tree; give "
                "2^depth - 1 columns and cuts, and 2^depth labels, each 0 or 1."
            )

    def predict(self, X: ArrayLike) -> Integers:
        table = check_table(X)
        if len(table) == 0:
            return np.zeros(0, dtype=np.int64)
        if max(self.columns, default=-1) >= table.shape[1]:
            raise InvalidData(
                f"X has {table.shape[1]} columns, but the tree looks at column "
                f"{max(self.columns)}; give the columns it was chosen from."
            )
        columns, cuts = np.array(self.columns, dtype=np.int64), np.array(self.cuts, dtype=float)
        rows, node = np.arange(len(table)), np.zeros(len(table), dtype=np.int64)
        for _ in range(self.depth):
            node = 2 * node + 1 + (table[rows, columns[node]] >= cuts[node])
        return np.array(self.labels, dtype=np.int64)[node - len(self.columns)]

    @property
    def depth(self) -> int:
        """Number of cuts on the way to a leaf."""
        return len(self.labels).bit_length() - 1

    def _fields(self) -> dict[str, Any]:
        return {
            "columns": [int(column) for column in self.columns],
            "cuts": [plain(cut) for cut in self.cuts],
            "labels": [int(label) for label in self.labels],
        }

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Tree:
        columns, cuts, labels = fields["columns"], fields["cuts"], fields["labels"]
        return cls(
            tuple(columns),
            tuple(float(cell(cut)) for cut in cuts),
            tuple(labels),
        )

    def __str__(self) -> str:
        return "\n".join(self._lines(0)).lstrip()

    def _lines(self, node: int) -> list[str]:
        if node >= len(self.columns):
            return [f" {self.labels[node - len(self.columns)]}"]
        lines = []
        test = f"if column {self.columns[node]} >= {text(self.cuts[node])}:"
        for head, child in ((test, 2 * node + 2), ("else:", 2 * node + 1)):
            body = self._lines(child)
            # A leaf follows on the same line; anything else goes below, one step to the right.
            lines += [head + body[0]] if len(body) == 1 else [head, *("    " + b for b in body)]
        return lines


def cuts_of(points: ArrayLike, max_cuts: int | None = None) -> list[tuple[int, float]]:
    """Return (column, value) for each cut in the middle between neighbouring points of a column.

    Parameters
    ----------
    points
        Public or sanitized rows.
    max_cuts
        Most cuts for a column; where it has more, so many are taken, evenly by rank.

    Examples
    --------
    >>> from cumae.concepts.trees import cuts_of
    >>> cuts_of([[1, 0], [2, 0], [4, 1]])
    [(0, 1.5), (0, 3.0), (1, 0.5)]
    >>> cuts_of([[1], [2], [3], [4]], max_cuts=1)
    [(0, 2.5)]
    """
    if max_cuts is not None:
        check_count(max_cuts, "max_cuts", least=1)
    found = []
    for number, column in enumerate(check_table(points, name="points").T):
        values = distinct_points(column)
        cuts = middle(values[:-1], values[1:])
        if max_cuts is not None and len(cuts) > max_cuts:
            # The middles of so many blocks of gaps, as equal as can be.
            cuts = cuts[(2 * np.arange(max_cuts) + 1) * len(cuts) // (2 * max_cuts)]
        found += [(number, float(cut)) for cut in cuts]
    return found


class TreeCuts:
    """Cuts in order, ready to be used again and again: give it as ``points`` to ``Trees``.

    Parameters
    ----------
    pairs
        (column, value) of each cut, from public or sanitized data; repeated ones count once.
    n_features
        Number of columns of the table.

    Examples
    --------
    >>> from cumae.concepts.trees import TreeCuts, Trees
    >>> cuts = TreeCuts([(0, 2.5), (1, 0.5)], n_features=2)
    >>> rows = cuts.bin([[1, 0], [2, 1], [3, 0], [4, 1]])
    >>> tree = Trees(2).choose(cuts, rows, [0, 1, 1, 0], epsilon=1000.0)
    >>> tree.predict([[1, 0], [2, 1], [3, 0], [4, 1]]).tolist()
    [0, 1, 1, 0]
    """

    def __init__(self, pairs: Iterable[tuple[int, float]], n_features: int) -> None:
        self.n_features = check_count(n_features, "n_features", least=1)
        ordered = None
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            ordered = sorted({(int(column), float(value)) for column, value in pairs})
        if ordered is None:
            raise InvalidParameter("pairs are no pairs of numbers; give (column, value) of cuts.")
        self.column = np.array([column for column, _ in ordered], dtype=np.int64)
        self.value = np.array([value for _, value in ordered], dtype=np.float64)
        if np.any((self.column < 0) | (self.column >= n_features) | np.isnan(self.value)):
            raise InvalidParameter(
                f"pairs hold a value that is NaN or a column outside 0 to {n_features - 1}."
            )
        self.starts = np.searchsorted(self.column, np.arange(n_features + 1)).astype(np.int64)

    @classmethod
    def of(cls, points: ArrayLike, max_cuts: int | None = None) -> TreeCuts:
        """Take the cuts from public or sanitized points, as ``cuts_of`` does."""
        table = check_table(points, name="points")
        return cls(cuts_of(table, max_cuts), table.shape[1])

    def __len__(self) -> int:
        return len(self.value)

    def bin(self, X: ArrayLike) -> BinnedRows:
        """Compare rows with all cuts; the result stands for ``X`` in ``Trees.choose``."""
        table = check_table(X, self.n_features)
        return BinnedRows(self, kernel.codes_of(table, self.starts, self.value))


@dataclass(frozen=True, eq=False, repr=False)
class BinnedRows:
    """Rows of which only the number of cuts at or below each of their values is kept."""

    cuts: TreeCuts
    codes: kernel.Codes  # a line for each column

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    def __repr__(self) -> str:
        return f"BinnedRows({len(self)} rows, {len(self.cuts)} cuts)"

    def take(self, rows: Any) -> BinnedRows:
        """Return some of the rows: a slice, a mask or row numbers."""
        return BinnedRows(self.cuts, np.ascontiguousarray(self.codes[:, rows]))

    def above(self, cut: int) -> NDArray[np.bool_]:
        """Return for each row whether its value is at least that cut."""
        column = self.cuts.column[cut]
        return np.asarray(self.codes[column] > cut - self.cuts.starts[column])

    def holds(self) -> NDArray[np.bool_]:
        """Return ``above`` for all cuts: a line for each."""
        rank = np.arange(len(self.cuts)) - self.cuts.starts[self.cuts.column]
        return np.asarray(self.codes[self.cuts.column] > rank[:, None])


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
    depth
        1, 2 or 3 cuts on the way to each leaf.
    max_cuts
        Most cuts for a column, taken evenly by rank; None takes all gaps.

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

    def __init__(self, depth: int, *, max_cuts: int | None = None) -> None:
        self.depth = check_count(depth, "depth", least=1)
        if self.depth > LARGEST_DEPTH:
            raise InvalidParameter(f"depth={depth!r} is above {LARGEST_DEPTH}; give 1, 2 or 3.")
        self.max_cuts = None if max_cuts is None else check_count(max_cuts, "max_cuts", least=1)

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
        points
            Public or sanitized rows whose gaps are the cuts, or the cuts themselves.
        X, y
            Rows, or rows binned by the same cuts, with labels 0 or 1, on which trees are scored.
        epsilon, random_state
            As in every concept class.
        """
        labels = check_labels(y)
        rate = self._rate(check_epsilon(epsilon), len(labels))
        return self._draw(points, X, labels, rate, source_for(random_state))

    def weight_error(self, size: int, rate: float, points: int | None = None) -> float:
        """Bound the relative error of a tree's weight; proofs/TREES.md counts the roundings."""
        del size, points
        if rate == 0:
            return 0.0  # all weights are computed alike, whatever the rows are
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
        return _tree(sums.cuts, chosen, labels)

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
            laws = [_law(sums.leaf(path), np.ones(2), rate) for path in paths]
            for labels in itertools.product((0, 1), repeat=len(paths)):
                step = [law[label] for law, label in zip(laws, labels, strict=True)]
                found.append((_tree(sums.cuts, chosen, labels), chance * math.prod(step)))

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
                scores = _gains_of_cuts(node, part, self.depth - level)
                ties = np.flatnonzero(scores == scores.max())
                chosen.append(int(ties[(len(ties) - 1) // 2]))
                above = node.above(chosen[-1])
                halves += [node.take(~above).codes, node.take(above).codes]
                shares += [part[~above], part[above]]
            nodes, gains = halves, shares
        return _tree(rows.cuts, chosen, [int(part.sum() > 0) for part in gains])

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
        if len(cuts) > LARGEST_CUTS and self.depth > 1:
            raise InvalidParameter(
                f"the points have {len(cuts)} cuts, above {LARGEST_CUTS}; give max_cuts."
            )
        rows = X if isinstance(X, BinnedRows) else cuts.bin(X)
        if rows.cuts is not cuts:
            raise InvalidParameter("X was binned by other cuts; give those as points.")
        check_rows(len(rows), y)
        if len(rows) >= LARGEST_ROWS:
            raise InvalidParameter(f"X has {len(rows)} rows, {LARGEST_ROWS} or more; take fewer.")
        return TreeSums(rows, y, rate, self.depth if len(cuts) else 0)


class TreeSums:
    """The sums over all trees, from which cuts are drawn from the root down.

    ``node(path)`` are the weights of the cuts at the end of a path, as q^best * rest with
    q = exp(rate): each is the sum over all ways to complete the tree below that cut.
    """

    def __init__(self, rows: BinnedRows, y: Integers, rate: Fraction | float, depth: int) -> None:
        self.cuts, self.rate, self.depth = rows.cuts, rate, depth
        self._size = np.bincount(y, minlength=2)
        if depth == 0:
            return
        self._decay = decays(rate, len(y))
        words, split = kernel.pack(rows.codes, rows.cuts.starts, y)
        self._singles = kernel.single_counts(words, split)
        self._sums: list[tuple[Integers, Floats]] = []  # below each cut, by length of the path
        if depth == 1:
            return
        self._pairs = kernel.pair_counts(words, split)
        counts = (self._size, self._singles, self._pairs)
        if depth == 2:
            self._sums = [kernel.sums_of_stumps(*counts, self._decay)]
            return
        self._triples = kernel.triple_counts(words, split, rows.cuts.column, self._pairs)
        inner = kernel.sums_in_two(*counts, self._triples, self._decay)
        self._sums = [kernel.sums_of_pairs(*inner, self._decay), inner]

    def node(self, path: Path) -> tuple[Integers, Floats]:
        """Return the weights of the cuts at the end of a path."""
        if len(path) == self.depth - 1:
            best, rest = np.empty(len(self.cuts), dtype=np.int64), np.empty(len(self.cuts))
            kernel.last_weights(*self._held(path), self._decay, best, rest)
            return best, rest
        best, rest = self._sums[len(path)]
        if path:
            ((cut, side),) = path
            best, rest = best[cut, :, side], rest[cut, :, side]
        return best.sum(axis=1), rest.prod(axis=1)

    def leaf(self, path: Path) -> Integers:
        """Return how many rows of each label reach a leaf."""
        if not path:
            return self._size
        inside, held = self._held(path[:-1])
        cut, side = path[-1]
        return np.asarray(held[:, cut] if side else inside - held[:, cut])

    def _held(self, path: Path) -> tuple[Integers, Integers]:
        """Return by label the rows at the end of a path, and those that each cut holds for."""
        if not path:
            return self._size, self._singles
        if len(path) == 1:
            return kernel.in_one(self._size, self._singles, self._pairs, *path[0])
        counts = (self._size, self._singles, self._pairs, self._triples)
        return kernel.in_two(*counts, *path[0], *path[1])

    def draw_cut(self, path: Path, source: Source) -> int:
        """Draw the cut at the end of a path, exactly with the weights of ``node``.

        A float of 1 or more is a whole number of 2^-52: it goes as a count, and the score as it is.
        """
        best, rest = self.node(path)
        counts = np.array([int(value) for value in np.ldexp(rest, 52)], dtype=object)
        return weighted_choice(best, self.rate, counts=counts, source=source)

    def cut_law(self, path: Path) -> Floats:
        """Return the probabilities of ``draw_cut``, for tests."""
        return _law(*self.node(path), float(self.rate))


def decays(rate: Fraction | float, rows: int) -> Floats:
    """Return exp(-rate d) for d = 0 to ``rows``, right to 20 roundings where it is above 1e-300.

    Rounding rate * d before taking the exponential would cost rate * d times as much. So the
    leading 26 bits of the rate, whose product with d < 2^27 is exact, have an exponential of
    their own.
    """
    if rate == math.inf:
        return np.append(1.0, np.zeros(rows))
    mantissa, exponent = math.frexp(float(rate))
    leading = math.ldexp(math.floor(math.ldexp(mantissa, 26)), exponent - 26)
    rest = float(Fraction(rate) - Fraction(leading))
    distance = np.arange(rows + 1, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.exp(-leading * distance) * np.exp(-rest * distance))


def _law(best: Integers, rest: Floats, rate: float) -> Floats:
    behind = (best - best.max()).astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinity times 0, which is not used
        weights = rest * np.exp(np.where(behind == 0, 0.0, rate * behind))
    return np.asarray(weights / weights.sum())


def _tree(cuts: TreeCuts, chosen: Iterable[int], labels: Iterable[int]) -> Tree:
    places = list(chosen)
    columns, values = cuts.column[places].tolist(), cuts.value[places].tolist()
    return Tree(tuple(columns), tuple(values), tuple(labels))


def _gains_of_cuts(rows: BinnedRows, gain: NDArray[Any], depth: int) -> NDArray[Any]:
    """Return for each cut the gain of the best tree with it at the root; -1 if it is not best.

    Gains of more than 62 bits are first rounded down to what 64 bits can add. That takes less than
    one unit a row from every tree, so only cuts within that of the top need the full numbers.
    """
    codes, starts = rows.codes, rows.cuts.starts
    if gain.dtype != object:
        return np.asarray(kernel.best_gains(codes, starts, gain.astype(np.int64), depth))
    shift = max(0, int(sum(abs(gain))).bit_length() - 60)
    rough = kernel.best_gains(codes, starts, (gain >> shift).astype(np.int64), depth)
    found = np.full(len(rough), -1, dtype=object)
    for cut in np.flatnonzero(rough >= rough.max() - len(gain)):
        above = rows.above(int(cut))
        found[cut] = sum(
            _best_gain(rows.take(side), gain[side], depth - 1) for side in (above, ~above)
        )
    return found


def _best_gain(rows: BinnedRows, gain: NDArray[Any], depth: int) -> int:
    if depth == 0 or len(gain) == 0:
        return int(max(0, sum(gain.tolist())))
    return int(_gains_of_cuts(rows, gain, depth).max())


# Plain forms of what the kernels compute. ``holds`` is a table of cuts and rows.


def plain_gains(holds: NDArray[np.bool_], gain: NDArray[Any], depth: int) -> NDArray[Any]:
    """Return for each cut what the best tree with it at the root gains over label 0 everywhere."""
    if depth == 1:
        above = holds.astype(gain.dtype) @ gain
        return np.asarray(np.maximum(above, 0) + np.maximum(gain.sum() - above, 0))
    found = [
        sum(plain_gains(holds[:, side], gain[side], depth - 1).max() for side in (held, ~held))
        for held in holds
    ]
    return np.array(found, dtype=gain.dtype)


def plain_log_sum(holds: NDArray[np.bool_], y: Integers, rate: float, depth: int) -> float:
    """Return the logarithm of the sum of exp(rate * right) over all trees."""
    if depth == 0:
        return float(np.logaddexp(rate * (y == 0).sum(), rate * (y == 1).sum()))
    return float(
        logsumexp(
            [
                sum(plain_log_sum(holds[:, s], y[s], rate, depth - 1) for s in (held, ~held))
                for held in holds
            ]
        )
    )
