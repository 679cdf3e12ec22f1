"""Records of one kind as Parquet, by columns: of many batches of the realm's file at once, Arrow takes the octets as
they are.

A batch whose records have headers is decoded record by record, since an event's name may be among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reconciliation.model.schemas import RECORD
from reconciliation.read import realm_file
from reconciliation.read.realm_file import Batch

Numbers = np.ndarray[Any, np.dtype[np.int64]]

BATCH_RECORDS, BATCH_BYTES = 32_768, 16 << 20
"""What is decoded and written at a time, whichever is reached first: it is a row group, which one task reads."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Of those records of a partition that are wanted. `values`: None where only names are."""

    topic: str
    partition: int
    at_ms: Numbers
    offsets: Numbers
    names: pa.Array
    values: pa.Array | None


class _Decoded(NamedTuple):
    """Of all records of some batches. `is_there`: whether there is a value."""

    names: pa.Array
    values: pa.Array | None
    is_there: np.ndarray[Any, Any]


def gathered(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    """Those of one partition that follow each other, until it is time to write them."""
    group, records, octets = list[Batch](), 0, 0
    for batch in batches:
        if group and (batch.topic, batch.partition) != (group[0].topic, group[0].partition):
            yield group
            group, records, octets = [], 0, 0
        group.append(batch)
        records, octets = records + batch.count, octets + len(batch.data)
        if records >= BATCH_RECORDS or octets >= BATCH_BYTES:
            yield group
            group, records, octets = [], 0, 0
    if group:
        yield group


def columns_of(batches: Sequence[Batch], *, of_events: bool) -> Columns:
    """`batches`: some of one partition. `of_events`: no values, and no tombstones: these are no events. Raises
    ValueError or struct.error where one of them cannot be decoded."""
    decoded = _decoded(batches, with_values=not of_events)
    counts = np.array([batch.count for batch in batches], np.int64)
    starts = np.cumsum(counts) - counts

    def of_each(numbers: Iterable[int]) -> Numbers:
        return np.repeat(np.fromiter(numbers, np.int64, len(batches)), counts)

    offsets = of_each(batch.first for batch in batches) - np.repeat(starts, counts) + np.arange(counts.sum())
    at_ms, kept = of_each(batch.at_ms for batch in batches), offsets >= of_each(batch.wanted for batch in batches)
    names, values = decoded.names, decoded.values
    if of_events:
        kept &= decoded.is_there
    if not kept.all():
        chosen = pa.array(kept)
        offsets, at_ms, names = offsets[kept], at_ms[kept], names.filter(chosen)
        values = None if values is None else values.filter(chosen)
    return Columns(batches[0].topic, batches[0].partition, at_ms, offsets, names, values)


def _decoded(batches: Sequence[Batch], *, with_values: bool) -> _Decoded:
    octets = b"".join([batch.data[: 8 * batch.count] for batch in batches])
    counts = np.array([batch.count for batch in batches], np.int64)
    if len(octets) != 8 * counts.sum() or not counts.all():
        return _one_by_one(batches, with_values=with_values)
    lengths = np.frombuffer(octets, "<u4")
    is_there = lengths != realm_file.ABSENT
    sizes = np.where(is_there, lengths, 0).astype(np.int64)
    is_key = np.repeat(np.arange(2 * len(batches)) % 2 == 0, np.repeat(counts, 2))  # of a batch first all the keys
    key_sizes, value_sizes, starts = sizes[is_key], sizes[~is_key], np.cumsum(counts) - counts
    key_ends = 8 * counts + np.add.reduceat(key_sizes, starts)
    if (key_ends + np.add.reduceat(value_sizes, starts) != [len(batch.data) for batch in batches]).any():
        return _one_by_one(batches, with_values=with_values)
    places = [*zip(batches, key_ends.tolist(), strict=True)]
    names = _array(b"".join([batch.data[8 * batch.count : end] for batch, end in places]), key_sizes, is_there[is_key])
    held = None
    if with_values:
        held = _array(b"".join([batch.data[end:] for batch, end in places]), value_sizes, is_there[~is_key])
    return _Decoded(names, held, is_there[~is_key])


def _one_by_one(batches: Sequence[Batch], *, with_values: bool) -> _Decoded:
    """A batch with headers, or one that cannot be decoded, is among them."""
    if len(batches) > 1:
        parts = [_decoded([batch], with_values=with_values) for batch in batches]
        held = pa.concat_arrays([part.values for part in parts]) if with_values else None
        return _Decoded(
            pa.concat_arrays([part.names for part in parts]), held, np.concatenate([part.is_there for part in parts])
        )
    names, values = realm_file.decode(batches[0].data, batches[0].count)
    held = pa.array(values, pa.binary()) if with_values else None
    return _Decoded(pa.array(names, pa.binary()), held, np.array([value is not None for value in values], bool))


def _array(octets: bytes, sizes: Numbers, is_there: np.ndarray[Any, Any]) -> pa.Array:
    """All are shorter than 2 GB, as one of SQLite's values is below 1 GB: Arrow's offsets have 32 bits."""
    validity = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    edges = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=edges[1:])
    return pa.Array.from_buffers(pa.binary(), len(is_there), [validity, pa.py_buffer(edges), pa.py_buffer(octets)])


class RecordFile:
    """One file, filled in batches."""

    def __init__(self, directory: Path, batch_written: Callable[[], None]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(
            directory / "part-0.parquet", RECORD, compression="zstd", use_dictionary=["topic"]
        )
        self._parts: list[Columns] = []
        self._records = self._octets = 0
        self._batch_written = batch_written
        self.written = 0

    def add(self, columns: Columns) -> None:
        self._parts.append(columns)
        self._records += len(columns.offsets)
        self._octets += columns.names.nbytes + (columns.values.nbytes if columns.values is not None else 0)
        if self._records >= BATCH_RECORDS or self._octets >= BATCH_BYTES:
            self._flush()

    def close(self) -> None:
        if self._records:
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        counts = [len(part.offsets) for part in parts]
        topics = pa.array([part.topic for part in parts], pa.string())
        values = [part.values for part in parts if part.values is not None]
        columns = [
            topics.take(pa.array(np.repeat(np.arange(len(parts)), counts))),
            pa.array(np.repeat(np.array([part.partition for part in parts], np.int32), counts)),
            pa.array(np.concatenate([part.offsets for part in parts])),
            pa.array(np.concatenate([part.at_ms for part in parts])),
            pa.concat_arrays([part.names for part in parts]),
            pa.concat_arrays(values) if values else pa.nulls(self._records, pa.binary()),
        ]
        self._writer.write_batch(pa.record_batch(columns, schema=RECORD))
        self.written += self._records
        self._records = self._octets = 0
        self._batch_written()
