"""The links that publish to each node: they hear that it was deleted before they publish again.

Links of the anonymous relay are not among them: their messages name their nodes. Source: semantics.md O-5, P-R2d.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from native_backend.nodes.node import Node


class Publishes(Protocol):
    """A link that publishes to one node."""

    @property
    def node(self) -> Node: ...


P = TypeVar("P", bound=Publishes)


class Publishers(Generic[P]):
    """One gateway's; as many as there are links that are confirmed."""

    def __init__(self) -> None:
        self._links: dict[int, dict[P, None]] = {}  # by store
        self.deleted: list[Node] = []  # to be looked at in this turn

    def __len__(self) -> int:
        return sum(map(len, self._links.values()))

    def joined(self, link: P) -> None:
        self._links.setdefault(link.node.part(0).store, {})[link] = None

    def left(self, link: P) -> None:
        """It has gone; it may not have been here."""
        store = link.node.part(0).store
        links = self._links.get(store, {})
        links.pop(link, None)
        if not links:
            self._links.pop(store, None)

    def hear(self, node: Node) -> None:
        """The realm has it no more."""
        self.deleted.append(node)

    def take(self) -> list[P]:
        """Those of nodes that were deleted."""
        deleted, self.deleted = self.deleted, []
        return [link for node in deleted for link in self._links.get(node.part(0).store, ())]
