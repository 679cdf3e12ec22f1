"""What this process knows of the events of one store: which EIDs are events, which have expired, which are not due yet.

What it stored itself it knows at once. Whatever else a log holds (another writer's events, the marks behind
transactions, aborted records) is learned by `native_backend/shard/counting.py`, which accounts for every EID below
`counted_to`. Times in milliseconds since 1970.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice

from native_backend.events.delivery_marks import DeliveryMarks
from native_backend.events.event_map import EventMap
from native_backend.events.event_times import EventTimes
from native_backend.events.expiry import NEVER, expiries
from native_backend.log.columns import letters_of
from native_backend.log.event_key import may_be_due, may_have_times
from native_backend.log.port import Records
from native_backend.nodes.node import Node
from native_backend.state.delayed import DelayedEvents
from native_backend.state.intervals import Intervals, dense_runs

_EXPIRY_SLOT_MS = 1000
"""A day of messages that live for a day costs 20 MB, and no number is more than a second late."""
_JOINED = 256  # ranges that are kept beside the map
_LOOKED_AT = 256  # ranges
_DATED = 1000  # ranges with a time that are kept before it is looked which of them are still needed


class StoreEvents:
    """See the module's docstring. `known`: all that was there when it was looked at first is accounted for. `changes`
    grows whenever more has become known than that what follows are events."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.changes = 0
        self.forget()

    def forget(self) -> None:
        """Begin anew: what was known does not hold."""
        self.known = False
        self.first = 0
        self.counted_to = -1  # nothing was looked at yet
        self.target = -1  # where the store ended at the last look
        self.top = 0  # above every event that is known
        self.changes += 1
        self._map = EventMap()
        self._joining = (0, 0)  # events that are not in `_map` yet: [first, end)
        self._joined: list[tuple[int, int]] = []  # nor these
        self.expired = Intervals()  # events
        self.future = Intervals()  # events that are not due
        self.times = EventTimes()
        self._expiries, self._due = DelayedEvents(_EXPIRY_SLOT_MS), DelayedEvents()
        self._dated_max = _DATED
        self.is_dated = False  # some of them will expire, or are not due yet
        self._transactions = array(
            "q"
        )  # the last event of each that this process stored at or above `counted_to`, rising

    @property
    def map(self) -> EventMap:
        """Which EIDs are events."""
        self._fill_map()
        return self._map

    def _fill_map(self) -> None:
        for first, end in (*self._joined, self._joining):
            if first < end:
                self._map.add(first, end - 1)
        self._joined.clear()
        self._joining = self._joining[1], self._joining[1]

    # -- what this process stores

    def stored(self, eids: list[int], keys: Sequence[bytes | None], now_ms: int) -> None:
        """Events, in rising order, that the log has just stored by an append. Each batch pays for it: it calls little
        where there is no gap in the batch and nothing has a time."""
        first, end = eids[0], eids[-1] + 1
        if self.counted_to < 0 or end - first != len(eids):
            self._note(eids, keys, now_ms)
            return
        if self.counted_to == first:
            self.counted_to = end
        self._extend(first, end)
        if now_ms >= self.times.due_ms:
            self.times.note(first, now_ms)
        if self._has_times(keys):
            self._date(eids, keys, [now_ms] * len(eids), now_ms)

    def transacted(self, eids: list[int], keys: Sequence[bytes | None], now_ms: int) -> None:
        """The same, by a transaction of this process: whatever ends it lies somewhere behind them."""
        if eids[-1] >= self.counted_to >= 0:
            self._transactions.append(eids[-1])
        self._note(eids, keys, now_ms)

    def _note(self, eids: list[int], keys: Sequence[bytes | None], now_ms: int) -> None:
        if self.counted_to < 0:
            return  # they will be read
        self._add(dense_runs(eids))
        self.times.note(eids[0], now_ms)
        if self._has_times(keys):
            self._date(eids, keys, [now_ms] * len(eids), now_ms)

    def is_open(self, now_ms: int) -> bool:
        """Something that was stored here is not accounted for."""
        if self.is_dated:
            self.pass_time(now_ms)
        return bool(self._transactions) or self.top > self.counted_to >= 0

    def own(self, end: int) -> tuple[int, int]:
        """Events and transactions of this process in what is not accounted for, below `end`."""
        return self.map.count(self.counted_to, end), bisect_left(self._transactions, end)

    # -- what is accounted for

    def begin(self, first: int, base: int) -> None:
        """The store begins at `first`; below `base` nothing counts."""
        self.first, self.counted_to = first, max(first, base)

    def confirm(self, end: int) -> None:
        """Below `end` there is nothing but what is known."""
        self.counted_to = max(self.counted_to, end)
        del self._transactions[: bisect_left(self._transactions, end)]
        self.changes += 1

    def learn(self, records: Records, now_ms: int) -> None:
        """All that the log has from `counted_to` to `records.next`."""
        kept = [at for at, value in enumerate(records.values) if value is not None]
        eids = [records.offsets[at] for at in kept]
        times_ms = [records.timestamps_ms[at] for at in kept]
        self._add(dense_runs(eids))
        self.times.learn(eids, times_ms)
        keys = [records.keys[at] for at in kept]
        if self._has_times(keys):
            self._date(eids, keys, times_ms, now_ms)
        self.confirm(records.next)

    def _add(self, runs: list[tuple[int, int]]) -> None:
        """They are rising. A batch mostly begins where the last one ended: they become one range, which costs less than
        a mask for each."""
        for first, last in runs:
            self._extend(first, last + 1)

    def _extend(self, first: int, end: int) -> None:
        """[first, end) are events."""
        begun, before = self._joining
        if first == before:
            self._joining = begun, end
        else:
            self._joined.append(self._joining)
            self._joining = first, end
            if len(self._joined) >= _JOINED:
                self._fill_map()
        if self.top < end:
            self.top = end

    def begins_at(self, first: int, low: int) -> None:
        """The log keeps nothing below `first`, and nothing below `low` counts."""
        if first > self.first:
            self.first = first
            self.changes += 1
        bound = max(first, low)
        if bound > self.counted_to:  # else what is dropped here would be missed at the next look, and read
            self.counted_to = bound
            del self._transactions[: bisect_left(self._transactions, bound - 1)]  # a mark lies behind its last event
        self.map.remove_below(bound)
        self.times.remove_below(bound)
        self.expired.remove_below(bound)
        self.future.remove_below(bound)
        if len(self._expiries) + len(self._due) > self._dated_max:
            self._expiries.remove_below(bound)
            self._due.remove_below(bound)
            self._dated_max = max(_DATED, 2 * (len(self._expiries) + len(self._due)))

    def messages(self, now_ms: int) -> int:
        """Those of a channel: all that are kept and whose time is not over."""
        self.pass_time(now_ms)
        return self.map.count(self.first, self.top) - self.expired.count()

    def waiting_from(self, eid: int, now_ms: int) -> int:
        """Those at or above `eid` that are due and whose time is not over. Where these times are scattered, what lies
        beyond the first ranges counts as if it had none: a look costs the same whatever there is."""
        self.pass_time(now_ms)
        low = max(eid, self.first)
        count = self.map.count(low, self.top)
        for first, last in islice(self.expired.reaching(low), _LOOKED_AT):
            count -= self.map.count(max(first, low), last + 1)
        for first, last in islice(self.future.reaching(low), _LOOKED_AT):
            count -= sum(self.map.count(*hole) for hole in self._living(max(first, low), last + 1))
        return max(0, count)

    def _living(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Of these EIDs the parts that have not expired: first and end."""
        for begin, last in islice(self.expired.holes(first, end), _LOOKED_AT):
            yield begin, last + 1

    def first_message(self, low: int, acked: Intervals) -> Iterator[int | None]:
        """The lowest event at or above `low` that is not `acked` and whose time is not over: None for each step, then
        its EID; nothing where there is none."""
        at = max(low, self.first)
        while (hole := acked.first_hole(at, self.top - 1)) is not None:
            eid = self.map.first(hole[0], hole[1] + 1)
            over = self.expired.at_or_above(eid) if eid is not None else None
            if eid is not None and (over is None or over[0] > eid):
                yield eid
                return
            at = hole[1] + 1 if over is None else over[1] + 1
            yield None

    # -- times

    def pass_time(self, now_ms: int) -> None:
        for first, last in self._expiries.due(now_ms):
            self._expire(first, last)
        for first, last in self._due.due(now_ms):
            self.future.discard(first, last)
        self.is_dated = bool(self._expiries) or bool(self._due)

    def _expire(self, first: int, last: int) -> None:
        self.expired.add(first, last)
        self.changes += 1

    def _has_times(self, keys: Sequence[bytes | None]) -> bool:
        """Nearly none has, but for a node with a time to live."""
        return bool(self.node.properties.ttl_ms) or may_have_times(letters_of(keys))

    def _date(self, eids: list[int], keys: Sequence[bytes | None], times_ms: list[int], now_ms: int) -> None:
        """Remember when each expires and is due."""
        ends = expiries(times_ms, keys, self.node.properties.ttl_ms)
        due = DeliveryMarks(keys, times_ms).due_ms if may_be_due(letters_of(keys)) else None
        for at, eid in enumerate(eids):
            if ends is None or ends[at] >= NEVER:
                pass
            elif ends[at] <= now_ms:
                self._expire(eid, eid)
            else:
                self._expiries.add(eid, eid, ends[at])
                self.is_dated = True
            if due is not None and due[at] > now_ms:
                self.future.add(eid, eid)
                self._due.add(eid, eid, due[at])
                self.is_dated = True
