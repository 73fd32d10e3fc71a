"""Laws that learners, predictors and the estimators inside must keep; anyone may run them.

Each law is a function that raises ``AssertionError`` where it is broken; its docstring says it in
one sentence. ``check_learner``, ``check_predictor`` and ``check_estimator`` run all of them.
"""

from cumae.checks.batches import (
    a_model_ignores_the_batch,
    a_prior_ignores_the_batch,
    pieces_do_not_change_the_sum,
)
from cumae.checks.learners import LEARNER_LAWS, PublicNeighbours, check_learner
from cumae.checks.observables import contents_cannot_be_seen
from cumae.checks.predictors import PREDICTOR_LAWS, check_predictor
from cumae.checks.replay import events_rebuild_the_state
from cumae.checks.shards import SHARD_LAWS, Neighbours, check_estimator

__all__ = [
    "LEARNER_LAWS",
    "PREDICTOR_LAWS",
    "SHARD_LAWS",
    "Neighbours",
    "PublicNeighbours",
    "a_model_ignores_the_batch",
    "a_prior_ignores_the_batch",
    "check_estimator",
    "check_learner",
    "check_predictor",
    "contents_cannot_be_seen",
    "events_rebuild_the_state",
    "pieces_do_not_change_the_sum",
]
