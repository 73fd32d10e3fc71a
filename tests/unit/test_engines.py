"""Engines: each piece is added once, wherever and however often it was computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cumae.checks import pieces_do_not_change_the_sum
from cumae.engines import Here, Processes, RowEngine, cut
from cumae.engines.engine import Found, Work, add_once
from cumae.errors import InvalidData, WorkerFailed, WorkersLost

pytestmark = pytest.mark.claim("PIECES")
ENGINES: list[RowEngine] = [Here(), Processes(2)]
NAMES = [engine.name for engine in ENGINES]


class TwiceDone(Here):
    """A piece is computed again, because its worker was thought to be dead."""

    name = "an engine with retries"

    def run(self, work: Work, table: Any) -> Found:
        for number, result in super().run(work, table):
            yield number, result
            if number % 2:
                yield number, result


class AddsRetriesTwice(TwiceDone):
    """As above, but what was computed twice is added before it comes back."""

    def run(self, work: Work, table: Any) -> Found:
        found: dict[int, Any] = {}
        for number, result in super().run(work, table):
            found[number] = found[number] + result if number in found else result
        return iter(found.items())


class LosesOne(Here):
    """A piece whose worker died is forgotten."""

    name = "an engine that forgets"

    def run(self, work: Work, table: Any) -> Found:
        return (found for found in super().run(work, table) if found[0] != 1)


@pytest.mark.parametrize("engine", [*ENGINES, TwiceDone()], ids=[*NAMES, "retries"])
def test_pieces_do_not_change_the_sum(engine: RowEngine) -> None:
    pieces_do_not_change_the_sum(engine)


def test_an_engine_that_adds_a_retried_piece_twice_is_found() -> None:
    with pytest.raises(AssertionError, match="9 pieces on an engine with retries gave another sum"):
        pieces_do_not_change_the_sum(AddsRetriesTwice())


def test_a_lost_piece_is_an_error() -> None:
    with pytest.raises(WorkersLost, match="lost 1 of 9 pieces"):
        pieces_do_not_change_the_sum(LosesOne())


def test_results_are_added_once_in_any_order() -> None:
    found = [(2, 5), (0, 1), (2, 5), (1, 3), (0, 1)]
    assert add_once(found, 3, "here") == add_once(found[::-1], 3, "here") == 9


SECRET = 31.4159


def refuse(table: Any) -> Any:
    raise InvalidData(f"row {int(table[0])} holds something that is no number.")


def tell(table: Any) -> Any:
    raise KeyError(f"{SECRET} is not there")


def test_an_error_names_the_first_row_that_is_wrong() -> None:
    with pytest.raises(InvalidData, match="row 0 holds"):
        cut(np.arange(40), engine=Processes(2), rows=4).sum(refuse)


def test_errors_of_workers_show_no_cell() -> None:
    with pytest.raises(WorkerFailed, match="failed with KeyError in piece 0 of 10") as caught:
        cut(np.arange(40), engine=Processes(2), rows=4).sum(tell)
    assert str(SECRET) not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_rows_at_some_places_come_in_the_order_asked_for() -> None:
    table = np.arange(60.0).reshape(20, 3)
    places = np.array([17, 3, 3, 0, 12])
    assert np.array_equal(cut(table, np.arange(20), rows=6)[places], table[places])
    assert np.array_equal(cut(table, rows=6)[:], table)
