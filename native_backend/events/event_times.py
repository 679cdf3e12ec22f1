"""When the events of one store were stored, without noting anything for an event: EIDs and times rise together, so it
is enough to note now and then with which EID a time began.

The notes are bounded. When they are too many, every second one goes, and the next ones are twice as far apart: a time
is known to about a second, or to 2 % of what the notes cover. Milliseconds since 1970.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

NOTES: Final = 128
STEP_MS: Final = 1_000


class EventTimes:
    """See the module's docstring. A time that is lower than an earlier event's (a clock was set back) is not noted.
    `due_ms`: the next time that will be."""

    __slots__ = ("_eids", "_step_ms", "_times_ms", "due_ms")

    def __init__(self) -> None:
        self.due_ms = 0
        self._eids, self._times_ms = array("q"), array("q")
        self._step_ms = STEP_MS

    def note(self, eid: int, time_ms: int) -> None:
        """That event, and what comes behind it, was stored then or later."""
        times_ms = self._times_ms
        if times_ms and time_ms < self.due_ms:
            return
        self._eids.append(eid)
        times_ms.append(time_ms)
        if len(times_ms) > NOTES:
            self._eids, self._times_ms = self._eids[::2], times_ms[::2]
            self._step_ms *= 2
        self.due_ms = time_ms + self._step_ms

    def learn(self, eids: Sequence[int], times_ms: Sequence[int]) -> None:
        """The same of many."""
        at = 0
        while at < len(eids):
            self.note(eids[at], times_ms[at])
            at = bisect_left(times_ms, self.due_ms, at + 1)

    def time_ms(self, eid: int) -> int | None:
        """When it was stored, or a little before. None: it lies below all that was noted."""
        at = bisect_right(self._eids, eid) - 1
        return self._times_ms[at] if at >= 0 else None

    def remove_below(self, bound: int) -> None:
        """Forget what is not needed for `bound` and above."""
        at = bisect_right(self._eids, bound) - 1
        if at <= 0:
            return
        del self._eids[:at], self._times_ms[:at]
        covered_ms = self._times_ms[-1] - self._times_ms[0]
        while self._step_ms > STEP_MS and self._step_ms * NOTES > 4 * covered_ms:
            self._step_ms //= 2
        self.due_ms = self._times_ms[-1] + self._step_ms
