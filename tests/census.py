"""A made-up census in the shape of the well-known one: quoted cells, missing ones, odd names."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
from typer.testing import CliRunner, Result

from cumae.cli import app

ROOT = Path(__file__).parents[1]
COLUMNS = ["age", "workclass", "education", "hours per week", "sex", "citizen", "income"]
LABEL, CLASSES = "income", "<=50K,>50K"
WORK = ["Private", "State-gov", "Self-emp"]
SCHOOL = ["HS-grad", "Some college, no degree", 'Doctorate ("PhD")']
HOURS = ["age", "hours"]  # a number to predict
SCHEMA = """\
[columns]
age = {low = 17, high = 90, step = 1}
workclass = {categories = ["Private", "State-gov", "Self-emp"], missing = true}
education = ["HS-grad", "Some college, no degree", 'Doctorate ("PhD")']
"hours per week" = {low = 1, high = 99, missing = true}
sex = {categories = ["Female", "Male"]}
citizen = {boolean = true}
"""
KNOWN = {  # what a newcomer writes into the marked lines
    "age": "{low = 17, high = 90}",
    "workclass": '{categories = ["Private", "State-gov", "Self-emp"], missing = true}',
    "education": """["HS-grad", "Some college, no degree", 'Doctorate ("PhD")']""",
    '"hours per week"': "{numbers = true, missing = true}",
    "sex": '["Female", "Male"]',
    "citizen": "{boolean = true}",
}
PRICE = ["--epsilon", "3", "--delta", "1e-6"]
FIT = ["--label", LABEL, "--classes", CLASSES, *PRICE]


def people(count: int, seed: int) -> list[list[str]]:
    """Return rows of text; one in twelve cells of two columns is missing."""
    coins = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        age, school = int(coins.integers(17, 91)), int(coins.integers(3))
        hours = int(coins.integers(10, 80))
        odds = 0.08 * (age - 50) + 1.5 * (school - 1) + 0.04 * (hours - 45)
        rich = coins.random() < 1 / (1 + np.exp(-2 * odds))
        work = "?" if coins.random() < 1 / 12 else WORK[int(coins.integers(3))]
        shown = "" if coins.random() < 1 / 12 else str(hours)
        sex, citizen = coins.choice(["Female", "Male"]), coins.choice(["yes", "no"])
        label = ">50K" if rich else "<=50K"
        rows.append([str(age), work, SCHOOL[school], shown, str(sex), str(citizen), label])
    return rows


def as_csv(rows: list[list[str]], names: list[str] | None = None) -> str:
    """Return rows as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text).writerows([names or COLUMNS, *rows])
    return text.getvalue()


def without_label(rows: list[list[str]]) -> str:
    """Return queries as the text of a CSV file."""
    return as_csv([row[:-1] for row in rows], COLUMNS[:-1])


def fill(folder: Path, count: int = 1_500) -> Path:
    """Write private rows, public rows, queries, rows for a score, and a schema."""
    for name, text in {
        "adult.csv": as_csv(people(count, 1)),
        "census.csv": as_csv(people(300, 2)),
        "queries.csv": without_label(people(60, 3)),
        "test.csv": as_csv(people(400, 4)),
        "schema.toml": SCHEMA,
        "hours.csv": as_csv([[age, str(int(age) // 2)] for age, *_ in people(300, 5)], HOURS),
        "hours.toml": "[columns]\nage = {low = 17, high = 90}\n",
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def run(*words: str, given: str | bytes = "") -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(app, list(words), input=given, env={"COLUMNS": "500"})


def answers_in(path: Path) -> list[str]:
    """Return the last column of a file of answers."""
    with path.open(encoding="utf-8", newline="") as file:
        return [row[-1] for row in csv.reader(file)][1:]


def commands_in(page: str) -> list[str]:
    """Return the five commands that a page begins with."""
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n  ", "")
    (block,) = re.findall(r"^```\n(cumae schema .*?)```", text, re.MULTILINE | re.DOTALL)
    return [line.split("  #")[0].strip() for line in block.splitlines()]


def completed(draft: str) -> str:
    """Return a drafted schema with its marked lines completed, as a newcomer does in an editor."""
    for name, value in KNOWN.items():
        line = re.compile(rf'^({name} *= )"COMPLETE"$', re.MULTILINE)
        draft, count = line.subn(rf"\g<1>{value}", draft)
        assert count == 1
    return draft
