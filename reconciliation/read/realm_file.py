"""The file of an embedded realm, read: all that is asked of one `Snapshot` is one read-only transaction beside the
writer, so it agrees with itself.

A reader holds back the checkpoint of the write-ahead log while it looks, never the writer. Source: docs/records.md "The
embedded realm's file". Errors: `sqlite3.Error`, `FileNotFoundError`.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

FILE = "realm.sqlite"
IDENTITY = "um-event"
"""The first header of an event that has headers: what names it."""
Row = tuple[str, int, int, int, "bytes | None", "bytes | None"]
"""Topic, partition, offset, timestamp in milliseconds, what names the record, value."""
Header = tuple[str, "bytes | None"]
Whole = tuple[str, int, int, int, "bytes | None", "bytes | None", list[Header]]
"""Topic, partition, offset, timestamp in milliseconds, key, value, headers."""
Torn = Callable[[str, int, int, int], None]
"""Is given a batch that cannot be decoded: topic, partition, its first offset, one past its last."""
_BATCHES = """
SELECT p.number, p.first, b.first, b.count, b.at_ms, b.data
FROM partitions p JOIN batches b ON b.partition = p.id WHERE p.topic = ? ORDER BY p.number, b.first
"""
ABSENT = 0xFFFFFFFF
"""Stands for the length of what is not there."""
_BUSY_S = 10.0


@dataclass(frozen=True, slots=True)
class Batch:
    """As it is stored. `wanted`: records from that offset on are."""

    topic: str
    partition: int
    wanted: int
    first: int
    count: int
    at_ms: int
    data: bytes


class Snapshot:
    """One moment of a realm's file; `opened` makes it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def topic_ids(self) -> dict[str, bytes]:
        """The 16-octet id of every topic, by name."""
        return dict(self._connection.execute("SELECT name, id FROM topics").fetchall())

    def ends(self) -> dict[tuple[str, int], tuple[int, int]]:
        """The first kept offset and the end of every (topic, partition)."""
        rows = self._connection.execute("SELECT topic, number, first, next FROM partitions")
        return {(topic, number): (first, end) for topic, number, first, end in rows}

    def group_positions(self) -> list[tuple[str, str, int, int, str]]:
        """(group, topic, partition, position, metadata) of every group offset."""
        return self._connection.execute(
            'SELECT "group", topic, partition, position, metadata FROM positions'
        ).fetchall()

    def rows(self, topic: str, torn: Torn) -> Iterator[Row]:
        """Every kept record of a topic, in order."""
        for batch in self.batches(topic, {}):
            try:
                names, values = decode(batch.data, batch.count)
            except (struct.error, ValueError):
                torn(topic, batch.partition, batch.first, batch.first + batch.count)
                continue
            for index in range(max(batch.wanted - batch.first, 0), batch.count):
                yield topic, batch.partition, batch.first + index, batch.at_ms, names[index], values[index]

    def whole(self, topic: str, torn: Torn) -> Iterator[Whole]:
        """The same with the keys that the records have, and with their headers."""
        for batch in self.batches(topic, {}):
            try:
                keys, values, headers = decode_whole(batch.data, batch.count)
            except (struct.error, ValueError):
                torn(topic, batch.partition, batch.first, batch.first + batch.count)
                continue
            for at in range(max(batch.wanted - batch.first, 0), batch.count):
                yield topic, batch.partition, batch.first + at, batch.at_ms, keys[at], values[at], headers[at]

    def batches(self, topic: str, starts: Mapping[tuple[str, int], int]) -> Iterator[Batch]:
        """Those of a topic with a record that is wanted, in order. `starts`: from that offset on, of a (topic,
        partition)."""
        for number, kept, first, count, at_ms, data in self._connection.execute(_BATCHES, (topic,)):
            wanted = max(kept, starts.get((topic, number), 0))
            if first + count > wanted:
                yield Batch(topic, number, wanted, first, count, at_ms, data)


@contextmanager
def opened(directory: Path) -> Iterator[Snapshot]:
    """The realm in that directory, as it is now."""
    if not (directory / FILE).exists():
        raise FileNotFoundError(f"no realm in {directory}: {FILE} is missing")
    connection = sqlite3.connect(directory / FILE, timeout=_BUSY_S, isolation_level=None)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        yield Snapshot(connection)
    finally:
        connection.close()


def decode(data: bytes, count: int) -> tuple[list[bytes | None], list[bytes | None]]:
    """What names the records of a batch (their keys, or the identity in their headers), and their values."""
    names, values, all_headers = decode_whole(data, count)
    for place, headers in enumerate(all_headers):
        if headers and headers[0][0] == IDENTITY and (headers[0][1] or b"").startswith((b"2;", b"3;")):
            names[place] = headers[0][1]
    return names, values


def decode_whole(data: bytes, count: int) -> tuple[list[bytes | None], list[bytes | None], list[list[Header]]]:
    """Their keys, values and headers."""
    lengths = struct.unpack_from(f"<{2 * count}I", data)
    sizes = [0 if length == ABSENT else length for length in lengths]
    edges = accumulate(sizes, initial=8 * count)
    items = [
        None if length == ABSENT else data[start:end]
        for length, (start, end) in zip(lengths, pairwise(edges), strict=True)
    ]
    at = 8 * count + sum(sizes)
    if at >= len(data):
        return items[:count], items[count:], [[]] * count
    all_headers: list[list[Header]] = []
    for _ in range(count):
        headers, at = _headers(data, at)
        all_headers.append(headers)
    return items[:count], items[count:], all_headers


def _headers(data: bytes, at: int) -> tuple[list[Header], int]:
    """Those of one record, and where the next one's begin."""
    (count,) = struct.unpack_from("<I", data, at)
    at += 4
    headers: list[Header] = []
    for _ in range(count):
        name, value = struct.unpack_from("<II", data, at)
        start = at + 8 + name
        at = start + (0 if value == ABSENT else value)
        headers.append((data[start - name : start].decode(), None if value == ABSENT else data[start:at]))
    return headers, at
