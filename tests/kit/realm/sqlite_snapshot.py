"""What the file holds, for a process that only looks: all that is asked of one `Snapshot` is one read-only transaction
beside the writer, so it agrees with itself.

The auditor has a reader of its own, which is held against this one. A reader holds back the checkpoint of the
write-ahead log while it looks, never the writer.
Errors: `sqlite3.Error`, `FileNotFoundError`.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from native_backend.log.sqlite.columns import decode
from native_backend.log.sqlite.schema import FILE, connect

Row = tuple[str, int, int, int, "bytes | None", "bytes | None"]
"""Topic, partition, offset, timestamp in milliseconds, key, value."""
Torn = Callable[[str, int, int, int], None]
"""Is given a batch that cannot be decoded: topic, partition, its first offset, one past its last."""
BATCHES = """
SELECT p.number, p.first, b.first, b.count, b.at_ms, b.data
FROM partitions p JOIN batches b ON b.partition = p.id WHERE p.topic = ? ORDER BY p.number, b.first
"""


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
        """(group, topic, partition, position, metadata) of every projected group offset."""
        return self._connection.execute(
            'SELECT "group", topic, partition, position, metadata FROM positions'
        ).fetchall()

    def rows(self, topic: str, torn: Torn) -> Iterator[Row]:
        """Every kept record of a topic, in order."""
        for number, kept, first, count, at_ms, data in self._connection.execute(BATCHES, (topic,)):
            try:
                keys, values = decode(data, count)
            except (struct.error, ValueError):
                torn(topic, number, first, first + count)
                continue
            for index in range(max(kept - first, 0), count):
                yield topic, number, first + index, at_ms, keys[index], values[index]


@contextmanager
def opened(directory: Path) -> Iterator[Snapshot]:
    """The realm in that directory, as it is now."""
    if not (directory / FILE).exists():
        raise FileNotFoundError(f"no realm in {directory}: {FILE} is missing")
    connection = connect(directory)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        yield Snapshot(connection)
    finally:
        connection.close()
