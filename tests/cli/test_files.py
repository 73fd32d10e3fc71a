"""Tables as people have them: what cannot be read is named by file, row and column, never shown."""

from __future__ import annotations

import gzip
import json
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from cumae.cli.app import ExitCode
from cumae.cli.files.csv_text import CsvForm
from cumae.cli.files.tables import read_table_file
from tests.census import FIT, LABEL, as_csv, fill, people, run

MARKED = "4711-marked"
PAIR = "[columns]\nage = {low = 0, high = 99}\njob = ['baker', 'nurse']\n"
GOOD = "age,job,ill\n31,baker,no\n52,nurse,yes\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(PAIR, encoding="utf-8")
    return tmp_path


def checked(content: str | bytes, *more: str) -> tuple[int, str]:
    """Run a fit without paying; return the exit code and what was said, in one line."""
    raw = content.encode() if isinstance(content, str) else content
    Path("rows.csv").write_bytes(raw)
    words = ["--label", "ill", "--classes", "no,yes", "--epsilon", "1", "--delta", "1e-6"]
    words += ["--schema", "schema.toml", "--model", "kernel", "-o", "m.json", "--dry-run"]
    done = run("fit", "rows.csv", *words, *more)
    assert not Path("m.json").exists()
    assert MARKED not in done.output
    return done.exit_code, " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "rows.csv is empty"),
        ("\n\n", "rows.csv is empty"),
        ("age,job,ill\n", "rows.csv has a header, but no rows"),
        ("age,age,ill\n1,2,no\n", "rows.csv has several columns named age"),
        (",age,ill\n0,1,no\n", "column 1 has no name"),
        ("age,job\n31,baker\n", "rows.csv has no column ill, which --label names; it has age, job"),
        (GOOD + f"7,{MARKED},no,1\n", "row 3 (line 4) has 4 cells, but the header has 3"),
        (GOOD + f'7,"{MARKED},no\n', "row 3 (line 4) has a quote that is not closed"),
        (GOOD + f"7,baker,{MARKED}\n", "row 3 (line 4), column ill: the label is none of the"),
        (GOOD + "7,baker,\n", "row 3 (line 4), column ill: the label is missing"),
        (GOOD + f"{MARKED},baker,no\n", "row 3 (line 4), column age: no number"),
        (GOOD + "?,baker,no\n", "row 3 (line 4), column age: missing value. Declare missing"),
        (GOOD + "1e999,baker,no\n", "row 3 (line 4), column age: infinite value"),
        ("age,job,ill\n31,Baker,no\n52,Nurse,yes\n", "column job of rows.csv has no cell that"),
        ("age,job,ill\n5e3,baker,no\n6e3,nurse,yes\n", "rows.csv has no cell within its declared"),
        ("age,job,ill,zip\n31,baker,no,1\n", 'zip = "COMPLETE"'),
        ("age,ill\n31,no\n", "schema.toml declares job, but rows.csv has age, ill"),
        (GOOD.encode() + b"7,b\xe4ker,no\n", "row 3 (line 4), column job, is not written in UTF-8"),
        (b"age,job,ill\n31,baker,n\xf6\n", "with --encoding, such as latin-1"),
        (b"\x1f\x8b\x08\x00broken", "was packed by gzip, and is damaged"),
        (b"PAR1broken", "no Parquet file"),
    ],
)
def test_what_cannot_be_read_is_named(here: Path, content: str | bytes, told: str) -> None:
    code, said = checked(content)
    assert code == ExitCode.REFUSED
    assert told in said


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff" + GOOD,
        GOOD.encode("utf-16"),
        GOOD.replace("\n", "\r\n"),
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        GOOD + "\n\n",
        "age , job, ill\n 31, baker, no\n52 , nurse,yes \n",
        '"age","job","ill"\n31,"baker","no"\n"52","nurse","yes"\n',
        gzip.compress(GOOD.encode(), mtime=0),
    ],
)
def test_what_is_read_without_a_word(here: Path, content: str | bytes) -> None:
    code, said = checked(content)
    read, _, rest = said.partition(" Careful: No route can rank with so few rows")  # two of them
    assert (code, read) == (ExitCode.OK, "Reading rows.csv ...")
    assert rest


