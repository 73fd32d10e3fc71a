"""Copies of one oracle with one key store: over all lives, nothing is given twice."""

from __future__ import annotations

import gc
import itertools
import json
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

import cumae
from cumae import Budget, BudgetExhausted, LiveState, QueryRelease, StoreFailed, store
from cumae.concepts import Thresholds
from cumae.privacy import Pure
from cumae.store import opening, writer
from cumae.store.keys import HOME, KeyCommand, KeyFolder, Life, Mark
from tests.lives import PHASE, Copies, History
from tests.oracles import ROWS, break_off, everlasting, key_command, oracle
from tests.states import rows_of

pytestmark = [
    pytest.mark.claim("STORE", "BUDGET", "REPLICAS"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
STORED = Path(__file__).parent.parent / "stored"


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copies:
    return Copies(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """Return an oracle in a file, not opened yet, and its keys."""
    with pytest.MonkeyPatch.context() as patch:
        made = Copies(tmp_path_factory.mktemp("saved"), patch)
        made.save(everlasting())
    return made.folder / "a.db", made.secrets


# --- two lives


def test_of_two_copies_behind_a_command_one_goes_on(tmp_path: Path) -> None:
    """A snapshot of the file is started elsewhere, and the keys are on a third machine."""
    command, _ = key_command(tmp_path)
    first, second = tmp_path / "a.db", tmp_path / "b.db"
    everlasting().save_to(first, keys=command)
    shutil.copy(first, second)
    a = cumae.open(first, keys=command)
    a.predict(ROWS[:1])
    a.predict(ROWS[:4])
    left = a._counter_.journal.writer.mark.high - 5  # what its mark covers already
    with pytest.raises(StoreFailed, match="older copy"):
        cumae.open(second, keys=command)
    a.predict(ROWS[:left])  # an opening that was refused ends nothing
    b = cumae.open(second, keys=command, accept_rollback=True)
    with pytest.raises(StoreFailed, match="somebody has gone on with a copy"):
        a.predict(ROWS[:1])
    b.predict(ROWS[:10])
    used = store.status(second, keys=command).totals.used
    assert used >= 5 + left + 10
    a.close()
    b.close()
    assert cumae.open(second, keys=command).answered_ == 10


def test_one_look_that_fails_does_not_end_a_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command fails at the first try of each kind of look, as a network does now and then."""
    command, _ = key_command(tmp_path)
    everlasting().save_to(tmp_path / "a.db", keys=command)
    real, failed = KeyCommand._run, set[tuple[str, ...]]()

    def flaky(self: KeyCommand, *words: str, given: bytes = b"") -> bytes:
        if words[0] in ("get", "list") and words not in failed:
            failed.add(words)
            raise StoreFailed("the network is down.")
        return real(self, *words, given=given)

    monkeypatch.setattr(KeyCommand, "_run", flaky)
    opened = cumae.open(tmp_path / "a.db", keys=command)
    for _ in range(3):
        failed.clear()
        assert len(opened.predict(ROWS[:30])) == 30
    opened.close()
    assert ("get", "home") in failed


def begun(copies: Copies, saved: tuple[Path, dict[str, bytes]]) -> Any:
    """Return the first life of a new oracle; copies of its file have the names b and c."""
    for path in copies.folder.glob("*.db*"):
        path.unlink()
    shutil.copy(saved[0], copies.folder / "a.db")
    copies.secrets.clear()
    copies.secrets.update(saved[1])
    copies.given.clear()
    copies.copy("a", "b")
    copies.copy("a", "c")
    return copies.open("a")


def raise_the_mark(copies: Copies, lives: list[Any]) -> None:
    copies.ask(lives[0], 30)


def begin_a_phase(copies: Copies, lives: list[Any]) -> None:
    copies.ask(lives[0], PHASE + 20)


def open_it_again(copies: Copies, lives: list[Any]) -> None:
    copies.ask(lives[0], 10)
    break_off(lives[0])
    lives.append(copies.open("a"))


def close_it(copies: Copies, lives: list[Any]) -> None:
    copies.ask(lives[0], 10)
    lives[0].close()


def rotate_the_key(copies: Copies, lives: list[Any]) -> None:
    copies.ask(lives[0], 10)
    lives[0].rotate_key()


STEPS = [raise_the_mark, begin_a_phase, open_it_again, close_it, rotate_the_key]


def interleaved(
    copies: Copies, saved: tuple[Path, dict[str, bytes]], step: Callable[..., None], number: int
) -> bool:
    """Let a copy go on before an access to the keys; then let all of them use up what they can.

    Half of the time all that are open crash first.
    """
    number, crash = divmod(number, 2)
    lives = [begun(copies, saved)]

    def other() -> None:
        with suppress(StoreFailed):
            lives.append(copies.open("b"))
            copies.ask(lives[-1], 100)

    copies.at_access(number, other)
    with suppress(StoreFailed, LiveState):
        step(copies, lives)
    came = copies.came
    for one in lives:  # whoever still has it open; then all of them crash
        if not crash:
            copies.ask_all(one)
        if one._counter_.journal._end.alive:
            break_off(one)
    for name in "cab":
        with suppress(StoreFailed):
            one = copies.open(name)
            copies.ask_all(one)
            break_off(one)
    return came


@pytest.mark.parametrize("step", STEPS)
def test_a_copy_goes_on_before_any_access_to_the_keys(
    step: Callable[..., None], copies: Copies, saved: tuple[Path, dict[str, bytes]]
) -> None:
    most = 0
    for number in itertools.count():
        came = interleaved(copies, saved, step, number)
        copies.check()
        most = max(most, 0, *copies.given.values())
        if not came:
            break
    assert number > 5
    assert most > PHASE // 2  # and somebody does go on


def without_a_look(self: Life, mark: Mark) -> None:
    """Write a mark as before there were lives."""
    self.keys.write_mark(mark, self.mark_name)
    self.mark = mark


def marks_before_the_name(self: Life) -> dict[str, Mark]:
    """Begin a life in the wrong order."""
    marks = self.keys.read_marks()
    self.keys.put(HOME, self._bound)
    return marks


def one_mark_for_all(self: Life, mark: Mark) -> None:
    """Write a mark that an older life can lower, though it looks at the name."""
    self.mark_name = "mark-all"
    without_a_look(self, mark)
    self.check()


def same_epoch_only(self: Mark, epoch: int, phase: int) -> bool:
    """Forget that a rotated key begins an epoch within a phase."""
    del phase
    return self.epoch == epoch


@pytest.mark.parametrize(
    ("owner", "method", "planted", "step"),
    [
        (Mark, "counts", same_epoch_only, rotate_the_key),
        (Life, "write_mark", without_a_look, raise_the_mark),
        (Life, "begin", marks_before_the_name, open_it_again),
        (Life, "write_mark", one_mark_for_all, raise_the_mark),
    ],
)
def test_the_law_of_lives_has_teeth(
    owner: type,
    method: str,
    planted: Callable[..., Any],
    step: Callable[..., None],
    copies: Copies,
    saved: tuple[Path, dict[str, bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owner, method, planted)
    most = 0
    for number in range(80):
        interleaved(copies, saved, step, number)
        most = max(most, 0, *copies.given.values())
        if most > PHASE:
            break
    assert most > PHASE


def most_of_histories(copies: Copies, saved: tuple[Path, dict[str, bytes]], seeds: range) -> int:
    """Return the most answers that any phase gave in any of these histories."""
    most = 0
    for seed in seeds:
        begun(copies, saved).close()
        History(copies, seed).run(25)
        most = max(most, *copies.given.values(), 0)
    return most


def test_random_histories_of_copies_never_exceed_a_phase(
    copies: Copies, saved: tuple[Path, dict[str, bytes]]
) -> None:
    assert PHASE - 20 < most_of_histories(copies, saved, range(25)) <= PHASE


def test_the_law_of_histories_has_teeth(
    copies: Copies, saved: tuple[Path, dict[str, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Life, "write_mark", without_a_look)
    assert most_of_histories(copies, saved, range(30)) > PHASE


def test_a_key_folder_that_was_put_back_ends_the_life(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    folder, before = tmp_path / "oracle.db.keys", tmp_path / "before"
    stored.predict(ROWS[:5])
    shutil.copytree(folder, before)
    stored.predict(ROWS[:50])
    for file in before.iterdir():
        shutil.copy(file, folder)
    with pytest.raises(StoreFailed, match="not the one that was written last"):
        stored.predict(ROWS[:50])
    stored.close()
    assert store.status(path).totals.used == 55


def test_the_next_phase_of_a_life_that_has_ended_never_begins(copies: Copies) -> None:
    """Else its mark, of a later epoch, would end the life that goes on."""
    copies.save(everlasting())
    copies.copy("a", "b")
    a = copies.open("a")
    b = copies.open("b")
    for _ in range(2):
        with pytest.raises(StoreFailed, match="somebody has gone on"):
            a.predict(rows_of(ROWS, 0, PHASE + 1))
    b.predict(rows_of(ROWS, 0, PHASE + 1))
    assert b.phase_ == 2
    b.close()
    a.close()
    copies.open("b").close()


@pytest.mark.parametrize("change", [begin_a_phase, rotate_the_key])
def test_a_life_that_ends_with_its_new_epoch_leaves_the_other_one_usable(
    change: Callable[..., None], copies: Copies, saved: tuple[Path, dict[str, bytes]]
) -> None:
    """Its mark of the new epoch would refuse the file that has gone on meanwhile."""
    usable = 0
    for number in itertools.count():
        lives = [begun(copies, saved)]

        def other(lives: list[Any] = lives) -> None:
            with suppress(StoreFailed):  # if the new epoch has begun already
                lives.append(copies.open("b"))
                copies.ask(lives[-1], 3)

        copies.at_access(number, other)
        with suppress(StoreFailed):
            change(copies, lives)
        if not copies.came:
            break
        answered = [one.answered_ for one in lives[1:]]
        for one in lives:
            break_off(one)
        if answered and answered[0]:
            opened = copies.open("b")
            assert opened.answered_ == answered[0]
            break_off(opened)
            usable += 1
    assert usable > 1


@pytest.mark.parametrize("mechanism", ["stability", "between"])
def test_live_threshold_noise_is_used_in_one_life(mechanism: str, copies: Copies) -> None:
    """Copies hold the same noise; each answer with it needs a look at who may go on."""
    given: dict[str, Any] = {"max_queries": 150, "max_unstable": 40, "n_shards": 60}
    release = QueryRelease(Thresholds(), 400.0, mechanism=mechanism, **given)
    rows = np.random.default_rng(0).random((600, 1))
    copies.save(release.fit(rows, (rows[:, 0] > 0.4).astype(int)))
    copies.copy("a", "b")
    a = copies.open("a")
    a.predict(rows[:3])
    b = copies.open("b")  # charged for three answers, and one more unclear one
    assert b._state_.spent[:2] == (3, 4)  # and so the noise was drawn anew
    with pytest.raises(StoreFailed, match="somebody has gone on"):
        a.predict(rows[:1])
    copies.copy("b", "c")
    c = copies.open("c")  # none has answered since the copy was made: the same noise goes on
    assert b._state_.spent == c._state_.spent
    with pytest.raises(StoreFailed, match="somebody has gone on"):
        b.predict(rows[:1])
    c.predict(rows[:1])
    for one in (a, b, c):
        one.close()


def test_an_opening_that_fails_ends_nobody(copies: Copies) -> None:
    """A copy that is damaged, or that is opened in the wrong way, writes no name."""
    copies.save(everlasting())
    copies.copy("a", "b")
    a = copies.open("a")
    a.predict(ROWS[:5])
    connection = apsw.Connection(str(copies.folder / "b.db"), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.execute("UPDATE blobs SET sealed=zeroblob(100)")
    connection.close()
    before = copies.secrets[HOME]
    with pytest.raises(StoreFailed, match="does not open"):
        copies.open("b")
    assert copies.secrets[HOME] == before
    a.predict(ROWS[:50])
    a.close()


# --- a late end


def lines_of(function: Any) -> list[int]:
    return sorted({line for _, _, line in function.__code__.co_lines() if line})[1:]


def open_until(path: Path, line: int) -> BaseException | None:
    """Break an opening off at a line of ``_Opened.model``; return what was raised, if it was."""

    def trace(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code is not opening._Opened.model.__code__:
            return trace if frame.f_code.co_filename == opening.__file__ else None
        if event == "line" and frame.f_lineno == line:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        cumae.open(path).close()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.settrace(None)
    return None


def test_an_opening_that_is_broken_off_writes_nothing_later(tmp_path: Path) -> None:
    """Somebody keeps the exception, and with it what was opened; it is let go of much later."""
    path, stored = oracle(tmp_path)
    stored.close()
    late = 0
    for line in lines_of(opening._Opened.model):
        error = open_until(path, line)
        if error is None:
            continue
        late += 1
        stored = cumae.open(path)
        stored.predict(ROWS[:9])
        break_off(stored)
        folder = tmp_path / "oracle.db.keys"
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        del error
        gc.collect()
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert late > 10
    cumae.open(path).close()


def test_a_life_without_its_lock_writes_nothing(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    lock = stored._counter_.journal._end.peek()[2][3]
    lock.close()
    folder = tmp_path / "oracle.db.keys"
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(StoreFailed, match="lock of this oracle was let go of"):
        stored.predict(ROWS[:9])
    stored.close()
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert cumae.open(path).answered_ == 0


def test_a_mark_rises_until_its_life_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Mark] = []
    real = KeyFolder.write_mark

    def noted(self: KeyFolder, mark: Mark, name: str) -> None:
        written.append(mark)
        real(self, mark, name)

    monkeypatch.setattr(KeyFolder, "write_mark", noted)
    monkeypatch.setattr(writer, "CHECKPOINT", 5)  # with each of which the mark is written
    _, stored = oracle(tmp_path)
    del written[:]
    for _ in range(60):
        stored.predict(rows_of(ROWS, 0, 7))
    assert stored.phase_ == 2
    levels = [(mark.epoch, mark.high) for mark in written]
    assert levels == sorted(levels)
    assert len(levels) > 20
    stored.close()
    assert written[-1].high == 20


# --- older key folders


@pytest.mark.parametrize("form", ["format_1", "format_2"])
def test_an_older_key_folder_goes_over_to_lives(form: str, tmp_path: Path) -> None:
    """It has one mark for all lives; the ledger of the second begins with a checkpoint."""
    path, folder = tmp_path / "oracle.db", tmp_path / "oracle.db.keys"
    folder.mkdir(mode=0o700)
    for file in (STORED / form).iterdir():
        shutil.copy(file, folder / file.name.removeprefix("key-"))
    (folder / "oracle.sqlite").rename(path)
    path.chmod(0o600)
    shutil.copy(path, tmp_path / "old.db")
    assert store.status(path).totals.answers == 25
    stored = cumae.open(path)
    assert stored.answered_ == 25
    (mark,) = folder.glob("mark*")
    assert mark.name != "mark.json"
    stored.predict(ROWS[:50])
    stored.close()
    assert cumae.open(path).answered_ == 75
    assert store.status(path).unconfirmed == 0
    shutil.copy(tmp_path / "old.db", path)  # what older versions wrote is refused from now on
    with pytest.raises(StoreFailed, match=r"older copy|without its seal"):
        cumae.open(path)


# --- accounts


def pay(budget: Any, paid: list[float]) -> None:
    with suppress(StoreFailed, BudgetExhausted):
        budget.spend(Pure(0.6))
        paid.append(0.6)


def payments_of_two_copies(copies: Copies, number: int) -> tuple[float, bool]:
    """Pay from a copy before an access to the keys by a payment; return the sum of what counts."""
    for path in copies.folder.glob("*.db*"):
        path.unlink()
    copies.secrets.clear()
    copies.save(Budget(1.0))
    copies.copy("a", "b")
    a, b = (copies.open(name) for name in "ab")
    paid: list[float] = []
    copies.at_access(number, lambda: pay(b, paid))
    pay(a, paid)
    came = copies.came
    for one in (a, b):
        pay(one, paid)
    return sum(paid), came


def test_copies_of_an_account_never_exceed_its_cap(copies: Copies) -> None:
    for number in itertools.count():
        total, came = payments_of_two_copies(copies, number)
        assert total == 0.6  # one of them counts, and never both
        if not came:
            break
    assert number > 5


def test_the_law_of_accounts_has_teeth(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Life, "check", lambda self: None)
    assert max(payments_of_two_copies(copies, number)[0] for number in range(9)) > 1.0


def test_an_older_account_goes_over_to_lives(tmp_path: Path) -> None:
    path, folder = tmp_path / "account.db", tmp_path / "account.db.keys"
    budget = Budget(1.0)
    budget.save_to(path)
    (mark,) = folder.glob("mark*")
    facts = json.loads(mark.read_text(encoding="utf-8"))
    del facts["format"]
    mark.unlink()
    (folder / "mark.json").write_text(json.dumps(facts), encoding="utf-8")
    cumae.open(path).spend(Pure(0.25))
    assert not (folder / "mark.json").exists()
    assert len(list(folder.glob("mark*"))) == 1
    budget.spend(Pure(0.75))
    assert budget.remaining == (0.0, 0.0)


def test_a_copy_of_an_account_behind_a_command_is_refused(tmp_path: Path) -> None:
    command, _ = key_command(tmp_path)
    Budget(1.0).save_to(tmp_path / "a.db", keys=command)
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    a, b = (cumae.open(tmp_path / f"{name}.db", keys=command) for name in "ab")
    b.spend(Pure(1.0))
    with pytest.raises(StoreFailed, match="lacks payments"):
        a.spend(Pure(1.0))


def test_a_mark_that_is_deleted_half_way_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys are overwritten before they are removed; half a mark would be a damaged one."""
    path, stored = oracle(tmp_path)
    stored.predict(ROWS[:5])
    stored.close()

    def dead(self: Path, missing_ok: bool = False) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", dead)
        with pytest.raises(KeyboardInterrupt):
            cumae.open(path)
    assert cumae.open(path).answered_ == 5
