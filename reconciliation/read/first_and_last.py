"""The first and the last record that were landed of each partition, and a hash of each: the next reconciliation has to
find the same ones.

Where the files are on this machine, only those records are read as a whole. Elsewhere, and where a file cannot be read
so, Spark reads all of them. The hash is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from reconciliation.model import schemas
from reconciliation.model.folder import Folder, LocalFolder
from reconciliation.model.row_hash import row_hash
from reconciliation.model.state import CHAINED, Partition, Seen

_KEYS, _HASHED = ["topic", "partition", "offset"], ["timestamp", "key", "value"]


class Place(NamedTuple):
    """Where a record is: places of one partition are ordered as its records."""

    offset: int
    file: Path
    group: int


def first_and_last(spark: SparkSession, landed: Folder) -> dict[Partition, Seen]:
    names = [name for kind in CHAINED if (landed / (name := f"kind={kind}")).exists()]
    if not names:
        return {}
    if isinstance(landed, LocalFolder):
        with suppress(pa.ArrowException, OSError, KeyError):  # the last one: a column is missing
            return _of_files([file for name in names for file in (landed.path / name).glob("*.parquet")])
    return by_spark(spark, landed, [landed / name for name in names])


def _of_files(files: list[Path]) -> dict[Partition, Seen]:
    places: dict[Partition, list[Place]] = {}
    for file in files:
        parquet = pq.ParquetFile(file)
        for group in range(parquet.num_row_groups):
            for partition, *offsets in _edges_by_statistics(parquet, group) or _edges(parquet, group):
                there = [*places.get(partition, []), *(Place(offset, file, group) for offset in offsets)]
                places[partition] = [min(there), max(there)]
    marks = _marks({(partition, place) for partition, edges in places.items() for place in edges})
    return {
        partition: Seen(first.offset, marks[partition, first], last.offset, marks[partition, last])
        for partition, (first, last) in places.items()
    }


def _edges_by_statistics(parquet: pq.ParquetFile, group: int) -> list[tuple[Partition, int, int]]:
    """What the file says of a row group that has records of one partition; empty: of several, or it does not say."""
    if parquet.schema_arrow.names[: len(_KEYS)] != _KEYS:
        return []
    all_statistics = (parquet.metadata.row_group(group).column(place).statistics for place in range(len(_KEYS)))
    bounds = [(known.min, known.max) for known in all_statistics if known is not None and known.has_min_max]
    if len(bounds) != len(_KEYS) or any(least != most for least, most in bounds[:2]):
        return []
    (topic, _), (number, _), (first, last) = bounds
    return [((topic, number), first, last)]


def _edges(parquet: pq.ParquetFile, group: int) -> Iterator[tuple[Partition, int, int]]:
    """Of each partition that has records here, the first and the last offset."""
    keys = parquet.read_row_group(group, _KEYS)
    names, places = _partitions(keys)
    offsets = keys["offset"].to_numpy()
    for place in np.unique(places).tolist():
        here = offsets[places == place]
        yield (names[place >> 32], place & 0xFFFFFFFF), int(here.min()), int(here.max())


def _partitions(keys: pa.Table) -> tuple[list[str], np.ndarray[Any, np.dtype[np.int64]]]:
    """The topics, and of each record which of them it is of, before 32 bits for the number of its partition."""
    topics = pc.dictionary_encode(keys["topic"]).combine_chunks()
    numbers = keys["partition"].to_numpy().astype(np.int64)
    return topics.dictionary.to_pylist(), topics.indices.to_numpy(zero_copy_only=False).astype(np.int64) << 32 | numbers


def _marks(places: Collection[tuple[Partition, Place]]) -> dict[tuple[Partition, Place], int]:
    marks: dict[tuple[Partition, Place], int] = {}
    for file in {place.file for _, place in places}:
        parquet = pq.ParquetFile(file)
        for group in {place.group for _, place in places if place.file == file}:
            here = [(partition, place) for partition, place in places if (place.file, place.group) == (file, group)]
            records = parquet.read_row_group(group, [*_KEYS, *_HASHED])
            names, of_records = _partitions(records)
            offsets = records["offset"].to_numpy()
            rows = [
                np.flatnonzero((of_records == names.index(topic) << 32 | number) & (offsets == place.offset))[0]
                for (topic, number), place in here
            ]
            columns = (records[name].take(pa.array(rows)).to_pylist() for name in _HASHED)
            marks |= {edge: row_hash(*row) for edge, row in zip(here, zip(*columns, strict=True), strict=True)}
    return marks


def by_spark(spark: SparkSession, landed: Folder, folders: Collection[Folder]) -> dict[Partition, Seen]:
    hashed = F.xxhash64(*_HASHED)
    records = spark.read.schema(schemas.RECORD_DDL).option("basePath", landed.url)
    bounds = (
        records.parquet(*(folder.url for folder in folders))
        .groupBy("topic", "partition")
        .agg(F.min("offset"), F.min_by(hashed, "offset"), F.max("offset"), F.max_by(hashed, "offset"))
    )
    return {(row[0], row[1]): Seen(*row[2:]) for row in bounds.collect()}
