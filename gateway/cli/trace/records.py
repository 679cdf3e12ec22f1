"""Records of one partition, oldest first, as fast as the log gives them: by a reader, which fetches ahead, and the last
ones by range, which knows where the end is.

Times are milliseconds since 1970. Blocks; raises LogError.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from native_backend.log.port import Failure, Log, LogError
from native_backend.log.time_search import first_at

Columns = tuple[list[int], list[int], list["bytes | None"], list[bytes]]
"""Offsets, times of storing, keys, values."""
_BY_RANGE = 2_000
_AT_ONCE = 5_000
_IDLE_S = 5.0
_PAUSE_S = 0.0005
_DEADLINE_S = 30.0
SLACK_MS = 60_000
"""Records of one moment may be stored so far apart: evidence waits while the log takes none, and clocks differ."""


@dataclass(slots=True)
class Searched:
    """What was read to answer, for the reader of the answer."""

    lines: list[str] = field(default_factory=list)

    def add(self, topic: str, times_ms: tuple[int, int], records: int, kept_from_ms: int | None) -> None:
        """`kept_from_ms`: when the oldest record was stored that the topic still has, if older ones were deleted."""
        since_ms, until_ms = times_ms
        since = f"since {iso(since_ms * 1000)}" if since_ms else "from its beginning"
        since += f" until {iso(until_ms * 1000)}" if until_ms else ""
        kept = f", which keeps nothing from before {iso(kept_from_ms * 1000)}" if kept_from_ms else ""
        self.lines.append(f"{topic} {since}{kept}: {records} records")


def iso(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def values(
    log: Log,
    topic: str,
    times_ms: tuple[int, int],
    searched: Searched,
    some_of: Collection[bytes],
    and_some_of: Collection[bytes] = (),
) -> Iterator[bytes]:
    """The values of a topic that have these octets, of what was stored between those times, `SLACK_MS` more at either
    end; 0: no such bound. `some_of` may grow meanwhile. A topic that is not there is empty."""
    try:
        bounds = log.control.bounds(topic, 0, _DEADLINE_S)
    except LogError as error:
        if error.failure.cause != "not-found":
            raise
        searched.lines.append(f"{topic}: it is not there")
        return
    since_ms, until_ms = times_ms[0] and times_ms[0] - SLACK_MS, times_ms[1] and times_ms[1] + SLACK_MS
    start = first_at(log, topic, 0, bounds, since_ms, _DEADLINE_S) if since_ms else bounds[0]
    end = first_at(log, topic, 0, (start, bounds[1]), until_ms, _DEADLINE_S) if until_ms else bounds[1]
    count = 0
    for stretch in stretches(log, topic, 0, start, end):
        count += len(stretch[3])
        yield from having(stretch[3], some_of, and_some_of)
    searched.add(topic, (since_ms, until_ms), count, _kept_from(log, topic, *bounds))


def having(values: list[bytes], some_of: Collection[bytes], and_some_of: Collection[bytes]) -> Iterator[bytes]:
    """Octets first, all at once: of few records the values are looked at one by one, and of fewer they are decoded."""
    joined = b"\n".join(values)
    those = [octets for octets in and_some_of if octets in joined]
    if and_some_of and not those:
        return
    for value in values:
        if any(octets in value for octets in some_of) and (not those or any(octets in value for octets in those)):
            yield value


def _kept_from(log: Log, topic: str, first: int, end: int) -> int | None:
    if not 0 < first < end:
        return None
    oldest = log.control.read_range(topic, 0, first, 1, _DEADLINE_S)
    return oldest.timestamps_ms[0] if oldest.offsets else None


def stretches(log: Log, topic: str, partition: int, start: int, end: int, headed: bool = False) -> Iterator[Columns]:
    """Records in [start, end), tombstones left out; some that were stored meanwhile may follow."""
    if end - start > _BY_RANGE:
        start = yield from _by_reader(log, topic, partition, start, end - _BY_RANGE, headed)
    while start < end:
        records = log.control.read_range(topic, partition, start, min(_AT_ONCE, end - start), _DEADLINE_S)
        kept = [at for at, value in enumerate(records.values) if value is not None]
        yield (
            [records.offsets[at] for at in kept],
            [records.timestamps_ms[at] for at in kept],
            [records.keys[at] for at in kept],
            [value for value in records.values if value is not None],
        )
        if records.next <= start:
            return
        start = records.next


def _by_reader(
    log: Log, topic: str, partition: int, start: int, end: int, headed: bool
) -> Generator[Columns, None, int]:
    """Returns where to read on: at `end`, or where the reader has found nothing for a while, for what lies there may
    be no records."""
    reader = log.open_reader(topic, partition, start, stamped=True, headed=headed)
    idle_since = time.monotonic()
    try:
        while reader.position < end:
            taken = reader.read(_AT_ONCE)
            if isinstance(taken, Failure):
                raise LogError(taken)
            if taken is None:
                if time.monotonic() - idle_since > _IDLE_S:
                    break
                time.sleep(_PAUSE_S)
                continue
            offsets, values, keys = taken
            yield offsets, reader.times_ms, keys, values
            idle_since = time.monotonic()
        return reader.position
    finally:
        reader.close()
