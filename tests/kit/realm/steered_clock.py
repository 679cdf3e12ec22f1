"""A clock that runs, and that a test moves forward."""

from __future__ import annotations

from native_backend.clock import Clock


class SteeredClock:
    """A clock whose time of day and whose intervals a test moves forward, each by itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_us = 0
        self._later_s = 0.0

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s() + self._later_s

    def epoch_us(self) -> int:
        return self._clock.epoch_us() + self._ahead_us

    def move(self, ms: int) -> None:
        """The time of day only: what has a time to live or a delay feels it, a lease does not."""
        self._ahead_us += ms * 1000

    def lapse(self, seconds: float) -> None:
        """Intervals only, as if the process had been stopped for so long: its lease lapses."""
        self._later_s += seconds
