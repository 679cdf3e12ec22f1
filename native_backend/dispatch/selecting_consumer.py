"""A link with a selection at a queue or a durable: what it is given, and what becomes of what it passes over.

* At a durable the selection is the durable's: what does not match has ended for it, and is journaled as `filtered`.
* At a queue the selection is the link's own: what does not match stays in its place for other links, as if no link had
  looked at it.

So a selecting consumer has a position of its own to read from: first what is returned and not known to be unfit, then
new events. It waits for no other link, and no link waits for it: other links get what it passed over as they get
returned events. Memory: `unfit` has as many ranges as events under way at links and terminal ranges above the state's
`low`; what it passes over makes at most `limits.passed_ranges` ranges, then it gets no further until others take some
of it.
Source: issue "selectors"; JMS 2.0 section 3.8.
"""

from __future__ import annotations

import logging
from typing import Any

from native_backend.dispatch.backlog import Backlog
from native_backend.dispatch.next_events import EventPicker, Fate
from native_backend.events.batch import BatchBuilder, DeliveryBatch
from native_backend.events.chunk import Chunk
from native_backend.events.selection import Selection, SelectionCursor
from native_backend.events.wait_list import WaitList, Wake
from native_backend.journal.settlement import Settlement
from native_backend.log.port import Failure
from native_backend.state.ack_state import Run
from native_backend.state.intervals import Intervals

_LOG = logging.getLogger(__name__)


