"""How a link of a durable or queue is given events: returned ones first, lowest EID first, then new ones.

Of most chunks all events can be given. Where some expire, or have marks, each stretch of one *fate* is dealt with: it
`fits`; it has `expired`; it is to come `later`; or it belongs to a group that another link keeps. What is not for now
makes at most `limits.delayed_ranges` and `limits.kept_ranges` ranges; at the limit no link gets an event behind them.
Times in milliseconds since 1970.
"""

from __future__ import annotations

import logging

from native_backend.dispatch.backlog import Backlog
from native_backend.events.batch import BatchBuilder
from native_backend.events.chunk import Chunk
from native_backend.events.expiry import stretch
from native_backend.log.port import Failure
from native_backend.state.consumer import Consumer
from native_backend.state.intervals import Intervals, dense_runs
from native_backend.state.message_groups import MessageGroups

_LOG = logging.getLogger(__name__)
Fate = str | Consumer  # fits, expired, later; or the link that keeps its group


class EventPicker:
    """Of one `Backlog`. `stopped`: the last take ended before it had looked at all that is here."""

    def __init__(self, backlog: Backlog) -> None:
        self.groups: MessageGroups | None = None  # once an event has one
        self.stopped = False
        self._backlog = backlog
        self._state = backlog.state
        self._limits, self._clock = backlog.context.limits, backlog.context.clock
        self._warned = False

    # -- new events

    def take_new(self, link: Consumer, gathering: BatchBuilder) -> None:
        backlog, state, cursor = self._backlog, self._state, self._backlog.cursor
        cursor.position = state.position  # links with selections may have moved it on
        while gathering.room > 0 and backlog.window is not None:
            chunk = backlog.window.next(cursor)
            if chunk is None:
                return
            if isinstance(chunk, Failure):
                backlog.read_failed(chunk)
                return
            begin = chunk.index(state.position)
            if chunk.expiries_ms is not None or chunk.marks is not None:
                if self._take_sorted(link, gathering, chunk, begin):
                    self.stopped = True
                    return  # a chunk of which something was not for this link now is enough for one turn
                continue
            eids = gathering.add(chunk, begin, len(chunk.eids))
            if eids:
                self.given(link, chunk, eids)
                state.position = cursor.position = eids[-1] + 1

    def _take_sorted(self, link: Consumer, gathering: BatchBuilder, chunk: Chunk, at: int) -> bool:
        """New events that are for this link now; True when there were others, too."""
        now_ms, end = self._clock.epoch_us() // 1000, len(chunk.eids)
        expired: list[int] = []
        others = False
        while at < end and gathering.room > 0:
            stop, fate = self.stretch(link, chunk, at, end, now_ms)
            if fate == "fits":
                eids = gathering.add(chunk, at, stop)
                if not eids:
                    break
                self.given(link, chunk, eids)
            else:
                others = True
                eids = chunk.eids[at:stop]
                if fate == "expired":
                    expired += eids
                elif not self.set_aside(chunk, at, stop, fate, self._state.position):
                    break
            self._state.position = self._backlog.cursor.position = eids[-1] + 1
            at += len(eids)
        self._backlog.expire(expired, chunk)
        return others

    # -- fates

    def stretch(self, link: Consumer, chunk: Chunk, at: int, end: int, now_ms: int) -> tuple[int, Fate]:
        """The first part of [at, end) that has one fate, and the fate."""
        lives = True
        if chunk.expiries_ms is not None:
            end, lives = stretch(chunk.expiries_ms, at, end, now_ms)
        if not lives:
            return end, "expired"
        if chunk.marks is None:
            return end, "fits"
        fate, stop = self._fate(link, chunk, at, now_ms), at + 1
        while stop < end and self._fate(link, chunk, stop, now_ms) == fate:
            stop += 1
        return stop, fate

    def _fate(self, link: Consumer, chunk: Chunk, at: int, now_ms: int) -> Fate:
        marks = chunk.marks
        assert marks is not None
        if marks.due_ms is not None and marks.due_ms[at] > now_ms:
            return "later"
        group = marks.groups[at] if marks.groups is not None else None
        if group is None:
            return "fits"
        if self.groups is None:
            self.groups = MessageGroups(self._limits.groups)
        keeper = self.groups.owner_of(group, link, self._backlog.links)
        return "fits" if keeper is link or self._backlog.excludes(keeper, chunk.eids[at]) else keeper

    def set_aside(self, chunk: Chunk, at: int, stop: int, fate: Fate, first: int) -> bool:
        """Events [at, stop) of the chunk are not for now, or for another link; what lies between them and `first` goes
        along. They are nowhere else any more. False: there is no room for more of that."""
        state, last = self._state, chunk.eids[stop - 1]
        if isinstance(fate, str):
            if len(state.delayed) >= self._limits.delayed_ranges:
                return self._full("delayed events")
            assert chunk.marks is not None and chunk.marks.due_ms is not None
            low = first
            for place in range(at, stop):
                state.delayed.add(low, chunk.eids[place], chunk.marks.due_ms[place])
                low = chunk.eids[place] + 1
        else:
            assert self.groups is not None
            kept = self.groups.kept(fate)
            if len(kept) >= self._limits.kept_ranges:
                return self._full("events of groups that others keep")
            kept.add(first, last)
            self._backlog.wake(fate)
        fresh = self._backlog.fresh
        if last >= state.position:  # no link had them
            fresh.remove_below(state.low)
            fresh.add(first, last)
        return True

    def _full(self, what: str) -> bool:
        if not self._warned:
            self._warned = True
            _LOG.warning("node %r: too many stretches of %s; nothing behind is given", self._backlog.node.name, what)
        return False

    # -- events that were given before, or set aside

    def has_kept(self, link: Consumer) -> bool:
        return self.groups is not None and self.groups.has_kept(link)

    def give_back(self) -> None:
        """What is kept for links is offered to all links again."""
        for kept in self.groups.all_kept() if self.groups is not None else ():
            for first, last in kept:
                self._state.requeue(first, last)

    def lose_below(self, bound: int) -> None:
        """What lies below is given no more."""
        if self.groups is not None:
            self.groups.lose_below(bound)

    def forget(self) -> None:
        """The place was moved: all is to be given as if for the first time."""
        if self.groups is not None:
            self.groups.all_kept()

    def has_returned(self, link: Consumer) -> bool:
        return bool(self._state.returned) or self.has_kept(link)

    def _next(self, link: Consumer, bound: int) -> tuple[tuple[int, int] | None, Intervals]:
        """The lowest that is returned or kept for this link."""
        returned = self._state.returned
        span = returned.at_or_above(bound)
        if self.groups is not None and self.has_kept(link):
            kept = self.groups.kept(link)
            mine = kept.at_or_above(bound)
            if mine is not None and (span is None or mine[0] < span[0]):
                return mine, kept
        return span, returned

    def take_returned(self, link: Consumer, gathering: BatchBuilder) -> None:
        backlog, excluded = self._backlog, self._backlog.excluded(link)
        bound = excluded.resume if excluded is not None else 0
        skips = self._limits.returned_scan  # stretches that this link cannot have now
        while gathering.room > 0 and skips:
            span, source = self._next(link, bound)
            allowed = span if span is None or excluded is None else excluded.eids.first_hole(*span)
            if span is None:
                break
            if allowed is None:
                bound, skips = span[1] + 1, skips - 1
                continue
            first, last = allowed
            chunk = backlog.chunk_in_memory(first)
            if chunk is None:
                if backlog.fetch(first):
                    return
                bound, skips = last + 1, skips - 1
                continue
            last = self._take_from(link, gathering, chunk, (first, min(last, chunk.end - 1)), source)
            if last < 0:
                return
            bound = last + 1
        self.stopped = self.stopped or not skips
        if excluded is not None:
            excluded.resume = 0 if skips else bound  # the next take looks further on

    def _take_from(
        self, link: Consumer, gathering: BatchBuilder, chunk: Chunk, span: tuple[int, int], source: Intervals
    ) -> int:
        """Take the first stretch of one fate out of the range; its last EID. -1: there is no room for it."""
        first, last = span
        begin, end = chunk.index(first), chunk.index(last + 1)
        if (chunk.expiries_ms is not None or chunk.marks is not None) and begin < end:
            whole = end
            end, fate = self.stretch(link, chunk, begin, end, self._clock.epoch_us() // 1000)
            if end < whole or fate != "fits":
                last = chunk.eids[end - 1]
            if fate != "fits":
                source.remove(first, last)
                if fate == "expired":
                    self._backlog.expire(chunk.eids[begin:end], chunk)
                elif not self.set_aside(chunk, begin, end, fate, first):
                    source.add(first, last)
                return last
        eids = gathering.add(chunk, begin, end)
        if len(eids) < end - begin:  # no room for all
            if not eids:
                return -1
            last = eids[-1]
        source.remove(first, last)
        after = eids[-1] + 1 if eids else first
        if after <= last:  # nothing but gaps
            self._state.cover(after, last)
        self.given(link, chunk, eids)
        return last

    def given(self, link: Consumer, chunk: Chunk, eids: list[int]) -> None:
        runs = dense_runs(eids)
        for first, last in runs:
            link.outstanding.add(first, last)
        if chunk.gaps:
            for first, _ in runs:
                cover = chunk.gaps.get(first)
                if cover is not None:
                    self._state.covers[first] = cover
