"""How long a link has had no credit: as a publisher none from the gateway, as a consumer none from its peer.

The clock is read where credit ends and where it begins anew, not for a message. Monotonic seconds.
"""

from __future__ import annotations

from native_backend.clock import Clock


class WithoutCredit:
    """Of one link. A link begins without credit."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.since_s: float | None = clock.monotonic_s()
        self._before_s = 0.0  # all times that are over

    def begin(self) -> None:
        """There is none now."""
        if self.since_s is None:
            self.since_s = self._clock.monotonic_s()

    def end(self) -> None:
        """There is some now."""
        if self.since_s is not None:
            self._before_s += self._clock.monotonic_s() - self.since_s
            self.since_s = None

    def now_s(self) -> float:
        """For how long there has been none; 0 where there is some."""
        return 0.0 if self.since_s is None else self._clock.monotonic_s() - self.since_s

    def total_s(self) -> float:
        """In the life of the link."""
        return self._before_s + self.now_s()
