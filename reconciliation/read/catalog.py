"""What the realm is made of: nodes, durables with their marks, expanded tables. Small, so it is read on the driver.

Metadata is folded by `known_nodes`; the rest are compacted topics, of which the newest record of a key counts. A node
whose topic was not read stays in the catalog: `absent` says why (`reconciliation.read.standing`). Source:
docs/records.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as of_class
from typing import Any

import orjson
import pyarrow.parquet as pq

from reconciliation.model.fields import DAMAGED, field, fields, number, text, why
from reconciliation.model.ranges import GONE, TORN, Extent, Kind
from reconciliation.model.realm_nodes import Durable, Node
from reconciliation.model.settings import Realm
from reconciliation.read.group_positions import Projection, projection_of
from reconciliation.read.known_nodes import KnownNodes
from reconciliation.read.landing import Landed
from reconciliation.read.node_classes import NodeClasses
from reconciliation.read.processes import has_ended
from reconciliation.read.snapshots import Snapshot, newest
from reconciliation.read.stored_tables import Cells, by_digest, check_tables, digest_findings

NEVER = 1 << 62
Cell = tuple[str, str, int, str | None, str | None, str | None, str | None, str | None, int | None, int | None]
"""Digest, table, cell, expected rule, and what it says: operation, outcome, condition, class, whether that is a failed
attempt; and whether the cell is of a delivery in a transaction."""


@dataclass(frozen=True, slots=True)
class DurableState:
    """A durable, and all that says how far it is. `mark`: below it everything is claimed to be terminal."""

    durable: Durable
    snapshot: Snapshot | None
    projection: Projection | None  # of the consumer group that shows it

    @property
    def low(self) -> int:
        return self.snapshot.low if self.snapshot else self.durable.start

    @property
    def position(self) -> int | None:
        """Below it the group claims that all has ended."""
        return None if self.projection is None else self.projection.mark

    @property
    def projected(self) -> int:
        """The journal offset as of which that is; of a foreign commit nothing is known."""
        mark = self.projection
        return NEVER if mark is None or not mark.intact or mark.journal is None else mark.journal


@dataclass(frozen=True, slots=True)
class Catalog:
    """`nodes`: the stores that were read; `absent`: those of existing nodes that were not, and why. `first_kept` is by
    store; `snapshots` is by store and durable, whether there is such a durable or not; `hidden`: stores
    of which some events could not be read; `journal_first` above 0 means that the journal's beginning is gone,
    `outcomes_first` that the outcomes' is; `journal_torn`: some of the journal cannot be decoded; `ended`: runs whose
    process has ended, as the lease and this machine tell."""

    nodes: dict[int, Node]
    absent: dict[int, tuple[Node, str]]
    known: KnownNodes
    durables: list[DurableState]
    cells: list[Cell]
    digests: frozenset[str]
    node_classes: NodeClasses
    facts: Cells
    changed_tables: list[dict[str, Any]]
    first_kept: dict[int, int]
    snapshots: dict[tuple[int, str], Snapshot]
    hidden: frozenset[int]
    journal_first: int
    journal_torn: bool
    outcomes_first: int
    ended: frozenset[str]
    unreadable: list[str] = of_class(default_factory=list)

    @property
    def journal_whole(self) -> bool:
        """What it does not say has not been."""
        return not self.journal_first and not self.journal_torn

    @property
    def parts(self) -> dict[int, str]:
        """By store, which partition or level of its node it is; only of nodes that have several."""
        nodes = [*self.nodes.values(), *(node for node, _ in self.absent.values())]
        return {node.store: node.part for node in nodes if node.part}

    @property
    def has_adopted(self) -> bool:
        """Some nodes have topics that were there before."""
        return any(node.adopted for node in self.nodes.values())


def read_catalog(landed: Landed, realm: Realm) -> Catalog:
    known = KnownNodes()
    known.fold((row["offset"], row["timestamp"], row["key"], row["value"]) for row in _rows(landed, "realm"))
    unreadable = list(known.unreadable)
    absences = {store: absence(landed.extent, node) for store, node in known.metadata.stores.items()}
    nodes = {store: node for store, node in known.metadata.stores.items() if not absences[store]}
    snapshots = newest(_newest(landed, "state", unreadable), unreadable)
    positions = {
        (position.group, position.topic, position.partition): projection_of(position.position, position.metadata)
        for position in landed.extent.positions
    }
    durables = [
        DurableState(
            durable,
            _of_its_own(durable, snapshots.get((durable.store, durable.name))),
            positions.get((durable.group, node.topic, node.partition)),
        )
        for node, durable in known.metadata.each_durable()
        if node.store in nodes
    ]
    stored = stored_tables(landed, unreadable)
    tables = by_digest(stored)
    facts = Cells(tables)
    firsts = {(span.topic, span.partition): span.first for span in landed.extent.ranges}
    return Catalog(
        nodes,
        {store: (node, absences[store]) for store, node in known.metadata.stores.items() if absences[store]},
        known,
        sorted(durables, key=lambda state: (state.durable.node, state.durable.name, state.durable.store)),
        [cell for table in tables for cell in _cells(table, facts)],
        frozenset(table["digest"] for table in tables if "of" not in table),
        NodeClasses(tables),
        facts,
        digest_findings(stored),
        {store: firsts[node.topic, node.partition] for store, node in nodes.items()},
        snapshots,
        frozenset(store for store, node in nodes.items() if landed.extent.hidden(node.topic, node.partition)),
        firsts.get((f"{realm.prefix}.journal", 0), 0),
        any(gap.topic == f"{realm.prefix}.journal" and gap.why == TORN for gap in landed.extent.unread),
        firsts.get((f"{realm.prefix}.outcomes", 0), 0),
        frozenset(_ended(landed, unreadable)),
        unreadable,
    )


def _of_its_own(durable: Durable, snapshot: Snapshot | None) -> Snapshot | None:
    """Unless it is of an earlier durable of that name, as recovery tells it."""
    return snapshot if snapshot is None or snapshot.journal >= durable.journal else None


def stored_tables(landed: Landed, unreadable: list[str]) -> list[dict[str, Any]]:
    """The expanded documents, one for each digest under which some are stored."""
    documents = []
    for key, record in _newest(landed, "tables", unreadable):
        try:
            check_tables(record)
            documents.append(record)
        except DAMAGED as error:
            unreadable.append(f"tables record of {key.decode(errors='replace')}: {why(error)}")
    return documents


def absence(extent: Extent, node: Node) -> str:
    """Why a store was not read; empty: it was, as far as it can be. That the topic is another one comes before what
    keeps us from reading it."""
    topic_id, unread = extent.topics.get(node.topic), extent.unread_of(node.topic, node.partition)
    if topic_id and topic_id != node.topic_id.hex():
        return "the topic was deleted, and another one made of its name: restore the first one from a backup"
    if topic_id is not None and extent.range_of(node.topic, node.partition) is not None:
        return ""
    if unread is not None:
        return unread.why
    return GONE if topic_id is None else f"the topic has no partition {node.partition}: restore it from a backup"


def _ended(landed: Landed, unreadable: list[str]) -> Iterator[str]:
    """Runs that have let go of the lease, or whose process is gone from this machine."""
    last: dict[str, dict[str, Any]] = {}
    for row in _rows(landed, "lease"):
        try:
            record = orjson.loads(row["value"])
            what, run = text(field(record, "what")), text(field(record, "run"))
            fields(record.get("process", {}))
        except DAMAGED as error:
            unreadable.append(f"lease record at offset {row['offset']}: {why(error)}")
            continue
        if what != "ask":
            last[run] = record
    for run, record in last.items():
        if record["what"] == "release" or has_ended(record.get("process", {})):
            yield run


def _rows(landed: Landed, kind: Kind) -> list[dict[str, Any]]:
    files = landed.files(kind)
    if files is None:
        return []
    columns = ["offset", "timestamp", "key", "value"]
    rows: list[dict[str, Any]] = pq.read_table(files.fetched(), columns=columns).to_pylist()
    return sorted(rows, key=lambda row: row["offset"])


def _newest(landed: Landed, kind: Kind, unreadable: list[str]) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The newest record of every key of a compacted topic, tombstones applied, in the order of their offsets."""
    rows = {row["key"]: row for row in _rows(landed, kind)}
    for key, row in sorted(rows.items(), key=lambda pair: int(pair[1]["offset"])):
        if row["value"] is None:
            continue
        try:
            yield key, fields(orjson.loads(row["value"]))
        except DAMAGED as error:
            unreadable.append(f"{kind} record at offset {row['offset']}: {why(error)}")


def _cells(table: dict[str, Any], facts: Cells) -> Iterator[Cell]:
    for name, expanded in table["tables"].items():
        rules = expanded["rules"]
        for cell, rule in enumerate(expanded["cells"]):
            then = rules.get(rule, {}) if rule is not None else {}
            failed = then.get("failed")
            transacted = facts.fact(table["digest"], name, cell, "transactional")
            yield (
                table["digest"],
                name,
                cell,
                rule,
                then.get("native"),
                then.get("in_flight" if name == "attached" else "outcome"),
                then.get("condition"),
                then.get("class"),
                None if failed is None else int(failed),
                None if transacted is None else int(transacted != "no"),
            )


def commands(landed: Landed) -> dict[str, dict[str, Any]]:
    """What operators commanded, by its id, as the realm keeps it. Records that cannot be read are left out: nothing
    but what the journal lays to them depends on them."""
    records = {}
    for row in _rows(landed, "commands"):
        try:
            record = orjson.loads(row["value"] or b"null")
            number(record.get("eid", 0))
            records[text(record["id"])] = {**record, "what": text(record["what"])}
        except DAMAGED:
            continue
    return records
