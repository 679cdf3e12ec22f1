"""Logins take turns: of one address one attempt is heard at a time, and so one of an (address, user). The others wait
for its end, and for the time at which the throttle lets their user and their address go on.

    queue.enter(attempt)   # False: refuse it unheard
    queue.leave(attempt)   # it is decided, or its peer has gone

`attempt.begin` is called when its turn comes, perhaps within `enter`; `attempt.unheard` when it has waited too long.
Guesses that are sent in parallel gain nothing: each of them begins behind the failure of the one before.
`attempt.address` is what the throttle counts as one (`network`); other addresses do not wait for it. Users of one
address take turns. Seconds of the monotonic clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from gateway.auth.login_throttle import WAIT_MAX_S, LoginThrottle
from native_backend.clock import Clock

WAITING_MAX = 500  # attempts of one address: a password takes some 20 ms, so more would not be heard in `WAIT_MAX_S`


class Timer(Protocol):
    """What `later` gives."""

    def cancel(self) -> None: ...


Later = Callable[[float, Callable[[], None]], Timer]
"""Seconds from now, and what is called then."""


@dataclass(slots=True, eq=False)
class Attempt:
    """One login, and its place in the queue of its address."""

    address: str
    user: str
    begin: Callable[[], None]
    unheard: Callable[[], None]
    since_s: float = 0.0  # it waits


@dataclass(slots=True)
class _Address:
    waiting: dict[str, deque[Attempt]] = field(default_factory=dict)  # by user, the next user first
    count: int = 0  # of those that wait
    heard: Attempt | None = None
    advancing: bool = False
    timer: Timer | None = None
    timer_s: float = inf


class LoginQueue:
    """One process's."""

    def __init__(self, throttle: LoginThrottle, clock: Clock, later: Later, waiting_max: int = WAITING_MAX) -> None:
        """`waiting_max`: so many attempts of one address may wait."""
        self._waiting_max = waiting_max
        self._throttle = throttle
        self._clock = clock
        self._later = later
        self._addresses: dict[str, _Address] = {}

    def __len__(self) -> int:
        """Addresses with an attempt that is heard or waits."""
        return len(self._addresses)

    def enter(self, attempt: Attempt) -> bool:
        """See above. False: it would wait too long, or too many wait there already."""
        now_s, address, user = self._clock.monotonic_s(), attempt.address, attempt.user
        queue = self._addresses.get(address)
        ahead = queue.waiting.get(user, ()) if queue is not None else ()
        due_s = self._throttle.due_s(address, user, now_s)
        expected_s = due_s - now_s + len(ahead) * self._throttle.delay_s(address, user)
        if expected_s > WAIT_MAX_S or (queue is not None and queue.count >= self._waiting_max):
            return False
        if queue is None:
            queue = self._addresses[address] = _Address()
        attempt.since_s = now_s
        queue.waiting.setdefault(user, deque()).append(attempt)
        queue.count += 1
        if queue.heard is None and not ahead and due_s <= now_s:
            self._begin(queue, user)
            self._advance(address, queue)
        elif queue.heard is None:
            self._arm(address, queue, min(due_s, now_s + WAIT_MAX_S))
        return True

    def leave(self, attempt: Attempt) -> None:
        """Its turn is over, or it waits no more. Once more changes nothing."""
        queue = self._addresses.get(attempt.address)
        if queue is None:
            return
        if queue.heard is attempt:
            queue.heard = None
        else:
            self._drop(queue, attempt)
        self._advance(attempt.address, queue)

    def _drop(self, queue: _Address, attempt: Attempt) -> None:
        attempts = queue.waiting.get(attempt.user)
        if attempts is not None and attempt in attempts:
            attempts.remove(attempt)
            queue.count -= 1
            if not attempts:
                del queue.waiting[attempt.user]

    def _begin(self, queue: _Address, user: str) -> None:
        attempts = queue.waiting.pop(user)
        queue.heard = attempts.popleft()
        queue.count -= 1
        if attempts:
            queue.waiting[user] = attempts  # behind the other users
        queue.heard.begin()

    def _advance(self, address: str, queue: _Address) -> None:
        """The next attempt that is due; or a timer for it; or the address is forgotten."""
        if queue.advancing or queue.heard is not None:
            return
        queue.advancing = True  # an attempt may end before `begin` returns
        try:
            while queue.heard is None and (user := self._due(address, queue)) is not None:
                self._begin(queue, user)
        finally:
            queue.advancing = False
        if queue.heard is None and not queue.count and self._addresses.get(address) is queue:
            self._disarm(queue)
            del self._addresses[address]

    def _due(self, address: str, queue: _Address) -> str | None:
        now_s = self._clock.monotonic_s()
        self._expire(queue, now_s - WAIT_MAX_S)
        next_s = inf
        for user, attempts in queue.waiting.items():
            due_s = self._throttle.due_s(address, user, now_s)
            if due_s <= now_s:
                return user
            next_s = min(next_s, due_s, attempts[0].since_s + WAIT_MAX_S)
        if queue.waiting:
            self._arm(address, queue, next_s)
        return None

    def _expire(self, queue: _Address, before_s: float) -> None:
        gone = [attempt for attempts in queue.waiting.values() for attempt in attempts if attempt.since_s <= before_s]
        for attempt in gone:
            self._drop(queue, attempt)
        for attempt in gone:
            attempt.unheard()

    def _arm(self, address: str, queue: _Address, due_s: float) -> None:
        if due_s < queue.timer_s:
            self._disarm(queue)
            queue.timer_s = due_s
            wait_s = max(0.0, due_s - self._clock.monotonic_s())
            queue.timer = self._later(wait_s, lambda: self._on_timer(address, queue))

    def _disarm(self, queue: _Address) -> None:
        if queue.timer is not None:
            queue.timer.cancel()
        queue.timer, queue.timer_s = None, inf

    def _on_timer(self, address: str, queue: _Address) -> None:
        queue.timer, queue.timer_s = None, inf
        self._advance(address, queue)
