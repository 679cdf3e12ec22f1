"""Which store of its node a message goes to, for nodes that have several: the level of its priority; else its group's,
so that a group stays in order; else the one of its link, so that a link's messages do, and links are spread.

A node that grows gives its new stores to links: groups keep to those that there were before, or what comes later of a
group could overtake what is there, and another consumer could have it.

May import: `native_backend.nodes`, `transformers.routing`, the standard library.
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from native_backend.nodes import Node, level
from transformers.routing import group_of, priority_of

Route = Callable[[bytes], int]


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
