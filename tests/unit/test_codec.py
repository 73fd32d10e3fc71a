"""What is stored: every value comes back, damage is refused, and names never change."""

from __future__ import annotations

import ast
import contextlib
import datetime as dt
import importlib
import inspect
import json
import math
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import cumae
from cumae import Budget, InvalidParameter, StoreFailed, UnknownCost
from cumae.codec import (
    TEXT_FORMAT,
    cell_from_json,
    cell_to_json,
    class_named,
    from_bytes,
    from_plain,
    kind_of,
    name_of,
    rebuilt,
    register,
    registered_names,
    stored,
    to_bytes,
    to_plain,
)
from cumae.concepts import (
    BitClass,
    ConceptClass,
    Conjunction,
    Conjunctions,
    FiniteClass,
    Halfspaces,
    Hypothesis,
    Intervals,
    Keyed,
    Parities,
    Parity,
    Points,
    Projections,
    RandomSet,
    RandomSets,
    Rectangles,
    Stumps,
    Threshold,
    Thresholds,
    Trees,
    UnionOfIntervals,
)
from cumae.data import Column, Columns
from cumae.errors import CumaeError
from cumae.learners import Learner, PrivateKernelClassifier
from cumae.predictors.base import Predictor
from cumae.predictors.estimators import KNOWN, estimator_from_plain, estimator_to_plain
from cumae.predictors.fingerprints import fingerprint, first_fingerprint
from cumae.privacy import Cost, Guarantee, Pure
from cumae.privacy.plain_costs import cost_from_dict, cost_to_dict
from cumae.sanitizers import Quantiles, Ranges, Sanitizer, StabilityHistogram, StableThresholds
from tests.states import same

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "tests" / "stored"

PROMISE = Guarantee.of(Pure(math.inf), protects="a row", claims=("PURE",))
COLUMNS = Columns({"age": (0, 120), "job": ["poet", "nurse"]}, ["age", "job"], 2)
POINTS = np.random.default_rng(0).random((12, 2))
LABELS = (POINTS[:, 0] > 0.5).astype(int)
CONCEPTS: list[ConceptClass] = [
    Conjunctions(),
    FiniteClass([Threshold(0.5), Threshold(math.inf)]),
    Halfspaces(),
    Intervals(),
    Keyed(Thresholds(), 2),
    Parities(),
    Points(),
    Projections([[1.0, 0.0], [1.0, 1.0]]),
    RandomSets.draw(0.4, random_state=0),
    Rectangles(),
    Stumps(),
    Thresholds("above"),
    Trees(2),
    UnionOfIntervals(3),
]
ONE_COLUMN = (FiniteClass, UnionOfIntervals, Points, Thresholds)  # also Intervals
RULES = [
    one.erm(POINTS[:, :1] if isinstance(one, ONE_COLUMN) else POINTS, LABELS)
    for one in CONCEPTS
    if not isinstance(one, BitClass)
]
RULES += [Conjunction(2, (0,)), Parity(2, (0, 1)), RandomSet("0" * 64, 1, 0.25)]
SANITIZERS: list[Sanitizer] = [
    Quantiles(1.0, [(0.0, 1.0, 0.5), None], 3),
    Ranges(1.0, 2),
    StabilityHistogram(1.0, 1e-6),
    StableThresholds(1.0, 1e-6, 7),
]
VALUES = [PROMISE, COLUMNS, COLUMNS.columns[1], *CONCEPTS, *RULES, *SANITIZERS]


# Every value comes back

NUMBERS = (
    arrays_of.integer_dtypes(endianness="?")
    | arrays_of.unsigned_integer_dtypes(endianness="?")
    | arrays_of.floating_dtypes(endianness="?")
    | arrays_of.boolean_dtypes()
)
OTHERS = (
    arrays_of.complex_number_dtypes()
    | arrays_of.datetime64_dtypes()
    | arrays_of.timedelta64_dtypes()
    | arrays_of.unicode_string_dtypes(min_len=1, max_len=5)
    | arrays_of.byte_string_dtypes(min_len=1, max_len=5)
)
SHAPES = arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
TEXTS = st.text(st.characters(), max_size=6)
INTEGERS = st.integers() | st.integers(-3, 3).map(lambda n: n << 14_000)  # too long to print
SCALARS = st.none() | st.booleans() | INTEGERS | st.floats() | TEXTS
CELLS = (
    SCALARS
    | st.binary(max_size=5)
    | st.dates()
    | st.datetimes(timezones=st.none() | st.just(dt.UTC))
    | st.sampled_from([np.datetime64("2020-02"), np.datetime64("NaT"), np.datetime64("NaT", "D")])
)


