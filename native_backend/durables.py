"""Durables: named subscriptions that outlive their links, as realm metadata knows them.

The acknowledgement state of a queue is a durable too, named `queue`. Records: docs/records.md "Durable".
May import: the standard library, orjson, `native_backend.nodes`, `native_backend.terms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from native_backend.nodes import Node
from native_backend.terms import EXCLUSIVE, Terms, decode_terms, encode_terms

QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class Durable:
    """`start` is the EID it began at; `group` is the consumer group that shows it. What the journal says below offset
    `journal`, and snapshots as of there, speak of an earlier durable of that name."""

    node: str
    name: str
    store: int
    group: str
    start: int
    journal: int = 0
    terms: Terms = EXCLUSIVE


def queue_durable(prefix: str, node: Node, start: int, journal: int = 0) -> Durable:
    return Durable(node.name, QUEUE, node.store, f"{prefix}.queue.{node.name}", start, journal)


def channel_durable(prefix: str, node: Node, name: str, start: int, journal: int = 0) -> Durable:
    return Durable(node.name, name, node.store, f"{prefix}.durable.{node.name}.{name}", start, journal)


def durable_key(node: str, name: str) -> bytes:
    return orjson.dumps(["durable", node, name])


def encode_durable(durable: Durable, created_us: int) -> bytes:
    """In version 2 where that can say it: an earlier release can read that."""
    terms = encode_terms(durable.terms)
    return orjson.dumps(
        {
            "v": 3 if terms else 2,
            "node": durable.node,
            "name": durable.name,
            "store": durable.store,
            "group": durable.group,
            "start": durable.start,
            "journal": durable.journal,
            "created_us": created_us,
            **terms,
        }
    )


def decode_durable(record: dict[str, Any]) -> Durable:
    """Versions 1 (of no earlier durable), 2 (on the terms that all had) and 3."""
    names = record["node"], record["name"], record["store"], record["group"]
    return Durable(*names, record["start"], record.get("journal", 0), decode_terms(record))
