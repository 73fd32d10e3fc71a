"""An account in a file refuses what it refused before, and is never behind what was paid."""

from __future__ import annotations

import json
import math
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cumae import Budget, BudgetExhausted, InvalidParameter, LiveState, UnknownCost
from cumae.codec import TEXT_FORMAT
from cumae.predictors.bbl.costs import AfterDraw
from cumae.privacy import (
    ZCDP,
    Approximate,
    BoundedRange,
    Cost,
    DiscreteGaussian,
    DiscreteGaussianVectors,
    Gaussian,
    Pure,
    bootstrap,
    group,
    label_boost,
    or_fail,
    parallel,
    subsample,
)
from cumae.privacy import account_file as account_file_module
from cumae.privacy.plain_costs import cost_from_dict, cost_to_dict

pytestmark = pytest.mark.claim("BUDGET")

COSTS: list[Cost] = [
    Pure(0.1),
    Pure(1 / 3),
    Pure(5e-324),
    Pure(math.inf),
    BoundedRange(0.7),
    Approximate(0.3, 1e-7),
    ZCDP(0.1, 1e-9),
    Gaussian(math.pi, 2.0),
    DiscreteGaussian(600.0, 3),
    DiscreteGaussianVectors(0.2, 1000, 1e6),
    Pure(0.1) * 3 + Gaussian(5.0) + DiscreteGaussian(7.0) * 10**30,
    subsample(Pure(1.0), 0.1),
    subsample(Pure(0.1), 0.01, variant="paper"),
    bootstrap(Pure(1.0), 1000, 500),
    bootstrap(Pure(1.0), 1000, variant="paper"),
    group(ZCDP(0.1, 1e-9), 3),
    or_fail(Pure(0.1), 1e-9),
    parallel(Pure(0.1), Gaussian(2.0)),
    label_boost(Pure(1.0), 1.0, "S"),
    label_boost(Pure(1.0), 1.0, "S", variant="paper"),
    AfterDraw(ZCDP(0.1), 1.0, 0.5),
]


@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: type(cost).__name__)
def test_every_cost_comes_back_exactly(cost: Cost) -> None:
    plain = json.loads(json.dumps(cost_to_dict(cost), allow_nan=False))
    again = cost_from_dict(plain)
    assert again == cost
    assert type(again) is type(cost)
    assert repr(again) == repr(cost)


def test_every_kind_of_cost_is_among_those_that_were_tried() -> None:
    def kinds(kind: Any) -> set[Any]:
        return {kind}.union(*map(kinds, kind.__subclasses__()))

    concrete = {kind for kind in kinds(Cost) if kind.__module__.startswith("cumae.")}
    bases = {kind for kind in concrete if kind.__subclasses__() or "_curve" not in vars(kind)}
    assert concrete - bases - {type(cost) for cost in COSTS} == set()


@pytest.mark.parametrize(
    "plain",
    [
        None,
        {},
        {"kind": "Nobody", "eps": 1.0},
        {"kind": "Pure"},
        {"kind": "Pure", "eps": -1.0},
        {"kind": "Pure", "eps": "0.1"},
        {"kind": "Pure", "eps": math.nan},
        {"kind": "Pure", "eps": True},
        {"kind": "Pure", "eps": 1.0, "more": 1.0},
        {"kind": "Composed", "parts": [[{"kind": "Pure", "eps": 1.0}, 0.5]]},
        {"kind": "Composed", "parts": 3},
        {"kind": "Cost"},
        {"kind": ["Pure"]},
    ],
    ids=repr,
)
def test_what_is_no_stored_cost_is_refused(plain: Any) -> None:
    with pytest.raises(InvalidParameter):
        cost_from_dict(plain)


class Handmade(Cost):
    """A cost that is no dataclass."""

    def _curve(self, epsilon: Any) -> Any:
        return 0.0 * epsilon

    @property
    def pure(self) -> float:
        return 0.25


def test_a_cost_that_cannot_be_stored_is_not_paid_from_a_file(tmp_path: Path) -> None:
    kept, free = Budget(1.0), Budget(1.0)
    kept.save(tmp_path / "account.json")
    with pytest.raises(UnknownCost, match="Handmade cannot be stored"):
        kept.spend(Handmade())
    assert kept.spent == Budget.load(tmp_path / "account.json").spent == (0.0, 0.0)
    free.spend(Handmade())
    with pytest.raises(UnknownCost):
        free.save(tmp_path / "other.json")
    assert not (tmp_path / "other.json").exists()
    free.spend(Handmade())
    assert free.spent == (0.5, 0.0)


# --- the same refusals as before


@pytest.mark.parametrize("accounting", ["sum", "zcdp"])
def test_a_restored_account_refuses_exactly_what_the_old_one_did(
    tmp_path: Path, accounting: str
) -> None:
    path = tmp_path / "account.json"
    old = Budget(1.0, 1e-6, accounting=accounting)
    for cost in (Pure(0.1), Approximate(0.01, 1e-7), Gaussian(1000.0)):
        old.spend(cost, delta=1e-7 if accounting == "sum" else 0.0, what="a use")
    old.save(path)
    new = Budget.load(path)
    assert (new.spent, new.remaining, new.entries) == (old.spent, old.remaining, old.entries)
    assert new.history == old.history
    assert repr(new) == repr(old)
    # The edge, found by halving, is the same to the last bit.
    assert _edge(new) == _edge(old)


