"""Copies of oracles are whole, or they are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

import cumae
from cumae import store
from cumae.concepts import Thresholds
from tests.oracles import ROWS


def saved(folder: Path) -> Path:
    path = folder / "oracle.db"
    labels = (ROWS[:, 0] > 0.3).astype(int)
    release = cumae.QueryRelease(Thresholds(), epsilon=20.0, max_queries=20)
    release.fit(ROWS, labels).save_to(path)
    return path


@pytest.mark.claim("STORE")
def test_a_copy_gets_its_name_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy = saved(tmp_path), tmp_path / "copy.db"

    def killed(self: Path, target: Path) -> None:
        assert target == copy
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            store.backup(path, copy)
    assert not copy.exists()
    assert not list(tmp_path.glob("*.part*"))
    store.backup(path, copy)
    assert store.status(copy).totals == store.status(path).totals


@pytest.mark.claim("STORE")
def test_what_a_killed_copy_left_is_in_nobodys_way(tmp_path: Path) -> None:
    path, copy = saved(tmp_path), tmp_path / "copy.db"
    (tmp_path / "copy.db.part").write_bytes(b"half of an oracle")
    (tmp_path / "copy.db.part-wal").write_bytes(b"and of its log")
    store.backup(path, copy)
    assert not list(tmp_path.glob("*.part*"))
    assert (copy.stat().st_mode & 0o777) == 0o600
    assert store.status(copy).totals == store.status(path).totals
