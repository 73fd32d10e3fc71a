"""A hand-over from memory to a file that is broken off, at any line: one of them goes on."""

from __future__ import annotations

import itertools
import linecache
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import cumae
from cumae import Budget, CumaeError, LiveState, StoreFailed, live, locks, store
from cumae.locks import FileLock
from cumae.predictors import state, stateful
from cumae.predictors.state import restore
from cumae.privacy import Pure, account_file, budget
from cumae.store import accounts, journal, keys, oracle
from cumae.store.homes import home, sqlite
from tests.oracles import Where, everlasting, key_command
from tests.tracing import Traced

pytestmark = [
    pytest.mark.claim("STORE", "BUDGET"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

FILES = {
    module.__file__
    for module in (
        *(accounts, account_file, budget, home, journal, keys, live, oracle, sqlite, state),
        stateful,
    )
}
MOST = 4  # times that one line is interrupted: the mark is the third key that is put


class Interrupted(Traced):
    """Raises at the n-th place of a hand-over, before a line or when a function returns.

    Parameters
    ----------
    place : int
        Which one.
    events : tuple of str
        What counts as a place.
    """

    def __init__(self, place: int, events: tuple[str, ...] = ("line", "return")) -> None:
        self.left, self.events, self.fired = place, events, False
        self._seen: dict[tuple[str, int, str], int] = {}

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        if file not in FILES:
            return None
        place = (file, frame.f_lineno, event)
        self._seen[place] = self._seen.get(place, 0) + 1
        if self.fired or event not in self.events or self._seen[place] > MOST:
            return self.trace
        # Python never interrupts between the last line of such a block and its end.
        text = linecache.getline(file, frame.f_lineno).strip()
        if text.startswith(
            (
                "with ",
                "try:",
                "finally:",
                "os.close(",
                "CALLS.objects = before",
                "CALLS.objects = outside",
                "self._inside = False",
            )
        ):
            return self.trace
        self.left -= 1
        if self.left == 0:
            self.fired = True
            raise KeyboardInterrupt
        return self.trace


def lives(calls: dict[str, Callable[[], Any]]) -> list[str]:
    """Return which of several ways to go on are open."""
    found = []
    for name, call in calls.items():
        with suppress(CumaeError):
            call()
            found.append(name)
    return found


def asked(path: Any, given: str | None = None) -> None:
    opened = cumae.open(path, keys=given)
    try:
        opened.predict([[0.5]])
    finally:
        opened.close()


def moved(place: int, arrays: Any, path: Any, given: str | None = None) -> list[str]:
    """Break a hand-over off; return who answers afterwards, and nothing if it was not."""
    one = restore(arrays)
    with Interrupted(place) as shot, suppress(KeyboardInterrupt):
        one.save_to(path, keys=given)
    if not shot.fired:
        assert lives({"memory": lambda: one.predict([[0.5]])}) == []
        return []
    calls = {"memory": lambda: one.predict([[0.5]]), "file": lambda: asked(path, given)}
    return [*lives(calls), "tried"]


def test_a_predictor_lives_once_wherever_the_hand_over_is_broken_off(tmp_path: Path) -> None:
    arrays = everlasting().to_arrays()
    seen = set()
    for place in itertools.count(1):
        folder = tmp_path / str(place)
        folder.mkdir()
        found = moved(place, arrays, folder / "oracle.db")
        if not found:
            break
        assert len(found) == 2, (place, found)  # exactly one of them, and not both or none
        seen.add(found[0])
        if found[0] == "memory":  # then nothing is left but what can be removed
            assert not (folder / "oracle.db").exists() or not list(folder.glob("*.keys/mark*"))
    assert seen == {"memory", "file"}
    assert place > 150


def test_with_a_command_for_keys_there_are_never_two(tmp_path: Path) -> None:
    """One that failed may have stored the mark: then the predictor in memory refuses for ever."""
    script = tmp_path / "keys.sh"
    script.write_text(
        'cd "$1"\ncase "$2" in list) ls ;; get) cat "$3" ;; put) cat > "$3" ;; '
        'delete) rm -f "$3" ;; esac\ncase "$2 $3" in "$(cat ../fails)"*) exit 1 ;; esac\n',
        encoding="utf-8",
    )
    for fails in ("put oracle", "put epoch-1", "put mark"):
        folder = tmp_path / fails.replace(" ", "-")
        (folder / "elsewhere").mkdir(parents=True)
        (folder / "fails").write_text(fails, encoding="utf-8")
        given = f"sh {script} {folder / 'elsewhere'}"
        one = everlasting()
        with pytest.raises(StoreFailed):
            one.save_to(folder / "oracle.db", keys=given)
        (folder / "fails").write_text("nothing", encoding="utf-8")
        calls: dict[str, Callable[[], Any]] = {
            "memory": partial(one.predict, [[0.5]]),
            "file": partial(asked, folder / "oracle.db", given),
        }
        assert lives(calls) == (["file"] if fails == "put mark" else ["memory"])


def test_a_command_that_is_broken_off_leaves_one_at_most(tmp_path: Path) -> None:
    command, where = key_command(tmp_path)
    one = everlasting()
    real = keys.KeyCommand.put

    def put(self: keys.KeyCommand, name: str, secret: bytes) -> None:
        if name.startswith(keys.MARK):
            raise KeyboardInterrupt
        real(self, name, secret)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keys.KeyCommand, "put", put)
        with pytest.raises(KeyboardInterrupt):
            one.save_to(tmp_path / "oracle.db", keys=command)
    assert (tmp_path / "oracle.db").exists()  # nobody knows, so nothing is undone
    assert sorted(path.name.split("-")[0] for path in where.iterdir()) == ["epoch", "oracle"]
    with pytest.raises(LiveState, match=r"lives in .* now"):
        one.predict([[0.5]])


@pytest.mark.parametrize("way", ["save_to", "save"])
def test_an_account_is_spent_once_wherever_the_hand_over_is_broken_off(
    tmp_path: Path, way: str
) -> None:
    again = {"save_to": cumae.open, "save": Budget.load}[way]
    for place in itertools.count(1):
        folder = tmp_path / str(place)
        folder.mkdir()
        path = folder / "account"
        account = Budget(epsilon=1.0)
        account.spend(Pure(0.25))
        with Interrupted(place) as shot, suppress(KeyboardInterrupt):
            getattr(account, way)(path)
        spent = 0.25
        for pay in (account.spend, lambda cost: again(path).spend(cost)):  # noqa: B023
            with suppress(CumaeError, OSError):
                pay(Pure(0.75))
                spent += 0.75
        assert spent == 1.0, place  # not twice, and not never
        if not shot.fired:
            break
    assert place > {"save_to": 100, "save": 20}[way]


@pytest.mark.parametrize("where", ["json", "ledger"])
def test_a_payment_that_is_broken_off_counts_whole_or_not_at_all(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory and file agree afterwards, and the cap holds."""
    files = {accounts.__file__, account_file.__file__, budget.__file__, locks.__file__}
    monkeypatch.setattr(f"{__name__}.FILES", files)
    for place in itertools.count(1):
        path = tmp_path / f"{place}"
        account = Budget(epsilon=1.0)
        account.save_to(path) if where == "ledger" else account.save(path)
        with Interrupted(place, ("line",)) as shot, suppress(KeyboardInterrupt):
            account.spend(Pure(0.5))
        with suppress(CumaeError):
            account.spend(Pure(0.25))
        known = account.entries
        stored = cumae.open(path) if where == "ledger" else Budget.load(path)
        assert stored.entries == known
        assert stored.spent == account.spent == (sum(one.epsilon for one in known), 0.0)
        if not shot.fired:
            break
    assert place > 10


@pytest.mark.parametrize("where", ["json", "ledger"])
def test_a_payment_that_is_broken_off_lets_go_of_its_lock(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others can pay though somebody keeps the error, as a console does; its frames hold much."""
    files = {accounts.__file__, account_file.__file__, budget.__file__, locks.__file__}
    monkeypatch.setattr(f"{__name__}.FILES", files)
    kept = []
    for place in itertools.count(1):
        path = tmp_path / f"{place}"
        account = Budget(epsilon=1.0)
        account.save_to(path) if where == "ledger" else account.save(path)
        with Interrupted(place) as shot:
            try:
                account.spend(Pure(0.5))
            except KeyboardInterrupt as error:
                kept.append(error)
        locked = path if where == "json" else path.with_name(f"{place}.keys") / "lock"
        lock = FileLock(locked, os.O_CREAT | os.O_RDWR)
        lock.take(wait=False)
        lock.close()
        if not shot.fired:
            break
    assert len(kept) > 20


@pytest.mark.debian("postgresql")
def test_a_database_lives_once_wherever_the_hand_over_is_broken_off(
    in_postgres: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In PostgreSQL as well; what is below ``oracle`` is another home, and the same keys."""
    where, arrays = in_postgres, everlasting().to_arrays()
    monkeypatch.setattr(f"{__name__}.FILES", {oracle.__file__, stateful.__file__})
    seen = set()
    for place in itertools.count(1):
        found = moved(place, arrays, where.address, where.keys)
        if not found:
            break
        assert len(found) == 2, (place, found)
        seen.add(found[0])
        if found[0] == "file":
            store.destroy(where.address, keys=where.keys)
        shutil.rmtree(where.key_folder, ignore_errors=True)  # it may be left, and empty
    assert seen == {"memory", "file"}
    assert place > 50
