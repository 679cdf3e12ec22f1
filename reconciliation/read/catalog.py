"""What the realm is made of: nodes, durables with their marks, expanded tables. Small, so it is read on the driver.

The metadata fold is the realm's own (the first record of a node wins until its tombstone); the rest are compacted
topics, of which the newest record of a key counts. A node counts only if its topic is within the ranges that were
read. Source: docs/records.md. May import: pyarrow, orjson, `native_backend.metadata`, `snapshot`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow.parquet as pq

from native_backend.durables import Durable
from native_backend.log import Records
from native_backend.metadata import Metadata
from native_backend.nodes import Node
from native_backend.snapshot import UnknownVersion, newest_sets
from reconciliation.landing import Landed
from reconciliation.node_classes import NodeClasses
from reconciliation.ranges import Kind
from reconciliation.settings import Realm

Cell = tuple[str, str, int, str | None, str | None, str | None, str | None, str | None]
"""digest, table, cell, expected rule, and what it says: operation, outcome, condition, class."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The newest snapshot of a durable's state. Everything below `low` and in `acked` (inclusive) is terminal."""

    low: int
    acked: tuple[tuple[int, int], ...]
    journal: int


@dataclass(frozen=True, slots=True)
class DurableState:
    """A durable, and all that says how far it is. `mark`: below it everything is claimed to be terminal."""

    durable: Durable
    snapshot: Snapshot | None
    position: int | None  # of the consumer group that shows it

    @property
    def low(self) -> int:
        return self.snapshot.low if self.snapshot else self.durable.start

    @property
    def mark(self) -> int:
        return max(self.low, self.position if self.position is not None else 0)


@dataclass(frozen=True, slots=True)
class Catalog:
    """`first_kept` is by store; `journal_first` above 0 means that the journal's beginning is gone, `outcomes_first`
    that the outcomes' is."""

    nodes: dict[int, Node]
    durables: list[DurableState]
    cells: list[Cell]
    digests: frozenset[str]
    node_classes: NodeClasses
    first_kept: dict[int, int]
    journal_first: int
    outcomes_first: int
    unreadable: list[str] = field(default_factory=list)


def read_catalog(landed: Landed, realm: Realm) -> Catalog:
    unreadable: list[str] = []
    metadata = _metadata(landed)
    topics = {one.topic for one in landed.extent.ranges}
    nodes = {store: node for store, node in metadata.stores.items() if node.topic in topics}
    snapshots = dict(_snapshots(landed, unreadable))
    positions = {(one.group, one.topic, one.partition): one.position for one in landed.extent.positions}
    durables = [
        DurableState(
            durable,
            snapshots.get((durable.store, durable.name)),
            positions.get((durable.group, node.topic, node.partition)),
        )
        for node, durable in metadata.each_durable()
        if node.store in nodes
    ]
    tables = [record for _, record in _newest(landed, "tables", unreadable)]
    return Catalog(
        nodes,
        sorted(durables, key=lambda state: (state.durable.node, state.durable.name, state.durable.store)),
        [cell for table in tables for cell in _cells(table)],
        frozenset(table["digest"] for table in tables),
        NodeClasses(tables),
        {store: landed.extent.first_kept(node.topic, node.partition) for store, node in nodes.items()},
        landed.extent.first_kept(f"{realm.prefix}.journal"),
        landed.extent.first_kept(f"{realm.prefix}.outcomes"),
        unreadable,
    )


def _rows(landed: Landed, kind: Kind) -> list[dict[str, Any]]:
    files = landed.files(kind)
    if files is None:
        return []
    rows: list[dict[str, Any]] = pq.read_table(files, columns=["offset", "timestamp", "key", "value"]).to_pylist()
    return sorted(rows, key=lambda row: row["offset"])


def _metadata(landed: Landed) -> Metadata:
    rows = _rows(landed, "realm")
    metadata = Metadata()
    if rows:
        offsets, times, keys, values = ([row[name] for row in rows] for name in ("offset", "timestamp", "key", "value"))
        metadata.fold([Records(offsets, times, keys, values, rows[-1]["offset"] + 1)])
    return metadata


def _newest(landed: Landed, kind: Kind, unreadable: list[str]) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The newest record of every key of a compacted topic, tombstones applied, in the order of their offsets."""
    rows = {row["key"]: row for row in _rows(landed, kind)}
    for key, row in sorted(rows.items(), key=lambda pair: int(pair[1]["offset"])):
        if row["value"] is None:
            continue
        try:
            yield key, orjson.loads(row["value"])
        except orjson.JSONDecodeError as error:
            unreadable.append(f"{kind} record at offset {row['offset']}: {error}")


def _snapshots(landed: Landed, unreadable: list[str]) -> Iterator[tuple[tuple[int, str], Snapshot]]:
    try:
        for key, parts, _ in newest_sets(_newest(landed, "state", unreadable)):
            if parts:
                acked = tuple((first, last) for part in parts for first, last in part["acked"])
                yield key, Snapshot(parts[0]["low"], acked, parts[0]["journal"])
    except UnknownVersion as error:
        unreadable.append(f"state: {error}")


def _cells(table: dict[str, Any]) -> Iterator[Cell]:
    for name, expanded in table["tables"].items():
        rules = expanded["rules"]
        for cell, rule in enumerate(expanded["cells"]):
            then = rules.get(rule, {}) if rule is not None else {}
            yield (
                table["digest"],
                name,
                cell,
                rule,
                then.get("native"),
                then.get("in_flight" if name == "attached" else "outcome"),
                then.get("condition"),
                then.get("class"),
            )
