"""Browsing a queue: a link sees what is there, without taking it, and goes on with what comes.

It sees every event that has not ended, also what consumers have just now, from the oldest on; what it is given it need
not settle, and whatever it says of it changes nothing. At an event that is about to end (its consumer has said so, and
the journal does not hold it yet) it waits for what becomes of that. `looking` until it has seen what was there when it
attached, so that a drain is answered when that has been given and not before.
Source: semantics.md 2.V, 2.K-4; JMS 2.0 section 6.8.
"""

from __future__ import annotations

from collections.abc import Callable

from native_backend.dispatch.context import RealmContext
from native_backend.dispatch.dispatcher import Dispatcher
from native_backend.events.batch import BatchBuilder, DeliveryBatch
from native_backend.events.chunk import Chunk
from native_backend.events.expiry import stretch
from native_backend.events.wait_list import Wake
from native_backend.journal.settlement import SettlementRequest
from native_backend.log.port import Failure
from native_backend.nodes.answers import Settled
from native_backend.state.intervals import Intervals
from native_backend.subscriptions.plain_subscription import PlainSubscription
from native_backend.subscriptions.subscription import Subscribe, Subscription


class Browser(PlainSubscription):
    """A link that browses. `last`: the last event that was there when it attached."""

    def __init__(
        self,
        context: RealmContext,
        request: Subscribe,
        owner: object,
        closed: Callable[[Subscription], None],
        dispatch: Dispatcher,
        last: int,
    ) -> None:
        super().__init__(context, request, owner, closed, dispatch.state.low)
        self._dispatch, self._state, self._last = dispatch, dispatch.state, last

    def take(self, count_max: int, bytes_max: int) -> DeliveryBatch | None:
        gathering = BatchBuilder(count_max, bytes_max)
        self.looking = False
        if self._context.journal.fenced and self._lost is None and self._open:
            self.lose("in-use", "fenced")
        cursor = self._cursor
        ending = self._dispatch.ending() if cursor.position < self._state.position else Intervals()
        while gathering.room > 0 and self._open and self._lost is None:
            cursor.position = max(cursor.position, self._state.low)
            chunk = self._window.next(cursor)
            if isinstance(chunk, Failure):
                self._read_failed(chunk)
                break
            if chunk is None:
                self.looking = cursor.position <= self._last
                break
            if not self._look(chunk, gathering, ending):
                break
        return gathering.delivered(self._state.failed, 0)

    def is_searched(self) -> bool:
        return not self.looking

    def settle(self, settling: SettlementRequest, eids: list[int], seqs: list[int], owner: object) -> None:
        """A disposition of a copy changes nothing."""
        self._context.answer(Settled(owner, "not-found", "not-outstanding"))

    def last_attempts(self, eids: list[int]) -> list[bool] | None:
        return None

    def _cut(self, end: int) -> None:
        super()._cut(end)
        self._last = min(self._last, end - 1)

    def park(self, wake: Wake) -> bool:
        return not self.looking and super().park(wake)

    def _look(self, chunk: Chunk, gathering: BatchBuilder, ending: Intervals) -> bool:
        """At the first part of it that has one fate; False: not now."""
        cursor = self._cursor
        begin = chunk.index(cursor.position)
        there = None
        if begin < len(chunk.eids):
            there = self._state.acked.first_hole(chunk.eids[begin], chunk.eids[-1])
        if there is None:
            cursor.position = chunk.end
            return True
        first, last = there
        soon = ending.at_or_above(first)
        if soon is not None and soon[0] <= last:
            if chunk.index(soon[0]) == chunk.index(first):
                self.looking = True  # the next one may be gone in a moment
                return False
            last = soon[0] - 1
        begin, end, lives = chunk.index(first), chunk.index(last + 1), True
        if begin == end:
            cursor.position = last + 1
            return True
        if chunk.expiries_ms is not None:
            end, lives = stretch(chunk.expiries_ms, begin, end, self._context.clock.epoch_us() // 1000)
        if lives and self._selection_cursor is not None:
            seen = self._selection_cursor.stretch(chunk, begin, end)
            if seen is None:
                self.looking = True
                return False
            end, lives = seen
        if lives and chunk.marks is not None and chunk.marks.due_ms is not None:  # what is not due is not shown
            end, later = stretch(chunk.marks.due_ms, begin, end, self._context.clock.epoch_us() // 1000)
            lives = not later
        eids = gathering.add(chunk, begin, end) if lives else chunk.eids[begin:end]
        if eids:
            cursor.position = eids[-1] + 1
        return bool(eids)