def test_other_encodings_and_separators(here: Path) -> None:
    (here / "schema.toml").write_text(PAIR.replace("nurse", "Bäcker"), encoding="utf-8")
    content = GOOD.replace("nurse", "Bäcker").encode("latin-1")
    assert checked(content)[0] == ExitCode.REFUSED
    assert checked(content, "--encoding", "latin-1")[0] == ExitCode.OK
    assert checked(GOOD, "--encoding", "klingon")[0] == ExitCode.USAGE
    assert checked(GOOD.replace(",", "#"), "--separator", "#")[0] == ExitCode.OK
    assert checked(GOOD, "--separator", ",,")[0] == ExitCode.USAGE


def test_quoted_newlines_are_cells_and_rows_are_counted_right(here: Path) -> None:
    schema = PAIR.replace("'nurse'", "'nurse', 'night\\nnurse'").replace("'night", '"night')
    (here / "schema.toml").write_text(schema.replace("nurse']", 'nurse"]'), encoding="utf-8")
    content = 'age,job,ill\n31,"night\nnurse",no\n52,nurse,yes\nold,baker,no\n'
    code, said = checked(content)
    assert code == ExitCode.REFUSED
    assert "row 3 (line 5), column age: no number" in said


def test_no_cell_decides_how_others_are_read(here: Path) -> None:
    """One text in a column of numbers, and pandas would read all of them as text."""
    rows = [[str(age), "baker", "no"] for age in range(20, 90)]
    names = ["age", "job", "ill"]
    (here / "a.csv").write_text(as_csv(rows, names), encoding="utf-8")
    rows[3] = ["031.0", "007", "maybe"]
    (here / "b.csv").write_text(as_csv(rows, names), encoding="utf-8")
    first, second = (read_table_file(name, CsvForm()) for name in ("a.csv", "b.csv"))
    assert first.rows.kinds == second.rows.kinds == ["text"] * 3
    for name in names:
        pairs = zip(first.cells(name), second.cells(name), strict=True)
        assert [place for place, (one, other) in enumerate(pairs) if one != other] in ([3], [])
    assert first.cells("age")[0] == "20"


def test_a_missing_cell_is_known_by_its_text_unless_it_is_a_category(here: Path) -> None:
    (here / "schema.toml").write_text(
        "[columns]\nage = {low = 0, high = 99, missing = true}\n"
        "land = {categories = ['NA', 'DE'], missing = true}\n",
        encoding="utf-8",
    )
    code, _ = checked("age,land,ill\n31,NA,no\n?,DE,yes\nNA,?,yes\n,,no\n")
    assert code == ExitCode.OK
    from cumae.cli.files.schemas import read_schema

    table = read_table_file("rows.csv", CsvForm())
    columns = read_schema("schema.toml").columns_for(table.head, "ill")
    found = table.features(columns.columns).take(range(4))  # type: ignore[arg-type]
    assert columns.encode(found).tolist() == [
        # age, missing, DE, missing
        [31.0, 0.0, 0.0, 0.0],
        [49.5, 1.0, 1.0, 0.0],
        [49.5, 1.0, 0.0, 1.0],
        [49.5, 1.0, 0.0, 1.0],
    ]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("[columns]\nage = 'COMPLETE'\njob = ['a', 'b']\n", "complete the line of age"),
        ("[columns]\nage = {lo = 1, high = 2}\n", "schema.toml: age has another form"),
        ("[columns]\nage = {low = 9, high = 2}\njob = ['a', 'b']\n", "lower bound is not below"),
        ("[columns]\nage = {boolean = false}\n", "schema.toml: age has another form"),
        ("[columns]\nage = 3\n", "schema.toml: age has another form"),
        ("age = 3\n", "must have the table [columns]"),
        ("[columns\n", "schema.toml is no schema in TOML"),
        ("[columns]\nage = 'leave out'\njob = 'leave out'\n", "leaves out all columns"),
        ("[columns]\nage = {first = 'x', last = 'y'}\njob = ['a', 'b']\n", "cannot be read"),
    ],
)
def test_a_wrong_schema_is_named(here: Path, schema: str, told: str) -> None:
    (here / "schema.toml").write_text(schema, encoding="utf-8")
    code, said = checked(GOOD)
    assert code == ExitCode.REFUSED
    assert told in said


def test_one_message_names_all_columns_with_unusable_cells(here: Path) -> None:
    (here / "schema.toml").write_text(
        "[columns]\na = {low = 0, high = 9}\nb = {low = 0, high = 9}\nc = {boolean = true}\n",
        encoding="utf-8",
    )
    code, said = checked("a,b,c,ill\n1,2,yes,no\n,?,no,yes\n,2,perhaps,no\n")
    assert code == ExitCode.REFUSED
    for place in ("row 2 (line 3), column a: missing value", "row 2 (line 3), column b: missing"):
        assert place in said
    assert "row 3 (line 4), column c: neither yes nor no" in said


