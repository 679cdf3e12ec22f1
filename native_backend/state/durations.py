"""How long something took, counted in classes: what a histogram shows, at two additions and a bisection each.

Seconds. One thread adds.
"""

from __future__ import annotations

from bisect import bisect_left

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Durations:
    """`counts[i]`: those of at most `BOUNDS_S[i]` and more than the bound before; the last: all longer ones."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.total_s = 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        """So many took so long."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += count
        self.total_s += seconds * count
