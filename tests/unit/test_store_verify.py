"""Ledgers that no correct writer makes: ``verify`` refuses them, and so does the opening."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from typer.testing import CliRunner

import cumae
from cumae import Budget, StoreFailed, store
from cumae.cli import app
from cumae.concepts import Thresholds
from cumae.privacy import Pure
from cumae.store import ledger, writer
from cumae.store.ledger import Totals, first_hash, following, walk
from tests.oracles import ROWS, SHARED, break_off, oracle
from tests.states import rows_of

pytestmark = [pytest.mark.claim("STORE"), pytest.mark.filterwarnings("ignore::UserWarning")]

Facts = dict[str, Any]
LABELS = (ROWS[:, 0] > 0.3).astype(int)


def connected(path: Path) -> apsw.Connection:
    return apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)


def read(path: Path) -> tuple[str, list[Facts]]:
    """Return the id of an oracle and what its ledger says."""
    connection = connected(path)
    name = dict(connection.execute("SELECT name, value FROM meta"))["oracle"]
    texts = connection.execute("SELECT entry FROM ledger ORDER BY number").fetchall()
    connection.close()
    return str(name), [json.loads(str(text)) for (text,) in texts]


def chained(name: str, chain: list[Facts], number: int = 0) -> list[Any]:
    """Return entries whose hashes fit, whatever they say."""
    before, entries = first_hash(name) if not number else bytes(32), []
    for facts in chain:
        made = following(number, before, facts)
        entries.append(made)
        number, before = made.number, made.hash
    return entries


def write(path: Path, entries: list[Any]) -> None:
    """Put another ledger into a file, as whoever may write it can."""
    connection = connected(path)
    connection.execute("DELETE FROM ledger")
    connection.executemany("INSERT INTO ledger VALUES (?, ?, ?)", [tuple(one) for one in entries])
    connection.close()


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an oracle whose ledger has an entry of nearly every kind; its keys lie beside it."""
    folder = tmp_path_factory.mktemp("long")
    given: dict[str, Any] = {**SHARED, "prior": True, "columns": [(0, 1)]}
    made = cumae.EverlastingPredictor(Thresholds(), **given).fit(ROWS, LABELS)
    made.save_to(folder / "oracle.db")
    stored = cumae.open(folder / "oracle.db")
    stored.predict(ROWS[:20])
    stored.add_labelled(ROWS[:3], LABELS[:3])
    stored.predict(ROWS[:2], request_id="one")
    stored.rotate_key()
    break_off(stored)
    stored = cumae.open(folder / "oracle.db")
    stored.predict(rows_of(ROWS, 0, stored._state_.left + 1))
    assert stored.phase_ == 2
    stored.predict(ROWS[:2])
    stored.close()
    return folder / "oracle.db"


@pytest.fixture(scope="module")
def chain(long: Path) -> tuple[str, list[Facts]]:
    name, facts = read(long)
    kinds = {one["event"] for one in facts}
    assert kinds >= {"made", "prior", "phase", "answered", "rows", "rotated", "prepared"}
    return name, facts


def at(facts: list[Facts], event: str, last: bool = False) -> int:
    places = [place for place, one in enumerate(facts) if one["event"] == event]
    return places[-1 if last else 0]


def edited(event: str, last: bool = False, **changes: Any) -> Callable[[list[Facts]], None]:
    def edit(facts: list[Facts]) -> None:
        facts[at(facts, event, last)].update(changes)

    return edit


def added(**entry: Any) -> Callable[[list[Facts]], None]:
    def edit(facts: list[Facts]) -> None:
        used = facts[-1]["used"]
        facts.append(
            {
                name: used + value[0] if type(value) is tuple else value
                for name, value in entry.items()
            }
        )

    return edit


def without(event: str, last: bool = False) -> Callable[[list[Facts]], None]:
    return lambda facts: facts.__delitem__(at(facts, event, last))


def repeated(event: str, **changes: Any) -> Callable[[list[Facts]], None]:
    return lambda facts: facts.append({**facts[at(facts, event, last=True)], **changes})


