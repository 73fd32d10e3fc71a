"""The scripts of examples/ run, and what they print is true and worth seeing."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PEERS = {"diffprivlib_base"}  # need an environment of their own
MOST_LINES = 45


def shares(line: str) -> list[float]:
    """Return the percentages that a line holds, as shares of 1."""
    return [float(found) / 100 for found in re.findall(r"([\d.]+)%", line)]


def line_with(words: str, printed: str) -> str:
    (line,) = [line for line in printed.splitlines() if words in line]
    return line


def beats_guessing(printed: str, *, by: float) -> bool:
    ((reached,), (guessed,)) = [
        shares(line) for line in printed.splitlines() if line.startswith("right answers")
    ]
    return reached > guessed + by


def a_model_is_published(printed: str) -> None:
    assert beats_guessing(printed, by=0.08)
    effects = printed[printed.index("log odds") :]
    assert re.search(r"^  Age: -.*, \+", effects, re.MULTILINE)  # from below to above the average


def answers_go_on_after_a_restart(printed: str) -> None:
    reached = [shares(line)[0] for line in printed.splitlines() if "answers are right" in line]
    assert len(reached) == 2
    assert min(reached) > 0.95
    counts = re.findall(r"answers so far: ([\d,]+), answers left: (\w+)", printed)
    assert counts == [("15,000", "inf"), ("30,000", "inf")]


def questions_are_counted(printed: str) -> None:
    assert beats_guessing(printed, by=0.05)
    assert "answers left: 0" in printed
    assert "refused: 0 of 1000 answers remain" in printed
    assert shares(line_with("trees vote", printed))[0] < 0.2


def unlabelled_rows_help(printed: str) -> None:
    learnt = re.search(r"with all rows: 1 in \[([\d.]+), ([\d.]+)\)", printed)
    assert learnt is not None
    assert 30 < float(learnt[1]) < 50
    assert 100 < float(learnt[2]) < 140
    ends = [line for line in printed.splitlines() if line.endswith("% right")]
    ((everything,), (labels,), (guessing,)) = map(shares, ends)
    assert everything > 0.95
    assert labels < guessing + 0.1


def the_route_depends_on_the_rows(printed: str) -> None:
    advised = re.findall(r"^([\d,]+) rows: Publish a (\w+)", printed, re.MULTILINE)
    assert [rows for rows, _ in advised] == ["300", "3,000", "30,000"]
    assert len({model for _, model in advised}) > 1
    assert line_with("taken: ", printed).endswith(advised[-1][1])
    assert beats_guessing(printed, by=0.08)


def the_mistake_is_found(printed: str) -> None:
    sound, careless = printed.splitlines()
    for line, verdict in ((sound, "(not broken;"), (careless, "(BROKEN;")):
        assert verdict in line
        measured = re.search(r"measured at least ([\d.]+)", line)
        assert measured is not None
        assert (float(measured[1]) > 1) == (line is careless)
        assert float(measured[1]) > 0.1  # the attack sees something


def intervals_hold_the_numbers(printed: str) -> None:
    assert shares(line_with("explained of the variance", printed))[0] > 0.1
    (inside,) = shares(line_with("that hold the number", printed))  # "90 %" is written apart
    assert 0.87 < inside < 0.95


def figures_have_intervals(printed: str) -> None:
    overall = re.search(r"^accuracy +([\d.]+) % \(([\d.]+) to ([\d.]+)\)$", printed, re.MULTILINE)
    assert overall is not None
    reached, low, high = overall.groups()
    assert 65 < float(low) < float(reached) < float(high) < 80
    assert printed.count("Subgroup") == 2
    assert "epsilon left: 0.00" in printed


SHOWS: dict[str, Callable[[str], None]] = {
    "publish_a_model": a_model_is_published,
    "answer_for_ever": answers_go_on_after_a_restart,
    "answer_some_queries": questions_are_counted,
    "few_labels": unlabelled_rows_help,
    "choose_a_route": the_route_depends_on_the_rows,
    "attack_it": the_mistake_is_found,
    "predict_a_number": intervals_hold_the_numbers,
    "judge_a_model": figures_have_intervals,
}


@pytest.mark.parametrize("name", SHOWS)
def test_an_example_shows_what_it_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "epsilon" in printed
    SHOWS[name](printed)


def test_every_example_is_short_run_and_listed() -> None:
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert {path.stem for path in EXAMPLES.glob("*.py")} == SHOWS.keys() | PEERS
    assert set(re.findall(r"\]\((\w+)\.py\)", index)) == SHOWS.keys() | PEERS
    for name in SHOWS:
        text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        assert text.count("\n") <= MOST_LINES, name
        assert re.search(r"Takes about \w+ seconds", ast.get_docstring(ast.parse(text)) or ""), name