def _edge(budget: Budget) -> float:
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        fits = budget._fits(budget._add(budget._price(Pure(middle), 0.0, "a try")))
        low, high = (middle, high) if fits else (low, middle)
    return low


def test_three_tenths_are_three_times_a_tenth_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    Budget(0.3).save(path)
    for _ in range(3):
        Budget.load(path).spend(Pure(0.1))
    with pytest.raises(BudgetExhausted):
        Budget.load(path).spend(Pure(1e-9))
    assert Budget.load(path).remaining == (0.0, 0.0)


def test_an_account_without_a_cap_can_be_kept(tmp_path: Path) -> None:
    budget = Budget(math.inf)
    budget.save(tmp_path / "account.json")
    budget.spend(Pure(math.inf), what="all")
    again = Budget.load(tmp_path / "account.json")
    assert again.epsilon == again.spent[0] == math.inf


def test_the_history_says_what_was_paid_for_what(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    budget = Budget(1.0, 1e-6)
    budget.spend(Pure(0.1), what="a first model")
    budget.save(path)
    budget.spend(Approximate(0.2, 1e-7), delta=1e-7, what="a \ud800 <b>second</b> one")
    again = Budget.load(path)
    assert again.history == [
        {"what": "a first model", "epsilon": 0.1, "delta": 0.0},
        {"what": "a \ud800 <b>second</b> one", "epsilon": 0.2, "delta": 1e-7},
    ]
    assert again.entries[1].cost == Approximate(0.2, 1e-7)
    zcdp = Budget(1.0, 1e-6, accounting="zcdp")
    zcdp.spend(ZCDP(0.01))
    assert zcdp.history == [{"what": "a use", "rho": 0.01, "delta": 0.0}]


def test_what_was_paid_for_must_be_a_text() -> None:
    budget = Budget(1.0)
    with pytest.raises(InvalidParameter, match="what=3"):
        budget.spend(Pure(0.1), what=3)  # type: ignore[arg-type]
    assert budget.entries == ()


# --- the file


def test_every_payment_is_on_the_disk_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "account.json"
    budget = Budget(1.0)
    budget.save(path)
    synced: list[int] = []
    real = os.fsync

    def watched(fd: int) -> None:
        synced.append(fd)
        real(fd)

    monkeypatch.setattr(os, "fsync", watched)
    budget.spend(Pure(0.25))
    assert len(synced) == 2  # the file, and its folder
    assert Budget.load(path).spent == (0.25, 0.0)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        budget.spend(Pure(0.25))
    assert budget.spent == Budget.load(path).spent == (0.25, 0.0)
    assert [file.name for file in tmp_path.iterdir()] == ["account.json"]
    monkeypatch.setattr(os, "fsync", real)
    budget.spend(Pure(0.75))
    assert Budget.load(path).remaining == (0.0, 0.0)


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    budget = Budget(1.0)
    budget.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    budget.spend(Pure(0.1))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    first = Budget(1.0)
    first.save(path)
    first.spend(Pure(0.5))
    with pytest.raises(InvalidParameter, match=r"exists already.*Budget\.load"):
        Budget(1.0).save(path)
    first.save(path)  # it lives there
    with pytest.raises(LiveState, match="a second file"):
        first.save(tmp_path / "other.json")
    with pytest.raises(LiveState, match="a second file"):
        Budget.load(path).save(tmp_path / "other.json")
    assert Budget.load(path).spent == (0.5, 0.0)
    assert not (tmp_path / "other.json").exists()


def test_a_save_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError):
        Budget(1.0).save(tmp_path / "nowhere" / "account.json")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    budget = Budget(1.0)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        budget.save(tmp_path / "account.json")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    budget.save(tmp_path / "account.json")


