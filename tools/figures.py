"""Figures of pages and the results that they come from.

A comment below a paragraph or a table names the file, and for each figure its place in it:

    <!-- from benchmarks/results/learners.json
    .713 = /survey/0/accuracy
    87 = /trees of depth 4/ratio
    2.7 % = error percent of /parts/thresholds 1000 eps 1/accuracy_mean_and_sd/last chunk/0
    set: .12 3
    -->

Semicolons may stand for the ends of lines. Several files stand in several comments. A figure is a
decimal, or a number before "%" or "times". Each figure of a block with comments has its line, or
is named by ``set:``, for what was chosen or computed by hand and not measured. If nothing in a
block was measured, ``<!-- set: .12 3 -->`` is the whole comment. The number at the place, rounded
as it is shown, must be the figure.

Before a place may stand what is done with it: ``percent of``, ``error of``, ``minus of``; over
the parts of a place ``mean accuracy of``, ``least percent covered of`` and ``largest ratio of``,
whose keys end with the words between; and ``/a/b by /c/d`` is the ratio of two numbers,
and ``/a/b minus /c/d`` their difference. One of a list has its number, or facts that only it has:
``/runs/table=adult,rows=300,model=kernel,public=True/accuracy``.

Numbers of theorems, of versions and of articles are no figures. Two kinds of text have no comments,
because other tests compare them: tables between ``<!-- figures ... -->`` and ``<!-- end -->``,
which a script writes, and blocks that name the test which computes what they say.

``python -m tools.figures`` says what does not fit. ``python -m tools.figures propose PAGE`` prints
a comment for each block that has none, from the results that its section links to: read it before
you paste it, because another place may hold the same number.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COMMENT = re.compile(
    r"<!-- (?:from (?P<file>\S+)\s(?P<lines>.*?)|(?P<set>set: [^-]*))-->", re.DOTALL
)
LINE = re.compile(r"\n|;\s+(?=\S+(?: %)? = )")  # keys may have semicolons, too
GENERATED = re.compile(r"<!-- figures [^>]*-->.*?<!-- end -->", re.DOTALL)
COMPUTED = re.compile(r"`(?P<file>tests/\w+/test_\w+\.py)::(?P<test>test_\w+)`")
# A decimal such as .713, 2.7 or 1,234.5, or any number before a unit of a share or a ratio.
FIGURE = re.compile(
    r"(?<![\w.,^-])(\d[\d,]*\.\d+|\.\d+|\d[\d,]*(?= ?%| times\b))(?![\w]|\.\d)(?: ?%)?"
)
UNMEASURED = re.compile(
    r"`[^`]*`|\]\([^)]*\)"
    r"|(?:epsilon|alpha|beta|delta|until|on|Python|Apache)\s+=?\s*[\d.]+(?:,? (?:and )?[\d.]+)*"
    r"|(?:Theorem|Lemma|Claim|Corollary|Definition|Section|Observation|Proposition|arXiv)s?"
    r"\s+[\d.]+(?:(?:,|\s+and|\s+to)\s+[\d.]+)*"
)


def _values(several: Any) -> list[Any]:
    return list(several.values() if isinstance(several, dict) else several)


KINDS: dict[str, Callable[[Any], float]] = {
    "": float,
    "error of ": lambda value: 1 - value,
    "percent of ": lambda value: 100 * value,
    "error percent of ": lambda value: 100 * (1 - value),
    "minus of ": lambda value: -value,
    "thousandth of ": lambda value: value / 1_000,
    "mean of ": lambda several: fmean(_values(several)),
    "deviation of ": lambda several: stdev(_values(several)),
}
# "mean accuracy of " and "mean percent lost of ": over the parts of a place that have the key.
MEAN = re.compile(r"mean (?P<percent>percent )?(?P<key>.+) of ")
# "least percent covered of " and "largest ratio of ": over all numbers whose keys end so.
EXTREME = re.compile(r"(?P<end>least|largest) (?P<percent>percent )?(?P<key>.+) of ")


def kind_of(kind: str) -> Callable[[Any], float]:
    """Return the function that a figure's line names before its place."""
    match = MEAN.fullmatch(kind) or EXTREME.fullmatch(kind)
    if match is None:
        return KINDS[kind]
    factor = 100 if match["percent"] else 1
    end = match.groupdict().get("end")

    def extreme(several: Any) -> float:
        found = [value for key, value in _flat(several) if key.endswith(match["key"])]
        return factor * (min(found) if end == "least" else max(found))

    def mean(several: Any) -> float:
        return factor * fmean(
            one[match["key"]]
            for one in _values(several)
            if isinstance(one, dict) and match["key"] in one
        )

    return extreme if end else mean


