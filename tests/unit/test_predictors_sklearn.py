"""scikit-learn's own checks of estimators, with a reason for each that cannot hold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from cumae import EverlastingPredictor, QueryRelease
from tests.conformity import run_check

if TYPE_CHECKING:
    import pytest

DECLARED = "classes are declared, never read from the rows; the check has others than 0 and 1"
SILENT = "fit says nothing about single rows or labels, because that would tell about them"
SINGLE = "a fitted predictor must not be copied or pickled"
EXCEPTIONS = {
    "check_classifiers_classes": DECLARED,
    "check_classifier_not_supporting_multiclass": DECLARED,
    "check_classifiers_regression_target": SILENT,
    "check_classifiers_one_label": SILENT,
    "check_estimators_nan_inf": SILENT,
    "check_dtype_object": SILENT,
    "check_estimators_pickle": SINGLE,
    "check_fit1d": "a flat list is a single column",
}
EVERLASTING = {**EXCEPTIONS}
del EVERLASTING["check_classifiers_one_label"]  # shards of one label vote for it
ESTIMATORS = [
    QueryRelease(epsilon=math.inf, max_queries=100_000, n_shards=2, random_state=0),
    EverlastingPredictor(epsilon=math.inf, prior=False, growth=1000.0, random_state=0),
]


def exceptions(estimator: Any) -> dict[str, str]:
    return EVERLASTING if isinstance(estimator, EverlastingPredictor) else EXCEPTIONS


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=exceptions)  # type: ignore[untyped-decorator]
def test_scikit_learn(estimator: Any, check: Any, request: pytest.FixtureRequest) -> None:
    run_check(estimator, check, request)
