"""How many links there may be: of one session, of one holder, of all connections."""

from __future__ import annotations

from gateway.amqp.link_ends import Link
from gateway.transactions.open_transactions import TransactingPeer


def link_limit_fault(connection: TransactingPeer, link: Link) -> tuple[str, str] | None:
    """Counts the link. The fault and its words, where it is one too many; it is counted until it has ended, too."""
    links, per_session = connection.gateway.shares.links, connection.gateway.limits.links_per_session
    full = links.refusal(connection.holder)
    links.take(connection.holder)
    if connection.engine.links_on(link.session) > per_session:
        full = f"at most {per_session} a session"
    return ("too-many-links", full) if full else None
