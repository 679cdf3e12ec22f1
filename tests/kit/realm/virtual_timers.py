"""`later` of a loop, by a virtual clock."""

from __future__ import annotations

import math
from collections.abc import Callable

from tests.kit.realm.virtual_clock import VirtualClock


class VirtualTimers:
    """What is due is called by `advance_to_next`, which moves the clock there."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._timers: list[VirtualTimer] = []

    def later(self, wait_s: float, call: Callable[[], None]) -> VirtualTimer:
        timer = VirtualTimer(self._clock.now_ms() + math.ceil(wait_s * 1000 - 1e-6), call)
        self._timers.append(timer)
        return timer

    def advance_to_next(self) -> bool:
        """False: there is none."""
        timers = self._timers = [timer for timer in self._timers if not timer.cancelled]
        if not timers:
            return False
        first = min(timers, key=lambda timer: timer.due_ms)
        timers.remove(first)
        self._clock.advance(max(0, first.due_ms - self._clock.now_ms()))
        first.call()
        return True


class VirtualTimer:
    """One call that is still to come."""

    def __init__(self, due_ms: int, call: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True
