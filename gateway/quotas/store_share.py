"""How many stores are read for consumers: on Kafka each has a client of its own, with some threads and connections to
brokers, however many consumers it serves.

A node with several partitions has so many stores. They count in the share of the holder (`gateway.quotas.shares`)
whose link was the first one of those that are there; when its last link to the node ends, in that of the next. A link
to a node that is read already takes none, so it is never refused for this. Source: ADR 0128.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.quotas.shares import SharedLimit
from native_backend.nodes.node import Node


@dataclass(slots=True)
class _Read:
    """`links`: by holder, the one that it counts for first."""

    stores: int
    links: dict[str, int] = field(default_factory=dict)


class StoreShare:
    """One gateway's."""

    def __init__(self, limit: SharedLimit) -> None:
        self._limit = limit
        self._read: dict[int, _Read] = {}  # by the node's first store

    def refusal(self, node: Node, holder: str) -> str:
        """Why a consumer of that node would have one store too many read, and what to do; empty: it would not."""
        return "" if node.store in self._read else self._limit.refusal(holder, node.partitions)

    def join(self, node: Node, holder: str) -> None:
        """One more consumer of its."""
        read = self._read.get(node.store)
        if read is None:
            read = self._read[node.store] = _Read(node.partitions)
            self._limit.take(holder, read.stores)
        read.links[holder] = read.links.get(holder, 0) + 1

    def leave(self, node: Node, holder: str) -> None:
        """One less."""
        read = self._read[node.store]
        payer = next(iter(read.links))
        read.links[holder] -= 1
        if read.links[holder]:
            return
        del read.links[holder]
        if holder == payer:
            self._limit.take(holder, -read.stores)
            if read.links:
                self._limit.take(next(iter(read.links)), read.stores)
        if not read.links:
            del self._read[node.store]
