"""Nodes: queues and channels, the topics that keep them, and the ids of their stores.

A node's true name may hold any character; the topic's name is legal everywhere. Records: docs/records.md "Node".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import orjson

from native_backend.nodes.properties import DEFAULT, OF_SEVERAL, Properties, decode_properties, encode_properties
from native_backend.nodes.words import NodeKind

_PLAIN = re.compile(r"[a-zA-Z0-9._-]{1,150}")
_NOT_PLAIN = re.compile(r"[^a-zA-Z0-9._-]")
KINDS: tuple[NodeKind, ...] = ("queue", "channel")
DEFAULT_PRIORITY = 4  # of an event that names none


class NodeError(Exception):
    """What was asked contradicts the nodes that exist; the text says how and what to do."""


@dataclass(frozen=True, slots=True)
class Node:
    """A queue or a channel. `topic_id` has 16 octets; a recreated node has another one, hence another store.

    Two of one store are the same node at different times: properties change. `Metadata.nodes` has the current one.
    """

    name: str
    kind: NodeKind
    topic: str
    topic_id: bytes
    store: int
    properties: Properties = DEFAULT
    adopted: bool = False
    """Its topic was there before it, and is not deleted with it."""
    created_us: int = field(default=0, compare=False)
    temporary: bool = False
    """It ends with the peer that created it, and with the process at the latest."""
    partition: int = 0
    """Which of its stores `store` is. A node as a whole goes by its first one."""

    @property
    def partitions(self) -> int:
        return self.properties.stores

    def part(self, partition: int) -> Node:
        """The same node, as the one of its stores that lies in that partition."""
        if partition == self.partition:
            return self
        return replace(self, partition=partition, store=store_id(self.topic_id, partition))

    @property
    def parts(self) -> list[Node]:
        stores = range(self.partitions)
        return [self if partition == self.partition else self.part(partition) for partition in stores]

    def twin(self, node: Node) -> Node:
        """The part that gets what is copied from a store of `node`: the same one where both have as many, so that an
        event keeps its level."""
        if self.partitions == node.partitions or not self.properties.priority_levels:
            return self.part(node.partition % self.partitions)
        return self.part(level(DEFAULT_PRIORITY, self.partitions))


def plain_topic(prefix: str, name: str) -> str | None:
    """The topic that carries the node's own name, None where that is not legal."""
    return f"{prefix}.node.{name}" if _PLAIN.fullmatch(name) else None


def named_topic(prefix: str, name: str) -> str:
    """The topic for every other name: a readable slug, made unique by a digest."""
    digest = blake2b(name.encode(), digest_size=10).hexdigest()
    return f"{prefix}.named.{_NOT_PLAIN.sub('-', name)[:40]}.{digest}"


def store_id(topic_id: bytes, partition: int = 0) -> int:
    """An integer of at most 12 digits, from 1."""
    digest = blake2b(topic_id + partition.to_bytes(4, "big"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (10**12 - 1) + 1


def level(priority: int, levels: int) -> int:
    """Which of so many levels a priority of 0 to 255 falls into; 0 is the lowest (AMQP 1.0, 3.2.1)."""
    if levels >= 10:
        return min(priority, levels - 1)
    lowest = 5 - (levels + 1) // 2
    return min(max(priority, lowest), 4 + levels // 2) - lowest


def node_key(name: str) -> bytes:
    return orjson.dumps(["node", name])


def encode_node(node: Node, changed_us: int, after: int | None = None) -> bytes:
    """In version 2 as long as there is but one store: an earlier release can read that. `after`: the writer has read
    the metadata up to this offset, and no other node of that name lived there."""
    properties = encode_properties(node.properties)
    spread = node.partitions > 1 or node.properties.priority_levels
    if not spread:
        properties = {name: value for name, value in properties.items() if name not in OF_SEVERAL}
    return orjson.dumps(
        {
            "v": 3 if spread else 2,
            "name": node.name,
            "kind": node.kind,
            "topic": node.topic,
            "topic_id": node.topic_id.hex(),
            "store": node.part(0).store,
            "created_us": node.created_us,
            "changed_us": changed_us,
            "adopted": int(node.adopted),
            **({"temporary": 1} if node.temporary else {}),
            **({"after": after} if after is not None else {}),
            "properties": properties,
        }
    )


def decode_node(record: dict[str, Any]) -> Node:
    """Versions 1 (nothing but defaults), 2 (one store) and 3."""
    return Node(
        record["name"],
        record["kind"],
        record["topic"],
        bytes.fromhex(record["topic_id"]),
        record["store"],
        decode_properties(record.get("properties", {})),
        bool(record.get("adopted", 0)),
        record["created_us"],
        bool(record.get("temporary", 0)),
    )
