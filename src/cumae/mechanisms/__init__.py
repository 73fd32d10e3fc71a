"""Mechanisms: the few places where private numbers meet noise."""

from cumae.mechanisms.between_thresholds import BetweenThresholds, Side
from cumae.mechanisms.exponential import ExponentialMechanism
from cumae.mechanisms.majority import NoisyMajority, counts_moved
from cumae.mechanisms.noise import GaussianNoise, LaplaceNoise
from cumae.mechanisms.stability import StabilityTest, distance_to_instability

__all__ = [
    "BetweenThresholds",
    "ExponentialMechanism",
    "GaussianNoise",
    "LaplaceNoise",
    "NoisyMajority",
    "Side",
    "StabilityTest",
    "counts_moved",
    "distance_to_instability",
]
