"""Browsing a queue: a link sees what is there, without taking it, and goes on with what comes.

It sees every event that has not ended, also what consumers have just now, from the oldest on; what it is given it need
not settle, and whatever it says of it changes nothing. `looking` until it has seen what was there when it attached, so
that a drain is answered when that has been given and not before.
Source: semantics.md 2.V, 2.K-4; JMS 2.0 section 6.8. May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

from collections.abc import Callable

from native_backend.acknowledgement import Acknowledgement
from native_backend.delivery import Delivered, Gathering
from native_backend.expiry import stretch
from native_backend.feed import Chunk
from native_backend.lobby import Wake
from native_backend.log import Failure
from native_backend.services import Services
from native_backend.subscription import PlainSubscription, Subscribe, Subscription


class Browsing(PlainSubscription):
    """A link that browses. `last`: the last event that was there when it attached."""

    def __init__(
        self,
        services: Services,
        request: Subscribe,
        owner: object,
        closed: Callable[[Subscription], None],
        state: Acknowledgement,
        last: int,
    ) -> None:
        super().__init__(services, request, owner, closed, state.low)
        self._state, self._last = state, last

    def take(self, count_max: int, bytes_max: int) -> Delivered | None:
        gathering = Gathering(count_max, bytes_max)
        self.looking = False
        if self._services.journal.fenced and self._lost is None and self._open:
            self.lose("in-use", "fenced")
        cursor = self._cursor
        while gathering.room > 0 and self._open and self._lost is None:
            cursor.position = max(cursor.position, self._state.low)
            chunk = self._feed.next(cursor)
            if isinstance(chunk, Failure):
                self._unreadable(chunk)
                break
            if chunk is None:
                self.looking = cursor.position <= self._last
                break
            if not self._look(chunk, gathering):
                break
        return gathering.delivered(self._state.failed, 0)

    def is_searched(self) -> bool:
        return not self.looking

    def park(self, wake: Wake) -> bool:
        return not self.looking and super().park(wake)

    def _look(self, chunk: Chunk, gathering: Gathering) -> bool:
        """At the first part of it that has one fate; False: not now."""
        cursor = self._cursor
        begin = chunk.index(cursor.position)
        there = None
        if begin < len(chunk.eids):
            there = self._state.acked.first_hole(chunk.eids[begin], chunk.eids[-1])
        if there is None:
            cursor.position = chunk.end
            return True
        begin, end, lives = chunk.index(there[0]), chunk.index(there[1] + 1), True
        if begin == end:
            cursor.position = there[1] + 1
            return True
        if chunk.expiries_ms is not None:
            end, lives = stretch(chunk.expiries_ms, begin, end, self._services.clock.epoch_us() // 1000)
        if lives and self._sieve is not None:
            found = self._sieve.stretch(chunk, begin, end)
            if found is None:
                self.looking = True
                return False
            end, lives = found
        if lives and chunk.marks is not None and chunk.marks.due_ms is not None:  # what is not due is not shown
            end, later = stretch(chunk.marks.due_ms, begin, end, self._services.clock.epoch_us() // 1000)
            lives = not later
        eids = gathering.add(chunk, begin, end) if lives else chunk.eids[begin:end]
        if eids:
            cursor.position = eids[-1] + 1
        return bool(eids)
