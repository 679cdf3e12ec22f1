"""Reads what the realm keeps again and again while it is tortured, so that what it deletes in its own time is known.

Seconds are monotonic. May import: the standard library, kafka-python, `tests.torture`.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable

from kafka.errors import KafkaError

from tests.torture.history import Said
from tests.torture.realm_reader import Kept, Place, Store

INTERVAL_S = 1.5


class Follower:
    """One thread. `read` may fail while the realm is down; an event must be seen within `retain_s` of being stored, and
    so must its end."""

    def __init__(self, read: Callable[[], Kept], retain_s: float) -> None:
        self._read, self._retain_s = read, retain_s
        self._seen: dict[Store, dict[int, Said | None]] = {}
        self._terminal: dict[Place, set[int]] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._longest_s = 0.0  # from the beginning of one reading to the end of the next
        self._thread = threading.Thread(target=self._run, name="torture-follower", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        last_s = time.monotonic()
        while not self._over.wait(INTERVAL_S):
            begin_s = time.monotonic()
            try:
                self.take(self._read())
            except (KafkaError, sqlite3.Error, OSError):  # the realm is down, or not there yet
                continue
            self._longest_s = max(self._longest_s, time.monotonic() - last_s)
            last_s = begin_s

    def take(self, kept: Kept) -> Kept:
        """What is gone by now is added to it."""
        with self._lock:
            for store, events in kept.events.items():
                seen = self._seen.setdefault(store, {})
                seen.update(events)
                kept.trimmed[store] = seen.keys() - events.keys()
                kept.events[store] = dict(sorted(seen.items()))
            for place, eids in kept.terminal.items():
                self._terminal.setdefault(place, set()).update(eids)
            kept.terminal = {place: {*eids} for place, eids in self._terminal.items()}
        return kept

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    @property
    def was_outrun(self) -> bool:
        """Events may be gone unseen: what a checker misses then is no proof."""
        return self._longest_s > self._retain_s
