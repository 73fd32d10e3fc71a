"""Private learners: scikit-learn estimators that may be published, with their guarantee."""

from cumae.codec import add_form, by_fitted, register
from cumae.data import Columns
from cumae.learners.active import ActiveLearner
from cumae.learners.base import Learner
from cumae.learners.boosting import PrivateBooster
from cumae.learners.exponential import PrivateLearner
from cumae.learners.generic import GenericLearner
from cumae.learners.kernel_classifier import PrivateKernelClassifier
from cumae.learners.logistic import PrivateLogisticRegression
from cumae.learners.regression.kernel import PrivateKernelRegressor
from cumae.learners.regression.linear import PrivateLinearRegression
from cumae.learners.semi_private import SemiPrivateLearner
from cumae.learners.wrappers.accuracy import AccuracyBoost
from cumae.learners.wrappers.adapter import Adapter
from cumae.learners.wrappers.hypothesis import HypothesisLearner
from cumae.learners.wrappers.iter_label_boost import IterLabelBoost
from cumae.learners.wrappers.label_boost import LabelBoost
from cumae.learners.wrappers.one_vs_rest import OneVsRest
from cumae.learners.wrappers.public_reduction import PublicDataReduction

__all__ = [
    "AccuracyBoost",
    "ActiveLearner",
    "Adapter",
    "Columns",
    "GenericLearner",
    "HypothesisLearner",
    "IterLabelBoost",
    "LabelBoost",
    "Learner",
    "OneVsRest",
    "PrivateBooster",
    "PrivateKernelClassifier",
    "PrivateKernelRegressor",
    "PrivateLearner",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PublicDataReduction",
    "SemiPrivateLearner",
]

add_form("learner", Learner, by_fitted)
# The names stand in files: they never change.
register(
    "learner",
    {
        "AccuracyBoost": AccuracyBoost,
        "ActiveLearner": ActiveLearner,
        "Adapter": Adapter,
        "GenericLearner": GenericLearner,
        "HypothesisLearner": HypothesisLearner,
        "IterLabelBoost": IterLabelBoost,
        "LabelBoost": LabelBoost,
        "OneVsRest": OneVsRest,
        "PrivateBooster": PrivateBooster,
        "PrivateKernelClassifier": PrivateKernelClassifier,
        "PrivateKernelRegressor": PrivateKernelRegressor,
        "PrivateLearner": PrivateLearner,
        "PrivateLinearRegression": PrivateLinearRegression,
        "PrivateLogisticRegression": PrivateLogisticRegression,
        "PublicDataReduction": PublicDataReduction,
        "SemiPrivateLearner": SemiPrivateLearner,
    },
)
