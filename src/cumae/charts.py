"""Small charts as SVG, written by hand: no library to install, and nothing from outside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

Point = tuple[float, float]

NAMESPACE = "http://www.w3.org/2000/svg"
WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 68, 28, 64, 52  # room for numbers, titles and the legend
LETTER = 6.9  # the width of a letter, about

# Colours for light and dark; all have a contrast of 4.5 or more against the background.
STYLE = """\
:root { --paper: #ffffff; --ink: #1c2430; --faint: #5a6572; --grid: #dde2e8;
  --first: #0b57b0; --second: #a8410a; --third: #146c43; }
@media (prefers-color-scheme: dark) { :root { --paper: #13181f; --ink: #e8ebef; --faint: #a3aebb;
  --grid: #303945; --first: #7ab8ff; --second: #ffab70; --third: #6bd6a2; } }
.chart text { fill: var(--ink); font: 13px system-ui, sans-serif; }
.chart .name { font-weight: 600; font-size: 15px; }
.chart .grid { stroke: var(--grid); stroke-width: 1; }
.chart .mark { stroke: var(--faint); stroke-width: 1; stroke-dasharray: 2 3; }
.chart .note { fill: var(--faint); font-size: 12px; }
.chart .line { fill: none; stroke-width: 2.5; }
.chart .c0 { stroke: var(--first); } .chart .c1 { stroke: var(--second); }
.chart .c2 { stroke: var(--third); } .chart .c3 { stroke: var(--faint); }
.chart .d0 { fill: var(--first); } .chart .d1 { fill: var(--second); }
.chart .d2 { fill: var(--third); } .chart .d3 { fill: var(--faint); }
.chart .paper { fill: var(--paper); }
.chart .band { stroke: none; opacity: .2; }
"""

DASHES = ("", "7 4", "2 3", "10 3 2 3")  # colour is never the only difference


@dataclass(frozen=True)
class Series:
    """Points that belong together.

    Parameters
    ----------
    name : str
        What the legend says; empty for a series that is not in it.
    points : sequence of pairs of float
        The points, from left to right.
    look : {0, 1, 2, 3}
        Which colour, dashes and shape it has; the same thing looks alike in all charts.
    line : bool
        Whether they are joined.
    dots : bool
        Whether each is shown.
    band : sequence of pairs of float
        The lowest and the highest likely value at each point: an area around a line, else a stroke
        through each dot. Empty for none.
    bars : bool
        Whether each point is a bar from the lower axis instead.
    """

    name: str
    points: Sequence[Point]
    look: int = 0
    line: bool = True
    dots: bool = True
    band: Sequence[Point] = ()
    bars: bool = False


@dataclass(frozen=True)
class Chart:
    """Series over two axes.

    Parameters
    ----------
    key : str
        A short name that no other chart of the page has.
    title, description : str
        What it shows, in a few words and in one or two sentences.
    across, up : str
        What the axes measure.
    series : sequence of Series
        The first one lies on top of the others.
    wide, high : pair of float
        The smallest and the largest value of each axis.
    ticks, levels : sequence of pairs of a float and a str
        Where numbers stand at each axis, and which.
    logarithmic : {"", "x", "xy"}
        Which axes are logarithmic.
    marks : sequence of pairs of a float and a str
        Places on the lower axis that are marked by a line, with a word.
    """

    key: str
    title: str
    description: str
    across: str
    up: str
    series: Sequence[Series]
    wide: Point
    high: Point
    ticks: Sequence[tuple[float, str]]
    levels: Sequence[tuple[float, str]]
    logarithmic: Literal["", "x", "xy"] = ""
    marks: Sequence[tuple[float, str]] = ()

    def x(self, value: float) -> float:
        """Return where a value lies from the left."""
        return LEFT + _share(value, self.wide, "x" in self.logarithmic) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Return where a value lies from the top."""
        inside = HEIGHT - TOP - BOTTOM
        return HEIGHT - BOTTOM - _share(value, self.high, "y" in self.logarithmic) * inside


def _share(value: float, ends: Point, logarithmic: bool) -> float:
    low, high = ends
    if logarithmic:
        low, high, value = math.log(low), math.log(high), math.log(max(value, low))
    return min(1.0, max(0.0, (value - low) / (high - low)))


def svg(chart: Chart, more: str = "") -> str:
    """Return a chart as an element for a page.

    Parameters
    ----------
    chart : Chart
        The chart.
    more : str
        Further attributes of the element.
    """
    title, described = f"{chart.key}-title", f"{chart.key}-description"
    named = f'role="img" {more}aria-labelledby="{title} {described}"'
    parts = [
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" {named} xmlns="{NAMESPACE}">',
        f'<title id="{title}">{escape(chart.title)}</title>',
        f'<desc id="{described}">{escape(chart.description)}</desc>',
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        _text(LEFT, 20, chart.title, "name", "start"),
        *_axes(chart),
        *_legend(chart),
        *(_drawn(chart, series) for series in reversed(chart.series)),
        "</svg>",
    ]
    return "\n".join(parts)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "middle") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{named} text-anchor="{anchor}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends}/>'


def _axes(chart: Chart) -> list[str]:
    low, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    found = [
        _text((LEFT + right) / 2, HEIGHT - 10, chart.across),
        f'<g transform="rotate(-90 16 {(TOP + low) / 2:.1f})">'
        + _text(16, (TOP + low) / 2, chart.up)
        + "</g>",
    ]
    for value, text in chart.levels:
        found.append(_line(LEFT, chart.y(value), right, chart.y(value), "grid"))
        found.append(_text(LEFT - 8, chart.y(value) + 4, text, anchor="end"))
    for value, text in chart.ticks:
        found.append(_line(chart.x(value), low, chart.x(value), low + 5, "grid"))
        found.append(_text(chart.x(value), low + 22, text))
    return found + _marks(chart)


def _marks(chart: Chart) -> list[str]:
    """Return lines with words, which stand in two rows where one would be too crowded."""
    low, right, ends, found = HEIGHT - BOTTOM, WIDTH - RIGHT, [0.0, 0.0], []
    for value, text in sorted(chart.marks):
        x, wide = chart.x(value), LETTER * len(text)
        start = x + 4 if x + 4 + wide < right else x - 4 - wide
        row = 0 if start > ends[0] else 1
        ends[row] = start + wide
        found.append(_line(x, TOP, x, low, "mark"))
        found.append(_text(start, TOP + 12 + 16 * row, text, "note", "start"))
    return found


def _legend(chart: Chart) -> list[str]:
    found, x = [], float(LEFT)
    for series in chart.series:
        if not series.name:
            continue
        if series.line and not series.bars:
            found.append(_stroke([(x, 40), (x + 22, 40)], series.look))
        if series.dots or series.bars:
            found.append(_dot(x + 11, 40, series.look))
        found.append(_text(x + 28, 44, series.name, anchor="start"))
        x += 28 + LETTER * len(series.name) + 16
    return found


def _drawn(chart: Chart, series: Series) -> str:
    points = [(chart.x(x), chart.y(y)) for x, y in series.points]
    found = _band(chart, series, points)
    if series.bars:
        return "\n".join([*found, *_bars(points, series.look)])
    if series.line:
        found.append(_stroke(points, series.look))
    if series.dots:
        found += [_dot(x, y, series.look) for x, y in points]
    return "\n".join(found)


def _band(chart: Chart, series: Series, points: Sequence[Point]) -> list[str]:
    """Return where values are likely to lie: an area, or a stroke through each point."""
    ends = [(chart.y(low), chart.y(high)) for low, high in series.band]
    if not series.line:
        return [
            f'<line class="line c{series.look}" x1="{x:.1f}" y1="{low:.1f}" x2="{x:.1f}" '
            f'y2="{high:.1f}"/>'
            for (x, _), (low, high) in zip(points, ends, strict=bool(ends))
        ]
    if not ends:
        return []
    edge = [(x, low) for (x, _), (low, _) in zip(points, ends, strict=True)]
    edge += [(x, high) for (x, _), (_, high) in reversed([*zip(points, ends, strict=True)])]
    listed = " ".join(f"{x:.1f},{y:.1f}" for x, y in edge)
    return [f'<polygon class="band d{series.look}" points="{listed}"/>']


def _bars(points: Sequence[Point], look: int) -> list[str]:
    """Return a bar for each point; as wide as leaves room between neighbours."""
    low = HEIGHT - BOTTOM
    wide = min(48.0, 0.7 * (WIDTH - LEFT - RIGHT) / max(1, len(points)))
    return [
        f'<rect class="d{look}" x="{x - wide / 2:.1f}" y="{y:.1f}" width="{wide:.1f}" '
        f'height="{max(low - y, 0.0):.1f}"/>'
        for x, y in points
    ]


def _stroke(points: Sequence[Point], look: int) -> str:
    listed = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = f' stroke-dasharray="{DASHES[look]}"' if DASHES[look] else ""
    return f'<polyline class="line c{look}" points="{listed}"{dash}/>'


def _dot(x: float, y: float, look: int) -> str:
    """Return a circle, a square, a diamond or a triangle."""
    if look == 0:
        return f'<circle class="d0" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    corners = {
        1: ((-4, -4), (4, -4), (4, 4), (-4, 4)),
        2: ((0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)),
        3: ((0, -5), (5, 4), (-5, 4)),
    }[look]
    listed = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon class="d{look}" points="{listed}"/>'


def steps(top: float) -> list[tuple[float, str]]:
    """Return where numbers stand at an axis from 0 to a value above 0: at most six round ones."""
    size = 10 ** math.floor(math.log10(top / 2))
    size *= next(times for times in (1, 2, 5, 10) if top / (size * times) < 6)
    return [(size * place, f"{size * place:,g}") for place in range(int(top / size) + 1)]


def picture(charts: Sequence[Chart]) -> str:
    """Return charts beside each other as one file, for a page that does not have their style."""
    width = WIDTH * len(charts)
    size = f'width="{width}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {width} {HEIGHT}" {size}>',
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{HEIGHT}" style="fill: var(--paper)"/>',
        *(
            svg(chart, f'x="{place * WIDTH}" width="{WIDTH}" height="{HEIGHT}" ')
            for place, chart in enumerate(charts)
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
