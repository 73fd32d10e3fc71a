"""Votes of many models at array speed: models of the same kind become arrays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from cumae.concepts import Halfspace, KeyRuns, Rectangle, Tree
from cumae.ensembles.voters.base import StackedVoters, Voters
from cumae.ensembles.voters.columns import (
    BoxVoters,
    CutVoters,
    runs_of,
    stack_boxes,
    stack_cuts,
)
from cumae.ensembles.voters.halfspaces import HalfspaceVoters, floats_of, stack_halfspaces
from cumae.ensembles.voters.keys import KeyVoters, stack_key_runs
from cumae.ensembles.voters.linear import (
    LINEAR,
    LinearVoters,
    is_affine,
    scores_of,
    stack_linear,
)
from cumae.ensembles.voters.loop import LoopVoters
from cumae.ensembles.voters.trees import (
    Nodes,
    TreeVoters,
    WalkVoters,
    nodes_of,
    stack_trees,
)
from cumae.errors import InvalidParameter, shown
from cumae.parameters import check_count

__all__ = ["LoopVoters", "StackedVoters", "Voters", "stack", "voters_from_arrays"]

KINDS: dict[str, type[StackedVoters]] = {
    kind.kind: kind
    for kind in (
        BoxVoters,
        CutVoters,
        HalfspaceVoters,
        KeyVoters,
        LinearVoters,
        TreeVoters,
        WalkVoters,
    )
}


def stack(models: Sequence[Any], n_classes: int, stand_in: Any = None) -> list[Voters]:
    """Turn models into voters: those of the same kind into arrays, all others into a loop.

    Arrays are made of thresholds, intervals, points, stumps, boxes, halfspaces and trees of
    ``cumae.concepts``; and of scikit-learn's decision trees and linear classifiers, also behind
    scalers in a pipeline, of all columns or of some. They vote as ``predict`` does, except that
    scores of linear models within rounding of a tie may fall to the other side.

    Parameters
    ----------
    models : sequence
        Fitted classifiers, pipelines or hypotheses, trained on the labels 0 to n_classes - 1.
    n_classes : int
        Number of classes.
    stand_in : array, DataFrame or None
        A table of one made-up row, in the form in which queries will come. Models that are asked in
        a loop need it: it fills the places of a fixed shape that no query takes.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Threshold
    >>> from cumae.ensembles.voters.stacking import stack
    >>> (voters,) = stack([Threshold(1.0), Threshold(2.0), Threshold(3.0)], n_classes=2)
    >>> voters.count(np.array([[0.5], [2.5]])).tolist()
    [[3, 0], [1, 2]]
    """
    n_classes = check_count(n_classes, "n_classes", least=2)
    groups: dict[tuple[Hashable, ...], list[Any]] = {}
    for model in models:
        try:
            key, read = _read(model, n_classes)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            key, read = ("loop",), model  # an unusual one
        groups.setdefault(key, []).append(read)
    found: list[Voters] = []
    for (kind, *more), members in groups.items():
        width: Any = more[0] if more else 0
        if kind == "cuts":
            found.append(stack_cuts(members, n_classes, width))
        elif kind == "boxes":
            found.append(stack_boxes(members, n_classes))
        elif kind == "halfspaces":
            found.append(stack_halfspaces(members, n_classes))
        elif kind == "keys":
            found.append(stack_key_runs(members, n_classes))
        elif kind == "linear":
            found.append(stack_linear(members, n_classes))
        elif kind == "trees":
            found += stack_trees(members, n_classes)
        else:
            found.append(LoopVoters.of(members, n_classes, stand_in))
    return found


def voters_from_arrays(kind: str, arrays: Mapping[str, NDArray[Any]]) -> Voters:
    """Rebuild voters from their ``kind`` and what their ``to_arrays`` returned.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Threshold
    >>> from cumae.ensembles.voters.stacking import stack, voters_from_arrays
    >>> (voters,) = stack([Threshold(1.0), Threshold(2.0)], n_classes=2)
    >>> again = voters_from_arrays(voters.kind, voters.to_arrays())
    >>> again.count(np.array([[1.5]])).tolist()
    [[1, 1]]
    """
    if kind not in KINDS:
        raise InvalidParameter(
            f"kind={shown(kind)} is none of {', '.join(sorted(KINDS))}; give the kind of the "
            "voters whose arrays these are."
        )
    return KINDS[kind].from_arrays(arrays)


RULES: dict[type, str] = {KeyRuns: "keys", Rectangle: "boxes", Halfspace: "halfspaces"}


def _read(model: Any, n_classes: int) -> tuple[tuple[Hashable, ...], Any]:
    """Return what kind of array a model fits into, and what it adds to that."""
    # Only these very classes: a subclass may predict in its own way.
    runs, width = runs_of(model), _width(model)
    if runs is not None:
        return ("cuts", runs[0]), runs[1]
    if width is not None:
        return (RULES[type(model)], width), model
    steps = [model]
    if type(model) is Pipeline:
        steps = [step for _, step in model.steps if step not in (None, "passthrough")]
    *scalers, last = steps
    if type(last) in LINEAR and all(is_affine(scaler) for scaler in scalers):
        scores = scores_of(scalers, last, n_classes)
        return ("linear", scores.weights.shape[1], scores.labels), scores
    if type(last) in (DecisionTreeClassifier, ExtraTreeClassifier, Tree, Nodes) and not scalers:
        nodes = last if type(last) is Nodes else nodes_of(last, n_classes)
        return ("trees", nodes.width, nodes.single), nodes
    return ("loop",), model


def _width(model: Any) -> int | None:
    """Return the number of columns of a rule of ``RULES``; None for any other model."""
    if type(model) is KeyRuns:
        return model.width
    if type(model) is Rectangle:
        return len(model.lows)
    if type(model) is Halfspace and floats_of(model) is not None:
        return len(model.normal)
    return None
