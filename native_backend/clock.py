"""Clocks: intervals from one that only goes forward, times of day only where a record carries one.

The monotonic clock of Linux stands while a machine is suspended: a lease that has lapsed meanwhile would be held on.

Units: seconds for intervals, microseconds since 1970 (UTC) for times. The simulation passes its own `Clock`.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Protocol


class Clock(Protocol):
    """The only source of time below the gateway."""

    def monotonic_s(self) -> float: ...

    def epoch_us(self) -> int: ...


class SystemClock:
    """The machine's own clocks."""

    monotonic_s = staticmethod(partial(time.clock_gettime, time.CLOCK_BOOTTIME))  # it goes on in a suspended machine

    def epoch_us(self) -> int:
        return time.time_ns() // 1000
