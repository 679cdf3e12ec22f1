"""What one transaction of the file will store: rows, and the offsets that every job gets.

Made before the write lock is taken, so that the lock is short. Records of one partition go into rows of at most
`ROW_RECORDS` and `ROW_BYTES`; after each row one offset is skipped, now and then three more: no code may assume that
offsets are dense.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from native_backend.log.columns import Strings
from native_backend.log.port import Append, Appended, Completion, Failure, Transacted, Write
from native_backend.log.record_headers import HeadedKey
from native_backend.log.sqlite.catalog import Catalog, Partition
from native_backend.log.sqlite.columns import encode

ROW_RECORDS = 1024
ROW_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Transaction:
    """A `transact` that waits for the writer, or a record that is put (of no shard)."""

    writes: Sequence[Write]
    owner: object
    shard: str = ""
    holder: bytes = b""


Job = Append | Transaction
Insert = tuple[int, int, int, int, "bytes | None", bytes]
"""The parameters of one row: partition, first offset, count, time, key, data."""


@dataclass(slots=True)
class Row:
    """A row in the making."""

    partition: int
    first: int
    size: int = 0
    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)


def record_bytes(key: bytes | None, value: bytes | None) -> int:
    size = len(key or b"") + len(value or b"")
    return size + key.extra_bytes if type(key) is HeadedKey else size


class Plan:
    """Rows to insert, and the completions to give once they are stored."""

    def __init__(self, catalog: Catalog, record_bytes_max: int) -> None:
        self._catalog = catalog
        self._record_bytes_max = record_bytes_max
        self._open: dict[int, Row] = {}
        self.ends: dict[int, int] = {}
        self.rows: list[Row] = []
        self.completions: list[Completion] = []

    def add(self, job: Job) -> None:
        if isinstance(job, Append):
            self._add_append(job)
        else:
            self._add_transaction(job)

    def inserts(self, at_ms: int) -> list[Insert]:
        """The rows."""
        known = self._catalog.known
        return [
            (
                row.partition,
                row.first,
                len(row.keys),
                at_ms,
                row.keys[0] if known[row.partition].compacted else None,
                encode(row.keys, row.values),
            )
            for row in self.rows
        ]

    def _add_append(self, batch: Append) -> None:
        partition = self._catalog.named.get((batch.topic, batch.partition))
        if partition is None:
            self._refuse(batch, 0, len(batch.keys), Failure("not-found", f"no {batch.topic}/{batch.partition}"))
            return
        keys, values, limit = batch.keys, batch.values, self._record_bytes_max
        largest = max(map(len, keys), default=0) + max(map(len, values), default=0)
        headed = HeadedKey in map(type, keys)
        refused = [] if largest <= limit and not headed else _too_large(keys, values, limit)
        start = 0
        for index in refused:
            self._store(batch, partition, start, index)
            self._refuse(batch, index, 1, Failure("too-large", f"a record of more than {limit} bytes"))
            start = index + 1
        self._store(batch, partition, start, len(keys))

    def _store(self, batch: Append, partition: Partition, start: int, end: int) -> None:
        if start < end or not batch.keys:
            offsets = self._place(partition, batch.keys[start:end], batch.values[start:end])
            self.completions.append(Appended(batch, start, offsets))

    def _refuse(self, batch: Append, first: int, count: int, failure: Failure) -> None:
        self.completions.append(Appended(batch, first, [-1] * count, failure))

    def _add_transaction(self, job: Transaction) -> None:
        failure: Failure | None
        if job.shard and self._catalog.claims.get(job.shard) != job.holder:
            failure = Failure("fenced", f"shard {job.shard} has been claimed by another process since, or by none")
        else:
            failure = next(filter(None, map(self._fault, job.writes)), None)
        if failure is not None:
            self.completions.append(Transacted(job.owner, [-1] * len(job.writes), failure))
            return
        named = self._catalog.named
        offsets = [self._place(named[w.topic, w.partition], (w.key,), (w.value,))[0] for w in job.writes]
        self.completions.append(Transacted(job.owner, offsets))

    def _fault(self, write: Write) -> Failure | None:
        partition = self._catalog.named.get((write.topic, write.partition))
        if partition is None:
            return Failure("not-found", f"no {write.topic}/{write.partition}")
        if record_bytes(write.key, write.value) > self._record_bytes_max:
            return Failure("too-large", f"a record of more than {self._record_bytes_max} bytes")
        if partition.compacted and write.key is None:
            return Failure("unexpected", f"{write.topic} is compacted: a record without a key has no place in it")
        return None

    def _place(self, partition: Partition, keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> list[int]:
        """Put records into rows, halving what does not fit into one; their offsets."""
        count = len(keys)
        size = sum(map(record_bytes, keys, values))
        room = 1 if partition.compacted else ROW_RECORDS
        if count > 1 and (count > room or size > ROW_BYTES):
            half = count // 2
            return self._place(partition, keys[:half], values[:half]) + self._place(
                partition, keys[half:], values[half:]
            )
        row = self._open.get(partition.id)
        if row is None or len(row.keys) + count > room or row.size + size > ROW_BYTES:
            if not count:
                return []
            row = self._start_row(partition)
        start = row.first + len(row.keys)
        row.keys += keys
        row.values += values
        row.size += size
        self.ends[partition.id] = start + count + 1
        return list(range(start, start + count))

    def _start_row(self, partition: Partition) -> Row:
        end = self.ends.get(partition.id, partition.next)
        row = Row(partition.id, end + 3 if end % 16 == 5 else end)
        self._open[partition.id] = row
        self.rows.append(row)
        return row


def _too_large(keys: Strings, values: Strings, limit: int) -> list[int]:
    return [index for index, pair in enumerate(zip(keys, values, strict=True)) if record_bytes(*pair) > limit]
