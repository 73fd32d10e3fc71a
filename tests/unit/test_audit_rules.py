"""The rules of the audit's game: who differs, what a world gets, and what is seen."""

from __future__ import annotations

import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cumae.audit import Game, InProcess
from cumae.errors import InvalidData, InvalidParameter
from tests.drivers import Recorder


@pytest.mark.claim("AUDIT")
@pytest.mark.parametrize("world", [0, 1])
def test_a_world_gets_its_own_version_and_the_differing_answer_is_hidden(world: int) -> None:
    driver = Recorder()
    game = Game(driver, world)
    game.train(([[1.0], [2.0]], [0, 1]))
    seen = game.ask([[5.0], [6.0], [7.0]], [[5.0], [9.0], [7.0]])
    assert driver.asked[0][1, 0] == (6.0, 9.0)[world]
    assert seen.answers == (5.0, None, 7.0)
    assert game.view == [game.view[0], seen]
    with pytest.raises(InvalidParameter, match="differ already"):
        game.ask([[1.0]], [[2.0]])
    assert game.ask([[1.0]], [[1.0]]).answers == (1.0,)


@pytest.mark.claim("AUDIT")
@pytest.mark.parametrize("world", [0, 1])
def test_a_training_row_may_differ_in_row_and_label(world: int) -> None:
    driver = Recorder()
    game = Game(driver, world)
    game.train(([[1.0], [2.0]], [0, 1]), ([[3.0], [2.0]], [1, 1]))
    assert driver.rows[0, 0] == (1.0, 3.0)[world]
    with pytest.raises(InvalidParameter, match="differ already"):
        game.ask([[1.0]], [[2.0]])


@pytest.mark.claim("AUDIT")
def test_two_differences_are_refused() -> None:
    two = ([[1.0], [2.0]], [0, 1]), ([[3.0], [2.0]], [0, 0])
    with pytest.raises(InvalidParameter, match="2 rows differ"):
        Game(Recorder(), 0).train(*two)
    with pytest.raises(InvalidParameter, match="shapes"):
        Game(Recorder(), 0).train(([[1.0]], [0]), ([[1.0], [2.0]], [0, 1]))
    with pytest.raises(InvalidParameter, match="2 rows differ"):
        Game(Recorder(), 0).ask([[1.0], [2.0]], [[3.0], [4.0]])
    with pytest.raises(InvalidParameter, match="types"):
        Game(Recorder(), 0).ask(np.array([[1.0]]), np.array([[1]]))
    with pytest.raises(InvalidParameter, match="2 rows differ"):
        Game(Recorder(), 1).ask([[0.0], [0.0]], [[-0.0], [-0.0]])
    with pytest.raises(InvalidParameter, match="2 rows, but 1 labels"):
        Game(Recorder(), 0).train(([[1.0], [2.0]], [0]))
    missing = np.array([[np.nan], [1.0]])
    assert Game(Recorder(), 0).ask(missing, missing.copy()).answers[1] == 1.0  # NaN is the same


# Lists and data frames


class Keeper(Recorder):
    """A driver that keeps queries as they come, and numbers its answers."""

    def ask(self, X: Any) -> Any:
        self.asked.append(X)
        return range(len(X))


@pytest.mark.claim("AUDIT")
@pytest.mark.parametrize("world", [0, 1])
@pytest.mark.parametrize(
    "odd",
    [0, [0.0], (0.0,), np.array(0.0), np.array([0.0]), pd.Series([0.0]), None, -0.0, {"a": 0.0}],
    ids=repr,
)
def test_a_query_of_a_list_may_be_anything_else(odd: Any, world: int) -> None:
    driver = Keeper()
    game = Game(driver, world)
    assert game.ask([0.0, 0.0, [1.0]], [0.0, odd, [1.0]]).answers == (0, None, 2)
    assert game.differed
    asked = driver.asked[0]
    assert type(asked) is list
    assert asked[1] is odd if world else asked[1] == 0.0
    assert asked[::2] == [0.0, [1.0]]


@pytest.mark.claim("AUDIT")
@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda row: pd.Series(row, dtype=object)])
def test_rows_of_a_list_that_are_equal_do_not_differ(kind: Any) -> None:
    rows = [[kind([1.0, float("nan"), "a"])] for _ in range(2)]
    game = Game(Keeper(), 1)
    assert game.ask(*rows).answers == (0,)
    assert not game.differed
    with pytest.raises(InvalidParameter, match="2 rows differ"):
        game.ask(rows[0] * 2, [kind([1.0, 2.0, "a"])] * 2)
    with pytest.raises(InvalidParameter, match="shapes"):
        game.ask(rows[0], rows[0] * 2)


def frame(*words: Any, **more: Any) -> pd.DataFrame:
    return pd.DataFrame({"word": pd.Series(words, dtype=object), "size": 1.5, **more})


