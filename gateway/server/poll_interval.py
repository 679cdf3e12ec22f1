"""When the gateway polls the log next, unless the log wakes it before.

While anything is under way, it polls every millisecond. An open subscription is under way for ever: after
`QUIET_AFTER_S` without a frame or an event it polls less often, so that waiting consumers cost next to nothing. The
first event after that is at most `QUIET_INTERVAL_S` late, and not late where the log wakes the loop itself. Monotonic
seconds.
"""

from __future__ import annotations

BUSY_INTERVAL_S = 0.001
QUIET_INTERVAL_S = 0.005
IDLE_INTERVAL_S = 0.02
QUIET_AFTER_S = 0.5


class PollInterval:
    """One loop's. `woken`: the log wakes the loop whenever there is something to read."""

    def __init__(self, woken: bool) -> None:
        self._quiet_interval_s = IDLE_INTERVAL_S if woken else QUIET_INTERVAL_S
        self._active_s = 0.0

    def mark_active(self, now_s: float) -> None:
        """A peer has sent something, or gets something."""
        self._active_s = now_s

    def interval_s(self, now_s: float, busy: bool, ready: bool) -> float:
        """From a turn to the next. `busy`: the realm has something under way; `ready`: a link was not given all that it
        may have."""
        if ready:
            return BUSY_INTERVAL_S
        if not busy:
            return IDLE_INTERVAL_S
        return BUSY_INTERVAL_S if now_s - self._active_s < QUIET_AFTER_S else self._quiet_interval_s
