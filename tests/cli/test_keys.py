"""``cumae keys``: keys are shown once, listed without their secrets, and revoked."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from cumae.errors import InvalidParameter, StoreFailed
from cumae.serve.access import Limits
from cumae.serve.errors import Refused
from cumae.serve.keys import KeyFile, fits, new_key, parsed
from tests.census import run


def test_a_key_is_made_listed_and_revoked(tmp_path: Path) -> None:
    file = str(tmp_path / "access.json")
    more = ["--roles", "ask,look", "--models", "a,b", "--rate", "2.5", "--answers", "1000"]
    text = run("keys", "new", file, "--client", "ward", *more, "--expires", "2030-01-01").output
    _, name, secret = text.strip().split("_", 2)
    assert run("keys", "new", file).exit_code == 0
    assert stat.S_IMODE(Path(file).stat().st_mode) == 0o600
    listed = run("keys", "list", file).output
    first = "ward  ask,look  until 2030-01-01  2.5 rows a second  1,000 rows  for a, b"
    assert listed.splitlines()[0] == f"{name}  {first}"
    assert secret not in listed + Path(file).read_text()
    assert run("keys", "revoke", file, name).exit_code == 0
    told = json.loads(run("keys", "list", file, "--json").output)
    assert [one["revoked"] for one in told] == [True, False]
    assert "hash" not in told[0]
    assert run("keys", "revoke", file, "nobody").exit_code == 3


@pytest.mark.parametrize(
    "words",
    [
        ["--roles", "ask,rule"],
        ["--roles", ""],
        ["--client", "a/b"],
        ["--rate", "0"],
        ["--rate", "nan"],
        ["--answers", "0"],
        ["--expires", "soon"],
    ],
)
def test_keys_that_make_no_sense_are_refused(words: list[str], tmp_path: Path) -> None:
    found = run("keys", "new", str(tmp_path / "access.json"), *words)
    assert found.exit_code == 3, found.output
    assert not list(tmp_path.iterdir())


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "access.json"
    with pytest.raises(InvalidParameter, match="cumae keys new"):
        KeyFile(path).read()
    KeyFile(path).add(new_key("a", ("ask",))[0])
    path.chmod(0o640)
    with pytest.raises(StoreFailed, match="chmod 600"):
        KeyFile(path).read()
    path.chmod(0o600)
    for broken in ("[]", "{", '{"format": 2, "keys": []}', '{"format": 1, "keys": [{}]}'):
        path.write_text(broken)
        with pytest.raises(StoreFailed):
            KeyFile(path).read()


@pytest.mark.system_coins
def test_a_key_has_256_random_bits_and_fits_nothing_else() -> None:
    keys = [new_key("a", ("ask",)) for _ in range(50)]
    texts = {text for _, text in keys}
    assert len(texts) == len({key.hash for key, _ in keys}) == 50
    assert {len(text.split("_", 2)[2]) for text in texts} == {43}
    (key, text), (other, _) = keys[:2]
    name, hashed = parsed(text.encode()) or ("", "")
    assert name == key.name
    assert fits(key, hashed)
    assert not fits(other, hashed)
    assert not fits(None, hashed)
    for wrong in (b"", text[:-1].encode(), text.encode() + b"a", text.upper().encode()):
        assert parsed(wrong) is None


def test_a_limit_of_answers_holds_over_restarts_and_crashes(tmp_path: Path) -> None:
    path = tmp_path / "used.json"
    key, _ = new_key("a", ("ask",), answers=6_400)
    limits = Limits(path)
    limits.take(key, 150)
    limits.give_back(key, 50)
    limits.close()
    again = Limits(path)  # a normal end, which costs nothing
    with pytest.raises(Refused):
        again.take(key, 6_301)
    again.take(key, 6_200)
    crashed = Limits(path)  # which costs a 64th at most
    with pytest.raises(Refused):
        crashed.take(key, 101)
    assert 6_300 <= json.loads(path.read_text())[key.name] <= 6_400
