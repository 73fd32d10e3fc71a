"""Write the list of theorems into docs/theorems.md: ``python tools/theorems.py``."""

from __future__ import annotations

from pathlib import Path

from cumae.theorems import listing

PAGE = Path(__file__).resolve().parents[1] / "docs" / "theorems.md"
FIRST = "## Paper 1\n"  # where the list begins; it goes on to the end of the page


def page() -> str:
    """Return the page with the list as the functions state it."""
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(FIRST)
    return f"{head}{listing()}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
