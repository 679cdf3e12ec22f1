"""Durables: named subscriptions that outlive their links, as realm metadata knows them.

The acknowledgement state of a queue is a durable too, named `queue`. Records: docs/records.md "Durable".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from native_backend.nodes.durable_terms import EXCLUSIVE, DurableTerms, decode_terms, encode_terms
from native_backend.nodes.node import Node

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
    terms: DurableTerms = EXCLUSIVE
    starts: tuple[int, ...] = ()
    """Where it began in the partitions after the first one; in one that was added later, at 0."""
    owner: str = ""
    """The user who made it; empty: not known, or a peer without a login. See `native_backend.access.durable_owner`."""

    def of(self, node: Node) -> Durable:
        """The same durable, as that store of its node knows it."""
        if node.store == self.store:
            return self
        start = self.starts[node.partition - 1] if node.partition <= len(self.starts) else 0
        return replace(self, store=node.store, start=start)


@dataclass(frozen=True, slots=True)
class DurableName:
    """What a subscriber calls its durable. `earlier` is what releases before names were escaped called it: a name that
    other subscribers could have as well. A durable of that name belongs to the first of them that attaches to it, whom
    its terms keep. `shared`: which kind it has to be, where that tells whose it is. `stays`: a new one is called so,
    too, unless another subscriber's is. ADR 0074, ADR 0099."""

    name: str
    earlier: str = ""
    subscriber: tuple[str | None, str] | None = None
    shared: bool | None = None
    stays: bool = False
    shared_only: bool = False  # what is not shared is not meant

    def means(self, durable: Durable) -> bool:
        if self.shared_only and not durable.terms.shared:
            return False
        if self.earlier and durable.name == self.name:
            return True  # no release has given that name to another
        its_kind = self.shared in (None, durable.terms.shared)
        its_own = durable.terms.subscriber in (None, self.subscriber)
        return durable.name == (self.earlier or self.name) and its_kind and its_own


def queue_durable(prefix: str, node: Node, starts: Sequence[int], journal: int = 0) -> Durable:
    """`starts`: where each store of the node begins."""
    first, *others = starts
    return Durable(
        node.name, QUEUE, node.part(0).store, f"{prefix}.queue.{node.name}", first, journal, starts=tuple(others)
    )


def channel_durable(prefix: str, node: Node, name: str, starts: Sequence[int], journal: int = 0) -> Durable:
    """`starts`: where each store of the node ends."""
    group, (first, *others) = f"{prefix}.durable.{node.name}.{name}", starts
    return Durable(node.name, name, node.part(0).store, group, first, journal, starts=tuple(others))


def durable_key(node: str, name: str) -> bytes:
    return orjson.dumps(["durable", node, name])


def encode_durable(durable: Durable, created_us: int) -> bytes:
    """In version 2 where that can say it: an earlier release can read that."""
    more = encode_terms(durable.terms) | ({"starts": durable.starts} if durable.starts else {})
    owner = {"owner": durable.owner} if durable.owner else {}  # in either version: who does not know it passes it over
    return orjson.dumps(
        {
            "v": 3 if more else 2,
            "node": durable.node,
            "name": durable.name,
            "store": durable.store,
            "group": durable.group,
            "start": durable.start,
            "journal": durable.journal,
            "created_us": created_us,
            **more,
            **owner,
        }
    )


def decode_durable(record: dict[str, Any]) -> Durable:
    """Versions 1 (of no earlier durable), 2 (on the terms that all had, of one store) and 3."""
    names, starts = (record["node"], record["name"], record["store"], record["group"]), record.get("starts", ())
    more = decode_terms(record), tuple(starts), record.get("owner", "")
    return Durable(*names, record["start"], record.get("journal", 0), *more)
