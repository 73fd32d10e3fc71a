"""Every algorithm of the papers can be asked for by name, and its answers are right."""

from __future__ import annotations

import csv
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import cumae
from cumae.arrays import Floats, Integers
from cumae.cli.app import ExitCode
from cumae.cli.models.algorithms import ALGORITHMS, BASES, AlgorithmName, parsed
from tests.census import run

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(5)
WORDS = ["--label", "sick", "--classes", "no,yes", "--schema", "schema.toml"]
# What each needs to be right here, beside rows: epsilon, and the number of rows.
NEEDS = {
    AlgorithmName.LABEL_BOOST: ("4", 2_000),
    AlgorithmName.ITER_LABEL_BOOST: ("6", 2_000),
    AlgorithmName.QUERY: ("5", 4_000),
    AlgorithmName.AGNOSTIC: ("8", 8_000),
    AlgorithmName.UNIVERSAL: ("8", 4_000),
    AlgorithmName.BBL: ("8", 8_000),
}


def write(path: str, rows: int, *, labelled: bool = False, grid: int | None = None) -> None:
    """Write ages, and who is sick: everybody above 60."""
    ages = RNG.random(rows) * 100 if grid is None else np.arange(grid) * 100 / grid
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "sick"] if labelled else ["age"])
        for age in ages:
            writer.writerow([f"{age:.2f}", *([["no", "yes"][int(age > 60)]] * labelled)])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text("[columns]\nage = {low = 0, high = 100}\n", encoding="utf-8")
    write("public.csv", 0, grid=50)
    return tmp_path


