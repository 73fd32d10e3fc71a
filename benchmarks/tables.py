"""The tables that learners are judged on: real ones, and made-up ones of known shape.

    python benchmarks/tables.py [--data FOLDER]

prints them all. They were split once: everything that is chosen about a learner (a constant, a
rule, a default) is chosen on the tables of ``TUNING``. Those of ``KEPT_ASIDE`` are for the last
check, and nothing is changed because of what they say. Each kind of shape is in the first part,
and a cousin of it, which nobody tuned on, in the second.

A made-up table has any number of rows. Its seed draws rows; the rule behind the labels never
changes. As the chance of each class is known for every row, so is the accuracy of the best
possible rule. Cardio has no clear licence and is not in this folder: it is read from ``--data``,
or from the folder that the environment variable CUMAE_DATA names.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _made_up_tables import MADE_UP, ROWS
from _table import Table, words
from numpy.typing import NDArray

from cumae.datasets import load_health_survey

DATA = Path(__file__).parent / "data"
ELSEWHERE = "CUMAE_DATA"  # the environment variable that names a folder of more tables


JOBS = words(
    """Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners
    Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales
    Tech-support Transport-moving"""
)
COUNTRIES = words(
    """Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France
    Germany Greece Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy
    Jamaica Japan Laos Mexico Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal
    Puerto-Rico Scotland South Taiwan Thailand Trinadad&Tobago United-States Vietnam Yugoslavia"""
)
EMPLOYERS = words(
    """Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov
    Without-pay"""
)
SCHOOLS = words(
    """10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors Doctorate HS-grad
    Masters Preschool Prof-school Some-college"""
)
STATES = words(
    """Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated
    Widowed"""
)
ROLES = words("""Husband Not-in-family Other-relative Own-child Unmarried Wife""")
RACES = words("""Amer-Indian-Eskimo Asian-Pac-Islander Black Other White""")
CARRIERS = words("9E AA AS B6 DL EV F9 FL HA MQ OO UA US VX WN YV")
AIRPORTS = words(
    """ABQ ACK ALB ANC ATL AUS AVL BDL BGR BHM BNA BOS BQN BTV BUF BUR BWI BZN CAE CAK CHO CHS CLE
    CLT CMH CRW CVG DAY DCA DEN DFW DSM DTW EGE EYW FLL GRR GSO GSP HDN HNL HOU IAD IAH ILM IND
    JAC JAX LAS LAX LEX LGB MCI MCO MDW MEM MHT MIA MKE MSN MSP MSY MTJ MVY MYR OAK OKC OMA ORD
    ORF PBI PDX PHL PHX PIT PSE PSP PVD PWM RDU RIC ROC RSW SAN SAT SAV SBN SDF SEA SFO SJC SJU
    SLC SMF SNA SRQ STL STT SYR TPA TUL TVC TYS XNA"""
)
GROUPS = {  # of occupations: what the table of several classes asks for
    0: words("Exec-managerial Prof-specialty"),
    1: words("Adm-clerical Sales Tech-support"),
    2: words("Craft-repair Machine-op-inspct"),
    3: words("Farming-fishing Handlers-cleaners Transport-moving"),
    4: words("Armed-Forces Other-service Priv-house-serv Protective-serv"),
}


# Real tables


def _read(name: str, folder: Path = DATA) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    frame = pd.read_csv(folder / f"{name}.csv.gz", na_values=["missing"])
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
    shape = "A census: text, missing cells, amounts that are mostly 0; nearly additive."
    return Table(*_read("adult"), declared, "adult", shape)


def occupation() -> Table:
    """The census of 1994 again: which of five groups of occupations a person belongs to."""
    table = adult()
    groups = {job: group for group, jobs in GROUPS.items() for job in jobs}
    labels = table.rows["occupation"].map(groups)
    known = labels.notna().to_numpy()
    rows = table.rows.drop(columns="occupation").assign(income=table.labels)[known]
    declared = {name: found for name, found in table.declared.items() if name != "occupation"}
    return Table(
        rows.reset_index(drop=True),
        np.asarray(labels[known], np.int64),
        declared | {"income": (0, 1, 1)},
        "occupation",
        "The census with five classes: groups of occupations, income among the columns.",
        tuple(GROUPS),
    )


def credit_default() -> Table:
    """Credit card clients in Taiwan in 2005, and whether they failed to pay."""
    rows, labels = _read("credit_default")
    names = [str(name) for name in rows]
    declared: dict[str, Any] = {name: (-2, 8) for name in names if name.startswith("PAY_")}
    declared |= {name: (-200_000, 1_000_000) for name in names if name.startswith("BILL_AMT")}
    declared |= {name: (0, 1_000_000) for name in names if name.startswith("PAY_AMT")}
    declared |= {"LIMIT_BAL": (0, 1_000_000), "SEX": [0, 1], "AGE": (18, 80)}
    declared |= {"EDUCATION": [0, 1, 2, 3, 4, 5, 6], "MARRIAGE": [0, 1, 2, 3]}
    shape = "Bills and payments of six months, with long tails and strongly correlated."
    return Table(rows, labels, declared, "credit default", shape)


def survey() -> Table:
    """The health survey of 2015 that comes with cumae: who has high blood pressure."""
    bunch = load_health_survey()
    declared = {name: (low, high, 1) for name, (low, high) in bunch.bounds.items()}
    shape = "Answers, mostly yes or no, and small whole numbers; nearly linear."
    return Table(bunch.data, bunch.target.to_numpy(np.int64), declared, "survey", shape)


def flights() -> Table:
    """Flights from New York in 2013, and which arrive more than 15 minutes late."""
    rows, labels = _read("flights")
    declared = {
        "month": (1, 12, 1),
        "day": (1, 31, 1),
        "dow": (0, 6, 1),
        "hour": (0, 23, 1),
        "minute": (0, 59, 1),
        "sched_arr_hour": (0, 23, 1),
        "carrier": CARRIERS,
        "origin": words("EWR JFK LGA"),
        "dest": AIRPORTS,
        "distance": (0, 5_000),
        "temp": (0, 110),
        "dewp": (-20, 90),
        "humid": (0, 100),
        "wind_dir": (0, 360),
        "wind_speed": (0, 60),
        "precip": (0, 2),
        "pressure": (970, 1_050),
        "visib": (0, 10),
    }
    shape = "Times, weather, 16 carriers and 104 airports; weak signal with interactions."
    return Table(rows, labels, declared, "flights", shape)


def cardio() -> Table:
    """Patients, and which have a disease of the heart or vessels; never in this repository."""
    if not os.environ.get(ELSEWHERE):
        raise FileNotFoundError(f"cardio is not in the repository: set {ELSEWHERE} to its folder")
    rows, labels = _read("cardio", Path(os.environ[ELSEWHERE]))
    declared = {
        "age": (25, 70),
        "gender": [1, 2],
        "height": (100, 220),
        "weight": (30, 200),
        "sbp": (60, 240),
        "dbp": (30, 160),
        "cholesterol": (1, 3, 1),
        "gluc": (1, 3, 1),
        "smoke": (0, 1, 1),
        "alco": (0, 1, 1),
        "active": (0, 1, 1),
    }
    shape = "Eleven measures of patients, with absurd blood pressures; curved and nearly additive."
    return Table(rows, labels, declared, "cardio", shape)


# Each made-up table that is kept aside is a cousin of the one at its place in the first part. The
# census with five classes is the cousin of ``segments``, and ``hospital`` that of ``flights``.
TUNING = (
    *("adult", "credit default", "survey", "occupation", "hospital"),
    *("linear", "additive", "thresholds", "pairs", "triples"),
    *("checkerboard", "rare", "categories", "tails", "noise", "records"),
)
KEPT_ASIDE = (
    *("flights", "cardio", "segments"),
    *("poll", "curves", "tariff", "switches", "parity"),
    *("diamonds", "fraud", "depots", "wealth", "sensors"),
)
REAL: dict[str, Callable[[], Table]] = {
    "adult": adult,
    "credit default": credit_default,
    "survey": survey,
    "occupation": occupation,
    "flights": flights,
    "cardio": cardio,
}


@cache
def _real(name: str) -> Table:
    return REAL[name]()


def load(name: str, count: int = ROWS, seed: int = 0) -> Table:
    """Return a table by its name, with all its rows; a made-up one with so many rows of a seed."""
    if name in REAL:
        return _real(name)
    return replace(MADE_UP[name](count, seed), name=name)


def main() -> None:
    parser = argparse.ArgumentParser(description="Print all tables.")
    parser.add_argument("--data", help=f"folder with cardio.csv.gz (default: ${ELSEWHERE})")
    asked = parser.parse_args()
    if asked.data:
        os.environ[ELSEWHERE] = asked.data
    for title, names in (("For tuning", TUNING), ("Kept aside", KEPT_ASIDE)):
        print(title)
        for name in names:
            try:
                table = load(name)
            except FileNotFoundError as why:
                print(f"  {name}: left out; {why}")
                continue
            best = "" if table.bayes is None else f", best possible accuracy {table.bayes:.3f}"
            share = np.bincount(table.labels).max() / len(table.labels)
            print(f"  {name}: {len(table.labels)} rows of {table.rows.shape[1]} columns, ", end="")
            print(f"{len(table.classes)} classes, the largest has {share:.3f}{best}")
            print(f"    {table.shape}")


if __name__ == "__main__":
    main()
