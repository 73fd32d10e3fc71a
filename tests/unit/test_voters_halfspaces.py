"""Halfspaces as voters: each vote is exactly that of the halfspace itself."""

from __future__ import annotations

import numpy as np
import pytest

from cumae.concepts import Halfspace, Halfspaces
from cumae.ensembles.voters import halfspaces
from cumae.ensembles.voters.halfspaces import HalfspaceVoters
from cumae.ensembles.voters.stacking import stack, voters_from_arrays
from cumae.errors import InvalidParameter

RNG = np.random.default_rng(2)
pytestmark = pytest.mark.claim("SHARDS")


@pytest.mark.parametrize("width", [1, 2, 3])
def test_votes_are_those_of_each_halfspace(width: int) -> None:
    rules = []
    for _ in range(40):
        rows = RNG.integers(0, 6, (9, width)).astype(float)
        rules.append(Halfspaces().erm(rows, RNG.integers(0, 2, 9)))
    # Rows on a lattice lie on many boundaries, where rounding must not decide.
    asked = np.concatenate([RNG.integers(0, 12, (150, width)) / 2, RNG.random((50, width)) * 6])
    found = np.zeros((len(asked), 2), dtype=np.int64)
    for voters in stack(rules, 2, np.zeros((1, width))):
        found += voters.count(asked)
    assert np.array_equal(found[:, 1], sum(rule.predict(asked) for rule in rules))
    assert np.all(found.sum(axis=1) == len(rules))


def test_close_boundaries_extremes_and_constants() -> None:
    rules = [
        Halfspace((0.1, 0.2), 0.3),  # as floats, 0.1 + 0.2 is more than 0.3
        Halfspace((0.0, 0.0), 0.0),
        Halfspace((0.0, 0.0), 1.0),
        Halfspace((1e300, -1e300), 0.0),
        Halfspace((1e-300, 1e-300), 1e-310),
        Halfspace((-1.0, 1.0), 5e-324),
    ]
    asked = np.array([[1.0, 1.0], [0.0, 0.0], [1e300, 1e300], [1e-20, 0.0], [-0.0, 5e-324]])
    (voters,) = stack(rules, 2, np.zeros((1, 2)))
    assert isinstance(voters, HalfspaceVoters)
    assert np.array_equal(voters.count(asked)[:, 1], sum(rule.predict(asked) for rule in rules))
    with pytest.MonkeyPatch.context() as patch:  # by floats alone it would be another
        patch.setattr(halfspaces, "_close", lambda *_: [])
        wrong = voters.count(asked)[:, 1]
    assert not np.array_equal(wrong, voters.count(asked)[:, 1])


def test_longer_numbers_are_asked_one_by_one_and_arrays_come_back() -> None:
    rules = [Halfspace((1.0, 2.0), 0.5), Halfspace((10**400, 1), 7), Halfspace((3.0, -1.0), 0.0)]
    found = stack(rules, 2, np.zeros((1, 2)))
    assert sorted(len(voters) for voters in found) == [1, 2]
    (voters,) = stack(rules[::2], 2)
    asked = RNG.random((30, 2))
    again = voters_from_arrays("halfspaces", voters.to_arrays())
    assert np.array_equal(again.count(asked), voters.count(asked))
    assert sum(map(len, voters.parts(2))) == 2
    with pytest.raises(InvalidParameter, match="no voters of kind"):
        voters_from_arrays("halfspaces", {**voters.to_arrays(), "offsets": np.zeros(3)})