@pytest.mark.parametrize("name", AlgorithmName)
def test_an_algorithm_is_fitted_and_answers(here: Path, name: AlgorithmName) -> None:
    del here
    known = ALGORITHMS[name]
    epsilon, rows = NEEDS.get(name, ("4", 1_000))
    write("rows.csv", rows, labelled=True)
    out = "oracle.db" if known.oracle else "model.json"
    more = ["--epsilon", epsilon, "--delta", "1e-6" if known.oracle else "0", "-o", out]
    more += ["--public", "public.csv"] * known.public
    if known.unlabelled:
        write("others.csv", 3_000)
        more += ["--unlabelled", "others.csv"]
    if name in (AlgorithmName.QUERY, AlgorithmName.AGNOSTIC):
        more += ["--max-queries", "60"]
    words = ["--algorithm", name.value, "--concept", "thresholds"]
    done = run("fit", "rows.csv", *WORDS, *words, *more)
    assert done.exit_code == 0, done.stderr
    assert known.kind in " ".join(done.stdout.split())
    done = run("predict", out, "public.csv", "-o", "answers.csv")
    assert done.exit_code == 0, done.stderr
    with Path("answers.csv").open(encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    right = [(float(one["age"]) > 60) == (one["answer"] == "yes") for one in found]
    assert np.mean(right) >= 0.9
    if not known.oracle:
        assert cumae.learners.base.Learner.load("model.json").guarantee_.epsilon <= float(epsilon)


@pytest.mark.parametrize("concept", ["boxes", "halfspaces"])
@pytest.mark.parametrize("name", ["agnostic", "bbl", "label-boost"])
def test_classes_of_two_columns_by_public_candidates(here: Path, name: str, concept: str) -> None:
    rows = np.random.default_rng(1).random((12_000, 2))
    asked = np.random.default_rng(2).random((100, 2))

    def labels(table: Floats) -> Integers:
        if concept == "boxes":
            return np.asarray(((table > 0.2) & (table < 0.9)).all(axis=1), dtype=np.int64)
        return np.asarray(table.sum(axis=1) > 0.9, dtype=np.int64)

    told = np.array(["no", "yes"])[labels(rows)]
    lines = [f"{a:.3f},{b:.3f},{end}" for (a, b), end in zip(rows.tolist(), told, strict=True)]
    (here / "rows.csv").write_text("\n".join(["a,b,sick", *lines]) + "\n", encoding="utf-8")
    lines = [f"{a:.3f},{b:.3f}" for a, b in asked.tolist()]
    (here / "asked.csv").write_text("\n".join(["a,b", *lines]) + "\n", encoding="utf-8")
    schema = "[columns]\na = {low = 0, high = 1}\nb = {low = 0, high = 1}\n"
    (here / "schema.toml").write_text(schema, encoding="utf-8")
    more = ["--epsilon", "8", "--delta", "0", "-o", "model.json"]
    if name == "label-boost":
        (here / "others.csv").write_text("\n".join(["a,b", *lines * 60]) + "\n", encoding="utf-8")
        more += ["--unlabelled", "others.csv"]
    else:
        more = ["--epsilon", "8", "--delta", "1e-6", "-o", "oracle.db"]
        more += ["--max-queries", "100"] * (name == "agnostic")
    words = ["--algorithm", name, "--concept", concept]
    done = run("fit", "rows.csv", *WORDS, *words, *more)
    assert done.exit_code == 0, done.stderr
    done = run("predict", more[5], "asked.csv", "-o", "out.csv")
    assert done.exit_code == 0, done.stderr
    with Path("out.csv").open(encoding="utf-8") as file:
        found = [one["answer"] == "yes" for one in csv.DictReader(file)]
    assert np.mean(found == labels(asked).astype(bool)) >= 0.85


@pytest.mark.parametrize(
    ("concept", "label"),
    [
        ("conjunctions", lambda bits: bits[0] and not bits[2]),
        ("parities", lambda bits: bits[0] ^ bits[1]),
        ("stumps", lambda bits: bits[1]),
        ("trees", lambda bits: bits[1] and bits[2]),
    ],
)
def test_classes_over_columns_of_text_that_says_yes_or_no(
    here: Path, concept: str, label: Callable[[tuple[bool, ...]], bool]
) -> None:
    bits = (np.random.default_rng(0).random((800, 3)) < 0.5).tolist()
    told = [["no", "yes"][label(row)] for row in bits]
    cells = [["NJ"[one] for one in row] + [end] for row, end in zip(bits, told, strict=True)]
    text = "\n".join(["a,b,c,sick", *map(",".join, cells)])
    (here / "rows.csv").write_text(text + "\n", encoding="utf-8")
    columns = "".join(f'{name} = {{yes = "J", no = "N"}}\n' for name in "abc")
    (here / "schema.toml").write_text("[columns]\n" + columns, encoding="utf-8")
    words = ["--algorithm", "learner", "--concept", concept, "--epsilon", "4", "--delta", "0"]
    done = run("fit", "rows.csv", *WORDS, *words, "-o", "model.json")
    assert done.exit_code == 0, done.stderr
    (here / "asked.csv").write_text("a,b,c\nJ,N,N\nN,J,J\nJ,J,J\nN,N,N\n", encoding="utf-8")
    done = run("predict", "model.json", "asked.csv", "-o", "answers.csv")
    assert done.exit_code == 0, done.stderr
    asked = [(True, False, False), (False, True, True), (True, True, True), (False, False, False)]
    with Path("answers.csv").open(encoding="utf-8") as file:
        found = [one["answer"] for one in csv.DictReader(file)]
    assert found == [["no", "yes"][label(row)] for row in asked]


def test_random_sets_learn_a_point_among_long_numbers(here: Path) -> None:
    lines = ["age,sick", *["7,yes"] * 300, *(f"{number},no" for number in range(1_000, 1_300))]
    (here / "rows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (here / "schema.toml").write_text("[columns]\nage = {numbers = true}\n", encoding="utf-8")
    words = ["--algorithm", "learner", "--concept", "random-sets", "--epsilon", "4", "--delta", "0"]
    done = run("fit", "rows.csv", *WORDS, *words, "-o", "model.json")
    assert done.exit_code == 0, done.stderr
    (here / "asked.csv").write_text("age\n7\n", encoding="utf-8")
    done = run("predict", "model.json", "asked.csv", "-o", "answers.csv")
    assert done.exit_code == 0, done.stderr
    with Path("answers.csv").open(encoding="utf-8") as file:
        assert [one["answer"] for one in csv.DictReader(file)] == ["yes"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--concept", "boxes"], "give it with --algorithm"),
        (["--set", "alpha=0.1"], "give it with --algorithm"),
        (["--unlabelled", "others.csv"], "give it with --algorithm"),
        (["--algorithm", "generic", "--model", "kernel"], "leave it out beside --algorithm"),
        (["--algorithm", "generic", "--route", "publish"], "leave it out beside --algorithm"),
        (["--algorithm", "semi-private"], "semi-private needs public rows"),
        (["--algorithm", "learner", "--unlabelled", "others.csv"], "takes no rows without labels"),
        (["--algorithm", "generic", "--unlabelled", "rows.csv"], "is DATA itself"),
        (["--algorithm", "generic", "--unlabelled", "-"], "read from a file"),
        (["--algorithm", "generic", "--set", "alpha"], "has no name and value"),
        (["--algorithm", "generic", "--set", "alpa=1"], "generic has no such parameter"),
        (["--algorithm", "generic", "--set", "epsilon=9"], "generic has no such parameter"),
        (["--algorithm", "generic", "--unlabelled", "wrong.csv"], "has no column age, which the"),
        (["--algorithm", "bbl"], "would be an oracle"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_payment(
    here: Path, words: list[str], said: str
) -> None:
    write("rows.csv", 50, labelled=True)
    write("others.csv", 50)
    Path("wrong.csv").write_text("height\n1\n", encoding="utf-8")
    more = ["--epsilon", "1", "--delta", "0", "-o", "model.json"]
    done = run("fit", "rows.csv", *WORDS, *more, *words)
    assert done.exit_code in (2, ExitCode.REFUSED)
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert not (here / "model.json").exists()


def test_a_parameter_is_set_by_its_name(here: Path) -> None:
    del here
    write("rows.csv", 500, labelled=True)
    more = ["--epsilon", "1", "--delta", "0", "-o", "model.json", "--set", "n_points=7"]
    done = run("fit", "rows.csv", *WORDS, *more, "--algorithm", "learner")
    assert done.exit_code == 0, done.stderr
    assert cumae.learners.base.Learner.load("model.json").get_params()["n_points"] == 7
    assert parsed(["a=[1, 2]", "b=x=y"]) == {"a": [1, 2], "b": "x=y"}


def test_a_dry_run_counts_rows_without_labels(here: Path) -> None:
    write("rows.csv", 200, labelled=True)
    write("others.csv", 5_000)
    more = ["--epsilon", "1", "--delta", "0", "-o", "model.json", "--dry-run"]
    words = ["--algorithm", "generic", "--concept", "thresholds", "--unlabelled", "others.csv"]
    done = run("fit", "rows.csv", *WORDS, *more, *words)
    assert done.exit_code == 0, done.stderr
    assert "5,200 private rows" in done.stdout
    assert not (here / "model.json").exists()


def test_bases_and_algorithms_are_classes_of_cumae() -> None:
    assert set(ALGORITHMS) == set(AlgorithmName)
    kinds = [known.kind for known in ALGORITHMS.values()] + [kind for kind, _ in BASES.values()]
    assert set(kinds) <= set(cumae.__all__)


def test_rows_to_label_are_drawn_labelled_and_learnt_from(here: Path) -> None:
    write("patients.csv", 3_000)
    words = ["--labels", "500", "--label", "sick", "-o", "to_label.csv", "--rest", "others.csv"]
    done = run("select", "patients.csv", *words)
    assert done.exit_code == 0, done.stderr
    header, *rows = (here / "to_label.csv").read_text(encoding="utf-8").splitlines()
    _, *others = (here / "others.csv").read_text(encoding="utf-8").splitlines()
    _, *all_rows = (here / "patients.csv").read_text(encoding="utf-8").splitlines()
    assert header == "age,sick"
    assert sorted([row.rstrip(",") for row in rows] + others) == sorted(all_rows)
    assert len(rows) == 500
    for name in ("to_label.csv", "others.csv"):
        assert stat.S_IMODE((here / name).stat().st_mode) == 0o600
    told = [f"{row}{'yes' if float(row.rstrip(',')) > 60 else 'no'}" for row in rows]
    Path("labelled.csv").write_text("\n".join([header, *told]) + "\n", encoding="utf-8")
    more = ["--unlabelled", "others.csv", "--algorithm", "generic", "--concept", "thresholds"]
    more += ["--epsilon", "2", "--delta", "0", "-o", "model.json"]
    done = run("fit", "labelled.csv", *WORDS, *more)
    assert done.exit_code == 0, done.stderr
    # Others are drawn the next time.
    assert run("select", "patients.csv", *words, "--force").exit_code == 0
    assert (here / "to_label.csv").read_text(encoding="utf-8").splitlines()[1:] != rows


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--labels", "50", "--label", "sick", "--rest", "rest.csv"], "then buy all"),
        (["--labels", "9", "--label", "age", "--rest", "rest.csv"], "has a column age already"),
        (["--labels", "9", "--label", "sick", "--rest", "out.csv"], "is the file of -o as well"),
    ],
)
def test_a_selection_that_cannot_be_is_refused(here: Path, words: list[str], said: str) -> None:
    del here
    write("patients.csv", 50)
    done = run("select", "patients.csv", "-o", "out.csv", *words)
    assert done.exit_code in (2, ExitCode.REFUSED)
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert not Path("out.csv").exists()
    assert not Path("rest.csv").exists()
