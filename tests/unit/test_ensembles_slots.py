"""Slots: the size of a stored ensemble follows from public numbers, and it votes as its models."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from cumae.concepts import (
    Halfspaces,
    Intervals,
    Points,
    Rectangles,
    Stumps,
    Thresholds,
    Trees,
    UnionOfIntervals,
)
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.trainer import Trainer
from cumae.ensembles.voters.linear import LINEAR, SCALERS
from cumae.ensembles.voters.slots import TreeSlots, form_from_facts, slot_form
from cumae.errors import InvalidParameter

SIZE, SHARDS = 9, 40
CASES: dict[str, tuple[Any, int]] = {
    "depth 4": (DecisionTreeClassifier(max_depth=4), 4),
    "any depth": (DecisionTreeClassifier(), 4),
    "few leaves": (DecisionTreeClassifier(max_leaf_nodes=3), 4),
    "random cuts": (ExtraTreeClassifier(max_depth=9), 4),
    "weights of rows": (DecisionTreeClassifier(class_weight="balanced"), 4),
    "in a pipeline": (make_pipeline(DecisionTreeClassifier(max_depth=2)), 4),
    "logistic": (LogisticRegression(), 4),
    "scaled": (make_pipeline(StandardScaler(), LogisticRegression()), 4),
    "ridges": (RidgeClassifier(), 4),
    "thresholds": (Thresholds(), 1),
    "intervals": (Intervals(), 1),
    "unions": (UnionOfIntervals(3), 1),
    "points": (Points(), 1),
    "stumps": (Stumps(), 5),
    "boxes of one column": (Rectangles(), 1),
    "boxes": (Rectangles(), 2),
    "written trees": (Trees(2), 3),
}


def trained(model: Any, width: int, n_classes: int, labels: Any = None, seed: int = 0) -> list[Any]:
    """Return the models of shards; some have one class only, and some have rows without any."""
    rng = np.random.default_rng(seed)
    rows = rng.random((SHARDS * SIZE, width)).round(2)
    found = rng.integers(0, n_classes, len(rows)) if labels is None else labels
    found = found.copy()
    if labels is None:
        found[: 3 * SIZE] = n_classes - 1
        found[3 * SIZE : 4 * SIZE] = -1
    starts = np.arange(0, len(rows) + 1, SIZE)
    return Trainer(model, n_classes).train_many(rows, found, starts, np.arange(SHARDS))


def queries(width: int) -> Any:
    asked = np.random.default_rng(1).random((300, width)).round(2)
    asked[5], asked[6] = np.nan, 1e300
    return asked


@pytest.mark.claim("SHARDS", "STORE")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", CASES)
def test_slots_vote_as_their_models(name: str, n_classes: int) -> None:
    model, width = CASES[name]
    if n_classes > 2 and not hasattr(model, "fit"):
        return  # a concept class has two
    models, asked = trained(model, width, n_classes), queries(width)
    form = slot_form(model, n_classes, width, SIZE)
    assert form is not None
    plain = Ensemble(models, n_classes, np.zeros((1, width)))
    packed = Ensemble(models, n_classes, form=form)
    again = Ensemble.from_facts(packed.to_facts())
    assert packed.slots is not None
    assert packed.slots.shape == (SHARDS, form.slot_bytes)
    assert form_from_facts(form.to_facts()) == form
    assert (packed.votes(asked) == plain.votes(asked)).all()
    assert (again.votes(asked) == plain.votes(asked)).all()
    assert (again.to_facts()["slots"] == packed.slots).all()


@pytest.mark.claim("STORE")
@given(st.sampled_from(sorted(CASES)), st.integers(0, 10**6), st.integers(0, 3))
def test_the_size_does_not_depend_on_rows(name: str, seed: int, kind: int) -> None:
    model, width = CASES[name]
    rng = np.random.default_rng(seed)
    count = SHARDS * SIZE
    labels = [np.zeros(count, int), np.ones(count, int), rng.integers(0, 2, count), -np.ones(count)]
    form = slot_form(model, 2, width, SIZE)
    assert form is not None
    found = form.pack(trained(model, width, 2, np.asarray(labels[kind], dtype=np.int64), seed))
    assert found.nbytes == SHARDS * form.slot_bytes


@pytest.mark.claim("STORE")
def test_no_tree_needs_more_nodes_than_its_slot_has() -> None:
    """The bound is reached: rows in a line with labels that alternate need a leaf each."""
    rows = np.arange(SIZE, dtype=float)[:, None]
    labels = np.arange(SIZE) % 2
    model = DecisionTreeClassifier().fit(rows, labels)
    form = slot_form(DecisionTreeClassifier(), 2, 1, SIZE)
    assert form == TreeSlots(2, 1, single=True, nodes=2 * SIZE - 1)
    assert model.tree_.node_count == 2 * SIZE - 1
    assert (Ensemble([model], 2, form=form).votes(rows)[:, 1] == labels).all()


@pytest.mark.claim("SHARDS", "STORE")
def test_what_does_not_fit_votes_for_the_first_class() -> None:
    """A model of another kind, of another width or with more nodes has a slot like any other."""
    rows = np.arange(40, dtype=float).reshape(20, 2)
    labels = np.arange(20) // 3 % 2
    large = DecisionTreeClassifier().fit(rows, labels)
    wide = DecisionTreeClassifier(max_depth=1).fit(np.hstack([rows, rows]), labels)
    form = slot_form(DecisionTreeClassifier(max_depth=1), 2, 2, 20)
    assert form is not None
    odd = [large, wide, KNeighborsClassifier().fit(rows, labels), "nonsense", None, 1]
    ensemble = Ensemble(odd, 2, form=form)
    assert (ensemble.votes(rows) == [5, 1]).all()
    assert ensemble.to_facts()["slots"].shape == (6, form.slot_bytes)


def test_other_models_have_no_form() -> None:
    class Own(DecisionTreeClassifier):  # type: ignore[misc]  # untyped base
        """May predict in its own way."""

    for model in (KNeighborsClassifier(), Own(), Halfspaces()):
        assert slot_form(model, 2, 2, SIZE) is None
    assert slot_form(make_pipeline(StandardScaler(), DecisionTreeClassifier()), 2, 2, SIZE) is None
    # What it would vote does not fit into weights; sizes that numpy cannot count are no sizes.
    clipped = make_pipeline(MinMaxScaler(clip=True), LogisticRegression())
    assert slot_form(clipped, 2, 2, SIZE) is None
    assert slot_form(UnionOfIntervals(2 * 10**8), 2, 1, SIZE) is None
    assert slot_form(DecisionTreeClassifier(), 2**15, 2, SIZE) is None


@pytest.mark.claim("SHARDS")
@pytest.mark.parametrize("scaler", [None, *SCALERS], ids=lambda one: getattr(one, "__name__", "-"))
@pytest.mark.parametrize("linear", LINEAR, ids=lambda one: one.__name__)
def test_a_fitted_model_fits_into_its_own_slot(linear: Any, scaler: Any) -> None:
    """Else it would vote for the first class, and nobody would be told."""
    rng = np.random.default_rng(3)
    rows = rng.random((60, 3))
    for n_classes in (2, 3):
        labels = np.minimum((rows[:, 0] * n_classes).astype(int), n_classes - 1)
        steps = [linear()] if scaler is None else [scaler(), linear()]
        model = make_pipeline(*steps)
        form = slot_form(model, n_classes, 3, 60)
        assert form is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = model.fit(rows, labels)
        votes = Ensemble([fitted], n_classes, form=form).votes(rows)
        assert (votes.argmax(axis=1) == fitted.predict(rows)).all()


def test_damaged_slots_are_refused() -> None:
    model, width = CASES["depth 4"]
    form = slot_form(model, 2, width, SIZE)
    assert form is not None
    facts = Ensemble(trained(model, width, 2), 2, form=form).to_facts()
    other = facts["slots"].copy()
    other.view(form.record).reshape(-1)["constant"][0] = 7
    for slots in (facts["slots"][:, 1:], facts["slots"][1:], other):
        with pytest.raises(InvalidParameter):
            Ensemble.from_facts({**facts, "slots": slots})
