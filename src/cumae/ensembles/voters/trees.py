"""Decision trees, all evaluated at once.

Small trees are filled up to complete ones and rows become ranks among all cuts of a column, so that
``trees_kernel`` can evaluate many rows at once. Large trees are walked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.concepts import Tree
from cumae.ensembles.voters import trees_kernel as kernel
from cumae.ensembles.voters.base import (
    StackedVoters,
    Voters,
    add_by_rank,
    broken,
    class_of,
    shares,
)
from cumae.ensembles.voters.ranks import Short

DEEPEST = 6  # of complete trees; deeper ones have more nodes than a walk visits by far
MOST_CUTS = 2**15 - 2  # of a column, as ranks have 16 bits
WALKED = DEEPEST + 1  # stands for trees that are walked


@dataclass(frozen=True)
class Nodes:
    """The nodes of one tree: go right where a column is more than the cut; -1 marks a leaf."""

    columns: Integers
    cuts: Floats
    left: Integers
    right: Integers
    labels: Integers
    depth: int
    width: int  # 0 if the tree does not know
    single: bool  # whether rows are rounded to 32 bits


class TreeStack(StackedVoters):
    """The shared part of complete and large trees."""

    single: bool


@dataclass(frozen=True, eq=False)
class TreeVoters(TreeStack):
    """Complete trees of one even depth.

    Parameters
    ----------
    n_classes, width, depth : int
        Numbers of classes, columns and levels.
    single : bool
        Whether rows are rounded to 32 bits, as scikit-learn does.
    used : array of int
        Columns that have cuts.
    starts, cuts : array
        Where the cuts of each used column begin, and the distinct cuts in order.
    columns, places : array of int
        For each tree and inner node, level by level: which used column, and which of its cuts.
    labels : array of int
        For each tree and leaf, the class.
    """

    kind: ClassVar[str] = "trees"
    model_axes: ClassVar[Mapping[str, int]] = {"columns": 0, "places": 0, "labels": 0}

    n_classes: int
    width: int
    depth: int
    single: bool
    used: Integers
    starts: Integers
    cuts: Floats
    columns: NDArray[np.int32]
    places: Short
    labels: Short

    def __post_init__(self) -> None:
        self._check(
            used=(np.int64, 1),
            starts=(np.int64, 1),
            cuts=(np.float64, 1),
            columns=(np.int32, 2),
            places=(np.int16, 2),
            labels=(np.int16, 2),
        )
        shape = (len(self), 2**self.depth - 1) if self.depth in range(2, DEEPEST + 1, 2) else ()
        if (
            self.columns.shape != shape
            or self.places.shape != shape
            or self.labels.shape != (len(self), 2**self.depth)
            or np.any(self.used < 0)
            or np.any(self.columns < 0)
            or np.any(self.columns >= len(self.used))
        ):
            raise broken(self.kind)
        self._check_starts(self.starts, len(self.used), len(self.cuts))
        self._check_labels(self.labels)

    def __len__(self) -> int:
        return int(self.columns.shape[0])

    def _columns_used(self) -> Integers:
        return self.used

    @functools.cached_property  # each answer asks
    def adder(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        trees = (self.columns, self.places, self.labels, self.depth)
        return add_by_rank, (self.used, self.starts, self.cuts, kernel.complete, trees)


@dataclass(frozen=True, eq=False)
class WalkVoters(TreeStack):
    """Large trees, one behind the other.

    Parameters
    ----------
    n_classes, width, single : int, int, bool
        As for ``TreeVoters``.
    roots : array of int
        Where each tree begins; then the number of all nodes.
    columns, cuts, left, right : array
        For each node, its column, cut and children; a leaf has column -1.
    labels : array of int
        For each node, the class.
    """

    kind: ClassVar[str] = "walks"

    n_classes: int
    width: int
    single: bool
    roots: Integers
    columns: Integers
    cuts: Floats
    left: Integers
    right: Integers
    labels: Integers

    def __post_init__(self) -> None:
        names = ("columns", "left", "right", "labels")
        shapes: dict[str, tuple[type, int]] = dict.fromkeys(names, (np.int64, 1))
        self._check(roots=(np.int64, 1), cuts=(np.float64, 1), **shapes)
        count, inner = len(self.columns), self.columns >= 0
        children = (self.left[inner], self.right[inner])
        if (
            any(len(array) != count for array in (self.cuts, self.left, self.right, self.labels))
            or np.any(self.columns < -1)
            # Children lie behind their parent, so that every walk ends.
            or any(np.any(to <= np.flatnonzero(inner)) or np.any(to >= count) for to in children)
        ):
            raise broken(self.kind)
        self._check_starts(self.roots, len(self.roots) - 1, count, least=1)
        self._check_labels(self.labels)

    def __len__(self) -> int:
        return len(self.roots) - 1

    def _columns_used(self) -> Integers:
        return self.columns

    @functools.cached_property  # each answer asks
    def adder(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        nodes = (self.columns, self.cuts, self.left, self.right, self.labels)
        return kernel.walk, (self.roots, *nodes)

    def parts(self, n: int) -> list[Voters]:
        found: list[Voters] = []
        for part in shares(len(self), n):
            first, last = self.roots[part.start], self.roots[part.stop]
            found.append(
                replace(
                    self,
                    roots=self.roots[part.start : part.stop + 1] - first,
                    columns=self.columns[first:last],
                    cuts=self.cuts[first:last],
                    left=self.left[first:last] - first,
                    right=self.right[first:last] - first,
                    labels=self.labels[first:last],
                )
            )
        return found


def nodes_of(model: Any, n_classes: int) -> Nodes:
    """Read a fitted tree of scikit-learn, or a ``Tree`` of ``cumae.concepts``."""
    if type(model) is Tree:
        inner, size = len(model.columns), 2 * len(model.columns) + 1
        places = np.arange(size)
        with np.errstate(over="ignore", under="ignore"):
            # x >= cut and x > the next float below are the same.
            cuts = np.nextafter(np.array(model.cuts, dtype=np.float64), -np.inf)
        return Nodes(
            np.append(np.array(model.columns, dtype=np.int64), np.full(size - inner, -1)),
            np.append(cuts, np.zeros(size - inner)),
            2 * places + 1,
            2 * places + 2,
            np.append(np.zeros(inner, dtype=np.int64), np.array(model.labels, dtype=np.int64)),
            model.depth,
            0,
            single=False,
        )
    if model.n_outputs_ != 1:
        raise TypeError
    tree = model.tree_
    left = tree.children_left
    classes = np.array([class_of(label, n_classes) for label in model.classes_], dtype=np.int64)
    return Nodes(
        np.where(left < 0, -1, tree.feature),
        tree.threshold,
        left,
        tree.children_right,
        classes[np.argmax(tree.value[:, 0, :], axis=1)],
        tree.max_depth,
        model.n_features_in_,
        single=True,
    )


def stack_trees(trees: Sequence[Nodes], n_classes: int) -> list[Voters]:
    """Stack trees; all of them have the same width and rounding."""
    groups: dict[int, list[Nodes]] = {}
    for tree in trees:
        groups.setdefault(int(tiers(tree.depth)), []).append(tree)
    return stack_tiers({tier: _join(some, n_classes) for tier, some in groups.items()})


def tiers(depths: Any) -> Any:
    """Return the even depth up to which trees are filled; ``WALKED`` for those that are not."""
    even = np.maximum(2, depths + np.asarray(depths) % 2)
    return np.where(even > DEEPEST, WALKED, even)


def stack_tiers(groups: Mapping[int, WalkVoters]) -> list[Voters]:
    """Stack trees that lie one behind the other, by their tiers."""
    found: list[Voters] = []
    for tier in sorted(groups):
        found += [groups[tier]] if tier == WALKED else _stack_complete(groups[tier], tier)
    return found


def _join(trees: Sequence[Nodes], n_classes: int) -> WalkVoters:
    sizes = [len(tree.columns) for tree in trees]
    roots = np.append(0, np.cumsum(sizes)).astype(np.int64)
    offset = np.repeat(roots[:-1], sizes)

    def joined(name: str, kind: type) -> NDArray[Any]:
        return np.concatenate([getattr(tree, name) for tree in trees]).astype(kind)

    return WalkVoters(
        n_classes,
        trees[0].width,
        trees[0].single,
        roots,
        joined("columns", np.int64),
        joined("cuts", np.float64),
        joined("left", np.int64) + offset,
        joined("right", np.int64) + offset,
        joined("labels", np.int64),
    )


def _stack_complete(all_nodes: WalkVoters, depth: int) -> list[Voters]:
    """Fill trees up to complete ones: below a leaf both sides lead to the leaf again."""
    level = all_nodes.roots[:-1].reshape(-1, 1)
    columns, cuts = [], []
    for _ in range(depth):
        leaf = all_nodes.columns[level] < 0
        columns.append(np.where(leaf, 0, all_nodes.columns[level]))
        cuts.append(np.where(leaf, np.inf, all_nodes.cuts[level]))
        sides = [np.where(leaf, level, to[level]) for to in (all_nodes.left, all_nodes.right)]
        level = np.stack(sides, axis=2).reshape(len(all_nodes), -1)
    every_column, every_cut = np.hstack(columns), np.hstack(cuts)
    labels = all_nodes.labels[level].astype(np.int16)
    return _ranked(every_column, every_cut, labels, all_nodes)


def _ranked(columns: Integers, cuts: Floats, labels: Short, like: WalkVoters) -> list[Voters]:
    """Replace each cut by its place among the cuts of its column."""
    places = np.zeros(columns.shape, dtype=np.int16)
    used, columns = np.unique(columns, return_inverse=True)
    starts, kept = [0], []
    for column in range(len(used)):
        mine = columns == column
        distinct, place = np.unique(cuts[mine], return_inverse=True)
        if len(distinct) > MOST_CUTS:
            return [
                voters
                for half in shares(len(columns), 2)
                for voters in _ranked(used[columns[half]], cuts[half], labels[half], like)
            ]
        places[mine] = place
        kept.append(distinct)
        starts.append(starts[-1] + len(distinct))
    complete = TreeVoters(
        like.n_classes,
        like.width,
        int(labels.shape[1]).bit_length() - 1,
        like.single,
        used,
        np.array(starts, dtype=np.int64),
        np.concatenate(kept),
        columns.astype(np.int32),
        places,
        labels,
    )
    return [complete]
