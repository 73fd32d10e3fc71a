"""The pictures of docs/kernel.md: what features are, how bands narrow, and effects of the survey.

    python benchmarks/kernel_pictures.py

writes results/kernel_*.png. Nothing is measured here.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib as mpl
import numpy as np
from scipy.special import expit

from cumae import PrivateKernelClassifier
from cumae.data import Columns
from cumae.datasets import load_health_survey
from cumae.learners.kernel.features import KernelFeatures
from cumae.learners.kernel.model import KernelModel
from cumae.learners.kernel.posterior import Posterior
from cumae.learners.kernel.shown.effects import effects_of
from cumae.randomness import SeededSource

mpl.use("Agg")

from matplotlib import pyplot as plt

RESULTS = Path(__file__).parent / "results"
UNIT = [(-1.0, 1.0)] * 3
DPI = 80


def save(figure: Any, name: str) -> None:
    figure.savefig(RESULTS / f"kernel_{name}.png", dpi=DPI)
    plt.close(figure)


def features() -> None:
    """Draw a skewed column's levels, its line and curves, and three waves of two columns."""
    coins = np.random.default_rng(0)
    table = np.column_stack([coins.gamma(2.0, 10.0, 2_000), coins.uniform(-1, 1, 2_000)])
    columns = Columns([(0, 200), (-1, 1)], None, 2)
    made = KernelFeatures.of(table, columns, SeededSource(4), curves=6, waves=12)
    figure, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained")
    axes[0, 0].hist(table[:, 0], bins=40, color="lightgrey")
    for cut in made.levels[0].cuts[15::16]:
        axes[0, 0].axvline(cut, color="C0", linewidth=0.8)
    axes[0, 0].set_title("every 16th end of a level of a column")
    grid = np.linspace(0, 90, 300)
    shown = made.whole(made.codes(np.column_stack([grid, np.zeros(300)])))
    axes[0, 1].plot(grid, shown[:, 0] / 127)
    axes[0, 1].set_title("its line, which ends at 3 deviations")
    for order in range(3):
        axes[0, 2].plot(grid, shown[:, 2 + order] / 127)
    axes[0, 2].set_title("three of its curves: cosines of its rank")
    one, other = np.meshgrid(grid, np.linspace(-1, 1, 100))
    waves = made.whole(made.codes(np.column_stack([one.ravel(), other.ravel()])))
    both = np.abs(made.waves).min(axis=0)  # waves that go up and down along both columns
    for place, wave in zip(axes[1], np.argsort(both)[-3:] + made.wave_places.start, strict=True):
        image = waves[:, wave].reshape(one.shape)
        place.imshow(image, origin="lower", aspect="auto", extent=(0, 90, -1, 1), cmap="RdBu_r")
        place.set_title("a wave of two columns")
    save(figure, "features")


def truth(x: Any) -> Any:
    return 1.5 * np.sin(2.5 * x)


def steps() -> None:
    """Draw what is known about one column's curve after each of four noisy sums."""
    coins = np.random.default_rng(1)
    rows = coins.uniform(-1, 1, (6_000, 3))
    odds = truth(rows[:, 0]) + 2 * rows[:, 1] * rows[:, 2]
    labels = coins.random(len(rows)) < expit(odds)
    seen: list[Posterior] = []
    learn = Posterior.learn

    def watched(self: Posterior, *given: Any) -> None:
        learn(self, *given)
        seen.append(copy.copy(self))

    model = PrivateKernelClassifier(1.0, 1e-6, columns=UNIT, random_state=1)
    with mock.patch.object(Posterior, "learn", watched):
        model.fit(rows, labels, coins.uniform(-1, 1, (2_000, 3)))
    figure, axes = plt.subplots(
        1, len(seen), figsize=(11, 3), sharey=True, squeeze=False, layout="constrained"
    )
    for step, (posterior, place) in enumerate(zip(seen, axes[0], strict=True), start=1):
        found = effects_of(KernelModel.of(model.published().features, posterior), model.columns_)
        effect = next(effect for effect in found if effect.columns == ("0",))
        x = np.array(effect.values[0])
        place.plot(x, effect.log_odds)
        low, high = (effect.log_odds + sign * 2 * effect.spread for sign in (-1, 1))
        place.fill_between(x, low, high, alpha=0.25)
        place.plot(x, truth(x), "k:", linewidth=1)
        place.set_title(f"after {step} noisy sum{'s' * (step > 1)}")
    axes[0, 0].set_ylabel("added to the log odds")
    save(figure, "steps")


def survey() -> None:
    """Draw the strongest effects of a model of 25,000 interviews."""
    survey = load_health_survey()
    columns = {name: (low, high, 1) for name, (low, high) in survey.bounds.items()}
    model = PrivateKernelClassifier(1.0, 1e-6, columns=columns, random_state=1)
    order = np.random.default_rng(0).permutation(len(survey.target))
    rows, labels = survey.data.iloc[order], survey.target.iloc[order]
    model.fit(rows[:25_000], labels[:25_000], rows[-2_000:])
    print(model)
    pairs = [effect.columns for effect in model.effects_ if len(effect.columns) == 2]
    singles = [effect.columns for effect in model.effects_ if len(effect.columns) == 1]
    save(model.plot(singles[:4] + pairs[:2]), "effects")


if __name__ == "__main__":
    features()
    steps()
    survey()
