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


def pictures() -> dict[Path, str]:
    """Return the files and what they hold."""
    drawn = svg(beliefs(), f'width="{WIDTH}" height="{HEIGHT}" ')
    style = f"<style>{STYLE}</style>"
    drawn = drawn.replace(f'xmlns="{NAMESPACE}">', f'xmlns="{NAMESPACE}">\n{style}', 1)
    return {FOLDER / "epsilon.svg": drawn + "\n"}


if __name__ == "__main__":
    for file, text in pictures().items():
        file.write_text(text, encoding="utf-8")
