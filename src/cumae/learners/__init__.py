"""Private learners: scikit-learn classifiers that may be published, with their guarantee."""

from cumae.learners.active import ActiveLearner
from cumae.learners.adapters import Adapter
from cumae.learners.base import Learner
from cumae.learners.boosting import PrivateBooster
from cumae.learners.columns import Columns
from cumae.learners.exponential import PrivateLearner
from cumae.learners.generic import GenericLearner
from cumae.learners.label_boost import IterLabelBoost, LabelBoost
from cumae.learners.logistic import PrivateLogisticRegression
from cumae.learners.multiclass import OneVsRest
from cumae.learners.public_reduction import PublicDataReduction
from cumae.learners.reductions import AccuracyBoost, HypothesisLearner
from cumae.learners.semi_private import SemiPrivateLearner

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
    "PrivateLearner",
    "PrivateLogisticRegression",
    "PublicDataReduction",
    "SemiPrivateLearner",
]
