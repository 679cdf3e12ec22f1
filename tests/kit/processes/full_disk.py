"""The disk of an embedded realm, full at a word."""

from __future__ import annotations

from pathlib import Path

from tests.kit.processes.preloaded import PRELOAD, built

SOURCE = Path(__file__).with_name("full_disk.c")


class Disk:
    """`environment` goes to the gateway; then `fill` and `clear`."""

    def __init__(self, directory: Path, realm: Path) -> None:
        self._mark = directory / "disk-is-full"
        self.environment = {
            PRELOAD: str(built(SOURCE, directory)),
            "FULL_DISK_MARK": str(self._mark),
            "FULL_DISK_DIR": str(realm.resolve()),
        }

    def fill(self) -> None:
        self._mark.touch()

    def clear(self) -> None:
        self._mark.unlink(missing_ok=True)
