"""What the journal holds as done with is done with."""

from __future__ import annotations

from tests.simulation.observation.checker import Checker
from tests.simulation.observation.facts import Given


class NothingAcknowledgedComesBack(Checker):
    """An event that the journal holds as acknowledged or discarded is not given again by that durable or queue."""

    def given(self, given: Given) -> None:
        durable = given.link.durable
        if durable:
            entries = self.ledger.entries(given.store, durable, given.eid)
            done = [entry for entry in entries if entry.operation != "return"]
            self.require(given.settled or not done, f"event {given.eid} of {durable!r} is back on {given.link}: {done}")
