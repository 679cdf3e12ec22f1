"""All sums of one link, from the Parquet files that it landed on this machine.

Row groups are read by several processes where there are many. `None` is returned where a record is not of the plain
shape (`summing.shapes`): then Spark makes the sums, which has a rule for everything that may be wrong.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reconciliation.summing.events import EventSums
from reconciliation.summing.journal import JournalSums
from reconciliation.summing.outcomes import OutcomeSums
from reconciliation.summing.shapes import NotPlainError

Sums = OutcomeSums | JournalSums | EventSums

PROCESSES_MAX: Final = 2
ALONE: Final = 200_000
"""So many records are not worth another process."""
_KINDS: Final[Mapping[str, type[Sums]]] = {"outcomes": OutcomeSums, "journal": JournalSums, "events": EventSums}
"""What takes longest first."""
_COLUMNS: Final = {"events": ["topic", "partition", "offset", "key"]}
_LEFT_TO_SPARK: Final = (
    NotPlainError, UnicodeEncodeError, OverflowError, MemoryError, OSError, BrokenProcessPool, pa.ArrowException,
)  # fmt: skip
"""Of the last four: the file is damaged, or this machine has no room. Spark says so, or has another way."""
_OF_RECORDS: Final = ["topic", "partition", "offset", "value"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Row groups of one file. `counts`: by (topic, partition), the offset from which on records count."""

    kind: str
    file: Path
    groups: Sequence[int]
    counts: Mapping[tuple[str, int], int]


def of_link(
    folders: Mapping[str, Path], counts: Mapping[tuple[str, int], int], prefix: str, types: pa.Schema
) -> Iterator[tuple[str, pa.Table]] | None:
    """By the name of the sum, its table as `types` have it, but for the name itself. `folders`: by kind, what has its
    files; `counts`: see `Piece`."""
    try:
        pieces = [piece for kind in _KINDS if kind in folders for piece in _pieces(kind, folders[kind], counts)]
        sums = _summed(pieces)
        return _tables([(kind, *table) for kind, of_kind in sums.items() for table in of_kind.rows()], prefix, types)
    except _LEFT_TO_SPARK:
        return None


def _pieces(kind: str, folder: Path, counts: Mapping[tuple[str, int], int]) -> Iterator[Piece]:
    """Each of some 200,000 events, or of one row group of records that hold many deliveries."""
    for file in sorted(folder.glob("*.parquet")):
        metadata, groups, records = pq.read_metadata(file), list[int](), 0
        for group in range(metadata.num_row_groups):
            groups.append(group)
            records += metadata.row_group(group).num_rows
            if records >= ALONE or kind != "events":
                yield Piece(kind, file, groups, counts)
                groups, records = [], 0
        if groups:
            yield Piece(kind, file, groups, counts)


def _summed(pieces: Sequence[Piece]) -> dict[str, Sums]:
    sums: dict[str, Sums] = {}
    for piece, of_piece in zip(pieces, _each_summed(pieces), strict=True):
        there: Any = sums.setdefault(piece.kind, of_piece)
        if there is not of_piece:
            there.merge(of_piece)
    return sums


def _each_summed(pieces: Sequence[Piece]) -> Iterable[Sums]:
    if len(pieces) <= len(_KINDS):
        return map(of_piece, pieces)
    with ProcessPoolExecutor(PROCESSES_MAX, multiprocessing.get_context("spawn"), initializer=_begin) as pool:
        return [*pool.map(of_piece, pieces)]


def _begin() -> None:
    """Of a process of the pool: it ends when its parent has ended, however that was, and leaves Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def of_piece(piece: Piece) -> Sums:
    sums = _KINDS[piece.kind]()
    file = pq.ParquetFile(piece.file)
    for group in piece.groups:
        records = _counting(file.read_row_group(group, _COLUMNS.get(piece.kind, _OF_RECORDS)), piece.counts)
        if not records.num_rows:
            continue
        if isinstance(sums, EventSums):
            sums.add(records)
        else:
            sums.add(records["offset"].to_pylist(), records["value"].to_pylist())
    return sums


def _counting(records: pa.Table, counts: Mapping[tuple[str, int], int]) -> pa.Table:
    """Those that count."""
    topics = pc.dictionary_encode(records["topic"]).combine_chunks()
    names = topics.dictionary.to_pylist()
    partitions, offsets = records["partition"].to_numpy(), records["offset"].to_numpy()
    indices = topics.indices.to_numpy(zero_copy_only=False)
    counted = np.zeros(records.num_rows, bool)
    for (topic, number), first in counts.items():
        if topic in names:
            counted |= (indices == names.index(topic)) & (partitions == number) & (offsets >= first)
    return records if counted.all() else records.filter(pa.array(counted))


def _tables(
    rows: Iterable[tuple[str, str, Iterator[dict[str, Any]]]], prefix: str, types: pa.Schema
) -> Iterator[tuple[str, pa.Table]]:
    by_name: dict[str, list[dict[str, Any]]] = {}
    for kind, name, of_sum in rows:
        place = {} if kind == "events" else {"topic": f"{prefix}.{kind}", "partition": 0}
        by_name.setdefault(name, []).extend({**place, **row} for row in of_sum)
    return iter([(name, _table(content, types)) for name, content in by_name.items() if content])


def _table(rows: Sequence[Mapping[str, Any]], types: pa.Schema) -> pa.Table:
    def column(field: pa.Field) -> pa.Array:
        return pa.array([row.get(field.name) for row in rows], field.type)

    return pa.table([column(field) for field in types], types)
