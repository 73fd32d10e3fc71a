"""Cuts and grids: where learners put the points that they choose from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cumae.concepts import Rectangles, Stumps, TreeCuts, Trees
from cumae.learners import PrivateLearner
from cumae.learners.cuts import grid_points, joined, public_points, quantile_cuts, with_ends


def test_cuts_lie_in_gaps_and_never_overflow() -> None:
    top = np.finfo(np.float64).max
    for values in ([-top, top], [-math.inf, 0.0, math.inf], [0.0, 5e-324]):
        cuts = [cut for _, cut in quantile_cuts(np.array(values).reshape(-1, 1), 9)]
        assert len(cuts) == len(values) - 1
        for low, cut, high in zip(values, cuts, values[1:], strict=False):
            assert low <= cut <= high
            assert math.isfinite(cut)
    rng = np.random.default_rng(1)
    column = rng.normal(size=(1001, 1))
    cuts = [cut for _, cut in quantile_cuts(column, 3)]
    assert [np.mean(column < cut) for cut in cuts] == pytest.approx([0.25, 0.5, 0.75], abs=2e-3)
    assert quantile_cuts(np.ones((5, 2)), 3) == []


def test_grids_stay_on_declared_steps() -> None:
    points = grid_points([(0.0, 10.0), (0.0, 1.0, 1.0), (1.0, 7.0, 2.0)], 4)
    assert points.shape == (5, 3)
    assert points[:, 0].tolist() == [0, 2.5, 5, 7.5, 10]
    assert set(points[:, 1]) == {0.0, 1.0}
    assert set(points[:, 2]) <= {1.0, 3.0, 5.0, 7.0}


def test_points_are_joined_for_classes_that_look_at_columns_together() -> None:
    points = np.array([[0.0, 5.0], [1.0, 6.0]])
    assert joined(Stumps(), points) is points
    assert sorted(map(tuple, joined(Rectangles(), points).tolist())) == [
        (0, 5),
        (0, 6),
        (1, 5),
        (1, 6),
    ]
    ended = with_ends(points, [(-1.0, 9.0), None])
    assert ended.tolist() == [[0, 5], [1, 6], [-1, 5], [9, 6]]
    assert with_ends(np.zeros((0, 1)), [(2.0, 3.0)]).tolist() == [[2], [3]]
    assert isinstance(public_points(Trees(2), points, 3), TreeCuts)
    assert len(public_points(Rectangles(), np.zeros((5000, 2)), 3)) == 2000


def test_boxes_get_cuts_as_labels_allow_and_find_their_place() -> None:
    """Three cuts a column, which trees have at few labels, cost a box eight points here."""
    rng = np.random.default_rng(3)
    rows = rng.random((3_000, 2))
    y = np.all((rows >= [0.05, 0.4]) & (rows < [0.7, 0.95]), axis=1).astype(int)
    unit = [(0.0, 1.0)] * 2
    found = []
    for points in ("auto", 3):
        model = PrivateLearner(Rectangles(), 3.0, n_points=points, columns=unit, random_state=0)
        found.append(model.fit(rows[:1_000], y[:1_000]).score(rows[1_000:], y[1_000:]))
    assert found[0] > 0.95 > found[1] + 0.03
    plain = PrivateLearner(Rectangles(), columns=unit)
    counts = [plain.plan(rows, 2).facts["n_candidates"] for rows in (20, 200, 400, 10_000)]
    assert counts == sorted(set(counts))  # more labels, more candidates, up to a limit
    assert plain.plan(10**6, 2).facts["n_candidates"] == counts[-1]
