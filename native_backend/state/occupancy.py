"""How full a node is, counted in batches: events that are stored and not ended, and the octets of what is kept.

A *lot* is a range of EIDs, each one an event. Events that ended are subtracted by their settlements' ranges, so
no event costs anything by itself; neighbouring lots are joined, so memory is bounded by what is kept. A queue's events
end; a channel's do not, they go with the oldest lots. Octets count from the oldest event that has not ended: that is
what the log still has to keep.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from native_backend.nodes.words import Operation
from native_backend.state.intervals import Intervals, dense_runs

_LOT = 1024


class Counted(Protocol):
    """A node whose events are counted."""

    def ended(self, operation: Operation, runs: Iterable[tuple[int, ...]]) -> None:
        """The journal holds this of one of its durables."""
        ...

    def lost(self, bound: int) -> None:
        """The log has nothing below `bound` any more."""
        ...

    def recount(self) -> None:
        """What was counted may not be there any more."""
        ...


@dataclass(slots=True)
class Lot:
    """Every EID from `first` to `last` is an event."""

    first: int
    last: int
    size_bytes: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1


class Occupancy:
    """See the module's docstring. `counted_to`: every event below it is counted, none at or above it."""

    def __init__(self, start: int) -> None:
        self.counted_to = start
        self.size_bytes = 0
        self._stored = 0
        self._ended = 0
        self._lots: deque[Lot] = deque()

    @property
    def count(self) -> int:
        return self._stored - self._ended

    @property
    def floor(self) -> int:
        """The first event that is kept, as far as is known."""
        return self._lots[0].first if self._lots else self.counted_to

    def store(self, eids: list[int], size_bytes: int, end: int, ended: int = 0) -> None:
        """These events were stored, at or above `counted_to`; `ended` of them have ended already. Below `end` there are
        no others."""
        self.counted_to = end
        if not eids:
            return
        self._stored += len(eids)
        self._ended += ended
        for first, last in dense_runs(eids):
            self._add(Lot(first, last, size_bytes * (last - first + 1) // len(eids)))

    def _add(self, lot: Lot) -> None:
        last = self._lots[-1] if self._lots else None
        if last is not None and last.last + 1 == lot.first and lot.last - last.first < _LOT:
            last.last, last.size_bytes = lot.last, last.size_bytes + lot.size_bytes
        else:
            self._lots.append(lot)
        self.size_bytes += lot.size_bytes

    def end(self, ranges: Iterable[tuple[int, ...]]) -> None:
        """Ranges of events (nothing else is in them) have ended; those that were never counted, or are gone, do not
        matter."""
        floor, counted_to = self.floor, self.counted_to
        for first, last, *_ in ranges:
            self._ended += max(0, min(last + 1, counted_to) - max(first, floor))

    def settle(self, low: int) -> None:
        """Everything below `low` has ended: it needs no keeping."""
        while self._lots and self._lots[0].last < low:
            lot = self._lots.popleft()
            self._stored -= lot.count
            self._ended -= lot.count
            self.size_bytes -= lot.size_bytes

    def surplus(self, count_max: int, bytes_max: int, low: int, acked: Intervals) -> int:
        """The EID below which everything must go for the rest to fit; 0 when all fits. 0 is no bound. Lots go as a
        whole for their octets, and to the event for their count."""
        count, size, bound = self.count, self.size_bytes, 0
        for lot in self._lots:
            excess = count - count_max if count_max else 0
            if excess <= 0 and not (bytes_max and size > bytes_max):
                break
            living = [*acked.holes(max(low, lot.first), lot.last + 1)]
            alive = sum(last - first + 1 for first, last in living)
            if not (bytes_max and size > bytes_max) and 0 < excess < alive:
                return _after(living, excess)
            count, size, bound = count - alive, size - lot.size_bytes, lot.last + 1
        return bound

    def drop(self, bound: int, low: int, acked: Intervals) -> None:
        """Everything below `bound` is gone. What had ended of it is known by `low` and `acked`, as before."""
        while self._lots and self._lots[0].first < bound:
            lot = self._lots[0]
            last = min(lot.last, bound - 1)
            gone = last - lot.first + 1
            living = sum(end - first + 1 for first, end in acked.holes(max(low, lot.first), last + 1))
            size = lot.size_bytes * gone // lot.count
            self._stored -= gone
            self._ended -= gone - living
            self.size_bytes -= size
            if last == lot.last:
                self._lots.popleft()
            else:
                lot.first, lot.size_bytes = bound, lot.size_bytes - size


def _after(living: list[tuple[int, int]], count: int) -> int:
    """The EID behind the first `count` of them."""
    for first, last in living:
        if last - first + 1 >= count:
            return first + count
        count -= last - first + 1
    return living[-1][1] + 1
