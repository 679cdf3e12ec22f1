"""The value that measurements scatter around, and an interval of 90 % for it: the median of the averages of each two
(Hodges and Lehmann), and the interval of Wilcoxon's signed ranks. They need no normal distribution, and a measurement
that something has disturbed moves them little.

Source: Hollander and Wolfe, Nonparametric Statistical Methods, 3.2 and 3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from statistics import median
from typing import Final, NamedTuple

TAIL: Final = 0.05
"""On each side: an interval of 90 %."""
LEAST: Final = 5
"""With fewer values there is no such interval."""


class Interval(NamedTuple):
    low: float
    middle: float
    high: float

    def verdict(self, most: float) -> str:
        """Is it at most so much?"""
        if self.high <= most:
            return "shown"
        return "refuted" if self.low > most else "not decided"


def interval(values: Sequence[float]) -> Interval:
    """Raises ValueError with fewer than `LEAST`."""
    if len(values) < LEAST:
        raise ValueError(f"{len(values)} values have no interval of 90 %: {LEAST} are the least")
    averages = sorted((a + b) / 2 for at, a in enumerate(values) for b in values[at:])
    place = end_place(len(values))
    return Interval(averages[place - 1], median(averages), averages[-place])


def end_place(count: int) -> int:
    """Which average from below, and which from above, is an end of the interval of `count` values: the sum of signed
    ranks lies below that number with a probability of at most `TAIL`. 0: there is none."""
    ways = [1]  # how many of the choices of ranks have that sum
    for rank in range(1, count + 1):
        shifted = [0] * rank + ways
        ways = [a + b for a, b in zip(ways + [0] * rank, shifted, strict=True)]
    return sum(total <= TAIL * 2**count for total in accumulate(ways))
