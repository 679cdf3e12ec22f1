"""How many links there may be: of one session, of one holder, of all connections; and what a subscription may have
made: readers of stores, marks of containers, durables."""

from __future__ import annotations

from gateway.amqp.link_ends import Link
from gateway.terminus.termini import Terminus
from gateway.transactions.open_transactions import TransactingPeer
from native_backend.access.durable_owner import owner_of
from native_backend.nodes.durable import DurableName
from native_backend.nodes.node import Node


def link_limit_fault(connection: TransactingPeer, link: Link) -> tuple[str, str] | None:
    """Counts the link. The fault and its words, where it is one too many; it is counted until it has ended, too."""
    links, per_session = connection.gateway.shares.links, connection.gateway.limits.links_per_session
    full = links.refusal(connection.holder)
    links.take(connection.holder)
    if connection.engine.links_on(link.session) > per_session:
        full = f"at most {per_session} a session"
    return ("too-many-links", full) if full else None


def subscription_limit_fault(
    connection: TransactingPeer, terminus: Terminus, node: Node, names: DurableName | None, owned: bool
) -> tuple[str, str] | None:
    """The same of a subscription. `names`: of its durable. `owned`: that belongs to its user, not to the realm."""
    gateway, moves = connection.gateway, terminus.kind == "channel"  # a topic: as JMS moves it
    owner = owner_of(connection.subject) if owned else None
    if fault := _store_limit_fault(connection, node):
        return fault
    if names is not None and (full := gateway.durable_share.refusal(node.name, names, owner, moves=moves)):
        return "too-many-durables", full
    if terminus.filters.no_local and not gateway.mark_origin(connection.container):
        most = gateway.limits.no_local_containers
        return "too-many-containers", f"at most {most} containers may use no-local filters"
    return None


def refuses_store(connection: TransactingPeer, link: Link, node: Node) -> bool:
    """Asked again when its consumer is attached, from when on the store counts: others have come meanwhile."""
    fault = _store_limit_fault(connection, node)
    if fault is not None:
        connection.fault(*fault, link)
    return fault is not None


def _store_limit_fault(connection: TransactingPeer, node: Node) -> tuple[str, str] | None:
    full = connection.gateway.store_share.refusal(node, connection.holder)
    return ("too-many-stores", full) if full else None
