"""Figures of models on public or private test rows, with intervals that may be shown."""

from cumae.evaluation.evaluate import Evaluation, evaluate
from cumae.evaluation.figures import Calibration, Curve, Figures
from cumae.counting.intervals import Figure

__all__ = ["Calibration", "Curve", "Evaluation", "Figure", "Figures", "evaluate"]
