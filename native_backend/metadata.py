"""Realm metadata: the compacted topic `<prefix>.realm`, folded into nodes and durables.

Of two creators of one node the first record wins, until a tombstone. A durable's record counts while its store is the
node's. The fold belongs to one thread; `read_tail` may run on another.
May import: the standard library, orjson, `native_backend` below it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson

from native_backend.durables import Durable, decode_durable
from native_backend.log import Failure, Log, LogError, Records
from native_backend.nodes import Node, decode_node

_BATCH = 1000
VERSION = 1


def realm_topic(prefix: str) -> str:
    return f"{prefix}.realm"


def read_tail(log: Log, topic: str, start: int) -> list[Records]:
    """Everything from `start` to the end as known when this is called. Blocks; raises LogError."""
    parts = []
    first, end = log.bounds(topic, 0)
    start = max(start, first)  # below it compaction or a trim has been: the newest of every key lies above
    while start < end:
        records = log.read_range(topic, 0, start, _BATCH)
        parts.append(records)
        if records.next <= start:
            break
        start = records.next
    return parts


@dataclass(slots=True)
class Metadata:
    """What the records up to `position` say."""

    position: int = 0
    nodes: dict[str, Node] = field(default_factory=dict)
    durables: dict[tuple[str, str], Durable] = field(default_factory=dict)
    stores: dict[int, Node] = field(default_factory=dict)

    def fold(self, parts: list[Records]) -> list[Node]:
        """Take records in; those below `position` are known already. Returns the nodes that are no more."""
        gone: list[Node] = []
        for records in parts:
            for offset, key, value in zip(records.offsets, records.keys, records.values, strict=True):
                if offset >= self.position and key is not None:
                    gone += self._record(key, value)
            self.position = max(self.position, records.next)
        return gone

    def durable(self, node: Node, name: str) -> Durable | None:
        """The durable of that name, unless it belonged to an earlier node of the same name."""
        durable = self.durables.get((node.name, name))
        return durable if durable is not None and durable.store == node.store else None

    def alive(self, node: Node) -> bool:
        return node.store in self.stores

    def _record(self, key: bytes, value: bytes | None) -> list[Node]:
        what, *names = orjson.loads(key)
        if value is None:
            return self._tombstone(what, names)
        record = orjson.loads(value)
        if record["v"] != VERSION:
            detail = f"realm metadata {names} has version {record['v']}; this release knows {VERSION}"
            raise LogError(Failure("unexpected", detail))
        if what == "node" and names[0] not in self.nodes:
            node = decode_node(record)
            self.nodes[node.name] = self.stores[node.store] = node
        elif what == "durable":
            durable = decode_durable(record)
            known = self.durables.get((durable.node, durable.name))
            if known is None or known.store != durable.store:
                self.durables[durable.node, durable.name] = durable
        return []

    def _tombstone(self, what: str, names: list[str]) -> list[Node]:
        if what == "durable":
            self.durables.pop((names[0], names[1]), None)
            return []
        node = self.nodes.pop(names[0], None) if what == "node" else None
        if node is None:
            return []
        del self.stores[node.store]
        return [node]
