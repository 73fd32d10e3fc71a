"""Labels that come later: rows with a label, and labels for earlier queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cumae import EverlastingPredictor, InvalidData, InvalidParameter
from cumae.predictors.answering.events import Answered
from cumae.predictors.everlasting import phases
from cumae.predictors.ids import as_rows
from cumae.predictors.state import restore
from tests.everlasting import ABOVE, N, X, Y, oracle, rows_of_phases

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(8)


@pytest.mark.claim("LABELLED")
@pytest.mark.parametrize("options", [{}, {"late": 0.25}, {"fresh": True, "growth": 2.0}])
def test_a_labelled_row_is_a_row_of_one_phase(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    seen = rows_of_phases(monkeypatch)
    one = oracle(**options).fit(X, Y)
    one.add_labelled([[5.0], [6.0]], [1, 0])
    if one.fresh:
        one.add_unlabelled(RNG.random((3 * N + 2, 1)))
    for _ in range(4):
        one.predict(RNG.random((N // 2 + 1, 1)))
    found = [(rows.count(5.0), rows.count(6.0)) for rows, _, _ in seen]
    assert found[:2] == [(0, 0), (1, 1)]
    assert set(found[2:]) == {(0, 0)}
    rows, weights, full = seen[1]
    assert weights[rows.index(5.0)].tolist() == [0, full]
    assert weights[rows.index(6.0)].tolist() == [full, 0]
    assert one._state_.n_labelled == 0


@pytest.mark.claim("LABELLED")
def test_what_a_labelled_row_holds_changes_no_count() -> None:
    found = []
    for row, label in (([0.5], 1), ([np.nan], 1), ("no row", 0)):
        one = oracle().fit(X, Y)
        one.add_labelled([row, [0.2]], [label, 0])
        one.predict(RNG.random((N + 1, 1)))
        found.append((one.phase_, one._state_.phase.n_rows, one.n_shards_))
    assert set(found) == {(2, N + 2, (N + 2) // 10)}
    with pytest.raises(InvalidData):
        one.add_labelled([[0.5]], [1, 0])


@pytest.mark.claim("LABELLED")
def test_a_label_takes_the_place_of_a_margin_while_the_query_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = rows_of_phases(monkeypatch)
    one = oracle().fit(X, Y)
    asked = np.arange(10.0, 10.0 + N).reshape(-1, 1)
    asked[7] = np.nan
    one.predict(asked[:100], query_ids=[f"q{place}" for place in range(100)])
    one.predict(asked[100:200], query_ids=range(100))
    one.add_labels(["q3", "q7"], [0, 1])
    one = restore(one.to_arrays())
    one.add_labels([50, 51], [1, 1])
    one.add_labels([50], [0])  # the first one was a mistake
    told = r"no waiting query has: 'never', 77\d; and ids that are given twice: 'q4'\. Nothing was"
    with pytest.raises(InvalidParameter, match=told):
        one.add_labels(["q4", "never", "q4", 777], [1] * 4)
    with pytest.raises(InvalidData, match=r"1 labels .* none of classes=\(0, 1\), .* row 1; "):
        one.add_labels([50, 51], [1, 9])
    with pytest.raises(InvalidParameter, match="names another query"):
        one.predict(asked[:1], query_ids=["q4"])
    one.predict(asked[200:])
    rows, weights, full = seen[-1]
    assert weights[rows.index(13.0)].tolist() == [full, 0]
    assert weights[7].tolist() == [0, 0]  # it was unusable, and stays so
    assert weights[rows.index(160.0)].tolist() == [full, 0]
    assert weights[rows.index(161.0)].tolist() == [0, full]
    assert weights[rows.index(14.0)].tolist() != [full, 0]
    with pytest.raises(InvalidParameter, match="has not become a row"):
        one.add_labels(["q5"], [1])


@pytest.mark.claim("LABELLED")
@pytest.mark.parametrize("labels", [[1, 9], [1, -1], [1, None], [1, "1"]])
def test_a_label_that_was_not_declared_is_refused_before_anything_is_kept(labels: Any) -> None:
    one = oracle(user_ids=True).fit(X, Y, users=range(N))
    y = np.array(labels, dtype=object)
    with pytest.raises(InvalidData, match=r"none of classes=\(0, 1\), the first in row 1"):
        one.add_labelled([[0.5], [0.2]], y, users=["anna", "ben"])
    assert one._state_.n_labelled == 0
    one.add_labelled([[0.5], [0.2]], [1, 0], users=["anna", "ben"])
    assert one._state_.n_labelled == 2


def with_prior(rows: int) -> tuple[Any, int]:
    """Return a predictor that has a prior, and how many rows that was trained on."""
    x = RNG.random((rows, 1))
    one: Any = EverlastingPredictor(ABOVE, 3.0, columns=[(0, 1)], growth=1.0).fit(
        x, x[:, 0] >= 0.37
    )
    return one, one._state_.prior.n_rows


@pytest.mark.claim("LABELLED", "PRIOR")
def test_labelled_rows_train_a_new_prior_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    one, before = with_prior(400)
    seen, first = rows_of_phases(monkeypatch), one.prior_
    later = RNG.uniform(0.5, 0.6, (2 * before - 3, 1))
    one.add_labelled(later, later[:, 0] >= 0.55)
    phase, asked = one._state_.left, RNG.uniform(0.0, 0.5, (one._state_.left, 1))
    asked[1] = np.nan
    ids = list(range(phase))
    one.predict(asked[:-1], query_ids=ids[:-1])
    one.add_labels([0, 1, 2], [1, 1, 0])  # an unusable query counts like any other
    one = restore(one.to_arrays())
    one.predict(asked[-1:])
    assert one._state_.following is not None
    one = restore(one.to_arrays())  # and the training is repeated
    one.predict([[0.2]])
    rows, weights, _ = seen[-1]
    assert len(rows) == phase
    assert not set(rows) & {asked[0, 0], asked[2, 0], *later.ravel().tolist()}
    assert weights[:3].tolist() == [[0, 0]] * 3
    assert asked[3, 0] in rows
    assert one._state_.prior.n_rows == 2 * before
    assert one.prior_ is not first
    # It learnt from the later rows, whose boundary is another one.
    assert one.prior_.predict([[0.45], [0.6]]).tolist() == [0, 1]
    assert len(one._state_.for_prior) == 0


@pytest.mark.claim("LABELLED", "PRIOR")
def test_labelled_rows_wait_until_they_are_enough() -> None:
    one, before = with_prior(400)
    first = one.prior_
    for _ in range(2):
        assert one.prior_ is first
        later = RNG.random((before, 1))
        one.add_labelled(later, later[:, 0] >= 0.37)
        one.predict(RNG.random((one._state_.left + 1, 1)))
        one = restore(one.to_arrays()) if one.prior_ is not first else one
    assert one._state_.prior.n_rows == 2 * before


@pytest.mark.claim("LABELLED")
def test_a_user_has_one_row_with_a_label_or_without() -> None:
    one = oracle(user_ids=True).fit(X, Y, users=range(N))
    one.predict([[0.5]], users=["anna"], query_ids=["first"])
    one.add_labelled([[0.1], [0.2], [0.3]], [0, 0, 0], users=["anna", "ben", 3])
    assert one._state_.n_labelled == 1
    one.predict([[0.5]], users=["ben"], query_ids=["second"])
    assert list(one._state_.query_places) == [one._state_.hide("first")]
    with pytest.raises(InvalidParameter):
        one.add_labels(["second"], [1])


def test_labels_stop_the_boundary_from_wandering() -> None:
    """With a twentieth of the queries labelled, the error after ten phases is smaller."""
    errors = []
    for labels in (False, True):
        generator, wrong = np.random.default_rng(3), []
        for seed in range(4):
            rows = generator.random((2000, 1))
            options: dict[str, Any] = {"growth": 1.0, "columns": [(0, 1)], "prior": False}
            one = EverlastingPredictor(ABOVE, 3.0, random_state=seed, **options)
            one.fit(rows, rows[:, 0] >= 0.37)
            for step in range(40):
                asked = generator.random((500, 1))
                names = [(1000 * step) + i for i in range(500)]
                answers = one.predict(asked, query_ids=names)
                if step >= 36:
                    wrong.append(np.mean(answers != (asked[:, 0] >= 0.37)))
                if labels and one._state_.query_places:  # the next phase has not begun
                    one.add_labels(names[:25], asked[:25, 0] >= 0.37)
        errors.append(np.mean(wrong))
    assert errors[1] < errors[0]


@pytest.mark.claim("LABELLED")
def test_a_query_without_a_margin_gets_its_label_and_an_unusable_one_does_not() -> None:
    one = oracle().fit(X, Y)
    state, full = one._state_, one.n_shards_
    assert not state.kept.labelled_places
    Answered(
        2,
        2,
        rows=np.array([[0.4], [0.0]]),
        weights=np.zeros((2, 2), dtype=np.int64),
        query_ids=as_rows([state.hide("tied"), state.hide("unusable")]),
        places=np.array([0, ~1]),
    ).apply(state)
    one.add_labels(["tied", "unusable"], [1, 1])
    assert state.kept.weights.tolist() == [[0, full], [0, 0]]
    one.add_labels(["tied"], [0])
    assert state.kept.weights.tolist() == [[full, 0], [0, 0]]
    assert state.kept.labelled_places.keys() == {0, 1}


@pytest.mark.claim("EVER")
def test_a_call_that_was_broken_off_at_the_end_of_a_phase_does_not_block_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = oracle().fit(X, Y)
    left = int(one._state_.next_phase_rows.until_next(one._state_))

    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(phases.PhaseSetup, "train", stop)
        with pytest.raises(KeyboardInterrupt):
            one.predict(RNG.random((left + 1, 1)))
    assert (one.answered_, one._state_.n_kept) == (left, 0)  # these count, and are handed over
    assert one.predict(RNG.random((5, 1))).shape == (5,)
    assert (one.phase_, one.answered_) == (2, left + 5)
