"""The directory and the files that an embedded realm makes: whose they are, and that their names are on the disk."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from native_backend.log.open import EMBEDDED_FILE, open_embedded
from native_backend.log.port import TopicSpec


@pytest.mark.parametrize("umask", [0, 0o022, 0o277])
def test_what_it_makes_is_for_its_owner_alone_and_what_was_there_keeps_its_mode(tmp_path: Path, umask: int) -> None:
    directory = tmp_path / "realm"
    before = os.umask(umask)
    try:
        log = open_embedded(directory)
    finally:
        os.umask(before)
    log.control.create_topics([TopicSpec("t")])
    made = {path.name: _mode(path) for path in (directory, *directory.iterdir())}
    assert made == {"realm": 0o700, EMBEDDED_FILE: 0o600, f"{EMBEDDED_FILE}-wal": 0o600, f"{EMBEDDED_FILE}-shm": 0o600}
    log.close()
    directory.chmod(0o755)
    (directory / EMBEDDED_FILE).chmod(0o644)
    open_embedded(directory).close()
    assert (_mode(directory), _mode(directory / EMBEDDED_FILE)) == (0o755, 0o644)


def test_the_names_of_what_it_makes_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, synced = os.fsync, []

    def fsync(descriptor: int) -> None:
        directory = Path(f"/proc/self/fd/{descriptor}").readlink()
        synced.append((directory, sorted(path.name for path in directory.iterdir())))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    open_embedded(tmp_path / "var" / "realm").close()
    var = tmp_path / "var"
    assert synced == [(tmp_path, ["var"]), (var, ["realm"]), (var / "realm", [EMBEDDED_FILE])]
    open_embedded(tmp_path / "var" / "realm").close()
    assert len(synced) == 3, "nothing new"


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
