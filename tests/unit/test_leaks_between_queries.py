"""Ways in which one query, or one row, once changed what another one got."""

from __future__ import annotations

import datetime as dt
import itertools
import time
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import cumae.predictors.queries
from cumae import EverlastingPredictor, InvalidParameter, QueryRelease
from cumae.data import Columns, ordinary_cells, plain_floats
from cumae.ensembles.blocks import block_rows
from cumae.ensembles.voters.loop import LoopVoters
from cumae.learners import Adapter, PublicDataReduction
from cumae.predictors.everlasting.phases import query_numbers_by_keys, row_keys
from cumae.predictors.everlasting.prior import Prior
from cumae.predictors.queries import QueryReader
from cumae.predictors.state import restore
from cumae.privacy import REPLACE_ONE, Guarantee, Pure

RNG = np.random.default_rng(7)
WORDS = RNG.integers(1, 9, 1500)
TEXT = pd.DataFrame({"c": pd.Series(["x" * size for size in WORDS], dtype=object)})
LOOSE: dict[str, Any] = {"epsilon": np.inf, "growth": 1.0, "prior": False, "random_state": 1}


def oracle(estimator: Any, **options: Any) -> EverlastingPredictor:
    return EverlastingPredictor(estimator, **{"shard_size": 100, **LOOSE, **options})


# Stand-ins: a model that fails on a row because of them fails in a full block, too


def lengths(frame: Any) -> Any:
    """Fail where types are mixed, as sorting does."""
    values, back = np.unique(frame["c"].to_numpy(dtype=object), return_inverse=True)
    return np.array([len(str(value)) for value in values], dtype=float)[back].reshape(-1, 1)


@pytest.mark.filterwarnings("ignore::cumae.TooFewRows")  # made-up texts have the same length
@pytest.mark.claim("SHARDS", "EVER")
def test_a_row_that_fails_among_stand_ins_fails_in_a_full_block() -> None:
    size = block_rows(1)
    estimator = make_pipeline(FunctionTransformer(lengths), LogisticRegression())

    def answers(hidden: Any) -> Any:
        cells = [10**7 + place % 50 for place in range(2 * size)]
        cells[0] = hidden
        asked = pd.DataFrame({"c": pd.Series(cells, dtype=object)})
        return oracle(estimator).fit(TEXT, WORDS > 4).predict(asked)[1:]

    assert (answers(10**7) == answers("x")).all()


def logarithms(table: Any) -> Any:
    return np.clip(np.log(table), -50, 50)  # warns at 0


@pytest.mark.claim("PRIOR")
def test_a_prior_that_fails_on_the_stand_in_is_refused() -> None:
    model = make_pipeline(FunctionTransformer(logarithms), LogisticRegression())
    prior = Adapter(model, epsilon=20.0, delta=1e-6)
    x = RNG.random((3000, 1))
    one = oracle(DecisionTreeClassifier(max_depth=1), prior=prior, columns=[(0.0, 1.0)])
    with pytest.raises(InvalidParameter, match="lower bound of every column"):
        one.fit(x, x[:, 0] > 0.5)


# What a model returns is read answer by answer


