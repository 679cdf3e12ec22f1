"""The names of links: of one container there is one link of a name in each direction, and the newest one has it (O-6).

A link gets its name when its attach is admitted, and not before: what is refused takes nothing from another link. The
older link is closed then (`amqp:link:stolen`). Only links of the same user take over; while another user has the name,
the newer link is refused. Peers without a login are one user. Connections whose container-id is empty have names of
their own. Source: AMQP 1.0 part 2, 2.6.1; semantics.md O-6; ADR 0072.
"""

from __future__ import annotations

from gateway.amqp.link_ends import Link
from gateway.links.consuming import ConsumingLink
from gateway.links.peer import Peer
from native_backend.nodes.durable import DurableName

_Name = tuple[object, str, type]  # the container, or a connection without one; name; direction


class LinkNames:
    """One gateway's; as many as there are links that are confirmed."""

    def __init__(self) -> None:
        self._holders: dict[_Name, tuple[Peer, Link]] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def older(self, connection: Peer, link: Link) -> tuple[Peer, Link] | None:
        """The link that has the name of this one."""
        return self._holders.get(_name(connection, link))

    def is_of_another_user(self, connection: Peer, link: Link) -> bool:
        older = self.older(connection, link)
        return older is not None and older[0].subject.user != connection.subject.user

    def held_durable(self, connection: Peer, link: Link) -> bool:
        """This very connection has a durable by a link of that name: it is there, nothing was lost (S-R1e)."""
        older = self.older(connection, link)
        return older is not None and older[0] is connection and _durable(older[1]) is not None

    def frees(self, connection: Peer, link: Link, durable: DurableName) -> bool:
        """Whether to take the name over frees that durable."""
        older = self.older(connection, link)
        if older is None or older[0] is connection or self.is_of_another_user(connection, link):
            return False
        return _durable(older[1]) in (durable.name, durable.earlier)

    def take_over(self, connection: Peer, link: Link) -> None:
        """The link is admitted, and no other user has its name."""
        older = self.older(connection, link)
        self._holders[_name(connection, link)] = connection, link
        if older is not None and older[1] is not link:
            words = f"{connection.container!r} has attached {link.name[:200]!r} anew"
            older[0].fault("link-name-in-use", words, older[1])

    def leave(self, connection: Peer, link: Link) -> None:
        """The link has gone."""
        name = _name(connection, link)
        if self._holders.get(name) == (connection, link):
            del self._holders[name]


def _name(connection: Peer, link: Link) -> _Name:
    return connection.container or connection, link.name, type(link)


def _durable(link: Link) -> str | None:
    """The durable that a link consumes from."""
    owner = link.owner
    return owner.subscription.durable if isinstance(owner, ConsumingLink) else None
