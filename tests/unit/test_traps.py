"""Traps that a newcomer falls into: each is refused or warned of before anything is paid."""

from __future__ import annotations

import json
import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError

from cumae import (
    Budget,
    EverlastingPredictor,
    PrivateClassifier,
    PrivateKernelClassifier,
    QueryRelease,
)
from cumae.data import Columns
from cumae.data.declared import Column
from cumae.errors import (
    BudgetExhausted,
    InvalidData,
    InvalidParameter,
    TooFewRows,
    VotesIgnored,
    WeakPrivacy,
)
from cumae.learners import AccuracyBoost, PrivateLogisticRegression
from cumae.planning import plan
from tests.census import run

ROWS = 1_200
KNOWN = {"age": (18, 98), "smoker": bool}


def patients(smoker: Any, *, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows in which the outcome is whether somebody smokes, as cells that are written so."""
    coins = np.random.default_rng(seed)
    smokes = coins.random(ROWS) < 0.5
    age = coins.integers(18, 99, ROWS)
    return pd.DataFrame(
        {"age": age, "smoker": [smoker(one) for one in smokes.tolist()]}
    ), smokes.astype(int)


OURS: dict[str, Any] = {
    "kernel": lambda columns: PrivateKernelClassifier(1.0, columns=columns),
    "logistic": lambda columns: PrivateLogisticRegression(1.0, columns=columns),
    "chosen": lambda columns: PrivateClassifier(1.0, 1e-6, columns=columns),
    "everlasting": lambda columns: EverlastingPredictor(
        epsilon=3.0, delta=1e-6, columns=columns, prior=False
    ),
    "release": lambda columns: QueryRelease(epsilon=3.0, max_queries=9, columns=columns),
    "boosted": lambda columns: AccuracyBoost(
        PrivateKernelClassifier(1.0, columns=columns), blocks=3
    ),
}


# "My file says 0.0 and 1.0 where I declared 0 and 1. I paid, and the model knows nothing."


@pytest.mark.parametrize("declared", [["0", "1", None], ["0", "1"]])
@pytest.mark.parametrize("written", [("0.0", "1.0"), ("0", "1e0"), ("-0", "+1"), ("0.", " 1")])
def test_numbers_written_in_other_ways_are_the_declared_categories(
    declared: list[Any], written: tuple[str, str]
) -> None:
    X, y = patients(lambda one: written[one])
    columns = {"age": (18, 98), "smoker": declared}
    # One column decides alone, and now and then noise leads a fit astray; unread cells, always.
    models = [PrivateKernelClassifier(5.0, columns=columns).fit(X, y) for _ in range(3)]
    assert max(model.score(X, y) for model in models) > 0.95


def test_a_file_whose_numbers_are_written_in_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = patients(lambda one: f"{int(one)}.0")
    X.loc[0, "smoker"] = ""
    X.assign(ill=[f"{one}.0" for one in y]).to_csv("rows.csv", index=False)
    Path("schema.toml").write_text(
        "[columns]\nage = {low = 18, high = 98}\n"
        'smoker = {categories = ["0", "1"], missing = true}\n'
    )
    words = ["--label", "ill", "--classes", "0,1", "--epsilon", "1", "--delta", "1e-6"]
    words += ["--schema", "schema.toml", "--model", "kernel", "-o", "m.json"]
    assert run("fit", "rows.csv", *words).exit_code == 0
    scored = run("score", "m.json", "rows.csv", "--label", "ill", "--exact")
    assert "smoker" not in scored.output  # nothing is wrong with it
    X["smoker"] = ["" if cell == "" else cell.replace("1.0", "J") for cell in X["smoker"]]
    X["smoker"] = X["smoker"].replace("0.0", "N")
    X.assign(ill=[f"{one}.0" for one in y]).to_csv("rows.csv", index=False)
    Path("m.json").unlink()
    for more in ([], ["--dry-run"]):
        refused = run("fit", "rows.csv", *words, *more)
        assert refused.exit_code != 0
        assert "smoker of rows.csv has no cell that is one of its declared categories" in " ".join(
            refused.stderr.split()
        )
        assert not Path("m.json").exists()


def test_a_code_that_begins_with_zeros_is_no_number() -> None:
    column = Columns({"ward": ["7", "12"]}, ["ward"], 1)
    assert column.encode([["12"], ["12.0"], ["012"], ["0012.0"]]).ravel().tolist() == [1, 1, 0, 0]


def test_two_declared_texts_that_say_the_same_number_stay_apart() -> None:
    column = Columns({"a": ["1.0", "1.00", "2"]}, ["a"], 1)
    cells = [["1.0"], ["1.00"], ["1"], [1], ["2.0"]]
    assert column.encode(cells).argmax(axis=1).tolist() == [0, 1, 0, 0, 2]
    assert column.encode(cells).sum(axis=1).tolist() == [1, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("declared", "yes", "no"),
    [
        ({"boolean": True}, "1.0", "0.0"),
        ({"boolean": True}, 1.0, 0.0),
        ({"yes": "J", "no": "N"}, "J", "N"),
        ({"boolean": True, "yes": ["J", "ja"], "no": 2}, "ja", "2"),
        ({"yes": 1, "no": 2}, 1, 2),
        ({"yes": 1, "no": 2}, "1.0", "2e0"),
    ],
)
def test_booleans_by_numbers_and_by_codes(declared: dict[str, Any], yes: Any, no: Any) -> None:
    columns = Columns({"smoker": declared | {"missing": True}}, ["smoker"], 1)
    cells: list[list[Any]] = [[yes], [no], [None]]
    assert columns.encode(cells)[:2, 0].tolist() == [1, 0]
    assert columns.encode(cells)[:, 1].tolist() == [0, 0, 1]
    again = Column.from_dict(columns.columns[0].to_dict())
    assert again == columns.columns[0]
    made_up = columns.columns[0].made_up(np.array([0.1, 0.7]))
    assert columns.encode([[cell] for cell in made_up])[:, 0].tolist() == [0, 1]


@pytest.mark.parametrize(
    "declared",
    [{"yes": "J"}, {"yes": [], "no": "N"}, {"yes": "J", "no": "J"}, {"yes": None, "no": "N"},
     {"boolean": False, "yes": 1, "no": 2}, {"yes": {"a": 1}, "no": 2}],
)  # fmt: skip
def test_codes_of_yes_and_no_that_make_no_sense(declared: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="codes that are all different"):
        Columns({"smoker": declared}, ["smoker"], 1)


def test_another_code_than_those_declared_is_named_and_not_shown() -> None:
    columns = Columns({"smoker": {"yes": "J", "no": "N"}}, ["smoker"], 1)
    with pytest.raises(
        InvalidData, match="column smoker holds something that is none of the declared codes"
    ) as no:
        columns.encode([["J"], ["oui"]])
    assert "oui" not in str(no.value)


# "I paid for a column of which nothing fits what I declared."


UNFIT: dict[str, tuple[Any, Any]] = {
    "spelling": (lambda one: "YES" if one else "NO", ["yes", "no", None]),
    "nearly": (lambda one: "YES" if one else "NO", ["yes", "no"]),
    "range": (lambda one: 1_000.0 + one, (0, 1)),
    "unit": (lambda one: 1_000 + int(one), (0, 1, 1)),
    "dates": (lambda one: f"2001-01-0{1 + one}", {"first": "2010-01-01", "last": "2011-01-01"}),
}


@pytest.mark.claim("SHARDS")
@pytest.mark.parametrize("kind", UNFIT)
@pytest.mark.parametrize("name", OURS)
def test_a_column_of_which_nothing_fits_is_refused_before_the_payment(name: str, kind: str) -> None:
    smoker, declared = UNFIT[kind]
    X, y = patients(smoker)
    if kind == "nearly":
        X.loc[:10, "smoker"] = "yes"  # 11 of 1,200: less than one in a hundred
    budget = Budget(9.0, 1e-3)
    one = OURS[name]({"age": (18, 98), "smoker": declared}).set_params(budget=budget)
    with pytest.raises(InvalidData, match=r"column smoker has (no|hardly a) cell"):
        one.fit(X, y)
    assert budget.entries == ()


@pytest.mark.claim("SHARDS")
def test_one_cell_in_a_hundred_is_enough() -> None:
    X, y = patients(lambda one: "YES" if one else "NO")
    X.loc[:11, "smoker"] = "yes"
    X.loc[12:, "age"] = 1_000
    columns = {"age": (18, 98), "smoker": ["yes", "no"]}
    assert OURS["kernel"](columns).fit(X, y).guarantee_.epsilon <= 1


@pytest.mark.claim("SHARDS")
@pytest.mark.parametrize("name", ["everlasting", "release"])
def test_labels_of_which_none_is_a_class_are_refused_before_the_payment(name: str) -> None:
    X, y = patients(bool)
    budget = Budget(9.0, 1e-3)
    one = OURS[name](None).set_params(budget=budget, classes=("0", "1"))
    with pytest.raises(InvalidData, match="hardly a label, or none, is one of classes"):
        one.fit(X, [f"{label}.0" for label in y])
    assert budget.entries == ()


@pytest.mark.claim("REDUCE")
def test_what_copies_get_is_not_looked_at_again() -> None:
    """All cells that fit lie in the rows of one copy: nobody is told which copy refused."""
    X, y = patients(lambda one: "YES" if one else "NO")
    X.loc[:11, "smoker"] = "yes"
    model = OURS["boosted"]({"age": (18, 98), "smoker": ["yes", "no"]})
    assert model.fit(X, y).guarantee_.epsilon <= 1


# "Python took a delta of .01 for 500 rows, and an epsilon of 100, without a word."


@pytest.mark.filterwarnings("always::cumae.errors.WeakPrivacy")
@pytest.mark.parametrize("name", ["kernel", "chosen", "everlasting", "release", "boosted"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"epsilon": 100.0}, "epsilon = 100 hardly protects anybody"),
        ({"delta": 0.01}, r"delta = 0.01 is not below 1 divided by the number of rows \(500\)"),
    ],
)
def test_a_promise_that_protects_nobody_is_warned_of_once(
    name: str, given: dict[str, float], said: str
) -> None:
    X, y = patients(bool)
    one = OURS[name](KNOWN)
    if name == "boosted":
        one.set_params(**{f"base__{key}": value for key, value in given.items()})
    else:
        one.set_params(**given)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        one.fit(X[:500], y[:500])
    weak = [told for told in heard if told.category is WeakPrivacy]
    if name == "chosen" and "delta" in given:  # it takes trees here, which need no delta
        assert one.guarantee_.delta == 0
        assert not weak
        return
    assert len(weak) == 1
    assert re.search(said, str(weak[0].message))
    assert weak[0].filename == __file__


@pytest.mark.filterwarnings("error::cumae.errors.WeakPrivacy")
def test_usual_promises_are_not_warned_of() -> None:
    X, y = patients(bool)
    OURS["kernel"](KNOWN).fit(X, y)
    OURS["kernel"](KNOWN).set_params(epsilon=math.inf).fit(X, y)


# "I wanted a picture, and was told that there is no such thing as plot."


def test_a_picture_before_the_fit_says_that_a_fit_is_missing() -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        PrivateClassifier(1.0, 1e-6, columns=KNOWN).plot()


# "Its answers cost me more than saying no to everybody would have."


@pytest.mark.filterwarnings("ignore:No route can rank")
def test_a_classifier_that_loses_to_a_guess_says_so_before_it_pays() -> None:
    X, y = patients(bool)
    budget = Budget(0.5, 1e-6)  # which does not hold enough: the warning comes first
    model = PrivateClassifier(
        1.0, 1e-6, columns=KNOWN, class_shares={1: 0.03}, costs={1: 20.0}, budget=budget
    )
    with (
        pytest.warns(TooFewRows, match="Always saying 0 is likely to cost less"),
        pytest.raises(BudgetExhausted),
    ):
        model.fit(X[:300], y[:300])
    assert not budget.history


# "Of my 800 patients 22 died. It said that privacy costs 0.2 points, and its trees knew nothing."


def test_few_rows_without_declared_shares_are_warned_of_before_the_payment() -> None:
    X, y = patients(bool)
    budget = Budget(0.5, 1e-6)  # which does not hold enough: the warning comes first
    model = PrivateClassifier(1.0, 1e-6, columns=KNOWN, budget=budget)
    with (
        pytest.warns(TooFewRows, match="declare class shares. With 3 % in one class, say, no"),
        pytest.raises(BudgetExhausted),
    ):
        model.fit(X[:300], y[:300])
    model.set_params(class_shares={1: 0.5})
    with warnings.catch_warnings(record=True) as heard, pytest.raises(BudgetExhausted):
        model.fit(X[:300], y[:300])
    assert not heard


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_sentence_of_a_plan_compares_trees_with_trees(delta: float) -> None:
    advice = plan(800, columns=[(-1, 1)] * 8, delta=delta)
    assert advice.best is not None
    assert advice.best.expected is not None
    assert advice.best.route.name == "trees"
    behind = 100 * advice.best.expected.usual
    assert f"about {behind:.1f} points of accuracy less than a usual model" in advice.sentence
    assert "0.2 points" not in advice.sentence


def test_a_delta_of_0_does_not_change_what_trees_are_behind() -> None:
    """It counted as if a usual model could learn all, and privacy cost 35 points."""
    pure, usual = (plan(5_000, columns=[(0, 1)] * 2, delta=one)["trees"] for one in (0.0, 1e-6))
    assert pure.expected == usual.expected


# "My estimator has no say, and nothing told me."


@pytest.fixture(scope="module")
def ignored() -> Any:
    """Return an oracle whose estimator votes by coins, and what its fit warned of."""
    X, y = patients(bool)
    oracle = EverlastingPredictor(
        DummyClassifier(strategy="uniform"), epsilon=3.0, delta=1e-6, shard_size=10, random_state=0
    )
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        oracle.fit(X.astype(float), y)
    return oracle, [told for told in heard if told.category is VotesIgnored]


def test_a_trust_of_0_is_told_by_fit_status_and_show(ignored: Any, tmp_path: Path) -> None:
    oracle, (told,) = ignored
    assert oracle.trust_ == 0
    assert "trust_ is 0: the votes of DummyClassifier count nothing" in str(told.message)
    assert "The prior alone answers." in str(oracle)
    oracle.save_to(tmp_path / "o.db")
    for command in ("status", "show"):
        shown = run(command, str(tmp_path / "o.db"))
        assert "the votes count nothing, and the published prior alone" in " ".join(
            shown.stdout.split()
        )
        assert json.loads(run(command, str(tmp_path / "o.db"), "--json").stdout)["trust"] == 0


# "My table has a hundred columns, of which three matter."


@pytest.mark.parametrize(
    ("n_rows", "n_columns", "taken"),
    [(2_000, 100, "trees"), (3_000, 100, "trees"), (3_000, 20, "kernel"), (60_000, 100, "kernel")],
)
def test_the_planner_knows_what_many_columns_cost(n_rows: int, n_columns: int, taken: str) -> None:
    """`python -m benchmarks.wide` has the shares of right answers that this follows from."""
    advice = plan(n_rows, columns=[(0, 1)] * n_columns, epsilon=1.0, delta=1e-6)
    assert advice.best is not None
    assert advice.best.route.name == taken
    expected = advice["kernel"].expected
    assert expected is not None
    wide = n_rows < 100 * n_columns
    assert (expected.likely > 0.1) == wide  # not one point, where the kernel is at .65 to .7
    assert ("as wide as this one" in expected.rests_on) == wide
