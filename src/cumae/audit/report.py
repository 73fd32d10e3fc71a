"""Results of audits for people: a table, plots of characters and SVG, a page of Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from cumae.arrays import Floats
from cumae.audit.results import BROKEN, CANNOT_TELL, CAUGHT, RELEASES, WHOLE, Audit, Claimed

HEADER = (
    *("attack", "measure", "claimed", "at least", "could be"),
    *("share", "runs", "confidence", "verdict"),
)
NUMBERS = range(2, 8)  # columns that are aligned to the right
MARKS = {"guessing": ".", "claimed": "#", "planted": "x", "measured": "o"}
MEANING = """\
Each line is a pair of worlds that differ in one row or one query (or in all of one user, where
users are protected), and an attacker who tries to tell them apart. "claimed" is what the guarantee
promises at most, and "at least" is what this attacker has shown. "could be" is what so many runs
would have shown of a leak of everything, with an attacker who is right each time. A bound above its
claim is BROKEN: the guarantee is false. "cannot tell" means that "could be" is not above the claim:
it would take more runs, or the claim is empty. A bound far below its claim does not mean that the
claim is loose: another attacker may do better, and few runs prove little. "share" is measured /
claimed; what is missing to 100% is the gap between the two. Lines with "planted" show the same
attack on code with a bug, which it should catch: one that is "not caught" needs more runs, as does
one that "cannot tell"."""
LEVELS = {
    RELEASES: "Releases: sums, votes or scores are computed once in each world, and noise is drawn "
    "anew in each run.",
    WHOLE: "Whole: everything is done anew in each run, from training to the last answer.",
}


@dataclass(frozen=True)
class Line:
    """One measure of one audit, held against its claim."""

    audit: Audit
    measure: str
    claimed: float
    found: float

    @property
    def verdict(self) -> str:
        """As :meth:`~cumae.audit.Audit.verdict_on` has it."""
        return self.audit.verdict_on(self.measure)

    @property
    def broken(self) -> bool:
        """True if the bound is above its claim."""
        return self.verdict == BROKEN

    @property
    def share(self) -> float:
        """The share of the claim that was reached; above 1 means broken."""
        if self.claimed > 0:
            return self.found / self.claimed
        return math.inf if self.broken else 0.0

    def cells(self) -> tuple[str, ...]:
        """Return what the table shows."""
        delta = self.audit.claimed.delta
        at = f" at delta {delta:g}" if self.measure == "epsilon" and delta > 0 else ""
        return (
            self.audit.name,
            self.measure + at,
            f"{self.claimed:.4g}",
            _down(self.found),
            _down(self.audit.could_have_proven(self.measure)),
            f"{self.share:.0%}",
            f"{self.audit.runs:,}",
            f"{self.audit.confidence:.7g}",
            self.verdict,
        )


def lines(audits: Sequence[Audit]) -> list[Line]:
    """Return a line for each measure that is claimed.

    Examples
    --------
    >>> from cumae.audit import Audit, Claimed
    >>> from cumae.audit.report import lines
    >>> found = Audit("a row", Claimed(1.0, mu=0.5), 0.95, 1000, epsilon=0.7, rho=0.1, mu=0.6)
    >>> [(line.measure, line.share, line.broken) for line in lines([found])]
    [('epsilon', 0.7, False), ('mu', 1.2, True)]
    """
    return [
        Line(audit, name, getattr(audit.claimed, name), getattr(audit, name))
        for audit in audits
        for name in audit.measures
    ]


def table(audits: Sequence[Audit]) -> str:
    """Return a table that reads well as plain text and as Markdown.

    Examples
    --------
    >>> from cumae.audit import Audit, Claimed
    >>> from cumae.audit.report import table
    >>> print(table([Audit("a row", Claimed(1.0), 0.95, 1000, epsilon=0.7, rho=0.1, mu=0.6)]))
    | attack | measure | claimed | at least | could be | share |  runs | confidence | verdict    |
    | ------ | ------- | ------: | -------: | -------: | ----: | ----: | ---------: | ---------- |
    | a row  | epsilon |       1 |      0.7 |    5.339 |   70% | 1,000 |       0.95 | not broken |
    """
    rows = [HEADER, *(line.cells() for line in lines(audits))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rules = [
        "-" * (width - 1) + ":" if place in NUMBERS else "-" * width
        for place, width in enumerate(widths)
    ]
    return "\n".join(_row(cells, widths) for cells in (HEADER, rules, *rows[1:]))


def together(audits: Sequence[Audit]) -> float:
    """Return the chance, at least, that all bounds of all audits are right."""
    return max(0.0, 1 - sum(1 - audit.confidence for audit in audits if not audit.planted))


def strongest(audits: Sequence[Audit]) -> Audit:
    """Return the audit that reached the largest share of a claim, planted bugs apart."""
    real = [audit for audit in audits if not audit.planted]
    return max(lines(real), key=lambda line: line.share).audit


def plant_of(audit: Audit, audits: Sequence[Audit]) -> Audit | None:
    """Return the result of the same attack on a planted bug; None if it was not played."""
    found = [other for other in audits if other.planted]
    return next((other for other in found if other.name.startswith(f"{audit.name}, ")), None)


def levels(audits: Sequence[Audit]) -> list[str]:
    """Return the levels of the attacks, and what attacks on releases leave out.

    Examples
    --------
    >>> from cumae.audit import Audit, Claimed
    >>> from cumae.audit.report import levels
    >>> levels([Audit("a row", Claimed(1.0), 0.95, 1000, epsilon=0.7, rho=0.1, mu=0.6)])
    ['Whole: everything is done anew in each run, from training to the last answer.']
    """
    found = []
    for level, meaning in LEVELS.items():
        own = [audit for audit in audits if audit.level == level and not audit.planted]
        found += [meaning] if own else []
        found += [
            f"{one.name}: not covered is {one.not_covered}." for one in own if one.not_covered
        ]
    return found


def misses_allowed(claimed: Claimed, false_alarms: ArrayLike) -> Floats:
    """Return the chance of a miss, at least, that the promise leaves with these false alarms.

    Examples
    --------
    >>> from cumae.audit import Claimed
    >>> from cumae.audit.report import misses_allowed
    >>> misses_allowed(Claimed(0.0, delta=0.1), [0.0, 0.5, 1.0]).round(3).tolist()
    [0.9, 0.4, 0.0]
    """
    alarms = np.asarray(false_alarms, dtype=np.float64)
    factor = math.exp(min(claimed.epsilon, 700.0))  # the largest that a float can hold
    bounds = [
        np.zeros_like(alarms),
        1 - claimed.delta - factor * alarms,
        (1 - claimed.delta - alarms) / factor,
    ]
    if claimed.mu is not None:
        bounds.append(norm.cdf(norm.isf(alarms) - claimed.mu))
    return np.asarray(np.max(bounds, axis=0))


def plot(audit: Audit, planted: Audit | None = None, width: int = 61, height: int = 21) -> str:
    """Return the trade-off curve as text.

    Counts have an error, so that points lie below the claim by chance; the bounds allow for it.

    Parameters
    ----------
    audit : Audit
        What was found.
    planted : Audit or None
        What the same attack found where a bug was planted.
    width, height : int of 2 or more
        Size of the plot in characters, without texts.

    Examples
    --------
    >>> from cumae.audit import Audit, Claimed
    >>> from cumae.audit.report import plot
    >>> curve = ((0.0, 1.0), (0.5, 0.25), (1.0, 0.0))
    >>> found = Audit("a row", Claimed(1.0), 0.95, 9, epsilon=0.1, rho=0.0, mu=0.1, curve=curve)
    >>> print(plot(found, width=21, height=7))
    a row: chances of false alarms and misses
       1 o#.
         |##...
         | ## ....
         |  ##   .....
         |   ###   o ....
         |     ##########...
       0 |_______________####o
         0    false alarms   1
    o counted in 9 runs, without a margin of error   # claimed: never below   . guessing blindly
    """
    grid = [[" "] * width for _ in range(height)]
    grid[-1] = ["_"] * width
    for row in grid:
        row[0] = "|"
    steps = np.linspace(0, 1, 10 * max(width, height))
    allowed = misses_allowed(audit.claimed, steps)
    curves = {
        "guessing": (steps, 1 - steps),
        # The curve is its own mirror image, which fills its steep part.
        "claimed": (np.append(steps, allowed), np.append(allowed, steps)),
        **({} if planted is None else {"planted": _measured(planted)}),
        "measured": _measured(audit),
    }
    for name, (alarms, misses) in curves.items():
        columns = np.rint(alarms * (width - 1)).astype(int)
        rows = np.rint((1 - misses) * (height - 1)).astype(int)
        for column, row in zip(columns, rows, strict=True):
            grid[row][column] = MARKS[name]
    sides = ["   1 ", *["     "] * (height - 2), "   0 "]
    body = [(side + "".join(row)).rstrip() for side, row in zip(sides, grid, strict=True)]
    title = f"{audit.name}: chances of false alarms and misses"
    axis = "     0" + "false alarms".center(width - 2) + "1"
    counted = f"o counted in {audit.runs:,} runs, without a margin of error"
    legend = f"{counted}   # claimed: never below   . guessing blindly"
    if planted is not None:
        legend += f"\nx the same attack {planted.planted}: {planted.verdict}"
    return "\n".join([title, *body, axis, legend])


def svg(audits: Sequence[Audit], columns: int = 3, side: int = 240) -> str:
    """Return the trade-off curves of all audits as one SVG image.

    Parameters
    ----------
    audits : sequence of Audit
        What was found.
    columns : int of 1 or more
        How many plots stand side by side.
    side : int of 1 or more
        Width and height of a plot in pixels, without texts.

    Examples
    --------
    >>> from cumae.audit import Audit, Claimed
    >>> from cumae.audit.report import svg
    >>> found = Audit("a row", Claimed(1.0), 0.95, 9, epsilon=0.1, rho=0.0, mu=0.1)
    >>> svg([found]).startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    True
    """
    step = side + 80  # room for the texts around a panel
    columns = min(columns, len(audits))
    width, height = step * columns, step * -(-len(audits) // columns)
    panels = [
        f'<g transform="translate({step * (place % columns) + 40} '
        f'{step * (place // columns) + 35})">{_panel(audit, side)}</g>'
        for place, audit in enumerate(audits)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="11">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n' + "\n".join(panels) + "\n</svg>"
    )


def markdown(
    audits: Sequence[Audit], settings: Mapping[str, Any] | None = None, left_out: Sequence[str] = ()
) -> str:
    """Return a page with the table, what it means, and the curve of the strongest attack.

    Parameters
    ----------
    audits : sequence of Audit
        What was found.
    settings : mapping from str to object, or None
        How it was found.
    left_out : sequence of str
        What was not played, and why.
    """
    broken = sum(line.broken for line in lines(audits))
    best = strongest(audits)
    verdict = (
        f"**Bounds above their claims: {broken}.** The guarantees of these lines do not hold; "
        "report them as SECURITY.md says."
        if broken
        else "No bound is above its claim."
    )
    return (
        f"# Audit\n\n{verdict}\n\n{table(audits)}\n\n{MEANING}\n\n{certainty(audits)}\n\n"
        f"{_listed('Settings', [f'{name}: {value}' for name, value in (settings or {}).items()])}"
        f"{_listed('Levels', levels(audits))}"
        f"{_listed('Left out', left_out)}"
        f"The attack that reached the largest share of a claim:\n\n"
        f"```text\n{plot(best, plant_of(best, audits))}\n```\n"
    )


def certainty(audits: Sequence[Audit]) -> str:
    """Return a sentence on how sure the bounds are."""
    return (
        f"All bounds together are right with a chance of at least {together(audits):.7g}; "
        '"runs" are those in each world that they were counted on.'
    )


def caught_bugs(audits: Sequence[Audit]) -> str:
    """Return how many planted bugs were caught, and how many had too few runs; "" without any.

    Parameters
    ----------
    audits : sequence of Audit
        The results, with those of planted bugs.
    """
    verdicts = [one.verdict for one in audits if one.planted]
    if not verdicts:
        return ""
    text = f"Planted bugs: {verdicts.count(CAUGHT):,} of {len(verdicts):,} were caught"
    few = verdicts.count(CANNOT_TELL)
    return f"{text}; {few:,} had too few runs to tell." if few else f"{text}."


def _listed(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{title}:\n", *(f"- {line}" for line in lines), "\n"]) if lines else ""


def _panel(audit: Audit, side: int) -> str:
    steps = np.linspace(0, 1, 101) ** 2  # closer where the curve is steep
    allowed = misses_allowed(audit.claimed, steps)
    order = np.argsort(np.append(steps, allowed))
    bound = np.append(steps, allowed)[order], np.append(allowed, steps)[order]
    colour = "#c00" if audit.broken else "#222"
    dot = "#c60" if audit.planted else "#06c"
    dots = "".join(
        f'<circle cx="{alarm * side:.1f}" cy="{(1 - miss) * side:.1f}" r="2" fill="{dot}"/>'
        for alarm, miss in zip(*_measured(audit), strict=True)
    )
    path = " ".join(
        f"{alarm * side:.1f},{(1 - miss) * side:.1f}" for alarm, miss in zip(*bound, strict=True)
    )
    promise = f"epsilon {audit.claimed.epsilon:.4g} at delta {audit.claimed.delta:g}"
    return (
        f'<text x="-30" y="-20" fill="{colour}">{escape(audit.name)}</text>'
        f'<text x="-30" y="-7" fill="{colour}">{promise}: {audit.verdict}</text>'
        f'<rect width="{side}" height="{side}" fill="none" stroke="#999"/>'
        f'<line x1="0" y1="0" x2="{side}" y2="{side}" stroke="#ccc" stroke-dasharray="3"/>'
        f'<polyline points="{path}" fill="none" stroke="{colour}"/>{dots}'
        f'<text x="{side / 2}" y="{side + 15}" text-anchor="middle">false alarms</text>'
        f'<text transform="translate(-8 {side / 2}) rotate(-90)" text-anchor="middle">misses</text>'
        f'<text x="0" y="{side + 15}">0</text><text x="{side}" y="{side + 15}">1</text>'
    )


def _measured(audit: Audit) -> tuple[Floats, Floats]:
    """Return false alarms and misses of each rule, or of its opposite if that guesses better."""
    points = np.array(audit.curve, dtype=np.float64).reshape(-1, 2)
    better = np.where(points.sum(axis=1, keepdims=True) > 1, 1 - points, points)
    return better[:, 0], better[:, 1]


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.rjust(width) if place in NUMBERS else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"


def _down(value: float) -> str:
    """Show four digits, rounded down, because the number is a bound from below."""
    if not 0 < value < math.inf:
        return f"{value:g}"
    scale = 10.0 ** (3 - math.floor(math.log10(value)))
    return f"{math.floor(value * scale) / scale:.4g}"
