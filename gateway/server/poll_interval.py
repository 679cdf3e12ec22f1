"""When the gateway looks next whether the log has something, if nobody tells it before.

While anything is under way every millisecond. A subscription that is open is under way for ever: where nothing has been
said or found for `QUIET_AFTER_S`, it is looked less often, so that consumers that wait cost next to nothing; how late
the first event after that may be is bounded by `QUIET_INTERVAL_S`, and nothing where the log wakes the loop itself.
Monotonic seconds. May import: the standard library only.
"""

from __future__ import annotations

BUSY_INTERVAL_S = 0.001
QUIET_INTERVAL_S = 0.005
IDLE_INTERVAL_S = 0.02
QUIET_AFTER_S = 0.5


class Pace:
    """One loop's. `woken`: the log tells whenever there is something to read."""

    def __init__(self, woken: bool) -> None:
        self._quiet_interval_s = IDLE_INTERVAL_S if woken else QUIET_INTERVAL_S
        self._stirred_s = 0.0

    def stir(self, now_s: float) -> None:
        """A peer has said something, or is told something."""
        self._stirred_s = now_s

    def interval_s(self, now_s: float, busy: bool, ready: bool) -> float:
        """From a turn to the next. `busy`: the realm has something under way; `ready`: a link was not given all that it
        may have."""
        if ready:
            return BUSY_INTERVAL_S
        if not busy:
            return IDLE_INTERVAL_S
        return BUSY_INTERVAL_S if now_s - self._stirred_s < QUIET_AFTER_S else self._quiet_interval_s
