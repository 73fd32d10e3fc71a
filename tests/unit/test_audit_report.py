"""Reports of audits say what was claimed and what was found."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from cumae.audit import Attack, Audit, Claimed, Game
from cumae.audit.catalogue import (
    SOURCES,
    attacks_on,
    audit_all,
    in_short,
    reasons_for_few,
)
from cumae.audit.report import (
    MEANING,
    caught_bugs,
    lines,
    markdown,
    misses_allowed,
    plant_of,
    plot,
    strongest,
    svg,
    table,
    together,
)
from cumae.audit.results import RELEASES
from cumae.errors import InvalidParameter

CURVE = ((0.0, 1.0), (0.25, 0.25), (1.0, 0.0))


def found(
    epsilon: float, claimed: Claimed | None = None, name: str = "Thing, a row", mu: float = 0.1
) -> Audit:
    promise = Claimed(1.0, 1e-6, rho=0.5) if claimed is None else claimed
    return Audit(name, promise, 0.99, 1_234, epsilon=epsilon, rho=0.1, mu=mu, curve=CURVE)


def test_only_what_is_claimed_has_a_line() -> None:
    shown = lines([found(0.5), found(0.5, Claimed(2.0, mu=0.2))])
    assert [(line.measure, line.share) for line in shown] == [
        ("epsilon", 0.5),
        ("rho", 0.2),
        ("epsilon", 0.25),
        ("mu", 0.5),
    ]
    assert not any(line.broken for line in shown)


@pytest.mark.parametrize("claimed", [Claimed(1.0, mu=0.2), Claimed(1.0, rho=0.05)])
def test_a_line_is_broken_exactly_if_its_audit_is(claimed: Claimed) -> None:
    """Here epsilon holds and the other measure does not."""
    audit = found(0.5, claimed, mu=0.3)
    assert [line.broken for line in lines([audit])] == [False, True]
    assert audit.broken


def test_a_claim_of_nothing_is_broken_by_anything() -> None:
    (line,) = lines([found(0.1, Claimed(0.0))])
    assert line.broken
    assert line.share == np.inf
    (line,) = lines([found(0.0, Claimed(0.0))])
    assert not line.broken
    assert line.share == 0


def test_the_table_is_aligned_and_rounds_bounds_down() -> None:
    rows = table([found(0.98769), found(1.5, name="Other")]).splitlines()
    assert len({len(row) for row in rows}) == 1
    assert rows[2].split("|")[1:-1] == [
        " Thing, a row ",
        " epsilon at delta 1e-06 ",
        "       1 ",
        "   0.9876 ",
        "    5.259 ",
        "   99% ",
        " 1,234 ",
        "       0.99 ",
        " not broken ",
    ]
    assert [row.split("|")[-2].strip() for row in rows[2:]] == [
        "not broken",
        "not broken",
        "BROKEN",
        "not broken",
    ]


def test_the_allowed_curve_is_that_of_the_definition() -> None:
    """Laplace noise and Gaussian noise have known curves."""
    alarms = np.linspace(0, 1, 101)
    pure = misses_allowed(Claimed(1.0), alarms)
    kink = 1 / (1 + math.e)  # where both lines meet, on the diagonal
    assert misses_allowed(Claimed(1.0), kink) == pytest.approx(kink)
    assert pure == pytest.approx(np.maximum(1 - math.e * alarms, (1 - alarms) / math.e))
    gaussian = misses_allowed(Claimed(9.0, 0.5, mu=1.0), [0.0, 0.308537538726, 1.0])
    assert gaussian == pytest.approx([1.0, 0.308537538726, 0.0])
    nothing = misses_allowed(Claimed(np.inf), alarms)
    assert nothing == pytest.approx([1.0] + [0.0] * 100)


def test_the_allowed_curve_is_its_own_mirror_image() -> None:
    claimed = Claimed(1.0, 0.05, mu=0.7)
    alarms = np.linspace(0.01, 0.9, 50)
    misses = misses_allowed(claimed, alarms)
    inside = misses > 0
    assert misses_allowed(claimed, misses[inside]) == pytest.approx(alarms[inside])


def test_the_plot_has_its_marks_where_they_belong() -> None:
    rows = plot(found(0.5), width=41, height=21).splitlines()
    body = [row[5:].ljust(41) for row in rows[1:-2]]
    assert len(body) == 21
    assert all(len(row) == 41 for row in body)
    assert rows[0].startswith("Thing, a row")
    assert "1,234 runs" in rows[-1]
    assert body[15][10] == "o"  # 0.25 of both chances
    assert body[0][0] == body[20][40] == "o"
    assert sum(row.count("o") for row in body) == 3
    assert body[10][20] == "."  # guessing
    assert body[15][11] == "#"  # the kink, at 0.269
    above = [row.rindex("#") < row.rindex(".") for row in body[2:-2]]
    assert all(above)


def test_a_rule_that_guesses_the_wrong_way_round_is_turned() -> None:
    backwards = Audit("a", Claimed(1.0), 0.9, 9, 0.0, 0.0, 0.0, curve=((0.75, 0.75),))
    body = [row[5:] for row in plot(backwards, width=41, height=21).splitlines()[1:-2]]
    assert body[15][10] == "o"


def test_the_image_shows_every_audit() -> None:
    audits = [found(0.5, name=f"<{number}> & more") for number in range(4)]
    root = ET.fromstring(svg([*audits, found(2.0)]))  # noqa: S314 (our own text)
    inside = "{http://www.w3.org/2000/svg}"
    panels = root.findall(f"{inside}g")
    titles = [[text.text for text in panel.findall(f"{inside}text")[:2]] for panel in panels]
    assert titles[0] == ["<0> & more", "epsilon 1 at delta 1e-06: not broken"]
    assert titles[4] == ["Thing, a row", "epsilon 1 at delta 1e-06: BROKEN"]
    assert len({panel.get("transform") for panel in panels}) == 5
    dots = [(dot.get("cx"), dot.get("cy")) for dot in panels[0].findall(f"{inside}circle")]
    assert dots == [("0.0", "0.0"), ("60.0", "180.0"), ("240.0", "240.0")]
    line = panels[0].find(f"{inside}polyline")
    assert line is not None
    points = [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
    assert points == sorted(points)  # downwards from left to right
    assert (points[0], points[-1]) == ((0.0, 0.0), (240.0, 240.0))


def test_the_page_has_table_meaning_and_verdict() -> None:
    good, bad = found(0.5), found(2.0, name="Bad")
    page = markdown([good])
    assert page.startswith("# Audit\n\nNo bound is above its claim.\n\n| attack")
    assert table([good]) in page
    assert MEANING in page
    assert "chance of at least 0.99;" in page
    page = markdown([good, bad])
    assert "**Bounds above their claims: 1.**" in page
    assert "SECURITY.md" in page
    assert f"```text\n{plot(bad)}\n```" in page
    assert strongest([good, bad]) is bad
    assert together([good, bad]) == pytest.approx(0.98)
    page = markdown([good], {"epsilon": 2.0}, ["Other, too slow."])
    assert "\n\nSettings:\n\n- epsilon: 2.0\n\nLevels:\n\n- Whole: everything" in page
    assert "\n\nLeft out:\n\n- Other, too slow.\n\n" in page


def test_a_planted_bug_stands_beside_its_attack_and_breaks_nothing() -> None:
    good = replace(found(0.5), level=RELEASES, not_covered="the rest")
    plant = replace(found(2.0, name=f"{good.name}, planted"), planted="with a bug")
    other = found(0.1, name="Thing, a row of another")
    audits = [good, plant, other]
    assert (plant.broken, plant.caught, plant.verdict) == (False, True, "caught")
    missed = replace(plant, epsilon=0.5)
    assert missed.verdict == "not caught"
    assert replace(missed, runs=10).verdict == "cannot tell"
    told = caught_bugs([*audits, missed, replace(missed, runs=10)])
    assert told == "Planted bugs: 1 of 3 were caught; 1 had too few runs to tell."
    assert plant_of(good, audits) is plant
    assert plant_of(other, audits) is None
    assert strongest(audits) is good
    assert together(audits) == pytest.approx(0.98)  # a planted bug is no false alarm
    page = markdown(audits)
    assert "No bound is above its claim." in page
    assert "- Thing, a row: not covered is the rest.\n" in page
    drawn = plot(good, plant)
    assert drawn.endswith("x the same attack with a bug: caught")
    assert drawn in page
    assert Audit.from_dict(plant.to_dict()) == plant


class Silent:
    """Answers with nothing of its rows, and writes down when it was trained."""

    trained = 0

    def train(self, X: object, y: object) -> None:
        Silent.trained += 1

    def ask(self, X: Sequence[object]) -> list[int]:
        return [0] * len(X)

    def published(self) -> None:
        return None


def ask_once(game: Game) -> float:
    game.train(([[0.0]], [0]), ([[1.0]], [0]))
    return float(game.ask([[0.0]]).answers[0])


def attacks_of(*names: str) -> list[Attack]:
    return [Attack(name, Silent, ask_once, Claimed(1.0)) for name in names]


def test_the_chance_of_error_is_shared() -> None:
    attacks = attacks_of("One, a", "One, b", "Two, a", "Two, b")
    audits, left_out = audit_all(attacks, runs=40, confidence=0.9)
    assert [audit.name for audit in audits] == [attack.name for attack in attacks]
    assert [audit.confidence for audit in audits] == pytest.approx([0.975] * 4)
    assert together(audits) == pytest.approx(0.9)
    assert not left_out


def test_without_time_the_first_attack_on_each_target_is_played_and_the_rest_is_named() -> None:
    Silent.trained = 0
    attacks = attacks_of("One, a", "One, b", "Two, a", "One, c")
    audits, left_out = audit_all(attacks, runs=100_000, seconds=1e-6)
    assert [(audit.name, audit.runs) for audit in audits] == [("One, a", 10), ("Two, a", 10)]
    assert Silent.trained == 2 * 2 * 26  # with a pilot of six
    assert left_out == ["One, b: no time was left.", "One, c: no time was left."]
    slow, late = in_short([*left_out, "Two, a: it takes too long."])
    assert slow == "Two, a: it takes too long."
    assert late.startswith("2 further attacks, because no time was left: One 2. More seconds")


def test_few_runs_are_explained() -> None:
    slow = replace(found(0.5), runs=40, pace=0.25)
    quick = found(0.5, name="Other, a row")
    (reason,) = reasons_for_few([slow, quick], 10_000)
    assert reason.startswith("Thing: 40 counted runs, because a run takes 250 ms, each run")
    assert "1,000 seconds." in reason
    assert reasons_for_few([slow], 80) == []  # no more were asked for


def test_nothing_to_play_and_odd_confidence_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="no attack"):
        audit_all([])
    attack = Attack("a", Silent, ask_once, Claimed(1.0))
    with pytest.raises(InvalidParameter, match="confidence"):
        audit_all([attack], confidence=1.0)


def test_the_catalogue_keeps_every_attack_once_and_claims_what_is_asked() -> None:
    made = {name: attacks_on(name, 2.0, 1e-5) for name in SOURCES}
    assert not any(left_out for _, left_out in made.values())
    groups = {name: found for name, (found, _) in made.items()}
    assert {"EverlastingPredictor", "QueryRelease"} <= groups.keys()
    attacks = [attack for group in groups.values() for attack in group]
    assert len({attack.name for attack in attacks}) == len(attacks)
    for name, group in groups.items():
        assert all(attack.name.startswith(name) for attack in group)
    for attack in attacks:
        assert 0.5 < attack.claimed.epsilon <= 2.0, attack.name
        assert attack.claimed.delta <= 1e-5, attack.name


def test_what_cannot_be_attacked_is_told_attack_by_attack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fine(epsilon: float, delta: float) -> Attack:
        return Attack("Thing, a row", Silent, ask_once, Claimed(epsilon, delta))

    def hopeless(epsilon: float, delta: float) -> Attack:
        raise InvalidParameter("too few rows.")

    monkeypatch.setitem(SOURCES, "Thing", (fine, hopeless))
    found, left_out = attacks_on("Thing", 0.1, 0.0)
    assert [attack.name for attack in found] == ["Thing, a row"]
    assert left_out == ["an attack on Thing, impossible at epsilon 0.1 and delta 0: too few rows."]
    for epsilon, delta in ((0.0, 0.1), (np.inf, 0.1), (1.0, 1.0)):
        with pytest.raises(InvalidParameter):
            attacks_on("Thing", epsilon, delta)


def test_the_page_on_audits_names_tests_that_exist() -> None:
    """All planted bugs have a line: thirteen first ones, seven of options, four of batches, five of
    noisy sums, one of evaluations, two of releases, five of oracles in files, and four of their
    thieves.
    """
    root = Path(__file__).parents[2]
    page = (root / "docs" / "audit.md").read_text(encoding="utf-8")
    section = page.split("## Planted bugs")[1]
    rows = [line for line in section.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 13 + 7 + 4 + 5 + 1 + 2 + 5 + 4
    named = set(re.findall(r"`(test_\w+)`", "".join(rows)))
    unit = root / "tests" / "unit"
    files = [*unit.glob("test_audit_*.py"), *unit.glob("test_store_[pt]*.py")]
    written = {
        name
        for file in files
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert named
    assert named <= written
