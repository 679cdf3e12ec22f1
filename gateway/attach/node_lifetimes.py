"""Lifetimes of the nodes that peers have made by a dynamic source or target: when each one ends.

| policy | the node ends when |
|---|---|
| `close` (also when none was asked for) | the link that made it has gone |
| `no-links` | no link has it as source or target |
| `no-messages` | the link that made it has gone, and there are no messages at the node |
| `no-links-or-messages` | no link has it, and there are no messages at the node |

A link that its peer detaches without closing it is suspended: its terminus lasts until the end of its session, or ends
with the DETACH where its expiry policy is `link-detach`. Until then it keeps its node as before. A link of that name
that attaches again to the node takes its place; one that attaches elsewhere ends it.

A node that ends because its peer closes a link or ends a session, ends before that is answered. Whether a node is empty
is asked when a link has gone, and then every second. A temporary destination of JMS has an owner, the connection that
made it: while that is there, no other connection consumes from it. Source: semantics.md 2.M; AMQP 1.0 part 2, 2.6.4 and
2.6.5, part 3, 3.5.6 and 3.5.10 to 3.5.13; JMS 2.0, 6.2.2.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.amqp.incoming_link import Incoming
from gateway.amqp.link_ends import Link
from gateway.config.limits import EMPTY_LOOK_NODES, EMPTY_LOOK_S, SUSPENDED_LINKS
from gateway.config.node_names import generated_name
from gateway.links.peer import Peer
from gateway.links.shared import Shared
from gateway.terminus.termini import read_expiry
from native_backend.nodes.answers import NodeFound
from native_backend.nodes.node import Node

_Key = tuple[str, bool]  # a link's name, and whether the peer publishes


@dataclass(slots=True, eq=False)
class TemporaryNode:
    """A temporary node, its owner and its links."""

    of: NodeLifetimes
    node: Node
    lifetime: str
    creator: Link | None
    owner: Peer | None  # only its links consume; None: every link that has the right
    holder: str  # in whose share of `limits.temporary_nodes` it counts
    links: set[Link] = field(default_factory=set)
    ending: bool = False  # it is being deleted, or looked at
    waiting: list[Callable[[], None]] = field(default_factory=list)  # who waits for what comes of that

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
            temporary = self.of.realm.temporary
            (temporary.delete_empty if self.kept_by_messages else temporary.delete)(self.node, self)

    def answered(self, answer: NodeFound) -> None:
        """It is gone, or it is not empty."""
        self.ending = False
        if answer.node is None and answer.answer == "ready":
            self.of.gone(self)
        elif not self.bound:
            self.of.waiting.append(self)
        waiting, self.waiting = self.waiting, []
        for tell in waiting:
            tell()


class NodeLifetimes:
    """All temporary nodes of this process."""

    def __init__(self, gateway: Shared) -> None:
        self.waiting: deque[TemporaryNode] = deque()  # for the last message, or for the realm to be there again
        self.realm = gateway.realm
        self._gateway = gateway
        self._nodes: dict[str, TemporaryNode] = {}
        self._by_link: dict[Link, TemporaryNode] = {}  # suspended ones, too
        self._suspended: dict[Peer, dict[_Key, Link]] = {}  # the oldest first
        self.random: Callable[[], str] = lambda: secrets.token_hex(16)
        self._look_s = 0.0

    def generated_name(self, container: str, link: str) -> str:
        return generated_name(container, link, self.random())

    def made(self, node: Node, lifetime: str, creator: Link, owner: Peer | None, holder: str) -> None:
        """`holder`: in whose share it counts already."""
        temporary = TemporaryNode(self, node, lifetime, creator, owner, holder)
        self._nodes[node.name] = temporary
        self._join(temporary, creator)
        if not creator.alive:
            self.left(creator)  # before it had a terminus

    def is_locked(self, name: str, connection: Peer) -> bool:
        """Whether that node is another connection's own."""
        temporary = self._nodes.get(name)
        return temporary is not None and temporary.owner not in (None, connection)

    def end_connection(self, peer: Peer) -> None:
        """Suspended links end with it. What outlives it is open to every user with the right: its messages may keep
        it."""
        for link in self._suspended.pop(peer, {}).values():
            self.left(link)
        for temporary in self._nodes.values():
            if temporary.owner is peer:
                temporary.owner = None

    def end_session(self, peer: Peer, session: int | None) -> list[TemporaryNode]:
        """Gives the nodes that are about to go with its suspended links."""
        mine = self._suspended.get(peer, {})
        ending = [self.left(mine.pop(key)) for key, link in [*mine.items()] if link.session == session]
        return [temporary for temporary in ending if temporary is not None]

    def joined(self, name: str, link: Link, peer: Peer) -> None:
        """The link has that node, which may be one of ours. A suspended link of its name ends, or it goes on in
        this."""
        temporary = self._nodes.get(name)
        if temporary is not None:
            self._join(temporary, link)
        earlier = self._suspended.get(peer, {}).pop(_key(link), None)
        if earlier is not None:
            if temporary is not None and temporary.creator is earlier:
                temporary.creator = link
            self.left(earlier)

    def suspended(self, peer: Peer, link: Link) -> TemporaryNode | None:
        """The peer has detached the link without closing it. Gives the node that is about to go with it."""
        if link not in self._by_link:
            return None
        if read_expiry(link.attach) == "link-detach":
            return self.left(link)
        mine = self._suspended.setdefault(peer, {})
        mine[_key(link)] = link
        return self.left(mine.pop(next(iter(mine)))) if len(mine) > SUSPENDED_LINKS else None

    def _join(self, temporary: TemporaryNode, link: Link) -> None:
        temporary.links.add(link)
        self._by_link[link] = temporary

    def left(self, link: Link) -> TemporaryNode | None:
        """The link has ended. Gives the node that is about to go with it."""
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

    def gone(self, temporary: TemporaryNode) -> None:
        if self._nodes.pop(temporary.node.name, None) is not None:
            self._gateway.shares.temporary_nodes.give_back(temporary.holder)

    def advance(self) -> None:
        """Some node waits for its end: look again, once in a while."""
        now_s = self._gateway.clock.monotonic_s()
        if now_s < self._look_s:
            return
        self._look_s = now_s + EMPTY_LOOK_S
        for _ in range(min(len(self.waiting), EMPTY_LOOK_NODES)):
            temporary = self.waiting.popleft()
            if not temporary.bound:
                temporary.end()


def _key(link: Link) -> _Key:
    return link.name, isinstance(link, Incoming)
