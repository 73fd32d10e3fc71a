"""Worlds of the same counts: rows, labels, queries, and names of those who ask."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

RNG = np.random.default_rng(17)
N_ROWS, N_QUERIES = 400, 6
NUMBERS = RNG.random((N_ROWS, 3))
WORDS = RNG.choice(["ja", "nein", "vielleicht"], N_ROWS)
ODD_CELLS: tuple[Any, ...] = ("text", "", None, 10**400, 7, b"x", 1j, [0.5], "0.5", True)
MARKS = (0.7071067811865476, 0.3678794411714423)  # on which ``FailingOnMarks`` fails
ODD_NUMBERS = (0.5, -0.0, np.nan, np.inf, -np.inf, 1e300, 5e-324, 0.1 + 0.2, *MARKS)
ODD_TEXTS: tuple[Any, ...] = (
    *("", "a", "ja", "HIV", "common cold", "ä€😀", '"\\\n', "\ud800", "long " * 40),
    *(None, np.nan, 7, True, 10**70, b"bytes", dt.date(2020, 1, 1)),
    dt.datetime(2020, 1, 1, 1, 1, 1, 7, tzinfo=dt.UTC),
)
NAMES = ("id", "i", "somebody else ", "ä")
FRAME, ONE, THREE = "frame", "one", "three"
WIDTH = {FRAME: 2, ONE: 1, THREE: 3}

Row = list[Any]
Change = tuple[Any, ...]


@dataclass(frozen=True)
class World:
    """Everything private, as lists.

    Parameters
    ----------
    kind : str
        What tables look like: "one" or "three" columns of numbers, or a "frame" with text.
    rows, labels : list
        To fit.
    queries : list
        The first queries; later ones are the same in all worlds.
    added : list
        Rows that are added later.
    told : list
        Labels that are told later.
    names : str
        What ids of users, clients, queries and requests begin with.
    seed : int of one digit
        Of the coins that predictors throw: noise, splits, and which queries are sampled. They are
        as private as what they decide about; those of the store are the same in all worlds.
    """

    kind: str
    rows: list[Row]
    labels: list[int]
    queries: list[Row]
    added: list[Row]
    told: list[int]
    names: str = "id"
    seed: int = 3

    @classmethod
    def base(cls, kind: str, n_rows: int, *, constant: bool = False) -> World:
        """Return a world, in which all labels may be the same."""
        labels = (NUMBERS[:, 0] > 0.4) ^ (np.arange(N_ROWS) % 10 == 0)
        rows = [_row(kind, place) for place in range(N_ROWS)]
        own = [0] * n_rows if constant else labels[:n_rows].astype(int).tolist()
        return cls(
            kind,
            rows[:n_rows],
            own,
            rows[-N_QUERIES:],
            rows[-2 * N_QUERIES : -N_QUERIES],
            labels[:N_QUERIES].astype(int).tolist(),
        )

    def table(self, rows: list[Row]) -> Any:
        """Return rows as a predictor gets them."""
        if self.kind != FRAME:
            cells = [_number(cell) for row in rows for cell in row]
            return np.array(cells).reshape(len(rows), WIDTH[self.kind])
        return pd.DataFrame(
            {
                "size": np.array([row[0] for row in rows], dtype=np.float64),
                "word": pd.Series([row[1] for row in rows], dtype=object),
            }
        )

    def query(self, number: int) -> Row:
        """Return a query by its number."""
        known = number < len(self.queries)
        return self.queries[number] if known else _row(self.kind, number % 40)

    def other(self, seed: int) -> World:
        """Return a world in which everything is different, with odd cells here and there."""
        rng = np.random.default_rng(seed)

        def rows(count: int) -> list[Row]:
            odd = rng.random(count) < 0.1
            return [_odd_row(self.kind, rng) if one else _new_row(self.kind, rng) for one in odd]

        return World(
            self.kind,
            rows(len(self.rows)),
            rng.integers(0, 2, len(self.labels)).tolist(),
            rows(len(self.queries)),
            rows(len(self.added)),
            rng.integers(0, 2, len(self.told)).tolist(),
            str(rng.choice(NAMES)),
            seed % 10,
        )

    def with_queries_of(self, other: World) -> World:
        """Return the world with public queries, those of another one."""
        return replace(self, queries=other.queries)

    def _with(self, name: str, value: Any) -> World:
        return World(**{**vars(self), name: value})

    def changed(self, changes: list[Change]) -> World:
        """Return a world in which some things are different."""
        found = self
        for what, *given in changes:
            if what in ("names", "seed"):
                found = found._with(what, given[0])
            elif what in ("labels", "told"):
                labels = list(getattr(found, what))
                labels[given[0] % len(labels)] ^= 1
                found = found._with(what, labels)
            elif what == "opposite":
                found = replace(found, labels=[1 - label for label in found.labels])
            elif what == "other":
                found = found.other(*given)
            elif what == "all":
                found = replace(found, queries=[list(given[0])] * N_QUERIES)
            elif what == "repeated":
                own = list(found.queries)
                own[given[0]] = own[given[1]]
                found = replace(found, queries=own)
            else:
                number, column, value = given
                own = [list(row) for row in getattr(found, what)]
                own[number % len(own)][column] = value
                found = found._with(what, own)
        return found


def _number(cell: Any) -> float:
    return cell if isinstance(cell, float) else np.nan


def _row(kind: str, place: int) -> Row:
    if kind == FRAME:
        return [float(NUMBERS[place, 0]), str(WORDS[place])]
    return [float(cell) for cell in NUMBERS[place, : WIDTH[kind]]]


def _new_row(kind: str, rng: np.random.Generator) -> Row:
    found = rng.random(WIDTH[kind]).tolist()
    return [found[0], str(rng.choice(["ja", "sim", "x" * 30]))] if kind == FRAME else found


def _odd_row(kind: str, rng: np.random.Generator) -> Row:
    found: Row = rng.choice(ODD_NUMBERS, WIDTH[kind]).tolist()
    if kind == FRAME:
        found[1] = ODD_TEXTS[rng.integers(len(ODD_TEXTS))]
    return found


def changes(kind: str, *, public_queries: bool) -> st.SearchStrategy[list[Change]]:
    """Return what may differ between two worlds: one thing, or a few."""
    small = st.integers(0, N_QUERIES - 1)
    places = st.integers(0, N_ROWS - 1)

    def cells(what: str, where: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
        number = st.tuples(
            st.just(what),
            where,
            st.integers(0, 0 if kind == FRAME else WIDTH[kind] - 1),
            st.sampled_from(ODD_NUMBERS),
        )
        if kind != FRAME:
            return number
        return number | st.tuples(st.just(what), where, st.just(1), st.sampled_from(ODD_TEXTS))

    found = [
        st.tuples(st.just("labels"), places),
        cells("rows", places),
        cells("added", small),
        st.tuples(st.just("told"), small),
        st.tuples(st.just("names"), st.sampled_from(NAMES)),
        st.tuples(st.just("seed"), st.integers(0, 9)),
        st.just(("opposite",)),
        st.tuples(st.just("other"), st.integers(0, 1000)),
    ]
    if not public_queries and kind != FRAME:
        odd = st.sampled_from(ODD_CELLS)
        found.append(st.tuples(st.just("queries"), small, st.just(0), odd))
    if not public_queries:
        same = [ODD_NUMBERS[0], "ja"] if kind == FRAME else [ODD_NUMBERS[0]] * WIDTH[kind]
        found += [
            cells("queries", small),
            st.tuples(st.just("repeated"), small, small),
            st.just(("all", same)),
            st.just(("all", [0.999, *same[1:]])),
        ]
    return st.lists(st.one_of(found), min_size=1, max_size=4)
