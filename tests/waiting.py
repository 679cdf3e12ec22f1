"""The rooms that wait for a lane. Of the heavy ones, which need a core for themselves, only so many run at once: three
Sparks on two cores are no faster than two, and each of their tests takes so long that its alarm rings.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

HEAVY_AT_ONCE = max(2, os.cpu_count() or 2)


class Waiting:
    """In the order in which they begin. From any thread."""

    def __init__(self, rooms: Iterable[str], heavy: tuple[str, ...] = (), at_once: int = HEAVY_AT_ONCE) -> None:
        """`heavy`: how the paths of such rooms begin."""
        self._rooms, self._heavy, self._free = [*rooms], heavy, at_once
        self._changed = threading.Condition()

    def take(self) -> str | None:
        """The first one that may begin now; where only heavy ones are left, when it may. None: there is none left."""
        with self._changed:
            while self._rooms:
                for room in self._rooms:
                    if self._free or not self._is_heavy(room):
                        self._rooms.remove(room)
                        self._free -= self._is_heavy(room)
                        return room
                self._changed.wait()
            return None

    def done(self, room: str) -> None:
        """One that was taken has ended."""
        with self._changed:
            self._free += self._is_heavy(room)
            self._changed.notify_all()

    def clear(self) -> None:
        """None of the others begins."""
        with self._changed:
            self._rooms = []
            self._changed.notify_all()

    def _is_heavy(self, room: str) -> bool:
        return bool(self._heavy) and room.startswith(self._heavy)
