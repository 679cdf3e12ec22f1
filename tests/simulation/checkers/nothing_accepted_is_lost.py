"""Nothing that a publisher was told is kept may be lost, and nothing that is kept may be skipped."""

from __future__ import annotations

from tests.simulation.observation.checker import Checker
from tests.simulation.observation.facts import QUEUE, Given

_FINAL = ("accepted", "rejected", "unstated", "modified-undeliverable", "modified-failed-undeliverable")


class NothingAcceptedIsLost(Checker):
    """What was accepted is stored; what is stored went to every durable and queue, and a peer was done with it."""

    def at_end(self) -> None:
        for link in self.world.links:
            for publish in link.published:
                if publish.told and publish.told[0] == "accepted":
                    stored = self.ledger.holds(link.node, publish.marker)
                    self.require(stored, f"{publish.marker} was accepted on {link} and is not stored")
        finished = self._finished()
        for (node, durable), start in self.ledger.durables().items():
            for event in self.ledger.events(node):
                if event.offset >= start and (node, durable, event.offset) not in finished:
                    self.fail(f"event {event.offset} of {node} was never dealt with by {durable!r}")

    def _finished(self) -> set[tuple[str, str, int]]:
        keys = set()
        for link in self.world.links:
            final = _FINAL if link.mode != QUEUE else _FINAL[:3]
            for given in link.given:
                if given.stated in final or self._committed_unheard(given):
                    keys.add((link.node, link.durable, given.eid))
        for (store, durable, eid), entries in self.ledger.all_entries().items():
            if any(entry.cause == "sent-settled" for entry in entries):
                keys.add((self.ledger.node_of(store) or "", durable, eid))
        return keys

    def _committed_unheard(self, given: Given) -> bool:
        """The discharge was not answered: the journal knows."""
        if given.stated is not None or given.transaction is None or given.transaction.done is not None:
            return False
        entries = self.ledger.entries(given.store, given.link.durable, given.eid)
        ended = [entry for entry in entries if entry.run == given.link.run and entry.operation != "return"]
        return any(entry.cause == "disposition" for entry in ended)
