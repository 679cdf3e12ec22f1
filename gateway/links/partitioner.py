"""Which store of its node a message goes to, for nodes that have several: the level of its priority; else its group's,
so that a group stays in order; else the one of its link, so that a link's messages do, and links are spread.

A node that grows gives its new stores to links: groups keep to those that there were before, or what comes later of a
group could overtake what is there, and another consumer could have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

from native_backend.nodes.node import Node, level
from transformers.message.routing import group_of, priority_of

Route = Callable[[bytes], int]


@dataclass(slots=True)
class Part:
    """The messages of a run that go to one store."""

    node: Node
    seqs: Sequence[int]
    keys: list[bytes]
    values: list[bytes]


class Partitioner:
    """Of one link and one node. A node of one store asks nothing of a message."""

    def __init__(self, node: Node, link_number: int) -> None:
        self._nodes = node.parts
        self._route = route_of(node, link_number) if node.partitions > 1 else None
        self._first_seq = 0
        self._routes: list[int] = []  # of the run that is here

    def begin(self, first_seq: int, messages: Sequence[bytes]) -> None:
        """A run of messages is here."""
        if self._route is not None:
            self._first_seq, self._routes = first_seq, [*map(self._route, messages)]

    def parts(self, seqs: range, keys: Sequence[bytes], values: Sequence[bytes]) -> list[Part]:
        """These messages of the run, for each store that some go to."""
        if self._route is None:
            return [Part(self._nodes[0], seqs, [*keys], [*values])]
        start = seqs[0] - self._first_seq
        stores: dict[int, list[int]] = {}
        for at, partition in enumerate(self._routes[start : start + len(seqs)]):
            stores.setdefault(partition, []).append(at)
        return [
            Part(self._nodes[partition], [seqs[at] for at in ats], [keys[at] for at in ats], [values[at] for at in ats])
            for partition, ats in stores.items()
        ]


def route_of(node: Node, link_number: int) -> Route:
    """For the messages of one link."""
    count = node.partitions
    if node.properties.priority_levels:
        levels = [level(priority, count) for priority in range(256)]
        return lambda message: levels[priority_of(message)]
    home = link_number % count
    for_groups = node.properties.group_partitions or count

    def by_group(message: bytes) -> int:
        group = group_of(message)
        return home if group is None else crc32(group.encode()) % for_groups

    return by_group
