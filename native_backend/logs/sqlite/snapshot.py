"""What the file holds, for a process that only looks: each function is one read-only transaction beside the writer.

Used by the reconciliation. A reader of `rows` holds back the checkpoint of the write-ahead log while it iterates, never
the writer. May import: the standard library, this driver.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from native_backend.logs.sqlite.columns import decode
from native_backend.logs.sqlite.schema import FILE, connect

Row = tuple[str, int, int, int, "bytes | None", "bytes | None"]
BATCHES = """
SELECT p.topic, p.number, p.first, b.first, b.count, b.at_ms, b.data
FROM partitions p JOIN batches b ON b.partition = p.id
WHERE substr(p.topic, 1, ?1) = ?2 ORDER BY p.topic, p.number, b.first
"""


def rows(directory: Path, topic_prefix: str, since: Mapping[tuple[str, int], int] | None = None) -> Iterator[Row]:
    """(topic, partition, offset, timestamp_ms, key, value) of every kept record of the topics with that prefix.

    In order. `since` names the first offset wanted of a (topic, partition); what it does not name begins at its first.
    """
    starts = since or {}
    with _snapshot(directory) as connection:
        for topic, number, kept, first, count, at_ms, data in connection.execute(
            BATCHES, (len(topic_prefix), topic_prefix)
        ):
            start = max(starts.get((topic, number), 0), kept) - first
            if start >= count:
                continue
            keys, values = decode(data, count)
            for index in range(max(start, 0), count):
                yield topic, number, first + index, at_ms, keys[index], values[index]


def topic_ids(directory: Path) -> dict[str, bytes]:
    """The 16-octet id of every topic, by name."""
    with _snapshot(directory) as connection:
        return dict(connection.execute("SELECT name, id FROM topics").fetchall())


def ends(directory: Path) -> dict[tuple[str, int], tuple[int, int]]:
    """The first kept offset and the end of every (topic, partition)."""
    with _snapshot(directory) as connection:
        found = connection.execute("SELECT topic, number, first, next FROM partitions")
        return {(topic, number): (first, end) for topic, number, first, end in found}


def group_positions(directory: Path) -> Iterator[tuple[str, str, int, int, str]]:
    """(group, topic, partition, position, metadata) of every projected group offset."""
    with _snapshot(directory) as connection:
        yield from connection.execute('SELECT "group", topic, partition, position, metadata FROM positions')


@contextmanager
def _snapshot(directory: Path) -> Iterator[sqlite3.Connection]:
    if not (directory / FILE).exists():
        raise FileNotFoundError(f"no realm in {directory}: {FILE} is missing")
    connection = connect(directory)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        yield connection
    finally:
        connection.close()