@st.composite
def arrays_of_cells(draw: Callable[[Any], Any]) -> Any:
    cells = draw(st.lists(CELLS, max_size=6))
    found = np.fromiter(cells, dtype=object, count=len(cells))
    return found.reshape(draw(st.sampled_from([(-1,), (1, -1), (-1, 1, 1)])) if cells else (0,))


@st.composite
def frames(draw: Callable[[Any], Any]) -> Any:
    length = draw(st.integers(0, 4))
    kinds = draw(st.lists(NUMBERS | st.just(np.dtype(object)), min_size=1, max_size=3))
    made = {}
    for place, kind in enumerate(kinds):
        if kind.kind == "O":
            cells = draw(
                st.lists(st.text(max_size=3) | st.none(), min_size=length, max_size=length)
            )
            column = np.fromiter(cells, dtype=object, count=length)
        else:
            column = draw(arrays_of.arrays(kind.newbyteorder("="), length))
        made[f"column {place}"] = pd.Series(column, dtype=column.dtype)
    return pd.DataFrame(made)


ARRAYS = arrays_of.arrays(NUMBERS | OTHERS, SHAPES) | arrays_of_cells()
LEAVES = SCALARS | st.binary(max_size=9) | ARRAYS | frames() | st.sampled_from([*VALUES, Pure(0.5)])
KEYS = TEXTS | st.just("$") | st.integers() | st.tuples(st.booleans(), TEXTS)


def nested(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(parts, max_size=3)
        | st.lists(parts, max_size=3).map(tuple)
        | st.dictionaries(TEXTS, parts, max_size=4)
        | st.dictionaries(KEYS, parts, max_size=3)
    )


@given(st.recursive(LEAVES, nested, max_leaves=8))
def test_every_value_comes_back_from_its_bytes(value: Any) -> None:
    content = to_bytes(value)
    assert same(from_bytes(content), value)
    assert to_bytes(from_bytes(content)) == content


JSON_ARRAYS = arrays_of.arrays(
    arrays_of.integer_dtypes() | arrays_of.floating_dtypes(sizes=(32, 64)), SHAPES
)


@given(st.recursive(SCALARS | JSON_ARRAYS | st.sampled_from(VALUES), nested, max_leaves=8))
def test_every_value_comes_back_from_json(value: Any) -> None:
    text = json.dumps(to_plain(value), allow_nan=False)
    again = from_plain(json.loads(text))
    assert same(to_plain(again), to_plain(value))


@given(CELLS)
def test_every_cell_comes_back(cell: Any) -> None:
    assert same(cell_from_json(json.loads(json.dumps(cell_to_json(cell), allow_nan=False))), cell)


def test_times_of_pandas_are_read_as_ordinary_ones() -> None:
    cells = np.array([pd.Timestamp("2020-02-03 04:05"), pd.NaT, np.str_("a"), None], dtype=object)
    found = from_bytes(to_bytes(cells)).tolist()
    assert found[0] == dt.datetime(2020, 2, 3, 4, 5)  # noqa: DTZ001
    assert type(found[0]) is dt.datetime
    assert np.isnat(found[1])
    assert found[2:] == ["a", None]


def test_arrays_that_are_read_are_free() -> None:
    """They can be changed, they belong to nobody else, and their order does not matter."""
    rows = np.arange(6.0).reshape(2, 3).T
    found = from_bytes(to_bytes({"rows": rows, "again": rows[::2]}))
    assert found["rows"].tolist() == rows.tolist()
    assert found["again"].tolist() == rows[::2].tolist()
    assert found["rows"].flags.writeable
    assert found["rows"].flags.c_contiguous
    assert found["rows"].base is None


