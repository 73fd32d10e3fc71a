"""Pipelines and searches of scikit-learn around a fit, which its price does not cover.

A scaler that stands before a learner in a ``Pipeline`` has read all rows, and a search fits many
models and chooses by exact scores. ``surroundings`` looks for both among the callers of a fit. It
looks at types and parameters alone, and never at rows.

What is not known counts as a reason: a function of scikit-learn in a module that is not listed
here, a step whose exact type is not listed, or a pipeline that cannot be read.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from sklearn.base import MetaEstimatorMixin
from sklearn.pipeline import Pipeline

from cumae.claims import claim
from cumae.errors import GuaranteeVoid, listed, warn
from cumae.estimators import PrivateEstimator, warns_first
from cumae.privacy import Guarantee
from cumae.quiet import HiddenFailures, is_quiet

LIBRARY = "sklearn"
# Modules of scikit-learn that hand a call on. Its tests of estimators are among them.
PASSING = ("sklearn.base", "sklearn.callback", "sklearn.utils")
# Meta-estimators that fit once, to the rows that they were given.
SINGLE = {"sklearn.model_selection": ("FixedThresholdClassifier",)}
# Steps that learn nothing: each row is changed by itself, and by parameters alone. Exact types.
LEARN_NOTHING = {
    "sklearn.feature_extraction": ("FeatureHasher",),
    "sklearn.feature_extraction.text": ("HashingVectorizer",),
    "sklearn.preprocessing": ("Binarizer", "Normalizer", "PolynomialFeatures"),
    "sklearn.random_projection": ("GaussianRandomProjection", "SparseRandomProjection"),
}
# The same, if the person who wrote them kept to it; the guarantee lists that as an assumption.
BELIEVED = {
    ("sklearn.preprocessing", "FunctionTransformer"): (
        "the function of FunctionTransformer changes each row by itself, without the others"
    ),
    ("sklearn.frozen", "FrozenEstimator"): (
        "what FrozenEstimator holds was fitted without private rows"
    ),
}
# Encoders learn nothing if their categories are given, and none is dropped for being rare.
ENCODERS = {"sklearn.preprocessing": ("OneHotEncoder", "OrdinalEncoder")}
RARE = ("min_frequency", "max_categories")
NAMED = (str, int, slice, list)  # how columns of a ColumnTransformer may be given


@dataclass(frozen=True)
class Found:
    """The surroundings of a fit.

    Parameters
    ----------
    steps : tuple of str
        Classes of steps that learn from rows, before the estimator.
    several : str or None
        What fits several models, or fits to other rows than those of the table.
    assumptions : tuple of str
        What is believed of other steps.
    """

    steps: tuple[str, ...] = ()
    several: str | None = None
    assumptions: tuple[str, ...] = ()

    @property
    def reasons(self) -> list[str]:
        """Why the guarantee is void; empty if it is not."""
        found = []
        if self.steps:
            found.append(
                f"{listed(self.steps)} before it in a Pipeline learnt from the rows, which "
                "nothing protects"
            )
        if self.several is not None:
            found.append(
                f"{self.several} fitted it, which may fit several models, repeat rows, and choose "
                "by exact scores; the price here is that of one fit"
            )
        return found

    @claim("QUERY", "BBL", "REDUCE")
    def judge(self, guarantee: Guarantee) -> Guarantee:
        """Return a guarantee with what is believed; void, if there is a reason.

        Parameters
        ----------
        guarantee : Guarantee
            What the fit by itself promises.
        """
        for assumption in self.assumptions:
            guarantee = guarantee.assuming(assumption)
        for reason in self.reasons:
            guarantee = guarantee.voided(reason)
        return guarantee


NOTHING = Found()


@claim("QUERY", "BBL", "REDUCE")
def surroundings(estimator: PrivateEstimator, epsilon: float) -> Found:
    """Look at what stands around a fit, before it pays, and warn if that voids its guarantee.

    A search does not warn here: its second fit warns in any case that every fit pays.

    Parameters
    ----------
    estimator : PrivateEstimator
        What is being fitted, by a caller of this function.
    epsilon : float
        What the fit is going to cost; an infinite one promises nothing that could be void.

    Returns
    -------
    Found
        What the guarantee is to be judged by.
    """
    if epsilon == math.inf or is_quiet():  # quiet is a shard, whose guarantee nobody is shown
        return NOTHING
    found, payer = around(estimator)
    searching = (found.several or "").startswith("sklearn.model_selection")
    first = found.several is None or warns_first(payer)  # once for all clones of a loop
    if found.reasons and (found.steps or not searching) and first:
        warn(
            f"the guarantee of this {type(payer).__name__} is void, because "
            f"{'; and '.join(found.reasons)}. Fit it to the rows as they are, and declare their "
            "columns; steps that learn nothing may stand before it (docs/sharp_edges.md).",
            GuaranteeVoid,
        )
    return found


@claim("QUERY", "BBL", "REDUCE")
def around(estimator: PrivateEstimator) -> tuple[Found, PrivateEstimator]:
    """Look for pipelines, searches and other meta-estimators among the callers.

    Parameters
    ----------
    estimator : PrivateEstimator
        What is being fitted.

    Returns
    -------
    Found
        What there is. It is nothing if this fit is a part of another one of ours, whose own look
        counts.
    PrivateEstimator
        What was fitted from outside.
    """
    steps: list[str] = []
    assumptions: list[str] = []
    several: str | None = None
    payer = estimator
    for frame in _callers():
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] == __package__:
            owner = _owner(frame)
            if isinstance(owner, PrivateEstimator) and owner is not estimator:
                if not owner.hands_on:
                    return NOTHING, payer
                payer = owner
            continue
        inside = _within(module, (LIBRARY,))
        if inside and _within(module, PASSING):
            continue
        if not inside and "fit" not in frame.f_code.co_name:
            continue
        owner = _owner(frame)
        if isinstance(owner, Pipeline):
            learnt, believed = _judge_all(_steps_before(owner))
            steps += learnt
            assumptions += believed
        elif _is_one(owner, SINGLE):
            continue
        elif inside or isinstance(owner, MetaEstimatorMixin):
            several = several or _title(owner, frame, module)
    unique = [tuple(dict.fromkeys(names)) for names in (steps, assumptions)]
    return Found(unique[0], several, unique[1]), payer


def _callers() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _within(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in packages)


def _owner(frame: FrameType) -> Any:
    """Return the object whose method runs in a frame; None if it is no method."""
    code = frame.f_code
    if code.co_argcount == 0 or code.co_varnames[0] != "self":
        return None
    return frame.f_locals.get("self")


def _title(owner: Any, frame: FrameType, module: str) -> str:
    """Return the name of what fits, with its public module."""
    name = frame.f_code.co_name if owner is None else type(owner).__name__
    public = ".".join(part for part in module.split(".") if not part.startswith("_"))
    return f"{public}.{name}"


def _is_one(thing: Any, names: Mapping[str, tuple[str, ...]]) -> bool:
    """Tell whether the exact type of a thing is listed; a name that does not exist lists none."""
    kind = type(thing)
    return any(
        kind.__name__ in listed_names
        and getattr(sys.modules.get(module), kind.__name__, None) is kind
        for module, listed_names in names.items()
    )


def _steps_before(pipeline: Pipeline) -> list[Any]:
    """Return all steps but the last; a pipeline that cannot be read counts as a step."""
    with HiddenFailures():  # another version or a subclass may keep anything there
        return [step for _, step in pipeline.steps[:-1]]
    return [pipeline]


def _judge_all(steps: list[Any]) -> tuple[list[str], list[str]]:
    """Return classes of steps that learn from rows, and what is believed of the others."""
    learnt: list[str] = []
    believed: list[str] = []
    for step in steps:
        inner = _inner(step)
        if inner is not None:
            more, also = _judge_all(inner)
            learnt += more
            believed += also
            continue
        assumption = _assumption(step)
        if assumption is not None:
            believed.append(assumption)
        elif not _learns_nothing(step):
            learnt.append(type(step).__name__)
    return learnt, believed


def _learns_nothing(step: Any) -> bool:
    if step is None or isinstance(step, str):  # "passthrough" and "drop"
        return True
    if isinstance(step, PrivateEstimator):  # one of ours pays by itself
        return True
    if _is_one(step, ENCODERS):
        given = step.get_params(deep=False)
        rare = [given.get(name) for name in RARE]
        return not isinstance(given.get("categories", "auto"), str) and rare == [None, None]
    return _is_one(step, LEARN_NOTHING)


def _assumption(step: Any) -> str | None:
    for (module, name), assumption in BELIEVED.items():
        if type(step).__name__ == name and _is_one(step, {module: (name,)}):
            return assumption
    return None


def _inner(step: Any) -> list[Any] | None:
    """Return the parts of a step that is made of others; None if it is none, or cannot be read."""
    with HiddenFailures():  # another version, or parameters that make no sense
        if _is_one(step, {"sklearn.pipeline": ("Pipeline",)}):
            return [part for _, part in step.steps]
        if _is_one(step, {"sklearn.pipeline": ("FeatureUnion",)}):
            return [part for _, part in step.transformer_list]
        columns = _is_one(step, {"sklearn.compose": ("ColumnTransformer",)})
        if columns and all(isinstance(named, NAMED) for _, _, named in step.transformers):
            return [*(part for _, part, _ in step.transformers), step.remainder]
    return None
