"""What a subscription without a state has seen and is to be given later, or again: lowest EID first, ahead of new ones.

* Events with a delivery time, when that has come.
* What its link gave back, at once, or when the node's delay after a failed attempt is over.

Ranges of EIDs, read again when it is their turn. None of it is in the journal, and it ends with its subscription: the
link has its own copy of the channel, so no other link needs it. What has expired or was trimmed meanwhile is dropped.
Bounded by what a link may leave unsettled, by `limits.delayed_ranges` and by `limits.returned_events`. Times in
milliseconds since 1970. Source: JMS 2.0 sections 6.2.7 and 6.2.10; AMQP 1.0, 3.4.4 and 3.4.5.
"""

from __future__ import annotations

from native_backend.events.batch import BatchBuilder
from native_backend.events.chunk import Chunk
from native_backend.events.expiry import stretch
from native_backend.events.wait_list import WaitList, WaitLists, Wake
from native_backend.events.window import StoreWindow
from native_backend.limits import RealmLimits
from native_backend.log.port import Failure
from native_backend.state.delayed import DelayedEvents, delay_ms
from native_backend.state.intervals import Intervals, dense_runs


class DelayedDelivery:
    """Of one subscription. `failed`: attempts that counted, of events that are here or at the link."""

    def __init__(self, window: StoreWindow, wait_lists: WaitLists, limits: RealmLimits) -> None:
        self.failed: dict[int, int] = {}
        self._window, self._wait_lists, self._limits = window, wait_lists, limits
        self._cursor = window.join(0)
        self._delays = DelayedEvents()
        self._due = Intervals()
        self._given = Intervals()  # of all that is here: what the link had before
        self._wait_list = WaitList(wait_lists, lambda: 1)

    def leave(self) -> None:
        self._wait_list.drop(self)
        self._window.leave(self._cursor)

    def add(self, chunk: Chunk, begin: int, end: int) -> bool:
        """Events [begin, end) are not due. False: there is no room for more of such."""
        assert chunk.marks is not None and chunk.marks.due_ms is not None
        if len(self._delays) >= self._limits.delayed_ranges:
            return False
        for at in range(begin, end):
            self._delays.add(chunk.eids[at], chunk.eids[at], chunk.marks.due_ms[at])
        return True

    def give_back(self, eids: list[int], failed: bool, now_ms: int) -> None:
        """The link does not keep them; `failed`: an attempt that counts."""
        runs = dense_runs(sorted(eids))
        for first, last in runs:
            self._given.add(first, last)
        if failed and self._rest(eids, now_ms):
            return
        for first, last in runs:
            self._due.add(first, last)

    def _rest(self, eids: list[int], now_ms: int) -> bool:
        """Count the attempt. Whether they rest now, each as long as its own attempts say: with too many at rest others
        do not."""
        counts, properties = self.failed, self._window.node.properties
        for eid in eids:
            counts[eid] = counts.get(eid, 0) + 1
        if not properties.redelivery_delay_ms or len(counts) > self._limits.returned_events:
            return False
        for eid in eids:
            self._delays.add(eid, eid, now_ms + delay_ms(properties, counts[eid]))
        return True

    def forget(self, eids: list[int]) -> None:
        """The link has dealt with them: their failures are no longer counted."""
        if self.failed:
            for eid in eids:
                self.failed.pop(eid, None)

    def is_due(self, now_ms: int) -> bool:
        for first, last in self._delays.due(now_ms):
            self._due.add(first, last)
        return bool(self._due)

    def take(self, gathering: BatchBuilder, now_ms: int) -> Failure | None:
        """What is due now, as far as there is room and it can be read."""
        before: list[bool] = []
        failure = self._gather(gathering, before, now_ms)
        if any(before):
            gathering.repeated = len(before)
            gathering.before = None if all(before) else before
        return failure

    def _gather(self, gathering: BatchBuilder, before: list[bool], now_ms: int) -> Failure | None:
        """`before`: of each event that is gathered, whether the link had it before."""
        while gathering.room > 0 and self.is_due(now_ms):
            span = self._due.at_or_above(0)
            assert span is not None
            first, last = span
            self._cursor.position = first
            chunk = self._window.next(self._cursor)
            if chunk is None or isinstance(chunk, Failure):
                return chunk
            last = min(last, chunk.end - 1)
            begin, end, lives = chunk.index(first), chunk.index(last + 1), True
            if begin < end:
                if chunk.expiries_ms is not None:
                    end, lives = stretch(chunk.expiries_ms, begin, end, now_ms)
                eids = gathering.add(chunk, begin, end) if lives else chunk.eids[begin:end]
                if not eids:
                    return None
                last = eids[-1]
                if lives:
                    before += [eid in self._given for eid in eids]
                else:
                    self.forget(eids)
            self._due.discard(0, last)
            self._given.discard(first, last)
        return None

    def park(self, wake: Wake) -> None:
        """Nothing is due: call once, when something is."""
        if self._delays:
            self._wait_list.add(self, wake)
            self._wait_lists.notify_at(self._delays.soonest_ms, self._wait_list)

    def cut(self, end: int) -> None:
        """What lies at or above `end` is gone, and other events get those EIDs."""
        self._due.remove_from(end)
        self._given.remove_from(end)
        self._delays.cut(end)
        self.forget([eid for eid in self.failed if eid >= end])

    def lose_below(self, bound: int) -> None:
        """What lies below is gone."""
        self._due.remove_below(bound)
        self._given.remove_below(bound)
        self.forget([eid for eid in self.failed if eid < bound])
