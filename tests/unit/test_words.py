"""What a newcomer reads: models in the words of the table, and messages that say what to do."""

from __future__ import annotations

import ast
import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cumae
from cumae import Columns, InvalidData, InvalidParameter, PrivateBooster, PrivateLearner
from cumae.concepts import (
    Halfspace,
    IntervalUnion,
    Point,
    Rectangle,
    Stump,
    Stumps,
    Threshold,
    Tree,
)

DECLARED = {
    "age": (17, 90, "missing"),
    "sex": {"codes": {1: "male", 2: "female"}},
    "job": ["baker", "nurse", "clerk"],
    "since": dt.date(2020, 1, 1),
    "smokes": bool,
}
COLUMNS = Columns(DECLARED, list(DECLARED), len(DECLARED))


def test_cuts_are_told_as_people_read_the_cells() -> None:
    assert [COLUMNS.at_least(place, 0.5) for place in range(len(COLUMNS))] == [
        "age >= 0.5",
        "age is missing",
        "sex is female",
        "job is baker",
        "job is nurse",
        "job is clerk",
        "since >= 2020-01-02",  # the first day that is at least half a day after the declared one
        "smokes is true",
    ]
    assert COLUMNS.at_least(0, 1234.56789) == "age >= 1234.57"
    assert COLUMNS.at_least(2, -0.5) == "sex=female >= -0.5"  # holds for all: no category
    assert Columns([(0, 1)], None, 1).at_least(0, 0.5) == "column 0 >= 0.5"


def test_trees_tell_classes_and_join_equal_leaves() -> None:
    tree = Tree((0, 7, 2), (40.0, 0.5, 0.5), (0, 1, 1, 1))
    assert tree.describe(COLUMNS, ["no", "yes"]) == (
        "if age >= 40: yes\nelse:\n    if smokes is true: yes\n    else: no"
    )
    assert Tree((), (), (1,)).describe(COLUMNS, ["no", "yes"]) == "yes"


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (Stump(0, 40.0, above=True), "yes where age is at least 40.0, else no"),
        (Stump(0, None, above=True), "no everywhere"),
        (Threshold(3, above=False), "yes below 3, else no"),
        (IntervalUnion(((1, 2),)), "yes in [1, 2), else no"),
        (Rectangle((1.0, None), (2.0, None)), "yes where 1.0 <= age < 2.0, else no"),
        (Point(5), "yes at 5, else no"),
        (Halfspace((1.0, -2.0), 3.0), "yes where 1.0 x0 - 2.0 x1 >= 3.0, else no"),
    ],
)
def test_every_rule_tells_the_names_of_its_classes(rule: Any, told: str) -> None:
    assert rule.describe(COLUMNS, ["no", "yes"]) == told


def test_learners_print_the_names_of_their_classes() -> None:
    rows = pd.DataFrame({"age": np.linspace(17, 90, 2_000)})
    labels = np.where(rows["age"] > 50, "yes", "no")
    given: dict[str, Any] = {"classes": ["no", "yes"], "columns": {"age": (17, 90)}}
    booster = PrivateBooster(20.0, **given).fit(rows, labels)
    assert "log odds of yes if 0, 1, 2 ... trees say yes" in str(booster)
    assert "if age >= " in str(booster)
    assert ": yes" in str(booster)
    learner = PrivateLearner(Stumps(), 20.0, **given).fit(rows, labels)
    assert re.fullmatch(r"yes where age is at least [0-9.]+, else no", str(learner))


def test_numbers_written_in_other_ways_are_true_and_false() -> None:
    cells = pd.DataFrame({"smokes": ["0.0", "1.0", "1e0", "0", "yes"]})
    assert Columns.of(cells, {"smokes": bool}).encode(cells)[:, 0].tolist() == [0, 1, 1, 0, 1]


def test_a_point_between_thousands_goes_with_a_decimal_comma() -> None:
    cells = pd.DataFrame({"income": ["1.234,5", "7"]})
    declared = {"income": {"low": 0, "high": 9_999, "thousands": "."}}
    assert Columns.of(cells, declared).encode(cells)[:, 0].tolist() == [1234.5, 7]