def reset(facts: list[Facts]) -> None:
    totals, last = walk("id", chained("id", facts), recompute=False)
    said = {**totals.to_facts(), "used": 0}
    facts.append({"event": "checkpoint", "before": last.hash.hex(), "totals": said})


def elsewhere(facts: list[Facts]) -> None:
    totals, _ = walk("id", chained("id", facts), recompute=False)
    facts.append({"event": "checkpoint", "before": "00" * 32, "totals": totals.to_facts()})


def promised(facts: list[Facts]) -> None:
    facts[0]["guarantee"]["epsilon"] = 0.001


def more_releases(facts: list[Facts]) -> None:
    facts[at(facts, "phase", last=True)]["releases"] += 1


PLANTS: dict[str, Callable[[list[Facts]], None]] = {
    "answers without a debit": added(event="answered", count=100, debit=0, used=(0,)),
    "answers with half a debit": added(event="answered", count=100, debit=50, used=(50,)),
    "a debit that is not used": added(event="answered", count=5, debit=5, used=(4,)),
    "more used than debited": added(event="answered", count=5, debit=5, used=(6,)),
    "no answers": added(event="answered", count=0, debit=0, used=(0,)),
    "a negative count": added(event="answered", count=-5, debit=1, used=(1,)),
    "a negative debit": added(event="answered", count=1, debit=-1, used=(-1,)),
    "a count of half an answer": added(event="answered", count=0.5, debit=0.5, used=(0.5,)),
    "a count that is true": added(event="answered", count=True, debit=1, used=(1,)),
    "a count that is text": added(event="answered", count="1", debit=1, used=(1,)),
    "more than the noise covers": added(event="answered", count=900, debit=900, used=(900,)),
    "a phase twice": repeated("phase"),
    "a phase again, with a new key": repeated("phase", epoch=4),
    "a phase left out": repeated("phase", epoch=4, phase=4),
    "an epoch left out": repeated("phase", epoch=5, phase=3),
    "a phase from before": repeated("phase", epoch=4, phase=1),
    "a phase of text": repeated("phase", epoch=4, phase="3"),
    "a phase without its first half": without("phase"),
    "a phase without a cost": edited("phase", cost=None),
    "a phase that was published": edited("phase", cost=None, published=True),
    "noise that was published": edited("phase", published=True),
    "a cheaper phase than it is": edited("phase", epsilon="1.0"),
    "a phase that costs NaN": edited("phase", epsilon="nan"),
    "a phase of negative cost": edited("phase", epsilon="-1.0"),
    "a cost of an unknown kind": edited("phase", cost={"kind": "Nothing"}),
    "no cost at all": edited("phase", cost={}),
    "more releases than were paid for": more_releases,
    "a step of an unknown kind": edited("phase", steps=[{"step": "forgotten"}]),
    "a phase that forgets a prior": edited("phase", priors=0),
    "a new key that gives back": edited("rotated", used=0),
    "a new key with more releases": edited("rotated", releases=100),
    "a new key with answers of its own": edited("rotated", phase=2),
    "a prior left out": without("prior"),
    "a prior twice": lambda facts: facts.insert(1, facts[at(facts, "prior")]),
    "a prior of NaN": edited("prior", epsilon="nan"),
    "a prior that costs too much": edited("prior", epsilon=90.0),
    "a prior of negative cost": edited("prior", epsilon=-1.0),
    "a prior with a negative delta": edited("prior", delta=-1),
    "a prior with a delta of text": edited("prior", delta="nan"),
    "a prior trusted too much": edited("prior", trust="inf"),
    "a prior of negative rows": edited("prior", rows=-1),
    "a restart that gives back": added(event="restarted", used=(-1,)),
    "a rollback that gives back": added(event="rollback", used=(-1,)),
    "a call broken off that gives back": added(event="broken off", used=(-1,)),
    "a training that gives back": added(event="prepared", used=(-1,)),
    "a draw that gives back": added(event="used", used=(-1,)),
    "a draw of more than there is": added(event="used", used=(900,)),
    "a summary that gives back": added(event="compacted", used=(-1,)),
    "half a release": added(event="prepared", used=(0.5,)),
    "rows of an unknown kind": added(event="rows", kind="stolen", count=1),
    "a negative number of rows": added(event="rows", kind="labelled", count=-1),
    "a piece that comes back": added(event="prepared", used=(0,), blob=1),
    "a piece without a number": added(event="prepared", used=(0,), blob=-1),
    "a checkpoint that resets": reset,
    "a checkpoint of another chain": elsewhere,
    "a checkpoint of nothing": added(event="checkpoint", before="00" * 32, totals={}),
    "a checkpoint that replaces a method": added(
        event="checkpoint", before="00" * 32, totals={"_pays": 1, "epsilon": "0.0"}
    ),
    "a drift in no phase": edited("made", drift=[0, 0.1]),
    "a drift of text": edited("made", drift=["9", 0.1]),
    "a drift without a step": edited("made", drift=[9]),
    "a drift that goes back": edited("made", drift=[9, -0.1]),
    "a drift that is none": edited("made", drift=None),
    "a second beginning": repeated("made"),
    "another promise": promised,
    "no beginning": without("made"),
    "a payment": added(event="paid", entry={}),
    "an event of an unknown kind": added(event="gift"),
    "an entry without an event": lambda facts: facts.append({"used": 1}),
    "an entry that is a list": lambda facts: facts.append([]),  # type: ignore[arg-type]
    "a field too many": added(event="prepared", used=(0,), note="x"),
    "a field too few": added(event="prepared"),
}


