"""The first and the last record that were landed of each partition, and a hash of each: the next reconciliation has to
find the same ones.

Where the files are on this machine, only those records are read as a whole. Elsewhere, and where a file cannot be read
so, Spark reads all of them. The hash is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

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

_HASHED = ["timestamp", "key", "value"]


class Place(NamedTuple):
    """Where a record is: places of one partition are ordered as its records."""

    offset: int
    file: Path
    group: int
    row: int


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
            keys = parquet.read_row_group(group, ["topic", "partition", "offset"])
            for partition, offset, row in _edges(keys):
                there = places.setdefault(partition, [])
                there.append(Place(offset, file, group, row))
                places[partition] = [min(there), max(there)]
    marks = _marks({place for edges in places.values() for place in edges})
    return {
        partition: Seen(first.offset, marks[first], last.offset, marks[last])
        for partition, (first, last) in places.items()
    }


def _edges(keys: pa.Table) -> Iterator[tuple[Partition, int, int]]:
    """Of each partition that has records here, its first and its last one: offset and row."""
    topics = pc.dictionary_encode(keys["topic"]).combine_chunks()
    names = topics.dictionary.to_pylist()
    numbers, offsets = keys["partition"].to_numpy().astype(np.int64), keys["offset"].to_numpy()
    places = topics.indices.to_numpy(zero_copy_only=False).astype(np.int64) << 32 | numbers
    for place in np.unique(places).tolist():
        rows = np.flatnonzero(places == place)
        for edge in (offsets[rows].argmin(), offsets[rows].argmax()):
            row = int(rows[edge])
            yield (names[place >> 32], place & 0xFFFFFFFF), int(offsets[row]), row


def _marks(places: Collection[Place]) -> dict[Place, int]:
    marks: dict[Place, int] = {}
    for file in {place.file for place in places}:
        parquet = pq.ParquetFile(file)
        for group in {place.group for place in places if place.file == file}:
            here = [place for place in places if (place.file, place.group) == (file, group)]
            rows = parquet.read_row_group(group, _HASHED).take([place.row for place in here])
            columns = (rows[name].to_pylist() for name in _HASHED)
            marks |= {place: row_hash(*row) for place, row in zip(here, zip(*columns, strict=True), strict=True)}
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
