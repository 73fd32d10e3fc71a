"""scikit-learn's own checks of estimators, with a reason for each that cannot hold."""

from __future__ import annotations

import math
from typing import Any, Self

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cumae import PrivateClassifier
from cumae.learners import (
    GenericLearner,
    PrivateBooster,
    PrivateKernelClassifier,
    PrivateLearner,
    PrivateLogisticRegression,
    SemiPrivateLearner,
)
from tests.conformity import run_check

pytestmark = [
    pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows"),
    pytest.mark.filterwarnings("ignore::cumae.errors.EveryFitPays"),
]


class _PublicToo:
    """The checks know no public rows and no declarations: here the rows serve as both."""

    def fit(self, X: Any, y: Any) -> Self:
        return super().fit(X, y, X)  # type: ignore[misc, no-any-return]


class PublicPrivateLearner(_PublicToo, PrivateLearner):  # type: ignore[misc]
    """PrivateLearner with candidates from the rows of the check."""


class PublicGenericLearner(_PublicToo, GenericLearner):  # type: ignore[misc]
    """GenericLearner with candidates from the rows of the check."""


class PublicSemiPrivateLearner(_PublicToo, SemiPrivateLearner):  # type: ignore[misc]
    """SemiPrivateLearner with candidates from the rows of the check."""


class PublicPrivateClassifier(_PublicToo, PrivateClassifier):  # type: ignore[misc]
    """PrivateClassifier with the rows of the check as public ones."""


DECLARED = "classes are declared, never read from the rows; the check has others than 0 and 1"
OWN_WORDS = "what is not declared is refused in words of its own, for whatever reason it is there"
EXCEPTIONS = {
    "check_estimators_dtypes": DECLARED,
    "check_complex_data": DECLARED,
    "check_classifier_data_not_an_array": DECLARED,
    "check_classifiers_classes": DECLARED,
    "check_fit2d_1feature": DECLARED,
    "check_classifiers_regression_target": OWN_WORDS,
    "check_classifier_not_supporting_multiclass": OWN_WORDS,
    "check_dtype_object": "a cell that is no number is InvalidData, and no TypeError",
    "check_estimators_nan_inf": "infinite numbers have an order, and are taken; NaN is refused",
    "check_fit1d": "a flat list is a single column",
}
# Without noise and with a seed, so that what some checks ask for does not depend on luck.
ESTIMATORS = [
    PublicPrivateLearner(epsilon=math.inf, random_state=0),
    PublicGenericLearner(epsilon=math.inf, random_state=0),
    PublicSemiPrivateLearner(epsilon=math.inf, random_state=0),
    PrivateKernelClassifier(math.inf, n_waves=5, random_state=0),
    PrivateLogisticRegression(math.inf, random_state=0),
    PrivateBooster(math.inf, random_state=0),
    PublicPrivateClassifier(100.0, 0.0, random_state=0),  # it refuses an infinite epsilon
]


@pytest.mark.filterwarnings("ignore:Estimator's parameters changed after estimator initialization")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda _: EXCEPTIONS)  # type: ignore[untyped-decorator]
def test_scikit_learn(estimator: Any, check: Any, request: pytest.FixtureRequest) -> None:
    run_check(estimator, check, request)
