"""The control calls on the file: topics, bounds, ranges, trimming, group offsets. Any thread, one at a time; short
transactions, so that the command line may do the same beside a live gateway.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from native_backend.log.access_lists import AccessLists
from native_backend.log.port import (
    Failure,
    Inspection,
    LogError,
    Positions,
    Records,
    Topic,
    TopicSpec,
    Write,
    check_metadata,
)
from native_backend.log.sqlite.columns import decode
from native_backend.log.sqlite.commit import Committer, failure_of
from native_backend.log.sqlite.plan import Transaction
from native_backend.log.sqlite.reader import ROWS
from native_backend.log.sqlite.schema import begin


class SqliteControl:
    """`native_backend.log.port.Control`, with its own connection, behind a lock. `wake`: a record was put. `holder`: of
    every shard that is claimed here."""

    def __init__(
        self,
        directory: Path,
        record_bytes_max: int,
        now_ms: Callable[[], int],
        holder: bytes,
        wake: Callable[[], None],
    ) -> None:
        self._record_bytes_max, self._holder, self._wake = record_bytes_max, holder, wake
        self._committer = Committer(directory, record_bytes_max, now_ms)
        self._connection = self._committer.connection
        self._lock = threading.Lock()

    def create_topics(self, specs: Sequence[TopicSpec], deadline_s: float = 10.0) -> list[Topic]:
        with self._write(deadline_s) as connection:
            for spec in specs:
                row = (spec.name, uuid.uuid4().bytes, spec.partitions, int(spec.compacted))
                if connection.execute("INSERT OR IGNORE INTO topics VALUES (?, ?, ?, ?)", row).rowcount:
                    connection.executemany(
                        "INSERT INTO partitions (topic, number) VALUES (?, ?)",
                        [(spec.name, number) for number in range(spec.partitions)],
                    )
            return [_topic(connection, spec.name) for spec in specs]

    def grow_topic(self, name: str, partitions: int, deadline_s: float = 10.0) -> None:
        with self._write(deadline_s) as connection:
            known = connection.execute("SELECT partitions FROM topics WHERE name = ?", (name,)).fetchone()
            if known is None:
                raise LogError(Failure("not-found", f"no topic {name}"))
            if partitions > known[0]:
                numbers = [(name, number) for number in range(known[0], partitions)]
                connection.executemany("INSERT INTO partitions (topic, number) VALUES (?, ?)", numbers)
                connection.execute("UPDATE topics SET partitions = ? WHERE name = ?", (partitions, name))

    def topics(self, prefix: str, deadline_s: float = 10.0) -> dict[str, Topic]:
        with self._read(deadline_s) as connection:
            rows = connection.execute(
                "SELECT name, id, partitions FROM topics WHERE substr(name, 1, ?) = ? ORDER BY name",
                (len(prefix), prefix),
            )
            return {name: Topic(name, id_, partitions) for name, id_, partitions in rows}

    def find_topics(self, names: Sequence[str], deadline_s: float = 10.0) -> dict[str, Topic]:
        with self._read(deadline_s) as connection:
            named = "SELECT name, id, partitions FROM topics WHERE name = ?"
            rows = [row for name in names for row in connection.execute(named, (name,))]
        return {name: Topic(name, id_, partitions) for name, id_, partitions in rows}

    def delete_topics(self, names: Sequence[str], deadline_s: float = 10.0) -> None:
        of_topic = "partition IN (SELECT id FROM partitions WHERE topic = ?)"
        with self._write(deadline_s) as connection:
            for name in names:
                connection.execute(f"DELETE FROM batches WHERE {of_topic}", (name,))  # noqa: S608  # a constant
                connection.execute("DELETE FROM partitions WHERE topic = ?", (name,))
                connection.execute("DELETE FROM topics WHERE name = ?", (name,))
                connection.execute("DELETE FROM positions WHERE topic = ?", (name,))

    def bounds(self, topic: str, partition: int, deadline_s: float = 10.0) -> tuple[int, int]:
        with self._read(deadline_s) as connection:
            _, first, end = _partition(connection, topic, partition)
            return first, end

    def read_range(self, topic: str, partition: int, start: int, count_max: int, deadline_s: float = 10.0) -> Records:
        with self._read(deadline_s) as connection:
            id_, first, end = _partition(connection, topic, partition)
            if start < first:
                raise LogError(Failure("retention", f"{topic}/{partition} begins at {first}"))
            records = Records([], [], [], [], end)
            with closing(connection.execute(ROWS, (id_, start))) as rows:
                for row in rows:
                    _extend(records, start, *row)
                    if len(records.offsets) >= count_max:
                        return _cut(records, count_max)
            return Records(records.offsets, records.timestamps_ms, records.keys, records.values, max(end, start))

    def holds_only(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        records: int,
        transactions: int,
        deadline_s: float = 10.0,
    ) -> bool:
        return self._count(topic, partition, start, end, deadline_s) == records

    def put(self, topic: str, key: bytes, value: bytes | None, deadline_s: float = 10.0) -> int:
        return self.put_all(topic, (key,), (value,), deadline_s)[0]

    def put_all(
        self, topic: str, keys: Sequence[bytes], values: Sequence[bytes | None], deadline_s: float = 10.0
    ) -> list[int]:
        """One short transaction: here it is all or none."""
        deadline = time.monotonic() + deadline_s
        with self._locked(deadline_s):
            writes = [Write(topic, 0, key, value) for key, value in zip(keys, values, strict=True)]
            (answer,) = self._committer.commit([Transaction(writes, None)], deadline)
        if answer.failure is not None:
            raise LogError(answer.failure)
        self._wake()
        return answer.offsets

    def claim(self, shard: str, deadline_s: float = 10.0) -> None:
        with self._write(deadline_s) as connection:
            connection.execute("INSERT OR REPLACE INTO claims VALUES (?, ?)", (shard, self._holder))

    def trim(self, topic: str, partition: int, before: int, deadline_s: float = 10.0) -> None:
        with self._write(deadline_s) as connection:
            id_, first, end = _partition(connection, topic, partition)
            kept = min(max(before, first), end)
            connection.execute("UPDATE partitions SET first = ? WHERE id = ?", (kept, id_))
            connection.execute("DELETE FROM batches WHERE partition = ? AND first + count <= ?", (id_, kept))

    def project(self, group: str, positions: Positions, deadline_s: float = 10.0) -> None:
        check_metadata(positions)
        with self._write(deadline_s) as connection:
            for topic, number in positions:
                _partition(connection, topic, number)
            connection.executemany(
                "INSERT OR REPLACE INTO positions VALUES (?, ?, ?, ?, ?)",
                [(group, *place, *position) for place, position in positions.items()],
            )

    def projected(self, group: str, deadline_s: float = 10.0) -> Positions:
        with self._read(deadline_s) as connection:
            query = 'SELECT topic, partition, position, metadata FROM positions WHERE "group" = ?'
            return {(t, p): (position, metadata) for t, p, position, metadata in connection.execute(query, (group,))}

    def forget(self, group: str, deadline_s: float = 10.0) -> None:
        with self._write(deadline_s) as connection:
            connection.execute('DELETE FROM positions WHERE "group" = ?', (group,))

    def access_lists(self, deadline_s: float = 10.0) -> AccessLists | None:
        return None

    def record_bytes_max(self, topics: Sequence[str], deadline_s: float = 10.0) -> dict[str, int]:
        return dict.fromkeys(topics, self._record_bytes_max)

    def certain_copies(self, topic: str, deadline_s: float = 10.0) -> int | None:
        return None

    def inspect(self, topics: Sequence[str], deadline_s: float = 10.0, *, whole: bool = True) -> Inspection | None:
        return None

    def close(self) -> None:
        with self._lock:
            self._committer.close()

    def _count(self, topic: str, partition: int, start: int, end: int, deadline_s: float) -> int:
        """Records in [start, end), tombstones included, without reading them."""
        query = (
            "SELECT coalesce(sum(min(first + count, :end) - max(first, :start)), 0) FROM batches "
            "WHERE partition = :id AND first < :end AND first + count > :start AND first >= "
            "coalesce((SELECT max(first) FROM batches WHERE partition = :id AND first <= :start), :start)"
        )
        with self._read(deadline_s) as connection:
            id_, _, _ = _partition(connection, topic, partition)
            row: tuple[int] = connection.execute(query, {"id": id_, "start": start, "end": end}).fetchone()
            return row[0]

    @contextmanager
    def _locked(self, deadline_s: float) -> Iterator[None]:
        if not self._lock.acquire(timeout=max(deadline_s, 0.0)):
            raise LogError(Failure("unavailable", "another admin call has not ended yet"))
        try:
            yield
        except sqlite3.Error as error:
            raise LogError(failure_of(error, "unavailable")) from error
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._lock.release()

    @contextmanager
    def _read(self, deadline_s: float) -> Iterator[sqlite3.Connection]:
        with self._locked(deadline_s):
            self._connection.execute("BEGIN")
            yield self._connection

    @contextmanager
    def _write(self, deadline_s: float) -> Iterator[sqlite3.Connection]:
        deadline = time.monotonic() + deadline_s
        with self._locked(deadline_s):
            begin(self._connection, deadline)
            yield self._connection
            self._connection.execute("COMMIT")
            self._committer.forget()


def _topic(connection: sqlite3.Connection, name: str) -> Topic:
    id_, partitions = connection.execute("SELECT id, partitions FROM topics WHERE name = ?", (name,)).fetchone()
    return Topic(name, id_, partitions)


def _partition(connection: sqlite3.Connection, topic: str, number: int) -> tuple[int, int, int]:
    query = "SELECT id, first, next FROM partitions WHERE topic = ? AND number = ?"
    row: tuple[int, int, int] | None = connection.execute(query, (topic, number)).fetchone()
    if row is None:
        raise LogError(Failure("not-found", f"no {topic}/{number}"))
    return row


def _extend(records: Records, start: int, first: int, count: int, at_ms: int, data: bytes) -> None:
    keys, values = decode(data, count)
    skip = min(max(start - first, 0), count)
    records.offsets.extend(range(first + skip, first + count))
    records.timestamps_ms.extend([at_ms] * (count - skip))
    records.keys.extend(keys[skip:])
    records.values.extend(values[skip:])


def _cut(records: Records, count: int) -> Records:
    offsets = records.offsets[:count]
    return Records(
        offsets, records.timestamps_ms[:count], records.keys[:count], records.values[:count], offsets[-1] + 1
    )
