"""Tables that benchmarks and tests share, as data frames with what may be declared about them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

DATA = Path(__file__).parent / "data"
DAY = dt.date(2015, 1, 1)
LAST_DAY = dt.date(2025, 1, 1)
CODES = [f"{letter}{number:02d}" for letter in "ABC" for number in range(100)]


def _words(text: str) -> list[str]:
    return text.split()


JOBS = _words(
    """Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners
    Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales
    Tech-support Transport-moving"""
)
COUNTRIES = _words(
    """Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France
    Germany Greece Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy
    Jamaica Japan Laos Mexico Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal
    Puerto-Rico Scotland South Taiwan Thailand Trinadad&Tobago United-States Vietnam Yugoslavia"""
)
EMPLOYERS = _words(
    """Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov
    Without-pay"""
)
SCHOOLS = _words(
    """10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors Doctorate HS-grad
    Masters Preschool Prof-school Some-college"""
)
STATES = _words(
    """Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated
    Widowed"""
)
ROLES = _words("""Husband Not-in-family Other-relative Own-child Unmarried Wife""")
RACES = _words("""Amer-Indian-Eskimo Asian-Pac-Islander Black Other White""")


@dataclass(frozen=True)
class Table:
    """Rows, their labels of 0 and 1, and a declaration for each column that needs one."""

    rows: pd.DataFrame
    labels: NDArray[np.int64]
    declared: dict[str, Any]

    def some(self, count: int, seed: int = 0) -> Table:
        """Return so many rows, in a random order."""
        places = np.random.default_rng(seed).permutation(len(self.labels))[:count]
        rows = self.rows.iloc[places].reset_index(drop=True)
        return Table(rows, self.labels[places], self.declared)


def _read(name: str) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    frame = pd.read_csv(DATA / f"{name}.csv.gz", na_values=["missing"])
    return frame.drop(columns="label"), frame["label"].to_numpy(np.int64)


def adult() -> Table:
    """The census of 1994: text, missing cells, and whether an income is above 50,000 dollars."""
    declared = {
        "age": (17, 90),
        "workclass": [*EMPLOYERS, None],
        "fnlwgt": (0, 1_500_000),
        "education": SCHOOLS,
        "education_num": (1, 16),
        "marital_status": STATES,
        "occupation": [*JOBS, None],
        "relationship": ROLES,
        "race": RACES,
        "sex": ["Female", "Male"],
        "capital_gain": (0, 100_000),
        "capital_loss": (0, 5_000),
        "hours_per_week": (1, 99),
        "native_country": [*COUNTRIES, None],
    }
    return Table(*_read("adult"), declared)


def credit_default() -> Table:
    """Credit card clients in Taiwan in 2005, and whether they failed to pay."""
    rows, labels = _read("credit_default")
    names = [str(name) for name in rows]
    declared: dict[str, Any] = {name: (-2, 8) for name in names if name.startswith("PAY_")}
    declared |= {name: (-200_000, 1_000_000) for name in names if name.startswith("BILL_AMT")}
    declared |= {name: (0, 1_000_000) for name in names if name.startswith("PAY_AMT")}
    declared |= {"LIMIT_BAL": (0, 1_000_000), "SEX": [1, 2], "AGE": (18, 80)}
    declared |= {"EDUCATION": [0, 1, 2, 3, 4, 5, 6], "MARRIAGE": [0, 1, 2, 3]}
    return Table(rows, labels, declared)


def hospital(count: int = 6_000, seed: int = 0) -> Table:
    """A made-up hospital: dates, missing numbers, truth, a code of 300 values, an open range.

    The label asks who comes back within a month. Nobody declared the range of ``protein``.
    """
    coins = np.random.default_rng(seed)
    days = (LAST_DAY - DAY).days
    age = coins.integers(0, 100, count)
    protein = coins.lognormal(2.0, 1.0, count)
    pressure = coins.normal(120 + 0.3 * age, 15)
    code = coins.choice(len(CODES), count, p=_falling(len(CODES)))
    smokes = coins.random(count) < 0.3
    admitted = coins.integers(0, days, count)
    score = 0.05 * (age - 50) + 0.8 * (np.log(protein) - 2) + smokes + 0.5 * (code % 7 - 3)
    labels = coins.random(count) < 1 / (1 + np.exp(-1.5 * score))
    rows = pd.DataFrame(
        {
            "age": age,
            "admitted": pd.Timestamp(DAY) + pd.to_timedelta(admitted, unit="D"),
            "pressure": np.where(coins.random(count) < 0.15, np.nan, pressure),
            "smokes": smokes,
            "code": np.array(CODES)[code],
            "protein": protein,
        }
    )
    declared = {
        "age": (0, 110),
        "admitted": (DAY, LAST_DAY),
        "pressure": (50, 250, "missing"),
        "code": CODES,
    }
    return Table(rows, labels.astype(np.int64), declared)


def _falling(count: int) -> NDArray[np.float64]:
    """Return chances of which the first are the largest, as codes in hospitals have."""
    weights = 1 / (5.0 + np.arange(count))
    return np.asarray(weights / weights.sum())
