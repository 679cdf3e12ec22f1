"""Delayed redelivery: how long a failed event rests, and which events rest until when.

Numbers only, 16 octets for each range of events that were returned together: a million of them are held in about 16 MB.
A time is rounded up to the next slot, so an event is never given early; longer slots take less memory. Times in
milliseconds since 1970. Source: peers.md section 2 (retries with delay).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from heapq import heappop, heappush

from native_backend.nodes.properties import Properties

SLOT_MS = 32
_DOUBLINGS_MAX = 40
_DELAY_MAX_MS = 10 * 365 * 86_400_000


def delay_ms(properties: Properties, attempts: int) -> int:
    """Before an event is given again that has failed so often; 0: at once."""
    delay = properties.redelivery_delay_ms
    if properties.redelivery == "linear":
        delay *= attempts
    elif properties.redelivery == "exponential":
        delay <<= min(attempts - 1, _DOUBLINGS_MAX)
    return min(delay, properties.redelivery_delay_max_ms or _DELAY_MAX_MS)


class DelayedEvents:
    """Ranges of EIDs, each with a time before which it is not given."""

    __slots__ = ("_heap", "_ranges", "_slot_ms", "_slots")

    def __init__(self, slot_ms: int = SLOT_MS) -> None:
        self._slot_ms = slot_ms
        self._slots: dict[int, array[int]] = {}  # slot -> first, last, first, last, ...
        self._heap: list[int] = []
        self._ranges = 0

    def __len__(self) -> int:
        """How many ranges."""
        return self._ranges

    def __bool__(self) -> bool:
        return bool(self._heap)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """(time, first, last), soonest first."""
        for slot in sorted(self._slots):
            ranges = self._slots[slot]
            for at in range(0, len(ranges), 2):
                yield slot * self._slot_ms, ranges[at], ranges[at + 1]

    def later(self, now_ms: int) -> Iterator[tuple[int, int]]:
        """Ranges that are not to be given yet, in any order. Those that come due while this goes on may be missing."""
        for slot in [*self._slots]:
            ranges = self._slots.get(slot, ()) if slot * self._slot_ms > now_ms else ()
            for at in range(0, len(ranges), 2):
                yield ranges[at], ranges[at + 1]

    @property
    def soonest_ms(self) -> int:
        """When the first of them may be given; there are some."""
        return self._heap[0] * self._slot_ms

    def copy(self) -> DelayedEvents:
        copied = DelayedEvents(self._slot_ms)
        copied._slots = {slot: ranges[:] for slot, ranges in self._slots.items()}
        copied._heap = self._heap[:]
        copied._ranges = self._ranges
        return copied

    def add(self, first: int, last: int, not_before_ms: int) -> None:
        slot = -(-not_before_ms // self._slot_ms)
        ranges = self._slots.get(slot)
        if ranges is None:
            ranges = self._slots[slot] = array("q")
            heappush(self._heap, slot)
        if ranges and ranges[-1] == first - 1:
            ranges[-1] = last
        else:
            ranges.extend((first, last))
            self._ranges += 1

    def cut(self, end: int) -> None:
        """Forget what lies at or above `end`."""
        self._keep(lambda first, last: (first, min(last, end - 1)))

    def remove_below(self, bound: int) -> None:
        """Forget what lies below `bound`."""
        self._keep(lambda first, last: (max(first, bound), last))

    def _keep(self, part: Callable[[int, int], tuple[int, int]]) -> None:
        known = [*self]
        self._slots, self._heap, self._ranges = {}, [], 0
        for not_before_ms, *ends in known:
            first, last = part(*ends)
            if first <= last:
                self.add(first, last, not_before_ms)

    def due(self, now_ms: int) -> Iterator[tuple[int, int]]:
        """Take out what may be given now."""
        while self._heap and self._heap[0] * self._slot_ms <= now_ms:
            ranges = self._slots.pop(heappop(self._heap))
            self._ranges -= len(ranges) // 2
            for at in range(0, len(ranges), 2):
                yield ranges[at], ranges[at + 1]
