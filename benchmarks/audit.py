"""How much of each claim does an attacker reach? Claimed and measured privacy of everything.

    python benchmarks/audit.py [--seconds 30] [--runs 20000] [--only NAME ...] [--jobs 2] [--again]

writes benchmarks/results/audit.json, audit.md and audit.svg, and ends with status 1 if a bound is
above its claim. Lines that are in the JSON already are kept unless --again is given, so that parts
can be run one after the other. All bounds of the whole table together are right with a chance of
95%.

Epsilon is 1 and 3, delta 1e-6. Where the claim has a delta, a second line has delta 0.05. Noise
that is Gaussian gives epsilon 1 only together with a delta, and with 1e-6 that claim is about
events which happen a few times in a million runs: no affordable number of runs counts them, and
the measured epsilon stays small whatever the attacker does. At delta 0.05 the same noise, scaled
accordingly, is tested by events that do happen. The bounds on mu need no delta at all.

The first attack on each target is also played where a bug is planted, which it should catch.

Models that are asked one by one get blocks of 64 rows, as in the tests, and not of 4,096: a game
asks a few queries, each of which costs a block for every model. What is proven does not depend on
the size.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cumae.audit import Attack, Audit, audit
from cumae.audit.catalogue import SOURCES, attacks_on, audited
from cumae.audit.game import Driver
from cumae.audit.report import MEANING, certainty, lines, svg, table
from cumae.ensembles import blocks
from cumae.store.driver.thefts import ATTACKS

RESULTS = Path(__file__).parent / "results"
ALL = {**SOURCES, **ATTACKS}
EPSILONS = (1.0, 3.0)
DELTA, COUNTABLE = 1e-6, 0.05
CONFIDENCE = 0.95
BLOCK_ROWS = 64


def in_small_blocks(make: Callable[[], Driver]) -> Driver:
    """Make a driver, in whichever process that is, whose models are asked in small blocks."""
    blocks.BLOCK_ROWS = BLOCK_ROWS
    return make()


def planned() -> dict[str, Attack]:
    """Return all attacks at all settings, by their lines' names."""
    found = {}
    for epsilon in EPSILONS:
        for delta in (DELTA, COUNTABLE):
            for attack in (one for name in ALL for one in attacks_on(name, epsilon, delta, ALL)[0]):
                if delta > DELTA and not attack.claimed.delta > 0:
                    continue  # it would be the same line again
                for one in filter(None, (attack, attack.on_plant)):
                    line = f"{one.name}; epsilon {epsilon:g}, delta {delta:g}"
                    found[line] = replace(one, make=partial(in_small_blocks, one.make))
    return found


def gaps(audits: list[Audit]) -> str:
    """Return the largest share of a claim that was reached, for each estimator and measure."""
    best: dict[tuple[str, str], float] = {}
    for line in lines([one for one in audits if not one.planted]):
        key = (audited(line.audit.name), line.measure)
        best[key] = max(best.get(key, 0.0), line.share)
    rows = [f"| {name} | {measure} | {share:.0%} |" for (name, measure), share in best.items()]
    header = "| audited | measure | largest share of a claim |\n| --- | --- | --: |"
    return "\n".join([header, *rows])


def page(audits: list[Audit]) -> str:
    return (
        "# Audit: claimed and measured\n\n"
        "Written by `python benchmarks/audit.py`; [how to read it](../../docs/audit.md), "
        "[curves](audit.svg).\n\n"
        f"{MEANING}\n\n{certainty(audits)}\n\n"
        "With delta 1e-6 the claim of Gaussian noise is about events too rare to count, so that "
        "its epsilon comes out small; the lines with delta 0.05, and those of mu, are the test "
        f"of that noise.\n\n## The gap\n\n{gaps(audits)}\n\n## All lines\n\n{table(audits)}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Claimed and measured privacy of everything.")
    parser.add_argument("--seconds", type=float, default=30.0, help="for each attack")
    parser.add_argument("--runs", type=int, default=20_000, help="in each world, at most")
    parser.add_argument("--only", nargs="*", help="lines whose name contains one of these")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to write to")
    asked = parser.parse_args()
    path = asked.results / "audit.json"
    known: dict[str, Any] = json.loads(path.read_text())["lines"] if path.exists() else {}
    attacks = planned()
    real = sum(not one.planted or one.plant is not None for one in attacks.values())
    for name, attack in attacks.items():
        chosen = asked.only is None or any(word in name for word in asked.only)
        if not chosen or (name in known and not asked.again):
            continue
        found = audit(
            attack,
            runs=asked.runs,
            seconds=asked.seconds,
            confidence=1 - (1 - CONFIDENCE) / real,
            n_jobs=asked.jobs,
        )
        print(found, flush=True)
        known[name] = found.to_dict()
        known = {key: known[key] for key in attacks if key in known}
        result = {"python": platform.python_version(), "lines": known}
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    audits = [Audit.from_dict(plain) for plain in known.values()]
    (asked.results / "audit.md").write_text(page(audits), encoding="utf-8")
    (asked.results / "audit.svg").write_text(svg(audits), encoding="utf-8")
    sys.exit(any(found.broken for found in audits))


if __name__ == "__main__":
    main()
