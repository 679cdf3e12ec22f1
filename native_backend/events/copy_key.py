"""What a copy of an event says of where it comes from: in its key natively, and in whatever `Enclose` makes of it.

Times in milliseconds since 1970. Records: docs/records.md "Event key". May import: the standard library,
`native_backend.headers`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from native_backend.headers import HeadedKey

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


Enclose = Callable[[bytes, bytes, Letter], tuple[bytes, bytes]]
"""Makes of an event's key and value what its dead-letter node keeps."""


def as_it_is(key: bytes, value: bytes, _: Letter) -> tuple[bytes, bytes]:
    return key, value


def copy_key(store: int, eid: int, cause: str, key: bytes) -> bytes:
    """The key of a copy: where it comes from and why, then the key it had when it was published."""
    identity = b"%s%d;%d;%s;%s" % (COPY, store, eid, cause.encode(), original_key(key))
    return key.renamed(identity) if type(key) is HeadedKey else identity


def original_key(key: bytes) -> bytes:
    """The key that an event had when it was published."""
    fields = key.split(b";", _FIELDS) if key.startswith(COPY) else ()
    return fields[_FIELDS] if len(fields) > _FIELDS else bytes(key)


def is_letter(key: bytes) -> bool:
    """A copy that was made because the event was given up (not one that an operator moved)."""
    fields = key.split(b";", _FIELDS)
    return key.startswith(COPY) and len(fields) > _FIELDS and fields[3] != b"moved"
