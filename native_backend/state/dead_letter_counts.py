"""How many events of which node have become dead letters, and by which cause: counted once a piece of them, when the
journal has it.

Nodes come and go, and each name would be kept for good: beyond NODES_MAX they are counted under OTHER, and those that
peers made for themselves under TEMPORARY. Causes are the states that a consumer can give, and `expired`.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from native_backend.nodes.node import Node

NODES_MAX: Final = 100
OTHER: Final = "other"
TEMPORARY: Final = "temporary"


class DeadLetterCounts:
    """Since this process opened the realm."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()  # node, cause
        self._nodes: set[str] = set()

    def add(self, node: Node, cause: str, count: int) -> None:
        """`node`: where they were."""
        self.counts[self._name(node), cause] += count

    def _name(self, node: Node) -> str:
        if node.temporary:
            return TEMPORARY
        if node.name not in self._nodes:
            if len(self._nodes) >= NODES_MAX:
                return OTHER
            self._nodes.add(node.name)
        return node.name
