"""A position in one partition of the file, on the thread that asks: an indexed range query, and nothing when there is
nothing new. WAL readers do not block the writer, nor it them.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from native_backend.log.port import Failure, Taken
from native_backend.log.sqlite.catalog import Catalog
from native_backend.log.sqlite.columns import decode
from native_backend.log.sqlite.commit import failure_of

READ_BYTES = 4 << 20  # one read stops here, whatever its count
ROWS = """
SELECT first, count, at_ms, data FROM batches WHERE partition = ?1 AND first >=
  coalesce((SELECT max(first) FROM batches WHERE partition = ?1 AND first <= ?2), ?2) ORDER BY first
"""


class SqliteReader:
    """Reads one partition forward; a partition of a topic that was deleted and made again is another one."""

    def __init__(self, catalog: Catalog, connection: sqlite3.Connection, topic: str, number: int, start: int) -> None:
        self._catalog = catalog
        self._connection = connection
        self._name = f"{topic}/{number}"
        self._position = start
        catalog.refresh()
        partition = catalog.named.get((topic, number))
        self._id = -1 if partition is None else partition.id
        self.times_ms: list[int] = []
        self._offsets: list[int] = []
        self._times: list[int] = []
        self._values: list[bytes] = []
        self._keys: list[bytes | None] = []

    @property
    def position(self) -> int:
        return self._position

    def read(self, count_max: int) -> Taken | Failure | None:
        if not self._offsets:
            try:
                if (failure := self._fill(count_max)) is not None:
                    return failure
            except sqlite3.Error as error:
                return failure_of(error, "unavailable")
        return self._take(count_max) if self._offsets else None

    def close(self) -> None:
        self._offsets, self._values, self._keys, self._times = [], [], [], []
        self._id = -1

    def _fill(self, count_max: int) -> Failure | None:
        self._catalog.refresh()
        partition = self._catalog.known.get(self._id)
        if partition is None:
            return Failure("not-found", f"no {self._name}")
        if self._position < partition.first:
            return Failure("retention", f"{self._name} begins at {partition.first}")
        if self._position > partition.next:
            return Failure("retention", f"{self._name} ends at {partition.next}")
        if self._position == partition.next:
            return None
        size = 0
        with closing(self._connection.execute(ROWS, (self._id, self._position))) as rows:
            for first, count, at_ms, data in rows:
                self._add(first, count, at_ms, data)
                size += len(data)
                # What lies before the position, or is no event, ends no read: the next one would begin there again.
                if self._offsets and (len(self._offsets) >= count_max or size >= READ_BYTES):
                    return None
        if not self._offsets:
            self._position = partition.next
        return None

    def _add(self, first: int, count: int, at_ms: int, data: bytes) -> None:
        keys, values = decode(data, count)
        skip = max(self._position - first, 0)
        if skip >= count:
            return
        if None not in values:
            self._offsets += range(first + skip, first + count)
            self._values += values[skip:]  # type: ignore[arg-type]  # no None among them
            self._keys += keys[skip:]
            self._times += [at_ms] * (count - skip)
            return
        for index in range(skip, count):
            value = values[index]
            if value is not None:
                self._offsets.append(first + index)
                self._values.append(value)
                self._keys.append(keys[index])
                self._times.append(at_ms)

    def _take(self, count_max: int) -> Taken:
        if len(self._offsets) <= count_max:
            taken = self._offsets, self._values, self._keys
            self.times_ms = self._times
            self._offsets, self._values, self._keys, self._times = [], [], [], []
        else:
            taken = self._offsets[:count_max], self._values[:count_max], self._keys[:count_max]
            self.times_ms = self._times[:count_max]
            del self._offsets[:count_max], self._values[:count_max], self._keys[:count_max], self._times[:count_max]
        self._position = taken[0][-1] + 1
        return taken