@pytest.mark.parametrize(
    ("cells", "declared", "told"),
    [
        (["1,5"], (0, 9), "'decimal': ','"),
        (["31.12.2024"], dt.date(2020, 1, 1), "'format': '%d.%m.%Y'"),
        (["perhaps"], bool, "neither true nor false"),
        (["oui"], bool, "{'yes': 'J', 'no': 'N'}"),
    ],
)
def test_messages_about_cells_say_what_to_declare(
    cells: list[str], declared: Any, told: str
) -> None:
    table = pd.DataFrame({"one": cells})
    with pytest.raises(InvalidData) as raised:
        Columns.of(table, {"one": declared}).encode(table)
    assert told in str(raised.value)
    assert cells[0] not in str(raised.value).replace("31.12.2024 need", "")


def test_a_declaration_that_cannot_be_read_is_the_only_thing_said_about_its_column() -> None:
    table = pd.DataFrame({"one": ["1,5"], "sex": ["1"]})
    declared = {"one": {"low": 0, "high": 9, "decimal": ";"}, "sex": {"codes": {1: "m", 2: "f"}}}
    with pytest.raises(InvalidParameter) as raised:
        Columns.of(table, declared)
    told = str(raised.value)
    assert told.count("'one'") == 1
    assert """'sex': {"codes": {"1": "m", "2": "f"}}""" in told


RIDDLE = re.compile(r"(What|Whether|How)\b")
SOURCE = Path(cumae.__file__).parent


def beginnings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the first line of each docstring in a file that begins with a riddle."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, kinds) and RIDDLE.match(found := ast.get_docstring(node) or ""):
            yield getattr(node, "name", "the module"), found.partition("\n")[0]


def test_docstrings_begin_with_the_noun() -> None:
    found = {
        f"{path.relative_to(SOURCE)}: {name}": line
        for path in sorted(SOURCE.rglob("*.py"))
        for name, line in beginnings(path.read_text(encoding="utf-8"))
    }
    assert found == {}, "begin with the noun: The price of a fit, not What a fit costs"


def test_docstrings_that_begin_otherwise_are_found() -> None:
    text = '"""How it works."""\ndef f():\n    "What f does."\n\nclass A:\n    "Whether it is."\n'
    assert [name for name, _ in beginnings(text)] == ["the module", "f", "A"]
    assert not [*beginnings('"""The price."""\ndef f():\n    "Number of rows."\n')]


# Words with which a sentence says less than it seems to; docs and docstrings go without them.
VAGUE = re.compile(r"\b(told|whatever|in\s+the\s+place\s+of|all\s+else)\b", re.IGNORECASE)
ROOT = SOURCE.parents[1]


def texts(code: str) -> Iterator[str]:
    """Yield docstrings, messages and other texts of a file; keys such as "told" are no text."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value


def vague(text: str) -> list[str]:
    """Return the vague words of a text, each with some of what stands around it."""
    return [text[max(0, at.start() - 30) : at.end() + 20] for at in VAGUE.finditer(text)]


def test_texts_that_users_read_go_without_vague_words() -> None:
    found = {path: vague(text) for path, text in readable() if vague(text)}
    assert found == {}


def readable() -> Iterator[tuple[str, str]]:
    """Yield what users read: texts of the code, pages, and the claims of proofs."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield str(path.relative_to(ROOT)), "\n".join(texts(path.read_text(encoding="utf-8")))
    for path in [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "proofs").glob("*.md")):
        claims = re.findall(
            r"^(?:#|Claim:|Relation:|Assumptions:) .*$", path.read_text("utf-8"), re.MULTILINE
        )
        yield str(path.relative_to(ROOT)), "\n".join(claims)


def test_vague_words_are_found() -> None:
    assert len(vague("It is told,\nwhatever it is, in the\nplace of all else.")) == 4
    assert vague("A teller of tales; the place of a row; all elsewhere.") == []
    assert [*texts('"""One text."""\ndef f() -> str:\n    return {"told": f"Another {1}"}')] == [
        "One text.",
        "Another ",
    ]
