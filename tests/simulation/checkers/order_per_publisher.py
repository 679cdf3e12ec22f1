"""Order: as published, so stored; as stored, so given the first time."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from tests.simulation.observation.checker import Checker
from tests.simulation.observation.facts import Given, WireLink

if TYPE_CHECKING:
    from tests.simulation.world import World


class OrderPerPublisher(Checker):
    """A publisher's messages are stored in its order, those of a transaction where it is discharged. On each
    link first deliveries come in the order of the store; a plain subscriber gets every event from its first one on,
    and again only what it was given before."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._seen: set[tuple[int, str, int]] = set()
        self._copies: dict[WireLink, set[int]] = {}  # what a plain subscriber was given

    def given(self, given: Given) -> None:
        link = given.link
        if link.mode == "plain":
            self._consecutive(link, given)
            return
        key = (given.store, link.durable, given.eid)
        if key not in self._seen:
            self._seen.add(key)
            self.require(given.eid > link.first_given, f"event {given.eid} came after {link.first_given} on {link}")
            link.first_given = given.eid

    def _consecutive(self, link: WireLink, given: Given) -> None:
        if given.eid in self._copies.setdefault(link, set()):
            return  # it had let it go
        self._copies[link].add(given.eid)
        offsets = [event.offset for event in self.ledger.events(link.node)]
        at = bisect_left(offsets, given.eid)
        before = offsets[at - 1] if at else -1
        self.require(
            link.first_given in (-1, before), f"{link} was given {given.eid} after {link.first_given}, not {before}"
        )
        link.first_given = given.eid

    def at_end(self) -> None:
        for link in self.world.links:
            published = sorted(link.published, key=lambda post: post.place)
            eids = [self.ledger.eid(link.node, post.marker) for post in published]
            stored = [eid for eid in eids if eid >= 0]
            self.require(stored == sorted(stored), f"messages of {link} are stored in the order {stored}")
