"""The embedded realm as Parquet: a snapshot of `realm.sqlite`, written in batches, without Spark.

All records, ends and group positions come from one read-only transaction beside the live writer, so they agree with
each other: what the journal says was there when the outcomes ended. Errors: `SourceError`.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from reconciliation.model.errors import SourceError
from reconciliation.model.ranges import (
    GONE,
    KINDS,
    REQUIRED,
    SINGLE,
    TORN,
    Extent,
    GroupPosition,
    Kind,
    Range,
    Unread,
    kind_of,
)
from reconciliation.model.schemas import MESSAGE
from reconciliation.read import realm_file
from reconciliation.read.known_nodes import KnownNodes
from reconciliation.read.realm_file import Batch
from reconciliation.read.record_file import BATCH_BYTES, BATCH_RECORDS, Columns, RecordFile, columns_of, gathered

Note = Callable[[str], object]
"""Gets words for what remains."""


def extent_of(directory: Path, prefix: str) -> Extent:
    """The ranges as they are now."""
    with _opened(directory) as realm:
        return _extent(realm, prefix)


def export(
    directory: Path, prefix: str, target: Path, kinds: Collection[Kind] = KINDS, note: Note = str,
    starts: Mapping[tuple[str, int], int] | None = None,
) -> Extent:  # fmt: skip
    """Write every record of the realm of these kinds below `target`; returns what was read (a live realm may have grown
    since it was asked for its extent). `starts`: from that offset on, of a (topic, partition)."""
    with _opened(directory) as realm:
        extent = _extent(realm, prefix).only(prefix, kinds)
        torn: list[Unread] = []
        writers: dict[Kind, RecordFile] = {}

        def batch_written() -> None:
            written = sum(file.written for file in writers.values())
            note(f"{written:,} records are written, at most {extent.offsets - written:,} remain")

        try:
            for topic in sorted({span.topic for span in extent.ranges}):
                kind = kind_of(prefix, topic)
                for columns in _columns(realm.batches(topic, starts or {}), kind, torn):
                    if kind not in writers:
                        writers[kind] = RecordFile(target / f"kind={kind}", batch_written)
                    writers[kind].add(columns)
        finally:
            for file in writers.values():
                file.close()
        unread = tuple(sorted((*extent.unread, *torn)))
        return Extent(extent.ranges, extent.positions, extent.topics, unread, extent.journal_before)


def _columns(batches: Iterable[Batch], kind: Kind, torn: list[Unread]) -> Iterator[Columns]:
    """Of what can be decoded; the rest is added to `torn`."""
    for group in gathered(batches):
        try:
            columns = [columns_of(group, of_events=kind == "events")]
        except (struct.error, ValueError):
            columns = [*_each(group, kind, torn)]
        yield from filter(lambda those: len(those.offsets), columns)


def _each(batches: Iterable[Batch], kind: Kind, torn: list[Unread]) -> Iterator[Columns]:
    for batch in batches:
        try:
            yield columns_of([batch], of_events=kind == "events")
        except (struct.error, ValueError):
            torn.append(Unread(batch.topic, batch.partition, TORN, batch.first, batch.first + batch.count))


def export_messages(directory: Path, topics: Collection[str], target: Path) -> None:
    """Write every record of these topics below `target`, with key, value and headers. What cannot be decoded is left
    out: the landing names it."""
    with _opened(directory) as realm:
        file = MessageFile(target)
        try:
            for topic in sorted(topics):
                for row in realm.whole(topic, _ignored):
                    if row[5] is not None:
                        file.add(row)
        finally:
            file.close()


@contextmanager
def _opened(directory: Path) -> Iterator[realm_file.Snapshot]:
    try:
        with realm_file.opened(directory) as realm:
            yield realm
    except (sqlite3.Error, OSError) as error:
        raise SourceError(f"cannot read the realm in {directory}: {error}") from error


def _extent(realm: realm_file.Snapshot, prefix: str) -> Extent:
    ids = {topic: id_.hex() for topic, id_ in realm.topic_ids().items()}
    single = [f"{prefix}.{kind}" for kind in SINGLE]
    known = KnownNodes()
    known.fold(row[2:] for row in realm.rows(f"{prefix}.realm", _ignored))
    read = {*single, *(node.topic for node in known.nodes if ids.get(node.topic) == node.topic_id.hex())} & ids.keys()
    ends = {place: bounds for place, bounds in realm.ends().items() if place[0] in read}
    ranges = sorted(Range(topic, number, first, end) for (topic, number), (first, end) in ends.items())
    missing = [f"{prefix}.{kind}" for kind in REQUIRED if f"{prefix}.{kind}" not in ids]
    positions = sorted(
        (GroupPosition(*row) for row in realm.group_positions()), key=lambda pos: (pos.group, pos.topic, pos.partition)
    )
    topics = {topic: ids[topic] for topic in {*single, *(node.topic for node in known.nodes)} & ids.keys()}
    unread = tuple(Unread(topic, None, GONE) for topic in missing)
    return Extent(tuple(ranges), tuple(positions), topics, unread, ends.get((f"{prefix}.journal", 0), (0, 0))[1])


def _ignored(topic: str, number: int, first: int, end: int) -> None:
    """The export names it."""


class MessageFile:
    """One Parquet file, filled in batches."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(directory / "part-0.parquet", MESSAGE, compression="zstd")
        self._rows: list[realm_file.Whole] = []
        self._bytes = 0

    def add(self, row: realm_file.Whole) -> None:
        self._rows.append(row)
        self._bytes += len(row[5] or b"")
        if len(self._rows) >= BATCH_RECORDS or self._bytes >= BATCH_BYTES:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, MESSAGE, strict=True)]
            self._writer.write_batch(pa.record_batch(arrays, schema=MESSAGE))
            self._rows, self._bytes = [], 0
