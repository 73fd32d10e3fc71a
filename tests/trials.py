"""Trials and priors that take less time, where what is tested does not depend on their size.

Trials on made-up rows are remembered while an audit plays the same game a thousand times.
"""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

from cumae import PrivateKernelClassifier
from cumae.ensembles import sizing
from cumae.ensembles.trial import try_out

if TYPE_CHECKING:
    import pytest


def remember_trials(patch: pytest.MonkeyPatch, known: dict[bytes, bool] | None = None) -> None:
    """Let predictors try out a model once for each input of ``try_out``, private rows included.

    What is ``known`` is not tried again; several tests may share it.

    A trial takes about half of the time of a small ``fit``. It throws no coins, so that one with
    the same input has the same outcome. The rows are part of what is remembered: a trial that
    looked at them would still tell them apart, as it must in an audit.
    """
    known = {} if known is None else known

    def remembered(*given: Any) -> bool:
        key = pickle.dumps(given)
        if key not in known:
            known[key] = try_out(*given)
        return known[key]

    patch.setattr("cumae.predictors.base.try_out", remembered)


def train_little(patch: pytest.MonkeyPatch) -> None:
    """Let trials of sizes train three models of each, and default priors have five waves.

    Laws hold for any number of them. What a trial reads, and what a prior learns from, stays the
    same; only how good the chosen size and the prior are does not.
    """
    patch.setattr(sizing, "FEWEST_MODELS", 3)
    patch.setattr(sizing, "MOST_MODELS", 3)
    small = partial(PrivateKernelClassifier, n_waves=5)
    patch.setattr("cumae.predictors.everlasting.prior.PrivateKernelClassifier", small)