@pytest.mark.parametrize("name", PLANTS)
def test_a_ledger_that_no_correct_writer_makes_is_refused(
    name: str, chain: tuple[str, list[Facts]]
) -> None:
    """Whoever may write the file can make a chain that fits; then what it says must fit as well."""
    walk("id", chained("id", chain[1]))
    facts = json.loads(json.dumps(chain[1]))
    PLANTS[name](facts)
    with pytest.raises(StoreFailed, match=r"ledger does not fit|unknown kind"):
        walk("id", chained("id", facts))


def test_each_kind_of_entry_and_each_count_is_among_the_plants(
    chain: tuple[str, list[Facts]],
) -> None:
    """Every count of every entry, turned into what is none, is refused."""
    found = set()
    for place, entry in enumerate(chain[1]):
        found.add(entry["event"])
        for name in ledger.COUNTS & entry.keys():
            for value in (-1, 0.5, "1", None, True, [1]):
                facts = list(chain[1])
                facts[place] = {**entry, name: value}
                with pytest.raises(StoreFailed, match="ledger does not fit"):
                    walk(chain[0], chained(chain[0], facts), recompute=False)
    planted = {"restarted", "rollback", "broken off", "used", "compacted", "checkpoint", "paid"}
    assert found | planted == set(ledger.FIELDS)


# --- what only keys can tell


def with_keys(source: Path, folder: Path) -> Path:
    """Return a copy of an oracle, with its keys beside it."""
    shutil.copy(source, folder / "oracle.db")
    shutil.copytree(source.with_name("oracle.db.keys"), folder / "oracle.db.keys")
    return folder / "oracle.db"


def an_answer_more(facts: list[Facts]) -> None:
    facts[at(facts, "phase", last=True)]["count"] += 1


def better_protected(facts: list[Facts]) -> None:
    facts[0]["guarantee"]["protects"] = "everybody"


COULD_BE: dict[str, Callable[[list[Facts]], None]] = {
    "an answer more": an_answer_more,
    "another promise": better_protected,
    "rows that never came": added(event="rows", kind="supplied", count=1),
    "an answer that was not given": added(event="answered", count=1, debit=1, used=(1,)),
    "the last entry left out": lambda facts: facts.__delitem__(-1),
}


