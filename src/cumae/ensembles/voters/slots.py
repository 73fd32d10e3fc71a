"""Slots: the models of all shards as records of one size, for any rows of a shard.

A thief of a file sees how long an encrypted ensemble is. So each shard has a slot whose
size follows from the declared estimator, the number of classes and columns, and the number of rows
of a shard. A shard that votes for one class always, and one whose model does not fit into a slot,
has a slot like any other. Voters are made from slots, in memory as well as from a file.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.concepts import (
    ConceptClass,
    Intervals,
    Keyed,
    KeyRuns,
    Points,
    Rectangle,
    Rectangles,
    Stumps,
    Thresholds,
    Trees,
    UnionOfIntervals,
)
from cumae.ensembles.voters.base import Voters, broken
from cumae.ensembles.voters.columns import BoxVoters, bound_of, runs_of, stack_runs
from cumae.ensembles.voters.keys import key_ends, stack_keys
from cumae.ensembles.voters.linear import LINEAR, LinearVoters, Scores, is_affine, scores_of
from cumae.ensembles.voters.trees import Nodes, WalkVoters, nodes_of, stack_tiers, tiers

Records: TypeAlias = NDArray[Any]  # one for each shard, with named fields
Slots: TypeAlias = NDArray[np.uint8]  # the same as bytes: one row for each shard

MODEL = -1  # replaces a class where a shard has a model
LEAF, NO_NODE = -1, -2  # instead of a column
SHORT = 2**15  # whole numbers below it fit into 16 bits
MOST_CELLS = 2**24  # of a slot: numpy counts its bytes with 31 bits
# Errors that reading an unusual model may raise. Its shard votes for class 0.
UNUSUAL = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@claim("SHARDS", "STORE")
class SlotForm(ABC):
    """The form of the slots of one ensemble; all of it is public."""

    kind: ClassVar[str]
    n_classes: int

    @functools.cached_property
    def record(self) -> np.dtype[Any]:
        """The fields of a slot; the first is the class of a shard without a model."""
        return np.dtype([("constant", "<i2"), *self._fields()])

    @property
    def slot_bytes(self) -> int:
        """Size of a slot."""
        return int(self.record.itemsize)

    @claim("SHARDS", "STORE")
    def pack(self, models: Sequence[Any]) -> Slots:
        """Return the slots of models, one for each shard.

        Parameters
        ----------
        models : sequence
            A number always votes for that class, and None for the first one. So does a model that
            is not of this form.
        """
        slots = np.zeros(len(models), dtype=self.record)
        read: dict[int, Any] = {}
        for shard, model in enumerate(models):
            if isinstance(model, int):
                slots["constant"][shard] = model
            elif model is not None:
                try:
                    one = self._read(model)
                except UNUSUAL:
                    one = None
                if one is not None:
                    read[shard] = one
        places = np.fromiter(read, dtype=np.int64, count=len(read))
        slots["constant"][places] = MODEL
        if read:
            self._write(slots, places, list(read.values()))
        return slots.view(np.uint8).reshape(len(models), self.slot_bytes)

    def voters(self, slots: Slots) -> tuple[list[Voters], Integers]:
        """Return what votes, and how many shards always vote for each class."""
        if slots.dtype != np.uint8 or slots.ndim != 2 or slots.shape[1] != self.slot_bytes:
            raise broken(self.kind)
        records = np.ascontiguousarray(slots).view(self.record).reshape(len(slots))
        fixed = records["constant"]
        if np.any(fixed < MODEL) or np.any(fixed >= self.n_classes):
            raise broken(self.kind)
        constant = np.bincount(fixed[fixed >= 0], minlength=self.n_classes)
        models = records[fixed == MODEL]
        found = self._stacked(models) if len(models) else []
        return found, constant

    def to_facts(self) -> dict[str, Any]:
        """Return the kind and the numbers of the form, for storing."""
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]

    @abstractmethod
    def _fields(self) -> list[tuple[Any, ...]]:
        """Return the fields of a slot beside the constant class, for numpy."""

    @abstractmethod
    def _read(self, model: Any) -> Any:
        """Return what a slot holds of a model; None if it does not fit."""

    @abstractmethod
    def _write(self, slots: Records, places: Integers, read: list[Any]) -> None:
        """Write what was read into the slots at these places."""

    @abstractmethod
    def _stacked(self, records: Records) -> list[Voters]:
        """Return the voters of slots that all hold a model."""


@claim("SHARDS", "STORE")
@dataclass(frozen=True)
class TreeSlots(SlotForm):
    """Slots of decision trees with a bounded number of nodes.

    Parameters
    ----------
    n_classes, width : int
        Numbers of classes and columns; a width of 0 for trees that do not know it.
    single : bool
        Whether rows are rounded to 32 bits, as scikit-learn does.
    nodes : int
        The most nodes that a tree can have.
    """

    kind: ClassVar[str] = "trees"

    n_classes: int
    width: int
    single: bool
    nodes: int

    def _fields(self) -> list[tuple[Any, ...]]:
        whole = "<i2" if max(self.nodes, self.width) < SHORT and self.width else "<i4"
        shape = (self.nodes,)
        names = ("columns", "left", "right")
        return [
            ("depth", "<i4"),
            ("numbers", "<f8", shape),
            *((one, whole, shape) for one in names),
        ]

    def _read(self, model: Any) -> Nodes | None:
        nodes = model if type(model) is Nodes else nodes_of(_last_step(model), self.n_classes)
        fits = (nodes.width, nodes.single) == (self.width, self.single)
        return nodes if fits and 0 < len(nodes.columns) <= self.nodes else None

    def _write(self, slots: Records, places: Integers, read: list[Nodes]) -> None:
        slots["columns"] = NO_NODE
        where = _cells(places, np.array([len(tree.columns) for tree in read]))
        columns = np.concatenate([tree.columns for tree in read])
        labels = np.concatenate([tree.labels for tree in read])
        cuts = np.concatenate([tree.cuts for tree in read])
        slots["columns"][where] = np.where(columns < 0, LEAF, columns)
        slots["numbers"][where] = np.where(columns < 0, labels, cuts)
        for name in ("left", "right"):  # a leaf has none, whatever stands there
            children = np.concatenate([getattr(tree, name) for tree in read])
            slots[name][where] = np.where(columns < 0, 0, children)
        slots["depth"][places] = [tree.depth for tree in read]

    def _stacked(self, records: Records) -> list[Voters]:
        tier = tiers(records["depth"].astype(np.int64))
        groups = {int(one): self._joined(records[tier == one]) for one in np.unique(tier)}
        return stack_tiers(groups)

    def _joined(self, records: Records) -> WalkVoters:
        """Return trees one behind the other."""
        there = records["columns"] != NO_NODE
        sizes = there.sum(axis=1)
        roots = np.append(0, np.cumsum(sizes)).astype(np.int64)
        offset = np.repeat(roots[:-1], sizes)
        columns = records["columns"][there].astype(np.int64)
        numbers = records["numbers"][there]
        leaf = columns < 0
        with np.errstate(invalid="ignore"):  # a cut is no label
            labels = np.where(leaf, numbers, 0).astype(np.int64)
        left, right = (records[name][there].astype(np.int64) + offset for name in ("left", "right"))
        cuts = np.where(leaf, 0.0, numbers)
        given = (roots, columns, cuts, left, right, labels)
        return WalkVoters(self.n_classes, self.width, self.single, *given)


@claim("SHARDS", "STORE")
@dataclass(frozen=True)
class LinearSlots(SlotForm):
    """Slots of linear models, with scalers in front of them folded in.

    Parameters
    ----------
    n_classes, width : int
        Numbers of classes and columns.
    """

    kind: ClassVar[str] = "linear"

    n_classes: int
    width: int

    def _fields(self) -> list[tuple[Any, ...]]:
        most = 1 if self.n_classes == 2 else self.n_classes  # scores
        return [
            ("scores", "<i2"),
            ("labels", "<i2", (self.n_classes,)),
            ("offsets", "<f8", (most,)),
            ("weights", "<f8", (most, self.width)),
        ]

    def _read(self, model: Any) -> Scores | None:
        *scalers, last = _steps(model)
        found = scores_of(scalers, last, self.n_classes)
        most = self.record["offsets"].shape[0]
        fits = found.weights.shape[1] == self.width and len(found.weights) <= most
        return found if fits and len(found.labels) <= self.n_classes else None

    def _write(self, slots: Records, places: Integers, read: list[Scores]) -> None:
        for place, one in zip(places.tolist(), read, strict=True):
            scores = len(one.weights)
            slots["scores"][place] = scores
            slots["labels"][place, : len(one.labels)] = one.labels
            slots["offsets"][place, :scores] = one.offsets
            slots["weights"][place, :scores] = one.weights

    def _stacked(self, records: Records) -> list[Voters]:
        most = self.record["offsets"].shape[0]
        if np.any(records["scores"] < 1) or np.any(records["scores"] > most):
            raise broken(self.kind)
        keys = np.column_stack([records["scores"], records["labels"]])
        kinds, which = np.unique(keys, axis=0, return_inverse=True)
        found: list[Voters] = []
        for number, (scores, *labels) in enumerate(kinds.tolist()):
            mine = records[which.reshape(-1) == number]
            weights = np.ascontiguousarray(mine["weights"][:, :scores].transpose(1, 2, 0))
            offsets = np.ascontiguousarray(mine["offsets"][:, :scores].T)
            own = np.array(labels[: max(2, scores)], dtype=np.int64)
            found.append(LinearVoters(self.n_classes, weights, offsets, own))
        return found


@claim("SHARDS", "STORE")
@dataclass(frozen=True)
class RunSlots(SlotForm):
    """Slots of rules about single columns: thresholds, intervals, points and stumps.

    Parameters
    ----------
    n_classes, width : int
        Numbers of classes and columns; a width of 0 for rules that may look at any column.
    runs : int
        The most runs of values in which a rule labels 1.
    """

    kind: ClassVar[str] = "cuts"

    n_classes: int
    width: int
    runs: int

    def _fields(self) -> list[tuple[Any, ...]]:
        names = (("columns", "<i4"), ("lows", "<f8"), ("highs", "<f8"))
        return [("count", "<i2"), *((name, kind, (self.runs,)) for name, kind in names)]

    def _read(self, model: Any) -> list[tuple[int, float, float]] | None:
        found = runs_of(model)
        return None if found is None or len(found[1]) > self.runs else found[1]

    def _write(
        self, slots: Records, places: Integers, read: list[list[tuple[int, float, float]]]
    ) -> None:
        sizes = np.array([len(runs) for runs in read])
        slots["count"][places] = sizes
        table = np.array([run for runs in read for run in runs], dtype=np.float64).reshape(-1, 3)
        where = _cells(places, sizes)
        for number, name in enumerate(("columns", "lows", "highs")):
            slots[name][where] = table[:, number]

    def _stacked(self, records: Records) -> list[Voters]:
        there = np.arange(self.runs) < records["count"][:, None]
        columns = records["columns"][there].astype(np.int64)
        lows, highs = records["lows"][there], records["highs"][there]
        if np.isnan(lows).any() or np.isnan(highs).any():
            raise broken(self.kind)
        return [stack_runs(len(records), self.n_classes, self.width, columns, lows, highs)]


@claim("SHARDS", "STORE")
@dataclass(frozen=True)
class BoxSlots(SlotForm):
    """Slots of boxes in several columns.

    Parameters
    ----------
    n_classes, width : int
        Numbers of classes and columns.
    """

    kind: ClassVar[str] = "boxes"

    n_classes: int
    width: int

    def _fields(self) -> list[tuple[Any, ...]]:
        return [("lows", "<f8", (self.width,)), ("highs", "<f8", (self.width,))]

    def _read(self, model: Any) -> tuple[list[float], list[float]] | None:
        if type(model) is not Rectangle:
            return None
        if not model.lows:  # the empty set
            return [np.inf] * self.width, [-np.inf] * self.width
        lows = [bound_of(value, -np.inf) for value in model.lows]
        return (lows, [bound_of(value, np.inf) for value in model.highs])

    def _write(
        self, slots: Records, places: Integers, read: list[tuple[list[float], list[float]]]
    ) -> None:
        for name, bounds in zip(("lows", "highs"), zip(*read, strict=True), strict=True):
            slots[name][places] = bounds

    def _stacked(self, records: Records) -> list[Voters]:
        lows, highs = (np.ascontiguousarray(records[name].T) for name in ("lows", "highs"))
        return [BoxVoters(self.n_classes, lows, highs)]


@claim("SHARDS", "STORE")
@dataclass(frozen=True)
class KeySlots(SlotForm):
    """Slots of rules about ordered keys.

    Parameters
    ----------
    n_classes, width : int
        Numbers of classes, and of numbers of a key.
    runs : int
        The most runs of keys in which a rule labels 1.
    """

    kind: ClassVar[str] = "keys"

    n_classes: int
    width: int
    runs: int

    def _fields(self) -> list[tuple[Any, ...]]:
        shape = (self.runs, self.width)
        return [("count", "<i2"), ("lows", "<f8", shape), ("highs", "<f8", shape)]

    def _read(self, model: Any) -> KeyRuns | None:
        fits = type(model) is KeyRuns and model.width == self.width
        return model if fits and len(model.runs) <= self.runs else None

    def _write(self, slots: Records, places: Integers, read: list[KeyRuns]) -> None:
        for place, rule in zip(places.tolist(), read, strict=True):
            count = len(rule.runs)
            slots["count"][place] = count
            if count:
                slots["lows"][place, :count], slots["highs"][place, :count] = key_ends(rule)

    def _stacked(self, records: Records) -> list[Voters]:
        there = np.arange(self.runs) < records["count"][:, None]
        lows, highs = (np.ascontiguousarray(records[name][there]) for name in ("lows", "highs"))
        if np.isnan(lows).any() or np.isnan(highs).any():
            raise broken(self.kind)
        return [stack_keys(len(records), self.n_classes, lows, highs)]


FORMS: dict[str, type[SlotForm]] = {
    form.kind: form for form in (BoxSlots, KeySlots, LinearSlots, RunSlots, TreeSlots)
}


def form_from_facts(facts: Mapping[str, Any]) -> SlotForm:
    """Rebuild what ``to_facts`` of a form returned."""
    given = dict(facts)
    return FORMS[given.pop("kind")](**given)


@claim("SHARDS", "STORE")
def slot_form(model: Any, n_classes: int, width: int, shard_rows: int) -> SlotForm | None:
    """Return the form of slots for what shards train; None if it has none with a known size.

    It follows from the declared estimator and public numbers alone.

    Parameters
    ----------
    model : classifier, Pipeline or ConceptClass
        What each shard trains.
    n_classes, width : int
        Numbers of classes, and of columns as models see them.
    shard_rows : int
        Rows of the largest shard.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from cumae.ensembles.voters.slots import slot_form
    >>> slot_form(DecisionTreeClassifier(max_depth=4), 2, 10, shard_rows=6)
    TreeSlots(n_classes=2, width=10, single=True, nodes=11)
    >>> slot_form(KNeighborsClassifier(), 2, 10, shard_rows=6) is None
    True
    """
    if n_classes >= SHORT:
        return None
    if isinstance(model, ConceptClass):
        return _concept_form(model, width)
    *scalers, last = _steps(model)
    if type(last) in (DecisionTreeClassifier, ExtraTreeClassifier) and not scalers:
        nodes = _most_nodes(last, shard_rows)
        return TreeSlots(n_classes, width, True, nodes) if nodes < MOST_CELLS else None  # noqa: FBT003
    if type(last) in LINEAR and all(is_affine(one) for one in scalers):
        return LinearSlots(n_classes, width) if n_classes * width < MOST_CELLS else None
    return None


def _concept_form(concept: ConceptClass, width: int) -> SlotForm | None:  # noqa: PLR0911
    # Only these very classes: a subclass may have rules of its own.
    kind = type(concept)
    if isinstance(concept, Keyed):
        one = _concept_form(concept.concept, 1)
        return KeySlots(2, width, one.runs) if isinstance(one, RunSlots) else None
    if kind in (Thresholds, Points, Intervals) or (kind is Rectangles and width == 1):
        return RunSlots(2, 1, 1)
    if kind is Stumps:
        return RunSlots(2, 0, 1)
    if isinstance(concept, UnionOfIntervals) and kind is UnionOfIntervals:
        return RunSlots(2, 1, concept.k) if concept.k < SHORT else None
    if kind is Rectangles:
        return BoxSlots(2, width)
    if isinstance(concept, Trees) and kind is Trees:
        return TreeSlots(2, 0, False, 2 ** (concept.depth + 1) - 1)  # noqa: FBT003
    return None


def _most_nodes(tree: Any, shard_rows: int) -> int:
    """Return the most nodes of a tree that was grown from so many rows.

    Each leaf has a row that no other leaf has, and a binary tree has one inner node less than
    leaves.
    """
    leaves = max(1, shard_rows)
    if tree.max_leaf_nodes is not None:
        leaves = min(leaves, int(tree.max_leaf_nodes))
    if tree.max_depth is not None and tree.max_depth < leaves.bit_length():
        leaves = min(leaves, 2 ** int(tree.max_depth))
    return 2 * leaves - 1


def _cells(places: Integers, sizes: Integers) -> tuple[Integers, Integers]:
    """Return indices of entries: ``sizes[k]`` of them lie in a row in slot ``places[k]``."""
    starts = np.cumsum(sizes) - sizes
    return np.repeat(places, sizes), np.arange(sizes.sum()) - np.repeat(starts, sizes)


def _steps(model: Any) -> list[Any]:
    """Return the steps of a pipeline, or the model itself."""
    if type(model) is not Pipeline:
        return [model]
    return [step for _, step in model.steps if step not in (None, "passthrough")] or [model]


def _last_step(model: Any) -> Any:
    return _steps(model)[-1]