@pytest.mark.parametrize(
    "value",
    [
        {1, 2},
        object(),
        np.longdouble(1) / 3,
        np.zeros(2, dtype="i4,f4"),
        np.ma.masked_array([1.0, 2.0], [True, False]),
        np.array([object()], dtype=object),
        np.array([(1, 2), None], dtype=object),
        [1, {"a": 1j}],
        GaussianNB(),
        cumae.EverlastingPredictor(),
        cumae.PrivateLearner(),
        str,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_stored_is_refused(value: Any) -> None:
    with pytest.raises(InvalidParameter, match="cannot be stored"):
        to_bytes(value)
    with pytest.raises(InvalidParameter, match="cannot be stored"):
        to_bytes({"count": 1, "rows": np.ones(3), "part": value})


# Lengths


@given(st.data())
def test_lengths_follow_from_types_and_shapes(data: st.DataObject) -> None:
    kind = data.draw(NUMBERS | OTHERS)
    shape = data.draw(SHAPES)
    first, second = (data.draw(arrays_of.arrays(kind, shape)) for _ in range(2))
    one, other = ({"count": 3, "rows": [rows], "id": rows} for rows in (first, second))
    assert len(to_bytes(one)) == len(to_bytes(other))
    assert to_bytes(one).partition(b"\n")[0] == to_bytes(other).partition(b"\n")[0]


def test_a_record_is_a_line_of_json_and_then_its_arrays() -> None:
    facts = {
        "count": -3,
        'a "name"\n': "text \u00e9",
        "nothing": None,
        "yes": True,
        "share": 0.1,
        "$head": b"\x00\xff",
        "grown": {"rows": np.arange(4.0).reshape(2, 2), "one": np.array(7), "none": {}},
    }
    line, _, rest = to_bytes(facts).partition(b"\n")
    told = {"rows": {"$": ["<f8", 2, 2]}, "one": {"$": ["<i8"]}, "none": {}}
    assert line.decode() == json.dumps(facts | {"$head": {"$": ["bytes", 2]}, "grown": told})
    assert rest == b"\x00\xff" + np.arange(4.0).tobytes() + np.array(7).tobytes()


@pytest.mark.parametrize(
    "facts", [{"$": 5}, {"a": {"$": ["<f8", 1]}}, {"$": {"$": "tuple"}}, {1: 2}]
)
def test_what_looks_like_a_tag_is_no_tag(facts: dict[Any, Any]) -> None:
    assert from_bytes(to_bytes(facts)) == facts
    assert from_plain(to_plain(facts)) == facts


# Damage

WHOLE = to_bytes(
    {
        "count": 2,
        "rows": np.ones((3, 2)),
        "names": np.array(["a", None], dtype=object),
        "id": b"12345",
        "promise": PROMISE,
        "pair": (1, 2.5),
    }
)


def test_content_of_another_length_is_refused() -> None:
    for length in range(len(WHOLE)):
        with pytest.raises(StoreFailed):
            from_bytes(WHOLE[:length])
    for more in (b"x", b"\n", WHOLE):
        with pytest.raises(StoreFailed, match="not as long as it says"):
            from_bytes(WHOLE + more)


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_changed_content_is_read_or_refused(place: int, change: int) -> None:
    changed = bytearray(WHOLE)
    changed[place] ^= change
    with contextlib.suppress(CumaeError):
        from_bytes(bytes(changed))


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with contextlib.suppress(CumaeError):
        from_bytes(content + b"\n")


CELLS_BESIDE = b"[1,2,3] "


def test_a_line_that_is_not_damaged_is_read() -> None:
    line = b'{"$": "cells", "shape": [3], "text": {"$": ["bytes", 8]}}\n'
    assert from_bytes(line + CELLS_BESIDE).tolist() == [1, 2, 3]
    assert from_bytes(b'{"$": ["<f8", 1, 1]}\n' + CELLS_BESIDE).shape == (1, 1)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "NaN",
        '{"a": Infinity}',
        "[" * 100_000,
        '{"$": []}',
        '{"$": ["O", 1]}',
        '{"$": ["|O", 1]}',
        '{"$": ["object", 1]}',
        '{"$": ["V8", 1]}',
        '{"$": ["|V8", 1]}',
        '{"$": ["i4,f4", 1]}',
        '{"$": ["(2,)f8", 1]}',
        '{"$": ["T", 1]}',
        '{"$": ["f8", 1]}',
        '{"$": ["float", 1]}',
        '{"$": ["|S0", 1000000000000]}',
        '{"$": [["<f8"], 1]}',
        '{"$": [{"names": ["a"], "formats": ["<f8"]}, 1]}',
        '{"$": [8, 1]}',
        '{"$": ["nonsense", 1]}',
        '{"$": ["<f8", -1]}',
        '{"$": ["<f8", -1, -1]}',
        '{"$": ["<f8", 1.0]}',
        '{"$": ["<f8", true]}',
        '{"$": ["<f8", [1]]}',
        '{"$": ["<f8", 1000000000000000000000000000000]}',
        '{"$": ["<f8", 0, 1000000000000000000000000000000]}',
        '{"$": ["<U1000000000", 1]}',
        '{"$": ["<f8", 1000000000]}',
        '{"$": ["bytes"]}',
        '{"$": ["bytes", 1, 1]}',
        '{"$": ["bytes", 1000000000]}',
        '{"$": "nobody"}',
        '{"$": null}',
        '{"$": {}}',
        '{"$": "estimator", "module": "sklearn.svm", "class": "SVC", "parameters": {}}',
        '{"$": "predictor", "value": {}}',
        '{"$": "tuple"}',
        '{"$": "array", "type": "<U1000000000", "shape": [1], "items": ["a"]}',
        '{"$": "cells", "shape": [2], "text": {"$": ["bytes", 8]}}',
        '{"$": "cells", "shape": 3, "text": {"$": ["bytes", 8]}}',
        '{"$": "cells", "shape": [3], "text": 5}',
        '{"$": "cells", "shape": [-1], "text": {"$": ["bytes", 8]}}',
        '{"$": "frame", "names": ["a", "b"], "columns": [{"$": ["<f8", 1]}]}',
        '{"$": "concept", "kind": "Threshold", "fields": {}}',
        '{"$": "concept", "kind": ["Stumps"], "fields": {}}',
        '{"$": "hypothesis", "value": {"kind": "Stumps"}}',
        '{"$": "cost", "value": {"kind": "Nobody"}}',
        '{"$": "guarantee", "value": {"epsilon": -1}}',
        '{"$": "type", "value": "str"}',
        "\u00e9",
    ],
)
def test_damaged_lines_are_refused(line: str) -> None:
    with pytest.raises((StoreFailed, InvalidParameter)):
        from_bytes(line.encode() + b"\n" + CELLS_BESIDE)


