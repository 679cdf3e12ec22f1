"""A clock that a test moves."""

from __future__ import annotations


class StoppedClock:
    """Time moves only when a test moves it."""

    def __init__(self) -> None:
        self.now_s = 1.0

    def monotonic_s(self) -> float:
        return self.now_s

    def epoch_us(self) -> int:
        return int(self.now_s * 1e6)