@pytest.mark.parametrize("name", COULD_BE)
def test_no_other_ledger_opens_the_state(
    name: str, long: Path, chain: tuple[str, list[Facts]], tmp_path: Path
) -> None:
    """Also one that a correct writer could have written: the state names the true one."""
    path, facts = with_keys(long, tmp_path), json.loads(json.dumps(chain[1]))
    COULD_BE[name](facts)
    write(path, chained(chain[0], facts))
    store.status(path)
    reasons = "not the one that the state|disagree about what was used|does not hold all"
    with pytest.raises(StoreFailed, match=f"older copy|{reasons}"):
        cumae.open(path)
    with pytest.raises(StoreFailed, match=reasons):
        cumae.open(path, accept_rollback=True)


def verified(path: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["verify", str(path), *words])
    return done.exit_code, done.output


@pytest.fixture
def cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an oracle whose ledger begins with a checkpoint."""
    monkeypatch.setattr(writer, "CHECKPOINT", 6)
    path, stored = oracle(tmp_path)
    for _ in range(6):
        stored.predict(ROWS[:2])
    stored.close()
    assert read(path)[1][0]["event"] == "checkpoint"
    return path


def test_a_checkpoint_is_trusted_by_its_seal_alone(cut: Path, tmp_path: Path) -> None:
    assert verified(cut)[0] == 0
    code, told = verified(cut, "--keys", f"folder:{cut}.keys")
    assert (code, "epsilon" in told) == (0, True)
    store.backup(cut, tmp_path / "copy.db")
    code, told = verified(tmp_path / "copy.db")  # no keys lie beside it
    assert (code, "needs the keys" in told.replace("\n", " ")) == (1, True)
    assert verified(tmp_path / "copy.db", "--keys", f"folder:{cut}.keys")[0] == 0
    name, facts = read(cut)
    first = int(connected(cut).execute("SELECT min(number) FROM ledger").get)
    for edit in (
        {"totals": {**facts[0]["totals"], "answers": 0}},
        {"totals": {**facts[0]["totals"], "epsilon": "0.001"}},
        {"before": "00" * 32},
        {"marked": [1, "00" * 32]},
        {"seal": "00" * 32},
        {"seal": None},
    ):
        write(cut, chained(name, [{**facts[0], **edit}, *facts[1:]], first - 1))
        assert verified(cut)[0] == 1
        with pytest.raises(StoreFailed):
            cumae.open(cut, accept_rollback=True)
    write(cut, chained(name, [{**facts[0]}, *facts[1:]], first))  # one place further
    assert verified(cut)[0] == 1


def test_a_forged_checkpoint_ahead_of_the_mark_is_refused(tmp_path: Path) -> None:
    """Whoever can write the file goes back to an older copy, and says that it is a later one."""
    path, stored = oracle(tmp_path)
    stored.predict(ROWS[:3])
    stored.close()
    shutil.copy(path, tmp_path / "old.db")
    stored = cumae.open(path)
    stored.predict(ROWS[:30])
    stored.close()
    shutil.copy(tmp_path / "old.db", path)
    name, facts = read(path)
    totals, _ = walk(name, chained(name, facts), recompute=False)
    said = {**totals.to_facts(), "epsilon": "0.0009", "answers": 0}
    forged = {"event": "checkpoint", "before": "00" * 32, "totals": said}
    for more in ({}, {"seal": "00" * 32}, {"marked": [4, "00" * 32]}):
        write(path, chained(name, [{**forged, **more}], 1_000))
        assert verified(path)[0] == 1
        with pytest.raises(StoreFailed, match="without its seal"):
            cumae.open(path, accept_rollback=True)


def test_a_file_that_was_left_behind_is_recognised_after_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "CHECKPOINT", 6)
    path, stored = oracle(tmp_path)
    stored.predict(ROWS[:2])
    store.backup(path, tmp_path / "copy.db")
    for _ in range(9):
        stored.predict(ROWS[:2])
    stored.close()
    cumae.open(path).close()  # it has no more than the entry that the mark names, or a checkpoint
    path.rename(tmp_path / "left.db")
    shutil.copy(tmp_path / "copy.db", path)
    stored = cumae.open(path, accept_rollback=True)
    stored.predict(ROWS[:2])
    stored.close()
    (tmp_path / "left.db").rename(path)
    with pytest.raises(StoreFailed, match="older copy"):
        cumae.open(path)
    cumae.open(path, accept_rollback=True).close()
    assert store.status(path).totals.rollbacks == 1


@pytest.mark.parametrize("step", ["commit", "write_mark"])
def test_a_crash_at_a_checkpoint_needs_no_decision(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark names an entry that the checkpoint has replaced, if the mark was not written."""
    path, stored = oracle(tmp_path)
    monkeypatch.setattr(writer, "CHECKPOINT", 6)

    def dead(*_: Any) -> None:
        raise KeyboardInterrupt

    for _ in range(3):
        stored.predict(ROWS[:2])
    held = stored._counter_.journal.writer
    real = held._commit

    def committed(transaction: Any) -> None:
        if step == "write_mark":
            real(transaction)
            monkeypatch.setattr(held.life, "write_mark", dead)
        else:
            dead()

    monkeypatch.setattr(held, "_commit", committed)
    with pytest.raises(KeyboardInterrupt):
        stored.predict(ROWS[:2])
    break_off(stored)
    assert (read(path)[1][0]["event"] == "checkpoint") == (step == "write_mark")
    stored = cumae.open(path)
    assert stored.answered_ == (8 if step == "write_mark" else 6)
    stored.close()
    assert verified(path)[0] == 0


