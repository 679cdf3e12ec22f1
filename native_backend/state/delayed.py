"""Delayed redelivery: how long a failed event rests, and which events rest until when.

Numbers only, 16 octets for each range of events that were returned together: a million of them are held in about 16 MB.
A time is rounded up to the next slot, so an event is never given early. Times in milliseconds since 1970.
Source: peers.md section 2 (retries with delay). May import: the standard library, `native_backend.properties`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from heapq import heappop, heappush

from native_backend.properties import Properties

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


class Delays:
    """Ranges of EIDs, each with a time before which it is not given."""

    __slots__ = ("_heap", "_ranges", "_slots")

    def __init__(self) -> None:
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
                yield slot * SLOT_MS, ranges[at], ranges[at + 1]

    @property
    def soonest_ms(self) -> int:
        """When the first of them may be given; there are some."""
        return self._heap[0] * SLOT_MS

    def copy(self) -> Delays:
        copied = Delays()
        copied._slots = {slot: ranges[:] for slot, ranges in self._slots.items()}
        copied._heap = self._heap[:]
        copied._ranges = self._ranges
        return copied

    def add(self, first: int, last: int, not_before_ms: int) -> None:
        slot = -(-not_before_ms // SLOT_MS)
        ranges = self._slots.get(slot)
        if ranges is None:
            ranges = self._slots[slot] = array("q")
            heappush(self._heap, slot)
        if ranges and ranges[-1] == first - 1:
            ranges[-1] = last
        else:
            ranges.extend((first, last))
            self._ranges += 1

    def due(self, now_ms: int) -> Iterator[tuple[int, int]]:
        """Take out what may be given now."""
        while self._heap and self._heap[0] * SLOT_MS <= now_ms:
            ranges = self._slots.pop(heappop(self._heap))
            self._ranges -= len(ranges) // 2
            for at in range(0, len(ranges), 2):
                yield ranges[at], ranges[at + 1]