# Names

SKLEARN = [f"{module}.{name}" for module, names in KNOWN.items() for name in names]
# These stand in files of users. A name may be added, but none may change or vanish.
NAMES = {
    "column": ["column"],
    "columns": ["columns"],
    "concept": [
        "Conjunctions",
        "FiniteClass",
        "Halfspaces",
        "Intervals",
        "Keyed",
        "Parities",
        "Points",
        "Projections",
        "RandomSets",
        "Rectangles",
        "Stumps",
        "Thresholds",
        "Trees",
        "UnionOfIntervals",
    ],
    "cost": [
        "AfterDraw",
        "Approximate",
        "Bootstrapped",
        "BoundedRange",
        "Composed",
        "DiscreteGaussian",
        "DiscreteGaussianVectors",
        "Failing",
        "Gaussian",
        "Grouped",
        "PaperBootstrapped",
        "PaperLabelBoosted",
        "PaperSubsampled",
        "Parallel",
        "Pure",
        "Subsampled",
        "ZCDP",
    ],
    "estimator": [
        "sklearn.compose.ColumnTransformer",
        "sklearn.decomposition.PCA",
        "sklearn.decomposition.TruncatedSVD",
        "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
        "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis",
        "sklearn.dummy.DummyClassifier",
        "sklearn.ensemble.AdaBoostClassifier",
        "sklearn.ensemble.BaggingClassifier",
        "sklearn.ensemble.ExtraTreesClassifier",
        "sklearn.ensemble.GradientBoostingClassifier",
        "sklearn.ensemble.HistGradientBoostingClassifier",
        "sklearn.ensemble.RandomForestClassifier",
        "sklearn.ensemble.StackingClassifier",
        "sklearn.ensemble.VotingClassifier",
        "sklearn.feature_selection.VarianceThreshold",
        "sklearn.impute.KNNImputer",
        "sklearn.impute.MissingIndicator",
        "sklearn.impute.SimpleImputer",
        "sklearn.kernel_approximation.Nystroem",
        "sklearn.kernel_approximation.PolynomialCountSketch",
        "sklearn.kernel_approximation.RBFSampler",
        "sklearn.linear_model.LogisticRegression",
        "sklearn.linear_model.LogisticRegressionCV",
        "sklearn.linear_model.Perceptron",
        "sklearn.linear_model.RidgeClassifier",
        "sklearn.linear_model.RidgeClassifierCV",
        "sklearn.linear_model.SGDClassifier",
        "sklearn.multiclass.OneVsOneClassifier",
        "sklearn.multiclass.OneVsRestClassifier",
        "sklearn.naive_bayes.BernoulliNB",
        "sklearn.naive_bayes.CategoricalNB",
        "sklearn.naive_bayes.ComplementNB",
        "sklearn.naive_bayes.GaussianNB",
        "sklearn.naive_bayes.MultinomialNB",
        "sklearn.neighbors.KNeighborsClassifier",
        "sklearn.neighbors.NearestCentroid",
        "sklearn.neighbors.RadiusNeighborsClassifier",
        "sklearn.neural_network.MLPClassifier",
        "sklearn.pipeline.FeatureUnion",
        "sklearn.pipeline.Pipeline",
        "sklearn.preprocessing.Binarizer",
        "sklearn.preprocessing.KBinsDiscretizer",
        "sklearn.preprocessing.MaxAbsScaler",
        "sklearn.preprocessing.MinMaxScaler",
        "sklearn.preprocessing.Normalizer",
        "sklearn.preprocessing.OneHotEncoder",
        "sklearn.preprocessing.OrdinalEncoder",
        "sklearn.preprocessing.PolynomialFeatures",
        "sklearn.preprocessing.PowerTransformer",
        "sklearn.preprocessing.QuantileTransformer",
        "sklearn.preprocessing.RobustScaler",
        "sklearn.preprocessing.SplineTransformer",
        "sklearn.preprocessing.StandardScaler",
        "sklearn.svm.LinearSVC",
        "sklearn.svm.NuSVC",
        "sklearn.svm.SVC",
        "sklearn.tree.DecisionTreeClassifier",
        "sklearn.tree.ExtraTreeClassifier",
    ],
    "frame": ["frame"],
    "row form": ["row form"],
    "guarantee": ["guarantee"],
    "hypothesis": [
        "Conjunction",
        "Halfspace",
        "IntervalUnion",
        "KeyRuns",
        "Parity",
        "Point",
        "Projection",
        "RandomSet",
        "Rectangle",
        "Stump",
        "Threshold",
        "Tree",
    ],
    "kernel features": ["kernel features"],
    "kernel model": ["kernel model"],
    "number model": ["number model"],
    "regression target": ["regression target"],
    "score counts": ["score counts"],
    "learner": [
        "AccuracyBoost",
        "ActiveLearner",
        "Adapter",
        "GenericLearner",
        "HypothesisLearner",
        "IterLabelBoost",
        "LabelBoost",
        "OneVsRest",
        "PrivateBooster",
        "PrivateKernelClassifier",
        "PrivateKernelRegressor",
        "PrivateLearner",
        "PrivateLinearRegression",
        "PrivateLogisticRegression",
        "PublicDataReduction",
        "SemiPrivateLearner",
    ],
    "planner": ["PrivateClassifier"],
    "predictor": [
        "AgnosticQueryRelease",
        "EverlastingPredictor",
        "GenericBBL",
        "QueryRelease",
        "UniversalQueryRelease",
    ],
    "sanitizer": ["Quantiles", "Ranges", "StabilityHistogram", "StableThresholds"],
}


