"""A fit ends well, or is refused before anything is paid: wide tables, odd columns, links."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

import cumae
from cumae import (
    Budget,
    EverlastingPredictor,
    GenericBBL,
    PrivateClassifier,
    QueryRelease,
    UniversalQueryRelease,
)
from cumae.concepts import Intervals, Rectangles, Thresholds, Trees
from cumae.data import Columns
from cumae.errors import BudgetExhausted, InvalidData, InvalidParameter
from cumae.learners import (
    AccuracyBoost,
    ActiveLearner,
    GenericLearner,
    HypothesisLearner,
    OneVsRest,
    PrivateBooster,
    PrivateKernelClassifier,
    PrivateLearner,
    PrivateLogisticRegression,
    PublicDataReduction,
    SemiPrivateLearner,
)
from cumae.learners.cuts import cuts_between, cuts_of_a_column, public_cuts
from cumae.privacy import Pure
from cumae.sanitizers import MultiplicativeWeights, Quantiles
from tests.cells import write

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")
ROWS = 80


# Wide tables


def wide(kind: str, width: int) -> tuple[Any, Any, list[Any]]:
    """Return private rows, public rows, and what is declared about their columns."""
    spread = np.random.default_rng(width).random((2 * ROWS, width))
    declared: list[Any] = [(0.0, 1.0)] * width
    X: Any = spread
    if kind == "booleans":
        X, declared = spread > 0.5, [bool] * width
    elif kind == "text":
        words = np.array(["a", "b", "c"], dtype=object)
        X, declared = words[(spread * 3).astype(int)], [["a", "b", "c"]] * width
    elif kind == "mixture":
        X = spread.astype(object)
        X[:, ::3], X[:, 1::3] = (
            spread[:, ::3] > 0.5,
            np.array(["a", None])[(spread[:, 1::3] > 0.5).astype(int)],
        )
        forms = [bool, ["a", "b", None], (0.0, 1.0, "missing")]
        declared = [forms[place % 3] for place in range(width)]
        X[::5, 2::3] = None
    return X[:ROWS], X[ROWS:], declared


# Learners by name, given what is declared; and whether they get public rows, or unlabelled ones.
LEARNERS: dict[str, tuple[Any, bool, bool]] = {
    "private": (lambda c: PrivateLearner(n_points=7, columns=c), False, False),
    "private, public": (lambda c: PrivateLearner(n_points=7, columns=c), True, False),
    "generic": (lambda c: GenericLearner(n_points=7, columns=c), False, True),
    "generic, public": (lambda c: GenericLearner(n_points=7, columns=c), True, True),
    "generic, stable": (
        lambda c: GenericLearner(None, 1.0, 1e-6, "stable", n_points=7, columns=c),
        False,
        True,
    ),
    "semi-private": (lambda c: SemiPrivateLearner(n_points=7, columns=c), True, False),
    "semi-private, labels": (
        lambda c: SemiPrivateLearner(n_points=7, label_privacy=True, columns=c),
        False,
        False,
    ),
    "booster": (lambda c: PrivateBooster(columns=c, n_rounds=2), False, False),
    "booster, public": (lambda c: PrivateBooster(columns=c, n_rounds=2), True, False),
    "booster, cuts": (lambda c: PrivateBooster(columns=c, n_rounds=1, n_cuts=60), True, False),
    "kernel": (lambda c: PrivateKernelClassifier(columns=c), False, False),
    "kernel, public": (lambda c: PrivateKernelClassifier(columns=c), True, False),
    "classes": (
        lambda c: OneVsRest(PrivateBooster(n_rounds=1, columns=c), [0, 1], 1.0),
        True,
        False,
    ),
    "blocks": (
        lambda c: AccuracyBoost(PrivateLearner(n_points=7, columns=c), blocks=3),
        False,
        False,
    ),
    "active": (
        lambda c: ActiveLearner(GenericLearner(n_points=7, columns=c), 1.0, n_labels=9),
        False,
        False,
    ),
    "planner": (lambda c: PrivateClassifier(1.0, 0.0, columns=c), False, False),
}
FEW = ["private, public", "booster, public", "kernel"]
CASES = [(name, "numbers", 586) for name in LEARNERS]
CASES += [(name, "mixture", 900) for name in FEW]
CASES += [("booster", "booleans", 3_000)]
CASES += [("booster", "numbers", 3_000), ("booster", "text", 1_300), ("private", "numbers", 5_000)]


@pytest.mark.claim("BOOST", "GENERIC", "TREES")
@pytest.mark.parametrize(("name", "kind", "width"), CASES)
def test_wide_tables_are_fitted_or_refused_unpaid_as_was_planned(
    name: str, kind: str, width: int
) -> None:
    """Trees take 4,096 cuts: a column gets fewer of them, and more columns are refused."""
    make, shown, some = LEARNERS[name]
    X, public, declared = wide(kind, width)
    y = (np.arange(ROWS) // 2 % 2).tolist()
    unlabelled = ROWS // 2 if some else 0
    labels = [-1 if some and row % 2 else label for row, label in enumerate(y)]
    budget = Budget(1e6, 0.5)
    learner = make(declared).set_params(budget=budget)
    more = {"n_unlabelled": unlabelled} if some else {}
    outlook = learner.plan(ROWS - unlabelled, width, len(public) if shown else 0, **more)
    assert budget.spent == (0.0, 0.0)
    try:
        if name == "active":
            labels = [y[place] for place in learner.select(X)]
        learner.fit(X, labels, *([public] if shown else []))
    except InvalidParameter as error:
        assert budget.spent == (0.0, 0.0)
        assert outlook.reasons == (str(error),)  # noqa: PT017
        assert width > 4_096
    else:
        assert outlook.can_run
        assert budget.spent[0] > 0
        assert len(learner.predict(X[:3])) == 3


def test_cuts_are_shared_among_columns() -> None:
    def each(declared: list[Any], wanted: int = 7, *, ends: bool = False) -> int:
        columns = Columns(declared, None, len(declared))
        return cuts_of_a_column(Trees(2), columns, wanted, ends=ends)

    assert each([(0, 1)] * 585) == 7
    assert each([(0, 1)] * 586) == 6
    assert each([(0, 1)] * 3_000) == 1
    assert each([bool] * 3_000 + [(0, 1)] * 100) == 7
    assert each([(0, 3, 1)] * 1_000) == 7  # three cuts at most
    assert each([(0, 1)] * 600, ends=True) == 5
    assert each([(0, 1, "missing")] * 600) == 5  # 600 marks take a cut each
    assert cuts_of_a_column(Trees(1), Columns([(0, 1)] * 5_000, None, 5_000), 7) == 7


def test_released_and_public_points_have_no_more_cuts_than_trees_take() -> None:
    points = np.random.default_rng(0).random((30, 700))
    assert len(cuts_between(Trees(2), points)) == 5 * 700
    assert len(cuts_between(Trees(1), points)) == 29 * 700
    assert len(public_cuts(Trees(3), points, 20)) == 5 * 700
    assert cuts_between(Thresholds(), points[:, :1]).shape == (30, 1)


# Draws and noise that cannot be made, and answers that are not there


@pytest.mark.claim("CHOOSE", "KERNEL", "REDUCE")
@pytest.mark.parametrize(
    ("learner", "public"),
    [
        (PrivateLearner(Intervals(), 1e12, columns=[(0, 1)]), None),
        (PrivateLearner(Intervals(), 1e12, columns=[float]), None),
        (PrivateLearner(Rectangles(), n_points=2**21, columns=[(0, 1)]), None),
        (SemiPrivateLearner(Intervals(), 1e12), [[0.2], [0.7]]),
        (GenericLearner(Intervals(), 1e13, columns=[(0, 1)]), None),
        (GenericLearner(Thresholds(), sanitizer=Quantiles(1.0, [(0, 1)] * 2)), None),
        (
            GenericLearner(
                Thresholds(), sanitizer=MultiplicativeWeights(Rectangles(), 1.0, [[0, 1], [1, 0]])
            ),
            None,
        ),
        (PrivateLogisticRegression(1e-9, 1e-15, columns=[(0, 1)]), None),
        (PrivateBooster(1e-9, 1e-15, columns=[(0, 1)]), None),
        (
            HypothesisLearner(PrivateLearner(Thresholds(), columns=[(0, 1)]), [[0.5]], 0.001, 0.5),
            None,
        ),
        (HypothesisLearner(QueryRelease(Thresholds(), max_queries=2), [[0.1], [0.5], [0.9]]), None),
    ],
    ids=str,
)
def test_limits_are_known_before_the_payment(learner: Any, public: Any) -> None:
    X = np.random.default_rng(1).random((200, 1))
    y = np.where(X[:, 0] > 0.5, 1, 0)
    if isinstance(learner, GenericLearner):
        y[::2] = -1
    budget = Budget(1e300, 0.5)
    with pytest.raises((InvalidParameter, InvalidData, BudgetExhausted)):
        learner.set_params(budget=budget).fit(X, y, *([] if public is None else [public]))
    assert budget.entries == ()


# Columns of which reading leaves nothing


def cells(kind: str) -> list[Any]:
    places = (np.arange(ROWS) * 7 % 50).tolist()
    found: dict[str, list[Any]] = {
        "text": [f"word {place % 3}" for place in places],
        "text and nothing": [None if place % 5 else "word" for place in places],
        "dates": [dt.date(2020, 1, 1) + dt.timedelta(days=place) for place in places],
        "times": [dt.datetime(2020, 1, 1) + dt.timedelta(days=place) for place in places],  # noqa: DTZ001
        "near 10^30": [10**30 + place for place in places],
        "nothing": [None for _ in places],
        "near 2^62": [2**62 + place for place in places],
    }
    return found[kind]


def containers(kind: str, folder: Path) -> dict[str, Any]:
    """Return a table of one column in every container that can hold it."""
    column = cells(kind)
    array = np.array(column, dtype=object).reshape(-1, 1)
    found: dict[str, Any] = {
        "flat list": column,
        "list": [[cell] for cell in column],
        "array of objects": array,
        "frame of objects": pd.DataFrame({"a": pd.Series(column, dtype=object)}),
    }
    if kind not in ("near 10^30", "nothing"):  # which have no type of Arrow that holds numbers
        found["frame"] = pd.DataFrame({"a": column})
        found["arrow"] = pa.table({"a": column})
        found["parquet"] = write(folder / "rows.parquet", {"a": column})
    if kind == "near 2^62":
        found["array"] = np.array(column, dtype=np.int64).reshape(-1, 1)
    return found


READERS: dict[str, Any] = {
    "everlasting": lambda: EverlastingPredictor(Thresholds(), prior=False),
    "everlasting, trees": lambda: EverlastingPredictor(prior=False),
    "query": lambda: QueryRelease(Thresholds(), max_queries=5),
    "universal": lambda: UniversalQueryRelease(Thresholds(), n_first=5),
    "bbl": lambda: GenericBBL(Thresholds(), 20.0, shard_size=4),
    "regression": PrivateLogisticRegression,
    "kernel": PrivateKernelClassifier,
    "booster": lambda: PrivateBooster(1.0, 1e-6),
    "generic": lambda: GenericLearner(Trees(1)),
    "classes": lambda: OneVsRest(PrivateLearner(columns=[(0, 1)]), [0, 1], 1.0),
    "reduction": lambda: PublicDataReduction(
        SemiPrivateLearner(columns=[(0, 1)]), [[0.0], [1.0]], 5, n_private=20
    ),
}


@pytest.mark.claim("SHARDS")
@pytest.mark.parametrize(
    "kind", ["text", "text and nothing", "nothing", "dates", "times", "near 10^30", "near 2^62"]
)
@pytest.mark.parametrize("name", READERS)
def test_columns_of_which_nothing_is_left_are_refused_unpaid(
    name: str, kind: str, tmp_path: Path
) -> None:
    y = (np.arange(ROWS) % 2).tolist()
    for X in containers(kind, tmp_path).values():
        budget = Budget(1e6, 0.5)
        labels = [-1, *y[1:]] if name == "generic" else y
        with pytest.raises((InvalidParameter, InvalidData)):
            READERS[name]().set_params(budget=budget).fit(X, labels)
        assert budget.entries == ()


@pytest.mark.parametrize("name", ["everlasting, trees", "regression", "booster"])
def test_categories_of_which_none_occurs_are_refused_unpaid(name: str) -> None:
    budget = Budget(1e6, 0.5)
    one = READERS[name]().set_params(budget=budget, columns=[["Word 0", "Word 1", None]])
    X: list[Any] = [[None], *[[cell] for cell in cells("text")[1:]]]
    with pytest.raises(InvalidData, match="no cell that is one of its declared"):
        one.fit(X, [0, 1] * 40)
    assert budget.entries == ()
    X[-1] = ["Word 1"]
    assert one.fit(X, [0, 1] * 40).guarantee_.epsilon <= 1


def test_one_number_is_enough() -> None:
    """What the other rows hold decides nothing, as soon as one cell can be read."""
    column: list[Any] = [*cells("text")[1:], 0.5]
    release = QueryRelease(Thresholds(), max_queries=5).fit(
        [[cell] for cell in column], [0, 1] * 40
    )
    assert release.guarantee_.epsilon <= 1
    far: list[Any] = [*cells("near 10^30")[1:], 0]
    release.fit([[cell] for cell in far], [0, 1] * 40)
    same = [[10**30]] * ROWS
    assert release.fit(same, [0, 1] * 40).guarantee_.epsilon <= 1


def test_classes_that_compare_take_what_has_an_order() -> None:
    X = [[cell] for cell in cells("near 10^30")]
    learner = SemiPrivateLearner(Thresholds(), epsilon=9.0).fit(X, [0, 1] * 40, X)
    assert set(learner.predict(X).tolist()) <= {0, 1}


# Files with several names


@pytest.mark.claim("BUDGET", "STORE")
def test_a_hard_link_is_no_second_account(tmp_path: Path) -> None:
    plain, ledger = tmp_path / "account.json", tmp_path / "account.db"
    first, second = Budget(1.0), Budget(1.0)
    first.save(plain)
    second.save_to(ledger)
    for path, budget, load in ((plain, first, Budget.load), (ledger, second, cumae.open)):
        budget.spend(Pure(0.25))
        link = tmp_path / f"link-{path.name}"
        os.link(path, link)
        for call in (lambda: load(link), lambda: load(path), lambda: budget.spend(Pure(0.25))):  # noqa: B023
            with pytest.raises(InvalidParameter, match="hard link"):
                call()
        link.unlink()
        budget.spend(Pure(0.25))
        assert load(path).spent == (0.5, 0.0)


def test_a_symbolic_link_is_the_same_account(tmp_path: Path) -> None:
    path, link = tmp_path / "account.json", tmp_path / "link.json"
    budget = Budget(1.0)
    budget.save(path)
    link.symlink_to(path)
    Budget.load(link).spend(Pure(0.75))
    assert link.is_symlink()
    with pytest.raises(BudgetExhausted):
        budget.spend(Pure(0.5))


@pytest.mark.claim("STORE")
def test_a_hard_link_is_no_second_oracle(tmp_path: Path) -> None:
    path, link = tmp_path / "oracle.db", tmp_path / "link.db"
    X = np.random.default_rng(0).random((200, 1))
    QueryRelease(Thresholds(), max_queries=50).fit(X, X[:, 0] > 0.5).save_to(path)
    os.link(path, link)
    for name in (path, link):
        with pytest.raises(InvalidParameter, match="hard link"):
            cumae.open(name)
    link.unlink()
    oracle = cumae.open(path)
    assert len(oracle.predict(X[:2])) == 2
    oracle.close()


# Parts


@pytest.mark.claim("OVR")
def test_members_show_the_guarantee_of_the_whole() -> None:
    X = np.random.default_rng(0).random((300, 1))
    base = PrivateLearner(Intervals(), columns=[(0, 1)])
    model = OneVsRest(base, [0, 1, 2], 3.0).fit(X, (X[:, 0] * 3).astype(int))
    assert model.guarantee_.epsilon == 3.0
    assert [member.guarantee_ for member in model.members_] == [model.guarantee_] * 3
    assert not hasattr(base, "guarantee_")


@pytest.mark.claim("REDUCE")
def test_what_a_part_of_the_rows_holds_is_not_seen() -> None:
    """All numbers but one become the same float: nobody is told whether that row was drawn."""
    X: list[Any] = [[cell] for cell in cells("near 10^30")]
    X[5] = [0]
    base = PrivateLearner(columns=[(0, 1)])
    for learner in (
        AccuracyBoost(base, blocks=4),
        PublicDataReduction(SemiPrivateLearner(columns=[(0, 1)]), [[0.5]], 1, n_private=20),
    ):
        assert learner.fit(X, [0, 1] * 40).guarantee_.epsilon <= 1


def test_predictors_inside_of_learners_refuse_before_the_payment() -> None:
    budget = Budget(9.0, 1e-3)
    learner = HypothesisLearner(
        QueryRelease(Thresholds(), max_queries=5), [["word 1"]], budget=budget
    )
    with pytest.raises(InvalidData, match="no cell that can be read"):
        learner.fit([[cell] for cell in cells("text")], [0, 1] * 40)
    assert budget.entries == ()


DOMAINS: dict[str, Any] = {
    "missing": [[0.1], [np.nan]],
    "none": [[0.1], [None]],
    "text": [[0.1], ["word"]],
    "wide": [[0.1, 0.2]],
}
ANSWERING: list[Any] = [
    PrivateLearner(Thresholds(), columns=[(0, 1)]),
    AccuracyBoost(PrivateLearner(Thresholds(), columns=[(0, 1)]), blocks=3),
    QueryRelease(Thresholds(), max_queries=9, columns=[(0, 1)]),
    EverlastingPredictor(Thresholds(), columns=[(0, 1)], prior=False),
    PrivateClassifier(columns=[(0, 1)]),
]


@pytest.mark.claim("REDUCE")
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("base", ANSWERING, ids=lambda base: type(base).__name__)
def test_a_domain_that_cannot_be_read_is_refused_before_the_payment(base: Any, domain: str) -> None:
    budget = Budget(9.0, 1e-3)
    X = np.random.default_rng(0).random((200, 1))
    learner = HypothesisLearner(base, DOMAINS[domain])
    for one in (learner, AccuracyBoost(learner, blocks=2)):
        with pytest.raises(InvalidData, match=r"^domain: "):
            clone(one).set_params(budget=budget).fit(X, (X[:, 0] > 0.5).astype(int))
    assert budget.entries == ()
