"""Made-up tables of known shape: a seed draws rows; the rule behind labels never changes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from _table import Floats, Table, words

ROWS = 50_000  # of a made-up table, if nothing else is said
DAY = dt.date(2015, 1, 1)
LAST_DAY = dt.date(2025, 1, 1)
CODES = [f"{letter}{number:02d}" for letter in "ABC" for number in range(100)]


def _numbers(coins: Any, count: int, width: int, together: float = 0.0) -> Floats:
    """Return standard normal columns; each two of them are correlated by ``together``."""
    common = coins.standard_normal((count, 1))
    own = coins.standard_normal((count, width))
    mixed = np.sqrt(together) * common + np.sqrt(1 - together) * own
    return np.asarray(np.clip(mixed, -5, 5))


def _named(values: Floats, letter: str = "x") -> dict[str, Any]:
    return {f"{letter}{place}": column for place, column in enumerate(values.T)}


def _ranges(values: Floats, low: float, high: float, letter: str = "x") -> dict[str, Any]:
    return dict.fromkeys(_named(values, letter), (low, high))


def _effects(seed: int, count: int, size: float) -> Floats:
    """Return fixed effects of the values of a column, the same for every seed of the rows."""
    return size * np.random.default_rng(seed).standard_normal(count)


def _falling(count: int) -> Floats:
    """Return chances of which the first are the largest, as codes in hospitals have."""
    weights = 1 / (5.0 + np.arange(count))
    return np.asarray(weights / weights.sum())


def _missing(coins: Any, values: Any, share: float) -> Floats:
    """Return the values as floats, a random share of them missing."""
    return np.where(coins.random(len(values)) < share, np.nan, values)


def _or(values: Floats, other: float) -> Floats:
    """Return the values with ``other`` where they are missing, for scores of what can be seen."""
    return np.where(np.isnan(values), other, values)


def _even(*values: Any) -> Floats:
    """Return 1 where the whole numbers have an even sum, else -1."""
    return np.asarray(1.0 - 2.0 * (np.sum([np.floor(one) for one in values], axis=0) % 2))


def _made(
    coins: Any,
    score: Floats,
    columns: dict[str, Any],
    declared: dict[str, Any],
    shape: str,
    guesses: dict[str, Any] | None = None,
) -> Table:
    """Draw labels by log odds; for several classes these have a column for each class."""
    odds = score if score.ndim == 2 else np.column_stack([np.zeros(len(score)), score])
    weights = np.exp(odds - odds.max(axis=1, keepdims=True))
    chances = weights / weights.sum(axis=1, keepdims=True)
    labels = (coins.random((len(odds), 1)) > chances.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return Table(
        pd.DataFrame(columns),
        labels.astype(np.int64),
        declared,
        shape=shape,
        classes=tuple(range(odds.shape[1])),
        chances=chances,
        guesses=guesses or {},
    )


def linear(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    x = _numbers(coins, count, 8, 0.3)
    score = x @ np.array([1.6, -1.3, 1.0, -0.8, 0.6, 0.4, 0.0, 0.0])
    shape = "Log odds are linear in eight correlated numbers, of which two say nothing."
    return _made(coins, score, _named(x), _ranges(x, -5, 5), shape)


def poll(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    answers = np.clip(np.round(3 + _numbers(coins, count, 8, 0.3)), 1, 5)
    regions = words("north east south west centre abroad")
    region = coins.integers(0, 6, count)
    member = coins.random(count) < 0.4
    income = _missing(coins, np.clip(coins.normal(50, 18, count), 0, 120), 0.2)
    score = (answers - 3) @ np.array([0.9, -0.7, 0.6, 0.5, -0.4, 0.3, 0.0, 0.0]) + 0.8 * member
    score += np.array([0.6, 0.2, -0.2, -0.6, 0.9, -0.9])[region] + 0.04 * (_or(income, 35) - 50)
    columns = _named(answers, "answer")
    columns |= {"region": np.array(regions)[region], "member": member, "income": income}
    declared: dict[str, Any] = dict.fromkeys(_named(answers, "answer"), (1, 5, 1))
    declared |= {"region": regions, "income": (0, 120, "missing")}
    shape = "Log odds are linear in answers from 1 to 5, a region, a truth, and incomes with gaps."
    return _made(coins, score, columns, declared, shape)


def additive(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    x = coins.random((count, 7))
    score = 1.8 * np.sin(2 * np.pi * x[:, 0]) + 12 * (x[:, 1] - 0.5) ** 2 - 1
    score += 3 * np.exp(-6 * x[:, 2]) - 0.5 - 5 * np.abs(x[:, 3] - 0.4) + 1.3 + 2 * (x[:, 4] - 0.5)
    shape = "Log odds are a sum of smooth curves of five numbers; two more say nothing."
    return _made(coins, score, _named(x), _ranges(x, 0, 1), shape)


def curves(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    z = _numbers(coins, count, 4, 0.4)
    age, dose = 50 + 12 * z[:, 0], np.exp(0.8 * z[:, 1])
    heat, weight = 15 + 8 * z[:, 2], 75 + 14 * z[:, 3]
    hour = coins.integers(0, 24, count)
    dose, heat = _missing(coins, dose, 0.1), _missing(coins, heat, 0.1)
    score = 2.2 * np.exp(-(((age - 55) / 9) ** 2)) - 1.6 + 1.2 * np.log1p(_or(dose, 1))
    score += 1.3 * np.cos(2 * np.pi * (hour - 3) / 24) - 0.16 * np.abs(_or(heat, 8) - 18) + 0.6
    columns = {"age": age, "dose": dose, "heat": heat, "weight": weight, "hour": hour}
    declared = {"age": (0, 110), "dose": (0, 60, "missing"), "heat": (-30, 60, "missing")}
    declared |= {"weight": (0, 150), "hour": (0, 23, 1)}
    shape = "Log odds are a sum of a hump, a saturation, a daily wave and a peak, with gaps."
    return _made(coins, score, columns, declared, shape)


def thresholds(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    x = 100 * coins.random((count, 7))
    score = 1.8 * (x[:, 0] > 37) - 1.8 * (x[:, 0] > 71) + 1.5 * (x[:, 1] > 62) - 0.4
    score += 1.5 * (x[:, 2] < 18) - 1.5 * (x[:, 3] > 50) + 1.2 * (x[:, 4] > 85) - 0.2
    shape = "Log odds are a sum of steps of five numbers, one of them up and down again."
    return _made(coins, score, _named(x), _ranges(x, 0, 100), shape)


def tariff(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    z = _numbers(coins, count, 2, 0.5)
    spent, years = np.exp(4 + z[:, 0]), np.clip(np.round(12 + 6 * z[:, 1]), 0, 40)
    claims, town = coins.poisson(0.7, count), coins.integers(0, 5, count)
    towns = words("Aosta Bari Como Enna Lecce")
    score = 1.4 * (spent > 40) + 1.2 * (spent > 120) - 1.8 * (years >= 10) - 0.9 * (years >= 20)
    score += 1.6 * (claims >= 1) + 0.8 * (claims >= 3) + 1.4 * (town == 2) - 1.4
    columns = {"spent": spent, "years": years, "claims": claims, "town": np.array(towns)[town]}
    declared = {"spent": (0, 8_000), "years": (0, 40, 1), "claims": (0, 8, 1), "town": towns}
    shape = "Log odds are a sum of steps of an amount with a tail, of counts, and of a town."
    return _made(coins, score, columns, declared, shape)


def pairs(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    x = _numbers(coins, count, 8)
    score = 2.2 * x[:, 0] * x[:, 1] - 1.6 * x[:, 2] * x[:, 3] + 0.5 * x[:, 4]
    shape = "Log odds are products of two pairs of numbers, and a little line."
    return _made(coins, score, _named(x), _ranges(x, -5, 5), shape)


def switches(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    x = _numbers(coins, count, 5, 0.2)
    flag, kinds = coins.random(count) < 0.5, words("ash birch cedar elm")
    kind = coins.integers(0, 4, count)
    score = 1.6 * x[:, 0] * np.where(flag, 1, -1) + np.array([2.0, 0.7, -0.7, -2.0])[kind] * x[:, 1]
    score += 2.5 * (np.abs(x[:, 2] - x[:, 3]) < 0.6) - 1.0
    columns = _named(x) | {"flag": flag, "kind": np.array(kinds)[kind]}
    shape = "A truth and a kind turn the slopes of two numbers; two more count if they are close."
    return _made(coins, score, columns, _ranges(x, -5, 5) | {"kind": kinds}, shape)


def triples(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    x = _numbers(coins, count, 7)
    score = 14 * np.prod(np.tanh(x[:, :3]), axis=1) + 0.6 * x[:, 3]
    shape = "Log odds are a product of three numbers, and a little line."
    return _made(coins, score, _named(x), _ranges(x, -5, 5), shape)


def parity(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    bits = coins.integers(0, 2, (count, 4)).astype(np.float64)
    x = _numbers(coins, count, 4)
    score = 1.8 * _even(*bits[:, :3].T) + 0.8 * x[:, 0] - 0.5 * x[:, 1]
    columns = _named(bits, "bit") | _named(x)
    declared = dict.fromkeys(_named(bits, "bit"), (0, 1, 1)) | _ranges(x, -5, 5)
    shape = "Whether three of four bits have an even sum, and a little line."
    return _made(coins, score, columns, declared, shape)


def checkerboard(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    x = 4 * coins.random((count, 6))
    score = 2.5 * _even(x[:, 0], x[:, 1]) + 0.4 * (x[:, 2] - 2)
    shape = "A board of four by four fields over two numbers, and a little line."
    return _made(coins, score, _named(x), _ranges(x, 0, 4), shape)


def diamonds(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    x = _numbers(coins, count, 5, 0.3)
    suits = words("clubs hearts spades")
    suit = coins.integers(0, 3, count)
    score = 2.5 * _even(0.7 * (x[:, 0] + x[:, 1]) + 0.5, 0.7 * (x[:, 0] - x[:, 1]) + 0.5)
    score += np.array([-0.6, 0.0, 0.6])[suit]
    columns = _named(x) | {"suit": np.array(suits)[suit]}
    shape = "A board that is turned by 45 degrees, over two correlated numbers, and a suit."
    return _made(coins, score, columns, _ranges(x, -5, 5) | {"suit": suits}, shape)


def rare(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    x = _numbers(coins, count, 8, 0.2)
    score = x @ np.array([1.1, 0.9, -0.7, 0.5, 0.0, 0.0, 0.0, 0.0]) + 1.5 * (x[:, 4] > 1) - 5.19
    shape = "One row in 33 is of class 1; log odds are linear, with one step."
    return _made(coins, score, _named(x), _ranges(x, -5, 5), shape)


def fraud(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    amount, hour = coins.lognormal(3, 1.2, count), coins.integers(0, 24, count)
    lands = [f"land {number}" for number in range(12)]
    land = coins.choice(12, count, p=_falling(12))
    age = _missing(coins, coins.integers(18, 90, count), 0.05)
    night = (hour < 6) | (hour > 22)
    score = -6.36 + 1.5 * (land == 7) + 0.9 * (np.log(amount) - 3) * (1 + night) + 1.2 * night
    score += 1.0 * (_or(age, 50) > 70) + 1.5 * ((land > 4) & (amount > 60)) + _or(age * 0, 1.5)
    columns = {"amount": amount, "hour": hour, "land": np.array(lands)[land], "age": age}
    declared = {"amount": (0, 20_000), "hour": (0, 23, 1), "land": lands}
    declared |= {"age": (18, 90, "missing")}
    shape = "One row in 33 is of class 1: large amounts, above all at night and from some lands."
    return _made(coins, score, columns, declared, shape)


def categories(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    shops = [f"shop {number}" for number in range(60)]
    shop = coins.choice(60, count, p=_falling(60))
    code = coins.choice(300, count, p=_falling(300))
    x = _numbers(coins, count, 3)
    score = _effects(1, 60, 1.2)[shop] + _effects(2, 300, 1.2)[code] + 0.8 * x[:, 0] - 0.2
    columns = _named(x) | {"shop": np.array(shops)[shop], "code": np.array(CODES)[code]}
    declared = _ranges(x, -5, 5) | {"shop": shops, "code": CODES}
    shape = "Each of 60 shops and 300 codes has its own effect; beside them a line."
    return _made(coins, score, columns, declared, shape)


def depots(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    places = [f"place {number}" for number in range(80)]
    parts = [f"part {number}" for number in range(400)]
    place = coins.choice(80, count, p=_falling(80))
    part = coins.choice(400, count, p=_falling(400))
    unknown = coins.random(count) < 0.1
    load, days = coins.gamma(2, 10, count), coins.integers(0, 3_000, count)
    score = np.where(unknown, 0.5, _effects(3, 80, 1.3)[place]) + _effects(4, 400, 0.9)[part]
    score += 0.06 * (load - 20) * np.where(part % 4 == 0, 1.5, 0.5) - 0.0005 * (days - 1_500)
    columns = {
        "place": pd.Series(np.array(places, object)[place]).mask(unknown, None),
        "part": np.array(parts)[part],
        "load": load,
        "made": pd.Timestamp(DAY) + pd.to_timedelta(days, unit="D"),
    }
    declared = {"place": [*places, None], "part": parts, "load": (0, 200), "made": (DAY, LAST_DAY)}
    shape = "80 places with gaps and 400 parts have effects; some parts change a slope; dates."
    return _made(coins, score, columns, declared, shape)


def tails(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    z = _numbers(coins, count, 3, 0.3)
    savings, debts = np.exp(7 + 2 * z[:, 0]), np.exp(5 + 2.5 * z[:, 1])
    drift = np.clip(coins.standard_cauchy(count), -1e5, 1e5)
    waits = coins.pareto(1.0, count)
    score = 0.6 * (np.log(savings) - 7) - 0.45 * (np.log(debts) - 5) + 1.3 * np.arctan(drift)
    score += 1.5 * (waits > 2) - 0.5
    columns = {"savings": savings, "debts": debts, "drift": drift, "waits": waits, "age": z[:, 2]}
    declared = {"savings": (0, 1e8), "drift": (-1e5, 1e5), "age": (-5, 5)}
    shape = "Lognormal, Cauchy and Pareto columns, two of them with wide ranges and two open."
    guesses = {"debts": (0, 1e8), "waits": (0, 1e5)}
    return _made(coins, score, columns, declared, shape, guesses)


def wealth(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    z = _numbers(coins, count, 3, 0.5)
    income, assets = np.exp(10 + 0.9 * z[:, 0]), np.exp(11 + 2.2 * z[:, 1])
    gain = np.clip(1_000 * coins.standard_t(1.5, count), -1e8, 1e8)
    assets = _missing(coins, assets, 0.15)
    heirs, employed = coins.poisson(1.2, count), coins.random(count) < 0.6
    score = 1.2 * (np.log(income) - 10) + 0.4 * (np.log(_or(assets, 2e4)) - 11)
    score += 1.2 * np.tanh(gain / 1_500) - 0.4 * heirs + 0.8 * employed
    columns = {"income": income, "assets": assets, "gain": gain}
    columns |= {"heirs": heirs, "employed": employed}
    declared = {"assets": ("missing",), "heirs": (0, 12, 1)}
    shape = "Amounts with heavy tails whose ranges are all open, some missing, beside small ones."
    guesses = {"income": (0, 1e8), "assets": (0, 1e9, "missing"), "gain": (-1e8, 1e8)}
    return _made(coins, score, columns, declared, shape, guesses)


def noise(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    x = _numbers(coins, count, 60)
    score = 1.6 * x[:, 7] - 1.2 * x[:, 19] + 1.0 * x[:, 31] + 1.5 * np.sin(2 * x[:, 43])
    score += 1.5 * (np.abs(x[:, 55]) > 1) - 0.5
    shape = "55 of 60 columns are noise; of the others three are linear and two are curved."
    return _made(coins, score, _named(x), _ranges(x, -5, 5), shape)


def sensors(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    x = np.hstack([_numbers(coins, count, 6, 0.6) for _ in range(10)])
    score = 1.5 * x[:, 2] + 1.4 * x[:, 9] * x[:, 14] - 1.2 * (x[:, 21] > 0.5) + 0.4 - x[:, 40]
    x[:, 50:] = np.round(x[:, 50:])
    shape = "60 columns in ten correlated blocks; five matter, two of them as a product."
    return _made(coins, score, _named(x), _ranges(x, -5, 5), shape)


def records(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    fixed = np.random.default_rng(5)
    hidden = coins.standard_normal((count, 4))
    loads, shares = 0.5 * fixed.standard_normal((4, 36)), fixed.uniform(-1.6, 0.8, 36)
    marks = (hidden @ loads + coins.standard_normal((count, 36)) < shares).astype(np.float64)
    effects = fixed.standard_normal(36) * (fixed.random(36) < 0.6)
    score = (marks - marks.mean(axis=0)) @ effects
    columns, declared = _named(marks, "mark"), _ranges(marks, 0, 1, "mark")
    for place, size in enumerate((3, 4, 4, 5, 6, 7, 8)):
        lean = hidden[:, place % 4] + coins.standard_normal(count)
        kind = np.digitize(lean, np.linspace(-1.6, 1.6, size - 1))
        names = [f"kind {letter}" for letter in "abcdefgh"[:size]]
        columns[f"kind{place}"], declared[f"kind{place}"] = np.array(names)[kind], names
        score = score + _effects(10 + place, size, 0.7)[kind]
    score = score + 1.5 * (marks[:, 0] * marks[:, 1] - 0.2) - 1.2 * marks[:, 2] * hidden[:, 0]
    shape = "36 marks of 0 and 1, whose step is not declared, and seven kinds of 3 to 8 values."
    return _made(coins, score - 0.3, columns, declared, shape)


def segments(count: int = ROWS, seed: int = 0) -> Table:
    coins = np.random.default_rng(seed)
    x = _numbers(coins, count, 6, 0.2)
    kinds = words("alder beech oak")
    kind = coins.integers(0, 3, count)
    score = np.column_stack(
        [
            1.5 * x[:, 0],
            1.5 * x[:, 1] - x[:, 0],
            1.5 * x[:, 2] * x[:, 3],
            np.array([-1.0, 0.0, 1.5])[kind] + x[:, 4],
        ]
    )
    columns = _named(x) | {"kind": np.array(kinds)[kind]}
    shape = "Four classes: two by lines, one by a product of two numbers, one by a kind and a line."
    return _made(coins, 1.3 * score, columns, _ranges(x, -5, 5) | {"kind": kinds}, shape)


def hospital(count: int = 6_000, seed: int = 0) -> Table:
    """A made-up hospital: dates, missing numbers, truth, a code of 300 values, an open range.

    The label asks who comes back within a month. Nobody declared the range of ``protein``.
    """
    coins = np.random.default_rng(seed)
    days = (LAST_DAY - DAY).days
    age = coins.integers(0, 100, count)
    protein = coins.lognormal(2.0, 1.0, count)
    pressure = coins.normal(120 + 0.3 * age, 15)
    code = coins.choice(len(CODES), count, p=_falling(len(CODES)))
    smokes = coins.random(count) < 0.3
    admitted = coins.integers(0, days, count)
    score = 0.05 * (age - 50) + 0.8 * (np.log(protein) - 2) + smokes + 0.5 * (code % 7 - 3)
    shape = "A hospital: dates, missing numbers, truth, a code of 300 values, an open range."
    chance = 1 / (1 + np.exp(-1.5 * score))
    labels = coins.random(count) < chance
    rows = pd.DataFrame(
        {
            "age": age,
            "admitted": pd.Timestamp(DAY) + pd.to_timedelta(admitted, unit="D"),
            "pressure": np.where(coins.random(count) < 0.15, np.nan, pressure),
            "smokes": smokes,
            "code": np.array(CODES)[code],
            "protein": protein,
        }
    )
    declared = {
        "age": (0, 110),
        "admitted": (DAY, LAST_DAY),
        "pressure": (50, 250, "missing"),
        "code": CODES,
    }
    return Table(
        rows,
        labels.astype(np.int64),
        declared,
        "hospital",
        shape,
        chances=np.column_stack([1 - chance, chance]),
        guesses={"protein": (0, 1_000)},
    )


MADE_UP: dict[str, Callable[[int, int], Table]] = {
    maker.__name__: maker
    for maker in (
        *(hospital, linear, additive, thresholds, pairs, triples, checkerboard, rare, categories),
        *(tails, noise, segments, poll, curves, tariff, switches, parity, diamonds, fraud, depots),
        *(wealth, sensors, records),
    )
}
