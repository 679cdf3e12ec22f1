"""Heartbeats, both ways: a peer that states an idle time-out gets a frame within half of it, from its OPEN on; a peer
that is silent for longer than our idle time-out is noticed.

A connection that got no frame for a quarter of its idle time-out gets an empty one. So a turn may take another quarter,
and the peer still gets it in time. One heap has all connections by when they are due; the turn looks at the earliest,
and the server's timer is never later than that. A connection that got a frame meanwhile is put back: a message costs
nothing, and a write notes a time.

Monotonic seconds; an idle time-out is milliseconds, as in OPEN. Source: AMQP 1.0 part 2, 2.4.5. ADR 0082.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import Final, Generic, Protocol, TypeVar

from gateway.config.limits import HEARTBEATS_PER_S, IDLE_TIMEOUT_MIN_MS
from gateway.frames.frames import Frame
from native_backend.clock import Clock

INTERVAL_MAX_S = 30.0  # of those that wait very long: what has gone is forgotten so soon
_IDLE_TIMEOUT_AT: Final = 4  # in an open


class Liveness:
    """Of one connection: when its peer sent something last, and got something last."""

    def __init__(self, clock: Clock) -> None:
        self.heard = True  # since the last look
        self.told_s = 0.0  # where the peer wants heartbeats
        self._clock = clock
        self._heard_s = 0.0
        self._wants_heartbeats = False

    def wants_heartbeats(self) -> float:
        """From now on; the time."""
        self._wants_heartbeats = True
        self.sent()
        return self.told_s

    def sent(self) -> None:
        if self._wants_heartbeats:
            self.told_s = self._clock.monotonic_s()

    def silence_s(self, now_s: float) -> float:
        """For how long the peer has been silent, as far as it was looked at."""
        if self.heard:
            self.heard, self._heard_s = False, now_s
        return now_s - self._heard_s


class Beating(Protocol):
    """A connection that heartbeats are kept for."""

    @property
    def liveness(self) -> Liveness: ...

    def beat(self, now_s: float) -> None:
        """A heartbeat is due."""


B = TypeVar("B", bound=Beating)


class Heartbeats(Generic[B]):
    """Of all connections of a gateway."""

    def __init__(self) -> None:
        self.due_s = inf  # the earliest
        self._heap: list[tuple[float, int, B]] = []
        self._intervals_s: dict[B, float] = {}
        self._per_s = 0.0  # of all together, when all are silent
        self._count = 0  # keeps those apart that are due at one time

    def keep(self, connection: B, opened: Frame) -> str:
        """Its peer may want to hear something every so often. Why that cannot be; empty: it is kept from now on."""
        idle_timeout_ms = int(opened.field(_IDLE_TIMEOUT_AT) or 0)
        if not idle_timeout_ms:
            return ""
        if idle_timeout_ms < IDLE_TIMEOUT_MIN_MS:
            return f"idle-time-out of {idle_timeout_ms} ms: {IDLE_TIMEOUT_MIN_MS} ms is the shortest that is kept"
        interval_s = min(idle_timeout_ms / 4000, INTERVAL_MAX_S)
        if self._per_s + 1 / interval_s > HEARTBEATS_PER_S:
            return f"idle-time-out of {idle_timeout_ms} ms: all peers together want too many heartbeats"
        self._per_s += 1 / interval_s
        self._intervals_s[connection] = interval_s
        self._push(connection, connection.liveness.wants_heartbeats() + interval_s)
        return ""

    def leave(self, connection: B) -> None:
        """It is closing, or has gone. What is in the heap goes when it is due."""
        interval_s = self._intervals_s.pop(connection, None)
        if interval_s is not None:
            self._per_s -= 1 / interval_s

    def beat(self, now_s: float) -> list[B]:
        """Those that have a heartbeat to send now. A connection that is due and got a frame meanwhile is put back."""
        heap, beating = self._heap, []
        while heap and heap[0][0] <= now_s:
            connection = heappop(heap)[2]
            interval_s = self._intervals_s.get(connection)
            if interval_s is not None:
                # Added as it is pushed: however it is rounded, what is put back is later than now.
                if connection.liveness.told_s + interval_s <= now_s:
                    connection.beat(now_s)
                    beating.append(connection)
                self._push(connection, connection.liveness.told_s + interval_s)
        self.due_s = heap[0][0] if heap else inf
        return beating

    def _push(self, connection: B, due_s: float) -> None:
        self._count += 1
        heappush(self._heap, (due_s, self._count, connection))
        self.due_s = self._heap[0][0]
