"""From publisher to consumer, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.observation.checker import Checker
from tests.simulation.observation.facts import Given, Publish
from tests.simulation.peers.bodies import header_field, marker_of, sections

if TYPE_CHECKING:
    from tests.simulation.world import World

_KEPT = ((0, False), (1, 4), (2, None))  # durable, priority, ttl and their defaults


class BareMessageUntouched(Checker):
    """The event that the tag names is the message that arrives: its bare part, annotations and the publisher's part of
    the header are those that were published."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._published: dict[str, tuple[object, ...]] = {}

    def published(self, publish: Publish) -> None:
        if not publish.payload.startswith(b"\x00\x53\x75\xff"):
            self._published[publish.marker] = _parts(publish.payload)

    def given(self, given: Given) -> None:
        node = self.ledger.node_of(given.store)
        self.require(node == given.link.node, f"the tag on {given.link} names the store of {node}")
        event = self.ledger.event(given.link.node, given.eid)
        if event is None:
            self.fail(f"event {given.eid} was given on {given.link} and is not stored")
            return
        marker = marker_of(given.payload)
        self.require(marker_of(event.value or b"") == marker, f"{marker} came under the tag of event {given.eid}")
        parts = _parts(given.payload)
        self.require(parts == self._published[marker], f"{marker} came as {parts}, not {self._published[marker]}")


def _parts(payload: bytes) -> tuple[object, ...]:
    header, annotations, bare = sections(payload)
    return (*(header_field(header, index, default) for index, default in _KEPT), annotations, bare)
