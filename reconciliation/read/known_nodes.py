"""The nodes that the records of `PREFIX.realm` speak of: those that there are, and which of those that there were lived
only as long as their maker.

A record that cannot be read is named and left out. Source: docs/records.md "Node".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from reconciliation.model.fields import DAMAGED, why
from reconciliation.model.realm_nodes import Metadata, Node

TEMPORARY = "temporary:"
"""A generated name, of a dynamic node, begins so, and no other name (docs/cli.md). Compaction may have taken the record
that marks the node as temporary."""
MetadataRecord = tuple[int, int, "bytes | None", "bytes | None"]
"""Offset, timestamp in milliseconds, key, value."""


@dataclass(slots=True)
class KnownNodes:
    """What the metadata says, as far as it was read."""

    metadata: Metadata = field(default_factory=Metadata)
    records: int = 0
    unreadable: list[str] = field(default_factory=list)
    durables: set[tuple[str, str]] = field(default_factory=set)
    """Node and name of every durable that a record has begun, whether it is there still or not."""
    changed: set[str] = field(default_factory=set)
    """Nodes whose properties may have been others before: the metadata keeps the latest only."""
    _temporary: set[int] = field(default_factory=set)

    def fold(self, records: Iterable[MetadataRecord]) -> None:
        """Take records in, in the order of their offsets."""
        for offset, _, key, value in records:
            self.records += 1
            try:
                record = self.metadata.take(offset, key, value)
                if record is not None and key is not None:
                    self._mark(orjson.loads(key)[0], record)
            except DAMAGED as error:
                self.unreadable.append(f"realm record at offset {offset}: {why(error)}")

    @property
    def nodes(self) -> list[Node]:
        """Those that there are."""
        return list(self.metadata.nodes.values())

    def is_temporary(self, store: int, name: str) -> bool:
        """Whether the node of that store was temporary and ended with its connection."""
        return store in self._temporary or name.startswith(TEMPORARY)

    def _mark(self, what: str, record: dict[str, Any]) -> None:
        if what == "durable":
            self.durables.add((record["node"], record["name"]))
        elif what == "node" and record.get("changed_us") != record["created_us"]:
            self.changed.add(record["name"])
        if record.get("temporary"):
            self._temporary.add(record["store"])