def all_modules() -> None:
    for found in pkgutil.walk_packages(cumae.__path__, "cumae."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)


def test_no_name_changes_or_vanishes() -> None:
    all_modules()
    found = {
        form: [name for name in names if not name.startswith("tests.")]
        for form, names in registered_names().items()
    }
    assert found == NAMES
    for form, names in found.items():
        for name in names:
            kind = class_named(form, name)
            assert name_of(kind) == name
            if name != form:  # a class may get another name; then this list says so
                assert kind.__name__ == name.rpartition(".")[2]


# Sanitizers with a listed domain, classes that a fit makes of others, and what audits make for
# themselves: none of them is in a file.
UNSTORED = {"KeyCuts", "MultiplicativeWeights", "SmallDatabase"}
UNSTORED |= {"Loudest", "Relabelled", "Spotter", "WideSpotter", "_Undivided"}


def below(kind: type) -> set[type]:
    return {kind}.union(*map(below, kind.__subclasses__()))


@pytest.mark.parametrize("base", [Hypothesis, ConceptClass, Sanitizer, Cost, Learner, Predictor])
def test_no_class_is_forgotten(base: type) -> None:
    all_modules()
    ours = {kind for kind in below(base) if kind.__module__.startswith("cumae.")}
    concrete = {kind for kind in ours if not inspect.isabstract(kind)}
    without = {kind.__name__ for kind in concrete if kind_of(kind) is None}
    assert without <= UNSTORED


