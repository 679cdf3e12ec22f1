"""Clocks: intervals from the monotonic one, times of day only where a record carries one.

Units: seconds for intervals, microseconds since 1970 (UTC) for times. The simulation passes its own `Clock`.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The only source of time below the gateway."""

    def monotonic_s(self) -> float: ...

    def epoch_us(self) -> int: ...


class SystemClock:
    """The machine's own clocks."""

    monotonic_s = staticmethod(time.monotonic)  # read several times a batch: a call less each time

    def epoch_us(self) -> int:
        return time.time_ns() // 1000