def test_two_that_load_one_file_spend_it_once(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    Budget(1.0).save(path)
    one, two = Budget.load(path), Budget.load(path)
    one.spend(Pure(0.6), what="one")
    with pytest.raises(BudgetExhausted, match=r"epsilon=0\.4"):
        two.spend(Pure(0.6), what="two")
    two.spend(Pure(0.4), what="two")
    assert [entry.what for entry in two.entries] == ["one", "two"]
    with pytest.raises(BudgetExhausted):
        one.spend(Pure(0.1))


def test_processes_together_never_exceed_the_cap(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    Budget(0.3).save(path)
    work = (
        "import sys\n"
        "from cumae import Budget, BudgetExhausted\n"
        "from cumae.privacy import Pure\n"
        "budget, paid = Budget.load(sys.argv[1]), 0\n"
        "for _ in range(20):\n"
        "    try:\n"
        "        budget.spend(Pure(0.01))\n"
        "        paid += 1\n"
        "    except BudgetExhausted:\n"
        "        pass\n"
        "print(paid)\n"
    )
    run = [sys.executable, "-c", work, str(path)]
    both = [subprocess.Popen(run, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    paid = [int(each.communicate()[0]) for each in both]
    assert sum(paid) == 30
    assert len(Budget.load(path).entries) == 30


def test_what_was_paid_before_a_crash_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    Budget(100.0).save(path)
    work = (
        "import sys\n"
        "from cumae import Budget\n"
        "from cumae.privacy import Pure\n"
        "budget = Budget.load(sys.argv[1])\n"
        "while True:\n"
        "    budget.spend(Pure(0.01))\n"
        "    print('paid', flush=True)\n"
    )
    run = [sys.executable, "-c", work, str(path)]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(20):
            process.stdout.readline()
        process.kill()
        paid = 20 + len(process.stdout.readlines())
    found = Budget.load(path)
    assert len(found.entries) in (paid, paid + 1)  # the last one may not have been told
    found.spend(Pure(0.01))


def test_an_old_copy_that_was_put_back_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    budget = Budget(1.0)
    budget.save(path)
    old = path.read_bytes()
    budget.spend(Pure(0.5))
    path.write_bytes(old)
    with pytest.raises(LiveState, match="replaced"):
        budget.spend(Pure(0.1))
    path.unlink()
    with pytest.raises(FileNotFoundError):
        budget.spend(Pure(0.1))
    Budget(2.0).save(path)
    with pytest.raises(LiveState, match="replaced"):
        budget.spend(Pure(0.1))
    assert budget.spent == (0.5, 0.0)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = tmp_path / "real" / "account.json"
    Budget(1.0).save(path)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    Budget.load(link).spend(Pure(0.5))
    assert link.is_symlink()
    assert Budget.load(path).spent == (0.5, 0.0)


# --- damaged and foreign files


def _stored(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    path = tmp_path / "account.json"
    budget = Budget(1.0, 1e-6)
    budget.spend(Pure(0.5), what="a fit")
    budget.save(path)
    return path, json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "null", '{"kind": "other"}', "[" * 100_000, "\x00", '"kind"']
)
def test_what_is_no_account_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "account.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidParameter, match="holds no account"):
        Budget.load(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidParameter, match="holds no account"):
        Budget.load(path)


def test_an_account_of_the_first_format_is_read(tmp_path: Path) -> None:
    path, plain = _stored(tmp_path)
    path.write_text(json.dumps(plain | {"format": 1}), encoding="utf-8")
    budget = Budget.load(path)
    budget.spend(Pure(0.01))
    assert json.loads(path.read_text(encoding="utf-8"))["format"] == TEXT_FORMAT
    assert Budget.load(path).spent == budget.spent


@pytest.mark.parametrize("number", [0, 2, None, "1", 1.5])
def test_another_format_is_refused(tmp_path: Path, number: Any) -> None:
    path, plain = _stored(tmp_path)
    assert plain["format"] == TEXT_FORMAT
    path.write_text(json.dumps(plain | {"format": number}), encoding="utf-8")
    with pytest.raises(InvalidParameter, match="format"):
        Budget.load(path)


def test_an_edited_file_is_refused(tmp_path: Path) -> None:
    path, plain = _stored(tmp_path)
    text = path.read_text(encoding="utf-8")
    for old, new in (("0.5", "0.4"), ("a fit", "no fit"), ('"sum"', '"zcdp"'), ("1.0", "2.0")):
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(InvalidParameter, match="damaged or edited"):
            Budget.load(path)
    for missing in ("account", "sha256"):
        path.write_text(json.dumps({k: plain[k] for k in plain if k != missing}), encoding="utf-8")
        with pytest.raises(InvalidParameter, match="damaged or edited"):
            Budget.load(path)
    path.write_text(json.dumps(plain), encoding="utf-8")  # other layout, same content
    assert Budget.load(path).spent == (0.5, 0.0)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": -1.0},
        {"epsilon": 0.25},  # less than what was paid
        {"delta": "0"},
        {"accounting": "other"},
        {"entries": [{}]},
        {"entries": [3]},
        {"entries": None},
    ],
    ids=repr,
)
def test_values_that_make_no_account_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    """Also when they were written with a right checksum."""
    path, plain = _stored(tmp_path)
    account_file_module.write_account(path, plain["account"] | change)
    with pytest.raises(InvalidParameter, match="stored"):
        Budget.load(path)


def test_a_cost_that_is_nested_beyond_reason_is_refused(tmp_path: Path) -> None:
    path, plain = _stored(tmp_path)
    cost: dict[str, Any] = {"kind": "Pure", "eps": 0.5}
    for _ in range(400):
        cost = {"kind": "Subsampled", "base": cost, "rate": 1.0}
    entry = plain["account"]["entries"][0] | {"cost": cost}
    account_file_module.write_account(path, plain["account"] | {"entries": [entry]})
    with pytest.raises(InvalidParameter, match="stored"):
        Budget.load(path)
