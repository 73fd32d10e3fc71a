"""Charts of the facts on pages."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from typing import Any

from cumae.charts import Chart, Point, Series, steps

BAND = 2.0  # standard deviations
MOST_BARS = 12  # categories that are named below a chart
LETTERS = 60  # of all of them together
MOST_TICKS = 5
SIDE = 0.06  # of an axis, that is left free beside the first and the last category


def effect_chart(place: int, effect: dict[str, Any]) -> Chart:
    """Return what a column adds to the log odds, with a band of two standard deviations.

    Parameters
    ----------
    place : int
        Its place among the effects of the page.
    effect : dict
        As ``facts`` tells it.
    """
    ends = [
        (odds - BAND * spread, odds + BAND * spread)
        for odds, spread in zip(effect["log_odds"], effect["spread"], strict=True)
    ]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    room = 0.05 * max(high - low, 1e-9)
    numbers = [_number(value) for value in effect["values"]]
    is_line = len(numbers) > 2 and all(
        one is not None or value is None
        for one, value in zip(numbers, effect["values"], strict=True)
    )
    drawn = _lines(effect, numbers, ends) if is_line else _categories(effect, ends)
    series, wide, ticks = drawn
    return Chart(
        f"effect-{place}",
        effect["column"] if len(effect["column"]) <= 50 else f"{effect['column'][:47]}...",
        "Above 0 the answer is more often yes, below 0 less often. The band holds the truth about "
        "the model's own uncertainty in 95 of 100 cases.",
        effect["column"][:60],
        "added to the log odds",
        series,
        wide,
        (low - room, high + room),
        ticks,
        _levels(low - room, high + room),
    )


Told = tuple[list[Series], Point, list[tuple[float, str]]]


def _lines(effect: dict[str, Any], numbers: Sequence[float | None], ends: Sequence[Point]) -> Told:
    inside = [place for place, one in enumerate(numbers) if one is not None]
    xs = [numbers[place] or 0.0 for place in inside]
    odds, band = effect["log_odds"], [ends[place] for place in inside]
    points = [(x, odds[place]) for x, place in zip(xs, inside, strict=True)]
    series = [Series("effect", points, 0, dots=False, band=band)]
    wide = (xs[0], xs[-1]) if xs[-1] > xs[0] else (xs[0] - 1, xs[0] + 1)
    missing = [place for place, one in enumerate(numbers) if one is None]
    if missing:
        own = odds[missing[0]]
        series.append(Series("missing", [(wide[0], own), (wide[1], own)], 1, dots=False))
    texts = {x: str(effect["values"][place]) for x, place in zip(xs, inside, strict=True)}
    is_date = isinstance(effect["values"][inside[0]], str)
    chosen = [xs[round(part * (len(xs) - 1) / 4)] for part in range(MOST_TICKS)]
    ticks = [
        (x, texts[x][:10] if is_date else f"{x:g}") for x in dict.fromkeys(chosen[:: 1 + is_date])
    ]
    return series, wide, ticks


def _categories(effect: dict[str, Any], ends: Sequence[Point]) -> Told:
    odds = effect["log_odds"]
    order = list(range(len(odds)))
    if len(order) > MOST_BARS:  # those that matter most; the table has all
        order = sorted(sorted(order, key=lambda place: -abs(odds[place]))[:MOST_BARS])
    points = [(float(at), odds[place]) for at, place in enumerate(order)]
    series = [Series("effect", points, 0, line=False, band=[ends[place] for place in order])]
    letters = max(2, LETTERS // len(order))
    names = [effect["values"][place] for place in order]
    words = ["missing" if one is None else str(one) for one in names]
    ticks = [
        (float(at), one if len(one) <= letters else f"{one[: letters - 1]}\u2026")
        for at, one in enumerate(words)
    ]
    side = max(0.5, SIDE * len(order))
    return series, (-side, len(order) - 1 + side), ticks


def _number(value: Any) -> float | None:
    """Return a value of an axis; None for a category."""
    if isinstance(value, str):
        try:
            return float(dt.date.fromisoformat(value).toordinal())
        except ValueError:
            return None
    return None if value is None else float(value)


def _levels(low: float, high: float) -> list[tuple[float, str]]:
    """Return round numbers between two ends, with 0 among them if it lies there."""
    size = 10 ** math.floor(math.log10((high - low) / 2))
    size *= next(times for times in (1, 2, 5, 10) if (high - low) / (size * times) < 6)
    first, last = math.ceil(low / size), math.floor(high / size)
    return [(size * place, f"{size * place:.4g}") for place in range(first, last + 1)]


def attack_chart(groups: Sequence[tuple[str, Sequence[Point]]]) -> Chart:
    """Return epsilon that was proven against the one that is claimed.

    Parameters
    ----------
    groups : sequence of (str, sequence of pairs of float)
        Names, and for each what was claimed and what was proven. The last group is that of planted
        bugs.
    """
    series = [
        Series(name, sorted(points), look, line=look < len(groups) - 1)
        for look, (name, points) in enumerate(groups)
        if points
    ]
    points = [point for one in series for point in one.points]
    right, top = (1.05 * max(column) for column in zip(*points, strict=True))
    top = max(right, top)
    series.append(Series("claimed", ((0.0, 0.0), (right, right)), 3, dots=False))
    return Chart(
        "attack",
        "Claimed against proven epsilon",
        "What an attacker could prove of the code lies below the line of the claims. Above the "
        "line lie planted bugs, which the same attacks catch.",
        "epsilon that is claimed",
        "epsilon that is proven",
        tuple(series),
        (0.0, right),
        (0.0, top),
        steps(right),
        steps(top),
    )


def audit_chart(attacks: Sequence[dict[str, Any]]) -> Chart | None:
    """Return the attacks of an audit as a chart; None if none has a finite epsilon."""
    finite = [one for one in attacks if one["claimed"] and one["proven"] is not None]
    if not finite:
        return None
    sides = [
        (
            name,
            [(one["claimed"], one["proven"]) for one in finite if bool(one["planted"]) == is_bug],
        )
        for name, is_bug in (("code", False), ("planted bugs", True))
    ]
    return attack_chart(sides)


def throughput_chart(samples: Sequence[dict[str, Any]]) -> Chart | None:
    """Return rows answered a minute; None before there are two minutes.

    Parameters
    ----------
    samples : sequence of dict
        For each minute its start and its rows, as ``operating`` tells them.
    """
    if len(samples) < 2:
        return None
    first, last = samples[0]["minute"], samples[-1]["minute"]
    points = [((one["minute"] - first) / 1.0, float(one["rows"])) for one in samples]
    top = max(1.0, 1.1 * max(rows for _, rows in points))
    span = max(1.0, float(last - first))
    return Chart(
        "throughput",
        "Rows answered in each minute",
        "All models together, since this server began, for a day at most.",
        "minutes ago",
        "rows",
        (Series("rows", points, dots=False),),
        (0.0, span),
        (0.0, top),
        [(span * part, f"{span * (1 - part):.0f}") for part in (0.0, 0.25, 0.5, 0.75, 1.0)],
        steps(top),
    )


def times_chart(times: Sequence[dict[str, Any]]) -> Chart:
    """Return how many requests took how long, in coarse buckets.

    Parameters
    ----------
    times : sequence of dict
        For each bucket its name and how many requests fell into it.
    """
    points = [(float(at), float(one["requests"])) for at, one in enumerate(times)]
    top = max(2.0, 1.1 * max(number for _, number in points))
    return Chart(
        "times",
        "How long requests took",
        "Requests since this server began, in coarse buckets: finer ones could tell about rows.",
        "time of a request",
        "requests",
        (Series("requests", points, bars=True),),
        (-0.6, len(points) - 0.4),
        (0.0, top),
        [(float(at), one["bound"]) for at, one in enumerate(times)],
        steps(top),
    )
