"""What the keys of events say of their delivery, as columns: not before a time, of which group, by which peer.

Marks are the last fields of a key that a gateway wrote, each with a capital letter of its own that nothing else in such
keys has: one search through the joined keys of a chunk tells that there is none. A copy of an event has none: it was
due before. Times in milliseconds since 1970. Records: docs/records.md, *Event key*. Errors: none.
May import: the standard library.
"""

from __future__ import annotations

from collections.abc import Sequence

_PUBLISHED = (b"1;", b"3;")
_AFTER = b";D+"
_MARKS_MAX = 3


class Marks:
    """Columns as long as the chunk's; None where no event of it has such a mark."""

    __slots__ = ("due_ms", "groups", "origins")

    def __init__(self, keys: Sequence[bytes | None], times_ms: Sequence[int]) -> None:
        """`times_ms`: when each was stored; wanted only where `count_from_storage` says so."""
        self.due_ms: list[int] | None = None
        self.groups: list[int | None] | None = None
        self.origins: list[int | None] | None = None
        for at, key in enumerate(keys):
            if key is None or not key.startswith(_PUBLISHED):
                continue
            for field in key.rsplit(b";", _MARKS_MAX)[1:]:
                self._read(at, field, keys, times_ms)

    def _read(self, at: int, field: bytes, keys: Sequence[bytes | None], times_ms: Sequence[int]) -> None:
        letter, said = field[:1], field[1:]
        if letter == b"D" and said.lstrip(b"+").isdigit():
            self.due_ms = self.due_ms or [0] * len(keys)
            self.due_ms[at] = int(said) + (times_ms[at] if said.startswith(b"+") else 0)
        elif letter == b"G":
            self.groups = self.groups or [None] * len(keys)
            self.groups[at] = _number(said)
        elif letter == b"O":
            self.origins = self.origins or [None] * len(keys)
            self.origins[at] = _number(said)


def are_marked(keys: Sequence[bytes | None]) -> bool:
    """Does any of these events seem to have a mark? Nearly never."""
    joined = _joined(keys)
    return b"D" in joined or b"G" in joined or b"O" in joined


def count_from_storage(keys: Sequence[bytes | None]) -> bool:
    """Does any of them have to wait from when it was stored?"""
    return _AFTER in _joined(keys)


def _joined(keys: Sequence[bytes | None]) -> bytes:
    return b"".join(filter(None, keys))


def _number(digest: bytes) -> int | None:
    try:
        return int(digest, 16)
    except ValueError:
        return None
