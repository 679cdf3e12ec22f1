"""The realm's nodes and durables, as the records of `PREFIX.realm` tell them one after another.

Of two creators of a node the first record wins until its tombstone; a later record of the same store changes the
properties. Compaction may have taken the tombstone of a node that was made anew: the new one's `after` says that its
writer looked further than where the old one stands. A durable's record counts while its store is the node's.
Source: docs/records.md "Node", "Durable". Errors: those of `model.fields` for what is no such record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import orjson

from reconciliation.model.fields import fields, number, text

QUEUE = "queue"
"""The durable that is a queue's own acknowledgement state."""
VERSIONS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Properties:
    """Those that something is judged by; 0 means none."""

    capacity_events: int = 0
    capacity_bytes: int = 0
    honour_capacity: bool = False
    ttl_ms: int = 0
    stores: int = 1
    has_levels: bool = False
    """Its stores are levels of priority, not partitions."""
    dead_letter: str = ""
    """The node that gets what is given up."""

    @classmethod
    def of(cls, record: dict[str, Any]) -> Properties:
        return cls(
            number(record.get("capacity_events", 0)),
            number(record.get("capacity_bytes", 0)),
            bool(record.get("honour_capacity", False)),
            number(record.get("ttl_ms", 0)),
            max(number(record.get("partitions", 1)), number(record.get("priority_levels", 0))),
            record.get("priority_levels", 0) > 1,
            text(record.get("dead_letter", "")),
        )


@dataclass(frozen=True, slots=True)
class Node:
    """One store of a queue or a channel, and the topic that keeps it."""

    name: str
    kind: str
    topic: str
    topic_id: bytes
    store: int
    properties: Properties = Properties()
    adopted: bool = False
    """Its topic was there before it."""
    created_us: int = 0
    partition: int = 0

    @classmethod
    def of(cls, record: dict[str, Any]) -> Node:
        return cls(
            text(record["name"]),
            text(record["kind"]),
            text(record["topic"]),
            bytes.fromhex(record["topic_id"]),
            number(record["store"]),
            Properties.of(fields(record.get("properties", {}))),
            bool(record.get("adopted", 0)),
            number(record["created_us"]),
        )

    @property
    def part(self) -> str:
        """Which of its node's stores this is, in words; empty where there is one only."""
        if self.properties.stores < 2:
            return ""
        return f"{'level' if self.properties.has_levels else 'partition'} {self.partition}"

    @property
    def parts(self) -> list[Node]:
        """Its stores. That of the first partition is in its record."""
        others = range(1, self.properties.stores)
        return [self, *(replace(self, partition=at, store=store_id(self.topic_id, at)) for at in others)]


@dataclass(frozen=True, slots=True)
class Durable:
    """`start`: the EID that it began at. What the journal says below offset `journal` speaks of an earlier one of that
    name. `selector`: what it is for; empty: everything."""

    node: str
    name: str
    store: int
    group: str
    start: int
    journal: int = 0
    selector: str = ""
    starts: tuple[int, ...] = ()
    """Where it began in the partitions after the first one; 0 in one that was added later."""

    @classmethod
    def of(cls, record: dict[str, Any]) -> Durable:
        selector = text(fields(record.get("terms", {})).get("selector", ""))
        names = text(record["node"]), text(record["name"]), number(record["store"]), text(record["group"])
        starts = tuple(number(start) for start in record.get("starts", ()))
        return cls(*names, number(record["start"]), number(record.get("journal", 0)), selector, starts)

    def at(self, node: Node) -> Durable:
        """The same durable, as that store of its node knows it."""
        if not node.partition:
            return self
        start = self.starts[node.partition - 1] if node.partition <= len(self.starts) else 0
        return replace(self, store=node.store, start=start)


@dataclass(slots=True)
class Metadata:
    """What the records up to `position` say. `stores`: by id, of all nodes that there are."""

    position: int = 0
    nodes: dict[str, Node] = field(default_factory=dict)
    stores: dict[int, Node] = field(default_factory=dict)
    durables: dict[tuple[str, str], Durable] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)  # where a living node was first read

    def take(self, offset: int, key: bytes | None, value: bytes | None) -> dict[str, Any] | None:
        """The next record; returns it, unless it is known already, a tombstone, or has no key."""
        if offset < self.position or key is None:
            return None
        self.position = offset + 1
        what, *names = orjson.loads(key)
        if value is None:
            self._end(what, names)
            return None
        record = fields(orjson.loads(value))
        if record["v"] not in VERSIONS:
            raise ValueError(f"version {record['v']} is of a later release")
        if what == "node":
            self._begin(Node.of(record), offset, number(record.get("after", 0)))
        elif what == "durable":
            self._remember(Durable.of(record))
        return record

    def each_durable(self) -> Iterator[tuple[Node, Durable]]:
        """Every durable of every store that there is."""
        for durable in self.durables.values():
            node = self.stores.get(durable.store)
            for part in node.parts if node is not None else ():
                yield part, durable.at(part)

    def _begin(self, node: Node, offset: int, after: int) -> None:
        known = self.nodes.get(node.name)
        if known is not None and known.store != node.store:
            if after <= self._seen[node.name]:
                return  # the first creator has won
            self._end("node", [node.name])
            known = None
        if known is None:
            self._seen[node.name] = offset
        else:
            node = replace(known, properties=node.properties)
        self.nodes[node.name] = node
        self.stores.update((part.store, part) for part in node.parts)

    def _remember(self, durable: Durable) -> None:
        """Of what an earlier record of the same store has said only the terms change; and where the journal lost its
        end, where that begins to speak of it."""
        known = self.durables.get((durable.node, durable.name))
        if known is not None and known.store == durable.store:
            durable = replace(known, selector=durable.selector, journal=min(known.journal, durable.journal))
        self.durables[durable.node, durable.name] = durable

    def _end(self, what: str, names: list[str]) -> None:
        if what == "durable":
            self.durables.pop((names[0], names[1]), None)
        elif what == "node" and (node := self.nodes.pop(names[0], None)) is not None:
            del self._seen[node.name]
            for part in node.parts:
                self.stores.pop(part.store, None)


def store_id(topic_id: bytes, partition: int) -> int:
    """Of one partition of a topic."""
    digest = blake2b(topic_id + partition.to_bytes(4, "big"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (10**12 - 1) + 1
