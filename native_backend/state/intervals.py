"""A set of integers as merged inclusive ranges, in blocks: sorted columns of at most `BLOCK` ranges each.

Adding or removing a range costs a bisection over the blocks, one within a block, and one shift within it; so a million
ranges cost hardly more than ten. The first block is a pair of lists, which are quick; what is split off is a pair of
arrays, in which a range takes 16 bytes instead of 80.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import TypeAlias

BLOCK = 512  # ranges; a fuller block is halved
STEP_BLOCKS = 32  # counted without a pause: some 300 us
Column: TypeAlias = "list[int] | array[int]"  # of EIDs: 64 bits


class Intervals:
    """Disjoint ranges [first, last], never touching, in rising order."""

    __slots__ = ("_firsts", "_lasts", "_tops")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[Column] = []  # by block; no block is empty
        self._lasts: list[Column] = []
        self._tops: list[int] = []  # the last integer of each block
        for first, last in ranges:
            self.add(first, last)

    def copy(self) -> Intervals:
        copied = Intervals()
        copied._firsts = [firsts[:] for firsts in self._firsts]
        copied._lasts = [lasts[:] for lasts in self._lasts]
        copied._tops = self._tops[:]
        return copied

    def __bool__(self) -> bool:
        return bool(self._tops)

    def __len__(self) -> int:
        """How many ranges."""
        return sum(map(len, self._firsts))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for firsts, lasts in zip(self._firsts, self._lasts, strict=True):
            yield from zip(firsts, lasts, strict=True)

    def __contains__(self, value: int) -> bool:
        block = bisect_left(self._tops, value)
        if block == len(self._tops):
            return False
        return self._firsts[block][bisect_left(self._lasts[block], value)] <= value

    def count(self) -> int:
        """How many integers."""
        return sum(map(sum, self._lasts)) - sum(map(sum, self._firsts)) + len(self)

    def counting(self) -> Iterator[int | None]:
        """The same in steps: None after each, then the number; what changes meanwhile may be counted or not."""
        counted = 0
        for block in range(len(self._tops)):
            if block < len(self._tops):  # it may have become smaller
                firsts, lasts = self._firsts[block], self._lasts[block]
                counted += sum(lasts) - sum(firsts) + len(firsts)
            if block % STEP_BLOCKS == STEP_BLOCKS - 1:
                yield None
        yield counted

    def at_or_above(self, bound: int) -> tuple[int, int] | None:
        """The lowest range with anything at or above `bound`, without what lies below it."""
        block = bisect_left(self._tops, bound)
        if block == len(self._tops):
            return None
        lasts = self._lasts[block]
        at = bisect_left(lasts, bound)
        return max(self._firsts[block][at], bound), lasts[at]

    def first_hole(self, first: int, last: int) -> tuple[int, int] | None:
        """The lowest range of [first, last] that has nothing of the set."""
        span = self.at_or_above(first)
        if span is not None and span[0] == first:
            first = span[1] + 1
            span = self.at_or_above(first)
        if first > last:
            return None
        return first, last if span is None else min(last, span[0] - 1)

    def add(self, first: int, last: int) -> None:
        """Every integer of [first, last] is in the set."""
        tops = self._tops
        if not tops or first > tops[-1] + 1:
            self._append(first, last)
            return
        block = bisect_left(tops, first - 1) if len(tops) > 1 else 0
        firsts, lasts = self._firsts[block], self._lasts[block]
        begin = bisect_left(lasts, first - 1)
        if firsts[begin] > last + 1:  # touches nothing
            firsts.insert(begin, first)
            lasts.insert(begin, last)
            if len(firsts) > BLOCK:
                self._halve(block)
            return
        if first < firsts[begin]:
            firsts[begin] = first
        if last > lasts[begin]:
            lasts[begin] = last
            if begin == len(lasts) - 1:
                tops[block] = last
            self._swallow(block, begin)

    def remove(self, first: int, last: int) -> bool:
        """Take [first, last] out; False, and nothing is changed, unless all of it was in the set."""
        tops = self._tops
        block = bisect_left(tops, last) if len(tops) > 1 else 0
        if block == len(tops) or tops[block] < last:
            return False
        firsts, lasts = self._firsts[block], self._lasts[block]
        at = bisect_left(lasts, last)
        low, high = firsts[at], lasts[at]
        if low > first:
            return False
        if low == first:
            if high == last:
                self._drop(block, at, at + 1)
            else:
                firsts[at] = last + 1
            return True
        lasts[at] = first - 1
        if high != last:
            firsts.insert(at + 1, last + 1)
            lasts.insert(at + 1, high)
            if len(firsts) > BLOCK:
                self._halve(block)
        elif at == len(lasts) - 1:
            tops[block] = first - 1
        return True

    def discard(self, first: int, last: int) -> None:
        """Take out whatever of [first, last] is in the set."""
        while (span := self.at_or_above(first)) is not None and span[0] <= last:
            self.remove(span[0], min(span[1], last))

    def remove_below(self, bound: int) -> int:
        """Take every integer below `bound` out; returns how many there were."""
        removed = 0
        while self._tops and self._firsts[0][0] < bound:
            firsts, lasts = self._firsts[0], self._lasts[0]
            whole = bisect_left(lasts, bound)
            removed += sum(lasts[:whole]) - sum(firsts[:whole]) + whole
            if whole < len(firsts) and firsts[whole] < bound:
                removed += bound - firsts[whole]
                firsts[whole] = bound
            self._drop(0, 0, whole)
        return removed

    def remove_from(self, bound: int) -> None:
        """Take every integer at or above `bound` out."""
        while self._tops and self._firsts[-1][0] >= bound:
            del self._firsts[-1], self._lasts[-1], self._tops[-1]
        if self._tops and self._tops[-1] >= bound:
            firsts, lasts = self._firsts[-1], self._lasts[-1]
            at = bisect_left(lasts, bound)
            if firsts[at] < bound:
                lasts[at], at = bound - 1, at + 1
            del firsts[at:], lasts[at:]
            self._tops[-1] = lasts[-1]

    def absorb(self, low: int) -> int:
        """The lowest integer from `low` up that is not in the set; what lies below it is taken out."""
        if self._tops and self._firsts[0][0] <= low:
            span = self.at_or_above(low)
            if span is not None and span[0] == low:
                low = span[1] + 1
            self.remove_below(low)
        return low

    def holes(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """The ranges of [first, end) that are not in the set."""
        for low, high in self.reaching(first):
            if low >= end:
                break
            if low > first:
                yield first, low - 1
            first = high + 1
        if first < end:
            yield first, end - 1

    def reaching(self, bound: int) -> Iterator[tuple[int, int]]:
        """The ranges that have anything at or above `bound`."""
        begin = bisect_left(self._tops, bound)
        for block in range(begin, len(self._tops)):
            at = bisect_left(self._lasts[block], bound) if block == begin else 0
            yield from zip(self._firsts[block][at:], self._lasts[block][at:], strict=True)

    def _append(self, first: int, last: int) -> None:
        """A range above all others."""
        if self._tops and len(self._firsts[-1]) < BLOCK:
            self._firsts[-1].append(first)
            self._lasts[-1].append(last)
            self._tops[-1] = last
        else:
            self._firsts.append(array("q", (first,)) if self._tops else [first])
            self._lasts.append(array("q", (last,)) if self._tops else [last])
            self._tops.append(last)

    def _swallow(self, block: int, at: int) -> None:
        """The range `at` has grown upwards: take in those that it reaches."""
        firsts, lasts, tops = self._firsts[block], self._lasts[block], self._tops
        last = lasts[at]
        end = bisect_right(firsts, last + 1, at + 1)
        if end > at + 1:
            lasts[at] = max(last, lasts[end - 1])
            del firsts[at + 1 : end], lasts[at + 1 : end]
            tops[block] = lasts[-1]
        if at + 1 < len(firsts):
            return
        while block + 1 < len(tops) and self._firsts[block + 1][0] <= last + 1:
            end = bisect_right(self._firsts[block + 1], last + 1)
            tops[block] = lasts[at] = max(last, self._lasts[block + 1][end - 1])
            self._drop(block + 1, 0, end)

    def _drop(self, block: int, begin: int, end: int) -> None:
        """Take ranges out of a block, and the block with its last one."""
        firsts, lasts = self._firsts[block], self._lasts[block]
        if end - begin == len(firsts):
            del self._firsts[block], self._lasts[block], self._tops[block]
            return
        del firsts[begin:end], lasts[begin:end]
        self._tops[block] = lasts[-1]

    def _halve(self, block: int) -> None:
        firsts, lasts = self._firsts[block], self._lasts[block]
        half = len(firsts) // 2
        self._firsts.insert(block + 1, array("q", firsts[half:]))
        self._lasts.insert(block + 1, array("q", lasts[half:]))
        self._tops.insert(block, lasts[half - 1])
        del firsts[half:], lasts[half:]


def dense_runs(values: list[int]) -> list[tuple[int, int]]:
    """Rising values as the ranges of consecutive ones."""
    if not values:
        return []
    if values[-1] - values[0] == len(values) - 1:  # rising, hence dense
        return [(values[0], values[-1])]
    runs = []
    first = last = values[0]
    for value in values:
        if value > last + 1:
            runs.append((first, last))
            first = value
        last = value
    runs.append((first, last))
    return runs
