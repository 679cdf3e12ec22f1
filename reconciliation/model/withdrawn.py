"""What was done to durables as a whole: operators purged them or moved their place, or their store became shorter. Few
records, so it is worked out on the driver.

A purge makes everything in its runs terminal, gaps included. A seek does so with everything below its place, and takes
back whatever the journal said before of what lies above it. A truncation takes back what lies at or above the end that
the store had then. What the journal says below a durable's `journal` offset speaks of
an earlier durable of that name. Source: docs/records.md "Journal".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reconciliation.model.realm_nodes import Durable

Place = tuple[int, str]
"""Store, durable."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """One run of a purge, a seek or a truncation, and where in the journal it stands."""

    store: int
    durable: str
    offset: int
    operation: str
    first: int
    last: int


@dataclass(slots=True)
class Withdrawn:
    """`ranges` are terminal, disjoint; ends of `voids` (journal offset below the first, EID from the second on) do not
    count; `seeks` has the last one of a durable: its journal offset and its place; `cuts` all truncations alike."""

    ranges: list[tuple[int, str, int, int]] = field(default_factory=list)
    voids: list[tuple[int, str, int, int]] = field(default_factory=list)
    seeks: dict[Place, tuple[int, int]] = field(default_factory=dict)
    cuts: dict[Place, list[tuple[int, int]]] = field(default_factory=dict)

    def standing(self, place: Place, eid: int, journal: int) -> int:
        """Of what lies below `eid`, as it was known at that journal offset: up to where it still counts."""
        return min([eid, *(end for offset, end in self.cuts.get(place, ()) if offset >= journal)])


def withdrawn(orders: Iterable[Ordered], durables: Iterable[Durable]) -> Withdrawn:
    """Of the durables that there are."""
    withdrawal = Withdrawn()
    by_place: dict[Place, list[Ordered]] = {}
    for order in orders:
        by_place.setdefault((order.store, order.durable), []).append(order)
    for durable in durables:
        place = durable.store, durable.name
        if durable.journal:
            withdrawal.voids.append((*place, durable.journal, durable.start))
        taken: list[tuple[int, int]] = []
        for order in sorted(by_place.get(place, []), key=lambda ordered: ordered.offset):
            if order.offset < durable.journal:
                continue
            if order.operation == "purge":
                taken.append((order.first, order.last))
                continue
            taken = [(first, min(last, order.first - 1)) for first, last in taken if first < order.first]
            if order.operation == "truncated":
                withdrawal.voids.append((*place, order.offset, order.first))
                withdrawal.cuts.setdefault(place, []).append((order.offset, order.first))
                continue
            if order.first > durable.start:
                taken.append((durable.start, order.first - 1))
            withdrawal.voids.append((*place, order.offset, order.first))
            withdrawal.seeks[place] = order.offset, order.first
        withdrawal.ranges += [(*place, first, last) for first, last in merged(taken)]
    return withdrawal


def merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same EIDs as disjoint ranges, in rising order; those that touch are one."""
    spans: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if spans and first <= spans[-1][1] + 1:
            spans[-1] = spans[-1][0], max(spans[-1][1], last)
        else:
            spans.append((first, last))
    return spans
