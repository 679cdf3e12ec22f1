"""Events of one store that were read together, as columns: a slice costs no object per event."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

from native_backend.events.delivery_marks import DeliveryMarks


class Chunk:
    """All events of [start, end), as columns. `gaps`: for an event with non-events before it, where they begin.
    `expiries_ms`: None when none expires; `marks`: when none has any."""

    __slots__ = ("eids", "end", "expiries_ms", "gaps", "marks", "size", "start", "values")

    def __init__(
        self, start: int, end: int, eids: list[int], values: list[bytes], expiries_ms: list[int] | None = None
    ) -> None:
        self.expiries_ms = expiries_ms
        self.marks: DeliveryMarks | None = None
        self.start = start
        self.end = end
        self.eids = eids
        self.values = values
        self.size = sum(map(len, values))
        self.gaps: dict[int, int] = {}
        if eids and eids[0] != start:
            self.gaps[eids[0]] = start
        if eids and eids[-1] - eids[0] != len(eids) - 1:
            self.gaps.update((eid, before + 1) for before, eid in pairwise(eids) if eid != before + 1)

    def index(self, eid: int) -> int:
        """Of the first event at or above `eid`."""
        return bisect_left(self.eids, eid)