@dataclass(frozen=True)
class Block:
    """A paragraph or a table, with the comments below it."""

    text: str
    comments: tuple[tuple[str, str], ...]  # files ("" for none) and lines
    section: str

    @property
    def figures(self) -> list[str]:
        """Return the figures that are shown, in their order."""
        return [one[0] for one in FIGURE.finditer(UNMEASURED.sub(" ", self.text))]


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page that are neither a heading nor code in a language."""
    page = re.sub(r"^( *)```\w.*?^\1```$", "", page, flags=re.MULTILINE | re.DOTALL)
    page = GENERATED.sub("", page)
    parts = re.split(r"\n\s*\n", page)
    section = ""
    for place, part in enumerate(parts):
        if part.startswith("#"):
            after = "\n\n".join(parts[place:])
            section = re.split(r"\n#+ ", after)[0]
        comments: list[tuple[str, str]] = []
        text = part
        later = place + 1
        while later < len(parts) and parts[later].lstrip().startswith(("<!-- from", "<!-- set:")):
            text += "\n" + parts[later]
            later += 1
        found = COMMENT.finditer(text)
        comments += [(match["file"] or "", match["lines"] or match["set"]) for match in found]
        text = COMMENT.sub("", part)
        if text.strip() and not text.startswith("#"):
            yield Block(text, tuple(comments), section)


def _alike(listed: list[Any], facts: str) -> Any:
    """Return the one of a list that has all facts, such as table=adult,rows=300."""
    pairs = [one.split("=") for one in facts.split(",")]
    (found,) = [one for one in listed if all(str(one[name]) == value for name, value in pairs)]
    return found


def at(results: Any, place: str) -> Any:
    """Return what stands at a place such as /survey/0/accuracy; keys may have slashes, too."""
    left = place.removeprefix("/")
    while left:
        key = (
            next((one for one in results if left == one or left.startswith(f"{one}/")), None)
            if isinstance(results, dict)
            else left.split("/")[0]
        )
        if key is None:
            raise KeyError(place)
        if isinstance(results, list):
            results = results[int(key)] if "=" not in key else _alike(results, key)
        else:
            results = results[key]
        left = left.removeprefix(key).removeprefix("/")
    return results


def rounded(value: float, shown: str) -> bool:
    """Return whether a value, rounded as a figure is shown, is the figure."""
    number = Decimal(shown.replace(",", "").rstrip(" %"))
    unit = Decimal(1).scaleb(int(number.as_tuple().exponent))
    return abs(Decimal(repr(float(value))) - number) <= unit / 2 + unit / 1_000


def _is_there(test: re.Match[str]) -> bool:
    """Return whether a test that a page names exists."""
    file = ROOT / test["file"]
    defined = rf"^def {test['test']}\(|^{test['test']} = "
    return file.exists() and bool(re.search(defined, file.read_text("utf-8"), re.MULTILINE))


def misfits(block: Block, *, complete: bool) -> Iterator[str]:
    """Yield what does not fit in a block.

    Parameters
    ----------
    block : Block
        A block.
    complete : bool
        Whether figures without a comment are a misfit.
    """
    tests = [*COMPUTED.finditer(block.text)]
    left = [] if tests else block.figures
    yield from (f"there is no {one[0]}" for one in tests if not _is_there(one))
    for file, lines in block.comments:
        results = json.loads((ROOT / file).read_text(encoding="utf-8")) if file else None
        for line in filter(None, map(str.strip, LINE.split(lines))):
            if line.startswith("set:"):
                named = line.removeprefix("set:").split()
                left = [one for one in left if one.rstrip(" %") not in named]
                continue
            shown, _, place = line.partition(" = ")
            kind, slash, rest = place.partition("/")
            rest, ratio, divisor = rest.partition(" by /")
            rest, difference, less = rest.partition(" minus /")
            try:
                value = kind_of(kind)(at(results, slash + rest))
                value -= kind_of(kind)(at(results, less)) if difference else 0
                value /= at(results, divisor) if ratio else 1
            except (AttributeError, KeyError, IndexError, TypeError, ValueError):
                yield f"{file} has no {place}"
                continue
            if not rounded(value, shown):
                yield f"{shown} is shown, and {place} of {file} is {value}"
            if shown in left:
                left.remove(shown)
            elif shown not in block.figures:
                yield f"{shown} stands in a comment, and not in its block"
    if complete or block.comments:
        yield from (f"{one} comes from no file, in {block.text[:60]!r}" for one in left)


def problems(page: Path, *, complete: bool) -> list[str]:
    """Return what does not fit on a page."""
    text = page.read_text(encoding="utf-8")
    return [one for block in blocks(text) for one in misfits(block, complete=complete)]


def _flat(results: Any, place: str = "") -> Iterator[tuple[str, float]]:
    pairs = results.items() if isinstance(results, dict) else enumerate(results)
    for key, one in pairs:
        if isinstance(one, dict | list):
            yield from _flat(one, f"{place}/{key}")
        elif isinstance(one, int | float) and not isinstance(one, bool):
            yield f"{place}/{key}", float(one)


def _candidates(shown: str, places: list[tuple[str, float]]) -> list[tuple[int, str]]:
    """Return where a figure may come from: numbers in the order of the file, and places."""
    kinds = ("percent of ", "error percent of ", "") if shown.endswith("%") else ("", "error of ")
    return [
        (number, f"{kind}{place}")
        for kind in kinds
        for number, (place, value) in enumerate(places)
        if rounded(KINDS[kind](value), shown)
    ]


def _distance(places: list[tuple[str, float]], last: int, number: int) -> tuple[int, bool, int]:
    """Return how far a place is from that of the figure before: in the tree, then in the order."""
    before = set(places[last][0].split("/")) if last >= 0 else set()
    alike = len(before & set(places[number][0].split("/")))
    return -alike, number < last, abs(number - last)


def propose(page: Path) -> Iterator[str]:
    """Yield a comment for each block without one, with the likeliest place of each figure."""
    for block in blocks(page.read_text(encoding="utf-8")):
        files = re.findall(r"benchmarks/results/[\w.]+\.json", block.section)
        if block.comments or not block.figures or not files:
            continue
        yield f"\n{block.text[:300]}"
        for file in dict.fromkeys(files):
            places = list(_flat(json.loads((ROOT / file).read_text(encoding="utf-8"))))
            yield f"<!-- from {file}"
            last = -1
            for shown in block.figures:
                found = _candidates(shown, places)
                found.sort(key=lambda one: _distance(places, last, one[0]))
                if found:
                    last = found[0][0]
                    yield f"{shown} = {found[0][1]}" + f"  ({len(found)})" * (len(found) > 1)
                else:
                    yield f"{shown} = ?"
            yield "-->"


def main() -> None:
    """Check the pages, or propose comments for one."""
    if sys.argv[1:2] == ["propose"]:
        print("\n".join(propose(Path(sys.argv[2]))))
        return
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [f"{page.name}: {one}" for page in pages for one in problems(page, complete=False)]
    print("\n".join(found) or "All figures with comments fit.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
