"""What the keys of events say of their delivery, as columns: not before a time, of which group, by which peer.

Most chunks have no mark: one search through their joined keys shows that. Times in milliseconds since 1970. The key's
format: `native_backend.log.event_key`. Errors: none.
"""

from __future__ import annotations

from collections.abc import Sequence

from native_backend.log import event_key


class DeliveryMarks:
    """Columns as long as the chunk's; None where no event of it has such a mark."""

    __slots__ = ("_count", "due_ms", "groups", "origins")

    def __init__(self, keys: Sequence[bytes | None], times_ms: Sequence[int]) -> None:
        """`times_ms`: when each was stored; wanted only where `count_from_storage` says so."""
        self._count = len(keys)
        self.due_ms: list[int] | None = None
        self.groups: list[int | None] | None = None
        self.origins: list[int | None] | None = None
        for at, key in enumerate(keys):
            for letter, value in event_key.marks_of(key):
                self._read(at, letter, value, times_ms)

    def _read(self, at: int, letter: bytes, value: bytes, times_ms: Sequence[int]) -> None:
        count = self._count
        if letter == event_key.DUE:
            due = event_key.due(value)
            if due is not None:
                self.due_ms = self.due_ms or [0] * count
                self.due_ms[at] = due[0] + (times_ms[at] if due[1] else 0)
        elif letter == event_key.GROUP:
            self.groups = self.groups or [None] * count
            self.groups[at] = event_key.digest_of(value)
        elif letter == event_key.ORIGIN:
            self.origins = self.origins or [None] * count
            self.origins[at] = event_key.digest_of(value)


def are_marked(keys: Sequence[bytes | None]) -> bool:
    """Does any of these events seem to have a mark? Nearly never."""
    return event_key.may_be_marked(_joined(keys))


def count_from_storage(keys: Sequence[bytes | None]) -> bool:
    """Does any of them have to wait from when it was stored?"""
    return event_key.may_be_delayed(_joined(keys))


def _joined(keys: Sequence[bytes | None]) -> bytes:
    return b"".join(filter(None, keys))
