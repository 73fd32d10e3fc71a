"""Mechanisms: the few places where private numbers meet noise."""

from cumae.mechanisms.base import UNCLEAR, Coins, Spent, VoteRule
from cumae.mechanisms.between_thresholds import Between, BetweenThresholds, Side
from cumae.mechanisms.exponential import ExponentialMechanism
from cumae.mechanisms.majority import Majority, NoisyMajority, counts_moved, labels_of
from cumae.mechanisms.noise import GaussianNoise, LaplaceNoise
from cumae.mechanisms.rules import rule_from_facts
from cumae.mechanisms.stability import Stability, StabilityTest, distance_to_instability

__all__ = [
    "UNCLEAR",
    "Between",
    "BetweenThresholds",
    "Coins",
    "ExponentialMechanism",
    "GaussianNoise",
    "LaplaceNoise",
    "Majority",
    "NoisyMajority",
    "Side",
    "Spent",
    "Stability",
    "StabilityTest",
    "VoteRule",
    "counts_moved",
    "distance_to_instability",
    "labels_of",
    "rule_from_facts",
]
