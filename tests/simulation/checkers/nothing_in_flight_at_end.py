"""When everybody has what he wanted, nothing is left anywhere."""

from __future__ import annotations

from tests.kit.realm.inside import context_of, publisher_of
from tests.simulation.observation.checker import Checker


class NothingInFlightAtEnd(Checker):
    """At rest the gateway holds no delivery, no bytes, no lost link, and every drain was answered; after its end every
    queue and durable is finished up to the end of its store."""

    def at_rest(self) -> None:
        process = self.world.process
        gateway, realm = process.gateway, process.realm
        self.require(gateway.outcomes.open == 0, f"{gateway.outcomes.open} deliveries have no outcome")
        self.require(gateway.in_flight_bytes == 0, f"{gateway.in_flight_bytes} bytes are held")
        self.require(gateway.transactions == 0, f"{gateway.transactions} transactions are open")
        self.require(gateway.transaction_bytes == 0, f"{gateway.transaction_bytes} bytes are in transactions")
        live = process.live_links()
        self.require(gateway.links == len(live), f"the gateway counts {gateway.links} links, there are {len(live)}")
        self.require(not context_of(realm).journal.busy, "the journal is busy")
        self.require(publisher_of(realm).pending == 0, "the log has not answered all events")
        for link in live:
            if not link.publishing:
                self.require(link.drain, f"{link} was not asked to drain: the world is not at rest")
                self.require(link.count == link.limit, f"{link} was drained at {link.count} of {link.limit}")

    def at_end(self) -> None:
        gateway = self.world.process.gateway
        self.require(gateway.links == 0 and not gateway.connections, f"{gateway.links} links after the end")
        shares = gateway.shares
        for limit in (shares.connections, shares.links, shares.transactions, shares.temporary_nodes):
            self.require(limit.used == 0 and not limit._held, f"{limit._held} of {limit._name} after the end")
        self.require(not gateway.credit.lent_to, f"credit is lent to {gateway.credit.lent_to} after the end")
        snapshots = self.ledger.snapshots()
        lows = {(row["node"], row["durable"]): (row["low"], row["acked"], row["closed"]) for row in snapshots.values()}
        for (node, durable), start in self.ledger.durables().items():
            low, acked, closed = lows.get((node, durable), (None, None, None))
            end = max(start, self.ledger.end(node))
            self.require((low, acked, closed) == (end, [], 1), f"{durable!r} of {node}: {low}, {acked}, of {end}")
