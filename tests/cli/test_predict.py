"""``cumae predict``, ``score`` and ``show``: answers, what they cost, and what a model learnt."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.tree import DecisionTreeClassifier

import cumae
from cumae.cli.app import ExitCode
from cumae.cli.files.csv_text import CsvForm
from cumae.cli.files.output import safe_cell
from cumae.cli.files.schemas import read_schema
from cumae.cli.files.tables import read_table_file
from cumae.cli.models.answers import CheckedQueries
from tests.census import COLUMNS, FIT, answers_in, as_csv, people, run, without_label

CLASSES = {"<=50K", ">50K"}
ODD = ["=1+2", "-1", "@x", "ok"]


@pytest.mark.parametrize("fitted", ["model.json", "oracle.db", "release.db"])
def test_answers_stand_beside_the_queries(folder: Path, fitted: str) -> None:
    done = run("predict", fitted, "queries.csv", "-o", "answers.csv")
    assert done.exit_code == 0, done.stderr
    assert "60 of 60 queries are answered" in done.stderr
    found = pd.read_csv("answers.csv", dtype=str, keep_default_na=False)
    asked = pd.read_csv("queries.csv", dtype=str, keep_default_na=False)
    assert found.drop(columns="answer").equals(asked)
    assert set(found["answer"]) == CLASSES
    right = [row[-1] for row in people(60, 3)]
    assert (found["answer"] == right).mean() > 0.6


@pytest.mark.parametrize("out", ["answers.csv", "answers.csv.gz", "answers.parquet"])
def test_nobody_else_may_read_answers_from_the_first_byte_on(
    folder: Path, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They hold the queries; so does what a command that is killed leaves behind."""
    seen: list[int] = []

    def watched(method: Any) -> Any:
        def call(self: CheckedQueries, stream: Any, *rest: Any) -> Any:
            method(self, stream, *rest)
            seen.extend(path.stat().st_mode & 0o777 for path in folder.glob(".answers*.part"))

        return call

    monkeypatch.setattr(CheckedQueries, "rehearse", watched(CheckedQueries.rehearse))
    monkeypatch.setattr(CheckedQueries, "write", watched(CheckedQueries.write))
    before = os.umask(0)
    try:
        for more in ([], ["--force"]):
            assert run("predict", "oracle.db", "queries.csv", "-o", out, *more).exit_code == 0
            assert Path(out).stat().st_mode & 0o777 == 0o600
            Path(out).chmod(0o666)
        assert run("predict", "model.json", "queries.csv", "-o", out, "--force").exit_code == 0
    finally:
        os.umask(before)
    assert Path(out).stat().st_mode & 0o777 == 0o600
    assert len(seen) >= 5  # two rehearsals, and three times the answers
    assert set(seen) == {0o600}


def test_formats_give_the_same_answers(folder: Path) -> None:
    asked = pd.read_csv("queries.csv", dtype=str, keep_default_na=False)
    asked.to_parquet("queries.parquet")
    numbers = asked.assign(age=asked["age"].astype(int)).replace("", None).replace("?", None)
    numbers.to_parquet("numbers.parquet")
    Path("queries.csv.gz").write_bytes(gzip.compress(Path("queries.csv").read_bytes()))
    Path("packed").write_bytes(gzip.compress(Path("queries.parquet").read_bytes()))
    run("predict", "model.json", "queries.csv", "-o", "a.csv")
    wanted = answers_in(folder / "a.csv")
    for name in ("queries.csv.gz", "numbers.parquet"):
        done = run("predict", "model.json", name, "-o", "b.csv", "--force")
        assert done.exit_code == 0, done.stderr
        assert answers_in(folder / "b.csv") == wanted
    for name in ("queries.csv", "queries.parquet", "packed"):
        done = run("predict", "model.json", name, "-o", "b.parquet", "--force")
        assert done.exit_code == 0, done.stderr
        found = pd.read_parquet("b.parquet")
        assert found.drop(columns="answer").astype(str).equals(asked.astype(str))
        # In Parquet a missing cell is a null: the text ? is an unknown category.
        if name == "queries.csv":
            assert found["answer"].tolist() == wanted
    done = run("predict", "model.json", "queries.csv", "-o", "c.csv.gz")
    text = gzip.decompress(Path("c.csv.gz").read_bytes()).decode()
    assert [row[-1] for row in csv.reader(text.splitlines())][1:] == wanted
    done = run("predict", "model.json", "-", given=Path("queries.csv").read_bytes())
    assert [row[-1] for row in csv.reader(done.stdout.splitlines())][1:] == wanted
    piped = run("predict", "model.json", "-", given=Path("numbers.parquet").read_bytes())
    assert [row[-1] for row in csv.reader(piped.stdout.splitlines())][1:] == wanted