class Unsure(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Returns a list, in which a strange row is a text."""

    def fit(self, X: Any, y: Any) -> Unsure:
        del X
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return ["unsure" if row[0] < -5 else int(row[0] > 0.5) for row in X]


class Texts(Unsure):
    """Returns an array, whose type one text decides."""

    def predict(self, X: Any) -> Any:
        return np.array(super().predict(X))


@pytest.mark.claim("SHARDS", "EVER")
@pytest.mark.parametrize("kind", [Unsure, Texts])
def test_one_answer_does_not_decide_the_type_of_others(kind: Any) -> None:
    x = RNG.random((800, 1))

    def answers(hidden: float) -> Any:
        fitted = oracle(kind()).fit(x, x[:, 0] > 0.5)
        return fitted.predict(np.array([[0.9], [0.8], [hidden]]))[:2].tolist()

    assert answers(0.1) == answers(-9.0) == [1, 1]


class Fewer(Unsure):
    """Returns nothing for a strange row, so that later answers move to another place."""

    def predict(self, X: Any) -> Any:
        return np.array([int(row[0] > 0.5) for row in X if row[0] >= -5])


class Writing(Unsure):
    """Writes into the table before it stumbles over a strange row."""

    def predict(self, X: Any) -> Any:
        X *= 0.5
        if (X[:, 0] < -2).any():
            raise ValueError
        return np.where(X[:, 0] > 0.25, 1, 0)


class WritingLearner(Adapter):
    """Gives the table of a block to its estimator as it is."""

    def _encode(self, columns: Any, X: Any) -> Any:
        del columns
        return X


@pytest.mark.claim("PRIOR", "SHARDS")
@pytest.mark.parametrize("kind", [Unsure, Texts, Fewer, Writing])
def test_one_answer_of_a_prior_does_not_change_others(kind: Any) -> None:
    wrapper = WritingLearner if kind is Writing else Adapter
    learner = wrapper(kind(), epsilon=1.0, columns=[(0.0, 1.0)])
    learner.fit([[0.1], [0.9]] * 9, [0, 1] * 9)
    prior = Prior(learner, Columns([(0.0, 1.0)], None, 1), encoded=True)

    def shares(hidden: float) -> Any:
        return prior.shares(np.array([[hidden], [0.9], [0.1]]), np.arange(3))[1:].tolist()

    assert shares(0.1) == shares(-9.0) == [[0.25, 0.75], [0.75, 0.25]]


# Cells


class Zone(dt.tzinfo):
    """A zone that can be neither shown nor pickled."""

    def utcoffset(self, when: Any) -> Any:
        del when
        return dt.timedelta(0)

    def dst(self, when: Any) -> Any:
        del when

    def tzname(self, when: Any) -> str:
        del when
        return "zone"

    def __reduce__(self) -> Any:
        raise TypeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Broken(Zone):
    """A zone that raises when it is asked."""

    def utcoffset(self, when: Any) -> Any:
        raise RuntimeError("no")


MIXED = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["c"]), remainder="passthrough"
    ),
    LogisticRegression(),
)
X = RNG.random(800)
FRAME = pd.DataFrame({"x": X, "c": pd.Series(np.where(X > 0.5, "a", "b"), dtype=object)})
ODD = [
    10**5000,
    -(10**5000),
    dt.datetime(2020, 1, 1, tzinfo=Zone()),
    Broken(),
    np.timedelta64(1, "D"),
    np.timedelta64(1, "ns"),
]
NAMES = ["long", "negative", "zone", "object", "days", "nanoseconds"]


@pytest.mark.claim("MEMO", "EVER")
@pytest.mark.parametrize("memoize", [False, True])
@pytest.mark.parametrize("odd", ODD, ids=NAMES)
def test_an_odd_cell_does_not_raise_for_others(odd: Any, memoize: bool) -> None:
    one = oracle(MIXED, memoize=memoize).fit(FRAME, X > 0.5)
    cells = pd.Series(["b", "a", odd], dtype=object)
    with joblib.parallel_config(n_jobs=2):
        found = one.predict(pd.DataFrame({"x": [0.1, 0.9, 0.5], "c": cells}))
    assert found[:2].tolist() == [0, 1]
    assert one.answered_ == 3


FAR = pa.array([2**31 - 1, 0, 1], pa.int32()).cast(pa.date32())  # days, more than Python counts
ENDS = np.array([0, 1, 2, 3], dtype=np.int32).tobytes()
DAMAGED = pa.Array.from_buffers(
    pa.string(),
    3,
    [None, pa.py_buffer(ENDS), pa.py_buffer(b"\xffab")],  # no text has this byte
)


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("column", [FAR, DAMAGED], ids=["date", "text"])
def test_a_cell_that_pandas_cannot_read_does_not_raise_for_others(column: Any) -> None:
    kind: Any = pd.ArrowDtype(column.type)
    cells = pd.Series(column, dtype=kind)
    one = oracle(MIXED).fit(FRAME, X > 0.5)
    found = one.predict(pd.DataFrame({"x": [0.5, 0.1, 0.9], "c": cells}))
    assert found[0] == -1
    assert (found[1:] >= 0).all()


@pytest.mark.claim("SHARDS", "EVER")
@pytest.mark.parametrize("odd", ODD, ids=NAMES)
def test_a_cell_of_a_private_row_stops_neither_training_nor_storing(odd: Any) -> None:
    cells = FRAME["c"].to_numpy().copy()  # pandas would turn spans of numpy into its own
    cells[5] = odd
    one = oracle(MIXED, n_jobs=2).fit(FRAME.assign(c=pd.Series(cells, dtype=object)), X > 0.5)
    restore(one.to_arrays(), MIXED)


def test_plain_cells_are_short_numbers_and_plain_times() -> None:
    moment = dt.datetime(2020, 1, 1, 12)  # noqa: DTZ001 - cells need no zone
    given = [2**63 - 1, 2**63, 10**400, moment, moment.replace(tzinfo=Zone()), "a", True]
    given.append(moment.replace(tzinfo=Broken()))
    cells = ordinary_cells(np.array([*given, None], dtype=object)[:-1])
    assert cells[:2].tolist() == [2**63 - 1, 2.0**63]
    assert np.isnan(cells[2])
    assert cells[3] == moment
    assert cells[4] == moment.replace(tzinfo=dt.UTC)
    assert type(cells[4].tzinfo) is dt.timezone
    assert cells[5:7].tolist() == ["a", True]
    assert np.isnan(cells[7])


def test_plain_cells_are_what_can_be_stored() -> None:
    moment = dt.datetime(2020, 1, 1, 12)  # noqa: DTZ001 - cells need no zone
    named = moment.replace(tzinfo=dt.timezone(dt.timedelta(hours=1), "somewhere"))
    spans = [np.timedelta64(1, "D"), np.timedelta64(1, "ns")]
    cells = ordinary_cells(np.array([moment.replace(fold=1), named, *spans], dtype=object))
    assert cells[0].fold == 0
    assert cells[1].tzname() == "UTC+01:00"
    assert cells[1] == named
    assert np.isnan(cells[2:].astype(float)).all()


class Warns:
    """Warns when it is looked at."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        import warnings

        warnings.warn("read", UserWarning, stacklevel=1)
        return np.array([0.5])


@pytest.mark.claim("EVER")
def test_a_query_that_warns_is_not_heard() -> None:
    x = RNG.random((800, 1))
    one = oracle(DecisionTreeClassifier(max_depth=1)).fit(x, x[:, 0] > 0.5)
    assert one.predict([0.9, Warns(), 0.1]).tolist() == [1, -1, 0]


# Types that a base sees


class Base(BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Remembers the type of its column."""

    def __init__(self, epsilon: float = 1.0, delta: float = 0.0) -> None:
        self.epsilon, self.delta = epsilon, delta

    def fit(self, X: Any, y: Any, X_public: Any) -> Base:
        del y, X_public
        self.seen_ = str(X.dtypes["c"])
        self.guarantee_ = Guarantee.of(
            Pure(1.0), protects="one row", relation=REPLACE_ONE, claims=("REDUCE",)
        )
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X), dtype=int)


@pytest.mark.claim("REDUCE")
def test_public_data_reduction_writes_types_out() -> None:
    def seen(odd: Any) -> str:
        cells = ["a", "b"] * 10
        cells[3] = odd
        rows = pd.DataFrame({"c": pd.Series(cells, dtype=object)})
        dummies = pd.DataFrame({"c": pd.Series(["a", "b"], dtype=object)})
        learner = PublicDataReduction(
            Base(), dummies, n_public=3, n_private=20, one_in=10, random_state=1
        )
        return str(learner.fit(rows, np.arange(20) % 2).model_.seen_)

    assert seen("a") == seen(7) == "object"


# Models that are asked in a whole block


def joined(frame: Any) -> Any:
    return frame.join(frame["x"].rename("x2") ** 2)


@pytest.mark.parametrize("block", ["index", "size"])
def test_a_model_that_fails_on_a_block_is_refused_or_votes(block: str) -> None:
    def step(frame: Any) -> Any:
        if block == "size" and len(frame) == block_rows(1) and len(set(frame["x"])) == 1:
            raise ValueError("only stand-ins")
        return joined(frame)

    estimator = make_pipeline(FunctionTransformer(step), LogisticRegression())
    release = QueryRelease(
        estimator, epsilon=50.0, delta=1e-6, max_queries=9, n_shards=20, random_state=1
    )
    frame = FRAME[["x"]]
    if block == "size":
        with pytest.raises(InvalidParameter, match="only stand-ins"):
            release.fit(frame, X > 0.5)
        return
    found = release.fit(frame, X > 0.5).predict(pd.DataFrame({"x": [0.1, 0.9]}))
    assert found.tolist() == [0, 1]


# Memo: equal queries share a place, and cost one block together


@pytest.mark.claim("MEMO")
def test_equal_queries_of_a_batch_are_asked_once() -> None:
    x = RNG.random((800, 3))
    one = oracle(GaussianNB(), memoize=True).fit(x, x[:, 0] > 0.5)
    plain = oracle(GaussianNB()).fit(x, x[:, 0] > 0.5)
    queries = np.tile(RNG.random((1, 3)), (300, 1))

    def seconds(predictor: Any) -> float:
        start = time.perf_counter()
        assert len(set(predictor.predict(queries).tolist())) <= (1 if predictor is one else 2)
        return time.perf_counter() - start

    assert seconds(one) < 4 * seconds(plain)


@pytest.mark.claim("MEMO")
def test_a_place_follows_from_the_cells_alone() -> None:
    size = block_rows(3) - 1
    queries = RNG.random((200, 3))
    queries[150] = queries[3]
    numbers = query_numbers_by_keys(row_keys(queries), size + 1)
    assert numbers[150] == numbers[3]
    assert len(set(numbers.tolist())) == 199
    alone = [int(query_numbers_by_keys(row_keys(queries[[i]]), size + 1)[0]) for i in range(200)]
    assert (numbers % size == np.array(alone) % size).all()


# Blocks as in production


@pytest.mark.full_blocks
@pytest.mark.claim("SHARDS", "EVER")
def test_blocks_of_the_real_size_are_crossed_in_any_mixture_of_batches() -> None:
    x = RNG.random((400, 2))
    model = GaussianNB().fit(x, x[:, 0] > 0.5)
    voters = LoopVoters.of([model], 2, np.full((1, 2), 0.5))
    queries = RNG.random((100_000, 2))
    queries[[70, 5000, 99_999]] = np.inf
    numbers = np.arange(100_000)
    assert block_rows(2) == 4096
    whole = voters.count(queries, numbers)
    cuts = [0, 1, 2, 50, 4095, 4096, 4097, 9000, 60_000, 99_999, 100_000]
    parts = [voters.count(queries[a:b], numbers[a:b]) for a, b in itertools.pairwise(cuts)]
    assert (np.concatenate(parts) == whole).all()


CELLS = st.one_of(
    st.floats(),
    st.integers(),
    st.sampled_from([True, None, "x", "0.5", 2**53 + 1, -(10**400), np.float64(0.5), b"1"]),
)


@pytest.mark.claim("EVER", "BBL")
@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(CELLS, min_size=1, max_size=3), min_size=1, max_size=4),
    st.sampled_from([list, tuple]),
)
def test_the_shorter_way_of_plain_numbers_reads_the_same(
    queries: list[list[Any]], kind: Any
) -> None:
    """Whatever else is in the list, also rows of another width and numbers beyond all floats."""
    reader = read_by(2)
    short = [table.tolist() for table in reader.private([kind(one) for one in queries])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cumae.predictors.queries, "plain_floats", lambda *_: None)
        assert repr([one.tolist() for one in reader.private(queries)]) == repr(short)


def test_plain_arrays_are_copied_and_others_take_the_long_way() -> None:
    X = np.array([[0.5, np.nan], [1.0, 2.0]])
    table, usable = read_by(2).private(X)
    assert usable.tolist() == [False, True]
    assert np.isnan(X[0, 1])
    assert table[1].tolist() == [1.0, 2.0]
    for other in (X.astype(np.float32), X.tolist(), np.ma.masked_array(X), X.astype(object)):
        again = read_by(2).private(other)
        assert [one.tolist() for one in again] == [table.tolist(), usable.tolist()]
    assert plain_floats(np.ma.masked_array(X), 2) is None
    assert plain_floats(X, 3) is None
    assert plain_floats([], 2) is None


def read_by(width: int) -> QueryReader:
    """Return how rows of so many columns of numbers are read."""
    columns = Columns(None, None, width)
    places, stand_in = list(range(width)), np.zeros((1, width))
    return QueryReader(
        "it", columns, width, places, as_frames=False, stand_in=stand_in, text_bytes=64
    )
