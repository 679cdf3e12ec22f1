"""What a connection offers in its OPEN: what works under the active tables when the peer connects, and nothing else.

Source: semantics.md 3.7 (the connection capabilities of JMS).
"""

from __future__ import annotations

from gateway.session.sole_connections import CAPABILITY as SOLE_CONNECTION
from mappings import DEFAULT_CLASS, Slice, TableSet

SHARED_SUBS, DELAYED_DELIVERY, ANONYMOUS_RELAY = "SHARED-SUBS", "DELAYED_DELIVERY", "ANONYMOUS-RELAY"


def connection_capabilities(tables: TableSet) -> list[str]:
    """Symbols."""
    by_class = [tables.for_class(node_class)["attach"] for node_class in tables.classify.node_classes]
    works = {
        SHARED_SUBS: all(map(_shares, by_class)),
        DELAYED_DELIVERY: True,  # whatever the tables say, and whichever transformer they choose
        SOLE_CONNECTION: True,
        ANONYMOUS_RELAY: _relays(tables.for_class(DEFAULT_CLASS)["attach"]),
    }
    return [name for name, yes in works.items() if yes]


def _relays(attach: Slice) -> bool:
    """No node is named, so the class of a node does not count."""
    facts = {"direction": "publish", "address": "none", "node_kind": "unknown", "distribution_mode": "unset"}
    then = attach.decide(**facts, source_durability="none", filter="none", sharing="exclusive").then
    return bool(then["native"] == "relay")


def _shares(attach: Slice) -> bool:
    """Durable or not: JMS has both."""
    facts = {
        "direction": "subscribe",
        "address": "node",
        "node_kind": "channel",
        "distribution_mode": "unset",
        "filter": "none",
        "sharing": "shared",
    }
    durable, volatile = (
        attach.decide(**facts, source_durability=durability).then["subscription"]
        for durability in ("unsettled-state", "none")
    )
    return bool(durable == "shared" and volatile == "volatile")
