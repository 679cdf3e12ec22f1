"""Events on their way to a link: columns, and how they are gathered within a link's credit and byte budget."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from native_backend.events.chunk import Chunk


@dataclass(frozen=True, slots=True)
class DeliveryBatch:
    """Events for one link, as columns of equal length."""

    eids: list[int]  # in the order in which they are given
    values: list[bytes]  # as they are stored
    failed: list[int] | None  # failed attempts so far; None when all are 0
    again: list[bool] | None  # was given to a link before (first-acquirer=false); None when all are False
    partition: int = 0  # of the node's: the store that the EIDs are of


class BatchBuilder:
    """Fills up to `count` events and about `size` bytes; one event always fits, else a large one would never leave."""

    __slots__ = ("before", "eids", "repeated", "room", "size", "values")

    def __init__(self, count: int, size: int) -> None:
        self.eids: list[int] = []
        self.values: list[bytes] = []
        self.room = count
        self.size = size
        self.repeated = 0  # so many events from the beginning were given before
        self.before: list[bool] | None = None  # of those: some were not, and these were

    def add(self, chunk: Chunk, begin: int, end: int) -> list[int]:
        """Take the chunk's events [begin, end) as far as there is room; returns their EIDs (good until the next
        `add`)."""
        end = min(end, begin + self.room)
        values = chunk.values[begin:end]
        size = sum(map(len, values))
        if size > self.size:
            fit = sum(total <= self.size for total in accumulate(map(len, values)))
            if not fit and not self.eids:
                fit = 1
            values = values[:fit]
            size = sum(map(len, values))
            self.room = fit  # whatever is left is not for this take
        eids = chunk.eids[begin : begin + len(values)]
        self.room -= len(values)
        self.size -= size
        if self.eids:
            self.eids += eids
            self.values += values
        else:
            self.eids, self.values = eids, values
        return eids

    def delivered(self, failed: dict[int, int], redelivered_below: int) -> DeliveryBatch | None:
        """The columns, with what is known of earlier attempts."""
        eids = self.eids
        if not eids:
            return None
        counts = [failed.get(eid, 0) for eid in eids] if failed else None
        again = None
        repeated = self.repeated
        if repeated or eids[-1] < redelivered_below or eids[0] < redelivered_below:
            again = self.before or [True] * repeated
            again = again + [eid < redelivered_below for eid in eids[repeated:]]
        return DeliveryBatch(eids, self.values, counts if counts and any(counts) else None, again)