@pytest.mark.claim("AUDIT")
@pytest.mark.parametrize("world", [0, 1])
def test_a_query_of_a_data_frame_may_differ(world: int) -> None:
    driver = Keeper()
    game = Game(driver, world)
    ids = {"id": pd.array([1, None, 3], dtype="Int64")}
    zero, one = frame("a", None, "c", **ids), frame("a", None, 7, **ids)
    assert game.ask(zero, one).answers == (0, 1, None)
    pd.testing.assert_frame_equal(driver.asked[0], (zero, one)[world])
    assert driver.asked[0].dtypes.equals(zero.dtypes)
    with pytest.raises(InvalidParameter, match="differ already"):
        game.ask(zero, one)
    assert game.ask(zero, zero.copy()).answers == (0, 1, 2)


@pytest.mark.claim("AUDIT")
def test_data_frames_differ_in_cells_alone() -> None:
    zero = frame("a", "b")
    others = [
        frame("a", "b", size=1),
        frame("a", "b", more=0),
        frame("a", "b").set_index(pd.Index([5, 6])),
        zero.rename(columns={"word": "name"}),
        zero.astype({"word": "category"}),
        frame("a"),
        zero.to_numpy(),
    ]
    for one in others:
        with pytest.raises(InvalidParameter, match="types"):
            Game(Keeper(), 0).ask(zero, one)
    with pytest.raises(InvalidParameter, match="2 rows differ"):
        Game(Keeper(), 0).ask(zero, frame("b", "a"))


def test_errors_and_warnings_are_seen() -> None:
    class Broken(Recorder):
        def ask(self, X: Any) -> Any:
            raise KeyError("row 7")

    class Careful(Recorder):
        def ask(self, X: Any) -> Any:
            warnings.warn("row 8", stacklevel=2)
            return super().ask(X)

    seen = Game(Broken(), 0).ask([[1.0]])
    assert seen.answers == (None,)
    assert seen.said == (seen.error,) == ("KeyError: 'row 7'",)
    seen = Game(Careful(), 0).ask([[1.0]])
    assert (seen.answers, seen.said, seen.error) == ((1.0,), ("UserWarning: row 8",), "")


@pytest.mark.claim("AUDIT")
def test_nothing_but_what_differs_comes_from_the_other_world() -> None:
    """Rows that look alike in both worlds are those of world 0."""
    twins = [Decimal("1.0"), Decimal("1.0")]
    both = [np.array([[twin], [place]], dtype=object) for place, twin in enumerate(twins)]
    driver = Recorder()
    Game(driver, 1).train((both[0], [0, 1]), (both[1], [0, 1]))
    assert driver.rows[0, 0] is twins[0]
    assert driver.rows[1, 0] == 1


class Shown:
    """Looks like another one."""

    def __repr__(self) -> str:
        return repr(np.str_("a"))


@pytest.mark.parametrize(
    "pair", [(0.0, -0.0), (1.0, True), ("a", "b"), (None, 0), (np.str_("a"), Shown())]
)
def test_worlds_differ_in_every_bit(pair: tuple[Any, Any]) -> None:
    zero, one = (np.array([[value]], dtype=object) for value in pair)
    for world in (0, 1):
        driver = Recorder()
        game = Game(driver, world)
        game.train((zero, [0]), (one, [0]))
        assert game.differed
    game = Game(Recorder(), 1)
    game.train((np.array([[0.0]]), [0]), (np.array([[-0.0]]), [0]))
    assert game.differed


def test_drivers_give_one_answer_for_each_query() -> None:
    class Short(Recorder):
        def ask(self, X: Any) -> Any:
            return []

    game = Game(Short(), 0)
    with pytest.raises(InvalidParameter, match="0 answers to 1 queries"):
        game.ask([[0.0]])


# Users, clients and rows without labels


