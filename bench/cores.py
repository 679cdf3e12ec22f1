"""How fast the machine's cores run just now, beside the fastest that this process has seen them.

A shared host may give a guest's cores half their speed for minutes, and tell it nothing. Samples of which some were
taken then have no median that means anything, and half the top rate of a good minute is more than all of a bad one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median

ADDITIONS = 100_000  # some ten milliseconds of one core
LOOKS, APART_S = 7, 0.1
FULL = 0.8  # of the best
PATIENCE_S = 900.0  # of the whole process


class Cores:
    """Waits for them, as long as its patience lasts."""

    def __init__(self, look: Callable[[], float] | None = None, pause: Callable[[float], None] = time.sleep) -> None:
        """`look`: seconds that a fixed piece of work takes."""
        self._look = look or _work_s
        self._pause = pause
        self._best_s = float("inf")
        self._patience_s = PATIENCE_S

    def speed(self) -> float:
        """Of the best so far, 0 to 1: of the median of some looks, as single ones are disturbed by anything."""
        looks = []
        for _ in range(LOOKS):
            looks.append(self._look())
            self._pause(APART_S)
        self._best_s = min(self._best_s, *looks)
        return round(self._best_s / median(looks), 2)

    def await_full(self) -> float:
        """The speed: at least `FULL`, unless patience has come to its end."""
        while (speed := self.speed()) < FULL and self._patience_s > 0:
            print(f"the cores run at {speed:.0%} of their best: waiting", file=sys.stderr, flush=True)
            self._patience_s -= LOOKS * APART_S
        return speed


def _work_s() -> float:
    begin, count = time.perf_counter(), 0
    for number in range(ADDITIONS):
        count += number
    return time.perf_counter() - begin