def test_a_model_of_python_reads_numbers_in_csv(folder: Path) -> None:
    """Its columns have a type and no declaration: text that says a number is one here as well."""
    rows = np.random.default_rng(0).random((400, 2))
    frame = pd.DataFrame(rows, columns=["a", "b"])
    model = cumae.PrivateBooster(epsilon=50.0, columns={"a": (0, 1)}, delta=1e-6)
    model.fit(frame, frame["b"] > 0.5).save("python.json")
    frame[:20].assign(b=["?", *frame["b"][1:20]]).to_csv("numbers.csv", index=False)
    done = run("predict", "python.json", "numbers.csv", "-o", "a.csv")
    assert done.exit_code == 0, done.stderr
    wanted = model.predict(frame[1:20]).tolist()
    assert answers_in(folder / "a.csv") == ["", *map(str, wanted)]


def test_other_columns_are_copied_and_safe_in_a_spreadsheet(folder: Path) -> None:
    rows = [[*row[:-1], odd] for row, odd in zip(people(4, 3), ODD, strict=True)]
    text = as_csv(rows, [*COLUMNS[:-1], "+note"])
    Path("odd.csv").write_text(text, encoding="utf-8")
    done = run("predict", "model.json", "odd.csv", "-o", "a.csv", "--chances", "--column", "x")
    assert done.exit_code == 0, done.stderr
    with Path("a.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.reader(file))
    assert found[0][6:] == ["'+note", "x", "chance of <=50K", "chance of >50K"]
    assert [row[6] for row in found[1:]] == ["'=1+2", "-1", "'@x", "ok"]
    for row in found[1:]:
        assert float(row[8]) + float(row[9]) == pytest.approx(1.0)
        assert (row[7] == ">50K") == (float(row[9]) > 0.5)


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=SUM(A1)", "'=SUM(A1)"),
        ("+1", "+1"),
        ("-1.5e-3", "-1.5e-3"),
        ("-.5", "-.5"),
        ("-1+cmd", "'-1+cmd"),
        ("@me", "'@me"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_cells_that_spreadsheets_would_run(cell: str, written: str) -> None:
    assert safe_cell(cell) == written


def test_an_unusable_query_has_an_empty_answer(folder: Path) -> None:
    rows = people(5, 3)
    rows[1][0], rows[3][0] = "old", ""
    Path("odd.csv").write_text(without_label(rows), encoding="utf-8")
    for fitted in ("model.json", "oracle.db", "release.db"):
        done = run("predict", fitted, "odd.csv", "-o", "a.csv", "--force")
        assert done.exit_code == 0, done.stderr
        found = answers_in(folder / "a.csv")
        assert [bool(answer) for answer in found] == [True, False, True, False, True]
        assert "2 could not be read, and have an empty answer" in done.stderr
    # Public queries that cannot be read are not paid for; protected ones count like others.
    assert cumae.open("release.db").remaining_ == 97
    assert cumae.open("oracle.db").answered_ == 5


DAMAGE = [
    "1,2,3",
    '"',
    '41,"Private,HS-grad,40,Male,yes',
    "\xff\xfe",
    "",
    "41,\xe4",
    "a,b,c,d,e,f,g,h",
    '"x"y,,,,,',
]


@pytest.mark.claim("FILES")
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_query_changes_nothing_for_the_others(folder: Path, damage: str) -> None:
    """An open quote, too few cells, broken bytes: the line is one unusable query, and no more."""
    lines = Path("queries.csv").read_bytes().splitlines(keepends=True)[:8]
    Path("a.csv").write_bytes(b"".join(lines))
    lines[4] = damage.encode("latin-1") + b"\n"
    Path("b.csv").write_bytes(b"".join(lines))
    first, second = (read_table_file(name, CsvForm(), lenient=True) for name in ("a.csv", "b.csv"))
    assert second.damaged.tolist() == [place == 3 for place in range(7)]
    for name in first.names:
        pairs = zip(first.cells(name), second.cells(name), strict=True)
        assert {place for place, (one, other) in enumerate(pairs) if one != other} <= {3}
    done = run("predict", "oracle.db", "b.csv", "-o", "answers.csv")
    assert done.exit_code == 0, done.stderr
    found = answers_in(folder / "answers.csv")
    assert [place for place, answer in enumerate(found) if answer not in CLASSES] == [3]
    assert cumae.open("oracle.db").answered_ == 7
    # In a file of public queries, or for a model, the row is named and nothing is answered.
    if damage:
        done = run("predict", "model.json", "b.csv")
        assert (done.exit_code, done.stdout) == (ExitCode.REFUSED, "")
        assert "row 4" in done.stderr


@pytest.mark.claim("FILES")
def test_protected_queries_stand_line_by_line_in_every_encoding(folder: Path) -> None:
    text = Path("queries.csv").read_text(encoding="utf-8")
    Path("wide.csv").write_bytes(text.encode("utf-16"))
    done = run("predict", "oracle.db", "wide.csv")
    assert done.exit_code == ExitCode.REFUSED
    assert "each line must stand by itself" in done.stderr
    assert run("predict", "model.json", "wide.csv").exit_code == 0
    lines = text.encode("gbk").splitlines(keepends=True)
    lines[2] = b"\x81\n"  # the first half of a letter
    Path("odd.csv").write_bytes(b"".join(lines))
    done = run("predict", "oracle.db", "odd.csv", "--encoding", "gbk", "-o", "a.csv")
    assert done.exit_code == 0, done.stderr
    assert [place for place, answer in enumerate(answers_in(folder / "a.csv")) if not answer] == [1]


@pytest.mark.claim("FILES")
def test_a_cell_of_a_private_row_is_read_by_itself(folder: Path) -> None:
    rows = people(30, 1)
    columns = read_schema("schema.toml")
    found = []
    for odd in (rows[4], ["=x", "?", "-", "NaN", "", "perhaps", "<=50K"]):
        rows[4] = odd
        Path("a.csv").write_text(as_csv(rows), encoding="utf-8")
        table = read_table_file("a.csv", CsvForm())
        known = columns.columns_for(table.head, "income")
        found.append(known.read(table.features(known.columns).take(np.arange(30))))
    same = np.delete(found[0], 4, axis=0)
    assert np.array_equal(same, np.delete(found[1], 4, axis=0))
    assert np.isnan(found[1][4]).any()


def test_more_queries_than_answers_are_refused_before_any_is_asked(folder: Path) -> None:
    Path("many.csv").write_text(without_label(people(101, 3)), encoding="utf-8")
    done = run("predict", "release.db", "many.csv", "-o", "a.csv")
    assert done.exit_code == ExitCode.REFUSED
    assert "101 queries, but 100 answers are left" in done.stderr
    assert not Path("a.csv").exists()
    assert cumae.open("release.db").remaining_ == 100


def test_a_dry_run_asks_nothing(folder: Path) -> None:
    done = run("predict", "release.db", "queries.csv", "-o", "a.csv", "--dry-run", "--json")
    assert json.loads(done.stdout) == {
        "dry_run": True,
        "out": "a.csv",
        "queries": 60,
        "asked": 60,
        "left": 100,
        "free": False,
    }
    assert not Path("a.csv").exists()
    assert cumae.open("release.db").remaining_ == 100


def test_a_named_request_gets_the_same_answers_again_for_free(folder: Path) -> None:
    words = ["predict", "oracle.db", "queries.csv", "--request", "monday"]
    assert run(*words, "-o", "a.csv").exit_code == 0
    assert run(*words, "-o", "b.csv").exit_code == 0
    assert answers_in(folder / "a.csv") == answers_in(folder / "b.csv")
    assert run(*words).stdout == Path("a.csv").read_text(encoding="utf-8")
    assert cumae.open("oracle.db").answered_ == 60


def test_a_longer_file_is_another_request(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cumae.cli.models.answers.BATCH", 20)
    lines = Path("queries.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("short.csv").write_text("".join(lines[:41]), encoding="utf-8")
    words = ["--request", "monday", "-o"]
    assert run("predict", "oracle.db", "short.csv", *words, "a.csv").exit_code == 0
    done = run("predict", "oracle.db", "queries.csv", *words, "b.csv")
    assert done.exit_code == ExitCode.REFUSED
    assert "Nothing was spent" in " ".join(done.stderr.split())
    assert run("predict", "oracle.db", "short.csv", *words, "c.csv").exit_code == 0
    assert answers_in(folder / "a.csv") == answers_in(folder / "c.csv")
    assert cumae.open("oracle.db").answered_ == 40


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["adult.csv", "--column", "income"], 3, "has a column income already"),
        (["queries.csv", "-o", "model.json"], 3, "model.json is there already"),
        (["other.csv"], 3, "other.csv has no column age"),
        (["queries.csv", "--json"], 2, "name a file with -o"),
    ],
)
def test_what_is_wrong_with_all_queries_is_refused(
    folder: Path, words: list[str], code: int, told: str
) -> None:
    Path("other.csv").write_text("x\n1\n", encoding="utf-8")
    done = run("predict", "model.json", *words)
    assert done.exit_code == code
    assert told in done.output
    done = run("predict", "oracle.db", "queries.csv", "--chances")
    assert done.exit_code == ExitCode.REFUSED
    assert cumae.open("oracle.db").answered_ == 0


SCORE = ["score", "model.json", "test.csv", "--label", "income", "--new-rows"]


def test_a_score_of_private_rows_is_paid_and_says_so(folder: Path) -> None:
    done = run(*SCORE, "--epsilon", "2")
    assert done.exit_code == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert first.startswith("Accuracy: ")
    assert "; always saying " in first
    assert first.count(" %") == first.count(" to ") == 2
    for part in ("balanced accuracy", "auc of >50K", "log loss", "differential privacy"):
        assert part in done.stdout
    assert "Paid: epsilon = 2 for each of these rows" in done.stderr
    noisy = json.loads(run(*SCORE, "--epsilon", "2", "--json").stdout)
    exact = json.loads(run(*SCORE, "--exact", "--json").stdout)
    assert noisy["private"]
    assert noisy["guarantee"]["epsilon"] == 2
    assert not exact["private"]
    assert exact["guarantee"] is None
    accuracy = noisy["overall"]["accuracy"]
    width = accuracy["high"] - accuracy["low"]
    assert abs(noisy["accuracy"] - exact["accuracy"]) < width
    assert abs(noisy["commonest"] - exact["commonest"]) < width
    dry = run(*SCORE, "--epsilon", "2", "--dry-run")
    assert (dry.stdout, "Would be paid" in dry.stderr) == ("", True)
    for wrong in ([], ["--epsilon", "1", "--exact"], ["--exact", "--group", "sex"]):
        assert run(*SCORE, *wrong).exit_code == ExitCode.USAGE
    asked = run(*SCORE[:-1], "--exact")  # new rows, or not?
    assert asked.exit_code == ExitCode.USAGE
    assert "say --new-rows if the model learnt from none" in " ".join(asked.stderr.split())


def test_a_score_of_rows_that_trained_the_model_says_so(folder: Path) -> None:
    done = run(*SCORE[:-1], "--trained-on", "--exact")
    assert "Rows among these trained the model" in done.stdout


def test_a_score_has_subgroups_and_a_picture(folder: Path) -> None:
    more = ["--epsilon", "2", "--delta", "1e-6", "--group", "sex", "--public", "census.csv"]
    words = [*SCORE, *more, "--group-names", "Female,Male", "--plot", "score.svg"]
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    assert "Subgroup Female: " in done.stdout
    assert done.stdout.count("always ") == 4
    assert "<svg" in Path("score.svg").read_text(encoding="utf-8")
    again = run(*words)  # refused before it is paid
    assert (again.exit_code, again.stdout) == (ExitCode.REFUSED, "")
    wrong = run(*SCORE, "--epsilon", "2", "--group", "sex", "--group-names", "Female,Other")
    assert wrong.exit_code == ExitCode.REFUSED
    assert "column sex: the subgroup is none of the classes" in wrong.stderr


def test_a_score_of_an_oracle_spends_answers_if_it_may(folder: Path) -> None:
    words = ["score", "release.db", "queries_with_labels.csv", "--label", "income", "--new-rows"]
    Path(words[2]).write_text(as_csv(people(40, 5)), encoding="utf-8")
    for more in (["--exact"], ["--epsilon", "1", "--spend-answers"]):
        assert run(*words, *more).exit_code == ExitCode.REFUSED
    dry = run(*words, "--exact", "--spend-answers", "--dry-run")
    assert "Would spend 40 answers" in dry.stderr
    assert cumae.open("release.db").remaining_ == 100
    done = run(*words, "--exact", "--spend-answers")
    assert done.exit_code == 0, done.stderr
    assert "Spent 40 answers of the oracle" in done.stderr
    assert done.stdout.startswith("Accuracy: ")
    assert cumae.open("release.db").remaining_ == 60


def test_a_score_names_what_it_cannot_read(folder: Path) -> None:
    rows = people(9, 4)
    rows[5][0] = "4711 old"
    Path("odd.csv").write_text(as_csv(rows), encoding="utf-8")
    done = run(
        "score", "model.json", "odd.csv", "--label", "income", "--epsilon", "1", "--new-rows"
    )
    assert done.exit_code == ExitCode.REFUSED
    assert "odd.csv, row 6 (line 7), column age: no number" in done.stderr
    assert "4711" not in done.output


def test_show_prints_curves_pairs_the_promise_and_the_cost(folder: Path) -> None:
    done = run("show", "model.json", "--plot", "model.svg")
    assert done.exit_code == 0, done.stderr
    shown = " ".join(done.stdout.split())
    for part in ("Promise: (epsilon = ", "Cost: epsilon = ", "log odds of >50K", " and ", "Curves"):
        assert part in shown
    assert any(letter in done.stdout for letter in "▁▂▃▄▅▆▇█")
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert "<svg" in Path("model.svg").read_text(encoding="utf-8")
    facts = json.loads(run("show", "model.json", "--json").stdout)
    assert {len(one["columns"]) for one in facts["effects"]} == {1, 2}
    assert facts["asked"] == {"epsilon": 3.0, "delta": 1e-6}
    assert run("show", "model.json", "--plot", "model.svg").exit_code == ExitCode.REFUSED
    assert run("show", "model.json", "--plot", "model.doc").exit_code == ExitCode.USAGE
    done = run("show", "oracle.db")
    assert "EverlastingPredictor" in done.stdout
    assert json.loads(run("show", "oracle.db", "--json").stdout)["answers"] == 0
    assert run("show", "oracle.db", "--plot", "x.svg").exit_code == ExitCode.REFUSED


def test_an_oracle_is_closed_after_each_command(folder: Path) -> None:
    assert run("predict", "oracle.db", "schema.toml").exit_code == ExitCode.REFUSED
    assert "in use:    no" in run("status", "oracle.db").stdout
    shutil.rmtree("oracle.db.keys")
    assert run("predict", "oracle.db", "queries.csv").exit_code == ExitCode.REFUSED


# What fails must fail before it is paid, and not because of one query


@pytest.mark.claim("FILES")
def test_a_header_does_not_go_on_in_a_query(folder: Path) -> None:
    lines = Path("queries.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    lines[0] = lines[0].replace("citizen", '"citizen')
    told = set()
    for line in (lines[1], 'x"\n', 'secret",age\n'):
        Path("odd.csv").write_text("".join([lines[0], line, *lines[2:]]), encoding="utf-8")
        done = run("predict", "oracle.db", "odd.csv", "-o", "a.csv")
        assert done.exit_code == ExitCode.REFUSED
        told.add(done.stderr)
    assert len(told) == 1
    assert "the header has a quote that is not closed" in told.pop()
    # Nor does that of private rows: what is drafted from it may be shown to others.
    Path("rows.csv").write_text('age,"income\n41,secret"\n', encoding="utf-8")
    done = run("schema", "rows.csv")
    assert done.exit_code == ExitCode.REFUSED
    assert "secret" not in done.output


@pytest.mark.claim("FILES")
@pytest.mark.parametrize(
    ("encoding", "half"), [("utf-7", b"+2AA-"), ("raw_unicode_escape", b"\\ud800")]
)
def test_half_a_letter_is_one_unusable_query(folder: Path, encoding: str, half: bytes) -> None:
    text = without_label([row for row in people(9, 3) if "+" not in "".join(row)])
    lines = text.encode(encoding).splitlines(keepends=True)
    lines[3] = lines[3].replace(lines[3].split(b",")[0], half, 1)
    Path("odd.csv").write_bytes(b"".join(lines))
    done = run("predict", "oracle.db", "odd.csv", "--encoding", encoding, "-o", "a.csv")
    assert done.exit_code == 0, done.stderr
    assert [place for place, answer in enumerate(answers_in(folder / "a.csv")) if not answer] == [2]


def test_a_named_request_is_free_when_no_answer_is_left(folder: Path) -> None:
    Path("all.csv").write_text(without_label(people(100, 3)), encoding="utf-8")
    words = ["predict", "release.db", "all.csv", "--request", "monday"]
    assert run(*words, "-o", "a.csv").exit_code == 0
    done = run(*words, "-o", "b.csv")
    assert done.exit_code == 0, done.stderr
    assert answers_in(folder / "a.csv") == answers_in(folder / "b.csv")
    done = run("predict", "release.db", "queries.csv", "--request", "tuesday", "-o", "c.csv")
    assert done.exit_code == ExitCode.REFUSED
    assert not Path("c.csv").exists()


def test_a_cell_that_is_only_copied_does_not_lose_paid_answers(folder: Path) -> None:
    """Python has no day after the year 9999, but Parquet has."""
    asked = pq.read_table(pa.BufferReader(_as_parquet(60)))
    days = pa.array([10_000_000, *range(59)], pa.date32())
    pq.write_table(asked.append_column("day", days), "odd.parquet")
    done = run("predict", "oracle.db", "odd.parquet", "-o", "a.csv")
    assert done.exit_code == 0, done.stderr
    found = pd.read_csv("a.csv", dtype=str, keep_default_na=False)
    assert found["day"].tolist()[:3] == ["", "1970-01-01", "1970-01-02"]
    assert set(found["answer"]) <= CLASSES


def test_a_folder_of_queries_is_copied_as_it_was_asked(folder: Path) -> None:
    """What else lies in the folder, or in its name, is neither asked nor copied."""
    part = Path("year=2024")
    (part / "more").mkdir(parents=True)
    for name, count in {"a.parquet": 20, "b.parquet": 20, "more/c.parquet": 5, "d.old": 7}.items():
        (part / name).write_bytes(_as_parquet(count))
    for out in ("a.csv", "a.parquet"):
        done = run("predict", "oracle.db", "year=2024", "-o", out)
        assert done.exit_code == 0, done.stderr
    found = pd.read_csv("a.csv", dtype=str)
    assert found.columns.tolist() == [*COLUMNS[:-1], "answer"]
    assert len(found) == len(pd.read_parquet("a.parquet")) == 40
    assert cumae.open("oracle.db").answered_ == 80


def _as_parquet(count: int) -> bytes:
    kept = io.BytesIO()
    pd.DataFrame([row[:-1] for row in people(count, 3)], columns=COLUMNS[:-1]).to_parquet(kept)
    return kept.getvalue()


def test_answers_that_are_true_or_false_fit_into_parquet(folder: Path) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).random((3_000, 1)), columns=["a"])
    oracle = cumae.QueryRelease(
        DecisionTreeClassifier(max_depth=1),
        epsilon=5.0,
        delta=1e-6,
        max_queries=30,
        classes=(False, True),
        columns={"a": (0, 1)},
    )
    oracle.fit(frame, frame["a"] > 0.5).save_to("truth.db")
    frame[:20].to_csv("numbers.csv", index=False)
    done = run("predict", "truth.db", "numbers.csv", "-o", "a.parquet")
    assert done.exit_code == 0, done.stderr
    assert pd.read_parquet("a.parquet")["answer"].dtype == bool


def test_what_finds_no_room_is_not_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is filled by whatever is written; this stands for it, because a test cannot."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(CheckedQueries, "write", full)
    done = run("predict", "release.db", "queries.csv", "-o", "a.csv")
    assert done.exit_code == ExitCode.REFUSED
    assert "a.csv cannot be written: No space left on device" in done.stderr
    assert cumae.open("release.db").remaining_ == 100


@pytest.mark.parametrize("out", ["oracle.db", "release.db"])
def test_force_does_not_overwrite_an_oracle(folder: Path, out: str) -> None:
    before = Path(out).read_bytes()
    shutil.copy(out, "plain.json")
    for words in (
        ["predict", "model.json", "queries.csv", "-o", out],
        ["predict", "release.db", "queries.csv", "-o", out],
        ["fit", "adult.csv", *FIT, "--schema", "schema.toml", "-o", "plain.json"],
    ):
        done = run(*words, "--force")
        assert done.exit_code == ExitCode.REFUSED, words
        assert "never overwritten" in done.stderr
    assert Path(out).read_bytes() == before