class Ids(Recorder):
    """A driver that remembers ids and rows without labels, too."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[Any] = []
        self.supplied: list[Any] = []

    def train(self, X: Any, y: Any, **whose: Any) -> None:
        super().train(X, y)
        self.ids.append(whose)

    def ask(self, X: Any, **whose: Any) -> Any:
        self.ids.append(whose)
        return super().ask(X)

    def supply(self, X: Any) -> None:
        self.supplied.append(X)


@pytest.mark.claim("AUDIT", "USER")
@pytest.mark.parametrize("world", [0, 1])
def test_everything_of_one_user_may_differ_and_nothing_of_it_is_seen(world: int) -> None:
    driver = Ids()
    game = Game(driver, world)
    rows = np.array([[1.0], [2.0], [3.0]])
    game.train((rows, [0, 1, 0]), (np.array([[10.0], [2], [12]]), [1, 1, 0]), users=["a", "b", "a"])
    assert driver.rows.ravel().tolist() == [[1, 2, 3], [10, 2, 12]][world]
    seen = game.ask(rows, np.array([[1.0], [7], [3]]), users=["b", "a", "a"])
    assert driver.asked[0].ravel().tolist() == [[1, 2, 3], [1, 7, 3]][world]
    assert seen.answers == (1.0, None, None)  # the one that is the same is hidden, too
    assert game.ask(rows, users=["a", "b", "c"]).answers == (None, 2.0, 3.0)
    assert driver.ids == [
        {"users": ["a", "b", "a"]},
        {"users": ["b", "a", "a"]},
        {"users": ["a", "b", "c"]},
    ]
    with pytest.raises(InvalidParameter, match="differ already"):
        game.ask([[1.0]], [[2.0]], users=["b"])
    with pytest.raises(InvalidParameter, match="differ already"):
        game.ask([[1.0]], [[2.0]])
    with pytest.raises(InvalidParameter, match="differ already"):
        game.supply([[1.0]], [[2.0]])


@pytest.mark.claim("AUDIT", "USER")
def test_two_users_do_not_differ() -> None:
    rows = np.zeros((2, 1))
    with pytest.raises(InvalidParameter, match="rows of 2 users differ"):
        Game(Ids(), 0).train((rows, [0, 1]), (rows + 1, [0, 1]), users=["a", "b"])
    with pytest.raises(InvalidParameter, match="rows of 2 users differ"):
        Game(Ids(), 0).ask(rows, rows + 1, users=[1, 2])
    with pytest.raises(InvalidData, match="1 for 2 rows"):
        Game(Ids(), 0).ask(rows, users=["a"])
    game = Game(Ids(), 0)
    game.ask(rows[:1], rows[:1] + 1)  # of nobody
    with pytest.raises(InvalidParameter, match="differ already"):
        game.ask(rows, rows + 1, users=["a", "a"])
    with pytest.raises(InvalidData, match="no id"):
        Game(Ids(), 0).ask(rows, rows + 1, users=[np.nan, np.nan])


@pytest.mark.claim("AUDIT", "USER")
def test_ids_are_read_in_the_order_of_the_rows() -> None:
    driver = Ids()
    game = Game(driver, 1)
    rows = np.array([[1.0], [2.0]])
    ids = pd.Series(["a", "z"], index=[1, 0])
    assert game.ask(rows, np.array([[5.0], [2.0]]), users=ids).answers == (None, 2.0)
    assert driver.ids == [{"users": ["a", "z"]}]


@pytest.mark.claim("AUDIT")
def test_a_game_trains_once() -> None:
    game = Game(Ids(), 0)
    rows = np.zeros((2, 1))
    game.train((rows, [0, 1]), (rows + 1, [0, 1]), users=["a", "a"])
    with pytest.raises(InvalidParameter, match="trains once"):
        game.train((rows, [0, 1]), (rows + 1, [0, 1]), users=["a", "a"])


@pytest.mark.claim("AUDIT")
def test_clients_are_passed_on_and_allow_no_second_difference() -> None:
    driver = Ids()
    game = Game(driver, 1)
    assert game.ask([[1.0], [2.0]], [[1.0], [3.0]], clients=["x", "x"]).answers == (1.0, None)
    assert driver.ids == [{"clients": ["x", "x"]}]
    with pytest.raises(InvalidParameter, match="differ already"):
        game.ask([[1.0]], [[2.0]], clients=["x"])


@pytest.mark.claim("AUDIT", "FRESH")
@pytest.mark.parametrize("world", [0, 1])
def test_a_row_without_a_label_may_differ(world: int) -> None:
    driver = Ids()
    game = Game(driver, world)
    seen = game.supply(np.array([[1.0], [2.0]]), np.array([[1.0], [4.0]]))
    assert (seen.answers, seen.said) == ((), ())
    assert driver.supplied[0].ravel().tolist() == [[1, 2], [1, 4]][world]
    with pytest.raises(InvalidParameter, match="differ already"):
        game.ask([[1.0]], [[2.0]])
    assert "supply" in Game(Recorder(), world).supply([[1.0]]).said[0]  # it has none


# What is published


def test_a_learner_is_published_and_a_predictor_is_not() -> None:
    class Model:
        def fit(self, X: Any, y: Any) -> None:
            self.seen = X

        def predict(self, X: Any) -> Any:
            return np.zeros(len(X))

    class Oracle(Model):
        remaining_ = 3

    for kind in (Model, Oracle):
        driver = InProcess(kind)
        driver.train([[1.0]], [0])
        assert (driver.published() is driver.estimator) == (kind is Model)
    names = ("phase_", "answered_", "n_shards_", "noise_per_vote_", "trust_", "prior_")
    assert driver.published() == {**dict.fromkeys(names), "remaining_": 3}
