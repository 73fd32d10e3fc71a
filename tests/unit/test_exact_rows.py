"""What a prior and a published model say of a row has the same bits in any batch, at any place."""

from __future__ import annotations

import copy
import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from cumae import (
    Adapter,
    EverlastingPredictor,
    PrivateBooster,
    PrivateKernelClassifier,
    PrivateLearner,
    PrivateLogisticRegression,
)
from cumae.checks import a_model_ignores_the_batch, a_prior_ignores_the_batch
from cumae.checks.batches import LARGEST
from cumae.concepts import Halfspaces, Rectangles, Thresholds, Tree, is_exact
from cumae.ensembles.blocks import AskedInBlocks
from cumae.errors import InvalidParameter
from cumae.estimators import own_clone
from cumae.learners.kernel import scoring
from cumae.learners.kernel.model import KernelModel
from cumae.learners.kernel.scoring import FINEST, GRID, WholeScores
from cumae.learners.scored import chances
from cumae.predictors.everlasting.prior import Prior
from cumae.randomness import SeededSource
from tests.kinds import KINDS, as_array, labels_of

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(3)
WIDTH = 6
ROWS = RNG.random((LARGEST, WIDTH))
UNIT: Any = [(0, 1)] * WIDTH
LABELS = (ROWS[:, 0] + ROWS[:, 1] * ROWS[:, 2] > 0.7).astype(int)
THIRDS = (3 * ROWS[:, 0]).astype(int)
ALL_KINDS = as_array(LARGEST)
TRAINED = 2_000


def float_scores(model: KernelModel, table: Any) -> Any:
    """Return scores as they were: by a product of floats, which adds in an order of its own."""
    return model.features.rows(model.features.codes(table)) @ model.weights


class Plain(PrivateKernelClassifier):
    """Has scores by a matrix product, and does not say that it is exact."""

    is_exact = False

    @property
    def log_odds(self) -> Any:
        return lambda table: float_scores(self.published(), table)[:, 0]


def oracle(prior: Any, estimator: Any = None, **options: Any) -> EverlastingPredictor:
    given = {"columns": UNIT, "prior_share": 0.5, "shard_size": 60, **options}
    model = DecisionTreeClassifier(max_depth=2) if estimator is None else estimator
    return EverlastingPredictor(model, 9.0, 1e-6, prior=prior, random_state=1, **given)


BOX: Any = {"columns": UNIT[:2]}
# Oracles, their rows and labels. A prior that gets encoded rows is asked about numbers.
PRIORS: dict[str, tuple[EverlastingPredictor, Any, Any]] = {
    "kernel": (oracle(PrivateKernelClassifier()), ROWS, LABELS),
    "kernel, three classes": (
        oracle(PrivateKernelClassifier(n_waves=20), classes=(0, 1, 2)),
        ROWS,
        THIRDS,
    ),
    "kernel, all kinds": (
        oracle(PrivateKernelClassifier(n_waves=20), columns=KINDS),
        ALL_KINDS,
        labels_of(ALL_KINDS),
    ),
    "kernel, columns of its own": (
        oracle(PrivateKernelClassifier(columns=UNIT), columns=None),
        ROWS,
        LABELS,
    ),
    "logistic": (oracle(PrivateLogisticRegression(curves=6)), ROWS, LABELS),
    "trees": (oracle(PrivateBooster(n_rounds=5)), ROWS, LABELS),
    "trees after a start": (oracle(PrivateBooster(n_rounds=2, start="linear")), ROWS, LABELS),
    "thresholds": (oracle(PrivateLearner(Thresholds()), columns=UNIT[:1]), ROWS[:, :1], LABELS),
    "boxes": (oracle(PrivateLearner(Rectangles()), **BOX), ROWS[:, :2], LABELS),
    "halfspaces": (oracle(PrivateLearner(Halfspaces(), n_points=5), **BOX), ROWS[:, :2], LABELS),
    "a matrix product": (oracle(Plain()), ROWS, LABELS),
    "another library": (oracle(Adapter(LogisticRegression(), 1.0)), ROWS, LABELS),
}
IN_BLOCKS = {"a matrix product", "another library"}


