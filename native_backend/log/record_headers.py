"""Headers of records: they travel with the key.

To the realm a key is what names an event, its *identity*. Where a record has no headers, that is the record's own key.
Where it has, the key in every column is a `HeadedKey`: its octets are the identity, which the record keeps in its first
header, IDENTITY; beside them the record's own key and all its headers. So all code that carries keys carries headers
(batches, transactions, dead letters, moves), and records without headers cost nothing more. Records: docs/records.md,
*Event key*. Octets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from native_backend.log.event_key import COPY, HEADED

Headers = tuple[tuple[str, "bytes | None"], ...]

IDENTITY = "um-event"
_HEADER_BYTES = 10  # at most, what a log adds to each


class HeadedKey(bytes):
    """The identity of an event whose record has headers; empty for a record without identity and key."""

    record_key: bytes | None
    headers: Headers

    def __new__(cls, identity: bytes, record_key: bytes | None, headers: Headers) -> Self:
        key = super().__new__(cls, identity)
        key.record_key = record_key
        key.headers = headers
        return key

    def __bool__(self) -> bool:
        """It says something even when it is empty."""
        return True

    @classmethod
    def of_event(cls, identity: bytes, record_key: bytes | None, headers: Headers) -> Self:
        """Of an event that is to be stored: its identity goes before the other headers."""
        return cls(identity, record_key, ((IDENTITY, identity), *headers))

    def renamed(self, identity: bytes) -> HeadedKey:
        """The same record under another identity."""
        headers = self.headers[1:] if names(self.headers) else self.headers
        return HeadedKey.of_event(identity, self.record_key, headers)

    @property
    def extra_bytes(self) -> int:
        """What the record takes beyond the identity's octets: at most, for its identity is among its headers."""
        held = sum(len(name.encode()) + len(value or b"") + _HEADER_BYTES for name, value in self.headers)
        return held + len(self.record_key or b"")


def names(headers: Sequence[tuple[str, bytes | None]]) -> bool:
    """Is there an identity among them?"""
    name, value = headers[0] if headers else ("", None)
    return name == IDENTITY and value is not None and value.startswith((COPY, HEADED))


def headed(record_key: bytes | None, headers: Sequence[tuple[str, bytes | None]] | None) -> bytes | None:
    """The key of a record as it was read."""
    if not headers:
        return record_key
    identity = headers[0][1] if names(headers) else record_key
    return HeadedKey(identity or b"", record_key, tuple(headers))


def record_key(key: bytes | None) -> bytes | None:
    """The record's own key, whatever names it."""
    return key.record_key if type(key) is HeadedKey else key


def key_bytes(key: bytes | None) -> int:
    """What key and headers take in the log."""
    return len(key or b"") + (key.extra_bytes if type(key) is HeadedKey else 0)