def test_all_forms_of_a_schema(here: Path) -> None:
    (here / "schema.toml").write_text(
        "[columns]\n"
        "a = {low = 0, high = 1.5, missing = true}\nb = {low = 0, high = 9, step = 1}\n"
        "c = {numbers = true}\nd = {numbers = true, missing = true}\n"
        "e = {categories = [1, 2, 3]}\nf = ['x', 'y']\ng = {boolean = true, missing = true}\n"
        "h = {since = 2020-01-01}\ni = {first = 2020-01-01, last = '2021-01-01', missing = true}\n"
        "'j k' = 'leave out'\n",
        encoding="utf-8",
    )
    head = "a,b,c,d,e,f,g,h,i,j k,ill\n"
    row = "1,2,3e3,,2,x,yes,2020-02-29,2020-03-01,Ann,no\n,9,-1,5,3,y,,2021-01-01,,Ben,yes\n"
    assert checked(head + 1_000 * row) == (ExitCode.OK, "Reading rows.csv ...")  # ranges need rows


def test_parquet_needs_declarations_only_where_its_types_say_too_little(here: Path) -> None:
    rows = pd.DataFrame({"age": [31.0, 52.0], "member": [True, False], "ill": ["no", "yes"]})
    rows = pd.concat([rows] * 500, ignore_index=True)  # to find a range takes some
    rows.to_parquet(here / "rows.parquet")
    words = ["--epsilon", "1", "--delta", "1e-6", "-o", "m.json", "--dry-run", "--model", "kernel"]
    run_it = ["fit", "rows.parquet", "--label", "ill", "--classes", "no,yes", *words]
    assert run(*run_it).exit_code == ExitCode.OK
    rows.assign(job="baker").to_parquet(here / "rows.parquet")
    done = run(*run_it)
    assert done.exit_code == ExitCode.REFUSED
    assert "draft a schema with `cumae schema rows.parquet --label" in done.stderr
    numbered = rows.assign(ill=(rows["ill"] == "yes").astype(int))
    numbered.to_parquet(here / "rows.parquet")
    done = run("fit", "rows.parquet", "--label", "ill", "--classes", "0,1", *words)
    assert done.exit_code == ExitCode.OK
    done = run(*run_it)
    assert done.exit_code == ExitCode.REFUSED
    assert "column ill holds numbers by its type" in done.stderr


def test_files_that_are_not_there(here: Path) -> None:
    words = ["--label", "ill", "--classes", "no,yes", "--epsilon", "1", "--delta", "1e-6"]
    done = run("fit", "nothing.csv", *words, "--schema", "schema.toml", "-o", "m.json")
    assert (done.exit_code, "there is no file nothing.csv" in done.stderr) == (3, True)
    (here / "rows.csv").write_text(GOOD, encoding="utf-8")
    done = run("fit", "rows.csv", *words, "--schema", "nothing.toml", "-o", "m.json")
    assert (done.exit_code, "there is no file nothing.toml" in done.stderr) == (3, True)
    (here / "empty").mkdir()
    done = run("fit", "empty", *words, "-o", "m.json")
    assert (done.exit_code, "no *.parquet file" in done.stderr) == (3, True)
    for command in (["predict", "nothing.json", "rows.csv"], ["show", "nothing.json"]):
        done = run(*command)
        assert (done.exit_code, "there is no file nothing.json" in done.stderr) == (3, True)
    done = run("show", "rows.csv")
    assert (done.exit_code, "neither a model nor an oracle" in done.stderr) == (3, True)


def test_what_fit_wrote_is_no_table(here: Path) -> None:
    words = ["--label", "ill", "--classes", "no,yes", "--epsilon", "1", "--delta", "1e-6"]
    (here / "m.json").write_text('{"format": 5}', encoding="utf-8")
    (here / "o.db").write_bytes(b"SQLite format 3\0and pages")
    for name, told in (("m.json", "m.json is a file of JSON"), ("o.db", "o.db is an oracle")):
        done = run("fit", name, *words, "--schema", "schema.toml", "-o", "new.json")
        assert (done.exit_code, told in done.stderr) == (ExitCode.REFUSED, True)


