"""The disk of an embedded realm, full at a word."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("full_disk.c")


class Disk:
    """`environment` goes to the gateway; then `fill` and `clear`."""

    def __init__(self, directory: Path, realm: Path) -> None:
        self._mark = directory / "disk-is-full"
        library = directory / "full_disk.so"
        subprocess.run(
            ["gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True
        )
        self.environment = {
            "LD_PRELOAD": str(library),
            "FULL_DISK_MARK": str(self._mark),
            "FULL_DISK_DIR": str(realm.resolve()),
        }

    def fill(self) -> None:
        self._mark.touch()

    def clear(self) -> None:
        self._mark.unlink(missing_ok=True)
