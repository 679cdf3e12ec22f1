"""Room for the events that one transaction of the log brings into nodes with a capacity: reserved before it is written,
so that it is refused as a whole where a node that honours its capacity would be overfilled. What the same transaction
ends makes no room for it. Nodes without a capacity cost nothing. Source: semantics 3.5 (Honour Capacity), rows P-R3b,
T-D2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from native_backend.log.port import LogError
from native_backend.nodes.node import Node
from native_backend.publish.capacities import Capacities
from native_backend.publish.capacity import CountedStore


@dataclass(frozen=True, slots=True)
class Full:
    """A node has no room for all of it, only for so many of them."""

    node: str
    room: int


class Reservation:
    """Of one transaction; to be ended once by `stored` or `release`."""

    def __init__(self, capacities: Capacities, wanted: Iterable[tuple[Node, int]]) -> None:
        """`wanted`: where each event goes, in the order of the writes, and its octets."""
        self._rooms: dict[CountedStore, tuple[list[int], list[int]]] = {}  # places among the writes, octets of each
        by_store: dict[int, CountedStore | None] = {}
        for place, (node, size) in enumerate(wanted):
            if node.store not in by_store:
                by_store[node.store] = capacities.of(node)
            counted_store = by_store[node.store]
            if counted_store is not None:
                places, sizes = self._rooms.setdefault(counted_store, ([], []))
                places.append(place)
                sizes.append(size)

    def begin(self, done: Callable[[Full | LogError | None], None]) -> None:
        """`done` with None once there is room for all of it; else nothing is reserved."""

        def counted(error: LogError | None) -> None:
            if error is None:
                self.begin(done)
            else:
                done(error)

        for counted_store in self._rooms:
            if not counted_store.is_counted():
                counted_store.when_counted(counted)
                return
        done(self._reserve())

    def _reserve(self) -> Full | None:
        reserved: list[CountedStore] = []
        for counted_store, (_, sizes) in self._rooms.items():
            room = counted_store.reserve(sizes)
            if room < len(sizes):
                for store in reserved:
                    store.release(self._rooms[store][1])
                return Full(counted_store.node.name, room)
            reserved.append(counted_store)
        return None

    def stored(self, eids: list[int]) -> None:
        """Of all its writes, in order; -1 where one is gone already."""
        for counted_store, (places, sizes) in self._rooms.items():
            counted_store.stored_by_transaction([eids[place] for place in places], sizes)

    def release(self, *, certain: bool = True) -> None:
        """It was not stored; unless `certain`, it may have been."""
        for counted_store, (_, sizes) in self._rooms.items():
            counted_store.release(sizes, certain=certain)
