"""Made-up registers for rules of a public sample: many columns, of which about a third matter.

What a register's columns hold, which of them matter and how, is drawn once for each number. Numbers
are even, skewed, counts, or mostly zero; other columns are categories of words, and truths. Most
scores are sums; in some registers two columns matter together as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from _made_up_tables import _made
from _table import Floats, Table
from scipy.special import expit, ndtr

KINDS = {"even": 0.25, "skewed": 0.2, "count": 0.15, "words": 0.25, "truth": 0.1, "zeros": 0.05}
MATTER = 0.35  # share of columns
# Of 3 and 7, only one column matters, and a score may need two.
NUMBERS = (0, 1, 2, 4, 5, 6, 8, 9, 10, 11, 12, 13)
SCALED = 20_000  # rows by which scores get their mean and spread


def _number(law: Any, kind: str, hidden: Floats) -> tuple[Floats, Any, Floats]:
    """Return a column of numbers, its range, and its effect on the score."""
    shape = law.choice(["line", "line", "step", "hump", "root"])
    cut, sign = law.normal(0, 0.7), law.choice([-1, 1])
    declared: Any
    if kind == "even":
        values, declared, seen = np.clip(hidden, -5, 5), (-5, 5), hidden
    elif kind == "skewed":
        values, declared, seen = np.clip(np.exp(3 + 1.1 * hidden), 0, 5_000), (0, 5_000), hidden
    elif kind == "count":
        values, declared = np.clip(np.floor(np.exp(0.8 + 0.7 * hidden)), 0, 15), (0, 15, 1)
        seen = (np.log1p(values) - 1.1) / 0.6
    else:
        above = hidden > 0.8
        values, declared = np.clip(np.where(above, np.exp(5 + hidden), 0), 0, 10_000), (0, 10_000)
        seen = np.where(above, hidden, -0.3)
    effects = {
        "line": seen,
        "step": 1.6 * (seen > cut),
        "hump": 1.8 * np.exp(-((seen - cut) ** 2)),
        "root": np.sign(seen) * np.sqrt(np.abs(seen)),
    }
    return values, declared, sign * effects[shape]


def _words(law: Any, place: int, hidden: Floats) -> tuple[Any, Any, Floats]:
    """Return a column of categories, some of them seldom, and its effect."""
    count = int(law.integers(3, 16))
    ends = np.cumsum(law.dirichlet(np.full(count, 1.5)))
    code = np.minimum(np.searchsorted(ends, ndtr(hidden)), count - 1)
    names = [f"word {place} {number}" for number in range(count)]
    return np.array(names)[code], names, law.normal(0, 1, count)[code]


def _parts(law: Any, coins: Any, count: int) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Return columns, what is declared about them, and the effects of those that matter."""
    width, together = int(law.integers(10, 26)), law.choice([0.0, 0.2, 0.4])
    common = coins.standard_normal(count)
    columns: dict[str, Any] = {}
    declared: dict[str, Any] = {}
    effects = []
    for place in range(width):
        name, kind = f"c{place}", str(law.choice(list(KINDS), p=list(KINDS.values())))
        own = coins.standard_normal(count)
        hidden = np.sqrt(together) * common + np.sqrt(1 - together) * own
        matters = law.random() < MATTER
        if kind == "truth":
            columns[name] = coins.random(count) < law.uniform(0.1, 0.6)
            effect = 1.5 * columns[name]
        elif kind == "words":
            columns[name], declared[name], effect = _words(law, place, hidden)
        else:
            columns[name], declared[name], effect = _number(law, kind, hidden)
        strength = law.exponential(1.0)
        if matters:
            effects.append(strength * effect)
    return columns, declared, effects


def _score(law: Any, effects: Any) -> tuple[Floats, float, float]:
    """Return a score, how large it should be, and the share of class 1."""
    size, share = law.uniform(1.0, 2.6), law.uniform(0.15, 0.5)
    score = np.sum(effects, axis=0)
    if law.random() < 0.4:
        score = score + 0.6 * effects[0] * effects[1]
    return score, size, share


def _law(number: int) -> Any:
    """Return coins that decide what a register is; each reader must throw the same ones.

    So nothing that is drawn from them may depend on the number of rows.
    """
    return np.random.default_rng(1_000 + number)


@cache
def _scale(number: int) -> tuple[float, float]:
    """Return what scores are multiplied by, and what is added to them then."""
    law = _law(number)
    _, _, effects = _parts(law, np.random.default_rng(0), SCALED)
    score, size, share = _score(law, effects)
    factor = size / float(score.std())
    low, high = -100.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if expit(factor * score + middle).mean() < share else (low, middle)
        )
    return factor, low


def register(number: int, count: int, seed: int) -> Table:
    law, coins = _law(number), np.random.default_rng(seed)
    columns, declared, effects = _parts(law, coins, count)
    factor, added = _scale(number)
    score = factor * _score(law, effects)[0] + added
    shape = f"A register of {len(columns)} columns, of which {len(effects)} matter."
    return _made(coins, score, columns, declared, shape)


REGISTERS: dict[str, Callable[[int, int], Table]] = {
    f"register {number}": partial(register, number) for number in NUMBERS
}
