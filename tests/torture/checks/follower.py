"""Reads what the realm keeps again and again while it is tortured, so that what it deletes in its own time is known."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable

from kafka.errors import KafkaError

from tests.torture.checks.realm_reader import Kept

INTERVAL_S = 1.5


class Follower:
    """One thread. `read` may fail while the realm is down."""

    def __init__(self, read: Callable[[], Kept]) -> None:
        self._read = read
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="torture-follower", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(INTERVAL_S):
            try:
                self._read()
            except (KafkaError, sqlite3.Error, OSError):  # the realm is down, or not there yet
                continue

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
