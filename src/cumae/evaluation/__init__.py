"""Figures of models on public or private test rows, with intervals that may be shown."""

from cumae.counting.intervals import Figure
from cumae.evaluation.evaluate import Evaluation, evaluate
from cumae.evaluation.figures import Calibration, Curve, Figures

__all__ = ["Calibration", "Curve", "Evaluation", "Figure", "Figures", "evaluate"]