def test_a_draft_knows_the_encoding_that_was_given(here: Path) -> None:
    (here / "rows.csv").write_bytes("Gr\u00f6\u00dfe;ill\n1;no\n".encode("latin-1"))
    done = run("schema", "rows.csv", "--label", "ill")
    assert "rows.csv, the header, is not written in UTF-8" in done.stderr
    options = ["--encoding", "latin-1", "--separator", ";", "-o", "new.toml"]
    assert run("schema", "rows.csv", "--label", "ill", *options).exit_code == ExitCode.OK
    found = tomllib.loads((here / "new.toml").read_text(encoding="utf-8"))
    assert found["file"] == {"encoding": "latin-1", "separator": ";"}


def test_a_draft_from_the_header_looks_at_no_row(here: Path) -> None:
    """Rows that nobody could read make no difference."""
    (here / "a.csv").write_bytes(GOOD.encode())
    (here / "b.csv").write_bytes(b'age,job,ill\n"\xff\xfe\x00,,,,,\n')
    drafts = []
    for name in ("a.csv", "b.csv"):
        done = run("schema", name, "--label", "ill", "-o", "draft.toml", "--force")
        assert done.exit_code == 0, done.stderr
        text = (here / "draft.toml").read_text(encoding="utf-8")
        drafts.append(text.replace(name, "rows.csv"))
        assert "No private row was read" in done.stderr
        assert "Complete the 2 lines" in done.stderr
    assert drafts[0] == drafts[1]
    assert 'age = "COMPLETE"' in drafts[0]
    assert "ill =" not in drafts[0]
    assert "one person's cell" in " ".join(drafts[0].split())
    assert run("schema", "a.csv", "--label", "nothing").exit_code == ExitCode.REFUSED
    assert run("schema", "a.csv", "--public", "a.csv").exit_code == ExitCode.REFUSED
    assert run("schema", "-", given=GOOD).stdout.count('"COMPLETE"') == 3


def test_a_draft_from_public_rows_can_be_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fill(tmp_path, 300))
    done = run("schema", "adult.csv", "--label", LABEL, "--public", "census.csv", "-o", "s.toml")
    assert done.exit_code == 0, done.stderr
    text = Path("s.toml").read_text(encoding="utf-8")
    assert "COMPLETE" not in text
    assert "age              = {low = 17, high = 90, step = 1}" in text
    assert '{categories = ["Private", "Self-emp", "State-gov"], missing = true}' in text
    assert r'"Doctorate (\"PhD\")"' in text
    assert '"hours per week" = {low = 10, high = 79, step = 1, missing = true}' in text
    assert "citizen          = {boolean = true}" in text
    for schema in (["--schema", "s.toml"], ["--public", "census.csv"]):
        done = run("fit", "adult.csv", *FIT, *schema, "-o", "m.json", "--dry-run", "--json")
        assert done.exit_code == 0, done.stderr
        assert json.loads(done.stdout)["columns"] == 6


def test_what_public_rows_cannot_say_is_left_to_complete(here: Path) -> None:
    names = ["id", "same", "day", "when", "flag", "gone", "ratio", "ill"]
    rows = [
        [f"p{i}", "x", f"2024-01-{i % 28 + 1:02}", "soon", str(i % 2 == 0), "?", f"{i}.5", "no"]
        for i in range(70)
    ]
    (here / "public.csv").write_text(as_csv(rows, names), encoding="utf-8")
    (here / "rows.csv").write_text(",".join(["new", *names]) + "\n", encoding="utf-8")
    text = run("schema", "rows.csv", "--label", "ill", "--public", "public.csv").stdout
    lines = dict(line.split(" = ", 1) for line in text.splitlines() if line[:1].isalpha())
    found = {name.strip(): value for name, value in lines.items() if name.strip() != "[columns]"}
    assert found["new"] == found["gone"].split("  ")[0] == '"COMPLETE"'
    assert found["id"].startswith('"COMPLETE"  # 70 different values')
    assert found["same"].startswith('"leave out"')
    assert found["day"].startswith("{first = 2024-01-01, last = 2024-01-29}")
    assert found["flag"] == "{boolean = true}"
    assert found["ratio"].startswith("{low = 0.5, high = 69.5}")


def test_the_census_is_like_real_ones() -> None:
    text = as_csv(people(100, 1))
    assert '"Some college, no degree"' in text
    assert ",?," in text
    assert '"Doctorate (""PhD"")"' in text
