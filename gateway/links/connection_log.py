"""Connections in the log: opened, with who the peer is; closed, with what became of its deliveries.

A line for each, within a bound of its own (`Notices`): a client that connects in a loop does not fill the disk.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from gateway.evidence.notices import CONNECTIONS, PeerIdentity, peer_of
from gateway.links.connection_record import ConnectionRecord
from gateway.links.peer import Peer
from gateway.links.shared import Shared
from native_backend.nodes.grants import Subject


@dataclass(frozen=True, slots=True)
class ClosedConnection:
    """What its line needs: nothing that leads back to the connection. `messages`: that its peer had sent."""

    record: ConnectionRecord
    subject: Subject
    container: str
    address: str
    messages: int
    in_order: bool


def note_opened(peer: Peer) -> None:
    """Its peer has said who it is."""
    peer.gateway.shares.connections.take(peer.holder)
    peer.gateway.on_opened(peer)
    client = peer.record.client
    product = f"{client.product} {client.version}".strip()
    words = f" of {peer_of(peer)}{f', client {product!a}' if product else ''}"
    number = peer.record.number
    _tell(peer.gateway, "connection opened", number, peer, words, client=product, platform=client.platform)


def note_closed(gateway: Shared, gone: ClosedConnection) -> None:
    """It has gone, and its last outcomes are counted."""
    record, messages = gone.record, gone.messages
    seconds = gateway.clock.monotonic_s() - record.since_s
    outcomes = {f"{direction} {outcome}": count for (direction, outcome), count in sorted(record.totals.items())}
    totals = ", ".join(f"{name} {count}" for name, count in outcomes.items()) or "no deliveries"
    how = "closed" if gone.in_order else "broken off"
    words = f" of {peer_of(gone)}: {how} after {seconds:.1f} s, {messages} messages received; {totals}"
    facts = {"how": how, "seconds": round(seconds, 3), "messages": messages, "outcomes": outcomes}
    _tell(gateway, "connection closed", record.number, gone, words, **facts)


def _tell(gateway: Shared, kind: str, number: int, peer: PeerIdentity, words: str, **facts: Any) -> None:
    id_ = f"{gateway.realm.run}.{number}"
    who = {"user": peer.subject.user, "container": peer.container, "address": peer.address}
    gateway.notices.tell(kind, number, id_ + words, {"connection": id_, **who, **facts}, logging.INFO, CONNECTIONS)
