"""Records of one kind as Parquet, by columns: of a batch of the realm's file Arrow takes the octets as they are.

A batch whose records have headers is decoded record by record, since an event's name may be among them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reconciliation.model.schemas import RECORD
from reconciliation.read import realm_file
from reconciliation.read.realm_file import Batch

BATCH_RECORDS, BATCH_BYTES = 32_768, 16 << 20
"""What is written at a time, whichever is reached first: it is a row group, which one task reads."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Of the records of a batch that are wanted. `values`: None where only names are."""

    topic: str
    partition: int
    at_ms: int
    offsets: np.ndarray[Any, np.dtype[np.int64]]
    names: pa.Array
    values: pa.Array | None


def columns_of(batch: Batch, *, of_events: bool) -> Columns:
    """`of_events`: no values, and no tombstones: these are no events. Raises ValueError or struct.error where the batch
    cannot be decoded."""
    names, values, is_there = _decoded(batch.data, batch.count, with_values=not of_events)
    cut = max(batch.wanted - batch.first, 0)
    offsets = np.arange(batch.first + cut, batch.first + batch.count, dtype=np.int64)
    names, is_there = names[cut:], is_there[cut:]
    if of_events and not is_there.all():
        names, offsets = names.filter(pa.array(is_there)), offsets[is_there]
    return Columns(batch.topic, batch.partition, batch.at_ms, offsets, names, None if values is None else values[cut:])


def _decoded(data: bytes, count: int, *, with_values: bool) -> tuple[pa.Array, pa.Array | None, np.ndarray[Any, Any]]:
    """Names, values, and whether there is a value."""
    lengths = np.frombuffer(data, "<u4", 2 * count)
    is_there = lengths != realm_file.ABSENT
    edges = np.full(2 * count + 1, 8 * count, np.int64)
    edges[1:] += np.cumsum(np.where(is_there, lengths, 0), dtype=np.int64)
    if edges[-1] != len(data):
        names, values = realm_file.decode(data, count)
        as_array = pa.array(values, pa.binary()) if with_values else None
        return pa.array(names, pa.binary()), as_array, is_there[count:]
    keys = data[8 * count : edges[count]]  # a copy: it does not hold the values
    held = _array(data, edges[count:], is_there[count:]) if with_values else None
    return _array(keys, edges[: count + 1] - 8 * count, is_there[:count]), held, is_there[count:]


def _array(octets: bytes, edges: np.ndarray[Any, Any], is_there: np.ndarray[Any, Any]) -> pa.Array:
    """A batch is shorter than 1 GB, as SQLite's values are: Arrow's offsets have 32 bits."""
    validity = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    offsets = pa.py_buffer(edges.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(is_there), [validity, offsets, pa.py_buffer(octets)])


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
            pa.array(np.repeat(np.array([part.at_ms for part in parts], np.int64), counts)),
            pa.concat_arrays([part.names for part in parts]),
            pa.concat_arrays(values) if values else pa.nulls(self._records, pa.binary()),
        ]
        self._writer.write_batch(pa.record_batch(columns, schema=RECORD))
        self.written += self._records
        self._records = self._octets = 0
        self._batch_written()