def test_nothing_is_found_by_walking_over_subclasses() -> None:
    source = ROOT / "src"
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "__subclasses__"
    }
    assert not found


# Every registered kind


def test_values_of_every_kind_come_back() -> None:
    tried = {kind_of(type(value)) for value in VALUES}
    for form in ("concept", "hypothesis", "sanitizer", "guarantee", "columns", "column"):
        names = {kind.name for kind in tried if kind is not None and kind.form == form}
        assert names == set(NAMES[form])
    for value in VALUES:
        assert same(from_plain(json.loads(json.dumps(to_plain(value)))), value)
        assert same(from_bytes(to_bytes(value)), value)


def test_a_kernel_model_comes_back() -> None:
    rows = np.random.default_rng(1).random((400, 2))
    columns = [(0, 1), (0, 1)]
    learner = PrivateKernelClassifier(9.0, 1e-6, n_waves=3, columns=columns)
    learner.fit(rows, rows[:, 0] > 0.5)
    model: Any = learner.model_
    for value in (model, model.features, learner):
        again = from_bytes(to_bytes(value))
        assert type(again) is type(value)
        assert again.to_dict() == value.to_dict()


@pytest.mark.parametrize("name", NAMES["learner"])
def test_every_learner_is_known_by_its_name(name: str) -> None:
    kind = class_named("learner", name)
    required = inspect.signature(kind).parameters.values()
    given_ = {one.name: 1.0 for one in required if one.default is one.empty}
    learner = kind(**given_)
    learner.classes_, learner.guarantee_ = np.array([0, 1]), PROMISE
    plain = json.loads(json.dumps(stored(learner, given_), allow_nan=False))
    assert (plain["kind"], plain["format"]) == (name, TEXT_FORMAT)
    again = rebuilt(plain, "learner")
    assert type(again) is kind
    assert again.guarantee_ == PROMISE
    assert type(Learner.from_dict(plain)) is kind


PARTS: dict[str, dict[str, Any]] = {
    "ColumnTransformer": {"transformers": [("a", "passthrough", ["b"])]},
    "FeatureUnion": {"transformer_list": [("a", "passthrough")]},
    "OneVsOneClassifier": {"estimator": GaussianNB()},
    "OneVsRestClassifier": {"estimator": LogisticRegression(C=0.5)},
    "Pipeline": {"steps": [("a", "passthrough"), ("b", GaussianNB())]},
    "StackingClassifier": {"estimators": [("a", GaussianNB())]},
    "VotingClassifier": {"estimators": [("a", GaussianNB())], "weights": np.array([1.0])},
}


