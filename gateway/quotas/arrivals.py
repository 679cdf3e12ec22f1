"""How fast one address may open connections. Those that come faster are not refused: they wait for their turn, and
connections of other addresses do not wait for them.

    arrivals.enter(socket, address)   # `socket.begin` is called now, or when its turn comes; or `socket.refuse`
    arrivals.leave(socket)            # it has gone
    arrivals.charge(address)          # a connection of that address has ended for a fault

A token bucket for each address: `limits.connections_per_s` tokens a second, and `BURST_S` seconds' worth of them at
most, so that a fleet behind one address is in at once after a restart. A connection takes one token. One that ended for
a fault takes `FAULT_TOKENS` more, and these may be owed, so who fails in a loop is slow. The oldest that waits is the
next one. `WAIT_MAX_S` seconds' worth may wait, and none waits longer.

Addresses are counted as the login throttle counts them: of IPv6 the /64 network. Seconds of the monotonic clock.
Source: ADR 0122.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, Protocol

from gateway.auth.login_queue import Later, Timer
from gateway.auth.login_throttle import network
from gateway.config.limits import Limits
from gateway.evidence.notices import Notices
from native_backend.clock import Clock

BURST_S: Final = 5
DEBT_S: Final = 2  # what may be owed, in seconds' worth: an address is never shut for longer
WAIT_MAX_S: Final = 10
FAULT_TOKENS: Final = 10
ADDRESSES_MAX: Final = 10_000  # remembered; the one that came least recently is forgotten
HELD_BYTES: Final = 16_777_216  # of all that wait: what they have sent already


class Arrival(Protocol):
    """A socket that was accepted. One of the two is called, once, unless it leaves before."""

    def begin(self) -> None: ...

    def refuse(self, reason: str) -> None: ...


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_s: float


@dataclass(slots=True)
class _Queue:
    """Of one address whose connections wait."""

    bucket: _Bucket
    since_s: dict[Arrival, float] = field(default_factory=dict)  # the oldest first
    timer: Timer | None = None


class Arrivals:
    """One process's. `later` is the loop's, before the first one waits."""

    later: Later

    def __init__(self, limits: Limits, clock: Clock, notices: Notices) -> None:
        self._rate = limits.connections_per_s
        self._clock = clock
        self._notices = notices
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()
        self._queues: dict[str, _Queue] = {}
        self._places: dict[Arrival, str] = {}  # of those that wait
        self.delayed = 0  # have waited, or do
        self.held_bytes = 0

    @property
    def waiting(self) -> int:
        return len(self._places)

    def standing(self) -> str:
        """What waits now, in words; empty: nothing."""
        if not self._queues:
            return ""
        where, most = max(self._queues.items(), key=lambda pair: len(pair[1].since_s))
        who = f"{len(most.since_s)} of them from {where}"
        return f"{self.waiting} new connections wait for their turn, {who}: limits.connections_per_s"

    def enter(self, arrival: Arrival, address: str) -> bool:
        """True: it has begun. False: it waits, or was refused."""
        where, now_s = network(address), self._clock.monotonic_s()
        queue = self._queues.get(where)
        if queue is None:
            bucket = self._bucket(where, now_s)
            if bucket.tokens >= 1:
                bucket.tokens -= 1
                arrival.begin()
                return True
            queue = self._queues[where] = _Queue(bucket)
            self._tell(address, where)
        if len(queue.since_s) >= WAIT_MAX_S * self._rate:
            arrival.refuse(f"{len(queue.since_s)} connections of its address wait already")
            return False
        queue.since_s[arrival] = now_s
        self._places[arrival] = where
        self.delayed += 1
        if queue.timer is None:
            self._arm(where, queue, now_s)
        return False

    def leave(self, arrival: Arrival) -> None:
        """It has gone. Where it does not wait this changes nothing."""
        where = self._places.pop(arrival, None)
        if where is None:
            return
        queue = self._queues[where]
        del queue.since_s[arrival]
        if not queue.since_s:
            self._end(where, queue)

    def charge(self, address: str) -> None:
        """A connection of that address has ended for a fault: those that follow pay for it."""
        where, now_s = network(address), self._clock.monotonic_s()
        queue = self._queues.get(where)
        bucket = queue.bucket if queue is not None else self._bucket(where, now_s)
        self._fill(bucket, now_s)
        bucket.tokens = max(bucket.tokens - FAULT_TOKENS, -DEBT_S * self._rate)

    def hold(self, size_bytes: int) -> bool:
        """One that waits has sent so much, or has it no more (negative). False: that is too much of all."""
        self.held_bytes += size_bytes
        return self.held_bytes <= HELD_BYTES

    def _bucket(self, where: str, now_s: float) -> _Bucket:
        bucket = self._buckets.pop(where, None)
        if bucket is None:
            bucket = _Bucket(BURST_S * self._rate, now_s)
        self._buckets[where] = bucket
        self._fill(bucket, now_s)
        if len(self._buckets) > ADDRESSES_MAX:
            self._buckets.popitem(last=False)
        return bucket

    def _fill(self, bucket: _Bucket, now_s: float) -> None:
        bucket.tokens = min(BURST_S * self._rate, bucket.tokens + (now_s - bucket.filled_s) * self._rate)
        bucket.filled_s = now_s

    def _arm(self, where: str, queue: _Queue, now_s: float) -> None:
        """For the next token, or the end of the oldest one's patience."""
        oldest_s = next(iter(queue.since_s.values()))
        wait_s = min((1 - queue.bucket.tokens) / self._rate, oldest_s + WAIT_MAX_S - now_s)
        queue.timer = self.later(max(0.0, wait_s), lambda: self._advance(where, queue))

    def _advance(self, where: str, queue: _Queue) -> None:
        queue.timer = None
        now_s = self._clock.monotonic_s()
        self._fill(queue.bucket, now_s)
        while queue.since_s:
            arrival, since_s = next(iter(queue.since_s.items()))
            if now_s - since_s >= WAIT_MAX_S:
                self._take(queue, arrival)
                arrival.refuse(f"it has waited {WAIT_MAX_S} s for its turn")
            elif queue.bucket.tokens >= 1:
                self._take(queue, arrival)
                queue.bucket.tokens -= 1
                arrival.begin()
            else:
                self._arm(where, queue, now_s)
                return
        if self._queues.get(where) is queue:
            self._end(where, queue)

    def _take(self, queue: _Queue, arrival: Arrival) -> None:
        del queue.since_s[arrival]
        del self._places[arrival]

    def _end(self, where: str, queue: _Queue) -> None:
        """None of that address waits any more."""
        if queue.timer is not None:
            queue.timer.cancel()
            queue.timer = None
        del self._queues[where]

    def _tell(self, address: str, where: str) -> None:
        why = f"it opens more than {self._rate} a second, or its connections end for a fault"
        words = f"new connections of {address} wait for their turn: {why} (limits.connections_per_s)"
        self._notices.tell("connections wait", where, words, {"address": address})
