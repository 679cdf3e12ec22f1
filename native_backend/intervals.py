"""A set of integers as merged inclusive ranges, found by bisection.

Adding or removing a range costs a bisection and, out of order, one shift of the ranges above it.
May import: the standard library only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator


class Intervals:
    """Disjoint ranges [first, last], never touching, in rising order."""

    __slots__ = ("firsts", "lasts")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self.firsts: list[int] = []
        self.lasts: list[int] = []
        for first, last in ranges:
            self.add(first, last)

    def __len__(self) -> int:
        """How many ranges."""
        return len(self.firsts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.firsts, self.lasts, strict=True)

    def __contains__(self, value: int) -> bool:
        at = bisect_left(self.lasts, value)
        return at < len(self.firsts) and self.firsts[at] <= value

    def count(self) -> int:
        """How many integers."""
        return sum(self.lasts) - sum(self.firsts) + len(self.firsts)

    def add(self, first: int, last: int) -> None:
        """Every integer of [first, last] is in the set."""
        lasts = self.lasts
        if not lasts or first > lasts[-1] + 1:
            self.firsts.append(first)
            lasts.append(last)
            return
        begin = bisect_left(lasts, first - 1)
        end = bisect_right(self.firsts, last + 1)
        if begin < end:
            first = min(first, self.firsts[begin])
            last = max(last, lasts[end - 1])
        self.firsts[begin:end] = [first]
        lasts[begin:end] = [last]

    def remove(self, first: int, last: int) -> bool:
        """Take [first, last] out; False, and nothing is changed, unless all of it was in the set."""
        at = bisect_left(self.lasts, last)
        if at == len(self.firsts) or self.firsts[at] > first:
            return False
        low, high = self.firsts[at], self.lasts[at]
        if low == first and high == last:
            del self.firsts[at], self.lasts[at]
        elif low == first:
            self.firsts[at] = last + 1
        elif high == last:
            self.lasts[at] = first - 1
        else:
            self.lasts[at] = first - 1
            self.firsts.insert(at + 1, last + 1)
            self.lasts.insert(at + 1, high)
        return True

    def remove_below(self, bound: int) -> int:
        """Take every integer below `bound` out; returns how many there were."""
        whole = bisect_left(self.lasts, bound)
        removed = sum(self.lasts[:whole]) - sum(self.firsts[:whole]) + whole
        del self.firsts[:whole], self.lasts[:whole]
        if self.firsts and self.firsts[0] < bound:
            removed += bound - self.firsts[0]
            self.firsts[0] = bound
        return removed

    def holes(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """The ranges of [first, end) that are not in the set."""
        for low, high in self:
            if low >= end:
                break
            if low > first:
                yield first, low - 1
            first = max(first, high + 1)
        if first < end:
            yield first, end - 1


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
