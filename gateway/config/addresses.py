"""Addresses: which node an address names, and of which kind its prefix says that is.

`queue://orders` names the queue `orders`, `topic://news` the channel `news`; a bare name may be either. The prefixes
are the configuration's (UM's QueuePrefix and TopicPrefix), and the longest one that fits counts; case does. Whatever
follows is the node's name, with blanks, commas and slashes. Source: semantics.md 3.2, 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from native_backend.nodes.words import NodeKind

QUEUE_PREFIXES = ("queue://",)
TOPIC_PREFIXES = ("topic://",)


@dataclass(frozen=True, slots=True)
class Address:
    """A node's name, and its kind as far as the address says it."""

    node: str
    kind: NodeKind | None


class Addresses:
    """How addresses are read."""

    def __init__(
        self,
        queue_prefixes: Sequence[str] = QUEUE_PREFIXES,
        topic_prefixes: Sequence[str] = TOPIC_PREFIXES,
        default_kind: NodeKind = "queue",
    ) -> None:
        """`default_kind`: of a node that is to be made, where nothing says which."""
        kinds: list[tuple[str, NodeKind]] = [(prefix, "queue") for prefix in queue_prefixes]
        kinds += [(prefix, "channel") for prefix in topic_prefixes]
        self._kinds = sorted(kinds, key=lambda pair: -len(pair[0]))
        self.default_kind = default_kind

    def read(self, address: str) -> Address:
        for prefix, kind in self._kinds:
            if address.startswith(prefix):
                return Address(address[len(prefix) :], kind)
        return Address(address, None)


SHIPPED = Addresses()
