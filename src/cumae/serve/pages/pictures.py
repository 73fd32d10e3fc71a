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
DAYS = (0.1, 0.5, 0.9)  # of an axis, at which days are named
MOST_NAME = 30  # letters in a legend
TEN_MINUTES = 10
MOST_LOOKS = 4
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
        "Above 0 the last class becomes more likely, below 0 less likely. The band is what noise "
        "and chance leave open: two standard deviations to each side.",
        effect["column"][:60],
        "added to the log odds",
        series,
        wide,
        (low - room, high + room),
        ticks,
        _levels(low - room, high + room),
    )


SHARES = {"accuracy": "this model", "commonest": "always saying {always}"}
WORDS = {None: "missing", True: "yes", False: "no"}
Told = tuple[list[Series], Point, list[tuple[float, str]]]


def _lines(effect: dict[str, Any], numbers: Sequence[float | None], ends: Sequence[Point]) -> Told:
    inside = [place for place, one in enumerate(numbers) if one is not None]
    xs = [numbers[place] or 0.0 for place in inside]
    odds, band = effect["log_odds"], [ends[place] for place in inside]
    points = [(x, odds[place]) for x, place in zip(xs, inside, strict=True)]
    missing = [place for place, one in enumerate(numbers) if one is None]
    named = effect["column"][:MOST_NAME] if missing else ""
    series = [Series(named, points, 0, dots=False, band=band)]
    wide = (xs[0], xs[-1]) if xs[-1] > xs[0] else (xs[0] - 1, xs[0] + 1)
    if missing:
        own = odds[missing[0]]
        series.append(Series("missing", [(wide[0], own), (wide[1], own)], 1, dots=False))
    texts = {x: str(effect["values"][place]) for x, place in zip(xs, inside, strict=True)}
    is_date = isinstance(effect["values"][inside[0]], str)
    if not is_date:
        return series, wide, _levels(*wide)
    chosen = [xs[round(part * (len(xs) - 1))] for part in DAYS]
    return series, wide, [(x, texts[x][:10]) for x in dict.fromkeys(chosen)]


def _categories(effect: dict[str, Any], ends: Sequence[Point]) -> Told:
    odds = effect["log_odds"]
    order = list(range(len(odds)))
    if len(order) > MOST_BARS:  # those that matter most; the table has all
        order = sorted(sorted(order, key=lambda place: -abs(odds[place]))[:MOST_BARS])
    points = [(float(at), odds[place]) for at, place in enumerate(order)]
    series = [Series("", points, 0, line=False, band=[ends[place] for place in order])]
    letters = max(2, LETTERS // len(order))
    names = [effect["values"][place] for place in order]
    words = [_word(one) for one in names]
    ticks = [
        (float(at), one if len(one) <= letters else f"{one[: letters - 1]}\u2026")
        for at, one in enumerate(words)
    ]
    side = max(0.5, SIDE * len(order))
    return series, (-side, len(order) - 1 + side), ticks


def _word(value: Any) -> str:
    """Return a category as people write it."""
    if value is None or isinstance(value, bool):
        return WORDS[value]
    return f"{value:.10g}" if isinstance(value, float) else str(value)


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
        Series(name, sorted(points), look, line=look < len(groups) - 1 and _all_differ(points))
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


def _all_differ(points: Sequence[Point]) -> bool:
    """Tell whether no two points lie above each other, so that a line through them says more."""
    return len({x for x, _ in points}) == len(points)


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


def score_chart(found: dict[str, Any]) -> Chart:
    """Return how many answers of a published model are right, with intervals.

    Parameters
    ----------
    found : dict
        Its evaluation, as ``facts`` tells it.
    """
    shown = {one["name"]: one for one in found["figures"] if one["name"] in SHARES}
    bars = [(SHARES[name].format(always=found["always"]), one) for name, one in shown.items()]
    bars += [(one["name"], one) for one in found["groups"]][:MOST_BARS]
    letters = max(4, LETTERS // max(1, len(bars)))
    points = [(float(at), one["value"]) for at, (_, one) in enumerate(bars)]
    ends = [(one["low"], one["high"]) for _, one in bars]
    return Chart(
        "score",
        "Right answers",
        "How many of 100 answers are right, with an interval for each figure.",
        "",
        "of 100 answers",
        (Series("", points, line=False, band=ends),),
        (-0.5, len(bars) - 0.5),
        (0.0, 1.0),
        [
            (float(at), name if len(name) <= letters else f"{name[: letters - 1]}\u2026")
            for at, (name, _) in enumerate(bars)
        ],
        [(part / 100, f"{part}") for part in range(0, 101, 20)],
    )


def throughput_chart(minutes: Sequence[dict[str, Any]]) -> Chart:
    """Return rows answered a minute, over ten minutes or more.

    Parameters
    ----------
    minutes : sequence of dict
        For each minute its number and its rows, as ``operating`` tells them.
    """
    now = minutes[-1]["minute"]
    span = float(max(TEN_MINUTES, now - minutes[0]["minute"]))
    points = [(span - (now - one["minute"]), float(one["rows"])) for one in minutes]
    top = max(2.0, 1.1 * max(rows for _, rows in points))
    return Chart(
        "throughput",
        "Rows answered in each minute",
        "All models together, since this server began, for a day at most.",
        "minutes ago",
        "rows",
        (Series("", points, dots=len(points) <= 2 * TEN_MINUTES),),
        (0.0, span),
        (0.0, top),
        _ago(span),
        steps(top),
    )


def phases_chart(
    phases: dict[str, list[dict[str, Any]]], minutes: Sequence[dict[str, Any]]
) -> Chart | None:
    """Return the phases of oracles over time; None if there is no oracle.

    Parameters
    ----------
    phases : dict of str to list of dict
        For each oracle the phases that were seen to begin, as ``operating`` tells them.
    minutes : sequence of dict
        The minutes of the other chart.
    """
    now = minutes[-1]["minute"]
    span = float(max(TEN_MINUTES, now - minutes[0]["minute"]))
    known = [(name, found) for name, found in phases.items() if found][:MOST_LOOKS]
    if not known:
        return None
    series = []
    for look, (name, found) in enumerate(known):
        points = []
        for one, other in zip(found, [*found[1:], {"minute": now}], strict=True):
            ends = (max(0.0, span - (now - at["minute"])) for at in (one, other))
            points += [(x, float(one["phase"])) for x in ends]
        short = name if len(name) <= MOST_NAME // 2 else f"{name[: MOST_NAME // 2 - 1]}\u2026"
        series.append(Series(short, points, look, dots=False))
    top = 1.0 + max(one["phase"] for _, found in known for one in found)
    return Chart(
        "phases",
        "Phases of oracles",
        "In each phase the models learn anew from the questions of the one before.",
        "minutes ago",
        "phase",
        tuple(series),
        (0.0, span),
        (0.0, top),
        _ago(span),
        [(level, text) for level, text in steps(max(2.0, top)) if level == int(level)],
    )


def _ago(span: float) -> list[tuple[float, str]]:
    return [(span * part, f"{span * (1 - part):.0f}") for part in (0.0, 0.25, 0.5, 0.75, 1.0)]


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
        "time of a request, up to",
        "requests",
        (Series("", points, bars=True),),
        (-0.6, len(points) - 0.4),
        (0.0, top),
        [
            (float(at), "more" if one["seconds"] is None else f"{one['seconds']:g} s")
            for at, one in enumerate(times)
        ],
        steps(top),
    )
