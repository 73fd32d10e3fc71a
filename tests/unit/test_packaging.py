"""What is shipped: wheel and source distribution work in an environment with nothing else."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import cumae
from tests.census import answers_in, commands_in, completed, fill, people

ROOT = Path(__file__).parents[2]
DATA = "cumae/datasets/data/brfss_highbp.csv.gz"
FORECASTS = "cumae/planning/forecasts.json"
RARE = "cumae/planning/rare.json"
PAGES = {f"cumae/serve/pages/{name}" for name in ("templates/base.html", "static/style.css")}
PAGES.add("cumae/proofs/PAGES.md")
# What an environment without extras must do without, although these tests have it.
ABSENT = (
    *("apsw", "cryptography", "dask", "dp_accounting", "hatchling", "matplotlib", "opendp"),
    *("jinja2", "orjson", "polars", "psycopg", "pyarrow", "pytest", "starlette", "uvicorn"),
)


def build(folder: Path, out: Path, *more: str) -> None:
    words = [sys.executable, "-m", "hatchling", "build", "--directory", str(out), *more]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a wheel and a source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder)
    return folder


def wheel_in(folder: Path) -> Path:
    (wheel,) = folder.glob("*.whl")
    return wheel


def distribution_of(wheel: Path) -> metadata.Distribution:
    """Return what a wheel says about itself."""
    (name,) = {
        one.split("/")[0] for one in zipfile.ZipFile(wheel).namelist() if ".dist-info" in one
    }
    return metadata.PathDistribution(zipfile.Path(wheel, f"{name}/"))


def needed_by(found: metadata.Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    for line in found.requires or []:
        wanted = Requirement(line)
        if wanted.marker is None or any(
            wanted.marker.evaluate({"extra": extra}) for extra in extras | {""}
        ):
            yield wanted


def closure(wheel: Path) -> dict[str, metadata.Distribution]:
    """Return the distributions that a wheel declares, and what these declare, and so on."""
    found: dict[str, metadata.Distribution] = {}
    waiting = list(needed_by(distribution_of(wheel), frozenset()))
    while waiting:
        wanted = waiting.pop()
        if wanted.name not in found or wanted.extras:
            found[wanted.name] = metadata.distribution(wanted.name)
            waiting += needed_by(found[wanted.name], frozenset(wanted.extras))
    return found


@dataclass(frozen=True)
class Clean:
    """An environment that holds cumae and what its wheel declares; it knows no git.

    Parameters
    ----------
    folder : Path
        Where the environment is.
    work : Path
        Where commands run.
    """

    folder: Path
    work: Path

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command of the environment, and return what it printed."""
        home, path = str(self.work), str(self.folder / "bin")
        assert shutil.which("git", path=path) is None
        program = str(self.folder / "bin" / words[0])
        env = {"PATH": path, "HOME": home, "COLUMNS": "500", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [program, *words[1:]], cwd=home, env=env, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        assert done.returncode == code, said
        return said


@pytest.fixture(scope="module")
def clean(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Clean:
    """Make the environment: declared packages are links to those of the tests, and no other."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for found in closure(wheel_in(dist)).values():
        tops = {path.parts[0] for path in found.files or []}
        for top in tops - {"..", "__pycache__", "bin"}:
            (site / top).symlink_to(Path(str(found.locate_file(top))))
    # pip compares versions with what is declared, and must not fetch anything.
    pip = [sys.executable, "-m", "pip", "--python", str(folder), "install", "--no-index"]
    words = [*pip, "--disable-pip-version-check", str(wheel_in(dist))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    work = fill(tmp_path_factory.mktemp("work"), 4_000)
    work.joinpath("schema.toml").unlink()
    return Clean(folder, work)


@pytest.fixture(scope="module")
def asked(clean: Clean) -> Path:
    """Run the five commands of the command line's page, and return the folder."""
    for line in commands_in("docs/command_line.md"):
        clean.run(*shlex.split(line))
        if " schema " in line:
            draft = clean.work / "schema.toml"
            draft.write_text(completed(draft.read_text(encoding="utf-8")), encoding="utf-8")
    return clean.work


def test_the_bundled_data_are_in_the_wheel_and_the_source_distribution(dist: Path) -> None:
    with zipfile.ZipFile(wheel_in(dist)) as archive:
        assert {DATA, FORECASTS, RARE, "cumae/py.typed"} | PAGES <= set(archive.namelist())
        assert {name.split("/")[0].split("-")[0] for name in archive.namelist()} == {"cumae"}
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{DATA}", "LICENSE", "requirements.lock", "tools/claims.py"} <= names


def test_the_source_distribution_makes_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    (source,) = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    build(folder, tmp_path / "again", "--target", "wheel")
    first, second = (zipfile.ZipFile(wheel_in(one)) for one in (dist, tmp_path / "again"))
    assert sorted(first.namelist()) == sorted(second.namelist())
    for name in first.namelist():
        assert first.read(name) == second.read(name), name


def test_the_version_stands_in_one_place(dist: Path) -> None:
    assert distribution_of(wheel_in(dist)).version == cumae.__version__
    assert cumae.__version__ not in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_environment_has_nothing_that_is_not_declared(clean: Clean) -> None:
    work = f"import importlib.util as u; print([n for n in {ABSENT} if u.find_spec(n)])"
    assert clean.run("python", "-c", work).strip() == "[]"
    assert clean.run("cumae", "--version") == f"cumae {cumae.__version__}\n"


def test_five_commands_from_a_wheel_to_a_private_model_of_a_csv_file(asked: Path) -> None:
    right = [row[-1] for row in people(60, 3)]
    found = answers_in(asked / "answers.csv")
    assert sum(one == other for one, other in zip(found, right, strict=True)) > 36


def test_every_name_is_there_without_extras_and_models_are_fitted(clean: Clean) -> None:
    work = """
import cumae, numpy as np, pandas as pd
[getattr(cumae, name) for name in cumae.__all__]
X = pd.DataFrame({"a": np.arange(400.0) % 10, "b": ["x", "y"] * 200})
columns = {"a": (0, 9), "b": ["x", "y"]}
model = cumae.PrivateLogisticRegression(epsilon=5.0, delta=1e-6, columns=columns)
print(len(model.fit(X, X["a"] > 4).predict(X[:2])), "answers")
try:
    model.fit(X, object())
except cumae.InvalidData as error:
    print(error)
"""
    said = clean.run("python", "-c", work)
    assert "2 answers" in said
    assert "y of type object cannot be used" in said


LACKING = {
    "cumae.ParquetRows('rows.parquet')": ("Parquet files", "pyarrow", "parquet"),
    "model.plot()": ("pictures", "matplotlib", "plot"),
    "model.save_to('model.db')": ("durable oracles and accounts", "apsw", "store"),
    "cumae.open('oracle.db')": ("durable oracles and accounts", "apsw", "store"),
    "cumae.Budget(1.0).save_to('account.db')": ("durable oracles and accounts", "apsw", "store"),
    "cumae.open('postgresql://nobody@nowhere/x')": ("oracles in PostgreSQL", "psycopg", "postgres"),
    "model.save_to('postgresql://nobody@nowhere/x')": (
        "oracles in PostgreSQL",
        "psycopg",
        "postgres",
    ),
}


def needs(what: str, package: str, extra: str) -> str:
    return f"{what} need {package}: pip install 'cumae[{extra}]'"


def test_a_missing_package_is_named_with_its_extra(clean: Clean, asked: Path) -> None:
    work = """
import sys, cumae
model = cumae.PrivateKernelClassifier.load("model.json")
for line in sys.argv[1:]:
    try:
        eval(line)
        print("nothing was refused")
    except cumae.CumaeError as error:
        print(type(error).__name__, isinstance(error, ImportError), error)
"""
    said = clean.run("python", "-c", work, *LACKING).splitlines()
    assert said == [f"MissingPackage True {needs(*lacking)}" for lacking in LACKING.values()]
    assert not list(asked.glob("*.db*"))


@pytest.mark.parametrize(
    ("line", "lacking"),
    [
        ("schema rows.parquet --label income -o new.toml", ("Parquet files", "pyarrow", "parquet")),
        ("predict model.json rows.parquet", ("Parquet files", "pyarrow", "parquet")),
        ("predict model.json queries.csv -o a.parquet", ("Parquet files", "pyarrow", "parquet")),
        ("show model.json --plot a.svg", ("pictures", "matplotlib", "plot")),
        ("status postgresql://nobody@nowhere/x", ("oracles in PostgreSQL", "psycopg", "postgres")),
        ("demo", ("durable oracles and accounts", "apsw", "store")),
        ("serve model.json", ("servers", "uvicorn", "serve")),
    ],
)
def test_commands_name_the_extra_of_a_missing_package(
    clean: Clean, asked: Path, line: str, lacking: tuple[str, str, str]
) -> None:
    (asked / "rows.parquet").write_bytes(b"PAR1 and more")
    before = sorted(path.name for path in asked.iterdir())
    said = clean.run("cumae", *shlex.split(line), code=3)
    assert said.splitlines()[-1] == f"Error: {needs(*lacking)}"
    assert sorted(path.name for path in asked.iterdir()) == before


LARGE = {"ray", "spark"}  # hundreds of megabytes, which few need


def test_each_extra_is_part_of_all(dist: Path) -> None:
    found = distribution_of(wheel_in(dist))
    extras = set(found.metadata.get_all("Provides-Extra") or [])
    assert extras == {"all", "dask", "parquet", "plot", "postgres", "serve", "store"} | LARGE
    whole, parts = (
        {(one.name, str(one.specifier)) for one in needed_by(found, chosen)}
        for chosen in (frozenset({"all"}), frozenset(extras - {"all"} - LARGE))
    )
    assert whole == parts


def test_the_lock_has_hashes_and_no_index() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    requirements = re.split(r"\n(?=\S)", lock.strip())
    assert len(requirements) > 40
    for requirement in requirements:
        assert re.match(r"[a-z0-9.-]+(\[[a-z,]+\])?==\S+", requirement), requirement
        assert "--hash=sha256:" in requirement
    assert "://" not in lock
    assert "index" not in lock


def test_continuous_integration_runs_make_test_with_all_engines() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = script.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if "make" in line] == ["make engines", "exec make test"]
