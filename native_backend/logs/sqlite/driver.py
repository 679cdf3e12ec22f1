"""`SqliteLog`: the log port on one SQLite file, the embedded default.

Appends and transactions go to the writer thread; readers and control calls have connections of their own. What another
process writes is seen at the next read, but does not call `wake`.
May import: the standard library, `native_backend.log`, this driver.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from native_backend.log import Append, Completion, Reader, Records, Topic, TopicSpec, Write
from native_backend.logs.sqlite.catalog import Catalog
from native_backend.logs.sqlite.commit import Committer
from native_backend.logs.sqlite.control import Control, Positions
from native_backend.logs.sqlite.plan import Transaction
from native_backend.logs.sqlite.reader import SqliteReader
from native_backend.logs.sqlite.schema import connect, create
from native_backend.logs.sqlite.writer import Writer
from native_backend.rights import Rights

RECORD_BYTES_MAX = 16 << 20


class SqliteLog:
    """A driver of `native_backend.log.Log`."""

    kind = "embedded"
    reads_lag = False
    poll_interval_s = 0.0
    descriptor = -1

    def __init__(self, directory: Path, now_ms: Callable[[], int], record_bytes_max: int = RECORD_BYTES_MAX) -> None:
        create(directory)
        self._is_closed = False
        self._holder = uuid.uuid4().bytes  # of every shard that is claimed here
        self._control = Control(directory, record_bytes_max, now_ms)
        self._writer = Writer(Committer(directory, record_bytes_max, now_ms))
        self._reading = connect(directory)
        self._catalog = Catalog(self._reading)

    def append(self, batch: Append) -> None:
        self._writer.submit(batch)

    def transact(self, shard: str, writes: Sequence[Write], owner: object) -> None:
        self._writer.submit(Transaction(writes, owner, shard, self._holder))

    def open_reader(
        self, topic: str, partition: int, start: int, stamped: bool = False, headed: bool = False
    ) -> Reader:
        return SqliteReader(self._catalog, self._reading, topic, partition, start)

    def poll(self) -> list[Completion]:
        completions = self._writer.completions
        return [completions.popleft() for _ in range(len(completions))]

    def on_ready(self, wake: Callable[[], None]) -> None:
        self._writer.wake = wake

    def create_topics(self, specs: Sequence[TopicSpec], deadline_s: float = 10.0) -> list[Topic]:
        return self._control.create_topics(specs, deadline_s)

    def grow_topic(self, name: str, partitions: int, deadline_s: float = 10.0) -> None:
        self._control.grow_topic(name, partitions, deadline_s)

    def topics(self, prefix: str, deadline_s: float = 10.0) -> dict[str, Topic]:
        return self._control.topics(prefix, deadline_s)

    def find_topics(self, names: Sequence[str], deadline_s: float = 10.0) -> dict[str, Topic]:
        found = self._control.topics("", deadline_s)
        return {name: found[name] for name in names if name in found}

    def delete_topics(self, names: Sequence[str], deadline_s: float = 10.0) -> None:
        self._control.delete_topics(names, deadline_s)

    def bounds(self, topic: str, partition: int, deadline_s: float = 10.0) -> tuple[int, int]:
        return self._control.bounds(topic, partition, deadline_s)

    def read_range(self, topic: str, partition: int, start: int, count_max: int, deadline_s: float = 10.0) -> Records:
        return self._control.read_range(topic, partition, start, count_max, deadline_s)

    def put(self, topic: str, key: bytes, value: bytes | None, deadline_s: float = 10.0) -> int:
        return self.put_all(topic, (key,), (value,), deadline_s)[0]

    def put_all(
        self, topic: str, keys: Sequence[bytes], values: Sequence[bytes | None], deadline_s: float = 10.0
    ) -> list[int]:
        offsets = self._control.put_all(topic, keys, values, deadline_s)
        self._writer.wake()
        return offsets

    def claim(self, shard: str, deadline_s: float = 10.0) -> None:
        self._control.claim(shard, self._holder, deadline_s)

    def trim(self, topic: str, partition: int, before: int, deadline_s: float = 10.0) -> None:
        self._control.trim(topic, partition, before, deadline_s)

    def project(self, group: str, positions: Positions, deadline_s: float = 10.0) -> None:
        self._control.project(group, positions, deadline_s)

    def projected(self, group: str, deadline_s: float = 10.0) -> Positions:
        return self._control.projected(group, deadline_s)

    def forget(self, group: str, deadline_s: float = 10.0) -> None:
        self._control.forget(group, deadline_s)

    def rights(self, deadline_s: float = 10.0) -> Rights | None:
        return None

    def certain_copies(self, topic: str, deadline_s: float = 10.0) -> int | None:
        return None

    def close(self, deadline_s: float = 3.0) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._writer.close(deadline_s)
        self._control.close()
        self._reading.close()
