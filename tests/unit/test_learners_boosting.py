"""PrivateBooster: disjoint blocks, one coin a row, and the larger of its parts' costs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from cumae.concepts import Rectangles, Stumps, Trees
from cumae.errors import InvalidParameter
from cumae.learners import Columns, Learner, PrivateBooster, PrivateLogisticRegression
from cumae.learners.base import Sizes
from cumae.learners.boosting import keep
from cumae.privacy import BoundedRange, parallel
from cumae.randomness import SYSTEM, SeededSource
from cumae.sanitizers import Quantiles
from tests.statistics import chi_square_rejects

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(2)
X = RNG.uniform(-1, 1, (600, 2))
Y = ((X[:, 0] > 0) != (X[:, 1] > 0)).astype(int)
UNIT = [(-1, 1), (-1, 1)]


@pytest.mark.claim("BOOST")
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.5, 1.0, 8.0, 300.0, math.inf])
def test_without_a_start_it_is_pure(epsilon: float) -> None:
    learner = PrivateBooster(epsilon, columns=UNIT)
    guarantee = learner.fit(X, Y).guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (epsilon, 0.0)
    assert learner.start_ is None
    assert {"BOOST", "PAR", "CHOOSE"} <= set(guarantee.claims)
    public = PrivateBooster(epsilon).fit(X, Y, X[:50]).guarantee_
    assert public.epsilon == epsilon
    assert "QUANT" not in public.claims
    assert public.assumptions


@pytest.mark.claim("BOOST")
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_with_a_start_the_largest_part_counts(epsilon: float, delta: float) -> None:
    learner = PrivateBooster(epsilon, delta, 3, columns=UNIT)
    sizes = Sizes(600, 0, 0, Columns(UNIT, None, 2))
    blocks = learner._blocks(sizes, started=True)
    start = PrivateLogisticRegression(epsilon, delta, UNIT, 6)
    part = Sizes(blocks.start.stop - blocks.start.start, 0, 0, sizes.columns)
    _, rows = learner.read_rows(X, Y)
    costs = [BoundedRange(epsilon), start.decide(part, rows).cost]
    if blocks.points:
        costs.append(Quantiles(epsilon, UNIT, blocks.points).cost)
    guarantee = learner.fit(X, Y).guarantee_
    assert guarantee.epsilon <= epsilon
    assert guarantee.delta == delta
    assert guarantee.epsilon == pytest.approx(parallel(*costs).epsilon(delta), rel=1e-6)
    assert {"BOOST", "KERNEL", "CHOOSE"} <= set(guarantee.claims)


@pytest.mark.claim("BOOST")
@settings(max_examples=200)
@given(
    st.integers(1, 10**6),
    st.floats(0, 1e4),
    st.sampled_from(["auto", 1, 2, 7, 50]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 100),
)
def test_blocks_are_disjoint_and_cover_all_rows(
    rows: int, epsilon: float, rounds: Any, started: bool, bounded: bool, public: int
) -> None:
    columns = Columns(UNIT if bounded else None, None, 2)
    learner = PrivateBooster(epsilon, n_rounds=rounds)
    blocks = learner._blocks(Sizes(rows, 0, public, columns), started)
    parts = [blocks.cuts, blocks.start, *blocks.rounds, blocks.chances]
    assert parts[0].start == 0
    assert parts[-1].stop == rows
    for one, following in itertools.pairwise(parts):
        assert one.start <= one.stop == following.start <= following.stop
    assert blocks.rounds or started
    assert (blocks.points > 0) or blocks.cuts.stop == 0
    assert blocks.rate > 0
    assert not (started and blocks.chances.stop > blocks.chances.start)


@pytest.mark.claim("BOOST")
def test_blocks_do_not_depend_on_rows() -> None:
    """With equal coins, a row that is moved reaches one block: later trees of other blocks stay."""
    learner = PrivateBooster(math.inf, n_rounds=5, columns=UNIT, random_state=4)
    seen: list[list[int]] = []

    class Spy(PrivateBooster):
        def _choose(self, concept: Any, cuts: Any, X: Any, y: Any, source: Any) -> Any:
            seen.append(sorted(X[:, 1].tolist()))
            return super()._choose(concept, cuts, X, y, source)

    Spy(math.inf, n_rounds=5, columns=UNIT, random_state=4, n_cuts=3).fit(X, Y)
    everything = [value for block in seen for value in block]
    assert len(everything) == len(set(everything))  # no row is in two blocks
    assert set(everything) <= set(X[:, 1])
    assert learner.fit(X, Y).trees_


# Coins


@pytest.mark.claim("BOOST")
@given(st.integers(0, 2**32), st.integers(1, 40), st.data())
def test_a_replaced_row_changes_its_own_coin_only(seed: int, count: int, data: Any) -> None:
    rng = np.random.default_rng(seed)
    scores, y = rng.normal(size=count) * 3, rng.integers(0, 2, count)
    row = data.draw(st.integers(0, count - 1))
    other_scores, other_y = scores.copy(), y.copy()
    other_scores[row], other_y[row] = rng.normal() * 3, 1 - y[row]
    one = keep(scores, y, SeededSource(seed))
    two = keep(other_scores, other_y, SeededSource(seed))
    assert np.flatnonzero(one != two).tolist() in ([], [row])
    assert np.all(one[(scores > 0) != (y == 1)])  # what is labelled wrong is always kept


@pytest.mark.statistical
@pytest.mark.claim("BOOST")
def test_rows_are_kept_by_their_loss() -> None:
    scores = np.array([0.5, 1.5, 3.0]).repeat(4000)
    kept = keep(scores, np.ones(len(scores), dtype=int), SYSTEM).reshape(3, -1).sum(axis=1)
    chances = 2 * expit(-np.array([0.5, 1.5, 3.0]))
    expected = np.concatenate([chances, 1 - chances]) / 3
    counts = np.concatenate([kept, 4000 - kept])
    assert not chi_square_rejects(counts, expected)
    # Planted: a row is kept by its loss without the factor of 2.
    fewer = expit(-np.array([0.5, 1.5, 3.0]))
    assert chi_square_rejects(counts, np.concatenate([fewer, 1 - fewer]) / 3, checks=0)


# What it learns


def test_without_noise_it_learns_what_no_line_can() -> None:
    assert PrivateBooster(math.inf, 0.0, 5, columns=UNIT).fit(X, Y).score(X, Y) > 0.85
    started = PrivateBooster(math.inf, 1e-6, 5, columns=UNIT).fit(X, Y)
    assert started.start_ is not None
    assert len(started.trees_) == 5


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_few_rows_are_enough_to_run(rows: int, delta: float, epsilon: float) -> None:
    learner = PrivateBooster(epsilon, delta, 4, columns=UNIT).fit(X[:rows], Y[:rows])
    assert set(learner.predict(X)) <= {0, 1}


def test_other_classes_and_starts() -> None:
    for concept in (Stumps(), Rectangles(), Trees(1)):
        assert PrivateBooster(2.0, concept_class=concept, columns=UNIT).fit(X, Y).trees_
    for start in ("linear", "curved"):
        learner = PrivateBooster(2.0, 1e-6, 2, start=start, columns=UNIT).fit(X, Y)
        assert learner.start_ is not None
    assert PrivateBooster(2.0, 1e-6, start=None, columns=UNIT).fit(X, Y).start_ is None


@pytest.mark.parametrize(
    "bad",
    [
        {"concept_class": "trees"},
        {"n_rounds": 0},
        {"n_rounds": 1.5},
        {"start": "middle"},
        {"start": "linear"},  # needs a delta
        {"learning_rate": 0},
        {"learning_rate": "fast"},
        {"learning_rate": math.inf},
        {"n_cuts": 0},
    ],
    ids=str,
)
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        PrivateBooster(1.0, columns=UNIT, **bad).fit(X, Y)


def test_chances_and_text() -> None:
    frame = pd.DataFrame({"age": X[:, 0], "job": np.where(X[:, 1] > 0, "nurse", "poet")})
    columns = {"age": (-1, 1), "job": ["poet", "nurse"]}
    learner = PrivateBooster(2.0, 1e-6, 3, columns=columns, classes=("no", "yes"))
    assert str(learner) == repr(learner)
    learner.fit(frame, np.where(Y == 1, "yes", "no"))
    chances = learner.predict_proba(frame)
    assert chances.shape == (600, 2)
    assert np.allclose(chances.sum(axis=1), 1)
    assert np.all((chances >= 0) & (chances <= 1))
    odds = learner.decision_function(frame)
    assert np.allclose(chances[:, 1], expit(odds))
    assert learner.predict(frame).tolist() == np.where(odds > 0, "yes", "no").tolist()
    text = str(learner)
    assert text.startswith("log odds of yes: ")
    assert [line[:7] for line in text.splitlines() if line[:4] == "tree"] == [
        "tree 1:",
        "tree 2:",
        "tree 3:",
    ]
    assert "age" in text
    assert "column" not in text
    plain = PrivateBooster(columns=UNIT).fit(X, Y)
    assert "if column " in str(plain)
    again = Learner.from_dict(learner.to_dict())
    assert np.array_equal(again.predict_proba(frame), chances)


def test_wide_tables_stay_at_depth_two() -> None:
    """Depth 3 would take the cube of the number of cuts."""
    depths = [PrivateBooster(1.0)._concept(200_000, features) for features in (10, 40, 41, 500)]
    assert [getattr(concept, "depth", None) for concept in depths] == [3, 3, 2, 2]
