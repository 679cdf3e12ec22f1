"""The acknowledgement state of one durable (or queue): numbers only, no bytes of events, no links.

`low`: every event below it is terminal. `acked`: terminal ranges above it. `position`: where first dispatch reads on.
`returned`: given before, to be given again, lowest EID first. `delayed`: the same, but not yet.
`failed`: attempts that counted, for EIDs that have any.
`covers`: for an event given and not terminal whose predecessor lies more than one below, where the gap of non-events
before it begins; an acknowledgement takes that gap along, so gaps never hold `low` back.
`gone`: the log has deleted what had not ended below it, and the journal holds the note.

The same `apply` serves live settlement and recovery. A run is [first EID, last EID, first seq, cover] (docs/records.md
"Journal").
"""

from __future__ import annotations

from collections.abc import Callable

from native_backend.nodes.words import Operation
from native_backend.state.delayed import DelayedEvents
from native_backend.state.intervals import Intervals, dense_runs

Run = tuple[int, int, int, int]


class AckState:
    """See the module's docstring."""

    __slots__ = (
        "acked",
        "changes",
        "covers",
        "delayed",
        "failed",
        "gone",
        "low",
        "on_returned",
        "position",
        "returned",
    )

    def __init__(self, low: int, position: int | None = None) -> None:
        self.low = low
        self.position = low if position is None else position
        self.acked = Intervals()
        self.returned = Intervals()
        self.delayed = DelayedEvents()
        self.failed: dict[int, int] = {}
        self.covers: dict[int, int] = {}
        self.gone = 0
        self.changes = 0  # grows with what is terminal
        self.on_returned: Callable[[], None] | None = None  # told of events to be given again, now or later

    def copy(self) -> AckState:
        """What a snapshot keeps of it."""
        copied = AckState(self.low, self.position)
        copied.acked = self.acked.copy()
        copied.failed = self.failed.copy()
        copied.delayed = self.delayed.copy()
        copied.gone = self.gone
        return copied

    def runs(self, eids: list[int], seqs: list[int]) -> list[Run]:
        """Columns of a settlement as runs. EIDs need no order; a run is dense in both."""
        first, seq = eids[0], seqs[0]
        covers = self.covers
        last = first + len(eids) - 1
        if eids[-1] == last and eids == [*range(first, last + 1)] and seqs == [*range(seq, seq + len(seqs))]:
            return [(first, last, seq, covers.get(first, first))]
        runs = []
        last, last_seq = first - 1, seq - 1
        for eid, number in zip(eids, seqs, strict=True):
            if eid != last + 1 or number != last_seq + 1:
                if last >= first:
                    runs.append((first, last, seq, covers.get(first, first)))
                first, seq = eid, number
            last, last_seq = eid, number
        runs.append((first, last, seq, covers.get(first, first)))
        return runs

    def apply(self, operation: Operation, failed: bool, runs: list[Run], not_before_ms: int = 0) -> None:
        """What the journal holds becomes true. The keeper of the durable handles a deletion."""
        if operation == "seek":
            self.seek(runs[0][0])
            return
        if operation == "truncated":
            self.cut(runs[0][0])
            return
        if operation == "lost":
            self.noted_lost(runs[0][1] + 1)
            return
        for first, last, _, cover in runs:
            if last >= self.position:
                self._reach(first, last + 1)
            if operation != "return":
                self._terminal(first, last, cover)
                continue
            if not_before_ms:
                self.delayed.add(first, last, not_before_ms)
                if self.on_returned is not None:
                    self.on_returned()
            else:
                self.requeue(first, last)
            if failed:
                for eid in range(first, last + 1):
                    self.failed[eid] = self.failed.get(eid, 0) + 1

    def _reach(self, first: int, end: int) -> None:
        """A link had [first, end), and the position was moved back since: what lies before it is given all the same."""
        before, self.position = self.position, end
        if first > before:
            self.requeue(before, first - 1)

    def seek(self, place: int) -> None:
        """Everything below `place` is terminal, everything from it on as if it had never been given."""
        self.changes += 1
        self.low = self.position = place
        self.gone = min(self.gone, place)
        self.acked, self.returned, self.delayed = Intervals(), Intervals(), DelayedEvents()
        self.failed.clear()
        self.covers.clear()

    def cut(self, end: int) -> None:
        """The log lost what it held at or above `end`, and gives those EIDs to other events."""
        self.changes += 1
        self.low, self.position, self.gone = min(self.low, end), min(self.position, end), min(self.gone, end)
        self.acked.remove_from(end)
        self.returned.remove_from(end)
        self.delayed.cut(end)
        cover = min((cover for eid, cover in self.covers.items() if eid >= end), default=end)
        if cover < end:  # a gap before an event that is gone: whatever is read there next takes it along
            self.returned.add(cover, end - 1)
        for counts in (self.failed, self.covers):
            for eid in [eid for eid in counts if eid >= end]:
                del counts[eid]

    def requeue(self, first: int, last: int) -> None:
        """These are to be given again, unless they were evicted meanwhile. From the position on they are given as new
        ones."""
        first, last = max(first, self.low), min(last, self.position - 1)
        if first <= last:
            self.returned.add(first, last)
            if self.on_returned is not None:
                self.on_returned()

    def evict(self, bound: int) -> None:
        """Everything below `bound` has ended, also what links have now."""
        if bound > self.low:
            self.cover(self.low, bound - 1)
        self.returned.remove_below(self.low)
        self.position = max(self.position, self.low)
        for counts in (self.failed, self.covers):
            for eid in [eid for eid in counts if eid < bound]:
                del counts[eid]

    def finish(self, eids: list[int]) -> None:
        """These events are terminal, whatever their order; none has a gap before it."""
        eids.sort()
        self.position = max(self.position, eids[-1] + 1)
        for first, last in dense_runs(eids):
            self._terminal(first, last, first)

    def cover(self, first: int, last: int) -> None:
        """There is no event in [first, last]: no link will ever settle it."""
        self.changes += 1
        if first <= self.low:
            self.low = max(self.low, last + 1)
        else:
            self.acked.add(first, last)
        if self.acked:
            self.low = self.acked.absorb(self.low)

    def _terminal(self, first: int, last: int, cover: int) -> None:
        self.cover(cover, last)
        if self.covers:
            _forget(self.covers, first, last)
        if self.failed:
            _forget(self.failed, first, last)

    def wake(self, now_ms: int) -> None:
        """What was delayed until now is to be given again, unless it has ended meanwhile."""
        for first, last in self.delayed.due(now_ms):
            for begin, end in self.acked.holes(max(first, self.low), last + 1):
                self.returned.add(begin, end)

    def withdraw(self, below: int, runs_max: int, eids_max: int = 2**62) -> list[Run]:
        """Take out what lies below that EID and is returned, delayed or not given yet, gaps included: the lowest of
        it, at most so much."""
        if self.delayed:
            self._hurry(below)
        runs: list[Run] = []
        while len(runs) < runs_max and eids_max > 0:
            span = self.returned.at_or_above(self.low)
            if span is None or span[0] >= below:
                break
            first, last = span[0], min(span[1], below - 1, span[0] + eids_max - 1)
            self.returned.remove(first, last)
            runs.append((first, last, 0, self.covers.get(first, first)))
            eids_max -= last - first + 1
        end = min(below, self.position + eids_max)
        if len(runs) < runs_max and self.position < end:
            runs.append((self.position, end - 1, 0, self.position))
            self.position = end
        return runs

    def _hurry(self, below: int) -> None:
        """Nothing below that EID waits any longer."""
        waiting, self.delayed = self.delayed, DelayedEvents()
        for not_before_ms, first, last in waiting:
            for begin, end in self.acked.holes(max(first, self.low), min(last + 1, below)):
                self.returned.add(begin, end)
            if last >= below:
                self.delayed.add(max(first, below), last, not_before_ms)

    def give_back(self, held: Intervals, delays: DelayedEvents) -> None:
        """What was withdrawn and did not end is to be given again, after its delay."""
        for first, last in held:
            self.requeue(first, last)
        for not_before_ms, first, last in delays:
            while (span := self.returned.at_or_above(first)) is not None and span[0] <= last:
                begin, first = span[0], min(span[1], last) + 1
                self.returned.remove(begin, first - 1)
                self.delayed.add(begin, first - 1, not_before_ms)
        if self.on_returned is not None:
            self.on_returned()

    def reopen(self) -> None:
        """After recovery: whatever was given and is neither terminal, nor delayed, nor gone is to be given again. Its
        ranges may hold gaps."""
        self.returned = Intervals(self.acked.holes(max(self.low, self.gone), self.position))
        for _, first, last in self.delayed:
            self.returned.discard(first, last)

    def lose_below(self, kept: int) -> int:
        """The store's first record is `kept`: nothing below can be given. `low` stays, because no consumer acknowledged
        the lost events (reconciliation names them, S1). Returns how many EIDs are not terminal and gone."""
        lost = self.returned.remove_below(kept) + max(0, kept - self.position)
        self.position = max(self.position, kept)
        return lost

    def noted_lost(self, kept: int) -> None:
        """The journal holds the note that the log deleted what had not ended below `kept`. No consumer acknowledged
        it, so `low` stays; at the next start it is not missed again."""
        self.position = max(self.position, kept)
        self.gone = max(self.gone, kept)

    @property
    def unsettled(self) -> int:
        """EIDs (gaps included) below `position` that are not terminal."""
        return self.position - self.low - self.acked.count()


def _forget(counts: dict[int, int], first: int, last: int) -> None:
    """Drop the keys in [first, last], walking the smaller side."""
    if last - first < len(counts):
        for eid in range(first, last + 1):
            counts.pop(eid, None)
        return
    for eid in [eid for eid in counts if first <= eid <= last]:
        del counts[eid]


def remove_all(outstanding: Intervals, runs: list[Run]) -> bool:
    """All of them, or nothing: False when some are not there."""
    for at, (first, last, _, _) in enumerate(runs):
        if not outstanding.remove(first, last):
            for first, last, _, _ in runs[:at]:
                outstanding.add(first, last)
            return False
    return True
