"""`SqliteLog`: the log port on one SQLite file, the embedded default.

Appends and transactions go to the writer thread; readers and control calls have connections of their own. What another
process writes is seen at the next read, but does not call `wake`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from native_backend.log.port import Append, Completion, Reader, Write
from native_backend.log.sqlite.catalog import Catalog
from native_backend.log.sqlite.checkpoint import Checkpoints
from native_backend.log.sqlite.commit import Committer
from native_backend.log.sqlite.control import SqliteControl
from native_backend.log.sqlite.plan import Transaction
from native_backend.log.sqlite.reader import SqliteReader
from native_backend.log.sqlite.schema import connect, create
from native_backend.log.sqlite.writer import Writer

RECORD_BYTES_MAX = 512 << 20  # SQLite's own limit of a row is 1,000,000,000 (SQLITE_MAX_LENGTH)


class SqliteLog:
    """A driver of `native_backend.log.port.Log`."""

    kind = "embedded"
    poll_interval_s = 0.0
    descriptor = -1

    def __init__(self, directory: Path, now_ms: Callable[[], int], record_bytes_max: int = RECORD_BYTES_MAX) -> None:
        create(directory)
        self._is_closed = False
        self._holder = uuid.uuid4().bytes
        self._writer = Writer(Committer(directory, record_bytes_max, now_ms), Checkpoints(directory))
        self.control = SqliteControl(directory, record_bytes_max, now_ms, self._holder, lambda: self._writer.wake())
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

    def close(self, deadline_s: float = 3.0) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._writer.close(deadline_s)
        self.control.close()
        self._reading.close()
