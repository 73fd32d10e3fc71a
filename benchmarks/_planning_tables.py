"""Tables of benchmarks/planning.py, beside those of tables.py: concepts and interactions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from _made_up_tables import _made, _named, _numbers, _ranges
from _planning_registers import REGISTERS
from _table import Table, words
from tables import load

from cumae.concepts import ConceptClass, Intervals, Rectangles, Thresholds


@dataclass(frozen=True)
class Shape:
    """A made-up table whose rule is a concept of a class; some labels are wrong."""

    concept: ConceptClass
    low: tuple[float, ...]
    high: tuple[float, ...]
    wrong: float

    def table(self, name: str, count: int, seed: int) -> Table:
        coins = np.random.default_rng(seed)
        x = coins.random((count, len(self.low)))
        inside = np.all((x >= self.low) & (x < self.high), axis=1)
        chance = np.where(inside, 1 - self.wrong, self.wrong)
        labels = (coins.random(count) < chance).astype(np.int64)
        names = [f"x{place}" for place in range(x.shape[1])]
        return Table(
            pd.DataFrame(x, columns=names),
            labels,
            dict.fromkeys(names, (0, 1)),
            name,
            chances=np.column_stack([1 - chance, chance]),
        )


SHAPES = {  # the first two are judged, the others calibrate
    "exact threshold": Shape(Thresholds(), (0.37,), (1.0,), 0.0),
    "exact box": Shape(Rectangles(), (0.2, 0.3), (0.75, 0.9), 0.0),
    "noisy threshold": Shape(Thresholds(), (0.58,), (1.0,), 0.1),
    "noisy interval": Shape(Intervals(), (0.15,), (0.55,), 0.15),
    "noisy box": Shape(Rectangles(), (0.05, 0.4), (0.7, 1.0), 0.1),
    "exact interval": Shape(Intervals(), (0.3,), (0.8,), 0.0),
    "late threshold": Shape(Thresholds(), (0.81,), (1.0,), 0.02),
    "small box": Shape(Rectangles(), (0.45, 0.1), (0.85, 0.6), 0.02),
    "deep box": Shape(Rectangles(), (0.1, 0.0, 0.25), (0.9, 0.7, 1.0), 0.05),
}


def gates(count: int, seed: int) -> Table:
    coins = np.random.default_rng(seed)
    x = coins.random((count, 6))
    one, two, three = x[:, 0] > 0.35, x[:, 1] > 0.6, x[:, 2] > 0.5
    score = np.where(one ^ two, 2.0, -2.0) + np.where(three & (x[:, 3] < 0.4), 1.5, 0.0)
    shape = "One of two numbers is large, but not both; two more count together."
    return _made(coins, score, _named(x), _ranges(x, 0, 1), shape)


def nested(count: int, seed: int) -> Table:
    coins = np.random.default_rng(seed)
    x = coins.random((count, 5))
    kinds = words("bus car tram walk")
    kind = coins.integers(0, 4, count)
    inner = np.where(x[:, 1] > 0.5, x[:, 2] > 0.7, x[:, 2] < 0.4)
    outer = np.where(kind < 2, inner, np.where(kind == 2, x[:, 3] > 0.5, x[:, 0] < 0.3))
    shape = "Rules within rules: a kind says which number counts, and one number which end of it."
    columns = _named(x) | {"kind": np.array(kinds)[kind]}
    score = np.where(outer, 2.2, -2.2)
    return _made(coins, score, columns, _ranges(x, 0, 1) | {"kind": kinds}, shape)


def rings(count: int, seed: int) -> Table:
    coins = np.random.default_rng(seed)
    x = _numbers(coins, count, 5)
    far = np.hypot(x[:, 0], x[:, 1])
    score = 4 * np.cos(2.6 * far) + 0.7 * x[:, 2]
    shape = "Rings around a place in two numbers, and a little line."
    return _made(coins, score, _named(x), _ranges(x, -5, 5), shape)


def orders(count: int, seed: int) -> Table:
    coins = np.random.default_rng(seed)
    goods, lands = words("cloth oil salt wine wood"), words("Bern Genf Jura Uri Wallis Zug")
    good, land = coins.integers(0, 5, count), coins.integers(0, 6, count)
    x = _numbers(coins, count, 3)
    tilt = np.random.default_rng(11).normal(0, 1.6, (5, 6))
    score = tilt[good, land] + 0.8 * np.array([1, -1, 0, 1, -1])[good] * x[:, 0]
    columns = _named(x) | {"good": np.array(goods)[good], "land": np.array(lands)[land]}
    declared = _ranges(x, -5, 5) | {"good": goods, "land": lands}
    shape = "Each pair of a good and a land has an effect of its own; a slope depends on the good."
    return _made(coins, score, columns, declared, shape)


MORE: dict[str, Callable[[int, int], Table]] = {
    maker.__name__: maker for maker in (gates, nested, rings, orders)
} | REGISTERS


def rows_of(name: str, count: int, seed: int) -> tuple[Table, ConceptClass | None]:
    """Return a table by its name, and the class that its rule is known to be of, if any."""
    shape = SHAPES.get(name)
    if shape is not None:
        return shape.table(name, count, seed), shape.concept
    found: Any = MORE[name](count, seed) if name in MORE else load(name, count, seed)
    return found, None
