"""``cumae theorems`` computes each theorem at given parameters, and tries our algorithms."""

from __future__ import annotations

import json

import pytest

from cumae.cli import theorems as command
from cumae.theorems import THEOREMS
from cumae.theorems.public_data import cover_rows
from tests.census import run


def test_all_theorems_are_computed_at_the_given_parameters() -> None:
    words = ["--alpha", "0.01", "--beta", "0.02", "--epsilon", "0.5", "--vc", "3", "--no-ours"]
    done = run("theorems", *words, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)["theorems"]
    assert [one["citation"] for one in found] == [one.citation for one in THEOREMS]
    sizes = {one["citation"]: one["size"] for one in found}
    assert sizes["Lemma 3.3 of paper 4"] == f"{cover_rows(0.01, 0.02, 3):,}"
    assert not any(one["ours"] for one in found)
    told = " ".join(run("theorems", *words).stdout.split())
    assert all(one.citation in told for one in THEOREMS)


def test_what_a_theorem_does_not_cover_is_said() -> None:
    done = run("theorems", "--alpha", "0.2", "--epsilon", "2", "--no-ours")
    assert done.exit_code == 0, done.stderr
    assert "it says nothing here" in " ".join(done.stdout.split())
    assert run("theorems", "--alpha", "2").exit_code == 2


def test_our_algorithms_are_tried_until_they_err_little(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"semi_private_rows": "SemiPrivateLearner", "generic_rows": "GenericLearner"}
    monkeypatch.setattr(command, "ALGORITHMS", kinds)
    done = run("theorems", "--alpha", "0.1", "--epsilon", "0.9")
    assert done.exit_code == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert "SemiPrivateLearner needs" in told
    assert "GenericLearner needs" in told
    assert "needs more than" not in told


@pytest.mark.parametrize("kind", sorted(set(command.ALGORITHMS.values())))
def test_each_algorithm_can_be_tried(kind: str) -> None:
    """With a large epsilon some thousand rows are enough for each, and a few are too few."""
    assert command._is_right(kind, 4_096, 0.1, 8.0, 1e-6, 200)
    assert not command._is_right(kind, 2, 0.01, 0.1, 1e-6, 200)
