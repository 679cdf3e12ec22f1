"""Many small links made one: a reconciliation each minute would leave 1,440 of them a day, each with files to open.

When the newest `LEAST` links were merged equally often, their records are written again as one link, of which all
records count. A record is so written again once, and once more for each `LEAST` times as many; none is that is in a
link of more than `RECORDS_MAX`. The old links stay until a state is in force that does not name them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from reconciliation.model import schemas
from reconciliation.model.folder import Folder
from reconciliation.model.ranges import Kind, Range, kind_of
from reconciliation.model.state import CHAINED, Link, Partition, State
from reconciliation.read.links import counting_records, files_of, folders_of

LEAST = 32
RECORDS_MAX = 20_000_000
_FILE_RECORDS = 1_000_000


def due(links: Sequence[Link], least: int) -> Sequence[Link]:
    """The newest of these that are to be one; empty: none. With those that become as often merged as the ones before
    them, these too."""
    taken: list[Link] = []
    while len(taken) < len(links):
        rest = links[: len(links) - len(taken)]
        alike = [*_alike(rest, rest[-1].merges if not taken else taken[-1].merges + 1)]
        wanted = least - bool(taken)
        chosen = alike[:wanted]
        if len(chosen) < wanted or sum(link.records_max for link in (*taken, *chosen)) > RECORDS_MAX:
            break
        taken += chosen
    return taken[::-1]


def _alike(links: Sequence[Link], merges: int) -> Iterator[Link]:
    """From the newest on, those that were merged so often."""
    for link in reversed(links):
        if link.merges != merges:
            return
        yield link


def merged(spark: SparkSession, links: Folder, state: State, prefix: str) -> State:
    """With fewer links, where so many are due. The last one is what was landed now, and stays."""
    chosen = due(state.links[:-1], LEAST)
    if not chosen:
        return state
    name = f"{chosen[-1].name.partition('-')[0]}-{uuid4().hex[:8]}"
    for kind in CHAINED:
        records = _records(spark, links, prefix, chosen, kind)
        if records is not None:
            files = 1 + sum(link.records_max for link in chosen) // _FILE_RECORDS
            records.coalesce(files).write.parquet((links / f"link={name}" / f"kind={kind}").url, mode="overwrite")
    (links / f"link={name}").make()  # though none of its records may count
    merges = max(link.merges for link in chosen) + 1
    union = Link(name, tuple(_ranges(chosen)), merges, files_of(links, name))
    at = state.links.index(chosen[0])
    return replace(state, links=(*state.links[:at], union, *state.links[at + len(chosen) :]))


def _records(spark: SparkSession, links: Folder, prefix: str, chosen: Sequence[Link], kind: Kind) -> DataFrame | None:
    """Those of a kind that count."""
    rows = [
        (link.name, span.topic, span.partition, span.first)
        for link in chosen
        for span in link.ranges
        if kind_of(prefix, span.topic) == kind
    ]
    folders = folders_of(links, chosen, kind)
    if not rows or not folders:
        return None
    columns = cast(StructType, StructType.fromDDL(schemas.COUNTING))
    table = pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=columns.names)
    return counting_records(spark, links, folders, spark.createDataFrame(table, columns))


def _ranges(chosen: Sequence[Link]) -> Iterator[Range]:
    """One of each partition."""
    spans: dict[Partition, Range] = {}
    for span in (stretch for link in chosen for stretch in link.ranges):
        before = spans.get((span.topic, span.partition), span)
        ends = min(before.first, span.first), max(before.end, span.end)
        spans[span.topic, span.partition] = replace(span, first=ends[0], end=ends[1])
    yield from spans.values()