def prior_of(name: str) -> tuple[Prior, Any]:
    """Return a fitted prior, and queries as it gets them."""
    one, rows, labels = PRIORS[name]
    one.fit(rows[:TRAINED], labels[:TRAINED])
    found = one._state_.prior
    assert isinstance(found, Prior)
    return found, one._reader_.private(rows)[0]


@pytest.mark.full_blocks
@pytest.mark.claim("PRIOR", "EVER", "KERNEL", "SHARDS")
@pytest.mark.parametrize("name", PRIORS)
def test_priors_ignore_the_batch(name: str) -> None:
    prior, queries = prior_of(name)
    assert prior.learner.is_exact == (name not in IN_BLOCKS)
    a_prior_ignores_the_batch(prior, queries)


@pytest.mark.claim("KERNEL", "PRIOR")
@pytest.mark.parametrize("name", ["kernel", "kernel, three classes", "logistic"])
def test_published_models_ignore_the_batch(name: str) -> None:
    """The laws of learners say it of each of them; here there are more rows and features."""
    one, rows, labels = PRIORS[name]
    model: Any = own_clone(one.prior).set_params(columns=UNIT, classes=one.classes)
    model.random_state = SeededSource(1)
    model.fit(rows[:TRAINED], labels[:TRAINED])
    a_model_ignores_the_batch(model, rows[:997])
    again = type(model).from_dict(model.to_dict())
    assert np.array_equal(again.predict_proba(rows), model.predict_proba(rows))


# Planted: floats that are added in an order which depends on the batch


@pytest.mark.claim("KERNEL", "PRIOR")
def test_planted_products_of_floats_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KernelModel, "scores", float_scores)
    prior, queries = prior_of("kernel")
    with pytest.raises(AssertionError, match="got another result than alone"):
        a_prior_ignores_the_batch(prior, queries)
    with pytest.raises(AssertionError, match="got another result than alone"):
        a_model_ignores_the_batch(prior.learner, ROWS[:100])


@pytest.mark.claim("PRIOR")
def test_planted_tables_of_any_shape_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AskedInBlocks, "__call__", lambda self, table, _: self.ask(table))
    prior, queries = prior_of("a matrix product")
    with pytest.raises(AssertionError, match="got another result than alone"):
        a_prior_ignores_the_batch(prior, queries)


# Scores


def exact_scores(model: KernelModel, row: Any) -> list[Fraction]:
    """Return the scores of an encoded row by the published numbers, in exact arithmetic."""
    features = model.features
    (whole,) = features.whole(features.codes(row[None])).astype(int).tolist()
    found = []
    for weights in model.weights.T.tolist():
        score = Fraction(weights[0])
        for cell, weight, centre, scale in zip(
            whole, weights[1:], features.centres.tolist(), features.scales.tolist(), strict=True
        ):
            score += Fraction(weight) * Fraction(scale) * (cell - Fraction(centre))
        found.append(score)
    return found


@pytest.mark.claim("KERNEL")
@pytest.mark.parametrize("name", ["kernel", "kernel, three classes", "kernel, all kinds"])
def test_scores_are_those_of_the_published_numbers(name: str) -> None:
    prior, queries = prior_of(name)
    learner: Any = prior.learner
    model = learner.model_
    odd = np.array([[1e300], [-1e300], [np.inf], [-np.inf], [1.0], [0.5], [0.0], [-0.0]])
    rows = np.vstack([queries[:40], np.broadcast_to(odd, (8, queries.shape[1]))])
    found = model.scores(rows)
    assert (found / GRID == np.rint(found / GRID)).all()
    most = GRID / 2 + 2.0**-FINEST * 128 * (1 + model.features.n_features)
    for row, scores in zip(rows, found.tolist(), strict=True):
        for score, exact in zip(scores, exact_scores(model, row), strict=True):
            assert abs(Fraction(score) - exact) <= most
    assert np.abs(found - float_scores(model, rows)).max() < 1e-6