@pytest.mark.parametrize("name", SKLEARN)
def test_every_estimator_comes_back(name: str) -> None:
    own = name.rpartition(".")[2]
    model = class_named("estimator", name)(**PARTS.get(own, {}))
    written = estimator_to_plain(model)
    again = estimator_from_plain(json.loads(json.dumps(written)))
    assert type(again) is type(model)
    assert estimator_to_plain(again) == written


# Classes of others


def other_class(base: type, name: str, **more: Any) -> type:
    return type(name, (base,), {"__module__": "elsewhere", **more})


@pytest.mark.parametrize("name", ["Own", "Threshold", "Stumps", "Quantiles"])
@pytest.mark.parametrize("value", [Threshold(0.5), Stumps(), SANITIZERS[0]], ids=repr)
def test_a_derived_class_is_neither_written_nor_read(value: Any, name: str) -> None:
    kind = other_class(type(value), name)
    own: Any = object.__new__(kind)
    vars(own).update(vars(value))
    for write in (to_plain, to_bytes):
        with pytest.raises(InvalidParameter, match=f"a {name} cannot be stored"):
            write(own)
    plain = to_plain(value)
    text = json.dumps(plain).replace(name_of(type(value)), "Own")
    with pytest.raises(InvalidParameter, match=r"unknown kind|no hypothesis"):
        from_plain(json.loads(text))


@dataclass(frozen=True)
class OwnCost(Pure):
    """A cost of somebody else."""


def test_a_derived_cost_or_learner_is_neither_written_nor_read(tmp_path: Path) -> None:
    with pytest.raises(UnknownCost, match="OwnCost cannot be stored"):
        cost_to_dict(OwnCost(1.0))
    with pytest.raises(InvalidParameter, match="unknown here"):
        cost_from_dict({"kind": "OwnCost", "eps": 1.0})
    with pytest.raises(UnknownCost):
        to_bytes(OwnCost(1.0) + Pure(0.5))
    kind = other_class(cumae.PrivateLearner, "PrivateLearner")
    one = kind(5.0)
    one.classes_ = np.array([0, 1])
    with pytest.raises(InvalidParameter, match="cannot be stored"):
        one.to_dict()


@dataclass(frozen=True)
class RegisteredCost(Pure):
    """A cost of somebody else, who registered it."""


def test_a_registered_class_is_written_and_read() -> None:
    register("cost", {"tests.RegisteredCost": RegisteredCost})
    register("cost", {"tests.RegisteredCost": RegisteredCost})  # as if its module came again
    plain = cost_to_dict(RegisteredCost(0.5))
    assert plain == {"kind": "tests.RegisteredCost", "eps": 0.5}
    assert cost_from_dict(plain) == RegisteredCost(0.5)
    assert from_bytes(to_bytes([RegisteredCost(0.5)])) == [RegisteredCost(0.5)]


@pytest.mark.parametrize(
    ("form", "name", "kind"),
    [
        ("cost", "Pure", OwnCost),  # the name of another class
        ("cost", "tests.Pure", Pure),  # a class that has a name
        ("cost", "tests.Own", Threshold),  # no cost
        ("hypothesis", "Threshold", other_class(Threshold, "Threshold")),
    ],
)
def test_a_name_belongs_to_one_class(form: str, name: str, kind: type) -> None:
    before = registered_names()
    with pytest.raises(InvalidParameter, match="register"):
        register(form, {name: kind})
    assert registered_names() == before


def test_a_class_of_the_name_of_a_known_estimator_is_not_written() -> None:
    kind = other_class(DecisionTreeClassifier, "DecisionTreeClassifier")
    assert estimator_to_plain(kind())["written"] is None
    own = other_class(BaseEstimator, "GaussianNB")
    assert estimator_to_plain(own())["written"] is None


