"""How many messages a queue or a durable has: what it must still give or has given and not heard of.

A message is an event that has not ended for that durable and whose time is not over. Marks of transactions, aborted
records and other gaps between EIDs are none. Nothing is kept for this: the numbers follow from the acknowledgement
state and from which EIDs are events, in steps, so a million ranges hold up nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from native_backend.events.store_events import StoreEvents
from native_backend.state.ack_state import AckState
from native_backend.state.intervals import Intervals

_STEP = 256  # ranges looked at without a pause: some 200 us


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """`stored` is the sum of the others. `unsettled`: with a consumer or in its transaction; `delayed`: not to be given
    yet."""

    stored: int
    available: int
    unsettled: int
    delayed: int

    def __add__(self, other: MessageCounts) -> MessageCounts:
        return MessageCounts(
            self.stored + other.stored,
            self.available + other.available,
            self.unsettled + other.unsettled,
            self.delayed + other.delayed,
        )


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts, and so many EIDs below the store's end that Kafka's tools show just `stored` as lag (`place`)."""

    counts: MessageCounts
    place: int


def tally(
    events: StoreEvents, state: AckState, given: Iterable[Intervals], unsettled: int, now_ms: int
) -> Iterator[Tally | None]:
    """None for each step, then the tally. `given`: what links have, so many as `unsettled` says, with those that a
    transaction or the journal has of them."""
    events.pass_time(now_ms)
    low, acked = max(state.low, events.first), state.acked.copy()
    end = max(events.counted_to, low)
    given = [intervals.copy() for intervals in given]
    delayed = _Resting(events.future.copy())
    for first, last in state.delayed.later(now_ms):
        if delayed.add(first, last):
            yield None
    whole, below = events.map.count(low, events.top), events.map.count(low, end)
    ended = ended_below = ended_above = 0
    for at, (first, last) in enumerate(acked, 1):
        count = events.map.count(max(first, low), last + 1)
        ended += count
        if last < end:
            ended_below += count
        else:
            ended_below += events.map.count(max(first, low), end)
            ended_above += last + 1 - max(first, end)
        if at % _STEP == 0:
            yield None
    expired = resting = 0
    for at, (first, last) in enumerate(_not_in(acked, events.expired.copy(), low), 1):
        expired += events.map.count(first, last + 1) - sum(_overlap(intervals, first, last) for intervals in given)
        delayed.ranges.discard(first, last)
        if at % _STEP == 0:
            yield None
    for at, (first, last) in enumerate(_not_in(acked, delayed.ranges, low), 1):
        resting += events.map.count(first, last + 1)
        if at % _STEP == 0:
            yield None
    stored = max(0, whole - ended - expired)
    unsettled = min(stored, unsettled)
    counts = MessageCounts(stored, max(0, stored - unsettled - resting), unsettled, min(resting, stored - unsettled))
    yield Tally(counts, end - below + ended_below + ended_above + expired)


class _Resting:
    """Ranges that are not to be given yet, gathered in steps."""

    def __init__(self, ranges: Intervals) -> None:
        self.ranges = ranges
        self._added = 0

    def add(self, first: int, last: int) -> bool:
        """True: it is time for a pause."""
        self.ranges.add(first, last)
        self._added += 1
        return self._added % _STEP == 0


def _not_in(acked: Intervals, ranges: Intervals, low: int) -> Iterator[tuple[int, int]]:
    """What of the ranges has not ended; behind each of them an empty one, so that steps can be counted."""
    for first, last in ranges:
        yield from acked.holes(max(first, low), last + 1)
        yield last + 1, last


def _overlap(held: Intervals, first: int, last: int) -> int:
    """How many EIDs of [first, last] are in the set."""
    counted, span = 0, held.at_or_above(first)
    while span is not None and span[0] <= last:
        counted += min(span[1], last) - span[0] + 1
        span = held.at_or_above(span[1] + 1)
    return counted