def test_the_promise_of_a_published_model_is_compared(tmp_path: Path) -> None:
    learner = cumae.PrivateLearner(Thresholds(), epsilon=2.0, columns=[(0, 1)]).fit(ROWS, LABELS)
    learner.save_to(tmp_path / "model.db")
    assert cumae.open(tmp_path / "model.db").guarantee_ == learner.guarantee_
    name, facts = read(tmp_path / "model.db")
    for edit in (better_protected, added_to_a_model):
        forged = json.loads(json.dumps(facts))
        edit(forged)
        write(tmp_path / "model.db", chained(name, forged))
        with pytest.raises(StoreFailed, match=r"older copy|something was added"):
            cumae.open(tmp_path / "model.db")


def added_to_a_model(facts: list[Facts]) -> None:
    facts.append({"event": "prepared", "used": 0})


def test_payments_beyond_the_cap_are_noticed_without_keys(tmp_path: Path) -> None:
    budget = Budget(1.0)
    budget.save_to(tmp_path / "account.db")
    budget.spend(Pure(0.6))
    assert verified(tmp_path / "account.db")[0] == 0
    name, facts = read(tmp_path / "account.db")
    for edit in (
        [*facts, facts[-1]],
        [*facts, {"event": "paid", "entry": {**facts[-1]["entry"], "epsilon": -0.5}}],
        [*facts, {"event": "paid", "entry": {**facts[-1]["entry"], "epsilon": "nan"}}],
        [*facts, {"event": "prepared", "used": 0}],
        [{**facts[0], "account": {**facts[0]["account"], "epsilon": 9.0}}, *facts[1:]],
        [{**facts[0], "kind": "QueryRelease"}, *facts[1:]],
    ):
        write(tmp_path / "account.db", chained(name, edit))
        assert verified(tmp_path / "account.db")[0] == 1


def test_status_says_how_large_the_file_is(cut: Path) -> None:
    """Its size follows from public counts (tests of observables)."""
    size = cut.stat().st_size
    assert f"{size:,} bytes" in CliRunner().invoke(app, ["status", str(cut)]).output
    told = CliRunner().invoke(app, ["status", str(cut), "--json"]).output
    assert json.loads(told)["bytes"] == size


def test_totals_say_what_every_entry_adds_up_to(chain: tuple[str, list[Facts]]) -> None:
    """A checkpoint in the middle is accepted if it is that of what came before."""
    totals, last = walk(chain[0], chained(*chain))
    said = {"before": last.hash.hex(), "totals": totals.to_facts()}
    facts = [*chain[1], {"event": "checkpoint", **said}]
    assert walk(chain[0], chained(chain[0], facts))[0] == totals
    assert totals != Totals()
