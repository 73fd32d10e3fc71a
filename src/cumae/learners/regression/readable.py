"""Readings of a published model of a number: effects in units of the number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cumae.learners.kernel.model import KernelModel
from cumae.learners.kernel.shown.effects import Effect, constant_of
from cumae.learners.kernel.shown.readable import Readable
from cumae.learners.regression.model import NumberModel


class ReadableNumbers(Readable):
    """A fitted model of a number whose effects can be looked at, at no cost."""

    model_: NumberModel

    def published(self) -> KernelModel:
        """Return what tells scores."""
        check_is_fitted(self, "model_")
        return self.model_.kernel

    @property
    def effects_(self) -> list[Effect]:
        """The effects of each column and of the strongest pairs on the mean, or on its logarithm.

        The strongest come first. They are computed from the published model, at no cost.
        """
        unit = self._shown_unit
        return [
            replace(
                effect,
                log_odds=effect.log_odds * unit,
                spread=effect.spread * unit,
                strength=effect.strength * unit,
            )
            for effect in super().effects_
        ]

    @property
    def _shown_unit(self) -> float:
        target = self.model_.target
        return target.unit if target.link == "identity" else 1.0

    def _drawn_classes(self) -> NDArray[Any]:
        return np.array([0, 1])

    def _drawn_as(self) -> str:
        return "mean" if self.model_.target.link == "identity" else "logarithm of the mean"

    def _heading(self) -> str:
        target = self.model_.target
        constant, spread = constant_of(self.published(), self.columns_)
        if target.link == "identity":
            middle = target.centre + target.unit * float(constant[0])
        else:
            middle = float(constant[0] + np.log(target.unit))
        return f"{self._drawn_as()}: {middle:.4g} +/- {2 * self._shown_unit * spread[0]:.2g}"
