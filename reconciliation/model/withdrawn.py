"""What was done to durables as a whole: operators purged them or moved their place, their store became shorter, or they
were deleted, and perhaps made again. Few records, so it is worked out on the driver.

A purge makes everything in its runs terminal, gaps included. A seek does so with everything below its place, and takes
back whatever the journal said before of what lies above it. A truncation takes back what lies at or above the end that
the store had then. What the journal says below a durable's `journal` offset speaks of
an earlier durable of that name. Source: docs/records.md "Journal".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from reconciliation.model.ranges import NO_END
from reconciliation.model.realm_nodes import Durable

Place = tuple[int, str]
"""Store, durable."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """One run of a purge, a seek, a truncation or a deletion, and where in the journal it stands."""

    store: int
    durable: str
    offset: int
    operation: str
    first: int
    last: int


Void = tuple[int, str, int, int]
"""Store, durable; what the journal says below that offset of EIDs from that one on does not count."""


@dataclass(slots=True)
class Withdrawn:
    """`ranges` are terminal, disjoint; `seeks` has the last one of a durable: its journal offset and its place; `cuts`
    all truncations alike. Both are of the durables that there are. `voids` are what seeks and truncations took back,
    `lives` what a deletion ended, one for each durable of a name: both of all that ever were. `over` is, by name, what
    the last of them ended: what lies below is of no durable that there is."""

    ranges: list[tuple[int, str, int, int]] = field(default_factory=list)
    voids: list[Void] = field(default_factory=list)
    lives: list[Void] = field(default_factory=list)
    over: list[Void] = field(default_factory=list)
    seeks: dict[Place, tuple[int, int]] = field(default_factory=dict)
    cuts: dict[Place, list[tuple[int, int]]] = field(default_factory=dict)

    def standing(self, place: Place, eid: int, journal: int) -> int:
        """Of what lies below `eid`, as it was known at that journal offset: up to where it still counts."""
        return min([eid, *(end for offset, end in self.cuts.get(place, ()) if offset >= journal)])


def withdrawn(orders: Iterable[Ordered], durables: Iterable[Durable]) -> Withdrawn:
    """`durables`: those that there are."""
    withdrawal = Withdrawn()
    by_place: dict[Place, list[Ordered]] = {}
    for order in sorted(orders, key=lambda ordered: ordered.offset):
        by_place.setdefault((order.store, order.durable), []).append(order)
        if order.operation in ("seek", "truncated"):
            withdrawal.voids.append((order.store, order.durable, order.offset, order.first))
    known = {(durable.store, durable.name): durable for durable in durables}
    for place, durable in known.items():
        _move(withdrawal, durable, by_place.get(place, []))
        _end(withdrawal, place, by_place.get(place, []), durable.journal)
    for place in by_place.keys() - known.keys():
        if place[1]:  # else a node was deleted
            _end(withdrawal, place, by_place[place], NO_END)
    return withdrawal


def _move(withdrawal: Withdrawn, durable: Durable, ordered: Iterable[Ordered]) -> None:
    place = durable.store, durable.name
    taken: list[tuple[int, int]] = []
    for order in ordered:
        if order.offset < durable.journal or order.operation == "delete":
            continue
        if order.operation == "purge":
            taken.append((order.first, order.last))
            continue
        taken = [(first, min(last, order.first - 1)) for first, last in taken if first < order.first]
        if order.operation == "truncated":
            withdrawal.cuts.setdefault(place, []).append((order.offset, order.first))
            continue
        if order.first > durable.start:
            taken.append((durable.start, order.first - 1))
        withdrawal.seeks[place] = order.offset, order.first
    withdrawal.ranges += [(*place, first, last) for first, last in merged(taken)]


def _end(withdrawal: Withdrawn, place: Place, ordered: Iterable[Ordered], journal: int) -> None:
    """`journal`: below it the journal speaks of earlier durables. A deletion that is not followed by another durable
    yet is carried out again by the next start: until then the durable is there. What stands beside a deletion in one
    record was before it."""
    deleted = [order.offset + 1 for order in ordered if order.operation == "delete" and order.offset < journal]
    if journal == NO_END and not deleted:
        return
    ends = {*deleted, journal} - {0, NO_END}
    withdrawal.lives += [(*place, end, 0) for end in sorted(ends)]
    if journal:
        withdrawal.over.append((*place, journal, 0))


def merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same EIDs as disjoint ranges, in rising order; those that touch are one."""
    spans: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if spans and first <= spans[-1][1] + 1:
            spans[-1] = spans[-1][0], max(spans[-1][1], last)
        else:
            spans.append((first, last))
    return spans
