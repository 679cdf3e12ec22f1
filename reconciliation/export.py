"""The embedded realm as Parquet: a snapshot of `realm.sqlite`, written in batches, without Spark.

All records come from one read-only transaction beside the live writer, so topics agree with each other. Group positions
are read before it, hence never ahead of the journal that was read. First kept offsets are read before and after; when
they moved in between (a trim), it is all read again.
Errors: `SourceError`. May import: pyarrow, `native_backend.logs.sqlite.snapshot`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from native_backend.log import LogError
from native_backend.logs.sqlite import snapshot
from reconciliation.errors import SourceError
from reconciliation.ranges import Extent, GroupPosition, Kind, Range, kind_of
from reconciliation.schemas import RECORD

BATCH_RECORDS = 32_768
TRIES = 3

Ends = dict[tuple[str, int], tuple[int, int]]


def extent_of(directory: Path, prefix: str) -> Extent:
    """The ranges as they are now."""
    try:
        positions = tuple(
            sorted(
                (GroupPosition(*row) for row in snapshot.group_positions(directory)),
                key=lambda one: (one.group, one.topic),
            )
        )
        return Extent(_ranges(_kept(directory, prefix)), positions)
    except (sqlite3.Error, LogError, OSError) as error:
        raise SourceError(f"cannot read the realm in {directory}: {error}") from error


def export(directory: Path, prefix: str, extent: Extent, target: Path) -> Extent:
    """Write every record of the realm below `target`; returns what was really read (a live realm grows meanwhile)."""
    for _ in range(TRIES):
        before = _kept(directory, prefix)
        try:
            seen = _write(snapshot.rows(directory, f"{prefix}."), prefix, target)
        except (sqlite3.Error, LogError, OSError) as error:
            raise SourceError(f"cannot read the realm in {directory}: {error}") from error
        after = _kept(directory, prefix)
        if all(after[place][0] == first for place, (first, _) in before.items() if place in after):
            return Extent(_ranges(before if before == after else _grown(before, seen)), extent.positions)
    raise SourceError("the realm was trimmed each time it was read; run again when it is calmer")


def _kept(directory: Path, prefix: str) -> Ends:
    return {place: ends for place, ends in snapshot.ends(directory).items() if kind_of(prefix, place[0])}


def _ranges(ends: Ends) -> tuple[Range, ...]:
    return tuple(sorted(Range(topic, number, first, end) for (topic, number), (first, end) in ends.items()))


def _grown(before: Ends, seen: dict[tuple[str, int], int]) -> Ends:
    """A live realm: what was read ends after the last record that was seen."""
    grown = dict(before)
    for place, last in seen.items():
        first, end = before.get(place, (0, 0))
        grown[place] = (first, max(end, last + 1))
    return grown


def _write(rows: Iterator[snapshot.Row], prefix: str, target: Path) -> dict[tuple[str, int], int]:
    seen: dict[tuple[str, int], int] = {}
    writers: dict[Kind, _KindFile] = {}
    try:
        for topic, number, offset, at_ms, key, value in rows:
            kind = kind_of(prefix, topic)
            if kind is None:
                continue
            seen[topic, number] = offset
            file = writers.get(kind)
            if file is None:
                file = writers[kind] = _KindFile(target / f"kind={kind}")
            file.add((topic, number, offset, at_ms, key, None if kind == "events" else value))
    finally:
        for file in writers.values():
            file.close()
    return seen


class _KindFile:
    """One Parquet file, filled in batches."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(directory / "part-0.parquet", RECORD, compression="zstd")
        self._rows: list[snapshot.Row] = []

    def add(self, row: snapshot.Row) -> None:
        self._rows.append(row)
        if len(self._rows) >= BATCH_RECORDS:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, RECORD, strict=True)]
            self._writer.write_batch(pa.record_batch(arrays, schema=RECORD))
            self._rows = []
