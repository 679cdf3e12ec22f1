"""The nodes that the records of `PREFIX.realm` speak of: those that there are, and which of those that there were lived
only as long as their maker.

The fold is the realm's own (the first record of a node wins until its tombstone). A record that cannot be read is
named and left out. Source: docs/records.md "Node".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import orjson

from native_backend.log.port import LogError, Records
from native_backend.nodes.metadata import Metadata
from native_backend.nodes.node import Node

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
        for offset, at_ms, key, value in records:
            self.records += 1
            try:
                self.metadata.fold([Records([offset], [at_ms], [key], [value], offset + 1)])
                self._mark(key, value)
            except (orjson.JSONDecodeError, LogError, LookupError, TypeError, ValueError) as error:
                self.unreadable.append(f"realm record at offset {offset}: {error}")

    @property
    def nodes(self) -> list[Node]:
        """Those that there are."""
        return list(self.metadata.nodes.values())

    def is_temporary(self, store: int, name: str) -> bool:
        """Whether the node of that store was temporary and ended with its connection."""
        return store in self._temporary or name.startswith(TEMPORARY)

    def _mark(self, key: bytes | None, value: bytes | None) -> None:
        if key is None or value is None:
            return
        record = orjson.loads(value)
        if orjson.loads(key)[0] == "durable":
            self.durables.add((record["node"], record["name"]))
        elif orjson.loads(key)[0] == "node" and record.get("changed_us") != record["created_us"]:
            self.changed.add(record["name"])
        if record.get("temporary"):
            self._temporary.add(record["store"])
