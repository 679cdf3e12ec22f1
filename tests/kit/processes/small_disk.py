"""A small disk of its own for one directory, full at a word.

It is a tmpfs where this user may mount one, else the library that answers writes below the directory with ENOSPC
(tests/kit/processes/full_disk.py).

    with small_disk(tmp_path / "disk") as disk: ...; disk.fill(); disk.clear()
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.kit.processes.full_disk import Disk

_SIZE = "8m"
_PIECE_BYTES = 4096


class SmallDisk(Protocol):
    environment: dict[str, str]

    def fill(self) -> None: ...

    def clear(self) -> None: ...


class _Tmpfs:
    def __init__(self, directory: Path) -> None:
        self.environment: dict[str, str] = {}
        self._rest = directory / "what-else-lies-there"

    def fill(self) -> None:
        with self._rest.open("ab", buffering=0) as rest:
            try:
                while True:
                    rest.write(bytes(_PIECE_BYTES))
            except OSError:
                return  # there is no room for more

    def clear(self) -> None:
        self._rest.unlink(missing_ok=True)


@contextmanager
def small_disk(directory: Path) -> Iterator[SmallDisk]:
    directory.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "tmpfs", str(directory)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        yield Disk(directory.parent, directory)
        return
    try:
        yield _Tmpfs(directory)
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)
