"""A peer's connection, as an ATTACH of it is decided. Source: ADR 0087."""

from __future__ import annotations

from typing import Protocol

from gateway.attach.link_names import LinkNames
from gateway.attach.node_lifetimes import NodeLifetimes
from gateway.attach.undecided_attaches import UndecidedAttaches
from gateway.links.consuming import ConsumingLink
from gateway.transactions.open_transactions import TransactingPeer


class AttachingPeer(TransactingPeer, Protocol):
    """See the module's docstring."""

    @property
    def lifetimes(self) -> NodeLifetimes: ...

    @property
    def link_names(self) -> LinkNames: ...

    @property
    def undecided(self) -> UndecidedAttaches: ...

    @property
    def consuming(self) -> dict[ConsumingLink, None]:
        """In the order of attaching."""
