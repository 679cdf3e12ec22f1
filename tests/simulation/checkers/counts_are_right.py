"""What the header says of earlier deliveries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.observation.checker import Checker
from tests.simulation.observation.facts import Given
from tests.simulation.peers.bodies import header_field, sections

if TYPE_CHECKING:
    from tests.simulation.world import World

_FIRST_ACQUIRER, _DELIVERY_COUNT = 3, 4


class CountsAreRight(Checker):
    """delivery-count: what the publisher said, and one for each attempt that a peer called failed or that was cut off,
    and that the journal holds. first-acquirer is not true when the event had left for a link of this durable or queue
    before."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._last: dict[tuple[int, str, int], tuple[Given, int, int]] = {}  # latest delivery, entries then, failed

    def given(self, given: Given) -> None:
        durable = given.link.durable
        event = self.ledger.event(given.link.node, given.eid)
        if not durable or event is None:
            return
        key = (given.store, durable, given.eid)
        entries = self.ledger.entries(*key)
        before, entries_before, failed = self._last.get(key, (None, 0, 0))
        causes = [entry.cause for entry in entries[entries_before:]]
        if before is not None and "disposition" in causes:
            failed += (before.stated or before.inside).startswith("modified-failed")
        failed += causes.count("cut-off")  # also of what was on its way, and no one saw
        self._last[key] = (given, len(entries), failed)
        published, _, _ = sections(event.value or b"")
        header, _, _ = sections(given.payload)
        count = header_field(header, _DELIVERY_COUNT, 0)
        expected = header_field(published, _DELIVERY_COUNT, 0) + failed
        self.require(count == expected, f"event {given.eid} on {given.link}: delivery-count {count}, not {expected}")
        acquirer = header_field(header, _FIRST_ACQUIRER, False)
        fresh = header_field(published, _FIRST_ACQUIRER, False) and before is None
        self.require(
            fresh or not acquirer, f"event {given.eid} on {given.link} says first-acquirer, but was given before"
        )
