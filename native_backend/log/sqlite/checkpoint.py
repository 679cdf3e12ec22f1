"""The thread that copies the write-ahead log into the file, beside the writer, so that a COMMIT has little to copy.

It copies what readers and the writer leave free (`PASSIVE`), and waits for neither. Under a load without a pause it
never reaches the end of the log, where the log could begin again. Then the writer's own checkpoint copies the rest
(`schema.CHECKPOINT_PAGES`). What fails here is left to that one, and to the close.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from native_backend.log.sqlite.schema import connect

EVERY_BYTES: Final = 2 << 20


class Checkpoints:
    """`stored` is for the writer's thread."""

    def __init__(self, directory: Path) -> None:
        self._connection = connect(directory, busy_s=0.0)
        self._octets = 0
        self._closing = False
        self._work = threading.Event()
        self._thread = threading.Thread(target=self._run, name="realm-checkpoint", daemon=True)
        self._thread.start()

    def stored(self, octets: int) -> None:
        """A transaction with so many octets of records has been committed."""
        self._octets += octets
        if self._octets >= EVERY_BYTES:
            self._octets = 0
            self._work.set()

    def close(self, deadline_s: float) -> None:
        self._closing = True
        self._work.set()
        self._thread.join(deadline_s)

    def _run(self) -> None:
        while not self._closing:
            self._work.wait()
            self._work.clear()
            if not self._closing:
                with suppress(sqlite3.Error):
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        self._connection.close()