class SelectingConsumer:
    """One link's. `looking`: there is something that it has not looked at yet."""

    def __init__(self, backlog: Backlog, picker: EventPicker, link: Any, selection: Selection, ends: bool) -> None:
        """`ends`: what does not match has ended, for this is a durable."""
        self.link = link
        self.looking = False
        self.unfit = Intervals()
        self._backlog, self._picker, self._state, self._ends = backlog, picker, backlog.state, ends
        context = backlog.context
        self._limits, self._clock = context.limits, context.clock
        self._selection_cursor = SelectionCursor(selection, context.scanning)
        self._window = context.windows.window(backlog.node)
        self._cursor = self._window.join(self._state.position)
        self._resume = 0  # where the next look at what is returned begins
        self._warned = False
        self._wait_list = WaitList(context.wait_lists, self._available)

    def leave(self) -> None:
        self._wait_list.drop(self.link)
        self._window.leave(self._cursor)

    def park(self, wake: Wake) -> bool:
        """It has just taken nothing; see `Dispatcher.park`."""
        if self._available():
            return False
        self._wait_list.add(self.link, wake)
        return True

    def notify(self) -> None:
        """Something was returned, or the place was moved."""
        self._wait_list.notify()

    def _available(self) -> int:
        """Whether there may be something for it. If not, it is stirred by what comes."""
        if self.looking or self._backlog.paused or not self._backlog.context.gives:
            return 1
        if self._state.delayed:
            self._state.wake(self._clock.epoch_us() // 1000)
        if self._picker.has_kept(self.link) or self._returned() is not None or self.looking:
            return 1
        self._cursor.position = self._state.position
        if self._window.available(self._cursor, 1):
            return 1
        self._window.park(self._cursor, self._wait_list.notify)
        if self._state.delayed:
            self._backlog.context.wait_lists.notify_at(self._state.delayed.soonest_ms, self._wait_list)
        return 0

    def take(self, count_max: int, bytes_max: int) -> DeliveryBatch | None:
        """Events for this link now. No link takes while the durable is `paused`."""
        self.looking = self._backlog.paused
        if self.looking:
            return None
        if self._state.delayed:
            self._state.wake(self._clock.epoch_us() // 1000)
        self._take_back()
        gathering = BatchBuilder(count_max, bytes_max)
        while gathering.room > 0 and self._take_returned(gathering):
            pass
        self._backlog.count_repeated(gathering)
        while gathering.room > 0 and not self.looking and self._take_new(gathering):
            pass
        return gathering.delivered(self._state.failed, self._backlog.redelivered_below)

    # -- what was given before, or passed over

    def _take_back(self) -> None:
        """What others kept for it, because it has the groups, is to be looked at like what was returned."""
        groups = self._picker.groups
        if groups is not None:
            for first, last in groups.give_up(self.link):
                self._state.requeue(first, last)

    def _returned(self) -> tuple[int, int] | None:
        """The lowest that is returned and not known to be unfit."""
        returned, unfit, bound = self._state.returned, self.unfit, self._resume
        for _ in range(self._limits.returned_scan):
            span = returned.at_or_above(bound)
            if span is None:
                self._resume = 0
                return None
            hole = unfit.first_hole(*span)
            if hole is not None:
                return hole
            known = unfit.at_or_above(span[0])
            assert known is not None
            bound = known[1] + 1
        self._resume, self.looking = bound, True
        return None

    def _take_returned(self, gathering: BatchBuilder) -> bool:
        """Look at a stretch of it; False: nothing more of it now."""
        place = self._returned()
        if place is None:
            return False
        first, last = place
        chunk = self._chunk(first)
        if chunk is None:
            self.looking = True  # what is there must be looked at before what lies behind it
            return False
        state = self._state
        last = min(last, chunk.end - 1)
        begin, end = chunk.index(first), chunk.index(last + 1)
        if begin == end:  # nothing but gaps
            state.returned.remove(first, last)
            state.cover(first, last)
            return True
        seen = self._look(chunk, begin, end)
        if seen is None:
            return False
        stop, fate = seen
        if fate == "fits":
            eids = gathering.add(chunk, begin, stop)
            if not eids:
                return False
            state.returned.remove(first, eids[-1])
            self._picker.given(self.link, chunk, eids)
            return True
        through = chunk.eids[stop - 1]
        if fate == "unfit" and not self._ends:
            self.unfit.add(first, through)
            return True
        state.returned.remove(first, through)
        if fate not in ("unfit", "expired"):
            if not self._picker.set_aside(chunk, begin, stop, fate, first):
                state.returned.add(first, through)
                return False
            return True
        self._end(chunk, begin, stop, fate)
        return True

    # -- new events

    def _take_new(self, gathering: BatchBuilder) -> bool:
        state = self._state
        chunk = self._chunk(state.position)
        if chunk is None:
            return False
        begin = chunk.index(state.position)
        seen = self._look(chunk, begin, len(chunk.eids))
        if seen is None:
            return False
        stop, fate = seen
        if fate == "unfit" and not self._ends:
            return self._pass_over(chunk.eids[stop - 1])
        if fate not in ("fits", "unfit", "expired"):
            if not self._picker.set_aside(chunk, begin, stop, fate, state.position):
                return False
            state.position = chunk.eids[stop - 1] + 1
            return True
        if fate != "fits":
            state.position = chunk.eids[stop - 1] + 1
            self._end(chunk, begin, stop, fate)
            return True
        eids = gathering.add(chunk, begin, stop)
        if not eids:
            return False
        self._picker.given(self.link, chunk, eids)
        state.position = eids[-1] + 1
        return True

    def _pass_over(self, through: int) -> bool:
        """New events up to `through` are for others."""
        state, first = self._state, self._state.position
        if len(state.returned) >= self._limits.passed_ranges:
            if not self._warned:
                self._warned = True
                _LOG.warning(
                    "node %r: a selector has passed over %d stretches of events that no link takes; it stops there",
                    *(self._backlog.node.name, len(state.returned)),
                )
            return False
        state.position = through + 1
        state.requeue(first, through)
        self._backlog.fresh.remove_below(state.low)
        self._backlog.fresh.add(first, through)
        self.unfit.add(first, through)
        return True

    # -- common to both

    def _chunk(self, eid: int) -> Chunk | None:
        self._cursor.position = eid
        chunk = self._window.next(self._cursor)
        if isinstance(chunk, Failure):
            self._backlog.read_failed(chunk)
            return None
        return chunk

    def _look(self, chunk: Chunk, begin: int, end: int) -> tuple[int, Fate] | None:
        """The first part of [begin, end) with one fate: where it ends, and the fate: unfit, or one of `EventPicker`.
        None: not in this turn."""
        if chunk.expiries_ms is not None or chunk.marks is not None:
            end, fate = self._picker.stretch(self.link, chunk, begin, end, self._clock.epoch_us() // 1000)
            if fate != "fits":
                return end, fate
        seen = self._selection_cursor.stretch(chunk, begin, end)
        if seen is None:
            self.looking = True
            return None
        stop, fits = seen
        return stop, "fits" if fits else "unfit"

    def _end(self, chunk: Chunk, begin: int, stop: int, fate: Fate) -> None:
        eids = chunk.eids[begin:stop]
        if fate == "expired":
            self._backlog.expire(eids, chunk)
        else:
            self._backlog.filter_out(eids, chunk)

    # -- what the journal holds

    def settled(self, settlement: Settlement, excluded: bool) -> None:
        """`excluded`: this link wanted them to go elsewhere. An ended event goes to no link, so it may count as unfit:
        that joins the ranges."""
        if excluded or (settlement.operation != "return" and self.unfit):
            self._avoid(settlement.runs)

    def _avoid(self, runs: list[Run]) -> None:
        for first, last, _, _ in runs:
            self.unfit.add(first, last)
        self.unfit.remove_below(self._state.low)

    def cut(self, end: int) -> None:
        """What lies at or above `end` is not what it was."""
        self.unfit.remove_from(end)
        self._resume = 0

    def forget(self) -> None:
        """The place was moved: all is to be given as if for the first time."""
        self.unfit, self._resume = Intervals(), 0
        self.notify()
