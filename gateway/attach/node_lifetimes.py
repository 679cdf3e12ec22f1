"""Lifetimes of the nodes that peers have made by a dynamic source or target: when each one ends.

| policy | the node ends when |
|---|---|
| `close` (also when none was asked for) | the link that made it has gone |
| `no-links` | no link has it as source or target |
| `no-messages` | the link that made it has gone, and there are no messages at the node |
| `no-links-or-messages` | no link has it, and there are no messages at the node |

A node that ends because its peer detaches, ends before the DETACH is answered. Whether a node is empty is asked when a
link has gone, and then every second. Source: semantics.md 2.M; AMQP 1.0 part 3, 3.5.10 to 3.5.13.
May import: `gateway`, `native_backend.answers`, `native_backend.nodes`, `native_backend.realm`.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gateway.engine_links import Link
from gateway.limits import EMPTY_LOOK_NODES, EMPTY_LOOK_S
from gateway.node_names import generated_name
from native_backend.answers import NodeFound
from native_backend.nodes import Node

if TYPE_CHECKING:
    from gateway.connection import Connection
    from gateway.gateway import Gateway


@dataclass(slots=True, eq=False)
class Temporary:
    """A node, and who has it."""

    house: Gateway
    node: Node
    lifetime: str
    creator: Link | None
    links: set[Link] = field(default_factory=set)
    ending: bool = False  # it is being deleted, or looked at
    told: list[Callable[[], None]] = field(default_factory=list)  # who waits for what comes of that

    @property
    def bound(self) -> bool:
        """A link keeps it."""
        return bool(self.links) if self.lifetime.startswith("no-links") else self.creator is not None

    @property
    def kept_by_messages(self) -> bool:
        return self.lifetime.endswith("messages")

    def end(self) -> None:
        if not self.ending:
            self.ending = True
            temporary = self.house.realm.temporary
            (temporary.delete_empty if self.kept_by_messages else temporary.delete)(self.node, self)

    def answered(self, answer: NodeFound) -> None:
        """It is gone, or it is not empty."""
        self.ending = False
        if answer.node is None and answer.answer == "ready":
            self.house.lifetimes.gone(self)
        elif not self.bound:
            self.house.lifetimes.waiting.append(self)
        told, self.told = self.told, []
        for tell in told:
            tell()


class Lifetimes:
    """All temporary nodes of this process."""

    def __init__(self, house: Gateway) -> None:
        self.waiting: deque[Temporary] = deque()  # for the last message, or for the realm to be there again
        self._house = house
        self._nodes: dict[str, Temporary] = {}
        self._by_link: dict[Link, Temporary] = {}
        self.making = 0  # nodes that the realm has been asked for
        self.random: Callable[[], str] = lambda: secrets.token_hex(16)
        self._look_s = 0.0

    @property
    def full(self) -> bool:
        return len(self._nodes) + self.making >= self._house.limits.temporary_nodes

    def generated_name(self, container: str, link: str) -> str:
        return generated_name(container, link, self.random())

    def made(self, node: Node, lifetime: str, creator: Link) -> None:
        temporary = Temporary(self._house, node, lifetime, creator)
        self._nodes[node.name] = temporary
        self._join(temporary, creator)
        if not creator.alive:
            self.left(creator)

    def joined(self, name: str, link: Link) -> None:
        """The link has that node, which may be one of ours."""
        temporary = self._nodes.get(name)
        if temporary is not None:
            self._join(temporary, link)

    def _join(self, temporary: Temporary, link: Link) -> None:
        temporary.links.add(link)
        self._by_link[link] = temporary

    def left(self, link: Link) -> Temporary | None:
        """The link has gone. Gives the node that is about to go with it."""
        temporary = self._by_link.pop(link, None)
        if temporary is None:
            return None
        temporary.links.discard(link)
        if temporary.creator is link:
            temporary.creator = None
        if temporary.bound or temporary in self.waiting:
            return None
        temporary.end()
        return temporary

    def gone(self, temporary: Temporary) -> None:
        self._nodes.pop(temporary.node.name, None)

    def advance(self) -> None:
        """Some node waits for its end: look again, once in a while."""
        now_s = self._house.clock.monotonic_s()
        if now_s < self._look_s:
            return
        self._look_s = now_s + EMPTY_LOOK_S
        for _ in range(min(len(self.waiting), EMPTY_LOOK_NODES)):
            temporary = self.waiting.popleft()
            if not temporary.bound:
                temporary.end()


class LeavingLink:
    """A link that its peer has detached: the answer waits for the end of a node. Nothing is heard of it any more."""

    def __init__(self, connection: Connection, link: Link, closed: bool) -> None:
        self.connection = connection
        self._link = link
        self._closed = closed

    def answer(self) -> None:
        if self._link.alive:
            if self._closed:
                self._link.close()
            else:
                self._link.detach()
            self.connection.touch()

    def on_transfers(self, _: Any) -> None:
        """Too late."""

    def on_partial(self, _: int) -> None:
        """Too late."""

    def on_confirmed(self, _: int) -> None:
        """Nothing is granted any more."""

    def on_dispositions(self, _: Any) -> None:
        """Too late: what it had is available again."""

    def ended(self, _: str) -> None:
        """It has ended before."""
