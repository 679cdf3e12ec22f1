"""An outcome that acknowledges something leaves only when the log has stored what it acknowledges."""

from __future__ import annotations

from tests.simulation.observation.checker import Checker
from tests.simulation.observation.facts import Given, Publish

_OPERATIONS = {"accepted": "acknowledge", "rejected": "dead-letter", "released": "return", "modified": "return"}


class NothingAcknowledgedBeforeStored(Checker):
    """`accepted` for a publisher: the event is on the disk. An answer to a consumer: the journal has its entry."""

    def told(self, publish: Publish, state: str) -> None:
        if state == "accepted":
            stored = self.ledger.holds(publish.link.node, publish.marker)
            self.require(stored, f"{publish.marker} was accepted on {publish.link} before it was stored")

    def given(self, given: Given) -> None:
        given.entries_before = len(self.ledger.entries(given.store, given.link.durable, given.eid))

    def echoed(self, given: Given, state: str) -> None:
        link = given.link
        if not link.durable or ":" in state or given.stated is None:
            return
        operation = _OPERATIONS.get(state.split("-")[0])
        if link.mode == "durable" and given.stated.endswith("undeliverable"):
            operation = "dead-letter"
        entries = self.ledger.entries(given.store, link.durable, given.eid)[given.entries_before :]
        stored = any(entry.operation == operation for entry in entries)
        self.require(stored, f"event {given.eid} was answered {state} on {link}; the journal has {entries}")