def test_what_a_fitted_estimator_learnt_is_never_left_out_in_silence() -> None:
    learner = cumae.Adapter(GaussianNB(), 9.0).fit(POINTS, LABELS)
    with pytest.raises(InvalidParameter, match="a GaussianNB cannot be stored"):
        learner.to_dict()


# Files of older versions


class OwnStumps(Stumps):
    """A concept class of somebody else."""


class OwnRule(Threshold):
    """A hypothesis of somebody else."""


@pytest.mark.parametrize(
    ("model", "known"),
    [
        (Thresholds("above"), "9634fff08785f2224de6ae0794be1f55c14cc3b6efc02299b3c1d93f8b32e5b8"),
        (OwnStumps(), "c88b410f5b55813d4a50c4eb1bb64deae5e3eb1de0dcdcfb87e0fcfe0c1a046c"),
        (CONCEPTS[1], "19e8ddd651917e1e425ee84c103258fef35ad3b2568f7bf3995511b58b90642a"),
        (
            FiniteClass([OwnRule(0.5)]),
            "6ebdb2b0948968b4d33559e0100bc2ec0cc90e3be01d096a2729209f7de3a896",
        ),
    ],
)
def test_fingerprints_are_those_of_older_versions(model: Any, known: str) -> None:
    assert fingerprint(model) == f"2:{known}"
    assert first_fingerprint(model) == known


def test_estimators_of_older_versions_are_read() -> None:
    plain = {
        "$": "estimator",
        "module": "sklearn.pipeline",
        "class": "Pipeline",
        "parameters": {
            "steps": [
                {
                    "$": "parts",
                    "items": [
                        "one",
                        {
                            "$": "estimator",
                            "module": "sklearn.preprocessing",
                            "class": "OneHotEncoder",
                            "parameters": {"dtype": {"$": "type", "name": "float32"}},
                        },
                    ],
                }
            ]
        },
    }
    found = estimator_from_plain({"fingerprint": "", "written": json.dumps(plain)})
    ((name, step),) = found.steps
    assert (name, step.dtype) == ("one", np.float32)


MODELS = json.loads((STORED / "models_format_1.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", MODELS)
def test_models_of_the_first_format_are_read(name: str, tmp_path: Path) -> None:
    known = MODELS[name]
    path = tmp_path / "model.json"
    path.write_text(json.dumps(known["model"]), encoding="utf-8")
    learner = Learner.load(path)
    rows = known["rows"]
    asked: Any = pd.DataFrame(rows) if isinstance(rows, dict) else rows
    if name == "days":
        asked = np.array(rows, dtype="datetime64[D]")
    assert learner.predict(asked).tolist() == known["answers"]
    before = _renumbered(known["model"])
    later = {"class_weight", "costs", "threshold", "goal", "sensitivity", "confidence", "held_out"}
    now = learner.to_dict()
    added = {now["params"].pop(name, None) for name in later - set(before["params"])}
    assert added <= {None, "accuracy", 0.25}  # what each parameter is by default
    assert now == before  # the rest of the text is the same


def _renumbered(plain: Any) -> Any:
    """Return what older versions wrote, with the number of the present format."""
    if isinstance(plain, list):
        return [_renumbered(part) for part in plain]
    if isinstance(plain, dict):
        found = {name: _renumbered(part) for name, part in plain.items()}
        return found | {"format": TEXT_FORMAT} if "format" in found else found
    return plain


def test_an_account_of_the_first_format_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    path.write_text((STORED / "account_format_1.json").read_text(encoding="utf-8"))
    budget = Budget.load(path)
    assert [entry.what for entry in budget.entries] == ["a fit", "votes"]
    budget.spend(Pure(0.25))
    assert Budget.load(path).spent == budget.spent == (0.1 + 0.2019384562572668 + 0.25, 1e-7)


def test_a_column_of_any_declaration_comes_back() -> None:
    for given_ in ((0, 1), ["a", None], bool, dt.date(2020, 1, 2), {"low": 0, "high": 9}):
        for column in Columns([given_], None, 1).columns:
            assert isinstance(column, Column)
            assert from_bytes(to_bytes(column)) == from_plain(to_plain(column)) == column
