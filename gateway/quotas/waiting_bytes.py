"""Octets of messages that wait for the realm. A publisher's credit counts messages: this limit holds back reading.

Who has more of `limits.in_flight_bytes` than its share (`gateway.quotas.shares`) is not read until it has half of that:
who sends large messages to a slow node holds up no other. Where all is used up no share is left, and each that sends
is held back in turn. Source: ADR 0116.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from gateway.evidence.notices import Notices
from gateway.quotas.shares import SharedLimit

_SHOWN: Final = 3


class Reader(Protocol):
    """The socket of a peer."""

    def pause(self, pressure: bool) -> None: ...


class WaitingBytes:
    """One gateway's. Holders: see `gateway.quotas.shares`."""

    def __init__(self, limit: SharedLimit, notices: Notices) -> None:
        self._limit = limit
        self._notices = notices
        self._readers: dict[str, dict[Reader, None]] = {}
        self._held_back: set[str] = set()

    def join(self, holder: str, reader: Reader) -> None:
        """One more socket of its."""
        self._readers.setdefault(holder, {})[reader] = None
        reader.pause(holder in self._held_back)

    def leave(self, holder: str, reader: Reader) -> None:
        readers = self._readers.get(holder, {})
        readers.pop(reader, None)
        if not readers:
            self._readers.pop(holder, None)

    def count(self, holder: str, count: int) -> None:
        """So many more came from it."""
        limit = self._limit
        limit.take(holder, count)
        if count and holder not in self._held_back and limit.held(holder) > limit.share(holder):
            self._held_back.add(holder)
            self._notices.tell("publisher held back", holder, self._words(holder), {"holder": holder})
            self._pause(holder, True)

    def release(self, holder: str, count: int) -> None:
        """So many of it wait no more."""
        limit = self._limit
        limit.take(holder, -count)
        if self._held_back:
            for name in [name for name in self._held_back if limit.held(name) <= max(limit.share(name), 0) // 2]:
                self._held_back.remove(name)
                self._pause(name, False)

    def _pause(self, holder: str, pressure: bool) -> None:
        for reader in self._readers.get(holder, ()):
            reader.pause(pressure)

    def __len__(self) -> int:
        """How many are not read now."""
        return len(self._held_back)

    def standing(self) -> Iterator[str]:
        """From whom is not read now, and why: of the first few."""
        names = sorted(self._held_back)
        yield from map(self._words, names[:_SHOWN])
        if len(names) > _SHOWN:
            yield f"reading from {len(names) - _SHOWN} more pauses"

    def _words(self, holder: str) -> str:
        held, limit = self._limit.held(holder), self._limit
        wait = f"{held:,} of {limit.used:,} octets that wait for the realm are its"
        return f"reading from {holder!a:.60} pauses: {wait}; limits.in_flight_bytes is {limit.maximum:,}"
