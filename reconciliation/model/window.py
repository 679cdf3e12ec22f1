"""The window of time that a reconciliation reports on. Everything is read; findings outside the window are left out,
but for what could not be seen.

Microseconds since 1970, `since` inclusive, `until` exclusive.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

BEGINNING = 0
END = 1 << 62


@dataclass(frozen=True, slots=True)
class Window:
    since: int = BEGINNING
    until: int = END

    @property
    def name(self) -> str:
        """For a directory: `all`, or both ends."""
        if self.since == BEGINNING and self.until == END:
            return "all"
        since = compact(self.since) if self.since != BEGINNING else "beginning"
        return f"{since}_{compact(self.until) if self.until != END else 'end'}"

    def holds(self, at: int | None) -> bool:
        """What has no time is never left out."""
        return at is None or self.since <= at < self.until


def parse(text: str) -> int:
    """An ISO 8601 time; without an offset it is UTC. Raises ValueError."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return round(at.timestamp() * 1_000_000)


def compact(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1_000_000, UTC):%Y%m%dT%H%M%S.%fZ}"


def readable(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
