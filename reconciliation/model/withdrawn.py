"""What operators did to durables by command: purged, or moved their place. Few records, so it is worked out on the
driver.

A purge makes everything in its runs terminal, gaps included. A seek does so with everything below its place, and takes
back whatever the journal said before of what lies above it. What it says below a durable's `journal` offset speaks of
an earlier durable of that name. Source: docs/records.md "Journal". May import: the standard library, `native_backend`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from native_backend.durables import Durable
from native_backend.intervals import Intervals

Place = tuple[int, str]
"""Store, durable."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """One run of a purge or a seek, and where in the journal it stands."""

    store: int
    durable: str
    offset: int
    operation: str
    first: int
    last: int


@dataclass(slots=True)
class Withdrawn:
    """`ranges` are terminal, disjoint; ends of `voids` (journal offset below the first, EID from the second on) do not
    count; `seeks` has the last one of a durable: its journal offset and its place."""

    ranges: list[tuple[int, str, int, int]] = field(default_factory=list)
    voids: list[tuple[int, str, int, int]] = field(default_factory=list)
    seeks: dict[Place, tuple[int, int]] = field(default_factory=dict)


def withdrawn(orders: Iterable[Ordered], durables: Iterable[Durable]) -> Withdrawn:
    """Of the durables that there are."""
    found = Withdrawn()
    by_place: dict[Place, list[Ordered]] = {}
    for each in orders:
        by_place.setdefault((each.store, each.durable), []).append(each)
    for durable in durables:
        place = durable.store, durable.name
        if durable.journal:
            found.voids.append((*place, durable.journal, durable.start))
        taken = Intervals()
        for each in sorted(by_place.get(place, []), key=lambda one: one.offset):
            if each.offset < durable.journal:
                continue
            if each.operation != "seek":
                taken.add(each.first, each.last)
                continue
            taken = Intervals((first, min(last, each.first - 1)) for first, last in taken if first < each.first)
            if each.first > durable.start:
                taken.add(durable.start, each.first - 1)
            found.voids.append((*place, each.offset, each.first))
            found.seeks[place] = each.offset, each.first
        found.ranges += [(*place, first, last) for first, last in taken]
    return found
