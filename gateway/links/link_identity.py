"""Who a link is, for its outcome records and for operators: made when it is confirmed. Source: docs/records.md."""

from __future__ import annotations

from collections import Counter

from gateway.evidence.outcome_key import LinkIdentity
from gateway.links.peer import Peer
from native_backend.nodes.node import Node


def link_identity(
    peer: Peer, direction: str, name: str, node: Node, durable: str | None = None, counts: Counter[str] | None = None
) -> LinkIdentity:
    """`direction`: publish or subscribe; `name`: the link's. `counts`: of a link that has several nodes."""
    return LinkIdentity(
        number=peer.gateway.next_link_number(),
        direction=direction,
        name=name,
        container=peer.container,
        node=node.name,
        store=node.store,
        durable=durable if direction == "subscribe" else None,
        user=peer.subject.user,
        address=peer.address,
        counts=Counter() if counts is None else counts,
        totals=peer.record.totals,
    )
