"""Nodes: queues and channels, the topics that keep them, and the ids of their stores.

A node's true name may hold any character; the topic's name is legal everywhere. Records: docs/records.md "Node".
May import: the standard library, orjson, `native_backend.answers`, `native_backend.properties`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from native_backend.answers import NodeKind
from native_backend.properties import DEFAULT, Properties, decode_properties, encode_properties

_PLAIN = re.compile(r"[a-zA-Z0-9._-]{1,150}")
_NOT_PLAIN = re.compile(r"[^a-zA-Z0-9._-]")
KINDS: tuple[NodeKind, ...] = ("queue", "channel")


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


def node_key(name: str) -> bytes:
    return orjson.dumps(["node", name])


def encode_node(node: Node, changed_us: int) -> bytes:
    return orjson.dumps(
        {
            "v": 2,
            "name": node.name,
            "kind": node.kind,
            "topic": node.topic,
            "topic_id": node.topic_id.hex(),
            "store": node.store,
            "created_us": node.created_us,
            "changed_us": changed_us,
            "adopted": int(node.adopted),
            "properties": encode_properties(node.properties),
        }
    )


def decode_node(record: dict[str, Any]) -> Node:
    """Versions 1 (nothing but defaults) and 2."""
    return Node(
        record["name"],
        record["kind"],
        record["topic"],
        bytes.fromhex(record["topic_id"]),
        record["store"],
        decode_properties(record.get("properties", {})),
        bool(record.get("adopted", 0)),
        record["created_us"],
    )
