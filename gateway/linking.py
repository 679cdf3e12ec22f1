"""The session's side of a link that is confirmed, by what its node needs. May import: `gateway`, `native_backend`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.consuming import ConsumingLink
from gateway.engine_incoming import Incoming
from gateway.engine_links import Outgoing
from gateway.outcomes import LinkFacts
from gateway.publishing import PublishingLink
from gateway.spread_consuming import SpreadConsumingLink
from gateway.spread_publishing import SpreadPublishingLink
from gateway.termini import Terminus

if TYPE_CHECKING:
    from gateway.connection import Connection
    from gateway.relay import RelayLink
    from native_backend.nodes import Node
    from native_backend.subscription import Subscription


def publishing_link(
    connection: Connection, link: Incoming, node: Node, facts: LinkFacts, relay: RelayLink | None = None
) -> PublishingLink:
    kind = SpreadPublishingLink if node.partitions > 1 else PublishingLink
    return kind(connection, link, node, facts, relay)


def consuming_link(
    connection: Connection, link: Outgoing, terminus: Terminus, subscription: Subscription, facts: LinkFacts
) -> ConsumingLink:
    kind = SpreadConsumingLink if subscription.node.partitions > 1 else ConsumingLink
    return kind(connection, link, terminus, subscription, facts)
