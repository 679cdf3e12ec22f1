"""What a copy of an event says of where it comes from: in its key natively, and in whatever `Enclose` makes of it.

Times in milliseconds since 1970. Records: docs/records.md "Event key". May import: the standard library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

_FIELDS = 4  # of a copy's key, before the key that it had
COPY = b"2;"
"""How the key of a copy begins."""


@dataclass(frozen=True, slots=True)
class Letter:
    """Why an event is a dead letter. `cause`: the state that a consumer gave it, or `expired`."""

    cause: str
    node: str
    durable: str
    eid: int
    attempts: int
    at_ms: int


Enclose = Callable[[bytes, Letter], bytes]
"""Makes of an event's value what its dead-letter node keeps."""


def as_it_is(value: bytes, _: Letter) -> bytes:
    return value


def copy_key(store: int, eid: int, cause: str, key: bytes) -> bytes:
    """The key of a copy: where it comes from and why, then the key it had when it was published."""
    fields = key.split(b";", _FIELDS)
    if key.startswith(COPY) and len(fields) > _FIELDS:
        key = fields[_FIELDS]
    return b"%s%d;%d;%s;%s" % (COPY, store, eid, cause.encode(), key)


def is_letter(key: bytes) -> bool:
    """A copy that was made because the event was given up (not one that an operator moved)."""
    fields = key.split(b";", _FIELDS)
    return key.startswith(COPY) and len(fields) > _FIELDS and fields[3] != b"moved"
