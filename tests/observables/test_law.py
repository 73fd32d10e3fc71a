"""What a holder of disk, backups and terminal sees without keys follows from counts alone."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.observables.cases import CASES
from tests.observables.ideal import Published
from tests.observables.lives import LONG_LIFE, LifeInPostgres, examples, law, lived
from tests.observables.serving import ServedLife
from tests.observables.worlds import World

if TYPE_CHECKING:
    from pathlib import Path

    from cumae.checks.observables import Sight
    from tests.servers import PostgresServer

EXAMPLES = 50  # benchmarks/observables.py has more, for each predictor


@pytest.mark.claim("STORE")
@pytest.mark.parametrize("name", CASES)
def test_contents_cannot_be_seen(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    world = World.base(case.kind, case.n_rows)
    steps = [step for step in LONG_LIFE if step[0] in case.steps]
    assert law(case, steps, [world, world.other(7)], tmp_path) > 200


@pytest.mark.claim("STORE")
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_neighbours_look_the_same(data: st.DataObject, tmp_path: Path) -> None:
    case = CASES[data.draw(st.sampled_from(sorted(CASES)))]
    steps, world, changes = data.draw(examples(case))
    law(case, steps, [world, world.changed(changes)], tmp_path)


IN_POSTGRES = ("everlasting, memo and text answers", "everlasting, labels", "bbl", "with words")


@pytest.mark.claim("REPLICAS")
@pytest.mark.debian("postgresql")
@pytest.mark.parametrize("name", IN_POSTGRES)
def test_rows_in_postgres_look_the_same(
    name: str, tmp_path: Path, postgres: PostgresServer
) -> None:
    case = CASES[name]
    world = World.base(case.kind, case.n_rows)
    own = [step for step in case.steps if step not in ("crash", "kill")]
    steps = [step for step in LONG_LIFE if step[0] in own]
    worlds = [world, world.other(7)]
    assert law(case, steps, worlds, tmp_path, partial(LifeInPostgres, postgres)) > 200


SERVED = [("ask", 1), ("served", 3), ("fill", 1), ("served", 0), ("restart", 0)]
BEHIND_THE_SERVER = (
    *("everlasting, memo and text answers", "everlasting, labels", "everlasting, users"),
    *("everlasting, clients", "bbl", "query, text answers", "with words"),
)


@pytest.mark.claim("SERVE")
@pytest.mark.parametrize("name", BEHIND_THE_SERVER)
def test_replies_headers_and_counts_look_the_same(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    world = World.base(case.kind, case.n_rows)
    worlds = [world, world.other(7), world.changed([("queries", 3, 0, math.nan)])]
    assert law(case, SERVED, worlds, tmp_path, ServedLife) > 100


def lengths(seen: list[Sight]) -> list[Any]:
    """Return what was seen without what the cipher makes of bytes."""
    found = []
    for what, value in seen:
        if what.startswith(("write of", "file", "backup")):
            found.append((what, [part for part in value if not _is_digest(part)]))
    return found


def _is_digest(part: Any) -> bool:
    return isinstance(part, str) and len(part) == 12


@pytest.mark.claim("STORE")
def test_the_ideal_cipher_writes_as_much_as_the_real_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So what the law says of the one is true of the other."""
    case = CASES["everlasting, text answers"]
    world = World.base(case.kind, case.n_rows)
    steps = [("named", 3), ("rotate", 0), ("fill", 1), ("restart", 0)]
    found = []
    for real in (False, True):
        seen, _ = lived(case, steps, world, tmp_path / "life", Published(), real_cipher=real)
        found.append(lengths(seen))
    assert found[0] == found[1]
    assert len(found[0]) > 100
