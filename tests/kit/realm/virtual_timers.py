"""`later` of a loop, by a virtual clock."""

from __future__ import annotations

import math
from collections.abc import Callable

from tests.kit.realm.virtual_clock import VirtualClock


class VirtualTimers:
    """What is due is called by `advance` and `advance_to_next`, which move the clock there."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._timers: list[VirtualTimer] = []

    def later(self, wait_s: float, call: Callable[[], None]) -> VirtualTimer:
        timer = VirtualTimer(self._clock.now_ms() + math.ceil(wait_s * 1000 - 1e-6), call)
        self._timers.append(timer)
        return timer

    def __len__(self) -> int:
        """Those to come."""
        self._timers = [timer for timer in self._timers if not timer.cancelled]
        return len(self._timers)

    def advance(self, milliseconds: int) -> None:
        """So much passes, and what is due meanwhile is called."""
        end_ms = self._clock.now_ms() + milliseconds
        while len(self) and min(timer.due_ms for timer in self._timers) <= end_ms:
            self.advance_to_next()
        self._clock.advance(end_ms - self._clock.now_ms())

    def advance_to_next(self) -> bool:
        """False: there is none."""
        if not len(self):
            return False
        first = min(self._timers, key=lambda timer: timer.due_ms)
        self._timers.remove(first)
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
