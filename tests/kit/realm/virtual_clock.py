"""Virtual time: milliseconds that pass only when the world says so."""

from __future__ import annotations

START_MS = 1_700_000_000_000


class VirtualClock:
    """The `Clock` of the gateway and the realm, and `now_ms` of the log."""

    def __init__(self) -> None:
        self._now_ms = START_MS

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_s(self) -> float:
        return self._now_ms / 1000

    def epoch_us(self) -> int:
        return self._now_ms * 1000

    def advance(self, milliseconds: int) -> None:
        self._now_ms += milliseconds
