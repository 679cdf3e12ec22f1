"""What a connection offers in its OPEN: what works under the tables in force when the peer connects, and nothing else.

Source: semantics.md 3.7 (the connection capabilities of JMS). May import: `gateway.sole_connections`,
`mappings`.
"""

from __future__ import annotations

from gateway.sole_connections import CAPABILITY as SOLE_CONNECTION
from mappings import Slice, TableSet

SHARED_SUBS, DELAYED_DELIVERY = "SHARED-SUBS", "DELAYED_DELIVERY"


def connection_capabilities(tables: TableSet) -> list[str]:
    """Symbols."""
    by_class = (tables.for_class(node_class)["attach"] for node_class in tables.classify.node_classes)
    shared = [SHARED_SUBS] if all(map(_shares, by_class)) else []
    return [
        *shared,
        DELAYED_DELIVERY,
        SOLE_CONNECTION,
    ]  # whatever the tables say, and whichever transformer they choose


def _shares(attach: Slice) -> bool:
    """Durable or not: JMS has both."""
    asked = {
        "direction": "subscribe",
        "address": "node",
        "node_kind": "channel",
        "distribution_mode": "unset",
        "filter": "none",
        "sharing": "shared",
    }
    durable, volatile = (
        attach.decide(**asked, source_durability=durability).then["subscription"]
        for durability in ("unsettled-state", "none")
    )
    return bool(durable == "shared" and volatile == "volatile")