@pytest.mark.claim("KERNEL")
def test_scores_ignore_how_a_table_lies_in_memory() -> None:
    prior, queries = prior_of("kernel")
    learner: Any = prior.learner
    scores = learner.log_odds(queries[:50])
    frozen = queries[:50].copy()
    frozen.flags.writeable = False
    wide = np.zeros((100, 2 * WIDTH))
    wide[::2, ::2] = queries[:50]
    for table in (np.asfortranarray(queries[:50]), frozen, wide[::2, ::2]):
        assert np.array_equal(learner.log_odds(table), scores)
    assert learner.log_odds(queries[:0]).shape == (0,)


@pytest.mark.claim("KERNEL")
def test_large_coefficients_have_a_coarser_unit_and_infinite_ones_are_refused() -> None:
    prior, queries = prior_of("logistic")
    learner: Any = prior.learner
    model = learner.model_
    for power in (10, 30, 100):
        large = WholeScores.of(model.features, model.weights * 2.0**power)
        found = large.scores(queries[:20])[:, 0] * 2.0**-power
        assert np.abs(found - model.scores(queries[:20])[:, 0]).max() < 1e-6
    assert (
        WholeScores.of(model.features, model.weights * 0.0).scores(queries[:3]).tolist()
        == [[0.0]] * 3
    )
    for wrong in (math.inf, math.nan, 1e300):
        weights = model.weights.copy()
        weights[1] = wrong
        with pytest.raises(InvalidParameter, match="not below 1e"):
            WholeScores.of(model.features, weights)


@pytest.mark.claim("KERNEL", "PRIOR")
def test_the_largest_numbers_of_a_model_have_finite_scores() -> None:
    """Else one row of a batch would warn, or raise, for all of them."""
    learner = PrivateKernelClassifier(columns=UNIT, random_state=1).fit(ROWS, LABELS)
    model = learner.published()
    features, largest = copy.copy(model.features), np.nextafter(scoring.LARGEST, 0.0)
    vars(features).update(
        centres=np.full_like(features.centres, -largest),
        scales=np.full_like(features.scales, largest),
    )
    weights = np.full_like(model.weights, largest)
    assert len(weights) > 400
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = WholeScores.of(features, weights).scores(ROWS[:3])
        assert np.isfinite(found).all()
        assert chances(found[:, 0]).tolist() == [[0.0, 1.0]] * 3


@pytest.mark.claim("PRIOR", "KERNEL")
def test_chances_are_logistic_and_softmax() -> None:
    odds = np.concatenate([RNG.normal(size=500) * 9, [0.0, -0.0, 800.0, -800.0, 1e-9, 40.0]])
    found = chances(odds)
    assert np.allclose(found[:, 1], expit(odds), rtol=1e-14, atol=0)
    assert np.allclose(found[:, 0], expit(-odds), rtol=1e-14, atol=0)
    assert found[500:504].tolist() == [[0.5, 0.5], [0.5, 0.5], [0.0, 1.0], [1.0, 0.0]]
    scores = np.vstack([RNG.normal(size=(500, 9)) * 9, np.full((1, 9), 1e5)])
    assert np.allclose(chances(scores), softmax(scores, axis=1), rtol=1e-13, atol=0)


# Rows that a prior cannot read, and rules that are not known to be exact


@pytest.mark.claim("PRIOR")
def test_a_row_that_the_prior_cannot_read_has_equal_shares_and_changes_no_other() -> None:
    prior, queries = prior_of("kernel, columns of its own")
    spoilt = queries[:9].copy()
    spoilt[4, 2] = np.nan
    found, wanted = (prior.shares(table, np.arange(9)) for table in (spoilt, queries[:9]))
    assert found[4].tolist() == [0.5, 0.5]
    others = [0, 1, 2, 3, 5, 6, 7, 8]
    assert np.array_equal(found[others], wanted[others])


class OwnTree(Tree):
    """A tree of somebody else, who may add up floats."""


def test_only_known_hypotheses_are_exact() -> None:
    one: Any = Tree((0,), (0.5,), (0, 1))
    assert is_exact(one)
    assert not is_exact(OwnTree((0,), (0.5,), (0, 1)))
    learner = PrivateBooster(columns=UNIT).fit(ROWS[:200], LABELS[:200])
    assert learner.is_exact
    learner.trees_.append(OwnTree((0,), (0.5,), (0, 1)))
    assert not learner.is_exact
