"""A clock that runs, and that a test moves forward."""

from __future__ import annotations

from native_backend.clock import Clock


class SteeredClock:
    """A clock whose time of day a test moves forward. Intervals stay: a lease does not lapse by it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_us = 0

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s()

    def epoch_us(self) -> int:
        return self._clock.epoch_us() + self._ahead_us

    def move(self, ms: int) -> None:
        self._ahead_us += ms * 1000
