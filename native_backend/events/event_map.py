"""Which EIDs of a store are events: a set that is nearly dense, and counts any range quickly.

EIDs are kept in blocks of `BLOCK`. Full blocks are ranges of blocks; any other is a mask with a bit for each EID. So a
million EIDs cost at most 125 kB, and events without gaps cost nothing.
"""

from __future__ import annotations

from native_backend.state.intervals import Intervals

_SHIFT = 12
BLOCK = 1 << _SHIFT
_FULL = (1 << BLOCK) - 1


class EventMap:
    """See the module's docstring. Ranges are [first, end)."""

    __slots__ = ("_masks", "_whole")

    def __init__(self) -> None:
        self._masks: dict[int, int] = {}  # by block: some of it are events
        self._whole = Intervals()  # blocks: all of it are events

    def add(self, first: int, last: int) -> None:
        """Every EID of [first, last] is an event."""
        low, high = first >> _SHIFT, last >> _SHIFT
        if low == high:
            self._fill(low, first & (BLOCK - 1), last - first + 1)
            return
        self._fill(low, first & (BLOCK - 1), BLOCK - (first & (BLOCK - 1)))
        self._fill(high, 0, (last & (BLOCK - 1)) + 1)
        if high > low + 1:
            self._whole.add(low + 1, high - 1)
            for block in self._within(low + 1, high):
                del self._masks[block]

    def count(self, first: int, end: int) -> int:
        """How many events there are in [first, end)."""
        if end <= first:
            return 0
        low, high = first >> _SHIFT, (end - 1) >> _SHIFT
        if low == high:
            return self._part(low, first & (BLOCK - 1), end - first)
        counted = self._part(low, first & (BLOCK - 1), BLOCK) + self._part(high, 0, ((end - 1) & (BLOCK - 1)) + 1)
        span = self._whole.at_or_above(low + 1)
        while span is not None and span[0] < high:
            counted += (min(span[1], high - 1) - span[0] + 1) << _SHIFT
            span = self._whole.at_or_above(span[1] + 1)
        return counted + sum(self._masks[block].bit_count() for block in self._within(low + 1, high))

    def first(self, first: int, end: int) -> int | None:
        """The lowest event in [first, end)."""
        if end <= first:
            return None
        block = first >> _SHIFT
        eid = self._first_in(block, first & (BLOCK - 1))
        if eid is None:
            last = (end - 1) >> _SHIFT
            whole = self._whole.at_or_above(block + 1)
            blocks = self._within(block + 1, last + 1)
            if whole is not None:
                blocks.append(whole[0])
            eid = self._first_in(min(blocks), 0) if blocks else None
        return eid if eid is not None and eid < end else None

    def _first_in(self, block: int, at: int) -> int | None:
        """Of a block, from its place `at` on."""
        if block in self._whole:
            return (block << _SHIFT) + at
        mask = self._masks.get(block, 0) >> at
        return (block << _SHIFT) + at + (mask & -mask).bit_length() - 1 if mask else None

    def remove_below(self, bound: int) -> None:
        """Forget the blocks that lie below `bound`, but for the one that it is in."""
        block = bound >> _SHIFT
        self._whole.remove_below(block)
        for number in self._within(0, block):
            del self._masks[number]

    def _fill(self, block: int, at: int, count: int) -> None:
        if block in self._whole:
            return
        mask = self._masks.get(block, 0) | (((1 << count) - 1) << at)
        if mask == _FULL:
            self._masks.pop(block, None)
            self._whole.add(block, block)
        else:
            self._masks[block] = mask

    def _part(self, block: int, at: int, count: int) -> int:
        """Of at most `count` EIDs of a block from its place `at` on."""
        mask = self._masks.get(block)
        if mask is not None:
            return ((mask >> at) & ((1 << count) - 1)).bit_count()
        return min(count, BLOCK - at) if block in self._whole else 0

    def _within(self, first: int, end: int) -> list[int]:
        """The blocks of [first, end) that have a mask."""
        if end - first < len(self._masks):
            return [block for block in range(first, end) if block in self._masks]
        return [block for block in self._masks if first <= block < end]
