"""Pictures of the explanations: ``python -m tools.site.pictures`` writes them into docs."""

from __future__ import annotations

import math
from pathlib import Path

from cumae.charts import HEIGHT, NAMESPACE, STYLE, WIDTH, Chart, Series, svg

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "explanations"
SHARES = [place / 200 for place in range(201)]
TICKS = [(share, f"{share:.0%}".replace("%", " %")) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]


def largest_belief(before: float, epsilon: float) -> float:
    """Return the largest chance that somebody can give to a fact about one person afterwards.

    Parameters
    ----------
    before : float from 0 to 1
        The chance before anything was released.
    epsilon : float of 0 or more
        The promise, with delta 0.
    """
    odds = math.exp(epsilon) * before
    return odds / (odds + 1 - before)


def beliefs() -> Chart:
    """Return the picture of what epsilon means for one person."""
    curves = [
        Series(
            f"epsilon {epsilon:g}",
            [(x, largest_belief(x, epsilon)) for x in SHARES],
            look,
            dots=False,
        )
        for look, epsilon in enumerate((0.1, 1.0, 3.0))
    ]
    return Chart(
        key="belief",
        title="What a release can change about one person",
        description="The largest chance that anybody can give to a fact about one person after a "
        "release, against the chance before it. With epsilon 0.1 hardly anything changes.",
        across="believed before the release",
        up="believed afterwards, at most",
        series=curves,
        wide=(0.0, 1.0),
        high=(0.0, 1.0),
        ticks=TICKS,
        levels=TICKS,
    )


NAMES = ("x1", "y1", "x2", "y2")
BOX_WIDTH, BOX_HEIGHT = 190, 64
BOXES = {  # the left and upper corner of each box, its look, and its lines
    "rows": (10, 78, 3, ("private rows", "one for each person")),
    "fit": (255, 78, 0, ("cumae fit", "pays epsilon, once")),
    "model": (500, 18, 1, ("model.json", "may be published")),
    "oracle": (500, 138, 2, ("oracle.db", "answers for ever")),
    "server": (745, 78, 0, ("cumae serve", "ledger, keys, proofs")),
    "programs": (990, 18, 3, ("programs", "inference clients")),
    "people": (990, 138, 3, ("people", "pages, forms, labels")),
}
ARROWS = (
    *(("rows", "fit"), ("fit", "model"), ("fit", "oracle"), ("model", "server")),
    *(("oracle", "server"), ("server", "programs"), ("server", "people")),
)
SERVED = "Rows pay once; a model or an oracle is served to programs and people"


def served() -> str:
    """Return the picture of the way from private rows to those who ask."""
    width, height = 1190, 220
    lines, size = [], f'width="{BOX_WIDTH}" height="{BOX_HEIGHT}"'
    for start, end in ARROWS:
        (x, y, *_), (to_x, to_y, *_) = BOXES[start], BOXES[end]
        ends = (x + BOX_WIDTH + 4, y + BOX_HEIGHT / 2, to_x - 10, to_y + BOX_HEIGHT / 2)
        places = " ".join(f'{name}="{place:g}"' for name, place in zip(NAMES, ends, strict=True))
        lines.append(f'<line class="line c3" {places} marker-end="url(#tip)"/>')
    for x, y, look, (name, note) in BOXES.values():
        middle = x + BOX_WIDTH / 2
        lines += [
            f'<rect class="box c{look}" x="{x}" y="{y}" {size} rx="8"/>',
            f'<text class="name" x="{middle:g}" y="{y + 28}" text-anchor="middle">{name}</text>',
            f'<text x="{middle:g}" y="{y + 48}" text-anchor="middle">{note}</text>',
        ]
    tip = '<marker id="tip" markerWidth="5" markerHeight="6" refX="2" refY="3" orient="auto">'
    named = f'role="img" width="{width}" height="{height}" aria-label="{SERVED}"'
    return "\n".join(
        [
            f'<svg xmlns="{NAMESPACE}" class="chart" viewBox="0 0 {width} {height}" {named}>',
            f"<style>{STYLE}.chart .box {{ fill: var(--paper); stroke-width: 2; }}</style>",
            f'<rect class="paper" width="{width}" height="{height}"/>',
            f'<defs>{tip}<path class="d3" d="M0 0 5 3 0 6z"/></marker></defs>',
            *lines,
            "</svg>\n",
        ]
    )


def pictures() -> dict[Path, str]:
    """Return the files and what they hold."""
    drawn = svg(beliefs(), f'width="{WIDTH}" height="{HEIGHT}" ')
    style = f"<style>{STYLE}</style>"
    drawn = drawn.replace(f'xmlns="{NAMESPACE}">', f'xmlns="{NAMESPACE}">\n{style}', 1)
    return {FOLDER / "epsilon.svg": drawn + "\n", FOLDER.parent / "served.svg": served()}


if __name__ == "__main__":
    for file, text in pictures().items():
        file.write_text(text, encoding="utf-8")
